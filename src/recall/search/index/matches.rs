//! The matches of a question in the index: the files, and the lines that contain its terms.

use std::sync::{Arc, OnceLock};

use chrono::NaiveDate;

use super::{
    indexed_file::{IndexedFileHeader, IndexedLine},
    source::{ItemSources, SearchSource, UnpackedLines},
};
use crate::recall::search::terms::QueryTerms;
use crate::{
    memory::address::{Citation, Stem},
    store::db::search_index::{CacheDbError, IndexEntry, VarintReader},
};

/// Tiers below this one are logs; the others are items.
pub(crate) const LOG_TIERS: usize = 2;

/// A file of the index.
pub(crate) struct MatchedFile<'a> {
    pub(crate) entry: &'a IndexEntry,
    pub(crate) head: IndexedFileHeader,
    /// The number of its first line among all lines.
    pub(crate) first_row: usize,
    /// Its number in the index.
    number: i64,
    unpacked: Option<Arc<UnpackedLines>>,
}

struct TermOccurrence {
    /// The number of the line among all lines.
    row: usize,
    file: usize,
    /// A range of `positions`.
    from: usize,
    to: usize,
}

/// The files, and where the terms of a question occur in them.
pub(crate) struct QueryMatches<'a> {
    source: &'a SearchSource,
    /// Why the lines of a file could not be read.
    error: Option<CacheDbError>,
    pub(crate) files: Vec<MatchedFile<'a>>,
    pub(crate) terms: &'a QueryTerms,
    /// The number of distinct lines.
    pub(crate) distinct: u64,
    masks: Vec<u64>,
    occurrences: Vec<Vec<TermOccurrence>>,
    positions: Vec<u32>,
}

impl<'a> QueryMatches<'a> {
    /// Looks up the terms.
    pub(crate) fn of(
        source: &'a SearchSource,
        terms: &'a QueryTerms,
    ) -> Result<Self, CacheDbError> {
        let mut files = Vec::new();
        let mut from = 0;
        for ((number, entry), head) in source.entries.iter().zip(&source.heads) {
            // An unreadable file keeps its place, without lines.
            let head = head.unwrap_or_default();
            files.push(MatchedFile {
                entry,
                head,
                first_row: from,
                number: *number,
                unpacked: None,
            });
            from += head.row_count;
        }
        let mut matched = Self {
            source,
            error: None,
            files,
            terms,
            distinct: source.distinct,
            masks: vec![0; from],
            occurrences: Vec::new(),
            positions: Vec::new(),
        };
        for (at, term) in terms.stems.iter().enumerate() {
            let mut places = Vec::new();
            source.for_each_match(*term, |number, packed| {
                if let Some(file) = source.file_position(number) {
                    matched.add_occurrences(file, at, packed, &mut places);
                }
            })?;
            places.sort_unstable_by_key(|it| it.row);
            matched.occurrences.push(places);
        }
        let has_any = |at: &usize| matched.masks(*at).iter().any(|it| *it != 0);
        let with_any = (0..matched.files.len()).filter(has_any).collect::<Vec<_>>();
        matched.load_all_lines(&with_any);
        Ok(matched)
    }

    fn add_occurrences(
        &mut self,
        file: usize,
        term: usize,
        packed: &[u8],
        places: &mut Vec<TermOccurrence>,
    ) {
        let (first, count) = (self.files[file].first_row, self.files[file].head.row_count);
        let mut reader = VarintReader::new(packed);
        let mut row = 0;
        while let Some((step, times)) = reader.number().zip(reader.number()) {
            row += usize::try_from(step).unwrap_or(usize::MAX / 2);
            if row >= count {
                return;
            }
            let from = self.positions.len();
            let mut at = 0_u64;
            for _ in 0..times {
                let Some(step) = reader.number() else { return };
                at = at.saturating_add(step);
                self.positions.push(u32::try_from(at).unwrap_or(u32::MAX));
            }
            self.masks[first + row] |= 1 << term;
            places.push(TermOccurrence { row: first + row, file, from, to: self.positions.len() });
        }
    }

    /// Unpacks the lines of many files.
    fn load_all_lines(&mut self, files: &[usize]) {
        let of = |at: &usize| (self.files[*at].number, self.files[*at].head.row_count);
        let requests: Vec<(i64, usize)> = files.iter().map(of).collect();
        for (at, known) in files.iter().zip(self.source.unpacked_all(&requests)) {
            self.files[*at].unpacked = known;
            // A file that could not be read is tried once more to get its error.
            self.load_lines(*at);
        }
    }

    pub(crate) fn load_lines(&mut self, file: usize) {
        let file = &mut self.files[file];
        if file.unpacked.is_some() {
            return;
        }
        let unpacked = self.source.unpacked(file.number, file.head.row_count);
        file.unpacked = Some(unpacked.unwrap_or_else(|error| {
            self.error = Some(error);
            Arc::new(UnpackedLines::unreadable(file.head.row_count))
        }));
    }

    /// Returns why the matches are incomplete.
    pub(crate) fn take_error(&mut self) -> Option<CacheDbError> {
        self.error.take()
    }

    pub(crate) fn is_loaded(&self, file: usize) -> bool {
        self.files[file].unpacked.is_some()
    }

    fn item_citation(&self, file: usize, row: usize) -> Option<(NaiveDate, Option<Citation>)> {
        self.files[file].unpacked.as_ref()?.item_citation(row)
    }

    /// Returns the length of the window around each line of an unpacked log, in tenths.
    pub(crate) fn window_lengths(&self, file: usize) -> &[u32] {
        self.files[file].unpacked.as_ref().map_or(&[], |it| &it.window_lengths)
    }

    pub(crate) fn lines(&self, file: usize) -> &[IndexedLine] {
        self.files[file].unpacked.as_ref().map_or(&[], |it| &it.lines)
    }

    /// Returns the terms in each line of a file, as bits.
    pub(crate) fn masks(&self, file: usize) -> &[u64] {
        let file = &self.files[file];
        &self.masks[file.first_row..file.first_row + file.head.row_count]
    }

    /// Returns how many lines begin with a name. The name is a term, so the files of all of them are
    /// unpacked.
    pub(crate) fn speaker_line_count(&self, speaker: u32) -> usize {
        let lines =
            self.files.iter().filter_map(|it| it.unpacked.as_ref()).flat_map(|it| &it.lines);
        lines.filter(|it| it.speaker == speaker).count()
    }

    /// Returns in how many distinct log lines each term occurs; `None` for a term that occurs nowhere.
    pub(crate) fn line_frequencies(&self) -> Vec<Option<u64>> {
        // One bit per 24-bit hash.
        let mut seen = vec![0_u64; 1 << 18];
        let mut holding = Vec::new();
        for places in &self.occurrences {
            let mut count = 0;
            let hashes = || {
                places.iter().filter_map(|it| {
                    let line = self.lines(it.file).get(it.row - self.files[it.file].first_row)?;
                    let is_said = line.level == 0 && self.files[it.file].head.tier < LOG_TIERS;
                    is_said.then_some(line.hash as usize)
                })
            };
            for hash in hashes() {
                let bit = 1 << (hash & 63);
                count += u64::from(seen[hash >> 6] & bit == 0);
                seen[hash >> 6] |= bit;
            }
            for hash in hashes() {
                seen[hash >> 6] = 0;
            }
            holding.push((!places.is_empty()).then_some(count));
        }
        holding
    }

    /// Calls `each` for each line with both terms: its number among all lines, and the positions of
    /// both.
    pub(crate) fn for_each_line_with_both(
        &self,
        a: usize,
        b: usize,
        mut each: impl FnMut(usize, &[u32], &[u32]),
    ) {
        let mut second = self.occurrences[b].iter().peekable();
        for first in &self.occurrences[a] {
            while second.next_if(|it| it.row < first.row).is_some() {}
            if let Some(second) = second.peek().filter(|it| it.row == first.row) {
                let at = |it: &TermOccurrence| &self.positions[it.from..it.to];
                each(first.row, at(first), at(second));
            }
        }
    }

    /// Returns the date of an item and its source lines, as file and row.
    pub(crate) fn item_sources(&mut self, file: usize, row: usize) -> ItemSources {
        let known = self.files[file].unpacked.clone();
        let known = known.as_ref().and_then(|it| it.item_sources.get(row));
        if let Some(beneath) = known.and_then(OnceLock::get) {
            beneath.1.iter().for_each(|it| self.load_lines(it.0));
            return beneath.clone();
        }
        let found = self.find_item_sources(file, row);
        if let Some(known) = known {
            // A concurrent search has found the same.
            drop(known.set(found.clone()));
        }
        found
    }

    fn find_item_sources(&mut self, file: usize, row: usize) -> ItemSources {
        let Some((date, citation)) = self.item_citation(file, row) else {
            return (NaiveDate::MIN, Vec::new());
        };
        let mut rows = Vec::new();
        for address in citation.iter().flat_map(Citation::addresses) {
            let Some(of) = self.source.log_position(address.stem.as_str()) else { continue };
            self.load_lines(of);
            let position = self.lines(of).binary_search_by_key(&address.line, |it| it.number);
            rows.extend(
                position.ok().filter(|it| self.lines(of)[*it].level == 0).map(|it| (of, it)),
            );
        }
        (date, rows)
    }

    pub(crate) fn item_date(&self, file: usize, row: usize) -> NaiveDate {
        self.item_citation(file, row).map_or(NaiveDate::MIN, |it| it.0)
    }

    /// Returns the stem of a log.
    pub(crate) fn stem(&self, file: usize) -> Option<Stem> {
        stem_of(&self.files[file].entry.path).parse().ok()
    }
}

pub(crate) fn stem_of(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    name.strip_suffix(".md").unwrap_or(name)
}
