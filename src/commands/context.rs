//! `memoird context`: prints what an agent should read at the start of a session.
//!
//! What takes longer or most agents load anyway (instruction files, git, a whole month, logs) is read only on request.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Value, json};

use super::{GlobalArgs, git_snapshot, instruction_files, ui::Ui};
use crate::{
    config::environment::Environment,
    memory::log::TextOrigin,
    operations::{
        context::{AddedParts, ComposeOptions, compose},
        error::CommandResult,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::quarantine,
    recall::context::{ContextBlock, ContextPart, ContextPartKind, HOOK_CHARS_MAX, SessionContext},
};

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
    /// Leave out what the block of WISDOM.md in the agent's own notes says (`wisdom_block` in memoird.yaml)
    #[arg(long)]
    beside_block: bool,
    #[command(flatten)]
    more: ExtraParts,
}

/// Optional parts, in addition to wisdom, memories, open items, and the decisions of the newest week.
#[derive(Debug, clap::Args)]
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

impl ExtraParts {
    /// Returns the parts that the options ask for.
    fn resolve(&self, call: &Invocation, root: &MemoryRoot, ui: &Ui) -> AddedParts {
        let mut added = AddedParts {
            month: self.all || self.month,
            week: self.all || self.week,
            logs: self.logs.or(self.all.then_some(LOGS_WITH_ALL)),
            ..AddedParts::default()
        };
        if self.all || self.instructions {
            let files = instruction_files::InstructionOptions {
                add_dirs: &self.add_dir,
                files: &self.files,
                include_outside: self.include_outside,
            };
            added.first =
                instruction_files::read_instructions(&call.environment, files, &root.rules, ui);
        }
        if self.all || self.git {
            added.last.extend(git_part(call, root));
        }
        added
    }
}

/// The JSON in which an agent's program expects the context from a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookAnswer {
    /// Of Claude Code, and of programs that read its hooks.
    Claude,
    Copilot,
    Cursor,
}

impl HookAnswer {
    /// Returns the form for an agent, by its name in hooks.
    pub(super) fn of_agent(name: &str) -> Self {
        match name {
            "copilot" => Self::Copilot,
            "cursor" => Self::Cursor,
            _ => Self::Claude,
        }
    }

    fn print(self, composed: &SessionContext) -> Value {
        let text = &composed.text;
        match self {
            Self::Claude => json!({ "hookSpecificOutput": {
                "hookEventName": "SessionStart", "additionalContext": text
            } }),
            Self::Copilot => json!({ "additionalContext": text }),
            Self::Cursor => json!({ "additional_context": text }),
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &ContextArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    #[cfg(feature = "fleet")]
    crate::operations::replica::refresh(&call, &root);
    root.require_memory_folder()?;
    let chars_max =
        if args.format == ContextFormat::ClaudeHook { HOOK_CHARS_MAX } else { usize::MAX };
    let cwd = &call.environment.cwd;
    let ContextArgs { budget, cite, beside_block, .. } = *args;
    let options = ComposeOptions { budget, chars_max, cite, beside_block, cwd };
    let (composed, _) = compose(&call, &root, &options, args.more.resolve(&call, &root, ui))?;
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
        ui.json(&HookAnswer::Claude.print(&composed));
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
    answer: HookAnswer,
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
    let chars_max = HOOK_CHARS_MAX;
    let options = ComposeOptions { budget: None, chars_max, cite: false, beside_block: false, cwd };
    let (composed, _) = compose(&call, &root, &options, AddedParts::default())?;
    if composed.parts.iter().any(|it| it.lines > 0) {
        ui.json(&answer.print(&composed));
    }
    Ok(())
}

/// Returns the state of the git repository of the current folder. Quarantines suspicious lines, because
/// anybody may have written its commits.
fn git_part(call: &Invocation, root: &MemoryRoot) -> Option<ContextPart> {
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
        blocks: ContextBlock::of_lines(lines.collect()),
        left_out: 0,
        command: "git status; git log".to_owned(),
    };
    Some(part).filter(|it| !it.blocks.is_empty())
}
