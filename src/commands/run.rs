//! `memoird run`: the daemon, in the foreground.
//!
//! Sets up the process around the daemon's loop: logging, panic messages, memory allocation.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use super::{GlobalArgs, logging, ui::Ui};
use crate::{
    config,
    daemon::{
        self, DaemonExit,
        error::{DaemonError, RootError},
        runtime_config::RuntimeConfig,
    },
    operations::error::{CommandError, CommandErrorKind, CommandResult},
};

/// Watch memory folders and compact what is due, in the foreground
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Serves all configured folders, or only the one that --root names. SIGTERM stops the daemon after the \
current job; SIGHUP reloads the configuration. MEMOIRD_LOG sets the log level (error, warn, info, \
debug), as do -q and -v.")]
pub(super) struct RunArgs {
    /// Whether to run in a sandbox that allows writing only to the memory folders. auto: if a service
    /// manager runs it, which restarts it when a folder is added
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    sandbox: SandboxMode,
    /// Log format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: logging::LogFormat,
}

/// When the daemon enters its sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SandboxMode {
    #[default]
    Auto,
    On,
    Off,
}

/// The exit code that asks the service manager for a restart. Any code but 0 does that.
const EXIT_RESTART: u8 = 79;

/// The settings of the allocator, which reads them only before `main`. By default it returns free pages
/// only at the next allocation after a second, which for an idle daemon may be the next day.
const ALLOCATOR_ENV: [(&str, &str); 2] =
    [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];

pub(super) fn run(global: &GlobalArgs, args: &RunArgs, ui: &Ui) -> CommandResult {
    reexec_with_allocator_settings();
    logging::start(global, args.log_format, ui)?;
    hide_panic_messages();
    disable_huge_pages();
    let cwd =
        std::env::current_dir().map_err(|source| config::ConfigError::NoWorkingDir { source })?;
    let load =
        || RuntimeConfig::read(global.config.as_deref(), &global.set, global.root.as_deref(), &cwd);
    let use_sandbox = match args.sandbox {
        SandboxMode::Auto => std::env::var_os("INVOCATION_ID").is_some(),
        SandboxMode::On => true,
        SandboxMode::Off => false,
    };
    Ok(match daemon::run(&load, use_sandbox)? {
        DaemonExit::Stopped => ExitCode::SUCCESS,
        DaemonExit::Restart => EXIT_RESTART.into(),
    })
}

/// Restarts this process with an allocator that returns free memory at once, so that a run's memory is
/// freed when it ends. Does nothing if the user set one of the variables.
fn reexec_with_allocator_settings() {
    if ALLOCATOR_ENV.iter().any(|(name, _)| std::env::var_os(name).is_some()) {
        return;
    }
    let mut args = std::env::args_os();
    if let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) {
        // `exec` returns only if it failed; the daemon then runs on and uses more memory.
        let error = Command::new(program).arg0(name).args(args).envs(ALLOCATOR_ENV).exec();
        tracing::debug!("cannot restart with allocator settings: {error}");
    }
}

/// Disables transparent huge pages of 2 MB: an idle daemon uses little of each, and needs half the
/// memory without them.
fn disable_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!("cannot disable huge pages: {error}");
    }
}

/// Logs only the location of panics, because their messages may quote logs.
pub(super) fn hide_panic_messages() {
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
                Self::config(error).hint("memoird doctor")
            }
            DaemonError::Root(RootError::OtherWriter { .. }) => {
                Self::new(CommandErrorKind::Busy, error).hint("memoird init --take-over DIR")
            }
            DaemonError::Root(RootError::Inaccessible { .. } | RootError::Emptied { .. })
            | DaemonError::Runtime(_) => Self::cannot_write(error),
        }
    }
}
