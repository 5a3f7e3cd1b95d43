//! `memoird init`: creates or adopts a memory folder, and sets up agent programs.
//!
//! - [`folder`] sets up one folder: it scans it, reports what it found, and writes only what is missing, so a
//!   second call changes nothing. It never touches logs, memories or summaries. [`steps`] are the files to write,
//!   [`notes_folder`] finds dated notes further below.
//! - [`hooks`] changes the settings of agent programs and offers to import their sessions.
//! - [`wizard`] does all of this for a call without arguments: it finds the agents, proposes a plan, and follows it.
//! - [`report`] prints what was found and done in a folder.

mod folder;
mod hooks;
mod notes_folder;
mod report;
mod steps;
mod wizard;

use std::{path::PathBuf, process::ExitCode};

use super::{GlobalArgs, hooks::programs::AgentFlags, ui::Ui};
use crate::{
    config::zone::ZoneName,
    operations::{error::CommandResult, format::shell_quoted, workspace::Invocation},
};

/// Set up memory for agents or a folder
///
/// Without arguments on a terminal, it also looks for agent programs, shows a plan (folders, hooks, service, import
/// of recent sessions), and does it if you agree; `--yes` does it without asking, `--dry-run` shows it with every file.
#[derive(Clone, Debug, Default, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct InitArgs {
    /// The folder; created if it does not exist [default: the current folder]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Name of the agent that the memory belongs to [default: the folder's name]
    #[arg(long)]
    name: Option<String>,
    /// Time zone of the log dates [default: the system's]
    #[arg(long)]
    zone: Option<ZoneName>,
    /// Show what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not add the folder to the user's configuration
    #[arg(long)]
    no_config: bool,
    /// Install and start the daemon as a systemd user service
    #[arg(long)]
    service: bool,
    #[command(flatten)]
    agents: AgentFlags,
    /// Set up the workspace of `OpenClaw` [default: the one that its settings name] as the memory folder: adds the MCP
    /// server and a plugin to the settings of `OpenClaw`, and WISDOM.md to MEMORY.md, in a block
    #[arg(long, value_name = "WORKSPACE")]
    #[expect(clippy::option_option, reason = "a flag whose value may be left out")]
    openclaw: Option<Option<PathBuf>>,
    /// With --claude-code: write a plugin and its marketplace into this folder instead of changing the settings
    #[arg(long, value_name = "DIR", requires = "claude-code", conflicts_with = "uninstall")]
    plugin: Option<PathBuf>,
    /// With the flag of an agent: remove what was added, and do nothing else
    #[arg(long)]
    uninstall: bool,
    /// Give each project its own memory folder in this folder, created when a session in the project ends;
    /// sets up nothing else unless a memory folder is named too
    #[arg(long, value_name = "DIR", conflicts_with = "uninstall")]
    projects: Option<PathBuf>,
    /// Let this host write the folder from now on; all other hosts only read it
    #[arg(long)]
    take_over: bool,
    /// Answer yes to all questions
    #[arg(short, long)]
    yes: bool,
    /// Whether the wizard has shown what is changed.
    #[arg(skip)]
    is_planned: bool,
    /// The project whose sessions the folder gets; without one it is for all.
    #[arg(skip)]
    project: Option<PathBuf>,
}

impl InitArgs {
    /// Returns the command that sets up the same folder with consent to each question.
    fn with_consent(&self) -> String {
        let dir = self.dir.as_ref().map(|it| format!("{} ", shell_quoted(&it.to_string_lossy())));
        format!("memoird init {}--yes", dir.unwrap_or_default())
    }
}

pub(super) fn run(global: &GlobalArgs, args: &InitArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    if args.uninstall {
        hooks::uninstall(&call, global, args, ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.is_bare(global) && wizard::is_wanted(&call, args, ui) {
        return wizard::run(&call, global, args, ui);
    }
    let mut to_do = Vec::new();
    let projects = args.projects.as_deref();
    let projects = projects.map(|it| hooks::set_projects_dir(&call, args, it)).transpose()?;
    if let Some(projects) = projects {
        if args.dir.is_none() && global.root.is_none() && args.openclaw.is_none() {
            hooks::finish_projects_only(&call, global, args, projects, ui)?;
            return Ok(ExitCode::SUCCESS);
        }
        to_do.push(projects);
    }
    let call = if args.projects.is_some() { Invocation::load(global)? } else { call };
    let path = folder::target_folder(&call, global, args)?;
    let reload_hint = folder::reload_hint(&call, args, &path);
    // A workspace gets the sessions in it, and no others.
    let is_own = args.openclaw.is_some() || folder::has_other_general_root(&call, &path);
    let project = is_own.then(|| path.clone());
    let set_up_args = InitArgs { project, ..args.clone() };
    let mut report = folder::set_up(&call, global, &set_up_args, path.clone(), to_do, ui)?;
    let outcome = hooks::update(&call, args, ui)?;
    let openclaw = hooks::install_openclaw(global, args, &path, ui)?;
    report.hooks = outcome.done.into_iter().chain(openclaw.done).collect();
    report.hooks_changed = outcome.changed || args.openclaw.is_some();
    report.to_do.extend(outcome.to_do.into_iter().chain(openclaw.to_do));
    report.to_do.extend(reload_hint);
    if args.is_bare(global) {
        report.to_do.extend(wizard::hint(&call)?);
    }
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print(ui);
        hooks::offer_session_import(global, args, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl InitArgs {
    /// Returns whether the call says nothing about what to set up.
    fn is_bare(&self, global: &GlobalArgs) -> bool {
        let Self {
            dir, name, zone, no_config, service, openclaw, plugin, projects, take_over, ..
        } = self;
        let names_folder = dir.is_some() || global.root.is_some() || projects.is_some();
        let sets_folder = name.is_some() || zone.is_some() || *no_config || *take_over;
        let names_program = openclaw.is_some() || !self.agents.0.is_empty();
        let sets_programs = *service || plugin.is_some() || names_program;
        !names_folder && !sets_folder && !sets_programs
    }
}
