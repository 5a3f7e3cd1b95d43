//! `memoird coverage`: lists log lines that no summary covers.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, trace::TraceFormat, ui::Ui};
use crate::{
    memory::period::{ParsePeriodError, Period},
    operations::{
        coverage::{
            CoverageRow, coverage_graph, coverage_of_all, coverage_of_period, summary_period,
        },
        error::{CommandError, CommandResult},
        format::counted,
        workspace::{Invocation, MemoryRoot},
    },
    recall::{
        coverage::{Coverage, NOT_ENDED, UncoveredLine},
        trace_formats::TraceNode,
    },
    store::fs::layout::WISDOM_FILE,
};

/// List log lines that no summary covers
#[derive(Clone, Debug, clap::Args)]
pub(super) struct CoverageArgs {
    /// A week, a month, or a day of a week (2026-W14, 2026-04, 2026-04-02, "last week") [default: the
    /// newest week with a summary]
    period: Option<String>,
    /// Show one row per week and month instead
    #[arg(long, conflicts_with = "period")]
    all: bool,
    /// Output format; --json is the same as --format json
    #[arg(long, value_enum, default_value_t, conflicts_with = "all")]
    format: TraceFormat,
}

/// What `--all --json` prints.
#[derive(Serialize)]
struct CoverageTable {
    periods: Vec<CoverageRow>,
}

/// Returns the period that an argument names.
fn period_of(root: &MemoryRoot, named: &str) -> CommandResult<Period> {
    if [WISDOM_FILE, "WISDOM"].contains(&named) {
        return Err(CommandError::usage(format!("{named} is not of a period"))
            .hint("memoird compact --explain WISDOM.md"));
    }
    let period = named.parse().or_else(|error| root.period_in_words(named).ok_or(error));
    period.map_err(|error: ParsePeriodError| {
        CommandError::usage(error).hint("memoird coverage --all")
    })
}

pub(super) fn run(global: &GlobalArgs, args: CoverageArgs, ui: &Ui) -> CommandResult {
    let CoverageArgs { period, all, format } = args;
    let (call, root) = Invocation::with_root(global)?;
    if all {
        show_table(coverage_of_all(&call, &root)?, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let period = period.map(|it| period_of(&root, &it)).transpose()?;
    let coverage = coverage_of_period(&call, &root, period)?;
    match format {
        TraceFormat::Tree if !ui.is_json() => show(&coverage, ui),
        TraceFormat::Tree | TraceFormat::Json => ui.json(&coverage),
        TraceFormat::Dot => ui.data(coverage_graph(&call, &root, &coverage)?.to_dot().trim_end()),
        TraceFormat::Prov => ui.json(&coverage_graph(&call, &root, &coverage)?.to_prov()),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(coverage: &Coverage, ui: &Ui) {
    let Coverage { period, lines, covered, uncovered } = coverage;
    let summarized = period.parse().map(summary_period).ok();
    let is_open = uncovered.iter().any(|it| it.reason == NOT_ENDED);
    if let Some(summarized) = summarized.filter(|_| is_open) {
        let (lines, last) = (counted(*lines, "line", "lines"), summarized.last());
        ui.note(format!(
            "{period}: {lines} so far, not summarized yet; {summarized} is open until {last}"
        ));
        ui.note(format!("`memoird show {summarized}` says what there is until then"));
        return;
    }
    ui.note(format!(
        "{period}: its summary covers {covered} of {lines} lines ({}), {} are not covered{}",
        percent(*covered, *lines),
        uncovered.len(),
        if uncovered.is_empty() { "" } else { ":" },
    ));
    if ui.is_stdout_terminal() {
        ui.tree(&uncovered_tree(coverage));
        return;
    }
    let address = |path: &str, line: u32| format!("{path}:{line}");
    let widest = |of: &dyn Fn(&UncoveredLine) -> usize| uncovered.iter().map(of).max().unwrap_or(0);
    let address_width = widest(&|it| address(&it.path, it.line).chars().count());
    let reason_width = widest(&|it| it.reason.chars().count());
    for it in uncovered {
        let (address, text) = (address(&it.path, it.line), it.text.trim());
        ui.data(format!("{address:address_width$}  {:reason_width$}  {text}", it.reason));
    }
}

/// Returns the uncovered lines as a tree: the period, its logs, their lines with the reason.
fn uncovered_tree(coverage: &Coverage) -> TraceNode {
    let branch =
        |place: String| TraceNode { place, text: String::new(), note: None, children: vec![] };
    let mut logs: Vec<TraceNode> = Vec::new();
    for it in &coverage.uncovered {
        if logs.last().is_none_or(|log| log.place != it.path) {
            logs.push(branch(it.path.clone()));
        }
        let (text, note) = (it.text.trim().to_owned(), Some(it.reason.clone()));
        let line = TraceNode { text, note, ..branch(format!(":{}", it.line)) };
        if let Some(log) = logs.last_mut() {
            log.children.push(line);
        }
    }
    let text = format!("{} lines reached no item", coverage.uncovered.len());
    TraceNode { text, children: logs, ..branch(coverage.period.clone()) }
}

fn show_table(periods: Vec<CoverageRow>, ui: &Ui) {
    if ui.is_json() {
        ui.json(&CoverageTable { periods });
        return;
    }
    let rows: Vec<Vec<String>> = periods
        .into_iter()
        .map(|it| {
            let share = percent(it.covered, it.lines);
            vec![
                it.period,
                it.lines.to_string(),
                it.covered.to_string(),
                it.uncovered.to_string(),
                share,
            ]
        })
        .collect();
    ui.table(&["period", "lines", "covered", "not covered", "share"], &rows);
}

fn percent(part: usize, whole: usize) -> String {
    match (part * 100).checked_div(whole) {
        Some(percent) => format!("{percent}%"),
        None => "-".to_owned(),
    }
}
