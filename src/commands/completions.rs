//! `memoird completions`: a completion script for a shell.

use std::process::ExitCode;

use super::ui::Ui;

/// Print a completion script for a shell
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell to print the script for
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &CompletionsArgs, ui: &Ui) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::clap_command(), "memoird", &mut script);
    ui.bytes(&script);
    ExitCode::SUCCESS
}
