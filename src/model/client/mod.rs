//! The client: everything between a request and its reply.
//!
//! In this order: a stored reply from before a crash, the circuit breaker, the price and the budget,
//! the request with its retries, the reply on disk, the ledger. Nothing else sends requests.
//!
//! - [`endpoint`]: where requests go.
//! - `circuit`: whether the server is paused.
//! - `budget`: the charge before and after a call.
//! - `send`: the request itself, and retries.
//! - `stored_replies`: replies on disk.
//!
//! # Invariants
//!
//! - A call costs at most what was reserved for it.
//! - A call that a crash interrupts stays charged at its worst case. If its reply was stored, the
//!   request is not sent again.

pub(in crate::model) mod budget;
mod circuit;
pub mod endpoint;
pub(in crate::model) mod send;
mod stored_replies;

use std::{
    fmt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use serde_json::Value;

use self::endpoint::ProviderEndpoint;
use super::{
    Batching, CallError, LanguageModel, ModelReply, ModelRequest, Spending, WorkOutcome,
    check_complete,
    http::{Deadlines, HttpClient},
    pricing::Pricing,
    recording::Recording,
    telemetry, token_estimate,
};
use crate::{
    clock,
    config::api_key::Secret,
    memory::hash::ContentHash,
    store::{
        db::ledger::{
            CallBudgets, Ledger, LedgerError, ServerRow, TokenRatio, batch::BatchRequestRow,
        },
        failpoint,
        fs::vault::Vault,
    },
};
#[cfg(feature = "fleet")]
use crate::{model::shared_spending::SharedSpending, store::db::ledger::CallId};

/// What a [`ModelClient`] is made of.
pub struct ModelClientConfig {
    /// Where requests go.
    pub endpoint: ProviderEndpoint,
    /// The name of the model there.
    pub model: String,
    /// The key, if the server needs one.
    pub key: Option<Secret>,
    /// A name that identifies the account and contains no key.
    pub account: String,
    /// How many tokens the model reads and writes in one call.
    pub context_tokens: u32,
    /// How long a call may take.
    pub deadlines: Deadlines,
    /// What tokens cost.
    pub pricing: Pricing,
    /// How much may be spent.
    pub budgets: CallBudgets,
    /// The root's time zone, which defines the days of the budget.
    pub zone: Tz,
    /// The root, as the ledger names it.
    pub root: PathBuf,
    /// Where replies are stored; `None` for calls whose replies are not.
    pub vault: Option<Vault>,
    /// How long to wait in total between retries.
    pub retry_wait_max: Duration,
    /// Where calls are counted.
    pub ledger: LedgerFile,
    /// Whether scheduled runs may use the provider's batches.
    pub batch: bool,
    /// Where calls are recorded, if at all.
    pub recording: Option<Recording>,
}

/// The file of the ledger.
pub struct LedgerFile {
    /// Its path.
    pub path: PathBuf,
    /// Whether a model was called before, so that a missing ledger was lost.
    pub was_used: bool,
}

/// A client of one model, for one root.
pub struct ModelClient {
    pub(super) config: ModelClientConfig,
    pub(super) http: HttpClient,
    ledger: Mutex<Option<Ledger>>,
    state: Mutex<ModelClientState>,
    /// The budget that several machines share, if they do.
    #[cfg(feature = "fleet")]
    shared: Option<std::sync::Arc<dyn SharedSpending>>,
}

/// What changes from call to call.
#[derive(Default)]
pub(super) struct ModelClientState {
    pub(super) spent: Spending,
    waited: Duration,
    run: Option<i64>,
    /// Requests whose replies stay stored until the current work has ended.
    pending_replies: Vec<ContentHash>,
    /// Failures in a row before the current work.
    failures_before: Option<u32>,
    /// Whether a scheduled run asks, so that requests may be queued for a batch.
    pub(super) is_scheduled: bool,
    /// What is sent at the end of the scheduled run.
    pub(super) queue: Vec<QueuedRequest>,
    /// Why the last reply could not be stored.
    storage_error: Option<String>,
    /// The current work waits for a batch, so its stored replies are needed again.
    waits_for_batch: bool,
    /// Characters sent and tokens read, per call since the client was last idle.
    token_samples: Vec<(u64, u64)>,
    /// Open calls, with their numbers in the shared budget.
    #[cfg(feature = "fleet")]
    pub(super) shared_calls: Vec<(CallId, i64)>,
}

/// A request that is sent at the end of the scheduled run.
pub(super) struct QueuedRequest {
    pub(super) row: BatchRequestRow,
    pub(super) body: Value,
    pub(super) length: usize,
}

/// Carries a request of [`ModelClient::call_embeddings`].
pub(super) type SendWithHttp<'a> =
    dyn FnMut(&HttpClient, DateTime<Utc>) -> Result<ModelReply, CallError> + 'a;

impl fmt::Debug for ModelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelClient")
            .field("endpoint", &self.config.endpoint)
            .finish_non_exhaustive()
    }
}

impl ModelClient {
    /// Returns a client. Nothing is opened or sent yet.
    pub fn new(config: ModelClientConfig) -> Self {
        let http = HttpClient::new(config.deadlines);
        Self {
            config,
            http,
            ledger: Mutex::default(),
            state: Mutex::default(),
            #[cfg(feature = "fleet")]
            shared: None,
        }
    }

    /// Makes calls under a budget that several machines share. Batches are off then: who sends one may not be there
    /// when it is answered.
    #[cfg(feature = "fleet")]
    pub(crate) fn share_spending(&mut self, shared: std::sync::Arc<dyn SharedSpending>) {
        self.shared = Some(shared);
        self.config.batch = false;
    }

    /// Stores the reply that another machine paid for as if it were our own.
    #[cfg(feature = "fleet")]
    fn fetch_shared_reply(&self, key: ContentHash) -> Result<(), CallError> {
        let Some(shared) = self.shared.as_ref().filter(|_| self.stored_reply(key).is_none()) else {
            return Ok(());
        };
        let text = shared.stored_reply(&key.to_string())?;
        // What cannot be parsed is asked for again.
        match text.and_then(|it| serde_json::from_str::<ModelReply>(&it).ok()) {
            Some(reply) => self.store_reply(key, &reply),
            None => Ok(()),
        }
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.config.model
    }

    /// Returns where requests go.
    pub fn endpoint(&self) -> &ProviderEndpoint {
        &self.config.endpoint
    }

    /// Returns how many tokens the model reads and writes in one call: as configured, or less if the
    /// server reported a lower limit.
    pub fn context_tokens(&self) -> u32 {
        let reported = self.server_row().ok().and_then(|it| it.context_tokens);
        let reported = reported.and_then(|it| u32::try_from(it).ok());
        reported.map_or(self.config.context_tokens, |it| it.min(self.config.context_tokens))
    }

    /// Returns the length of the model's tokens, as learned from earlier calls.
    pub fn token_ratio(&self) -> Option<TokenRatio> {
        self.ledger(|it| it.token_ratio(self.config.endpoint.server(), &self.config.model))
            .ok()
            .flatten()
    }

    /// Learns the length of the model's tokens.
    ///
    /// Called only when no work is left, and does nothing while a batch is open: requests that are
    /// repeated after a crash must be cut into the same parts as before.
    fn record_token_samples(&self, samples: &[(u64, u64)]) -> Result<(), CallError> {
        let (server, model) = (self.config.endpoint.server(), &self.config.model);
        // The ratio is shared by all roots, so the batches of all roots count.
        if samples.is_empty() || self.ledger(|it| it.has_open_batches())? {
            return Ok(());
        }
        let before = self.token_ratio();
        let learned = samples.iter().fold(before, |ratio, (chars, tokens)| {
            token_estimate::updated_ratio(ratio, *chars, *tokens)
        });
        match learned {
            Some(ratio) if learned != before => {
                self.ledger(|it| it.record_token_ratio(server, model, &ratio))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ModelClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses the ledger, which is opened on first use: most commands never call a model.
    #[expect(
        clippy::significant_drop_tightening,
        reason = "the lock is held for as long as the ledger is used"
    )]
    pub(super) fn ledger<T>(
        &self,
        query: impl FnOnce(&mut Ledger) -> Result<T, LedgerError>,
    ) -> Result<T, CallError> {
        let failed = |e: &dyn fmt::Display| CallError::Ledger(e.to_string());
        let mut slot = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        let ledger = match &mut *slot {
            Some(ledger) => ledger,
            none => {
                let now = clock::now().map_err(|e| failed(&e))?;
                let ModelClientConfig { ledger: LedgerFile { path, was_used }, zone, .. } =
                    &self.config;
                let day = now.with_timezone(zone).date_naive();
                none.insert(Ledger::open(path, *was_used, day).map_err(|e| failed(&e))?)
            }
        };
        query(ledger).map_err(|e| failed(&e))
    }

    pub(super) fn server_row(&self) -> Result<ServerRow, CallError> {
        self.ledger(|it| it.server(self.config.endpoint.server(), &self.config.model))
    }

    pub(super) fn save_server_row(&self, row: &ServerRow) -> Result<(), CallError> {
        let (server, model) = (self.config.endpoint.server(), &self.config.model);
        self.ledger(|it| it.record_server(server, model, row))
    }

    /// Requests embeddings, under the same circuit, budget and ledger as any call.
    ///
    /// `once` sends the request and reads the answer; its reply holds only the usage. Nothing is
    /// stored.
    pub(super) fn call_embeddings(
        &self,
        request: &ModelRequest,
        once: &mut SendWithHttp<'_>,
    ) -> Result<(), CallError> {
        let span = telemetry::embeddings_span(&self.config.endpoint, &self.config.model, request);
        let _entered = span.enter();
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.server_row()?;
        let circuit = self.check_circuit(&row, now)?;
        let call = self.reserve(request, now, false)?;
        self.announce_probe(circuit, &row, now)?;
        let sent = self.send(request, &mut row, &mut |_, now| once(&self.http, now));
        let cost_usd = self.settle_charge(call, &sent, false)?;
        self.save_server_row(&row)?;
        self.count_spending(cost_usd);
        telemetry::record_outcome(&span, &sent, cost_usd);
        sent.reply.map(drop)
    }

    /// Adds one call to what was spent.
    pub(super) fn count_spending(&self, cost_usd: f64) {
        let mut state = self.state();
        state.spent.calls += 1;
        state.spent.cost_usd += cost_usd;
    }

    /// Appends a call to the file of recorded calls, if there is one.
    fn record(&self, request: &ModelRequest, reply: &ModelReply) {
        let Some(recording) = &self.config.recording else { return };
        if let Err(error) = recording.append(request, &reply.text) {
            let path = recording.path.display();
            tracing::warn!("model.record: cannot write `{path}`: {error}");
        }
    }

    /// Stores a reply before anything else can end the process.
    fn keep_paid_reply(&self, request: &ModelRequest, key: ContentHash, reply: &ModelReply) {
        #[cfg(feature = "fleet")]
        if let Some(shared) = &self.shared {
            let text = serde_json::to_string(reply).unwrap_or_default();
            if let Err(error) = shared.store_reply(&key.to_string(), &text) {
                tracing::warn!("the reply of the model is stored on this machine only: {error}");
            }
        }
        match self.store_reply(key, reply) {
            Ok(()) => {
                let mut state = self.state();
                state.storage_error = None;
                if request.name.is_none() {
                    state.pending_replies.push(key);
                }
            }
            // The reply is paid and in memory: this work continues with it, and no other starts.
            Err(error) => {
                tracing::warn!("the reply of the model could not be stored: {error}");
                self.state().storage_error = Some(error.to_string());
            }
        }
    }
}

impl LanguageModel for ModelClient {
    fn unavailable_reason(&self, now: DateTime<Utc>) -> Option<CallError> {
        // If the ledger is missing or unreadable, the next request reports it.
        let ledger = Ledger::open_existing(&self.config.ledger.path).ok()??;
        self.circuit_error(&ledger, now).ok()?
    }

    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError> {
        let span = telemetry::chat_span(&self.config.endpoint, &self.config.model, request);
        let _entered = span.enter();
        let key = self.reply_key(request);
        #[cfg(feature = "fleet")]
        self.fetch_shared_reply(key)?;
        if let Some(reply) = self.stored_reply(key) {
            // The reply to a named request serves other work too, which claims it.
            if request.name.is_none() {
                self.state().pending_replies.push(key);
            }
            self.claim_batched(key)?;
            return check_complete(reply, request.max_output_tokens);
        }
        let storage_error = self.state().storage_error.clone();
        if let Some(reason) = storage_error {
            // Until there is room again, a reply would be paid for and lost.
            self.probe_storage(key).map_err(|_| CallError::Ledger(reason))?;
            self.state().storage_error = None;
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.server_row()?;
        let circuit = self.check_circuit(&row, now)?;
        self.state().failures_before.get_or_insert(row.failures);
        if self.enqueue(request, key, &row, now)? {
            self.state().waits_for_batch = true;
            return Err(CallError::AwaitingBatch);
        }
        let call = self.reserve(request, now, false)?;
        self.announce_probe(circuit, &row, now)?;
        let sent = self.send(request, &mut row, &mut |row, now| self.send_once(request, row, now));
        if let Ok(reply) = &sent.reply {
            reach_failpoint("model.answered")?;
            self.keep_paid_reply(request, key, reply);
            self.record(request, reply);
            reach_failpoint("model.replied")?;
        }
        let cost_usd = self.settle_charge(call, &sent, false)?;
        reach_failpoint("model.settled")?;
        self.save_server_row(&row)?;
        self.count_spending(cost_usd);
        if let Ok(ModelReply { usage: Some(usage), .. }) = &sent.reply {
            let sample = (request.chars() as u64, usage.input_tokens);
            self.state().token_samples.push(sample);
        }
        telemetry::record_outcome(&span, &sent, cost_usd);
        sent.reply.and_then(|it| check_complete(it, request.max_output_tokens))
    }

    fn earlier_reply(&self, request: &ModelRequest, claim: bool) -> Option<ModelReply> {
        let key = self.reply_key(request);
        let reply = self.stored_reply(key)?;
        // If this fails, the reply is claimed by the next request for it.
        drop(self.claim_batched(key));
        if claim {
            self.state().pending_replies.push(key);
        }
        check_complete(reply, request.max_output_tokens).ok()
    }

    fn waits_for_batches(&self) -> bool {
        self.state().is_scheduled
    }

    fn keep_reply(&self, request: &ModelRequest, text: &str) {
        let key = self.reply_key(request);
        let reply = match self.stored_reply(key) {
            Some(reply) => ModelReply { text: text.to_owned(), ..reply },
            None => ModelReply::of_text(text),
        };
        // If it cannot be stored, it is asked for again.
        drop(self.store_reply(key, &reply));
    }

    fn context_tokens(&self) -> Option<u32> {
        Some(ModelClient::context_tokens(self))
    }

    fn supports_tools(&self) -> bool {
        // A program reads a prompt and prints a reply.
        !matches!(self.config.endpoint, ProviderEndpoint::Command(_))
    }

    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(self.token_ratio())
    }

    fn set_run(&self, run: i64) {
        self.state().run = Some(run);
    }

    fn take_spending(&self) -> Spending {
        std::mem::take(&mut self.state().spent)
    }

    fn mark_too_large(&self, request: &ModelRequest) {
        self.store_too_large_marker(self.reply_key(request));
    }

    fn is_marked_too_large(&self, request: &ModelRequest) -> bool {
        self.has_too_large_marker(self.reply_key(request))
    }

    fn finish_work(&self, end: WorkOutcome) {
        let (replies, failures_before, is_waiting) = {
            let mut state = self.state();
            let is_waiting = std::mem::take(&mut state.waits_for_batch);
            (std::mem::take(&mut state.pending_replies), state.failures_before.take(), is_waiting)
        };
        if let (WorkOutcome::Unusable, Some(failures)) = (end, failures_before) {
            // If it cannot be written now, the next failure counts it.
            drop(self.record_wasted_work(failures));
        }
        if !is_waiting {
            self.release_replies(replies, end);
        }
    }

    fn on_idle(&self) {
        let samples = std::mem::take(&mut self.state().token_samples);
        // If it fails, later samples teach the same.
        drop(self.record_token_samples(&samples));
    }

    fn batching(&self) -> Option<&dyn Batching> {
        let can_batch = self.config.endpoint.has_batches() && self.config.vault.is_some();
        can_batch.then_some(self)
    }
}

/// Passes a step at which a test may stop the process.
pub(super) fn reach_failpoint(step: &'static str) -> Result<(), CallError> {
    failpoint::at(step).map_err(|e| CallError::Ledger(e.to_string()))
}
