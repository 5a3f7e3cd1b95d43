//! What `memoird init` does for agent programs: hooks, plugins, project folders, past sessions.

use std::{fs, path::Path};

use super::{InitArgs, steps::create_folder};
use crate::{
    commands::{
        GlobalArgs,
        error::{CommandError, CommandResult},
        hooks::{
            install::{self, HookSettingsChange},
            programs::AgentProgram,
            project_folder,
        },
        import,
        ui::Ui,
        workspace::Invocation,
    },
    config::edit,
    store::fs::vault::settings_files::write_settings,
};

/// What installing or removing hooks did, in sentences.
#[derive(Default)]
pub(super) struct HooksOutcome {
    pub(super) done: Vec<String>,
    /// What is left for the user to do.
    pub(super) to_do: Vec<String>,
}

/// Removes the hooks of the named agent programs, and does nothing else.
pub(super) fn uninstall(call: &Invocation, args: &InitArgs, ui: &Ui) -> CommandResult<()> {
    if args.agents.0.is_empty() {
        return Err(CommandError::usage("--uninstall needs to know which agent's hooks to remove")
            .hint("memoird init --claude-code --uninstall"));
    }
    let HooksOutcome { done, to_do } = update(call, args, ui)?;
    for line in done.iter().chain(&to_do) {
        ui.note(line);
    }
    if ui.is_json() {
        ui.json(&serde_json::json!({ "hooks": done, "to_do": to_do, "dry_run": args.dry_run }));
    }
    Ok(())
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
    let HooksOutcome { done, to_do } = update(call, args, ui)?;
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
    let around = &call.environment;
    for &program in &args.agents.0 {
        let (source, path) = match program {
            AgentProgram::ClaudeCode => {
                (import::ImportSource::ClaudeCode, around.claude_folder().join("projects"))
            }
            AgentProgram::Codex => {
                (import::ImportSource::Codex, around.codex_folder().join("sessions"))
            }
            AgentProgram::Gemini => {
                (import::ImportSource::Gemini, around.gemini_folder().join("tmp"))
            }
            AgentProgram::Opencode => (import::ImportSource::Opencode, around.opencode_database()),
            AgentProgram::Copilot => {
                (import::ImportSource::Copilot, around.copilot_folder().join("session-state"))
            }
            _ => continue,
        };
        if path.exists() {
            ui.note("");
            ui.note(format!("Sessions of {} in the last 30 days:", program.display_name()));
            import::run(global, &import::ImportArgs::recent(source, args.yes), ui)?;
        }
    }
    Ok(())
}

/// Adds the hooks to the settings of the named agent programs, or removes them: shows the change
/// first, and asks on a terminal.
pub(super) fn update(call: &Invocation, args: &InitArgs, ui: &Ui) -> CommandResult<HooksOutcome> {
    let program = std::env::current_exe().map_err(|e| {
        let what = format!("cannot find the path of this program: {e}");
        CommandError::cannot_write(what)
    })?;
    let mut outcome = HooksOutcome::default();
    for &agent in &args.agents.0 {
        if let (AgentProgram::ClaudeCode, Some(dir)) = (agent, &args.plugin) {
            write_plugin(call, args, dir, &program, &mut outcome)?;
            continue;
        }
        let changes = HookSettingsChange::all(agent, &call.environment, &program, args.uninstall)?;
        if changes.is_empty() {
            let name = agent.display_name();
            outcome.done.push(if args.uninstall {
                format!("the settings of {name} have no hooks of memoird")
            } else {
                format!("the settings of {name} already have the hooks")
            });
            continue;
        }
        let mut is_installed = !args.uninstall;
        for change in changes {
            is_installed &= make_change(call, args, &change, ui, &mut outcome)?;
        }
        outcome.to_do.extend(agent.to_do().filter(|_| is_installed).map(str::to_owned));
    }
    Ok(outcome)
}

/// Shows the change of one file, and makes it if the user agrees; returns whether it was made.
fn make_change(
    call: &Invocation,
    args: &InitArgs,
    change: &HookSettingsChange,
    ui: &Ui,
    outcome: &mut HooksOutcome,
) -> CommandResult<bool> {
    let path = change.path.display().to_string();
    if !ui.is_json() {
        change.show_diff(ui);
    }
    let agreed = if args.yes || args.dry_run {
        Some(!args.dry_run)
    } else {
        ui.confirm(format!("Change {path}?"))
    };
    if agreed != Some(true) {
        outcome.done.push(format!("{path} was not changed"));
        if agreed.is_none() {
            outcome.to_do.push(format!("to change {path}, run the same command with --yes"));
        }
        return Ok(false);
    }
    let backup = change.write(call.now)?;
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
    for (name, text) in install::plugin_files(program) {
        let path = dir.join(name);
        let current = fs::read_to_string(&path).ok();
        if current.as_ref() == Some(&text) {
            continue;
        }
        if current.is_some_and(|it| !it.contains("memoird")) {
            let what = format!("`{}` belongs to another plugin", path.display());
            return Err(CommandError::usage(what)
                .hint("name another folder: memoird init --claude-code --plugin DIR"));
        }
        let wrote = if args.dry_run {
            "would write"
        } else {
            write_settings(&path, &text)?;
            "wrote"
        };
        outcome.done.push(format!("{wrote} {}", path.display()));
    }
    outcome
        .to_do
        .push(format!("start Claude Code with the plugin: claude --plugin-dir {}", dir.display()));
    Ok(())
}
