//! Hooks of coding agents: installing them, and the verb that they call.
//!
//! - [`programs`]: which files each program reads.
//! - [`install`]: changes those files.
//! - [`run`]: what the hooks call.

pub(crate) mod install;
mod json_edit;
pub(crate) mod openclaw;
pub(crate) mod plugin;
pub(crate) mod programs;
pub(crate) mod project_folder;
pub(crate) mod run;
mod toml_settings;
