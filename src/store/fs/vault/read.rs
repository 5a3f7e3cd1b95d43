//! Reads one file, and lists folders.

use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read as _, Seek as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{fs::OFlags, io::Errno};

use super::{
    FILE_BYTES_MAX, Vault, VaultError, folder_error,
    hidden_files::{FilePair, read_pair},
    io_error, split_path,
};
use crate::{
    memory::{address::Stem, decision::Decisions, log::DailyLog, merge_conflict},
    privacy::PrivacyRules,
    store::fs::{
        inventory::{FileProblem, FileStat},
        layout,
        rooted_dir::{DirHandle, EntryMetadata},
    },
};

/// How often a file that changes while it is read is read again.
pub(super) const READS_MAX: usize = 4;

/// The bytes of a file and its stamp.
#[derive(Clone, Debug)]
pub struct FileContents {
    /// All bytes.
    pub bytes: Vec<u8>,
    /// The stamp of the descriptor that the bytes were read from.
    pub stamp: FileStat,
    /// The number of hard links.
    pub link_count: u64,
}

impl FileContents {
    /// Returns the bytes as text, and the stamp. Refuses Markdown that was not merged completely.
    pub(super) fn into_text(self, relative: &str) -> Result<(String, FileStat), VaultError> {
        let stamp = self.stamp;
        let text = self.into_unmerged_text(relative)?;
        refuse_conflict(&text, Path::new(relative))?;
        Ok((text, stamp))
    }

    /// Returns the bytes as text, whether a version control system could merge it or not.
    fn into_unmerged_text(self, relative: &str) -> Result<String, VaultError> {
        String::from_utf8(self.bytes).map_err(|e| VaultError::NotUtf8 {
            path: relative.into(),
            at: e.utf8_error().valid_up_to(),
        })
    }

    /// Returns whether a version control system could not merge the file.
    pub(crate) fn has_merge_conflict(&self) -> bool {
        merge_conflict::first_conflict_line(&String::from_utf8_lossy(&self.bytes)).is_some()
    }

    /// Refuses a file with a second hard link, through which it may be changed from outside of the root.
    ///
    /// Returns [`VaultError::HardLink`].
    pub(super) fn refuse_hard_link(self, path: &Path) -> Result<Self, VaultError> {
        if self.link_count > 1 {
            return Err(VaultError::HardLink { path: path.to_owned() });
        }
        Ok(self)
    }
}

/// Reads many files of a root and opens each folder only once.
#[derive(Debug)]
pub struct FolderCache<'a> {
    vault: &'a Vault,
    open: Mutex<HashMap<String, Arc<DirHandle>>>,
}

impl FolderCache<'_> {
    /// Reads a file as [`Vault::read`] does.
    pub(crate) fn read(&self, relative: &str) -> Result<Option<FileContents>, VaultError> {
        let (dir, name) = split_path(relative);
        let hidden = self.vault.hidden_name(relative);
        let open = || self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = open().get(dir).cloned();
        let folder = match cached {
            Some(folder) => folder,
            None => match self.vault.open_folder("read", dir) {
                Ok(folder) => {
                    let folder = Arc::new(folder);
                    open().insert(dir.to_owned(), Arc::clone(&folder));
                    folder
                }
                Err(error) if error.is_missing() => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let found = read_pair(&folder, name, hidden.as_deref(), &self.vault.layout.full(relative));
        Ok(found?.map(FilePair::joined))
    }

    /// Reads a file as [`Vault::read_text`] does.
    pub(crate) fn read_text(&self, relative: &str) -> Result<Option<String>, VaultError> {
        Ok(self.read_stamped(relative)?.map(|it| it.0))
    }

    /// Like [`Self::read_text`], with the stamp of the file.
    pub(super) fn read_stamped(
        &self,
        relative: &str,
    ) -> Result<Option<(String, FileStat)>, VaultError> {
        let Some(found) = self.read(relative)? else { return Ok(None) };
        found.into_text(relative).map(Some)
    }
}

/// The names in the folders of a root. Each folder is listed when it is first needed.
#[derive(Debug)]
pub struct FolderListings<'a> {
    vault: &'a Vault,
    /// The names in each folder; `None` for one that cannot be listed.
    listed: HashMap<String, Option<HashSet<String>>>,
}

impl FolderListings<'_> {
    /// Returns what [`Vault::exists`] would have returned when the folder was listed.
    pub fn exists(&mut self, relative: &str) -> bool {
        let (dir, name) = split_path(relative);
        if !self.listed.contains_key(dir) {
            self.listed.insert(dir.to_owned(), self.vault.list_names(dir));
        }
        let names = self.listed.get(dir).and_then(Option::as_ref);
        names.map_or_else(|| self.vault.exists(relative), |it| it.contains(name))
    }
}

impl Vault {
    /// Reads a file, or `None` when there is none. A generated file is joined with its record.
    ///
    /// Returns an error for anything but a regular file of at most [`FILE_BYTES_MAX`].
    pub(crate) fn read(&self, relative: &str) -> Result<Option<FileContents>, VaultError> {
        match self.open_parent("read", relative) {
            Ok((folder, name)) => {
                let hidden = self.hidden_name(relative);
                let found =
                    read_pair(&folder, name, hidden.as_deref(), &self.layout.full(relative));
                Ok(found?.map(FilePair::joined))
            }
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads a file as text, or `None` when there is none.
    ///
    /// Returns an error like [`Self::read`], for bytes that are not UTF-8, and for Markdown that a version
    /// control system could not merge.
    pub(crate) fn read_text(&self, relative: &str) -> Result<Option<String>, VaultError> {
        let Some(found) = self.read(relative)? else { return Ok(None) };
        found.into_text(relative).map(|it| Some(it.0))
    }

    /// Like [`Self::read_text`], but also reads what could not be merged: for those who only add lines, or look
    /// whether theirs are there.
    pub(crate) fn read_unmerged_text(&self, relative: &str) -> Result<Option<String>, VaultError> {
        self.read(relative)?.map(|it| it.into_unmerged_text(relative)).transpose()
    }

    /// Returns the privacy rules of the root: its configuration, and the decisions of its people.
    pub fn rules(&self) -> PrivacyRules {
        // The scan reports a record that cannot be read.
        let decisions = self.read_text(&self.layout.decisions()).ok().flatten();
        let decisions = decisions.map(|it| Decisions::parse(&it)).unwrap_or_default();
        PrivacyRules::new(Arc::clone(&self.policy), &decisions)
    }

    /// Returns whether a file, a folder, or a link exists. Returns true if that cannot be found out.
    pub fn exists(&self, relative: &str) -> bool {
        self.try_exists(relative).unwrap_or(true)
    }

    /// Returns the size of a file in bytes; `None` if it cannot be found out.
    pub fn size(&self, relative: &str) -> Option<u64> {
        let (folder, name) = self.open_parent("read", relative).ok()?;
        Some(folder.metadata(name).ok()?.stamp.size)
    }

    /// Returns a reader for many files.
    pub fn folder_cache(&self) -> FolderCache<'_> {
        FolderCache { vault: self, open: Mutex::default() }
    }

    /// Returns a checker for the existence of many files.
    pub fn folder_listings(&self) -> FolderListings<'_> {
        FolderListings { vault: self, listed: HashMap::new() }
    }

    /// Like [`Self::exists`], for callers that depend on a certain answer.
    pub(crate) fn try_exists(&self, relative: &str) -> Result<bool, VaultError> {
        let look = |(folder, name): (DirHandle, &str)| {
            folder.metadata(name).map_err(|e| io_error("read", &self.layout.full(relative), e))
        };
        match self.open_parent("read", relative).and_then(look) {
            Err(error) if error.is_read_failure() => Err(error),
            // In a folder that must not be read, the file may exist.
            result => Ok(!result.is_err_and(|it| it.is_missing())),
        }
    }

    /// Returns the path of a log: in the archive if it was moved there.
    pub fn log_path(&self, stem: &Stem) -> String {
        let archived = self.layout.archive_path(stem).filter(|it| self.exists(it));
        archived.unwrap_or_else(|| self.layout.source_path(stem))
    }

    /// Returns the present path of the file that a recorded path names: a log may have been archived since.
    pub fn current_path(&self, relative: &str) -> String {
        let log = self.layout.stem_at(relative).filter(|_| !self.exists(relative));
        log.map_or_else(|| relative.to_owned(), |stem| self.log_path(&stem))
    }

    /// Reads and decodes a log or a session record, or `None` when there is none.
    ///
    /// Returns an error like [`Self::read_text`].
    pub(crate) fn read_log(&self, stem: &Stem) -> Result<Option<DailyLog>, VaultError> {
        let archived = self.layout.archive_path(stem);
        let places = archived.iter().cloned().chain([self.layout.source_path(stem)]);
        // A log that is archived between the first two attempts is found by the third.
        for path in places.chain(archived.iter().cloned()) {
            let Some(found) = self.read(&path)? else { continue };
            let found = found.refuse_hard_link(&self.layout.full(&path))?;
            let log = DailyLog::parse(stem.clone(), &found.bytes)
                .map_err(|e| VaultError::NotUtf8 { path: (&path[..]).into(), at: e.at })?;
            refuse_conflict(log.raw(), Path::new(&path))?;
            return Ok(Some(log));
        }
        Ok(None)
    }

    fn list_names(&self, dir: &str) -> Option<HashSet<String>> {
        match self.open_folder("read", dir) {
            Ok(folder) => Some(folder.names().ok()?.into_iter().flatten().collect()),
            Err(error) if error.is_missing() => Some(HashSet::new()),
            Err(_) => None,
        }
    }

    /// Lists a folder, sorted; a missing one is empty. Names that are not UTF-8 become problems.
    pub(super) fn names_in(
        &self,
        relative: &str,
        problems: &mut Vec<FileProblem>,
    ) -> Result<Vec<String>, VaultError> {
        match self.open_folder("read", relative) {
            Ok(folder) => self.names_of(&folder, relative, problems),
            Err(error) if error.is_missing() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Lists an open folder, sorted. Names that are not UTF-8 become problems.
    pub(super) fn names_of(
        &self,
        folder: &DirHandle,
        relative: &str,
        problems: &mut Vec<FileProblem>,
    ) -> Result<Vec<String>, VaultError> {
        let listed = folder.names();
        let mut names = Vec::new();
        for name in listed.map_err(|e| io_error("read", &self.layout.full(relative), e))? {
            match name {
                Ok(name) => names.push(name),
                Err(lossy) => problems.push(FileProblem::new(
                    format!("{relative}/{lossy}"),
                    "the name is not UTF-8; rename it",
                )),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Lists the regular files in a folder and its subfolders, relative to the root and sorted, without
    /// `.memoird` (unless that is the folder) and `.git`. Lists at most `files_max`; the flag says whether
    /// there are more. Folders that cannot be listed are skipped.
    pub fn files_below(&self, folder: &str, files_max: usize) -> (Vec<String>, bool) {
        let mut found = Vec::new();
        let mut folders = vec![folder.to_owned()];
        while let Some(path) = folders.pop() {
            let Ok(folder) = self.open_folder("read", &path) else { continue };
            for name in folder.names().into_iter().flatten().flatten() {
                let Ok(metadata) = folder.metadata(&name) else { continue };
                let path = if path.is_empty() { name } else { format!("{path}/{name}") };
                if metadata.is_folder() && !matches!(&path[..], layout::PRIVATE_DIR | ".git") {
                    folders.push(path);
                } else if metadata.is_file() {
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

/// Refuses Markdown with the markers of a merge conflict: which of its lines are meant, only a person can say.
pub(super) fn refuse_conflict(text: &str, path: &Path) -> Result<(), VaultError> {
    if path.extension().is_none_or(|it| it != "md") {
        return Ok(());
    }
    match merge_conflict::first_conflict_line(text) {
        Some(line) => Err(VaultError::MergeConflict { path: path.to_owned(), line }),
        None => Ok(()),
    }
}

/// Reads a regular file of an open folder through one descriptor, without following a link and without
/// blocking; `path` is its full path, for messages.
pub(super) fn read_in(
    folder: &DirHandle,
    name: &str,
    path: &Path,
) -> Result<Option<FileContents>, VaultError> {
    let not_a_file = |what| VaultError::NotAFile { path: path.to_owned(), what };
    let file = match folder.open(name, OFlags::RDONLY) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) if e.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
            return Err(not_a_file("a socket or a device"));
        }
        Err(e) => return Err(folder_error("read", path, e)),
    };
    let failed = |e| io_error("read", path, e);
    let metadata = |file: &File| file.metadata().map(|it| EntryMetadata::from(&it)).map_err(failed);
    let mut before = metadata(&file)?;
    if before.is_folder() {
        return Err(not_a_file("a folder"));
    }
    if !before.is_file() {
        return Err(not_a_file("not a regular file"));
    }
    for _ in 0..READS_MAX {
        if before.stamp.size > FILE_BYTES_MAX {
            return Err(VaultError::TooLarge { path: path.to_owned() });
        }
        // One byte more than the limit shows that the file grew while it was read.
        let mut bytes = Vec::with_capacity(usize::try_from(before.stamp.size).unwrap_or(0) + 1);
        (&file).take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(VaultError::TooLarge { path: path.to_owned() });
        }
        let after = metadata(&file)?;
        if after.stamp == before.stamp && bytes.len() as u64 == after.stamp.size {
            return Ok(Some(FileContents {
                bytes,
                stamp: after.stamp,
                link_count: after.link_count,
            }));
        }
        // The bytes may be half of the old text and half of the new one.
        before = after;
        (&file).rewind().map_err(failed)?;
    }
    Err(VaultError::Changed { path: path.to_owned() })
}
