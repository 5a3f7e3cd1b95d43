//! `memoird context`: what an agent should read at the start of a session, within a budget.
//!
//! Reads a few files and no database, so that sessions start without delay, and shows only their
//! sanitized view. What takes longer or most agents load anyway (instruction files, git, a whole
//! month, logs) is read only on request.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    error::CommandResult,
    git_snapshot, instruction_files,
    last_sessions::last_session_lines,
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    config::{environment::Environment, root::RootKind},
    memory::{
        item::SummarySection,
        log::TextOrigin,
        markdown::{self, LineKind},
        period::{Grain, Period},
    },
    privacy::quarantine,
    recall::{
        context::{self, ContextPart, ContextPartKind, HOOK_CHARS_MAX, SessionContext},
        framing::FramedText,
    },
    store::fs::layout::FileKind,
};

/// How many files of a folder are listed at most.
const FILES_MAX: usize = 20_000;
/// How many logs `--all` reads.
const LOGS_WITH_ALL: usize = 3;

/// The output format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ContextFormat {
    /// Text.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// The JSON that Claude Code expects from a hook.
    ClaudeHook,
}

/// Print what an agent should read at the start of a session
#[derive(Debug, clap::Args)]
pub(super) struct ContextArgs {
    /// Print at most this many tokens [default: the configured budget]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: ContextFormat,
    /// List the parts and their size instead of printing them
    #[arg(long)]
    explain: bool,
    /// Show the cited lines of bullets instead of their days
    #[arg(long)]
    cite: bool,
    #[command(flatten)]
    more: ExtraParts,
}

/// Optional parts, in addition to wisdom, memories, and the decisions and open items of the newest week.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct ExtraParts {
    /// Include the instruction files of agents (CLAUDE.md, AGENTS.md, rules) and the files they include
    #[arg(long)]
    instructions: bool,
    /// With --instructions: also read those of this folder
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,
    /// With --instructions: a file being worked on; includes the rules that apply to it
    #[arg(long = "for", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// With --instructions: let files of the project include files outside it
    #[arg(long)]
    include_outside: bool,
    /// Include the newest month
    #[arg(long)]
    month: bool,
    /// Include all of the newest week
    #[arg(long)]
    week: bool,
    /// Include the last N daily logs
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3")]
    logs: Option<usize>,
    /// Include the state of the git repository of the current folder
    #[arg(long)]
    git: bool,
    /// Include all of these
    #[arg(long)]
    all: bool,
}

/// What a hook of Claude Code prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HookOutput<'a> {
    hook_specific_output: HookContext<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HookContext<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

pub(super) fn run(global: &GlobalArgs, args: &ContextArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    root.require_memory_folder()?;
    let chars_max =
        if args.format == ContextFormat::ClaudeHook { HOOK_CHARS_MAX } else { usize::MAX };
    let options = ComposeOptions { budget: args.budget, chars_max, cite: args.cite };
    let composed = compose(&call, &root, &options, &args.more, ui)?;
    if args.explain && !ui.is_json() {
        let rows: Vec<Vec<String>> = composed
            .parts
            .iter()
            .map(|it| {
                let numbers = [it.tokens, it.lines, it.left_out].map(|it| it.to_string());
                [vec![it.name.to_owned()], numbers.to_vec(), vec![it.command.clone()]].concat()
            })
            .collect();
        ui.table(&["part", "tokens", "lines", "left out", "to see all"], &rows);
        ui.note(format!("about {} tokens in total", composed.tokens));
    } else if ui.is_json() || args.format == ContextFormat::Json {
        ui.json(&composed);
    } else if args.format == ContextFormat::ClaudeHook {
        ui.json(&hook_output(&composed));
    } else {
        ui.bytes(composed.text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

/// Answers the hook of a session that starts in `cwd`; prints nothing if no memory folder belongs to it.
pub(super) fn answer_hook(
    global: &GlobalArgs,
    around: &Environment,
    cwd: &Path,
    ui: &Ui,
) -> CommandResult<()> {
    let call = Invocation::load(global)?;
    let path = match &global.root {
        Some(_) => Some(call.config.select_root(global.root.as_deref(), around)?),
        None => call.config.root_for_folder(cwd, around),
    };
    let Some(path) = path else { return Ok(()) };
    let root = call.open_root(&path)?;
    root.require_memory_folder()?;
    let options = ComposeOptions { budget: None, chars_max: HOOK_CHARS_MAX, cite: false };
    let composed = compose(&call, &root, &options, &ExtraParts::default(), ui)?;
    if composed.parts.iter().any(|it| it.lines > 0) {
        ui.json(&hook_output(&composed));
    }
    Ok(())
}

/// Composes the context as `memoird context` does with no option but `--budget`.
pub(crate) fn compose_default(
    call: &Invocation,
    root: &MemoryRoot,
    budget: Option<usize>,
    ui: &Ui,
) -> CommandResult<SessionContext> {
    root.require_memory_folder()?;
    let options = ComposeOptions { budget, chars_max: usize::MAX, cite: false };
    compose(call, root, &options, &ExtraParts::default(), ui)
}

fn hook_output(composed: &SessionContext) -> HookOutput<'_> {
    HookOutput {
        hook_specific_output: HookContext {
            hook_event_name: "SessionStart",
            additional_context: &composed.text,
        },
    }
}

struct ComposeOptions {
    budget: Option<usize>,
    chars_max: usize,
    cite: bool,
}

fn compose(
    call: &Invocation,
    root: &MemoryRoot,
    options: &ComposeOptions,
    more: &ExtraParts,
    ui: &Ui,
) -> CommandResult<SessionContext> {
    let mut parts = Vec::new();
    if more.all || more.instructions {
        let files = instruction_files::InstructionOptions {
            add_dirs: &more.add_dir,
            files: &more.files,
            include_outside: more.include_outside,
        };
        parts = instruction_files::read_instructions(&call.environment, files, &root.rules, ui);
    }
    // Memory about the person applies in every project.
    for configured in &call.config.roots {
        if configured.path == *root.vault.layout().root() {
            continue;
        }
        // An error of another root is shown by `memoird status`; it must not fail this one.
        let other =
            call.open_root(&configured.path).ok().filter(|it| it.settings.kind == RootKind::User);
        if let Some(other) = other {
            let show = format!("memoird --root '{}' show", configured.path.display());
            let heads =
                LastingHeads { wisdom: "About the person", memories: "Memories about the person" };
            add_lasting_memory(&other, &mut parts, &heads, &show)?;
        }
    }
    let heads = LastingHeads { wisdom: "What lasts (WISDOM.md)", memories: "Memories (MEMORY.md)" };
    add_lasting_memory(root, &mut parts, &heads, "memoird show")?;
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let today = now.date_naive();
    if more.all || more.month {
        add_summary_parts(root, Grain::Month, today, &[MONTH_PART], options.cite, &mut parts)?;
    }
    let week_parts = if more.all || more.week { &WEEK_PARTS[..] } else { &WEEK_PARTS[..2] };
    add_summary_parts(root, Grain::Week, today, week_parts, options.cite, &mut parts)?;
    add_last_sessions(root, today, &mut parts)?;
    if let Some(count) = more.logs.or(more.all.then_some(LOGS_WITH_ALL)) {
        add_last_logs(root, count, &mut parts)?;
    }
    if more.all || more.git {
        add_git(call, root, &mut parts);
    }
    let today = now.format("%Y-%m-%d, %A").to_string();
    let configured = root.settings.settings.context.budget_tokens;
    let budget = options.budget.unwrap_or(usize::try_from(configured).unwrap_or(usize::MAX));
    Ok(context::compose(&parts, &today, budget, options.chars_max))
}

/// Sections of a summary that make one part of the context.
struct SummaryPart {
    kind: ContextPartKind,
    /// The heading; the period follows.
    head: &'static str,
    sections: &'static [SummarySection],
}

const MONTH_PART: SummaryPart = SummaryPart {
    kind: ContextPartKind::Month,
    head: "Month",
    sections: &[
        SummarySection::Themes,
        SummarySection::Milestones,
        SummarySection::Trajectory,
        SummarySection::CarriedForward,
    ],
};

/// The parts of a week; the last one is optional.
const WEEK_PARTS: [SummaryPart; 3] = [
    SummaryPart {
        kind: ContextPartKind::Decisions,
        head: "Decisions of",
        sections: &[SummarySection::Decisions],
    },
    SummaryPart {
        kind: ContextPartKind::Open,
        head: "Blockers and open items of",
        sections: &[SummarySection::BlockersAndOpenItems],
    },
    SummaryPart {
        kind: ContextPartKind::Week,
        head: "Outcomes and context of",
        sections: &[SummarySection::KeyOutcomes, SummarySection::Context],
    },
];

/// The headings of wisdom and memories.
struct LastingHeads {
    wisdom: &'static str,
    memories: &'static str,
}

/// Adds wisdom and the index of memories of a root.
fn add_lasting_memory(
    root: &MemoryRoot,
    parts: &mut Vec<ContextPart>,
    heads: &LastingHeads,
    show: &str,
) -> CommandResult<()> {
    let layout = root.vault.layout();
    if let Some(text) = root.read_sanitized(&layout.wisdom())? {
        let (head, lines) = (heads.wisdom.to_owned(), context::wisdom_lines(&text.text));
        let (kind, command) = (ContextPartKind::Wisdom, format!("{show} WISDOM.md"));
        add_part(parts, ContextPart { kind, head, lines, left_out: 0, command });
    }
    if let Some(text) = root.read_sanitized(&layout.index())? {
        let (lines, left_out) = context::index_lines(&text.text);
        let (kind, command) = (ContextPartKind::Memories, format!("{show} MEMORY.md"));
        add_part(
            parts,
            ContextPart { kind, head: heads.memories.to_owned(), lines, left_out, command },
        );
    }
    Ok(())
}

fn add_part(parts: &mut Vec<ContextPart>, part: ContextPart) {
    if !part.lines.is_empty() {
        parts.push(part);
    }
}

fn add_summary_parts(
    root: &MemoryRoot,
    grain: Grain,
    today: NaiveDate,
    summary_parts: &[SummaryPart],
    cite: bool,
    parts: &mut Vec<ContextPart>,
) -> CommandResult<()> {
    let Some((period, text)) = newest_summary(root, grain, today)? else { return Ok(()) };
    for &SummaryPart { kind, head, sections } in summary_parts {
        let sections: Vec<&str> = sections.iter().map(|it| it.title()).collect();
        let (lines, left_out) = context::section_bullets(&text, &sections, cite);
        let head = format!("{head} {period}");
        let command = format!("memoird show {period}");
        add_part(parts, ContextPart { kind, head, lines, left_out, command });
    }
    Ok(())
}

/// Returns the newest summary of a tier, sanitized.
///
/// Tries the last weeks or months by name first, because listing the folder takes longer every year.
fn newest_summary(
    root: &MemoryRoot,
    grain: Grain,
    today: NaiveDate,
) -> CommandResult<Option<(Period, FramedText)>> {
    const TRIED_BY_NAME: usize = 8;
    let layout = root.vault.layout();
    // Skips summaries of the future, which a wrong clock may have written.
    let newest = Period::containing(grain, today);
    let before = |it: &Period| it.first().pred_opt().map(|day| Period::containing(grain, day));
    for period in std::iter::successors(Some(newest), before).take(TRIED_BY_NAME) {
        if let Some(text) = root.read_sanitized(&layout.summary(period))? {
            return Ok(Some((period, text)));
        }
    }
    let (paths, _) = root.vault.files_below(&layout.summary_dir(grain), FILES_MAX);
    let period = |path: &String| {
        let name = path.rsplit('/').next()?.strip_suffix(".md")?;
        name.parse::<Period>().ok().filter(|it| it.grain() == grain && layout.summary(*it) == *path)
    };
    let Some(period) = paths.iter().filter_map(period).max() else { return Ok(None) };
    Ok(root.read_sanitized(&layout.summary(period))?.map(|week| (period, week)))
}

/// Adds the last sessions, the newest first: the current week has no summary yet.
fn add_last_sessions(
    root: &MemoryRoot,
    today: NaiveDate,
    parts: &mut Vec<ContextPart>,
) -> CommandResult<()> {
    let part = ContextPart {
        kind: ContextPartKind::Sessions,
        head: "Last sessions".to_owned(),
        lines: last_session_lines(root, today)?,
        left_out: 0,
        command: "memoird session list; memoird session show ID".to_owned(),
    };
    add_part(parts, part);
    Ok(())
}

/// Adds the last `count` logs, oldest first.
fn add_last_logs(
    root: &MemoryRoot,
    count: usize,
    parts: &mut Vec<ContextPart>,
) -> CommandResult<()> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
    let stem = |path: &String| {
        layout.stem_at(path).filter(|_| layout.kind_of(path) == Some(FileKind::Log))
    };
    let mut logs: Vec<_> = paths.into_iter().filter_map(|it| Some((stem(&it)?, it))).collect();
    logs.sort();
    for (stem, path) in logs.drain(logs.len().saturating_sub(count)..) {
        let Some(FramedText { text, .. }) = root.read_sanitized(&path)? else { continue };
        let body = crate::memory::frontmatter::split(&text).body(&text).to_owned();
        // A comment is seen by nobody who reads the log as it is shown, so no agent acts on it.
        let kinds = markdown::classify_lines(body.lines());
        let shown = body.lines().zip(kinds).filter(|(_, it)| *it != LineKind::Comment);
        let lines = shown.map(|(line, kind)| match kind {
            LineKind::AfterComment { text_at } => &line[text_at..],
            _ => line,
        });
        let lines = lines.map(strip_inline_comments);
        let lines = lines.filter(|it| !it.trim().is_empty() && !it.starts_with("# ")).collect();
        let (head, command) = (format!("Log {stem}"), format!("memoird show {stem}"));
        let kind = ContextPartKind::Log;
        add_part(parts, ContextPart { kind, head, lines, left_out: 0, command });
    }
    Ok(())
}

/// Removes the HTML comments within a line; one that is not closed hides the rest of it.
fn strip_inline_comments(line: &str) -> String {
    let mut shown = String::new();
    let mut rest = line;
    while let Some((before, comment)) = rest.split_once("<!--") {
        shown.push_str(before);
        rest = comment.split_once("-->").map_or("", |it| it.1);
    }
    shown + rest
}

/// Adds the state of the git repository of the current folder. Quarantines suspicious lines, because
/// anybody may have written its commits.
fn add_git(call: &Invocation, root: &MemoryRoot, parts: &mut Vec<ContextPart>) {
    let lines = git_snapshot::snapshot_lines(&call.environment.cwd);
    let lines = lines.into_iter().map(|it| {
        if quarantine::concerns(&it, TextOrigin::External).is_empty() {
            root.rules.mask_secrets(&it).into_owned()
        } else {
            quarantine::PLACEHOLDER.to_owned()
        }
    });
    let part = ContextPart {
        kind: ContextPartKind::Git,
        head: "Git".to_owned(),
        lines: lines.collect(),
        left_out: 0,
        command: "git status; git log".to_owned(),
    };
    add_part(parts, part);
}
