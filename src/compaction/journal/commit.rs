//! Files are written and recorded: intent, bytes, one transaction.
//!
//! The order is that of `store::fs::vault` and `store::db::lineage`: the intent is committed with the
//! new and the old bytes, the new ones are staged and synced, the file takes its name, and one
//! transaction records it with its job. A crash leaves at most an open intent, which
//! [`Journal::recover`] closes by reading the file.

use super::Journal;
use crate::compaction::error::{CompactionError, JobFailure};
use crate::{
    memory::{address::Stem, hash::ContentHash, period::Period},
    store::{
        db::lineage::{
            history::{NewVersion, VersionCause},
            jobs::{IntentId, IntentOutcome, JobId, NewIntent, Receipt, RunId},
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
    /// What it holds now; `None` where there is none.
    pub(crate) current: Option<String>,
}

/// What is recorded together with the files.
#[derive(Debug, Default)]
pub(crate) struct RecordedChanges {
    /// Generated files as they will be.
    pub(crate) documents: Vec<DocumentRecord>,
    /// Generated files that are gone.
    pub(crate) removed: Vec<String>,
    /// Logs as they were read.
    pub(crate) logs: Vec<LogRecord>,
    /// Why lines reached no item.
    pub(crate) coverage: Vec<CoverageRecord>,
    /// Logs whose memories were extracted.
    pub(crate) extracted: Vec<(Stem, ContentHash)>,
    /// Per log, lines that cannot support a memory or an entry alone.
    pub(crate) quarantined: Vec<(Stem, Vec<QuarantineRecord>)>,
    /// Proposed changes, of the job with this fingerprint and period.
    pub(crate) proposed: Option<(ContentHash, Period, Vec<NewProposal>)>,
    /// Items that the checks kept out, of the job with this fingerprint, period, and file.
    pub(crate) kept_out: Option<(ContentHash, Period, String, Vec<NewProposal>)>,
    /// Paths that the job read.
    pub(crate) read_paths: Vec<String>,
    /// Whether the old bytes must not enter the history, because they are being forgotten.
    pub(crate) forgets: bool,
    /// What somebody else wrote (its bytes) or removed (`None`), by path.
    pub(crate) external_changes: Vec<(String, Option<Vec<u8>>)>,
}

impl RecordedChanges {
    /// Returns the proposed changes, as a commit takes them.
    pub(crate) fn proposals(&self) -> Option<(ContentHash, Period, &[NewProposal])> {
        self.proposed.as_ref().map(|(work, of, it)| (*work, *of, &it[..]))
    }

    /// Returns the items that were kept out, as a commit takes them.
    pub(crate) fn kept_out_items(&self) -> Option<(ContentHash, Period, &str, &[NewProposal])> {
        self.kept_out.as_ref().map(|(work, of, target, it)| (*work, *of, &target[..], &it[..]))
    }

    /// Returns the number of proposed changes.
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

    /// Returns the version of `path` that the write makes.
    fn version<'a>(&'a self, path: &'a str) -> NewVersion<'a> {
        written_version(path, self.text.as_deref().map(str::as_bytes))
    }
}

/// Files that are written together, and what is recorded with them.
#[derive(Clone, Copy)]
struct FileBatch<'a> {
    run: Option<RunId>,
    job: Option<(JobId, &'a Receipt)>,
    files: &'a [FileWrite],
    recorded: &'a RecordedChanges,
}

impl<'a> FileBatch<'a> {
    /// Returns the versions that the history gets: those of others, and those of the files that took
    /// these names.
    fn versions(&self, layout: &Layout, names: &'a [String]) -> Vec<NewVersion<'a>> {
        let mut versions: Vec<_> =
            self.recorded.external_changes.iter().map(external_version).collect();
        let placed = self.files.iter().zip(names);
        let kept = placed.filter(|(it, _)| it.text.is_none() || keeps_history(layout, &it.path));
        versions.extend(kept.map(|(it, name)| it.version(name)));
        versions
    }
}

/// Returns the names of files in history and lineage, which keep the name that an archived log had.
fn recorded_names(layout: &Layout, files: &[FileWrite]) -> Vec<String> {
    files.iter().map(|it| layout.recorded_path(&it.path)).collect()
}

impl Journal<'_, '_> {
    /// Writes and removes files and records that, with the receipt of the job that did it.
    /// Returns [`VaultError::Changed`] when a person wrote a file first; the files placed before that
    /// are recorded, the others are left as they are.
    pub(crate) fn write_files(
        &mut self,
        run: Option<RunId>,
        job: Option<(JobId, &Receipt)>,
        files: &[FileWrite],
        recorded: &RecordedChanges,
    ) -> Result<(), JobFailure> {
        // Under the lock, so that an open intent is either ours or of a process that is dead.
        let lock = self.context.write_lock()?;
        let temps: Vec<String> = files.iter().map(|_| Vault::new_temp_name()).collect();
        let batch = FileBatch { run, job, files, recorded };
        let intents = self.begin_intents(&batch, &temps)?;
        reach_failpoint("commit.intents")?;
        let mut placed = 0;
        let mut failure = None;
        for (file, temp) in files.iter().zip(&temps) {
            if let Err(error) = self.place_file(&lock, file, temp) {
                failure = Some(error);
                break;
            }
            placed += 1;
            // The file has no record yet, and the rest of the run would build on it.
            reach_failpoint("commit.placed").map_err(CompactionError::Vault)?;
        }
        match failure {
            None => self.record_batch(&batch, &intents)?,
            Some(error) => self.record_placed_files(&batch, &intents, placed, error)?,
        }
        drop(lock);
        let wisdom = self.context.vault.layout().wisdom();
        if files.iter().any(|it| it.path == wisdom)
            // What was written is recorded; the next run makes up for the block.
            && let Err(error) = self.context.refresh_wisdom_block()
        {
            tracing::warn!("the block of WISDOM.md was not written: {error}");
        }
        Ok(())
    }

    /// Records the intents of a batch, together with the old and new bytes of its files.
    fn begin_intents(
        &mut self,
        batch: &FileBatch<'_>,
        temps: &[String],
    ) -> Result<Vec<IntentId>, CompactionError> {
        let now = (self.context.clock)();
        if batch.files.is_empty() {
            return Ok(Vec::new());
        }
        let forgets = batch.recorded.forgets;
        let new: Vec<_> =
            batch.files.iter().zip(temps).map(|(it, temp)| it.intent(temp, forgets)).collect();
        let layout = self.context.vault.layout();
        let keeps = |path: &str| keeps_history(layout, path);
        let job = batch.job.map(|(id, _)| id);
        Ok(self.context.lineage.begin_intents_with(batch.run, job, &new, &keeps, now)?)
    }

    /// Records a batch whose files are all placed.
    fn record_batch(
        &mut self,
        batch: &FileBatch<'_>,
        intents: &[IntentId],
    ) -> Result<(), JobFailure> {
        let FileBatch { run, job, files, recorded } = *batch;
        let names = recorded_names(self.context.vault.layout(), files);
        let versions = batch.versions(self.context.vault.layout(), &names);
        self.context.lineage.commit(&Commit {
            job,
            used: &recorded.read_paths,
            documents: &recorded.documents,
            removed: &recorded.removed,
            logs: &recorded.logs,
            coverage: &recorded.coverage,
            intents,
            extracted: &recorded.extracted,
            quarantined_memories: &recorded.quarantined,
            proposals: recorded.proposals(),
            quarantined_items: recorded.kept_out_items(),
            versions: &versions,
            run,
            at: (self.context.clock)(),
            ..Commit::default()
        })?;
        reach_failpoint("commit.recorded")?;
        Ok(())
    }

    /// Records the `placed` first files of a batch, where `error` stopped the next one; returns the
    /// error.
    fn record_placed_files(
        &mut self,
        batch: &FileBatch<'_>,
        intents: &[IntentId],
        placed: usize,
        error: VaultError,
    ) -> Result<(), JobFailure> {
        let FileBatch { run, job, files, recorded } = *batch;
        let names = recorded_names(self.context.vault.layout(), &files[..placed]);
        let versions = batch.versions(self.context.vault.layout(), &names);
        // If a step failed after the file took its name, the next recovery finds out which bytes it
        // has; the files that were not begun are left as they are.
        let before = files[placed].current.as_deref().map(str::as_bytes);
        let untouched = matches!(error, VaultError::Changed { .. })
            || self.context.read_bytes(&files[placed].path).is_ok_and(|it| it.as_deref() == before);
        let from = if untouched { placed } else { placed + 1 };
        self.context.lineage.close_intents(&intents[from..], IntentOutcome::Abandoned)?;
        let run = match job {
            Some((id, _)) => Some(self.context.lineage.run_of_job(id)?),
            None => run,
        };
        let written = |path: &str| names.iter().any(|name| name == path);
        let documents: Vec<_> =
            recorded.documents.iter().filter(|it| written(&it.path)).cloned().collect();
        let removed: Vec<_> = recorded.removed.iter().filter(|it| written(it)).cloned().collect();
        self.context.lineage.commit(&Commit {
            documents: &documents,
            removed: &removed,
            intents: &intents[..placed],
            versions: &versions,
            run,
            at: (self.context.clock)(),
            ..Commit::default()
        })?;
        // A file that took its name and may not be on disk has no record, and the rest of the run
        // would build on it.
        if untouched { Err(error.into()) } else { Err(CompactionError::Vault(error).into()) }
    }

    fn place_file(&self, lock: &WriteLock, file: &FileWrite, temp: &str) -> Result<(), VaultError> {
        let expected = file.current.as_deref().map(ContentHash::of);
        match (&file.text, expected) {
            (Some(text), expected) => {
                let staged = self.context.vault.stage(&file.path, temp, text.as_bytes())?;
                self.context.vault.publish(lock, staged, expected)
            }
            (None, Some(expected)) => self.context.vault.remove(lock, &file.path, temp, expected),
            (None, None) => Ok(()),
        }
    }
}

/// Returns whether the history keeps what is written to a file. The bytes of a log are kept by the job
/// that reads it, if at all: a log can hold lines that are to be forgotten.
pub(super) fn keeps_history(layout: &Layout, path: &str) -> bool {
    !matches!(layout.kind_of(path), Some(FileKind::Log | FileKind::Session))
}

pub(super) fn written_version<'a>(path: &'a str, bytes: Option<&'a [u8]>) -> NewVersion<'a> {
    let cause = if bytes.is_some() { VersionCause::Written } else { VersionCause::Removed };
    NewVersion { path, cause, bytes }
}

fn external_version((path, bytes): &(String, Option<Vec<u8>>)) -> NewVersion<'_> {
    let cause =
        if bytes.is_some() { VersionCause::ExternalWrite } else { VersionCause::ExternalRemoval };
    NewVersion { path, cause, bytes: bytes.as_deref() }
}

/// Marks a step at which tests stop the program.
pub(crate) fn reach_failpoint(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| VaultError::Io {
        action: "write",
        path: name.into(),
        source,
    })
}
