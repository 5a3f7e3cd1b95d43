//! A snapshot of a root's folders, a few bytes per file.
//!
//! A run takes one just before its last scan of the files, so later changes differ from it. It answers
//! two questions: whether a reported change is new (our own writes are not), and whether anything
//! changed that the system did not report.
//!
//! Names and stamps are stored as hashes: ten years of logs take a hundred kilobytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    fs,
    hash::{DefaultHasher, Hasher as _},
    io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::{
    config::root::ROOT_FILE_NAME,
    memory::period::Grain,
    store::fs::layout::{self, Layout},
};

/// Device and inode of a folder: a folder recreated under the same name is another one.
pub(super) type FolderId = (u64, u64);

/// A watched folder, and which of its names matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WatchedFolder {
    pub(super) path: PathBuf,
    pub(super) interest: NameFilter,
}

/// Which names of a folder matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NameFilter {
    /// All but the temporary files of editors, sync tools, and memoird.
    Memory,
    Only(BTreeSet<OsString>),
}

/// The state of a root's folders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FolderSnapshot {
    folders: BTreeMap<PathBuf, FolderState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FolderState {
    id: FolderId,
    /// Sorted by name.
    files: Box<[HashedFile]>,
}

/// A file, as hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HashedFile {
    name: u64,
    /// Of inode, size, and modification time.
    content: u64,
    /// Of mode and change time: a change of permissions may make it readable.
    permissions: u64,
}

/// A folder, and the hash of a name in it.
pub(super) type HashedPath = (PathBuf, u64);

/// Returns the folders of a root, including those that do not exist yet.
pub(super) fn watched_folders(layout: &Layout) -> Vec<WatchedFolder> {
    let only = |names: &[&OsStr]| NameFilter::Only(names.iter().map(Into::into).collect());
    // Without a trailing slash: the same folder under two names would be two.
    let memory: PathBuf = layout.full(layout.memory_dir()).components().collect();
    let mut folders = Vec::new();
    // Each folder on the path to the memory folder may appear later.
    let mut path = layout.root().to_path_buf();
    for (depth, name) in Path::new(layout.memory_dir()).iter().enumerate() {
        let mut own = vec![name, OsStr::new(layout::WISDOM_FILE), OsStr::new(ROOT_FILE_NAME)];
        own.extend(layout.curated().iter().filter(|it| !it.contains('/')).map(OsStr::new));
        let interest = only(if depth == 0 { &own } else { &own[..1] });
        folders.push(WatchedFolder { path: path.clone(), interest });
        path.push(name);
    }
    let below = [Grain::Week, Grain::Month].map(|it| layout.full(&layout.summary_dir(it)));
    let memory = [memory].into_iter().chain(below);
    folders.extend(memory.map(|path| WatchedFolder { path, interest: NameFilter::Memory }));
    folders
}

impl NameFilter {
    /// Returns whether a change of this name can make a run due.
    pub(super) fn matches(&self, name: &OsStr) -> bool {
        match self {
            Self::Only(names) => names.contains(name),
            Self::Memory => name
                .to_str()
                .is_none_or(|it| it == layout::DECISIONS_FILE || !layout::is_temporary(it)),
        }
    }
}

impl FolderSnapshot {
    /// Reads the state of the folders. A missing folder is left out.
    pub(super) fn take(folders: &[WatchedFolder]) -> io::Result<Self> {
        let mut snapshot = Self::default();
        for WatchedFolder { path, interest } in folders {
            let Some(id) = folder_id(path) else { continue };
            let mut files = Vec::new();
            let entries = match fs::read_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let name = entry.file_name();
                if interest.matches(&name) {
                    files.extend(HashedFile::of(&name, &entry.path()));
                }
            }
            files.sort_unstable();
            snapshot.folders.insert(path.clone(), FolderState { id, files: files.into() });
        }
        Ok(snapshot)
    }

    /// Returns whether a file differs from the snapshot.
    pub(super) fn differs_at(&self, folder: &Path, name: &OsStr) -> bool {
        let Some(shot) = self.folders.get(folder) else { return true };
        let was = shot.files.binary_search_by_key(&hash(name), |it| it.name);
        let was = was.ok().map(|it| shot.files[it]);
        was != HashedFile::of(name, &folder.join(name))
    }

    /// Returns the changes from this snapshot to a later one in the `watched` folders. A folder that
    /// was recreated in between was not watched all the time and is left out.
    pub(super) fn changes_to(
        &self,
        later: &Self,
        watched: &BTreeMap<PathBuf, FolderId>,
    ) -> Vec<HashedPath> {
        let mut changed = Vec::new();
        for (path, old) in &self.folders {
            let Some(new) = later.folders.get(path) else { continue };
            if old.id != new.id || watched.get(path) != Some(&old.id) {
                continue;
            }
            let key = |it: &HashedFile| (it.name, it.content);
            let before: BTreeSet<_> = old.files.iter().map(key).collect();
            let after: BTreeSet<_> = new.files.iter().map(key).collect();
            let names: BTreeSet<u64> =
                before.symmetric_difference(&after).map(|(name, _)| *name).collect();
            changed.extend(names.into_iter().map(|name| (path.clone(), name)));
        }
        changed
    }
}

impl HashedFile {
    /// Reads the stamps of a file; `None` when it does not exist.
    fn of(name: &OsStr, path: &Path) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        // The content of a subfolder has its own watch.
        let content =
            if meta.is_dir() { (0, 0, 0) } else { (meta.size(), meta.mtime(), meta.mtime_nsec()) };
        let rights = if meta.is_dir() { (0, 0) } else { (meta.ctime(), meta.ctime_nsec()) };
        Some(Self {
            name: hash(name),
            content: hash((meta.dev(), meta.ino(), content)),
            permissions: hash((meta.mode(), rights)),
        })
    }
}

/// Returns device and inode of a folder; `None` when it does not exist.
pub(super) fn folder_id(folder: &Path) -> Option<FolderId> {
    let meta = fs::metadata(folder).ok().filter(fs::Metadata::is_dir)?;
    Some((meta.dev(), meta.ino()))
}

/// Returns the hash of a name as [`FolderSnapshot::changes_to`] returns it.
pub(super) fn name_hash(name: &OsStr) -> u64 {
    hash(name)
}

fn hash(it: impl std::hash::Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    it.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(path, text).unwrap();
    }

    #[test]
    fn every_folder_on_the_path_to_the_memory_folder_is_watched() {
        let seen = |memory_dir: &str| {
            let folders = watched_folders(&Layout::new("/a", memory_dir));
            let described = folders.iter().map(|it| {
                let names = match &it.interest {
                    NameFilter::Memory => "*".to_owned(),
                    NameFilter::Only(names) => {
                        names.iter().filter_map(|it| it.to_str()).collect::<Vec<_>>().join(" ")
                    }
                };
                format!("{}: {names}", it.path.display())
            });
            described.collect::<Vec<_>>()
        };
        assert_eq!(seen("")[0], "/a: *");
        assert_eq!(seen("x/y")[..3], ["/a: WISDOM.md memoird.yaml x", "/a/x: y", "/a/x/y: *"]);
        assert_eq!(seen("x/y").len(), 5);
    }

    #[test]
    fn later_changes_differ_from_the_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        let folder = WatchedFolder { path: path.clone(), interest: NameFilter::Memory };
        write(&path.join("a.md"), "one");
        write(&path.join("b.md"), "one");
        write(&path.join(".b.md.swp"), "");
        let before = FolderSnapshot::take(std::slice::from_ref(&folder)).unwrap();
        assert!(!before.differs_at(&path, OsStr::new("a.md")));
        write(&path.join("a.md"), "three");
        fs::remove_file(path.join("b.md")).unwrap();
        write(&path.join("c.md"), "");
        write(&path.join("c.md~"), "");
        let differ =
            ["a.md", "b.md", "c.md", "d.md"].map(|it| before.differs_at(&path, OsStr::new(it)));
        assert_eq!(differ, [true, true, true, false]);
        let after = FolderSnapshot::take(&[folder]).unwrap();
        let names = |watched: &BTreeMap<PathBuf, FolderId>| {
            let mut names: Vec<u64> =
                before.changes_to(&after, watched).into_iter().map(|it| it.1).collect();
            names.sort_unstable();
            names
        };
        let mut expected = ["a.md", "b.md", "c.md"].map(|it| name_hash(OsStr::new(it)));
        expected.sort_unstable();
        let watched = BTreeMap::from([(path.clone(), folder_id(&path).unwrap())]);
        assert_eq!(names(&watched), expected);
        assert!(names(&BTreeMap::new()).is_empty());
        assert!(names(&BTreeMap::from([(path, (0, 0))])).is_empty());
    }
}
