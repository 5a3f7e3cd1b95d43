//! `memoird model test`: one small round trip to the model, and what its work would cost.

use std::{process::ExitCode, time::Instant};

use chrono::TimeDelta;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MODEL_WAIT_MAX, MemoryRoot},
};
use crate::{
    compaction::{
        self,
        plan::{CompactionJob, Selection},
    },
    config::settings::EngineKind,
    engine::{configured, model::json as reply_json},
    memory::item::Tier,
    model::{
        CallError, LanguageModel as _, Message, ModelRequest, OutputSchema, Stage, WorkOutcome,
        connect,
        embedding::{EmbeddingInput, EmbeddingModel as _},
        failure::ErrorClass,
        pricing::Price,
        token_estimate,
    },
    store::{db::lineage::Lineage, fs::vault::Vault},
};

/// Ask the model that is configured
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    verb: ModelCommand,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum ModelCommand {
    /// Make one small round trip; show latency, price, and what a week, a year and the backlog would
    /// cost
    Test,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ModelTestReport {
    provider: &'static str,
    server: String,
    model: String,
    /// The model that answered, as it calls itself.
    answered_by: Option<String>,
    latency_ms: u64,
    /// Whether the reply had the form that was asked for.
    holds_schema: bool,
    context_tokens: u32,
    /// How many characters a token has, as far as that was learned.
    chars_per_token: f64,
    price: Option<PriceReport>,
    cost_usd: f64,
    forecast: CostForecast,
    /// What makes vectors for the search by meaning, where that is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<EmbeddingTest>,
}

/// A vector was made.
#[derive(Serialize)]
struct EmbeddingTest {
    server: String,
    model: String,
    latency_ms: u64,
    dimensions: usize,
}

#[derive(Serialize)]
struct PriceReport {
    input_usd: f64,
    output_usd: f64,
    date: String,
}

/// What drafting would take, by the characters of the last four weeks of logs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct CostForecast {
    week: CostEstimate,
    year: CostEstimate,
    backlog: CostEstimate,
}

/// An estimate: tokens as long as the model's have been so far, and a reply of about a third of what is
/// read.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct CostEstimate {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// US dollars; null without a price.
    usd: Option<f64>,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &ModelArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let ModelCommand::Test = args.verb;
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    let settings = &root.settings.settings;
    let embeddings = test_embeddings(&call, &root, ui)?;
    if settings.engine == EngineKind::Extractive {
        if let Some(embeddings) = embeddings {
            show_embedding_test(&embeddings, ui);
            return Ok(ExitCode::SUCCESS);
        }
        ui.note(
            "the engine is extractive: no model is asked. This tests the one that is configured",
        );
    }
    let config = |e: connect::ModelConfigError| {
        CommandError::new(CommandErrorKind::Config, e).hint("memoird doctor")
    };
    let vault = Vault::for_root(&root.settings)?;
    let door =
        connect::client(&call.config, &root.settings, &call.environment, vault, MODEL_WAIT_MAX);
    let door = door.map_err(config)?;
    let pricing = connect::pricing(&call.environment).map_err(config)?;
    // A person who asks again has seen to what was wrong.
    door.reset_circuit()?;
    let begun = Instant::now();
    let reply = door.complete(&test_request()).map_err(|error| call_error(error, ui))?;
    let latency_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let holds_schema =
        reply_json::find_value(&reply.text).is_some_and(|it| it["answer"] == "ready");
    let cost_usd = door.take_spending().cost_usd;
    door.finish_work(WorkOutcome::Done);
    let price = pricing.of(&settings.model.name).filter(|_| !door.endpoint().is_local());
    let chars_per_token = token_estimate::average_chars_per_token(door.token_ratio());
    let tested = ModelTestReport {
        provider: door.endpoint().provider(),
        server: door.endpoint().server().to_owned(),
        model: settings.model.name.clone(),
        answered_by: reply.model,
        latency_ms,
        holds_schema,
        context_tokens: door.context_tokens(),
        price: price.map(|it| PriceReport {
            input_usd: it.input,
            output_usd: it.output,
            date: it.date.to_string(),
        }),
        cost_usd,
        chars_per_token,
        embeddings,
        forecast: forecast(&call, &root, price, (door.endpoint().is_local(), chars_per_token))?,
    };
    if ui.is_json() {
        ui.json(&tested);
    } else {
        show(&tested, ui);
    }
    Ok(if holds_schema { ExitCode::SUCCESS } else { CommandErrorKind::Job.exit_code().into() })
}

/// Has one vector made, where a server for that is configured.
fn test_embeddings(
    call: &Invocation,
    root: &MemoryRoot,
    ui: &Ui,
) -> Result<Option<EmbeddingTest>, CommandError> {
    let made = connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    );
    let config = |e: connect::ModelConfigError| {
        CommandError::new(CommandErrorKind::Config, e).hint("memoird doctor")
    };
    let Some(embedder) = made.map_err(config)? else { return Ok(None) };
    let door = embedder.client();
    door.reset_circuit()?;
    let begun = Instant::now();
    let vectors = embedder
        .embed(&["Are you ready?"], EmbeddingInput::Line)
        .map_err(|it| call_error(it, ui))?;
    Ok(Some(EmbeddingTest {
        server: door.endpoint().server().to_owned(),
        model: door.model().to_owned(),
        latency_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        dimensions: vectors.first().map_or(0, Vec::len),
    }))
}

fn show_embedding_test(embedded: &EmbeddingTest, ui: &Ui) {
    let EmbeddingTest { server, model, latency_ms, dimensions } = embedded;
    if ui.is_json() {
        ui.json(&json!({ "embeddings": embedded }));
        return;
    }
    ui.success(format!(
        "{model} at {server} made a vector of {dimensions} numbers in {latency_ms} ms"
    ));
}

fn test_request() -> ModelRequest {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["answer"],
        "properties": { "answer": { "type": "string", "enum": ["ready", "no"] } },
    });
    ModelRequest {
        stage: Stage::Test,
        name: None,
        period: String::new(),
        system: "Reply with the JSON object {\"answer\": \"ready\"} and with nothing else."
            .to_owned(),
        messages: vec![Message::user("Are you ready?")],
        schema: Some(OutputSchema { name: "answer".to_owned(), schema }),
        tools: Vec::new(),
        max_output_tokens: 1024,
        temperature: 0.0,
    }
}

/// Says why there was no answer; here, on a terminal, in the provider's own words too.
fn call_error(error: CallError, ui: &Ui) -> CommandError {
    if let Some(words) = error.provider_message() {
        ui.note(format!("it says: {words}"));
    }
    let kind = match error.class() {
        ErrorClass::Account => CommandErrorKind::Config,
        ErrorClass::Server | ErrorClass::Blocked | ErrorClass::Pending => {
            CommandErrorKind::Unavailable
        }
        ErrorClass::Request => CommandErrorKind::Job,
    };
    let hint = match &error {
        CallError::Connect { .. } => "is it running? check model.base_url",
        CallError::Account { .. } | CallError::AccountBlocked { .. } => "memoird doctor",
        CallError::Request { .. } => "check model.name; the server may not have it",
        _ => "memoird status",
    };
    CommandError::new(kind, error).hint(hint)
}

/// Estimates what drafting would take.
fn forecast(
    call: &Invocation,
    root: &MemoryRoot,
    price: Option<&Price>,
    (is_local, chars_per_token): (bool, f64),
) -> Result<CostForecast, CommandError> {
    const WEEKS: u64 = 4;
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = configured::engine_id(&root.settings.settings);
    let plan =
        compaction::plan_snapshot(&view, &root.settings, &engine, &Selection::default(), call.now);
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let since = today - TimeDelta::weeks(4);
    let logs = &view.inventory.logs;
    let recent = logs.iter().filter(|(stem, _)| stem.date() > since && stem.date() <= today);
    let (days, bytes) =
        recent.fold((0, 0), |(days, bytes), (_, log)| (days + 1, bytes + log.stamp.size));
    // The daemon's weeks and months go into batches.
    let model = &root.settings.settings.model;
    let share =
        price.map_or(1.0, |it| it.batch_factor(model.batch && model.provider.supports_batches()));
    let of = |calls: u64, chars: u64, folded: u64| {
        // Each call brings its instructions along, about a thousand tokens.
        let input_tokens = token_estimate::estimate(chars, chars_per_token) + calls * 1000;
        let output_tokens = token_estimate::estimate(chars / 3, chars_per_token);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let batched = folded as f64 / chars.max(1) as f64;
        let worst = price.map(|it| it.worst_case_cost(input_tokens, output_tokens));
        let usd = worst.map(|it| it * (1.0 - batched * (1.0 - share)));
        let usd = usd.or(is_local.then_some(0.0));
        CostEstimate { calls, input_tokens, output_tokens, usd }
    };
    // A day is read for memories and for its week; a month and wisdom read about a third of it again.
    let folded = bytes / WEEKS * 6 / 5;
    let week = of(days / WEEKS + 2, folded * 2, folded);
    let year = of(week.calls * 52 + 24, folded * 2 * 52, folded * 52);
    let due = |job: &CompactionJob| match job.tier {
        Tier::Extract | Tier::Weekly => {
            view.inventory.logs_of(job.period).map(|(_, log)| log.stamp.size).sum::<u64>()
        }
        _ => 20_000,
    };
    let is_fold = |job: &&CompactionJob| matches!(job.tier, Tier::Weekly | Tier::Monthly);
    let due_bytes: u64 = plan.jobs.iter().map(due).sum();
    let folded: u64 = plan.jobs.iter().filter(is_fold).map(due).sum();
    let backlog = of((plan.jobs.len() + plan.due_after.len()) as u64, due_bytes, folded);
    Ok(CostForecast { week, year, backlog })
}

fn show(tested: &ModelTestReport, ui: &Ui) {
    let ModelTestReport { provider, server, model, answered_by, latency_ms, holds_schema, .. } =
        tested;
    ui.success(format!("{model} at {server} ({provider}) answered in {latency_ms} ms"));
    if let Some(embeddings) = &tested.embeddings {
        show_embedding_test(embeddings, ui);
    }
    if let Some(other) = answered_by.as_ref().filter(|it| *it != model) {
        ui.note(format!("it calls itself {other}"));
    }
    if !holds_schema {
        ui.warn("the reply did not have the form that was asked for; memories and wisdom need it");
    }
    ui.note(format!(
        "reads and writes {} tokens in a call, of {:.1} characters each",
        tested.context_tokens, tested.chars_per_token
    ));
    match &tested.price {
        Some(PriceReport { input_usd, output_usd, date }) => ui.note(format!(
            "{input_usd} USD for a million tokens read, {output_usd} written (price of {date}); this \
             call cost {:.6} USD",
            tested.cost_usd
        )),
        None => ui.note("no price is known; on this machine a call costs nothing"),
    }
    let CostForecast { week, year, backlog } = tested.forecast;
    let row = |name: &str, it: CostEstimate| {
        vec![
            name.to_owned(),
            it.calls.to_string(),
            it.input_tokens.to_string(),
            it.output_tokens.to_string(),
            it.usd.map_or_else(|| "?".to_owned(), |it| format!("{it:.2}")),
        ]
    };
    let rows = [row("a week", week), row("a year", year), row("what is due", backlog)];
    ui.table(&["would take about", "calls", "tokens in", "tokens out", "usd"], &rows);
}

impl From<CallError> for CommandError {
    fn from(error: CallError) -> Self {
        let kind = match error.class() {
            ErrorClass::Account => CommandErrorKind::Config,
            _ => CommandErrorKind::Unavailable,
        };
        Self::new(kind, error)
    }
}
