//! Sending: one request over the provider's wire format, repeated after a pause where that helps.

use std::{
    thread,
    time::{Duration, Instant},
};

use chrono::{DateTime, Utc};

use super::{
    ModelClient, ModelClientConfig, budget::text_bytes, circuit::circuit_of,
    endpoint::ProviderEndpoint,
};
use crate::{
    clock,
    config::api_key::Secret,
    model::{
        CallError, ModelReply, ModelRequest, anthropic, check_complete,
        http::RequestHeader,
        ollama,
        openai::{self, OpenaiDialect, SchemaMode},
    },
    store::db::ledger::ServerRow,
};

/// How often a request is sent at most, the first time included.
const TRIES_MAX: u32 = 3;

/// The pause before the first retry; each further pause is twice as long.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// The longest pause between two tries, unless the server asks for a longer one.
const RETRY_DELAY_MAX: Duration = Duration::from_secs(8);

/// The highest average number of bytes per token; shows whether a server read the whole prompt.
const BYTES_PER_TOKEN_MAX: u64 = 8;

/// Sends a request once and reads the answer.
type SendOnce<'a> = dyn FnMut(&ServerRow, DateTime<Utc>) -> Result<ModelReply, CallError> + 'a;

/// A reply, and what it took to get it.
pub(in crate::model) struct CallOutcome {
    pub(in crate::model) reply: Result<ModelReply, CallError>,
    pub(in crate::model) requests: u32,
    /// Earlier tries that the provider may have charged for as well.
    pub(in crate::model) maybe_charged_requests: u32,
    pub(in crate::model) duration: Duration,
}

impl ModelClient {
    /// Sends the request, and repeats it after a pause if the failure may be temporary.
    ///
    /// Updates `row` with what was learned about the server.
    pub(super) fn send(
        &self,
        request: &ModelRequest,
        row: &mut ServerRow,
        once: &mut SendOnce<'_>,
    ) -> CallOutcome {
        let started = Instant::now();
        let (mut requests, mut maybe_charged_requests) = (0, 0);
        loop {
            requests += 1;
            let now = clock::now().unwrap_or_default();
            let reply = once(row, now);
            let duration = started.elapsed();
            let outcome = |reply| CallOutcome { reply, requests, maybe_charged_requests, duration };
            let error = match reply {
                Ok(reply) => {
                    row.failures = 0;
                    row.open_until = None;
                    row.refused_account = None;
                    let complete = check_complete(reply.clone(), request.max_output_tokens);
                    if let Err(CallError::TooLong { limit: Some(limit) }) = complete {
                        row.context_tokens = Some(limit);
                    }
                    return outcome(Ok(reply));
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
            // Saved after each try, so that a crash between two tries does not reset the count.
            drop(self.save_server_row(row));
            let may_retry =
                error.is_retryable() && requests < TRIES_MAX && row.open_until.is_none();
            let pause = may_retry.then(|| self.retry_delay(&error, requests)).flatten();
            let Some(pause) = pause else { return outcome(Err(error)) };
            maybe_charged_requests += u32::from(error.may_have_cost());
            thread::sleep(pause);
        }
    }

    /// Returns how long to wait before the next try; `None` if the total wait would be too long.
    fn retry_delay(&self, error: &CallError, tries: u32) -> Option<Duration> {
        let backoff = RETRY_DELAY.saturating_mul(1 << (tries - 1)).min(RETRY_DELAY_MAX);
        let pause = error.retry_after().unwrap_or_else(|| with_jitter(backoff));
        let mut state = self.state();
        let total = state.waited + pause;
        if total > self.config.retry_wait_max {
            return None;
        }
        state.waited = total;
        drop(state);
        Some(pause)
    }

    /// Sends the request once.
    pub(super) fn send_once(
        &self,
        request: &ModelRequest,
        row: &ServerRow,
        now: DateTime<Utc>,
    ) -> Result<ModelReply, CallError> {
        let ModelClientConfig { endpoint, model, context_tokens, .. } = &self.config;
        let headers = self.request_headers();
        let bytes = |body: serde_json::Value| body.to_string().into_bytes();
        let reply = match endpoint {
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

    /// Returns the headers of every request, the key included.
    pub(in crate::model) fn request_headers(&self) -> Vec<RequestHeader> {
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

    /// Refuses a reply that contains our key, because replies are stored and shown.
    pub(in crate::model) fn reject_leaked_key(
        &self,
        mut reply: ModelReply,
    ) -> Result<ModelReply, CallError> {
        let calls = serde_json::to_string(&(&reply.calls, &reply.verbatim)).unwrap_or_default();
        if self.contains_key(&reply.text) || self.contains_key(&calls) {
            return Err(CallError::InvalidReply("it repeats the API key".to_owned()));
        }
        reply.id = reply.id.filter(|it| !self.contains_key(it));
        reply.model = reply.model.filter(|it| !self.contains_key(it));
        Ok(reply)
    }

    /// Returns whether a text contains our key.
    pub(in crate::model) fn contains_key(&self, text: &str) -> bool {
        self.key().is_some_and(|it| text.contains(it))
    }
}

/// Returns the dialect that a server is known to understand.
pub(in crate::model) fn dialect_of(row: &ServerRow) -> OpenaiDialect {
    let mode = SchemaMode::ALL.into_iter().find(|it| Some(it.name()) == row.schema_mode.as_deref());
    OpenaiDialect { schema_mode: mode.unwrap_or_default(), is_reasoning_model: row.is_thinking }
}

/// Refuses a reply to a prompt that the server cut silently to fit its context.
pub(in crate::model) fn check_fully_read(
    reply: ModelReply,
    bytes: u64,
) -> Result<ModelReply, CallError> {
    let sent = bytes / BYTES_PER_TOKEN_MAX;
    match reply.usage {
        Some(usage) if usage.input_tokens > 0 && usage.input_tokens < sent => {
            Err(CallError::PromptTruncated { read: usage.input_tokens, sent })
        }
        _ => Ok(reply),
    }
}

/// Shortens a pause by up to a quarter, so that many clients do not retry at the same moment.
fn with_jitter(pause: Duration) -> Duration {
    let mut byte = [0u8; 1];
    let filled = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::empty());
    let share = if filled.is_ok() { u32::from(byte[0]) } else { 0 };
    pause.saturating_sub(pause * share / (4 * 256))
}
