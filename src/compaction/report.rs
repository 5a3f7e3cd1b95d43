//! What a run did, as values for people and for JSON.

use serde::Serialize;

use super::{
    plan::{CompactionJob, CompactionPlan},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{item::Tier, period::Period},
    model::CallError,
    store::db::lineage::jobs::{JobMetrics, JobOutcome, Receipt},
};

/// All jobs of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunReport {
    /// In calendar order, by tier.
    pub jobs: Vec<JobReport>,
    /// Jobs whose files were written and read back.
    pub written: usize,
    /// Jobs whose files already said the same.
    pub unchanged: usize,
    /// Jobs that failed or are stuck.
    pub failed: usize,
    /// Jobs that are due and were not begun, because the run was stopped.
    pub left: usize,
    /// Logs that were archived: their new paths, relative to the root.
    pub archived: Vec<String>,
    /// Archived logs to which late lines were added: their paths, active again.
    pub joined: Vec<String>,
    /// Files that a disk cut off or emptied and that were restored, each with the reason.
    pub put_back: Vec<String>,
    /// Why the model was unavailable, so that the rest waits.
    pub model: Option<String>,
    /// How many jobs failed for that reason alone.
    pub unanswered: usize,
    /// Interrupted work that was finished, in words.
    pub finished: Vec<String>,
    /// Generated files that may be damaged and wait for a person, as they are at the end.
    pub held: Vec<DamagedFile>,
    /// Files that were not read, as they are at the end, with what to do.
    pub unread: Vec<DamagedFile>,
    /// Why logs that are old enough were not moved.
    pub archive_held: Option<String>,
    /// Amounts and days in the lines that items of a model cite, over all jobs.
    pub amounts: u32,
    /// How many of them the items mention, too.
    pub amounts_kept: u32,
    /// Versions removed from the history, because they were too old.
    pub pruned: usize,
}

/// Observes a run, and may stop it between two jobs.
pub(crate) trait RunObserver {
    /// A job begins; `left` more follow in this tier.
    fn job_started(&mut self, _job: &CompactionJob, _left: usize) {}
    /// A job has ended.
    fn job_finished(&mut self, _report: &JobReport) {}
    /// Whether to stop before the next job.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Observes nothing.
impl RunObserver for () {}

/// What a run did, and the state after it.
#[derive(Debug)]
pub(crate) struct RunOutcome {
    pub report: RunReport,
    /// The files and the record after the last job.
    pub snapshot: RootSnapshot,
    /// The plan then.
    pub plan: CompactionPlan,
}

/// A file that waits for a person: nothing is made from it or in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Relative to the root.
    pub path: String,
    /// What is wrong, and what can be done.
    pub reason: String,
}

/// The outcome of a job that waits for a batch: the reply comes later.
pub(crate) const WAITING: &str = "waiting";

/// Returns the outcome in a receipt: a job that waits for a batch has not failed.
pub(crate) fn outcome_name(receipt: &Receipt) -> &'static str {
    let waits = receipt.outcome == JobOutcome::Failed
        && receipt.reason.as_deref() == Some(&CallError::AwaitingBatch.to_string());
    if waits { WAITING } else { receipt.outcome.name() }
}

/// One job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobReport {
    /// `extract`, `weekly`, `monthly`, or `wisdom`.
    pub tier: &'static str,
    /// `2026-04-02`, `2026-W14`, or `2026-04`.
    pub period: String,
    /// `written`, `unchanged`, `skipped`, `failed`, `parked`, or [`WAITING`].
    pub outcome: &'static str,
    /// The main file, relative to the root.
    pub path: Option<String>,
    /// All files that were written.
    pub paths: Vec<String>,
    /// Why it was due, or why it failed.
    pub reason: String,
    /// How much it read, made, and cost.
    #[serde(flatten)]
    pub figures: JobMetrics,
}

impl RunReport {
    /// Adds the index to the files of the last day.
    pub(crate) fn add_index(&mut self, path: String) {
        let mut jobs = self.jobs.iter_mut().rev();
        if let Some(job) = jobs.find(|it| it.tier == Tier::Extract.name()) {
            job.paths.push(path);
        }
    }

    /// Sorts the jobs by tier and period; they ran in the order of urgency.
    pub(crate) fn sort_by_calendar(&mut self) {
        let place = |it: &JobReport| Tier::ALL.iter().position(|tier| tier.name() == it.tier);
        self.jobs.sort_by(|a, b| (place(a), &a.period).cmp(&(place(b), &b.period)));
    }

    /// Returns whether a job of that tier and period was done after the first `before` jobs.
    pub fn is_done_after(&self, before: usize, tier: Tier, period: Period) -> bool {
        let name = period.to_string();
        let jobs = self.jobs.iter().skip(before);
        let mut jobs = jobs.filter(|it| it.tier == tier.name() && it.period == name);
        jobs.any(|it| matches!(it.outcome, "written" | "unchanged" | "skipped"))
    }
}

impl JobReport {
    /// Builds the report of a job from its receipt.
    pub fn new(
        tier: Tier,
        period: Period,
        receipt: &Receipt,
        paths: Vec<String>,
        due: &str,
    ) -> Self {
        let recorded = match receipt.outcome {
            JobOutcome::Written | JobOutcome::Unchanged => None,
            _ => receipt.reason.clone(),
        };
        Self {
            tier: tier.name(),
            period: period.to_string(),
            outcome: outcome_name(receipt),
            path: receipt.path.clone(),
            paths,
            reason: recorded.unwrap_or_else(|| due.to_owned()),
            figures: receipt.metrics,
        }
    }
}

impl RunReport {
    /// Adds what a further run did.
    pub fn merge(&mut self, further: Self) {
        further.jobs.into_iter().for_each(|job| self.push(job));
        self.archived.extend(further.archived);
        self.joined.extend(further.joined);
        self.model = further.model.or(self.model.take());
        self.unanswered += further.unanswered;
        self.put_back.extend(further.put_back);
        self.finished.extend(further.finished);
        self.held = further.held;
        self.archive_held = further.archive_held;
        self.pruned += further.pruned;
    }

    /// Adds a job.
    pub fn push(&mut self, job: JobReport) {
        match job.outcome {
            "written" => self.written += 1,
            "unchanged" => self.unchanged += 1,
            "failed" | "parked" => self.failed += 1,
            _ => {}
        }
        self.amounts += job.figures.amounts;
        self.amounts_kept += job.figures.amounts_kept;
        self.jobs.push(job);
    }
}

/// Counts lines or files for a receipt; none has four thousand million.
pub(crate) fn count_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
