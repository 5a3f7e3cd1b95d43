//! The search index of one root: which words stand in which lines, and nothing that can be read.
//!
//! A SQLite database of its own beside the lineage, made from the files and thrown away without loss:
//! one that is missing, torn, or of another version is made anew. It holds no text: words are numbers
//! (hashes of their stems), lines are numbers and lengths. What is shown is read from the files.
//!
//! Postings stand in buckets (a month of logs, a year of old ones), so that a query asks for a few rows
//! a word and a log that changed rewrites its own bucket alone. What is deleted is overwritten (`secure_delete`), and
//! the journal is a file that is gone after each change.

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

/// Of a new file: the places of a word fill most of a smaller page and waste the next one.
const SPEC: CacheDbSpec = CacheDbSpec {
    // How the rows are written; another number makes the index anew.
    version: 4,
    page_size: 16_384,
    tables: &["file", "posting", "detail", "about"],
    schema: SCHEMA,
};

/// How long a search waits for who writes the index; then it reads the files.
const WAIT: Duration = cache_db::BUSY_TIMEOUT;

/// How long those wait that only keep it for others.
const BACKGROUND_WAIT: Duration = Duration::from_millis(20);

/// What is kept in memory of the database while it is written, as SQLite counts it.
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

/// Why the index cannot be used. Search reads the files then.
#[derive(Debug, thiserror::Error)]
#[error("the search index `{}`: {source}", path.display())]
pub struct CacheDbError {
    /// The file.
    pub path: PathBuf,
    /// What SQLite said.
    #[source]
    pub source: rusqlite::Error,
}

/// A file as the index knows it.
#[derive(Clone, Debug)]
pub struct IndexEntry {
    /// Relative to the root.
    pub path: String,
    /// The part of the index in which its words stand.
    pub bucket: i64,
    /// By which a change is told without reading.
    pub stamp: FileStat,
    /// Of its bytes.
    pub hash: ContentHash,
    /// Of what its served view depends on.
    pub input_hash: ContentHash,
    /// What is known of it as a whole, packed.
    pub head: Vec<u8>,
}

/// What is known of the lines of a file. It is much, and is read of the files alone that a search is
/// concerned with.
#[derive(Clone, Debug, Default)]
pub struct LineDetail {
    /// The lines, packed.
    pub lines: Vec<u8>,
    /// What its items cite.
    pub cites: String,
}

/// Where the words of a file stand: by the number of a word what [`VarintWriter`] packed.
pub type TermPositions = HashMap<u64, Vec<u8>>;

/// What a change of the index is to do.
#[derive(Debug, Default)]
pub struct IndexChange {
    /// Paths that go.
    pub removed: Vec<String>,
    /// Files that come, or come anew.
    pub added: Vec<(IndexEntry, LineDetail, TermPositions)>,
}

/// The files of the index, and where a word stands in them by their numbers.
#[derive(Debug, Default)]
pub struct IndexEntries {
    /// By number.
    pub files: Vec<(i64, IndexEntry)>,
}

/// The open index.
#[derive(Debug)]
pub struct PostingsDb {
    conn: Connection,
    path: PathBuf,
}

impl PostingsDb {
    /// Opens the index, and makes it where there is none. One that is torn or of another version, or
    /// that was made under another `view`, is emptied.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says: the folder cannot be written, another process holds it.
    pub fn open(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
        Self::open_with_timeout(path, view, WAIT)
    }

    /// Opens the index like [`PostingsDb::open`] to keep it up to date for others: where one of them is at
    /// it, all that is asked of it is refused almost at once.
    ///
    /// # Errors
    ///
    /// Like [`PostingsDb::open`].
    pub fn open_in_background(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
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

    /// Removes the index; it is made anew when it is needed.
    pub fn remove(path: &Path) {
        cache_db::remove(path);
    }

    /// Reads the whole index and says what is wrong with it; `None` for one that is sound or not
    /// there.
    pub fn find_damage(path: &Path) -> Option<String> {
        cache_db::find_damage(path)
    }

    /// Sees the index as it stands now until `PostingsDb::end_read`, whoever changes it meanwhile: numbers
    /// of files and the places that name them belong together.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn begin_read(&self) -> Result<(), CacheDbError> {
        self.query(|conn| if conn.is_autocommit() { conn.execute_batch("BEGIN") } else { Ok(()) })
    }

    /// Ends `PostingsDb::begin_read`.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn end_read(&self) -> Result<(), CacheDbError> {
        self.query(|conn| if conn.is_autocommit() { Ok(()) } else { conn.execute_batch("COMMIT") })
    }

    /// Returns the files of the index.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn entries(&self) -> Result<IndexEntries, CacheDbError> {
        self.query(|conn| {
            let mut asked = conn.prepare(
                "SELECT id, path, bucket, inode, size, mtime, hash, input, head FROM file",
            )?;
            let rows = asked.query_map([], |row| {
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

    /// Returns what is known of the lines of the file with this number.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn line_detail(&self, file: i64) -> Result<LineDetail, CacheDbError> {
        self.query(|conn| {
            let mut asked =
                conn.prepare_cached("SELECT lines, cites FROM detail WHERE file = ?1")?;
            asked.query_row([file], |row| Ok(LineDetail { lines: row.get(0)?, cites: row.get(1)? }))
        })
    }

    /// Calls `each` with the number of a file and where a word stands in it, for all files.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn for_each_position(
        &self,
        buckets: &[i64],
        term: u64,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), CacheDbError> {
        self.query(|conn| {
            let mut asked =
                conn.prepare_cached("SELECT places FROM posting WHERE bucket = ?1 AND term = ?2")?;
            for bucket in buckets {
                let mut rows = asked.query(params![bucket, term.cast_signed()])?;
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

    /// Returns a number that was kept with the index.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn counter(&self, name: &str) -> Result<Option<u64>, CacheDbError> {
        self.query(|conn| read_counter(conn, name))
    }

    /// Keeps numbers with the index.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn set_counters(&self, numbers: &[(&str, u64)]) -> Result<(), CacheDbError> {
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

    /// Returns how often the index was changed.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn change_count(&self) -> Result<u64, CacheDbError> {
        Ok(self.counter(CHANGES)?.unwrap_or(0))
    }

    /// Changes the index, wholly or not at all.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn apply(&mut self, change: &IndexChange) -> Result<(), CacheDbError> {
        let cache = |size| self.query(|conn| conn.pragma_update(None, "cache_size", size));
        cache(WRITE_CACHE_SIZE)?;
        let changed = self.try_apply(change);
        changed.map_err(|source| CacheDbError { path: self.path.clone(), source })
    }

    fn try_apply(&mut self, change: &IndexChange) -> rusqlite::Result<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let come = change.added.iter().map(|(it, ..)| &it.path);
        let mut touched: BTreeMap<i64, BucketChange<'_>> = BTreeMap::new();
        let changes = read_counter(&tx, CHANGES)?.unwrap_or(0) + 1;
        tx.execute(
            "INSERT OR REPLACE INTO about VALUES (?1, ?2)",
            params![CHANGES, changes.to_le_bytes()],
        )?;
        {
            let mut find = tx.prepare("SELECT id, bucket FROM file WHERE path = ?1")?;
            let mut drop = tx.prepare("DELETE FROM file WHERE id = ?1")?;
            let mut drop_detail = tx.prepare("DELETE FROM detail WHERE file = ?1")?;
            for path in change.removed.iter().chain(come) {
                let mut rows = find.query([path])?;
                if let Some(row) = rows.next()? {
                    let (id, bucket): (i64, i64) = (row.get(0)?, row.get(1)?);
                    touched.entry(bucket).or_default().0.insert(id);
                    drop.execute([id])?;
                    drop_detail.execute([id])?;
                }
            }
            // A number that goes must not come back for another file in the same change.
            let next: i64 =
                tx.query_row("SELECT coalesce(max(id), 0) + 1 FROM file", [], |row| row.get(0))?;
            let gone = touched.values().flat_map(|it| it.0.iter()).max().copied().unwrap_or(0);
            let numbers = next.max(gone + 1)..;
            let mut add =
                tx.prepare("INSERT INTO file VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
            let mut add_detail = tx.prepare("INSERT INTO detail VALUES (?1, ?2, ?3)")?;
            for (number, (entry, detail, places)) in numbers.zip(&change.added) {
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
                touched.entry(entry.bucket).or_default().1.push((number, places));
            }
            for (bucket, (gone, come)) in &touched {
                change_bucket(&tx, *bucket, gone, come)?;
            }
        }
        tx.commit()
    }

    fn query<T>(
        &self,
        ask: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, CacheDbError> {
        ask(&self.conn).map_err(|source| CacheDbError { path: self.path.clone(), source })
    }
}

/// The name of the number of changes.
const CHANGES: &str = "changes";

fn read_counter(conn: &Connection, name: &str) -> rusqlite::Result<Option<u64>> {
    let mut asked = conn.prepare_cached("SELECT value FROM about WHERE name = ?1")?;
    match asked.query_row([name], |row| row.get::<_, [u8; 8]>(0)) {
        Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
        found => Ok(Some(u64::from_le_bytes(found?))),
    }
}

/// What happens to a bucket: the numbers that go, and the files that come.
type BucketChange<'a> = (HashSet<i64>, Vec<(i64, &'a TermPositions)>);

fn change_bucket(
    tx: &rusqlite::Transaction<'_>,
    bucket: i64,
    gone: &HashSet<i64>,
    come: &[(i64, &TermPositions)],
) -> rusqlite::Result<()> {
    let mut changed: BTreeMap<i64, Vec<u8>> = BTreeMap::new();
    for (file, places) in come {
        for (term, places) in *places {
            let all = changed.entry(term.cast_signed()).or_default();
            pack::push_file(all, *file, places);
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
            let was = row.get_ref(1)?.as_blob()?;
            let mut kept = Vec::with_capacity(was.len());
            let mut reader = VarintReader::new(was);
            while let Some((file, places)) = reader.next_file() {
                if !gone.contains(&file) {
                    pack::push_file(&mut kept, file, places);
                }
            }
            if let Some(new) = changed.get_mut(&term) {
                kept.append(new);
                *new = kept;
            } else if kept.is_empty() {
                emptied.push(term);
            } else if kept.len() != was.len() {
                changed.insert(term, kept);
            }
        }
    }
    for term in emptied {
        drop.execute(params![bucket, term])?;
    }
    for (term, places) in changed {
        put.execute(params![bucket, term, places])?;
    }
    Ok(())
}

/// What was seen of the files, so that a scan reads only what changed.
pub fn known_files(files: &[(i64, IndexEntry)]) -> HashMap<String, KnownFile> {
    let seen = |it: &IndexEntry| (it.path.clone(), KnownFile { stamp: it.stamp, hash: it.hash });
    files.iter().map(|(_, it)| seen(it)).collect()
}

impl CacheDbError {
    /// Returns whether making the index anew would help.
    pub fn is_corrupt(&self) -> bool {
        cache_db::is_corrupt(&self.source)
    }
}
