//! One walk over a text: where its secrets stand.
//!
//! All literals of all rules are looked for at once. Where one stands, its rules are tried: a token
//! right there, a value in the lines around. So a text without any literal costs one pass, and no
//! byte is given to one expression more than a few times, whatever the text.

use std::{ops::Range, sync::Arc};

use regex::{CaptureLocations, Regex};

use super::{
    SecretMatch,
    check::entropy,
    rules::{CompiledSecretRules, SecretRule, SecretRuleForm},
    split_secrets,
};
use crate::privacy::work_counter::count_bytes;

/// How far before a keyword its expression may begin, in bytes.
const BYTES_BEFORE_KEYWORD: usize = 128;

/// How far behind a keyword its expression may reach, in bytes, should the line be that long.
const BYTES_AFTER_KEYWORD: usize = 1024;

/// How many line breaks a token may go over.
const LINE_BREAKS_MAX: usize = 2;

/// How long a line may be that a token goes on from: nobody breaks longer ones.
const WRAPPED_LINE_BYTES_MAX: usize = 400;

/// The least of a next line that is taken for the rest of a token which is whole without it.
const WRAPPED_REST_MIN: usize = 8;

/// What of a wider find may be left over beside a token in it: a quote, a `user:`.
const LEFT_OVER_MAX: usize = 5;

/// A prefix of so many bytes is that of a token wherever it stands.
const DISTINCTIVE_PREFIX_BYTES: usize = 4;

/// A find, before those that overlap are joined.
pub(super) struct SecretCandidate {
    pub(super) rule: usize,
    pub(super) range: Range<usize>,
}

/// Returns what the rules find, in order, disjoint.
pub(super) fn find(rules: &CompiledSecretRules, text: &str) -> Vec<SecretMatch> {
    let mut found = candidates(rules, text);
    found.extend(split_secrets::find_split(rules, text));
    resolve_overlaps(rules, found)
}

/// Returns whether a line may say that a value stands in another one.
pub(super) fn has_value_keyword(rules: &CompiledSecretRules, line: &str) -> bool {
    let is_value =
        |at: &u16| matches!(rules.rules[usize::from(*at)].form, SecretRuleForm::Value { .. });
    let mut hits = rules.literals.find_overlapping_iter(line);
    hits.any(|hit| rules.by_literal[hit.pattern().as_usize()].iter().any(is_value))
}

/// Returns what the rules find in a text as it stands, in no order.
pub(super) fn candidates(rules: &CompiledSecretRules, text: &str) -> Vec<SecretCandidate> {
    let mut found = Vec::new();
    let mut past = vec![0; rules.rules.len()];
    let mut windows: Vec<Vec<Range<usize>>> = vec![Vec::new(); rules.rules.len()];
    let mut line = 0..0;
    let mut run = 0..0;
    count_bytes(text.len());
    for hit in rules.literals.find_overlapping_iter(text) {
        for &at in &rules.by_literal[hit.pattern().as_usize()] {
            let at = usize::from(at);
            let rule = &rules.rules[at];
            count_bytes(1);
            match &rule.form {
                SecretRuleForm::Token { prefixes, body, reach, may_wrap } => {
                    if hit.start() < past[at] || !starts_token(text, hit.start(), prefixes) {
                        continue;
                    }
                    if !run.contains(&hit.end()) {
                        run = hit.end()..run_end(text, hit.end());
                        count_bytes(run.len());
                    }
                    let token = TokenSearch {
                        text,
                        start: hit.start(),
                        body_at: hit.end(),
                        run_end: run.end,
                    };
                    let range = token.find(&body.get(), *reach, *may_wrap);
                    let Some(range) = range else { continue };
                    if passes_checks(rules, rule, text, &range, hit.len()) {
                        past[at] = range.end;
                        found.push(SecretCandidate { rule: at, range });
                    } else if range.len() > BYTES_BEFORE_KEYWORD {
                        past[at] = range.end; // or a text of prefixes would be read over and over
                    }
                }
                SecretRuleForm::Value { lines, .. } => {
                    if hit.end() > line.end {
                        line = line_around(text, hit.start(), hit.end());
                        count_bytes(line.len());
                    }
                    let start = line
                        .start
                        .max(boundary(text, hit.start().saturating_sub(BYTES_BEFORE_KEYWORD)));
                    let reach = boundary(text, hit.end() + BYTES_AFTER_KEYWORD);
                    let end = lines_end(text, line.end.min(reach)..reach, *lines);
                    count_bytes(end.saturating_sub(line.end));
                    push_window(&mut windows[at], start..end);
                }
            }
        }
    }
    for &at in &rules.without_literal {
        windows[usize::from(at)].push(0..text.len());
    }
    for (at, windows) in windows.iter().enumerate().filter(|(_, it)| !it.is_empty()) {
        let rule = &rules.rules[at];
        if let SecretRuleForm::Value { regex, group, .. } = &rule.form {
            let regex = regex.get();
            let mut values = ValueSearch {
                rules,
                rule,
                regex: &regex,
                group: *group,
                text,
                groups: regex.capture_locations(),
            };
            for window in windows {
                values.find(window, |range| found.push(SecretCandidate { rule: at, range }));
            }
        }
    }
    found
}

/// Returns the last character boundary that is not behind `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
}

/// Returns the line, or the lines, from `start` to `end`, without line ends.
fn line_around(text: &str, start: usize, end: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let first = bytes[..start].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let last = bytes[end..].iter().position(|it| *it == b'\n').map_or(text.len(), |it| end + it);
    first..last
}

/// Returns where the last of so many lines ends, the first of which ends where `rest` starts.
fn lines_end(text: &str, rest: Range<usize>, lines: u8) -> usize {
    let more = usize::from(lines.saturating_sub(1));
    if more == 0 {
        return rest.start;
    }
    let breaks = text[rest.clone()].match_indices('\n');
    breaks.map(|(at, _)| rest.start + at).nth(more).unwrap_or(rest.end)
}

/// Adds a window, into the one before where they meet: no byte is searched twice.
fn push_window(windows: &mut Vec<Range<usize>>, window: Range<usize>) {
    match windows.last_mut() {
        Some(last) if window.start <= last.end => {
            last.start = last.start.min(window.start);
            last.end = last.end.max(window.end);
        }
        _ => windows.push(window),
    }
}

/// Whether one of the prefixes stands there, in its own spelling, and not in the midst of a word.
fn starts_token(text: &str, at: usize, prefixes: &[String]) -> bool {
    // A hit is ASCII or whole characters, so it starts at a boundary.
    let mut there = prefixes.iter().filter(|it| text[at..].starts_with(it.as_str()));
    there.any(|it| is_free_before(text, at, it.len() >= DISTINCTIVE_PREFIX_BYTES))
}

/// Whether a token may begin there. One whose prefix tells enough may be joined to a word, too.
fn is_free_before(text: &str, at: usize, is_telling: bool) -> bool {
    let joint = text[..at].trim_end_matches(['_', '-']);
    if joint.len() < at && (is_telling || is_emphasis(&text[joint.len()..at], joint)) {
        return true;
    }
    match text.as_bytes()[at.saturating_sub(3)..at] {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true, // an escape in JSON
        [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true, // one in a URL
        [.., last] => !is_token_byte(last),
    }
}

/// Whether underscores are marks of emphasis: no word stands before them.
fn is_emphasis(marks: &str, before: &str) -> bool {
    marks.len() <= 3
        && marks.bytes().all(|it| it == b'_')
        && !before.ends_with(|it: char| it.is_alphanumeric())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Whether a value stands the test of its rule. Its first `head` bytes tell nothing.
fn passes_checks(
    rules: &CompiledSecretRules,
    rule: &SecretRule,
    text: &str,
    range: &Range<usize>,
    head: usize,
) -> bool {
    count_bytes(range.len());
    let value = &text[range.clone()];
    let body = value.get(head..).unwrap_or(value);
    let before = &text[boundary(text, range.start.saturating_sub(16))..range.start];
    rule.check.passes(body, before)
        && (rule.entropy <= 0.0 || entropy(body) >= rule.entropy)
        && !rules.is_allowed(value)
}

/// A place where a prefix stands.
struct TokenSearch<'a> {
    text: &'a str,
    start: usize,
    body_at: usize,
    /// Where the blank or quote stands that ends it at the latest, if it is on one line.
    run_end: usize,
}

impl TokenSearch<'_> {
    fn find(&self, body: &Regex, reach: usize, may_wrap: bool) -> Option<Range<usize>> {
        let end = boundary(self.text, self.body_at + reach);
        count_bytes(end - self.body_at);
        let whole = body
            .find(&self.text[self.body_at..end])
            .map(|it| self.body_at + it.end())
            .filter(|it| self.ends_at(*it));
        let wrapped = if may_wrap { self.find_wrapped(body, whole) } else { None };
        wrapped.or(whole).map(|end| self.start..end)
    }

    fn ends_at(&self, at: usize) -> bool {
        self.text.as_bytes().get(at).is_none_or(|it| !it.is_ascii_alphanumeric())
    }

    /// Returns the end of a token that goes on in the next line.
    ///
    /// Where the first line holds a whole token already, the next one must look like the rest of
    /// it: alone in its line, letters and digits.
    fn find_wrapped(&self, body: &Regex, whole: Option<usize>) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = self.run_end;
        if whole.is_some_and(|it| it != at) || at - self.body_at > WRAPPED_LINE_BYTES_MAX {
            return None;
        }
        let mut joined = self.text[self.body_at..at].to_owned();
        let mut parts = vec![(0, self.body_at)];
        let mut best = None;
        for _ in 0..LINE_BREAKS_MAX {
            let Some(next) = next_line(bytes, at) else { break };
            let end = run_end(self.text, next);
            if end == next || end - next > WRAPPED_LINE_BYTES_MAX {
                break;
            }
            parts.push((joined.len(), next));
            joined.push_str(&self.text[next..end]);
            count_bytes(joined.len());
            at = end;
            let Some(length) = body.find(&joined).map(|it| it.end()) else { continue };
            let &(from, place) = parts.last()?;
            let ends = place + length.saturating_sub(from);
            if length <= from || !self.ends_at(ends) {
                continue;
            }
            let rest = &self.text[place..ends];
            let is_alone = bytes.get(ends).is_none_or(|it| b"\r\n\"'`,;".contains(it));
            let looks_random = rest.len() >= WRAPPED_REST_MIN
                && rest.bytes().any(|it| it.is_ascii_digit())
                && rest.bytes().any(|it| it.is_ascii_alphabetic());
            if (whole.is_none() && best.is_none()) || (is_alone && looks_random) {
                best = Some(ends);
            } else {
                break;
            }
        }
        best
    }
}

/// Returns where a run without blanks and quotes ends.
fn run_end(text: &str, from: usize) -> usize {
    let is_end = |it: &u8| !it.is_ascii_graphic() || b"\"'`,;<>()[]{}|\\".contains(it);
    text.as_bytes()[from..].iter().position(is_end).map_or(text.len(), |it| from + it)
}

/// Returns where the words of the next line begin, if the line ends at `at`. A new list item does
/// not go on with the one before it.
fn next_line(bytes: &[u8], at: usize) -> Option<usize> {
    let skip = |from: usize, set: &[u8], most: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take(most).take_while(|it| set.contains(it)).count()
    };
    let end = skip(at, b" \t\\\r", 16);
    (bytes.get(end) == Some(&b'\n')).then(|| skip(end + 1, b" \t>", 64))
}

/// A rule at work in its windows.
struct ValueSearch<'a> {
    rules: &'a CompiledSecretRules,
    rule: &'a SecretRule,
    regex: &'a Regex,
    group: Option<usize>,
    text: &'a str,
    groups: CaptureLocations,
}

impl ValueSearch<'_> {
    fn find(&mut self, window: &Range<usize>, mut found: impl FnMut(Range<usize>)) {
        let text = &self.text[..window.end];
        let mut at = window.start;
        count_bytes(window.len());
        while let Some(whole) = self.next_match(text, at) {
            count_bytes(whole.end() - at);
            let range = self.value_range(whole.range());
            let range = self.extend_past_cut(range, window.end);
            if range.is_empty() {
                at = whole.end();
            } else if passes_checks(self.rules, self.rule, self.text, &range, 0) {
                at = whole.end().max(range.end);
                found(range);
            } else if whole.len() <= BYTES_BEFORE_KEYWORD
                && !self.rules.is_allowed(&self.text[range.clone()])
            {
                // What was taken for the value may hold the next keyword.
                at = range.start.max(whole.start() + 1);
            } else {
                at = whole.end();
            }
            if whole.is_empty() {
                at += 1;
            }
            if at >= window.end {
                break;
            }
            while !self.text.is_char_boundary(at) {
                at += 1; // the window ends at one
            }
        }
    }

    fn next_match<'t>(&mut self, text: &'t str, at: usize) -> Option<regex::Match<'t>> {
        if self.groups.len() == 1 {
            return self.regex.find_at(text, at);
        }
        self.regex.captures_read_at(&mut self.groups, text, at)
    }

    /// Returns the group that the rule names, else the first one that took part, else all.
    fn value_range(&self, whole: Range<usize>) -> Range<usize> {
        let of = |group| self.groups.get(group).map(|(start, end)| start..end);
        match self.group {
            Some(group) => of(group).unwrap_or(whole.end..whole.end),
            None => (1..self.groups.len()).find_map(of).unwrap_or(whole),
        }
    }

    /// Where the window cut a value off, it goes on to the next blank.
    fn extend_past_cut(&self, range: Range<usize>, cut: usize) -> Range<usize> {
        if range.end < cut || range.is_empty() {
            return range;
        }
        let rest = &self.text[range.end..];
        let more = rest.find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`'));
        let more = more.unwrap_or(rest.len());
        count_bytes(more);
        range.start..range.end + more
    }
}

/// Joins what overlaps, so that nothing of either is seen. What tells of a person gives way.
fn resolve_overlaps(
    rules: &CompiledSecretRules,
    mut found: Vec<SecretCandidate>,
) -> Vec<SecretMatch> {
    let is_personal = |it: &SecretCandidate| rules.rules[it.rule].is_personal;
    found.sort_by_key(|it| (it.range.start, std::cmp::Reverse(it.range.end), it.rule));
    let (personal, secret): (Vec<_>, Vec<_>) = found.into_iter().partition(is_personal);
    let secret = merge_overlapping(secret);
    let mut at = 0;
    let mut all = merge_overlapping(personal);
    all.retain(|it| {
        while secret.get(at).is_some_and(|other| other.range.end <= it.range.start) {
            at += 1;
        }
        secret.get(at).is_none_or(|other| other.range.start >= it.range.end)
    });
    all.extend(secret);
    all.sort_by_key(|it| it.range.start);
    all.into_iter()
        .map(|it| {
            let rule = &rules.rules[it.rule];
            SecretMatch {
                kind: Arc::clone(&rule.kind),
                range: it.range,
                is_personal: rule.is_personal,
            }
        })
        .collect()
}

/// Merges sorted finds. The most specific rule names the place; a wider find that holds little more
/// than a token gives way to it, so that one token has one mark wherever it stands.
fn merge_overlapping(found: Vec<SecretCandidate>) -> Vec<SecretCandidate> {
    let mut merged: Vec<SecretCandidate> = Vec::with_capacity(found.len());
    for next in found {
        let Some(last) = merged.last_mut().filter(|it| next.range.start < it.range.end) else {
            merged.push(next);
            continue;
        };
        let left_over = (next.range.start - last.range.start)
            .max(last.range.end.saturating_sub(next.range.end));
        if next.rule < last.rule && left_over <= LEFT_OVER_MAX {
            *last = next;
        } else {
            last.range.end = last.range.end.max(next.range.end);
            last.rule = last.rule.min(next.rule);
        }
    }
    merged
}
