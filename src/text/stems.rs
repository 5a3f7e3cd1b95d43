//! Brings the forms of a word together by their stem.
//!
//! Three ways: [`StemCache`] hashes the stems of a text in its language, without stop words.
//! [`EnglishStems`] is for search, which stems every text alike, since a question may be in another language
//! than the logs, and knows irregular forms, since people ask in another tense than they log in.
//! [`english_stem`] is for comparing two statements, which use the same forms.

use std::{borrow::Cow, collections::HashMap, fmt};

use rust_stemmers::{Algorithm, Stemmer};

use super::{
    hash::{HashedMap, HashedSet, hash_bytes},
    language::{LANGUAGES_COUNT, Language},
    lexicon::SEARCH,
    words::{self, WordToken},
};

/// Stems words of several languages, and remembers the stems.
#[derive(Default)]
pub(crate) struct StemCache {
    per_language: Vec<LanguageStems>,
}

#[derive(Default)]
struct LanguageStems {
    stemmer: Option<Stemmer>,
    stop: HashedSet,
    /// Hash of a word to hash of its stem; 0 for a stop word.
    stem_by_word: HashedMap<u64>,
    ready: bool,
}

/// The most words that are remembered per language, so that a log of random bytes costs no memory.
const CACHED_WORDS_MAX: usize = 400_000;

impl StemCache {
    /// Calls `each` with the hash of the stem of each word of `text` that is no stop word, in order.
    pub(crate) fn for_each_stem(
        &mut self,
        language: Language,
        text: &str,
        mut each: impl FnMut(u64),
    ) {
        self.per_language.resize_with(LANGUAGES_COUNT, LanguageStems::default);
        let vocabulary = &mut self.per_language[language.index()];
        vocabulary.prepare(language);
        let mut buffer = String::new();
        words::for_each_token(text, |word| match word {
            WordToken::Letters(letters) => {
                let stem = vocabulary.stem(letters, &mut buffer);
                if stem != 0 {
                    each(stem);
                }
            }
            WordToken::Pair(pair) => each(hash_bytes(pair.as_bytes())),
        });
    }
}

impl LanguageStems {
    fn prepare(&mut self, language: Language) {
        if std::mem::replace(&mut self.ready, true) {
            return;
        }
        self.stemmer = language.stemmer();
        let words = language.words().into_iter();
        let words = words.flat_map(|it| it.function_words.iter().chain(&*it.filler_words));
        self.stop = words.map(|it| hash_bytes(it.as_bytes())).collect();
    }

    /// Returns the hash of the stem, or 0 for a word that says nothing.
    fn stem(&mut self, word: &str, buffer: &mut String) -> u64 {
        let raw = hash_bytes(word.as_bytes());
        if let Some(&stem) = self.stem_by_word.get(&raw) {
            return stem;
        }
        buffer.clear();
        if word.is_ascii() {
            buffer.push_str(word);
            buffer.make_ascii_lowercase();
        } else {
            buffer.extend(
                word.chars().map(|c| if c == '’' { '\'' } else { c }).flat_map(char::to_lowercase),
            );
        }
        let says_nothing = buffer.chars().nth(1).is_none()
            || !buffer.chars().any(char::is_alphabetic)
            || self.stop.contains(&hash_bytes(buffer.as_bytes()));
        let stem = if says_nothing {
            0
        } else {
            let stem = self.stemmer.as_ref().map(|s| s.stem(buffer));
            hash_bytes(stem.as_deref().unwrap_or(buffer).as_bytes())
        };
        if self.stem_by_word.len() >= CACHED_WORDS_MAX {
            self.stem_by_word.clear();
        }
        self.stem_by_word.insert(raw, stem);
        stem
    }
}

/// Returns the English stem of a word in lower case (Porter 2).
pub(crate) fn english_stem(word: &str) -> Cow<'_, str> {
    Stemmer::create(Algorithm::English).stem(word)
}

/// Brings English forms together by rule (Porter 2), and irregular ones ("went") by a list.
pub(crate) struct EnglishStems {
    stemmer: Stemmer,
    irregular: HashMap<&'static str, &'static str>,
}

impl EnglishStems {
    pub(crate) fn new() -> Self {
        let forms = SEARCH.irregular_forms.iter().filter_map(|all| all.split_first());
        let irregular = forms.flat_map(|(first, others)| others.iter().map(|it| (*it, *first)));
        Self { stemmer: Stemmer::create(Algorithm::English), irregular: irregular.collect() }
    }

    /// Returns the stem of a word in lower case. Words of two letters, and those that are not in plain Latin
    /// letters, have none but themselves.
    pub(crate) fn stem<'w>(&self, word: &'w str) -> Cow<'w, str> {
        let is_latin = word.chars().all(|it| it.is_ascii_lowercase());
        if !(is_latin && word.len() > 1) {
            return word.into();
        }
        let word = self.irregular.get(word).copied().unwrap_or(word);
        if word.len() > 2 { self.stemmer.stem(word) } else { word.into() }
    }
}

impl fmt::Debug for EnglishStems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnglishStems").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stems(text: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let language = Language::detect([text].into_iter());
        StemCache::default().for_each_stem(language, text, |stem| found.push(stem));
        found
    }

    #[track_caller]
    fn check_same(a: &str, b: &str) {
        assert_eq!(stems(a), stems(b), "{a:?} {b:?}");
        assert!(!stems(a).is_empty(), "{a:?}");
    }

    #[test]
    fn forms_of_a_word_meet() {
        check_same("The tests are failing", "the test was failed");
        check_same("Jamie’s plan", "jamie's plans");
        check_same(
            "die Häuser wurden gebaut und nicht verkauft",
            "Häuser gebaut verkauft und nicht",
        );
        check_same("ÉTÉ à Zürich", "été à zürich");
    }

    #[test]
    fn scripts_without_spaces_give_pairs() {
        assert_eq!(stems("東京都に行く").len(), 5);
        assert_eq!(stems("東").len(), 1);
        assert_eq!(stems("использую базы данных").len(), 3);
    }
}
