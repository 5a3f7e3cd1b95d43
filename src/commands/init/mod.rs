//! `memoird init`: creates or adopts a memory folder.
//!
//! It scans the folder, reports what it found, and writes only what is missing, so a second call
//! changes nothing. It never touches logs, memories or summaries.

mod hooks;
mod report;
mod steps;

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use self::{
    report::{FolderContents, InitReport},
    steps::StepPlanner,
};
use super::{
    GlobalArgs,
    error::{CommandError, CommandResult},
    hooks::{openclaw, project_folder},
    service::{self, manager},
    ui::Ui,
    workspace::Invocation,
};
use crate::{
    config::{
        self,
        root::{ROOT_FILE_NAME, RootFile, RootSettings, ZoneSource},
        zone::ZoneName,
    },
    privacy::PrivacyRules,
    store::fs::{
        layout::{self, Layout, MemoryFileName},
        vault::Vault,
    },
};

/// Create or adopt a memory folder
#[derive(Debug, clap::Args)]
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
    /// Add hooks to the settings of Claude Code, which record sessions and load memory
    #[arg(long)]
    claude_code: bool,
    /// Add the same hooks to the settings of Codex
    #[arg(long)]
    codex: bool,
    /// Add the same hooks, and the MCP server, to the settings of Gemini CLI
    #[arg(long)]
    gemini: bool,
    /// Set up the workspace of `OpenClaw` [default: the one that its settings name] as the memory folder: adds the MCP
    /// server and a plugin to its settings, and WISDOM.md to MEMORY.md, in a block
    #[arg(long, value_name = "WORKSPACE")]
    #[expect(clippy::option_option, reason = "a flag whose value may be left out")]
    openclaw: Option<Option<PathBuf>>,
    /// With --claude-code: write the hooks as a plugin into this folder instead of changing the settings
    #[arg(long, value_name = "DIR", requires = "claude_code", conflicts_with = "uninstall")]
    plugin: Option<PathBuf>,
    /// With --claude-code, --codex, --gemini, or --openclaw: remove what was added, and do nothing else
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
}

pub(super) fn run(global: &GlobalArgs, args: &InitArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    if args.uninstall {
        hooks::uninstall(&call, global, args, ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut to_do = Vec::new();
    let projects = args.projects.as_deref();
    let projects = projects.map(|it| hooks::set_projects_dir(&call, args, it)).transpose()?;
    if let Some(projects) = projects {
        if args.dir.is_none() && global.root.is_none() {
            hooks::finish_projects_only(&call, global, args, projects, ui)?;
            return Ok(ExitCode::SUCCESS);
        }
        to_do.push(projects);
    }
    let call = if args.projects.is_some() { Invocation::load(global)? } else { call };
    let path = target_folder(&call, global, args)?;
    let (settings, root_file) = root_settings(&call, args, &path, ui, &mut to_do)?;
    let vault = Vault::for_root(&settings)?;
    let inventory = vault.scan(&HashMap::new())?.inventory;
    let layout = vault.layout();
    if !layout.memory_dir().is_empty() && has_log(layout.root()) {
        to_do.push(format!(
            "logs next to {ROOT_FILE_NAME} are not read; move them to {}/",
            layout.memory_dir()
        ));
    }
    let steps =
        StepPlanner { call: &call, global, args, layout, ui, to_do: &mut to_do }.plan(root_file)?;
    let wrote = steps.iter().map(|it| it.name.clone()).collect();
    if !args.dry_run {
        steps::apply_steps(&steps, &vault)?;
        if args.service
            && let Err(why) = manager::start(steps::unit_paths_changed(&steps))
        {
            let start = service::START_COMMAND;
            to_do.push(format!("the service was not started ({why}); start it with: {start}"));
        }
        if args.service && manager::is_linger_enabled() == Some(false) {
            to_do.push(service::LINGER_HINT.to_owned());
        }
    }
    let hooks_outcome = hooks::update(&call, args, ui)?;
    let openclaw = hooks::install_openclaw(global, args, &path, ui)?;
    to_do.extend(hooks_outcome.to_do.into_iter().chain(openclaw.to_do));
    if let Some(pid) = project_folder::daemon_pid(&call.config)
        .filter(|_| !args.service && !args.no_config && !settings.configured)
    {
        to_do.push(format!(
            "a daemon is running; make it reload its configuration: kill -HUP {pid}"
        ));
    }
    let memory_dir = layout.memory_dir();
    let report = InitReport {
        agent_name: PrivacyRules::mask_message(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        memory_dir: if memory_dir.is_empty() { "." } else { memory_dir }.to_owned(),
        root: path,
        dry_run: args.dry_run,
        found: FolderContents::new(&inventory),
        wrote,
        hooks: hooks_outcome.done.into_iter().chain(openclaw.done).collect(),
        to_do,
    };
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print(ui);
        hooks::offer_session_import(global, args, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the folder to set up, as an absolute path without links.
fn target_folder(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
) -> CommandResult<PathBuf> {
    let here = &call.environment.cwd;
    let workspace = match &args.openclaw {
        Some(Some(named)) => Some(named.clone()),
        Some(None) if args.dir.is_none() && global.root.is_none() => {
            Some(openclaw::workspace(&call.environment)?)
        }
        _ => None,
    };
    let named = args.dir.as_deref().or(workspace.as_deref()).or(global.root.as_deref());
    if named.is_none() && (*here == call.environment.home || here.parent().is_none()) {
        let what = format!("cannot use `{}` as a memory folder", here.display());
        return Err(CommandError::usage(what).hint("name a folder: `memoird init ~/agents/NAME`"));
    }
    let path = call.config.resolve_root_path(named.unwrap_or(here), &call.environment).map_err(
        |error| {
            // The general hint would suggest removing the existing folder from the configuration.
            let hint = match &error {
                config::ConfigError::Overlap { outer, inner }
                    if !outer.join(ROOT_FILE_NAME).is_file() =>
                {
                    format!("name another folder; {} was not changed", inner.display())
                }
                _ => return CommandError::from(error),
            };
            CommandError::config(error).hint(hint)
        },
    )?;
    if path.exists() && !path.is_dir() {
        return Err(CommandError::usage(format!("`{}` is not a folder", path.display())));
    }
    Ok(path)
}

/// Returns the settings of the root, and its `memoird.yaml` if that has to be written.
fn root_settings(
    call: &Invocation,
    args: &InitArgs,
    path: &Path,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> CommandResult<(RootSettings, Option<RootFile>)> {
    let file = path.join(ROOT_FILE_NAME);
    if file.symlink_metadata().is_ok() {
        return Ok((call.config.open(path, &call.environment)?, None));
    }
    let bare = call.config.resolve(path.to_owned(), &RootFile::default(), &call.environment)?;
    if args.zone.is_none() && bare.zone.source == ZoneSource::Nobody {
        to_do.push(format!(
            "the system's time zone is unknown, so UTC is used; to change it, edit `zone` in {ROOT_FILE_NAME}"
        ));
    }
    let mut root_file = RootFile::default();
    root_file.agent_name = Some(args.name.clone().unwrap_or(bare.agent_name));
    root_file.zone = Some(args.zone.unwrap_or(bare.zone.name));
    let memory_dir = memory_dir(path);
    root_file.memory_dir = Some(memory_dir.to_owned());
    root_file.curated =
        steps::agreed_notes(args, &Layout::new(path.to_owned(), memory_dir), ui, to_do);
    root_file.writer = args.take_over.then(|| call.environment.host.clone());
    // The name of the folder may be invalid as a name of an agent.
    let root_file = RootFile::parse(&root_file.print(), &file)?;
    let settings = call.config.resolve(path.to_owned(), &root_file, &call.environment)?;
    Ok((settings, Some(root_file)))
}

/// Returns the folder of the logs: next to `memoird.yaml` only if logs are there already.
fn memory_dir(root: &Path) -> &'static str {
    if has_log(root) && !has_log(&root.join("memory")) { "." } else { "memory" }
}

/// Returns whether a folder contains logs or archived logs.
fn has_log(dir: &Path) -> bool {
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|it| it.file_name().into_string().ok())
    };
    let is_log = |it: String| matches!(layout::classify(&it), MemoryFileName::Log(_));
    let archive = dir.join(layout::ARCHIVE_DIR);
    names(dir).any(is_log)
        || names(&archive)
            .filter(|it| layout::is_year(it))
            .any(|year| names(&archive.join(year)).any(is_log))
}
