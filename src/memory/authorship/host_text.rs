//! What a host program wrote: prompts, notices, envelopes, and metadata around somebody's words.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use super::{LineAuthorship, LineShape, NumberedLine, OriginReason, Speaker, host_span};
use crate::{
    memory::markdown::LineKind,
    text::lexicon::{AUTHORSHIP, LexiconWords},
};

/// The longest envelope of a message.
const ENVELOPE_BYTES_MAX: usize = 300;

/// Phrases at the start of a line, and what they show.
type ReasonPhrases = Vec<(&'static str, OriginReason)>;

fn reason_phrases<'a>(
    lists: impl IntoIterator<Item = (&'a &'static str, &'a LexiconWords)>,
) -> ReasonPhrases {
    let of_list = |(name, phrases): (&&'static str, &'a LexiconWords)| {
        let reason = OriginReason::from_name(name);
        phrases.iter().filter_map(move |it| Some((*it, reason?)))
    };
    lists.into_iter().flat_map(of_list).collect()
}

static PROMPTS: LazyLock<ReasonPhrases> = LazyLock::new(|| reason_phrases(&AUTHORSHIP.prompts));
static PARAGRAPHS: LazyLock<ReasonPhrases> =
    LazyLock::new(|| reason_phrases(&AUTHORSHIP.paragraphs));
static NOTICES: LazyLock<ReasonPhrases> = LazyLock::new(|| reason_phrases(&AUTHORSHIP.notices));

/// Returns whether a text starts with a phrase of a word list, without regard to case.
pub(super) fn starts_with_phrase(text: &str, phrase: &str) -> bool {
    text.as_bytes().get(..phrase.len()).is_some_and(|it| it.eq_ignore_ascii_case(phrase.as_bytes()))
}

fn find_reason(phrases: &ReasonPhrases, text: &str) -> Option<OriginReason> {
    phrases.iter().find(|it| starts_with_phrase(text, it.0)).map(|it| it.1)
}

/// Returns whether a text starts with one of the phrases.
pub(super) fn starts_with_any(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|it| starts_with_phrase(text, it))
}

/// Returns the text of a line after its marker.
pub(super) fn words_of(line: &str, kind: LineKind) -> &str {
    line.get(kind.text_at(line)..).unwrap_or(line).trim()
}

/// Returns whether a text contains a phrase of a word list, without regard to case.
pub(super) fn contains_phrase(text: &str, phrase: &str) -> bool {
    text.as_bytes().windows(phrase.len()).any(|it| it.eq_ignore_ascii_case(phrase.as_bytes()))
}

/// Returns whether a line is a quote or code.
pub(super) fn is_external_by_kind(kind: LineKind) -> bool {
    matches!(kind, LineKind::Quote { .. } | LineKind::Fence | LineKind::Code)
}

/// Marks the text between two marks, and returns of each line whether an earlier line opened the span
/// that it is in. Nothing inside counts as a turn or a header, so that forged ones gain nothing.
pub(super) fn mark_spans(lines: &[NumberedLine<'_>], found: &mut [LineAuthorship]) -> Vec<bool> {
    let lines: Vec<(&str, LineKind)> = lines.iter().map(|it| (it.1, it.2)).collect();
    let mut is_inside = vec![false; lines.len()];
    for span in host_span::find(&lines) {
        for line in &mut found[span.lines.clone()] {
            line.mark(LineShape::Notice, span.reason);
        }
        is_inside[span.lines.start + 1..span.lines.end].fill(true);
    }
    is_inside
}

/// A block of JSON about a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonBlock {
    None,
    /// The header was seen.
    Expected,
    Open,
}

impl JsonBlock {
    /// Returns whether a line is part of the block, and advances.
    fn advance(&mut self, kind: LineKind) -> bool {
        match (*self, kind) {
            (Self::Expected, LineKind::Blank) => return false,
            (Self::Expected, LineKind::Fence) => *self = Self::Open,
            (Self::Open, LineKind::Fence) => {
                *self = Self::None;
                return true;
            }
            (Self::Expected, _) => *self = Self::None,
            _ => {}
        }
        *self == Self::Open
    }
}

fn is_metadata_header(text: &str) -> bool {
    let text = text.trim_end_matches(':');
    AUTHORSHIP.metadata_headers.iter().any(|it| text.eq_ignore_ascii_case(it))
        || AUTHORSHIP.metadata_marks.iter().any(|it| text.ends_with(it))
}

fn is_silent_reply(text: &str) -> bool {
    let text = text.trim_matches(['*', '`', '_', '.', '!', ' ']);
    AUTHORSHIP.silent_replies.iter().any(|it| {
        // The marks around it may include its own underscores.
        text.eq_ignore_ascii_case(it)
    })
}

/// Marks the lines of a turn. The text of its first line starts at byte `text_at`.
pub(super) fn mark_turn(
    lines: &[NumberedLine<'_>],
    range: Range<usize>,
    text_at: usize,
    speaker: Speaker,
    found: &mut [LineAuthorship],
) {
    let mut reader = TurnReader {
        speaker,
        has_words: false,
        may_open: true,
        rest: (speaker == Speaker::Machine).then_some(OriginReason::ToolOutput),
        paragraph: None,
        json: JsonBlock::None,
    };
    let mut injected_at = range.start;
    let (mut is_heartbeat, mut is_prompt) = (false, false);
    for at in range.clone() {
        let (_, text, kind) = lines[at];
        let from = if at == range.start { text_at } else { kind.text_at(text) };
        if found[at].reason.is_some() {
            continue;
        }
        if speaker == Speaker::Owner
            && reader.has_words
            && lines[at - 1].2 == LineKind::Blank
            && opens_message(words_of(text, kind))
        {
            // The message begins here: what precedes it was put before it by the host program.
            mark_host_words(&mut found[injected_at..at], OriginReason::HostPrompt);
            reader.has_words = false;
            reader.may_open = true;
        }
        reader.read(text, kind, from, at == range.start, &mut found[at]);
        if found[at].reason == Some(OriginReason::QueueNotice) {
            injected_at = at + 1;
            reader.has_words = false;
        }
        let words = line_text(text, from);
        is_heartbeat |= speaker == Speaker::Assistant && answers_heartbeat(words);
        is_prompt |= speaker == Speaker::Owner && !is_external_by_kind(kind) && has_token(words);
    }
    if is_heartbeat {
        // It says that nothing needs attention.
        for line in found[range].iter_mut().filter(|it| it.reason.is_none()) {
            line.mark(LineShape::Report, OriginReason::Heartbeat);
        }
    } else if is_prompt {
        // Only a program asks for such an answer.
        mark_host_words(&mut found[range], OriginReason::HostPrompt);
    }
}

fn line_text(line: &str, from: usize) -> &str {
    line.get(from..).unwrap_or_default().trim()
}

/// Marks what was taken for words of the speaker.
fn mark_host_words(found: &mut [LineAuthorship], reason: OriginReason) {
    for line in found.iter_mut().filter(|it| it.reason.is_none()) {
        line.mark(LineShape::Notice, reason);
    }
}

/// Returns whether a line is how a host program begins a message: metadata, or an envelope.
fn opens_message(text: &str) -> bool {
    is_metadata_header(text) || skip_envelope(text).len() < text.len()
}

/// Returns whether a text contains an answer that only programs ask for. They write it in capitals.
fn has_token(text: &str) -> bool {
    (text.contains("NO_REPLY") || text.contains("HEARTBEAT_"))
        && AUTHORSHIP.silent_replies.iter().any(|it| contains_phrase(text, it))
}

/// Returns whether a line starts or ends with the answer to a heartbeat that reports nothing.
fn answers_heartbeat(text: &str) -> bool {
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    AUTHORSHIP.heartbeat_tokens.iter().any(|it| {
        starts_with_phrase(text, it)
            || text.len() >= it.len()
                && text.as_bytes()[text.len() - it.len()..].eq_ignore_ascii_case(it.as_bytes())
    })
}

/// Reads a turn line by line.
struct TurnReader {
    speaker: Speaker,
    has_words: bool,
    /// Whether an envelope may come: no words were read yet.
    may_open: bool,
    /// Why the rest of the turn is not the speaker's.
    rest: Option<OriginReason>,
    /// Why the rest of the paragraph is not the speaker's.
    paragraph: Option<OriginReason>,
    json: JsonBlock,
}

impl TurnReader {
    fn read(
        &mut self,
        line: &str,
        kind: LineKind,
        from: usize,
        is_first: bool,
        found: &mut LineAuthorship,
    ) {
        if self.json.advance(kind) {
            return found.mark(LineShape::Metadata, OriginReason::Metadata);
        }
        if let Some(reason) = self.rest {
            return found.mark(LineShape::Notice, reason);
        }
        if kind == LineKind::Blank {
            self.paragraph = None;
            return;
        }
        if is_external_by_kind(kind) || kind == LineKind::Rule {
            found.shape = LineShape::Turn;
            return;
        }
        let text_at = from + (line[from..].len() - line[from..].trim_start().len());
        match self.host_part(&line[text_at..]) {
            HostPart::Line(shape, reason) => found.mark(shape, reason),
            HostPart::Lead(skipped) => {
                found.speaker = Some(self.speaker);
                found.shape = if self.has_words { LineShape::Turn } else { LineShape::TurnStart };
                let words_at = text_at + skipped;
                if is_first || skipped > 0 {
                    found.words_at = u32::try_from(words_at).unwrap_or(0);
                }
                self.has_words = true;
                self.may_open = false;
            }
        }
    }

    /// Returns what of a line is not the speaker's.
    fn host_part(&mut self, line: &str) -> HostPart {
        let whole = |reason| HostPart::Line(LineShape::Notice, reason);
        let metadata = HostPart::Line(LineShape::Metadata, OriginReason::Metadata);
        let mut text = line.trim_end();
        if text.is_empty() {
            return metadata;
        }
        if let Some(reason) = self.paragraph {
            return whole(reason);
        }
        text = skip_tags(text);
        if text.is_empty() || is_silent_reply(text) {
            return metadata;
        }
        let lead = |rest: &str| line.trim_end().len() - rest.len();
        if self.speaker != Speaker::Owner {
            return match find_reason(&NOTICES, text) {
                Some(reason) if reason == OriginReason::HostPrompt => whole(reason),
                _ => HostPart::Lead(lead(text)),
            };
        }
        if is_metadata_header(text) {
            self.json = JsonBlock::Expected;
            return metadata;
        }
        if starts_with_any(text, &AUTHORSHIP.metadata_lines) {
            return metadata;
        }
        if self.may_open {
            text = skip_tags(skip_envelope(text));
            if text.is_empty() {
                return metadata;
            }
        }
        if let Some(reason) = find_reason(&PROMPTS, text) {
            self.rest = Some(reason);
            return whole(reason);
        }
        if let Some(reason) = find_reason(&PARAGRAPHS, text) {
            self.paragraph = Some(reason);
            return whole(reason);
        }
        if let Some(reason) = find_reason(&NOTICES, text) {
            self.may_open = true;
            return whole(reason);
        }
        HostPart::Lead(lead(text))
    }
}

/// What of a line is not the speaker's.
enum HostPart {
    /// All of it.
    Line(LineShape, OriginReason),
    /// The first bytes, perhaps none.
    Lead(usize),
}

/// Returns a text without the tags at its start, such as `[[reply_to_current]]`.
fn skip_tags(mut text: &str) -> &str {
    while starts_with_any(text, &AUTHORSHIP.reply_tags) {
        let close = if text.starts_with('<') { ">" } else { "]]" };
        let Some((_, rest)) = text.split_once(close) else { break };
        text = rest.trim_start();
    }
    text
}

/// Returns a message without its envelope, `[Discord Guild #general channel id:7 +1m 2026-03-01 09:30
/// EST] Ada:`.
fn skip_envelope(text: &str) -> &str {
    let Some((envelope, rest)) = text.strip_prefix('[').and_then(|it| it.split_once(']')) else {
        return text;
    };
    if envelope.len() > ENVELOPE_BYTES_MAX || !is_envelope(envelope) {
        return text;
    }
    let rest = rest.trim_start();
    let lower = envelope.to_lowercase();
    if !AUTHORSHIP.group_marks.iter().any(|it| lower.contains(it)) {
        return rest;
    }
    match rest.split_once(": ") {
        Some((sender, words)) if is_sender(sender) => words.trim_start(),
        _ => rest,
    }
}

/// Returns a line without the id in the envelope of its message, which says nothing to a reader:
/// `[Telegram Ada id:7 2026-03-01 09:30 EST] Ship it` is `[Telegram Ada 2026-03-01 09:30 EST] Ship it`.
pub fn without_message_id(line: &str) -> Cow<'_, str> {
    let envelope = line.split_once('[').and_then(|(before, rest)| {
        let (inside, _) = rest.split_once(']')?;
        let is_of_channel = starts_with_any(inside, &AUTHORSHIP.channels);
        let is_short = inside.len() <= ENVELOPE_BYTES_MAX;
        (is_short && is_of_channel && is_envelope(inside)).then_some((before.len() + 1, inside))
    });
    let Some((start, inside)) = envelope else { return Cow::Borrowed(line) };
    let Some(at) = inside.find(" id:") else { return Cow::Borrowed(line) };
    let id = inside[at + 1..].find(char::is_whitespace).map_or(inside.len(), |it| at + 1 + it);
    Cow::Owned([&line[..start + at], &inside[id..], &line[start + inside.len()..]].concat())
}

/// Returns whether the text between brackets is an envelope: it contains a date with a time, or a
/// channel and an id or the time since the last message.
fn is_envelope(text: &str) -> bool {
    // A log line starts with its time, an envelope with a weekday or a channel.
    if !text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let has_time = text.as_bytes().windows(16).any(|it| {
        let pattern = b"0000-00-00?00:00";
        pattern.iter().zip(it).all(|(&p, &b)| match p {
            b'0' => b.is_ascii_digit(),
            b'?' => b == b' ' || b == b'T',
            _ => p == b,
        })
    });
    let is_channel = || {
        starts_with_any(text, &AUTHORSHIP.channels)
            && (text.contains(" id:") || text.contains(" +"))
    };
    has_time || is_channel()
}

/// Returns whether a text before a colon is the name of a sender, perhaps with an id.
fn is_sender(text: &str) -> bool {
    text.chars().count() <= 60
        && text.split_whitespace().count() <= 6
        && !text.ends_with(['.', '!', '?', ','])
        && !text.contains("://")
}

/// Marks what a host program wrote among notes.
pub(super) fn mark_notes(
    lines: &[NumberedLine<'_>],
    range: Range<usize>,
    found: &mut [LineAuthorship],
) {
    let mut paragraph = None;
    let mut json = JsonBlock::None;
    for at in range {
        let (_, line, kind) = lines[at];
        if found[at].reason.is_some() {
            continue;
        }
        if json.advance(kind) {
            found[at].mark(LineShape::Metadata, OriginReason::Metadata);
            continue;
        }
        if kind == LineKind::Blank || matches!(kind, LineKind::Heading { .. }) {
            paragraph = None;
        }
        if kind == LineKind::Blank || is_external_by_kind(kind) {
            continue;
        }
        let text = words_of(line, kind);
        if is_metadata_header(text) {
            json = JsonBlock::Expected;
            found[at].mark(LineShape::Metadata, OriginReason::Metadata);
        } else if is_silent_reply(text) {
            found[at].mark(LineShape::Metadata, OriginReason::Metadata);
        } else {
            paragraph = find_reason(&PROMPTS, text).or(paragraph);
            if let Some(reason) = paragraph {
                found[at].mark(LineShape::Notice, reason);
            }
        }
    }
}
