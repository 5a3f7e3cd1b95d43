//! Notices that files changed which a client listed or asked to be told of.
//!
//! A look takes one `stat` a file and reads nothing. It is taken every two seconds while a client is
//! there; the system's own notices would need a handle for each folder in each of many servers.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use super::{desk::Desk, resources};

/// How often it is looked.
const EVERY: Duration = Duration::from_secs(2);
/// So many addresses one client may ask about.
pub(super) const WATCHED_MAX: usize = 1_000;

/// What has changed since the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// There are other files than before.
    pub(super) is_list: bool,
    /// Addresses of files that read otherwise, came, or went.
    pub(super) updated: BTreeSet<String>,
}

/// Remembers what was seen at the last look.
#[derive(Debug)]
pub(super) struct Eye {
    desk: Arc<Desk>,
    seen: Option<Seen>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Seen {
    listed: BTreeSet<String>,
    stamps: BTreeMap<String, Option<Stamp>>,
}

type Stamp = (u64, u64, i64, i64);

impl Eye {
    /// Will look at what the desk works on.
    pub(super) fn new(desk: Arc<Desk>) -> Self {
        Self { desk, seen: None }
    }

    /// Looks once, so that whatever comes later is a change.
    pub(super) async fn open(mut self, wanted: BTreeSet<String>) -> Self {
        self.seen = self.look(wanted).await;
        self
    }

    /// Waits until something has changed of what is listed or wanted.
    pub(super) async fn changes(&mut self, wanted: impl Fn() -> BTreeSet<String>) -> Changes {
        loop {
            tokio::time::sleep(EVERY).await;
            // A folder that cannot be opened for a moment has not changed.
            let Some(now) = self.look(wanted()).await else { continue };
            let Some(before) = self.seen.replace(now.clone()) else { continue };
            let differs = |(uri, stamp): &(&String, &Option<Stamp>)| {
                before.stamps.get(*uri).is_some_and(|it| it != *stamp)
            };
            let updated = now.stamps.iter().filter(differs).map(|it| it.0.clone()).collect();
            let changes = Changes { is_list: before.listed != now.listed, updated };
            if changes != Changes::default() {
                return changes;
            }
        }
    }

    async fn look(&self, wanted: BTreeSet<String>) -> Option<Seen> {
        let desk = Arc::clone(&self.desk);
        tokio::task::spawn_blocking(move || look(&desk, wanted)).await.ok().flatten()
    }
}

fn look(desk: &Desk, wanted: BTreeSet<String>) -> Option<Seen> {
    let seat = desk.seat().ok()?;
    let listed = resources::list(&seat).into_iter().map(|it| it.uri).collect();
    let stamps = wanted.into_iter().map(|uri| {
        let path: Option<PathBuf> = resources::path_of(&seat, &uri);
        let stamp = path.as_deref().and_then(stamp);
        (uri, stamp)
    });
    Some(Seen { listed, stamps: stamps.collect() })
}

fn stamp(path: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let it = path.symlink_metadata().ok()?;
    Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
}
