//! Why a call of the claims database failed.

use std::fmt;

/// A call of the claims database that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClaimsError {
    pub(crate) kind: ClaimsErrorKind,
    /// The server and the database, without user and password.
    pub(crate) server: String,
    pub(crate) reason: String,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimsErrorKind {
    /// The address cannot be parsed.
    Address,
    /// No answer, or the connection ended.
    Unreachable,
    /// The connection could not be encrypted as the address asks.
    NoTls,
    /// User, password, database or rights are wrong.
    Denied,
    /// The tables do not exist.
    NoTables,
    /// A newer memoird created the tables.
    Newer,
    /// An older memoird created the tables.
    Older,
    /// Anything else.
    Failed,
}

impl ClaimsError {
    pub(super) fn new(kind: ClaimsErrorKind, server: &str, reason: impl fmt::Display) -> Self {
        Self { kind, server: server.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for ClaimsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, server, reason } = self;
        match kind {
            ClaimsErrorKind::Address => {
                write!(f, "the address of the claims database cannot be used: {reason}")
            }
            ClaimsErrorKind::Unreachable => {
                write!(f, "cannot reach the claims database at `{server}`: {reason}")
            }
            ClaimsErrorKind::NoTls => {
                write!(f, "no TLS with the claims database at `{server}`: {reason}")
            }
            ClaimsErrorKind::Denied => {
                write!(f, "the claims database at `{server}` refuses this user: {reason}")
            }
            ClaimsErrorKind::NoTables => {
                write!(f, "the database at `{server}` has no claims tables")
            }
            ClaimsErrorKind::Newer => {
                write!(
                    f,
                    "the claims database at `{server}` was created by a newer memoird: {reason}"
                )
            }
            ClaimsErrorKind::Older => {
                write!(
                    f,
                    "the claims database at `{server}` was created by an older memoird: {reason}"
                )
            }
            ClaimsErrorKind::Failed => {
                write!(f, "the claims database at `{server}` failed: {reason}")
            }
        }
    }
}

impl std::error::Error for ClaimsError {}
