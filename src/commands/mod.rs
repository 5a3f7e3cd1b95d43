//! The command line: one file per verb.
//!
//! - [`ui`] is the only place that prints; `pager` shows what is long on a terminal, page by page. `error_report`
//!   turns failures into exit codes and hints, `examples` are what the help of each verb shows.
//! - `selected_root` opens the root that the global options select.
//! - Each verb has its arguments and `run`: it calls [`operations`](crate::operations) and shows what they return.
//!   No verb decides anything about memory itself.

pub mod ui;

mod blame;
#[cfg(feature = "fleet")]
mod bundle;
mod compact;
mod completions;
mod config;
mod context;
mod correct;
mod coverage;
mod demo;
mod diff;
mod doctor;
mod embed_lines;
mod error_report;
mod examples;
mod export;
mod forget;
mod git_snapshot;
mod history;
mod hooks;
mod import;
mod import_notes;
mod import_sources;
mod init;
mod instruction_files;
mod log;
mod logging;
mod man;
mod mcp;
mod memories;
mod model;
mod open;
mod pager;
mod process_hardening;
mod rebuild;
mod review;
mod run;
mod search;
mod secrets;
mod selected_root;
mod service;
mod session;
mod show;
mod status;
mod trace;
mod undo;
mod uninstall;
mod upgrade;
mod usage;
#[cfg(feature = "fleet")]
mod worker;

use std::{path::PathBuf, process::ExitCode};

use clap::{
    CommandFactory as _, FromArgMatches as _, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use self::ui::{ColorChoice, Ui};
use crate::{
    memory::period::Period,
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        page::PageProgram,
        workspace::Invocation,
    },
};

/// The `--help` page, with the verbs grouped by purpose; see [`help_template`].
const HELP_TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Everyday:
  init         Set up memory for agents or a folder
  log          Append an entry to today's log
  status       Show what is in the folder, what is due, and why
  compact      Run everything that is due now
  search       Find the log lines that answer a question
  trace        Trace a line to the log lines it comes from (alias: why)
  correct      Correct an item and everything derived from it
  review       Accept, refuse, or edit quarantined lines and proposed changes
  undo         Undo a run
  forget       Forget lines of logs: remove everything derived from them

Inspect:
  open         Show the memory on a local page in the browser
  demo         Show every stage on a sample journal
  context      Print what an agent should read at the start of a session
  memories     List the typed memories, and where each is used
  coverage     List log lines that no summary covers (alias: missed)
  show         Print a file of the memory folder, now or at an earlier time
  history      List the versions of a file, or the runs
  blame        Show when each line of a file was added, by which run and engine
  diff         Show what changed between two versions of a file
  usage        Show tokens and cost of model calls (alias: cost)
  list         List the configured memory folders
  config       Show or edit the configuration
  serve        Serve the local page without opening a browser
  export       Write the local page as files, without forms

Maintain:
  doctor       Check files, database, and settings
  rebuild      Rebuild the database from the files
{bundle}  upgrade      Write the generated files of an older version in the present form
  uninstall    Take out what memoird put outside of memory folders
  model test   Test the configured model and estimate its cost

Plumbing:
  run          Watch memory folders and compact what is due (systemd runs this)
{worker}  service      Install, remove, or inspect the systemd user service
  session      Summarize sessions of coding agents and keep records of them
  import       Import earlier sessions of agents, or notes of other programs
  hook         Handle the session events of an agent (its program calls this)
  mcp          Serve the memory folder to an agent over MCP (its program calls this)
  completions  Print a completion script for a shell
  man          Print the manual page, or write one for each command
  version      Print the version

Global options:
{options}{after-help}";

/// Turns an agent's daily logs into long-term memory, every line traced to its source
#[derive(Debug, Parser)]
#[command(name = "memoird", version, help_template = help_template(), max_term_width = 100)]
#[command(subcommand_value_name = "VERB")]
#[command(after_help = help_end())]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    verb: Option<CliCommand>,
}

/// Global options.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global options")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct GlobalArgs {
    /// Use this memory folder
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Read this configuration file instead of the user's
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a configuration key for this call (compaction.weekly.ratio=0.1)
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Print only errors, warnings, and what was asked for
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Print more details
    #[arg(short, long, global = true)]
    verbose: bool,
    /// When to use color
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: ColorChoice,
    /// Print long output at once, not page by page (`MEMOIRD_PAGER`, `PAGER`)
    #[arg(long, global = true)]
    no_pager: bool,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Init(init::InitArgs),
    Status(status::StatusArgs),
    Log(log::LogArgs),
    Search(search::SearchArgs),
    #[command(visible_alias = "why")]
    Trace(trace::TraceArgs),
    Correct(correct::CorrectArgs),
    Undo(undo::UndoArgs),
    Open(open::OpenArgs),
    Demo(demo::DemoArgs),
    #[command(visible_alias = "missed")]
    Coverage(coverage::CoverageArgs),
    Show(show::ShowArgs),
    History(history::HistoryArgs),
    Blame(blame::BlameArgs),
    #[cfg(feature = "fleet")]
    Bundle(bundle::BundleArgs),
    #[cfg(feature = "fleet")]
    Worker(worker::WorkerArgs),
    Diff(diff::DiffArgs),
    #[command(visible_alias = "cost")]
    Usage(usage::UsageArgs),
    Model(model::ModelArgs),
    Compact(compact::CompactArgs),
    Review(review::ReviewArgs),
    Forget(forget::ForgetArgs),
    Doctor(doctor::DoctorArgs),
    Rebuild(rebuild::RebuildArgs),
    Upgrade(upgrade::UpgradeArgs),
    Uninstall(uninstall::UninstallArgs),
    Run(run::RunArgs),
    Service(service::ServiceArgs),
    Session(session::SessionArgs),
    Import(import::ImportArgs),
    Context(context::ContextArgs),
    Memories(memories::MemoriesArgs),
    Hook(crate::commands::hooks::run::HookArgs),
    Mcp(mcp::McpArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    List(ListArgs),
    Config(config::ConfigArgs),
    Serve(open::ServeArgs),
    Export(export::ExportArgs),
    Version(VersionArgs),
}

/// List the configured memory folders
///
/// One line for each: its logs, what is due, stuck or wrong, and whether a daemon works on it.
#[derive(Debug, clap::Args)]
struct ListArgs {}

/// Print the version
#[derive(Debug, clap::Args)]
struct VersionArgs {}

/// Runs the command line and returns the exit code. `page` serves and exports the local page.
pub fn main(page: &PageProgram) -> ExitCode {
    process_hardening::disable_core_dumps();
    if completions::answer_script() {
        return ExitCode::SUCCESS;
    }
    let parsed = clap_command()
        .try_get_matches()
        .and_then(|it| Cli::from_arg_matches(&it))
        .map_err(sort_suggestions)
        .map_err(suggest_period_option);
    let cli = match parsed {
        Ok(cli) => cli,
        Err(usage) => {
            // A bad call of a hook must not stop the agent that made it.
            if is_hook() && usage.exit_code() != 0 {
                return ExitCode::SUCCESS;
            }
            // Includes `--help` and `--version`; clap chooses the stream.
            if usage.exit_code() != 0 && std::env::args_os().any(|it| it == "--json") {
                Ui::new(true, false, false, ColorChoice::Auto).error(&usage_error(&usage));
            } else {
                drop(usage.print());
            }
            return u8::try_from(usage.exit_code()).unwrap_or(2).into();
        }
    };
    let GlobalArgs { json, quiet, verbose, color, no_pager, .. } = cli.global;
    let pager = if no_pager { None } else { pager::from_environment() };
    let ui = Ui::new(json, quiet, verbose, color).with_pager(pager);
    let root = cli.global.root.clone();
    let result = dispatch(cli, page, &ui)
        .map_err(|error| root.iter().fold(error, |error, root| error.with_root(root)));
    if is_hook() {
        return ExitCode::SUCCESS;
    }
    let code = result.unwrap_or_else(|error| {
        ui.error(&error);
        error.exit_code()
    });
    if code == ExitCode::SUCCESS && !ui::output_complete() {
        return CommandErrorKind::CannotWrite.exit_code().into();
    }
    code
}

/// Puts the verbs that are most similar to a mistyped one first, and leaves out those after the third.
fn sort_suggestions(mut usage: clap::Error) -> clap::Error {
    const SUGGESTIONS_MAX: usize = 3;
    let typed = usage.get(ContextKind::InvalidSubcommand).cloned();
    let similar = usage.get(ContextKind::SuggestedSubcommand).cloned();
    if let (Some(ContextValue::String(typed)), Some(ContextValue::Strings(mut similar))) =
        (typed, similar)
    {
        similar.sort_by_key(|it| strsim::damerau_levenshtein(&typed, it));
        similar.truncate(SUGGESTIONS_MAX);
        usage.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(similar));
    }
    usage
}

/// Names the option for a period that was given in place of a tier.
fn suggest_period_option(mut usage: clap::Error) -> clap::Error {
    let typed = usage.get(ContextKind::InvalidValue).map(ToString::to_string);
    let is_tier = usage.get(ContextKind::InvalidArg).is_some_and(|it| it.to_string() == "[TIER]");
    if let Some(period) = typed.filter(|_| is_tier).and_then(|it| it.parse::<Period>().ok()) {
        let tip = format!("for one period: memoird compact --period {period}");
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    usage
}

/// Converts a mistake in the command line, which clap formats as a line with the error and lines with tips.
fn usage_error(usage: &clap::Error) -> CommandError {
    if let (
        ErrorKind::MissingSubcommand,
        Some(ContextValue::String(command)),
        Some(ContextValue::Strings(verbs)),
    ) = (
        usage.kind(),
        usage.get(ContextKind::InvalidSubcommand),
        usage.get(ContextKind::ValidSubcommand),
    ) {
        let error = CommandError::usage(format!("`{command}` needs a verb"));
        return error.hints_from(
            verbs.iter().filter(|it| *it != "help").map(|it| format!("{command} {it}")),
        );
    }
    let text = usage.to_string();
    let mut parts = text.split("\n\n").map(str::trim);
    let what = parts.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    CommandError::usage(what).hints_from(parts.filter_map(|it| it.strip_prefix("tip: ")))
}

/// Returns whether this process was started as a hook, even if the rest of the command line is invalid.
fn is_hook() -> bool {
    let mut args = std::env::args_os().skip(1);
    while let Some(arg) = args.next() {
        let arg = arg.to_string_lossy();
        match &arg[..] {
            "--root" | "--config" | "--set" | "--color" => drop(args.next()),
            arg if arg.starts_with('-') => {}
            verb => return verb == crate::commands::hooks::run::HOOK_COMMAND,
        }
    }
    false
}

fn dispatch(cli: Cli, page: &PageProgram, ui: &Ui) -> CommandResult {
    let global = cli.global;
    if !matches!(cli.verb, Some(CliCommand::Run(_))) {
        logging::start_if_requested()?;
    }
    let Some(verb) = cli.verb else { return run_without_verb(&global, ui) };
    match verb {
        CliCommand::Init(args) => init::run(&global, &args, ui),
        CliCommand::Status(args) => status::run(&global, args, ui),
        CliCommand::Log(args) => log::run(&global, &args, ui),
        CliCommand::Search(args) => search::run(&global, args, ui),
        CliCommand::Trace(args) => trace::run(&global, args, ui),
        CliCommand::Correct(args) => correct::run(&global, &args, ui),
        CliCommand::Undo(args) => undo::run(&global, &args, ui),
        CliCommand::Open(args) => open::open(&global, &args, page, ui),
        CliCommand::Serve(args) => open::serve(&global, &args, page, ui),
        CliCommand::Export(args) => export::run(&global, &args, page, ui),
        CliCommand::Demo(args) => demo::run(&global, &args, ui),
        CliCommand::Coverage(args) => coverage::run(&global, args, ui),
        CliCommand::Show(args) => show::run(&global, &args, ui),
        CliCommand::History(args) => history::run(&global, &args, ui),
        #[cfg(feature = "fleet")]
        CliCommand::Bundle(args) => bundle::run(&global, &args, ui),
        #[cfg(feature = "fleet")]
        CliCommand::Worker(args) => worker::run(&global, &args, ui),
        CliCommand::Blame(args) => blame::run(&global, &args, ui),
        CliCommand::Diff(args) => diff::run(&global, &args, ui),
        CliCommand::Usage(args) => usage::run(&global, &args, ui),
        CliCommand::Model(args) => model::run(&global, &args, ui),
        CliCommand::Compact(args) => compact::run(&global, &args, ui),
        CliCommand::Review(args) => review::run(&global, &args, ui),
        CliCommand::Forget(args) => forget::run(&global, &args, ui),
        CliCommand::Doctor(args) => doctor::run(&global, &args, ui),
        CliCommand::Rebuild(args) => rebuild::run(&global, &args, ui),
        CliCommand::Upgrade(args) => upgrade::run(&global, &args, ui),
        CliCommand::Uninstall(args) => uninstall::run(&global, &args, ui),
        CliCommand::Run(args) => run::run(&global, &args, ui),
        CliCommand::Service(args) => service::run(&global, &args, ui),
        CliCommand::Session(args) => session::run(&global, &args, ui),
        CliCommand::Import(args) => import::run(&global, &args, ui),
        CliCommand::Context(args) => context::run(&global, &args, ui),
        CliCommand::Memories(args) => memories::run(&global, &args, ui),
        CliCommand::Hook(args) => Ok(crate::commands::hooks::run::run(&global, &args, ui)),
        CliCommand::Mcp(args) => mcp::run(&global, &args, ui),
        CliCommand::Completions(args) => completions::run(&args, ui),
        CliCommand::Man(args) => man::run(&args, ui),
        CliCommand::List(_) => status::list(&global, ui),
        CliCommand::Config(args) => config::run(&global, &args, ui),
        CliCommand::Version(_) => Ok(show_version(ui)),
    }
}

/// Shows the status of the memory folder, or elsewhere how to begin.
fn run_without_verb(global: &GlobalArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    match call.config.select_root(global.root.as_deref(), &call.environment) {
        Err(crate::config::ConfigError::NoRootSelected { roots, .. })
            if roots.is_empty() && !ui.is_json() =>
        {
            ui.data(
                "memoird turns daily logs into long-term memory, every line traced to its source.",
            );
            ui.data("");
            ui.data("memoird demo      shows every stage on a sample journal");
            ui.data("memoird init      sets up memory for agents or a folder; shows a plan first");
            ui.data("memoird man       prints the manual (memoird man | man -l -); guides: docs/src in its repository");
            ui.data("memoird --help    lists all verbs");
            Ok(ExitCode::SUCCESS)
        }
        _ => status::run(global, status::StatusArgs {}, ui),
    }
}

fn show_version(ui: &Ui) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    if ui.is_json() {
        ui.json(&serde_json::json!({ "version": version }));
    } else {
        ui.data(format!("memoird {version}"));
    }
    ExitCode::SUCCESS
}

/// Returns the end of the `--help` page, which lists the exit codes.
fn help_end() -> String {
    let codes = CommandErrorKind::ALL.map(|it| format!(", {} {}", it.exit_code(), it.meaning()));
    let codes = codes.concat();
    format!("`memoird VERB --help` describes one verb. Exit codes: 0 done or nothing to do{codes}.")
}

/// Returns the `--help` page with the verbs that this build has.
fn help_template() -> String {
    let bundle = if cfg!(feature = "fleet") {
        "  bundle       Publish a memory folder to object storage, or bring it from there\n"
    } else {
        ""
    };
    let worker = if cfg!(feature = "fleet") {
        "  worker       Compact the memory folders of a fleet, out of object storage\n"
    } else {
        ""
    };
    HELP_TEMPLATE.replace("{bundle}", bundle).replace("{worker}", worker)
}

fn clap_command() -> clap::Command {
    examples::add_to(Cli::command())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_valid_and_help_lists_every_verb() {
        clap_command().debug_assert();
        for verb in clap_command().get_subcommands().map(clap::Command::get_name) {
            assert!(
                help_template().contains(&format!("\n  {verb} ")),
                "`{verb}` is missing from the help"
            );
        }
    }
}
