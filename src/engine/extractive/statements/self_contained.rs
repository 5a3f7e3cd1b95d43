//! Whether a statement is understandable by itself, and how much of it is code.

use super::{terms::ratio, word_list::WordList};
use crate::engine::extractive::cue_phrases;

/// Returns whether a text neither refers to something outside it nor depends on a moment.
pub(crate) fn is_self_contained(text: &str) -> bool {
    words_are_self_contained(text, &WordList::of(text))
}

/// Like [`is_self_contained`], for a text that is already split into words.
pub(crate) fn words_are_self_contained(text: &str, words: &WordList) -> bool {
    const WORDS_MIN: usize = 3;
    const WORDS_MAX: usize = 60;
    /// Each character of a script without spaces counts as a word.
    const UNSPACED_WORDS: usize = 2;
    let trimmed = text.trim_end();
    let unit = if words.is_unspaced() { UNSPACED_WORDS } else { 1 };
    (WORDS_MIN * unit..=WORDS_MAX * unit).contains(&words.len())
        && !words.opens_with(cue_phrases::BACK_REFERENCES)
        && !words.has(cue_phrases::TRANSIENT)
        && !words.has(cue_phrases::ROUTINE)
        && !text.contains(['?', '？'])
        && !text.contains("...")
        && !trimmed.ends_with([':', '：', '…', ',', '，', '、', '→'])
        && !text.contains('→')
        && text.matches('`').count().is_multiple_of(2)
        && text.matches('(').count() == text.matches(')').count()
        && !text.starts_with(['(', '[', '{', '<', '/', '@'])
}

/// Returns the share of words that are code: names in backticks, paths, calls.
pub(crate) fn code_share(text: &str) -> f64 {
    let all = text.split_whitespace().count();
    let mut inside = false;
    let mut code = 0;
    for word in text.split_whitespace() {
        let ticks = word.matches('`').count();
        let coded = inside
            || ticks > 0
            || word.contains("()")
            || word.contains("::")
            || word.contains('_')
            || is_camel(word);
        inside ^= ticks % 2 == 1;
        code += usize::from(coded);
    }
    ratio(code, all)
}

/// Returns whether a word is in camel case: `drainQueue` is code; `MySQL` and `GitHub` are names.
fn is_camel(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.starts_with(char::is_lowercase)
        && word.chars().zip(word.chars().skip(1)).any(|(a, b)| a.is_lowercase() && b.is_uppercase())
}
