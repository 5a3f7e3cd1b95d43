//! `memoird uninstall`: takes out what memoird put outside of memory folders, and says what it leaves.
//!
//! - [`kept`] lists what stays: memory folders, the configuration, the program itself.
//!
//! Memory folders are not changed, but for the block that we keep in the `MEMORY.md` of a workspace of `OpenClaw`.
//! Settings of other programs get back the bytes that they had, if nothing else in them was changed since. Of the state
//! folder only files that memoird writes are removed.

mod kept;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde::Serialize;

use self::kept::Kept;
use super::{
    GlobalArgs,
    error_report::exit_code_if_failed,
    hooks::{
        install::HookSettingsChange,
        openclaw::{self, OpenClawRequest},
        programs::AgentProgram,
        project_folder,
    },
    service::{ManagedService, remove_empty_parents},
    ui::Ui,
};
use crate::{
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        workspace::Invocation,
    },
    session::queue,
};

/// The folder of sessions that wait to be saved.
const SPOOL: &str = "spool";
/// What builds with the feature `fleet` remember of stores in the network.
const TESTED_STORES: &str = "tested-stores";

/// Take out what memoird put outside of memory folders: hooks, service, state
///
/// Memory folders stay; only a block in the MEMORY.md of a workspace goes. Shows first what it removes, and what it leaves.
#[derive(Debug, clap::Args)]
pub(super) struct UninstallArgs {
    /// Show what would be removed, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
    /// Remove the configuration as well, with your own prompts and rules
    #[arg(long)]
    purge: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct UninstallReport {
    dry_run: bool,
    /// What was removed or restored, or would be.
    removed: Vec<Removal>,
    failed: Vec<RemovalFailure>,
    kept: Kept,
    to_do: Vec<String>,
}

#[derive(Serialize)]
struct Removal {
    /// `service`, `hooks`, `state`, or `configuration`.
    part: &'static str,
    path: PathBuf,
    /// What happens to it, if it is not simply removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    what: Option<String>,
}

/// Why a part was not removed, and what removes it.
#[derive(Serialize)]
struct RemovalFailure {
    part: &'static str,
    why: String,
    next: String,
}

pub(super) fn run(global: &GlobalArgs, args: &UninstallArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let mut parts = Parts::find(&call, global, args.purge)?;
    let mut preview = parts.report(&call, true);
    if preview.removed.is_empty() || args.dry_run {
        preview.dry_run = args.dry_run;
        preview.show(&parts, ui);
        return Ok(exit_code_if_failed(!preview.failed.is_empty()));
    }
    if !args.yes {
        if ui.is_interactive() {
            preview.print(&parts, ui);
        }
        let agreed = ui.confirm_or("Remove all of this? Memory folders stay.", || {
            CommandError::usage("cannot ask for confirmation without a terminal")
                .hint("memoird uninstall --yes")
                .hint("memoird uninstall --dry-run")
        })?;
        if !agreed {
            return Ok(ExitCode::SUCCESS);
        }
        let folder = call.environment.config_folder();
        let question = format!("Remove the configuration in {} as well?", folder.display());
        if !args.purge && folder.is_dir() && ui.confirm(question) == Some(true) {
            parts = Parts::find(&call, global, true)?;
        }
    }
    let report = parts.remove(&call, ui);
    report.show(&parts, ui);
    Ok(exit_code_if_failed(!report.failed.is_empty()))
}

/// Everything that can be removed.
struct Parts {
    service: ManagedService,
    hooks: Vec<(AgentProgram, HookSettingsChange)>,
    /// The memory folders in which `OpenClaw` works, each with the file that has a block of `WISDOM.md`.
    workspaces: Vec<(PathBuf, PathBuf)>,
    /// Settings in which hooks cannot be looked for.
    unusable: Vec<(AgentProgram, CommandError)>,
    /// Files and folders of state.
    state: Vec<PathBuf>,
    /// How many sessions wait there to be saved.
    unsaved_sessions: usize,
    /// The folder of the configuration, if it is to be removed.
    config: Option<PathBuf>,
    purge: bool,
}

impl Parts {
    fn find(call: &Invocation, global: &GlobalArgs, purge: bool) -> CommandResult<Self> {
        let around = &call.environment;
        let program = std::env::current_exe().map_err(|e| {
            CommandError::cannot_write(format!("cannot find the path of this program: {e}"))
        })?;
        let (mut hooks, mut unusable) = (Vec::new(), Vec::new());
        for agent in AgentProgram::ALL {
            match HookSettingsChange::all(agent, around, &program, true) {
                Ok(changes) => hooks.extend(changes.into_iter().map(|it| (agent, it))),
                Err(error) => unusable.push((agent, error)),
            }
        }
        let roots = call.config.roots.iter().filter_map(|it| {
            let settings = call.config.open(&it.path, around).ok()?;
            if !settings.is_writer(&around.host) {
                return None;
            }
            let file = it.path.join(settings.wisdom_block?);
            Some((it.path.clone(), file))
        });
        let workspaces = roots.collect();
        let config = Some(around.config_folder()).filter(|it| purge && is_real_folder(it));
        let service = ManagedService::new(call, global)?;
        let queue = queue::contents(around);
        let unsaved_sessions = queue.waiting.len() + queue.failed.len();
        let state = state_files(call);
        Ok(Self { service, hooks, workspaces, unusable, state, unsaved_sessions, config, purge })
    }

    /// Returns what would be removed.
    fn report(&self, call: &Invocation, dry_run: bool) -> UninstallReport {
        let removal = |part, path: PathBuf| Removal { part, path, what: None };
        let service = self.service.planned_removal().removed;
        let mut removed: Vec<Removal> =
            service.into_iter().map(|it| removal("service", it.into())).collect();
        removed.extend(self.hooks.iter().map(|(agent, change)| Removal {
            part: "hooks",
            path: change.path.clone(),
            what: Some(format!("{}: {}", agent.display_name(), change.describe())),
        }));
        let of_openclaw = |path: PathBuf, what: &str| Removal {
            part: "hooks",
            path,
            what: Some(format!("OpenClaw: {what}")),
        };
        let plugin = openclaw::installed_plugin(&call.environment);
        removed.extend(plugin.map(|it| of_openclaw(it, "the plugin")));
        let blocks = self.workspaces.iter().map(|it| it.1.clone());
        removed.extend(blocks.map(|it| of_openclaw(it, "the block with WISDOM.md")));
        let unsaved = self.unsaved_sessions;
        removed.extend(self.state.iter().map(|it| Removal {
            part: "state",
            path: it.clone(),
            what: (unsaved > 0 && it.ends_with(SPOOL)).then(|| {
                let sessions = counted(unsaved, "session is", "sessions are");
                format!("{sessions} not saved yet; `memoird status` names the reason")
            }),
        }));
        removed.extend(self.config.iter().map(|it| removal("configuration", it.clone())));
        let failed = self.unusable.iter().map(|(agent, error)| RemovalFailure {
            part: "hooks",
            why: error.to_string(),
            next: format!("correct the file, then: memoird init --{} --uninstall", agent.id()),
        });
        UninstallReport {
            dry_run,
            removed,
            failed: failed.collect(),
            kept: Kept::find(call, self.purge),
            to_do: Vec::new(),
        }
    }

    /// Removes everything; what fails does not keep the rest.
    fn remove(&self, call: &Invocation, ui: &Ui) -> UninstallReport {
        let mut report = self.report(call, false);
        let (mut failed, mut left) = (Vec::new(), Vec::new());
        let service = self.service.planned_removal().removed;
        if !service.is_empty() {
            match self.service.uninstall() {
                Ok(done) => report.to_do.extend(done.to_do),
                Err(error) => {
                    failed.push(RemovalFailure::new(
                        "service",
                        &error,
                        "memoird service uninstall",
                    ));
                    left.extend(service.into_iter().map(PathBuf::from));
                }
            }
        }
        for (agent, change) in self.hooks.iter().filter(|it| it.0 != AgentProgram::OpenClaw) {
            match change.write(call.now) {
                Ok(Some(backup)) => report.to_do.push(format!(
                    "{} was changed since the hooks were added, so only they were taken out; its text \
                     before is in {}",
                    change.path.display(),
                    backup.display()
                )),
                Ok(None) => {}
                Err(error) => {
                    let next = format!("memoird init --{} --uninstall", agent.id());
                    failed.push(RemovalFailure::new("hooks", &error, &next));
                    left.push(change.path.clone());
                }
            }
        }
        if let Err(error) = self.remove_from_openclaw(call, &mut report, ui) {
            failed.push(RemovalFailure::new(
                "hooks",
                &error,
                "memoird init --openclaw --uninstall",
            ));
            left.push(call.environment.openclaw_settings());
            left.extend(openclaw::installed_plugin(&call.environment));
        }
        // A daemon that was started by hand still uses its state.
        let daemon = project_folder::daemon_pid(&call.config).filter(|_| !self.state.is_empty());
        if let Some(pid) = daemon {
            failed.push(RemovalFailure {
                part: "state",
                why: format!("a daemon is running (process {pid})"),
                next: format!("kill {pid}, then: memoird uninstall"),
            });
            left.extend(self.state.iter().chain(&self.config).cloned());
        }
        let state = self.state.iter().map(|it| ("state", it));
        let config = self.config.iter().map(|it| ("configuration", it));
        for (part, path) in state.chain(config).filter(|_| daemon.is_none()) {
            let is_folder = is_real_folder(path);
            let done = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if let Err(error) = done {
                let what = format!("cannot remove `{}`: {error}", path.display());
                let error = CommandError::cannot_write(what);
                failed.push(RemovalFailure::new(part, &error, "memoird uninstall"));
                left.push(path.clone());
            }
        }
        // Removed only if it is empty: other files there belong to somebody else.
        drop(fs::remove_dir(state_folder(call)));
        report.removed.retain(|it| !left.contains(&it.path));
        for it in &report.removed {
            remove_empty_parents(&it.path, &call.environment);
        }
        report.failed.extend(failed);
        report
    }
}

impl Parts {
    fn remove_from_openclaw(
        &self,
        call: &Invocation,
        report: &mut UninstallReport,
        ui: &Ui,
    ) -> CommandResult<()> {
        let has_settings = self.hooks.iter().any(|it| it.0 == AgentProgram::OpenClaw);
        let has_plugin = openclaw::installed_plugin(&call.environment).is_some();
        if self.workspaces.is_empty() && !has_settings && !has_plugin {
            return Ok(());
        }
        let mut roots: Vec<PathBuf> = self.workspaces.iter().map(|it| it.0.clone()).collect();
        if roots.is_empty() {
            roots.push(openclaw::workspace(&call.environment)?);
        }
        for root in &roots {
            let request = OpenClawRequest { root, dry_run: false, yes: true, is_planned: true };
            let outcome = openclaw::uninstall(call, request, ui)?;
            // Where the backup is.
            report.to_do.extend(outcome.done.into_iter().filter(|it| it.contains("; backup: ")));
            report.to_do.extend(outcome.to_do);
        }
        Ok(())
    }
}

impl RemovalFailure {
    fn new(part: &'static str, error: &CommandError, next: &str) -> Self {
        let next = error.hints().first().cloned().unwrap_or_else(|| next.to_owned());
        Self { part, why: error.to_string(), next }
    }
}

fn state_folder(call: &Invocation) -> PathBuf {
    call.environment.state_home.join("memoird")
}

/// Returns the files and folders that memoird writes in the user's state folder.
fn state_files(call: &Invocation) -> Vec<PathBuf> {
    let is_ours =
        |name: &str| [SPOOL, TESTED_STORES].contains(&name) || name.starts_with("ledger.db");
    let entries = fs::read_dir(state_folder(call)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries
        .filter(|it| it.file_name().to_str().is_some_and(is_ours))
        .map(|it| it.path())
        .collect();
    files.sort();
    // The launch agent of macOS writes it.
    let log = call.environment.home.join("Library/Logs/memoird.log");
    files.extend(Some(log).filter(|it| it.is_file()));
    files
}

/// Returns whether a path is a folder and no link to one, whose contents belong elsewhere.
fn is_real_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|it| it.is_dir())
}

impl UninstallReport {
    fn show(&self, parts: &Parts, ui: &Ui) {
        if ui.is_json() {
            ui.json(self);
            return;
        }
        self.print(parts, ui);
        if self.dry_run && !self.removed.is_empty() {
            ui.note("nothing was changed; to do it: memoird uninstall --yes");
        } else if self.removed.is_empty() && self.failed.is_empty() {
            ui.success("nothing to do: no hooks, service or state of memoird is left");
        }
    }

    fn print(&self, parts: &Parts, ui: &Ui) {
        if self.dry_run {
            parts.hooks.iter().for_each(|it| it.1.show_diff(ui));
        }
        if !self.removed.is_empty() {
            ui.note(if self.dry_run { "would take out" } else { "took out" });
        }
        let mut last = "";
        for it in &self.removed {
            let path = it.path.display();
            let what = it.what.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
            ui.note(format_args!(
                "  {:<15}{path}{what}",
                if it.part == last { "" } else { it.part }
            ));
            last = it.part;
        }
        self.kept.print(ui);
        for failure in &self.failed {
            ui.warn(format!("{}: {}; next: {}", failure.part, failure.why, failure.next));
        }
        for what in &self.to_do {
            ui.warn(what);
        }
    }
}
