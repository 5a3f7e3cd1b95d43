//! Tokens and cost of model calls.

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    error::{CommandError, CommandResult},
    workspace::Invocation,
};
use crate::store::db::ledger::{ChargedTotals, Ledger, LedgerError, UsageGroupBy, UsageTotals};

/// Model calls in groups, as `--json` and the page show them.
#[derive(Serialize)]
pub(crate) struct UsageReport {
    pub(crate) calls: u64,
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
    pub(crate) cache_read_tokens: u64,
    pub(crate) cache_write_tokens: u64,
    pub(crate) cost_usd: f64,
    /// Calls without a known price.
    pub(crate) unpriced: u64,
    /// Calls made in a batch.
    pub(crate) batched: u64,
    pub(crate) today: ChargedTotals,
    pub(crate) this_month: ChargedTotals,
    pub(crate) by: Vec<UsageTotals>,
}

/// Returns the model calls of a root, or of all roots, in groups.
pub(crate) fn usage_of(
    call: &Invocation,
    root: Option<&str>,
    by: UsageGroupBy,
    today: NaiveDate,
    since: Option<NaiveDate>,
) -> CommandResult<UsageReport> {
    let ledger = Ledger::open_existing(&call.environment.ledger_path())?;
    let (sums, [day, month]) = match &ledger {
        Some(ledger) => (ledger.usage_totals(by, root, since)?, ledger.charged(today, root)?),
        None => Default::default(),
    };
    let total = |of: fn(&UsageTotals) -> u64| sums.iter().map(of).sum::<u64>();
    Ok(UsageReport {
        calls: total(|it| it.calls),
        input_tokens: total(|it| it.input_tokens),
        output_tokens: total(|it| it.output_tokens),
        cache_read_tokens: total(|it| it.cache_read_tokens),
        cache_write_tokens: total(|it| it.cache_write_tokens),
        // A sum of nothing is -0.
        cost_usd: sums.iter().map(|it| it.cost_usd).sum::<f64>() + 0.0,
        unpriced: total(|it| it.unpriced),
        batched: total(|it| it.batched),
        today: day,
        this_month: month,
        by: sums,
    })
}

impl From<LedgerError> for CommandError {
    fn from(error: LedgerError) -> Self {
        Self::data(error).hint(
            "move the ledger away: past spending is forgotten, and today's budget counts as exhausted",
        )
    }
}
