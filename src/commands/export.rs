//! `memoird export`: the local page as files.

use std::{path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::{GlobalArgs, open, ui::Ui};
use crate::operations::{
    error::{CommandError, CommandResult},
    format::counted,
    page::PageProgram,
    workspace::Invocation,
};

/// Write the local page as files, without forms
///
/// For a backup that needs no program, or to read the memory elsewhere: logs, sessions, and what was derived from
/// them, as they are now. Secrets are masked; what is quarantined, older versions, and what was forgotten are left
/// out. Start with `index.html`.
#[derive(Debug, clap::Args)]
pub(super) struct ExportArgs {
    /// The folder to create; it must not exist, or be empty
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ExportReport {
    dir: PathBuf,
    pages: usize,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &ExportArgs,
    page: &PageProgram,
    ui: &Ui,
) -> CommandResult {
    let roots = open::roots(global, &Invocation::load(global)?)?;
    let root = roots.first().ok_or_else(|| CommandError::usage("there is no memory folder"))?;
    let pages = (page.export)(&global.config_overrides(), root, &args.dir)?;
    if ui.is_json() {
        ui.json(&ExportReport { dir: args.dir.clone(), pages });
    } else {
        let index = args.dir.join("index.html");
        ui.success(format!("wrote {}: {}", counted(pages, "page", "pages"), index.display()));
    }
    Ok(ExitCode::SUCCESS)
}
