//! Which log lines the summaries cover.

use std::collections::HashMap;

use serde::Serialize;

use super::{
    blame,
    error::{CommandError, CommandResult},
    trace::LineageReader,
    workspace::{Invocation, MemoryRoot, no_logs_yet},
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
    privacy::{self, SanitizedLog},
    recall::{
        coverage::{Coverage, CoverageError, coverage, coverage_of_open},
        trace_formats::{GenerationRecords, TraceGraph},
    },
    store::{
        db::lineage::Lineage,
        fs::{inventory::Inventory, vault::Vault},
    },
};

/// How many lines of a period its summary covers.
#[derive(Serialize)]
pub(crate) struct CoverageRow {
    pub(crate) period: String,
    pub(crate) lines: usize,
    pub(crate) covered: usize,
    pub(crate) uncovered: usize,
}

/// Returns the uncovered lines as a graph, with the job that wrote the summary.
pub(crate) fn coverage_graph(
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
pub(crate) fn summary_period(period: Period) -> Period {
    match period.grain() {
        Grain::Day => period.parent().unwrap_or(period),
        Grain::Week | Grain::Month => period,
    }
}

/// Returns the coverage of a period, or of the newest week with a summary; before the first week has ended, of that.
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
    let summarized = summary_period(period);
    if !root.vault.layout().full(&root.vault.layout().summary(summarized)).exists()
        && root.is_open(call, &inventory, summarized)
    {
        let logs = sanitized_logs(root, &inventory, period)?;
        return Ok(coverage_of_open(period, &logs, root));
    }
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

/// Returns the coverage of each week and month with a summary.
pub(crate) fn coverage_of_all(
    call: &Invocation,
    root: &MemoryRoot,
) -> CommandResult<Vec<CoverageRow>> {
    let inventory = root.vault.scan(&HashMap::new())?.inventory;
    let row = |Coverage { period, lines, covered, uncovered }| CoverageRow {
        period,
        lines,
        covered,
        uncovered: uncovered.len(),
    };
    if inventory.weekly.is_empty() && inventory.monthly.is_empty() {
        return Ok(vec![row(coverage_of_period(call, root, None)?)]);
    }
    let mut reader = LineageReader::open(call, root)?;
    let periods = inventory.weekly.keys().chain(inventory.monthly.keys());
    periods.map(|&it| Ok(row(period_coverage(it, &inventory, root, &mut reader)?))).collect()
}

/// Returns the newest week with a summary, or the newest month if there is no week; without either the week of the
/// first log, as long as it has not ended.
fn newest_summary(
    call: &Invocation,
    root: &MemoryRoot,
    inventory: &Inventory,
) -> CommandResult<Period> {
    let week = inventory.weekly.keys().next_back().copied();
    let newest = week.or_else(|| inventory.monthly.keys().next_back().copied());
    let first = inventory.logs.keys().next().map(|it| Period::containing(Grain::Week, it.date()));
    newest.or_else(|| first.filter(|it| root.is_open(call, inventory, *it))).ok_or_else(|| {
        let what = "there are no summaries yet";
        if inventory.logs.is_empty() {
            return no_logs_yet(what);
        }
        CommandError::usage(what).hint("memoird compact")
    })
}

/// Returns the logs of a period.
fn sanitized_logs(
    root: &MemoryRoot,
    inventory: &Inventory,
    period: Period,
) -> CommandResult<Vec<SanitizedLog>> {
    let logs = inventory.logs_of(period).map(|(stem, _)| root.vault.read_log(stem));
    let logs = logs.collect::<Result<Vec<_>, _>>()?.into_iter().flatten();
    Ok(logs.map(|it| privacy::sanitize(&it, &root.rules)).collect())
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
    for source in &sources {
        logs.extend(sanitized_logs(root, inventory, *source)?);
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

impl From<CoverageError> for CommandError {
    fn from(error: CoverageError) -> Self {
        match error {
            CoverageError::Lineage(error) => error.into(),
            CoverageError::NotSummarized { .. } => Self::usage(error).hint("memoird status"),
        }
    }
}
