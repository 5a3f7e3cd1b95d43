//! Waiting for one's turn: only one process makes summaries of a folder at a time.
//!
//! A daemon may be at it for minutes, where it asks a model. A person who types `compact` meanwhile
//! is told so and waits; what others did is then done already.

use std::time::{Duration, Instant};

use super::{error::CommandError, ui::Ui, workspace::MemoryRoot};
use crate::store::fs::lock::{DaemonLock, LockError, RunLock};

/// Nobody waits longer than this; a pass has long been given up then.
const WAIT_MAX: Duration = Duration::from_secs(15 * 60);
/// How often it is asked whether it is our turn.
const POLL: Duration = Duration::from_millis(100);
/// Who waits for less than this need not be told.
const NOTE_AFTER: Duration = Duration::from_millis(500);

/// Waits until nobody else makes summaries of the folder, and says what it waits for.
///
/// # Errors
///
/// Returns [`LockError::Busy`] when somebody does for a quarter of an hour.
pub(super) fn wait_for_run_lock(root: &MemoryRoot, ui: &Ui) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let begun = Instant::now();
    let mut is_told = false;
    while RunLock::is_held(&layout.run_lock())? {
        if begun.elapsed() >= WAIT_MAX {
            return Err(LockError::Busy { root: layout.root().to_owned() }.into());
        }
        if !is_told && begun.elapsed() >= NOTE_AFTER {
            let who = match DaemonLock::holder(&layout.daemon_lock())? {
                Some(pid) if pid > 0 => format!("the daemon (process {pid})"),
                Some(_) => "the daemon".to_owned(),
                None => "another process".to_owned(),
            };
            ui.note(format!(
                "{who} makes summaries of this folder; waiting for it (Ctrl-C ends the wait)"
            ));
            is_told = true;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
