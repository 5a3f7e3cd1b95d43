//! Runs, the jobs in them with their receipts, and the journal of files about to be written.
//!
//! A job stands in the database before its work begins and is live until a receipt ends it, so that
//! a crash leaves a trace and no fingerprint is worked on twice at once. An intent stands here
//! before the first byte of its file is written, so that a start after a crash knows what to look
//! at.

use std::{collections::BTreeSet, fmt};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, Transaction, params};
use serde::Serialize;

use super::{
    Lineage, LineageError, TransactionError, column,
    history::{self, NewVersion, VersionCause},
};
use crate::memory::{hash::ContentHash, item::Tier, period::Period};

/// The number of a run; people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub i64);

/// The number of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(i64);

/// The number of an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IntentId(i64);

/// A run as it begins.
#[derive(Clone, Copy, Debug)]
pub struct NewRun<'a> {
    /// What began it: `tick`, `change`, `compact`.
    pub trigger: &'a str,
    /// The version of memoird.
    pub version: &'a str,
    /// Names the process, so that others can tell whether it lives: see `Lineage::end_abandoned_jobs`.
    pub owner: &'a str,
    /// When.
    pub now: DateTime<Utc>,
}

/// A run as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its number.
    pub id: RunId,
    /// What began it.
    pub trigger: String,
    /// The version of memoird.
    pub version: String,
    /// When it began.
    pub started: DateTime<Utc>,
    /// When it ended; `None` while it is under way.
    pub ended: Option<DateTime<Utc>>,
}

/// A job as it begins.
#[derive(Clone, Debug)]
pub struct NewJob {
    /// Hash of root, tier, period, and inputs; unique among live jobs.
    pub fingerprint: ContentHash,
    /// What is made.
    pub tier: Tier,
    /// For which period; for wisdom, the month that is distilled.
    pub period: Period,
    /// Name and version of the engine.
    pub engine: String,
    /// Hash of the inputs.
    pub inputs: ContentHash,
    /// When.
    pub now: DateTime<Utc>,
}

/// How far a live job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStage {
    /// It stands in the database.
    Planned,
    /// A model is being called.
    Called,
    /// The raw reply is kept.
    Replied,
    /// It was drafted and checked; files are being written.
    Parsed,
    /// The files stand as intended.
    Written,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobOutcome {
    /// The bytes on disk were read back and match.
    Written,
    /// The file already said the same.
    Unchanged,
    /// Nothing was to be made, or not now.
    Skipped,
    /// It did not work; it will be tried again.
    Failed,
    /// It failed too often and waits for a person or for changed input.
    Stuck,
}

/// The record of an attempt. It is kept for ever: no words of a log belong into it.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// How it ended.
    pub outcome: JobOutcome,
    /// Why, where the outcome does not say it all.
    pub reason: Option<String>,
    /// When it ended.
    pub ended: DateTime<Utc>,
    /// The file, relative to the root.
    pub path: Option<String>,
    /// How much it was.
    pub metrics: JobMetrics,
    /// A failure that does not count towards parking, because it was not the work's fault.
    pub excused: bool,
}

/// How much a job read, made, and cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct JobMetrics {
    /// Number of sources.
    pub sources: u32,
    /// Characters of their text.
    pub source_chars: u64,
    /// Characters of the text that was made, citations not counted.
    pub output_chars: u64,
    /// Items that were written.
    pub items: u32,
    /// Items that did not stand the check.
    pub rejected: u32,
    /// Source lines that reached no item.
    pub uncovered: u32,
    /// Amounts and days of the lines that items of a model are about.
    pub amounts: u32,
    /// Those of them that the items say, too.
    pub amounts_kept: u32,
    /// Calls of a model.
    pub model_calls: u32,
    /// What they cost, in US dollars.
    pub cost_usd: f64,
}

/// A job as it is recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// Its number.
    pub id: JobId,
    /// The run that it belongs to.
    pub run: RunId,
    /// Hash of root, tier, period, and inputs.
    pub fingerprint: ContentHash,
    /// What is made.
    pub tier: Tier,
    /// For which period.
    pub period: Period,
    /// Name and version of the engine.
    pub engine: String,
    /// Hash of the inputs.
    pub inputs: ContentHash,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// When it began.
    pub started: DateTime<Utc>,
    /// How it ended; `None` while it is live.
    pub receipt: Option<Receipt>,
}

/// A file about to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewIntent<'a> {
    /// The file, relative to the root.
    pub target: &'a str,
    /// Where the bytes come from, for a file that is moved; for one that is removed because of that,
    /// where they stand.
    pub source: Option<&'a str>,
    /// The name of the temporary file in the same folder.
    pub temp: &'a str,
    /// The bytes to be written; `None` to remove the file.
    pub new: Option<&'a [u8]>,
    /// The bytes to be replaced; `None` for a new file.
    pub old: Option<&'a [u8]>,
    /// Whether the old bytes must not be kept.
    pub discards_old: bool,
}

/// An entry of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentRow {
    /// Its number.
    pub id: IntentId,
    /// The run that writes, if one does.
    pub run: Option<RunId>,
    /// The job, if one writes.
    pub job: Option<JobId>,
    /// The file, relative to the root.
    pub target: String,
    /// Where the bytes come from, for a file that is moved.
    pub source: Option<String>,
    /// The name of the temporary file.
    pub temp: String,
    /// The hash of the bytes to be written; `None` to remove the file.
    pub new_hash: Option<ContentHash>,
    /// The hash of the bytes to be replaced; `None` for a new file.
    pub old_hash: Option<ContentHash>,
    /// Whether the old bytes must not be kept.
    pub discards_old: bool,
}

/// How an intent was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentOutcome {
    /// The file stands as intended.
    Done,
    /// The file was left as it was.
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
            Self::Planned => "planned",
            Self::Called => "called",
            Self::Replied => "replied",
            Self::Parsed => "parsed",
            Self::Written => "written",
        }
    }
}

impl Receipt {
    /// Returns a receipt that tells an outcome and a reason, and no numbers.
    pub fn new(outcome: JobOutcome, reason: Option<String>, ended: DateTime<Utc>) -> Self {
        Self { outcome, reason, ended, path: None, metrics: JobMetrics::default(), excused: false }
    }
}

/// Why a job ended that its process did not survive.
const CRASHED: &str = "ended by a crash";
/// Why a job counts as written that its process did not survive.
const FINISHED: &str = "finished after a crash";

/// A job all of whose files stand as intended has written, whatever became of its process.
const ALL_FILES_WRITTEN: &str = "state = 'parsed' \
    AND EXISTS (SELECT 1 FROM intent WHERE activity = activity.id) \
    AND NOT EXISTS (SELECT 1 FROM intent WHERE activity = activity.id AND state <> 'done')";

/// A failure counts once it has ended so, and until the same fingerprint has once gone well.
const COUNT_FAILED_ATTEMPTS: &str = "SELECT count(*) FROM activity WHERE fingerprint = ?1 AND counts = 1 AND id > \
    ifnull((SELECT max(id) FROM activity WHERE fingerprint = ?1 \
    AND outcome IN ('written', 'unchanged')), 0)";

impl Lineage {
    /// Records that a run began.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn begin_run(&mut self, run: &NewRun<'_>) -> Result<RunId, LineageError> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO run (cause, version, owner, started) VALUES (?1, ?2, ?3, ?4)",
                params![run.trigger, run.version, run.owner, column::from_time(run.now)],
            )?;
            Ok(RunId(tx.last_insert_rowid()))
        })
    }

    /// Records that a run ended.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn end_run(&mut self, run: RunId, now: DateTime<Utc>) -> Result<(), LineageError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE run SET ended = ?2 WHERE id = ?1 AND ended IS NULL",
                params![run.0, column::from_time(now)],
            )?;
            Ok(())
        })
    }

    /// Returns number and seal of the newest run that has ended.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn last_ended_run(&self) -> Result<Option<(RunId, i64)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, seal FROM run WHERE ended IS NOT NULL ORDER BY id DESC LIMIT 1",
            )?
            .query_row([], |row| Ok((RunId(row.get(0)?), row.get(1)?)))
            .optional()
        })
    }

    /// Returns the seal of a run.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn run_checksum(&self, run: RunId) -> Result<Option<i64>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT seal FROM run WHERE id = ?1")?
                .query_row([run.0], |row| row.get(0))
                .optional()
        })
    }

    /// Returns the last runs, the newest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn last_runs(&self, at_most: u32) -> Result<Vec<RunRow>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, cause, version, started, ended FROM run ORDER BY id DESC LIMIT ?1",
            )?
            .query_map([at_most], |row| {
                Ok(RunRow {
                    id: RunId(row.get(0)?),
                    trigger: row.get(1)?,
                    version: row.get(2)?,
                    started: column::time(row, 3)?,
                    ended: column::time_or_null(row, 4)?,
                })
            })?
            .collect()
        })
    }

    /// Returns the runs that have not ended, each with its owner, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn open_runs(&self) -> Result<Vec<(RunId, String)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT id, owner FROM run WHERE ended IS NULL ORDER BY id")?
                .query_map([], |row| Ok((RunId(row.get(0)?), row.get(1)?)))?
                .collect()
        })
    }

    /// Records that a job begins. From now on it is live.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::AlreadyLive`] when a job with the same fingerprint is.
    pub fn begin_job(&mut self, run: RunId, job: &NewJob) -> Result<JobId, LineageError> {
        self.write(|tx| insert_job(tx, run, job))
    }

    /// Records how far a live job has come. A job that is about to call a model says so before the
    /// call, so that the attempt counts whatever happens.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::NotLive`] for a job that has ended.
    pub fn set_job_stage(&mut self, job: JobId, state: JobStage) -> Result<(), LineageError> {
        self.write(|tx| set_stage(tx, job, state))
    }

    /// Ends a job that changes nothing else. One that wrote files ends in [`Lineage::commit`].
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::NotLive`] for a job that has ended.
    pub fn finish_job(&mut self, job: JobId, receipt: &Receipt) -> Result<(), LineageError> {
        self.write(|tx| end_job(tx, job, receipt))
    }

    /// Returns the run that a job belongs to.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn run_of_job(&self, job: JobId) -> Result<RunId, LineageError> {
        self.read(|conn| {
            conn.query_row("SELECT run FROM activity WHERE id = ?1", [job.0], |row| {
                Ok(RunId(row.get(0)?))
            })
        })
    }

    /// Returns how often jobs of this fingerprint failed since one last went well.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn failed_attempts(&self, fingerprint: ContentHash) -> Result<u32, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(COUNT_FAILED_ATTEMPTS)?
                .query_row([fingerprint.to_string()], |row| row.get(0))
        })
    }

    /// Returns the newest ended job of each tier and period, by tier and period.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn last_receipts(&self) -> Result<Vec<JobRow>, LineageError> {
        let newest = "WHERE id IN \
            (SELECT max(id) FROM activity WHERE state = 'ended' GROUP BY tier, period)";
        let mut jobs = self.read(|conn| jobs_where(conn, newest, []))?;
        jobs.sort_by_key(|it| (it.tier, it.period));
        Ok(jobs)
    }

    /// Returns the jobs that wait for a person or for changed input, by tier and period.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn stuck_jobs(&self) -> Result<Vec<JobRow>, LineageError> {
        let mut jobs = self.last_receipts()?;
        jobs.retain(|it| it.receipt.as_ref().is_some_and(|r| r.outcome == JobOutcome::Stuck));
        Ok(jobs)
    }

    /// Returns the jobs that are under way, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn live_jobs(&self) -> Result<Vec<JobRow>, LineageError> {
        self.read(|conn| jobs_where(conn, "WHERE state <> 'ended'", []))
    }

    /// Returns the jobs of a run, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn jobs_of_run(&self, run: RunId) -> Result<Vec<JobRow>, LineageError> {
        let mut jobs = self.read(|conn| jobs_where(conn, "WHERE run = ?1", [run.0]))?;
        jobs.sort_by_key(|it| it.id);
        Ok(jobs)
    }

    /// Ends the jobs whose process is gone, and returns them as they are now.
    ///
    /// `alive` is asked with the `owner` of each run that has not ended. What it was about to write
    /// has been looked at before, so a job all of whose files stand is written. Of the others, one
    /// that had called a model counts as an attempt; one that had not does not: it did no harm.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn end_abandoned_jobs(
        &mut self,
        now: DateTime<Utc>,
        alive: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<JobRow>, LineageError> {
        // Most passes find nothing, and what commits takes the note of a standstill away.
        let any = "SELECT EXISTS (SELECT 1 FROM run WHERE ended IS NULL) \
                   OR EXISTS (SELECT 1 FROM activity WHERE state <> 'ended')";
        if !self.read(|conn| conn.query_row(any, [], |row| row.get::<_, bool>(0)))? {
            return Ok(Vec::new());
        }
        self.write(|tx| {
            let mut gone = Vec::new();
            let mut runs = tx.prepare("SELECT id, owner FROM run WHERE ended IS NULL")?;
            for run in runs.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))? {
                let (id, owner): (i64, String) = run?;
                if !alive(&owner) {
                    gone.push(id);
                }
            }
            let now = column::from_time(now);
            for id in gone {
                tx.execute("UPDATE run SET ended = ?2 WHERE id = ?1", params![id, now])?;
            }
            // A run that ended in order can leave a live job too: one whose task panicked.
            let left =
                "WHERE state <> 'ended' AND run IN (SELECT id FROM run WHERE ended IS NOT NULL)";
            let ids: Vec<JobId> = jobs_where(tx, left, [])?.into_iter().map(|it| it.id).collect();
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

    /// Records that files are about to be written, and keeps what is to stand and what stands there.
    ///
    /// The job, if there is one, has been drafted and checked.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written, and [`LineageError::NotLive`] for a job that
    /// has ended.
    pub fn begin_intents(
        &mut self,
        run: Option<RunId>,
        job: Option<JobId>,
        intents: &[NewIntent<'_>],
        now: DateTime<Utc>,
    ) -> Result<Vec<IntentId>, LineageError> {
        self.begin_intents_with(run, job, intents, &|_| true, now)
    }

    /// Like [`Self::begin_intents`], but keeps the bytes of those targets only that `keeps` names.
    ///
    /// # Errors
    ///
    /// Returns what [`Self::begin_intents`] does.
    pub fn begin_intents_with(
        &mut self,
        run: Option<RunId>,
        job: Option<JobId>,
        intents: &[NewIntent<'_>],
        keeps: &dyn Fn(&str) -> bool,
        now: DateTime<Utc>,
    ) -> Result<Vec<IntentId>, LineageError> {
        self.write(|tx| {
            if let Some(job) = job {
                set_stage(tx, job, JobStage::Parsed)?;
            }
            let begin = |it: &NewIntent<'_>| {
                // What is moved has its history under the name that it keeps.
                let keeps = it.source.is_none() && keeps(it.target);
                insert_intent(tx, run, job, it, keeps, now)
            };
            intents.iter().map(begin).collect()
        })
    }

    /// Returns the intents that were not closed, the oldest first: what a crash may have left.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn open_intents(&self) -> Result<Vec<IntentRow>, LineageError> {
        self.read(|conn| intents_where(conn, "WHERE state = 'open'", []))
    }

    /// Returns what a run wrote, the oldest first: what `undo` takes back.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn writes_of_run(&self, run: RunId) -> Result<Vec<IntentRow>, LineageError> {
        let of_run = "WHERE state = 'done' AND run = ?1";
        self.read(|conn| intents_where(conn, of_run, [run.0]))
    }

    /// Returns the job by which a run wrote a file; `None` where it wrote it for no job, as when a person
    /// put an item right.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn writing_job(&self, target: &str, run: RunId) -> Result<Option<JobRow>, LineageError> {
        let wrote = "WHERE id = (SELECT activity FROM intent WHERE target = ?1 AND run = ?2 AND state = 'done' \
                     AND activity IS NOT NULL ORDER BY intent.id DESC LIMIT 1)";
        Ok(self.read(|conn| jobs_where(conn, wrote, (target, run.0)))?.pop())
    }

    /// Returns all that runs wrote and removed, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn writes(&self) -> Result<Vec<IntentRow>, LineageError> {
        self.read(|conn| intents_where(conn, "WHERE state = 'done'", []))
    }

    /// Returns the files that a job with these inputs wrote before a crash ended it, and that nothing
    /// was written to since.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn interrupted_writes(
        &self,
        inputs: ContentHash,
    ) -> Result<BTreeSet<String>, LineageError> {
        self.read(|conn| {
            let mut found = conn.prepare_cached(
                "SELECT target FROM intent JOIN activity ON activity.id = intent.activity \
                 WHERE inputs = ?1 AND reason IN (?2, ?3) AND intent.state = 'done' \
                 AND NOT EXISTS (SELECT 1 FROM intent AS later WHERE later.id > intent.id \
                 AND later.target = intent.target AND later.state = 'done')",
            )?;
            let inputs = inputs.to_string();
            let rows = found.query_map(params![inputs, CRASHED, FINISHED], |row| row.get(0))?;
            rows.collect()
        })
    }

    /// Returns the jobs whose receipt gives that reason.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn jobs_with_reason(&self, reason: &str) -> Result<Vec<JobId>, LineageError> {
        let found = self.read(|conn| jobs_where(conn, "WHERE reason = ?1", [reason]))?;
        Ok(found.into_iter().map(|it| it.id).collect())
    }

    /// Closes intents. Those whose job commits are closed by [`Lineage::commit`].
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::NotOpen`] for an intent that was closed before.
    pub fn close_intents(
        &mut self,
        intents: &[IntentId],
        end: IntentOutcome,
    ) -> Result<(), LineageError> {
        self.write(|tx| intents.iter().try_for_each(|&it| end_intent(tx, it, end)))
    }
}

impl JobId {
    /// Returns the number as the database keeps it.
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

/// Enters a job as planned.
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

/// Enters an intent, and `keeps` the bytes that it is about; recovery needs their hashes only.
fn insert_intent(
    tx: &Transaction<'_>,
    run: Option<RunId>,
    job: Option<JobId>,
    intent: &NewIntent<'_>,
    keeps: bool,
    now: DateTime<Utc>,
) -> Result<IntentId, TransactionError> {
    let NewIntent { target, source, temp, new, old, discards_old: forgets } = *intent;
    if let Some(old) = old.filter(|_| keeps && !forgets) {
        // What nobody recorded is somebody else's work.
        let found =
            NewVersion { path: target, cause: VersionCause::ExternalWrite, bytes: Some(old) };
        history::add_version(tx, None, None, now, &found)?;
    }
    let put = |it| if keeps { history::put_content(tx, it) } else { Ok(ContentHash::of(it)) };
    let new_hash = new.map(put).transpose()?;
    tx.prepare_cached(
        "INSERT INTO intent (run, activity, target, source, temp, new_hash, old_hash, forgets, state) \
         VALUES (ifnull(?1, (SELECT run FROM activity WHERE id = ?2)), ?2, ?3, ?4, ?5, ?6, ?7, ?8, \
         'open')",
    )?
    .execute(params![
        run.map(|it| it.0),
        job.map(|it| it.0),
        target,
        source,
        temp,
        new_hash.map(|it| it.to_string()),
        old.map(|it| ContentHash::of(it).to_string()),
        forgets,
    ])?;
    Ok(IntentId(tx.last_insert_rowid()))
}

/// Moves a live job on.
fn set_stage(tx: &Transaction<'_>, job: JobId, state: JobStage) -> Result<(), TransactionError> {
    let live = "UPDATE activity SET state = ?2 WHERE id = ?1 AND state <> 'ended'";
    match tx.prepare_cached(live)?.execute(params![job.0, state.name()])? {
        0 => Err(LineageError::NotLive { job }.into()),
        _ => Ok(()),
    }
}

/// Closes an open intent.
pub(super) fn end_intent(
    tx: &Transaction<'_>,
    intent: IntentId,
    end: IntentOutcome,
) -> Result<(), TransactionError> {
    let state = match end {
        IntentOutcome::Done => "done",
        IntentOutcome::Abandoned => "dropped",
    };
    let closed = tx.execute(
        "UPDATE intent SET state = ?2 WHERE id = ?1 AND state = 'open'",
        params![intent.0, state],
    )?;
    if closed == 0 { Err(LineageError::NotOpen { intent: intent.0 }.into()) } else { Ok(()) }
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

/// Reads intents by number.
fn intents_where(
    conn: &Connection,
    condition: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<IntentRow>> {
    conn.prepare_cached(&format!(
        "SELECT id, run, activity, target, source, temp, new_hash, old_hash, forgets FROM intent \
         {condition} ORDER BY id"
    ))?
    .query_map(params, |row| {
        Ok(IntentRow {
            id: IntentId(row.get(0)?),
            run: row.get::<_, Option<i64>>(1)?.map(RunId),
            job: row.get::<_, Option<i64>>(2)?.map(JobId),
            target: row.get(3)?,
            source: row.get(4)?,
            temp: row.get(5)?,
            new_hash: column::hash_or_null(row, 6)?,
            old_hash: column::hash_or_null(row, 7)?,
            discards_old: row.get(8)?,
        })
    })?
    .collect()
}
