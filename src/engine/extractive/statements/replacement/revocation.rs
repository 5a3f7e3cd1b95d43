//! Whether a line takes a decision or rule back: `the decision of the 13th is off`, `Decision revoked: …`, `the rule
//! about Fridays is withdrawn`, `the rule about heating changed: …`, `took back the rule about invoices`.
//!
//! What a line only supposes, asks or denies takes nothing back. Pure.

use std::collections::BTreeSet;

use chrono::{Datelike as _, Months, NaiveDate};

use super::{CORRECTION_WORDS_MAX, END_WORDS, LineWord, SHARED_MIN, is_denied, stems_of};
use crate::text::lexicon::SEARCH;

/// A decision that was taken back.
pub(super) enum Revocation {
    /// Of that day.
    OfDay(NaiveDate),
    /// With these stems.
    Named(BTreeSet<String>),
    /// About what these stems name.
    About(BTreeSet<String>),
}

impl Revocation {
    /// Reads which decision a line of a day takes back.
    pub(super) fn of(all: &[LineWord], date: NaiveDate) -> Option<Self> {
        const BETWEEN_MAX: usize = 4;
        let is =
            |at: usize, list: &[&str]| all.get(at).is_some_and(|it| list.contains(&&it.folded[..]));
        // `If the rule is dropped`, `Somebody asked whether it was withdrawn`.
        let is_unsure = |it: &LineWord| {
            END_WORDS.unreal.contains(&it.folded) || SEARCH.unsure_words.contains(&&it.folded[..])
        };
        let is_sure = |noun: &usize| {
            let start = all[..*noun].iter().rposition(|it| it.ends_clause).map_or(0, |it| it + 1);
            let end = all[*noun..].iter().position(|it| it.ends_clause);
            !all[start..end.map_or(all.len(), |it| noun + it + 1)].iter().any(is_unsure)
        };
        let mut nouns = (0..all.len()).filter(|it| is(*it, &SEARCH.revocable_words) && is_sure(it));
        nouns.find_map(|noun| {
            if all[noun].ends_clause {
                return None;
            }
            if is(noun + 1, &SEARCH.about_words) {
                return Self::about(all, noun);
            }
            if is(noun + 1, &SEARCH.revoked_words) && all[noun + 1].ends_clause {
                let named = stems_of(&all[noun + 2..]);
                return (noun < CORRECTION_WORDS_MAX && named.len() >= SHARED_MIN)
                    .then_some(Self::Named(named));
            }
            let end =
                (noun + 1..all.len()).find(|it| all[*it].ends_clause && !is_ordinal(&all[*it]));
            let within =
                noun + 1..(noun + 1 + 2 * BETWEEN_MAX).min(end.map_or(all.len(), |it| it + 1));
            // `The plan for the next 2 days` names no day.
            let names_day =
                |it: &usize| is_day_number(&all[*it]) && is(*it - 1, &SEARCH.day_articles);
            let day_at = within.clone().take(BETWEEN_MAX).find(names_day)?;
            let mut behind = day_at + 1..within.end;
            let ended = behind.find(|it| is(*it, &SEARCH.revoked_words))?;
            let is_denied = is_denied(all, ended);
            (!is_denied).then(|| day_before(&all[day_at].folded, date)).flatten().map(Self::OfDay)
        })
    }

    /// Reads `the rule about Fridays is withdrawn` and `took back the rule about invoices` at the noun.
    fn about(all: &[LineWord], noun: usize) -> Option<Self> {
        const NAMED_MAX: usize = 4;
        const BEFORE_MAX: usize = 4;
        let is =
            |at: usize, list: &[&str]| all.get(at).is_some_and(|it| list.contains(&&it.folded[..]));
        let clause_end = (noun..all.len()).find(|it| all[*it].ends_clause).unwrap_or(all.len() - 1);
        let behind = noun + 2..=clause_end;
        let revoked = behind.clone().find(|it| is(*it, &SEARCH.revoked_words));
        // `The decision about Postgres dropped our costs` takes nothing back, and `changed our costs` changes none.
        let revoked = revoked.filter(|it| is(*it - 1, &SEARCH.passive_words));
        let clause_start = all[..noun].iter().rposition(|it| it.ends_clause).map_or(0, |it| it + 1);
        let is_plain = !all[clause_start..noun].iter().any(|it| {
            SEARCH.negations.contains(&&it.folded[..])
                || ["nothing", "nichts"].contains(&&it.folded[..])
        });
        let ends_changed =
            |it: &usize| is_plain && is(*it, &SEARCH.changed_words) && all[*it].ends_clause;
        let changed = || behind.clone().find(ends_changed);
        let ended_at = revoked.or_else(changed).filter(|it| !is_denied(all, *it));
        // `The rule about Fridays no longer applies`, `die Regel zu Freitagen gilt nicht mehr`
        let over_at = |it: usize| {
            let holds = |it: usize| behind.contains(&it) && is(it, &SEARCH.hold_words);
            // For whom it no longer applies would follow.
            let ends = |it: usize| it + 1 == all.len() || all[it].ends_clause;
            let is_no_longer =
                is(it, &["no"]) && is(it + 1, &["longer"]) && holds(it + 2) && ends(it + 2);
            let is_not_more = is(it, &["nicht"]) && is(it + 1, &["mehr"]) && ends(it + 1);
            match () {
                () if is_not_more && holds(it - 1) => Some(it - 1),
                () => is_no_longer.then_some(it),
            }
        };
        let ended_at = ended_at.or_else(|| behind.clone().find_map(over_at));
        let takes_back = || {
            (noun.saturating_sub(BEFORE_MAX)..noun).any(|it| {
                // `We changed the rule about screens: …`
                let takes = is(it, &SEARCH.revoked_words)
                    || is(it, &SEARCH.changed_words) && it + 2 >= noun
                    || (is(it, &["back"]) && it > 0 && is(it - 1, &SEARCH.take_words));
                takes && !is_denied(all, it)
            })
        };
        let end = match ended_at {
            Some(at) => at,
            None if takes_back() => clause_end + 1,
            None => return None,
        };
        let named = stems_of(&all[noun + 2..end.min(noun + 2 + NAMED_MAX)]);
        (!named.is_empty()).then_some(Self::About(named))
    }

    /// Returns whether this takes back what a plan of a day with these stems says. `newer` are the stems of the whole
    /// line that takes it back.
    pub(super) fn ends(
        &self,
        day: NaiveDate,
        older: &BTreeSet<String>,
        newer: &BTreeSet<String>,
    ) -> bool {
        match self {
            Self::OfDay(it) => *it == day && !older.is_disjoint(newer),
            Self::About(it) => it.is_subset(older),
            Self::Named(it) => {
                let shared = it.intersection(older).count();
                shared >= SHARED_MIN && shared * 2 >= it.len().min(older.len())
            }
        }
    }
}

/// Returns whether a word is a day of a month: `13`, `13th`.
fn is_day_number(word: &LineWord) -> bool {
    day_number(&word.folded).is_some()
}

fn day_number(word: &str) -> Option<u32> {
    let digits = ["st", "nd", "rd", "th"].iter().find_map(|it| word.strip_suffix(it));
    digits.unwrap_or(word).parse().ok().filter(|it| (1..=31).contains(it))
}

/// Returns whether the mark after a word is that of an ordinal number: `vom 13. ist hinfällig`.
fn is_ordinal(word: &LineWord) -> bool {
    word.folded.len() <= 2 && is_day_number(word)
}

/// Returns the last day before a date that has a number in its month.
fn day_before(number: &str, date: NaiveDate) -> Option<NaiveDate> {
    let number = day_number(number)?;
    let months = std::iter::successors(Some(date), |it| it.checked_sub_months(Months::new(1)));
    months.take(3).filter_map(|it| it.with_day(number)).find(|it| *it < date)
}
