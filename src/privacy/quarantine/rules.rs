//! Instructions, found by word lists: the rules of `config/quarantine.yaml`.
//!
//! A text is searched once for all words of all lists. A rule matches where words of its lists occur in
//! one sentence, close to each other. The shapes (URLs, amounts, shell commands) are searched for only
//! where the words of a rule that needs them were found. So the time is linear in the text.

use std::{collections::HashMap, ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Match, MatchKind};
use regex::Regex;
use serde::Deserialize;

use super::{Concern, ConcernSet, normalize::NormalizedText, with_ascii_boundaries};
use crate::{
    memory::log::TextOrigin,
    privacy::{reclaimable::Reclaimable, work_counter::count_bytes},
};

/// Returns the concerns about a normalized text.
pub fn concerns(text: &NormalizedText, origin: TextOrigin) -> ConcernSet {
    let mut found = ConcernSet::default();
    RULES.each_match(text, origin, |concern, _| found.add(concern));
    found
}

/// Returns the concerns about a normalized text with byte ranges, from the first to the last term.
pub fn spans(text: &NormalizedText, origin: TextOrigin) -> Vec<(Concern, Range<usize>)> {
    let mut found = Vec::new();
    RULES.each_match(text, origin, |concern, span| found.push((concern, span)));
    found
}

/// Builds what [`concerns`] needs, except for the shapes.
pub(super) fn prepare() {
    RULES.word_matcher.get();
}

static RULES: LazyLock<QuarantineRules> = LazyLock::new(|| {
    // `build.rs` makes it from `config/quarantine.yaml`.
    QuarantineRules::parse(include_str!(concat!(env!("OUT_DIR"), "/quarantine.json")))
        .expect("the rules are tested")
});

/// The most terms of one rule.
const TERMS_MAX: usize = 6;

/// The most spans that one rule reports in one text.
const SPANS_MAX: usize = 64;

/// A set of lists and shapes, one bit each.
type ListMask = u128;

struct QuarantineRules {
    /// Matches the words of the gate lists; a rule for any origin cannot match without one of them.
    gate: AhoCorasick,
    gate_words: Vec<ListWord>,
    /// Built when a text passes the gate, which in many logs none does.
    word_matcher: Reclaimable<AhoCorasick>,
    /// The list of each word, and whether its ends are open.
    list_words: Vec<ListWord>,
    shapes: Vec<(u8, Reclaimable<Regex>)>,
    shape_mask: ListMask,
    /// Lists after whose words an instruction can start.
    order_starts: ListMask,
    /// Lists after whose words one can also start in an external text.
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
    /// The lists of the mask that count only where an instruction can start.
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
struct QuarantineRulesFile {
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
    /// A list without whose words the rule cannot match; rules for any origin must name one.
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

/// What is wrong with the rules.
#[derive(Debug, thiserror::Error)]
enum QuarantineRulesError {
    #[error("the rules cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the words cannot be compiled: {0}")]
    Words(#[from] aho_corasick::BuildError),
    #[error("`{0}` is not a list, shape, or group")]
    Unknown(String),
    #[error("a rule that {0} has {1} terms instead of 1 to {TERMS_MAX}")]
    Terms(Concern, usize),
    #[error("a rule for any origin that {0} names no gate")]
    NoGate(Concern),
    #[error("more than 128 lists and shapes")]
    TooMany,
}

/// The bits of lists and shapes, by their names and by those of groups.
struct ListMasks<'a> {
    numbers: HashMap<&'a str, u8>,
    masks: HashMap<&'a str, ListMask>,
}

impl<'a> ListMasks<'a> {
    fn of(file: &'a QuarantineRulesFile) -> Result<Self, QuarantineRulesError> {
        if file.lists.len() + file.shapes.len() > 128 {
            return Err(QuarantineRulesError::TooMany);
        }
        let names = file.lists.keys().chain(file.shapes.keys()).map(String::as_str);
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        let numbers: HashMap<&str, u8> = names.into_iter().zip(0..).collect();
        let mut masks: HashMap<&str, ListMask> =
            numbers.iter().map(|(name, it)| (*name, 1 << it)).collect();
        // Groups may contain groups; nesting is at most as deep as there are groups.
        for _ in 0..file.groups.len() {
            for (name, members) in &file.groups {
                let of_members = members.iter().filter_map(|it| masks.get(it.as_str()));
                let mask = of_members.fold(0, |a, b| a | b);
                masks.insert(name, mask);
            }
        }
        match file.groups.values().flatten().find(|it| !masks.contains_key(it.as_str())) {
            Some(unknown) => Err(QuarantineRulesError::Unknown(unknown.clone())),
            None => Ok(Self { numbers, masks }),
        }
    }

    /// Returns the mask of names that are separated by `|`.
    fn resolve(&self, names: &str) -> Result<ListMask, QuarantineRulesError> {
        names.split('|').try_fold(0, |mask, name| {
            let known = self.masks.get(name).map(|it| mask | it);
            known.ok_or_else(|| QuarantineRulesError::Unknown(name.to_owned()))
        })
    }

    fn compile_rule(
        &self,
        entry: &QuarantineRuleEntry,
    ) -> Result<QuarantineRule, QuarantineRulesError> {
        if entry.terms.is_empty() || entry.terms.len() > TERMS_MAX {
            return Err(QuarantineRulesError::Terms(entry.concern, entry.terms.len()));
        }
        Ok(QuarantineRule {
            concern: entry.concern,
            external_only: entry.from == RuleScope::External,
            terms: entry.terms.iter().map(|it| self.compile_term(it)).collect::<Result<_, _>>()?,
            any_order: entry.order == TermOrder::Free,
            reach: entry.reach,
            unless: entry.unless.as_deref().map_or(Ok(0), |it| self.resolve(it))?,
        })
    }

    fn compile_term(&self, names: &str) -> Result<RuleTerm, QuarantineRulesError> {
        names.split('|').try_fold(RuleTerm { mask: 0, start_only: 0 }, |term, name| {
            let mask = self.resolve(name.trim_start_matches('^'))?;
            let start_only = if name.starts_with('^') { mask } else { 0 };
            Ok(RuleTerm { mask: term.mask | mask, start_only: term.start_only | start_only })
        })
    }

    /// Returns the words of all lists, normalized.
    fn words(&self, file: &QuarantineRulesFile) -> Vec<(ListWord, String)> {
        let mut words = Vec::new();
        for (name, languages) in &file.lists {
            let list = self.numbers[name.as_str()];
            for text in languages.values().flatten() {
                let mut normalized = NormalizedText::default();
                normalized.push(text.trim_end_matches('*'));
                let word = normalized.words();
                let ends = ListWord {
                    list,
                    open_start: word.chars().next().is_none_or(is_word_boundary),
                    open_end: text.ends_with('*')
                        || word.chars().next_back().is_none_or(is_word_boundary),
                };
                words.push((ends, word.to_owned()));
            }
        }
        words
    }
}

impl QuarantineRules {
    fn parse(text: &str) -> Result<Self, QuarantineRulesError> {
        let file: QuarantineRulesFile = serde_json::from_str(text)?;
        let lists = ListMasks::of(&file)?;
        let rules = file.rules.iter().map(|it| lists.compile_rule(it));
        let rules = rules.collect::<Result<_, QuarantineRulesError>>()?;
        let mut gate_lists: ListMask = 0;
        for entry in file.rules.iter().filter(|it| it.from == RuleScope::Any) {
            let gate = entry.gate.as_deref();
            gate_lists |=
                lists.resolve(gate.ok_or(QuarantineRulesError::NoGate(entry.concern))?)?;
        }
        let (list_words, patterns): (Vec<ListWord>, Vec<String>) =
            lists.words(&file).into_iter().unzip();
        let of_gate = list_words.iter().copied().zip(&patterns);
        let (gate_words, gate_patterns): (Vec<ListWord>, Vec<&String>) =
            of_gate.filter(|(word, _)| gate_lists & (1 << word.list) != 0).unzip();
        let gate = AhoCorasick::builder()
            // A DFA would be twice as fast and take 12 MB.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .match_kind(MatchKind::LeftmostLongest)
            .build(gate_patterns)?;
        let word_matcher = Reclaimable::new(move || {
            AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::Standard)
                .build(&patterns)
                .expect("a test compiles them")
        });
        let shapes = file.shapes.iter();
        let shapes: Vec<_> = shapes
            .map(|(name, pattern)| (lists.numbers[name.as_str()], compile_shape(pattern)))
            .collect();
        Ok(Self {
            gate,
            gate_words,
            word_matcher,
            list_words,
            shape_mask: shapes.iter().fold(0, |mask, (it, _)| mask | 1 << it),
            shapes,
            order_starts: lists.resolve("begin")?,
            external_order_starts: lists.resolve("also")?,
            rules,
        })
    }

    fn each_match(
        &self,
        text: &NormalizedText,
        origin: TextOrigin,
        mut on_match: impl FnMut(Concern, Range<usize>),
    ) {
        let words = text.words();
        count_bytes(words.len());
        let external = origin == TextOrigin::External;
        // Most text of people and agents ends here.
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
        let can_match = |rule: &&QuarantineRule| {
            (external || !rule.external_only)
                && rule.terms.iter().all(|term| term.mask & (seen | self.shape_mask) != 0)
        };
        let rules: Vec<&QuarantineRule> = self.rules.iter().filter(can_match).collect();
        if rules.is_empty() {
            return;
        }
        let needed = rules
            .iter()
            .fold(0, |mask, rule| rule.terms.iter().fold(mask | rule.unless, |m, t| m | t.mask));
        let mut shapes_found: ListMask = 0;
        for (list, shape) in self.shapes.iter().filter(|(list, _)| needed & (1 << list) != 0) {
            count_bytes(text.text().len());
            for hit in shape.get().find_iter(text.text()) {
                shapes_found |= 1 << list;
                let (start, end, list) = (hit.start(), hit.end(), *list);
                hits.push(WordHit { start, end, list, sentence: 0, can_start_order: false });
            }
        }
        hits.sort_unstable_by_key(|it| (it.start, it.end));
        self.locate_hits(text, external, &mut hits);
        for rule in rules {
            if rule.unless & shapes_found & self.shape_mask == 0 {
                count_bytes(hits.len());
                let mut reported = 0;
                rule.each_match(&hits, |span| {
                    on_match(rule.concern, span);
                    reported += 1;
                    reported < SPANS_MAX
                });
            }
        }
    }

    /// Returns whether the text may contain a word of the gate.
    fn passes_gate(&self, text: &NormalizedText) -> bool {
        let words = text.words();
        let mut from = 0;
        while let Some(hit) = self.gate.find(Input::new(words).span(from..words.len())) {
            count_bytes(hit.end() - from);
            let word = self.gate_words[hit.pattern().as_usize()];
            // The longest match may end within a word where a shorter one is whole, which the full
            // search decides. A match that starts within a word does not count, but the next one
            // may start inside it.
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

    /// Sets the sentence of each hit, and whether an instruction can start there.
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
    /// Calls `on_span` with each span that contains all terms, until it returns `false`.
    fn each_match(&self, hits: &[WordHit], mut on_span: impl FnMut(Range<usize>) -> bool) {
        for sentence in hits.chunk_by(|a, b| a.sentence == b.sentence) {
            if self.is_cleared(sentence) {
                continue;
            }
            let found = if self.any_order {
                self.match_any_order(sentence)
            } else {
                self.match_in_order(sentence)
            };
            if let Some(span) = found
                && !on_span(span)
            {
                return;
            }
        }
    }

    /// Returns whether a word clears the sentence. One inside a term does not: in many languages
    /// "without asking" contains "not".
    fn is_cleared(&self, sentence: &[WordHit]) -> bool {
        let terms = self.terms.iter().fold(0, |mask, it| mask | it.mask);
        let mut term_end = 0;
        sentence.chunk_by(|a, b| a.start == b.start).any(|hits| {
            let of_terms = hits.iter().filter(|it| terms & (1 << it.list) != 0);
            let longest = of_terms.map(|it| it.end).fold(0, usize::max);
            let is_inside = |it: &WordHit| it.end <= term_end || it.end < longest;
            let is_cleared =
                hits.iter().any(|it| self.unless & (1 << it.list) != 0 && !is_inside(it));
            term_end = term_end.max(longest);
            is_cleared
        })
    }

    /// Finds the terms in their order, each within reach of the one before.
    fn match_in_order(&self, hits: &[WordHit]) -> Option<Range<usize>> {
        // For each term, the start and end of the latest chain up to it. Only the latest counts,
        // because the next term must be close.
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

    /// Finds the terms in any order, all within reach of each other.
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

fn compile_shape(pattern: &str) -> Reclaimable<Regex> {
    let pattern = with_ascii_boundaries(pattern);
    Reclaimable::new(move || Regex::new(&pattern).expect("a test compiles all shapes"))
}

/// Returns whether a word may start or end at a character: it is not a letter, or its script has no
/// spaces between words.
fn is_word_boundary(c: char) -> bool {
    !c.is_alphanumeric()
        || matches!(c as u32, 0xe00..=0xeff | 0x1100..=0x11ff | 0x2e80..=0xa4cf | 0xac00..=0xd7ff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
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

/// Returns whether an instruction can start after the text: at the start, after a mark or a number.
fn order_can_start_after(before: &str) -> bool {
    let trimmed = before.trim_end();
    let Some(last) = trimmed.chars().next_back() else { return true };
    let has_space = trimmed.len() < before.len();
    match last {
        '"' | '(' | '[' | '{' | '<' | '>' | ']' | '|' | ')' => true,
        '\'' | '/' | '@' | '#' | '$' | '%' | '&' | '+' | '=' | '\\' | '~' | '^' => false,
        _ if last.is_ascii_digit() => has_space,
        _ if is_word_boundary(last) => has_space || !last.is_ascii(),
        _ => false,
    }
}

/// Returns the offsets at which sentences end.
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

/// Returns whether a dot after the text ends an abbreviation or a list number.
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
    fn every_rule_quarantines_its_examples_and_no_clean_one() {
        let text = include_str!("../../../config/quarantine.yaml");
        let file: QuarantineRulesFile = serde_yaml::from_str(text).unwrap();
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
    fn everything_compiled_on_first_use_compiles() {
        RULES.word_matcher.get();
        RULES.shapes.iter().for_each(|(_, shape)| drop(shape.get()));
    }

    #[test]
    fn no_word_of_a_list_is_empty() {
        let file: QuarantineRulesFile =
            serde_yaml::from_str(include_str!("../../../config/quarantine.yaml")).unwrap();
        for (name, languages) in &file.lists {
            for word in languages.values().flatten() {
                assert!(word.trim_end_matches('*').chars().count() > 0, "{name} has an empty word");
            }
        }
    }
}
