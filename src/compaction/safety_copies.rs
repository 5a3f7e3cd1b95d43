//! Copies beside the database and the decisions, by which a loss of either is noticed.

use super::error::CompactionError;
use crate::{
    memory::{decision::Decisions, decision_merge::missing_lines},
    store::{
        db::lineage::Lineage,
        fs::{
            private_folder::{self, CommitMarker},
            vault::{Vault, VaultError},
        },
    },
};

/// Writes the last committed run beside the database, and updates the copy of the decisions.
pub(crate) fn update_commit_marker(
    vault: &Vault,
    lineage: &mut Lineage,
) -> Result<(), CompactionError> {
    let layout = vault.layout();
    let failed = |source| VaultError::Io { action: "write", path: layout.private_dir(), source };
    if let Some((run, seal)) = lineage.last_ended_run()? {
        let said = CommitMarker { run: run.0, checksum: seal };
        if private_folder::read_commit_marker(layout) != Some(said) {
            private_folder::write_commit_marker(layout, said).map_err(failed)?;
        }
    }
    update_decisions_copy(vault)
}

pub(crate) fn update_decisions_copy(vault: &Vault) -> Result<(), CompactionError> {
    let layout = vault.layout();
    let Some(now) = vault.read(&layout.decisions())? else { return Ok(()) };
    let copy = private_folder::decisions_copy(layout);
    let text = String::from_utf8_lossy(&now.bytes);
    // A file that lacks lines of the copy is merged or reported, which needs the copy.
    let has_all = |it: &Vec<u8>| {
        let missing = missing_lines(&text, &String::from_utf8_lossy(it)).map(|it| it.is_empty());
        now.bytes != *it && missing == Some(true)
    };
    if copy.as_ref().is_none_or(has_all) && Decisions::parse(&text).unreadable().is_empty() {
        private_folder::write_decisions_copy(layout, &now.bytes).map_err(|source| {
            VaultError::Io { action: "write", path: layout.private_dir(), source }
        })?;
    }
    Ok(())
}
