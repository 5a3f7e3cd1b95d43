//! The requests that a run would send to a model, and their cost.

use std::process::ExitCode;

use crate::{
    commands::ui::Ui,
    compaction::{self, plan::Selection},
    engine::configured,
    operations::{
        error::{CommandError, CommandResult},
        forecast::{forecast, planned_requests, without_quiet_period},
        format::counted,
        workspace::{Invocation, MemoryRoot},
    },
    store::db::lineage::Lineage,
};

/// Prints the requests to the model, and sends nothing.
pub(super) fn show_prompts(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &Selection,
    ui: &Ui,
) -> CommandResult {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let plan =
        compaction::plan_snapshot(&view, &without_quiet_period(root), &engine, selection, call.now);
    let Some(requests) = planned_requests(call, root, &view, &plan)? else {
        return Err(CommandError::usage("the extractive engine sends no prompts")
            .hint("memoird compact --show-prompt --set engine=model"));
    };
    if ui.is_json() {
        ui.json(&requests);
        return Ok(ExitCode::SUCCESS);
    }
    if requests.is_empty() {
        ui.note("no prompt would be sent");
    }
    for request in &requests {
        ui.heading(format!("{} {}", request.stage.name(), request.period));
        ui.data(&request.system);
        for message in &request.messages {
            ui.data("");
            ui.data(&message.text);
        }
        ui.data("");
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the cost of `--redo` and asks whether to go on. Without a model there is no cost and no question.
pub(super) fn confirm_cost(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &Selection,
    ui: &Ui,
) -> CommandResult<bool> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let plan =
        compaction::plan_snapshot(&view, &without_quiet_period(root), &engine, selection, call.now);
    let forecast = forecast(call, root, &view, &plan)?.filter(|it| it.calls > 0);
    let Some(forecast) = forecast else { return Ok(true) };
    let jobs = counted(plan.jobs.len(), "job", "jobs");
    let cost = format!("{jobs} {}", forecast.describe(plan.due_after.len()));
    ui.confirm(format!("{cost}; continue?")).ok_or_else(|| {
        CommandError::usage(format!("{cost}; cannot ask for confirmation without a terminal"))
            .hint("add --yes to run them, or --dry-run to preview")
    })
}
