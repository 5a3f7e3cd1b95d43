//! Orders, told by lists of words: the reader of `config/quarantine.yaml`.
//!
//! A text is searched once for all words of all lists. A rule holds where its lists meet in one
//! sentence, near enough to each other; the shapes (addresses, amounts, shell commands) are searched
//! only where the words of a rule that needs them have been found. So the time is linear in the text.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};
use regex::Regex;
use serde::Deserialize;

use super::{Concern, Concerns, fold::Folded};
use crate::{
    memory::log::Origin,
    privacy::{effort::spend, lent::Lent},
};

/// Returns the concerns of a folded text.
pub fn concerns(text: &Folded, origin: Origin) -> Concerns {
    let mut found = Concerns::default();
    RULES.each_match(text, origin, |concern, _| found.add(concern));
    found
}

/// Returns where the concerns of a folded text stand, as byte ranges from the first to the last term.
pub fn spans(text: &Folded, origin: Origin) -> Vec<(Concern, Range<usize>)> {
    let mut found = Vec::new();
    RULES.each_match(text, origin, |concern, span| found.push((concern, span)));
    found
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    Rules::parse(include_str!("../../../config/quarantine.yaml")).expect("the rules are tested")
});

/// The most terms of one rule.
const TERMS_MAX: usize = 6;

/// The most spans that one rule tells of one text.
const SPANS_MAX: usize = 64;

/// A set of lists and shapes, one bit each.
type Mask = u128;

struct Rules {
    /// Words of which one at least stands in whatever a rule for anybody's text can hold.
    gate: AhoCorasick,
    of_gate: Vec<Word>,
    /// Made when something passes the gate: in many a log nothing does.
    words: Lent<AhoCorasick>,
    /// Of each word: its list, and whether its ends are open.
    of_word: Vec<Word>,
    shapes: Vec<(u8, Lent<Regex>)>,
    shape_mask: Mask,
    /// Lists after whose words an order can begin.
    begin: Mask,
    /// The list of words after which one can begin in an external text.
    also: Mask,
    each: Vec<Rule>,
}

#[derive(Clone, Copy)]
struct Word {
    list: u8,
    open_start: bool,
    open_end: bool,
}

struct Rule {
    concern: Concern,
    external_only: bool,
    terms: Vec<Term>,
    free: bool,
    reach: usize,
    unless: Mask,
}

#[derive(Clone, Copy)]
struct Term {
    mask: Mask,
    /// Those of the mask that count only where an order can begin.
    begins: Mask,
}

#[derive(Clone, Copy)]
struct Hit {
    start: usize,
    end: usize,
    list: u8,
    sentence: u32,
    begins: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    lists: HashMap<String, HashMap<String, Vec<String>>>,
    shapes: HashMap<String, String>,
    groups: HashMap<String, Vec<String>>,
    rules: Vec<RuleText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    concern: Concern,
    from: From,
    terms: Vec<String>,
    #[serde(default)]
    order: Order,
    #[serde(default = "reach_default")]
    reach: usize,
    unless: Option<String>,
    /// A list without whose words the rule cannot hold; rules for anybody's text must name one.
    gate: Option<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "only the tests read the examples"))]
    #[serde(default)]
    held: Vec<String>,
    #[cfg_attr(not(test), expect(dead_code, reason = "only the tests read the examples"))]
    #[serde(default)]
    passes: Vec<String>,
}

fn reach_default() -> usize {
    80
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum From {
    Any,
    External,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Order {
    #[default]
    Given,
    Free,
}

/// What is wrong with the file of rules.
#[derive(Debug, thiserror::Error)]
enum RulesError {
    #[error("quarantine.yaml cannot be read: {0}")]
    Yaml(#[from] serde_yaml::Error),
    #[error("the words cannot be compiled: {0}")]
    Words(#[from] aho_corasick::BuildError),
    #[error("`{0}` is no list, shape, or group")]
    Unknown(String),
    #[error("a rule on {0} has {1} terms; at most {TERMS_MAX} and at least one")]
    Terms(Concern, usize),
    #[error("the rule on {0} for anybody's text names no gate")]
    NoGate(Concern),
    #[error("more than 128 lists and shapes")]
    TooMany,
}

impl Rules {
    fn parse(text: &str) -> Result<Self, RulesError> {
        let file: File = serde_yaml::from_str(text)?;
        if file.lists.len() + file.shapes.len() > 128 {
            return Err(RulesError::TooMany);
        }
        let mut names: Vec<&String> = file.lists.keys().chain(file.shapes.keys()).collect();
        names.sort();
        let number: HashMap<&str, u8> = names.iter().map(|it| it.as_str()).zip(0..).collect();
        let mut masks: HashMap<&str, Mask> =
            number.iter().map(|(name, it)| (*name, 1 << it)).collect();
        // Groups may name groups; nesting is as deep as there are groups at most.
        for _ in 0..file.groups.len() {
            for (name, members) in &file.groups {
                let of_members = members.iter().filter_map(|it| masks.get(it.as_str()));
                let mask = of_members.fold(0, |a, b| a | b);
                masks.insert(name, mask);
            }
        }
        let resolve = |names: &str| {
            names.split('|').try_fold(0, |mask, name| {
                masks
                    .get(name)
                    .map(|it| mask | it)
                    .ok_or_else(|| RulesError::Unknown(name.to_owned()))
            })
        };
        if let Some(it) = file.groups.values().flatten().find(|it| !masks.contains_key(it.as_str()))
        {
            return Err(RulesError::Unknown(it.clone()));
        }
        let mut rules = Vec::new();
        for it in &file.rules {
            if it.terms.is_empty() || it.terms.len() > TERMS_MAX {
                return Err(RulesError::Terms(it.concern, it.terms.len()));
            }
            let term = |text: &String| {
                text.split('|').try_fold(Term { mask: 0, begins: 0 }, |term, name| {
                    let mask = resolve(name.trim_start_matches('^'))?;
                    let begins = if name.starts_with('^') { mask } else { 0 };
                    Ok(Term { mask: term.mask | mask, begins: term.begins | begins })
                })
            };
            rules.push(Rule {
                concern: it.concern,
                external_only: it.from == From::External,
                terms: it.terms.iter().map(term).collect::<Result<_, RulesError>>()?,
                free: it.order == Order::Free,
                reach: it.reach,
                unless: it.unless.as_deref().map_or(Ok(0), resolve)?,
            });
        }
        let mut patterns = Vec::new();
        let mut of_word = Vec::new();
        for (name, languages) in &file.lists {
            let list = number[name.as_str()];
            for text in languages.values().flatten() {
                let mut folded = Folded::default();
                folded.push(text.trim_end_matches('*'));
                let word = folded.words();
                of_word.push(Word {
                    list,
                    open_start: word.chars().next().is_none_or(is_open),
                    open_end: text.ends_with('*') || word.chars().next_back().is_none_or(is_open),
                });
                patterns.push(word.to_owned());
            }
        }
        let mut shapes = Vec::new();
        for (name, pattern) in &file.shapes {
            // ASCII boundaries do, and are much faster beside other scripts.
            let pattern = pattern.replace(r"\b", r"(?-u:\b)");
            let shape = Lent::new(move || Regex::new(&pattern).expect("a test compiles them all"));
            shapes.push((number[name.as_str()], shape));
        }
        let mut gates: Mask = 0;
        for it in file.rules.iter().filter(|it| it.from == From::Any) {
            gates |= resolve(it.gate.as_deref().ok_or(RulesError::NoGate(it.concern))?)?;
        }
        let in_gates = |(word, _): &(&Word, _)| gates & (1 << word.list) != 0;
        let of_gate = of_word.iter().zip(&patterns).filter(in_gates).map(|(it, _)| *it).collect();
        let gate = AhoCorasick::builder()
            // A table of all steps would be twice as fast and cost 12 MB.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(of_word.iter().zip(&patterns).filter(in_gates).map(|(_, it)| it))?;
        let words = Lent::new(move || {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::Standard)
                .build(&patterns)
                .expect("a test compiles them")
        });
        Ok(Self {
            gate,
            of_gate,
            words,
            of_word,
            shape_mask: shapes.iter().fold(0, |mask, (it, _)| mask | 1 << it),
            shapes,
            begin: resolve("begin")?,
            also: resolve("also")?,
            each: rules,
        })
    }

    fn each_match(
        &self,
        text: &Folded,
        origin: Origin,
        mut tell: impl FnMut(Concern, Range<usize>),
    ) {
        let words = text.words();
        spend(words.len());
        let external = origin == Origin::External;
        // Most of what people and agents write ends here.
        if !external && !self.passes_gate(text) {
            return;
        }
        let mut hits = Vec::new();
        let mut seen: Mask = 0;
        for hit in self.words.get().find_overlapping_iter(words) {
            spend(1);
            let word = self.of_word[hit.pattern().as_usize()];
            if word.is_at(&hit, text) {
                seen |= 1 << word.list;
                let (start, end, list) = (hit.start(), hit.end(), word.list);
                hits.push(Hit { start, end, list, sentence: 0, begins: false });
            }
        }
        let may_hold = |rule: &&Rule| {
            (external || !rule.external_only)
                && rule.terms.iter().all(|term| term.mask & (seen | self.shape_mask) != 0)
        };
        let rules: Vec<&Rule> = self.each.iter().filter(may_hold).collect();
        if rules.is_empty() {
            return;
        }
        let wanted = rules
            .iter()
            .fold(0, |mask, rule| rule.terms.iter().fold(mask | rule.unless, |m, t| m | t.mask));
        let mut whole: Mask = 0;
        for (list, shape) in self.shapes.iter().filter(|(list, _)| wanted & (1 << list) != 0) {
            spend(text.text().len());
            for hit in shape.get().find_iter(text.text()) {
                whole |= 1 << list;
                let (start, end, list) = (hit.start(), hit.end(), *list);
                hits.push(Hit { start, end, list, sentence: 0, begins: false });
            }
        }
        hits.sort_unstable_by_key(|it| (it.start, it.end));
        self.place(text, external, &mut hits);
        for rule in rules {
            if rule.unless & whole & self.shape_mask == 0 {
                spend(hits.len());
                let mut told = 0;
                rule.each_match(&hits, |span| {
                    tell(rule.concern, span);
                    told += 1;
                    told < SPANS_MAX
                });
            }
        }
    }

    /// Returns whether a word of the gate may begin somewhere in the text.
    fn passes_gate(&self, text: &Folded) -> bool {
        let words = text.words();
        let mut from = 0;
        while let Some(hit) = self.gate.find(Input::new(words).span(from..words.len())) {
            spend(hit.end() - from);
            let word = self.of_gate[hit.pattern().as_usize()];
            // The longest word may end within another while a shorter one stands: the full search
            // tells. What begins within a word is nothing, but the next may begin in the hit.
            if text.is_loose() || word.open_start || !ends_in_word(&words[..hit.start()]) {
                return true;
            }
            from = hit.start() + 1;
        }
        false
    }

    /// Tells of each hit in which sentence it stands and whether an order can begin there.
    fn place(&self, text: &Folded, external: bool, hits: &mut [Hit]) {
        let words = text.words();
        let begin = self.begin | if external { self.also } else { 0 };
        let mut leads: Vec<usize> =
            hits.iter().filter(|it| begin & (1 << it.list) != 0).map(|it| it.end).collect();
        leads.sort_unstable();
        let mut ends = sentence_ends(text.text()).peekable();
        let mut sentence = 0;
        for hit in hits {
            while ends.next_if(|end| *end <= hit.start).is_some() {
                sentence += 1;
            }
            hit.sentence = sentence;
            let before = words[..hit.start].trim_end();
            spend(hit.start - before.len());
            hit.begins = text.is_loose()
                || words[hit.start..].chars().next().is_some_and(is_open)
                || leads.binary_search(&before.len()).is_ok()
                || can_begin_after(&text.text()[..hit.start]);
        }
    }
}

impl Rule {
    /// Tells the spans in which all terms meet, until `tell` has enough.
    fn each_match(&self, hits: &[Hit], mut tell: impl FnMut(Range<usize>) -> bool) {
        for sentence in hits.chunk_by(|a, b| a.sentence == b.sentence) {
            if sentence.iter().any(|hit| self.unless & (1 << hit.list) != 0) {
                continue;
            }
            let found =
                if self.free { self.meet_free(sentence) } else { self.meet_given(sentence) };
            if let Some(span) = found
                && !tell(span)
            {
                return;
            }
        }
    }

    /// Finds the terms one after another, each within reach of the one before.
    fn meet_given(&self, hits: &[Hit]) -> Option<Range<usize>> {
        // Of each term: where the newest chain up to it began, and where it ended. Only the newest
        // counts, because what follows must stand near.
        let mut chains: [Option<(usize, usize)>; TERMS_MAX] = [None; TERMS_MAX];
        for hit in hits {
            for i in (0..self.terms.len()).rev() {
                if !self.terms[i].is_met_by(hit) {
                    continue;
                }
                let start = match i.checked_sub(1) {
                    None => Some(hit.start),
                    Some(before) => chains[before]
                        .filter(|(_, end)| *end <= hit.start && hit.start - end <= self.reach)
                        .map(|(start, _)| start),
                };
                if let Some(start) = start {
                    if i + 1 == self.terms.len() {
                        return Some(start..hit.end);
                    }
                    chains[i] = Some((start, hit.end));
                }
            }
        }
        None
    }

    /// Finds the terms in any order, all within reach.
    fn meet_free(&self, hits: &[Hit]) -> Option<Range<usize>> {
        let mut last: [Option<(usize, usize)>; TERMS_MAX] = [None; TERMS_MAX];
        for hit in hits {
            let mut is_met = false;
            for (term, last) in self.terms.iter().zip(&mut last) {
                if term.is_met_by(hit) {
                    *last = Some((hit.start, hit.end));
                    is_met = true;
                }
            }
            let met = &last[..self.terms.len()];
            if is_met && met.iter().all(Option::is_some) {
                let start = met.iter().flatten().map(|it| it.0).min()?;
                let end = met.iter().flatten().map(|it| it.1).max()?;
                let inner = met.iter().flatten().map(|it| it.1).min()?;
                let outer = met.iter().flatten().map(|it| it.0).max()?;
                if outer.saturating_sub(inner) <= self.reach {
                    return Some(start..end);
                }
            }
        }
        None
    }
}

impl Word {
    /// Returns whether a hit of the word is a whole word of the text.
    fn is_at(self, hit: &Match, text: &Folded) -> bool {
        let words = text.words();
        text.is_loose()
            || (self.open_start || !ends_in_word(&words[..hit.start()]))
                && (self.open_end || !starts_in_word(&words[hit.end()..]))
    }
}

impl Term {
    fn is_met_by(self, hit: &Hit) -> bool {
        let list = 1 << hit.list;
        self.mask & list != 0 && (hit.begins || self.begins & list == 0)
    }
}

/// Returns whether words of the script stand without blanks between them.
fn is_open(c: char) -> bool {
    !c.is_alphanumeric()
        || matches!(c as u32, 0x1100..=0x11ff | 0x2e80..=0xa4cf | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn ends_in_word(before: &str) -> bool {
    match before.bytes().next_back() {
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        _ => before.chars().next_back().is_some_and(|c| c.is_alphanumeric() && !is_open(c)),
    }
}

fn starts_in_word(after: &str) -> bool {
    match after.bytes().next() {
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        _ => after.chars().next().is_some_and(|c| c.is_alphanumeric() && !is_open(c)),
    }
}

/// Returns whether an order can begin after the text: at the start, after a mark, after a number.
fn can_begin_after(before: &str) -> bool {
    let trimmed = before.trim_end();
    let Some(last) = trimmed.chars().next_back() else { return true };
    let apart = trimmed.len() < before.len();
    match last {
        '"' | '(' | '[' | '{' | '<' | '>' | ']' | '|' | ')' => true,
        '\'' | '/' | '@' | '#' | '$' | '%' | '&' | '+' | '=' | '\\' | '~' | '^' => false,
        _ if last.is_ascii_digit() => apart,
        _ if is_open(last) => apart || !last.is_ascii(),
        _ => false,
    }
}

/// Returns the offsets after which a new sentence begins.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    text.char_indices().filter_map(|(i, c)| {
        let end = i + c.len_utf8();
        let next = || text[end..].chars().next();
        let is_end = match c {
            '。' | '।' | '؟' => true,
            '.' => next().is_none_or(|it| it == ' ') && !is_abbreviation(&text[..i]),
            '!' | '?' => next().is_none_or(|it| it == ' ' || !it.is_ascii()),
            _ => false,
        };
        is_end.then_some(end)
    })
}

/// Returns whether a dot after the text ends a short form or a number of a list.
fn is_abbreviation(before: &str) -> bool {
    let word = before.rsplit([' ', '(', '.']).next().unwrap_or(before);
    matches!(word, "e" | "g" | "i" | "etc" | "z" | "b" | "vs" | "dr" | "mr" | "mrs" | "nr" | "no")
        || (word.len() <= 2 && word.bytes().all(|b| b.is_ascii_digit()) && !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::hold;

    #[test]
    fn every_example_ends_as_its_rule_says() {
        let text = include_str!("../../../config/quarantine.yaml");
        let file: File = serde_yaml::from_str(text).unwrap();
        let mut wrong = Vec::new();
        for rule in &file.rules {
            let origin = if rule.from == From::Any { Origin::Agent } else { Origin::External };
            assert!(
                !rule.held.is_empty() && !rule.passes.is_empty(),
                "{}: no examples",
                rule.concern
            );
            for text in &rule.held {
                let found = hold::concerns(text, origin);
                if !found.contains(&rule.concern) {
                    wrong.push(format!(
                        "{} {:?}: `{text}` gives {found:?}",
                        rule.concern.name(),
                        rule.terms
                    ));
                }
            }
            for text in &rule.passes {
                let found = hold::concerns(text, origin);
                if !found.is_empty() {
                    wrong.push(format!(
                        "{} {:?}: `{text}` is held for {found:?}",
                        rule.concern.name(),
                        rule.terms
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_is_compiled_when_it_is_needed_can_be() {
        RULES.words.get();
        RULES.shapes.iter().for_each(|(_, shape)| drop(shape.get()));
    }

    #[test]
    fn no_word_of_a_list_is_empty() {
        let file: File =
            serde_yaml::from_str(include_str!("../../../config/quarantine.yaml")).unwrap();
        for (name, languages) in &file.lists {
            for word in languages.values().flatten() {
                assert!(word.trim_end_matches('*').chars().count() > 0, "{name} has an empty word");
            }
        }
    }
}
