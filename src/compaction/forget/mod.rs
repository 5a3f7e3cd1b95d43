//! Forgetting: what derives from some lines is shown, and then taken out of every tier, out of the
//! history, and, where a person says so, out of the logs.
//!
//! - [`cut`]: which lines and items go, and the texts without them; pure.
//! - [`reach`]: what a wish reaches, as all stands; changes nothing.
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

pub mod cut;
mod pending;
pub mod reach;
mod remove;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use self::{
    cut::{Needles, Wish},
    pending::{Left, Pending, named},
    reach::{Reach, survey},
};
use super::{
    Compactor, PassError,
    commit::passed,
    plan::{Plan, WaitCause},
};
use crate::{
    memory::{address::Citation, item::Tier, period::Period},
    store::{lineage::LineageError, postings::Postings, vectors::Vectors},
};

/// What was done.
#[derive(Debug)]
pub struct Forgotten {
    /// What it was done to.
    pub reach: Reach,
    /// Whether the database was written anew; otherwise the next pass does it.
    pub vacuumed: bool,
}

impl Compactor<'_> {
    /// Forgets, for good. What stood on it is folded again by the next pass.
    ///
    /// # Errors
    ///
    /// Returns what stopped it. From the first step on the next pass goes on where it stopped.
    pub fn forget(&mut self, wish: &Wish) -> Result<Forgotten, PassError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        // What a crash left of a file may hold what is to go.
        self.sweep()?;
        self.finish_forgetting(now, false)?;
        self.look_mended(now)?.0.refuse_held(|_| true)?;
        let mut left = self.left()?;
        let reach = survey(self.vault, Some(self.lineage), wish)?;
        // Unless it is written down first, a crash could leave words that nobody knows of any more.
        left.again.extend(reach.again.iter().copied().map(named));
        self.note(&Pending::Remove(Box::new(reach.wish.clone()), left.clone()))?;
        passed("forget.noted")?;
        self.carry_out(reach, left, now)
    }

    /// Returns whether a wish is being carried out, or was cut off.
    pub(super) fn is_forgetting(&self) -> Result<bool, PassError> {
        Ok(matches!(self.pending()?, Some(Pending::Remove(..))))
    }

    /// Finishes what a crash cut off, and returns what is to be made again. `accepted` says that a
    /// person takes held files as they are.
    pub(super) fn finish_forgetting(
        &mut self,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<BTreeSet<(Tier, Period)>, PassError> {
        match self.pending()? {
            None => {
                // A wish that a crash kept from being noted was never begun.
                self.vault.remove_private(&self.vault.layout().forgetting())?;
                return Ok(BTreeSet::new());
            }
            Some(Pending::Remove(wish, left)) => {
                let (view, _) = self.look_mended(now)?;
                view.refuse_held(|_| !accepted)?;
                let reach = survey(self.vault, Some(self.lineage), &wish)?;
                self.carry_out(reach, left, now)?;
            }
            Some(Pending::Refold(left)) if left.vacuum => {
                self.vacuum(left)?;
            }
            Some(Pending::Refold(_)) => {}
        }
        Ok(self.left()?.periods())
    }

    /// Takes note of what is still to be made again after a pass.
    pub(super) fn end_forgetting(
        &mut self,
        again: &BTreeSet<(Tier, Period)>,
        plan: &Plan,
    ) -> Result<(), PassError> {
        let Some(Pending::Refold(left)) = self.pending()? else { return Ok(()) };
        let jobs = plan.jobs.iter().map(|it| (it.tier, it.period));
        let written =
            plan.waiting.iter().filter(|it| matches!(it.cause, WaitCause::StillWritten(_)));
        let open: BTreeSet<(Tier, Period)> = jobs
            .chain(plan.following.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let again = again.intersection(&open).copied();
        self.keep_left(&Left { again: again.map(named).collect(), ..left })
    }

    fn carry_out(
        &mut self,
        first: Reach,
        mut left: Left,
        now: DateTime<Utc>,
    ) -> Result<Forgotten, PassError> {
        // A temporary file that was left holds the words, too; the copy that is kept of it goes below.
        self.vault.sweep(&self.write_lock()?)?;
        let mut run = None;
        let run = self.run(&mut run, "forget", now)?;
        let decisions = self.new_decisions()?;
        self.bar(&decisions, &first.wish, now)?;
        // A reply that no file was made of yet may quote what is to go.
        self.vault.drop_replies()?;
        passed("forget.barred")?;
        let done = self.remove(run, &first)?;
        passed("forget.removed")?;
        {
            // Nobody adds to the history between what is found there and what goes.
            let lock = self.write_lock()?;
            // What was found before is known for certain; what is there now may be more.
            let mut reach = survey(self.vault, Some(self.lineage), &done)?;
            if !reach.vanished.is_empty() {
                self.forget_within(&reach)?;
                passed("forget.within")?;
                reach = survey(self.vault, Some(self.lineage), &reach.wish)?;
            }
            self.lineage.forget_versions(&reach.versions)?;
            passed("forget.history")?;
            self.forget_names(&lock, &decisions, &reach.wish.found.names)?;
            let wish = reach.wish.clone();
            let needles = Needles::of(&wish);
            self.lineage.forget_reasons(&|it| needles.holds(it))?;
            let rests = |it: &Citation| wish.found.now.are_cited(it);
            self.lineage.forget_proposals(&|it| needles.holds(it), &rests)?;
            passed("forget.names")?;
            for copy in &reach.copies {
                self.vault.remove_private(copy)?;
                passed("forget.copy")?;
            }
            // It knows the words as numbers only, and is made anew without them.
            Postings::remove(&self.vault.layout().search_index());
            // A vector tells of what the words were about.
            let vault = self.vault;
            let lines = reach.lines.iter().chain(&reach.vanished);
            let touched: BTreeSet<&str> = lines.map(|it| &it.path[..]).collect();
            Vectors::forget(&vault.layout().vectors(), &|it| {
                let found = vault.read(&it.path).ok().flatten();
                !touched.contains(&it.path[..])
                    && found.is_some_and(|found| found.stamp == it.stamp)
            });
            left.again.extend(reach.again.iter().copied().map(named));
        }
        left.again.extend(first.again.iter().copied().map(named));
        left.vacuum = true;
        self.keep_left(&left)?;
        passed("forget.left")?;
        let vacuumed = self.vacuum(left)?;
        self.end_run(run)?;
        Ok(Forgotten { reach: first, vacuumed })
    }

    fn vacuum(&mut self, mut left: Left) -> Result<bool, PassError> {
        match self.lineage.vacuum() {
            Ok(()) => {}
            // Somebody reads the database; the next pass tries again.
            Err(LineageError::Busy { .. }) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        passed("forget.vacuumed")?;
        left.vacuum = false;
        self.keep_left(&left)?;
        Ok(true)
    }
}
