//! Finds the words of a hit that match the query, to highlight them. Pure.

use std::ops::Range;

use super::terms::{QueryStemmer, QueryTerms};
use crate::text::words;

/// Finds the words of texts that match a query.
pub struct Highlighter {
    terms: QueryTerms,
    stems: QueryStemmer,
}

impl Highlighter {
    /// Returns the highlighter of a query's words.
    pub fn of(words: &str) -> Self {
        let mut stems = QueryStemmer::new();
        Self { terms: QueryTerms::of(words, &mut stems), stems }
    }

    /// Returns the byte ranges of these words, or other forms of them, in a text, in order.
    pub fn ranges(&mut self, text: &str) -> Vec<Range<usize>> {
        let mut ranges: Vec<Range<usize>> = Vec::new();
        for word in words::folded_ranges(text) {
            if self.terms.mask(&text[word.clone()], &mut self.stems) == 0 {
                continue;
            }
            match ranges.last_mut() {
                // Pairs of characters overlap.
                Some(last) if last.end > word.start => last.end = word.end,
                _ => ranges.push(word),
            }
        }
        ranges
    }
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Marks").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_a_word_are_highlighted() {
        for (query, text, expected) in [
            (
                "import 3.2",
                "Imported at 3.2 s; the importer waits",
                &["Imported", "3.2", "importer"][..],
            ),
            ("what is café", "Café Lisboa", &["Café"]),
            ("東京", "昨日東京都で", &["東京"]),
            ("pump", "no such thing", &[]),
        ] {
            let ranges = Highlighter::of(query).ranges(text);
            let ranges: Vec<&str> = ranges.into_iter().map(|it| &text[it]).collect();
            assert_eq!(ranges, expected, "{query}");
        }
    }
}
