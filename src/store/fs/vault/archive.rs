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
    /// Where it stands, relative to the root.
    pub from: String,
    /// Where it is to stand.
    pub to: String,
    /// The name of a temporary file beside `to`, for a copy.
    pub temp: String,
    /// The hash that it must have.
    pub hash: ContentHash,
}

/// How a log got into the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveMethod {
    /// It took another name.
    Renamed,
    /// It was copied, since the archive is on another file system: it stands in both places.
    Copied,
}

impl Vault {
    /// Moves logs into the archive, each only as it was looked at, and reads them back there.
    ///
    /// The order is one in which no crash loses a byte: the bytes have their name in the archive,
    /// synced, before anybody removes them elsewhere. Where a rename does not reach, a copy is made,
    /// and the log that was copied stands until it is removed with [`Self::remove`].
    ///
    /// Each move ends by itself: [`VaultError::Changed`] says that the log, or the name in the
    /// archive, is not as it was; then it stands where it stood.
    pub fn archive(
        &self,
        _lock: &WriteLock,
        moves: &[ArchiveMove],
    ) -> Vec<Result<MoveMethod, VaultError>> {
        let mut ends: Vec<_> = moves.iter().map(|it| self.move_log(it)).collect();
        let synced = self.sync_moves(moves);
        for (it, end) in moves.iter().zip(&mut ends) {
            if let Ok(moved) = *end {
                let ended = match &synced {
                    Ok(()) => self.verify_move(it, moved),
                    Err((dir, e)) => {
                        let code = e.raw_os_error().map(io::Error::from_raw_os_error);
                        Err(io_error("write", dir, code.unwrap_or_else(|| e.kind().into())))
                    }
                };
                if let Err(error) = ended {
                    *end = Err(error);
                }
            }
        }
        ends
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
            // Another file system, or one that might replace what stands there.
            Err((Some(Errno::XDEV | Errno::INVAL | Errno::NOSYS), _)) => {
                self.copy_log(it, &found, (&from, from_name), (&to, to_name))?;
                Ok(MoveMethod::Copied)
            }
            Err((_, e)) => Err(failed(e)),
        }
    }

    /// Copies a log, with mode, owner, and time.
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
            // Nobody but us puts files there, and we hold the lock.
            if to.metadata(to_name).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            to.rename_within(&it.temp, to_name, RenameFlags::NOREPLACE)
        };
        copy().map_err(|e| {
            // What cannot be removed now is swept by the next run.
            drop(to.remove(&it.temp));
            if e.kind() == io::ErrorKind::AlreadyExists {
                VaultError::Changed { path: it.to.clone().into() }
            } else {
                folder_error("move", &self.layout.full(&it.from), e)
            }
        })
    }

    /// Syncs the folders that logs moved into, and then those that they left.
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

    /// Reads a log where it was moved to. One that was written to in the moment of the move goes
    /// back.
    fn verify_move(&self, it: &ArchiveMove, moved: MoveMethod) -> Result<(), VaultError> {
        let full = self.layout.full(&it.to);
        failpoint::at("archive.read_back").map_err(|e| io_error("read", &full, e))?;
        let (to, to_name) = self.open_parent("read", &it.to)?;
        let back = read_in(&to, to_name, &full)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(it.hash) {
            return Ok(());
        }
        match moved {
            MoveMethod::Renamed => {
                let (from, from_name) = self.open_parent("move", &it.from)?;
                // Where a new log of that day stands by now, the two are joined later.
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
