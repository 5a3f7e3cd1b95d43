//! Batches: a scheduled run sends its summaries to the provider together, which answers within a day
//! at a lower price.
//!
//! A scheduled run starts by fetching earlier answers (`Batching::begin_scheduled_run`; a run that a
//! person waits for only fetches, `Batching::fetch_batched`). Requests without a stored reply are
//! queued, and their work waits. At the end the queue is sent (`Batching::end_scheduled_run`). A reply
//! is stored like one from before a crash: a later run sends the same request and finds it. If the
//! sources changed meanwhile, the request differs, and the reply is dropped after some days.
//!
//! Only first turns of weeks and months are batched. Memories and wisdom depend on the results of the
//! work before them, so their requests would have changed when the answer arrives.
//!
//! The order of steps ensures that a crash loses no batch and pays for none twice unnoticed:
//!
//! 1. A request is charged and recorded as queued. After a crash here it was never sent.
//! 2. A marker is stored instead of its reply. `forget` removes the marker: then the request is not
//!    sent, and a reply that arrives is not stored.
//! 3. The batch is recorded with its requests, then sent, then recorded with the provider's id for it.
//!    After a crash in between, it is searched for in the provider's list. If it is not found after
//!    some time, it counts as paid and its requests are sent again.
//! 4. Each reply is stored before its charge is corrected.

mod wire;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use self::wire::{BatchProgress, BatchResult};
use super::{
    Batching, CallError, ModelReply, ModelRequest, ScheduledOutcome, Stage, anthropic,
    client::{
        ModelClient, QueuedRequest,
        budget::text_bytes,
        endpoint::ProviderEndpoint,
        reach_failpoint,
        send::{CallOutcome, check_fully_read, dialect_of},
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

/// The most requests in one batch. Providers accept more.
const REQUESTS_MAX: usize = 1000;

/// The total length of a batch, in bytes. Providers accept more.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// How often a request is sent in batches before it is sent directly.
const BATCH_TRIES_MAX: u32 = 2;

/// How long no batch is sent to a server that refused one.
const BATCHES_REFUSED_FOR: TimeDelta = TimeDelta::days(1);

/// How long a batch that may not have arrived is searched for.
const SEARCH_PERIOD: TimeDelta = TimeDelta::minutes(10);

/// How far a provider's clock may differ from ours.
const CLOCK_SKEW_MAX: TimeDelta = TimeDelta::hours(1);

/// The age at which an unfinished batch is abandoned; providers end them after a day.
const BATCH_AGE_MAX: TimeDelta = TimeDelta::days(2);

/// How long a reply is stored that no run has asked for again.
const UNUSED_REPLY_AGE_MAX: TimeDelta = TimeDelta::days(3);

/// Stored instead of a reply that is still expected.
const PENDING_REPLY_MARKER: &str = "{\"state\":\"to come\"}";

impl Batching for ModelClient {
    fn begin_scheduled_run(&self) -> Result<bool, CallError> {
        self.state().is_scheduled = self.config.batch;
        if !self.config.ledger.path.exists() {
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

    fn fetch_batched(&self) -> Result<bool, CallError> {
        if !self.config.ledger.path.exists() {
            return Ok(false);
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        // A batch without a remote id may be about to be sent by another process.
        self.poll_batches(now, |it| it.remote.is_some())
    }

    fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError> {
        let queue = {
            let mut state = self.state();
            state.is_scheduled = false;
            std::mem::take(&mut state.queue)
        };
        if !self.config.ledger.path.exists() {
            return Ok(ScheduledOutcome::default());
        }
        let run_again = if queue.is_empty() { false } else { self.submit_batch(queue)? };
        let open = self.ledger(|it| it.open_batches(&self.root_name()))?;
        Ok(ScheduledOutcome { batch_pending: !open.is_empty(), run_again })
    }
}

impl ModelClient {
    /// Fetches the results of open batches. Returns whether there were any.
    fn poll_batches(
        &self,
        now: DateTime<Utc>,
        is_ours: impl Fn(&BatchRow) -> bool,
    ) -> Result<bool, CallError> {
        let (mut has_results, mut failed) = (false, None);
        for batch in
            self.ledger(|it| it.open_batches(&self.root_name()))?.into_iter().filter(is_ours)
        {
            match self.poll_batch(&batch, now) {
                Ok(more) => has_results |= more,
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) if !has_results => Err(error),
            // These results are worth a run; the next run fetches the rest.
            _ => Ok(has_results),
        }
    }

    /// Queues a request; `false` if it must be sent directly. A request that is queued already stays so.
    pub(super) fn enqueue(
        &self,
        request: &ModelRequest,
        key: ContentHash,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<bool, CallError> {
        let can_wait = matches!(request.stage, Stage::Weekly | Stage::Monthly);
        if !self.state().is_scheduled || !can_wait || request.is_second_try() {
            return Ok(false);
        }
        let status = self.ledger(|it| it.batch_status(key, now))?;
        if status.is_pending {
            return Ok(true);
        }
        let refuses = row.no_batches_until.is_some_and(|it| now < it);
        if refuses || status.needs_direct_call || status.unanswered_batches >= BATCH_TRIES_MAX {
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
                // The batch is full; the request waits for the next one.
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

    /// Sends a batch. Returns whether the server refuses batches, so that a direct run is needed.
    fn submit_batch(&self, queue: Vec<QueuedRequest>) -> Result<bool, CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        reach_failpoint("batch.pass_ended")?;
        // A person may have run `forget` on words in these requests since the run ended.
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
        let owner = (self.config.endpoint.server(), &self.config.model[..], &self.root_name()[..]);
        let batch = self.ledger(|it| it.begin_batch(owner, &token, &calls, now))?;
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
        // If the batch may have arrived, the next run searches for it.
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
        let row = self.server_row()?;
        if is_refused {
            self.save_server_row(&ServerRow {
                no_batches_until: Some(now + BATCHES_REFUSED_FOR),
                ..row
            })?;
            tracing::warn!(
                "{error}: the server accepts no batches, so the model is called directly for a day"
            );
            return Ok(true);
        }
        self.record_failure(row, &error, now)?;
        Err(error)
    }

    /// Sends requests as one batch, and returns the provider's id for it.
    fn send_batch(
        &self,
        requests: Vec<(String, Value)>,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<String, CallError> {
        let headers = self.request_headers();
        let server = self.config.endpoint.server();
        let read_id = |answer: &HttpResponse| {
            let body = self.response_json(answer)?;
            let id = wire::safe_id(&body["id"]).filter(|it| !self.contains_key(it));
            let what = "JSON without a batch id";
            id.ok_or(CallError::UnexpectedResponse { server: server.to_owned(), what })
        };
        if let ProviderEndpoint::Anthropic { .. } = self.config.endpoint {
            let body = wire::anthropic_body(requests);
            return read_id(&self.http.post(server, wire::ANTHROPIC_PATH, &headers, body, now)?);
        }
        let (kind, body) = wire::openai_file(requests, token);
        let uploaded =
            self.http.upload(server, wire::OPENAI_FILES_PATH, &headers, &kind, body, now);
        // An uploaded file alone costs nothing, even if the upload failed halfway.
        let file = uploaded.and_then(|it| read_id(&it)).map_err(|error| match error {
            error if error.may_have_cost() => CallError::Connect {
                server: server.to_owned(),
                reason: format!("the upload of a batch failed ({})", error.name()),
            },
            error => error,
        })?;
        let body = wire::openai_body(&file, token);
        read_id(&self.http.post(server, wire::OPENAI_PATH, &headers, body, now)?)
    }

    /// Checks the progress of a batch and fetches its results. Returns whether there were any.
    fn poll_batch(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<bool, CallError> {
        let is_old = now - batch.at > BATCH_AGE_MAX;
        if batch.server != self.config.endpoint.server() {
            // It cannot be fetched while another server is configured.
            return if is_old { self.abandon_batch(batch, now) } else { Ok(false) };
        }
        let row = self.server_row()?;
        self.check_circuit(&row, now)?;
        match self.fetch_results(batch, now) {
            Ok(None) if is_old => self.abandon_batch(batch, now),
            Ok(fetched) => Ok(fetched.is_some()),
            // The provider has deleted it.
            Err(CallError::Request { status: 404 | 410, .. }) => self.abandon_batch(batch, now),
            Err(error) if is_old => {
                tracing::warn!("{error}; the batch is abandoned");
                self.abandon_batch(batch, now)
            }
            Err(error) => {
                self.record_failure(row, &error, now)?;
                Err(error)
            }
        }
    }

    /// Fetches the results of a batch; `None` while it has not ended.
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
        let what = "JSON that is not a batch";
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
                    let mut on_line =
                        |line: &[u8]| self.process_result_line(batch, line, &mut waiting, now);
                    let answer = self.http.get_lines(server, &path, &headers, now, &mut on_line)?;
                    if !answer.is_ok() {
                        return Err(self.response_error(&answer));
                    }
                }
                // Requests without a result may or may not have been processed.
                for row in waiting {
                    self.mark_lost(row, now)?;
                }
            }
        }
        self.ledger(|it| it.end_batch(batch.id))?;
        Ok(Some(()))
    }

    /// Searches for a batch that may not have arrived.
    fn find_submitted(
        &self,
        batch: &BatchRow,
        now: DateTime<Utc>,
    ) -> Result<Option<String>, CallError> {
        let server = self.config.endpoint.server();
        let candidates = if let ProviderEndpoint::Anthropic { .. } = self.config.endpoint {
            let requests = self.ledger(|it| it.pending_requests(batch.id))?.len();
            let list = self.get_json(&wire::anthropic_list_path(), now)?;
            wire::anthropic_candidates(&list, requests, batch.at - CLOCK_SKEW_MAX)
        } else {
            wire::openai_candidates(&self.get_json(&wire::openai_list_path(), now)?, &batch.token)
        };
        for remote in candidates {
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

    /// Records one line of the results.
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
        // A line that names none of our requests is skipped.
        let Some((name, result)) = read else { return Ok(()) };
        let call = wire::parse_call_name(&name, &batch.token);
        let at = waiting.iter().position(|it| Some(it.call.number()) == call);
        let Some(at) = at else { return Ok(()) };
        let row = waiting.swap_remove(at);
        let answer = match result {
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
        let next = match &reply {
            Ok(reply) => {
                reach_failpoint("batch.fetched")?;
                let next = self.store_batched_reply(row.key, reply)?;
                reach_failpoint("batch.kept")?;
                next
            }
            Err(error) => {
                if let CallError::TooLong { limit: limit @ Some(_) } = *error {
                    let row = self.server_row()?;
                    self.save_server_row(&ServerRow { context_tokens: limit, ..row })?;
                }
                self.drop_pending_marker(row.key);
                if error.class() == ErrorClass::Server {
                    BatchRequestOutcome::Retry
                } else {
                    BatchRequestOutcome::CallDirectly
                }
            }
        };
        let duration = (now - batch.at).to_std().unwrap_or(Duration::ZERO);
        let sent = CallOutcome { reply, requests: 1, maybe_charged_requests: 0, duration };
        let span = telemetry::batched_chat_span(&self.config.endpoint, &self.config.model);
        let cost_usd = self.settle_charge(row.call, &sent, true)?;
        span.in_scope(|| telemetry::record_outcome(&span, &sent, cost_usd));
        self.ledger(|it| it.record_request_outcome(row.call, next, now))
    }

    /// Marks the reply to a request as used, and counts its cost, if it came from a batch.
    pub(super) fn claim_batched(&self, key: ContentHash) -> Result<(), CallError> {
        if !self.config.endpoint.has_batches() || !self.config.ledger.path.exists() {
            return Ok(());
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        if let Some(cost_usd) = self.ledger(|it| it.mark_reply_used(key, now))? {
            self.count_spending(cost_usd);
        }
        Ok(())
    }

    /// Stores a reply, unless `forget` has removed the marker that expects it.
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

    /// Ends a request that was not processed and costs nothing.
    fn settle_unsent(
        &self,
        row: BatchRequestRow,
        outcome: &str,
        next: BatchRequestOutcome,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        self.drop_pending_marker(row.key);
        let result = CallResult { outcome, usd: Some(0.0), ..CallResult::default() };
        self.ledger(|it| it.finish_call(row.call, &result))?;
        self.ledger(|it| it.record_request_outcome(row.call, next, now))
    }

    /// Withdraws a request that was never sent.
    fn cancel_queued(&self, row: BatchRequestRow) -> Result<(), CallError> {
        self.drop_pending_marker(row.key);
        self.ledger(|it| it.remove_queued(row.call))
    }

    /// Ends a request with an unknown result; it stays charged.
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

    /// Returns whether a reply is still expected.
    fn is_reply_pending(&self, key: ContentHash) -> bool {
        let Some(vault) = &self.config.vault else { return true };
        vault.saved_reply(key).is_ok_and(|it| it.as_deref() == Some(PENDING_REPLY_MARKER))
    }

    /// Removes the marker of an expected reply; a reply itself stays.
    fn drop_pending_marker(&self, key: ContentHash) {
        if self.config.vault.is_some() && self.is_reply_pending(key) {
            self.drop_reply(key);
        }
    }

    fn drop_reply(&self, key: ContentHash) {
        if let Some(vault) = &self.config.vault {
            // If this fails, nothing reads the file, and the next reply to the request replaces it.
            drop(vault.remove_reply(key));
        }
    }

    /// Returns the JSON of an answer, or the error that it reports.
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

/// Returns a random token that names a batch.
fn random_token() -> Result<String, CallError> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| CallError::Config(format!("the system provides no random bytes: {e}")))?;
    Ok(hex(&bytes))
}
