//! Words of a search: from text to the terms of a question.
//!
//! A word is a run of letters and digits in lower case without marks; scripts that set no spaces give
//! overlapping pairs of characters. A word of Latin letters counts by its English stem (Porter 2), so that
//! "ran" is not found by "runs" but "running" is; numbers keep their points ("3.2") and lose their commas.

use std::{borrow::Cow, collections::HashMap};

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

/// Words that say nothing in a question.
const STOP: &[&str] = &[
    "a",
    "about",
    "after",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "but",
    "by",
    "can",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "during",
    "each",
    "for",
    "from",
    "get",
    "got",
    "had",
    "happen",
    "happened",
    "happening",
    "happens",
    "has",
    "have",
    "having",
    "he",
    "her",
    "hers",
    "him",
    "his",
    "how",
    "i",
    "if",
    "in",
    "into",
    "is",
    "it",
    "its",
    "just",
    "many",
    "may",
    "me",
    "might",
    "more",
    "most",
    "much",
    "my",
    "no",
    "not",
    "of",
    "off",
    "on",
    "one",
    "only",
    "or",
    "other",
    "our",
    "out",
    "over",
    "own",
    "same",
    "she",
    "should",
    "so",
    "some",
    "such",
    "than",
    "that",
    "the",
    "their",
    "them",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "up",
    "us",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "while",
    "who",
    "whom",
    "why",
    "will",
    "with",
    "would",
    "you",
    "your",
    "s",
    "t",
    "d",
    "ll",
    "m",
    "re",
    "ve",
    "don",
    // German, French, Spanish: what stands in most questions.
    "der",
    "die",
    "das",
    "und",
    "ist",
    "war",
    "wer",
    "wann",
    "wie",
    "wo",
    "warum",
    "ein",
    "eine",
    "im",
    "den",
    "dem",
    "von",
    "zu",
    "mit",
    "le",
    "la",
    "les",
    "des",
    "du",
    "et",
    "est",
    "qui",
    "que",
    "quand",
    "une",
    "un",
    "el",
    "los",
    "las",
    "de",
    "y",
    "es",
    "en",
    "quien",
    "cuando",
    "donde",
];

/// The most words that are remembered; a log of random bytes must not cost memory.
const KNOWN_MAX: usize = 400_000;

/// The most terms of a question that count.
pub(super) const TERMS_MAX: usize = 64;

/// What a word of a text is to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It says nothing.
    Stop,
    /// It says something, and not what is asked for.
    Other,
    /// A term of the question, by its number.
    Term(usize),
}

/// The terms of a question, and what each word seen so far is to it.
pub(super) struct Terms {
    stemmer: Stemmer,
    stems: Vec<String>,
    known: HashMap<String, Role>,
}

impl Terms {
    /// Takes the words of a question that say something; where none does, all of them if `or_all`.
    pub(super) fn of(question: &str, or_all: bool) -> Self {
        let mut terms = Self {
            stemmer: Stemmer::create(Algorithm::English),
            stems: Vec::new(),
            known: HashMap::new(),
        };
        let mut all = Vec::new();
        for_words(question, |word| all.push(word.to_owned()));
        let says = |it: &&String| !is_stop(it);
        let mut words: Vec<&String> = all.iter().filter(says).collect();
        if words.is_empty() && or_all {
            words = all.iter().collect();
        }
        for word in words {
            let stem = terms.stem(word).into_owned();
            if !terms.stems.contains(&stem) && terms.stems.len() < TERMS_MAX {
                terms.stems.push(stem);
            }
        }
        terms
    }

    pub(super) fn len(&self) -> usize {
        self.stems.len()
    }

    /// Returns the terms in the order of a text, 64 or above for what is none: for pairs.
    pub(super) fn sequence(&mut self, text: &str) -> Vec<Role> {
        let mut sequence = Vec::new();
        self.each(text, |role| sequence.push(role));
        sequence
    }

    /// Calls `each` with what each word of a text is.
    pub(super) fn each(&mut self, text: &str, mut each: impl FnMut(Role)) {
        for_words(text, |word| {
            if let Some(&role) = self.known.get(word) {
                return each(role);
            }
            let stem = self.stem(word);
            let at = self.stems.iter().position(|it| *it == stem);
            let role = match at {
                Some(at) => Role::Term(at),
                None if is_stop(word) => Role::Stop,
                None => Role::Other,
            };
            if self.known.len() < KNOWN_MAX {
                self.known.insert(word.to_owned(), role);
            }
            each(role);
        });
    }

    /// Returns a set of the terms in a text, as bits.
    pub(super) fn mask(&mut self, text: &str) -> u64 {
        let mut mask = 0;
        self.each(text, |role| {
            if let Role::Term(at) = role {
                mask |= 1 << at;
            }
        });
        mask
    }

    fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        let is_latin = word.chars().all(|it| it.is_ascii_lowercase());
        if is_latin && word.len() > 2 { self.stemmer.stem(word) } else { word.into() }
    }
}

fn is_stop(word: &str) -> bool {
    STOP.contains(&word)
}

/// Calls `each` with each word of a text, in lower case and without marks.
pub(super) fn for_words(text: &str, mut each: impl FnMut(&str)) {
    let folded: Cow<'_, str> = if text.is_ascii() {
        text.to_ascii_lowercase().into()
    } else {
        text.nfkd().filter(|it| !is_combining_mark(*it)).flat_map(char::to_lowercase).collect()
    };
    let mut word = String::new();
    let mut before: Option<char> = None;
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        if is_spaceless(c) {
            flush(&mut word, &mut each);
            let next = chars.peek().copied().filter(|it| is_spaceless(*it));
            match next {
                Some(next) => each(&String::from_iter([c, next])),
                None if before.is_none_or(|it| !is_spaceless(it)) => each(&c.to_string()),
                None => {}
            }
        } else if c.is_alphanumeric() {
            word.push(c);
        } else {
            let digit = |it: Option<char>| it.is_some_and(|it| it.is_ascii_digit());
            let joins = digit(before) && digit(chars.peek().copied());
            match c {
                '.' if joins => word.push(c),
                ',' if joins => {}
                // An apostrophe belongs to a short ending, which says nothing.
                _ => flush(&mut word, &mut each),
            }
        }
        before = Some(c);
    }
    flush(&mut word, &mut each);
}

fn flush(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(word);
        word.clear();
    }
}

/// Whether a character is of a script that sets no spaces between words.
fn is_spaceless(c: char) -> bool {
    matches!(u32::from(c),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF
        | 0x4E00..=0x9FFF | 0xF900..=0xFAFF | 0x20000..=0x3134F)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_scripts_without_spaces_give_pairs() {
        for (text, expected) in [
            ("Café, naïve!", &["cafe", "naive"][..]),
            ("$1,200 and 3.2x v2.0.1.", &["1200", "and", "3.2x", "v2.0.1"]),
            ("東京都", &["東京", "京都"]),
            ("a 猫 b", &["a", "猫", "b"]),
            ("привет Мир", &["привет", "мир"]),
            ("", &[]),
        ] {
            let mut words = Vec::new();
            for_words(text, |it| words.push(it.to_owned()));
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn a_question_is_its_words_that_say_something() {
        let mut terms = Terms::of("When did the importers run?", true);
        assert_eq!(terms.len(), 2);
        assert_eq!(terms.mask("The importer is running"), 0b11);
        assert_eq!(terms.mask("It was there"), 0);
        // One of such words alone asks for them.
        assert_eq!(Terms::of("who is it", true).len(), 3);
    }
}
