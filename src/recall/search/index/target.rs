//! The target state of the index: each file of a root with its stamp, and its packed form.

use std::{
    collections::{BTreeMap, HashMap},
    thread,
};

use chrono::Datelike as _;

use super::{
    indexed_file::{self, IndexedFile},
    items,
};
use crate::recall::{framing, search::terms::QueryStemmer};
use crate::{
    memory::{
        address::Stem, document::Summary, hash::ContentHash, period::Period, typed::TypedMemory,
    },
    privacy::{self, PrivacyRules},
    store::{
        db::search_index::{IndexEntry, LineDetail, TermPositions},
        fs::{
            inventory::{FileStat, Inventory, LogFile},
            vault::{Vault, VaultError, scan::KnownFile},
        },
    },
};

/// Logs of the newest year are bucketed by month, older ones, which seldom change, by year, because a
/// search reads each bucket for each word. Summaries are bucketed by year, in a separate range, and all
/// other files share one bucket.
const SUMMARY_BUCKETS: i64 = 1_000_000;
const OTHER_BUCKET: i64 = 2_000_000;

/// A file of the root as it should be in the index.
pub(crate) struct IndexTarget<'a> {
    pub(crate) path: String,
    pub(crate) bucket: i64,
    pub(crate) stamp: FileStat,
    pub(crate) hash: ContentHash,
    pub(crate) input: ContentHash,
    pub(crate) kind: TargetKind<'a>,
}

pub(crate) enum TargetKind<'a> {
    Log(&'a Stem),
    Summary(Period),
    Wisdom(&'a str),
    Memory(&'a TypedMemory),
}

/// The files of a root.
pub(crate) struct RootScan {
    pub(crate) inventory: Inventory,
    sessions: BTreeMap<Stem, LogFile>,
}

impl RootScan {
    /// Scans all files. Files with unchanged stamps are not read; `seen` is called after the folders
    /// were listed.
    pub(crate) fn scan(
        vault: &Vault,
        seen: impl FnOnce() -> HashMap<String, KnownFile>,
    ) -> Result<Self, VaultError> {
        let (scan, seen) = vault.scan_hashes_with(seen)?;
        let inventory = scan.inventory;
        let sessions = vault.scan_sessions(&seen, &inventory.rules)?;
        Ok(Self { inventory, sessions })
    }

    pub(crate) fn targets(&self, vault: &Vault) -> Result<Vec<IndexTarget<'_>>, VaultError> {
        index_targets(vault, &self.inventory, &self.sessions)
    }
}

/// Returns the target of a log; `newest` is the year of the newest log.
pub(crate) fn log_target(
    (stem, newest): (&Stem, i32),
    path: String,
    stamp: FileStat,
    hash: ContentHash,
    input: ContentHash,
) -> IndexTarget<'_> {
    let day = stem.date();
    let month = if day.year() < newest { 0 } else { 1 + day.month0() };
    let bucket = i64::from(day.year()) * 13 + i64::from(month);
    IndexTarget { path, bucket, stamp, hash, input, kind: TargetKind::Log(stem) }
}

pub(crate) fn index_targets<'a>(
    vault: &Vault,
    inventory: &'a Inventory,
    sessions: &'a BTreeMap<Stem, LogFile>,
) -> Result<Vec<IndexTarget<'a>>, VaultError> {
    let layout = vault.layout();
    let mut targets = Vec::new();
    let logs = || inventory.logs.iter().chain(sessions);
    let newest = logs().map(|it| it.0.date().year()).max().unwrap_or_default();
    for (stem, file) in logs() {
        targets.push(log_target(
            (stem, newest),
            file.path.clone(),
            file.stamp,
            file.hash,
            file.input_hash,
        ));
    }
    let decided = vault.read_text(&layout.decisions())?.unwrap_or_default();
    // Generated files depend on all review decisions, which change seldom, and such files are few.
    let of_items = |path: String, bucket: i64, (stamp, hash): (FileStat, ContentHash), what| {
        let decided = format!("{} {decided}", hash.hex16());
        IndexTarget { path, bucket, stamp, hash, input: ContentHash::of(decided), kind: what }
    };
    for (period, file) in inventory.weekly.iter().chain(&inventory.monthly) {
        let bucket = SUMMARY_BUCKETS + i64::from(period.first().year());
        let what = TargetKind::Summary(*period);
        targets.push(of_items(file.path.clone(), bucket, (file.stamp, file.hash), what));
    }
    let none = FileStat::default();
    if let Some(text) = &inventory.wisdom {
        let what = TargetKind::Wisdom(text);
        targets.push(of_items(layout.wisdom(), OTHER_BUCKET, (none, ContentHash::of(text)), what));
    }
    for memory in &inventory.memories {
        let path = layout.typed_memory(&memory.file_name.to_string_lossy());
        let hash = ContentHash::of(format!("{memory:?}"));
        targets.push(of_items(path, OTHER_BUCKET, (none, hash), TargetKind::Memory(memory)));
    }
    Ok(targets)
}

/// Packs files, several in parallel.
pub(crate) fn build_entries(
    wanted: &[&IndexTarget<'_>],
    vault: &Vault,
    rules: &PrivacyRules,
) -> Result<Vec<(IndexEntry, LineDetail, TermPositions)>, VaultError> {
    const THREADS_MAX: usize = 4;
    const FILES_MIN: usize = 16;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if wanted.len() < FILES_MIN || threads == 1 {
        let mut stems = QueryStemmer::new();
        return wanted.iter().map(|it| build_entry(it, vault, rules, &mut stems)).collect();
    }
    let part = wanted.len().div_ceil(threads);
    thread::scope(|scope| {
        let parts: Vec<_> = wanted
            .chunks(part)
            .map(|part| {
                scope.spawn(move || {
                    let mut stems = QueryStemmer::new();
                    let all = part.iter().map(|it| build_entry(it, vault, rules, &mut stems));
                    all.collect::<Result<Vec<_>, _>>()
                })
            })
            .collect();
        let mut all = Vec::new();
        for part in parts {
            match part.join() {
                Ok(part) => all.extend(part?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    })
}

fn build_entry(
    wanted: &IndexTarget<'_>,
    vault: &Vault,
    rules: &PrivacyRules,
    stems: &mut QueryStemmer,
) -> Result<(IndexEntry, LineDetail, TermPositions), VaultError> {
    // The packed lines describe the bytes that were read.
    let mut hash = wanted.hash;
    let accepted = framing::accepted_in(vault, rules);
    let IndexedFile { head, lines, places, citations: cites } = match &wanted.kind {
        TargetKind::Log(stem) => match vault.read_log(stem)? {
            Some(log) => {
                hash = log.hash;
                indexed_file::pack_log(&privacy::sanitize(&log, rules), stems)
            }
            // It was removed since the folder was listed.
            None => IndexedFile::default(),
        },
        TargetKind::Summary(period) => {
            let text = vault.read_text(&wanted.path)?.unwrap_or_default();
            // `status` reports a file that cannot be parsed.
            let rows = Summary::parse(*period, &text)
                .map_or_else(|_| Vec::new(), |it| items::of_summary(&it, &text, rules, &accepted));
            indexed_file::pack_items(items::tier_index(*period), &rows, stems)
        }
        TargetKind::Wisdom(text) => {
            indexed_file::pack_items(4, &items::of_wisdom(text, rules, &accepted), stems)
        }
        TargetKind::Memory(memory) => {
            indexed_file::pack_items(5, &[items::of_memory(memory, rules, &accepted)], stems)
        }
    };
    let entry = IndexEntry {
        path: wanted.path.clone(),
        bucket: wanted.bucket,
        stamp: wanted.stamp,
        hash,
        input_hash: wanted.input,
        head,
    };
    Ok((entry, LineDetail { lines, cites }, places))
}
