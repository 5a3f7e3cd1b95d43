//! The command line: one file per verb.
//!
//! - [`ui`] is the only place that prints; [`error`] turns failures into exit codes and hints.
//! - [`workspace`] finds the configuration and the root that a verb works on.
//! - Each verb has `Args` and `run`: it reads its arguments, calls the layers below, and shows
//!   what they return. No verb decides anything about memory itself.

pub mod error;
pub mod ui;

mod blame;
pub(crate) mod compact;
mod completions;
pub(crate) mod context;
mod correct;
mod coverage;
mod demo;
mod diff;
mod doctor;
mod forget;
mod git_snapshot;
mod history;
mod hooks;
mod import;
mod import_notes;
mod init;
mod instruction_files;
pub(crate) mod log;
mod logging;
mod man;
mod mcp;
mod model;
mod process_hardening;
mod rebuild;
mod review;
mod run;
mod run_lock;
pub(crate) mod search;
mod secrets;
mod service;
mod session;
pub(crate) mod show;
mod status;
pub(crate) mod trace;
mod undo;
mod usage;
pub(crate) mod workspace;

use std::{path::PathBuf, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand};

use self::{
    error::CommandError,
    ui::{ColorChoice, Ui},
};

/// How `--help` lists the verbs: by what one wants to do.
const HELP_TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

Everyday:
  init         Make or adopt a memory folder
  status       Show what there is, what is due and why
  log          Append an entry to today's log
  search       Find the log lines that answer a question
  trace        Lead a line back to the log lines it rests on (alias: why)
  correct      Put an item right, here and above
  undo         Take back a run
  demo         Show the whole chain on a sample journal

Look inside:
  context      Print what an agent should read at the start of a session
  coverage     List log lines that reached no summary (alias: missed)
  show         Print a file of the memory folder, as it stands or as it stood
  history      List the versions of a file, or the runs
  blame        Say of each line of a file when it came, and what drafted it
  diff         Show what changed between two versions of a file
  usage        Show what calls of models took and cost (alias: cost)

Keep in order:
  compact      Do all that is due now
  review       Accept, refuse, or edit what is held or proposed
  forget       Remove lines and all that derives from them, everywhere
  doctor       Check files, database, and settings
  rebuild      Make the database anew from the files
  model test   Ask the model that is configured, and foresee what it would cost

Plumbing:
  run          Watch and summarise in the foreground (systemd runs this)
  service      Install, remove, or look at the systemd user service
  session      Sum up sessions of coding agents, and keep records of them
  import       Bring in sessions that were held before memoird was there
  hook         Take part in the sessions of an agent (its program calls this)
  mcp          Serve the memory folder to an agent over MCP (its program calls this)
  completions  Print a completion script for a shell
  man          Print the manual page

Options:
{options}{after-help}";

/// Turns an agent's daily logs into long-term memory, every line traced to its source
#[derive(Debug, Parser)]
#[command(name = "memoird", version, help_template = HELP_TEMPLATE, max_term_width = 100)]
#[command(
    after_help = "`memoird VERB --help` says more about one verb. Exit codes: 0 done or nothing to do, \
1 a job failed or is stuck, 2 usage, 65 bad data, 69 only the model was missing, 73 cannot write, \
75 another instance holds the folder, 78 bad configuration."
)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    verb: CliCommand,
}

/// Options of every verb.
#[derive(Clone, Debug, clap::Args)]
struct GlobalArgs {
    /// Work on this memory folder
    #[arg(long, global = true, value_name = "DIR")]
    root: Option<PathBuf>,
    /// Read this configuration instead of the user's
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a configuration key for this call (compaction.weekly.ratio=0.1)
    #[arg(long, global = true, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Say nothing but errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more
    #[arg(short, long, global = true)]
    verbose: bool,
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN")]
    color: ColorChoice,
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
    Demo(demo::DemoArgs),
    #[command(visible_alias = "missed")]
    Coverage(coverage::CoverageArgs),
    Show(show::ShowArgs),
    History(history::HistoryArgs),
    Blame(blame::BlameArgs),
    Diff(diff::DiffArgs),
    #[command(visible_alias = "cost")]
    Usage(usage::UsageArgs),
    Model(model::ModelArgs),
    Compact(compact::CompactArgs),
    Review(review::ReviewArgs),
    Forget(forget::ForgetArgs),
    Doctor(doctor::DoctorArgs),
    Rebuild(rebuild::RebuildArgs),
    Run(run::RunArgs),
    Service(service::ServiceArgs),
    Session(session::SessionArgs),
    Import(import::ImportArgs),
    Context(context::ContextArgs),
    Hook(crate::commands::hooks::run::HookArgs),
    Mcp(mcp::McpArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// Reads the command line, does what it asks, and returns the exit code.
pub fn main() -> ExitCode {
    process_hardening::disable_core_dumps();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Whatever is wrong with the call of a hook must not stop the agent that made it.
            if is_hook() && usage.exit_code() != 0 {
                return ExitCode::SUCCESS;
            }
            // Help and version are no errors; clap knows which stream each goes to.
            drop(usage.print());
            return u8::try_from(usage.exit_code()).unwrap_or(2).into();
        }
    };
    let GlobalArgs { json, quiet, verbose, color, .. } = cli.global;
    let ui = Ui::new(json, quiet, verbose, color);
    let root = cli.global.root.clone();
    let done = dispatch(cli, &ui)
        .map_err(|error| root.iter().fold(error, |error, root| error.with_root(root)));
    if is_hook() {
        return ExitCode::SUCCESS;
    }
    let code = done.unwrap_or_else(|error| {
        ui.error(&error);
        error.exit_code()
    });
    if code == ExitCode::SUCCESS && !ui::output_complete() {
        return error::CommandErrorKind::CannotWrite.exit_code().into();
    }
    code
}

/// Returns whether this process was started as a hook, however wrong the rest of the line may be.
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

fn dispatch(cli: Cli, ui: &Ui) -> Result<ExitCode, CommandError> {
    let global = cli.global;
    if !matches!(cli.verb, CliCommand::Run(_)) {
        logging::start_if_requested()?;
    }
    match cli.verb {
        CliCommand::Init(args) => init::run(&global, &args, ui),
        CliCommand::Status(args) => status::run(&global, args, ui),
        CliCommand::Log(args) => log::run(&global, &args, ui),
        CliCommand::Search(args) => search::run(&global, args, ui),
        CliCommand::Trace(args) => trace::run(&global, args, ui),
        CliCommand::Correct(args) => correct::run(&global, &args, ui),
        CliCommand::Undo(args) => undo::run(&global, &args, ui),
        CliCommand::Demo(args) => demo::run(&global, &args, ui),
        CliCommand::Coverage(args) => coverage::run(&global, args, ui),
        CliCommand::Show(args) => show::run(&global, &args, ui),
        CliCommand::History(args) => history::run(&global, &args, ui),
        CliCommand::Blame(args) => blame::run(&global, &args, ui),
        CliCommand::Diff(args) => diff::run(&global, &args, ui),
        CliCommand::Usage(args) => usage::run(&global, &args, ui),
        CliCommand::Model(args) => model::run(&global, &args, ui),
        CliCommand::Compact(args) => compact::run(&global, &args, ui),
        CliCommand::Review(args) => review::run(&global, &args, ui),
        CliCommand::Forget(args) => forget::run(&global, &args, ui),
        CliCommand::Doctor(args) => doctor::run(&global, &args, ui),
        CliCommand::Rebuild(args) => rebuild::run(&global, args, ui),
        CliCommand::Run(args) => run::run(&global, &args, ui),
        CliCommand::Service(args) => service::run(&global, &args, ui),
        CliCommand::Session(args) => session::run(&global, &args, ui),
        CliCommand::Import(args) => import::run(&global, &args, ui),
        CliCommand::Context(args) => context::run(&global, &args, ui),
        CliCommand::Hook(args) => Ok(crate::commands::hooks::run::run(&global, &args, ui)),
        CliCommand::Mcp(args) => mcp::run(&global, &args, ui),
        CliCommand::Completions(args) => Ok(completions::run(&args, ui)),
        CliCommand::Man(args) => man::run(args, ui),
    }
}

/// Returns the command line as clap knows it, for completions and the manual.
fn clap_command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound_and_help_lists_every_verb() {
        clap_command().debug_assert();
        for verb in clap_command().get_subcommands().map(clap::Command::get_name) {
            assert!(
                HELP_TEMPLATE.contains(&format!("\n  {verb} ")),
                "`{verb}` is missing from the help"
            );
        }
    }
}
