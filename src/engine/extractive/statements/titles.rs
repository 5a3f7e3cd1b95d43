//! Shortens a statement to a title. Lengths are in characters.

use super::{labels::split_label, word_list::WordList};
use crate::{engine::extractive::cue_phrases, text::lexicon::CUES};

/// Truncates a text after a word to at most `chars_max` characters, including the ellipsis.
pub(crate) fn truncate_at_word(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let mut start = String::new();
    let mut length = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count() + usize::from(!start.is_empty());
        if length + width + 1 > chars_max {
            break;
        }
        if !start.is_empty() {
            start.push(' ');
        }
        start.push_str(word);
        length += width;
    }
    let cut = start.trim_end_matches([',', ';', ':', '—', '-', ' ']).to_owned();
    if cut.is_empty() { text.chars().take(chars_max).collect() } else { cut + "…" }
}

/// Returns the lead clause of a statement, at most `chars_max` characters: a title.
pub(crate) fn title_of(statement: &str, chars_max: usize) -> String {
    let statement = without_time(statement.trim()).trim_end_matches(['.', '!', ';', ':']);
    // `Decided with Ana: …` names the act; the decision itself follows.
    let statement = match split_label(statement) {
        Some((label, rest)) if WordList::of(label).opens_with(cue_phrases::DECIDED) => {
            &statement[rest..]
        }
        _ => statement,
    };
    let cuts = [" — ", " – ", "; ", " (", ": ", ". "];
    let clause = cuts.iter().filter_map(|cut| statement.find(cut)).min().map_or(statement, |at| {
        if statement[..at].split_whitespace().count() >= 2 { &statement[..at] } else { statement }
    });
    let clause = if clause.chars().count() > chars_max {
        longest_fitting_clause(clause, chars_max)
    } else {
        clause
    };
    truncate_at_word(strip_outer_quotes(clause.trim().trim_matches('*')), chars_max)
}

/// Returns a statement without the time of day at which it was noted: `12:02: …`, `14h30 …`, `[9:15] …`.
pub(crate) fn without_time(statement: &str) -> &str {
    let opened = statement.trim_start_matches(['[', '(', '*']);
    let Some(mut rest) = after_clock(opened) else { return statement };
    // `09:00-09:30`, and the seconds of `12:02:30`.
    if let Some(end) = rest.strip_prefix(['-', '–', ':']).and_then(after_clock_part) {
        rest = end;
    }
    let tail = rest.trim_start_matches([']', ')', '*', ' ', ':', '-', '–', '—', ',']);
    let is_apart = tail.len() < rest.len() && tail.starts_with(char::is_alphabetic);
    if is_apart { tail } else { statement }
}

/// Returns what follows an hour and its minutes.
fn after_clock(text: &str) -> Option<&str> {
    let hour = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_hour = (1..=2).contains(&hour) && text[..hour].parse().is_ok_and(|it: u8| it < 25);
    let rest = text[hour..].strip_prefix([':', 'h']).filter(|_| is_hour)?;
    after_minutes(rest)
}

/// Returns what follows another clock time, or the seconds of one.
fn after_clock_part(text: &str) -> Option<&str> {
    after_clock(text).or_else(|| after_minutes(text))
}

fn after_minutes(text: &str) -> Option<&str> {
    let minutes = text.get(..2)?;
    let is_minutes = minutes.bytes().all(|b| b.is_ascii_digit()) && minutes < "60";
    (is_minutes && !text[2..].starts_with(|c: char| c.is_ascii_digit())).then_some(&text[2..])
}

/// Returns a text without the quotes around all of it; quotes around a part stay.
fn strip_outer_quotes(text: &str) -> &str {
    let inner =
        [('"', '"'), ('“', '”'), ('„', '“'), ('«', '»')].into_iter().find_map(|(open, shut)| {
            let inner = text.strip_prefix(open)?.strip_suffix(shut)?;
            (!inner.contains([open, shut])).then_some(inner)
        });
    inner.unwrap_or(text)
}

/// Returns the longest start of a clause that fits and ends where a part of it begins.
fn longest_fitting_clause(clause: &str, chars_max: usize) -> &str {
    /// Shorter than this and it is an aside: `By the way, …`.
    const WORDS_MIN: usize = 5;
    let whole = |start: &str| {
        let even = |mark: char| start.matches(mark).count().is_multiple_of(2);
        even('`') && even('"') && start.matches('(').count() == start.matches(')').count()
    };
    CUES.clause_starts
        .iter()
        .flat_map(|mark| clause.match_indices(mark).map(|(at, _)| &clause[..at]))
        .filter(|start| start.chars().count() <= chars_max && whole(start))
        .filter(|start| start.split_whitespace().count() >= WORDS_MIN)
        .max_by_key(|start| start.len())
        .map_or(clause, |start| start.trim_end_matches([',', ';', ' ']))
}

/// Capitalizes the first word of a title, unless it has its own spelling.
pub(crate) fn capitalize_title(title: &str) -> String {
    let first = title.split_whitespace().next().unwrap_or_default();
    let plain = first
        .trim_end_matches([',', ':', ';'])
        .chars()
        .all(|c| c.is_lowercase() || matches!(c, '\'' | '’'));
    let mut chars = title.chars();
    match chars.next().filter(|_| plain) {
        Some(letter) => letter.to_uppercase().chain(chars).collect(),
        None => title.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_enter_titles() {
        #[track_caller]
        fn check(statement: &str, expected: &str) {
            assert_eq!(title_of(statement, 80), expected, "{statement}");
        }
        let title = "Bob prefers Vim";
        for time in [
            "12:02: ",
            "12:02 - ",
            "12:02 – ",
            "[12:02] ",
            "(9:02) ",
            "14h30 ",
            "12:02:30 ",
            "12:02-12:30 ",
            "12:02, ",
            "**12:02** ",
        ] {
            check(&format!("{time}{title}"), title);
        }
        check("12:02", "12:02");
        check("24/7 support ends", "24/7 support ends");
        check("12:2 odds on Bob", "12:2 odds on Bob");
        check("16:9 screens are kept", "16:9 screens are kept");
        check("99:99 is no time", "99:99 is no time");
        check("3h per build is too slow", "3h per build is too slow");
    }
}
