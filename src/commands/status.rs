//! stub
use std::process::ExitCode;
use super::{GlobalArgs, error::CommandError, ui::Ui};
/// stub
#[derive(Debug, clap::Args)]
pub(super) struct Args {}
pub(super) fn run(_global: &GlobalArgs, _args: Args, _ui: &Ui) -> Result<ExitCode, CommandError> { Ok(ExitCode::SUCCESS) }
