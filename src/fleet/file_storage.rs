//! A folder as a store (`file:///PATH`): a disk for backups, or one that several machines share.
//!
//! A replacement compares and renames under a lock file; a new object takes its name only if it is free. Both are
//! complete or absent after a crash. The lock is `flock`, which a network file system must support.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use percent_encoding::percent_decode_str;
use rustix::fs::{FlockOperation, RenameFlags, flock};

use super::storage::{
    FetchedObject, ListedObject, ObjectStorage, ObjectVersion, OldBytes, StorageError,
    StorageErrorKind,
};
use crate::{memory::hash::ContentHash, store::fs::vault::Vault};

const LOCK_FILE: &str = ".memoird-lock";
/// How long a replacement waits for another one, which takes milliseconds.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// A folder as a store.
#[derive(Debug)]
pub(super) struct FileStorage {
    dir: PathBuf,
    url: String,
}

impl FileStorage {
    /// Returns the store in the folder that a `file://` address names. The folder need not exist.
    pub(super) fn open(url: &str) -> Result<Self, StorageError> {
        let bad = |reason: &str| StorageError::new(StorageErrorKind::Address, url, reason);
        let path = url.strip_prefix("file://").ok_or_else(|| bad("expected file:///PATH"))?;
        let path = percent_decode_str(path).decode_utf8().map_err(|_| bad("not UTF-8"))?;
        let dir = PathBuf::from(path.as_ref());
        if !dir.is_absolute() || dir.components().any(|it| it.as_os_str() == "..") {
            return Err(bad("expected an absolute path, as in file:///srv/memory/lex"));
        }
        Ok(Self { dir, url: url.to_owned() })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.dir.join(key)
    }

    fn failed(&self, key: &str, error: &io::Error) -> StorageError {
        let kind = match error.kind() {
            io::ErrorKind::PermissionDenied => StorageErrorKind::Denied,
            io::ErrorKind::AlreadyExists => StorageErrorKind::Changed,
            _ => StorageErrorKind::Failed,
        };
        StorageError::new(kind, &format!("{}/{key}", self.url), error)
    }

    /// Writes a temporary file beside an object, and syncs it.
    fn stage(&self, key: &str, bytes: &[u8]) -> io::Result<(PathBuf, PathBuf)> {
        let path = self.path(key);
        let dir = path.parent().unwrap_or(&self.dir).to_owned();
        create_folders(&dir)?;
        let temp = dir.join(Vault::new_temp_name());
        let mode = fs::metadata(&dir)?.mode() & 0o666;
        let write = || -> io::Result<()> {
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temp)?;
            file.write_all(bytes)?;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.sync_all()
        };
        write().inspect_err(|_| drop(fs::remove_file(&temp)))?;
        Ok((temp, dir))
    }

    fn lock(&self) -> io::Result<File> {
        create_folders(&self.dir)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o666);
        let file = file.open(self.path(LOCK_FILE))?;
        let started = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < LOCK_WAIT => {
                    std::thread::sleep(LOCK_POLL);
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

fn version_of(bytes: &[u8]) -> ObjectVersion {
    ObjectVersion { e_tag: Some(ContentHash::of(bytes).to_string()), version: None }
}

/// Creates a folder and its parents, each with the mode of the one above it; the first one only for its owner if
/// nobody else may write above it.
fn create_folders(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let above = dir.parent().unwrap_or(Path::new("/"));
    create_folders(above)?;
    let is_shared = fs::metadata(above)?.mode() & 0o020 != 0;
    let mode = if is_shared { fs::metadata(above)?.mode() & 0o770 } else { 0o700 };
    match DirBuilder::new().mode(mode).create(dir) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created.and_then(|()| File::open(above)?.sync_all()),
    }
}

fn read_limited(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

impl ObjectStorage for FileStorage {
    fn get(
        &self,
        key: &str,
        known: Option<&ObjectVersion>,
        bytes_max: u64,
    ) -> Result<FetchedObject, StorageError> {
        let bytes = match read_limited(&self.path(key), bytes_max) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(FetchedObject::Missing);
            }
            read => read.map_err(|e| self.failed(key, &e))?,
        };
        let Some(bytes) = bytes else {
            let reason = format!("more than {bytes_max} bytes");
            let url = format!("{}/{key}", self.url);
            return Err(StorageError::new(StorageErrorKind::TooLarge, &url, reason));
        };
        let version = version_of(&bytes);
        if known == Some(&version) {
            return Ok(FetchedObject::Unchanged);
        }
        Ok(FetchedObject::Found(bytes, version))
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<ObjectVersion, StorageError> {
        let create = || -> io::Result<()> {
            let (temp, dir) = self.stage(key, bytes)?;
            let place = || -> io::Result<()> {
                use rustix::fs::{CWD, renameat_with};
                let path = self.path(key);
                match renameat_with(CWD, &temp, CWD, &path, RenameFlags::NOREPLACE) {
                    // A file system without this flag may know hard links.
                    Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                        fs::hard_link(&temp, &path)?;
                        fs::remove_file(&temp)
                    }
                    placed => Ok(placed?),
                }
            };
            place().inspect_err(|_| drop(fs::remove_file(&temp)))?;
            File::open(dir)?.sync_all()
        };
        create().map_err(|e| self.failed(key, &e))?;
        Ok(version_of(bytes))
    }

    fn replace(
        &self,
        key: &str,
        bytes: &[u8],
        expected: &ObjectVersion,
    ) -> Result<ObjectVersion, StorageError> {
        let replace = || -> io::Result<()> {
            let _lock = self.lock()?;
            let (temp, dir) = self.stage(key, bytes)?;
            let path = self.path(key);
            let is_expected = match read_limited(&path, u64::MAX - 1) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                read => read.map(|it| it.is_some_and(|it| version_of(&it) == *expected)),
            };
            let placed = is_expected.and_then(|is_expected| {
                if is_expected {
                    fs::rename(&temp, &path)
                } else {
                    Err(io::ErrorKind::AlreadyExists.into())
                }
            });
            placed.inspect_err(|_| drop(fs::remove_file(&temp)))?;
            File::open(dir)?.sync_all()
        };
        replace().map_err(|e| self.failed(key, &e))?;
        Ok(version_of(bytes))
    }

    fn remove(&self, key: &str) -> Result<(), StorageError> {
        match fs::remove_file(self.path(key)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed(key, &error)),
            _ => Ok(()),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StorageError> {
        let mut found = Vec::new();
        let mut folders = vec![prefix.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(self.path(&folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries.map_err(|e| self.failed(&folder, &e))?,
            };
            for entry in entries.flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let key = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    folders.push(key);
                } else if let Ok(modified) = metadata.modified() {
                    found.push(ListedObject { key, modified: modified.into() });
                }
            }
        }
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, StorageError> {
        match fs::metadata(self.path(key)).and_then(|it| it.modified()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            modified => Ok(Some(modified.map_err(|e| self.failed(key, &e))?.into())),
        }
    }

    fn keeps_old_bytes(&self, _version: &ObjectVersion) -> OldBytes {
        OldBytes::Dropped
    }
}

/// Returns the folder of a `file://` address, as far as it exists without links; `None` for other addresses.
pub(super) fn folder_of(url: &str) -> Option<PathBuf> {
    let dir = FileStorage::open(url).ok()?.dir;
    let mut rest = Vec::new();
    let mut above = dir.as_path();
    loop {
        if let Ok(real) = above.canonicalize() {
            return Some(rest.iter().rev().fold(real, |path: PathBuf, name| path.join(name)));
        }
        rest.push(above.file_name()?.to_owned());
        above = above.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_and_nothing_is_left_behind() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}/a/b", dir.path().display());
        let storage = FileStorage::open(&url).unwrap();
        assert!(matches!(storage.get("manifest.json", None, 9), Ok(FetchedObject::Missing)));
        let first = storage.create("manifest.json", b"one").unwrap();
        let taken = storage.create("manifest.json", b"two").unwrap_err();
        assert_eq!(taken.kind, StorageErrorKind::Changed);
        assert!(matches!(
            storage.get("manifest.json", Some(&first), 9),
            Ok(FetchedObject::Unchanged)
        ));
        storage.replace("manifest.json", b"two", &first).unwrap();
        let stale = storage.replace("manifest.json", b"three", &first).unwrap_err();
        assert_eq!(stale.kind, StorageErrorKind::Changed);
        let large = storage.get("manifest.json", None, 2).unwrap_err();
        assert_eq!(large.kind, StorageErrorKind::TooLarge);
        storage.create("objects/ab/abcd", b"x").unwrap();
        let keys: Vec<_> = storage.list("objects").unwrap().into_iter().map(|it| it.key).collect();
        assert_eq!(keys, ["objects/ab/abcd"]);
        storage.remove("objects/ab/abcd").unwrap();
        storage.remove("objects/ab/abcd").unwrap();
        assert!(storage.modified("objects/ab/abcd").unwrap().is_none());
        assert_eq!(fs::read_dir(dir.path().join("a/b")).unwrap().count(), 3);
    }
}
