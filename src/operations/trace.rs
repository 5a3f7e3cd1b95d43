//! Traces a line to its log lines, and a log line to everything derived from it.
//!
//! Records edits of the file first, so that the answer is about its current lines.

use super::{
    error::{CommandError, CommandErrorKind, CommandResult},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::address::Address,
    recall::{
        framing,
        trace::{Trace, TraceError, TraceUp, split_target, trace, trace_up},
    },
    store::{db::lineage::Lineage, fs::layout::FileKind},
};

/// Traces `PATH[:LINE]` to its log lines, sanitized.
pub(crate) fn trace_to_sources(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> CommandResult<Trace> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call)?;
    if root.vault.layout().kind_of(&path) == Some(FileKind::Index) {
        let what = format!("`{path}` lists the memories; a trace begins at one of them");
        return Err(CommandError::usage(what).hint("`memoird memories` names their files"));
    }
    require_file(name, &path, call, root)?;
    let mut reader = LineageReader::open(call, root)?;
    let mut found = reader.query(&path, |lineage| trace(&path, line, lineage, root))?;
    framing::sanitize_trace(&mut found, &root.rules);
    Ok(found)
}

/// Refuses a name that leads to no file, now or recorded.
fn require_file(name: &str, path: &str, call: &Invocation, root: &MemoryRoot) -> CommandResult<()> {
    if root.vault.layout().full(path).exists() || is_recorded(path, root)? {
        return Ok(());
    }
    Err(root.no_file(call, path, name))
}

fn is_recorded(path: &str, root: &MemoryRoot) -> CommandResult<bool> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    Ok(lineage.map(|it| it.document(path)).transpose()?.flatten().is_some())
}

/// Traces a log line to everything derived from it, sanitized.
pub(crate) fn trace_to_derived(
    call: &Invocation,
    root: &MemoryRoot,
    target: &str,
) -> CommandResult<TraceUp> {
    let (name, line) = split_target(target);
    let path = resolve_target(name, root, call)?;
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
pub(crate) struct LineageReader<'a> {
    pub(super) call: &'a Invocation,
    root: &'a MemoryRoot,
    pub(super) lineage: Lineage,
}

impl<'a> LineageReader<'a> {
    pub(crate) fn open(call: &'a Invocation, root: &'a MemoryRoot) -> CommandResult<Self> {
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
    pub(crate) fn record_edits(&mut self) -> CommandResult<()> {
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

/// Returns the path, relative to the root, that an argument names, as for every other verb, also of a file that is
/// only recorded. Finds archived logs too.
pub(crate) fn resolve_target(
    name: &str,
    root: &MemoryRoot,
    call: &Invocation,
) -> CommandResult<String> {
    let is_known = |path: &str| is_recorded(path, root);
    let path = root.resolve_known_file(&call.environment, name, &is_known)?;
    Ok(root.vault.layout().stem_at(&path).map_or(path, |stem| root.vault.log_path(&stem)))
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
