//! stub
use super::{GlobalArgs, error::CommandError, ui::Ui};
use std::process::ExitCode;
/// stub
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_global: &GlobalArgs, _args: Args, _ui: &Ui) -> Result<ExitCode, CommandError> {
    Ok(ExitCode::SUCCESS)
}
