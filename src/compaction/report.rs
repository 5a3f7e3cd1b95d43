//! What a pass did, as values for people and for JSON.

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

/// All jobs of a pass.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunReport {
    /// In the order in which they were done.
    pub jobs: Vec<JobReport>,
    /// Jobs whose files were written and read back.
    pub written: usize,
    /// Jobs whose files already said the same.
    pub unchanged: usize,
    /// Jobs that failed or are stuck.
    pub failed: usize,
    /// Jobs that are due and were not begun, because the pass was stopped.
    pub left: usize,
    /// Logs that moved into the archive: where they stand now, relative to the root.
    pub archived: Vec<String>,
    /// Archived logs to which late lines were added: where they stand again.
    pub joined: Vec<String>,
    /// Files that a disk cut off or emptied and that stand again as recorded, each with why.
    pub put_back: Vec<String>,
    /// Why the model could not be had, so that what is left waits.
    pub model: Option<String>,
    /// How many jobs failed for that reason alone.
    pub unanswered: usize,
    /// What had been cut off before and was brought to its end, in words.
    pub finished: Vec<String>,
    /// Generated files of which a person is to say first what they are, as they stand at the end.
    pub held: Vec<DamagedFile>,
    /// Why logs that are old enough did not move.
    pub archive_held: Option<String>,
    /// Amounts and days of the lines that items of a model are about, in all jobs.
    pub amounts: u32,
    /// Those of them that the items say, too.
    pub amounts_kept: u32,
    /// Versions that the history let go of, because they were older than it is to be.
    pub pruned: usize,
}

/// Who watches a pass, and may stop it between two jobs.
pub trait RunObserver {
    /// A job begins; `left` are to come after it in this tier.
    fn job_started(&mut self, _job: &CompactionJob, _left: usize) {}
    /// A job has ended.
    fn job_finished(&mut self, _report: &JobReport) {}
    /// Whether to stop before the next job.
    fn should_stop(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl RunObserver for () {}

/// What a pass did, and what it left behind.
#[derive(Debug)]
pub struct RunOutcome {
    /// The jobs.
    pub report: RunReport,
    /// The files and the record after the last of them.
    pub snapshot: RootSnapshot,
    /// What is due then.
    pub plan: CompactionPlan,
}

/// A file that is held: nothing is made of it or put into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Relative to the root.
    pub path: String,
    /// What is odd, and what can be done.
    pub reason: String,
}

/// How a job ended that waits for a batch: what it asked is answered later.
pub const WAITING: &str = "waiting";

/// Returns how a job ended, by its receipt: one that waits for a batch has not failed.
pub fn outcome_name(receipt: &Receipt) -> &'static str {
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
    /// Why it was due, or why it did not work.
    pub reason: String,
    /// How much it was.
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

    /// Sorts the jobs by tier and period; they were done in the order of their urgency.
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
    /// Reports a job by its receipt.
    pub fn new(
        tier: Tier,
        period: Period,
        receipt: &Receipt,
        paths: Vec<String>,
        due: &str,
    ) -> Self {
        let told = match receipt.outcome {
            JobOutcome::Written | JobOutcome::Unchanged => None,
            _ => receipt.reason.clone(),
        };
        Self {
            tier: tier.name(),
            period: period.to_string(),
            outcome: outcome_name(receipt),
            path: receipt.path.clone(),
            paths,
            reason: told.unwrap_or_else(|| due.to_owned()),
            figures: receipt.metrics,
        }
    }
}

impl RunReport {
    /// Adds what a further pass did.
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

/// Counts in receipts are of lines and files; none has four thousand million.
pub(crate) fn count_u32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
