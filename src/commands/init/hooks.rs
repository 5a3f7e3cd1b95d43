//! What `memoird init` does for agent programs: hooks, plugins, project folders, past sessions.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{InitArgs, folder, steps::create_folder};
use crate::{
    commands::{
        GlobalArgs,
        hooks::{
            install::HookSettingsChange,
            openclaw::{self, OpenClawOutcome, OpenClawRequest},
            plugin,
            programs::AgentProgram,
            project_folder,
        },
        import,
        import_sources::ImportSource,
        ui::Ui,
    },
    config::edit,
    operations::{
        error::{CommandError, CommandResult},
        format::shell_quoted,
        workspace::Invocation,
    },
    store::fs::{
        layout::INDEX_FILE,
        vault::settings_files::{write_settings, write_settings_bytes},
    },
};

/// What installing or removing hooks did, in sentences.
#[derive(Default)]
pub(super) struct HooksOutcome {
    pub(super) done: Vec<String>,
    /// Whether settings were changed, or in a dry run would be.
    pub(super) changed: bool,
    /// What is left for the user to do.
    pub(super) to_do: Vec<String>,
}

/// Removes the hooks of the named agent programs, and does nothing else.
pub(super) fn uninstall(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    ui: &Ui,
) -> CommandResult<()> {
    if args.agents.0.is_empty() && args.openclaw.is_none() {
        return Err(CommandError::usage("--uninstall needs to know which agent's hooks to remove")
            .hint("memoird init --claude-code --uninstall"));
    }
    let HooksOutcome { mut done, mut to_do, .. } = update(call, args, ui)?;
    if args.openclaw.is_some() {
        let root = folder::target_folder(call, global, args)?;
        let OpenClawOutcome { done: more, to_do: left } =
            openclaw::uninstall(call, args.openclaw_request(&root), ui)?;
        done.extend(more);
        to_do.extend(left);
    }
    for line in done.iter().chain(&to_do) {
        ui.note(line);
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "hooks": done, "to_do": to_do, "dry_run": args.dry_run }));
    }
    Ok(())
}

/// Sets up `OpenClaw` with a memory folder that is set up already, if `--openclaw` asks for it.
pub(super) fn install_openclaw(
    global: &GlobalArgs,
    args: &InitArgs,
    root: &Path,
    ui: &Ui,
) -> CommandResult<OpenClawOutcome> {
    if args.openclaw.is_none() {
        return Ok(OpenClawOutcome::default());
    }
    // Reload: this command has just changed the configuration.
    openclaw::install(&Invocation::load(global)?, args.openclaw_request(root), ui)
}

/// Sets the folder in which projects get their own memory folders; returns a sentence about it.
pub(super) fn set_projects_dir(
    call: &Invocation,
    args: &InitArgs,
    dir: &Path,
) -> CommandResult<String> {
    let dir = call.config.resolve_root_path(&dir.join("project"), &call.environment)?;
    let dir = dir.parent().unwrap_or(&dir).to_owned();
    if call.config.projects_dir(&call.environment).as_ref() == Some(&dir) {
        return Ok(format!("projects already get their memory folders in {}", dir.display()));
    }
    let (file, text) = project_folder::config_text(&call.config, &call.environment)?;
    let Some(text) = edit::set_projects_dir(&text, &file, &dir)? else {
        let what = format!("cannot edit {} automatically", file.display());
        return Err(CommandError::config(what)
            .hint(format!("add the line by hand: projects_dir: {}", dir.display())));
    };
    if args.dry_run {
        return Ok(format!("each project would get its own memory folder in {}", dir.display()));
    }
    create_folder(&dir)?;
    write_settings(&file, &text)?;
    Ok(format!(
        "each project gets a memory folder in {} when a session in it ends; if the service is \
         installed, run `memoird service install` to update it",
        dir.display()
    ))
}

/// Finishes a call that sets the projects folder and makes no memory folder.
pub(super) fn finish_projects_only(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    projects: String,
    ui: &Ui,
) -> CommandResult<()> {
    let HooksOutcome { done, to_do, .. } = update(call, args, ui)?;
    if ui.is_json() {
        ui.json(&serde_json::json!({
            "projects": projects, "hooks": done, "to_do": to_do, "dry_run": args.dry_run
        }));
    } else {
        [projects].iter().chain(&done).chain(&to_do).for_each(|it| ui.note(it));
        offer_session_import(global, args, ui)?;
    }
    Ok(())
}

/// Lists recent sessions of the agents whose hooks were installed, and imports them if the user agrees.
pub(super) fn offer_session_import(
    global: &GlobalArgs,
    args: &InitArgs,
    ui: &Ui,
) -> CommandResult<()> {
    if args.plugin.is_some() || args.dry_run {
        return Ok(());
    }
    // Reload: this command has just changed the configuration.
    let call = Invocation::load(global)?;
    for &program in &args.agents.0 {
        let Some(source) = session_source(program) else { continue };
        if source.sessions_folder(&call.environment).is_some_and(|it| it.exists()) {
            ui.note("");
            ui.note(format!("Sessions of {} in the last 30 days:", program.display_name()));
            import::run(
                global,
                &import::ImportArgs::recent(&call.environment, source, args.yes),
                ui,
            )?;
        }
    }
    let has_sessions = || openclaw::detect(&call.environment).is_some_and(|it| it.sessions > 0);
    if args.openclaw.is_some() && has_sessions() {
        ui.note("");
        ui.note("Sessions of OpenClaw in the last 30 days:");
        import::run(
            global,
            &import::ImportArgs::recent(&call.environment, ImportSource::Openclaw, args.yes),
            ui,
        )?;
    }
    Ok(())
}

/// The hooks of an agent program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HookState {
    /// Its settings have them.
    Installed,
    /// These files would be changed.
    Missing(Vec<PathBuf>),
    /// The settings cannot be changed, for this reason.
    Unusable(String),
}

impl HookState {
    /// Returns the files that would be changed.
    pub(super) fn missing(&self) -> &[PathBuf] {
        match self {
            Self::Missing(files) => files,
            Self::Installed | Self::Unusable(_) => &[],
        }
    }
}

/// Finds out whether the settings of a program have our hooks.
pub(super) fn state(call: &Invocation, agent: AgentProgram) -> CommandResult<HookState> {
    Ok(match HookSettingsChange::all(agent, &call.environment, &this_program()?, false) {
        Ok(changes) if changes.is_empty() && has_other_parts(call, agent) => HookState::Installed,
        Ok(changes) => {
            let mut files: Vec<PathBuf> = changes.into_iter().map(|it| it.path).collect();
            if let Some(workspace) = agent.workspace(&call.environment) {
                files.push(openclaw::plugin_folder(&call.environment));
                files.push(workspace.join(INDEX_FILE));
            }
            HookState::Missing(files)
        }
        Err(error) => HookState::Unusable(error.to_string()),
    })
}

/// Returns whether what is not in the settings of a program is there, too.
fn has_other_parts(call: &Invocation, agent: AgentProgram) -> bool {
    let workspace = agent.workspace(&call.environment);
    workspace.is_none_or(|it| {
        let root = it.canonicalize().unwrap_or(it);
        openclaw::is_installed(call, &root)
    })
}

/// Shows what adding the hooks changes in the settings of programs.
pub(super) fn show_changes(
    call: &Invocation,
    agents: &[AgentProgram],
    ui: &Ui,
) -> CommandResult<()> {
    for agent in agents {
        if let Some(workspace) = agent.workspace(&call.environment) {
            let root = workspace.canonicalize().unwrap_or(workspace);
            let request =
                OpenClawRequest { root: &root, dry_run: true, yes: false, is_planned: false };
            openclaw::install(call, request, ui)?;
            continue;
        }
        let program = this_program()?;
        for change in HookSettingsChange::all(*agent, &call.environment, &program, false)? {
            change.show_diff(ui);
        }
    }
    Ok(())
}

fn this_program() -> CommandResult<PathBuf> {
    std::env::current_exe().map_err(|e| {
        let what = format!("cannot find the path of this program: {e}");
        CommandError::cannot_write(what)
    })
}

/// Returns the name under which the sessions of a program are imported; `None` if they are not.
pub(super) fn session_source(program: AgentProgram) -> Option<ImportSource> {
    match program {
        AgentProgram::ClaudeCode => Some(ImportSource::ClaudeCode),
        AgentProgram::Codex => Some(ImportSource::Codex),
        AgentProgram::OpenClaw => Some(ImportSource::Openclaw),
        AgentProgram::Gemini => Some(ImportSource::Gemini),
        AgentProgram::Opencode => Some(ImportSource::Opencode),
        AgentProgram::Copilot => Some(ImportSource::Copilot),
        AgentProgram::Cursor | AgentProgram::Windsurf | AgentProgram::Zed => None,
    }
}

impl InitArgs {
    fn openclaw_request<'a>(&self, root: &'a Path) -> OpenClawRequest<'a> {
        OpenClawRequest { root, dry_run: self.dry_run, yes: self.yes, is_planned: self.is_planned }
    }
}

/// Adds the hooks to the settings of the named agent programs, or removes them: shows the change
/// first, and asks on a terminal.
pub(super) fn update(call: &Invocation, args: &InitArgs, ui: &Ui) -> CommandResult<HooksOutcome> {
    let program = this_program()?;
    let mut outcome = HooksOutcome::default();
    for &agent in &args.agents.0 {
        if let (AgentProgram::ClaudeCode, Some(dir)) = (agent, &args.plugin) {
            write_plugin(call, args, dir, &program, &mut outcome)?;
            continue;
        }
        let name = agent.display_name();
        let changes = HookSettingsChange::all(agent, &call.environment, &program, args.uninstall)?;
        if changes.is_empty() {
            outcome.done.push(if args.uninstall {
                format!("the settings of {name} have nothing of memoird")
            } else {
                format!("the settings of {name} already have {}", agent.parts())
            });
            continue;
        }
        let mut is_installed = !args.uninstall;
        for change in &changes {
            is_installed &= apply_change(call, args, ui, change, &mut outcome)?;
        }
        outcome.to_do.extend(agent.to_do().filter(|_| is_installed).map(str::to_owned));
    }
    Ok(outcome)
}

/// Shows the change of a settings file, and makes it if the user agrees; returns whether it did.
fn apply_change(
    call: &Invocation,
    args: &InitArgs,
    ui: &Ui,
    change: &HookSettingsChange,
    outcome: &mut HooksOutcome,
) -> CommandResult<bool> {
    let path = change.path.display().to_string();
    // The wizard has shown its plan.
    if !ui.is_json() && !args.is_planned {
        change.show_diff(ui);
    }
    if args.dry_run {
        outcome.changed = true;
        outcome.done.push(format!("would change {path}"));
        return Ok(false);
    }
    let agreed = if args.yes { Some(true) } else { ui.confirm(format!("Change {path}?")) };
    if agreed != Some(true) {
        outcome.done.push(format!("{path} was not changed"));
        if agreed.is_none() {
            outcome.to_do.push(format!("to change {path}, run the same command with --yes"));
        }
        return Ok(false);
    }
    let backup = change.write(call.now)?;
    outcome.changed = true;
    let backup = backup.map(|it| format!("; backup: {}", it.display())).unwrap_or_default();
    outcome.done.push(format!("changed {path}{backup}"));
    Ok(true)
}

/// Writes the hooks as a plugin. Refuses to overwrite files of another plugin.
fn write_plugin(
    call: &Invocation,
    args: &InitArgs,
    dir: &Path,
    program: &Path,
    outcome: &mut HooksOutcome,
) -> CommandResult<()> {
    let dir = call.environment.absolute(dir, &call.environment.cwd);
    let mut files = plugin::plugin_files(program, &dir);
    let current = |name: &str| fs::read(dir.join(name)).ok();
    let is_foreign = |(name, _): &&(&str, Vec<u8>)| {
        current(name).is_some_and(|it| !plugin::is_own_file(name, &it))
    };
    if let Some((name, _)) = files.iter().find(is_foreign) {
        let what = format!("`{}` belongs to something else", dir.join(name).display());
        return Err(CommandError::usage(what)
            .hint("name another folder: memoird init --claude-code --plugin DIR"));
    }
    files.retain(|(name, content)| current(name).as_ref() != Some(content));
    for (name, content) in files {
        let path = dir.join(name);
        let wrote = if args.dry_run {
            outcome.changed = true;
            "would write"
        } else {
            write_settings_bytes(&path, &content)?;
            "wrote"
        };
        outcome.done.push(format!("{wrote} {}", path.display()));
    }
    let (name, dir) = (plugin::PLUGIN, shell_quoted(&dir.to_string_lossy()));
    outcome.to_do.push(format!(
        "install the plugin: claude plugin marketplace add {dir} && claude plugin install \
         {name}@{name}; or only for one session: claude --plugin-dir {dir}"
    ));
    Ok(())
}
