//! Why a job is due, and what a period waits for.

use std::fmt;

use chrono::DateTime;
use chrono_tz::Tz;

/// Why a job is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DueReason {
    /// There is no file yet.
    New,
    /// These sources are new or changed since the file was made.
    Changed(Vec<String>),
    /// There are newer logs.
    NewerLogs,
    /// There are newer logs, or curated files changed.
    NewerNotes,
    /// The file was made before the period closed.
    Closed,
    /// A person asked for it.
    Forced,
    /// The file was made offline, since the model was unavailable.
    MadeOffline,
    /// Another engine made the file, and a person asked to do it again.
    OtherEngine(String),
}

/// What a period waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WaitCause {
    /// The end of the period and of its grace.
    Closes(DateTime<Tz>),
    /// A log that was changed moments ago.
    BeingWritten(String),
    /// A person, or changed input: it failed three times.
    Stuck(String),
    /// A person, or changed input: it was undone.
    Undone,
    /// A person: the file, or one of its sources, looks damaged.
    Damaged(String),
}

impl fmt::Display for DueReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// The most names in the message.
        const NAMES_MAX: usize = 3;
        match self {
            Self::New => f.write_str("new"),
            Self::Changed(names) => {
                write!(f, "changed: {}", names[..names.len().min(NAMES_MAX)].join(", "))?;
                match names.len().saturating_sub(NAMES_MAX) {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
            Self::NewerLogs => f.write_str("newer logs"),
            Self::NewerNotes => f.write_str("newer logs or notes"),
            Self::Closed => f.write_str("the period has closed"),
            Self::Forced => f.write_str("asked for"),
            Self::MadeOffline => f.write_str("made without the model"),
            Self::OtherEngine(engine) => write!(f, "made by {engine}"),
        }
    }
}

impl fmt::Display for WaitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closes(at) => write!(f, "open until {}", at.format("%Y-%m-%d %H:%M %Z")),
            Self::BeingWritten(path) => write!(f, "{path} is still being written"),
            Self::Stuck(why) => write!(f, "stuck: {why}"),
            Self::Undone => f.write_str("undone; waits for changed input"),
            Self::Damaged(why) => write!(f, "waits for a person: {why}"),
        }
    }
}
