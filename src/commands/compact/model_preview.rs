//! What a model would be asked, and what that may cost.

use std::{process::ExitCode, sync::Arc};

use serde::Serialize;

use crate::{
    commands::{
        error::{CommandError, CommandErrorKind},
        ui::Ui,
        workspace::{Invocation, MemoryRoot},
    },
    compaction::{
        self, RootSnapshot,
        plan::{CompactionPlan, Selection},
        preview,
    },
    config::{duration::Span, root::RootSettings, settings::EngineKind},
    engine::configured,
    model::{ModelRequest, RequestRecorder, connect, token_estimate},
    store::db::lineage::Lineage,
};

/// What jobs would take of a model. Tokens are estimated by what was learned of it; the price is that of
/// the longest replies that are allowed.
#[derive(Clone, Copy, Serialize)]
pub(super) struct RunForecast {
    calls: usize,
    chars: usize,
    /// How many characters a token has, on average.
    chars_per_token: f64,
    input_tokens: u64,
    output_tokens_max: u64,
    /// US dollars; null without a price.
    usd_max: Option<f64>,
}

/// Returns what jobs would ask of a model; `None` with the extractive engine.
fn planned_requests(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> Result<Option<Vec<ModelRequest>>, CommandError> {
    if root.settings.settings.engine == EngineKind::Extractive {
        return Ok(None);
    }
    let known = connect::model_info(&call.environment, &root.settings.settings.model);
    let recorder = Arc::new(RequestRecorder::for_model(known));
    let engine = configured::recording_engine(&recorder, &root.settings, &call.environment)
        .map_err(|e| CommandError::new(CommandErrorKind::Config, e))?;
    preview::preview_requests(&root.vault, &root.settings, view, plan, &engine)?;
    Ok(Some(recorder.take_requests()))
}

/// Returns what jobs would take of a model; `None` with the extractive engine.
pub(super) fn forecast(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> Result<Option<RunForecast>, CommandError> {
    let Some(requests) = planned_requests(call, root, view, plan)? else { return Ok(None) };
    let pricing = connect::pricing(&call.environment)
        .map_err(|e| CommandError::new(CommandErrorKind::Config, e))?;
    let price = pricing.of(&root.settings.settings.model.name);
    let chars = requests.iter().map(ModelRequest::chars).sum();
    let known = connect::model_info(&call.environment, &root.settings.settings.model);
    let chars_per_token = token_estimate::average_chars_per_token(known.token_ratio);
    let tokens = |it: &ModelRequest| token_estimate::estimate(it.chars() as u64, chars_per_token);
    let costs = |it: &ModelRequest| {
        price.map(|p| p.worst_case_cost(tokens(it), it.max_output_tokens.into()))
    };
    Ok(Some(RunForecast {
        calls: requests.len(),
        chars,
        chars_per_token,
        input_tokens: requests.iter().map(tokens).sum(),
        output_tokens_max: requests.iter().map(|it| u64::from(it.max_output_tokens)).sum(),
        usd_max: requests.iter().map(costs).sum(),
    }))
}

/// Returns the settings by which is foreseen what a person's pass does: it waits until logs that were just
/// written are quiet.
pub(super) fn without_quiet_period(root: &MemoryRoot) -> RootSettings {
    let mut settings = root.settings.clone();
    settings.settings.compaction.quiet = Span::from_secs(0);
    settings
}

/// Prints what would be asked, and sends nothing.
pub(super) fn show_prompts(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &Selection,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let plan =
        compaction::plan_snapshot(&view, &without_quiet_period(root), &engine, selection, call.now);
    let Some(requests) = planned_requests(call, root, &view, &plan)? else {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            "the extractive engine asks no model",
        )
        .hint("memoird compact --show-prompt --set engine=model"));
    };
    if ui.is_json() {
        ui.json(&requests);
        return Ok(ExitCode::SUCCESS);
    }
    if requests.is_empty() {
        ui.note("nothing would be asked");
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

/// Says what it may cost to do again what another engine did, and asks whether to go on. Where no model
/// is asked, nobody is.
pub(super) fn confirm_cost(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &Selection,
    ui: &Ui,
) -> Result<bool, CommandError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let plan =
        compaction::plan_snapshot(&view, &without_quiet_period(root), &engine, selection, call.now);
    let forecast = forecast(call, root, &view, &plan)?.filter(|it| it.calls > 0);
    let Some(forecast) = forecast else { return Ok(true) };
    let told = forecast.describe(plan.due_after.len());
    match ui.confirm(format!("{} jobs {told}; go on?", plan.jobs.len())) {
        Some(agreed) => Ok(agreed),
        None => Err(CommandError::new(
            CommandErrorKind::Usage,
            format!("{} jobs {told}, and nobody can be asked here", plan.jobs.len()),
        )
        .hint("add --yes to do it, or --dry-run to look only")),
    }
}

impl RunForecast {
    pub(super) fn describe(&self, following: usize) -> String {
        let money = match self.usd_max {
            Some(usd) => format!("at most {usd:.2} USD"),
            None => "no price is known".to_owned(),
        };
        let more = if following > 0 { "; what follows comes on top" } else { "" };
        format!(
            "would take {} calls of about {} tokens in and at most {} out, {money}{more}",
            self.calls, self.input_tokens, self.output_tokens_max
        )
    }
}
