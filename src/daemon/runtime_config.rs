//! The daemon's configuration: read at start, and again on SIGHUP.

use std::path::{Path, PathBuf};

use super::error::RootError;
use crate::{
    config::{self, Config, environment::Environment, root::RootSettings},
    engine::configured,
};

/// The daemon's configuration.
#[derive(Debug)]
pub struct RuntimeConfig {
    /// The environment of the process.
    pub environment: Environment,
    /// The configuration's content and origin.
    pub config: Config,
    /// The roots to serve.
    pub roots: Vec<PathBuf>,
}

impl RuntimeConfig {
    /// Reads the configuration and selects the roots: the named one, or all. `cwd` is passed in,
    /// because the folder in which the daemon started may no longer exist at a reload.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the configuration, or that no root is configured.
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

    pub(super) fn metrics_file(&self) -> Option<PathBuf> {
        let file = self.config.settings.metrics_file.as_ref()?;
        Some(self.environment.absolute(Path::new(file), &self.environment.home))
    }

    /// Reads the settings of a root, and refuses one that another host writes.
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
