//! `MEMORY.md`, the index of the typed memories.

use crate::compaction::{
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
    },
    snapshot::RootSnapshot,
};
use crate::{
    memory::index,
    store::{
        db::lineage::jobs::RunId,
        fs::{
            inventory::Inventory,
            layout::{FileKind, Layout},
            vault::VaultError,
        },
    },
};

/// Returns whether a merge conflict in the index or in a memory must be resolved first: the index would lose
/// what a person wrote in it, or the memory.
pub(crate) fn awaits_merge(inventory: &Inventory, layout: &Layout) -> bool {
    inventory
        .merge_conflicts()
        .any(|it| matches!(layout.kind_of(&it.path), Some(FileKind::Index | FileKind::Memory)))
}

/// Updates `MEMORY.md` from the typed memories, and returns its path if it had to be written.
pub(crate) fn refresh_index(
    context: &mut RunContext<'_>,
    run: Option<RunId>,
    view: &RootSnapshot,
) -> Result<Option<String>, CompactionError> {
    let inventory = &view.inventory;
    let layout = context.vault.layout();
    // A block of `WISDOM.md` takes the place of the index.
    if layout.wisdom_block() == Some(&layout.index()[..]) {
        return Ok(None);
    }
    let is_needed = !inventory.memories.is_empty() || inventory.index.is_some();
    if !is_needed || awaits_merge(inventory, layout) {
        return Ok(None);
    }
    let text = index::render(inventory.index.as_deref(), &inventory.memories, &|it| {
        inventory.rules.sanitize_label(it)
    });
    if inventory.index.as_deref() == Some(&text) {
        return Ok(None);
    }
    let path = context.vault.layout().index();
    let current = inventory.index.clone();
    let file = FileWrite { path: path.clone(), text: Some(text), current };
    match Journal::new(context).write_files(run, None, &[file], &RecordedChanges::default()) {
        Ok(()) => Ok(Some(path)),
        Err(JobFailure::Critical(error)) => Err(error),
        // A person is writing it; the next run records that. If something else has its name, the
        // scan reports it.
        Err(JobFailure::Vault(VaultError::Changed { .. } | VaultError::NotAFile { .. })) => {
            Ok(None)
        }
        Err(JobFailure::Vault(error)) => Err(error.into()),
        Err(_) => Ok(None),
    }
}
