//! Reads the sessions in a database of `OpenClaw`: `~/.openclaw/agents/AGENT/agent/openclaw-agent.sqlite`.
//!
//! The database belongs to another program, which may be writing it: it is only read. Long events are compressed with
//! zstd. Sessions that the program archived outside of it are not read.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::connection;

/// The longest event, as the program limits it.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A session in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredSession {
    pub(crate) id: String,
    /// When it last changed.
    pub(crate) changed: DateTime<Utc>,
}

/// A database that cannot be read, or is none of `OpenClaw`.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the sessions of OpenClaw in `{path}`: {source}")]
pub(crate) struct OpenClawDbError {
    path: String,
    #[source]
    source: rusqlite::Error,
}

/// Returns the sessions, the last changed one last.
pub(crate) fn sessions(path: &Path) -> Result<Vec<StoredSession>, OpenClawDbError> {
    let read = || {
        let conn = connection::open_reader(path)?;
        let mut query = conn.prepare(
            "SELECT session_id, max(created_at) FROM transcript_events GROUP BY session_id ORDER BY 2, 1",
        )?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        rows.collect::<rusqlite::Result<Vec<(String, i64)>>>()
    };
    let rows = read().map_err(|source| error(path, source))?;
    let session = |(id, ms)| StoredSession {
        id,
        changed: DateTime::from_timestamp_millis(ms).unwrap_or_default(),
    };
    Ok(rows.into_iter().map(session).collect())
}

/// Returns the key of a session, and its events as lines of JSON.
pub(crate) fn events(path: &Path, session: &str) -> Result<(String, Vec<String>), OpenClawDbError> {
    let read = || {
        let conn = connection::open_reader(path)?;
        let key = conn.query_row(
            "SELECT coalesce(max(session_key), '') FROM session_windows WHERE session_id = ?1",
            [session],
            |row| row.get(0),
        )?;
        // Older databases have no compressed events.
        let has_zstd = conn.prepare("SELECT event_zstd FROM transcript_events LIMIT 0").is_ok();
        let packed = if has_zstd { "event_zstd" } else { "NULL" };
        let mut query = conn.prepare(&format!(
            "SELECT event_json, {packed} FROM transcript_events WHERE session_id = ?1 ORDER BY seq"
        ))?;
        let rows = query.query_map([session], |row| {
            let plain: Option<String> = row.get(0)?;
            let packed: Option<Vec<u8>> = row.get(1)?;
            Ok(plain.or_else(|| unpacked(&packed?)))
        })?;
        Ok((key, rows.filter_map(Result::transpose).collect::<rusqlite::Result<_>>()?))
    };
    read().map_err(|source| error(path, source))
}

fn unpacked(bytes: &[u8]) -> Option<String> {
    let bytes = zstd::bulk::decompress(bytes, EVENT_BYTES_MAX).ok()?;
    String::from_utf8(bytes).ok()
}

fn error(path: &Path, source: rusqlite::Error) -> OpenClawDbError {
    OpenClawDbError { path: path.display().to_string(), source }
}
