//! Reads the time; the only module that does.
//!
//! Every decision takes `now` as an argument; only commands and the daemon's loop call this module.
//! `MEMOIRD_NOW` fixes the time: an RFC 3339 time, or `@FILE` to read it from a file at each call, so that a
//! test can move the clock of a running daemon.

use chrono::{DateTime, Utc};

/// The prefix of a `MEMOIRD_NOW` that names a file.
const IN_FILE: char = '@';

/// An invalid time in `MEMOIRD_NOW`.
#[derive(Debug, thiserror::Error)]
#[error(
    "MEMOIRD_NOW: `{value}` is not a time (expected one like 2026-05-04T09:00:00+02:00, or @FILE that contains one)"
)]
pub struct ClockError {
    value: String,
}

/// Returns the time of `MEMOIRD_NOW` if it is set, else the system time.
///
/// # Errors
///
/// Returns [`ClockError`] when `MEMOIRD_NOW` is set to something that is not a time.
pub fn now() -> Result<DateTime<Utc>, ClockError> {
    let Some(value) = std::env::var("MEMOIRD_NOW").ok().filter(|it| !it.is_empty()) else {
        #[expect(clippy::disallowed_methods, reason = "this is the one reading of the time")]
        return Ok(Utc::now());
    };
    let text = match value.strip_prefix(IN_FILE) {
        Some(path) => {
            std::fs::read_to_string(path).map_err(|_| ClockError { value: value.clone() })?
        }
        None => value.clone(),
    };
    DateTime::parse_from_rfc3339(text.trim())
        .map(|it| it.with_timezone(&Utc))
        .map_err(|_| ClockError { value })
}

/// Returns whether the time is read from a file, so that it may change at any moment.
pub fn reads_from_file() -> bool {
    std::env::var("MEMOIRD_NOW").is_ok_and(|it| it.starts_with(IN_FILE))
}

/// Returns the system time in nanoseconds since 1970 UTC, ignoring `MEMOIRD_NOW`, for comparison with file
/// timestamps. `None` if the clock is out of range.
pub fn file_clock_nanos() -> Option<i64> {
    #[expect(clippy::disallowed_methods, reason = "this is the one reading of the time")]
    Utc::now().timestamp_nanos_opt()
}
