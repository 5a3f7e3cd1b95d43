//! Runs: when each began and ended.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, params};

use super::{NewRun, RunId, RunRow};
use crate::store::db::lineage::{Lineage, LineageError, column};

impl Lineage {
    /// Records that a run began.
    pub(crate) fn begin_run(&mut self, run: &NewRun<'_>) -> Result<RunId, LineageError> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO run (cause, version, owner, started) VALUES (?1, ?2, ?3, ?4)",
                params![run.trigger, run.version, run.owner, column::from_time(run.now)],
            )?;
            Ok(RunId(tx.last_insert_rowid()))
        })
    }

    /// Records that a run ended.
    pub(crate) fn end_run(&mut self, run: RunId, now: DateTime<Utc>) -> Result<(), LineageError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE run SET ended = ?2 WHERE id = ?1 AND ended IS NULL",
                params![run.0, column::from_time(now)],
            )?;
            Ok(())
        })
    }

    /// Returns number and checksum of the newest run that has ended.
    pub(crate) fn last_ended_run(&self) -> Result<Option<(RunId, i64)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, seal FROM run WHERE ended IS NOT NULL ORDER BY id DESC LIMIT 1",
            )?
            .query_row([], |row| Ok((RunId(row.get(0)?), row.get(1)?)))
            .optional()
        })
    }

    /// Returns the checksum of a run.
    pub(crate) fn run_checksum(&self, run: RunId) -> Result<Option<i64>, LineageError> {
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
    /// Fails if the database cannot be read.
    pub fn last_runs(&self, count_max: u32) -> Result<Vec<RunRow>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, cause, version, started, ended FROM run ORDER BY id DESC LIMIT ?1",
            )?
            .query_map([count_max], |row| {
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
    pub(crate) fn open_runs(&self) -> Result<Vec<(RunId, String)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT id, owner FROM run WHERE ended IS NULL ORDER BY id")?
                .query_map([], |row| Ok((RunId(row.get(0)?), row.get(1)?)))?
                .collect()
        })
    }
}
