//! The system's word that something changed in a folder.
//!
//! It is only a hint: it wakes the scan, which is the truth. So events are not looked into. Each
//! adds its name to those of its folder; folders are few and of many names only their number is kept,
//! so no storm of events fills the memory, and the thread that hears them never waits for the loop.
//!
//! Reading a folder makes events too, ours and everybody's: those are dropped, else a look would
//! be the cause of the next. So are names that do not matter there, or that only editors, sync tools,
//! and we ourselves use while writing. What we wrote in the end comes back as an event; whether it is
//! news is asked of the last [`Snapshot`](crate::daemon::folder_snapshot::FolderSnapshot).

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

/// Of more names than this in one folder nothing is known but that they are many.
const NAMES_MAX: usize = 512;

/// Watches folders.
#[derive(Debug)]
pub(super) struct FolderWatcher {
    watcher: Option<RecommendedWatcher>,
    /// Per folder, the device and inode that are watched: a folder that is made anew under the same
    /// name is another one.
    watched: BTreeMap<PathBuf, FolderId>,
    /// Per root, its folders that are watched.
    folders_by_root: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    mailbox: Arc<ChangeMailbox>,
}

/// What the watching thread leaves for the loop.
#[derive(Debug, Default)]
struct ChangeMailbox {
    pending: Mutex<PendingChanges>,
    notify: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct PendingChanges {
    changes: ChangedPaths,
    /// Per folder that is watched, what each root wants to know of it.
    interests: BTreeMap<PathBuf, BTreeMap<PathBuf, NameFilter>>,
}

/// Where something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChangedPaths {
    /// Per folder, what changed in it.
    folders: BTreeMap<PathBuf, ChangedNames>,
    /// Events were lost, so anything may have.
    overflow: bool,
}

/// Names in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangedNames {
    /// These.
    These(BTreeSet<OsString>),
    /// More than are worth to be told apart.
    Many,
}

impl FolderWatcher {
    /// Starts to watch nothing yet.
    pub(super) fn new() -> Self {
        let mut watch = Self {
            watcher: None,
            watched: BTreeMap::new(),
            folders_by_root: BTreeMap::new(),
            mailbox: Arc::default(),
        };
        // Who places the first folder is told why there is no watcher.
        drop(watch.start_watcher());
        watch
    }

    /// Watches exactly `folders` for the root at `root`, as far as they exist.
    ///
    /// # Errors
    ///
    /// Returns why the system does not watch, mostly a limit of it: the root must be polled.
    pub(super) fn watch_folders(
        &mut self,
        root: &Path,
        folders: &[WatchedFolder],
    ) -> Result<(), notify::Error> {
        self.start_watcher()?;
        let there: BTreeMap<&PathBuf, (&NameFilter, FolderId)> = folders
            .iter()
            .filter_map(|it| {
                Some((&it.path, (&it.interest, folder_snapshot::folder_id(&it.path)?)))
            })
            .collect();
        let had = self.folders_by_root.get(root).cloned().unwrap_or_default();
        for folder in had.iter().filter(|it| !there.contains_key(it)) {
            self.unwatch_for_root(root, folder);
        }
        for (folder, (interest, id)) in there {
            if self.watched.get(folder).is_some_and(|it| *it != id) {
                self.unwatch(folder);
            }
            let mut heard = self.mailbox.lock();
            let interests = heard.interests.entry(folder.clone()).or_default();
            interests.insert(root.to_owned(), interest.clone());
            // The thread of the watcher may ask for it while it places a watch for us.
            drop(heard);
            self.folders_by_root.entry(root.to_owned()).or_default().insert(folder.clone());
            let Some(watcher) = &mut self.watcher else { continue };
            if !self.watched.contains_key(folder) {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.watched.insert(folder.clone(), id);
            }
        }
        Ok(())
    }

    /// Stops watching a root.
    pub(super) fn unwatch_root(&mut self, root: &Path) {
        for folder in self.folders_by_root.get(root).cloned().unwrap_or_default() {
            self.unwatch_for_root(root, &folder);
        }
        self.folders_by_root.remove(root);
    }

    /// Returns the folders of a root that are watched, and which folders they were then.
    pub(super) fn watched(&self, root: &Path) -> BTreeMap<PathBuf, FolderId> {
        let folders = self.folders_by_root.get(root).into_iter().flatten();
        folders.filter_map(|it| Some((it.clone(), *self.watched.get(it)?))).collect()
    }

    /// Waits for a change. Loses none when it is dropped before one came.
    pub(super) async fn next_changes(&self) -> ChangedPaths {
        loop {
            let dirty = self.take_changes();
            if dirty != ChangedPaths::default() {
                return dirty;
            }
            self.mailbox.notify.notified().await;
        }
    }

    /// Returns what changed since the last time that this was asked.
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

    /// Stops watching a folder for a root; another one may want it still.
    fn unwatch_for_root(&mut self, root: &Path, folder: &Path) {
        let mut heard = self.mailbox.lock();
        let is_wanted = heard.interests.get_mut(folder).is_some_and(|it| {
            it.remove(root);
            !it.is_empty()
        });
        if !is_wanted {
            heard.interests.remove(folder);
        }
        drop(heard);
        if let Some(folders) = self.folders_by_root.get_mut(root) {
            folders.remove(folder);
        }
        if !is_wanted {
            self.unwatch(folder);
        }
    }

    fn unwatch(&mut self, folder: &Path) {
        // A folder that is gone has taken its watch along.
        if self.watched.remove(folder).is_some()
            && let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.unwatch(folder)
        {
            tracing::debug!("{error}");
        }
    }
}

impl ChangedPaths {
    /// Returns whether something changed, or may have, in the root at `root` or above it.
    pub(super) fn touches(&self, root: &Path) -> bool {
        self.overflow || self.in_root(root).next().is_some()
    }

    /// Returns what changed in a root: folders of its own, and those above in which its own name, or
    /// that of a folder on the way to it, was told.
    pub(super) fn in_root<'a>(
        &'a self,
        root: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a ChangedNames)> {
        self.folders.iter().filter(move |(folder, names)| {
            let below = || root.strip_prefix(folder).ok()?.iter().next();
            folder.starts_with(root) || below().is_some_and(|it| names.contain(it))
        })
    }

    /// Returns whether events were lost.
    pub(super) fn is_overflow(&self) -> bool {
        self.overflow
    }

    /// Adds what another one holds.
    pub(super) fn add(&mut self, folder: &Path, names: &ChangedNames) {
        match self.folders.get_mut(folder) {
            Some(known) => known.add(names),
            None => {
                self.folders.insert(folder.to_owned(), names.clone());
            }
        }
    }

    /// Adds that events were lost.
    pub(super) fn add_overflow(&mut self) {
        self.overflow = true;
    }

    /// Returns all folders and what changed in them.
    pub(super) fn folders(&self) -> &BTreeMap<PathBuf, ChangedNames> {
        &self.folders
    }

    /// Returns whether a file of that name may be among it.
    pub(super) fn may_contain(&self, name: &str) -> bool {
        self.overflow || self.folders.values().any(|it| it.contain(OsStr::new(name)))
    }

    /// Returns whether a change of that name may have been told.
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
    /// Takes note of a change at `path`, if anybody wants to know.
    fn record(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let mut wanted = self.interests.get(folder).into_iter().flat_map(BTreeMap::values);
        // A folder that is watched tells of itself, too: that it was moved or deleted.
        if !self.interests.contains_key(path) && !wanted.any(|it| it.matches(name)) {
            return false;
        }
        self.changes.add(folder, &ChangedNames::These([name.to_owned()].into()));
        true
    }
}

impl ChangeMailbox {
    /// Called on the thread of the watcher.
    fn on_event(&self, event: notify::Result<notify::Event>) {
        // After an error nobody knows what was not told.
        let lost = event.as_ref().map_or(true, notify::Event::need_rescan);
        let paths = event.ok().filter(|it| is_change(it.kind)).map(|it| it.paths);
        let mut heard = self.lock();
        heard.changes.overflow |= lost;
        let mut is_news = lost;
        for path in paths.iter().flatten() {
            is_news |= heard.record(path);
        }
        drop(heard);
        if is_news {
            self.notify.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PendingChanges> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether something may have been changed. The end of writing tells also of what was written
/// through a mapping of the file, of which nothing else does.
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
    fn check(kind: EventKind, path: &str, dirty: bool) {
        let notices = notices();
        notices.on_event(Ok(Event::new(kind).add_path(path.into())));
        assert_eq!(taken(&notices).touches(Path::new("/a")), dirty, "{kind:?} {path}");
    }

    #[test]
    fn only_changes_of_what_we_read_are_heard() {
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
        let dirty = taken(&notices);
        assert!(dirty.is_overflow() && dirty.touches(Path::new("/any")));
        assert_eq!(taken(&notices), ChangedPaths::default());
        notices.on_event(Err(notify::Error::generic("no")));
        assert!(taken(&notices).is_overflow());
    }

    #[test]
    fn of_very_many_names_only_their_number_is_kept() {
        let notices = notices();
        for n in 0..=NAMES_MAX {
            let path = format!("/a/memory/2026-04-02-{n}.md").into();
            notices.on_event(Ok(Event::new(EventKind::Create(CreateKind::File)).add_path(path)));
        }
        let dirty = taken(&notices);
        assert_eq!(dirty.folders()[Path::new("/a/memory")], ChangedNames::Many);
        assert!(dirty.reports(Path::new("/a/memory"), 7) && !dirty.reports(Path::new("/a"), 7));
    }

    #[test]
    fn a_folder_that_is_made_anew_is_watched_anew() {
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
        let of_memory = |dirty: &ChangedPaths| dirty.folders().contains_key(&memory);
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
    fn a_root_that_appears_is_heard_of_in_the_folder_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().to_owned();
        let root = above.join("mara");
        let mut watch = FolderWatcher::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let interest = NameFilter::Only(["mara".into()].into());
        watch.watch_folders(&root, &[WatchedFolder { path: above.clone(), interest }]).unwrap();
        fs::create_dir(above.join("other")).unwrap();
        fs::create_dir(&root).unwrap();
        let dirty = runtime.block_on(watch.next_changes());
        assert!(dirty.touches(&root) && !dirty.touches(&above.join("other")));
    }
}
