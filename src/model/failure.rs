//! What can go wrong in a call of a model, and what is done about it.
//!
//! | kind | examples | then |
//! |---|---|---|
//! | the server | no connection, a deadline, 408, 409, 429, 500 and above, a body cut off | a few retries after pauses; then the circuit breaker |
//! | the account | 401, 402, 403, an exhausted quota | nothing is sent until a person has fixed it |
//! | the request | 400, 404, 413, 422 | the job fails: the same request would fail again |
//! | too long | the sources do not fit into the model | smaller parts |
//! | the reply | a refusal, cut off, empty, no JSON, a page of HTML | the job fails |
//! | ourselves | an exhausted budget, an open circuit, no price | the work waits |
//! | pending | a batch without an answer yet | this work waits, other work continues |
//!
//! A provider's own error message may quote the request. It is a [`ProviderMessage`], which only
//! `model test` shows, and is part of no other message, record, or log line.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};

/// A provider's own error message. `Debug` does not show it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProviderMessage(Option<String>);

/// Which deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Until there is a connection.
    Connect,
    /// Until the first byte of the answer.
    FirstByte,
    /// Between two pieces of the answer.
    Idle,
    /// For the whole call.
    Total,
}

/// Why there is no usable reply.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// There is no connection, or it broke before the answer began.
    #[error("no connection to {server}: {reason}")]
    Connect {
        /// The address.
        server: String,
        /// The error of the system or of TLS.
        reason: String,
    },
    /// A deadline passed.
    #[error("{server} did not answer in time ({deadline}, {} s)", .after.as_secs_f64())]
    Timeout {
        /// The address.
        server: String,
        /// Which deadline.
        deadline: Deadline,
        /// Its length.
        after: Duration,
    },
    /// The server is overloaded, or has failed.
    #[error("{server} answered {status}{}", with_code(.code.as_ref()))]
    Unavailable {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// How long to wait before a retry, if the server says so.
        retry_after: Option<Duration>,
        /// The provider's own message.
        provider_message: ProviderMessage,
    },
    /// The connection was lost before the answer was complete.
    #[error("the connection to {server} was lost before the answer was complete")]
    ConnectionLost {
        /// The address.
        server: String,
    },
    /// The key is wrong, or the account has no credit.
    #[error("{server} refuses the key or the account ({status}{})", with_code(.code.as_ref()))]
    Account {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// The provider's own message.
        provider_message: ProviderMessage,
    },
    /// The server refuses the request.
    #[error("{server} refuses the request ({status}{})", with_code(.code.as_ref()))]
    Request {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// The provider's own message.
        provider_message: ProviderMessage,
    },
    /// The request is longer than the model can read.
    #[error("the request is too long for the model{}", with_limit(*.limit))]
    TooLong {
        /// How many tokens it reads, if the server reports it.
        limit: Option<u64>,
    },
    /// The server silently read only a part of the request.
    #[error(
        "the server read only {read} of at least {sent} tokens: it cut the request; raise its context length"
    )]
    PromptTruncated {
        /// How many tokens it reports as read.
        read: u64,
        /// How many tokens were sent, at least.
        sent: u64,
    },
    /// The server redirects. The key is sent only to the configured address.
    #[error("{server} redirects to {host}; set model.base_url to that address if it is correct")]
    Redirect {
        /// The address.
        server: String,
        /// The host of the new address.
        host: String,
    },
    /// The answer does not have this wire format.
    #[error("{server} answered with {what} instead of a model's reply")]
    UnexpectedResponse {
        /// The address.
        server: String,
        /// What the answer is.
        what: &'static str,
    },
    /// The answer is too large.
    #[error("the answer of {server} is larger than {} MB", .bytes_max / (1024 * 1024))]
    ResponseTooLarge {
        /// The address.
        server: String,
        /// The limit.
        bytes_max: usize,
    },
    /// The model refused.
    #[error("the model refused to answer")]
    Refused,
    /// The reply has no text.
    #[error("the reply is empty")]
    EmptyReply,
    /// The reply was cut off.
    #[error("the reply was cut off at {max_output_tokens} tokens")]
    ReplyTruncated {
        /// The limit.
        max_output_tokens: u32,
    },
    /// The reply does not have the form that was asked for.
    #[error("the reply is not what was asked for: {0}")]
    InvalidReply(String),
    /// A program could not be run.
    #[error("`{program}`: {reason}")]
    Program {
        /// Its name.
        program: String,
        /// What went wrong.
        reason: String,
        /// The provider's own message.
        provider_message: ProviderMessage,
    },
    /// A budget is exhausted.
    #[error("{0}")]
    BudgetExhausted(String),
    /// The server failed too often and is paused.
    #[error("{server} failed {failures} times in a row and is paused until {}; `memoird model test` tries at once", .until.format("%Y-%m-%d %H:%M UTC"))]
    CircuitOpen {
        /// The address.
        server: String,
        /// How often it failed.
        failures: u32,
        /// The end of the pause.
        until: DateTime<Utc>,
    },
    /// The account was refused before, and nothing has changed since.
    #[error("{server} refused the key or the account before; `memoird model test` tries again")]
    AccountBlocked {
        /// The address.
        server: String,
    },
    /// The configuration allows no call.
    #[error("{0}")]
    Config(String),
    /// The ledger or a stored reply cannot be written, so no request is sent.
    #[error("the model was not called: {0}")]
    Ledger(String),
    /// The request was queued for a batch, which is answered later.
    #[error("waits for a batch, which the provider answers within a day")]
    AwaitingBatch,
}

/// Where an error comes from, which decides what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// From the server: a retry may succeed.
    Server,
    /// From the account: nothing is sent until a person has fixed it.
    Account,
    /// From the request or the reply: the same request would fail again.
    Request,
    /// From our own limits: all work waits.
    Blocked,
    /// No error: this request is answered later, and others continue.
    Pending,
}

impl CallError {
    /// Returns where the error comes from.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. }
            | Self::Timeout { .. }
            | Self::Unavailable { .. }
            | Self::ConnectionLost { .. }
            | Self::ResponseTooLarge { .. }
            | Self::UnexpectedResponse { .. }
            | Self::Program { .. } => ErrorClass::Server,
            Self::Account { .. } | Self::AccountBlocked { .. } | Self::Redirect { .. } => {
                ErrorClass::Account
            }
            Self::Request { .. }
            | Self::TooLong { .. }
            | Self::PromptTruncated { .. }
            | Self::Refused
            | Self::EmptyReply
            | Self::ReplyTruncated { .. }
            | Self::InvalidReply(_) => ErrorClass::Request,
            Self::AwaitingBatch => ErrorClass::Pending,
            Self::BudgetExhausted(_)
            | Self::CircuitOpen { .. }
            | Self::Config(_)
            | Self::Ledger(_) => ErrorClass::Blocked,
        }
    }

    /// Returns whether a retry may succeed within seconds.
    pub fn is_retryable(&self) -> bool {
        // A server that sends pages of HTML or too much is broken, not busy.
        self.class() == ErrorClass::Server
            && !matches!(
                self,
                Self::UnexpectedResponse { .. }
                    | Self::ResponseTooLarge { .. }
                    | Self::Program { .. }
            )
    }

    /// Returns whether the provider may have charged for the call.
    pub fn may_have_cost(&self) -> bool {
        match self {
            Self::Timeout { deadline, .. } => *deadline != Deadline::Connect,
            Self::ConnectionLost { .. }
            | Self::ResponseTooLarge { .. }
            | Self::UnexpectedResponse { .. }
            | Self::Program { .. } => true,
            _ => false,
        }
    }

    /// Returns how long the server asks to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns the provider's own message, for a terminal only.
    pub fn provider_message(&self) -> Option<&str> {
        match self {
            Self::Unavailable { provider_message, .. }
            | Self::Account { provider_message, .. }
            | Self::Request { provider_message, .. }
            | Self::Program { provider_message, .. } => provider_message.0.as_deref(),
            _ => None,
        }
    }

    /// Returns the name in the ledger: one word that never changes.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "connect",
            Self::Timeout { .. } => "timeout",
            Self::Unavailable { .. } => "unavailable",
            Self::ConnectionLost { .. } => "truncated",
            Self::Account { .. } | Self::AccountBlocked { .. } => "account",
            Self::Request { .. } => "request",
            Self::TooLong { .. } => "too_long",
            Self::PromptTruncated { .. } => "unread",
            Self::Redirect { .. } => "redirect",
            Self::UnexpectedResponse { .. } => "garbage",
            Self::ResponseTooLarge { .. } => "huge",
            Self::Refused => "refusal",
            Self::EmptyReply => "empty",
            Self::ReplyTruncated { .. } => "length",
            Self::InvalidReply(_) => "unreadable",
            Self::Program { .. } => "program",
            Self::BudgetExhausted(_) => "cap",
            Self::CircuitOpen { .. } => "open",
            Self::Config(_) => "config",
            Self::Ledger(_) => "ledger",
            Self::AwaitingBatch => "batched",
        }
    }
}

impl ProviderMessage {
    /// Wraps a provider's message, shortened to a few lines.
    pub fn new(text: Option<&str>) -> Self {
        const CHARS_MAX: usize = 600;
        Self(text.map(|it| it.trim().chars().take(CHARS_MAX).collect()))
    }

    /// Returns the text; empty if there is none.
    pub(super) fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for ProviderMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "ProviderMessage(…)" } else { "ProviderMessage" })
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::FirstByte => "the first byte",
            Self::Idle => "between two pieces",
            Self::Total => "in total",
        })
    }
}

/// Returns a provider's name for an error if it is a single word, not a sentence.
pub(super) fn error_code(name: Option<&str>) -> Option<String> {
    const CHARS_MAX: usize = 60;
    let is_word = |it: &&str| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_-.".contains(&b);
        !it.is_empty() && it.len() <= CHARS_MAX && it.bytes().all(plain)
    };
    name.filter(is_word).map(ToOwned::to_owned)
}

fn with_code(name: Option<&String>) -> String {
    name.map(|it| format!(", {it}")).unwrap_or_default()
}

fn with_limit(limit: Option<u64>) -> String {
    limit.map(|it| format!(", which reads {it} tokens")).unwrap_or_default()
}
