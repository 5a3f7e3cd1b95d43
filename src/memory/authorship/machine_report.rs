//! Reports that programs write among notes: on memories while the agent was idle, and heartbeats.

use std::ops::Range;

use super::{
    LineAuthorship, LineShape, NumberedLine, OriginReason,
    host_text::{
        contains_phrase, is_external_by_kind, starts_with_any, starts_with_phrase, words_of,
    },
};
use crate::{memory::markdown::LineKind, text::lexicon::AUTHORSHIP};

/// Lines of a section on a heartbeat that reports nothing.
const HEARTBEAT_LINES_MAX: usize = 12;

/// Marks the reports in a range of notes.
pub(super) fn mark(lines: &[NumberedLine<'_>], range: Range<usize>, found: &mut [LineAuthorship]) {
    let mut at = range.start;
    while at < range.end {
        let (_, text, kind) = lines[at];
        let words = words_of(text, kind);
        let (end, reason) = match kind {
            LineKind::Heading { .. } => {
                let section = at..section_end(lines, at, range.end);
                match reason_of_section(lines, &section) {
                    Some(reason) => (section.end, reason),
                    None => (at, OriginReason::DreamReport),
                }
            }
            LineKind::ListItem { indent, .. } if is_candidate(lines, at, range.end) => {
                (item_end(lines, at, indent, range.end), OriginReason::DreamReport)
            }
            _ if is_external_by_kind(kind) => (at, OriginReason::DreamReport),
            _ if AUTHORSHIP.promotion_marks.iter().all(|it| words.contains(it)) => {
                (at + 1, OriginReason::DreamReport)
            }
            _ if has_heartbeat_token(words) => (at + 1, OriginReason::Heartbeat),
            _ => (at, OriginReason::DreamReport),
        };
        for line in found[at..end].iter_mut().filter(|it| it.reason.is_none()) {
            line.mark(LineShape::Report, reason);
        }
        at = end.max(at + 1);
    }
}

/// Marks the sections of a turn that are reports on memories.
pub(super) fn mark_dreams(
    lines: &[NumberedLine<'_>],
    turn: Range<usize>,
    found: &mut [LineAuthorship],
) {
    let mut at = turn.start;
    while at < turn.end {
        let is_heading = matches!(lines[at].2, LineKind::Heading { .. });
        let section = at..if is_heading { section_end(lines, at, turn.end) } else { at + 1 };
        if is_heading && reason_of_section(lines, &section) == Some(OriginReason::DreamReport) {
            for line in found[section.clone()].iter_mut().filter(|it| it.reason.is_none()) {
                line.mark(LineShape::Report, OriginReason::DreamReport);
            }
            at = section.end;
        } else {
            at += 1;
        }
    }
}

/// Returns the line after a section: the next heading of the same or a higher level.
pub(super) fn section_end(lines: &[NumberedLine<'_>], at: usize, end: usize) -> usize {
    let LineKind::Heading { level, .. } = lines[at].2 else { return at + 1 };
    (at + 1..end)
        .find(|&it| matches!(lines[it].2, LineKind::Heading { level: other, .. } if other <= level))
        .unwrap_or(end)
}

/// Returns why a whole section is a report.
fn reason_of_section(lines: &[NumberedLine<'_>], section: &Range<usize>) -> Option<OriginReason> {
    let (_, text, kind) = lines[section.start];
    let title = words_of(text, kind);
    let words = || lines[section.start + 1..section.end].iter().map(|it| words_of(it.1, it.2));
    let mut content = words().filter(|it| !it.is_empty());
    if starts_with_any(title, &AUTHORSHIP.dream_titles) {
        // One of them alone may be anybody's.
        let fields = |it: &&&str| words().any(|words| starts_with_phrase(words, it));
        return (AUTHORSHIP.dream_fields.iter().filter(fields).take(2).count() == 2)
            .then_some(OriginReason::DreamReport);
    }
    let is_heartbeat = AUTHORSHIP.heartbeat_titles.iter().any(|it| contains_phrase(title, it));
    (is_heartbeat
        && words().filter(|it| !it.is_empty()).count() <= HEARTBEAT_LINES_MAX
        && content.any(has_heartbeat_token))
    .then_some(OriginReason::Heartbeat)
}

/// Returns whether a text contains the answer to a heartbeat, which programs write in capitals.
pub(super) fn has_heartbeat_token(text: &str) -> bool {
    text.contains("HEARTBEAT_")
        && AUTHORSHIP.heartbeat_tokens.iter().any(|it| contains_phrase(text, it))
}

/// Returns whether a list item is a candidate for a memory: fields of one are below it.
fn is_candidate(lines: &[NumberedLine<'_>], at: usize, end: usize) -> bool {
    let is_field = |line: &NumberedLine<'_>, i: usize| {
        AUTHORSHIP
            .dream_fields
            .get(i)
            .is_some_and(|it| starts_with_any(words_of(line.1, line.2), &[it]))
    };
    is_field(&lines[at], 0) && lines[at + 1..end].iter().take(3).any(|it| is_field(it, 1))
}

/// Returns the line after a list item and its children.
fn item_end(lines: &[NumberedLine<'_>], at: usize, indent: usize, end: usize) -> usize {
    (at + 1..end)
        .find(|&it| match lines[it].2 {
            LineKind::ListItem { indent: other, .. } => other <= indent,
            LineKind::Text => !lines[it].1.starts_with([' ', '\t']),
            _ => true,
        })
        .unwrap_or(end)
}
