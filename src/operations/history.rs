//! The versions of files, and the runs with what each wrote.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;

use super::{
    error::{CommandError, CommandResult},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::hash::ContentHash,
    recall::history::{self, CurrentFile, DiffStat, FileHistory, FileVersion, ParseTimeError},
    store::{
        db::lineage::{
            Lineage,
            history::{VersionCause, VersionId},
            jobs::{IntentRow, RunRow},
        },
        fs::layout::visible_bytes,
    },
};

#[derive(Serialize)]
pub(crate) struct VersionSummary {
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

    pub(crate) fn rfc3339(&self, time: DateTime<Utc>) -> String {
        let zone = self.root.settings.zone.name.0;
        time.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::AutoSi, false)
    }

    pub(crate) fn version_summary(
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
    pub(crate) fn line_counts(
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

pub(crate) const HISTORY_BEGINS: &str = "history begins with the next run";

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
}

/// Returns the history of the file that a version belongs to; fails if `file` names another one.
pub(crate) fn history_of_version(
    past: &HistoryReader<'_>,
    id: VersionId,
    file: Option<&str>,
) -> CommandResult<FileHistory> {
    let row = past.lineage().map(|it| it.version(id)).transpose()?.flatten();
    let path = row.ok_or_else(|| unknown_version(id.0))?.path;
    if let Some(file) = file {
        let named = past.find(file)?.path;
        if named != path {
            let what = format!("version {} belongs to `{path}`, not to `{named}`", id.0);
            return Err(CommandError::usage(what)
                .hint(format!("memoird show --version {}", id.0))
                .hint(format!("memoird history {named}")));
        }
    }
    past.history_of(&path)
}

pub(crate) fn unknown_version(id: i64) -> CommandError {
    CommandError::usage(format!("there is no version {id}"))
        .hint("`memoird history FILE` lists the versions of a file")
}

/// Returns the error for a time before the first recorded version.
pub(crate) fn before_history(past: &HistoryReader<'_>, history: &FileHistory) -> CommandError {
    let path = &history.path;
    match history.versions.first() {
        Some(first) if first.id.is_some() => {
            let what = format!(
                "no version of `{path}` at that time: its history begins on {} ({first})",
                past.local_time(first.at)
            );
            CommandError::usage(what).hint(format!("memoird history {path}"))
        }
        _ => CommandError::usage(format!("there is no version of `{path}` yet: {HISTORY_BEGINS}"))
            .hint(format!("memoird show {path}")),
    }
}

/// Returns the error for a version in which the file did not exist.
pub(crate) fn absent_version(
    past: &HistoryReader<'_>,
    history: &FileHistory,
    version: &FileVersion,
) -> CommandError {
    let path = &history.path;
    let what = format!(
        "`{path}` did not exist then: {} on {}{}",
        history.describe_cause(version),
        past.local_time(version.at),
        version.id.map_or(String::new(), |it| format!(" (version {})", it.0)),
    );
    let error = CommandError::usage(what);
    let last = history.previous(version).filter(|it| it.hash.is_some()).and_then(|it| it.id);
    match last {
        Some(last) => error.hint(format!("memoird show --version {}", last.0)),
        None => error.hint(format!("memoird history {path}")),
    }
}

impl From<ParseTimeError> for CommandError {
    fn from(error: ParseTimeError) -> Self {
        Self::usage(error).hint("to see the times of all versions: memoird history FILE")
    }
}
