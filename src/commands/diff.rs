//! `memoird diff`: shows what changed between two versions of a file.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    operations::{
        error::{CommandError, CommandResult},
        history::{HistoryReader, VersionSummary, before_history, unknown_version},
        workspace::Invocation,
    },
    recall::history::{self, FileHistory, FileVersion, Hunk, VersionSelector},
};

/// Show what changed between two versions of a file
///
/// By default, shows what the newest version changed. An edit that no run has recorded yet counts as the
/// newest version. The exit code is 0 whether or not there is a difference.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// A path, a day, week, or month, or the name of a memory; deleted files work too
    #[arg(value_name = "FILE")]
    file: String,
    /// The older version: its number, or a time at which it was current
    #[arg(long, value_name = "ID|TIME")]
    from: Option<String>,
    /// The newer version [default: the newest]
    #[arg(long, value_name = "ID|TIME")]
    to: Option<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct DiffReport<'a> {
    path: &'a str,
    /// `None` if there is no earlier version.
    from: Option<VersionSummary>,
    to: VersionSummary,
    hunks: Vec<Hunk>,
}

pub(super) fn run(global: &GlobalArgs, args: &DiffArgs, ui: &Ui) -> CommandResult {
    ui.paged(|| print(global, args, ui))
}

fn print(global: &GlobalArgs, args: &DiffArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let past = HistoryReader::open(&call, &root)?;
    let history = past.find(&args.file)?;
    let named = |text: &String| -> CommandResult<&FileVersion> {
        let point = VersionSelector::parse(text, root.settings.zone.name.0, call.now)?;
        history.find(point).ok_or_else(|| match point {
            VersionSelector::Version(id) => unknown_version_of(&history, id.0),
            VersionSelector::Time(_) => before_history(&past, &history),
        })
    };
    let from = args.from.as_ref().map(named).transpose()?;
    let to = match args.to.as_ref().map(named).transpose()? {
        Some(to) => to,
        // A history that was found always has a newest version.
        None => history.versions.last().ok_or_else(|| before_history(&past, &history))?,
    };
    let from = from.or_else(|| history.previous(to));
    let Some(from) = from else {
        // Every line would be new, which `show` presents better.
        if ui.is_json() {
            let to = past.version_summary(to, None);
            ui.json(&DiffReport { path: &history.path, from: None, to, hunks: Vec::new() });
        } else {
            ui.note(format!("{} has no older version to compare with", history.path));
        }
        return Ok(ExitCode::SUCCESS);
    };
    let hunks =
        history::diff_hunks(&past.version_text(&history, from)?, &past.version_text(&history, to)?);
    if ui.is_json() {
        let (from, to) = (Some(past.version_summary(from, None)), past.version_summary(to, None));
        ui.json(&DiffReport { path: &history.path, from, to, hunks });
    } else if hunks.is_empty() {
        ui.note(format!("{}: no difference between {from} and {to}", history.path));
    } else {
        ui.diff([&diff_header(&past, &history, from), &diff_header(&past, &history, to)], &hunks);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the line that names one side of a unified diff.
fn diff_header(past: &HistoryReader<'_>, history: &FileHistory, version: &FileVersion) -> String {
    let path = if version.is_absent() { "/dev/null" } else { &history.path };
    format!("{path}\t{version}, {}", past.local_time(version.at))
}

fn unknown_version_of(history: &FileHistory, id: i64) -> CommandError {
    unknown_version(id).hint(format!("memoird history {}", history.path))
}
