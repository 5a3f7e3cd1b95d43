//! `memoird status`: shows what is in the folder, what is due and why, and whether a daemon runs.

mod text;

use std::process::ExitCode;

use serde::Serialize;

use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    config,
    operations::{
        error::CommandResult,
        format::with_tilde,
        status::{DAILY, StatusReport, problems, root_status},
        workspace::Invocation,
    },
};

/// Show what is in the folder, what is due, and why
///
/// The exit code is 1 if a job is stuck or failed when it was last tried.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {}

#[derive(Serialize)]
struct AllRootsReport {
    roots: Vec<RootStatus>,
}

/// The status of a root, or why it is unavailable.
#[derive(Serialize)]
#[serde(untagged)]
enum RootStatus {
    Available(Box<StatusReport>),
    Unavailable { root: String, error: String },
}

pub(super) fn run(global: &GlobalArgs, _args: StatusArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    match call.config.select_root(global.root.as_deref(), &call.environment) {
        Ok(path) => {
            call.open_root(&path)?.require_set_up()?;
            let status = root_status(&call, &path)?;
            if ui.is_json() {
                ui.json(&status);
            } else {
                text::print_status(&status, ui);
            }
            Ok(exit_code_if_failed(!status.is_healthy()))
        }
        Err(config::ConfigError::NoRootSelected { .. }) if !call.config.roots.is_empty() => {
            Ok(all_roots(&call, ui))
        }
        Err(error) => Err(error.into()),
    }
}

/// Lists the configured memory folders.
pub(super) fn list(global: &GlobalArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    if call.config.roots.is_empty() && !ui.is_json() {
        ui.note("no memory folder is configured; `memoird init DIR` creates one");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(all_roots(&call, ui))
}

/// Shows one line per configured root. An error of one root does not hide the others.
fn all_roots(call: &Invocation, ui: &Ui) -> ExitCode {
    let roots: Vec<RootStatus> = call
        .config
        .roots
        .iter()
        .map(|root| match root_status(call, &root.path) {
            Ok(status) => RootStatus::Available(Box::new(status)),
            Err(error) => RootStatus::Unavailable {
                root: root.path.display().to_string(),
                error: error.to_string(),
            },
        })
        .collect();
    let is_healthy =
        roots.iter().all(|it| matches!(it, RootStatus::Available(status) if status.is_healthy()));
    if ui.is_json() {
        ui.json(&AllRootsReport { roots });
        return exit_code_if_failed(!is_healthy);
    }
    let rows: Vec<Vec<String>> = roots
        .iter()
        .map(|it| match it {
            RootStatus::Available(it) => vec![
                with_tilde(&it.folder.root, &call.environment.home),
                it.tiers.iter().find(|it| it.tier == DAILY).map_or(0, |it| it.files).to_string(),
                it.due().count().to_string(),
                (it.blocked.parked.len() + it.blocked.failed.len()).to_string(),
                it.files.problems.len().to_string(),
                it.service.daemon.state().to_owned(),
            ],
            RootStatus::Unavailable { root, error } => {
                let unknown = || "-".to_owned();
                let root = with_tilde(root, &call.environment.home);
                vec![root, unknown(), unknown(), unknown(), unknown(), error.clone()]
            }
        })
        .collect();
    ui.table(&["memory folder", "logs", "due", "stuck", "problems", "daemon"], &rows);
    if let Some(problem) = problems::rival_folders_message(call) {
        ui.warn(problem);
    }
    ui.note("`memoird --root DIR status` shows one in detail");
    exit_code_if_failed(!is_healthy)
}
