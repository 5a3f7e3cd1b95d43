//! `doctor --secrets` and `forget --secrets`: find and remove secrets outside of logs.
//!
//! Shows kinds, counts and locations, but never a value.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Serialize;

use super::{error_report::exit_code_if_failed, ui::Ui};
use crate::{
    compaction::{
        self,
        redact::{self, RedactionReport, SecretLocation, StoredSecret},
    },
    operations::{
        error::{CommandError, CommandResult},
        workspace::{Invocation, MemoryRoot, require_writer},
    },
    store::db::lineage::Lineage,
};

/// What to do with the secrets found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SecretsAction {
    List,
    /// Masks them in generated files; the history keeps the old versions.
    Redact,
    /// Also masks them in the history and removes copies.
    Purge,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SecretsRequest {
    pub(super) action: SecretsAction,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
    /// The command line, for hints.
    pub(super) command: &'static str,
}

/// What `--json` prints; a document of `schema/secrets.schema.json`.
#[derive(Debug, Serialize)]
struct SecretsReport {
    /// Whether no secret is outside the logs.
    ok: bool,
    kinds: Vec<SecretKindCounts>,
    findings: Vec<SecretFinding>,
    /// Files in which secrets were masked.
    files: Vec<String>,
    /// How many versions in the history were masked.
    versions: usize,
    copies: Vec<String>,
}

#[derive(Debug, Serialize)]
struct SecretKindCounts {
    kind: String,
    personal: bool,
    /// In daily logs, where the sanitized view masks them.
    logs: usize,
    /// In generated files.
    derived: usize,
    /// In versions of generated files.
    history: usize,
    /// In copies that a repair saved.
    copies: usize,
}

#[derive(Debug, Serialize)]
struct SecretFinding {
    place: &'static str,
    path: String,
    /// The line, or the number of the version.
    at: u64,
    kind: String,
}

/// How many entries of a list are shown without `--verbose`.
const SHOWN_MAX: usize = 20;

pub(super) fn run(
    call: &Invocation,
    root: &MemoryRoot,
    request: SecretsRequest,
    ui: &Ui,
) -> CommandResult {
    let found = find_secrets(root)?;
    let leaks = found.iter().filter(|it| is_leak(it)).count();
    if request.action == SecretsAction::List || request.dry_run || leaks == 0 {
        show(&found, &RedactionReport::default(), request.action, ui);
        let leaked = request.action == SecretsAction::List && leaks > 0;
        return Ok(exit_code_if_failed(leaked));
    }
    if !request.yes {
        if !ui.is_json() {
            show(&found, &RedactionReport::default(), request.action, ui);
        }
        let question = match request.action {
            SecretsAction::Purge => {
                "Remove them from files, history, and copies? This cannot be undone."
            }
            _ => "Mask them in the generated files?",
        };
        let agreed = ui.confirm_or(question, || {
            CommandError::usage(
                "nothing was changed: cannot ask for confirmation without a terminal",
            )
            .hint(format!("{} --yes", request.command))
            .hint(format!("{} --dry-run", request.command))
        })?;
        if !agreed {
            return Ok(ExitCode::SUCCESS);
        }
    }
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    #[cfg(feature = "fleet")]
    let stores = match request.action {
        SecretsAction::Purge => super::bundle::note_forgetting(root)?,
        _ => Vec::new(),
    };
    let redacted = compactor.redact(request.action == SecretsAction::Purge)?;
    #[cfg(feature = "fleet")]
    drop(lineage);
    let left = find_secrets(root)?;
    show(&left, &redacted, request.action, ui);
    // Only a purge removes secrets from the history.
    let is_left = |it: &StoredSecret| {
        is_leak(it)
            && (request.action == SecretsAction::Purge || it.location == SecretLocation::Generated)
    };
    let is_any_left = left.iter().any(is_left);
    #[cfg(feature = "fleet")]
    let is_any_left = !super::bundle::remove_forgotten(call, root, &stores, ui) || is_any_left;
    Ok(exit_code_if_failed(is_any_left))
}

fn find_secrets(root: &MemoryRoot) -> CommandResult<Vec<StoredSecret>> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    Ok(redact::find_secrets(&root.vault, &view, lineage.as_ref())?)
}

/// Returns whether a secret is outside the logs.
fn is_leak(finding: &StoredSecret) -> bool {
    finding.location != SecretLocation::Log && finding.is_redacted
}

fn show(found: &[StoredSecret], redacted: &RedactionReport, action: SecretsAction, ui: &Ui) {
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
        ui.success(format!("masked secrets in {path}"));
    }
    if redacted.versions > 0 {
        ui.success(format!("masked secrets in {} kept versions", redacted.versions));
    }
    for path in &redacted.copies {
        ui.success(format!("removed {path}"));
    }
    if found.is_empty() {
        ui.note("no secrets or personal data found");
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
    let in_logs = found.iter().filter(|it| it.location == SecretLocation::Log);
    let places: Vec<&StoredSecret> = leaks.iter().copied().chain(in_logs).collect();
    for it in places.iter().take(most) {
        let at = match (it.location, it.at) {
            (SecretLocation::History, version) => format!("version {version}"),
            (_, 0) => "name".to_owned(),
            (_, line) => line.to_string(),
        };
        ui.data(format!("{}:{at}  {} ({})", it.path, it.kind, place_name(it.location)));
    }
    if places.len() > most {
        ui.note(format!("and {} more; --verbose lists all", places.len() - most));
    }
    match (leaks.is_empty(), action) {
        (true, _) => ui.success("no secrets outside the logs"),
        (false, SecretsAction::List) => {
            ui.note("to mask them in the generated files: `memoird doctor --secrets --repair`");
            ui.note("to remove them from history and copies too: `memoird forget --secrets`");
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
