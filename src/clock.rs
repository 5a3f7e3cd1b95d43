//! The one reading of the time.
//!
//! Every decision takes `now` as an argument; only `main` and the daemon's loop ask here.
//! `MEMOIRD_NOW` freezes the clock: an RFC 3339 time, or `@FILE` to read it from a file each time,
//! so that a test can move it under a running daemon.

use chrono::{DateTime, Utc};

/// What begins a `MEMOIRD_NOW` that names a file.
const IN_FILE: char = '@';

/// A time in `MEMOIRD_NOW` that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "MEMOIRD_NOW: `{value}` is not a time (expected one like 2026-05-04T09:00:00+02:00, or @FILE that holds one)"
)]
pub struct ClockError {
    value: String,
}

/// Reads the time: `MEMOIRD_NOW` if set, else the system's.
///
/// # Errors
///
/// Returns [`ClockError`] when `MEMOIRD_NOW` is set to something that is no time.
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

/// Returns whether the time stands in a file, so that it may move at any moment.
pub fn reads_from_file() -> bool {
    std::env::var("MEMOIRD_NOW").is_ok_and(|it| it.starts_with(IN_FILE))
}

/// Returns the time by which files are stamped, in nanoseconds since 1970 UTC: that of the system, whatever
/// `MEMOIRD_NOW` says. `None` for a clock that is out of all bounds.
pub fn file_clock_nanos() -> Option<i64> {
    #[expect(clippy::disallowed_methods, reason = "this is the one reading of the time")]
    Utc::now().timestamp_nanos_opt()
}
