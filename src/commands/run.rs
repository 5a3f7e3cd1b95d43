//! `memoird run`: the daemon, in the foreground.
//!
//! Sets up what belongs to a process and not to the loop: the log on stderr, and what a panic
//! leaves there.

use std::{io::IsTerminal as _, process::ExitCode};

use tracing_subscriber::EnvFilter;

use super::{
    GlobalArgs,
    error::{CommandError, Kind},
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
    start_log(global, ui)?;
    hide_panic_texts();
    let load = || Loaded::read(global.config.as_deref(), &global.set, global.root.as_deref());
    daemon::run(&load)?;
    Ok(ExitCode::SUCCESS)
}

fn start_log(global: &GlobalArgs, ui: &Ui) -> Result<(), CommandError> {
    let usual = match (global.quiet, ui.is_verbose()) {
        (true, _) => "error",
        (false, true) => "memoird=debug",
        (false, false) => "memoird=info",
    };
    let wanted = std::env::var("MEMOIRD_LOG").ok().filter(|it| !it.is_empty());
    let filter = EnvFilter::try_new(wanted.as_deref().unwrap_or(usual)).map_err(|error| {
        CommandError::new(Kind::Config, format!("MEMOIRD_LOG: {error}"))
            .hint("MEMOIRD_LOG=debug, or leave it out")
    })?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    // The journal of systemd has a time of its own.
    if std::env::var_os("JOURNAL_STREAM").is_some() {
        log.without_time().init();
    } else {
        log.init();
    }
    Ok(())
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
