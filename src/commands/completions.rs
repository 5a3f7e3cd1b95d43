//! `memoird completions`: a completion script for a shell.

use std::process::ExitCode;

use super::ui::Ui;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Which shell
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args, ui: &Ui) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "memoird", &mut script);
    ui.file(&script);
    ExitCode::SUCCESS
}
