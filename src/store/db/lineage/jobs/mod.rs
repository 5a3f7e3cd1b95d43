//! Runs, the jobs in them with their receipts, and the journal of intents.
//!
//! A job is recorded before its work begins and is live until a receipt ends it. So a crash leaves a
//! trace, and no fingerprint is worked on twice at once.
//!
//! - `runs`: when runs began and ended.
//! - `journal`: intents to write files.

pub(super) mod journal;
mod runs;

use std::fmt;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, Transaction, params};
use serde::Serialize;

use super::{Lineage, LineageError, TransactionError, column};
use crate::memory::{hash::ContentHash, item::Tier, period::Period};

/// The number of a run, which users see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(i64);

/// The number of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(i64);

/// A run that begins.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// What started it: `tick`, `change`, `compact`.
    pub trigger: &'a str,
    /// The version of memoird.
    pub version: &'a str,
    /// Identifies the process, so that others can find out whether it is alive: see
    /// [`Lineage::end_abandoned_jobs`].
    pub owner: &'a str,
    /// The time it starts.
    pub now: DateTime<Utc>,
}

/// A recorded run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its number.
    pub id: RunId,
    /// What started it.
    pub trigger: String,
    /// The version of memoird.
    pub version: String,
    /// When it started.
    pub started: DateTime<Utc>,
    /// When it ended; `None` while it is running.
    pub ended: Option<DateTime<Utc>>,
}

/// A job that begins.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Hash of root, tier, period, and inputs; unique among live jobs.
    pub fingerprint: ContentHash,
    /// The tier of its output.
    pub tier: Tier,
    /// The period it covers; for wisdom, the month that is distilled.
    pub period: Period,
    /// Name and version of the engine.
    pub engine: String,
    /// Hash of the inputs.
    pub inputs: ContentHash,
    /// The time it starts.
    pub now: DateTime<Utc>,
}

/// The progress of a live job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStage {
    /// A model is being called.
    Called,
    /// The draft was checked; files are being written.
    Parsed,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobOutcome {
    /// The bytes on disk were read back and match.
    Written,
    /// The file already had this content.
    Unchanged,
    /// There was nothing to do, or not yet.
    Skipped,
    /// It failed and will be tried again.
    Failed,
    /// It failed too often and waits for a person or for changed input.
    Stuck,
}

/// The record of an attempt. It is never deleted, so it must hold no words of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// How it ended.
    pub outcome: JobOutcome,
    /// Why, if the outcome alone does not say.
    pub reason: Option<String>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// The file, relative to the root.
    pub path: Option<String>,
    /// What it read, wrote and cost.
    pub metrics: JobMetrics,
    /// A failure that does not make the job stuck, because the work was not at fault.
    pub excused: bool,
}

/// What a job read, wrote and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JobMetrics {
    /// Number of sources.
    pub sources: u32,
    /// Characters of their text.
    pub source_chars: u64,
    /// Characters of the text written, without citations.
    pub output_chars: u64,
    /// Items written.
    pub items: u32,
    /// Items that failed the check.
    pub rejected: u32,
    /// Source lines that reached no item.
    pub uncovered: u32,
    /// Amounts and days in the lines that a model's items cite.
    pub amounts: u32,
    /// How many of them the items repeat.
    pub amounts_kept: u32,
    /// Model calls.
    pub model_calls: u32,
    /// Their cost in US dollars.
    pub cost_usd: f64,
}

/// A recorded job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its number.
    pub id: JobId,
    /// Its run.
    pub run: RunId,
    /// Hash of root, tier, period, and inputs.
    pub fingerprint: ContentHash,
    /// The tier of its output.
    pub tier: Tier,
    /// The period it covers.
    pub period: Period,
    /// Name and version of the engine.
    pub engine: String,
    /// Hash of the inputs.
    pub inputs: ContentHash,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// When it started.
    pub started: DateTime<Utc>,
    /// How it ended; `None` while it is live.
    pub receipt: Option<Receipt>,
}

/// A file that is about to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewIntent<'a> {
    /// The file, relative to the root.
    pub target: &'a str,
    /// For a file that is moved, where its bytes come from; for one that is removed by a move, where they
    /// are now.
    pub source: Option<&'a str>,
    /// The name of the temporary file in the same folder.
    pub temp: &'a str,
    /// The bytes to write; `None` to remove the file.
    pub new: Option<&'a [u8]>,
    /// The bytes to replace; `None` for a new file.
    pub old: Option<&'a [u8]>,
    /// Whether the old bytes must not enter the history.
    pub discards_old: bool,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentRow {
    /// Its number.
    pub id: IntentId,
    /// The run that writes, if any.
    pub run: Option<RunId>,
    /// The job that writes, if any.
    pub job: Option<JobId>,
    /// The file, relative to the root.
    pub target: String,
    /// For a file that is moved, where its bytes come from.
    pub source: Option<String>,
    /// The name of the temporary file.
    pub temp: String,
    /// The hash of the bytes to write; `None` to remove the file.
    pub new_hash: Option<ContentHash>,
    /// The hash of the bytes to replace; `None` for a new file.
    pub old_hash: Option<ContentHash>,
    /// Whether the old bytes must not enter the history.
    pub discards_old: bool,
}

/// How an intent was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentOutcome {
    /// The file is as intended.
    Done,
    /// The file was not touched.
    Abandoned,
}

impl JobOutcome {
    /// All outcomes.
    pub const ALL: [Self; 5] =
        [Self::Written, Self::Unchanged, Self::Skipped, Self::Failed, Self::Stuck];

    /// Returns the name that JSON and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Unchanged => "unchanged",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Stuck => "parked",
        }
    }

    /// Returns the outcome with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl JobStage {
    /// Returns the name that the database uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Called => "called",
            Self::Parsed => "parsed",
        }
    }
}

impl Receipt {
    /// Returns a receipt with an outcome and a reason, without numbers.
    pub fn new(outcome: JobOutcome, reason: Option<String>, ended: DateTime<Utc>) -> Self {
        Self { outcome, reason, ended, path: None, metrics: JobMetrics::default(), excused: false }
    }
}

/// The reason in the receipt of a job whose process died.
const CRASHED: &str = "ended by a crash";
/// The reason in the receipt of a job whose process died after all its files were written.
const FINISHED: &str = "finished after a crash";

/// Selects jobs whose files are all as intended, so that they count as written although the process died.
const ALL_FILES_WRITTEN: &str = "state = 'parsed' \
    AND EXISTS (SELECT 1 FROM intent WHERE activity = activity.id) \
    AND NOT EXISTS (SELECT 1 FROM intent WHERE activity = activity.id AND state <> 'done')";

/// Counts the failures of a fingerprint since its last success.
const COUNT_FAILED_ATTEMPTS: &str = "SELECT count(*) FROM activity WHERE fingerprint = ?1 AND counts = 1 AND id > \
    ifnull((SELECT max(id) FROM activity WHERE fingerprint = ?1 \
    AND outcome IN ('written', 'unchanged')), 0)";

impl Lineage {
    /// Records that a job begins. From now on it is live.
    ///
    /// Returns [`LineageError::AlreadyLive`] when a job with the same fingerprint is live.
    pub(crate) fn begin_job(&mut self, run: RunId, job: &NewJob) -> Result<JobId, LineageError> {
        self.write(|tx| insert_job(tx, run, job))
    }

    /// Records the progress of a live job. [`JobStage::Called`] is recorded before the call, so that the
    /// attempt counts whatever happens.
    ///
    /// Returns [`LineageError::NotLive`] for a job that has ended.
    pub(crate) fn set_job_stage(
        &mut self,
        job: JobId,
        state: JobStage,
    ) -> Result<(), LineageError> {
        self.write(|tx| set_stage(tx, job, state))
    }

    /// Ends a job that wrote no files. One that did ends in [`Lineage::commit`].
    ///
    /// Returns [`LineageError::NotLive`] for a job that has ended.
    pub(crate) fn finish_job(&mut self, job: JobId, receipt: &Receipt) -> Result<(), LineageError> {
        self.write(|tx| end_job(tx, job, receipt))
    }

    /// Returns the run that a job belongs to.
    pub(crate) fn run_of_job(&self, job: JobId) -> Result<RunId, LineageError> {
        self.read(|conn| {
            conn.query_row("SELECT run FROM activity WHERE id = ?1", [job.0], |row| {
                Ok(RunId(row.get(0)?))
            })
        })
    }

    /// Returns how often jobs with this fingerprint failed since the last success.
    pub(crate) fn failed_attempts(&self, fingerprint: ContentHash) -> Result<u32, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(COUNT_FAILED_ATTEMPTS)?
                .query_row([fingerprint.to_string()], |row| row.get(0))
        })
    }

    /// Returns the newest ended job of each tier and period, by tier and period.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn last_receipts(&self) -> Result<Vec<JobRow>, LineageError> {
        let newest = "WHERE id IN \
            (SELECT max(id) FROM activity WHERE state = 'ended' GROUP BY tier, period)";
        let mut jobs = self.read(|conn| jobs_where(conn, newest, []))?;
        jobs.sort_by_key(|it| (it.tier, it.period));
        Ok(jobs)
    }

    /// Returns the jobs that have not ended, the oldest first.
    pub(crate) fn live_jobs(&self) -> Result<Vec<JobRow>, LineageError> {
        self.read(|conn| jobs_where(conn, "WHERE state <> 'ended'", []))
    }

    /// Returns the jobs of a run, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn jobs_of_run(&self, run: RunId) -> Result<Vec<JobRow>, LineageError> {
        let mut jobs = self.read(|conn| jobs_where(conn, "WHERE run = ?1", [run.0]))?;
        jobs.sort_by_key(|it| it.id);
        Ok(jobs)
    }

    /// Ends the jobs whose process has died, and returns them with their receipts.
    ///
    /// `alive` decides by the `owner` of each run that has not ended. Its open intents must have been closed
    /// before, so that a job whose files are all as intended counts as written. Of the others, a job counts
    /// as a failed attempt only if it had called a model.
    pub(crate) fn end_abandoned_jobs(
        &mut self,
        now: DateTime<Utc>,
        alive: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<JobRow>, LineageError> {
        // Usually there are none. A transaction would remove the note that the root is up to date.
        let any = "SELECT EXISTS (SELECT 1 FROM run WHERE ended IS NULL) \
                   OR EXISTS (SELECT 1 FROM activity WHERE state <> 'ended')";
        if !self.read(|conn| conn.query_row(any, [], |row| row.get::<_, bool>(0)))? {
            return Ok(Vec::new());
        }
        self.write(|tx| {
            let mut dead = Vec::new();
            let mut runs = tx.prepare("SELECT id, owner FROM run WHERE ended IS NULL")?;
            for run in runs.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))? {
                let (id, owner): (i64, String) = run?;
                if !alive(&owner) {
                    dead.push(id);
                }
            }
            let now = column::from_time(now);
            for id in dead {
                tx.execute("UPDATE run SET ended = ?2 WHERE id = ?1", params![id, now])?;
            }
            // A run that ended normally also leaves a live job when a task of it panicked.
            let abandoned =
                "WHERE state <> 'ended' AND run IN (SELECT id FROM run WHERE ended IS NOT NULL)";
            let ids: Vec<JobId> =
                jobs_where(tx, abandoned, [])?.into_iter().map(|it| it.id).collect();
            let mut ended = Vec::new();
            for id in ids {
                let written = format!(
                    "UPDATE activity SET state = 'written' WHERE id = ?1 AND {ALL_FILES_WRITTEN}"
                );
                tx.execute(&written, [id.0])?;
                tx.execute(
                    "UPDATE activity SET state = 'ended', ended = ?4, \
                     outcome = iif(state = 'written', 'written', 'failed'), \
                     reason = iif(state = 'written', ?3, ?2), \
                     path = (SELECT target FROM intent WHERE activity = ?1 AND state = 'done'), \
                     counts = (state IN ('called', 'replied')) WHERE id = ?1",
                    params![id.0, CRASHED, FINISHED, now],
                )?;
                ended.extend(jobs_where(tx, "WHERE id = ?1", [id.0])?);
            }
            Ok(ended)
        })
    }

    /// Returns the job in which a run wrote a file; `None` if it wrote it outside of any job, such as a
    /// person's correction.
    pub(crate) fn writing_job(
        &self,
        target: &str,
        run: RunId,
    ) -> Result<Option<JobRow>, LineageError> {
        let condition = "WHERE id = (SELECT activity FROM intent WHERE target = ?1 AND run = ?2 AND state = 'done' \
                     AND activity IS NOT NULL ORDER BY intent.id DESC LIMIT 1)";
        Ok(self.read(|conn| jobs_where(conn, condition, (target, run.0)))?.pop())
    }

    /// Returns the jobs whose receipt has that reason.
    pub(crate) fn jobs_with_reason(&self, reason: &str) -> Result<Vec<JobId>, LineageError> {
        let found = self.read(|conn| jobs_where(conn, "WHERE reason = ?1", [reason]))?;
        Ok(found.into_iter().map(|it| it.id).collect())
    }
}

impl JobId {
    /// Returns the number as the database stores it.
    pub(super) fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Ends a live job.
pub(super) fn end_job(
    tx: &Transaction<'_>,
    job: JobId,
    receipt: &Receipt,
) -> Result<(), TransactionError> {
    let counts =
        matches!(receipt.outcome, JobOutcome::Failed | JobOutcome::Stuck) && !receipt.excused;
    let ended = tx.execute(
        "UPDATE activity SET state = 'ended', outcome = ?2, reason = ?3, ended = ?4, path = ?5, \
         sources = ?6, source_chars = ?7, output_chars = ?8, items = ?9, rejected = ?10, \
         uncovered = ?11, model_calls = ?12, cost_usd = ?13, counts = ?14, \
         amounts = ?15, amounts_kept = ?16 \
         WHERE id = ?1 AND state <> 'ended'",
        params![
            job.0,
            receipt.outcome.name(),
            receipt.reason,
            column::from_time(receipt.ended),
            receipt.path,
            receipt.metrics.sources,
            receipt.metrics.source_chars.cast_signed(),
            receipt.metrics.output_chars.cast_signed(),
            receipt.metrics.items,
            receipt.metrics.rejected,
            receipt.metrics.uncovered,
            receipt.metrics.model_calls,
            receipt.metrics.cost_usd,
            counts,
            receipt.metrics.amounts,
            receipt.metrics.amounts_kept,
        ],
    )?;
    if ended == 0 { Err(LineageError::NotLive { job }.into()) } else { Ok(()) }
}

/// Records a job as planned.
pub(super) fn insert_job(
    tx: &Transaction<'_>,
    run: RunId,
    job: &NewJob,
) -> Result<JobId, TransactionError> {
    let fingerprint = job.fingerprint.to_string();
    let live = "SELECT 1 FROM activity WHERE fingerprint = ?1 AND state <> 'ended'";
    if tx.prepare_cached(live)?.query_row([&fingerprint], |_| Ok(())).optional()?.is_some() {
        return Err(LineageError::AlreadyLive { fingerprint: job.fingerprint.hex16() }.into());
    }
    let attempts: u32 =
        tx.prepare_cached(COUNT_FAILED_ATTEMPTS)?.query_row([&fingerprint], |row| row.get(0))?;
    tx.prepare_cached(
        "INSERT INTO activity \
         (run, fingerprint, tier, period, state, engine, inputs, attempt, started) \
         VALUES (?1, ?2, ?3, ?4, 'planned', ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        run.0,
        fingerprint,
        job.tier.name(),
        job.period.to_string(),
        job.engine,
        job.inputs.to_string(),
        attempts + 1,
        column::from_time(job.now),
    ])?;
    Ok(JobId(tx.last_insert_rowid()))
}

/// Records the progress of a live job.
fn set_stage(tx: &Transaction<'_>, job: JobId, state: JobStage) -> Result<(), TransactionError> {
    let live = "UPDATE activity SET state = ?2 WHERE id = ?1 AND state <> 'ended'";
    match tx.prepare_cached(live)?.execute(params![job.0, state.name()])? {
        0 => Err(LineageError::NotLive { job }.into()),
        _ => Ok(()),
    }
}

/// Reads jobs by number.
fn jobs_where(
    conn: &Connection,
    condition: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<JobRow>> {
    conn.prepare_cached(&format!(
        "SELECT id, run, fingerprint, tier, period, engine, inputs, attempt, started, \
         state = 'ended', outcome, reason, ended, path, \
         sources, source_chars, output_chars, items, rejected, uncovered, model_calls, cost_usd, \
         outcome = 'failed' AND counts = 0, amounts, amounts_kept FROM activity {condition} ORDER BY id"
    ))?
    .query_map(params, job_row)?
    .collect()
}

fn job_row(row: &Row<'_>) -> rusqlite::Result<JobRow> {
    Ok(JobRow {
        id: JobId(row.get(0)?),
        run: RunId(row.get(1)?),
        fingerprint: column::hash(row, 2)?,
        tier: column::named(row, 3, "tier", Tier::from_name)?,
        period: column::parsed(row, 4)?,
        engine: row.get(5)?,
        inputs: column::hash(row, 6)?,
        attempt: row.get(7)?,
        started: column::time(row, 8)?,
        receipt: if row.get(9)? {
            Some(Receipt {
                outcome: column::named(row, 10, "outcome", JobOutcome::from_name)?,
                reason: row.get(11)?,
                ended: column::time(row, 12)?,
                path: row.get(13)?,
                metrics: JobMetrics {
                    sources: row.get(14)?,
                    source_chars: row.get::<_, i64>(15)?.cast_unsigned(),
                    output_chars: row.get::<_, i64>(16)?.cast_unsigned(),
                    items: row.get(17)?,
                    rejected: row.get(18)?,
                    uncovered: row.get(19)?,
                    amounts: row.get(23)?,
                    amounts_kept: row.get(24)?,
                    model_calls: row.get(20)?,
                    cost_usd: row.get(21)?,
                },
                excused: row.get(22)?,
            })
        } else {
            None
        },
    })
}
