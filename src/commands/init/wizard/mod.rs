//! `memoird init` without arguments: finds agent programs and their data, proposes a plan, and follows it.
//!
//! - [`findings`] reads what is there and changes nothing.
//! - [`plan`] is pure: it decides what to propose.
//! - [`apply`] does the steps one after the other. A failing step is reported with its next command, and the others
//!   are still done. Each step writes whole files and does only what is missing, so an interrupted call is continued
//!   by the next one.
//! - [`report`] prints the plan and the result.

mod apply;
mod findings;
pub(super) mod plan;
mod report;

use std::process::ExitCode;

use self::{findings::Place, plan::SetupPlan, report::WizardReport};
use super::{InitArgs, report::InitReport};
use crate::{
    commands::{
        GlobalArgs, error_report::exit_code_if_failed, hooks::programs::AgentProgram, ui::Ui,
    },
    operations::{error::CommandResult, workspace::Invocation},
    store::fs::layout::Layout,
};

/// Returns whether a call without arguments starts the wizard: if a person can answer, if the answer is given, or in
/// the home folder, which is no memory folder. Otherwise a script sets up the current folder.
pub(super) fn is_wanted(call: &Invocation, args: &InitArgs, ui: &Ui) -> bool {
    args.yes || args.dry_run || ui.is_interactive() || findings::is_home(call)
}

/// Names the agent programs that a script could set up, too.
pub(super) fn hint(call: &Invocation) -> CommandResult<Option<String>> {
    let mut names = Vec::new();
    for program in AgentProgram::ALL {
        // Outside of its workspace nothing is proposed for OpenClaw.
        if program != AgentProgram::OpenClaw
            && program.folder(&call.environment).is_dir()
            && matches!(super::hooks::state(call, program)?, super::hooks::HookState::Missing(_))
        {
            names.push(program.display_name());
        }
    }
    let names = names.join(", ");
    Ok((!names.is_empty()).then(|| {
        format!(
            "{names} found without hooks: `memoird init --dry-run` shows a plan for them, \
             `memoird init --yes` does it"
        )
    }))
}

/// Shows the plan and follows it, unless this is a dry run or nobody agrees.
pub(super) fn run(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    ui: &Ui,
) -> CommandResult {
    let asks = !args.yes && !args.dry_run && ui.is_interactive();
    let findings = findings::read(call, global, ui)?;
    let mut plan = SetupPlan::new(&findings);
    // What a person agrees to includes the small questions of a single folder.
    let preview_args = InitArgs { dry_run: true, yes: args.yes || asks, ..InitArgs::default() };
    let mut folders = Vec::new();
    for planned in std::mem::take(&mut plan.folders) {
        match apply::set_up_folder(call, global, &preview_args, &planned, ui) {
            Ok(report) => {
                folders.push(report);
                plan.folders.push(planned);
            }
            // It cannot be set up; the others are still of use.
            Err(error) if matches!(findings.place, Place::Home) => ui.warn(error.to_string()),
            Err(error) => return Err(error),
        }
    }
    let is_untouched = |it: &&InitReport| {
        it.found.has_logs() && !Layout::new(it.root.clone(), &it.memory_dir).database().exists()
    };
    plan.compaction |= findings.is_free && folders.iter().any(|it| is_untouched(&it));
    let mut report = WizardReport::new(&findings, &plan, folders);
    report.dry_run = args.dry_run || !args.yes && !asks;
    if !ui.is_json() {
        // The plan stays on the screen.
        if args.dry_run {
            super::hooks::show_changes(call, &plan.hooks, ui)?;
        }
        report.print_findings(&findings, ui);
        if !report.has_nothing_to_do() {
            report.print_plan(&findings, &plan, ui);
        }
        report.print_to_do(ui);
    }
    if report.dry_run || report.has_nothing_to_do() {
        report.finish_without_changes(args.dry_run, ui);
        return Ok(ExitCode::SUCCESS);
    }
    if asks && ui.confirm("Set this up?") != Some(true) {
        ui.note("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    ui.note("done");
    report.add_result(apply::apply(global, &plan, ui));
    report.finish(ui);
    Ok(exit_code_if_failed(report.has_failed()))
}
