//! The embedding vectors of one root's lines, without readable text.
//!
//! A SQLite database and a cache (see [`super::cache_db`]): losing it costs only what the embedding server is
//! paid to make it again. For each line it holds a hash, the signs of the vector's components, and the
//! components with one byte each. A search compares all signs and reads the bytes of the best lines only
//! ("binary quantization with rescoring"; signs after Charikar, "Similarity Estimation Techniques from
//! Rounding Algorithms", 2002).

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

/// How long a statement waits for another process.
const WAIT: Duration = cache_db::BUSY_TIMEOUT;

/// A file has fewer lines than this.
const LINES_MAX: i64 = 1 << 24;

/// The name of the counter of files whose vectors are incomplete.
const PENDING_FILES: &str = "left";

/// A file whose lines have vectors.
#[derive(Clone, Debug)]
pub struct VectorFile {
    /// Relative to the root.
    pub path: String,
    /// Reveals a change without reading the file.
    pub stamp: FileStat,
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// The hash of everything its sanitized view depends on.
    pub input_hash: ContentHash,
    /// Whether all its lines have vectors.
    pub is_complete: bool,
}

/// A line with a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineKey {
    /// Its number, from 1.
    pub number: u32,
    /// The hash of the line and of the text sent to the server.
    pub hash: u64,
}

/// A packed vector.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedVector {
    /// The sign of each component, one bit each.
    pub signs: Vec<u8>,
    /// The components, one byte each.
    pub code: Vec<u8>,
}

/// The open database.
#[derive(Debug)]
pub struct VectorDb {
    conn: Connection,
    path: PathBuf,
}

impl VectorDb {
    /// Opens the database for writing; one that was made for another `view` is emptied.
    pub(crate) fn open(path: &Path, view: ContentHash) -> Result<Self, CacheDbError> {
        Self::from_opened(path, cache_db::open(path, &SPEC, view, WAIT).map(Some))?.ok_or_else(
            || CacheDbError { path: path.to_owned(), source: rusqlite::Error::InvalidQuery },
        )
    }

    /// Opens the database if it exists and was made for this `view`; creates and empties none.
    pub(crate) fn open_existing(
        path: &Path,
        view: ContentHash,
    ) -> Result<Option<Self>, CacheDbError> {
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

    /// Reads the whole database and describes its damage; `None` if it is sound or does not exist.
    pub fn find_damage(path: &Path) -> Option<String> {
        cache_db::find_damage(path)
    }

    /// Removes the vectors of all files that have changed. If that fails, removes the whole database.
    pub fn remove_changed(path: &Path, is_unchanged: &dyn Fn(&VectorFile) -> bool) {
        if !path.exists() {
            return;
        }
        let remove = || -> rusqlite::Result<()> {
            let conn = cache_db::connect(path, WAIT)?;
            let mut vectors = Self { conn, path: path.to_owned() };
            let files = read_files(&vectors.conn)?;
            let changed: Vec<String> =
                files.into_iter().filter(|it| !is_unchanged(it)).map(|it| it.path).collect();
            vectors.try_replace_files(&changed, &[])
        };
        if remove().is_err() {
            cache_db::remove(path);
        }
    }

    /// Returns the files.
    pub(crate) fn files(&self) -> Result<Vec<VectorFile>, CacheDbError> {
        read_files(&self.conn).map_err(|it| self.error(it))
    }

    /// Returns the vectors of a file, by [`LineKey::hash`].
    pub(crate) fn vectors_of(
        &self,
        path: &str,
    ) -> Result<HashMap<u64, PackedVector>, CacheDbError> {
        let read = || -> rusqlite::Result<HashMap<u64, PackedVector>> {
            let mut found = HashMap::new();
            let mut query = self.conn.prepare_cached(
                "SELECT file.id, keys, signs FROM file JOIN line ON line.file = file.id \
                 WHERE path = ?1",
            )?;
            let mut code = self.conn.prepare_cached("SELECT code FROM code WHERE id = ?1")?;
            let mut rows = query.query([path])?;
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

    /// Removes and adds files in one transaction.
    pub(crate) fn replace_files(
        &mut self,
        removed: &[String],
        added: &[(VectorFile, Vec<(LineKey, PackedVector)>)],
    ) -> Result<(), CacheDbError> {
        self.try_replace_files(removed, added).map_err(|it| self.error(it))
    }

    fn try_replace_files(
        &mut self,
        removed: &[String],
        added: &[(VectorFile, Vec<(LineKey, PackedVector)>)],
    ) -> rusqlite::Result<()> {
        let tx = self.conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        {
            let mut find = tx.prepare_cached("SELECT id FROM file WHERE path = ?1")?;
            let mut drop_file = tx.prepare_cached("DELETE FROM file WHERE id = ?1")?;
            let mut drop_line = tx.prepare_cached("DELETE FROM line WHERE file = ?1")?;
            let mut drop_code = tx.prepare_cached("DELETE FROM code WHERE id BETWEEN ?1 AND ?2")?;
            for path in removed.iter().chain(added.iter().map(|it| &it.0.path)) {
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
            for (file, lines) in added {
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

    /// Calls `each` for every file, with its number, its path, its packed line keys, and their signs.
    pub(crate) fn for_each_file(
        &self,
        mut each: impl FnMut(i64, &str, &[u8], &[u8]),
    ) -> Result<(), CacheDbError> {
        let mut scan = || -> rusqlite::Result<()> {
            let mut query = self.conn.prepare_cached(
                "SELECT file.id, path, keys, signs FROM line JOIN file ON file.id = line.file",
            )?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let path = row.get_ref(1)?.as_str()?;
                each(row.get(0)?, path, row.get_ref(2)?.as_blob()?, row.get_ref(3)?.as_blob()?);
            }
            Ok(())
        };
        scan().map_err(|it| self.error(it))
    }

    /// Returns the components of a vector, one byte each.
    pub(crate) fn code(&self, file: i64, row: usize) -> Result<Vec<u8>, CacheDbError> {
        let read = || -> rusqlite::Result<Vec<u8>> {
            let mut query = self.conn.prepare_cached("SELECT code FROM code WHERE id = ?1")?;
            let row = i64::try_from(row).unwrap_or(LINES_MAX - 1);
            query.query_row([file * LINES_MAX + row], |row| row.get(0))
        };
        read().map_err(|it| self.error(it))
    }

    /// Returns how many lines have vectors.
    pub(crate) fn count(&self) -> Result<u64, CacheDbError> {
        // SQLite knows the length of the keys without reading them.
        let sql = "SELECT ifnull(sum(length(keys)), 0) FROM line";
        let bytes: rusqlite::Result<u64> = self.conn.query_row(sql, [], |row| row.get(0));
        Ok(bytes.map_err(|it| self.error(it))? / KEY_BYTES as u64)
    }

    /// Returns the recorded number of files whose vectors are incomplete; `None` before the first record.
    pub(crate) fn pending_files(&self) -> Result<Option<u64>, CacheDbError> {
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

    /// Records how many files have incomplete vectors.
    pub(crate) fn record_pending_files(&self, count: u64) -> Result<(), CacheDbError> {
        if self.pending_files()? == Some(count) {
            return Ok(());
        }
        let recorded = self.conn.execute(
            "INSERT OR REPLACE INTO about VALUES (?1, ?2)",
            params![PENDING_FILES, count.to_le_bytes()],
        );
        recorded.map(drop).map_err(|it| self.error(it))
    }

    fn error(&self, source: rusqlite::Error) -> CacheDbError {
        CacheDbError { path: self.path.clone(), source }
    }
}

/// The size of a packed [`LineKey`].
pub const KEY_BYTES: usize = 12;

/// Unpacks line keys.
pub fn unpack_keys(packed: &[u8]) -> Vec<LineKey> {
    let (keys, _) = packed.as_chunks::<KEY_BYTES>();
    keys.iter().map(unpack_key).collect()
}

fn unpack_key(packed: &[u8; KEY_BYTES]) -> LineKey {
    let [a, b, c, d, hash @ ..] = *packed;
    LineKey { number: u32::from_le_bytes([a, b, c, d]), hash: u64::from_le_bytes(hash) }
}

fn read_files(conn: &Connection) -> rusqlite::Result<Vec<VectorFile>> {
    let mut query =
        conn.prepare_cached("SELECT path, inode, size, mtime, hash, input, whole FROM file")?;
    let rows = query.query_map([], |row| {
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

/// Returns stamp and hash of each file, so that a scan reads only changed files.
pub fn known_files(files: &[VectorFile]) -> HashMap<String, KnownFile> {
    let entry = |it: &VectorFile| (it.path.clone(), KnownFile { stamp: it.stamp, hash: it.hash });
    files.iter().map(entry).collect()
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
    fn vectors_are_removed_with_their_file() {
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
        // Vectors of another model are not mixed with these, and `open_existing` loses nothing.
        assert!(VectorDb::open_existing(&path, ContentHash::of("other")).unwrap().is_none());
        let vectors = VectorDb::open_existing(&path, view).unwrap().unwrap();
        assert_eq!((vectors.count().unwrap(), vectors.files().unwrap().len()), (1, 1));
        vectors.record_pending_files(5).unwrap();
        assert_eq!(vectors.pending_files().unwrap(), Some(5));
        drop(vectors);
        assert_eq!(VectorDb::open(&path, ContentHash::of("other")).unwrap().count().unwrap(), 0);
    }
}
