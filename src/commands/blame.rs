//! `memoird blame`: shows when each line of a generated file was added, by which run and engine.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    operations::{
        blame::{LineOrigins, line_origins},
        error::{CommandError, CommandResult},
        history::HistoryReader,
        workspace::Invocation,
    },
    recall::framing::NOTICE,
    store::{db::lineage::history::VersionCause, fs::layout::FileKind},
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
            // `forget` removes the versions that had the words.
            Some(it) if it.trigger.as_deref() == Some("forget") => "unknown",
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
