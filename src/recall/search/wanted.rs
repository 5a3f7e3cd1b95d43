//! What should stand in the index: each file of a root by what tells a change, and taken apart.

use std::{
    collections::{BTreeMap, HashMap},
    thread,
};

use chrono::Datelike as _;

use super::{
    ground::{self, Ground},
    items,
    words::Stems,
};
use crate::{
    memory::{
        address::Stem, document::Summary, hash::ContentHash, period::Period, typed::TypedMemory,
    },
    privacy::{self, Rules},
    store::{
        inventory::{Inventory, LogFile, Stamp},
        postings::{Detail, Entry, Places},
        vault::{Vault, VaultError, scan::Seen},
    },
};

/// Logs of the newest year stand by month, older ones, which seldom change, by year: a search asks each
/// bucket for each word. Summaries stand by year, far from them; the rest in one.
const SUMMARIES: i64 = 1_000_000;
const OTHERS: i64 = 2_000_000;

/// A file of the root as it should stand in the index.
pub(super) struct Wanted<'a> {
    pub(super) path: String,
    pub(super) bucket: i64,
    pub(super) stamp: Stamp,
    pub(super) hash: ContentHash,
    pub(super) input: ContentHash,
    pub(super) what: What<'a>,
}

pub(super) enum What<'a> {
    Log(&'a Stem),
    Summary(Period),
    Wisdom(&'a str),
    Memory(&'a TypedMemory),
}

/// What stands in a root.
pub(super) struct Look {
    pub(super) inventory: Inventory,
    sessions: BTreeMap<Stem, LogFile>,
}

impl Look {
    /// Looks at all files; what is as it was `seen` is not read. That is asked when the files have been
    /// looked at.
    pub(super) fn at(
        vault: &Vault,
        seen: impl FnOnce() -> HashMap<String, Seen>,
    ) -> Result<Self, VaultError> {
        let (scan, seen) = vault.scan_names_before(seen)?;
        let inventory = scan.inventory;
        let sessions = vault.scan_sessions(&seen, &inventory.rules)?;
        Ok(Self { inventory, sessions })
    }

    /// Returns what should stand in the index.
    pub(super) fn wanted(&self, vault: &Vault) -> Result<Vec<Wanted<'_>>, VaultError> {
        wanted(vault, &self.inventory, &self.sessions)
    }
}

/// Returns how a log should stand in the index whose newest log is of that year.
pub(super) fn wanted_log(
    (stem, newest): (&Stem, i32),
    path: String,
    stamp: Stamp,
    hash: ContentHash,
    input: ContentHash,
) -> Wanted<'_> {
    let day = stem.date();
    let month = if day.year() < newest { 0 } else { 1 + day.month0() };
    let bucket = i64::from(day.year()) * 13 + i64::from(month);
    Wanted { path, bucket, stamp, hash, input, what: What::Log(stem) }
}

/// Returns what should stand in the index.
pub(super) fn wanted<'a>(
    vault: &Vault,
    inventory: &'a Inventory,
    sessions: &'a BTreeMap<Stem, LogFile>,
) -> Result<Vec<Wanted<'a>>, VaultError> {
    let layout = vault.layout();
    let mut wanted = Vec::new();
    let logs = || inventory.logs.iter().chain(sessions);
    let newest = logs().map(|it| it.0.date().year()).max().unwrap_or_default();
    for (stem, file) in logs() {
        wanted.push(wanted_log(
            (stem, newest),
            file.path.clone(),
            file.stamp,
            file.hash,
            file.input,
        ));
    }
    let decided = vault.read_text(&layout.decisions())?.unwrap_or_default();
    // What is no log depends on all that was decided: that is seldom, and such files are few.
    let of_items = |path: String, bucket: i64, (stamp, hash): (Stamp, ContentHash), what| {
        let decided = format!("{} {decided}", hash.hex16());
        Wanted { path, bucket, stamp, hash, input: ContentHash::of(decided), what }
    };
    for (period, file) in inventory.weekly.iter().chain(&inventory.monthly) {
        let bucket = SUMMARIES + i64::from(period.first().year());
        let what = What::Summary(*period);
        wanted.push(of_items(file.path.clone(), bucket, (file.stamp, file.hash), what));
    }
    let none = Stamp::default();
    if let Some(text) = &inventory.wisdom {
        let what = What::Wisdom(text);
        wanted.push(of_items(layout.wisdom(), OTHERS, (none, ContentHash::of(text)), what));
    }
    for memory in &inventory.memories {
        let path = layout.typed(&memory.file_name.to_string_lossy());
        let hash = ContentHash::of(format!("{memory:?}"));
        wanted.push(of_items(path, OTHERS, (none, hash), What::Memory(memory)));
    }
    Ok(wanted)
}

/// Takes files apart, some at a time beside each other.
pub(super) fn grounds(
    wanted: &[&Wanted<'_>],
    vault: &Vault,
    rules: &Rules,
) -> Result<Vec<(Entry, Detail, Places)>, VaultError> {
    const THREADS_MAX: usize = 4;
    const FILES_MIN: usize = 16;
    let threads = thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    if wanted.len() < FILES_MIN || threads == 1 {
        let mut stems = Stems::new();
        return wanted.iter().map(|it| ground(it, vault, rules, &mut stems)).collect();
    }
    let part = wanted.len().div_ceil(threads);
    thread::scope(|scope| {
        let parts: Vec<_> = wanted
            .chunks(part)
            .map(|part| {
                scope.spawn(move || {
                    let mut stems = Stems::new();
                    let all = part.iter().map(|it| ground(it, vault, rules, &mut stems));
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

fn ground(
    wanted: &Wanted<'_>,
    vault: &Vault,
    rules: &Rules,
    stems: &mut Stems,
) -> Result<(Entry, Detail, Places), VaultError> {
    // What is known of the lines is true of the bytes that were read.
    let mut hash = wanted.hash;
    let Ground { head, lines, places, cites } = match &wanted.what {
        What::Log(stem) => match vault.read_log(stem)? {
            Some(log) => {
                hash = log.hash;
                ground::of_log(&privacy::serve(&log, rules), stems)
            }
            // It went away since the folder was listed.
            None => Ground::default(),
        },
        What::Summary(period) => {
            let text = vault.read_text(&wanted.path)?.unwrap_or_default();
            // One that cannot be read as such is told of by `status`.
            let rows = Summary::parse(*period, &text)
                .map_or_else(|_| Vec::new(), |it| items::of_summary(&it, &text, rules));
            ground::of_items(items::tier(*period), &rows, stems)
        }
        What::Wisdom(text) => ground::of_items(4, &items::of_wisdom(text, rules), stems),
        What::Memory(memory) => ground::of_items(5, &[items::of_memory(memory, rules)], stems),
    };
    let entry = Entry {
        path: wanted.path.clone(),
        bucket: wanted.bucket,
        stamp: wanted.stamp,
        hash,
        input: wanted.input,
        head,
    };
    Ok((entry, Detail { lines, cites }, places))
}
