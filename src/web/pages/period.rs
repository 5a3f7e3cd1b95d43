//! A day, week, or month: its summary beside its logs.

use std::collections::HashMap;

use maud::{Markup, html};

use super::{
    logs, or_error, percent,
    timeline::{FolderTimeline, neighbours},
};
use crate::{
    memory::{
        address::Stem,
        period::{Grain, Period},
    },
    operations::error::CommandResult,
    recall::coverage::Coverage,
    web::{address::PageAddress, context::PageContext, layout::PageContent, markdown, svg},
};

/// How many lines of logs are shown beside a summary; each log has a page of its own.
const LINES_MAX: usize = 240;

/// Why each line reached no item, by log and line.
pub(super) type LeftOut = HashMap<(String, u32), String>;

pub(super) fn render(context: &PageContext, period: Period) -> CommandResult<PageContent> {
    let timeline = context.timeline()?;
    let state = timeline.state_of(period);
    if state.logs == 0 && state.summary_chars.is_none() {
        return Err(context.root.no_summary_in(&context.call, timeline.inventory(), period));
    }
    let stems: Vec<Stem> = timeline.inventory().logs_of(period).map(|it| it.0.clone()).collect();
    let coverage = context.coverage(period);
    let body = html! {
        p .meta { (state.words()) }
        (parts(context, &timeline, period))
        div .columns {
            section aria-labelledby="summary" {
                h2 #summary { @if period.grain() == Grain::Day { "What came of it" } @else { "Summary" } }
                @if period.grain() == Grain::Day {
                    (day_summary(context, period, coverage.as_ref()))
                } @else {
                    (or_error(summary(context, period, coverage.as_ref())))
                }
            }
            section aria-labelledby="logs" {
                h2 #logs { "Logs" }
                @if period.grain() == Grain::Month {
                    (weeks(context, &timeline, period))
                } @else {
                    (log_excerpts(context, &stems, coverage.as_ref()))
                }
            }
        }
        (neighbours(context, "Periods", &around(&timeline, period)))
    };
    Ok(PageContent::new(title(period), body))
}

fn title(period: Period) -> String {
    match period.grain() {
        Grain::Day => format!("Day {period}"),
        Grain::Week => format!("Week {period}, {} to {}", period.first(), period.last()),
        Grain::Month => format!("Month {period}"),
    }
}

/// Draws the parts of a period: the weeks of a month, the days of a week; and leads to what contains it.
fn parts(context: &PageContext, timeline: &FolderTimeline, period: Period) -> Markup {
    let days = |period: Period| period.first().iter_days().take_while(move |it| *it < period.end());
    let bars: Vec<svg::Bar> = match period.grain() {
        Grain::Day => Vec::new(),
        Grain::Week | Grain::Month => days(period)
            .map(|day| {
                let label = match period.grain() {
                    Grain::Week => day.format("%a").to_string(),
                    _ => day.format("%-d").to_string(),
                };
                timeline.bar(context, Period::containing(Grain::Day, day), label)
            })
            .collect(),
    };
    let width = if period.grain() == Grain::Week { 44.0 } else { 20.0 };
    let year: Option<i32> = period.to_string().get(..4).and_then(|it| it.parse().ok());
    html! {
        p .crumbs {
            @if let Some(year) = year { (context.link(&PageAddress::Timeline(Some(year)), year)) }
            @if let Some(above) = period.parent() {
                @if let Some(month) = above.parent() {
                    " › " (context.link(&PageAddress::Period(month), month.to_string()))
                }
                " › " (context.link(&PageAddress::Period(above), above.to_string()))
            }
        }
        @if !bars.is_empty() { (svg::bars(&format!("The days of {period}"), &bars, width)) }
    }
}

fn summary(
    context: &PageContext,
    period: Period,
    coverage: Option<&Coverage>,
) -> CommandResult<Markup> {
    let path = context.root.vault.layout().summary(period);
    let Some(file) = context.file(&path)? else {
        let error =
            context.root.no_summary_in(&context.call, context.timeline()?.inventory(), period);
        return Ok(html! {
            p { (error.to_string()) "." }
            @for hint in error.hints() { p .meta { (hint) } }
        });
    };
    Ok(html! {
        (markdown::memory_file(context, &path, &file.text, &file.external_lines))
        @if let Some(found) = coverage {
            p .meta {
                "It covers " (found.covered) " of " (found.lines) " lines"
                @if let Some(percent) = percent(found.covered, found.lines) { " (" (percent) "%)" }
                ", " (found.uncovered.len()) " are left out."
            }
        }
        p { (context.versions_link(&path, "Versions")) }
    })
}

fn day_summary(context: &PageContext, period: Period, coverage: Option<&Coverage>) -> Markup {
    html! {
        @match coverage {
            Some(found) => p {
                "The summary of its week covers " (found.covered) " of its " (found.lines) " lines"
                @if let Some(percent) = percent(found.covered, found.lines) { " (" (percent) "%)" } "."
            },
            None => p { "Its week has no summary yet." },
        }
        p { "The number of each line leads to what came of it." }
        @if let Some(week) = period.parent() {
            p { (context.link(&PageAddress::Period(week), format!("Week {week}"))) }
        }
    }
}

fn weeks(context: &PageContext, timeline: &FolderTimeline, period: Period) -> Markup {
    html! {
        ul {
            @for week in period.weeks() {
                @let state = timeline.state_of(week);
                @if state.logs > 0 {
                    li { (context.link(&PageAddress::Period(week), week.to_string())) ": " (state.words()) }
                }
            }
        }
    }
}

fn log_excerpts(context: &PageContext, stems: &[Stem], coverage: Option<&Coverage>) -> Markup {
    let left_out = left_out(coverage);
    let share = LINES_MAX.checked_div(stems.len()).unwrap_or(LINES_MAX).max(8);
    html! {
        @if coverage.is_some() {
            p .meta { "Grey lines reached no item; the reason follows each." }
        }
        @for stem in stems {
            section aria-label=(stem.to_string()) {
                h3 { (context.link(&PageAddress::Log(stem.clone(), 0), stem.to_string())) }
                (logs::excerpt(context, stem, share, coverage.map(|_| &left_out)))
            }
        }
    }
}

/// Returns the lines that reached no item, with the reason.
pub(super) fn left_out(coverage: Option<&Coverage>) -> LeftOut {
    let lines = coverage.into_iter().flat_map(|it| &it.uncovered);
    lines.map(|it| ((it.path.clone(), it.line), it.reason.clone())).collect()
}

/// Returns the period with logs before this one, and the one after.
fn around(timeline: &FolderTimeline, period: Period) -> [Option<(PageAddress, String)>; 2] {
    let of_day = |day| Period::containing(period.grain(), day);
    let mut before = None;
    let mut after = None;
    for stem in timeline.inventory().logs.keys() {
        // Near the turn of a month, a day belongs to another month than its week does.
        let other = of_day(stem.date());
        if other < period {
            before = Some(other);
        } else if other > period && after.is_none() {
            after = Some(other);
        }
    }
    let has_page = |it: &Period| timeline.state_of(*it).logs > 0;
    [before, after]
        .map(|it| it.filter(has_page).map(|it| (PageAddress::Period(it), it.to_string())))
}
