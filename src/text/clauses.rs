//! Cuts a text into sentences, and those into clauses of words, as grounding compares them.
//!
//! Unlike [`pieces`](super::pieces) and [`sentences`](super::sentences), this keeps the words: each in lower
//! case, with its place in the text and the mark before it. Short clauses are kept, since a hedge or a
//! negation counts only within its clause.

use super::lexicon::{CLAIMS, SENTENCES};

/// A word of a text.
#[derive(Clone, Debug)]
pub(crate) struct ParsedWord {
    /// In lower case.
    pub(crate) text: String,
    /// Where it begins in the text, in bytes.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
    /// Whether it is in a code span.
    pub(crate) in_code: bool,
    /// Whether it is written in capitals.
    pub(crate) is_acronym: bool,
    /// What is between it and the word before it.
    pub(crate) separator: Separator,
}

/// What separates a word from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    Space,
    Comma,
    /// A mark that separates clauses: a semicolon, a dash, a bracket.
    ClauseMark,
}

/// A sentence, by its words.
pub(crate) struct ParsedSentence<'t> {
    /// The sentence as it is written.
    pub(crate) text: &'t str,
    pub(crate) words: Vec<ParsedWord>,
}

impl<'t> ParsedSentence<'t> {
    /// Treats some words of a text as a sentence.
    pub(crate) fn from_words(text: &'t str, words: &[ParsedWord]) -> Self {
        Self { text, words: words.to_vec() }
    }

    /// Returns the clauses: they are separated by marks, and by commas before words that open a clause.
    pub(crate) fn clauses(&self) -> Vec<&[ParsedWord]> {
        self.split_clauses(false, false)
    }

    /// Returns the clauses, also those that only `but` or the like separates.
    pub(crate) fn contrasted_clauses(&self) -> Vec<&[ParsedWord]> {
        self.split_clauses(false, true)
    }

    /// Returns the clauses, also those that only a conjunction or `but` separates: "it is late and they plan".
    pub(crate) fn joined_clauses(&self) -> Vec<&[ParsedWord]> {
        self.split_clauses(true, true)
    }

    fn split_clauses(&self, at_conjunctions: bool, at_contrasts: bool) -> Vec<&[ParsedWord]> {
        let opens_clause = |at: usize| {
            self.words.get(at).is_some_and(|it| SENTENCES.clause_openers.contains(&&it.text[..]))
        };
        // `the Mac is fine but Linux is not`, and not `it runs but not on Linux`
        let is_contrast = |at: usize| {
            let word = |at: usize| self.words.get(at).map_or("", |it| &it.text[..]);
            let is_verb = |it: &ParsedWord| SENTENCES.clause_verbs.contains(&&it.text[..]);
            at_contrasts
                && SENTENCES.contrasts.contains(&word(at))
                && !SENTENCES.no_contrast_after.contains(&word(at - 1))
                && !CLAIMS.negations.contains(&word(at + 1))
                && self.words.iter().skip(at + 2).any(is_verb)
        };
        let mut clauses = Vec::new();
        let mut from = 0;
        for (at, word) in self.words.iter().enumerate().skip(1) {
            let begins_clause = match word.separator {
                Separator::ClauseMark => true,
                _ if is_contrast(at) => true,
                Separator::Comma => {
                    let is_conjunction = SENTENCES.conjunctions.contains(&&word.text[..]);
                    opens_clause(at) || (is_conjunction && opens_clause(at + 1))
                }
                Separator::Space => {
                    at_conjunctions
                        && SENTENCES.conjunctions.contains(&&word.text[..])
                        && opens_clause(at + 1)
                }
            };
            if begins_clause {
                clauses.push(&self.words[from..at]);
                from = at;
            }
        }
        clauses.push(&self.words[from..]);
        clauses
    }
}

/// Returns the part of a text from the first to the last of some of its words.
pub(crate) fn span_text<'t>(text: &'t str, words: &[ParsedWord]) -> &'t str {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => &text[first.start..last.end],
        _ => "",
    }
}

/// Cuts a text into sentences and their words.
pub(crate) fn parse_sentences(text: &str) -> Vec<ParsedSentence<'_>> {
    parse(text, &[])
}

/// The same, with a mark of a clause at both ends of quotes of several words, which say something of their own.
pub(crate) fn parse_sentences_and_quotes(text: &str) -> Vec<ParsedSentence<'_>> {
    parse(text, &quote_ends(text))
}

fn parse<'t>(text: &'t str, quote_ends: &[usize]) -> Vec<ParsedSentence<'t>> {
    // Not `no` and `ms`, which end sentences as well.
    const ABBREVIATIONS: [&str; 6] = ["e.g", "i.e", "z.b", "d.h", "p.ex", "cf"];
    let mut sentences = Vec::new();
    let mut words: Vec<ParsedWord> = Vec::new();
    let (mut from, mut in_code, mut separator) = (0, false, Separator::Space);
    let mut chars = text.char_indices().peekable();
    while let Some((start, c)) = chars.next() {
        let rest = &text[start..];
        if rest.starts_with("https://") || rest.starts_with("http://") {
            // The words of an address claim nothing.
            // The mark behind one in code ends the code.
            let is_end = |c: char| c.is_whitespace() || c == '`';
            let end = start + rest.find(is_end).unwrap_or(rest.len());
            while chars.next_if(|it| it.0 < end).is_some() {}
            continue;
        }
        if c.is_alphanumeric() {
            let mut end = start + c.len_utf8();
            while let Some(&(at, c)) = chars.peek() {
                let mut rest = text[at + c.len_utf8()..].chars();
                let is_inside = c.is_alphanumeric()
                    || (matches!(c, '\'' | '’' | '.' | '_')
                        && rest.next().is_some_and(char::is_alphanumeric));
                if !is_inside {
                    break;
                }
                end = at + c.len_utf8();
                chars.next();
            }
            let written = &text[start..end];
            let is_acronym = written.len() > 1 && written.chars().all(char::is_uppercase);
            let text = written.to_lowercase().replace('’', "'");
            words.push(ParsedWord { text, start, end, in_code, is_acronym, separator });
            separator = Separator::Space;
            continue;
        }
        match c {
            '`' => in_code = !in_code,
            ',' => separator = Separator::Comma,
            // `require()` is one word.
            '(' | ')' if in_code => {}
            ';' | '—' | '–' | '(' | ')' | '|' | '→' => separator = Separator::ClauseMark,
            '"' | '“' | '”' if quote_ends.contains(&start) => separator = Separator::ClauseMark,
            '-' if !in_code && text[..start].ends_with(' ') => separator = Separator::ClauseMark,
            // `no-op` and `GO/NO-GO` are names, which deny nothing.
            '-' if is_name_with_no(&text[..start], &text[start + 1..]) => {
                if let Some(word) = words.last_mut().filter(|it| it.end == start) {
                    word.in_code = true;
                }
            }
            '.' | '!' | '?' | '…' | '。' | '！' | '？' if !in_code && !words.is_empty() => {
                let end = start + c.len_utf8();
                let is_abbreviation =
                    |it: &ParsedWord| it.end == start && ABBREVIATIONS.contains(&&it.text[..]);
                let abbreviates = c == '.' && words.last().is_some_and(is_abbreviation);
                if !abbreviates && ends_sentence(&text[end..]) {
                    sentences.push(ParsedSentence { text: &text[from..end], words });
                    (words, from, separator) = (Vec::new(), end, Separator::Space);
                }
            }
            _ => {}
        }
    }
    if !words.is_empty() {
        sentences.push(ParsedSentence { text: &text[from..], words });
    }
    sentences
}

/// Returns whether the text around a hyphen makes a name of its `no`.
fn is_name_with_no(before: &str, after: &str) -> bool {
    let next = after.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let no = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    no.eq_ignore_ascii_case("no") && CLAIMS.names_with_no.contains(&next)
        || before.ends_with("/NO") && next == "GO"
}

/// Returns where the marks of quotes of several words are, in bytes.
fn quote_ends(text: &str) -> Vec<usize> {
    const WORDS_MIN: usize = 3;
    let marks: Vec<usize> = text.match_indices(['"', '“', '”']).map(|it| it.0).collect();
    let mut ends = Vec::new();
    for pair in marks.chunks_exact(2) {
        if text[pair[0]..pair[1]].split_whitespace().count() >= WORDS_MIN {
            ends.extend_from_slice(pair);
        }
    }
    ends
}

/// Returns whether a mark such as a full stop ends a sentence, by what follows it. `e.g. this` continues.
fn ends_sentence(rest: &str) -> bool {
    let mut rest = rest.trim_start_matches(['"', '\'', '*', ')', '”']).chars();
    rest.next().is_none_or(char::is_whitespace)
        && !rest.find(|it| !it.is_whitespace()).is_some_and(char::is_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_end_at_marks_and_before_clause_openers() {
        let text = "Red, green, and blue failed, but we shipped — see `a.b`. Done";
        let sentences = parse_sentences(text);
        let clauses = |at: usize| -> Vec<&str> {
            sentences[at].clauses().into_iter().map(|it| span_text(text, it)).collect()
        };
        assert_eq!(clauses(0), ["Red, green, and blue failed", "but we shipped", "see `a.b"]);
        assert_eq!(clauses(1), ["Done"]);
        assert!(sentences[0].words.last().is_some_and(|it| it.in_code));
    }
}
