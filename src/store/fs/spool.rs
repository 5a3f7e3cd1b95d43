//! Notes that hooks leave for whoever does the work, outside of all roots.
//!
//! A hook has some milliseconds and must not fail, so it writes one small file and returns. A note is
//! whole or not there; it is not synced to the disk, which may take longer than a hook has: it outlives
//! any process, and a power cut takes the session with it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// A note is larger than this only if no hook wrote it.
pub const NOTE_BYTES_MAX: u64 = 1024 * 1024;
/// So many notes are looked at in one go.
const NOTES_MAX: usize = 10_000;

const NOTE_EXTENSION: &str = ".json";
const LOCK_FILE: &str = "lock";
const FAILED_DIR: &str = "failed";

/// The folder of the notes.
#[derive(Clone, Debug)]
pub struct Spool {
    dir: PathBuf,
}

/// The right to work on the notes. Dropped, it is given back.
#[derive(Debug)]
pub struct SpoolLock {
    _file: File,
}

impl Spool {
    /// Names the folder below the user's state.
    pub fn new(state_home: &Path) -> Self {
        Self { dir: state_home.join("memoird").join("spool") }
    }

    /// Leaves a note. Those of one writer keep their order by `at`, a time as digits.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn add(&self, at: &str, text: &str) -> io::Result<()> {
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

    /// Returns the names of the notes, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns what the system says; a folder that is not there has none.
    pub fn names(&self) -> io::Result<Vec<String>> {
        Self::names_in(&self.dir)
    }

    /// Returns the names of the notes that were put aside, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns what the system says; a folder that is not there has none.
    pub fn failed_names(&self) -> io::Result<Vec<String>> {
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
    /// # Errors
    ///
    /// Returns what the system says, also of one that is no small file of text.
    pub fn read(&self, name: &str) -> io::Result<String> {
        Self::read_in(&self.dir, name)
    }

    /// Reads a note that was put aside.
    ///
    /// # Errors
    ///
    /// Like [`Self::read`].
    pub fn read_failed(&self, name: &str) -> io::Result<String> {
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

    /// Puts other words into a note, whole.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix(".").tempfile_in(&self.dir)?;
        temp.write_all(text.as_bytes())?;
        temp.persist(self.dir.join(name)).map(drop).map_err(|e| e.error)
    }

    /// Takes a note away: its work is done.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.dir.join(name))
    }

    /// Puts a note aside, for a person to look at.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn mark_failed(&self, name: &str) -> io::Result<()> {
        let aside = self.dir.join(FAILED_DIR);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&aside)?;
        fs::rename(self.dir.join(name), aside.join(name))
    }

    /// Puts a note that was put aside back among the others, with other words.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn retry(&self, name: &str, text: &str) -> io::Result<()> {
        self.replace(name, text)?;
        fs::remove_file(self.dir.join(FAILED_DIR).join(name))
    }

    /// Waits for the right to work on the notes; `None` where another has it and `waits` is not asked.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn lock(&self, waits: bool) -> io::Result<Option<SpoolLock>> {
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
    fn notes_are_whole_private_and_in_order() {
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
