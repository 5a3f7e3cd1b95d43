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
    Ask, CallError, Message, Reply, Request, Scheduled, Spent, Tool, Usage, WorkEnd, anthropic,
    batch::Queued,
    breaker::{Breaker, Gate},
    command::Program,
    http::{Deadlines, Header, Http},
    ollama, openai,
    openai::{Dialect, Rung},
    pricing::Pricing,
    telemetry, tokens,
};
use crate::{
    clock,
    config::{base_url::BaseUrl, key::Secret},
    memory::hash::ContentHash,
    store::{
        failpoint,
        ledger::{CallId, Caps, Ledger, LedgerError, NewCall, Reached, ServerRow, Settled, Weight},
        vault::Vault,
    },
};

/// How often a request is sent at most, the first time included.
const TRIES_MAX: u32 = 3;

/// The pause before the first repeat; it doubles.
const PAUSE: Duration = Duration::from_millis(500);

/// The longest pause between two tries that the server did not ask for.
const PAUSE_MAX: Duration = Duration::from_secs(8);

/// A token has at the least so many bytes on average, in any language and any model that we know of.
/// Half of what English takes: the worst case is what is charged before a call.
const BYTES_PER_TOKEN_MIN: u64 = 2;

/// Stands in the place of a reply to a question that is not to be asked as it is.
const APART: &str = "{\"state\":\"apart\"}";

/// So much of the fewest characters for a token that were seen may be fewer yet.
const WORST: f64 = 0.8;

/// And at the most so many, which tells whether a server read all that was sent.
const BYTES_PER_TOKEN_MAX: u64 = 8;

/// Where requests go.
#[derive(Debug)]
pub enum Wire {
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
    Command(Program),
}

/// What a door is made of.
pub struct Parts {
    /// Where requests go.
    pub wire: Wire,
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
    pub caps: Caps,
    /// The root's zone: its days are those of the caps.
    pub zone: Tz,
    /// The root, as the ledger names it.
    pub root: PathBuf,
    /// Where replies are kept; `None` for a call that has no root.
    pub vault: Option<Vault>,
    /// How long to wait in all for a server that fails.
    pub patience: Duration,
    /// Where the ledger lies.
    pub ledger: PathBuf,
    /// Whether a model was called before: a ledger that is gone then was lost.
    pub was_used: bool,
    /// Whether scheduled passes may use the provider's batches.
    pub batch: bool,
}

/// The way to one model, for one root.
pub struct Door {
    pub(super) parts: Parts,
    pub(super) http: Http,
    ledger: Mutex<Option<Ledger>>,
    state: Mutex<State>,
}

/// What changes from call to call.
#[derive(Default)]
pub(super) struct State {
    pub(super) spent: Spent,
    waited: Duration,
    run: Option<i64>,
    /// Requests whose replies are kept until their work is done.
    kept: Vec<ContentHash>,
    /// Failures in a row before the work that is under way.
    failures_before: Option<u32>,
    /// Whether a scheduled pass asks, so that what can wait may be queued.
    pub(super) is_scheduled: bool,
    /// What is to be sent at the end of the pass.
    pub(super) queue: Vec<Queued>,
    /// Why the last reply could not be kept.
    cannot_keep: Option<String>,
    /// The work at hand waits for a batch: what is kept for it is needed again.
    is_waiting: bool,
    /// Characters sent and tokens read since nothing was left to be done.
    read: Vec<(u64, u64)>,
}

/// Sends a request once, and reads the answer.
type Once<'a> = dyn FnMut(&ServerRow, DateTime<Utc>) -> Result<Reply, CallError> + 'a;

/// Carries a request of [`Door::call`].
pub(super) type Carry<'a> = dyn FnMut(&Http, DateTime<Utc>) -> Result<Reply, CallError> + 'a;

/// A reply and what it took to get it.
pub(super) struct Got {
    pub(super) reply: Result<Reply, CallError>,
    pub(super) requests: u32,
    /// Earlier tries that the provider may have charged for, too.
    pub(super) lost: u32,
    pub(super) took: Duration,
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door").field("wire", &self.parts.wire).finish_non_exhaustive()
    }
}

impl Wire {
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

impl Door {
    /// Makes the way.
    pub fn new(parts: Parts) -> Self {
        let http = Http::new(parts.deadlines);
        Self { parts, http, ledger: Mutex::default(), state: Mutex::default() }
    }

    /// Returns the model's name.
    pub fn model(&self) -> &str {
        &self.parts.model
    }

    /// Returns the way itself.
    pub fn wire(&self) -> &Wire {
        &self.parts.wire
    }

    /// Returns how many tokens the model reads and writes in one call: as configured, or less if the
    /// server said so itself.
    pub fn context_tokens(&self) -> u32 {
        let known = self.row().ok().and_then(|it| it.context_tokens);
        let known = known.and_then(|it| u32::try_from(it).ok());
        known.map_or(self.parts.context_tokens, |it| it.min(self.parts.context_tokens))
    }

    /// Returns what was learned of the model's tokens.
    pub fn weight(&self) -> Option<Weight> {
        self.ledger(|it| it.weight(self.parts.wire.server(), &self.parts.model)).ok().flatten()
    }

    /// Learns how long the model's tokens are, once nothing is left to be done: what is asked again after
    /// a crash must be cut as it was. And not while a batch is under way, for the same reason.
    fn learn(&self, read: &[(u64, u64)]) -> Result<(), CallError> {
        let (server, model) = (self.parts.wire.server(), &self.parts.model);
        // What is learned counts for all roots, and so do the batches that are under way.
        if read.is_empty() || self.ledger(|it| it.has_batches())? {
            return Ok(());
        }
        let known = self.weight();
        let learned = read.iter().fold(known, |known, it| tokens::learned(known, it.0, it.1));
        match learned {
            Some(weight) if learned != known => {
                self.ledger(|it| it.note_weight(server, model, &weight))
            }
            _ => Ok(()),
        }
    }

    /// Lets the next request go out whatever was before: a person asks, who has seen to it.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be written.
    pub fn forgive(&self) -> Result<(), CallError> {
        let row = self.row()?;
        self.note(&ServerRow { failures: 0, open_until: None, barred: None, ..row })
    }

    /// Returns why no request would go out now, or `None` if one would. Only reads.
    ///
    /// # Errors
    ///
    /// Returns why the ledger could not be read.
    pub fn closed(
        &self,
        ledger: &Ledger,
        now: DateTime<Utc>,
    ) -> Result<Option<CallError>, LedgerError> {
        let row = ledger.server(self.parts.wire.server(), &self.parts.model)?;
        Ok(self.gate(&row, now).err())
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
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
                let Parts { ledger, was_used, zone, .. } = &self.parts;
                let day = now.with_timezone(zone).date_naive();
                none.insert(Ledger::open(ledger, *was_used, day).map_err(|e| failed(&e))?)
            }
        };
        question(ledger).map_err(|e| failed(&e))
    }

    pub(super) fn row(&self) -> Result<ServerRow, CallError> {
        self.ledger(|it| it.server(self.parts.wire.server(), &self.parts.model))
    }

    pub(super) fn note(&self, row: &ServerRow) -> Result<(), CallError> {
        let (server, model) = (self.parts.wire.server(), &self.parts.model);
        self.ledger(|it| it.note_server(server, model, row))
    }

    /// Counts work that came to nothing, after so many failures.
    fn note_wasted(&self, failures: u32) -> Result<(), CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let row = self.row()?;
        let failures = failures.max(row.failures);
        let wasted = Breaker { failures, ..breaker(&row) }.wasted(now);
        let Breaker { failures, open_until, barred } = wasted;
        self.note(&ServerRow { failures, open_until, barred, ..row })
    }

    /// Lets a request pass, or says why not.
    pub(super) fn gate(&self, row: &ServerRow, now: DateTime<Utc>) -> Result<Gate, CallError> {
        let server = || self.parts.wire.server().to_owned();
        match breaker(row).gate(&self.parts.account, now) {
            Gate::Open(until) => {
                Err(CallError::Open { server: server(), failures: row.failures, until })
            }
            Gate::Barred => Err(CallError::Barred { server: server() }),
            gate => Ok(gate),
        }
    }

    /// Charges the call as its worst case.
    pub(super) fn reserve(
        &self,
        request: &Request,
        now: DateTime<Utc>,
        in_batch: bool,
    ) -> Result<CallId, CallError> {
        let Parts { model, caps, pricing, zone, wire, .. } = &self.parts;
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
        let root = self.parts.root.to_string_lossy();
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
                Some(price) => {
                    Some(price.worst(input_tokens, output_tokens) * price.share(in_batch))
                }
                None if wire.is_local() => Some(0.0),
                None => None,
            },
            price_date: price.map(|it| it.date),
        };
        let reserved = self.ledger(|it| it.reserve(&call, caps))?;
        reserved.map_err(|reached| CallError::Cap(told(&reached)))
    }

    /// Asks for what is no reply in words: `once` sends it and reads the answer, of which the reply tells
    /// what it took. Nothing of it is kept.
    pub(super) fn call(&self, request: &Request, once: &mut Carry<'_>) -> Result<(), CallError> {
        let span = telemetry::begin_embeddings(&self.parts.wire, &self.parts.model, request);
        let _entered = span.enter();
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.row()?;
        let gate = self.gate(&row, now)?;
        let call = self.reserve(request, now, false)?;
        if gate == Gate::HalfOpen {
            let trying = breaker(&row).trying(self.parts.deadlines.total, now);
            self.note(&ServerRow { open_until: trying.open_until, ..row.clone() })?;
        }
        let got = self.send(request, &mut row, &mut |_, now| once(&self.http, now));
        let cost_usd = self.settle_call(call, &got, false)?;
        self.note(&row)?;
        let mut state = self.state();
        state.spent.calls += 1;
        state.spent.cost_usd += cost_usd;
        drop(state);
        telemetry::end(&span, &got, cost_usd);
        got.reply.map(drop)
    }

    /// Sends the request, again after a pause where that makes sense.
    fn send(&self, request: &Request, row: &mut ServerRow, once: &mut Once<'_>) -> Got {
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
                    row.barred = None;
                    let whole = super::whole(reply.clone(), request.max_output_tokens);
                    if let Err(CallError::TooLong { limit: Some(limit) }) = whole {
                        row.context_tokens = Some(limit);
                    }
                    return Got { reply: Ok(reply), requests, lost, took };
                }
                Err(error) => error,
            };
            if let Some(dialect) = dialect(row).after(&error, request)
                && matches!(self.parts.wire, Wire::Openai { .. })
            {
                row.rung = Some(dialect.rung.name().to_owned());
                row.is_thinking = dialect.is_thinking;
                continue;
            }
            if let CallError::TooLong { limit: Some(limit) } = error {
                row.context_tokens = Some(limit);
            }
            let next = breaker(row).failed(&error, &self.parts.account, now);
            (row.failures, row.open_until, row.barred) =
                (next.failures, next.open_until, next.barred);
            // Kept as it goes, so that a crash between two tries does not begin to count anew.
            drop(self.note(row));
            let may_try = error.is_retryable() && requests < TRIES_MAX && row.open_until.is_none();
            let pause = may_try.then(|| self.pause(&error, requests)).flatten();
            let Some(pause) = pause else {
                return Got { reply: Err(error), requests, lost, took };
            };
            lost += u32::from(error.may_have_cost());
            thread::sleep(pause);
        }
    }

    /// Returns how long to wait before the next try, if there is patience left for it.
    fn pause(&self, error: &CallError, tries: u32) -> Option<Duration> {
        let grown = PAUSE.saturating_mul(1 << (tries - 1)).min(PAUSE_MAX);
        let wanted = error.retry_after().unwrap_or_else(|| jittered(grown));
        let mut state = self.state();
        let so_far = state.waited + wanted;
        if so_far > self.parts.patience {
            return None;
        }
        state.waited = so_far;
        drop(state);
        Some(wanted)
    }

    /// Sends the request once.
    fn once(
        &self,
        request: &Request,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<Reply, CallError> {
        let Parts { wire, model, context_tokens, .. } = &self.parts;
        let headers = self.headers();
        let bytes = |body: serde_json::Value| body.to_string().into_bytes();
        let reply = match wire {
            Wire::Anthropic { base, .. } => {
                let body = bytes(anthropic::body(request, model));
                let server = base.as_str();
                let answer = self.http.post(server, anthropic::PATH, &headers, body, now)?;
                anthropic::reply(server, &answer)
            }
            Wire::Openai { base } => {
                let body = bytes(openai::body(request, model, dialect(row)));
                let server = base.as_str();
                let answer = self.http.post(server, openai::PATH, &headers, body, now)?;
                openai::reply(server, &answer).and_then(|it| read_whole(it, text_bytes(request)))
            }
            Wire::Ollama { base } => {
                let body = bytes(ollama::body(request, model, *context_tokens));
                let server = base.as_str();
                let answer = self.http.post(server, ollama::PATH, &headers, body, now)?;
                ollama::reply(server, &answer).and_then(|it| read_whole(it, text_bytes(request)))
            }
            Wire::Command(program) => program.ask(request, model, self.parts.deadlines.total),
        };
        reply.and_then(|it| self.without_key(it))
    }

    /// Returns what goes with every request: the key among it.
    pub(super) fn headers(&self) -> Vec<Header> {
        let secret = |name, value| Header { name, value, is_secret: true };
        let plain = |name, value: &str| Header { name, value: value.to_owned(), is_secret: false };
        if let Wire::Anthropic { api_version, .. } = &self.parts.wire {
            let mut headers = vec![plain("anthropic-version", api_version)];
            headers.extend(self.key().map(|it| secret("x-api-key", it.to_owned())));
            return headers;
        }
        let bearer = self.key().map(|it| secret("authorization", format!("Bearer {it}")));
        bearer.into_iter().collect()
    }

    fn key(&self) -> Option<&str> {
        self.parts.key.as_ref().map(Secret::expose)
    }

    /// Returns a reply unless it says our key back, which would be kept and shown.
    pub(super) fn without_key(&self, reply: Reply) -> Result<Reply, CallError> {
        without_key(reply, self.key())
    }

    /// Returns whether a text holds our key.
    pub(super) fn holds_key(&self, text: &str) -> bool {
        self.key().is_some_and(|it| text.contains(it))
    }

    /// Corrects the charge.
    pub(super) fn settle_call(
        &self,
        call: CallId,
        got: &Got,
        in_batch: bool,
    ) -> Result<f64, CallError> {
        let latency_ms = u64::try_from(got.took.as_millis()).unwrap_or(u64::MAX);
        let reply = match &got.reply {
            Ok(reply) => reply,
            Err(error) if error.may_have_cost() => {
                self.ledger(|it| {
                    it.end_unsure(call, error.name(), latency_ms, got.requests, got.lost)
                })?;
                return Ok(0.0);
            }
            Err(error) => {
                let settled = Settled {
                    outcome: error.name(),
                    usd: Some(0.0),
                    latency_ms,
                    requests: got.requests,
                    lost: got.lost,
                    ..Settled::default()
                };
                self.ledger(|it| it.settle(call, &settled))?;
                return Ok(0.0);
            }
        };
        let Some(usage) = reply.usage else {
            // The server does not say what it took: the worst case stands.
            let outcome = reply.finish_reason.name();
            self.ledger(|it| it.end_unsure(call, outcome, latency_ms, got.requests, got.lost))?;
            return Ok(0.0);
        };
        let usd = self.cost(reply, &usage, in_batch);
        let settled = Settled {
            outcome: reply.finish_reason.name(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            usd,
            latency_ms,
            request_id: reply.id.as_deref(),
            requests: got.requests,
            lost: got.lost,
        };
        self.ledger(|it| it.settle(call, &settled))?;
        Ok(usd.unwrap_or(0.0))
    }

    /// Returns what a call cost: as the provider says, or by its price.
    fn cost(&self, reply: &Reply, usage: &Usage, in_batch: bool) -> Option<f64> {
        let said = reply.cost_usd.filter(|it| it.is_finite() && *it >= 0.0);
        match self.parts.pricing.of(&self.parts.model) {
            _ if said.is_some() => said,
            _ if self.parts.wire.is_local() => Some(0.0),
            price => price.map(|it| it.of(usage) * it.share(in_batch)),
        }
    }

    /// Returns the reply that is kept of this very request, from before a crash.
    pub(super) fn kept(&self, key: ContentHash) -> Option<Reply> {
        let text = self.parts.vault.as_ref()?.kept_reply(key).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Tries whether a reply could be kept, with one of the usual length.
    fn probe(&self, key: ContentHash) -> Result<(), CallError> {
        const USUAL_BYTES: usize = 64 * 1024;
        let Some(vault) = &self.parts.vault else { return Ok(()) };
        let failed = |e: crate::store::vault::VaultError| CallError::Ledger(e.to_string());
        vault.keep_reply(key, &" ".repeat(USUAL_BYTES)).map_err(failed)?;
        vault.drop_reply(key).map_err(failed)
    }

    fn keep(&self, key: ContentHash, reply: &Reply) -> Result<(), CallError> {
        let Some(vault) = &self.parts.vault else { return Ok(()) };
        let text = serde_json::to_string(reply).map_err(|e| CallError::Ledger(e.to_string()))?;
        vault.keep_reply(key, &text).map_err(|e| CallError::Ledger(e.to_string()))?;
        Ok(())
    }
}

impl Ask for Door {
    fn unready(&self, now: DateTime<Utc>) -> Option<CallError> {
        // Where there is no ledger yet, or it cannot be read, a request finds out.
        let ledger = Ledger::open_existing(&self.parts.ledger).ok()??;
        self.closed(&ledger, now).ok()?
    }

    fn ask(&self, request: &Request) -> Result<Reply, CallError> {
        let span = telemetry::begin(&self.parts.wire, &self.parts.model, request);
        let _entered = span.enter();
        let key = request.key(self.parts.wire.server(), &self.parts.model);
        // One with a name serves other work, too, which takes it.
        let is_taken = request.name.is_none();
        if let Some(reply) = self.kept(key) {
            if is_taken {
                self.state().kept.push(key);
            }
            self.take_batched(key)?;
            return super::whole(reply, request.max_output_tokens);
        }
        let cannot_keep = self.state().cannot_keep.clone();
        if let Some(why) = cannot_keep {
            // Until there is room again a reply would be paid and lost.
            self.probe(key).map_err(|_| CallError::Ledger(why))?;
            self.state().cannot_keep = None;
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let mut row = self.row()?;
        let gate = self.gate(&row, now)?;
        self.state().failures_before.get_or_insert(row.failures);
        if self.queue(request, key, &row, now)? {
            self.state().is_waiting = true;
            return Err(CallError::Batched);
        }
        let call = self.reserve(request, now, false)?;
        if gate == Gate::HalfOpen {
            let trying = breaker(&row).trying(self.parts.deadlines.total, now);
            let others_see = ServerRow { open_until: trying.open_until, ..row.clone() };
            self.note(&others_see)?;
        }
        let got = self.send(request, &mut row, &mut |row, now| self.once(request, row, now));
        if let Ok(reply) = &got.reply {
            // Before anything else that could end us.
            passed("model.answered")?;
            match self.keep(key, reply) {
                Ok(()) => {
                    let mut state = self.state();
                    state.cannot_keep = None;
                    if is_taken {
                        state.kept.push(key);
                    }
                }
                // It is paid, and here: this work goes on with it, and no other is begun.
                Err(error) => {
                    tracing::warn!("the reply of the model could not be kept: {error}");
                    self.state().cannot_keep = Some(error.to_string());
                }
            }
            passed("model.replied")?;
        }
        let cost_usd = self.settle_call(call, &got, false)?;
        passed("model.settled")?;
        self.note(&row)?;
        let mut state = self.state();
        state.spent.calls += 1;
        state.spent.cost_usd += cost_usd;
        if let Ok(Reply { usage: Some(usage), .. }) = &got.reply {
            state.read.push((request.chars() as u64, usage.input_tokens));
        }
        drop(state);
        telemetry::end(&span, &got, cost_usd);
        got.reply.and_then(|it| super::whole(it, request.max_output_tokens))
    }

    fn standing(&self, request: &Request, taken: bool) -> Option<Reply> {
        let key = request.key(self.parts.wire.server(), &self.parts.model);
        let reply = self.kept(key)?;
        // Should it stay noted as under way, it is looked for once more, and found.
        drop(self.take_batched(key));
        if taken {
            self.state().kept.push(key);
        }
        super::whole(reply, request.max_output_tokens).ok()
    }

    fn context_tokens(&self) -> Option<u32> {
        Some(Door::context_tokens(self))
    }

    fn takes_tools(&self) -> bool {
        // A program reads a prompt and prints a reply.
        !matches!(self.parts.wire, Wire::Command(_))
    }

    fn chars_per_token(&self) -> f64 {
        tokens::least(self.weight())
    }

    fn begin_run(&self, run: i64) {
        self.state().run = Some(run);
    }

    fn take_spent(&self) -> Spent {
        std::mem::take(&mut self.state().spent)
    }

    fn set_apart(&self, request: &Request) {
        let key = request.key(self.parts.wire.server(), &self.parts.model);
        if let Some(vault) = &self.parts.vault {
            // What it said may be looked at. Where it cannot be noted the question is asked once more.
            if self.kept(key).is_some() {
                drop(vault.set_aside_reply(key));
            }
            drop(vault.keep_reply(key, APART));
        }
    }

    fn is_apart(&self, request: &Request) -> bool {
        let key = request.key(self.parts.wire.server(), &self.parts.model);
        let kept = self.parts.vault.as_ref().and_then(|it| it.kept_reply(key).ok().flatten());
        kept.as_deref() == Some(APART)
    }

    fn settle(&self, end: WorkEnd) {
        let (kept, failures_before, is_waiting) = {
            let mut state = self.state();
            let is_waiting = std::mem::take(&mut state.is_waiting);
            (std::mem::take(&mut state.kept), state.failures_before.take(), is_waiting)
        };
        if let (WorkEnd::Useless, Some(failures)) = (end, failures_before) {
            // It is counted with the next one, if it cannot be written now.
            drop(self.note_wasted(failures));
        }
        let Some(vault) = self.parts.vault.as_ref().filter(|_| !is_waiting) else { return };
        for key in kept {
            // Should it stay, the same request is answered by it once more, and no harm done.
            drop(match end {
                WorkEnd::Done => vault.drop_reply(key),
                WorkEnd::Useless => vault.set_aside_reply(key),
                WorkEnd::Later => Ok(()),
            });
        }
    }

    fn rest(&self) {
        let read = std::mem::take(&mut self.state().read);
        // What is not learned now is learned another time.
        drop(self.learn(&read));
    }

    fn collect(&self) -> Result<bool, CallError> {
        Door::collect(self)
    }

    fn begin_scheduled(&self) -> Result<bool, CallError> {
        Door::begin_scheduled(self)
    }

    fn end_scheduled(&self) -> Result<Scheduled, CallError> {
        Door::end_scheduled(self)
    }
}

/// Refuses a reply that says our key back, which would be kept and shown.
fn without_key(mut reply: Reply, key: Option<&str>) -> Result<Reply, CallError> {
    let holds_key = |it: &String| key.is_some_and(|key| it.contains(key));
    let called = serde_json::to_string(&(&reply.calls, &reply.verbatim)).unwrap_or_default();
    if holds_key(&reply.text) || holds_key(&called) {
        return Err(CallError::Unreadable("it says the key back".to_owned()));
    }
    reply.id = reply.id.filter(|it| !holds_key(it));
    reply.model = reply.model.filter(|it| !holds_key(it));
    Ok(reply)
}

/// Passes a step that a test may stop at.
pub(super) fn passed(step: &'static str) -> Result<(), CallError> {
    failpoint::at(step).map_err(|e| CallError::Ledger(e.to_string()))
}

/// Returns what is known of a server as a breaker.
pub(super) fn breaker(row: &ServerRow) -> Breaker {
    Breaker { failures: row.failures, open_until: row.open_until, barred: row.barred.clone() }
}

/// Returns what is known of a server as a dialect.
pub(super) fn dialect(row: &ServerRow) -> Dialect {
    let rung = Rung::ALL.into_iter().find(|it| Some(it.name()) == row.rung.as_deref());
    Dialect { rung: rung.unwrap_or_default(), is_thinking: row.is_thinking }
}

/// Returns the most tokens that a request can be: what can be of any text, or more where the model's tokens
/// were seen to be shorter. That they were longer so far says nothing of a text full of numbers and code.
fn tokens_max(request: &Request, weight: Option<Weight>) -> u64 {
    let usual = bytes_of(request).div_ceil(BYTES_PER_TOKEN_MIN);
    let seen = weight.map(|_| tokens::of(request.chars() as u64, tokens::least(weight) * WORST));
    usual.max(seen.unwrap_or(0))
}

fn bytes_of(request: &Request) -> u64 {
    let schema: usize = request.schema.iter().map(|it| it.schema.to_string().len()).sum();
    let tools: usize = request.tools.iter().map(Tool::bytes).sum();
    let verbatim = request.messages.iter().filter_map(|it| it.verbatim.as_ref());
    let verbatim: usize = verbatim.map(|it| it.to_string().len()).sum();
    text_bytes(request) + (schema + tools + verbatim) as u64
}

/// Returns how long the words of a request are.
pub(super) fn text_bytes(request: &Request) -> u64 {
    let results = |it: &Message| it.results.iter().map(|it| it.text.len()).sum::<usize>();
    let messages: usize = request.messages.iter().map(|it| it.text.len() + results(it)).sum();
    (request.system.len() + messages) as u64
}

/// Refuses a reply of a server that did not read all that was sent: some cut a prompt to what fits
/// and say nothing.
pub(super) fn read_whole(reply: Reply, bytes: u64) -> Result<Reply, CallError> {
    let sent = bytes / BYTES_PER_TOKEN_MAX;
    match reply.usage {
        Some(usage) if usage.input_tokens > 0 && usage.input_tokens < sent => {
            Err(CallError::Unread { read: usage.input_tokens, sent })
        }
        _ => Ok(reply),
    }
}

/// Takes up to a quarter off a pause, so that many clients do not come back at once.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0u8; 1];
    let got = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::empty());
    let share = if got.is_ok() { u32::from(byte[0]) } else { 0 };
    pause.saturating_sub(pause * share / (4 * 256))
}

/// Says in one plain line that a cap is reached.
fn told(reached: &Reached) -> String {
    let Reached { stretch, of_root, unit, used, wanted, cap } = reached;
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
