//! Opens SQLite connections: the only place that chooses flags and pragmas.
//!
//! A [`Profile`] says what a connection is for. No profile maps the file into memory, because a read error
//! of the disk would then kill the process with a signal, and none trusts functions or views in the schema
//! of a file that somebody may have changed.

use std::{
    fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Error, ErrorCode, OpenFlags, config::DbConfig, ffi};

/// How long a statement waits for another process by default.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before a statement that SQLite refused without waiting is tried again.
const BUSY_RETRY: Duration = Duration::from_millis(5);

/// The flags and pragmas of a connection.
pub(super) struct Profile {
    flags: OpenFlags,
    pragmas: &'static [(&'static str, &'static str)],
}

/// Each connection is used by one thread at a time.
const READ_WRITE: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_WRITE.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
const READ_ONLY: OpenFlags =
    OpenFlags::SQLITE_OPEN_READ_ONLY.union(OpenFlags::SQLITE_OPEN_NO_MUTEX);
const NO_LINKS: OpenFlags = OpenFlags::SQLITE_OPEN_NOFOLLOW;

const RECORD_PRAGMAS: &[(&str, &str)] = &[
    ("journal_mode", "WAL"),
    // NORMAL keeps the database sound but loses commits when the power fails.
    ("synchronous", "FULL"),
    ("foreign_keys", "ON"),
    // Deleted bytes are overwritten, so that forgotten text does not linger.
    ("secure_delete", "ON"),
    ("trusted_schema", "OFF"),
    ("cell_size_check", "ON"),
    ("mmap_size", "0"),
];

/// Writes records that cannot be made again: every commit is synced.
pub(super) const RECORD: Profile =
    Profile { flags: READ_WRITE.union(NO_LINKS), pragmas: RECORD_PRAGMAS };

/// Like [`RECORD`], for a path that may contain links: a person's own folder for state.
pub(super) const RECORD_BEHIND_LINKS: Profile =
    Profile { flags: READ_WRITE, pragmas: RECORD_PRAGMAS };

/// Writes a cache that is made again from the files when it is lost.
pub(super) const CACHE: Profile = Profile {
    flags: READ_WRITE.union(NO_LINKS),
    pragmas: &[
        // The journal is deleted after each change.
        ("journal_mode", "DELETE"),
        ("synchronous", "NORMAL"),
        ("secure_delete", "ON"),
        ("trusted_schema", "OFF"),
        ("cell_size_check", "ON"),
        ("mmap_size", "0"),
        // In KiB. A reader passes most pages once, so a larger cache would not pay.
        ("cache_size", "-1000"),
    ],
};

const READER_PRAGMAS: &[(&str, &str)] = &[
    ("query_only", "ON"),
    ("trusted_schema", "OFF"),
    ("cell_size_check", "ON"),
    ("mmap_size", "0"),
];

/// Reads a database that may be damaged: takes from it whatever SQLite still finds.
pub(super) const DAMAGED: Profile = Profile {
    flags: READ_ONLY.union(NO_LINKS),
    pragmas: &[("trusted_schema", "OFF"), ("mmap_size", "0")],
};

/// Opens an existing file. Statements wait up to `wait` for other processes.
pub(super) fn open(path: &Path, profile: &Profile, wait: Duration) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(path, profile.flags)?;
    conn.busy_timeout(wait)?;
    let until = Instant::now() + wait;
    for (name, value) in profile.pragmas {
        // Of two that change the mode of a new file at once, SQLite refuses one without waiting: each would wait
        // for the other.
        while let Err(error) = conn.pragma_update(None, name, value) {
            let is_busy = error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy);
            if !is_busy || Instant::now() >= until {
                return Err(error);
            }
            thread::sleep(BUSY_RETRY);
        }
    }
    Ok(conn)
}

/// Opens an existing file for queries, also in a folder that cannot be written.
pub(super) fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    // These flags also open a file that cannot be written.
    match read(path, READ_WRITE | NO_LINKS) {
        Err(refused) => open_immutable(path, refused),
        opened => opened,
    }
}

/// Opens a database of another program for queries. Neither reading nor closing it writes to the database or moves its
/// log into it. Links are followed, because the path is the user's own choice.
pub(super) fn open_foreign(path: &Path) -> rusqlite::Result<Connection> {
    let path = path.canonicalize().map_err(|error| {
        let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        Error::SqliteFailure(code, Some(error.to_string()))
    })?;
    let conn = match read(&path, READ_ONLY | NO_LINKS) {
        Err(refused) => open_immutable(&path, refused)?,
        Ok(conn) => conn,
    };
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(conn)
}

fn read(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let profile = Profile { flags, pragmas: READER_PRAGMAS };
    let conn = open(path, &profile, BUSY_TIMEOUT)?;
    // SQLite touches the file only with the first query.
    conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
    Ok(conn)
}

/// Opens a file that was refused because the files beside it cannot be written.
fn open_immutable(path: &Path, refused: Error) -> rusqlite::Result<Connection> {
    let code = refused.sqlite_error_code();
    if !matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen)) {
        return Err(refused);
    }
    // The last commits are in the log, and would not be seen; a journal has what an interrupted one replaced.
    let has = |suffix| fs::metadata(with_suffix(path, suffix)).is_ok_and(|it| it.len() > 0);
    if has("-wal") || has("-journal") {
        return Err(refused);
    }
    // A file that nobody can change needs no shared memory beside it, which could not be created.
    let text = path.to_str().ok_or(refused)?;
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let uri = PathBuf::from(format!("file:{text}?immutable=1"));
    read(&uri, READ_ONLY | NO_LINKS | OpenFlags::SQLITE_OPEN_URI)
}

/// Returns `path` with a suffix after its file name, such as `-wal`.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
