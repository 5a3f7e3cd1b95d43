//! Finds what a verb works on: configuration, root, vault, database.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{
    GlobalArgs,
    error::{CommandError, Kind},
};
use crate::{
    clock,
    config::{self, Config, root::RootSettings, settings::EngineKind, surroundings::Surroundings},
    engine::{Engine, extractive::Extractive},
    memory::{address::Stem, hash::ContentHash},
    privacy::{self, ServedLog},
    recall::trace::{Document, Sources},
    store::{
        layout::Layout,
        lineage::{Lineage, LineageError},
        vault::Vault,
    },
};

/// The configuration and the time of a call.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) around: Surroundings,
    pub(super) config: Config,
    pub(super) now: DateTime<Utc>,
}

/// One root, as a verb sees it.
#[derive(Debug)]
pub(super) struct Root {
    pub(super) settings: RootSettings,
    pub(super) vault: Vault,
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
    pub(super) fn open(&self, path: &std::path::Path) -> Result<Root, CommandError> {
        let settings = self.config.open(path, &self.around)?;
        let memory_dir = settings.memory_dir.to_string_lossy().into_owned();
        let vault = Vault::new(Layout::new(settings.path.clone(), &memory_dir));
        Ok(Root { settings, vault })
    }

    /// Returns all roots of the configuration, or the one that `--root` names.
    pub(super) fn roots(&self, global: &GlobalArgs) -> Result<Vec<PathBuf>, CommandError> {
        if global.root.is_some()
            || self.around.variable("MEMOIRD_ROOT").is_some()
            || self.config.roots.is_empty()
        {
            return Ok(vec![self.config.choose(global.root.as_deref(), &self.around)?]);
        }
        Ok(self.config.roots.iter().map(|it| it.path.clone()).collect())
    }
}

impl Root {
    /// Returns the engine that the root is configured for.
    pub(super) fn engine(&self) -> Result<Box<dyn Engine>, CommandError> {
        match self.settings.settings.engine {
            EngineKind::Extractive => Ok(Box::new(Extractive)),
            EngineKind::Model => Err(CommandError::new(
                Kind::Config,
                "`engine: model` is not in this version, which has the extractive engine only",
            )
            .hint("set `engine: extractive` in the configuration, or add --set engine=extractive")),
        }
    }

    /// Opens the database, and makes it when there is none.
    pub(super) fn lineage(&self) -> Result<Lineage, CommandError> {
        self.vault.create_private_dir()?;
        Ok(Lineage::open(&self.vault.layout().database())?)
    }
}

/// The vault as `recall` reads it.
impl Sources for Root {
    fn log(&self, stem: &Stem) -> Option<ServedLog> {
        self.vault.read_log(stem).ok().flatten().map(|it| privacy::serve(&it))
    }

    fn document(&self, path: &str) -> Option<Document> {
        let text = self.vault.read_text(path).ok().flatten()?;
        let hash = ContentHash::of(&text);
        Some(Document { text, hash })
    }

    fn path_of(&self, stem: &Stem) -> String {
        self.vault.layout().source(stem)
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

impl From<LineageError> for CommandError {
    fn from(error: LineageError) -> Self {
        let kind = match &error {
            LineageError::Busy { .. } | LineageError::AlreadyLive { .. } => Kind::Busy,
            LineageError::File { .. } | LineageError::NoWal { .. } => Kind::CannotWrite,
            _ => Kind::Data,
        };
        Self::new(kind, error)
    }
}
