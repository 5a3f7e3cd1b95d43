//! The door: all that stands between a request and its reply.
//!
//! In this order: a reply that is kept from before a crash, the breaker, the price, the caps, the
//! request with its repeats, the reply on the disk, the ledger. Nothing else sends anything.
//!
//! A call costs at most what was reserved for it. One that a crash ends stays charged as its worst
//! case, and if its reply was kept, is not made again.

use std::{
    fmt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::{
    CallError, LanguageModel, Message, ModelReply, ModelRequest, ScheduledOutcome, Spending,
    TokenUsage, Tool, WorkOutcome, anthropic,
    batch::QueuedRequest,
    circuit_breaker::{CircuitBreaker, CircuitState},
    command::ModelProgram,
    http::{Deadlines, HttpClient, RequestHeader},
    ollama,
    openai::{self, OpenaiDialect, SchemaMode},
    pricing::Pricing,
    telemetry, token_estimate,
};
use crate::{
    clock,
    config::{api_key::Secret, base_url::BaseUrl},
    memory::hash::ContentHash,
    store::{
        db::ledger::{
            CallBudgets, CallId, CallResult, ExhaustedBudget, Ledger, LedgerError, NewCall,
            ServerRow, TokenRatio,
        },
        failpoint,
        fs::vault::Vault,
    },
};

/// How often a request is sent at most, the first time included.
const TRIES_MAX: u32 = 3;

/// The pause before the first repeat; it doubles.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The longest pause between two tries that the server did not ask for.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(8);

/// A token has at the least so many bytes on average, in any language and any model that we know of.
/// Half of what English takes: the worst case is what is charged before a call.
const BYTES_PER_TOKEN_MIN: u64 = 2;

/// Stands in the place of a reply to a question that is not to be asked as it is.
const TOO_LARGE_MARKER: &str = "{\"state\":\"apart\"}";

/// So much of the fewest characters for a token that were seen may be fewer yet.
const WORST_CASE_FACTOR: f64 = 0.8;

/// And at the most so many, which tells whether a server read all that was sent.
const BYTES_PER_TOKEN_MAX: u64 = 8;

/// Where requests go.
#[derive(Debug)]
pub enum ProviderEndpoint {
    /// The Messages interface.
    Anthropic {
        /// The server.
        base: BaseUrl,
        /// The version of the interface.
        api_version: String,
    },
    /// Chat completions.
    Openai {
        /// The server, with `/v1` or what it has instead.
        base: BaseUrl,
    },
    /// Ollama's own chat interface.
    Ollama {
        /// The server, without `/v1`.
        base: BaseUrl,
    },
    /// A program.
    Command(ModelProgram),
}

/// What a door is made of.
pub struct ModelClientConfig {
    /// Where requests go.
    pub endpoint: ProviderEndpoint,
    /// The model's name there.
    pub model: String,
    /// The key, where there is one.
    pub key: Option<Secret>,
    /// A name for the account that tells one from another and holds no key.
    pub account: String,
    /// How many tokens the model reads and writes in one call.
    pub context_tokens: u32,
    /// How long a call may take.
    pub deadlines: Deadlines,
    /// What tokens cost.
    pub pricing: Pricing,
    /// What may be spent.
    pub caps: CallBudgets,
    /// The root's zone: its days are those of the caps.
    pub zone: Tz,
    /// The root, as the ledger names it.
    pub root: PathBuf,
    /// Where replies are kept; `None` for a call that has no root.
    pub vault: Option<Vault>,
    /// How long to wait in all for a server that fails.
    pub patience: Duration,
    /// Where the ledger lies.
    pub ledger_path: PathBuf,
    /// Whether a model was called before: a ledger that is gone then was lost.
    pub was_used: bool,
    /// Whether scheduled passes may use the provider's batches.
    pub batch: bool,
}

/// The way to one model, for one root.
pub struct ModelClient {
    pub(super) config: ModelClientConfig,
    pub(super) http: HttpClient,
    ledger: Mutex<Option<Ledger>>,
    state: Mutex<ModelClientState>,
}

/// What changes from call to call.
#[derive(Default)]
pub(super) struct ModelClientState {
    pub(super) spent: Spending,
    waited: Duration,
    run: Option<i64>,
    /// Requests whose replies are kept until their work is done.
    pending_replies: Vec<ContentHash>,
    /// Failures in a row before the work that is under way.
    failures_before: Option<u32>,
    /// Whether a scheduled pass asks, so that what can wait may be queued.
    pub(super) is_scheduled: bool,
    /// What is to be sent at the end of the pass.
    pub(super) queue: Vec<QueuedRequest>,
    /// Why the last reply could not be kept.
    storage_error: Option<String>,
    /// The work at hand waits for a batch: what is kept for it is needed again.
    waits_for_batch: bool,
    /// Characters sent and tokens read since nothing was left to be done.
    token_samples: Vec<(u64, u64)>,
}

/// Sends a request once, and reads the answer.
type SendOnce<'a> = dyn FnMut(&ServerRow, DateTime<Utc>) -> Result<ModelReply, CallError> + 'a;

/// Carries a request of [`ModelClient::call`].
pub(super) type SendWithHttp<'a> =
    dyn FnMut(&HttpClient, DateTime<Utc>) -> Result<ModelReply, CallError> + 'a;

/// A reply and what it took to get it.
pub(super) struct CallOutcome {
    pub(super) reply: Result<ModelReply, CallError>,
    pub(super) requests: u32,
    /// Earlier tries that the provider may have charged for, too.
    pub(super) lost: u32,
    pub(super) duration: Duration,
}

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("wire", &self.config.endpoint).finish_non_exhaustive()
    }
}

impl ProviderEndpoint {
    /// Returns the address, or the program's name.
    pub fn server(&self) -> &str {
        match self {
            Self::Anthropic { base, .. } | Self::Openai { base } | Self::Ollama { base } => {
                base.as_str()
            }
            Self::Command(program) => program.name(),
        }
    }

    /// Returns the provider's name, as OpenTelemetry has it where it has one.
    pub fn provider(&self) -> &'static str {
        match self {
            Self::Anthropic { .. } => "anthropic",
            Self::Openai { .. } => "openai",
            Self::Ollama { .. } => "ollama",
            Self::Command(_) => "command",
        }
    }

    /// Returns whether a call of it can cost nothing: it stays on this machine.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Anthropic { base, .. } | Self::Openai { base } | Self::Ollama { base } => {
                base.is_loopback()
            }
            Self::Command(_) => true,
        }
    }
}

impl ModelClient {
    /// Makes the way.
    pub fn new(parts: ModelClientConfig) -> Self {
        let http = HttpClient::new(parts.deadlines);
        Self { config: parts, http, ledger: Mutex::default(), state: Mutex::default() }
    }

    /// Returns the model's name.
    pub fn model(&self) -> &str {
        &self.config.model
    }

    /// Returns the way itself.
    pub fn endpoint(&self) -> &ProviderEndpoint {
        &self.config.endpoint
    }

    /// Returns how many tokens the model reads and writes in one call: as configured, or less if the
    /// server said so itself.
    pub fn context_tokens(&self) -> u32 {
        let known = self.server_row().ok().and_then(|it| it.context_tokens);
        let known = known.and_then(|it| u32::try_from(it).ok());
        known.map_or(self.config.context_tokens, |it| it.min(self.config.context_tokens))
    }

    /// Returns what was learned of the model's tokens.
    pub fn weight(&self) -> Option<TokenRatio> {
        self.ledger(|it| it.token_ratio(self.config.endpoint.server(), &self.config.model))
            .ok()
            .flatten()
    }

    /// Learns how long the model's tokens are, once nothing is left to be done: what is asked again after
    /// a crash must be cut as it was. And not while a batch is under way, for the same reason.
    fn record_token_samples(&self, read: &[(u64, u64)]) -> Result<(), CallError> {
        let (server, model) = (self.config.endpoint.server(), &self.config.model);
        // What is learned counts for all roots, and so do the batches that are under way.
        if read.is_empty() || self.ledger(|it| it.has_open_batches())? {
            return Ok(());
        }
        let known = self.weight();
        let learned =
            read.iter().fold(known, |known, it| token_estimate::updated_weight(known, it.0, it.1));
        match learned {
            Some(weight) if learned != known => {
                self.ledger(|it| it.record_token_ratio(server, model, &weight))
            }
            _ => Ok(()),
        }
    }

    /// Lets the next request go out whatever was before: a person asks, who has seen to it.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be written.
    pub fn reset_circuit(&self) -> Result<(), CallError> {
        let row = self.server_row()?;
        self.save_server_row(&ServerRow {
            failures: 0,
            open_until: None,
            refused_account: None,
            ..row
        })
    }

    /// Returns why no request would go out now, or `None` if one would. Only reads.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn circuit_error(
        &self,
        ledger: &Ledger,
        now: DateTime<Utc>,
    ) -> Result<Option<CallError>, LedgerError> {
        let row = ledger.server(self.config.endpoint.server(), &self.config.model)?;
        Ok(self.check_circuit(&row, now).err())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ModelClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the ledger, which is opened when it is first needed: most verbs never call a model.
    #[expect(
        clippy::significant_drop_tightening,
        reason = "the lock is held for as long as the ledger is asked"
    )]
    pub(super) fn ledger<T>(
        &self,
        question: impl FnOnce(&mut Ledger) -> Result<T, LedgerError>,
    ) -> Result<T, CallError> {
        let failed = |e: &dyn fmt::Display| CallError::Ledger(e.to_string());
        let mut slot = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let ledger = match &mut *slot {
            Some(ledger) => ledger,
            none => {
                let now = clock::now().map_err(|e| failed(&e))?;
                let ModelClientConfig { ledger_path: ledger, was_used, zone, .. } = &self.config;
                let day = now.with_timezone(zone).date_naive();
                none.insert(Ledger::open(ledger, *was_used, day).map_err(|e| failed(&e))?)
            }
        };
        question(ledger).map_err(|e| failed(&e))
    }

    pub(super) fn server_row(&self) -> Result<ServerRow, CallError> {
        self.ledger(|it| it.server(self.config.endpoint.server(), &self.config.model))
    }

    pub(super) fn save_server_row(&self, row: &ServerRow) -> Result<(), CallError> {
        let (server, model) = (self.config.endpoint.server(), &self.config.model);
        self.ledger(|it| it.record_server(server, model, row))
    }

    /// Counts work that came to nothing, after so many failures.
    fn record_wasted_work(&self, failures: u32) -> Result<(), CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let row = self.server_row()?;
        let failures = failures.max(row.failures);
        let wasted = CircuitBreaker { failures, ..circuit_of(&row) }.after_wasted_work(now);
        let CircuitBreaker { failures, open_until, blocked_account: barred } = wasted;
        self.save_server_row(&ServerRow { failures, open_until, refused_account: barred, ..row })
    }

    /// Lets a request pass, or says why not.
    pub(super) fn check_circuit(
        &self,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<CircuitState, CallError> {
        let server = || self.config.endpoint.server().to_owned();
        match circuit_of(row).state(&self.config.account, now) {
            CircuitState::Open(until) => {
                Err(CallError::CircuitOpen { server: server(), failures: row.failures, until })
            }
            CircuitState::AccountBlocked => Err(CallError::AccountBlocked { server: server() }),
            gate => Ok(gate),
        }
    }

    /// Charges the call as its worst case.
    pub(super) fn reserve(
        &self,
        request: &ModelRequest,
        now: DateTime<Utc>,
        in_batch: bool,
    ) -> Result<CallId, CallError> {
        let ModelClientConfig { model, caps, pricing, zone, endpoint: wire, .. } = &self.config;
        let input_tokens = tokens_max(request, self.weight());
        let output_tokens = u64::from(request.max_output_tokens);
        let price = pricing.of(model);
        let on_money = [caps.day, caps.month, caps.root_day, caps.root_month];
        if price.is_none() && !wire.is_local() && on_money.iter().any(|it| it.usd.is_some()) {
            return Err(CallError::Config(format!(
                "no price is known of `{model}`, and budget.day.usd or budget.month.usd is set: \
                 give its price in pricing.yaml, or set both to null"
            )));
        }
        // What stays on this machine is nobody's to charge, whatever a model of that name costs.
        let price = price.filter(|_| !wire.is_local());
        let root = self.config.root.to_string_lossy();
        let run = self.state().run;
        let call = NewCall {
            at: now,
            day: now.with_timezone(zone).date_naive(),
            root: &root,
            run,
            stage: request.stage.name(),
            period: &request.period,
            provider: wire.provider(),
            model,
            tokens: input_tokens + output_tokens,
            usd: match price {
                Some(price) => Some(
                    price.worst_case_cost(input_tokens, output_tokens)
                        * price.batch_factor(in_batch),
                ),
                None if wire.is_local() => Some(0.0),
                None => None,
            },
            price_date: price.map(|it| it.date),
        };
        let reserved = self.ledger(|it| it.reserve(&call, caps))?;
        reserved.map_err(|reached| CallError::BudgetExhausted(budget_message(&reached)))
    }

    /// Asks for what is no reply in words: `once` sends it and reads the answer, of which the reply tells
    /// what it took. Nothing of it is kept.
    pub(super) fn call_embeddings(
        &self,
        request: &ModelRequest,
        once: &mut SendWithHttp<'_>,
    ) -> Result<(), CallError> {
        let span = telemetry::embeddings_span(&self.config.endpoint, &self.config.model, request);
        let _entered = span.enter();
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.server_row()?;
        let gate = self.check_circuit(&row, now)?;
        let call = self.reserve(request, now, false)?;
        if gate == CircuitState::HalfOpen {
            let trying = circuit_of(&row).during_probe(self.config.deadlines.total, now);
            self.save_server_row(&ServerRow { open_until: trying.open_until, ..row.clone() })?;
        }
        let got = self.send(request, &mut row, &mut |_, now| once(&self.http, now));
        let cost_usd = self.settle_charge(call, &got, false)?;
        self.save_server_row(&row)?;
        let mut state = self.state();
        state.spent.calls += 1;
        state.spent.cost_usd += cost_usd;
        drop(state);
        telemetry::record_outcome(&span, &got, cost_usd);
        got.reply.map(drop)
    }

    /// Sends the request, again after a pause where that makes sense.
    fn send(
        &self,
        request: &ModelRequest,
        row: &mut ServerRow,
        once: &mut SendOnce<'_>,
    ) -> CallOutcome {
        let begun = Instant::now();
        let (mut requests, mut lost) = (0, 0);
        loop {
            requests += 1;
            let now = clock::now().unwrap_or_default();
            let reply = once(row, now);
            let took = begun.elapsed();
            let error = match reply {
                Ok(reply) => {
                    row.failures = 0;
                    row.open_until = None;
                    row.refused_account = None;
                    let whole = super::check_complete(reply.clone(), request.max_output_tokens);
                    if let Err(CallError::TooLong { limit: Some(limit) }) = whole {
                        row.context_tokens = Some(limit);
                    }
                    return CallOutcome { reply: Ok(reply), requests, lost, duration: took };
                }
                Err(error) => error,
            };
            if let Some(dialect) = dialect_of(row).after_refusal(&error, request)
                && matches!(self.config.endpoint, ProviderEndpoint::Openai { .. })
            {
                row.schema_mode = Some(dialect.schema_mode.name().to_owned());
                row.is_thinking = dialect.is_reasoning_model;
                continue;
            }
            if let CallError::TooLong { limit: Some(limit) } = error {
                row.context_tokens = Some(limit);
            }
            let next = circuit_of(row).after_failure(&error, &self.config.account, now);
            (row.failures, row.open_until, row.refused_account) =
                (next.failures, next.open_until, next.blocked_account);
            // Kept as it goes, so that a crash between two tries does not begin to count anew.
            drop(self.save_server_row(row));
            let may_try = error.is_retryable() && requests < TRIES_MAX && row.open_until.is_none();
            let pause = may_try.then(|| self.retry_delay(&error, requests)).flatten();
            let Some(pause) = pause else {
                return CallOutcome { reply: Err(error), requests, lost, duration: took };
            };
            lost += u32::from(error.may_have_cost());
            thread::sleep(pause);
        }
    }

    /// Returns how long to wait before the next try, if there is patience left for it.
    fn retry_delay(&self, error: &CallError, tries: u32) -> Option<Duration> {
        let grown = RETRY_DELAY.saturating_mul(1 << (tries - 1)).min(RETRY_DELAY_MAX);
        let wanted = error.retry_after().unwrap_or_else(|| with_jitter(grown));
        let mut state = self.state();
        let so_far = state.waited + wanted;
        if so_far > self.config.patience {
            return None;
        }
        state.waited = so_far;
        drop(state);
        Some(wanted)
    }

    /// Sends the request once.
    fn send_once(
        &self,
        request: &ModelRequest,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<ModelReply, CallError> {
        let ModelClientConfig { endpoint: wire, model, context_tokens, .. } = &self.config;
        let headers = self.request_headers();
        let bytes = |body: serde_json::Value| body.to_string().into_bytes();
        let reply = match wire {
            ProviderEndpoint::Anthropic { base, .. } => {
                let body = bytes(anthropic::body(request, model));
                let server = base.as_str();
                let answer = self.http.post(server, anthropic::PATH, &headers, body, now)?;
                anthropic::reply(server, &answer)
            }
            ProviderEndpoint::Openai { base } => {
                let body = bytes(openai::body(request, model, dialect_of(row)));
                let server = base.as_str();
                let answer = self.http.post(server, openai::PATH, &headers, body, now)?;
                openai::reply(server, &answer)
                    .and_then(|it| check_fully_read(it, text_bytes(request)))
            }
            ProviderEndpoint::Ollama { base } => {
                let body = bytes(ollama::body(request, model, *context_tokens));
                let server = base.as_str();
                let answer = self.http.post(server, ollama::PATH, &headers, body, now)?;
                ollama::reply(server, &answer)
                    .and_then(|it| check_fully_read(it, text_bytes(request)))
            }
            ProviderEndpoint::Command(program) => {
                program.complete(request, model, self.config.deadlines.total)
            }
        };
        reply.and_then(|it| self.reject_leaked_key(it))
    }

    /// Returns what goes with every request: the key among it.
    pub(super) fn request_headers(&self) -> Vec<RequestHeader> {
        let secret = |name, value| RequestHeader { name, value, is_secret: true };
        let plain =
            |name, value: &str| RequestHeader { name, value: value.to_owned(), is_secret: false };
        if let ProviderEndpoint::Anthropic { api_version, .. } = &self.config.endpoint {
            let mut headers = vec![plain("anthropic-version", api_version)];
            headers.extend(self.key().map(|it| secret("x-api-key", it.to_owned())));
            return headers;
        }
        let bearer = self.key().map(|it| secret("authorization", format!("Bearer {it}")));
        bearer.into_iter().collect()
    }

    fn key(&self) -> Option<&str> {
        self.config.key.as_ref().map(Secret::expose)
    }

    /// Returns a reply unless it says our key back, which would be kept and shown.
    pub(super) fn reject_leaked_key(&self, reply: ModelReply) -> Result<ModelReply, CallError> {
        reject_leaked_key(reply, self.key())
    }

    /// Returns whether a text holds our key.
    pub(super) fn contains_key(&self, text: &str) -> bool {
        self.key().is_some_and(|it| text.contains(it))
    }

    /// Corrects the charge.
    pub(super) fn settle_charge(
        &self,
        call: CallId,
        got: &CallOutcome,
        in_batch: bool,
    ) -> Result<f64, CallError> {
        let latency_ms = u64::try_from(got.duration.as_millis()).unwrap_or(u64::MAX);
        let reply = match &got.reply {
            Ok(reply) => reply,
            Err(error) if error.may_have_cost() => {
                self.ledger(|it| {
                    it.finish_call_of_unknown_cost(
                        call,
                        error.name(),
                        latency_ms,
                        got.requests,
                        got.lost,
                    )
                })?;
                return Ok(0.0);
            }
            Err(error) => {
                let settled = CallResult {
                    outcome: error.name(),
                    usd: Some(0.0),
                    latency_ms,
                    requests: got.requests,
                    maybe_charged_requests: got.lost,
                    ..CallResult::default()
                };
                self.ledger(|it| it.finish_call(call, &settled))?;
                return Ok(0.0);
            }
        };
        let Some(usage) = reply.usage else {
            // The server does not say what it took: the worst case stands.
            let outcome = reply.finish_reason.name();
            self.ledger(|it| {
                it.finish_call_of_unknown_cost(call, outcome, latency_ms, got.requests, got.lost)
            })?;
            return Ok(0.0);
        };
        let usd = self.cost(reply, &usage, in_batch);
        let settled = CallResult {
            outcome: reply.finish_reason.name(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            usd,
            latency_ms,
            request_id: reply.id.as_deref(),
            requests: got.requests,
            maybe_charged_requests: got.lost,
        };
        self.ledger(|it| it.finish_call(call, &settled))?;
        Ok(usd.unwrap_or(0.0))
    }

    /// Returns what a call cost: as the provider says, or by its price.
    fn cost(&self, reply: &ModelReply, usage: &TokenUsage, in_batch: bool) -> Option<f64> {
        let said = reply.cost_usd.filter(|it| it.is_finite() && *it >= 0.0);
        match self.config.pricing.of(&self.config.model) {
            _ if said.is_some() => said,
            _ if self.config.endpoint.is_local() => Some(0.0),
            price => price.map(|it| it.cost(usage) * it.batch_factor(in_batch)),
        }
    }

    /// Returns the reply that is kept of this very request, from before a crash.
    pub(super) fn stored_reply(&self, key: ContentHash) -> Option<ModelReply> {
        let text = self.config.vault.as_ref()?.saved_reply(key).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Tries whether a reply could be kept, with one of the usual length.
    fn probe_storage(&self, key: ContentHash) -> Result<(), CallError> {
        const USUAL_BYTES: usize = 64 * 1024;
        let Some(vault) = &self.config.vault else { return Ok(()) };
        let failed = |e: crate::store::fs::vault::VaultError| CallError::Ledger(e.to_string());
        vault.save_reply(key, &" ".repeat(USUAL_BYTES)).map_err(failed)?;
        vault.remove_reply(key).map_err(failed)
    }

    fn store_reply(&self, key: ContentHash, reply: &ModelReply) -> Result<(), CallError> {
        let Some(vault) = &self.config.vault else { return Ok(()) };
        let text = serde_json::to_string(reply).map_err(|e| CallError::Ledger(e.to_string()))?;
        vault.save_reply(key, &text).map_err(|e| CallError::Ledger(e.to_string()))?;
        Ok(())
    }
}

impl LanguageModel for ModelClient {
    fn unavailable_reason(&self, now: DateTime<Utc>) -> Option<CallError> {
        // Where there is no ledger yet, or it cannot be read, a request finds out.
        let ledger = Ledger::open_existing(&self.config.ledger_path).ok()??;
        self.circuit_error(&ledger, now).ok()?
    }

    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError> {
        let span = telemetry::chat_span(&self.config.endpoint, &self.config.model, request);
        let _entered = span.enter();
        let key = request.key(self.config.endpoint.server(), &self.config.model);
        // One with a name serves other work, too, which takes it.
        let is_taken = request.name.is_none();
        if let Some(reply) = self.stored_reply(key) {
            if is_taken {
                self.state().pending_replies.push(key);
            }
            self.claim_batched(key)?;
            return super::check_complete(reply, request.max_output_tokens);
        }
        let cannot_keep = self.state().storage_error.clone();
        if let Some(why) = cannot_keep {
            // Until there is room again a reply would be paid and lost.
            self.probe_storage(key).map_err(|_| CallError::Ledger(why))?;
            self.state().storage_error = None;
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.server_row()?;
        let gate = self.check_circuit(&row, now)?;
        self.state().failures_before.get_or_insert(row.failures);
        if self.enqueue(request, key, &row, now)? {
            self.state().waits_for_batch = true;
            return Err(CallError::AwaitingBatch);
        }
        let call = self.reserve(request, now, false)?;
        if gate == CircuitState::HalfOpen {
            let trying = circuit_of(&row).during_probe(self.config.deadlines.total, now);
            let others_see = ServerRow { open_until: trying.open_until, ..row.clone() };
            self.save_server_row(&others_see)?;
        }
        let got = self.send(request, &mut row, &mut |row, now| self.send_once(request, row, now));
        if let Ok(reply) = &got.reply {
            // Before anything else that could end us.
            reach_failpoint("model.answered")?;
            match self.store_reply(key, reply) {
                Ok(()) => {
                    let mut state = self.state();
                    state.storage_error = None;
                    if is_taken {
                        state.pending_replies.push(key);
                    }
                }
                // It is paid, and here: this work goes on with it, and no other is begun.
                Err(error) => {
                    tracing::warn!("the reply of the model could not be kept: {error}");
                    self.state().storage_error = Some(error.to_string());
                }
            }
            reach_failpoint("model.replied")?;
        }
        let cost_usd = self.settle_charge(call, &got, false)?;
        reach_failpoint("model.settled")?;
        self.save_server_row(&row)?;
        let mut state = self.state();
        state.spent.calls += 1;
        state.spent.cost_usd += cost_usd;
        if let Ok(ModelReply { usage: Some(usage), .. }) = &got.reply {
            state.token_samples.push((request.chars() as u64, usage.input_tokens));
        }
        drop(state);
        telemetry::record_outcome(&span, &got, cost_usd);
        got.reply.and_then(|it| super::check_complete(it, request.max_output_tokens))
    }

    fn earlier_reply(&self, request: &ModelRequest, taken: bool) -> Option<ModelReply> {
        let key = request.key(self.config.endpoint.server(), &self.config.model);
        let reply = self.stored_reply(key)?;
        // Should it stay noted as under way, it is looked for once more, and found.
        drop(self.claim_batched(key));
        if taken {
            self.state().pending_replies.push(key);
        }
        super::check_complete(reply, request.max_output_tokens).ok()
    }

    fn context_tokens(&self) -> Option<u32> {
        Some(ModelClient::context_tokens(self))
    }

    fn supports_tools(&self) -> bool {
        // A program reads a prompt and prints a reply.
        !matches!(self.config.endpoint, ProviderEndpoint::Command(_))
    }

    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(self.weight())
    }

    fn set_run(&self, run: i64) {
        self.state().run = Some(run);
    }

    fn take_spending(&self) -> Spending {
        std::mem::take(&mut self.state().spent)
    }

    fn mark_too_large(&self, request: &ModelRequest) {
        let key = request.key(self.config.endpoint.server(), &self.config.model);
        if let Some(vault) = &self.config.vault {
            // What it said may be looked at. Where it cannot be noted the question is asked once more.
            if self.stored_reply(key).is_some() {
                drop(vault.set_aside_reply(key));
            }
            drop(vault.save_reply(key, TOO_LARGE_MARKER));
        }
    }

    fn is_marked_too_large(&self, request: &ModelRequest) -> bool {
        let key = request.key(self.config.endpoint.server(), &self.config.model);
        let kept = self.config.vault.as_ref().and_then(|it| it.saved_reply(key).ok().flatten());
        kept.as_deref() == Some(TOO_LARGE_MARKER)
    }

    fn finish_work(&self, end: WorkOutcome) {
        let (kept, failures_before, is_waiting) = {
            let mut state = self.state();
            let is_waiting = std::mem::take(&mut state.waits_for_batch);
            (std::mem::take(&mut state.pending_replies), state.failures_before.take(), is_waiting)
        };
        if let (WorkOutcome::Unusable, Some(failures)) = (end, failures_before) {
            // It is counted with the next one, if it cannot be written now.
            drop(self.record_wasted_work(failures));
        }
        let Some(vault) = self.config.vault.as_ref().filter(|_| !is_waiting) else { return };
        for key in kept {
            // Should it stay, the same request is answered by it once more, and no harm done.
            drop(match end {
                WorkOutcome::Done => vault.remove_reply(key),
                WorkOutcome::Unusable => vault.set_aside_reply(key),
                WorkOutcome::Deferred => Ok(()),
            });
        }
    }

    fn on_idle(&self) {
        let read = std::mem::take(&mut self.state().token_samples);
        // What is not learned now is learned another time.
        drop(self.record_token_samples(&read));
    }

    fn fetch_batched(&self) -> Result<bool, CallError> {
        ModelClient::fetch_batched(self)
    }

    fn begin_scheduled_run(&self) -> Result<bool, CallError> {
        ModelClient::begin_scheduled_run(self)
    }

    fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError> {
        ModelClient::end_scheduled_run(self)
    }
}

/// Refuses a reply that says our key back, which would be kept and shown.
fn reject_leaked_key(mut reply: ModelReply, key: Option<&str>) -> Result<ModelReply, CallError> {
    let holds_key = |it: &String| key.is_some_and(|key| it.contains(key));
    let called = serde_json::to_string(&(&reply.calls, &reply.verbatim)).unwrap_or_default();
    if holds_key(&reply.text) || holds_key(&called) {
        return Err(CallError::InvalidReply("it says the key back".to_owned()));
    }
    reply.id = reply.id.filter(|it| !holds_key(it));
    reply.model = reply.model.filter(|it| !holds_key(it));
    Ok(reply)
}

/// Passes a step that a test may stop at.
pub(super) fn reach_failpoint(step: &'static str) -> Result<(), CallError> {
    failpoint::at(step).map_err(|e| CallError::Ledger(e.to_string()))
}

/// Returns what is known of a server as a breaker.
pub(super) fn circuit_of(row: &ServerRow) -> CircuitBreaker {
    CircuitBreaker {
        failures: row.failures,
        open_until: row.open_until,
        blocked_account: row.refused_account.clone(),
    }
}

/// Returns what is known of a server as a dialect.
pub(super) fn dialect_of(row: &ServerRow) -> OpenaiDialect {
    let rung = SchemaMode::ALL.into_iter().find(|it| Some(it.name()) == row.schema_mode.as_deref());
    OpenaiDialect { schema_mode: rung.unwrap_or_default(), is_reasoning_model: row.is_thinking }
}

/// Returns the most tokens that a request can be: what can be of any text, or more where the model's tokens
/// were seen to be shorter. That they were longer so far says nothing of a text full of numbers and code.
fn tokens_max(request: &ModelRequest, weight: Option<TokenRatio>) -> u64 {
    let usual = request_bytes(request).div_ceil(BYTES_PER_TOKEN_MIN);
    let seen = weight.map(|_| {
        token_estimate::estimate(
            request.chars() as u64,
            token_estimate::min_chars_per_token(weight) * WORST_CASE_FACTOR,
        )
    });
    usual.max(seen.unwrap_or(0))
}

fn request_bytes(request: &ModelRequest) -> u64 {
    let schema: usize = request.schema.iter().map(|it| it.schema.to_string().len()).sum();
    let tools: usize = request.tools.iter().map(Tool::bytes).sum();
    let verbatim = request.messages.iter().filter_map(|it| it.verbatim.as_ref());
    let verbatim: usize = verbatim.map(|it| it.to_string().len()).sum();
    text_bytes(request) + (schema + tools + verbatim) as u64
}

/// Returns how long the words of a request are.
pub(super) fn text_bytes(request: &ModelRequest) -> u64 {
    let results = |it: &Message| it.results.iter().map(|it| it.text.len()).sum::<usize>();
    let messages: usize = request.messages.iter().map(|it| it.text.len() + results(it)).sum();
    (request.system.len() + messages) as u64
}

/// Refuses a reply of a server that did not read all that was sent: some cut a prompt to what fits
/// and say nothing.
pub(super) fn check_fully_read(reply: ModelReply, bytes: u64) -> Result<ModelReply, CallError> {
    let sent = bytes / BYTES_PER_TOKEN_MAX;
    match reply.usage {
        Some(usage) if usage.input_tokens > 0 && usage.input_tokens < sent => {
            Err(CallError::PromptTruncated { read: usage.input_tokens, sent })
        }
        _ => Ok(reply),
    }
}

/// Takes up to a quarter off a pause, so that many clients do not come back at once.
fn with_jitter(pause: Duration) -> Duration {
    let mut byte = [0u8; 1];
    let got = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::empty());
    let share = if got.is_ok() { u32::from(byte[0]) } else { 0 };
    pause.saturating_sub(pause * share / (4 * 256))
}

/// Says in one plain line that a cap is reached.
fn budget_message(reached: &ExhaustedBudget) -> String {
    let ExhaustedBudget {
        period: stretch,
        is_root_share: of_root,
        unit,
        used,
        requested: wanted,
        limit: cap,
    } = reached;
    let whose = if *of_root { "this root's budget" } else { "the budget" };
    // A call costs less than a cent often, and no call is half a call.
    let amount = |it: f64| match *unit {
        "usd" if it > 0.0 && it < 0.1 => format!("{it:.4}"),
        "usd" => format!("{it:.2}"),
        _ => format!("{it:.0}"),
    };
    let unit_name = if *unit == "usd" { "USD" } else { unit };
    let wanted = match *unit {
        "calls" => String::new(),
        _ => format!(", and the next call may take {}", amount(*wanted)),
    };
    let next = if *stretch == "day" { "tomorrow" } else { "next month" };
    format!(
        "{whose} of the {stretch} is reached: {} of {} {unit_name} used{wanted}; it goes on {next}, or \
         raise budget.{stretch}.{unit}",
        amount(*used),
        amount(*cap),
    )
}
