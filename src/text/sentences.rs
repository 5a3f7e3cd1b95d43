//! Cuts a text into sentences by the rules of Unicode (UAX #29), as memories and wisdom entries quote them.
//!
//! A summary's [`pieces`](super::pieces) are cut elsewhere, too: at clauses, and never inside brackets or bold.
//! A statement that lasts has to be whole.

use std::sync::LazyLock;

use unicode_segmentation::UnicodeSegmentation as _;

use super::{calendar, lexicon::SENTENCES};

/// Cuts text into sentences, as byte ranges.
pub(crate) fn sentence_ranges(text: &str) -> Vec<(usize, usize)> {
    let mut starts = ascii_sentence_starts(text)
        .unwrap_or_else(|| text.split_sentence_bound_indices().map(|(at, _)| at).collect());
    starts.push(text.len());
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut marks = PairedMarks::default();
    for (&start, &end) in starts.iter().zip(&starts[1..]) {
        let piece = &text[start..end];
        match ranges.last_mut() {
            // No sentence begins in lower case.
            Some(last)
                if piece.starts_with(char::is_lowercase)
                    || !marks.are_balanced()
                    || ends_with_abbreviation(&text[last.0..last.1])
                    || (ends_with_day_number(&text[last.0..last.1])
                        && starts_with_month(piece)) =>
            {
                last.1 = end;
            }
            _ => {
                ranges.push((start, end));
                marks = PairedMarks::default();
            }
        }
        marks.add(piece);
    }
    ranges
}

/// The quotes and code spans of the sentence that is being joined. They are counted once, not again with
/// each piece that is joined to it.
#[derive(Default)]
struct PairedMarks {
    backticks: usize,
    quotes: usize,
    opened: usize,
    closed: usize,
}

impl PairedMarks {
    fn add(&mut self, piece: &str) {
        for byte in piece.bytes() {
            self.backticks += usize::from(byte == b'`');
            self.quotes += usize::from(byte == b'"');
        }
        if !piece.is_ascii() {
            self.opened += piece.matches('“').count();
            self.closed += piece.matches('”').count();
        }
    }

    /// Returns whether a sentence may end here: no quote and no code span is open.
    fn are_balanced(&self) -> bool {
        self.backticks.is_multiple_of(2)
            && self.quotes.is_multiple_of(2)
            && self.opened <= self.closed
    }
}

/// Returns where sentences begin, judged by the few characters around each mark; `None` if one of them is
/// not plain ASCII, so that Unicode's tables must decide.
fn ascii_sentence_starts(text: &str) -> Option<Vec<usize>> {
    // Latin, Greek, and Cyrillic letters, dashes, quotes, dots, and signs end no sentence.
    let quiet = |c: char| matches!(c, ' '..='~' | '\u{A0}'..='\u{52F}' | '\u{2010}'..='\u{2023}' | '\u{2026}' | '\u{2190}'..='\u{27BF}');
    let bytes = text.as_bytes();
    // Without an early exit the compiler reads many bytes at once.
    let plain = bytes.iter().fold(true, |plain, b| plain & matches!(b, b' '..=b'~'));
    if text.is_empty() || !(plain || text.chars().all(quiet)) {
        return None;
    }
    let skip = |from: usize, marks: &[u8]| {
        from + bytes[from..].iter().take_while(|byte| marks.contains(byte)).count()
    };
    let mut starts = vec![0];
    let mut at = 0;
    while let Some(mark) = bytes[at..].iter().position(|b| matches!(b, b'.' | b'!' | b'?')) {
        at += mark + 1;
        let full_stop = bytes[at - 1] == b'.';
        let closed = skip(at, b"\"'()[]{}");
        let next = skip(closed, b" ");
        let Some(&byte) = bytes.get(next) else { break };
        if matches!(byte, b'.' | b'!' | b'?') {
            at = next;
            continue;
        }
        if next == closed {
            // `3.5` and `main.rs`.
            if full_stop && closed == at && (byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
                continue;
            }
            return None;
        }
        if matches!(byte, b',' | b'-' | b':' | b';') {
            return None;
        }
        // After a full stop the first letter decides, after other marks any character.
        let decides = |b: &&u8| {
            !full_stop
                || b.is_ascii_alphabetic()
                || !b.is_ascii()
                || matches!(b, b'.' | b'!' | b'?')
        };
        match bytes[next..].iter().find(decides) {
            Some(byte) if !byte.is_ascii() => return None,
            Some(byte) if full_stop && byte.is_ascii_lowercase() => {}
            _ => starts.push(next),
        }
    }
    Some(starts)
}

/// Returns whether a text may end inside of a date: `31. Juli` is one.
fn ends_with_day_number(text: &str) -> bool {
    let last = last_word(text);
    let digits = last.trim_end_matches('.');
    digits.len() < last.len()
        && (1..=2).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
}

fn starts_with_month(text: &str) -> bool {
    static MONTHS: LazyLock<Vec<&'static str>> = LazyLock::new(calendar::month_names);
    let first = text.unicode_words().next().map(str::to_lowercase);
    first.is_some_and(|it| MONTHS.contains(&&it[..]))
}

/// Returns whether a text ends with an abbreviation, which ends no sentence.
fn ends_with_abbreviation(text: &str) -> bool {
    let last = last_word(text).to_lowercase();
    let last = last.trim_start_matches(['(', '[', '"', '“']);
    let abbreviation = last.strip_suffix('.');
    abbreviation.is_some_and(|it| SENTENCES.statement_abbreviations.contains(&it))
}

/// Returns the last word of a text, or the end of one that is too long to be an abbreviation or a number.
fn last_word(text: &str) -> &str {
    const WORD_BYTES_MAX: usize = 64;
    let trimmed = text.trim_end();
    let mut from = trimmed.len().saturating_sub(WORD_BYTES_MAX);
    while !trimmed.is_char_boundary(from) {
        from += 1;
    }
    trimmed[from..].rsplit(char::is_whitespace).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn plain_sentences_begin_where_unicode_says(
            picks in proptest::collection::vec(0usize..32, 0..14)
        ) {
            let pieces = [
                "a", "B", "ab ", "Cd ", "7", "7 ", ". ", ".", "! ", "!", "? ", "?", " ", ") ", "(", "\"",
                "' ", "`", "` ", "- ", ", ", ": ", "; ", "é ", "É", "— ", "…", "“", "”", "* ", "[", "/",
            ];
            let text: String = picks.iter().map(|&i| pieces[i]).collect();
            let expected: Vec<usize> = text.split_sentence_bound_indices().map(|(at, _)| at).collect();
            if let Some(starts) = ascii_sentence_starts(&text) {
                prop_assert_eq!(starts, expected, "{:?}", text);
            }
        }
    }
}
