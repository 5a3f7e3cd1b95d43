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
    let statement = statement.trim().trim_end_matches(['.', '!', ';', ':']);
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
