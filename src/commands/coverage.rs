//! `memoird coverage`: lists log lines that no summary covers.

use std::{collections::HashMap, process::ExitCode};

use serde::Serialize;

use super::{
    GlobalArgs, blame,
    trace::{LineageReader, TraceFormat},
    ui::Ui,
};
use crate::{
    compaction,
    engine::OmissionReason,
    memory::{
        decision::Decisions,
        document::Summary,
        hash::ContentHash,
        period::{Grain, Period},
    },
    operations::{
        error::{CommandError, CommandResult},
        workspace::{self, Invocation, MemoryRoot},
    },
    privacy::{self, SanitizedLog},
    recall::{
        coverage::{Coverage, CoverageError, UncoveredLine, coverage},
        trace_formats::{GenerationRecords, TraceGraph, TraceNode},
    },
    store::{
        db::lineage::Lineage,
        fs::{inventory::Inventory, vault::Vault},
    },
};

/// List log lines that no summary covers
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CoverageArgs {
    /// A week, a month, or a day of a week (2026-W14, 2026-04, 2026-04-02) [default: the newest week
    /// with a summary]
    period: Option<Period>,
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

#[derive(Serialize)]
struct CoverageRow {
    period: String,
    lines: usize,
    covered: usize,
    uncovered: usize,
}

pub(super) fn run(global: &GlobalArgs, args: CoverageArgs, ui: &Ui) -> CommandResult {
    let CoverageArgs { period, all, format } = args;
    let (call, root) = Invocation::with_root(global)?;
    if all {
        let inventory = root.vault.scan(&HashMap::new())?.inventory;
        newest_summary(&call, &root, &inventory)?;
        let mut reader = LineageReader::open(&call, &root)?;
        let periods = inventory.weekly.keys().chain(inventory.monthly.keys());
        let rows = periods.map(|&period| {
            let Coverage { period, lines, covered, uncovered } =
                period_coverage(period, &inventory, &root, &mut reader)?;
            Ok(CoverageRow { period, lines, covered, uncovered: uncovered.len() })
        });
        show_table(rows.collect::<CommandResult<_>>()?, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let coverage = coverage_of_period(&call, &root, period)?;
    match format {
        TraceFormat::Tree if !ui.is_json() => show(&coverage, ui),
        TraceFormat::Tree | TraceFormat::Json => ui.json(&coverage),
        TraceFormat::Dot => ui.data(coverage_graph(&call, &root, &coverage)?.to_dot().trim_end()),
        TraceFormat::Prov => ui.json(&coverage_graph(&call, &root, &coverage)?.to_prov()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the uncovered lines as a graph, with the job that wrote the summary.
fn coverage_graph(
    call: &Invocation,
    root: &MemoryRoot,
    coverage: &Coverage,
) -> CommandResult<TraceGraph> {
    let period: Period = coverage.period.parse().map_err(CommandError::data)?;
    let path = root.vault.layout().summary(summary_period(period));
    let reader = LineageReader::open(call, root)?;
    let items = reader.lineage.items_of(&path)?.into_iter().map(|it| (path.clone(), it.line));
    let records = blame::item_producers(call, root, items)?;
    // The newest run that wrote an item of the file.
    let newest = records.into_values().max_by_key(|it| it.run);
    let records: GenerationRecords = newest.map(|it| (path.clone(), it)).into_iter().collect();
    Ok(TraceGraph::from_coverage(&path, coverage).with_generations(records))
}

/// Returns the period whose summary covers the logs of a period: a day belongs to its week.
fn summary_period(period: Period) -> Period {
    match period.grain() {
        Grain::Day => period.parent().unwrap_or(period),
        Grain::Week | Grain::Month => period,
    }
}

/// Returns the coverage of a period, or of the newest week with a summary.
pub(crate) fn coverage_of_period(
    call: &Invocation,
    root: &MemoryRoot,
    period: Option<Period>,
) -> CommandResult<Coverage> {
    // The recorded state of the last scan saves reading the files again.
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let inventory = compaction::read_snapshot(&root.vault, lineage.as_ref())?.inventory;
    let period = match period {
        Some(period) => period,
        None => newest_summary(call, root, &inventory)?,
    };
    coverage_in(call, root, &inventory, period)
}

/// Returns the coverage of a period, given the files of the root.
pub(crate) fn coverage_in(
    call: &Invocation,
    root: &MemoryRoot,
    inventory: &Inventory,
    period: Period,
) -> CommandResult<Coverage> {
    let layout = root.vault.layout();
    let summarized = summary_period(period);
    if current_hash(&root.vault, &layout.summary(summarized))?.is_none()
        && !layout.database().exists()
    {
        return Err(root.no_summary_in(call, inventory, summarized));
    }
    let mut reader = LineageReader::open(call, root)?;
    period_coverage(period, inventory, root, &mut reader)
}

/// Returns the newest week with a summary, or the newest month if there is no week.
fn newest_summary(
    call: &Invocation,
    root: &MemoryRoot,
    inventory: &Inventory,
) -> CommandResult<Period> {
    let week = inventory.weekly.keys().next_back().copied();
    let newest = week.or_else(|| inventory.monthly.keys().next_back().copied());
    newest.ok_or_else(|| {
        let first_log = inventory.logs.keys().next();
        let first_end = first_log.map(|it| Period::containing(Grain::Week, it.date()).end());
        let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
        match first_end.filter(|it| *it > today) {
            Some(end) => CommandError::usage(format!(
                "there are no summaries yet: the first week with logs ends on {end}"
            ))
            .hints_from(workspace::present_files(inventory)),
            None => CommandError::usage("there are no summaries yet").hint("memoird compact"),
        }
    })
}

/// Returns which log lines of a period its summary covers; for a day, the summary of its week.
fn period_coverage(
    period: Period,
    inventory: &Inventory,
    root: &MemoryRoot,
    reader: &mut LineageReader<'_>,
) -> CommandResult<Coverage> {
    let summarized = summary_period(period);
    let path = root.vault.layout().summary(summarized);
    let present = current_hash(&root.vault, &path)?;
    if present.is_some() && reader.lineage.document_hash(&path)? != present {
        reader.record_edits()?;
    }
    let mut logs = Vec::new();
    let sources = match period.grain() {
        // A month is written only from weeks that have a summary.
        Grain::Month => {
            period.weeks().into_iter().filter(|it| inventory.weekly.contains_key(it)).collect()
        }
        Grain::Day | Grain::Week => vec![period],
    };
    for (stem, _) in sources.iter().flat_map(|it| inventory.logs_of(*it)) {
        logs.extend(root.vault.read_log(stem)?.map(|it| privacy::sanitize(&it, &root.rules)));
    }
    for week in sources.into_iter().filter(|it| it.grain() == Grain::Week && *it != period) {
        logs.extend(quarantined_in_week(week, root)?);
    }
    let mut found = match coverage(summarized, &path, &logs, &reader.lineage, root) {
        Err(CoverageError::NotSummarized { .. }) if present.is_none() => {
            return Err(root.no_summary_in(reader.call, inventory, summarized));
        }
        found => found?,
    };
    found.period = period.to_string();
    // No job records lines that a person deleted after the summary was written.
    if let Some(text) = root.vault.read_text(&root.vault.layout().decisions())? {
        let decisions = Decisions::parse(&text);
        for line in &mut found.uncovered {
            if decisions.is_deleted(&path, [line.text.as_str()]) {
                OmissionReason::Deleted.name().clone_into(&mut line.reason);
            }
        }
    }
    Ok(found)
}

/// Returns the quarantined lines that people added to the summary of a week.
fn quarantined_in_week(week: Period, root: &MemoryRoot) -> CommandResult<Option<SanitizedLog>> {
    let Some(text) = root.vault.read_text(&root.vault.layout().summary(week))? else {
        return Ok(None);
    };
    let summary = Summary::parse(week, &text).ok();
    let own = summary.and_then(|it| privacy::sanitize_own_lines(&it, &text, &root.rules));
    Ok(own.and_then(|it| it.only_quarantined()))
}

fn current_hash(vault: &Vault, path: &str) -> CommandResult<Option<ContentHash>> {
    Ok(vault.read(path)?.map(|it| ContentHash::of(it.bytes)))
}

fn show(coverage: &Coverage, ui: &Ui) {
    let Coverage { period, lines, covered, uncovered } = coverage;
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

impl From<CoverageError> for CommandError {
    fn from(error: CoverageError) -> Self {
        match error {
            CoverageError::Lineage(error) => error.into(),
            CoverageError::NotSummarized { .. } => Self::usage(error).hint("memoird status"),
        }
    }
}
