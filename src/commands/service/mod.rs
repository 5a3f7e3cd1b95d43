//! `memoird service`: the daemon as a service of the user's own manager.
//!
//! - [`unit`]: the text of the unit, for this program and these folders.
//! - [`manager`]: the manager, asked through its own programs.
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
use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::Invocation,
};

/// Install, remove, or look at the service of your own: a systemd user unit, on macOS a launch agent
#[derive(Debug, clap::Args)]
pub(super) struct ServiceArgs {
    #[command(subcommand)]
    verb: ServiceCommand,
}

#[derive(Debug, Subcommand)]
enum ServiceCommand {
    /// Write the unit for this program and the configured folders, and start it
    Install(InstallArgs),
    /// Stop the service and remove its unit; nothing else is touched
    Uninstall(UninstallArgs),
    /// Show the unit, its state, and whether it runs while you are logged out
    Status,
    /// Print the unit, or the launch agent, that `install` would write
    Print(PrintArgs),
}

#[derive(Debug, clap::Args)]
struct PrintArgs {
    /// What is to run it; by default what this system has
    #[arg(long = "for", value_enum, value_name = "SYSTEM_MANAGER")]
    manager: Option<ServiceManagerKind>,
}

/// What keeps services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ServiceManagerKind {
    /// A user unit
    Systemd,
    /// A launch agent of macOS
    Launchd,
}

#[derive(Debug, clap::Args)]
struct InstallArgs {
    /// Replace a unit that says something else
    #[arg(long)]
    force: bool,
    /// Write the unit and do not start it
    #[arg(long)]
    no_start: bool,
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, clap::Args)]
struct UninstallArgs {
    /// Say what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Answer yes to what would be asked
    #[arg(short, long)]
    yes: bool,
}

/// What `install` and `uninstall` print as JSON.
#[derive(Default, Serialize)]
struct ServiceReport {
    dry_run: bool,
    wrote: Vec<String>,
    removed: Vec<String>,
    started: bool,
    /// Why namespaces are not used.
    plain: Option<String>,
    to_do: Vec<String>,
}

/// What `status` prints as JSON.
#[derive(Default, Serialize)]
struct ServiceStatus {
    unit: String,
    /// `none`, `same`, `other-paths`, or `differs` from what would be written now.
    installed: &'static str,
    enabled: Option<String>,
    active: Option<String>,
    says: Option<String>,
    pid: Option<u32>,
    restarts: Option<u32>,
    memory_bytes: Option<u64>,
    lingers: Option<bool>,
    plain: bool,
    /// Why the manager does not answer.
    manager: Option<String>,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &ServiceArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let unit = systemd_unit(&call, global, None)?;
    let agent = launch_agent(&call, global)?;
    if let ServiceCommand::Print(args) = &args.verb {
        let text = match args.manager.unwrap_or(SYSTEM_MANAGER) {
            ServiceManagerKind::Systemd => unit.text(),
            ServiceManagerKind::Launchd => &agent.text,
        };
        ui.data(text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    if SYSTEM_MANAGER == ServiceManagerKind::Launchd {
        return run_with_launchd(&call, &agent, &args.verb, ui);
    }
    match &args.verb {
        ServiceCommand::Install(args) => install(&call, &unit, args, ui),
        ServiceCommand::Uninstall(args) => uninstall(&unit, args, ui),
        ServiceCommand::Status | ServiceCommand::Print(_) => Ok(status(&unit, ui)),
    }
}

/// What keeps the services of this system.
const SYSTEM_MANAGER: ServiceManagerKind = if cfg!(target_os = "macos") {
    ServiceManagerKind::Launchd
} else {
    ServiceManagerKind::Systemd
};

fn launch_agent(call: &Invocation, global: &GlobalArgs) -> Result<LaunchAgent, CommandError> {
    let named = global.config.is_some() || call.environment.variable("MEMOIRD_CONFIG").is_some();
    let config = call.config.file.as_deref().filter(|_| named);
    Ok(LaunchAgent::new(&call.environment, &this_program()?, config))
}

/// Does on macOS what the others do with systemd.
fn run_with_launchd(
    call: &Invocation,
    agent: &LaunchAgent,
    verb: &ServiceCommand,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let shown = agent.path.display().to_string();
    let mut report = ServiceReport::default();
    match verb {
        ServiceCommand::Install(args) => {
            require_configured_folders(call)?;
            if agent.matches_file() == Some(false) && !args.force {
                let what = format!("`{shown}` says something else than what would be written now");
                return Err(CommandError::new(CommandErrorKind::Usage, what)
                    .hint("memoird service install --force"));
            }
            report.dry_run = args.dry_run;
            report.wrote.extend((agent.matches_file() != Some(true)).then_some(shown));
            if !args.dry_run {
                agent.write()?;
                if !args.no_start {
                    match agent.start() {
                        Ok(()) => report.started = true,
                        Err(why) => report.to_do.push(format!(
                            "the service is not started ({why}); type: {}",
                            agent.start_command()
                        )),
                    }
                }
            }
        }
        ServiceCommand::Uninstall(args) => {
            report.dry_run = args.dry_run;
            report.removed.extend(agent.matches_file().map(|_| shown));
            if !report.removed.is_empty() && !args.dry_run {
                if !confirm_removal(args, ui)? {
                    return Ok(ExitCode::SUCCESS);
                }
                if let Err(why) = launchd::stop() {
                    report.to_do.push(format!("the service could not be stopped ({why})"));
                }
                agent.remove()?;
            }
        }
        ServiceCommand::Status | ServiceCommand::Print(_) => {
            let state = launchd::agent_state();
            let installed = match agent.matches_file() {
                None => "none",
                Some(true) => "same",
                Some(false) => "differs",
            };
            let status = ServiceStatus {
                unit: shown,
                installed,
                active: state.clone().ok(),
                manager: state.err(),
                ..ServiceStatus::default()
            };
            if ui.is_json() {
                ui.json(&status);
            } else {
                let ServiceStatus { unit, active, manager, .. } = &status;
                let why = manager.as_ref().map(|it| format!("unknown ({it})"));
                ui.data(format!("agent     {unit} ({installed})"));
                ui.data(format!("service   {}", active.clone().or(why).unwrap_or_default()));
            }
            return Ok(ExitCode::SUCCESS);
        }
    }
    report.print(ui);
    Ok(ExitCode::SUCCESS)
}

fn this_program() -> Result<std::path::PathBuf, CommandError> {
    std::env::current_exe().map_err(|e| {
        CommandError::new(
            CommandErrorKind::CannotWrite,
            format!("cannot tell where this program is: {e}"),
        )
    })
}

fn require_configured_folders(call: &Invocation) -> Result<(), CommandError> {
    if !call.config.roots.is_empty() {
        return Ok(());
    }
    let what = "no memory folder is configured, so the service would have nothing to do";
    Err(CommandError::new(CommandErrorKind::Usage, what).hint("memoird init DIR --service"))
}

/// Asks whether the service may be removed.
fn confirm_removal(args: &UninstallArgs, ui: &Ui) -> Result<bool, CommandError> {
    if args.yes {
        return Ok(true);
    }
    match ui.confirm("Stop the service and remove its unit? Memories and settings stay.") {
        Some(true) => Ok(true),
        Some(false) => {
            ui.note("nothing was changed");
            Ok(false)
        }
        None => {
            let what = "`uninstall` asks, and nobody can answer";
            Err(CommandError::new(CommandErrorKind::Usage, what)
                .hint("memoird service uninstall --yes")
                .hint("memoird service uninstall --dry-run"))
        }
    }
}

/// Prepares the unit for this program, with one more folder where one is being set up.
pub(super) fn systemd_unit(
    call: &Invocation,
    global: &GlobalArgs,
    more: Option<&Path>,
) -> Result<SystemdUnit, CommandError> {
    let program = this_program()?;
    let named = global.config.is_some() || call.environment.variable("MEMOIRD_CONFIG").is_some();
    Ok(SystemdUnit::new(&call.environment, &call.config, &program, named, more))
}

/// What to type where the manager does not answer.
pub(super) const START_COMMAND: &str =
    "systemctl --user daemon-reload && systemctl --user enable --now memoird";

/// What to type so that the service runs while nobody is logged in.
pub(super) const LINGER_HINT: &str =
    "it runs only while you are logged in; so that it always does, type: loginctl enable-linger";

fn install(
    call: &Invocation,
    unit: &SystemdUnit,
    args: &InstallArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    require_configured_folders(call)?;
    let shown = unit.path.display().to_string();
    if unit.state == UnitState::Differs && !args.force {
        let what = format!("`{shown}` says something else than what would be written now");
        return Err(CommandError::new(CommandErrorKind::Usage, what)
            .hint("memoird service install --force")
            .hint("what is yours belongs into a drop-in: systemctl --user edit memoird"));
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
                Err(why) => report
                    .to_do
                    .push(format!("the service is not started ({why}); type: {START_COMMAND}")),
            }
        }
    }
    if manager::is_linger_enabled() == Some(false) {
        report.to_do.push(LINGER_HINT.to_owned());
    }
    report.print(ui);
    Ok(ExitCode::SUCCESS)
}

fn uninstall(unit: &SystemdUnit, args: &UninstallArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    let files = unit.files();
    let mut report = ServiceReport { dry_run: args.dry_run, ..ServiceReport::default() };
    report.removed.extend(files.iter().map(|it| it.display().to_string()));
    if files.is_empty() || args.dry_run {
        report.print(ui);
        return Ok(ExitCode::SUCCESS);
    }
    if !confirm_removal(args, ui)? {
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(why) = manager::stop() {
        report.to_do.push(format!("the service could not be stopped ({why})"));
    }
    for file in &files {
        fs::remove_file(file).map_err(|e| file_error("remove", file, &e))?;
        // The folder of drop-ins, where nothing else is in it.
        if let Some(folder) = file.parent().filter(|it| it.extension().is_some()) {
            drop(fs::remove_dir(folder));
        }
    }
    if let Err(why) = manager::reload() {
        tracing::debug!("{why}");
    }
    report.print(ui);
    Ok(ExitCode::SUCCESS)
}

fn status(unit: &SystemdUnit, ui: &Ui) -> ExitCode {
    let asked = UnitProperties::query();
    let (shown, manager) = match asked {
        Ok(shown) => (shown, None),
        Err(why) => (UnitProperties::default(), Some(why)),
    };
    let text = |name: &str| shown.get(name).map(str::to_owned);
    let number = |name: &str| shown.get(name).and_then(|it| it.parse::<u64>().ok());
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
    let is_well = status.active.as_deref() != Some("failed");
    if ui.is_json() {
        ui.json(&status);
    } else {
        status.print(unit, ui);
    }
    if is_well { ExitCode::SUCCESS } else { CommandErrorKind::Job.exit_code().into() }
}

impl ServiceStatus {
    fn print(&self, unit: &SystemdUnit, ui: &Ui) {
        ui.data(match unit.state {
            UnitState::New => {
                "unit      not installed; `memoird service install` does it".to_owned()
            }
            UnitState::Same => format!("unit      {}", self.unit),
            UnitState::OtherPaths => format!(
                "unit      {}, which names other paths than are configured now; \
                 `memoird service install` brings it in step",
                self.unit
            ),
            UnitState::Differs => format!(
                "unit      {}, which says something else than what would be written now; \
                 `memoird service install --force` writes it anew",
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
            ui.data(format!("restarts  {restarts}; `journalctl --user -u memoird` says why"));
        }
        ui.data(match (self.plain, &unit.plain_reason) {
            (true, Some(why)) => format!("sandbox   without namespaces: {why}"),
            (true, None) => "sandbox   without namespaces, by a drop-in".to_owned(),
            (false, _) => {
                "sandbox   it sees the memory folders and nothing else of your home".to_owned()
            }
        });
        match self.lingers {
            Some(true) => ui.data("linger    it runs while you are logged out, too"),
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
        let would = if self.dry_run { "would be " } else { "" };
        for file in &self.wrote {
            ui.note(format!("{would}written: {file}"));
        }
        for file in &self.removed {
            ui.note(format!("{would}removed: {file}"));
        }
        if let Some(why) = &self.plain {
            ui.note(format!("runs without namespaces: {why}"));
        }
        for what in &self.to_do {
            ui.warn(what);
        }
        if self.started {
            ui.success("the service runs; `memoird service status` says how it is");
        } else if self.wrote.is_empty() && self.removed.is_empty() && self.to_do.is_empty() {
            ui.note("nothing to do");
        }
    }
}

/// Says that a file or folder could not be changed.
pub(super) fn file_error(what: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(
        CommandErrorKind::CannotWrite,
        format!("cannot {what} `{}`: {error}", path.display()),
    )
}
