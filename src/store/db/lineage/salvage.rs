//! Copies history and receipts out of a damaged database.
//!
//! A row is copied only if its checksum (for bytes, their hash) proves that it is as it was written. The
//! damaged file is never written; its write-ahead log is read with it and stays.

use std::{collections::BTreeSet, path::Path};

use rusqlite::{
    Connection, Row, Transaction, params,
    types::{Value, ValueRef},
};

use super::{
    Lineage, LineageError, TransactionError, location::DatabaseLocation, record, row_checksum,
};
use crate::{
    memory::hash::ContentHash,
    store::db::connection::{self, BUSY_TIMEOUT},
};

/// What was copied from a damaged database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// Runs.
    pub runs: usize,
    /// Jobs that had ended, with their receipts.
    pub receipts: usize,
    /// Versions of files; the bytes of some may be lost.
    pub versions: usize,
    /// Distinct contents.
    pub contents: usize,
}

impl Lineage {
    /// Copies what the damaged database at `from` still holds into this new one.
    ///
    /// Returns why this database could not be written. Damage to the other one is no error: it only means
    /// that less is copied.
    pub(crate) fn salvage(&mut self, from: &Path) -> Result<SalvageReport, LineageError> {
        let location = DatabaseLocation::find(from)?;
        let open = |it: DatabaseLocation| {
            connection::open(it.real(), &connection::DAMAGED, BUSY_TIMEOUT).ok()
        };
        let Some(old) = location.and_then(open) else { return Ok(SalvageReport::default()) };
        self.write(|tx| {
            let contents = copy_contents(&old, tx)?;
            let runs = copy_rows(&old, tx, "run", |_, _| Ok(RowAction::Copy))?;
            let in_runs = |row: &SalvagedRow| row.number("run").is_none_or(|it| runs.contains(&it));
            let jobs = copy_rows(&old, tx, "activity", |_, row| {
                let ended = row.text("state") == Some("ended");
                Ok(if ended && in_runs(row) { RowAction::Copy } else { RowAction::Skip })
            })?;
            for job in &jobs {
                copy_edges(&old, tx, *job)?;
            }
            let in_jobs =
                |row: &SalvagedRow| row.number("activity").is_none_or(|it| jobs.contains(&it));
            copy_rows(&old, tx, "intent", |_, row| {
                let closed = row.text("state") != Some("open");
                Ok(if closed && in_runs(row) && in_jobs(row) {
                    RowAction::Copy
                } else {
                    RowAction::Skip
                })
            })?;
            let versions = copy_rows(&old, tx, "version", |tx, row| {
                let mut changed: Vec<(&'static str, Value)> = Vec::new();
                if let Some(hash) = row.text("hash") {
                    let known = "SELECT 1 FROM content WHERE hash = ?1";
                    if !tx.prepare_cached(known)?.exists([hash])? {
                        changed.push(("hash", Value::Null));
                        changed.push(("cause", Value::Text("pruned".to_owned())));
                    }
                }
                if !in_runs(row) {
                    changed.push(("run", Value::Null));
                }
                if !in_jobs(row) {
                    changed.push(("activity", Value::Null));
                }
                Ok(RowAction::CopyWith(changed))
            })?;
            copy_undone_runs(&old, tx, &runs)?;
            copy_rows(&old, tx, "proposal", |_, _| Ok(RowAction::Copy))?;
            let (runs, receipts, versions) = (runs.len(), jobs.len(), versions.len());
            Ok(SalvageReport { runs, receipts, versions, contents })
        })
    }
}

/// A row of the damaged database, with the names of its columns.
struct SalvagedRow(Vec<(String, Value)>);

/// What happens to a row.
enum RowAction {
    Copy,
    CopyWith(Vec<(&'static str, Value)>),
    Skip,
}

impl SalvagedRow {
    fn of(row: &Row<'_>, columns: usize) -> rusqlite::Result<Self> {
        let mut found = Vec::new();
        for at in 0..columns {
            found.push((row.as_ref().column_name(at)?.to_owned(), row.get(at)?));
        }
        Ok(Self(found))
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(column, _)| column == name).map(|(_, value)| value)
    }

    fn text(&self, name: &str) -> Option<&str> {
        if let Some(Value::Text(text)) = self.value(name) { Some(text) } else { None }
    }

    fn number(&self, name: &str) -> Option<i64> {
        if let Some(Value::Integer(number)) = self.value(name) { Some(*number) } else { None }
    }
}

/// Returns the numbers of all rows that can be read. It reads from both ends, because an unreadable page
/// hides the rows behind it.
fn readable_row_ids(old: &Connection, table: &str) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    for order in ["ASC", "DESC"] {
        let ask = format!("SELECT rowid FROM {table} NOT INDEXED ORDER BY rowid {order}");
        let Ok(mut ask) = old.prepare(&ask) else { continue };
        let Ok(mut rows) = ask.query([]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            found.extend(row.get::<_, i64>(0));
        }
    }
    found
}

/// Copies the intact rows of a table whose checksum covers the whole row, and returns their numbers.
fn copy_rows(
    old: &Connection,
    tx: &Transaction<'_>,
    table: &str,
    action: impl Fn(&Transaction<'_>, &SalvagedRow) -> rusqlite::Result<RowAction>,
) -> Result<BTreeSet<i64>, TransactionError> {
    let mut copied = BTreeSet::new();
    for number in readable_row_ids(old, table) {
        let Some(mut row) = intact_row(old, table, number) else { continue };
        match action(tx, &row)? {
            RowAction::Skip => continue,
            RowAction::Copy => {}
            RowAction::CopyWith(changed) => {
                for (name, value) in changed {
                    if let Some(slot) = row.0.iter_mut().find(|(column, _)| column == name) {
                        slot.1 = value;
                    }
                }
            }
        }
        let names: Vec<&str> = row.0.iter().map(|(name, _)| &name[..]).collect();
        let places: Vec<String> = (1..=names.len()).map(|it| format!("?{it}")).collect();
        let put = format!(
            "INSERT OR IGNORE INTO {table} ({}) VALUES ({})",
            names.join(", "),
            places.join(", ")
        );
        let values = row.0.iter().map(|(_, value)| value);
        // This fails if damage changed the name of a column.
        let Ok(mut put) = tx.prepare_cached(&put) else { continue };
        if put.execute(rusqlite::params_from_iter(values))? > 0 {
            copied.insert(number);
        }
    }
    Ok(copied)
}

/// Reads a row, if its checksum is right.
fn intact_row(old: &Connection, table: &str, number: i64) -> Option<SalvagedRow> {
    let mut ask = old.prepare_cached(&row_checksum::row_query(table)?).ok()?;
    let mut rows = ask.query([number]).ok()?;
    let row = rows.next().ok()??;
    let columns = old.prepare_cached(&format!("SELECT * FROM {table}")).ok()?.column_count();
    let found = SalvagedRow::of(row, columns).ok()?;
    let checksum = row_checksum::row_checksum(row).ok()?;
    (found.number("seal") == Some(checksum)).then_some(found)
}

/// Copies the contents that still match their hash, and returns how many.
fn copy_contents(old: &Connection, tx: &Transaction<'_>) -> Result<usize, TransactionError> {
    let mut copied = 0;
    let ask = "SELECT hash, size, packed FROM content WHERE rowid = ?1";
    let Ok(mut ask) = old.prepare(ask) else { return Ok(0) };
    for number in readable_row_ids(old, "content") {
        let read = ask.query_row([number], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Vec<u8>>(2)?))
        });
        let Ok((hash, size, packed)) = read else { continue };
        let bytes = super::history::unpack(&packed, size);
        if bytes.is_none_or(|it| ContentHash::of(it).to_string() != hash) {
            continue;
        }
        let put = "INSERT OR IGNORE INTO content (hash, size, packed) VALUES (?1, ?2, ?3)";
        copied += tx.prepare_cached(put)?.execute(params![hash, size, packed])?;
    }
    Ok(copied)
}

/// Copies the inputs and outputs of a job. The job's checksum covers them.
fn copy_edges(old: &Connection, tx: &Transaction<'_>, job: i64) -> Result<(), TransactionError> {
    for table in ["used", "was_generated_by"] {
        let ask = format!(
            "SELECT kind, path, hash FROM {table} JOIN entity ON entity.id = {table}.entity \
             WHERE {table}.activity = ?1"
        );
        let Ok(mut ask) = old.prepare_cached(&ask) else { continue };
        let Ok(mut rows) = ask.query([job]) else { continue };
        while let Ok(Some(row)) = rows.next() {
            let text = |at| match row.get_ref(at) {
                Ok(ValueRef::Text(text)) => String::from_utf8(text.to_vec()).ok(),
                _ => None,
            };
            let (Some(kind), Some(path), Some(hash)) = (text(0), text(1), text(2)) else {
                continue;
            };
            if !matches!(&kind[..], "log" | "file") {
                continue;
            }
            let entity = record::put_entity(tx, &kind, &path, &hash)?;
            let put = format!("INSERT OR IGNORE INTO {table} (activity, entity) VALUES (?1, ?2)");
            tx.prepare_cached(&put)?.execute([job, entity])?;
        }
    }
    Ok(())
}

/// Copies which runs undid which.
fn copy_undone_runs(
    old: &Connection,
    tx: &Transaction<'_>,
    runs: &BTreeSet<i64>,
) -> Result<(), TransactionError> {
    let Ok(mut ask) = old.prepare("SELECT run, taken FROM taken_back") else { return Ok(()) };
    let Ok(mut rows) = ask.query([]) else { return Ok(()) };
    while let Ok(Some(row)) = rows.next() {
        let (Ok(run), Ok(taken)) = (row.get::<_, i64>(0), row.get::<_, i64>(1)) else { continue };
        if runs.contains(&run) && runs.contains(&taken) {
            tx.execute(
                "INSERT OR IGNORE INTO taken_back (run, taken) VALUES (?1, ?2)",
                [run, taken],
            )?;
        }
    }
    Ok(())
}
