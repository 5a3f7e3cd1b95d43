//! Dates that may lack a year or a day, and sets of days.

use std::collections::{BTreeSet, HashSet};

use chrono::{Datelike as _, NaiveDate};

/// A day or a month, as far as a text names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartialDate {
    pub(super) year: Option<i32>,
    pub(super) month: u32,
    pub(super) day: Option<u32>,
}

impl PartialDate {
    /// Parses the normal form of an atom.
    pub(super) fn parse(norm: &str) -> Option<Self> {
        if let Some(rest) = norm.strip_prefix("--") {
            let (month, day) = rest.split_once('-')?;
            return Some(Self { year: None, month: month.parse().ok()?, day: day.parse().ok() });
        }
        let mut parts = norm.split('-');
        let year = parts.next()?.parse().ok();
        let month = parts.next()?.parse().ok()?;
        Some(Self { year, month, day: parts.next().and_then(|it| it.parse().ok()) })
    }

    /// Returns whether a day may be meant.
    pub(super) fn matches(self, day: NaiveDate) -> bool {
        day.month() == self.month
            && self.day.is_none_or(|it| it == day.day())
            && self.year.is_none_or(|it| it == day.year())
    }
}

/// Days, indexed by the parts of a date.
#[derive(Default)]
pub(super) struct DaySet {
    pub(super) all: BTreeSet<NaiveDate>,
    /// Month and day.
    month_days: HashSet<(u32, u32)>,
    /// Year and month, and months without their year.
    pub(super) months: HashSet<(Option<i32>, u32)>,
    pub(super) days_of_month: HashSet<u32>,
    pub(super) weekdays: HashSet<u32>,
}

impl DaySet {
    pub(super) fn insert(&mut self, day: NaiveDate) {
        self.all.insert(day);
        self.month_days.insert((day.month(), day.day()));
        self.months.extend([(Some(day.year()), day.month()), (None, day.month())]);
        self.days_of_month.insert(day.day());
        self.weekdays.insert(day.weekday().num_days_from_monday());
    }

    pub(super) fn extend(&mut self, days: impl IntoIterator<Item = NaiveDate>) {
        for day in days {
            self.insert(day);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn contains(&self, date: PartialDate) -> bool {
        match (date.year, date.day) {
            (_, None) => self.months.contains(&(date.year, date.month)),
            (None, Some(day)) => self.month_days.contains(&(date.month, day)),
            (Some(year), Some(day)) => NaiveDate::from_ymd_opt(year, date.month, day)
                .is_some_and(|it| self.all.contains(&it)),
        }
    }
}

/// Returns the day a number of days after a date, or before it if that is negative.
pub(super) fn add_days(date: NaiveDate, days: i64) -> Option<NaiveDate> {
    let count = chrono::Days::new(days.unsigned_abs());
    if days < 0 { date.checked_sub_days(count) } else { date.checked_add_days(count) }
}

/// Parses `02.03.2026`, `2.3.26`, and, if a dot follows, `02.03`.
pub(super) fn parse_dotted_date(run: &str, is_dot_next: bool) -> Option<PartialDate> {
    let parts: Vec<&str> = run.split('.').collect();
    let (day, month, year) = match parts[..] {
        [day, month] if is_dot_next && !run.contains(',') => (day, month, None),
        [day, month, year] if year.len() == 4 => (day, month, year.parse().ok()),
        [day, month, year] if year.len() == 2 => {
            (day, month, year.parse().ok().map(|it: i32| 2000 + it))
        }
        _ => return None,
    };
    let (day, month): (u32, u32) = (day.parse().ok()?, month.parse().ok()?);
    let is_valid = (1..=31).contains(&day) && (1..=12).contains(&month);
    is_valid.then_some(PartialDate { year, month, day: Some(day) })
}

/// Returns the days that a text names as `3/23/2026`. Of `3/4/2026` nobody knows whether it is in March or in April.
pub(super) fn slashed_dates(text: &str) -> impl Iterator<Item = PartialDate> {
    text.split(|c: char| !c.is_ascii_digit() && c != '/').filter_map(parse_slashed_date)
}

fn parse_slashed_date(run: &str) -> Option<PartialDate> {
    let parts: Vec<&str> = run.split('/').collect();
    let [a, b, year] = parts[..] else { return None };
    let (a, b): (u32, u32) = (a.parse().ok()?, b.parse().ok()?);
    let year = (year.len() == 4).then(|| year.parse().ok()).flatten()?;
    let (month, day) = match (a, b) {
        (day @ 13..=31, month @ 1..=12) | (month @ 1..=12, day @ 13..=31) => (month, day),
        (1..=12, _) if a == b => (a, b),
        _ => return None,
    };
    Some(PartialDate { year: Some(year), month, day: Some(day) })
}
