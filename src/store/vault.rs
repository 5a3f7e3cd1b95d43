//! The files of a root: the only code that reads and writes them.
//!
//! # What a crash can and cannot do
//!
//! A generated file is replaced whole: temporary file in the same folder, fsync, compare with what
//! stands there, exchange the two names, fsync of the folder, read back. After a crash at any
//! point the old or the new bytes stand under the name, never a part of either; a temporary file
//! may be left, which the next run removes. That the change is recorded is the journal's concern
//! ([`super::lineage`]), not this module's.
//!
//! # What is not followed
//!
//! Only regular files are read and only without following a symbolic link in the last step; a
//! link, a pipe, a device, or a folder under the name of a log is reported and left alone.

use std::{
    collections::{BTreeSet, HashMap},
    fs::{self, File, OpenOptions},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{
        LazyLock,
        atomic::{AtomicU64, Ordering},
    },
};

use chrono::Datelike as _;
use rustix::fs::{CWD, OFlags, RenameFlags};

use super::{
    failpoint,
    inventory::{Inventory, LogFile, Problem, Stamp, SummaryFile},
    layout::{self, Layout, Name},
    lock::WriteLock,
};
use crate::memory::{
    address::Stem,
    decision::Decisions,
    hash::ContentHash,
    log::DailyLog,
    period::{Grain, Period},
    typed::{TypedError, TypedMemory},
};

/// A log larger than this is reported and left alone: nobody writes that much in a day by hand,
/// and a fold must fit into memory.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Where a copy of what a crash left is kept, in the private folder.
pub const REPLACED_DIR: &str = "replaced";

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried: `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is something else than a regular file under the name.
    #[error("`{}` is {what}; it is left alone", path.display())]
    NotAFile {
        /// The name.
        path: PathBuf,
        /// `a symbolic link`, `a folder`, …
        what: &'static str,
    },
    /// The file is larger than [`FILE_BYTES_MAX`].
    #[error("`{}` is larger than {} MiB; split it", path.display(), FILE_BYTES_MAX / 1024 / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are no UTF-8.
    #[error("`{}` is not UTF-8 at byte {at}; save it as UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte.
        at: usize,
    },
    /// The file changed between reading and writing.
    #[error("`{}` was changed by somebody else meanwhile; it will be read again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// What was read back is not what was written.
    #[error("`{}` does not hold what was just written to it; check the disk", path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
    },
}

impl VaultError {
    /// Returns whether nothing stands under the name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether a write was refused, as opposed to a file that cannot be read.
    pub fn is_write(&self) -> bool {
        matches!(self, Self::NotWritten { .. })
            || matches!(self, Self::Io { action, .. } if *action != "read")
    }
}

/// The bytes of a file, and what tells that they changed.
#[derive(Clone, Debug)]
pub struct Found {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// Taken from the descriptor that the bytes were read from.
    pub stamp: Stamp,
}

/// What is known of a file from an earlier scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The stamp that it had.
    pub stamp: Stamp,
    /// Its hash then.
    pub hash: ContentHash,
}

/// A scan: the inventory, and what to remember for the next one.
#[derive(Debug, Default)]
pub struct Scan {
    /// What stands there.
    pub inventory: Inventory,
    /// Logs that had to be read, by path.
    pub read: Vec<(String, Seen)>,
}

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
enum Like {
    /// Who could read the one that it replaces, else who may read its folder.
    Neighbours,
    /// Its owner.
    Private,
}

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

/// The files of one root.
#[derive(Clone, Debug)]
pub struct Vault {
    layout: Layout,
}

impl Vault {
    /// Looks at the root described by `layout`.
    pub fn new(layout: Layout) -> Self {
        Self { layout }
    }

    /// Returns where the files stand.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

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

    /// Looks at all files of the root.
    ///
    /// Files whose stamp equals the one in `seen` are not read again. A file that cannot be read
    /// becomes a problem of the inventory, so that one bad file stops nothing.
    ///
    /// # Errors
    ///
    /// Returns an error only when the memory folder itself cannot be listed.
    pub fn scan(&self, seen: &HashMap<String, Seen>) -> Result<Scan, VaultError> {
        let mut scan = Scan::default();
        self.scan_memory(seen, &mut scan)?;
        // After the logs, so that one that is moved meanwhile is found there at the latest.
        self.scan_archive(seen, &mut scan);
        for grain in [Grain::Week, Grain::Month] {
            self.scan_summaries(grain, &mut scan.inventory)?;
        }
        let inventory = &mut scan.inventory;
        inventory.index = self.text_or_problem(&self.layout.index(), &mut inventory.problems);
        inventory.wisdom = self.text_or_problem(&self.layout.wisdom(), &mut inventory.problems);
        let decisions = self.text_or_problem(&self.layout.decisions(), &mut inventory.problems);
        if let Some(text) = decisions {
            inventory.decisions = Decisions::parse(&text);
        }
        inventory.problems.sort();
        Ok(scan)
    }

    fn scan_memory(&self, seen: &HashMap<String, Seen>, scan: &mut Scan) -> Result<(), VaultError> {
        let Scan { inventory, read } = scan;
        for name in self.names_in(self.layout.memory_dir(), &mut inventory.problems)? {
            let path = self.layout.typed(&name);
            match layout::classify(&name) {
                Name::Log(stem) => match self.look_at_log(&path, seen) {
                    Ok((found, fresh)) => {
                        if fresh {
                            read.push((path.clone(), found));
                        }
                        let Seen { stamp, hash } = found;
                        inventory.logs.insert(stem, LogFile { path, stamp, hash });
                    }
                    // It went away since the folder was listed: into the archive, or for good.
                    Err(error) if error.is_missing() => {}
                    Err(error) => inventory.problems.push(problem(path, &error)),
                },
                Name::Typed(_) => {
                    let Some(text) = self.text_or_problem(&path, &mut inventory.problems) else {
                        continue;
                    };
                    match TypedMemory::parse(Path::new(&name), &text) {
                        Ok(memory) => inventory.memories.push(memory),
                        Err(TypedError::NotTyped) => {}
                        Err(error) => inventory.problems.push(problem(path, &error)),
                    }
                }
                Name::NearMiss(reason) => {
                    inventory.problems.push(Problem { path, reason: reason.to_owned() });
                }
                Name::Other => {}
            }
        }
        Ok(())
    }

    /// Looks at the archived logs. What of the archive cannot be listed becomes a problem.
    fn scan_archive(&self, seen: &HashMap<String, Seen>, scan: &mut Scan) {
        let Scan { inventory, read } = scan;
        let archive = self.layout.archive_dir();
        for year in self.names_or_problem(&archive, &mut inventory.problems) {
            let dir = format!("{archive}/{year}");
            if !layout::is_year(&year) {
                if matches!(layout::classify(&year), Name::Log(_)) {
                    let reason = format!("belongs in the folder of its year, {archive}/YYYY/");
                    inventory.problems.push(Problem { path: dir, reason });
                }
                continue;
            }
            for name in self.names_or_problem(&dir, &mut inventory.problems) {
                let path = format!("{dir}/{name}");
                let stem = match layout::classify(&name) {
                    Name::Log(stem) => stem,
                    Name::NearMiss(reason) => {
                        inventory.problems.push(Problem { path, reason: reason.to_owned() });
                        continue;
                    }
                    Name::Typed(_) | Name::Other => continue,
                };
                if self.layout.archived(&stem).as_ref() != Some(&path) {
                    let reason = format!("belongs in {archive}/{}/", stem.date().year());
                    inventory.problems.push(Problem { path, reason });
                    continue;
                }
                let live = inventory.logs.remove(&stem);
                match self.look_at_log(&path, seen) {
                    Ok((found, fresh)) => {
                        if fresh {
                            read.push((path.clone(), found));
                        }
                        let Seen { stamp, hash } = found;
                        let file = LogFile { path, stamp, hash };
                        // One that is gone from there by now is the one that was found here.
                        if let Some(live) = live.filter(|it| self.is_taken(&it.path)) {
                            inventory.problems.push(late_problem(&live, &file));
                            inventory.late.insert(stem.clone(), live);
                        }
                        inventory.archived.insert(stem.clone());
                        inventory.logs.insert(stem, file);
                    }
                    // It went back among the others: lines of that day came late.
                    Err(error) if error.is_missing() => {
                        inventory.logs.extend(live.map(|it| (stem, it)));
                    }
                    // Neither counts: what came late is not all of the day.
                    Err(error) => inventory.problems.push(problem(path, &error)),
                }
            }
        }
    }

    /// Lists a folder like [`Self::names_in`]; one that cannot be listed is a problem and is empty.
    fn names_or_problem(&self, dir: &str, problems: &mut Vec<Problem>) -> Vec<String> {
        self.names_in(dir, problems).unwrap_or_else(|error| {
            problems.push(problem(dir.to_owned(), &error));
            Vec::new()
        })
    }

    /// Returns the hash of a log, and whether it had to be read for that.
    fn look_at_log(
        &self,
        path: &str,
        seen: &HashMap<String, Seen>,
    ) -> Result<(Seen, bool), VaultError> {
        let full = self.layout.full(path);
        let meta = fs::symlink_metadata(&full).map_err(|e| io_error("read", &full, e))?;
        if let Some(known) = seen.get(path).filter(|it| meta.is_file() && it.stamp == stamp(&meta))
        {
            return Ok((*known, false));
        }
        let found = read_regular(&full)?
            .ok_or_else(|| io_error("read", &full, io::ErrorKind::NotFound.into()))?;
        if let Err(e) = std::str::from_utf8(&found.bytes) {
            return Err(VaultError::NotUtf8 { path: path.into(), at: e.valid_up_to() });
        }
        Ok((Seen { stamp: found.stamp, hash: ContentHash::of(&found.bytes) }, true))
    }

    fn scan_summaries(&self, grain: Grain, inventory: &mut Inventory) -> Result<(), VaultError> {
        let dir = self.layout.summary_dir(grain);
        for name in self.names_in(&dir, &mut inventory.problems)? {
            let period = name.strip_suffix(".md").and_then(|stem| stem.parse::<Period>().ok());
            let Some(period) = period.filter(|it| it.grain() == grain) else {
                if Path::new(&name).extension().is_some_and(|it| it == "md") {
                    let reason = format!(
                        "not the name of a {} (expected one like {})",
                        if grain == Grain::Week { "week" } else { "month" },
                        if grain == Grain::Week { "2026-W14.md" } else { "2026-04.md" },
                    );
                    inventory.problems.push(Problem { path: format!("{dir}/{name}"), reason });
                }
                continue;
            };
            let path = self.layout.summary(period);
            let Some(text) = self.text_or_problem(&path, &mut inventory.problems) else { continue };
            let file = match SummaryFile::of(path.clone(), period, &text) {
                Ok(file) => file,
                Err(error) => {
                    inventory.problems.push(problem(path, &error));
                    continue;
                }
            };
            if grain == Grain::Week { &mut inventory.weekly } else { &mut inventory.monthly }
                .insert(period, file);
        }
        Ok(())
    }

    /// Lists a folder, sorted; a missing one is empty. Names that are not UTF-8 become problems.
    fn names_in(
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

    fn text_or_problem(&self, path: &str, problems: &mut Vec<Problem>) -> Option<String> {
        self.read_text(path).unwrap_or_else(|error| {
            problems.push(problem(path.to_owned(), &error));
            None
        })
    }

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

    fn stage_like(
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

    /// Appends to a file of lines and returns after fsync; creates it with `head` when there is none.
    ///
    /// A crash leaves a new file whole or not there. On a full disk nothing is added, where the file
    /// system can say so beforehand.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError`] when the bytes are not known to be on disk.
    pub fn append(
        &self,
        lock: &WriteLock,
        target: &str,
        head: &str,
        text: &str,
        private: bool,
    ) -> Result<(), VaultError> {
        let full = self.layout.full(target);
        let existing = loop {
            if let Some(found) = read_regular(&full)? {
                break found;
            }
            let bytes = format!("{head}{text}");
            let like = if private { Like::Private } else { Like::Neighbours };
            let staged = self.stage_like(target, &Self::new_temp_name(), bytes.as_bytes(), like)?;
            match self.place(lock, staged, None) {
                // An agent was faster to begin the day.
                Err(VaultError::Changed { .. }) => {}
                result => return result,
            }
        };
        let failed = |e: io::Error| io_error("write", &full, e);
        let mut file = OpenOptions::new()
            .append(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(&full)
            .map_err(failed)?;
        let mut bytes = Vec::new();
        // A text without a final newline must not swallow the first new line.
        if !existing.bytes.is_empty() && !existing.bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(text.as_bytes());
        failpoint::at("vault.append.reserve").map_err(failed)?;
        reserve(&file, existing.stamp.size, bytes.len() as u64).map_err(failed)?;
        failpoint::at("vault.append.write").map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        failpoint::at("vault.append.sync").map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    /// Makes the private folder, closed to others.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be made.
    pub fn create_private_dir(&self) -> Result<(), VaultError> {
        let dir = self.layout.private_dir();
        fs::create_dir_all(&dir)
            .and_then(|()| fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)))
            .map_err(|e| io_error("write", &dir, e))
    }

    /// Keeps a copy of what nobody knows the name of, under its hash in the private folder, and
    /// returns the copy's path.
    fn keep_copy(&self, target: &str, bytes: &[u8]) -> Result<PathBuf, VaultError> {
        self.create_private_dir()?;
        let dir = self.layout.private_dir().join(REPLACED_DIR);
        let name = target.rsplit_once('/').map_or(target, |(_, name)| name);
        let path = dir.join(format!("{}-{name}", ContentHash::of(bytes).hex16()));
        let keep = || -> io::Result<()> {
            fs::create_dir_all(&dir)?;
            fs::set_permissions(&dir, fs::Permissions::from_mode(0o700))?;
            let mut file = File::create(&path)?;
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
            file.write_all(bytes)?;
            failpoint::at("vault.keep.written")?;
            file.sync_all()?;
            failpoint::at("vault.keep.synced")
        };
        keep().map_err(|e| io_error("write", &path, e))?;
        sync_dir(&dir)?;
        Ok(path)
    }

    /// Writes a file of the private folder whole: after a crash the old or the new text stands there.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when the text is not known to be on disk.
    pub fn write_private(&self, relative: &str, text: &str) -> Result<(), VaultError> {
        self.create_private_dir()?;
        let full = self.layout.full(relative);
        let temp = full.with_extension("new");
        let write = || -> io::Result<()> {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&temp)?;
            failpoint::at("vault.private.write")?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            failpoint::at("vault.private.rename")?;
            fs::rename(&temp, &full)
        };
        write().map_err(|e| io_error("write", &full, e))?;
        sync_dir(&self.layout.private_dir())
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

    /// Removes a file of the private folder for good, with what a crash left of its writing. One that
    /// is gone is removed.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when it cannot be removed.
    pub fn remove_private(&self, relative: &str) -> Result<(), VaultError> {
        let full = self.layout.full(relative);
        let mut removed = false;
        for path in [full.with_extension("new"), full] {
            match fs::remove_file(&path) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(|e| io_error("remove", &path, e))?,
            }
            removed = true;
        }
        let dir = self.layout.full(relative);
        let dir = dir.parent().unwrap_or(self.layout.root());
        if removed { sync_dir(dir) } else { Ok(()) }
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

    /// Lists the copies that [`Self::sweep`] kept, by name.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when the folder cannot be listed.
    pub fn kept_copies(&self) -> Result<Vec<String>, VaultError> {
        self.names_in(&format!("{}/{REPLACED_DIR}", layout::PRIVATE_DIR), &mut Vec::new())
    }

    /// Makes a folder and those above it, with the mode of the first one that exists.
    fn create_dir(&self, dir: &Path) -> Result<(), VaultError> {
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

    /// Clears away temporary files that a crash left behind, and returns how many. They are kept in
    /// the private folder, since one may hold what a person had just written.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when one cannot be removed.
    pub fn sweep(&self, _lock: &WriteLock) -> Result<usize, VaultError> {
        let left = self.temporary()?;
        for name in &left {
            let path = self.layout.full(name);
            if let Some(found) = read_regular(&path)? {
                self.keep_copy(name, &found.bytes)?;
                let failed = |e| io_error("remove", &path, e);
                failpoint::at("vault.sweep.kept").map_err(failed)?;
                fs::remove_file(&path).map_err(failed)?;
                failpoint::at("vault.sweep.removed").map_err(failed)?;
            }
        }
        Ok(left.len())
    }

    /// Lists the temporary files, relative to the root: what is being written, or what a crash left.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Io`] when a folder cannot be listed.
    pub fn temporary(&self) -> Result<BTreeSet<String>, VaultError> {
        let mut dirs = vec![
            String::new(),
            self.layout.memory_dir().to_owned(),
            self.layout.summary_dir(Grain::Week),
            self.layout.summary_dir(Grain::Month),
        ];
        // What cannot be listed there is a problem that the scan names.
        let archive = self.layout.archive_dir();
        let years = self.names_or_problem(&archive, &mut Vec::new());
        let years = years.iter().filter(|it| layout::is_year(it));
        let years = years.map(|it| format!("{archive}/{it}"));
        dirs.extend(years.filter(|it| self.layout.full(it).is_dir()));
        let mut found = BTreeSet::new();
        for dir in dirs {
            let names = self.names_in(&dir, &mut Vec::new())?;
            let names = names.into_iter().filter(|it| it.starts_with(layout::TEMP_PREFIX));
            found.extend(names.map(|name| match dir.as_str() {
                "" => name,
                dir => format!("{dir}/{name}"),
            }));
        }
        Ok(found)
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

/// Says that a day stands in two places.
fn late_problem(live: &LogFile, archived: &LogFile) -> Problem {
    let reason = if live.hash == archived.hash {
        format!("also stands as {}; the next run leaves only that one", archived.path)
    } else {
        format!(
            "written after the log of that day was archived as {}; the next run joins the two",
            archived.path
        )
    };
    Problem { path: live.path.clone(), reason }
}

fn problem(path: String, error: &dyn std::error::Error) -> Problem {
    let mut reason = error.to_string();
    if let Some(source) = error.source() {
        reason = format!("{reason}: {source}");
    }
    Problem { path, reason }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> VaultError {
    VaultError::Io { action, path: path.to_owned(), source }
}

fn stamp(meta: &fs::Metadata) -> Stamp {
    Stamp {
        inode: meta.ino(),
        size: meta.size(),
        mtime_ns: meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()),
    }
}

/// Reads a regular file through one descriptor, without following a link and without blocking.
fn read_regular(path: &Path) -> Result<Option<Found>, VaultError> {
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

/// Gives a new file the mode and owner of the one it replaces, else those that fit its folder.
fn follow_mode(file: &File, replaced: &Path, dir: &Path) -> io::Result<()> {
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

/// Makes sure that so many bytes find room behind the end of a file: a write that stops in the middle
/// leaves half an entry, which cannot be taken back while others may append too.
fn reserve(file: &File, end: u64, bytes: u64) -> io::Result<()> {
    use rustix::{fs::FallocateFlags, io::Errno};
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes) {
        // This file system cannot say beforehand.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result.map_err(Into::into),
    }
}

/// Renames with flags, or plainly on a file system that knows no flags: the caller has compared
/// what stands there just before, under the write lock.
fn rename_with(from: &Path, to: &Path, flags: RenameFlags) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, flags) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(from, to),
        result => result.map_err(Into::into),
    }
}

fn sync_dir(dir: &Path) -> Result<(), VaultError> {
    File::open(dir).and_then(|it| it.sync_all()).map_err(|e| io_error("write", dir, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault() -> (tempfile::TempDir, Vault) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("memory")).unwrap();
        (dir, Vault::new(Layout::new(root, "memory")))
    }

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

    fn put(vault: &Vault, path: &str, bytes: &[u8]) {
        let full = vault.layout().full(path);
        let mut file = File::create(full).unwrap();
        file.write_all(bytes).unwrap();
    }

    fn names(vault: &Vault, dir: &str) -> Vec<String> {
        vault.names_in(dir, &mut Vec::new()).unwrap()
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

    #[test]
    fn odd_files_are_reported_and_left_alone() {
        let (_dir, vault) = vault();
        put(&vault, "memory/2026-04-01.md", b"fine\n");
        put(&vault, "memory/2026-04-02.md", b"caf\xe9\n");
        put(&vault, "secret", b"key");
        let at = |name: &str| vault.layout().full(&format!("memory/{name}"));
        std::os::unix::fs::symlink(vault.layout().full("secret"), at("2026-04-03.md")).unwrap();
        fs::create_dir(at("2026-04-04.md")).unwrap();
        rustix::fs::mknodat(CWD, at("2026-04-05.md"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        put(&vault, "memory/2026-02-30.md", b"no such day");
        let scan = vault.scan(&HashMap::new()).unwrap();
        let logs: Vec<_> = scan.inventory.logs.keys().map(Stem::as_str).collect();
        assert_eq!(logs, ["2026-04-01"]);
        let problems: Vec<_> = scan.inventory.problems.iter().map(|it| &it.path[..]).collect();
        assert_eq!(
            problems,
            [
                "memory/2026-02-30.md",
                "memory/2026-04-02.md",
                "memory/2026-04-03.md",
                "memory/2026-04-04.md",
                "memory/2026-04-05.md"
            ]
        );
    }

    #[test]
    fn an_unchanged_log_is_not_read_again() {
        let (_dir, vault) = vault();
        put(&vault, "memory/2026-04-01.md", b"a\n");
        let first = vault.scan(&HashMap::new()).unwrap();
        assert_eq!(first.read.len(), 1);
        let seen: HashMap<_, _> = first.read.into_iter().collect();
        assert!(vault.scan(&seen).unwrap().read.is_empty());
        put(&vault, "memory/2026-04-01.md", b"bb\n");
        assert_eq!(vault.scan(&seen).unwrap().read.len(), 1);
    }

    #[test]
    fn appending_keeps_what_stands_and_ends_lines() {
        let (_dir, vault) = vault();
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        vault.append(&lock, "memory/2026-04-01.md", "# 2026-04-01\n\n", "- one\n", false).unwrap();
        put(&vault, "memory/2026-04-02.md", b"no newline");
        vault.append(&lock, "memory/2026-04-02.md", "# head\n", "- two\n", false).unwrap();
        assert_eq!(
            vault.read_text("memory/2026-04-01.md").unwrap().unwrap(),
            "# 2026-04-01\n\n- one\n"
        );
        assert_eq!(
            vault.read_text("memory/2026-04-02.md").unwrap().unwrap(),
            "no newline\n- two\n"
        );
    }

    #[test]
    fn what_a_crash_left_is_swept() {
        let (_dir, vault) = vault();
        let staged =
            vault.stage("memory/weekly/2026-W14.md", ".memoird-tmp-1", b"half done").unwrap();
        std::mem::forget(staged);
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        assert_eq!(vault.sweep(&lock).unwrap(), 1);
        assert!(names(&vault, "memory/weekly").is_empty());
    }
}
