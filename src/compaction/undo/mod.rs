//! Undoing a run: its files are restored, and its work is refused until an input changes.
//!
//! - `dependencies`: which runs depend on which, and how far a file can be restored; pure.
//! - `lines`: updates the citations of an older text.
//! - `proposals`: what happens to reviewed proposals whose file is restored.
//! - [`refused_jobs`]: which work is refused, and how that is recorded.
//! - [`preview`]: plans everything, for a dry run and for the real one.
//! - [`resume`]: the record of an undo in progress.
//! - [`error`]: why a run cannot be undone.
//!
//! Refusals are recorded first, in receipts and decisions, so that no run redoes the work when a
//! crash interrupts the undo. That the runs are undone is recorded last and marks the undo as
//! finished. In between, `status` reports it; the next run or the same command continues, and
//! leaves finished files alone.
//!
//! An undo is a run itself. Its receipts name the work that it refused, so that undoing it in turn
//! lifts exactly that.

mod dependencies;
pub(crate) mod error;
mod lines;
pub(crate) mod preview;
mod proposals;
pub(crate) mod refused_jobs;
pub(crate) mod resume;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use self::{
    dependencies::{RestorePoint, RunHistory},
    error::UndoError,
    preview::UndoPreview,
    refused_jobs::UndoJob,
};
use crate::compaction::{
    context::{RunContext, UNDO_TRIGGER},
    error::CompactionError,
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges, reach_failpoint},
        decision_file::DecisionFile,
        records,
    },
    memories::index_file::refresh_index,
    prepare::RunPreparation,
    reconcile::line_moves::CitationUpdater,
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        decision::{Decision, Decisions},
        hash::ContentHash,
    },
    store::db::lineage::{
        history::VersionId,
        jobs::{RunId, RunRow},
        record::Commit,
    },
};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UndoRequest {
    /// The run; if none is named, an unfinished undo, else the last run that can be undone.
    pub run: Option<RunId>,
    /// Whether later runs that depend on it are undone too.
    pub with_dependents: bool,
}

/// What will be done, or was done.
#[derive(Debug)]
pub(crate) struct UndoPlan {
    /// The undone runs, newest first.
    pub runs: Vec<RunRow>,
    /// Their files, by path.
    pub files: Vec<UndoFile>,
    /// Files in which they only relocated citations; that stays.
    pub relocated: BTreeSet<String>,
    /// Work that is refused until an input changes.
    pub refused: Vec<UndoJob>,
    /// Work that is no longer refused.
    pub lifted: Vec<UndoJob>,
}

#[derive(Debug)]
pub(crate) struct UndoFile {
    /// Relative to the root.
    pub path: String,
    /// What is done with it.
    pub outcome: UndoOutcome,
    pub version: Option<VersionId>,
    /// Whether its citations were updated to relocated lines.
    pub citations_updated: bool,
    /// Why it is not exactly as before.
    pub reason: Option<String>,
    current: Option<String>,
    text: Option<String>,
    /// The oldest run whose write is undone.
    oldest_run: Option<RunId>,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UndoOutcome {
    /// An older version is restored.
    Restored,
    /// The runs created it, so it is removed.
    Removed,
    /// It is already as it should be, thanks to somebody else or an interrupted attempt.
    Unchanged,
    /// A person changed it since, so it stays.
    Kept,
    /// The older version is no longer in the history, so the file stays.
    Lost,
}

pub(crate) struct Undoer<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Undoer<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    pub(crate) fn undo(
        &mut self,
        request: UndoRequest,
        expected: &[RunId],
    ) -> Result<(RunId, UndoPlan), UndoError> {
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        // What people did meanwhile is theirs, not part of the undone run.
        let view = RunPreparation::new(self.context).reconcile_locked(UNDO_TRIGGER, now)?;
        self.context.remove_temp_files()?;
        self.undo_reconciled(request, Some(expected), &view, now)
    }

    /// Finishes interrupted undos: a run would mistake half restored files for a person's edits.
    /// Returns messages for people. `accepted` says that a person accepts damaged files as they
    /// are.
    ///
    /// An undo that can no longer be finished is left as it is, and `status` keeps reporting it.
    pub(super) fn finish_undoing(
        &mut self,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<Vec<String>, CompactionError> {
        let mut messages = Vec::new();
        // One that cannot be finished must not block the others.
        let mut tried = BTreeSet::new();
        loop {
            let open = resume::all_unfinished(self.context.vault, self.context.lineage)?;
            let Some(next) = open.into_iter().find(|it| tried.insert(it.run)) else {
                return Ok(messages);
            };
            messages.extend(self.finish_one_undo(next, now, accepted)?);
        }
    }

    fn finish_one_undo(
        &mut self,
        request: UndoRequest,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<Option<String>, CompactionError> {
        RunPreparation::new(self.context).reconcile_snapshot(UNDO_TRIGGER, now, accepted)?;
        let view = self.context.take_snapshot(now)?;
        view.refuse_damaged(|_| !accepted)?;
        let error = match self.undo_reconciled(request, None, &view, now) {
            Ok((run, undo_plan)) => {
                let message = |first: &RunRow| {
                    let first = first.id;
                    format!("undoing run {first} was interrupted; run {run} finished it")
                };
                return Ok(undo_plan.runs.last().map(message));
            }
            Err(UndoError::Interrupted { source, .. }) => *source,
            Err(error) => error,
        };
        match error {
            UndoError::Compaction(error) => Err(error),
            _ => Ok(None),
        }
    }

    /// Undoes runs after the edits of people were reconciled. `expected` are the runs that a person
    /// was shown, if one was asked.
    fn undo_reconciled(
        &mut self,
        request: UndoRequest,
        expected: Option<&[RunId]>,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(RunId, UndoPlan), UndoError> {
        let preview = UndoPreview {
            vault: self.context.vault,
            lineage: self.context.lineage,
            view,
            settings: self.context.settings,
            engine: self.context.engine.id(),
            now,
        };
        let history = preview.run_history()?;
        let undo_plan = preview.plan(request)?;
        let taken: Vec<RunId> = undo_plan.runs.iter().map(|it| it.id).collect();
        if expected.is_some_and(|it| it != taken) {
            return Err(UndoError::ChangedSinceShown);
        }
        let run = self.context.ensure_run(&mut None, UNDO_TRIGGER, now)?;
        let done = self.apply_undo(run, &undo_plan, request, &history, view, now);
        self.context.end_run(run)?;
        done.map_err(|error| self.interrupted(&undo_plan, error))?;
        Ok((run, undo_plan))
    }

    /// Returns an error that says how far it came.
    fn interrupted(&self, undo_plan: &UndoPlan, error: UndoError) -> UndoError {
        let Some(run) = undo_plan.runs.last().map(|it| it.id) else { return error };
        let planned: Vec<&UndoFile> = undo_plan.files.iter().filter(|it| it.is_written()).collect();
        let stands =
            |it: &UndoFile| self.context.vault.read_text(&it.path).is_ok_and(|is| is == it.text);
        let left: Vec<&str> =
            planned.iter().filter(|it| !stands(it)).map(|it| &it.path[..]).collect();
        UndoError::Interrupted {
            run,
            with_later: undo_plan.runs.len() > 1,
            done: planned.len() - left.len(),
            all: planned.len(),
            next: left.first().map(|it| (*it).to_owned()),
            source: Box::new(error),
        }
    }

    fn apply_undo(
        &mut self,
        run: RunId,
        undo_plan: &UndoPlan,
        request: UndoRequest,
        history: &RunHistory,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), UndoError> {
        let first = undo_plan.runs.last().ok_or(UndoError::NothingToUndo)?;
        resume::add_note(
            self.context.vault,
            self.context.lineage,
            first,
            request.with_dependents,
            run,
        )?;
        reach_failpoint("undo.noted")?;
        let receipts = undo_plan.receipts(now);
        let nothing = || Commit { at: now, ..Commit::default() };
        let done: Vec<_> = receipts.iter().map(|(job, it)| (job, it, nothing())).collect();
        self.context.lineage.commit_finished_jobs(run, &done)?;
        reach_failpoint("undo.receipts")?;
        self.write_decisions(&view.inventory.decisions, &undo_plan.decisions(now))?;
        self.update_proposals(undo_plan, view, now)?;
        reach_failpoint("undo.decided")?;
        let mut files: Vec<FileWrite> =
            undo_plan.files.iter().filter(|it| it.is_written()).map(UndoFile::to_write).collect();
        let mut recorded = RecordedChanges::default();
        for file in &files {
            match &file.text {
                Some(text) => recorded.documents.extend(records::of_path(
                    self.context.vault.layout(),
                    &file.path,
                    text,
                )),
                None => recorded.removed.push(file.path.clone()),
            }
        }
        let whole = undo_plan.files.iter().filter(|it| it.text.is_some()).map(|it| &it.path[..]);
        let whole: BTreeSet<&str> = whole.collect();
        CitationUpdater::new(self.context)
            .update_citations_of_written(view, &whole, &mut files, &mut recorded)
            .map_err(|it| it.into_compaction_error(UNDO_TRIGGER))?;
        self.write_undo(run, &files, &recorded)?;
        reach_failpoint("undo.written")?;
        self.update_index_after_undo(run, undo_plan, history, now)?;
        reach_failpoint("undo.index")?;
        let taken: Vec<RunId> = undo_plan.runs.iter().map(|it| it.id).collect();
        self.context.lineage.record_undone_runs(run, &taken)?;
        reach_failpoint("undo.taken")?;
        Ok(resume::drop_finished_notes(self.context.vault, self.context.lineage)?)
    }

    fn write_undo(
        &mut self,
        run: RunId,
        files: &[FileWrite],
        recorded: &RecordedChanges,
    ) -> Result<(), CompactionError> {
        Journal::new(self.context)
            .write_files(Some(run), None, files, recorded)
            .map_err(|it| it.into_compaction_error(UNDO_TRIGGER))
    }

    /// Updates the index; an index that the runs created is removed with the last memory.
    fn update_index_after_undo(
        &mut self,
        run: RunId,
        undo_plan: &UndoPlan,
        history: &RunHistory,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let view = self.context.take_snapshot(now)?;
        let layout = self.context.vault.layout();
        let path = layout.index();
        if layout.wisdom_block() == Some(&path[..]) {
            return Ok(());
        }
        let runs = undo_plan.runs.iter().map(|it| it.id).collect();
        if let (Some(index), true) = (&view.inventory.index, view.inventory.memories.is_empty()) {
            let back = history.restore_point(&path, &runs, Some(ContentHash::of(index)));
            if back.is_some_and(|it| it.content.is_none()) {
                let file = FileWrite { path, text: None, current: Some(index.clone()) };
                return self.write_undo(run, &[file], &RecordedChanges::default());
            }
        }
        refresh_index(self.context, Some(run), &view).map(drop)
    }

    fn write_decisions(&self, known: &Decisions, made: &[Decision]) -> Result<(), CompactionError> {
        if !made.is_empty() && !known.has_key() {
            DecisionFile::new(self.context).create_key()?;
        }
        DecisionFile::new(self.context).append(made)
    }
}

impl UndoFile {
    fn new(path: &str, current: Option<String>, back: &RestorePoint) -> Self {
        let outcome = if current.is_none() { UndoOutcome::Unchanged } else { UndoOutcome::Removed };
        let reason = back.stopped_by_user.then(|| {
            format!("somebody else changed it before run {} wrote it again", back.oldest_run)
        });
        Self {
            path: path.to_owned(),
            outcome,
            version: None,
            citations_updated: false,
            reason,
            current,
            text: None,
            oldest_run: Some(back.oldest_run),
        }
    }

    fn left_unchanged(path: &str, current: Option<String>, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            outcome: UndoOutcome::Kept,
            version: None,
            citations_updated: false,
            reason: Some(reason),
            current,
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
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Unchanged => "unchanged",
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}
