//! Adds lines to a file that others may add to.

use std::{
    fs::File,
    io::{self, Write as _},
};

use rustix::fs::OFlags;

use super::{Vault, VaultError, folder_error, write::NewFileAccess};
use crate::store::{
    failpoint,
    fs::{lock::WriteLock, rooted_dir::EntryMetadata},
};

impl Vault {
    /// Appends to a file of lines and returns after fsync; creates it with `head` if it does not exist.
    ///
    /// After a crash a new file is complete or absent. On a full disk nothing is added, if the file system can
    /// reserve space beforehand.
    pub(crate) fn append(
        &self,
        lock: &WriteLock,
        target: &str,
        head: &str,
        text: &str,
        private: bool,
    ) -> Result<(), VaultError> {
        let full = self.layout.full(target);
        let existing = loop {
            if let Some(found) = self.read(target)? {
                break found.refuse_hard_link(&full)?;
            }
            let bytes = format!("{head}{text}");
            let access = if private { NewFileAccess::OwnerOnly } else { NewFileAccess::Inherited };
            let staged =
                self.stage_with(target, &Self::new_temp_name(), bytes.as_bytes(), access)?;
            match self.publish(lock, staged, None) {
                // An agent created the log of the day in between.
                Err(VaultError::Changed { .. }) => {}
                result => return result,
            }
        };
        let failed = |e: io::Error| folder_error("write", &full, e);
        let (folder, name) = self.open_parent("write", target)?;
        let mut file = folder.open(name, OFlags::WRONLY | OFlags::APPEND).map_err(failed)?;
        // The file may have been swapped since it was read.
        let opened = EntryMetadata::from(&file.metadata().map_err(failed)?);
        if !opened.is_file() || opened.stamp.inode != existing.stamp.inode {
            return Err(VaultError::Changed { path: target.into() });
        }
        let mut bytes = Vec::new();
        // Without a final newline the first new line would be joined to the last old one.
        if !existing.bytes.is_empty() && !existing.bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(text.as_bytes());
        failpoint::at("vault.append.reserve").map_err(failed)?;
        reserve_space(&file, existing.stamp.size, bytes.len() as u64).map_err(failed)?;
        failpoint::at("vault.append.write").map_err(failed)?;
        file.write_all(&bytes).map_err(failed)?;
        failpoint::at("vault.append.sync").map_err(failed)?;
        file.sync_all().map_err(failed)
    }
}

/// Reserves `bytes` behind the end of a file. A write that stops in the middle would leave half an entry,
/// which cannot be removed while others may append too.
fn reserve_space(file: &File, end: u64, bytes: u64) -> io::Result<()> {
    use rustix::{fs::FallocateFlags, io::Errno};
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, end, bytes) {
        // This file system cannot reserve space.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        result => result.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixture::{put, vault},
        *,
    };

    #[test]
    fn appending_keeps_the_text_and_ends_its_last_line() {
        let (_dir, vault) = vault();
        let lock = WriteLock::acquire(vault.layout().root()).unwrap();
        vault.append(&lock, "memory/2026-04-01.md", "# 2026-04-01\n\n", "- one\n", false).unwrap();
        put(&vault, "memory/2026-04-02.md", b"no newline");
        vault.append(&lock, "memory/2026-04-02.md", "# head\n", "- two\n", false).unwrap();
        assert_eq!(
            vault.read_text("memory/2026-04-01.md").unwrap().unwrap(),
            "# 2026-04-01\n\n- one\n"
        );
        assert_eq!(
            vault.read_text("memory/2026-04-02.md").unwrap().unwrap(),
            "no newline\n- two\n"
        );
    }
}
