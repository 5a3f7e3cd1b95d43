//! When and by whom the lines of a file were added.

use std::collections::BTreeMap;

use super::{
    error::CommandResult,
    history::HistoryReader,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    memory::frontmatter,
    recall::{
        blame,
        history::{FileHistory, FileVersion},
        trace_formats::{GenerationJob, GenerationRecord, GenerationRecords},
    },
    store::{db::lineage::history::VersionCause, fs::layout::visible_text},
};

/// When and by whom the lines of a file were added.
pub(crate) struct LineOrigins {
    /// The first line of the body, from 1.
    pub(crate) body_start: usize,
    /// For each line of the file, an index into the versions.
    pub(crate) origins: Vec<usize>,
    /// The versions whose bytes are known, oldest first.
    pub(crate) versions: Vec<FileVersion>,
    /// The job that wrote each version, by index of the version.
    pub(crate) jobs: BTreeMap<usize, GenerationJob>,
    pub(crate) text: String,
}

/// Finds the version that added each line of a file.
pub(crate) fn line_origins(
    past: &HistoryReader<'_>,
    history: &FileHistory,
) -> CommandResult<LineOrigins> {
    let mut versions = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for version in &history.versions {
        let is_kept = version.is_absent() || version.hash.is_some();
        if !is_kept {
            continue;
        }
        let bytes = past.version_bytes(history, version)?.unwrap_or_default();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
        versions.push(version.clone());
    }
    let text = texts.last().cloned().unwrap_or_default();
    let body_at = frontmatter::split(&text).body_at;
    let first = text.get(..body_at).map_or(0, |it| it.matches('\n').count());
    let mut jobs = BTreeMap::new();
    for (at, version) in versions.iter().enumerate() {
        let (Some(run), Some(lineage)) = (version.run, past.lineage()) else { continue };
        if version.cause != VersionCause::Written {
            continue;
        }
        if let Some(job) = lineage.writing_job(&history.path, run)? {
            let ended = job.receipt.map(|it| it.ended);
            let (tier, period) = (job.tier.name(), job.period.to_string());
            jobs.insert(
                at,
                GenerationJob { tier, period, engine: job.engine, started: job.started, ended },
            );
        }
    }
    for text in &mut texts {
        text.truncate(visible_text(&history.path, text).len());
    }
    Ok(LineOrigins { body_start: first + 1, origins: blame::origins(&texts), versions, jobs, text })
}

/// Returns which runs wrote the items at these lines, as far as known. An item that a person wrote has none.
pub(crate) fn item_producers(
    call: &Invocation,
    root: &MemoryRoot,
    places: impl Iterator<Item = (String, u32)>,
) -> CommandResult<GenerationRecords> {
    let past = HistoryReader::open(call, root)?;
    let mut files: BTreeMap<String, Option<LineOrigins>> = BTreeMap::new();
    let mut records = GenerationRecords::new();
    for (path, line) in places {
        if !files.contains_key(&path) {
            // An unreadable history of one file must not hide the others.
            let lines = past.history_of(&path).and_then(|it| line_origins(&past, &it)).ok();
            files.insert(path.clone(), lines);
        }
        let Some(Some(lines)) = files.get(&path) else { continue };
        let at = usize::try_from(line).ok().and_then(|it| it.checked_sub(1));
        let Some(&origin) = at.and_then(|it| lines.origins.get(it)) else { continue };
        let version = &lines.versions[origin];
        let (VersionCause::Written, Some(run)) = (version.cause, version.run) else { continue };
        records.insert(
            format!("{path}:{line}"),
            GenerationRecord {
                run: run.0,
                trigger: version.trigger.clone().unwrap_or_default(),
                job: lines.jobs.get(&origin).cloned(),
                at: version.at,
            },
        );
    }
    Ok(records)
}
