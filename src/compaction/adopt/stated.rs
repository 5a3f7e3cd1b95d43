//! Whether the lines of logs state the words of an item, sentence by sentence. Pure.
//!
//! This is stricter than the check of a draft, which accepts other words for the same facts: an item whose record is
//! lost is only ours if no person can have written it in other words than those of its lines. Clauses of a sentence
//! are found together, since `Push: allowed. Mail: forbidden.` does not state `Push: forbidden`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use chrono::NaiveDate;

use crate::{
    memory::address::{Address, Citation, Stem},
    privacy::SanitizedLog,
    text::words::lowercase_runs,
};

/// Words between two marks.
type Clause = Vec<String>;

/// A line, or a paragraph.
type Passage = Vec<PassageClause>;

struct PassageClause {
    words: Clause,
    lines: Vec<Address>,
    /// Whether nothing is before it in its sentence but a time.
    opens_sentence: bool,
    in_heading: bool,
}

/// The words that memoird itself puts before a date.
const DATE_LABELS: [&str; 3] = ["resolved", "since", "until"];

/// Returns whether each sentence of a text consists of whole clauses of these lines, one after the other: those of one
/// line or paragraph, after the whole lines of its headings, or the cells of a row in order. Dates of the lines count
/// as stated, and a former value where it follows the same label in a line: `(was 10 minutes until 2026-04-10)`, or both
/// ends of the range of a series: `(was 3.9 m–5.1 m on 6 days since 2026-04-02)`.
pub(super) fn is_stated(text: &str, lines: &[(Address, &str)]) -> bool {
    let dates: BTreeSet<NaiveDate> = lines.iter().map(|it| it.0.stem.date()).collect();
    let text = &with_ends_of_range(text, dates.len());
    let is_known = |it: &NaiveDate| dates.contains(it);
    let passages = passages(lines);
    let rows: Vec<Vec<Clause>> = lines
        .iter()
        .filter(|it| it.1.trim_start().starts_with('|'))
        .map(|it| cells(it.1))
        .collect();
    let holds = |words: &[String]| {
        passages.iter().any(|it| words_of(it).windows(words.len()).any(|it| it == words))
    };
    let is_stated = |sentence: &Vec<Clause>| {
        let former = |it: &Clause| {
            let words = without_date(it, &is_known);
            let is_former = words.len() < it.len() && words.len() > 1 && words[0] == "was";
            is_former.then(|| words[1..].to_vec())
        };
        let (with_former, rest): (Vec<Clause>, Vec<Clause>) =
            sentence.iter().cloned().partition(|it| former(it).is_some());
        let label = rest.first().cloned().unwrap_or_default();
        let are_former_held = with_former
            .iter()
            .filter_map(former)
            .all(|value| holds(&[label.clone(), value].concat()));
        are_former_held
            && forms(&rest, &is_known)
                .iter()
                .any(|words| words.is_empty() || consists_of(words, &passages, &rows))
    };
    let sentences = sentences(text);
    !sentences.is_empty() && sentences.iter().all(is_stated)
}

/// Returns a text with the range of a series on all days but the last as two former values.
fn with_ends_of_range(text: &str, days: usize) -> Cow<'_, str> {
    let ends = || {
        let (bare, note) = text.strip_suffix(')')?.split_once(" (was ")?;
        let (range, since) = note.split_once(" since ")?;
        let on_days = format!(" on {} days", days.checked_sub(1)?);
        let (least, most) = range.strip_suffix(&on_days)?.split_once('–')?;
        Some(format!("{bare} (was {least} since {since}) (was {most} since {since})"))
    };
    ends().map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Where a sentence is: the log, the number of the line or paragraph in it, and the lines.
type SentencePlace = (Stem, usize, Vec<Address>);

/// Finds the newest lines that state texts without citations.
pub(super) struct LineFinder {
    places: BTreeMap<Vec<String>, Vec<SentencePlace>>,
}

impl LineFinder {
    /// Looks in these logs for the sentences of all texts.
    pub(super) fn new<'l>(
        texts: impl Iterator<Item = String>,
        logs: impl Iterator<Item = &'l SanitizedLog>,
    ) -> Self {
        let sentences = texts.flat_map(|it| sentences(&it));
        let wanted: BTreeSet<Vec<String>> =
            sentences.flat_map(|it| forms(&it, &|_| true)).filter(|it| !it.is_empty()).collect();
        let longest = wanted.iter().map(Vec::len).max().unwrap_or(0);
        let mut places = BTreeMap::<_, Vec<_>>::new();
        for log in logs.take_while(|_| !wanted.is_empty()) {
            let read: Vec<(Address, &str)> =
                log.lines().iter().map(|it| (log.address(it), it.text())).collect();
            for (number, passage) in passages(&read).into_iter().enumerate() {
                for from in 0..passage.len() {
                    let (mut words, mut at) = (Vec::new(), BTreeSet::new());
                    for clause in &passage[from..] {
                        words.extend_from_slice(&clause.words);
                        at.extend(clause.lines.iter().cloned());
                        if words.len() > longest {
                            break;
                        }
                        if wanted.contains(&words) {
                            let place = (log.stem().clone(), number, at.iter().cloned().collect());
                            places.entry(words.clone()).or_default().push(place);
                        }
                    }
                }
            }
        }
        Self { places }
    }

    /// Returns the lines of the newest log that states these texts, each in one line or paragraph.
    pub(super) fn find(&self, texts: &[&str]) -> Option<Citation> {
        let places = self.places.values().flatten();
        let logs: BTreeSet<(NaiveDate, &Stem)> = places.map(|it| (it.0.date(), &it.0)).collect();
        logs.into_iter().rev().find_map(|(_, stem)| {
            let found: Option<Vec<_>> = texts.iter().map(|it| self.find_in(stem, it)).collect();
            Citation::from_addresses(found?.iter().flatten())
        })
    }

    /// Returns the lines of a log that state a text, which are in one line or paragraph.
    fn find_in(&self, stem: &Stem, text: &str) -> Option<BTreeSet<Address>> {
        let mut found: Option<BTreeMap<usize, BTreeSet<Address>>> = None;
        for sentence in sentences(text) {
            let forms = forms(&sentence, &|it| *it == stem.date());
            if forms.iter().any(Vec::is_empty) {
                continue;
            }
            let places = forms.iter().filter_map(|it| self.places.get(it)).flatten();
            let mut here = BTreeMap::<usize, BTreeSet<Address>>::new();
            for (_, number, lines) in places.filter(|it| it.0 == *stem) {
                here.entry(*number).or_default().extend(lines.iter().cloned());
            }
            if let Some(above) = found {
                here.retain(|number, _| above.contains_key(number));
                for (number, lines) in above {
                    here.entry(number).and_modify(|it| it.extend(lines));
                }
            }
            found = Some(here);
        }
        found?.into_values().next()
    }
}

/// Returns the lines, and the paragraphs and list items of several lines: a sentence may go on in the next line.
fn passages(lines: &[(Address, &str)]) -> Vec<Passage> {
    let mut blocks: Vec<Vec<&(Address, &str)>> = lines.iter().map(|it| vec![it]).collect();
    let single = blocks.len();
    for line in lines {
        match blocks[single..].last_mut() {
            Some(block) if block.last().is_some_and(|it| continues(it, line)) => block.push(line),
            _ => blocks.push(vec![line]),
        }
    }
    let number = 0..;
    let is_new = |at: usize, block: &[_]| at < single || block.len() > 1;
    let blocks = number.zip(blocks).filter(|(at, it)| is_new(*at, it)).map(|it| it.1);
    let clauses_of = |block: Vec<&(Address, &str)>| {
        let text: Vec<&str> = block.iter().map(|it| it.1).collect();
        let line_of_word: Vec<&Address> = block
            .iter()
            .flat_map(|(at, text)| std::iter::repeat_n(at, lowercase_runs(text).count()))
            .collect();
        let mut from = 0;
        let in_heading = text.len() == 1 && is_heading(text[0]);
        let mut clauses = Vec::new();
        for sentence in sentences(&text.join(" ")) {
            let mut opens_sentence = true;
            for words in sentence {
                let until = from + words.len();
                let lines: BTreeSet<&Address> = line_of_word[from..until].iter().copied().collect();
                from = until;
                let lines = lines.into_iter().cloned().collect();
                let is_time = words.iter().all(|it| it.starts_with(|c: char| c.is_ascii_digit()));
                clauses.push(PassageClause { words, lines, opens_sentence, in_heading });
                opens_sentence &= is_time;
            }
        }
        clauses
    };
    blocks.map(clauses_of).collect()
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

fn words_of(passage: &Passage) -> Vec<String> {
    passage.iter().flat_map(|it| it.words.iter().cloned()).collect()
}

/// Returns whether these words are clauses of one passage, one after the other, or cells of a row; after the words of a
/// heading, or of another passage as a whole, from the beginning of a sentence on.
fn consists_of(words: &[String], passages: &[Passage], rows: &[Vec<Clause>]) -> bool {
    let is_run = |words: &[String], passage: &Passage, after_heading: bool| {
        (0..passage.len()).filter(|it| !after_heading || passage[*it].opens_sentence).any(|from| {
            let mut rest = Some(words);
            passage[from..].iter().any(|clause| {
                rest = rest.and_then(|it| it.strip_prefix(&clause.words[..]));
                rest.is_some_and(<[_]>::is_empty)
            })
        })
    };
    // From where on the words may go on after a heading, each place once: many lines may be alike.
    let mut from = BTreeSet::from([0]);
    while let Some(at) = from.pop_first() {
        let rest = &words[at..];
        if passages.iter().any(|it| is_run(rest, it, at > 0)) || is_in_row(rest, rows) {
            return true;
        }
        let ends = passages.iter().flat_map(|it| heading_ends(rest, it));
        from.extend(ends.map(|it| at + it).filter(|it| *it < words.len()));
    }
    false
}

/// Returns how many words may be those of a heading, or of another passage as a whole.
fn heading_ends(words: &[String], heading: &Passage) -> BTreeSet<usize> {
    let is_heading = heading.first().is_some_and(|it| it.in_heading);
    let starts = if is_heading { heading.len() } else { heading.len().min(1) };
    let mut ends = BTreeSet::new();
    for from in 0..starts {
        let mut rest = words;
        for (at, clause) in heading.iter().enumerate().skip(from) {
            let Some(after) = rest.strip_prefix(&clause.words[..]) else { break };
            rest = after;
            if is_heading || at + 1 == heading.len() {
                ends.insert(words.len() - rest.len());
            }
        }
    }
    ends
}

/// Returns whether a line is a heading, or a line in bold.
fn is_heading(line: &str) -> bool {
    let line = line.trim().trim_end_matches([':', '：']);
    let is_bold = |it: &str| it.ends_with("**") && it.matches("**").count() == 2;
    line.starts_with('#') || line.starts_with("**") && is_bold(line)
}

fn cells(row: &str) -> Vec<Clause> {
    row.trim().trim_matches('|').split('|').map(|it| lowercase_runs(it).collect()).collect()
}

/// Returns whether these words are cells of a row side by side, perhaps with the heads of their columns, or the first
/// cell and another one with its head: what is between two cells may make them say something else.
fn is_in_row(words: &[String], rows: &[Vec<Clause>]) -> bool {
    let [heads, rows @ ..] = rows else { return false };
    rows.iter().any(|row| {
        let headed = |at: usize, cell: &Clause| {
            heads.get(at).into_iter().chain([cell]).flatten().cloned().collect()
        };
        let cells: Vec<(&Clause, Clause)> = row
            .iter()
            .enumerate()
            .filter(|it| !it.1.is_empty())
            .map(|(at, it)| (it, headed(at, it)))
            .collect();
        let ends_of = |from: usize, (cell, headed): &(&Clause, Clause)| {
            let fits = |it: &&Clause| words[from..].starts_with(it);
            [*cell, headed].into_iter().filter(fits).map(|it| from + it.len()).collect::<Vec<_>>()
        };
        let is_run = |from: usize| {
            let mut ends = BTreeSet::from([0]);
            cells[from..].iter().any(|cell| {
                ends = ends.iter().flat_map(|it| ends_of(*it, cell)).collect();
                ends.contains(&words.len())
            })
        };
        let is_of_first = |it: &(&Clause, Clause)| {
            let firsts = cells.first().map(|it| ends_of(0, it)).unwrap_or_default();
            firsts.into_iter().any(|at| it.1.len() > it.0.len() && words[at..] == it.1)
        };
        (0..cells.len()).any(is_run) || cells.iter().skip(1).any(is_of_first)
    })
}

/// Returns the words of a sentence: as they are, and without its known dates.
fn forms(sentence: &[Clause], is_known: &dyn Fn(&NaiveDate) -> bool) -> [Vec<String>; 3] {
    let is_date = |it: &&Clause| without_date(it, is_known).is_empty();
    let without_dates: Vec<&Clause> = sentence.iter().filter(|it| !is_date(it)).collect();
    let bare = without_dates.iter().flat_map(|it| without_date(it, is_known)).cloned();
    [sentence.concat(), without_dates.iter().copied().flatten().cloned().collect(), bare.collect()]
}

/// Returns a clause without a date at its end, if it is known, and without the word that we put before it.
fn without_date<'c>(clause: &'c [String], is_known: &dyn Fn(&NaiveDate) -> bool) -> &'c [String] {
    let Some(at) = clause.len().checked_sub(3) else { return clause };
    let is_date = clause[at..].join("-").parse().is_ok_and(|it| is_known(&it));
    match &clause[..at] {
        _ if !is_date => clause,
        [words @ .., label] if DATE_LABELS.contains(&&label[..]) => words,
        words => words,
    }
}

/// Cuts a text into sentences, and these at their marks into the words between them, in lower case.
fn sentences(text: &str) -> Vec<Vec<Clause>> {
    let mut sentences: Vec<Vec<Clause>> = vec![Vec::new()];
    let mut add = |part: &str, is_last: bool| {
        let words: Clause = lowercase_runs(part).collect();
        if let Some(sentence) = sentences.last_mut().filter(|_| !words.is_empty()) {
            sentence.push(words);
        }
        if is_last {
            sentences.push(Vec::new());
        }
    };
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
            add(&text[from..at], ".!?;…\n。！？；".contains(mark));
            from = at + mark.len_utf8();
        }
    }
    add(&text[from..], true);
    sentences.retain(|it| !it.is_empty());
    sentences
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
        const RULES: &str = "| Rule | Value | Rule | Value | Why |\n| Push | allowed | Mail | forbidden | too late |";
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
        check("Ask Jo next", WRAPPED, false);
        check("and the valves are new", WRAPPED, false);
        check("Pier north, Gauge pier", ROW, false);
        check("Push: allowed", RULES, true);
        check("Mail, Value forbidden", RULES, true);
        check("Push, Why too late", RULES, true);
        check("Push: too late", RULES, false);
        check("Push: forbidden", RULES, false);
    }

    #[test]
    fn clauses_that_are_not_together_are_no_statement() {
        const LINE: &str = "- Push: allowed. Mail: forbidden; never (on Sundays) by hand.";
        const BELOW: &str = "## Mirror of the pier\n- Copies: nightly\n- Deletes: never";
        const TIMED: &str = "## 03:48 - Mirror (of the pier)\n- [04:10] Copies run; all is well\n\n| Pier | Keys |\n| north | 4 |";
        check("Push: allowed", LINE, true);
        check("Mail: forbidden. Push: allowed", LINE, true);
        check("Push: forbidden", LINE, false);
        check("Push: never", LINE, false);
        check("Never by hand", LINE, false);
        check("Mirror of the pier: Copies: nightly; Deletes: never", BELOW, true);
        check("Mirror of the pier: never", BELOW, false);
        check("Mirror of the pier: Copies run; all is well", TIMED, true);
        check("Mirror: north: Keys 4", TIMED, true);
        check("Mirror: Keys 5", TIMED, false);
        check("Copies: never", BELOW, false);
        check("Deletes: nightly", BELOW, false);
    }

    #[test]
    fn many_lines_that_are_alike_are_read_once() {
        let lines: Vec<_> = (4..24).map(|at| (address("2026-04-10", at), "- ok")).collect();
        assert!(!is_stated("ok ok ok ok ok ok ok ok ok no", &lines));
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
        assert!(!is("Retry: 5 minutes (was 10 minutes until 2026-04-10)"));
    }

    #[test]
    fn the_ends_of_a_range_are_in_the_lines() {
        let lines = [
            (address("2026-04-09", 3), "- Depth: 3.9 m"),
            (address("2026-04-10", 3), "- Depth: 5.1 m"),
            (address("2026-04-11", 3), "- Depth: 4.4 m"),
            (address("2026-04-12", 3), "- Depth: 4.8 m"),
        ];
        let is = |text: &str| is_stated(text, &lines);
        assert!(is("Depth: 4.8 m (was 3.9 m–5.1 m on 3 days since 2026-04-09)"));
        assert!(!is("Depth: 4.8 m (was 3.9 m–5.2 m on 3 days since 2026-04-09)"));
        assert!(!is("Depth: 4.8 m (was 3.9 m–5.1 m on 4 days since 2026-04-09)"));
        assert!(!is("Depth: 4.8 m (was 3.9 m–5.1 m on 3 days since 2026-04-08)"));
    }
}
