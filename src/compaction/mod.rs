//! Compaction: what is due is planned, drafted, checked, written, and recorded.
//!
//! ```text
//! vault (scan) → plan → engine (draft) → grounding → vault (write) → lineage (record)
//! ```
//!
//! [`run`] holds the order of a run as a list of steps. Each step is a small type that borrows the
//! [`context`] of the run. A run does one tier after the other and reads the files again before each,
//! since each tier is derived from what the one before wrote.
//!
//! The steps:
//!
//! - [`journal`]: writes files with their records, and finishes what a crash interrupted.
//! - [`plan`]: what is due; pure.
//! - [`reconcile`]: records what people did since the last run.
//! - [`memories`]: typed memories from days, and `MEMORY.md`.
//! - [`summary`]: weeks and months.
//! - [`wisdom`]: `WISDOM.md` from months.
//! - [`archive`]: moves old logs away.
//! - [`grounding`]: checks what an engine drafts against the cited lines; pure.
//! - [`proposals`]: drafts and changes that wait for a person.
//!
//! What people ask for:
//!
//! - [`correct`]: other words for an item.
//! - [`forget`]: removes lines and all that derives from them, for good.
//! - [`undo`]: undoes runs.
//! - [`review`]: the queue of what waits, and the verdicts.
//! - [`redact`]: removes stored secrets.
//! - [`integrity`]: checks, repair, and the database rebuilt from the files.
//! - [`adopt`]: takes back files whose records are lost.
//! - [`upgrade`]: writes files of an older form in the present one.
//! - [`preview`]: what a model would be asked.
//!
//! They use [`snapshot`] (files and record at one moment), [`prepare`] (what comes before any change),
//! [`up_to_date`] (whether a run would find nothing to do), [`report`], [`error`] and [`safety_copies`].

pub(crate) mod adopt;
pub(crate) mod archive;
pub(crate) mod cited_records;
mod context;
pub(crate) mod correct;
mod error;
pub(crate) mod forget;
pub mod grounding;
pub(crate) mod integrity;
pub(crate) mod journal;
mod memories;
pub(crate) mod plan;
mod prepare;
pub(crate) mod preview;
pub(crate) mod proposals;
pub(crate) mod reconcile;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod review;
mod run;
pub(crate) mod safety_copies;
pub(crate) mod snapshot;
pub(crate) mod summary;
#[cfg(test)]
mod tests;
pub(crate) mod undo;
pub(crate) mod up_to_date;
pub(crate) mod upgrade;
pub(crate) mod wisdom;

use chrono::{DateTime, Utc};

pub(crate) use self::context::RunContext;
use self::{
    adopt::{Adopter, AdoptionPlan},
    forget::{ForgetOutcome, Forgetter, request::ForgetRequest},
    integrity::{
        rebuild::{PendingRebuild, RebuildResult, Rebuilder},
        repair::{RepairStep, Repairer},
    },
    plan::Selection,
    prepare::RunPreparation,
    run::CompactionRun,
    undo::{UndoPlan, UndoRequest, Undoer, error::UndoError},
    upgrade::{UpgradePlan, Upgrader},
};
pub(crate) use self::{
    error::{CompactionError, VanishedFiles},
    report::{RunObserver, RunOutcome},
    snapshot::{RootSnapshot, plan_snapshot, read_snapshot, read_snapshot_with_receipts},
};
use crate::store::db::lineage::jobs::RunId;

/// Everything that changes a root.
pub(crate) struct Compactor<'a> {
    /// What it works on and with.
    pub(crate) context: RunContext<'a>,
}

impl<'a> Compactor<'a> {
    pub(crate) fn new(context: RunContext<'a>) -> Self {
        Self { context }
    }

    /// Does all that is due and selected. After an error, finished jobs stay finished.
    pub(crate) fn compact(
        &mut self,
        trigger: &str,
        selection: &Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        CompactionRun::new(&mut self.context).compact(trigger, selection, watcher)
    }

    /// Records what people did to the files since the last run, and makes nothing.
    pub(crate) fn reconcile(
        &mut self,
        trigger: &str,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        RunPreparation::new(&mut self.context).reconcile(trigger, now)
    }

    /// Forgets lines and what derives from them, for good. The next run writes the derived files
    /// again; after an error, it also continues with the rest.
    pub(crate) fn forget(
        &mut self,
        request: &ForgetRequest,
    ) -> Result<ForgetOutcome, CompactionError> {
        Forgetter::new(&mut self.context).forget(request)
    }

    /// Undoes runs. Returns the number of the undoing run and what was done. `expected` are the
    /// runs that a person was shown. After an error, the same call continues.
    pub(crate) fn undo(
        &mut self,
        request: UndoRequest,
        expected: &[RunId],
    ) -> Result<(RunId, UndoPlan), UndoError> {
        Undoer::new(&mut self.context).undo(request, expected)
    }

    /// Executes the steps of a repair and returns what was done, in the past tense. Repeating them
    /// after an error does no harm.
    pub(crate) fn repair(
        &mut self,
        steps: &[RepairStep],
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        Repairer::new(&mut self.context).repair(steps, now)
    }

    /// Records files and logs again, all or nothing. Runs and receipts stay.
    ///
    /// What people did since the last run is recorded before: the old records show it.
    pub(crate) fn rebuild(&mut self, now: DateTime<Utc>) -> Result<RebuildResult, CompactionError> {
        let _lock = self.context.acquire_run_lock(&|| false)?;
        RunPreparation::new(&mut self.context).reconcile_locked("rebuild", now)?;
        Rebuilder::new(&mut self.context).rebuild_records(None, now)
    }

    /// Like [`Self::rebuild`], for a database that was created again: without records there is nothing to
    /// reconcile. It is a run, so that the history shows the repair.
    pub(crate) fn rebuild_recovered(
        &mut self,
        pending: PendingRebuild,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        Rebuilder::new(&mut self.context).rebuild_recovered(pending, now)
    }

    /// Takes back files whose records are lost, as a run; returns its number, if there was anything.
    pub(crate) fn adopt(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(Option<RunId>, AdoptionPlan), CompactionError> {
        Adopter::new(&mut self.context).adopt(now)
    }

    /// Writes files of an older form in the present one, as a run; returns its number, if there were any.
    pub(crate) fn upgrade(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(Option<RunId>, UpgradePlan), CompactionError> {
        Upgrader::new(&mut self.context).upgrade(now)
    }
}
