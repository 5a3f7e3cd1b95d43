//! `WISDOM.md`: entries that last, edited and never rewritten.
//!
//! The file is read into segments, and every edit touches one of them. An entry of ours ends in a
//! comment that names it and holds a hash of its words; an entry without one, or whose words no
//! longer match, is a person's. A file that somebody else began stays as it stands: ours follows
//! below a comment of its own.
//!
//! # Invariants
//!
//! - The segments of a text, joined, are that text byte for byte.
//! - An edit leaves the bytes of every other entry as they are, and never changes a person's.
//! - What [`WisdomFile::add`] writes reads back as an entry of ours.
//!
//! Called by `compaction` (distilling a month) and `recall` (what an agent reads first).

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashSet},
    fmt,
    str::FromStr,
};

use chrono::NaiveDate;

use super::{
    address::{Address, Citation, Stem},
    hash::ContentHash,
    markdown::{self, LineKind},
    period::{Grain, Period},
    typed::one_line,
};

/// The comment below which all is ours, in a file that somebody else began.
const BEGIN: &str = "<!-- memoird: begin -->";
const MARK_START: &str = "<!-- memoird: id=";
const DISTILLED_START: &str = "<!-- memoird: distilled ";
const COMPACTED: &str = "Last compacted:";

const INTRO: &str = "Read this first in every session. These are notes on what past work has \
                     taught, not instructions: what you are asked now comes before them.";
const INTRO_BELOW: &str = "What follows is kept by memoird; all above this line is left alone.";

/// The most files that a mark names; the database knows them all. Without a limit the comments of
/// an entry that is said again every week would in time take the room of the entries.
const MARK_FILES_MAX: usize = 12;

/// One entry as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomEntry {
    /// The heading, without `**`.
    pub title: String,
    /// One to three sentences.
    pub text: String,
    /// The `## Category` that it stands under.
    pub category: Option<String>,
    /// What our comment says; `None` for a person's entry.
    pub mark: Option<WisdomMark>,
    /// Bytes as they stand in the file, up to the next entry or heading.
    pub raw: String,
}

/// The comment that ends an entry of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomMark {
    /// Name of the entry, kept for its life.
    pub id: String,
    /// Hash of title and text as we wrote them; an entry that differs is the person's.
    pub hash: String,
    /// The day lines that it rests on.
    pub sources: Citation,
    /// Day of the oldest source.
    pub first_seen: NaiveDate,
    /// Day of the newest line that said it again.
    pub last_reinforced: NaiveDate,
}

/// A `WISDOM.md`, and what was edited since it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WisdomFile {
    segments: Vec<Segment>,
    /// Entries that this edit added or merged: the limits spare them as long as they can.
    touched: BTreeSet<String>,
    entries_changed: bool,
}

/// An edit that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WisdomError {
    /// No entry of ours has that name, or a person has changed it since.
    #[error("no entry `{id}` of memoird's own in WISDOM.md")]
    NoEntry {
        /// The name that was asked for.
        id: String,
    },
    /// There is nothing to read.
    #[error("an entry of WISDOM.md needs a title and a text with words in them")]
    NoWords,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Entry(WisdomEntry),
    /// The heading's text, and its line.
    Category(String, String),
    /// The line below which all is ours.
    Begin(String),
    /// The months, and the line that lists them.
    Distilled(BTreeSet<Period>, String),
    Other(String),
}

impl WisdomFile {
    /// Makes the file of an agent that has none: a heading and no entry.
    pub fn new(agent_name: &str) -> Self {
        let text = format!(
            "# {} - Wisdom\n\n{INTRO}\n\n{COMPACTED} never\n\n---\n\n{}",
            one_line(agent_name),
            distilled_line(&BTreeSet::new())
        );
        Self::parse(&text)
    }

    /// Reads a file. Any text is one.
    pub fn parse(text: &str) -> Self {
        Self { segments: segments(text), touched: BTreeSet::new(), entries_changed: false }
    }

    /// Returns the whole file.
    pub fn print(&self) -> String {
        self.segments.iter().map(Segment::raw).collect()
    }

    /// Returns all entries, ours and the person's, in order.
    pub fn entries(&self) -> impl Iterator<Item = &WisdomEntry> {
        self.segments.iter().filter_map(|it| match it {
            Segment::Entry(entry) => Some(entry),
            _ => None,
        })
    }

    /// Returns the entry of ours with that name.
    pub fn entry(&self, id: &str) -> Option<&WisdomEntry> {
        self.entries().find(|it| it.our_id() == Some(id))
    }

    /// Returns the months that were distilled.
    pub fn distilled(&self) -> BTreeSet<Period> {
        let months = self.segments.iter().filter_map(|it| match it {
            Segment::Distilled(months, _) => Some(months),
            _ => None,
        });
        months.flatten().copied().collect()
    }

    /// Adds an entry under a category, which is made if it is not there; returns its name.
    ///
    /// Title and text become one line each, and marks in them that this file gives a meaning to
    /// lose it.
    ///
    /// # Errors
    ///
    /// Returns [`WisdomError::NoWords`] for a title or a text without a letter or digit.
    pub fn add(
        &mut self,
        title: &str,
        text: &str,
        category: Option<&str>,
        sources: &Citation,
    ) -> Result<String, WisdomError> {
        let words = Words::new(title, text)?;
        let taken: HashSet<&str> =
            self.entries().filter_map(|it| Some(it.mark.as_ref()?.id.as_str())).collect();
        let mut id = String::new();
        for n in 0..=taken.len() {
            id = format!("w-{}", &ContentHash::of(format!("{n} {words}")).hex8()[..6]);
            if !taken.contains(id.as_str()) {
                break;
            }
        }
        let sources = fewer_files(sources);
        let mark = WisdomMark {
            id: id.clone(),
            hash: words.hash(),
            first_seen: sources.oldest_date(),
            last_reinforced: sources.newest_date(),
            sources,
        };
        self.insert(&format!("{words}{mark}\n\n"), category);
        self.touched.insert(id.clone());
        Ok(id)
    }

    /// Notes that newer lines say an entry again; with `words`, replaces its title and text.
    ///
    /// Without `words` only the comment changes.
    ///
    /// # Errors
    ///
    /// Returns an error for a name that is not an entry of ours, and for words without any.
    pub fn merge(
        &mut self,
        id: &str,
        words: Option<(&str, &str)>,
        sources: &Citation,
    ) -> Result<(), WisdomError> {
        let words = words.map(|(title, text)| Words::new(title, text)).transpose()?;
        let at = self.position(id)?;
        let Segment::Entry(entry) = &mut self.segments[at] else {
            return Err(WisdomError::NoEntry { id: id.to_owned() });
        };
        let Some(mark) = entry.mark.as_mut() else {
            return Err(WisdomError::NoEntry { id: id.to_owned() });
        };
        mark.first_seen = mark.first_seen.min(sources.oldest_date());
        mark.last_reinforced = mark.last_reinforced.max(sources.newest_date());
        mark.sources.merge(sources);
        mark.sources = fewer_files(&mark.sources);
        let (head, tail) = around_mark(&entry.raw);
        if let Some(words) = words {
            mark.hash = words.hash();
            entry.raw = format!("{words}{mark}{tail}");
            (entry.title, entry.text) = (words.title, words.text);
        } else {
            entry.raw = format!("{head}{mark}{tail}");
        }
        self.touched.insert(id.to_owned());
        self.entries_changed = true;
        Ok(())
    }

    /// Takes an entry of ours out and returns it. A category that this empties goes with it.
    ///
    /// # Errors
    ///
    /// Returns an error for a name that is not an entry of ours.
    pub fn drop_entry(&mut self, id: &str) -> Result<WisdomEntry, WisdomError> {
        let at = self.position(id)?;
        let Segment::Entry(entry) = self.segments.remove(at) else {
            return Err(WisdomError::NoEntry { id: id.to_owned() });
        };
        let heading = self.segments[..at].iter().rposition(|it| !it.is_blank());
        let empty = self.segments[at..]
            .iter()
            .find(|it| !it.is_blank())
            .is_none_or(|it| matches!(it, Segment::Category(..) | Segment::Distilled(..)));
        if let Some(heading) = heading.filter(|_| empty)
            && matches!(self.segments[heading], Segment::Category(..))
        {
            self.segments.drain(heading..at);
        }
        self.touched.remove(id);
        self.entries_changed = true;
        Ok(entry)
    }

    /// Puts an entry that was dropped back, as it stood, under its category.
    pub fn restore(&mut self, entry: &WisdomEntry) {
        self.insert(&entry.raw, entry.category.as_deref());
    }

    /// Names the entries that must go for the file to keep its limits (0 for none): of ours the
    /// one reinforced longest ago first, then the one that fewer days speak for. Those that this
    /// edit touched go last; a person's never.
    ///
    /// To be asked after all other edits, [`WisdomFile::mark_distilled`] and
    /// [`WisdomFile::set_last_compacted`] too: the limit in characters is one for the whole file.
    pub fn over_limit(&self, max_entries: usize, max_chars: usize) -> Vec<String> {
        let mut entries = self.entries().count();
        let mut chars = self.print().chars().count();
        let mut ours: Vec<(usize, &WisdomEntry, &WisdomMark)> = self
            .entries()
            .filter(|it| it.is_ours())
            .enumerate()
            .filter_map(|(i, it)| Some((i, it, it.mark.as_ref()?)))
            .collect();
        ours.sort_by_key(|(i, _, mark)| {
            let days: BTreeSet<NaiveDate> = mark.sources.files().map(|it| it.0.date()).collect();
            (self.touched.contains(&mark.id), mark.last_reinforced, days.len(), Reverse(*i))
        });
        let mut goes = Vec::new();
        for (_, entry, mark) in ours {
            let fits = (max_entries == 0 || entries <= max_entries)
                && (max_chars == 0 || chars <= max_chars);
            if fits {
                break;
            }
            entries -= 1;
            chars -= entry.raw.chars().count();
            goes.push(mark.id.clone());
        }
        goes
    }

    /// Notes that a month was distilled.
    pub fn mark_distilled(&mut self, month: Period) {
        self.adopt();
        let mut months = self.distilled();
        if !months.insert(month) {
            return;
        }
        let line = distilled_line(&months);
        let is_list = |it: &Segment| matches!(it, Segment::Distilled(..));
        let Some(at) = self.segments.iter().rposition(is_list) else {
            self.part_from_text(self.segments.len());
            self.segments.push(Segment::Distilled(months, line));
            return;
        };
        self.segments[at] = Segment::Distilled(months, line);
        // A second list, as a merge of two copies leaves it, says nothing new.
        let mut i = 0;
        self.segments.retain(|it| {
            i += 1;
            !is_list(it) || i == at + 1
        });
    }

    /// Sets the date of the last change, if an entry was changed since the file was read.
    ///
    /// A line that a person took out is not put back.
    pub fn set_last_compacted(&mut self, date: NaiveDate) {
        if !self.entries_changed {
            return;
        }
        let start = self.start();
        for segment in self.segments[start..].iter_mut().rev() {
            let Segment::Other(raw) = segment else { continue };
            let mut lines: Vec<String> = raw.split_inclusive('\n').map(str::to_owned).collect();
            if let Some(line) = lines.iter_mut().rev().find(|it| it.starts_with(COMPACTED)) {
                let end = line[line.trim_end().len()..].to_owned();
                *line = format!("{COMPACTED} {date}{end}");
                *raw = lines.concat();
                return;
            }
        }
    }

    fn position(&self, id: &str) -> Result<usize, WisdomError> {
        let ours = |it: &Segment| matches!(it, Segment::Entry(it) if it.our_id() == Some(id));
        let at = self.segments.iter().position(ours);
        at.ok_or_else(|| WisdomError::NoEntry { id: id.to_owned() })
    }

    /// Puts an entry after the last one of its category, or of those without a category.
    fn insert(&mut self, raw: &str, category: Option<&str>) {
        self.adopt();
        let category = category.map(heading).filter(|it| !it.is_empty());
        let from = self.start();
        let from = match &category {
            None => from,
            Some(name) => {
                let found = self.segments[from..].iter().position(
                    |it| matches!(it, Segment::Category(it, _) if it.eq_ignore_ascii_case(name)),
                );
                match found {
                    Some(at) => from + at + 1,
                    None => self.add_category(name),
                }
            }
        };
        let ends = |it: &Segment| matches!(it, Segment::Category(..) | Segment::Distilled(..));
        let to = self.segments[from..].iter().position(ends);
        let to = to.map_or(self.segments.len(), |it| from + it);
        let last = self.segments[from..to].iter().rposition(|it| matches!(it, Segment::Entry(_)));
        let at = last.map_or(to, |it| from + it + 1);
        let at = self.part_from_text(at);
        let mut entries = segments(raw);
        for entry in &mut entries {
            if let Segment::Entry(entry) = entry {
                entry.category.clone_from(&category);
            }
        }
        self.segments.splice(at..at, entries);
        self.entries_changed = true;
    }

    /// Adds a heading before the list of months, or at the end; returns where its entries begin.
    fn add_category(&mut self, name: &str) -> usize {
        let from = self.start();
        let list = self.segments[from..].iter().position(|it| matches!(it, Segment::Distilled(..)));
        let at = list.map_or(self.segments.len(), |it| from + it);
        let at = self.part_from_text(at);
        let heading = Segment::Category(name.to_owned(), format!("## {name}\n"));
        self.segments.splice(at..at, [heading, Segment::Other("\n".to_owned())]);
        at + 2
    }

    /// Makes sure that a blank line stands before the segment at `at`; returns where that now is.
    fn part_from_text(&mut self, at: usize) -> usize {
        let before: String = self.segments[..at].iter().map(Segment::raw).collect();
        let line = before.lines().next_back().unwrap_or_default();
        let gap = match before.chars().next_back() {
            None => return at,
            Some('\n') if line.trim().is_empty() => return at,
            Some('\n') => "\n",
            Some(_) => "\n\n",
        };
        self.segments.insert(at, Segment::Other(gap.to_owned()));
        at + 1
    }

    /// Opens a part of ours at the end of a file that somebody else began.
    fn adopt(&mut self) {
        let ours = self.segments.iter().any(|it| match it {
            Segment::Begin(_) | Segment::Distilled(..) => true,
            Segment::Entry(entry) => entry.mark.is_some(),
            Segment::Category(..) | Segment::Other(_) => false,
        });
        if !ours {
            self.part_from_text(self.segments.len());
            let list = distilled_line(&BTreeSet::new());
            let part = format!("---\n\n{BEGIN}\n\n{INTRO_BELOW}\n\n{COMPACTED} never\n\n{list}");
            self.segments.extend(segments(&part));
        }
    }

    /// Returns where our part begins: after the comment that says so, else at the top.
    fn start(&self) -> usize {
        let begin = self.segments.iter().position(|it| matches!(it, Segment::Begin(_)));
        begin.map_or(0, |it| it + 1)
    }
}

impl WisdomEntry {
    /// Returns whether the entry stands as we wrote it.
    pub fn is_ours(&self) -> bool {
        self.our_id().is_some()
    }

    fn our_id(&self) -> Option<&str> {
        let mark = self.mark.as_ref()?;
        (mark.hash == words_hash(&self.title, &self.text)).then_some(&mark.id)
    }
}

impl Segment {
    fn raw(&self) -> &str {
        match self {
            Self::Entry(entry) => &entry.raw,
            Self::Category(_, raw)
            | Self::Begin(raw)
            | Self::Distilled(_, raw)
            | Self::Other(raw) => raw,
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, Self::Other(raw) if raw.trim().is_empty())
    }
}

impl fmt::Display for WisdomMark {
    /// Prints the comment, without line end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{MARK_START}{}; hash={}; sources={}; first={}; last={} -->",
            self.id, self.hash, self.sources, self.first_seen, self.last_reinforced
        )
    }
}

/// A comment that is no mark of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a mark like `<!-- memoird: id=…; hash=…; sources=…; first=…; last=… -->`")]
pub struct ParseMarkError;

impl FromStr for WisdomMark {
    type Err = ParseMarkError;

    fn from_str(comment: &str) -> Result<Self, Self::Err> {
        let inner = comment.trim().strip_prefix(MARK_START).and_then(|it| it.strip_suffix("-->"));
        let inner = inner.ok_or(ParseMarkError)?.trim();
        let (id, rest) = inner.split_once("; hash=").ok_or(ParseMarkError)?;
        let (hash, rest) = rest.split_once("; sources=").ok_or(ParseMarkError)?;
        let (sources, rest) = rest.split_once("; first=").ok_or(ParseMarkError)?;
        let (first, last) = rest.split_once("; last=").ok_or(ParseMarkError)?;
        let day = |text: &str| text.parse::<NaiveDate>().map_err(|_| ParseMarkError);
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        if id.is_empty() || !id.bytes().all(word) {
            return Err(ParseMarkError);
        }
        Ok(Self {
            id: id.to_owned(),
            hash: hash.to_owned(),
            sources: sources.parse().map_err(|_| ParseMarkError)?,
            first_seen: day(first)?,
            last_reinforced: day(last)?,
        })
    }
}

/// Title and text that an entry can hold.
struct Words {
    title: String,
    text: String,
}

impl Words {
    fn new(title: &str, text: &str) -> Result<Self, WisdomError> {
        let mut title = inert(title);
        while title.contains("**") {
            title = title.replace("**", "*");
        }
        let mut text = inert(text);
        let kind = markdown::kinds([text.as_str()])[0];
        let own_line = matches!(kind, LineKind::Heading { .. } | LineKind::Rule | LineKind::Fence);
        if own_line || entry_title(&text).is_some() {
            text.insert(0, '\\');
        }
        let has_words = |it: &str| it.contains(char::is_alphanumeric);
        if has_words(&title) && has_words(&text) {
            Ok(Self { title, text })
        } else {
            Err(WisdomError::NoWords)
        }
    }

    fn hash(&self) -> String {
        words_hash(&self.title, &self.text)
    }
}

impl fmt::Display for Words {
    /// Prints the lines before the mark.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "**{}**\n{}", self.title, self.text)
    }
}

fn words_hash(title: &str, text: &str) -> String {
    ContentHash::of(format!("{title}\n{text}")).hex8()
}

/// Returns a text on one line in which no comment begins or ends.
fn inert(text: &str) -> String {
    one_line(text).replace("<!--", "<\\!--").replace("-->", "--\\>")
}

/// Returns a category's name as its heading can hold it.
fn heading(category: &str) -> String {
    inert(category).trim_matches(['#', ' ']).to_owned()
}

/// Returns the title when the line is the first of an entry: `**Title**`.
fn entry_title(line: &str) -> Option<&str> {
    let title = line.trim_end().strip_prefix("**")?.strip_suffix("**")?;
    (!title.trim().is_empty() && !title.contains("**")).then_some(title)
}

/// Returns title and words when the line is a whole entry, as people also write them:
/// `**Title** — words`.
fn inline_entry(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.strip_prefix("**")?.split_once("**")?;
    let words = rest.trim_start().strip_prefix(['—', '–', '-'])?;
    (!title.trim().is_empty() && words.starts_with([' ', '\t'])).then_some((title, words.trim()))
}

/// Keeps the oldest file that is cited and the newest ones.
fn fewer_files(sources: &Citation) -> Citation {
    let mut stems: Vec<&Stem> = sources.files().map(|it| it.0).collect();
    stems.sort_by_key(|it| it.date());
    let skipped = stems.len().saturating_sub(MARK_FILES_MAX);
    let kept: HashSet<&Stem> =
        stems.iter().take(1).chain(stems.iter().skip(1 + skipped)).copied().collect();
    let addresses: Vec<Address> =
        sources.addresses().filter(|it| kept.contains(&it.stem)).collect();
    Citation::from_addresses(&addresses).expect("the oldest file is kept")
}

/// Returns what stands before and after the mark of an entry.
fn around_mark(raw: &str) -> (&str, &str) {
    let mut at = 0;
    let mut found = (raw, "");
    for line in raw.split_inclusive('\n') {
        if line.trim().parse::<WisdomMark>().is_ok() {
            let lead = line.len() - line.trim_start().len();
            found = (&raw[..at + lead], &raw[at + line.trim_end().len()..]);
        }
        at += line.len();
    }
    found
}

/// Spells the months, runs of three and more as `2026-01..2026-06`.
fn distilled_line(months: &BTreeSet<Period>) -> String {
    let mut runs = Vec::<(Period, Period)>::new();
    for &month in months {
        match runs.last_mut() {
            Some(run) if run.1.end() == month.first() => run.1 = month,
            _ => runs.push((month, month)),
        }
    }
    let run = |&(from, to): &(Period, Period)| match () {
        () if from == to => from.to_string(),
        () if from.end() == to.first() => format!("{from}, {to}"),
        () => format!("{from}..{to}"),
    };
    let list = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    let list = if list.is_empty() { "none" } else { &list };
    format!("{DISTILLED_START}{list} -->\n")
}

fn read_distilled(line: &str) -> Option<BTreeSet<Period>> {
    /// No list of ours spans more; a typo in a year must not cost memory.
    const MONTHS_MAX: usize = 12 * 200;
    let list = line.trim().strip_prefix(DISTILLED_START)?.strip_suffix("-->")?;
    let month =
        |text: &str| text.trim().parse::<Period>().ok().filter(|it| it.grain() == Grain::Month);
    let mut months = BTreeSet::new();
    for part in list.split(',') {
        let (from, to) = part.split_once("..").unwrap_or((part, part));
        if let (Some(from), Some(to)) = (month(from), month(to)) {
            let next = |it: &Period| Some(Period::containing(Grain::Month, it.end()));
            let run = std::iter::successors(Some(from), next).take_while(|it| *it <= to);
            months.extend(run.take(MONTHS_MAX));
        }
    }
    Some(months)
}

/// Cuts a text into segments.
fn segments(text: &str) -> Vec<Segment> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == BEGIN {
            // A code fence that somebody left open above must not hide what is ours.
            let mut all = part(&text[..at]);
            all.push(Segment::Begin(line.to_owned()));
            all.extend(part(&text[at + line.len()..]));
            return all;
        }
        at += line.len();
    }
    part(text)
}

/// Cuts a text without the comment that begins our part into segments.
fn part(text: &str) -> Vec<Segment> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let kinds = markdown::kinds(lines.iter().map(|it| it.trim_end_matches(['\n', '\r'])));
    let mut segments = Vec::<Segment>::new();
    let mut category = None::<String>;
    let mut last_kind = LineKind::Blank;
    for (line, kind) in lines.into_iter().zip(kinds) {
        let words = line.trim();
        let begins = last_kind != LineKind::Text && inline_entry(line).is_some();
        last_kind = kind;
        match kind {
            LineKind::Text if begins || entry_title(line).is_some() => {
                segments.push(Segment::Entry(WisdomEntry {
                    title: String::new(),
                    text: String::new(),
                    category: category.clone(),
                    mark: None,
                    raw: line.to_owned(),
                }));
                continue;
            }
            LineKind::Heading { level: 2, .. } => {
                let name = words.trim_matches(['#', ' ', '\t']).to_owned();
                category = Some(name.clone());
                segments.push(Segment::Category(name, line.to_owned()));
                continue;
            }
            LineKind::Comment => {
                if let Some(months) = read_distilled(words) {
                    segments.push(Segment::Distilled(months, line.to_owned()));
                    continue;
                }
            }
            LineKind::Heading { level, .. } => {
                category = category.filter(|_| level > 2);
                segments.push(Segment::Other(line.to_owned()));
                continue;
            }
            LineKind::Rule => {
                segments.push(Segment::Other(line.to_owned()));
                continue;
            }
            _ => {}
        }
        match segments.last_mut() {
            Some(Segment::Entry(WisdomEntry { raw, .. }) | Segment::Other(raw)) => {
                raw.push_str(line);
            }
            _ => segments.push(Segment::Other(line.to_owned())),
        }
    }
    for segment in &mut segments {
        if let Segment::Entry(entry) = segment {
            read_entry(entry);
        }
    }
    segments
}

/// Fills title, text, and mark in from the bytes of an entry.
fn read_entry(entry: &mut WisdomEntry) {
    let mut lines = entry.raw.lines();
    let first = lines.next().unwrap_or_default();
    let one = entry_title(first).map(|title| (title, ""));
    let (title, words) = one.or_else(|| inline_entry(first)).unwrap_or_default();
    let mut text = vec![words];
    let mut mark = None;
    for line in lines {
        match line.parse::<WisdomMark>() {
            Ok(it) => mark = Some(it),
            Err(ParseMarkError) => text.push(line.trim_end()),
        }
    }
    text.join("\n").trim().clone_into(&mut entry.text);
    (entry.title, entry.mark) = (title.to_owned(), mark);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cited(text: &str) -> Citation {
        text.parse().unwrap()
    }

    fn month(name: &str) -> Period {
        name.parse().unwrap()
    }

    #[test]
    fn a_new_file_has_the_agreed_layout() {
        let mut file = WisdomFile::new("Lexicon\n");
        let id = file
            .add(
                "Ship  small",
                "Small changes\nare reviewed.",
                Some("Work"),
                &cited("2026-04-02:4,9"),
            )
            .unwrap();
        file.add("No category", "First.", None, &cited("2026-04-03:1")).unwrap();
        file.mark_distilled(month("2026-04"));
        file.set_last_compacted("2026-05-03".parse().unwrap());
        let text = file.print();
        let marks: Vec<String> =
            file.entries().map(|it| it.mark.as_ref().unwrap().to_string()).collect();
        assert_eq!(
            text,
            format!(
                "# Lexicon - Wisdom\n\n{INTRO}\n\nLast compacted: 2026-05-03\n\n---\n\n\
                 **No category**\nFirst.\n{}\n\n\
                 ## Work\n\n**Ship small**\nSmall changes are reviewed.\n{}\n\n\
                 <!-- memoird: distilled 2026-04 -->\n",
                marks[0], marks[1]
            )
        );
        let entry = file.entry(&id).unwrap();
        assert_eq!(
            marks[1],
            format!(
                "<!-- memoird: id={id}; hash={}; sources=2026-04-02:4,9; first=2026-04-02; last=2026-04-02 -->",
                words_hash(&entry.title, &entry.text)
            )
        );
        let read = WisdomFile::parse(&text);
        assert_eq!(read.entries().collect::<Vec<_>>(), file.entries().collect::<Vec<_>>());
        assert!(read.entries().all(WisdomEntry::is_ours));
        assert_eq!(
            read.entries().map(|it| it.category.as_deref()).collect::<Vec<_>>(),
            [None, Some("Work")]
        );
    }

    const THEIRS: &str = "# Me — Wisdom\n\nLast compacted: 2020-01-01\n\n## Work\n\n**Mine**\nStays.\n## Other\ntext";

    #[test]
    fn a_file_of_somebody_elses_stays_above_ours() {
        let mut file = WisdomFile::parse(THEIRS);
        let id = file.add("Ours", "Words.", Some("work"), &cited("2026-04-02:4")).unwrap();
        file.set_last_compacted("2026-05-03".parse().unwrap());
        let text = file.print();
        let ours = text.strip_prefix(THEIRS).unwrap();
        assert!(ours.contains("Last compacted: 2026-05-03\n\n## work\n\n**Ours**\n"), "{ours}");
        let mut again = WisdomFile::parse(&text);
        again.add("More", "Words.", Some("Work"), &cited("2026-04-02:4")).unwrap();
        assert_eq!(again.print().matches("## work").count(), 1);
        assert_eq!(again.print().matches(BEGIN).count(), 1);
        again.drop_entry(&id).unwrap();
        assert!(again.print().starts_with(THEIRS));
        let mut open = WisdomFile::parse("```\nnever closed");
        open.add("Ours", "Words.", None, &cited("2026-04-02:4")).unwrap();
        assert_eq!(WisdomFile::parse(&open.print()).entries().count(), 1);
        assert_eq!(again.over_limit(1, 10).len(), 1, "the person's entry is not named");
    }

    #[test]
    fn an_edited_entry_is_the_persons_and_cannot_be_dropped() {
        let mut file = WisdomFile::new("A");
        let id = file.add("Title", "Words.", None, &cited("2026-04-02:4")).unwrap();
        let edited = file.print().replace("Words.", "My words.");
        let mut edited = WisdomFile::parse(&edited);
        assert!(edited.entry(&id).is_none());
        assert_eq!(edited.drop_entry(&id), Err(WisdomError::NoEntry { id: id.clone() }));
        assert!(edited.merge(&id, None, &cited("2026-04-05:4")).is_err());
        assert_eq!(edited.over_limit(0, 1), Vec::<String>::new());
        let crlf = WisdomFile::parse(&file.print().replace('\n', "\r\n"));
        assert!(crlf.entry(&id).is_some());
    }

    #[test]
    fn a_merge_touches_one_entry_and_its_words_only_when_told() {
        let mut file = WisdomFile::new("A");
        let one = file.add("One", "First.", None, &cited("2026-04-02:4")).unwrap();
        let two = file.add("Two", "Second.", None, &cited("2026-04-02:5")).unwrap();
        let mut file = WisdomFile::parse(&file.print());
        let before = file.entry(&two).unwrap().clone();
        file.merge(&one, None, &cited("2026-05-07:1; 2026-03-01:2")).unwrap();
        let entry = file.entry(&one).unwrap();
        let mark = entry.mark.as_ref().unwrap();
        assert!(entry.raw.starts_with("**One**\nFirst.\n<!--"));
        assert_eq!(mark.sources.to_string(), "2026-03-01:2; 2026-04-02:4; 2026-05-07:1");
        assert_eq!(
            (mark.first_seen.to_string(), mark.last_reinforced.to_string()),
            ("2026-03-01".into(), "2026-05-07".into())
        );
        file.merge(&one, Some(("Uno", "Richer.")), &cited("2026-05-08:1")).unwrap();
        let read = WisdomFile::parse(&file.print());
        assert_eq!(
            read.entry(&one).map(|it| (it.title.as_str(), it.text.as_str())),
            Some(("Uno", "Richer."))
        );
        assert_eq!(read.entry(&two), Some(&before));
        assert_eq!(
            file.merge(&one, Some(("", "x")), &cited("2026-05-08:1")),
            Err(WisdomError::NoWords)
        );
    }

    #[test]
    fn a_mark_names_a_bounded_number_of_files() {
        let mut file = WisdomFile::new("A");
        let id = file.add("One", "First.", None, &cited("2020-01-01:4")).unwrap();
        for day in 1..=28 {
            file.merge(&id, None, &cited(&format!("2026-04-{day:02}:1"))).unwrap();
        }
        let mark = WisdomFile::parse(&file.print()).entry(&id).unwrap().mark.clone().unwrap();
        let stems: Vec<&str> = mark.sources.files().map(|it| it.0.as_str()).collect();
        assert_eq!((stems.len(), stems[0], stems[1]), (MARK_FILES_MAX, "2020-01-01", "2026-04-18"));
    }

    #[test]
    fn the_least_durable_go_first_and_the_touched_last() {
        let mut file = WisdomFile::new("A");
        let old = file.add("Old", "Words.", None, &cited("2026-01-02:4")).unwrap();
        let thin = file.add("Thin", "Words.", None, &cited("2026-03-02:4,9")).unwrap();
        let thick =
            file.add("Thick", "Words.", None, &cited("2026-03-01:4; 2026-03-02:9")).unwrap();
        let all = file.print().chars().count();
        let mut file = WisdomFile::parse(&file.print());
        assert_eq!(file.over_limit(3, all), Vec::<String>::new());
        assert_eq!(file.over_limit(2, 0), [old.as_str()]);
        assert_eq!(file.over_limit(20, all - 1), [old.as_str()]);
        assert_eq!(file.over_limit(0, 1), [old.clone(), thin.clone(), thick.clone()]);
        file.merge(&old, None, &cited("2026-01-03:1")).unwrap();
        assert_eq!(file.over_limit(1, 0), [thin, thick]);
    }

    #[test]
    fn the_date_moves_only_with_an_entry() {
        let text = WisdomFile::new("A").print();
        let mut file = WisdomFile::parse(&text);
        file.mark_distilled(month("2026-04"));
        file.set_last_compacted("2026-05-03".parse().unwrap());
        assert!(file.print().contains("Last compacted: never\n"));
    }

    #[track_caller]
    fn check_months(months: &[&str], line: &str) {
        let mut file = WisdomFile::new("A");
        for name in months {
            file.mark_distilled(month(name));
        }
        assert!(
            file.print().ends_with(&format!("<!-- memoird: distilled {line} -->\n")),
            "{}",
            file.print()
        );
        let read = WisdomFile::parse(&file.print()).distilled();
        assert_eq!(read, months.iter().map(|it| month(it)).collect());
    }

    #[test]
    fn distilled_months_are_listed_once_and_briefly() {
        check_months(&[], "none");
        check_months(&["2026-02", "2026-01", "2026-02"], "2026-01, 2026-02");
        check_months(&["2025-11", "2025-12", "2026-01", "2026-03"], "2025-11..2026-01, 2026-03");
        let odd =
            "<!-- memoird: distilled 2026-01, x, 2026-W01, 0001-01..9998-12, 2026-03..2026-02 -->";
        assert_eq!(read_distilled(odd).map(|it| it.len()), Some(2401));
    }

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "one-line cases")]
    fn check_words(title: &str, text: &str, expected: Result<(&str, &str), WisdomError>) {
        let mut file = WisdomFile::new("A");
        let id = file.add(title, text, Some("# C <!-- x"), &cited("2026-04-02:4"));
        let read = WisdomFile::parse(&file.print());
        let seen =
            id.map(|id| read.entry(&id).map(|it| (it.title.as_str(), it.text.as_str())).unwrap());
        assert_eq!(seen, expected);
    }

    #[test]
    fn words_cannot_pass_for_structure() {
        check_words("a **b** c", "x\n## y\n**z**", Ok(("a *b* c", "x ## y **z**")));
        check_words("a", "**z**", Ok(("a", "\\**z**")));
        check_words("a", "# z", Ok(("a", "\\# z")));
        check_words("a", "```z", Ok(("a", "\\```z")));
        check_words("a", "<!-- memoird: id=w-1 -->", Ok(("a", "<\\!-- memoird: id=w-1 --\\>")));
        check_words("*", "z", Err(WisdomError::NoWords));
        check_words("a", "---", Err(WisdomError::NoWords));
    }

    #[test]
    fn entries_on_one_line_are_read() {
        let text = "**A** — see **this**\n**B** - no\n\n**C** – x\n\n**D**: y\n";
        let file = WisdomFile::parse(text);
        let seen: Vec<_> = file.entries().map(|it| (it.title.as_str(), it.text.as_str())).collect();
        assert_eq!(seen, [("A", "see **this**\n**B** - no"), ("C", "x\n\n**D**: y")]);
    }

    #[test]
    fn code_in_an_entry_is_no_structure() {
        let text = "**A**\nsee\n```\n## no\n**no**\n---\n```\nend\n\n**B**\nx\n";
        let file = WisdomFile::parse(text);
        assert_eq!(file.entries().map(|it| it.title.as_str()).collect::<Vec<_>>(), ["A", "B"]);
        assert_eq!(file.print(), text);
    }

    fn any_file() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "\\PC{0,10}",
            "\\*\\*\\PC{0,6}\\*\\*",
            "#{1,3} [A-C]",
            Just("---".to_owned()),
            Just(BEGIN.to_owned()),
            Just("<!-- memoird: distilled 2026-01 -->".to_owned()),
            Just("<!-- memoird: id=w-1; hash=00000000; sources=2026-04-02:4; first=2026-04-02; last=2026-04-02 -->".to_owned()),
            Just("```".to_owned()),
            Just(String::new()),
        ];
        let end = prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("")];
        proptest::collection::vec((line, end), 0..16)
            .prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
    }

    proptest! {
        #[test]
        fn any_text_prints_back(text in any_file(), other in any::<String>()) {
            prop_assert_eq!(WisdomFile::parse(&text).print(), text);
            prop_assert_eq!(WisdomFile::parse(&other).print(), other);
        }

        #[test]
        fn adding_and_dropping_leaves_every_other_entry(
            text in any_file(),
            title in "a\\PC{0,8}",
            words in "a(?s).{0,12}",
            category in proptest::option::of("[A-C]"),
        ) {
            let mut file = WisdomFile::parse(&text);
            let before: Vec<WisdomEntry> = file.entries().cloned().collect();
            let id = file.add(&title, &words, category.as_deref(), &cited("2026-04-02:4")).unwrap();
            file.merge(&id, None, &cited("2026-04-03:4")).unwrap();
            let dropped = file.drop_entry(&id).unwrap();
            prop_assert_eq!(&file.entries().cloned().collect::<Vec<_>>(), &before);
            file.restore(&dropped);
            prop_assert!(file.entry(&id).is_some());
            prop_assert!(before.iter().all(|it| file.print().contains(&it.raw)));
        }

        #[test]
        fn what_is_added_to_a_closed_file_reads_back(title in any::<String>(), words in any::<String>(), category in any::<Option<String>>()) {
            let mut file = WisdomFile::new("A");
            if let Ok(id) = file.add(&title, &words, category.as_deref(), &cited("2026-04-02:4")) {
                let read = WisdomFile::parse(&file.print());
                prop_assert_eq!(read.entry(&id), file.entry(&id), "{}", file.print());
            }
        }
    }
}
