//! Cost: model calls by day, tier, and model; what is left of the budgets; what is due would cost.

use maud::{Markup, html};

use super::or_error;
use crate::{
    operations::{
        error::CommandResult,
        status::health::EngineHealth,
        usage::{UsageReport, usage_of},
    },
    store::db::ledger::UsageGroupBy,
    web::{context::PageContext, layout::PageContent},
};

/// How many groups are listed.
const ROWS_MAX: usize = 60;

pub(super) fn render(context: &PageContext) -> PageContent {
    let health = EngineHealth::read(&context.call, &context.root);
    let body = html! {
        (or_error(health.map(|it| budgets(&it))))
        (or_error(forecast(context)))
        (or_error(group(context, "By day", UsageGroupBy::Day)))
        (or_error(group(context, "By tier", UsageGroupBy::Stage)))
        (or_error(group(context, "By model", UsageGroupBy::Model)))
    };
    PageContent::new("Cost", body)
}

fn budgets(health: &EngineHealth) -> Markup {
    html! {
        p { "Engine: " (health.engine) "." }
        @if !health.budgets.is_empty() {
            h2 { "Budgets" }
            ul { @for (span, used) in &health.budgets { li { (span) ": " (used) } } }
            p .meta { "Of all memory folders together; running calls count with their highest possible cost." }
        }
    }
}

fn forecast(context: &PageContext) -> CommandResult<Markup> {
    let cost = context.due_cost()?;
    Ok(html! {
        h2 { "What is due" }
        p { (cost) "." }
    })
}

fn group(context: &PageContext, title: &str, by: UsageGroupBy) -> CommandResult<Markup> {
    let root = context.root.settings.path.to_string_lossy();
    let usage = usage_of(&context.call, Some(&root), by, context.today(), None)?;
    Ok(html! {
        h2 { (title) }
        @if usage.by.is_empty() { p { "No model calls yet." } } @else { (table(title, &usage)) }
    })
}

fn table(title: &str, usage: &UsageReport) -> Markup {
    html! {
        div .table role="region" aria-label=(title) tabindex="0" {
            table {
                thead { tr { th scope="col" { "" } @for name in ["Calls", "Tokens in", "Cached", "Tokens out", "USD"] { th scope="col" { (name) } } } }
                tbody {
                    @for row in usage.by.iter().take(ROWS_MAX) {
                        tr {
                            th scope="row" { (row.key) }
                            td .number { (row.calls) }
                            td .number { (row.input_tokens) }
                            td .number { (row.cache_read_tokens) }
                            td .number { (row.output_tokens) }
                            td .number { (format!("{:.4}", row.cost_usd)) }
                        }
                    }
                }
                tfoot { tr {
                    th scope="row" { "all" }
                    td .number { (usage.calls) }
                    td .number { (usage.input_tokens) }
                    td .number { (usage.cache_read_tokens) }
                    td .number { (usage.output_tokens) }
                    td .number { (format!("{:.4}", usage.cost_usd)) }
                } }
            }
        }
        @if usage.unpriced > 0 { p .meta { (usage.unpriced) " calls have no known price; they count as 0 USD." } }
    }
}
