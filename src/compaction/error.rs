//! Why a run ends, and why one job fails.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use chrono::{DateTime, Utc};

use super::plan::damage::Damage;
use crate::{
    engine::{Engine, EngineError},
    memory::{item::Tier, period::Period},
    model::failure::ErrorClass,
    store::{
        db::lineage::LineageError,
        fs::{lock::LockError, vault::VaultError},
    },
};

/// What ends a run early. A job that fails alone does not.
#[derive(Debug, thiserror::Error)]
pub enum CompactionError {
    /// The memory folder cannot be listed or written.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The database cannot be read or written.
    #[error(transparent)]
    Lineage(#[from] LineageError),
    /// Another process holds a lock of the root.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The memory folder existed and is missing now: unmounted, moved, or renamed.
    #[error("the memory folder `{}` is missing, but {logs} of its logs are recorded; nothing was done", path.display())]
    FolderMissing {
        /// The folder.
        path: PathBuf,
        /// How many logs the database knows.
        logs: usize,
    },
    /// A request to forget cannot be finished now.
    #[error("forgetting is not finished: {0}; run the same `memoird forget` again")]
    ForgetUnfinished(String),
    /// Too many known files are missing to continue without confirmation by a person.
    #[error("{0}; nothing was done")]
    FilesVanished(VanishedFiles),
    /// A generated file may be damaged, and only a person can say whether that is intended.
    #[error("{path} {}; nothing was done", why.description())]
    Damaged {
        /// The file, relative to the root.
        path: String,
        /// What is wrong with it.
        why: Damage,
    },
    /// The clock is years away from everything that is known.
    #[error(
        "the clock says {}{}; nothing was done",
        now.format("%Y-%m-%d"),
        last.map(|it| format!(", but the last run was on {}", it.format("%Y-%m-%d"))).unwrap_or_default()
    )]
    WrongClock {
        /// What it says.
        now: DateTime<Utc>,
        /// When the last run began.
        last: Option<DateTime<Utc>>,
    },
    /// A forced period has no source.
    #[error("{tier} {period} has no source, so it cannot be made; its file stays as it is")]
    NoSource {
        /// The tier.
        tier: Tier,
        /// The period.
        period: Period,
    },
    /// The decisions cannot be read, or their file is missing.
    #[error("the decisions are incomplete: {why}; nothing was done")]
    DecisionsUnreadable {
        /// What is wrong with the file.
        why: String,
    },
    /// The system gives no random bytes for the key of the decisions.
    #[error("the system returned no random bytes")]
    NoRandomness(#[source] std::io::Error),
}

/// Why one job failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum JobFailure {
    #[error(transparent)]
    Vault(#[from] VaultError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The engine panicked. Its message may quote a log, so it is dropped.
    #[error("the engine stopped with an internal error; please report it")]
    EnginePanicked,
    #[error("{0} changed while it was read; the next run reads it again")]
    SourceChanged(String),
    #[error("none of {0} drafted items passed the check against their lines")]
    AllRejected(usize),
    /// A file cannot be parsed as its kind.
    #[error("{path}: {reason}")]
    Unreadable { path: String, reason: String },
    /// Ends the run.
    #[error(transparent)]
    Critical(#[from] CompactionError),
}

impl JobFailure {
    /// Returns whether the work is not at fault: a person wrote first, nothing can be written now,
    /// or the model is unavailable.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::SourceChanged(_) | Self::Vault(VaultError::Changed { .. }) => true,
            Self::Vault(error) => error.is_write_failure(),
            Self::Engine(EngineError::Model(error)) => error.class() != ErrorClass::Request,
            _ => false,
        }
    }

    /// Returns the failure of a step that belongs to no job.
    pub(crate) fn into_compaction_error(self, step: &'static str) -> CompactionError {
        match self {
            Self::Critical(error) => error,
            Self::Vault(error) => error.into(),
            other => {
                let source = std::io::Error::other(other.to_string());
                VaultError::Io { action: "write", path: step.into(), source }.into()
            }
        }
    }
}

impl From<LineageError> for JobFailure {
    fn from(error: LineageError) -> Self {
        Self::Critical(error.into())
    }
}

impl From<LockError> for JobFailure {
    fn from(error: LockError) -> Self {
        Self::Critical(error.into())
    }
}

/// The known files that have vanished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VanishedFiles {
    /// How many have vanished.
    pub gone: usize,
    /// How many are known.
    pub known: usize,
    /// Some of them, relative to the root.
    pub examples: Vec<String>,
    /// Whether the memory folder is on another device than before.
    pub device_changed: bool,
}

impl std::fmt::Display for VanishedFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gone, known, examples, device_changed } = self;
        write!(f, "{gone} of {known} known files are gone ({}", examples.join(", "))?;
        match gone - examples.len() {
            0 => f.write_str(")")?,
            more => write!(f, ", and {more} more)")?,
        }
        if *device_changed {
            f.write_str(", and the memory folder is on another device than it was")?;
        }
        Ok(())
    }
}

/// Calls an engine, and turns a panic into an error.
pub(crate) fn ask_engine<T>(
    engine: &dyn Engine,
    question: impl FnOnce(&dyn Engine) -> Result<T, EngineError>,
) -> Result<T, JobFailure> {
    catch_unwind(AssertUnwindSafe(|| question(engine)))
        .map_err(|_| JobFailure::EnginePanicked)?
        .map_err(JobFailure::Engine)
}
