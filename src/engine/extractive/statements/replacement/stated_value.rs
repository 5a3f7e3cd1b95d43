//! The value that a short line states for something: `The fair is on 12 May`, `Newsletter back to Thursdays`,
//! `Gateway port: 8000`. A newer line with the same subject and the same kind of value ends it, without a word such as
//! `moved`.
//!
//! Only lines are read that say nothing else: a subject, words such as `is` or `goes out`, and the value.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::{
    END_WORDS, LineWord, MOVED_STEMS_MAX, OlderLine, content_stems, has_digit, line_words,
};
use crate::{
    memory::atom::{self, AtomKind},
    text::{
        calendar,
        lexicon::{SEARCH, WISDOM},
    },
};

/// A longer line says more.
pub(super) const WORDS_MAX: usize = 14;

/// A longer text has more words.
const BYTES_MAX: usize = 160;

pub(super) struct StatedValue {
    /// The stems of the words that name what has the value.
    subject: BTreeSet<String>,
    kind: ValueKind,
    value: String,
    /// Whether a word says that it was not always so: `moved`, `back`, `now`.
    changed: bool,
    /// Whether a label names what has the value, which may be that of another thing: `Deadline: 12 May`.
    is_labelled: bool,
}

/// What a value is of; values of different kinds hold together.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueKind {
    Day,
    Weekday,
    /// The noun before a number: `port`.
    Numbered(String),
}

impl StatedValue {
    /// Reads the value that a line of a day states.
    pub(super) fn of(line: &str, date: NaiveDate) -> Option<Self> {
        if line.len() > BYTES_MAX || line.contains('?') {
            return None;
        }
        let all = line_words(line);
        if all.len() > WORDS_MAX {
            return None;
        }
        let (kind, value, from, to) = value_in(line, &all, date)?;
        let is = |word: &LineWord, list: &[&str]| list.contains(&&word.folded[..]);
        // What follows is a reason.
        let is_whole = all.get(to).is_none_or(|next| {
            all[to - 1].ends_clause || is(next, &["because", "weil", "porque", "omdat"])
        });
        let says_other = |it: &LineWord| {
            is(it, &SEARCH.negations)
                || is(it, &SEARCH.additions)
                || END_WORDS.unreal.contains(&it.folded)
        };
        if !is_whole || all[..to].iter().any(says_other) {
            return None;
        }
        let (mut subject, mut is_stated, mut changed) = (Vec::new(), false, false);
        let mut is_labelled = false;
        for (at, word) in all[..from].iter().enumerate() {
            let is_last = at + 1 == from;
            let is_unit = is_last && matches!(kind, ValueKind::Numbered(_));
            let is_weekday = kind == ValueKind::Day && is(word, calendar::weekday_names());
            if is(word, &SEARCH.stating_words) || is(word, &SEARCH.move_words) {
                is_stated = true;
                changed |= is(word, &SEARCH.change_words) || is(word, &SEARCH.move_words);
            } else if !is_unit
                && !is_weekday
                && ![&SEARCH.stop_words, &SEARCH.to_words, &SEARCH.day_articles, &WISDOM.articles]
                    .iter()
                    .any(|list| is(word, list))
            {
                // `Odo is in Porto on 12 May` is about more than Odo.
                if is_stated {
                    return None;
                }
                subject.push(&word.folded[..]);
            }
            if word.ends_clause && !is_weekday {
                // Only a label is another clause.
                let is_label = is_last && line[..word.end].ends_with(':');
                if !is_label || is_stated {
                    return None;
                }
                (is_stated, is_labelled) = (true, true);
            }
        }
        let subject = content_stems(subject.into_iter());
        (is_stated && (1..=MOVED_STEMS_MAX).contains(&subject.len())).then_some(Self {
            subject,
            kind,
            value,
            changed,
            is_labelled,
        })
    }

    /// Returns the stems of the words that name what has the value.
    pub(super) fn subject(&self) -> &BTreeSet<String> {
        &self.subject
    }

    /// Returns whether an older line states another value for the same thing.
    pub(super) fn ends(&self, older: &OlderLine<'_>) -> bool {
        // Odo may be at the pier on Tuesday and on Thursday.
        let may_end = self.changed
            || match self.kind {
                ValueKind::Day => !self.is_labelled,
                ValueKind::Weekday => false,
                ValueKind::Numbered(_) => true,
            };
        older.may_change
            && may_end
            && Self::of(older.text, older.date).is_some_and(|it| {
                it.kind == self.kind && it.subject == self.subject && it.value != self.value
            })
    }
}

/// Returns the only value in a line of a day: its kind, the value, and the words that are it.
fn value_in(
    line: &str,
    all: &[LineWord],
    date: NaiveDate,
) -> Option<(ValueKind, String, usize, usize)> {
    let has_digits = all.iter().any(has_digit);
    let weekday = |it: &LineWord| calendar::weekday_names().contains(&&it.folded[..]);
    if has_digits {
        let atoms = atom::find_atoms(line);
        let mut dates = atoms.iter().filter(|it| it.kind == AtomKind::Date);
        if let Some(day) = dates.next() {
            let value = calendar::day_of(&day.norm(line), date)?.to_string();
            let from = all.iter().position(|it| it.end > day.start)?;
            let to = all.iter().position(|it| it.end >= day.end).map_or(all.len(), |it| it + 1);
            let others =
                all.iter().enumerate().filter(|(at, it)| has_digit(it) && !(from..to).contains(at));
            let is_only = dates.next().is_none() && others.count() == 0;
            return is_only.then_some((ValueKind::Day, value, from, to));
        }
        let mut numbers = all.iter().enumerate().filter(|it| has_digit(it.1));
        let (at, number) = numbers.next().filter(|it| it.0 > 0)?;
        let unit = &all[at - 1].folded;
        let is_only = numbers.next().is_none() && SEARCH.numbered_nouns.contains(&&unit[..]);
        return is_only
            .then(|| (ValueKind::Numbered(unit.clone()), number.folded.clone(), at, at + 1));
    }
    let mut days = all.iter().enumerate().filter(|it| weekday(it.1));
    let (at, day) = days.next()?;
    let value = day.folded.trim_end_matches('s').to_owned();
    days.next().is_none().then_some((ValueKind::Weekday, value, at, at + 1))
}
