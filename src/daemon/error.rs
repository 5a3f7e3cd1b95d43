//! Errors that end the daemon, and errors that keep one root from being served.

use std::{io, path::PathBuf};

use crate::{
    clock::ClockError,
    config,
    model::connect::ModelConfigError,
    privacy::{PrivacyPolicyError, PrivacyRules},
    store::fs::{lock::LockError, vault::VaultError},
};

/// An error that ends the daemon or keeps it from starting.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// No root can be served.
    #[error(transparent)]
    Root(#[from] RootError),
    /// `MEMOIRD_NOW` is not a time.
    #[error(transparent)]
    Clock(#[from] ClockError),
    /// The system refuses threads, timers, or signals.
    #[error("cannot start the event loop")]
    Runtime(#[source] io::Error),
}

/// Why a root is not served now.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Its folder is missing, or its settings are wrong.
    #[error(transparent)]
    Config(#[from] config::ConfigError),
    /// Its rules for secrets are wrong.
    #[error(transparent)]
    Policy(#[from] PrivacyPolicyError),
    /// Its folder cannot be used.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// Another daemon serves it, or its lock file cannot be opened.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Its model cannot be used.
    #[error("`{}`: {source}", root.display())]
    Model {
        /// The root.
        root: PathBuf,
        /// Why.
        source: ModelConfigError,
    },
    /// Its `memoird.yaml` names another host as its writer.
    #[error("`{}` is written by the host `{writer}`; this host only reads it", root.display())]
    OtherWriter {
        /// The root.
        root: PathBuf,
        /// The host.
        writer: String,
    },
    /// It was served and is empty now, most likely because its disk was unmounted.
    #[error("`{}` is empty now; it is served again when its files are back", root.display())]
    Emptied {
        /// The root.
        root: PathBuf,
    },
    /// The folder or its lock file disappeared while it was opened.
    #[error("cannot read `{}`", root.display())]
    Inaccessible {
        /// The root.
        root: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl RootError {
    /// Returns whether only the folder is missing: it may be on a disk that is mounted later.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Config(config::ConfigError::RootNotFound { .. }))
    }

    /// Returns what identifies the error, so that it is logged once. Another daemon is the same cause
    /// whatever its process id, which cannot always be read.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Lock(LockError::DaemonRunning { .. }) => "another daemon".to_owned(),
            error => chain(error),
        }
    }
}

/// Returns an error and its sources on one line, with quoted secrets masked.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = error.source();
    }
    PrivacyRules::mask_message(&text)
}
