//! `memoird show`: prints a file of the memory folder as it stands.

use std::process::ExitCode;

use serde::Serialize;

use super::{
    GlobalArgs,
    context::{self, Call},
    error::CommandError,
    ui::Ui,
};

/// Print a file of the memory folder
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A path, a day, week, or month (2026-04-02, 2026-W14, 2026-04), or the name of a memory
    #[arg(value_name = "FILE")]
    file: String,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Shown<'a> {
    path: &'a str,
    kind: &'static str,
    text: String,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    let (path, kind) = root.find(&call.around, &args.file)?;
    if ui.is_json() {
        let text = root.vault.read_text(&path)?.ok_or_else(|| context::missing(&path))?;
        ui.json(&Shown { path: &path, kind: kind.name(), text });
    } else {
        let found = root.vault.read(&path)?.ok_or_else(|| context::missing(&path))?;
        ui.file(&found.bytes);
    }
    Ok(ExitCode::SUCCESS)
}
