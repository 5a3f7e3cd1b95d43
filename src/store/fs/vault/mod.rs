//! The files of a root: the only code that reads and writes them.
//!
//! - [`read`]: reads one file, lists folders.
//! - [`scan`]: reads all files.
//! - [`stamps`]: detects changes without reading any file.
//! - [`mod@write`]: creates, replaces, or removes a file atomically.
//! - [`append`]: adds lines to a log, or nothing if the disk is full.
//! - [`hidden_files`]: the hidden file beside a generated one, which is read and written with it.
//! - [`curated_files`]: reads the notes that an agent or a person keeps by themselves.
//! - [`archive`]: moves logs and preserves their bytes.
//! - [`private_files`]: the folder `.memoird/`.
//! - [`replies`]: raw replies of models, stored in it.
//! - [`crash_cleanup`]: saves and removes temporary files that a crash left.
//! - [`settings_files`]: settings and other files outside of memory.
//!
//! # What a crash can and cannot do
//!
//! A generated file is replaced atomically: temporary file in the same folder, fsync, compare with the existing
//! file, exchange the two names, fsync of the folder, read back. After a crash at any point the name has the
//! old or the new bytes, never a part of either; a temporary file may be left, which the next run removes.
//! The hidden file beside it follows; a crash between the two leaves the old one, which no longer belongs to
//! the file, until the next run.
//! Recording the change is the concern of the journal ([`crate::store::db::lineage`]), not of this module.
//!
//! # Links
//!
//! Everything is opened through [`crate::store::fs::rooted_dir`], which follows no links but those of the
//! memory folder and the archive. Only regular files are read. A link, a pipe, a device, or a folder with the
//! name of a log is reported and ignored, and so is a log with a second hard link, which may be outside of the
//! root.

pub mod append;
pub mod archive;
pub mod crash_cleanup;
pub mod curated_files;
pub mod hidden_files;
pub mod private_files;
pub mod read;
pub mod replies;
pub mod scan;
pub mod settings_files;
pub mod stamps;
pub mod write;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    layout::Layout,
    rooted_dir::{self, DirHandle, RootedDir},
};
use crate::{
    config::root::RootSettings,
    privacy::{PrivacyPolicy, PrivacyPolicyError},
};

/// A larger log is reported and ignored: nobody writes that much in a day by hand, and a run must fit into
/// memory.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The operation: `read`, `write`, …
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("`{}` is {what}; memoird ignores it", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// `a symbolic link`, `a folder`, …
        what: &'static str,
    },
    /// A log has a second hard link, perhaps outside of the root.
    #[error("`{}` has a second name (a hard link), through which others may change it; memoird ignores it until you replace it by a copy", path.display())]
    HardLink {
        /// The file.
        path: PathBuf,
    },
    /// The file is larger than [`FILE_BYTES_MAX`].
    #[error("`{}` is larger than {} MiB; split it", path.display(), FILE_BYTES_MAX / 1024 / 1024)]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The bytes are not UTF-8.
    #[error("`{}` is not UTF-8 at byte {at}; save it as UTF-8", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
        /// Offset of the first bad byte.
        at: usize,
    },
    /// A version control system could not merge the file.
    #[error(
        "`{}` has the markers of a merge conflict (line {line}); it is not used until they are resolved",
        path.display()
    )]
    MergeConflict {
        /// The file.
        path: PathBuf,
        /// The line of the first marker.
        line: usize,
    },
    /// The file changed between reading and writing.
    #[error("`{}` was changed by another program meanwhile; it will be read again", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The bytes read back differ from those written.
    #[error("`{}` does not contain what was just written to it; check the disk", path.display())]
    ReadBackMismatch {
        /// The file.
        path: PathBuf,
    },
}

impl VaultError {
    /// Returns whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether the system failed to read a file that may be fine: a bad disk, too many open files.
    ///
    /// Missing files, missing permissions, and entries of the wrong kind do not count.
    pub fn is_read_failure(&self) -> bool {
        use io::ErrorKind as Kind;
        let known = [Kind::NotFound, Kind::PermissionDenied, Kind::NotADirectory];
        matches!(self, Self::Io { action: "read", source, .. } if !known.contains(&source.kind()))
    }

    /// Returns whether a write failed, as opposed to a read.
    pub fn is_write_failure(&self) -> bool {
        matches!(self, Self::ReadBackMismatch { .. })
            || matches!(self, Self::Io { action, .. } if *action != "read")
    }
}

/// The files of one root.
#[derive(Clone, Debug)]
pub struct Vault {
    layout: Layout,
    policy: Arc<PrivacyPolicy>,
    dir: Arc<RootedDir>,
}

impl Vault {
    /// Returns the vault of a root with the default privacy policy.
    pub fn new(layout: Layout) -> Self {
        let dir = Arc::new(RootedDir::new(&layout));
        Self { layout, policy: Arc::default(), dir }
    }

    /// Returns the vault of a root with its configuration.
    ///
    /// Fails if a configured privacy rule is invalid.
    pub(crate) fn for_root(root: &RootSettings) -> Result<Self, PrivacyPolicyError> {
        let memory_dir = root.memory_dir.to_string_lossy();
        let layout = Layout::new(root.path.clone(), &memory_dir)
            .with_curated(root.curated.clone())
            .with_wisdom_block(root.wisdom_block.clone());
        let policy = PrivacyPolicy::new(&root.settings.privacy, root.secret_rules.as_ref())?;
        Ok(Self { policy: Arc::new(policy), ..Self::new(layout) })
    }

    /// Returns the configured privacy policy.
    pub fn policy(&self) -> &Arc<PrivacyPolicy> {
        &self.policy
    }

    /// Returns the paths of the files.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Opens a folder; `action` appears in the error.
    pub(crate) fn open_folder(
        &self,
        action: &'static str,
        relative: &str,
    ) -> Result<DirHandle, VaultError> {
        let failed = |e| folder_error(action, &self.layout.full(relative), e);
        self.dir.open_folder(relative).map_err(failed)
    }

    /// Opens the folder of a file, and returns it with the file's name in it.
    pub(crate) fn open_parent<'a>(
        &self,
        action: &'static str,
        relative: &'a str,
    ) -> Result<(DirHandle, &'a str), VaultError> {
        let (dir, name) = split_path(relative);
        Ok((self.open_folder(action, dir)?, name))
    }
}

/// Splits a path into folder and name; the folder of a file in the root is empty.
pub(crate) fn split_path(relative: &str) -> (&str, &str) {
    relative.rsplit_once('/').unwrap_or(("", relative))
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> VaultError {
    VaultError::Io { action, path: path.to_owned(), source }
}

/// Returns the error for a folder, or a file in it, that cannot be opened.
pub(crate) fn folder_error(action: &'static str, path: &Path, source: io::Error) -> VaultError {
    if rooted_dir::is_link(&source) {
        return VaultError::NotAFile { path: path.to_owned(), what: "a symbolic link" };
    }
    io_error(action, path, source)
}

#[cfg(test)]
mod fixture {
    use std::{
        fs::{self, File},
        io::Write as _,
    };

    use super::*;

    pub(crate) fn vault() -> (tempfile::TempDir, Vault) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("memory")).unwrap();
        (dir, Vault::new(Layout::new(root, "memory")))
    }

    pub(crate) fn put(vault: &Vault, path: &str, bytes: &[u8]) {
        let full = vault.layout().full(path);
        let mut file = File::create(full).unwrap();
        file.write_all(bytes).unwrap();
    }

    pub(crate) fn names(vault: &Vault, dir: &str) -> Vec<String> {
        vault.names_in(dir, &mut Vec::new()).unwrap()
    }
}
