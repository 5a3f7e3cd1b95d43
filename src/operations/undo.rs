//! Undoes runs: restores the files that they wrote.

use chrono_tz::Tz;

use super::{
    error::{CommandError, CommandErrorKind, CommandResult},
    workspace::{Invocation, MemoryRoot, require_writer},
};
use crate::{
    compaction::{
        self, CompactionError,
        undo::{
            UndoFile, UndoOutcome, UndoPlan, UndoRequest,
            error::{DependentRun, UndoError},
            preview::UndoPreview,
        },
    },
    store::{
        db::lineage::{
            Lineage,
            jobs::{RunId, RunRow},
        },
        fs::vault::VaultError,
    },
};

/// Returns what an undo would do, and the request to do it: an interrupted undo continues with its original one.
pub(crate) fn plan_undo(
    call: &Invocation,
    root: &MemoryRoot,
    request: UndoRequest,
) -> CommandResult<(UndoRequest, UndoPlan)> {
    let zone = root.settings.zone.name.0;
    let engine = root.engine(call)?;
    let nothing = || command_error(UndoError::NothingToUndo, zone);
    let lineage = Lineage::open_existing(&root.vault.layout().database())?.ok_or_else(nothing)?;
    let view = compaction::read_snapshot(&root.vault, Some(&lineage))?;
    view.refuse_damaged(|_| true)?;
    let preview = UndoPreview {
        vault: &root.vault,
        lineage: &lineage,
        view: &view,
        settings: &root.settings,
        engine: engine.id(),
        now: call.now,
    };
    let request = preview.resolve_request(request)?;
    let plan = preview.plan(request).map_err(|error| command_error(error, zone))?;
    Ok((request, plan))
}

/// Undoes exactly the runs that were shown, oldest last, whatever was written meanwhile. Returns the number of the
/// undoing run and what it did.
pub(crate) fn undo_runs(
    call: &Invocation,
    root: &MemoryRoot,
    request: UndoRequest,
    runs: &[RunId],
) -> CommandResult<(RunId, UndoPlan)> {
    require_writer(call, root)?;
    let zone = root.settings.zone.name.0;
    let engine = root.engine(call)?;
    let request = UndoRequest { run: runs.last().copied(), ..request };
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    compactor.undo(request, runs).map_err(|error| command_error(error, zone))
}

/// Says what happens to a file: `restored to version 7`, `kept: …`.
pub(crate) fn describe_outcome(file: &UndoFile) -> String {
    let reason = file.reason.as_deref().unwrap_or_default();
    match file.outcome {
        UndoOutcome::Restored | UndoOutcome::Unchanged => {
            let mut text = match file.version {
                Some(version) => format!("restored to version {}", version.0),
                None => "removed".to_owned(),
            };
            if file.outcome == UndoOutcome::Unchanged {
                text = format!("unchanged ({text})");
            }
            if file.citations_updated {
                text.push_str(", with citations of the current lines");
            }
            if reason.is_empty() { text } else { format!("{text}: {reason}") }
        }
        UndoOutcome::Removed => "removed; its text stays in the history".to_owned(),
        UndoOutcome::Kept => format!("kept: {reason}"),
        UndoOutcome::Lost => reason.to_owned(),
    }
}

/// Describes runs: `run 7 (2026-04-13 09:00, compact)`.
pub(crate) fn run_names(runs: &[RunRow], zone: Tz) -> String {
    let one = |it: &RunRow| {
        let at = it.started.with_timezone(&zone).format("%Y-%m-%d %H:%M");
        format!("run {} ({at}, {})", it.id, it.trigger)
    };
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How many files of a dependent run are named.
const NAMED_MAX: usize = 2;

fn describe_later_run(later: &DependentRun, zone: Tz) -> String {
    let named = run_names(std::slice::from_ref(&later.run), zone);
    let paths: Vec<&str> = later.paths.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = match later.paths.len() - paths.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{named}: {}{more}", paths.join(", "))
}

fn command_error(error: UndoError, zone: Tz) -> CommandError {
    let usage = |error: UndoError| CommandError::usage(error);
    match error {
        UndoError::Compaction(error) => error.into(),
        UndoError::Interrupted { run, with_later, ref source, .. } => {
            let kind = match source.as_ref() {
                UndoError::Compaction(CompactionError::Vault(it)) if it.is_write_failure() => {
                    CommandErrorKind::CannotWrite
                }
                UndoError::Compaction(CompactionError::Lineage(it)) if it.is_write_failure() => {
                    CommandErrorKind::CannotWrite
                }
                UndoError::Compaction(CompactionError::Vault(VaultError::Changed { .. })) => {
                    CommandErrorKind::Busy
                }
                _ => CommandErrorKind::Data,
            };
            let later = if with_later { " --with-later" } else { "" };
            CommandError::new(kind, error)
                .hint(format!("fix the cause, then continue: memoird undo {run}{later}"))
        }
        UndoError::HasDependents { run, later } => {
            let runs: Vec<String> = later.iter().map(|it| describe_later_run(it, zone)).collect();
            let what = format!("later runs depend on run {run}: {}", runs.join("; "));
            CommandError::usage(what).hint(format!("memoird undo {run} --with-later"))
        }
        UndoError::UnknownRun { run, known } => {
            let known: Vec<String> = known.iter().rev().take(5).map(ToString::to_string).collect();
            let hint = if known.is_empty() {
                "no run has written anything yet".to_owned()
            } else {
                format!("the last runs that can be undone: {}", known.join(", "))
            };
            usage(UndoError::UnknownRun { run, known: Vec::new() }).hint(hint)
        }
        UndoError::ReviewOnly { run, before } => {
            let older = before.map(|it| format!("; to undo the run before it: memoird undo {it}"));
            let hint = format!(
                "memoird review list --decided, then memoird review reopen ID{}",
                older.unwrap_or_default()
            );
            usage(UndoError::ReviewOnly { run, before }).hint(hint)
        }
        UndoError::AlreadyUndone { run, by } => {
            usage(UndoError::AlreadyUndone { run, by }).hint(format!("memoird undo {by}"))
        }
        error @ UndoError::ChangedSinceShown => {
            CommandError::new(CommandErrorKind::Busy, error).hint("run the command again")
        }
        error @ UndoError::NoFileRestorable { .. } => CommandError::data(error),
        error @ (UndoError::IsForget { .. }
        | UndoError::BeforeForget { .. }
        | UndoError::NoFilesWritten { .. }) => usage(error)
            .hint("`memoird history` lists the runs")
            .hint("`memoird undo RUN` undoes another one"),
        error @ UndoError::IsRepair { .. } => {
            usage(error).hint("the replaced files are kept in .memoird/quarantine")
        }
        error => usage(error).hint("`memoird history` lists the runs"),
    }
}
