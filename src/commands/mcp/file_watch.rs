//! Detects changes of the files that a client listed or subscribed to.
//!
//! A scan takes one `stat` per file and reads nothing. It runs every two seconds while a client is
//! connected; notifications by the system would need a handle for each folder in each of many servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{resources, service::McpService};

/// How often the files are scanned.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// The most subscriptions of one client.
pub(super) const WATCHED_MAX: usize = 1_000;

/// What has changed since the last scan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ResourceChanges {
    /// Files were added or removed.
    pub(super) list_changed: bool,
    /// The URIs of files that changed, appeared, or disappeared.
    pub(super) updated: BTreeSet<String>,
}

/// Keeps the result of the last scan.
#[derive(Debug)]
pub(super) struct ResourceWatcher {
    service: Arc<McpService>,
    last_snapshot: Option<ResourceSnapshot>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ResourceSnapshot {
    listed: BTreeSet<String>,
    stamps: BTreeMap<String, Option<StatStamp>>,
}

type StatStamp = (u64, u64, i64, i64);

impl ResourceWatcher {
    /// Returns a watcher of this service's files.
    pub(super) fn new(service: Arc<McpService>) -> Self {
        Self { service, last_snapshot: None }
    }

    /// Scans once, so that later differences are changes.
    pub(super) async fn start(mut self, wanted: BTreeSet<String>) -> Self {
        self.last_snapshot = self.take_snapshot(wanted).await;
        self
    }

    /// Waits until a listed or subscribed file changes.
    pub(super) async fn next_changes(
        &mut self,
        wanted: impl Fn() -> BTreeSet<String>,
    ) -> ResourceChanges {
        loop {
            tokio::time::sleep(POLL_INTERVAL).await;
            // A folder that cannot be opened for a moment has not changed.
            let Some(now) = self.take_snapshot(wanted()).await else { continue };
            let Some(before) = self.last_snapshot.replace(now.clone()) else { continue };
            let differs = |(uri, stamp): &(&String, &Option<StatStamp>)| {
                before.stamps.get(*uri).is_some_and(|it| it != *stamp)
            };
            let updated = now.stamps.iter().filter(differs).map(|it| it.0.clone()).collect();
            let changes = ResourceChanges { list_changed: before.listed != now.listed, updated };
            if changes != ResourceChanges::default() {
                return changes;
            }
        }
    }

    async fn take_snapshot(&self, wanted: BTreeSet<String>) -> Option<ResourceSnapshot> {
        let service = Arc::clone(&self.service);
        tokio::task::spawn_blocking(move || snapshot(&service, wanted)).await.ok().flatten()
    }
}

fn snapshot(service: &McpService, wanted: BTreeSet<String>) -> Option<ResourceSnapshot> {
    let folder = service.open().ok()?;
    let listed = resources::list(&folder).into_iter().map(|it| it.uri).collect();
    let stamps = wanted.into_iter().map(|uri| {
        let path: Option<PathBuf> = resources::path_of_uri(&folder, &uri);
        let stamp = path.as_deref().and_then(stamp);
        (uri, stamp)
    });
    Some(ResourceSnapshot { listed, stamps: stamps.collect() })
}

fn stamp(path: &Path) -> Option<StatStamp> {
    use std::os::unix::fs::MetadataExt as _;
    let it = path.symlink_metadata().ok()?;
    Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
}
