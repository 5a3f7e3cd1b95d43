//! What was charged, and whether another call would exceed a limit.

use chrono::NaiveDate;
use rusqlite::{Connection, params};

use super::{
    BudgetLimits, CallBudgets, ChargedTotals, ExhaustedBudget, Ledger, LedgerError, NewCall,
};

impl Ledger {
    /// Returns what was charged in a day and in its month: US dollars, tokens, calls.
    pub(crate) fn charged(
        &self,
        day: NaiveDate,
        root: Option<&str>,
    ) -> Result<[ChargedTotals; 2], LedgerError> {
        self.read(|conn| {
            let month = month_prefix(day);
            Ok([charged_on(conn, &day.to_string(), root)?, charged_on(conn, &month, root)?])
        })
    }
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

/// Returns the first limit that the call would exceed.
#[expect(clippy::cast_precision_loss, reason = "figures to show; none has 2^52 of anything")]
pub(super) fn exhausted_budget(
    conn: &Connection,
    call: &NewCall<'_>,
    budgets: &CallBudgets,
) -> rusqlite::Result<Option<ExhaustedBudget>> {
    let (day, month) = (call.day.to_string(), month_prefix(call.day));
    for (period, of_root, start, limits) in [
        ("day", false, &day, &budgets.day),
        ("month", false, &month, &budgets.month),
        ("day", true, &day, &budgets.root_day),
        ("month", true, &month, &budgets.root_month),
    ] {
        if *limits == BudgetLimits::default() {
            continue;
        }
        let charged = charged_on(conn, start, of_root.then_some(call.root))?;
        let checks = [
            ("usd", limits.usd, charged.usd, call.usd.unwrap_or(0.0)),
            (
                "tokens",
                limits.tokens.map(|it| it as f64),
                charged.tokens as f64,
                call.tokens as f64,
            ),
            ("calls", limits.calls.map(f64::from), charged.calls as f64, 1.0),
        ];
        for (unit, limit, used, requested) in checks {
            let Some(limit) = limit else { continue };
            // What was spent on a lost day is unknown.
            let used = if charged.is_lost && period == "day" { used.max(limit) } else { used };
            if used + requested > limit {
                return Ok(Some(ExhaustedBudget {
                    period,
                    is_root_share: of_root,
                    unit,
                    used,
                    requested,
                    limit,
                }));
            }
        }
    }
    Ok(None)
}
