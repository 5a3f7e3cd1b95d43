//! Days that one option names, in the words that a search question understands: "two weeks ago", "last month",
//! "March 26", `2026-W14`. Pure.

use std::str::FromStr;

use chrono::{Datelike as _, Days, NaiveDate, Weekday};

use super::{
    dates::DateParser,
    relative::{self, DayRange},
};
use crate::{
    memory::period::{ParsePeriodError, Period},
    text::words,
};

/// Days in words, whose meaning depends on today.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DateWords(String);

/// Words that name no days.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseDateWordsError {
    /// A period that the calendar lacks.
    #[error(transparent)]
    Period(ParsePeriodError),
    /// Other words.
    #[error(
        "`{0}` names no days (expected 2026-11-21, 2026-W47, 2026-11, or words like \"two weeks ago\", yesterday)"
    )]
    Words(String),
}

impl DateWords {
    /// Returns the first and the last of the days.
    pub(crate) fn days(&self, today: NaiveDate) -> DayRange {
        parse_days(&self.0, today).unwrap_or((today, today))
    }
}

impl FromStr for DateWords {
    type Err = ParseDateWordsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // Which day is today changes what words mean, but not whether they mean anything.
        let any_day = NaiveDate::from_ymd_opt(2024, 12, 31).unwrap_or_default(); // has 29 February before it
        if parse_days(text, any_day).is_some() {
            return Ok(Self(text.to_owned()));
        }
        Err(match text.trim().parse::<Period>() {
            Err(error) if error.is_outside_calendar() => ParseDateWordsError::Period(error),
            _ => ParseDateWordsError::Words(text.to_owned()),
        })
    }
}

/// Returns the days that a text names, if all its words are about one time; of days that recur the latest.
pub(crate) fn parse_days(text: &str, today: NaiveDate) -> Option<DayRange> {
    let text = text.trim();
    if let Ok(period) = text.to_uppercase().parse::<Period>() {
        return Some((period.first(), period.last()));
    }
    let text = text.to_lowercase();
    let all: Vec<&str> = words::runs(&text, "-").collect();
    let words = all.strip_prefix(&["the"]).unwrap_or(&all);
    let is_all = |said: &std::ops::Range<usize>| *said == (0..words.len());
    let named = relative::relative_ranges(words, today);
    if let Some((days, _)) = named.into_iter().find(|(_, said)| is_all(said)) {
        return Some(days);
    }
    let dates = DateParser::of(words, today);
    if dates.consumed.iter().any(is_all) {
        let recurring = || {
            let (_, first) = *dates.days.first()?;
            let last = super::dates::latest_occurrence(*dates.days.last()?, today)?;
            Some((last.with_day(first)?, last))
        };
        return dates.ranges.first().copied().or_else(recurring);
    }
    match *words {
        // A weekday alone is the last one, or today.
        [_] if let [weekday] = dates.weekdays[..] => Some(last_weekday(weekday, today)),
        [_] | [_, _] if let [(year, month, (1, _))] = dates.months[..] => {
            let has_year = words.last().is_some_and(|it| it.parse::<i32>().is_ok());
            if has_year != (words.len() == 2) {
                return None;
            }
            let year = year.unwrap_or_else(|| relative::year_of_month(month, false, today));
            let period: Period = format!("{year}-{month:02}").parse().ok()?;
            Some((period.first(), period.last()))
        }
        _ => None,
    }
}

fn last_weekday(weekday: Weekday, today: NaiveDate) -> DayRange {
    let back = today.weekday().days_since(weekday);
    let day = today.checked_sub_days(Days::new(back.into())).unwrap_or(today);
    (day, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str)>) {
        // A Monday.
        let today = "2026-04-13".parse().unwrap();
        let days = |(first, last): (&str, &str)| (first.parse().unwrap(), last.parse().unwrap());
        assert_eq!(parse_days(text, today), expected.map(days), "{text}");
    }

    #[test]
    fn days_are_named_by_dates_and_words() {
        check("2026-04-02", Some(("2026-04-02", "2026-04-02")));
        check("2026-w14", Some(("2026-03-30", "2026-04-05")));
        check("yesterday", Some(("2026-04-12", "2026-04-12")));
        check("3 days ago", Some(("2026-04-10", "2026-04-10")));
        check("two weeks ago", Some(("2026-03-30", "2026-04-05")));
        check("the last month", Some(("2026-03-01", "2026-03-31")));
        check("last friday", Some(("2026-04-10", "2026-04-10")));
        check("Friday", Some(("2026-04-10", "2026-04-10")));
        check("March 26", Some(("2026-03-26", "2026-03-26")));
        check("March 26, 2025", Some(("2025-03-26", "2025-03-26")));
        check("March", Some(("2026-03-01", "2026-03-31")));
        check("March 2025", Some(("2025-03-01", "2025-03-31")));
        for text in ["", "soon", "last", "importer last week", "2026-02-30", "friday march"] {
            check(text, None);
        }
    }

    #[test]
    fn an_error_says_what_is_wrong() {
        let error = |text: &str| text.parse::<DateWords>().unwrap_err().to_string();
        assert_eq!(error("2026-02-30"), "there is no day 2026-02-30");
        assert!(error("soon").starts_with("`soon` names no days"));
    }
}
