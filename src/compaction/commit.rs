//! How files are written and recorded: intent, bytes, one transaction.
//!
//! The order is that of `store::vault` and `store::lineage`: staged bytes are synced, the intent
//! is committed, the file takes its name, and one transaction records it with its job. A crash
//! leaves at most an open intent, which [`Compactor::recover`] closes by looking at the file.

use chrono::{DateTime, Utc};

use super::{Compactor, JobError, PassError, records};
use crate::{
    memory::hash::ContentHash,
    store::{
        lineage::{
            jobs::{IntentEnd, JobId, NewIntent, Receipt},
            record::{Commit, CoverageRecord, DocumentRecord, LogRecord},
        },
        vault::VaultError,
    },
};

/// A file to be written.
#[derive(Debug)]
pub(super) struct NewFile {
    /// Relative to the root.
    pub(super) path: String,
    /// All of it.
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
    pub(super) extracted: Vec<(crate::memory::address::Stem, ContentHash)>,
    /// Paths that the job read.
    pub(super) used: Vec<String>,
}

/// Names this process and its boot, so that another one can tell whether it still lives.
pub(super) fn owner() -> String {
    format!("{}@{}", std::process::id(), boot_id())
}

fn boot_id() -> String {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|it| it.trim().to_owned()).unwrap_or_default()
}

/// Returns whether the process that the `owner` of a run names is still there.
pub fn is_alive(owner: &str) -> bool {
    let Some((pid, boot)) = owner.split_once('@') else { return false };
    let pid = pid.parse().ok().and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid.filter(|_| boot == boot_id()) else { return false };
    match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        // It is there and somebody else's.
        Err(errno) => errno == rustix::io::Errno::PERM,
    }
}

impl Compactor<'_> {
    /// Writes files and records them with the job's receipt.
    ///
    /// # Errors
    ///
    /// Returns [`VaultError::Changed`] when a person was faster; the files placed before that are
    /// recorded, the others are left as they are.
    pub(super) fn write(
        &mut self,
        job: Option<(JobId, &Receipt)>,
        files: &[NewFile],
        recorded: &Recorded,
    ) -> Result<(), JobError> {
        // Under the lock, so that nobody takes the temporary files for what a crash left.
        let lock = self.write_lock()?;
        let mut staged = Vec::new();
        for file in files {
            let Some(text) = &file.text else {
                #[expect(clippy::disallowed_methods, reason = "until there is a journaled way")]
                std::fs::remove_file(self.vault.layout().full(&file.path)).ok();
                continue;
            };
            let expected = file.standing.as_deref().map(ContentHash::of);
            staged.push((self.vault.stage(&file.path, text.as_bytes())?, expected));
        }
        let mut intents = Vec::new();
        for (staged, expected) in &staged {
            let temp = staged.temp_name();
            intents.push(self.lineage.begin_intent(&NewIntent {
                job: job.map(|(id, _)| id),
                target: staged.target(),
                temp: &temp,
                new_hash: staged.hash(),
                old_hash: *expected,
            })?);
        }
        let mut placed = 0;
        let mut failure = None;
        for (staged, expected) in staged {
            if let Err(error) = self.vault.place(&lock, staged, expected) {
                failure = Some(error);
                break;
            }
            placed += 1;
        }
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
                files: &[],
            })?;
            return Ok(());
        };
        for &intent in &intents[placed..] {
            self.lineage.close_intent(intent, IntentEnd::Dropped)?;
        }
        let there = |it: &&DocumentRecord| files[..placed].iter().any(|file| file.path == it.path);
        let documents: Vec<_> = recorded.documents.iter().filter(there).cloned().collect();
        let commit =
            Commit { documents: &documents, intents: &intents[..placed], ..Commit::default() };
        self.lineage.commit(&commit)?;
        Err(error.into())
    }

    /// Puts right what a crash left: jobs without an end, and files without a record.
    ///
    /// An intent is open only while its process holds the write lock, so whoever has the lock finds
    /// none but those of the dead.
    pub(super) fn recover(&mut self, now: DateTime<Utc>) -> Result<(), PassError> {
        // A root has one pass at a time in a process, so an unfinished run of our own is dead too.
        let own = owner();
        self.lineage.abandoned(now, &|it| it != own && is_alive(it))?;
        let open = self.lineage.open_intents()?;
        if open.is_empty() {
            return Ok(());
        }
        let _lock = self.write_lock()?;
        // Whoever held the lock until now may have closed some of them.
        for intent in self.lineage.open_intents()? {
            let found = match self.vault.read(&intent.target) {
                Ok(found) => found,
                // It cannot be told what stands there; the next pass reports it.
                Err(VaultError::NotAFile { .. } | VaultError::TooLarge { .. }) => None,
                Err(error) => return Err(error.into()),
            };
            let hash = found.as_ref().map(|it| ContentHash::of(&it.bytes));
            if hash == Some(intent.new_hash) {
                let text = found
                    .map(|it| String::from_utf8_lossy(&it.bytes).into_owned())
                    .unwrap_or_default();
                let document = records::of_path(self.vault.layout(), &intent.target, &text);
                let documents: Vec<_> = document.into_iter().collect();
                let commit =
                    Commit { documents: &documents, intents: &[intent.id], ..Commit::default() };
                self.lineage.commit(&commit)?;
            } else {
                self.lineage.close_intent(intent.id, IntentEnd::Dropped)?;
            }
        }
        Ok(())
    }
}
