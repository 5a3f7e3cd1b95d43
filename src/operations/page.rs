//! What serves and exports the local page, as the verbs call it.
//!
//! The page is a higher layer than the verbs, so the program hands it in as a [`PageProgram`].

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{error::CommandResult, workspace::ConfigOverrides};

/// What serves and exports the page.
#[derive(Clone, Copy, Debug)]
pub struct PageProgram {
    /// Serves the page until it is idle or interrupted.
    pub(crate) serve: fn(&PageRequest, WhenReady<'_>) -> CommandResult<()>,
    /// Writes the pages of the folder `root` as files into the new folder `dir`, and returns how many.
    pub(crate) export: fn(&ConfigOverrides, root: &Path, dir: &Path) -> CommandResult<usize>,
}

/// What is called once, when the server listens.
pub(crate) type WhenReady<'a> = &'a mut dyn FnMut(&PageLink);

/// What to show.
#[derive(Debug)]
pub(crate) struct PageRequest {
    pub(crate) overrides: ConfigOverrides,
    /// The memory folders to choose from; the first one is shown first. Never empty.
    pub(crate) roots: Vec<PathBuf>,
    /// Whether the page changes nothing.
    pub(crate) read_only: bool,
    /// A port of 127.0.0.1; a free one if `None`.
    pub(crate) port: Option<u16>,
}

/// Where the page is.
#[derive(Debug, Serialize)]
pub(crate) struct PageLink {
    /// The link with the token, which works once.
    pub(crate) url: String,
    pub(crate) port: u16,
    pub(crate) read_only: bool,
}
