//! `memoird man`: one manual page for all verbs, or a page for each, in roff.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::ExitCode,
};

use super::{
    error::{CommandError, CommandResult},
    ui::Ui,
};

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
        return Ok(ExitCode::SUCCESS);
    }
    let page = render().map_err(CommandError::cannot_write)?;
    ui.bytes(&page);
    Ok(ExitCode::SUCCESS)
}

/// Writes `memoird.1`, `memoird-compact.1`, `memoird-model-test.1` and so on.
fn write_pages(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    clap_mangen::generate_to(super::clap_command(), dir)
}

/// Renders the page of the program with a section for each verb.
fn render() -> io::Result<Vec<u8>> {
    let command = super::clap_command();
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
