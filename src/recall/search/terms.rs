//! Words of a search: from text to the terms of a question.
//!
//! A word is a run of letters and digits in lower case without marks; scripts that set no spaces give
//! overlapping pairs of characters. A word of Latin letters counts by its English stem (Porter 2), so that
//! "ran" is not found by "runs" but "running" is; numbers keep their points ("3.2") and lose their commas.

use std::{borrow::Cow, collections::HashMap};

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{UnicodeNormalization as _, char::is_combining_mark};

use crate::memory::hash::ContentHash;

/// Words that say nothing in a question.
const STOP_WORDS: &[&str] = &[
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

/// Forms that no rule of a stemmer brings together: of each line the first is what the others count as.
const IRREGULAR_FORMS: &[&[&str]] = &[
    &["do", "done"],
    &["get", "gotten"],
    &["go", "went", "gone"],
    &["buy", "bought"],
    &["bring", "brought"],
    &["think", "thought"],
    &["teach", "taught"],
    &["catch", "caught"],
    &["feel", "felt"],
    &["keep", "kept"],
    &["lose", "lost"],
    &["make", "made"],
    &["meet", "met"],
    &["pay", "paid"],
    &["say", "said"],
    &["sell", "sold"],
    &["send", "sent"],
    &["sit", "sat"],
    &["sleep", "slept"],
    &["spend", "spent"],
    &["stand", "stood"],
    &["tell", "told"],
    &["win", "won"],
    &["build", "built"],
    &["hear", "heard"],
    &["hold", "held"],
    &["write", "wrote", "written"],
    &["take", "took", "taken"],
    &["give", "gave", "given"],
    &["see", "seen"],
    &["eat", "ate", "eaten"],
    &["drive", "drove", "driven"],
    &["ride", "rode", "ridden"],
    &["speak", "spoke", "spoken"],
    &["break", "broke", "broken"],
    &["choose", "chose", "chosen"],
    &["wear", "wore", "worn"],
    &["grow", "grew", "grown"],
    &["know", "knew", "known"],
    &["throw", "threw", "thrown"],
    &["fly", "flew", "flown"],
    &["draw", "drew", "drawn"],
    &["begin", "began", "begun"],
    &["sing", "sang", "sung"],
    &["swim", "swam", "swum"],
    &["run", "ran"],
    &["come", "came"],
    &["become", "became"],
    &["fall", "fell", "fallen"],
    &["forget", "forgot", "forgotten"],
    &["hide", "hid", "hidden"],
    &["rise", "rose", "risen"],
    &["fight", "fought"],
    &["seek", "sought"],
    &["lead", "led"],
    &["understand", "understood"],
    &["shoot", "shot"],
    &["steal", "stole", "stolen"],
    &["wake", "woke", "woken"],
    &["show", "shown"],
    &["mean", "meant"],
    &["dream", "dreamt"],
    &["learn", "learnt"],
    &["feed", "fed"],
    &["dig", "dug"],
    &["hang", "hung"],
    &["stick", "stuck"],
    &["strike", "struck"],
    &["sweep", "swept"],
    &["bend", "bent"],
    &["lend", "lent"],
    &["drink", "drank", "drunk"],
    &["shake", "shook", "shaken"],
    &["freeze", "froze", "frozen"],
    &["bite", "bitten"],
    &["tear", "tore", "torn"],
    &["swear", "swore", "sworn"],
    &["blow", "blew", "blown"],
    &["child", "children"],
    &["man", "men"],
    &["woman", "women"],
    &["person", "people"],
    &["foot", "feet"],
    &["mouse", "mice"],
    &["wife", "wives"],
    &["life", "lives"],
    &["knife", "knives"],
    &["good", "better", "best"],
    &["bad", "worse", "worst"],
];

/// The most words that are remembered; a log of random bytes must not cost memory.
const CACHED_WORDS_MAX: usize = 400_000;

/// The most terms of a question that count.
pub(super) const TERMS_MAX: usize = 64;

/// From words to the numbers that stand for their stems.
pub(super) struct QueryStemmer {
    stemmer: Stemmer,
    irregular: HashMap<&'static str, &'static str>,
    /// `None` for a word that says nothing.
    stem_by_word: HashMap<String, Option<u64>>,
}

impl QueryStemmer {
    pub(super) fn new() -> Self {
        let forms = IRREGULAR_FORMS.iter().filter_map(|all| all.split_first());
        let irregular = forms.flat_map(|(first, others)| others.iter().map(|it| (*it, *first)));
        Self {
            stemmer: Stemmer::create(Algorithm::English),
            irregular: irregular.collect(),
            stem_by_word: HashMap::new(),
        }
    }

    /// Calls `each` for each word of a text: with its stem as a number, or `None` where it says
    /// nothing.
    pub(super) fn for_each_stem(&mut self, text: &str, mut each: impl FnMut(Option<u64>)) {
        for_each_word(text, |word| {
            if let Some(&known) = self.stem_by_word.get(word) {
                return each(known);
            }
            let stem = (!self.is_stop_form(word)).then(|| self.stem_id(word));
            if self.stem_by_word.len() < CACHED_WORDS_MAX {
                self.stem_by_word.insert(word.to_owned(), stem);
            }
            each(stem);
        });
    }

    /// Returns whether a word, or another form of it, says nothing: "getting" like "get".
    fn is_stop_form(&self, word: &str) -> bool {
        is_stop_word(word) || is_stop_word(&self.stem(word))
    }

    /// Returns the number of a word's stem.
    pub(super) fn stem_id(&self, word: &str) -> u64 {
        ContentHash::of(self.stem(word).as_bytes()).prefix64()
    }

    fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        let is_latin = word.chars().all(|it| it.is_ascii_lowercase());
        if !(is_latin && word.len() > 1) {
            return word.into();
        }
        let word = self.irregular.get(word).copied().unwrap_or(word);
        if word.len() > 2 { self.stemmer.stem(word) } else { word.into() }
    }
}

/// The words of a question that say something.
#[derive(Clone, Default)]
pub(super) struct QueryTerms {
    /// By their numbers, each once.
    pub(super) stems: Vec<u64>,
    /// In the order of the question: places in `stems`.
    pub(super) sequence: Vec<usize>,
}

impl QueryTerms {
    /// Reads a question.
    pub(super) fn of(question: &str, stems: &mut QueryStemmer) -> Self {
        let mut terms = Self { stems: Vec::new(), sequence: Vec::new() };
        stems.for_each_stem(question, |stem| {
            let Some(stem) = stem else { return };
            let at = terms.stems.iter().position(|it| *it == stem);
            if at.is_none() && terms.stems.len() == TERMS_MAX {
                return;
            }
            terms.sequence.push(at.unwrap_or(terms.stems.len()));
            if at.is_none() {
                terms.stems.push(stem);
            }
        });
        terms
    }

    /// Returns which terms a text has, as bits.
    pub(super) fn mask(&self, text: &str, stems: &mut QueryStemmer) -> u64 {
        let mut mask = 0;
        stems.for_each_stem(text, |stem| {
            let at = stem.and_then(|stem| self.stems.iter().position(|it| *it == stem));
            mask |= at.map_or(0, |at| 1 << at);
        });
        mask
    }

    /// Returns the pairs of different terms that follow each other in the question, each once.
    pub(super) fn adjacent_pairs(&self) -> Vec<(usize, usize)> {
        let mut pairs = Vec::new();
        for two in self.sequence.windows(2) {
            if !pairs.contains(&(two[0], two[1])) {
                pairs.push((two[0], two[1]));
            }
        }
        pairs
    }
}

fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.contains(&word)
}

/// Calls `each` with each word of a text, in lower case and without marks.
pub(super) fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let folded: Cow<'_, str> = if text.is_ascii() {
        text.to_ascii_lowercase().into()
    } else {
        text.nfkd().filter(|it| !is_combining_mark(*it)).flat_map(char::to_lowercase).collect()
    };
    let mut word = String::new();
    let mut before: Option<char> = None;
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        if is_spaceless_script(c) {
            flush(&mut word, &mut each);
            let next = chars.peek().copied().filter(|it| is_spaceless_script(*it));
            match next {
                Some(next) => each(&String::from_iter([c, next])),
                None if before.is_none_or(|it| !is_spaceless_script(it)) => each(&c.to_string()),
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
pub(super) fn is_spaceless_script(c: char) -> bool {
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
            for_each_word(text, |it| words.push(it.to_owned()));
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn a_question_is_its_words_that_say_something() {
        let mut stems = QueryStemmer::new();
        let terms = QueryTerms::of("When did the importers run?", &mut stems);
        assert_eq!(terms.stems.len(), 2);
        assert_eq!(terms.mask("The importer is running", &mut stems), 0b11);
        assert_eq!(terms.mask("It ran", &mut stems), 0b10);
        assert_eq!(terms.mask("It was there", &mut stems), 0);
        assert_eq!(terms.adjacent_pairs(), [(0, 1)]);
        assert!(QueryTerms::of("who is it", &mut stems).stems.is_empty());
    }
}
