//! What of the index concerns a question: the files, and in which of their lines its terms stand.

use std::sync::{Arc, OnceLock};

use chrono::NaiveDate;

use super::{
    ground::{Head, Line},
    source::{Beneath, Source, Unpacked},
    words::Terms,
};
use crate::{
    memory::address::{Citation, Stem},
    store::postings::{Entry, PostingsError, Reader},
};

/// Tiers below this one are logs; the others are items.
pub(super) const LOGS: usize = 2;

/// A file of the index.
pub(super) struct File<'a> {
    pub(super) entry: &'a Entry,
    pub(super) head: Head,
    /// The number of its first line among all.
    pub(super) from: usize,
    /// By which its lines are asked for.
    number: i64,
    known: Option<Arc<Unpacked>>,
}

/// Where a term stands in a line.
struct Place {
    /// The number of the line among all.
    row: usize,
    file: usize,
    /// A stretch of `positions`.
    from: usize,
    to: usize,
}

/// The files, and where the terms of a question stand in them.
pub(super) struct Matched<'a> {
    source: &'a Source,
    /// Why the lines of a file could not be read.
    failed: Option<PostingsError>,
    pub(super) files: Vec<File<'a>>,
    pub(super) terms: &'a Terms,
    /// How many different lines there are.
    pub(super) distinct: u64,
    masks: Vec<u64>,
    places: Vec<Vec<Place>>,
    positions: Vec<u32>,
}

impl<'a> Matched<'a> {
    /// Looks the terms up.
    pub(super) fn of(source: &'a Source, terms: &'a Terms) -> Result<Self, PostingsError> {
        let mut files = Vec::new();
        let mut from = 0;
        for ((number, entry), head) in source.entries().iter().zip(source.heads()) {
            // One that cannot be read has its place all the same, and no lines.
            let head = head.unwrap_or_default();
            files.push(File { entry, head, from, number: *number, known: None });
            from += head.count;
        }
        let mut matched = Self {
            source,
            failed: None,
            files,
            terms,
            distinct: source.distinct(),
            masks: vec![0; from],
            places: Vec::new(),
            positions: Vec::new(),
        };
        for (at, term) in terms.stems.iter().enumerate() {
            let mut places = Vec::new();
            source.places(*term, |number, packed| {
                if let Some(file) = source.place(number) {
                    matched.take(file, at, packed, &mut places);
                }
            })?;
            places.sort_unstable_by_key(|it| it.row);
            matched.places.push(places);
        }
        let has_any = |at: &usize| matched.masks(*at).iter().any(|it| *it != 0);
        let with_any = (0..matched.files.len()).filter(has_any).collect::<Vec<_>>();
        matched.read_all(&with_any);
        Ok(matched)
    }

    fn take(&mut self, file: usize, term: usize, packed: &[u8], places: &mut Vec<Place>) {
        let (first, count) = (self.files[file].from, self.files[file].head.count);
        let mut reader = Reader::new(packed);
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
            places.push(Place { row: first + row, file, from, to: self.positions.len() });
        }
    }

    /// Unpacks the lines of many files.
    fn read_all(&mut self, files: &[usize]) {
        let of = |at: &usize| (self.files[*at].number, self.files[*at].head.count);
        let wanted: Vec<(i64, usize)> = files.iter().map(of).collect();
        for (at, known) in files.iter().zip(self.source.unpacked_all(&wanted)) {
            self.files[*at].known = known;
            // What could not be read so is asked for once more, and says why.
            self.read(*at);
        }
    }

    /// Unpacks the lines of a file.
    pub(super) fn read(&mut self, file: usize) {
        let file = &mut self.files[file];
        if file.known.is_some() {
            return;
        }
        let known = self.source.unpacked(file.number, file.head.count);
        file.known = Some(known.unwrap_or_else(|error| {
            self.failed = Some(error);
            Arc::new(Unpacked::torn(file.head.count))
        }));
    }

    /// Returns why what was read is not all that there is.
    pub(super) fn take_failed(&mut self) -> Option<PostingsError> {
        self.failed.take()
    }

    pub(super) fn is_read(&self, file: usize) -> bool {
        self.files[file].known.is_some()
    }

    fn cited(&self, file: usize, row: usize) -> Option<(NaiveDate, Option<Citation>)> {
        self.files[file].known.as_ref()?.cited(row)
    }

    /// Returns the length of the window around each line of a log that was read, in tenths.
    pub(super) fn around(&self, file: usize) -> &[u32] {
        self.files[file].known.as_ref().map_or(&[], |it| &it.around)
    }

    /// Returns the lines of a file that was read.
    pub(super) fn lines(&self, file: usize) -> &[Line] {
        self.files[file].known.as_ref().map_or(&[], |it| &it.lines)
    }

    /// Returns which terms stand in each line of a file.
    pub(super) fn masks(&self, file: usize) -> &[u64] {
        let file = &self.files[file];
        &self.masks[file.from..file.from + file.head.count]
    }

    /// Returns how many lines begin with a name. All of them hold it, so all were read.
    pub(super) fn speaks(&self, speaker: u32) -> usize {
        let lines = self.files.iter().filter_map(|it| it.known.as_ref()).flat_map(|it| &it.lines);
        lines.filter(|it| it.speaker == speaker).count()
    }

    /// Returns in how many different lines of logs each term stands; `None` for one that stands nowhere.
    pub(super) fn holding(&self) -> Vec<Option<u64>> {
        // A bit for each hash of 24 bits.
        let mut seen = vec![0_u64; 1 << 18];
        let mut holding = Vec::new();
        for places in &self.places {
            let mut count = 0;
            let hashes = || {
                places.iter().filter_map(|it| {
                    let line = self.lines(it.file).get(it.row - self.files[it.file].from)?;
                    let is_said = line.level == 0 && self.files[it.file].head.tier < LOGS;
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

    /// Calls `each` for each line with both terms: its number among all, and where they stand.
    pub(super) fn both(&self, a: usize, b: usize, mut each: impl FnMut(usize, &[u32], &[u32])) {
        let mut second = self.places[b].iter().peekable();
        for first in &self.places[a] {
            while second.next_if(|it| it.row < first.row).is_some() {}
            if let Some(second) = second.peek().filter(|it| it.row == first.row) {
                let at = |it: &Place| &self.positions[it.from..it.to];
                each(first.row, at(first), at(second));
            }
        }
    }

    /// Returns the date of an item and the lines of logs that it rests on, as file and row.
    pub(super) fn beneath(&mut self, file: usize, row: usize) -> Beneath {
        let known = self.files[file].known.clone();
        let known = known.as_ref().and_then(|it| it.beneath.get(row));
        if let Some(beneath) = known.and_then(OnceLock::get) {
            beneath.1.iter().for_each(|it| self.read(it.0));
            return beneath.clone();
        }
        let found = self.look_beneath(file, row);
        if let Some(known) = known {
            // Who was there before has found the same.
            drop(known.set(found.clone()));
        }
        found
    }

    fn look_beneath(&mut self, file: usize, row: usize) -> Beneath {
        let Some((date, citation)) = self.cited(file, row) else {
            return (NaiveDate::MIN, Vec::new());
        };
        let mut rows = Vec::new();
        for address in citation.iter().flat_map(Citation::addresses) {
            let Some(of) = self.source.place_of(address.stem.as_str()) else { continue };
            self.read(of);
            let found = self.lines(of).binary_search_by_key(&address.line, |it| it.number);
            rows.extend(found.ok().filter(|it| self.lines(of)[*it].level == 0).map(|it| (of, it)));
        }
        (date, rows)
    }

    pub(super) fn item_date(&self, file: usize, row: usize) -> NaiveDate {
        self.cited(file, row).map_or(NaiveDate::MIN, |it| it.0)
    }

    /// Returns the name by which a log is cited.
    pub(super) fn stem(&self, file: usize) -> Option<Stem> {
        stem_of(&self.files[file].entry.path).parse().ok()
    }
}

/// Returns the name by which a log is cited.
pub(super) fn stem_of(path: &str) -> &str {
    let name = path.rsplit_once('/').map_or(path, |it| it.1);
    name.strip_suffix(".md").unwrap_or(name)
}
