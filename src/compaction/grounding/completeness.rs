//! Finds the amounts and days that an item leaves out of its lines. Pure.
//!
//! The rest of grounding finds what an item adds. An item is about a line if most of its words are in it. The
//! money, percentages, numbers, and dates of such a line that the item lacks were dropped. The engine is asked
//! for them once; the item is never rejected for it, since a summary may leave things out.

use std::collections::{BTreeSet, HashSet};

use super::LineLookup;
use crate::{
    compaction::grounding,
    memory::{
        address::Citation,
        atom::{self, Atom, AtomKind},
        item::Item,
    },
    text::{spacing, words},
};

/// An item that cites more lines summarizes them, and may drop their amounts.
const LINES_MAX: usize = 3;

/// A longer line is a report of its own, of which an item says the gist.
const LINE_CHARS_MAX: usize = 400;

/// A line with more amounts is full of figures, of which an item takes one.
const AMOUNTS_MAX: usize = 3;

/// Words before a number that names something and measures nothing.
const NUMBERED: &[&str] = &[
    "pid", "port", "id", "no", "nr", "number", "build", "issue", "ticket", "pr", "line", "lines",
    "row", "commit", "step", "phase", "version", "job", "run", "page", "seite", "zeile", "puerto",
    "línea", "ligne",
];

/// The least share of an item's words in a line that it is about, and of the line's words in the item.
const SHARE_MIN: f64 = 0.5;

/// How many amounts and days of its lines an item keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completeness {
    /// The number of those that it keeps.
    pub(crate) kept_count: usize,
    /// Those that it drops, as the lines write them.
    pub(crate) dropped: Vec<String>,
}

/// Returns what an item keeps and drops of the lines that it is about.
pub(crate) fn of_item<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Completeness {
    let mut completeness = Completeness::default();
    let Some(citation) = &item.citation else { return completeness };
    let lines: Vec<_> = citation.addresses().take(LINES_MAX + 1).collect();
    if lines.len() > LINES_MAX {
        return completeness;
    }
    let item_text = spacing::spaced(&item.text);
    let item_norms: HashSet<String> =
        required_atoms(&item_text).map(|it| it.norm(&item_text).to_lowercase()).collect();
    let words = words::long_words(&item.text);
    let mut seen = HashSet::new();
    for address in lines {
        let Some(line) = sources.line(&address.stem, address.line) else { continue };
        let text = line.spaced_text();
        if text.chars().count() > LINE_CHARS_MAX || !is_about(&words, text) {
            continue;
        }
        if required_atoms(text).count() > AMOUNTS_MAX {
            continue;
        }
        for amount in required_atoms(text) {
            let norm = amount.norm(text).to_lowercase();
            if !seen.insert(norm.clone()) {
                continue;
            }
            let is_kept = item_norms.contains(&norm)
                || is_date_of_citation(&amount, &norm, citation)
                || grounding::mentions_amount(address.stem.date(), &item_text, amount.text(text));
            if is_kept {
                completeness.kept_count += 1;
            } else {
                completeness.dropped.push(amount.text(text).to_owned());
            }
        }
    }
    completeness
}

/// Returns the amounts and days of a text. Bare numbers of one digit are left out, since most count a list, and those
/// that name something: a process, a port, a ticket.
fn required_atoms(text: &str) -> impl Iterator<Item = Atom> {
    atom::find_atoms(text).into_iter().filter(move |it| match it.kind {
        AtomKind::Money => !is_sum(text, it),
        AtomKind::Percent | AtomKind::Date => true,
        AtomKind::Number => {
            it.text(text).len() > 1 && !is_name(text, it) && !is_bracketed(text, it)
        }
        _ => false,
    })
}

/// Returns whether an amount adds up others, which an item may have: `$400 + $195 = ~$595`.
fn is_sum(text: &str, amount: &Atom) -> bool {
    let before = text[..amount.start].trim_end_matches([' ', '~', '$', '€', '£']);
    before.strip_suffix('=').is_some_and(|it| it.contains('+'))
}

/// Returns whether a number is a detail in brackets: `the noise in the log (500 lines a second)`.
fn is_bracketed(text: &str, number: &Atom) -> bool {
    let before = &text[..number.start];
    before.rfind('(').is_some_and(|open| !before[open..].contains(')'))
}

fn is_name(text: &str, number: &Atom) -> bool {
    // `13. The compass`
    let is_ordinal = text[..number.start].trim().is_empty()
        && [". ", ") "].iter().any(|it| text[number.end..].starts_with(it));
    // `9+ hours ago` counts from the moment in which it was written.
    let mut after =
        text[number.end..].split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
    let is_elapsed = after.next().is_some() && after.next() == Some("ago");
    if is_ordinal || is_elapsed {
        return true;
    }
    // `lines 148-150`
    let is_range = |it: &&str| it.ends_with(|c: char| c.is_ascii_digit());
    let range = text[..number.start].strip_suffix(['-', '–']).filter(is_range);
    let range = range.map(|it| it.trim_end_matches(|c: char| c.is_ascii_digit()));
    let before = range.unwrap_or(&text[..number.start]);
    let before = before.trim_end_matches([' ', ':', '=', '.', '`']);
    let word = before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    // `Falcon 2.1` is a version of it.
    let is_version = number.text(text).contains('.')
        && before[..before.len() - word.len()].contains(char::is_alphabetic)
        && word.starts_with(char::is_uppercase);
    is_version
        || is_sum(text, number)
        || text[..number.start].ends_with('#')
        || before.len() < number.start && NUMBERED.contains(&&word.to_lowercase()[..])
}

/// Returns whether a date is the first or last day of the citation, which names it as well.
fn is_date_of_citation(amount: &Atom, norm: &str, citation: &Citation) -> bool {
    let day = |date: chrono::NaiveDate| {
        norm == date.to_string() || date.to_string().ends_with(norm.trim_start_matches('-'))
    };
    amount.kind == AtomKind::Date && (day(citation.oldest_date()) || day(citation.newest_date()))
}

#[expect(clippy::cast_precision_loss, reason = "a bullet has few words")]
fn is_about(words: &BTreeSet<String>, line: &str) -> bool {
    let theirs = words::long_words(line);
    let shared = words.intersection(&theirs).count();
    let is_most_of = |all: usize| shared as f64 >= all as f64 * SHARE_MIN;
    !words.is_empty() && is_most_of(words.len()) && is_most_of(theirs.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    #[track_caller]
    fn check(bullet: &str, kept_count: usize, dropped: &[&str]) {
        let text = "The importer moved to SQLite for $1,200 and runs 14% faster since 3 May\nLunch with 12 people\nRestarted the relay with PID 48213 on port 18789 for ticket #412 in 12 seconds\nPrices: berth 40 EUR, crane 120 EUR, water 4 EUR, power 9 EUR\n13. The compass needs another turn of the mage\nModel Falcon 2.1 is the first choice now\nThe relay failed by the noise in its log (500 lines a second)";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
        let seen = of_item(&Item::parse(bullet), &logs);
        assert_eq!(
            (seen.kept_count, &seen.dropped[..]),
            (kept_count, &dropped.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]),
            "{bullet}"
        );
    }

    #[test]
    fn amounts_of_the_line_are_kept_or_dropped() {
        check(
            "Importer moved to SQLite, 14% faster for 1200 USD since May 3 [2026-04-02:1]",
            3,
            &[],
        );
        check(
            "Importer moved to SQLite and runs faster [2026-04-02:1]",
            0,
            &["$1,200", "14%", "3 May"],
        );
        // An amount in another form is kept, too.
        check(
            "Importer moved to SQLite and runs 14 percent faster for 1200 dollars since 2026-05-03 \
             [2026-04-02:1]",
            3,
            &[],
        );
        check("A quiet spring with other matters entirely [2026-04-02:1]", 0, &[]);
        check("Importer moved to SQLite", 0, &[]);
        // What names a process, a port or a ticket is no amount.
        check("Restarted the relay for a ticket, with its port [2026-04-02:3]", 0, &["12"]);
        // Of a line full of figures, and of one that says much else, an item takes what it needs.
        check("Prices of berth and crane [2026-04-02:4]", 0, &[]);
        check("Importer moved [2026-04-02:1]", 0, &[]);
        // The number of an item in a list counts nothing.
        check("The compass needs another turn [2026-04-02:5]", 0, &[]);
        check("The model Falcon is the first choice [2026-04-02:6]", 0, &[]);
        check("The relay failed by the noise in its log [2026-04-02:7]", 0, &[]);
    }
}
