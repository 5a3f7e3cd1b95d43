//! Puts back a hidden file that was lost: the database has each version of both files as a whole.

use std::collections::BTreeMap;

use super::{Journal, records};
use crate::compaction::error::CompactionError;
use crate::{
    memory::{hash::ContentHash, joined},
    store::{db::lineage::Lineage, fs::vault::VaultError},
};

impl Journal<'_, '_> {
    /// Restores the record of each generated file whose hidden file is missing, unusable, or of an older version.
    ///
    /// A hidden file that belongs to its visible one is right, whoever wrote it. With the newest record, a visible
    /// file that differs was changed by somebody, even if it is as it once was: a bullet may have been deleted. It is
    /// compared with the record by the hashes in it, and nothing is written here.
    pub(super) fn restore_hidden_records(&mut self) -> Result<(), CompactionError> {
        let layout = self.context.vault.layout();
        let mut recorded: BTreeMap<String, Option<ContentHash>> = self
            .context
            .lineage
            .documents()?
            .into_iter()
            .map(|(path, it)| (path, Some(it.1)))
            .collect();
        recorded.entry(layout.wisdom()).or_default();
        recorded.retain(|path, _| layout.hidden_path(path).is_some());
        let folders = self.context.vault.folder_cache();
        for (path, hash) in recorded {
            if self.unrecorded(&path, hash, folders.read_text(&path))?.is_none() {
                continue;
            }
            // Under the lock, so that the two files are not just being written.
            let lock = self.context.write_lock()?;
            let text = self.context.vault.read_text(&path);
            if let Some(record) = self.unrecorded(&path, hash, text)? {
                self.context.vault.write_record(&lock, &path, record.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Returns the record that a file should have, if the files are not the recorded ones.
    fn unrecorded(
        &self,
        path: &str,
        recorded: Option<ContentHash>,
        text: Result<Option<String>, VaultError>,
    ) -> Result<Option<String>, CompactionError> {
        if let (Some(recorded), Ok(Some(text))) = (recorded, &text)
            && recorded == ContentHash::of(text)
        {
            return Ok(None);
        }
        lost_record(self.context.lineage, path, text)
    }
}

/// Returns the record that a file should have, from its versions.
pub(crate) fn lost_record(
    lineage: &Lineage,
    path: &str,
    text: Result<Option<String>, VaultError>,
) -> Result<Option<String>, CompactionError> {
    let text = match text {
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
    for version in lineage.versions_of(path)?.iter().rev() {
        let Some(hash) = version.hash else { continue };
        let Some(bytes) = lineage.content(hash)? else { continue };
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
