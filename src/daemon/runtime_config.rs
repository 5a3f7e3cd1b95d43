//! What the daemon is run with: read at start, and again on SIGHUP.

use std::path::{Path, PathBuf};

use super::error::RootError;
use crate::{
    config::{self, Config, environment::Environment, root::RootSettings},
    engine::configured,
};

/// What the daemon is run with.
#[derive(Debug)]
pub struct RuntimeConfig {
    /// What stands around the process.
    pub environment: Environment,
    /// The configuration.
    pub config: Config,
    /// The roots to serve.
    pub roots: Vec<PathBuf>,
}

impl RuntimeConfig {
    /// Reads the configuration, and which roots of it are meant: the one that is named, else all. The
    /// folder in which the daemon began may be gone by now.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the configuration, or that nothing says which root is meant.
    pub fn read(
        file: Option<&Path>,
        set: &[String],
        root: Option<&Path>,
        cwd: &Path,
    ) -> Result<Self, config::ConfigError> {
        let around = Environment::read_in(cwd.to_path_buf())?;
        let config = Config::load(file, set, &around)?;
        let named = root.is_some() || around.variable("MEMOIRD_ROOT").is_some();
        let roots = if named || config.roots.is_empty() {
            vec![config.select_root(root, &around)?]
        } else {
            config.roots.iter().map(|it| it.path.clone()).collect()
        };
        Ok(Self { environment: around, config, roots })
    }

    /// Returns the file that Prometheus is told in.
    pub(super) fn metrics_file(&self) -> Option<PathBuf> {
        let file = self.config.settings.metrics_file.as_ref()?;
        Some(self.environment.absolute(Path::new(file), &self.environment.home))
    }

    /// Reads what a root is run with, and refuses one that is not for us.
    pub(super) fn settings_of(&self, path: &Path) -> Result<RootSettings, RootError> {
        let settings = self.config.open(path, &self.environment)?;
        let root = || path.to_path_buf();
        configured::open_engine(
            &self.config,
            &settings,
            &self.environment,
            std::time::Duration::ZERO,
        )
        .map_err(|source| RootError::Model { root: root(), source })?;
        if !settings.is_writer(&self.environment.host) {
            let writer = settings.writer.clone().unwrap_or_default();
            return Err(RootError::OtherWriter { root: root(), writer });
        }
        Ok(settings)
    }
}
