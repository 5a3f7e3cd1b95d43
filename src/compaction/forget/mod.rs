//! Forgetting: what derives from some lines is shown, and then taken out of every tier, out of the
//! history, and, where a person says so, out of the logs.
//!
//! - [`targets`]: which lines and items go, and the texts without them; pure.
//! - [`impact`]: what a wish reaches, as all stands; changes nothing.
//! - [`remove`]: what is done to files, to names, and to the record of decisions.
//! - [`pending`]: the note of what is under way.
//! - [`Compactor::forget`]: carries a wish out, in this order:
//!
//! 1. The wish is written down in the private folder. From here on a crash only delays it: every pass
//!    begins by finishing it, and each step can be done twice.
//! 2. The lines are barred by their keyed hashes in `.decisions.jsonl`.
//! 3. Bullets, entries, and memories go, and `MEMORY.md` follows; the history does not keep what stood
//!    there.
//! 4. Where wanted, the lines leave the logs.
//! 5. Kept versions that hold the words, or that cite where a line ever stood, go; of a log that is no
//!    longer there the last one stays, the lines left blank. So do copies and old databases in the
//!    private folder, and names, reasons, and proposals made of the words.
//! 6. The wish is replaced by a note, without words, of what is to be folded again; the database is
//!    written anew, so that nothing is left in its free pages.
//!
//! What stood on the lines is folded again by the next pass. Nothing of this can be undone, so none
//! of it is done while a generated file may have lost something: its older versions would go, too.

pub mod impact;
mod pending;
mod remove;
pub mod targets;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use self::{
    impact::{ForgetImpact, find_impact},
    pending::{ForgetProgress, RemainingWork, names_of},
    targets::{ForgetPatterns, ForgetRequest},
};
use super::{
    CompactionError, Compactor,
    journal::commit::reach_failpoint,
    plan::{CompactionPlan, WaitCause},
};
use crate::{
    memory::{address::Citation, item::Tier, period::Period},
    store::db::{lineage::LineageError, search_index::PostingsDb, vectors::VectorDb},
};

/// What was done.
#[derive(Debug)]
pub struct ForgetOutcome {
    /// What it was done to.
    pub impact: ForgetImpact,
    /// Whether the database was written anew; otherwise the next pass does it.
    pub vacuumed: bool,
}

impl Compactor<'_> {
    /// Forgets, for good. What stood on it is folded again by the next pass.
    ///
    /// # Errors
    ///
    /// Returns what stopped it. From the first step on the next pass goes on where it stopped.
    pub fn forget(&mut self, wish: &ForgetRequest) -> Result<ForgetOutcome, CompactionError> {
        let _alone = self.acquire_run_lock(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_vanished(false)?;
        self.recover(now)?;
        // What a crash left of a file may hold what is to go.
        self.remove_temp_files()?;
        self.finish_forgetting(now, false)?;
        self.take_repaired_snapshot(now)?.0.refuse_damaged(|_| true)?;
        let mut left = self.remaining_work()?;
        let reach = find_impact(self.vault, Some(self.lineage), wish)?;
        // Unless it is written down first, a crash could leave words that nobody knows of any more.
        left.again.extend(reach.to_rebuild.iter().copied().map(names_of));
        self.save_progress(&ForgetProgress::Remove(Box::new(reach.request.clone()), left.clone()))?;
        reach_failpoint("forget.noted")?;
        self.carry_out_forget(reach, left, now)
    }

    /// Returns whether a wish is being carried out, or was cut off.
    pub(super) fn is_forgetting(&self) -> Result<bool, CompactionError> {
        Ok(matches!(self.forget_progress()?, Some(ForgetProgress::Remove(..))))
    }

    /// Finishes what a crash cut off, and returns what is to be made again. `accepted` says that a
    /// person takes held files as they are.
    pub(super) fn finish_forgetting(
        &mut self,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<BTreeSet<(Tier, Period)>, CompactionError> {
        match self.forget_progress()? {
            None => {
                // A wish that a crash kept from being noted was never begun.
                self.vault.remove_private(&self.vault.layout().forget_state())?;
                return Ok(BTreeSet::new());
            }
            Some(ForgetProgress::Remove(wish, left)) => {
                let (view, _) = self.take_repaired_snapshot(now)?;
                view.refuse_damaged(|_| !accepted)?;
                let reach = find_impact(self.vault, Some(self.lineage), &wish)?;
                self.carry_out_forget(reach, left, now)?;
            }
            Some(ForgetProgress::Refold(left)) if left.vacuum => {
                self.vacuum_after_forget(left)?;
            }
            Some(ForgetProgress::Refold(_)) => {}
        }
        Ok(self.remaining_work()?.periods())
    }

    /// Takes note of what is still to be made again after a pass.
    pub(super) fn end_forgetting(
        &mut self,
        again: &BTreeSet<(Tier, Period)>,
        plan: &CompactionPlan,
    ) -> Result<(), CompactionError> {
        let Some(ForgetProgress::Refold(left)) = self.forget_progress()? else { return Ok(()) };
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
        // A temporary file that was left holds the words, too; the copy that is kept of it goes below.
        self.vault.remove_temp_files(&self.write_lock()?)?;
        let mut run = None;
        let run = self.ensure_run(&mut run, "forget", now)?;
        let decisions = self.create_decisions_key()?;
        self.block_lines(&decisions, &first.request, now)?;
        // A reply that no file was made of yet may quote what is to go.
        self.vault.remove_replies()?;
        reach_failpoint("forget.barred")?;
        let done = self.remove_targets(run, &first)?;
        reach_failpoint("forget.removed")?;
        {
            // Nobody adds to the history between what is found there and what goes.
            let lock = self.write_lock()?;
            // What was found before is known for certain; what is there now may be more.
            let mut reach = find_impact(self.vault, Some(self.lineage), &done)?;
            if !reach.vanished_lines.is_empty() {
                self.blank_vanished_lines(&reach)?;
                reach_failpoint("forget.within")?;
                reach = find_impact(self.vault, Some(self.lineage), &reach.request)?;
            }
            self.lineage.forget_versions(&reach.versions)?;
            reach_failpoint("forget.history")?;
            self.forget_names(&lock, &decisions, &reach.request.found.names)?;
            let wish = reach.request.clone();
            let needles = ForgetPatterns::new(&wish);
            self.lineage.forget_reasons(&|it| needles.holds_target_words(it))?;
            let rests = |it: &Citation| wish.found.now.are_cited_by(it);
            self.lineage.forget_proposals(&|it| needles.holds_target_words(it), &rests)?;
            reach_failpoint("forget.names")?;
            for copy in &reach.copies {
                self.vault.remove_private(copy)?;
                reach_failpoint("forget.copy")?;
            }
            // It knows the words as numbers only, and is made anew without them.
            PostingsDb::remove(&self.vault.layout().search_index());
            // A vector tells of what the words were about.
            let vault = self.vault;
            let lines = reach.lines.iter().chain(&reach.vanished_lines);
            let touched: BTreeSet<&str> = lines.map(|it| &it.path[..]).collect();
            VectorDb::remove_changed(&vault.layout().vectors(), &|it| {
                let found = vault.read(&it.path).ok().flatten();
                !touched.contains(&it.path[..])
                    && found.is_some_and(|found| found.stamp == it.stamp)
            });
            left.again.extend(reach.to_rebuild.iter().copied().map(names_of));
        }
        left.again.extend(first.to_rebuild.iter().copied().map(names_of));
        left.vacuum = true;
        self.save_remaining_work(&left)?;
        reach_failpoint("forget.left")?;
        let vacuumed = self.vacuum_after_forget(left)?;
        self.end_run(run)?;
        Ok(ForgetOutcome { impact: first, vacuumed })
    }

    fn vacuum_after_forget(&mut self, mut left: RemainingWork) -> Result<bool, CompactionError> {
        match self.lineage.vacuum() {
            Ok(()) => {}
            // Somebody reads the database; the next pass tries again.
            Err(LineageError::Busy { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        reach_failpoint("forget.vacuumed")?;
        left.vacuum = false;
        self.save_remaining_work(&left)?;
        Ok(true)
    }
}
