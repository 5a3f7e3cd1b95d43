//! Makes, replaces, and removes a file whole.

use std::{
    fs::{self, File, OpenOptions},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::{CWD, OFlags, RenameFlags};

use super::{Vault, VaultError, io_error, read::read_regular, sync_dir};
use crate::{
    memory::hash::ContentHash,
    store::{failpoint, layout, lock::WriteLock},
};

/// New bytes for a file, on disk under a temporary name.
///
/// Dropping it removes the temporary file.
#[derive(Debug)]
pub struct Staged {
    target: String,
    temp: PathBuf,
    hash: ContentHash,
    placed: bool,
}

/// Who may read a file that is made.
#[derive(Clone, Copy)]
pub(super) enum Like {
    /// Who could read the one that it replaces, else who may read its folder.
    Neighbours,
    /// Its owner.
    Private,
}

impl Vault {
    /// Returns the name of a temporary file that nobody uses: the journal names it before it is made.
    pub fn new_temp_name() -> String {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        // Two containers may give their processes the same number.
        static SALT: LazyLock<u64> = LazyLock::new(|| RandomState::new().build_hasher().finish());
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        format!("{}{:016x}-{number}", layout::TEMP_PREFIX, *SALT)
    }

    /// Returns the path of a temporary file beside `target`, relative to the root.
    pub fn temp_of(target: &str, temp: &str) -> String {
        match target.rsplit_once('/') {
            Some((dir, _)) => format!("{dir}/{temp}"),
            None => temp.to_owned(),
        }
    }

    /// Writes new bytes for `target` beside it, under the temporary name `temp`, and syncs them.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`]; nothing stays behind.
    pub fn stage(&self, target: &str, temp: &str, bytes: &[u8]) -> Result<Staged, VaultError> {
        self.stage_like(target, temp, bytes, Like::Neighbours)
    }

    pub(super) fn stage_like(
        &self,
        target: &str,
        temp: &str,
        bytes: &[u8],
        like: Like,
    ) -> Result<Staged, VaultError> {
        let full = self.layout.full(target);
        let dir = full.parent().unwrap_or(self.layout.root());
        self.create_dir(dir)?;
        let temp = dir.join(temp);
        let failed = |e| io_error("write", &full, e);
        failpoint::at("vault.stage.create").map_err(failed)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&temp)
            .map_err(failed)?;
        // From here on the file is ours, and goes when this is dropped.
        let staged =
            Staged { target: target.to_owned(), temp, hash: ContentHash::of(bytes), placed: false };
        let mut write = || -> io::Result<()> {
            failpoint::at("vault.stage.write")?;
            file.write_all(bytes)?;
            failpoint::at("vault.stage.written")?;
            if matches!(like, Like::Neighbours) {
                follow_mode(&file, &full, dir)?;
            }
            failpoint::at("vault.stage.sync")?;
            file.sync_all()
        };
        write().map_err(failed)?;
        Ok(staged)
    }

    /// Puts staged bytes under their name, if the file still has the hash `expected` (`None`: if
    /// there is no file), and reads them back.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Changed`] when something else stands there; it is not touched.
    pub fn place(
        &self,
        _lock: &WriteLock,
        mut staged: Staged,
        expected: Option<ContentHash>,
    ) -> Result<(), VaultError> {
        let full = self.layout.full(&staged.target);
        let failed = |e: io::Error| io_error("write", &full, e);
        let changed = || VaultError::Changed { path: staged.target.clone().into() };
        let current = read_regular(&full)?.map(|it| ContentHash::of(it.bytes));
        if current != expected {
            return Err(changed());
        }
        failpoint::at("vault.place.rename").map_err(failed)?;
        match expected {
            None => match rename_with(&staged.temp, &full, RenameFlags::NOREPLACE) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(changed()),
                result => result.map_err(failed)?,
            },
            Some(old) => {
                rename_with(&staged.temp, &full, RenameFlags::EXCHANGE).map_err(failed)?;
                // From here on the temporary name may hold somebody's text.
                staged.placed = true;
                failpoint::at("vault.place.verify").map_err(failed)?;
                // What came out under the temporary name is what stood there at that instant.
                if let Some(out) = read_regular(&staged.temp)? {
                    if ContentHash::of(&out.bytes) != old {
                        rename_with(&staged.temp, &full, RenameFlags::EXCHANGE).map_err(failed)?;
                        // Should they have written again meanwhile, that lies there now and is kept.
                        let ours = read_regular(&staged.temp)?
                            .is_some_and(|it| ContentHash::of(it.bytes) == staged.hash);
                        staged.placed = !ours;
                        return Err(changed());
                    }
                    failpoint::at("vault.place.unlink").map_err(failed)?;
                    fs::remove_file(&staged.temp).map_err(failed)?;
                }
            }
        }
        staged.placed = true;
        failpoint::at("vault.place.sync").map_err(failed)?;
        sync_dir(full.parent().unwrap_or(self.layout.root()))?;
        failpoint::at("vault.place.read_back").map_err(failed)?;
        let back = read_regular(&full)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(staged.hash) {
            Ok(())
        } else {
            Err(VaultError::NotWritten { path: staged.target.clone().into() })
        }
    }

    /// Replaces the record of decisions, if it still says `expected`. It is no generated file: the
    /// history keeps none of it.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Changed`] when somebody else changed it; it is not touched.
    pub fn replace_decisions(
        &self,
        lock: &WriteLock,
        expected: &str,
        text: &str,
    ) -> Result<(), VaultError> {
        let staged =
            self.stage(&self.layout.decisions(), &Self::new_temp_name(), text.as_bytes())?;
        self.place(lock, staged, Some(ContentHash::of(expected)))
    }

    /// Removes a file, if it still has the hash `expected`. It passes through the temporary name
    /// `temp`, so that what is removed is what was looked at. A file that is gone is removed.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Changed`] when something else stands there; it is not touched.
    pub fn remove(
        &self,
        _lock: &WriteLock,
        target: &str,
        temp: &str,
        expected: ContentHash,
    ) -> Result<(), VaultError> {
        let full = self.layout.full(target);
        let temp = self.layout.full(&Self::temp_of(target, temp));
        let failed = |e: io::Error| io_error("remove", &full, e);
        let changed = || VaultError::Changed { path: target.into() };
        let hash = |path: &Path| -> Result<Option<ContentHash>, VaultError> {
            Ok(read_regular(path)?.map(|it| ContentHash::of(it.bytes)))
        };
        match hash(&full)? {
            None => return Ok(()),
            Some(found) if found != expected => return Err(changed()),
            Some(_) => {}
        }
        failpoint::at("vault.remove.rename").map_err(failed)?;
        rename_with(&full, &temp, RenameFlags::NOREPLACE).map_err(failed)?;
        if hash(&temp)? != Some(expected) {
            // Should a new file stand there by now, this one waits under its temporary name.
            rename_with(&temp, &full, RenameFlags::NOREPLACE).map_err(failed)?;
            return Err(changed());
        }
        failpoint::at("vault.remove.unlink").map_err(failed)?;
        fs::remove_file(&temp).map_err(failed)?;
        failpoint::at("vault.remove.sync").map_err(failed)?;
        sync_dir(full.parent().unwrap_or(self.layout.root()))
    }

    /// Finishes what a crash cut off: `temp`, which was to take the name `target` or had just lost
    /// it, and of which nothing has to be kept, is removed.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be removed.
    pub fn drop_temp(&self, _lock: &WriteLock, target: &str, temp: &str) -> Result<(), VaultError> {
        let full = self.layout.full(&Self::temp_of(target, temp));
        match fs::remove_file(&full) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &full, e)),
            _ => Ok(()),
        }
    }

    /// Gives what stands under a temporary name its name back: it is what somebody else wrote in the
    /// very moment in which a crash cut a replacement off. What stands under the name is ours.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be renamed.
    pub fn put_back(&self, _lock: &WriteLock, target: &str, temp: &str) -> Result<(), VaultError> {
        let full = self.layout.full(target);
        let temp = self.layout.full(&Self::temp_of(target, temp));
        let flags = if full.symlink_metadata().is_ok() {
            RenameFlags::EXCHANGE
        } else {
            RenameFlags::NOREPLACE
        };
        rename_with(&temp, &full, flags).map_err(|e| io_error("write", &full, e))?;
        sync_dir(full.parent().unwrap_or(self.layout.root()))
    }

    /// Makes a folder and those above it, with the mode of the first one that exists.
    pub(super) fn create_dir(&self, dir: &Path) -> Result<(), VaultError> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(parent) = dir.parent() {
            self.create_dir(parent)?;
        }
        let failed = |e| io_error("write", dir, e);
        match fs::create_dir(dir) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            result => result.map_err(failed)?,
        }
        failpoint::at("vault.folder.made").map_err(failed)?;
        let parent = dir.parent().unwrap_or(self.layout.root());
        let meta = fs::metadata(parent).map_err(failed)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(meta.mode() & 0o777))
            .map_err(failed)?;
        sync_dir(parent)
    }
}

impl Staged {
    /// Returns the hash of the new bytes.
    pub fn hash(&self) -> ContentHash {
        self.hash
    }

    /// Returns the path that the bytes are for, relative to the root.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the name of the temporary file.
    pub fn temp_name(&self) -> String {
        self.temp.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.placed {
            // What cannot be removed now is swept by the next run.
            drop(fs::remove_file(&self.temp));
        }
    }
}

/// Writes a file that is no memory (settings, a unit for systemd) whole: after a crash the old or
/// the new text stands there. The folders above it are made, a link is followed, and a file that is
/// replaced keeps its mode and owner.
///
/// # Errors
///
/// Returns [`VaultError::Io`] when the text is not known to be on disk.
pub fn write_settings(path: &Path, text: &str) -> Result<(), VaultError> {
    // A configuration is often a link into a repository that its owner keeps.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let dir = path.parent().unwrap_or(Path::new("/"));
    let write = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut temp = tempfile::Builder::new().prefix(layout::TEMP_PREFIX).tempfile_in(dir)?;
        temp.write_all(text.as_bytes())?;
        follow_mode(temp.as_file(), &path, dir)?;
        temp.as_file().sync_all()?;
        temp.persist(&path).map_err(|e| e.error)?;
        Ok(())
    };
    write().map_err(|e| io_error("write", &path, e))?;
    sync_dir(dir)
}

/// Gives a new file the mode and owner of the one it replaces, else those that fit its folder.
pub(super) fn follow_mode(file: &File, replaced: &Path, dir: &Path) -> io::Result<()> {
    let (like, mask) = match fs::symlink_metadata(replaced) {
        Ok(meta) if meta.is_file() => (meta, 0o777),
        _ => (fs::metadata(dir)?, 0o666),
    };
    file.set_permissions(fs::Permissions::from_mode(like.mode() & mask))?;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        // Only root may give files away; for anybody else the file stays the writer's.
        drop(std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid())));
    }
    Ok(())
}

/// Renames with flags, or plainly on a file system that knows no flags: the caller has compared
/// what stands there just before, under the write lock.
pub(super) fn rename_with(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, flags) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        result => result.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{names, put, vault},
        *,
    };

    fn write(
        vault: &Vault,
        target: &str,
        bytes: &[u8],
        expected: Option<&[u8]>,
    ) -> Result<(), VaultError> {
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let staged = vault.stage(target, &Vault::new_temp_name(), bytes)?;
        vault.place(&lock, staged, expected.map(ContentHash::of))
    }

    #[test]
    fn a_file_is_made_replaced_and_left_clean() {
        let (_dir, vault) = vault();
        write(&vault, "memory/weekly/2026-W14.md", b"one", None).unwrap();
        let full = vault.layout().full("memory/weekly/2026-W14.md");
        fs::set_permissions(&full, fs::Permissions::from_mode(0o640)).unwrap();
        write(&vault, "memory/weekly/2026-W14.md", b"two", Some(b"one")).unwrap();
        assert_eq!(fs::read(&full).unwrap(), b"two");
        assert_eq!(fs::metadata(&full).unwrap().mode() & 0o777, 0o640);
        assert_eq!(names(&vault, "memory/weekly"), ["2026-W14.md"]);
    }

    #[test]
    fn a_file_that_changed_meanwhile_is_not_touched() {
        let (_dir, vault) = vault();
        put(&vault, "WISDOM.md", b"theirs");
        for expected in [None, Some(&b"older"[..])] {
            let error = write(&vault, "WISDOM.md", b"ours", expected).unwrap_err();
            assert!(matches!(error, VaultError::Changed { .. }), "{error}");
        }
        assert_eq!(vault.read("WISDOM.md").unwrap().unwrap().bytes, b"theirs");
        assert!(names(&vault, "").iter().all(|it| !it.starts_with(layout::TEMP_PREFIX)));
        let gone = write(&vault, "MEMORY.md", b"ours", Some(b"was here")).unwrap_err();
        assert!(matches!(gone, VaultError::Changed { .. }), "{gone}");
    }
}
