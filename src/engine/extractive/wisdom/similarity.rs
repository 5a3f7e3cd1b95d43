//! When two statements are about the same.

use super::SAME_EXCEPT_VALUES;
use crate::{
    engine::extractive::{parsed_log, statements::terms::StatementTerms},
    memory::log::TextOrigin,
    privacy::SanitizedLog,
    text::sentences::sentence_ranges,
};

/// The statements that a reader has seen, to leave out what repeats one of them.
#[derive(Clone, Debug, Default)]
pub struct SeenStatements(Vec<SeenStatement>);

#[derive(Clone, Debug)]
struct SeenStatement {
    terms: StatementTerms,
    paths: Vec<String>,
}

impl SeenStatements {
    /// Returns what notes say, also below their headings.
    pub fn of_notes<'a>(notes: impl IntoIterator<Item = &'a SanitizedLog>) -> Self {
        /// Of longer notes only the first statements are compared.
        const STATEMENTS_MAX: usize = 2_000;
        let mut seen = Self::default();
        for page in notes.into_iter().map(parsed_log::parse) {
            let own = page.statements.iter().filter(|it| it.origin != TextOrigin::External);
            for statement in own.take(STATEMENTS_MAX) {
                let text = &statement.text;
                seen.add(text);
                if let Some(head) = statement.lead.or(statement.heading) {
                    seen.add(&format!("{}: {text}", page.heads[head].text));
                }
                let sentences = sentence_ranges(text);
                if sentences.len() > 1 {
                    for (start, end) in sentences {
                        seen.add(&text[start..end]);
                    }
                }
            }
        }
        seen
    }

    /// Adds a statement.
    pub fn add(&mut self, text: &str) {
        self.0.push(SeenStatement { terms: StatementTerms::of(text), paths: paths_in(text) });
    }

    /// Returns the place of the first statement that says a text already, from 0 in the order of [`Self::add`].
    pub fn find_repeated(&self, text: &str) -> Option<usize> {
        /// Fewer words are part of many statements.
        const STEMS_MIN: usize = 3;
        let terms = StatementTerms::of(text);
        let names = names_within(text);
        let paths = paths_in(text);
        self.0.iter().position(|SeenStatement { terms: seen, paths: seen_paths }| {
            let is_same = if seen.stems.len() < STEMS_MIN {
                *seen == terms
            } else {
                says_statement(seen, &terms) && names.stems.is_subset(&seen.stems)
            };
            is_same && !name_other_places(seen_paths, &paths)
        })
    }

    /// Returns whether one statement has all words and values of a text. That something was stopped needs few
    /// of its words.
    pub fn say_all_of(&self, text: &str) -> bool {
        let terms = StatementTerms::of(text);
        self.0
            .iter()
            .map(|it| &it.terms)
            .any(|it| terms.stems.is_subset(&it.stems) && terms.values.is_subset(&it.values))
    }
}

/// Returns the paths in a text. The words of a path are in many others, so that two places look alike.
fn paths_in(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| c.is_whitespace() || "`\"'()[],;".contains(c));
    let paths = parts.filter(|it| it.contains('/') && it.chars().any(char::is_alphanumeric));
    paths
        .map(|it| it.trim_start_matches("~/").trim_end_matches(['.', '/', ':']).to_owned())
        .collect()
}

/// Returns whether two texts name places, and none of one is a place of the other or the end of one.
fn name_other_places(a: &[String], b: &[String]) -> bool {
    let is_same = |a: &String, b: &String| a.ends_with(&**b) || b.ends_with(&**a);
    !a.is_empty() && !b.is_empty() && !a.iter().any(|a| b.iter().any(|b| is_same(a, b)))
}

/// Returns how many of the words of a topic a text has.
pub fn shared_words(topic: &str, text: &str) -> usize {
    StatementTerms::of(topic).stems.shared_count(&StatementTerms::of(text).stems)
}

/// Returns whether a text has all words and values of a title.
pub fn says_title(title: &str, text: &str) -> bool {
    let (title, text) = (StatementTerms::of(title), StatementTerms::of(text));
    title.stems.is_subset(&text.stems) && title.values.is_subset(&text.values)
}

/// Returns the terms of the names in a text: words with a capital that begin no sentence. With another name the same
/// words say something else: `moved from Fortnox to Bokio`.
fn names_within(text: &str) -> StatementTerms {
    let mut names = String::new();
    let mut is_first = true;
    for word in text.split_whitespace() {
        if !is_first
            && word.trim_start_matches(['"', '(', '`', '*']).starts_with(char::is_uppercase)
        {
            names.push_str(word);
            names.push(' ');
        }
        is_first = word.ends_with(['.', ':', '!', '?']);
    }
    StatementTerms::of(&names)
}

/// Returns whether a text that was seen says what a statement says. Of texts of very different length one has many
/// words of the other by chance.
fn says_statement(seen: &StatementTerms, statement: &StatementTerms) -> bool {
    const CONTAINED: f64 = 0.8;
    let (long, short) = (seen.stems.len(), statement.stems.len());
    statement.values.is_subset(&seen.values)
        && ((short <= 2 * long && repeats_entry(seen, statement))
            || (long <= 5 * short && statement.stem_containment(seen) >= CONTAINED))
}

/// A new entry with at least this overlap with another one says nothing new.
const SAME_TOPIC: f64 = 0.4;

/// Returns whether an entry covers a candidate.
pub(super) fn covers_candidate(entry: &StatementTerms, candidate: &StatementTerms) -> bool {
    const COVERED: f64 = 0.6;
    let shared = candidate.stems.shared_count(&entry.stems);
    shared >= 2
        && (candidate.overlap(entry) >= 0.8
            || candidate.similarity(entry) >= 0.5
            || candidate.containment(entry) >= COVERED)
}

/// Returns whether two statements differ only in their values.
pub(super) fn has_conflicting_values(a: &StatementTerms, b: &StatementTerms) -> bool {
    let other_values = !a.values.is_subset(&b.values) && !b.values.is_subset(&a.values);
    other_values && a.overlap(b) >= SAME_EXCEPT_VALUES
}

/// Returns whether a line repeats an entry without another value.
pub(super) fn repeats_entry(entry: &StatementTerms, line: &StatementTerms) -> bool {
    let values_agree = line.values.is_subset(&entry.values) || entry.values.is_subset(&line.values);
    values_agree && (line.similarity(entry) >= 0.6 || entry.containment(line) >= 0.7)
}

/// Returns whether two statements are about the same, so that only one becomes an entry.
pub(super) fn same_topic(a: &StatementTerms, b: &StatementTerms) -> bool {
    const SHARED_MIN: usize = 3;
    // Statements that differ only in their values were already separated as two facts.
    if has_conflicting_values(a, b) {
        return false;
    }
    let values = a.values.shared_count(&b.values);
    let shared = a.stems.shared_count(&b.stems) + values;
    a.overlap(b) >= 0.8
        || (shared >= SHARED_MIN && a.containment(b).max(b.containment(a)) >= SAME_TOPIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_another_name_or_value_says_something_new() {
        #[track_caller]
        fn check(seen: &str, text: &str, expected: bool) {
            let mut all = SeenStatements::default();
            all.add(seen);
            assert_eq!(all.find_repeated(text).is_some(), expected, "{seen} / {text}");
        }
        let note = "Jonas does the bookkeeping in Fortnox.";
        check(note, "Jonas does bookkeeping in Fortnox", true);
        check(note, "Jonas moves bookkeeping from Fortnox to Bokio", false);
        check(note, "Jonas does the bookkeeping in Fortnox from 1 January 2027", false);
        check(
            "Backups of the server go to the Synology at night",
            "Backups of the server go to Hetzner at night",
            false,
        );
        check("Ports: the gateway listens on 8080", "The gateway listens on 8080", true);
        check("Ports: the gateway listens on 8080", "The gateway listens on 9090", false);
        let path = "Repo path: `/srv/fleet/projects/Fleet-CUA`";
        check(path, "Skill path: `/srv/fleet/skills/fleet-cua`", false);
        check(path, "Repo path: `fleet/projects/Fleet-CUA`", true);
    }
}
