//! Opens transcripts: files, and sessions in a database of `OpenClaw` or opencode, which has many.
//!
//! Such a session is named like a file: `openclaw-agent.sqlite#SESSION`, `opencode.db#SESSION`; without `#SESSION` it
//! is the one that changed last.

use std::{
    fs::File,
    io::{self, BufRead, Cursor, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use chrono::{DateTime, Utc};
use serde_json::json;

use super::transcript::{openclaw, segments};
use crate::store::db::{openclaw_sessions, opencode_sessions};

/// The program whose sessions are in a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DatabaseOwner {
    OpenClaw,
    Opencode,
}

/// A database, and a session in it if one is named.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DatabasePath {
    owner: DatabaseOwner,
    file: PathBuf,
    session: Option<String>,
}

/// Opens a transcript for reading.
///
/// # Errors
///
/// Returns why it cannot be read; [`io::ErrorKind::NotFound`] for a session that is not in its database.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let Some(DatabasePath { owner, file: database, session }) = split(path) else {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        return segments::open(path);
    };
    File::open(&database)?;
    let session = match session {
        Some(session) => session,
        None => list(owner, &database)?.pop().ok_or(io::ErrorKind::NotFound)?.0,
    };
    let not_found = || {
        let what = format!("no session `{session}` is in `{}`", database.display());
        io::Error::new(io::ErrorKind::NotFound, what)
    };
    if owner == DatabaseOwner::Opencode {
        let text = opencode_sessions::read_session(&database, &session)?.ok_or_else(not_found)?;
        return Ok(Box::new(Cursor::new(text)));
    }
    let (key, events) = openclaw_sessions::events(&database, &session).map_err(io::Error::other)?;
    if events.is_empty() {
        return Err(not_found());
    }
    let head = format!("{}\n", json!({ "type": openclaw::KEY_KIND, "key": key }));
    Ok(Box::new(Cursor::new(head).chain(Cursor::new(events))))
}

/// Returns the sessions in a database, each with the time of its last change, the oldest change first; none for another
/// file.
///
/// # Errors
///
/// If the database cannot be read, or has other tables.
pub(crate) fn sessions_in(path: &Path) -> io::Result<Vec<(PathBuf, DateTime<Utc>)>> {
    let Some(DatabasePath { owner, file, session: None }) = split(path) else {
        return Ok(Vec::new());
    };
    let sessions = list(owner, &file)?;
    Ok(sessions.into_iter().map(|it| (path_in_database(&file, &it.0), it.1)).collect())
}

/// Returns the name of a session in a database.
pub(crate) fn path_in_database(database: &Path, session: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("#");
    name.push(session);
    PathBuf::from(name)
}

/// Returns the ids of the sessions in a database, the oldest change first.
fn list(owner: DatabaseOwner, database: &Path) -> io::Result<Vec<(String, DateTime<Utc>)>> {
    match owner {
        DatabaseOwner::Opencode => opencode_sessions::list_sessions(database),
        DatabaseOwner::OpenClaw => {
            let sessions = openclaw_sessions::sessions(database).map_err(io::Error::other)?;
            Ok(sessions.into_iter().map(|it| (it.id, it.changed)).collect())
        }
    }
}

/// Returns whether a path names a database with sessions, or a session in one.
pub(crate) fn is_database(path: &Path) -> bool {
    split(path).is_some()
}

/// Returns whether a path names a session in a database.
pub(crate) fn is_session_in_database(path: &Path) -> bool {
    split(path).is_some_and(|it| it.session.is_some())
}

/// Returns whether the file of a transcript exists, or the database of a session.
pub(crate) fn exists(path: &Path) -> bool {
    split(path).map_or_else(|| path.exists(), |it| it.file.exists())
}

/// Returns the absolute path of a transcript without links; the session in a database stays named.
///
/// # Errors
///
/// If the file or the database cannot be found.
pub(crate) fn canonicalize(path: &Path) -> io::Result<PathBuf> {
    let Some(DatabasePath { file, session, .. }) = split(path) else { return path.canonicalize() };
    let file = file.canonicalize()?;
    Ok(session.map_or_else(|| file.clone(), |it| path_in_database(&file, &it)))
}

/// Returns the size of a transcript and the time of its last change: what differs if it grew.
///
/// # Errors
///
/// Returns why the file cannot be found, and [`io::ErrorKind::InvalidInput`] if it is none.
pub(crate) fn stamp(path: &Path) -> io::Result<(u64, Option<SystemTime>)> {
    let path = split(path).map_or_else(|| path.to_owned(), |it| it.file);
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
fn split(path: &Path) -> Option<DatabasePath> {
    let name = path.file_name()?.to_str()?;
    let (file, session) = match name.split_once('#') {
        Some((file, session)) => (file, Some(session.to_owned())),
        None => (name, None),
    };
    let owner = match Path::new(file).extension()?.to_str()? {
        "sqlite" => DatabaseOwner::OpenClaw,
        "db" => DatabaseOwner::Opencode,
        _ => return None,
    };
    Some(DatabasePath { owner, file: path.with_file_name(file), session })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_behind_its_database() {
        let of = |it: &str| split(Path::new(it));
        let database = |owner, file: &str, session: Option<&str>| {
            Some(DatabasePath { owner, file: file.into(), session: session.map(str::to_owned) })
        };
        let (openclaw, opencode) = (DatabaseOwner::OpenClaw, DatabaseOwner::Opencode);
        assert_eq!(of("/a/x.sqlite"), database(openclaw, "/a/x.sqlite", None));
        let name = path_in_database(Path::new("/a#b/x.sqlite"), "5-6");
        assert_eq!(split(&name), database(openclaw, "/a#b/x.sqlite", Some("5-6")));
        assert_eq!(of("/a/opencode.db#ses_1"), database(opencode, "/a/opencode.db", Some("ses_1")));
        assert_eq!(of("/a/x.jsonl"), None);
        assert_eq!(of("/a/x#y.jsonl"), None);
    }
}
