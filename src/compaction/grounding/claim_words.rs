//! The words by which the claims of an item and of its lines are compared. Pure.

use std::collections::BTreeSet;

use crate::text::{
    clauses::ParsedWord,
    lexicon::{CLAIMS, HEDGING},
};

/// The clauses of longer items are not compared, since that would take too long.
pub(super) const ITEM_WORDS_MAX: usize = 300;

/// The most clauses of the lines that an item is compared with.
pub(super) const CLAUSES_MAX: usize = 300;

/// The first letters of the words that say what a text is about.
pub(super) type StemSet = BTreeSet<String>;

/// Returns whether a word says what a text is about.
pub(super) fn is_content(word: &ParsedWord) -> bool {
    let text = &word.text[..];
    let long = text.chars().count() > 2 || text.bytes().any(|b| b.is_ascii_digit());
    long && !HEDGING.stop_words.contains(&text)
        && !CLAIMS.negations.contains(&text)
        && !text.ends_with("n't")
        && ![
            "longer",
            "yet",
            "ever",
            "mehr",
            "any",
            "anything",
            "anybody",
            "anyone",
            "always",
            "immer",
            "everybody",
            "something",
        ]
        .contains(&text)
}

/// Returns the first letters of a word, without the ending of a plural.
pub(super) fn word_stem(word: &str) -> String {
    const STEM: usize = 5;
    let plural = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
    let bare = if plural { &word[..word.len() - 1] } else { word };
    bare.chars().take(STEM).collect()
}

/// Returns what words are about.
pub(super) fn content_stems(words: &[ParsedWord]) -> StemSet {
    words.iter().filter(|it| is_content(it)).map(|it| word_stem(&it.text)).collect()
}
