//! The search index of one root: which words occur in which lines, without readable text.
//!
//! A SQLite database beside the lineage and a cache of the files (see [`super::cache_db`]). It holds no text:
//! words are hashes of their stems, lines are numbers and lengths. Search results are read from the files.
//!
//! Postings are grouped in buckets (a month of logs, a year of old ones), so that a query reads a few rows per
//! word, and a changed log rewrites only its own bucket.

mod pack;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, TransactionBehavior, params};

pub use self::pack::{VarintReader, VarintWriter};
use super::cache_db::{self, CacheDbSpec};
use crate::memory::hash::ContentHash;
use crate::store::fs::{inventory::FileStat, vault::scan::KnownFile};

const SPEC: CacheDbSpec = CacheDbSpec {
    version: 5,
    // The positions of a word fill most of a smaller page and would waste the next one.
    page_size: 16_384,
    tables: &["file", "posting", "detail", "about"],
    schema: SCHEMA,
};

/// How long a search waits for a process that writes the index; then it reads the files instead.
const WAIT: Duration = cache_db::BUSY_TIMEOUT;

/// How long a process waits that only updates the index for others.
const BACKGROUND_WAIT: Duration = Duration::from_millis(20);

/// SQLite's page cache while the index is written, in KiB.
const WRITE_CACHE_SIZE: &str = "-16000";

const SCHEMA: &str = "
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        bucket INTEGER NOT NULL,
        inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
        hash BLOB NOT NULL, input BLOB NOT NULL, head BLOB NOT NULL
    ) STRICT;
    CREATE TABLE detail (
        file INTEGER PRIMARY KEY, lines BLOB NOT NULL, cites TEXT NOT NULL
    ) STRICT;
    CREATE TABLE posting (
        bucket INTEGER NOT NULL, term INTEGER NOT NULL, places BLOB NOT NULL,
        PRIMARY KEY (bucket, term)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
";

/// Why a cache cannot be used. Search then reads the files.
#[derive(Debug, thiserror::Error)]
#[error("the search index `{}`: {source}", path.display())]
pub struct CacheDbError {
    /// The file.
    pub path: PathBuf,
    /// SQLite's error.
    #[source]
    pub source: rusqlite::Error,
}

/// A file in the index.
#[derive(Clone, Debug)]
pub struct IndexEntry {
    /// Relative to the root.
    pub path: String,
    /// The part of the index that holds its words.
    pub bucket: i64,
    /// Reveals a change without reading the file.
    pub stamp: FileStat,
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// The hash of everything its sanitized view depends on.
    pub input_hash: ContentHash,
    /// Properties of the file as a whole, packed.
    pub head: Vec<u8>,
}

/// The lines of a file. They are large, so a search reads them only for the files it needs.
#[derive(Clone, Debug, Default)]
pub struct LineDetail {
    /// The lines, packed.
    pub lines: Vec<u8>,
    /// The citations of its items.
    pub cites: String,
}

/// The positions of words in a file: from the hash of a word to bytes that [`VarintWriter`] wrote.
pub type TermPositions = HashMap<u64, Vec<u8>>;

/// A change of the index.
#[derive(Debug, Default)]
pub struct IndexChange {
    /// Paths to remove.
    pub removed: Vec<String>,
    /// Files to add or replace.
    pub added: Vec<(IndexEntry, LineDetail, TermPositions)>,
    /// Files whose content is the indexed one, with new stamps: the root was copied or moved.
    pub restamped: Vec<(String, FileStat)>,
}

/// The files of the index.
#[derive(Debug, Default)]
pub struct IndexEntries {
    /// Each with its number, by which postings refer to it.
    pub files: Vec<(i64, IndexEntry)>,
}

/// The open index.
#[derive(Debug)]
pub struct PostingsDb {
    conn: Connection,
    path: PathBuf,
}

impl PostingsDb {
    /// Opens the index, and creates it if necessary. One that is damaged, of another version, or made for
    /// another `view` is emptied.
    ///
    /// Returns SQLite's error if the folder cannot be written or another process holds the index.
    pub(crate) fn open(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
        Self::open_with_timeout(path, view, WAIT)
    }

    /// Opens the index like [`PostingsDb::open`], for updates in the background. If another process uses the
    /// index, every statement fails almost at once.
    pub(crate) fn open_in_background(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
        Self::open_with_timeout(path, view, BACKGROUND_WAIT)
    }

    fn open_with_timeout(
        path: &Path,
        view: ContentHash,
        wait: Duration,
    ) -> Result<Self, CacheDbError> {
        let conn = cache_db::open(path, &SPEC, view, wait);
        let conn = conn.map_err(|source| CacheDbError { path: path.to_owned(), source })?;
        Ok(Self { conn, path: path.to_owned() })
    }

    /// Removes the index; it is created again when it is needed.
    pub fn remove(path: &Path) {
        cache_db::remove(path);
    }

    /// Reads the whole index and describes its damage; `None` if it is sound or does not exist.
    pub fn find_damage(path: &Path) -> Option<String> {
        cache_db::find_damage(path)
    }

    /// Begins a read transaction, which lasts until [`PostingsDb::end_read`]: numbers of files must match the
    /// postings that refer to them, even if another process changes the index.
    pub(crate) fn begin_read(&self) -> Result<(), CacheDbError> {
        self.query(|conn| if conn.is_autocommit() { conn.execute_batch("BEGIN") } else { Ok(()) })
    }

    /// Ends the transaction of [`PostingsDb::begin_read`].
    pub(crate) fn end_read(&self) -> Result<(), CacheDbError> {
        self.query(|conn| if conn.is_autocommit() { Ok(()) } else { conn.execute_batch("COMMIT") })
    }

    /// Returns the files of the index.
    pub(crate) fn entries(&self) -> Result<IndexEntries, CacheDbError> {
        self.query(|conn| {
            let mut query = conn.prepare(
                "SELECT id, path, bucket, inode, size, mtime, hash, input, head FROM file",
            )?;
            let rows = query.query_map([], |row| {
                let hash = |at| row.get::<_, [u8; 32]>(at).map(ContentHash::from_bytes);
                let stamp = FileStat {
                    inode: row.get::<_, i64>(3)?.cast_unsigned(),
                    size: row.get::<_, i64>(4)?.cast_unsigned(),
                    mtime_ns: row.get(5)?,
                };
                let entry = IndexEntry {
                    path: row.get(1)?,
                    bucket: row.get(2)?,
                    stamp,
                    hash: hash(6)?,
                    input_hash: hash(7)?,
                    head: row.get(8)?,
                };
                Ok((row.get(0)?, entry))
            })?;
            Ok(IndexEntries { files: rows.collect::<Result<_, _>>()? })
        })
    }

    /// Returns the lines of the file with this number.
    pub(crate) fn line_detail(&self, file: i64) -> Result<LineDetail, CacheDbError> {
        self.query(|conn| {
            let mut query =
                conn.prepare_cached("SELECT lines, cites FROM detail WHERE file = ?1")?;
            query.query_row([file], |row| Ok(LineDetail { lines: row.get(0)?, cites: row.get(1)? }))
        })
    }

    /// Calls `each` for every file of the buckets that contains a word, with the file's number and the word's
    /// packed positions.
    pub(crate) fn for_each_position(
        &self,
        buckets: &[i64],
        term: u64,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), CacheDbError> {
        self.query(|conn| {
            let mut query =
                conn.prepare_cached("SELECT places FROM posting WHERE bucket = ?1 AND term = ?2")?;
            for bucket in buckets {
                let mut rows = query.query(params![bucket, term.cast_signed()])?;
                if let Some(row) = rows.next()? {
                    let mut reader = VarintReader::new(row.get_ref(0)?.as_blob()?);
                    while let Some((file, places)) = reader.next_file() {
                        each(file, places);
                    }
                }
            }
            Ok(())
        })
    }

    /// Returns a number that is stored with the index.
    pub(crate) fn counter(&self, name: &str) -> Result<Option<u64>, CacheDbError> {
        self.query(|conn| read_counter(conn, name))
    }

    /// Stores numbers with the index, all or none.
    pub(crate) fn set_counters(&self, numbers: &[(&str, u64)]) -> Result<(), CacheDbError> {
        self.query(|conn| {
            conn.execute_batch("SAVEPOINT numbers")?;
            let mut put = conn.prepare_cached("INSERT OR REPLACE INTO about VALUES (?1, ?2)")?;
            for (name, number) in numbers {
                if let Err(error) = put.execute(params![name, number.to_le_bytes()]) {
                    conn.execute_batch("ROLLBACK TO numbers; RELEASE numbers")?;
                    return Err(error);
                }
            }
            conn.execute_batch("RELEASE numbers")
        })
    }

    /// Returns how often the index has changed.
    pub(crate) fn change_count(&self) -> Result<u64, CacheDbError> {
        Ok(self.counter(CHANGES)?.unwrap_or(0))
    }

    /// Changes the index in one transaction.
    pub(crate) fn apply(&mut self, change: &IndexChange) -> Result<(), CacheDbError> {
        self.query(|conn| conn.pragma_update(None, "cache_size", WRITE_CACHE_SIZE))?;
        let applied = self.try_apply(change);
        applied.map_err(|source| CacheDbError { path: self.path.clone(), source })
    }

    fn try_apply(&mut self, change: &IndexChange) -> rusqlite::Result<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        restamp(&tx, &change.restamped)?;
        if change.removed.is_empty() && change.added.is_empty() {
            return tx.commit();
        }
        let added_paths = change.added.iter().map(|(it, ..)| &it.path);
        let mut buckets: BTreeMap<i64, BucketChange<'_>> = BTreeMap::new();
        let changes = read_counter(&tx, CHANGES)?.unwrap_or(0) + 1;
        tx.execute(
            "INSERT OR REPLACE INTO about VALUES (?1, ?2)",
            params![CHANGES, changes.to_le_bytes()],
        )?;
        {
            let mut find = tx.prepare("SELECT id, bucket FROM file WHERE path = ?1")?;
            let mut drop = tx.prepare("DELETE FROM file WHERE id = ?1")?;
            let mut drop_detail = tx.prepare("DELETE FROM detail WHERE file = ?1")?;
            for path in change.removed.iter().chain(added_paths) {
                let mut rows = find.query([path])?;
                if let Some(row) = rows.next()? {
                    let (id, bucket): (i64, i64) = (row.get(0)?, row.get(1)?);
                    buckets.entry(bucket).or_default().removed.insert(id);
                    drop.execute([id])?;
                    drop_detail.execute([id])?;
                }
            }
            // A removed number must not be used for another file in the same change.
            let next: i64 =
                tx.query_row("SELECT coalesce(max(id), 0) + 1 FROM file", [], |row| row.get(0))?;
            let removed = buckets.values().flat_map(|it| it.removed.iter()).max().copied();
            let numbers = next.max(removed.unwrap_or(0) + 1)..;
            let mut add =
                tx.prepare("INSERT INTO file VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
            let mut add_detail = tx.prepare("INSERT INTO detail VALUES (?1, ?2, ?3)")?;
            for (number, (entry, detail, positions)) in numbers.zip(&change.added) {
                let FileStat { inode, size, mtime_ns } = entry.stamp;
                add.execute(params![
                    number,
                    entry.path,
                    entry.bucket,
                    inode.cast_signed(),
                    size.cast_signed(),
                    mtime_ns,
                    entry.hash.as_bytes(),
                    entry.input_hash.as_bytes(),
                    entry.head,
                ])?;
                add_detail.execute(params![number, detail.lines, detail.cites])?;
                buckets.entry(entry.bucket).or_default().added.push((number, positions));
            }
            for (bucket, change) in &buckets {
                change_bucket(&tx, *bucket, change)?;
            }
        }
        tx.commit()
    }

    fn query<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CacheDbError> {
        query(&self.conn).map_err(|source| CacheDbError { path: self.path.clone(), source })
    }
}

fn restamp(tx: &rusqlite::Transaction<'_>, files: &[(String, FileStat)]) -> rusqlite::Result<()> {
    let mut set =
        tx.prepare_cached("UPDATE file SET inode = ?2, size = ?3, mtime = ?4 WHERE path = ?1")?;
    for (path, FileStat { inode, size, mtime_ns }) in files {
        set.execute(params![path, inode.cast_signed(), size.cast_signed(), mtime_ns])?;
    }
    Ok(())
}

/// The name of the counter of changes.
const CHANGES: &str = "changes";

fn read_counter(conn: &Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    let mut query = conn.prepare_cached("SELECT value FROM about WHERE name = ?1")?;
    match query.query_row([name], |row| row.get::<_, [u8; 8]>(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        found => Ok(Some(u64::from_le_bytes(found?))),
    }
}

/// A change of one bucket, by the numbers of files.
#[derive(Default)]
struct BucketChange<'a> {
    removed: HashSet<i64>,
    added: Vec<(i64, &'a TermPositions)>,
}

fn change_bucket(
    tx: &rusqlite::Transaction<'_>,
    bucket: i64,
    change: &BucketChange<'_>,
) -> rusqlite::Result<()> {
    let mut changed: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for (file, positions) in &change.added {
        for (term, positions) in *positions {
            let all = changed.entry(term.cast_signed()).or_default();
            pack::push_file(all, *file, positions);
        }
    }
    let mut put = tx.prepare_cached("INSERT OR REPLACE INTO posting VALUES (?1, ?2, ?3)")?;
    let mut drop = tx.prepare_cached("DELETE FROM posting WHERE bucket = ?1 AND term = ?2")?;
    let mut emptied = Vec::new();
    {
        let mut all = tx.prepare_cached("SELECT term, places FROM posting WHERE bucket = ?1")?;
        let mut rows = all.query([bucket])?;
        while let Some(row) = rows.next()? {
            let term: i64 = row.get(0)?;
            let before = row.get_ref(1)?.as_blob()?;
            let mut remaining = Vec::with_capacity(before.len());
            let mut reader = VarintReader::new(before);
            while let Some((file, positions)) = reader.next_file() {
                if !change.removed.contains(&file) {
                    pack::push_file(&mut remaining, file, positions);
                }
            }
            if let Some(new) = changed.get_mut(&term) {
                remaining.append(new);
                *new = remaining;
            } else if remaining.is_empty() {
                emptied.push(term);
            } else if remaining.len() != before.len() {
                changed.insert(term, remaining);
            }
        }
    }
    for term in emptied {
        drop.execute(params![bucket, term])?;
    }
    for (term, positions) in changed {
        put.execute(params![bucket, term, positions])?;
    }
    Ok(())
}

/// Returns stamp and hash of each file, so that a scan reads only changed files.
pub fn known_files(files: &[(i64, IndexEntry)]) -> HashMap<String, KnownFile> {
    let seen = |it: &IndexEntry| (it.path.clone(), KnownFile { stamp: it.stamp, hash: it.hash });
    files.iter().map(|(_, it)| seen(it)).collect()
}
