//! `memoird completions`: a completion script for a shell.
//!
//! The script asks the program for the words that may come next, so that it also completes what is in the memory
//! folder: periods, memories, runs.

use std::{collections::BTreeMap, ffi::OsStr, path::PathBuf, process::ExitCode};

use clap_complete::{
    CompletionCandidate,
    engine::{ArgValueCompleter, PathCompleter, ValueCompleter},
    env::{CompleteEnv, Shells},
};

use super::{GlobalArgs, examples::change_verb, ui::Ui};
use crate::{
    memory::period::{Grain, Period},
    operations::{
        error::{CommandError, CommandResult},
        history::HistoryReader,
        review::queue::{self, ReviewEntry},
        workspace::{Invocation, MemoryRoot},
    },
    store::{db::lineage::jobs::RunRow, fs::layout::FileKind},
};

/// The environment variable by which a script asks for words.
const VARIABLE: &str = "MEMOIRD_COMPLETE";

/// Zsh loads a script in its `fpath` at the first call, which the script has to answer, too.
const ZSH_FIRST_CALL: &str = r#"
if [ "$funcstack[1]" = "_memoird" ]; then
    _clap_dynamic_completer_memoird "$@"
fi
"#;

/// Print a completion script for a shell
///
/// The script also completes periods, files, memories, runs and review ids of the memory folder. It calls `memoird` for
/// that, so load it again after an upgrade: `source <(memoird completions bash)`.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionsArgs {
    /// The shell to print the script for
    #[arg(value_enum)]
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &CompletionsArgs, ui: &Ui) -> CommandResult {
    let name = args.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells
        .completer(&name)
        .ok_or_else(|| CommandError::usage(format!("there is no completion script for {name}")))?;
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "memoird", "memoird", "memoird", &mut script)
        .map_err(CommandError::cannot_write)?;
    if args.shell == clap_complete::Shell::Zsh {
        script.extend_from_slice(ZSH_FIRST_CALL.as_bytes());
    }
    ui.bytes(&script);
    Ok(ExitCode::SUCCESS)
}

/// Prints the words that may come next, if a completion script asks for them; returns whether it did.
pub(super) fn answer_script() -> bool {
    // Each script puts the line to complete behind two dashes.
    if std::env::var_os(VARIABLE).is_none() || !std::env::args_os().any(|it| it == "--") {
        return false;
    }
    let here = std::env::current_dir().ok();
    let answer = CompleteEnv::with_factory(command).var(VARIABLE);
    // Whatever is printed besides words would be offered as one.
    answer.try_complete(std::env::args_os(), here.as_deref()).unwrap_or(true)
}

/// What the values of an argument are.
#[derive(Clone, Copy)]
enum ValueKind {
    /// A configured memory folder, or any other.
    Root,
    /// A week or month with logs.
    Period,
    /// A period, a memory, or another file that `memoird show` takes.
    File,
    /// The number of a run.
    Run,
    /// What waits for a review.
    Waiting,
    /// What waits for a review, or was reviewed.
    Reviewed,
}

/// The arguments with values of the memory folder: verb and argument.
const COMPLETED: [(&str, &str, ValueKind); 17] = [
    ("show", "file", ValueKind::File),
    ("trace", "target", ValueKind::File),
    ("correct", "target", ValueKind::File),
    ("history", "file", ValueKind::File),
    ("blame", "file", ValueKind::File),
    ("diff", "file", ValueKind::File),
    ("forget", "what", ValueKind::File),
    ("coverage", "period", ValueKind::Period),
    ("compact", "period", ValueKind::Period),
    ("compact", "explain", ValueKind::Period),
    ("search", "since", ValueKind::Period),
    ("search", "until", ValueKind::Period),
    ("undo", "run", ValueKind::Run),
    ("review accept", "ids", ValueKind::Waiting),
    ("review refuse", "ids", ValueKind::Waiting),
    ("review edit", "id", ValueKind::Waiting),
    ("review reopen", "ids", ValueKind::Reviewed),
];

/// Returns the command line whose arguments complete values of the memory folder.
fn command() -> clap::Command {
    let root = |it: clap::Arg| it.add(ArgValueCompleter::new(ValueKind::Root));
    let command = super::clap_command().mut_arg("root", root);
    COMPLETED.into_iter().fold(command, |command, (verb, name, kind)| {
        // `mut_arg` would move a positional argument behind the others.
        let with_values = |arg: clap::Arg| {
            if arg.get_id() == name { arg.add(ArgValueCompleter::new(kind)) } else { arg }
        };
        change_verb(command, verb, &|it| it.mut_args(with_values))
    })
}

impl ValueCompleter for ValueKind {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        // There is nobody to tell why there are no words.
        let mut found = self.values(&current.to_string_lossy()).unwrap_or_default();
        let typed = current.to_string_lossy();
        found.retain(|it| it.get_value().to_string_lossy().starts_with(&*typed));
        if matches!(self, Self::Root) {
            found.extend(PathCompleter::dir().complete(current));
        }
        found
    }
}

impl ValueKind {
    /// Returns the values, the newest first.
    fn values(self, typed: &str) -> CommandResult<Vec<CompletionCandidate>> {
        let global = global_options();
        let call = Invocation::load(&global)?;
        if matches!(self, Self::Root) {
            let roots = call.config.roots.iter();
            return Ok(roots.map(|it| CompletionCandidate::new(&it.path)).collect());
        }
        let root = call.selected_root(&global)?;
        match self {
            Self::Root => Ok(Vec::new()),
            Self::Period => Ok(periods(&root)),
            Self::File => Ok(files(&root, typed)),
            Self::Run => runs(&call, &root),
            Self::Waiting => review_ids(&root, false),
            Self::Reviewed => review_ids(&root, true),
        }
    }
}

/// Returns the options of the line so far that select a memory folder.
fn global_options() -> GlobalArgs {
    let mut args = std::env::args_os().skip_while(|it| it != "--").skip(1);
    let mut values: BTreeMap<&str, PathBuf> = BTreeMap::new();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        for option in ["--root", "--config"] {
            match text.strip_prefix(option) {
                Some("") => values.extend(args.next().map(|it| (option, it.into()))),
                Some(value) if value.starts_with('=') => {
                    values.insert(option, value[1..].into());
                }
                _ => {}
            }
        }
    }
    GlobalArgs {
        root: values.remove("--root"),
        config: values.remove("--config"),
        ..GlobalArgs::default()
    }
}

/// Returns the files below the memory folder with their kinds.
fn known_files(root: &MemoryRoot) -> Vec<(FileKind, String)> {
    /// After as many files the folder is not read on: the answer has to come at once.
    const FILES_MAX: usize = 20_000;
    let layout = root.vault.layout();
    let (paths, _) = root.vault.files_below(layout.memory_dir(), FILES_MAX);
    paths.into_iter().filter_map(|it| Some((layout.kind_of(&it)?, it))).collect()
}

/// Returns the name of a file without its folder and ending.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".md").unwrap_or(name)
}

/// Returns the weeks and months of the logs.
fn periods(root: &MemoryRoot) -> Vec<CompletionCandidate> {
    let layout = root.vault.layout();
    let mut found: BTreeMap<Period, &str> = BTreeMap::new();
    for (kind, path) in known_files(root) {
        let stem = layout.stem_at(&path).filter(|_| kind == FileKind::Log);
        let Some(week) = stem.map(|it| Period::containing(Grain::Week, it.date())) else {
            continue;
        };
        found.insert(week, "a week");
        found.extend(week.parent().map(|it| (it, "a month")));
    }
    found.into_iter().rev().map(|(it, help)| candidate(it.to_string(), help.to_owned())).collect()
}

/// Returns what `memoird show` takes. The days of a month are listed once it is typed: there are too many.
fn files(root: &MemoryRoot, typed: &str) -> Vec<CompletionCandidate> {
    const MONTH: usize = "2026-04".len();
    let described = |kind: FileKind| match kind {
        FileKind::Weekly => Some("a week"),
        FileKind::Monthly => Some("a month"),
        FileKind::Memory => Some("a memory"),
        FileKind::Log if typed.len() >= MONTH => Some("a log"),
        _ => None,
    };
    let mut found = vec![candidate("WISDOM.md".to_owned(), "what lasts".to_owned())];
    let known = known_files(root);
    let named = known.iter().rev().filter_map(|(kind, path)| {
        Some(candidate(stem(path).to_owned(), described(*kind)?.to_owned()))
    });
    found.extend(named);
    found
}

/// Returns the last runs.
fn runs(call: &Invocation, root: &MemoryRoot) -> CommandResult<Vec<CompletionCandidate>> {
    const RUNS_MAX: u32 = 50;
    let past = HistoryReader::open(call, root)?;
    let last = past.lineage().map(|it| it.last_runs(RUNS_MAX)).transpose()?.unwrap_or_default();
    let described = |it: &RunRow| {
        candidate(it.id.0.to_string(), format!("{}, {}", past.local_time(it.started), it.trigger))
    };
    Ok(last.iter().map(described).collect())
}

/// Returns the ids of what waits for a review, or of what was decided, with the reason or the decision.
fn review_ids(root: &MemoryRoot, is_decided: bool) -> CommandResult<Vec<CompletionCandidate>> {
    let entries = queue::entries(&queue::load_queue(root, is_decided)?).into_iter();
    let listed = entries.filter(|it| it.verdict.is_some() == is_decided);
    let described = |it: ReviewEntry| {
        let why = it.verdict.map_or_else(|| it.why.join(", "), str::to_owned);
        candidate(it.id, format!("{}: {why}", it.path))
    };
    Ok(listed.map(described).collect())
}

fn candidate(value: String, help: String) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_completed_argument_exists() {
        let command = command();
        command.clone().debug_assert();
        for (verb, name, _) in COMPLETED {
            let mut found = &command;
            for word in verb.split(' ') {
                found = found.find_subcommand(word).expect(verb);
            }
            let arg = found.get_arguments().find(|it| it.get_id() == name).expect(name);
            assert!(arg.get::<ArgValueCompleter>().is_some(), "{verb} {name}");
        }
    }
}
