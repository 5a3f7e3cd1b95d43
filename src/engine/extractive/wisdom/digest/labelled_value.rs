//! Values with a label, such as `Gateway port: 8080`, of which a newer one replaces an older one.
//!
//! The notes of an agent are compared with the logs by them, and the hits of a search with each other.

use super::titles::is_generic;
use crate::{
    engine::extractive::{
        memories::roles::role_of_label,
        sections,
        statements::{labels::split_label, terms::StatementTerms, word_list::WordList},
    },
    memory::atom::{self, Atom, AtomKind},
    text::lexicon::SEARCH,
};

/// A value has at most as many words.
const VALUE_WORDS_MAX: usize = 5;

/// The words of a label, unless the title above it is the same in both texts.
const LABEL_WORDS_MIN: usize = 2;

const LABEL_WORDS_MAX: usize = 5;

/// A label with more values is that of a series.
pub const LABEL_VALUES_MAX: usize = 3;

/// A short value and the label that says what it is.
#[derive(Clone, Debug)]
pub struct LabelledValue {
    /// The words of the label in lower case.
    pub label: String,
    /// Whether the label says enough without the title above it.
    pub is_specific: bool,
    pub(super) value: StatementTerms,
    /// The kinds of its numbers, versions and addresses.
    pub(super) kinds: Vec<AtomKind>,
}

impl LabelledValue {
    /// Reads a line of a log without its list marker: `**Model:** x`, `Heartbeat interval — 30m`, or a row of a table
    /// with two cells. `None` if it has no label, or one that says something else each time, such as `Status`.
    pub fn of_line(line: &str) -> Option<Self> {
        let plain = line.trim().replace(['*', '`'], "");
        let row = plain.strip_prefix('|').and_then(|it| it.strip_suffix('|'));
        if let Some(row) = row {
            let (key, value) = row.split_once('|').filter(|it| !it.1.contains('|'))?;
            return Self::of_state(key.trim(), value.trim());
        }
        // The time at which a line was written is no label.
        let plain = plain.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':').trim_start();
        let (label, rest) = split_label(plain)?;
        Self::of_state(label, plain[rest..].trim()).filter(|it| {
            it.is_specific || plain[label.len()..].trim_start().starts_with([':', '：'])
        })
    }

    /// Returns a value whose label names a state, which holds until it changes.
    fn of_state(label: &str, value: &str) -> Option<Self> {
        let found = Self::new(sections::normalized_label(label), value)?;
        let is_passing = |it: &str| SEARCH.passing_label_words.contains(&it);
        let is_state = SEARCH.state_labels.contains(&&found.label[..])
            || !(is_generic(&found.label) || found.label.split(' ').any(is_passing));
        is_state.then_some(found)
    }

    /// Returns a short value of a label in lower case; `None` if what follows the label is a sentence.
    pub(super) fn new(label: String, value: &str) -> Option<Self> {
        let value = without_remark(value);
        let words = label.split(' ').filter(|it| it.contains(char::is_alphabetic)).count();
        let fits = (1..=LABEL_WORDS_MAX).contains(&words)
            && (1..=VALUE_WORDS_MAX).contains(&WordList::of(value).len())
            && role_of_label(&label).is_none()
            && !value.contains([',', ';', '→', '、', '，']);
        if !fits {
            return None;
        }
        let atoms = atom::find_atoms(value);
        let is_when = |it: &Atom| matches!(it.kind, AtomKind::Date | AtomKind::Time);
        let kinds: Vec<AtomKind> =
            atoms.iter().filter(|it| is_value(it)).map(|it| it.kind).collect();
        // Words are the value of an attribute; after any other label they are a sentence about it.
        let is_attribute = || {
            sections::is_attribute(&label)
                || label.rsplit(' ').next().is_some_and(sections::is_attribute)
        };
        if atoms.iter().any(is_when) || (kinds.is_empty() && !is_attribute()) {
            return None;
        }
        let is_specific = words >= LABEL_WORDS_MIN;
        Some(Self { label, is_specific, value: StatementTerms::of(value), kinds })
    }

    /// Returns whether one value is the other one, perhaps with more words.
    pub fn has_same_value(&self, other: &Self) -> bool {
        let is_within = |a: &StatementTerms, b: &StatementTerms| {
            a.stems.is_subset(&b.stems) && a.values.is_subset(&b.values)
        };
        is_within(&self.value, &other.value) || is_within(&other.value, &self.value)
    }

    /// Returns whether two values of the same label exclude each other.
    pub fn contradicts(&self, other: &Self) -> bool {
        self.kinds == other.kinds
            && self.value.stems.is_disjoint(&other.value.stems)
            && !self.has_same_value(other)
    }
}

/// Returns a number, version or address without what is remarked about it: `9090, moved because of the printer`.
fn without_remark(value: &str) -> &str {
    let cuts = [", ", "; ", " (", " — ", " – "];
    let cut = cuts.into_iter().filter_map(|it| Some((value.find(it)?, it.len()))).min();
    let Some((at, length)) = cut else { return value };
    let (first, rest) = (&value[..at], &value[at + length..]);
    let has_value = || atom::find_atoms(first).iter().any(is_value);
    if rest.starts_with(char::is_lowercase) && has_value() { first } else { value }
}

/// Returns whether an atom is a value; a day or a time only says when.
pub(super) fn is_value(atom: &Atom) -> bool {
    matches!(
        atom.kind,
        AtomKind::Number
            | AtomKind::Money
            | AtomKind::Percent
            | AtomKind::Version
            | AtomKind::Url
            | AtomKind::Path
            | AtomKind::Code
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn label_of(line: &str) -> Option<String> {
        LabelledValue::of_line(line).map(|it| it.label)
    }

    #[test]
    fn a_line_with_a_label_has_a_value() {
        for (line, label) in [
            ("**Default model:** opus", "default model"),
            ("Gateway port: 8080", "gateway port"),
            ("Port: `8080`", "port"),
            ("Heartbeat interval — 30m", "heartbeat interval"),
            ("| Gateway port | 8080 |", "gateway port"),
            ("09:12 Model: opus", "model"),
            ("Gateway port: 9090, moved because of the printer", "gateway port"),
            ("Gateway port: 9090 (was taken by the printer)", "gateway port"),
        ] {
            assert_eq!(label_of(line).as_deref(), Some(label), "{line}");
        }
        for line in [
            "Status: open",
            "Total: 12",
            "Total cost: $12",
            "Date: 2026-03-01",
            "Next run: 5",
            "Notes: 3 boats",
            "Gateway ports: 8080, 9090",
            "Decision: keep port 8080",
            "Ottilie: see you at the pier",
            "Root cause: port 80",
            "| Gateway | port | 8080 |",
            "The port of the gateway is 8080 now",
        ] {
            assert_eq!(label_of(line), None, "{line}");
        }
    }
}
