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
//! ```
//!
//! The sources, dates and hashes of the entries and the distilled months are in the record, which is joined to
//! this text (see [`super::joined`]) and described in `record`. In a file of an older form they are comments:
//!
//! ```text
//! <!-- memoird: id=w-3fa91c22; hash=a1b2c3d4; sources=2026-04-02:4,9; lines=3fa9,07be; first=2026-04-02; last=2026-05-03 -->
//! <!-- memoird: distilled 2026-03, 2026-04 -->
//! ```
//!
//! Such a file is read as it is, and printed in the new form.
//!
//! # Invariants
//!
//! - Parsing cuts the visible text into segments whose texts, joined, are that text. An edit changes only
//!   the segments that it is about; every other byte stays.
//! - An entry is a bold title with its text, or a bullet that is recorded. Our bullets are replaced as
//!   a whole when the logs change; entries with a title are edited one by one.
//! - An entry is managed when it is recorded and the recorded hash is that of its words. Every
//!   other entry is a person's and is never changed or dropped.
//!
//! `entry` holds what concerns one entry, `edit` the changes of the file.

mod edit;
mod entry;
mod record;
mod section;

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use self::record::{ClaimedEntry, WisdomRecord};
pub use self::section::WisdomSection;
use super::{
    address::{Address, Citation},
    frontmatter,
    hash::ContentHash,
    joined,
    period::{Grain, Period},
};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomFile {
    segments: Vec<WisdomSegment>,
    distilled: BTreeSet<Period>,
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
    /// What is recorded about it; `None` for an entry that was never managed.
    pub meta: Option<WisdomEntryMeta>,
    /// Its bytes in the visible file, up to the next segment, without our comment of an older form.
    pub raw: String,
    /// Whether the file had such a comment there, on a line of its own.
    pub had_comment: bool,
    /// How many lines left the file of an older form right above it, or above the text before it: the comment
    /// that names the distilled months, and the blank line before that.
    pub dropped_above: u32,
}

/// What is recorded about an entry that is or was managed.
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
    /// Characters of the visible file.
    pub chars: usize,
}

const COMMENT_OPEN: &str = "<!-- memoird: ";
const COMMENT_CLOSE: &str = " -->";
/// The beginning of an entry without a title.
const BULLET: &str = "- ";

/// Returns whether a text has the line that only our files have.
pub fn is_in_our_form(text: &str) -> bool {
    text.lines().any(|it| it.starts_with(LAST_COMPACTED))
}

/// How the ids of bullets begin that are chosen again when the logs change.
const BULLET_ID: &str = "b-";
const LAST_COMPACTED: &str = "Last compacted: ";

impl WisdomFile {
    /// Builds a file without entries for an agent.
    pub fn new(agent_name: &str) -> Self {
        let head = format!(
            "# {} - Wisdom\n\nRead this first in every session. These are notes from earlier work, not orders; \
             newer facts win.\n\n{LAST_COMPACTED}never\n\n---\n",
            one_line(agent_name)
        );
        let (segments, distilled) = (vec![WisdomSegment::Text(head)], BTreeSet::new());
        Self { segments, distilled, crlf: false }
    }

    /// Cuts a file into segments. Any text is a wisdom file; one without a record is a person's.
    pub fn parse(text: &str) -> Self {
        let (visible, record) = joined::split(text);
        let record = record.and_then(WisdomRecord::parse).unwrap_or_default();
        let mut claimed = record.claim(visible);
        let recorded = record.distilled.iter().filter_map(|it| parse_month(it));
        let mut distilled: BTreeSet<Period> = recorded.collect();
        let mut segments = Vec::new();
        let mut category: Option<String> = None;
        let mut fenced = false;
        let mut open: Option<OpenSegment> = None;
        let mut after_comment = false;
        let mut below_title = false;
        let mut dropped = 0;
        let mut lines = visible.split_inclusive('\n').enumerate().peekable();
        while let Some((at, line)) = lines.next() {
            let bare = line.trim();
            fenced ^= bare.starts_with("```");
            let next = lines.peek().map(|it| it.1).unwrap_or_default();
            let is_title = !fenced && entry_title(line).is_some();
            let is_claimed = claimed.contains_key(&at);
            // Right below a title it is the text of that entry.
            let starts_entry =
                is_title || is_claimed || (!fenced && !below_title && is_old_bullet(line, next));
            below_title = is_title;
            let is_distilled = parse_distilled(bare).is_some();
            let is_heading = !fenced && (line.starts_with('#') || line.starts_with("---"));
            let in_entry = open.as_ref().is_some_and(|it| it.is_entry);
            // Blank lines after its text belong to the entry, so that it is removed as a whole.
            let is_over = after_comment || open.as_ref().is_some_and(|it| it.ends_before(at));
            let ends_entry =
                in_entry && (is_heading || is_distilled || (is_over && !bare.is_empty()));
            if starts_entry || is_heading || is_distilled || ends_entry {
                push_segment(&mut segments, open.take(), category.as_deref());
            }
            if starts_entry || is_heading {
                after_comment = false;
            }
            if let Some(months) = parse_distilled(bare) {
                distilled.extend(months);
                dropped += 1 + u32::from(trim_last_blank_line(&mut segments));
                continue;
            }
            if let Some(name) = line.strip_prefix("## ").filter(|_| !fenced) {
                category = Some(name.trim().to_owned());
                segments.push(WisdomSegment::Category(name.trim().to_owned(), line.to_owned()));
                continue;
            }
            after_comment |= in_entry && bare.starts_with(COMMENT_OPEN);
            if let Some(it) = &mut open {
                it.raw.push_str(line);
            } else {
                let claim = claimed.remove(&at);
                let above = if starts_entry { std::mem::take(&mut dropped) } else { 0 };
                open = Some(OpenSegment::new(line, starts_entry, at, claim).below(above));
            }
        }
        push_segment(&mut segments, open, category.as_deref());
        Self { segments, distilled, crlf: frontmatter::is_crlf(visible) }
    }

    /// Prints the file: what is visible, and the record.
    pub fn print(&self) -> String {
        let visible = self.print_visible();
        let record = WisdomRecord::of(self, &visible).map(|it| it.print());
        joined::join(&visible, record.as_deref())
    }

    /// Prints the file, or returns its old text if that says the same: a file takes the new form when it is
    /// written, and is not written for that.
    pub fn print_over(&self, old: Option<&str>) -> String {
        let text = self.print();
        let old = old.filter(|it| **it == text || Self::parse(it).print() == text);
        old.map_or(text, str::to_owned)
    }

    /// Prints what is in the visible file.
    pub fn print_visible(&self) -> String {
        let text: String = self.segments.iter().map(WisdomSegment::raw).collect();
        if self.crlf { frontmatter::with_crlf(&text) } else { text }
    }

    /// Returns the entries in order.
    pub fn entries(&self) -> impl Iterator<Item = &WisdomEntry> {
        self.segments
            .iter()
            .filter_map(|it| if let WisdomSegment::Entry(entry) = it { Some(entry) } else { None })
    }

    /// Returns the parts in order; joined, they are the visible file.
    pub fn parts(&self) -> impl Iterator<Item = WisdomPart<'_>> {
        self.segments.iter().map(|it| match it {
            WisdomSegment::Text(raw) => WisdomPart::Text(raw),
            WisdomSegment::Category(_, raw) => WisdomPart::Heading(raw.trim_end()),
            WisdomSegment::Entry(entry) => WisdomPart::Entry(entry),
        })
    }

    /// Returns each entry with the number of its first line in the file as it was read, from 1.
    pub fn entries_with_lines(&self) -> Vec<(u32, &WisdomEntry)> {
        let mut line = 1;
        let mut found = Vec::new();
        for segment in &self.segments {
            if let WisdomSegment::Entry(entry) = segment {
                line += entry.dropped_above;
                found.push((line, entry));
                line += u32::from(entry.had_comment);
            }
            line += u32::try_from(segment.raw().matches('\n').count()).unwrap_or(u32::MAX);
        }
        found
    }

    /// Returns the months that were distilled.
    pub fn distilled(&self) -> &BTreeSet<Period> {
        &self.distilled
    }

    /// Returns the number of characters of the visible file.
    pub fn chars(&self) -> usize {
        visible_chars(&self.print_visible())
    }

    /// Returns the number of characters of the visible file without our bullets and the headings that only they
    /// need: the same before the bullets are written and after.
    pub fn chars_without_bullets(&self) -> usize {
        let mut rest = self.clone();
        rest.replace_bullets(&[]);
        rest.ensure_blank_line_before(rest.segments.len());
        rest.chars()
    }
}

impl WisdomSegment {
    fn raw(&self) -> &str {
        match self {
            Self::Text(raw) | Self::Category(_, raw) => raw,
            Self::Entry(entry) => &entry.raw,
        }
    }

    fn raw_mut(&mut self) -> &mut String {
        match self {
            Self::Text(raw) | Self::Category(_, raw) => raw,
            Self::Entry(entry) => &mut entry.raw,
        }
    }
}

/// Returns the inside of a line that is a comment of ours in a file of an older form: of an entry, or of the
/// distilled months.
pub fn own_comment(line: &str) -> Option<&str> {
    let is_ours = WisdomEntryMeta::parse(line).is_some() || parse_distilled(line).is_some();
    line.strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE).filter(|_| is_ours)
}

/// Returns the title if the line is one: bold from its first to its last character.
pub fn entry_title(line: &str) -> Option<&str> {
    let title = line.trim_end().strip_prefix("**")?.strip_suffix("**")?;
    (!title.trim().is_empty() && !title.contains("**")).then(|| title.trim())
}

/// Returns whether a line is an entry without a title in a file of an older form: a bullet, and below it our
/// comment.
fn is_old_bullet(line: &str, next: &str) -> bool {
    line.starts_with(BULLET) && WisdomEntryMeta::parse(next).is_some()
}

fn parse_distilled(line: &str) -> Option<Vec<Period>> {
    let months =
        line.strip_prefix(COMMENT_OPEN)?.strip_suffix(COMMENT_CLOSE)?.strip_prefix("distilled ")?;
    let (months, _) = months.split_once(';').unwrap_or((months, ""));
    months.split(',').map(parse_month).collect()
}

fn parse_month(text: &str) -> Option<Period> {
    text.trim().parse::<Period>().ok().filter(|it| it.grain() == Grain::Month)
}

/// Removes the blank line before a comment at the end; returns whether there was one.
fn trim_last_blank_line(segments: &mut [WisdomSegment]) -> bool {
    let Some(raw) = segments.last_mut().map(WisdomSegment::raw_mut) else { return false };
    let ends = ["\r\n\r\n", "\n\n"];
    let end = ends.into_iter().find(|it| raw.ends_with(it));
    raw.truncate(raw.len() - end.map_or(0, |it| it.len() / 2));
    end.is_some()
}

/// A segment whose end is not yet found.
struct OpenSegment {
    is_entry: bool,
    raw: String,
    /// What is recorded about the entry.
    meta: Option<WisdomEntryMeta>,
    /// The position behind its last line, where recorded.
    end: Option<usize>,
    /// How many lines of an older form were above it.
    dropped_above: u32,
}

impl OpenSegment {
    fn new(line: &str, is_entry: bool, at: usize, claim: Option<ClaimedEntry>) -> Self {
        let end = claim.as_ref().map(|it| at + it.lines);
        let meta = claim.map(|it| it.meta);
        Self { is_entry, raw: line.to_owned(), meta, end, dropped_above: 0 }
    }

    fn below(self, dropped_above: u32) -> Self {
        Self { dropped_above, ..self }
    }

    fn ends_before(&self, at: usize) -> bool {
        self.end.is_some_and(|it| it <= at)
    }
}

fn push_segment(
    segments: &mut Vec<WisdomSegment>,
    open: Option<OpenSegment>,
    category: Option<&str>,
) {
    match open {
        None => {}
        Some(OpenSegment { is_entry: false, raw, .. }) => segments.push(WisdomSegment::Text(raw)),
        Some(OpenSegment { is_entry: true, raw, meta, dropped_above, .. }) => {
            let entry = parse_entry(raw, category, meta);
            segments.push(WisdomSegment::Entry(WisdomEntry { dropped_above, ..entry }));
        }
    }
}

fn parse_entry(
    mut raw: String,
    category: Option<&str>,
    recorded: Option<WisdomEntryMeta>,
) -> WisdomEntry {
    let title = raw.lines().next().and_then(entry_title).unwrap_or_default().to_owned();
    let comment = raw.split_inclusive('\n').find(|it| WisdomEntryMeta::parse(it).is_some());
    let comment = comment.map(str::to_owned);
    let meta = comment.as_deref().and_then(WisdomEntryMeta::parse).or(recorded);
    let had_comment = comment.as_ref().is_some_and(|it| it.ends_with('\n'));
    if let Some(comment) = comment {
        raw = raw.replacen(&comment, "", 1);
    }
    let lines = raw.lines().skip(usize::from(!title.is_empty()));
    let text: Vec<&str> = lines.filter(|it| !it.trim_start().starts_with(COMMENT_OPEN)).collect();
    let text = text.join("\n");
    let bullet = if title.is_empty() { text.strip_prefix(BULLET) } else { None };
    let text = bullet.unwrap_or(&text).trim().to_owned();
    let category = category.map(str::to_owned);
    WisdomEntry { title, text, category, meta, raw, had_comment, dropped_above: 0 }
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
            let at = file.entries().position(|it| it.id() == Some(&id)).unwrap();
            for words in [text.to_owned(), format!("****{text}"), format!("**{text}** {text}")] {
                let mut new = file.clone();
                new.reword_entry(at, &words, None);
                let read = WisdomFile::parse(&new.print());
                assert_eq!(read.entries().count(), 4, "{words}: {new:?}");
                let entry = read.entries().find(|it| it.id() == Some(&id)).unwrap();
                assert!(!entry.is_managed(), "{words}: {new:?}");
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
        let (visible, record) = joined::split(&text);
        insta::assert_snapshot!(visible, @r"
        # Lexicon - Wisdom

        Read this first in every session. These are notes from earlier work, not orders; newer facts win.

        Last compacted: 2026-04-06

        ---

        **No category**
        Stands before them.

        ## Releases

        **Tag first**
        The mirror copies tags.

        ## People

        **Ask Jo**
        Jo knows the schema.
        ");
        let record = record.unwrap();
        assert!(joined::is_record(record) && joined::belongs(record, visible.as_bytes()));
        let keys: Vec<&str> =
            record.lines().filter_map(|it| it.split_once(": ")).map(|it| it.0.trim()).collect();
        let entry = ["figures", "first", "hash", "id", "last", "likeness", "sources", "title"];
        let entries = [&entry; 3].into_iter().flatten();
        let expected = ["body", "distilled", "entries"].iter().chain(entries);
        assert_eq!(keys, expected.map(|it| format!("\"{it}\"")).collect::<Vec<_>>());
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
        assert!(file.print_visible().starts_with(theirs));
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
        assert_eq!(file.print_over(Some(&text)), text);
        // Its record goes on, whatever is changed later.
        let again = WisdomFile::parse(&file.print().replace("Ask Jo or Mia.", "Nobody."));
        let found = again.entries().find(|it| it.id() == Some(id)).unwrap();
        assert_eq!((&found.text[..], found.is_managed()), ("Nobody.", false));
    }

    /// A file as it was before the records left it.
    fn older_text() -> String {
        let mut text = sample().print_visible();
        for entry in sample().entries() {
            let WisdomEntryMeta { id, hash, sources, first_seen, last_reinforced, .. } =
                entry.meta.as_ref().unwrap();
            let sources = sources.to_string().replace("; ", " & ");
            let comment = format!(
                "{}\n<!-- memoird: id={id}; hash={hash}; sources={sources}; first={first_seen}; last={last_reinforced} -->",
                entry.text
            );
            text = text.replacen(&entry.text, &comment, 1);
        }
        text + "\n<!-- memoird: distilled 2026-03; entries that you add or edit are yours -->\n"
    }

    #[test]
    fn a_file_of_an_older_form_is_read_and_takes_the_new_form_when_it_is_written_anyway() {
        let old = older_text();
        let mut file = WisdomFile::parse(&old);
        assert!(file.entries().all(WisdomEntry::is_managed));
        assert_eq!(
            file.entries().map(|it| &it.meta).collect::<Vec<_>>(),
            sample().entries().map(|it| &it.meta).collect::<Vec<_>>()
        );
        for (line, entry) in file.entries_with_lines() {
            let at = usize::try_from(line).unwrap() - 1;
            assert_eq!(old.lines().nth(at).unwrap(), format!("**{}**", entry.title));
        }
        file.add_distilled("2026-03".parse().unwrap());
        assert_eq!(file.print_over(Some(&old)), old, "no file is written for that alone");
        file.add_distilled("2026-04".parse().unwrap());
        let new = file.print_over(Some(&old));
        assert_eq!(joined::visible(&new), sample().print_visible());
        let read = WisdomFile::parse(&new);
        assert_eq!(read, file_without_comments(&file));
        assert_eq!(read.distilled().len(), 2);
    }

    #[test]
    fn entries_below_the_closing_comment_of_an_older_file_have_their_lines() {
        let old = "# A - Wisdom\n\n---\n\n**One**\nwords\n\n<!-- memoird: distilled 2026-03 -->\n\n\
                   **Mine**\nmore\n\n**Last**\nwords\n";
        let file = WisdomFile::parse(old);
        for (line, entry) in file.entries_with_lines() {
            let at = usize::try_from(line).unwrap() - 1;
            assert_eq!(old.lines().nth(at), Some(&format!("**{}**", entry.title)[..]));
        }
    }

    fn file_without_comments(file: &WisdomFile) -> WisdomFile {
        let mut file = file.clone();
        for segment in &mut file.segments {
            if let WisdomSegment::Entry(entry) = segment {
                entry.had_comment = false;
                entry.dropped_above = 0;
            }
        }
        file
    }

    #[test]
    fn without_its_record_everything_is_a_persons() {
        let mut file = sample();
        file.replace_bullets(&[(
            WisdomSection::People,
            "Mia likes tea.".to_owned(),
            cite("2026-04-07:1"),
        )]);
        let visible = file.print_visible();
        let read = WisdomFile::parse(&visible);
        assert!(read.entries().all(|it| it.meta.is_none() && !it.title.is_empty()));
        assert_eq!(read.print(), visible);
        let caps = WisdomLimits { entries: 0, chars: 0 };
        assert!(read.entries_over_limit(caps, &BTreeSet::new()).is_empty());
    }

    /// Otherwise a run that goes on after a kill chooses other bullets.
    #[test]
    fn the_bullets_do_not_change_the_room_that_is_left_for_them() {
        let bullet = |section| (section, "Deploys wait.".to_owned(), cite("2026-04-09:1"));
        let sections = [WisdomSection::People, WisdomSection::Lessons];
        for mut file in [WisdomFile::new("Lexicon"), sample(), WisdomFile::parse("# Mine")] {
            let before = file.chars_without_bullets();
            file.replace_bullets(&sections.map(bullet));
            assert_eq!(file.chars_without_bullets(), before);
            assert_eq!(WisdomFile::parse(&file.print()).chars_without_bullets(), before);
        }
    }

    #[test]
    fn bullets_are_found_in_a_file_that_a_person_changed() {
        let bullet = |text: &str, at: &str| (WisdomSection::Lessons, text.to_owned(), cite(at));
        let mut file = sample();
        file.replace_bullets(&[
            bullet("The importer needs 4 GB of memory on the mirror host.", "2026-04-07:1"),
            bullet("Rotate the signing key each spring.", "2026-04-08:1"),
            bullet("Deploys wait for the nightly backup.", "2026-04-09:1"),
        ]);
        let own = |text: &str| -> Vec<String> {
            let read = WisdomFile::parse(text);
            read.entries().filter(|it| it.is_own_bullet()).map(|it| it.text.clone()).collect()
        };
        let text = file.print();
        assert_eq!(own(&text).len(), 3);
        // Moved, added, deleted, continued.
        let moved = text.replace("- Rotate the signing key each spring.\n", "").replace(
            "## Lessons\n",
            "## Lessons\n- Mine.\n- Rotate the signing key each spring.\n",
        );
        assert_eq!(own(&moved).len(), 3);
        let read = WisdomFile::parse(&moved);
        assert!(read.entries().all(|it| it.text != "Mine."), "{moved}");
        assert_eq!(read.print_visible(), joined::visible(&moved));
        let gone = text.replace("- Rotate the signing key each spring.\n", "");
        assert_eq!(own(&gone).len(), 2);
        let more = text.replace("each spring.\n", "each spring.\n  And in autumn.\n");
        assert_eq!(own(&more).len(), 2);
        let other = text.replace("needs 4 GB of memory", "needs 8 GB of memory");
        assert!(WisdomFile::parse(&other).entries().all(|it| !it.text.contains("8 GB")));
        let changed = text.replace("of memory on", "of free memory on");
        let read = WisdomFile::parse(&changed);
        let entry = read.entries().find(|it| it.text.contains("free memory")).unwrap();
        assert!(!entry.is_managed());
        assert_eq!(entry.meta.as_ref().unwrap().sources, cite("2026-04-07:1"));
        let other = text.replace(
            "The importer needs 4 GB of memory on the mirror host.",
            "Ask before you delete anything.",
        );
        assert!(
            WisdomFile::parse(&other).entries().all(|it| !it.text.contains("Ask before")),
            "{other}"
        );
    }

    #[test]
    fn line_endings_stay() {
        let text = sample().print_visible().replace('\n', "\r\n");
        let joined = joined::join(&text, joined::split(&sample().print()).1);
        let mut file = WisdomFile::parse(&joined);
        assert_eq!(file.print_visible(), text);
        assert!(file.entries().all(WisdomEntry::is_managed));
        let id = file.add("New", "Words.", Some("People"), cite("2026-04-09:1"));
        file.add_distilled("2026-04".parse().unwrap());
        let printed = file.print_visible();
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
    fn reinforcing_changes_the_record_and_no_word() {
        let mut file = sample();
        let before = file.print();
        let id = file.entries().nth(1).unwrap().id().unwrap().to_owned();
        assert!(file.reinforce(&id, None, &cite("2026-05-03:7")));
        assert!(!file.reinforce(&id, None, &cite("2026-05-03:7")), "said before");
        let after = file.print();
        assert_eq!(joined::visible(&before), joined::visible(&after));
        for line in [
            r#""first": "2026-04-02","#,
            r#""last": "2026-05-03","#,
            r#""sources": "2026-04-02:4,9; 2026-05-03:7","#,
        ] {
            assert!(after.contains(line), "{after}");
        }
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
        assert!(text.contains(r#""lines": "07be,-","#), "{text}");
        assert!(text.contains(r#""sources": "2026-04-02:5,10","#), "{text}");
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
