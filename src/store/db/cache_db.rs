//! Databases that are made from the files and thrown away without loss: one that is missing, torn, of
//! another version, or made for another view is made anew.
//!
//! They hold no text. What is deleted is overwritten (`secure_delete`), and the journal is a file that is
//! gone after each change.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::lineage;
use crate::memory::hash::ContentHash;

/// How long one waits for who writes.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// What is kept in memory of the database, as SQLite counts it: who reads passes by most pages once, and
/// memory that was used before is there at once.
const READ_CACHE_SIZE: &str = "-1000";

/// How such a database is made.
pub(crate) struct CacheDbSpec {
    /// How the rows are written.
    pub(crate) version: i64,
    /// Of a new file, in bytes.
    pub(crate) page_size: u32,
    /// Its tables; `about` is one of them, with a name and a value.
    pub(crate) tables: &'static [&'static str],
    pub(crate) schema: &'static str,
}

/// Opens a database, and makes it where there is none.
pub(crate) fn open(
    path: &Path,
    made: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Connection> {
    match open_or_create(path, made, view, wait) {
        Err(error) if is_corrupt(&error) => {
            remove(path);
            open_or_create(path, made, view, wait)
        }
        opened => opened,
    }
}

fn open_or_create(
    path: &Path,
    made: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Connection> {
    let mut conn = connect(path, wait)?;
    conn.pragma_update(None, "page_size", made.page_size)?;
    if !matches_spec(&conn, made, view)? {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for table in made.tables {
            tx.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        tx.execute_batch(made.schema)?;
        tx.execute("INSERT INTO about VALUES ('view', ?1)", [view.as_bytes()])?;
        tx.pragma_update(None, "user_version", made.version)?;
        tx.commit()?;
    }
    Ok(conn)
}

/// Opens a database that is there and of this view; makes and empties none.
pub(crate) fn open_existing(
    path: &Path,
    made: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Option<Connection>> {
    if !path.exists() {
        return Ok(None);
    }
    let conn = connect(path, wait)?;
    Ok(matches_spec(&conn, made, view)?.then_some(conn))
}

/// Opens a database as it is.
pub(crate) fn connect(path: &Path, wait: Duration) -> rusqlite::Result<Connection> {
    let real = lineage::create_private_file(path)
        .map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let conn = Connection::open_with_flags(real, flags)?;
    conn.busy_timeout(wait)?;
    for (name, value) in [
        ("journal_mode", "DELETE"),
        ("synchronous", "NORMAL"),
        ("secure_delete", "ON"),
        ("trusted_schema", "OFF"),
        ("cell_size_check", "ON"),
        ("mmap_size", "0"),
        ("cache_size", READ_CACHE_SIZE),
    ] {
        conn.pragma_update(None, name, value)?;
    }
    Ok(conn)
}

fn matches_spec(
    conn: &Connection,
    made: &CacheDbSpec,
    view: ContentHash,
) -> rusqlite::Result<bool> {
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != made.version {
        return Ok(false);
    }
    let found = conn.query_row("SELECT value FROM about WHERE name = 'view'", [], |row| {
        row.get::<_, Vec<u8>>(0)
    });
    match found {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(false),
        found => Ok(found?[..] == view.as_bytes()[..]),
    }
}

/// Reads a whole database and says what is wrong with it; `None` for one that is sound or not there.
pub(crate) fn find_damage(path: &Path) -> Option<String> {
    if !path.exists() {
        return None;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let said = Connection::open_with_flags(resolve_folder(path), flags).and_then(|conn| {
        conn.busy_timeout(BUSY_TIMEOUT)?;
        conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    });
    match said {
        Ok(said) => (said != "ok").then_some(said),
        Err(error) => Some(error.to_string()),
    }
}

/// Whether a database cannot be read as what it should be.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error {
        rusqlite::Error::SqliteFailure(it, _) => {
            // "no such table" is what a foreign or half-made one says.
            matches!(it.code, DatabaseCorrupt | NotADatabase) || it.extended_code == 1
        }
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            true
        }
        _ => false,
    }
}

/// SQLite follows no link, so the way to the folder is made free of them.
fn resolve_folder(path: &Path) -> PathBuf {
    let dir = path.parent().and_then(|it| it.canonicalize().ok());
    let joined = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
    joined.unwrap_or_else(|| path.to_owned())
}

/// Removes a database.
pub(crate) fn remove(path: &Path) {
    // The database first: a half-written one without its journal would pass for sound.
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // What is not there need not go.
        drop(std::fs::remove_file(PathBuf::from(name)));
    }
}
