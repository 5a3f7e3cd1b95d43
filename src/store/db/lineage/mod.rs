//! The lineage of one root: what was made from what, by which job, in which run.
//!
//! A SQLite database in the terms of W3C PROV. It is an index: the files are the truth, and
//! everything but receipts and history can be rebuilt from them ([`Lineage::replace_all`]).
//!
//! - `schema`: the tables, and how an older database is migrated.
//! - [`jobs`]: runs, jobs with their receipts, and the journal of intents.
//! - [`record`]: what a job commits, in one transaction.
//! - [`history`]: the content of each file over time.
//! - [`review`]: quarantined lines and proposals.
//! - [`salvage`]: reads what a damaged database still holds.
//! - `location`: the folder of the database, reached through no link.
//! - `row_checksum`: a short hash in every row, which reveals damage.
//! - `column`: how values are stored in columns.
//! - `forget`: removes names and reasons that contain forgotten words.
//! - `portable`: copies for other machines, with the feature `fleet`.
//! - [`query`]: the queries of trace, coverage, plan and status.
//!
//! # Invariants
//!
//! - Only the history holds text of logs and items; lines are read from the files.
//! - No answer depends on a row's number, so a rebuilt database answers like the old one.
//! - A change is one transaction, synced before the call returns. At most one job of a fingerprint
//!   is live.
//! - A locked database is busy, never damaged; nothing here deletes `-wal` or `-shm`.
//!
//! Several processes may have the same database open. The one that writes holds the root's write lock.

mod column;
mod forget;
pub mod history;
pub mod jobs;
mod location;
#[cfg(feature = "fleet")]
pub(crate) mod portable;
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
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, ffi};

use self::{
    jobs::JobId,
    location::{DatabaseLocation, FILES},
    row_checksum::ChangedRows,
    schema::Migration,
};
use crate::store::{
    db::connection::{self, BUSY_TIMEOUT, with_suffix},
    failpoint,
    fs::{filesystem, up_to_date_note},
};

/// The open database of one root.
#[derive(Debug)]
pub struct Lineage {
    conn: Connection,
    path: PathBuf,
    changed_rows: ChangedRows,
    /// Device and inode of the file when the database was opened.
    identity: Option<(u64, u64)>,
}

/// Why the lineage could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum LineageError {
    /// Another process held the database longer than [`BUSY_TIMEOUT`].
    #[error("`{path}` is locked by another process; try again when it has finished")]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// The file is no sound database.
    #[error(
        "`{path}` is damaged ({detail}); `memoird rebuild` sets it aside and rebuilds it from the files"
    )]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// A newer memoird wrote it.
    #[error(
        "`{path}` has schema {found}, this memoird knows {known}; use the newer memoird that wrote it"
    )]
    NewerSchema {
        /// The database.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// The newest schema this memoird knows.
        known: usize,
    },
    /// The database belongs to another program.
    #[error("`{path}` is a database of another program; move it to another folder")]
    ForeignDatabase {
        /// The database.
        path: PathBuf,
    },
    /// The folder is on a network file system, or on an unknown one.
    #[error(
        "`{path}` would be on {kind}, where a database is damaged when two hosts use it; the memory folder must be on a local disk"
    )]
    NetworkFileSystem {
        /// The database.
        path: PathBuf,
        /// The name of the file system.
        kind: String,
    },
    /// The folder or the file is a link, which may lead anywhere.
    #[error(
        "`{path}` is a symbolic link, which memoird does not follow: the database must be in the memory folder itself"
    )]
    SymbolicLink {
        /// The link.
        path: PathBuf,
    },
    /// Another process set the database aside after this one had opened it.
    #[error("`{path}` was replaced by another process; run the same command again")]
    Replaced {
        /// The database.
        path: PathBuf,
    },
    /// The file system does not support a write-ahead log.
    #[error(
        "`{path}` cannot use a write-ahead log (the journal mode is still `{mode}`); the memory folder must be on a local disk"
    )]
    NoWal {
        /// The database.
        path: PathBuf,
        /// Its journal mode.
        mode: String,
    },
    /// The linked SQLite can damage a database.
    #[error(
        "this memoird is linked with SQLite {found}, which can damage a database that two processes write; version 3.51.3 or newer is needed"
    )]
    OldSqlite {
        /// Its version.
        found: &'static str,
    },
    /// The file could not be created, read or written.
    #[error("`{path}`: {source}")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A job with the same fingerprint is running.
    #[error("a job with the fingerprint {fingerprint} is already running")]
    AlreadyLive {
        /// The first 16 hex digits of the fingerprint.
        fingerprint: String,
    },
    /// The job has already ended, or never existed.
    #[error("job {job} is not running")]
    NotLive {
        /// The job.
        job: JobId,
    },
    /// The intent was already closed, or never existed.
    #[error("intent {intent} is not open")]
    NotOpen {
        /// The number of the intent.
        intent: i64,
    },
    /// The commit names a path that has no record.
    #[error("`{name}` has no record in the lineage; commit it first")]
    NoRecord {
        /// The path.
        name: String,
    },
    /// Bytes could not be compressed for the history.
    #[error("cannot compress a version for the history: {source}")]
    Compress {
        /// zstd's error.
        source: io::Error,
    },
    /// Any other error of SQLite: disk full, read-only, input or output failed.
    #[error("`{path}`: {source}")]
    Sql {
        /// The database.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
}

/// An error inside a transaction, where the path is not known.
enum TransactionError {
    Sql(rusqlite::Error),
    Other(LineageError),
}

/// Creates an empty file, unless it exists, for another database of the same folder, and returns its path
/// without links. Only the owner may read it.
///
/// Like [`Lineage::open`], if the folder cannot hold a database.
pub(crate) fn create_private_file(path: &Path) -> Result<PathBuf, LineageError> {
    let location = DatabaseLocation::create(path)?;
    location.create_file()?;
    refuse_network_file_system(path)?;
    Ok(location.real().to_owned())
}

/// How many statements stay compiled: a run alternates between more than SQLite's default of sixteen.
const STATEMENT_CACHE_SIZE: usize = 128;

/// The first SQLite in which a write-ahead log is never reset under a reader.
const SQLITE_VERSION_MIN: i32 = 3_051_003;

impl Lineage {
    /// Opens the database at `path`; creates it and its folder if necessary.
    ///
    /// Only the owner may read file and folder. An older schema is migrated.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Damaged`] for a file that is no database, [`LineageError::NewerSchema`] for
    /// one that a newer memoird wrote, and [`LineageError::Busy`] when another process holds it.
    pub fn open(path: &Path) -> Result<Self, LineageError> {
        Self::open_with(path, schema::MIGRATIONS, BUSY_TIMEOUT)
    }

    fn open_with(
        path: &Path,
        migrations: &[Migration],
        wait: Duration,
    ) -> Result<Self, LineageError> {
        if let (found, false) = Self::sqlite_version() {
            return Err(LineageError::OldSqlite { found });
        }
        let real = create_private_file(path)?;
        let sql = |source| LineageError::from_sql(path, source);
        let mut conn = connection::open(&real, &connection::RECORD, wait).map_err(sql)?;
        let mode: String =
            conn.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(sql)?;
        if mode != "wal" {
            return Err(LineageError::NoWal { path: path.to_owned(), mode });
        }
        schema::migrate(&mut conn, path, migrations)?;
        conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE_SIZE);
        let changed_rows = ChangedRows::watch(&mut conn).map_err(sql)?;
        let folder = path.parent().map(Path::to_owned);
        conn.commit_hook(Some(move || {
            folder.as_deref().is_some_and(|it| up_to_date_note::invalidate(it).is_err())
        }))
        .map_err(sql)?;
        Ok(Self { conn, path: path.to_owned(), changed_rows, identity: file_identity(path) })
    }

    /// Opens the database at `path` for reading; `None` when there is none.
    ///
    /// Creates and changes nothing, except that it migrates an older schema.
    ///
    /// # Errors
    ///
    /// Like [`Lineage::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, LineageError> {
        let Some(location) = DatabaseLocation::find(path)? else { return Ok(None) };
        // An empty file is a database in which nothing was recorded yet.
        if location.bytes()?.unwrap_or(0) == 0 {
            return Ok(None);
        }
        let sql = |source| LineageError::from_sql(path, source);
        let conn = connection::open_reader(location.real()).map_err(sql)?;
        match schema::version(&conn, path, schema::MIGRATIONS)? {
            0 => Ok(None),
            version if version < Self::schema_version() => {
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

    /// Renames a damaged database to `<path>.damaged-<time>` and returns that name.
    ///
    /// Nothing is deleted. No process may have the database open: the caller holds the daemon's lock and
    /// the root's.
    ///
    /// Returns [`LineageError::File`] for a file that could not be renamed; the call can be repeated.
    pub(crate) fn set_aside(path: &Path, now: DateTime<Utc>) -> Result<PathBuf, LineageError> {
        let gone =
            || LineageError::File { path: path.to_owned(), source: io::ErrorKind::NotFound.into() };
        let location = DatabaseLocation::find(path)?.ok_or_else(gone)?;
        // The files belong together, and a crash may come between two renames. So their common time is
        // written down first.
        let time = unfinished_set_aside(&location);
        let time = time.unwrap_or_else(|| now.format("%Y%m%dT%H%M%S%3fZ").to_string());
        location.write(ASIDE_NOTE, &time)?;
        let aside = aside_suffix(&time);
        for suffix in FILES {
            location.rename(suffix, &format!("{aside}{suffix}"))?;
        }
        location.remove(ASIDE_NOTE)?;
        Ok(with_suffix(path, &aside))
    }

    /// Returns whether a crash interrupted [`Lineage::set_aside`]. A database without its write-ahead log
    /// may look sound, but lacks its last commits.
    pub fn is_set_aside_unfinished(path: &Path) -> bool {
        let location = DatabaseLocation::find(path).ok().flatten();
        location.is_some_and(|it| unfinished_set_aside(&it).is_some())
    }

    /// Returns the version of SQLite, and whether it is new enough not to damage a database.
    pub fn sqlite_version() -> (&'static str, bool) {
        (rusqlite::version(), rusqlite::version_number() >= SQLITE_VERSION_MIN)
    }

    /// Returns the version of the newest schema.
    pub fn schema_version() -> usize {
        schema::newest(schema::MIGRATIONS)
    }

    /// Returns whether the file at the path is still the one that was opened; it may have been set aside.
    pub fn is_in_place(&self) -> bool {
        self.identity == file_identity(&self.path)
    }

    /// Returns the path of the database.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the whole database and checks its pages, indexes and foreign keys.
    ///
    /// Returns [`LineageError::Damaged`] with the first finding.
    pub(crate) fn integrity_check(&self) -> Result<(), LineageError> {
        let damaged = |detail| LineageError::Damaged { path: self.path.clone(), detail };
        schema::check(&self.conn, &self.path)?;
        let finding: String =
            self.read(|conn| conn.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0)))?;
        if finding != "ok" {
            return Err(damaged(finding));
        }
        let orphans: i64 = self.read(|conn| {
            conn.query_row("SELECT count(*) FROM pragma_foreign_key_check", [], |row| row.get(0))
        })?;
        if orphans > 0 {
            return Err(damaged(format!("{orphans} rows refer to rows that do not exist")));
        }
        Ok(())
    }

    /// Runs queries.
    fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, LineageError> {
        query(&self.conn).map_err(|source| LineageError::from_sql(&self.path, source))
    }

    /// Runs a change in one transaction.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, TransactionError>,
    ) -> Result<T, LineageError> {
        // `Immediate` takes the write lock at once, so that the wait happens here. In the middle of a
        // transaction SQLite would give up without waiting.
        self.changed_rows.clear();
        let changed_rows = self.changed_rows.clone();
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
                changed_rows.write_checksums(&tx)?;
                step("lineage.write.changed")?;
                tx.commit()?;
                step("lineage.write.committed")?;
                Ok(value)
            });
        done.map_err(|error| match error {
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

    /// Sorts out damage, locks and failing disks.
    fn from_sql(path: &Path, source: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        let path = path.to_owned();
        let code = source.sqlite_error_code();
        match (code, &source) {
            (Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked), _) => Self::Busy { path },
            (Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase), _)
            // Values that memoird never writes.
            | (
                None,
                Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::InvalidColumnType(..)
                | Sql::Utf8Error(..),
            ) => Self::Damaged { path, detail: source.to_string() },
            // A table, an index or a column of ours is missing.
            (Some(ErrorCode::Unknown), _) if is_schema_error(&source.to_string()) => {
                Self::Damaged { path, detail: source.to_string() }
            }
            // The file ends in the middle of a page.
            _ if source.sqlite_error().is_some_and(|it| it.extended_code == SHORT_READ) => {
                Self::Damaged { path, detail: source.to_string() }
            }
            _ if source.sqlite_error().is_some_and(|it| it.extended_code == HOOK_REFUSED) => {
                let path = path.with_file_name(up_to_date_note::NOTE);
                Self::File { path, source: io::Error::other("cannot be removed") }
            }
            _ => Self::Sql { path, source },
        }
    }
}

/// SQLite's error when our hook refuses a commit.
const HOOK_REFUSED: i32 = ffi::SQLITE_CONSTRAINT_COMMITHOOK;

const SHORT_READ: i32 = ffi::SQLITE_IOERR_SHORT_READ;

/// Returns whether a message of SQLite is about the schema.
fn is_schema_error(message: &str) -> bool {
    let marks = ["no such ", "has no column", "already exists", "malformed"];
    marks.iter().any(|it| message.contains(it))
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

/// Refuses a file system on which a write-ahead log is unsafe.
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

/// The suffix of the note that holds, while a database is being set aside, the time for its new name.
const ASIDE_NOTE: &str = ".damaged-next";

/// Returns the suffix in the name of a database that was set aside.
fn aside_suffix(time: &str) -> String {
    format!(".damaged-{time}")
}

/// Returns the time in the new name of a database that a crash left half set aside. If both names exist,
/// or neither does, there is nothing to finish.
fn unfinished_set_aside(location: &DatabaseLocation) -> Option<String> {
    let time = location.read(ASIDE_NOTE)?;
    let is_unfinished = location.exists(&aside_suffix(&time)) != location.exists("");
    (time.ends_with('Z') && is_unfinished).then_some(time)
}

fn file_identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|it| (it.dev(), it.ino()))
}
