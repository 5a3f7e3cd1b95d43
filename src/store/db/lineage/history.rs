//! What stood in a file, and when: versions with their bytes, and what a run wrote.
//!
//! Bytes are kept once, by their hash (content-addressed), packed with zstd (RFC 8878). A version
//! says what stood under a path from a time on; the newest one of a path is what was last known of
//! it. A version is added when the bytes under a path have changed, never else, so that history
//! tells what happened and not how often somebody looked.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension as _, Params, Row, Transaction, params};

use super::{
    Lineage, LineageError, TransactionError, column,
    jobs::{JobId, RunId},
};
use crate::memory::hash::ContentHash;

/// The number of a version; people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub i64);

/// How bytes came to stand, or no longer to stand, under a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VersionCause {
    /// A run wrote them.
    Written,
    /// A run removed the file.
    Removed,
    /// A log, as a run read it.
    ReadByRun,
    /// Somebody else wrote them.
    ExternalWrite,
    /// Somebody else removed the file.
    ExternalRemoval,
    /// A person had the bytes forgotten.
    Forgotten,
    /// The bytes were older than the history is to be.
    Pruned,
}

/// Bytes that stand, or no longer stand, under a path.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    /// The file, relative to the root.
    pub path: &'a str,
    /// How they came there.
    pub cause: VersionCause,
    /// The bytes; `None` where the file is no longer there.
    pub bytes: Option<&'a [u8]>,
}

/// A version as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRow {
    /// Its number.
    pub id: VersionId,
    /// The file, relative to the root.
    pub path: String,
    /// How it came about.
    pub cause: VersionCause,
    /// The hash of the bytes; `None` where none stand there or none are kept.
    pub hash: Option<ContentHash>,
    /// The number of bytes.
    pub size: Option<u64>,
    /// The run that wrote or read it.
    pub run: Option<RunId>,
    /// What began that run.
    pub trigger: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

/// What was let go of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// Versions whose bytes are no longer kept.
    pub versions: usize,
    /// Packed bytes that went with them.
    pub bytes: u64,
}

/// How hard zstd tries: its own default. Markdown shrinks to about a third at 300 MB/s.
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

impl VersionRow {
    /// Returns whether a run of ours wrote or removed the file.
    pub fn is_ours(&self) -> bool {
        matches!(self.cause, VersionCause::Written | VersionCause::Removed)
    }
}

impl Lineage {
    /// Returns the versions of a file, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn versions_of(&self, path: &str) -> Result<Vec<VersionRow>, LineageError> {
        self.read(|conn| versions_where(conn, "WHERE version.path = ?1", [path]))
    }

    /// Returns a version by its number.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn version(&self, id: VersionId) -> Result<Option<VersionRow>, LineageError> {
        let mut found = self.read(|conn| versions_where(conn, "WHERE version.id = ?1", [id.0]))?;
        Ok(found.pop())
    }

    /// Returns what was known of a file at a time: the newest version not after it.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn version_at(
        &self,
        path: &str,
        time: DateTime<Utc>,
    ) -> Result<Option<VersionRow>, LineageError> {
        let newest =
            "WHERE version.id = (SELECT max(id) FROM version WHERE path = ?1 AND at <= ?2)";
        let time = column::from_time(time);
        let mut found = self.read(|conn| versions_where(conn, newest, params![path, time]))?;
        Ok(found.pop())
    }

    /// Returns the newest version of every file, by path.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn latest_versions(&self) -> Result<Vec<VersionRow>, LineageError> {
        let newest = "WHERE version.id IN (SELECT max(id) FROM version GROUP BY path)";
        let mut found = self.read(|conn| versions_where(conn, newest, []))?;
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// Returns what a run wrote, read, and removed, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn versions_of_run(&self, run: RunId) -> Result<Vec<VersionRow>, LineageError> {
        self.read(|conn| versions_where(conn, "WHERE version.run = ?1", [run.0]))
    }

    /// Returns all versions, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn versions(&self) -> Result<Vec<VersionRow>, LineageError> {
        self.read(|conn| versions_where(conn, "", []))
    }

    /// Returns bytes by their hash; `None` when they are not kept.
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

    /// Returns the hashes of all bytes that are kept.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn contents(&self) -> Result<Vec<ContentHash>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT hash FROM content ORDER BY rowid")?
                .query_map([], |row| column::hash(row, 0))?
                .collect()
        })
    }

    /// Records that a run took others back.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn record_undone_runs(&mut self, run: RunId, taken: &[RunId]) -> Result<(), LineageError> {
        self.write(|tx| {
            for taken in taken {
                tx.execute(
                    "INSERT OR IGNORE INTO taken_back (run, taken) VALUES (?1, ?2)",
                    [run.0, taken.0],
                )?;
            }
            // The seal of the run covers them; SQLite tells of no change in a table without rowid.
            tx.execute("UPDATE run SET owner = owner WHERE id = ?1", [run.0])?;
            Ok(())
        })
    }

    /// Returns which run took which back, the oldest first.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn undone_runs(&self) -> Result<Vec<(RunId, RunId)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT run, taken FROM taken_back ORDER BY run, taken")?
                .query_map([], |row| Ok((RunId(row.get(0)?), RunId(row.get(1)?))))?
                .collect()
        })
    }

    /// Returns the later runs that read what this one wrote, each with a path, by number.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn dependent_runs(&self, run: RunId) -> Result<Vec<(RunId, String)>, LineageError> {
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

    /// Returns whether [`Self::prune`] would let go of anything.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be read.
    pub fn has_prunable(&self, before: DateTime<Utc>) -> Result<bool, LineageError> {
        self.read(|conn| conn.prepare_cached(PRUNABLE)?.exists([column::from_time(before)]))
    }

    /// Lets go of the bytes of versions that were replaced before `before`, but for the newest bytes
    /// of a path: of a file that is gone they may be the only ones left.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn prune(&mut self, before: DateTime<Utc>) -> Result<PruneReport, LineageError> {
        self.write(|tx| {
            let ids: Vec<i64> = tx
                .prepare(PRUNABLE)?
                .query_map([column::from_time(before)], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let mut let_go =
                tx.prepare("UPDATE version SET cause = 'pruned', hash = NULL WHERE id = ?1")?;
            for id in &ids {
                let_go.execute([id])?;
            }
            let bytes = drop_unreferenced(tx)?;
            Ok(PruneReport { versions: ids.len(), bytes })
        })
    }

    /// Lets go of the bytes of these versions, because a person wants them forgotten.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn forget_versions(&mut self, ids: &[VersionId]) -> Result<PruneReport, LineageError> {
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

    /// Keeps other bytes for a version: its own without what a person wants forgotten.
    ///
    /// # Errors
    ///
    /// Returns why the database could not be written.
    pub fn replace_version_content(
        &mut self,
        id: VersionId,
        left: &[u8],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            let hash = put_content(tx, left)?.to_string();
            tx.execute("UPDATE version SET hash = ?2 WHERE id = ?1", params![id.0, hash])?;
            drop_unreferenced(tx)?;
            Ok(())
        })
    }

    /// Writes the database anew, so that nothing of deleted rows is left in its file or in the
    /// write-ahead log.
    ///
    /// # Errors
    ///
    /// Returns why it could not be written; [`LineageError::Busy`] while another process reads it.
    pub fn vacuum(&mut self) -> Result<(), LineageError> {
        let busy = self.read(|conn| {
            conn.execute_batch("VACUUM")?;
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        })?;
        if busy == 0 { Ok(()) } else { Err(LineageError::Busy { path: self.path.clone() }) }
    }
}

/// Unpacks bytes of which there are `size`; `None` when they were damaged.
pub(super) fn unpack(packed: &[u8], size: i64) -> Option<Vec<u8>> {
    // A number that was damaged must not make us ask for all memory there is.
    let size = usize::try_from(size).ok().filter(|it| *it <= BYTES_MAX)?;
    zstd::bulk::decompress(packed, size).ok()
}

/// No file that is kept is larger: `vault` reads none.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// Keeps bytes, if they are not kept yet.
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

/// Adds a version with its bytes, if something else was last known of the path.
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
    // Nothing was known of a path where nothing stands: that is no news either.
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

/// Deletes bytes that no version and no open intent names, and returns how many they were, packed.
fn drop_unreferenced(tx: &Transaction<'_>) -> Result<u64, TransactionError> {
    let unnamed = "FROM content WHERE hash NOT IN \
        (SELECT hash FROM version WHERE hash IS NOT NULL \
         UNION SELECT new_hash FROM intent WHERE state = 'open' AND new_hash IS NOT NULL)";
    let sum = format!("SELECT ifnull(sum(length(packed)), 0) {unnamed}");
    let bytes: i64 = tx.query_row(&sum, [], |row| row.get(0))?;
    tx.execute(&format!("DELETE {unnamed}"), [])?;
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
