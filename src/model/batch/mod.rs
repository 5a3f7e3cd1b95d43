//! Batches: a scheduled pass hands its folds to the provider in one piece, which answers them within a
//! day at a lower price.
//!
//! A pass begins by fetching what was answered since ([`Door::begin_scheduled`]; one that a person waits for
//! only fetches, [`Door::collect`]). What it asks then and
//! has no reply to is queued, and its work waits; at its end the queue is sent
//! ([`Door::end_scheduled`]). A reply is kept like one from before a crash: a later pass asks the same
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

use self::wire::{Progress, Said};
use super::{
    CallError, Reply, Request, Scheduled, Stage, anthropic,
    door::{Door, Got, Wire, breaker, dialect, passed, read_whole, text_bytes},
    failure::Fault,
    http::Answer,
    openai, telemetry,
};
use crate::{
    clock,
    memory::hash::{ContentHash, hex},
    store::ledger::{
        CallId, ServerRow, Settled,
        batch::{BatchRow, BatchedRow, Fate},
    },
};

/// How many requests a pass hands over at the most. Providers take more.
const REQUESTS_MAX: usize = 1000;

/// How long they may be together, in bytes. Providers take more.
const BYTES_MAX: usize = 32 * 1024 * 1024;

/// How often a request is asked in batches before it is asked directly.
const TRIES_MAX: u32 = 2;

/// How long a server that refused a batch is given none.
const DIRECT: TimeDelta = TimeDelta::days(1);

/// How long a batch of which it is not known whether it arrived is looked for.
const LOOKED_FOR: TimeDelta = TimeDelta::minutes(10);

/// A provider's clock may differ from ours by so much.
const CLOCKS_DIFFER: TimeDelta = TimeDelta::hours(1);

/// A batch that has not ended after so long is given up; providers end them after a day.
const GIVEN_UP: TimeDelta = TimeDelta::days(2);

/// How long a reply is kept that nobody asked for again.
const KEPT: TimeDelta = TimeDelta::days(3);

/// Stands in the place of a reply that is to come.
const TO_COME: &str = "{\"state\":\"to come\"}";

/// A request that waits for the end of its pass.
pub(super) struct Queued {
    row: BatchedRow,
    body: Value,
    length: usize,
}

impl Wire {
    /// Returns whether the provider has batches.
    pub fn has_batches(&self) -> bool {
        matches!(self, Self::Anthropic { .. } | Self::Openai { .. })
    }
}

impl Door {
    /// Begins a scheduled pass: fetches what batches have answered, and lets the pass make new ones.
    /// Returns whether anything came.
    ///
    /// # Errors
    ///
    /// Returns why not all could be fetched. The pass may go on.
    pub fn begin_scheduled(&self) -> Result<bool, CallError> {
        if !self.parts.wire.has_batches() || self.parts.vault.is_none() {
            return Ok(false);
        }
        self.state().is_scheduled = self.parts.batch;
        if !self.parts.ledger.exists() {
            return Ok(false);
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        let root = self.root();
        for row in self.ledger(|it| it.left_queued(&root))? {
            self.take_back(row)?;
        }
        for row in self.ledger(|it| it.kept_since(&root, now - KEPT))? {
            self.drop_reply(row.key);
            self.ledger(|it| it.note_fate(row.call, Fate::Done, now))?;
        }
        self.look_after_all(now, |_| true)
    }

    /// Fetches what batches have answered, for a pass that makes no new ones: somebody else may be about to
    /// send one, which is left alone. Returns whether anything came.
    ///
    /// # Errors
    ///
    /// Returns why not all could be fetched. The pass may go on.
    pub fn collect(&self) -> Result<bool, CallError> {
        let is_there = self.parts.wire.has_batches() && self.parts.ledger.exists();
        if !is_there || self.parts.vault.is_none() {
            return Ok(false);
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        self.look_after_all(now, |it| it.remote.is_some())
    }

    fn look_after_all(
        &self,
        now: DateTime<Utc>,
        is_ours: impl Fn(&BatchRow) -> bool,
    ) -> Result<bool, CallError> {
        let (mut came, mut failed) = (false, None);
        for batch in self.ledger(|it| it.batches(&self.root()))?.into_iter().filter(is_ours) {
            match self.look_after(&batch, now) {
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
    pub fn end_scheduled(&self) -> Result<Scheduled, CallError> {
        let queue = {
            let mut state = self.state();
            state.is_scheduled = false;
            std::mem::take(&mut state.queue)
        };
        if !self.parts.wire.has_batches() || !self.parts.ledger.exists() {
            return Ok(Scheduled::default());
        }
        let again = if queue.is_empty() { false } else { self.hand_over(queue)? };
        let waits = self.ledger(|it| it.batches(&self.root()))?;
        Ok(Scheduled { waits: !waits.is_empty(), again })
    }

    /// Queues a request, or says that it waits already. `false`: it is to be asked directly.
    pub(super) fn queue(
        &self,
        request: &Request,
        key: ContentHash,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<bool, CallError> {
        let is_fold = matches!(request.stage, Stage::Weekly | Stage::Monthly);
        if !self.state().is_scheduled || !is_fold || request.messages.len() > 1 {
            return Ok(false);
        }
        let known = self.ledger(|it| it.batched(key, now))?;
        if known.waits {
            return Ok(true);
        }
        let refuses = row.direct_until.is_some_and(|it| now < it);
        if refuses || known.direct || known.tries >= TRIES_MAX {
            return Ok(false);
        }
        let model = &self.parts.model;
        let body = match &self.parts.wire {
            Wire::Anthropic { .. } => anthropic::body(request, model),
            Wire::Openai { .. } => openai::body(request, model, dialect(row)),
            Wire::Ollama { .. } | Wire::Command(_) => return Ok(false),
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
        let row = BatchedRow { call, key, bytes: text_bytes(request) };
        self.ledger(|it| it.queue(&row, &self.root(), now))?;
        if let Some(vault) = &self.parts.vault {
            vault.keep_reply(key, TO_COME).map_err(|e| CallError::Ledger(e.to_string()))?;
        }
        self.state().queue.push(Queued { row, body, length });
        Ok(true)
    }

    /// Sends a batch. Returns whether the server takes none, so that all is to be asked directly.
    fn hand_over(&self, queue: Vec<Queued>) -> Result<bool, CallError> {
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        passed("batch.pass_ended")?;
        // Since the pass ended somebody may have had words forgotten that are in it.
        let (queue, forgotten): (Vec<Queued>, Vec<Queued>) =
            queue.into_iter().partition(|it| self.is_to_come(it.row.key));
        for queued in forgotten {
            self.take_back(queued.row)?;
        }
        if queue.is_empty() {
            return Ok(false);
        }
        let token = token()?;
        let rows: Vec<BatchedRow> = queue.iter().map(|it| it.row).collect();
        let calls: Vec<CallId> = rows.iter().map(|it| it.call).collect();
        let whose = (self.parts.wire.server(), &self.parts.model[..], &self.root()[..]);
        let batch = self.ledger(|it| it.begin_batch(whose, &token, &calls, now))?;
        passed("batch.recorded")?;
        let name = |it: Queued| (wire::name_of(it.row.call.number(), &token), it.body);
        let requests = queue.into_iter().map(name).collect();
        let error = match self.send_batch(requests, &token, now) {
            Ok(remote) => {
                passed("batch.sent")?;
                self.ledger(|it| it.open_batch(batch, &remote))?;
                passed("batch.opened")?;
                return Ok(false);
            }
            Err(error) => error,
        };
        // Whether it arrived is looked up by the next pass.
        if !error.may_have_cost() {
            for row in rows {
                self.take_back(row)?;
            }
            self.ledger(|it| it.end_batch(batch))?;
        }
        let is_refused = matches!(
            error,
            CallError::Request { .. }
                | CallError::TooLong { .. }
                | CallError::Unavailable { status: 501, .. }
        );
        let known = self.row()?;
        if is_refused {
            self.note(&ServerRow { direct_until: Some(now + DIRECT), ..known })?;
            tracing::warn!(
                "{error}: it takes no batches, so the model is asked directly for a day"
            );
            return Ok(true);
        }
        self.note_failed(known, &error, now)?;
        Err(error)
    }

    /// Sends requests as one batch, and returns the provider's name for it.
    fn send_batch(
        &self,
        requests: Vec<(String, Value)>,
        token: &str,
        now: DateTime<Utc>,
    ) -> Result<String, CallError> {
        let headers = self.headers();
        let server = self.parts.wire.server();
        let named = |answer: &Answer| {
            let body = self.body_of(answer)?;
            let name = wire::plain(&body["id"]).filter(|it| !self.holds_key(it));
            let what = "JSON that names no batch";
            name.ok_or(CallError::Garbage { server: server.to_owned(), what })
        };
        if let Wire::Anthropic { .. } = self.parts.wire {
            let body = wire::anthropic_body(requests);
            return named(&self.http.post(server, wire::ANTHROPIC, &headers, body, now)?);
        }
        let (kind, body) = wire::openai_file(requests, token);
        let uploaded = self.http.upload(server, wire::OPENAI_FILES, &headers, &kind, body, now);
        // A file alone costs nothing, whatever became of it.
        let file = uploaded.and_then(|it| named(&it)).map_err(|error| match error {
            error if error.may_have_cost() => CallError::Connect {
                server: server.to_owned(),
                reason: format!("the upload of a batch failed ({})", error.name()),
            },
            error => error,
        })?;
        let body = wire::openai_body(&file, token);
        named(&self.http.post(server, wire::OPENAI, &headers, body, now)?)
    }

    /// Looks how far a batch is, and fetches what it has. Returns whether anything came.
    fn look_after(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<bool, CallError> {
        let is_old = now - batch.at > GIVEN_UP;
        if batch.server != self.parts.wire.server() {
            // Nobody can ask for it while another server is configured.
            return if is_old { self.give_up(batch, now) } else { Ok(false) };
        }
        let row = self.row()?;
        self.gate(&row, now)?;
        match self.fetch(batch, now) {
            Ok(None) if is_old => self.give_up(batch, now),
            Ok(came) => Ok(came.is_some()),
            // It was deleted there.
            Err(CallError::Request { status: 404 | 410, .. }) => self.give_up(batch, now),
            Err(error) if is_old => {
                tracing::warn!("{error}; a batch is given up");
                self.give_up(batch, now)
            }
            Err(error) => {
                self.note_failed(row, &error, now)?;
                Err(error)
            }
        }
    }

    /// Fetches what a batch has; `None` while it has not ended.
    fn fetch(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<Option<()>, CallError> {
        let server = self.parts.wire.server();
        let is_anthropic = matches!(self.parts.wire, Wire::Anthropic { .. });
        let remote = if let Some(remote) = &batch.remote {
            remote.clone()
        } else if let Some(remote) = self.find(batch, now)? {
            self.ledger(|it| it.open_batch(batch.id, &remote))?;
            remote
        } else if now - batch.at < LOOKED_FOR {
            return Ok(None);
        } else {
            return self.give_up(batch, now).map(|_| Some(()));
        };
        let progress = if is_anthropic {
            let body = self.get(&format!("{}/{remote}", wire::ANTHROPIC), now)?;
            wire::anthropic_progress(&body, &remote)
        } else {
            wire::openai_progress(&self.get(&format!("{}/{remote}", wire::OPENAI), now)?)
        };
        let what = "JSON that is no batch";
        match progress.ok_or(CallError::Garbage { server: server.to_owned(), what })? {
            Progress::Working => return Ok(None),
            Progress::Refused => {
                for row in self.ledger(|it| it.waiting(batch.id))? {
                    self.end_unasked(row, "request", Fate::Direct, now)?;
                }
            }
            Progress::Ended(paths) => {
                let headers = self.headers();
                let mut waiting = self.ledger(|it| it.waiting(batch.id))?;
                for path in paths {
                    let mut take = |line: &[u8]| self.take(batch, line, &mut waiting, now);
                    let answer = self.http.get_lines(server, &path, &headers, now, &mut take)?;
                    if !answer.is_ok() {
                        return Err(self.error_of(&answer));
                    }
                }
                // What is not spoken of was not asked, as far as anybody knows.
                for row in waiting {
                    self.lose(row, now)?;
                }
            }
        }
        self.ledger(|it| it.end_batch(batch.id))?;
        Ok(Some(()))
    }

    /// Looks for a batch of which it is not known whether it arrived.
    fn find(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<Option<String>, CallError> {
        let server = self.parts.wire.server();
        let found = if let Wire::Anthropic { .. } = self.parts.wire {
            let requests = self.ledger(|it| it.waiting(batch.id))?.len();
            let list = self.get(&wire::anthropic_list(), now)?;
            wire::anthropic_listed(&list, requests, batch.at - CLOCKS_DIFFER)
        } else {
            wire::openai_listed(&self.get(&wire::openai_list(), now)?, &batch.token)
        };
        for remote in found {
            if !self.ledger(|it| it.knows_batch(server, &remote))? {
                return Ok(Some(remote));
            }
        }
        Ok(None)
    }

    fn get(&self, path: &str, now: DateTime<Utc>) -> Result<Value, CallError> {
        let server = self.parts.wire.server();
        self.body_of(&self.http.get(server, path, &self.headers(), now)?)
    }

    /// Takes one line of the results.
    fn take(
        &self,
        batch: &BatchRow,
        line: &[u8],
        waiting: &mut Vec<BatchedRow>,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        let server = self.parts.wire.server();
        let is_anthropic = matches!(self.parts.wire, Wire::Anthropic { .. });
        let read = if is_anthropic { wire::anthropic_line(line) } else { wire::openai_line(line) };
        // What speaks of none of ours is not for us.
        let Some((name, said)) = read else { return Ok(()) };
        let call = wire::call_of(&name, &batch.token);
        let at = waiting.iter().position(|it| Some(it.call.number()) == call);
        let Some(at) = at else { return Ok(()) };
        let row = waiting.swap_remove(at);
        let answer = match said {
            Said::Answer(answer) => answer,
            Said::Nothing => return self.end_unasked(row, "expired", Fate::Again, now),
        };
        let reply = if is_anthropic {
            anthropic::reply(server, &answer)
        } else {
            openai::reply(server, &answer).and_then(|it| read_whole(it, row.bytes))
        };
        let reply = reply.and_then(|it| self.without_key(it));
        let fate = match &reply {
            Ok(reply) => {
                passed("batch.fetched")?;
                let fate = self.keep_batched(row.key, reply)?;
                passed("batch.kept")?;
                fate
            }
            Err(error) => {
                if let CallError::TooLong { limit: limit @ Some(_) } = *error {
                    let known = self.row()?;
                    self.note(&ServerRow { context_tokens: limit, ..known })?;
                }
                self.drop_to_come(row.key);
                if error.fault() == Fault::Server { Fate::Again } else { Fate::Direct }
            }
        };
        let took = (now - batch.at).to_std().unwrap_or(Duration::ZERO);
        let got = Got { reply, requests: 1, lost: 0, took };
        let span = telemetry::begin_batched(&self.parts.wire, &self.parts.model);
        let cost_usd = self.settle_call(row.call, &got, true)?;
        span.in_scope(|| telemetry::end(&span, &got, cost_usd));
        self.ledger(|it| it.note_fate(row.call, fate, now))
    }

    /// Counts the reply to a request as used, and what it cost as spent, if it came from a batch.
    pub(super) fn take_batched(&self, key: ContentHash) -> Result<(), CallError> {
        if !self.parts.wire.has_batches() || !self.parts.ledger.exists() {
            return Ok(());
        }
        let now = clock::now().map_err(|e| CallError::Config(e.to_string()))?;
        if let Some(cost_usd) = self.ledger(|it| it.take_kept(key, now))? {
            let mut state = self.state();
            state.spent.calls += 1;
            state.spent.cost_usd += cost_usd;
        }
        Ok(())
    }

    /// Keeps a reply, unless the wish for it was taken back.
    fn keep_batched(&self, key: ContentHash, reply: &Reply) -> Result<Fate, CallError> {
        let failed = |e: &dyn std::fmt::Display| CallError::Ledger(e.to_string());
        let Some(vault) = &self.parts.vault else { return Ok(Fate::Done) };
        if vault.kept_reply(key).map_err(|e| failed(&e))?.is_none() {
            return Ok(Fate::Done);
        }
        let text = serde_json::to_string(reply).map_err(|e| failed(&e))?;
        vault.keep_reply(key, &text).map_err(|e| failed(&e))?;
        Ok(Fate::Kept)
    }

    /// Ends a request that nobody was asked, which costs nothing.
    fn end_unasked(
        &self,
        row: BatchedRow,
        outcome: &str,
        fate: Fate,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        self.drop_to_come(row.key);
        let settled = Settled { outcome, usd: Some(0.0), ..Settled::default() };
        self.ledger(|it| it.settle(row.call, &settled))?;
        self.ledger(|it| it.note_fate(row.call, fate, now))
    }

    /// Takes back a request that never left.
    fn take_back(&self, row: BatchedRow) -> Result<(), CallError> {
        self.drop_to_come(row.key);
        self.ledger(|it| it.unqueue(row.call))
    }

    /// Ends a request of which nobody knows what became; it stays charged.
    fn lose(&self, row: BatchedRow, now: DateTime<Utc>) -> Result<(), CallError> {
        self.drop_to_come(row.key);
        self.ledger(|it| it.end_unsure(row.call, "lost", 0, 1, 0))?;
        self.ledger(|it| it.note_fate(row.call, Fate::Again, now))
    }

    fn give_up(&self, batch: &BatchRow, now: DateTime<Utc>) -> Result<bool, CallError> {
        for row in self.ledger(|it| it.waiting(batch.id))? {
            self.lose(row, now)?;
        }
        self.ledger(|it| it.end_batch(batch.id))?;
        Ok(true)
    }

    /// Returns whether a reply is still wished for.
    fn is_to_come(&self, key: ContentHash) -> bool {
        let Some(vault) = &self.parts.vault else { return true };
        vault.kept_reply(key).is_ok_and(|it| it.as_deref() == Some(TO_COME))
    }

    /// Removes what says that a reply is to come; a reply stays.
    fn drop_to_come(&self, key: ContentHash) {
        let is_to_come = self.parts.vault.is_some() && self.is_to_come(key);
        if is_to_come {
            self.drop_reply(key);
        }
    }

    fn drop_reply(&self, key: ContentHash) {
        if let Some(vault) = &self.parts.vault {
            // It is dropped with the next one that is made of it, and nobody reads it until then.
            drop(vault.drop_reply(key));
        }
    }

    /// Counts a request that failed.
    fn note_failed(
        &self,
        row: ServerRow,
        error: &CallError,
        now: DateTime<Utc>,
    ) -> Result<(), CallError> {
        let next = breaker(&row).failed(error, &self.parts.account, now);
        let (failures, open_until, barred) = (next.failures, next.open_until, next.barred);
        self.note(&ServerRow { failures, open_until, barred, ..row })
    }

    /// Returns the JSON of an answer, or what it says went wrong.
    fn body_of(&self, answer: &Answer) -> Result<Value, CallError> {
        if !answer.is_ok() {
            return Err(self.error_of(answer));
        }
        let server = self.parts.wire.server();
        answer.json().map_err(|what| CallError::Garbage { server: server.to_owned(), what })
    }

    fn error_of(&self, answer: &Answer) -> CallError {
        let server = self.parts.wire.server();
        match self.parts.wire {
            Wire::Anthropic { .. } => anthropic::error(server, answer),
            _ => openai::error(server, answer, answer.status),
        }
    }

    fn root(&self) -> String {
        self.parts.root.to_string_lossy().into_owned()
    }
}

/// Returns a new random name.
fn token() -> Result<String, CallError> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| CallError::Config(format!("the system gives no random bytes: {e}")))?;
    Ok(hex(&bytes))
}
