//! Classifies single sentences, for callers that have text but no log: sessions.

use super::{cue_phrases, sections, statements::word_list::WordList};
use crate::text::pieces;

pub use super::sections::StatementClass;

/// A sentence of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassifiedSentence<'a> {
    /// Its words.
    pub text: &'a str,
    /// What it reports.
    pub class: StatementClass,
    /// Whether it gives a reason.
    pub has_reason: bool,
    /// Whether, said by a person, it is an order for more than the present task: `From now on …`, `Always …`.
    pub is_standing_order: bool,
}

/// Splits one line into sentences and classifies each.
pub fn classify_sentences(line: &str) -> Vec<ClassifiedSentence<'_>> {
    let pieces = pieces::split_pieces(line);
    let mut sentences: Vec<(usize, usize)> = Vec::new();
    for piece in &pieces {
        match sentences.last_mut() {
            Some((_, end)) if !piece.starts_sentence => *end = piece.end,
            _ => sentences.push((piece.start, piece.end)),
        }
    }
    let read = |(start, end): (usize, usize)| {
        let text = line.get(start..end)?.trim();
        // A label such as `Still open:` classifies the sentence as a heading would.
        let label = text.split_once(": ").map(|it| it.0);
        let by_label = label.and_then(sections::class_of_head);
        let class = if sections::opens_with_decision(text) {
            StatementClass::Decision
        } else {
            by_label.unwrap_or_else(|| sections::class_of_words(text, false))
        };
        let has_reason = sections::gives_reason(text);
        let is_standing_order = is_standing_order(text);
        let sentence = ClassifiedSentence { text, class, has_reason, is_standing_order };
        (!text.is_empty()).then_some(sentence)
    };
    sentences.into_iter().filter_map(read).collect()
}

fn is_standing_order(text: &str) -> bool {
    /// `And please always …`; later in a sentence the word says how something is.
    const WORDS_BEFORE_MAX: usize = 2;
    let words = WordList::of(text);
    let opens = words.find(cue_phrases::LASTING_WORDS).is_some_and(|it| it.0 <= WORDS_BEFORE_MAX);
    (opens || words.has(cue_phrases::FROM_NOW_ON)) && !text.ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_gets_one_class() {
        let line = "Tests pass now. Decided to keep SQLite, because one file is easier to back up. The weather is fine.";
        let found = classify_sentences(line);
        let found: Vec<_> = found.iter().map(|it| (it.text, it.class, it.has_reason)).collect();
        let decided = "Decided to keep SQLite, because one file is easier to back up.";
        assert_eq!(found[1], (decided, StatementClass::Decision, true));
        assert_eq!((found.len(), found[2].1), (3, StatementClass::Context));
        let is_order = |text| classify_sentences(text)[0].is_standing_order;
        assert!(is_order("From now on run npm test before every commit."));
        assert!(is_order("And always use integer cents in this project, never floats."));
        assert!(!is_order("The build has always been slow."));
        assert!(!is_order("Run it from now on every time?"));
        assert_eq!(
            super::classify_sentences("Open questions: which day it is.")[0].class,
            StatementClass::Open
        );
    }
}
