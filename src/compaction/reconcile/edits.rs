//! Records files that people changed or removed since the last run, and logs that vanished.
//!
//! What a person deleted is recorded in `.decisions.jsonl`, so that it stays deleted if the
//! database is lost; what they wrote back is lifted there.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::MetadataExt as _,
};

use chrono::{DateTime, Utc};

use super::Reconciler;
use crate::compaction::{
    error::{CompactionError, JobFailure},
    journal::{Journal, commit::RecordedChanges, decision_file::DecisionFile, records},
    plan::damage::byte_damage,
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::Stem, document::SummaryHeader, hash::ContentHash, joined, typed::TypedMemory,
        wisdom::WisdomFile,
    },
    store::{
        db::lineage::{
            history::VersionCause,
            record::{DocumentKind, DocumentRecord, ItemRecord},
        },
        fs::{
            inventory::Inventory,
            layout::{Layout, visible_text},
            vault::Vault,
        },
    },
};

/// What others did to generated files since the last run.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// The files that differ from what was recorded.
    pub(super) paths: BTreeSet<String>,
    /// Whether any decision follows.
    pub(super) decided: bool,
}

impl Reconciler<'_, '_> {
    /// Records files that people changed, and what they deleted or wrote back in them.
    pub(super) fn record_edits(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<Edits, CompactionError> {
        let present = generated_files(self.context.vault.layout(), &view.inventory);
        let recorded = self.context.lineage.documents()?;
        let mut changes = RecordedChanges::default();
        let mut decisions = Vec::new();
        for (path, hash) in &present {
            let known = recorded.get(path).map(|(_, hash)| *hash);
            if known.is_some() && known == *hash {
                continue;
            }
            let Some((text, document)) = self.edited_file(view, path, known)? else { continue };
            // A deleted memory or file may have been restored.
            let before = match known {
                None => Vec::new(),
                Some(_) => self.items_before_edit(path, &text, document.kind)?,
            };
            decisions.extend(self.decisions_from_edit(
                view,
                path,
                &before,
                &document.items,
                now,
            )?);
            changes.external_changes.push((path.clone(), Some(text.into_bytes())));
            changes.documents.push(document);
        }
        for (path, (kind, _)) in &recorded {
            // A file that cannot be read now is not gone: the scan reports it.
            if present.contains_key(path) || !matches!(self.context.vault.read(path), Ok(None)) {
                continue;
            }
            // A summary that was deleted is made again; a memory or an entry stays deleted.
            let stays = matches!(kind, DocumentKind::Memory | DocumentKind::Wisdom);
            if stays && !self.is_older_state(view)? {
                let before = self.context.lineage.items_of(path)?;
                decisions.extend(self.decisions_from_edit(view, path, &before, &[], now)?);
            }
            changes.external_changes.push((path.clone(), None));
            changes.removed.push(path.clone());
        }
        let paths = changes.documents.iter().map(|it| it.path.clone()).collect();
        if changes.documents.is_empty() && changes.removed.is_empty() {
            return Ok(Edits::default());
        }
        DecisionFile::new(self.context).append(&decisions)?;
        match Journal::new(self.context).write_files(None, None, &[], &changes) {
            Ok(()) => {
                self.remove_records_of(&changes.removed)?;
                Ok(Edits { paths, decided: !decisions.is_empty() })
            }
            Err(JobFailure::Critical(error)) => Err(error),
            Err(_) => Ok(Edits { paths, decided: false }),
        }
    }

    /// Returns the record that an earlier version of a file had with this visible text, if it has none now.
    fn former_record(&self, path: &str, text: &str) -> Result<Option<String>, CompactionError> {
        let (visible, record) = joined::split(text);
        if record.is_some() || self.context.vault.layout().hidden_path(path).is_none() {
            return Ok(None);
        }
        for version in self.context.lineage.versions_of(path)?.iter().rev() {
            let Some(hash) = version.hash else { continue };
            let Some(bytes) = self.context.lineage.content(hash)? else { continue };
            let then = String::from_utf8_lossy(&bytes).into_owned();
            if let (visible_then, Some(record)) = joined::split(&then)
                && visible_then == visible
            {
                return Ok(Some(record.to_owned()));
            }
        }
        Ok(None)
    }

    /// Removes the hidden files of files that are gone: their names may say what the person removed.
    fn remove_records_of(&self, removed: &[String]) -> Result<(), CompactionError> {
        if removed.is_empty() {
            return Ok(());
        }
        let lock = self.context.write_lock()?;
        for path in removed {
            if self.context.vault.read_visible(path)?.is_none() {
                self.context.vault.complete_pair(&lock, path, "", None)?;
            }
        }
        Ok(())
    }

    /// Reads a file that a person may have changed; `None` if nobody did, or if it may be damaged.
    fn edited_file(
        &self,
        view: &RootSnapshot,
        path: &str,
        known: Option<ContentHash>,
    ) -> Result<Option<(String, DocumentRecord)>, CompactionError> {
        // The scan reports a file that cannot be read.
        let read = || self.context.vault.read_text(path).ok().flatten();
        let is_known = |it: &String| known == Some(ContentHash::of(it));
        let Some(mut text) = read().filter(|it| !is_known(it)) else { return Ok(None) };
        if known.is_none()
            && let Some(record) = self.former_record(path, &text)?
        {
            // A person put back what they had deleted.
            let lock = self.context.write_lock()?;
            self.context.vault.write_record(&lock, path, record.as_bytes())?;
            text = joined::join(&text, Some(&record));
        }
        if !is_one_version(path, &text) {
            // Another process may be between the visible file and its record.
            let _lock = self.context.write_lock()?;
            let Some(now) = read().filter(|it| !is_known(it)) else { return Ok(None) };
            text = now;
        }
        let Some(document) = records::of_path(self.context.vault.layout(), path, &text) else {
            return Ok(None);
        };
        // A disk, not a person, emptied such a file; `doctor` reports it.
        let is_lost =
            known.is_some() && byte_damage(visible_text(path, &text).as_bytes()).is_some();
        let is_edited =
            known != Some(document.hash) && !is_lost && !view.record.damaged.contains_key(path);
        Ok(is_edited.then_some((text, document)))
    }

    /// Returns the recorded items with which an edited file is compared.
    fn items_before_edit(
        &self,
        path: &str,
        text: &str,
        kind: DocumentKind,
    ) -> Result<Vec<ItemRecord>, CompactionError> {
        if self.is_older_version(path, ContentHash::of(text))? {
            return Ok(Vec::new());
        }
        let mut before = self.context.lineage.items_of(path)?;
        if path == self.context.vault.layout().wisdom()
            && self.is_newer_than_database(path, text)?
        {
            before.clear();
        }
        // The file lists the items that we wrote in it. Other recorded items are older than the
        // file (it was restored, say), and nobody deleted them.
        match listed_hashes(path, text) {
            Some(listed) => before.retain(|it| listed.contains(&it.hash)),
            // A person put a file of their own in its place, and decided about no line.
            None if matches!(kind, DocumentKind::Weekly | DocumentKind::Monthly) => before.clear(),
            None => {}
        }
        Ok(before)
    }

    /// Returns whether the index lists what it listed at an earlier time: the folder was switched to
    /// an older state of it, and nobody deleted the memories that came later.
    fn is_older_state(&self, view: &RootSnapshot) -> Result<bool, CompactionError> {
        let Some(index) = &view.inventory.index else { return Ok(false) };
        self.is_older_version(&self.context.vault.layout().index(), ContentHash::of(index))
    }

    /// Returns whether we wrote exactly these bytes before the last recorded ones: somebody put an
    /// older version in place, and deleted nothing of the later one.
    fn is_older_version(&self, path: &str, now: ContentHash) -> Result<bool, CompactionError> {
        let mut versions = self.context.lineage.versions_of(path)?;
        let last = versions.pop();
        Ok(last.is_some_and(|it| it.hash != Some(now))
            && versions.iter().any(|it| it.cause == VersionCause::Written && it.hash == Some(now)))
    }

    /// Returns whether we wrote this `WISDOM.md` after the recorded one: an older copy of the
    /// database was restored, and its other items are older than the file.
    fn is_newer_than_database(&self, path: &str, text: &str) -> Result<bool, CompactionError> {
        let mut known = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for version in self.context.lineage.versions_of(path)? {
            let Some(hash) = version.hash else { continue };
            let bytes = self.context.lineage.content(hash)?.unwrap_or_default();
            let file = WisdomFile::parse(&String::from_utf8_lossy(&bytes));
            known.extend(file.distilled().iter().copied());
            ids.extend(file.entries().filter_map(|it| it.id().map(str::to_owned)));
        }
        let file = WisdomFile::parse(text);
        let unknown = |it: &str| !ids.contains(it);
        Ok(!ids.is_empty()
            && (!file.distilled().is_subset(&known)
                || file.entries().any(|it| it.is_managed() && it.id().is_some_and(unknown))))
    }

    /// Records logs that have vanished; what was derived from them stays.
    pub(super) fn record_vanished_logs(
        &mut self,
        view: &RootSnapshot,
    ) -> Result<(), CompactionError> {
        let layout = self.context.vault.layout();
        if let Some(device) = device_of_memory_folder(layout)
            && self.context.lineage.device_of(layout.memory_dir())? != Some(device)
        {
            self.context.lineage.record_device(layout.memory_dir(), device)?;
        }
        let mut changes = RecordedChanges::default();
        for (stem, path) in self.context.lineage.log_paths()? {
            let there = view.inventory.logs.contains_key(&stem)
                || self.context.vault.exists(&path)
                || is_archived(self.context.vault, &stem);
            if !there {
                changes.external_changes.push((path.clone(), None));
                changes.removed.push(path);
            }
        }
        if changes.removed.is_empty() {
            return Ok(());
        }
        match Journal::new(self.context).write_files(None, None, &[], &changes) {
            Err(JobFailure::Critical(error)) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Returns whether a text and the record joined to it, if any, were written together.
fn is_one_version(path: &str, text: &str) -> bool {
    let visible = visible_text(path, text);
    visible.len() == text.len()
        || joined::split(text).1.is_none_or(|it| joined::belongs(it, visible.as_bytes()))
}

/// Returns the generated files of a root, each with its hash if the scan computed it.
fn generated_files(
    layout: &Layout,
    inventory: &Inventory,
) -> BTreeMap<String, Option<ContentHash>> {
    let mut files: BTreeMap<String, Option<ContentHash>> = BTreeMap::new();
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    files.extend(summaries.map(|it| (it.path.clone(), Some(it.hash))));
    let memories = inventory.memories.iter();
    files.extend(memories.map(|it| (layout.typed_memory(&it.file_name.to_string_lossy()), None)));
    if let Some(text) = &inventory.wisdom {
        files.insert(layout.wisdom(), Some(ContentHash::of(text)));
    }
    files
}

/// Returns the hashes of the bullets that we wrote in a file, by its record; `None` where it lists none.
fn listed_hashes(path: &str, text: &str) -> Option<BTreeSet<String>> {
    let name = path.rsplit('/').next()?;
    if let Ok(period) = name.strip_suffix(".md")?.parse() {
        let header = SummaryHeader::read(period, text).ok().flatten()?;
        return Some(header.items.into_iter().collect());
    }
    let memory = TypedMemory::parse(name.as_ref(), text).ok()?;
    (!memory.items.is_empty()).then(|| memory.items.into_iter().collect())
}

/// Returns whether a log was moved to the archive.
fn is_archived(vault: &Vault, stem: &Stem) -> bool {
    vault.layout().archive_path(stem).is_some_and(|it| vault.exists(&it))
}

/// Returns the device of the memory folder. Some systems renumber devices at a restart, so another
/// number alone proves nothing.
pub(crate) fn device_of_memory_folder(layout: &Layout) -> Option<u64> {
    std::fs::metadata(layout.full(layout.memory_dir())).ok().map(|it| it.dev())
}
