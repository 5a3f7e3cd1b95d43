//! Where the search looks: the index, brought up to date first, or where it cannot be used the files
//! themselves, read and taken apart in memory. Both say the same.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, OnceLock},
};

use chrono::{Datelike as _, NaiveDate};

use super::{
    ground::{self, Head, Line},
    matched::{LOGS, stem_of},
    wanted::{Look, Wanted, grounds, wanted, wanted_log},
};
use crate::{
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
    },
    parallel,
    privacy::Rules,
    store::{
        inventory::Inventory,
        postings::{self, Change, Detail, Entry, Postings, PostingsError, Reader, Writer},
        vault::{Vault, VaultError, scan::Seen},
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
    fn of(detail: &Detail, count: usize) -> Self {
        let mut lines = ground::lines(&detail.lines);
        // Of a torn file the rest says nothing.
        lines.resize(count, Line { level: u8::MAX, ..Line::default() });
        let cites = detail.cites.clone();
        let around = if cites.is_empty() { ground::around(&lines) } else { Vec::new() };
        let ends = cites.bytes().zip(1..).filter(|it| it.0 == b'\n').map(|it| it.1);
        let rows = std::iter::once(0).chain(ends).collect();
        let items = if cites.is_empty() { 0 } else { lines.len() };
        let beneath = std::iter::repeat_with(OnceLock::new).take(items).collect();
        Self { lines, around, cites, rows, beneath }
    }

    /// Returns a file of which nothing can be read.
    pub(super) fn torn(count: usize) -> Self {
        Self::of(&Detail::default(), count)
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

/// So many files at a time are unpacked beside others.
const FILES_AT_ONCE: usize = 512;

enum Of {
    Kept(Postings),
    /// Words, and files by their numbers.
    Read(HashMap<u64, Vec<u8>>, HashMap<i64, Detail>),
}

/// The files of an index, each with its number.
type Files = Vec<(i64, Entry)>;

impl Source {
    /// Looks at the root, brings the index up to date, and returns it with what may be seen. An index
    /// that cannot be used is as if there were none.
    pub(super) fn open(vault: &Vault) -> Result<(Self, Inventory), VaultError> {
        let left = Self::as_left(vault);
        let look = Look::at(vault, || left.as_ref().map(Self::seen).unwrap_or_default())?;
        Ok((Self::brought(left, vault, &look)?, look.inventory))
    }

    /// Returns the index as it was left, whatever stands in the files by now; `None` without one that can
    /// be used.
    pub(super) fn as_left(vault: &Vault) -> Option<Self> {
        let path = vault.layout().search_index();
        // A folder of which nothing is kept yet stays so for a search.
        path.parent().filter(|it| it.exists())?;
        let index = Postings::open(&path, vault.rules().policy_hash()).ok()?;
        let known = index.hold().and_then(|()| index.known()).ok()?;
        Self::of_kept(index, known.files).ok()
    }

    /// Returns what the index knows of the files by which a change is told.
    pub(super) fn seen(&self) -> HashMap<String, Seen> {
        postings::seen(&self.entries)
    }

    /// Returns whether the index is as the files are.
    pub(super) fn is_of(&self, vault: &Vault, look: &Look) -> Result<bool, VaultError> {
        let wanted = look.wanted(vault)?;
        let (come, gone) = changed(&self.entries, &wanted);
        Ok(matches!(self.of, Of::Kept(_)) && come.is_empty() && gone.is_empty())
    }

    /// Returns the index as the files are, brought up to date where it is not; what could not be used at
    /// first may be made anew by now.
    pub(super) fn brought(
        left: Option<Self>,
        vault: &Vault,
        look: &Look,
    ) -> Result<Self, VaultError> {
        let rules = &look.inventory.rules;
        let wanted = look.wanted(vault)?;
        let kept = if let Some(Self { of: Of::Kept(index), entries, .. }) = left {
            Some((index, entries))
        } else {
            let path = vault.layout().search_index();
            let is_kept = path.parent().is_some_and(std::path::Path::exists);
            let is_large = || wanted.iter().map(|it| it.stamp.size).sum::<u64>() > SMALL;
            let open = || Postings::open(&path, vault.rules().policy_hash()).ok();
            let index = if is_kept || is_large() { open() } else { None };
            let known = |it: &Postings| it.hold().and_then(|()| it.known());
            index.map(|it| {
                let files = known(&it).unwrap_or_default().files;
                (it, files)
            })
        };
        if let Some((index, known)) = kept
            && let Ok(source) = Self::of_index(index, known, &wanted, vault, rules)?
        {
            return Ok(source);
        }
        Self::read(&wanted, vault, rules)
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
        let sessions = vault.scan_sessions(&postings::seen(&known.files), &inventory.rules)?;
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
        Self::of_index(index, known.files, &wanted, vault, &inventory.rules).map(drop)
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

    fn of_index(
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
        let (mut come, mut gone) = changed(&known, wanted);
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

    /// Returns whether there is a log, or a record of a session, of one of these days.
    pub(super) fn has_logs(&self, (first, last): (NaiveDate, NaiveDate)) -> bool {
        let logs = self.heads.iter().flatten().filter(|it| it.tier < LOGS);
        logs.map(|it| it.date).any(|it| (first..=last).contains(&it))
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
        let kept_lines = self.kept_lines.or_else(|| Some(RefCell::default()));
        Self { kept_lines, ..self }
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
        if let Some(known) = self.kept(file) {
            return Ok(known);
        }
        let unpacked = Arc::new(Unpacked::of(&*self.detail(file)?, count));
        self.keep_lines(file, &unpacked);
        Ok(unpacked)
    }

    /// Like [`Self::unpacked`], of many files; those that cannot be read are left out.
    pub(super) fn unpacked_all(&self, files: &[(i64, usize)]) -> Vec<Option<Arc<Unpacked>>> {
        let mut all: Vec<_> = files.iter().map(|(file, _)| self.kept(*file)).collect();
        let mut packed = Vec::new();
        for (at, &(file, count)) in files.iter().enumerate().filter(|(at, _)| all[*at].is_none()) {
            packed.extend(self.detail(file).ok().map(|detail| (at, detail, count)));
        }
        let parts: Vec<_> = packed.chunks(FILES_AT_ONCE).collect();
        let unpacked = parallel::map(&parts, |part| {
            let unpack = |(_, detail, count): &(_, Cow<'_, Detail>, _)| {
                Arc::new(Unpacked::of(detail, *count))
            };
            part.iter().map(unpack).collect::<Vec<_>>()
        });
        for ((at, ..), unpacked) in packed.iter().zip(unpacked.into_iter().flatten()) {
            self.keep_lines(files[*at].0, &unpacked);
            all[*at] = Some(unpacked);
        }
        all
    }

    /// Returns what is known of a file from an earlier search.
    fn kept(&self, file: i64) -> Option<Arc<Unpacked>> {
        self.kept_lines.as_ref()?.borrow().files.get(&file).cloned()
    }

    fn keep_lines(&self, file: i64, unpacked: &Arc<Unpacked>) {
        let Some(kept) = &self.kept_lines else { return };
        let kept = &mut *kept.borrow_mut();
        if kept.count + unpacked.lines.len() > LINES_KEPT_MAX {
            *kept = KeptLines::default();
        }
        kept.count += unpacked.lines.len();
        kept.files.insert(file, Arc::clone(unpacked));
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

/// Returns which files are not in an index as they should be, and which are and should not.
fn changed<'w>(known: &Files, wanted: &'w [Wanted<'w>]) -> (Vec<&'w Wanted<'w>>, Vec<String>) {
    let by_path: HashMap<&str, &Entry> =
        known.iter().map(|(_, it)| (it.path.as_str(), it)).collect();
    let is_new = |it: &&Wanted<'_>| {
        let known = by_path.get(it.path.as_str());
        known.is_none_or(|known| {
            known.stamp != it.stamp || known.input != it.input || known.bucket != it.bucket
        })
    };
    let come = wanted.iter().filter(is_new).collect();
    let stays: HashSet<&str> = wanted.iter().map(|it| it.path.as_str()).collect();
    let gone = known.iter().map(|(_, it)| &it.path).filter(|it| !stays.contains(it.as_str()));
    (come, gone.cloned().collect())
}

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
