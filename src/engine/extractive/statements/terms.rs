//! The content words and values of a statement, to compare statements.

use std::sync::LazyLock;

use super::word_list::WordList;
use crate::{
    engine::extractive::{as_f64, cue_phrases},
    text::{
        calendar,
        hash::{HashedMap, HashedSet, hash_bytes},
        lexicon::CUES,
        stems,
    },
};

/// The content stems of a statement and its values (numbers, dates, weekdays), which a newer statement may
/// change.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StatementTerms {
    pub(crate) stems: TermSet,
    /// Words with a digit, months, and weekdays.
    pub(crate) values: TermSet,
}

/// A set of words, as hashes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TermSet(
    /// Invariant: ascending, each once.
    Vec<u64>,
);

/// Extracts terms, caching the class of each word.
#[derive(Default)]
pub(crate) struct TermExtractor {
    class_by_word: HashedMap<WordClass>,
}

/// The role of a word in [`StatementTerms`].
#[derive(Clone, Copy)]
enum WordClass {
    Stem(u64),
    Value(u64),
    StopWord,
}

impl TermExtractor {
    pub(crate) fn extract(&mut self, words: &WordList) -> StatementTerms {
        let (mut stems, mut values) = (Vec::with_capacity(words.len()), Vec::new());
        for (word, hash) in words.iter_hashed() {
            match *self.class_by_word.entry(hash).or_insert_with(|| WordClass::of(word)) {
                WordClass::Stem(stem) => stems.push(stem),
                WordClass::Value(value) => values.push(value),
                WordClass::StopWord => {}
            }
        }
        StatementTerms { stems: stems.into(), values: values.into() }
    }
}

impl WordClass {
    pub(super) fn of(word: &str) -> Self {
        let word = word.strip_suffix("'s").unwrap_or(word);
        if word.chars().any(|c| c.is_ascii_digit())
            || cue_phrases::MONTHS.contains(word) && word != "may"
            || calendar::weekday_names().contains(&word)
        {
            Self::Value(hash_bytes(word.as_bytes()))
        } else if is_stop_word(word) {
            Self::StopWord
        } else {
            Self::Stem(hash_bytes(stems::english_stem(word).as_bytes()))
        }
    }
}

impl From<Vec<u64>> for TermSet {
    fn from(mut terms: Vec<u64>) -> Self {
        terms.sort_unstable();
        terms.dedup();
        Self(terms)
    }
}

impl TermSet {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn hashes(&self) -> &[u64] {
        &self.0
    }

    pub(crate) fn shared_count(&self, other: &Self) -> usize {
        shared_count(&self.0, &other.0)
    }

    pub(crate) fn is_subset(&self, other: &Self) -> bool {
        self.shared_count(other) == self.len()
    }

    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        self.shared_count(other) == 0
    }
}

impl StatementTerms {
    pub(crate) fn of(text: &str) -> Self {
        TermExtractor::default().extract(&WordList::of(text))
    }

    pub(crate) fn similarity(&self, other: &Self) -> f64 {
        jaccard(&self.stems.0, &other.stems.0)
    }

    /// Returns the number of common stems as a share of the stems of the smaller one.
    pub(crate) fn overlap(&self, other: &Self) -> f64 {
        ratio(self.stems.shared_count(&other.stems), self.stems.len().min(other.stems.len()))
    }

    /// Returns the share of these stems that `other` contains.
    pub(crate) fn stem_containment(&self, other: &Self) -> f64 {
        ratio(self.stems.shared_count(&other.stems), self.stems.len())
    }

    /// Returns the share of these stems and values that `other` contains.
    pub(crate) fn containment(&self, other: &Self) -> f64 {
        let shared =
            self.stems.shared_count(&other.stems) + self.values.shared_count(&other.values);
        ratio(shared, self.stems.len() + self.values.len())
    }
}

pub(crate) fn is_stop_word(word: &str) -> bool {
    static SMALL: LazyLock<HashedSet> =
        LazyLock::new(|| CUES.stop_words.iter().map(|it| hash_bytes(it.as_bytes())).collect());
    SMALL.contains(&hash_bytes(word.as_bytes()))
}

/// Returns the number of common items of two sorted sets.
fn shared_count<T: Ord>(mut a: &[T], mut b: &[T]) -> usize {
    let mut shared = 0;
    while let ([first, rest @ ..], [second, others @ ..]) = (a, b) {
        shared += usize::from(first == second);
        (a, b) = (if first <= second { rest } else { a }, if second <= first { others } else { b });
    }
    shared
}

/// Returns the Jaccard similarity of two sorted sets.
pub(crate) fn jaccard<T: Ord>(a: &[T], b: &[T]) -> f64 {
    let shared = shared_count(a, b);
    ratio(shared, a.len() + b.len() - shared)
}

pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { as_f64(part) / as_f64(whole) }
}
