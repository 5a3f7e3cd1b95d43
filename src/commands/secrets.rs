//! `doctor --secrets` and `forget --secrets`: secrets that stand where none should.
//!
//! Kinds, counts, and places are told, and never a value.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Serialize;

use super::{
    compact::require_writer,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self,
        redact::{self, RedactionReport, SecretLocation, StoredSecret},
    },
    store::db::lineage::Lineage,
};

/// What is to be done about what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretsAction {
    /// It is told.
    List,
    /// It is taken out of generated files; the history keeps what they were.
    Redact,
    /// It is taken out of the history and of copies, too.
    Purge,
}

/// How a deed is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct SecretsRequest {
    pub(super) action: SecretsAction,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
    /// The verb as a person types it, for what to try next.
    pub(super) command: &'static str,
}

/// What `--json` prints; a document of `schema/secrets.schema.json`.
#[derive(Debug, Serialize)]
struct SecretsReport {
    /// Whether no secret stands where it would be served.
    ok: bool,
    kinds: Vec<SecretKindCounts>,
    findings: Vec<SecretFinding>,
    /// Files that were written anew.
    files: Vec<String>,
    /// Versions of which the history keeps other bytes now.
    versions: usize,
    /// Copies that were removed.
    copies: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SecretKindCounts {
    kind: String,
    personal: bool,
    /// In daily logs, where the served view keeps it out.
    logs: usize,
    /// In generated files.
    derived: usize,
    /// In versions of generated files.
    history: usize,
    /// In copies that a repair kept.
    copies: usize,
}

#[derive(Debug, Serialize)]
struct SecretFinding {
    place: &'static str,
    path: String,
    /// The line; of a version its number.
    at: u64,
    kind: String,
}

/// More of a list than this is only counted, unless `--verbose`.
const SHOWN_MAX: usize = 20;

pub(super) fn run(
    call: &Invocation,
    root: &MemoryRoot,
    asked: SecretsRequest,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let found = find_secrets(root)?;
    let leaks = found.iter().filter(|it| is_leak(it)).count();
    if asked.action == SecretsAction::List || asked.dry_run || leaks == 0 {
        show(&found, &RedactionReport::default(), asked, ui);
        let told = asked.action == SecretsAction::List && leaks > 0;
        return Ok(if told { CommandErrorKind::Job.exit_code().into() } else { ExitCode::SUCCESS });
    }
    if !asked.yes {
        if !ui.is_json() {
            show(&found, &RedactionReport::default(), asked, ui);
        }
        let question = match asked.action {
            SecretsAction::Purge => {
                "Take them out of files, history, and copies? It cannot be undone."
            }
            _ => "Take them out of the generated files?",
        };
        match ui.confirm(question) {
            Some(true) => {}
            Some(false) => {
                ui.note("nothing was changed");
                return Ok(ExitCode::SUCCESS);
            }
            None => {
                return Err(CommandError::new(
                    CommandErrorKind::Usage,
                    "nothing was changed: nobody can be asked here",
                )
                .hint(format!("{} --yes", asked.command))
                .hint(format!("{} --dry-run", asked.command)));
            }
        }
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let redacted = compactor.redact(asked.action == SecretsAction::Purge)?;
    let left = find_secrets(root)?;
    show(&left, &redacted, asked, ui);
    // What is left in the history is what was asked to stay there.
    let is_left = |it: &StoredSecret| {
        is_leak(it)
            && (asked.action == SecretsAction::Purge || it.location == SecretLocation::Generated)
    };
    Ok(if left.iter().any(is_left) {
        CommandErrorKind::Job.exit_code().into()
    } else {
        ExitCode::SUCCESS
    })
}

fn find_secrets(root: &MemoryRoot) -> Result<Vec<StoredSecret>, CommandError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    Ok(redact::find_secrets(&root.vault, &view, lineage.as_ref())?)
}

/// Returns whether it stands where it should not.
fn is_leak(finding: &StoredSecret) -> bool {
    finding.location != SecretLocation::Log && finding.is_redacted
}

fn show(found: &[StoredSecret], redacted: &RedactionReport, asked: SecretsRequest, ui: &Ui) {
    let mut kinds: BTreeMap<&str, SecretKindCounts> = BTreeMap::new();
    for it in found {
        let kind = kinds.entry(&it.kind).or_insert_with(|| SecretKindCounts {
            kind: it.kind.clone(),
            personal: it.is_personal,
            logs: 0,
            derived: 0,
            history: 0,
            copies: 0,
        });
        match it.location {
            SecretLocation::Log => kind.logs += 1,
            SecretLocation::Generated => kind.derived += 1,
            SecretLocation::History => kind.history += 1,
            SecretLocation::Private => kind.copies += 1,
        }
    }
    let leaks: Vec<&StoredSecret> = found.iter().filter(|it| is_leak(it)).collect();
    if ui.is_json() {
        let findings = found.iter().map(|it| SecretFinding {
            place: place_name(it.location),
            path: it.path.clone(),
            at: it.at,
            kind: it.kind.clone(),
        });
        ui.json(&SecretsReport {
            ok: leaks.is_empty(),
            kinds: kinds.into_values().collect(),
            findings: findings.collect(),
            files: redacted.files.clone(),
            versions: redacted.versions,
            copies: redacted.copies.clone(),
        });
        return;
    }
    for path in &redacted.files {
        ui.success(format!("{path}: secrets replaced by marks"));
    }
    if redacted.versions > 0 {
        ui.success(format!("{} kept versions now hold marks", redacted.versions));
    }
    for path in &redacted.copies {
        ui.success(format!("{path} removed"));
    }
    if found.is_empty() {
        ui.note("no secrets and no personal data");
        return;
    }
    let count = |it: usize| if it == 0 { "–".to_owned() } else { it.to_string() };
    let rows: Vec<Vec<String>> = kinds
        .values()
        .map(|it| {
            let what = if it.personal { "personal" } else { "secret" };
            let numbers = [it.logs, it.derived, it.history, it.copies].map(count);
            [vec![it.kind.clone(), what.to_owned()], numbers.to_vec()].concat()
        })
        .collect();
    ui.table(&["kind", "what", "logs", "generated", "history", "copies"], &rows);
    let most = if ui.is_verbose() { usize::MAX } else { SHOWN_MAX };
    for it in leaks.iter().take(most) {
        let at = match (it.location, it.at) {
            (SecretLocation::History, version) => format!("version {version}"),
            (_, 0) => "name".to_owned(),
            (_, line) => line.to_string(),
        };
        ui.data(format!("{}:{at}  {} ({})", it.path, it.kind, place_name(it.location)));
    }
    if leaks.len() > most {
        ui.note(format!("and {} more; --verbose names all", leaks.len() - most));
    }
    match (leaks.is_empty(), asked.action) {
        (true, _) => ui.success("no secret stands outside of the logs"),
        (false, SecretsAction::List) => {
            ui.note("take them out of the generated files: `memoird doctor --secrets --repair`");
            ui.note("and out of the history and copies: `memoird forget --secrets`");
        }
        (false, _) => {}
    }
}

fn place_name(place: SecretLocation) -> &'static str {
    match place {
        SecretLocation::Log => "log",
        SecretLocation::Generated => "generated",
        SecretLocation::History => "history",
        SecretLocation::Private => "copy",
    }
}
