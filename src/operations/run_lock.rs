//! Waits for the run lock: only one process at a time compacts a folder.
//!
//! A daemon may hold the lock for minutes while it calls a model. A caller then hears of it and waits; what the
//! daemon did need not be done again.

use std::time::{Duration, Instant};

use super::{error::CommandResult, run_reporter::RunReporter, workspace::MemoryRoot};
use crate::store::fs::lock::{DaemonLock, LockError, RunLock};

/// The longest wait. Any run has given up by then.
const WAIT_MAX: Duration = Duration::from_secs(15 * 60);
/// How often the lock is checked.
const POLL: Duration = Duration::from_millis(100);
/// Shorter waits are not mentioned.
const NOTE_AFTER: Duration = Duration::from_millis(500);

/// Waits until no other process compacts the folder, and says what it waits for.
///
/// Returns [`LockError::Busy`] after a quarter of an hour.
pub(crate) fn wait_for_run_lock(
    root: &MemoryRoot,
    reporter: &dyn RunReporter,
) -> CommandResult<()> {
    let layout = root.vault.layout();
    let started = Instant::now();
    let mut is_noted = false;
    while RunLock::is_held(&layout.run_lock())? {
        if started.elapsed() >= WAIT_MAX {
            return Err(LockError::Busy { root: layout.root().to_owned() }.into());
        }
        if !is_noted && started.elapsed() >= NOTE_AFTER {
            let who = match DaemonLock::holder(&layout.daemon_lock())? {
                Some(pid) if pid > 0 => format!("the daemon (process {pid})"),
                Some(_) => "the daemon".to_owned(),
                None => "another process".to_owned(),
            };
            reporter.note(&format!(
                "{who} is compacting this folder; waiting for it (Ctrl-C to stop waiting)"
            ));
            is_noted = true;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
