//! Opens transcripts: files, and sessions in the database of opencode.
//!
//! A session in a database has a path below it: `opencode.db/ses_…`.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Cursor},
    path::{Path, PathBuf},
};

use crate::store::db::opencode;

/// How many bytes are read at once.
const BUFFER_BYTES: usize = 1 << 16;

/// Opens a transcript.
///
/// # Errors
///
/// If it cannot be read, or is a folder; [`io::ErrorKind::NotFound`] if it does not exist.
pub fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    if let Some((database, session)) = database_of(path) {
        let text = opencode::read_session(database, session)?;
        return Ok(Box::new(Cursor::new(text)));
    }
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, file)))
}

/// Returns the database and the id of a session in a database; `None` for a file.
pub fn database_of(path: &Path) -> Option<(&Path, &str)> {
    let database = path.parent().filter(|it| is_database(it))?;
    Some((database, path.file_name()?.to_str()?))
}

/// Returns whether a path names a database with sessions.
pub fn is_database(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == "db") && path.is_file()
}

/// Returns the path of a session in a database.
pub fn path_in_database(database: &Path, session: &str) -> PathBuf {
    database.join(session)
}
