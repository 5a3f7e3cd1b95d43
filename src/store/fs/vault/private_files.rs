//! Writes files of the private folder `.memoird/`, which only the owner may read.

use std::io::{self, Write as _};

use rustix::fs::{OFlags, RenameFlags};

use super::{Vault, VaultError, folder_error, io_error, split_path};
use crate::store::{failpoint, fs::layout::PRIVATE_DIR};

impl Vault {
    /// Creates the private folder.
    ///
    /// Returns [`VaultError::Io`] if it cannot be created, and [`VaultError::NotAFile`] if it is a link: private
    /// files must be in the root.
    pub(crate) fn create_private_dir(&self) -> Result<(), VaultError> {
        let failed = |e| folder_error("write", &self.layout.private_dir(), e);
        self.create_folder("")?;
        match self.open_folder("write", "")?.create_folder(PRIVATE_DIR) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(failed)?,
        }
        self.open_folder("write", PRIVATE_DIR)?.set_mode(0o700).map_err(failed)
    }

    /// Writes a file of the private folder atomically: after a crash it has the old or the new text.
    pub(crate) fn write_private(&self, relative: &str, text: &str) -> Result<(), VaultError> {
        self.write_private_bytes(relative, text.as_bytes())
    }

    /// Like [`Self::write_private`], for a file that may not be text.
    pub(crate) fn write_private_bytes(
        &self,
        relative: &str,
        bytes: &[u8],
    ) -> Result<(), VaultError> {
        self.create_private_dir()?;
        let (folder, name) = self.open_parent("write", relative)?;
        let temp = temp_name(name);
        let write = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
            let mut file = folder.open(&temp, flags)?;
            failpoint::at("vault.private.write")?;
            file.write_all(bytes)?;
            file.sync_all()?;
            failpoint::at("vault.private.rename")?;
            folder.rename(&temp, &folder, name, RenameFlags::empty())
        };
        let failed = |e| folder_error("write", &self.layout.full(relative), e);
        write().map_err(failed)?;
        folder.sync().map_err(failed)
    }

    /// Removes a file of the private folder, if it exists, and its temporary file.
    pub(crate) fn remove_private(&self, relative: &str) -> Result<(), VaultError> {
        let folder = match self.open_folder("remove", split_path(relative).0) {
            Err(error) if error.is_missing() => return Ok(()),
            result => result?,
        };
        let name = split_path(relative).1;
        let failed = |e| io_error("remove", &self.layout.full(relative), e);
        let mut removed = false;
        for name in [&temp_name(name), name] {
            match folder.remove(name) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                result => result.map_err(failed)?,
            }
            removed = true;
        }
        if removed { folder.sync().map_err(failed) } else { Ok(()) }
    }
}

/// Returns the temporary name of a file: `forgetting.new` for `forgetting.json`.
fn temp_name(name: &str) -> String {
    format!("{}.new", name.rsplit_once('.').map_or(name, |(stem, _)| stem))
}
