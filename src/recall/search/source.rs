//! Where the search looks: the index, brought up to date first, or where it cannot be used the files
//! themselves, read and taken apart in memory. Both say the same.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{BTreeMap, HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, OnceLock},
    thread,
};

use chrono::{Datelike as _, NaiveDate};

use super::{
    ground::{self, Ground, Head, Line},
    items,
    matched::{LOGS, stem_of},
    words::Stems,
};
use crate::{
    memory::{
        address::{Citation, Stem},
        document::Summary,
        hash::ContentHash,
        period::Period,
        typed::TypedMemory,
    },
    privacy::{self, Rules},
    store::{
        inventory::{Inventory, LogFile, Stamp},
        postings::{self, Change, Detail, Entry, Places, Postings, PostingsError, Reader, Writer},
        vault::{Vault, VaultError},
    },
};

/// So many bytes of logs are read without an index in a root that has no private folder yet.
const SMALL: u64 = 1 << 20;

/// What is taken apart at once before it is written.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_FILES: usize = 2_000;

/// So many new files at most are taken in for who searches next, and of more in all nothing else is made
/// ready.
const READY_MAX: usize = 20_000;

/// Logs of the newest year stand by month, older ones, which seldom change, by year: a search asks each
/// bucket for each word. Summaries stand by year, far from them; the rest in one.
const SUMMARIES: i64 = 1_000_000;
const OTHERS: i64 = 2_000_000;

/// Where the search looks.
pub(super) struct Source {
    entries: Files,
    /// What is known of each as a whole, and where each stands among them.
    heads: Vec<Option<Head>>,
    by_number: ByNumber<i64, usize>,
    /// Logs by the names by which they are cited.
    by_stem: HashMap<String, usize>,
    buckets: Vec<i64>,
    distinct: u64,
    of: Of,
    /// Of which state of the index all this is.
    changes: u64,
    /// What was unpacked, where that is kept for the next search.
    kept_lines: Option<RefCell<KeptLines>>,
}

/// What is known of the lines of a file, unpacked.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    pub(super) lines: Vec<Line>,
    /// The length of the window around each line of a log, in tenths.
    pub(super) around: Vec<u32>,
    /// What its items cite, and where in it each row begins.
    cites: String,
    rows: Vec<usize>,
    /// What was found to stand beneath the item in each row.
    pub(super) beneath: Vec<OnceLock<Beneath>>,
}

/// The date of an item, and the lines of logs that it rests on, as file and row.
pub(super) type Beneath = (NaiveDate, Vec<(usize, usize)>);

impl Unpacked {
    fn of(detail: Detail, count: usize) -> Self {
        let mut lines = ground::lines(&detail.lines);
        // Of a torn file the rest says nothing.
        lines.resize(count, Line { level: u8::MAX, ..Line::default() });
        let cites = detail.cites;
        let around = if cites.is_empty() { ground::around(&lines) } else { Vec::new() };
        let ends = cites.bytes().zip(1..).filter(|it| it.0 == b'\n').map(|it| it.1);
        let rows = std::iter::once(0).chain(ends).collect();
        let items = if cites.is_empty() { 0 } else { lines.len() };
        let beneath = std::iter::repeat_with(OnceLock::new).take(items).collect();
        Self { lines, around, cites, rows, beneath }
    }

    /// Returns a file of which nothing can be read.
    pub(super) fn torn(count: usize) -> Self {
        Self::of(Detail::default(), count)
    }

    /// Returns what the item in a row cites.
    pub(super) fn cited(&self, row: usize) -> Option<(NaiveDate, Option<Citation>)> {
        ground::cited(self.cites.get(*self.rows.get(row)?..)?)
    }
}

/// A hash for numbers that are hashes, or count.
#[derive(Clone, Copy, Default)]
pub(super) struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing (Knuth, "Sorting and Searching", 6.4); the table takes the highest bits, too.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// Numbers that are hashes, or count, to something.
pub(super) type ByNumber<N, T> = HashMap<N, T, BuildHasherDefault<Spread>>;

/// Files by their numbers, and how many lines they have in all.
#[derive(Default)]
struct KeptLines {
    files: ByNumber<i64, Arc<Unpacked>>,
    count: usize,
}

/// Of so many lines at most it is kept what is known: some 30 bytes each.
const LINES_KEPT_MAX: usize = 1_000_000;

enum Of {
    Kept(Postings),
    /// Words, and files by their numbers.
    Read(HashMap<u64, Vec<u8>>, HashMap<i64, Detail>),
}

/// The files of an index, each with its number.
type Files = Vec<(i64, Entry)>;

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
    Wisdom(&'a str),
    Memory(&'a TypedMemory),
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
        let seen = postings::seen(&known);
        let inventory = vault.scan_names(&seen)?.inventory;
        let sessions = vault.scan_sessions(&seen, &inventory.rules)?;
        let wanted = wanted(vault, &inventory, &sessions)?;
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
        let sessions = vault.scan_sessions(&HashMap::new(), &inventory.rules)?;
        Self::read(&wanted(vault, inventory, &sessions)?, vault, &inventory.rules)
    }

    /// Brings the index up to date for who searches next, from what a pass has just seen. Where somebody is
    /// at it, that is left to them.
    pub(super) fn keep(vault: &Vault, inventory: &Inventory) -> Result<(), VaultError> {
        let path = vault.layout().search_index();
        let Ok(mut index) = Postings::open_aside(&path, vault.rules().policy_hash()) else {
            return Ok(());
        };
        let Ok(known) = index.known() else { return Ok(()) };
        let sessions = vault.scan_sessions(&postings::seen(&known), &inventory.rules)?;
        let mut wanted = wanted(vault, inventory, &sessions)?;
        if wanted.len() > READY_MAX {
            // Of a great many the newest come now, the others by and by: nobody waits for them.
            let there: HashSet<&str> = known.files.iter().map(|(_, it)| &it.path[..]).collect();
            let mut room = READY_MAX;
            wanted.reverse();
            wanted.retain(|it| {
                let is_there = there.contains(&it.path[..]);
                let comes = is_there || room > 0;
                room = room.saturating_sub(usize::from(!is_there));
                comes
            });
            // The next search makes good what is left, and what could not be written.
            return Self::bring(&mut index, known.files, &wanted, vault, &inventory.rules)
                .map(drop);
        }
        // As above.
        Self::kept(index, known.files, &wanted, vault, &inventory.rules).map(drop)
    }

    /// Takes one log into the index, if there is one.
    pub(super) fn keep_log(vault: &Vault, stem: &Stem, rules: &Rules) -> Result<(), VaultError> {
        let index = vault.layout().search_index();
        if !index.exists() {
            return Ok(());
        }
        let path = vault.layout().source(stem);
        let Some(found) = vault.read(&path)? else { return Ok(()) };
        let Ok(mut index) = Postings::open_aside(&index, vault.rules().policy_hash()) else {
            return Ok(());
        };
        let hash = ContentHash::of(&found.bytes);
        let input = rules.input_hash(stem, hash);
        let wanted = wanted_log((stem, stem.date().year()), path, found.stamp, hash, input);
        let come = grounds(&[&wanted], vault, rules)?;
        // As above.
        drop(index.apply(&Change { gone: Vec::new(), come }));
        Ok(())
    }

    fn kept(
        mut index: Postings,
        known: Files,
        wanted: &[Wanted<'_>],
        vault: &Vault,
        rules: &Rules,
    ) -> Result<Result<Self, PostingsError>, VaultError> {
        match Self::bring(&mut index, known, wanted, vault, rules)? {
            Ok(Some(known)) => Ok(Self::of_kept(index, known)),
            Ok(None) => {
                let known = index.hold().and_then(|()| index.known());
                Ok(known.and_then(|known| Self::of_kept(index, known.files)))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Brings the index up to date, and returns what was known where that is all there is.
    fn bring(
        index: &mut Postings,
        known: Files,
        wanted: &[Wanted<'_>],
        vault: &Vault,
        rules: &Rules,
    ) -> Result<Result<Option<Files>, PostingsError>, VaultError> {
        let by_path: HashMap<&str, &Entry> =
            known.iter().map(|(_, it)| (it.path.as_str(), it)).collect();
        let is_new = |it: &&Wanted<'_>| {
            let known = by_path.get(it.path.as_str());
            known.is_none_or(|known| {
                known.stamp != it.stamp || known.input != it.input || known.bucket != it.bucket
            })
        };
        let mut come: Vec<&Wanted<'_>> = wanted.iter().filter(is_new).collect();
        let stays: HashSet<&str> = wanted.iter().map(|it| it.path.as_str()).collect();
        let gone = known.iter().map(|(_, it)| &it.path).filter(|it| !stays.contains(it.as_str()));
        let mut gone: Vec<String> = gone.cloned().collect();
        if come.is_empty() && gone.is_empty() {
            return Ok(Ok(Some(known)));
        }
        drop(known);
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
            let is_full = (bytes >= BATCH_BYTES || batch.len() >= BATCH_FILES)
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
        Ok(Ok(None))
    }

    fn of_kept(index: Postings, mut entries: Files) -> Result<Self, PostingsError> {
        let heads = || entries.iter().filter_map(|it| ground::head(&it.1.head));
        let said: u64 = heads().filter(|it| it.tier < super::matched::LOGS).map(|it| it.said).sum();
        let counted = index.number(DISTINCT)?.zip(index.number(COUNTED_AT)?);
        let counted = counted.zip(index.number(COUNTED_OF)?);
        let now = index.changes()?;
        let is_near = |of: u64| said >= COUNTED_NEAR_MIN && said.abs_diff(of) <= of / COUNTED_NEAR;
        let distinct = match counted {
            Some(((distinct, at), of)) if at == now || is_near(of) => distinct,
            _ => {
                let distinct = count_distinct(&entries, |it| index.detail(it).map(Cow::Owned))?;
                let numbers = [(DISTINCT, distinct), (COUNTED_AT, now), (COUNTED_OF, said)];
                // Who cannot write it counts once more.
                if index.set_numbers(&numbers).is_ok() {
                    index.release()?;
                    index.hold()?;
                    // Somebody may have changed it between the two.
                    if index.changes()? != now {
                        let known = index.known()?;
                        return Self::of_kept(index, known.files);
                    }
                }
                distinct
            }
        };
        entries.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        let mut buckets: Vec<i64> = entries.iter().map(|it| it.1.bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        Ok(Self { buckets, distinct, changes: now, ..Self::of(entries, Of::Kept(index)) })
    }

    fn read(wanted: &[Wanted<'_>], vault: &Vault, rules: &Rules) -> Result<Self, VaultError> {
        let all: Vec<&Wanted<'_>> = wanted.iter().collect();
        let mut entries = Vec::new();
        let mut words: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut details = HashMap::new();
        for (number, (entry, detail, places)) in (1_i64..).zip(grounds(&all, vault, rules)?) {
            for (term, packed) in places {
                let mut to = Writer(std::mem::take(words.entry(term).or_default()));
                to.number(number.unsigned_abs());
                to.number(packed.len() as u64);
                to.bytes(&packed);
                words.insert(term, to.0);
            }
            entries.push((number, entry));
            details.insert(number, detail);
        }
        entries.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        let known = |it| Ok(details.get(&it).map_or_else(Cow::default, Cow::Borrowed));
        // Nothing is asked of a database.
        let distinct = count_distinct(&entries, known).unwrap_or(0);
        Ok(Self { distinct, ..Self::of(entries, Of::Read(words, details)) })
    }

    fn of(entries: Files, of: Of) -> Self {
        let heads: Vec<_> = entries.iter().map(|it| ground::head(&it.1.head)).collect();
        let by_number = entries.iter().map(|it| it.0).zip(0..).collect();
        let logs = entries.iter().zip(&heads).enumerate().filter(|it| is_log(it.1.1.as_ref()));
        let by_stem = logs.map(|(at, it)| (stem_of(&it.0.1.path).to_owned(), at)).collect();
        let (buckets, distinct, changes, kept_lines) = Default::default();
        Self { entries, heads, by_number, by_stem, buckets, distinct, of, changes, kept_lines }
    }

    /// What is known of each file as a whole; nothing of one that cannot be read.
    pub(super) fn heads(&self) -> &[Option<Head>] {
        &self.heads
    }

    /// Returns the place of a file among all by its number.
    pub(super) fn place(&self, number: i64) -> Option<usize> {
        self.by_number.get(&number).copied()
    }

    /// Returns the place of a log among all files by its name.
    pub(super) fn place_of(&self, stem: &str) -> Option<usize> {
        self.by_stem.get(stem).copied()
    }

    /// Returns the logs and records of sessions, by path, each with its name.
    pub(super) fn logs(&self) -> impl Iterator<Item = (Stem, &str)> {
        let all = self.entries.iter().zip(&self.heads).filter(|it| is_log(it.1.as_ref()));
        let paths = all.map(|((_, entry), _)| &entry.path[..]);
        paths.filter_map(|it| stem_of(it).parse().ok().map(|stem| (stem, it)))
    }

    /// Keeps what it unpacks, for further searches.
    pub(super) fn keeping_lines(self) -> Self {
        Self { kept_lines: Some(RefCell::default()), ..self }
    }

    /// Lets others write to the index until the next search; returns whether there can be one.
    pub(super) fn pause(&self) -> bool {
        match &self.of {
            Of::Kept(index) => index.release().is_ok(),
            Of::Read(..) => false,
        }
    }

    /// Returns whether the index is as it was before the pause; then it stays so for this search.
    pub(super) fn resume(&self) -> bool {
        match &self.of {
            Of::Kept(index) => {
                index.hold().and_then(|()| index.changes()).is_ok_and(|it| it == self.changes)
            }
            Of::Read(..) => false,
        }
    }

    /// Returns what is known of the lines of the file with this number, of which there are `count`.
    pub(super) fn unpacked(&self, file: i64, count: usize) -> Result<Arc<Unpacked>, PostingsError> {
        if let Some(kept) = &self.kept_lines
            && let Some(known) = kept.borrow().files.get(&file)
        {
            return Ok(Arc::clone(known));
        }
        let unpacked = Arc::new(Unpacked::of(self.detail(file)?.into_owned(), count));
        if let Some(kept) = &self.kept_lines {
            let kept = &mut *kept.borrow_mut();
            if kept.count + count > LINES_KEPT_MAX {
                *kept = KeptLines::default();
            }
            kept.count += count;
            kept.files.insert(file, Arc::clone(&unpacked));
        }
        Ok(unpacked)
    }

    /// Returns what is known of the lines of the file with this number.
    fn detail(&self, file: i64) -> Result<Cow<'_, Detail>, PostingsError> {
        match &self.of {
            Of::Kept(index) => index.detail(file).map(Cow::Owned),
            Of::Read(_, details) => Ok(details.get(&file).map_or_else(Cow::default, Cow::Borrowed)),
        }
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
            Of::Read(words, _) => {
                let mut reader = Reader::new(words.get(&term).map_or(&[][..], Vec::as_slice));
                while let Some((file, places)) = reader.next_file() {
                    each(file, places);
                }
                Ok(())
            }
        }
    }
}

/// How many different lines there are; of which state of the index that is true, and of how many lines.
const DISTINCT: &str = "distinct";
const COUNTED_AT: &str = "distinct_at";
const COUNTED_OF: &str = "distinct_of";

/// In an index of so many lines a part of so few that came or went is not counted anew: to the weight of a
/// word it is nothing.
const COUNTED_NEAR_MIN: u64 = 20_000;
const COUNTED_NEAR: u64 = 64;

/// Returns whether it is known of a log, or of a record of a session.
fn is_log(head: Option<&Head>) -> bool {
    head.is_some_and(|it| it.tier < LOGS)
}

fn count_distinct<'a>(
    entries: &[(i64, Entry)],
    detail: impl Fn(i64) -> Result<Cow<'a, Detail>, PostingsError>,
) -> Result<u64, PostingsError> {
    // A bit for each hash of 24 bits.
    let mut seen = vec![0_u64; 1 << 18];
    for (number, entry) in entries {
        let Some(head) = ground::head(&entry.head) else { continue };
        if head.tier >= super::matched::LOGS {
            continue;
        }
        for line in ground::lines(&detail(*number)?.lines).iter().filter(|it| it.level == 0) {
            seen[line.hash as usize >> 6] |= 1 << (line.hash & 63);
        }
    }
    Ok(seen.iter().map(|it| u64::from(it.count_ones())).sum())
}

/// Returns how a log should stand in the index whose newest log is of that year.
fn wanted_log(
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
fn wanted<'a>(
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
fn grounds(
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
