//! `memoird context`: what an agent should read at the start of a session, within a budget.
//!
//! Reads a handful of files and no database, so that a session starts without a wait. Each file goes
//! through the door of what may be seen.

use std::{path::Path, process::ExitCode};

use serde::Serialize;

use super::{
    GlobalArgs,
    context::{Call, Root},
    error::CommandError,
    ui::Ui,
};
use crate::{
    config::{root::RootKind, surroundings::Surroundings},
    memory::{
        item::Section,
        period::{Grain, Period},
    },
    recall::context::{self, Context, HOOK_CHARS_MAX, Part},
};

/// A folder with more files of weeks than this is looked at no further.
const WEEKS_MAX: usize = 10_000;

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
    let composed = compose(&call, &root, args.budget, chars_max, args.cite)?;
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
    let composed = compose(&call, &root, None, HOOK_CHARS_MAX, false)?;
    if composed.parts.iter().any(|it| it.lines > 0) {
        ui.json(&hook_output(&composed));
    }
    Ok(())
}

fn hook_output(composed: &Context) -> HookOutput<'_> {
    HookOutput {
        hook_specific_output: Additional {
            hook_event_name: "SessionStart",
            additional_context: &composed.text,
        },
    }
}

fn compose(
    call: &Call,
    root: &Root,
    budget: Option<usize>,
    chars_max: usize,
    cites: bool,
) -> Result<Context, CommandError> {
    let mut parts = Vec::new();
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
    if let Some((week, text)) = latest_week(root)? {
        for (name, head, section) in [
            ("decisions", "Decisions", Section::Decisions),
            ("open", "Blockers and open items", Section::BlockersAndOpenItems),
        ] {
            let lines = context::bullets(&text, &[section.title()], cites);
            if !lines.is_empty() {
                let command = format!("memoird show {week}");
                parts.push(Part { name, head: format!("{head} of {week}"), lines, command });
            }
        }
    }
    let now = call.now.with_timezone(&root.settings.zone.name.0);
    let today = now.format("%Y-%m-%d, %A").to_string();
    let configured = root.settings.settings.context.budget_tokens;
    let budget = budget.unwrap_or(usize::try_from(configured).unwrap_or(usize::MAX));
    Ok(context::compose(&parts, &today, budget, chars_max))
}

/// Adds wisdom and the index of memories of a root.
fn lasting(
    root: &Root,
    parts: &mut Vec<Part>,
    heads: [&str; 2],
    show: &str,
) -> Result<(), CommandError> {
    let layout = root.vault.layout();
    let files = [
        ("wisdom", layout.wisdom(), "WISDOM.md", context::wisdom_lines as fn(&str) -> Vec<String>),
        ("memories", layout.index(), "MEMORY.md", context::index_lines),
    ];
    for ((name, path, file, read), head) in files.into_iter().zip(heads) {
        let Some(found) = root.vault.read(&path)? else { continue };
        let lines = read(&root.hand(&path, &found.bytes).text);
        if !lines.is_empty() {
            let command = format!("{show} {file}");
            parts.push(Part { name, head: head.to_owned(), lines, command });
        }
    }
    Ok(())
}

/// Returns the newest weekly file, as it may be seen.
fn latest_week(root: &Root) -> Result<Option<(Period, String)>, CommandError> {
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(&layout.summary_dir(Grain::Week), WEEKS_MAX);
    let week = |path: &String| {
        let name = path.rsplit('/').next()?.strip_suffix(".md")?;
        name.parse::<Period>()
            .ok()
            .filter(|it| it.grain() == Grain::Week && layout.summary(*it) == *path)
    };
    let Some(week) = paths.iter().filter_map(week).max() else { return Ok(None) };
    let path = layout.summary(week);
    let Some(found) = root.vault.read(&path)? else { return Ok(None) };
    Ok(Some((week, root.hand(&path, &found.bytes).text)))
}
