//! `memoird history`: lists the versions of a file, or the runs and what each wrote.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    operations::{
        error::CommandResult,
        history::{HISTORY_BEGINS, HistoryReader, RunSummary, VersionSummary, recorded_runs},
        workspace::Invocation,
    },
    recall::history::{DiffStat, FileHistory},
};

/// List the versions of a file, or the runs
///
/// Without a file, lists the runs and what each wrote.
#[derive(Debug, clap::Args)]
pub(super) struct HistoryArgs {
    /// A path, a day, week, or month, or the name of a memory; deleted files work too
    #[arg(value_name = "FILE")]
    file: Option<String>,
    /// How many to list, newest first
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    last: usize,
    /// List all
    #[arg(long, conflicts_with = "last")]
    all: bool,
}

/// What `--json` prints of a file.
#[derive(Serialize)]
struct FileHistoryReport {
    path: String,
    versions: Vec<VersionSummary>,
    /// How many older versions are not listed.
    older: usize,
}

/// What `--json` prints without a file.
#[derive(Serialize)]
struct RunsReport {
    runs: Vec<RunSummary>,
    /// How many older runs are not listed.
    older: usize,
}

pub(super) fn run(global: &GlobalArgs, args: &HistoryArgs, ui: &Ui) -> CommandResult {
    ui.paged(|| print(global, args, ui))
}

fn print(global: &GlobalArgs, args: &HistoryArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let past = HistoryReader::open(&call, &root)?;
    let last = if args.all { usize::MAX } else { args.last };
    match &args.file {
        Some(file) => show_versions(&past, &past.find(file)?, last, ui)?,
        None => show_runs(&past, last, ui)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn show_versions(
    past: &HistoryReader<'_>,
    history: &FileHistory,
    last: usize,
    ui: &Ui,
) -> CommandResult<()> {
    let older = history.versions.len().saturating_sub(last);
    let mut listed = Vec::new();
    for version in history.versions[older..].iter().rev() {
        listed.push((version, past.line_counts(history, version)?));
    }
    if ui.is_json() {
        let versions =
            listed.into_iter().map(|(it, change)| past.version_summary(it, change)).collect();
        ui.json(&FileHistoryReport { path: history.path.clone(), versions, older });
        return Ok(());
    }
    if history.is_unrecorded() {
        ui.note(format!("no version of {} yet: {HISTORY_BEGINS}", history.path));
        return Ok(());
    }
    let or_none = |it: Option<String>| it.unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = listed
        .into_iter()
        .map(|(it, change)| {
            vec![
                or_none(it.id.map(|id| id.0.to_string())),
                past.local_time(it.at),
                history.describe_cause(it),
                or_none(it.size.map(|size| size.to_string())),
                or_none(change.map(|DiffStat { added, removed }| format!("+{added} -{removed}"))),
            ]
        })
        .collect();
    ui.table(&["version", "since", "how", "bytes", "lines"], &rows);
    note_older(older, ui);
    Ok(())
}

fn note_older(older: usize, ui: &Ui) {
    if older > 0 {
        ui.note(format!("and {older} older; --all lists them"));
    }
}

fn show_runs(past: &HistoryReader<'_>, last: usize, ui: &Ui) -> CommandResult<()> {
    let (listed, older) = recorded_runs(past, last)?;
    if ui.is_json() {
        ui.json(&RunsReport { runs: listed, older });
        return Ok(());
    }
    if listed.is_empty() {
        ui.note(format!("no run yet: {HISTORY_BEGINS}"));
        return Ok(());
    }
    let rows: Vec<Vec<String>> = listed.into_iter().map(run_row).collect();
    ui.table(&["run", "started", "by", "written", "removed", "files"], &rows);
    note_older(older, ui);
    Ok(())
}

/// Returns the row of a run in a table.
fn run_row(run: RunSummary) -> Vec<String> {
    const NAMED_MAX: usize = 3;
    let when = run.started_local();
    let count = |it: &[String]| if it.is_empty() { "-".to_owned() } else { it.len().to_string() };
    let (written, removed) = (count(&run.written), count(&run.removed));
    let mut files: Vec<String> = run.removed;
    files.extend(run.written);
    // The files written last (months, wisdom) matter most to people.
    files.reverse();
    let more = files.len().saturating_sub(NAMED_MAX);
    files.truncate(NAMED_MAX);
    if more > 0 {
        files.push(format!("and {more} more"));
    }
    if let Some(by) = run.taken_back_by {
        files.push(format!("(undone by run {by})"));
    }
    if run.ended.is_none() {
        files.push("(not finished)".to_owned());
    }
    vec![run.run.to_string(), when, run.trigger, written, removed, files.join(" ")]
}
