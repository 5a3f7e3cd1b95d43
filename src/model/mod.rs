//! The one door to a language model.
//!
//! Whoever wants words from a model writes a [`ModelRequest`] and hands it to [`LanguageModel`]; what comes back is
//! a [`ModelReply`] or a [`CallError`] that says what to do next. Everything between is in here, and
//! nothing else in memoird opens a connection:
//!
//! - [`client`]: breaker, caps, prices, the call, the stored reply, the ledger, in this order.
//! - [`anthropic`], [`openai`], [`ollama`]: three wire formats, as pure functions from a request to a
//!   body and from an answer to a reply.
//! - [`batch`]: what can wait, handed over in one piece at a lower price.
//! - [`embedding`]: vectors of texts, through the same door.
//! - [`command`]: a program that reads the prompt and prints the reply.
//! - [`http`]: the client that carries the first three: deadlines, a cap on the body, no redirect.
//! - [`failure`]: what went wrong, and whether another try makes sense.
//! - [`circuit_breaker`]: when a server is left alone; pure.
//! - [`pricing`]: what tokens cost.
//! - [`prompt`]: the prompt files.
//! - [`tools`]: what a model may call, in the three wire formats; pure.
//! - [`token_estimate`]: how many characters a token has, as replies have taught; pure.
//! - [`telemetry`]: a call as a span.
//! - [`connect`]: a door from the configuration.
//!
//! Names are those of the OpenTelemetry conventions for generative AI where there is one.
//!
//! # Invariants
//!
//! - A request holds served text only, and is fenced by whoever writes it.
//! - No error, record, or log line holds words of a log or of a reply, or a key.
//! - A reply is on the disk before anybody reads it, so that a crash does not pay twice.

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

/// What a call is for; the ledger counts by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// A weekly file.
    Weekly,
    /// A monthly file.
    Monthly,
    /// Typed memories of a day.
    Extract,
    /// Edits of `WISDOM.md`.
    Wisdom,
    /// The summary of a session.
    Session,
    /// Vectors of lines and queries.
    Embed,
    /// `model test`.
    Test,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// We.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The words.
    pub text: String,
    /// What calls of tools came to, in a turn of ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<ToolCallResult>,
    /// What the server said, in its own form, where it goes back as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Value>,
}

/// The form that a reply must have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputSchema {
    /// A name for it: letters, digits, and `_`.
    pub name: String,
    /// A JSON schema. Objects list all properties as required and allow no others, which is what
    /// providers can enforce.
    pub schema: Value,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRequest {
    /// What for.
    pub stage: Stage,
    /// For which period; empty for none.
    pub period: String,
    /// What it is known by in the place of its words, where its reply serves more than one piece of
    /// work: the reply is kept until it is taken by `LanguageModel::earlier_reply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The instructions. They come first and do not change from call to call, so that a provider can
    /// keep them.
    pub system: String,
    /// The turns, beginning and ending with ours.
    pub messages: Vec<Message>,
    /// The form of the reply; `None` for text.
    pub schema: Option<OutputSchema>,
    /// What the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// How much the model may write, in tokens.
    pub max_output_tokens: u32,
    /// How freely it chooses its words, for providers that take it.
    pub temperature: f32,
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said all.
    Stop,
    /// It may not write more: what there is, is cut off.
    Length,
    /// It refused, or a filter did.
    Refusal,
    /// The provider's server gave a reason that we do not know.
    Other,
}

/// What a call took, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All that was read, from the cache or not.
    pub input_tokens: u64,
    /// All that was written, thoughts too.
    pub output_tokens: u64,
    /// How much of the input was in the provider's cache.
    pub cache_read_tokens: u64,
    /// How much of the input was put there.
    pub cache_write_tokens: u64,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReply {
    /// The words.
    pub text: String,
    /// What it calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// The calls in the server's own form ([`Message::verbatim`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verbatim: Option<Value>,
    /// Why it ends where it ends.
    pub finish_reason: FinishReason,
    /// What it took; `None` where the server does not say.
    pub usage: Option<TokenUsage>,
    /// What it cost, where the provider says so itself, in US dollars.
    pub cost_usd: Option<f64>,
    /// The provider's name for the call.
    pub id: Option<String>,
    /// The model that answered, as it calls itself.
    pub model: Option<String>,
}

/// A call that was answered, and what it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spending {
    /// Calls of a model.
    pub calls: u32,
    /// What they cost, in US dollars; those without a price count as nothing.
    pub cost_usd: f64,
}

/// What a scheduled pass leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScheduledOutcome {
    /// A batch is under way, to be looked after.
    pub batch_pending: bool,
    /// What was queued is to be asked directly now.
    pub run_again: bool,
}

/// How the work ended that replies were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkOutcome {
    /// It was done with them.
    Done,
    /// They were of no use.
    Unusable,
    /// It could not be ended now, for a reason that lies not with them: they are needed again.
    Deferred,
}

/// Carries a request to a model and the reply back.
pub trait LanguageModel: Send + Sync {
    /// Asks.
    ///
    /// # Errors
    ///
    /// Returns why there is no reply that could be read.
    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError>;

    /// Returns the reply to a request that was made before, and asks for none. One that is `taken` is
    /// kept until the work that is under way has ended.
    fn earlier_reply(&self, _request: &ModelRequest, _taken: bool) -> Option<ModelReply> {
        None
    }

    /// Returns how many tokens the model reads and writes in one call, as far as its server has said so.
    fn context_tokens(&self) -> Option<u32> {
        None
    }

    /// Returns whether the model can be given tools to call.
    fn supports_tools(&self) -> bool {
        true
    }

    /// Returns why no request would go out now; `None` if one would. Sends nothing, and makes nothing.
    fn unavailable_reason(&self, _now: DateTime<Utc>) -> Option<CallError> {
        None
    }

    /// Returns how many characters a token of the model has at the least.
    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(None)
    }

    /// Says which run asks from now on.
    fn set_run(&self, _run: i64) {}

    /// Returns what was spent since the last time that this was asked.
    fn take_spending(&self) -> Spending {
        Spending::default()
    }

    /// Notes that this question was too much at once: it is not asked again until nothing is left to be
    /// done.
    fn mark_too_large(&self, _request: &ModelRequest) {}

    /// Returns whether that was noted of this question.
    fn is_marked_too_large(&self, _request: &ModelRequest) -> bool {
        false
    }

    /// Says that the work has ended that the last replies were asked for. They are kept until then, so
    /// that a crash between reply and file does not pay twice.
    fn finish_work(&self, _end: WorkOutcome) {}

    /// Says that nothing is left to be done. What was learned may change what is asked from now on;
    /// before, what is asked again must be what was asked, and be found among the replies that are kept.
    fn on_idle(&self) {}

    /// Begins a scheduled pass, for which replies may come later at a lower price. Returns whether any
    /// came now.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The pass may go on.
    fn begin_scheduled_run(&self) -> Result<bool, CallError> {
        Ok(false)
    }

    /// Fetches replies that were asked for by a scheduled pass and have come meanwhile. Returns whether any did.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The pass may go on.
    fn fetch_batched(&self) -> Result<bool, CallError> {
        Ok(false)
    }

    /// Ends a scheduled pass: what it queued is sent.
    ///
    /// # Errors
    ///
    /// Returns why it could not be sent.
    fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError> {
        Ok(ScheduledOutcome::default())
    }
}

/// Takes notes of what is asked, and sends nothing.
#[derive(Debug, Default)]
pub struct RequestRecorder {
    requests: Mutex<Vec<ModelRequest>>,
    /// What is known of the model that would be asked.
    model_info: ModelInfo,
}

/// What the ledger knows of a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct ModelInfo {
    /// How many tokens it reads and writes in one call, as its server said.
    pub context_tokens: Option<u32>,
    /// How long its tokens are.
    pub weight: Option<TokenRatio>,
}

impl RequestRecorder {
    /// Takes notes in the place of a model of which this is known.
    pub fn for_model(known: ModelInfo) -> Self {
        Self { requests: Mutex::default(), model_info: known }
    }

    /// Returns what was asked so far.
    pub fn take_requests(&self) -> Vec<ModelRequest> {
        std::mem::take(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LanguageModel for Arc<RequestRecorder> {
    fn complete(&self, request: &ModelRequest) -> Result<ModelReply, CallError> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request.clone());
        // The other parts are asked for in the meantime.
        Err(CallError::AwaitingBatch)
    }

    fn context_tokens(&self) -> Option<u32> {
        self.model_info.context_tokens
    }

    fn chars_per_token(&self) -> f64 {
        token_estimate::min_chars_per_token(self.model_info.weight)
    }
}

impl Stage {
    /// All stages.
    pub const ALL: [Self; 7] = [
        Self::Weekly,
        Self::Monthly,
        Self::Extract,
        Self::Wisdom,
        Self::Session,
        Self::Embed,
        Self::Test,
    ];

    /// Returns the name that the ledger uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Extract => "extract",
            Self::Wisdom => "wisdom",
            Self::Session => "session",
            Self::Embed => "embed",
            Self::Test => "test",
        }
    }
}

impl Role {
    /// Returns the name that all wire formats use.
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

    /// Returns an earlier turn of the model's.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self { role: Role::Assistant, text: text.into(), results: Vec::new(), verbatim: None }
    }
}

impl Message {
    fn chars(&self) -> usize {
        let results = self.results.iter().map(|it| it.text.chars().count());
        let verbatim = self.verbatim.iter().map(|it| it.to_string().len());
        self.text.chars().count() + results.sum::<usize>() + verbatim.sum::<usize>()
    }
}

impl ModelRequest {
    /// Returns how many characters are sent, but for what the wire format adds.
    pub fn chars(&self) -> usize {
        let messages = self.messages.iter().map(Message::chars);
        let schema = self.schema.iter().map(|it| it.schema.to_string().len());
        let tools = self.tools.iter().map(Tool::bytes);
        self.system.chars().count()
            + messages.sum::<usize>()
            + schema.sum::<usize>()
            + tools.sum::<usize>()
    }

    /// Names the request when it goes to this model of this server. Equal requests have equal names.
    pub fn key(&self, server: &str, model: &str) -> ContentHash {
        let words = || serde_json::to_string(self).unwrap_or_default();
        let request = self.name.clone().unwrap_or_else(words);
        ContentHash::of(format!("{server}\n{model}\n{request}"))
    }
}

impl TokenUsage {
    /// Returns what was read and written.
    pub fn total_tokens(&self) -> u64 {
        self.input_tokens + self.output_tokens
    }
}

impl ModelReply {
    /// Returns how many tokens were read and written in all.
    fn total_tokens(&self) -> Option<u64> {
        self.usage.map(|it| it.input_tokens + it.output_tokens)
    }

    /// Returns whether the model stopped well before it had to.
    fn wrote_less_than(&self, max_output_tokens: u32) -> bool {
        const SLACK: u64 = 16;
        self.usage.is_some_and(|it| it.output_tokens + SLACK < u64::from(max_output_tokens))
    }
}

/// Refuses a reply that is no whole answer: refused, cut off, or without a word.
pub(crate) fn check_complete(
    reply: ModelReply,
    max_output_tokens: u32,
) -> Result<ModelReply, CallError> {
    match reply.finish_reason {
        FinishReason::Refusal => Err(CallError::Refused),
        // It may have written more, and had no room left for it.
        FinishReason::Length => Err(match reply.total_tokens() {
            Some(limit) if reply.wrote_less_than(max_output_tokens) => {
                CallError::TooLong { limit: Some(limit) }
            }
            _ => CallError::ReplyTruncated { max_output_tokens },
        }),
        _ if reply.text.trim().is_empty() && reply.calls.is_empty() => Err(CallError::EmptyReply),
        _ => Ok(reply),
    }
}

/// Returns the context length that the words of an error name: the smallest number of four digits or
/// more, since the larger one is what we sent.
fn parse_context_limit(words: &str) -> Option<u64> {
    let numbers = words.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok());
    numbers.filter(|it| *it >= 1000).min()
}
