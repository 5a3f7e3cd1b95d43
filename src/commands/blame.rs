//! `memoird blame`: shows when each line of a generated file was added, by which run and engine.

use std::{collections::BTreeMap, process::ExitCode};

use serde::Serialize;

use super::{GlobalArgs, history::HistoryReader, ui::Ui};
use crate::{
    memory::frontmatter,
    operations::{
        error::{CommandError, CommandResult},
        workspace::{Invocation, MemoryRoot},
    },
    recall::{
        blame,
        framing::NOTICE,
        history::{FileHistory, FileVersion},
        trace_formats::{GenerationJob, GenerationRecord, GenerationRecords},
    },
    store::{
        db::lineage::history::VersionCause,
        fs::layout::{FileKind, visible_text},
    },
};

/// Show when each line of a generated file was added, by which run and engine
#[derive(Debug, clap::Args)]
pub(super) struct BlameArgs {
    /// A weekly or monthly file, a typed memory, WISDOM.md, or MEMORY.md
    #[arg(value_name = "FILE")]
    file: String,
}

/// What `--json` prints; a document of `schema/blame.schema.json`.
#[derive(Serialize)]
struct BlameReport<'a> {
    path: &'a str,
    notice: &'static str,
    lines: Vec<BlameLine<'a>>,
}

#[derive(Serialize)]
struct BlameLine<'a> {
    line: usize,
    /// When the line was added.
    at: Option<String>,
    /// `engine`, `person`, or `unknown` if no earlier version is kept.
    by: &'static str,
    run: Option<i64>,
    trigger: Option<&'a str>,
    engine: Option<&'a str>,
    text: &'a str,
}

/// When and by whom the lines of a file were added.
struct LineOrigins {
    /// The first line of the body, from 1.
    body_start: usize,
    /// For each line of the file, an index into the versions.
    origins: Vec<usize>,
    /// The versions whose bytes are known, oldest first.
    versions: Vec<FileVersion>,
    /// The job that wrote each version, by index of the version.
    jobs: BTreeMap<usize, GenerationJob>,
    text: String,
}

pub(super) fn run(global: &GlobalArgs, args: &BlameArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let past = HistoryReader::open(&call, &root)?;
    let history = past.find(&args.file)?;
    let kind = root.vault.layout().kind_of(&history.path);
    if matches!(kind, Some(FileKind::Log | FileKind::Session)) {
        let what = format!("`{}` is not a generated file", history.path);
        return Err(CommandError::usage(what)
            .hint(format!("memoird history {}", history.path))
            .hint(format!("memoird trace --up {}:1", history.path)));
    }
    let lines = line_origins(&past, &history)?;
    // The sanitized view has the same lines, so line numbers match.
    let shown = root.sanitized_file(&history.path, lines.text.as_bytes()).text;
    if ui.is_json() {
        ui.json(&BlameReport {
            path: &history.path,
            notice: NOTICE,
            lines: lines
                .body_lines(&shown)
                .map(|(at, text)| lines.blame_line(at, text, &past))
                .collect(),
        });
        return Ok(ExitCode::SUCCESS);
    }
    let rows: Vec<[String; 4]> = lines
        .body_lines(&shown)
        .map(|(at, _)| {
            let line = lines.blame_line(at, "", &past);
            let day = line.at.as_deref().map_or("-", |it| it.get(..10).unwrap_or(it)).to_owned();
            let run = line.run.map_or_else(|| "-".to_owned(), |it| format!("run {it}"));
            let by = line.engine.unwrap_or(if line.by == "person" { "you" } else { "-" });
            [day, run, by.to_owned(), (at + 1).to_string()]
        })
        .collect();
    let mut widths = [0; 4];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let [day, run, by, number] = widths;
    for (row, (_, text)) in rows.iter().zip(lines.body_lines(&shown)) {
        let line = format!(
            "{:day$}  {:run$}  {:by$}  {:>number$}) {text}",
            row[0], row[1], row[2], row[3]
        );
        ui.data(line.trim_end());
    }
    if lines.versions.iter().all(|it| it.run.is_none()) {
        ui.note("no run has recorded this file yet, so the origin of its lines is unknown");
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the version that added each line of a file.
fn line_origins(past: &HistoryReader<'_>, history: &FileHistory) -> CommandResult<LineOrigins> {
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

impl LineOrigins {
    /// Returns the sanitized lines of the body, each with its index in the file.
    fn body_lines<'a>(&self, shown: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
        let lines = shown.lines().enumerate();
        lines.skip(self.body_start - 1).skip_while(|it| it.1.trim().is_empty())
    }

    fn blame_line<'a>(
        &'a self,
        at: usize,
        text: &'a str,
        past: &HistoryReader<'_>,
    ) -> BlameLine<'a> {
        let origin = self.origins.get(at).copied();
        let version = origin.and_then(|it| self.versions.get(it));
        let job = origin.and_then(|it| self.jobs.get(&it));
        let by = match version {
            _ if job.is_some() => "engine",
            // The author of text that is older than the first kept version is unknown.
            Some(it) if it.cause == VersionCause::ExternalWrite && origin == Some(0) => "unknown",
            Some(_) => "person",
            None => "unknown",
        };
        BlameLine {
            line: at + 1,
            at: version.map(|it| past.rfc3339(it.at)),
            by,
            run: version.and_then(|it| it.run).map(|it| it.0),
            trigger: version.and_then(|it| it.trigger.as_deref()),
            engine: job.map(|it| &it.engine[..]),
            text,
        }
    }
}

/// Returns which runs wrote the items at these lines, as far as known. An item that a person wrote has none.
pub(super) fn item_producers(
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
