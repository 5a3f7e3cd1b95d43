//! How files are written and recorded: intent, bytes, one transaction.
//!
//! The order is that of `store::vault` and `store::lineage`: the intent is committed together with
//! the bytes that are to stand and those that stand there, the new ones are staged and synced, the
//! file takes its name, and one transaction records it with its job. A crash leaves at most an open
//! intent, which [`Compactor::recover`] closes by looking at the file, once the disk has it.

use chrono::{DateTime, Utc};

use super::{Compactor, JobError, PassError, records};
use crate::{
    memory::{address::Stem, hash::ContentHash, period::Period},
    store::{
        failpoint,
        layout::{FileKind, Layout},
        lineage::{
            history::{Cause, NewVersion},
            jobs::{IntentEnd, IntentRow, JobId, NewIntent, Receipt, RunId},
            record::{Commit, CoverageRecord, DocumentRecord, LogRecord},
            review::{HeldRecord, NewProposal},
        },
        lock::WriteLock,
        vault::{Vault, VaultError},
    },
};

/// A file to be written or removed.
#[derive(Clone, Debug)]
pub(super) struct NewFile {
    /// Relative to the root.
    pub(super) path: String,
    /// All of it; `None` to remove it.
    pub(super) text: Option<String>,
    /// What stands there now; `None` where there is nothing.
    pub(super) standing: Option<String>,
}

/// What is recorded together with the files.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Generated files as they will stand.
    pub(super) documents: Vec<DocumentRecord>,
    /// Generated files that are gone.
    pub(super) removed: Vec<String>,
    /// Logs as they were read.
    pub(super) logs: Vec<LogRecord>,
    /// Why lines reached no item.
    pub(super) coverage: Vec<CoverageRecord>,
    /// Logs whose extraction is done.
    pub(super) extracted: Vec<(Stem, ContentHash)>,
    /// Per log, lines that alone carry no memory and no wisdom.
    pub(super) held: Vec<(Stem, Vec<HeldRecord>)>,
    /// What a person is asked about, of the job with this fingerprint and period.
    pub(super) proposed: Option<(ContentHash, Period, Vec<NewProposal>)>,
    /// What the check kept out, of the job with this fingerprint, period, and file.
    pub(super) kept_out: Option<(ContentHash, Period, String, Vec<NewProposal>)>,
    /// Paths that the job read.
    pub(super) used: Vec<String>,
    /// What stands in the files now must not be kept: it is being forgotten.
    pub(super) forgets: bool,
    /// What somebody else wrote (its bytes) or removed (none), by path.
    pub(super) found: Vec<(String, Option<Vec<u8>>)>,
}

/// Names this process and its boot, for people: whether it lives, the lock on passes tells.
pub(super) fn owner() -> String {
    format!("{}@{}", std::process::id(), boot_id())
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|it| it.trim().to_owned()).unwrap_or_default()
}

impl Recorded {
    /// Returns what a person is asked about, as a commit takes it.
    pub(super) fn proposals(&self) -> Option<(ContentHash, Period, &[NewProposal])> {
        self.proposed.as_ref().map(|(work, of, it)| (*work, *of, &it[..]))
    }

    /// Returns what was kept out, as a commit takes it.
    pub(super) fn told(&self) -> Option<(ContentHash, Period, &str, &[NewProposal])> {
        self.kept_out.as_ref().map(|(work, of, target, it)| (*work, *of, &target[..], &it[..]))
    }

    /// Returns how many changes a person is asked about.
    pub(super) fn count_proposed(&self) -> usize {
        self.proposed.as_ref().map_or(0, |(_, _, it)| it.len())
    }
}

impl NewFile {
    fn intent<'a>(&'a self, temp: &'a str, forgets: bool) -> NewIntent<'a> {
        NewIntent {
            target: &self.path,
            source: None,
            temp,
            new: self.text.as_deref().map(str::as_bytes),
            old: self.standing.as_deref().map(str::as_bytes),
            forgets,
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
    pub(super) fn write(
        &mut self,
        run: Option<RunId>,
        job: Option<(JobId, &Receipt)>,
        files: &[NewFile],
        recorded: &Recorded,
    ) -> Result<(), JobError> {
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
            let keeps = |path: &str| keeps_bytes(layout, path);
            let job = job.map(|(id, _)| id);
            intents = self.lineage.begin_intents_keeping(run, job, &new, &keeps, now)?;
        }
        passed("commit.intents")?;
        let mut placed = 0;
        let mut failure = None;
        for (file, temp) in files.iter().zip(&temps) {
            if let Err(error) = self.put(&lock, file, temp) {
                failure = Some(error);
                break;
            }
            placed += 1;
            // The file has no record yet, and the rest of the pass would build on it.
            passed("commit.placed").map_err(PassError::Vault)?;
        }
        let mut versions: Vec<_> = recorded.found.iter().map(found_version).collect();
        // History and lineage name an archived log as it was named among the others.
        let layout = self.vault.layout();
        let names: Vec<String> =
            files[..placed].iter().map(|it| layout.recorded(&it.path)).collect();
        let told = files.iter().zip(&names);
        let told = told.filter(|(it, _)| it.text.is_none() || keeps_bytes(layout, &it.path));
        versions.extend(told.map(|(it, name)| it.version(name)));
        let Some(error) = failure else {
            self.lineage.commit(&Commit {
                job,
                used: &recorded.used,
                documents: &recorded.documents,
                removed: &recorded.removed,
                logs: &recorded.logs,
                coverage: &recorded.coverage,
                intents: &intents,
                extracted: &recorded.extracted,
                held: &recorded.held,
                proposals: recorded.proposals(),
                kept_out: recorded.told(),
                versions: &versions,
                run,
                at: (self.clock)(),
                ..Commit::default()
            })?;
            passed("commit.recorded")?;
            return Ok(());
        };
        // Where a step failed after the file took its name, the next recovery finds out which bytes
        // stand there; the files that were not begun are left as they are.
        let before = files[placed].standing.as_deref().map(str::as_bytes);
        let untouched = matches!(error, VaultError::Changed { .. })
            || self.bytes_of(&files[placed].path).is_ok_and(|it| it.as_deref() == before);
        let from = if untouched { placed } else { placed + 1 };
        self.lineage.close_intents(&intents[from..], IntentEnd::Dropped)?;
        let run = match job {
            Some((id, _)) => Some(self.lineage.run_of(id)?),
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
        if untouched { Err(error.into()) } else { Err(PassError::Vault(error).into()) }
    }

    fn put(&self, lock: &WriteLock, file: &NewFile, temp: &str) -> Result<(), VaultError> {
        let expected = file.standing.as_deref().map(ContentHash::of);
        match (&file.text, expected) {
            (Some(text), expected) => {
                let staged = self.vault.stage(&file.path, temp, text.as_bytes())?;
                self.vault.place(lock, staged, expected)
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
    pub(super) fn recover(&mut self, now: DateTime<Utc>) -> Result<(), PassError> {
        self.recover_beside(now, false)
    }

    /// Like [`Self::recover`], for who does not hold the lock on passes: `busy` says whether somebody
    /// else does, whose run is not touched then.
    pub(super) fn recover_beside(
        &mut self,
        now: DateTime<Utc>,
        busy: bool,
    ) -> Result<(), PassError> {
        if !self.lineage.open_intents()?.is_empty() {
            let lock = self.write_lock()?;
            // Whoever held the lock until now may have closed some of them.
            for intent in self.lineage.open_intents()? {
                self.recover_intent(&lock, &intent, now)?;
                passed("recover.intent")?;
            }
        }
        self.lineage.abandoned(now, &|_| busy)?;
        passed("recover.done")?;
        Ok(())
    }

    /// Brings one write that was cut off to its end, or takes note that it did not happen.
    fn recover_intent(
        &mut self,
        lock: &WriteLock,
        intent: &IntentRow,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        if intent.source.is_some() {
            return self.recover_move(lock, intent);
        }
        let IntentRow { target, temp, new_hash, old_hash, .. } = intent;
        let standing = self.bytes_of(target)?;
        let beside = self.bytes_of(&Vault::temp_of(target, temp))?;
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
                self.vault.drop_temp(lock, target, temp)?;
            } else if is_theirs {
                // Somebody wrote in the moment of the exchange: their words stand, not ours.
                self.vault.put_back(lock, target, temp)?;
                if hash(&self.bytes_of(&Vault::temp_of(target, temp))?) == *new_hash {
                    self.vault.drop_temp(lock, target, temp)?;
                }
                done = false;
            } else if hash(&standing) == *old_hash {
                // Ours, and cut off in the middle.
                self.vault.drop_temp(lock, target, temp)?;
            }
            // What is left under the temporary name beside a stranger's file is swept into the
            // private folder.
        }
        // What stands there may stand in memory alone, and is about to be recorded.
        self.vault.settle(lock, target)?;
        if !done {
            self.lineage.close_intents(&[intent.id], IntentEnd::Dropped)?;
            return Ok(());
        }
        let text = standing.as_deref().map(String::from_utf8_lossy);
        let layout = self.vault.layout();
        let document = text.as_ref().and_then(|it| records::of_path(layout, target, it));
        let documents: Vec<_> = document.into_iter().collect();
        let name = layout.recorded(target);
        let removed: Vec<String> = if standing.is_none() { vec![name.clone()] } else { Vec::new() };
        let version = [written_version(&name, standing.as_deref())];
        let told = standing.is_none() || keeps_bytes(layout, target);
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

    pub(super) fn bytes_of(&self, path: &str) -> Result<Option<Vec<u8>>, PassError> {
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
fn keeps_bytes(layout: &Layout, path: &str) -> bool {
    !matches!(layout.kind_of(path), Some(FileKind::Log | FileKind::Session))
}

fn written_version<'a>(path: &'a str, bytes: Option<&'a [u8]>) -> NewVersion<'a> {
    let cause = if bytes.is_some() { Cause::Written } else { Cause::Removed };
    NewVersion { path, cause, bytes }
}

fn found_version((path, bytes): &(String, Option<Vec<u8>>)) -> NewVersion<'_> {
    let cause = if bytes.is_some() { Cause::Found } else { Cause::Gone };
    NewVersion { path, cause, bytes: bytes.as_deref() }
}

/// Passes a step that tests stop at.
pub(super) fn passed(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| VaultError::Io {
        action: "write",
        path: name.into(),
        source,
    })
}
