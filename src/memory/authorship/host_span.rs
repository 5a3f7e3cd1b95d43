//! Text that a host program puts between two marks: recalled memories, reminders, untrusted text.

use std::ops::Range;

use super::{
    OriginReason,
    host_text::{is_external_by_kind, starts_with_phrase, words_of},
};
use crate::{
    memory::{
        enclosures::{self, EnclosureMark, MarkRole},
        markdown::LineKind,
        quoting_element::is_block_start,
    },
    text::lexicon::{AUTHORSHIP, TextSpan},
};

/// The start of marks that also count within a line, and that end one.
const FRAMED: &str = "<<<";

/// Text between two marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostSpan {
    pub lines: Range<usize>,
    /// Byte offset of its mark in the first line.
    pub start: usize,
    pub reason: OriginReason,
}

/// A mark that opens a span.
struct OpeningMark<'a> {
    line: usize,
    start: usize,
    /// The text after it.
    after: &'a str,
    span: &'static TextSpan,
    /// Whether it begins a block. Within a sentence it may only be mentioned.
    begins_block: bool,
}

/// A mark that ends a span.
struct ClosingMark<'a> {
    id: Option<&'a str>,
}

/// Returns the spans in order.
///
/// A span of untrusted text that is never closed extends to the end; another one to the next blank line.
pub(super) fn find(lines: &[(&str, LineKind)]) -> Vec<HostSpan> {
    let opening: Vec<OpeningMark<'_>> =
        lines.iter().enumerate().filter_map(|(at, it)| opening_mark(at, it.0, it.1)).collect();
    if opening.is_empty() {
        return Vec::new();
    }
    let mut closes: Vec<&'static str> = opening.iter().map(|it| it.span.closes).collect();
    closes.sort_unstable();
    closes.dedup();
    // The mark of each event, and its line.
    let mut marks = Vec::new();
    let mut at_line = Vec::new();
    // The event of each opening mark.
    let mut events = Vec::with_capacity(opening.len());
    let mut next = opening.iter().peekable();
    for (at, &(line, kind)) in lines.iter().enumerate() {
        let opened = next.next_if(|it| it.line == at);
        for &name in &closes {
            let opened = opened.filter(|it| it.span.closes == name);
            let text = opened.map_or(line, |it| it.after);
            let end = if kind == LineKind::Fence || kind == LineKind::Code {
                None
            } else {
                closing_mark(text, name)
            };
            // The end of a report is a comment that begins as its start does.
            let is_end = kind == LineKind::Comment && end.is_some() && !marks.is_empty();
            if let Some(mark) = opened {
                events.push(marks.len());
                if !is_end {
                    let is_heading = !mark.span.opens.starts_with(['<', 'b']);
                    let role = if is_heading { MarkRole::Heading } else { MarkRole::Open };
                    let id = mark_id(mark.after).filter(|_| name.starts_with(FRAMED));
                    marks.push(EnclosureMark { name: name.into(), id, role });
                    at_line.push(at);
                }
            }
            if let Some(ClosingMark { id }) = end {
                marks.push(EnclosureMark { name: name.into(), id, role: MarkRole::Close });
                at_line.push(at);
            }
        }
    }
    let ends = enclosures::enclosure_ends(&marks);
    let mut spans: Vec<HostSpan> = Vec::new();
    for (mark, event) in opening.iter().zip(events) {
        let Some(reason) = OriginReason::from_name(mark.span.reason) else { continue };
        if spans.last().is_some_and(|it| mark.line < it.lines.end) {
            continue;
        }
        let blank = || {
            let blank = lines[mark.line..].iter().position(|it| it.1 == LineKind::Blank);
            blank.map_or(lines.len(), |it| mark.line + it)
        };
        let end = match ends[event] {
            Some(end) => at_line[end] + 1,
            None if !mark.begins_block => continue,
            None if reason == OriginReason::UntrustedSpan => lines.len(),
            None => blank(),
        };
        spans.push(HostSpan { lines: mark.line..end, start: mark.start, reason });
    }
    spans
}

/// Returns the mark that opens a span in a line.
fn opening_mark(at: usize, line: &str, kind: LineKind) -> Option<OpeningMark<'_>> {
    if is_external_by_kind(kind) {
        return None;
    }
    let spans = &AUTHORSHIP.spans;
    let words = words_of(line, kind);
    let mut text = words;
    if !text.starts_with(['<', '[']) {
        // The first line of a turn.
        let roles = AUTHORSHIP.owner_roles.iter().chain(AUTHORSHIP.assistant_roles.iter());
        let role = roles.copied().find(|it| starts_with_phrase(text, it));
        if let Some(rest) = role.and_then(|it| text[it.len()..].strip_prefix(':')) {
            text = rest.trim_start();
        }
    }
    let opens_with = |text: &'_ str| spans.iter().find(|it| starts_with_phrase(text, it.opens));
    let offset = |text: &str| text.as_ptr() as usize - line.as_ptr() as usize;
    let mark = |text, span: &'static TextSpan, begins_block| OpeningMark {
        line: at,
        start: offset(text),
        after: &text[span.opens.len()..],
        span,
        begins_block,
    };
    // Bold marks are still marks.
    let plain = text.trim_start_matches(['*', '_']);
    if let Some(span) = opens_with(plain) {
        return Some(mark(plain, span, true));
    }
    let found = words.match_indices(FRAMED).find_map(|(at, _)| {
        let is_quoted = words[..at].ends_with(['`', '"', '“', '\'']);
        Some((at, opens_with(&words[at..]).filter(|_| !is_quoted)?))
    });
    found.map(|(at, span)| mark(&words[at..], span, is_block_start(&words[..at])))
}

/// Returns the mark of an end in a line.
fn closing_mark<'a>(line: &'a str, phrase: &str) -> Option<ClosingMark<'a>> {
    let is_phrase = |it: &[u8]| it.eq_ignore_ascii_case(phrase.as_bytes());
    let at = line.as_bytes().windows(phrase.len()).rposition(is_phrase)?;
    if !phrase.starts_with(FRAMED) {
        return Some(ClosingMark { id: None });
    }
    // In the midst of a sentence it is only mentioned.
    let after = line.get(at + phrase.len()..)?;
    let rest = after.split_once('>').map_or("", |it| it.1).trim_start_matches('>');
    let is_whole = rest.trim_matches(['*', '_', '|', ' ', '\t']).is_empty()
        && !line[..at].trim_end().ends_with(['`', '"', '“', '\'']);
    is_whole.then(|| ClosingMark { id: mark_id(after) })
}

/// Returns the id in the rest of a mark.
fn mark_id(after: &str) -> Option<&str> {
    let attributes = after.split_once('>').map_or(after, |it| it.0);
    let id = attributes.split_once("id=")?.1;
    Some(id.trim_matches(['"', '\'', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::markdown;

    /// One letter per line: `x` in a span. Braces stand for the marks of untrusted text, brackets for those
    /// with an id.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let text = text
            .replace('{', "<<<EXTERNAL_UNTRUSTED_CONTENT>>>")
            .replace('}', "<<<END_EXTERNAL_UNTRUSTED_CONTENT>>>")
            .replace('(', "<<<EXTERNAL_UNTRUSTED_CONTENT id=\"1\">>>")
            .replace(')', "<<<END_EXTERNAL_UNTRUSTED_CONTENT id=\"1\">>>")
            .replace(']', "<<<END_EXTERNAL_UNTRUSTED_CONTENT id=\"2\">>>");
        let kinds = markdown::classify_lines(text.split('\n'));
        let lines: Vec<(&str, LineKind)> = text.split('\n').zip(kinds).collect();
        let spans = find(&lines);
        let is_in = |at: usize| spans.iter().any(|it| it.lines.contains(&at));
        let found: String = (0..lines.len()).map(|at| if is_in(at) { 'x' } else { '.' }).collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn a_span_ends_only_at_its_own_end() {
        check("{\na\n\nb\n}\nc", "xxxxx.");
        check("(\na\n]\nb\n)\nc", "xxxxx.");
        check("(\na\n}\nb\n)\nc", "xxxxx.");
        check("{\n{\na\n}\nb\n}\nc", "xxxxxx.");
        check("{\na\n}\nb\n}\nc", "xxxxx.");
        check("{\n```\n}\n```\nb\n}\nc", "xxxxxx.");
        check("{\na \"}\" b\nc\n}\nd", "xxxx.");
        check("{ a }\nb\n{\nc\n}\nd", "x.xxx.");
        check("{\na", "xx");
        check("**{**\na\n**}**\nb", "xxx.");
    }

    #[test]
    fn a_span_may_begin_within_a_line() {
        check("- Mail: {a}\nb", "x.");
        check("- Mail: {\nb", "xx");
        check("- 09:41 {\nb\n\n}\nc", "xxxx.");
        check("The marks are `{` and `}`\nb", "..");
        check("We know the mark {\nb", "..");
    }
}
