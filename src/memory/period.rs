//! Calendar periods: the day, ISO week, or month that a file covers.
//!
//! A period names a file (`2026-W47.md`) and is the key of a lineage row. Only this module maps
//! names to dates. It is pure: the caller reads the clock and passes the date.
//!
//! # Invariants
//!
//! - One period has one name: `Display` and `FromStr` are inverse.
//! - Periods of one grain tile the calendar: no gap and no overlap.
//! - A week belongs to the month of its Thursday, as ISO 8601 picks its year.

use std::{fmt, str::FromStr};

use chrono::{Datelike as _, Days, Months, NaiveDate, Weekday};

/// One day, ISO week, or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period {
    grain: Grain,
    /// Invariant: the first day of the period.
    first: NaiveDate,
}

/// The width of a [`Period`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Grain {
    Day,
    Week,
    Month,
}

/// A string that does not name a period.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", describe_unknown(.0))]
pub struct ParsePeriodError(String);

impl ParsePeriodError {
    /// Returns whether the string has the form of a period that the calendar lacks, such as `2026-02-30`.
    pub fn is_outside_calendar(&self) -> bool {
        grain_of_form(&self.0).is_some()
    }
}

fn describe_unknown(name: &str) -> String {
    match grain_of_form(name) {
        Some(Grain::Day) => format!("there is no day {name}"),
        Some(Grain::Week) => match last_week(name) {
            Some(last) => format!("there is no week {name}: the last one of its year is {last}"),
            None => format!("there is no week {name}"),
        },
        Some(Grain::Month) => format!("there is no month {name}"),
        None => format!(
            "`{name}` is not a period (expected a name like 2026-11-21, 2026-W47, or 2026-11)"
        ),
    }
}

/// Returns the last week of the year that the name of a week begins with. The 28th of December is always in it.
fn last_week(name: &str) -> Option<Period> {
    let day = NaiveDate::from_ymd_opt(name.get(..4)?.parse().ok()?, 12, 28)?;
    Some(Period::containing(Grain::Week, day))
}

/// Returns the width of the period that a string of this form would name.
fn grain_of_form(name: &str) -> Option<Grain> {
    let form: String = name.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    match form.as_str() {
        "0000-00-00" => Some(Grain::Day),
        "0000-W00" => Some(Grain::Week),
        "0000-00" => Some(Grain::Month),
        _ => None,
    }
}

impl Period {
    /// Returns the period of width `grain` that contains `date`.
    pub fn containing(grain: Grain, date: NaiveDate) -> Self {
        let first = match grain {
            Grain::Day => date,
            Grain::Week => date.week(Weekday::Mon).first_day(),
            Grain::Month => date - Days::new(u64::from(date.day0())),
        };
        Self { grain, first }
    }

    /// Returns the width of the period.
    pub fn grain(self) -> Grain {
        self.grain
    }

    /// Returns the first day of the period.
    pub fn first(self) -> NaiveDate {
        self.first
    }

    /// Returns the last day of the period.
    pub fn last(self) -> NaiveDate {
        self.end() - Days::new(1)
    }

    /// Returns the period whose summary includes this one; `None` for a month.
    pub fn parent(self) -> Option<Self> {
        let (grain, date) = match self.grain {
            Grain::Day => (Grain::Week, self.first),
            Grain::Week => (Grain::Month, self.first + Days::new(3)),
            Grain::Month => return None,
        };
        Some(Self::containing(grain, date))
    }

    /// Returns the first day after the period.
    ///
    /// From that day on the period is closed: it gains no sources and may be compacted.
    pub fn end(self) -> NaiveDate {
        match self.grain {
            Grain::Day => self.first + Days::new(1),
            Grain::Week => self.first + Days::new(7),
            Grain::Month => self.first + Months::new(1),
        }
    }

    /// Returns the last day whose log can reach this period's file.
    ///
    /// For a month this is the Sunday of the week of its last Thursday, which may be in the next
    /// month.
    pub fn last_source_day(self) -> NaiveDate {
        match self.grain {
            Grain::Day | Grain::Week => self.last(),
            Grain::Month => {
                let week = Self::containing(Grain::Week, self.last());
                if week.parent() == Some(self) { week.last() } else { week.first - Days::new(1) }
            }
        }
    }

    /// Returns the weeks that belong to this month, oldest first; a week yields itself.
    pub fn weeks(self) -> Vec<Self> {
        let mut week = Self::containing(Grain::Week, self.first);
        let mut weeks = Vec::new();
        while week.first <= self.last() {
            if self.grain != Grain::Month || week.parent() == Some(self) {
                weeks.push(week);
            }
            week = Self::containing(Grain::Week, week.end());
        }
        weeks
    }
}

impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.grain {
            Grain::Day => write!(f, "{}", self.first),
            Grain::Week => write!(f, "{}", self.first.format("%G-W%V")),
            Grain::Month => write!(f, "{}", self.first.format("%Y-%m")),
        }
    }
}

impl FromStr for Period {
    type Err = ParsePeriodError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let error = || ParsePeriodError(name.to_owned());
        let (grain, first) = match name.len() {
            7 => (Grain::Month, NaiveDate::parse_from_str(&format!("{name}-01"), "%Y-%m-%d")),
            8 => (Grain::Week, NaiveDate::parse_from_str(&format!("{name}-1"), "%G-W%V-%u")),
            _ => (Grain::Day, name.parse()),
        };
        let first = first.map_err(|_| error())?;
        // Arithmetic on a period must not leave chrono's calendar.
        if !(1..=9998).contains(&first.year()) {
            return Err(error());
        }
        let period = Self::containing(grain, first);
        // Chrono also reads spellings that we never write, such as `2026-4-2`.
        if period.to_string() == name { Ok(period) } else { Err(error()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check_parent(name: &str, expected: Option<&str>) {
        let parent = name.parse().ok().and_then(Period::parent);
        assert_eq!(parent.map(|it| it.to_string()).as_deref(), expected);
    }

    #[track_caller]
    fn check_weeks(month: &str, expected: &[&str]) {
        let weeks = month.parse::<Period>().unwrap().weeks();
        assert_eq!(weeks.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn weeks_cross_years_by_their_thursday() {
        check_parent("2027-01-03", Some("2026-W53"));
        check_parent("2026-W53", Some("2026-12"));
        check_parent("2025-W01", Some("2025-01")); // starts on Monday 2024-12-30
        check_parent("2026-w53", None); // not a name
        check_parent("2026-4-2", None);
        check_parent("9999-12-31", None);
    }

    #[test]
    fn a_month_owns_the_weeks_of_its_thursdays() {
        check_weeks("2026-04", &["2026-W14", "2026-W15", "2026-W16", "2026-W17", "2026-W18"]);
        check_weeks("2026-01", &["2026-W01", "2026-W02", "2026-W03", "2026-W04", "2026-W05"]);
        check_weeks("2025-01", &["2025-W01", "2025-W02", "2025-W03", "2025-W04", "2025-W05"]);
        check_weeks("2026-12", &["2026-W49", "2026-W50", "2026-W51", "2026-W52", "2026-W53"]);
        let april: Period = "2026-04".parse().unwrap();
        assert_eq!(april.last_source_day().to_string(), "2026-05-03");
        let may: Period = "2026-05".parse().unwrap();
        assert_eq!(may.last_source_day().to_string(), "2026-05-31");
    }

    proptest! {
        #[test]
        fn names_round_trip_and_tile(days in 0i64..3_000_000, grain in 0..3) {
            let date = NaiveDate::from_ymd_opt(1, 1, 1).unwrap() + Days::new(u64::try_from(days).unwrap());
            let grain = [Grain::Day, Grain::Week, Grain::Month][usize::try_from(grain).unwrap()];
            let period = Period::containing(grain, date);
            prop_assert!(period.first() <= date && date < period.end());
            prop_assert_eq!(Period::containing(grain, period.end()).first(), period.end());
            if period.first().year() >= 1 {
                prop_assert_eq!(period.to_string().parse(), Ok(period));
            }
            if let Some(parent) = period.parent().filter(|_| grain == Grain::Week) {
                prop_assert!(parent.weeks().contains(&period));
                prop_assert!(parent.last_source_day() >= period.last());
            }
        }
    }
}
