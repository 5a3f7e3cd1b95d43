//! `memoird usage`: tokens and cost of model calls.

use std::process::ExitCode;

use super::{GlobalArgs, ui::Ui};
use crate::{
    config::settings::Cap,
    operations::{
        error::CommandResult,
        usage::{UsageReport, usage_of},
        workspace::Invocation,
    },
    recall::search::time::date_words::DateWords,
    store::db::ledger::{UsageGroupBy, UsageTotals},
};

/// Show tokens and cost of model calls
///
/// Covers all memory folders unless --root names one.
#[derive(Debug, clap::Args)]
pub(super) struct UsageArgs {
    /// What to group by
    #[arg(long, value_enum, default_value_t = UsageGrouping::Day)]
    by: UsageGrouping,
    /// Only calls since this day, week, or month (2026-04-02, "last month")
    #[arg(long, value_name = "DATE")]
    since: Option<DateWords>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum UsageGrouping {
    Day,
    Tier,
    Run,
    Model,
}

pub(super) fn run(global: &GlobalArgs, args: &UsageArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let root = match &global.root {
        Some(_) => Some(call.config.select_root(global.root.as_deref(), &call.environment)?),
        None => None,
    };
    let by = match args.by {
        UsageGrouping::Day => UsageGroupBy::Day,
        UsageGrouping::Tier => UsageGroupBy::Stage,
        UsageGrouping::Run => UsageGroupBy::Run,
        UsageGrouping::Model => UsageGroupBy::Model,
    };
    // Budget days follow the time zone of the folder, if one is selected.
    let zone = call.selected_root(global).ok().map(|it| it.settings.zone.name.0);
    let today = zone
        .map_or_else(|| call.now.date_naive(), |zone| call.now.with_timezone(&zone).date_naive());
    let since = args.since.as_ref().map(|it| it.days(today).0);
    let root = root.as_ref().map(|it| it.to_string_lossy());
    let usage = usage_of(&call, root.as_deref(), by, today, since)?;
    if ui.is_json() {
        ui.json(&usage);
    } else if usage.by.is_empty() {
        ui.note("no model calls yet");
    } else {
        let budget = &call.config.settings.budget;
        usage.print(args.by, [&budget.day, &budget.month], ui);
    }
    Ok(ExitCode::SUCCESS)
}

impl UsageReport {
    fn print(&self, by: UsageGrouping, caps: [&Cap; 2], ui: &Ui) {
        self.print_table(by, ui);
        if self.unpriced > 0 {
            ui.note(format!("{} calls have no known price; they count as 0 USD", self.unpriced));
        }
        if self.batched > 0 {
            ui.note(format!("{} calls were made in batches", self.batched));
        }
        let spans = [("today", &self.today), ("this month", &self.this_month)];
        for ((name, charged), cap) in spans.into_iter().zip(caps) {
            let of = cap.usd.map(|it| format!(" of {it:.2}")).unwrap_or_default();
            let lost = if charged.is_lost {
                "; the ledger was lost, so the budget counts as exhausted"
            } else {
                ""
            };
            ui.note(format!("{name}: {:.4}{of} USD, {} calls{lost}", charged.usd, charged.calls));
        }
    }

    fn print_table(&self, by: UsageGrouping, ui: &Ui) {
        let mut rows: Vec<Vec<String>> = self.by.iter().map(|it| usage_row(&it.key, it)).collect();
        if rows.len() > 1 {
            let all = UsageTotals {
                key: String::new(),
                calls: self.calls,
                input_tokens: self.input_tokens,
                output_tokens: self.output_tokens,
                cache_read_tokens: self.cache_read_tokens,
                cache_write_tokens: self.cache_write_tokens,
                cost_usd: self.cost_usd,
                unpriced: self.unpriced,
                batched: self.batched,
            };
            rows.push(usage_row("all", &all));
        }
        let key = match by {
            UsageGrouping::Day => "day",
            UsageGrouping::Tier => "tier",
            UsageGrouping::Run => "run",
            UsageGrouping::Model => "model",
        };
        ui.table(&[key, "calls", "tokens in", "cached", "tokens out", "usd"], &rows);
    }
}

fn usage_row(key: &str, it: &UsageTotals) -> Vec<String> {
    vec![
        key.to_owned(),
        it.calls.to_string(),
        it.input_tokens.to_string(),
        it.cache_read_tokens.to_string(),
        it.output_tokens.to_string(),
        format!("{:.4}", it.cost_usd),
    ]
}
