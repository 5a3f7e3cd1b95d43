//! Adds what the history lacks, and removes what is too old.
//!
//! A write adds the old and the new version itself. The rest is added here: the files of a root
//! whose database is new or older than the history, a `MEMORY.md` that a person edited, and logs
//! that are gone.

use super::Journal;
use std::collections::{BTreeSet, HashMap};

use chrono::{DateTime, Duration, NaiveTime, Utc};

use crate::compaction::{error::CompactionError, snapshot::RootSnapshot};
use crate::{
    config::settings::Keep,
    memory::{
        address::Stem,
        hash::ContentHash,
        period::{Grain, Period},
    },
    privacy,
    store::{
        db::lineage::{
            history::{NewVersion, VersionCause},
            record::Commit,
        },
        fs::{
            inventory::{Inventory, LogFile},
            layout::FileKind,
        },
    },
};

/// How many bytes are added in one transaction: ten years of logs do not fit into memory twice.
const BYTES_AT_ONCE: usize = 4 * 1024 * 1024;

impl Journal<'_, '_> {
    /// Adds present files that are not in the history, after edits were recorded.
    pub(crate) fn record_missing_versions(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let missing = self.missing_versions(view)?;
        if missing.is_empty() {
            return Ok(());
        }
        let _lock = self.context.write_lock()?;
        let mut read = Vec::new();
        let mut bytes_read = 0;
        for (path, cause) in missing {
            let bytes = if cause == VersionCause::ExternalRemoval {
                None
            } else {
                // The scan reports what cannot be read.
                let Ok(Some(found)) =
                    self.context.vault.read(&self.context.vault.current_path(&path))
                else {
                    continue;
                };
                bytes_read += found.bytes.len();
                Some(found.bytes)
            };
            read.push((path, cause, bytes));
            if bytes_read >= BYTES_AT_ONCE {
                self.record_versions(&read, now)?;
                read.clear();
                bytes_read = 0;
            }
        }
        self.record_versions(&read, now)
    }

    fn record_versions(
        &mut self,
        read: &[(String, VersionCause, Option<Vec<u8>>)],
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let versions: Vec<NewVersion<'_>> = read
            .iter()
            .map(|(path, cause, bytes)| NewVersion { path, cause: *cause, bytes: bytes.as_deref() })
            .collect();
        Ok(self.context.lineage.commit(&Commit {
            versions: &versions,
            at: now,
            ..Commit::default()
        })?)
    }

    fn missing_versions(
        &self,
        view: &RootSnapshot,
    ) -> Result<Vec<(String, VersionCause)>, CompactionError> {
        let inventory = &view.inventory;
        let layout = self.context.vault.layout();
        let latest: HashMap<String, _> = self
            .context
            .lineage
            .latest_versions()?
            .into_iter()
            .map(|it| (it.path, (it.cause, it.hash)))
            .collect();
        // Forgotten content does not come back because a file still holds it.
        let is_known = |path: &str, hash: ContentHash| {
            let latest = latest.get(path);
            latest.is_some_and(|it| it.1 == Some(hash) || it.0 == VersionCause::Forgotten)
        };
        let mut missing = Vec::new();
        for (path, (_, hash)) in self.context.lineage.documents()? {
            if !is_known(&path, hash) {
                missing.push((path, VersionCause::ExternalWrite));
            }
        }
        if let Some(text) = &inventory.index
            && !is_known(&layout.index(), ContentHash::of(text))
        {
            missing.push((layout.index(), VersionCause::ExternalWrite));
        }
        let rules = inventory.rules.clone();
        // A log with a forgotten line is not kept.
        let is_kept = |stem: &Stem| {
            let log = self.context.vault.read_log(stem).ok().flatten();
            log.is_some_and(|it| privacy::sanitize(&it, &rules).raw().is_some())
        };
        for (stem, file) in &inventory.logs {
            // The history of an archived log goes on under its old name.
            let path = layout.source_path(stem);
            match latest.get(&path) {
                None if is_summarized(inventory, stem, file) && is_kept(stem) => {
                    missing.push((path, VersionCause::ReadByRun));
                }
                Some((VersionCause::ExternalRemoval | VersionCause::Removed, _))
                    if is_kept(stem) =>
                {
                    missing.push((path, VersionCause::ExternalWrite));
                }
                _ => {}
            }
        }
        let logs: BTreeSet<String> =
            inventory.logs.keys().map(|it| layout.source_path(it)).collect();
        for (path, _) in latest.iter().filter(|(_, (_, hash))| hash.is_some()) {
            let watched = match layout.kind_of(path) {
                Some(FileKind::Log | FileKind::Session) => !logs.contains(path),
                Some(FileKind::Index) => inventory.index.is_none(),
                _ => false,
            };
            if watched && !self.context.vault.exists(path) {
                missing.push((path.clone(), VersionCause::ExternalRemoval));
            }
        }
        missing.sort();
        Ok(missing)
    }

    /// Removes versions that are older than the configured age, and returns how many.
    pub(crate) fn prune(&mut self, now: DateTime<Utc>) -> Result<usize, CompactionError> {
        let Keep::For(span) = self.context.settings.settings.history.keep else { return Ok(0) };
        let span = Duration::from_std(span.as_duration()).unwrap_or(Duration::MAX);
        let Some(before) = now.checked_sub_signed(span) else { return Ok(0) };
        // From the start of a day, so that later runs of the day find nothing to prune.
        let before = before.date_naive().and_time(NaiveTime::MIN).and_utc();
        if !self.context.lineage.has_prunable(before)? {
            return Ok(0);
        }
        let _lock = self.context.write_lock()?;
        Ok(self.context.lineage.prune(before)?.versions)
    }
}

/// Returns whether the file of its week was made from the log as it is.
fn is_summarized(inventory: &Inventory, stem: &Stem, file: &LogFile) -> bool {
    let week = Period::containing(Grain::Week, stem.date());
    let header = inventory.weekly.get(&week).and_then(|it| it.header.as_ref());
    header.and_then(|it| it.sources.get(stem.as_str())) == Some(&file.input_hash.hex16())
}
