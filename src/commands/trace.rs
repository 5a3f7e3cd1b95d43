//! `memoird trace`: leads a line back to the log lines it rests on, and a log line up to what came
//! of it.
//!
//! A file that was edited by hand since it was recorded is taken notice of first, so that the answer
//! is about the lines as they stand.

use std::{path::Path, process::ExitCode};

use chrono::{DateTime, Utc};

use super::{
    GlobalArgs, blame,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::{
    memory::{
        address::{Address, Stem},
        period::Period,
    },
    recall::{
        graph::{Branch, Graph, Makers},
        handed::{self, HandedTrace, NOTICE},
        trace::{Place, Source, Trace, TraceError, TraceUp, split_target, trace, trace_up},
    },
    store::lineage::Lineage,
};

/// Lead a line back to the log lines it rests on
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file, a line of it, or a period (memory/weekly/2026-W14.md:19, WISDOM.md, 2026-W14:19)
    #[arg(value_name = "PATH[:LINE]")]
    target: String,
    /// From a log line up to all that came of it (2026-04-02:12)
    #[arg(long)]
    up: bool,
    /// How to print it; --json is the same as --format json
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
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

pub(super) fn run(global: &GlobalArgs, args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let Args { target, up, format } = args;
    let call = Call::read(global)?;
    let root = call.root(global)?;
    let format = if ui.is_json() { Format::Json } else { format };
    let zone = root.settings.zone.name.0;
    let day: Day<'_> = &|at| at.with_timezone(&zone).date_naive().to_string();
    if up {
        let up = leading_up(&call, &root, &target)?;
        let places = up.derived.iter().filter_map(|it| spot(&it.place)).collect();
        show_up(&up, format, &makers(&call, &root, format, places)?, day, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let down = leading_down(&call, &root, &target)?;
    let mut places = Vec::new();
    spots(&down, &mut places);
    let makers = makers(&call, &root, format, places)?;
    show(&down, format, &makers, day, ui);
    Ok(ExitCode::SUCCESS)
}

/// Leads what `PATH[:LINE]` names down to log lines, as they may be seen.
pub(crate) fn leading_down(call: &Call, root: &Root, target: &str) -> Result<Trace, CommandError> {
    let (name, line) = split_target(target);
    let path = resolve(name, root, call);
    let mut recorded = Recorded::open(call, root)?;
    let mut found = recorded.ask(&path, |lineage| trace(&path, line, lineage, root))?;
    handed::hand_trace(&mut found, &root.rules);
    Ok(found)
}

/// Leads a log line up to all that came of it, as it may be seen.
pub(crate) fn leading_up(call: &Call, root: &Root, target: &str) -> Result<TraceUp, CommandError> {
    let (name, line) = split_target(target);
    let path = resolve(name, root, call);
    let mut recorded = Recorded::open(call, root)?;
    let address = address(&path, line, root)?;
    let mut up = recorded.ask(&path, |lineage| trace_up(&address, lineage, root))?;
    handed::hand_trace_up(&mut up, &root.rules);
    // A line of a file of ours, which only another week or month cites: a trace leads on.
    if up.derived.is_empty() && recorded.lineage().document(&path)?.is_some() {
        return Err(not_a_log(&path));
    }
    Ok(up)
}

/// The database of a root, which takes notice of edits when an answer needs it.
pub(super) struct Recorded<'a> {
    call: &'a Call,
    root: &'a Root,
    lineage: Lineage,
}

impl<'a> Recorded<'a> {
    /// Opens the database that is there.
    pub(super) fn open(call: &'a Call, root: &'a Root) -> Result<Self, CommandError> {
        let path = root.vault.layout().database();
        if let Some(lineage) = Lineage::open_existing(&path)? {
            return Ok(Self { call, root, lineage });
        }
        // Before the first fold what sessions left in the logs leads to their records.
        let layout = root.vault.layout();
        let has_records = layout.full(&layout.sessions_dir()).is_dir();
        if has_records && root.settings.is_written_by(&call.around.host) {
            let mut recorded = Self { call, root, lineage: root.lineage()? };
            recorded.notice()?;
            return Ok(recorded);
        }
        let what = format!("nothing is recorded yet: there is no `{}`", path.display());
        Err(CommandError::new(Kind::Data, what)
            .hint("memoird rebuild, if there are files that memoird made")
            .hint("memoird compact, to make them"))
    }

    /// Asks, and asks once more after taking notice of edits where the answer needs it.
    fn ask<T>(
        &mut self,
        path: &str,
        question: impl Fn(&Lineage) -> Result<T, TraceError>,
    ) -> Result<T, CommandError> {
        match question(&self.lineage) {
            Err(TraceError::Gone { path: gone }) if gone == path => {
                Err(TraceError::Gone { path: gone }.into())
            }
            Err(
                TraceError::Stale { .. } | TraceError::Unknown { .. } | TraceError::Gone { .. },
            ) => {
                self.notice()?;
                Ok(question(&self.lineage)?)
            }
            answer => Ok(answer?),
        }
    }

    /// Takes notice of edits, unless another host does that.
    pub(super) fn notice(&mut self) -> Result<(), CommandError> {
        let Self { call, root, .. } = self;
        if !root.settings.is_written_by(&call.around.host) {
            return Ok(());
        }
        let now = call.now;
        let clock = call.clock();
        let engine = root.engine(call)?;
        // The one that is open may only be read.
        self.lineage = root.lineage()?;
        let mut compactor = root.compactor(&mut self.lineage, engine.as_ref(), &clock);
        Ok(compactor.notice("trace", now)?)
    }

    /// Returns the database.
    pub(super) fn lineage(&self) -> &Lineage {
        &self.lineage
    }
}

/// Returns the path relative to the root that an argument names: a period, a log, a path in the
/// root, or one in the working folder. A log is found where it stands, archived or not.
fn resolve(name: &str, root: &Root, call: &Call) -> String {
    let path = named(name, root, call);
    root.vault.layout().stem_at(&path).map_or(path, |stem| root.vault.log_path(&stem))
}

fn named(name: &str, root: &Root, call: &Call) -> String {
    let layout = root.vault.layout();
    if let Ok(period) = name.parse::<Period>() {
        return layout.summary(period);
    }
    if let Ok(stem) = name.parse::<Stem>() {
        return layout.source(&stem);
    }
    let is_file = |relative: &str| layout.full(relative).is_file();
    let plain = name.strip_prefix("./").unwrap_or(name);
    if !Path::new(plain).is_absolute() && is_file(plain) && !plain.split('/').any(|it| it == "..") {
        return plain.to_owned();
    }
    let full = call.around.absolute(Path::new(name), &call.around.cwd);
    if let Some(relative) = full
        .canonicalize()
        .ok()
        .and_then(|it| Some(it.strip_prefix(layout.root()).ok()?.to_str()?.to_owned()))
    {
        return relative;
    }
    let typed = layout.typed(plain);
    if is_file(&typed) { typed } else { plain.to_owned() }
}

/// Returns the address of a log line.
fn address(path: &str, line: Option<u32>, root: &Root) -> Result<Address, CommandError> {
    match (root.vault.layout().stem_at(path), line) {
        (Some(stem), Some(line)) => Ok(Address { stem, line }),
        (None, _) => Err(not_a_log(path)),
        (Some(stem), None) => Err(CommandError::new(Kind::Usage, "--up needs a line of the log")
            .hint(format!("memoird trace --up {stem}:1"))),
    }
}

fn not_a_log(path: &str) -> CommandError {
    CommandError::new(Kind::Usage, format!("`{path}` is no log, where --up begins"))
        .hint(format!("memoird trace {path}"))
}

/// Returns all items of a trace.
fn spots(trace: &Trace, found: &mut Vec<(String, u32)>) {
    fn of_sources(sources: &[Source], found: &mut Vec<(String, u32)>) {
        for source in sources {
            found.extend(source.via.iter().filter_map(spot));
            of_sources(&source.sources, found);
        }
    }
    found.extend(spot(&trace.target));
    of_sources(&trace.sources, found);
    trace.items.iter().for_each(|it| spots(it, found));
}

/// Spells the day of a time.
type Day<'a> = &'a dyn Fn(DateTime<Utc>) -> String;

fn spot(place: &Place) -> Option<(String, u32)> {
    Some((place.path.clone(), place.line?))
}

/// Returns how items came about, where the form says it. JSON does not: it is the same after the database
/// was made anew.
fn makers(
    call: &Call,
    root: &Root,
    format: Format,
    places: Vec<(String, u32)>,
) -> Result<Makers, CommandError> {
    if format == Format::Json {
        return Ok(Makers::new());
    }
    blame::makers(call, root, places.into_iter())
}

fn show(trace: &Trace, format: Format, makers: &Makers, day: Day<'_>, ui: &Ui) {
    match format {
        Format::Json => ui.json(&HandedTrace { found: trace, notice: NOTICE }),
        Format::Prov => ui.json(&Graph::down(trace).made_by(makers.clone()).prov()),
        Format::Dot => ui.data(Graph::down(trace).made_by(makers.clone()).dot().trim_end()),
        Format::Tree => {
            ui.tree(&Branch::down(trace).made_by(makers, day));
            if trace.sources.is_empty() && trace.items.is_empty() {
                ui.note("it rests on no log line: a person wrote it");
            }
        }
    }
}

fn show_up(up: &TraceUp, format: Format, makers: &Makers, day: Day<'_>, ui: &Ui) {
    match format {
        Format::Json => ui.json(&HandedTrace { found: up, notice: NOTICE }),
        Format::Tree => {
            ui.tree(&Branch::up(up).made_by(makers, day));
            if up.derived.is_empty() {
                ui.note(
                    "nothing rests on this line; `memoird coverage` says why lines are left out",
                );
            }
        }
        Format::Dot => ui.data(Graph::up(up).made_by(makers.clone()).dot().trim_end()),
        Format::Prov => ui.json(&Graph::up(up).made_by(makers.clone()).prov()),
    }
}

impl From<TraceError> for CommandError {
    fn from(error: TraceError) -> Self {
        let (kind, hint) = match &error {
            TraceError::Lineage(_) => (Kind::Data, None),
            TraceError::Stale { .. } | TraceError::Gone { .. } => {
                (Kind::Data, Some("memoird rebuild".to_owned()))
            }
            TraceError::Unknown { .. } => (Kind::Usage, Some("memoird status".to_owned())),
            TraceError::NoItem { path, nearest, .. } => {
                (Kind::Usage, nearest.map(|line| format!("memoird trace {path}:{line}")))
            }
            TraceError::IsLog { path } => {
                (Kind::Usage, Some(format!("memoird trace --up {path}:LINE")))
            }
            TraceError::NoLine { .. } => (Kind::Usage, None),
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
