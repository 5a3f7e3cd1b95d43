//! Reads one file, and lists a folder.

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
};

use rustix::fs::OFlags;

use super::{FILE_BYTES_MAX, Vault, VaultError, io_error};
use crate::{
    memory::{address::Stem, log::DailyLog},
    store::{
        inventory::{Problem, Stamp},
        layout,
    },
};

/// The bytes of a file, and what tells that they changed.
#[derive(Clone, Debug)]
pub struct Found {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Taken from the descriptor that the bytes were read from.
    pub stamp: Stamp,
}

impl Vault {
    /// Reads a file, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// Returns an error for anything but a regular file of at most [`FILE_BYTES_MAX`].
    pub fn read(&self, relative: &str) -> Result<Option<Found>, VaultError> {
        let path = self.layout.full(relative);
        read_regular(&path)
    }

    /// Reads a file as text, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// Like [`Self::read`], and for bytes that are not UTF-8.
    pub fn read_text(&self, relative: &str) -> Result<Option<String>, VaultError> {
        let Some(found) = self.read(relative)? else { return Ok(None) };
        let text = String::from_utf8(found.bytes).map_err(|e| VaultError::NotUtf8 {
            path: relative.into(),
            at: e.utf8_error().valid_up_to(),
        })?;
        Ok(Some(text))
    }

    /// Returns whether anything stands under a name: a file, a folder, a link.
    pub fn is_taken(&self, relative: &str) -> bool {
        fs::symlink_metadata(self.layout.full(relative)).is_ok()
    }

    /// Returns where a log stands, or would stand: in the archive if it was moved there.
    pub fn log_path(&self, stem: &Stem) -> String {
        let archived = self.layout.archived(stem).filter(|it| self.is_taken(it));
        archived.unwrap_or_else(|| self.layout.source(stem))
    }

    /// Returns where the file stands that a path names: a log may have moved into the archive since
    /// somebody wrote its path down.
    pub fn standing(&self, relative: &str) -> String {
        let log = self.layout.stem_at(relative).filter(|_| !self.is_taken(relative));
        log.map_or_else(|| relative.to_owned(), |stem| self.log_path(&stem))
    }

    /// Reads and decodes a log or a session record, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// Like [`Self::read`], and for bytes that are not UTF-8.
    pub fn read_log(&self, stem: &Stem) -> Result<Option<DailyLog>, VaultError> {
        let archived = self.layout.archived(stem);
        let places = archived.iter().cloned().chain([self.layout.source(stem)]);
        // One that is moved between two looks is found by the third.
        for path in places.chain(archived.iter().cloned()) {
            let Some(found) = self.read(&path)? else { continue };
            let log = DailyLog::parse(stem.clone(), &found.bytes)
                .map_err(|e| VaultError::NotUtf8 { path: path.into(), at: e.at })?;
            return Ok(Some(log));
        }
        Ok(None)
    }

    /// Lists a folder, sorted; a missing one is empty. Names that are not UTF-8 become problems.
    pub(super) fn names_in(
        &self,
        relative: &str,
        problems: &mut Vec<Problem>,
    ) -> Result<Vec<String>, VaultError> {
        let dir = self.layout.full(relative);
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(io_error("read", &dir, e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            match entry.map_err(|e| io_error("read", &dir, e))?.file_name().into_string() {
                Ok(name) => names.push(name),
                Err(odd) => problems.push(Problem {
                    path: format!("{relative}/{}", odd.to_string_lossy()),
                    reason: "the name is not UTF-8; rename it".to_owned(),
                }),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Lists the regular files below a folder, relative to the root and sorted, but not those in
    /// `.memoird` (unless that is the folder) and not those of version control. At most `files_max`;
    /// the flag says whether there are more. What cannot be listed is passed over.
    pub fn files_below(&self, folder: &str, files_max: usize) -> (Vec<String>, bool) {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(self.layout.full(&folder)) else { continue };
            for entry in entries.flatten() {
                let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type())
                else {
                    continue;
                };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                if kind.is_dir() && !matches!(&path[..], layout::PRIVATE_DIR | ".git") {
                    folders.push(path);
                } else if kind.is_file() {
                    if found.len() == files_max {
                        found.sort_unstable();
                        return (found, true);
                    }
                    found.push(path);
                }
            }
        }
        found.sort_unstable();
        (found, false)
    }
}

/// Reads a regular file through one descriptor, without following a link and without blocking.
pub(super) fn read_regular(path: &Path) -> Result<Option<Found>, VaultError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let not_a_file = |what| VaultError::NotAFile { path: path.to_owned(), what };
    let mut file = match opened {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(not_a_file("a symbolic link"));
        }
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(not_a_file("a socket or a device"));
        }
        Err(e) => return Err(io_error("read", path, e)),
    };
    let meta = file.metadata().map_err(|e| io_error("read", path, e))?;
    if meta.is_dir() {
        return Err(not_a_file("a folder"));
    }
    if !meta.is_file() {
        return Err(not_a_file("no regular file"));
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(VaultError::TooLarge { path: path.to_owned() });
    }
    // One byte more than the limit tells that the file grew while it was read.
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 1);
    (&mut file)
        .take(FILE_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| io_error("read", path, e))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(VaultError::TooLarge { path: path.to_owned() });
    }
    Ok(Some(Found { bytes, stamp: stamp(&meta) }))
}

pub(super) fn stamp(meta: &fs::Metadata) -> Stamp {
    Stamp {
        inode: meta.ino(),
        size: meta.size(),
        mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
    }
}
