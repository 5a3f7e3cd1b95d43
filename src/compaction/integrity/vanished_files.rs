//! The circuit breaker for vanished files: more are gone than a person is likely to
//! have removed on purpose.
//!
//! After an unmounted folder, a failed sync, or a wrong disk, continuing would treat all missing
//! files as deleted. So a run stops before it reconciles anything, until the files are back or a
//! person says that they are gone for good. A few vanished files are reconciled one by one as
//! usual.

use std::{collections::BTreeSet, path::Path};

use crate::compaction::{
    context::RunContext,
    error::{CompactionError, VanishedFiles},
    journal::decision_file::DecisionFile,
    reconcile::{edits::device_of_memory_folder, renames::detect_renames},
    snapshot::known_files,
};
use crate::{
    memory::{address::Stem, decision::Decisions, decision_merge::missing_lines},
    store::{
        db::lineage::Lineage,
        fs::{layout::Layout, private_folder, vault::Vault},
    },
};

/// A person must confirm from this share of the known files on …
const SHARE_MAX_PERCENT: usize = 20;
/// … if it is at least this many files, …
const GONE_SHARE_MIN: usize = 5;
/// … or from this many files on, whatever their share.
const GONE_MAX: usize = 50;
/// The most names in the message.
const EXAMPLES_MAX: usize = 3;

/// A file that is recorded in the database.
struct RecordedFile {
    path: String,
    /// The stem, for a log.
    stem: Option<Stem>,
    is_there: bool,
}

/// Determines whether enough known files are gone that a person must confirm. Reads files only in
/// that case, to find renamed logs by their bytes.
pub(crate) fn find_vanished(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Option<VanishedFiles>, CompactionError> {
    let layout = vault.layout();
    let mut known: Vec<RecordedFile> = Vec::new();
    let mut listings = vault.folder_listings();
    for (stem, path) in lineage.log_paths()? {
        let is_there = listings.exists(&path)
            || layout.archive_path(&stem).is_some_and(|it| listings.exists(&it));
        known.push(RecordedFile { path, stem: Some(stem), is_there });
    }
    for path in lineage.documents()?.into_keys() {
        let is_there = listings.exists(&path);
        known.push(RecordedFile { path, stem: None, is_there });
    }
    // Files that we were about to remove before a crash are not missing.
    let leaving: BTreeSet<String> = lineage
        .open_intents()?
        .into_iter()
        .filter(|it| it.new_hash.is_none())
        .map(|it| it.target)
        .collect();
    known.retain(|it| it.is_there || !leaving.contains(&it.path));
    let before = lineage.device_of(layout.memory_dir())?;
    let other_device = before.is_some() && before != device_of_memory_folder(layout);
    if !needs_confirmation(&known, layout, other_device) {
        return Ok(None);
    }
    let inventory = vault.scan(&known_files(lineage)?)?.inventory;
    let renames = detect_renames(vault, lineage, &inventory)?;
    for it in known.iter_mut().filter(|it| !it.is_there) {
        it.is_there = it.stem.as_ref().is_some_and(|stem| renames.contains_key(stem));
    }
    if !needs_confirmation(&known, layout, other_device) {
        return Ok(None);
    }
    // The last scan recorded where a log was; its name in the lineage does not depend on that.
    let seen = lineage.scanned_files()?;
    let stood = |path: &str| {
        let archived = layout.stem_at(path).and_then(|it| layout.archive_path(&it));
        archived.filter(|it| seen.contains_key(Path::new(it))).unwrap_or_else(|| path.to_owned())
    };
    let gone = known.iter().filter(|it| !it.is_there);
    let examples = gone.clone().take(EXAMPLES_MAX).map(|it| stood(&it.path)).collect();
    Ok(Some(VanishedFiles {
        gone: gone.count(),
        known: known.len(),
        examples,
        device_changed: other_device,
    }))
}

/// Returns whether a person must confirm.
fn needs_confirmation(known: &[RecordedFile], layout: &Layout, other_device: bool) -> bool {
    let gone = known.iter().filter(|it| !it.is_there).count();
    let in_folder = |it: &RecordedFile| it.path != layout.wisdom();
    let emptied = known.iter().all(|it| !it.is_there || !in_folder(it));
    let share = gone * 100 > known.len() * SHARE_MAX_PERCENT && gone >= GONE_SHARE_MIN;
    gone > 0 && (emptied || other_device || share || gone > GONE_MAX)
}

/// Returns what is wrong with the decisions file if decisions were lost. An unreadable last line
/// does not count: a crash cut it off before anything depended on it.
pub(crate) fn decisions_damage(vault: &Vault) -> Result<Option<String>, CompactionError> {
    let path = vault.layout().decisions();
    let copy = private_folder::decisions_copy(vault.layout());
    let Some(found) = vault.read(&path)? else {
        return Ok(copy.map(|_| format!("`{path}` is missing")));
    };
    let text = String::from_utf8_lossy(&found.bytes);
    let copy = String::from_utf8_lossy(copy.as_deref().unwrap_or_default());
    let known = Decisions::parse(&text);
    // Words that are being forgotten are removed from the copy first.
    let missing = missing_lines(&text, &copy);
    let had_key = Decisions::parse(&copy).has_key() && missing.is_none();
    // Undone work needs no key.
    if !known.has_key() && (had_key || !known.unreadable().is_empty()) {
        return Ok(Some(format!("`{path}` has lost its key")));
    }
    Ok(missing.is_none().then(|| format!("`{path}` has lost decisions")))
}

/// Returns an error before missing files count as deleted by a person: if too many of them are
/// missing, unless that was accepted, or if the whole folder is, which nobody can accept.
pub(crate) fn refuse_if_vanished(
    context: &RunContext<'_>,
    accepted: bool,
) -> Result<(), CompactionError> {
    let layout = context.vault.layout();
    let path = layout.full(layout.memory_dir());
    if !path.is_dir() {
        let logs = context.lineage.log_paths()?.len();
        return if logs > 0 { Err(CompactionError::FolderMissing { path, logs }) } else { Ok(()) };
    }
    refuse_damaged_decisions(context, accepted)?;
    match find_vanished(context.vault, context.lineage)?.filter(|_| !accepted) {
        Some(missing) => Err(CompactionError::FilesVanished(missing)),
        None => Ok(()),
    }
}

/// Returns an error before lost decisions count as never made: what people deleted, undid, or
/// had forgotten would come back.
fn refuse_damaged_decisions(
    context: &RunContext<'_>,
    accepted: bool,
) -> Result<(), CompactionError> {
    match decisions_damage(context.vault)? {
        Some(_) if accepted => DecisionFile::new(context).accept(),
        Some(why) => Err(CompactionError::DecisionsUnreadable { why }),
        None => DecisionFile::new(context).merge_copy(),
    }
}
