//! The sessions of opencode, which are rows of its own database. No row is changed.
//!
//! A session has messages, and a message has parts, each with a JSON object. A session is read as lines: its own
//! row first, then each message with its parts, in the form in which `opencode export` writes them.

use std::{io, path::Path};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, Error, params};

use super::connection::open_foreign;

/// A session with more bytes is not read.
const SESSION_BYTES_MAX: usize = 512 * 1024 * 1024;

const SESSIONS: &str = "SELECT id, time_updated FROM session ORDER BY time_updated, id";
const SESSION: &str = "
    SELECT json_object('info', json_object(
        'id', id, 'parentID', parent_id, 'directory', directory, 'version', version, 'revert', json(revert)))
    FROM session WHERE id = ?1";
/// Attached files are left out, which may be large. A subquery gives text, so that `json` has to say what it is.
const MESSAGES: &str = "
    SELECT json_object('info', json_insert(m.data, '$.id', m.id), 'parts', json((
        SELECT json_group_array(json_insert(json_remove(p.data, '$.url', '$.state.attachments'), '$.id', p.id))
        FROM (SELECT id, data FROM part WHERE message_id = m.id ORDER BY id) AS p)))
    FROM message AS m WHERE m.session_id = ?1 ORDER BY m.time_created, m.id";

/// Returns the ids of all sessions, each with the time of its last change, the oldest change first.
///
/// # Errors
///
/// If the database cannot be opened, or has other tables.
pub(crate) fn list_sessions(database: &Path) -> io::Result<Vec<(String, DateTime<Utc>)>> {
    let conn = open(database)?;
    let mut statement = conn.prepare(SESSIONS).map_err(io::Error::other)?;
    let time = |ms| DateTime::from_timestamp_millis(ms).unwrap_or_default();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, time(row.get(1)?))));
    rows.map_err(io::Error::other)?.collect::<Result<_, _>>().map_err(io::Error::other)
}

/// Returns a session as lines of JSON; `None` if the database does not have it.
///
/// # Errors
///
/// If the database cannot be read, or the session is too large.
pub(crate) fn read_session(database: &Path, id: &str) -> io::Result<Option<String>> {
    let conn = open(database)?;
    let mut text = match conn.query_row(SESSION, params![id], |row| row.get::<_, String>(0)) {
        Err(Error::QueryReturnedNoRows) => return Ok(None),
        head => head.map_err(io::Error::other)?,
    };
    text.push('\n');
    let mut statement = conn.prepare(MESSAGES).map_err(io::Error::other)?;
    let lines = statement.query_map(params![id], |row| row.get::<_, String>(0));
    for line in lines.map_err(io::Error::other)? {
        text.push_str(&line.map_err(io::Error::other)?);
        text.push('\n');
        if text.len() > SESSION_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
    Ok(Some(text))
}

fn open(database: &Path) -> io::Result<Connection> {
    open_foreign(database).map_err(io::Error::other)
}
