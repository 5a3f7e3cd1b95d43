//! A daily log as it stands on disk: lines with numbers, and where its text comes from.
//!
//! Lines end at `\n`; a `\r` before it and a byte-order mark at the start belong to no line. The
//! numbers count from 1 and count the frontmatter, as every editor shows them.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};

use super::{
    address::Stem,
    frontmatter,
    hash::ContentHash,
    markdown::{self, LineKind},
};

/// Who wrote a text. Ordered by trust, the least first, so that `min` is the origin of a mixture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Quoted, pasted, or fetched: a web page, a mail, a tool's output.
    External,
    /// An agent's own words.
    Agent,
    /// A person's own words.
    Human,
}

impl Origin {
    /// Returns the name that frontmatter and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Agent => "agent",
            Self::Human => "human",
        }
    }

    /// Returns the origin with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::External, Self::Agent, Self::Human].into_iter().find(|it| it.name() == name)
    }
}

/// A daily log or a session record, decoded. Its text is raw: only `privacy` may serve it.
#[derive(Clone, Debug)]
pub struct DailyLog {
    /// The file's name without `.md`.
    pub stem: Stem,
    /// The hash of the file's bytes.
    pub hash: ContentHash,
    /// What the frontmatter's `origin:` says of the text outside quotes and code.
    pub origin: Option<Origin>,
    text: Arc<str>,
    /// Byte offset at which the body begins; 0 without frontmatter.
    body_at: usize,
}

/// Bytes that are no text we can read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not UTF-8 at byte {at}; save the file as UTF-8")]
pub struct NotUtf8 {
    /// Offset of the first bad byte.
    pub at: usize,
}

impl DailyLog {
    /// Decodes the bytes of a log.
    ///
    /// A frontmatter that cannot be read is kept as lines that reach no engine; the body counts.
    ///
    /// # Errors
    ///
    /// Returns [`NotUtf8`] for bytes that are not UTF-8.
    pub fn parse(stem: Stem, bytes: &[u8]) -> Result<Self, NotUtf8> {
        let text = std::str::from_utf8(bytes).map_err(|e| NotUtf8 { at: e.valid_up_to() })?;
        // Blank lines above the frontmatter are somebody's slip, not a reason to read it as text.
        let lead = text.len() - text.trim_start_matches(['\u{feff}', '\n', '\r', ' ', '\t']).len();
        let split = frontmatter::split(&text[lead..]);
        let body_at = if split.yaml.is_some() { lead + split.body_at } else { 0 };
        let origin = split
            .yaml
            .and_then(|yaml| frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX).ok())
            .and_then(|map| map.get("origin").and_then(|v| v.as_str().and_then(Origin::from_name)));
        Ok(Self { stem, hash: ContentHash::of(bytes), origin, text: text.into(), body_at })
    }

    /// Returns all of the file as it stands.
    pub fn raw(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns each line of the body: number, text without line end, and kind.
    pub fn lines(&self) -> Vec<(u32, &str, LineKind)> {
        let front_lines = self.text[..self.body_at].matches('\n').count();
        let body: Vec<(u32, &str)> = self
            .text
            .strip_prefix('\u{feff}')
            .unwrap_or(&self.text)
            .split('\n')
            .enumerate()
            .skip(front_lines)
            .filter_map(|(i, line)| {
                Some((u32::try_from(i + 1).ok()?, line.strip_suffix('\r').unwrap_or(line)))
            })
            .collect();
        let kinds = markdown::kinds(body.iter().map(|&(_, line)| line));
        body.into_iter().zip(kinds).map(|((number, line), kind)| (number, line, kind)).collect()
    }

    /// Returns the number of characters of the body: what the ratio of a fold is counted against.
    pub fn body_chars(&self) -> usize {
        self.text[self.body_at..].trim_start_matches('\u{feff}').trim().chars().count()
    }
}

/// Returns the line that a new log of `date` begins with, and the blank one after it.
pub fn head(date: NaiveDate) -> String {
    format!("# {date}\n\n")
}

/// Returns an entry as it is appended to a log: one bullet with the time, its further lines
/// indented beneath it. `None` when the text says nothing.
pub fn entry(time: NaiveTime, text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let mut entry = format!("- {}", time.format("%H:%M"));
    for (i, line) in text.lines().enumerate() {
        let line = line.trim_end();
        // Blank lines stay bare: spaces at the end of a line mean nothing to anybody.
        entry.push_str(if i == 0 {
            " "
        } else if line.is_empty() {
            "\n"
        } else {
            "\n  "
        });
        entry.push_str(line);
    }
    entry.push('\n');
    Some(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let time = NaiveTime::from_hms_opt(9, 5, 59).unwrap();
        assert_eq!(entry(time, text).as_deref(), expected);
    }

    #[test]
    fn an_entry_is_one_bullet() {
        check("Chose SQLite", Some("- 09:05 Chose SQLite\n"));
        check(" two\r\nlines \n", Some("- 09:05 two\n  lines\n"));
        check("- a\n\n  - b", Some("- 09:05 - a\n\n    - b\n"));
        check("日本 é", Some("- 09:05 日本 é\n"));
        check(" \n\t", None);
    }

    /// `lines` are the numbers and texts of the body.
    #[track_caller]
    fn check_lines(text: &str, lines: &[(u32, &str)], origin: Option<Origin>) {
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let found: Vec<(u32, &str)> = log.lines().iter().map(|&(n, line, _)| (n, line)).collect();
        assert_eq!((&found[..], log.origin), (lines, origin), "{text:?}");
    }

    #[test]
    fn lines_are_numbered_as_editors_show_them() {
        check_lines("a\nb", &[(1, "a"), (2, "b")], None);
        check_lines("\u{feff}a\r\n\r\nb\r\n", &[(1, "a"), (2, ""), (3, "b"), (4, "")], None);
        check_lines("---\norigin: human\n---\na", &[(4, "a")], Some(Origin::Human));
        check_lines("\n\n---\norigin: agent\n---\na", &[(6, "a")], Some(Origin::Agent));
        check_lines("---\nnot closed\na", &[(1, "---"), (2, "not closed"), (3, "a")], None);
        check_lines("", &[(1, "")], None);
    }

    #[test]
    fn bytes_that_are_no_text_are_told() {
        let bad = DailyLog::parse("2026-04-02".parse().unwrap(), b"caf\xe9").unwrap_err();
        assert_eq!(bad, NotUtf8 { at: 3 });
    }

    #[test]
    fn length_counts_characters_of_the_body() {
        let log = DailyLog::parse(
            "2026-04-02".parse().unwrap(),
            "---\na: 1\n---\n\nnaïve ü\n".as_bytes(),
        );
        assert_eq!(log.unwrap().body_chars(), 7);
    }
}
