//! Times relative to today or to a day beside them: "two weeks ago", "last Friday", "the week before
//! March 26". Pure.

use std::ops::Range;

use chrono::{Datelike as _, Days, Months, NaiveDate, Weekday};

use crate::text::calendar::english_weekdays;

/// The first and the last day.
pub(crate) type DayRange = (NaiveDate, NaiveDate);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalendarUnit {
    Day,
    Week,
    Weekend,
    Month,
    Quarter,
    Year,
}

/// Returns the ranges that words name relative to today, each with the range of its words.
pub(crate) fn relative_ranges(words: &[&str], today: NaiveDate) -> Vec<(DayRange, Range<usize>)> {
    let mut named = Vec::new();
    for at in 0..words.len() {
        let word = |step: usize| words.get(at + step).copied().unwrap_or_default();
        named.extend(match word(0) {
            "today" | "tonight" => Some(((today, today), at..at + 1)),
            "yesterday" => {
                let is_before = at >= 2 && words[at - 1] == "before" && words[at - 2] == "day";
                let day = subtract_units(today, CalendarUnit::Day, if is_before { 2 } else { 1 });
                Some(((day, day), if is_before { at - 2 } else { at }..at + 1))
            }
            "this" if word(1) == "morning" || word(1) == "evening" => {
                Some(((today, today), at..at + 2))
            }
            "this" | "current" => current_range(word(1), today).map(|it| (it, at..at + 2)),
            // "the last week of March"
            "last" if word(2) == "of" && word(1) != "couple" => None,
            "last" | "past" | "previous" => {
                let last = last_range(words.get(at + 1..).unwrap_or_default(), today);
                last.map(|(stretch, count)| (stretch, at..at + 1 + count))
            }
            "weekend" if at >= 1 && words[at - 1] == "the" => {
                last_range(&["weekend"], today).map(|(stretch, _)| (stretch, at..at + 1))
            }
            "ago" => ago_range(&words[..at], today).map(|(stretch, from)| (stretch, from..at + 1)),
            _ => None,
        });
    }
    named
}

/// Days beside a day, or around it: "two weeks before", "the Friday after", "the week of".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelativeSpan {
    Before(u32, CalendarUnit),
    After(u32, CalendarUnit),
    WeekdayBefore(Weekday),
    WeekdayAfter(Weekday),
    Of(CalendarUnit),
}

impl RelativeSpan {
    /// Parses the words that end at an index, and returns the index of the first.
    pub(crate) fn parse_ending_at(words: &[&str], at: usize) -> Option<(Self, usize)> {
        let before = words.get(..at)?;
        let (is_before, is_after) = match words[at] {
            "before" | "preceding" => (true, false),
            "after" | "following" => (false, true),
            "of" => (false, false),
            _ => return None,
        };
        if let Some(day) = before.last().and_then(|it| parse_weekday(it)) {
            let span = match (is_before, is_after) {
                (true, _) => Self::WeekdayBefore(day),
                (_, true) => Self::WeekdayAfter(day),
                _ => return None,
            };
            return Some((span, at - 1));
        }
        let (count, unit, from) = parse_counted_unit(before)?;
        Some(match (is_before, is_after) {
            (true, _) => (Self::Before(count, unit), from),
            (_, true) => (Self::After(count, unit), from),
            // "the days of wine", "three weeks of rain"
            _ if from < at - 1 || words[at - 1].ends_with('s') => return None,
            _ => (Self::Of(unit), from),
        })
    }

    /// Returns the named days, including the range itself.
    pub(crate) fn apply_to_range(self, (first, last): DayRange) -> DayRange {
        match self {
            Self::Before(count, unit) => (subtract_units(first, unit, count), first),
            Self::After(count, unit) => (last, add_units(last, unit, count)),
            Self::WeekdayBefore(day) => (
                subtract_units(first, CalendarUnit::Day, days_to_weekday(day, first.weekday())),
                first,
            ),
            Self::WeekdayAfter(day) => {
                (last, add_units(last, CalendarUnit::Day, days_to_weekday(last.weekday(), day)))
            }
            Self::Of(unit) => (containing_range(first, unit).0, containing_range(last, unit).1),
        }
    }

    /// Like [`Self::apply_to_range`], for one day.
    pub(crate) fn apply_to_day(self, day: NaiveDate) -> DayRange {
        self.apply_to_range((day, day))
    }
}

/// Returns the days from a weekday to the next `to`: from 1 to 7.
fn days_to_weekday(from: Weekday, to: Weekday) -> u32 {
    (to.num_days_from_monday() + 6 - from.num_days_from_monday()) % 7 + 1
}

/// Returns the days that words before a day name: for "the week before" the days that end with it.
pub(crate) fn adjacent_range(words: &[&str], stretch: DayRange) -> Option<DayRange> {
    let words = words.strip_suffix(&["the"]).unwrap_or(words);
    let (span, _) = RelativeSpan::parse_ending_at(words, words.len().checked_sub(1)?)?;
    // "the first week of March" is that month.
    (!matches!(span, RelativeSpan::Of(_))).then(|| span.apply_to_range(stretch))
}

/// Returns the year of the newest month of this name that is over, or has begun unless it is `last`.
pub(crate) fn year_of_month(month: u32, is_last: bool, today: NaiveDate) -> i32 {
    let is_over = if is_last { month < today.month() } else { month <= today.month() };
    if is_over { today.year() } else { today.year() - 1 }
}

fn parse_unit(word: &str) -> Option<CalendarUnit> {
    Some(match word.strip_suffix('s').unwrap_or(word) {
        "day" => CalendarUnit::Day,
        "week" => CalendarUnit::Week,
        "weekend" => CalendarUnit::Weekend,
        "month" => CalendarUnit::Month,
        "quarter" => CalendarUnit::Quarter,
        "year" => CalendarUnit::Year,
        _ => return None,
    })
}

pub(crate) fn parse_count(word: &str) -> Option<u32> {
    const WORDS: [&str; 12] = [
        "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
        "twelve",
    ];
    let spelled = || WORDS.iter().position(|it| *it == word);
    match word {
        "a" | "an" => Some(1),
        "couple" => Some(2),
        "few" | "several" => Some(3),
        _ => word.parse().ok().or_else(|| u32::try_from(spelled()? + 1).ok()),
    }
    .filter(|it| (1..=1_000).contains(it))
}

/// Parses the number and unit at the end of words, "a couple of weeks", and returns the index of the
/// first. Without a number it is one, or a few for a plural ("in the days after").
fn parse_counted_unit(words: &[&str]) -> Option<(u32, CalendarUnit, usize)> {
    let (last, before) = words.split_last()?;
    let unit = parse_unit(last)?;
    let many = before.strip_suffix(&["of"]).unwrap_or(before);
    if let Some((count, before)) = many.split_last().and_then(|it| Some((parse_count(it.0)?, it.1)))
    {
        return Some((count, unit, before.len()));
    }
    Some((if last.ends_with('s') { 3 } else { 1 }, unit, before.len()))
}

fn subtract_units(day: NaiveDate, unit: CalendarUnit, count: u32) -> NaiveDate {
    let by = match unit {
        CalendarUnit::Day => return day.checked_sub_days(Days::new(count.into())).unwrap_or(day),
        CalendarUnit::Week | CalendarUnit::Weekend => {
            return day.checked_sub_days(Days::new(7 * u64::from(count))).unwrap_or(day);
        }
        CalendarUnit::Month => count,
        CalendarUnit::Quarter => 3 * count,
        CalendarUnit::Year => 12 * count,
    };
    day.checked_sub_months(Months::new(by)).unwrap_or(day)
}

fn add_units(day: NaiveDate, unit: CalendarUnit, count: u32) -> NaiveDate {
    let days = match unit {
        CalendarUnit::Day => count,
        CalendarUnit::Week | CalendarUnit::Weekend => 7 * count,
        CalendarUnit::Month => 30 * count,
        CalendarUnit::Quarter => 91 * count,
        CalendarUnit::Year => 365 * count,
    };
    day.checked_add_days(Days::new(days.into())).unwrap_or(day)
}

/// Returns the day, week, weekend, month, quarter, or year that contains a day.
fn containing_range(day: NaiveDate, unit: CalendarUnit) -> DayRange {
    let monday = subtract_units(day, CalendarUnit::Day, day.weekday().num_days_from_monday());
    let days = |it: NaiveDate, days: u64| it.checked_add_days(Days::new(days)).unwrap_or(it);
    let months = |first: Option<NaiveDate>, count: u32| {
        let first = first.unwrap_or(day);
        let next = first.checked_add_months(Months::new(count));
        (first, next.and_then(|it| it.pred_opt()).unwrap_or(first))
    };
    match unit {
        CalendarUnit::Day => (day, day),
        CalendarUnit::Week => (monday, days(monday, 6)),
        CalendarUnit::Weekend => (days(monday, 5), days(monday, 6)),
        CalendarUnit::Month => months(day.with_day(1), 1),
        CalendarUnit::Quarter => {
            let first = NaiveDate::from_ymd_opt(day.year(), day.month0() / 3 * 3 + 1, 1);
            months(first, 3)
        }
        CalendarUnit::Year => months(NaiveDate::from_ymd_opt(day.year(), 1, 1), 12),
    }
}

fn current_range(word: &str, today: NaiveDate) -> Option<DayRange> {
    if let Some(weekday) = parse_weekday(word) {
        let (monday, _) = containing_range(today, CalendarUnit::Week);
        let day = add_units(monday, CalendarUnit::Day, weekday.num_days_from_monday());
        return Some((day, day));
    }
    let (first, last) = containing_range(today, parse_unit(word)?);
    Some((first.min(today), last.min(today.max(first))))
}

/// Parses what follows "last": a unit, several of them, a weekday, or a season. Returns how many words
/// that is.
fn last_range(words: &[&str], today: NaiveDate) -> Option<(DayRange, usize)> {
    let (word, next) = (*words.first()?, words.get(1).copied().unwrap_or_default());
    if let Some(weekday) = parse_weekday(word) {
        let (now, then) = (today.weekday().num_days_from_monday(), weekday.num_days_from_monday());
        let day = subtract_units(today, CalendarUnit::Day, (now + 6 - then) % 7 + 1);
        return Some(((day, day), 1));
    }
    if let Some(first) = season_first_month(word) {
        let year = year_of_month(first + 2, true, today);
        let first = NaiveDate::from_ymd_opt(year, first, 1)?;
        return Some(((first, add_units(first, CalendarUnit::Day, 91)), 1));
    }
    if let Some((count, unit)) = parse_count(word).and_then(|it| Some((it, parse_unit(next)?))) {
        return Some(((subtract_units(today, unit, count), today), 2));
    }
    // "the last couple of weeks"
    if let ["couple", "of", many, ..] = words {
        return Some(((subtract_units(today, parse_unit(many)?, 2), today), 3));
    }
    Some((containing_range(subtract_units(today, parse_unit(word)?, 1), parse_unit(word)?), 1))
}

/// Returns the days that "ago" names, and the index of its first word.
fn ago_range(before: &[&str], today: NaiveDate) -> Option<(DayRange, usize)> {
    let (count, unit, from) = parse_counted_unit(before)?;
    Some((containing_range(subtract_units(today, unit, count), unit), from))
}

fn parse_weekday(word: &str) -> Option<Weekday> {
    let at = english_weekdays().iter().position(|it| *it == word)?;
    Weekday::try_from(u8::try_from(at).ok()?).ok()
}

/// Returns the first month of a season in the northern hemisphere.
fn season_first_month(word: &str) -> Option<u32> {
    Some(match word {
        "spring" => 3,
        "summer" => 6,
        "autumn" | "fall" => 9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn told(text: &str, today: &str) -> Vec<String> {
        let words: Vec<&str> = text.split(' ').collect();
        let named = relative_ranges(&words, today.parse().unwrap());
        named.into_iter().map(|((first, last), _)| format!("{first} {last}")).collect()
    }

    #[test]
    fn relative_times_count_from_today() {
        // A Monday.
        let today = "2026-04-13";
        for (text, expected) in [
            ("today", "2026-04-13 2026-04-13"),
            ("yesterday", "2026-04-12 2026-04-12"),
            ("the day before yesterday", "2026-04-11 2026-04-11"),
            ("this morning", "2026-04-13 2026-04-13"),
            ("3 days ago", "2026-04-10 2026-04-10"),
            ("two weeks ago", "2026-03-30 2026-04-05"),
            ("a couple of months ago", "2026-02-01 2026-02-28"),
            ("a year ago", "2025-01-01 2025-12-31"),
            ("this week", "2026-04-13 2026-04-13"),
            ("last week", "2026-04-06 2026-04-12"),
            ("last weekend", "2026-04-11 2026-04-12"),
            ("over the weekend", "2026-04-11 2026-04-12"),
            ("last month", "2026-03-01 2026-03-31"),
            ("last quarter", "2026-01-01 2026-03-31"),
            ("this quarter", "2026-04-01 2026-04-13"),
            ("last year", "2025-01-01 2025-12-31"),
            ("the past 10 days", "2026-04-03 2026-04-13"),
            ("the last three weeks", "2026-03-23 2026-04-13"),
            ("the last couple of weeks", "2026-03-30 2026-04-13"),
            ("last friday", "2026-04-10 2026-04-10"),
            ("last monday", "2026-04-06 2026-04-06"),
            ("last summer", "2025-06-01 2025-08-31"),
        ] {
            assert_eq!(told(text, today), [expected], "{text}");
        }
        for text in
            ["at last we met", "long ago", "this is it", "the last straw", "the last week of March"]
        {
            assert!(told(text, today).is_empty(), "{text}");
        }
        assert_eq!(
            (
                year_of_month(3, true, "2026-03-02".parse().unwrap()),
                year_of_month(2, true, "2026-03-02".parse().unwrap())
            ),
            (2025, 2026)
        );
    }

    #[test]
    fn a_week_before_a_day_ends_with_it() {
        let day: NaiveDate = "2026-03-26".parse().unwrap();
        let beside = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            adjacent_range(&words, (day, day)).map(|it| format!("{} {}", it.0, it.1))
        };
        assert_eq!(beside("in the week before").as_deref(), Some("2026-03-19 2026-03-26"));
        assert_eq!(beside("in the days after").as_deref(), Some("2026-03-26 2026-03-29"));
        assert_eq!(beside("two days after the").as_deref(), Some("2026-03-26 2026-03-28"));
        // A Thursday.
        assert_eq!(beside("on the friday before").as_deref(), Some("2026-03-20 2026-03-26"));
        assert_eq!(beside("on the thursday after").as_deref(), Some("2026-03-26 2026-04-02"));
        assert_eq!(beside("what was known before"), None);
        assert_eq!(beside("the week of"), None);
    }

    proptest! {
        #[test]
        fn whatever_is_said_names_days_in_order(
            words in prop::collection::vec(prop::sample::select(vec![
                "last", "this", "past", "ago", "two", "999", "1000", "days", "weeks", "months",
                "quarters", "years", "weekend", "friday", "summer", "the", "of", "a", "yesterday",
            ]), 0..6),
            day in 0_u32..100_000,
        ) {
            let today = NaiveDate::from_num_days_from_ce_opt(700_000 + day.cast_signed()).unwrap();
            for ((first, last), said) in relative_ranges(&words, today) {
                prop_assert!(said.start < said.end && said.end <= words.len(), "{words:?} {said:?}");
                prop_assert!(first <= last, "{words:?} {first} {last}");
            }
        }
    }
}
