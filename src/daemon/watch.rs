//! The system's word that something changed in a folder.
//!
//! It is only a hint: it wakes the scan, which is the truth. So events are not looked into. Each
//! marks its folder as dirty; folders are few, so no storm of events fills the memory, and the
//! thread that hears them never waits for the loop.
//!
//! Reading a folder makes events too, ours and everybody's: those are dropped, else a look would
//! be the cause of the next. So are names that only editors, sync tools, and we ourselves use while
//! writing. What we wrote in the end comes back as an event and costs one look that finds nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use crate::store::layout;

/// Watches folders.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    /// Per folder, the device and inode that are watched: a folder that is made anew under the same
    /// name is another one.
    placed: BTreeMap<PathBuf, (u64, u64)>,
    notices: Arc<Notices>,
}

/// What the watching thread leaves for the loop.
#[derive(Debug, Default)]
struct Notices {
    dirty: Mutex<Dirty>,
    bell: tokio::sync::Notify,
}

/// Where something changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dirty {
    /// These folders hold a change.
    pub(super) folders: BTreeSet<PathBuf>,
    /// Events were lost, so any folder may.
    overflow: bool,
}

impl Watch {
    /// Starts to watch nothing yet.
    pub(super) fn new() -> Self {
        let mut watch = Self { watcher: None, placed: BTreeMap::new(), notices: Arc::default() };
        // Who places the first folder is told why there is no watcher.
        drop(watch.start());
        watch
    }

    /// Watches exactly `folders` of the root at `root`, as far as they exist.
    ///
    /// # Errors
    ///
    /// Returns why the system does not watch, mostly a limit of it: the root must be polled.
    pub(super) fn place(&mut self, root: &Path, folders: &[PathBuf]) -> Result<(), notify::Error> {
        self.start()?;
        let there: BTreeMap<&PathBuf, (u64, u64)> = folders
            .iter()
            .filter_map(|folder| {
                let meta = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
                Some((folder, (meta.dev(), meta.ino())))
            })
            .collect();
        let gone: Vec<PathBuf> = self
            .placed
            .iter()
            .filter(|(folder, id)| folder.starts_with(root) && there.get(folder) != Some(id))
            .map(|(folder, _)| folder.clone())
            .collect();
        for folder in &gone {
            self.remove(folder);
        }
        let Some(watcher) = &mut self.watcher else { return Ok(()) };
        for (folder, id) in there {
            if !self.placed.contains_key(folder) {
                watcher.watch(folder, RecursiveMode::NonRecursive)?;
                self.placed.insert(folder.clone(), id);
            }
        }
        Ok(())
    }

    /// Stops watching a root.
    pub(super) fn forget(&mut self, root: &Path) {
        let folders: Vec<PathBuf> =
            self.placed.keys().filter(|it| it.starts_with(root)).cloned().collect();
        for folder in &folders {
            self.remove(folder);
        }
    }

    /// Waits for a change. Loses none when it is dropped before one came.
    pub(super) async fn next(&self) -> Dirty {
        loop {
            let dirty = self.notices.take();
            if dirty != Dirty::default() {
                return dirty;
            }
            self.notices.bell.notified().await;
        }
    }

    fn start(&mut self) -> Result<(), notify::Error> {
        if self.watcher.is_none() {
            let notices = Arc::clone(&self.notices);
            self.watcher = Some(notify::recommended_watcher(move |event| notices.hear(event))?);
        }
        Ok(())
    }

    fn remove(&mut self, folder: &Path) {
        self.placed.remove(folder);
        // A folder that is gone has taken its watch along.
        if let Some(watcher) = &mut self.watcher
            && let Err(error) = watcher.unwatch(folder)
        {
            tracing::debug!("{error}");
        }
    }
}

impl Dirty {
    /// Returns whether something changed, or may have, in the root at `root`.
    pub(super) fn touches(&self, root: &Path) -> bool {
        self.overflow || self.folders.iter().any(|it| it.starts_with(root))
    }

    /// Returns whether events were lost.
    pub(super) fn is_overflow(&self) -> bool {
        self.overflow
    }
}

impl Notices {
    /// Called on the thread of the watcher.
    fn hear(&self, event: notify::Result<notify::Event>) {
        // After an error nobody knows what was not told.
        let lost = event.as_ref().map_or(true, notify::Event::need_rescan);
        let folders: BTreeSet<PathBuf> = match event {
            Ok(event) if !matches!(event.kind, EventKind::Access(_)) => event
                .paths
                .iter()
                .filter(|it| it.file_name().and_then(|it| it.to_str()).is_none_or(concerns_us))
                .filter_map(|it| it.parent().map(Path::to_path_buf))
                .collect(),
            _ => BTreeSet::new(),
        };
        if !lost && folders.is_empty() {
            return;
        }
        let mut dirty = self.dirty.lock().unwrap_or_else(PoisonError::into_inner);
        dirty.overflow |= lost;
        dirty.folders.extend(folders);
        drop(dirty);
        self.bell.notify_one();
    }

    fn take(&self) -> Dirty {
        std::mem::take(&mut *self.dirty.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns whether a file of this name can make anything due.
fn concerns_us(name: &str) -> bool {
    name == layout::DECISIONS_FILE || !layout::is_temporary(name)
}

#[cfg(test)]
mod tests {
    use notify::{
        Event,
        event::{AccessKind, CreateKind, Flag, ModifyKind, RemoveKind, RenameMode},
    };

    use super::*;

    #[track_caller]
    fn check(kind: EventKind, path: &str, dirty: bool) {
        let notices = Notices::default();
        notices.hear(Ok(Event::new(kind).add_path(path.into())));
        assert_eq!(notices.take().touches(Path::new("/a")), dirty, "{kind:?} {path}");
    }

    #[test]
    fn only_changes_of_what_we_read_are_heard() {
        let create = EventKind::Create(CreateKind::File);
        let rename = EventKind::Modify(ModifyKind::Name(RenameMode::Both));
        check(create, "/a/memory/2026-04-02.md", true);
        check(rename, "/a/WISDOM.md", true);
        check(EventKind::Remove(RemoveKind::File), "/a/memory/weekly/2026-W14.md", true);
        check(create, "/a/memory", true); // appears later
        check(create, "/a/memory/.decisions.jsonl", true);
        check(EventKind::Access(AccessKind::Any), "/a/memory/2026-04-02.md", false);
        check(EventKind::Modify(ModifyKind::Any), "/a/.memoird", false);
        check(create, "/a/memory/.memoird-tmp-1-2", false);
        check(create, "/a/memory/.2026-04-02.md.swp", false);
        check(create, "/a/memory/2026-04-02.md~", false);
        check(create, "/ab/memory/2026-04-02.md", false); // another root
    }

    #[test]
    fn lost_events_make_everything_dirty() {
        let notices = Notices::default();
        notices.hear(Ok(Event::new(EventKind::Other).set_flag(Flag::Rescan)));
        let dirty = notices.take();
        assert!(dirty.is_overflow() && dirty.touches(Path::new("/any")));
        assert_eq!(notices.take(), Dirty::default());
        notices.hear(Err(notify::Error::generic("no")));
        assert!(notices.take().is_overflow());
    }

    #[test]
    fn a_folder_that_is_made_anew_is_watched_anew() {
        let dir = tempfile::tempdir().unwrap();
        let (root, memory) = (dir.path().to_owned(), dir.path().join("memory"));
        let mut watch = Watch::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folders = [root.clone(), memory.clone()];
        watch.place(&root, &folders).unwrap();
        fs::create_dir(&memory).unwrap();
        assert!(runtime.block_on(watch.next()).touches(&root));
        watch.place(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-02.md")).unwrap();
        assert!(runtime.block_on(watch.next()).touches(&memory));
        fs::rename(&memory, root.join("old")).unwrap();
        fs::create_dir(&memory).unwrap();
        watch.place(&root, &folders).unwrap();
        fs::File::create(memory.join("2026-04-03.md")).unwrap();
        while !runtime.block_on(watch.next()).touches(&memory) {}
        watch.forget(&root);
        assert!(watch.placed.is_empty());
    }
}
