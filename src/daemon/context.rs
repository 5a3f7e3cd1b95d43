//! What the loop shares with the service of each memory folder.

use chrono::{DateTime, Utc};

use super::{runtime_config::RuntimeConfig, watch::FolderWatcher};

/// The configuration, the file watcher and the time.
#[derive(Debug)]
pub(super) struct DaemonContext {
    pub(super) config: RuntimeConfig,
    pub(super) watcher: FolderWatcher,
    /// The last time that the clock was read.
    pub(super) now: DateTime<Utc>,
}
