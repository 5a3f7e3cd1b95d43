//! Appends an entry to today's log.
//!
//! In the copy of a fleet's root, an entry is also published before it is acknowledged. Without an answer from the
//! store the log on this machine keeps it: the next entry, or a push, publishes it.
//!
//! Holds the write lock only for one append, so that it works while the daemon and other agents run.

use serde::Serialize;

use super::{
    error::{CommandError, CommandResult},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::{
        address::Stem,
        log::{format_entry, new_log_header},
    },
    recall::search,
    store::fs::{
        lock::{DaemonLock, WriteLock},
        vault::{FILE_BYTES_MAX, VaultError},
    },
};

/// What `--json` prints.
#[derive(Serialize)]
pub(crate) struct AppendedEntry {
    pub(crate) path: String,
    pub(crate) line: usize,
    /// In the copy of a fleet's root: whether it is in the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) publication: Option<Publication>,
}

/// Whether an entry is in the store of a fleet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Publication {
    /// The generation that holds it; `None` if it is on this machine only.
    pub(crate) generation: Option<u64>,
    /// Why it is on this machine only.
    pub(crate) waits: Option<String>,
}

/// Appends an entry to today's log, publishes it if the root is one of a fleet, and returns its line.
pub(crate) fn append_entry(
    call: &Invocation,
    root: &MemoryRoot,
    text: &str,
) -> CommandResult<AppendedEntry> {
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let date = now.date_naive();
    let Some(entry) = format_entry(now.time(), text) else {
        return Err(CommandError::usage("the entry is empty")
            .hint("memoird log \"Chose SQLite, because one file is easier to back up\"")
            .hint("`memoird log -` reads stdin"));
    };
    let path = root.vault.layout().source_path(&Stem::day(date));
    let lock = WriteLock::acquire(root.vault.layout().root())?;
    // Reading first refuses links and files that are not text.
    let before = root.vault.read_unmerged_text(&path)?;
    if (before.map_or(0, |it| it.len()) + entry.len()) as u64 > FILE_BYTES_MAX {
        return Err(VaultError::TooLarge { path: path.into() }.into());
    }
    root.vault.append(&lock, &path, &new_log_header(date), &entry, false)?;
    drop(lock);
    let text = root.vault.read_unmerged_text(&path)?;
    let line = text.as_deref().and_then(|text| entry_line(text, &entry));
    let line = line.ok_or_else(|| VaultError::ReadBackMismatch { path: (&path[..]).into() })?;
    #[cfg(feature = "fleet")]
    let publication = super::replica::publish(call, root, &path);
    #[cfg(not(feature = "fleet"))]
    let publication = None;
    Ok(AppendedEntry { path, line, publication })
}

impl AppendedEntry {
    /// Returns why the entry is not in the store of its fleet yet, if it has one.
    pub(crate) fn waits(&self) -> Option<&str> {
        self.publication.as_ref()?.waits.as_deref()
    }
}

/// Adds today's log to the search index, if there is one and no daemon does it. Runs after the answer is
/// printed.
pub(crate) fn update_index(call: &Invocation, root: &MemoryRoot) {
    let holder = DaemonLock::holder(&root.vault.layout().daemon_lock());
    if matches!(holder, Ok(None)) {
        let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
        // If this fails, the next search updates the index.
        drop(search::update_index_log(&root.vault, &Stem::day(today), &root.rules));
    }
}

/// Returns the line, from 1, on which the last `entry` of a log begins.
fn entry_line(text: &str, entry: &str) -> Option<usize> {
    let at = text.rfind(entry)?;
    Some(text[..at].matches('\n').count() + 1)
}
