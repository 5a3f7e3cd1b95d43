//! What a line says, whoever wrote it down, where, and when.
//!
//! The same words are compared in this form: without list marker, time, label, and address.

use super::{address, item::Item, markdown};

/// The label of what a user wants to hold, in an entry of a session.
pub const USER_DECIDED: &str = "The user decided: ";
/// Labels before a text that an entry or a record of a session repeats.
pub const SESSION_LABELS: [&str; 7] = [
    "Outcome: ",
    "The user corrected: ",
    USER_DECIDED,
    "The user stated: ",
    "Decided: ",
    "Open: ",
    "Said last: ",
];
/// Those of them that only an entry of a session has.
pub const SAID_LABELS: [&str; 4] =
    ["The user corrected: ", USER_DECIDED, "The user stated: ", "Said last: "];
/// More labels in records of sessions.
const RECORD_LABELS: [&str; 6] = [
    "The user said last: ",
    "The agent said last: ",
    "Then the user: ",
    "Then: ",
    "Goal: ",
    "User: ",
];

/// Normalizes words for comparison: lower case, single spaces.
pub fn normalized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().flat_map(char::to_lowercase));
    }
    out
}

/// Returns the normalized words of a line without its marker, the time and the label before them, and the
/// address and `#keep` behind them.
pub fn bare_words(line: &str) -> String {
    let line = line.trim();
    let kind = markdown::classify_lines([line]).first().copied();
    let words = kind.and_then(|it| line.get(it.text_at(line)..)).unwrap_or(line);
    let words = words.split_once(' ').filter(|it| is_time(it.0)).map_or(words, |it| it.1);
    let words = without_record_name(words);
    let words = without_label(words.trim());
    let words: Vec<&str> = words.split_whitespace().filter(|it| *it != "#keep").collect();
    normalized(&words.join(" "))
}

/// Labels before a text that add nothing to it.
const NOTE_LABELS: [&str; 34] = [
    "note",
    "note to self",
    "reminder",
    "remember",
    "remind me",
    "info",
    "fyi",
    "update",
    "todo",
    "fact",
    "decision",
    "decided",
    "important",
    "memo",
    "nb",
    "p.s.",
    "ps",
    "rule",
    "preference",
    "lesson",
    "again",
    "also",
    "notiz",
    "hinweis",
    "erinnerung",
    "merke",
    "wichtig",
    "rappel",
    "nota",
    "recordatorio",
    "lembrete",
    "promemoria",
    "herinnering",
    "заметка",
];

/// Returns [`bare_words`] without what a person may change when the same words are noted again: emphasis, tags,
/// the end mark, and a label.
pub fn core_words(line: &str) -> String {
    let bare = bare_words(line);
    let marks = ['*', '_', '~', '`', '"', '“', '”', '„'];
    let is_tag =
        |it: &&str| !it.strip_prefix('#').is_some_and(|it| it.starts_with(char::is_alphabetic));
    let words: Vec<&str> = bare
        .split(' ')
        .filter(is_tag)
        .map(|it| it.trim_matches(marks))
        .filter(|it| !it.is_empty())
        .collect();
    let text = words.join(" ");
    let mut rest = text.trim_start_matches(['-', '–', '—', ':', ',', ' ']);
    loop {
        let half = ["am", "pm", "a.m.", "p.m.", "uhr"].iter().find_map(|it| rest.strip_prefix(it));
        let half = half.map(|it| it.trim_start_matches([':', ',', '-', '–', '—']));
        let label = NOTE_LABELS.iter().find_map(|it| {
            rest.strip_prefix(it)?.strip_prefix([':', ',', ';', '-', '–', '—', '!']).or_else(|| {
                let rest = rest.strip_prefix(it)?;
                [" -", " –", " —"].iter().find_map(|it| rest.strip_prefix(it))
            })
        });
        match half.filter(|it| it.starts_with(' ')).or(label) {
            Some(more) if more.contains(char::is_alphanumeric) => {
                rest = more.trim_start().trim_start_matches(marks);
            }
            _ => break,
        }
    }
    rest.trim_end_matches(|c: char| {
        matches!(c, '.' | '!' | '。' | '！' | ';' | ',') || marks.contains(&c)
    })
    .to_owned()
}

fn is_time(word: &str) -> bool {
    let word = word.trim_matches(['[', ']', '(', ')', '*', '_', ':', '-', '–', '—', ',']);
    let mut parts = word.split(':');
    let is_number =
        |it: &str| (1..=2).contains(&it.len()) && it.bytes().all(|b| b.is_ascii_digit());
    let count = parts.clone().count();
    (2..=3).contains(&count) && parts.all(is_number)
}

/// Returns a text without the citation or the name of a session record at its end.
fn without_record_name(words: &str) -> &str {
    let words = address::strip_session_citation(words.trim_end());
    let named = words.strip_suffix(')').and_then(|it| it.rsplit_once(" (CMEM-"));
    let words = named.map_or(words, |it| it.0);
    match Item::parse(words).citation {
        Some(_) => words.rfind('[').map_or(words, |at| words[..at].trim_end()),
        None => words,
    }
}

/// Returns the words before a text of a session's entry that only say where the session was: `Session in tide: `, or
/// `Session in tide on main: `. What people write about a session has more words.
pub fn session_lead(words: &str) -> Option<&str> {
    let end = words.find(": ")?;
    let place = words[..end].strip_prefix("Session ")?;
    let mut words_of_place = place.split(' ');
    let is_place = match (words_of_place.next(), words_of_place.next()) {
        (Some("in"), Some(_)) => match (words_of_place.next(), words_of_place.next()) {
            (None, _) => true,
            (Some("on"), Some(_)) => words_of_place.next().is_none(),
            _ => false,
        },
        (Some("on"), Some(_)) => words_of_place.next().is_none(),
        _ => false,
    };
    is_place.then(|| &words[..end + ": ".len()])
}

/// Returns a text of a session's entry without the label that says who said it.
pub fn without_session_label(words: &str) -> &str {
    SESSION_LABELS.iter().find_map(|it| words.strip_prefix(it)).unwrap_or(words)
}

fn without_label(words: &str) -> &str {
    if let Some(lead) = session_lead(words) {
        return &words[lead.len()..];
    }
    let mut labels = SESSION_LABELS.iter().chain(&RECORD_LABELS).chain(&["Session: "]);
    labels.find_map(|it| words.strip_prefix(it)).unwrap_or(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_equal_at_another_time_and_place() {
        let words = "priya moved to porto";
        for line in [
            "Priya moved to Porto",
            "- 09:05 Priya moved  to Porto",
            "- [9:05] Priya moved to Porto #keep",
            "- 21:05:30 Priya moved to Porto [CMEM-20260402-101500:7]",
            "  - [x] Priya moved to Porto [2026-04-02:7]",
            "> Priya moved to Porto",
            "- 10:00 Session in tide on main: Priya moved to Porto [CMEM-20260402-101500:7-9]",
            "- Session in tide: Priya moved to Porto (CMEM-20260402-101500)",
            "- The user decided: Priya moved to Porto [CMEM-20260402-101500:7]",
            "- The user said last: Priya moved to Porto",
        ] {
            assert_eq!(bare_words(line), words, "{line}");
        }
        for line in [
            "- **Priya moved to Porto**",
            "- Priya *moved* to Porto.",
            "- Note: Priya moved to Porto!",
            "- 17:23 Reminder, Priya moved to Porto",
            "- Priya moved to Porto #moves",
            "- 5:23 PM: Priya moved to Porto",
            "- 17:23:05 – Priya moved to Porto",
            "- FYI: **Note** - Priya moved to Porto",
        ] {
            assert_eq!(core_words(line), words, "{line}");
        }
        assert_ne!(core_words("- Amber: Priya moved to Porto"), words);
        assert_eq!(core_words("- note: "), "note:");
        assert_eq!(bare_words("- Noor: Priya moved to Porto"), format!("noor: {words}"));
        assert_eq!(bare_words("- 09:05"), "09:05");
        assert_eq!(bare_words("- see [1]"), "see [1]");
    }
}
