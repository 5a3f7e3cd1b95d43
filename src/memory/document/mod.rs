//! Weekly and monthly files.
//!
//! A file is read into blocks that print back to the same bytes, so that what a person added or
//! changed is never lost by reading and writing. Its frontmatter holds a hash for each bullet as
//! we wrote it: that list tells our bullets from a person's, and what a person deleted, when no
//! database is left to ask.
//!
//! # Invariants
//!
//! - The blocks of a file that was read, joined, are its body byte for byte.
//! - A file without `memoird:` prints back byte for byte, frontmatter included.
//! - The frontmatter of a file with `memoird:` has one spelling for the same values.
//!
//! Called by `store` (reading and writing), `compaction` (making and merging), and `recall`.

mod blocks;
mod header;

use std::{
    collections::{BTreeMap, HashMap},
    ops::RangeInclusive,
};

use self::{
    blocks::{heading_level, split_blocks},
    header::SummaryFrontmatter,
};
use super::{
    address::{Citation, Stem},
    frontmatter::{self, FrontmatterError, OtherKeys, write::FrontmatterWriter},
    hash::ContentHash,
    item::{Item, SummarySection, Tier},
    period::{Grain, Period},
};

/// A weekly or monthly file.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The period that it covers.
    pub period: Period,
    /// What we recorded about it; `None` for a foreign file (no `memoird:` in the frontmatter).
    pub header: Option<SummaryHeader>,
    /// Frontmatter keys that are not ours; kept.
    pub other_keys: OtherKeys,
    /// The body, in order.
    pub blocks: Vec<SummaryBlock>,
    /// The frontmatter as it was read, with its fences; empty for a file that we make.
    raw_frontmatter: String,
    /// Whether all of its lines end in `\r\n`.
    crlf: bool,
}

/// What `memoird:` and its neighbours in the frontmatter say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryHeader {
    /// Paths of the files that it was folded from, relative to the root.
    pub pointers: Vec<String>,
    /// Name and version of the engine.
    pub engine: String,
    /// Per source (a log's stem, a week's name) the first 16 hex digits of its hash.
    pub sources: BTreeMap<String, String>,
    /// The hash of each bullet as we wrote it.
    pub items: Vec<String>,
    /// Logs whose extraction is done (weekly files only), by stem, with nothing said of their text.
    pub extracted: Vec<String>,
    /// Sources that were not there when it was made: what it says of them was carried over, and it is
    /// made again when they are back.
    pub missing_sources: Vec<String>,
    /// Whether the period was still open.
    pub partial: bool,
    /// Whether it was made offline because the model could not be had: it is made again with it.
    pub fallback: bool,
}

/// A bullet with its lines in the file, from 1 and frontmatter counted, and the section that it
/// stands in.
pub type NumberedBullet<'a> = (RangeInclusive<u32>, &'a Item, Option<SummarySection>);

/// A piece of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummaryBlock {
    /// A heading that names a section of ours: `### Decisions`.
    Section(SummarySection, String),
    /// A bullet: the item, and its lines as they stand.
    Bullet(Item, String),
    /// Anything else, as it stands.
    Other(String),
}

/// Whose a bullet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulletOwner {
    /// It stands as we wrote it.
    Memoird,
    /// A person wrote or changed it.
    User,
}

/// What a person did to a file of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The owner of each bullet, in the order of [`Summary::bullets`].
    pub owners: Vec<BulletOwner>,
    /// The hashes of bullets of ours that are gone, deleted or changed, in the order of the list.
    pub missing_hashes: Vec<String>,
}

/// A weekly or monthly file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryError {
    /// There is nothing in it, or nothing but NUL bytes.
    #[error(
        "there is nothing in it; `memoird compact` makes it again from its logs, and `memoird doctor --repair` puts it away"
    )]
    Empty,
    /// There are NUL bytes in it: a disk that lost what was written shows such.
    #[error("it holds NUL bytes; `memoird doctor --repair` puts it away, then `memoird compact`")]
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
    /// A key of ours holds something else than we write.
    #[error(
        "`{key}` in the frontmatter does not hold what memoird writes there; restore or remove it"
    )]
    InvalidKey {
        /// The key, with the one it stands under.
        key: &'static str,
    },
}

impl Summary {
    /// Reads the file of `period`.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the frontmatter. A body is never wrong.
    pub fn parse(period: Period, text: &str) -> Result<Self, SummaryError> {
        let split = frontmatter::split(text);
        let SummaryFrontmatter { header, other_keys } =
            SummaryFrontmatter::read(&split, Some(period))?;
        let blocks = split_blocks(split.body(text));
        let front = text[..split.body_at].to_owned();
        Ok(Self {
            period,
            header,
            other_keys,
            blocks,
            raw_frontmatter: front,
            crlf: frontmatter::is_crlf(text),
        })
    }

    /// Makes the file of `period` from what was drafted. Sections without an item are left out.
    ///
    /// `items` of the header is computed here, whatever the given one holds. The words of a bullet
    /// become one line without control characters; a bullet without words is left out.
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
        Self { period, header, other_keys, blocks, raw_frontmatter: front, crlf: false }
    }

    /// Returns the heading that names the period of a file of ours.
    pub fn title(period: Period) -> String {
        match period.grain() {
            Grain::Week => format!("# Week {period}"),
            Grain::Day | Grain::Month => format!("# {period}"),
        }
    }

    /// Puts another body in the place of the one that stands.
    pub fn set_body(&mut self, body: &str) {
        self.blocks = split_blocks(body);
    }

    /// Takes over the keys of the frontmatter that are not ours, as they stand.
    pub fn copy_other_keys_from(&mut self, other: &Self) {
        self.other_keys.clone_from(&other.other_keys);
    }

    /// Ends lines as `other` does, where all of its lines end in the same way.
    pub fn copy_line_endings_from(&mut self, other: &Self) {
        self.crlf = other.crlf;
        if self.crlf {
            let body = frontmatter::with_crlf(&self.body());
            self.set_body(&body);
        }
    }

    /// Returns the whole file.
    pub fn print(&self) -> String {
        let mut text = self.frontmatter();
        text.extend(self.blocks.iter().map(SummaryBlock::raw));
        text
    }

    /// Returns what stands after the frontmatter.
    pub fn body(&self) -> String {
        self.blocks.iter().map(SummaryBlock::raw).collect()
    }

    /// Returns the hash of [`Summary::body`]: how a generated file is compared and recorded.
    pub fn body_hash(&self) -> ContentHash {
        hash_of_body(&self.body())
    }

    /// Returns the characters of the body without citations: what the ratio of a fold limits.
    pub fn text_chars(&self) -> usize {
        text_chars(&self.body())
    }

    /// Returns each bullet with its first line in the printed file, from 1 and frontmatter counted,
    /// and the section that it stands in.
    pub fn bullets(&self) -> impl Iterator<Item = (u32, &Item, Option<SummarySection>)> {
        let numbered = self.numbered_bullets(self.frontmatter().matches('\n').count());
        numbered.map(|(lines, item, section)| (*lines.start(), item, section))
    }

    /// Returns what [`Summary::bullets`] does, with the line in the file as it was read: another
    /// one where a person spelled the frontmatter in another way than we do.
    pub fn bullets_as_read(&self) -> impl Iterator<Item = (u32, &Item, Option<SummarySection>)> {
        self.bullets_with_lines().map(|(lines, item, section)| (*lines.start(), item, section))
    }

    /// Returns what [`Summary::bullets_as_read`] does, with all lines of each bullet: a person may
    /// write one over several.
    pub fn bullets_with_lines(&self) -> impl Iterator<Item = NumberedBullet<'_>> {
        self.numbered_bullets(self.raw_frontmatter.matches('\n').count())
    }

    /// Returns the bullets as what stands above may cite them: one that a person wrote or changed is
    /// a source itself, above the lines that it cites.
    pub fn bullets_as_sources(&self) -> impl Iterator<Item = (Option<SummarySection>, Item)> {
        let stem = Stem::of_summary(self.period);
        let owners = self.ownership().owners;
        self.bullets_with_lines().zip(owners).map(move |((lines, item, section), owner)| {
            let mut item = item.clone();
            if let (BulletOwner::User, Some(stem)) = (owner, &stem) {
                // A line that is gone vouches for nothing.
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

    /// Returns the lines of the file as it was read that are sources themselves: of bullets that a
    /// person wrote or changed, and of a foreign file without bullets all.
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

    /// Tells our bullets from a person's, and which of ours are gone.
    ///
    /// The list of hashes is a multiset: of two equal bullets where one is listed, the first is
    /// ours.
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
        writer.open_map("memoird");
        writer.text("engine", &header.engine);
        writer.flow_map("sources", &header.sources);
        writer.flow_list("items", header.items.iter().map(String::as_str));
        if !header.extracted.is_empty() {
            writer.flow_list("extracted", header.extracted.iter().map(String::as_str));
        }
        if !header.missing_sources.is_empty() {
            writer.flow_list("gone", header.missing_sources.iter().map(String::as_str));
        }
        if header.partial {
            writer.bare("partial", true);
        }
        if header.fallback {
            writer.bare("fallback", true);
        }
        writer.close_map();
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
                // A heading of a person's own ends a section of ours, unless it stands beneath it.
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
    /// Reads only the frontmatter of the file of `period`; `None` for a foreign file.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the frontmatter.
    pub fn read(period: Period, text: &str) -> Result<Option<Self>, SummaryError> {
        Ok(SummaryFrontmatter::read(&frontmatter::split(text), Some(period))?.header)
    }
}

/// Finds out whether a disk has lost what stood in a file.
///
/// # Errors
///
/// Returns what is wrong with it.
pub fn check_data_loss(text: &str) -> Result<(), SummaryError> {
    if text.chars().all(|c| c.is_whitespace() || c == '\0') {
        Err(SummaryError::Empty)
    } else if text.contains('\0') {
        Err(SummaryError::NulBytes)
    } else {
        Ok(())
    }
}

/// Returns the characters of a body, citations not counted: what the ratio of a fold limits.
pub fn text_chars(body: &str) -> usize {
    let lines: usize = body.trim().lines().map(|line| strip_citation(line).chars().count()).sum();
    lines + body.trim().matches('\n').count()
}

/// Returns the hash of what stands after the frontmatter of `text`, without reading either.
pub fn body_hash(text: &str) -> ContentHash {
    hash_of_body(frontmatter::split(text).body(text))
}

/// How lines end does not count: tools that carry files between machines change that.
fn hash_of_body(body: &str) -> ContentHash {
    if body.contains("\r\n") {
        ContentHash::of(body.replace("\r\n", "\n"))
    } else {
        ContentHash::of(body)
    }
}

/// Returns the item as its bullet will hold it, or `None` without words.
fn normalize_item(item: &Item) -> Option<Item> {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let text = item.text.replace(breaks, " ").trim().to_owned();
    let item = Item::parse(&Item { text, citation: item.citation.clone() }.to_string());
    (!item.text.is_empty()).then_some(item)
}

/// Cuts the citation off the end of a line.
///
/// Every file is measured at every pass, so the citation is told by its form and not read.
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
  - \"memory/2026-03-30.md\"
  - \"memory/2026-04-02.md\"
memoird:
  engine: extractive/1
  sources: { 2026-03-30: 9c1f2ab04d7e6f58, 2026-04-02: \"0312e71104020900\" }
  items: [ITEMS]
---

# Week 2026-W14

### Key Outcomes
- Importer v2 shipped (#412), 3.2 s per GB [2026-03-30:12]

### Decisions
- SQLite over Postgres [2026-04-02:4,9-11; 2026-04-03:2]
- SQLite over Postgres [2026-04-02:20]
";

    #[test]
    fn a_draft_prints_in_the_agreed_layout() {
        let draft = draft();
        let hashes = draft.header.clone().unwrap().items;
        let listed: Vec<String> = hashes.iter().map(|it| frontmatter::write::scalar(it)).collect();
        let expected = PRINTED
            .replace("ITEMS", &listed.join(", "))
            .replace("\"memory/2026-03-30.md\"", "memory/2026-03-30.md")
            .replace("\"memory/2026-04-02.md\"", "memory/2026-04-02.md");
        assert_eq!(draft.print(), expected);
        let read = Summary::parse(week(), &expected).unwrap();
        assert_eq!((&read.header, read.body()), (&draft.header, draft.body()));
        assert_eq!(read.print(), expected);
        assert_eq!(body_hash(&expected), draft.body_hash());
        assert_eq!(SummaryHeader::read(draft.period, &expected).unwrap(), draft.header);
        let lines: Vec<_> = read.bullets().map(|(line, _, section)| (line, section)).collect();
        assert_eq!(lines, [(16, Some(KeyOutcomes)), (19, Some(Decisions)), (20, Some(Decisions))]);
        for (line, item, _) in read.bullets() {
            let text = expected.lines().nth(line as usize - 1).unwrap();
            assert_eq!(text, format!("- {item}"));
        }
        let words = "# Week 2026-W14\n\n### Key Outcomes\n- Importer v2 shipped (#412), 3.2 s per GB\n\n### Decisions\n- SQLite over Postgres\n- SQLite over Postgres";
        assert_eq!(read.text_chars(), words.chars().count());
    }

    #[test]
    fn the_fast_reader_and_the_general_one_agree() {
        let mut draft = draft();
        let header = draft.header.as_mut().unwrap();
        header.extracted = vec!["2026-03-30".to_owned(), "2026-04-02-standup".to_owned()];
        header.partial = true;
        header.fallback = true;
        let text = draft.print();
        let yaml = frontmatter::split(&text).yaml.unwrap();
        assert_eq!(parse_canonical(yaml), Some((week(), draft.header.clone().unwrap())));
        // A comment is nothing that we write, so the general reader takes over.
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
    fn bodies_of_people_are_read_and_kept() {
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
    fn owners_are_told_from_the_list() {
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
        let deleted = text.replace("- SQLite over Postgres [2026-04-02:20]\n", "");
        assert_eq!(owners(&deleted), ("oo".to_owned(), 1));
        let copied = format!("{text}- SQLite over Postgres\n- new\n");
        assert_eq!(owners(&copied), ("ooopp".to_owned(), 0));
        let crlf = text.replace('\n', "\r\n");
        assert_eq!(owners(&crlf), ("ooo".to_owned(), 0));
        assert_eq!(owners("- a\n"), ("p".to_owned(), 0));
    }

    #[test]
    fn a_persons_keys_stay_and_foreign_files_print_as_they_stand() {
        let theirs =
            "# what it is about\ntags:\n- work   # mostly\n- \"no\"\nnote: |\n  a\n\n  b\n";
        let text = draft().print().replace("memoird:\n", &format!("{theirs}memoird:\n"));
        let summary = Summary::parse(week(), &text).unwrap();
        assert_eq!(summary.print(), text);
        let again = Summary::parse(week(), &summary.print()).unwrap();
        assert_eq!(again.other_keys, summary.other_keys);
        assert_eq!(again.print(), summary.print());
        let line = |it: &Summary| it.bullets().next().unwrap().0;
        assert_eq!((line(&summary), summary.bullets_as_read().next().unwrap().0), (24, 24));

        let foreign = "\u{feff}---\ntype:   weekly # mine\nperiod: 2026-W01\n---\n- a\n";
        let summary = Summary::parse(week(), foreign).unwrap();
        assert_eq!((summary.header.as_ref(), summary.print().as_str()), (None, foreign));
        assert_eq!(line(&summary), 5);
    }

    #[test]
    fn what_is_not_ours_to_read_is_an_error() {
        let text = draft().print();
        let error = |text: &str| Summary::parse(week(), text).unwrap_err().to_string();
        assert!(error(&text.replace("W14", "W15")).contains("named 2026-W14"));
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
            for text in [body.clone(), format!("{fence}{body}")] {
                let summary = Summary::parse(week(), &text).unwrap();
                prop_assert_eq!(summary.print(), text);
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
            prop_assert!(printed.ends_with(&body));
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
