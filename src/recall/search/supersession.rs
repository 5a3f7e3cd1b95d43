//! Orders values that changed: of two hits that say the same with different values the older one is
//! marked and comes second. It comes first if the question asks for the former value; the order stays
//! if it asks about a past time.
//!
//! A value is a word with a digit. Two lines say the same when nearly all their other words are the
//! same, and there are enough of them. Pure.

use std::collections::BTreeSet;

use super::{HitRef, SearchHit};
use crate::text::{lexicon::SEARCH, words};

/// How many words besides the values two lines must share.
const SHARED_MIN: usize = 4;

/// Which share of all their words that must be.
const SHARE_MIN: f64 = 0.75;

/// Which value a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValuePreference {
    Newer,
    Older,
    AsFound,
}

impl ValuePreference {
    fn of(question: &str) -> Self {
        let mut preference = Self::Newer;
        words::for_each_folded(question, |word| {
            if SEARCH.former_words.contains(&word) {
                preference = Self::Older;
            } else if SEARCH.past_words.contains(&word) && preference == Self::Newer {
                preference = Self::AsFound;
            }
        });
        preference
    }
}

/// The words of a line, separated from its values.
struct LineValues {
    words: BTreeSet<String>,
    values: BTreeSet<String>,
}

impl LineValues {
    fn of(text: &str) -> Self {
        let mut line = Self { words: BTreeSet::new(), values: BTreeSet::new() };
        // The time at which a line was written is no value.
        let text = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == ':');
        words::for_each_folded(text, |word| {
            let to = if word.contains(|c: char| c.is_ascii_digit()) {
                &mut line.values
            } else {
                &mut line.words
            };
            to.insert(word.to_owned());
        });
        line
    }

    /// Returns whether another line says the same with other values.
    fn conflicts_with(&self, other: &Self) -> bool {
        if self.values.is_empty() || other.values.is_empty() || self.values == other.values {
            return false;
        }
        let shared = self.words.intersection(&other.words).count();
        let all = self.words.union(&other.words).count();
        #[expect(clippy::cast_precision_loss, reason = "words of a line")]
        let share = shared as f64 / all.max(1) as f64;
        shared >= SHARED_MIN && share >= SHARE_MIN
    }
}

/// Marks superseded hits, and puts those first that the question asks for. `is_dated` says that it
/// names days, so it asks about a past time.
pub(super) fn mark_superseded(hits: &mut [SearchHit], question: &str, is_dated: bool) {
    let lines: Vec<LineValues> = hits.iter().map(|it| LineValues::of(&it.text)).collect();
    for older in 0..hits.len() {
        // Of several hits of that day the best one.
        let newer = (0..hits.len())
            .rev()
            .filter(|&it| {
                hits[it].date > hits[older].date && lines[older].conflicts_with(&lines[it])
            })
            .max_by_key(|&it| hits[it].date);
        hits[older].superseded_by =
            newer.map(|it| HitRef { path: hits[it].path.clone(), line: hits[it].line });
    }
    let preference =
        if is_dated { ValuePreference::AsFound } else { ValuePreference::of(question) };
    let place = |hits: &[SearchHit], of: &HitRef| {
        hits.iter().position(|it| it.path == of.path && it.line == of.line)
    };
    // The wanted hit takes the place of the first that is not wanted.
    for at in 0..hits.len() {
        let from = match preference {
            ValuePreference::AsFound => None,
            ValuePreference::Newer => {
                hits[at].superseded_by.as_ref().and_then(|it| place(hits, it))
            }
            ValuePreference::Older => {
                let newer = HitRef { path: hits[at].path.clone(), line: hits[at].line };
                let older = (at..hits.len())
                    .rev()
                    .filter(|&it| hits[it].superseded_by.as_ref() == Some(&newer));
                older.min_by_key(|&it| hits[it].date)
            }
        };
        if let Some(from) = from.filter(|it| *it > at) {
            hits[at..=from].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(date: &str, text: &str) -> SearchHit {
        SearchHit {
            path: format!("memory/{date}.md"),
            line: 3,
            date: date.parse().unwrap(),
            tier: "daily",
            origin: "agent",
            score: 1.0,
            found_by: vec!["words"],
            text: text.to_owned(),
            before: Vec::new(),
            after: Vec::new(),
            via: Vec::new(),
            superseded_by: None,
        }
    }

    #[test]
    fn the_newer_value_comes_first_for_a_question_about_the_present() {
        let all = [
            hit("2026-03-01", "The retry limit of the importer is 3 attempts"),
            hit("2026-03-02", "The importer writes to staging"),
            hit("2026-03-09", "The retry limit of the importer is 5 attempts"),
        ];
        let order = |question: &str, is_dated| {
            let mut hits = all.clone();
            mark_superseded(&mut hits, question, is_dated);
            let of = |it: &SearchHit| (it.date.to_string(), it.superseded_by.is_some());
            hits.iter().map(of).collect::<Vec<_>>()
        };
        let old = |it: &str| (it.to_owned(), true);
        let new = |it: &str| (it.to_owned(), false);
        let as_found = [old("2026-03-01"), new("2026-03-02"), new("2026-03-09")];
        let now = [new("2026-03-09"), old("2026-03-01"), new("2026-03-02")];
        assert_eq!(order("What is the retry limit now?", false), now);
        assert_eq!(order("retry limit", false), now);
        assert_eq!(order("What was the retry limit?", false), as_found);
        assert_eq!(order("What is the retry limit of March 1?", true), as_found);
    }

    #[test]
    fn different_statements_supersede_nothing() {
        for (a, b) in [
            ("The retry limit of the importer is 3", "The size limit of the exporter is 5"),
            ("The retry limit of the importer is 3", "The retry limit of the importer is 3"),
            ("10:02 ran the whole suite again", "11:45 ran the whole suite again"),
            ("port 80", "port 443"),
        ] {
            let mut hits = [hit("2026-03-01", a), hit("2026-03-02", b)];
            mark_superseded(&mut hits, "what is it", false);
            assert!(hits.iter().all(|it| it.superseded_by.is_none()), "{a} {b}");
        }
    }
}
