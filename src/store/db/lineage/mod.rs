//! The lineage of one root: what was made from what, by which job, in which run.
//!
//! A SQLite database in the terms of W3C PROV. It is an index: the files are the truth, and
//! everything but receipts and history can be made anew from them ([`Lineage::replace_all`]). This
//! is the only module that speaks SQL.
//!
//! - `schema`: the steps that bring a database up to date.
//! - [`jobs`]: runs, jobs with their receipts, and the journal of intents.
//! - [`record`]: what a job commits, in one transaction.
//! - [`history`]: what stood in each file, and when.
//! - [`salvage`]: what a damaged database still holds.
//! - `place`: where it stands, with no link on the way.
//! - `seal`: a short hash in every row, by which damage is told.
//! - `forget`: names and reasons that hold forgotten words.
//! - [`query`]: what trace, coverage, plan, and status ask.
//!
//! # Invariants
//!
//! - The text of a log or of an item stands in the history alone: lines are read from the files.
//! - No answer depends on a row's number, so a database made anew answers as the old one did.
//! - A change is one transaction, synced before the call returns. At most one job of a fingerprint
//!   is live.
//! - A locked database is busy, never damaged; nothing here deletes `-wal` or `-shm`.
//!
//! Several processes may have the same database open. Who writes holds the root's write lock.

mod column;
mod forget;
pub mod history;
pub mod jobs;
mod location;
pub mod query;
pub mod record;
pub mod review;
mod row_checksum;
pub mod salvage;
mod schema;
#[cfg(test)]
mod tests;

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{DateTime, Utc};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, ffi};

use self::{
    jobs::JobId,
    location::{DatabaseLocation, FILES, with_suffix},
    row_checksum::ChangedRows,
};
use crate::store::{
    failpoint,
    fs::{filesystem, up_to_date_note},
};

/// The open database of one root.
#[derive(Debug)]
pub struct Lineage {
    conn: Connection,
    path: PathBuf,
    changed_rows: ChangedRows,
    /// Device and inode of the file when it was opened.
    identity: Option<(u64, u64)>,
}

/// Why the lineage could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LineageError {
    /// Another process held the database for longer than we wait.
    #[error("`{path}` is locked by another process; try again when it has finished")]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The bytes are not those of a sound database.
    #[error(
        "`{path}` is damaged ({detail}); `memoird rebuild` puts it aside and makes it anew from the files"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A newer memoird made it.
    #[error(
        "`{path}` has schema {found}, this memoird knows {known}; use the newer memoird that wrote it"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema that we know.
        known: usize,
    },
    /// It is a database of some other program.
    #[error("`{path}` is a database that memoird did not make; move it away")]
    ForeignDatabase {
        /// The database.
        path: PathBuf,
    },
    /// The folder lies on a file system of the network, or on one that we do not know.
    #[error(
        "`{path}` would lie on {kind}, where a database is damaged when two hosts use it; the memory folder must lie on a local disk"
    )]
    NetworkFileSystem {
        /// The database.
        path: PathBuf,
        /// What the file system calls itself.
        kind: String,
    },
    /// The folder or the file is a link, which may lead anywhere.
    #[error(
        "`{path}` is a symbolic link, which is not followed: the database stands in the memory folder itself"
    )]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// Another process put it aside after we had opened it.
    #[error("`{path}` was made anew by another process meanwhile; do the same again")]
    Replaced {
        /// The database.
        path: PathBuf,
    },
    /// The file system cannot hold a database with a write-ahead log.
    #[error(
        "`{path}` cannot keep a write-ahead log (journal mode stayed `{mode}`); a root must lie on a local disk"
    )]
    NoWal {
        /// The database.
        path: PathBuf,
        /// The mode that it is in.
        mode: String,
    },
    /// We are linked with an SQLite that can damage a database.
    #[error(
        "SQLite {found} is linked, which can damage a database that two processes write; 3.51.3 or newer is needed"
    )]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// The file could not be made or read.
    #[error("`{path}`: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A job with the same fingerprint is under way.
    #[error("a job with the fingerprint {fingerprint} is already under way")]
    AlreadyLive {
        /// The first 16 hex digits of the fingerprint.
        fingerprint: String,
    },
    /// The job has ended before, or never was.
    #[error("job {job} is not under way")]
    NotLive {
        /// The job.
        job: JobId,
    },
    /// The intent was closed before, or never was.
    #[error("intent {intent} is not open")]
    NotOpen {
        /// The number of the intent.
        intent: i64,
    },
    /// A path that the commit names has no record.
    #[error("`{name}` has no record in the lineage; commit it first")]
    NoRecord {
        /// The path.
        name: String,
    },
    /// Bytes could not be packed for the history.
    #[error("cannot pack a version for the history: {source}")]
    Compress {
        /// What zstd said.
        source: io::Error,
    },
    /// Anything else that SQLite says: disk full, read-only, input or output failed.
    #[error("`{path}`: {source}")]
    Sql {
        /// The database.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
}

/// What can go wrong inside a transaction, before the path is known.
enum TransactionError {
    Sql(rusqlite::Error),
    Other(LineageError),
}

/// Makes an empty file for another database of the same folder, if there is none, closed to others, and
/// returns its path without a link.
///
/// # Errors
///
/// Like [`Lineage::open`], where the place is not fit for a database.
pub fn create_private_file(path: &Path) -> Result<PathBuf, LineageError> {
    let place = DatabaseLocation::create(path)?;
    place.create_file()?;
    refuse_network_file_system(path)?;
    Ok(place.real().to_owned())
}

/// How long a statement waits for another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How a database is opened: one connection, one thread, and no link is followed.
const OPEN_READ_WRITE: OpenFlags = OpenFlags::SQLITE_OPEN_READ_WRITE
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_NOFOLLOW);
const OPEN_READ_ONLY: OpenFlags = OpenFlags::SQLITE_OPEN_READ_ONLY
    .union(OpenFlags::SQLITE_OPEN_NO_MUTEX)
    .union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// How many statements stay compiled: a pass uses more than the sixteen that are usual, in turns.
const STATEMENT_CACHE_SIZE: usize = 128;

/// The first SQLite without the fault that lets a write-ahead log be reset under a reader.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

impl Lineage {
    /// Opens the database at `path`, and makes it and its folder if they are not there.
    ///
    /// File and folder are made for the owner's eyes only; an older schema is brought up to date.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Damaged`] for bytes that are no database, `LineageError::NewerSchema` for
    /// one that a newer memoird wrote, and [`LineageError::Busy`] when another process holds it.
    pub fn open(path: &Path) -> Result<Self, LineageError> {
        Self::open_with(path, schema::MIGRATIONS, BUSY_TIMEOUT)
    }

    fn open_with(path: &Path, migrations: &[&str], wait: Duration) -> Result<Self, LineageError> {
        if let (found, false) = Self::sqlite_version() {
            return Err(LineageError::OldSqlite { found });
        }
        let place = DatabaseLocation::create(path)?;
        place.create_file()?;
        refuse_network_file_system(path)?;
        let sql = |source| LineageError::from_sql(path, source);
        // The file exists, so a wrong path is an error and not a new database.
        let mut conn = Connection::open_with_flags(place.real(), OPEN_READ_WRITE).map_err(sql)?;
        conn.busy_timeout(wait).map_err(sql)?;
        let mode: String = conn
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
            .map_err(sql)?;
        if mode != "wal" {
            return Err(LineageError::NoWal { path: path.to_owned(), mode });
        }
        for (name, value) in [
            // NORMAL keeps the database sound but loses commits when the power fails.
            ("synchronous", "FULL"),
            ("foreign_keys", "ON"),
            // What is deleted is overwritten, so that what was forgotten does not linger.
            ("secure_delete", "ON"),
            ("trusted_schema", "OFF"),
            ("cell_size_check", "ON"),
            // A mapped file turns a read error of the disk into a signal that kills the process.
            ("mmap_size", "0"),
        ] {
            conn.pragma_update(None, name, value).map_err(sql)?;
        }
        schema::migrate(&mut conn, path, migrations)?;
        conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        let touched = ChangedRows::watch(&mut conn).map_err(sql)?;
        let folder = path.parent().map(Path::to_owned);
        conn.commit_hook(Some(move || {
            folder.as_deref().is_some_and(|it| up_to_date_note::invalidate(it).is_err())
        }))
        .map_err(sql)?;
        Ok(Self {
            conn,
            path: path.to_owned(),
            changed_rows: touched,
            identity: file_identity(path),
        })
    }

    /// Opens the database at `path` to be read only; `None` when there is none.
    ///
    /// Nothing is made or changed, but that a database of an older schema is brought up to date.
    ///
    /// # Errors
    ///
    /// Like [`Lineage::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, LineageError> {
        let Some(place) = DatabaseLocation::find(path)? else { return Ok(None) };
        // An empty file is a database in which nothing was recorded yet.
        if place.bytes()?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let sql = |source| LineageError::from_sql(path, source);
        let conn = open_to_read(&place).map_err(sql)?;
        conn.busy_timeout(BUSY_TIMEOUT).map_err(sql)?;
        for (name, value) in [
            ("query_only", "ON"),
            ("trusted_schema", "OFF"),
            ("cell_size_check", "ON"),
            ("mmap_size", "0"),
        ] {
            conn.pragma_update(None, name, value).map_err(sql)?;
        }
        let known = schema::MIGRATIONS.len();
        match schema::version(&conn, path, known)? {
            0 => Ok(None),
            version if version < known => {
                drop(conn);
                Self::open(path).map(Some)
            }
            _ => Ok(Some(Self {
                conn,
                path: path.to_owned(),
                changed_rows: ChangedRows::default(),
                identity: file_identity(path),
            })),
        }
    }

    /// Puts a database that is damaged aside, and returns its new name: `<path>.damaged-<time>`.
    ///
    /// Nothing is deleted. No process may have it open: the caller holds the lock of the daemon and
    /// that of the root.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::File`] for what could not be renamed; to try again does no harm.
    pub fn set_aside(path: &Path, now: DateTime<Utc>) -> Result<PathBuf, LineageError> {
        let gone =
            || LineageError::File { path: path.to_owned(), source: io::ErrorKind::NotFound.into() };
        let place = DatabaseLocation::find(path)?.ok_or_else(gone)?;
        // A crash may come between two of the names, and they belong together: the time that all of
        // them get is written down first.
        let time = unfinished_set_aside(&place);
        let time = time.unwrap_or_else(|| now.format("%Y%m%dT%H%M%S%3fZ").to_string());
        place.write(ASIDE_NOTE, &time)?;
        let aside = aside_suffix(&time);
        for suffix in FILES {
            place.rename(suffix, &format!("{aside}{suffix}"))?;
        }
        place.remove(ASIDE_NOTE)?;
        Ok(with_suffix(path, &aside))
    }

    /// Returns whether a crash came while the database was put aside. What stands there may look
    /// sound without its write-ahead log, and lacks its last commits.
    pub fn is_set_aside_unfinished(path: &Path) -> bool {
        let place = DatabaseLocation::find(path).ok().flatten();
        place.is_some_and(|it| unfinished_set_aside(&it).is_some())
    }

    /// Returns the version of SQLite, and whether it is free of the fault that can damage a database.
    pub fn sqlite_version() -> (&'static str, bool) {
        (rusqlite::version(), rusqlite::version_number() >= SQLITE_VERSION_MIN)
    }

    /// Returns how many steps brought the schema to where it is.
    pub fn schema_version() -> usize {
        schema::MIGRATIONS.len()
    }

    /// Returns whether the database is still the one that was opened: it may have been put aside.
    pub fn is_in_place(&self) -> bool {
        self.identity == file_identity(&self.path)
    }

    /// Returns where the database is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole database and checks its form: pages, indexes, and what points to what.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Damaged`] with the first finding.
    pub fn integrity_check(&self) -> Result<(), LineageError> {
        self.check_structure("PRAGMA integrity_check(1)")
    }

    /// Like [`Self::integrity_check`], but takes the indexes on trust.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Damaged`] with the first finding.
    pub fn quick_check(&self) -> Result<(), LineageError> {
        self.check_structure("PRAGMA quick_check(1)")
    }

    fn check_structure(&self, pragma: &str) -> Result<(), LineageError> {
        let damaged = |detail| LineageError::Damaged { path: self.path.clone(), detail };
        schema::check(&self.conn, &self.path)?;
        let said: String = self.read(|conn| conn.query_row(pragma, [], |row| row.get(0)))?;
        if said != "ok" {
            return Err(damaged(said));
        }
        let orphans: i64 = self.read(|conn| {
            conn.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        })?;
        if orphans > 0 {
            return Err(damaged(format!("{orphans} rows point to rows that are not there")));
        }
        Ok(())
    }

    /// Asks something.
    fn read<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LineageError> {
        ask(&self.conn).map_err(|source| LineageError::from_sql(&self.path, source))
    }

    /// Changes something, wholly or not at all.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, LineageError> {
        // Asking for the write lock at once makes the wait happen here, where it may be retried,
        // and not in the middle of a transaction, where SQLite gives up without waiting.
        self.changed_rows.clear();
        let touched = self.changed_rows.clone();
        let path = &self.path;
        let step = |name| {
            failpoint::at(name)
                .map_err(|source| LineageError::File { path: path.to_owned(), source })
        };
        let done = self
            .conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(TransactionError::Sql)
            .and_then(|tx| {
                step("lineage.write.begun")?;
                let value = change(&tx)?;
                touched.write_checksums(&tx)?;
                step("lineage.write.changed")?;
                tx.commit()?;
                step("lineage.write.committed")?;
                Ok(value)
            });
        done.map_err(|fault| match fault {
            TransactionError::Sql(source) => LineageError::from_sql(&self.path, source),
            TransactionError::Other(error) => error,
        })
    }
}

impl LineageError {
    /// Returns whether the folder or the file may not be written.
    pub fn is_read_only(&self) -> bool {
        let Self::Sql { source, .. } = self else { return false };
        matches!(source.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
    }

    /// Returns whether the disk is full or refused a write.
    pub fn is_write_failure(&self) -> bool {
        match self {
            Self::File { .. } => true,
            Self::Sql { source: rusqlite::Error::SqliteFailure(error, _), .. } => {
                let is_read = [ffi::SQLITE_IOERR_READ, ffi::SQLITE_IOERR_SHORT_READ]
                    .contains(&error.extended_code);
                error.code == ErrorCode::DiskFull
                    || error.code == ErrorCode::SystemIoFailure && !is_read
            }
            _ => false,
        }
    }

    /// Tells damage from a lock and from a failing disk.
    fn from_sql(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        let path = path.to_owned();
        let code = source.sqlite_error_code();
        match (code, &source) {
            (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => Self::Busy { path },
            (Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase), _)
            // Values that we never write.
            | (
                None,
                Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::InvalidColumnType(..)
                | Sql::Utf8Error(..),
            ) => Self::Damaged { path, detail: source.to_string() },
            // A table, an index, or a column of ours is not there, or has another name.
            (Some(ErrorCode::Unknown), _) if is_schema_error(&source.to_string()) => {
                Self::Damaged { path, detail: source.to_string() }
            }
            _ if source.sqlite_error().is_some_and(|it| it.extended_code == HOOK_REFUSED) => {
                let path = path.with_file_name(up_to_date_note::NOTE);
                Self::File { path, source: io::Error::other("it cannot be taken away") }
            }
            _ => Self::Sql { path, source },
        }
    }
}

/// What SQLite says where our hook does not let a commit happen.
const HOOK_REFUSED: i32 = ffi::SQLITE_CONSTRAINT_COMMITHOOK;

/// Returns whether SQLite complains of the schema.
fn is_schema_error(said: &str) -> bool {
    ["no such ", "has no column", "already exists", "malformed"].iter().any(|it| said.contains(it))
}

impl From<rusqlite::Error> for TransactionError {
    fn from(source: rusqlite::Error) -> Self {
        Self::Sql(source)
    }
}

impl From<LineageError> for TransactionError {
    fn from(error: LineageError) -> Self {
        Self::Other(error)
    }
}

/// Opens a database to be read, also in a folder where nothing may be written.
fn open_to_read(place: &DatabaseLocation) -> rusqlite::Result<Connection> {
    let path = place.real();
    let probe = |conn: &Connection| {
        conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))
    };
    // With these flags a file that may not be written is opened all the same.
    let opened = Connection::open_with_flags(path, OPEN_READ_WRITE);
    let refused = match opened.and_then(|conn| probe(&conn).map(|_| conn)) {
        Err(error) => error,
        opened => return opened,
    };
    let code = refused.sqlite_error_code();
    if !matches!(code, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen)) {
        return Err(refused);
    }
    if fs::metadata(with_suffix(path, "-wal")).is_ok_and(|it| it.len() > 0) {
        return Err(refused); // What was committed last stands there, and would not be seen.
    }
    // A file that nobody can change needs no shared memory beside it, which could not be made.
    let text = path.to_str().ok_or(refused)?;
    let text = text.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let flags = OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let conn = Connection::open_with_flags(format!("file:{text}?immutable=1"), flags)?;
    probe(&conn).map(|_| conn)
}

/// Refuses a place where a write-ahead log cannot be trusted.
fn refuse_network_file_system(path: &Path) -> Result<(), LineageError> {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let at = |source| LineageError::File { path: folder.to_owned(), source };
    let kind = filesystem::detect(folder).map_err(at)?;
    match filesystem::refused_name(&kind, filesystem::is_fuse_trusted()) {
        Some(kind) => {
            Err(LineageError::NetworkFileSystem { path: path.to_owned(), kind: kind.to_owned() })
        }
        None => Ok(()),
    }
}

/// Beside a database that is being put aside: the time in its new name.
const ASIDE_NOTE: &str = ".damaged-next";

/// Returns what the name of a database that is put aside ends in.
fn aside_suffix(time: &str) -> String {
    format!(".damaged-{time}")
}

/// Returns the time in the new name of a database that was being put aside when a crash came. Where
/// both names are taken, or none is, there is nothing to finish.
fn unfinished_set_aside(place: &DatabaseLocation) -> Option<String> {
    let time = place.read(ASIDE_NOTE)?;
    (time.ends_with('Z') && place.exists(&aside_suffix(&time)) != place.exists("")).then_some(time)
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|it| (it.dev(), it.ino()))
}
