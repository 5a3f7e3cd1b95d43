//! The hidden file beside a generated one: `.WISDOM.json` beside `WISDOM.md`.
//!
//! Readers and writers of the vault see the two as one text ([`crate::memory::joined`]). The visible file is
//! compared and replaced first, because people write it; the hidden one follows and is simply replaced. One that
//! is no record (half of one, with the markers of a merge conflict, a link) counts as missing: then what the
//! visible file says is the user's, until the database or a copy brings the record back.

use std::{io, path::Path};

use rustix::fs::RenameFlags;

use super::{
    Vault, VaultError, folder_error, io_error,
    read::{FileContents, READS_MAX, read_in},
    split_path,
    write::{NewFileAccess, create_temp, write_temp},
};
use crate::{
    memory::{hash::ContentHash, joined},
    store::{
        failpoint,
        fs::{
            inventory::{FileProblem, FileStat},
            lock::WriteLock,
            rooted_dir::{DirHandle, EntryMetadata},
        },
    },
};

/// A file, and the record in its hidden file if it is one that has such a file.
#[derive(Debug)]
pub(super) struct FilePair {
    pub(super) visible: FileContents,
    record: Option<Vec<u8>>,
    /// The stamp of both files.
    stamp: FileStat,
    /// Whether a file of this name has a hidden one; others are read as they are.
    has_hidden: bool,
}

impl FilePair {
    pub(super) fn hash(&self) -> ContentHash {
        joined_hash(&self.visible.bytes, self.record.as_deref(), self.has_hidden)
    }

    /// Returns both as one file.
    pub(super) fn joined(self) -> FileContents {
        let Self { mut visible, record, stamp, has_hidden } = self;
        visible.stamp = stamp;
        if has_hidden {
            visible.bytes = joined::join_bytes(&visible.bytes, record.as_deref());
        }
        visible
    }
}

fn joined_hash(visible: &[u8], record: Option<&[u8]>, has_hidden: bool) -> ContentHash {
    if has_hidden {
        ContentHash::of(joined::join_bytes(visible, record))
    } else {
        ContentHash::of(visible)
    }
}

/// Returns the name under which the hidden file of a temporary file is staged.
pub(super) fn hidden_temp(temp: &str) -> String {
    format!("{temp}-record")
}

/// Reads a file of an open folder, and the record in `hidden` beside it.
pub(super) fn read_pair(
    folder: &DirHandle,
    name: &str,
    hidden: Option<&str>,
    path: &Path,
) -> Result<Option<FilePair>, VaultError> {
    for _ in 0..READS_MAX {
        let Some(visible) = read_in(folder, name, path)? else { return Ok(None) };
        let (stamp, has_hidden) = (visible.stamp, hidden.is_some());
        let Some(hidden) = hidden else {
            return Ok(Some(FilePair { visible, record: None, stamp, has_hidden }));
        };
        let before = pair_stamp(folder, name, hidden);
        let record = read_record(folder, hidden, path)?;
        // Otherwise the record may belong to the version that came meanwhile.
        let is_same = folder.metadata(name).is_ok_and(|it| it.stamp == visible.stamp);
        if let Some(stamp) = before.filter(|_| is_same)
            && pair_stamp(folder, name, hidden) == before
        {
            return Ok(Some(FilePair { visible, record, stamp, has_hidden }));
        }
    }
    Err(VaultError::Changed { path: path.to_owned() })
}

/// Returns a stamp that changes when either of two files does; `None` without a visible one.
pub(super) fn pair_stamp(folder: &DirHandle, name: &str, hidden: &str) -> Option<FileStat> {
    let visible = folder.metadata(name).ok().filter(EntryMetadata::is_file)?.stamp;
    let Ok(hidden) = folder.metadata(hidden) else { return Some(visible) };
    let FileStat { inode, size, mtime_ns } = hidden.stamp;
    Some(FileStat {
        inode: visible.inode ^ inode.rotate_left(20) ^ mtime_ns.cast_unsigned().rotate_left(40),
        size: visible.size + size,
        mtime_ns: visible.mtime_ns.max(mtime_ns),
    })
}

fn read_record(folder: &DirHandle, name: &str, path: &Path) -> Result<Option<Vec<u8>>, VaultError> {
    match read_in(folder, name, path) {
        Ok(found) => Ok(found.map(|it| it.bytes).filter(|it| is_record(it))),
        Err(error) if error.is_read_failure() => Err(error),
        // A link, a folder, a file that must not be read.
        Err(_) => Ok(None),
    }
}

fn is_record(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(joined::is_record)
}

impl Vault {
    /// Returns the name of the hidden file in the folder of a generated file.
    pub(super) fn hidden_name(&self, target: &str) -> Option<String> {
        self.layout.hidden_path(target).map(|it| split_path(&it).1.to_owned())
    }

    /// Reads a generated file without its record. A file without a hidden one is read as it is.
    pub(crate) fn read_visible(&self, relative: &str) -> Result<Option<FileContents>, VaultError> {
        match self.open_parent("read", relative) {
            Ok((folder, name)) => read_in(&folder, name, &self.layout.full(relative)),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the bytes of the visible file at `target` are of the version with this hash: together with
    /// the record beside it, the one staged for `temp`, or none.
    pub(crate) fn is_version(
        &self,
        target: &str,
        temp: &str,
        visible: Option<&[u8]>,
        hash: Option<ContentHash>,
    ) -> Result<bool, VaultError> {
        let (Some(visible), Some(hash)) = (visible, hash) else {
            return Ok(visible.is_none() && hash.is_none());
        };
        Ok(!self.records_of_version(target, temp, visible, hash)?.is_empty())
    }

    /// Returns the records, in place or staged or none, with which these bytes have this hash.
    fn records_of_version(
        &self,
        target: &str,
        temp: &str,
        visible: &[u8],
        hash: ContentHash,
    ) -> Result<Vec<Option<Vec<u8>>>, VaultError> {
        let mut records = vec![None];
        let hidden = self.hidden_name(target);
        let has_hidden = hidden.is_some();
        if let Some(hidden) = hidden {
            let (folder, _) = self.open_parent("read", target)?;
            let full = self.layout.full(target);
            for name in [hidden, hidden_temp(temp)] {
                records.push(read_record(&folder, &name, &full)?);
            }
        }
        records.retain(|it| joined_hash(visible, it.as_deref(), has_hidden) == hash);
        Ok(records)
    }

    /// Completes a write whose visible file is in place: its record follows. After a removal the hidden file is
    /// removed.
    pub(crate) fn complete_pair(
        &self,
        lock: &WriteLock,
        target: &str,
        temp: &str,
        hash: Option<ContentHash>,
    ) -> Result<(), VaultError> {
        let Some(hidden) = self.hidden_name(target) else { return Ok(()) };
        let visible = self.read_visible(target)?.map(|it| it.bytes);
        let record = match (visible, hash) {
            (Some(visible), Some(hash)) => {
                match self.records_of_version(target, temp, &visible, hash)?.pop() {
                    Some(record) => record,
                    None => return Ok(()),
                }
            }
            _ => None,
        };
        match record {
            Some(record) => self.write_record(lock, target, &record),
            None => match self.open_parent("remove", target) {
                Err(error) if error.is_missing() => Ok(()),
                found => remove_record(&found?.0, &hidden)
                    .map_err(|e| io_error("remove", &self.layout.full(target), e)),
            },
        }
    }

    /// Writes the record beside a file whose visible bytes stay.
    pub(crate) fn write_record(
        &self,
        _lock: &WriteLock,
        target: &str,
        record: &[u8],
    ) -> Result<(), VaultError> {
        let Some(hidden) = self.hidden_name(target) else { return Ok(()) };
        let (folder, name) = self.open_parent("write", target)?;
        let full = self.layout.full(target);
        if read_record(&folder, &hidden, &full)?.as_deref() == Some(record) {
            return Ok(());
        }
        let temp = hidden_temp(&Self::new_temp_name());
        let failed = |e| folder_error("write", &full, e);
        let mut file = create_temp(&folder, &temp).map_err(failed)?;
        let written = write_temp(&folder, name, &mut file, record, NewFileAccess::Inherited)
            .and_then(|()| folder.rename_within(&temp, &hidden, RenameFlags::empty()));
        if written.is_err() {
            drop(folder.remove(&temp));
        }
        written.and_then(|()| folder.sync()).map_err(failed)
    }

    /// Returns the problem of a file of which `text` was read without a record though it has a hidden file.
    pub(super) fn unusable_record(&self, target: &str, text: &str) -> Option<FileProblem> {
        let hidden = self.layout.hidden_path(target)?;
        if joined::split(text).1.is_some() || !self.exists(&hidden) {
            return None;
        }
        let reason = format!(
            "cannot be used (half written, or a merge conflict), so what {target} says counts as yours until the \
             next run restores it or you resolve it"
        );
        Some(FileProblem::new(hidden, reason))
    }

    /// Returns the problems of copies that a sync tool made of hidden files in a folder.
    pub(super) fn hidden_file_copies(&self, dir: &str, names: &[String]) -> Vec<FileProblem> {
        let in_dir =
            |name: &str| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
        let is_copy = |name: &str| {
            let Some(stem) = name.strip_prefix('.').and_then(|it| it.strip_suffix(".json")) else {
                return false;
            };
            let is_cut = |at: usize| {
                let original = stem.get(..at).filter(|it| !it.is_empty());
                original
                    .is_some_and(|it| self.layout.is_hidden_file(&in_dir(&format!(".{it}.json"))))
            };
            let mut ends = stem.char_indices().filter(|it| " .-_(~".contains(it.1)).map(|it| it.0);
            !self.layout.is_hidden_file(&in_dir(name)) && ends.any(is_cut)
        };
        let problem = |name: &String| {
            let reason = "a copy of a hidden file that is not used; remove it";
            FileProblem::new(in_dir(name), reason)
        };
        names.iter().filter(|it| is_copy(it)).map(problem).collect()
    }
}

/// Removes a hidden file; one that is already gone is fine.
pub(super) fn remove_record(folder: &DirHandle, hidden: &str) -> io::Result<()> {
    failpoint::at("vault.record.remove")?;
    match folder.remove(hidden) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result.and_then(|()| folder.sync()),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{names, put, vault},
        *,
    };

    const TEXT: &str = "one\n\u{1e}{\"body\": \"a\"}\n";

    fn write(vault: &Vault, text: &str, old: Option<&str>) -> Result<(), VaultError> {
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let staged = vault.stage("WISDOM.md", &Vault::new_temp_name(), text.as_bytes())?;
        vault.publish(&lock, staged, old.map(ContentHash::of))
    }

    fn bytes(vault: &Vault, name: &str) -> Option<String> {
        std::fs::read_to_string(vault.layout().full(name)).ok()
    }

    #[test]
    fn both_files_are_written_read_and_removed_together() {
        let (_dir, vault) = vault();
        write(&vault, TEXT, None).unwrap();
        assert_eq!(bytes(&vault, "WISDOM.md").unwrap(), "one\n");
        assert_eq!(bytes(&vault, ".WISDOM.json").unwrap(), "{\"body\": \"a\"}\n");
        assert_eq!(vault.read_text("WISDOM.md").unwrap().unwrap(), TEXT);
        let inode = |vault: &Vault| vault.read_visible("WISDOM.md").unwrap().unwrap().stamp.inode;
        let before = inode(&vault);
        let other = TEXT.replace("\"a\"", "\"b\"");
        write(&vault, &other, Some(TEXT)).unwrap();
        assert_eq!(inode(&vault), before, "the visible file stays");
        assert_eq!(vault.read_text("WISDOM.md").unwrap().unwrap(), other);
        // An older version without a record.
        write(&vault, "zero\n", Some(&other)).unwrap();
        assert!(bytes(&vault, ".WISDOM.json").is_none());
        write(&vault, TEXT, Some("zero\n")).unwrap();
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let stale = vault.remove(&lock, "WISDOM.md", ".memoird-tmp-x", ContentHash::of("one\n"));
        assert!(matches!(stale, Err(VaultError::Changed { .. })));
        vault.remove(&lock, "WISDOM.md", ".memoird-tmp-x", ContentHash::of(TEXT)).unwrap();
        assert!(
            names(&vault, "").iter().all(|it| !it.contains("WISDOM")),
            "{:?}",
            names(&vault, "")
        );
    }

    #[test]
    fn a_changed_half_is_a_changed_file() {
        let (_dir, vault) = vault();
        write(&vault, TEXT, None).unwrap();
        for (name, text) in [("WISDOM.md", "mine\n"), (".WISDOM.json", "{\"body\": \"z\"}")] {
            let old = bytes(&vault, name).unwrap();
            put(&vault, name, text.as_bytes());
            let error = write(&vault, "two\n", Some(TEXT)).unwrap_err();
            assert!(matches!(error, VaultError::Changed { .. }), "{error}");
            assert_eq!(bytes(&vault, name).unwrap(), text);
            put(&vault, name, old.as_bytes());
        }
        assert!(names(&vault, "").iter().all(|it| !it.starts_with(".memoird-tmp")));
    }

    #[test]
    fn a_hidden_file_that_is_no_record_is_missing_and_reported() {
        let (_dir, vault) = vault();
        write(&vault, TEXT, None).unwrap();
        put(&vault, ".WISDOM.sync-conflict-20260403.json", b"{}");
        put(&vault, ".WISDOM.json", b"{\n<<<<<<< HEAD\n}\n");
        assert_eq!(vault.read_text("WISDOM.md").unwrap().unwrap(), "one\n");
        let problems = vault.scan(&std::collections::HashMap::new()).unwrap().inventory.problems;
        let paths: Vec<_> = problems.iter().map(|it| &it.path[..]).collect();
        assert_eq!(paths, [".WISDOM.json", ".WISDOM.sync-conflict-20260403.json"]);
        std::fs::remove_file(vault.layout().full(".WISDOM.json")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", vault.layout().full(".WISDOM.json")).unwrap();
        assert_eq!(vault.read_text("WISDOM.md").unwrap().unwrap(), "one\n");
    }

    #[test]
    fn a_version_is_known_by_the_record_in_place_or_staged() {
        let (_dir, vault) = vault();
        let new = "two\n\u{1e}{\"body\": \"b\"}\n";
        write(&vault, TEXT, None).unwrap();
        let is = |visible: &str, text: &str| {
            vault
                .is_version(
                    "WISDOM.md",
                    ".memoird-tmp-x",
                    Some(visible.as_bytes()),
                    Some(ContentHash::of(text)),
                )
                .unwrap()
        };
        assert!(is("one\n", TEXT) && !is("two\n", new) && is("x\n", "x\n") && !is("one\n", new));
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        let staged = vault.stage("WISDOM.md", ".memoird-tmp-x", new.as_bytes()).unwrap();
        assert!(is("two\n", new) && is("one\n", TEXT));
        // A crash after the visible file took its name.
        std::fs::rename(vault.layout().full(".memoird-tmp-x"), vault.layout().full("WISDOM.md"))
            .unwrap();
        std::mem::forget(staged);
        assert_ne!(vault.read_text("WISDOM.md").unwrap().unwrap(), new);
        vault
            .complete_pair(&lock, "WISDOM.md", ".memoird-tmp-x", Some(ContentHash::of(new)))
            .unwrap();
        assert_eq!(vault.read_text("WISDOM.md").unwrap().unwrap(), new);
        vault.remove_temp(&lock, "WISDOM.md", ".memoird-tmp-x").unwrap();
        assert!(names(&vault, "").iter().all(|it| !it.starts_with(".memoird-tmp")));
    }
}
