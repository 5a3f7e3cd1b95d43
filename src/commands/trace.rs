//! `memoird trace`: leads a line back to the log lines it rests on, and a log line up to what came
//! of it.
//!
//! A file that was edited by hand since it was recorded is taken notice of first, so that the answer
//! is about the lines as they stand.

use std::{path::Path, process::ExitCode};

use chrono::{DateTime, Utc};

use super::{
    GlobalArgs, blame,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::{
        address::{Address, Stem},
        period::Period,
    },
    recall::{
        framing::{self, FramedTrace, NOTICE},
        trace::{
            SourceRange, Trace, TraceError, TraceUp, TracedItem, split_target, trace, trace_up,
        },
        trace_formats::{GenerationRecords, TraceGraph, TraceNode},
    },
    store::db::lineage::Lineage,
};

/// Lead a line back to the log lines it rests on
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// A file, a line of it, or a period (memory/weekly/2026-W14.md:19, WISDOM.md, 2026-W14:19)
    #[arg(value_name = "PATH[:LINE]")]
    target: String,
    /// From a log line up to all that came of it (2026-04-02:12)
    #[arg(long)]
    up: bool,
    /// How to print it; --json is the same as --format json
    #[arg(long, value_enum, default_value_t)]
    format: TraceFormat,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TraceFormat {
    /// Lines to read
    #[default]
    Tree,
    /// One JSON document
    Json,
    /// A drawing for Graphviz
    Dot,
    /// W3C PROV-JSON
    Prov,
}

pub(super) fn run(global: &GlobalArgs, args: TraceArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    let TraceArgs { target, up, format } = args;
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    let format = if ui.is_json() { TraceFormat::Json } else { format };
    let zone = root.settings.zone.name.0;
    let day: DayFormatter<'_> = &|at| at.with_timezone(&zone).date_naive().to_string();
    if up {
        let up = trace_to_derived(&call, &root, &target)?;
        let places = up.derived.iter().filter_map(|it| location(&it.place)).collect();
        show_up(&up, format, &producers(&call, &root, format, places)?, day, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let down = trace_to_sources(&call, &root, &target)?;
    let mut places = Vec::new();
    item_locations(&down, &mut places);
    let makers = producers(&call, &root, format, places)?;
    show(&down, format, &makers, day, ui);
    Ok(ExitCode::SUCCESS)
}

/// Leads what `PATH[:LINE]` names down to log lines, as they may be seen.
pub(crate) fn trace_to_sources(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> Result<Trace, CommandError> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call);
    let mut recorded = LineageReader::open(call, root)?;
    let mut found = recorded.query(&path, |lineage| trace(&path, line, lineage, root))?;
    framing::sanitize_trace(&mut found, &root.rules);
    Ok(found)
}

/// Leads a log line up to all that came of it, as it may be seen.
pub(crate) fn trace_to_derived(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> Result<TraceUp, CommandError> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call);
    let mut recorded = LineageReader::open(call, root)?;
    let address = log_address(&path, line, root)?;
    let mut up = recorded.query(&path, |lineage| trace_up(&address, lineage, root))?;
    framing::sanitize_trace_up(&mut up, &root.rules);
    // A line of a file of ours, which only another week or month cites: a trace leads on.
    if up.derived.is_empty() && recorded.lineage().document(&path)?.is_some() {
        return Err(not_a_log(&path));
    }
    Ok(up)
}

/// The database of a root, which takes notice of edits when an answer needs it.
pub(super) struct LineageReader<'a> {
    call: &'a Invocation,
    root: &'a MemoryRoot,
    lineage: Lineage,
}

impl<'a> LineageReader<'a> {
    /// Opens the database that is there.
    pub(super) fn open(call: &'a Invocation, root: &'a MemoryRoot) -> Result<Self, CommandError> {
        let path = root.vault.layout().database();
        if let Some(lineage) = Lineage::open_existing(&path)? {
            return Ok(Self { call, root, lineage });
        }
        // Before the first fold what sessions left in the logs leads to their records.
        let layout = root.vault.layout();
        let has_records = layout.full(&layout.sessions_dir()).is_dir();
        if has_records && root.settings.is_writer(&call.environment.host) {
            let mut recorded = Self { call, root, lineage: root.lineage()? };
            recorded.record_edits()?;
            return Ok(recorded);
        }
        let what = format!("nothing is recorded yet: there is no `{}`", path.display());
        Err(CommandError::new(CommandErrorKind::Data, what)
            .hint("memoird rebuild, if there are files that memoird made")
            .hint("memoird compact, to make them"))
    }

    /// Asks, and asks once more after taking notice of edits where the answer needs it.
    fn query<T>(
        &mut self,
        path: &str,
        question: impl Fn(&Lineage) -> Result<T, TraceError>,
    ) -> Result<T, CommandError> {
        match question(&self.lineage) {
            Err(TraceError::FileMissing { path: gone }) if gone == path => {
                Err(TraceError::FileMissing { path: gone }.into())
            }
            Err(
                TraceError::FileChanged { .. }
                | TraceError::NotInLineage { .. }
                | TraceError::FileMissing { .. },
            ) => {
                self.record_edits()?;
                Ok(question(&self.lineage)?)
            }
            answer => Ok(answer?),
        }
    }

    /// Takes notice of edits, unless another host does that.
    pub(super) fn record_edits(&mut self) -> Result<(), CommandError> {
        let Self { call, root, .. } = self;
        if !root.settings.is_writer(&call.environment.host) {
            return Ok(());
        }
        let now = call.now;
        let clock = call.clock();
        let engine = root.engine(call)?;
        // The one that is open may only be read.
        self.lineage = root.lineage()?;
        let mut compactor = root.compactor(&mut self.lineage, engine.as_ref(), &clock);
        Ok(compactor.reconcile("trace", now)?)
    }

    /// Returns the database.
    pub(super) fn lineage(&self) -> &Lineage {
        &self.lineage
    }
}

/// Returns the path relative to the root that an argument names: a period, a log, a path in the
/// root, or one in the working folder. A log is found where it stands, archived or not.
fn resolve_target(name: &str, root: &MemoryRoot, call: &Invocation) -> String {
    let path = named_path(name, root, call);
    root.vault.layout().stem_at(&path).map_or(path, |stem| root.vault.log_path(&stem))
}

fn named_path(name: &str, root: &MemoryRoot, call: &Invocation) -> String {
    let layout = root.vault.layout();
    if let Ok(period) = name.parse::<Period>() {
        return layout.summary(period);
    }
    if let Ok(stem) = name.parse::<Stem>() {
        return layout.source_path(&stem);
    }
    let is_file = |relative: &str| layout.full(relative).is_file();
    let plain = name.strip_prefix("./").unwrap_or(name);
    if !Path::new(plain).is_absolute() && is_file(plain) && !plain.split('/').any(|it| it == "..") {
        return plain.to_owned();
    }
    let full = call.environment.absolute(Path::new(name), &call.environment.cwd);
    if let Some(relative) = full
        .canonicalize()
        .ok()
        .and_then(|it| Some(it.strip_prefix(layout.root()).ok()?.to_str()?.to_owned()))
    {
        return relative;
    }
    let typed = layout.typed_memory(plain);
    if is_file(&typed) { typed } else { plain.to_owned() }
}

/// Returns the address of a log line.
fn log_address(path: &str, line: Option<u32>, root: &MemoryRoot) -> Result<Address, CommandError> {
    match (root.vault.layout().stem_at(path), line) {
        (Some(stem), Some(line)) => Ok(Address { stem, line }),
        (None, _) => Err(not_a_log(path)),
        (Some(stem), None) => {
            Err(CommandError::new(CommandErrorKind::Usage, "--up needs a line of the log")
                .hint(format!("memoird trace --up {stem}:1")))
        }
    }
}

fn not_a_log(path: &str) -> CommandError {
    CommandError::new(CommandErrorKind::Usage, format!("`{path}` is no log, where --up begins"))
        .hint(format!("memoird trace {path}"))
}

/// Returns all items of a trace.
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

/// Spells the day of a time.
type DayFormatter<'a> = &'a dyn Fn(DateTime<Utc>) -> String;

fn location(place: &TracedItem) -> Option<(String, u32)> {
    Some((place.path.clone(), place.line?))
}

/// Returns how items came about, where the form says it. JSON does not: it is the same after the database
/// was made anew.
fn producers(
    call: &Invocation,
    root: &MemoryRoot,
    format: TraceFormat,
    places: Vec<(String, u32)>,
) -> Result<GenerationRecords, CommandError> {
    if format == TraceFormat::Json {
        return Ok(GenerationRecords::new());
    }
    blame::item_producers(call, root, places.into_iter())
}

fn show(
    trace: &Trace,
    format: TraceFormat,
    makers: &GenerationRecords,
    day: DayFormatter<'_>,
    ui: &Ui,
) {
    match format {
        TraceFormat::Json => ui.json(&FramedTrace { found: trace, notice: NOTICE }),
        TraceFormat::Prov => {
            ui.json(&TraceGraph::from_trace(trace).with_generations(makers.clone()).to_prov());
        }
        TraceFormat::Dot => ui.data(
            TraceGraph::from_trace(trace).with_generations(makers.clone()).to_dot().trim_end(),
        ),
        TraceFormat::Tree => {
            ui.tree(&TraceNode::from_trace(trace).with_generations(makers, day));
            if trace.sources.is_empty() && trace.items.is_empty() {
                ui.note("it rests on no log line: a person wrote it");
            }
        }
    }
}

fn show_up(
    up: &TraceUp,
    format: TraceFormat,
    makers: &GenerationRecords,
    day: DayFormatter<'_>,
    ui: &Ui,
) {
    match format {
        TraceFormat::Json => ui.json(&FramedTrace { found: up, notice: NOTICE }),
        TraceFormat::Tree => {
            ui.tree(&TraceNode::from_trace_up(up).with_generations(makers, day));
            if up.derived.is_empty() {
                ui.note(
                    "nothing rests on this line; `memoird coverage` says why lines are left out",
                );
            }
        }
        TraceFormat::Dot => ui.data(
            TraceGraph::from_trace_up(up).with_generations(makers.clone()).to_dot().trim_end(),
        ),
        TraceFormat::Prov => {
            ui.json(&TraceGraph::from_trace_up(up).with_generations(makers.clone()).to_prov());
        }
    }
}

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        let (kind, hint) = match &error {
            TraceError::Lineage(_) => (CommandErrorKind::Data, None),
            TraceError::FileChanged { .. } | TraceError::FileMissing { .. } => {
                (CommandErrorKind::Data, Some("memoird rebuild".to_owned()))
            }
            TraceError::NotInLineage { .. } => {
                (CommandErrorKind::Usage, Some("memoird status".to_owned()))
            }
            TraceError::NoItem { path, nearest, .. } => (
                CommandErrorKind::Usage,
                nearest.map(|line| format!("memoird trace {path}:{line}")),
            ),
            TraceError::IsLog { path } => {
                (CommandErrorKind::Usage, Some(format!("memoird trace --up {path}:LINE")))
            }
            TraceError::NoLine { .. } => (CommandErrorKind::Usage, None),
        };
        if let TraceError::Lineage(error) = error {
            return error.into();
        }
        let wrapped = Self::new(kind, error);
        match hint {
            Some(hint) => wrapped.hint(hint),
            None => wrapped,
        }
    }
}
