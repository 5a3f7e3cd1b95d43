//! The queries of trace, coverage, plan, and status.
//!
//! Every answer is ordered by its values (path, line, stem), so a rebuilt database answers the same.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::OsString,
    os::unix::ffi::OsStringExt as _,
    path::PathBuf,
};

use rusqlite::{OptionalExtension as _, Row};

use super::{
    Lineage, LineageError, column,
    jobs::JobId,
    record::{DocumentKind, ItemRecord, LogRecord, ScannedFile},
};
use crate::memory::{
    address::{Address, Citation, Stem},
    hash::ContentHash,
    period::Period,
};

/// The location of an item. Ordered by kind from the logs upwards, then by path and line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemLocation {
    /// The kind of the file.
    pub kind: DocumentKind,
    /// The file, relative to the root.
    pub path: String,
    /// The first line.
    pub line: u32,
}

/// An item that cites lines of a log. Ordered as [`ItemLocation`], then by lines.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CitingItem {
    /// The item.
    pub item: ItemLocation,
    /// The first and the last line of one of its ranges.
    pub lines: (u32, u32),
}

/// The size of the lineage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineageCounts {
    /// Generated files by kind.
    pub documents: BTreeMap<DocumentKind, u32>,
    /// Items in them.
    pub items: u32,
    /// Ranges of log lines that items cite.
    pub derivations: u32,
    /// Logs.
    pub logs: u32,
}

impl Lineage {
    /// Returns the hash that a generated file had when it was recorded.
    pub(crate) fn document_hash(&self, path: &str) -> Result<Option<ContentHash>, LineageError> {
        Ok(self.document(path)?.map(|(_, hash)| hash))
    }

    /// Returns kind and hash of a generated file as it was recorded.
    pub(crate) fn document(
        &self,
        path: &str,
    ) -> Result<Option<(DocumentKind, ContentHash)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT document.kind, entity.hash FROM document \
                 JOIN entity ON entity.id = document.entity WHERE document.path = ?1",
            )?
            .query_row([path], |row| Ok((kind(row, 0)?, column::hash(row, 1)?)))
            .optional()
        })
    }

    /// Returns all generated files by path.
    pub(crate) fn documents(
        &self,
    ) -> Result<BTreeMap<String, (DocumentKind, ContentHash)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT document.path, document.kind, entity.hash FROM document \
                 JOIN entity ON entity.id = document.entity",
            )?
            .query_map([], |row| Ok((row.get(0)?, (kind(row, 1)?, column::hash(row, 2)?))))?
            .collect()
        })
    }

    /// Returns the items of a file by line.
    pub(crate) fn items_of(&self, path: &str) -> Result<Vec<ItemRecord>, LineageError> {
        self.read(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT entity.line, entity.hash, stem, line_start, line_end FROM entity \
                 LEFT JOIN was_derived_from ON item = entity.id \
                 WHERE entity.kind = 'item' AND entity.path = ?1 \
                 ORDER BY entity.line, stem, line_start",
            )?;
            let mut rows = query.query([path])?;
            let mut items = Vec::<ItemRecord>::new();
            while let Some(row) = rows.next()? {
                let line = row.get(0)?;
                if items.last().is_none_or(|it| it.line != line) {
                    items.push(ItemRecord { line, hash: row.get(1)?, citation: None });
                }
                if let Some(item) = items.last_mut()
                    && let Some(range) = citation_range(row, 2)?
                {
                    match &mut item.citation {
                        Some(citation) => citation.merge(&range),
                        none => *none = Some(range),
                    }
                }
            }
            Ok(items)
        })
    }

    /// Returns the items that cite a line of a log, in the order of [`ItemLocation`].
    pub(crate) fn items_citing(
        &self,
        stem: &Stem,
        line: u32,
    ) -> Result<Vec<ItemLocation>, LineageError> {
        // Ranges of one item are disjoint, so each item occurs once.
        let items = self.items_citing_range(stem, (line, line))?;
        Ok(items.into_iter().map(|it| it.item).collect())
    }

    /// Returns the items that cite any line of an inclusive range, once for each cited range that overlaps
    /// it, in the order of [`CitingItem`].
    pub(crate) fn items_citing_range(
        &self,
        stem: &Stem,
        (start, end): (u32, u32),
    ) -> Result<Vec<CitingItem>, LineageError> {
        let mut items: Vec<CitingItem> = self.read(|conn| {
            conn.prepare_cached(
                "SELECT document.kind, entity.path, entity.line, line_start, line_end \
                 FROM was_derived_from \
                 JOIN entity ON entity.id = item JOIN document ON document.path = entity.path \
                 WHERE stem = ?1 AND line_end >= ?2 AND line_start <= ?3",
            )?
            .query_map((stem.as_str(), start, end), |row| {
                let item =
                    ItemLocation { kind: kind(row, 0)?, path: row.get(1)?, line: row.get(2)? };
                Ok(CitingItem { item, lines: (row.get(3)?, row.get(4)?) })
            })?
            .collect()
        })?;
        items.sort();
        Ok(items)
    }

    /// Returns the log as it was when it was last recorded.
    pub(crate) fn log(&self, stem: &Stem) -> Result<Option<LogRecord>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(&format!("{SELECT_LOGS} WHERE stem = ?1"))?
                .query_row([stem.as_str()], log_row)
                .optional()
        })
    }

    /// Returns all logs by name, as they were when they were last recorded.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn logs(&self) -> Result<BTreeMap<Stem, LogRecord>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(&format!("{SELECT_LOGS} WHERE {IS_LOG}"))?
                .query_map([], |row| log_row(row).map(|log| (log.stem.clone(), log)))?
                .collect()
        })
    }

    /// Returns the weekly and monthly summaries whose own lines are cited, as they were when those citations
    /// were right.
    pub(crate) fn cited_summaries(&self) -> Result<BTreeMap<Stem, LogRecord>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(&format!("{SELECT_LOGS} WHERE NOT {IS_LOG}"))?
                .query_map([], |row| log_row(row).map(|log| (log.stem.clone(), log)))?
                .collect()
        })
    }

    /// Returns the names of the weekly and monthly summaries whose lines an item cites.
    pub(crate) fn cited_summary_stems(&self) -> Result<BTreeSet<Stem>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(&format!(
                "SELECT DISTINCT stem FROM was_derived_from WHERE NOT {IS_LOG}"
            ))?
            .query_map([], |row| column::parsed(row, 0))?
            .collect()
        })
    }

    /// Returns the path of each recorded log.
    pub(crate) fn log_paths(&self) -> Result<BTreeMap<Stem, String>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(&format!(
                "SELECT stem, entity.path FROM log_lines \
                 JOIN entity ON entity.id = log_lines.entity WHERE {IS_LOG}"
            ))?
            .query_map([], |row| Ok((column::parsed(row, 0)?, row.get(1)?)))?
            .collect()
        })
    }

    /// Returns the device on which a folder was last seen.
    pub(crate) fn device_of(&self, folder: &str) -> Result<Option<u64>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT device FROM folder WHERE path = ?1")?
                .query_row([folder], |row| row.get::<_, i64>(0).map(i64::cast_unsigned))
                .optional()
        })
    }

    /// Returns the logs whose typed memories were extracted, with the hash each had then.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn extracted_logs(&self) -> Result<BTreeMap<Stem, ContentHash>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT stem, hash FROM extracted")?
                .query_map([], |row| Ok((column::parsed(row, 0)?, column::hash(row, 1)?)))?
                .collect()
        })
    }

    /// Returns for each day the engine that last extracted its memories.
    pub(crate) fn extraction_engines(&self) -> Result<BTreeMap<Period, String>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT period, engine FROM activity WHERE id IN (SELECT max(id) FROM activity \
                 WHERE tier = 'extract' AND outcome IN ('written', 'unchanged', 'skipped') \
                 GROUP BY period)",
            )?
            .query_map([], |row| Ok((column::parsed(row, 0)?, row.get(1)?)))?
            .collect()
        })
    }

    /// Returns why lines reached no item of a file, as far as its job reported it.
    pub(crate) fn uncovered_lines(
        &self,
        path: &str,
    ) -> Result<BTreeMap<Address, String>, LineageError> {
        self.read(|conn| {
            let mut query = conn.prepare_cached(
                "SELECT stem, line_start, line_end, reason FROM coverage WHERE path = ?1",
            )?;
            let mut rows = query.query([path])?;
            let mut lines = BTreeMap::new();
            while let Some(row) = rows.next()? {
                let stem: Stem = column::parsed(row, 0)?;
                let reason: String = row.get(3)?;
                for line in row.get::<_, u32>(1)?..=row.get(2)? {
                    lines.insert(Address { stem: stem.clone(), line }, reason.clone());
                }
            }
            Ok(lines)
        })
    }

    /// Returns what the last scan saw, by path.
    pub(crate) fn scanned_files(&self) -> Result<HashMap<PathBuf, ScannedFile>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached("SELECT path, inode, size, mtime_ns, hash, seen_ns FROM file")?
                .query_map([], |row| {
                    let stamp = ScannedFile {
                        inode: row.get::<_, i64>(1)?.cast_unsigned(),
                        size: row.get::<_, i64>(2)?.cast_unsigned(),
                        mtime_ns: row.get(3)?,
                        hash: column::hash(row, 4)?,
                        seen_ns: row.get(5)?,
                    };
                    Ok((OsString::from_vec(row.get(0)?).into(), stamp))
                })?
                .collect()
        })
    }

    /// Returns the files that a job wrote and their hashes, by path.
    pub(crate) fn generated_by(
        &self,
        job: JobId,
    ) -> Result<Vec<(String, ContentHash)>, LineageError> {
        self.read(|conn| {
            conn.prepare_cached(
                "SELECT path, hash FROM was_generated_by JOIN entity ON entity.id = entity \
                 WHERE activity = ?1 ORDER BY path",
            )?
            .query_map([job.number()], |row| Ok((row.get(0)?, column::hash(row, 1)?)))?
            .collect()
        })
    }

    /// Returns the size of the lineage.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn counts(&self) -> Result<LineageCounts, LineageError> {
        self.read(|conn| {
            let count = |sql: &str| conn.query_row(sql, [], |row| row.get(0));
            Ok(LineageCounts {
                documents: conn
                    .prepare_cached("SELECT kind, count(*) FROM document GROUP BY kind")?
                    .query_map([], |row| Ok((kind(row, 0)?, row.get(1)?)))?
                    .collect::<rusqlite::Result<_>>()?,
                items: count("SELECT count(*) FROM entity WHERE kind = 'item'")?,
                derivations: count("SELECT count(*) FROM was_derived_from")?,
                logs: count(&format!("SELECT count(*) FROM log_lines WHERE {IS_LOG}"))?,
            })
        })
    }

    /// Prints files, items, and derivations in a fixed order, without row numbers and times.
    ///
    /// Two databases with equal dumps give the same answer to every query about sources.
    ///
    /// # Errors
    ///
    /// Fails if the database cannot be read.
    pub fn canonical_dump(&self) -> Result<String, LineageError> {
        let mut lines = Vec::new();
        for (path, (kind, hash)) in self.documents()? {
            lines.push(format!("{} {path} {hash}\n", kind.name()));
            for item in self.items_of(&path)? {
                let citation = item.citation.map(|it| it.to_string()).unwrap_or_default();
                lines.push(format!("  {} {} [{citation}]\n", item.line, item.hash));
            }
        }
        Ok(lines.concat())
    }
}

/// Selects the columns that [`log_row`] reads.
const SELECT_LOGS: &str = "SELECT stem, path, hash, first_line, hashes FROM log_lines \
    JOIN entity ON entity.id = entity";

/// Selects logs: `log_lines` also holds the lines of weekly and monthly summaries, whose names are shorter.
const IS_LOG: &str = "length(stem) > 8";

fn log_row(row: &Row<'_>) -> rusqlite::Result<LogRecord> {
    let (hashes, _) = row.get_ref(4)?.as_blob()?.as_chunks();
    Ok(LogRecord {
        quarantined: Vec::new(),
        stem: column::parsed(row, 0)?,
        path: row.get(1)?,
        hash: column::hash(row, 2)?,
        first_line: row.get(3)?,
        line_hashes: hashes.iter().map(|it| u64::from_be_bytes(*it)).collect(),
        raw: None,
    })
}

fn kind(row: &Row<'_>, at: usize) -> rusqlite::Result<DocumentKind> {
    column::named(row, at, "kind of file", DocumentKind::from_name)
}

/// Reads stem, start, and end of a range, if they are not NULL.
fn citation_range(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Citation>> {
    let (Some(start), Some(end)) = (row.get(at + 1)?, row.get::<_, Option<u32>>(at + 2)?) else {
        return Ok(None);
    };
    Ok(Some(Citation::range(column::parsed(row, at)?, start, end)))
}
