//! Calls of language models.
//!
//! A caller writes a [`ModelRequest`] and passes it to [`LanguageModel`]; the result is a
//! [`ModelReply`], or a [`CallError`] that says what to do next. Everything in between is here, and
//! nothing else in memoird opens a connection:
//!
//! - [`client`]: circuit breaker, budget, price, the call, the stored reply, the ledger.
//! - [`anthropic`], [`openai`], [`ollama`]: three wire formats, as pure functions from a request to a
//!   body and from an answer to a reply.
//! - [`batch`]: requests that can wait, sent together at a lower price.
//! - [`embedding`]: vectors of texts, through the same client.
//! - [`command`]: a program that reads the prompt and prints the reply.
//! - [`http`]: the HTTP client: deadlines, a limit on the body, no redirects.
//! - [`failure`]: what went wrong, and whether a retry makes sense.
//! - [`circuit_breaker`]: when a server is paused; pure.
//! - [`pricing`]: what tokens cost.
//! - [`prompt`]: the prompt files.
//! - [`recording`]: a file of requests and replies, if the user names one.
//! - `shared_spending`: a budget that several machines share (feature `fleet`).
//! - [`tools`]: the tools that a model may call, in the three wire formats; pure.
//! - [`token_estimate`]: how many characters a token has, learned from replies; pure.
//! - `telemetry`: a call as a span.
//! - [`connect`]: a client from the configuration.
//!
//! Names follow the OpenTelemetry conventions for generative AI where they define one.
//!
//! # Invariants
//!
//! - A request contains sanitized text only, and its author fences the data in it.
//! - No error, row of the ledger, or log line contains words of a log or of a reply, or a key.
//! - A reply is on disk before it is used, so that a crash does not pay twice.

pub mod anthropic;
pub mod batch;
pub mod circuit_breaker;
pub mod client;
pub mod command;
pub mod connect;
pub mod embedding;
pub mod failure;
pub mod http;
pub mod ollama;
pub mod openai;
pub mod pricing;
pub mod prompt;
pub mod recording;
#[cfg(feature = "fleet")]
pub(crate) mod shared_spending;
mod telemetry;
pub mod token_estimate;
pub mod tools;
#[cfg(test)]
mod wire_tests;

use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::{
    failure::CallError,
    tools::{Tool, ToolCall, ToolCallResult},
};
use crate::{memory::hash::ContentHash, store::db::ledger::TokenRatio};

/// The purpose of a call; the ledger counts by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// A weekly summary.
    Weekly,
    /// A monthly summary.
    Monthly,
    /// Typed memories of a day.
    Extract,
    /// Edits of `WISDOM.md`.
    Wisdom,
    /// The summary of a session.
    Session,
    /// Corrections of items that failed the checks.
    Repair,
    /// Vectors of lines and queries.
    Embed,
    /// `model test`.
    Test,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Memoird.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Its author.
    pub role: Role,
    /// The text.
    pub text: String,
    /// The results of tool calls, in a turn of ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolCallResult>,
    /// The tool calls in the server's own form, which is sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Value>,
}

/// The JSON schema of a reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// Its name: letters, digits, and `_`.
    pub name: String,
    /// A JSON schema. Objects list all properties as required and allow no others, which is what
    /// providers can enforce.
    pub schema: Value,
}

/// A request to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// Its purpose.
    pub stage: Stage,
    /// Its period; empty for none.
    pub period: String,
    /// Identifies the request instead of its text, where the reply serves more than one piece of
    /// work. The reply stays stored until `LanguageModel::earlier_reply` claims it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The instructions. They come first and do not change from call to call, so that a provider can
    /// cache them.
    pub system: String,
    /// The turns; the first and the last are ours.
    pub messages: Vec<Message>,
    /// The schema of the reply; `None` for text.
    pub schema: Option<OutputSchema>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// The longest reply, in tokens.
    pub max_output_tokens: u32,
    /// The sampling temperature, for providers that accept one.
    pub temperature: f32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The reply is complete.
    Stop,
    /// The reply reached the longest length and is cut off.
    Length,
    /// The model refused, or a filter did.
    Refusal,
    /// The provider's server gave a reason that we do not know.
    Other,
}

/// The tokens of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All tokens read, from the cache or not.
    pub input_tokens: u64,
    /// All tokens written, thoughts included.
    pub output_tokens: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write_tokens: u64,
}

/// The reply of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The text.
    pub text: String,
    /// The tools that it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The calls in the server's own form ([`Message::verbatim`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Value>,
    /// Why the model stopped.
    pub finish_reason: FinishReason,
    /// The tokens used; `None` if the server does not report them.
    pub usage: Option<TokenUsage>,
    /// The cost in US dollars, if the provider reports it.
    pub cost_usd: Option<f64>,
    /// The provider's id of the call.
    pub id: Option<String>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
}

impl ModelReply {
    /// Returns a complete reply that consists of a text, without usage.
    pub fn of_text(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            calls: Vec::new(),
            verbatim: None,
            finish_reason: FinishReason::Stop,
            usage: None,
            cost_usd: None,
            id: None,
            model: None,
        }
    }
}

/// A number of calls and their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    /// Calls of a model.
    pub calls: u32,
    /// Their cost in US dollars; calls without a price count as zero.
    pub cost_usd: f64,
}

/// What remains to do after a scheduled run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduledOutcome {
    /// A batch is open, and its results must be fetched later.
    pub batch_pending: bool,
    /// The queued requests must be sent directly now, by another run.
    pub run_again: bool,
}

/// How the work that needed the replies ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutcome {
    /// The replies were used.
    Done,
    /// The replies were unusable.
    Unusable,
    /// The work could not be completed for another reason; the replies are needed again.
    Deferred,
}

/// Sends requests to a model and returns its replies.
pub trait LanguageModel: Send + Sync {
    /// Sends a request and returns the reply.
    ///
    /// # Errors
    ///
    /// Returns why there is no complete reply.
    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError>;

    /// Returns the stored reply to an earlier request, and sends nothing.
    ///
    /// With `claim`, the reply stays stored only until the current work has ended.
    fn earlier_reply(&self, _request: &ModelRequest, _claim: bool) -> Option<ModelReply> {
        None
    }

    /// Returns whether requests of this run are answered later, in a batch.
    fn waits_for_batches(&self) -> bool {
        false
    }

    /// Stores a text as the reply to a named request, in place of an earlier one.
    fn keep_reply(&self, _request: &ModelRequest, _text: &str) {}

    /// Returns how many tokens the model reads and writes in one call, if its server has reported it.
    fn context_tokens(&self) -> Option<u32> {
        None
    }

    /// Returns whether the model can call tools.
    fn supports_tools(&self) -> bool {
        true
    }

    /// Returns why no request would be sent now; `None` if one would. Sends nothing, creates no file.
    fn unavailable_reason(&self, _now: DateTime<Utc>) -> Option<CallError> {
        None
    }

    /// Returns the lowest expected number of characters per token.
    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(None)
    }

    /// Sets the run that further requests belong to.
    fn set_run(&self, _run: i64) {}

    /// Returns what was spent since the last call of this function.
    fn take_spending(&self) -> Spending {
        Spending::default()
    }

    /// Marks a request as too large to be answered well, so that it is not sent again as it is.
    fn mark_too_large(&self, _request: &ModelRequest) {}

    /// Returns whether a request is marked as too large.
    fn is_marked_too_large(&self, _request: &ModelRequest) -> bool {
        false
    }

    /// Ends the work that needed the last replies.
    ///
    /// Replies stay stored until then, so that a crash between reply and file does not pay twice.
    fn finish_work(&self, _end: WorkOutcome) {}

    /// Called when no work is left.
    ///
    /// Only now may what was learned change further requests: until then a repeated request must be
    /// identical, to be found among the stored replies.
    fn on_idle(&self) {}

    /// Returns the batches of the model; `None` if it has none.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }
}

/// Sends requests together, to be answered later at a lower price.
pub trait Batching {
    /// Starts a scheduled run, whose requests may be queued, and fetches results that have arrived.
    /// Returns whether there were any.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The run may continue.
    fn begin_scheduled_run(&self) -> Result<bool, CallError>;

    /// Fetches results that have arrived, for a run that queues nothing. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The run may continue.
    fn fetch_batched(&self) -> Result<bool, CallError>;

    /// Ends a scheduled run and sends the queued requests.
    ///
    /// # Errors
    ///
    /// Returns why they could not be sent. A later run sends them again.
    fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError>;
}

/// Records requests and sends nothing.
#[derive(Debug, Default)]
pub struct RequestRecorder {
    requests: Mutex<Vec<ModelRequest>>,
    /// The model that the requests are for.
    model_info: ModelInfo,
}

/// What the ledger has learned about a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelInfo {
    /// How many tokens it reads and writes in one call, as its server reported.
    pub context_tokens: Option<u32>,
    /// The length of its tokens.
    pub token_ratio: Option<TokenRatio>,
    /// The input tokens of second tries per input token of first ones; `None` without earlier calls.
    pub repair_share: Option<f64>,
}

impl RequestRecorder {
    /// Returns a recorder that stands in for a model.
    pub fn for_model(model_info: ModelInfo) -> Self {
        Self { requests: Mutex::default(), model_info }
    }

    /// Returns the requests so far, and forgets them.
    pub fn take_requests(&self) -> Vec<ModelRequest> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LanguageModel for Arc<RequestRecorder> {
    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        // With this error the caller continues with its other parts, so that all are recorded.
        Err(CallError::AwaitingBatch)
    }

    fn context_tokens(&self) -> Option<u32> {
        self.model_info.context_tokens
    }

    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(self.model_info.token_ratio)
    }
}

impl Stage {
    /// Returns the name that the ledger uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Extract => "extract",
            Self::Wisdom => "wisdom",
            Self::Session => "session",
            Self::Repair => "repair",
            Self::Embed => "embed",
            Self::Test => "test",
        }
    }
}

impl Role {
    /// Returns the name that the wire formats use.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl FinishReason {
    /// Returns the name that the ledger uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Refusal => "refusal",
            Self::Other => "other",
        }
    }
}

impl Message {
    /// Returns a turn of ours.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, text: text.into(), results: Vec::new(), verbatim: None }
    }

    /// Returns an earlier turn of the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into(), results: Vec::new(), verbatim: None }
    }

    fn chars(&self) -> usize {
        let results = self.results.iter().map(|it| it.text.chars().count());
        let verbatim = self.verbatim.iter().map(|it| it.to_string().len());
        self.text.chars().count() + results.sum::<usize>() + verbatim.sum::<usize>()
    }
}

impl ModelRequest {
    /// Returns how many characters are sent, not counting what the wire format adds.
    pub fn chars(&self) -> usize {
        let messages = self.messages.iter().map(Message::chars);
        let schema = self.schema.iter().map(|it| it.schema.to_string().len());
        let tools = self.tools.iter().map(Tool::bytes);
        self.system.chars().count()
            + messages.sum::<usize>()
            + schema.sum::<usize>()
            + tools.sum::<usize>()
    }

    /// Returns the key of the request to this model of this server. Equal requests have equal keys.
    pub fn key(&self, server: &str, model: &str) -> ContentHash {
        let content = || serde_json::to_string(self).unwrap_or_default();
        let request = self.name.clone().unwrap_or_else(content);
        ContentHash::of(format!("{server}\n{model}\n{request}"))
    }
}

impl TokenUsage {
    /// Returns the number of tokens read and written.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

impl ModelReply {
    /// Returns whether the model stopped well before the limit.
    fn wrote_less_than(&self, max_output_tokens: u32) -> bool {
        const SLACK: u64 = 16;
        self.usage.is_some_and(|it| it.output_tokens + SLACK < u64::from(max_output_tokens))
    }
}

/// Refuses an incomplete reply: refused, cut off, or empty.
pub(crate) fn check_complete(
    reply: ModelReply,
    max_output_tokens: u32,
) -> Result<ModelReply, CallError> {
    match reply.finish_reason {
        FinishReason::Refusal => Err(CallError::Refused),
        // If the reply is shorter than allowed, the model's context was full.
        FinishReason::Length => Err(match reply.usage.map(|it| it.total_tokens()) {
            Some(limit) if reply.wrote_less_than(max_output_tokens) => {
                CallError::TooLong { limit: Some(limit) }
            }
            _ => CallError::ReplyTruncated { max_output_tokens },
        }),
        _ if reply.text.trim().is_empty() && reply.calls.is_empty() => Err(CallError::EmptyReply),
        _ => Ok(reply),
    }
}

/// Returns the context length that an error message names: its smallest number of four digits or
/// more, because a larger one is the length of our request.
fn parse_context_limit(message: &str) -> Option<u64> {
    let numbers = message.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    numbers.filter(|it| *it >= 1000).min()
}
