//! Databases that are caches of the files: one that is missing, damaged, of another version, or made for
//! another view is replaced by an empty one.
//!
//! They hold no text. Deleted bytes are overwritten.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, TransactionBehavior};

use super::{
    connection::{self, with_suffix},
    lineage,
};
use crate::memory::hash::ContentHash;

/// How long a statement waits for another process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(2);

/// The tables of a cache.
pub(crate) struct CacheDbSpec {
    /// The version of tables and rows.
    pub(crate) version: i64,
    /// The page size of a new file, in bytes.
    pub(crate) page_size: u32,
    /// The names of its tables. One is `about`, with the columns `name` and `value`.
    pub(crate) tables: &'static [&'static str],
    pub(crate) schema: &'static str,
}

/// Opens a cache, and creates it if necessary.
pub(crate) fn open(
    path: &Path,
    spec: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Connection> {
    match open_or_create(path, spec, view, wait) {
        Err(error) if is_corrupt(&error) => {
            remove(path);
            open_or_create(path, spec, view, wait)
        }
        opened => opened,
    }
}

fn open_or_create(
    path: &Path,
    spec: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Connection> {
    let mut conn = connect(path, wait)?;
    conn.pragma_update(None, "page_size", spec.page_size)?;
    if !matches_spec(&conn, spec, view)? {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for table in spec.tables {
            tx.execute_batch(&format!("DROP TABLE IF EXISTS {table}"))?;
        }
        tx.execute_batch(spec.schema)?;
        tx.execute("INSERT INTO about VALUES ('view', ?1)", [view.as_bytes()])?;
        tx.pragma_update(None, "user_version", spec.version)?;
        tx.commit()?;
    }
    Ok(conn)
}

/// Opens a cache if it exists and was made for this view; creates and empties none.
pub(crate) fn open_existing(
    path: &Path,
    spec: &CacheDbSpec,
    view: ContentHash,
    wait: Duration,
) -> rusqlite::Result<Option<Connection>> {
    if !path.exists() {
        return Ok(None);
    }
    let conn = connect(path, wait)?;
    Ok(matches_spec(&conn, spec, view)?.then_some(conn))
}

/// Opens a cache as it is.
pub(crate) fn connect(path: &Path, wait: Duration) -> rusqlite::Result<Connection> {
    let real = lineage::create_private_file(path)
        .map_err(|_| rusqlite::Error::InvalidPath(path.to_owned()))?;
    connection::open(&real, &connection::CACHE, wait)
}

fn matches_spec(
    conn: &Connection,
    spec: &CacheDbSpec,
    view: ContentHash,
) -> rusqlite::Result<bool> {
    let version: i64 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != spec.version {
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

/// Reads a whole cache and describes its damage; `None` if it is sound or does not exist.
pub(crate) fn find_damage(path: &Path) -> Option<String> {
    if !path.exists() {
        return None;
    }
    let real = resolve_folder(path);
    let finding = connection::open(&real, &connection::DAMAGED, BUSY_TIMEOUT).and_then(|conn| {
        conn.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0))
    });
    match finding {
        Ok(finding) => (finding != "ok").then_some(finding),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns whether an error means that the file is no sound cache.
pub(crate) fn is_corrupt(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error {
        rusqlite::Error::SqliteFailure(it, _) => {
            // 1 is "no such table": a foreign or unfinished database.
            matches!(it.code, DatabaseCorrupt | NotADatabase) || it.extended_code == 1
        }
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            true
        }
        _ => false,
    }
}

/// Resolves links on the way to the folder, because SQLite is set to follow none.
fn resolve_folder(path: &Path) -> PathBuf {
    let dir = path.parent().and_then(|it| it.canonicalize().ok());
    let joined = dir.zip(path.file_name()).map(|(dir, name)| dir.join(name));
    joined.unwrap_or_else(|| path.to_owned())
}

/// Removes a cache.
pub(crate) fn remove(path: &Path) {
    // The database goes first: half-written and without its journal it would look sound.
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Most of these files do not exist.
        drop(std::fs::remove_file(with_suffix(path, suffix)));
    }
}
