//! What a job commits: files with their items, logs, coverage, and its receipt, in one transaction.
//!
//! The commit is the last step of a write. A crash before it leaves an open intent and the old lineage.
//! A record replaces everything recorded for its path.

use std::{
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{DateTime, Utc};
use rusqlite::{Transaction, params};

use super::{
    Lineage, LineageError, TransactionError,
    history::{self, NewVersion, VersionCause},
    jobs::{self, IntentId, IntentOutcome, JobId, NewJob, Receipt, RunId},
    review::{self, NewProposal, QuarantineRecord},
    row_checksum::RowChecksum,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        hash::ContentHash,
        period::Period,
    },
    privacy::{SanitizedLine, SanitizedLog},
};

/// The content of one transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commit<'a> {
    /// The job that ends, with its receipt; `None` when files were only read again.
    pub job: Option<(JobId, &'a Receipt)>,
    /// Paths of the logs and files that the job read; each is recorded here or was before.
    pub used: &'a [String],
    /// The files that were written or read again.
    pub documents: &'a [DocumentRecord],
    /// Paths of files and logs that are gone. Only the hashes in receipts stay.
    pub removed: &'a [String],
    /// The logs as they were read.
    pub logs: &'a [LogRecord],
    /// Why lines reached no item; replaces the earlier coverage of that file.
    pub coverage: &'a [CoverageRecord],
    /// Intents that are done.
    pub intents: &'a [IntentId],
    /// Logs whose typed memories were extracted, with the hash of the log that was read.
    pub extracted: &'a [(Stem, ContentHash)],
    /// For each extracted log, the lines that may not be the only source of a memory.
    pub quarantined_memories: &'a [(Stem, Vec<QuarantineRecord>)],
    /// The proposals of the job with this fingerprint and period.
    pub proposals: Option<(ContentHash, Period, &'a [NewProposal])>,
    /// The items that the job with this fingerprint, period, and file quarantined.
    pub quarantined_items: Option<(ContentHash, Period, &'a str, &'a [NewProposal])>,
    /// File stamps for the next scan.
    pub files: &'a [(PathBuf, ScannedFile)],
    /// New contents of paths, for the history.
    pub versions: &'a [NewVersion<'a>],
    /// The run, if no job ends.
    pub run: Option<RunId>,
    /// The time of the new versions.
    pub at: DateTime<Utc>,
}

/// The kind of a generated file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DocumentKind {
    /// A weekly summary.
    Weekly,
    /// A monthly summary.
    Monthly,
    /// A typed memory.
    Memory,
    /// `WISDOM.md`.
    Wisdom,
}

/// A generated file as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentRecord {
    /// The path, relative to the root.
    pub path: String,
    /// Its kind.
    pub kind: DocumentKind,
    /// The hash of all its bytes, because line numbers depend on the frontmatter too.
    pub hash: ContentHash,
    /// Its bullets, its entries, or its one memory.
    pub items: Vec<ItemRecord>,
}

/// An item as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemRecord {
    /// The first line in the file, from 1; no two items share one. A bullet begins at its marker, a wisdom
    /// entry at its title, a typed memory on line 1.
    pub line: u32,
    /// The first 8 hex digits of the hash of its words.
    pub hash: String,
    /// The lines it cites; `None` for a person's own words.
    pub citation: Option<Citation>,
}

/// A log as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// Its name without `.md`.
    pub stem: Stem,
    /// Its path among the logs, relative to the root, also if it is archived.
    pub path: String,
    /// The hash of all its bytes.
    pub hash: ContentHash,
    /// The number of the line that the first hash belongs to.
    pub first_line: u32,
    /// The first 8 bytes of each line's hash.
    pub line_hashes: Vec<u64>,
    /// The quarantined lines; empty when the record comes from the database.
    pub quarantined: Vec<QuarantineRecord>,
    /// The whole text as it was read, for the history; `None` when the record comes from the database.
    pub raw: Option<Arc<str>>,
}

/// Why lines reached no item of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoverageRecord {
    /// The file, relative to the root.
    pub path: String,
    /// The lines, each with a reason of one or two words; no words of the line.
    pub lines: Vec<(Address, &'static str)>,
}

/// What the last scan saw of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedFile {
    /// Its inode.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When it was last modified, in nanoseconds since 1970.
    pub mtime_ns: i64,
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// When it was read, in nanoseconds since 1970.
    pub seen_ns: i64,
}

impl DocumentKind {
    /// All kinds, from the logs upwards.
    pub const ALL: [Self; 4] = [Self::Weekly, Self::Monthly, Self::Memory, Self::Wisdom];

    /// Returns the name that JSON and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Memory => "memory",
            Self::Wisdom => "wisdom",
        }
    }

    /// Returns the kind with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl LogRecord {
    /// Returns the record of the log at `path`.
    pub fn of(log: &SanitizedLog, path: String) -> Self {
        Self {
            stem: log.stem().clone(),
            path,
            hash: log.hash(),
            first_line: log.lines().first().map_or(1, SanitizedLine::number),
            line_hashes: log.lines().iter().map(|it| it.hash().prefix64()).collect(),
            quarantined: log.lines().iter().filter_map(quarantine_record).collect(),
            raw: log.raw().cloned(),
        }
    }

    /// Returns the hash of a line.
    pub fn line_hash(&self, line: u32) -> Option<u64> {
        let at = usize::try_from(line.checked_sub(self.first_line)?).ok()?;
        self.line_hashes.get(at).copied()
    }
}

impl Lineage {
    /// Commits all of `commit`, or nothing.
    ///
    /// # Errors
    ///
    /// Returns [`LineageError::NotLive`] for a job that has ended and [`LineageError::NotOpen`] for
    /// an intent that was closed; then nothing was changed.
    pub fn commit(&mut self, commit: &Commit<'_>) -> Result<(), LineageError> {
        self.write(|tx| apply_commit(tx, commit))
    }

    /// Begins and ends jobs in one transaction, because they changed no file. A job whose fingerprint is
    /// live elsewhere is skipped.
    ///
    /// Fails if the database cannot be written; then nothing has changed.
    pub(crate) fn commit_finished_jobs(
        &mut self,
        run: RunId,
        done: &[(&NewJob, &Receipt, Commit<'_>)],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            for (job, receipt, commit) in done {
                let id = match jobs::insert_job(tx, run, job) {
                    Err(TransactionError::Other(LineageError::AlreadyLive { .. })) => continue,
                    id => id?,
                };
                apply_commit(tx, &Commit { job: Some((id, receipt)), ..*commit })?;
            }
            Ok(())
        })
    }

    /// Replaces all records of files and logs.
    ///
    /// Runs, receipts, and the journal stay. Afterwards the database answers like a new one with the same
    /// records.
    ///
    /// Fails if the database cannot be written; then nothing has changed.
    pub(crate) fn replace_all(
        &mut self,
        documents: &[DocumentRecord],
        logs: &[LogRecord],
        extracted: &[(Stem, ContentHash)],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            tx.execute_batch(
                "DELETE FROM coverage; DELETE FROM document; DELETE FROM was_derived_from; \
                 DELETE FROM entity WHERE kind = 'item'; DELETE FROM log_lines; \
                 DELETE FROM extracted; DELETE FROM held WHERE what = 'line';",
            )?;
            put_logs(tx, logs)?;
            put_documents(tx, documents)?;
            put_extracted(tx, extracted)
        })
    }

    /// Records the device that a folder is on.
    pub(crate) fn record_device(&mut self, folder: &str, device: u64) -> Result<(), LineageError> {
        self.write(|tx| {
            let put = "INSERT OR REPLACE INTO folder (path, device, seal) VALUES (?1, ?2, ?3)";
            let device = device.cast_signed();
            let seal = RowChecksum::default().text(folder).int(device).finish();
            tx.execute(put, params![folder, device, seal])?;
            Ok(())
        })
    }

    /// Records what a scan saw, and removes the files that are gone.
    pub(crate) fn update_scanned_files(
        &mut self,
        seen: &[(PathBuf, ScannedFile)],
        gone: &[PathBuf],
    ) -> Result<(), LineageError> {
        self.write(|tx| {
            put_files(tx, seen)?;
            for path in gone {
                remove_scanned_file(tx, path)?;
            }
            Ok(())
        })
    }
}

fn apply_commit(tx: &Transaction<'_>, commit: &Commit<'_>) -> Result<(), TransactionError> {
    for path in commit.removed {
        remove_path(tx, path)?;
    }
    put_logs(tx, commit.logs)?;
    let job = commit.job.map(|(id, _)| id);
    for log in commit.logs {
        let bytes = log.raw.as_deref().map(str::as_bytes);
        if bytes.is_some() {
            let version = NewVersion { path: &log.path, cause: VersionCause::ReadByRun, bytes };
            history::add_version(tx, commit.run, job, commit.at, &version)?;
        }
    }
    for version in commit.versions {
        history::add_version(tx, commit.run, job, commit.at, version)?;
    }
    put_documents(tx, commit.documents)?;
    put_coverage(tx, commit.coverage)?;
    put_extracted(tx, commit.extracted)?;
    for quarantined in commit.quarantined_memories {
        review::put_quarantined_memories(tx, quarantined)?;
    }
    if let Some((fingerprint, period, proposals)) = commit.proposals {
        review::put_proposals(tx, (fingerprint, period), proposals, commit.at)?;
    }
    if let Some((fingerprint, period, target, items)) = commit.quarantined_items {
        review::put_quarantined_items(tx, (fingerprint, period, target), items, commit.at)?;
    }
    put_files(tx, commit.files)?;
    for &intent in commit.intents {
        jobs::journal::end_intent(tx, intent, IntentOutcome::Done)?;
    }
    if let Some((job, receipt)) = commit.job {
        jobs::end_job(tx, job, receipt)?;
        put_activity(tx, job, commit)?;
    }
    Ok(())
}

/// Records what a job read and wrote.
fn put_activity(
    tx: &Transaction<'_>,
    job: JobId,
    commit: &Commit<'_>,
) -> Result<(), TransactionError> {
    let mut used = tx.prepare_cached(
        "INSERT OR REPLACE INTO used (activity, entity) \
         SELECT ?1, entity FROM document WHERE path = ?2 \
         UNION ALL SELECT ?1, log_lines.entity FROM log_lines \
         JOIN entity ON entity.id = log_lines.entity \
         WHERE entity.path = ?2 AND entity.kind <> 'item'",
    )?;
    for path in commit.used {
        if used.execute(params![job.number(), path])? == 0 {
            return Err(LineageError::NoRecord { name: path.clone() }.into());
        }
    }
    let mut generated = tx.prepare_cached(
        "INSERT OR IGNORE INTO was_generated_by (entity, activity) \
         SELECT entity, ?1 FROM document WHERE path = ?2",
    )?;
    for document in commit.documents {
        generated.execute(params![job.number(), document.path])?;
    }
    Ok(())
}

fn put_documents(
    tx: &Transaction<'_>,
    documents: &[DocumentRecord],
) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT INTO document (path, kind, entity, seal) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (path) DO UPDATE SET kind = excluded.kind, entity = excluded.entity, \
         seal = excluded.seal",
    )?;
    let mut clear = tx.prepare_cached("DELETE FROM entity WHERE kind = 'item' AND path = ?1")?;
    let mut put_item = tx.prepare_cached(
        "INSERT INTO entity (kind, path, line, hash, seal) VALUES ('item', ?1, ?2, ?3, ?4)",
    )?;
    let mut put_source = tx.prepare_cached(
        "INSERT INTO was_derived_from (item, stem, line_start, line_end) VALUES (?1, ?2, ?3, ?4)",
    )?;
    for document in documents {
        let entity = put_file_entity(tx, "file", &document.path, document.hash)?;
        let hash = document.hash.to_string();
        let seal =
            RowChecksum::default().text(&document.path).text(document.kind.name()).text(&hash);
        put.execute(params![document.path, document.kind.name(), entity, seal.finish()])?;
        clear.execute([&document.path])?;
        for item in &document.items {
            let files = item.citation.iter().flat_map(Citation::files);
            let mut sources: Vec<(&str, u32, u32)> = files
                .flat_map(|(stem, lines)| {
                    lines.ranges().iter().map(|&(start, end)| (stem.as_str(), start, end))
                })
                .collect();
            sources.sort_unstable();
            let seal = item_checksum(&document.path, item, &sources);
            put_item.execute(params![document.path, item.line, item.hash, seal])?;
            let id = tx.last_insert_rowid();
            for (stem, start, end) in sources {
                put_source.execute(params![id, stem, start, end])?;
            }
        }
    }
    Ok(())
}

/// Returns the checksum of an item, which covers its sources.
fn item_checksum(path: &str, item: &ItemRecord, sources: &[(&str, u32, u32)]) -> i64 {
    let sources: Vec<String> =
        sources.iter().map(|(stem, start, end)| format!("{stem}:{start}-{end}")).collect();
    let seal =
        RowChecksum::default().text("item").text(path).int(item.line.into()).text(&item.hash);
    // `group_concat` of no rows is NULL.
    if sources.is_empty() { seal.null() } else { seal.text(&sources.join(";")) }.finish()
}

/// Returns the record of a line that waits for a person's decision.
fn quarantine_record(line: &SanitizedLine) -> Option<QuarantineRecord> {
    let quarantine = line.quarantine().filter(|it| !it.is_refused)?;
    let why = quarantine.concerns.iter().map(|it| it.name().to_owned()).collect();
    Some(QuarantineRecord { line: line.number(), why })
}

fn put_logs(tx: &Transaction<'_>, logs: &[LogRecord]) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT INTO log_lines (stem, entity, first_line, hashes, seal) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (stem) DO UPDATE SET entity = excluded.entity, \
         first_line = excluded.first_line, hashes = excluded.hashes, seal = excluded.seal",
    )?;
    for log in logs {
        let entity = put_file_entity(tx, "log", &log.path, log.hash)?;
        let hashes: Vec<u8> = log.line_hashes.iter().flat_map(|it| it.to_be_bytes()).collect();
        let version = format!("{} {}", log.path, log.hash);
        let seal = RowChecksum::default().text(log.stem.as_str()).text(&version);
        let seal = seal.int(log.first_line.into()).blob(&hashes).finish();
        put.execute(params![log.stem.as_str(), entity, log.first_line, hashes, seal])?;
        review::put_quarantined_lines(tx, log)?;
    }
    Ok(())
}

/// Returns the entity of a version of a log or a file; creates it if it is new.
fn put_file_entity(
    tx: &Transaction<'_>,
    kind: &str,
    path: &str,
    hash: ContentHash,
) -> Result<i64, TransactionError> {
    put_entity(tx, kind, path, &hash.to_string())
}

/// Like [`put_file_entity`], with the hash as text.
pub(super) fn put_entity(
    tx: &Transaction<'_>,
    kind: &str,
    path: &str,
    hash: &str,
) -> Result<i64, TransactionError> {
    let seal = RowChecksum::default().text(kind).text(path).null().text(hash).null().finish();
    tx.prepare_cached(
        "INSERT INTO entity (kind, path, hash, seal) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (path, hash, kind) WHERE kind <> 'item' DO NOTHING",
    )?
    .execute(params![kind, path, hash, seal])?;
    let id = tx
        .prepare_cached(
            "SELECT id FROM entity WHERE path = ?2 AND hash = ?3 AND kind = ?1 AND kind <> 'item'",
        )?
        .query_row([kind, path, hash], |row| row.get(0))?;
    Ok(id)
}

fn put_coverage(tx: &Transaction<'_>, coverage: &[CoverageRecord]) -> Result<(), TransactionError> {
    let mut clear = tx.prepare_cached("DELETE FROM coverage WHERE path = ?1")?;
    let mut known = tx.prepare_cached("SELECT 1 FROM document WHERE path = ?1")?;
    let mut put = tx.prepare_cached(
        "INSERT INTO coverage (path, stem, line_start, line_end, reason, seal) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?;
    for record in coverage {
        if !known.exists([&record.path])? {
            return Err(LineageError::NoRecord { name: record.path.clone() }.into());
        }
        clear.execute([&record.path])?;
        let mut lines: Vec<_> = record.lines.iter().collect();
        lines.sort();
        // If an engine gave two reasons for one line, the first in the alphabet wins.
        lines.dedup_by(|b, a| a.0 == b.0);
        let runs = lines.chunk_by(|(a, why), (b, same)| {
            a.stem == b.stem && a.line + 1 == b.line && why == same
        });
        for run in runs {
            if let [(first, why), ..] = run
                && let [.., (last, _)] = run
            {
                let (path, stem) = (&record.path, first.stem.as_str());
                let seal = RowChecksum::default().text(path).text(stem).int(first.line.into());
                let seal = seal.int(last.line.into()).text(why).finish();
                put.execute(params![path, stem, first.line, last.line, why, seal])?;
            }
        }
    }
    Ok(())
}

fn put_extracted(
    tx: &Transaction<'_>,
    extracted: &[(Stem, ContentHash)],
) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT INTO extracted (stem, hash, seal) VALUES (?1, ?2, ?3) \
         ON CONFLICT (stem) DO UPDATE SET hash = excluded.hash, seal = excluded.seal",
    )?;
    let mut clear = tx.prepare_cached("DELETE FROM held WHERE stem = ?1 AND what = 'memory'")?;
    for (stem, hash) in extracted {
        let hash = hash.to_string();
        let seal = RowChecksum::default().text(stem.as_str()).text(&hash).finish();
        put.execute(params![stem.as_str(), hash, seal])?;
        clear.execute([stem.as_str()])?;
    }
    Ok(())
}

fn put_files(
    tx: &Transaction<'_>,
    files: &[(PathBuf, ScannedFile)],
) -> Result<(), TransactionError> {
    let mut put = tx.prepare_cached(
        "INSERT OR REPLACE INTO file (path, inode, size, mtime_ns, hash, seen_ns, seal) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for (path, stamp) in files {
        let path = path.as_os_str().as_bytes();
        // Inodes use all 64 bits, but SQLite's integers are signed.
        let (inode, size) = (stamp.inode.cast_signed(), stamp.size.cast_signed());
        let hash = stamp.hash.to_string();
        let seal = RowChecksum::default().blob(path).int(inode).int(size).int(stamp.mtime_ns);
        let seal = seal.text(&hash).int(stamp.seen_ns).finish();
        put.execute(params![path, inode, size, stamp.mtime_ns, hash, stamp.seen_ns, seal])?;
    }
    Ok(())
}

fn remove_scanned_file(tx: &Transaction<'_>, path: &Path) -> Result<(), TransactionError> {
    let mut remove = tx.prepare_cached("DELETE FROM file WHERE path = ?1")?;
    remove.execute([path.as_os_str().as_bytes()])?;
    Ok(())
}

/// Removes a document or a log. Its versions stay as long as a receipt names them.
fn remove_path(tx: &Transaction<'_>, path: &str) -> Result<(), TransactionError> {
    tx.execute("DELETE FROM entity WHERE kind = 'item' AND path = ?1", [path])?;
    tx.execute("DELETE FROM document WHERE path = ?1", [path])?;
    let of_log = "(SELECT stem FROM log_lines JOIN entity ON entity.id = log_lines.entity \
        WHERE entity.path = ?1)";
    tx.execute(&format!("DELETE FROM extracted WHERE stem IN {of_log}"), [path])?;
    tx.execute(&format!("DELETE FROM held WHERE stem IN {of_log}"), [path])?;
    tx.execute(&format!("DELETE FROM log_lines WHERE stem IN {of_log}"), [path])?;
    tx.execute(
        "DELETE FROM entity WHERE path = ?1 AND kind <> 'item' \
         AND id NOT IN (SELECT entity FROM used) \
         AND id NOT IN (SELECT entity FROM was_generated_by)",
        [path],
    )?;
    remove_scanned_file(tx, Path::new(path))
}

/// Removes a document, and renames the versions of it that receipts name.
pub(super) fn rename_path(
    tx: &Transaction<'_>,
    path: &str,
    instead: &str,
) -> Result<(), TransactionError> {
    if path == instead {
        return Ok(());
    }
    remove_path(tx, path)?;
    let versions: Vec<(i64, String, String)> = tx
        .prepare_cached("SELECT id, kind, hash FROM entity WHERE path = ?1")?
        .query_map([path], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<_, _>>()?;
    for (old, kind, hash) in versions {
        // The same bytes may have been forgotten under this path before.
        let new = put_entity(tx, &kind, instead, &hash)?;
        // The checksum of a receipt covers the paths that it names, but SQLite calls no hook for changes of
        // tables without rowid. Updating the receipt does.
        tx.execute(
            "UPDATE activity SET path = path WHERE id IN \
             (SELECT activity FROM used WHERE entity = ?1 \
             UNION SELECT activity FROM was_generated_by WHERE entity = ?1)",
            [old],
        )?;
        for sql in [
            "DELETE FROM used WHERE entity = ?1 AND activity IN \
             (SELECT activity FROM used WHERE entity = ?2)",
            "DELETE FROM was_generated_by WHERE entity = ?1 AND activity IN \
             (SELECT activity FROM was_generated_by WHERE entity = ?2)",
            "UPDATE used SET entity = ?2 WHERE entity = ?1",
            "UPDATE was_generated_by SET entity = ?2 WHERE entity = ?1",
        ] {
            tx.prepare_cached(sql)?.execute([old, new])?;
        }
        tx.execute("DELETE FROM entity WHERE id = ?1", [old])?;
    }
    Ok(())
}
