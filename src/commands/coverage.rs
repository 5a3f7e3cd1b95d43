//! `memoird coverage`: lists log lines that reached no summary.

use std::{collections::HashMap, process::ExitCode};

use serde::Serialize;

use super::{
    GlobalArgs, blame,
    context::{Call, Root},
    error::{CommandError, Kind},
    trace::{Format, Recorded},
    ui::Ui,
};
use crate::{
    compaction,
    engine::LeftOut,
    memory::{
        decision::Decisions,
        document::Summary,
        hash::ContentHash,
        period::{Grain, Period},
    },
    privacy::{self, ServedLog},
    recall::{
        coverage::{Coverage, CoverageError, Uncovered, coverage},
        graph::{Branch, Graph, Makers},
    },
    store::{inventory::Inventory, lineage::Lineage, vault::Vault},
};

/// List log lines that reached no summary
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Args {
    /// A week, a month, or a day of a week (2026-W14, 2026-04, 2026-04-02); by default the newest
    /// week that was summarised
    period: Option<Period>,
    /// One line for each week and month instead
    #[arg(long, conflicts_with = "period")]
    all: bool,
    /// How to print it; --json is the same as --format json
    #[arg(long, value_enum, default_value_t, conflicts_with = "all")]
    format: Format,
}

/// What `--all --json` prints.
#[derive(Serialize)]
struct Table {
    periods: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    period: String,
    lines: usize,
    covered: usize,
    uncovered: usize,
}

pub(super) fn run(global: &GlobalArgs, args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let Args { period, all, format } = args;
    let call = Call::read(global)?;
    let root = call.root(global)?;
    if all {
        let inventory = root.vault.scan(&HashMap::new())?.inventory;
        newest(&inventory)?;
        let mut recorded = Recorded::open(&call, &root)?;
        let periods = inventory.weekly.keys().chain(inventory.monthly.keys());
        let rows = periods.map(|&period| {
            let Coverage { period, lines, covered, uncovered } =
                covered(period, &inventory, &root, &mut recorded)?;
            Ok(Row { period, lines, covered, uncovered: uncovered.len() })
        });
        show_all(rows.collect::<Result<_, CommandError>>()?, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let coverage = of_period(&call, &root, period)?;
    match format {
        Format::Tree if !ui.is_json() => show(&coverage, ui),
        Format::Tree | Format::Json => ui.json(&coverage),
        Format::Dot => ui.data(graph(&call, &root, &coverage)?.dot().trim_end()),
        Format::Prov => ui.json(&graph(&call, &root, &coverage)?.prov()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns what was left out as a graph, with the job that made the file.
fn graph(call: &Call, root: &Root, coverage: &Coverage) -> Result<Graph, CommandError> {
    let period: Period = coverage.period.parse().map_err(|it| CommandError::new(Kind::Data, it))?;
    let path = root.vault.layout().summary(file_of(period));
    let recorded = Recorded::open(call, root)?;
    let places = recorded.lineage().items_of(&path)?.into_iter().map(|it| (path.clone(), it.line));
    let makers = blame::makers(call, root, places)?;
    // The newest run that wrote an item of the file.
    let newest = makers.into_values().max_by_key(|it| it.run);
    let makers: Makers = newest.map(|it| (path.clone(), it)).into_iter().collect();
    Ok(Graph::left_out(&path, coverage).made_by(makers))
}

/// Returns the period into whose file the logs of a period are folded: that of a day is its week.
fn file_of(period: Period) -> Period {
    match period.grain() {
        Grain::Day => period.parent().unwrap_or(period),
        Grain::Week | Grain::Month => period,
    }
}

/// Tells of a period, or of the newest week that was summarised.
pub(super) fn of_period(
    call: &Call,
    root: &Root,
    period: Option<Period>,
) -> Result<Coverage, CommandError> {
    let database = root.vault.layout().database();
    // What the last look saw need not be read again to know which files there are.
    let lineage = Lineage::open_existing(&database)?;
    let inventory = compaction::peek(&root.vault, lineage.as_ref())?.inventory;
    let newest = newest(&inventory)?;
    let mut recorded = Recorded::open(call, root)?;
    covered(period.unwrap_or(newest), &inventory, root, &mut recorded)
}

/// Returns the newest week that was summarised, or month where there is no week.
fn newest(inventory: &Inventory) -> Result<Period, CommandError> {
    let week = inventory.weekly.keys().next_back().copied();
    week.or_else(|| inventory.monthly.keys().next_back().copied()).ok_or_else(|| {
        CommandError::new(Kind::Usage, "nothing has been summarised here yet")
            .hint("memoird compact")
    })
}

/// Tells what of a period's logs reached its file; of a day's, the file of its week.
fn covered(
    period: Period,
    inventory: &Inventory,
    root: &Root,
    recorded: &mut Recorded<'_>,
) -> Result<Coverage, CommandError> {
    let folded = file_of(period);
    let path = root.vault.layout().summary(folded);
    let present = present_hash(&root.vault, &path)?;
    if present.is_some() && recorded.lineage().document_hash(&path)? != present {
        recorded.notice()?;
    }
    let mut logs = Vec::new();
    let beneath = match period.grain() {
        // Only weeks that have a file fed the month.
        Grain::Month => {
            period.weeks().into_iter().filter(|it| inventory.weekly.contains_key(it)).collect()
        }
        Grain::Day | Grain::Week => vec![period],
    };
    for (stem, _) in beneath.iter().flat_map(|it| inventory.logs_of(*it)) {
        logs.extend(root.vault.read_log(stem)?.map(|it| privacy::serve(&it, &root.rules)));
    }
    for week in beneath.into_iter().filter(|it| it.grain() == Grain::Week && *it != period) {
        logs.extend(held_in(week, root)?);
    }
    let mut found = coverage(folded, &path, &logs, recorded.lineage(), root)?;
    found.period = period.to_string();
    // What a person deleted since the file was made no job could record.
    if let Some(text) = root.vault.read_text(&root.vault.layout().decisions())? {
        let decisions = Decisions::parse(&text);
        for line in &mut found.uncovered {
            if decisions.is_deleted(&path, [line.text.as_str()]) {
                LeftOut::Deleted.name().clone_into(&mut line.reason);
            }
        }
    }
    Ok(found)
}

/// Returns what a person or somebody else wrote in the file of a week and what is held of it.
fn held_in(week: Period, root: &Root) -> Result<Option<ServedLog>, CommandError> {
    let Some(text) = root.vault.read_text(&root.vault.layout().summary(week))? else {
        return Ok(None);
    };
    let summary = Summary::parse(week, &text).ok();
    let own = summary.and_then(|it| privacy::serve_own_lines(&it, &text, &root.rules));
    Ok(own.and_then(|it| it.only_held()))
}

fn present_hash(vault: &Vault, path: &str) -> Result<Option<ContentHash>, CommandError> {
    Ok(vault.read(path)?.map(|it| ContentHash::of(it.bytes)))
}

fn show(coverage: &Coverage, ui: &Ui) {
    let Coverage { period, lines, covered, uncovered } = coverage;
    ui.note(format!(
        "{period}: {covered} of {lines} lines reached its file ({}), {} did not{}",
        percent(*covered, *lines),
        uncovered.len(),
        if uncovered.is_empty() { "" } else { ":" },
    ));
    if ui.shows_trees() {
        ui.tree(&tree(coverage));
        return;
    }
    let place = |path: &str, line: u32| format!("{path}:{line}");
    let widest = |of: &dyn Fn(&Uncovered) -> usize| uncovered.iter().map(of).max().unwrap_or(0);
    let places = widest(&|it| place(&it.path, it.line).chars().count());
    let reasons = widest(&|it| it.reason.chars().count());
    for it in uncovered {
        let (place, text) = (place(&it.path, it.line), it.text.trim());
        ui.data(format!("{place:places$}  {:reasons$}  {text}", it.reason));
    }
}

/// Returns what was left out as a tree: the period, its logs, their lines, each with the reason.
fn tree(coverage: &Coverage) -> Branch {
    let branch =
        |place: String| Branch { place, text: String::new(), note: None, children: vec![] };
    let mut logs: Vec<Branch> = Vec::new();
    for it in &coverage.uncovered {
        if logs.last().is_none_or(|log| log.place != it.path) {
            logs.push(branch(it.path.clone()));
        }
        let (text, note) = (it.text.trim().to_owned(), Some(it.reason.clone()));
        let line = Branch { text, note, ..branch(format!(":{}", it.line)) };
        if let Some(log) = logs.last_mut() {
            log.children.push(line);
        }
    }
    let text = format!("{} lines reached no item", coverage.uncovered.len());
    Branch { text, children: logs, ..branch(coverage.period.clone()) }
}

fn show_all(periods: Vec<Row>, ui: &Ui) {
    if ui.is_json() {
        ui.json(&Table { periods });
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
    ui.table(&["period", "lines", "reached", "did not", "share"], &rows);
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
            CoverageError::NotFolded { .. } => Self::new(Kind::Usage, error).hint("memoird status"),
        }
    }
}
