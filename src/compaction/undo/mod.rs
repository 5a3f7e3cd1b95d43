//! A run taken back: its files as they stood before it, and its work refused until an input changes.
//!
//! - [`past`]: which runs rest on which, and how far a file can be brought back; pure.
//! - [`lines`]: citations of an older text where the lines stand now.
//! - [`said`]: what a person said of changes that are made no longer, or again.
//! - [`work`]: what is refused, and how that is written down.
//! - [`foresight`] puts together what would be done, for a dry run as for the deed.
//! - [`begun`]: the note of what is not finished.
//! - [`error`]: why a run is not taken back.
//!
//! What is refused is written down first, in receipts and among the decisions, so that no pass brings
//! back what a crash left half taken back; who took what back is recorded last, and tells that it was
//! done. In between, `status` tells of it; the next pass and the same command take up what was cut off:
//! a file that stands as it should is left alone.
//!
//! Taking a run back is a run itself. Its receipts name the work that it refused, so that taking it
//! back in turn lifts just that.

pub mod begun;
pub mod error;
pub mod foresight;
mod lines;
mod past;
mod said;
pub mod work;

pub(super) use self::past::REPAIR;

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

pub(super) use self::past::REVIEW;
use self::{
    error::UndoError,
    foresight::Foresight,
    past::{Back, Past, TRIGGER},
    work::Work,
};
use super::{
    Compactor, JobError, PassError, View,
    commit::{NewFile, Recorded},
    records,
};
use crate::{
    memory::{
        decision::{Decision, Decisions},
        hash::ContentHash,
    },
    store::{
        failpoint,
        lineage::{
            history::VersionId,
            jobs::{RunId, RunRow},
            record::Commit,
        },
        vault::VaultError,
    },
};

/// What is to be taken back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// The run; when none is named, the one that is taken back only in part, else the last one that
    /// can be.
    pub run: Option<RunId>,
    /// Also the later ones that rest on it.
    pub with_later: bool,
}

/// What will be done, or was done.
#[derive(Debug)]
pub struct Undoing {
    /// The runs that are taken back, the newest first.
    pub runs: Vec<RunRow>,
    /// Their files, by path.
    pub files: Vec<UndoneFile>,
    /// Files in which they followed lines that moved; that stays.
    pub moved: BTreeSet<String>,
    /// Work that waits for changed input from now on.
    pub refused: Vec<Work>,
    /// Work that waits no longer.
    pub lifted: Vec<Work>,
}

/// What becomes of a file.
#[derive(Debug)]
pub struct UndoneFile {
    /// Relative to the root.
    pub path: String,
    /// What is done with it.
    pub fate: Fate,
    /// The version that stands there then.
    pub version: Option<VersionId>,
    /// Whether its citations follow lines that moved since.
    pub followed: bool,
    /// Why it is not as it was before.
    pub reason: Option<String>,
    standing: Option<String>,
    text: Option<String>,
    /// The oldest run whose write is taken back.
    before: Option<RunId>,
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// An older version stands there.
    Restored,
    /// The runs had made it, and it is gone.
    Removed,
    /// It stands as it should: somebody, or an attempt that was cut off, was faster.
    Already,
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
        request: Request,
        expected: &[RunId],
    ) -> Result<(RunId, Undoing), UndoError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        // What people did meanwhile is theirs and not of the run that is taken back.
        let view = self.notice_alone(TRIGGER, now)?;
        self.sweep()?;
        self.undo_noticed(request, Some(expected), &view, now)
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
    ) -> Result<Vec<String>, PassError> {
        let mut told = Vec::new();
        // One that cannot be finished holds up none that was begun before it.
        let mut tried = BTreeSet::new();
        loop {
            let open = begun::all_unfinished(self.vault, self.lineage)?;
            let Some(next) = open.into_iter().find(|it| tried.insert(it.run)) else {
                return Ok(told);
            };
            told.extend(self.finish_undoing_of(next, now, accepted)?);
        }
    }

    fn finish_undoing_of(
        &mut self,
        request: Request,
        now: DateTime<Utc>,
        accepted: bool,
    ) -> Result<Option<String>, PassError> {
        self.take_notice(TRIGGER, now, accepted)?;
        let view = self.look(now)?;
        view.refuse_held(|_| !accepted)?;
        let error = match self.undo_noticed(request, None, &view, now) {
            Ok((run, undoing)) => {
                let told = |first: &RunRow| {
                    let first = first.id;
                    format!(
                        "taking back run {first} had been cut off, and was finished by run {run}"
                    )
                };
                return Ok(undoing.runs.last().map(told));
            }
            Err(UndoError::CutOff { source, .. }) => *source,
            Err(error) => error,
        };
        match error {
            UndoError::Pass(error) => Err(error),
            _ => Ok(None),
        }
    }

    /// Takes runs back once it is known what people did. `expected` are the runs that a person was
    /// shown, if one is asked.
    fn undo_noticed(
        &mut self,
        request: Request,
        expected: Option<&[RunId]>,
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(RunId, Undoing), UndoError> {
        let foresight = Foresight {
            vault: self.vault,
            lineage: self.lineage,
            view,
            settings: self.settings,
            engine: self.engine.id(),
            now,
        };
        let past = foresight.past()?;
        let undoing = foresight.undo(request)?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        if expected.is_some_and(|it| it != taken) {
            return Err(UndoError::Overtaken);
        }
        let run = self.run(&mut None, TRIGGER, now)?;
        let done = self.take_back(run, &undoing, request, &past, view, now);
        self.end_run(run)?;
        done.map_err(|error| self.cut_off(&undoing, error))?;
        Ok((run, undoing))
    }

    /// Says how far it came.
    fn cut_off(&self, undoing: &Undoing, error: UndoError) -> UndoError {
        let Some(run) = undoing.runs.last().map(|it| it.id) else { return error };
        let wanted: Vec<&UndoneFile> = undoing.files.iter().filter(|it| it.is_written()).collect();
        let stands = |it: &UndoneFile| self.vault.read_text(&it.path).is_ok_and(|is| is == it.text);
        let left: Vec<&str> =
            wanted.iter().filter(|it| !stands(it)).map(|it| &it.path[..]).collect();
        UndoError::CutOff {
            run,
            with_later: undoing.runs.len() > 1,
            done: wanted.len() - left.len(),
            all: wanted.len(),
            next: left.first().map(|it| (*it).to_owned()),
            source: Box::new(error),
        }
    }

    fn take_back(
        &mut self,
        run: RunId,
        undoing: &Undoing,
        request: Request,
        past: &Past,
        view: &View,
        now: DateTime<Utc>,
    ) -> Result<(), UndoError> {
        if let Some(first) = undoing.runs.last() {
            begun::note(self.vault, self.lineage, first, request.with_later, run)?;
        }
        passed("undo.noted")?;
        let receipts = undoing.receipts(now);
        let nothing = || Commit { at: now, ..Commit::default() };
        let done: Vec<_> = receipts.iter().map(|(job, it)| (job, it, nothing())).collect();
        self.lineage.commit_done(run, &done)?;
        passed("undo.receipts")?;
        self.write_decisions(&view.inventory.decisions, &undoing.decisions(now))?;
        self.follow_proposals(undoing, view, now)?;
        passed("undo.decided")?;
        let mut files: Vec<NewFile> =
            undoing.files.iter().filter(|it| it.is_written()).map(UndoneFile::to_write).collect();
        let mut recorded = Recorded::default();
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
        self.follow_written(view, &whole, &mut files, &mut recorded).map_err(undo_failed)?;
        self.write_all(run, &files, &recorded)?;
        passed("undo.written")?;
        self.index_after(run, undoing, past, now)?;
        passed("undo.index")?;
        let taken: Vec<RunId> = undoing.runs.iter().map(|it| it.id).collect();
        self.lineage.take_back(run, &taken)?;
        passed("undo.taken")?;
        Ok(begun::tidy(self.vault, self.lineage)?)
    }

    fn write_all(
        &mut self,
        run: RunId,
        files: &[NewFile],
        recorded: &Recorded,
    ) -> Result<(), PassError> {
        self.write(Some(run), None, files, recorded).map_err(undo_failed)
    }

    /// Brings the index up to date; one that the runs had made goes with the last memory.
    fn index_after(
        &mut self,
        run: RunId,
        undoing: &Undoing,
        past: &Past,
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let view = self.look(now)?;
        let path = self.vault.layout().index();
        let runs = undoing.runs.iter().map(|it| it.id).collect();
        if let (Some(index), true) = (&view.inventory.index, view.inventory.memories.is_empty()) {
            let back = past.back(&path, &runs, Some(ContentHash::of(index)));
            if back.is_some_and(|it| it.to.is_none()) {
                let file = NewFile { path, text: None, standing: Some(index.clone()) };
                return self.write_all(run, &[file], &Recorded::default());
            }
        }
        self.refresh_index(Some(run), &view).map(drop)
    }

    fn write_decisions(&self, known: &Decisions, made: &[Decision]) -> Result<(), PassError> {
        if !made.is_empty() && !known.has_key() {
            self.new_decisions()?;
        }
        self.append_decisions(made)
    }
}

impl UndoneFile {
    fn new(path: &str, standing: Option<String>, back: &Back) -> Self {
        let fate = if standing.is_none() { Fate::Already } else { Fate::Removed };
        let reason = back
            .stopped
            .then(|| format!("somebody else changed it before run {} wrote it again", back.before));
        Self {
            path: path.to_owned(),
            fate,
            version: None,
            followed: false,
            reason,
            standing,
            text: None,
            before: Some(back.before),
        }
    }

    fn kept(path: &str, standing: Option<String>, reason: String) -> Self {
        Self {
            path: path.to_owned(),
            fate: Fate::Kept,
            version: None,
            followed: false,
            reason: Some(reason),
            standing,
            text: None,
            before: None,
        }
    }

    fn is_written(&self) -> bool {
        matches!(self.fate, Fate::Restored | Fate::Removed)
    }

    fn to_write(&self) -> NewFile {
        NewFile {
            path: self.path.clone(),
            text: self.text.clone(),
            standing: self.standing.clone(),
        }
    }
}

impl Fate {
    /// Returns the name that JSON uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Removed => "removed",
            Self::Already => "unchanged",
            Self::Kept => "kept",
            Self::Lost => "lost",
        }
    }
}

fn undo_failed(error: JobError) -> PassError {
    match error {
        JobError::Critical(error) => error,
        JobError::Vault(error) => error.into(),
        other => failed("undo", std::io::Error::other(other.to_string())).into(),
    }
}

fn failed(path: &str, source: std::io::Error) -> VaultError {
    VaultError::Io { action: "write", path: path.into(), source }
}

/// Passes a step that tests stop at.
fn passed(name: &'static str) -> Result<(), VaultError> {
    failpoint::at(name).map_err(|source| failed(name, source))
}
