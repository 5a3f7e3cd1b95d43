//! The files of a root: the only code that reads and writes them.
//!
//! - [`read`]: one file at a time, and what stands in a folder.
//! - [`scan`]: all of them at once.
//! - [`stamps`]: whether any of them changed, without reading one.
//! - [`mod@write`]: a file is made, replaced, or removed whole.
//! - [`append`]: a line is added to a log.
//! - [`archive`]: logs move, and keep their bytes.
//! - [`private_files`]: the folder `.memoird/`.
//! - [`crash_cleanup`]: what a crash left is kept and cleared away.
//! - [`settings_files`]: files that are no memory, anywhere.
//!
//! # What a crash can and cannot do
//!
//! A generated file is replaced whole: temporary file in the same folder, fsync, compare with what
//! stands there, exchange the two names, fsync of the folder, read back. After a crash at any
//! point the old or the new bytes stand under the name, never a part of either; a temporary file
//! may be left, which the next run removes. That the change is recorded is the journal's concern
//! ([`crate::store::db::lineage`]), not this module's.
//!
//! # What is not followed
//!
//! All is opened through [`crate::store::fs::rooted_dir`], which says which links are followed: none but those of
//! the memory folder and the archive. Only regular files are read; a link, a pipe, a device, or a
//! folder under the name of a log is reported and left alone, and so is a log with a second name,
//! which may stand outside of the root.

pub mod append;
pub mod archive;
pub mod crash_cleanup;
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

/// A log larger than this is reported and left alone: nobody writes that much in a day by hand,
/// and a fold must fit into memory.
pub const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

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
    /// A log has a second name, perhaps outside of the root.
    #[error("`{}` has a second name (a hard link), under which others may change it; it is left alone until it is copied into a file of its own", path.display())]
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
    ReadBackMismatch {
        /// The file.
        path: PathBuf,
    },
}

impl VaultError {
    /// Returns whether nothing stands under the name.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether the system failed to read what may be well: a bad disk, too many open files.
    ///
    /// What is gone, what this user may not read, and what is no file or folder is not meant.
    pub fn is_read_failure(&self) -> bool {
        use io::ErrorKind as Kind;
        let known = [Kind::NotFound, Kind::PermissionDenied, Kind::NotADirectory];
        matches!(self, Self::Io { action: "read", source, .. } if !known.contains(&source.kind()))
    }

    /// Returns whether a write was refused, as opposed to a file that cannot be read.
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
    /// Looks at the root described by `layout`, of which is seen what is seen without any
    /// configuration.
    pub fn new(layout: Layout) -> Self {
        let beneath = Arc::new(RootedDir::new(&layout));
        Self { layout, policy: Arc::default(), dir: beneath }
    }

    /// Looks at a root as it is run.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a person's rules of what may be seen.
    pub fn for_root(root: &RootSettings) -> Result<Self, PrivacyPolicyError> {
        let memory_dir = root.memory_dir.to_string_lossy();
        let layout = Layout::new(root.path.clone(), &memory_dir);
        let policy = PrivacyPolicy::new(&root.settings.privacy, root.secret_rules.as_ref())?;
        Ok(Self { policy: Arc::new(policy), ..Self::new(layout) })
    }

    /// Returns what the configuration says of what may be seen.
    pub fn policy(&self) -> &Arc<PrivacyPolicy> {
        &self.policy
    }

    /// Returns where the files stand.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}

impl Vault {
    /// Opens a folder; `action` says what for.
    pub(crate) fn open_folder(
        &self,
        action: &'static str,
        relative: &str,
    ) -> Result<DirHandle, VaultError> {
        let failed = |e| folder_error(action, &self.layout.full(relative), e);
        self.dir.open_folder(relative).map_err(failed)
    }

    /// Opens the folder that a file stands in, and returns the name that it has there.
    pub(crate) fn open_parent<'a>(
        &self,
        action: &'static str,
        relative: &'a str,
    ) -> Result<(DirHandle, &'a str), VaultError> {
        let (dir, name) = split_path(relative);
        Ok((self.open_folder(action, dir)?, name))
    }
}

/// Cuts a path at its last name; the folder of what stands in the root is empty.
pub(crate) fn split_path(relative: &str) -> (&str, &str) {
    relative.rsplit_once('/').unwrap_or(("", relative))
}

pub(crate) fn io_error(action: &'static str, path: &Path, source: io::Error) -> VaultError {
    VaultError::Io { action, path: path.to_owned(), source }
}

/// Says why a folder, or a file in it, cannot be opened.
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
