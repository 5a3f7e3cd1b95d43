//! Moves logs into the archive.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, OFlags, RenameFlags};

use super::{
    Vault, VaultError, io_error,
    read::read_regular,
    write::{follow_mode, rename_with},
};
use crate::{
    memory::hash::ContentHash,
    store::{failpoint, lock::WriteLock},
};

/// A log to be moved into the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
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
pub enum Moved {
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
    pub fn archive(&self, _lock: &WriteLock, moves: &[Move]) -> Vec<Result<Moved, VaultError>> {
        let mut ends: Vec<_> = moves.iter().map(|it| self.move_log(it)).collect();
        let synced = self.sync_moves(moves);
        for (it, end) in moves.iter().zip(&mut ends) {
            if let Ok(moved) = *end {
                let ended = match &synced {
                    Ok(()) => self.read_back(it, moved),
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

    fn move_log(&self, it: &Move) -> Result<Moved, VaultError> {
        let (from, to) = (self.layout.full(&it.from), self.layout.full(&it.to));
        let failed = |e: io::Error| io_error("move", &from, e);
        let changed = |path: &str| VaultError::Changed { path: path.into() };
        let found = read_regular(&from)?.filter(|found| ContentHash::of(&found.bytes) == it.hash);
        let Some(found) = found else { return Err(changed(&it.from)) };
        self.create_dir(to.parent().unwrap_or(self.layout.root()))?;
        failpoint::at("archive.move").map_err(failed)?;
        match rustix::fs::renameat_with(CWD, &from, CWD, &to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Moved::Renamed),
            Err(rustix::io::Errno::EXIST) => Err(changed(&it.to)),
            // Another file system, or one that might replace what stands there.
            Err(rustix::io::Errno::XDEV | rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
                self.copy_log(it, &found.bytes).map(|()| Moved::Copied)
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// Copies a log, with mode, owner, and time.
    fn copy_log(&self, it: &Move, bytes: &[u8]) -> Result<(), VaultError> {
        let (from, to) = (self.layout.full(&it.from), self.layout.full(&it.to));
        let dir = to.parent().unwrap_or(self.layout.root());
        let temp = dir.join(&it.temp);
        let copy = || -> io::Result<()> {
            failpoint::at("archive.copy.create")?;
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&temp)?;
            failpoint::at("archive.copy.write")?;
            file.write_all(bytes)?;
            follow_mode(&file, &from, dir)?;
            let modified = fs::symlink_metadata(&from)?.modified()?;
            file.set_times(fs::FileTimes::new().set_modified(modified))?;
            failpoint::at("archive.copy.sync")?;
            file.sync_all()?;
            failpoint::at("archive.copy.rename")?;
            // Nobody but us puts files there, and we hold the lock.
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            rename_with(&temp, &to, RenameFlags::NOREPLACE)
        };
        copy().map_err(|e| {
            // What cannot be removed now is swept by the next run.
            drop(fs::remove_file(&temp));
            if e.kind() == io::ErrorKind::AlreadyExists {
                VaultError::Changed { path: it.to.clone().into() }
            } else {
                io_error("move", &from, e)
            }
        })
    }

    /// Syncs the folders that logs moved into, and then those that they left.
    fn sync_moves(&self, moves: &[Move]) -> Result<(), (PathBuf, io::Error)> {
        let parents = |of: fn(&Move) -> &String| -> BTreeSet<PathBuf> {
            let full = moves.iter().map(|it| self.layout.full(of(it)));
            full.filter_map(|it| it.parent().map(Path::to_owned)).collect()
        };
        for dir in parents(|it| &it.to).into_iter().chain(parents(|it| &it.from)) {
            failpoint::at("archive.sync")
                .and_then(|()| File::open(&dir)?.sync_all())
                .map_err(|e| (dir, e))?;
        }
        Ok(())
    }

    /// Reads a log where it was moved to. One that was written to in the moment of the move goes
    /// back.
    fn read_back(&self, it: &Move, moved: Moved) -> Result<(), VaultError> {
        let (from, to) = (self.layout.full(&it.from), self.layout.full(&it.to));
        failpoint::at("archive.read_back").map_err(|e| io_error("read", &to, e))?;
        let back = read_regular(&to)?.map(|it| ContentHash::of(it.bytes));
        if back == Some(it.hash) {
            return Ok(());
        }
        match moved {
            Moved::Renamed => {
                // Where a new log of that day stands by now, the two are joined later.
                match rustix::fs::renameat_with(CWD, &to, CWD, &from, RenameFlags::NOREPLACE) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(errno) => return Err(io_error("move", &to, errno.into())),
                }
                self.sync_moves(std::slice::from_ref(it))
                    .map_err(|(dir, e)| io_error("write", &dir, e))?;
                Err(VaultError::Changed { path: it.from.clone().into() })
            }
            Moved::Copied => {
                fs::remove_file(&to).map_err(|e| io_error("remove", &to, e))?;
                Err(VaultError::NotWritten { path: it.to.clone().into() })
            }
        }
    }
}
