//! `memoird model test`: makes one small call to the model and estimates the cost of its work.

use std::{process::ExitCode, time::Instant};

use chrono::TimeDelta;
use clap::Subcommand;
use serde::Serialize;
use serde_json::json;

use super::{GlobalArgs, error_report::exit_code_if_failed, ui::Ui};
use crate::{
    compaction::{
        self,
        plan::{CompactionJob, Selection},
    },
    config::settings::{EngineKind, Settings},
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
    operations::{
        error::{CommandError, CommandErrorKind, CommandResult},
        workspace::{Invocation, MODEL_WAIT_MAX, MemoryRoot},
    },
    store::{db::lineage::Lineage, fs::vault::Vault},
};

/// Test the configured model
#[derive(Debug, clap::Args)]
pub(super) struct ModelArgs {
    #[command(subcommand)]
    verb: ModelCommand,
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum ModelCommand {
    /// Make one small call; show latency, price, and the estimated cost of a week, a year and the backlog
    Test,
}

/// What `--json` prints.
#[derive(Serialize)]
struct ModelTestReport {
    provider: &'static str,
    server: String,
    model: String,
    /// The name of the model in its reply.
    answered_by: Option<String>,
    latency_ms: u64,
    /// Whether the reply matched the requested schema.
    holds_schema: bool,
    context_tokens: u32,
    /// Average characters per token, learned from earlier calls.
    chars_per_token: f64,
    price: Option<PriceReport>,
    cost_usd: f64,
    forecast: CostForecast,
    /// The test of the embedding server, if one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<EmbeddingTest>,
}

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

/// The estimated cost of drafting, from the size of the last four weeks of logs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct CostForecast {
    week: CostEstimate,
    year: CostEstimate,
    backlog: CostEstimate,
}

/// An estimate that assumes the model's average token length, and replies of a third of the input.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct CostEstimate {
    calls: u64,
    input_tokens: u64,
    output_tokens: u64,
    /// US dollars; null if the price is unknown.
    usd: Option<f64>,
}

pub(super) fn run(global: &GlobalArgs, args: &ModelArgs, ui: &Ui) -> CommandResult {
    let ModelCommand::Test = args.verb;
    let (call, root) = Invocation::with_root(global)?;
    let settings = &root.settings.settings;
    let embeddings = test_embeddings(&call, &root, ui)?;
    if settings.engine == EngineKind::Extractive {
        if let Some(embeddings) = embeddings {
            show_embedding_test(&embeddings, ui);
            return Ok(ExitCode::SUCCESS);
        }
        if settings.model == Settings::default().model {
            return Err(CommandError::config(
                "no model is configured: the engine without a model is in use, and calls none",
            )
            .hint("to configure one: memoird config edit")
            .hint("`memoird config show --origin` shows the settings"));
        }
        ui.note(
            "the extractive engine is in use and calls no model; testing the configured one anyway",
        );
    }
    let vault = Vault::for_root(&root.settings)?;
    let client =
        connect::client(&call.config, &root.settings, &call.environment, vault, MODEL_WAIT_MAX)
            .map_err(config_error)?;
    let pricing = connect::pricing(&call.environment).map_err(config_error)?;
    // A user who tests the model has fixed what paused it.
    client.reset_circuit()?;
    let started = Instant::now();
    let reply = client.complete(&test_request()).map_err(|error| call_error(error, ui))?;
    let latency_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let holds_schema =
        reply_json::find_value(&reply.text).is_some_and(|it| it["answer"] == "ready");
    let cost_usd = client.take_spending().cost_usd;
    client.finish_work(WorkOutcome::Done);
    // A program may call a server that charges, and reports what it charged.
    let is_local = client.endpoint().is_local() && cost_usd == 0.0;
    let price = pricing.of(&settings.model.name).filter(|_| !is_local);
    let chars_per_token = token_estimate::average_chars_per_token(client.token_ratio());
    let report = ModelTestReport {
        provider: client.endpoint().provider(),
        server: client.endpoint().server().to_owned(),
        model: settings.model.name.clone(),
        answered_by: reply.model,
        latency_ms,
        holds_schema,
        context_tokens: client.context_tokens(),
        price: price.map(|it| PriceReport {
            input_usd: it.input,
            output_usd: it.output,
            date: it.date.to_string(),
        }),
        cost_usd,
        chars_per_token,
        embeddings,
        forecast: forecast(&call, &root, price, is_local, chars_per_token)?,
    };
    if ui.is_json() {
        ui.json(&report);
    } else {
        show(&report, ui);
    }
    Ok(exit_code_if_failed(!holds_schema))
}

fn config_error(error: connect::ModelConfigError) -> CommandError {
    CommandError::config(error).hint("memoird doctor")
}

/// Computes one vector, if an embedding server is configured.
fn test_embeddings(
    call: &Invocation,
    root: &MemoryRoot,
    ui: &Ui,
) -> CommandResult<Option<EmbeddingTest>> {
    let embedder = connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    );
    let Some(embedder) = embedder.map_err(config_error)? else { return Ok(None) };
    let client = embedder.client();
    client.reset_circuit()?;
    let started = Instant::now();
    let vectors = embedder
        .embed(&["Are you ready?"], EmbeddingInput::Line)
        .map_err(|it| call_error(it, ui))?;
    Ok(Some(EmbeddingTest {
        server: client.endpoint().server().to_owned(),
        model: client.model().to_owned(),
        latency_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        dimensions: vectors.first().map_or(0, Vec::len),
    }))
}

fn show_embedding_test(test: &EmbeddingTest, ui: &Ui) {
    let EmbeddingTest { server, model, latency_ms, dimensions } = test;
    if ui.is_json() {
        ui.json(&json!({ "embeddings": test }));
        return;
    }
    ui.success(format!(
        "{model} at {server} computed a vector of {dimensions} numbers in {latency_ms} ms"
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

/// Returns the error of a failed call, and shows the provider's own message.
fn call_error(error: CallError, ui: &Ui) -> CommandError {
    if let Some(message) = error.provider_message() {
        ui.note(format!("the provider says: {message}"));
    }
    let kind = match error.class() {
        ErrorClass::Account => CommandErrorKind::Config,
        ErrorClass::Server | ErrorClass::Blocked | ErrorClass::Pending => {
            CommandErrorKind::Unavailable
        }
        ErrorClass::Request => CommandErrorKind::Job,
    };
    let hint = match &error {
        CallError::Connect { .. } => "check that the server is running, and model.base_url",
        CallError::Account { .. } | CallError::AccountBlocked { .. } => "memoird doctor",
        CallError::Request { .. } => "check model.name; the server may not have it",
        _ => "memoird status",
    };
    CommandError::new(kind, error).hint(hint)
}

/// Estimates the cost of drafting.
fn forecast(
    call: &Invocation,
    root: &MemoryRoot,
    price: Option<&Price>,
    is_local: bool,
    chars_per_token: f64,
) -> CommandResult<CostForecast> {
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
    // The daemon submits weeks and months in batches, at a lower price.
    let model = &root.settings.settings.model;
    let batch_factor =
        price.map_or(1.0, |it| it.batch_factor(model.batch && model.provider.supports_batches()));
    let estimate = |calls: u64, chars: u64, summary_chars: u64| {
        // The instructions of each call are about a thousand tokens.
        let input_tokens = token_estimate::estimate(chars, chars_per_token) + calls * 1000;
        let output_tokens = token_estimate::estimate(chars / 3, chars_per_token);
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let batched = summary_chars as f64 / chars.max(1) as f64;
        let worst = price.map(|it| it.worst_case_cost(input_tokens, output_tokens));
        let usd = worst.map(|it| it * (1.0 - batched * (1.0 - batch_factor)));
        let usd = usd.or(is_local.then_some(0.0));
        CostEstimate { calls, input_tokens, output_tokens, usd }
    };
    // A day is read for memories and for its week; a month and wisdom read about a third of it again.
    let summarized = bytes / WEEKS * 6 / 5;
    let week = estimate(days / WEEKS + 2, summarized * 2, summarized);
    let year = estimate(week.calls * 52 + 24, summarized * 2 * 52, summarized * 52);
    let due = |job: &CompactionJob| match job.tier {
        Tier::Extract | Tier::Weekly => {
            view.inventory.logs_of(job.period).map(|(_, log)| log.stamp.size).sum::<u64>()
        }
        _ => 20_000,
    };
    let is_summary = |job: &&CompactionJob| matches!(job.tier, Tier::Weekly | Tier::Monthly);
    let due_bytes: u64 = plan.jobs.iter().map(due).sum();
    let summarized: u64 = plan.jobs.iter().filter(is_summary).map(due).sum();
    let backlog = estimate((plan.jobs.len() + plan.due_after.len()) as u64, due_bytes, summarized);
    Ok(CostForecast { week, year, backlog })
}

fn show(report: &ModelTestReport, ui: &Ui) {
    let ModelTestReport { provider, server, model, answered_by, latency_ms, holds_schema, .. } =
        report;
    ui.success(format!("{model} at {server} ({provider}) answered in {latency_ms} ms"));
    if let Some(embeddings) = &report.embeddings {
        show_embedding_test(embeddings, ui);
    }
    if let Some(other) = answered_by.as_ref().filter(|it| *it != model) {
        ui.note(format!("it calls itself {other}"));
    }
    if !holds_schema {
        ui.warn("the reply did not match the requested schema; memories and wisdom need it");
    }
    ui.note(format!(
        "context of {} tokens, {:.1} characters per token",
        report.context_tokens, report.chars_per_token
    ));
    match &report.price {
        Some(PriceReport { input_usd, output_usd, date }) => ui.note(format!(
            "{input_usd} USD per million input tokens, {output_usd} per million output tokens (price \
             of {date}); this call cost {:.6} USD",
            report.cost_usd
        )),
        None if report.cost_usd > 0.0 => ui.note(format!(
            "price unknown; this call cost {:.6} USD, as {server} reports",
            report.cost_usd
        )),
        None => ui.note("price unknown; calls to a local server cost nothing"),
    }
    let CostForecast { week, year, backlog } = report.forecast;
    let row = |name: &str, it: CostEstimate| {
        vec![
            name.to_owned(),
            it.calls.to_string(),
            it.input_tokens.to_string(),
            it.output_tokens.to_string(),
            it.usd.map_or_else(|| "?".to_owned(), |it| format!("{it:.2}")),
        ]
    };
    let rows = [row("one week", week), row("one year", year), row("due now", backlog)];
    ui.table(&["estimate", "calls", "tokens in", "tokens out", "usd"], &rows);
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
