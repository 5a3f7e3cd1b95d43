//! What the tools read: search, files, the context of a session, traces, coverage.

use chrono::NaiveDate;
use serde_json::Value;

use super::{
    page_limit::{self, PAGE_BYTES_MAX, PIECES_MAX},
    requests, responses,
    service::{ServedFolder, with_tool_names},
};
use crate::{
    memory::{address::Stem, period::Period, wisdom::WisdomFile},
    operations::{
        context, coverage,
        error::{CommandError, CommandResult},
        search, show, trace,
        workspace::MemoryRoot,
    },
    recall::{
        coverage::UncoveredLine,
        framing::{FramedText, NOTICE},
        search::{Query, SearchOptions},
        trace::{SourceRange, Trace, TracedItem},
    },
    store::fs::layout::FileKind,
};

/// The longest question.
const QUERY_BYTES_MAX: usize = 4 * 1024;

impl ServedFolder {
    /// Searches for lines.
    pub(super) fn search(
        &self,
        params: &requests::SearchParams,
    ) -> CommandResult<responses::SearchResponse> {
        if params.query.len() > QUERY_BYTES_MAX {
            return Err(CommandError::usage(format!(
                "`query` is longer than {QUERY_BYTES_MAX} bytes"
            ))
            .hint("ask one question at a time"));
        }
        let root = self.root_of(params.of)?;
        let mut query = Query::parse(&params.query);
        query.tiers.extend(params.tier.iter().flatten().map(|it| it.name().to_owned()));
        query.kind = params.kind.map(|it| it.memory_type().name().to_owned()).or(query.kind);
        let since = requests::parse_period("since", params.since.as_ref())?;
        let until = requests::parse_period("until", params.until.as_ref())?;
        query.since = since.map(Period::first).or(query.since);
        query.until = until.map(Period::last).or(query.until);
        if query.text.trim().is_empty() && query.since.is_none() && query.until.is_none() {
            return Err(CommandError::usage(
                "`query`: there is nothing to look for in it".to_owned(),
            )
            .hint("ask in plain words: memory_search {\"query\": \"why SQLite\"}"));
        }
        let start = page_limit::parse_cursor(params.cursor.as_ref())
            .map_err(CommandError::usage)?
            .min(PIECES_MAX);
        let limit = params.limit.unwrap_or(10).clamp(1, 50);
        let how = SearchOptions {
            // One more than shown, to know whether there are more.
            limit: start + limit + 1,
            context: params.context.unwrap_or(0).min(10),
            raw: params.raw,
            today: self.today(),
        };
        let results = search::find(&self.call, root, &query, how, Some(&self.search_cache))?;
        let hits = results.hits.iter().map(hit_response).collect();
        let (hits, next_cursor) = page_limit::cut_page(hits, start, limit);
        Ok(responses::SearchResponse {
            notice: NOTICE,
            query: results.query,
            words_only: results.words_only,
            similar_spelling: results.similar_spelling.then_some(true),
            hits,
            next_cursor,
        })
    }

    pub(super) fn read_file(
        &self,
        params: &requests::ReadParams,
    ) -> CommandResult<responses::FileResponse> {
        let root = self.root_of(params.of)?;
        let (path, handed, since) =
            show::sanitized_at(&self.call, root, &params.file, params.as_of.as_deref())?;
        let from = params.from.unwrap_or(1);
        let to = params.to.unwrap_or(usize::MAX);
        if to < from {
            return Err(CommandError::usage(format!("`to` ({to}) is before `from` ({from})")));
        }
        file_response(root, path, handed, since, (from, to))
    }

    pub(super) fn context(
        &self,
        params: &requests::ContextParams,
    ) -> CommandResult<responses::ContextResponse> {
        let budget = params.budget_tokens.map(|it| it.min(20_000));
        let (composed, _) = context::compose_default(&self.call, &self.agent, budget)?;
        let parts = composed.parts.into_iter().map(|it| responses::PartSize {
            name: it.name.to_owned(),
            lines: it.lines,
            left_out: it.left_out,
            tokens: it.tokens,
        });
        Ok(responses::ContextResponse {
            notice: NOTICE,
            date: self.today().to_string(),
            text: composed
                .text
                .lines()
                .fold(String::new(), |text, it| text + &line_with_tool_names(it) + "\n"),
            tokens: composed.tokens,
            parts: parts.collect(),
        })
    }

    /// Traces a line down to the logs, or up from them.
    pub(super) fn trace(
        &self,
        params: &requests::TraceParams,
    ) -> CommandResult<responses::TraceResponse> {
        let start =
            page_limit::parse_cursor(params.cursor.as_ref()).map_err(CommandError::usage)?;
        let limit = params.limit.unwrap_or(50).clamp(1, 200);
        if params.up {
            let up = trace::trace_to_derived(&self.call, &self.agent, &params.target)?;
            let derived = up.derived.iter().map(|it| responses::DerivedEntry {
                tier: it.tier.to_owned(),
                path: it.place.path.clone(),
                line: it.place.line,
                text: page_limit::truncate_piece(&it.place.text),
            });
            let (derived, next_cursor) = page_limit::cut_page(derived.collect(), start, limit);
            let (target, sources) = (target_line(&up.target), Vec::new());
            return Ok(responses::TraceResponse {
                notice: NOTICE,
                target,
                sources,
                derived,
                next_cursor,
            });
        }
        let down = trace::trace_to_sources(&self.call, &self.agent, &params.target)?;
        let mut all = Vec::new();
        if down.items.is_empty() {
            self.add_sources(&down, None, &mut all);
        }
        for item in &down.items {
            self.add_sources(item, Some(&location(&item.target)), &mut all);
        }
        let (sources, next_cursor) = page_limit::cut_page(all, start, limit);
        let (target, derived) = (target_line(&down.target), Vec::new());
        Ok(responses::TraceResponse { notice: NOTICE, target, sources, derived, next_cursor })
    }

    fn add_sources(
        &self,
        trace: &Trace,
        item: Option<&String>,
        all: &mut Vec<responses::CitedSource>,
    ) {
        for source in &trace.sources {
            self.add_source(source, item, None, all);
        }
    }

    fn add_source(
        &self,
        source: &SourceRange,
        item: Option<&String>,
        parent: Option<&String>,
        all: &mut Vec<responses::CitedSource>,
    ) {
        all.push(responses::CitedSource {
            path: source.path.clone(),
            line_start: source.line_start,
            line_end: source.line_end,
            date: self.date_of(&source.path),
            origin: source.origin.map(str::to_owned),
            text: page_limit::truncate_piece(&source.text),
            gone: source.gone,
            changed: source.changed,
            item: item.cloned(),
            via: source.via.iter().map(location).collect(),
            beneath: parent.cloned(),
        });
        let place = format!("{}:{}", source.path, source.line_start);
        for lower in &source.sources {
            self.add_source(lower, item, Some(&place), all);
        }
    }

    /// Returns the day of a log, or the period of a summary.
    fn date_of(&self, path: &str) -> Option<String> {
        let stem = self.agent.vault.layout().stem_at(path);
        stem.map(|it: Stem| it.date().to_string())
    }

    /// Lists the lines that reached no item.
    pub(super) fn coverage(
        &self,
        params: &requests::CoverageParams,
    ) -> CommandResult<responses::CoverageResponse> {
        let period = requests::parse_period("period", params.period.as_ref())?;
        let start =
            page_limit::parse_cursor(params.cursor.as_ref()).map_err(CommandError::usage)?;
        let report = coverage::coverage_of_period(&self.call, &self.agent, period)?;
        let left_out = report.uncovered.len();
        let lines = report.uncovered.into_iter().map(|it| {
            let UncoveredLine { path, line, text, reason } = it;
            let date = self.date_of(&path);
            responses::LeftOutLine {
                path,
                line,
                date,
                text: page_limit::truncate_piece(&text),
                reason,
            }
        });
        let limit = params.limit.unwrap_or(50).clamp(1, 200);
        let (uncovered, next_cursor) = page_limit::cut_page(lines.collect(), start, limit);
        let (period, lines, covered) = (report.period, report.lines, report.covered);
        Ok(responses::CoverageResponse {
            notice: NOTICE,
            period,
            lines,
            covered,
            left_out,
            uncovered,
            next_cursor,
        })
    }
}

/// Replaces verbs by tools in the lines that say where more is found.
fn line_with_tool_names(line: &str) -> String {
    let is_ours = line.starts_with("More: memoird ")
        || (line.starts_with('[') && line.contains(" lines are left out: memoird "));
    match line.split_once("memoird --root '") {
        Some((start, rest)) if line.starts_with('[') => match rest.split_once("' show ") {
            Some((_, file)) => format!("{start}memory_read, `of` person, {file}"),
            None => format!("{start}memory_list]"),
        },
        _ if is_ours => with_tool_names(line),
        _ => line.to_owned(),
    }
}

pub(super) fn file_response(
    root: &MemoryRoot,
    path: String,
    handed: FramedText,
    since: Option<String>,
    (from, to): (usize, usize),
) -> CommandResult<responses::FileResponse> {
    let lines = page_limit::cut_lines(&handed.marked_text(), from, to, PAGE_BYTES_MAX);
    if from > lines.all.max(1) {
        return Err(CommandError::usage(format!("`from`: `{path}` has {} lines", lines.all)));
    }
    let kind = root.vault.layout().kind_of(&path);
    Ok(responses::FileResponse {
        notice: NOTICE,
        kind: kind.map_or("", FileKind::name).to_owned(),
        origin: handed.note.origin.to_owned(),
        date: handed.note.date.or_else(|| date_from_text(kind, &handed.text)),
        since,
        from: lines.from,
        to: lines.to,
        lines: lines.all,
        next_from: (lines.to < lines.all.min(to)).then_some(lines.to + 1),
        text: lines.text,
        path,
    })
}

/// Returns the day in a file's text, if its name contains none.
pub(super) fn date_from_text(kind: Option<FileKind>, text: &str) -> Option<String> {
    let line = |start: &str| {
        let value = text.lines().take(60).find_map(|it| it.trim().strip_prefix(start));
        value.map(|it| it.trim().trim_matches(['"', '\'']).to_owned())
    };
    let day = match kind? {
        FileKind::Wisdom => {
            let entries = WisdomFile::parse(text);
            let marks = entries
                .entries_with_lines()
                .into_iter()
                .filter_map(|(_, it)| it.meta.as_ref().map(|it| it.last_reinforced.to_string()));
            line("Last compacted:").or_else(|| marks.max())
        }
        FileKind::Memory => line("updated:").or_else(|| line("created:")),
        _ => None,
    };
    day.filter(|it| it.parse::<NaiveDate>().is_ok())
}

fn hit_response(hit: &crate::recall::search::SearchHit) -> responses::MemoryHit {
    let mut more = match serde_json::to_value(hit) {
        Ok(Value::Object(it)) => it,
        _ => serde_json::Map::new(),
    };
    for known in [
        "path", "line", "date", "tier", "origin", "score", "found_by", "text", "before", "after",
        "via",
    ] {
        more.shift_remove(known);
    }
    responses::MemoryHit {
        path: hit.path.clone(),
        line: hit.line,
        date: hit.date.to_string(),
        tier: hit.tier.to_owned(),
        origin: hit.origin.to_owned(),
        score: (hit.score * 1e4).round() / 1e4,
        found_by: hit.found_by.iter().map(|it| (*it).to_owned()).collect(),
        text: page_limit::truncate_piece(&hit.text),
        before: hit.before.iter().map(|it| page_limit::truncate_piece(it)).collect(),
        after: hit.after.iter().map(|it| page_limit::truncate_piece(it)).collect(),
        via: hit.via.iter().map(|it| format!("{}:{}", it.path, it.line)).collect(),
        more,
    }
}

fn target_line(place: &TracedItem) -> responses::TargetLine {
    responses::TargetLine {
        path: place.path.clone(),
        line: place.line,
        text: page_limit::truncate_piece(&place.text),
    }
}

fn location(place: &TracedItem) -> String {
    match place.line {
        Some(line) => format!("{}:{line}", place.path),
        None => place.path.clone(),
    }
}
