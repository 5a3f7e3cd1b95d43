//! Transcripts that a host program saved into a log, and their turns.
//!
//! ```text
//! # Session: 2026-03-01 09:12:44 UTC
//!
//! - **Session Key**: agent:main:main
//! - **Session ID**: 5f1c…
//!
//! ## Conversation Summary
//!
//! user: [Telegram Ada 2026-03-01 09:10 UTC] Please use SQLite.
//! assistant: Done.
//! ```
//!
//! Newer versions write each turn as a string of JSON, `user: "One line.\nAnother one."`; see [`plain_words`].
//!
//! A turn ends where the next one begins. After the last turn of a file, notes begin again at a heading
//! of the first level, or at one that starts with a date or a time.

use std::ops::Range;

use super::{
    Authorship, DumpedSession, LineShape, NumberedLine, OriginReason, Speaker,
    host_text::{self, starts_with_phrase, words_of},
    machine_report,
};
use crate::{memory::markdown::LineKind, text::lexicon::AUTHORSHIP};

/// Lines below a heading in which one of the fields of a session must be.
const HEADER_LINES_MAX: usize = 12;

/// A saved transcript.
#[derive(Debug)]
pub(super) struct SessionDump {
    /// All its lines.
    pub(super) lines: Range<usize>,
    turns: Vec<Turn>,
    id: Option<Box<str>>,
}

/// A turn, from its first line to that of the next one.
#[derive(Clone, Copy, Debug)]
struct Turn {
    speaker: Speaker,
    at: usize,
    /// Byte offset of the text after the role.
    text_at: usize,
}

/// Where the search for transcripts is.
enum SearchState {
    Notes,
    /// Below a heading, before the first turn.
    Header {
        at: usize,
        /// Whether the heading is that of a session, and not only of its turns.
        is_session: bool,
    },
    Turns,
}

/// Returns the transcripts in `lines`. `is_inside` says of each line whether it is inside a span that an
/// earlier line opened: there nothing begins.
pub(super) fn find(lines: &[NumberedLine<'_>], is_inside: &[bool]) -> Vec<SessionDump> {
    let mut dumps: Vec<SessionDump> = Vec::new();
    let mut state = SearchState::Notes;
    for at in 0..lines.len() {
        if is_inside[at] {
            continue;
        }
        let is_session = is_session_heading(lines, at);
        if is_session || (!matches!(state, SearchState::Turns) && is_section_heading(lines, at)) {
            match state {
                SearchState::Header { .. } if !is_session => continue,
                SearchState::Header { at: start, is_session: true } => {
                    dumps.push(header_only(lines, start, at));
                }
                SearchState::Turns => close(lines, &mut dumps, at),
                SearchState::Notes | SearchState::Header { .. } => {}
            }
            state = SearchState::Header { at, is_session };
            continue;
        }
        match state {
            SearchState::Notes => {}
            SearchState::Header { at: start, is_session } => {
                if let Some(turn) = turn_at(lines, at) {
                    let id = is_session.then(|| session_id(&lines[start..at])).flatten();
                    dumps.push(SessionDump { lines: start..at, turns: vec![turn], id });
                    state = SearchState::Turns;
                } else if !is_header_line(lines, at) {
                    if is_session {
                        dumps.push(header_only(lines, start, at));
                    }
                    state = SearchState::Notes;
                }
            }
            SearchState::Turns => {
                if let (Some(turn), Some(dump)) = (turn_at(lines, at), dumps.last_mut()) {
                    dump.turns.push(turn);
                }
            }
        }
    }
    match state {
        SearchState::Turns => close(lines, &mut dumps, lines.len()),
        SearchState::Header { at, is_session: true } => {
            dumps.push(header_only(lines, at, lines.len()));
        }
        SearchState::Notes | SearchState::Header { .. } => {}
    }
    dumps
}

/// Returns a transcript without turns.
fn header_only(lines: &[NumberedLine<'_>], start: usize, end: usize) -> SessionDump {
    SessionDump { lines: start..end, turns: Vec::new(), id: session_id(&lines[start..end]) }
}

/// Ends the last transcript: at `end`, or where notes begin again in its last turn.
fn close(lines: &[NumberedLine<'_>], dumps: &mut [SessionDump], end: usize) {
    let Some(dump) = dumps.last_mut() else { return };
    let last = dump.turns.last().map_or(dump.lines.start, |it| it.at);
    let notes = (last + 1..end).find(|&at| {
        let (_, text, kind) = lines[at];
        let is_after_gap = matches!(lines[at - 1].2, LineKind::Blank | LineKind::Rule);
        let LineKind::Heading { level, .. } = kind else { return false };
        is_after_gap && (level == 1 || starts_with_time(words_of(text, kind)))
    });
    dump.lines.end = notes.unwrap_or(end);
}

/// Returns whether a heading starts with a date or a clock time.
fn starts_with_time(heading: &str) -> bool {
    let bytes = heading.trim_start_matches(['[', '(', '*', ' ']).as_bytes();
    let matches = |pattern: &[u8]| {
        bytes.len() >= pattern.len()
            && pattern
                .iter()
                .zip(bytes)
                .all(|(&p, &b)| if p == b'0' { b.is_ascii_digit() } else { p == b })
    };
    matches(b"0000-00-00") || matches(b"00:00") || matches(b"0:00")
}

fn is_session_heading(lines: &[NumberedLine<'_>], at: usize) -> bool {
    let (_, text, kind) = lines[at];
    let LineKind::Heading { .. } = kind else { return false };
    let starts =
        |text: &str, phrases: &[&str]| phrases.iter().any(|it| starts_with_phrase(text, it));
    starts(words_of(text, kind), &AUTHORSHIP.session_titles)
        && lines[at + 1..].iter().take(HEADER_LINES_MAX).any(|&(_, text, kind)| {
            matches!(kind, LineKind::ListItem { .. } | LineKind::Text)
                && starts(words_of(text, kind), &AUTHORSHIP.session_fields)
        })
}

fn is_section_heading(lines: &[NumberedLine<'_>], at: usize) -> bool {
    let (_, text, kind) = lines[at];
    matches!(kind, LineKind::Heading { .. })
        && AUTHORSHIP
            .session_sections
            .iter()
            .any(|it| words_of(text, kind).eq_ignore_ascii_case(it))
}

/// Returns whether a line may be between the heading of a session and its first turn.
fn is_header_line(lines: &[NumberedLine<'_>], at: usize) -> bool {
    let (_, text, kind) = lines[at];
    match kind {
        LineKind::Blank | LineKind::Rule | LineKind::Comment => true,
        LineKind::Quote { .. } => words_of(text, kind).starts_with("Transcript"),
        LineKind::ListItem { .. } | LineKind::Text => is_field(words_of(text, kind)),
        _ => false,
    }
}

/// Returns whether a text is a field, `**Source**: telegram`.
fn is_field(text: &str) -> bool {
    text.strip_prefix("**").and_then(|it| it.split_once("**")).is_some_and(|(name, rest)| {
        name.len() <= 30 && (name.ends_with(':') || rest.starts_with(':'))
    })
}

/// Returns the session's id in the fields of its header.
fn session_id(header: &[NumberedLine<'_>]) -> Option<Box<str>> {
    header.iter().find_map(|&(_, text, kind)| {
        let (name, value) = words_of(text, kind).strip_prefix("**")?.split_once("**")?;
        let is_id = name.trim_end_matches(':').trim().eq_ignore_ascii_case("session id");
        let value = value.trim_matches([' ', ':', '`']);
        (is_id && !value.is_empty() && value != "unknown").then(|| value.into())
    })
}

/// Returns the turn that begins in a line.
///
/// A line that lazily continues a quote begins one too, but stays a quote.
fn turn_at(lines: &[NumberedLine<'_>], at: usize) -> Option<Turn> {
    let (_, text, kind) = lines[at];
    let is_lazy = matches!(kind, LineKind::Quote { .. }) && !text.starts_with(['>', ' ', '\t']);
    // A message may begin with a fence.
    if !matches!(kind, LineKind::Text | LineKind::Fence) && !is_lazy {
        return None;
    }
    let (role, rest) = text.split_once(':')?;
    if role.is_empty() || role.len() > 12 || !(rest.is_empty() || rest.starts_with([' ', '\t'])) {
        return None;
    }
    // Host programs write roles in lower case; `User:` is how people write.
    let is_in = |roles: &[&str]| roles.contains(&role);
    let speaker = if is_in(&AUTHORSHIP.owner_roles) {
        Speaker::Owner
    } else if is_in(&AUTHORSHIP.assistant_roles) {
        Speaker::Assistant
    } else if is_in(&AUTHORSHIP.machine_roles) {
        Speaker::Machine
    } else {
        return None;
    };
    let text_at = text.len() - rest.trim_start().len();
    Some(Turn { speaker, at, text_at })
}

/// Returns the words of a turn that is written as a string of JSON, in one line; `None` if it is not.
pub(crate) fn plain_words(words: &str) -> Option<String> {
    let words = words.trim();
    let text: String = words.starts_with('"').then(|| serde_json::from_str(words).ok())??;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    Some(lines.join(" "))
}

/// Marks the lines of a transcript.
pub(super) fn mark(lines: &[NumberedLine<'_>], dump: &SessionDump, found: &mut Authorship) {
    let session = u16::try_from(found.sessions.len()).ok();
    found.sessions.push(DumpedSession { id: dump.id.clone() });
    for line in &mut found.lines[dump.lines.clone()] {
        line.session = session;
    }
    let header_end = dump.turns.first().map_or(dump.lines.end, |it| it.at);
    for at in dump.lines.start..header_end {
        found.lines[at].shape = LineShape::SessionHeader;
        found.lines[at].reason = Some(OriginReason::Metadata);
    }
    for (i, turn) in dump.turns.iter().enumerate() {
        let end = dump.turns.get(i + 1).map_or(dump.lines.end, |it| it.at);
        // A program that appends its report to a log does not end the last turn.
        machine_report::mark_dreams(lines, turn.at..end, &mut found.lines);
        host_text::mark_turn(lines, turn.at..end, turn.text_at, turn.speaker, &mut found.lines);
    }
}
