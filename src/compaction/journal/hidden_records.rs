//! Puts back a hidden file that was lost: the database has each version of both files as a whole.

use super::{Journal, records};
use crate::compaction::error::CompactionError;
use crate::memory::joined;

impl Journal<'_, '_> {
    /// Restores the record of `WISDOM.md` if its hidden file is missing, unusable, or of an older version.
    ///
    /// A hidden file that belongs to its visible one is right, whoever wrote it. With the newest record, a visible
    /// file that differs was changed by somebody, even if it is as it once was: a bullet may have been deleted. It is
    /// compared with the record by the hashes in it, and nothing is written here.
    pub(super) fn restore_hidden_record(&mut self) -> Result<(), CompactionError> {
        let path = self.context.vault.layout().wisdom();
        if self.lost_record(&path)?.is_none() {
            return Ok(());
        }
        // Under the lock, so that the two files are not just being written.
        let lock = self.context.write_lock()?;
        if let Some(record) = self.lost_record(&path)? {
            self.context.vault.write_record(&lock, &path, record.as_bytes())?;
        }
        Ok(())
    }

    /// Returns the record that a file should have, from its versions.
    fn lost_record(&self, path: &str) -> Result<Option<String>, CompactionError> {
        let text = match self.context.vault.read_text(path) {
            Ok(Some(text)) => text,
            Err(error) if error.is_read_failure() => return Err(error.into()),
            // The scan reports a file that cannot be read.
            Ok(None) | Err(_) => return Ok(None),
        };
        let (visible, record) = joined::split(&text);
        if record.is_some_and(|it| joined::belongs(it, visible.as_bytes())) {
            return Ok(None);
        }
        if records::holds_record(path, visible) {
            return Ok(None);
        }
        let mut newest = None;
        for version in self.context.lineage.versions_of(path)?.iter().rev() {
            let Some(hash) = version.hash else { continue };
            let Some(bytes) = self.context.lineage.content(hash)? else { continue };
            let then = String::from_utf8_lossy(&bytes).into_owned();
            let (visible_then, record_then) = joined::split(&then);
            if newest.is_none() && record.is_some() && record == record_then {
                return Ok(None);
            }
            if visible_then == visible {
                // Without a record then, it is of an older form, or all of it was the user's.
                return Ok(record_then.filter(|it| record != Some(*it)).map(str::to_owned));
            }
            newest.get_or_insert_with(|| record_then.map(str::to_owned));
        }
        Ok(newest.flatten().filter(|_| record.is_none()))
    }
}
