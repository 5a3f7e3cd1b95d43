//! File changes that the system reports.
//!
//! A report is only a hint that wakes the scan, so events are not interpreted. Each adds its file name
//! to its folder's names; above [`NAMES_MAX`] names a folder counts as changed as a whole. So a storm
//! of events does not fill the memory, and the watcher's thread never waits for the loop.
//!
//! Dropped are events of reading, because a scan would cause the next one, and events of names that do
//! not matter or that editors, sync tools and memoird use for temporary files. Our own writes are
//! reported too; the last [`FolderSnapshot`](crate::daemon::folder_snapshot::FolderSnapshot) says
//! whether they are new.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use notify::{
    EventKind, RecommendedWatcher, RecursiveMode, Watcher as _,
    event::{AccessKind, AccessMode},
};

use super::folder_snapshot::{self, FolderId, NameFilter, WatchedFolder};

/// With more changed names than this, a folder counts as changed as a whole.
const NAMES_MAX: usize = 512;

#[derive(Debug)]
pub(super) struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    /// Device and inode of each watched folder: a folder recreated under the same name is another one.
    watched: BTreeMap<PathBuf, FolderId>,
    folders_by_root: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    mailbox: Arc<ChangeMailbox>,
}

/// What the watcher's thread leaves for the loop.
#[derive(Debug, Default)]
struct ChangeMailbox {
    pending: Mutex<PendingChanges>,
    notify: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    changes: ChangedPaths,
    /// Per watched folder, which names interest each root.
    interests: BTreeMap<PathBuf, BTreeMap<PathBuf, NameFilter>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedPaths {
    pub(super) folders: BTreeMap<PathBuf, ChangedNames>,
    /// Events were lost, so anything may have changed.
    pub(super) overflow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangedNames {
    These(BTreeSet<OsString>),
    /// Too many to list.
    Many,
}

impl FolderWatcher {
    /// Returns a watcher without folders.
    pub(super) fn new() -> Self {
        let mut watcher = Self {
            watcher: None,
            watched: BTreeMap::new(),
            folders_by_root: BTreeMap::new(),
            mailbox: Arc::default(),
        };
        // `watch_folders` tries again and returns the error.
        drop(watcher.start_watcher());
        watcher
    }

    /// Watches exactly those of `folders` that exist, for the root at `root`.
    ///
    /// Returns why the system does not watch, mostly because of a limit; the root must then be polled.
    pub(super) fn watch_folders(
        &mut self,
        root: &Path,
        folders: &[WatchedFolder],
    ) -> Result<(), notify::Error> {
        self.start_watcher()?;
        let existing: BTreeMap<&PathBuf, (&NameFilter, FolderId)> = folders
            .iter()
            .filter_map(|it| {
                Some((&it.path, (&it.interest, folder_snapshot::folder_id(&it.path)?)))
            })
            .collect();
        let previous = self.folders_by_root.get(root).cloned().unwrap_or_default();
        for folder in previous.iter().filter(|it| !existing.contains_key(it)) {
            self.unwatch_for_root(root, folder);
        }
        for (folder, (interest, id)) in existing {
            if self.watched.get(folder).is_some_and(|it| *it != id) {
                self.unwatch(folder);
            }
            let mut pending = self.mailbox.lock();
            let interests = pending.interests.entry(folder.clone()).or_default();
            interests.insert(root.to_owned(), interest.clone());
            // The watcher's thread may need the lock while it places a watch.
            drop(pending);
            self.folders_by_root.entry(root.to_owned()).or_default().insert(folder.clone());
            let Some(watcher) = &mut self.watcher else { continue };
            if !self.watched.contains_key(folder) {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.watched.insert(folder.clone(), id);
            }
        }
        Ok(())
    }

    pub(super) fn unwatch_root(&mut self, root: &Path) {
        for folder in self.folders_by_root.get(root).cloned().unwrap_or_default() {
            self.unwatch_for_root(root, &folder);
        }
        self.folders_by_root.remove(root);
    }

    /// Returns the watched folders of a root with their device and inode.
    pub(super) fn watched(&self, root: &Path) -> BTreeMap<PathBuf, FolderId> {
        let folders = self.folders_by_root.get(root).into_iter().flatten();
        folders.filter_map(|it| Some((it.clone(), *self.watched.get(it)?))).collect()
    }

    /// Waits for a change. Dropping the future loses none.
    pub(super) async fn next_changes(&self) -> ChangedPaths {
        loop {
            let changes = self.take_changes();
            if changes != ChangedPaths::default() {
                return changes;
            }
            self.mailbox.notify.notified().await;
        }
    }

    pub(super) fn take_changes(&self) -> ChangedPaths {
        std::mem::take(&mut self.mailbox.lock().changes)
    }

    fn start_watcher(&mut self) -> Result<(), notify::Error> {
        if self.watcher.is_none() {
            let notices = Arc::clone(&self.mailbox);
            self.watcher = Some(notify::recommended_watcher(move |event| notices.on_event(event))?);
        }
        Ok(())
    }

    /// Stops watching a folder for one root; others may still need it.
    fn unwatch_for_root(&mut self, root: &Path, folder: &Path) {
        let mut pending = self.mailbox.lock();
        let is_wanted = pending.interests.get_mut(folder).is_some_and(|it| {
            it.remove(root);
            !it.is_empty()
        });
        if !is_wanted {
            pending.interests.remove(folder);
        }
        drop(pending);
        if let Some(folders) = self.folders_by_root.get_mut(root) {
            folders.remove(folder);
        }
        if !is_wanted {
            self.unwatch(folder);
        }
    }

    fn unwatch(&mut self, folder: &Path) {
        // A deleted folder has no watch any more.
        if self.watched.remove(folder).is_some()
            && let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.unwatch(folder)
        {
            tracing::debug!("{error}");
        }
    }
}

impl ChangedPaths {
    /// Returns whether something changed, or may have changed, in the root or in a parent folder on its
    /// path.
    pub(super) fn touches(&self, root: &Path) -> bool {
        self.overflow || self.in_root(root).next().is_some()
    }

    /// Returns the changes of a root: those in its own folders, and those of its own name, or that of a
    /// folder on its path, in a parent.
    pub(super) fn in_root<'a>(
        &'a self,
        root: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a ChangedNames)> {
        self.folders.iter().filter(move |(folder, names)| {
            let below = || root.strip_prefix(folder).ok()?.iter().next();
            folder.starts_with(root) || below().is_some_and(|it| names.contain(it))
        })
    }

    pub(super) fn add(&mut self, folder: &Path, names: &ChangedNames) {
        match self.folders.get_mut(folder) {
            Some(known) => known.add(names),
            None => {
                self.folders.insert(folder.to_owned(), names.clone());
            }
        }
    }

    /// Returns whether a file of this name may have changed.
    pub(super) fn may_contain(&self, name: &str) -> bool {
        self.overflow || self.folders.values().any(|it| it.contain(OsStr::new(name)))
    }

    /// Returns whether a change of this name, given as a hash, may have been reported.
    pub(super) fn reports(&self, folder: &Path, name: u64) -> bool {
        self.overflow || self.folders.get(folder).is_some_and(|it| it.contain_hash(name))
    }
}

impl ChangedNames {
    fn contain(&self, name: &OsStr) -> bool {
        match self {
            Self::These(names) => names.contains(name),
            Self::Many => true,
        }
    }

    fn contain_hash(&self, name: u64) -> bool {
        match self {
            Self::These(names) => names.iter().any(|it| folder_snapshot::name_hash(it) == name),
            Self::Many => true,
        }
    }

    fn add(&mut self, more: &Self) {
        match (&mut *self, more) {
            (Self::Many, _) => {}
            (Self::These(_), Self::Many) => *self = Self::Many,
            (Self::These(names), Self::These(more)) => {
                names.extend(more.iter().cloned());
                if names.len() > NAMES_MAX {
                    *self = Self::Many;
                }
            }
        }
    }
}

impl PendingChanges {
    /// Records a change at `path`, and returns whether any root is interested.
    fn record(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let mut filters = self.interests.get(folder).into_iter().flat_map(BTreeMap::values);
        // A watched folder also reports its own removal or renaming.
        if !self.interests.contains_key(path) && !filters.any(|it| it.matches(name)) {
            return false;
        }
        self.changes.add(folder, &ChangedNames::These([name.to_owned()].into()));
        true
    }
}

impl ChangeMailbox {
    /// Handles an event, on the watcher's thread.
    fn on_event(&self, event: notify::Result<notify::Event>) {
        // After an error any event may have been lost.
        let lost = event.as_ref().map_or(true, notify::Event::need_rescan);
        let paths = event.ok().filter(|it| is_change(it.kind)).map(|it| it.paths);
        let mut pending = self.lock();
        pending.changes.overflow |= lost;
        let mut is_news = lost;
        for path in paths.iter().flatten() {
            is_news |= pending.record(path);
        }
        drop(pending);
        if is_news {
            self.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether an event may be a change. The close event of a writer also covers writes through a
/// memory mapping, which nothing else reports.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use notify::{
        Event,
        event::{CreateKind, Flag, ModifyKind, RemoveKind, RenameMode},
    };

    use super::*;
    use crate::{daemon::folder_snapshot::watched_folders, store::fs::layout::Layout};

    fn notices() -> ChangeMailbox {
        let notices = ChangeMailbox::default();
        for WatchedFolder { path, interest } in watched_folders(&Layout::new("/a", "memory")) {
            let interests = BTreeMap::from([("/a".into(), interest)]);
            notices.lock().interests.insert(path, interests);
        }
        notices
    }

    fn taken(notices: &ChangeMailbox) -> ChangedPaths {
        std::mem::take(&mut notices.lock().changes)
    }

    #[track_caller]
    fn check(kind: EventKind, path: &str, changes: bool) {
        let notices = notices();
        notices.on_event(Ok(Event::new(kind).add_path(path.into())));
        assert_eq!(taken(&notices).touches(Path::new("/a")), changes, "{kind:?} {path}");
    }

    #[test]
    fn only_changes_of_files_that_we_read_are_recorded() {
        let create = EventKind::Create(CreateKind::File);
        let rename = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        check(create, "/a/memory/2026-04-02.md", true);
        check(written, "/a/memory/2026-04-02.md", true);
        check(rename, "/a/WISDOM.md", true);
        check(rename, "/a/memoird.yaml", true);
        check(EventKind::Remove(RemoveKind::File), "/a/memory/weekly/2026-W14.md", true);
        check(create, "/a/memory", true); // appears later
        check(create, "/a/memory/.decisions.jsonl", true);
        check(EventKind::Remove(RemoveKind::Folder), "/a", true);
        check(EventKind::Access(AccessKind::Any), "/a/memory/2026-04-02.md", false);
        check(EventKind::Modify(ModifyKind::Any), "/a/.memoird", false);
        check(create, "/a/notes.md", false);
        check(create, "/a/memory/.memoird-tmp-1-2", false);
        check(create, "/a/memory/.2026-04-02.md.swp", false);
        check(create, "/a/memory/2026-04-02.md~", false);
        check(create, "/ab/memory/2026-04-02.md", false); // another root
    }

    #[test]
    fn lost_events_make_everything_dirty() {
        let notices = notices();
        notices.on_event(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        let changes = taken(&notices);
        assert!(changes.overflow && changes.touches(Path::new("/any")));
        assert_eq!(taken(&notices), ChangedPaths::default());
        notices.on_event(Err(notify::Error::generic("no")));
        assert!(taken(&notices).overflow);
    }

    #[test]
    fn a_folder_with_too_many_names_counts_as_changed_as_a_whole() {
        let notices = notices();
        for n in 0..=NAMES_MAX {
            let path = format!("/a/memory/2026-04-02-{n}.md").into();
            notices.on_event(Ok(Event::new(EventKind::Create(CreateKind::File)).add_path(path)));
        }
        let changes = taken(&notices);
        assert_eq!(changes.folders[Path::new("/a/memory")], ChangedNames::Many);
        assert!(changes.reports(Path::new("/a/memory"), 7) && !changes.reports(Path::new("/a"), 7));
    }

    #[test]
    fn a_recreated_folder_is_watched_again() {
        let dir = tempfile::tempdir().unwrap();
        let (root, memory) = (dir.path().to_owned(), dir.path().join("memory"));
        let mut watch = FolderWatcher::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folders = watched_folders(&Layout::new(&root, "memory"));
        watch.watch_folders(&root, &folders).unwrap();
        fs::create_dir(&memory).unwrap();
        assert!(runtime.block_on(watch.next_changes()).touches(&root));
        watch.watch_folders(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-02.md")).unwrap();
        let of_memory = |changes: &ChangedPaths| changes.folders.contains_key(&memory);
        while !of_memory(&runtime.block_on(watch.next_changes())) {}
        fs::rename(&memory, root.join("old")).unwrap();
        fs::create_dir(&memory).unwrap();
        watch.watch_folders(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-03.md")).unwrap();
        while !of_memory(&runtime.block_on(watch.next_changes())) {}
        assert_eq!(watch.watched(&root).len(), 2);
        watch.unwatch_root(&root);
        assert!(watch.watched.is_empty() && watch.mailbox.lock().interests.is_empty());
    }

    #[test]
    fn a_root_that_appears_is_reported_by_its_parent_folder() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().to_owned();
        let root = above.join("mara");
        let mut watch = FolderWatcher::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let interest = NameFilter::Only(["mara".into()].into());
        watch.watch_folders(&root, &[WatchedFolder { path: above.clone(), interest }]).unwrap();
        fs::create_dir(above.join("other")).unwrap();
        fs::create_dir(&root).unwrap();
        let changes = runtime.block_on(watch.next_changes());
        assert!(changes.touches(&root) && !changes.touches(&above.join("other")));
    }
}
