//! `memoird usage`: what calls of models took and cost.

use std::process::ExitCode;

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::Invocation,
};
use crate::store::db::ledger::{ChargedTotals, Ledger, LedgerError, UsageGroupBy, UsageTotals};

/// Show what calls of models took and cost
///
/// Over all memory folders, unless --root names one.
#[derive(Debug, clap::Args)]
pub(super) struct UsageArgs {
    /// What to sum up by
    #[arg(long, value_enum, default_value_t = UsageGrouping::Day)]
    by: UsageGrouping,
    /// Only calls of this day or later
    #[arg(long, value_name = "DATE")]
    since: Option<NaiveDate>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum UsageGrouping {
    Day,
    Tier,
    Run,
    Model,
}

/// What `--json` prints.
#[derive(Serialize)]
struct UsageReport {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_write_tokens: u64,
    cost_usd: f64,
    /// Calls of which nobody knows the price.
    unpriced: u64,
    /// Calls that were made in a batch.
    batched: u64,
    today: ChargedTotals,
    this_month: ChargedTotals,
    by: Vec<UsageTotals>,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &UsageArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let root = match &global.root {
        Some(_) => Some(call.config.select_root(global.root.as_deref(), &call.environment)?),
        None => None,
    };
    let root = root.as_ref().map(|it| it.to_string_lossy());
    let root = root.as_deref();
    let by = match args.by {
        UsageGrouping::Day => UsageGroupBy::Day,
        UsageGrouping::Tier => UsageGroupBy::Stage,
        UsageGrouping::Run => UsageGroupBy::Run,
        UsageGrouping::Model => UsageGroupBy::Model,
    };
    // The days of the caps are those of the folder, where one is meant.
    let zone = call.selected_root(global).ok().map(|it| it.settings.zone.name.0);
    let today = zone
        .map_or_else(|| call.now.date_naive(), |zone| call.now.with_timezone(&zone).date_naive());
    let ledger = Ledger::open_existing(&call.environment.ledger_path())?;
    let (sums, [day, month]) = match &ledger {
        Some(ledger) => (ledger.usage_totals(by, root, args.since)?, ledger.charged(today, root)?),
        None => Default::default(),
    };
    let total = |of: fn(&UsageTotals) -> u64| sums.iter().map(of).sum::<u64>();
    let usage = UsageReport {
        calls: total(|it| it.calls),
        input_tokens: total(|it| it.input_tokens),
        output_tokens: total(|it| it.output_tokens),
        cache_read_tokens: total(|it| it.cache_read_tokens),
        cache_write_tokens: total(|it| it.cache_write_tokens),
        cost_usd: sums.iter().map(|it| it.cost_usd).sum(),
        unpriced: total(|it| it.unpriced),
        batched: total(|it| it.batched),
        today: day,
        this_month: month,
        by: sums,
    };
    if ui.is_json() {
        ui.json(&usage);
        return Ok(ExitCode::SUCCESS);
    }
    if usage.by.is_empty() {
        ui.note("no model was called");
        return Ok(ExitCode::SUCCESS);
    }
    let money = |usd: f64| format!("{usd:.4}");
    let row = |key: &str, it: &UsageTotals| {
        vec![
            key.to_owned(),
            it.calls.to_string(),
            it.input_tokens.to_string(),
            it.cache_read_tokens.to_string(),
            it.output_tokens.to_string(),
            money(it.cost_usd),
        ]
    };
    let mut rows: Vec<Vec<String>> = usage.by.iter().map(|it| row(&it.key, it)).collect();
    if rows.len() > 1 {
        let all = UsageTotals {
            key: String::new(),
            calls: usage.calls,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            cost_usd: usage.cost_usd,
            unpriced: usage.unpriced,
            batched: usage.batched,
        };
        rows.push(row("all", &all));
    }
    let key = match args.by {
        UsageGrouping::Day => "day",
        UsageGrouping::Tier => "tier",
        UsageGrouping::Run => "run",
        UsageGrouping::Model => "model",
    };
    ui.table(&[key, "calls", "tokens in", "of these cached", "tokens out", "usd"], &rows);
    if usage.unpriced > 0 {
        ui.note(format!(
            "of {} calls nobody knows the price; they count as nothing",
            usage.unpriced
        ));
    }
    if usage.batched > 0 {
        ui.note(format!("{} of these calls were made in batches", usage.batched));
    }
    let budget = &call.config.settings.budget;
    for (name, charged, cap) in [("today", day, &budget.day), ("this month", month, &budget.month)]
    {
        let of = cap.usd.map(|it| format!(" of {it:.2}")).unwrap_or_default();
        let lost =
            if charged.is_lost { "; the ledger was lost, so the cap counts as spent" } else { "" };
        ui.note(format!("{name}: {:.4}{of} USD, {} calls{lost}", charged.usd, charged.calls));
    }
    Ok(ExitCode::SUCCESS)
}

impl From<LedgerError> for CommandError {
    fn from(error: LedgerError) -> Self {
        Self::new(CommandErrorKind::Data, error).hint(
            "move the ledger away: what was spent is forgotten then, and today's caps count as spent",
        )
    }
}
