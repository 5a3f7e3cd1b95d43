//! The requests that a run would send to a model, and what they would cost.

use std::sync::Arc;

use serde::Serialize;

use super::{
    error::{CommandError, CommandResult},
    format::counted,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{RootSnapshot, plan::CompactionPlan, preview},
    config::{duration::Span, root::RootSettings, settings::EngineKind},
    engine::configured,
    model::{ModelRequest, RequestRecorder, connect, token_estimate},
};

/// The input tokens of second tries per input token of first ones where no call is known.
const USUAL_REPAIR_SHARE: f64 = 0.1;

/// Estimated model use of planned jobs.
///
/// Tokens are estimated from earlier calls of the model; the price assumes the longest allowed replies.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct RunForecast {
    pub(crate) calls: usize,
    chars: usize,
    /// Average characters per token.
    chars_per_token: f64,
    input_tokens: u64,
    /// Those of second tries for what fails the checks, by the share of earlier runs.
    repair_tokens: u64,
    output_tokens_max: u64,
    /// US dollars; null if the price is unknown.
    usd_max: Option<f64>,
}

/// Returns the requests that the jobs would send; `None` with the extractive engine.
pub(crate) fn planned_requests(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> CommandResult<Option<Vec<ModelRequest>>> {
    if root.settings.settings.engine == EngineKind::Extractive {
        return Ok(None);
    }
    let info = connect::model_info(&call.environment, &root.settings.settings.model);
    let recorder = Arc::new(RequestRecorder::for_model(info));
    let engine = configured::recording_engine(&recorder, &root.settings, &call.environment)
        .map_err(CommandError::config)?;
    preview::preview_requests(&root.vault, &root.settings, view, plan, &engine)?;
    Ok(Some(recorder.take_requests()))
}

/// Returns the estimated model use of the jobs; `None` with the extractive engine.
pub(crate) fn forecast(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> CommandResult<Option<RunForecast>> {
    let Some(requests) = planned_requests(call, root, view, plan)? else { return Ok(None) };
    let pricing = connect::pricing(&call.environment).map_err(CommandError::config)?;
    let price = pricing.of(&root.settings.settings.model.name);
    let chars = requests.iter().map(ModelRequest::chars).sum();
    let info = connect::model_info(&call.environment, &root.settings.settings.model);
    let chars_per_token = token_estimate::average_chars_per_token(info.token_ratio);
    let tokens = |it: &ModelRequest| token_estimate::estimate(it.chars() as u64, chars_per_token);
    let costs = |it: &ModelRequest| {
        price.map(|p| p.worst_case_cost(tokens(it), it.max_output_tokens.into()))
    };
    let input_tokens = requests.iter().map(tokens).sum();
    let repair_share = info.repair_share.unwrap_or(USUAL_REPAIR_SHARE);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "an estimate of tokens"
    )]
    let repair_tokens = (input_tokens as f64 * repair_share).round() as u64;
    let usd_max: Option<f64> = requests.iter().map(costs).sum();
    Ok(Some(RunForecast {
        calls: requests.len(),
        chars,
        chars_per_token,
        input_tokens,
        repair_tokens,
        output_tokens_max: requests.iter().map(|it| u64::from(it.max_output_tokens)).sum(),
        usd_max: usd_max.map(|it| it * (1.0 + repair_share)),
    }))
}

/// Returns settings without the quiet period, to preview `memoird compact`, which waits until recently
/// written logs are quiet.
pub(crate) fn without_quiet_period(root: &MemoryRoot) -> RootSettings {
    let mut settings = root.settings.clone();
    settings.settings.compaction.quiet = Span::from_secs(0);
    settings
}

/// Says what the jobs of a plan would cost with the configured engine.
pub(crate) fn due_cost(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
) -> CommandResult<String> {
    let jobs = counted(plan.jobs.len(), "job", "jobs");
    Ok(match forecast(call, root, view, plan)?.filter(|it| it.calls > 0) {
        Some(forecast) => format!("{jobs} {}", forecast.describe(plan.due_after.len())),
        None => format!("{jobs} due, which would cost nothing"),
    })
}

impl RunForecast {
    pub(crate) fn describe(&self, following: usize) -> String {
        let money = match self.usd_max {
            Some(usd) => format!("at most {usd:.2} USD"),
            None => "price unknown".to_owned(),
        };
        let more = if following > 0 { "; not counting the jobs that follow" } else { "" };
        format!(
            "would take {} of about {} tokens in, {} more for second tries, and at most {} out, {money}{more}",
            counted(self.calls, "call", "calls"),
            self.input_tokens,
            self.repair_tokens,
            self.output_tokens_max
        )
    }
}
