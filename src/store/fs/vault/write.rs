//! Makes, replaces, and removes a file whole.

use std::{
    fs::{self, File},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::fs::{OFlags, RenameFlags};

use super::{Vault, VaultError, folder_error, io_error, read::read_in, split_path};
use crate::{
    memory::hash::ContentHash,
    store::{
        failpoint,
        fs::{
            layout,
            lock::WriteLock,
            rooted_dir::{self, DirHandle, EntryMetadata, RootedDir},
        },
    },
};

/// New bytes for a file, on disk under a temporary name.
///
/// Dropping it removes the temporary file.
#[derive(Debug)]
pub struct StagedFile {
    target: String,
    temp: String,
    hash: ContentHash,
    placed: bool,
    dir: Arc<RootedDir>,
}

/// Who may read a file that is made.
#[derive(Clone, Copy)]
pub(super) enum NewFileAccess {
    /// Who could read the one that it replaces, else who may read its folder.
    Inherited,
    /// Its owner.
    OwnerOnly,
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
    pub fn temp_path(target: &str, temp: &str) -> String {
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
    pub fn stage(&self, target: &str, temp: &str, bytes: &[u8]) -> Result<StagedFile, VaultError> {
        self.stage_with(target, temp, bytes, NewFileAccess::Inherited)
    }

    pub(super) fn stage_with(
        &self,
        target: &str,
        temp: &str,
        bytes: &[u8],
        like: NewFileAccess,
    ) -> Result<StagedFile, VaultError> {
        let full = self.layout.full(target);
        let (dir, name) = split_path(target);
        self.create_folder(dir)?;
        let folder = self.open_folder("write", dir)?;
        let failed = |e| folder_error("write", &full, e);
        failpoint::at("vault.stage.create").map_err(failed)?;
        let mut file = folder.create(temp).map_err(failed)?;
        // From here on the file is ours, and goes when this is dropped.
        let staged = StagedFile {
            target: target.to_owned(),
            temp: temp.to_owned(),
            hash: ContentHash::of(bytes),
            placed: false,
            dir: Arc::clone(&self.dir),
        };
        let mut write = || -> io::Result<()> {
            failpoint::at("vault.stage.write")?;
            file.write_all(bytes)?;
            failpoint::at("vault.stage.written")?;
            if matches!(like, NewFileAccess::Inherited) {
                inherit_mode(&file, folder.metadata(name).ok(), &folder)?;
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
    pub fn publish(
        &self,
        _lock: &WriteLock,
        mut staged: StagedFile,
        expected: Option<ContentHash>,
    ) -> Result<(), VaultError> {
        let full = self.layout.full(&staged.target);
        let failed = |e: io::Error| io_error("write", &full, e);
        let changed = || VaultError::Changed { path: staged.target.clone().into() };
        let (folder, name) = self.open_parent("write", &staged.target)?;
        let temp = staged.temp.clone();
        let hash = |name: &str| -> Result<Option<ContentHash>, VaultError> {
            Ok(read_in(&folder, name, &full)?.map(|it| ContentHash::of(it.bytes)))
        };
        let current = hash(name)?;
        if current != expected {
            return Err(changed());
        }
        failpoint::at("vault.place.rename").map_err(failed)?;
        let ours = folder.metadata(&temp).map_err(failed)?.stamp;
        match expected {
            None => match folder.rename_within(&temp, name, RenameFlags::NOREPLACE) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(changed()),
                result => result.map_err(failed)?,
            },
            Some(old) => {
                folder.rename_within(&temp, name, RenameFlags::EXCHANGE).map_err(failed)?;
                // From here on the temporary name may hold somebody's text.
                staged.placed = true;
                failpoint::at("vault.place.verify").map_err(failed)?;
                // What came out under the temporary name is what stood there at that instant.
                if let Some(out) = hash(&temp)? {
                    if out != old {
                        folder.rename_within(&temp, name, RenameFlags::EXCHANGE).map_err(failed)?;
                        // Should they have written again meanwhile, that lies there now and is kept.
                        staged.placed = hash(&temp)? != Some(staged.hash);
                        return Err(changed());
                    }
                    failpoint::at("vault.place.unlink").map_err(failed)?;
                    folder.remove(&temp).map_err(failed)?;
                }
            }
        }
        staged.placed = true;
        failpoint::at("vault.place.sync").map_err(failed)?;
        folder.sync().map_err(failed)?;
        failpoint::at("vault.place.read_back").map_err(failed)?;
        // By its path: somebody may have put another folder in the place of this one.
        let back = self.read(&staged.target)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(staged.hash) {
            Ok(())
        } else if folder.metadata(name).map_or(true, |it| it.stamp != ours) {
            // It is another file, or was written since: somebody was faster than the reading.
            Err(changed())
        } else {
            Err(VaultError::ReadBackMismatch { path: staged.target.clone().into() })
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
        self.publish(lock, staged, Some(ContentHash::of(expected)))
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
        let failed = |e: io::Error| io_error("remove", &full, e);
        let changed = || VaultError::Changed { path: target.into() };
        let (folder, name) = match self.open_parent("remove", target) {
            Err(error) if error.is_missing() => return Ok(()),
            found => found?,
        };
        let hash = |name: &str| -> Result<Option<ContentHash>, VaultError> {
            Ok(read_in(&folder, name, &full)?.map(|it| ContentHash::of(it.bytes)))
        };
        match hash(name)? {
            None => return Ok(()),
            Some(found) if found != expected => return Err(changed()),
            Some(_) => {}
        }
        failpoint::at("vault.remove.rename").map_err(failed)?;
        folder.rename_within(name, temp, RenameFlags::NOREPLACE).map_err(failed)?;
        if hash(temp)? != Some(expected) {
            // Should a new file stand there by now, this one waits under its temporary name.
            folder.rename_within(temp, name, RenameFlags::NOREPLACE).map_err(failed)?;
            return Err(changed());
        }
        failpoint::at("vault.remove.unlink").map_err(failed)?;
        folder.remove(temp).map_err(failed)?;
        failpoint::at("vault.remove.sync").map_err(failed)?;
        folder.sync().map_err(failed)
    }

    /// Finishes what a crash cut off: `temp`, which was to take the name `target` or had just lost
    /// it, and of which nothing has to be kept, is removed.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be removed.
    pub fn remove_temp(
        &self,
        _lock: &WriteLock,
        target: &str,
        temp: &str,
    ) -> Result<(), VaultError> {
        let folder = match self.open_parent("remove", target) {
            Err(error) if error.is_missing() => return Ok(()),
            found => found?.0,
        };
        match folder.remove(temp) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                Err(io_error("remove", &self.layout.full(&Self::temp_path(target, temp)), e))
            }
            _ => Ok(()),
        }
    }

    /// Gives what stands under a temporary name its name back: it is what somebody else wrote in the
    /// very moment in which a crash cut a replacement off. What stands under the name is ours.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be renamed.
    pub fn restore_temp(
        &self,
        _lock: &WriteLock,
        target: &str,
        temp: &str,
    ) -> Result<(), VaultError> {
        let failed = |e| io_error("write", &self.layout.full(target), e);
        let (folder, name) = self.open_parent("write", target)?;
        let flags = if folder.metadata(name).is_ok() {
            RenameFlags::EXCHANGE
        } else {
            RenameFlags::NOREPLACE
        };
        folder.rename_within(temp, name, flags).map_err(failed)?;
        folder.sync().map_err(failed)
    }

    /// Has the disk take what stands under a name, and the names that lead to it: who wrote it may
    /// have died before, or was refused. Of what is gone that holds, too.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when the disk refuses; then what stands there may be lost.
    pub fn sync_file(&self, _lock: &WriteLock, target: &str) -> Result<(), VaultError> {
        let failed = |e| io_error("write", &self.layout.full(target), e);
        let (mut dir, name) = split_path(target);
        match self.open_folder("write", dir) {
            Ok(folder) if folder.metadata(name).is_ok_and(|it| it.is_file()) => {
                failpoint::at("vault.settle.file").map_err(failed)?;
                let file = folder.open(name, OFlags::RDONLY).map_err(failed)?;
                file.sync_all().map_err(failed)?;
            }
            Err(error) if !error.is_missing() => return Err(error),
            _ => {}
        }
        failpoint::at("vault.settle.folder").map_err(failed)?;
        // A folder that was made for it may be as new as the file.
        loop {
            match self.open_folder("write", dir) {
                Err(error) if error.is_missing() => {}
                folder => folder?.sync().map_err(failed)?,
            }
            if dir.is_empty() {
                return Ok(());
            }
            dir = split_path(dir).0;
        }
    }

    /// Makes a folder and those above it, with the mode of the first one that exists.
    pub(super) fn create_folder(&self, relative: &str) -> Result<(), VaultError> {
        let full = self.layout.full(relative);
        let failed = |e| folder_error("write", &full, e);
        match self.open_folder("write", relative) {
            Err(error) if error.is_missing() => {}
            found => return found.map(drop),
        }
        if relative.is_empty() {
            return rooted_dir::create_root(self.layout.root()).map_err(failed);
        }
        let (above, name) = split_path(relative);
        self.create_folder(above)?;
        let above = self.open_folder("write", above)?;
        match above.create_folder(name) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            result => result.map_err(failed)?,
        }
        failpoint::at("vault.folder.made").map_err(failed)?;
        let mode = above.own_metadata().map_err(failed)?.mode & 0o777;
        above.open_folder(name).and_then(|it| it.set_mode(mode)).map_err(failed)?;
        above.sync().map_err(failed)
    }
}

impl StagedFile {
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
        self.temp.clone()
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.placed {
            // What cannot be removed now is swept by the next run.
            let folder = self.dir.open_folder(split_path(&self.target).0);
            drop(folder.and_then(|it| it.remove(&self.temp)));
        }
    }
}

/// Gives a new file the mode and owner of the one it replaces, else those that fit its folder.
pub(super) fn inherit_mode(
    file: &File,
    replaced: Option<EntryMetadata>,
    folder: &DirHandle,
) -> io::Result<()> {
    let (like, mask) = match replaced {
        Some(look) if look.is_file() => (look, 0o777),
        _ => (folder.own_metadata()?, 0o666),
    };
    file.set_permissions(fs::Permissions::from_mode(like.mode & mask))?;
    let own = EntryMetadata::from(&file.metadata()?);
    if (own.uid, own.gid) != (like.uid, like.gid) {
        // Only root may give files away; for anybody else the file stays the writer's.
        drop(std::os::unix::fs::fchown(file, Some(like.uid), Some(like.gid)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

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
        vault.publish(&lock, staged, expected.map(ContentHash::of))
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
