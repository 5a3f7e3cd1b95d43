//! `memoird history`: lists the versions of a file, or the runs and what each wrote.

use std::{
    collections::{HashMap, HashSet},
    process::ExitCode,
};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    memory::hash::ContentHash,
    operations::{
        error::{CommandError, CommandResult},
        workspace::{Invocation, MemoryRoot},
    },
    recall::history::{self, CurrentFile, DiffStat, FileHistory, FileVersion, ParseTimeError},
    store::{
        db::lineage::{
            Lineage,
            history::VersionCause,
            jobs::{IntentRow, RunRow},
        },
        fs::layout::visible_bytes,
    },
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

#[derive(Serialize)]
pub(super) struct VersionSummary {
    version: Option<i64>,
    at: String,
    cause: &'static str,
    run: Option<i64>,
    trigger: Option<String>,
    size: Option<u64>,
    hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<usize>,
}

/// What `--json` prints without a file.
#[derive(Serialize)]
struct RunsReport {
    runs: Vec<RunSummary>,
    /// How many older runs are not listed.
    older: usize,
}

/// A run and the files that it wrote.
#[derive(Serialize)]
pub(crate) struct RunSummary {
    pub(crate) run: i64,
    pub(crate) trigger: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) written: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// Amounts and dates in the log lines that a model's items cite.
    pub(crate) amounts: u32,
    /// How many of these amounts and dates the items contain.
    pub(crate) amounts_kept: u32,
    /// The run that undid this one.
    pub(crate) taken_back_by: Option<i64>,
}

/// Reads the recorded versions of files and the current files.
pub(crate) struct HistoryReader<'a> {
    call: &'a Invocation,
    root: &'a MemoryRoot,
    lineage: Option<Lineage>,
}

impl<'a> HistoryReader<'a> {
    pub(crate) fn open(call: &'a Invocation, root: &'a MemoryRoot) -> CommandResult<Self> {
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        Ok(Self { call, root, lineage })
    }

    /// Returns the database, if there is one.
    pub(crate) fn lineage(&self) -> Option<&Lineage> {
        self.lineage.as_ref()
    }

    /// Returns the history of the file that an argument names.
    pub(crate) fn find(&self, named: &str) -> CommandResult<FileHistory> {
        let is_known = |path: &str| {
            let path = self.root.vault.layout().recorded_path(path);
            let versions = self.lineage().map(|it| it.versions_of(&path)).transpose()?;
            Ok(versions.is_some_and(|it| !it.is_empty()))
        };
        let path = self.root.resolve_known_file(&self.call.environment, named, &is_known)?;
        let history = self.history_of(&path)?;
        match history.versions.last() {
            None => Err(self.root.no_file(self.call, &history.path, named)),
            Some(_) => Ok(history),
        }
    }

    /// Returns the history of the file at `path`; without versions if there never was such a file.
    pub(crate) fn history_of(&self, path: &str) -> CommandResult<FileHistory> {
        let vault = &self.root.vault;
        // A log keeps its history when it moves into the archive.
        let path = vault.layout().recorded_path(path);
        let recorded = self.lineage().map(|it| it.versions_of(&path)).transpose()?;
        let mut recorded = recorded.unwrap_or_default();
        if vault.layout().hidden_path(&path).is_some() {
            for version in &mut recorded {
                let bytes = self.lineage().zip(version.hash).map(|(it, hash)| it.content(hash));
                if let Some(Ok(Some(bytes))) = bytes {
                    version.size = Some(visible_bytes(&path, &bytes).len() as u64);
                }
            }
        }
        let current = vault.read(&vault.current_path(&path))?.map(|it| CurrentFile {
            hash: ContentHash::of(&it.bytes),
            size: visible_bytes(&path, &it.bytes).len() as u64,
            changed: DateTime::UNIX_EPOCH + TimeDelta::nanoseconds(it.stamp.mtime_ns),
        });
        if recorded.is_empty() && current.is_none() {
            return Ok(FileHistory { path, versions: Vec::new() });
        }
        Ok(FileHistory::new(path, recorded, current, self.call.now))
    }

    /// Returns the bytes of a version; `None` if the file did not exist then.
    pub(crate) fn version_bytes(
        &self,
        history: &FileHistory,
        version: &FileVersion,
    ) -> CommandResult<Option<Vec<u8>>> {
        let path = &history.path;
        if version.id.is_none() {
            let vault = &self.root.vault;
            return Ok(vault.read(&vault.current_path(path))?.map(|it| it.bytes));
        }
        match version.cause {
            VersionCause::Removed | VersionCause::ExternalRemoval => return Ok(None),
            VersionCause::Forgotten => {
                let what = format!("{version} of `{path}` was forgotten");
                return Err(CommandError::usage(what).hint(format!("memoird history {path}")));
            }
            VersionCause::Pruned => {
                let what = format!(
                    "{version} of `{path}` is no longer kept: it was older than `history.keep`, or lost with a damaged database"
                );
                return Err(CommandError::usage(what).hint(format!("memoird history {path}")));
            }
            VersionCause::Written | VersionCause::ReadByRun | VersionCause::ExternalWrite => {}
        }
        let bytes = match (self.lineage(), version.hash) {
            (Some(lineage), Some(hash)) => lineage.content(hash)?,
            _ => None,
        };
        let lost = || {
            let what = format!("the bytes of {version} of `{path}` are not in the database");
            CommandError::data(what).hint("memoird doctor")
        };
        bytes.map(Some).ok_or_else(lost)
    }

    /// Returns the sanitized text of a version, empty if the file did not exist then.
    pub(crate) fn version_text(
        &self,
        history: &FileHistory,
        version: &FileVersion,
    ) -> CommandResult<String> {
        let bytes = self.version_bytes(history, version)?.unwrap_or_default();
        Ok(self.root.sanitized_file(&history.path, &bytes).text)
    }

    pub(crate) fn local_time(&self, time: DateTime<Utc>) -> String {
        let zone = self.root.settings.zone.name.0;
        time.with_timezone(&zone).format("%Y-%m-%d %H:%M:%S").to_string()
    }

    pub(super) fn rfc3339(&self, time: DateTime<Utc>) -> String {
        let zone = self.root.settings.zone.name.0;
        time.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, false)
    }

    pub(super) fn version_summary(
        &self,
        version: &FileVersion,
        change: Option<DiffStat>,
    ) -> VersionSummary {
        VersionSummary {
            version: version.id.map(|it| it.0),
            at: self.rfc3339(version.at),
            cause: version.cause.name(),
            run: version.run.map(|it| it.0),
            trigger: version.trigger.clone(),
            size: version.size,
            hash: version.hash.map(|it| it.to_string()),
            added: change.map(|it| it.added),
            removed: change.map(|it| it.removed),
        }
    }

    /// Counts the lines by which a version differs from the one before it; `None` if either is not kept.
    fn line_counts(
        &self,
        history: &FileHistory,
        version: &FileVersion,
    ) -> CommandResult<Option<DiffStat>> {
        let is_kept = |it: &FileVersion| it.is_absent() || it.hash.is_some();
        let before = history.previous(version);
        if !is_kept(version) || !before.is_none_or(is_kept) {
            return Ok(None);
        }
        let old = before.map_or_else(|| Ok(String::new()), |it| self.version_text(history, it))?;
        Ok(Some(history::diff_stat(&old, &self.version_text(history, version)?)))
    }
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

pub(super) const HISTORY_BEGINS: &str = "history begins with the next run";

fn note_older(older: usize, ui: &Ui) {
    if older > 0 {
        ui.note(format!("and {older} older; --all lists them"));
    }
}

/// Returns the newest runs, newest first, and how many older ones there are.
pub(crate) fn recorded_runs(
    past: &HistoryReader<'_>,
    last: usize,
) -> CommandResult<(Vec<RunSummary>, usize)> {
    let runs = past.lineage().map(|it| it.last_runs(u32::MAX)).transpose()?.unwrap_or_default();
    let older = runs.len().saturating_sub(last);
    let undone_by = undone_by(past)?;
    let listed = runs.into_iter().take(last).map(|run| summary_of(past, run, &undone_by));
    Ok((listed.collect::<CommandResult<_>>()?, older))
}

/// Returns one run; `None` if there is none with this number.
pub(crate) fn recorded_run(
    past: &HistoryReader<'_>,
    number: i64,
) -> CommandResult<Option<RunSummary>> {
    let runs = past.lineage().map(|it| it.last_runs(u32::MAX)).transpose()?.unwrap_or_default();
    let Some(run) = runs.into_iter().find(|it| it.id.0 == number) else { return Ok(None) };
    summary_of(past, run, &undone_by(past)?).map(Some)
}

/// Returns for each run that was undone the run that did it.
fn undone_by(past: &HistoryReader<'_>) -> CommandResult<HashMap<i64, i64>> {
    let undone = past.lineage().map(Lineage::undone_runs).transpose()?.unwrap_or_default();
    Ok(undone.into_iter().map(|(by, it)| (it.0, by.0)).collect())
}

fn summary_of(
    past: &HistoryReader<'_>,
    run: RunRow,
    undone_by: &HashMap<i64, i64>,
) -> CommandResult<RunSummary> {
    let writes = past.lineage().map(|it| it.writes_of_run(run.id)).transpose()?;
    let (removed, written): (Vec<_>, Vec<_>) =
        writes.unwrap_or_default().into_iter().partition(|it| it.new_hash.is_none());
    let jobs = past.lineage().map(|it| it.jobs_of_run(run.id)).transpose()?.unwrap_or_default();
    let figures: Vec<_> = jobs.into_iter().filter_map(|it| Some(it.receipt?.metrics)).collect();
    Ok(RunSummary {
        run: run.id.0,
        trigger: run.trigger,
        started: past.rfc3339(run.started),
        ended: run.ended.map(|it| past.rfc3339(it)),
        written: written_files(written),
        removed: written_files(removed),
        amounts: figures.iter().map(|it| it.amounts).sum(),
        amounts_kept: figures.iter().map(|it| it.amounts_kept).sum(),
        taken_back_by: undone_by.get(&run.id.0).copied(),
    })
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
    let rows: Vec<Vec<String>> = listed.into_iter().map(RunSummary::row).collect();
    ui.table(&["run", "started", "by", "written", "removed", "files"], &rows);
    note_older(older, ui);
    Ok(())
}

/// Returns the written files, each once, ordered by their last write.
fn written_files(writes: Vec<IntentRow>) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut files: Vec<String> = writes.into_iter().rev().map(|it| it.target).collect();
    files.retain(|it| seen.insert(it.clone()));
    files.reverse();
    files
}

impl RunSummary {
    /// Returns the local time of its start: `2026-04-13 09:00:00`.
    pub(crate) fn started_local(&self) -> String {
        self.started.chars().take(19).collect::<String>().replace('T', " ")
    }

    fn row(self) -> Vec<String> {
        const NAMED_MAX: usize = 3;
        let when = self.started_local();
        let count =
            |it: &[String]| if it.is_empty() { "-".to_owned() } else { it.len().to_string() };
        let (written, removed) = (count(&self.written), count(&self.removed));
        let mut files: Vec<String> = self.removed;
        files.extend(self.written);
        // The files written last (months, wisdom) matter most to people.
        files.reverse();
        let more = files.len().saturating_sub(NAMED_MAX);
        files.truncate(NAMED_MAX);
        if more > 0 {
            files.push(format!("and {more} more"));
        }
        if let Some(by) = self.taken_back_by {
            files.push(format!("(undone by run {by})"));
        }
        if self.ended.is_none() {
            files.push("(not finished)".to_owned());
        }
        vec![self.run.to_string(), when, self.trigger, written, removed, files.join(" ")]
    }
}

impl From<ParseTimeError> for CommandError {
    fn from(error: ParseTimeError) -> Self {
        Self::usage(error).hint("to see the times of all versions: memoird history FILE")
    }
}
