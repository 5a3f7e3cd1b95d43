//! Reports whether anything in a root has changed since the last look, with inotify(7).
//!
//! The kernel queues an event before the call that makes the change returns, so a change is visible here as
//! soon as the file is written. A disk that other hosts write to has no [`ChangeMonitor`].

use std::{
    fs, io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::MetadataExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::{
    filesystem::{self, FileSystemKind},
    layout::{self, Layout},
};
use crate::memory::period::Grain;

/// How long the absence of events is trusted.
const TRUSTED_FOR: Duration = Duration::from_secs(60);

/// How many years of an archive are watched.
const YEARS_MAX: usize = 100;

/// Watches the folders of a root.
#[derive(Debug)]
pub struct ChangeMonitor {
    queue: OwnedFd,
    /// The watch on the root folder, which may contain many unrelated files.
    root_watch: Option<i32>,
    memory: PathBuf,
    /// Device and inode of the memory folder.
    identity: (u64, u64),
    started: Instant,
    has_changed: bool,
}

impl ChangeMonitor {
    /// Starts watching; `None` if the system cannot report changes.
    pub fn watch(layout: &Layout) -> Option<Self> {
        let memory = layout.full(layout.memory_dir());
        if !matches!(filesystem::detect(&memory), Ok(FileSystemKind::Local)) {
            return None;
        }
        Self::start(layout, memory).ok()
    }

    fn start(layout: &Layout, memory: PathBuf) -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let kinds = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::MOVE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let identity = identity(&memory)?;
        inotify::add_watch(&queue, &memory, kinds)?;
        let mut folders = vec![layout.sessions_dir(), layout.archive_dir()];
        folders.extend([Grain::Week, Grain::Month].map(|it| layout.summary_dir(it)));
        let years = fs::read_dir(layout.full(&layout.archive_dir())).into_iter().flatten();
        let years = years.flatten().filter_map(|it| it.file_name().into_string().ok());
        let years = years.filter(|it| layout::is_year(it)).take(YEARS_MAX);
        folders.extend(years.map(|it| format!("{}/{it}", layout.archive_dir())));
        for folder in folders {
            match inotify::add_watch(&queue, layout.full(&folder), kinds) {
                // If it is created later, its parent is watched.
                Ok(_) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let root_watch = if layout.memory_dir().is_empty() {
            None
        } else {
            Some(inotify::add_watch(&queue, layout.root(), kinds)?)
        };
        Ok(Self {
            queue,
            root_watch,
            memory,
            identity,
            started: Instant::now(),
            has_changed: false,
        })
    }

    /// Returns whether nothing has changed since [`Self::watch`].
    pub fn is_unchanged(&mut self) -> bool {
        self.has_changed = self.has_changed
            || self.started.elapsed() > TRUSTED_FOR
            || identity(&self.memory).ok() != Some(self.identity)
            || self.has_relevant_event();
        !self.has_changed
    }

    fn has_relevant_event(&self) -> bool {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            let event = match reader.next() {
                Ok(event) => event,
                Err(rustix::io::Errno::AGAIN) => return false,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return true,
            };
            let name = event.file_name().map(|it| it.to_string_lossy().into_owned());
            let is_lost = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
            let is_ours = match name {
                None => true,
                Some(name) if Some(event.wd()) == self.root_watch => {
                    let memory = self.memory.file_name().map(|it| it.to_string_lossy());
                    name == layout::WISDOM_FILE || Some(name.into()) == memory
                }
                // A temporary file is renamed when it is complete.
                Some(name) => name != layout::PRIVATE_DIR && !name.starts_with(layout::TEMP_PREFIX),
            };
            if is_lost || is_ours {
                return true;
            }
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = fs::metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of a test")]
    fn changes_are_visible_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |name: &str| fs::write(root.join(name), "- a line\n").unwrap();
        fs::create_dir_all(root.join("memory/weekly")).unwrap();
        fs::create_dir(root.join(".memoird")).unwrap();
        let layout = Layout::new(root, "memory");
        let watch = || ChangeMonitor::watch(&layout).unwrap();
        for name in ["memory/2026-04-02.md", "memory/weekly/2026-W14.md", "WISDOM.md"] {
            let mut changes = watch();
            assert!(changes.is_unchanged());
            write(name);
            assert!(!changes.is_unchanged(), "{name}");
            // A change stays visible.
            assert!(!changes.is_unchanged(), "{name}");
        }
        let mut changes = watch();
        for name in ["notes.txt", ".memoird/search.db", "memory/.memoird-tmp-1"] {
            write(name);
            assert!(changes.is_unchanged(), "{name}");
        }
        fs::create_dir_all(root.join("memory/archive/2025")).unwrap();
        assert!(!changes.is_unchanged());
        let mut changes = watch();
        fs::rename(root.join("memory"), root.join("old")).unwrap();
        fs::create_dir(root.join("memory")).unwrap();
        assert!(!changes.is_unchanged());
    }
}
