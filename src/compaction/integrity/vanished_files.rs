//! The breaker: files that are gone in such a number that no person is likely to have meant it.
//!
//! A folder that was not mounted, a sync that went wrong, a wrong disk: to go on would take all that
//! is missing for deleted. So a pass stops before it takes notice of anything, until the files are
//! back or a person says that they are gone for good. A few files that vanish are noticed one by
//! one, as ever.

use std::{collections::BTreeSet, os::unix::fs::MetadataExt as _, path::Path};

use crate::compaction::{
    CompactionError, Compactor, JobFailure, RootSnapshot, journal::commit::RecordedChanges,
    known_files, reconcile::renames::detect_renames,
};
use crate::{
    memory::{address::Stem, decision::Decisions},
    store::{
        db::lineage::Lineage,
        fs::{layout::Layout, private_folder, vault::Vault},
    },
};

/// From this share of the known files on …
const SHARE_MAX_PERCENT: usize = 20;
/// … if it is at least so many, …
const GONE_SHARE_MIN: usize = 5;
/// … or from so many on, whatever their share, it is asked.
const GONE_MAX: usize = 50;
/// More names than this say nothing more.
const EXAMPLES_MAX: usize = 3;

/// Known files that are not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VanishedFiles {
    /// How many.
    pub gone: usize,
    /// Of how many.
    pub known: usize,
    /// Some of them, relative to the root.
    pub examples: Vec<String>,
    /// Whether the memory folder lies on another device than it did.
    pub device_changed: bool,
}

impl std::fmt::Display for VanishedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gone, known, examples, device_changed: other_device } = self;
        write!(f, "{gone} of {known} known files are gone ({}", examples.join(", "))?;
        match gone - examples.len() {
            0 => f.write_str(")")?,
            more => write!(f, ", and {more} more)")?,
        }
        if *other_device {
            f.write_str(", and the memory folder is on another device than it was")?;
        }
        Ok(())
    }
}

/// A file that the database knows.
struct RecordedFile {
    path: String,
    /// Of which log, if it is one.
    stem: Option<Stem>,
    is_there: bool,
}

/// Looks whether so many known files are gone that a person is to be asked. Reads no file, unless it
/// comes to that: logs that stand under another name are known by their bytes.
///
/// # Errors
///
/// Returns why the database or the folder could not be read.
pub fn find_vanished(
    vault: &Vault,
    lineage: &Lineage,
) -> Result<Option<VanishedFiles>, CompactionError> {
    let layout = vault.layout();
    let mut known: Vec<RecordedFile> = Vec::new();
    let mut standings = vault.folder_listings();
    for (stem, path) in lineage.log_paths()? {
        let is_there = standings.exists(&path)
            || layout.archive_path(&stem).is_some_and(|it| standings.exists(&it));
        known.push(RecordedFile { path, stem: Some(stem), is_there });
    }
    for path in lineage.documents()?.into_keys() {
        let is_there = standings.exists(&path);
        known.push(RecordedFile { path, stem: None, is_there });
    }
    // What we were about to remove when a crash came is not missing.
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
    // The last walk knows where a log stood; the lineage names it the same wherever that is.
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

/// Returns whether that is so much that a person is asked.
fn needs_confirmation(known: &[RecordedFile], layout: &Layout, other_device: bool) -> bool {
    let gone = known.iter().filter(|it| !it.is_there).count();
    let in_folder = |it: &RecordedFile| it.path != layout.wisdom();
    let emptied = known.iter().all(|it| !it.is_there || !in_folder(it));
    let share = gone * 100 > known.len() * SHARE_MAX_PERCENT && gone >= GONE_SHARE_MIN;
    gone > 0 && (emptied || other_device || share || gone > GONE_MAX)
}

/// A log that was moved to the archive is not gone.
fn is_archived(vault: &Vault, stem: &Stem) -> bool {
    vault.layout().archive_path(stem).is_some_and(|it| vault.exists(&it))
}

/// Numbers of devices are not kept by all systems over a restart, so another one alone says nothing.
fn device_of_memory_folder(layout: &Layout) -> Option<u64> {
    std::fs::metadata(layout.full(layout.memory_dir())).ok().map(|it| it.dev())
}

/// Says what is wrong with the record of decisions, where some that were known in it are not any more.
/// A line behind them that cannot be read is none of those: a crash cut it off, before anything rested
/// on it.
///
/// # Errors
///
/// Returns why the record could not be read.
pub fn decisions_damage(vault: &Vault) -> Result<Option<String>, CompactionError> {
    let path = vault.layout().decisions();
    let copy = private_folder::decisions_copy(vault.layout());
    let Some(found) = vault.read(&path)? else {
        return Ok(copy.map(|_| format!("`{path}` is gone")));
    };
    let parse = |bytes: &[u8]| Decisions::parse(&String::from_utf8_lossy(bytes));
    let known = parse(&found.bytes);
    let had_key = copy.as_deref().map(parse).is_some_and(|it| it.has_key());
    // Work that was taken back is known without a key.
    if !known.has_key() && (had_key || !known.unreadable().is_empty()) {
        return Ok(Some(format!("`{path}` has lost its key")));
    }
    let is_whole = copy.is_none_or(|it| contains_lines_in_order(&found.bytes, &it));
    Ok((!is_whole).then(|| format!("`{path}` lacks decisions that it held")))
}

/// Returns whether all lines of the copy still stand in the record, in their order. What is being
/// forgotten goes from the copy first.
fn contains_lines_in_order(record: &[u8], copy: &[u8]) -> bool {
    let mut lines = record.split(|it| *it == b'\n');
    let mut known = copy.split(|it| *it == b'\n').filter(|it| !it.is_empty());
    known.all(|line| lines.any(|it| it == line))
}

impl Compactor<'_> {
    /// Stops before files that are not there are taken for files that a person deleted.
    ///
    /// # Errors
    ///
    /// Returns `CompactionError::FolderMissing` where the whole folder is not there, which nobody can accept, and
    /// `CompactionError::FilesVanished` where too many of its files are not, unless that was accepted.
    pub fn refuse_if_vanished(&self, accepted: bool) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        let path = layout.full(layout.memory_dir());
        if !path.is_dir() {
            let logs = self.lineage.log_paths()?.len();
            return if logs > 0 {
                Err(CompactionError::FolderMissing { path, logs })
            } else {
                Ok(())
            };
        }
        self.refuse_damaged_decisions(accepted)?;
        match find_vanished(self.vault, self.lineage)?.filter(|_| !accepted) {
            Some(missing) => Err(CompactionError::FilesVanished(missing)),
            None => Ok(()),
        }
    }

    /// Stops before what people decided is taken for never decided: what they deleted, took back, or
    /// had forgotten would come again.
    fn refuse_damaged_decisions(&self, accepted: bool) -> Result<(), CompactionError> {
        match decisions_damage(self.vault)? {
            Some(_) if accepted => self.accept_decisions(),
            Some(why) => Err(CompactionError::DecisionsUnreadable { why }),
            None => Ok(()),
        }
    }

    /// Takes note of logs that have vanished: they are no longer known, and what was made of them
    /// stays.
    pub(crate) fn record_vanished_logs(
        &mut self,
        view: &RootSnapshot,
    ) -> Result<(), CompactionError> {
        let layout = self.vault.layout();
        if let Some(device) = device_of_memory_folder(layout)
            && self.lineage.device_of(layout.memory_dir())? != Some(device)
        {
            self.lineage.record_device(layout.memory_dir(), device)?;
        }
        let mut changes = RecordedChanges::default();
        for (stem, path) in self.lineage.log_paths()? {
            let there = view.inventory.logs.contains_key(&stem)
                || self.vault.exists(&path)
                || is_archived(self.vault, &stem);
            if !there {
                changes.external_changes.push((path.clone(), None));
                changes.removed.push(path);
            }
        }
        if changes.removed.is_empty() {
            return Ok(());
        }
        match self.write_files(None, None, &[], &changes) {
            Err(JobFailure::Critical(error)) => Err(error),
            _ => Ok(()),
        }
    }
}
