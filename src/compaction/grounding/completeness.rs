//! Whether an item keeps the amounts and days that its lines are about. Pure.
//!
//! Grounding finds what is said too much; this finds what is left out. A line is what an item is about
//! when the item takes most of its words from it. What such a line says in money, percentages, numbers,
//! and dates, and the item does not, was dropped. It is asked for once and never a reason to refuse the
//! item: a summary may leave out.

use std::collections::{BTreeSet, HashSet};

use super::LineLookup;
use crate::{
    compaction::grounding,
    memory::{
        address::Citation,
        atom::{self, Atom, AtomKind},
        item::Item,
    },
    text::words,
};

/// An item that cites more lines than this sums them up.
const LINES_MAX: usize = 3;

/// So much of an item's words must stand in a line that it is about.
const SHARE_MIN: f64 = 0.5;

/// What became of the amounts and days of lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Completeness {
    /// How many the items keep.
    pub(crate) kept_count: usize,
    /// Those that they drop, as the lines write them.
    pub(crate) dropped: Vec<String>,
}

/// Returns what the item keeps and drops of the lines that it is about.
pub(crate) fn of_item<S: LineLookup + ?Sized>(item: &Item, sources: &S) -> Completeness {
    let mut preserved = Completeness::default();
    let Some(citation) = &item.citation else { return preserved };
    let lines: Vec<_> = citation.addresses().take(LINES_MAX + 1).collect();
    if lines.len() > LINES_MAX {
        return preserved;
    }
    let said: HashSet<String> =
        required_atoms(&item.text).map(|it| it.norm(&item.text).to_lowercase()).collect();
    let words = words::long_words(&item.text);
    let mut seen = HashSet::new();
    for address in lines {
        let Some(line) = sources.line(&address.stem, address.line) else { continue };
        let text = line.text();
        if !is_about(&words, text) {
            continue;
        }
        for amount in required_atoms(text) {
            let norm = amount.norm(text).to_lowercase();
            if !seen.insert(norm.clone()) {
                continue;
            }
            let is_said = said.contains(&norm)
                || is_date_of_citation(&amount, &norm, citation)
                || grounding::mentions_amount(address.stem.date(), &item.text, amount.text(text));
            if is_said {
                preserved.kept_count += 1;
            } else {
                preserved.dropped.push(amount.text(text).to_owned());
            }
        }
    }
    preserved
}

/// Returns the amounts and days of a text. A bare number of one digit is too often a count of a list.
fn required_atoms(text: &str) -> impl Iterator<Item = Atom> {
    atom::find_atoms(text).into_iter().filter(move |it| match it.kind {
        AtomKind::Money | AtomKind::Percent | AtomKind::Date => true,
        AtomKind::Number => it.text(text).len() > 1,
        _ => false,
    })
}

/// A day is said by the citation, too.
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
    !words.is_empty() && shared as f64 >= words.len() as f64 * SHARE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{memory::log::DailyLog, privacy};

    #[track_caller]
    fn check(bullet: &str, kept: usize, dropped: &[&str]) {
        let text = "The importer moved to SQLite for $1,200 and runs 14% faster since 3 May\nLunch with 12 people";
        let log = DailyLog::parse("2026-04-02".parse().unwrap(), text.as_bytes()).unwrap();
        let logs = vec![privacy::sanitize(&log, &privacy::PrivacyRules::default())];
        let seen = of_item(&Item::parse(bullet), &logs);
        assert_eq!(
            (seen.kept_count, &seen.dropped[..]),
            (kept, &dropped.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..]),
            "{bullet}"
        );
    }

    #[test]
    fn what_the_line_is_about_is_kept_or_told() {
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
        // In another form it is kept, too.
        check(
            "Importer moved to SQLite and runs 14 percent faster for 1200 dollars since 2026-05-03 \
             [2026-04-02:1]",
            3,
            &[],
        );
        check("A quiet spring with other matters entirely [2026-04-02:1]", 0, &[]);
        check("Importer moved to SQLite", 0, &[]);
    }
}
