//! `memoird context`: what an agent should read at the start of a session, within a budget.
//!
//! Reads a handful of files and no database, so that a session starts without a wait. Each file goes
//! through the door of what may be seen. What takes longer or is known to most agents already (instruction
//! files, git, a whole month, logs) is only read where it is asked for.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    error::CommandError,
    git_snapshot, instruction_files,
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    config::{environment::Environment, root::RootKind},
    memory::{
        address::Stem,
        item::SummarySection,
        log::TextOrigin,
        period::{Grain, Period},
    },
    privacy::quarantine,
    recall::context::{self, ContextPart, ContextPartKind, HOOK_CHARS_MAX, SessionContext},
    session::record::RecordHeader,
    store::fs::layout::FileKind,
};

/// A folder with more files than this is looked at no further.
const FILES_MAX: usize = 20_000;
/// So many logs `--all` reads.
const LOGS_WITH_ALL: usize = 3;

/// How it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum ContextFormat {
    /// As text.
    #[default]
    Text,
    /// As one JSON document.
    Json,
    /// As Claude Code takes it from a hook.
    ClaudeHook,
}

/// Print what an agent should read at the start of a session
#[derive(Debug, clap::Args)]
pub(super) struct ContextArgs {
    /// At most so many tokens [default: what the configuration says]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: ContextFormat,
    /// Say what went in and what it weighs, instead of printing it
    #[arg(long)]
    explain: bool,
    /// Show the lines that bullets rest on, instead of their days
    #[arg(long)]
    cite: bool,
    #[command(flatten)]
    more: ExtraParts,
}

/// What is read beyond what lasts and the decisions and open items of the newest week.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct ExtraParts {
    /// The instruction files that agents read too (CLAUDE.md, AGENTS.md, rules), with what they include
    #[arg(long)]
    instructions: bool,
    /// With --instructions: read those of this folder too
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,
    /// With --instructions: a file at hand; rules for certain files go in where it is one of them
    #[arg(long = "for", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// With --instructions: files of the project may include others from outside of it
    #[arg(long)]
    include_outside: bool,
    /// The newest month
    #[arg(long)]
    month: bool,
    /// All of the newest week
    #[arg(long)]
    week: bool,
    /// The last N daily logs
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "3")]
    logs: Option<usize>,
    /// Where the git repository around the working folder stands
    #[arg(long)]
    git: bool,
    /// All of these
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

pub(super) fn run(
    global: &GlobalArgs,
    args: &ContextArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    root.require_memory_folder()?;
    let chars_max =
        if args.format == ContextFormat::ClaudeHook { HOOK_CHARS_MAX } else { usize::MAX };
    let asked = ComposeOptions { budget: args.budget, chars_max, cite: args.cite };
    let composed = compose(&call, &root, &asked, &args.more, ui)?;
    if args.explain && !ui.is_json() {
        let rows: Vec<Vec<String>> = composed
            .parts
            .iter()
            .map(|it| {
                let numbers = [it.tokens, it.lines, it.left_out].map(|it| it.to_string());
                [vec![it.name.to_owned()], numbers.to_vec(), vec![it.command.clone()]].concat()
            })
            .collect();
        ui.table(&["part", "tokens", "lines", "left out", "all of it"], &rows);
        ui.note(format!("about {} tokens in all", composed.tokens));
    } else if ui.is_json() || args.format == ContextFormat::Json {
        ui.json(&composed);
    } else if args.format == ContextFormat::ClaudeHook {
        ui.json(&hook_output(&composed));
    } else {
        ui.bytes(composed.text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

/// Answers the hook of a session that begins in `cwd`; where no memory is for it, with nothing.
pub(super) fn answer_hook(
    global: &GlobalArgs,
    around: &Environment,
    cwd: &Path,
    ui: &Ui,
) -> Result<(), CommandError> {
    let call = Invocation::load(global)?;
    let path = match &global.root {
        Some(_) => Some(call.config.select_root(global.root.as_deref(), around)?),
        None => call.config.root_for_folder(cwd, around),
    };
    let Some(path) = path else { return Ok(()) };
    let root = call.open_root(&path)?;
    root.require_memory_folder()?;
    let asked = ComposeOptions { budget: None, chars_max: HOOK_CHARS_MAX, cite: false };
    let composed = compose(&call, &root, &asked, &ExtraParts::default(), ui)?;
    if composed.parts.iter().any(|it| it.lines > 0) {
        ui.json(&hook_output(&composed));
    }
    Ok(())
}

/// Composes what an agent reads first, as the verb does without options but a budget.
pub(crate) fn compose_default(
    call: &Invocation,
    root: &MemoryRoot,
    budget: Option<usize>,
    ui: &Ui,
) -> Result<SessionContext, CommandError> {
    root.require_memory_folder()?;
    let asked = ComposeOptions { budget, chars_max: usize::MAX, cite: false };
    compose(call, root, &asked, &ExtraParts::default(), ui)
}

fn hook_output(composed: &SessionContext) -> HookOutput<'_> {
    HookOutput {
        hook_specific_output: HookContext {
            hook_event_name: "SessionStart",
            additional_context: &composed.text,
        },
    }
}

/// How it is to be composed.
struct ComposeOptions {
    budget: Option<usize>,
    chars_max: usize,
    cite: bool,
}

fn compose(
    call: &Invocation,
    root: &MemoryRoot,
    asked: &ComposeOptions,
    more: &ExtraParts,
    ui: &Ui,
) -> Result<SessionContext, CommandError> {
    let mut parts = Vec::new();
    if more.all || more.instructions {
        let files = instruction_files::InstructionOptions {
            add_dirs: &more.add_dir,
            files: &more.files,
            include_outside: more.include_outside,
        };
        parts = instruction_files::read_instructions(&call.environment, files, &root.rules, ui);
    }
    // What is about the person holds in every project.
    for known in &call.config.roots {
        if known.path == *root.vault.layout().root() {
            continue;
        }
        // A root that cannot be opened is told by `memoird status`, and is none of this one's concern.
        let other =
            call.open_root(&known.path).ok().filter(|it| it.settings.kind == RootKind::User);
        if let Some(other) = other {
            let of = format!("memoird --root '{}' show", known.path.display());
            add_lasting_memory(
                &other,
                &mut parts,
                ["About the person", "Memories about the person"],
                &of,
            )?;
        }
    }
    add_lasting_memory(
        root,
        &mut parts,
        ["What lasts (WISDOM.md)", "Memories (MEMORY.md)"],
        "memoird show",
    )?;
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let all = |it: &[SummarySection]| it.iter().map(|it| it.title()).collect::<Vec<_>>();
    if more.all || more.month {
        let part = (ContextPartKind::Month, "Month", all(&MONTH_SECTIONS));
        add_summary_parts(root, (Grain::Month, now.date_naive()), &[part], asked.cite, &mut parts)?;
    }
    let mut of_week = vec![
        (ContextPartKind::Decisions, "Decisions of", all(&[SummarySection::Decisions])),
        (
            ContextPartKind::Open,
            "Blockers and open items of",
            all(&[SummarySection::BlockersAndOpenItems]),
        ),
    ];
    if more.all || more.week {
        let rest = all(&[SummarySection::KeyOutcomes, SummarySection::Context]);
        of_week.push((ContextPartKind::Week, "Outcomes and context of", rest));
    }
    add_summary_parts(root, (Grain::Week, now.date_naive()), &of_week, asked.cite, &mut parts)?;
    add_last_sessions(root, now.date_naive(), &mut parts)?;
    if let Some(count) = more.logs.or(more.all.then_some(LOGS_WITH_ALL)) {
        add_last_logs(root, count, &mut parts)?;
    }
    if more.all || more.git {
        add_git(call, root, &mut parts);
    }
    let today = now.format("%Y-%m-%d, %A").to_string();
    let configured = root.settings.settings.context.budget_tokens;
    let budget = asked.budget.unwrap_or(usize::try_from(configured).unwrap_or(usize::MAX));
    Ok(context::compose(&parts, &today, budget, asked.chars_max))
}

/// The sections of a month.
const MONTH_SECTIONS: [SummarySection; 4] = [
    SummarySection::Themes,
    SummarySection::Milestones,
    SummarySection::Trajectory,
    SummarySection::CarriedForward,
];

/// Adds wisdom and the index of memories of a root.
fn add_lasting_memory(
    root: &MemoryRoot,
    parts: &mut Vec<ContextPart>,
    [wisdom, memories]: [&str; 2],
    show: &str,
) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let path = layout.wisdom();
    if let Some(found) = root.vault.read(&path)? {
        let lines = context::wisdom_lines(&root.sanitized_file(&path, &found.bytes).text);
        let command = format!("{show} WISDOM.md");
        add_part(parts, ContextPartKind::Wisdom, wisdom, (lines, 0), command);
    }
    let path = layout.index();
    if let Some(found) = root.vault.read(&path)? {
        let lines = context::index_lines(&root.sanitized_file(&path, &found.bytes).text);
        add_part(parts, ContextPartKind::Memories, memories, lines, format!("{show} MEMORY.md"));
    }
    Ok(())
}

/// Adds a part that says something.
fn add_part(
    parts: &mut Vec<ContextPart>,
    kind: ContextPartKind,
    head: &str,
    (lines, left_out): (Vec<String>, usize),
    command: String,
) {
    if !lines.is_empty() {
        parts.push(ContextPart { kind, head: head.to_owned(), lines, left_out, command });
    }
}

/// Adds sections of the newest file of a tier.
fn add_summary_parts(
    root: &MemoryRoot,
    (grain, today): (Grain, NaiveDate),
    wanted: &[(ContextPartKind, &str, Vec<&str>)],
    cites: bool,
    parts: &mut Vec<ContextPart>,
) -> Result<(), CommandError> {
    let Some((period, text)) = newest_summary(root, grain, today)? else { return Ok(()) };
    for (kind, head, sections) in wanted {
        let lines = context::section_bullets(&text, sections, cites);
        let command = format!("memoird show {period}");
        add_part(parts, *kind, &format!("{head} {period}"), (lines, 0), command);
    }
    Ok(())
}

/// Returns the newest file of a tier, as it may be seen.
///
/// It is mostly that of the last weeks or months, so that these are asked for by name: to look at all of
/// them takes longer with each year.
fn newest_summary(
    root: &MemoryRoot,
    grain: Grain,
    today: NaiveDate,
) -> Result<Option<(Period, String)>, CommandError> {
    const ASKED_FOR: usize = 8;
    let layout = root.vault.layout();
    // A file of the future, which a wrong clock made, is no newer one.
    let newest = Period::containing(grain, today);
    let before = |it: &Period| it.first().pred_opt().map(|day| Period::containing(grain, day));
    for period in std::iter::successors(Some(newest), before).take(ASKED_FOR) {
        let path = layout.summary(period);
        if let Some(found) = root.vault.read(&path)? {
            return Ok(Some((period, root.sanitized_file(&path, &found.bytes).text)));
        }
    }
    let (paths, _) = root.vault.files_below(&layout.summary_dir(grain), FILES_MAX);
    let period = |path: &String| {
        let name = path.rsplit('/').next()?.strip_suffix(".md")?;
        name.parse::<Period>().ok().filter(|it| it.grain() == grain && layout.summary(*it) == *path)
    };
    let Some(period) = paths.iter().filter_map(period).max() else { return Ok(None) };
    let path = layout.summary(period);
    let Some(found) = root.vault.read(&path)? else { return Ok(None) };
    Ok(Some((period, root.sanitized_file(&path, &found.bytes).text)))
}

/// Adds what the last sessions were about, the oldest of them first: no week tells of them while it runs.
fn add_last_sessions(
    root: &MemoryRoot,
    today: NaiveDate,
    parts: &mut Vec<ContextPart>,
) -> Result<(), CommandError> {
    const SESSIONS: usize = 3;
    const DAYS: i64 = 14;
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(&layout.sessions_dir(), FILES_MAX);
    let ended = |path: &String| {
        let stem = layout.stem_at(path).filter(Stem::is_session)?;
        let days = (today - stem.date()).num_days();
        (0..=DAYS).contains(&days).then_some(stem)
    };
    let mut recent: Vec<_> = paths.into_iter().filter_map(|it| Some((ended(&it)?, it))).collect();
    recent.sort();
    let mut lines = Vec::new();
    for (stem, path) in recent.drain(recent.len().saturating_sub(SESSIONS)..) {
        let Some(found) = root.vault.read(&path)? else { continue };
        let text = root.sanitized_file(&path, &found.bytes).text;
        // What is no record is passed over, as everywhere.
        let Some(about) = RecordHeader::parse(&text).and_then(|it| it.description) else {
            continue;
        };
        lines.push(format!("- {}: {} ({stem})", stem.date(), about.trim()));
    }
    let command = "memoird session list; memoird session show ID".to_owned();
    add_part(parts, ContextPartKind::Sessions, "Last sessions", (lines, 0), command);
    Ok(())
}

/// Adds the logs of the last days on which there is one, the oldest of them first.
fn add_last_logs(
    root: &MemoryRoot,
    count: usize,
    parts: &mut Vec<ContextPart>,
) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
    let stem = |path: &String| {
        layout.stem_at(path).filter(|_| layout.kind_of(path) == Some(FileKind::Log))
    };
    let mut logs: Vec<_> = paths.into_iter().filter_map(|it| Some((stem(&it)?, it))).collect();
    logs.sort();
    for (stem, path) in logs.drain(logs.len().saturating_sub(count)..) {
        let Some(found) = root.vault.read(&path)? else { continue };
        let text = root.sanitized_file(&path, &found.bytes).text;
        let body = crate::memory::frontmatter::split(&text).body(&text).to_owned();
        let lines = body.lines().filter(|it| !it.trim().is_empty() && !it.starts_with("# "));
        let lines = lines.map(str::to_owned).collect();
        let command = format!("memoird show {stem}");
        add_part(parts, ContextPartKind::Log, &format!("Log {stem}"), (lines, 0), command);
    }
    Ok(())
}

/// Adds where the repository around the working folder stands. Who writes its commits may be anybody.
fn add_git(call: &Invocation, root: &MemoryRoot, parts: &mut Vec<ContextPart>) {
    let lines = git_snapshot::snapshot_lines(&call.environment.cwd);
    let seen = lines.into_iter().map(|it| {
        if quarantine::concerns(&it, TextOrigin::External).is_empty() {
            root.rules.mask_secrets(&it).into_owned()
        } else {
            quarantine::PLACEHOLDER.to_owned()
        }
    });
    add_part(
        parts,
        ContextPartKind::Git,
        "Git",
        (seen.collect(), 0),
        "git status; git log".to_owned(),
    );
}
