//! The ledger: every call of a model, over all roots of a person, with what it took and cost.
//!
//! A SQLite database in the person's folder for state. Caps are checked and a call is charged as its
//! worst case in one transaction before it goes out ([`Ledger::reserve`]), and corrected after it
//! (`Ledger::finish_call`); a call that a crash ended stays charged as its worst case. What is known of
//! each server (breaker, dialect) stands here too, so that it outlives a restart.
//!
//! No words of a log, of a prompt, or of a reply stand here.
//!
//! - [`batch`]: what was handed to a provider to be answered later.

pub mod batch;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, NaiveDate, Utc};
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, TransactionBehavior, params};
use serde::Serialize;

/// The schema; its number is that of the steps.
const MIGRATIONS: &[&str] = &[
    include_str!("../../../../schema/ledger/0001.sql"),
    include_str!("../../../../schema/ledger/0002.sql"),
    include_str!("../../../../schema/ledger/0003.sql"),
];

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The open ledger.
#[derive(Debug)]
pub struct Ledger {
    conn: Connection,
    path: PathBuf,
}

/// Why the ledger could not be read or written; no call is made then.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Folder or file cannot be made.
    #[error("`{}`: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What SQLite says.
    #[error("`{}`: {source}", path.display())]
    Sql {
        /// The ledger.
        path: PathBuf,
        /// What it says.
        source: rusqlite::Error,
    },
    /// A newer memoird made it.
    #[error("`{}` has schema {found}, this memoird knows {known}; use the newer one", path.display())]
    NewerSchema {
        /// The ledger.
        path: PathBuf,
        /// Its schema.
        found: usize,
        /// The newest that we know.
        known: usize,
    },
}

/// The number of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId(i64);

/// A call about to be made.
#[derive(Clone, Debug)]
pub struct NewCall<'a> {
    /// When, in UTC.
    pub at: DateTime<Utc>,
    /// The day in the root's zone.
    pub day: NaiveDate,
    /// The root's folder; empty for a call that belongs to none.
    pub root: &'a str,
    /// The run, if one asks.
    pub run: Option<i64>,
    /// What for.
    pub stage: &'a str,
    /// Which period.
    pub period: &'a str,
    /// Whose protocol is spoken.
    pub provider: &'a str,
    /// The model.
    pub model: &'a str,
    /// The worst case, in tokens read and written.
    pub tokens: u64,
    /// The worst case, in US dollars; `None` where no price is known.
    pub usd: Option<f64>,
    /// When the price was so.
    pub price_date: Option<NaiveDate>,
}

/// What is allowed in one stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BudgetLimits {
    /// US dollars.
    pub usd: Option<f64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// Calls.
    pub calls: Option<u32>,
}

/// The caps that a call stands under.
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

/// A cap that a call would pass.
#[derive(Clone, Debug, PartialEq)]
pub struct ExhaustedBudget {
    /// `day` or `month`.
    pub period: &'static str,
    /// Whether it is the root's share.
    pub is_root_share: bool,
    /// What is capped: `usd`, `tokens`, `calls`.
    pub unit: &'static str,
    /// How much was used, what is under way counted as its worst case.
    pub used: f64,
    /// How much the call would add.
    pub requested: f64,
    /// How much is allowed.
    pub limit: f64,
}

/// How a call ended.
#[derive(Clone, Debug, Default)]
pub struct CallResult<'a> {
    /// One word: `stop`, or the name of the error.
    pub outcome: &'a str,
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Of those read: from the provider's cache.
    pub cache_read_tokens: u64,
    /// Of those read: put there.
    pub cache_write_tokens: u64,
    /// What it cost, in US dollars; `None` where nobody knows.
    pub usd: Option<f64>,
    /// How long it took, in milliseconds.
    pub latency_ms: u64,
    /// The provider's name for it.
    pub request_id: Option<&'a str>,
    /// Requests that were sent for it.
    pub requests: u32,
    /// How many of those before the last the provider may have charged for, too.
    pub maybe_charged_requests: u32,
}

/// What is known of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRow {
    /// Failed requests in a row.
    pub failures: u32,
    /// Until when it is left alone.
    pub open_until: Option<DateTime<Utc>>,
    /// The account that was refused.
    pub refused_account: Option<String>,
    /// How it is held to a schema, by name.
    pub schema_mode: Option<String>,
    /// Whether it wants the fields of models that think.
    pub is_thinking: bool,
    /// How many tokens it reads, as it said itself.
    pub context_tokens: Option<u64>,
    /// Until when it is given no batches, because it refused one.
    pub no_batches_until: Option<DateTime<Utc>>,
}

/// What was learned of how long the tokens of a model are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenRatio {
    /// Characters that were sent, the older the less.
    pub chars: u64,
    /// Tokens that were read of them.
    pub tokens: u64,
    /// The fewest characters for a token.
    pub min_chars_per_token: f64,
}

/// Sums over calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UsageTotals {
    /// What the calls have in common: a day, a stage, a run, a model.
    pub key: String,
    /// Calls.
    pub calls: u64,
    /// Tokens read, from the cache or not.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Of those read: from the provider's cache.
    pub cache_read_tokens: u64,
    /// Of those read: put there.
    pub cache_write_tokens: u64,
    /// US dollars; calls without a price count as nothing here.
    pub cost_usd: f64,
    /// Calls of which nobody knows the price.
    pub unpriced: u64,
    /// Calls that were made in a batch.
    pub batched: u64,
}

/// By what calls are summed up.
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
    /// Opens the ledger at `path`, and makes it and its folder where there is none.
    ///
    /// `was_used` says that a model was called before: a ledger that is gone then was lost, and what
    /// it held of `day` is not known. The caps of that day and month count as spent.
    ///
    /// # Errors
    ///
    /// Returns why no call can be recorded, and so none be made.
    pub fn open(path: &Path, was_used: bool, day: NaiveDate) -> Result<Self, LedgerError> {
        let file = |path: &Path, source| LedgerError::File { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(|e| file(folder, e))?;
        }
        let is_new = !fs::metadata(path).is_ok_and(|it| it.len() > 0);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        drop(options.open(path).map_err(|e| file(path, e))?);
        let mut ledger = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        ledger.migrate()?;
        if is_new && was_used {
            ledger.write(|tx| {
                tx.execute("INSERT OR IGNORE INTO lost (day) VALUES (?1)", [day.to_string()])?;
                Ok(())
            })?;
        }
        Ok(ledger)
    }

    /// Opens the ledger to be read; `None` where there is none.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    pub fn open_existing(path: &Path) -> Result<Option<Self>, LedgerError> {
        if !fs::metadata(path).is_ok_and(|it| it.len() > 0) {
            return Ok(None);
        }
        let mut ledger = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        ledger.migrate()?;
        Ok(Some(ledger))
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self, LedgerError> {
        let sql = |source| LedgerError::Sql { path: path.to_owned(), source };
        let conn = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)
            .map_err(sql)?;
        conn.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
        let wal = conn.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()));
        wal.map_err(sql)?;
        for (name, value) in [
            ("synchronous", "FULL"),
            ("foreign_keys", "ON"),
            ("trusted_schema", "OFF"),
            ("cell_size_check", "ON"),
            ("mmap_size", "0"),
        ] {
            conn.pragma_update(None, name, value).map_err(sql)?;
        }
        Ok(Self { conn, path: path.to_owned() })
    }

    fn migrate(&mut self) -> Result<(), LedgerError> {
        let known = MIGRATIONS.len();
        let found = self.write(|tx| {
            let found: usize = tx.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            for step in MIGRATIONS.iter().skip(found) {
                tx.execute_batch(step)?;
            }
            if found < known {
                tx.pragma_update(None, "user_version", known)?;
            }
            Ok(found)
        })?;
        if found > known {
            return Err(LedgerError::NewerSchema { path: self.path.clone(), found, known });
        }
        Ok(())
    }

    /// Charges a call as its worst case, unless a cap forbids it.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be recorded.
    pub fn reserve(
        &mut self,
        call: &NewCall<'_>,
        caps: &CallBudgets,
    ) -> Result<Result<CallId, ExhaustedBudget>, LedgerError> {
        self.write(|tx| {
            if let Some(reached) = exhausted_budget(tx, call, caps)? {
                return Ok(Err(reached));
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
    /// # Errors
    ///
    /// Returns why it could not be recorded; the call stays charged as its worst case.
    pub fn finish_call(
        &mut self,
        call: CallId,
        settled: &CallResult<'_>,
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
                    settled.outcome,
                    settled.input_tokens,
                    settled.output_tokens,
                    settled.cache_read_tokens,
                    settled.cache_write_tokens,
                    settled.usd,
                    settled.latency_ms,
                    settled.request_id,
                    settled.requests,
                    settled.maybe_charged_requests,
                ],
            )?;
            Ok(())
        })
    }

    /// Ends a call whose charge stays as it is, for each try that may have cost something: nobody knows
    /// what the provider counts. `lost` are those before the last.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn finish_call_of_unknown_cost(
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

    /// Returns what is known of a server and a model of it.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn server(&self, server: &str, model: &str) -> Result<ServerRow, LedgerError> {
        self.read(|conn| {
            let row = conn
                .prepare_cached(
                    "SELECT failures, open_until, barred, rung, is_thinking, context_tokens, \
                     direct_until FROM server WHERE server = ?1 AND model = ?2",
                )?
                .query_row([server, model], |row| {
                    let time = |column| -> rusqlite::Result<Option<DateTime<Utc>>> {
                        let text: Option<String> = row.get(column)?;
                        let time = text.and_then(|it| DateTime::parse_from_rfc3339(&it).ok());
                        Ok(time.map(|it| it.to_utc()))
                    };
                    Ok(ServerRow {
                        failures: row.get(0)?,
                        open_until: time(1)?,
                        refused_account: row.get(2)?,
                        schema_mode: row.get(3)?,
                        is_thinking: row.get(4)?,
                        context_tokens: row.get(5)?,
                        no_batches_until: time(6)?,
                    })
                })
                .optional()?;
            Ok(row.unwrap_or_default())
        })
    }

    /// Remembers what is known of a server and a model of it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn record_server(
        &mut self,
        server: &str,
        model: &str,
        row: &ServerRow,
    ) -> Result<(), LedgerError> {
        self.write(|tx| {
            tx.execute(
                "INSERT OR REPLACE INTO server \
                 (server, model, failures, open_until, barred, rung, is_thinking, context_tokens, \
                  direct_until) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                params![
                    server,
                    model,
                    row.failures,
                    row.open_until.map(|it| it.to_rfc3339()),
                    row.refused_account,
                    row.schema_mode,
                    row.is_thinking,
                    row.context_tokens,
                    row.no_batches_until.map(|it| it.to_rfc3339()),
                ],
            )?;
            Ok(())
        })
    }

    /// Returns what was learned of a model's tokens.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn token_ratio(
        &self,
        server: &str,
        model: &str,
    ) -> Result<Option<TokenRatio>, LedgerError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT chars, tokens, least FROM weight WHERE server = ?1 AND model = ?2",
            )?
            .query_row([server, model], |row| {
                Ok(TokenRatio {
                    chars: row.get(0)?,
                    tokens: row.get(1)?,
                    min_chars_per_token: row.get(2)?,
                })
            })
            .optional()
        })
    }

    /// Remembers what was learned of a model's tokens.
    ///
    /// # Errors
    ///
    /// Returns why it could not be recorded.
    pub fn record_token_ratio(
        &mut self,
        server: &str,
        model: &str,
        weight: &TokenRatio,
    ) -> Result<(), LedgerError> {
        let TokenRatio { chars, tokens, min_chars_per_token: least } = weight;
        self.write(|tx| {
            tx.execute(
                "INSERT OR REPLACE INTO weight (server, model, chars, tokens, least) \
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![server, model, chars, tokens, least],
            )?;
            Ok(())
        })
    }

    /// Sums up the calls since a day, of one root or of all.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn usage_totals(
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

    /// Returns what was charged in a day and in its month: US dollars, tokens, calls.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn charged(
        &self,
        day: NaiveDate,
        root: Option<&str>,
    ) -> Result<[ChargedTotals; 2], LedgerError> {
        self.read(|conn| {
            let month = month_prefix(day);
            Ok([charged_on(conn, &day.to_string(), root)?, charged_on(conn, &month, root)?])
        })
    }

    fn read<T>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LedgerError> {
        question(&self.conn).map_err(|source| LedgerError::Sql { path: self.path.clone(), source })
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

/// What was charged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ChargedTotals {
    /// US dollars.
    pub usd: f64,
    /// Tokens.
    pub tokens: u64,
    /// Calls of a model that writes: those for vectors are many, and each is small.
    pub calls: u64,
    /// The ledger of that time was lost: caps count as spent.
    pub is_lost: bool,
}

/// Returns what was charged on days that begin with `start`: a day, or `2026-04-` for a month.
fn charged_on(
    conn: &Connection,
    start: &str,
    root: Option<&str>,
) -> rusqlite::Result<ChargedTotals> {
    let (usd, tokens, calls) = conn
        .prepare_cached(
            "SELECT total(charged_usd), ifnull(sum(charged_tokens), 0), \
             count(*) FILTER (WHERE stage <> 'embed') FROM call WHERE substr(day, 1, length(?1)) = ?1 AND (?2 IS NULL OR root = ?2)",
        )?
        .query_row(params![start, root], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let is_lost = conn
        .prepare_cached("SELECT count(*) FROM lost WHERE substr(day, 1, length(?1)) = ?1")?
        .query_row([start], |row| row.get::<_, u32>(0))?
        > 0;
    Ok(ChargedTotals { usd, tokens, calls, is_lost })
}

fn month_prefix(day: NaiveDate) -> String {
    day.format("%Y-%m-").to_string()
}

/// Returns the first cap that the call would pass.
#[expect(clippy::cast_precision_loss, reason = "figures to show; none has 2^52 of anything")]
fn exhausted_budget(
    conn: &Connection,
    call: &NewCall<'_>,
    caps: &CallBudgets,
) -> rusqlite::Result<Option<ExhaustedBudget>> {
    let (day, month) = (call.day.to_string(), month_prefix(call.day));
    for (stretch, of_root, start, limits) in [
        ("day", false, &day, &caps.day),
        ("month", false, &month, &caps.month),
        ("day", true, &day, &caps.root_day),
        ("month", true, &month, &caps.root_month),
    ] {
        if *limits == BudgetLimits::default() {
            continue;
        }
        let used = charged_on(conn, start, of_root.then_some(call.root))?;
        let wanted = [
            ("usd", limits.usd, used.usd, call.usd.unwrap_or(0.0)),
            ("tokens", limits.tokens.map(|it| it as f64), used.tokens as f64, call.tokens as f64),
            ("calls", limits.calls.map(f64::from), used.calls as f64, 1.0),
        ];
        for (unit, cap, so_far, wanted) in wanted {
            let Some(cap) = cap else { continue };
            // Of a lost day nobody knows what was spent.
            let so_far = if used.is_lost && stretch == "day" { so_far.max(cap) } else { so_far };
            if so_far + wanted > cap {
                return Ok(Some(ExhaustedBudget {
                    period: stretch,
                    is_root_share: of_root,
                    unit,
                    used: so_far,
                    requested: wanted,
                    limit: cap,
                }));
            }
        }
    }
    Ok(None)
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

    fn settled() -> CallResult<'static> {
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
        // What is under way counts, also what a crash ended.
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
        ledger.finish_call(first, &settled()).unwrap();
        ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
        let [today, month] = ledger.charged(day("2026-04-13"), None).unwrap();
        assert_eq!((today.calls, today.tokens), (3, 2120));
        assert!((today.usd - 0.9).abs() < 1e-9, "{today:?}");
        assert_eq!(today, month);
    }

    #[test]
    fn each_cap_counts_its_own_stretch_and_root() {
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
                // Asked, and not made: each stands for itself.
                let tx = ledger.conn.transaction().unwrap();
                exhausted_budget(&tx, &it, &caps).unwrap().is_some()
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
            .finish_call(id, &CallResult { maybe_charged_requests: 1, requests: 2, ..settled() })
            .unwrap();
        let [today, _] = ledger.charged(day("2026-04-13"), None).unwrap();
        assert_eq!((today.tokens, today.calls), (1000 + 3000 + 1120, 3));
        assert!((today.usd - (0.4 + 1.2 + 0.5)).abs() < 1e-9, "{}", today.usd);
    }

    #[test]
    fn a_lost_ledger_counts_as_spent_for_its_day() {
        let dir = tempfile::tempdir().unwrap();
        let caps = CallBudgets { day: usd(1.0), month: usd(10.0), ..CallBudgets::default() };
        let mut ledger = open(&dir, true);
        let reached = ledger.reserve(&call("2026-04-13"), &caps).unwrap().unwrap_err();
        assert!(reached.used >= reached.limit);
        ledger.reserve(&call("2026-04-14"), &caps).unwrap().unwrap();
        drop(ledger);
        // It is lost once, and stays so for that day.
        let mut ledger = open(&dir, true);
        assert!(ledger.reserve(&call("2026-04-13"), &caps).unwrap().is_err());
        assert!(ledger.charged(day("2026-04-13"), None).unwrap()[0].is_lost);
        assert!(!ledger.charged(day("2026-04-14"), None).unwrap()[0].is_lost);
        // Where no model was ever called nothing can be lost.
        let dir = tempfile::tempdir().unwrap();
        open(&dir, false).reserve(&call("2026-04-13"), &caps).unwrap().unwrap();
    }

    #[test]
    fn calls_are_summed_up_by_what_they_have_in_common() {
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
            ledger.finish_call(id, &CallResult { usd, ..settled() }).unwrap();
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
    fn what_is_known_of_a_server_outlives_a_restart() {
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
    fn a_ledger_is_closed_to_others_and_of_a_version_that_we_know() {
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
        assert!(matches!(error, LedgerError::NewerSchema { found: 99, .. }), "{error}");
    }
}
