//! Addresses of source lines, and the citations at the end of bullets.
//!
//! A source line is `2026-04-02:12`: the stem of its file and its 1-based line number in that file,
//! frontmatter included. A citation is the text in the brackets at the end of a bullet:
//! `2026-04-02:4,9-11; 2026-04-03:2`.
//!
//! # Invariants
//!
//! - A stem is a day (`2026-04-02`), a day and a slug (`2026-04-02-standup`), a session record
//!   (`CMEM-20260402-101500`), or the week or month of a file that contains a person's words
//!   (`2026-W14`, `2026-04`). It never contains a separator of the citation syntax.
//! - A [`Citation`] is never empty. Its stems are sorted; its lines are sorted, disjoint,
//!   non-adjacent ranges, at most [`Citation::LINES_MAX`] in all. So `Display` and `FromStr` are
//!   inverse on what we write, and walking all lines of a citation is cheap, whoever typed it.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc};

use chrono::{Datelike as _, NaiveDate};

use super::period::{Grain, Period};

/// What the name of each session record begins with.
pub(crate) const SESSION_PREFIX: &str = "CMEM-";

/// The name of a source file without `.md`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stem {
    name: Arc<str>,
    date: NaiveDate,
}

/// A string that names no source file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a log (expected 2026-04-02, 2026-04-02-topic, or CMEM-20260402-101500)"
)]
pub struct ParseStemError(String);

/// One line of one source file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The file.
    pub stem: Stem,
    /// The line, from 1.
    pub line: u32,
}

/// The offset added to the number of a cited line that was removed. No file has this many lines, so
/// the address names no other line, and a reader can tell that the source is gone.
const REMOVED_LINE_OFFSET: u32 = 10_000_000;

/// Returns the number under which a removed line is cited.
pub fn removed_line_number(line: u32) -> u32 {
    if is_removed_line(line) { line } else { line + REMOVED_LINE_OFFSET }
}

/// Returns whether `line` is the number of a removed line.
pub fn is_removed_line(line: u32) -> bool {
    line >= REMOVED_LINE_OFFSET
}

/// Returns the number that a line had before it was removed.
pub fn original_line_number(line: u32) -> u32 {
    line % REMOVED_LINE_OFFSET
}

/// Returns a line without the citation of a session record at its end.
pub fn strip_session_citation(line: &str) -> &str {
    split_session_citation(line).map_or(line, |it| it.0)
}

/// Returns the citation of session records at the end of a line.
pub fn session_citation(line: &str) -> Option<Citation> {
    split_session_citation(line).map(|it| it.1)
}

fn split_session_citation(line: &str) -> Option<(&str, Citation)> {
    let open = line.strip_suffix(']')?.rfind("[CMEM-")?;
    let cited: Citation = line[open + 1..line.len() - 1].parse().ok()?;
    let is_record = cited.files().all(|(stem, _)| stem.is_session());
    is_record.then(|| (line[..open].trim_end(), cited))
}

/// Lines of one file, as sorted, disjoint, non-adjacent inclusive ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LineSet(Vec<(u32, u32)>);

/// The source lines of an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Citation(BTreeMap<Stem, LineSet>);

/// A string that is not a citation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a citation (expected one like 2026-04-02:4,9-11; 2026-04-03:2)")]
pub struct ParseCitationError(String);

impl Stem {
    /// Returns the stem of the plain log of `date`.
    pub fn day(date: NaiveDate) -> Self {
        Self { name: date.to_string().into(), date }
    }

    /// Returns the day of the file; for a week or a month, its first day.
    pub fn date(&self) -> NaiveDate {
        self.date
    }

    /// Returns the stem as text.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns whether this names a weekly file.
    pub fn is_week(&self) -> bool {
        self.name.len() == 8
    }

    /// Returns whether this names a weekly or a monthly file. Such a file is cited where a person
    /// wrote the line.
    pub fn is_summary(&self) -> bool {
        self.name.len() <= 8
    }

    /// Returns the stem of a weekly or monthly file; `None` for a day, whose file is a log.
    pub fn of_summary(period: Period) -> Option<Self> {
        let date = period.first();
        (period.grain() != Grain::Day).then(|| Self { name: period.to_string().into(), date })
    }

    /// Returns the week or month whose file this names.
    pub fn summary_period(&self) -> Option<Period> {
        self.name.parse().ok().filter(|_| self.is_summary())
    }

    /// Returns whether this names a session record.
    pub fn is_session(&self) -> bool {
        self.name.starts_with(SESSION_PREFIX)
    }
}

impl FromStr for Stem {
    type Err = ParseStemError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let error = || ParseStemError(name.to_owned());
        let date = if let Some(rest) = name.strip_prefix(SESSION_PREFIX) {
            let (day, tail) = rest.split_once('-').ok_or_else(error)?;
            if tail.is_empty() || !tail.chars().all(is_slug_char) || day.len() != 8 {
                return Err(error());
            }
            NaiveDate::parse_from_str(day, "%Y%m%d").map_err(|_| error())?
        } else if matches!(name.len(), 7 | 8) {
            let period = name.parse::<Period>().ok().filter(|it| it.grain() != Grain::Day);
            period.ok_or_else(error)?.first()
        } else {
            let (day, tail) = name.split_at_checked(10).ok_or_else(error)?;
            let slug_ok = match tail.strip_prefix(['-', '_']) {
                Some(slug) => !slug.is_empty() && slug.chars().all(is_slug_char),
                None => tail.is_empty(),
            };
            let date: NaiveDate = day.parse().map_err(|_| error())?;
            if !slug_ok || date.to_string() != day {
                return Err(error());
            }
            date
        };
        if !(1..=9998).contains(&date.year()) {
            return Err(error());
        }
        Ok(Self { name: name.into(), date })
    }
}

/// Slugs may use any script, but contain no separator of the citation syntax or of paths.
fn is_slug_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

impl fmt::Display for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Stem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stem({})", self.name)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.stem, self.line)
    }
}

impl FromStr for Address {
    type Err = ParseCitationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseCitationError(text.to_owned());
        let (stem, line) = text.rsplit_once(':').ok_or_else(error)?;
        let stem = stem.parse().map_err(|_| error())?;
        let line = parse_line(line).ok_or_else(error)?;
        Ok(Self { stem, line })
    }
}

/// Line numbers are plain decimals from 1, without sign or leading zero.
fn parse_line(text: &str) -> Option<u32> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

impl LineSet {
    /// Adds a line.
    pub fn insert(&mut self, line: u32) {
        self.insert_range(line, line);
    }

    /// Adds the lines from `start` to `end`, both included.
    pub fn insert_range(&mut self, start: u32, end: u32) {
        let (mut start, mut end) = (start.min(end), start.max(end));
        // All ranges that overlap or touch the new one merge with it.
        let from = self.0.partition_point(|&(_, e)| e.saturating_add(1) < start);
        let to = self.0.partition_point(|&(s, _)| s <= end.saturating_add(1));
        if from < to {
            start = start.min(self.0[from].0);
            end = end.max(self.0[to - 1].1);
        }
        self.0.splice(from..to, [(start, end)]);
    }

    /// Returns whether `line` is in the set.
    pub fn contains(&self, line: u32) -> bool {
        let at = self.0.partition_point(|&(_, end)| end < line);
        self.0.get(at).is_some_and(|&(start, _)| start <= line)
    }

    /// Returns the inclusive ranges, ascending.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Returns the lines, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&(start, end)| start..=end)
    }

    /// Returns whether there is no line.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns how many lines there are.
    pub fn len(&self) -> usize {
        self.0.iter().map(|&(start, end)| (end - start) as usize + 1).sum()
    }

    /// Keeps the first `count` lines.
    fn truncate(&mut self, count: usize) {
        let mut room = u32::try_from(count).unwrap_or(u32::MAX);
        self.0.retain_mut(|(start, end)| {
            let keeps = room > 0;
            *end = (*end).min(start.saturating_add(room.saturating_sub(1)));
            room = room.saturating_sub((*end - *start).saturating_add(1));
            keeps
        });
    }

    /// Returns whether any line is in both.
    fn overlaps(&self, other: &Self) -> bool {
        self.0.iter().any(|&(start, end)| {
            let at = other.0.partition_point(|&(_, theirs)| theirs < start);
            other.0.get(at).is_some_and(|&(theirs, _)| theirs <= end)
        })
    }
}

impl FromIterator<u32> for LineSet {
    fn from_iter<I: IntoIterator<Item = u32>>(lines: I) -> Self {
        let mut set = Self::default();
        for line in lines {
            set.insert(line);
        }
        set
    }
}

impl Citation {
    /// The most lines that one citation names.
    ///
    /// No item has this many sources, and a few typed bytes (`1-9999999`) must not cost time in
    /// code that walks the lines. A text with more lines is not a citation; merging citations drops
    /// the lines beyond the limit.
    pub const LINES_MAX: usize = 10_000;

    /// Collects addresses; `None` when there are none.
    pub fn from_addresses<'a>(addresses: impl IntoIterator<Item = &'a Address>) -> Option<Self> {
        let mut files = BTreeMap::<Stem, LineSet>::new();
        for address in addresses {
            files.entry(address.stem.clone()).or_default().insert(address.line);
        }
        (!files.is_empty()).then(|| Self(files).capped())
    }

    /// Drops the lines beyond [`Citation::LINES_MAX`], from the last file on.
    fn capped(mut self) -> Self {
        self.cap();
        self
    }

    fn cap(&mut self) {
        let mut room = Self::LINES_MAX;
        self.0.retain(|_, lines| {
            if lines.len() > room {
                lines.truncate(room);
            }
            room -= lines.len();
            !lines.is_empty()
        });
    }

    /// Returns the citation of a single line.
    pub fn single_line(stem: Stem, line: u32) -> Self {
        Self(BTreeMap::from([(stem, LineSet::from_iter([line]))]))
    }

    /// Returns the citation of the lines from `start` to `end`, both included.
    pub fn range(stem: Stem, start: u32, end: u32) -> Self {
        let mut lines = LineSet::default();
        lines.insert_range(start, end);
        Self(BTreeMap::from([(stem, lines)])).capped()
    }

    /// Adds all lines of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (stem, lines) in &other.0 {
            let mine = self.0.entry(stem.clone()).or_default();
            for &(start, end) in lines.ranges() {
                mine.insert_range(start, end);
            }
        }
        self.cap();
    }

    /// Returns the part in the files for which `keeps` is true; `None` when that is nothing.
    pub fn filter_files(&self, mut keeps: impl FnMut(&Stem) -> bool) -> Option<Self> {
        let kept = self.0.iter().filter(|(stem, _)| keeps(stem));
        let kept: BTreeMap<_, _> =
            kept.map(|(stem, lines)| (stem.clone(), lines.clone())).collect();
        (!kept.is_empty()).then_some(Self(kept))
    }

    /// Returns the files and their lines, by stem.
    pub fn files(&self) -> impl Iterator<Item = (&Stem, &LineSet)> {
        self.0.iter()
    }

    /// Returns the lines cited in one file.
    pub fn lines_of(&self, stem: &Stem) -> Option<&LineSet> {
        self.0.get(stem)
    }

    /// Returns whether a line is cited.
    pub fn cites(&self, at: &Address) -> bool {
        self.lines_of(&at.stem).is_some_and(|it| it.contains(at.line))
    }

    /// Returns whether all lines of another citation are cited.
    pub fn covers(&self, other: &Self) -> bool {
        other.addresses().all(|it| self.cites(&it))
    }

    /// Returns each cited line.
    pub fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.0
            .iter()
            .flat_map(|(stem, lines)| lines.iter().map(|line| Address { stem: stem.clone(), line }))
    }

    /// Returns the citation without removed lines; `None` when nothing else is cited.
    pub fn without_removed_lines(&self) -> Option<Self> {
        let left: Vec<Address> = self.addresses().filter(|it| !is_removed_line(it.line)).collect();
        Self::from_addresses(&left)
    }

    /// Returns whether any line is cited by both.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.0
            .iter()
            .any(|(stem, lines)| other.0.get(stem).is_some_and(|theirs| lines.overlaps(theirs)))
    }

    /// Returns whether it cites a line of a weekly or monthly file: words that a person wrote
    /// there.
    pub fn cites_summary(&self) -> bool {
        self.0.keys().any(Stem::is_summary)
    }

    /// Replaces the cited lines of one file.
    pub fn replace_lines(&mut self, stem: &Stem, lines: LineSet) {
        if lines.is_empty() {
            self.0.remove(stem);
        } else {
            self.0.insert(stem.clone(), lines);
            self.cap();
        }
    }

    /// Returns the newest day that is cited.
    pub fn newest_date(&self) -> NaiveDate {
        self.0.keys().map(Stem::date).max().unwrap_or_default()
    }

    /// Returns the oldest day that is cited.
    pub fn oldest_date(&self) -> NaiveDate {
        self.0.keys().map(Stem::date).min().unwrap_or_default()
    }
}

impl fmt::Display for LineSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, &(start, end)) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            if start == end {
                write!(f, "{comma}{start}")?;
            } else {
                write!(f, "{comma}{start}-{end}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Citation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (stem, lines)) in self.0.iter().enumerate() {
            let semicolon = if i == 0 { "" } else { "; " };
            write!(f, "{semicolon}{stem}:{lines}")?;
        }
        Ok(())
    }
}

impl FromStr for Citation {
    type Err = ParseCitationError;

    /// Parses a citation, also one that a person typed with other spacing or order.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseCitationError(text.to_owned());
        let mut files = BTreeMap::<Stem, LineSet>::new();
        let mut room = Self::LINES_MAX;
        for part in text.split(';') {
            let (stem, lines) = part.trim().rsplit_once(':').ok_or_else(error)?;
            let set = files.entry(stem.trim().parse().map_err(|_| error())?).or_default();
            for range in lines.split(',') {
                let (start, end) = range.split_once('-').unwrap_or((range, range));
                let start = parse_line(start.trim()).ok_or_else(error)?;
                let end = parse_line(end.trim()).ok_or_else(error)?;
                if end < start {
                    return Err(error());
                }
                // Lines that are typed twice count twice.
                room = room.checked_sub((end - start) as usize + 1).ok_or_else(error)?;
                set.insert_range(start, end);
            }
        }
        Ok(Self(files))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, printed: Option<&str>) {
        let citation = text.parse::<Citation>().ok().map(|it| it.to_string());
        assert_eq!(citation.as_deref(), printed, "{text}");
    }

    #[test]
    fn citations_parse_and_print() {
        check("2026-04-02:4,9-11; 2026-04-03:2", Some("2026-04-02:4,9-11; 2026-04-03:2"));
        check("2026-04-03:2;2026-04-02:11,4,9-10", Some("2026-04-02:4,9-11; 2026-04-03:2"));
        check("2026-04-02-standup:1-2,3", Some("2026-04-02-standup:1-3"));
        check("CMEM-20260402-101500:42", Some("CMEM-20260402-101500:42"));
        check("2026-04:9; 2026-W14:2; 2026-04-02:4", Some("2026-04:9; 2026-04-02:4; 2026-W14:2"));
        check("2026-13:9", None);
        check("2026-02-30:1", None);
        check("2026-04-02:0", None);
        check("2026-04-02:04", None);
        check("2026-04-02:9-4", None);
        check("2026-04-02", None);
        check("see 2026-04-02:4", None);
        check("", None);
    }

    #[test]
    fn a_citation_names_at_most_the_maximum_of_lines() {
        check("2026-04-02:1-10000", Some("2026-04-02:1-10000"));
        check("2026-04-02:1-10001", None);
        check("2026-04-02:1-4000000000", None);
        check("2026-04-02:1-4000; 2026-04-03:1-4000; 2026-04-04:1-4000", None);
        check("2026-04-02:1-4000,5001-9000,10001-14000", None);
        let cite = |text: &str| text.parse::<Citation>().unwrap();
        let mut many = cite("2026-04-03:1-6000");
        many.merge(&cite("2026-04-04:1,3,5-6000"));
        assert_eq!(many.to_string(), "2026-04-03:1-6000; 2026-04-04:1,3,5-4002");
        many.merge(&cite("2026-04-05:1"));
        assert_eq!(many.to_string(), "2026-04-03:1-6000; 2026-04-04:1,3,5-4002");
        many.replace_lines(&"2026-04-02".parse().unwrap(), LineSet(vec![(1, 4001)]));
        assert_eq!(many.to_string(), "2026-04-02:1-4001; 2026-04-03:1-5999");
        let range = Citation::range("2026-04-03".parse().unwrap(), 1, u32::MAX);
        assert_eq!(range.to_string(), "2026-04-03:1-10000");
        let all: Vec<_> = (1..=10_010).map(|line| Address { line, ..at("2026-04-02:1") }).collect();
        assert_eq!(Citation::from_addresses(&all).unwrap().to_string(), "2026-04-02:1-10000");
        assert!(cite("2026-04-02:1-4,9-10").overlaps(&cite("2026-04-02:5,10-12")));
        assert!(!cite("2026-04-02:1-4,9-10").overlaps(&cite("2026-04-02:5-8,11")));
    }

    fn at(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[track_caller]
    fn check_stem(name: &str, date: Option<&str>) {
        let stem = name.parse::<Stem>().ok();
        assert_eq!(stem.map(|it| it.date().to_string()).as_deref(), date, "{name}");
    }

    #[test]
    fn stems_are_days_slugs_and_records() {
        check_stem("2026-04-02", Some("2026-04-02"));
        check_stem("2026-W14", Some("2026-03-30"));
        check_stem("2026-04", Some("2026-04-01"));
        check_stem("2026-04-02-réunion_2", Some("2026-04-02"));
        check_stem("CMEM-20260402-101500", Some("2026-04-02"));
        for bad in [
            "2026-4-2",
            "2026-04-02-",
            "2026-04-02 (copy)",
            "2026-02-30",
            "9999-01-01",
            "2026-04-02x",
            "2026-04-02-a:b",
            "2026-04-0é",
            "CMEM-2026-1",
        ] {
            check_stem(bad, None);
        }
    }

    proptest! {
        #[test]
        fn line_sets_stay_sorted_and_disjoint(lines in proptest::collection::vec((1u32..60, 0u32..5), 0..20)) {
            let mut set = LineSet::default();
            let mut plain = std::collections::BTreeSet::new();
            for (start, width) in lines {
                set.insert_range(start, start + width);
                plain.extend(start..=start + width);
            }
            prop_assert_eq!(set.iter().collect::<Vec<_>>(), plain.iter().copied().collect::<Vec<_>>());
            prop_assert!(set.ranges().windows(2).all(|w| w[0].1 + 1 < w[1].0));
            prop_assert!((1..70).all(|line| set.contains(line) == plain.contains(&line)));
        }

        #[test]
        fn citations_round_trip(files in proptest::collection::btree_map(0u32..4000, proptest::collection::vec(1u32..500, 1..6), 1..4)) {
            let day = |n: &u32| NaiveDate::from_ymd_opt(2020, 1, 1).unwrap() + chrono::Days::new(u64::from(*n));
            let addresses: Vec<_> = files.iter()
                .flat_map(|(n, lines)| lines.iter().map(|&line| Address { stem: Stem::day(day(n)), line }))
                .collect();
            let citation = Citation::from_addresses(&addresses).unwrap();
            prop_assert_eq!(citation.to_string().parse::<Citation>(), Ok(citation));
        }
    }
}
