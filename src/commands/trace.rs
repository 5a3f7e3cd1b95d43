//! `memoird trace`: traces a line to its log lines, and a log line to everything derived from it.
//!
//! Records edits of the file first, so that the answer is about its current lines.

use std::{path::Path, process::ExitCode};

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{GlobalArgs, blame, ui::Ui};
use crate::{
    memory::{
        address::{Address, Stem},
        period::Period,
    },
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        workspace::{Invocation, MemoryRoot},
    },
    recall::{
        framing::{self, FramedTrace, NOTICE},
        trace::{
            SourceRange, Trace, TraceError, TraceUp, TracedItem, split_target, trace, trace_up,
        },
        trace_formats::{GenerationRecords, TraceGraph, TraceNode},
    },
    store::{db::lineage::Lineage, fs::layout::FileKind},
};

/// Trace a line to the log lines it comes from
#[derive(Debug, clap::Args)]
pub(super) struct TraceArgs {
    /// A file, a line of it, or a period (memory/weekly/2026-W14.md:19, WISDOM.md, 2026-W14:19)
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
        && root.vault.layout().stem_at(&resolve_target(name, &root, &call)).is_some_and(|stem| {
            root.vault.layout().kind_of(&root.vault.log_path(&stem)) == Some(FileKind::Log)
        });
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

/// Traces `PATH[:LINE]` to its log lines, sanitized.
pub(crate) fn trace_to_sources(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> CommandResult<Trace> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call);
    require_file(name, &path, call, root)?;
    let mut reader = LineageReader::open(call, root)?;
    let mut found = reader.query(&path, |lineage| trace(&path, line, lineage, root))?;
    framing::sanitize_trace(&mut found, &root.rules);
    Ok(found)
}

/// Refuses a name that leads to no file, now or recorded.
fn require_file(name: &str, path: &str, call: &Invocation, root: &MemoryRoot) -> CommandResult<()> {
    let layout = root.vault.layout();
    if layout.full(path).exists() {
        return Ok(());
    }
    let lineage = Lineage::open_existing(&layout.database())?;
    if lineage.map(|it| it.document(path)).transpose()?.flatten().is_some() {
        return Ok(());
    }
    Err(root.no_file(call, path, name))
}

/// Traces a log line to everything derived from it, sanitized.
pub(crate) fn trace_to_derived(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> CommandResult<TraceUp> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call);
    let mut reader = LineageReader::open(call, root)?;
    let address = log_address(&path, line, root)?;
    let mut up = reader.query(&path, |lineage| trace_up(&address, lineage, root))?;
    framing::sanitize_trace_up(&mut up, &root.rules);
    // A line of a generated file that nothing cites: `--up` is of no use there.
    if up.derived.is_empty() && reader.lineage.document(&path)?.is_some() {
        return Err(not_a_log(&path));
    }
    Ok(up)
}

/// Queries the database of a root, and records edits of files when an answer needs it.
pub(super) struct LineageReader<'a> {
    pub(super) call: &'a Invocation,
    root: &'a MemoryRoot,
    pub(super) lineage: Lineage,
}

impl<'a> LineageReader<'a> {
    pub(super) fn open(call: &'a Invocation, root: &'a MemoryRoot) -> CommandResult<Self> {
        let path = root.vault.layout().database();
        if let Some(lineage) = Lineage::open_existing(&path)? {
            return Ok(Self { call, root, lineage });
        }
        // Before the first run, log entries of sessions can still be traced to their records.
        let layout = root.vault.layout();
        let has_records = layout.full(&layout.sessions_dir()).is_dir();
        let may_record = !root.only_reads && root.settings.is_writer(&call.environment.host);
        if has_records && may_record {
            let mut reader = Self { call, root, lineage: root.lineage()? };
            reader.record_edits()?;
            return Ok(reader);
        }
        let what = format!("nothing is recorded yet: there is no `{}`", path.display());
        if let Some(error) = reader_error(call, root, &what) {
            return Err(error);
        }
        Err(CommandError::data(what)
            .hint("if there are generated files: memoird rebuild")
            .hint("to generate them: memoird compact"))
    }

    /// Runs a query, and again after recording edits if the files changed.
    fn query<T>(
        &mut self,
        path: &str,
        question: impl Fn(&Lineage) -> Result<T, TraceError>,
    ) -> CommandResult<T> {
        let answer = match question(&self.lineage) {
            Err(TraceError::FileMissing { path: missing }) if missing == path => {
                Err(TraceError::FileMissing { path: missing })
            }
            Err(
                TraceError::FileChanged { .. }
                | TraceError::NotInLineage { .. }
                | TraceError::FileMissing { .. },
            ) => {
                self.record_edits()?;
                question(&self.lineage)
            }
            answer => answer,
        };
        answer.map_err(|error| {
            let needs_rebuild =
                matches!(error, TraceError::FileChanged { .. } | TraceError::NotInLineage { .. });
            if needs_rebuild && self.root.only_reads {
                let what = format!("{error}, and reading records nothing");
                return CommandError::data(what).hint(format!("memoird trace {path}"));
            }
            let for_reader = reader_error(self.call, self.root, &error.to_string());
            for_reader.filter(|_| needs_rebuild).unwrap_or_else(|| error.into())
        })
    }

    /// Records edits, unless another host does that or the folder is only read.
    pub(super) fn record_edits(&mut self) -> CommandResult<()> {
        let Self { call, root, .. } = self;
        if root.only_reads || !root.settings.is_writer(&call.environment.host) {
            return Ok(());
        }
        let now = call.now;
        let clock = call.clock();
        let engine = root.engine(call)?;
        // The open database may be read-only.
        self.lineage = root.lineage()?;
        let mut compactor = root.compactor(&mut self.lineage, engine.as_ref(), &clock);
        Ok(compactor.reconcile("trace", now)?)
    }
}

/// Returns the error for what only the writing host can do; `None` on that host. On others `memoird rebuild` and
/// `memoird compact` refuse, too.
fn reader_error(call: &Invocation, root: &MemoryRoot, what: &str) -> Option<CommandError> {
    if root.settings.is_writer(&call.environment.host) {
        return None;
    }
    let writer = root.settings.writer.as_deref().unwrap_or("another host");
    let error = CommandError::data(format!("{what}; this host only reads the folder"))
        .hint(format!("{writer} writes the folder: trace there, where the records are"))
        .hint("`memoird search WORDS` finds log lines here, too");
    Some(error)
}

/// Returns the path, relative to the root, that an argument names: a period, a log, or a path relative to
/// the root or the current folder. Finds archived logs too.
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

fn log_address(path: &str, line: Option<u32>, root: &MemoryRoot) -> CommandResult<Address> {
    match (root.vault.layout().stem_at(path), line) {
        (Some(stem), Some(line)) => Ok(Address { stem, line }),
        (None, _) => Err(not_a_log(path)),
        (Some(stem), None) => Err(CommandError::usage("--up needs a line of a log")
            .hint(format!("memoird trace --up {stem}:1"))),
    }
}

fn not_a_log(path: &str) -> CommandError {
    CommandError::usage(format!("--up needs a log, and `{path}` is none"))
        .hint(format!("memoird trace {path}"))
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

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        let (kind, hint) = match &error {
            TraceError::Lineage(_) => (CommandErrorKind::Data, None),
            TraceError::FileChanged { .. } => {
                (CommandErrorKind::Data, Some("memoird rebuild".to_owned()))
            }
            TraceError::FileMissing { .. } => (
                CommandErrorKind::Data,
                Some("restore the file, or accept that it is gone: memoird rebuild".to_owned()),
            ),
            TraceError::NotInLineage { .. } => (
                CommandErrorKind::Usage,
                Some("if memoird generated the file: memoird rebuild".to_owned()),
            ),
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
        Self::new(kind, error).hints_from(hint)
    }
}
