//! Words of a search: from text to the terms of a question.
//!
//! A word is a run of letters and digits in lower case without marks; scripts that set no spaces give
//! overlapping pairs of characters, and a question for a single character finds the pairs with it. A Korean word
//! counts without its particle. A word of Latin letters counts by its English stem (Porter 2), so that
//! "ran" is not found by "runs" but "running" is; numbers keep their points ("3.2") and lose their commas.

use std::{borrow::Cow, collections::HashMap};

use unicode_normalization::UnicodeNormalization as _;

use crate::{
    memory::hash::ContentHash,
    text::{lexicon::SEARCH, scripts, stems::EnglishStems, words},
};

/// The most words that are remembered; a log of random bytes must not cost memory.
const CACHED_WORDS_MAX: usize = 400_000;

/// The most terms of a question that count.
pub(super) const TERMS_MAX: usize = 64;

/// From words to the numbers that stand for their stems.
pub(super) struct QueryStemmer {
    stems: EnglishStems,
    /// `None` for a word that says nothing.
    stem_by_word: HashMap<String, Option<u64>>,
}

impl QueryStemmer {
    pub(super) fn new() -> Self {
        Self { stems: EnglishStems::new(), stem_by_word: HashMap::new() }
    }

    /// Calls `each` for each word of a text: with its stem as a number, or `None` where it says
    /// nothing.
    pub(super) fn for_each_stem(&mut self, text: &str, mut each: impl FnMut(Option<u64>)) {
        words::for_each_folded(text, |word| each(self.stem_of(word)));
    }

    /// Calls `each` for each word of a text that says something, with its stem and its place, and for the characters
    /// of a pair, which are words of their own in a question. Returns how many words that are.
    pub(super) fn for_each_place(&mut self, text: &str, mut each: impl FnMut(u64, u32)) -> u32 {
        let mut place = 0;
        words::for_each_folded(text, |word| {
            let stem = self.stem_of(word);
            if word.starts_with(scripts::is_ideograph) {
                for (at, (from, c)) in (place..).zip(word.char_indices().take(2)) {
                    let stem = self.stem_of(&word[from..from + c.len_utf8()]);
                    if let Some(stem) = stem {
                        each(stem, at);
                    }
                }
            }
            if let Some(stem) = stem {
                each(stem, place);
                place += 1;
            }
        });
        place
    }

    /// Returns the stem of a word as a number, or `None` where it says nothing.
    fn stem_of(&mut self, word: &str) -> Option<u64> {
        if let Some(&known) = self.stem_by_word.get(word) {
            return known;
        }
        let stem = (!self.is_stop_form(word)).then(|| self.stem_id(word));
        if self.stem_by_word.len() < CACHED_WORDS_MAX {
            self.stem_by_word.insert(word.to_owned(), stem);
        }
        stem
    }

    /// Returns whether a word, or another form of it, says nothing: "getting" like "get".
    fn is_stop_form(&self, word: &str) -> bool {
        is_stop_word(word) || is_stop_word(&self.stems.stem(word))
    }

    /// Returns the number of a word's stem.
    pub(super) fn stem_id(&self, word: &str) -> u64 {
        let word = without_particle(word);
        ContentHash::of(self.stems.stem(&word).as_bytes()).prefix64()
    }
}

/// Returns a Korean word without its particle: `서버` of `서버가`. Folding has split its syllables into letters.
fn without_particle(word: &str) -> Cow<'_, str> {
    /// Of shorter words the last syllable is no particle.
    const SYLLABLES_MIN: usize = 2;
    if !word.starts_with(scripts::is_hangul_letter) {
        return word.into();
    }
    let mut word: String = word.nfc().collect();
    let bare = SEARCH.korean_particles.iter().filter_map(|it| word.strip_suffix(it));
    let shortest = bare.filter(|it| it.chars().count() >= SYLLABLES_MIN).map(str::len).min();
    word.truncate(shortest.unwrap_or(word.len()));
    word.into()
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
        stems.for_each_place(text, |stem, _| {
            let at = self.stems.iter().position(|it| *it == stem);
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
    SEARCH.stop_words.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn words_of_other_scripts_are_found() {
        let mut stems = QueryStemmer::new();
        for (question, text) in [
            ("猫", "庭に猫がいる"),
            ("猫", "黒猫"),
            ("港", "港口的潮汐表"),
            ("潮汐", "港口的潮汐表已更新。"),
            ("ｻｰﾊﾞｰ", "サーバーを再起動した"),
            ("ＡＰＩ", "新しいAPIキー"),
            ("佐々木", "佐々木さんと話した"),
            ("서버", "서버가 다시 시작되었다"),
            ("서버를", "서버에서 백업"),
            ("น้ำ", "ระดับน้ำวันนี้"),
        ] {
            let terms = QueryTerms::of(question, &mut stems);
            let all = u64::MAX >> (64 - terms.stems.len());
            assert_eq!(terms.mask(text, &mut stems), all, "{question} {text}");
        }
        assert_eq!(QueryTerms::of("猫", &mut stems).mask("犬がいる", &mut stems), 0);
        // What only asks says nothing.
        assert_eq!(QueryTerms::of("潮汐是什么？", &mut stems).stems.len(), 2);
    }
}
