//! Opens the memory folder that the global options select.

use super::{GlobalArgs, ui::Ui};
use crate::operations::{
    error::CommandResult,
    workspace::{ConfigOverrides, Invocation, MemoryRoot},
};

impl GlobalArgs {
    /// Returns what the options change of the configuration.
    pub(super) fn config_overrides(&self) -> ConfigOverrides {
        ConfigOverrides { file: self.config.clone(), set: self.set.clone() }
    }
}

impl Invocation {
    /// Reads the configuration and the clock.
    pub(super) fn load(global: &GlobalArgs) -> CommandResult<Self> {
        Self::read(&global.config_overrides())
    }

    /// Reads the configuration and the clock, and opens the selected root.
    pub(super) fn with_root(global: &GlobalArgs) -> CommandResult<(Self, MemoryRoot)> {
        let call = Self::load(global)?;
        let root = call.selected_root(global)?;
        Ok((call, root))
    }

    /// Opens the selected root, to write to it. If neither an option nor the current folder names it, prints its
    /// path, because the user may expect another one.
    pub(super) fn with_root_to_write(
        global: &GlobalArgs,
        ui: &Ui,
    ) -> CommandResult<(Self, MemoryRoot)> {
        let (call, root) = Self::with_any_root_to_write(global, ui)?;
        root.require_set_up()?;
        Ok((call, root))
    }

    /// Opens the selected root as [`Self::with_root_to_write`] does, also an ordinary folder, for what makes a memory
    /// folder of it.
    pub(super) fn with_any_root_to_write(
        global: &GlobalArgs,
        ui: &Ui,
    ) -> CommandResult<(Self, MemoryRoot)> {
        let call = Self::load(global)?;
        let path = call.config.select_root(global.root.as_deref(), &call.environment)?;
        let root = call.open_root(&path)?;
        if call.is_unnamed(global, &root) && !ui.is_json() {
            ui.note(format!("memory folder: {}", root.settings.path.display()));
        }
        Ok((call, root))
    }

    /// Returns whether neither an option nor the current folder names the selected root.
    pub(super) fn is_unnamed(&self, global: &GlobalArgs, root: &MemoryRoot) -> bool {
        let around = &self.environment;
        let is_named = global.root.is_some() || around.variable("MEMOIRD_ROOT").is_some();
        let here = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
        !is_named && !here.starts_with(&root.settings.path)
    }

    /// Opens the root that the options or the current folder select; refuses an ordinary folder.
    pub(super) fn selected_root(&self, global: &GlobalArgs) -> CommandResult<MemoryRoot> {
        let path = self.config.select_root(global.root.as_deref(), &self.environment)?;
        let root = self.open_root(&path)?;
        root.require_set_up()?;
        Ok(root)
    }
}
