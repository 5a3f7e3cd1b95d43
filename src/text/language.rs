//! Detects the language of a text, by its function words or its script.

use std::sync::OnceLock;

use rust_stemmers::{Algorithm, Stemmer};

use super::{
    hash::{HashedMap, hash_bytes},
    lexicon::{self, LanguageWords},
    words::{self, WordToken},
};

/// A language that we can stem or whose function words we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language(usize);

/// The languages, by their codes in `languages.yaml`; the first is none. Russian, Greek, and Arabic are
/// detected by their scripts.
const LANGUAGES: [(&str, Option<Algorithm>); 14] = [
    ("", None),
    ("en", Some(Algorithm::English)),
    ("de", Some(Algorithm::German)),
    ("fr", Some(Algorithm::French)),
    ("es", Some(Algorithm::Spanish)),
    ("it", Some(Algorithm::Italian)),
    ("pt", Some(Algorithm::Portuguese)),
    ("nl", Some(Algorithm::Dutch)),
    ("ru", Some(Algorithm::Russian)),
    ("el", Some(Algorithm::Greek)),
    ("ar", Some(Algorithm::Arabic)),
    ("sv", Some(Algorithm::Swedish)),
    ("da", Some(Algorithm::Danish)),
    ("tr", Some(Algorithm::Turkish)),
];

/// How many languages there are, none of them included.
pub(super) const LANGUAGES_COUNT: usize = LANGUAGES.len();

impl Language {
    /// No language that we know: words are only made lower case.
    pub(crate) const UNKNOWN: Self = Self(0);
    const ENGLISH: Self = Self(1);
    pub(crate) const FRENCH: Self = Self(3);
    pub(crate) const SPANISH: Self = Self(4);
    pub(crate) const ITALIAN: Self = Self(5);
    const RUSSIAN: Self = Self(8);
    const GREEK: Self = Self(9);
    const ARABIC: Self = Self(10);

    /// Returns its frequent words, if we know any.
    pub(super) fn words(self) -> Option<&'static LanguageWords> {
        lexicon::LANGUAGES.get(LANGUAGES[self.0].0)
    }

    /// Returns what makes its stems, if anything does.
    pub(super) fn stemmer(self) -> Option<Stemmer> {
        LANGUAGES[self.0].1.map(Stemmer::create)
    }

    /// Returns the number of the language.
    pub(crate) fn index(self) -> usize {
        self.0
    }

    /// Returns whether all nouns have a capital, so that a capital does not show a name.
    pub(crate) fn capitalises_nouns(self) -> bool {
        self.0 == 2
    }

    /// Detects the language of some lines.
    ///
    /// Latin text without any function word counts as English, the language of most short notes.
    pub(crate) fn detect<'t>(lines: impl Iterator<Item = &'t str>) -> Self {
        /// Enough words to be sure.
        const WORDS_MAX: usize = 600;
        let table = function_word_table();
        let mut hits = [0_u32; LANGUAGES.len()];
        let (mut count, mut latin, mut scripts) = (0, 0, [0_u32; 3]);
        let mut buffer = String::new();
        for line in lines {
            words::for_each_token(line, |word| {
                count += 1;
                let WordToken::Letters(letters) = word else { return };
                match letters.chars().next().map_or(0, u32::from) {
                    0..=0x24F => latin += 1,
                    0x370..=0x3FF => scripts[1] += 1,
                    0x400..=0x52F => scripts[0] += 1,
                    0x600..=0x6FF => scripts[2] += 1,
                    _ => {}
                }
                buffer.clear();
                if letters.is_ascii() {
                    buffer.push_str(letters);
                    buffer.make_ascii_lowercase();
                } else {
                    buffer.extend(letters.chars().flat_map(char::to_lowercase));
                }
                for &language in
                    table.get(&hash_bytes(buffer.as_bytes())).map_or(&[][..], Vec::as_slice)
                {
                    hits[language] += 1;
                }
            });
            if count > WORDS_MAX {
                break;
            }
        }
        let others = [Self::RUSSIAN, Self::GREEK, Self::ARABIC];
        if let Some(i) = (0..3).find(|&i| scripts[i] * 2 > count.try_into().unwrap_or(u32::MAX)) {
            return others[i];
        }
        if latin * 2 < count {
            return Self::UNKNOWN;
        }
        let best =
            (1..LANGUAGES.len()).max_by_key(|&i| (hits[i], LANGUAGES.len() - i)).unwrap_or(1);
        if hits[best] == 0 { Self::ENGLISH } else { Self(best) }
    }
}

fn function_word_table() -> &'static HashedMap<Vec<usize>> {
    static TABLE: OnceLock<HashedMap<Vec<usize>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = HashedMap::<Vec<usize>>::default();
        for i in 0..LANGUAGES.len() {
            for word in Language(i).words().iter().flat_map(|it| it.function_words.iter()) {
                table.entry(hash_bytes(word.as_bytes())).or_default().push(i);
            }
        }
        table
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_language(text: &str, expected: usize) {
        assert_eq!(Language::detect([text].into_iter()), Language(expected), "{text:?}");
    }

    #[test]
    fn each_language_has_words() {
        let known: Vec<&str> = lexicon::LANGUAGES.keys().copied().collect();
        let mut ours: Vec<&str> = LANGUAGES[1..].iter().map(|it| it.0).collect();
        ours.sort_unstable();
        assert_eq!(known, ours);
    }

    #[test]
    fn languages_are_detected() {
        check_language("we decided to keep it because of the tests", 1);
        check_language("cargo test --lib", 1);
        check_language("wir haben das nicht mit der Datenbank gemacht", 2);
        check_language("nous avons décidé de ne pas utiliser le serveur dans les tests", 3);
        check_language("se decidió no usar el servidor para las pruebas", 4);
        check_language("東京都に行く", 0);
        check_language("мы решили использовать базу", 8);
    }
}
