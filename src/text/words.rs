//! Splits a text into words.
//!
//! Four ways, since their readers need different things:
//!
//! - [`runs`]: runs of letters and digits, for comparing what texts are about.
//! - [`for_each_token`]: borrowed words with their accents, for the stems of a language.
//! - [`for_each_folded`]: words in lower case without accents, and numbers with their points, for search,
//!   whose users type neither. [`folded_ranges`] says where these words are.
//! - [`split_at_punctuation`]: words with their hyphens and apostrophes, for cues such as `follow-up`.
//!
//! The statements of the extractive engine are split by Unicode's word boundaries (UAX #29) instead, which
//! [`sentences`](super::sentences) follows, too.

use std::{borrow::Cow, collections::BTreeSet, ops::Range};

use unicode_normalization::UnicodeNormalization as _;

use super::scripts::{is_combining_mark, is_spaceless};

/// Returns the runs of letters, digits, and the marks of `inner` in a text.
pub(crate) fn runs<'t>(text: &'t str, inner: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(move |c: char| !(c.is_alphanumeric() || inner.contains(c)))
        .filter(|it| !it.is_empty())
}

/// Returns the runs of letters and digits of a text, each in lower case.
pub(crate) fn lowercase_runs(text: &str) -> impl Iterator<Item = String> {
    runs(text, "").map(str::to_lowercase)
}

/// Returns the words that say what a text is about, in lower case: the long ones, and those with a digit.
pub(crate) fn significant_words(text: &str) -> BTreeSet<String> {
    lowercase_runs(text)
        .filter(|it| is_long(it) || it.bytes().any(|b| b.is_ascii_digit()))
        .collect()
}

/// Returns the long words of a text, in lower case.
pub(crate) fn long_words(text: &str) -> BTreeSet<String> {
    lowercase_runs(text).filter(|it| is_long(it)).collect()
}

/// Words of up to three characters are in every text.
fn is_long(word: &str) -> bool {
    word.chars().nth(3).is_some()
}

/// Splits a text at spaces and punctuation, but neither at hyphens nor at apostrophes.
pub(crate) fn split_at_punctuation(text: &str) -> Vec<&str> {
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(
                c,
                ',' | '.' | ':' | ';' | '(' | ')' | '/' | '—' | '–' | '"' | '*' | '!' | '?'
            )
    };
    text.split(ends).filter(|it| !it.is_empty()).collect()
}

/// A word as [`for_each_token`] finds it.
pub(super) enum WordToken<'t> {
    Letters(&'t str),
    /// Two neighbouring characters of a script without spaces, or a single one.
    Pair(&'t str),
}

/// Calls `each` with the words of `text`, in order.
pub(super) fn for_each_token<'t>(text: &'t str, mut each: impl FnMut(WordToken<'t>)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] < 0x80 && !bytes[at].is_ascii_alphanumeric() {
            at += 1;
            continue;
        }
        let start = at;
        let mut single: Option<usize> = None;
        let mut end = at;
        for (offset, c) in text[start..].char_indices() {
            let here = start + offset;
            if is_spaceless(c) {
                if single.is_none() && here > start {
                    break;
                }
                if let Some(previous) = single.replace(here) {
                    each(WordToken::Pair(&text[previous..here + c.len_utf8()]));
                }
                end = here + c.len_utf8();
            } else if single.is_some() {
                break;
            } else if c.is_alphanumeric() || is_combining_mark(c) {
                end = here + c.len_utf8();
            } else if matches!(c, '\'' | '’') && here > start {
                // Inside a word only: the end does not move before a letter follows.
            } else {
                break;
            }
        }
        if end == start {
            at = start + text[start..].chars().next().map_or(1, char::len_utf8);
            continue;
        }
        match single {
            None => each(WordToken::Letters(&text[start..end])),
            Some(last) if last == start => each(WordToken::Pair(&text[start..end])),
            Some(_) => {}
        }
        at = end;
    }
}

/// Calls `each` with each word of a text, in lower case and without marks.
///
/// Scripts without spaces give overlapping pairs of characters. Numbers keep their points ("3.2") and lose
/// their commas.
pub(crate) fn for_each_folded(text: &str, mut each: impl FnMut(&str)) {
    let folded: Cow<'_, str> = if text.is_ascii() {
        text.to_ascii_lowercase().into()
    } else {
        let is_mark = unicode_normalization::char::is_combining_mark;
        text.nfkd().filter(|it| !is_mark(*it)).flat_map(char::to_lowercase).collect()
    };
    let mut word = String::new();
    let mut before: Option<char> = None;
    let mut chars = folded.chars().peekable();
    while let Some(c) = chars.next() {
        if is_spaceless(c) {
            flush(&mut word, &mut each);
            let next = chars.peek().copied().filter(|it| is_spaceless(*it));
            match next {
                Some(next) => each(&String::from_iter([c, next])),
                None if before.is_none_or(|it| !is_spaceless(it)) => each(&c.to_string()),
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
                // What follows an apostrophe is a short ending, which says nothing.
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

/// Returns where the words of [`for_each_folded`] are in a text, in bytes.
pub(crate) fn folded_ranges(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut chars = text.char_indices().peekable();
    let mut word: Option<usize> = None;
    let mut before = ' ';
    while let Some((at, c)) = chars.next() {
        let (end, next) = chars.peek().copied().unwrap_or((text.len(), ' '));
        let is_point = matches!(c, '.' | ',') && before.is_ascii_digit() && next.is_ascii_digit();
        let joins = (c.is_alphanumeric() && !is_spaceless(c)) || (is_point && word.is_some());
        if joins {
            word.get_or_insert(at);
        } else if let Some(from) = word.take() {
            words.push(from..at);
        }
        if is_spaceless(c) {
            let end = if is_spaceless(next) { end + next.len_utf8() } else { end };
            words.push(at..end);
        }
        before = c;
    }
    words.extend(word.map(|from| from..text.len()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folded_words_have_no_marks_and_scripts_without_spaces_give_pairs() {
        for (text, expected) in [
            ("Café, naïve!", &["cafe", "naive"][..]),
            ("$1,200 and 3.2x v2.0.1.", &["1200", "and", "3.2x", "v2.0.1"]),
            ("東京都", &["東京", "京都"]),
            ("a 猫 b", &["a", "猫", "b"]),
            ("привет Мир", &["привет", "мир"]),
            ("", &[]),
        ] {
            let mut words = Vec::new();
            for_each_folded(text, |it| words.push(it.to_owned()));
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn runs_keep_the_marks_they_are_given() {
        assert_eq!(
            runs("At 09:12, 34% (don't)", ".:,%").collect::<Vec<_>>(),
            ["At", "09:12,", "34%", "don", "t"]
        );
        assert_eq!(runs("mid-April — no", "-").collect::<Vec<_>>(), ["mid-April", "no"]);
        assert_eq!(
            significant_words("The Importer ran at 3").into_iter().collect::<Vec<_>>(),
            ["3", "importer"]
        );
        assert_eq!(long_words("The Importer ran at 3").len(), 1);
    }
}
