//! Runs all jobs that are due.

use std::time::Duration;

use super::{
    error::{CommandError, CommandResult},
    run_lock::wait_for_run_lock,
    run_reporter::RunReporter,
    workspace::{Invocation, MemoryRoot, require_writer},
};
use crate::{
    compaction::{
        CompactionError, Compactor, RunOutcome,
        integrity::rebuild::{self, CheckDepth, DatabaseRecovery},
        plan::{Selection, WaitCause},
    },
    engine::Engine,
    recall::search,
};

/// Runs what is due, and reports its progress.
pub(crate) fn compact_due(
    call: &Invocation,
    root: &MemoryRoot,
    engine: &dyn Engine,
    selection: &Selection,
    reporter: &dyn RunReporter,
) -> CommandResult<RunOutcome> {
    let clock = call.clock();
    let mut report_recovery = |recovery: &DatabaseRecovery| reporter.warn(&recovery.to_string());
    Ok(rebuild::with_database(
        &root.vault,
        CheckDepth::Quick,
        call.now,
        &mut report_recovery,
        |lineage, recovery| {
            let mut compactor = root.compactor(lineage, engine, &clock);
            if let Some(recovery) = recovery {
                compactor.rebuild_recovered(recovery, call.now)?;
            }
            run_compaction(&mut compactor, "compact", selection, reporter)
        },
    )?)
}

/// Waits for other processes and runs all that is due. Replies to a batch and vectors are left to the daemon or the next
/// `memoird compact`.
pub(crate) fn compact_all(
    call: &Invocation,
    root: &MemoryRoot,
    reporter: &dyn RunReporter,
) -> CommandResult<RunOutcome> {
    require_writer(call, root)?;
    root.require_memory_folder()?;
    wait_for_run_lock(root, reporter)?;
    let engine = root.engine(call)?;
    let outcome = compact_due(call, root, engine.as_ref(), &Selection::default(), reporter)?;
    // If this fails, the next search indexes the files or reports the error.
    drop(search::update_index(&root.vault, &outcome.snapshot.inventory));
    Ok(outcome)
}

/// Runs what is due, then again for logs that were changed moments ago, as after a copy.
///
/// Gives up after a few rounds, because a log may be written to all day.
pub(crate) fn run_compaction(
    compactor: &mut Compactor<'_>,
    trigger: &str,
    selection: &Selection,
    reporter: &dyn RunReporter,
) -> Result<RunOutcome, CompactionError> {
    const ROUNDS_MAX: u32 = 3;
    let quiet = compactor.context.settings.settings.compaction.quiet.as_duration();
    let mut progress = reporter.progress();
    let mut outcome = compactor.compact(trigger, selection, progress.as_mut())?;
    for _ in 0..ROUNDS_MAX {
        let mut waiting = outcome.plan.waiting.iter();
        let Some(written) = waiting.find(|it| matches!(it.cause, WaitCause::BeingWritten(_)))
        else {
            break;
        };
        reporter.detail(&format!("{}; waiting", written.cause));
        std::thread::sleep(quiet.min(QUIET_WAIT_MAX));
        let RunOutcome { report, snapshot: view, plan } =
            compactor.compact(trigger, selection, progress.as_mut())?;
        outcome.report.merge(report);
        (outcome.snapshot, outcome.plan) = (view, plan);
    }
    Ok(outcome)
}

/// The longest wait for one round, whatever `compaction.quiet` says: a person is waiting.
const QUIET_WAIT_MAX: Duration = Duration::from_secs(5);

impl From<CompactionError> for CommandError {
    fn from(error: CompactionError) -> Self {
        match error {
            CompactionError::Vault(error) => error.into(),
            CompactionError::Lineage(error) => error.into(),
            CompactionError::Lock(error) => error.into(),
            CompactionError::NoRandomness(_) | CompactionError::ForgetUnfinished(_) => {
                Self::cannot_write(error)
            }
            CompactionError::FolderMissing { .. } => {
                Self::data(error).hint("once the folder is mounted or moved back: memoird compact")
            }
            CompactionError::FilesVanished(_) => Self::data(error)
                .hint("once the files are restored: memoird compact")
                .hint("if they are gone for good: `memoird compact --accept-missing`"),
            CompactionError::Damaged { why, .. } => {
                Self::data(error).hints_from(why.hints().iter().copied())
            }
            CompactionError::WrongClock { last, .. } => {
                let accepts = "if it is right: `memoird compact --accept-missing`";
                Self::data(error)
                    .hint("once the clock is right: memoird compact")
                    .hints_from(last.map(|_| accepts))
            }
            CompactionError::DecisionsUnreadable { .. } => Self::data(error)
                .hint("`memoird doctor --repair` restores it as it was after the last run")
                .hint("to accept it as it is: `memoird compact --accept-missing`"),
            CompactionError::NoSource { .. } => Self::usage(error)
                .hint("restore its logs first")
                .hint("`memoird status` lists the missing ones"),
        }
    }
}
