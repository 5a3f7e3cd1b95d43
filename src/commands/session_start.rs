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
    context::{Call, Root},
    error::CommandError,
    git_snapshot, instructions,
    ui::Ui,
};
use crate::{
    config::{root::RootKind, surroundings::Surroundings},
    memory::{
        address::Stem,
        item::Section,
        log::Origin,
        period::{Grain, Period},
    },
    privacy::hold,
    recall::context::{self, Context, HOOK_CHARS_MAX, Part, PartKind},
    session::record::Header,
    store::layout::FileKind,
};

/// A folder with more files than this is looked at no further.
const FILES_MAX: usize = 20_000;
/// So many logs `--all` reads.
const LOGS_OF_ALL: usize = 3;
/// Stands in the place of a line that looks like an attack.
const HELD: &str = "[held for review]";

/// How it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
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
pub(super) struct Args {
    /// At most so many tokens [default: what the configuration says]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// How to print it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
    /// Say what went in and what it weighs, instead of printing it
    #[arg(long)]
    explain: bool,
    /// Show the lines that bullets rest on, instead of their days
    #[arg(long)]
    cite: bool,
    #[command(flatten)]
    more: More,
}

/// What is read beyond what lasts and the decisions and open items of the newest week.
#[derive(Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
struct More {
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
    hook_specific_output: Additional<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Additional<'a> {
    hook_event_name: &'static str,
    additional_context: &'a str,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    root.refuse_stranger()?;
    let chars_max = if args.format == Format::ClaudeHook { HOOK_CHARS_MAX } else { usize::MAX };
    let asked = Asked { budget: args.budget, chars_max, cites: args.cite };
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
    } else if ui.is_json() || args.format == Format::Json {
        ui.json(&composed);
    } else if args.format == Format::ClaudeHook {
        ui.json(&hook_output(&composed));
    } else {
        ui.file(composed.text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

/// Answers the hook of a session that begins in `cwd`; where no memory is for it, with nothing.
pub(super) fn answer_hook(
    global: &GlobalArgs,
    around: &Surroundings,
    cwd: &Path,
    ui: &Ui,
) -> Result<(), CommandError> {
    let call = Call::read(global)?;
    let path = match &global.root {
        Some(_) => Some(call.config.choose(global.root.as_deref(), around)?),
        None => call.config.choose_for(cwd, around),
    };
    let Some(path) = path else { return Ok(()) };
    let root = call.open(&path)?;
    root.refuse_stranger()?;
    let asked = Asked { budget: None, chars_max: HOOK_CHARS_MAX, cites: false };
    let composed = compose(&call, &root, &asked, &More::default(), ui)?;
    if composed.parts.iter().any(|it| it.lines > 0) {
        ui.json(&hook_output(&composed));
    }
    Ok(())
}

/// Composes what an agent reads first, as the verb does without options but a budget.
pub(crate) fn composed(
    call: &Call,
    root: &Root,
    budget: Option<usize>,
    ui: &Ui,
) -> Result<Context, CommandError> {
    root.refuse_stranger()?;
    let asked = Asked { budget, chars_max: usize::MAX, cites: false };
    compose(call, root, &asked, &More::default(), ui)
}

fn hook_output(composed: &Context) -> HookOutput<'_> {
    HookOutput {
        hook_specific_output: Additional {
            hook_event_name: "SessionStart",
            additional_context: &composed.text,
        },
    }
}

/// How it is to be composed.
struct Asked {
    budget: Option<usize>,
    chars_max: usize,
    cites: bool,
}

fn compose(
    call: &Call,
    root: &Root,
    asked: &Asked,
    more: &More,
    ui: &Ui,
) -> Result<Context, CommandError> {
    let mut parts = Vec::new();
    if more.all || more.instructions {
        let files = instructions::Asked {
            add_dirs: &more.add_dir,
            files: &more.files,
            outside: more.include_outside,
        };
        parts = instructions::parts(&call.around, files, &root.rules, ui);
    }
    // What is about the person holds in every project.
    for known in &call.config.roots {
        if known.path == *root.vault.layout().root() {
            continue;
        }
        // A root that cannot be opened is told by `memoird status`, and is none of this one's concern.
        let other = call.open(&known.path).ok().filter(|it| it.settings.kind == RootKind::User);
        if let Some(other) = other {
            let of = format!("memoird --root '{}' show", known.path.display());
            lasting(&other, &mut parts, ["About the person", "Memories about the person"], &of)?;
        }
    }
    lasting(root, &mut parts, ["What lasts (WISDOM.md)", "Memories (MEMORY.md)"], "memoird show")?;
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let all = |it: &[Section]| it.iter().map(|it| it.title()).collect::<Vec<_>>();
    if more.all || more.month {
        let part = (PartKind::Month, "Month", all(&MONTH));
        summary_parts(root, (Grain::Month, now.date_naive()), &[part], asked.cites, &mut parts)?;
    }
    let mut of_week = vec![
        (PartKind::Decisions, "Decisions of", all(&[Section::Decisions])),
        (PartKind::Open, "Blockers and open items of", all(&[Section::BlockersAndOpenItems])),
    ];
    if more.all || more.week {
        let rest = all(&[Section::KeyOutcomes, Section::Context]);
        of_week.push((PartKind::Week, "Outcomes and context of", rest));
    }
    summary_parts(root, (Grain::Week, now.date_naive()), &of_week, asked.cites, &mut parts)?;
    last_sessions(root, now.date_naive(), &mut parts)?;
    if let Some(count) = more.logs.or(more.all.then_some(LOGS_OF_ALL)) {
        last_logs(root, count, &mut parts)?;
    }
    if more.all || more.git {
        git(call, root, &mut parts);
    }
    let today = now.format("%Y-%m-%d, %A").to_string();
    let configured = root.settings.settings.context.budget_tokens;
    let budget = asked.budget.unwrap_or(usize::try_from(configured).unwrap_or(usize::MAX));
    Ok(context::compose(&parts, &today, budget, asked.chars_max))
}

/// The sections of a month.
const MONTH: [Section; 4] =
    [Section::Themes, Section::Milestones, Section::Trajectory, Section::CarriedForward];

/// Adds wisdom and the index of memories of a root.
fn lasting(
    root: &Root,
    parts: &mut Vec<Part>,
    [wisdom, memories]: [&str; 2],
    show: &str,
) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let path = layout.wisdom();
    if let Some(found) = root.vault.read(&path)? {
        let lines = context::wisdom_lines(&root.hand(&path, &found.bytes).text);
        let command = format!("{show} WISDOM.md");
        add(parts, PartKind::Wisdom, wisdom, (lines, 0), command);
    }
    let path = layout.index();
    if let Some(found) = root.vault.read(&path)? {
        let lines = context::index_lines(&root.hand(&path, &found.bytes).text);
        add(parts, PartKind::Memories, memories, lines, format!("{show} MEMORY.md"));
    }
    Ok(())
}

/// Adds a part that says something.
fn add(
    parts: &mut Vec<Part>,
    kind: PartKind,
    head: &str,
    (lines, left_out): (Vec<String>, usize),
    command: String,
) {
    if !lines.is_empty() {
        parts.push(Part { kind, head: head.to_owned(), lines, left_out, command });
    }
}

/// Adds sections of the newest file of a tier.
fn summary_parts(
    root: &Root,
    (grain, today): (Grain, NaiveDate),
    wanted: &[(PartKind, &str, Vec<&str>)],
    cites: bool,
    parts: &mut Vec<Part>,
) -> Result<(), CommandError> {
    let Some((period, text)) = latest(root, grain, today)? else { return Ok(()) };
    for (kind, head, sections) in wanted {
        let lines = context::bullets(&text, sections, cites);
        let command = format!("memoird show {period}");
        add(parts, *kind, &format!("{head} {period}"), (lines, 0), command);
    }
    Ok(())
}

/// Returns the newest file of a tier, as it may be seen.
///
/// It is mostly that of the last weeks or months, so that these are asked for by name: to look at all of
/// them takes longer with each year.
fn latest(
    root: &Root,
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
            return Ok(Some((period, root.hand(&path, &found.bytes).text)));
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
    Ok(Some((period, root.hand(&path, &found.bytes).text)))
}

/// Adds what the last sessions were about, the oldest of them first: no week tells of them while it runs.
fn last_sessions(root: &Root, today: NaiveDate, parts: &mut Vec<Part>) -> Result<(), CommandError> {
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
        let text = root.hand(&path, &found.bytes).text;
        // What is no record is passed over, as everywhere.
        let Some(about) = Header::parse(&text).and_then(|it| it.description) else { continue };
        lines.push(format!("- {}: {} ({stem})", stem.date(), about.trim()));
    }
    let command = "memoird session list; memoird session show ID".to_owned();
    add(parts, PartKind::Sessions, "Last sessions", (lines, 0), command);
    Ok(())
}

/// Adds the logs of the last days on which there is one, the oldest of them first.
fn last_logs(root: &Root, count: usize, parts: &mut Vec<Part>) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
    let stem = |path: &String| {
        layout.stem_at(path).filter(|_| layout.kind_of(path) == Some(FileKind::Log))
    };
    let mut logs: Vec<_> = paths.into_iter().filter_map(|it| Some((stem(&it)?, it))).collect();
    logs.sort();
    for (stem, path) in logs.drain(logs.len().saturating_sub(count)..) {
        let Some(found) = root.vault.read(&path)? else { continue };
        let text = root.hand(&path, &found.bytes).text;
        let body = crate::memory::frontmatter::split(&text).body(&text).to_owned();
        let lines = body.lines().filter(|it| !it.trim().is_empty() && !it.starts_with("# "));
        let lines = lines.map(str::to_owned).collect();
        let command = format!("memoird show {stem}");
        add(parts, PartKind::Log, &format!("Log {stem}"), (lines, 0), command);
    }
    Ok(())
}

/// Adds where the repository around the working folder stands. Who writes its commits may be anybody.
fn git(call: &Call, root: &Root, parts: &mut Vec<Part>) {
    let lines = git_snapshot::lines(&call.around.cwd);
    let seen = lines.into_iter().map(|it| {
        if hold::concerns(&it, Origin::External).is_empty() {
            root.rules.shown(&it).into_owned()
        } else {
            HELD.to_owned()
        }
    });
    add(parts, PartKind::Git, "Git", (seen.collect(), 0), "git status; git log".to_owned());
}
