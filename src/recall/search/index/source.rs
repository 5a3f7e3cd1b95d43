//! The source of a search: the updated index, or if it is unusable, the files packed in memory. Both
//! give the same results.

use std::{
    borrow::Cow,
    cell::RefCell,
    collections::{HashMap, HashSet},
    hash::{BuildHasherDefault, Hasher},
    sync::{Arc, OnceLock},
};

use chrono::{Datelike as _, NaiveDate};

use super::{
    indexed_file::{self, IndexedFileHeader, IndexedLine},
    matches::{LOG_TIERS, stem_of},
    target::{IndexTarget, RootScan, build_entries, index_targets, log_target},
};
use crate::{
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
    },
    parallel,
    privacy::PrivacyRules,
    store::{
        db::search_index::{
            self, CacheDbError, IndexChange, IndexEntry, LineDetail, PostingsDb, VarintReader,
            VarintWriter,
        },
        fs::{
            inventory::{FileStat, Inventory},
            vault::{Vault, VaultError, scan::KnownFile},
        },
    },
};

/// How many bytes of logs are searched without an index in a root that has no private folder yet.
const UNINDEXED_BYTES_MAX: u64 = 1 << 20;

/// How much is packed at once before it is written.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_FILES: usize = 2_000;

/// The most new files that `update_index` adds; with more than that in all, it prepares nothing else.
const NEW_FILES_MAX: usize = 20_000;

pub(crate) struct SearchSource {
    /// By path.
    pub(crate) entries: IndexedFiles,
    /// The attributes of each file; `None` for an unreadable one.
    pub(crate) heads: Vec<Option<IndexedFileHeader>>,
    /// The position of each file.
    by_number: NumberMap<i64, usize>,
    /// Logs by stem.
    by_stem: HashMap<String, usize>,
    buckets: Vec<i64>,
    /// The number of distinct lines in the logs.
    pub(crate) distinct: u64,
    backend: SourceBackend,
    /// The state of the index that all this describes.
    changes: u64,
    /// Unpacked lines, if they are cached for the next search.
    line_cache: Option<RefCell<LineCache>>,
}

#[derive(Debug, Default)]
pub(crate) struct UnpackedLines {
    pub(crate) lines: Vec<IndexedLine>,
    /// The length of the window around each line of a log, in tenths.
    pub(crate) window_lengths: Vec<u32>,
    /// The citations of its items, and where each row begins in them.
    citations: String,
    rows: Vec<usize>,
    /// The source lines of the item in each row, once they were looked up.
    pub(crate) item_sources: Vec<OnceLock<ItemSources>>,
}

/// The date of an item, and its source lines as file and row.
pub(crate) type ItemSources = (NaiveDate, Vec<(usize, usize)>);

impl UnpackedLines {
    fn of(detail: &LineDetail, count: usize) -> Self {
        let mut lines = indexed_file::read_lines(&detail.lines);
        // The rest of a truncated record is ignored.
        lines.resize(count, IndexedLine { level: u8::MAX, ..IndexedLine::default() });
        let cites = detail.cites.clone();
        let around =
            if cites.is_empty() { indexed_file::window_lengths(&lines) } else { Vec::new() };
        let ends = cites.bytes().zip(1..).filter(|it| it.0 == b'\n').map(|it| it.1);
        let rows = std::iter::once(0).chain(ends).collect();
        let items = if cites.is_empty() { 0 } else { lines.len() };
        let beneath = std::iter::repeat_with(OnceLock::new).take(items).collect();
        Self { lines, window_lengths: around, citations: cites, rows, item_sources: beneath }
    }

    /// Returns the lines of an unreadable file.
    pub(crate) fn unreadable(count: usize) -> Self {
        Self::of(&LineDetail::default(), count)
    }

    pub(crate) fn item_citation(&self, row: usize) -> Option<(NaiveDate, Option<Citation>)> {
        indexed_file::read_item_citation(self.citations.get(*self.rows.get(row)?..)?)
    }
}

/// A hasher for numbers that are hashes or counters.
#[derive(Clone, Copy, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
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
        // Fibonacci hashing (Knuth, "Sorting and Searching", 6.4); the table also uses the highest
        // bits.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// A map from such numbers.
pub(crate) type NumberMap<N, T> = HashMap<N, T, BuildHasherDefault<NumberHasher>>;

/// Unpacked files by number, and their total number of lines.
#[derive(Default)]
struct LineCache {
    files: NumberMap<i64, Arc<UnpackedLines>>,
    count: usize,
}

/// The most lines that are cached, at some 30 bytes each.
const CACHED_LINES_MAX: usize = 1_000_000;

/// How many files are unpacked in parallel.
const FILES_AT_ONCE: usize = 512;

enum SourceBackend {
    Index(PostingsDb),
    /// Words, and the files by number.
    InMemory(HashMap<u64, Vec<u8>>, HashMap<i64, LineDetail>),
}

/// The files of an index, each with its number.
type IndexedFiles = Vec<(i64, IndexEntry)>;

impl SearchSource {
    /// Scans the root, updates the index, and returns both. An unusable index counts as missing.
    pub(crate) fn open(vault: &Vault) -> Result<(Self, Inventory), VaultError> {
        let left = Self::open_existing(vault);
        let look =
            RootScan::scan(vault, || left.as_ref().map(Self::known_files).unwrap_or_default())?;
        Ok((Self::refreshed(left, vault, &look)?, look.inventory))
    }

    /// Returns the index without updating it; `None` if there is no usable one.
    pub(crate) fn open_existing(vault: &Vault) -> Option<Self> {
        let path = vault.layout().search_index();
        // A search does not create the private folder.
        path.parent().filter(|it| it.exists())?;
        let index = PostingsDb::open(&path, vault.rules().policy_hash()).ok()?;
        let known = index.begin_read().and_then(|()| index.entries()).ok()?;
        Self::from_index(index, known.files).ok()
    }

    /// Returns the stamps of the indexed files, to detect changes.
    pub(crate) fn known_files(&self) -> HashMap<String, KnownFile> {
        search_index::known_files(&self.entries)
    }

    /// Returns whether the index matches the files.
    pub(crate) fn is_up_to_date(&self, vault: &Vault, look: &RootScan) -> Result<bool, VaultError> {
        let targets = look.targets(vault)?;
        let is_index = matches!(self.backend, SourceBackend::Index(_));
        Ok(is_index && index_changes(&self.entries, &targets).is_empty())
    }

    /// Returns the updated index. An index that was unusable at first may have been recreated since.
    pub(crate) fn refreshed(
        left: Option<Self>,
        vault: &Vault,
        look: &RootScan,
    ) -> Result<Self, VaultError> {
        let rules = &look.inventory.rules;
        let targets = look.targets(vault)?;
        let kept = if let Some(Self { backend: SourceBackend::Index(index), entries, .. }) = left {
            Some((index, entries))
        } else {
            let path = vault.layout().search_index();
            let is_kept = path.parent().is_some_and(std::path::Path::exists);
            let is_large =
                || targets.iter().map(|it| it.stamp.size).sum::<u64>() > UNINDEXED_BYTES_MAX;
            let open = || PostingsDb::open(&path, vault.rules().policy_hash()).ok();
            let index = if is_kept || is_large() { open() } else { None };
            let known = |it: &PostingsDb| it.begin_read().and_then(|()| it.entries());
            index.map(|it| {
                let files = known(&it).unwrap_or_default().files;
                (it, files)
            })
        };
        if let Some((index, known)) = kept
            && let Ok(source) = Self::from_updated_index(index, known, &targets, vault, rules)?
        {
            return Ok(source);
        }
        Self::read_files(&targets, vault, rules)
    }

    /// Reads all files, without an index.
    pub(crate) fn without_index(vault: &Vault, inventory: &Inventory) -> Result<Self, VaultError> {
        let sessions = vault.scan_sessions(&HashMap::new(), &inventory.rules)?;
        Self::read_files(&index_targets(vault, inventory, &sessions)?, vault, &inventory.rules)
    }

    /// Updates the index from a run's scan for the next search. If another process is doing that, it is
    /// left to it.
    pub(crate) fn update_index(vault: &Vault, inventory: &Inventory) -> Result<(), VaultError> {
        let path = vault.layout().search_index();
        let Ok(mut index) = PostingsDb::open_in_background(&path, vault.rules().policy_hash())
        else {
            return Ok(());
        };
        let Ok(known) = index.entries() else { return Ok(()) };
        let sessions =
            vault.scan_sessions(&search_index::known_files(&known.files), &inventory.rules)?;
        let mut wanted = index_targets(vault, inventory, &sessions)?;
        if wanted.len() > NEW_FILES_MAX {
            // With very many new files the newest come now, the others in later runs.
            let there: HashSet<&str> = known.files.iter().map(|(_, it)| &it.path[..]).collect();
            let mut room = NEW_FILES_MAX;
            wanted.reverse();
            wanted.retain(|it| {
                let is_there = there.contains(&it.path[..]);
                let comes = is_there || room > 0;
                room = room.saturating_sub(usize::from(!is_there));
                comes
            });
            // The next search does what is left, and what could not be written.
            return Self::apply_changes(&mut index, known.files, &wanted, vault, &inventory.rules)
                .map(drop);
        }
        // As above.
        Self::from_updated_index(index, known.files, &wanted, vault, &inventory.rules).map(drop)
    }

    /// Adds one log to the index, if there is one.
    pub(crate) fn update_index_log(
        vault: &Vault,
        stem: &Stem,
        rules: &PrivacyRules,
    ) -> Result<(), VaultError> {
        let index = vault.layout().search_index();
        if !index.exists() {
            return Ok(());
        }
        let path = vault.layout().source_path(stem);
        let Some(found) = vault.read(&path)? else { return Ok(()) };
        let Ok(mut index) = PostingsDb::open_in_background(&index, vault.rules().policy_hash())
        else {
            return Ok(());
        };
        let hash = ContentHash::of(&found.bytes);
        let input = rules.input_hash(stem, hash);
        let target = log_target((stem, stem.date().year()), path, found.stamp, hash, input);
        let come = build_entries(&[&target], vault, rules)?;
        // As above.
        drop(index.apply(&IndexChange { added: come, ..IndexChange::default() }));
        Ok(())
    }

    fn from_updated_index(
        mut index: PostingsDb,
        known: IndexedFiles,
        wanted: &[IndexTarget<'_>],
        vault: &Vault,
        rules: &PrivacyRules,
    ) -> Result<Result<Self, CacheDbError>, VaultError> {
        match Self::apply_changes(&mut index, known, wanted, vault, rules)? {
            Ok(Some(known)) => Ok(Self::from_index(index, known)),
            Ok(None) => {
                let known = index.begin_read().and_then(|()| index.entries());
                Ok(known.and_then(|known| Self::from_index(index, known.files)))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// Updates the index, and returns its files if they are complete.
    fn apply_changes(
        index: &mut PostingsDb,
        known: IndexedFiles,
        wanted: &[IndexTarget<'_>],
        vault: &Vault,
        rules: &PrivacyRules,
    ) -> Result<Result<Option<IndexedFiles>, CacheDbError>, VaultError> {
        let changes = index_changes(&known, wanted);
        if changes.is_empty() {
            return Ok(Ok(Some(known)));
        }
        let TargetChanges { mut come, mut gone, mut restamped } = changes;
        drop(known);
        if let Err(error) = index.end_read() {
            return Ok(Err(error));
        }
        come.sort_by_key(|it| it.bucket);
        let mut batch: Vec<&IndexTarget<'_>> = Vec::new();
        let mut bytes = 0;
        let mut left = come.into_iter().peekable();
        loop {
            let next = left.next();
            // A bucket is written once, so it is not split.
            let is_full = (bytes >= BATCH_BYTES || batch.len() >= BATCH_FILES)
                && next.zip(batch.last()).is_some_and(|(a, b)| a.bucket != b.bucket);
            if next.is_none() || is_full {
                let come = build_entries(&batch, vault, rules)?;
                let change = IndexChange {
                    removed: std::mem::take(&mut gone),
                    added: come,
                    restamped: std::mem::take(&mut restamped),
                };
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

    fn from_index(index: PostingsDb, mut entries: IndexedFiles) -> Result<Self, CacheDbError> {
        let heads = || entries.iter().filter_map(|it| indexed_file::read_header(&it.1.head));
        let said: u64 = heads()
            .filter(|it| it.tier < crate::recall::search::index::matches::LOG_TIERS)
            .map(|it| it.line_count)
            .sum();
        let counted = index.counter(DISTINCT)?.zip(index.counter(COUNTED_AT)?);
        let counted = counted.zip(index.counter(COUNTED_OF)?);
        let now = index.change_count()?;
        let is_near =
            |of: u64| said >= RECOUNT_LINES_MIN && said.abs_diff(of) <= of / RECOUNT_CHANGE_DIVISOR;
        let distinct = match counted {
            Some(((distinct, at), of)) if at == now || is_near(of) => distinct,
            _ => {
                let distinct =
                    count_distinct(&entries, |it| index.line_detail(it).map(Cow::Owned))?;
                let numbers = [(DISTINCT, distinct), (COUNTED_AT, now), (COUNTED_OF, said)];
                // If the count cannot be stored, the next search counts again.
                if index.set_counters(&numbers).is_ok() {
                    index.end_read()?;
                    index.begin_read()?;
                    // Another process may have changed the index between the two.
                    if index.change_count()? != now {
                        let known = index.entries()?;
                        return Self::from_index(index, known.files);
                    }
                }
                distinct
            }
        };
        entries.sort_by(|a, b| a.1.path.cmp(&b.1.path));
        let mut buckets: Vec<i64> = entries.iter().map(|it| it.1.bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        Ok(Self {
            buckets,
            distinct,
            changes: now,
            ..Self::new(entries, SourceBackend::Index(index))
        })
    }

    fn read_files(
        wanted: &[IndexTarget<'_>],
        vault: &Vault,
        rules: &PrivacyRules,
    ) -> Result<Self, VaultError> {
        let all: Vec<&IndexTarget<'_>> = wanted.iter().collect();
        let mut entries = Vec::new();
        let mut words: HashMap<u64, Vec<u8>> = HashMap::new();
        let mut details = HashMap::new();
        for (number, (entry, detail, places)) in (1_i64..).zip(build_entries(&all, vault, rules)?) {
            for (term, packed) in places {
                let mut to = VarintWriter(std::mem::take(words.entry(term).or_default()));
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
        // This backend has no database.
        let distinct = count_distinct(&entries, known).unwrap_or(0);
        Ok(Self { distinct, ..Self::new(entries, SourceBackend::InMemory(words, details)) })
    }

    fn new(entries: IndexedFiles, of: SourceBackend) -> Self {
        let heads: Vec<_> =
            entries.iter().map(|it| indexed_file::read_header(&it.1.head)).collect();
        let by_number = entries.iter().map(|it| it.0).zip(0..).collect();
        let logs = entries.iter().zip(&heads).enumerate().filter(|it| is_log(it.1.1.as_ref()));
        let by_stem = logs.map(|(at, it)| (stem_of(&it.0.1.path).to_owned(), at)).collect();
        let (buckets, distinct, changes, kept_lines) = Default::default();
        Self {
            entries,
            heads,
            by_number,
            by_stem,
            buckets,
            distinct,
            backend: of,
            changes,
            line_cache: kept_lines,
        }
    }

    /// Returns whether there is a log or session record of one of these days.
    pub(crate) fn has_logs(&self, (first, last): (NaiveDate, NaiveDate)) -> bool {
        let logs = self.heads.iter().flatten().filter(|it| it.tier < LOG_TIERS);
        logs.map(|it| it.date).any(|it| (first..=last).contains(&it))
    }

    /// Returns the position of a file, by its number.
    pub(crate) fn file_position(&self, number: i64) -> Option<usize> {
        self.by_number.get(&number).copied()
    }

    /// Returns the position of a log, by its stem.
    pub(crate) fn log_position(&self, stem: &str) -> Option<usize> {
        self.by_stem.get(stem).copied()
    }

    /// Returns the logs and session records, with their paths.
    pub(crate) fn logs(&self) -> impl Iterator<Item = (Stem, &str)> {
        let all = self.entries.iter().zip(&self.heads).filter(|it| is_log(it.1.as_ref()));
        let paths = all.map(|((_, entry), _)| &entry.path[..]);
        paths.filter_map(|it| stem_of(it).parse().ok().map(|stem| (stem, it)))
    }

    /// Caches what it unpacks for further searches.
    pub(crate) fn with_line_cache(self) -> Self {
        let kept_lines = self.line_cache.or_else(|| Some(RefCell::default()));
        Self { line_cache: kept_lines, ..self }
    }

    /// Releases the index to writers until the next search; returns whether the source can be resumed.
    pub(crate) fn pause(&self) -> bool {
        match &self.backend {
            SourceBackend::Index(index) => index.end_read().is_ok(),
            SourceBackend::InMemory(..) => false,
        }
    }

    /// Returns whether the index has not changed since the pause; then it does not change during this
    /// search.
    pub(crate) fn resume(&self) -> bool {
        match &self.backend {
            SourceBackend::Index(index) => index
                .begin_read()
                .and_then(|()| index.change_count())
                .is_ok_and(|it| it == self.changes),
            SourceBackend::InMemory(..) => false,
        }
    }

    /// Returns the unpacked lines of a file, of which there are `count`.
    pub(crate) fn unpacked(
        &self,
        file: i64,
        count: usize,
    ) -> Result<Arc<UnpackedLines>, CacheDbError> {
        if let Some(known) = self.cached_lines(file) {
            return Ok(known);
        }
        let unpacked = Arc::new(UnpackedLines::of(&*self.detail(file)?, count));
        self.cache_lines(file, &unpacked);
        Ok(unpacked)
    }

    /// Like [`Self::unpacked`], for many files; unreadable files are left out.
    pub(crate) fn unpacked_all(&self, files: &[(i64, usize)]) -> Vec<Option<Arc<UnpackedLines>>> {
        let mut all: Vec<_> = files.iter().map(|(file, _)| self.cached_lines(*file)).collect();
        let mut packed = Vec::new();
        for (at, &(file, count)) in files.iter().enumerate().filter(|(at, _)| all[*at].is_none()) {
            packed.extend(self.detail(file).ok().map(|detail| (at, detail, count)));
        }
        let parts: Vec<_> = packed.chunks(FILES_AT_ONCE).collect();
        let unpacked = parallel::map(&parts, |part| {
            let unpack = |(_, detail, count): &(_, Cow<'_, LineDetail>, _)| {
                Arc::new(UnpackedLines::of(detail, *count))
            };
            part.iter().map(unpack).collect::<Vec<_>>()
        });
        for ((at, ..), unpacked) in packed.iter().zip(unpacked.into_iter().flatten()) {
            self.cache_lines(files[*at].0, &unpacked);
            all[*at] = Some(unpacked);
        }
        all
    }

    fn cached_lines(&self, file: i64) -> Option<Arc<UnpackedLines>> {
        self.line_cache.as_ref()?.borrow().files.get(&file).cloned()
    }

    fn cache_lines(&self, file: i64, unpacked: &Arc<UnpackedLines>) {
        let Some(kept) = &self.line_cache else { return };
        let kept = &mut *kept.borrow_mut();
        if kept.count + unpacked.lines.len() > CACHED_LINES_MAX {
            *kept = LineCache::default();
        }
        kept.count += unpacked.lines.len();
        kept.files.insert(file, Arc::clone(unpacked));
    }

    fn detail(&self, file: i64) -> Result<Cow<'_, LineDetail>, CacheDbError> {
        match &self.backend {
            SourceBackend::Index(index) => index.line_detail(file).map(Cow::Owned),
            SourceBackend::InMemory(_, details) => {
                Ok(details.get(&file).map_or_else(Cow::default, Cow::Borrowed))
            }
        }
    }

    /// Calls `each` with the number of each file that contains a word, and the packed positions.
    pub(crate) fn for_each_match(
        &self,
        term: u64,
        mut each: impl FnMut(i64, &[u8]),
    ) -> Result<(), CacheDbError> {
        match &self.backend {
            SourceBackend::Index(index) => index.for_each_position(&self.buckets, term, each),
            SourceBackend::InMemory(words, _) => {
                let mut reader = VarintReader::new(words.get(&term).map_or(&[][..], Vec::as_slice));
                while let Some((file, places)) = reader.next_file() {
                    each(file, places);
                }
                Ok(())
            }
        }
    }
}

/// Keys of the stored count: the number of distinct lines, the state of the index, and the lines
/// counted.
const DISTINCT: &str = "distinct";
const COUNTED_AT: &str = "distinct_at";
const COUNTED_OF: &str = "distinct_of";

/// In an index of this many lines the count is not repeated until this part of them has changed; the
/// weight of a word would hardly change.
const RECOUNT_LINES_MIN: u64 = 20_000;
const RECOUNT_CHANGE_DIVISOR: u64 = 64;

/// What an index lacks.
struct TargetChanges<'w> {
    /// Files to index.
    come: Vec<&'w IndexTarget<'w>>,
    /// Files to remove.
    gone: Vec<String>,
    /// Files of which only the stamp differs: their content is the indexed one.
    restamped: Vec<(String, FileStat)>,
}

impl TargetChanges<'_> {
    fn is_empty(&self) -> bool {
        self.come.is_empty() && self.gone.is_empty() && self.restamped.is_empty()
    }
}

/// Returns what the index lacks.
fn index_changes<'w>(known: &IndexedFiles, wanted: &'w [IndexTarget<'w>]) -> TargetChanges<'w> {
    let by_path: HashMap<&str, &IndexEntry> =
        known.iter().map(|(_, it)| (it.path.as_str(), it)).collect();
    let mut come = Vec::new();
    let mut restamped = Vec::new();
    for it in wanted {
        match by_path.get(it.path.as_str()) {
            Some(known) if known.input_hash == it.input && known.bucket == it.bucket => {
                if known.stamp == it.stamp {
                    continue;
                }
                if known.hash == it.hash {
                    restamped.push((it.path.clone(), it.stamp));
                } else {
                    come.push(it);
                }
            }
            _ => come.push(it),
        }
    }
    let stays: HashSet<&str> = wanted.iter().map(|it| it.path.as_str()).collect();
    let removed = known.iter().map(|(_, it)| &it.path).filter(|it| !stays.contains(it.as_str()));
    TargetChanges { come, gone: removed.cloned().collect(), restamped }
}

/// Returns whether the attributes are those of a log or session record.
fn is_log(head: Option<&IndexedFileHeader>) -> bool {
    head.is_some_and(|it| it.tier < LOG_TIERS)
}

fn count_distinct<'a>(
    entries: &[(i64, IndexEntry)],
    detail: impl Fn(i64) -> Result<Cow<'a, LineDetail>, CacheDbError>,
) -> Result<u64, CacheDbError> {
    // One bit per 24-bit hash.
    let mut seen = vec![0_u64; 1 << 18];
    for (number, entry) in entries {
        let Some(head) = indexed_file::read_header(&entry.head) else { continue };
        if head.tier >= crate::recall::search::index::matches::LOG_TIERS {
            continue;
        }
        for line in
            indexed_file::read_lines(&detail(*number)?.lines).iter().filter(|it| it.level == 0)
        {
            seen[line.hash as usize >> 6] |= 1 << (line.hash & 63);
        }
    }
    Ok(seen.iter().map(|it| u64::from(it.count_ones())).sum())
}
