//! `memoird session compact`: sums a session up, or makes its transcript smaller.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use super::{
    micro::{self, MicroArgs},
    read_transcript, record_store,
};
use crate::commands::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MODEL_WAIT_MAX, MemoryRoot},
};
use crate::{
    compaction::grounding,
    config::{environment::Environment, settings::EngineKind},
    engine::{
        Engine, EngineError, configured,
        model::{
            ModelEngine,
            handoff::HANDOFF_TITLES,
            session::{SessionEntry, SummaryScope, SummarySections},
        },
    },
    model::{WorkOutcome, failure::ErrorClass},
    session::{
        self,
        continuation::{self, ContinuationParts, FILES_MAX, FILES_TOKENS_MAX},
        digest::SessionDigest,
        handoff_files::HandoffFileReader,
        micro_compaction,
        offline_summary::{self, NominatedFiles, SummaryMaterial, SummaryStyle},
        save::{SaveError, SaveRequest, SavedSession},
        transcript::{Transcript, TranscriptFormat},
    },
};

/// So many lines that are kept out are shown.
const REJECTED_SHOWN_MAX: usize = 5;

/// Names of what marks the folder of a project.
const PROJECT_MARKS: [&str; 3] = [".git", "package.json", ".claude"];

/// Sum up a session, or make its transcript smaller
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, clap::Args)]
pub(super) struct SessionCompactArgs {
    /// The transcript of Claude Code or Codex, or lines of {"role", "content"}; `-` for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// What the summary is for
    #[arg(long, value_enum, default_value = "full", conflicts_with = "micro")]
    style: SummaryStyle,
    /// Only replace old results of tools, and write the transcript to stdout or to --out
    #[arg(long)]
    micro: bool,
    #[command(flatten)]
    smaller: MicroArgs,
    /// Add these instructions to what the next agent is told
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Sum up only what comes after the line with this uuid
    #[arg(long, value_name = "UUID", conflicts_with = "micro")]
    after: Option<String>,
    /// The folder of the project; else found around the folder that the session ran in
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Files that are attached take no more tokens than this
    #[arg(long, value_name = "TOKENS", default_value_t = FILES_TOKENS_MAX)]
    budget: u64,
    /// Attach the files that were used last, and the plan, to what the next agent is told
    #[arg(long, conflicts_with = "micro")]
    reattach: bool,
    /// What the session was about; else its first message
    #[arg(long, value_name = "TEXT", conflicts_with = "micro")]
    description: Option<String>,
    /// Words by which the record is found again
    #[arg(long, value_name = "TAG,TAG", value_delimiter = ',', conflicts_with = "micro")]
    tags: Vec<String>,
    /// Tell the next agent to go on without asking
    #[arg(long, conflicts_with = "micro")]
    auto_continue: bool,
    /// Write an entry into the daily log too, of what is not there yet
    #[arg(long, conflicts_with_all = ["micro", "after"])]
    log: bool,
    /// Ask no model, though one is configured
    #[arg(long, conflicts_with = "micro")]
    no_model: bool,
    /// Print the summary and keep no record
    #[arg(long, conflicts_with_all = ["micro", "log"])]
    dry_run: bool,
    /// Never ask before a record is kept
    #[arg(long)]
    force: bool,
    /// What wrote the transcript; found out if not given
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<TranscriptFormat>,
}

/// What `--json` prints of a summary.
#[derive(Serialize)]
struct SessionCompactReport<'a> {
    style: &'static str,
    #[serde(flatten)]
    kept: Option<&'a SavedSession>,
    summary: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuation: Option<&'a str>,
    /// What the model said and the session does not.
    rejected: &'a [RejectedLine],
    oddities: SkippedLines,
}

/// A line of a model's summary that is kept out.
#[derive(Serialize)]
struct RejectedLine {
    text: String,
    reason: String,
}

/// What a model made of a session, checked.
struct ModelSummary {
    engine: String,
    sections: SummarySections,
    rejected: Vec<RejectedLine>,
    /// Files that go with a handoff, and those that it names.
    required: Vec<(String, String)>,
    references: Vec<String>,
}

/// What of the transcript was not read.
#[derive(Serialize)]
struct SkippedLines {
    torn: bool,
    broken: usize,
    too_long: usize,
    doubles: usize,
    unread: BTreeMap<String, usize>,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &SessionCompactArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    if args.micro {
        return micro::run(&args.file, args.format, &args.smaller, ui);
    }
    let call = Invocation::load(global)?;
    let whole = read_transcript(&args.file, args.format)?;
    warn_skipped_lines(&whole, ui);
    let part = args.after.as_deref().map(|id| part_after(&whole, id)).transpose()?;
    if args.style == SummaryStyle::Partial && part.is_none() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "--style partial needs to know what is kept as it is",
        )
        .hint("memoird session compact FILE --style partial --after UUID"));
    }
    let transcript = part.as_ref().unwrap_or(&whole);
    let root = session_root(&call, global, transcript)?;
    let project = project_folder(&call.environment, args, transcript);
    let workflow = project.as_deref().and_then(workflow_plan);
    let project = project.map(|it| it.to_string_lossy().into_owned());
    let path = args.file.canonicalize().ok().map(|it| it.to_string_lossy().into_owned());
    let worded = ask_model(&call, &root, args, transcript, project.as_deref(), ui)?;
    let required = worded.as_ref().map_or(&[][..], |it| &it.required[..]);
    let references = worded.as_ref().map_or(&[][..], |it| &it.references[..]);
    let rejected = worded.as_ref().map_or(&[][..], |it| &it.rejected[..]);
    let request = SaveRequest {
        transcript,
        path: path.as_deref(),
        style: args.style,
        project: project.as_deref(),
        workflow: workflow.as_ref().map(|(path, text)| (&path[..], &text[..])),
        description: args.description.as_deref(),
        tags: &args.tags,
        is_logged: args.log,
        sections: worded.as_ref().map(|it| (&it.engine[..], &it.sections)),
        files: NominatedFiles { required, references },
    };
    let is_asked = args.style == SummaryStyle::Recovery && !args.force && !args.dry_run;
    let wants = !is_asked || ui.confirm("Keep a record of this session?").unwrap_or(true);
    let kept = if args.dry_run || !wants {
        None
    } else {
        match record_store(&call, &root).save(&request) {
            Err(SaveError::NothingNew) if args.log => {
                ui.note("nothing to do: all that was said in it is in the daily log");
                if ui.is_json() {
                    ui.json(&serde_json::json!({"style": args.style.name(), "unchanged": true}));
                }
                return Ok(ExitCode::SUCCESS);
            }
            kept => Some(kept?),
        }
    };
    let (summary, plan) = match &kept {
        Some(kept) => (kept.summary.clone(), kept.plan.clone()),
        None => summary_without_record(&root, &request),
    };
    let mut files = required.to_vec();
    if args.reattach {
        let tokens: u64 =
            files.iter().map(|it| micro_compaction::estimate_tokens(it.1.len() as u64)).sum();
        let left = args.budget.saturating_sub(tokens);
        let mut again = recent_files(&root, transcript, project.as_deref(), left, ui);
        // One that the model chose is there already, by its name in the project.
        again.retain(|(path, _)| !required.iter().any(|it| Path::new(path).ends_with(&it.0)));
        files.extend(again);
    }
    let around = ContinuationParts {
        transcript: path.as_deref(),
        record: kept.as_ref().map(|it| &it.id[..]),
        instructions: args.instructions.as_deref(),
        auto_continue: args.auto_continue,
        files: &files,
        plan: plan.as_deref().filter(|_| args.reattach),
    };
    let continuation =
        matches!(args.style, SummaryStyle::Full | SummaryStyle::Partial | SummaryStyle::Handoff)
            .then(|| continuation::continuation_message(args.style, &summary, &around));
    if ui.is_json() {
        let odd = transcript.anomalies.clone();
        ui.json(&SessionCompactReport {
            style: args.style.name(),
            kept: kept.as_ref(),
            summary: &summary,
            continuation: continuation.as_deref(),
            rejected,
            oddities: SkippedLines {
                torn: odd.is_truncated,
                broken: odd.malformed,
                too_long: odd.too_long,
                doubles: odd.duplicates,
                unread: odd.unread,
            },
        });
        return Ok(ExitCode::SUCCESS);
    }
    ui.bytes(continuation.as_deref().unwrap_or(&summary).as_bytes());
    if let Some(kept) = &kept {
        report_saved(args.style, kept, ui);
    }
    Ok(ExitCode::SUCCESS)
}

/// Has the model of the root word what the style leaves to it, and keeps out what the session does not say;
/// `None` where none is configured or it does not answer: then all is made without it.
fn ask_model(
    call: &Invocation,
    root: &MemoryRoot,
    args: &SessionCompactArgs,
    transcript: &Transcript,
    project: Option<&str>,
    ui: &Ui,
) -> Result<Option<ModelSummary>, CommandError> {
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
    .map_err(|e| CommandError::new(CommandErrorKind::Config, e).hint("memoird model test"))?;
    let entries = session::model_view::model_entries(transcript, &root.rules);
    if args.style == SummaryStyle::Handoff {
        return Ok(ask_for_handoff(call, &engine, root, args, (transcript, entries), project, ui));
    }
    let name = transcript.session.as_deref().unwrap_or("session");
    let wanted = match args.style {
        SummaryStyle::Partial => SummaryScope::LaterPart,
        SummaryStyle::Recovery => SummaryScope::Recovery,
        SummaryStyle::Full | SummaryStyle::Handoff => SummaryScope::Whole,
    };
    let date = end_date(call, root, transcript);
    let check =
        |it: &[String]| grounding::session::check(wanted.titles(), it, &entries, date, &root.rules);
    let rejects = |it: &[String]| check(it).rejected;
    let asked =
        engine.summarize_session(name, &entries, wanted, args.instructions.as_deref(), &rejects);
    engine.end_work(work_end(&asked));
    match asked {
        Ok(sections) => {
            let checked = check(&sections);
            let (sections, rejected) = report_rejected(checked, root, ui);
            let (required, references) = (Vec::new(), Vec::new());
            Ok(Some(ModelSummary { engine: engine.id, sections, rejected, required, references }))
        }
        Err(error) => {
            ui.warn(format!("the summary is made without the model: {error}"));
            Ok(None)
        }
    }
}

/// Has the model hand the session over, by tools that read the project; `None` where it does not come to a
/// summary, which is said.
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
        ui.warn(
            "the handoff is made without the model: a program that is asked by `command` is given no tools",
        );
        return None;
    }
    let reading = project.and_then(|it| {
        HandoffFileReader::new(Path::new(it), &root.rules, entries.clone(), args.budget)
    });
    let Some(mut reading) = reading else {
        ui.warn("the handoff is made without the model: the project's folder is not there (--project DIR)");
        return None;
    };
    let name = transcript.session.as_deref().unwrap_or("session");
    let mut look = |tool: &str, path: &str| reading.call_tool(tool, path);
    let asked = engine.handoff(name, &entries, args.instructions.as_deref(), &mut look);
    engine.end_work(work_end(&asked));
    let read = reading.finish();
    match asked {
        Ok(handed) => {
            if let Some(why) = &handed.stopped {
                ui.warn(format!("the model did not come to an end: {why}"));
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
            ui.warn(format!("the handoff is made without the model: {error}"));
            None
        }
    }
}

/// Says what became of the replies.
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

/// Tells which lines of a model's are kept out; returns them beside those that stand.
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
        ui.warn(format!("{count} lines of the model's are kept out; the session does not say so:"));
    }
    for it in rejected.iter().take(REJECTED_SHOWN_MAX) {
        ui.note(format!("  {}: {}", it.reason, it.text));
    }
    (checked.sections, rejected)
}

/// Returns the part of a session after a line.
fn part_after(transcript: &Transcript, id: &str) -> Result<Transcript, CommandError> {
    transcript.after_line(id).ok_or_else(|| {
        CommandError::new(
            CommandErrorKind::Usage,
            format!("no line of the transcript has the uuid `{id}`"),
        )
        .hint("the `uuid` of a line that stands in the file; the summary begins after it")
    })
}

/// Opens the root that a call means: the one that is named, else that of the folder in which the session
/// ran, else that of the working folder.
fn session_root(
    call: &Invocation,
    global: &GlobalArgs,
    transcript: &Transcript,
) -> Result<MemoryRoot, CommandError> {
    if let (None, Some(cwd)) = (&global.root, &transcript.cwd) {
        let mut there = call.environment.clone();
        there.cwd = PathBuf::from(cwd);
        if let Ok(path) = call.config.select_root(None, &there) {
            return call.open_root(&path);
        }
    }
    call.selected_root(global)
}

/// Returns the folder of the project: the one that is named, else the topmost one around the folder of the
/// session that is marked as one. The home is none, whatever stands in it.
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

/// Returns the plan of a workflow that is under way in a project.
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

/// Returns the summary of what is not kept.
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

/// Reads the files that were used last, as they stand now: those of the project alone, of any that lead
/// out of it and of what is no text none.
fn recent_files(
    root: &MemoryRoot,
    transcript: &Transcript,
    project: Option<&str>,
    budget: u64,
    ui: &Ui,
) -> Vec<(String, String)> {
    let Some(project) = project.and_then(|it| Path::new(it).canonicalize().ok()) else {
        ui.note("nothing is attached: the project's folder is not there");
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
        ui.note("the last line is cut off: the session may still be under way");
    }
    if odd.malformed + odd.too_long > 0 {
        ui.warn(format!(
            "{} lines are no JSON and {} are too long; they are passed over",
            odd.malformed, odd.too_long
        ));
    }
    for (kind, count) in &odd.unread {
        ui.detail(format!("{count} lines of kind `{kind}` are not read"));
    }
}

fn report_saved(style: SummaryStyle, kept: &SavedSession, ui: &Ui) {
    let SavedSession { id, path, unchanged, logged, problems, .. } = kept;
    for problem in problems {
        ui.warn(problem);
    }
    let how = if *unchanged { "stands already as" } else { "is kept as" };
    if style == SummaryStyle::Recovery {
        let width = id.len() + 2;
        ui.note(format!("┌{}┐\n│ {id} │\n└{}┘", "─".repeat(width), "─".repeat(width)));
        ui.note(format!(
            "The session {how} {path}. To stand there again: memoird session export --id {id}"
        ));
    } else {
        ui.success(format!("The session {how} {path}; memoird session show {id}"));
    }
    for log in logged {
        ui.note(format!("An entry stands in {log}"));
    }
}
