//! Where a database stands: in a folder of the root, and no link leads there.
//!
//! SQLite opens by path. So the folder is opened first as all folders of a root are
//! ([`crate::store::fs::rooted_dir`]), what stands there under the names of the database is looked at, and
//! SQLite gets the path without any link and is told to follow none. The way to the root is its
//! owner's affair.

use std::{
    fs::{File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{OFlags, RenameFlags};

use super::LineageError;
use crate::store::fs::rooted_dir::{DirHandle, is_link};

/// What SQLite writes beside a database, by the end of the name, and the database itself last: it
/// gets another name after them, since a write-ahead log that stayed would be played into the next.
pub(super) const FILES: [&str; 3] = ["-shm", "-wal", ""];

/// A place for a database, its folder held open.
#[derive(Debug)]
pub(super) struct DatabaseLocation {
    folder: DirHandle,
    /// As it was asked for.
    path: PathBuf,
    /// Without a link.
    real: PathBuf,
    name: String,
}

impl DatabaseLocation {
    /// Finds a place; `None` when there is no such folder.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Link`] for a link, and what the system says.
    pub(super) fn find(path: &Path) -> Result<Option<Self>, LineageError> {
        match Self::resolve(path, false) {
            Err(LineageError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            found => found.map(Some),
        }
    }

    /// Finds a place, and makes its folder if need be, closed to others.
    ///
    /// # Errors
    ///
    /// Like [`Self::find`].
    pub(super) fn create(path: &Path) -> Result<Self, LineageError> {
        Self::resolve(path, true)
    }

    fn resolve(path: &Path, make: bool) -> Result<Self, LineageError> {
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
        if make {
            match within.create_folder(&dir_name) {
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(failed(&dir, e)),
                _ => {}
            }
        }
        let folder = within.open_folder(&dir_name).map_err(|e| refused(&dir, e))?;
        let place =
            Self { folder, path: path.to_owned(), real: top.join(dir_name).join(&name), name };
        for suffix in FILES {
            let look = place.folder.metadata(&place.file_name(suffix));
            if look.is_ok_and(|it| it.is_link()) {
                return Err(LineageError::SymbolicLink { path: with_suffix(path, suffix) });
            }
        }
        Ok(place)
    }

    /// Returns the path for SQLite.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Returns how many bytes the database has; `None` when there is none.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub(super) fn bytes(&self) -> Result<Option<u64>, LineageError> {
        match self.folder.metadata(&self.name) {
            Ok(look) => Ok(Some(look.stamp.size)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(failed(&self.path, e)),
        }
    }

    /// Makes an empty file, which is an empty database, if there is none, and takes it from the eyes
    /// of others. SQLite gives `-wal` and `-shm` the mode of this file.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub(super) fn create_file(&self) -> Result<(), LineageError> {
        let file = self.open("", OFlags::WRONLY | OFlags::CREATE)?;
        let at = |e| failed(&self.path, e);
        if file.metadata().map_err(at)?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(at)?;
        }
        Ok(())
    }

    /// Returns whether a file stands beside the database, or is it.
    pub(super) fn exists(&self, suffix: &str) -> bool {
        self.folder.metadata(&self.file_name(suffix)).is_ok()
    }

    /// Reads a note beside the database.
    pub(super) fn read(&self, suffix: &str) -> Option<String> {
        let mut text = String::new();
        self.open(suffix, OFlags::RDONLY).ok()?.read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Writes a note beside the database, and returns when it is on disk.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub(super) fn write(&self, suffix: &str, text: &str) -> Result<(), LineageError> {
        let mut file = self.open(suffix, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.and_then(|()| self.folder.sync()).map_err(|e| self.failed(suffix, e))
    }

    /// Gives a file that is there another name, and returns when that is on disk.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
    pub(super) fn rename(&self, suffix: &str, to: &str) -> Result<(), LineageError> {
        let (from, to) = (self.file_name(suffix), self.file_name(to));
        match self.folder.rename(&from, &self.folder, &to, RenameFlags::empty()) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(self.failed(suffix, e)),
            _ => self.folder.sync().map_err(|e| self.failed(suffix, e)),
        }
    }

    /// Takes a note away, and returns when that is on disk.
    ///
    /// # Errors
    ///
    /// Returns what the system says.
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

pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
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
