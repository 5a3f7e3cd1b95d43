//! Classifies single sentences, for callers that have text but no log: sessions.

use super::{cue_phrases, sections, statements::word_list::WordList};
use crate::text::{
    lexicon::{CUES, SENTENCES},
    pieces,
};

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
    /// Whether it says how something is: neither a question nor a request, and it can stand alone.
    pub is_fact: bool,
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
        // `Rule: …` decides something, and `The firewall rule …` only names one.
        let by_words = sections::class_of_words(text, false);
        let decides = sections::opens_with_decision(text)
            && (label.is_some() || by_words == StatementClass::Decision);
        let class = if decides { StatementClass::Decision } else { by_label.unwrap_or(by_words) };
        let has_reason = sections::gives_reason(text);
        let is_standing_order = is_standing_order(text);
        let is_fact = is_fact(text);
        let sentence = ClassifiedSentence { text, class, has_reason, is_standing_order, is_fact };
        (!text.is_empty()).then_some(sentence)
    };
    sentences.into_iter().flat_map(|it| split_small(line, it)).filter_map(read).collect()
}

/// Splits a sentence, given as its range in a line, where another begins with a small letter, as people write in chats.
fn split_small(line: &str, (start, end): (usize, usize)) -> Vec<(usize, usize)> {
    /// A shorter word before a period may be an abbreviation.
    const LETTERS_MIN: usize = 3;
    const GOING_ON: [&str; 14] = [
        "no", "not", "wait", "sorry", "actually", "only", "since", "except", "nein", "doch",
        "aber", "but", "or", "and",
    ];
    let mut parts = Vec::new();
    let mut from = start;
    for (at, _) in line[start..end].match_indices(". ") {
        let (period, next) = (start + at, start + at + 2);
        let before = line[from..period].rsplit(char::is_whitespace).next().unwrap_or_default();
        let is_word =
            before.chars().all(char::is_alphabetic) && before.chars().count() >= LETTERS_MIN;
        let known = || SENTENCES.abbreviations.iter().chain(&*SENTENCES.statement_abbreviations);
        let is_abbreviation = || known().any(|it| it.eq_ignore_ascii_case(before));
        let rest = &line[next..end];
        // `8080. no wait, 9191` takes back what is before it.
        let first = rest.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
        let goes_on = GOING_ON.contains(&first);
        if is_word && rest.starts_with(char::is_lowercase) && !goes_on && !is_abbreviation() {
            parts.push((from, period + 1));
            from = next;
        }
    }
    parts.push((from, end));
    parts
}

fn is_standing_order(text: &str) -> bool {
    /// `And please always …`; later in a sentence the word says how something is.
    const WORDS_BEFORE_MAX: usize = 2;
    let words = WordList::of(text);
    let opens = words.find(cue_phrases::LASTING_WORDS).is_some_and(|it| it.0 <= WORDS_BEFORE_MAX);
    // `I waited and never got an answer` is a report.
    let is_report = words.get(0).is_some_and(|it| CUES.report_subjects.contains(&it));
    let orders = opens
        || words.has(cue_phrases::FROM_NOW_ON)
        || (!is_report && words.has(cue_phrases::STANDING_ORDERS));
    orders && !text.ends_with(['?', '？'])
}

/// Returns whether a sentence only asks to remember the one before it: `Remember that.`
pub fn asks_to_remember(text: &str) -> bool {
    const WORDS_MAX: usize = 6;
    let words = WordList::of(text);
    // `I don't remember that` and `Remember that we use pnpm` say something else.
    let is_whole = words.find(cue_phrases::REMEMBER_THAT).is_some_and(|(at, width)| {
        let is_polite = |it: &str| CUES.polite_words.contains(&it);
        at + width == words.len() && words.iter().take(at).all(is_polite)
    });
    words.len() <= WORDS_MAX && is_whole && !text.ends_with(['?', '？', ':'])
}

fn is_fact(text: &str) -> bool {
    /// `Yes it is` answers something.
    const WORDS_MIN: usize = 4;
    const SUBJECT_WORDS_MAX: usize = 7;
    /// Questions without a mark.
    const AUXILIARIES: [&str; 12] = [
        "do", "does", "did", "can", "could", "should", "would", "will", "may", "kann", "soll",
        "darf",
    ];
    let words = WordList::of(text);
    // With its first word as a verb it is a question or an order.
    let opens_with_subject = words.opens_with(cue_phrases::SUBJECTS);
    let from = usize::from(!opens_with_subject);
    let Some((verb, _)) = words.find_from(from, cue_phrases::STATES) else { return false };
    if words.get(0).is_some_and(|it| AUXILIARIES.contains(&it)) {
        return false;
    }
    let is_in_subject = |cues| words.find_from(0, cues).is_some_and(|it| it.0 < verb);
    // `Check the build is green`: behind an order, the subject begins later.
    let is_order = !opens_with_subject
        && words.find_from(1, cue_phrases::SUBJECTS).is_some_and(|it| it.0 < verb);
    words.len() >= WORDS_MIN
        && verb <= SUBJECT_WORDS_MAX
        && !is_order
        && !words.has(cue_phrases::REQUESTS)
        && !is_in_subject(cue_phrases::CONDITIONS)
        && !is_in_subject(cue_phrases::QUESTION_WORDS)
        && (opens_with_subject || !is_in_subject(cue_phrases::BACK_REFERENCES))
        && !text.ends_with(['?', '？'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_may_begin_with_a_small_letter() {
        let found = classify_sentences("Staging is on port 9191 now. can you rerun it? ok");
        let found: Vec<&str> = found.iter().map(|it| it.text).collect();
        assert_eq!(found, ["Staging is on port 9191 now.", "can you rerun it?", "ok"]);
        assert_eq!(classify_sentences("Use approx. three of them, incl. the spare one.").len(), 1);
    }

    #[test]
    fn facts_differ_from_questions_and_orders() {
        let is_fact = |text| classify_sentences(text)[0].is_fact;
        for text in [
            "The staging database runs on port 9191 now.",
            "Staging moved to Falkenstein last week",
            "I'm allergic to peanuts.",
            "Priya is on leave until Monday",
            "We have two gauges at Brest",
            "Our client wants the report in Portuguese",
            "Die Testdatenbank läuft auf Port 9191.",
            "La réunion est le mardi",
        ] {
            assert!(is_fact(text), "{text}");
        }
        for text in [
            "Is the database on port 9191?",
            "Check the build is green",
            "Make sure that staging is up",
            "Please say what staging runs on",
            "It is red again today",
            "Fix what is broken there",
            "Import the Brest table",
            "Yes, that is right",
            "If the test is red, stop",
            "where is the config",
            "Does Priya have access to staging now",
            "Can staging use port 9191",
            "Run the tests and tell me how many are left",
        ] {
            assert!(!is_fact(text), "{text}");
        }
    }

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
        let firewall = "The firewall rule is still open for 8443; someone should close it.";
        assert_ne!(classify_sentences(firewall)[0].class, StatementClass::Decision);
        assert_eq!(
            super::classify_sentences("Open questions: which day it is.")[0].class,
            StatementClass::Open
        );
    }
}
