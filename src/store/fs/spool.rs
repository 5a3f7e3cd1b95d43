//! The spool: notes that hooks leave for the daemon, outside of all roots.
//!
//! A hook has only milliseconds and must not fail, so it writes one small file and returns. A note is complete
//! or absent. It is not synced, which may take longer than a hook has: it survives every process, and a power
//! cut ends the session too.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// No hook writes a larger note.
pub const NOTE_BYTES_MAX: u64 = 1024 * 1024;
/// How many notes are listed at once.
const NOTES_MAX: usize = 10_000;

const NOTE_EXTENSION: &str = ".json";
const LOCK_FILE: &str = "lock";
const FAILED_DIR: &str = "failed";

/// The folder of the notes.
#[derive(Clone, Debug)]
pub struct Spool {
    dir: PathBuf,
}

/// The exclusive right to process the notes. Released on drop.
#[derive(Debug)]
pub struct SpoolLock {
    _file: File,
}

impl Spool {
    /// Returns the spool in the user's state folder.
    pub fn new(state_home: &Path) -> Self {
        Self { dir: state_home.join("memoird").join("spool") }
    }

    /// Adds a note. Notes are ordered by `at`, a time as digits.
    pub(crate) fn add(&self, at: &str, text: &str) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let mut temp = tempfile::Builder::new().prefix(".").tempfile_in(&self.dir)?;
        temp.write_all(text.as_bytes())?;
        let id = std::process::id();
        for copy in 0_u32..100 {
            let name = self.dir.join(format!("{at}-{id}-{copy}{NOTE_EXTENSION}"));
            temp = match temp.persist_noclobber(name) {
                Ok(_) => return Ok(()),
                Err(e) if e.error.kind() == io::ErrorKind::AlreadyExists => e.file,
                Err(e) => return Err(e.error),
            };
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the names of the notes, the oldest first; none if the folder does not exist.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        Self::names_in(&self.dir)
    }

    /// Returns the names of the failed notes, the oldest first; none if the folder does not exist.
    pub(crate) fn failed_names(&self) -> io::Result<Vec<String>> {
        Self::names_in(&self.dir.join(FAILED_DIR))
    }

    fn names_in(dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.flatten().filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|it| it.ends_with(NOTE_EXTENSION) && !it.starts_with('.'))
            .take(NOTES_MAX)
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Reads a note.
    ///
    /// Returns the system's error, or an error for anything but a text file.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        Self::read_in(&self.dir, name)
    }

    /// Reads a failed note.
    pub(crate) fn read_failed(&self, name: &str) -> io::Result<String> {
        Self::read_in(&self.dir.join(FAILED_DIR), name)
    }

    fn read_in(dir: &Path, name: &str) -> io::Result<String> {
        let path = dir.join(name);
        if !fs::symlink_metadata(&path)?.is_file() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut text = String::new();
        File::open(path)?.take(NOTE_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces the text of a note.
    pub(crate) fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix(".").tempfile_in(&self.dir)?;
        temp.write_all(text.as_bytes())?;
        temp.persist(self.dir.join(name)).map(drop).map_err(|e| e.error)
    }

    /// Removes a note that was processed.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    /// Moves a note to the failed ones, for a person to look at.
    pub(crate) fn mark_failed(&self, name: &str) -> io::Result<()> {
        let failed = self.dir.join(FAILED_DIR);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&failed)?;
        fs::rename(self.dir.join(name), failed.join(name))
    }

    /// Removes a failed note.
    pub(crate) fn remove_failed(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(FAILED_DIR).join(name))
    }

    /// Moves a failed note back to the others, with a new text.
    pub(crate) fn retry(&self, name: &str, text: &str) -> io::Result<()> {
        self.replace(name, text)?;
        fs::remove_file(self.dir.join(FAILED_DIR).join(name))
    }

    /// Takes the lock; `None` if another process has it and `waits` is false.
    pub(crate) fn lock(&self, waits: bool) -> io::Result<Option<SpoolLock>> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.dir)?;
        let path = self.dir.join(LOCK_FILE);
        let file = File::options().create(true).append(true).open(path)?;
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        if waits {
            file.lock()?;
        } else {
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Ok(None),
                Err(fs::TryLockError::Error(e)) => return Err(e),
            }
        }
        Ok(Some(SpoolLock { _file: file }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_private_ordered_and_locked() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::new(home.path());
        assert_eq!(spool.names().unwrap(), Vec::<String>::new());
        for text in ["b", "c"] {
            spool.add("20260402", text).unwrap();
        }
        spool.add("20260401", "a").unwrap();
        let names = spool.names().unwrap();
        let texts: Vec<String> = names.iter().map(|it| spool.read(it).unwrap()).collect();
        assert_eq!(texts, ["a", "b", "c"]);
        let mode = fs::metadata(spool.dir.join(&names[0])).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        let lock = spool.lock(true).unwrap();
        assert!(lock.is_some() && spool.lock(false).unwrap().is_none());
        drop(lock);
        assert!(spool.lock(false).unwrap().is_some());
        spool.remove(&names[0]).unwrap();
        spool.mark_failed(&names[1]).unwrap();
        assert_eq!(spool.names().unwrap(), names[2..]);
        assert_eq!(spool.failed_names().unwrap(), names[1..2]);
        assert_eq!(spool.read_failed(&names[1]).unwrap(), "b");
        spool.retry(&names[1], "d").unwrap();
        assert_eq!(
            (spool.names().unwrap(), spool.failed_names().unwrap()),
            (names[1..].to_vec(), vec![])
        );
    }
}
