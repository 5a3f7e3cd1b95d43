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
pub(super) fn is_stated(text: &str, lines: &[(Address, &str)]) -> bool {
    let dates = lines.iter().map(|it| it.0.stem.date()).collect();
    let single = lines.iter().map(|it| clauses(it.1));
    let paragraphs = paragraphs(lines).into_iter();
    let paragraphs = paragraphs.map(|it| it.into_iter().map(|it| it.0).collect());
    let lines: Vec<Vec<Clause>> = single.chain(paragraphs).collect();
    let parts: Vec<&Clause> = lines.iter().flatten().collect();
    let has_run = |words: &[String]| {
        lines.iter().any(|line| line.concat().windows(words.len()).any(|it| it == words))
    };
    let is_stated = |clause: &Clause| {
        let words = without_date(clause, &dates);
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
    lines: BTreeMap<Clause, Vec<Address>>,
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
            let read: Vec<(Address, &str)> =
                log.lines().iter().map(|it| (log.address(it), it.text())).collect();
            for (clause, at) in paragraphs(&read).into_iter().flatten() {
                if wanted.contains(&clause) {
                    lines.insert(clause, at);
                }
            }
            for (at, text) in read {
                let whole = clauses(text).concat();
                if wanted.contains(&whole) {
                    lines.insert(whole, vec![at]);
                }
            }
        }
        Self { lines }
    }

    /// Returns the lines that state a text; `None` if a clause is in no line.
    pub(super) fn find(&self, text: &str) -> Option<Citation> {
        let mut found: Vec<Address> = Vec::new();
        let mut missing = Vec::new();
        for clause in clauses(text) {
            match self.lines.get(&clause) {
                Some(at) => found.extend(at.iter().cloned()),
                None => missing.push(clause),
            }
        }
        let citation = Citation::from_addresses(&found)?;
        let dates = citation.files().map(|(stem, _)| stem.date()).collect();
        missing.iter().all(|it| without_date(it, &dates).is_empty()).then_some(citation)
    }
}

/// Returns the clauses of each paragraph or list item, each with its lines: a sentence may go on in the next line.
fn paragraphs(lines: &[(Address, &str)]) -> Vec<Vec<(Clause, Vec<Address>)>> {
    let mut blocks: Vec<Vec<&(Address, &str)>> = Vec::new();
    for line in lines {
        match blocks.last_mut() {
            Some(block) if block.last().is_some_and(|it| continues(it, line)) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    let clauses_of = |block: Vec<&(Address, &str)>| {
        let text: Vec<&str> = block.iter().map(|it| it.1).collect();
        let line_of_word: Vec<&Address> = block
            .iter()
            .flat_map(|(at, text)| std::iter::repeat_n(at, lowercase_runs(text).count()))
            .collect();
        let mut from = 0;
        let clauses = clauses(&text.join(" ")).into_iter();
        let with_lines = clauses.map(|clause| {
            let words = &line_of_word[from..from + clause.len()];
            from += clause.len();
            let lines: BTreeSet<&Address> = words.iter().copied().collect();
            (clause, lines.into_iter().cloned().collect())
        });
        with_lines.collect()
    };
    blocks.into_iter().map(clauses_of).collect()
}

/// Returns whether a line goes on with the one above it.
fn continues((above, heading): &(Address, &str), (at, text): &(Address, &str)) -> bool {
    let text = text.trim_start();
    let is_item = |text: &str| {
        text.starts_with(['-', '*', '+', '#', '>', '|', '['])
            || text.starts_with(|c: char| c.is_ascii_digit()) && text.contains(['.', ')', ':'])
    };
    at.stem == above.stem
        && at.line == above.line + 1
        && !text.is_empty()
        && !is_item(text)
        && !heading.trim_start().starts_with(['#', '|'])
        && !heading.trim().is_empty()
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
        let is_end =
            chars.peek().is_none_or(|it| it.1.is_whitespace() || "*_`\"'”’)".contains(it.1));
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
        let lines: Vec<_> =
            line.lines().zip(4..).map(|(text, at)| (address("2026-04-10", at), text)).collect();
        assert_eq!(is_stated(text, &lines), expected, "{text}");
    }

    fn address(day: &str, line: u32) -> Address {
        Address { stem: day.parse().unwrap(), line }
    }

    #[test]
    fn only_whole_clauses_in_the_words_of_the_line_are_stated() {
        const LINE: &str =
            "- **Pump house**: two valves of steel; the boiler is from 1962. Ask Jo first!";
        const ROW: &str = "| Gauge | Place |\n| north | pier 2026.4.10 |";
        const WRAPPED: &str = "The boiler is of steel, and the\nvalves are new. Ask Jo.\n- Next";
        check("Pump house: two valves of steel", LINE, true);
        check("Two valves of steel (2026-04-10)", LINE, true);
        check("two valves of steel; Ask Jo first", LINE, true);
        check("Pump house", LINE, true);
        check("Two valves of brass", LINE, false);
        check("Two valves", LINE, false);
        check("valves of steel", LINE, false);
        check("Two valves of steel (2026-04-11)", LINE, false);
        check("", LINE, false);
        check("Gauge north, Place pier 2026.4.10", ROW, true);
        check("Gauge south, Place pier 2026.4.10", ROW, false);
        check("The boiler is of steel, and the valves are new", WRAPPED, true);
        check("Ask Jo next", WRAPPED, true);
        check("and the valves are new", WRAPPED, false);
    }

    #[test]
    fn a_former_value_may_be_anywhere_in_the_lines() {
        let lines = [
            (address("2026-04-09", 3), "- Poll interval: 10 minutes"),
            (address("2026-04-10", 3), "- Poll interval: 5 minutes"),
        ];
        let is = |text: &str| is_stated(text, &lines);
        assert!(is("Poll interval: 5 minutes (was 10 minutes until 2026-04-10)"));
        assert!(!is("Poll interval: 5 minutes (was 20 minutes until 2026-04-10)"));
        assert!(!is("Poll interval: 5 minutes (was 10 minutes)"));
    }
}
