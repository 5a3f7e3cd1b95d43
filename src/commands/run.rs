//! `memoird run`: the daemon, in the foreground.
//!
//! Sets up what belongs to a process and not to the loop: the log, and what a panic leaves there.

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    logging,
    ui::Ui,
};
use crate::{
    config,
    daemon::{
        self, DaemonExit,
        error::{DaemonError, RootError},
        runtime_config::RuntimeConfig,
    },
};

/// Watch memory folders and summarise what is due, in the foreground
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Serves all folders of the configuration, or the one that --root names. SIGTERM ends it after the \
job at hand; SIGHUP reads the configuration anew. MEMOIRD_LOG sets what is logged (error, warn, \
info, debug); -q and -v do so too.")]
pub(super) struct RunArgs {
    /// Whether it shuts itself in, so that it can write to its folders alone: auto is where a service
    /// manager runs it, which starts it again when a folder comes in
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    sandbox: SandboxMode,
    /// How the log is written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log_format: logging::LogFormat,
}

/// When the daemon shuts itself in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum SandboxMode {
    #[default]
    Auto,
    On,
    Off,
}

/// The exit code of a daemon that wants to be started again. A service manager that starts it again
/// after failures needs to know no more of it than that it is not 0.
const EXIT_RESTART: u8 = 79;

/// What the allocator is told. It reads that before `main` and at no other time. Told nothing, it gives
/// pages back only at the next work after a second, which for a daemon may be tomorrow's.
const ALLOCATOR_ENV: [(&str, &str); 2] =
    [("MIMALLOC_PURGE_DELAY", "0"), ("MIMALLOC_ALLOW_THP", "0")];

pub(super) fn run(global: &GlobalArgs, args: &RunArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    reexec_with_allocator_settings();
    logging::start(global, args.log_format, ui)?;
    hide_panic_messages();
    disable_huge_pages();
    let cwd =
        std::env::current_dir().map_err(|source| config::ConfigError::NoWorkingDir { source })?;
    let load =
        || RuntimeConfig::read(global.config.as_deref(), &global.set, global.root.as_deref(), &cwd);
    let shut_in = match args.sandbox {
        SandboxMode::Auto => std::env::var_os("INVOCATION_ID").is_some(),
        SandboxMode::On => true,
        SandboxMode::Off => false,
    };
    Ok(match daemon::run(&load, shut_in)? {
        DaemonExit::Stopped => ExitCode::SUCCESS,
        DaemonExit::Restart => EXIT_RESTART.into(),
    })
}

/// Begins anew as the same process, with an allocator that keeps nothing that is free: what a fold took is
/// given back when it ends. Whoever tells the allocator something else is heard.
fn reexec_with_allocator_settings() {
    if ALLOCATOR_ENV.iter().any(|(name, _)| std::env::var_os(name).is_some()) {
        return;
    }
    let mut args = std::env::args_os();
    if let (Some(name), Ok(program)) = (args.next(), std::env::current_exe()) {
        // It returns only where it failed, and then all goes on with more memory.
        let error = Command::new(program).arg0(name).args(args).envs(ALLOCATOR_ENV).exec();
        tracing::debug!("the allocator keeps its settings: {error}");
    }
}

/// Memory comes in pages of 2 MB where the system has them, of which a daemon that mostly sleeps uses
/// little: without them it takes half as much.
fn disable_huge_pages() {
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!("large pages stay: {error}");
    }
}

/// The message of a panic may quote a log; only its place is told.
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
                Self::new(CommandErrorKind::Config, error).hint("memoird doctor")
            }
            DaemonError::Root(RootError::OtherWriter { .. }) => {
                Self::new(CommandErrorKind::Busy, error).hint("memoird init --take-over DIR")
            }
            DaemonError::Root(RootError::Inaccessible { .. } | RootError::Emptied { .. })
            | DaemonError::Runtime(_) => Self::new(CommandErrorKind::CannotWrite, error),
        }
    }
}
