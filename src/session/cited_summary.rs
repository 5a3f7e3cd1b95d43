//! A summary of a session whose lines cite entries of the transcript.
//!
//! The summary is written line by line. In a record, citations of entries become addresses of lines of
//! the record itself (`CMEM-20260402-101500:42`), and the record contains the cited entries, because
//! transcripts vanish after weeks. A message that the summary contains word for word is cited there and
//! not repeated.
//!
//! Tool results are quoted, so that the sanitized view treats them as external text.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::{
    digest::{EntryIndex, SessionDigest, Utterance},
    transcript::{EntryContent, Transcript, truncate_message},
};
use crate::memory::address::{Citation, Stem};

/// The longest text of the agent that is embedded, in characters; the user's messages are complete.
const WORDS_CHARS_MAX: usize = 64_000;
/// The most bytes of the agent's messages that a record contains, the last ones, beside those that are cited.
const REPLIES_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most lines of an entry that a citation covers.
const CITED_LINES_MAX: u32 = 12;

/// The heading of the cited entries in a record.
pub const EMBEDDED: &str = "## Transcript";

/// Written where a section has no content.
const NOTHING: &str = "(none)";

/// Separates the author of an entry from its line in the transcript.
const LINE_LABEL: &str = ", line ";

/// A summary that is being written.
#[derive(Debug)]
pub struct CitedSummary<'a> {
    transcript: &'a Transcript,
    zone: Tz,
    lines: Vec<CitedSummaryLine>,
    /// Entries that the record contains in addition to those that its lines cite.
    extra_entries: BTreeSet<EntryIndex>,
}

/// The body of a record, and the lines of the entries in it.
#[derive(Debug)]
pub struct RecordBody {
    /// The text.
    pub text: String,
    id: Stem,
    positions: BTreeMap<EntryIndex, (u32, u32)>,
}

#[derive(Debug)]
struct CitedSummaryLine {
    text: String,
    cites: Vec<EntryIndex>,
    /// The entry that starts at this line, and its number of lines.
    embeds: Option<(EntryIndex, usize)>,
}

impl<'a> CitedSummary<'a> {
    /// Returns an empty summary; times are shown in `zone`.
    pub fn new(transcript: &'a Transcript, zone: Tz) -> Self {
        Self { transcript, zone, lines: Vec::new(), extra_entries: BTreeSet::new() }
    }

    /// Writes a line unchanged.
    pub fn line(&mut self, text: impl Into<String>) {
        self.lines.push(CitedSummaryLine { text: text.into(), cites: Vec::new(), embeds: None });
    }

    /// Writes a heading, with a blank line before it and after it.
    pub fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.blank();
        }
        self.line(text);
        self.line("");
    }

    /// Writes a blank line, unless the last line is blank.
    pub fn blank(&mut self) {
        if self.lines.last().is_some_and(|it| !it.text.is_empty()) {
            self.line("");
        }
    }

    /// Writes a bullet on one line, with its citations.
    pub fn bullet(&mut self, text: &str, cites: impl IntoIterator<Item = EntryIndex>) {
        let text = format!("- {}", one_line(text));
        self.lines.push(CitedSummaryLine {
            text,
            cites: cites.into_iter().collect(),
            embeds: None,
        });
    }

    /// Writes a line unchanged, with its citations.
    pub fn cited_line(&mut self, text: &str, cites: impl IntoIterator<Item = EntryIndex>) {
        let cites = cites.into_iter().collect();
        self.lines.push(CitedSummaryLine { text: text.to_owned(), cites, embeds: None });
    }

    /// Writes that a section has no content.
    pub fn nothing(&mut self) {
        self.line(NOTHING);
    }

    /// Writes external text as a quote below a bullet, at most `lines_max` lines.
    pub fn quote(&mut self, text: &str, lines_max: usize) {
        let all = text.trim_end().lines().count();
        for line in text.trim_end().lines().take(lines_max) {
            self.line(format!("  > {line}").trim_end());
        }
        if all > lines_max {
            self.line(format!("  > [… {} more lines]", all - lines_max));
        }
    }

    /// Writes a nested bullet, with its citations.
    pub fn nested_bullet(&mut self, text: &str, cites: impl IntoIterator<Item = EntryIndex>) {
        let text = format!("  - {}", one_line(text));
        self.lines.push(CitedSummaryLine {
            text,
            cites: cites.into_iter().collect(),
            embeds: None,
        });
    }

    /// Writes a text of several lines unchanged.
    pub fn raw_text(&mut self, text: &str) {
        for line in text.lines() {
            self.line(line);
        }
    }

    /// Writes a message of the user word for word, below a bullet with its time.
    pub fn user_message(&mut self, at: EntryIndex) {
        let lines = self.embedded_lines(at);
        let count = lines.len();
        for (n, text) in lines.into_iter().enumerate() {
            let embeds = (n == 0).then_some((at, count));
            self.lines.push(CitedSummaryLine { text, cites: Vec::new(), embeds });
        }
    }

    /// Returns the summary without citations.
    pub fn to_text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|it| &it.text[..]).collect();
        format!("{}\n", lines.join("\n").trim_end())
    }

    /// Adds an entry to the record, because it is cited elsewhere.
    pub fn embed(&mut self, at: EntryIndex) {
        self.extra_entries.insert(at);
    }

    /// Adds all messages to the record, because transcripts vanish.
    pub fn embed_messages(&mut self, digest: &SessionDigest<'_>) {
        self.extra_entries.extend(digest.messages.iter().map(|it| it.at));
        let mut bytes = 0;
        let is_in = |it: &&Utterance<'_>| {
            bytes += it.text.len();
            bytes <= REPLIES_BYTES_MAX
        };
        let replies = digest.replies.iter().rev().take_while(is_in).map(|it| it.at);
        self.extra_entries.extend(replies);
    }

    /// Returns the body of the record `id`, whose first line is line `first_line` of the file.
    pub fn into_record_body(mut self, id: &Stem, first_line: u32) -> RecordBody {
        while self.lines.last().is_some_and(|it| it.text.is_empty()) {
            self.lines.pop();
        }
        let number =
            |count: usize| first_line.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        let mut positions: BTreeMap<EntryIndex, (u32, u32)> = BTreeMap::new();
        for (n, line) in self.lines.iter().enumerate() {
            if let Some((at, count)) = line.embeds {
                positions.insert(at, (number(n), number(n + count.max(1) - 1)));
            }
        }
        let cited: BTreeSet<EntryIndex> = self
            .lines
            .iter()
            .flat_map(|it| it.cites.iter().copied())
            .chain(self.extra_entries.iter().copied())
            .collect();
        let mut tail: Vec<String> = Vec::new();
        for at in cited {
            if positions.contains_key(&at) {
                continue;
            }
            if tail.is_empty() {
                tail.extend(["", EMBEDDED, ""].map(str::to_owned));
            }
            let start = number(self.lines.len() + tail.len());
            tail.extend(self.embedded_lines(at));
            positions.insert(at, (start, number(self.lines.len() + tail.len() - 1)));
        }
        let mut body = RecordBody { text: String::new(), id: id.clone(), positions };
        for line in &self.lines {
            body.text.push_str(&line.text);
            if let Some(citation) = body.citation(&line.cites) {
                body.text.push_str(&[" [", &citation.to_string(), "]"].concat());
            }
            body.text.push('\n');
        }
        for line in tail {
            body.text.push_str(&line);
            body.text.push('\n');
        }
        body
    }

    /// Returns an entry in the form of a record.
    pub(super) fn embedded_lines(&self, at: EntryIndex) -> Vec<String> {
        let Some(entry) = self.transcript.entries.get(at.0) else { return Vec::new() };
        let when =
            entry.at.map(|it| format!(" {}", format_time(it, self.zone))).unwrap_or_default();
        let head = |who: &str| format!("- {who}{when}{LINE_LABEL}{}:", entry.line);
        let indented = |head: String, text: &str, mark: &str| {
            let lines = text.lines().map(|it| format!("  {mark}{it}").trim_end().to_owned());
            [head].into_iter().chain(lines).collect()
        };
        match &entry.content {
            EntryContent::User(text) | EntryContent::Command(text) => {
                indented(head("user"), text, "")
            }
            EntryContent::Assistant(text) => {
                indented(head("agent"), &truncate_message(text, WORDS_CHARS_MAX), "")
            }
            EntryContent::Call(call) => {
                let what = call.command.as_deref().filter(|_| call.files.is_empty());
                let what = what.map_or_else(|| call.files.join(", "), str::to_owned);
                let mut lines: Vec<String> =
                    indented(head(&format!("call of {}", call.name)), &what, "");
                lines.extend(
                    call.excerpt.lines().map(|it| format!("  > {it}").trim_end().to_owned()),
                );
                lines
            }
            EntryContent::Result(result) => {
                let how = if result.is_error { ", failed" } else { "" };
                indented(head(&format!("result{how}")), &result.text, "> ")
            }
            _ => vec![head("entry")],
        }
    }
}

/// Returns whether a line of a record is markup rather than somebody's words: the head of an entry, a
/// tag, or the sign of an empty section.
pub fn is_record_markup(words: &str) -> bool {
    let is_tag = words.starts_with('<') && words.ends_with('>');
    words == NOTHING || is_tag || ends_with_line(words)
}

/// Returns whether a line of a record is the head of an entry, whose text is indented below it.
pub fn is_entry_head(line: &str) -> bool {
    // Items of a plan may be any words.
    line.starts_with("- ") && !line.starts_with("- [") && ends_with_line(line)
}

/// Returns the messages that a record contains: author and time, and the words.
pub(super) fn embedded_messages(record: &str) -> Vec<(&str, String)> {
    let mut messages: Vec<(&str, String)> = Vec::new();
    let mut in_message = false;
    for line in record.lines() {
        let head = line.strip_prefix("- ").filter(|_| is_entry_head(line));
        if let Some(head) = head {
            let head = head.rsplit_once(LINE_LABEL).map_or(head, |it| it.0);
            in_message = ["user", "agent"].contains(&head.split(' ').next().unwrap_or_default());
            if in_message {
                messages.push((head, String::new()));
            }
        } else if let Some((_, words)) = messages.last_mut().filter(|_| in_message) {
            in_message = line.is_empty() || line.starts_with("  ");
            if in_message {
                words.push_str(line.get(2..).unwrap_or_default());
                words.push('\n');
            }
        }
    }
    for (_, words) in &mut messages {
        words.truncate(words.trim_end().len());
    }
    messages
}

fn ends_with_line(text: &str) -> bool {
    let number = text.strip_suffix(':').and_then(|it| it.rsplit_once(LINE_LABEL)).map(|it| it.1);
    number.is_some_and(|it| it.parse::<u64>().is_ok())
}

/// Returns a time in the form of an entry.
pub fn format_time(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).format("%Y-%m-%d %H:%M").to_string()
}

/// Returns a text on one line.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl RecordBody {
    /// Returns the citation of entries by their lines in the record.
    pub fn citation(&self, cites: &[EntryIndex]) -> Option<Citation> {
        let mut whole: Option<Citation> = None;
        for (start, end) in cites.iter().filter_map(|it| self.positions.get(it)) {
            let end = (*end).min(start.saturating_add(CITED_LINES_MAX - 1));
            let one = Citation::range(self.id.clone(), *start, end);
            match &mut whole {
                Some(whole) => whole.merge(&one),
                None => whole = Some(one),
            }
        }
        whole
    }
}
