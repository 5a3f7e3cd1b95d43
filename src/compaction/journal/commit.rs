//! How files are written and recorded: intent, bytes, one transaction.
//!
//! The order is that of `store::vault` and `store::lineage`: the intent is committed together with
//! the bytes that are to stand and those that stand there, the new ones are staged and synced, the
//! file takes its name, and one transaction records it with its job. A crash leaves at most an open
//! intent, which [`Compactor::recover`] closes by looking at the file, once the disk has it.

use chrono::{DateTime, Utc};

use super::records;
use crate::compaction::{CompactionError, Compactor, JobFailure};
use crate::{
    memory::{address::Stem, hash::ContentHash, period::Period},
    store::{
        db::lineage::{
            history::{NewVersion, VersionCause},
            jobs::{IntentOutcome, IntentRow, JobId, NewIntent, Receipt, RunId},
            record::{Commit, CoverageRecord, DocumentRecord, LogRecord},
            review::{NewProposal, QuarantineRecord},
        },
        failpoint,
        fs::{
            layout::{FileKind, Layout},
            lock::WriteLock,
            vault::{Vault, VaultError},
        },
    },
};

/// A file to be written or removed.
#[derive(Clone, Debug)]
pub(crate) struct FileWrite {
    /// Relative to the root.
    pub(crate) path: String,
    /// All of it; `None` to remove it.
    pub(crate) text: Option<String>,
    /// What stands there now; `None` where there is nothing.
    pub(crate) current: Option<String>,
}

/// What is recorded together with the files.
#[derive(Debug, Default)]
pub(crate) struct RecordedChanges {
    /// Generated files as they will stand.
    pub(crate) documents: Vec<DocumentRecord>,
    /// Generated files that are gone.
    pub(crate) removed: Vec<String>,
    /// Logs as they were read.
    pub(crate) logs: Vec<LogRecord>,
    /// Why lines reached no item.
    pub(crate) coverage: Vec<CoverageRecord>,
    /// Logs whose extraction is done.
    pub(crate) extracted: Vec<(Stem, ContentHash)>,
    /// Per log, lines that alone carry no memory and no wisdom.
    pub(crate) quarantined: Vec<(Stem, Vec<QuarantineRecord>)>,
    /// What a person is asked about, of the job with this fingerprint and period.
    pub(crate) proposed: Option<(ContentHash, Period, Vec<NewProposal>)>,
    /// What the check kept out, of the job with this fingerprint, period, and file.
    pub(crate) kept_out: Option<(ContentHash, Period, String, Vec<NewProposal>)>,
    /// Paths that the job read.
    pub(crate) read_paths: Vec<String>,
    /// What stands in the files now must not be kept: it is being forgotten.
    pub(crate) forgets: bool,
    /// What somebody else wrote (its bytes) or removed (none), by path.
    pub(crate) external_changes: Vec<(String, Option<Vec<u8>>)>,
}

/// Names this process and its boot, for people: whether it lives, the lock on passes tells.
pub(crate) fn run_owner() -> String {
    format!("{}@{}", std::process::id(), boot_id())
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|it| it.trim().to_owned()).unwrap_or_default()
}

impl RecordedChanges {
    /// Returns what a person is asked about, as a commit takes it.
    pub(crate) fn proposals(&self) -> Option<(ContentHash, Period, &[NewProposal])> {
        self.proposed.as_ref().map(|(work, of, it)| (*work, *of, &it[..]))
    }

    /// Returns what was kept out, as a commit takes it.
    pub(crate) fn kept_out_items(&self) -> Option<(ContentHash, Period, &str, &[NewProposal])> {
        self.kept_out.as_ref().map(|(work, of, target, it)| (*work, *of, &target[..], &it[..]))
    }

    /// Returns how many changes a person is asked about.
    pub(crate) fn proposal_count(&self) -> usize {
        self.proposed.as_ref().map_or(0, |(_, _, it)| it.len())
    }
}

impl FileWrite {
    fn intent<'a>(&'a self, temp: &'a str, forgets: bool) -> NewIntent<'a> {
        NewIntent {
            target: &self.path,
            source: None,
            temp,
            new: self.text.as_deref().map(str::as_bytes),
            old: self.current.as_deref().map(str::as_bytes),
            discards_old: forgets,
        }
    }

    /// Returns what the history has to say of `path` once the file stands as intended.
    fn version<'a>(&'a self, path: &'a str) -> NewVersion<'a> {
        written_version(path, self.text.as_deref().map(str::as_bytes))
    }
}

impl Compactor<'_> {
    /// Writes and removes files and records that, with the receipt of the job whose work it was.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Changed`] when a person was faster; the files placed before that are
    /// recorded, the others are left as they are.
    pub(crate) fn write_files(
        &mut self,
        run: Option<RunId>,
        job: Option<(JobId, &Receipt)>,
        files: &[FileWrite],
        recorded: &RecordedChanges,
    ) -> Result<(), JobFailure> {
        // Under the lock, so that an open intent is either ours or of a process that is dead.
        let lock = self.write_lock()?;
        let now = (self.clock)();
        let temps: Vec<String> = files.iter().map(|_| Vault::new_temp_name()).collect();
        let mut intents = Vec::new();
        if !files.is_empty() {
            let forgets = recorded.forgets;
            let new: Vec<_> =
                files.iter().zip(&temps).map(|(it, temp)| it.intent(temp, forgets)).collect();
            let layout = self.vault.layout();
            let keeps = |path: &str| keeps_history(layout, path);
            let job = job.map(|(id, _)| id);
            intents = self.lineage.begin_intents_with(run, job, &new, &keeps, now)?;
        }
        reach_failpoint("commit.intents")?;
        let mut placed = 0;
        let mut failure = None;
        for (file, temp) in files.iter().zip(&temps) {
            if let Err(error) = self.place_file(&lock, file, temp) {
                failure = Some(error);
                break;
            }
            placed += 1;
            // The file has no record yet, and the rest of the pass would build on it.
            reach_failpoint("commit.placed").map_err(CompactionError::Vault)?;
        }
        let mut versions: Vec<_> = recorded.external_changes.iter().map(external_version).collect();
        // History and lineage name an archived log as it was named among the others.
        let layout = self.vault.layout();
        let names: Vec<String> =
            files[..placed].iter().map(|it| layout.recorded_path(&it.path)).collect();
        let told = files.iter().zip(&names);
        let told = told.filter(|(it, _)| it.text.is_none() || keeps_history(layout, &it.path));
        versions.extend(told.map(|(it, name)| it.version(name)));
        let Some(error) = failure else {
            self.lineage.commit(&Commit {
                job,
                used: &recorded.read_paths,
                documents: &recorded.documents,
                removed: &recorded.removed,
                logs: &recorded.logs,
                coverage: &recorded.coverage,
                intents: &intents,
                extracted: &recorded.extracted,
                quarantined_memories: &recorded.quarantined,
                proposals: recorded.proposals(),
                quarantined_items: recorded.kept_out_items(),
                versions: &versions,
                run,
                at: (self.clock)(),
                ..Commit::default()
            })?;
            reach_failpoint("commit.recorded")?;
            return Ok(());
        };
        // Where a step failed after the file took its name, the next recovery finds out which bytes
        // stand there; the files that were not begun are left as they are.
        let before = files[placed].current.as_deref().map(str::as_bytes);
        let untouched = matches!(error, VaultError::Changed { .. })
            || self.read_bytes(&files[placed].path).is_ok_and(|it| it.as_deref() == before);
        let from = if untouched { placed } else { placed + 1 };
        self.lineage.close_intents(&intents[from..], IntentOutcome::Abandoned)?;
        let run = match job {
            Some((id, _)) => Some(self.lineage.run_of_job(id)?),
            None => run,
        };
        let written = |path: &str| names.iter().any(|name| name == path);
        let documents: Vec<_> =
            recorded.documents.iter().filter(|it| written(&it.path)).cloned().collect();
        let removed: Vec<_> = recorded.removed.iter().filter(|it| written(it)).cloned().collect();
        self.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &intents[..placed],
            versions: &versions,
            run,
            at: (self.clock)(),
            ..Commit::default()
        })?;
        // A file that took its name and is not known to be on disk has no record, and the rest of the
        // pass would build on it.
        if untouched { Err(error.into()) } else { Err(CompactionError::Vault(error).into()) }
    }

    fn place_file(&self, lock: &WriteLock, file: &FileWrite, temp: &str) -> Result<(), VaultError> {
        let expected = file.current.as_deref().map(ContentHash::of);
        match (&file.text, expected) {
            (Some(text), expected) => {
                let staged = self.vault.stage(&file.path, temp, text.as_bytes())?;
                self.vault.publish(lock, staged, expected)
            }
            (None, Some(expected)) => self.vault.remove(lock, &file.path, temp, expected),
            (None, None) => Ok(()),
        }
    }

    /// Puts right what a crash left: jobs without an end, and files without a record.
    ///
    /// An intent is open only while its process holds the write lock, so whoever has the lock finds
    /// none but those of the dead.
    ///
    /// The caller holds the lock on passes, so no run but its own can be under way.
    pub(crate) fn recover(&mut self, now: DateTime<Utc>) -> Result<(), CompactionError> {
        self.recover_unlocked(now, false)
    }

    /// Like [`Self::recover`], for who does not hold the lock on passes: `busy` says whether somebody
    /// else does, whose run is not touched then.
    pub(crate) fn recover_unlocked(
        &mut self,
        now: DateTime<Utc>,
        busy: bool,
    ) -> Result<(), CompactionError> {
        if !self.lineage.open_intents()?.is_empty() {
            let lock = self.write_lock()?;
            // Whoever held the lock until now may have closed some of them.
            for intent in self.lineage.open_intents()? {
                self.recover_intent(&lock, &intent, now)?;
                reach_failpoint("recover.intent")?;
            }
        }
        self.lineage.end_abandoned_jobs(now, &|_| busy)?;
        reach_failpoint("recover.done")?;
        Ok(())
    }

    /// Brings one write that was cut off to its end, or takes note that it did not happen.
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
        let standing = self.read_bytes(target)?;
        let beside = self.read_bytes(&Vault::temp_path(target, temp))?;
        let hash = |it: &Option<Vec<u8>>| it.as_ref().map(ContentHash::of);
        let mut done = hash(&standing) == *new_hash;
        if let Some(left) = hash(&beside) {
            // Only a file that was there can have changed places with its temporary one.
            let is_theirs = match new_hash {
                Some(_) => done && old_hash.is_some(),
                None => standing.is_none(),
            };
            if Some(left) == *new_hash || Some(left) == *old_hash {
                // Not used yet, or in the history and no longer used.
                self.vault.remove_temp(lock, target, temp)?;
            } else if is_theirs {
                // Somebody wrote in the moment of the exchange: their words stand, not ours.
                self.vault.restore_temp(lock, target, temp)?;
                if hash(&self.read_bytes(&Vault::temp_path(target, temp))?) == *new_hash {
                    self.vault.remove_temp(lock, target, temp)?;
                }
                done = false;
            } else if hash(&standing) == *old_hash {
                // Ours, and cut off in the middle.
                self.vault.remove_temp(lock, target, temp)?;
            }
            // What is left under the temporary name beside a stranger's file is swept into the
            // private folder.
        }
        // What stands there may stand in memory alone, and is about to be recorded.
        self.vault.sync_file(lock, target)?;
        if !done {
            self.lineage.close_intents(&[intent.id], IntentOutcome::Abandoned)?;
            return Ok(());
        }
        let text = standing.as_deref().map(String::from_utf8_lossy);
        let layout = self.vault.layout();
        let document = text.as_ref().and_then(|it| records::of_path(layout, target, it));
        let documents: Vec<_> = document.into_iter().collect();
        let name = layout.recorded_path(target);
        let removed: Vec<String> = if standing.is_none() { vec![name.clone()] } else { Vec::new() };
        let version = [written_version(&name, standing.as_deref())];
        let told = standing.is_none() || keeps_history(layout, target);
        self.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &[intent.id],
            versions: if told { &version } else { &[] },
            run: intent.run,
            at: now,
            ..Commit::default()
        })?;
        Ok(())
    }

    pub(crate) fn read_bytes(&self, path: &str) -> Result<Option<Vec<u8>>, CompactionError> {
        match self.vault.read(path) {
            Ok(found) => Ok(found.map(|it| it.bytes)),
            // It cannot be told what stands there; the next pass reports it.
            Err(VaultError::NotAFile { .. } | VaultError::TooLarge { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns whether the history keeps what is written to a file. The bytes of a log are kept by the fold
/// that reads it, if it may: a log can hold lines that are to be forgotten.
fn keeps_history(layout: &Layout, path: &str) -> bool {
    !matches!(layout.kind_of(path), Some(FileKind::Log | FileKind::Session))
}

fn written_version<'a>(path: &'a str, bytes: Option<&'a [u8]>) -> NewVersion<'a> {
    let cause = if bytes.is_some() { VersionCause::Written } else { VersionCause::Removed };
    NewVersion { path, cause, bytes }
}

fn external_version((path, bytes): &(String, Option<Vec<u8>>)) -> NewVersion<'_> {
    let cause =
        if bytes.is_some() { VersionCause::ExternalWrite } else { VersionCause::ExternalRemoval };
    NewVersion { path, cause, bytes: bytes.as_deref() }
}

/// Passes a step that tests stop at.
pub(crate) fn reach_failpoint(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| VaultError::Io {
        action: "write",
        path: name.into(),
        source,
    })
}
