//! `memoird man`: one manual page for all verbs, in roff.

use std::{io, process::ExitCode};

use super::{
    error::{CommandError, CommandResult},
    ui::Ui,
};

/// Print the manual page (memoird man | man -l -)
#[derive(Debug, clap::Args)]
pub(super) struct ManArgs {}

pub(super) fn run(_args: ManArgs, ui: &Ui) -> CommandResult {
    let page = render().map_err(CommandError::cannot_write)?;
    ui.bytes(&page);
    Ok(ExitCode::SUCCESS)
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
