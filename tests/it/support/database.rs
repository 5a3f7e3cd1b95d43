//! Reads the database of a memory folder, for tests that search its content.

use std::collections::BTreeSet;

use memoird::internals::store::db::lineage::Lineage;
use rusqlite::{Connection, types::ValueRef};

use super::Root;

/// A stored version of a file.
#[derive(Debug)]
pub(crate) struct StoredVersion {
    /// The file; empty for content that no version refers to any more.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Returns all versions of all files, decompressed.
pub(crate) fn history(root: &Root) -> Vec<StoredVersion> {
    let database = root.path(".memoird/lineage.db");
    let lineage = Lineage::open_existing(&database).unwrap().unwrap();
    let db = Connection::open(&database).unwrap();
    let mut paths = db.prepare("SELECT DISTINCT path FROM version WHERE hash = ?1").unwrap();
    let mut versions = Vec::new();
    for hash in lineage.contents().unwrap() {
        let text = String::from_utf8_lossy(&lineage.content(hash).unwrap().unwrap()).into_owned();
        let rows = paths.query_map([hash.to_string()], |row| row.get(0)).unwrap();
        let mut names: BTreeSet<String> = rows.collect::<Result<_, _>>().unwrap();
        if names.is_empty() {
            names.insert(String::new());
        }
        versions.extend(names.into_iter().map(|path| StoredVersion { path, text: text.clone() }));
    }
    versions
}

/// Returns all values of all tables except stored file content, one row per line.
pub(crate) fn rows(root: &Root) -> String {
    let db = Connection::open(root.path(".memoird/lineage.db")).unwrap();
    let mut names = db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let mut all = String::new();
    for name in names.iter().filter(|it| *it != "content") {
        let mut table = db.prepare(&format!("SELECT * FROM \"{name}\"")).unwrap();
        let columns = table.column_count();
        let mut rows = table.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            all.extend([name, ":"]);
            for column in 0..columns {
                all.push(' ');
                match row.get_ref(column).unwrap() {
                    ValueRef::Null => {}
                    ValueRef::Integer(it) => all.push_str(&it.to_string()),
                    ValueRef::Real(it) => all.push_str(&it.to_string()),
                    ValueRef::Text(it) | ValueRef::Blob(it) => {
                        all.push_str(&String::from_utf8_lossy(it));
                    }
                }
            }
            all.push('\n');
        }
    }
    all
}
