//! `memoird service`: runs the daemon as a service of the user's service manager.
//!
//! - [`unit`]: the text of the systemd unit.
//! - [`manager`]: calls of `systemctl` and `loginctl`.
//! - [`launchd`]: both for macOS.

mod launchd;
pub(super) mod manager;
pub(super) mod unit;

use std::{fs, io, path::Path, process::ExitCode};

use clap::Subcommand;
use serde::Serialize;

use self::{
    launchd::LaunchAgent,
    manager::UnitProperties,
    unit::{SystemdUnit, UnitState},
};
use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    config::environment::Environment,
    operations::{
        error::{CommandError, CommandResult},
        workspace::Invocation,
    },
};

/// Install, remove, or inspect the service: a systemd user unit, or a launch agent on macOS
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    #[command(subcommand)]
    verb: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Write the unit for this program and the configured folders, and start it
    Install(InstallArgs),
    /// Stop the service and remove its unit, and nothing else
    Uninstall(UninstallArgs),
    /// Show the unit, its state, and whether it runs while you are logged out
    Status,
    /// Print the unit, or the launch agent, that `install` would write
    Print(PrintArgs),
}

#[derive(Debug, clap::Args)]
struct PrintArgs {
    /// The service manager to print it for [default: that of this system]
    #[arg(long = "for", value_enum, value_name = "MANAGER")]
    manager: Option<ServiceManagerKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ServiceManagerKind {
    /// A user unit
    Systemd,
    /// A launch agent of macOS
    Launchd,
}

#[derive(Debug, clap::Args)]
struct InstallArgs {
    /// Overwrite a unit that was edited or is from another version
    #[arg(long)]
    force: bool,
    /// Write the unit but do not start it
    #[arg(long)]
    no_start: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct UninstallArgs {
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// What `install` and `uninstall` did; what they print as JSON.
#[derive(Default, Serialize)]
pub(super) struct ServiceReport {
    dry_run: bool,
    pub(super) wrote: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) started: bool,
    /// Why the service runs without namespaces.
    plain: Option<String>,
    pub(super) to_do: Vec<String>,
}

/// What `status` prints as JSON.
#[derive(Default, Serialize)]
struct ServiceStatus {
    unit: String,
    /// How the installed unit compares to the current one: `none`, `same`, `other-paths`, or `differs`.
    installed: &'static str,
    enabled: Option<String>,
    active: Option<String>,
    says: Option<String>,
    pid: Option<u32>,
    restarts: Option<u32>,
    memory_bytes: Option<u64>,
    lingers: Option<bool>,
    plain: bool,
    /// Why the service manager did not answer.
    manager: Option<String>,
}

pub(super) fn run(global: &GlobalArgs, args: &ServiceArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let managed = ManagedService::new(&call, global)?;
    let report = match &args.verb {
        ServiceCommand::Print(args) => {
            let text = match args.manager.unwrap_or(SYSTEM_MANAGER) {
                ServiceManagerKind::Systemd => managed.unit.text(),
                ServiceManagerKind::Launchd => &managed.agent.text,
            };
            ui.data(text.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        ServiceCommand::Status if SYSTEM_MANAGER == ServiceManagerKind::Launchd => {
            agent_status(&managed.agent, ui);
            return Ok(ExitCode::SUCCESS);
        }
        ServiceCommand::Status => return Ok(status(&managed.unit, ui)),
        ServiceCommand::Install(args) => {
            require_configured_folders(&call)?;
            managed.install(args)?
        }
        ServiceCommand::Uninstall(args) => {
            let planned = managed.planned_removal();
            if planned.removed.is_empty() || args.dry_run {
                planned
            } else if confirm_removal(args, ui)? {
                let done = managed.uninstall()?;
                for file in &done.removed {
                    remove_empty_parents(Path::new(file), &call.environment);
                }
                done
            } else {
                return Ok(ExitCode::SUCCESS);
            }
        }
    };
    report.print(ui);
    Ok(ExitCode::SUCCESS)
}

const SYSTEM_MANAGER: ServiceManagerKind = if cfg!(target_os = "macos") {
    ServiceManagerKind::Launchd
} else {
    ServiceManagerKind::Systemd
};

/// The service as this program and the configuration want it, for the manager of this system.
pub(super) struct ManagedService {
    unit: SystemdUnit,
    agent: LaunchAgent,
}

impl ManagedService {
    pub(super) fn new(call: &Invocation, global: &GlobalArgs) -> CommandResult<Self> {
        let named =
            global.config.is_some() || call.environment.variable("MEMOIRD_CONFIG").is_some();
        let config = call.config.file.as_deref().filter(|_| named);
        let agent = LaunchAgent::new(&call.environment, &this_program()?, config);
        Ok(Self { unit: systemd_unit(call, global, None)?, agent })
    }

    /// Returns the file of the service.
    pub(super) fn path(&self) -> &Path {
        match SYSTEM_MANAGER {
            ServiceManagerKind::Systemd => &self.unit.path,
            ServiceManagerKind::Launchd => &self.agent.path,
        }
    }

    /// Returns how the installed file compares to the current one.
    pub(super) fn state(&self) -> UnitState {
        match (SYSTEM_MANAGER, self.agent.matches_file()) {
            (ServiceManagerKind::Systemd, _) => self.unit.state,
            (ServiceManagerKind::Launchd, None) => UnitState::New,
            (ServiceManagerKind::Launchd, Some(true)) => UnitState::Same,
            (ServiceManagerKind::Launchd, Some(false)) => UnitState::Differs,
        }
    }

    /// Installs and starts the service, unless the installed file was edited.
    pub(super) fn install_and_start(&self) -> CommandResult<ServiceReport> {
        self.install(&InstallArgs { force: false, no_start: false, dry_run: false })
    }

    fn install(&self, args: &InstallArgs) -> CommandResult<ServiceReport> {
        match SYSTEM_MANAGER {
            ServiceManagerKind::Systemd => install_unit(&self.unit, args),
            ServiceManagerKind::Launchd => install_agent(&self.agent, args),
        }
    }

    /// Returns what [`Self::uninstall`] would remove.
    pub(super) fn planned_removal(&self) -> ServiceReport {
        let removed = match SYSTEM_MANAGER {
            ServiceManagerKind::Systemd => self.unit.files(),
            ServiceManagerKind::Launchd => {
                self.agent.matches_file().map(|_| self.agent.path.clone()).into_iter().collect()
            }
        };
        let removed = removed.iter().map(|it| it.display().to_string()).collect();
        ServiceReport { dry_run: true, removed, ..ServiceReport::default() }
    }

    /// Stops the service and removes its files.
    pub(super) fn uninstall(&self) -> CommandResult<ServiceReport> {
        let mut report = ServiceReport { dry_run: false, ..self.planned_removal() };
        let stopped = match SYSTEM_MANAGER {
            ServiceManagerKind::Systemd => manager::stop(),
            ServiceManagerKind::Launchd => launchd::stop(),
        };
        if let Err(why) = stopped {
            report.to_do.push(format!("cannot stop the service ({why})"));
        }
        match SYSTEM_MANAGER {
            ServiceManagerKind::Systemd => remove_unit(&self.unit)?,
            ServiceManagerKind::Launchd => self.agent.remove()?,
        }
        Ok(report)
    }
}

/// Returns why no service manager of the user answers, as in a container; `None` if one does.
pub(super) fn why_no_manager() -> Option<String> {
    match SYSTEM_MANAGER {
        ServiceManagerKind::Systemd => manager::why_unavailable(),
        ServiceManagerKind::Launchd => None,
    }
}

fn install_agent(agent: &LaunchAgent, args: &InstallArgs) -> CommandResult<ServiceReport> {
    let shown = agent.path.display().to_string();
    if agent.matches_file() == Some(false) && !args.force {
        let what = format!("`{shown}` differs from the current launch agent");
        return Err(CommandError::usage(what).hint("memoird service install --force"));
    }
    let mut report = ServiceReport { dry_run: args.dry_run, ..ServiceReport::default() };
    report.wrote.extend((agent.matches_file() != Some(true)).then_some(shown));
    if !args.dry_run {
        agent.write()?;
        if !args.no_start {
            match agent.start() {
                Ok(()) => report.started = true,
                Err(why) => report.to_do.push(format!(
                    "the service was not started ({why}); start it with: {}",
                    agent.start_command()
                )),
            }
        }
    }
    Ok(report)
}

fn agent_status(agent: &LaunchAgent, ui: &Ui) {
    let state = launchd::agent_state();
    let installed = match agent.matches_file() {
        None => "none",
        Some(true) => "same",
        Some(false) => "differs",
    };
    let status = ServiceStatus {
        unit: agent.path.display().to_string(),
        installed,
        active: state.clone().ok(),
        manager: state.err(),
        ..ServiceStatus::default()
    };
    if ui.is_json() {
        ui.json(&status);
        return;
    }
    let ServiceStatus { unit, active, manager, .. } = &status;
    let why = manager.as_ref().map(|it| format!("unknown ({it})"));
    ui.data(format!("agent     {unit} ({installed})"));
    ui.data(format!("service   {}", active.clone().or(why).unwrap_or_default()));
}

fn this_program() -> CommandResult<std::path::PathBuf> {
    std::env::current_exe().map_err(|e| {
        CommandError::cannot_write(format!("cannot find the path of this program: {e}"))
    })
}

fn require_configured_folders(call: &Invocation) -> CommandResult<()> {
    if !call.config.roots.is_empty() {
        return Ok(());
    }
    let what = "no memory folder is configured, so the service has nothing to do";
    Err(CommandError::usage(what).hint("memoird init DIR --service"))
}

/// Asks for confirmation to remove the service.
fn confirm_removal(args: &UninstallArgs, ui: &Ui) -> CommandResult<bool> {
    if args.yes {
        return Ok(true);
    }
    ui.confirm_or("Stop the service and remove its unit? Memories and settings are kept.", || {
        CommandError::usage("cannot ask for confirmation without a terminal")
            .hint("memoird service uninstall --yes")
            .hint("memoird service uninstall --dry-run")
    })
}

/// Prepares the unit for this program; `more` is an additional folder that is being set up.
pub(super) fn systemd_unit(
    call: &Invocation,
    global: &GlobalArgs,
    more: Option<&Path>,
) -> CommandResult<SystemdUnit> {
    let program = this_program()?;
    let named = global.config.is_some() || call.environment.variable("MEMOIRD_CONFIG").is_some();
    Ok(SystemdUnit::new(&call.environment, &call.config, &program, named, more))
}

pub(super) const START_COMMAND: &str =
    "systemctl --user daemon-reload && systemctl --user enable --now memoird";

/// How to keep the service running while nobody is logged in.
pub(super) const LINGER_HINT: &str =
    "the service runs only while you are logged in; to run it always: loginctl enable-linger";

fn install_unit(unit: &SystemdUnit, args: &InstallArgs) -> CommandResult<ServiceReport> {
    let shown = unit.path.display().to_string();
    if unit.state == UnitState::Differs && !args.force {
        let what = format!("`{shown}` differs from the current unit");
        return Err(CommandError::usage(what)
            .hint("to overwrite it: memoird service install --force")
            .hint("to keep your own settings, use a drop-in: systemctl --user edit memoird"));
    }
    let mut report = ServiceReport {
        dry_run: args.dry_run,
        plain: unit.plain_reason.clone(),
        ..ServiceReport::default()
    };
    if unit.state != UnitState::Same {
        report.wrote.push(shown);
    }
    if unit.plain_reason.is_some() {
        report.wrote.push(unit.drop_in().display().to_string());
    }
    if !args.dry_run {
        unit.write()?;
        if !args.no_start {
            match manager::start(matches!(unit.state, UnitState::Differs | UnitState::OtherPaths)) {
                Ok(()) => report.started = true,
                Err(why) => report.to_do.push(format!(
                    "the service was not started ({why}); start it with: {START_COMMAND}"
                )),
            }
        }
    }
    if manager::is_linger_enabled() == Some(false) {
        report.to_do.push(LINGER_HINT.to_owned());
    }
    Ok(report)
}

/// Removes the folders that a removed file leaves empty, up to the home folder and the folders for all programs.
pub(super) fn remove_empty_parents(removed: &Path, around: &Environment) {
    let bases = [&around.home, &around.config_home, &around.state_home, &around.data_home];
    for folder in removed.ancestors().skip(1) {
        let is_inside = bases.iter().any(|it| folder.starts_with(it));
        // Only an empty folder can be removed in this way.
        if !is_inside
            || bases.iter().any(|it| it.starts_with(folder))
            || fs::remove_dir(folder).is_err()
        {
            return;
        }
    }
}

fn remove_unit(unit: &SystemdUnit) -> CommandResult<()> {
    for file in &unit.files() {
        fs::remove_file(file).map_err(|e| file_error("remove", file, &e))?;
        // Removes the folder of drop-ins if it is empty.
        if let Some(folder) = file.parent().filter(|it| it.extension().is_some()) {
            drop(fs::remove_dir(folder));
        }
    }
    if let Err(why) = manager::reload() {
        tracing::debug!("{why}");
    }
    Ok(())
}

fn status(unit: &SystemdUnit, ui: &Ui) -> ExitCode {
    let (properties, manager) = match UnitProperties::query() {
        Ok(properties) => (properties, None),
        Err(why) => (UnitProperties::default(), Some(why)),
    };
    let text = |name: &str| properties.get(name).map(str::to_owned);
    let number = |name: &str| properties.get(name).and_then(|it| it.parse::<u64>().ok());
    let small = |name: &str| number(name).and_then(|it| u32::try_from(it).ok());
    let status = ServiceStatus {
        unit: unit.path.display().to_string(),
        installed: match unit.state {
            UnitState::New => "none",
            UnitState::Same => "same",
            UnitState::OtherPaths => "other-paths",
            UnitState::Differs => "differs",
        },
        enabled: text("UnitFileState"),
        active: text("ActiveState"),
        says: text("StatusText"),
        pid: small("MainPID").filter(|it| *it > 0),
        restarts: small("NRestarts"),
        memory_bytes: number("MemoryCurrent"),
        lingers: manager::is_linger_enabled(),
        plain: unit.drop_in().exists(),
        manager,
    };
    let has_failed = status.active.as_deref() == Some("failed");
    if ui.is_json() {
        ui.json(&status);
    } else {
        status.print(unit, ui);
    }
    exit_code_if_failed(has_failed)
}

impl ServiceStatus {
    fn print(&self, unit: &SystemdUnit, ui: &Ui) {
        ui.data(match unit.state {
            UnitState::New => {
                "unit      not installed; `memoird service install` installs it".to_owned()
            }
            UnitState::Same => format!("unit      {}", self.unit),
            UnitState::OtherPaths => format!(
                "unit      {}, with other paths than those configured; \
                 `memoird service install` updates it",
                self.unit
            ),
            UnitState::Differs => format!(
                "unit      {}, which differs from the current unit; \
                 `memoird service install --force` overwrites it",
                self.unit
            ),
        });
        let state = match (&self.active, &self.manager) {
            (_, Some(why)) => format!("unknown ({why})"),
            (Some(active), _) => {
                let pid = self.pid.map(|it| format!(" (process {it})")).unwrap_or_default();
                let enabled = self.enabled.as_deref().map(|it| format!(", {it}"));
                format!("{active}{pid}{}", enabled.unwrap_or_default())
            }
            (None, None) => "unknown".to_owned(),
        };
        ui.data(format!("service   {state}"));
        if let Some(says) = &self.says {
            ui.data(format!("says      {says}"));
        }
        if let Some(restarts) = self.restarts.filter(|it| *it > 0) {
            ui.data(format!("restarts  {restarts}; see `journalctl --user -u memoird`"));
        }
        match (self.plain, &unit.plain_reason) {
            // Without a unit there is nothing that has a sandbox.
            _ if matches!(unit.state, UnitState::New) => {}
            (true, Some(why)) => ui.data(format!("sandbox   without namespaces: {why}")),
            (true, None) => ui.data("sandbox   without namespaces, by a drop-in"),
            (false, _) => {
                ui.data("sandbox   sees the memory folders and nothing else of your home");
            }
        }
        match self.lingers {
            Some(true) => ui.data("linger    runs even while you are logged out"),
            Some(false) => ui.data(format!("linger    {LINGER_HINT}")),
            None => {}
        }
    }
}

impl ServiceReport {
    fn print(&self, ui: &Ui) {
        if ui.is_json() {
            ui.json(self);
            return;
        }
        let (wrote, removed) =
            if self.dry_run { ("would write", "would remove") } else { ("wrote", "removed") };
        for file in &self.wrote {
            ui.note(format!("{wrote} {file}"));
        }
        for file in &self.removed {
            ui.note(format!("{removed} {file}"));
        }
        if let Some(why) = &self.plain {
            ui.note(format!("runs without namespaces: {why}"));
        }
        for what in &self.to_do {
            ui.warn(what);
        }
        if self.started {
            ui.success("the service is running; `memoird service status` shows its state");
        } else if self.wrote.is_empty() && self.removed.is_empty() && self.to_do.is_empty() {
            ui.note("nothing to do");
        }
    }
}

pub(super) fn file_error(what: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::cannot_write(format!("cannot {what} `{}`: {error}", path.display()))
}
