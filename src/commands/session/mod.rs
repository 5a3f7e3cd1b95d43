//! `memoird session`: transcripts of coding agents, and the records made from them.
//!
//! - [`compact`]: summarizes a session.
//! - [`micro`]: shrinks its transcript.
//! - [`records`]: lists, shows, exports, and imports records.

mod compact;
mod micro;
mod records;

use std::{
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;

use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        format::counted,
        workspace::Invocation,
    },
    session::{
        queue::{self, QueueOutcome},
        transcript::{self, Transcript, TranscriptFormat},
        transcript_file,
    },
};

/// Summarize sessions of coding agents, and manage their records
#[derive(Debug, clap::Args)]
pub(super) struct SessionArgs {
    #[command(subcommand)]
    verb: SessionCommand,
}

#[derive(Debug, Subcommand)]
enum SessionCommand {
    Compact(compact::SessionCompactArgs),
    List(records::SessionListArgs),
    Show(records::SessionShowArgs),
    Export(records::SessionExportArgs),
    Import(records::SessionImportArgs),
    /// Retry the sessions from hooks that could not be saved
    Retry,
    /// Forget the sessions from hooks that could not be saved; their transcripts stay
    Dismiss {
        /// Only those of this transcript
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
    },
}

pub(super) fn run(global: &GlobalArgs, args: &SessionArgs, ui: &Ui) -> CommandResult {
    match &args.verb {
        SessionCommand::Compact(args) => compact::run(global, args, ui),
        SessionCommand::List(args) => records::list(global, args, ui),
        SessionCommand::Show(args) => records::show(global, args, ui),
        SessionCommand::Export(args) => records::export(global, args, ui),
        SessionCommand::Import(args) => records::import(global, args, ui),
        SessionCommand::Retry => retry_failed(global, ui),
        SessionCommand::Dismiss { file } => dismiss_failed(global, file.as_deref(), ui),
    }
}

fn queue_error(error: &io::Error) -> CommandError {
    CommandError::cannot_write(format!("cannot process the session queue: {error}"))
}

/// Removes failed sessions from the queue.
fn dismiss_failed(global: &GlobalArgs, file: Option<&Path>, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let around = &call.environment;
    let file = file.map(|it| around.absolute(it, &around.cwd));
    let count = queue::dismiss_failed(around, file.as_deref()).map_err(|e| queue_error(&e))?;
    if let (Some(file), 0) = (&file, count) {
        let what = format!("no session with the transcript `{}` failed", file.display());
        return Err(CommandError::usage(what).hint("memoird status"));
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "dismissed": count }));
    } else if count == 0 {
        ui.success("nothing to do: no session failed");
    } else {
        ui.success(format!("dismissed {}", counted(count, "session", "sessions")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Queues the failed sessions again, and processes them.
fn retry_failed(global: &GlobalArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let count = queue::retry_failed(&call.environment).map_err(|e| queue_error(&e))?;
    let done = queue::drain(&call.config, &call.environment, call.now, true)
        .map_err(|e| queue_error(&e))?;
    let mut kept = Vec::new();
    let mut errors = Vec::new();
    for (_, done) in done {
        match done {
            QueueOutcome::Saved(it) => kept.push(it.path),
            QueueOutcome::Failed(error) => errors.push(error.to_string()),
            QueueOutcome::NothingNew | QueueOutcome::NoMemoryFolder(_) => {}
        }
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "tried": count, "kept": kept, "failed": errors }));
    } else if count == 0 && kept.is_empty() && errors.is_empty() {
        ui.success("nothing to do: no session failed");
    }
    if !ui.is_json() {
        for path in &kept {
            ui.data(path);
        }
        for error in &errors {
            ui.warn(error);
        }
    }
    Ok(exit_code_if_failed(!errors.is_empty()))
}

/// Opens the transcript of an argument, or stdin.
fn open_input(path: &Path) -> CommandResult<Box<dyn BufRead>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufReader::new(io::stdin())));
    }
    transcript_file::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => {
            let what = format!("`{}` is a folder", path.display());
            CommandError::usage(what).hint("name a transcript in it")
        }
        _ => unreadable(path, &error),
    })
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    let what = format!("cannot read `{}`: {error}", path.display());
    let kind = if error.kind() == io::ErrorKind::NotFound {
        CommandErrorKind::Usage
    } else {
        CommandErrorKind::Data
    };
    CommandError::new(kind, what)
        .hint(
            "Claude Code stores transcripts in ~/.claude/projects, Codex in ~/.codex/sessions, Gemini CLI in \
             ~/.gemini/tmp, OpenClaw in ~/.openclaw/agents/*/agent/openclaw-agent.sqlite; for opencode, name the output \
             of `opencode export`",
        )
}

pub(in crate::commands) fn read_transcript(
    path: &Path,
    format: Option<TranscriptFormat>,
) -> CommandResult<Transcript> {
    transcript::read(open_input(path)?, format).map_err(|error| {
        let what = format!("`{}` is not a transcript: {error}", path.display());
        CommandError::data(what).hint(
            "memoird session compact FILE --format claude-code|codex|copilot|gemini|openclaw|opencode|plain",
        )
    })
}
