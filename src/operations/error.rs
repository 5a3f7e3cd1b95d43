//! Errors of operations: a kind, which gives the exit code, and hints, which give the next command.
//!
//! The layers below return typed errors; the operations convert them to a [`CommandError`] and add what
//! the user can do.

use std::{error::Error, fmt, process::ExitCode};

use super::format::shell_quoted;
use crate::{
    clock::ClockError,
    privacy::PrivacyRules,
    store::fs::{lock::LockError, vault::VaultError},
};

/// The kind of a failure. Each has its own exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandErrorKind {
    /// A job failed or is stuck.
    Job,
    /// The command line is wrong or names something that does not exist.
    Usage,
    /// A file has invalid contents.
    Data,
    /// The model is unavailable, or the budget is exhausted.
    Unavailable,
    /// A file cannot be written.
    CannotWrite,
    /// Another process uses the root.
    Busy,
    /// The configuration is invalid.
    Config,
}

impl CommandErrorKind {
    /// All kinds, by exit code.
    pub(crate) const ALL: [Self; 7] = [
        Self::Job,
        Self::Usage,
        Self::Data,
        Self::Unavailable,
        Self::CannotWrite,
        Self::Busy,
        Self::Config,
    ];

    /// Returns what the exit code means, in a few words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Job => "a job failed or is stuck",
            Self::Usage => "usage",
            Self::Data => "bad data",
            Self::Unavailable => "model unavailable",
            Self::CannotWrite => "cannot write",
            Self::Busy => "another process uses the folder",
            Self::Config => "bad configuration",
        }
    }

    /// Returns the name in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Usage => "usage",
            Self::Data => "data",
            Self::Unavailable => "unavailable",
            Self::CannotWrite => "cannot-write",
            Self::Busy => "busy",
            Self::Config => "config",
        }
    }

    /// Returns the exit code, after `sysexits.h` from 64 on.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Job => 1,
            Self::Usage => 2,
            Self::Data => 65,
            Self::Unavailable => 69,
            Self::CannotWrite => 73,
            Self::Busy => 75,
            Self::Config => 78,
        }
    }
}

/// The result of an operation; without a type, the exit code of a command.
pub(crate) type CommandResult<T = ExitCode> = Result<T, CommandError>;

/// A failure as the user sees it.
#[derive(Debug)]
pub struct CommandError {
    kind: CommandErrorKind,
    source: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl CommandError {
    /// Wraps an error; its sources are printed after it.
    pub fn new(kind: CommandErrorKind, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind, source: source.into(), hints: Vec::new() }
    }

    pub(crate) fn usage(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(CommandErrorKind::Usage, source)
    }

    pub(crate) fn data(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(CommandErrorKind::Data, source)
    }

    pub(crate) fn config(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(CommandErrorKind::Config, source)
    }

    pub(crate) fn cannot_write(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(CommandErrorKind::CannotWrite, source)
    }

    /// Adds hints, if there are any.
    pub(crate) fn hints_from<H: Into<String>>(self, hints: impl IntoIterator<Item = H>) -> Self {
        hints.into_iter().fold(self, Self::hint)
    }

    /// Adds a hint: what to do next, best as a command.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(PrivacyRules::mask_message(&hint.into()));
        self
    }

    /// Adds `--root` to the commands in the hints.
    pub fn with_root(mut self, root: &std::path::Path) -> Self {
        for hint in &mut self.hints {
            if hint.contains("memoird ")
                && !hint.contains("--root")
                && !hint.contains("memoird init")
            {
                let root = shell_quoted(&root.to_string_lossy());
                *hint = hint.replacen("memoird ", &format!("memoird --root {root} "), 1);
            }
        }
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> CommandErrorKind {
        self.kind
    }

    /// Returns the hints.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        self.kind.exit_code().into()
    }
}

impl fmt::Display for CommandError {
    /// Prints the error and all its sources on one line. Masks secrets, because the message may quote
    /// arguments or files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = self.source.to_string();
        let mut whole = last.clone();
        let mut next = self.source.source();
        while let Some(error) = next {
            let text = error.to_string();
            // Skips sources that the wrapping error already quotes.
            if !last.contains(&text) {
                whole.push_str(": ");
                whole.push_str(&text);
            }
            last = text;
            next = error.source();
        }
        f.write_str(&PrivacyRules::mask_message(&whole))
    }
}

/// Has no source: `Display` already includes the sources.
impl Error for CommandError {}

impl From<ClockError> for CommandError {
    fn from(error: ClockError) -> Self {
        Self::new(CommandErrorKind::Usage, error)
    }
}

impl From<VaultError> for CommandError {
    fn from(error: VaultError) -> Self {
        let kind = match &error {
            VaultError::Changed { .. } => CommandErrorKind::Busy,
            error if error.is_write_failure() => CommandErrorKind::CannotWrite,
            _ => CommandErrorKind::Data,
        };
        let wrapped = Self::new(kind, error);
        match kind {
            CommandErrorKind::CannotWrite => {
                wrapped.hint("`memoird doctor` checks permissions and free space")
            }
            CommandErrorKind::Busy => wrapped.hint("run the command again"),
            _ => wrapped,
        }
    }
}

impl From<LockError> for CommandError {
    fn from(error: LockError) -> Self {
        let (kind, hint) = match &error {
            LockError::DaemonRunning { pid, .. } => {
                let stop = pid.map_or("systemctl --user stop memoird".to_owned(), |pid| {
                    format!("kill {pid}")
                });
                (
                    CommandErrorKind::Busy,
                    Some(format!("see `memoird status`, or stop the other daemon: {stop}")),
                )
            }
            LockError::Busy { .. } => (
                CommandErrorKind::Busy,
                Some("try again; `memoird status` shows the daemon".to_owned()),
            ),
            LockError::WorldWritable { root, .. } => {
                (CommandErrorKind::CannotWrite, Some(format!("chmod o-w '{}'", root.display())))
            }
            LockError::Io { .. } => (CommandErrorKind::CannotWrite, None),
        };
        Self::new(kind, error).hints_from(hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_errors_lists_each_kind() {
        let schema: serde_json::Value =
            serde_json::from_str(include_str!("../../schema/error.schema.json")).expect("valid");
        let names: Vec<&str> = CommandErrorKind::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(schema["properties"]["kind"]["enum"], serde_json::json!(names));
    }
}
