//! The daemon: one event loop over one `enum DaemonEvent`.
//!
//! The loop decides *when* a run of a memory folder starts. What is due is the plan's decision.
//!
//! - `event_loop`: the events and what each of them causes.
//! - `context`: the configuration, the watcher and the time, shared with each folder's service.
//! - `watch`: file changes that the system reports.
//! - `folder_snapshot`: the state of the folders at the last scan.
//! - `change_detection`: which reported changes are new, and whether the system can be trusted to report.
//! - `schedule`: cron expressions, and what becomes due between them; pure.
//! - `model_wait`: work that waits for its model; pure.
//! - `root_service`: one memory folder: lock, agenda, requested runs.
//! - `run_queue`: how many runs are active at once, and whose turn it is.
//! - `run`: one run, on its own thread.
//! - [`sandbox`]: what the process may access once it has started.
//! - [`runtime_config`]: the configuration, read at start and again on SIGHUP.
//! - [`error`]: what ends the daemon, or keeps a folder from being served.
//! - `repeat_filter`: logs a lasting fault once.
//! - `problem_hook`: runs the user's program when a person is needed.
//! - `signals`, `executable`: requests to stop, and a replaced program file.
//! - `notify`: messages to the service manager.
//! - `metrics`: the file for Prometheus.
//! - `state_file`: `daemon.json`, for other processes.
//!
//! `commands::run` calls [`run`].
//!
//! # Invariants
//!
//! - One daemon per memory folder: it holds the folder's lock for as long as it serves it.
//! - One run at a time per folder, and few over all folders. A run takes the write lock only for each
//!   commit, so other programs work beside it.
//! - A fault of one folder, its lock included, does not affect other folders.
//! - The loop never blocks: runs use the blocking pool, and each timer is a deadline that moves on once it
//!   has passed, so no state makes the loop spin. Nothing recurs sooner than every half minute.
//! - The loop itself feeds the watchdog, so a loop that hangs is noticed, and so is a run that hangs.
//! - A run that fails or panics ends itself, never the daemon.
//! - The log contains paths, periods, and counts; no text of a daily log.

mod change_detection;
mod context;
pub mod error;
mod event_loop;
mod executable;
mod folder_snapshot;
mod metrics;
mod model_wait;
mod notify;
mod problem_hook;
mod repeat_filter;
mod root_service;
mod run;
mod run_queue;
pub mod runtime_config;
pub mod sandbox;
mod schedule;
mod signals;
mod state_file;
mod watch;

use self::{
    error::DaemonError, event_loop::DaemonLoop, runtime_config::RuntimeConfig,
    sandbox::SandboxedFolders,
};
use crate::config::ConfigError;

/// Two threads suffice, since runs use the blocking pool: one for the loop, one for when that is busy.
const WORKER_THREADS: usize = 2;

/// Reads the configuration, at start and at each reload.
pub type LoadConfig<'a> = dyn Fn() -> Result<RuntimeConfig, ConfigError> + 'a;

/// Why the daemon ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DaemonExit {
    /// A signal asked for it.
    Stopped,
    /// It must be started again to serve a folder that its sandbox does not include.
    Restart,
}

/// Serves all configured memory folders until a signal ends it.
///
/// # Errors
///
/// Returns an error when it cannot start: the configuration is wrong, or no folder can be served and waiting
/// will not help.
pub fn run(load_config: &LoadConfig<'_>, is_sandboxed: bool) -> Result<DaemonExit, DaemonError> {
    // Before a second thread exists: the rules apply to the calling thread and those that it starts.
    let sandbox =
        if is_sandboxed { sandbox::enter(&load_config()?) } else { SandboxedFolders::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(DaemonError::Runtime)?;
    let exit = runtime.block_on(async { DaemonLoop::start(load_config, sandbox)?.run().await });
    // A run that did not stop in time must not delay the end.
    runtime.shutdown_background();
    exit
}
