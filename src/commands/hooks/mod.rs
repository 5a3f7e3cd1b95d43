//! Hooks of coding agents: installing them, and the verb that they call.
//!
//! - [`programs`]: which files each program reads.
//! - [`entries`]: what is ours in settings in JSON; `json_edit` changes their text. `toml_settings`: in those of Codex.
//! - [`install`]: changes those files; [`plugin`] writes a plugin for Claude Code instead.
//! - [`openclaw`]: what belongs to `OpenClaw`, which reads a file of its workspace.
//! - [`project_folder`]: the memory folder of a project.
//! - [`run`]: what the hooks call.

pub(crate) mod entries;
pub(crate) mod install;
mod json_edit;
pub(crate) mod openclaw;
pub(crate) mod plugin;
pub(crate) mod programs;
pub(crate) mod project_folder;
pub(crate) mod run;
mod toml_settings;
