//! Creates, replaces, and removes files atomically.

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

use super::{
    Vault, VaultError, folder_error,
    hidden_files::{FilePair, hidden_temp, read_pair, remove_record},
    io_error,
    read::read_in,
    split_path,
};
use crate::{
    memory::{hash::ContentHash, joined},
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
    /// The hash of all bytes.
    hash: ContentHash,
    /// The hash of those for the visible file.
    visible: ContentHash,
    /// Whether a hidden file is staged too.
    has_record: bool,
    placed: bool,
    dir: Arc<RootedDir>,
}

/// Who may read a new file.
#[derive(Clone, Copy)]
pub(super) enum NewFileAccess {
    /// The readers of the file it replaces, or else of its folder.
    Inherited,
    /// Only its owner.
    OwnerOnly,
}

impl Vault {
    /// Returns an unused name for a temporary file: the journal names it before it is created.
    pub fn new_temp_name() -> String {
        static COUNTER: AtomicU64 = AtomicU64::new(0);
        // Process ids may be equal in two containers.
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
    /// Returns [`VaultError::Io`]; then nothing is left behind.
    pub(crate) fn stage(
        &self,
        target: &str,
        temp: &str,
        bytes: &[u8],
    ) -> Result<StagedFile, VaultError> {
        self.stage_with(target, temp, bytes, NewFileAccess::Inherited)
    }

    pub(super) fn stage_with(
        &self,
        target: &str,
        temp: &str,
        bytes: &[u8],
        access: NewFileAccess,
    ) -> Result<StagedFile, VaultError> {
        let full = self.layout.full(target);
        let (dir, name) = split_path(target);
        self.create_folder(dir)?;
        let folder = self.open_folder("write", dir)?;
        let failed = |e| folder_error("write", &full, e);
        let hidden = self.hidden_name(target);
        let end = hidden.as_ref().map_or(bytes.len(), |_| joined::visible_len(bytes));
        let record = bytes.get(end + 1..).filter(|it| !it.is_empty());
        let mut file = create_temp(&folder, temp).map_err(failed)?;
        // From here on the file is ours, and is removed on drop.
        let mut staged = StagedFile {
            target: target.to_owned(),
            temp: temp.to_owned(),
            hash: ContentHash::of(bytes),
            visible: ContentHash::of(&bytes[..end]),
            has_record: false,
            placed: false,
            dir: Arc::clone(&self.dir),
        };
        write_temp(&folder, name, &mut file, &bytes[..end], access).map_err(failed)?;
        if let Some(record) = record {
            let mut file = create_temp(&folder, &hidden_temp(temp)).map_err(failed)?;
            staged.has_record = true;
            write_temp(&folder, name, &mut file, record, access).map_err(failed)?;
        }
        Ok(staged)
    }

    /// Moves staged bytes to their name, if the file still has the hash `expected` (`None`: if it does not
    /// exist), and reads them back. The hidden file follows; if only that changes, the visible one stays.
    ///
    /// Returns [`VaultError::Changed`] if the file has other bytes; it is not touched.
    pub(crate) fn publish(
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
        let hidden = self.hidden_name(&staged.target);
        let current = read_pair(&folder, name, hidden.as_deref(), &full)?;
        if current.as_ref().map(FilePair::hash) != expected {
            return Err(changed());
        }
        failpoint::at("vault.place.rename").map_err(failed)?;
        let mut ours = folder.metadata(&temp).map_err(failed)?.stamp;
        match current.map(|it| (ContentHash::of(&it.visible.bytes), it.visible.stamp)) {
            Some((old, stamp)) if hidden.is_some() && old == staged.visible => {
                ours = stamp;
                folder.remove(&temp).map_err(failed)?;
            }
            None => match folder.rename_within(&temp, name, RenameFlags::NOREPLACE) {
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(changed()),
                result => result.map_err(failed)?,
            },
            Some((old, _)) => {
                folder.rename_within(&temp, name, RenameFlags::EXCHANGE).map_err(failed)?;
                // From here on the temporary name may hold a person's text, which must not be removed.
                staged.placed = true;
                failpoint::at("vault.place.verify").map_err(failed)?;
                // The temporary name now holds the bytes that were replaced at that instant.
                if let Some(replaced) = hash(&temp)? {
                    if replaced != old {
                        folder.rename_within(&temp, name, RenameFlags::EXCHANGE).map_err(failed)?;
                        // If they wrote again meanwhile, the temporary name holds that text, and it stays.
                        staged.placed = hash(&temp)? != Some(staged.visible);
                        if staged.has_record {
                            folder.remove(&hidden_temp(&temp)).map_err(failed)?;
                            staged.has_record = false;
                        }
                        return Err(changed());
                    }
                    failpoint::at("vault.place.unlink").map_err(failed)?;
                    folder.remove(&temp).map_err(failed)?;
                }
            }
        }
        staged.placed = true;
        if let Some(hidden) = &hidden {
            failpoint::at("vault.record.place").map_err(failed)?;
            if staged.has_record {
                let placed =
                    folder.rename_within(&hidden_temp(&temp), hidden, RenameFlags::empty());
                placed.map_err(failed)?;
            } else {
                remove_record(&folder, hidden).map_err(failed)?;
            }
        }
        failpoint::at("vault.place.sync").map_err(failed)?;
        folder.sync().map_err(failed)?;
        failpoint::at("vault.place.read_back").map_err(failed)?;
        // By its path, because somebody may have replaced this folder by another one.
        let back = self.read(&staged.target)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(staged.hash) {
            Ok(())
        } else if folder.metadata(name).map_or(true, |it| it.stamp != ours) {
            // Somebody replaced or wrote the file before it was read back.
            Err(changed())
        } else {
            Err(VaultError::ReadBackMismatch { path: staged.target.clone().into() })
        }
    }

    /// Replaces the record of decisions, if its text is still `expected`. It is no generated file, so the
    /// history does not contain it.
    ///
    /// Returns [`VaultError::Changed`] if somebody changed it; it is not touched.
    pub(crate) fn replace_decisions(
        &self,
        lock: &WriteLock,
        expected: &str,
        text: &str,
    ) -> Result<(), VaultError> {
        let staged =
            self.stage(&self.layout.decisions(), &Self::new_temp_name(), text.as_bytes())?;
        self.publish(lock, staged, Some(ContentHash::of(expected)))
    }

    /// Removes a file, if it still has the hash `expected`. It is first renamed to `temp`, so that exactly the
    /// bytes that were checked are removed. Succeeds if the file is already gone.
    ///
    /// Returns [`VaultError::Changed`] if the file has other bytes; it is not touched.
    pub(crate) fn remove(
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
        let hidden = self.hidden_name(target);
        let visible = match read_pair(&folder, name, hidden.as_deref(), &full)? {
            None => return Ok(()),
            Some(found) if found.hash() != expected => return Err(changed()),
            Some(found) => ContentHash::of(&found.visible.bytes),
        };
        failpoint::at("vault.remove.rename").map_err(failed)?;
        folder.rename_within(name, temp, RenameFlags::NOREPLACE).map_err(failed)?;
        if hash(temp)? != Some(visible) {
            // If a new file exists by now, this one stays under its temporary name.
            folder.rename_within(temp, name, RenameFlags::NOREPLACE).map_err(failed)?;
            return Err(changed());
        }
        failpoint::at("vault.remove.unlink").map_err(failed)?;
        folder.remove(temp).map_err(failed)?;
        if let Some(hidden) = hidden {
            remove_record(&folder, &hidden).map_err(failed)?;
        }
        failpoint::at("vault.remove.sync").map_err(failed)?;
        folder.sync().map_err(failed)
    }

    /// Removes the temporary file `temp` of `target` that a crash left, if its bytes are not needed, and that of
    /// its hidden file.
    pub(crate) fn remove_temp(
        &self,
        lock: &WriteLock,
        target: &str,
        temp: &str,
    ) -> Result<(), VaultError> {
        self.remove_visible_temp(lock, target, temp)?;
        self.remove_visible_temp(lock, target, &hidden_temp(temp))
    }

    /// Like [`Self::remove_temp`], but leaves the temporary file of the hidden one.
    pub(crate) fn remove_visible_temp(
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

    /// Moves the temporary file `temp` back to `target`: somebody wrote it just when a crash interrupted a
    /// replacement, and the file under the name is ours.
    pub(crate) fn restore_temp(
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

    /// Syncs a file, if it exists, and the folders on its path: the process that wrote it may have died before
    /// it did, or its sync may have failed.
    ///
    /// Returns [`VaultError::Io`] if the sync fails; then the file may be lost.
    pub(crate) fn sync_file(&self, _lock: &WriteLock, target: &str) -> Result<(), VaultError> {
        let failed = |e| io_error("write", &self.layout.full(target), e);
        let (mut dir, name) = split_path(target);
        match self.open_folder("write", dir) {
            Ok(folder) => {
                for name in std::iter::once(name.to_owned()).chain(self.hidden_name(target)) {
                    if folder.metadata(&name).is_ok_and(|it| it.is_file()) {
                        failpoint::at("vault.settle.file").map_err(failed)?;
                        let file = folder.open(&name, OFlags::RDONLY).map_err(failed)?;
                        file.sync_all().map_err(failed)?;
                    }
                }
            }
            Err(error) if !error.is_missing() => return Err(error),
            _ => {}
        }
        failpoint::at("vault.settle.folder").map_err(failed)?;
        // The folders may be as new as the file.
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

    /// Creates a folder and its parents, with the mode of the first one that exists.
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

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.placed {
            // If this fails, the next run removes the file.
            let Ok(folder) = self.dir.open_folder(split_path(&self.target).0) else { return };
            drop(folder.remove(&self.temp));
            if self.has_record {
                drop(folder.remove(&hidden_temp(&self.temp)));
            }
        }
    }
}

pub(super) fn create_temp(folder: &DirHandle, temp: &str) -> io::Result<File> {
    failpoint::at("vault.stage.create")?;
    folder.create(temp)
}

/// Writes and syncs a new temporary file, with the readers of the file `name`.
pub(super) fn write_temp(
    folder: &DirHandle,
    name: &str,
    file: &mut File,
    bytes: &[u8],
    access: NewFileAccess,
) -> io::Result<()> {
    failpoint::at("vault.stage.write")?;
    file.write_all(bytes)?;
    failpoint::at("vault.stage.written")?;
    if matches!(access, NewFileAccess::Inherited) {
        inherit_mode(file, folder.metadata(name).ok(), folder)?;
    }
    failpoint::at("vault.stage.sync")?;
    file.sync_all()
}

/// Gives a new file the mode and owner of the one it replaces, or those of its folder.
pub(super) fn inherit_mode(
    file: &File,
    replaced: Option<EntryMetadata>,
    folder: &DirHandle,
) -> io::Result<()> {
    let (like, mask) = match replaced {
        Some(metadata) if metadata.is_file() => (metadata, 0o777),
        _ => (folder.own_metadata()?, 0o666),
    };
    file.set_permissions(fs::Permissions::from_mode(like.mode & mask))?;
    let own = EntryMetadata::from(&file.metadata()?);
    if (own.uid, own.gid) != (like.uid, like.gid) {
        // Only root may change the owner; for other users the file stays their own.
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
    fn a_file_is_created_and_replaced_without_leftovers() {
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
    fn a_changed_file_is_not_replaced() {
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
