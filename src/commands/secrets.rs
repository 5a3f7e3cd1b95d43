//! `doctor --secrets` and `forget --secrets`: secrets that stand where none should.
//!
//! Kinds, counts, and places are told, and never a value.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Serialize;

use super::{
    compact::refuse_reader,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::{
    compaction::{
        self,
        redact::{self, Finding, Place, Redacted},
    },
    store::lineage::Lineage,
};

/// What is to be done about what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// It is told.
    Tell,
    /// It is taken out of generated files; the history keeps what they were.
    Redact,
    /// It is taken out of the history and of copies, too.
    Purge,
}

/// How a deed is to be done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub(super) deed: Deed,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
    /// The verb as a person types it, for what to try next.
    pub(super) verb: &'static str,
}

/// What `--json` prints; a document of `schema/secrets.schema.json`.
#[derive(Debug, Serialize)]
struct Report {
    /// Whether no secret stands where it would be served.
    ok: bool,
    kinds: Vec<KindReport>,
    findings: Vec<FindingReport>,
    /// Files that were written anew.
    files: Vec<String>,
    /// Versions of which the history keeps other bytes now.
    versions: usize,
    /// Copies that were removed.
    copies: Vec<String>,
}

#[derive(Debug, Serialize)]
struct KindReport {
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
struct FindingReport {
    place: &'static str,
    path: String,
    /// The line; of a version its number.
    at: u64,
    kind: String,
}

/// More of a list than this is only counted, unless `--verbose`.
const SHOWN_MAX: usize = 20;

pub(super) fn run(
    call: &Call,
    root: &Root,
    asked: Asked,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let found = look(root)?;
    let leaks = found.iter().filter(|it| is_leak(it)).count();
    if asked.deed == Deed::Tell || asked.dry_run || leaks == 0 {
        show(&found, &Redacted::default(), asked, ui);
        let told = asked.deed == Deed::Tell && leaks > 0;
        return Ok(if told { Kind::Job.exit_code().into() } else { ExitCode::SUCCESS });
    }
    if !asked.yes {
        if !ui.is_json() {
            show(&found, &Redacted::default(), asked, ui);
        }
        let question = match asked.deed {
            Deed::Purge => "Take them out of files, history, and copies? It cannot be undone.",
            _ => "Take them out of the generated files?",
        };
        match ui.ask(question) {
            Some(true) => {}
            Some(false) => {
                ui.note("nothing was changed");
                return Ok(ExitCode::SUCCESS);
            }
            None => {
                return Err(CommandError::new(
                    Kind::Usage,
                    "nothing was changed: nobody can be asked here",
                )
                .hint(format!("{} --yes", asked.verb))
                .hint(format!("{} --dry-run", asked.verb)));
            }
        }
    }
    refuse_reader(call, root)?;
    let engine = root.engine(call)?;
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let redacted = compactor.redact(asked.deed == Deed::Purge)?;
    let left = look(root)?;
    show(&left, &redacted, asked, ui);
    // What is left in the history is what was asked to stay there.
    let is_left =
        |it: &Finding| is_leak(it) && (asked.deed == Deed::Purge || it.place == Place::Derived);
    Ok(if left.iter().any(is_left) { Kind::Job.exit_code().into() } else { ExitCode::SUCCESS })
}

fn look(root: &Root) -> Result<Vec<Finding>, CommandError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::peek(&root.vault, lineage.as_ref())?;
    Ok(redact::survey(&root.vault, &view, lineage.as_ref())?)
}

/// Returns whether it stands where it should not.
fn is_leak(finding: &Finding) -> bool {
    finding.place != Place::Log && finding.is_taken_out
}

fn show(found: &[Finding], redacted: &Redacted, asked: Asked, ui: &Ui) {
    let mut kinds: BTreeMap<&str, KindReport> = BTreeMap::new();
    for it in found {
        let kind = kinds.entry(&it.kind).or_insert_with(|| KindReport {
            kind: it.kind.clone(),
            personal: it.is_personal,
            logs: 0,
            derived: 0,
            history: 0,
            copies: 0,
        });
        match it.place {
            Place::Log => kind.logs += 1,
            Place::Derived => kind.derived += 1,
            Place::History => kind.history += 1,
            Place::Private => kind.copies += 1,
        }
    }
    let leaks: Vec<&Finding> = found.iter().filter(|it| is_leak(it)).collect();
    if ui.is_json() {
        let findings = found.iter().map(|it| FindingReport {
            place: name(it.place),
            path: it.path.clone(),
            at: it.at,
            kind: it.kind.clone(),
        });
        ui.json(&Report {
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
        ui.good(format!("{path}: secrets replaced by marks"));
    }
    if redacted.versions > 0 {
        ui.good(format!("{} kept versions now hold marks", redacted.versions));
    }
    for path in &redacted.copies {
        ui.good(format!("{path} removed"));
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
        let at = match (it.place, it.at) {
            (Place::History, version) => format!("version {version}"),
            (_, 0) => "name".to_owned(),
            (_, line) => line.to_string(),
        };
        ui.data(format!("{}:{at}  {} ({})", it.path, it.kind, name(it.place)));
    }
    if leaks.len() > most {
        ui.note(format!("and {} more; --verbose names all", leaks.len() - most));
    }
    match (leaks.is_empty(), asked.deed) {
        (true, _) => ui.good("no secret stands outside of the logs"),
        (false, Deed::Tell) => {
            ui.note("take them out of the generated files: `memoird doctor --secrets --repair`");
            ui.note("and out of the history and copies: `memoird forget --secrets`");
        }
        (false, _) => {}
    }
}

fn name(place: Place) -> &'static str {
    match place {
        Place::Log => "log",
        Place::Derived => "generated",
        Place::History => "history",
        Place::Private => "copy",
    }
}
