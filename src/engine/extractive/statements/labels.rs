//! Labels and titles of statements.

use super::word_list::WordList;
use crate::text::scripts;

/// Splits `Label: rest` or `Label — rest`; returns the label and the byte offset of the rest.
///
/// A label is short, is no sentence, and its colon is followed by a space.
pub(crate) fn split_label(text: &str) -> Option<(&str, usize)> {
    /// Longer than this and it is a clause.
    const LABEL_WORDS_MAX: usize = 7;
    const LABEL_CHARS_MAX: usize = 60;
    /// One character of a script without spaces says what takes others three.
    const UNSPACED_CHARS_MAX: usize = 20;
    let (at, width) = label_end(text, LABEL_CHARS_MAX)?;
    let label = text[..at].trim();
    let rest_at = at + width;
    let rest_at = rest_at + (text[rest_at..].len() - text[rest_at..].trim_start().len());
    let words = label.split_whitespace().count();
    let fits = (1..=LABEL_WORDS_MAX).contains(&words)
        && label.chars().filter(|&c| scripts::is_spaceless(c)).count() <= UNSPACED_CHARS_MAX
        && label.chars().count() <= LABEL_CHARS_MAX
        && !label.contains(". ");
    fits.then_some((label, rest_at))
}

/// Returns the offset and the bytes of the first mark that ends a label; `None` if more than `chars_max`
/// characters precede it.
fn label_end(text: &str, chars_max: usize) -> Option<(usize, usize)> {
    let (mut code, mut chars) = (false, 0);
    for (at, c) in text.char_indices() {
        code ^= c == '`';
        let rest = &text[at + c.len_utf8()..];
        let parts = match c {
            _ if code => false,
            ':' => {
                rest.is_empty() || rest.starts_with(' ') || rest.starts_with(scripts::is_spaceless)
            }
            '：' => true,
            '—' | '–' => {
                (rest.is_empty() || rest.starts_with(' ')) && text[..at].ends_with(' ')
            }
            _ => false,
        };
        if parts {
            return Some((at, c.len_utf8()));
        }
        // Leading white space does not count.
        chars += usize::from(chars > 0 || !c.is_whitespace());
        if chars > chars_max && !c.is_whitespace() {
            return None;
        }
    }
    None
}

/// Returns whether a title or label is one of `titles`, ignoring numbers, dates, and case.
pub(crate) fn is_one_of_titles(label: &str, titles: &[&str]) -> bool {
    let title = normalized_title(label);
    titles.iter().any(|it| title == *it)
}

/// Returns the words of a title or label in lower case, without numbers and dates; empty for a text
/// that is too long to be one.
pub(crate) fn normalized_title(label: &str) -> String {
    const TITLE_BYTES_MAX: usize = 120;
    if label.len() > TITLE_BYTES_MAX {
        return String::new();
    }
    let words = WordList::of(label);
    let mut title = String::new();
    for word in words.iter().filter(|w| !w.chars().any(|c| c.is_ascii_digit())) {
        let unspaced =
            title.ends_with(scripts::is_spaceless) && word.starts_with(scripts::is_spaceless);
        if !title.is_empty() && !unspaced {
            title.push(' ');
        }
        title.push_str(word);
    }
    title
}
