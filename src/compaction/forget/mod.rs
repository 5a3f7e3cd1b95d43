//! Forgetting: finds everything derived from some lines, then removes it from every tier, from the
//! history, and, on request, from the logs.
//!
//! - [`request`]: what is to be forgotten.
//! - [`targets`]: which lines and items are removed; pure.
//! - [`removal`]: the texts without them; pure.
//! - [`impact`]: everything that a request affects; changes nothing.
//! - `log_line`: what stays of a line removed from a log, for the lines below it; pure.
//! - `remove`: the changes of files, names, and decisions.
//! - [`pending`]: the progress, recorded in the private folder.
//! - [`crate::compaction::Compactor::forget`] carries out a request in this order:
//!
//! 1. The request is written to the private folder. From here on a crash only delays it: every run
//!    begins by finishing it, and each step can be repeated.
//! 2. The lines are blocked by their keyed hashes in `.decisions.jsonl`.
//! 3. Bullets, entries, and memories are removed and `MEMORY.md` is updated, without adding the old
//!    text to the history.
//! 4. On request, the lines are removed from the logs.
//! 5. Versions in the history that contain the words, or that cite a former address of a line, are
//!    purged; of a vanished log the last version stays, with the lines blank. Copies and old
//!    databases in the private folder are removed, and so are names, reasons, and proposals that
//!    contain the words.
//! 6. The request is replaced by a list, without words, of the files to write again. The database
//!    is vacuumed, so that nothing remains in its free pages.
//!
//! The next run writes the derived files again. None of this can be undone, so it does not begin
//! while a generated file may be damaged: its older versions would be purged too.

pub(crate) mod impact;
mod log_line;
pub(crate) mod pending;
pub(crate) mod removal;
mod remove;
pub(crate) mod request;
pub(crate) mod targets;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use self::{
    impact::{ForgetImpact, find_impact},
    pending::{ForgetProgress, RemainingWork, names_of},
    request::ForgetRequest,
    targets::ForgetPatterns,
};
use crate::compaction::{
    context::RunContext,
    error::CompactionError,
    integrity::{repair::Repairer, vanished_files::refuse_if_vanished},
    journal::{Journal, commit::reach_failpoint, decision_file::DecisionFile},
    plan::{CompactionPlan, WaitCause},
};
use crate::{
    memory::{address::Citation, item::Tier, period::Period},
    store::db::{lineage::LineageError, search_index::PostingsDb, vectors::VectorDb},
};

#[derive(Debug)]
pub(crate) struct ForgetOutcome {
    pub impact: ForgetImpact,
    /// Whether the database was vacuumed; otherwise the next run does it.
    pub vacuumed: bool,
}

/// Carries out what a person wants forgotten.
pub(crate) struct Forgetter<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Forgetter<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    pub(crate) fn forget(
        &mut self,
        request: &ForgetRequest,
    ) -> Result<ForgetOutcome, CompactionError> {
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        refuse_if_vanished(self.context, false)?;
        Journal::new(self.context).recover(now)?;
        // Temporary files that a crash left may contain the words.
        self.context.remove_temp_files()?;
        self.finish_forgetting(now, false)?;
        Repairer::new(self.context).take_repaired_snapshot(now)?.0.refuse_damaged(|_| true)?;
        let mut left = self.remaining_work()?;
        let impact = find_impact(self.context.vault, Some(self.context.lineage), request)?;
        // Recorded first, since after a crash the words might be found nowhere.
        left.again.extend(impact.to_rebuild.iter().copied().map(names_of));
        self.save_progress(&ForgetProgress::Remove(
            Box::new(impact.request.clone()),
            left.clone(),
        ))?;
        reach_failpoint("forget.noted")?;
        self.carry_out_forget(impact, left, now)
    }

    /// Returns whether a request is being carried out or was interrupted.
    pub(super) fn is_forgetting(&self) -> Result<bool, CompactionError> {
        Ok(matches!(self.forget_progress()?, Some(ForgetProgress::Remove(..))))
    }

    /// Finishes an interrupted request and returns the files to write again. `accepted` says that a
    /// person accepts damaged files as they are.
    pub(super) fn finish_forgetting(
        &mut self,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<BTreeSet<(Tier, Period)>, CompactionError> {
        match self.forget_progress()? {
            None => {
                // A request that was not recorded before a crash never began.
                self.context.vault.remove_private(&self.context.vault.layout().forget_state())?;
                return Ok(BTreeSet::new());
            }
            Some(ForgetProgress::Remove(request, left)) => {
                let (view, _) = Repairer::new(self.context).take_repaired_snapshot(now)?;
                view.refuse_damaged(|_| !accepted)?;
                let impact = find_impact(self.context.vault, Some(self.context.lineage), &request)?;
                self.carry_out_forget(impact, left, now)?;
            }
            Some(ForgetProgress::Rebuild(left)) if left.vacuum => {
                self.vacuum_after_forget(left)?;
            }
            Some(ForgetProgress::Rebuild(_)) => {}
        }
        Ok(self.remaining_work()?.periods())
    }

    /// Records which files are still to be written again after a run.
    pub(super) fn end_forgetting(
        &mut self,
        again: &BTreeSet<(Tier, Period)>,
        plan: &CompactionPlan,
    ) -> Result<(), CompactionError> {
        let Some(ForgetProgress::Rebuild(left)) = self.forget_progress()? else { return Ok(()) };
        let jobs = plan.jobs.iter().map(|it| (it.tier, it.period));
        let written =
            plan.waiting.iter().filter(|it| matches!(it.cause, WaitCause::BeingWritten(_)));
        let open: BTreeSet<(Tier, Period)> = jobs
            .chain(plan.due_after.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let again = again.intersection(&open).copied();
        self.save_remaining_work(&RemainingWork { again: again.map(names_of).collect(), ..left })
    }

    fn carry_out_forget(
        &mut self,
        first: ForgetImpact,
        mut left: RemainingWork,
        now: DateTime<Utc>,
    ) -> Result<ForgetOutcome, CompactionError> {
        // Leftover temporary files contain the words too; their copies are removed below.
        self.context.vault.remove_temp_files(&self.context.write_lock()?)?;
        let mut run = None;
        let run = self.context.ensure_run(&mut run, "forget", now)?;
        let decisions = DecisionFile::new(self.context).create_key()?;
        self.block_lines(&decisions, &first.request, now)?;
        // A reply that no file uses yet may quote the words.
        self.context.vault.remove_replies()?;
        reach_failpoint("forget.barred")?;
        let done = self.remove_targets(run, &first)?;
        reach_failpoint("forget.removed")?;
        {
            // The lock keeps others from adding to the history between the search and the purge.
            let lock = self.context.write_lock()?;
            // Everything found before counts, and there may be more by now.
            let mut impact = find_impact(self.context.vault, Some(self.context.lineage), &done)?;
            if !impact.vanished_lines.is_empty() {
                self.blank_vanished_lines(&impact)?;
                reach_failpoint("forget.within")?;
                impact =
                    find_impact(self.context.vault, Some(self.context.lineage), &impact.request)?;
            }
            self.context.lineage.forget_versions(&impact.versions)?;
            reach_failpoint("forget.history")?;
            self.forget_names(&lock, &decisions, &impact.request.found.names)?;
            let request = impact.request.clone();
            let patterns = ForgetPatterns::new(&request);
            self.context.lineage.forget_reasons(&|it| patterns.holds_target_words(it))?;
            let rests = |it: &Citation| request.found.now.are_cited_by(it);
            self.context.lineage.forget_proposals(&|it| patterns.holds_target_words(it), &rests)?;
            reach_failpoint("forget.names")?;
            for copy in &impact.copies {
                self.context.vault.remove_private(copy)?;
                reach_failpoint("forget.copy")?;
            }
            // The index stores words as numbers only; it is built again without them.
            PostingsDb::remove(&self.context.vault.layout().search_index());
            // A vector reveals what the words were about.
            let vault = self.context.vault;
            let lines = impact.lines.iter().chain(&impact.vanished_lines);
            let touched: BTreeSet<&str> = lines.map(|it| &it.path[..]).collect();
            VectorDb::remove_changed(&vault.layout().vectors(), &|it| {
                let found = vault.read(&it.path).ok().flatten();
                !touched.contains(&it.path[..])
                    && found.is_some_and(|found| found.stamp == it.stamp)
            });
            left.again.extend(impact.to_rebuild.iter().copied().map(names_of));
        }
        left.again.extend(first.to_rebuild.iter().copied().map(names_of));
        left.vacuum = true;
        self.save_remaining_work(&left)?;
        reach_failpoint("forget.left")?;
        let vacuumed = self.vacuum_after_forget(left)?;
        self.context.end_run(run)?;
        Ok(ForgetOutcome { impact: first, vacuumed })
    }

    fn vacuum_after_forget(&mut self, mut left: RemainingWork) -> Result<bool, CompactionError> {
        match self.context.lineage.vacuum() {
            Ok(()) => {}
            // Somebody is reading the database; the next run tries again.
            Err(LineageError::Busy { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        reach_failpoint("forget.vacuumed")?;
        left.vacuum = false;
        self.save_remaining_work(&left)?;
        Ok(true)
    }
}
