//! `memoird trace`: traces a line to its log lines, and a log line to everything derived from it.

use std::process::ExitCode;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    operations::{
        blame,
        error::CommandResult,
        trace::{resolve_target, trace_to_derived, trace_to_sources},
        workspace::{Invocation, MemoryRoot},
    },
    recall::{
        framing::{FramedTrace, NOTICE},
        trace::{SourceRange, Trace, TracedItem, split_target},
        trace_formats::{GenerationRecords, TraceGraph, TraceNode},
    },
    store::fs::layout::FileKind,
};

/// Trace a line to the log lines it comes from
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// A file, a line of it, a period, or the name of a memory (memory/weekly/2026-W14.md:19, WISDOM.md,
    /// 2026-W14:19, feedback_how-to-work)
    #[arg(value_name = "PATH[:LINE]")]
    target: String,
    /// Trace a log line to everything derived from it (2026-04-02:12)
    #[arg(long)]
    up: bool,
    /// Output format; --json is the same as --format json
    #[arg(long, value_enum, default_value_t)]
    format: TraceFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TraceFormat {
    /// A text tree
    #[default]
    Tree,
    /// One JSON document
    Json,
    /// A graph for Graphviz
    Dot,
    /// W3C PROV-JSON
    Prov,
}

pub(super) fn run(global: &GlobalArgs, args: TraceArgs, ui: &Ui) -> CommandResult {
    let TraceArgs { target, up, format } = args;
    let (call, root) = Invocation::with_root(global)?;
    let format = if ui.is_json() { TraceFormat::Json } else { format };
    let zone = root.settings.zone.name.0;
    let day: DayFormatter<'_> = &|at| at.with_timezone(&zone).date_naive().to_string();
    // The sources of a log line are in no other file, so a person asks what came of it.
    let (name, line) = split_target(&target);
    let is_log_line = line.is_some()
        && root.vault.layout().kind_of(&resolve_target(name, &root, &call)?) == Some(FileKind::Log);
    if up || is_log_line {
        let up = trace_to_derived(&call, &root, &target)?;
        let items = up.derived.iter().filter_map(|it| location(&it.place)).collect();
        let producers = producers(&call, &root, format, items)?;
        let views = (|| TraceNode::from_trace_up(&up), || TraceGraph::from_trace_up(&up));
        show(&up, format, producers, day, views, ui);
        if format == TraceFormat::Tree && up.derived.is_empty() {
            ui.note("nothing is derived from this line; `memoird coverage` shows why lines are left out");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let down = trace_to_sources(&call, &root, &target)?;
    let mut items = Vec::new();
    item_locations(&down, &mut items);
    let producers = producers(&call, &root, format, items)?;
    let views = (|| TraceNode::from_trace(&down), || TraceGraph::from_trace(&down));
    show(&down, format, producers, day, views, ui);
    if format == TraceFormat::Tree && down.sources.is_empty() && down.items.is_empty() {
        ui.note("no log lines: a person wrote it");
    }
    Ok(ExitCode::SUCCESS)
}

fn item_locations(trace: &Trace, found: &mut Vec<(String, u32)>) {
    fn of_sources(sources: &[SourceRange], found: &mut Vec<(String, u32)>) {
        for source in sources {
            found.extend(source.via.iter().filter_map(location));
            of_sources(&source.sources, found);
        }
    }
    found.extend(location(&trace.target));
    of_sources(&trace.sources, found);
    trace.items.iter().for_each(|it| item_locations(it, found));
}

type DayFormatter<'a> = &'a dyn Fn(DateTime<Utc>) -> String;

fn location(place: &TracedItem) -> Option<(String, u32)> {
    Some((place.path.clone(), place.line?))
}

/// Returns which runs wrote the items, for formats that show it. JSON does not, so that it stays the same
/// after a rebuild of the database.
fn producers(
    call: &Invocation,
    root: &MemoryRoot,
    format: TraceFormat,
    items: Vec<(String, u32)>,
) -> CommandResult<GenerationRecords> {
    if format == TraceFormat::Json {
        return Ok(GenerationRecords::new());
    }
    blame::item_producers(call, root, items.into_iter())
}

/// Prints a trace; `tree` and `graph` do not show yet which runs wrote the items.
fn show(
    found: &impl Serialize,
    format: TraceFormat,
    producers: GenerationRecords,
    day: DayFormatter<'_>,
    (tree, graph): (impl FnOnce() -> TraceNode, impl FnOnce() -> TraceGraph),
    ui: &Ui,
) {
    match format {
        TraceFormat::Json => ui.json(&FramedTrace { found, notice: NOTICE }),
        TraceFormat::Tree => ui.tree(&tree().with_generations(&producers, day)),
        TraceFormat::Dot => ui.data(graph().with_generations(producers).to_dot().trim_end()),
        TraceFormat::Prov => ui.json(&graph().with_generations(producers).to_prov()),
    }
}
