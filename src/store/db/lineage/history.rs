//! The content of each file over time: versions with their bytes.
//!
//! Bytes are stored once, by their hash (content-addressed), compressed with zstd (RFC 8878). A version is
//! the content of a path from a time on; the newest one is the last known content. A version is added only
//! when the bytes have changed.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, Transaction, params};

use super::{
    Lineage, LineageError, TransactionError, column,
    jobs::{JobId, RunId},
};
use crate::memory::hash::ContentHash;

/// The number of a version, which users see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub i64);

/// Why the content of a path changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionCause {
    /// A run wrote them.
    Written,
    /// A run removed the file.
    Removed,
    /// A log as a run read it, or a file without a record as a new database found it.
    ReadByRun,
    /// Somebody else wrote them.
    ExternalWrite,
    /// Somebody else removed the file.
    ExternalRemoval,
    /// A person asked memoird to forget the bytes.
    Forgotten,
    /// The bytes were older than the history is kept.
    Pruned,
}

/// A new content of a path.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    /// The file, relative to the root.
    pub path: &'a str,
    /// Why it changed.
    pub cause: VersionCause,
    /// The bytes; `None` if the file is gone.
    pub bytes: Option<&'a [u8]>,
}

/// A recorded version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// Its number.
    pub id: VersionId,
    /// The file, relative to the root.
    pub path: String,
    /// Why the content changed.
    pub cause: VersionCause,
    /// The hash of the bytes; `None` if the file was gone or its bytes are no longer stored.
    pub hash: Option<ContentHash>,
    /// The number of bytes.
    pub size: Option<u64>,
    /// The run that wrote or read it.
    pub run: Option<RunId>,
    /// What started that run.
    pub trigger: Option<String>,
    /// When the content changed.
    pub at: DateTime<Utc>,
}

/// What was pruned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Versions whose bytes were deleted.
    pub versions: usize,
    /// Their size, compressed.
    pub bytes: u64,
}

/// The default of zstd. Markdown shrinks to about a third at 300 MB/s.
const COMPRESSION_LEVEL: i32 = 3;

/// The versions that were replaced before a time and are not the newest bytes of their path.
const PRUNABLE: &str = "SELECT id FROM (SELECT id, path, hash, lead(at) OVER \
    (PARTITION BY path ORDER BY id) AS replaced FROM version) AS old \
    WHERE hash IS NOT NULL AND replaced < ?1 AND EXISTS (SELECT 1 FROM version AS newer \
    WHERE newer.path = old.path AND newer.id > old.id AND newer.hash IS NOT NULL)";

impl VersionCause {
    /// All causes.
    pub const ALL: [Self; 7] = [
        Self::Written,
        Self::Removed,
        Self::ReadByRun,
        Self::ExternalWrite,
        Self::ExternalRemoval,
        Self::Forgotten,
        Self::Pruned,
    ];

    /// Returns the name that JSON and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Removed => "removed",
            Self::ReadByRun => "folded",
            Self::ExternalWrite => "found",
            Self::ExternalRemoval => "gone",
            Self::Forgotten => "forgotten",
            Self::Pruned => "pruned",
        }
    }

    /// Returns the cause with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl Lineage {
    /// Returns the versions of a file, the oldest first.
    pub(crate) fn versions_of(&self, path: &str) -> Result<Vec<VersionRow>, LineageError> {
        self.read(|conn| versions_where(conn, "WHERE version.path = ?1", [path]))
    }

    /// Returns a version by its number.
    pub(crate) fn version(&self, id: VersionId) -> Result<Option<VersionRow>, LineageError> {
        let mut found = self.read(|conn| versions_where(conn, "WHERE version.id = ?1", [id.0]))?;
        Ok(found.pop())
    }

    /// Returns the newest version of every file, by path.
    pub(crate) fn latest_versions(&self) -> Result<Vec<VersionRow>, LineageError> {
        let newest = "WHERE version.id IN (SELECT max(id) FROM version GROUP BY path)";
        let mut found = self.read(|conn| versions_where(conn, newest, []))?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Returns all versions, the oldest first.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn versions(&self) -> Result<Vec<VersionRow>, LineageError> {
        self.read(|conn| versions_where(conn, "", []))
    }

    /// Returns bytes by their hash; `None` if they are not stored.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::Damaged`] for bytes that no longer have that hash.
    pub fn content(&self, hash: ContentHash) -> Result<Option<Vec<u8>>, LineageError> {
        let found = self.read(|conn| {
            conn.prepare_cached("SELECT size, packed FROM content WHERE hash = ?1")?
                .query_row([hash.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        let Some((size, packed)): Option<(i64, Vec<u8>)> = found else { return Ok(None) };
        let bytes = unpack(&packed, size);
        match bytes.filter(|it| ContentHash::of(it) == hash) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(LineageError::Damaged {
                path: self.path.clone(),
                detail: format!("the history no longer holds the bytes {}", hash.hex16()),
            }),
        }
    }

    /// Returns the hashes of all stored bytes.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn contents(&self) -> Result<Vec<ContentHash>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT hash FROM content ORDER BY rowid")?
                .query_map([], |row| column::hash(row, 0))?
                .collect()
        })
    }

    /// Records that a run undid others.
    pub(crate) fn record_undone_runs(
        &mut self,
        run: RunId,
        undone: &[RunId],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            for undone in undone {
                tx.execute(
                    "INSERT OR IGNORE INTO taken_back (run, taken) VALUES (?1, ?2)",
                    [run.0, undone.0],
                )?;
            }
            // The checksum of the run covers them, but SQLite calls no hook for a table without rowid.
            tx.execute("UPDATE run SET owner = owner WHERE id = ?1", [run.0])?;
            Ok(())
        })
    }

    /// Returns pairs of a run and a run that it undid, the oldest first.
    pub(crate) fn undone_runs(&self) -> Result<Vec<(RunId, RunId)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT run, taken FROM taken_back ORDER BY run, taken")?
                .query_map([], |row| Ok((RunId(row.get(0)?), RunId(row.get(1)?))))?
                .collect()
        })
    }

    /// Returns the later runs that read what this one wrote, each with a path, ordered by number.
    pub(crate) fn dependent_runs(&self, run: RunId) -> Result<Vec<(RunId, String)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT DISTINCT later.run, entity.path FROM activity AS made \
                 JOIN was_generated_by ON was_generated_by.activity = made.id \
                 JOIN entity ON entity.id = was_generated_by.entity \
                 JOIN used ON used.entity = entity.id \
                 JOIN activity AS later ON later.id = used.activity \
                 WHERE made.run = ?1 AND later.run > ?1 ORDER BY later.run, entity.path",
            )?
            .query_map([run.0], |row| Ok((RunId(row.get(0)?), row.get(1)?)))?
            .collect()
        })
    }

    /// Returns whether [`Self::prune`] would delete anything.
    pub(crate) fn has_prunable(&self, before: DateTime<Utc>) -> Result<bool, LineageError> {
        self.read(|conn| conn.prepare_cached(PRUNABLE)?.exists([column::from_time(before)]))
    }

    /// Deletes the bytes of versions that were replaced before `before`, except for the newest bytes of each
    /// path: if the file is gone, they may be the only copy.
    pub(crate) fn prune(&mut self, before: DateTime<Utc>) -> Result<PruneReport, LineageError> {
        self.write(|tx| {
            let ids: Vec<i64> = tx
                .prepare(PRUNABLE)?
                .query_map([column::from_time(before)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut prune =
                tx.prepare("UPDATE version SET cause = 'pruned', hash = NULL WHERE id = ?1")?;
            for id in &ids {
                prune.execute([id])?;
            }
            let bytes = drop_unreferenced(tx)?;
            Ok(PruneReport { versions: ids.len(), bytes })
        })
    }

    /// Deletes the bytes of these versions, because a person wants them forgotten.
    pub(crate) fn forget_versions(
        &mut self,
        ids: &[VersionId],
    ) -> Result<PruneReport, LineageError> {
        self.write(|tx| {
            for id in ids {
                tx.execute(
                    "UPDATE version SET cause = 'forgotten', hash = NULL \
                     WHERE id = ?1 AND hash IS NOT NULL",
                    [id.0],
                )?;
            }
            let bytes = drop_unreferenced(tx)?;
            Ok(PruneReport { versions: ids.len(), bytes })
        })
    }

    /// Replaces the bytes of a version by `redacted`: its own without the words a person wants forgotten.
    pub(crate) fn replace_version_content(
        &mut self,
        id: VersionId,
        redacted: &[u8],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            let hash = put_content(tx, redacted)?.to_string();
            tx.execute("UPDATE version SET hash = ?2 WHERE id = ?1", params![id.0, hash])?;
            drop_unreferenced(tx)?;
            Ok(())
        })
    }

    /// Rewrites the database, so that nothing of deleted rows is left in its file or write-ahead log.
    ///
    /// Fails if it cannot be written, with [`LineageError::Busy`] while another process reads it.
    pub(crate) fn vacuum(&mut self) -> Result<(), LineageError> {
        let busy = self.read(|conn| {
            conn.execute_batch("VACUUM")?;
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        })?;
        if busy == 0 { Ok(()) } else { Err(LineageError::Busy { path: self.path.clone() }) }
    }
}

/// Decompresses `size` bytes; `None` if they were damaged.
pub(super) fn unpack(packed: &[u8], size: i64) -> Option<Vec<u8>> {
    // A damaged size must not make us allocate all memory.
    let size = usize::try_from(size).ok().filter(|it| *it <= BYTES_MAX)?;
    zstd::bulk::decompress(packed, size).ok()
}

/// No stored file is larger, because `vault` reads none that is.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Stores bytes, unless they are stored already.
pub(super) fn put_content(
    tx: &Transaction<'_>,
    bytes: &[u8],
) -> Result<ContentHash, TransactionError> {
    let hash = ContentHash::of(bytes);
    let name = hash.to_string();
    if tx.prepare_cached("SELECT 1 FROM content WHERE hash = ?1")?.exists([&name])? {
        return Ok(hash);
    }
    let packed = zstd::bulk::compress(bytes, COMPRESSION_LEVEL)
        .map_err(|source| LineageError::Compress { source })?;
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    tx.prepare_cached("INSERT INTO content (hash, size, packed) VALUES (?1, ?2, ?3)")?
        .execute(params![name, size, packed])?;
    Ok(hash)
}

/// Adds a version with its bytes, if they differ from the last known content of the path.
pub(super) fn add_version(
    tx: &Transaction<'_>,
    run: Option<RunId>,
    job: Option<JobId>,
    at: DateTime<Utc>,
    version: &NewVersion<'_>,
) -> Result<(), TransactionError> {
    let NewVersion { path, cause, bytes } = *version;
    let last: Option<Option<String>> = tx
        .prepare_cached("SELECT hash FROM version WHERE path = ?1 ORDER BY id DESC LIMIT 1")?
        .query_row([path], |row| row.get(0))
        .optional()?;
    let hash = bytes.map(|it| put_content(tx, it)).transpose()?.map(|it| it.to_string());
    // This also holds for a file that does not exist and had no version.
    if last.unwrap_or_default() == hash {
        return Ok(());
    }
    tx.prepare_cached(
        "INSERT INTO version (path, cause, hash, run, activity, at) \
         VALUES (?1, ?2, ?3, ifnull(?4, (SELECT run FROM activity WHERE id = ?5)), ?5, ?6)",
    )?
    .execute(params![
        path,
        cause.name(),
        hash,
        run.map(|it| it.0),
        job.map(JobId::number),
        column::from_time(at),
    ])?;
    Ok(())
}

/// Deletes bytes that no version and no open intent refers to, and returns their compressed size.
fn drop_unreferenced(tx: &Transaction<'_>) -> Result<u64, TransactionError> {
    let unreferenced = "FROM content WHERE hash NOT IN \
        (SELECT hash FROM version WHERE hash IS NOT NULL \
         UNION SELECT new_hash FROM intent WHERE state = 'open' AND new_hash IS NOT NULL)";
    let sum = format!("SELECT ifnull(sum(length(packed)), 0) {unreferenced}");
    let bytes: i64 = tx.query_row(&sum, [], |row| row.get(0))?;
    tx.execute(&format!("DELETE {unreferenced}"), [])?;
    Ok(bytes.cast_unsigned())
}

fn versions_where(
    conn: &Connection,
    condition: &str,
    params: impl Params,
) -> rusqlite::Result<Vec<VersionRow>> {
    conn.prepare_cached(&format!(
        "SELECT version.id, version.path, version.cause, version.hash, content.size, version.run, \
         run.cause, version.at FROM version LEFT JOIN content ON content.hash = version.hash \
         LEFT JOIN run ON run.id = version.run {condition} ORDER BY version.id"
    ))?
    .query_map(params, version_row)?
    .collect()
}

fn version_row(row: &Row<'_>) -> rusqlite::Result<VersionRow> {
    Ok(VersionRow {
        id: VersionId(row.get(0)?),
        path: row.get(1)?,
        cause: column::named(row, 2, "cause", VersionCause::from_name)?,
        hash: column::hash_or_null(row, 3)?,
        size: row.get::<_, Option<i64>>(4)?.map(i64::cast_unsigned),
        run: row.get::<_, Option<i64>>(5)?.map(RunId),
        trigger: row.get(6)?,
        at: column::time(row, 7)?,
    })
}
