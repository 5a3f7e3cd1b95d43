//! Work that is refused from now on, and work that no longer is: in receipts and among the decisions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    Fate, Undoing, UndoneFile,
    error::UndoError,
    foresight::Foresight,
    past::{Past, Write},
};
use crate::{
    compaction::{
        Compactor, PassError, View,
        observe::{MOVED, period_of},
        plan::{self, Job, Record, Selection, WaitCause},
        plan_of, record,
    },
    memory::{
        decision::{Decision, What},
        document::SummaryHeader,
        hash::ContentHash,
        item::Tier,
        period::Period,
        typed::TypedMemory,
    },
    store::{
        inventory::{Inventory, Stamp, SummaryFile},
        layout::{FileKind, Layout},
        lineage::{
            LineageError,
            jobs::{JobId, JobRow, NewJob, Outcome, Receipt, RunId},
        },
    },
};

/// A piece of work that is refused, or no longer.
#[derive(Clone, Debug)]
pub struct Work {
    /// What is made.
    pub tier: Tier,
    /// For which time.
    pub period: Period,
    /// The file that it makes, or the index of what it extracts.
    pub path: String,
    fingerprint: ContentHash,
    engine: String,
    inputs: ContentHash,
    items: u32,
    /// Where its receipt stands among the others; `None` for what only follows from them.
    at: Option<JobId>,
}

/// What the receipt says of work that was taken back.
const TAKEN_BACK: &str = "taken back by undo";

/// What it says of work that would be due only because something else was taken back.
const FOLLOWS: &str = "rests on what was taken back by undo";

impl Foresight<'_> {
    /// Says which work of the runs is refused from now on, and which no longer.
    pub(super) fn decide(&self, past: &Past, undoing: &mut Undoing) -> Result<(), LineageError> {
        let layout = self.vault.layout();
        let mut decided: BTreeMap<ContentHash, (bool, Work)> = BTreeMap::new();
        // The oldest of them has the last word, as it would have if each were taken back alone.
        for run in undoing.runs.iter().map(|it| it.id) {
            let undo = past.taken_by(run).next().is_some();
            for job in self.lineage.jobs_of_run(run)? {
                let Some(receipt) = &job.receipt else { continue };
                if receipt.reason.as_deref() == Some(MOVED) {
                    continue;
                }
                let refuse = match receipt.outcome {
                    Outcome::Written | Outcome::Unchanged => {
                        if !undo && !self.is_taken_back(past, run, &job, &undoing.files)? {
                            continue;
                        }
                        true
                    }
                    Outcome::Skipped if undo => false,
                    _ => continue,
                };
                decided.insert(job.fingerprint, (refuse, Work::of(&job, receipt, layout)));
            }
        }
        // What was cut off had decided more than can be seen now that it has.
        for run in past.work.keys().copied().filter(|it| past.is_cut_off(*it)) {
            let jobs = self.lineage.jobs_of_run(run)?;
            if !jobs.iter().any(|it| decided.contains_key(&it.fingerprint)) {
                continue;
            }
            for job in &jobs {
                let Some(receipt) = &job.receipt else { continue };
                let refuse = receipt.outcome == Outcome::Skipped;
                let work = Work::of(job, receipt, layout);
                decided.entry(job.fingerprint).or_insert((refuse, work));
            }
        }
        for (refuse, work) in decided.into_values() {
            if refuse { &mut undoing.refused } else { &mut undoing.lifted }.push(work);
        }
        for list in [&mut undoing.refused, &mut undoing.lifted] {
            // The last receipt of a period counts, so they stay in their order.
            list.sort_by_key(|it| (it.tier, it.period, it.at));
        }
        Ok(())
    }

    /// Returns whether what a job made is no longer there.
    fn is_taken_back(
        &self,
        past: &Past,
        run: RunId,
        job: &JobRow,
        files: &[UndoneFile],
    ) -> Result<bool, LineageError> {
        let writes: Vec<&Write> = past.writes.iter().filter(|it| it.job == Some(job.id)).collect();
        if writes.iter().any(|it| it.moved) {
            return Ok(false);
        }
        if writes.is_empty() {
            // A day without anything to remember may have something when what another one left is
            // gone, and an older month may have something for `WISDOM.md`.
            return Ok(matches!(job.tier, Tier::Extract | Tier::Wisdom));
        }
        if matches!(job.tier, Tier::Weekly | Tier::Monthly) {
            // A file of an open period is made when it has closed, by work of the same name.
            let made = writes.last().and_then(|it| it.new).map(|it| self.lineage.content(it));
            let text = made.transpose()?.flatten().and_then(|it| String::from_utf8(it).ok());
            let header = text.and_then(|it| SummaryHeader::read(job.period, &it).ok().flatten());
            if header.is_some_and(|it| it.partial) {
                return Ok(false);
            }
        }
        Ok(files.iter().any(|file| {
            file.before.is_some_and(|before| before <= run)
                && !matches!(file.fate, Fate::Kept | Fate::Lost)
                && writes.iter().any(|it| it.path == file.path)
        }))
    }

    /// Refuses what would be due only because older files stand there again.
    pub(super) fn refuse_what_follows(&self, undoing: &mut Undoing) -> Result<(), UndoError> {
        let nothing_else = Selection::default();
        let plan = |view: &View| plan_of(view, self.settings, self.engine, &nothing_else, self.now);
        let before = plan(self.view);
        let written =
            before.waiting.iter().filter(|it| matches!(it.cause, WaitCause::StillWritten(_)));
        let due: BTreeSet<(Tier, Period)> = before
            .jobs
            .iter()
            .map(|it| (it.tier, it.period))
            .chain(before.following.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let lifted: BTreeSet<ContentHash> =
            undoing.lifted.iter().map(|it| it.fingerprint).collect();
        let mut inventory = self.view.inventory.clone();
        let layout = self.vault.layout();
        for file in undoing.files.iter().filter(|it| it.is_written()) {
            put(&mut inventory, layout, &file.path, file.text.as_deref());
        }
        for decision in undoing.decisions(self.now) {
            inventory.decisions.apply(&decision);
        }
        let mut record = record(Some(self.lineage), &self.lineage.last_receipts()?, &inventory)?;
        for work in undoing.lifted.iter().filter(|it| it.at.is_some()) {
            work.lift_from(&mut record, &inventory);
        }
        for work in &undoing.refused {
            work.refuse_in(&mut record);
        }
        let mut after = View { inventory, record };
        loop {
            let jobs = plan(&after).jobs.into_iter().filter(|it| {
                !due.contains(&(it.tier, it.period)) && !lifted.contains(&it.fingerprint)
            });
            let follow: Vec<Work> = jobs.map(|job| Work::due(&job, self.engine, layout)).collect();
            if follow.is_empty() {
                return Ok(());
            }
            for work in follow {
                after.inventory.decisions.apply(&decision(What::Undone, &[&work], self.now));
                work.refuse_in(&mut after.record);
                undoing.refused.push(work);
            }
        }
    }
}

impl Compactor<'_> {
    /// Lifts the refusal of work that a person asks for though it was taken back.
    pub(in crate::compaction) fn lift(
        &mut self,
        jobs: &[Job],
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let decisions = &view.inventory.decisions;
        let layout = self.vault.layout();
        let lifted: Vec<Work> = jobs
            .iter()
            .filter(|it| decisions.is_undone(it.fingerprint))
            .map(|it| Work::due(it, self.engine.id(), layout))
            .collect();
        let made: Vec<_> = lifted.iter().map(|it| decision(What::Restored, &[it], now)).collect();
        self.write_decisions(decisions, &made)
    }
}

impl Undoing {
    /// Returns what is to be written down, a line for each file.
    pub(super) fn decisions(&self, now: DateTime<Utc>) -> Vec<Decision> {
        let mut made = Vec::new();
        for (what, list) in [(What::Restored, &self.lifted), (What::Undone, &self.refused)] {
            let mut by_path: BTreeMap<&str, Vec<&Work>> = BTreeMap::new();
            for work in list {
                by_path.entry(&work.path).or_default().push(work);
            }
            made.extend(by_path.values().map(|it| decision(what, it, now)));
        }
        made
    }

    /// Returns the receipts that say so.
    pub(super) fn receipts(&self, now: DateTime<Utc>) -> Vec<(NewJob, Receipt)> {
        let receipt = |work: &Work, outcome, reason: &str| {
            let mut receipt = Receipt::new(outcome, Some(reason.to_owned()), now);
            receipt.path = (work.tier != Tier::Extract).then(|| work.path.clone());
            receipt.figures.items = work.items;
            (work.job(now), receipt)
        };
        let refused = self.refused.iter();
        let refused = refused.map(|it| {
            let reason = if it.at.is_some() { TAKEN_BACK } else { FOLLOWS };
            receipt(it, Outcome::Skipped, reason)
        });
        // What only followed was not done then, and is not done now.
        let lifted = self.lifted.iter().filter(|it| it.at.is_some()).map(|it| {
            let quiet = matches!(it.tier, Tier::Extract | Tier::Wisdom) && it.items == 0;
            let outcome = if quiet { Outcome::Unchanged } else { Outcome::Written };
            receipt(it, outcome, "put back by undo")
        });
        refused.chain(lifted).collect()
    }
}

impl Work {
    fn of(job: &JobRow, receipt: &Receipt, layout: &Layout) -> Self {
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: job.engine.clone(),
            inputs: job.inputs,
            items: receipt.figures.items,
            at: (receipt.reason.as_deref() != Some(FOLLOWS)).then_some(job.id),
        }
    }

    fn due(job: &Job, engine: &str, layout: &Layout) -> Self {
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: engine.to_owned(),
            inputs: ContentHash::of(format!("{:?}", job.inputs)),
            items: 0,
            at: None,
        }
    }

    fn job(&self, now: DateTime<Utc>) -> NewJob {
        NewJob {
            fingerprint: self.fingerprint,
            tier: self.tier,
            period: self.period,
            engine: self.engine.clone(),
            inputs: self.inputs,
            now,
        }
    }

    /// Changes a record as the receipt of refused work will.
    fn refuse_in(&self, record: &mut Record) {
        record.parked.remove(&self.fingerprint);
        record.settled.insert(self.fingerprint);
        if self.tier == Tier::Wisdom
            && let Some(body) = record.distilled.get_mut(&self.period)
        {
            *body = None;
        }
    }

    /// Changes a record as the receipt of work that is put back will.
    fn lift_from(&self, record: &mut Record, inventory: &Inventory) {
        record.settled.remove(&self.fingerprint);
        if self.tier == Tier::Monthly
            && let Some(body @ None) = record.distilled.get_mut(&self.period)
        {
            *body = Some(String::new());
        }
        if self.tier == Tier::Wisdom
            && let Some(body) = record.distilled.get_mut(&self.period)
            && let Some(month) = inventory.monthly.get(&self.period)
        {
            let inputs = [(self.period.to_string(), month.body_hash.clone())].into();
            let same = plan::fingerprint(self.tier, self.period, &inputs) == self.fingerprint;
            *body = Some(if same { month.body_hash.clone() } else { String::new() });
        }
    }
}

/// Returns the file that a piece of work makes; for days the index of what is extracted.
fn path_of(layout: &Layout, tier: Tier, period: Period) -> String {
    match tier {
        Tier::Extract => layout.index(),
        Tier::Weekly | Tier::Monthly => layout.summary(period),
        Tier::Wisdom => layout.wisdom(),
    }
}

fn decision(what: What, works: &[&Work], at: DateTime<Utc>) -> Decision {
    let path = works.first().map(|it| it.path.clone()).unwrap_or_default();
    let hashes = works.iter().map(|it| it.fingerprint.hex16()).collect();
    Decision { at, what, path, hashes }
}

/// Puts a text under a path, or takes it away, as a scan would find it.
fn put(inventory: &mut Inventory, layout: &Layout, path: &str, text: Option<&str>) {
    match (layout.kind_of(path), period_of(path)) {
        (Some(kind @ (FileKind::Weekly | FileKind::Monthly)), Some(period)) => {
            let files = match kind {
                FileKind::Weekly => &mut inventory.weekly,
                _ => &mut inventory.monthly,
            };
            files.remove(&period);
            let file = text
                .and_then(|it| SummaryFile::of(path.to_owned(), Stamp::default(), period, it).ok());
            let rules = &inventory.rules;
            let file = file.map(|it| {
                let body_hash = rules.input_of_file(period, &it.body_hash);
                SummaryFile { body_hash, ..it }
            });
            files.extend(file.map(|it| (period, it)));
        }
        (Some(FileKind::Wisdom), _) => inventory.wisdom = text.map(str::to_owned),
        (Some(FileKind::Memory), _) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            inventory.memories.retain(|it| it.file_name.as_os_str() != name);
            let memory = text.and_then(|it| TypedMemory::parse(name.as_ref(), it).ok());
            inventory.memories.extend(memory);
        }
        _ => {}
    }
}
