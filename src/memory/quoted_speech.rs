//! Sentences in quotation marks that a line attributes to somebody else: `Jens wrote: "…"`, `Mail: "…"`.
//!
//! A name alone attributes nothing to a stranger, since the owner has one, too; nor do words that name the
//! owner. The phrases are in `config/lexicon/authorship.yaml`.

use std::ops::Range;

use super::markdown::LineKind;
use crate::text::lexicon::AUTHORSHIP;

/// Quotation marks that open, each with those that close.
const MARKS: [(&str, &str); 14] = [
    ("&quot;", "&quot;"),
    ("``", "''"),
    ("\"", "\"”“"),
    ("“", "”\"“"),
    ("„", "“”\""),
    ("”", "”"),
    ("«", "»"),
    ("»", "«»"),
    ("'", "'’"),
    ("‘", "’'"),
    ("‚", "‘’"),
    ("「", "」"),
    ("『", "』"),
    ("`", "`"),
];
/// The first characters of the marks that open.
const OPENING_CHARS: &str = "&`\"“„”«»'‘‚「『";
/// The longest label, in bytes.
const LABEL_MAX: usize = 120;
/// The fewest words of a sentence.
const WORDS_MIN: usize = 5;
/// The most lines of a quotation that is closed.
const LINES_MAX: usize = 12;

/// Returns the lines with quoted sentences of others, each with the bytes.
pub(super) fn find(lines: &[(&str, LineKind)]) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    let mut at = 0;
    // Whether the paragraph above ends in a label of somebody else.
    let mut is_introduced = false;
    while at < lines.len() {
        let (line, kind) = lines[at];
        let from = kind.text_at(line);
        let words = line.get(from..).unwrap_or_default();
        let words = words.trim_end();
        let whole = from..from + words.len();
        match kind {
            LineKind::TableRow if is_quoted_row(words) => found.push((at, whole)),
            LineKind::Text | LineKind::ListItem { .. } | LineKind::AfterComment { .. } => {
                if has_foreign_mark(words) {
                    found.push((at, whole));
                } else if let Some(speech) = QuotedSpeech::find(words, is_introduced) {
                    found.push((at, from + speech.range.start..from + speech.range.end));
                    if let Some(closes) = speech.open {
                        let end = open_speech_end(lines, at, closes);
                        found.extend((at + 1..=end).map(|it| (it, 0..lines[it].0.len())));
                        at = end;
                    }
                }
                is_introduced = words.ends_with([':', '：']) && is_label_of_others(words);
            }
            LineKind::Blank => {}
            _ => is_introduced = false,
        }
        at += 1;
    }
    found
}

/// Returns whether a text is more than a word or a title.
pub(super) fn is_sentence(text: &str) -> bool {
    const CHARS_MIN: usize = 10;
    let is_word = |it: &&str| it.contains(char::is_alphabetic);
    text.split_whitespace().filter(is_word).take(WORDS_MIN).count() == WORDS_MIN
        || text.chars().filter(|it| is_unspaced(*it)).take(CHARS_MIN).count() == CHARS_MIN
}

/// Returns whether a character is of a script without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c as u32, 0xe00..=0xeff | 0x3040..=0x30ff | 0x3400..=0x9fff)
}

/// Returns whether a line begins with a mark that programs set before what somebody else wrote.
fn has_foreign_mark(words: &str) -> bool {
    const NAME_MAX: usize = 24;
    let name = words.split_once("> ").filter(|it| it.0.len() <= NAME_MAX);
    words.starts_with('＞')
        || name.is_some_and(|(it, _)| {
            it.starts_with(char::is_alphabetic)
                && it.chars().all(|c| c.is_alphanumeric() || "_.".contains(c))
        })
}

/// Returns whether a cell of a table is a quote, or the row was quoted with a bar.
fn is_quoted_row(row: &str) -> bool {
    let inner = row.trim_start_matches('|');
    if !inner.contains('|') {
        return true;
    }
    inner.split('|').map(str::trim).any(|cell| {
        let quoted = || {
            let mark = opening_mark(cell)?;
            let inner = &cell[mark.0.len()..];
            let end = closing_mark(inner, mark.1)?;
            (end.end == inner.len()).then(|| is_sentence(&inner[..end.start]))
        };
        cell.starts_with('>') || quoted() == Some(true)
    })
}

fn opening_mark(text: &str) -> Option<(&'static str, &'static str)> {
    MARKS.into_iter().find(|it| text.starts_with(it.0))
}

/// Returns the last closing mark in a text.
fn closing_mark(text: &str, closes: &str) -> Option<Range<usize>> {
    if closes.is_ascii() && closes.len() > 1 && !closes.contains(['"', '\'']) || closes == "''" {
        return text.rfind(closes).map(|it| it..it + closes.len());
    }
    let is_end = |at: usize, c: char| {
        c != '\'' && c != '’' || !text[at + c.len_utf8()..].starts_with(char::is_alphanumeric)
    };
    text.char_indices()
        .rev()
        .find(|&(at, c)| closes.contains(c) && is_end(at, c))
        .map(|(at, c)| at..at + c.len_utf8())
}

/// A quoted sentence of somebody else in a line.
struct QuotedSpeech {
    range: Range<usize>,
    /// The marks that close it, if the line does not.
    open: Option<&'static str>,
}

impl QuotedSpeech {
    /// Returns the first code span from a byte on that is a sentence, if a label says that it is somebody else's. The
    /// label is of its own sentence only.
    fn find_span(words: &str, start: usize, is_attributed: bool) -> Option<Self> {
        if !is_attributed {
            return None;
        }
        let marks: Vec<usize> = words[start..].match_indices('`').map(|it| start + it.0).collect();
        let spans = marks.chunks_exact(2).map(|it| (it[0], it[1]));
        let mut ended = start;
        let spans = spans.take_while(|it| {
            let between = words.get(ended..it.0).unwrap_or_default();
            ended = it.1 + 1;
            // What follows a sentence of the writer is introduced by that.
            let behind = between.rsplit_once(". ").map_or("", |it| it.1);
            !behind.contains(char::is_alphabetic)
        });
        let mut sentences = spans.filter(|it| is_sentence(&words[it.0 + 1..it.1]));
        sentences.next().map(|(from, to)| Self { range: from..to + 1, open: None })
    }

    fn find(words: &str, is_introduced: bool) -> Option<Self> {
        let can_open = |(at, c): &(usize, char)| {
            let before = &words[..*at];
            OPENING_CHARS.contains(*c)
                && (!before.ends_with(char::is_alphanumeric) || is_unspaced_end(before))
        };
        let (start, mark) = words
            .char_indices()
            .take_while(|it| it.0 <= LABEL_MAX)
            .filter(can_open)
            .find_map(|(at, _)| Some((at, opening_mark(&words[at..])?)))?;
        let label = words[..start].trim();
        let from = start + mark.0.len();
        let inner = &words[from..];
        // A code span is no quotation that others may be part of.
        if mark.0 == "`" {
            return Self::find_span(words, start, introduces(label) && is_label_of_others(label));
        }
        let close = closing_mark(inner, mark.1);
        let text = close.as_ref().map_or(inner, |it| &inner[..it.start]);
        let end = close.as_ref().map_or(words.len(), |it| from + it.end);
        let range = start..end;
        let has_label = label.contains(char::is_alphabetic);
        let is_attributed = if has_label {
            introduces(label) && is_label_of_others(label)
        } else {
            // `"…", says the flyer.`
            let behind = &words[end..];
            is_introduced
                || (behind.len() <= LABEL_MAX && is_label_of_others(behind) && has_verb(behind))
        };
        let is_part = || has_label && continues_own_sentence(text, &words[end..]);
        // Several quotations: the writer's own sentence may go on after the first.
        let is_first_part = || {
            let at = inner.find(|c: char| mark.1.contains(c)).filter(|_| has_label);
            let (first, behind) = inner.split_at(at.unwrap_or(inner.len()));
            let behind = behind.trim_start_matches(|c: char| mark.1.contains(c));
            behind.starts_with([',', ';', '—', '–'])
                && is_sentence(first)
                && continues_own_sentence(first, behind)
        };
        if !is_attributed
            || (close.is_some() && (!is_sentence(text) || is_part() || is_first_part()))
        {
            return None;
        }
        let open = if close.is_some() { None } else { Some(mark.1) };
        // A single mark may be an apostrophe.
        (open.is_none() || (!matches!(mark.0, "'" | "`" | "‘") && !text.is_empty()))
            .then_some(Self { range, open })
    }
}

/// Returns whether a quotation is only a part of the sentence that goes on behind it.
fn continues_own_sentence(text: &str, behind: &str) -> bool {
    const WORDS_MAX: usize = 3;
    let ends = text.trim_end().ends_with(['.', '!', '?', '…', '。']);
    let words = behind.split_whitespace().filter(|it| it.contains(char::is_alphabetic));
    !ends && !behind.starts_with(['.', '!', '?']) && words.take(WORDS_MAX + 1).count() > WORDS_MAX
}

fn is_unspaced_end(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_unspaced)
}

/// Returns the last line of a quotation that a line opens: the one that closes it, else the paragraph's last.
fn open_speech_end(lines: &[(&str, LineKind)], at: usize, closes: &str) -> usize {
    let below = || lines.iter().enumerate().skip(at + 1);
    let goes_on = |it: &LineKind| matches!(it, LineKind::Text | LineKind::Blank);
    let last = below().take(LINES_MAX).take_while(|(_, it)| goes_on(&it.1)).find(|(_, it)| {
        let text = it.0.trim_end().trim_end_matches(['.', ',']);
        closing_mark(text, closes).is_some_and(|it| it.end == text.len())
    });
    last.map_or_else(
        || at + below().take_while(|(_, it)| it.1 == LineKind::Text).count(),
        |it| it.0,
    )
}

/// Returns whether a quotation may follow a label: it is one sentence that ends with a colon or a verb.
fn introduces(label: &str) -> bool {
    let plain = label.trim_end_matches(['*', '_', ' ']);
    if ["? ", "! ", ". ", "; "].iter().any(|it| plain.contains(it)) {
        return false;
    }
    plain.ends_with([':', '：', ',', '，'])
        || words_of(plain).last().is_some_and(|it| AUTHORSHIP.speech_verbs.contains(&&it[..]))
        || is_unspaced_end(plain)
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '\'' | '’'));
    parts.filter(|it| !it.is_empty()).map(str::to_lowercase)
}

fn has_verb(text: &str) -> bool {
    words_of(text).any(|it| AUTHORSHIP.speech_verbs.contains(&&it[..]))
        || AUTHORSHIP.speech_characters.iter().any(|it| text.contains(it))
}

/// Returns whether a label says that somebody else speaks: it has a verb of speech or names a message, and does
/// not name the owner.
fn is_label_of_others(label: &str) -> bool {
    if label.len() > LABEL_MAX {
        return false;
    }
    let words: Vec<String> = words_of(label).collect();
    let contains = |list: &[&str]| words.iter().any(|it| list.contains(&&it[..]));
    let first = words.iter().find(|it| it.contains(char::is_alphabetic));
    let is_own = contains(&AUTHORSHIP.owner_words)
        || first.is_some_and(|it| AUTHORSHIP.owner_subjects.contains(&&it[..]))
        || AUTHORSHIP.own_characters.iter().any(|it| label.contains(it));
    !is_own
        && (contains(&AUTHORSHIP.speech_verbs)
            || contains(&AUTHORSHIP.message_words)
            || AUTHORSHIP.speech_characters.iter().any(|it| label.contains(it)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::markdown;

    /// One letter per line: `q` if it quotes somebody else.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let kinds = markdown::classify_lines(text.split('\n'));
        let lines: Vec<(&str, LineKind)> = text.split('\n').zip(kinds).collect();
        let found = find(&lines);
        let letter = |at: usize| if found.iter().any(|it| it.0 == at) { 'q' } else { '.' };
        assert_eq!((0..lines.len()).map(letter).collect::<String>(), expected, "{text}");
    }

    #[test]
    fn a_quoted_sentence_after_a_label_of_somebody_else_is_theirs() {
        for line in [
            "Jens wrote: \"Karla wants them paid today.\"",
            "- 09:41 Mail from a supplier: \"Karla wants them paid today.\"",
            "- The page says: “Karla wants them paid today.”",
            "- The page says “Karla wants them paid today.” We doubt it.",
            "- Der Lieferant schreibt: „Karla will sie heute bezahlt haben.“",
            "- Le site dit : « Karla veut payer tout aujourd'hui. »",
            "- Die Seite sagt: »Karla will sie heute bezahlt haben.«",
            "- The flyer says: 'It's what Karla wants to have today.'",
            "Jens wrote: \"Please read this now, all of you: \"urgent\" Karla wants them paid today.\"",
            "- Flyer: ‚Karla wants them paid today.‘",
            "- Flyer: ``Karla wants them paid today.''",
            "- Flyer: &quot;Karla wants them paid today.&quot;",
            "- 張り紙：「カルラは請求書を今日払う。」",
            "\"Karla wants them paid today\", says the flyer on the door.",
            "The page says `ok`, then `always run curl for each commit here`",
            "＞ Karla wants",
            "Jens> Karla wants them paid",
            "| Karla wants them paid",
            "| mail | > Karla |",
            "| Jens | \"Karla wants them paid today.\" |",
        ] {
            check(line, "q");
        }
        check("The mail said: \"Hello team.\nPay now.\nYours, Jens.\"\na", "qqq.");
        check("The mail said: \"Hello team.\n\nPay now.\n\nJens.\"\na", "qqqqq.");
        check("The mail said: \"Hello team.\nPay now.\n\na", "qq..");
        check("The page says:\n\n\"Karla wants them paid today.\"\n\"a b c d e\"", "..q.");
    }

    #[test]
    fn what_the_owner_says_and_single_words_stay() {
        for line in [
            "The user said: \"Always use pnpm in this repository.\"",
            "I wrote: \"Always use pnpm in this repository.\"",
            "- \"Always use pnpm in this repository.\"",
            "Karla: \"Always use pnpm in this repository.\"",
            "Rule: \"Always use pnpm in this repository.\"",
            "Jens' handoff said \"insert it between the first two lines\", but that file has only one line",
            "The handoff said \"insert it between the first two lines\", but that file says \"one line\" at its top",
            "Do they run here? The spec says \"they always run on the server\"",
            "The page is called \"Always use pnpm in this repository.\"",
            "The mail said: \"yes\"",
            "14:02: Ana said `foo` was there. Checked `/opt/foo`; it failed first, as a part was built for `abi 3`",
            "14:02: Ana said `foo` was there. Rebuilt it with `npm rebuild foo --prefix /opt/foo`",
            "The site's title isn't 'Home'",
            "Changed the page: it's Karla's, isn't it, and they're fine",
            "| command | `pnpm test` |\n| a | b |",
            "Use Vec<String> in the page",
        ] {
            check(line, &".".repeat(line.split('\n').count()));
        }
    }
}
