//! Batches in the ledger: requests that a provider answers within a day.
//!
//! A request is charged like any other when it is queued. Before a batch is sent, it is recorded with its
//! requests. So after a crash it is certain that a batch was not sent, or known that it may have been.

use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension as _, Row, params};

use super::{CallId, Ledger, LedgerError};
use crate::memory::hash::ContentHash;

/// How long the outcome of a request applies to a request with the same key. Providers answer within a day.
const STATUS_RETENTION: chrono::TimeDelta = chrono::TimeDelta::days(7);

/// The number of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchId(i64);

/// A batch that has not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchRow {
    /// Its number.
    pub id: BatchId,
    /// The server that answers.
    pub server: String,
    /// The prefix of the names of its requests.
    pub token: String,
    /// When it was about to be sent.
    pub at: DateTime<Utc>,
    /// The provider's name for it; `None` if it is unknown whether it arrived.
    pub remote: Option<String>,
}

/// A request of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchRequestRow {
    /// Its call.
    pub call: CallId,
    /// Its name, under which the reply is stored.
    pub key: ContentHash,
    /// Its length in bytes.
    pub bytes: u64,
}

/// The status of a request in batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestBatchStatus {
    /// It is queued, or in a batch that has not ended.
    pub is_pending: bool,
    /// How many batches ended without a reply to it.
    pub unanswered_batches: u32,
    /// A batch cannot answer it.
    pub needs_direct_call: bool,
}

/// The outcome of a request in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRequestOutcome {
    /// It was answered, and the reply is stored.
    Replied,
    /// It was not answered, and may go into another batch.
    Retry,
    /// It was not answered, and another batch would not help.
    CallDirectly,
    /// Nothing of it is stored any more.
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
    /// Returns the number, which names the call in a batch.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl Ledger {
    /// Records a call that is sent in a batch when its run ends.
    pub(crate) fn queue_request(
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

    /// Returns the status of a request in batches.
    pub(crate) fn batch_status(
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

    /// Records a batch that is about to be sent, with its calls.
    ///
    /// Fails if the ledger cannot be written; then the batch must not be sent.
    pub(crate) fn begin_batch(
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

    /// Records the provider's name for a batch, which means that it has arrived.
    pub(crate) fn record_batch_accepted(
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

    /// Records that a batch has ended: no more replies will come.
    pub(crate) fn end_batch(&mut self, batch: BatchId) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute("UPDATE batch SET state = 'ended' WHERE id = ?1", [batch.0])?;
            Ok(())
        })
    }

    /// Deletes a call that was queued and never sent.
    ///
    /// Fails if the ledger cannot be written; the call then stays charged.
    pub(crate) fn remove_queued(&mut self, call: CallId) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute("DELETE FROM batched WHERE call = ?1", [call.0])?;
            tx.execute("DELETE FROM call WHERE id = ?1", [call.0])?;
            Ok(())
        })
    }

    /// Records the outcome of a request. Its charge is corrected separately.
    pub(crate) fn record_request_outcome(
        &mut self,
        call: CallId,
        outcome: BatchRequestOutcome,
        now: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE batched SET state = ?2, at = ?3 WHERE call = ?1",
                params![call.0, outcome.name(), now.to_rfc3339()],
            )?;
            Ok(())
        })
    }

    /// Returns the batches of a root that have not ended, the oldest first.
    pub(crate) fn open_batches(&self, root: &str) -> Result<Vec<BatchRow>, LedgerError> {
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

    /// Returns whether any root has a batch that has not ended.
    pub(crate) fn has_open_batches(&self) -> Result<bool, LedgerError> {
        self.read(|conn| {
            conn.query_row(
                "SELECT EXISTS (SELECT 1 FROM batch WHERE state <> 'ended')",
                [],
                |row| row.get(0),
            )
        })
    }

    /// Returns whether the provider's batch with that name is in the ledger.
    pub(crate) fn is_own_batch(&self, server: &str, remote: &str) -> Result<bool, LedgerError> {
        self.read(|conn| {
            let found = conn
                .prepare_cached("SELECT 1 FROM batch WHERE server = ?1 AND remote = ?2")?
                .query_row([server, remote], |_| Ok(()))
                .optional()?;
            Ok(found.is_some())
        })
    }

    /// Returns the requests of a batch that have no outcome yet.
    pub(crate) fn pending_requests(
        &self,
        batch: BatchId,
    ) -> Result<Vec<BatchRequestRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT call, key, bytes FROM batched WHERE batch = ?1 AND state = 'sent'",
            )?
            .query_map([batch.0], batched_row)?
            .collect()
        })
    }

    /// Returns the requests of a root that were queued but never sent, because their run was interrupted.
    pub(crate) fn unsent_requests(&self, root: &str) -> Result<Vec<BatchRequestRow>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT call, key, bytes FROM batched WHERE root = ?1 AND state = 'queued'",
            )?
            .query_map([root], batched_row)?
            .collect()
        })
    }

    /// Returns the requests of a root whose replies were stored before `until` and never used.
    pub(crate) fn unused_replies_before(
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

    /// Marks the reply to a request as used, and returns its cost; `None` if no batch answered it.
    pub(crate) fn mark_reply_used(
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

    /// Returns how many requests of a root wait in batches, and the time of the oldest of these batches.
    pub(crate) fn pending_batch_requests(
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

/// Parses a time; an unreadable one counts as very old.
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

    /// Returns a ledger with `count` queued calls.
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
        // Later the outcome no longer applies.
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
