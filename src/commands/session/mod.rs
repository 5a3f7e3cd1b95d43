//! `memoird session`: transcripts of coding agents, and the records that are made of them.
//!
//! - [`compact`]: sums a session up.
//! - [`smaller`]: makes its transcript smaller.
//! - [`records`]: lists, shows, exports, and imports records.

mod compact;
mod records;
mod smaller;

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
    process::ExitCode,
};

use clap::Subcommand;

use super::{
    GlobalArgs,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::session::{
    keep::{KeepError, Keeper},
    queue::{self, Done},
    transcript::{self, Format, Transcript},
};

/// Sum up sessions of coding agents, and keep records of them
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    verb: SessionVerb,
}

#[derive(Debug, Subcommand)]
enum SessionVerb {
    Compact(compact::Args),
    List(records::ListArgs),
    Show(records::ShowArgs),
    Export(records::ExportArgs),
    Import(records::ImportArgs),
    /// Try again to keep the sessions that hooks told of and that failed
    Retry,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    match &args.verb {
        SessionVerb::Compact(args) => compact::run(global, args, ui),
        SessionVerb::List(args) => records::list(global, args, ui),
        SessionVerb::Show(args) => records::show(global, args, ui),
        SessionVerb::Export(args) => records::export(global, args, ui),
        SessionVerb::Import(args) => records::import(global, args, ui),
        SessionVerb::Retry => retry(global, ui),
    }
}

/// Puts back what was put aside, and does it.
fn retry(global: &GlobalArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let failed = |e: io::Error| {
        CommandError::new(Kind::CannotWrite, format!("the notes of hooks cannot be worked on: {e}"))
    };
    let count = queue::retry(&call.around).map_err(failed)?;
    let done = queue::drain(&call.config, &call.around, call.now, true).map_err(failed)?;
    let mut kept = Vec::new();
    let mut errors = Vec::new();
    for (_, done) in done {
        match done {
            Done::Kept(it) => kept.push(it.path),
            Done::Failed(error) => errors.push(error.to_string()),
            Done::Nothing | Done::Homeless(_) => {}
        }
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "tried": count, "kept": kept, "failed": errors }));
    } else if count == 0 && kept.is_empty() && errors.is_empty() {
        ui.good("nothing to do: no session failed");
    }
    if !ui.is_json() {
        for path in &kept {
            ui.data(path);
        }
        for error in &errors {
            ui.warn(error);
        }
    }
    Ok(if errors.is_empty() { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() })
}

/// Opens what an argument names: a file, or stdin.
fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>, CommandError> {
    let input: Box<dyn Read> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(|e| unreadable(path, &e))?;
        let is_file = file.metadata().is_ok_and(|it| !it.is_dir());
        if !is_file {
            let what = format!("`{}` is a folder", path.display());
            return Err(CommandError::new(Kind::Usage, what).hint("name a transcript in it"));
        }
        Box::new(file)
    };
    Ok(BufReader::with_capacity(1 << 16, input))
}

fn unreadable(path: &Path, error: &io::Error) -> CommandError {
    let what = format!("cannot read `{}`: {error}", path.display());
    let kind = if error.kind() == io::ErrorKind::NotFound { Kind::Usage } else { Kind::Data };
    CommandError::new(kind, what)
        .hint("transcripts of Claude Code stand in ~/.claude/projects, those of Codex in ~/.codex/sessions")
}

/// Reads the transcript that an argument names.
pub(in crate::commands) fn read_transcript(
    path: &Path,
    format: Option<Format>,
) -> Result<Transcript, CommandError> {
    transcript::read(open(path)?, format).map_err(|error| {
        let what = format!("`{}` is no transcript: {error}", path.display());
        CommandError::new(Kind::Data, what)
            .hint("memoird session compact FILE --format claude-code|codex|plain")
    })
}

/// Returns where records of a root are kept.
pub(in crate::commands) fn keeper<'a>(call: &Call, root: &'a Root) -> Keeper<'a> {
    Keeper {
        vault: &root.vault,
        rules: &root.rules,
        zone: root.settings.zone.name.0,
        now: call.now,
    }
}

impl From<KeepError> for CommandError {
    fn from(error: KeepError) -> Self {
        match error {
            KeepError::Vault(error) => error.into(),
            KeepError::Lock(error) => error.into(),
            error @ KeepError::Taken { .. } => Self::new(Kind::Data, error)
                .hint("give it another `id:` in its frontmatter, then import it again"),
            error => Self::new(Kind::Data, error).hint("memoird session list"),
        }
    }
}
