//! The words of a text, and the cue phrases among them.

use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation as _;

use crate::{
    engine::extractive::cue_phrases::{self, CueTable},
    text::{
        hash::{HashedMap, hash_bytes},
        scripts,
    },
};

/// The words of a text in lower case, prepared for the search for cue phrases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordList {
    pub(super) lower: String,
    list: Vec<WordEntry>,
    /// The tables of which a phrase may occur: the bits of all words.
    pub(super) tables: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordEntry {
    /// Its end in the lower-case text; it begins at the end of the previous word.
    end: usize,
    source_offset: usize,
    hash: u64,
    /// The tables with a phrase that begins with this word, as [`CueTable::bit`].
    tables: u64,
}

impl WordList {
    pub(crate) fn of(text: &str) -> Self {
        let mut words = Self::default();
        words.read(text);
        words
    }

    /// Forgets its words and reads those of a text, in the memory that it has.
    pub(crate) fn read(&mut self, text: &str) {
        self.lower.clear();
        self.lower.reserve(text.len());
        self.list.clear();
        self.list.reserve(text.len() / 5);
        self.tables = 0;
        for (at, word) in text.unicode_word_indices() {
            let start = self.lower.len();
            push_lowercase(&mut self.lower, word);
            let word = &self.lower[start..];
            let hash = hash_bytes(word.as_bytes());
            let tables = LEXICON.tables_of(word, hash);
            self.tables |= tables;
            self.list.push(WordEntry { end: self.lower.len(), source_offset: at, hash, tables });
        }
    }

    /// Returns whether a phrase of one of the tables, given as bits, may occur in a text.
    pub(crate) fn may_occur_in(text: &str, tables: u64) -> bool {
        let mut lower = String::new();
        text.unicode_words().any(|word| {
            lower.clear();
            push_lowercase(&mut lower, word);
            LEXICON.tables_of(&lower, hash_bytes(lower.as_bytes())) & tables != 0
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&str> {
        let end = self.list.get(at)?.end;
        let start = at.checked_sub(1).map_or(0, |before| self.list[before].end);
        Some(&self.lower[start..end])
    }

    /// Returns the byte offset of a word in the original text.
    pub(crate) fn offset(&self, at: usize) -> Option<usize> {
        self.list.get(at).map(|word| word.source_offset)
    }

    /// Returns the first of `cues` in the text, as word index and number of words.
    pub(crate) fn find(&self, cues: CueTable) -> Option<(usize, usize)> {
        self.find_from(0, cues)
    }

    /// Like [`Self::find`], from word `from` on.
    pub(crate) fn find_from(&self, from: usize, cues: CueTable) -> Option<(usize, usize)> {
        if !self.may_contain(cues.bit()) {
            return None;
        }
        (from..self.len()).find_map(|at| self.longest_cue_at(at, cues).map(|width| (at, width)))
    }

    pub(crate) fn has(&self, cues: CueTable) -> bool {
        self.find(cues).is_some()
    }

    /// Returns whether a phrase of one of the tables, given as bits, may occur in the text.
    pub(crate) fn may_contain(&self, tables: u64) -> bool {
        self.tables & tables != 0
    }

    pub(crate) fn opens_with(&self, cues: CueTable) -> bool {
        self.longest_cue_at(0, cues).is_some()
    }

    /// Returns the number of words of the longest of some phrases at word `at`.
    pub(crate) fn phrase_at(&self, at: usize, phrases: &[&'static str]) -> Option<usize> {
        phrases.iter().filter_map(|it| self.phrase_len_at(at, it)).max()
    }

    /// Like [`Self::opens_with`]; in a script without spaces, whose sentences end with their verbs and begin
    /// with their conditions, a phrase may be anywhere.
    pub(crate) fn is_marked_as(&self, cues: CueTable) -> bool {
        self.opening_cue(cues).is_some()
    }

    /// Returns the phrase that [`Self::is_marked_as`] finds, as word index and number of words.
    pub(crate) fn opening_cue(&self, cues: CueTable) -> Option<(usize, usize)> {
        match self.longest_cue_at(0, cues) {
            Some(width) => Some((0, width)),
            None => self.find(cues).filter(|_| self.is_unspaced()),
        }
    }

    /// Returns whether most of the text is in a script without spaces.
    pub(crate) fn is_unspaced(&self) -> bool {
        scripts::is_mostly_spaceless(&self.lower)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Returns the words in order, each with the hash of its letters.
    pub(in crate::engine::extractive) fn iter_hashed(&self) -> impl Iterator<Item = (&str, u64)> {
        self.iter().zip(self.list.iter().map(|entry| entry.hash))
    }

    /// Returns the number of words of the longest cue at word `at`.
    fn longest_cue_at(&self, at: usize, cues: CueTable) -> Option<usize> {
        // A fast test: this runs for every word of every log, and most words open no phrase.
        let word = self.list.get(at)?;
        if word.tables & cues.bit() == 0 {
            return None;
        }
        LEXICON
            .phrases_of(word.hash)
            .filter(|(table, _)| *table == cues.bit())
            .filter_map(|(_, phrase)| self.phrase_len_at(at, phrase))
            .max()
    }

    /// Returns the number of words of a phrase, if it occurs at word `at`.
    pub(super) fn phrase_len_at(&self, at: usize, phrase: &'static str) -> Option<usize> {
        let mut width = 0;
        for part in phrase_words(phrase) {
            let word = self.get(at + width)?;
            // In `mon * préféré` the asterisk matches any one word.
            let same = match part.strip_suffix('*') {
                Some(start) => word.starts_with(start),
                None => word == part,
            };
            if !same {
                return None;
            }
            width += 1;
        }
        (width > 0).then_some(width)
    }
}

/// Returns the words of a phrase as a [`WordList`] has them: scripts without spaces are cut by characters.
fn phrase_words(phrase: &'static str) -> impl Iterator<Item = &'static str> {
    phrase.split([' ', '-']).flat_map(|part| {
        let is_unspaced = part.contains(scripts::is_spaceless);
        let (spaced, unspaced) = if is_unspaced { (None, part) } else { (Some(part), "") };
        spaced.into_iter().chain(unspaced.unicode_words())
    })
}

fn push_lowercase(lower: &mut String, word: &str) {
    if word.is_ascii() {
        let start = lower.len();
        lower.push_str(word);
        lower[start..].make_ascii_lowercase();
    } else {
        lower.push_str(&word.replace('’', "'").to_lowercase());
    }
}

/// A phrase, with the bit of its table.
type CuePhrase = (u64, &'static str);

/// The phrases by their first word.
#[derive(Default)]
struct CueIndex {
    /// By the hash of the first word: the bits of the tables, and the phrases.
    words: HashedMap<(u64, Vec<CuePhrase>)>,
    /// Phrases whose first word is a prefix, with that prefix: `j'` for `j'*`.
    prefix_phrases: Vec<(&'static str, CuePhrase)>,
}

static LEXICON: LazyLock<CueIndex> = LazyLock::new(|| {
    let mut lexicon = CueIndex::default();
    let all = cue_phrases::ALL_TABLES
        .iter()
        .flat_map(|table| table.phrases().iter().map(|it| (table.bit(), *it)));
    for (table, phrase) in all {
        let first = phrase_words(phrase).next().unwrap_or_default();
        if let Some(start) = first.strip_suffix('*') {
            lexicon.prefix_phrases.push((start, (table, phrase)));
        } else {
            let entry = lexicon.words.entry(hash_bytes(first.as_bytes())).or_default();
            entry.0 |= table;
            entry.1.push((table, phrase));
        }
    }
    lexicon
});

impl CueIndex {
    fn tables_of(&self, word: &str, hash: u64) -> u64 {
        let open = self.prefix_phrases.iter().filter(|(start, _)| word.starts_with(start));
        open.fold(self.words.get(&hash).map_or(0, |(tables, _)| *tables), |all, (_, (table, _))| {
            all | table
        })
    }

    /// Returns the phrases that may begin with a word, given by its hash.
    fn phrases_of(&self, hash: u64) -> impl Iterator<Item = &CuePhrase> {
        let known = self.words.get(&hash).map_or(&[][..], |(_, phrases)| phrases);
        known.iter().chain(self.prefix_phrases.iter().map(|(_, phrase)| phrase))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn cues_are_found_where_their_words_occur(picks in proptest::collection::vec(0usize..15, 0..10)) {
            let pieces = [
                "mon ", "plat ", "préféré ", "J’ai ", "j'habite ", "always ", "always-on ", "Don't ",
                "from ", "now ", "on ", "日本 ", "今后", "必ず", "ルール",
            ];
            let text: String = picks.iter().map(|&i| pieces[i]).collect();
            let words = WordList::of(&text);
            for &cues in cue_phrases::ALL_TABLES {
                let longest = |at: usize| {
                    cues.phrases().iter().filter_map(|phrase| words.phrase_len_at(at, phrase)).max()
                };
                let first = (0..words.len()).find_map(|at| longest(at).map(|width| (at, width)));
                prop_assert_eq!(words.find(cues), first, "{:?}", text);
                let may = WordList::may_occur_in(&text, cues.bit());
                prop_assert!(may || first.is_none(), "{:?}", text);
            }
        }
    }
}
