//! The engine, whether it is available, and how much of the budget is used.

use serde::Serialize;

use crate::{
    config::settings::{Cap, EngineKind},
    model::connect,
    operations::{
        error::CommandResult,
        workspace::{Invocation, MemoryRoot},
    },
    store::{
        db::ledger::{ChargedTotals, Ledger},
        fs::vault::Vault,
    },
};

#[derive(Serialize)]
pub(crate) struct EngineStatus {
    pub(crate) engine: &'static str,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    /// `ready`, or why the engine cannot draft.
    pub(crate) state: Option<String>,
}

#[derive(Default, Serialize)]
pub(crate) struct BudgetStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) day: Option<BudgetUse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) month: Option<BudgetUse>,
}

/// The use of one budget by all roots; running calls count as their worst case.
#[derive(Serialize)]
pub(crate) struct BudgetUse {
    #[serde(flatten)]
    pub(crate) charged: ChargedTotals,
    pub(crate) cap_usd: Option<f64>,
    pub(crate) cap_tokens: Option<u64>,
    pub(crate) cap_calls: Option<u32>,
}

/// Returns the state of the engine and the budget. Writes and sends nothing.
pub(crate) fn engine_status(
    call: &Invocation,
    root: &MemoryRoot,
) -> CommandResult<(EngineStatus, BudgetStatus)> {
    let settings = &root.settings.settings;
    if settings.engine == EngineKind::Extractive {
        let state = Some("ready".to_owned());
        let status = EngineStatus { engine: "extractive", provider: None, model: None, state };
        return Ok((status, BudgetStatus::default()));
    }
    let ledger = Ledger::open_existing(&call.environment.ledger_path())?;
    let vault = Vault::for_root(&root.settings)?;
    let client = connect::client(
        &call.config,
        &root.settings,
        &call.environment,
        vault,
        std::time::Duration::ZERO,
    );
    let state = match (&client, &ledger) {
        (Err(error), _) => error.to_string(),
        (Ok(client), Some(ledger)) => client
            .circuit_error(ledger, call.now)?
            .map_or_else(|| "ready".to_owned(), |it| it.to_string()),
        (Ok(_), None) => "ready".to_owned(),
    };
    let root_name = root.settings.path.to_string_lossy();
    let pending =
        ledger.as_ref().map(|it| it.pending_batch_requests(&root_name)).transpose()?.flatten();
    let state = match pending {
        Some((count, since)) => {
            let since = since.with_timezone(&root.settings.zone.name.0).format("%Y-%m-%d %H:%M");
            let requests = if count == 1 { "request" } else { "requests" };
            format!("{state}, {count} {requests} in a batch since {since}")
        }
        None => state,
    };
    let provider = serde_json::to_value(settings.model.provider).ok();
    let status = EngineStatus {
        engine: "model",
        provider: provider.and_then(|it| it.as_str().map(str::to_owned)),
        model: Some(settings.model.name.clone()),
        state: Some(state),
    };
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let [day, month] = match &ledger {
        Some(ledger) => ledger.charged(today, None)?,
        None => Default::default(),
    };
    let used = |charged: ChargedTotals, cap: &Cap| BudgetUse {
        charged,
        cap_usd: cap.usd,
        cap_tokens: cap.tokens,
        cap_calls: cap.calls,
    };
    let caps = &call.config.settings.budget;
    let budget =
        BudgetStatus { day: Some(used(day, &caps.day)), month: Some(used(month, &caps.month)) };
    Ok((status, budget))
}

impl BudgetUse {
    /// Describes the use in a few words: `0.12 of 1.00 USD, 14 of 200 calls`.
    pub(crate) fn describe(&self) -> String {
        let Self { charged, cap_usd, cap_tokens, cap_calls } = self;
        let of = |cap: Option<String>| cap.map(|it| format!(" of {it}")).unwrap_or_default();
        let mut words = format!(
            "{:.2}{} USD, {}{} calls",
            charged.usd,
            of(cap_usd.map(|it| format!("{it:.2}"))),
            charged.calls,
            of(cap_calls.map(|it| it.to_string()))
        );
        if cap_tokens.is_some() {
            let cap = of(cap_tokens.map(|it| it.to_string()));
            words = format!("{words}, {}{cap} tokens", charged.tokens);
        }
        if charged.is_lost {
            words.push_str(" (the ledger was lost, so the budget counts as exhausted)");
        }
        words
    }
}
