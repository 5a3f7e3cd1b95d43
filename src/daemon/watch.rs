//! The system's word that something changed in a folder.
//!
//! It is only a hint: it wakes the scan, which is the truth. So events are not looked into. Each
//! adds its name to those of its folder; folders are few and of many names only their number is kept,
//! so no storm of events fills the memory, and the thread that hears them never waits for the loop.
//!
//! Reading a folder makes events too, ours and everybody's: those are dropped, else a look would
//! be the cause of the next. So are names that do not matter there, or that only editors, sync tools,
//! and we ourselves use while writing. What we wrote in the end comes back as an event; whether it is
//! news is asked of the last [`Snapshot`](super::snapshot::Snapshot).

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

use super::snapshot::{self, Folder, Id, Interest};

/// Of more names than this in one folder nothing is known but that they are many.
const NAMES_MAX: usize = 512;

/// Watches folders.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// Per folder, the device and inode that are watched: a folder that is made anew under the same
    /// name is another one.
    placed: BTreeMap<PathBuf, Id>,
    /// Per root, its folders that are watched.
    of_root: BTreeMap<PathBuf, BTreeSet<PathBuf>>,
    notices: Arc<Notices>,
}

/// What the watching thread leaves for the loop.
#[derive(Debug, Default)]
struct Notices {
    heard: Mutex<Heard>,
    bell: tokio::sync::Notify,
}

#[derive(Debug, Default)]
struct Heard {
    dirty: Dirty,
    /// Per folder that is watched, what each root wants to know of it.
    interests: BTreeMap<PathBuf, BTreeMap<PathBuf, Interest>>,
}

/// Where something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// Per folder, what changed in it.
    folders: BTreeMap<PathBuf, Names>,
    /// Events were lost, so anything may have.
    overflow: bool,
}

/// Names in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Names {
    /// These.
    These(BTreeSet<OsString>),
    /// More than are worth to be told apart.
    Many,
}

impl Watch {
    /// Starts to watch nothing yet.
    pub(super) fn new() -> Self {
        let mut watch = Self {
            watcher: None,
            placed: BTreeMap::new(),
            of_root: BTreeMap::new(),
            notices: Arc::default(),
        };
        // Who places the first folder is told why there is no watcher.
        drop(watch.start());
        watch
    }

    /// Watches exactly `folders` for the root at `root`, as far as they exist.
    ///
    /// # Errors
    ///
    /// Returns why the system does not watch, mostly a limit of it: the root must be polled.
    pub(super) fn place(&mut self, root: &Path, folders: &[Folder]) -> Result<(), notify::Error> {
        self.start()?;
        let there: BTreeMap<&PathBuf, (&Interest, Id)> = folders
            .iter()
            .filter_map(|it| Some((&it.path, (&it.interest, snapshot::id_of(&it.path)?))))
            .collect();
        let had = self.of_root.get(root).cloned().unwrap_or_default();
        for folder in had.iter().filter(|it| !there.contains_key(it)) {
            self.leave(root, folder);
        }
        for (folder, (interest, id)) in there {
            if self.placed.get(folder).is_some_and(|it| *it != id) {
                self.unwatch(folder);
            }
            let mut heard = self.notices.heard();
            let interests = heard.interests.entry(folder.clone()).or_default();
            interests.insert(root.to_owned(), interest.clone());
            // The thread of the watcher may ask for it while it places a watch for us.
            drop(heard);
            self.of_root.entry(root.to_owned()).or_default().insert(folder.clone());
            let Some(watcher) = &mut self.watcher else { continue };
            if !self.placed.contains_key(folder) {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.placed.insert(folder.clone(), id);
            }
        }
        Ok(())
    }

    /// Stops watching a root.
    pub(super) fn forget(&mut self, root: &Path) {
        for folder in self.of_root.get(root).cloned().unwrap_or_default() {
            self.leave(root, &folder);
        }
        self.of_root.remove(root);
    }

    /// Returns the folders of a root that are watched, and which folders they were then.
    pub(super) fn placed(&self, root: &Path) -> BTreeMap<PathBuf, Id> {
        let folders = self.of_root.get(root).into_iter().flatten();
        folders.filter_map(|it| Some((it.clone(), *self.placed.get(it)?))).collect()
    }

    /// Waits for a change. Loses none when it is dropped before one came.
    pub(super) async fn next(&self) -> Dirty {
        loop {
            let dirty = self.take();
            if dirty != Dirty::default() {
                return dirty;
            }
            self.notices.bell.notified().await;
        }
    }

    /// Returns what changed since the last time that this was asked.
    pub(super) fn take(&self) -> Dirty {
        std::mem::take(&mut self.notices.heard().dirty)
    }

    fn start(&mut self) -> Result<(), notify::Error> {
        if self.watcher.is_none() {
            let notices = Arc::clone(&self.notices);
            self.watcher = Some(notify::recommended_watcher(move |event| notices.hear(event))?);
        }
        Ok(())
    }

    /// Stops watching a folder for a root; another one may want it still.
    fn leave(&mut self, root: &Path, folder: &Path) {
        let mut heard = self.notices.heard();
        let is_wanted = heard.interests.get_mut(folder).is_some_and(|it| {
            it.remove(root);
            !it.is_empty()
        });
        if !is_wanted {
            heard.interests.remove(folder);
        }
        drop(heard);
        if let Some(folders) = self.of_root.get_mut(root) {
            folders.remove(folder);
        }
        if !is_wanted {
            self.unwatch(folder);
        }
    }

    fn unwatch(&mut self, folder: &Path) {
        // A folder that is gone has taken its watch along.
        if self.placed.remove(folder).is_some()
            && let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.unwatch(folder)
        {
            tracing::debug!("{error}");
        }
    }
}

impl Dirty {
    /// Returns whether something changed, or may have, in the root at `root` or above it.
    pub(super) fn touches(&self, root: &Path) -> bool {
        self.overflow || self.of(root).next().is_some()
    }

    /// Returns what changed in a root: folders of its own, and those above in which its own name, or
    /// that of a folder on the way to it, was told.
    pub(super) fn of<'a>(
        &'a self,
        root: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a Names)> {
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
    pub(super) fn add(&mut self, folder: &Path, names: &Names) {
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
    pub(super) fn folders(&self) -> &BTreeMap<PathBuf, Names> {
        &self.folders
    }

    /// Returns whether a file of that name may be among it.
    pub(super) fn names(&self, name: &str) -> bool {
        self.overflow || self.folders.values().any(|it| it.contain(OsStr::new(name)))
    }

    /// Returns whether a change of that name may have been told.
    pub(super) fn tells_of(&self, folder: &Path, name: u64) -> bool {
        self.overflow || self.folders.get(folder).is_some_and(|it| it.contain_hash(name))
    }
}

impl Names {
    fn contain(&self, name: &OsStr) -> bool {
        match self {
            Self::These(names) => names.contains(name),
            Self::Many => true,
        }
    }

    fn contain_hash(&self, name: u64) -> bool {
        match self {
            Self::These(names) => names.iter().any(|it| snapshot::hash_of_name(it) == name),
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

impl Heard {
    /// Takes note of a change at `path`, if anybody wants to know.
    fn hear(&mut self, path: &Path) -> bool {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
        let mut wanted = self.interests.get(folder).into_iter().flat_map(BTreeMap::values);
        // A folder that is watched tells of itself, too: that it was moved or deleted.
        if !self.interests.contains_key(path) && !wanted.any(|it| it.concerns(name)) {
            return false;
        }
        self.dirty.add(folder, &Names::These([name.to_owned()].into()));
        true
    }
}

impl Notices {
    /// Called on the thread of the watcher.
    fn hear(&self, event: notify::Result<notify::Event>) {
        // After an error nobody knows what was not told.
        let lost = event.as_ref().map_or(true, notify::Event::need_rescan);
        let paths = event.ok().filter(|it| is_change(it.kind)).map(|it| it.paths);
        let mut heard = self.heard();
        heard.dirty.overflow |= lost;
        let mut is_news = lost;
        for path in paths.iter().flatten() {
            is_news |= heard.hear(path);
        }
        drop(heard);
        if is_news {
            self.bell.notify_one();
        }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crate::{daemon::snapshot::folders, store::layout::Layout};

    fn notices() -> Notices {
        let notices = Notices::default();
        for Folder { path, interest } in folders(&Layout::new("/a", "memory")) {
            let interests = BTreeMap::from([("/a".into(), interest)]);
            notices.heard().interests.insert(path, interests);
        }
        notices
    }

    fn taken(notices: &Notices) -> Dirty {
        std::mem::take(&mut notices.heard().dirty)
    }

    #[track_caller]
    fn check(kind: EventKind, path: &str, dirty: bool) {
        let notices = notices();
        notices.hear(Ok(Event::new(kind).add_path(path.into())));
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
        notices.hear(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        let dirty = taken(&notices);
        assert!(dirty.is_overflow() && dirty.touches(Path::new("/any")));
        assert_eq!(taken(&notices), Dirty::default());
        notices.hear(Err(notify::Error::generic("no")));
        assert!(taken(&notices).is_overflow());
    }

    #[test]
    fn of_very_many_names_only_their_number_is_kept() {
        let notices = notices();
        for n in 0..=NAMES_MAX {
            let path = format!("/a/memory/2026-04-02-{n}.md").into();
            notices.hear(Ok(Event::new(EventKind::Create(CreateKind::File)).add_path(path)));
        }
        let dirty = taken(&notices);
        assert_eq!(dirty.folders()[Path::new("/a/memory")], Names::Many);
        assert!(dirty.tells_of(Path::new("/a/memory"), 7) && !dirty.tells_of(Path::new("/a"), 7));
    }

    #[test]
    fn a_folder_that_is_made_anew_is_watched_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (root, memory) = (dir.path().to_owned(), dir.path().join("memory"));
        let mut watch = Watch::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folders = folders(&Layout::new(&root, "memory"));
        watch.place(&root, &folders).unwrap();
        fs::create_dir(&memory).unwrap();
        assert!(runtime.block_on(watch.next()).touches(&root));
        watch.place(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-02.md")).unwrap();
        let of_memory = |dirty: &Dirty| dirty.folders().contains_key(&memory);
        while !of_memory(&runtime.block_on(watch.next())) {}
        fs::rename(&memory, root.join("old")).unwrap();
        fs::create_dir(&memory).unwrap();
        watch.place(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-03.md")).unwrap();
        while !of_memory(&runtime.block_on(watch.next())) {}
        assert_eq!(watch.placed(&root).len(), 2);
        watch.forget(&root);
        assert!(watch.placed.is_empty() && watch.notices.heard().interests.is_empty());
    }

    #[test]
    fn a_root_that_appears_is_heard_of_in_the_folder_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let above = dir.path().to_owned();
        let root = above.join("mara");
        let mut watch = Watch::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let interest = Interest::Only(["mara".into()].into());
        watch.place(&root, &[Folder { path: above.clone(), interest }]).unwrap();
        fs::create_dir(above.join("other")).unwrap();
        fs::create_dir(&root).unwrap();
        let dirty = runtime.block_on(watch.next());
        assert!(dirty.touches(&root) && !dirty.touches(&above.join("other")));
    }
}
