//! Moves logs into the archive.

use std::{
    collections::BTreeSet,
    fs,
    io::{self, Write as _},
    path::PathBuf,
};

use rustix::{
    fs::{OFlags, RenameFlags},
    io::Errno,
};

use super::{
    Vault, VaultError, folder_error, io_error,
    read::{FileContents, read_in},
    split_path,
    write::inherit_mode,
};
use crate::{
    memory::hash::ContentHash,
    store::{
        failpoint,
        fs::{lock::WriteLock, rooted_dir::DirHandle},
    },
};

/// A log to be moved into the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveMove {
    /// Its path, relative to the root.
    pub from: String,
    /// Its new path.
    pub to: String,
    /// The name of a temporary file beside `to`, for a copy.
    pub temp: String,
    /// The hash that it must have.
    pub hash: ContentHash,
}

/// How a log was moved into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveMethod {
    /// It was renamed.
    Renamed,
    /// It was copied, because the archive is on another file system; the original still exists.
    Copied,
}

impl Vault {
    /// Moves logs into the archive, each only if it has the expected hash, and reads them back there.
    ///
    /// No crash loses a byte: the bytes are in the archive, synced, before they are removed elsewhere. If the
    /// archive is on another file system, a log is copied, and the original stays until it is removed with
    /// [`Self::remove`].
    ///
    /// Each move has its own result. [`VaultError::Changed`] means that the log changed, or that its name in
    /// the archive is taken; then it was not moved.
    pub fn archive(
        &self,
        _lock: &WriteLock,
        moves: &[ArchiveMove],
    ) -> Vec<Result<MoveMethod, VaultError>> {
        let mut results: Vec<_> = moves.iter().map(|it| self.move_log(it)).collect();
        let synced = self.sync_moves(moves);
        for (it, result) in moves.iter().zip(&mut results) {
            if let Ok(method) = *result {
                let verified = match &synced {
                    Ok(()) => self.verify_move(it, method),
                    Err((dir, e)) => {
                        let code = e.raw_os_error().map(io::Error::from_raw_os_error);
                        Err(io_error("write", dir, code.unwrap_or_else(|| e.kind().into())))
                    }
                };
                if let Err(error) = verified {
                    *result = Err(error);
                }
            }
        }
        results
    }

    fn move_log(&self, it: &ArchiveMove) -> Result<MoveMethod, VaultError> {
        let full = self.layout.full(&it.from);
        let failed = |e: io::Error| io_error("move", &full, e);
        let changed = |path: &str| VaultError::Changed { path: path.into() };
        let found = self.read(&it.from)?.filter(|found| ContentHash::of(&found.bytes) == it.hash);
        let Some(found) = found else { return Err(changed(&it.from)) };
        let found = found.refuse_hard_link(&full)?;
        self.create_folder(split_path(&it.to).0)?;
        let (from, from_name) = self.open_parent("move", &it.from)?;
        let (to, to_name) = self.open_parent("move", &it.to)?;
        failpoint::at("archive.move").map_err(failed)?;
        let renamed = from.rename(from_name, &to, to_name, RenameFlags::NOREPLACE);
        match renamed.map_err(|e| (Errno::from_io_error(&e), e)) {
            Ok(()) => Ok(MoveMethod::Renamed),
            Err((Some(Errno::EXIST), _)) => Err(changed(&it.to)),
            // Another file system, or one on which the rename might replace a file.
            Err((Some(Errno::XDEV | Errno::INVAL | Errno::NOSYS), _)) => {
                self.copy_log(it, &found, (&from, from_name), (&to, to_name))?;
                Ok(MoveMethod::Copied)
            }
            Err((_, e)) => Err(failed(e)),
        }
    }

    /// Copies a log with its mode, owner, and time.
    fn copy_log(
        &self,
        it: &ArchiveMove,
        found: &FileContents,
        (from, from_name): (&DirHandle, &str),
        (to, to_name): (&DirHandle, &str),
    ) -> Result<(), VaultError> {
        let copy = || -> io::Result<()> {
            failpoint::at("archive.copy.create")?;
            let mut file = to.create(&it.temp)?;
            failpoint::at("archive.copy.write")?;
            file.write_all(&found.bytes)?;
            inherit_mode(&file, from.metadata(from_name).ok(), to)?;
            let modified = from.open(from_name, OFlags::RDONLY)?.metadata()?.modified()?;
            file.set_times(fs::FileTimes::new().set_modified(modified))?;
            failpoint::at("archive.copy.sync")?;
            file.sync_all()?;
            failpoint::at("archive.copy.rename")?;
            // Only memoird writes there, and we hold the lock.
            if to.metadata(to_name).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            to.rename_within(&it.temp, to_name, RenameFlags::NOREPLACE)
        };
        copy().map_err(|e| {
            // If this fails, the next run removes the file.
            drop(to.remove(&it.temp));
            if e.kind() == io::ErrorKind::AlreadyExists {
                VaultError::Changed { path: it.to.clone().into() }
            } else {
                folder_error("move", &self.layout.full(&it.from), e)
            }
        })
    }

    /// Syncs the target folders, then the source folders.
    fn sync_moves(&self, moves: &[ArchiveMove]) -> Result<(), (PathBuf, io::Error)> {
        let parents = |of: fn(&ArchiveMove) -> &String| -> BTreeSet<&str> {
            moves.iter().map(|it| split_path(of(it)).0).collect()
        };
        for dir in parents(|it| &it.to).into_iter().chain(parents(|it| &it.from)) {
            failpoint::at("archive.sync")
                .and_then(|()| self.dir.open_folder(dir)?.sync())
                .map_err(|e| (self.layout.full(dir), e))?;
        }
        Ok(())
    }

    /// Reads a moved log back. One that was written to during the move is moved back.
    fn verify_move(&self, it: &ArchiveMove, method: MoveMethod) -> Result<(), VaultError> {
        let full = self.layout.full(&it.to);
        failpoint::at("archive.read_back").map_err(|e| io_error("read", &full, e))?;
        let (to, to_name) = self.open_parent("read", &it.to)?;
        let back = read_in(&to, to_name, &full)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(it.hash) {
            return Ok(());
        }
        match method {
            MoveMethod::Renamed => {
                let (from, from_name) = self.open_parent("move", &it.from)?;
                // If a new log of that day exists by now, the two are joined later.
                match to.rename(to_name, &from, from_name, RenameFlags::NOREPLACE) {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                    result => result.map_err(|e| io_error("move", &full, e))?,
                }
                self.sync_moves(std::slice::from_ref(it))
                    .map_err(|(dir, e)| io_error("write", &dir, e))?;
                Err(VaultError::Changed { path: it.from.clone().into() })
            }
            MoveMethod::Copied => {
                to.remove(to_name).map_err(|e| io_error("remove", &full, e))?;
                Err(VaultError::ReadBackMismatch { path: it.to.clone().into() })
            }
        }
    }
}
