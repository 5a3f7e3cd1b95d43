//! The ledger: every model call of a person, over all roots, with its tokens and cost.
//!
//! A SQLite database in the person's state folder. Before a call is sent, one transaction checks the budgets
//! and charges the worst case ([`Ledger::reserve`]); afterwards the charge is corrected
//! ([`Ledger::finish_call`]). A call interrupted by a crash stays charged as its worst case. The state of
//! each server (circuit breaker, dialect) is stored here too, so that it survives a restart.
//!
//! The ledger holds no words of logs, prompts or replies.
//!
//! - [`batch`]: requests that a provider answers later.
//! - `budget`: what was charged, and whether another call would exceed a limit.
//! - `server`: what is known about servers and models.

pub mod batch;
mod budget;
mod server;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use chrono::{DateTime, NaiveDate, Utc};
use rusqlite::{Connection, TransactionBehavior, params};
use serde::Serialize;

use super::connection::{self, BUSY_TIMEOUT};

/// The tables of a new ledger.
const SCHEMA: &str = include_str!("../../../../schema/ledger.sql");
/// The version of [`SCHEMA`]. No ledger of a version before it was ever released.
const SCHEMA_VERSION: usize = 3;

/// The open ledger.
#[derive(Debug)]
pub struct Ledger {
    conn: Connection,
    path: PathBuf,
}

/// Why the ledger could not be read or written; then no call is made.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Folder or file cannot be created.
    #[error("`{}`: {source}", path.display())]
    File {
        /// The folder or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// SQLite failed.
    #[error("`{}`: {source}", path.display())]
    Sql {
        /// The ledger.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// Another version of memoird wrote it.
    #[error(
        "`{}` has schema {found}, this memoird knows {SCHEMA_VERSION}; use the memoird that wrote it",
        path.display()
    )]
    OtherSchema {
        /// The ledger.
        path: PathBuf,
        /// Its schema.
        found: usize,
    },
}

/// The number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId(i64);

/// A call that is about to be made.
#[derive(Clone, Debug)]
pub struct NewCall<'a> {
    /// The time, in UTC.
    pub at: DateTime<Utc>,
    /// The day in the root's time zone.
    pub day: NaiveDate,
    /// The root's folder; empty for a call that belongs to no root.
    pub root: &'a str,
    /// The run that makes the call, if any.
    pub run: Option<i64>,
    /// The stage of the run.
    pub stage: &'a str,
    /// The period that is worked on.
    pub period: &'a str,
    /// The provider, whose protocol is spoken.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The worst case, in input and output tokens.
    pub tokens: u64,
    /// The worst case, in US dollars; `None` if the price is unknown.
    pub usd: Option<f64>,
    /// The date of the price.
    pub price_date: Option<NaiveDate>,
}

/// The limits of one period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetLimits {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u32>,
}

/// The budgets that apply to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallBudgets {
    /// Of a day, over all roots.
    pub day: BudgetLimits,
    /// Of a calendar month, over all roots.
    pub month: BudgetLimits,
    /// Of a day, for this root.
    pub root_day: BudgetLimits,
    /// Of a calendar month, for this root.
    pub root_month: BudgetLimits,
}

/// A limit that a call would exceed.
#[derive(Clone, Debug, PartialEq)]
pub struct ExhaustedBudget {
    /// `day` or `month`.
    pub period: &'static str,
    /// Whether it is the root's share.
    pub is_root_share: bool,
    /// What is limited: `usd`, `tokens`, `calls`.
    pub unit: &'static str,
    /// How much was used; open calls count as their worst case.
    pub used: f64,
    /// How much the call would add.
    pub requested: f64,
    /// The limit.
    pub limit: f64,
}

/// How a call ended.
#[derive(Clone, Debug, Default)]
pub struct CallResult<'a> {
    /// One word: `stop`, or the name of the error.
    pub outcome: &'a str,
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The cost in US dollars; `None` if it is unknown.
    pub usd: Option<f64>,
    /// The duration in milliseconds.
    pub latency_ms: u64,
    /// The provider's id of the request.
    pub request_id: Option<&'a str>,
    /// Requests that were sent for the call.
    pub requests: u32,
    /// Earlier requests among them that the provider may have charged too.
    pub maybe_charged_requests: u32,
}

/// The state of a server and a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRow {
    /// Failed requests in a row.
    pub failures: u32,
    /// Until when the circuit is open: no requests are sent.
    pub open_until: Option<DateTime<Utc>>,
    /// The account that the server refused.
    pub refused_account: Option<String>,
    /// How replies are held to a schema, by name.
    pub schema_mode: Option<String>,
    /// Whether requests need the fields of reasoning models.
    pub is_thinking: bool,
    /// The context length in tokens, as the server reported it.
    pub context_tokens: Option<u64>,
    /// Until when the server gets no batches, because it refused one.
    pub no_batches_until: Option<DateTime<Utc>>,
}

/// Characters per token of a model, learned from its replies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRatio {
    /// Characters sent, in which older calls weigh less.
    pub chars: u64,
    /// Tokens that the model counted for them.
    pub tokens: u64,
    /// The lowest ratio of any call.
    pub min_chars_per_token: f64,
}

/// Sums over calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UsageTotals {
    /// What the calls have in common: a day, a stage, a run, a model.
    pub key: String,
    /// Calls.
    pub calls: u64,
    /// Input tokens, cached or not.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that were read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens that were written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The cost in US dollars, without the calls whose price is unknown.
    pub cost_usd: f64,
    /// Calls whose price is unknown.
    pub unpriced: u64,
    /// Calls that were made in a batch.
    pub batched: u64,
}

/// How calls are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageGroupBy {
    /// By day, the newest first.
    Day,
    /// By stage.
    Stage,
    /// By root and run, the newest first.
    Run,
    /// By provider and model.
    Model,
}

impl Ledger {
    /// Opens the ledger at `path`; creates it and its folder if necessary.
    ///
    /// `was_used` says that a model was called before. If the ledger is missing although it was used, it was
    /// lost: the day's budgets then count as exhausted.
    ///
    /// # Errors
    ///
    /// Fails if calls cannot be recorded; then none may be made.
    pub fn open(path: &Path, was_used: bool, day: NaiveDate) -> Result<Self, LedgerError> {
        let file = |path: &Path, source| LedgerError::File { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            created.map_err(|e| file(folder, e))?;
        }
        let is_new = !fs::metadata(path).is_ok_and(|it| it.len() > 0);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        drop(options.open(path).map_err(|e| file(path, e))?);
        let mut ledger = Self::connect(path)?;
        if is_new && was_used {
            ledger.write(|tx| {
                tx.execute("INSERT OR IGNORE INTO lost (day) VALUES (?1)", [day.to_string()])?;
                Ok(())
            })?;
        }
        Ok(ledger)
    }

    /// Opens the ledger if it exists.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be read.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, LedgerError> {
        if !fs::metadata(path).is_ok_and(|it| it.len() > 0) {
            return Ok(None);
        }
        Self::connect(path).map(Some)
    }

    /// Opens the file, which may be empty.
    fn connect(path: &Path) -> Result<Self, LedgerError> {
        let conn = connection::open(path, &connection::RECORD_BEHIND_LINKS, BUSY_TIMEOUT)
            .map_err(|source| LedgerError::Sql { path: path.to_owned(), source })?;
        let mut ledger = Self { conn, path: path.to_owned() };
        let found = ledger.write(|tx| {
            let found: usize = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            if found == 0 {
                tx.execute_batch(SCHEMA)?;
                tx.pragma_update(None, "user_version", SCHEMA_VERSION)?;
            }
            Ok(found)
        })?;
        if found != 0 && found != SCHEMA_VERSION {
            return Err(LedgerError::OtherSchema { path: path.to_owned(), found });
        }
        Ok(ledger)
    }

    /// Charges a call as its worst case, unless that would exceed a budget.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be written.
    pub fn reserve(
        &mut self,
        call: &NewCall<'_>,
        budgets: &CallBudgets,
    ) -> Result<Result<CallId, ExhaustedBudget>, LedgerError> {
        self.write(|tx| {
            if let Some(exhausted) = budget::exhausted_budget(tx, call, budgets)? {
                return Ok(Err(exhausted));
            }
            tx.execute(
                "INSERT INTO call (at, day, root, run, stage, period, provider, model, state, \
                 charged_tokens, charged_usd, price_date) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'open', ?9, ?10, ?11)",
                params![
                    call.at.to_rfc3339(),
                    call.day.to_string(),
                    call.root,
                    call.run,
                    call.stage,
                    call.period,
                    call.provider,
                    call.model,
                    call.tokens,
                    call.usd,
                    call.price_date.map(|it| it.to_string()),
                ],
            )?;
            Ok(Ok(CallId(tx.last_insert_rowid())))
        })
    }

    /// Corrects the charge of a call that was answered.
    ///
    /// Fails if the ledger cannot be written; the call then stays charged as its worst case.
    pub(crate) fn finish_call(
        &mut self,
        call: CallId,
        result: &CallResult<'_>,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE call SET state = 'ended', outcome = ?2, input_tokens = ?3, \
                 output_tokens = ?4, cache_read_tokens = ?5, cache_write_tokens = ?6, \
                 charged_tokens = ?3 + ?4 + ?11 * charged_tokens, \
                 charged_usd = iif(?11 = 0, ?7, ?7 + ?11 * charged_usd), latency_ms = ?8, \
                 request_id = ?9, requests = ?10 WHERE id = ?1",
                params![
                    call.0,
                    result.outcome,
                    result.input_tokens,
                    result.output_tokens,
                    result.cache_read_tokens,
                    result.cache_write_tokens,
                    result.usd,
                    result.latency_ms,
                    result.request_id,
                    result.requests,
                    result.maybe_charged_requests,
                ],
            )?;
            Ok(())
        })
    }

    /// Ends a call whose cost is unknown: the worst case stays charged, once for the last request and once
    /// for each of the `lost` earlier ones that the provider may have charged.
    pub(crate) fn finish_call_of_unknown_cost(
        &mut self,
        call: CallId,
        outcome: &str,
        latency_ms: u64,
        requests: u32,
        lost: u32,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "UPDATE call SET state = 'ended', outcome = ?2, latency_ms = ?3, requests = ?4, \
                 charged_tokens = charged_tokens * (1 + ?5), charged_usd = charged_usd * (1 + ?5) \
                 WHERE id = ?1",
                params![call.0, outcome, latency_ms, requests, lost],
            )?;
            Ok(())
        })
    }

    /// Sums up the calls since a day, of one root or of all.
    pub(crate) fn usage_totals(
        &self,
        by: UsageGroupBy,
        root: Option<&str>,
        since: Option<NaiveDate>,
    ) -> Result<Vec<UsageTotals>, LedgerError> {
        let (key, order) = match by {
            UsageGroupBy::Day => ("day", "key DESC"),
            UsageGroupBy::Stage => ("stage", "key"),
            UsageGroupBy::Run => ("root || ' ' || ifnull(run, '-')", "max(id) DESC"),
            UsageGroupBy::Model => ("provider || ' ' || model", "key"),
        };
        let text = format!(
            "SELECT {key} AS key, count(*), sum(input_tokens), sum(output_tokens), \
             sum(cache_read_tokens), sum(cache_write_tokens), total(charged_usd), \
             sum(charged_usd IS NULL), \
             sum(EXISTS (SELECT 1 FROM batched WHERE batched.call = call.id \
             AND batched.state <> 'queued')) FROM call \
             WHERE (?1 IS NULL OR root = ?1) AND (?2 IS NULL OR day >= ?2) \
             GROUP BY 1 ORDER BY {order}"
        );
        self.read(|conn| {
            conn.prepare_cached(&text)?
                .query_map(params![root, since.map(|it| it.to_string())], |row| {
                    Ok(UsageTotals {
                        key: row.get(0)?,
                        calls: row.get(1)?,
                        input_tokens: row.get(2)?,
                        output_tokens: row.get(3)?,
                        cache_read_tokens: row.get(4)?,
                        cache_write_tokens: row.get(5)?,
                        cost_usd: row.get(6)?,
                        unpriced: row.get(7)?,
                        batched: row.get(8)?,
                    })
                })?
                .collect()
        })
    }

    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        query(&self.conn).map_err(|source| LedgerError::Sql { path: self.path.clone(), source })
    }

    fn write<T>(
        &mut self,
        change: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        let path = &self.path;
        let run = || {
            let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = change(&tx)?;
            tx.commit()?;
            Ok(done)
        };
        run().map_err(|source| LedgerError::Sql { path: path.clone(), source })
    }
}

/// What was charged in a day or a month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ChargedTotals {
    /// US dollars.
    pub usd: f64,
    /// Tokens.
    pub tokens: u64,
    /// Calls, except those for vectors, which are many and small.
    pub calls: u64,
    /// Whether the ledger of that time was lost, so that budgets count as exhausted.
    pub is_lost: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/a";

    fn day(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn open(dir: &tempfile::TempDir, was_used: bool) -> Ledger {
        Ledger::open(&dir.path().join("state/ledger.db"), was_used, day("2026-04-13")).unwrap()
    }

    fn call(on: &str) -> NewCall<'static> {
        NewCall {
            at: DateTime::UNIX_EPOCH,
            day: day(on),
            root: ROOT,
            run: Some(3),
            stage: "weekly",
            period: "2026-W15",
            provider: "anthropic",
            model: "m",
            tokens: 1000,
            usd: Some(0.4),
            price_date: Some(day("2026-01-01")),
        }
    }

    fn result() -> CallResult<'static> {
        CallResult {
            outcome: "stop",
            input_tokens: 100,
            output_tokens: 20,
            cache_read_tokens: 60,
            cache_write_tokens: 10,
            usd: Some(0.1),
            latency_ms: 7,
            request_id: Some("req-1"),
            requests: 1,
            maybe_charged_requests: 0,
        }
    }

    fn usd(usd: f64) -> BudgetLimits {
        BudgetLimits { usd: Some(usd), ..BudgetLimits::default() }
    }

    #[test]
    fn a_call_is_charged_as_its_worst_case_and_corrected() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = open(&dir, false);
        let caps = CallBudgets { day: usd(1.0), ..CallBudgets::default() };
        let first = ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
        ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
        // Open calls count, also those that a crash interrupted.
        let reached = ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap_err();
        let expected = ExhaustedBudget {
            period: "day",
            is_root_share: false,
            unit: "usd",
            used: 0.8,
            requested: 0.4,
            limit: 1.0,
        };
        assert_eq!(reached, expected);
        ledger.finish_call(first, &result()).unwrap();
        ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
        let [today, month] = ledger.charged(day("2026-04-13"), None).unwrap();
        assert_eq!((today.calls, today.tokens), (3, 2120));
        assert!((today.usd - 0.9).abs() < 1e-9, "{today:?}");
        assert_eq!(today, month);
    }

    #[test]
    fn each_budget_counts_its_own_period_and_root() {
        for (caps, refused) in [
            (CallBudgets::default(), [false, false, false, false]),
            (CallBudgets { day: usd(0.7), ..CallBudgets::default() }, [true, false, false, true]),
            (CallBudgets { month: usd(0.7), ..CallBudgets::default() }, [true, true, false, true]),
            (
                CallBudgets { root_day: usd(0.7), ..CallBudgets::default() },
                [true, false, false, false],
            ),
            (
                CallBudgets { root_month: usd(0.7), ..CallBudgets::default() },
                [true, true, false, false],
            ),
            (
                CallBudgets {
                    day: BudgetLimits { calls: Some(1), ..BudgetLimits::default() },
                    ..CallBudgets::default()
                },
                [true, false, false, true],
            ),
            (
                CallBudgets {
                    day: BudgetLimits { tokens: Some(1999), ..BudgetLimits::default() },
                    ..CallBudgets::default()
                },
                [true, false, false, true],
            ),
            (
                CallBudgets {
                    day: BudgetLimits { tokens: Some(2000), ..BudgetLimits::default() },
                    ..CallBudgets::default()
                },
                [false, false, false, false],
            ),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let mut ledger = open(&dir, false);
            ledger.reserve(&call("2026-04-13"), &CallBudgets::default()).unwrap().unwrap();
            let next = [
                call("2026-04-13"),
                call("2026-04-14"),
                call("2026-05-01"),
                NewCall { root: "/b", ..call("2026-04-13") },
            ];
            let seen = next.map(|it| {
                // Only checked, not reserved, so that the calls do not add up.
                let tx = ledger.conn.transaction().unwrap();
                budget::exhausted_budget(&tx, &it, &caps).unwrap().is_some()
            });
            assert_eq!(seen, refused, "{caps:?}");
        }
    }

    #[test]
    fn a_call_of_unknown_cost_keeps_its_worst_case() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = open(&dir, false);
        let id = ledger.reserve(&call("2026-04-13"), &CallBudgets::default()).unwrap().unwrap();
        ledger.finish_call_of_unknown_cost(id, "timeout", 9, 3, 0).unwrap();
        let [today, _] = ledger.charged(day("2026-04-13"), None).unwrap();
        assert_eq!((today.tokens, today.calls), (1000, 1));
        assert!((today.usd - 0.4).abs() < 1e-9);
        // Two tries before the last may have cost as much each.
        let id = ledger.reserve(&call("2026-04-13"), &CallBudgets::default()).unwrap().unwrap();
        ledger.finish_call_of_unknown_cost(id, "timeout", 9, 3, 2).unwrap();
        let id = ledger.reserve(&call("2026-04-13"), &CallBudgets::default()).unwrap().unwrap();
        ledger
            .finish_call(id, &CallResult { maybe_charged_requests: 1, requests: 2, ..result() })
            .unwrap();
        let [today, _] = ledger.charged(day("2026-04-13"), None).unwrap();
        assert_eq!((today.tokens, today.calls), (1000 + 3000 + 1120, 3));
        assert!((today.usd - (0.4 + 1.2 + 0.5)).abs() < 1e-9, "{}", today.usd);
    }

    #[test]
    fn a_lost_ledger_exhausts_the_budgets_of_its_day() {
        let dir = tempfile::tempdir().unwrap();
        let caps = CallBudgets { day: usd(1.0), month: usd(10.0), ..CallBudgets::default() };
        let mut ledger = open(&dir, true);
        let reached = ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap_err();
        assert!(reached.used >= reached.limit);
        ledger.reserve(&call("2026-04-14"), &caps).unwrap().unwrap();
        drop(ledger);
        // The day stays lost after the ledger is opened again.
        let mut ledger = open(&dir, true);
        assert!(ledger.reserve(&call("2026-04-13"), &caps).unwrap().is_err());
        assert!(ledger.charged(day("2026-04-13"), None).unwrap()[0].is_lost);
        assert!(!ledger.charged(day("2026-04-14"), None).unwrap()[0].is_lost);
        // If no model was ever called, nothing can be lost.
        let dir = tempfile::tempdir().unwrap();
        open(&dir, false).reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
    }

    #[test]
    fn usage_is_summed_up_by_day_stage_run_and_model() {
        let dir = tempfile::tempdir().unwrap();
        let mut ledger = open(&dir, false);
        for new in [
            call("2026-04-12"),
            call("2026-04-13"),
            NewCall { stage: "extract", run: None, usd: None, ..call("2026-04-13") },
            NewCall { root: "/b", model: "n", ..call("2026-04-13") },
        ] {
            let usd = new.usd.and(Some(0.1));
            let id = ledger.reserve(&new, &CallBudgets::default()).unwrap().unwrap();
            ledger.finish_call(id, &CallResult { usd, ..result() }).unwrap();
        }
        for (by, expected) in [
            (UsageGroupBy::Day, &[("2026-04-13", 3), ("2026-04-12", 1)][..]),
            (UsageGroupBy::Stage, &[("extract", 1), ("weekly", 3)]),
            (UsageGroupBy::Run, &[("/b 3", 1), ("/a -", 1), ("/a 3", 2)]),
            (UsageGroupBy::Model, &[("anthropic m", 3), ("anthropic n", 1)]),
        ] {
            let sums = ledger.usage_totals(by, None, None).unwrap();
            let seen: Vec<_> = sums.iter().map(|it| (&it.key[..], it.calls)).collect();
            assert_eq!(seen, expected);
            assert_eq!(sums.iter().map(|it| it.unpriced).sum::<u64>(), 1);
            assert_eq!(sums.iter().map(|it| it.cache_read_tokens).sum::<u64>(), 240);
            assert!((sums.iter().map(|it| it.cost_usd).sum::<f64>() - 0.3).abs() < 1e-9);
        }
        let calls = |root, since| -> u64 {
            ledger
                .usage_totals(UsageGroupBy::Day, root, since)
                .unwrap()
                .iter()
                .map(|it| it.calls)
                .sum()
        };
        assert_eq!(calls(Some("/b"), None), 1);
        assert_eq!(calls(None, Some(day("2026-04-13"))), 3);
        assert_eq!(calls(Some("/a"), Some(day("2026-04-13"))), 2);
    }

    #[test]
    fn server_state_survives_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let row = ServerRow {
            failures: 3,
            open_until: Some(DateTime::UNIX_EPOCH),
            refused_account: Some("the variable MEMOIRD_API_KEY".to_owned()),
            schema_mode: Some("prompt".to_owned()),
            is_thinking: true,
            context_tokens: Some(8192),
            no_batches_until: Some(DateTime::UNIX_EPOCH),
        };
        open(&dir, false).record_server("http://a", "m", &row).unwrap();
        let ledger = open(&dir, true);
        assert_eq!(ledger.server("http://a", "m").unwrap(), row);
        assert_eq!(ledger.server("http://a", "n").unwrap(), ServerRow::default());
        let weight = TokenRatio { chars: 4200, tokens: 2000, min_chars_per_token: 1.9 };
        open(&dir, true).record_token_ratio("http://a", "m", &weight).unwrap();
        assert_eq!(ledger.token_ratio("http://a", "m").unwrap(), Some(weight));
        assert_eq!(ledger.token_ratio("http://a", "n").unwrap(), None);
    }

    #[test]
    fn a_ledger_is_private_and_other_schemas_are_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state/ledger.db");
        assert!(Ledger::open_existing(&path).unwrap().is_none());
        let ledger = open(&dir, false);
        let mode = |it: &Path| fs::metadata(it).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        ledger.conn.pragma_update(None, "user_version", 99).unwrap();
        drop(ledger);
        let error = Ledger::open_existing(&path).unwrap_err();
        assert!(matches!(error, LedgerError::OtherSchema { found: 99, .. }), "{error}");
    }
}
