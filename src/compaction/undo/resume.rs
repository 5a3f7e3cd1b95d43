//! The record of an undo in progress, kept in the private folder from before the first change until
//! the runs are recorded as undone.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::UndoRequest;
use crate::compaction::error::CompactionError;
use crate::store::{
    db::lineage::{
        Lineage, LineageError,
        jobs::{RunId, RunRow},
    },
    fs::vault::{Vault, VaultError},
};

/// A run that is being undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UndoNote {
    run: i64,
    /// When that run began, since its number may belong to another run in a new database.
    started: String,
    with_later: bool,
    /// The run that undoes it.
    by: i64,
}

/// Returns the latest unfinished undo.
pub(crate) fn unfinished(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Option<UndoRequest>, LineageError> {
    Ok(all_unfinished(vault, lineage)?.into_iter().next())
}

/// Returns a message if an undo is not finished.
pub(crate) fn unfinished_message(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<Option<String>, LineageError> {
    let begun = lineage.map(|it| unfinished(vault, it)).transpose()?.flatten();
    let run = begun.and_then(|it| it.run);
    Ok(run.map(|it| {
        format!("undoing run {it} is not finished; `memoird undo` or the next run continues it")
    }))
}

/// Returns all unfinished undos, latest first.
pub(super) fn all_unfinished(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Vec<UndoRequest>, LineageError> {
    let request =
        |it: UndoNote| UndoRequest { run: Some(RunId(it.run)), with_dependents: it.with_later };
    Ok(unfinished_notes(vault, lineage)?.into_iter().rev().map(request).collect())
}

/// Records that a run is being undone.
pub(super) fn add_note(
    vault: &Vault,
    lineage: &Lineage,
    run: &RunRow,
    with_later: bool,
    by: RunId,
) -> Result<(), CompactionError> {
    let mut notes = unfinished_notes(vault, lineage)?;
    notes.retain(|it| it.run != run.id.0);
    notes.push(UndoNote { run: run.id.0, started: stamp(run.started), with_later, by: by.0 });
    Ok(write_notes(vault, &notes)?)
}

/// Drops the records of finished undos.
pub(super) fn drop_finished_notes(vault: &Vault, lineage: &Lineage) -> Result<(), CompactionError> {
    Ok(write_notes(vault, &unfinished_notes(vault, lineage)?)?)
}

fn unfinished_notes(vault: &Vault, lineage: &Lineage) -> Result<Vec<UndoNote>, LineageError> {
    // An unreadable record is ignored: the same command with the number of the run continues too.
    let text = vault.read_text(&vault.layout().undo_state()).ok().flatten();
    let notes = text.and_then(|it| serde_json::from_str::<Vec<UndoNote>>(&it).ok());
    let mut notes = notes.unwrap_or_default();
    if notes.is_empty() {
        return Ok(notes);
    }
    let runs = lineage.last_runs(u32::MAX)?;
    let taken = lineage.undone_runs()?;
    notes.retain(|note| {
        let is_there =
            runs.iter().any(|it| it.id.0 == note.run && stamp(it.started) == note.started);
        is_there && !taken.iter().any(|(by, taken)| taken.0 == note.run && by.0 >= note.by)
    });
    Ok(notes)
}

fn write_notes(vault: &Vault, notes: &[UndoNote]) -> Result<(), VaultError> {
    let path = vault.layout().undo_state();
    match serde_json::to_string(notes) {
        Ok(text) if !notes.is_empty() => vault.write_private(&path, &text),
        _ => vault.remove_private(&path),
    }
}

fn stamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339()
}
