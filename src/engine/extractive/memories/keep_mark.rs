//! Removes the mark `#keep` and notes in brackets from a statement.

use std::borrow::Cow;

use crate::engine::extractive::statements::blocks::{KEEP_MARK, has_keep_mark};

/// Returns the text without `#keep` and without a note in brackets at the end.
pub(crate) fn without_keep(text: &str) -> Cow<'_, str> {
    let text = without_note(text);
    if !has_keep_mark(text) {
        return Cow::Borrowed(text.trim());
    }
    let words = text.split_whitespace().filter(|word| *word != KEEP_MARK);
    Cow::Owned(words.collect::<Vec<_>>().join(" "))
}

/// Returns the text without brackets at its end, which would be read as a citation.
fn without_note(text: &str) -> &str {
    let text = text.trim_end();
    match text
        .strip_suffix(']')
        .and_then(|rest| rest.rfind('[').map(|at| (at, text[..at].trim_end())))
    {
        Some((at, before)) if at > 0 && before.len() < at => before,
        _ => text,
    }
}
