//! `memoird man`: one manual page for all verbs, or a page for each, in roff.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::ui::Ui;
use crate::operations::error::{CommandError, CommandResult};

/// Print the manual page (memoird man | man -l -)
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {
    /// Write a page for each command into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(args: &ManArgs, ui: &Ui) -> CommandResult {
    if let Some(dir) = &args.dir {
        write_pages(dir).map_err(|e| {
            CommandError::cannot_write(format!("cannot write pages to {}: {e}", dir.display()))
        })?;
        let pages = count_pages(&manual_command());
        ui.success(format!("wrote {pages} pages to {}", dir.display()));
        return Ok(ExitCode::SUCCESS);
    }
    let page = render().map_err(CommandError::cannot_write)?;
    ui.bytes(&page);
    Ok(ExitCode::SUCCESS)
}

/// Writes `memoird.1`, `memoird-compact.1`, `memoird-model-test.1` and so on.
fn write_pages(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(manual_command(), dir)
}

/// Returns the command line with the usage of each command as its help shows it: `clap_mangen` would list all options
/// in the synopsis, those of every verb included, and without their values.
fn manual_command() -> clap::Command {
    let mut command = super::clap_command().disable_help_subcommand(true);
    command.build();
    with_usage(command)
}

fn with_usage(command: clap::Command) -> clap::Command {
    let mut command = command.mut_subcommands(with_usage);
    let usage = command.render_usage().to_string();
    command.override_usage(usage.trim_start_matches("Usage: ").to_owned())
}

/// Counts the pages of a command and of those below it.
fn count_pages(command: &clap::Command) -> usize {
    let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
    1 + shown.map(count_pages).sum::<usize>()
}

/// Renders the page of the program with a section for each verb.
fn render() -> io::Result<Vec<u8>> {
    let command = manual_command();
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for verb in command.get_subcommands() {
        let title = format!("memoird-{}", verb.get_name());
        let verb = verb.clone().name(title.clone()).disable_help_flag(true);
        page.extend_from_slice(format!(".SH \"{}\"\n", title.to_uppercase()).as_bytes());
        let man = clap_mangen::Man::new(verb);
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    Ok(page)
}
