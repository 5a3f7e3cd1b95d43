//! Finds secrets in one pass over a text.
//!
//! All literals of all rules are searched for at once. Where one occurs, its rules are tried: a token
//! right there, a value in the surrounding lines. So a text without literals costs one pass, and no
//! expression reads the same byte more than a few times, whatever the text.

use std::{ops::Range, sync::Arc};

use regex::{CaptureLocations, Regex};

use super::{
    SecretMatch,
    check::{ValueCheck, entropy},
    rules::{CompiledSecretRules, SecretRule, SecretRuleForm},
    split_secrets,
};
use crate::privacy::work_counter::count_bytes;

/// How far before a keyword its expression may start, in bytes.
const BYTES_BEFORE_KEYWORD: usize = 128;

/// How far after a keyword its expression may extend within a line, in bytes.
const BYTES_AFTER_KEYWORD: usize = 1024;

/// How many line breaks a token may contain.
const LINE_BREAKS_MAX: usize = 2;

/// The longest line from which a token may continue in the next; longer lines are not wrapped.
const WRAPPED_LINE_BYTES_MAX: usize = 400;

/// The shortest continuation of a token that is also complete without it.
const WRAPPED_REST_MIN: usize = 8;

/// How much a wider match may contain beside a token: a quote, a `user:`.
const LEFT_OVER_MAX: usize = 5;

/// The length from which a prefix identifies a token even within a word.
const DISTINCTIVE_PREFIX_BYTES: usize = 4;

/// A match, before overlapping ones are merged.
pub(super) struct SecretCandidate {
    pub(super) rule: usize,
    pub(super) range: Range<usize>,
}

/// Returns the secrets in a text, in order and disjoint.
pub(super) fn find(rules: &CompiledSecretRules, text: &str) -> Vec<SecretMatch> {
    let mut found = candidates(rules, text);
    found.extend(split_secrets::find_split(rules, text));
    let marks = placeholders(rules, text);
    found.retain(|it| {
        !marks.iter().any(|mark| mark.start <= it.range.start && it.range.end <= mark.end)
    });
    resolve_overlaps(rules, found)
}

/// Returns where a text has placeholders of secrets: `[secret:password#3fa9]`. What they contain is no secret again,
/// whatever the words before them.
fn placeholders(rules: &CompiledSecretRules, text: &str) -> Vec<Range<usize>> {
    const OPENING: &str = "[secret:";
    /// No kind is longer.
    const MARK_BYTES_MAX: usize = 64;
    let read = |(start, _): (usize, &str)| {
        let rest = &text[start + OPENING.len()..];
        let end =
            (0..=MARK_BYTES_MAX.min(rest.len())).rev().find(|it| rest.is_char_boundary(*it))?;
        let rest = &rest[..end];
        let (kind, rest) = rest.split_once('#')?;
        let hash = rest.split_once(']')?.0;
        let is_hash = hash.len() == 4 && hash.bytes().all(|it| it.is_ascii_hexdigit());
        let length = OPENING.len() + kind.len() + 1 + hash.len() + 1;
        (is_hash && rules.kinds().any(|it| it == kind)).then_some(start..start + length)
    };
    text.match_indices(OPENING).filter_map(read).collect()
}

/// Returns whether a line contains a keyword whose value may be in another line.
pub(super) fn has_value_keyword(rules: &CompiledSecretRules, line: &str) -> bool {
    let is_value =
        |at: &u16| matches!(rules.rules[usize::from(*at)].form, SecretRuleForm::Value { .. });
    rules.literals.find(line).any(|(_, its_rules)| its_rules.iter().any(is_value))
}

/// Returns the matches in a text, without joining its parts, in no order.
pub(super) fn candidates(rules: &CompiledSecretRules, text: &str) -> Vec<SecretCandidate> {
    let mut found = Vec::new();
    let mut past = vec![0; rules.rules.len()];
    let mut windows: Vec<Vec<Range<usize>>> = vec![Vec::new(); rules.rules.len()];
    let mut line = 0..0;
    let mut run = 0..0;
    for (hit, its_rules) in rules.literals.find(text) {
        for &at in its_rules {
            let at = usize::from(at);
            let rule = &rules.rules[at];
            count_bytes(1);
            match &rule.form {
                SecretRuleForm::Token { prefixes, body, reach, may_wrap } => {
                    if hit.start < past[at] || !starts_token(text, hit.start, prefixes) {
                        continue;
                    }
                    if !run.contains(&hit.end) {
                        run = hit.end..run_end(text, hit.end);
                        count_bytes(run.len());
                    }
                    let token =
                        TokenSearch { text, start: hit.start, body_at: hit.end, run_end: run.end };
                    let range = token.find(&body.get(), *reach, *may_wrap);
                    let Some(range) = range else { continue };
                    if passes_checks(rules, rule, text, &range, hit.len()) {
                        past[at] = range.end;
                        found.push(SecretCandidate { rule: at, range });
                    } else if range.len() > BYTES_BEFORE_KEYWORD {
                        past[at] = range.end; // Else a text of prefixes would be read again and again.
                    }
                }
                SecretRuleForm::Value { lines, .. } => {
                    if hit.end > line.end {
                        line = line_around(text, hit.start, hit.end);
                        count_bytes(line.len());
                    }
                    let start = line
                        .start
                        .max(boundary(text, hit.start.saturating_sub(BYTES_BEFORE_KEYWORD)));
                    let reach = boundary(text, hit.end + BYTES_AFTER_KEYWORD);
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
            for window in windows.iter().filter(|it| rule.check.may_pass(&text[(*it).clone()])) {
                values.find(window, |range| found.push(SecretCandidate { rule: at, range }));
            }
        }
    }
    found
}

/// Returns the last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0)
}

/// Returns the range of the lines that contain `start..end`, without the line end.
fn line_around(text: &str, start: usize, end: usize) -> Range<usize> {
    let bytes = text.as_bytes();
    let first = bytes[..start].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let last = bytes[end..].iter().position(|it| *it == b'\n').map_or(text.len(), |it| end + it);
    first..last
}

/// Returns the end of the last of `lines` lines, of which the first ends at the start of `rest`.
fn lines_end(text: &str, rest: Range<usize>, lines: u8) -> usize {
    let more = usize::from(lines.saturating_sub(1));
    if more == 0 {
        return rest.start;
    }
    let breaks = text[rest.clone()].match_indices('\n');
    breaks.map(|(at, _)| rest.start + at).nth(more).unwrap_or(rest.end)
}

/// Adds a window, merged with the one before if they meet, so that no byte is searched twice.
fn push_window(windows: &mut Vec<Range<usize>>, window: Range<usize>) {
    match windows.last_mut() {
        Some(last) if window.start <= last.end => {
            last.start = last.start.min(window.start);
            last.end = last.end.max(window.end);
        }
        _ => windows.push(window),
    }
}

/// Returns whether one of the prefixes is at `at`, in its own case, and not within a word.
fn starts_token(text: &str, at: usize, prefixes: &[String]) -> bool {
    // A literal consists of whole characters, so it starts at a boundary.
    let mut matching = prefixes.iter().filter(|it| text[at..].starts_with(it.as_str()));
    matching.any(|it| can_start_token(text, at, it.len() >= DISTINCTIVE_PREFIX_BYTES))
}

/// Returns whether a token may start at `at`. A distinctive prefix may also follow a word and a `_`.
fn can_start_token(text: &str, at: usize, is_distinctive: bool) -> bool {
    let joint = text[..at].trim_end_matches(['_', '-']);
    if joint.len() < at && (is_distinctive || is_emphasis(&text[joint.len()..at], joint)) {
        return true;
    }
    match text.as_bytes()[at.saturating_sub(3)..at] {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true, // A JSON escape.
        [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => true, // A URL escape.
        [.., last] => !is_token_byte(last),
    }
}

/// Returns whether underscores are marks of emphasis: no word precedes them.
fn is_emphasis(marks: &str, before: &str) -> bool {
    marks.len() <= 3
        && marks.bytes().all(|it| it == b'_')
        && !before.ends_with(|it: char| it.is_alphanumeric())
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// Returns whether a value passes the checks of its rule. Its first `head` bytes are ignored.
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

/// An occurrence of a prefix.
struct TokenSearch<'a> {
    text: &'a str,
    start: usize,
    body_at: usize,
    /// The next space or quote, where the token ends at the latest if it is on one line.
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

    /// Returns the end of a token that continues in the next line.
    ///
    /// If the first line already contains a complete token, the continuation must be alone in its line
    /// and mix letters and digits.
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
            let &(from, line_start) = parts.last()?;
            let token_end = line_start + length.saturating_sub(from);
            if length <= from || !self.ends_at(token_end) {
                continue;
            }
            let rest = &self.text[line_start..token_end];
            let is_alone = bytes.get(token_end).is_none_or(|it| b"\r\n\"'`,;".contains(it));
            let looks_random = rest.len() >= WRAPPED_REST_MIN
                && rest.bytes().any(|it| it.is_ascii_digit())
                && rest.bytes().any(|it| it.is_ascii_alphabetic());
            if (whole.is_none() && best.is_none()) || (is_alone && looks_random) {
                best = Some(token_end);
            } else {
                break;
            }
        }
        best
    }
}

/// Returns the end of a run without spaces and quotes.
fn run_end(text: &str, from: usize) -> usize {
    let is_end = |it: &u8| !it.is_ascii_graphic() || b"\"'`,;<>()[]{}|\\".contains(it);
    text.as_bytes()[from..].iter().position(is_end).map_or(text.len(), |it| from + it)
}

/// Returns the start of the text of the next line, if the line ends at `at`. A list item does not
/// continue the one before it.
fn next_line(bytes: &[u8], at: usize) -> Option<usize> {
    let skip = |from: usize, set: &[u8], most: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take(most).take_while(|it| set.contains(it)).count()
    };
    let end = skip(at, b" \t\\\r", 16);
    (bytes.get(end) == Some(&b'\n')).then(|| skip(end + 1, b" \t>", 64))
}

/// The search of a rule in its windows.
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
            let range = self.extend_past_sign(range);
            if range.is_empty() {
                at = whole.end();
            } else if passes_checks(self.rules, self.rule, self.text, &range, 0) {
                at = whole.end().max(range.end);
                found(range);
            } else if whole.len() <= BYTES_BEFORE_KEYWORD
                && !self.rules.is_allowed(&self.text[range.clone()])
            {
                // The rejected value may contain the next keyword.
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
                at += 1; // The end of the window is a boundary.
            }
        }
    }

    fn next_match<'t>(&mut self, text: &'t str, at: usize) -> Option<regex::Match<'t>> {
        if self.groups.len() == 1 {
            return self.regex.find_at(text, at);
        }
        self.regex.captures_read_at(&mut self.groups, text, at)
    }

    /// Returns the group that the rule names, else the first that matched, else the whole match.
    fn value_range(&self, whole: Range<usize>) -> Range<usize> {
        let of = |group| self.groups.get(group).map(|(start, end)| start..end);
        match self.group {
            Some(group) => of(group).unwrap_or(whole.end..whole.end),
            None => (1..self.groups.len()).find_map(of).unwrap_or(whole),
        }
    }

    /// Extends a value that the window cuts off to the next space.
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

    /// Extends a password without quotes past signs that end most values, so that none of it is left.
    fn extend_past_sign(&self, range: Range<usize>) -> Range<usize> {
        let rest = &self.text[range.end..];
        let is_password = matches!(self.rule.check, ValueCheck::Password | ValueCheck::Login);
        if !is_password || range.is_empty() || !rest.starts_with([',', ';', '&', '<', '>']) {
            return range;
        }
        let is_end = |it: char| {
            it.is_whitespace() || "\"'`|\\".contains(it) || ('\u{3000}'..='\u{9fff}').contains(&it)
        };
        let end = rest.find(is_end);
        let more = end.unwrap_or(rest.len()).min(BYTES_BEFORE_KEYWORD);
        let more = boundary(self.text, range.end + more) - range.end;
        count_bytes(more);
        if more < 2 || is_word_or_name(&rest[1..more]) {
            return range;
        }
        range.start..range.end + more
    }
}

/// Returns whether a text is only small letters, or the name of a next value: `user=`.
fn is_word_or_name(text: &str) -> bool {
    let end = text.find(|it: char| !(it.is_alphanumeric() || "_-.".contains(it)));
    let (word, rest) = text.split_at(end.unwrap_or(text.len()));
    match rest.chars().next() {
        Some(sign) => matches!(sign, '=' | ':'),
        None => word.chars().all(|it| it.is_lowercase() || "_-.".contains(it)),
    }
}

/// Merges overlapping matches, so that all of both is masked. Credentials win over personal data.
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

/// Merges sorted matches, which get the kind of the most specific rule.
///
/// A match that is little more than a token shrinks to it, so that a token has the same placeholder
/// everywhere.
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
