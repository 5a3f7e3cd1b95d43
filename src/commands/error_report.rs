//! How an error reaches the user: its exit code, its JSON document, and its hints.

use std::process::ExitCode;

use serde::Serialize;

use crate::operations::error::{CommandError, CommandErrorKind};

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

impl ErrorReport {
    /// Returns the document of an error.
    pub(super) fn of(error: &CommandError) -> Self {
        Self {
            kind: error.kind().name(),
            message: error.to_string(),
            hints: error.hints().to_vec(),
            code: error.kind().exit_code(),
        }
    }
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
