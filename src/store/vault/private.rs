//! Writes files of the private folder, `.memoird/`, which is closed to others.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
};

use super::{Vault, VaultError, io_error, sync_dir};
use crate::store::failpoint;

impl Vault {
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
}
