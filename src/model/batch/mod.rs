//! Batches: a scheduled pass hands its folds to the provider in one piece, which answers them within a
//! day at a lower price.
//!
//! A pass begins by fetching what was answered since (`ModelClient::begin_scheduled_run`; one that a person waits for
//! only fetches, `ModelClient::fetch_batched`). What it asks then and
//! has no reply to is queued, and its work waits; at its end the queue is sent
//! (`ModelClient::end_scheduled_run`). A reply is kept like one from before a crash: a later pass asks the same
//! and finds it. Where the sources were changed meanwhile the question is another one, and the reply is
//! dropped after some days.
//!
//! Only first turns of weeks and months go into batches. Memories and wisdom rest on what the work
//! before them left, so that a question about them would have changed when its answer comes.
//!
//! What happens in which order, so that a crash loses no batch and pays none twice unknown:
//!
//! 1. A request is charged, and noted as queued. A crash now: it was never sent.
//! 2. A file in the place of its reply says that one is to come. Who forgets replies removes it: the
//!    request is not sent then, and a reply that comes is not kept.
//! 3. The batch is noted with its requests, then sent, then noted with the provider's name for it. A
//!    crash in between: it is looked for in the provider's list, and if it is not there after some
//!    time, it counts as paid and is asked again.
//! 4. Each reply is kept before its charge is corrected.

mod wire;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use self::wire::{BatchProgress, BatchResult};
use super::{
    CallError, ModelReply, ModelRequest, ScheduledOutcome, Stage, anthropic,
    client::{
        CallOutcome, ModelClient, ProviderEndpoint, check_fully_read, circuit_of, dialect_of,
        reach_failpoint, text_bytes,
    },
    failure::ErrorClass,
    http::HttpResponse,
    openai, telemetry,
};
use crate::{
    clock,
    memory::hash::{ContentHash, hex},
    store::db::ledger::{
        CallId, CallResult, ServerRow,
        batch::{BatchRequestOutcome, BatchRequestRow, BatchRow},
    },
};

/// How many requests a pass hands over at the most. Providers take more.
const REQUESTS_MAX: usize = 1000;

/// How long they may be together, in bytes. Providers take more.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// How often a request is asked in batches before it is asked directly.
const BATCH_TRIES_MAX: u32 = 2;

/// How long a server that refused a batch is given none.
const BATCHES_REFUSED_FOR: TimeDelta = TimeDelta::days(1);

/// How long a batch of which it is not known whether it arrived is looked for.
const SEARCH_PERIOD: TimeDelta = TimeDelta::minutes(10);

/// A provider's clock may differ from ours by so much.
const CLOCK_SKEW_MAX: TimeDelta = TimeDelta::hours(1);

/// A batch that has not ended after so long is given up; providers end them after a day.
const BATCH_AGE_MAX: TimeDelta = TimeDelta::days(2);

/// How long a reply is kept that nobody asked for again.
const UNUSED_REPLY_AGE_MAX: TimeDelta = TimeDelta::days(3);

/// Stands in the place of a reply that is to come.
const PENDING_REPLY_MARKER: &str = "{\"state\":\"to come\"}";

/// A request that waits for the end of its pass.
pub(super) struct QueuedRequest {
    row: BatchRequestRow,
    body: Value,
    length: usize,
}

impl ProviderEndpoint {
    /// Returns whether the provider has batches.
    pub fn has_batches(&self) -> bool {
        matches!(self, Self::Anthropic { .. } | Self::Openai { .. })
    }
}

impl ModelClient {
    /// Begins a scheduled pass: fetches what batches have answered, and lets the pass make new ones.
    /// Returns whether anything came.
    ///
    /// # Errors
    ///
    /// Returns why not all could be fetched. The pass may go on.
    pub fn begin_scheduled_run(&self) -> Result<bool, CallError> {
        if !self.config.endpoint.has_batches() || self.config.vault.is_none() {
            return Ok(false);
        }
        self.state().is_scheduled = self.config.batch;
        if !self.config.ledger_path.exists() {
            return Ok(false);
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let root = self.root_name();
        for row in self.ledger(|it| it.unsent_requests(&root))? {
            self.cancel_queued(row)?;
        }
        for row in self.ledger(|it| it.unused_replies_before(&root, now - UNUSED_REPLY_AGE_MAX))? {
            self.drop_reply(row.key);
            self.ledger(|it| it.record_request_outcome(row.call, BatchRequestOutcome::Done, now))?;
        }
        self.poll_batches(now, |_| true)
    }

    /// Fetches what batches have answered, for a pass that makes no new ones: somebody else may be about to
    /// send one, which is left alone. Returns whether anything came.
    ///
    /// # Errors
    ///
    /// Returns why not all could be fetched. The pass may go on.
    pub fn fetch_batched(&self) -> Result<bool, CallError> {
        let is_there = self.config.endpoint.has_batches() && self.config.ledger_path.exists();
        if !is_there || self.config.vault.is_none() {
            return Ok(false);
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        self.poll_batches(now, |it| it.remote.is_some())
    }

    fn poll_batches(
        &self,
        now: DateTime<Utc>,
        is_ours: impl Fn(&BatchRow) -> bool,
    ) -> Result<bool, CallError> {
        let (mut came, mut failed) = (false, None);
        for batch in
            self.ledger(|it| it.open_batches(&self.root_name()))?.into_iter().filter(is_ours)
        {
            match self.poll_batch(&batch, now) {
                Ok(more) => came |= more,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !came => Err(error),
            // What came is worth a pass, and the rest is asked for with the next one.
            _ => Ok(came),
        }
    }

    /// Ends a scheduled pass: sends what it queued.
    ///
    /// # Errors
    ///
    /// Returns why it could not be sent. It is asked anew by a later pass.
    pub fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError> {
        let queue = {
            let mut state = self.state();
            state.is_scheduled = false;
            std::mem::take(&mut state.queue)
        };
        if !self.config.endpoint.has_batches() || !self.config.ledger_path.exists() {
            return Ok(ScheduledOutcome::default());
        }
        let again = if queue.is_empty() { false } else { self.submit_batch(queue)? };
        let waits = self.ledger(|it| it.open_batches(&self.root_name()))?;
        Ok(ScheduledOutcome { batch_pending: !waits.is_empty(), run_again: again })
    }

    /// Queues a request, or says that it waits already. `false`: it is to be asked directly.
    pub(super) fn enqueue(
        &self,
        request: &ModelRequest,
        key: ContentHash,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<bool, CallError> {
        let is_fold = matches!(request.stage, Stage::Weekly | Stage::Monthly);
        if !self.state().is_scheduled || !is_fold || request.messages.len() > 1 {
            return Ok(false);
        }
        let known = self.ledger(|it| it.batch_status(key, now))?;
        if known.is_pending {
            return Ok(true);
        }
        let refuses = row.no_batches_until.is_some_and(|it| now < it);
        if refuses || known.needs_direct_call || known.unanswered_batches >= BATCH_TRIES_MAX {
            return Ok(false);
        }
        let model = &self.config.model;
        let body = match &self.config.endpoint {
            ProviderEndpoint::Anthropic { .. } => anthropic::body(request, model),
            ProviderEndpoint::Openai { .. } => openai::body(request, model, dialect_of(row)),
            ProviderEndpoint::Ollama { .. } | ProviderEndpoint::Command(_) => return Ok(false),
        };
        let length = body.to_string().len();
        {
            let state = self.state();
            let so_far: usize = state.queue.iter().map(|it| it.length).sum();
            if state.queue.len() >= REQUESTS_MAX || so_far + length > BYTES_MAX {
                // It waits for the batch after this one.
                return Ok(!state.queue.is_empty());
            }
        }
        let call = self.reserve(request, now, true)?;
        let row = BatchRequestRow { call, key, bytes: text_bytes(request) };
        self.ledger(|it| it.queue_request(&row, &self.root_name(), now))?;
        if let Some(vault) = &self.config.vault {
            vault
                .save_reply(key, PENDING_REPLY_MARKER)
                .map_err(|e| CallError::Ledger(e.to_string()))?;
        }
        self.state().queue.push(QueuedRequest { row, body, length });
        Ok(true)
    }

    /// Sends a batch. Returns whether the server takes none, so that all is to be asked directly.
    fn submit_batch(&self, queue: Vec<QueuedRequest>) -> Result<bool, CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        reach_failpoint("batch.pass_ended")?;
        // Since the pass ended somebody may have had words forgotten that are in it.
        let (queue, forgotten): (Vec<QueuedRequest>, Vec<QueuedRequest>) =
            queue.into_iter().partition(|it| self.is_reply_pending(it.row.key));
        for queued in forgotten {
            self.cancel_queued(queued.row)?;
        }
        if queue.is_empty() {
            return Ok(false);
        }
        let token = random_token()?;
        let rows: Vec<BatchRequestRow> = queue.iter().map(|it| it.row).collect();
        let calls: Vec<CallId> = rows.iter().map(|it| it.call).collect();
        let whose = (self.config.endpoint.server(), &self.config.model[..], &self.root_name()[..]);
        let batch = self.ledger(|it| it.begin_batch(whose, &token, &calls, now))?;
        reach_failpoint("batch.recorded")?;
        let name = |it: QueuedRequest| (wire::call_name(it.row.call.number(), &token), it.body);
        let requests = queue.into_iter().map(name).collect();
        let error = match self.send_batch(requests, &token, now) {
            Ok(remote) => {
                reach_failpoint("batch.sent")?;
                self.ledger(|it| it.record_batch_accepted(batch, &remote))?;
                reach_failpoint("batch.opened")?;
                return Ok(false);
            }
            Err(error) => error,
        };
        // Whether it arrived is looked up by the next pass.
        if !error.may_have_cost() {
            for row in rows {
                self.cancel_queued(row)?;
            }
            self.ledger(|it| it.end_batch(batch))?;
        }
        let is_refused = matches!(
            error,
            CallError::Request { .. }
                | CallError::TooLong { .. }
                | CallError::Unavailable { status: 501, .. }
        );
        let known = self.server_row()?;
        if is_refused {
            self.save_server_row(&ServerRow {
                no_batches_until: Some(now + BATCHES_REFUSED_FOR),
                ..known
            })?;
            tracing::warn!(
                "{error}: it takes no batches, so the model is asked directly for a day"
            );
            return Ok(true);
        }
        self.record_failure(known, &error, now)?;
        Err(error)
    }

    /// Sends requests as one batch, and returns the provider's name for it.
    fn send_batch(
        &self,
        requests: Vec<(String, Value)>,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<String, CallError> {
        let headers = self.request_headers();
        let server = self.config.endpoint.server();
        let named = |answer: &HttpResponse| {
            let body = self.response_json(answer)?;
            let name = wire::safe_id(&body["id"]).filter(|it| !self.contains_key(it));
            let what = "JSON that names no batch";
            name.ok_or(CallError::UnexpectedResponse { server: server.to_owned(), what })
        };
        if let ProviderEndpoint::Anthropic { .. } = self.config.endpoint {
            let body = wire::anthropic_body(requests);
            return named(&self.http.post(server, wire::ANTHROPIC_PATH, &headers, body, now)?);
        }
        let (kind, body) = wire::openai_file(requests, token);
        let uploaded =
            self.http.upload(server, wire::OPENAI_FILES_PATH, &headers, &kind, body, now);
        // A file alone costs nothing, whatever became of it.
        let file = uploaded.and_then(|it| named(&it)).map_err(|error| match error {
            error if error.may_have_cost() => CallError::Connect {
                server: server.to_owned(),
                reason: format!("the upload of a batch failed ({})", error.name()),
            },
            error => error,
        })?;
        let body = wire::openai_body(&file, token);
        named(&self.http.post(server, wire::OPENAI_PATH, &headers, body, now)?)
    }

    /// Looks how far a batch is, and fetches what it has. Returns whether anything came.
    fn poll_batch(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<bool, CallError> {
        let is_old = now - batch.at > BATCH_AGE_MAX;
        if batch.server != self.config.endpoint.server() {
            // Nobody can ask for it while another server is configured.
            return if is_old { self.abandon_batch(batch, now) } else { Ok(false) };
        }
        let row = self.server_row()?;
        self.check_circuit(&row, now)?;
        match self.fetch_results(batch, now) {
            Ok(None) if is_old => self.abandon_batch(batch, now),
            Ok(came) => Ok(came.is_some()),
            // It was deleted there.
            Err(CallError::Request { status: 404 | 410, .. }) => self.abandon_batch(batch, now),
            Err(error) if is_old => {
                tracing::warn!("{error}; a batch is given up");
                self.abandon_batch(batch, now)
            }
            Err(error) => {
                self.record_failure(row, &error, now)?;
                Err(error)
            }
        }
    }

    /// Fetches what a batch has; `None` while it has not ended.
    fn fetch_results(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<Option<()>, CallError> {
        let server = self.config.endpoint.server();
        let is_anthropic = matches!(self.config.endpoint, ProviderEndpoint::Anthropic { .. });
        let remote = if let Some(remote) = &batch.remote {
            remote.clone()
        } else if let Some(remote) = self.find_submitted(batch, now)? {
            self.ledger(|it| it.record_batch_accepted(batch.id, &remote))?;
            remote
        } else if now - batch.at < SEARCH_PERIOD {
            return Ok(None);
        } else {
            return self.abandon_batch(batch, now).map(|_| Some(()));
        };
        let progress = if is_anthropic {
            let body = self.get_json(&format!("{}/{remote}", wire::ANTHROPIC_PATH), now)?;
            wire::anthropic_progress(&body, &remote)
        } else {
            wire::openai_progress(&self.get_json(&format!("{}/{remote}", wire::OPENAI_PATH), now)?)
        };
        let what = "JSON that is no batch";
        match progress.ok_or(CallError::UnexpectedResponse { server: server.to_owned(), what })? {
            BatchProgress::Working => return Ok(None),
            BatchProgress::Refused => {
                for row in self.ledger(|it| it.pending_requests(batch.id))? {
                    self.settle_unsent(row, "request", BatchRequestOutcome::CallDirectly, now)?;
                }
            }
            BatchProgress::Ended(paths) => {
                let headers = self.request_headers();
                let mut waiting = self.ledger(|it| it.pending_requests(batch.id))?;
                for path in paths {
                    let mut take =
                        |line: &[u8]| self.process_result_line(batch, line, &mut waiting, now);
                    let answer = self.http.get_lines(server, &path, &headers, now, &mut take)?;
                    if !answer.is_ok() {
                        return Err(self.response_error(&answer));
                    }
                }
                // What is not spoken of was not asked, as far as anybody knows.
                for row in waiting {
                    self.mark_lost(row, now)?;
                }
            }
        }
        self.ledger(|it| it.end_batch(batch.id))?;
        Ok(Some(()))
    }

    /// Looks for a batch of which it is not known whether it arrived.
    fn find_submitted(
        &self,
        batch: &BatchRow,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, CallError> {
        let server = self.config.endpoint.server();
        let found = if let ProviderEndpoint::Anthropic { .. } = self.config.endpoint {
            let requests = self.ledger(|it| it.pending_requests(batch.id))?.len();
            let list = self.get_json(&wire::anthropic_list_path(), now)?;
            wire::anthropic_candidates(&list, requests, batch.at - CLOCK_SKEW_MAX)
        } else {
            wire::openai_candidates(&self.get_json(&wire::openai_list_path(), now)?, &batch.token)
        };
        for remote in found {
            if !self.ledger(|it| it.is_own_batch(server, &remote))? {
                return Ok(Some(remote));
            }
        }
        Ok(None)
    }

    fn get_json(&self, path: &str, now: DateTime<Utc>) -> Result<Value, CallError> {
        let server = self.config.endpoint.server();
        self.response_json(&self.http.get(server, path, &self.request_headers(), now)?)
    }

    /// Takes one line of the results.
    fn process_result_line(
        &self,
        batch: &BatchRow,
        line: &[u8],
        waiting: &mut Vec<BatchRequestRow>,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        let server = self.config.endpoint.server();
        let is_anthropic = matches!(self.config.endpoint, ProviderEndpoint::Anthropic { .. });
        let read = if is_anthropic { wire::anthropic_line(line) } else { wire::openai_line(line) };
        // What speaks of none of ours is not for us.
        let Some((name, said)) = read else { return Ok(()) };
        let call = wire::parse_call_name(&name, &batch.token);
        let at = waiting.iter().position(|it| Some(it.call.number()) == call);
        let Some(at) = at else { return Ok(()) };
        let row = waiting.swap_remove(at);
        let answer = match said {
            BatchResult::Answer(answer) => answer,
            BatchResult::NotProcessed => {
                return self.settle_unsent(row, "expired", BatchRequestOutcome::Retry, now);
            }
        };
        let reply = if is_anthropic {
            anthropic::reply(server, &answer)
        } else {
            openai::reply(server, &answer).and_then(|it| check_fully_read(it, row.bytes))
        };
        let reply = reply.and_then(|it| self.reject_leaked_key(it));
        let fate = match &reply {
            Ok(reply) => {
                reach_failpoint("batch.fetched")?;
                let fate = self.store_batched_reply(row.key, reply)?;
                reach_failpoint("batch.kept")?;
                fate
            }
            Err(error) => {
                if let CallError::TooLong { limit: limit @ Some(_) } = *error {
                    let known = self.server_row()?;
                    self.save_server_row(&ServerRow { context_tokens: limit, ..known })?;
                }
                self.drop_pending_marker(row.key);
                if error.class() == ErrorClass::Server {
                    BatchRequestOutcome::Retry
                } else {
                    BatchRequestOutcome::CallDirectly
                }
            }
        };
        let took = (now - batch.at).to_std().unwrap_or(Duration::ZERO);
        let got = CallOutcome { reply, requests: 1, lost: 0, duration: took };
        let span = telemetry::batched_chat_span(&self.config.endpoint, &self.config.model);
        let cost_usd = self.settle_charge(row.call, &got, true)?;
        span.in_scope(|| telemetry::record_outcome(&span, &got, cost_usd));
        self.ledger(|it| it.record_request_outcome(row.call, fate, now))
    }

    /// Counts the reply to a request as used, and what it cost as spent, if it came from a batch.
    pub(super) fn claim_batched(&self, key: ContentHash) -> Result<(), CallError> {
        if !self.config.endpoint.has_batches() || !self.config.ledger_path.exists() {
            return Ok(());
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        if let Some(cost_usd) = self.ledger(|it| it.mark_reply_used(key, now))? {
            let mut state = self.state();
            state.spent.calls += 1;
            state.spent.cost_usd += cost_usd;
        }
        Ok(())
    }

    /// Keeps a reply, unless the wish for it was taken back.
    fn store_batched_reply(
        &self,
        key: ContentHash,
        reply: &ModelReply,
    ) -> Result<BatchRequestOutcome, CallError> {
        let failed = |e: &dyn std::fmt::Display| CallError::Ledger(e.to_string());
        let Some(vault) = &self.config.vault else { return Ok(BatchRequestOutcome::Done) };
        if vault.saved_reply(key).map_err(|e| failed(&e))?.is_none() {
            return Ok(BatchRequestOutcome::Done);
        }
        let text = serde_json::to_string(reply).map_err(|e| failed(&e))?;
        vault.save_reply(key, &text).map_err(|e| failed(&e))?;
        Ok(BatchRequestOutcome::Replied)
    }

    /// Ends a request that nobody was asked, which costs nothing.
    fn settle_unsent(
        &self,
        row: BatchRequestRow,
        outcome: &str,
        fate: BatchRequestOutcome,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        self.drop_pending_marker(row.key);
        let settled = CallResult { outcome, usd: Some(0.0), ..CallResult::default() };
        self.ledger(|it| it.finish_call(row.call, &settled))?;
        self.ledger(|it| it.record_request_outcome(row.call, fate, now))
    }

    /// Takes back a request that never left.
    fn cancel_queued(&self, row: BatchRequestRow) -> Result<(), CallError> {
        self.drop_pending_marker(row.key);
        self.ledger(|it| it.remove_queued(row.call))
    }

    /// Ends a request of which nobody knows what became; it stays charged.
    fn mark_lost(&self, row: BatchRequestRow, now: DateTime<Utc>) -> Result<(), CallError> {
        self.drop_pending_marker(row.key);
        self.ledger(|it| it.finish_call_of_unknown_cost(row.call, "lost", 0, 1, 0))?;
        self.ledger(|it| it.record_request_outcome(row.call, BatchRequestOutcome::Retry, now))
    }

    fn abandon_batch(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<bool, CallError> {
        for row in self.ledger(|it| it.pending_requests(batch.id))? {
            self.mark_lost(row, now)?;
        }
        self.ledger(|it| it.end_batch(batch.id))?;
        Ok(true)
    }

    /// Returns whether a reply is still wished for.
    fn is_reply_pending(&self, key: ContentHash) -> bool {
        let Some(vault) = &self.config.vault else { return true };
        vault.saved_reply(key).is_ok_and(|it| it.as_deref() == Some(PENDING_REPLY_MARKER))
    }

    /// Removes what says that a reply is to come; a reply stays.
    fn drop_pending_marker(&self, key: ContentHash) {
        let is_to_come = self.config.vault.is_some() && self.is_reply_pending(key);
        if is_to_come {
            self.drop_reply(key);
        }
    }

    fn drop_reply(&self, key: ContentHash) {
        if let Some(vault) = &self.config.vault {
            // It is dropped with the next one that is made of it, and nobody reads it until then.
            drop(vault.remove_reply(key));
        }
    }

    /// Counts a request that failed.
    fn record_failure(
        &self,
        row: ServerRow,
        error: &CallError,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        let next = circuit_of(&row).after_failure(error, &self.config.account, now);
        let (failures, open_until, barred) = (next.failures, next.open_until, next.blocked_account);
        self.save_server_row(&ServerRow { failures, open_until, refused_account: barred, ..row })
    }

    /// Returns the JSON of an answer, or what it says went wrong.
    fn response_json(&self, answer: &HttpResponse) -> Result<Value, CallError> {
        if !answer.is_ok() {
            return Err(self.response_error(answer));
        }
        let server = self.config.endpoint.server();
        answer
            .json()
            .map_err(|what| CallError::UnexpectedResponse { server: server.to_owned(), what })
    }

    fn response_error(&self, answer: &HttpResponse) -> CallError {
        let server = self.config.endpoint.server();
        match self.config.endpoint {
            ProviderEndpoint::Anthropic { .. } => anthropic::error(server, answer),
            _ => openai::error(server, answer, answer.status),
        }
    }

    fn root_name(&self) -> String {
        self.config.root.to_string_lossy().into_owned()
    }
}

/// Returns a new random name.
fn random_token() -> Result<String, CallError> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| CallError::Config(format!("the system gives no random bytes: {e}")))?;
    Ok(hex(&bytes))
}
