//! Errors of commands: a kind, which gives the exit code, and hints, which give the next command.
//!
//! The layers below return typed errors; the commands convert them to a [`CommandError`] and add what
//! the user can do.

use std::{error::Error, fmt, process::ExitCode};

use serde::Serialize;

use super::ui::shell_quoted;
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
    /// Returns the name in JSON.
    fn name(self) -> &'static str {
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

/// The result of a command; without a type, its exit code.
pub(crate) type CommandResult<T = ExitCode> = Result<T, CommandError>;

pub(super) fn exit_code_if_failed(has_failed: bool) -> ExitCode {
    if has_failed { CommandErrorKind::Job.exit_code().into() } else { ExitCode::SUCCESS }
}

/// What `--json` prints on stderr; a document of `schema/error.schema.json`.
#[derive(Serialize)]
pub(super) struct ErrorReport {
    kind: &'static str,
    message: String,
    hints: Vec<String>,
    code: u8,
}

/// What helps to go on after an error.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Hint<'a> {
    /// Something to know, or to do by hand.
    Fact(&'a str),
    /// A command to type.
    Command {
        command: &'a str,
        /// What it does, or when it is of use; may be empty.
        purpose: &'a str,
    },
}

impl<'a> Hint<'a> {
    /// Recognizes a command in the forms in which hints are written: alone, after its purpose and a colon, and
    /// quoted before what it does. Pure.
    pub(super) fn of(text: &'a str) -> Self {
        const PROGRAMS: [&str; 5] = ["memoird ", "chmod ", "chown ", "kill ", "systemctl "];
        let is_command =
            |it: &str| PROGRAMS.iter().any(|program| it.starts_with(program)) && !it.contains('`');
        if is_command(text) {
            return Self::Command { command: text, purpose: "" };
        }
        if let Some((command, purpose)) = text.strip_prefix('`').and_then(|it| it.split_once('`'))
            && is_command(command)
            && !purpose.contains('`')
        {
            return Self::Command { command, purpose: purpose.trim() };
        }
        if let Some((purpose, command)) = text.rsplit_once(": ") {
            let command =
                command.strip_prefix('`').and_then(|it| it.strip_suffix('`')).unwrap_or(command);
            if is_command(command) && !purpose.contains('`') {
                return Self::Command { command, purpose };
            }
        }
        Self::Fact(text)
    }
}

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

    /// Returns the document that `--json` prints.
    pub(super) fn report(&self) -> ErrorReport {
        ErrorReport {
            kind: self.kind.name(),
            message: self.to_string(),
            hints: self.hints.clone(),
            code: self.kind.exit_code(),
        }
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
    fn commands_are_told_from_facts() {
        let command = |command, purpose| Hint::Command { command, purpose };
        for (text, expected) in [
            ("memoird status", command("memoird status", "")),
            ("create it: `memoird init /a`", command("memoird init /a", "create it")),
            ("to generate them: memoird compact", command("memoird compact", "to generate them")),
            ("`memoird history` lists the runs", command("memoird history", "lists the runs")),
            ("chmod o-w '/a'", command("chmod o-w '/a'", "")),
        ] {
            assert_eq!(Hint::of(text), expected);
        }
        for fact in [
            "run the command again",
            "restore the files, then run `memoird compact`",
            "use the outer folder: `--root /a`",
            "`memoird doctor` or `memoird status` says why",
        ] {
            assert_eq!(Hint::of(fact), Hint::Fact(fact));
        }
    }
}
