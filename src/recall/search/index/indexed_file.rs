//! The packed form of a file in the index: for each line its length and attributes, and the positions
//! of each word.
//!
//! It contains no text, because words are numbers. [`read_lines`] reads what [`pack_log`] and
//! [`pack_items`] packed.

use std::collections::HashMap;

use chrono::{Datelike as _, NaiveDate};

use crate::recall::search::{terms::QueryStemmer, time::expression};
use crate::{
    memory::{
        address::{self, Citation},
        authorship::OriginReason,
        hash::ContentHash,
        log::TextOrigin,
        markdown::LineKind,
    },
    privacy::{SanitizedLine, SanitizedLog},
    session::cited_summary::is_record_markup,
    store::db::search_index::{TermPositions, VarintReader, VarintWriter},
};

/// The weights of the lines around a line, in tenths, from two before to two after.
pub(crate) const WINDOW: [(isize, u32); 5] = [(-2, 3), (-1, 6), (0, 10), (1, 4), (2, 2)];

const QUESTION: u64 = 1;
const TELLS_TIME: u64 = 2;
const HEADING: u64 = 4;
const HAS_SPEAKER: u64 = 8;
const VERBATIM: u64 = 16;
const ORIGINS: [TextOrigin; 3] = [TextOrigin::External, TextOrigin::Agent, TextOrigin::Human];
const ORIGIN_SHIFT: u32 = 5;
const ORIGIN_MASK: u64 = 3;
const EXTERNAL: u64 = 128;

/// The names of the tiers; the index stores positions in this list.
pub(crate) const TIERS: [&str; 6] = ["daily", "session", "weekly", "monthly", "wisdom", "memory"];

/// The share of its score that external text keeps: it may be about the topic, but what people and agents of the root
/// say themselves is the answer.
pub(crate) const EXTERNAL_SHARE: f64 = 0.75;

/// A line, a heading, or an item.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexedLine {
    /// In the file, from 1.
    pub(crate) number: u32,
    /// The level of a heading; 0 for other lines.
    pub(crate) level: u8,
    /// How many of its words are terms.
    pub(crate) length: u32,
    /// A hash of the text; collisions are rare.
    pub(crate) hash: u32,
    /// The speaker's id; 0 for none.
    pub(crate) speaker: u32,
    pub(crate) is_question: bool,
    pub(crate) tells_time: bool,
    /// Whether nobody who keeps the log wrote it, such as a quote.
    pub(crate) is_external: bool,
    /// The origin, if the sanitized line equals the line in the file.
    pub(crate) verbatim_origin: Option<TextOrigin>,
}

impl IndexedLine {
    /// Returns the share of its score that it keeps.
    pub(crate) fn external_share(&self) -> f64 {
        if self.is_external { EXTERNAL_SHARE } else { 1.0 }
    }
}

/// The attributes of a file as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IndexedFileHeader {
    /// An index into [`TIERS`].
    pub(crate) tier: usize,
    pub(crate) date: NaiveDate,
    /// Lines that are neither empty nor headings.
    pub(crate) line_count: u64,
    /// The sum of their lengths.
    pub(crate) length: u64,
    /// The sum of the lengths of their windows, in tenths.
    pub(crate) window_length: u64,
    /// All lines, with headings.
    pub(crate) row_count: usize,
}

/// A file in its packed form.
#[derive(Debug, Default)]
pub(crate) struct IndexedFile {
    pub(crate) head: Vec<u8>,
    pub(crate) lines: Vec<u8>,
    pub(crate) places: TermPositions,
    pub(crate) citations: String,
}

/// An item of a generated file.
#[derive(Clone, Debug)]
pub(crate) struct IndexedItem {
    pub(crate) line: u32,
    /// The newest day that it covers.
    pub(crate) date: NaiveDate,
    /// Indexed before its text, but not shown.
    pub(crate) heading: String,
    pub(crate) text: String,
    pub(crate) citation: Option<Citation>,
}

/// Packs a sanitized log or session record.
pub(crate) fn pack_log(log: &SanitizedLog, stems: &mut QueryStemmer) -> IndexedFile {
    let mut making = IndexedFileBuilder::default();
    for line in log.lines() {
        if line.is_quarantined() || !is_original(log, line) {
            continue;
        }
        let text = line.words();
        if let LineKind::Heading { level, .. } = line.kind() {
            let number = line.number();
            making.add(
                IndexedLine { number, level: level.max(1), ..IndexedLine::default() },
                text,
                stems,
            );
        } else if line.is_content() {
            let is_question =
                text.trim_end_matches(['"', '”', '*', ' ']).ends_with(['?', '？', '؟']);
            let speaker = speaker_name(text).map_or(0, |it| speaker_id(&it.to_lowercase()));
            let line = IndexedLine {
                number: line.number(),
                is_question,
                speaker,
                tells_time: expression::mentions_time(text),
                // A code block is mostly the agent's own.
                is_external: line.origin() == TextOrigin::External
                    && line.origin_reason() != Some(OriginReason::Code),
                verbatim_origin: line.is_unchanged().then(|| line.origin()),
                hash: low_bits(ContentHash::of(text).prefix64()) & 0x00ff_ffff,
                ..IndexedLine::default()
            };
            making.add(line, text, stems);
        }
    }
    making.finish(usize::from(log.stem().is_session()), log.date(), String::new())
}

/// Returns whether a line is original. In a session record a line that ends in an address of the same
/// record was generated from it.
pub(crate) fn is_original(log: &SanitizedLog, line: &SanitizedLine) -> bool {
    let text = line.text().trim_end();
    let is_own = || {
        address::strip_session_citation(text).len() == text.len() && !is_record_markup(line.words())
    };
    !log.stem().is_session() || is_own()
}

/// Packs the items of a generated file.
pub(crate) fn pack_items(
    tier: usize,
    items: &[IndexedItem],
    stems: &mut QueryStemmer,
) -> IndexedFile {
    let mut making = IndexedFileBuilder::default();
    let mut cites = String::new();
    let mut newest = NaiveDate::MIN;
    for item in items {
        let text = format!("{} {}", item.heading, item.text);
        making.add(IndexedLine { number: item.line, ..IndexedLine::default() }, &text, stems);
        newest = newest.max(item.date);
        let citation = item.citation.as_ref().map(ToString::to_string).unwrap_or_default();
        cites.extend([&item.date.to_string(), "\t", &citation, "\n"]);
    }
    making.finish(tier, newest, cites)
}

/// Reads the date and citation of the first item.
pub(crate) fn read_item_citation(rows: &str) -> Option<(NaiveDate, Option<Citation>)> {
    let (date, citation) = rows.lines().next()?.split_once('\t')?;
    Some((date.parse().ok()?, citation.parse().ok()))
}

#[derive(Default)]
struct IndexedFileBuilder {
    lines: Vec<IndexedLine>,
    places: HashMap<u64, (usize, VarintWriter)>,
}

impl IndexedFileBuilder {
    fn add(&mut self, mut line: IndexedLine, text: &str, stems: &mut QueryStemmer) {
        let row = self.lines.len();
        let mut here: Vec<(u64, u32)> = Vec::new();
        line.length = stems.for_each_place(text, |stem, at| here.push((stem, at)));
        here.sort_unstable();
        // Two pairs share a character.
        here.dedup();
        for same in here.chunk_by(|a, b| a.0 == b.0) {
            let (from, places) = self.places.entry(same[0].0).or_default();
            places.number((row - *from) as u64);
            places.number(same.len() as u64);
            *from = row;
            let mut before = 0;
            for &(_, at) in same {
                places.number(u64::from(at - before));
                before = at;
            }
        }
        self.lines.push(line);
    }

    fn finish(self, tier: usize, date: NaiveDate, cites: String) -> IndexedFile {
        let content_lines = || self.lines.iter().filter(|it| it.level == 0);
        let around = window_lengths(&self.lines).iter().map(|it| u64::from(*it)).sum();
        let mut head = VarintWriter::default();
        let to = &mut head;
        to.number(tier as u64);
        to.number(u64::from(date.num_days_from_ce().cast_unsigned()));
        to.number(content_lines().count() as u64);
        to.number(content_lines().map(|it| u64::from(it.length)).sum());
        to.number(around);
        to.number(self.lines.len() as u64);
        let mut to = VarintWriter::default();
        let mut before = 0;
        for line in &self.lines {
            to.number(u64::from(line.number.saturating_sub(before)));
            before = line.number;
            let flag = |is_set: bool, bit| if is_set { bit } else { 0 };
            to.number(
                flag(line.is_question, QUESTION)
                    | flag(line.tells_time, TELLS_TIME)
                    | flag(line.level > 0, HEADING)
                    | flag(line.speaker != 0, HAS_SPEAKER)
                    | flag(line.is_external, EXTERNAL)
                    | line.verbatim_origin.map_or(0, |it| VERBATIM | (it as u64) << ORIGIN_SHIFT),
            );
            if line.level > 0 {
                to.number(u64::from(line.level));
                continue;
            }
            to.number(u64::from(line.length));
            to.bytes(&line.hash.to_le_bytes()[..3]);
            if line.speaker != 0 {
                to.bytes(&line.speaker.to_le_bytes());
            }
        }
        let places = self.places.into_iter().map(|(term, (_, places))| (term, places.0));
        IndexedFile { head: head.0, lines: to.0, places: places.collect(), citations: cites }
    }
}

/// Returns the length of the window around each line, in tenths.
pub(crate) fn window_lengths(lines: &[IndexedLine]) -> Vec<u32> {
    let mut section = 0_u32;
    let sections: Vec<u32> = lines
        .iter()
        .map(|it| {
            section += u32::from(it.level > 0);
            section
        })
        .collect();
    let of = |at: usize| {
        let near = WINDOW.into_iter().filter_map(|(step, weight)| {
            let near = at.checked_add_signed(step)?;
            let line = lines.get(near).filter(|it| it.level == 0)?;
            (sections[near] == sections[at]).then_some(weight * line.length)
        });
        near.sum()
    };
    (0..lines.len()).map(|at| if lines[at].level > 0 { 0 } else { of(at) }).collect()
}

pub(crate) fn read_header(packed: &[u8]) -> Option<IndexedFileHeader> {
    let mut from = VarintReader::new(packed);
    let tier = usize::try_from(from.number()?).ok().filter(|it| *it < TIERS.len())?;
    let days = u32::try_from(from.number()?).ok()?.cast_signed();
    Some(IndexedFileHeader {
        tier,
        date: NaiveDate::from_num_days_from_ce_opt(days)?,
        line_count: from.number()?,
        length: from.number()?,
        window_length: from.number()?,
        row_count: usize::try_from(from.number()?).ok()?,
    })
}

pub(crate) fn read_lines(packed: &[u8]) -> Vec<IndexedLine> {
    let mut from = VarintReader::new(packed);
    let mut lines = Vec::new();
    let mut number = 0_u32;
    while let Some(line) = read_line(&mut from, number) {
        number = line.number;
        lines.push(line);
    }
    lines
}

fn read_line(from: &mut VarintReader<'_>, before: u32) -> Option<IndexedLine> {
    let number = before.saturating_add(u32::try_from(from.number()?).ok()?);
    let flags = from.number()?;
    let mut line = IndexedLine { number, ..IndexedLine::default() };
    if flags & HEADING != 0 {
        line.level = u8::try_from(from.number()?).ok()?;
        return Some(line);
    }
    line.is_question = flags & QUESTION != 0;
    line.tells_time = flags & TELLS_TIME != 0;
    line.is_external = flags & EXTERNAL != 0;
    if flags & VERBATIM != 0 {
        line.verbatim_origin =
            Some(*ORIGINS.get(usize::try_from(flags >> ORIGIN_SHIFT & ORIGIN_MASK).ok()?)?);
    }
    line.length = u32::try_from(from.number()?).ok()?;
    let hash = from.bytes(3)?;
    line.hash = u32::from_le_bytes([hash[0], hash[1], hash[2], 0]);
    if flags & HAS_SPEAKER != 0 {
        line.speaker = u32::from_le_bytes(from.bytes(4)?.try_into().ok()?);
    }
    Some(line)
}

/// Returns the id of a speaker, by the first word of the name in lower case.
pub(crate) fn speaker_id(name: &str) -> u32 {
    let first = name.split(' ').next().unwrap_or(name);
    low_bits(ContentHash::of(first).prefix64()).max(1)
}

fn low_bits(number: u64) -> u32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Returns the speaker of a line: `13:56 Caroline: …`, `**Ben:** …`.
fn speaker_name(text: &str) -> Option<&str> {
    const NAME_CHARS_MAX: usize = 30;
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit() || " :[]-*".contains(c));
    let (name, said) = text.split_once(':')?;
    let is_said = said.starts_with([' ', '*', '"', '“']);
    let name = name.trim_end_matches('*').trim();
    // "Open loops: none" has no speaker.
    let is_name = name.split(' ').all(|it| it.chars().next().is_some_and(char::is_uppercase))
        && name.chars().count() <= NAME_CHARS_MAX
        && name.split(' ').count() <= 3
        && name.chars().all(|c| c.is_alphanumeric() || " .'-".contains(c));
    (is_name && is_said).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_before_a_colon_is_the_speaker() {
        for (text, expected) in [
            ("13:56 Caroline: Hey Mel!", Some("Caroline")),
            ("**Ben:** short replies, please", Some("Ben")),
            ("Decision: SQLite", Some("Decision")),
            ("Priya Rao: it holds", Some("Priya Rao")),
            ("Open loops: none", None),
            ("it holds: all", None),
            ("See https://a.io", None),
            ("A name that is much longer than names are: no", None),
        ] {
            assert_eq!(speaker_name(text), expected, "{text}");
        }
    }

    #[test]
    fn a_packed_file_can_be_read() {
        let item = |line, text: &str| IndexedItem {
            line,
            date: NaiveDate::MIN,
            heading: "Importer".to_owned(),
            text: text.to_owned(),
            citation: "[2026-04-02:3,7]".trim_matches(['[', ']']).parse().ok(),
        };
        let items = [item(4, "it loses one row"), item(9, "rows rows")];
        let mut stems = QueryStemmer::new();
        let ground = pack_items(2, &items, &mut stems);
        let read = read_lines(&ground.lines);
        let numbers: Vec<(u32, u32)> = read.iter().map(|it| (it.number, it.length)).collect();
        assert_eq!(numbers, [(4, 3), (9, 3)]);
        let head = read_header(&ground.head).unwrap();
        assert_eq!((head.tier, head.row_count, head.line_count), (2, 2, 2));
        assert_eq!(head.date, NaiveDate::MIN);
        assert_eq!(ground.places[&stems.stem_id("row")], [0, 1, 2, 1, 2, 1, 1]);
        let second = ground.citations.split_once('\n').unwrap().1;
        assert_eq!(read_item_citation(second).unwrap().1, items[1].citation);
        assert!(read_lines(&ground.lines[..ground.lines.len() - 1]).len() < 2);
    }
}
