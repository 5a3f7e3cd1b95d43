//! Recovery after a crash: closes open intents by reading the files, and ends jobs without an end.

use chrono::{DateTime, Utc};

use super::{
    Journal,
    commit::{keeps_history, reach_failpoint, written_version},
    records,
};
use crate::compaction::error::CompactionError;
use crate::{
    memory::hash::ContentHash,
    store::{
        db::lineage::{
            jobs::{IntentOutcome, IntentRow},
            record::Commit,
        },
        fs::{lock::WriteLock, vault::Vault},
    },
};

impl Journal<'_, '_> {
    /// Closes what a crash left: jobs without an end, and files without a record.
    ///
    /// An intent is open only while its process holds the write lock, so the holder of the lock
    /// finds only intents of dead processes.
    ///
    /// The caller holds the run lock, so no other run is in progress.
    pub(crate) fn recover(&mut self, now: DateTime<Utc>) -> Result<(), CompactionError> {
        self.recover_unlocked(now, false)
    }

    /// Like [`Self::recover`], for a caller without the run lock: `busy` says whether another
    /// process holds it; then its run is left alone.
    pub(crate) fn recover_unlocked(
        &mut self,
        now: DateTime<Utc>,
        busy: bool,
    ) -> Result<(), CompactionError> {
        if !self.context.lineage.open_intents()?.is_empty() {
            let lock = self.context.write_lock()?;
            // The last holder of the lock may have closed some of them.
            for intent in self.context.lineage.open_intents()? {
                self.recover_intent(&lock, &intent, now)?;
                reach_failpoint("recover.intent")?;
            }
        }
        self.restore_hidden_records()?;
        self.context.lineage.end_abandoned_jobs(now, &|_| busy)?;
        reach_failpoint("recover.done")?;
        Ok(())
    }

    /// Completes one interrupted write, or records that it did not happen.
    fn recover_intent(
        &mut self,
        lock: &WriteLock,
        intent: &IntentRow,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        if intent.source.is_some() {
            return self.recover_move(lock, intent);
        }
        let IntentRow { target, temp, new_hash, old_hash, .. } = intent;
        let vault = self.context.vault;
        let present = self.context.read_visible_bytes(target)?;
        let temp_path = Vault::temp_path(target, temp);
        let beside = self.context.read_visible_bytes(&temp_path)?;
        let is = |bytes: &Option<Vec<u8>>, hash: Option<ContentHash>| {
            vault.is_version(target, temp, bytes.as_deref(), hash)
        };
        let mut done = is(&present, *new_hash)?;
        let was = is(&present, *old_hash)?;
        if beside.is_some() {
            // Only a file that existed can have been exchanged with its temporary one.
            let is_theirs = match new_hash {
                Some(_) => done && old_hash.is_some(),
                None => present.is_none(),
            };
            if is(&beside, *new_hash)? || is(&beside, *old_hash)? {
                // Not used yet, or already in the history. Its record stays in place until then, since without it
                // these bytes would look like somebody's; the new one stays staged until it is in place.
                if done {
                    vault.remove_visible_temp(lock, target, temp)?;
                } else {
                    vault.remove_temp(lock, target, temp)?;
                }
            } else if is_theirs {
                // Somebody wrote at the moment of the exchange: their text wins.
                vault.restore_temp(lock, target, temp)?;
                if is(&self.context.read_visible_bytes(&temp_path)?, *new_hash)? {
                    vault.remove_temp(lock, target, temp)?;
                }
                done = false;
            } else if was {
                // Ours, and incomplete.
                vault.remove_temp(lock, target, temp)?;
            }
            // A temporary file that is not ours is moved into the private folder.
        }
        if done {
            vault.complete_pair(lock, target, temp, *new_hash)?;
            reach_failpoint("recover.record")?;
            vault.remove_temp(lock, target, temp)?;
        }
        // The content may be in memory only, and is about to be recorded.
        self.context.vault.sync_file(lock, target)?;
        if !done {
            self.context.lineage.close_intents(&[intent.id], IntentOutcome::Abandoned)?;
            return Ok(());
        }
        let present = self.context.read_bytes(target)?;
        let text = present.as_deref().map(String::from_utf8_lossy);
        let layout = self.context.vault.layout();
        let document = text.as_ref().and_then(|it| records::of_path(layout, target, it));
        let documents: Vec<_> = document.into_iter().collect();
        let name = layout.recorded_path(target);
        let removed: Vec<String> = if present.is_none() { vec![name.clone()] } else { Vec::new() };
        let version = [written_version(&name, present.as_deref())];
        let is_kept = present.is_none() || keeps_history(layout, target);
        self.context.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &[intent.id],
            versions: if is_kept { &version } else { &[] },
            run: intent.run,
            at: now,
            ..Commit::default()
        })?;
        Ok(())
    }

    /// Closes the intent of an interrupted move, or of the removal that ends one. The next run does
    /// the rest, which the files show.
    fn recover_move(
        &mut self,
        lock: &WriteLock,
        intent: &IntentRow,
    ) -> Result<(), CompactionError> {
        let IntentRow { target, source, temp, new_hash, .. } = intent;
        let elsewhere =
            source.as_deref().map(|it| self.context.read_bytes(it)).transpose()?.flatten();
        let has_bytes = |bytes: &[u8]| elsewhere.as_ref().is_some_and(|it| it.starts_with(bytes));
        if let Some(beside) = self.context.read_bytes(&Vault::temp_path(target, temp))? {
            if has_bytes(&beside) {
                // A copy that was not used yet, or the file to remove.
                self.context.vault.remove_temp(lock, target, temp)?;
            } else if new_hash.is_none() && !self.context.vault.exists(target) {
                // Somebody wrote to it at the moment of its removal.
                self.context.vault.restore_temp(lock, target, temp)?;
            }
            // Anything else is moved into the private folder.
        }
        for path in source.iter().chain([target]) {
            self.context.vault.sync_file(lock, path)?;
        }
        let done = self.context.read_bytes(target)?.as_ref().map(ContentHash::of) == *new_hash;
        let end = if done { IntentOutcome::Done } else { IntentOutcome::Abandoned };
        Ok(self.context.lineage.close_intents(&[intent.id], end)?)
    }
}
