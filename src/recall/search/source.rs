//! Where the search looks: the index, brought up to date first, or where it cannot be used the files
//! themselves, read and taken apart in memory. Both say the same.

use std::{
    collections::{HashMap, HashSet},
    thread,
};

use super::{
    ground::{self, Ground, ItemRow},
    items,
    words::Stems,
};
use crate::{
    memory::{address::Stem, document::Summary, hash::ContentHash, period::Period},
    privacy::{self, Rules},
    store::{
        inventory::{Inventory, Stamp},
        postings::{self, Change, Entry, Places, Postings, PostingsError, Reader, Writer},
        vault::{Vault, VaultError},
    },
};

/// So many bytes of logs are read without an index in a root that has no private folder yet.
const SMALL: u64 = 1 << 20;

/// What is taken apart at once before it is written.
const BATCH_BYTES: u64 = 4 << 20;

/// Logs stand by month; summaries by year, far from them; the rest in one.
const SUMMARIES: i64 = 1_000_000;
const OTHERS: i64 = 2_000_000;

/// Where the search looks.
pub(super) struct Source {
    entries: Vec<(i64, Entry)>,
    buckets: Vec<i64>,
    distinct: u64,
    of: Of,
}

enum Of {
    Kept(Postings),
    Read(HashMap<u64, Vec<u8>>),
}

/// A file of the root as it should stand in the index.
struct Wanted<'a> {
    path: String,
    bucket: i64,
    stamp: Stamp,
    hash: ContentHash,
    input: ContentHash,
    what: What<'a>,
}

enum What<'a> {
    Log(&'a Stem),
    Summary(Period),
    /// With its tier.
    Items(usize, Vec<ItemRow>),
}

impl Source {
    /// Looks at the root, brings the index up to date, and returns it with what may be seen. An index
    /// that cannot be used is as if there were none.
    pub(super) fn open(vault: &Vault) -> Result<(Self, Inventory), VaultError> {
        let path = vault.layout().search_index();
        let view = vault.rules().policy_hash();
        let is_kept = path.parent().is_some_and(std::path::Path::exists);
        let mut kept = if is_kept { Postings::open(&path, view).ok() } else { None };
        let held = |it: &Postings| it.hold().and_then(|()| it.known());
        let known = kept.as_ref().and_then(|it| held(it).ok()).unwrap_or_default();
        let inventory = vault.scan(&postings::seen(&known))?.inventory;
        let wanted = wanted(vault, &inventory)?;
        if kept.is_none() && wanted.iter().map(|it| it.stamp.size).sum::<u64>() > SMALL {
            kept = Postings::open(&path, view).ok();
        }
        if let Some(kept) = kept
            && let Ok(source) = Self::kept(kept, known.files, &wanted, vault, &inventory.rules)?
        {
            return Ok((source, inventory));
        }
        let source = Self::read(&wanted, vault, &inventory.rules)?;
        Ok((source, inventory))
    }

    /// Reads all files, for want of an index.
    pub(super) fn without_index(vault: &Vault, inventory: &Inventory) -> Result<Self, VaultError> {
        Self::read(&wanted(vault, inventory)?, vault, &inventory.rules)
    }

    fn kept(
        mut index: Postings,
        known: Vec<(i64, Entry)>,
        wanted: &[Wanted<'_>],
        vault: &Vault,
        rules: &Rules,
    ) -> Result<Result<Self, PostingsError>, VaultError> {
        let by_path: HashMap<&str, &Entry> =
            known.iter().map(|(_, it)| (it.path.as_str(), it)).collect();
        let is_new = |it: &&Wanted<'_>| {
            let known = by_path.get(it.path.as_str());
            known.is_none_or(|known| known.stamp != it.stamp || known.input != it.input)
        };
        let mut come: Vec<&Wanted<'_>> = wanted.iter().filter(is_new).collect();
        let stays: HashSet<&str> = wanted.iter().map(|it| it.path.as_str()).collect();
        let gone = known.iter().map(|(_, it)| &it.path).filter(|it| !stays.contains(it.as_str()));
        let mut gone: Vec<String> = gone.cloned().collect();
        if come.is_empty() && gone.is_empty() {
            return Ok(Self::of_kept(index, known));
        }
        if let Err(error) = index.release() {
            return Ok(Err(error));
        }
        come.sort_by_key(|it| it.bucket);
        let mut batch: Vec<&Wanted<'_>> = Vec::new();
        let mut bytes = 0;
        let mut left = come.into_iter().peekable();
        loop {
            let next = left.next();
            // A bucket is written once, so it is not parted.
            let is_full = bytes >= BATCH_BYTES
                && next.zip(batch.last()).is_some_and(|(a, b)| a.bucket != b.bucket);
            if next.is_none() || is_full {
                let come = grounds(&batch, vault, rules)?;
                let change = Change { gone: std::mem::take(&mut gone), come };
                if let Err(error) = index.apply(&change) {
                    return Ok(Err(error));
                }
                batch.clear();
                bytes = 0;
            }
            let Some(next) = next else { break };
            bytes += next.stamp.size;
            batch.push(next);
        }
        let counted = index
            .known()
            .and_then(|it| index.set_number(DISTINCT, count_distinct(&it.files)))
            .and_then(|()| index.hold())
            .and_then(|()| index.known());
        Ok(counted.and_then(|known| Self::of_kept(index, known.files)))
    }

    fn of_kept(index: Postings, mut entries: Vec<(i64, Entry)>) -> Result<Self, PostingsError> {
        let distinct = match index.number(DISTINCT)? {
            Some(distinct) => distinct,
            // The process was ended between the files and their number.
            None => count_distinct(&entries),
        };
        entries.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        let mut buckets: Vec<i64> = entries.iter().map(|it| it.1.bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        Ok(Self { entries, buckets, distinct, of: Of::Kept(index) })
    }

    fn read(wanted: &[Wanted<'_>], vault: &Vault, rules: &Rules) -> Result<Self, VaultError> {
        let all: Vec<&Wanted<'_>> = wanted.iter().collect();
        let mut entries = Vec::new();
        let mut words: HashMap<u64, Vec<u8>> = HashMap::new();
        for (number, (entry, places)) in (1_i64..).zip(grounds(&all, vault, rules)?) {
            for (term, packed) in places {
                let mut to = Writer(std::mem::take(words.entry(term).or_default()));
                to.number(number.unsigned_abs());
                to.number(packed.len() as u64);
                to.bytes(&packed);
                words.insert(term, to.0);
            }
            entries.push((number, entry));
        }
        entries.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        let distinct = count_distinct(&entries);
        Ok(Self { entries, buckets: Vec::new(), distinct, of: Of::Read(words) })
    }

    /// The files, by path, each with its number.
    pub(super) fn entries(&self) -> &[(i64, Entry)] {
        &self.entries
    }

    /// How many different lines the logs have.
    pub(super) fn distinct(&self) -> u64 {
        self.distinct
    }

    /// Calls `each` with the number of a file and where a word stands in it.
    pub(super) fn places(
        &self,
        term: u64,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), PostingsError> {
        match &self.of {
            Of::Kept(index) => index.places(&self.buckets, term, each),
            Of::Read(words) => {
                let mut reader = Reader::new(words.get(&term).map_or(&[][..], Vec::as_slice));
                while let Some((file, places)) = reader.next_file() {
                    each(file, places);
                }
                Ok(())
            }
        }
    }
}

const DISTINCT: &str = "distinct";

fn count_distinct(entries: &[(i64, Entry)]) -> u64 {
    // A bit for each hash of 24 bits.
    let mut seen = vec![0_u64; 1 << 18];
    for (_, entry) in entries {
        let Some((head, _)) = ground::head(&entry.lines) else { continue };
        if head.tier >= super::matched::LOGS {
            continue;
        }
        for line in ground::lines(&entry.lines).iter().filter(|it| it.level == 0) {
            seen[line.hash as usize >> 6] |= 1 << (line.hash & 63);
        }
    }
    seen.iter().map(|it| u64::from(it.count_ones())).sum()
}

/// Returns what should stand in the index.
fn wanted<'a>(vault: &Vault, inventory: &'a Inventory) -> Result<Vec<Wanted<'a>>, VaultError> {
    use chrono::Datelike as _;
    let layout = vault.layout();
    let mut wanted = Vec::new();
    for (stem, file) in &inventory.logs {
        let day = stem.date();
        wanted.push(Wanted {
            path: file.path.clone(),
            bucket: i64::from(day.year()) * 12 + i64::from(day.month0()),
            stamp: file.stamp,
            hash: file.hash,
            input: file.input,
            what: What::Log(stem),
        });
    }
    let decided = vault.read_text(&layout.decisions())?.unwrap_or_default();
    // What is no log depends on all that was decided: that is seldom, and such files are few.
    let of_items = |path: String, bucket: i64, hash: ContentHash, what| {
        let decided = format!("{} {decided}", hash.hex16());
        let stamp = Stamp { inode: 0, size: 0, mtime_ns: 0 };
        Wanted { path, bucket, stamp, hash, input: ContentHash::of(decided), what }
    };
    for (period, file) in inventory.weekly.iter().chain(&inventory.monthly) {
        let bucket = SUMMARIES + i64::from(period.first().year());
        let what = What::Summary(*period);
        wanted.push(of_items(file.path.clone(), bucket, file.hash, what));
    }
    if let Some(text) = &inventory.wisdom {
        let rows = items::of_wisdom(text, &inventory.rules);
        let what = What::Items(4, rows);
        wanted.push(of_items(layout.wisdom(), OTHERS, ContentHash::of(text), what));
    }
    for memory in &inventory.memories {
        let path = layout.typed(&memory.file_name.to_string_lossy());
        let hash = ContentHash::of(format!("{memory:?}"));
        let rows = vec![items::of_memory(memory, &inventory.rules)];
        wanted.push(of_items(path, OTHERS, hash, What::Items(5, rows)));
    }
    Ok(wanted)
}

/// Takes files apart, some at a time beside each other.
fn grounds(
    wanted: &[&Wanted<'_>],
    vault: &Vault,
    rules: &Rules,
) -> Result<Vec<(Entry, Places)>, VaultError> {
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
) -> Result<(Entry, Places), VaultError> {
    let Ground { lines, places, cites } = match &wanted.what {
        What::Log(stem) => match vault.read_log(stem)? {
            Some(log) => ground::of_log(&privacy::serve(&log, rules), stems),
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
        What::Items(tier, rows) => ground::of_items(*tier, rows, stems),
    };
    let entry = Entry {
        path: wanted.path.clone(),
        bucket: wanted.bucket,
        stamp: wanted.stamp,
        hash: wanted.hash,
        input: wanted.input,
        lines,
        cites,
    };
    Ok((entry, places))
}
