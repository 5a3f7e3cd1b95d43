//! Why a run cannot be undone.

use std::collections::BTreeSet;

use crate::compaction::error::CompactionError;
use crate::store::{
    db::lineage::{
        LineageError,
        jobs::{RunId, RunRow},
    },
    fs::vault::VaultError,
};

/// A later run that depends on it.
#[derive(Clone, Debug)]
pub(crate) struct DependentRun {
    pub run: RunRow,
    pub paths: BTreeSet<String>,
}

/// Why nothing was undone.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UndoError {
    /// The last run recorded what a person said in `review`, and is undone there.
    #[error("run {run}, the last one, wrote no file: it records what you said in `review`")]
    ReviewOnly {
        run: RunId,
        /// The last run that can be undone here.
        before: Option<RunId>,
    },
    #[error("no recorded run can be undone")]
    NothingToUndo,
    #[error("there is no run {run}")]
    UnknownRun {
        run: RunId,
        /// Runs that can be undone, oldest first.
        known: Vec<RunId>,
    },
    #[error("run {run} wrote no file that could be restored")]
    NoFilesWritten { run: RunId },
    #[error("run {run} was already undone, by run {by}")]
    AlreadyUndone {
        run: RunId,
        /// The run that undid it.
        by: RunId,
    },
    #[error("run {run} repaired damaged files, and a repair cannot be undone")]
    IsRepair { run: RunId },
    #[error("run {run} removed what a person wanted forgotten, and that cannot be undone")]
    IsForget { run: RunId },
    #[error(
        "run {run} cannot be undone: run {by} after it changed the same files and removed what a person \
         wanted forgotten, and that stays removed"
    )]
    BeforeForget { run: RunId, by: RunId },
    #[error("later runs depend on run {run}")]
    HasDependents {
        run: RunId,
        /// Those runs, oldest first.
        later: Vec<DependentRun>,
    },
    #[error("none of its files can be restored: {path} {reason}")]
    NoFileRestorable {
        /// The first of the files.
        path: String,
        /// Why it stays.
        reason: String,
    },
    #[error("something was written since you were asked")]
    ChangedSinceShown,
    #[error(
        "run {run} is only partly undone: {done} of {all} files are done, {}: {source}",
        match next { Some(path) => format!("`{path}` is the first that remains"), None => "only its record remains".to_owned() }
    )]
    Interrupted {
        run: RunId,
        /// Whether later runs are undone with it.
        with_later: bool,
        /// How many of its files are done.
        done: usize,
        /// How many files there are to write.
        all: usize,
        /// The first file that is not done.
        next: Option<String>,
        source: Box<UndoError>,
    },
    /// An error that would have stopped a compaction run too.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
}

impl From<LineageError> for UndoError {
    fn from(error: LineageError) -> Self {
        Self::Compaction(error.into())
    }
}

impl From<VaultError> for UndoError {
    fn from(error: VaultError) -> Self {
        Self::Compaction(error.into())
    }
}
