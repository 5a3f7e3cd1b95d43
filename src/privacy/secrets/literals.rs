//! The literals from which rules start, all searched for at once.
//!
//! Those with letters beyond ASCII have an automaton of their own, which reads only lines with such
//! letters: in one automaton, their bytes would make its table several times larger, and the search of
//! every text slower.

use std::{collections::HashMap, iter, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::privacy::work_counter::count_bytes;

/// Prefixes and keywords, each with the rules that start from it.
pub(super) struct Literals {
    ascii: LiteralSet,
    other: LiteralSet,
}

/// Literals of one automaton.
struct LiteralSet {
    automaton: AhoCorasick,
    /// The rules of each literal.
    rules: Vec<Vec<u16>>,
}

/// An occurrence of a literal, and the rules that start from it.
pub(super) type LiteralHit<'a> = (Range<usize>, &'a [u16]);

impl Literals {
    /// Returns the automata of prefixes and keywords, which match in any case.
    pub(super) fn new<'a>(all: impl Iterator<Item = (&'a str, u16)>) -> Self {
        let mut rules_of: HashMap<String, Vec<u16>> = HashMap::new();
        for (literal, rule) in all {
            for variant in case_variants(literal) {
                let rules = rules_of.entry(variant).or_default();
                if rules.last() != Some(&rule) {
                    rules.push(rule);
                }
            }
        }
        let (ascii, other): (Vec<_>, Vec<_>) =
            rules_of.into_iter().partition(|(literal, _)| literal.is_ascii());
        Self { ascii: LiteralSet::new(ascii), other: LiteralSet::new(other) }
    }

    /// Returns the occurrences in a text, also overlapping ones, by their ends.
    pub(super) fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = LiteralHit<'a>> {
        count_bytes(text.len());
        let mut other = self.find_other(text).into_iter().peekable();
        let mut ascii = self.ascii.find(text, 0).peekable();
        iter::from_fn(move || match (ascii.peek(), other.peek()) {
            (Some((it, _)), Some((other_hit, _))) if other_hit.end < it.end => other.next(),
            (Some(_), _) => ascii.next(),
            (None, _) => other.next(),
        })
    }

    fn find_other<'a>(&'a self, text: &'a str) -> Vec<LiteralHit<'a>> {
        let mut hits = Vec::new();
        if text.is_ascii() {
            return hits;
        }
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            if !line.is_ascii() {
                hits.extend(self.other.find(line, at));
            }
            at += line.len();
        }
        hits
    }
}

impl LiteralSet {
    fn new(literals: Vec<(String, Vec<u16>)>) -> Self {
        let (texts, rules): (Vec<_>, Vec<_>) = literals.into_iter().unzip();
        let automaton = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(&texts)
            .expect("a few thousand short literals always fit");
        Self { automaton, rules }
    }

    /// Returns the occurrences in a part of a text that starts at `from`.
    fn find<'a>(&'a self, part: &'a str, from: usize) -> impl Iterator<Item = LiteralHit<'a>> {
        let hits = self.automaton.find_overlapping_iter(part);
        hits.map(move |it| {
            (from + it.start()..from + it.end(), &*self.rules[it.pattern().as_usize()])
        })
    }
}

/// Returns a literal in lower case and, if it has letters beyond ASCII, also capitalized and in
/// capitals: the automaton ignores only the case of ASCII letters.
fn case_variants(literal: &str) -> Vec<String> {
    let lower = literal.to_lowercase();
    let upper = lower.to_uppercase();
    if lower.is_ascii() || lower == upper {
        return vec![lower];
    }
    let mut rest = lower.chars();
    let capitalized = rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
    vec![lower, capitalized, upper]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_in_order_and_in_any_case() {
        let literals =
            Literals::new([("pass", 0), ("парол", 1), ("clé", 2), ("ass", 3)].into_iter());
        let text = "PASS é Пароль\npass\nПАРОЛЬ CLÉ pass";
        let seen: Vec<_> = literals.find(text).map(|(it, rules)| (&text[it], rules[0])).collect();
        let expected = [
            ("PASS", 0),
            ("ASS", 3),
            ("Парол", 1),
            ("pass", 0),
            ("ass", 3),
            ("ПАРОЛ", 1),
            ("CLÉ", 2),
            ("pass", 0),
            ("ass", 3),
        ];
        assert_eq!(seen, expected);
    }
}
