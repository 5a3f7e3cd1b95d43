//! Why a run is not taken back.

use std::collections::BTreeSet;

use crate::{
    compaction::CompactionError,
    store::{
        db::lineage::{
            LineageError,
            jobs::{RunId, RunRow},
        },
        fs::vault::VaultError,
    },
};

/// A later run that holds one up.
#[derive(Clone, Debug)]
pub struct DependentRun {
    /// It.
    pub run: RunRow,
    /// The files that tie it.
    pub paths: BTreeSet<String>,
}

/// Why nothing was taken back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The last run wrote down what a person said in `review`, which is taken back there.
    #[error("run {run}, the last one, wrote no file: it is what you said in `review`")]
    ReviewOnly {
        /// The run.
        run: RunId,
        /// The last one that can be taken back here.
        before: Option<RunId>,
    },
    /// Nothing is recorded, or nothing is left.
    #[error("no run is recorded that could be taken back")]
    NothingToUndo,
    /// There is no such run.
    #[error("there is no run {run}")]
    UnknownRun {
        /// The number.
        run: RunId,
        /// Runs that can be taken back, the oldest first.
        known: Vec<RunId>,
    },
    /// The run wrote no file of ours.
    #[error("run {run} wrote no file that could be taken back")]
    NoFilesWritten {
        /// The run.
        run: RunId,
    },
    /// It was taken back before.
    #[error("run {run} was taken back before, by run {by}")]
    AlreadyUndone {
        /// The run.
        run: RunId,
        /// Who took it back.
        by: RunId,
    },
    /// It put back what was harmed.
    #[error("run {run} put back what a disk or a slip had harmed, and that is not taken back")]
    IsRepair {
        /// The run.
        run: RunId,
    },
    /// What was forgotten cannot come back.
    #[error("run {run} removed what a person wanted forgotten, which cannot be undone")]
    IsForget {
        /// The run.
        run: RunId,
    },
    /// Others would stand on nothing.
    #[error("later runs rest on run {run}")]
    HasDependents {
        /// The run.
        run: RunId,
        /// The others, the oldest first.
        later: Vec<DependentRun>,
    },
    /// No file can be brought back.
    #[error("no file of it can be brought back: {path} {reason}")]
    NoFileRestorable {
        /// The first of the files.
        path: String,
        /// Why it stays.
        reason: String,
    },
    /// Something else was done since the person was asked.
    #[error("something was written since you were asked")]
    ChangedSinceShown,
    /// It was begun and could not be finished.
    #[error(
        "run {run} is taken back only in part: {done} of {all} files are done, {}: {source}",
        match next { Some(path) => format!("`{path}` is the first that is left"), None => "what is left is to record it".to_owned() }
    )]
    Interrupted {
        /// The run.
        run: RunId,
        /// Whether later ones are taken back with it.
        with_later: bool,
        /// How many of its files stand as they should.
        done: usize,
        /// How many there are to write.
        all: usize,
        /// The first that does not.
        next: Option<String>,
        /// What stopped it.
        source: Box<UndoError>,
    },
    /// A pass would have been stopped too.
    #[error(transparent)]
    Pass(#[from] CompactionError),
}

impl From<LineageError> for UndoError {
    fn from(error: LineageError) -> Self {
        Self::Pass(error.into())
    }
}

impl From<VaultError> for UndoError {
    fn from(error: VaultError) -> Self {
        Self::Pass(error.into())
    }
}
