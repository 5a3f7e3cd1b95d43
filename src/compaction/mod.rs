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
//! - [`preview`]: what a model would be asked.
//!
//! They use [`snapshot`] (files and record at one moment), [`prepare`] (what comes before any change),
//! [`up_to_date`] (whether a run would find nothing to do), [`report`], [`error`] and [`safety_copies`].

pub mod archive;
mod context;
pub mod correct;
mod error;
pub mod forget;
pub mod grounding;
pub mod integrity;
pub mod journal;
mod memories;
pub mod plan;
mod prepare;
pub mod preview;
pub mod proposals;
pub mod reconcile;
pub mod redact;
pub mod report;
pub mod review;
mod run;
mod safety_copies;
mod snapshot;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod undo;
pub mod up_to_date;
mod wisdom;

use chrono::{DateTime, Utc};

pub(crate) use self::context::RunContext;
use self::{
    correct::{CorrectError, CorrectionDraft, CorrectionRequest, Corrector},
    forget::{ForgetOutcome, Forgetter, targets::ForgetRequest},
    integrity::{
        rebuild::{PendingRebuild, RebuildResult, Rebuilder},
        repair::{RepairStep, Repairer},
        vanished_files::refuse_if_vanished,
    },
    plan::{CompactionPlan, Selection},
    prepare::RunPreparation,
    redact::{RedactionReport, Redactor},
    review::{QuarantinedLine, ReviewError, ReviewProposal, Reviewer, UserReplacement},
    run::CompactionRun,
    undo::{UndoPlan, UndoRequest, Undoer, error::UndoError},
};
pub use self::{
    error::{CompactionError, VanishedFiles},
    report::{RunObserver, RunOutcome},
    snapshot::{RootSnapshot, plan_snapshot, read_snapshot, read_snapshot_with_receipts},
};
use crate::{memory::decision::Verdict, store::db::lineage::jobs::RunId};

/// Everything that changes a root.
pub struct Compactor<'a> {
    /// What it works on and with.
    pub(crate) context: RunContext<'a>,
}

impl<'a> Compactor<'a> {
    pub(crate) fn new(context: RunContext<'a>) -> Self {
        Self { context }
    }

    /// Does all that is due and selected.
    ///
    /// # Errors
    ///
    /// Returns what ended the run; each job that was done is done.
    pub fn compact(
        &mut self,
        trigger: &str,
        selection: &Selection,
        watcher: &mut dyn RunObserver,
    ) -> Result<RunOutcome, CompactionError> {
        CompactionRun::new(&mut self.context).compact(trigger, selection, watcher)
    }

    /// Records what people did to the files since the last run, and makes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed, or nothing can be written.
    pub fn reconcile(&mut self, trigger: &str, now: DateTime<Utc>) -> Result<(), CompactionError> {
        RunPreparation::new(&mut self.context).reconcile(trigger, now)
    }

    /// Reads the files and the record.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be listed or the database cannot be read.
    pub fn take_snapshot(&mut self, now: DateTime<Utc>) -> Result<RootSnapshot, CompactionError> {
        self.context.take_snapshot(now)
    }

    /// Plans what is due.
    pub fn plan(
        &self,
        view: &RootSnapshot,
        selection: &Selection,
        now: DateTime<Utc>,
    ) -> CompactionPlan {
        self.context.plan(view, selection, now)
    }

    /// Returns an error before missing files count as deleted by a person.
    ///
    /// # Errors
    ///
    /// Returns [`CompactionError::FolderMissing`] where the whole folder is missing, which nobody can
    /// accept, and [`CompactionError::FilesVanished`] where too many of its files are missing, unless
    /// that was `accepted`.
    pub fn refuse_if_vanished(&self, accepted: bool) -> Result<(), CompactionError> {
        refuse_if_vanished(&self.context, accepted)
    }

    /// Corrects an item, and, if `rewrite`, what is made from it and is due by that.
    ///
    /// # Errors
    ///
    /// Returns why nothing was corrected, or what stopped the jobs above it.
    pub fn correct(
        &mut self,
        request: &CorrectionRequest<'_>,
        rewrite: bool,
        watcher: &mut dyn RunObserver,
    ) -> Result<(CorrectionDraft, RunOutcome), CorrectError> {
        Corrector::new(&mut self.context).correct(request, rewrite, watcher)
    }

    /// Forgets lines and what derives from them, for good. What else was made of their files is made
    /// again by the next run.
    ///
    /// # Errors
    ///
    /// Returns what stopped it. From the first step on the next run goes on where it stopped.
    pub fn forget(&mut self, request: &ForgetRequest) -> Result<ForgetOutcome, CompactionError> {
        Forgetter::new(&mut self.context).forget(request)
    }

    /// Takes runs back, and returns what was done with the number of the run that did it. `expected`
    /// are the runs that a person was shown.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be done; the same call finishes what was begun.
    pub fn undo(
        &mut self,
        request: UndoRequest,
        expected: &[RunId],
    ) -> Result<(RunId, UndoPlan), UndoError> {
        Undoer::new(&mut self.context).undo(request, expected)
    }

    /// Makes changes that a person accepted, each as proposed or in their own words. It is a run, and
    /// `undo` takes it back.
    ///
    /// # Errors
    ///
    /// Returns why nothing was changed.
    pub fn accept_changes(
        &mut self,
        changes: &[(ReviewProposal, Option<UserReplacement>)],
    ) -> Result<(), ReviewError> {
        Reviewer::new(&mut self.context).accept_changes(changes)
    }

    /// Records that a person refused changes.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn refuse_changes(&mut self, changes: &[ReviewProposal]) -> Result<(), CompactionError> {
        Reviewer::new(&mut self.context).refuse_changes(changes)
    }

    /// Takes back what a person said of changes, so that they wait again.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn reopen_changes(&mut self, changes: &[ReviewProposal]) -> Result<(), ReviewError> {
        Reviewer::new(&mut self.context).reopen_changes(changes)
    }

    /// Accepts items that the checks kept out. The next run makes their files again.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn accept_items(&mut self, items: &[ReviewProposal]) -> Result<(), CompactionError> {
        Reviewer::new(&mut self.context).accept_items(items)
    }

    /// Records what a person said of quarantined lines; `None` takes back what they said before.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn review_lines(
        &mut self,
        lines: &[QuarantinedLine],
        verdict: Option<Verdict>,
    ) -> Result<(), CompactionError> {
        Reviewer::new(&mut self.context).review_lines(lines, verdict)
    }

    /// Removes secrets from the generated files and, with `purge`, from the history and the copies.
    ///
    /// # Errors
    ///
    /// Returns what ended it; what was removed stays removed, and the same call removes the rest.
    pub fn redact(&mut self, purge: bool) -> Result<RedactionReport, CompactionError> {
        Redactor::new(&mut self.context).redact(purge)
    }

    /// Does the steps of a repair, and says what was done, in the past tense.
    ///
    /// # Errors
    ///
    /// Returns what stopped it; each step that was done is done, and to try again does no harm.
    pub fn repair(
        &mut self,
        steps: &[RepairStep],
        now: DateTime<Utc>,
    ) -> Result<Vec<String>, CompactionError> {
        Repairer::new(&mut self.context).repair(steps, now)
    }

    /// Replaces what is recorded of files and logs by what they say. Runs and receipts stay.
    ///
    /// What people did since the last run is recorded before: the old records show it.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be read or the database cannot be written; then
    /// nothing was replaced.
    pub fn rebuild(&mut self, now: DateTime<Utc>) -> Result<RebuildResult, CompactionError> {
        let _lock = self.context.acquire_run_lock(&|| false)?;
        RunPreparation::new(&mut self.context).reconcile_locked("rebuild", now)?;
        Rebuilder::new(&mut self.context).rebuild_records(now)
    }

    /// Like [`Self::rebuild`], for a database that was created again: without records there is nothing to
    /// reconcile. It is a run, so that the history shows the repair.
    ///
    /// # Errors
    ///
    /// Like [`Self::rebuild`].
    pub fn rebuild_recovered(
        &mut self,
        pending: PendingRebuild,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        Rebuilder::new(&mut self.context).rebuild_recovered(pending, now)
    }
}
