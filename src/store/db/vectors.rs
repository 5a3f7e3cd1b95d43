//! The vectors of one root's lines: what stands near what in meaning, and nothing that can be read.
//!
//! A SQLite database of its own, made from the files by a server that makes vectors, and thrown away
//! without loss but of what the server was paid. It holds numbers alone: of each line a hash, the signs of
//! its vector, and the vector in a byte a number. All signs are looked through, of the best the bytes are
//! read ("binary quantization with rescoring": signs first by Charikar, "Similarity Estimation Techniques
//! from Rounding Algorithms", 2002). What it is for, and what the numbers mean, is for the search.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, TransactionBehavior, params};

use super::{
    cache_db::{self, CacheDbSpec},
    search_index::CacheDbError,
};
use crate::memory::hash::ContentHash;
use crate::store::fs::{inventory::FileStat, vault::scan::KnownFile};

const SPEC: CacheDbSpec = CacheDbSpec {
    version: 1,
    page_size: 8192,
    tables: &["file", "line", "code", "about"],
    schema: "
        CREATE TABLE file (
            id INTEGER PRIMARY KEY,
            path TEXT NOT NULL UNIQUE,
            inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime INTEGER NOT NULL,
            hash BLOB NOT NULL, input BLOB NOT NULL, whole INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE line (
            file INTEGER PRIMARY KEY, keys BLOB NOT NULL, signs BLOB NOT NULL
        ) STRICT;
        CREATE TABLE code (id INTEGER PRIMARY KEY, code BLOB NOT NULL) STRICT;
        CREATE TABLE about (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID;
    ",
};

/// How long one waits for who writes.
const WAIT: Duration = cache_db::BUSY_TIMEOUT;

/// A file has fewer lines than this.
const LINES_MAX: i64 = 1 << 24;

/// How many files have no vectors yet, and how many lines have some.
const PENDING_FILES: &str = "left";

/// A file whose lines have vectors.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// Relative to the root.
    pub path: String,
    /// By which a change is told without reading.
    pub stamp: FileStat,
    /// Of its bytes.
    pub hash: ContentHash,
    /// Of what its served view depends on.
    pub input_hash: ContentHash,
    /// Whether all its lines have one.
    pub is_complete: bool,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineKey {
    /// Its number, from 1.
    pub number: u32,
    /// Of what was said to the server, and of the line.
    pub hash: u64,
}

/// A vector, packed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedVector {
    /// A bit for each number.
    pub signs: Vec<u8>,
    /// The numbers.
    pub code: Vec<u8>,
}

/// The open database.
#[derive(Debug)]
pub struct VectorDb {
    conn: Connection,
    path: PathBuf,
}

impl VectorDb {
    /// Opens the database to write to it; one that was made for another `view` is emptied.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn open(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
        Self::from_opened(path, cache_db::open(path, &SPEC, view, WAIT).map(Some))?.ok_or_else(
            || CacheDbError { path: path.to_owned(), source: rusqlite::Error::InvalidQuery },
        )
    }

    /// Opens the database if it is there and of this `view`; makes and empties none.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn open_existing(path: &Path, view: ContentHash) -> Result<Option<Self>, CacheDbError> {
        Self::from_opened(path, cache_db::open_existing(path, &SPEC, view, WAIT))
    }

    fn from_opened(
        path: &Path,
        opened: rusqlite::Result<Option<Connection>>,
    ) -> Result<Option<Self>, CacheDbError> {
        let at = |source| CacheDbError { path: path.to_owned(), source };
        Ok(opened.map_err(at)?.map(|conn| Self { conn, path: path.to_owned() }))
    }

    /// Removes the database.
    pub fn remove(path: &Path) {
        cache_db::remove(path);
    }

    /// Reads the whole database and says what is wrong with it; `None` for one that is sound or not there.
    pub fn find_damage(path: &Path) -> Option<String> {
        cache_db::find_damage(path)
    }

    /// Lets go of the lines of all files that are not as they were. Where that cannot be done, the whole
    /// database goes.
    pub fn remove_changed(path: &Path, is_as_it_was: &dyn Fn(&VectorFile) -> bool) {
        if !path.exists() {
            return;
        }
        let let_go = || -> rusqlite::Result<()> {
            let conn = cache_db::connect(path, WAIT)?;
            let mut open = Self { conn, path: path.to_owned() };
            let files = read_files(&open.conn)?;
            let gone: Vec<String> =
                files.into_iter().filter(|it| !is_as_it_was(it)).map(|it| it.path).collect();
            open.try_replace_files(&gone, &[])
        };
        if let_go().is_err() {
            cache_db::remove(path);
        }
    }

    /// Returns the files.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn files(&self) -> Result<Vec<VectorFile>, CacheDbError> {
        read_files(&self.conn).map_err(|it| self.error(it))
    }

    /// Returns the vectors of a file, by what [`LineKey::hash`] tells of the line.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn vectors_of(&self, path: &str) -> Result<HashMap<u64, PackedVector>, CacheDbError> {
        let read = || -> rusqlite::Result<HashMap<u64, PackedVector>> {
            let mut found = HashMap::new();
            let mut asked = self.conn.prepare_cached(
                "SELECT file.id, keys, signs FROM file JOIN line ON line.file = file.id \
                 WHERE path = ?1",
            )?;
            let mut code = self.conn.prepare_cached("SELECT code FROM code WHERE id = ?1")?;
            let mut rows = asked.query([path])?;
            let Some(row) = rows.next()? else { return Ok(found) };
            let id: i64 = row.get(0)?;
            let (keys, signs) =
                (unpack_keys(row.get_ref(1)?.as_blob()?), row.get_ref(2)?.as_blob()?);
            let width = signs.len() / keys.len().max(1);
            for (at, key) in (0_i64..).zip(&keys) {
                let from = usize::try_from(at).unwrap_or(0) * width;
                let signs = signs.get(from..from + width).unwrap_or_default().to_vec();
                let code = code.query_row([id * LINES_MAX + at], |row| row.get(0))?;
                found.insert(key.hash, PackedVector { signs, code });
            }
            Ok(found)
        };
        read().map_err(|it| self.error(it))
    }

    /// Takes files out and puts files in, wholly or not at all.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn replace_files(
        &mut self,
        gone: &[String],
        come: &[(VectorFile, Vec<(LineKey, PackedVector)>)],
    ) -> Result<(), CacheDbError> {
        self.try_replace_files(gone, come).map_err(|it| self.error(it))
    }

    fn try_replace_files(
        &mut self,
        gone: &[String],
        come: &[(VectorFile, Vec<(LineKey, PackedVector)>)],
    ) -> rusqlite::Result<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut find = tx.prepare_cached("SELECT id FROM file WHERE path = ?1")?;
            let mut drop_file = tx.prepare_cached("DELETE FROM file WHERE id = ?1")?;
            let mut drop_line = tx.prepare_cached("DELETE FROM line WHERE file = ?1")?;
            let mut drop_code = tx.prepare_cached("DELETE FROM code WHERE id BETWEEN ?1 AND ?2")?;
            for path in gone.iter().chain(come.iter().map(|it| &it.0.path)) {
                let mut rows = find.query([path])?;
                if let Some(row) = rows.next()? {
                    let id: i64 = row.get(0)?;
                    drop_file.execute([id])?;
                    drop_line.execute([id])?;
                    drop_code.execute([id * LINES_MAX, (id + 1) * LINES_MAX - 1])?;
                }
            }
            let mut add_file = tx.prepare_cached(
                "INSERT INTO file (path, inode, size, mtime, hash, input, whole) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            let mut add_line = tx.prepare_cached("INSERT INTO line VALUES (?1, ?2, ?3)")?;
            let mut add_code = tx.prepare_cached("INSERT INTO code VALUES (?1, ?2)")?;
            for (file, lines) in come {
                let FileStat { inode, size, mtime_ns } = file.stamp;
                add_file.execute(params![
                    file.path,
                    inode.cast_signed(),
                    size.cast_signed(),
                    mtime_ns,
                    file.hash.as_bytes(),
                    file.input_hash.as_bytes(),
                    file.is_complete,
                ])?;
                let id = tx.last_insert_rowid();
                let mut keys = Vec::with_capacity(lines.len() * KEY_BYTES);
                let mut signs = Vec::new();
                for (at, (key, packed)) in (0..LINES_MAX).zip(lines) {
                    keys.extend(key.number.to_le_bytes());
                    keys.extend(key.hash.to_le_bytes());
                    signs.extend(&packed.signs);
                    add_code.execute(params![id * LINES_MAX + at, packed.code])?;
                }
                add_line.execute(params![id, keys, signs])?;
            }
        }
        tx.commit()
    }

    /// Calls `each` with a file's number and path, its lines, and their signs, one after the other.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn for_each_file(
        &self,
        mut each: impl FnMut(i64, &str, &[u8], &[u8]),
    ) -> Result<(), CacheDbError> {
        let mut scan = || -> rusqlite::Result<()> {
            let mut asked = self.conn.prepare_cached(
                "SELECT file.id, path, keys, signs FROM line JOIN file ON file.id = line.file",
            )?;
            let mut rows = asked.query([])?;
            while let Some(row) = rows.next()? {
                let path = row.get_ref(1)?.as_str()?;
                each(row.get(0)?, path, row.get_ref(2)?.as_blob()?, row.get_ref(3)?.as_blob()?);
            }
            Ok(())
        };
        scan().map_err(|it| self.error(it))
    }

    /// Returns the bytes of a vector.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn code(&self, file: i64, row: usize) -> Result<Vec<u8>, CacheDbError> {
        let read = || -> rusqlite::Result<Vec<u8>> {
            let mut asked = self.conn.prepare_cached("SELECT code FROM code WHERE id = ?1")?;
            let row = i64::try_from(row).unwrap_or(LINES_MAX - 1);
            asked.query_row([file * LINES_MAX + row], |row| row.get(0))
        };
        read().map_err(|it| self.error(it))
    }

    /// Returns how many lines have vectors.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn count(&self) -> Result<u64, CacheDbError> {
        // Their keys are told without reading them.
        let sql = "SELECT ifnull(sum(length(keys)), 0) FROM line";
        let bytes: rusqlite::Result<u64> = self.conn.query_row(sql, [], |row| row.get(0));
        Ok(bytes.map_err(|it| self.error(it))? / KEY_BYTES as u64)
    }

    /// Returns how many files were without some of their vectors when that was last looked at; `None`
    /// before the first time.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn pending_files(&self) -> Result<Option<u64>, CacheDbError> {
        let found = self.conn.query_row(
            "SELECT value FROM about WHERE name = ?1",
            [PENDING_FILES],
            |row| row.get(0),
        );
        match found {
            Err(rusqlite::Error::QueryReturnedNoRows) => Ok(None),
            found => Ok(Some(u64::from_le_bytes(found.map_err(|it| self.error(it))?))),
        }
    }

    /// Notes how many files are without some of their vectors.
    ///
    /// # Errors
    ///
    /// Returns what SQLite says.
    pub fn record_pending_files(&self, left: u64) -> Result<(), CacheDbError> {
        if self.pending_files()? == Some(left) {
            return Ok(());
        }
        let noted = self.conn.execute(
            "INSERT OR REPLACE INTO about VALUES (?1, ?2)",
            params![PENDING_FILES, left.to_le_bytes()],
        );
        noted.map(drop).map_err(|it| self.error(it))
    }

    fn error(&self, source: rusqlite::Error) -> CacheDbError {
        CacheDbError { path: self.path.clone(), source }
    }
}

/// How long a packed [`LineKey`] is.
pub const KEY_BYTES: usize = 12;

/// Reads lines that were packed.
pub fn unpack_keys(packed: &[u8]) -> Vec<LineKey> {
    let (keys, _) = packed.as_chunks::<KEY_BYTES>();
    keys.iter().map(unpack_key).collect()
}

fn unpack_key(packed: &[u8; KEY_BYTES]) -> LineKey {
    let [a, b, c, d, hash @ ..] = *packed;
    LineKey { number: u32::from_le_bytes([a, b, c, d]), hash: u64::from_le_bytes(hash) }
}

fn read_files(conn: &Connection) -> rusqlite::Result<Vec<VectorFile>> {
    let mut asked =
        conn.prepare_cached("SELECT path, inode, size, mtime, hash, input, whole FROM file")?;
    let rows = asked.query_map([], |row| {
        let stamp = FileStat {
            inode: row.get::<_, i64>(1)?.cast_unsigned(),
            size: row.get::<_, i64>(2)?.cast_unsigned(),
            mtime_ns: row.get(3)?,
        };
        let hash = |at| row.get::<_, [u8; 32]>(at).map(ContentHash::from_bytes);
        let (hash, input) = (hash(4)?, hash(5)?);
        Ok(VectorFile {
            path: row.get(0)?,
            stamp,
            hash,
            input_hash: input,
            is_complete: row.get(6)?,
        })
    })?;
    rows.collect()
}

/// What was seen of the files, so that a scan reads only what changed.
pub fn known_files(known: &[VectorFile]) -> HashMap<String, KnownFile> {
    let seen = |it: &VectorFile| (it.path.clone(), KnownFile { stamp: it.stamp, hash: it.hash });
    known.iter().map(seen).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> VectorFile {
        VectorFile {
            path: path.to_owned(),
            stamp: FileStat::default(),
            hash: ContentHash::of("bytes"),
            input_hash: ContentHash::of("input"),
            is_complete: true,
        }
    }

    fn lines(hashes: &[u64]) -> Vec<(LineKey, PackedVector)> {
        let packed =
            |it: u64| PackedVector { signs: vec![it.to_le_bytes()[0]; 2], code: vec![7; 9] };
        let numbered = (1..).zip(hashes);
        numbered.map(|(number, &hash)| (LineKey { number, hash }, packed(hash))).collect()
    }

    #[test]
    fn vectors_go_with_their_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("vectors.db");
        let view = ContentHash::of("model");
        assert!(VectorDb::open_existing(&path, view).unwrap().is_none());
        let mut vectors = VectorDb::open(&path, view).unwrap();
        let two = [(file("a.md"), lines(&[1, 2])), (file("b.md"), lines(&[3]))];
        vectors.replace_files(&[], &two).unwrap();
        assert_eq!(vectors.count().unwrap(), 3);
        vectors.replace_files(&[], &[(file("a.md"), lines(&[4]))]).unwrap();
        let mut seen = Vec::new();
        vectors
            .for_each_file(|_, path, keys, signs| {
                seen.push((path.to_owned(), unpack_keys(keys), signs.to_vec()));
            })
            .unwrap();
        seen.sort_by(|a, b| a.0.cmp(&b.0));
        let key = |hash| vec![LineKey { number: 1, hash }];
        let expected =
            [("a.md".to_owned(), key(4), vec![4, 4]), ("b.md".to_owned(), key(3), vec![3, 3])];
        assert_eq!(seen, expected);
        assert_eq!(vectors.vectors_of("a.md").unwrap()[&4].code, vec![7; 9]);
        drop(vectors);
        VectorDb::remove_changed(&path, &|it| it.path == "b.md");
        // Another model's are not mixed with these, and nothing is lost by asking.
        assert!(VectorDb::open_existing(&path, ContentHash::of("other")).unwrap().is_none());
        let vectors = VectorDb::open_existing(&path, view).unwrap().unwrap();
        assert_eq!((vectors.count().unwrap(), vectors.files().unwrap().len()), (1, 1));
        vectors.record_pending_files(5).unwrap();
        assert_eq!(vectors.pending_files().unwrap(), Some(5));
        drop(vectors);
        assert_eq!(VectorDb::open(&path, ContentHash::of("other")).unwrap().count().unwrap(), 0);
    }
}
