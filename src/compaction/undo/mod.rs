//! A run taken back: its files as they stood before it, and its work refused until an input changes.
//!
//! - [`dependencies`]: which runs rest on which, and how far a file can be brought back; pure.
//! - [`lines`]: citations of an older text where the lines stand now.
//! - [`proposals`]: what a person said of changes that are made no longer, or again.
//! - [`refused_jobs`]: what is refused, and how that is written down.
//! - [`preview`] puts together what would be done, for a dry run as for the deed.
//! - [`resume`]: the note of what is not finished.
//! - [`error`]: why a run is not taken back.
//!
//! What is refused is written down first, in receipts and among the decisions, so that no pass brings
//! back what a crash left half taken back; who took what back is recorded last, and tells that it was
//! done. In between, `status` tells of it; the next pass and the same command take up what was cut off:
//! a file that stands as it should is left alone.
//!
//! Taking a run back is a run itself. Its receipts name the work that it refused, so that taking it
//! back in turn lifts just that.

mod dependencies;
pub mod error;
mod lines;
pub mod preview;
mod proposals;
pub mod refused_jobs;
pub mod resume;

pub(super) use self::dependencies::REPAIR_TRIGGER;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

pub(super) use self::dependencies::REVIEW_TRIGGER;
use self::{
    dependencies::{RestorePoint, RunHistory, UNDO_TRIGGER},
    error::UndoError,
    preview::UndoPreview,
    refused_jobs::UndoJob,
};
use super::{
    CompactionError, Compactor, JobFailure, RootSnapshot,
    journal::{
        commit::{FileWrite, RecordedChanges},
        records,
    },
};
use crate::{
    memory::{
        decision::{Decision, Decisions},
        hash::ContentHash,
    },
    store::{
        db::lineage::{
            history::VersionId,
            jobs::{RunId, RunRow},
            record::Commit,
        },
        failpoint,
        fs::vault::VaultError,
    },
};

/// What is to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub struct UndoRequest {
    /// The run; when none is named, the one that is taken back only in part, else the last one that
    /// can be.
    pub run: Option<RunId>,
    /// Also the later ones that rest on it.
    pub with_dependents: bool,
}

/// What will be done, or was done.
#[derive(Debug)]
pub struct UndoPlan {
    /// The runs that are taken back, the newest first.
    pub runs: Vec<RunRow>,
    /// Their files, by path.
    pub files: Vec<UndoFile>,
    /// Files in which they followed lines that moved; that stays.
    pub relocated: BTreeSet<String>,
    /// Work that waits for changed input from now on.
    pub refused: Vec<UndoJob>,
    /// Work that waits no longer.
    pub lifted: Vec<UndoJob>,
}

/// What becomes of a file.
#[derive(Debug)]
pub struct UndoFile {
    /// Relative to the root.
    pub path: String,
    /// What is done with it.
    pub outcome: UndoOutcome,
    /// The version that stands there then.
    pub version: Option<VersionId>,
    /// Whether its citations follow lines that moved since.
    pub citations_updated: bool,
    /// Why it is not as it was before.
    pub reason: Option<String>,
    current: Option<String>,
    text: Option<String>,
    /// The oldest run whose write is taken back.
    oldest_run: Option<RunId>,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoOutcome {
    /// An older version stands there.
    Restored,
    /// The runs had made it, and it is gone.
    Removed,
    /// It stands as it should: somebody, or an attempt that was cut off, was faster.
    Unchanged,
    /// A person changed it since, so it is left as it is.
    Kept,
    /// The bytes of the older version are no longer kept, so it is left as it is.
    Lost,
}

impl Compactor<'_> {
    /// Takes runs back, and returns what was done with the number of the run that did it. `expected`
    /// are the runs that a person was shown.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be done; what was begun is taken up by the same call.
    pub fn undo(
        &mut self,
        request: UndoRequest,
        expected: &[RunId],
    ) -> Result<(RunId, UndoPlan), UndoError> {
        let _alone = self.acquire_run_lock(&|| false)?;
        let now = (self.clock)();
        // What people did meanwhile is theirs and not of the run that is taken back.
        let view = self.reconcile_locked(UNDO_TRIGGER, now)?;
        self.remove_temp_files()?;
        self.undo_reconciled(request, Some(expected), &view, now)
    }

    /// Finishes what was begun to be taken back and was cut off: a pass would take files that are half
    /// taken back for what somebody meant. Returns what there is to tell of it. `accepted` says that a
    /// person takes held files as they are.
    ///
    /// What can no longer be taken back is left as it is, and `status` goes on telling of it.
    pub(super) fn finish_undoing(
        &mut self,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<Vec<String>, CompactionError> {
        let mut told = Vec::new();
        // One that cannot be finished holds up none that was begun before it.
        let mut tried = BTreeSet::new();
        loop {
            let open = resume::all_unfinished(self.vault, self.lineage)?;
            let Some(next) = open.into_iter().find(|it| tried.insert(it.run)) else {
                return Ok(told);
            };
            told.extend(self.finish_one_undo(next, now, accepted)?);
        }
    }

    fn finish_one_undo(
        &mut self,
        request: UndoRequest,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<Option<String>, CompactionError> {
        self.reconcile_snapshot(UNDO_TRIGGER, now, accepted)?;
        let view = self.take_snapshot(now)?;
        view.refuse_damaged(|_| !accepted)?;
        let error = match self.undo_reconciled(request, None, &view, now) {
            Ok((run, undoing)) => {
                let told = |first: &RunRow| {
                    let first = first.id;
                    format!(
                        "taking back run {first} had been cut off, and was finished by run {run}"
                    )
                };
                return Ok(undoing.runs.last().map(told));
            }
            Err(UndoError::Interrupted { source, .. }) => *source,
            Err(error) => error,
        };
        match error {
            UndoError::Pass(error) => Err(error),
            _ => Ok(None),
        }
    }

    /// Takes runs back once it is known what people did. `expected` are the runs that a person was
    /// shown, if one is asked.
    fn undo_reconciled(
        &mut self,
        request: UndoRequest,
        expected: Option<&[RunId]>,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(RunId, UndoPlan), UndoError> {
        let foresight = UndoPreview {
            vault: self.vault,
            lineage: self.lineage,
            view,
            settings: self.settings,
            engine: self.engine.id(),
            now,
        };
        let past = foresight.run_history()?;
        let undoing = foresight.plan(request)?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        if expected.is_some_and(|it| it != taken) {
            return Err(UndoError::ChangedSinceShown);
        }
        let run = self.ensure_run(&mut None, UNDO_TRIGGER, now)?;
        let done = self.apply_undo(run, &undoing, request, &past, view, now);
        self.end_run(run)?;
        done.map_err(|error| self.interrupted(&undoing, error))?;
        Ok((run, undoing))
    }

    /// Says how far it came.
    fn interrupted(&self, undoing: &UndoPlan, error: UndoError) -> UndoError {
        let Some(run) = undoing.runs.last().map(|it| it.id) else { return error };
        let wanted: Vec<&UndoFile> = undoing.files.iter().filter(|it| it.is_written()).collect();
        let stands = |it: &UndoFile| self.vault.read_text(&it.path).is_ok_and(|is| is == it.text);
        let left: Vec<&str> =
            wanted.iter().filter(|it| !stands(it)).map(|it| &it.path[..]).collect();
        UndoError::Interrupted {
            run,
            with_later: undoing.runs.len() > 1,
            done: wanted.len() - left.len(),
            all: wanted.len(),
            next: left.first().map(|it| (*it).to_owned()),
            source: Box::new(error),
        }
    }

    fn apply_undo(
        &mut self,
        run: RunId,
        undoing: &UndoPlan,
        request: UndoRequest,
        past: &RunHistory,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), UndoError> {
        if let Some(first) = undoing.runs.last() {
            resume::add_note(self.vault, self.lineage, first, request.with_dependents, run)?;
        }
        reach_undo_failpoint("undo.noted")?;
        let receipts = undoing.receipts(now);
        let nothing = || Commit { at: now, ..Commit::default() };
        let done: Vec<_> = receipts.iter().map(|(job, it)| (job, it, nothing())).collect();
        self.lineage.commit_finished_jobs(run, &done)?;
        reach_undo_failpoint("undo.receipts")?;
        self.write_decisions(&view.inventory.decisions, &undoing.decisions(now))?;
        self.update_proposals(undoing, view, now)?;
        reach_undo_failpoint("undo.decided")?;
        let mut files: Vec<FileWrite> =
            undoing.files.iter().filter(|it| it.is_written()).map(UndoFile::to_write).collect();
        let mut recorded = RecordedChanges::default();
        for file in &files {
            match &file.text {
                Some(text) => recorded.documents.extend(records::of_path(
                    self.vault.layout(),
                    &file.path,
                    text,
                )),
                None => recorded.removed.push(file.path.clone()),
            }
        }
        let whole = undoing.files.iter().filter(|it| it.text.is_some()).map(|it| &it.path[..]);
        let whole: BTreeSet<&str> = whole.collect();
        self.update_citations_of_written(view, &whole, &mut files, &mut recorded)
            .map_err(pass_error)?;
        self.write_undo(run, &files, &recorded)?;
        reach_undo_failpoint("undo.written")?;
        self.update_index_after_undo(run, undoing, past, now)?;
        reach_undo_failpoint("undo.index")?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        self.lineage.record_undone_runs(run, &taken)?;
        reach_undo_failpoint("undo.taken")?;
        Ok(resume::drop_finished_notes(self.vault, self.lineage)?)
    }

    fn write_undo(
        &mut self,
        run: RunId,
        files: &[FileWrite],
        recorded: &RecordedChanges,
    ) -> Result<(), CompactionError> {
        self.write_files(Some(run), None, files, recorded).map_err(pass_error)
    }

    /// Brings the index up to date; one that the runs had made goes with the last memory.
    fn update_index_after_undo(
        &mut self,
        run: RunId,
        undoing: &UndoPlan,
        past: &RunHistory,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let view = self.take_snapshot(now)?;
        let path = self.vault.layout().index();
        let runs = undoing.runs.iter().map(|it| it.id).collect();
        if let (Some(index), true) = (&view.inventory.index, view.inventory.memories.is_empty()) {
            let back = past.restore_point(&path, &runs, Some(ContentHash::of(index)));
            if back.is_some_and(|it| it.content.is_none()) {
                let file = FileWrite { path, text: None, current: Some(index.clone()) };
                return self.write_undo(run, &[file], &RecordedChanges::default());
            }
        }
        self.refresh_index(Some(run), &view).map(drop)
    }

    fn write_decisions(&self, known: &Decisions, made: &[Decision]) -> Result<(), CompactionError> {
        if !made.is_empty() && !known.has_key() {
            self.create_decisions_key()?;
        }
        self.append_decisions(made)
    }
}

impl UndoFile {
    fn new(path: &str, standing: Option<String>, back: &RestorePoint) -> Self {
        let fate = if standing.is_none() { UndoOutcome::Unchanged } else { UndoOutcome::Removed };
        let reason = back.stopped_by_user.then(|| {
            format!("somebody else changed it before run {} wrote it again", back.oldest_run)
        });
        Self {
            path: path.to_owned(),
            outcome: fate,
            version: None,
            citations_updated: false,
            reason,
            current: standing,
            text: None,
            oldest_run: Some(back.oldest_run),
        }
    }

    fn kept(path: &str, standing: Option<String>, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            outcome: UndoOutcome::Kept,
            version: None,
            citations_updated: false,
            reason: Some(reason),
            current: standing,
            text: None,
            oldest_run: None,
        }
    }

    fn is_written(&self) -> bool {
        matches!(self.outcome, UndoOutcome::Restored | UndoOutcome::Removed)
    }

    fn to_write(&self) -> FileWrite {
        FileWrite {
            path: self.path.clone(),
            text: self.text.clone(),
            current: self.current.clone(),
        }
    }
}

impl UndoOutcome {
    /// Returns the name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}

fn pass_error(error: JobFailure) -> CompactionError {
    match error {
        JobFailure::Critical(error) => error,
        JobFailure::Vault(error) => error.into(),
        other => write_error("undo", std::io::Error::other(other.to_string())).into(),
    }
}

fn write_error(path: &str, source: std::io::Error) -> VaultError {
    VaultError::Io { action: "write", path: path.into(), source }
}

/// Passes a step that tests stop at.
fn reach_undo_failpoint(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| write_error(name, source))
}
