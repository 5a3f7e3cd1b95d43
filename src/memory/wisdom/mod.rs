//! `WISDOM.md`: durable entries, edited and never rewritten.
//!
//! ```text
//! # Lexicon - Wisdom
//!
//! Read this first in every session. …
//!
//! Last compacted: 2026-05-03
//!
//! ---
//!
//! ## Releases
//!
//! **Tag before the upload**
//! The mirror copies what is tagged, so an upload without a tag is never seen.
//! <!-- memoird: id=w-3fa91c22; hash=a1b2c3d4; sources=2026-04-02:4,9; lines=3fa9,07be; first=2026-04-02; last=2026-05-03 -->
//!
//! <!-- memoird: distilled 2026-03, 2026-04; entries that you add or edit are yours: kept as they are, never dropped -->
//! ```
//!
//! # Invariants
//!
//! - Parsing cuts the file into segments whose texts, joined, are the file. An edit changes only
//!   the segments that it is about; every other byte stays.
//! - An entry is a bold title with its text, or a bullet with our comment below it. Our bullets are replaced as
//!   a whole when the logs change; entries with a title are edited one by one.
//! - An entry is managed when it has our comment and the hash in it is that of its words. Every
//!   other entry is a person's and is never changed or dropped.
//!
//! `entry` holds what concerns one entry, `edit` the changes of the file.

mod edit;
mod entry;
mod section;

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

pub use self::section::WisdomSection;
use super::{
    address::{Address, Citation},
    frontmatter,
    hash::ContentHash,
    period::{Grain, Period},
};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomFile {
    segments: Vec<WisdomSegment>,
    distilled: BTreeSet<Period>,
    /// Whether the last comment explains which entries belong to whom.
    has_edit_note: bool,
    /// Whether all lines end in `\r\n`.
    crlf: bool,
}

/// A part of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum WisdomSegment {
    /// Anything that is not an entry, as read.
    Text(String),
    /// `## Name`, as read.
    Category(String, String),
    Entry(WisdomEntry),
}

/// A part of the file as readers see it.
#[derive(Clone, Copy, Debug)]
pub enum WisdomPart<'a> {
    /// A heading: `## Name`.
    Heading(&'a str),
    /// One entry.
    Entry(&'a WisdomEntry),
    /// Anything else.
    Text(&'a str),
}

/// One entry as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomEntry {
    /// The heading, without `**`; empty if the entry is a bullet.
    pub title: String,
    /// One to three sentences.
    pub text: String,
    /// The `## Category` above it.
    pub category: Option<String>,
    /// Our comment; `None` for an entry that was never managed.
    pub meta: Option<WisdomEntryMeta>,
    /// Its bytes in the file, up to the next segment.
    pub raw: String,
}

/// The comment at the end of a managed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomEntryMeta {
    /// The permanent name of the entry.
    pub id: String,
    /// Hash of title and text as we wrote them; if it differs, the entry is a person's.
    pub hash: String,
    /// The cited lines.
    pub sources: Citation,
    /// The first 4 hex digits of the hash of each cited line, where recorded.
    pub lines: BTreeMap<Address, String>,
    /// Day of the oldest source.
    pub first_seen: NaiveDate,
    /// Day of the newest line that confirmed it.
    pub last_reinforced: NaiveDate,
}

/// Cited lines, each with its short hash where known.
pub type HashedLines = Vec<(Address, Option<String>)>;

/// The size limits of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WisdomLimits {
    /// Entries, a person's included.
    pub entries: usize,
    /// Characters of the whole file without comments.
    pub chars: usize,
}

const COMMENT_OPEN: &str = "<!-- memoird: ";
const COMMENT_CLOSE: &str = " -->";
/// The beginning of an entry without a title.
const BULLET: &str = "- ";

/// How the ids of bullets begin that are chosen again when the logs change.
const BULLET_ID: &str = "b-";
const LAST_COMPACTED: &str = "Last compacted: ";
/// Explains to readers what happens to their edits. Older files lack these words.
const EDIT_NOTE: &str = "; entries that you add or edit are yours: kept as they are, never dropped";

impl WisdomFile {
    /// Builds a file without entries for an agent.
    pub fn new(agent_name: &str) -> Self {
        let head = format!(
            "# {} - Wisdom\n\nRead this first in every session. These are notes from earlier work, not orders; \
             newer facts win.\n\n{LAST_COMPACTED}never\n\n---\n",
            one_line(agent_name)
        );
        let (segments, distilled) = (vec![WisdomSegment::Text(head)], BTreeSet::new());
        Self { segments, distilled, has_edit_note: true, crlf: false }
    }

    /// Cuts a file into segments. Any text is a wisdom file; one without comments is a person's.
    pub fn parse(text: &str) -> Self {
        let mut segments = Vec::new();
        let mut distilled = BTreeSet::new();
        let mut has_edit_note = false;
        let mut category: Option<String> = None;
        let mut fenced = false;
        let mut open: Option<OpenSegment> = None;
        let mut after_comment = false;
        let mut below_title = false;
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            let bare = line.trim();
            fenced ^= bare.starts_with("```");
            let next = lines.peek().copied().unwrap_or_default();
            let is_title = !fenced && entry_title(line).is_some();
            // Right below a title it is the text of that entry.
            let starts_entry = is_title || (!fenced && !below_title && is_bullet(line, next));
            below_title = is_title;
            let is_distilled = parse_distilled(bare).is_some();
            let is_heading = !fenced && (line.starts_with('#') || line.starts_with("---"));
            let in_entry = open.as_ref().is_some_and(|it| it.is_entry);
            // Blank lines after our comment belong to the entry, so that it is removed as a whole.
            let ends_entry =
                in_entry && (is_heading || is_distilled || (after_comment && !bare.is_empty()));
            if starts_entry || is_heading || is_distilled || ends_entry {
                push_segment(&mut segments, open.take(), category.as_deref());
            }
            if starts_entry || is_heading {
                after_comment = false;
            }
            if let Some(months) = parse_distilled(bare) {
                distilled.extend(months);
                has_edit_note |= bare.contains(EDIT_NOTE);
                continue;
            }
            if let Some(name) = line.strip_prefix("## ").filter(|_| !fenced) {
                category = Some(name.trim().to_owned());
                segments.push(WisdomSegment::Category(name.trim().to_owned(), line.to_owned()));
                continue;
            }
            after_comment |= in_entry && bare.starts_with(COMMENT_OPEN);
            match &mut open {
                Some(it) => it.raw.push_str(line),
                None => {
                    open = Some(OpenSegment { is_entry: starts_entry, raw: line.to_owned() });
                }
            }
        }
        push_segment(&mut segments, open, category.as_deref());
        Self { segments, distilled, has_edit_note, crlf: frontmatter::is_crlf(text) }
    }

    /// Prints the file.
    pub fn print(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            match segment {
                WisdomSegment::Text(raw) | WisdomSegment::Category(_, raw) => text.push_str(raw),
                WisdomSegment::Entry(entry) => text.push_str(&entry.raw),
            }
        }
        if !self.distilled.is_empty() {
            let months: Vec<_> = self.distilled.iter().map(ToString::to_string).collect();
            end_paragraph(&mut text);
            let note = if self.has_edit_note { EDIT_NOTE } else { "" };
            let months = months.join(", ");
            text.extend([COMMENT_OPEN, "distilled ", &months, note, COMMENT_CLOSE, "\n"]);
        }
        if self.crlf { frontmatter::with_crlf(&text) } else { text }
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = &WisdomEntry> {
        self.segments
            .iter()
            .filter_map(|it| if let WisdomSegment::Entry(entry) = it { Some(entry) } else { None })
    }

    /// Returns the parts in order; joined, they are the file without its last comment.
    pub fn parts(&self) -> impl Iterator<Item = WisdomPart<'_>> {
        self.segments.iter().map(|it| match it {
            WisdomSegment::Text(raw) => WisdomPart::Text(raw),
            WisdomSegment::Category(_, raw) => WisdomPart::Heading(raw.trim_end()),
            WisdomSegment::Entry(entry) => WisdomPart::Entry(entry),
        })
    }

    /// Returns each entry with the number of its first line in the printed file, from 1.
    pub fn entries_with_lines(&self) -> Vec<(u32, &WisdomEntry)> {
        let mut line = 1;
        let mut found = Vec::new();
        for segment in &self.segments {
            let raw = match segment {
                WisdomSegment::Text(raw) | WisdomSegment::Category(_, raw) => raw,
                WisdomSegment::Entry(entry) => {
                    found.push((line, entry));
                    &entry.raw
                }
            };
            line += u32::try_from(raw.matches('\n').count()).unwrap_or(u32::MAX);
        }
        found
    }

    /// Returns the months that were distilled.
    pub fn distilled(&self) -> &BTreeSet<Period> {
        &self.distilled
    }

    /// Returns the number of characters of the file without comments.
    pub fn chars(&self) -> usize {
        visible_chars(&self.print())
    }

    /// Returns the number of characters of the file without comments and without our bullets.
    pub fn chars_without_bullets(&self) -> usize {
        let bullets = self.entries().filter(|it| it.is_own_bullet());
        let of_bullets: usize = bullets.map(|it| visible_chars(&it.raw)).sum();
        self.chars().saturating_sub(of_bullets)
    }
}

/// Returns the inside of a line that is a comment of ours: of an entry, or of the distilled months.
pub fn own_comment(line: &str) -> Option<&str> {
    let is_ours = WisdomEntryMeta::parse(line).is_some() || parse_distilled(line).is_some();
    line.strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE).filter(|_| is_ours)
}

/// Returns the title if the line is one: bold from its first to its last character.
pub fn entry_title(line: &str) -> Option<&str> {
    let title = line.trim_end().strip_prefix("**")?.strip_suffix("**")?;
    (!title.trim().is_empty() && !title.contains("**")).then(|| title.trim())
}

/// Returns whether a line is an entry without a title: a bullet, and below it our comment.
fn is_bullet(line: &str, next: &str) -> bool {
    line.starts_with(BULLET) && WisdomEntryMeta::parse(next).is_some()
}

fn parse_distilled(line: &str) -> Option<Vec<Period>> {
    let months =
        line.strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE)?.strip_prefix("distilled ")?;
    let (months, _) = months.split_once(';').unwrap_or((months, ""));
    months
        .split(',')
        .map(|it| it.trim().parse::<Period>().ok().filter(|it| it.grain() == Grain::Month))
        .collect()
}

/// A segment whose end is not yet found.
struct OpenSegment {
    is_entry: bool,
    raw: String,
}

fn push_segment(
    segments: &mut Vec<WisdomSegment>,
    open: Option<OpenSegment>,
    category: Option<&str>,
) {
    match open {
        None => {}
        Some(OpenSegment { is_entry: false, raw }) => segments.push(WisdomSegment::Text(raw)),
        Some(OpenSegment { is_entry: true, raw }) => {
            segments.push(WisdomSegment::Entry(parse_entry(raw, category)));
        }
    }
}

fn parse_entry(raw: String, category: Option<&str>) -> WisdomEntry {
    let title = raw.lines().next().and_then(entry_title).unwrap_or_default().to_owned();
    let meta = raw.lines().find_map(WisdomEntryMeta::parse);
    let lines = raw.lines().skip(usize::from(!title.is_empty()));
    let text: Vec<&str> = lines.filter(|it| !it.trim_start().starts_with(COMMENT_OPEN)).collect();
    let text = text.join("\n");
    let bullet = if title.is_empty() { text.strip_prefix(BULLET) } else { None };
    let text = bullet.unwrap_or(&text).trim().to_owned();
    WisdomEntry { title, text, category: category.map(str::to_owned), meta, raw }
}

fn words_hash(title: &str, text: &str) -> String {
    ContentHash::of(format!("{}\n{}", title.trim(), text.trim())).hex8()
}

/// Puts words on one line and breaks up whatever would parse as our comment.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace("<!--", "<! --").replace("-->", "-- >")
}

/// Returns whether a title or a description is the beginning of a statement, or all of it.
pub fn is_beginning_of(short: &str, statement: &str) -> bool {
    let bare = short.trim_end_matches(['…', '.']).to_lowercase();
    !bare.is_empty() && statement.to_lowercase().starts_with(&bare)
}

/// Turns words into the title of an entry.
fn normalize_title(title: &str) -> String {
    let title = one_line(&title.replace("**", ""));
    // An entry needs a title.
    if title.is_empty() { "Note".to_owned() } else { title }
}

/// Turns words into the text of an entry: what would parse as a title, a heading, a rule, or a
/// fence gets a backslash.
fn escape_text(text: &str) -> String {
    let text = one_line(text);
    let is_comment = ["#", "---", "```", BULLET, "-\t"].iter().any(|it| text.starts_with(it));
    if is_comment || entry_title(&text).is_some() { format!("\\{text}") } else { text }
}

fn end_paragraph(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() && !text.ends_with("\n\n") && !text.ends_with("\n\r\n") {
        text.push('\n');
    }
}

fn visible_chars(text: &str) -> usize {
    text.lines().filter(|it| !it.starts_with(COMMENT_OPEN)).map(|it| it.chars().count() + 1).sum()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cite(text: &str) -> Citation {
        text.parse().unwrap()
    }

    fn sample() -> WisdomFile {
        let mut file = WisdomFile::new("Lexicon");
        file.add("Tag first", "The mirror copies tags.", Some("Releases"), cite("2026-04-02:4,9"));
        file.add(
            "Ask Jo",
            "Jo knows the schema.",
            Some("People"),
            cite("2026-04-03:1; 2026-04-05:2"),
        );
        file.add("No category", "Stands before them.", None, cite("2026-04-06:1"));
        file
    }

    fn titles(file: &WisdomFile) -> Vec<&str> {
        file.entries().map(|it| &it.title[..]).collect()
    }

    #[test]
    fn words_that_look_like_markup_stay_words() {
        for text in ["# A", "--- x", "---", "```", "``` x", "**Bold**", "**"] {
            let mut file = sample();
            let id = file.add(text, text, Some("People"), cite("2026-04-07:1"));
            let before: Vec<_> = file.entries().cloned().collect();
            assert_eq!(before.len(), 4);
            let read = WisdomFile::parse(&file.print());
            assert_eq!(read.entries().cloned().collect::<Vec<_>>(), before, "{text}");
            assert!(read.entries().all(WisdomEntry::is_managed), "{text}");
            assert!(file.reinforce(&id, Some((text, "x")), &cite("2026-04-08:1")));
            let entry = file.entries().find(|it| it.id() == Some(&id)).unwrap();
            for words in [text.to_owned(), format!("****{text}"), format!("**{text}** {text}")] {
                let new = file.print().replacen(&entry.raw, &entry.reworded(&words, None), 1);
                let read = WisdomFile::parse(&new);
                assert_eq!(read.entries().count(), 4, "{words}: {new}");
                assert!(read.entries().any(|it| it.id() == Some(&id)), "{words}: {new}");
            }
            file.add_user_entry(text, text);
            assert_eq!(WisdomFile::parse(&file.print()).entries().count(), 5, "{text}");
        }
    }

    #[test]
    fn a_new_file_prints_in_the_documented_layout_and_parses_back() {
        let mut file = sample();
        file.add_distilled("2026-04".parse().unwrap());
        file.set_last_compacted("2026-04-06".parse().unwrap());
        let text = file.print();
        insta::assert_snapshot!(text, @r"
        # Lexicon - Wisdom

        Read this first in every session. These are notes from earlier work, not orders; newer facts win.

        Last compacted: 2026-04-06

        ---

        **No category**
        Stands before them.
        <!-- memoird: id=w-75039de5; hash=f2b73e57; sources=2026-04-06:1; first=2026-04-06; last=2026-04-06 -->

        ## Releases

        **Tag first**
        The mirror copies tags.
        <!-- memoird: id=w-66698416; hash=c8dd88f3; sources=2026-04-02:4,9; first=2026-04-02; last=2026-04-02 -->

        ## People

        **Ask Jo**
        Jo knows the schema.
        <!-- memoird: id=w-ea3e497c; hash=d1f534e3; sources=2026-04-03:1 & 2026-04-05:2; first=2026-04-03; last=2026-04-05 -->

        <!-- memoird: distilled 2026-04; entries that you add or edit are yours: kept as they are, never dropped -->
        ");
        let read = WisdomFile::parse(&text);
        assert_eq!(read.print(), text);
        assert_eq!(titles(&read), ["No category", "Tag first", "Ask Jo"]);
        assert!(read.entries().all(WisdomEntry::is_managed));
        assert_eq!(read.entries().nth(2).unwrap().category.as_deref(), Some("People"));
        assert_eq!(read.distilled().len(), 1);
        let lines: Vec<_> = read.entries_with_lines().iter().map(|it| it.0).collect();
        let found: Vec<_> =
            lines.iter().map(|&n| text.lines().nth(n as usize - 1).unwrap()).collect();
        assert_eq!(found, ["**No category**", "**Tag first**", "**Ask Jo**"]);
    }

    #[test]
    fn a_foreign_file_stays_and_new_entries_follow() {
        let theirs =
            "# Notes\r\n\n**Mine**\nMy words,\nwrapped.\n\n## House\ntext\n**Also mine**\nx";
        let mut file = WisdomFile::parse(theirs);
        assert!(file.entries().all(|it| !it.is_managed()));
        let id = file.add("Ours", "New.", Some("House"), cite("2026-04-02:1"));
        assert_eq!(titles(&file), ["Mine", "Also mine", "Ours"]);
        assert!(file.print().starts_with(theirs));
        assert!(file.remove_entry(&id));
        assert!(file.print().starts_with(theirs));
        assert!(!file.remove_entry("w-00000000"));
    }

    #[test]
    fn an_entry_that_a_person_changed_survives_every_edit() {
        let text = sample().print().replace("Jo knows the schema.", "Ask Jo or Mia.");
        let mut file = WisdomFile::parse(&text);
        let entry = file.entries().find(|it| it.title == "Ask Jo").unwrap().clone();
        assert!(!entry.is_managed());
        let id = entry.id().unwrap();
        assert!(!file.reinforce(id, Some(("x", "y")), &cite("2026-05-01:1")));
        assert!(!file.remove_entry(id));
        let caps = WisdomLimits { entries: 0, chars: 0 };
        assert!(!file.entries_over_limit(caps, &BTreeSet::new()).contains(&id.to_owned()));
        assert_eq!(file.print(), text);
    }

    #[test]
    fn an_older_file_gets_the_explanation_when_it_is_written_anyway() {
        let old = format!("{}\n<!-- memoird: distilled 2026-03 -->\n", sample().print());
        let mut file = WisdomFile::parse(&old);
        file.add_distilled("2026-03".parse().unwrap());
        assert_eq!(file.print(), old, "no file is written for that alone");
        file.add_distilled("2026-04".parse().unwrap());
        assert!(
            file.print()
                .ends_with("\n<!-- memoird: distilled 2026-03, 2026-04; entries that you add or edit are yours: kept as they are, never dropped -->\n")
        );
        assert_eq!(WisdomFile::parse(&file.print()).distilled().len(), 2);
    }

    #[test]
    fn line_endings_stay() {
        let text = sample().print().replace('\n', "\r\n");
        let mut file = WisdomFile::parse(&text);
        assert_eq!(file.print(), text);
        assert!(file.entries().all(WisdomEntry::is_managed));
        let id = file.add("New", "Words.", Some("People"), cite("2026-04-09:1"));
        file.add_distilled("2026-04".parse().unwrap());
        let printed = file.print();
        assert!(
            printed.starts_with(text.trim_end()) && frontmatter::is_crlf(&printed),
            "{printed:?}"
        );
        assert!(!printed.contains("\r\n\r\n\r\n"), "{printed:?}");
        assert!(file.remove_entry(&id));
    }

    #[test]
    fn the_line_of_a_users_bullet_is_replaced_and_never_dropped() {
        let mut file = sample();
        let id = file.entries().nth(1).unwrap().id().unwrap().to_owned();
        assert!(file.reinforce(&id, Some(("Tag", "Theirs.")), &cite("2026-04-02:4; 2026-W14:9")));
        assert!(file.reinforce(&id, None, &cite("2026-04-02:4; 2026-W14:12")));
        let mark = |file: &WisdomFile| file.entries().nth(1).unwrap().meta.clone().unwrap();
        assert_eq!(mark(&file).sources, cite("2026-04-02:4,9; 2026-W14:12"));
        for day in 1..28 {
            let said = format!("2026-05-{day:02}:1; 2026-06-{day:02}:1");
            assert!(file.reinforce(&id, None, &cite(&said)));
        }
        assert!(mark(&WisdomFile::parse(&file.print())).sources.cites_summary());
    }

    #[test]
    fn reinforcing_changes_the_comment_and_no_word() {
        let mut file = sample();
        let before = file.print();
        let id = file.entries().nth(1).unwrap().id().unwrap().to_owned();
        assert!(file.reinforce(&id, None, &cite("2026-05-03:7")));
        assert!(!file.reinforce(&id, None, &cite("2026-05-03:7")), "said before");
        let after = file.print();
        let words = |text: &str| {
            text.lines().filter(|it| !it.starts_with("<!--")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(words(&before), words(&after));
        assert!(
            after.contains(
                "sources=2026-04-02:4,9 & 2026-05-03:7; first=2026-04-02; last=2026-05-03"
            )
        );
        assert_eq!(WisdomFile::parse(&after).print(), after);
        assert!(file.reinforce(&id, Some(("Tag first", "Richer.")), &cite("2026-05-03:7")));
        assert_eq!(WisdomFile::parse(&file.print()).entries().nth(1).unwrap().text, "Richer.");
    }

    #[test]
    fn over_the_limit_the_least_durable_entry_goes_first() {
        let mut file = WisdomFile::new("A");
        let old = file.add("Old", "x", None, cite("2026-01-02:1"));
        let often = file.add("Often", "x", None, cite("2026-01-02:1; 2026-02-02:1"));
        let once = file.add("Once", "x", None, cite("2026-02-02:1"));
        let caps = |entries| WisdomLimits { entries, chars: 8000 };
        assert!(file.entries_over_limit(caps(3), &BTreeSet::new()).is_empty());
        assert_eq!(file.entries_over_limit(caps(1), &BTreeSet::new()), [old.clone(), once.clone()]);
        assert_eq!(file.entries_over_limit(caps(1), &BTreeSet::from([old.clone()])), [once, often]);
        let chars = WisdomLimits { entries: 9, chars: file.chars() - 1 };
        assert_eq!(file.entries_over_limit(chars, &BTreeSet::new()), [old]);
    }

    #[test]
    fn citations_follow_relocated_lines() {
        let mut file = sample();
        let id = file.entries().nth(1).unwrap().id().unwrap().to_owned();
        let to = |line, hash: Option<&str>| {
            (Address { stem: "2026-04-02".parse().unwrap(), line }, hash.map(str::to_owned))
        };
        let sources = [to(5, Some("07be")), to(10, None)];
        assert!(file.set_sources(&id, &sources));
        assert!(!file.set_sources(&id, &sources));
        let text = file.print();
        assert!(text.contains("sources=2026-04-02:5,10; lines=07be,-; first="), "{text}");
        let read = WisdomFile::parse(&text);
        assert_eq!(read.print(), text);
        assert!(read.entries().all(WisdomEntry::is_managed));
        let mark = read.entries().nth(1).unwrap().meta.clone().unwrap();
        assert_eq!(mark.lines, BTreeMap::from([(sources[0].0.clone(), "07be".to_owned())]));
    }

    #[test]
    fn line_hashes_that_do_not_match_the_lines_are_ignored() {
        for lines in ["", "; lines=07be", "; lines=07be,1,", "; lines=x,y"] {
            let mark = format!(
                "<!-- memoird: id=w-1; hash=2; sources=2026-04-02:5,10{lines}; first=2026-04-02; last=2026-04-02 -->"
            );
            assert_eq!(WisdomEntryMeta::parse(&mark).unwrap().lines, BTreeMap::new(), "{mark}");
        }
    }

    #[test]
    fn words_cannot_break_out_of_their_entry() {
        let mut file = WisdomFile::new("A");
        file.add(
            "T**\n# x",
            "a\n\n**B**\n<!-- memoird: distilled 2020-01 -->",
            None,
            cite("2026-01-02:1"),
        );
        let read = WisdomFile::parse(&file.print());
        assert_eq!(titles(&read), ["T # x"]);
        assert!(read.distilled().is_empty() && read.entries().all(WisdomEntry::is_managed));
    }

    proptest! {
        #[test]
        fn any_text_prints_back(lines in proptest::collection::vec("(\\*\\*[a-z ]{1,8}\\*\\*|## [a-z]{1,5}|---|```|[a-z]{0,9}|<!-- memoird: [a-z]{1,4} -->|\\PC{0,20})\r?", 0..20)) {
            let text = lines.join("\n");
            prop_assert_eq!(WisdomFile::parse(&text).print(), text);
        }

        #[test]
        fn adding_then_dropping_leaves_the_other_entries(lines in proptest::collection::vec("(\\*\\*[a-z]{1,8}\\*\\*|## [ab]|[a-z]{0,9})", 0..12), category in proptest::option::of("[ab]")) {
            let mut file = WisdomFile::parse(&lines.join("\n"));
            let before: Vec<_> = file.entries().map(|it| (it.title.clone(), it.text.clone())).collect();
            let id = file.add("New", "Words.", category.as_deref(), cite("2026-01-02:1"));
            let read = WisdomFile::parse(&file.print());
            prop_assert_eq!(read.entries().count(), before.len() + 1);
            prop_assert!(read.entries().filter(|it| it.is_managed()).all(|it| it.category == category));
            prop_assert!(file.remove_entry(&id));
            let after: Vec<_> = WisdomFile::parse(&file.print()).entries().map(|it| (it.title.clone(), it.text.clone())).collect();
            prop_assert_eq!(before, after);
        }
    }
}
