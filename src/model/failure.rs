//! What goes wrong between us and a model, and what is done about it.
//!
//! | kind | examples | then |
//! |---|---|---|
//! | the server | no connection, a deadline, 408, 409, 429, 500 and above, a body cut off | again after a pause, a few times; then the breaker |
//! | the account | 401, 402, 403, a used-up quota | nothing more until a person has seen to it |
//! | the question | 400, 404, 413, 422 | the job fails: the same again would fail the same way |
//! | too long | the sources do not fit into the model | smaller parts |
//! | the answer | a refusal, cut off, empty, no JSON, a page of HTML | the job fails |
//! | ourselves | a cap, an open breaker, no price | the work waits |
//! | nobody | a batch that is not answered yet | this work waits, other work goes on |
//!
//! What a provider says in its own words may quote the request. It is kept apart ([`ProviderMessage`]), shown
//! by `model test` alone, and no part of any message, record, or log line.

use std::{fmt, time::Duration};

use chrono::{DateTime, Utc};

/// What a provider said about an error, in its words. `Debug` shows nothing of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProviderMessage(Option<String>);

/// Which deadline passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// For a connection.
    Connect,
    /// For the first byte of the answer.
    FirstByte,
    /// For the next bytes.
    Idle,
    /// For all of it.
    Total,
}

/// Why there is no reply that could be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// Nobody listens there, or the connection broke before an answer began.
    #[error("no connection to {server}: {reason}")]
    Connect {
        /// The address.
        server: String,
        /// What the system or TLS says.
        reason: String,
    },
    /// It took too long.
    #[error("{server} did not answer in time ({deadline}, {} s)", .after.as_secs_f64())]
    Timeout {
        /// The address.
        server: String,
        /// Which deadline.
        deadline: Deadline,
        /// How long it is.
        after: Duration,
    },
    /// The server has no time, or had an accident.
    #[error("{server} answered {status}{}", with_code(.code.as_ref()))]
    Unavailable {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// When to come again, if it says so.
        retry_after: Option<Duration>,
        /// In its words.
        provider_message: ProviderMessage,
    },
    /// The answer ended before it was whole.
    #[error("the answer of {server} was cut off on the way")]
    ConnectionLost {
        /// The address.
        server: String,
    },
    /// The key is wrong, or the account is empty.
    #[error("{server} refuses the key or the account ({status}{})", with_code(.code.as_ref()))]
    Account {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// In its words.
        provider_message: ProviderMessage,
    },
    /// The server does not take such a request.
    #[error("{server} refuses the request ({status}{})", with_code(.code.as_ref()))]
    Request {
        /// The address.
        server: String,
        /// The HTTP status.
        status: u16,
        /// The provider's name for the error.
        code: Option<String>,
        /// In its words.
        provider_message: ProviderMessage,
    },
    /// The request is longer than the model reads.
    #[error("the request is too long for the model{}", with_limit(*.limit))]
    TooLong {
        /// How many tokens it reads, if the server says so.
        limit: Option<u64>,
    },
    /// The server read only a part of the request, and said nothing of it.
    #[error(
        "the server read {read} tokens of about {sent}: it cut the request off; raise its context length"
    )]
    PromptTruncated {
        /// What it says that it read.
        read: u64,
        /// What was sent, at the least.
        sent: u64,
    },
    /// The server sends us elsewhere. The key is sent nowhere but where it was told.
    #[error("{server} redirects to {host}; name that address as model.base_url if it is right")]
    Redirect {
        /// The address.
        server: String,
        /// Where to.
        host: String,
    },
    /// The answer is none of this wire format.
    #[error("{server} answered with {what}, not with a reply of a model")]
    UnexpectedResponse {
        /// The address.
        server: String,
        /// What it is.
        what: &'static str,
    },
    /// The answer is too large.
    #[error("the answer of {server} is over {} MB", .bytes_max / (1024 * 1024))]
    ResponseTooLarge {
        /// The address.
        server: String,
        /// How much is read.
        bytes_max: usize,
    },
    /// The model would not.
    #[error("the model refused to answer")]
    Refused,
    /// The reply has no words.
    #[error("the reply is empty")]
    EmptyReply,
    /// The reply was cut off.
    #[error("the reply was cut off at {max_output_tokens} tokens")]
    ReplyTruncated {
        /// How much it may write.
        max_output_tokens: u32,
    },
    /// The reply says something else than what was asked.
    #[error("the reply is not what was asked for: {0}")]
    InvalidReply(String),
    /// A program could not be run.
    #[error("`{program}`: {reason}")]
    Program {
        /// Its name.
        program: String,
        /// What went wrong.
        reason: String,
        /// In its words.
        provider_message: ProviderMessage,
    },
    /// A cap is reached.
    #[error("{0}")]
    BudgetExhausted(String),
    /// The server failed too often and is left alone.
    #[error("{server} failed {failures} times in a row and is left alone until {}; `memoird model test` tries at once", .until.format("%Y-%m-%d %H:%M UTC"))]
    CircuitOpen {
        /// The address.
        server: String,
        /// How often.
        failures: u32,
        /// Until then.
        until: DateTime<Utc>,
    },
    /// The account was refused before, and nothing has changed since.
    #[error("{server} refused the key or the account before; `memoird model test` tries again")]
    AccountBlocked {
        /// The address.
        server: String,
    },
    /// The configuration does not make a call.
    #[error("{0}")]
    Config(String),
    /// The ledger or a stored reply cannot be written, so no call is made.
    #[error("no call of the model: {0}")]
    Ledger(String),
    /// It was put into a batch, which is answered later.
    #[error("waits for a batch, which the provider answers within a day")]
    AwaitingBatch,
}

/// Whose fault it is, and so what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// The server's: another try may go well.
    Server,
    /// The account's: nothing goes until a person has seen to it.
    Account,
    /// The work's: the same again fails the same way.
    Request,
    /// Nobody's: it waits.
    Blocked,
    /// Nobody's: this one is answered later, and others can go on.
    Pending,
}

impl CallError {
    /// Returns whose fault it is.
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

    /// Returns whether the same request may be sent again at once.
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

    /// Returns whether the provider may have charged for it.
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

    /// Returns how long the server wants to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns what the provider said in its own words, for a terminal only.
    pub fn provider_message(&self) -> Option<&str> {
        match self {
            Self::Unavailable { provider_message: told, .. }
            | Self::Account { provider_message: told, .. }
            | Self::Request { provider_message: told, .. }
            | Self::Program { provider_message: told, .. } => told.0.as_deref(),
            _ => None,
        }
    }

    /// Returns a name for the ledger: one word, the same for ever.
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
    /// Keeps a provider's words, at most a few lines of them.
    pub fn new(words: Option<&str>) -> Self {
        const CHARS_MAX: usize = 600;
        Self(words.map(|it| it.trim().chars().take(CHARS_MAX).collect()))
    }

    /// Returns the words, empty where there are none.
    pub(super) fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for ProviderMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Told(…)" } else { "Told" })
    }
}

impl fmt::Display for Deadline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::FirstByte => "the first byte",
            Self::Idle => "between two pieces",
            Self::Total => "in all",
        })
    }
}

/// Returns a provider's name for an error if it is one: a word of a closed set, not a sentence.
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
