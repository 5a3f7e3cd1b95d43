//! Removes the mark `#keep` and notes in brackets from a statement.

use std::borrow::Cow;

use crate::engine::keep_mark::{has_keep_mark, without_keep_mark};

/// Returns the text without `#keep` and without a note in brackets at the end.
pub(crate) fn without_keep(text: &str) -> Cow<'_, str> {
    let text = without_note(text);
    if !has_keep_mark(text) {
        return Cow::Borrowed(text.trim());
    }
    Cow::Owned(without_keep_mark(text))
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
