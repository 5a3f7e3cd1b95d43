//! Batches in the ledger: what was handed to a provider to be answered within a day.
//!
//! A request is charged like any other when it is queued. Before a batch is sent, its requests are
//! noted with it, so that a crash leaves either a batch that was surely never sent, or one of which it
//! is known that it may have been.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, Row, params};

use super::{CallId, Ledger, LedgerError};
use crate::memory::hash::ContentHash;

/// How long what became of a request counts for the same request: a day later nobody remembers.
const STATUS_RETENTION: chrono::TimeDelta = chrono::TimeDelta::days(7);

/// The number of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchId(i64);

/// A batch that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRow {
    /// Its number.
    pub id: BatchId,
    /// Who answers.
    pub server: String,
    /// What the names of its requests begin with.
    pub token: String,
    /// When it was about to be sent.
    pub at: DateTime<Utc>,
    /// The provider's name for it; `None` where it is not known whether it arrived.
    pub remote: Option<String>,
}

/// A request of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRequestRow {
    /// Its call.
    pub call: CallId,
    /// Its name, under which the reply is kept.
    pub key: ContentHash,
    /// How long it is, in bytes.
    pub bytes: u64,
}

/// What is known of a request from batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBatchStatus {
    /// It is queued, or in a batch that has not ended.
    pub is_pending: bool,
    /// How many batches ended without a reply to it.
    pub unanswered_batches: u32,
    /// A batch cannot answer it.
    pub needs_direct_call: bool,
}

/// What becomes of a request of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRequestOutcome {
    /// It was answered, and the reply is kept.
    Replied,
    /// It was not answered, and may be asked in another batch.
    Retry,
    /// It was not answered, and a batch would not do better.
    CallDirectly,
    /// Nothing is kept of it, or not any more.
    Done,
}

impl BatchRequestOutcome {
    fn name(self) -> &'static str {
        match self {
            Self::Replied => "kept",
            Self::Retry => "again",
            Self::CallDirectly => "direct",
            Self::Done => "done",
        }
    }
}

impl CallId {
    /// Returns the number, to name the call in a batch.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl Ledger {
    /// Notes a call that waits for the end of its pass, to be sent in a batch.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn queue_request(
        &mut self,
        row: &BatchRequestRow,
        root: &str,
        now: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "INSERT INTO batched (call, root, key, bytes, state, at) \
                 VALUES (?1, ?2, ?3, ?4, 'queued', ?5)",
                params![row.call.0, root, row.key.as_bytes(), row.bytes, now.to_rfc3339()],
            )?;
            Ok(())
        })
    }

    /// Returns what is known of a request from batches.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn batch_status(
        &self,
        key: ContentHash,
        now: DateTime<Utc>,
    ) -> Result<RequestBatchStatus, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT total(state IN ('queued', 'sent')) > 0, \
                 ifnull(sum(state = 'again'), 0), total(state = 'direct') > 0 \
                 FROM batched WHERE key = ?1 AND (at >= ?2 OR state IN ('queued', 'sent'))",
            )?
            .query_row(
                params![key.as_bytes(), (now - STATUS_RETENTION).to_rfc3339()],
                |row| {
                    Ok(RequestBatchStatus {
                        is_pending: row.get(0)?,
                        unanswered_batches: row.get(1)?,
                        needs_direct_call: row.get(2)?,
                    })
                },
            )
        })
    }

    /// Notes a batch that is about to be sent, with its calls.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded; it must not be sent then.
    pub fn begin_batch(
        &mut self,
        (server, model, root): (&str, &str, &str),
        token: &str,
        calls: &[CallId],
        now: DateTime<Utc>,
    ) -> Result<BatchId, LedgerError> {
        self.write(|tx| {
            let at = now.to_rfc3339();
            tx.execute(
                "INSERT INTO batch (server, model, root, token, at, state) \
                 VALUES (?1, ?2, ?3, ?4, ?5, 'sending')",
                params![server, model, root, token, at],
            )?;
            let batch = tx.last_insert_rowid();
            let mut put = tx.prepare_cached(
                "UPDATE batched SET batch = ?2, state = 'sent', at = ?3 WHERE call = ?1",
            )?;
            for call in calls {
                put.execute(params![call.0, batch, at])?;
            }
            Ok(BatchId(batch))
        })
    }

    /// Notes how the provider names a batch: it has arrived.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn record_batch_accepted(
        &mut self,
        batch: BatchId,
        remote: &str,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE batch SET state = 'open', remote = ?2 WHERE id = ?1",
                params![batch.0, remote],
            )?;
            Ok(())
        })
    }

    /// Notes that nothing more is to come of a batch.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn end_batch(&mut self, batch: BatchId) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute("UPDATE batch SET state = 'ended' WHERE id = ?1", [batch.0])?;
            Ok(())
        })
    }

    /// Takes back a call that was queued and never left: it is none.
    ///
    /// # Errors
    ///
    /// Returns why it could not be taken back; it stays charged.
    pub fn remove_queued(&mut self, call: CallId) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute("DELETE FROM batched WHERE call = ?1", [call.0])?;
            tx.execute("DELETE FROM call WHERE id = ?1", [call.0])?;
            Ok(())
        })
    }

    /// Notes what became of a request. Its charge is corrected apart.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn record_request_outcome(
        &mut self,
        call: CallId,
        fate: BatchRequestOutcome,
        now: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE batched SET state = ?2, at = ?3 WHERE call = ?1",
                params![call.0, fate.name(), now.to_rfc3339()],
            )?;
            Ok(())
        })
    }

    /// Returns the batches of a root that are under way, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn open_batches(&self, root: &str) -> Result<Vec<BatchRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT id, server, token, at, remote FROM batch \
                 WHERE root = ?1 AND state <> 'ended' ORDER BY id",
            )?
            .query_map([root], |row| {
                Ok(BatchRow {
                    id: BatchId(row.get(0)?),
                    server: row.get(1)?,
                    token: row.get(2)?,
                    at: time(&row.get::<_, String>(3)?),
                    remote: row.get(4)?,
                })
            })?
            .collect()
        })
    }

    /// Returns whether any root has a batch under way.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn has_open_batches(&self) -> Result<bool, LedgerError> {
        self.read(|conn| {
            conn.query_row(
                "SELECT EXISTS (SELECT 1 FROM batch WHERE state <> 'ended')",
                [],
                |row| row.get(0),
            )
        })
    }

    /// Returns whether the provider's batch of that name is one of ours.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn is_own_batch(&self, server: &str, remote: &str) -> Result<bool, LedgerError> {
        self.read(|conn| {
            let found = conn
                .prepare_cached("SELECT 1 FROM batch WHERE server = ?1 AND remote = ?2")?
                .query_row([server, remote], |_| Ok(()))
                .optional()?;
            Ok(found.is_some())
        })
    }

    /// Returns the requests of a batch that have no known end.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn pending_requests(&self, batch: BatchId) -> Result<Vec<BatchRequestRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT call, key, bytes FROM batched WHERE batch = ?1 AND state = 'sent'",
            )?
            .query_map([batch.0], batched_row)?
            .collect()
        })
    }

    /// Returns the requests of a root that were queued by a pass that did not come to its end: they
    /// were never sent.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn unsent_requests(&self, root: &str) -> Result<Vec<BatchRequestRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT call, key, bytes FROM batched WHERE root = ?1 AND state = 'queued'",
            )?
            .query_map([root], batched_row)?
            .collect()
        })
    }

    /// Returns the requests of a root whose replies are kept since before `until`.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn unused_replies_before(
        &self,
        root: &str,
        until: DateTime<Utc>,
    ) -> Result<Vec<BatchRequestRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT call, key, bytes FROM batched \
                 WHERE root = ?1 AND state = 'kept' AND at < ?2",
            )?
            .query_map(params![root, until.to_rfc3339()], batched_row)?
            .collect()
        })
    }

    /// Counts the reply to a request as used, and returns what it cost; `None` if none came from a batch.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn mark_reply_used(
        &mut self,
        key: ContentHash,
        now: DateTime<Utc>,
    ) -> Result<Option<f64>, LedgerError> {
        self.write(|tx| {
            let cost = tx
                .prepare_cached(
                    "SELECT total(call.charged_usd), count(*) FROM batched \
                     JOIN call ON call.id = batched.call \
                     WHERE batched.key = ?1 AND batched.state = 'kept'",
                )?
                .query_row([key.as_bytes()], |row| {
                    Ok((row.get::<_, u32>(1)? > 0).then_some(row.get(0)?))
                })?;
            tx.execute(
                "UPDATE batched SET state = 'done', at = ?2 WHERE key = ?1 AND state = 'kept'",
                params![key.as_bytes(), now.to_rfc3339()],
            )?;
            Ok(cost)
        })
    }

    /// Returns how many requests of a root are in batches that have not ended, and since when.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn pending_batch_requests(
        &self,
        root: &str,
    ) -> Result<Option<(u64, DateTime<Utc>)>, LedgerError> {
        self.read(|conn| {
            let (count, since): (u64, Option<String>) = conn
                .prepare_cached(
                    "SELECT count(*), min(batch.at) FROM batched JOIN batch ON batch.id = batched.batch \
                     WHERE batch.root = ?1 AND batch.state <> 'ended' AND batched.state = 'sent'",
                )?
                .query_row([root], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(since.map(|it| (count, time(&it))))
        })
    }
}

fn batched_row(row: &Row<'_>) -> rusqlite::Result<BatchRequestRow> {
    let key = ContentHash::from_bytes(row.get(1)?);
    Ok(BatchRequestRow { call: CallId(row.get(0)?), key, bytes: row.get(2)? })
}

/// Reads a time that we wrote; one that somebody spoiled is very old.
fn time(text: &str) -> DateTime<Utc> {
    DateTime::parse_from_rfc3339(text).map_or(DateTime::UNIX_EPOCH, |it| it.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::db::ledger::{CallBudgets, CallResult, NewCall, UsageGroupBy};

    const ROOT: &str = "/a";

    fn at(hour: u32) -> DateTime<Utc> {
        format!("2026-04-13T{hour:02}:00:00Z").parse().unwrap()
    }

    /// A ledger with so many queued calls.
    fn queued(dir: &tempfile::TempDir, count: u8) -> (Ledger, Vec<BatchRequestRow>) {
        let day = at(7).date_naive();
        let mut ledger = Ledger::open(&dir.path().join("ledger.db"), false, day).unwrap();
        let rows = (0..count).map(|n| {
            let call = NewCall {
                at: at(7),
                day,
                root: ROOT,
                run: None,
                stage: "weekly",
                period: "2026-W15",
                provider: "openai",
                model: "m",
                tokens: 1000,
                usd: Some(0.5),
                price_date: None,
            };
            let call = ledger.reserve(&call, &CallBudgets::default()).unwrap().unwrap();
            let row = BatchRequestRow { call, key: ContentHash::of([n]), bytes: 9 };
            ledger.queue_request(&row, ROOT, at(7)).unwrap();
            row
        });
        let rows = rows.collect();
        (ledger, rows)
    }

    #[test]
    fn a_request_waits_until_its_batch_has_ended() {
        let dir = tempfile::tempdir().unwrap();
        let (mut ledger, rows) = queued(&dir, 3);
        let key = rows[0].key;
        assert!(ledger.batch_status(key, at(7)).unwrap().is_pending);
        let calls: Vec<CallId> = rows[..2].iter().map(|it| it.call).collect();
        let batch = ledger.begin_batch(("s", "m", ROOT), "t", &calls, at(8)).unwrap();
        // The third was never sent.
        assert_eq!(ledger.unsent_requests(ROOT).unwrap(), rows[2..]);
        assert_eq!(ledger.open_batches(ROOT).unwrap()[0].remote, None);
        assert!(ledger.open_batches("/b").unwrap().is_empty());
        assert_eq!(ledger.pending_batch_requests(ROOT).unwrap(), Some((2, at(8))));
        ledger.record_batch_accepted(batch, "b-1").unwrap();
        assert_eq!(ledger.open_batches(ROOT).unwrap()[0].remote.as_deref(), Some("b-1"));
        assert!(ledger.is_own_batch("s", "b-1").unwrap());
        assert!(!ledger.is_own_batch("other", "b-1").unwrap());

        ledger.record_request_outcome(rows[0].call, BatchRequestOutcome::Retry, at(9)).unwrap();
        let settled = CallResult { usd: Some(0.2), ..CallResult::default() };
        ledger.finish_call(rows[1].call, &settled).unwrap();
        ledger.record_request_outcome(rows[1].call, BatchRequestOutcome::Replied, at(9)).unwrap();
        ledger.end_batch(batch).unwrap();
        assert_eq!(ledger.pending_batch_requests(ROOT).unwrap(), None);
        let known = ledger.batch_status(key, at(9)).unwrap();
        assert_eq!(
            known,
            RequestBatchStatus {
                is_pending: false,
                unanswered_batches: 1,
                needs_direct_call: false
            }
        );
        // Long after that it is a request like any other.
        let later = at(9) + chrono::TimeDelta::days(8);
        assert_eq!(ledger.batch_status(key, later).unwrap(), RequestBatchStatus::default());
        let sums = ledger.usage_totals(UsageGroupBy::Day, None, None).unwrap();
        assert_eq!((sums[0].calls, sums[0].batched), (3, 2));

        ledger.remove_queued(rows[2].call).unwrap();
        assert!(ledger.unsent_requests(ROOT).unwrap().is_empty());
        assert_eq!(ledger.usage_totals(UsageGroupBy::Day, None, None).unwrap()[0].calls, 2);

        assert_eq!(ledger.unused_replies_before(ROOT, at(10)).unwrap(), rows[1..2]);
        assert!(ledger.unused_replies_before(ROOT, at(9)).unwrap().is_empty());
        assert_eq!(ledger.mark_reply_used(rows[1].key, at(10)).unwrap(), Some(0.2));
        assert_eq!(ledger.mark_reply_used(rows[1].key, at(10)).unwrap(), None);
    }
}
