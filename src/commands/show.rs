//! `memoird show`: prints a file of the memory folder, now or at an earlier time.

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    memory::{
        address::Stem,
        authorship::{LineShape, OriginReason, Speaker},
    },
    operations::{
        error::{CommandError, CommandResult},
        history::{
            HistoryReader, VersionSummary, absent_version, before_history, history_of_version,
            unknown_version,
        },
        workspace::{Invocation, MemoryRoot},
    },
    privacy::{self, quarantine},
    recall::{
        framing::FramedText,
        history::{self, FileHistory, FileVersion},
    },
    store::{
        db::lineage::history::VersionId,
        fs::layout::{FileKind, visible_bytes},
    },
};

/// Print a file of the memory folder, now or at an earlier time
#[derive(Debug, clap::Args)]
pub(super) struct ShowArgs {
    /// A path, a day, week, or month (2026-04-02, 2026-W14, 2026-04), or the name of a memory
    #[arg(value_name = "FILE", required_unless_present = "version")]
    file: Option<String>,
    /// The file as it was at this time: 2026-04-02 (end of the day), "2026-04-02 14:00", "3 days ago", "last month"
    #[arg(long, value_name = "TIME", requires = "file")]
    as_of: Option<String>,
    /// The version with this number; `memoird history FILE` lists them
    #[arg(long, value_name = "ID", conflicts_with = "as_of")]
    version: Option<i64>,
    /// Print the file byte for byte, including secrets and quarantined lines; only for people
    #[arg(long)]
    raw: bool,
    /// Print each line of a log with its origin, who speaks, its form, and why it counts as external
    #[arg(long, requires = "file", conflicts_with_all = ["as_of", "version", "raw"])]
    origins: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ShowReport<'a> {
    path: &'a str,
    kind: Option<&'static str>,
    #[serde(flatten)]
    framed: FramedText,
    /// The version, if an earlier one was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<VersionSummary>,
}

/// What `--origins --json` prints.
#[derive(Serialize)]
struct OriginsReport<'a> {
    path: &'a str,
    kind: &'static str,
    lines: Vec<OriginLine<'a>>,
    sessions: Vec<SessionId<'a>>,
}

/// A line of a log and who wrote it.
#[derive(Serialize)]
struct OriginLine<'a> {
    line: u32,
    origin: &'static str,
    /// Who speaks in a turn of a saved transcript.
    speaker: Option<&'static str>,
    shape: &'static str,
    /// Why the line is external.
    reason: Option<&'static str>,
    /// An index of `sessions`.
    session: Option<usize>,
    text: &'a str,
}

/// A transcript that the log contains.
#[derive(Serialize)]
struct SessionId<'a> {
    id: Option<&'a str>,
}

pub(super) fn run(global: &GlobalArgs, args: &ShowArgs, ui: &Ui) -> CommandResult {
    ui.paged(|| print(global, args, ui))
}

fn print(global: &GlobalArgs, args: &ShowArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    // `--json` is a global option, so clap cannot declare the conflict.
    if args.raw && ui.is_json() {
        let what = "--raw cannot be used with --json";
        return Err(CommandError::usage(what).hint("omit one of the two"));
    }
    match args {
        ShowArgs { version: Some(id), file, .. } => {
            let past = HistoryReader::open(&call, &root)?;
            let history = history_of_version(&past, VersionId(*id), file.as_deref())?;
            let version = history.versions.iter().find(|it| it.id == Some(VersionId(*id)));
            let version = version.ok_or_else(|| unknown_version(*id))?;
            show_version(&past, &root, &history, version, args.raw, ui)?;
        }
        ShowArgs { as_of: Some(time), file: Some(file), .. } => {
            let past = HistoryReader::open(&call, &root)?;
            let time = history::parse_time(time, root.settings.zone.name.0, call.now);
            let example = || format!("memoird show {file} --as-of \"1 day ago\"");
            let time = time.map_err(|error| CommandError::usage(error).hint(example()))?;
            let history = past.find(file)?;
            let version = history.at(time).ok_or_else(|| before_history(&past, &history))?;
            show_version(&past, &root, &history, version, args.raw, ui)?;
        }
        ShowArgs { file: Some(file), origins: true, .. } => show_origins(&call, &root, file, ui)?,
        ShowArgs { file: Some(file), .. } => show_current(&call, &root, file, args.raw, ui)?,
        // clap requires a file or a version.
        ShowArgs { .. } => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn show_current(
    call: &Invocation,
    root: &MemoryRoot,
    file: &str,
    raw: bool,
    ui: &Ui,
) -> CommandResult<()> {
    let (path, kind) = root.resolve_file(&call.environment, file)?;
    let bytes = if let Some(found) = root.vault.read(&path)? {
        if !raw && (ui.is_json() || found.has_merge_conflict()) {
            // JSON needs valid text. Agents read what is shown, too, and both sides of a conflict are not meant.
            root.vault.read_text(&path)?;
        }
        found.bytes
    } else {
        let text = if raw { None } else { root.open_period(call, &path)? };
        text.ok_or_else(|| root.no_file(call, &path, file))?.into_bytes()
    };
    if ui.is_json() {
        let framed = root.sanitized_file(&path, &bytes);
        ui.json(&ShowReport { path: &path, kind: Some(kind.name()), framed, version: None });
    } else if raw {
        ui.bytes(visible_bytes(&path, &bytes));
    } else {
        ui.bytes(root.sanitized_file(&path, &bytes).text.as_bytes());
    }
    Ok(())
}

/// Prints a log with the origin of each line.
fn show_origins(call: &Invocation, root: &MemoryRoot, file: &str, ui: &Ui) -> CommandResult<()> {
    let (path, kind) = root.resolve_file(&call.environment, file)?;
    let name = path.rsplit('/').next().and_then(|it| it.strip_suffix(".md"));
    let stem = name.filter(|_| matches!(kind, FileKind::Log | FileKind::Session));
    let Some(stem) = stem.and_then(|it| it.parse::<Stem>().ok()) else {
        let what = format!("`{path}` is no log, so its lines have no origin");
        return Err(CommandError::usage(what).hint(format!("memoird trace {path}")));
    };
    let log = root.vault.read_log(&stem)?.ok_or_else(|| root.no_file(call, &path, file))?;
    let view = privacy::sanitize(&log, &root.rules);
    let lines = view.lines().iter().map(|line| OriginLine {
        line: line.number(),
        origin: line.origin().name(),
        speaker: line.speaker().map(Speaker::name),
        shape: line.shape().name(),
        reason: line.origin_reason().map(OriginReason::name),
        session: line.session(),
        text: if line.is_quarantined() { quarantine::PLACEHOLDER } else { line.text() },
    });
    if ui.is_json() {
        let sessions = view.sessions().iter().map(|it| SessionId { id: it.id.as_deref() });
        ui.json(&OriginsReport {
            path: &path,
            kind: kind.name(),
            lines: lines.collect(),
            sessions: sessions.collect(),
        });
        return Ok(());
    }
    for line in lines {
        let who = line.speaker.filter(|_| line.reason.is_none()).unwrap_or_default();
        let form = if line.shape == LineShape::Plain.name() { "" } else { line.shape };
        let reason = line.reason.filter(|it| *it != form).unwrap_or_default();
        let what = [who, form, reason].into_iter();
        let what: Vec<_> = what.filter(|it| !it.is_empty() && !line.text.is_empty()).collect();
        let (number, origin, what) = (line.line, line.origin, what.join(", "));
        ui.data(format!("{number:>5}  {origin:<8}  {what:<28}  {}", line.text).trim_end());
    }
    Ok(())
}

fn show_version(
    past: &HistoryReader<'_>,
    root: &MemoryRoot,
    history: &FileHistory,
    version: &FileVersion,
    raw: bool,
    ui: &Ui,
) -> CommandResult<()> {
    let Some(bytes) = past.version_bytes(history, version)? else {
        return Err(absent_version(past, history, version));
    };
    if ui.is_json() {
        ui.json(&ShowReport {
            path: &history.path,
            kind: root.vault.layout().kind_of(&history.path).map(FileKind::name),
            framed: root.sanitized_file(&history.path, &bytes),
            version: Some(past.version_summary(version, None)),
        });
        return Ok(());
    }
    ui.detail(format!(
        "{}, {version}, since {}: {}",
        history.path,
        past.local_time(version.at),
        history.describe_cause(version)
    ));
    if raw {
        ui.bytes(visible_bytes(&history.path, &bytes));
    } else {
        ui.bytes(root.sanitized_file(&history.path, &bytes).text.as_bytes());
    }
    Ok(())
}
