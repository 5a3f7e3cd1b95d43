//! Reads the sessions in a database of `OpenClaw`: `~/.openclaw/agents/AGENT/agent/openclaw-agent.sqlite`.
//!
//! The database belongs to another program, which may be writing it: it is only read. Long events are compressed with
//! zstd. Sessions that the program archived outside of it are not read.

use std::{error::Error, io, path::Path, str};

use chrono::{DateTime, Utc};

use super::connection;

/// The longest event, as the program limits it.
const EVENT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A session with more bytes is not read.
const SESSION_BYTES_MAX: usize = 512 * 1024 * 1024;

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
    source: Box<dyn Error + Send + Sync>,
}

type ReadResult<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Returns the sessions, the last changed one last.
pub(crate) fn sessions(path: &Path) -> Result<Vec<StoredSession>, OpenClawDbError> {
    let read = || -> ReadResult<Vec<(String, i64)>> {
        let conn = connection::open_foreign(path)?;
        let mut query = conn.prepare(
            "SELECT session_id, max(created_at) FROM transcript_events GROUP BY session_id ORDER BY 2, 1",
        )?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?)))?;
        Ok(rows.collect::<rusqlite::Result<_>>()?)
    };
    let rows = read().map_err(|source| error(path, source))?;
    let session = |(id, ms)| StoredSession {
        id,
        changed: DateTime::from_timestamp_millis(ms).unwrap_or_default(),
    };
    Ok(rows.into_iter().map(session).collect())
}

/// Returns the key of a session, which is empty if it is not known, and its events as lines of JSON.
pub(crate) fn events(path: &Path, session: &str) -> Result<(String, String), OpenClawDbError> {
    read_events(path, session).map_err(|source| error(path, source))
}

fn read_events(path: &Path, session: &str) -> ReadResult<(String, String)> {
    let conn = connection::open_foreign(path)?;
    let key = conn.query_row(
        "SELECT coalesce(max(session_key), '') FROM session_windows WHERE session_id = ?1",
        [session],
        |row| row.get(0),
    )?;
    // Older databases have no compressed events.
    let has_zstd = conn.prepare("SELECT event_zstd FROM transcript_events LIMIT 0").is_ok();
    let packed = if has_zstd { "event_zstd" } else { "NULL" };
    let mut query = conn.prepare(&format!(
        "SELECT seq, event_json, {packed} FROM transcript_events WHERE session_id = ?1 ORDER BY seq"
    ))?;
    let mut rows = query.query([session])?;
    let mut text = String::new();
    let mut unpacker = zstd::bulk::Decompressor::new()?;
    // One buffer for all compressed events.
    let mut buffer = Vec::new();
    while let Some(row) = rows.next()? {
        let plain: Option<String> = row.get(1)?;
        let packed: Option<Vec<u8>> = row.get(2)?;
        match (plain, packed) {
            (Some(event), _) => text.push_str(&event),
            (None, Some(event)) => {
                let seq: i64 = row.get(0)?;
                buffer.clear();
                buffer.reserve(EVENT_BYTES_MAX);
                unpacker
                    .decompress_to_buffer(&event, &mut buffer)
                    .map_err(|it| format!("event {seq} cannot be decompressed: {it}"))?;
                let event = str::from_utf8(&buffer)
                    .map_err(|it| format!("event {seq} is not UTF-8: {it}"))?;
                text.push_str(event);
            }
            // It has no content.
            (None, None) => continue,
        }
        text.push('\n');
        if text.len() > SESSION_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge).into());
        }
    }
    Ok((key, text))
}

fn error(path: &Path, source: Box<dyn Error + Send + Sync>) -> OpenClawDbError {
    OpenClawDbError { path: path.display().to_string(), source }
}
