//! Traces an item down to the log lines that it is derived from, and a log line up to all its items.
//!
//! The lineage says which lines; the words come from the sanitized files. A trace depends only on the
//! files and on what was recorded about them, never on row numbers or times, so it is byte-identical
//! after a rebuild of the database. Called by `trace`, the MCP server, and search.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::Serialize;

use crate::{
    memory::{
        address::{Address, Citation, Stem, is_removed_line, original_line_number},
        frontmatter,
        hash::ContentHash,
        item::Item,
        joined,
        log::TextOrigin,
        markdown::{self, LineKind},
        wisdom::{WisdomEntry, WisdomFile},
    },
    privacy::{SanitizedLine, SanitizedLog},
    recall::cited_hashes::cited_hashes,
    store::db::lineage::{
        Lineage, LineageError,
        query::{CitingItem, ItemLocation},
        record::{DocumentKind, ItemRecord, LogRecord},
    },
};

/// Where a trace reads text.
pub trait TraceSources {
    /// Returns a sanitized log; `None` when it is gone.
    fn log(&self, stem: &Stem) -> Option<SanitizedLog>;

    /// Returns a generated file by its path relative to the root; `None` when it is gone.
    fn document(&self, path: &str) -> Option<SanitizedDocument>;

    /// Returns the current or former path of a log, relative to the root.
    fn path_of(&self, stem: &Stem) -> String;

    /// Returns the logs that cite a session record, by day.
    fn logs_citing_session(&self, record: &Stem) -> Vec<Stem>;
}

/// A sanitized generated file.
#[derive(Clone, Debug)]
pub struct SanitizedDocument {
    /// Its text with frontmatter, with the same lines as on disk and secrets masked.
    pub text: String,
    /// The hash of its bytes on disk, for comparison with the recorded one.
    pub hash: ContentHash,
}

/// The sources of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trace {
    /// The target.
    pub target: TracedItem,
    /// The log lines of the target, by log and line.
    pub sources: Vec<SourceRange>,
    /// If the target is a whole file: each of its items with its own sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Trace>,
}

/// An item, or a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TracedItem {
    /// The file, relative to the root.
    pub path: String,
    /// The first line of the item; `None` for a whole file.
    pub line: Option<u32>,
    /// Its text on one line; empty for a whole file.
    pub text: String,
}

/// A range of lines of one log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceRange {
    /// The log, relative to the root.
    pub path: String,
    /// The first line, from 1.
    pub line_start: u32,
    /// The last line.
    pub line_end: u32,
    /// The sanitized lines, separated by `\
    /// `; empty when they are gone.
    pub text: String,
    /// The least trusted origin of the lines; `None` when they are gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'static str>,
    /// Whether the log, or one of the lines, is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Whether one of the lines has changed since it was cited.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub changed: bool,
    /// The items of lower tiers between target and log that cite each of these lines.
    pub via: Vec<TracedItem>,
    /// The sources of the line, if it is itself a generated item (a weekly file cited as a source).
    pub sources: Vec<SourceRange>,
}

/// The items derived from a log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TraceUp {
    /// The line.
    pub target: TracedItem,
    /// Weekly and monthly items, typed memories and wisdom entries that cite it.
    pub derived: Vec<DerivedItem>,
}

/// An item derived from a log line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DerivedItem {
    /// The kind of its file.
    pub tier: &'static str,
    /// Its place and text.
    #[serde(flatten)]
    pub place: TracedItem,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The lineage does not know the file.
    #[error("`{path}` is not in the lineage")]
    NotInLineage {
        /// The file.
        path: String,
    },
    /// The file was recorded and is gone.
    #[error("`{path}` is recorded but not on disk")]
    FileMissing {
        /// The file.
        path: String,
    },
    /// The file differs from the recorded one, so its lines may have moved.
    #[error("`{path}` was changed since it was recorded")]
    FileChanged {
        /// The file.
        path: String,
    },
    /// The line belongs to no item.
    #[error("line {line} of `{path}` is no item{}", nearest.map_or(String::new(), |it| format!("; the nearest one begins on line {it}")))]
    NoItem {
        /// The file.
        path: String,
        /// The line.
        line: u32,
        /// Where the nearest item begins.
        nearest: Option<u32>,
    },
    /// The target is a log.
    #[error("`{path}` is a log, where traces end; to see what came of a line, use `--up`")]
    IsLog {
        /// The log.
        path: String,
    },
    /// The log has no such line.
    #[error("`{path}` has no line {line}")]
    NoLine {
        /// The log.
        path: String,
        /// The line.
        line: u32,
    },
    /// The database could not be read.
    #[error(transparent)]
    Lineage(#[from] LineageError),
}

/// The first and the last line of a range.
type LineRange = (u32, u32);

impl SourceRange {
    /// Returns whether this range, or one of its sources, is or contains the lines of `other`.
    fn contains(&self, other: &Self) -> bool {
        let here = self.path == other.path
            && self.line_start <= other.line_start
            && other.line_end <= self.line_end;
        here || self.sources.iter().any(|it| it.contains(other))
    }
}

/// How deep a source is followed that is itself an item: from wisdom through a monthly and a weekly
/// file, cited by their lines, to the logs. The limit ends a file that cites itself.
const SOURCE_DEPTH_MAX: usize = 2;

/// Splits `PATH:LINE`; without a number at the end, all of it is the path.
pub fn split_target(target: &str) -> (&str, Option<u32>) {
    let cut = target.rsplit_once(':').and_then(|(path, line)| {
        let plain = line.bytes().all(|it| it.is_ascii_digit());
        line.parse().ok().filter(|&it| plain && it > 0).map(|line| (path, Some(line)))
    });
    cut.unwrap_or((target, None))
}

/// Traces an item, or all items of a file, down to log lines.
///
/// `line` may be any line of the item; every line of a typed memory is one. Without a line, a typed
/// memory is traced as its one item; for any other file `sources` contains the sources of the whole
/// file, and `items` those of each item.
///
/// After `TraceError::FileChanged`, the caller records the file again and retries.
pub(crate) fn trace(
    path: &str,
    line: Option<u32>,
    lineage: &Lineage,
    sources: &dyn TraceSources,
) -> Result<Trace, TraceError> {
    let mut tracer = Tracer::new(lineage, sources);
    if lineage.document(path)?.is_none()
        && let Some(stem) = stem_of(path)
        && sources.path_of(&stem) == path
        && !stem.is_summary()
    {
        return Err(TraceError::IsLog { path: path.to_owned() });
    }
    let file = tracer.traced_file(path)?;
    let kind = file.kind;
    let items = lineage.items_of(path)?;
    let one = match line {
        Some(line) => Some(file.item_at_line(path, line, &items)?),
        // A memory of one statement is one item, which begins on its first line.
        None if kind == DocumentKind::Memory => items.first().filter(|it| it.line == 1),
        None => None,
    };
    if let Some(item) = one {
        return tracer.trace_item(path, kind, item);
    }
    let mut each = Vec::new();
    for item in &items {
        each.push(tracer.trace_item(path, kind, item)?);
    }
    let mut all: Option<Citation> = None;
    for citation in items.into_iter().filter_map(|it| it.citation) {
        match &mut all {
            Some(all) => all.merge(&citation),
            None => all = Some(citation),
        }
    }
    Ok(Trace {
        target: TracedItem { path: path.to_owned(), line: None, text: String::new() },
        sources: tracer.cited_ranges(path, kind, all.as_ref(), 0)?,
        items: each,
    })
}

/// Traces a log line up to all items that cite it. A line of a session record is traced up to the log
/// lines that cite it, and their items.
pub(crate) fn trace_up(
    address: &Address,
    lineage: &Lineage,
    sources: &dyn TraceSources,
) -> Result<TraceUp, TraceError> {
    let mut tracer = Tracer::new(lineage, sources);
    let path = sources.path_of(&address.stem);
    let mut items = lineage.items_citing(&address.stem, address.line)?;
    let mut derived = Vec::new();
    if address.stem.is_session() {
        for at in tracer.lines_citing_session(address)? {
            items.extend(lineage.items_citing(&at.stem, at.line)?);
            let found = tracer.log_range(&at.stem, at.line, at.line)?;
            let place = TracedItem { path: found.path, line: Some(at.line), text: found.text };
            derived.push(DerivedItem { tier: "daily", place });
        }
        items.sort();
        items.dedup();
    }
    let text = tracer.traced_log(&address.stem)?.sanitized.as_ref().and_then(|log| {
        let line = log.line(address.line)?;
        Some(line.text().to_owned())
    });
    let text = match text {
        Some(text) => text,
        None if items.is_empty() => return Err(TraceError::NoLine { path, line: address.line }),
        None => String::new(),
    };
    for item in items {
        derived.push(DerivedItem { tier: item.kind.name(), place: tracer.traced_item(&item)? });
    }
    Ok(TraceUp { target: TracedItem { path, line: Some(address.line), text }, derived })
}

/// Reads each file once.
struct Tracer<'a> {
    lineage: &'a Lineage,
    sources: &'a dyn TraceSources,
    files: HashMap<String, TracedFile>,
    logs: HashMap<Stem, TracedLog>,
}

/// A generated file that matches its record.
#[derive(Clone)]
struct TracedFile {
    kind: DocumentKind,
    lines: Vec<String>,
    /// The number of lines before the body.
    frontmatter_lines: usize,
    /// For `WISDOM.md`; see [`entry_lines`].
    entry_lines: HashMap<u32, usize>,
}

/// A log as it is now, and as it was recorded.
struct TracedLog {
    sanitized: Option<SanitizedLog>,
    recorded: Option<LogRecord>,
}

impl<'a> Tracer<'a> {
    fn new(lineage: &'a Lineage, sources: &'a dyn TraceSources) -> Self {
        Self { lineage, sources, files: HashMap::new(), logs: HashMap::new() }
    }

    /// Traces one item.
    fn trace_item(
        &mut self,
        path: &str,
        kind: DocumentKind,
        item: &ItemRecord,
    ) -> Result<Trace, TraceError> {
        let at = ItemLocation { kind, path: path.to_owned(), line: item.line };
        Ok(Trace {
            target: self.traced_item(&at)?,
            sources: self.cited_ranges(path, kind, item.citation.as_ref(), 0)?,
            items: Vec::new(),
        })
    }

    /// Returns the ranges of a citation with their text and the items between.
    fn cited_ranges(
        &mut self,
        path: &str,
        kind: DocumentKind,
        citation: Option<&Citation>,
        depth: usize,
    ) -> Result<Vec<SourceRange>, TraceError> {
        let mut ranges = Vec::new();
        let hashes = match (kind, citation) {
            (DocumentKind::Memory | DocumentKind::Wisdom, Some(citation)) => {
                cited_hashes(path, &self.traced_file(path)?.lines.join("\n"), citation)
            }
            _ => BTreeMap::new(),
        };
        for (stem, lines) in citation.into_iter().flat_map(Citation::files) {
            let mut cited = Vec::new();
            for &range in lines.ranges() {
                cited.extend(self.split_by_hashes(stem, range, &hashes)?);
            }
            for (range, is_gone) in cited {
                if is_gone || is_removed_line(range.0) {
                    ranges.push(self.missing_range(stem, range));
                    continue;
                }
                let mut between = self.lineage.items_citing_range(stem, range)?;
                between
                    .retain(|it| is_intermediate_tier(kind, it.item.kind) && it.item.path != path);
                for ((start, end), via) in split_range(range, &between) {
                    let mut source = self.log_range(stem, start, end)?;
                    for item in via {
                        source.via.push(self.traced_item(item)?);
                    }
                    source.sources = self.nested_sources(&source, depth + 1)?;
                    ranges.push(source);
                }
            }
        }
        // The sources of a user's bullet that is cited are shown below it, not again beside it.
        let nested: Vec<SourceRange> = ranges.iter().flat_map(|it| it.sources.clone()).collect();
        ranges.retain(|it| !nested.iter().any(|lower| lower.contains(it)));
        Ok(ranges)
    }

    /// Splits a range where the lines of a log that was not changed since are others than those
    /// that were cited. Returns each part, and whether it is gone.
    fn split_by_hashes(
        &mut self,
        stem: &Stem,
        range: LineRange,
        hashes: &BTreeMap<Address, String>,
    ) -> Result<Vec<(LineRange, bool)>, TraceError> {
        let at = |line| Address { stem: stem.clone(), line };
        if !hashes.keys().any(|it| it.stem == *stem) {
            return Ok(vec![(range, false)]);
        }
        let log = self.traced_log(stem)?;
        let is_other = |line: u32| {
            let recorded = log.recorded.as_ref()?.line_hash(line)?;
            let line = (log.sanitized.as_ref()?.line(line)?, hashes.get(&at(line))?);
            let is_recorded = line.0.hash().prefix64() == recorded;
            Some(is_recorded && line.0.hash().hex4() != *line.1)
        };
        let mut parts: Vec<(LineRange, bool)> = Vec::new();
        for line in range.0..=range.1 {
            let is_gone = is_other(line) == Some(true);
            match parts.last_mut() {
                Some((part, same)) if *same == is_gone => part.1 = line,
                _ => parts.push(((line, line), is_gone)),
            }
        }
        Ok(parts)
    }

    /// Returns a range that is gone, with its former line numbers.
    fn missing_range(&self, stem: &Stem, (start, end): (u32, u32)) -> SourceRange {
        SourceRange {
            path: self.sources.path_of(stem),
            line_start: original_line_number(start),
            line_end: original_line_number(end),
            text: String::new(),
            origin: None,
            gone: true,
            changed: false,
            via: Vec::new(),
            sources: Vec::new(),
        }
    }

    /// Returns a range of a log with its text.
    fn log_range(&mut self, stem: &Stem, start: u32, end: u32) -> Result<SourceRange, TraceError> {
        let path = self.sources.path_of(stem);
        let log = self.traced_log(stem)?;
        let mut text = Vec::new();
        let mut origin: Option<TextOrigin> = None;
        let (mut gone, mut changed) = (false, false);
        let known = log
            .sanitized
            .as_ref()
            .map_or(0, |it| it.lines().last().map_or(0, SanitizedLine::number));
        for number in start..=end.min(known.max(start)) {
            match log.sanitized.as_ref().and_then(|it| it.line(number)) {
                Some(line) => {
                    let recorded = log.recorded.as_ref().and_then(|it| it.line_hash(number));
                    changed |= recorded.is_some_and(|it| it != line.hash().prefix64());
                    text.push(line.text());
                    if line.is_content() {
                        origin = Some(origin.map_or(line.origin(), |it| it.min(line.origin())));
                    }
                }
                None => gone = true,
            }
        }
        gone |= end > known;
        Ok(SourceRange {
            path,
            line_start: start,
            line_end: end,
            text: text.join("\n"),
            origin: origin.map(TextOrigin::name),
            gone,
            changed,
            via: Vec::new(),
            sources: Vec::new(),
        })
    }

    /// Returns the sources of a source that is itself a generated file.
    fn nested_sources(
        &mut self,
        source: &SourceRange,
        depth: usize,
    ) -> Result<Vec<SourceRange>, TraceError> {
        let mut nested = Vec::new();
        if depth > SOURCE_DEPTH_MAX {
            return Ok(nested);
        }
        let Some((kind, _)) = self.lineage.document(&source.path)? else {
            return self.session_sources(source);
        };
        for item in self.lineage.items_of(&source.path)? {
            if (source.line_start..=source.line_end).contains(&item.line) {
                nested.extend(self.cited_ranges(
                    &source.path,
                    kind,
                    item.citation.as_ref(),
                    depth,
                )?);
            }
        }
        Ok(nested)
    }

    /// Returns the session records that lines of a log cite.
    fn session_sources(&mut self, source: &SourceRange) -> Result<Vec<SourceRange>, TraceError> {
        let mut ranges = Vec::new();
        for line in source.text.lines() {
            let Some(citation) = Item::parse(line).citation else { continue };
            for (stem, lines) in citation.files().filter(|(stem, _)| stem.is_session()) {
                for &(start, end) in lines.ranges() {
                    ranges.push(self.log_range(stem, start, end)?);
                }
            }
        }
        Ok(ranges)
    }

    /// Returns the log lines that cite a line of a session record.
    fn lines_citing_session(&mut self, of: &Address) -> Result<Vec<Address>, TraceError> {
        let mut addresses = Vec::new();
        for stem in self.sources.logs_citing_session(&of.stem) {
            let Some(log) = &self.traced_log(&stem)?.sanitized else { continue };
            for line in log.lines() {
                let Some(citation) = Item::parse(line.text()).citation else { continue };
                let mut lines = citation.files().filter(|it| *it.0 == of.stem).map(|it| it.1);
                let is_in = |&(start, end): &(u32, u32)| (start..=end).contains(&of.line);
                if lines.any(|it| it.ranges().iter().any(is_in)) {
                    addresses.push(log.address(line));
                }
            }
        }
        Ok(addresses)
    }

    /// Returns an item's place and text.
    fn traced_item(&mut self, item: &ItemLocation) -> Result<TracedItem, TraceError> {
        let text = self.traced_file(&item.path)?.item_text(item.line);
        Ok(TracedItem { path: item.path.clone(), line: Some(item.line), text })
    }

    fn traced_file(&mut self, path: &str) -> Result<&TracedFile, TraceError> {
        if !self.files.contains_key(path) {
            let file = self.read_file(path)?;
            self.files.insert(path.to_owned(), file);
        }
        Ok(&self.files[path])
    }

    fn read_file(&self, path: &str) -> Result<TracedFile, TraceError> {
        let path = path.to_owned();
        let Some((kind, recorded)) = self.lineage.document(&path)? else {
            return Err(TraceError::NotInLineage { path });
        };
        let Some(document) = self.sources.document(&path) else {
            return Err(TraceError::FileMissing { path });
        };
        if document.hash != recorded {
            return Err(TraceError::FileChanged { path });
        }
        let body_at = frontmatter::split(&document.text).body_at;
        let front = document.text.get(..body_at).unwrap_or_default().matches('\n').count();
        let visible = match kind {
            DocumentKind::Wisdom => joined::visible(&document.text),
            _ => &document.text,
        };
        let lines = visible.split('\n').map(|it| it.trim_end().to_owned()).collect();
        let entry_lines = match kind {
            DocumentKind::Wisdom => entry_lines(&document.text),
            _ => HashMap::new(),
        };
        Ok(TracedFile { kind, lines, frontmatter_lines: front, entry_lines })
    }

    fn traced_log(&mut self, stem: &Stem) -> Result<&TracedLog, TraceError> {
        if !self.logs.contains_key(stem) {
            // For weekly and monthly files other hashes are recorded, which change only with user
            // edits.
            let recorded = if stem.is_summary() { None } else { self.lineage.log(stem)? };
            let log = TracedLog { sanitized: self.sources.log(stem), recorded };
            self.logs.insert(stem.clone(), log);
        }
        Ok(&self.logs[stem])
    }
}

impl TracedFile {
    /// Returns the item that a line belongs to.
    fn item_at_line<'i>(
        &self,
        path: &str,
        line: u32,
        items: &'i [ItemRecord],
    ) -> Result<&'i ItemRecord, TraceError> {
        let at = items.partition_point(|it| it.line <= line);
        let next = items.get(at).map_or(u32::MAX, |it| it.line);
        let found = match (self.kind, at.checked_sub(1).and_then(|at| items.get(at))) {
            (DocumentKind::Memory, _) if items.first().is_some_and(|it| it.line == 1) => {
                items.first()
            }
            (_, Some(item)) => Some(item).filter(|it| {
                line < next && (line - it.line) as usize <= self.continuation_lines(it.line).len()
            }),
            (_, None) => None,
        };
        let exists = usize::try_from(line).is_ok_and(|it| it <= self.lines.len());
        found.filter(|_| exists).ok_or_else(|| TraceError::NoItem {
            path: path.to_owned(),
            line,
            nearest: items.iter().map(|it| it.line).min_by_key(|it| it.abs_diff(line)),
        })
    }

    /// Returns the lines of the item that begins on `line`, without the first.
    fn continuation_lines(&self, line: u32) -> &[String] {
        let rest = usize::try_from(line).ok().and_then(|it| self.lines.get(it..)).unwrap_or(&[]);
        let ends = match self.kind {
            DocumentKind::Memory if line == 1 => None,
            DocumentKind::Memory => Some(0),
            // A bullet continues as long as lines are indented.
            DocumentKind::Weekly | DocumentKind::Monthly => {
                rest.iter().position(|it| !it.starts_with([' ', '\t']) || it.trim().is_empty())
            }
            DocumentKind::Wisdom => Some(self.entry_lines.get(&line).copied().unwrap_or(0)),
        };
        let rest = &rest[..ends.unwrap_or(rest.len()).min(rest.len())];
        // Blank lines belong to no item.
        let last = rest.iter().rposition(|it| !it.is_empty());
        &rest[..last.map_or(0, |it| it + 1)]
    }

    /// Returns the text of the item that begins on `line`, on one line.
    fn item_text(&self, line: u32) -> String {
        let first = usize::try_from(line).ok().and_then(|it| it.checked_sub(1));
        let first = first.and_then(|it| self.lines.get(it)).map_or("", String::as_str);
        match self.kind {
            DocumentKind::Weekly | DocumentKind::Monthly => {
                let kind = markdown::classify_summary_lines([first])
                    .first()
                    .copied()
                    .unwrap_or(LineKind::Blank);
                let mut text = first.get(kind.text_at(first)..).unwrap_or(first).to_owned();
                for more in self.continuation_lines(line) {
                    text.push(' ');
                    text.push_str(more.trim());
                }
                Item::parse(&text).text
            }
            DocumentKind::Memory if line > 1 => {
                Item::parse(first.strip_prefix("- ").unwrap_or(first)).text
            }
            DocumentKind::Memory => {
                // The statement is the first paragraph of the body.
                let body = self.lines.iter().skip(self.frontmatter_lines);
                let body = body.map(|it| it.trim()).skip_while(|it| it.is_empty());
                body.take_while(|it| !it.is_empty()).collect::<Vec<_>>().join(" ")
            }
            DocumentKind::Wisdom => {
                let more = self.continuation_lines(line).iter().map(String::as_str);
                let lines = std::iter::once(first).chain(more).map(str::trim);
                let lines = lines.take_while(|it| !it.starts_with("<!--"));
                let mut lines = lines.filter(|it| !it.is_empty());
                let title = lines.next().unwrap_or_default();
                let title = title.trim_start_matches("**").trim_end_matches("**");
                let text: Vec<_> = lines.collect();
                let mark = if text.is_empty() { "" } else { ": " };
                [title, mark, &text.join(" ")].concat()
            }
        }
    }
}

/// Splits a range where the items that cite it change, so that each part has its own.
fn split_range(
    (start, end): (u32, u32),
    citing: &[CitingItem],
) -> Vec<((u32, u32), Vec<&ItemLocation>)> {
    let edges = citing.iter().flat_map(|it| [it.lines.0, it.lines.1.saturating_add(1)]);
    let starts: BTreeSet<u32> =
        edges.filter(|&it| start < it && it <= end).chain([start]).collect();
    let ends = starts.iter().skip(1).map(|it| it - 1).chain([end]);
    let on = |from, to| citing.iter().filter(move |it| it.lines.0 <= from && to <= it.lines.1);
    let parts = starts.iter().zip(ends);
    parts.map(|(&from, to)| ((from, to), on(from, to).map(|it| &it.item).collect())).collect()
}

/// Returns how many lines each entry of `WISDOM.md` has after its first one, by the number of that one.
fn entry_lines(text: &str) -> HashMap<u32, usize> {
    let file = WisdomFile::parse(text);
    let count = |entry: &WisdomEntry| entry.raw.trim_end().matches('\n').count();
    let lines = file.entries_with_lines().into_iter();
    lines.map(|(line, it)| (line, count(it) + usize::from(it.had_comment))).collect()
}

/// Returns whether items of kind `lower` are between items of kind `upper` and the logs. Typed memories
/// are not: they are extracted from the logs themselves.
fn is_intermediate_tier(upper: DocumentKind, lower: DocumentKind) -> bool {
    use DocumentKind::{Monthly, Weekly, Wisdom};
    matches!((upper, lower), (Monthly | Wisdom, Weekly) | (Wisdom, Monthly))
}

/// Returns the stem of a file name.
fn stem_of(path: &str) -> Option<Stem> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn parts_tile_the_range_and_each_line_keeps_its_items(
            start in 1u32..20,
            width in 0u32..20,
            ranges in proptest::collection::vec((1u32..40, 0u32..10), 0..6),
        ) {
            let end = start + width;
            let citing: Vec<_> = (0..).zip(ranges).map(|(number, (from, more))| {
                let item = ItemLocation { kind: DocumentKind::Weekly, path: String::new(), line: number };
                CitingItem { item, lines: (from, from + more) }
            }).collect();
            let parts = split_range((start, end), &citing);
            let mut next = start;
            for ((from, to), items) in parts {
                prop_assert!(from == next && from <= to);
                for line in from..=to {
                    let on = citing.iter().filter(|it| (it.lines.0..=it.lines.1).contains(&line));
                    prop_assert_eq!(on.map(|it| &it.item).collect::<Vec<_>>(), items.clone());
                }
                next = to + 1;
            }
            prop_assert_eq!(next, end + 1);
        }
    }
}
