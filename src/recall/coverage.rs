//! The source lines of a summarized period that reached no item, and why.
//!
//! Lines that can carry a statement count. The reason is the one that the job recorded; if it was lost
//! with an old database, it is derived from the line. Called by `coverage` and `status`.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::trace::TraceSources;
use crate::{
    engine::OmissionReason,
    memory::{
        address::{Address, Citation},
        markdown::LineKind,
        period::Period,
    },
    privacy::{SanitizedLine, SanitizedLog},
    store::db::lineage::{Lineage, LineageError},
};

/// Which lines of a period's logs reached its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The period.
    pub period: String,
    /// Lines that can carry a statement.
    pub lines: usize,
    /// Those that an item cites.
    pub covered: usize,
    /// The others, by log and line.
    pub uncovered: Vec<UncoveredLine>,
}

/// A line that reached no item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UncoveredLine {
    /// The log, relative to the root.
    pub path: String,
    /// The line, from 1.
    pub line: u32,
    /// The sanitized line.
    pub text: String,
    /// Why, in a word or two.
    pub reason: String,
}

/// Why there is no coverage.
#[derive(Debug, thiserror::Error)]
pub enum CoverageError {
    /// The period has no file.
    #[error(
        "{period} has no recorded summary: `{path}` is not in the lineage; `memoird status` shows what is due"
    )]
    NotSummarized {
        /// The period.
        period: Period,
        /// Where its file would be.
        path: String,
    },
    /// The database could not be read.
    #[error(transparent)]
    Lineage(#[from] LineageError),
}

/// Returns which lines of `logs`, the logs of `period`, reached the file at `path`.
pub(crate) fn coverage(
    period: Period,
    path: &str,
    logs: &[SanitizedLog],
    lineage: &Lineage,
    sources: &dyn TraceSources,
) -> Result<Coverage, CoverageError> {
    if lineage.document(path)?.is_none() {
        return Err(CoverageError::NotSummarized { period, path: path.to_owned() });
    }
    let items = lineage.items_of(path)?;
    let cited: Vec<Citation> = items.into_iter().filter_map(|it| it.citation).collect();
    let left_out = lineage.uncovered_lines(path)?;
    Ok(coverage_without(period, logs, uncovered_lines(logs, &cited, &left_out), sources))
}

/// The reason of lines whose period has no summary, because it has not ended.
pub(crate) const NOT_ENDED: &str = "not summarized yet";

/// Returns the coverage of a period without a summary, because it has not ended.
pub(crate) fn coverage_of_open(
    period: Period,
    logs: &[SanitizedLog],
    sources: &dyn TraceSources,
) -> Coverage {
    let mut uncovered = uncovered_lines(logs, &[], &BTreeMap::new());
    for (.., reason) in &mut uncovered {
        if *reason == OmissionReason::OverBudget.name() {
            NOT_ENDED.clone_into(reason);
        }
    }
    coverage_without(period, logs, uncovered, sources)
}

/// Returns the coverage of a period all of whose lines but these are covered.
fn coverage_without(
    period: Period,
    logs: &[SanitizedLog],
    uncovered: Vec<(&SanitizedLog, &SanitizedLine, String)>,
    sources: &dyn TraceSources,
) -> Coverage {
    let lines: usize = logs.iter().map(|log| content_lines(log).count()).sum();
    let uncovered = uncovered.into_iter().map(|(log, line, reason)| UncoveredLine {
        path: sources.path_of(log.stem()),
        line: line.number(),
        text: line.text().to_owned(),
        reason,
    });
    let uncovered: Vec<_> = uncovered.collect();
    Coverage { period: period.to_string(), lines, covered: lines - uncovered.len(), uncovered }
}

/// Returns the lines that no citation contains, each with a reason.
fn uncovered_lines<'a>(
    logs: &'a [SanitizedLog],
    cited: &[Citation],
    left_out: &BTreeMap<Address, String>,
) -> Vec<(&'a SanitizedLog, &'a SanitizedLine, String)> {
    let mut left = Vec::new();
    let mut said = HashSet::new();
    for log in logs {
        let lines: Vec<_> = cited.iter().filter_map(|it| it.lines_of(log.stem())).collect();
        for (line, under_header) in content_lines(log) {
            if lines.iter().any(|it| it.contains(line.number())) {
                said.insert(normalized(line.words()));
            } else {
                left.push((log, line, under_header));
            }
        }
    }
    left.into_iter()
        .map(|(log, line, is_header)| {
            let recorded = left_out.get(&log.address(line)).cloned();
            let told = || {
                let structure = is_header || matches!(line.kind(), LineKind::Heading { .. });
                let reason = if let Some(reason) = OmissionReason::of_line(line) {
                    reason
                } else if structure {
                    OmissionReason::Structure
                } else if said.contains(&normalized(line.words())) {
                    OmissionReason::Repeat
                } else {
                    OmissionReason::OverBudget
                };
                reason.name().to_owned()
            };
            (log, line, recorded.unwrap_or_else(told))
        })
        .collect()
}

/// Returns the lines that can carry a statement, including quarantined ones, and whether each is a
/// table header.
fn content_lines(log: &SanitizedLog) -> impl Iterator<Item = (&SanitizedLine, bool)> {
    let next = log.lines().iter().skip(1).map(Some).chain([None]);
    let counts = |line: &SanitizedLine| line.is_content() || line.is_quarantined();
    log.lines().iter().zip(next).filter(move |(line, _)| counts(line)).map(|(line, next)| {
        let ruled = next.is_some_and(|it| it.kind() == LineKind::Rule);
        (line, ruled && line.kind() == LineKind::TableRow)
    })
}

/// Returns text for comparison: in lower case and with single spaces.
fn normalized(words: &str) -> String {
    words.split_whitespace().map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
