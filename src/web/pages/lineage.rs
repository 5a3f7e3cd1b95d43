//! Lineage: from an item to its log lines and to what else comes from them; from a log line to all that came of it,
//! or why nothing did.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::{cut, memory_file, or_error, page_of_file};
use crate::{
    memory::{
        address::Stem,
        item::Item,
        period::{Grain, Period},
    },
    operations::{
        error::CommandResult,
        trace::{trace_to_derived, trace_to_sources},
        workspace::no_such_file,
    },
    privacy::quarantine::PLACEHOLDER,
    recall::trace::{DerivedItem, SourceRange, Trace, TraceUp, TracedItem},
    web::{
        address::PageAddress,
        context::{PageContext, shown_text},
        layout::PageContent,
        markdown,
        svg::{self, GraphNode},
    },
};

/// The columns of the drawing, from the logs to what lasts.
const COLUMNS: [&str; 6] = ["Logs", "Sessions", "Weeks", "Months", "Memories", "Wisdom"];
/// How many source lines are followed to what else comes from them.
const FOLLOWED_MAX: usize = 8;
/// How many boxes a drawing has.
const NODES_MAX: usize = 60;
/// Longer lines are cut; the log has the whole line.
const TEXT_BYTES_MAX: usize = 100_000;

/// The boxes and lines of a drawing while it is collected.
#[derive(Default)]
struct LineageGraph {
    nodes: Vec<GraphNode>,
    keys: Vec<String>,
    edges: BTreeSet<(usize, usize)>,
}

impl LineageGraph {
    /// Adds a box, or finds it; `None` if there is no room.
    fn node(
        &mut self,
        context: &PageContext,
        place: &TracedItem,
        is_target: bool,
    ) -> Option<usize> {
        let key = match place.line {
            Some(line) => format!("{}:{line}", place.path),
            None => place.path.clone(),
        };
        if let Some(known) = self.keys.iter().position(|it| *it == key) {
            return Some(known);
        }
        if self.nodes.len() >= NODES_MAX {
            return None;
        }
        let name = key.rsplit('/').next().unwrap_or(&key).replace(".md", "");
        let text = Item::parse(bare(&place.text)).text;
        self.nodes.push(GraphNode {
            column: column_of(context, &place.path),
            label: name,
            title: if text.is_empty() { key.clone() } else { format!("{key}: {text}") },
            href: context.href(&address_of(context, place)),
            is_target,
        });
        self.keys.push(key);
        Some(self.nodes.len() - 1)
    }

    /// Draws a line from a source to what comes from it.
    fn edge(&mut self, from: Option<usize>, to: Option<usize>) {
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            self.edges.insert((from, to));
        }
    }

    /// Adds the sources of a box, and what lies between.
    fn add_sources(&mut self, context: &PageContext, to: Option<usize>, sources: &[SourceRange]) {
        for source in sources {
            let from = self.node(context, &place_of(source), false);
            if source.via.is_empty() {
                self.edge(from, to);
            }
            for between in &source.via {
                let via = self.node(context, between, false);
                self.edge(from, via);
                self.edge(via, to);
            }
            self.add_sources(context, from, &source.sources);
        }
    }

    fn draw(self, name: &str) -> Markup {
        let edges: Vec<(usize, usize)> = self.edges.into_iter().collect();
        svg::graph(name, &COLUMNS, &self.nodes, &edges)
    }
}

fn place_of(source: &SourceRange) -> TracedItem {
    TracedItem {
        path: source.path.clone(),
        line: Some(source.line_start),
        text: source.text.lines().next().unwrap_or_default().to_owned(),
    }
}

/// Returns the column of a file in the drawing.
fn column_of(context: &PageContext, path: &str) -> usize {
    let layout = context.root.vault.layout();
    if let Some(stem) = context.log_stem(path) {
        return usize::from(stem.is_session());
    }
    if path == layout.wisdom() {
        return 5;
    }
    let is_in = |grain| path.starts_with(&format!("{}/", layout.summary_dir(grain)));
    match () {
        () if is_in(Grain::Week) => 2,
        () if is_in(Grain::Month) => 3,
        () => 4,
    }
}

/// Returns the page about a line of a file.
fn address_of(context: &PageContext, place: &TracedItem) -> PageAddress {
    let stem = context.log_stem(&place.path);
    match (stem, place.line) {
        (Some(stem), Some(line)) => PageAddress::Line(stem, line),
        (None, Some(line)) => PageAddress::Item(place.path.clone(), line),
        (_, None) => page_of_file(context, &place.path),
    }
}

/// The page of an item.
pub(super) fn item(context: &PageContext, path: &str, line: u32) -> CommandResult<PageContent> {
    let path = memory_file(context, path)?;
    let trace = sources_of(context, &format!("{path}:{line}"))?;
    let derived = derived_of(context, &trace);
    let mut graph = LineageGraph::default();
    let target = graph.node(context, &trace.target, true);
    graph.add_sources(context, target, &trace.sources);
    for (source, items) in &derived {
        let from = graph.node(context, &place_of(source), false);
        for item in items {
            let to = graph.node(context, &item.place, false);
            if to != target {
                graph.edge(from, to);
            }
        }
    }
    let item = Item::parse(bare(&trace.target.text));
    let line = trace.target.line.unwrap_or(line);
    let others = others(&trace.target, derived.iter().flat_map(|it| &it.1));
    let body = html! {
        blockquote lang="" dir="auto" { (markdown::statement_text(&item.text)) }
        p .actions {
            (context.link(&page_of_file(context, path), path))
            " " (context.versions_link(path, "versions"))
            @if context.form_token().is_some() {
                " " (context.link(&PageAddress::Correct(path.to_owned(), line), "correct"))
            }
        }
        (graph.draw("Where it comes from, and what else comes from it"))
        div .columns {
            section aria-labelledby="sources" {
                h2 #sources { "It comes from" }
                @if trace.sources.is_empty() { p { "No log lines: a person wrote it." } }
                (source_list(context, &trace.sources))
            }
            section aria-labelledby="others" {
                h2 #others { "From the same lines" }
                (derived_list(context, &others))
            }
        }
    };
    Ok(PageContent::new(format!("{path}, line {line}"), body))
}

/// Traces an item. Its lines show here what they show on other pages: nothing of what is quarantined.
pub(super) fn sources_of(context: &PageContext, target: &str) -> CommandResult<Trace> {
    let mut trace = trace_to_sources(&context.call, &context.root, target)?;
    hold_ranges(context, &mut trace.sources);
    Ok(trace)
}

/// Traces a line of a log; see [`sources_of`].
fn derived_from(context: &PageContext, line: &str) -> CommandResult<TraceUp> {
    let mut up = trace_to_derived(&context.call, &context.root, line)?;
    hold_place(context, &mut up.target);
    up.derived.iter_mut().for_each(|it| hold_place(context, &mut it.place));
    Ok(up)
}

fn hold_ranges(context: &PageContext, ranges: &mut [SourceRange]) {
    for range in ranges {
        range.text = held(context, &range.path, range.line_start, &range.text);
        range.via.iter_mut().for_each(|it| hold_place(context, it));
        hold_ranges(context, &mut range.sources);
    }
}

fn hold_place(context: &PageContext, place: &mut TracedItem) {
    if let Some(line) = place.line {
        place.text = held(context, &place.path, line, &place.text);
    }
}

/// Returns the lines of a file from `first` on, with the placeholder for each that is quarantined.
fn held(context: &PageContext, path: &str, first: u32, text: &str) -> String {
    let Some(stem) = context.root.vault.layout().stem_at(path) else { return text.to_owned() };
    let Some(log) = context.sanitized(&stem) else { return text.to_owned() };
    let shown = |(number, text)| match log.line(number) {
        Some(line) if line.is_quarantined() => PLACEHOLDER,
        _ => text,
    };
    let lines: Vec<&str> = (first..).zip(text.split('\n')).map(shown).collect();
    lines.join("\n")
}

/// Returns what comes from the first source lines of an item.
fn derived_of<'a>(
    context: &PageContext,
    trace: &'a Trace,
) -> Vec<(&'a SourceRange, Vec<DerivedItem>)> {
    let mut found = Vec::new();
    for source in trace.sources.iter().filter(|it| !it.gone).take(FOLLOWED_MAX) {
        let Some(stem) = context.log_stem(&source.path) else { continue };
        let line = format!("{stem}:{}", source.line_start);
        // What else comes from a line is an addition, and its absence no error.
        if let Ok(up) = derived_from(context, &line) {
            found.push((source, up.derived));
        }
    }
    found
}

fn others<'a>(
    target: &TracedItem,
    items: impl Iterator<Item = &'a DerivedItem>,
) -> Vec<&'a DerivedItem> {
    let mut seen = BTreeSet::new();
    let is_other =
        |it: &&DerivedItem| (&it.place.path, it.place.line) != (&target.path, target.line);
    items.filter(is_other).filter(|it| seen.insert((&it.place.path, it.place.line))).collect()
}

fn source_list(context: &PageContext, sources: &[SourceRange]) -> Markup {
    html! {
        ol .lines lang="" {
            @for source in sources {
                li {
                    @let range = match source.line_end - source.line_start {
                        0 => format!("{}:{}", source.path, source.line_start),
                        _ => format!("{}:{}–{}", source.path, source.line_start, source.line_end),
                    };
                    (context.link(&address_of(context, &place_of(source)), range))
                    @if let Some(origin) = source.origin.filter(|it| *it != "agent") { " " span .tag { (origin) } }
                    @if source.gone { " " span .tag .stuck { "gone" } }
                    @if source.changed { " " span .tag .due { "changed since" } }
                    @for line in source.text.lines() { p dir="auto" { (line.trim()) } }
                    @if !source.via.is_empty() {
                        p .meta {
                            "through "
                            @for via in &source.via {
                                @let line = via.line.map(|it| format!(":{it}")).unwrap_or_default();
                                (context.link(&address_of(context, via), format!("{}{line}", via.path))) " "
                            }
                        }
                    }
                    @if !source.sources.is_empty() { (source_list(context, &source.sources)) }
                }
            }
        }
    }
}

fn derived_list(context: &PageContext, items: &[&DerivedItem]) -> Markup {
    html! {
        @if items.is_empty() {
            p { "Nothing else." }
        } @else {
            ul .lines lang="" {
                @for it in items {
                    @let line = it.place.line.map(|line| format!(":{line}")).unwrap_or_default();
                    li {
                        span .tag { (it.tier) } " "
                        (context.link(&address_of(context, &it.place), format!("{}{line}", it.place.path)))
                        p dir="auto" { (markdown::statement_text(&Item::parse(bare(&it.place.text)).text)) }
                    }
                }
            }
        }
    }
}

/// The page of a line of a log.
pub(super) fn log_line(
    context: &PageContext,
    stem: &Stem,
    number: u32,
) -> CommandResult<PageContent> {
    let log = context.log(stem).ok_or_else(|| no_such_file(stem.as_str()))?;
    let line = log.line(number).ok_or_else(|| no_such_file(&format!("{stem}:{number}")))?;
    let text = cut(shown_text(line), TEXT_BYTES_MAX);
    let up = derived_from(context, &format!("{stem}:{number}"));
    let body = html! {
        blockquote lang="" dir="auto" { (text.trim()) }
        p .meta {
            "Line " (number) " of " (context.link(&PageAddress::of_log_line(stem, number), stem.to_string()))
            ", " (line.origin().name())
            @if let Some(reason) = line.origin_reason() { " (" (reason.name()) ")" }
            @if let Some(speaker) = line.speaker() { ", " (speaker.name()) }
        }
        @if line.is_quarantined() {
            p { "This line is kept out until a person decides: " (context.link(&PageAddress::Review, "Review")) "." }
        }
        h2 { "What came of it" }
        (or_error(up.map(|up| what_came_of(context, stem, number, &up))))
    };
    Ok(PageContent::new(format!("{stem}, line {number}"), body))
}

fn what_came_of(context: &PageContext, stem: &Stem, number: u32, up: &TraceUp) -> Markup {
    if up.derived.is_empty() {
        let reason = reason_left_out(context, stem, number);
        return html! {
            p {
                @match reason {
                    Some(reason) => { "No item was derived from this line. The reason: " strong { (reason) } "." },
                    None => "No item was derived from this line yet.",
                }
            }
        };
    }
    let mut graph = LineageGraph::default();
    let from = graph.node(context, &up.target, true);
    for item in &up.derived {
        let to = graph.node(context, &item.place, false);
        graph.edge(from, to);
    }
    let all: Vec<&DerivedItem> = up.derived.iter().collect();
    html! {
        (graph.draw("What came of the line"))
        (derived_list(context, &all))
    }
}

/// Returns why a line is in no summary.
fn reason_left_out(context: &PageContext, stem: &Stem, number: u32) -> Option<String> {
    if stem.is_session() {
        return None;
    }
    let day = Period::containing(Grain::Day, stem.date());
    let coverage = context.coverage(day)?;
    let path = context.root.vault.log_path(stem);
    let line = coverage.uncovered.into_iter().find(|it| it.path == path && it.line == number)?;
    Some(line.reason)
}

/// Returns the words of an item without the mark of its bullet.
pub(super) fn bare(text: &str) -> &str {
    text.trim_start().trim_start_matches("- ")
}
