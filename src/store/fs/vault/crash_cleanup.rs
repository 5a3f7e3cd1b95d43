//! Removes temporary files that a crash left, and saves a copy of each.

use std::{
    collections::BTreeSet,
    io::{self, Write as _},
    path::PathBuf,
};

use rustix::fs::OFlags;

use super::{Vault, VaultError, folder_error, io_error, read::read_in, split_path};
use crate::{
    memory::{hash::ContentHash, period::Grain},
    store::{
        failpoint,
        fs::{layout, lock::WriteLock},
    },
};

/// The folder of these copies in the private folder.
pub const REPLACED_DIR: &str = "replaced";

impl Vault {
    /// Removes temporary files that a crash left, and returns how many. Copies stay in the private folder,
    /// because one may hold what a person had just written.
    pub(crate) fn remove_temp_files(&self, _lock: &WriteLock) -> Result<usize, VaultError> {
        let temp_files = self.temp_files()?;
        for name in &temp_files {
            let path = self.layout.full(name);
            let (folder, file) = self.open_parent("read", name)?;
            if let Some(found) = read_in(&folder, file, &path)? {
                self.save_copy(name, &found.bytes)?;
                let failed = |e| io_error("remove", &path, e);
                failpoint::at("vault.sweep.kept").map_err(failed)?;
                folder.remove(file).map_err(failed)?;
                failpoint::at("vault.sweep.removed").map_err(failed)?;
            }
        }
        Ok(temp_files.len())
    }

    /// Lists the temporary files, relative to the root: files being written, or left by a crash.
    pub(crate) fn temp_files(&self) -> Result<BTreeSet<String>, VaultError> {
        let mut dirs = vec![
            String::new(),
            self.layout.memory_dir().to_owned(),
            self.layout.summary_dir(Grain::Week),
            self.layout.summary_dir(Grain::Month),
        ];
        // If the archive cannot be listed, the scan reports it.
        let archive = self.layout.archive_dir();
        let years = self.names_or_problem(&archive, &mut Vec::new())?;
        let years = years.iter().filter(|it| layout::is_year(it));
        let years = years.map(|it| format!("{archive}/{it}"));
        dirs.extend(years.filter(|it| self.open_folder("read", it).is_ok()));
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

    /// Saves a copy of a temporary file, named by its hash, in the private folder, and returns the copy's path.
    fn save_copy(&self, target: &str, bytes: &[u8]) -> Result<PathBuf, VaultError> {
        self.create_private_dir()?;
        let dir = self.layout.private_dir().join(REPLACED_DIR);
        let name = format!("{}-{}", ContentHash::of(bytes).hex16(), split_path(target).1);
        let path = dir.join(&name);
        let failed = |e| folder_error("write", &path, e);
        let private = self.open_folder("write", layout::PRIVATE_DIR)?;
        match private.create_folder(REPLACED_DIR) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            result => result.map_err(failed)?,
        }
        let folder = private.open_folder(REPLACED_DIR).map_err(failed)?;
        let save = || -> io::Result<()> {
            folder.set_mode(0o700)?;
            let mut file = folder.open(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC)?;
            file.write_all(bytes)?;
            failpoint::at("vault.keep.written")?;
            file.sync_all()?;
            failpoint::at("vault.keep.synced")
        };
        save().map_err(failed)?;
        folder.sync().map_err(failed)?;
        Ok(path)
    }

    /// Lists the names of the copies that [`Self::remove_temp_files`] saved.
    pub(crate) fn saved_copies(&self) -> Result<Vec<String>, VaultError> {
        self.names_in(&format!("{}/{REPLACED_DIR}", layout::PRIVATE_DIR), &mut Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{names, vault},
        *,
    };

    #[test]
    fn temporary_files_of_a_crash_are_removed() {
        let (_dir, vault) = vault();
        let staged =
            vault.stage("memory/weekly/2026-W14.md", ".memoird-tmp-1", b"half done").unwrap();
        std::mem::forget(staged);
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        assert_eq!(vault.remove_temp_files(&lock).unwrap(), 1);
        assert!(names(&vault, "memory/weekly").is_empty());
    }
}
