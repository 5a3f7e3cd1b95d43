//! What tells whether anything in a root has changed, without reading a file.

use std::io;

use super::{Vault, VaultError, io_error};
use crate::{
    memory::{hash::ContentHash, period::Grain},
    store::fs::{
        layout::{self, Layout},
        rooted_dir::DirHandle,
    },
};

/// Names of the private folder that change though nothing is to be done for it.
const VOLATILE_FILES: [&str; 6] =
    ["daemon.", "pass.lock", "search.db", "vectors.db", "standstill", "lineage.db-shm"];

/// How the files of a root looked at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootStamp {
    /// Hash of the names and stamps of all files that a pass looks at.
    pub all: ContentHash,
    /// The latest time at which anything about one of them was changed, those of the private folder left
    /// out, nanoseconds since 1970 UTC.
    pub newest_ns: i64,
}

/// What of a folder counts.
#[derive(Clone, Copy)]
enum FolderFilter {
    All,
    /// What of ours stands in the root's folder beside the memory folder.
    RootFiles,
    /// What a pass heeds of the private folder.
    PrivateFiles,
}

impl Vault {
    /// Looks at all files of the root that a pass looks at, and reads none.
    ///
    /// # Errors
    ///
    /// Returns an error for a folder that cannot be listed.
    pub fn root_stamp(&self) -> Result<RootStamp, VaultError> {
        let mut seen = StampHasher { bytes: Vec::new(), newest_ns: i64::MIN };
        let layout = &self.layout;
        if !layout.memory_dir().is_empty() {
            self.hash_folder(&mut seen, "", FolderFilter::RootFiles)?;
        }
        let mut folders = vec![layout.memory_dir().to_owned(), layout.sessions_dir()];
        folders.extend([Grain::Week, Grain::Month].map(|it| layout.summary_dir(it)));
        folders.push(layout.archive_dir());
        for folder in &folders {
            self.hash_folder(&mut seen, folder, FolderFilter::All)?;
        }
        for year in self.names_or_problem(&layout.archive_dir(), &mut Vec::new())? {
            if layout::is_year(&year) {
                self.hash_folder(
                    &mut seen,
                    &format!("{}/{year}", layout.archive_dir()),
                    FolderFilter::All,
                )?;
            }
        }
        self.hash_folder(&mut seen, layout::PRIVATE_DIR, FolderFilter::PrivateFiles)?;
        Ok(RootStamp { all: ContentHash::of(&seen.bytes), newest_ns: seen.newest_ns })
    }

    fn hash_folder(
        &self,
        seen: &mut StampHasher,
        dir: &str,
        counts: FolderFilter,
    ) -> Result<(), VaultError> {
        let folder = match self.open_folder("read", dir) {
            Err(error) if error.is_missing() => return Ok(()),
            folder => folder?,
        };
        seen.add(&folder, dir, counts, &self.layout)
            .map_err(|e| io_error("read", &self.layout.full(dir), e))
    }
}

struct StampHasher {
    bytes: Vec<u8>,
    newest_ns: i64,
}

impl StampHasher {
    fn add(
        &mut self,
        folder: &DirHandle,
        dir: &str,
        counts: FolderFilter,
        layout: &Layout,
    ) -> io::Result<()> {
        let own = folder.own_metadata()?;
        self.add_name(dir);
        self.add_numbers(&[own.stamp.inode, own.mode.into(), own.device]);
        let mut names = folder.names()?;
        names.sort_unstable();
        for name in names {
            // One that is not UTF-8 is a problem that is told, and stays one under that name.
            let Ok(name) = name else { continue };
            let heeded = match counts {
                FolderFilter::All => true,
                FolderFilter::RootFiles => {
                    name == layout::WISDOM_FILE || name.starts_with(layout::TEMP_PREFIX)
                }
                FolderFilter::PrivateFiles => !VOLATILE_FILES.iter().any(|it| name.starts_with(it)),
            };
            if !heeded || (layout.memory_dir().is_empty() && name == layout::PRIVATE_DIR) {
                continue;
            }
            let look = match folder.metadata(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                look => look?,
            };
            // A reader leaves an empty log of writes.
            if matches!(counts, FolderFilter::PrivateFiles)
                && name.ends_with("-wal")
                && look.stamp.size == 0
            {
                continue;
            }
            self.add_name(&name);
            if !look.is_file() {
                // What stands in a folder is looked at there, or is nothing of ours.
                self.add_numbers(&[look.kind.as_raw_mode().into()]);
                continue;
            }
            let [mtime, ctime] = [look.stamp.mtime_ns, look.changed_ns].map(i64::cast_unsigned);
            let rights = (u64::from(look.mode) << 32) | u64::from(look.uid);
            self.add_numbers(&[
                look.stamp.inode,
                look.stamp.size,
                mtime,
                ctime,
                rights,
                look.link_count,
            ]);
            if !matches!(counts, FolderFilter::PrivateFiles) {
                self.newest_ns = self.newest_ns.max(look.changed_ns);
            }
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
