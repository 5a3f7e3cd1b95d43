//! The files of a root that belong to its bundle, and what is in them.
//!
//! A generated file and the hidden one beside it are one file, as everywhere above the vault. Of the private
//! folder only the database belongs to a bundle, as a copy without what is true on one machine only; caches are
//! made again from the files.

use std::collections::BTreeMap;

use super::{error::BundleError, merge::LocalContent};
use crate::{
    compaction::forget::pending,
    memory::{hash::ContentHash, period::Grain},
    store::{
        db::lineage::{Lineage, portable},
        fs::{
            layout::{self, FileKind, Layout, ROOT_FILE},
            vault::{Vault, VaultError},
        },
    },
};

/// The path of the database in a manifest.
pub(crate) const DATABASE: &str = ".memoird/lineage.db";
/// A copy of the database while it is read.
const DATABASE_COPY: &str = ".memoird/bundle-database";
/// A larger database is not published.
const DATABASE_BYTES_MAX: usize = 1024 * 1024 * 1024;

/// The files of a root at one time.
#[derive(Debug, Default)]
pub(crate) struct LocalFiles {
    present: BTreeMap<String, LocalFile>,
    /// Files that could not be read, with the reason.
    pub(crate) skipped: BTreeMap<String, String>,
    /// The note of a run that these files are up to date, if there is one.
    pub(crate) up_to_date: Option<serde_json::Value>,
}

/// A file that was read.
#[derive(Debug)]
struct LocalFile {
    hash: ContentHash,
    /// The content, unless it is that of the last common state.
    bytes: Option<Vec<u8>>,
}

/// Returns whether a path is one that belongs to the bundle of a root with this layout.
pub(crate) fn is_own_path(layout: &Layout, path: &str) -> bool {
    layout.kind_of(path).is_some()
        || path == layout.decisions()
        || matches!(path, ROOT_FILE | DATABASE)
        || layout.curated().iter().any(|it| it == path)
}

/// Returns whether memoird writes a file: then it and the database belong together.
pub(crate) fn is_generated(layout: &Layout, path: &str) -> bool {
    use FileKind::{Index, Memory, Monthly, Weekly, Wisdom};
    matches!(layout.kind_of(path), Some(Weekly | Monthly | Memory | Index | Wisdom))
}

/// Returns the hash by which two copies of the database are compared: fields in the header that count writes do
/// not matter.
pub(crate) fn content_hash(path: &str, bytes: &[u8]) -> ContentHash {
    /// The counter of changes, the cookie of the schema, and the version of SQLite that wrote last. See the
    /// [file format](https://www.sqlite.org/fileformat.html#the_database_header).
    const COUNTERS: [std::ops::Range<usize>; 3] = [24..28, 40..44, 92..100];
    if path != DATABASE || bytes.len() < 100 {
        return ContentHash::of(bytes);
    }
    let mut bytes = bytes.to_vec();
    for range in COUNTERS {
        bytes[range].fill(0);
    }
    ContentHash::of(bytes)
}

impl LocalFiles {
    /// Reads the files of a root. Contents that are those of `base` are not kept in memory.
    ///
    /// The caller holds the locks if the files and the database must be of the same moment. A file that cannot be
    /// read is listed as skipped; a folder that cannot be listed is too, with all files of `base` in it.
    pub(crate) fn read(
        vault: &Vault,
        base: &BTreeMap<String, ContentHash>,
    ) -> Result<Self, BundleError> {
        let mut files = Self::default();
        let layout = vault.layout();
        for dir in files.folders(vault) {
            let names = match vault.open_folder("read", &dir) {
                Err(error) if error.is_missing() => continue,
                opened => opened.and_then(|it| {
                    it.names().map_err(|source| VaultError::Io {
                        action: "read",
                        path: layout.full(&dir),
                        source,
                    })
                }),
            };
            let names = match names {
                Ok(names) => names,
                Err(error) => {
                    files.skipped.insert(dir, error.to_string());
                    continue;
                }
            };
            for name in names.into_iter().flatten() {
                let path = if dir.is_empty() { name } else { format!("{dir}/{name}") };
                if path != DATABASE && is_own_path(layout, &path) {
                    files.read_file(vault, &path, base);
                }
            }
        }
        files.read_database(vault, base)?;
        // Only a file that is certainly not there was removed.
        for path in base.keys().filter(|it| *it != DATABASE) {
            if !files.present.contains_key(path) && !files.skipped.contains_key(path) {
                let reason = match vault.try_exists(path) {
                    Ok(false) => continue,
                    Ok(true) => "cannot be read".to_owned(),
                    Err(error) => error.to_string(),
                };
                files.skipped.insert(path.clone(), reason);
            }
        }
        Ok(files)
    }

    fn folders(&mut self, vault: &Vault) -> Vec<String> {
        let layout = vault.layout();
        let mut folders = vec![String::new(), layout.sessions_dir()];
        if !layout.memory_dir().is_empty() {
            folders.push(layout.memory_dir().to_owned());
        }
        folders.extend([Grain::Week, Grain::Month].map(|it| layout.summary_dir(it)));
        let archive = layout.archive_dir();
        match vault.open_folder("read", &archive).map(|it| it.names()) {
            Ok(Ok(names)) => {
                let years = names.into_iter().flatten().filter(|it| layout::is_year(it));
                folders.extend(years.map(|it| format!("{archive}/{it}")));
            }
            Err(error) if error.is_missing() => {}
            Err(error) => drop(self.skipped.insert(archive, error.to_string())),
            Ok(Err(error)) => drop(self.skipped.insert(archive, error.to_string())),
        }
        folders
    }

    fn read_file(&mut self, vault: &Vault, path: &str, base: &BTreeMap<String, ContentHash>) {
        let skipped = match vault.read(path) {
            Ok(None) => return,
            Ok(Some(it)) if it.link_count > 1 => "has a second name (a hard link)".to_owned(),
            Ok(Some(it)) if it.has_merge_conflict() => {
                "has the markers of a merge conflict".to_owned()
            }
            Ok(Some(it)) => {
                self.add(path, it.bytes, base);
                return;
            }
            Err(error) => error.to_string(),
        };
        self.skipped.insert(path.to_owned(), skipped);
    }

    fn read_database(
        &mut self,
        vault: &Vault,
        base: &BTreeMap<String, ContentHash>,
    ) -> Result<(), BundleError> {
        let path = vault.layout().database();
        match Lineage::open_existing(&path) {
            Ok(Some(_)) => {}
            // One that is not there was not removed: it is made again from the files.
            Ok(None) => {
                if let Some(hash) = base.get(DATABASE) {
                    let file = LocalFile { hash: *hash, bytes: None };
                    self.present.insert(DATABASE.to_owned(), file);
                }
                return Ok(());
            }
            Err(error) => {
                self.skipped.insert(DATABASE.to_owned(), error.to_string());
                return Ok(());
            }
        }
        vault.remove_private(DATABASE_COPY)?;
        let copied = Lineage::open(&path)
            .and_then(|it| portable::write_copy(&it, &vault.layout().full(DATABASE_COPY)));
        vault.remove_private(DATABASE_COPY)?;
        match copied {
            Ok(bytes) if bytes.len() <= DATABASE_BYTES_MAX => self.add(DATABASE, bytes, base),
            Ok(_) => {
                let reason = format!("is larger than {} MiB", DATABASE_BYTES_MAX / 1024 / 1024);
                self.skipped.insert(DATABASE.to_owned(), reason);
            }
            Err(error) => drop(self.skipped.insert(DATABASE.to_owned(), error.to_string())),
        }
        Ok(())
    }

    fn add(&mut self, path: &str, bytes: Vec<u8>, base: &BTreeMap<String, ContentHash>) {
        let hash = content_hash(path, &bytes);
        // A database cannot be read again by its path.
        let is_kept = path == DATABASE || base.get(path) != Some(&hash);
        let bytes = is_kept.then_some(bytes);
        self.present.insert(path.to_owned(), LocalFile { hash, bytes });
    }

    /// Returns what is known of each file.
    pub(crate) fn contents(&self) -> BTreeMap<String, LocalContent> {
        let present = self.present.iter().map(|(path, it)| (path, LocalContent::Present(it.hash)));
        let skipped = self.skipped.keys().map(|path| (path, LocalContent::Unknown));
        present.chain(skipped).map(|(path, it)| (path.clone(), it)).collect()
    }

    /// Returns the hash of a file that was read.
    pub(crate) fn hash(&self, path: &str) -> Option<ContentHash> {
        self.present.get(path).map(|it| it.hash)
    }

    /// Returns the content with the hash that was read; `None` if the file was changed since.
    pub(crate) fn content(&self, vault: &Vault, path: &str) -> Option<Vec<u8>> {
        let file = self.present.get(path)?;
        if let Some(bytes) = &file.bytes {
            return Some(bytes.clone());
        }
        let found = vault.read(path).ok()??;
        (content_hash(path, &found.bytes) == file.hash).then_some(found.bytes)
    }
}

/// Refuses a root in which a change was interrupted: half of it must not be published, nor mixed with what others
/// published. The caller holds the run lock.
pub(crate) fn require_finished(vault: &Vault) -> Result<(), BundleError> {
    if pending::unfinished_message(vault).is_some() {
        return Err(BundleError::Unfinished { what: "forgetting" });
    }
    if vault.exists(&vault.layout().undo_state()) {
        return Err(BundleError::Unfinished { what: "an undo" });
    }
    let lineage = Lineage::open_existing(&vault.layout().database());
    // One that is damaged is skipped.
    let open = lineage.ok().flatten().map(|it| it.open_intents()).transpose()?;
    if open.is_some_and(|it| !it.is_empty()) {
        return Err(BundleError::Unfinished { what: "a run" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_root_belong_to_it() {
        let layout = Layout::new("/a", "memory").with_curated(vec!["USER.md".to_owned()]);
        for own in [
            "WISDOM.md",
            "USER.md",
            "memoird.yaml",
            "memory/2026-04-02.md",
            "memory/archive/2026/2026-04-02.md",
            "memory/weekly/2026-W14.md",
            "memory/MEMORY.md",
            "memory/.decisions.jsonl",
            DATABASE,
        ] {
            assert!(is_own_path(&layout, own), "{own}");
        }
        for other in [
            "README.md",
            "memory/notes.md",
            ".git/config",
            ".memoird/witness",
            "memory/archive/2025/2026-04-02.md",
            "memory/weekly/2026-04-02.md",
        ] {
            assert!(!is_own_path(&layout, other), "{other}");
        }
    }
}
