//! Opens transcripts: files, and sessions in a database of `OpenClaw`, which has many.
//!
//! Such a session is named like a file: `openclaw-agent.sqlite#SESSION`; without `#SESSION` it is the one that changed
//! last.

use std::{
    fs::File,
    io::{self, BufRead, Cursor},
    path::{Path, PathBuf},
    time::SystemTime,
};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::transcript::{openclaw, segments};
use crate::store::db::openclaw_sessions;

/// The ending of the databases' names.
const DATABASE_ENDING: &str = ".sqlite";

/// Opens a transcript for reading.
///
/// # Errors
///
/// Returns why it cannot be read; [`io::ErrorKind::NotFound`] for a session that is not in its database.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let Some((database, session)) = split(path) else {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        return segments::open(path);
    };
    File::open(&database)?;
    let session = match session {
        Some(session) => session,
        None => {
            let all = openclaw_sessions::sessions(&database).map_err(io::Error::other)?;
            all.last().map(|it| it.id.clone()).ok_or(io::ErrorKind::NotFound)?
        }
    };
    let (key, events) = openclaw_sessions::events(&database, &session).map_err(io::Error::other)?;
    if events.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("no session `{session}` is in `{}`", database.display()),
        ));
    }
    let mut text = format!("{}\n", json!({ "type": openclaw::KEY_KIND, "key": key }));
    for event in events {
        text.push_str(&event);
        text.push('\n');
    }
    Ok(Box::new(Cursor::new(text.into_bytes())))
}

/// Returns the sessions in a database, each with the time of its last change; none for another file.
pub(crate) fn sessions_in(path: &Path) -> Vec<(PathBuf, DateTime<Utc>)> {
    let Some((database, None)) = split(path) else { return Vec::new() };
    let name = |id: &str| {
        let mut name = database.clone().into_os_string();
        name.push("#");
        name.push(id);
        PathBuf::from(name)
    };
    let sessions = openclaw_sessions::sessions(&database).unwrap_or_default();
    sessions.iter().map(|it| (name(&it.id), it.changed)).collect()
}

/// Returns whether a path names a database of `OpenClaw` or a session in one.
pub(crate) fn is_database(path: &Path) -> bool {
    split(path).is_some()
}

/// Returns the size of a transcript and the time of its last change: what differs if it grew.
///
/// # Errors
///
/// Returns why the file cannot be found, and [`io::ErrorKind::InvalidInput`] if it is none.
pub(crate) fn stamp(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    let path = split(path).map_or_else(|| path.to_owned(), |it| it.0);
    let found = path.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // New commits are in the log beside the database.
    let mut log = path.into_os_string();
    log.push("-wal");
    let log = Path::new(&log).metadata().ok();
    let changed = log.as_ref().and_then(|it| it.modified().ok());
    Ok((found.len() + log.map_or(0, |it| it.len()), changed))
}

/// Splits the name of a session into its database and its id; `None` for another file.
fn split(path: &Path) -> Option<(PathBuf, Option<String>)> {
    let name = path.file_name()?.to_str()?;
    let (file, session) = match name.split_once('#') {
        Some((file, session)) => (file, Some(session.to_owned())),
        None => (name, None),
    };
    file.ends_with(DATABASE_ENDING).then(|| (path.with_file_name(file), session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_behind_its_database() {
        let of = |it: &str| split(Path::new(it));
        assert_eq!(of("/a/x.sqlite"), Some((PathBuf::from("/a/x.sqlite"), None)));
        let session = Some("5-6".to_owned());
        assert_eq!(of("/a#b/x.sqlite#5-6"), Some((PathBuf::from("/a#b/x.sqlite"), session)));
        assert_eq!(of("/a/x.jsonl"), None);
        assert_eq!(of("/a/x#y.jsonl"), None);
    }
}
