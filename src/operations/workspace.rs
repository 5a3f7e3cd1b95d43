//! Opens what a call works on: configuration, root, vault, database.

use std::{
    collections::HashMap,
    fmt,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::{
    error::{CommandError, CommandErrorKind, CommandResult},
    format::counted,
};
use crate::{
    clock,
    compaction::{Compactor, RunContext},
    config::{self, Config, environment::Environment, root::RootSettings},
    daemon::error::RootError,
    engine::{Engine, configured},
    memory::{
        address::Stem,
        document::Summary,
        hash::ContentHash,
        joined,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, PrivacyPolicyError, PrivacyRules, SanitizedLog},
    recall::{
        external,
        framing::{self, FramedText},
        search::time::date_words,
        trace::{SanitizedDocument, TraceSources},
        wisdom_block,
    },
    store::{
        db::lineage::{Lineage, LineageError},
        fs::{
            inventory::Inventory,
            layout::{FileKind, INDEX_FILE, ROOT_FILE},
            lock::refuse_open_folder,
            vault::Vault,
        },
    },
};

/// How long a call waits in total for a failing model.
pub(crate) const MODEL_WAIT_MAX: Duration = Duration::from_secs(20);

/// What a call changes of the user's configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigOverrides {
    /// The file that is read instead of the user's.
    pub(crate) file: Option<PathBuf>,
    /// Keys and their values: `compaction.weekly.ratio=0.1`.
    pub(crate) set: Vec<String>,
}

/// The configuration and the time of a call.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) environment: Environment,
    pub(crate) config: Config,
    pub(crate) now: DateTime<Utc>,
}

#[derive(Debug)]
pub(crate) struct MemoryRoot {
    pub(crate) settings: RootSettings,
    pub(crate) vault: Vault,
    /// The rules of the sanitized view.
    pub(crate) rules: PrivacyRules,
    /// Whether what a person edited stays unrecorded, as where a page is only shown.
    pub(crate) only_reads: bool,
}

impl Invocation {
    /// Reads the configuration and the clock.
    pub(crate) fn read(overrides: &ConfigOverrides) -> CommandResult<Self> {
        let environment = Environment::read()?;
        let config = Config::load(overrides.file.as_deref(), &overrides.set, &environment)?;
        Ok(Self { environment, config, now: clock::now()? })
    }

    pub(crate) fn open_root(&self, path: &Path) -> CommandResult<MemoryRoot> {
        let settings = self.config.open(path, &self.environment)?;
        let vault = Vault::for_root(&settings)?;
        let rules = vault.rules();
        Ok(MemoryRoot { settings, vault, rules, only_reads: false })
    }

    /// Returns the clock of a run. If the system clock fails later, it returns the start time.
    pub(crate) fn clock(&self) -> impl Fn() -> DateTime<Utc> + use<> {
        let now = self.now;
        move || clock::now().unwrap_or(now)
    }
}

impl MemoryRoot {
    /// Returns the configured engine. It sends nothing before it drafts.
    pub(crate) fn engine(&self, call: &Invocation) -> CommandResult<Box<dyn Engine>> {
        configured::open_engine(&call.config, &self.settings, &call.environment, MODEL_WAIT_MAX)
            .map_err(|e| CommandError::config(e).hint("memoird doctor"))
    }

    /// Opens the database, and creates it if there is none.
    pub(crate) fn lineage(&self) -> CommandResult<Lineage> {
        self.require_memory_folder()?;
        self.vault.create_private_dir()?;
        Ok(Lineage::open(&self.vault.layout().database())?)
    }

    pub(crate) fn compactor<'a>(
        &'a self,
        lineage: &'a mut Lineage,
        engine: &'a dyn Engine,
        clock: &'a dyn Fn() -> DateTime<Utc>,
    ) -> Compactor<'a> {
        Compactor::new(RunContext {
            vault: &self.vault,
            lineage,
            engine,
            settings: &self.settings,
            clock,
            write_wisdom_block: wisdom_block::refresh,
        })
    }

    /// Refuses an ordinary folder, and one in which others may write.
    pub(crate) fn require_memory_folder(&self) -> CommandResult<()> {
        refuse_open_folder(self.vault.layout())?;
        self.require_set_up()
    }

    /// Refuses an ordinary folder: not configured, and without `memoird.yaml` and logs.
    pub(crate) fn require_set_up(&self) -> CommandResult<()> {
        let layout = self.vault.layout();
        let is_set_up = self.settings.configured || layout.full(ROOT_FILE).is_file();
        if !is_set_up && !layout.full(layout.memory_dir()).is_dir() {
            let what = format!(
                "`{}` is not a memory folder: it has no `{}`",
                layout.root().display(),
                layout.memory_dir()
            );
            let outer = layout.root().ancestors().skip(1).find(|it| it.join(ROOT_FILE).is_file());
            return Err(CommandError::usage(what).hint(match outer {
                Some(outer) => format!("use the outer folder: `--root {}`", outer.display()),
                None => format!("to make it one: memoird init {}", layout.root().display()),
            }));
        }
        Ok(())
    }
}

impl MemoryRoot {
    /// Returns the memory file that an argument names: a path relative to the root or to the current
    /// folder, a period, or the name of a log, a session record, or a typed memory.
    ///
    /// The file need not exist. If a path can be read in two ways, an existing file wins.
    pub(crate) fn resolve_file(
        &self,
        around: &Environment,
        named: &str,
    ) -> CommandResult<(String, FileKind)> {
        let layout = self.vault.layout();
        let root = layout.root();
        let candidates = self.path_candidates(around, named);
        let existing = candidates
            .iter()
            .flatten()
            .find(|it| !it.is_empty() && layout.full(it).symlink_metadata().is_ok());
        if let Some(path) = existing {
            let unknown = || {
                let what = format!("`{path}` is not a memory file");
                // The agent's own file of the same name lies beside the folder of the logs.
                let hint = match layout.full(path).file_name().and_then(|it| it.to_str()) {
                    Some(INDEX_FILE) => format!(
                        "it is a file of the agent's own; the index of the memories is {}",
                        layout.index()
                    ),
                    _ => "name a log, a weekly or monthly file, a typed memory, a session record, MEMORY.md, or \
                          WISDOM.md"
                        .to_owned(),
                };
                CommandError::usage(what).hint(hint)
            };
            return layout.kind_of(path).map(|kind| (path.clone(), kind)).ok_or_else(unknown);
        }
        let with_kind = |path: String| layout.kind_of(&path).map(|kind| (path, kind));
        let by_name = if let Ok(stem) = named.parse::<Stem>() {
            with_kind(self.vault.log_path(&stem))
        } else if let Ok(period) = named.to_uppercase().parse::<Period>() {
            with_kind(layout.summary(period))
        } else {
            with_kind(self.named_file(named)).filter(|(path, _)| {
                !named.contains('/') && layout.full(path).symlink_metadata().is_ok()
            })
        };
        if let Some(found) = by_name {
            return Ok(found);
        }
        let in_words = self.period_in_words(named);
        if let Some(found) = in_words.and_then(|it| with_kind(layout.summary(it))) {
            return Ok(found);
        }
        // People know a memory by the name in its frontmatter rather than by its file name.
        let inventory = self.vault.scan(&HashMap::new())?.inventory;
        if let Some(memory) = inventory.memories.iter().find(|it| it.name == named) {
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            return Ok((path, FileKind::Memory));
        }
        // The caller names what the folder has instead of this period.
        let is_dated = |it: &(String, FileKind)| {
            matches!(it.1, FileKind::Log | FileKind::Weekly | FileKind::Monthly)
        };
        let mut by_path = candidates.iter().flatten().filter_map(|it| with_kind(it.clone()));
        if let Some(found) = by_path.find(is_dated) {
            return Ok(found);
        }
        if candidates.iter().all(Option::is_none) {
            let what = format!("`{named}` is outside the memory folder `{}`", root.display());
            return Err(CommandError::usage(what).hint("name its memory folder: `--root DIR`"));
        }
        let is_wisdom = |it: &String| *it == layout.wisdom();
        if named == "WISDOM" || candidates.iter().flatten().any(is_wisdom) {
            return Err(no_wisdom_yet(&inventory));
        }
        if inventory.logs.is_empty()
            && named.parse::<Period>().is_err_and(|it| !it.is_outside_calendar())
        {
            return Err(no_logs_yet(format!("there is no `{named}`")));
        }
        Err(no_such_file(named))
    }

    /// Returns the folder as `bundle` reads and writes it.
    #[cfg(feature = "fleet")]
    pub(crate) fn bundle_root(&self, call: &Invocation) -> crate::fleet::push::BundleRoot<'_> {
        crate::fleet::push::BundleRoot {
            vault: &self.vault,
            settings: &self.settings,
            now: call.now,
        }
    }

    /// Finishes a pull that was interrupted.
    #[cfg(feature = "fleet")]
    pub(crate) fn finish_interrupted_pull(&self, call: &Invocation) -> CommandResult<()> {
        crate::fleet::pull::finish_interrupted(&self.bundle_root(call)).map_err(|error| {
            CommandError::from(error).hint("`memoird bundle pull` fetches everything again")
        })
    }

    /// Returns the day, week or month that words such as `last week` or `yesterday` name.
    pub(crate) fn period_in_words(&self, named: &str) -> Option<Period> {
        let today = clock::now().ok()?.with_timezone(&self.settings.zone.name.0).date_naive();
        let (first, last) = date_words::parse_days(named, today)?;
        let grains = [Grain::Day, Grain::Week, Grain::Month];
        let mut periods = grains.into_iter().map(|grain| Period::containing(grain, first));
        periods.find(|it| (it.first(), it.last()) == (first, last))
    }

    /// Returns the index, the wisdom file, or else the typed memory of that name, with or without the ending.
    fn named_file(&self, named: &str) -> String {
        let layout = self.vault.layout();
        match named.strip_suffix(".md").unwrap_or(named) {
            "MEMORY" => layout.index(),
            "WISDOM" => layout.wisdom(),
            name => layout.typed_memory(&format!("{name}.md")),
        }
    }

    /// Returns the file that an argument names, as [`Self::resolve_file`] does, or a deleted one for which
    /// `is_known` holds.
    pub(crate) fn resolve_known_file(
        &self,
        around: &Environment,
        named: &str,
        is_known: &dyn Fn(&str) -> CommandResult<bool>,
    ) -> CommandResult<String> {
        let error = match self.resolve_file(around, named) {
            Ok((path, _)) => return Ok(path),
            Err(error) => error,
        };
        let by_name = self.named_file(named);
        for path in self.path_candidates(around, named).into_iter().flatten().chain([by_name]) {
            if is_known(&path)? {
                return Ok(path);
            }
        }
        Err(error)
    }

    /// Returns the error for a file that does not exist, by its path: for a summary or a log what there is
    /// instead, for others that there is no `named`.
    pub(crate) fn no_file(&self, call: &Invocation, path: &str, named: &str) -> CommandError {
        if path == self.vault.layout().wisdom() {
            let scan = self.vault.scan(&HashMap::new());
            return scan.map_or_else(CommandError::from, |it| no_wisdom_yet(&it.inventory));
        }
        let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
        let period = name.and_then(|it| it.parse::<Period>().ok());
        let is_dated = matches!(
            self.vault.layout().kind_of(path),
            Some(FileKind::Weekly | FileKind::Monthly | FileKind::Log)
        );
        match period.filter(|_| is_dated) {
            Some(period) => self.no_summary(call, period).unwrap_or_else(|error| error),
            None => no_such_file(named),
        }
    }

    /// Returns the error for a period that has no file, with what there is instead.
    pub(crate) fn no_summary(
        &self,
        call: &Invocation,
        period: Period,
    ) -> CommandResult<CommandError> {
        let inventory = self.vault.scan(&HashMap::new())?.inventory;
        Ok(self.no_summary_in(call, &inventory, period))
    }

    /// Returns the error for a period that has no file, given the files of the root.
    pub(crate) fn no_summary_in(
        &self,
        call: &Invocation,
        inventory: &Inventory,
        period: Period,
    ) -> CommandError {
        if inventory.logs.is_empty() {
            return no_logs_yet(format!("there is nothing of {period}"));
        }
        if period.grain() == Grain::Day {
            let logs = present_range("log", inventory.logs.keys().map(Stem::date));
            return CommandError::usage(format!("there is no log of {period}"))
                .hints_from(logs)
                .hint("`memoird status` shows what there is");
        }
        let summaries = match period.grain() {
            Grain::Month => present_range("monthly summary", inventory.monthly.keys()),
            _ => present_range("weekly summary", inventory.weekly.keys()),
        };
        if inventory.logs_of(period).next().is_none() {
            return CommandError::usage(format!("there are no logs of {period}"))
                .hints_from(summaries)
                .hint("`memoird status` shows what there is");
        }
        if self.is_open(call, inventory, period) {
            let what = format!("{period} has no summary yet: it ends on {}", period.last());
            return CommandError::usage(what).hints_from(present_files(inventory));
        }
        let error =
            CommandError::usage(format!("{period} has no summary yet")).hints_from(summaries);
        if period.grain() == Grain::Week {
            error.hint(format!("`memoird compact --period {period}` writes it"))
        } else {
            error.hint("`memoird compact` writes it after its weeks")
        }
    }

    /// Returns whether a period with logs has not ended.
    pub(crate) fn is_open(&self, call: &Invocation, inventory: &Inventory, period: Period) -> bool {
        let today = call.now.with_timezone(&self.settings.zone.name.0).date_naive();
        period.end() > today && inventory.logs_of(period).next().is_some()
    }

    /// Returns what there is of a week or month that has no summary, because it has not ended; `None` for any other
    /// file.
    pub(crate) fn open_period(
        &self,
        call: &Invocation,
        path: &str,
    ) -> CommandResult<Option<String>> {
        let kind = self.vault.layout().kind_of(path);
        let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
        let period = name.and_then(|it| it.parse::<Period>().ok());
        let is_summary = matches!(kind, Some(FileKind::Weekly | FileKind::Monthly));
        let Some(period) = period.filter(|_| is_summary) else { return Ok(None) };
        let inventory = self.vault.scan(&HashMap::new())?.inventory;
        if !self.is_open(call, &inventory, period) {
            return Ok(None);
        }
        let logs: Vec<&str> = inventory.logs_of(period).map(|(stem, _)| stem.as_str()).collect();
        let last = period.last();
        let mut text = format!(
            "{period} is open until {last}; its summary is written after that.\n\nSo far:\n- {}: {}\n",
            counted(logs.len(), "log", "logs"),
            logs.join(", ")
        );
        for there in present_files(&inventory) {
            text.extend(["- ", &there, "\n"]);
        }
        Ok(Some(text))
    }

    fn framed_file(&self, path: &str, text: &str) -> FramedText {
        let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md")).unwrap_or(path);
        let kind = self.vault.layout().kind_of(path);
        let is_log = matches!(kind, Some(FileKind::Log | FileKind::Session));
        let stem = is_log.then(|| name.parse::<Stem>().ok()).flatten();
        let is_period = matches!(kind, Some(FileKind::Weekly | FileKind::Monthly));
        let period = is_period.then(|| name.to_owned());
        let accepted = framing::accepted_in(&self.vault, &self.rules);
        if is_period || kind == Some(FileKind::Wisdom) {
            return framing::frame_generated(period, text, &self.rules, &accepted);
        }
        framing::frame(stem.as_ref(), text, &self.rules, &accepted)
    }

    pub(crate) fn sanitized_file(&self, path: &str, bytes: &[u8]) -> FramedText {
        let text = String::from_utf8_lossy(bytes);
        let mut framed = self.framed_file(path, &text);
        let period = framed.note.date.as_ref().and_then(|it| it.parse::<Period>().ok());
        if let Some(summary) = period.and_then(|it| Summary::parse(it, &text).ok()) {
            let external = external::external_bullets(&summary, &self.vault, &self.rules);
            framed.external_lines = external.into_iter().collect();
        }
        framed
    }

    /// Returns the sanitized text of a file; `None` if there is none, or if a person has to resolve a merge
    /// conflict in it first.
    pub(crate) fn read_sanitized(&self, path: &str) -> CommandResult<Option<FramedText>> {
        let found = self.vault.read(path)?.filter(|it| !it.has_merge_conflict());
        Ok(found.map(|it| self.sanitized_file(path, &it.bytes)))
    }

    /// Reads the typed memories, sorted by path. `status` reports a file that cannot be read or parsed.
    pub(crate) fn typed_memories(&self) -> CommandResult<Vec<(String, TypedMemory)>> {
        /// Stops reading a folder after this many files.
        const FILES_MAX: usize = 20_000;
        let layout = self.vault.layout();
        let (paths, _) = self.vault.files_below(layout.memory_dir(), FILES_MAX);
        let mut memories = Vec::new();
        for path in paths {
            let name = path.rsplit('/').next().unwrap_or(&path);
            let is_memory = layout.kind_of(&path) == Some(FileKind::Memory)
                && layout.typed_memory(name) == path;
            if !is_memory {
                continue;
            }
            let text = match self.vault.read_text(&path) {
                Err(error) if error.is_read_failure() => return Err(error.into()),
                text => text.ok().flatten(),
            };
            let memory = text.and_then(|it| TypedMemory::parse(name.as_ref(), &it).ok());
            memories.extend(memory.map(|it| (path, it)));
        }
        memories.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(memories)
    }

    /// Returns an argument as a path relative to the root and to the current folder; `None` for a path
    /// outside the root.
    fn path_candidates(&self, around: &Environment, named: &str) -> [Option<String>; 2] {
        let layout = self.vault.layout();
        let root = layout.root();
        let here = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
        [root, &here].map(|base| {
            let path = relative_to_root(root, &around.absolute(Path::new(named), base))?;
            let path = self.vault.current_path(&path);
            // In a flat folder, a path as most folders have it.
            let exists = |it: &str| layout.full(it).symlink_metadata().is_ok();
            Some(match path.strip_prefix("memory/") {
                Some(flat) if layout.memory_dir().is_empty() && !exists(&path) && exists(flat) => {
                    flat.to_owned()
                }
                _ => path,
            })
        })
    }
}

/// Refuses to write a root whose writer is another host. Finishes a pull that was interrupted.
pub(crate) fn require_writer(call: &Invocation, root: &MemoryRoot) -> CommandResult<()> {
    if root.settings.is_writer(&call.environment.host) {
        #[cfg(feature = "fleet")]
        root.finish_interrupted_pull(call)?;
        return Ok(());
    }
    let error = RootError::OtherWriter {
        root: root.settings.path.clone(),
        writer: root.settings.writer.clone().unwrap_or_default(),
    };
    Err(CommandError::new(CommandErrorKind::Busy, error).hint("memoird init --take-over DIR"))
}

/// Returns hints that name what memoird wrote already.
pub(crate) fn present_files(inventory: &Inventory) -> Vec<String> {
    let mut hints = Vec::new();
    let newest = inventory.weekly.keys().next_back();
    hints.extend(newest.map(|it| format!("`memoird show {it}` shows the newest week")));
    if inventory.wisdom.is_some() {
        hints.push("`memoird show WISDOM.md` shows what lasts".to_owned());
    }
    if !inventory.memories.is_empty() {
        let count = counted(inventory.memories.len(), "typed memory", "typed memories");
        hints.push(format!("`memoird memories` lists {count}"));
    }
    if hints.is_empty() {
        hints.push("`memoird compact` writes memories and WISDOM.md of closed days".to_owned());
    }
    hints
}

/// Says which is the first and the last period that has a file of some kind; `None` if none has.
fn present_range<T: fmt::Display + PartialEq>(
    kind: &str,
    mut periods: impl Iterator<Item = T>,
) -> Option<String> {
    let first = periods.next()?;
    Some(match periods.last().filter(|it| *it != first) {
        Some(last) => format!("first {kind}: {first}, last: {last}"),
        None => format!("only {kind}: {first}"),
    })
}

/// Returns the error for `WISDOM.md` before the first run.
fn no_wisdom_yet(inventory: &Inventory) -> CommandError {
    let what = "there is no `WISDOM.md` yet";
    if inventory.logs.is_empty() {
        return no_logs_yet(what);
    }
    CommandError::usage(what).hint("memoird compact")
}

/// Returns the error for what is made from logs, in a folder without any.
pub(crate) fn no_logs_yet(what: impl fmt::Display) -> CommandError {
    CommandError::usage(format!("{what}: the memory folder has no logs"))
        .hint("`memoird log TEXT` writes the first entry")
}

pub(crate) fn no_such_file(named: &str) -> CommandError {
    if let Err(error) = named.parse::<Period>()
        && error.is_outside_calendar()
    {
        return CommandError::usage(error);
    }
    CommandError::usage(format!("there is no `{named}`"))
        .hint("name a path, a period (2026-W14), or a memory")
        .hint("`memoird status` shows what there is")
}

/// Returns an absolute path relative to `root`, with `..` resolved by name; `None` if it is outside.
fn relative_to_root(root: &Path, path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            step => plain.push(step),
        }
    }
    let whole = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    // The path may go through a link that is not part of the root's path.
    let relative = match plain.strip_prefix(root) {
        Ok(relative) => relative.to_owned(),
        Err(_) => whole()?.strip_prefix(root).ok()?.to_owned(),
    };
    relative.to_str().map(str::to_owned)
}

/// The files as `recall` reads them.
impl TraceSources for MemoryRoot {
    fn log(&self, stem: &Stem) -> Option<SanitizedLog> {
        self.vault.read_log(stem).ok().flatten().map(|it| privacy::sanitize(&it, &self.rules))
    }

    fn document(&self, path: &str) -> Option<SanitizedDocument> {
        let text = self.vault.read_text(path).ok().flatten()?;
        let hash = ContentHash::of(&text);
        // What is held where the file is shown is held in a trace, too.
        let shown = self.framed_file(path, &text).text;
        // The file says which lines an entry cites, whatever is shown of it.
        let is_wisdom = self.vault.layout().kind_of(path) == Some(FileKind::Wisdom);
        let text = if is_wisdom && joined::split(&text).1.is_some() {
            WisdomFile::parse(&text).with_visible_text(&shown).print()
        } else {
            shown
        };
        Some(SanitizedDocument { text, hash })
    }

    fn path_of(&self, stem: &Stem) -> String {
        self.vault.log_path(stem)
    }

    fn logs_citing_session(&self, record: &Stem) -> Vec<Stem> {
        let scan = self.vault.scan_hashes(&HashMap::new()).unwrap_or_default();
        let logs = scan.inventory.logs.into_keys();
        let names_it = |log: &Stem| {
            let log = self.vault.read_log(log).ok().flatten();
            log.is_some_and(|it| it.raw().contains(record.as_str()))
        };
        logs.filter(names_it).collect()
    }
}

impl From<config::ConfigError> for CommandError {
    fn from(error: config::ConfigError) -> Self {
        let kind = match &error {
            config::ConfigError::NewerFormat { .. } => CommandErrorKind::Data,
            error if error.is_usage() => CommandErrorKind::Usage,
            _ => CommandErrorKind::Config,
        };
        let hint = error.hint();
        Self::new(kind, error).hints_from(hint)
    }
}

impl From<PrivacyPolicyError> for CommandError {
    fn from(error: PrivacyPolicyError) -> Self {
        let hint = format!("once {} is right: memoird status", error.file.display());
        Self::config(error).hint(hint)
    }
}

impl From<LineageError> for CommandError {
    fn from(error: LineageError) -> Self {
        if error.is_read_only() {
            return Self::cannot_write(error)
                .hint("give this user write access to `.memoird` in the memory folder");
        }
        if error.is_write_failure() {
            return Self::cannot_write(error)
                .hint("`memoird doctor` checks permissions and free space");
        }
        let kind = match &error {
            LineageError::Busy { .. }
            | LineageError::Replaced { .. }
            | LineageError::AlreadyLive { .. } => CommandErrorKind::Busy,
            LineageError::NoWal { .. } | LineageError::NetworkFileSystem { .. } => {
                CommandErrorKind::CannotWrite
            }
            LineageError::SymbolicLink { .. } => {
                return Self::data(error).hint(
                    "once it is removed, or replaced by the file it points to: memoird rebuild",
                );
            }
            _ => CommandErrorKind::Data,
        };
        Self::new(kind, error)
    }
}
