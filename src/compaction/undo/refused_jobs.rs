//! Work that an undo refuses or no longer refuses, as recorded in receipts and decisions.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    UndoFile, UndoOutcome, UndoPlan, Undoer,
    dependencies::{RunHistory, RunWrite},
    error::UndoError,
    preview::UndoPreview,
};
use crate::compaction::{
    error::CompactionError,
    plan::{self, CompactionJob, RecordedState, Selection, WaitCause},
    reconcile::{citations::period_of_path, line_moves::LINES_MOVED},
    snapshot::{RootSnapshot, plan_snapshot, recorded_state},
};
use crate::{
    memory::{
        decision::{Decision, DecisionKind},
        document::SummaryHeader,
        hash::ContentHash,
        item::Tier,
        period::Period,
        typed::TypedMemory,
    },
    store::{
        db::lineage::{
            LineageError,
            jobs::{JobId, JobOutcome, JobRow, NewJob, Receipt, RunId},
        },
        fs::{
            inventory::{FileStat, Inventory, SummaryFile},
            layout::{FileKind, Layout},
        },
    },
};

/// A piece of work that is refused, or no longer.
#[derive(Clone, Debug)]
pub(crate) struct UndoJob {
    pub tier: Tier,
    pub period: Period,
    /// The file that it writes; for extraction, the index.
    pub path: String,
    fingerprint: ContentHash,
    engine: String,
    inputs: ContentHash,
    items: u32,
    /// The position of its receipt; `None` for work that is only a consequence.
    job_id: Option<JobId>,
}

/// The reason in the receipt of undone work.
const UNDONE_REASON: &str = "undone";

/// The reason in the receipt of work that would be due only because other work was undone.
const DEPENDENT_REASON: &str = "derived from undone work";

/// The same reason, as written by memoird before its first release.
const OLD_DEPENDENT_REASON: &str = "rests on what was taken back by undo";

impl UndoPreview<'_> {
    /// Decides which work of the runs is refused from now on, and which no longer.
    pub(super) fn decide_jobs(
        &self,
        history: &RunHistory,
        undo_plan: &mut UndoPlan,
    ) -> Result<(), LineageError> {
        let layout = self.vault.layout();
        let mut decided: BTreeMap<ContentHash, (bool, UndoJob)> = BTreeMap::new();
        // The oldest run decides last, as if each were undone alone.
        for run in undo_plan.runs.iter().map(|it| it.id) {
            let undo = history.undone_by(run).next().is_some();
            for job in self.lineage.jobs_of_run(run)? {
                let Some(receipt) = &job.receipt else { continue };
                if receipt.reason.as_deref() == Some(LINES_MOVED) {
                    continue;
                }
                let refuse = match receipt.outcome {
                    JobOutcome::Written | JobOutcome::Unchanged => {
                        if !undo && !self.is_output_undone(history, run, &job, &undo_plan.files)? {
                            continue;
                        }
                        true
                    }
                    JobOutcome::Skipped if undo => false,
                    _ => continue,
                };
                decided.insert(job.fingerprint, (refuse, UndoJob::from_row(&job, receipt, layout)));
            }
        }
        // An interrupted undo had decided more than is visible after it.
        for run in history.jobs.keys().copied().filter(|it| history.is_interrupted(*it)) {
            let jobs = self.lineage.jobs_of_run(run)?;
            if !jobs.iter().any(|it| decided.contains_key(&it.fingerprint)) {
                continue;
            }
            for job in &jobs {
                let Some(receipt) = &job.receipt else { continue };
                let refuse = receipt.outcome == JobOutcome::Skipped;
                let work = UndoJob::from_row(job, receipt, layout);
                decided.entry(job.fingerprint).or_insert((refuse, work));
            }
        }
        for (refuse, work) in decided.into_values() {
            if refuse { &mut undo_plan.refused } else { &mut undo_plan.lifted }.push(work);
        }
        for list in [&mut undo_plan.refused, &mut undo_plan.lifted] {
            // The last receipt of a period counts, so they keep their order.
            list.sort_by_key(|it| (it.tier, it.period, it.job_id));
        }
        Ok(())
    }

    /// Returns whether the output of a job is undone.
    fn is_output_undone(
        &self,
        history: &RunHistory,
        run: RunId,
        job: &JobRow,
        files: &[UndoFile],
    ) -> Result<bool, LineageError> {
        let writes: Vec<&RunWrite> =
            history.writes.iter().filter(|it| it.job == Some(job.id)).collect();
        if writes.iter().any(|it| it.only_relocated) {
            return Ok(false);
        }
        if writes.is_empty() {
            // A day without memories may have some once those of another day are gone, and an older
            // month may have something for `WISDOM.md`.
            return Ok(matches!(job.tier, Tier::Extract | Tier::Wisdom));
        }
        if matches!(job.tier, Tier::Weekly | Tier::Monthly) {
            // The file of an open period is written again by work of the same name when it has
            // closed.
            let made = writes.last().and_then(|it| it.new).map(|it| self.lineage.content(it));
            let text = made.transpose()?.flatten().and_then(|it| String::from_utf8(it).ok());
            let header = text.and_then(|it| SummaryHeader::read(job.period, &it).ok().flatten());
            if header.is_some_and(|it| it.partial) {
                return Ok(false);
            }
        }
        Ok(files.iter().any(|file| {
            file.oldest_run.is_some_and(|before| before <= run)
                && !matches!(file.outcome, UndoOutcome::Kept | UndoOutcome::Lost)
                && writes.iter().any(|it| it.path == file.path)
        }))
    }

    /// Refuses work that would be due only because older files are restored.
    pub(super) fn refuse_dependents(&self, undo_plan: &mut UndoPlan) -> Result<(), UndoError> {
        let nothing_else = Selection::default();
        let plan = |view: &RootSnapshot| {
            plan_snapshot(view, self.settings, self.engine, &nothing_else, self.now)
        };
        let before = plan(self.view);
        let written =
            before.waiting.iter().filter(|it| matches!(it.cause, WaitCause::BeingWritten(_)));
        let due: BTreeSet<(Tier, Period)> = before
            .jobs
            .iter()
            .map(|it| (it.tier, it.period))
            .chain(before.due_after.iter().copied())
            .chain(written.map(|it| (it.tier, it.period)))
            .collect();
        let lifted: BTreeSet<ContentHash> =
            undo_plan.lifted.iter().map(|it| it.fingerprint).collect();
        let mut inventory = self.view.inventory.clone();
        let layout = self.vault.layout();
        for file in undo_plan.files.iter().filter(|it| it.is_written()) {
            put_file(&mut inventory, layout, &file.path, file.text.as_deref());
        }
        for decision in undo_plan.decisions(self.now) {
            inventory.decisions.apply(&decision);
        }
        let mut record =
            recorded_state(Some(self.lineage), &self.lineage.last_receipts()?, &inventory)?;
        for work in undo_plan.lifted.iter().filter(|it| it.job_id.is_some()) {
            work.apply_lift(&mut record, &inventory);
        }
        for work in &undo_plan.refused {
            work.apply_refusal(&mut record);
        }
        let mut after = RootSnapshot { inventory, record };
        loop {
            let jobs = plan(&after).jobs.into_iter().filter(|it| {
                !due.contains(&(it.tier, it.period)) && !lifted.contains(&it.fingerprint)
            });
            let follow: Vec<UndoJob> =
                jobs.map(|job| UndoJob::from_planned(&job, self.engine, layout)).collect();
            if follow.is_empty() {
                return Ok(());
            }
            for work in follow {
                after.inventory.decisions.apply(&decision(
                    DecisionKind::Undone,
                    &[&work],
                    self.now,
                ));
                work.apply_refusal(&mut after.record);
                undo_plan.refused.push(work);
            }
        }
    }
}

impl Undoer<'_, '_> {
    /// Lifts the refusal of undone work that a person asks for.
    pub(in crate::compaction) fn lift_refusals(
        &mut self,
        jobs: &[CompactionJob],
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let decisions = &view.inventory.decisions;
        let layout = self.context.vault.layout();
        let lifted: Vec<UndoJob> = jobs
            .iter()
            .filter(|it| decisions.is_undone(it.fingerprint))
            .map(|it| UndoJob::from_planned(it, self.context.engine.id(), layout))
            .collect();
        let made: Vec<_> =
            lifted.iter().map(|it| decision(DecisionKind::Restored, &[it], now)).collect();
        self.write_decisions(decisions, &made)
    }
}

impl UndoPlan {
    /// Returns the decisions to record, one per file.
    pub(super) fn decisions(&self, now: DateTime<Utc>) -> Vec<Decision> {
        let mut made = Vec::new();
        for (what, list) in
            [(DecisionKind::Restored, &self.lifted), (DecisionKind::Undone, &self.refused)]
        {
            let mut by_path: BTreeMap<&str, Vec<&UndoJob>> = BTreeMap::new();
            for work in list {
                by_path.entry(&work.path).or_default().push(work);
            }
            made.extend(by_path.values().map(|it| decision(what, it, now)));
        }
        made
    }

    /// Returns the receipts to record.
    pub(super) fn receipts(&self, now: DateTime<Utc>) -> Vec<(NewJob, Receipt)> {
        let receipt = |work: &UndoJob, outcome, reason: &str| {
            let mut receipt = Receipt::new(outcome, Some(reason.to_owned()), now);
            receipt.path = (work.tier != Tier::Extract).then(|| work.path.clone());
            receipt.metrics.items = work.items;
            (work.to_new_job(now), receipt)
        };
        let refused = self.refused.iter();
        let refused = refused.map(|it| {
            let reason = if it.job_id.is_some() { UNDONE_REASON } else { DEPENDENT_REASON };
            receipt(it, JobOutcome::Skipped, reason)
        });
        // Work that was only a consequence was not done then, and is not done now.
        let lifted = self.lifted.iter().filter(|it| it.job_id.is_some()).map(|it| {
            let quiet = matches!(it.tier, Tier::Extract | Tier::Wisdom) && it.items == 0;
            let outcome = if quiet { JobOutcome::Unchanged } else { JobOutcome::Written };
            receipt(it, outcome, "restored by undo")
        });
        refused.chain(lifted).collect()
    }
}

impl UndoJob {
    fn from_row(job: &JobRow, receipt: &Receipt, layout: &Layout) -> Self {
        let is_dependent =
            matches!(receipt.reason.as_deref(), Some(DEPENDENT_REASON | OLD_DEPENDENT_REASON));
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: job.engine.clone(),
            inputs: job.inputs,
            items: receipt.metrics.items,
            job_id: (!is_dependent).then_some(job.id),
        }
    }

    fn from_planned(job: &CompactionJob, engine: &str, layout: &Layout) -> Self {
        Self {
            tier: job.tier,
            period: job.period,
            path: path_of(layout, job.tier, job.period),
            fingerprint: job.fingerprint,
            engine: engine.to_owned(),
            inputs: ContentHash::of(format!("{:?}", job.inputs)),
            items: 0,
            job_id: None,
        }
    }

    fn to_new_job(&self, now: DateTime<Utc>) -> NewJob {
        NewJob {
            fingerprint: self.fingerprint,
            tier: self.tier,
            period: self.period,
            engine: self.engine.clone(),
            inputs: self.inputs,
            now,
        }
    }

    /// Changes the recorded state as the receipt of refused work will.
    fn apply_refusal(&self, record: &mut RecordedState) {
        record.stuck.remove(&self.fingerprint);
        record.skipped.insert(self.fingerprint);
        if self.tier == Tier::Wisdom
            && let Some(body) = record.distilled.get_mut(&self.period)
        {
            *body = None;
        }
    }

    /// Changes the recorded state as the receipt of restored work will.
    fn apply_lift(&self, record: &mut RecordedState, inventory: &Inventory) {
        record.skipped.remove(&self.fingerprint);
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

/// Returns the file that a piece of work writes; for days, the index.
fn path_of(layout: &Layout, tier: Tier, period: Period) -> String {
    match tier {
        Tier::Extract => layout.index(),
        Tier::Weekly | Tier::Monthly => layout.summary(period),
        Tier::Wisdom => layout.wisdom(),
    }
}

fn decision(what: DecisionKind, works: &[&UndoJob], at: DateTime<Utc>) -> Decision {
    let path = works.first().map(|it| it.path.clone()).unwrap_or_default();
    let hashes = works.iter().map(|it| it.fingerprint.hex16()).collect();
    Decision { at, what, path, hashes }
}

/// Adds or removes a file, as a scan would find it.
fn put_file(inventory: &mut Inventory, layout: &Layout, path: &str, text: Option<&str>) {
    match (layout.kind_of(path), period_of_path(path)) {
        (Some(kind @ (FileKind::Weekly | FileKind::Monthly)), Some(period)) => {
            let files = match kind {
                FileKind::Weekly => &mut inventory.weekly,
                _ => &mut inventory.monthly,
            };
            files.remove(&period);
            let file = text.and_then(|it| {
                SummaryFile::of(path.to_owned(), FileStat::default(), period, it).ok()
            });
            let rules = &inventory.rules;
            let file = file.map(|it| {
                let body_hash = rules.summary_input_hash(period, &it.body_hash);
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
