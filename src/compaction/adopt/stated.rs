//! Whether the lines of logs state the words of an item, clause by clause. Pure.
//!
//! This is stricter than the check of a draft, which accepts other words for the same facts: an item whose record is
//! lost is only ours if no person can have written it in other words than those of its lines.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::{
    memory::address::{Address, Citation},
    privacy::SanitizedLog,
    text::words::lowercase_runs,
};

/// Words between two marks.
type Clause = Vec<String>;

/// The words that memoird itself puts before a date.
const DATE_LABELS: [&str; 3] = ["resolved", "since", "until"];

/// Returns whether each clause of a text consists of whole clauses of these lines: one, several in a row, or those of
/// the cells of a table. Dates of the lines count as stated, and a former value where it is in any line:
/// `(was 10 minutes until 2026-04-10)`.
pub(super) fn is_stated<'l>(
    text: &str,
    lines: impl Iterator<Item = &'l str>,
    dates: &BTreeSet<NaiveDate>,
) -> bool {
    let lines: Vec<Vec<Clause>> = lines.map(clauses).collect();
    let parts: Vec<&Clause> = lines.iter().flatten().collect();
    let has_run = |words: &[String]| {
        lines.iter().any(|line| line.concat().windows(words.len()).any(|it| it == words))
    };
    let is_stated = |clause: &Clause| {
        let words = without_date(clause, dates);
        let is_former = words.len() < clause.len() && words.len() > 1 && words[0] == "was";
        words.is_empty()
            || consists_of(clause, &parts)
            || consists_of(words, &parts)
            || is_former && has_run(&words[1..])
    };
    let clauses = clauses(text);
    !clauses.is_empty() && clauses.iter().all(is_stated)
}

/// Finds the newest lines that state texts without citations.
pub(super) struct LineFinder {
    lines: BTreeMap<Clause, Address>,
}

impl LineFinder {
    /// Looks in these logs, which are sorted by date, for the clauses of all texts.
    pub(super) fn new<'l>(
        texts: impl Iterator<Item = String>,
        logs: impl Iterator<Item = &'l SanitizedLog>,
    ) -> Self {
        let wanted: BTreeSet<Clause> =
            texts.flat_map(|it| clauses(&it)).filter(|it| !it.is_empty()).collect();
        let mut lines = BTreeMap::new();
        for log in logs.take_while(|_| !wanted.is_empty()) {
            for line in log.lines() {
                let clauses = clauses(line.text());
                let whole = (clauses.len() > 1).then(|| clauses.concat());
                for clause in clauses.into_iter().chain(whole).filter(|it| wanted.contains(it)) {
                    lines.insert(clause, log.address(line));
                }
            }
        }
        Self { lines }
    }

    /// Returns the lines that state a text; `None` if a clause is in no line.
    pub(super) fn find(&self, text: &str) -> Option<Citation> {
        let mut found: Vec<Address> = Vec::new();
        let mut dated = Vec::new();
        for clause in clauses(text) {
            match self.lines.get(&clause) {
                Some(at) => found.push(at.clone()),
                None => dated.push(clause),
            }
        }
        let citation = Citation::from_addresses(&found)?;
        let dates = dates_of(&citation);
        dated.iter().all(|it| without_date(it, &dates).is_empty()).then_some(citation)
    }
}

/// Returns the days of the cited logs.
pub(super) fn dates_of(citation: &Citation) -> BTreeSet<NaiveDate> {
    citation.files().map(|(stem, _)| stem.date()).collect()
}

/// Returns whether these words are some of these clauses, one after the other.
fn consists_of(words: &[String], clauses: &[&Clause]) -> bool {
    // Whether the words from each position on consist of clauses.
    let mut is_done = vec![false; words.len() + 1];
    is_done[words.len()] = true;
    for from in (0..words.len()).rev() {
        is_done[from] =
            clauses.iter().any(|it| words[from..].starts_with(it) && is_done[from + it.len()]);
    }
    is_done[0]
}

/// Returns a clause without a date at its end, if it is one of these, and without the word that we put before it.
fn without_date<'c>(clause: &'c [String], dates: &BTreeSet<NaiveDate>) -> &'c [String] {
    let Some(at) = clause.len().checked_sub(3) else { return clause };
    let is_known = clause[at..].join("-").parse().is_ok_and(|it| dates.contains(&it));
    match &clause[..at] {
        _ if !is_known => clause,
        [words @ .., label] if DATE_LABELS.contains(&&label[..]) => words,
        words => words,
    }
}

/// Cuts a text at its marks into the words between them, in lower case.
fn clauses(text: &str) -> Vec<Clause> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, mark)) = chars.next() {
        let is_end = chars.peek().is_none_or(|it| it.1.is_whitespace() || "*_`\"'”’)".contains(it.1));
        let is_mark = match mark {
            '.' | '!' | '?' | ':' | ';' => is_end,
            '-' => is_end && text[..at].ends_with(char::is_whitespace),
            _ => "—–()[]…|\n。！？；：，（）".contains(mark),
        };
        if is_mark {
            parts.push(&text[from..at]);
            from = at + mark.len_utf8();
        }
    }
    parts.push(&text[from..]);
    let words = parts.into_iter().map(|it| lowercase_runs(it).collect::<Clause>());
    words.filter(|it| !it.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, line: &str, expected: bool) {
        let dates = BTreeSet::from(["2026-04-10".parse().unwrap()]);
        assert_eq!(is_stated(text, [line].into_iter(), &dates), expected, "{text}");
    }

    #[test]
    fn only_whole_clauses_in_the_words_of_the_line_are_stated() {
        const LINE: &str = "- **Pump house**: two valves of steel; the boiler is from 1962. Ask Jo first!";
        check("Pump house: two valves of steel", LINE, true);
        check("Two valves of steel (2026-04-10)", LINE, true);
        check("two valves of steel; Ask Jo first", LINE, true);
        check("Pump house", LINE, true);
        check("Two valves of brass", LINE, false);
        check("Two valves", LINE, false);
        check("valves of steel", LINE, false);
        check("Two valves of steel (2026-04-11)", LINE, false);
        check("", LINE, false);
        const ROW: &str = "| Gauge | Place |\n| north | pier 2026.4.10 |";
        check("Gauge north, Place pier 2026.4.10", ROW, true);
        check("Gauge south, Place pier 2026.4.10", ROW, false);
    }

    #[test]
    fn a_former_value_may_be_anywhere_in_the_lines() {
        let lines = ["- Poll interval: 10 minutes", "- Poll interval: 5 minutes"];
        let dates = BTreeSet::from(["2026-04-10".parse().unwrap()]);
        let is = |text: &str| is_stated(text, lines.into_iter(), &dates);
        assert!(is("Poll interval: 5 minutes (was 10 minutes until 2026-04-10)"));
        assert!(!is("Poll interval: 5 minutes (was 20 minutes until 2026-04-10)"));
        assert!(!is("Poll interval: 5 minutes (was 10 minutes)"));
    }
}
