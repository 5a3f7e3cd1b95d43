//! `memoird session compact`: summarizes a session, or shrinks its transcript.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use super::{
    micro::{self, MicroArgs},
    read_transcript,
};
use crate::{
    commands::{GlobalArgs, ui::Ui},
    compaction::grounding,
    config::{ConfigError, environment::Environment, settings::EngineKind},
    engine::{
        Engine, EngineError, configured,
        model::{
            ModelEngine,
            handoff::HANDOFF_TITLES,
            session::{SessionEntry, SummaryScope, SummarySections},
        },
    },
    model::{WorkOutcome, failure::ErrorClass},
    operations::{
        error::{CommandError, CommandResult},
        session_records::record_store,
        workspace::{Invocation, MODEL_WAIT_MAX, MemoryRoot},
    },
    session::{
        self,
        continuation::{self, ContinuationParts, FILES_MAX, FILES_TOKENS_MAX},
        digest::SessionDigest,
        handoff_files::HandoffFileReader,
        micro_compaction,
        offline_summary::{self, NominatedFiles, SummaryMaterial, SummaryStyle},
        save::{SaveError, SaveRequest, SavedSession},
        transcript::{Transcript, TranscriptFormat},
        transcript_file,
    },
};

const REJECTED_SHOWN_MAX: usize = 5;

/// Files and folders that mark a project.
const PROJECT_MARKS: [&str; 3] = [".git", "package.json", ".claude"];

/// Summarize a session, or shrink its transcript
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub(super) struct SessionCompactArgs {
    /// The transcript of Claude Code, Codex, Copilot CLI, Gemini CLI, or opencode (an export), or lines of
    /// {"role", "content"}; `-` for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What the summary is for
    #[arg(long, value_enum, default_value = "full", conflicts_with = "micro")]
    style: SummaryStyle,
    /// Only replace old tool results, and write the transcript to stdout or to --out
    #[arg(long)]
    micro: bool,
    #[command(flatten)]
    smaller: MicroArgs,
    /// Add these instructions to the message for the next agent
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Summarize only what comes after the line with this uuid
    #[arg(long, value_name = "UUID", conflicts_with = "micro")]
    after: Option<String>,
    /// The folder of the project [default: derived from the folder of the session]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// The most tokens of attached files
    #[arg(long, value_name = "TOKENS", default_value_t = FILES_TOKENS_MAX)]
    budget: u64,
    /// Attach the plan and the files that were used last to the message for the next agent
    #[arg(long, conflicts_with = "micro")]
    reattach: bool,
    /// What the session was about [default: its first message]
    #[arg(long, value_name = "TEXT", conflicts_with = "micro")]
    description: Option<String>,
    /// Tags of the record
    #[arg(long, value_name = "TAG,TAG", value_delimiter = ',', conflicts_with = "micro")]
    tags: Vec<String>,
    /// Tell the next agent to continue without asking
    #[arg(long, conflicts_with = "micro")]
    auto_continue: bool,
    /// Also add what is new to the daily log
    #[arg(long, conflicts_with_all = ["micro", "after"])]
    log: bool,
    /// Use no model, even if one is configured
    #[arg(long, conflicts_with = "micro")]
    no_model: bool,
    /// Print the summary and save no record
    #[arg(long, conflicts_with_all = ["micro", "log"])]
    dry_run: bool,
    /// Never ask before saving a record
    #[arg(long)]
    force: bool,
    /// The format of the transcript [default: detected]
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<TranscriptFormat>,
}

/// The `--json` output of a summary.
#[derive(Serialize)]
struct SessionCompactReport<'a> {
    style: &'static str,
    #[serde(flatten)]
    saved: Option<&'a SavedSession>,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<&'a str>,
    /// Lines of the model that the session does not support.
    rejected: &'a [RejectedLine],
    oddities: SkippedLines,
}

#[derive(Serialize)]
struct RejectedLine {
    text: String,
    reason: String,
}

struct ModelSummary {
    engine: String,
    sections: SummarySections,
    rejected: Vec<RejectedLine>,
    /// Files attached to a handoff, and files that it names.
    required: Vec<(String, String)>,
    references: Vec<String>,
}

/// Lines of the transcript that were not read.
#[derive(Serialize)]
struct SkippedLines {
    torn: bool,
    broken: usize,
    too_long: usize,
    doubles: usize,
    unread: BTreeMap<String, usize>,
}

impl SkippedLines {
    fn of(transcript: &Transcript) -> Self {
        let anomalies = transcript.anomalies.clone();
        Self {
            torn: anomalies.is_truncated,
            broken: anomalies.malformed,
            too_long: anomalies.too_long,
            doubles: anomalies.duplicates,
            unread: anomalies.unread,
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &SessionCompactArgs, ui: &Ui) -> CommandResult {
    if args.micro {
        return micro::run(&args.file, args.format, &args.smaller, ui);
    }
    let call = Invocation::load(global)?;
    let whole = read_transcript(&args.file, args.format)?;
    warn_skipped_lines(&whole, ui);
    let part = selected_part(args, &whole)?;
    let transcript = part.as_ref().unwrap_or(&whole);
    let root = session_root(&call, global, transcript)?;
    let project = project_folder(&call.environment, args, transcript);
    let workflow = project.as_deref().and_then(workflow_plan);
    let project = project.map(|it| it.to_string_lossy().into_owned());
    let path =
        transcript_file::canonicalize(&args.file).ok().map(|it| it.to_string_lossy().into_owned());
    let from_model = ask_model(&call, &root, args, transcript, project.as_deref(), ui)?;
    let required = from_model.as_ref().map_or(&[][..], |it| &it.required[..]);
    let references = from_model.as_ref().map_or(&[][..], |it| &it.references[..]);
    let rejected = from_model.as_ref().map_or(&[][..], |it| &it.rejected[..]);
    let request = SaveRequest {
        transcript,
        path: path.as_deref(),
        style: args.style,
        project: project.as_deref(),
        workflow: workflow.as_ref().map(|(path, text)| (&path[..], &text[..])),
        description: args.description.as_deref(),
        tags: &args.tags,
        is_logged: args.log,
        is_part: args.after.is_some(),
        sections: from_model.as_ref().map(|it| (&it.engine[..], &it.sections)),
        files: NominatedFiles { required, references },
    };
    let saved = if args.dry_run || !is_confirmed(args, ui) {
        None
    } else {
        match record_store(&call, &root).save(&request) {
            Err(SaveError::NothingNew) if args.log => {
                report_nothing_new(args.style, ui);
                return Ok(ExitCode::SUCCESS);
            }
            saved => Some(saved?),
        }
    };
    let (summary, plan) = match &saved {
        Some(saved) => (saved.summary.clone(), saved.plan.clone()),
        None => summary_without_record(&root, &request),
    };
    let files = attached_files(&root, args, &request, ui);
    let parts = ContinuationParts {
        transcript: path.as_deref(),
        record: saved.as_ref().map(|it| &it.id[..]),
        instructions: args.instructions.as_deref(),
        auto_continue: args.auto_continue,
        files: &files,
        plan: plan.as_deref().filter(|_| args.reattach),
    };
    let continuation =
        matches!(args.style, SummaryStyle::Full | SummaryStyle::Partial | SummaryStyle::Handoff)
            .then(|| continuation::continuation_message(args.style, &summary, &parts));
    if ui.is_json() {
        ui.json(&SessionCompactReport {
            style: args.style.name(),
            saved: saved.as_ref(),
            summary: &summary,
            continuation: continuation.as_deref(),
            rejected,
            oddities: SkippedLines::of(transcript),
        });
        return Ok(ExitCode::SUCCESS);
    }
    ui.bytes(continuation.as_deref().unwrap_or(&summary).as_bytes());
    if let Some(saved) = &saved {
        report_saved(args.style, saved, ui);
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks whether a record is to be saved, where the style needs that.
fn is_confirmed(args: &SessionCompactArgs, ui: &Ui) -> bool {
    let is_asked = args.style == SummaryStyle::Recovery && !args.force;
    !is_asked || ui.confirm("Save a record of this session?").unwrap_or(true)
}

/// Returns the files for the next agent: those that the model chose, and with `--reattach` those that were
/// used last.
fn attached_files(
    root: &MemoryRoot,
    args: &SessionCompactArgs,
    request: &SaveRequest<'_>,
    ui: &Ui,
) -> Vec<(String, String)> {
    let required = request.files.required;
    let mut files = required.to_vec();
    if args.reattach {
        let used: u64 =
            files.iter().map(|it| micro_compaction::estimate_tokens(it.1.len() as u64)).sum();
        let left = args.budget.saturating_sub(used);
        let mut recent = recent_files(root, request.transcript, request.project, left, ui);
        // The model names files relative to the project.
        recent.retain(|(path, _)| !required.iter().any(|it| Path::new(path).ends_with(&it.0)));
        files.extend(recent);
    }
    files
}

/// Asks the root's model for the sections that the style needs, and removes lines that the session does not
/// support. Returns `None` if no model is configured or it does not answer; the summary is then made without
/// it.
fn ask_model(
    call: &Invocation,
    root: &MemoryRoot,
    args: &SessionCompactArgs,
    transcript: &Transcript,
    project: Option<&str>,
    ui: &Ui,
) -> CommandResult<Option<ModelSummary>> {
    let is_asked = !args.no_model && !args.log;
    if !is_asked || root.settings.settings.engine != EngineKind::Model {
        return Ok(None);
    }
    let engine = configured::open_model_engine(
        &call.config,
        &root.settings,
        &call.environment,
        MODEL_WAIT_MAX,
    )
    .map_err(|e| CommandError::config(e).hint("memoird model test"))?;
    let entries = session::model_view::model_entries(transcript, &root.rules);
    if args.style == SummaryStyle::Handoff {
        return Ok(ask_for_handoff(call, &engine, root, args, (transcript, entries), project, ui));
    }
    let name = transcript.session.as_deref().unwrap_or("session");
    let scope = match args.style {
        SummaryStyle::Partial => SummaryScope::LaterPart,
        SummaryStyle::Recovery => SummaryScope::Recovery,
        SummaryStyle::Full | SummaryStyle::Handoff => SummaryScope::Whole,
    };
    let date = end_date(call, root, transcript);
    let check =
        |it: &[String]| grounding::session::check(scope.titles(), it, &entries, date, &root.rules);
    let rejects = |it: &[String]| check(it).rejected;
    let reply =
        engine.summarize_session(name, &entries, scope, args.instructions.as_deref(), &rejects);
    engine.end_work(work_end(&reply));
    match reply {
        Ok(sections) => {
            let checked = check(&sections);
            let (sections, rejected) = report_rejected(checked, root, ui);
            let (required, references) = (Vec::new(), Vec::new());
            Ok(Some(ModelSummary { engine: engine.id, sections, rejected, required, references }))
        }
        Err(error) => {
            ui.warn(format!("the summary was made without the model: {error}"));
            Ok(None)
        }
    }
}

/// Asks the model for a handoff, with tools that read the project. Returns `None`, with a warning, if it gives
/// no summary.
fn ask_for_handoff(
    call: &Invocation,
    engine: &ModelEngine,
    root: &MemoryRoot,
    args: &SessionCompactArgs,
    (transcript, entries): (&Transcript, Vec<SessionEntry>),
    project: Option<&str>,
    ui: &Ui,
) -> Option<ModelSummary> {
    if !engine.takes_tools() {
        ui.warn("the handoff was made without the model: a `command` model cannot use tools");
        return None;
    }
    let reading = project.and_then(|it| {
        HandoffFileReader::new(Path::new(it), &root.rules, entries.clone(), args.budget)
    });
    let Some(mut reading) = reading else {
        ui.warn("the handoff was made without the model: the project's folder does not exist (set --project DIR)");
        return None;
    };
    let name = transcript.session.as_deref().unwrap_or("session");
    let mut look = |tool: &str, path: &str| reading.call_tool(tool, path);
    let reply = engine.handoff(name, &entries, args.instructions.as_deref(), &mut look);
    engine.end_work(work_end(&reply));
    let read = reading.finish();
    match reply {
        Ok(handed) => {
            if let Some(why) = &handed.stopped {
                ui.warn(format!("the model did not finish: {why}"));
            }
            let date = end_date(call, root, transcript);
            let checked = grounding::session::check(
                &HANDOFF_TITLES,
                &handed.sections,
                &read.entries,
                date,
                &root.rules,
            );
            let (sections, rejected) = report_rejected(checked, root, ui);
            Some(ModelSummary {
                engine: Engine::id(engine).to_owned(),
                sections,
                rejected,
                required: read.required,
                references: read.references,
            })
        }
        Err(error) => {
            ui.warn(format!("the handoff was made without the model: {error}"));
            None
        }
    }
}

/// Returns how the model's replies were used.
fn work_end<T>(asked: &Result<T, EngineError>) -> WorkOutcome {
    match asked {
        Ok(_) => WorkOutcome::Done,
        Err(EngineError::Model(error)) if error.class() != ErrorClass::Request => {
            WorkOutcome::Deferred
        }
        Err(_) => WorkOutcome::Unusable,
    }
}

/// Returns the day on which a session ended, in the root's zone.
fn end_date(call: &Invocation, root: &MemoryRoot, transcript: &Transcript) -> chrono::NaiveDate {
    let zone = root.settings.zone.name.0;
    transcript.time_span().map_or(call.now, |it| it.1).with_timezone(&zone).date_naive()
}

/// Warns about rejected lines of the model. Returns the accepted sections and the rejected lines.
fn report_rejected(
    checked: grounding::session::CheckedSession,
    root: &MemoryRoot,
    ui: &Ui,
) -> (SummarySections, Vec<RejectedLine>) {
    let rejected: Vec<RejectedLine> = checked
        .rejected
        .into_iter()
        .map(|(text, reason)| RejectedLine { text: root.rules.sanitize_output(&text), reason })
        .collect();
    if !rejected.is_empty() {
        let count = rejected.len();
        ui.warn(format!(
            "{count} lines of the model were rejected, because the session does not support them:"
        ));
    }
    for it in rejected.iter().take(REJECTED_SHOWN_MAX) {
        ui.note(format!("  {}: {}", it.reason, it.text));
    }
    (checked.sections, rejected)
}

/// Returns the part of a session after the line that `--after` names; `None` without `--after`.
fn selected_part(
    args: &SessionCompactArgs,
    transcript: &Transcript,
) -> CommandResult<Option<Transcript>> {
    let Some(id) = &args.after else {
        if args.style != SummaryStyle::Partial {
            return Ok(None);
        }
        return Err(CommandError::usage(
            "--style partial needs --after, the line after which the summary begins",
        )
        .hint("memoird session compact FILE --style partial --after UUID"));
    };
    transcript.after_line(id).map(Some).ok_or_else(|| {
        CommandError::usage(format!("no line of the transcript has the uuid `{id}`"))
            .hint("use the `uuid` of a line in the file; the summary begins after it")
    })
}

/// Opens the selected root: the one named by `--root`, else that of the session's folder, else that of the
/// working folder.
fn session_root(
    call: &Invocation,
    global: &GlobalArgs,
    transcript: &Transcript,
) -> CommandResult<MemoryRoot> {
    if let (None, Some(cwd)) = (&global.root, &transcript.cwd) {
        let mut environment = call.environment.clone();
        environment.cwd = PathBuf::from(cwd);
        match call.config.select_root(None, &environment) {
            Ok(path) => return call.open_root(&path),
            // The folder of another project must not get it.
            Err(error @ ConfigError::NoRootSelected { repository: Some(_), .. }) => {
                return Err(error.into());
            }
            Err(_) => {}
        }
    }
    call.selected_root(global)
}

/// Returns the folder of the project: the one named by `--project`, else the topmost marked parent of the
/// session's folder. The home is never a project.
fn project_folder(
    around: &Environment,
    args: &SessionCompactArgs,
    transcript: &Transcript,
) -> Option<PathBuf> {
    if let Some(named) = &args.project {
        return Some(around.absolute(named, &around.cwd));
    }
    let cwd = PathBuf::from(transcript.cwd.as_deref()?);
    let is_project = |folder: &&Path| {
        **folder != *around.home && PROJECT_MARKS.iter().any(|it| folder.join(it).exists())
    };
    Some(cwd.ancestors().filter(is_project).last().unwrap_or(&cwd).to_owned())
}

fn workflow_plan(project: &Path) -> Option<(String, String)> {
    let active = fs::read_dir(project.join(".workflow/active")).ok()?;
    let mut plans: Vec<PathBuf> = active
        .flatten()
        .map(|it| it.path().join("IMPL_PLAN.md"))
        .filter(|it| it.is_file())
        .collect();
    plans.sort();
    let path = plans.pop()?;
    let text = fs::read_to_string(&path).ok()?;
    Some((path.to_string_lossy().into_owned(), text))
}

/// Returns the summary and the plan of a session that is not saved.
fn summary_without_record(
    root: &MemoryRoot,
    request: &SaveRequest<'_>,
) -> (String, Option<String>) {
    let digest = SessionDigest::of(request.transcript);
    let material = SummaryMaterial {
        transcript: request.transcript,
        digest: &digest,
        zone: root.settings.zone.name.0,
        project: request.project,
        workflow: request.workflow,
    };
    let page = match request.sections {
        Some((_, sections)) => offline_summary::summarize_with_model(
            request.style,
            &material,
            sections,
            &request.files,
            None,
        ),
        None => offline_summary::summarize(request.style, &material, None),
    };
    let summary = page.to_text();
    let summary = root.rules.mask_secrets(&summary).into_owned();
    (summary, digest.plan.map(|it| it.text()))
}

/// Reads the current text of the files that were used last. Files outside the project, and files that are no
/// text, are left out.
fn recent_files(
    root: &MemoryRoot,
    transcript: &Transcript,
    project: Option<&str>,
    budget: u64,
    ui: &Ui,
) -> Vec<(String, String)> {
    let Some(project) = project.and_then(|it| Path::new(it).canonicalize().ok()) else {
        ui.note("no files attached: the project's folder does not exist");
        return Vec::new();
    };
    let digest = SessionDigest::of(transcript);
    let mut used: Vec<_> = digest.files.iter().collect();
    used.sort_by_key(|it| std::cmp::Reverse(it.last));
    let mut left = budget.min(FILES_TOKENS_MAX);
    let mut files = Vec::new();
    for file in used {
        let Ok(full) = Path::new(&file.path).canonicalize() else { continue };
        let size = full
            .metadata()
            .ok()
            .filter(fs::Metadata::is_file)
            .map(|it| micro_compaction::estimate_tokens(it.len()));
        let fits = size.is_some_and(|it| it <= left);
        if files.len() == FILES_MAX || !fits || !full.starts_with(&project) {
            continue;
        }
        let Some(text) = fs::read_to_string(&full).ok().filter(|it| !it.contains('\0')) else {
            continue;
        };
        left -= size.unwrap_or_default();
        files.push((file.path.clone(), root.rules.mask_secrets(&text).into_owned()));
    }
    files
}

fn warn_skipped_lines(transcript: &Transcript, ui: &Ui) {
    let odd = &transcript.anomalies;
    if odd.is_truncated {
        ui.note("the last line is incomplete: the session may still be running");
    }
    if odd.malformed + odd.too_long > 0 {
        ui.warn(format!(
            "{} lines are not JSON and {} are too long; they were skipped",
            odd.malformed, odd.too_long
        ));
    }
    for (kind, count) in &odd.unread {
        ui.detail(format!("skipped {count} lines of kind `{kind}`"));
    }
}

fn report_nothing_new(style: SummaryStyle, ui: &Ui) {
    ui.note("nothing to do: the daily log contains the whole session already");
    if ui.is_json() {
        ui.json(&serde_json::json!({"style": style.name(), "unchanged": true}));
    }
}

fn report_saved(style: SummaryStyle, saved: &SavedSession, ui: &Ui) {
    let SavedSession { id, path, unchanged, updated, logged, problems, .. } = saved;
    for problem in problems {
        ui.warn(problem);
    }
    let how = match (unchanged, updated) {
        (true, _) => "exists already as",
        (false, true) => "is updated in",
        (false, false) => "is saved as",
    };
    if style == SummaryStyle::Recovery {
        let width = id.len() + 2;
        ui.note(format!("┌{}┐\n│ {id} │\n└{}┘", "─".repeat(width), "─".repeat(width)));
        ui.note(format!(
            "The session {how} {path}. To restore it: memoird session export --id {id}"
        ));
    } else {
        ui.success(format!("The session {how} {path}; memoird session show {id}"));
    }
    for log in logged {
        ui.note(format!("Added an entry to {log}"));
    }
}
