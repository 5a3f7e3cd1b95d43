//! Weekly and monthly files.
//!
//! A file is read into blocks that print back to the same bytes, so reading and writing never loses
//! what a person added or changed. The record, which is joined to the visible text (see
//! [`super::joined`]), lists a hash of each generated bullet. When there is no database, that list
//! distinguishes generated bullets from a person's and shows what a person deleted. In a file of an older
//! form the record is the key `memoird:` of the frontmatter; such a file is read as it is, and printed in
//! the new form.
//!
//! # Invariants
//!
//! - The blocks of a parsed file, joined, are its body byte for byte.
//! - A file without a record prints back byte for byte, frontmatter included.
//! - The frontmatter of a file with a record has one spelling for the same values.
//!
//! Called by `store` (reading and writing), `compaction` (drafting and merging), and `recall`.

mod blocks;
mod header;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::RangeInclusive,
};

use self::{
    blocks::{heading_level, split_blocks},
    header::{SummaryFrontmatter, SummaryRecord},
};
use super::{
    address::{Citation, Stem},
    frontmatter::{self, FrontmatterError, OtherKeys, write::FrontmatterWriter},
    hash::ContentHash,
    item::{Item, SummarySection, Tier},
    joined,
    period::{Grain, Period},
};

/// A weekly or monthly file.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The period that the file covers.
    pub period: Period,
    /// Our metadata; `None` for a foreign file (without a record).
    pub header: Option<SummaryHeader>,
    /// Other frontmatter keys, which are preserved.
    pub other_keys: OtherKeys,
    /// The body, in order.
    pub blocks: Vec<SummaryBlock>,
    /// The frontmatter as read, with its fences; empty for a file that we draft.
    raw_frontmatter: String,
    /// The hashes of generated bullets, with their citations, whose citation is not the recorded one.
    unrecorded: BTreeSet<String>,
    /// Whether all lines end in `\r\n`.
    crlf: bool,
}

/// The values of the record and of our frontmatter keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryHeader {
    /// Paths of the summarized files, relative to the root.
    pub pointers: Vec<String>,
    /// Name and version of the engine.
    pub engine: String,
    /// The first 16 hex digits of each source's hash, by log stem or week name.
    pub sources: BTreeMap<String, String>,
    /// The hash of each bullet as we wrote it.
    pub items: Vec<String>,
    /// Those of them whose bullets are in the words of external text: quotes, code, mails, pages.
    pub external: Vec<String>,
    /// Stems of the logs that were extracted (weekly files only).
    pub extracted: Vec<String>,
    /// Sources that were missing when the file was written. Their items were carried over; the file
    /// is written again when they are back.
    pub missing_sources: Vec<String>,
    /// Whether the period was still open.
    pub partial: bool,
    /// Whether it was drafted offline because the model was unavailable; it is drafted again later.
    pub fallback: bool,
}

/// A bullet with its lines in the file (from 1, frontmatter included) and its section.
pub type NumberedBullet<'a> = (RangeInclusive<u32>, &'a Item, Option<SummarySection>);

/// A part of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryBlock {
    /// A heading that names one of our sections: `### Decisions`.
    Section(SummarySection, String),
    /// A bullet: the item, and its lines as read.
    Bullet(Item, String),
    /// Anything else, as read.
    Other(String),
}

/// The owner of a bullet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulletOwner {
    /// It is as we wrote it.
    Memoird,
    /// A person wrote or changed it.
    User,
}

/// How far a record is about a bullet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedAs {
    /// It lists it with this citation, or does not list citations.
    Same,
    /// It lists its words with another citation.
    OtherCitation,
    /// It does not list its words: a person's, or of another version.
    OtherWords,
}

/// What a person did to a generated file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The owner of each bullet, in the order of [`Summary::bullets`].
    pub owners: Vec<BulletOwner>,
    /// The hashes of generated bullets that were deleted or changed, in listed order.
    pub missing_hashes: Vec<String>,
}

/// A weekly or monthly file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// It is empty, or contains only NUL bytes.
    #[error(
        "it is empty; `memoird compact` writes it again from its logs, and `memoird doctor --repair` moves it to the quarantine"
    )]
    Empty,
    /// It contains NUL bytes, as after a disk lost a write.
    #[error(
        "it contains NUL bytes; run `memoird doctor --repair`, which moves it to the quarantine, then `memoird compact`"
    )]
    NulBytes,
    /// Its frontmatter breaks a rule.
    #[error(transparent)]
    Frontmatter(#[from] FrontmatterError),
    /// It was copied or renamed from another period's file.
    #[error("the frontmatter says `period: {found}`, but the file is named {expected}; rename it")]
    PeriodMismatch {
        /// The period of the file's name.
        expected: Period,
        /// What the frontmatter says.
        found: Period,
    },
    /// One of our keys has a value that we never write.
    #[error(
        "`{key}` in the frontmatter does not have a value that memoird writes; restore or remove it"
    )]
    InvalidKey {
        /// The key, with its parent.
        key: &'static str,
    },
}

impl Summary {
    /// Parses the file of `period`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the frontmatter. Any body is valid.
    pub fn parse(period: Period, text: &str) -> Result<Self, SummaryError> {
        let (text, record) = joined::split(text);
        let split = frontmatter::split(text);
        let body = split.body(text);
        let SummaryFrontmatter { header, other_keys, cited } =
            SummaryFrontmatter::read(&split, body, record, Some(period))?;
        let blocks = split_blocks(body);
        let front = text[..split.body_at].to_owned();
        let mut summary = Self {
            period,
            header,
            other_keys,
            blocks,
            raw_frontmatter: front,
            unrecorded: BTreeSet::new(),
            crlf: frontmatter::is_crlf(text),
        };
        if let Some(cited) = cited {
            let cited: BTreeSet<String> = cited.into_iter().collect();
            summary.unrecorded = &summary.generated_citations().collect() - &cited;
        }
        Ok(summary)
    }

    /// Builds the file of `period` from drafted items. Sections without items are left out.
    ///
    /// `items` of the given header is ignored and computed here. The words of a bullet become one
    /// line without control characters; a bullet without words is left out.
    pub fn from_draft(
        period: Period,
        header: SummaryHeader,
        sections: &[(SummarySection, Vec<Item>)],
    ) -> Self {
        let mut body = format!("\n{}\n", Self::title(period));
        for (section, items) in sections {
            let items: Vec<Item> = items.iter().filter_map(normalize_item).collect();
            if !items.is_empty() {
                body.extend(["\n### ", section.title(), "\n"]);
                body.extend(items.iter().map(|item| format!("- {item}\n")));
            }
        }
        let blocks = split_blocks(&body);
        let hashes = blocks.iter().filter_map(SummaryBlock::item).map(Item::hash).collect();
        let header = Some(SummaryHeader { items: hashes, ..header });
        let (other_keys, front) = (OtherKeys::default(), String::new());
        let unrecorded = BTreeSet::new();
        Self { period, header, other_keys, blocks, raw_frontmatter: front, unrecorded, crlf: false }
    }

    /// Returns the title line of a generated file.
    pub fn title(period: Period) -> String {
        match period.grain() {
            Grain::Week => format!("# Week {period}"),
            Grain::Day | Grain::Month => format!("# {period}"),
        }
    }

    /// Replaces the body.
    pub fn set_body(&mut self, body: &str) {
        self.blocks = split_blocks(body);
    }

    /// Copies the frontmatter keys that are not ours.
    pub fn copy_other_keys_from(&mut self, other: &Self) {
        self.other_keys.clone_from(&other.other_keys);
    }

    /// Ends lines as `other` does, if all its lines end the same way.
    pub fn copy_line_endings_from(&mut self, other: &Self) {
        self.crlf = other.crlf;
        if self.crlf {
            let body = frontmatter::with_crlf(&self.body());
            self.set_body(&body);
        }
    }

    /// Returns the whole file: what is visible, and the record.
    pub fn print(&self) -> String {
        let mut text = self.frontmatter();
        text.extend(self.blocks.iter().map(SummaryBlock::raw));
        let record = |it: &SummaryHeader| {
            let mut cited: Vec<String> = self.generated_citations().collect();
            cited.retain(|it| !self.unrecorded.contains(it));
            SummaryRecord::of(it, ContentHash::of(&text).hex16(), cited)
        };
        let record = self.header.as_ref().map(|it| record(it).print());
        joined::join(&text, record.as_deref())
    }

    /// Returns whether the record is about another text: it lists a bullet, but with another citation. So what it
    /// says about the sources holds only for the bullets that it lists as they are.
    pub fn is_mixed(&self) -> bool {
        !self.unrecorded.is_empty()
    }

    /// Returns how far the record is about a bullet of this file.
    pub fn recorded_as(&self, item: &Item) -> RecordedAs {
        if self.unrecorded.contains(&item.hash_with_citation()) {
            RecordedAs::OtherCitation
        } else if self.header.as_ref().is_some_and(|it| it.items.contains(&item.hash())) {
            RecordedAs::Same
        } else {
            RecordedAs::OtherWords
        }
    }

    /// Lists in the next record the present citations that were checked.
    pub fn accept_citations(&mut self, is_checked: &dyn Fn(&Citation) -> bool) {
        let items = self.blocks.iter().filter_map(SummaryBlock::item);
        for item in items.filter(|it| it.citation.as_ref().is_some_and(is_checked)) {
            self.unrecorded.remove(&item.hash_with_citation());
        }
    }

    /// Returns the hashes of the generated bullets with their citations.
    fn generated_citations(&self) -> impl Iterator<Item = String> {
        let owners = self.ownership().owners;
        let items = self.blocks.iter().filter_map(SummaryBlock::item).zip(owners);
        let ours = items.filter(|(_, owner)| *owner == BulletOwner::Memoird).map(|it| it.0);
        ours.filter(|it| it.citation.is_some()).map(Item::hash_with_citation)
    }

    /// Returns the text after the frontmatter.
    pub fn body(&self) -> String {
        self.blocks.iter().map(SummaryBlock::raw).collect()
    }

    /// Returns the hash of [`Summary::body`], by which generated files are compared and recorded.
    pub fn body_hash(&self) -> ContentHash {
        hash_of_body(&self.body())
    }

    /// Returns the number of characters of the body without citations, which the compression ratio
    /// limits.
    pub fn text_chars(&self) -> usize {
        text_chars(&self.body())
    }

    /// Returns each bullet with its section and its first line in the printed file (from 1,
    /// frontmatter included).
    pub fn bullets(&self) -> impl Iterator<Item = (u32, &Item, Option<SummarySection>)> {
        let numbered = self.numbered_bullets(self.frontmatter().matches('\n').count());
        numbered.map(|(lines, item, section)| (*lines.start(), item, section))
    }

    /// Returns [`Summary::bullets`] with line numbers of the file as read. They differ where a
    /// person spelled the frontmatter in another way than we do.
    pub fn bullets_as_read(&self) -> impl Iterator<Item = (u32, &Item, Option<SummarySection>)> {
        self.bullets_with_lines().map(|(lines, item, section)| (*lines.start(), item, section))
    }

    /// Returns [`Summary::bullets_as_read`] with all lines of each bullet, since a person may write
    /// one over several lines.
    pub fn bullets_with_lines(&self) -> impl Iterator<Item = NumberedBullet<'_>> {
        self.numbered_bullets(self.raw_frontmatter.matches('\n').count())
    }

    /// Returns the bullets with the citations that a higher tier uses. A bullet that a person wrote
    /// or changed is a source itself, in addition to the lines that it cites.
    pub fn bullets_as_sources(&self) -> impl Iterator<Item = (Option<SummarySection>, Item)> {
        let stem = Stem::of_summary(self.period);
        let owners = self.ownership().owners;
        self.bullets_with_lines().zip(owners).map(move |((lines, item, section), owner)| {
            let mut item = item.clone();
            if let (BulletOwner::User, Some(stem)) = (owner, &stem) {
                // A removed line is no evidence.
                item.citation = item.citation.and_then(|it| it.without_removed_lines());
                let own = Citation::range(stem.clone(), *lines.start(), *lines.end());
                match &mut item.citation {
                    Some(citation) => citation.merge(&own),
                    none => *none = Some(own),
                }
            }
            (section, item)
        })
    }

    /// Returns the lines of the file as read that are sources themselves: the bullets that a person
    /// wrote or changed, and all lines of a foreign file without bullets.
    pub fn user_lines(&self) -> Vec<RangeInclusive<u32>> {
        let is_empty = |it: &Item| it.text.trim_start_matches(['>', ' ']).is_empty();
        if self.header.is_none() && self.bullets_with_lines().all(|(_, it, _)| is_empty(it)) {
            return vec![1..=u32::MAX];
        }
        let owners = self.ownership().owners;
        let bullets = self.bullets_with_lines().zip(owners);
        bullets
            .filter(|(_, owner)| *owner == BulletOwner::User)
            .map(|((lines, ..), _)| lines)
            .collect()
    }

    /// Determines the owner of each bullet and which generated bullets are missing.
    ///
    /// The list of hashes is a multiset: of two equal bullets of which one is listed, the first is
    /// generated.
    pub fn ownership(&self) -> Ownership {
        let listed = self.header.as_ref().map_or(&[][..], |it| &it.items);
        let mut left = HashMap::<&str, usize>::new();
        for hash in listed {
            *left.entry(hash).or_default() += 1;
        }
        let mut take = |hash: &str| {
            let count = left.get_mut(hash).filter(|it| **it > 0);
            count.map(|it| *it -= 1).is_some()
        };
        let items = self.blocks.iter().filter_map(SummaryBlock::item);
        let owners = items
            .map(|item| if take(&item.hash()) { BulletOwner::Memoird } else { BulletOwner::User })
            .collect();
        let mut missing: Vec<String> = listed.iter().rev().filter(|it| take(it)).cloned().collect();
        missing.reverse();
        Ownership { owners, missing_hashes: missing }
    }

    /// Returns the frontmatter with its fences, as [`Summary::print`] begins.
    fn frontmatter(&self) -> String {
        let Some(header) = &self.header else { return self.raw_frontmatter.clone() };
        let mut writer = FrontmatterWriter::new();
        writer.text("type", Tier::of_period(self.period).name());
        writer.bare("period", self.period);
        if !header.pointers.is_empty() {
            writer.block_list("pointers", &header.pointers);
        }
        writer.other_keys(&self.other_keys);
        let front = writer.finish();
        if self.crlf { frontmatter::with_crlf(&front) } else { front }
    }

    fn numbered_bullets(&self, front_lines: usize) -> impl Iterator<Item = NumberedBullet<'_>> {
        let mut next_line = 1 + front_lines;
        let mut section = None::<(usize, SummarySection)>;
        self.blocks.iter().filter_map(move |block| {
            let line = next_line;
            next_line += block.raw().matches('\n').count();
            match block {
                SummaryBlock::Section(it, raw) => {
                    section = Some((heading_level(raw), *it));
                    None
                }
                SummaryBlock::Bullet(item, raw) => {
                    let [line, end] = [line, line + raw.lines().count().saturating_sub(1)]
                        .map(|it| u32::try_from(it).ok());
                    Some((line?..=end?, item, section.map(|it| it.1)))
                }
                // A person's heading ends one of our sections, unless it is a subheading.
                SummaryBlock::Other(raw) => {
                    let level = heading_level(raw);
                    section = section.filter(|it| level == 0 || level > it.0);
                    None
                }
            }
        })
    }
}

impl SummaryHeader {
    /// Parses only the frontmatter of the file of `period`; `None` for a foreign file.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the frontmatter.
    pub fn read(period: Period, text: &str) -> Result<Option<Self>, SummaryError> {
        let (text, record) = joined::split(text);
        let split = frontmatter::split(text);
        Ok(SummaryFrontmatter::read(&split, split.body(text), record, Some(period))?.header)
    }
}

/// Checks whether a disk lost the content of a file.
///
/// # Errors
///
/// Returns the kind of loss.
pub fn check_data_loss(text: &str) -> Result<(), SummaryError> {
    let text = joined::visible(text);
    if text.chars().all(|c| c.is_whitespace() || c == '\0') {
        Err(SummaryError::Empty)
    } else if text.contains('\0') {
        Err(SummaryError::NulBytes)
    } else {
        Ok(())
    }
}

/// Returns the number of characters of a body without citations, which the compression ratio
/// limits.
pub fn text_chars(body: &str) -> usize {
    let lines: usize = body.trim().lines().map(|line| strip_citation(line).chars().count()).sum();
    lines + body.trim().matches('\n').count()
}

/// Returns the hash of the body of `text` without parsing it.
pub fn body_hash(text: &str) -> ContentHash {
    let text = joined::visible(text);
    hash_of_body(frontmatter::split(text).body(text))
}

/// Line endings do not count, since tools that move files between machines change them.
fn hash_of_body(body: &str) -> ContentHash {
    if body.contains("\r\n") {
        ContentHash::of(body.replace("\r\n", "\n"))
    } else {
        ContentHash::of(body)
    }
}

/// Returns the item as its bullet will contain it; `None` without words.
fn normalize_item(item: &Item) -> Option<Item> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let text = item.text.replace(breaks, " ").trim().to_owned();
    let item = Item::parse(&Item { text, citation: item.citation.clone() }.to_string());
    (!item.text.is_empty()).then_some(item)
}

/// Cuts the citation off the end of a line.
///
/// Every file is measured in every run, so a citation is recognized by its form and not parsed.
fn strip_citation(line: &str) -> &str {
    let marks = |b: u8| b.is_ascii_alphanumeric() || b":;,- _.".contains(&b) || !b.is_ascii();
    let cited = line.trim_end().strip_suffix(']').and_then(|rest| {
        let open = rest.rfind('[')?;
        let inner = &rest.as_bytes()[open + 1..];
        let named = inner.first().is_some_and(|b| b.is_ascii_digit() || *b == b'C');
        (named && inner.contains(&b':') && inner.iter().all(|b| marks(*b))).then_some(open)
    });
    cited.map_or(line, |open| line[..open].trim_end())
}

#[cfg(test)]
mod tests {
    use crate::memory::address::Citation;
    use proptest::prelude::*;

    use super::{
        SummarySection::{Context, Decisions, KeyOutcomes},
        header::{parse_canonical, parse_canonical_scalar},
        *,
    };

    fn week() -> Period {
        "2026-W14".parse().unwrap()
    }

    fn item(bullet: &str) -> Item {
        Item::parse(bullet)
    }

    fn draft() -> Summary {
        let header = SummaryHeader {
            pointers: vec!["memory/2026-03-30.md".to_owned(), "memory/2026-04-02.md".to_owned()],
            engine: "extractive/1".to_owned(),
            sources: BTreeMap::from([
                ("2026-03-30".to_owned(), "9c1f2ab04d7e6f58".to_owned()),
                ("2026-04-02".to_owned(), "0312e71104020900".to_owned()),
            ]),
            ..SummaryHeader::default()
        };
        let sections = [
            (
                SummarySection::KeyOutcomes,
                vec![item("Importer v2 shipped (#412), 3.2 s per GB [2026-03-30:12]")],
            ),
            (SummarySection::Context, vec![]),
            (
                SummarySection::Decisions,
                vec![
                    item("SQLite over Postgres [2026-04-02:4,9-11; 2026-04-03:2]"),
                    item("SQLite over Postgres [2026-04-02:20]"),
                ],
            ),
        ];
        Summary::from_draft(week(), header, &sections)
    }

    const PRINTED: &str = "\
---
type: weekly
period: 2026-W14
pointers:
  - memory/2026-03-30.md
  - memory/2026-04-02.md
---

# Week 2026-W14

### Key Outcomes
- Importer v2 shipped (#412), 3.2 s per GB [2026-03-30:12]

### Decisions
- SQLite over Postgres [2026-04-02:4,9-11; 2026-04-03:2]
- SQLite over Postgres [2026-04-02:20]
";

    const RECORD: &str = r#"{
  "body": "BODY",
  "cited": [
    "cbda1b63",
    "b6638b73",
    "d807b8d3"
  ],
  "engine": "extractive/1",
  "items": [
    "ee5076d2",
    "f7e53584",
    "f7e53584"
  ],
  "sources": {
    "2026-03-30": "9c1f2ab04d7e6f58",
    "2026-04-02": "0312e71104020900"
  }
}
"#;

    /// The key of the older form that held the record.
    const OLDER_KEY: &str = "\
memoird:
  engine: extractive/1
  sources: { 2026-03-30: 9c1f2ab04d7e6f58, 2026-04-02: \"0312e71104020900\" }
  items: [ee5076d2, f7e53584, f7e53584]
";

    /// Returns the file of [`draft`] in the older form, with these lines at the end of the key.
    fn older(rest: &str) -> String {
        PRINTED.replace("---\n\n", &format!("{OLDER_KEY}{rest}---\n\n"))
    }

    #[test]
    fn a_draft_prints_in_the_documented_layout() {
        let draft = draft();
        let record = RECORD.replace("BODY", &ContentHash::of(PRINTED).hex16());
        let expected = joined::join(PRINTED, Some(&record));
        assert_eq!(draft.print(), expected);
        let read = Summary::parse(week(), &expected).unwrap();
        assert_eq!((&read.header, read.body()), (&draft.header, draft.body()));
        assert_eq!(read.print(), expected);
        assert_eq!(body_hash(&expected), draft.body_hash());
        assert_eq!(SummaryHeader::read(draft.period, &expected).unwrap(), draft.header);
        let lines: Vec<_> = read.bullets().map(|(line, _, section)| (line, section)).collect();
        assert_eq!(lines, [(12, Some(KeyOutcomes)), (15, Some(Decisions)), (16, Some(Decisions))]);
        for (line, item, _) in read.bullets() {
            let text = expected.lines().nth(line as usize - 1).unwrap();
            assert_eq!(text, format!("- {item}"));
        }
        let words = "# Week 2026-W14\n\n### Key Outcomes\n- Importer v2 shipped (#412), 3.2 s per GB\n\n### Decisions\n- SQLite over Postgres\n- SQLite over Postgres";
        assert_eq!(read.text_chars(), words.chars().count());
    }

    #[test]
    fn a_file_of_the_older_form_is_read_and_takes_the_new_form() {
        let older = older("");
        let read = Summary::parse(week(), &older).unwrap();
        assert_eq!((&read.header, read.body()), (&draft().header, draft().body()));
        let lines: Vec<u32> = read.bullets_as_read().map(|it| it.0).collect();
        assert_eq!(lines, [16, 19, 20]);
        assert_eq!(read.print(), draft().print());
        // The record in the file is newer than the hidden file that was left.
        let left = joined::join(&older, Some("{\"body\": \"0\", \"engine\": \"x\"}"));
        assert_eq!(Summary::parse(week(), &left).unwrap().header, draft().header);
    }

    #[test]
    fn without_our_frontmatter_a_file_is_ours_by_its_record_and_a_bullet_of_ours() {
        let printed = draft().print();
        let record = joined::split(&printed).1;
        let read = |theirs: &str| Summary::parse(week(), &joined::join(theirs, record)).unwrap();
        for theirs in ["", "half", "- mine\n", "---\ntags: [a]\n---\n- mine\n"] {
            assert_eq!(read(theirs).header, None, "{theirs}: a file put in the place of ours");
        }
        let last = "---\ntags: [a]\n---\n- mine\n- SQLite over Postgres [2026-04-02:20]\n";
        let it = read(last);
        assert_eq!(it.ownership().owners, [BulletOwner::User, BulletOwner::Memoird]);
        assert_eq!(SummaryHeader::read(week(), &joined::join(last, record)).unwrap(), it.header);
        assert!(it.print().starts_with("---\ntype: weekly\nperiod: 2026-W14\ntags: [a]\n---\n"));
        let body = draft().body();
        let it = read(&body);
        assert_eq!((it.ownership(), it.body()), (draft().ownership(), body));
    }

    #[test]
    fn a_record_of_another_text_does_not_vouch_for_citations() {
        use RecordedAs::{OtherCitation, OtherWords, Same};
        let printed = draft().print();
        let whole = |text: &str| Summary::parse(week(), text).unwrap();
        let as_recorded = |it: &Summary| {
            let items: Vec<_> = it.blocks.iter().filter_map(SummaryBlock::item).collect();
            items.into_iter().map(|item| it.recorded_as(item)).collect::<Vec<_>>()
        };
        assert_eq!(as_recorded(&whole(&printed)), [Same, Same, Same]);
        let edited = whole(&printed.replace("3.2 s", "3.3 s"));
        assert_eq!(
            (as_recorded(&edited), edited.is_mixed()),
            (vec![OtherWords, Same, Same], false)
        );
        let mut mixed = whole(&printed.replace("[2026-03-30:12]", "[2026-03-30:14]"));
        assert_eq!(
            (as_recorded(&mixed), mixed.is_mixed()),
            (vec![OtherCitation, Same, Same], true)
        );
        assert!(whole(&mixed.print()).is_mixed(), "writing it again proves nothing");
        mixed.accept_citations(&|_| true);
        assert!(!whole(&mixed.print()).is_mixed());
        // An older form lists no citations.
        assert!(!whole(&older("").replace("[2026-03-30:12]", "[2026-03-30:14]")).is_mixed());
    }

    #[test]
    fn all_that_is_recorded_reads_back() {
        let mut draft = draft();
        let header = draft.header.as_mut().unwrap();
        header.external = header.items[..1].to_vec();
        header.extracted = vec!["2026-03-30".to_owned(), "2026-04-02-standup".to_owned()];
        header.missing_sources = vec!["2026-04-01".to_owned()];
        header.partial = true;
        header.fallback = true;
        let text = draft.print();
        for text in
            [&text, &text.replace("period:", "# mine\nperiod:"), &text.replace('\n', "\r\n")]
        {
            assert_eq!(Summary::parse(week(), text).unwrap().header, draft.header);
        }
        let keys: Vec<&str> = joined::split(&text)
            .1
            .unwrap()
            .lines()
            .filter_map(|it| it.strip_prefix("  \"")?.split('"').next())
            .collect();
        assert!(keys.is_sorted() && keys.len() == 10, "{keys:?}");
    }

    #[test]
    fn the_fast_reader_of_the_older_form_and_the_general_one_agree() {
        let mut draft = draft();
        let header = draft.header.as_mut().unwrap();
        header.external = header.items[..1].to_vec();
        header.extracted = vec!["2026-03-30".to_owned(), "2026-04-02-standup".to_owned()];
        header.partial = true;
        header.fallback = true;
        let text = older(
            "  external: [ee5076d2]\n  extracted: [2026-03-30, 2026-04-02-standup]\n  partial: true\n  fallback: true\n",
        );
        let yaml = frontmatter::split(&text).yaml.unwrap();
        assert_eq!(parse_canonical(yaml), Some((week(), draft.header.clone().unwrap())));
        // We never write a comment, so the general reader takes over.
        let general = text.replace("memoird:\n", "# mine\nmemoird:\n");
        assert_eq!(parse_canonical(frontmatter::split(&general).yaml.unwrap()), None);
        assert_eq!(SummaryHeader::read(draft.period, &general).unwrap(), draft.header);
        assert_eq!(
            SummaryHeader::read(draft.period, &text.replace('\n', "\r\n")).unwrap(),
            draft.header
        );
        for odd in ["yes", "12", "1e5", "~"] {
            assert_eq!(parse_canonical_scalar(odd), None, "{odd}");
        }
    }

    #[track_caller]
    fn check_body(body: &str, bullets: &[(u32, &str)]) {
        let summary = Summary::parse(week(), body).unwrap();
        assert_eq!(summary.print(), body);
        let found: Vec<_> = summary.bullets().map(|(line, it, _)| (line, it.to_string())).collect();
        let expected: Vec<_> = bullets.iter().map(|&(line, it)| (line, it.to_owned())).collect();
        assert_eq!(found, expected, "{body:?}");
    }

    #[test]
    fn bodies_that_people_wrote_print_back_unchanged() {
        check_body("", &[]);
        check_body("# Week\r\n* a\r\n+ b", &[(2, "a"), (3, "b")]);
        check_body(
            "- a\n  and more [2026-04-02:4]\n- b\n",
            &[(1, "a and more [2026-04-02:4]"), (3, "b")],
        );
        check_body("- a [2026-04-02:4]\n  my note\n", &[(1, "a my note [2026-04-02:4]")]);
        check_body("- a [2026-04-02:4]\nmy text\n- b\n", &[(1, "a [2026-04-02:4]"), (3, "b")]);
        check_body("- a\nlazy\n\ntext\n  - nested\n", &[(1, "a lazy"), (5, "nested")]);
        check_body(
            "- [ ] open [2026-04-02:4]\n- [x] done\n",
            &[(1, "[ ] open [2026-04-02:4]"), (2, "[x] done")],
        );
        check_body("```\n- code\n```\n<!-- - no -->\n> - quote\n- 日本\n", &[(6, "日本")]);
    }

    #[test]
    fn sections_end_at_a_persons_heading() {
        let body = "### Decisions\n- a\n#### Detail\n- b\n### Mine\n- c\n## context\n- d\n";
        let summary = Summary::parse(week(), body).unwrap();
        let sections: Vec<_> = summary.bullets().map(|(_, _, section)| section).collect();
        assert_eq!(sections, [Some(Decisions), Some(Decisions), None, Some(Context)]);
    }

    #[test]
    fn the_list_of_hashes_determines_the_owners() {
        let text = draft().print();
        let owners = |text: &str| {
            let it = Summary::parse(week(), text).unwrap().ownership();
            let owners: String = it
                .owners
                .iter()
                .map(|it| if *it == BulletOwner::Memoird { 'o' } else { 'p' })
                .collect();
            (owners, it.missing_hashes.len())
        };
        assert_eq!(owners(&text), ("ooo".to_owned(), 0));
        let moved = text.replace("[2026-03-30:12]", "[2026-03-30:14]");
        assert_eq!(owners(&moved), ("ooo".to_owned(), 0), "a line that only moved is no edit");
        let edited = text.replace("3.2 s", "3.3 s");
        assert_eq!(owners(&edited), ("poo".to_owned(), 1));
        let last = "- SQLite over Postgres [2026-04-02:20]\n";
        assert_eq!(owners(&text.replace(last, "")), ("oo".to_owned(), 1));
        let copied = text.replace(last, &format!("{last}- SQLite over Postgres\n- new\n"));
        assert_eq!(owners(&copied), ("ooopp".to_owned(), 0));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(owners(&crlf), ("ooo".to_owned(), 0));
        assert_eq!(owners("- a\n"), ("p".to_owned(), 0));
    }

    #[test]
    fn a_persons_keys_stay_and_foreign_files_print_back_unchanged() {
        let theirs =
            "# what it is about\ntags:\n- work   # mostly\n- \"no\"\nnote: |\n  a\n\n  b\n";
        let text = draft().print().replacen("---\n\n", &format!("{theirs}---\n\n"), 1);
        let summary = Summary::parse(week(), &text).unwrap();
        assert_eq!(summary.print(), joined::resealed(text));
        let again = Summary::parse(week(), &summary.print()).unwrap();
        assert_eq!(again.other_keys, summary.other_keys);
        assert_eq!(again.print(), summary.print());
        let line = |it: &Summary| it.bullets().next().unwrap().0;
        assert_eq!((line(&summary), summary.bullets_as_read().next().unwrap().0), (20, 20));

        let foreign = "\u{feff}---\ntype:   weekly # mine\nperiod: 2026-W01\n---\n- a\n";
        let summary = Summary::parse(week(), foreign).unwrap();
        assert_eq!((summary.header.as_ref(), summary.print().as_str()), (None, foreign));
        assert_eq!(line(&summary), 5);
    }

    #[test]
    fn invalid_frontmatter_is_an_error() {
        let text = older("");
        let error = |text: &str| Summary::parse(week(), text).unwrap_err().to_string();
        for text in [&text, &draft().print()] {
            assert!(error(&text.replace("W14", "W15")).contains("named 2026-W14"));
        }
        assert!(error(&text.replace("items: [", "items: 3 # [")).contains("`memoird.items`"));
        assert!(error(&text.replace("items: [", "items: [*x, ")).contains("aliases"));
    }

    #[test]
    fn drafted_words_become_one_line() {
        let items =
            ["a\nb\u{2028}c\u{1b}[2J ", " \n", "- # x", "[ ] task", "ends [2026-04-02:4]", "---"];
        let items: Vec<Item> =
            items.iter().map(|it| Item { text: (*it).to_owned(), citation: None }).collect();
        let draft = Summary::from_draft(
            week(),
            SummaryHeader::default(),
            &[(SummarySection::Context, items)],
        );
        let read = Summary::parse(week(), &draft.print()).unwrap();
        let texts: Vec<_> = read.bullets().map(|(_, it, _)| it.text.clone()).collect();
        assert_eq!(texts, ["a b c [2J", "- # x", "[ ] task", "ends"]);
        assert!(
            read.ownership().missing_hashes.is_empty()
                && !read.ownership().owners.contains(&BulletOwner::User)
        );
    }

    proptest! {
        #[test]
        fn any_body_prints_back(body in "(?s)([-*#>`|~\\[\\]<! \\r\n\ta:é]{0,6}|### Decisions\n|\\[2026-04-02:4\\]\n|.{0,4}){0,24}") {
            let fence = draft().frontmatter();
            let printed = draft().print();
            let ours = joined::join(&format!("{fence}{body}"), joined::split(&printed).1);
            for text in [joined::join(&body, None), ours] {
                let printed = Summary::parse(week(), &text).unwrap().print();
                prop_assert_eq!(joined::visible(&printed), joined::visible(&text));
                prop_assert_eq!(Summary::parse(week(), &printed).unwrap().print(), printed);
            }
        }

        #[test]
        fn any_header_reads_back(
            engine in any::<String>(),
            pointers in proptest::collection::vec(any::<String>(), 0..4),
            body in "(?s)(---\n|type: user\n|memoird:\n|\u{feff}|.{0,4}){0,8}",
        ) {
            let period = "2026-W14".parse().unwrap();
            let header = SummaryHeader { pointers, engine, ..SummaryHeader::default() };
            let mut summary = Summary::from_draft(period, header.clone(), &[]);
            summary.blocks.push(SummaryBlock::Other(body.clone()));
            let printed = summary.print();
            prop_assert!(joined::visible(&printed).ends_with(&body));
            prop_assert_eq!(SummaryHeader::read(period, &printed), Ok(Some(header)));
        }

        #[test]
        fn drafts_read_back(texts in proptest::collection::vec(any::<String>(), 0..6)) {
            let cited = |text: String| Item { text, citation: Some(Citation::single_line("2026-04-02".parse().unwrap(), 4)) };
            let items: Vec<Item> = texts.into_iter().map(cited).collect();
            let draft = Summary::from_draft(week(), SummaryHeader::default(), &[(SummarySection::Context, items)]);
            let read = Summary::parse(week(), &draft.print()).unwrap();
            prop_assert_eq!(&read.header, &draft.header);
            prop_assert_eq!(&read.blocks, &draft.blocks);
            prop_assert!(read.ownership().missing_hashes.is_empty());
        }
    }
}
