//! Budgets: every call is charged at its worst case before it is sent, and corrected afterwards.
//!
//! The ledger refuses a reservation that would exceed a limit, so nothing is ever sent over budget.

use chrono::{DateTime, Utc};

use super::{ModelClient, ModelClientConfig, send::CallOutcome};
#[cfg(feature = "fleet")]
use crate::store::db::ledger::CallBudgets;
use crate::{
    model::{CallError, Message, ModelReply, ModelRequest, TokenUsage, Tool, token_estimate},
    store::db::ledger::{CallId, CallResult, ExhaustedBudget, NewCall, TokenRatio},
};

/// The lowest average number of bytes per token in any language, with any known model.
///
/// Half of the average for English, because the charge before a call is its worst case.
const BYTES_PER_TOKEN_MIN: u64 = 2;

/// The next request may have fewer characters per token than any before, by this factor.
const WORST_CASE_FACTOR: f64 = 0.8;

impl ModelClient {
    /// Charges the call at its worst case.
    ///
    /// Returns [`CallError::BudgetExhausted`] if a limit leaves no room for it.
    pub(in crate::model) fn reserve(
        &self,
        request: &ModelRequest,
        now: DateTime<Utc>,
        in_batch: bool,
    ) -> Result<CallId, CallError> {
        let ModelClientConfig { model, budgets, pricing, zone, endpoint, .. } = &self.config;
        let input_tokens = tokens_max(request, self.token_ratio());
        let output_tokens = u64::from(request.max_output_tokens);
        let price = pricing.of(model);
        let limits = [budgets.day, budgets.month, budgets.root_day, budgets.root_month];
        if price.is_none() && !endpoint.is_local() && limits.iter().any(|it| it.usd.is_some()) {
            return Err(CallError::Config(format!(
                "the price of `{model}` is unknown, and budget.day.usd or budget.month.usd is set: \
                 add its price to pricing.yaml, or set both to null"
            )));
        }
        // What the shared limits are, only their database knows.
        #[cfg(feature = "fleet")]
        if price.is_none() && !endpoint.is_local() && self.shared.is_some() {
            return Err(CallError::Config(format!(
                "the price of `{model}` is unknown, and the claims database may limit the costs: add its price to \
                 pricing.yaml"
            )));
        }
        // A call on this machine is free, even if a model of this name has a price elsewhere.
        let price = price.filter(|_| !endpoint.is_local());
        #[cfg(feature = "fleet")]
        let (shared_call, budgets) = match &self.shared {
            None => (None, *budgets),
            // Its limits are those of all machines, so the ledger of this one only counts.
            Some(shared) => {
                let fingerprint = self.reply_key(request).to_string();
                let usd = price.map_or(0.0, |it| it.worst_case_cost(input_tokens, output_tokens));
                let call = crate::model::shared_spending::SharedReservation {
                    fingerprint: &fingerprint,
                    day: now.with_timezone(zone).date_naive(),
                    tokens: input_tokens + output_tokens,
                    usd,
                };
                (Some(shared.reserve(&call, budgets)?), CallBudgets::default())
            }
        };
        #[cfg(feature = "fleet")]
        let budgets = &budgets;
        let root = self.config.root.to_string_lossy();
        let run = self.state().run;
        let call = NewCall {
            at: now,
            day: now.with_timezone(zone).date_naive(),
            root: &root,
            run,
            stage: request.stage.name(),
            period: &request.period,
            provider: endpoint.provider(),
            model,
            tokens: input_tokens + output_tokens,
            usd: match price {
                Some(price) => Some(
                    price.worst_case_cost(input_tokens, output_tokens)
                        * price.batch_factor(in_batch),
                ),
                None if endpoint.is_local() => Some(0.0),
                None => None,
            },
            price_date: price.map(|it| it.date),
        };
        let reserved = self.ledger(|it| it.reserve(&call, budgets))?;
        let reserved =
            reserved.map_err(|exhausted| CallError::BudgetExhausted(budget_message(&exhausted)))?;
        #[cfg(feature = "fleet")]
        if let Some(shared_call) = shared_call {
            self.state().shared_calls.push((reserved, shared_call));
        }
        Ok(reserved)
    }

    /// Replaces the worst case with what the call did cost, and returns that in US dollars.
    ///
    /// The worst case remains charged where the provider may have charged and reports no usage.
    pub(in crate::model) fn settle_charge(
        &self,
        call: CallId,
        sent: &CallOutcome,
        in_batch: bool,
    ) -> Result<f64, CallError> {
        let latency_ms = u64::try_from(sent.duration.as_millis()).unwrap_or(u64::MAX);
        let outcome = match &sent.reply {
            Ok(reply) => reply.finish_reason.name(),
            Err(error) => error.name(),
        };
        let charge = match &sent.reply {
            Ok(reply) => reply.usage.map(|usage| CallResult {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cache_read_tokens: usage.cache_read_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                usd: self.cost(reply, &usage, in_batch),
                request_id: reply.id.as_deref(),
                ..CallResult::default()
            }),
            Err(error) if error.may_have_cost() => None,
            Err(_) => Some(CallResult { usd: Some(0.0), ..CallResult::default() }),
        };
        let (requests, maybe_charged_requests) = (sent.requests, sent.maybe_charged_requests);
        #[cfg(feature = "fleet")]
        self.settle_shared(call, outcome, charge.as_ref(), maybe_charged_requests);
        let Some(charge) = charge else {
            self.ledger(|it| {
                it.finish_call_of_unknown_cost(
                    call,
                    outcome,
                    latency_ms,
                    requests,
                    maybe_charged_requests,
                )
            })?;
            return Ok(0.0);
        };
        let result = CallResult { outcome, latency_ms, requests, maybe_charged_requests, ..charge };
        self.ledger(|it| it.finish_call(call, &result))?;
        Ok(result.usd.unwrap_or(0.0))
    }

    /// Settles a call with those who share the budget. If they do not answer, it stays charged at its worst case.
    #[cfg(feature = "fleet")]
    fn settle_shared(
        &self,
        call: CallId,
        outcome: &str,
        charge: Option<&CallResult<'_>>,
        maybe_charged_requests: u32,
    ) {
        let Some(shared) = &self.shared else { return };
        let mut open = std::mem::take(&mut self.state().shared_calls);
        let at = open.iter().position(|it| it.0 == call);
        let number = at.map(|at| open.swap_remove(at).1);
        self.state().shared_calls.extend(open);
        let Some(number) = number else { return };
        // An earlier try may have cost as much as this one, so the worst case is right.
        let used = charge.filter(|_| maybe_charged_requests == 0);
        let used = used.and_then(|it| Some((it.input_tokens + it.output_tokens, it.usd?)));
        if let Err(error) = shared.settle(number, outcome, used) {
            tracing::warn!("a call stays charged at its worst case: {error}");
        }
    }

    /// Returns what a call cost in US dollars: as the provider reports it, else by its price.
    fn cost(&self, reply: &ModelReply, usage: &TokenUsage, in_batch: bool) -> Option<f64> {
        let reported = reply.cost_usd.filter(|it| it.is_finite() && *it >= 0.0);
        match self.config.pricing.of(&self.config.model) {
            _ if reported.is_some() => reported,
            _ if self.config.endpoint.is_local() => Some(0.0),
            price => price.map(|it| it.cost(usage) * it.batch_factor(in_batch)),
        }
    }
}

/// Returns the most tokens that a request can have.
///
/// This is the bound for any text, or more if the model's tokens were shorter so far. Longer tokens
/// so far do not lower it: the next text may be full of numbers and code.
fn tokens_max(request: &ModelRequest, ratio: Option<TokenRatio>) -> u64 {
    let usual = request_bytes(request).div_ceil(BYTES_PER_TOKEN_MIN);
    let learned = ratio.map(|_| {
        token_estimate::estimate(
            request.chars() as u64,
            token_estimate::min_chars_per_token(ratio) * WORST_CASE_FACTOR,
        )
    });
    usual.max(learned.unwrap_or(0))
}

fn request_bytes(request: &ModelRequest) -> u64 {
    let schema: usize = request.schema.iter().map(|it| it.schema.to_string().len()).sum();
    let tools: usize = request.tools.iter().map(Tool::bytes).sum();
    let verbatim = request.messages.iter().filter_map(|it| it.verbatim.as_ref());
    let verbatim: usize = verbatim.map(|it| it.to_string().len()).sum();
    text_bytes(request) + (schema + tools + verbatim) as u64
}

/// Returns the length of the text of a request, in bytes.
pub(in crate::model) fn text_bytes(request: &ModelRequest) -> u64 {
    let results = |it: &Message| it.results.iter().map(|it| it.text.len()).sum::<usize>();
    let messages: usize = request.messages.iter().map(|it| it.text.len() + results(it)).sum();
    (request.system.len() + messages) as u64
}

/// Returns the one line that reports an exhausted budget.
fn budget_message(exhausted: &ExhaustedBudget) -> String {
    let ExhaustedBudget { period, is_root_share, unit, used, requested, limit } = exhausted;
    let whose = if *is_root_share { "this root's budget" } else { "the budget" };
    // A call often costs less than a cent, and calls are whole numbers.
    let amount = |it: f64| match *unit {
        "usd" if it > 0.0 && it < 0.1 => format!("{it:.4}"),
        "usd" => format!("{it:.2}"),
        _ => format!("{it:.0}"),
    };
    let unit_name = if *unit == "usd" { "USD" } else { unit };
    let requested = match *unit {
        "calls" => String::new(),
        _ => format!(", and the next call may need {}", amount(*requested)),
    };
    let next = if *period == "day" { "tomorrow" } else { "next month" };
    format!(
        "{whose} of the {period} is exhausted: {} of {} {unit_name} used{requested}; work continues \
         {next}, or raise budget.{period}.{unit}",
        amount(*used),
        amount(*limit),
    )
}
