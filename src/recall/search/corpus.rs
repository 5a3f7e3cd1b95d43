//! What is searched: the lines of logs with what stands around them, and items with the lines beneath.

use std::collections::HashMap;

use chrono::NaiveDate;

use super::{
    when,
    words::{Role, Terms},
};
use crate::{
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
        log::Origin,
        markdown::LineKind,
    },
    privacy::ServedLog,
};

/// A name that begins so many lines is that of somebody who speaks.
const SPEAKS_MIN: usize = 10;

/// A log or a session record.
pub(super) struct Doc {
    pub(super) path: String,
    pub(super) date: NaiveDate,
    pub(super) tier: &'static str,
    /// Which terms stand in it.
    pub(super) mask: u64,
}

/// A line of one of them that says something.
pub(super) struct Row {
    pub(super) doc: usize,
    pub(super) number: u32,
    pub(super) text: String,
    pub(super) origin: Origin,
    /// Changes with each heading.
    pub(super) section: u32,
    /// The terms in it.
    pub(super) mask: u64,
    /// The terms in the headings above it.
    pub(super) heading: u64,
    /// How many pairs of terms that stand side by side in the question stand so in it.
    pub(super) pairs: u32,
    /// How many words say something.
    pub(super) length: f64,
    /// Equal for lines of equal words.
    pub(super) hash: u64,
    pub(super) speaker: Option<String>,
    pub(super) is_question: bool,
    pub(super) tells_time: bool,
    /// Whether it is of the project that is asked for, by its path or its headings.
    pub(super) of_project: bool,
}

/// An item of a generated file.
pub(super) struct ItemRow {
    pub(super) path: String,
    pub(super) line: u32,
    pub(super) tier: &'static str,
    /// The newest day that it is about.
    pub(super) date: NaiveDate,
    pub(super) text: String,
    /// Of a typed memory its kind.
    pub(super) kind: Option<&'static str>,
    pub(super) citation: Option<Citation>,
    pub(super) mask: u64,
    pub(super) length: f64,
}

/// All that is searched, by the terms of one question.
pub(super) struct Corpus {
    pub(super) docs: Vec<Doc>,
    pub(super) rows: Vec<Row>,
    pub(super) items: Vec<ItemRow>,
    /// Where the line of an address stands in `rows`.
    places: HashMap<(Stem, u32), usize>,
    project: Option<String>,
}

impl Corpus {
    pub(super) fn new(project: Option<String>) -> Self {
        let (docs, rows, items) = (Vec::new(), Vec::new(), Vec::new());
        Self { docs, rows, items, places: HashMap::new(), project }
    }

    /// Adds a log as it may be seen.
    pub(super) fn add_log(
        &mut self,
        log: &ServedLog,
        path: String,
        terms: &mut Terms,
        pairs: &[(usize, usize)],
    ) {
        let tier = if log.stem().is_session() { "session" } else { "daily" };
        let path_says = self.project.as_ref().is_none_or(|it| path.to_lowercase().contains(it));
        let doc = self.docs.len();
        let mut section = 0;
        // Level, terms, and whether the project is named, of the headings above.
        let mut above: Vec<(u8, u64, bool)> = Vec::new();
        let mut all = 0;
        for line in log.lines() {
            if line.is_held() {
                continue;
            }
            if let LineKind::Heading { level, .. } = line.kind() {
                section += 1;
                above.retain(|it| it.0 < level);
                let says = self
                    .project
                    .as_ref()
                    .is_some_and(|it| line.words().to_lowercase().contains(it));
                above.push((level, terms.mask(line.words()), says));
                all |= above.last().map_or(0, |it| it.1);
                continue;
            }
            if !line.is_content() {
                continue;
            }
            let text = line.words();
            let read = Read::of(text, terms, pairs);
            all |= read.mask;
            self.places.insert((log.stem().clone(), line.number()), self.rows.len());
            self.rows.push(Row {
                doc,
                number: line.number(),
                origin: line.origin(),
                section,
                mask: read.mask,
                heading: above.iter().fold(0, |mask, it| mask | it.1),
                pairs: read.pairs,
                length: read.length,
                hash: ContentHash::of(text).prefix64(),
                speaker: speaker(text).map(str::to_owned),
                is_question: text
                    .trim_end_matches(['"', '”', '*', ' '])
                    .ends_with(['?', '？', '؟']),
                tells_time: when::tells_time(text),
                of_project: path_says || above.iter().any(|it| it.2),
                text: text.to_owned(),
            });
        }
        self.docs.push(Doc { path, date: log.date(), tier, mask: all });
    }

    /// Adds an item; `head` is what is read before its words and not shown.
    pub(super) fn add_item(&mut self, mut item: ItemRow, head: &str, terms: &mut Terms) {
        let read = Read::of(&format!("{head} {}", item.text), terms, &[]);
        (item.mask, item.length) = (read.mask, read.length);
        self.items.push(item);
    }

    /// Returns the rows of the lines that are cited and stand there.
    pub(super) fn beneath<'a>(
        &'a self,
        citation: &'a Citation,
    ) -> impl Iterator<Item = usize> + 'a {
        citation.addresses().filter_map(|at| self.places.get(&(at.stem, at.line)).copied())
    }

    /// Returns the names of those who speak, in lower case.
    pub(super) fn speakers(&self) -> HashMap<String, usize> {
        let mut names: HashMap<String, usize> = HashMap::new();
        for name in self.rows.iter().filter_map(|it| it.speaker.as_ref()) {
            *names.entry(name.to_lowercase()).or_default() += 1;
        }
        names.retain(|_, count| *count >= SPEAKS_MIN);
        names
    }
}

/// What of a text concerns a question.
struct Read {
    mask: u64,
    pairs: u32,
    length: f64,
}

impl Read {
    fn of(text: &str, terms: &mut Terms, pairs: &[(usize, usize)]) -> Self {
        let mut read = Self { mask: 0, pairs: 0, length: 0.0 };
        let mut before = None;
        terms.each(text, |role| match role {
            // Pairs reach over what says nothing.
            Role::Stop => {}
            Role::Other => {
                read.length += 1.0;
                before = None;
            }
            Role::Term(at) => {
                read.length += 1.0;
                read.mask |= 1 << at;
                read.pairs += u32::from(before.is_some_and(|it| pairs.contains(&(it, at))));
                before = Some(at);
            }
        });
        read
    }
}

/// Returns who says a line: `13:56 Caroline: …`, `**Ben:** …`.
fn speaker(text: &str) -> Option<&str> {
    const NAME_CHARS_MAX: usize = 30;
    let text = text.trim_start_matches(|c: char| c.is_ascii_digit() || " :[]-*".contains(c));
    let (name, said) = text.split_once(':')?;
    let is_said = said.starts_with([' ', '*', '"', '“']);
    let name = name.trim_end_matches('*').trim();
    let is_name = name.chars().next().is_some_and(char::is_uppercase)
        && name.chars().count() <= NAME_CHARS_MAX
        && name.split(' ').count() <= 3
        && name.chars().all(|c| c.is_alphanumeric() || " .'-".contains(c));
    (is_name && is_said).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_speaks_is_told_by_the_name_before_the_colon() {
        for (text, expected) in [
            ("13:56 Caroline: Hey Mel!", Some("Caroline")),
            ("**Ben:** short replies, please", Some("Ben")),
            ("Decision: SQLite", Some("Decision")),
            ("it holds: all", None),
            ("See https://a.io", None),
            ("A name that is much longer than names are: no", None),
        ] {
            assert_eq!(speaker(text), expected, "{text}");
        }
    }
}
