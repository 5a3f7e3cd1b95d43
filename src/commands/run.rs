//! `memoird run`: the daemon, in the foreground.
//!
//! Sets up what belongs to a process and not to the loop: the log, and what a panic leaves there.

use std::process::ExitCode;

use super::{
    GlobalArgs,
    error::{CommandError, Kind},
    logging,
    ui::Ui,
};
use crate::daemon::{self, DaemonError, Loaded, root::RootError};

/// Watch memory folders and summarise what is due, in the foreground
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Serves all folders of the configuration, or the one that --root names. SIGTERM ends it after the \
job at hand; SIGHUP reads the configuration anew. MEMOIRD_LOG sets what is logged (error, warn, \
info, debug); -q and -v do so too.")]
pub(super) struct Args {}

pub(super) fn run(global: &GlobalArgs, _args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    logging::start(global, ui)?;
    hide_panic_texts();
    let load = || Loaded::read(global.config.as_deref(), &global.set, global.root.as_deref());
    daemon::run(&load)?;
    Ok(ExitCode::SUCCESS)
}

/// The message of a panic may quote a log; only its place is told.
fn hide_panic_texts() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!("internal error at {place}; please report it");
    }));
}

impl From<DaemonError> for CommandError {
    fn from(error: DaemonError) -> Self {
        match error {
            DaemonError::Config(error) | DaemonError::Root(RootError::Config(error)) => {
                error.into()
            }
            DaemonError::Clock(error) => error.into(),
            DaemonError::Root(RootError::Policy(error)) => error.into(),
            DaemonError::Root(RootError::Vault(error)) => error.into(),
            DaemonError::Root(RootError::Lock(error)) => error.into(),
            DaemonError::Root(RootError::Model { .. }) => {
                Self::new(Kind::Config, error).hint("memoird doctor")
            }
            DaemonError::Root(RootError::Reader { .. }) => {
                Self::new(Kind::Busy, error).hint("change `writer` in memoird.yaml of that folder")
            }
            DaemonError::Root(RootError::Gone { .. }) | DaemonError::Runtime(_) => {
                Self::new(Kind::CannotWrite, error)
            }
        }
    }
}
