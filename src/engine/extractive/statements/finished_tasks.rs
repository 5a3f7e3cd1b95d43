//! Which open tasks later lines report as done, and when a task is due. Pure.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::{
    named_thing::{Deed, made_thing, thing_to_make},
    terms::{StatementTerms, TermExtractor},
    word_list::WordList,
};
use crate::{
    engine::extractive::cue_phrases::{DEADLINE, TASK_OPENERS},
    memory::atom::{self, AtomKind},
    text::{calendar, lexicon::WISDOM, sentences::sentence_ranges, words},
};

/// A task as it is shown, and the day of its line.
#[derive(Clone, Copy, Debug)]
pub struct OpenTask<'a> {
    /// Its words.
    pub text: &'a str,
    /// The day of its first source.
    pub since: Option<NaiveDate>,
}

/// A line of the logs.
#[derive(Clone, Copy, Debug)]
pub struct DatedLine<'a> {
    /// The day of its log.
    pub day: NaiveDate,
    /// Its words, without a bullet or a box.
    pub words: &'a str,
    /// Whether its box is ticked; `None` without a box.
    pub is_ticked: Option<bool>,
}

/// What the lines report: by line, what was made and done.
#[derive(Default)]
struct Reports {
    made: BTreeMap<StatementTerms, usize>,
    done: Vec<(usize, Deed)>,
}

impl Reports {
    fn of(lines: &[DatedLine<'_>], extractor: &mut TermExtractor) -> Self {
        let mut found = Self::default();
        for (at, line) in lines.iter().enumerate().filter(|it| it.1.is_ticked != Some(false)) {
            for (start, end) in sentence_ranges(line.words) {
                let text = line.words[start..end].trim();
                let words = WordList::of(text);
                if words.opens_with(TASK_OPENERS) {
                    continue;
                }
                found.made.extend(made_thing(text, &words, extractor).map(|it| (it, at)));
                found.done.extend(Deed::done(text, &words, extractor).map(|it| (at, it)));
            }
        }
        found
    }
}

/// Returns for each task whether a line after its own, in the order of `lines`, says that just that was done.
///
/// The line of a task is the last one with its words; of a task that is in no line, all lines of later days count.
pub fn finished_tasks(tasks: &[OpenTask<'_>], lines: &[DatedLine<'_>]) -> Vec<bool> {
    let mut extractor = TermExtractor::default();
    let reports = Reports::of(lines, &mut extractor);
    let lower: Vec<String> = lines.iter().map(|it| it.words.to_lowercase()).collect();
    let mut is_finished = |task: &OpenTask<'_>| {
        let wanted = task.text.trim_end_matches(['.', ' ']).to_lowercase();
        let own = lower.iter().rposition(|it| is_same_task(it, &wanted));
        if own.is_some_and(|it| lines[it].is_ticked == Some(true)) {
            return true;
        }
        let is_after = |at: usize| match (own, task.since) {
            (Some(own), _) => at > own,
            (None, Some(since)) => lines[at].day > since,
            (None, None) => false,
        };
        let words = WordList::of(task.text);
        let to_make = thing_to_make(task.text, &words, &mut extractor);
        let is_made = to_make.and_then(|it| reports.made.get(&it)).is_some_and(|it| is_after(*it));
        let to_do = Deed::to_do(task.text, &words, &mut extractor);
        is_made
            || to_do.is_some_and(|task| {
                let mut same = reports.done.iter().filter(|(_, it)| it.key == task.key);
                same.any(|(at, report)| is_after(*at) && task.is_done_by(report))
            })
    };
    tasks.iter().map(&mut is_finished).collect()
}

/// Returns whether a line has the words of a task and, but for its mark, no others: `write tests` is not `write tests for
/// the parser`.
fn is_same_task(line: &str, wanted: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric();
    line.rsplit_once(wanted).is_some_and(|(before, after)| {
        let before = before.trim();
        after.chars().all(is_mark) && (before.is_empty() || before.ends_with([':', ']', '-', '*']))
    })
}

/// Returns the day up to which something is to be done, as a line of `day` says: `pay the trip by 15 December`.
pub fn due_day(text: &str, day: NaiveDate) -> Option<NaiveDate> {
    let is_due = WordList::of(text).has(DEADLINE);
    let is_limit = |it: &atom::Atom| {
        let before = words::lowercase_runs(&text[..it.start]).last();
        before.is_some_and(|it| WISDOM.due_words.contains(&&it[..]))
    };
    let dates = atom::find_atoms(text).into_iter().filter(|it| it.kind == AtomKind::Date);
    let limits = dates.filter(|it| is_due || is_limit(it));
    limits.filter_map(|it| calendar::day_of(&it.norm(text), day)).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 11, number).unwrap()
    }

    #[test]
    fn a_task_is_finished_by_a_report_after_it() {
        let task = "Send the redirect list to Ines";
        let todo = "TODO: send the redirect list to Ines";
        for (lines, expected) in [
            (&[(23, todo, None), (24, "Sent the redirect list to Ines", None)][..], true),
            (&[(23, todo, None), (23, "Sent the redirect list to Ines, she reads it", None)], true),
            (&[(23, todo, None), (24, "Mild day. Sent the redirect list to Ines.", None)], true),
            (&[(23, todo, None), (24, todo, Some(true))], true),
            // It is of a later day than the task.
            (&[(24, "Sent the redirect list to Ines", None)], true),
            (&[(23, "Sent the redirect list to Ines", None)], false),
            // It is open once more.
            (&[(24, "Sent the redirect list to Ines", None), (25, todo, None)], false),
            (&[(23, todo, None), (24, "Sent the redirect list to Tom", None)], false),
            (&[(23, todo, None), (24, "Did not send the redirect list to Ines", None)], false),
            (&[(23, todo, None), (24, todo, Some(false))], false),
            (&[], false),
        ] {
            let line = |&(number, words, is_ticked): &(u32, _, _)| DatedLine {
                day: day(number),
                words,
                is_ticked,
            };
            let lines: Vec<_> = lines.iter().map(line).collect();
            for text in [task, todo] {
                let tasks = [OpenTask { text, since: Some(day(23)) }];
                assert_eq!(finished_tasks(&tasks, &lines), [expected], "{text}: {lines:?}");
            }
        }
    }

    #[test]
    fn what_a_task_is_to_make_is_there() {
        let lines = [("TODO: write the backup script", 23), ("The backup script is done", 24)];
        let lines = lines.map(|(words, at)| DatedLine { day: day(at), words, is_ticked: None });
        let tasks = [lines[0].words, "write the restore script"];
        let tasks = tasks.map(|text| OpenTask { text, since: Some(day(23)) });
        assert_eq!(finished_tasks(&tasks, &lines), [true, false]);
    }

    #[test]
    fn a_deadline_is_a_date_behind_a_word_for_it() {
        for (text, expected) in [
            ("send the contract by 10 December", Some("2026-12-10")),
            ("renew the licence until 2026-11-20", Some("2026-11-20")),
            ("ask about the talk of 3 May", None),
            ("send the contract", None),
        ] {
            let expected = expected.map(|it| it.parse().unwrap());
            assert_eq!(due_day(text, day(23)), expected, "{text}");
        }
    }
}
