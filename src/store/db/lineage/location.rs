//! The location of a database in a folder of the root, reached through no link.
//!
//! SQLite opens by path. So the folder is opened first like every folder of a root
//! ([`crate::store::fs::rooted_dir`]), the files under the database's names are checked, and SQLite gets the
//! path without links and the flag to follow none. Links on the way to the root are the owner's choice.

use std::{
    fs::{File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{OFlags, RenameFlags};

use super::LineageError;
use crate::store::{
    db::connection::with_suffix,
    fs::rooted_dir::{DirHandle, is_link},
};

/// The suffixes of a database's files. The database itself is last, so that it is renamed after the others:
/// a write-ahead log that stayed would be replayed into the next database.
pub(super) const FILES: [&str; 3] = ["-shm", "-wal", ""];

/// The location of a database. Its folder is held open.
#[derive(Debug)]
pub(super) struct DatabaseLocation {
    folder: DirHandle,
    /// As the caller gave it.
    path: PathBuf,
    /// The same without links.
    real: PathBuf,
    name: String,
}

impl DatabaseLocation {
    /// Finds a location; `None` when the folder does not exist.
    ///
    /// Returns [`LineageError::SymbolicLink`] for a link, or the system's error.
    pub(super) fn find(path: &Path) -> Result<Option<Self>, LineageError> {
        match Self::resolve(path, false) {
            Err(LineageError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Finds a location, and creates its folder if necessary, private to the owner.
    pub(super) fn create(path: &Path) -> Result<Self, LineageError> {
        Self::resolve(path, true)
    }

    fn resolve(path: &Path, creates_folder: bool) -> Result<Self, LineageError> {
        let parts = |path: &Path| {
            let name = path.file_name().and_then(|it| it.to_str()).map(str::to_owned);
            let above = path.parent().filter(|it| !it.as_os_str().is_empty());
            name.map(|it| (above.unwrap_or(Path::new(".")).to_owned(), it))
        };
        let unnamed = || failed(path, io::ErrorKind::InvalidInput.into());
        let (dir, name) = parts(path).ok_or_else(unnamed)?;
        let (top, dir_name) = parts(&dir).ok_or_else(unnamed)?;
        let top = top.canonicalize().map_err(|e| failed(&top, e))?;
        let within = DirHandle::open_path(&top).map_err(|e| failed(&top, e))?;
        if creates_folder {
            match within.create_folder(&dir_name) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&dir, e)),
                _ => {}
            }
        }
        let folder = within.open_folder(&dir_name).map_err(|e| refused(&dir, e))?;
        let location =
            Self { folder, path: path.to_owned(), real: top.join(dir_name).join(&name), name };
        for suffix in FILES {
            let metadata = location.folder.metadata(&location.file_name(suffix));
            if metadata.is_ok_and(|it| it.is_link()) {
                return Err(LineageError::SymbolicLink { path: with_suffix(path, suffix) });
            }
        }
        Ok(location)
    }

    /// Returns the path for SQLite.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Returns the size of the database in bytes; `None` when there is none.
    pub(super) fn bytes(&self) -> Result<Option<u64>, LineageError> {
        match self.folder.metadata(&self.name) {
            Ok(it) => Ok(Some(it.stamp.size)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(&self.path, e)),
        }
    }

    /// Creates an empty file, which is an empty database, if there is none, and makes it private. SQLite
    /// gives `-wal` and `-shm` the mode of this file.
    pub(super) fn create_file(&self) -> Result<(), LineageError> {
        let file = self.open("", OFlags::WRONLY | OFlags::CREATE)?;
        let at = |e| failed(&self.path, e);
        if file.metadata().map_err(at)?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(at)?;
        }
        Ok(())
    }

    /// Returns whether the file with this suffix exists; the empty suffix is the database.
    pub(super) fn exists(&self, suffix: &str) -> bool {
        self.folder.metadata(&self.file_name(suffix)).is_ok()
    }

    /// Reads a note beside the database.
    pub(super) fn read(&self, suffix: &str) -> Option<String> {
        let mut text = String::new();
        self.open(suffix, OFlags::RDONLY).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Writes a note beside the database and syncs it.
    pub(super) fn write(&self, suffix: &str, text: &str) -> Result<(), LineageError> {
        let mut file = self.open(suffix, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| self.folder.sync()).map_err(|e| self.failed(suffix, e))
    }

    /// Renames a file, if it exists, and syncs the folder.
    pub(super) fn rename(&self, suffix: &str, to: &str) -> Result<(), LineageError> {
        let (from, to) = (self.file_name(suffix), self.file_name(to));
        match self.folder.rename(&from, &self.folder, &to, RenameFlags::empty()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.failed(suffix, e)),
            _ => self.folder.sync().map_err(|e| self.failed(suffix, e)),
        }
    }

    /// Removes a note and syncs the folder.
    pub(super) fn remove(&self, suffix: &str) -> Result<(), LineageError> {
        let removed = self.folder.remove(&self.file_name(suffix));
        removed.and_then(|()| self.folder.sync()).map_err(|e| self.failed(suffix, e))
    }

    fn open(&self, suffix: &str, flags: OFlags) -> Result<File, LineageError> {
        let path = with_suffix(&self.path, suffix);
        self.folder.open(&self.file_name(suffix), flags).map_err(|e| refused(&path, e))
    }

    fn file_name(&self, suffix: &str) -> String {
        format!("{}{suffix}", self.name)
    }

    fn failed(&self, suffix: &str, source: io::Error) -> LineageError {
        failed(&with_suffix(&self.path, suffix), source)
    }
}

fn failed(path: &Path, source: io::Error) -> LineageError {
    LineageError::File { path: path.to_owned(), source }
}

fn refused(path: &Path, source: io::Error) -> LineageError {
    if is_link(&source) {
        return LineageError::SymbolicLink { path: path.to_owned() };
    }
    failed(path, source)
}
