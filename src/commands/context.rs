//! Finds what a verb works on: configuration, root, vault, database.

use std::{
    collections::HashMap,
    path::{Component, Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};

use super::{
    GlobalArgs,
    error::{CommandError, Kind},
};
use crate::{
    clock,
    compaction::Compactor,
    config::{self, Config, root::RootSettings, surroundings::Surroundings},
    engine::{Engine, configured},
    memory::{address::Stem, hash::ContentHash, period::Period},
    privacy::{self, PolicyError, Rules, ServedLog},
    recall::{
        handed::{self, Handed},
        trace::{Document, Sources},
    },
    store::{
        layout::{FileKind, INDEX_FILE, ROOT_FILE},
        lineage::{Lineage, LineageError},
        vault::Vault,
    },
};

/// How long a command waits in all for a model that fails.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// The configuration and the time of a call.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) around: Surroundings,
    pub(crate) config: Config,
    pub(crate) now: DateTime<Utc>,
}

/// One root, as a verb sees it.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) settings: RootSettings,
    pub(crate) vault: Vault,
    /// What of its logs may not be seen.
    pub(crate) rules: Rules,
}

impl Call {
    /// Reads the configuration and the clock.
    pub(super) fn read(global: &GlobalArgs) -> Result<Self, CommandError> {
        let around = Surroundings::read()?;
        let config = Config::load(global.config.as_deref(), &global.set, &around)?;
        Ok(Self { around, config, now: clock::now()? })
    }

    /// Opens the root that the call means.
    pub(super) fn root(&self, global: &GlobalArgs) -> Result<Root, CommandError> {
        let path = self.config.choose(global.root.as_deref(), &self.around)?;
        self.open(&path)
    }

    /// Opens the root at `path`.
    pub(crate) fn open(&self, path: &Path) -> Result<Root, CommandError> {
        let settings = self.config.open(path, &self.around)?;
        let vault = Vault::of(&settings)?;
        let rules = vault.rules();
        Ok(Root { settings, vault, rules })
    }

    /// Returns the clock of a pass. Should the machine's fail later on, it stands still.
    pub(crate) fn clock(&self) -> impl Fn() -> DateTime<Utc> + use<> {
        let now = self.now;
        move || clock::now().unwrap_or(now)
    }
}

impl Root {
    /// Returns the engine that the root is configured for. Nothing is sent before it drafts.
    pub(crate) fn engine(&self, call: &Call) -> Result<Box<dyn Engine>, CommandError> {
        configured::engine(&call.config, &self.settings, &call.around, PATIENCE)
            .map_err(|e| CommandError::new(Kind::Config, e).hint("memoird doctor"))
    }

    /// Opens the database, and makes it when there is none.
    pub(crate) fn lineage(&self) -> Result<Lineage, CommandError> {
        self.refuse_stranger()?;
        self.vault.create_private_dir()?;
        Ok(Lineage::open(&self.vault.layout().database())?)
    }

    /// Returns what works on this root, with that database, engine, and clock.
    pub(crate) fn compactor<'a>(
        &'a self,
        lineage: &'a mut Lineage,
        engine: &'a dyn Engine,
        clock: &'a dyn Fn() -> DateTime<Utc>,
    ) -> Compactor<'a> {
        Compactor { vault: &self.vault, lineage, engine, settings: &self.settings, clock }
    }

    /// Refuses a folder that nobody made a memory folder.
    pub(crate) fn refuse_stranger(&self) -> Result<(), CommandError> {
        let layout = self.vault.layout();
        let known = self.settings.configured || layout.full(ROOT_FILE).is_file();
        if !known && !layout.full(layout.memory_dir()).is_dir() {
            let what = format!(
                "`{}` is no memory folder: it has no `{}`",
                layout.root().display(),
                layout.memory_dir()
            );
            return Err(CommandError::new(Kind::Usage, what)
                .hint(format!("memoird init {}", layout.root().display())));
        }
        Ok(())
    }
}

impl Root {
    /// Returns the file of ours that an argument names: a path relative to the root or to the
    /// working folder, a period, or the name of a log, a session record, or a typed memory.
    ///
    /// Whether a file stands there is not asked for, but of two readings of a path the one where
    /// something stands is taken.
    pub(super) fn find(
        &self,
        around: &Surroundings,
        named: &str,
    ) -> Result<(String, FileKind), CommandError> {
        let layout = self.vault.layout();
        let root = layout.root();
        let readings = self.readings(around, named);
        let there = readings
            .iter()
            .flatten()
            .find(|it| !it.is_empty() && layout.full(it).symlink_metadata().is_ok());
        if let Some(path) = there {
            let unknown = || {
                CommandError::new(Kind::Usage, format!("`{path}` is none of the files that memoird knows")).hint(
                    "name a log, a weekly or monthly file, a typed memory, a session record, MEMORY.md, or WISDOM.md",
                )
            };
            return layout.kind_of(path).map(|kind| (path.clone(), kind)).ok_or_else(unknown);
        }
        let known = |path: String| layout.kind_of(&path).map(|kind| (path, kind));
        let by_name = if let Ok(stem) = named.parse::<Stem>() {
            known(self.vault.log_path(&stem))
        } else if let Ok(period) = named.parse::<Period>() {
            known(layout.summary(period))
        } else {
            let file = match named {
                INDEX_FILE | "MEMORY" => layout.index(),
                "WISDOM" => layout.wisdom(),
                name => layout.typed(&format!("{name}.md")),
            };
            known(file).filter(|(path, _)| {
                !named.contains('/') && layout.full(path).symlink_metadata().is_ok()
            })
        };
        if let Some(found) = by_name {
            return Ok(found);
        }
        // People know a memory by the name in it rather than by that of its file.
        let memories = self.vault.scan(&HashMap::new())?.inventory.memories;
        if let Some(memory) = memories.iter().find(|it| it.name == named) {
            let path = layout.typed(&memory.file_name.to_string_lossy());
            return Ok((path, FileKind::Memory));
        }
        if readings.iter().all(Option::is_none) {
            let what = format!("`{named}` lies outside of the memory folder `{}`", root.display());
            return Err(CommandError::new(Kind::Usage, what)
                .hint("name the folder that it is in: `--root DIR`"));
        }
        Err(missing(named))
    }

    /// Returns the file that an argument names, as [`Self::find`] does, or one that is no longer
    /// there, if something is known of it.
    pub(super) fn find_past(
        &self,
        around: &Surroundings,
        named: &str,
        is_known: &dyn Fn(&str) -> Result<bool, CommandError>,
    ) -> Result<String, CommandError> {
        let error = match self.find(around, named) {
            Ok((path, _)) => return Ok(path),
            Err(error) => error,
        };
        let layout = self.vault.layout();
        let by_name = match named {
            INDEX_FILE | "MEMORY" => layout.index(),
            "WISDOM" => layout.wisdom(),
            name => layout.typed(&format!("{name}.md")),
        };
        for path in self.readings(around, named).into_iter().flatten().chain([by_name]) {
            if is_known(&path)? {
                return Ok(path);
            }
        }
        Err(error)
    }

    /// Returns what of a file is handed out, and what is said with it.
    pub(super) fn hand(&self, path: &str, bytes: &[u8]) -> Handed {
        let layout = self.vault.layout();
        let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md")).unwrap_or(path);
        let kind = layout.kind_of(path);
        let is_log = matches!(kind, Some(FileKind::Log | FileKind::Session));
        let stem = is_log.then(|| name.parse::<Stem>().ok()).flatten();
        let is_period = matches!(kind, Some(FileKind::Weekly | FileKind::Monthly));
        let date = is_period.then(|| name.to_owned());
        handed::hand(stem.as_ref(), date, &String::from_utf8_lossy(bytes), &self.rules)
    }

    /// Reads an argument as a path relative to the root and to the working folder; `None` for one
    /// that leads out of the root.
    fn readings(&self, around: &Surroundings, named: &str) -> [Option<String>; 2] {
        let root = self.vault.layout().root();
        let here = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
        [root, &here].map(|base| {
            let path = within(root, &around.absolute(Path::new(named), base))?;
            Some(self.vault.standing(&path))
        })
    }
}

/// There is no file under a name that could be one.
pub(super) fn missing(named: &str) -> CommandError {
    CommandError::new(Kind::Usage, format!("there is no `{named}`"))
        .hint("`memoird status` says what there is; a path, a period (2026-W14), or the name of a memory can be given")
}

/// Returns an absolute path relative to `root`, `..` resolved by name; `None` when it lies outside.
fn within(root: &Path, path: &Path) -> Option<String> {
    let mut plain = PathBuf::new();
    for step in path.components() {
        match step {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            step => plain.push(step),
        }
    }
    let whole = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    // The way to a file may lead through a link that the root's own path does not have.
    let relative = match plain.strip_prefix(root) {
        Ok(relative) => relative.to_owned(),
        Err(_) => whole()?.strip_prefix(root).ok()?.to_owned(),
    };
    relative.to_str().map(str::to_owned)
}

/// The vault as `recall` reads it.
impl Sources for Root {
    fn log(&self, stem: &Stem) -> Option<ServedLog> {
        self.vault.read_log(stem).ok().flatten().map(|it| privacy::serve(&it, &self.rules))
    }

    fn document(&self, path: &str) -> Option<Document> {
        let text = self.vault.read_text(path).ok().flatten()?;
        let hash = ContentHash::of(&text);
        Some(Document { text, hash })
    }

    fn path_of(&self, stem: &Stem) -> String {
        self.vault.log_path(stem)
    }

    fn logs_naming(&self, record: &Stem) -> Vec<Stem> {
        let scan = self.vault.scan_names(&HashMap::new()).unwrap_or_default();
        let logs = scan.inventory.logs.into_keys();
        let names_it = |log: &Stem| {
            let log = self.vault.read_log(log).ok().flatten();
            log.is_some_and(|it| it.raw().contains(record.as_str()))
        };
        logs.filter(names_it).collect()
    }
}

impl From<config::Error> for CommandError {
    fn from(error: config::Error) -> Self {
        let kind = if error.is_usage() { Kind::Usage } else { Kind::Config };
        let hint = error.hint();
        let wrapped = Self::new(kind, error);
        match hint {
            Some(hint) => wrapped.hint(hint),
            None => wrapped,
        }
    }
}

impl From<PolicyError> for CommandError {
    fn from(error: PolicyError) -> Self {
        let hint = format!("correct {}, then `memoird status`", error.file.display());
        Self::new(Kind::Config, error).hint(hint)
    }
}

impl From<LineageError> for CommandError {
    fn from(error: LineageError) -> Self {
        if error.is_read_only() {
            return Self::new(Kind::CannotWrite, error)
                .hint("give this user the right to write `.memoird` in the memory folder");
        }
        if error.is_write() {
            return Self::new(Kind::CannotWrite, error)
                .hint("`memoird doctor` looks at rights and free space");
        }
        let kind = match &error {
            LineageError::Busy { .. }
            | LineageError::Replaced { .. }
            | LineageError::AlreadyLive { .. } => Kind::Busy,
            LineageError::NoWal { .. } | LineageError::Distant { .. } => Kind::CannotWrite,
            LineageError::Link { .. } => {
                return Self::new(Kind::Data, error).hint(
                    "put what it leads to in its place, or remove it: then `memoird rebuild`",
                );
            }
            _ => Kind::Data,
        };
        Self::new(kind, error)
    }
}
