//! A checksum in every row (the column `seal`), which reveals flipped bits.
//!
//! SQLite checks the structure of its pages, not the values in them, and receipts, history and reasons cannot
//! be compared with any file. A row whose other values do not match its checksum was damaged. Lost rows are
//! found by SQLite, which accounts for every byte of a page, and by the checksums of the rows that refer to
//! them.
//!
//! Rows of [`WATCHED_TABLES`] are written in many places: a hook of SQLite reports which ones a transaction
//! changed, and their checksums are written before it commits. All others are written only in
//! [`super::record`] and [`super::review`], with their checksums.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use rusqlite::{Connection, Row, Transaction, types::ValueRef};

use super::{Lineage, LineageError};

/// The tables whose checksums are written when a transaction ends, each with the values in other tables that
/// the checksum of a row covers.
const WATCHED_TABLES: [(&str, &str); 4] = [
    (
        "run",
        "(SELECT group_concat(taken) FROM \
         (SELECT taken FROM taken_back WHERE taken_back.run = run.id ORDER BY taken))",
    ),
    (
        "activity",
        "(SELECT group_concat(path || ' ' || hash, '|') FROM (SELECT path, hash FROM used \
         JOIN entity ON entity.id = used.entity WHERE used.activity = activity.id \
         ORDER BY path, hash)), \
         (SELECT group_concat(path || ' ' || hash, '|') FROM (SELECT path, hash \
         FROM was_generated_by JOIN entity ON entity.id = was_generated_by.entity \
         WHERE was_generated_by.activity = activity.id ORDER BY path, hash))",
    ),
    ("intent", "NULL"),
    ("version", "NULL"),
];

/// The other tables: name, key for `UPDATE`, and the values that the checksum covers.
const OTHER_TABLES: [(&str, &str, &str); 9] = [
    (
        "entity",
        "id",
        "kind, path, line, hash, \
         (SELECT group_concat(stem || ':' || line_start || '-' || line_end, ';') FROM \
         (SELECT stem, line_start, line_end FROM was_derived_from WHERE item = entity.id \
         ORDER BY stem, line_start))",
    ),
    ("document", "path", "path, kind, (SELECT hash FROM entity WHERE entity.id = document.entity)"),
    (
        "log_lines",
        "stem",
        "stem, (SELECT path || ' ' || hash FROM entity WHERE entity.id = log_lines.entity), \
         first_line, hashes",
    ),
    ("coverage", "path, stem, line_start", "path, stem, line_start, line_end, reason"),
    ("extracted", "stem", "stem, hash"),
    ("held", "stem, line", "stem, line, why, what"),
    ("proposal", "id", "fingerprint, period, target, change, sources, state, at"),
    ("folder", "path", "path, device"),
    ("file", "path", "path, inode, size, mtime_ns, hash, seen_ns"),
];

/// How many damaged rows are reported.
const REPORTED_ROWS_MAX: usize = 20;

/// The rows of [`WATCHED_TABLES`] that the current transaction has changed: index of the table and rowid.
#[derive(Clone, Debug, Default)]
pub(super) struct ChangedRows(Arc<Mutex<BTreeSet<(usize, i64)>>>);

/// The hash of a row's values, in order.
#[derive(Debug, Default)]
pub(super) struct RowChecksum(blake3::Hasher);

impl RowChecksum {
    /// Adds a value.
    fn add(mut self, value: ValueRef<'_>) -> Self {
        let (tag, bytes): (u8, &[u8]) = match &value {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(it) => (1, &it.to_be_bytes()),
            ValueRef::Real(it) => (2, &it.to_be_bytes()),
            ValueRef::Text(it) => (3, it),
            ValueRef::Blob(it) => (4, it),
        };
        self.0.update(&[tag]);
        self.0.update(&bytes.len().to_be_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds text.
    pub(super) fn text(self, text: &str) -> Self {
        self.add(ValueRef::Text(text.as_bytes()))
    }

    /// Adds a number.
    pub(super) fn int(self, number: i64) -> Self {
        self.add(ValueRef::Integer(number))
    }

    /// Adds bytes.
    pub(super) fn blob(self, bytes: &[u8]) -> Self {
        self.add(ValueRef::Blob(bytes))
    }

    /// Adds a missing value.
    pub(super) fn null(self) -> Self {
        self.add(ValueRef::Null)
    }

    /// Returns the checksum as its column stores it.
    pub(super) fn finish(self) -> i64 {
        let hash = self.0.finalize();
        hash.as_bytes()[..8].iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))
    }

    /// Adds the columns of a row from `from` on, except the checksum itself.
    fn add_row(mut self, row: &Row<'_>, from: usize) -> rusqlite::Result<Self> {
        for at in from..row.as_ref().column_count() {
            if row.as_ref().column_name(at)? != "seal" {
                self = self.add(row.get_ref(at)?);
            }
        }
        Ok(self)
    }
}

impl ChangedRows {
    /// Watches the changes of a connection.
    pub(super) fn watch(conn: &mut Connection) -> rusqlite::Result<Self> {
        let changed = Self::default();
        let rows = changed.clone();
        conn.update_hook(Some(move |_, _: &str, table: &str, row| {
            if let Some(at) = WATCHED_TABLES.iter().position(|(name, _)| *name == table) {
                rows.lock().insert((at, row));
            }
        }))?;
        Ok(changed)
    }

    /// Discards the changes of a transaction that did not commit.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    /// Writes the checksums of the rows that the transaction changed.
    pub(super) fn write_checksums(&self, tx: &Transaction<'_>) -> rusqlite::Result<()> {
        let changed = std::mem::take(&mut *self.lock());
        for (at, id) in changed {
            let (table, _) = WATCHED_TABLES[at];
            let Some(query) = row_query(table) else { continue };
            let mut query = tx.prepare_cached(&query)?;
            let mut rows = query.query([id])?;
            // The row may have been deleted.
            let Some(row) = rows.next()? else { continue };
            let checksum = row_checksum(row)?;
            drop(rows);
            tx.prepare_cached(&format!("UPDATE {table} SET seal = ?2 WHERE id = ?1"))?
                .execute([id, checksum])?;
        }
        // Writing the checksums changed the rows again.
        self.clear();
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<(usize, i64)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the query for a row of a watched table by its number, with the values its checksum covers.
pub(super) fn row_query(table: &str) -> Option<String> {
    let (table, related) = WATCHED_TABLES.iter().find(|(name, _)| *name == table)?;
    Some(format!("SELECT {table}.*, {related} FROM {table} WHERE id = ?1"))
}

/// Returns the checksum that a row of [`row_query`] should have.
pub(super) fn row_checksum(row: &Row<'_>) -> rusqlite::Result<i64> {
    Ok(RowChecksum::default().add_row(row, 0)?.finish())
}

/// Returns for each table its name, its key, and the query for checksum, name, and covered values of every
/// row.
fn table_queries() -> impl Iterator<Item = (&'static str, &'static str, String)> {
    let watched = WATCHED_TABLES.iter().map(|(table, related)| {
        (*table, "id", format!("SELECT seal, id, {table}.*, {related} FROM {table}"))
    });
    let others = OTHER_TABLES.iter().map(|(table, key, values)| {
        let name = key.split(',').next().unwrap_or(key);
        (*table, *key, format!("SELECT seal, {name}, {values} FROM {table}"))
    });
    watched.chain(others)
}

/// Writes the checksum of every row, after the schema has changed.
pub(super) fn checksum_all_rows(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    for (table, key, query) in table_queries() {
        let exists = "SELECT 1 FROM pragma_table_info(?1) WHERE name = 'seal'";
        if !tx.prepare_cached(exists)?.exists([table])? {
            continue;
        }
        let mut query = tx.prepare(&query.replace("SELECT seal, ", &format!("SELECT {key}, ")))?;
        let keys = key.split(',').count();
        let condition: Vec<String> = key
            .split(", ")
            .enumerate()
            .map(|(i, column)| format!("{column} = ?{}", i + 2))
            .collect();
        let mut put =
            tx.prepare(&format!("UPDATE {table} SET seal = ?1 WHERE {}", condition.join(" AND ")))?;
        // All rows are read first, because a table must not change while it is being read.
        let mut updates = Vec::new();
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            let mut values: Vec<rusqlite::types::Value> = Vec::new();
            values.push(RowChecksum::default().add_row(row, keys + 1)?.finish().into());
            for at in 0..keys {
                values.push(row.get(at)?);
            }
            updates.push(values);
        }
        for values in updates {
            put.execute(rusqlite::params_from_iter(values))?;
        }
    }
    Ok(())
}

impl Lineage {
    /// Checks every row, and returns table and name of those that do not match their checksum.
    pub(crate) fn corrupt_rows(&self) -> Result<Vec<String>, LineageError> {
        let mut corrupt = Vec::new();
        for (table, _, query) in table_queries() {
            let found: Vec<String> = self.read(|conn| {
                let mut query = conn.prepare(&query)?;
                let mut rows = query.query([])?;
                let mut found = Vec::new();
                while let Some(row) = rows.next()? {
                    let checksum = RowChecksum::default().add_row(row, 2)?.finish();
                    if row.get_ref(0)? != ValueRef::Integer(checksum)
                        && found.len() < REPORTED_ROWS_MAX
                    {
                        let name = match row.get_ref(1)? {
                            ValueRef::Integer(it) => it.to_string(),
                            ValueRef::Text(it) | ValueRef::Blob(it) => {
                                String::from_utf8_lossy(it).into_owned()
                            }
                            _ => "?".to_owned(),
                        };
                        found.push(format!("{table} {name}"));
                    }
                }
                Ok(found)
            })?;
            corrupt.extend(found);
        }
        corrupt.truncate(REPORTED_ROWS_MAX);
        Ok(corrupt)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::{
        memory::{address::Stem, hash::ContentHash, item::Tier},
        store::db::lineage::{
            jobs::{JobOutcome, NewJob, NewRun, Receipt},
            record::{
                Commit, CoverageRecord, DocumentKind, DocumentRecord, ItemRecord, LogRecord,
                ScannedFile,
            },
        },
    };

    /// Creates a database with a row in every table that a job fills.
    fn filled(path: &std::path::Path) -> Lineage {
        let mut lineage = Lineage::open(path).unwrap();
        let now = "2026-04-06T03:00:00Z".parse().unwrap();
        let run = NewRun { trigger: "tick", version: "1", owner: "1@boot", now };
        let run = lineage.begin_run(&run).unwrap();
        let hash = ContentHash::of("words");
        let job = NewJob {
            fingerprint: hash,
            tier: Tier::Weekly,
            period: "2026-W14".parse().unwrap(),
            engine: "extractive/1".to_owned(),
            inputs: hash,
            now,
        };
        let job = lineage.begin_job(run, &job).unwrap();
        let stem: Stem = "2026-04-02".parse().unwrap();
        let week = "memory/weekly/2026-W14.md".to_owned();
        let log = LogRecord {
            quarantined: Vec::new(),
            stem: stem.clone(),
            path: "memory/2026-04-02.md".to_owned(),
            hash,
            first_line: 1,
            line_hashes: vec![1, 2, 3],
            raw: Some("one\ntwo\nthree\n".into()),
        };
        let citation = Some("2026-04-02:1-2".parse().unwrap());
        let document = DocumentRecord {
            path: week.clone(),
            kind: DocumentKind::Weekly,
            hash,
            items: vec![ItemRecord { line: 5, hash: "a1b2c3d4".to_owned(), citation }],
        };
        let address = crate::memory::address::Address { stem: stem.clone(), line: 3 };
        let coverage = CoverageRecord { path: week, lines: vec![(address, "chatter")] };
        let stamp = ScannedFile { inode: 1, size: 2, mtime_ns: 3, hash, seen_ns: 4 };
        let receipt = Receipt::new(JobOutcome::Written, None, now);
        let commit = Commit {
            job: Some((job, &receipt)),
            used: &["memory/2026-04-02.md".to_owned()],
            documents: &[document],
            logs: &[log],
            coverage: &[coverage],
            extracted: &[(stem, hash)],
            files: &[(PathBuf::from("memory/2026-04-02.md"), stamp)],
            ..Commit::default()
        };
        lineage.commit(&commit).unwrap();
        lineage.end_run(run, now).unwrap();
        lineage
    }

    #[track_caller]
    fn check(change: &str, named: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let lineage = filled(&path);
        assert_eq!(lineage.corrupt_rows().unwrap(), [""; 0]);
        let other = Connection::open(&path).unwrap();
        assert!(other.execute(change, []).unwrap() > 0, "{change}");
        assert_eq!(lineage.corrupt_rows().unwrap(), [named], "{change}");
    }

    #[test]
    fn a_changed_value_is_found_in_every_table() {
        check("UPDATE run SET version = '2'", "run 1");
        check("UPDATE version SET path = 'x'", "version 1");
        check("UPDATE run SET ended = NULL", "run 1");
        check("UPDATE activity SET items = 7", "activity 1");
        check("UPDATE activity SET reason = 'x'", "activity 1");
        check("DELETE FROM used", "activity 1");
        check("DELETE FROM was_generated_by", "activity 1");
        check("UPDATE entity SET line = 6 WHERE kind = 'item'", "entity 3");
        check("UPDATE was_derived_from SET line_end = 3", "entity 3");
        check("UPDATE document SET kind = 'monthly'", "document memory/weekly/2026-W14.md");
        check("UPDATE log_lines SET hashes = zeroblob(24)", "log_lines 2026-04-02");
        check("UPDATE coverage SET reason = 'x'", "coverage memory/weekly/2026-W14.md");
        check("UPDATE extracted SET hash = 'x'", "extracted 2026-04-02");
        check("UPDATE file SET size = 9", "file memory/2026-04-02.md");
        check("UPDATE file SET seal = NULL", "file memory/2026-04-02.md");
    }

    #[test]
    fn checksum_all_rows_repairs_every_checksum() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let lineage = filled(&path);
        let mut other = Connection::open(&path).unwrap();
        for (table, _, _) in table_queries() {
            other.execute(&format!("UPDATE {table} SET seal = NULL"), []).unwrap();
        }
        assert_eq!(lineage.corrupt_rows().unwrap().len(), 11);
        let tx = other.transaction().unwrap();
        checksum_all_rows(&tx).unwrap();
        tx.commit().unwrap();
        assert_eq!(lineage.corrupt_rows().unwrap(), [""; 0]);
    }

    #[test]
    fn forgetting_and_undoing_update_checksums() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lineage.db");
        let mut lineage = filled(&path);
        let week = "memory/weekly/2026-W14.md";
        for old in [week, "memory/2026-04-02.md", "memory/forgotten.md"] {
            lineage.forget_name(old, "memory/forgotten.md").unwrap();
            assert_eq!(lineage.corrupt_rows().unwrap(), [""; 0], "{old}");
        }
        let other = Connection::open(&path).unwrap();
        let left = "SELECT count(*) FROM entity WHERE path <> 'memory/forgotten.md'";
        assert_eq!(other.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
        let now = "2026-04-06T04:00:00Z".parse().unwrap();
        let run = NewRun { trigger: "undo", version: "1", owner: "1@boot", now };
        let run = lineage.begin_run(&run).unwrap();
        lineage.record_undone_runs(run, &[super::super::jobs::RunId(1)]).unwrap();
        assert_eq!(lineage.corrupt_rows().unwrap(), [""; 0], "before the run has ended");
    }
}
