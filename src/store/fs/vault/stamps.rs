//! Detects whether anything in a root has changed, without reading a file.

use std::io::{self, Read as _};

use rustix::fs::OFlags;

use super::{Vault, VaultError, io_error};
use crate::{
    memory::{hash::ContentHash, period::Grain},
    store::fs::{
        layout::{self, Layout, TEMP_PREFIX},
        rooted_dir::DirHandle,
    },
};

/// Names in the private folder whose changes do not matter.
const VOLATILE_FILES: [&str; 7] =
    ["bundle-", "daemon.", "pass.lock", "search.db", "vectors.db", "standstill", "lineage.db-shm"];

/// The state of the files of a root at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootStamp {
    /// Hash of the names and stamps of all files that a run reads.
    pub all: ContentHash,
    /// The latest change (ctime) of any of them except the private files, in nanoseconds since 1970 UTC.
    pub newest_ns: i64,
    /// The latest change (ctime) of a private file, in nanoseconds since 1970 UTC.
    pub newest_private_ns: i64,
}

/// Which entries of a folder count.
#[derive(Clone, Copy)]
enum FolderFilter {
    All,
    /// The generated and curated files in the root folder, beside the memory folder.
    RootFiles,
    /// The private files that a run depends on.
    PrivateFiles,
}

impl Vault {
    /// Computes the stamp of all files that a run reads, without reading any.
    pub(crate) fn root_stamp(&self) -> Result<RootStamp, VaultError> {
        self.hash_root(false)
    }

    /// Computes a hash of the names and contents of the same files: a copy of the root has the same. Reads all of
    /// them.
    #[cfg(feature = "fleet")]
    pub(crate) fn content_hash(&self) -> Result<ContentHash, VaultError> {
        Ok(self.hash_root(true)?.all)
    }

    fn hash_root(&self, reads_content: bool) -> Result<RootStamp, VaultError> {
        let mut hasher = StampHasher {
            bytes: Vec::new(),
            newest_ns: i64::MIN,
            newest_private_ns: i64::MIN,
            reads_content,
        };
        let layout = &self.layout;
        if !layout.memory_dir().is_empty() {
            self.hash_folder(&mut hasher, "", FolderFilter::RootFiles)?;
        }
        let mut folders = vec![layout.memory_dir().to_owned(), layout.sessions_dir()];
        folders.extend([Grain::Week, Grain::Month].map(|it| layout.summary_dir(it)));
        folders.push(layout.archive_dir());
        for folder in &folders {
            self.hash_folder(&mut hasher, folder, FolderFilter::All)?;
        }
        for year in self.names_or_problem(&layout.archive_dir(), &mut Vec::new())? {
            if layout::is_year(&year) {
                self.hash_folder(
                    &mut hasher,
                    &format!("{}/{year}", layout.archive_dir()),
                    FolderFilter::All,
                )?;
            }
        }
        self.hash_folder(&mut hasher, layout::PRIVATE_DIR, FolderFilter::PrivateFiles)?;
        let StampHasher { bytes, newest_ns, newest_private_ns, .. } = hasher;
        Ok(RootStamp { all: ContentHash::of(&bytes), newest_ns, newest_private_ns })
    }

    fn hash_folder(
        &self,
        hasher: &mut StampHasher,
        dir: &str,
        filter: FolderFilter,
    ) -> Result<(), VaultError> {
        let folder = match self.open_folder("read", dir) {
            Err(error) if error.is_missing() => return Ok(()),
            folder => folder?,
        };
        hasher
            .add(&folder, dir, filter, &self.layout)
            .map_err(|e| io_error("read", &self.layout.full(dir), e))
    }
}

struct StampHasher {
    bytes: Vec<u8>,
    newest_ns: i64,
    newest_private_ns: i64,
    /// Whether the content of each file counts, and not its stamp.
    reads_content: bool,
}

impl StampHasher {
    fn add(
        &mut self,
        folder: &DirHandle,
        dir: &str,
        filter: FolderFilter,
        layout: &Layout,
    ) -> io::Result<()> {
        let own = folder.own_metadata()?;
        self.add_name(dir);
        if !self.reads_content {
            self.add_numbers(&[own.stamp.inode, own.mode.into(), own.device]);
        }
        let mut names = folder.names()?;
        names.sort_unstable();
        let wisdom = layout.wisdom();
        let hidden = layout.hidden_path(&wisdom);
        for name in names {
            // The scan reports names that are not UTF-8, and memoird never reads these files.
            let Ok(name) = name else { continue };
            let counts = match filter {
                FolderFilter::All => true,
                FolderFilter::RootFiles => {
                    name == wisdom
                        || layout.curated().contains(&name)
                        || Some(&name) == hidden.as_ref()
                        || name.starts_with(TEMP_PREFIX)
                }
                FolderFilter::PrivateFiles => !VOLATILE_FILES.iter().any(|it| name.starts_with(it)),
            };
            if !counts || (layout.memory_dir().is_empty() && name == layout::PRIVATE_DIR) {
                continue;
            }
            let entry = match folder.metadata(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entry => entry?,
            };
            // A reader leaves an empty write-ahead log.
            let is_private = matches!(filter, FolderFilter::PrivateFiles);
            let is_write_ahead_log = is_private && name.ends_with("-wal");
            if is_write_ahead_log && entry.stamp.size == 0 {
                continue;
            }
            self.add_name(&name);
            if !entry.is_file() {
                // The caller adds the content of the folders that matter.
                self.add_numbers(&[entry.kind.as_raw_mode().into()]);
                continue;
            }
            if self.reads_content {
                let mut bytes = Vec::new();
                folder.open(&name, OFlags::RDONLY)?.read_to_end(&mut bytes)?;
                self.bytes.extend_from_slice(ContentHash::of(&bytes).as_bytes());
                continue;
            }
            // SQLite gives it the owner of the database whenever root opens it, which changes nothing in it.
            let changed_ns =
                if is_write_ahead_log { entry.stamp.mtime_ns } else { entry.changed_ns };
            let [mtime, ctime] = [entry.stamp.mtime_ns, changed_ns].map(i64::cast_unsigned);
            let access = (u64::from(entry.mode) << 32) | u64::from(entry.uid);
            let (inode, size) = (entry.stamp.inode, entry.stamp.size);
            self.add_numbers(&[inode, size, mtime, ctime, access, entry.link_count]);
            let newest = if is_private { &mut self.newest_private_ns } else { &mut self.newest_ns };
            *newest = changed_ns.max(*newest);
        }
        Ok(())
    }

    fn add_name(&mut self, name: &str) {
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
    }

    fn add_numbers(&mut self, numbers: &[u64]) {
        self.bytes.extend(numbers.iter().flat_map(|it| it.to_le_bytes()));
    }
}
