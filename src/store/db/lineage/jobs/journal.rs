//! The journal: intents to write, move or remove files.
//!
//! An intent is committed before the first byte of its file is written, so that recovery after a crash
//! knows which files to look at.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use rusqlite::{Connection, Params, Transaction, params};

use super::{
    CRASHED, FINISHED, IntentId, IntentOutcome, IntentRow, JobId, JobStage, NewIntent, RunId,
    set_stage,
};
use crate::{
    memory::hash::ContentHash,
    store::db::lineage::{
        Lineage, LineageError, TransactionError, column,
        history::{self, NewVersion, VersionCause},
    },
};

impl Lineage {
    /// Records that files are about to be written, and adds their old and new bytes to the history.
    ///
    /// The draft of the job, if there is one, has been checked.
    ///
    /// Fails if the database cannot be written; returns [`LineageError::NotLive`] for a job that
    /// has ended.
    pub(crate) fn begin_intents(
        &mut self,
        run: Option<RunId>,
        job: Option<JobId>,
        intents: &[NewIntent<'_>],
        now: DateTime<Utc>,
    ) -> Result<Vec<IntentId>, LineageError> {
        self.begin_intents_with(run, job, intents, &|_| true, now)
    }

    /// Like [`Self::begin_intents`], but adds to the history only the targets for which `keeps` is true.
    pub(crate) fn begin_intents_with(
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
                // The bytes of a moved file are already in the history, under its other path.
                let keeps = it.source.is_none() && keeps(it.target);
                insert_intent(tx, run, job, it, keeps, now)
            };
            intents.iter().map(begin).collect()
        })
    }

    /// Returns the intents that were not closed, the oldest first: a crash may have left them.
    pub(crate) fn open_intents(&self) -> Result<Vec<IntentRow>, LineageError> {
        self.read(|conn| intents_where(conn, "WHERE state = 'open'", []))
    }

    /// Returns what a run wrote, the oldest first: `undo` reverts these writes.
    pub(crate) fn writes_of_run(&self, run: RunId) -> Result<Vec<IntentRow>, LineageError> {
        let condition = "WHERE state = 'done' AND run = ?1";
        self.read(|conn| intents_where(conn, condition, [run.0]))
    }

    /// Returns all writes and removals, the oldest first.
    pub(crate) fn writes(&self) -> Result<Vec<IntentRow>, LineageError> {
        self.read(|conn| intents_where(conn, "WHERE state = 'done'", []))
    }

    /// Returns the files that a job with these inputs wrote before it crashed, unless they were written
    /// again since.
    pub(crate) fn interrupted_writes(
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

    /// Closes intents. [`Lineage::commit`] closes those of the job that commits.
    ///
    /// Returns [`LineageError::NotOpen`] for an intent that was closed before.
    pub(crate) fn close_intents(
        &mut self,
        intents: &[IntentId],
        end: IntentOutcome,
    ) -> Result<(), LineageError> {
        self.write(|tx| intents.iter().try_for_each(|&it| end_intent(tx, it, end)))
    }
}

/// Records an intent, and the bytes too if it `keeps` them; recovery needs only their hashes.
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
        // Bytes that memoird did not record were written by somebody else.
        let external =
            NewVersion { path: target, cause: VersionCause::ExternalWrite, bytes: Some(old) };
        history::add_version(tx, None, None, now, &external)?;
    }
    let store = |it| if keeps { history::put_content(tx, it) } else { Ok(ContentHash::of(it)) };
    let new_hash = new.map(store).transpose()?;
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

/// Closes an open intent.
pub(in crate::store::db::lineage) fn end_intent(
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
