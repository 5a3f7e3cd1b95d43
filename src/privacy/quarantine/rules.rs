//! Orders, told by lists of words: the reader of `config/quarantine.yaml`.
//!
//! A text is searched once for all words of all lists. A rule holds where its lists meet in one
//! sentence, near enough to each other; the shapes (addresses, amounts, shell commands) are searched
//! only where the words of a rule that needs them have been found. So the time is linear in the text.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};
use regex::Regex;
use serde::Deserialize;

use super::{Concern, ConcernSet, normalize::NormalizedText};
use crate::{
    memory::log::TextOrigin,
    privacy::{reclaimable::Reclaimable, work_counter::count_bytes},
};

/// Returns the concerns of a folded text.
pub fn concerns(text: &NormalizedText, origin: TextOrigin) -> ConcernSet {
    let mut found = ConcernSet::default();
    RULES.each_match(text, origin, |concern, _| found.add(concern));
    found
}

/// Returns where the concerns of a folded text stand, as byte ranges from the first to the last term.
pub fn spans(text: &NormalizedText, origin: TextOrigin) -> Vec<(Concern, Range<usize>)> {
    let mut found = Vec::new();
    RULES.each_match(text, origin, |concern, span| found.push((concern, span)));
    found
}

static RULES: LazyLock<QuarantineRules> = LazyLock::new(|| {
    QuarantineRules::parse(include_str!("../../../config/quarantine.yaml"))
        .expect("the rules are tested")
});

/// The most terms of one rule.
const TERMS_MAX: usize = 6;

/// The most spans that one rule tells of one text.
const SPANS_MAX: usize = 64;

/// A set of lists and shapes, one bit each.
type ListMask = u128;

struct QuarantineRules {
    /// Words of which one at least stands in whatever a rule for anybody's text can hold.
    gate: AhoCorasick,
    gate_words: Vec<ListWord>,
    /// Made when something passes the gate: in many a log nothing does.
    word_matcher: Reclaimable<AhoCorasick>,
    /// Of each word: its list, and whether its ends are open.
    list_words: Vec<ListWord>,
    shapes: Vec<(u8, Reclaimable<Regex>)>,
    shape_mask: ListMask,
    /// Lists after whose words an order can begin.
    order_starts: ListMask,
    /// The list of words after which one can begin in an external text.
    external_order_starts: ListMask,
    rules: Vec<QuarantineRule>,
}

#[derive(Clone, Copy)]
struct ListWord {
    list: u8,
    open_start: bool,
    open_end: bool,
}

struct QuarantineRule {
    concern: Concern,
    external_only: bool,
    terms: Vec<RuleTerm>,
    any_order: bool,
    reach: usize,
    unless: ListMask,
}

#[derive(Clone, Copy)]
struct RuleTerm {
    mask: ListMask,
    /// Those of the mask that count only where an order can begin.
    start_only: ListMask,
}

#[derive(Clone, Copy)]
struct WordHit {
    start: usize,
    end: usize,
    list: u8,
    sentence: u32,
    can_start_order: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuarantineRulesYaml {
    lists: HashMap<String, HashMap<String, Vec<String>>>,
    shapes: HashMap<String, String>,
    groups: HashMap<String, Vec<String>>,
    rules: Vec<QuarantineRuleEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuarantineRuleEntry {
    concern: Concern,
    from: RuleScope,
    terms: Vec<String>,
    #[serde(default)]
    order: TermOrder,
    #[serde(default = "default_reach")]
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

fn default_reach() -> usize {
    80
}

#[derive(Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RuleScope {
    Any,
    External,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TermOrder {
    #[default]
    Given,
    Free,
}

/// What is wrong with the file of rules.
#[derive(Debug, thiserror::Error)]
enum QuarantineRulesError {
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

impl QuarantineRules {
    #[expect(clippy::too_many_lines, reason = "one rule after the other, each with its own errors")]
    fn parse(text: &str) -> Result<Self, QuarantineRulesError> {
        let file: QuarantineRulesYaml = serde_yaml::from_str(text)?;
        if file.lists.len() + file.shapes.len() > 128 {
            return Err(QuarantineRulesError::TooMany);
        }
        let mut names: Vec<&String> = file.lists.keys().chain(file.shapes.keys()).collect();
        names.sort();
        let number: HashMap<&str, u8> = names.iter().map(|it| it.as_str()).zip(0..).collect();
        let mut masks: HashMap<&str, ListMask> =
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
                    .ok_or_else(|| QuarantineRulesError::Unknown(name.to_owned()))
            })
        };
        if let Some(it) = file.groups.values().flatten().find(|it| !masks.contains_key(it.as_str()))
        {
            return Err(QuarantineRulesError::Unknown(it.clone()));
        }
        let mut rules = Vec::new();
        for it in &file.rules {
            if it.terms.is_empty() || it.terms.len() > TERMS_MAX {
                return Err(QuarantineRulesError::Terms(it.concern, it.terms.len()));
            }
            let term = |text: &String| {
                text.split('|').try_fold(RuleTerm { mask: 0, start_only: 0 }, |term, name| {
                    let mask = resolve(name.trim_start_matches('^'))?;
                    let begins = if name.starts_with('^') { mask } else { 0 };
                    Ok(RuleTerm { mask: term.mask | mask, start_only: term.start_only | begins })
                })
            };
            rules.push(QuarantineRule {
                concern: it.concern,
                external_only: it.from == RuleScope::External,
                terms: it.terms.iter().map(term).collect::<Result<_, QuarantineRulesError>>()?,
                any_order: it.order == TermOrder::Free,
                reach: it.reach,
                unless: it.unless.as_deref().map_or(Ok(0), resolve)?,
            });
        }
        let mut patterns = Vec::new();
        let mut of_word = Vec::new();
        for (name, languages) in &file.lists {
            let list = number[name.as_str()];
            for text in languages.values().flatten() {
                let mut folded = NormalizedText::default();
                folded.push(text.trim_end_matches('*'));
                let word = folded.words();
                of_word.push(ListWord {
                    list,
                    open_start: word.chars().next().is_none_or(is_word_boundary),
                    open_end: text.ends_with('*')
                        || word.chars().next_back().is_none_or(is_word_boundary),
                });
                patterns.push(word.to_owned());
            }
        }
        let mut shapes = Vec::new();
        for (name, pattern) in &file.shapes {
            // ASCII boundaries do, and are much faster beside other scripts.
            let pattern = pattern.replace(r"\b", r"(?-u:\b)");
            let shape =
                Reclaimable::new(move || Regex::new(&pattern).expect("a test compiles them all"));
            shapes.push((number[name.as_str()], shape));
        }
        let mut gates: ListMask = 0;
        for it in file.rules.iter().filter(|it| it.from == RuleScope::Any) {
            gates |= resolve(it.gate.as_deref().ok_or(QuarantineRulesError::NoGate(it.concern))?)?;
        }
        let in_gates = |(word, _): &(&ListWord, _)| gates & (1 << word.list) != 0;
        let of_gate = of_word.iter().zip(&patterns).filter(in_gates).map(|(it, _)| *it).collect();
        let gate = AhoCorasick::builder()
            // A table of all steps would be twice as fast and cost 12 MB.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(of_word.iter().zip(&patterns).filter(in_gates).map(|(_, it)| it))?;
        let words = Reclaimable::new(move || {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::Standard)
                .build(&patterns)
                .expect("a test compiles them")
        });
        Ok(Self {
            gate,
            gate_words: of_gate,
            word_matcher: words,
            list_words: of_word,
            shape_mask: shapes.iter().fold(0, |mask, (it, _)| mask | 1 << it),
            shapes,
            order_starts: resolve("begin")?,
            external_order_starts: resolve("also")?,
            rules,
        })
    }

    fn each_match(
        &self,
        text: &NormalizedText,
        origin: TextOrigin,
        mut tell: impl FnMut(Concern, Range<usize>),
    ) {
        let words = text.words();
        count_bytes(words.len());
        let external = origin == TextOrigin::External;
        // Most of what people and agents write ends here.
        if !external && !self.passes_gate(text) {
            return;
        }
        let mut hits = Vec::new();
        let mut seen: ListMask = 0;
        for hit in self.word_matcher.get().find_overlapping_iter(words) {
            count_bytes(1);
            let word = self.list_words[hit.pattern().as_usize()];
            if word.is_whole_word(&hit, text) {
                seen |= 1 << word.list;
                let (start, end, list) = (hit.start(), hit.end(), word.list);
                hits.push(WordHit { start, end, list, sentence: 0, can_start_order: false });
            }
        }
        let may_hold = |rule: &&QuarantineRule| {
            (external || !rule.external_only)
                && rule.terms.iter().all(|term| term.mask & (seen | self.shape_mask) != 0)
        };
        let rules: Vec<&QuarantineRule> = self.rules.iter().filter(may_hold).collect();
        if rules.is_empty() {
            return;
        }
        let wanted = rules
            .iter()
            .fold(0, |mask, rule| rule.terms.iter().fold(mask | rule.unless, |m, t| m | t.mask));
        let mut whole: ListMask = 0;
        for (list, shape) in self.shapes.iter().filter(|(list, _)| wanted & (1 << list) != 0) {
            count_bytes(text.text().len());
            for hit in shape.get().find_iter(text.text()) {
                whole |= 1 << list;
                let (start, end, list) = (hit.start(), hit.end(), *list);
                hits.push(WordHit { start, end, list, sentence: 0, can_start_order: false });
            }
        }
        hits.sort_unstable_by_key(|it| (it.start, it.end));
        self.locate_hits(text, external, &mut hits);
        for rule in rules {
            if rule.unless & whole & self.shape_mask == 0 {
                count_bytes(hits.len());
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
    fn passes_gate(&self, text: &NormalizedText) -> bool {
        let words = text.words();
        let mut from = 0;
        while let Some(hit) = self.gate.find(Input::new(words).span(from..words.len())) {
            count_bytes(hit.end() - from);
            let word = self.gate_words[hit.pattern().as_usize()];
            // The longest word may end within another while a shorter one stands: the full search
            // tells. What begins within a word is nothing, but the next may begin in the hit.
            if text.ignores_word_boundaries()
                || word.open_start
                || !ends_in_word(&words[..hit.start()])
            {
                return true;
            }
            from = hit.start() + 1;
        }
        false
    }

    /// Tells of each hit in which sentence it stands and whether an order can begin there.
    fn locate_hits(&self, text: &NormalizedText, external: bool, hits: &mut [WordHit]) {
        let words = text.words();
        let begin = self.order_starts | if external { self.external_order_starts } else { 0 };
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
            count_bytes(hit.start - before.len());
            hit.can_start_order = text.ignores_word_boundaries()
                || words[hit.start..].chars().next().is_some_and(is_word_boundary)
                || leads.binary_search(&before.len()).is_ok()
                || order_can_start_after(&text.text()[..hit.start]);
        }
    }
}

impl QuarantineRule {
    /// Tells the spans in which all terms meet, until `tell` has enough.
    fn each_match(&self, hits: &[WordHit], mut tell: impl FnMut(Range<usize>) -> bool) {
        for sentence in hits.chunk_by(|a, b| a.sentence == b.sentence) {
            if sentence.iter().any(|hit| self.unless & (1 << hit.list) != 0) {
                continue;
            }
            let found = if self.any_order {
                self.match_any_order(sentence)
            } else {
                self.match_in_order(sentence)
            };
            if let Some(span) = found
                && !tell(span)
            {
                return;
            }
        }
    }

    /// Finds the terms one after another, each within reach of the one before.
    fn match_in_order(&self, hits: &[WordHit]) -> Option<Range<usize>> {
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
    fn match_any_order(&self, hits: &[WordHit]) -> Option<Range<usize>> {
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

impl ListWord {
    /// Returns whether a hit of the word is a whole word of the text.
    fn is_whole_word(self, hit: &Match, text: &NormalizedText) -> bool {
        let words = text.words();
        text.ignores_word_boundaries()
            || (self.open_start || !ends_in_word(&words[..hit.start()]))
                && (self.open_end || !starts_in_word(&words[hit.end()..]))
    }
}

impl RuleTerm {
    fn is_met_by(self, hit: &WordHit) -> bool {
        let list = 1 << hit.list;
        self.mask & list != 0 && (hit.can_start_order || self.start_only & list == 0)
    }
}

/// Returns whether words of the script stand without blanks between them.
fn is_word_boundary(c: char) -> bool {
    !c.is_alphanumeric()
        || matches!(c as u32, 0x1100..=0x11ff | 0x2e80..=0xa4cf | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

fn ends_in_word(before: &str) -> bool {
    match before.bytes().next_back() {
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        _ => {
            before.chars().next_back().is_some_and(|c| c.is_alphanumeric() && !is_word_boundary(c))
        }
    }
}

fn starts_in_word(after: &str) -> bool {
    match after.bytes().next() {
        Some(byte) if byte.is_ascii() => byte.is_ascii_alphanumeric(),
        _ => after.chars().next().is_some_and(|c| c.is_alphanumeric() && !is_word_boundary(c)),
    }
}

/// Returns whether an order can begin after the text: at the start, after a mark, after a number.
fn order_can_start_after(before: &str) -> bool {
    let trimmed = before.trim_end();
    let Some(last) = trimmed.chars().next_back() else { return true };
    let apart = trimmed.len() < before.len();
    match last {
        '"' | '(' | '[' | '{' | '<' | '>' | ']' | '|' | ')' => true,
        '\'' | '/' | '@' | '#' | '$' | '%' | '&' | '+' | '=' | '\\' | '~' | '^' => false,
        _ if last.is_ascii_digit() => apart,
        _ if is_word_boundary(last) => apart || !last.is_ascii(),
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
    use crate::privacy::quarantine;

    #[test]
    fn every_example_ends_as_its_rule_says() {
        let text = include_str!("../../../config/quarantine.yaml");
        let file: QuarantineRulesYaml = serde_yaml::from_str(text).unwrap();
        let mut wrong = Vec::new();
        for rule in &file.rules {
            let origin =
                if rule.from == RuleScope::Any { TextOrigin::Agent } else { TextOrigin::External };
            assert!(
                !rule.held.is_empty() && !rule.passes.is_empty(),
                "{}: no examples",
                rule.concern
            );
            for text in &rule.held {
                let found = quarantine::concerns(text, origin);
                if !found.contains(&rule.concern) {
                    wrong.push(format!(
                        "{} {:?}: `{text}` gives {found:?}",
                        rule.concern.name(),
                        rule.terms
                    ));
                }
            }
            for text in &rule.passes {
                let found = quarantine::concerns(text, origin);
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
        RULES.word_matcher.get();
        RULES.shapes.iter().for_each(|(_, shape)| drop(shape.get()));
    }

    #[test]
    fn no_word_of_a_list_is_empty() {
        let file: QuarantineRulesYaml =
            serde_yaml::from_str(include_str!("../../../config/quarantine.yaml")).unwrap();
        for (name, languages) in &file.lists {
            for word in languages.values().flatten() {
                assert!(word.trim_end_matches('*').chars().count() > 0, "{name} has an empty word");
            }
        }
    }
}
