//! Crontab lines: when to check what is due.
//!
//! A line has the five fields of crontab(5) and is evaluated in a time zone. The crate `cron` counts weekdays from
//! another start, needs a field for seconds, and combines day of month and day of week differently. So every
//! field is parsed here and passed on as a plain list of values. The daemon calls [`Schedule::next_after`];
//! nothing is ever due because of a schedule alone.
//!
//! # Invariants
//!
//! - A wall-clock time that a line names fires exactly once: one that the clock skips in spring, at the first
//!   instant after the gap; one that occurs twice in autumn, the first time.
//! - The next firing is always later than the given time.

use std::{
    borrow::Cow,
    collections::{BTreeSet, HashMap},
    fmt,
    str::FromStr,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use chrono::{DateTime, MappedLocalTime, NaiveDateTime, TimeZone as _, Utc};
use chrono_tz::{GapInfo, Tz};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// The shorthands of crontab(5) and their lines.
const SHORTHANDS: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [CronField; 5] = [
    CronField { name: "minute", min: 0, max: 59, names: &[], wraps: false },
    CronField { name: "hour", min: 0, max: 23, names: &[], wraps: false },
    CronField { name: "day of month", min: 1, max: 31, names: &[], wraps: false },
    CronField { name: "month", min: 1, max: 12, names: &MONTHS, wraps: false },
    CronField { name: "day of week", min: 0, max: 7, names: &WEEKDAYS, wraps: true },
];

/// A crontab line.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// As written, with single spaces between the fields.
    line: String,
    /// Fires when any of these does. There are two if day of month and day of week are both restricted. They are
    /// evaluated in wall-clock time represented as UTC, which has no gaps.
    parts: Arc<[cron::Schedule]>,
}

/// The lines in use. Each takes some kilobytes, and a thousand roots share the same four.
static PARSED_CACHE: LazyLock<Mutex<HashMap<String, Schedule>>> = LazyLock::new(Mutex::default);
/// More lines than anybody uses.
const PARSED_CACHE_MAX: usize = 64;

/// Why a text is not a crontab line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseScheduleError {
    /// Not five fields.
    #[error(
        "`{line}` has {found} fields (expected 5: minute, hour, day of month, month, day of week{})",
        if *found == 6 { "; there is no field for seconds" } else { "" }
    )]
    FieldCount {
        /// The line.
        line: String,
        /// The number of fields.
        found: usize,
    },
    /// `@reboot`.
    #[error(
        "`@reboot` names no time; it is not needed, because everything that is due runs at every start"
    )]
    Reboot,
    /// Another word after `@`.
    #[error(
        "`{0}` is not a shorthand (expected @hourly, @daily, @midnight, @weekly, @monthly, @yearly, or @annually)"
    )]
    Shorthand(String),
    /// An invalid field.
    #[error("`{line}`: {field} `{text}`: {reason}")]
    Field {
        /// The line.
        line: String,
        /// The field.
        field: &'static str,
        /// The part of the field that is wrong.
        text: String,
        /// What is wrong.
        reason: String,
    },
    /// The crate `cron` rejects the converted line.
    #[error("`{line}` is not a schedule: {reason}")]
    Rejected {
        /// The line.
        line: String,
        /// Its error.
        reason: String,
    },
}

struct CronField {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
    /// Whether a range may pass the end: `fri-mon` is valid, because weekdays are cyclic.
    wraps: bool,
}

impl Schedule {
    /// Parses a line of five fields, or a shorthand like `@daily`.
    ///
    /// # Errors
    ///
    /// Returns which field is wrong and what was expected.
    pub fn parse(text: &str) -> Result<Self, ParseScheduleError> {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cache = || PARSED_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = cache().get(&line).cloned();
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let parsed = Self::parse_fields(line)?;
        let mut cache = cache();
        if cache.len() < PARSED_CACHE_MAX {
            cache.insert(parsed.line.clone(), parsed.clone());
        }
        drop(cache);
        Ok(parsed)
    }

    fn parse_fields(line: String) -> Result<Self, ParseScheduleError> {
        let expanded = expand_shorthand(&line)?;
        let fields: Vec<&str> = expanded.split(' ').filter(|it| !it.is_empty()).collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(ParseScheduleError::FieldCount { found: fields.len(), line: line.clone() });
        };
        let read = |at: usize, text: &str| {
            FIELDS[at].parse(text).map_err(|(part, reason)| ParseScheduleError::Field {
                line: line.clone(),
                field: FIELDS[at].name,
                text: part,
                reason,
            })
        };
        let minutes = value_list(&read(0, minute)?);
        let hours = value_list(&read(1, hour)?);
        let days = value_list(&read(2, day)?);
        let months = value_list(&read(3, month)?);
        // The crate counts from 1 = Sunday; here 0 and 7 are Sunday.
        let weekdays: BTreeSet<u32> = read(4, weekday)?.iter().map(|it| it % 7 + 1).collect();
        let weekdays = value_list(&weekdays);

        let part = |days: &str, weekdays: &str| {
            let text = format!("0 {minutes} {hours} {days} {months} {weekdays}");
            text.parse::<cron::Schedule>().map_err(|source| ParseScheduleError::Rejected {
                line: line.clone(),
                reason: source.to_string(),
            })
        };
        // As in crontab(5): a field that begins with `*` restricts nothing; if both are restricted, either one
        // is enough.
        let either = !day.starts_with('*') && !weekday.starts_with('*');
        let parts = if either {
            vec![part(&days, "*")?, part("*", &weekdays)?]
        } else {
            vec![part(&days, &weekdays)?]
        };
        Ok(Self { line, parts: parts.into() })
    }

    /// Returns the first firing later than `after`, or `None` if the line never fires.
    pub fn next_after(&self, after: DateTime<Tz>) -> Option<DateTime<Tz>> {
        let zone = after.timezone();
        let mut wall = after.naive_local();
        // Ends soon: it skips only times in the hour that autumn repeats.
        loop {
            wall = self.next_local(wall)?;
            let instant = first_instant(wall, zone)?;
            if instant > after {
                return Some(instant);
            }
        }
    }

    /// Returns the next wall-clock time that the line names.
    fn next_local(&self, wall: NaiveDateTime) -> Option<NaiveDateTime> {
        let after: DateTime<Utc> = wall.and_utc();
        let next = self.parts.iter().filter_map(|it| it.after(&after).next());
        next.min().map(|it| it.naive_utc())
    }
}

/// Returns the first instant at which the clock of `zone` shows `wall`, or has just skipped it.
fn first_instant(wall: NaiveDateTime, zone: Tz) -> Option<DateTime<Tz>> {
    match zone.from_local_datetime(&wall) {
        MappedLocalTime::Single(it) | MappedLocalTime::Ambiguous(it, _) => Some(it),
        MappedLocalTime::None => GapInfo::new(&wall, &zone)?.end,
    }
}

/// Expands a shorthand to its line.
fn expand_shorthand(line: &str) -> Result<&str, ParseScheduleError> {
    if !line.starts_with('@') {
        return Ok(line);
    }
    if line.eq_ignore_ascii_case("@reboot") {
        return Err(ParseScheduleError::Reboot);
    }
    let found = SHORTHANDS.iter().find(|(name, _)| line.eq_ignore_ascii_case(name));
    found.map(|(_, it)| *it).ok_or_else(|| ParseScheduleError::Shorthand(line.to_owned()))
}

/// Formats a set of values for the crate `cron`.
fn value_list(values: &BTreeSet<u32>) -> String {
    values.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

impl CronField {
    /// Returns the values of a field, or the part that is wrong and why.
    fn parse(&self, text: &str) -> Result<BTreeSet<u32>, (String, String)> {
        let mut values = BTreeSet::new();
        for part in text.split(',') {
            self.parse_part(part, &mut values).map_err(|reason| (part.to_owned(), reason))?;
        }
        Ok(values)
    }

    /// Parses `*`, `5`, or `1-5`; all but the single value may have a `/step`.
    fn parse_part(&self, part: &str, values: &mut BTreeSet<u32>) -> Result<(), String> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(step)),
            None => (part, None),
        };
        let step = match step.map(number) {
            None => 1,
            Some(Some(it)) if it > 0 => it,
            Some(_) => return Err("the step after `/` must be a number above 0".to_owned()),
        };
        let (first, last) = if range == "*" {
            // 7 is Sunday again, not an eighth day.
            (self.min, if self.wraps { self.max - 1 } else { self.max })
        } else if let Some((first, last)) = range.split_once('-') {
            (self.value(first)?, self.value(last)?)
        } else {
            let value = self.value(range)?;
            if part.contains('/') {
                let max = self.max;
                return Err(format!("a step needs a range before it, like {value}-{max}/{step}"));
            }
            (value, value)
        };
        let step_by = usize::try_from(step).unwrap_or(usize::MAX);
        if first <= last {
            values.extend((first..=last).step_by(step_by));
        } else if self.wraps {
            values.extend((first..=last + 7).step_by(step_by).map(|it| it % 7));
        } else {
            let (min, max) = (self.min, self.max);
            return Err(format!("runs backwards (write {first}-{max},{min}-{last})"));
        }
        Ok(())
    }

    fn value(&self, text: &str) -> Result<u32, String> {
        if let Some(at) = self.names.iter().position(|it| text.eq_ignore_ascii_case(it)) {
            // Months count from 1, weekdays from 0, so `min` is the value of the first name.
            return u32::try_from(at).map(|it| it + self.min).map_err(|it| it.to_string());
        }
        match number(text) {
            Some(it) if (self.min..=self.max).contains(&it) => Ok(it),
            _ => Err(format!("expected {}", self.expected())),
        }
    }

    fn expected(&self) -> String {
        let numbers = format!("{}-{}", self.min, self.max);
        match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!("{numbers} or a name, {first} to {last}"),
            _ => numbers,
        }
    }
}

/// Parses a number of at most three digits, without a sign.
fn number(text: &str) -> Option<u32> {
    let plain = (1..=3).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl FromStr for Schedule {
    type Err = ParseScheduleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl PartialEq for Schedule {
    fn eq(&self, other: &Self) -> bool {
        self.line == other.line
    }
}

impl Eq for Schedule {}

impl Serialize for Schedule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Schedule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&Cow::<'de, str>::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Schedule {
    fn schema_name() -> Cow<'static, str> {
        "Schedule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "crontab",
            "description": "A crontab line of five fields (minute, hour, day of month, month, day of week), or a shorthand like @daily."
        })
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Days, NaiveDate};
    use chrono_tz::TZ_VARIANTS;

    use super::*;

    fn at(zone: Tz, text: &str) -> DateTime<Tz> {
        let wall = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").unwrap();
        zone.from_local_datetime(&wall).earliest().unwrap()
    }

    /// Checks the first firings after `from`, in UTC, which has no gaps.
    #[track_caller]
    fn check(line: &str, from: &str, expected: &[&str]) {
        check_in(Tz::UTC, line, from, expected);
    }

    #[track_caller]
    fn check_in(zone: Tz, line: &str, from: &str, expected: &[&str]) {
        let schedule = Schedule::parse(line).unwrap();
        let mut now = at(zone, from);
        let mut seen = Vec::new();
        for _ in expected {
            let next = schedule.next_after(now).unwrap();
            assert!(next > now, "{line} goes back from {now} to {next}");
            now = next;
            seen.push(now.format("%Y-%m-%d %H:%M").to_string());
        }
        assert_eq!(seen, expected, "{line}");
    }

    #[track_caller]
    fn check_refused(line: &str, expected: &str) {
        let error = Schedule::parse(line).unwrap_err().to_string();
        assert!(error.contains(expected), "{line}: {error}");
    }

    #[test]
    fn means_what_crontab_means() {
        // 2026-04-01 is a Wednesday.
        let day = "2026-04-01 12:00";
        check("30 2 * * *", day, &["2026-04-02 02:30", "2026-04-03 02:30"]);
        check("*/20 * * * *", day, &["2026-04-01 12:20", "2026-04-01 12:40", "2026-04-01 13:00"]);
        check(
            "5-59/25 * * * *",
            day,
            &["2026-04-01 12:05", "2026-04-01 12:30", "2026-04-01 12:55"],
        );
        check("0 9-17/4 * * *", day, &["2026-04-01 13:00", "2026-04-01 17:00", "2026-04-02 09:00"]);
        check("0,15 3,5 * * *", day, &["2026-04-02 03:00", "2026-04-02 03:15", "2026-04-02 05:00"]);
        check("0 3 * * 1", day, &["2026-04-06 03:00", "2026-04-13 03:00"]); // Monday, not Sunday
        check("0 3 * * 0", day, &["2026-04-05 03:00", "2026-04-12 03:00"]);
        check("0 3 * * 7", day, &["2026-04-05 03:00", "2026-04-12 03:00"]);
        check("0 3 * * SUN", day, &["2026-04-05 03:00", "2026-04-12 03:00"]);
        check(
            "0 3 * * Mon-fri",
            day,
            &["2026-04-02 03:00", "2026-04-03 03:00", "2026-04-06 03:00"],
        );
        check("0 3 * * 5-7", day, &["2026-04-03 03:00", "2026-04-04 03:00", "2026-04-05 03:00"]);
        check(
            "0 3 * * fri-sun",
            day,
            &["2026-04-03 03:00", "2026-04-04 03:00", "2026-04-05 03:00"],
        );
        check(
            "0 3 * * sat-mon",
            day,
            &["2026-04-04 03:00", "2026-04-05 03:00", "2026-04-06 03:00"],
        );
        check("0 3 * * 0-2", day, &["2026-04-05 03:00", "2026-04-06 03:00", "2026-04-07 03:00"]);
        check("0 3 * * */3", day, &["2026-04-04 03:00", "2026-04-05 03:00", "2026-04-08 03:00"]); // 0, 3, 6
        check("0 3 1 JAN,jul *", day, &["2026-07-01 03:00", "2027-01-01 03:00"]);
        check("0 3 31 * *", day, &["2026-05-31 03:00", "2026-07-31 03:00"]);
        check("0 0 29 2 *", day, &["2028-02-29 00:00", "2032-02-29 00:00"]);
        // Both restricted: the thirteenth, and every Friday.
        check("0 3 13 * fri", day, &["2026-04-03 03:00", "2026-04-10 03:00", "2026-04-13 03:00"]);
        // A field with `*` restricts nothing by itself, so both must match.
        check("0 3 */2 * fri", day, &["2026-04-03 03:00", "2026-04-17 03:00"]);
        check("0 3 13 * */7", day, &["2026-09-13 03:00"]); // `*/7` is Sunday
        check("  0   3 * *\t* ", day, &["2026-04-02 03:00"]);
        check("@hourly", day, &["2026-04-01 13:00", "2026-04-01 14:00"]);
        check("@Daily", day, &["2026-04-02 00:00"]);
        check("@midnight", day, &["2026-04-02 00:00"]);
        check("@weekly", day, &["2026-04-05 00:00"]);
        check("@monthly", day, &["2026-05-01 00:00"]);
        check("@yearly", day, &["2027-01-01 00:00"]);
        check("@annually", day, &["2027-01-01 00:00"]);
    }

    #[test]
    fn invalid_lines_are_refused_with_a_reason() {
        check_refused("", "has 0 fields");
        check_refused("0 3 * *", "has 4 fields");
        check_refused("0 0 3 * * *", "there is no field for seconds");
        check_refused("60 3 * * *", "minute `60`: expected 0-59");
        check_refused("0 24 * * *", "hour `24`");
        check_refused("0 3 0 * *", "day of month `0`: expected 1-31");
        check_refused("0 3 * 13 *", "expected 1-12 or a name, jan to dec");
        check_refused("0 3 * * 8", "expected 0-7 or a name, sun to sat");
        check_refused("0 3 * * monday", "day of week `monday`");
        check_refused("0 3 ? * *", "day of month `?`");
        check_refused("0 3 L * *", "day of month `L`");
        check_refused("0 3 * * 5#2", "day of week `5#2`");
        check_refused("*/0 * * * *", "above 0");
        check_refused("5/15 * * * *", "like 5-59/15");
        check_refused("0 22-2 * * *", "write 22-23,0-2");
        check_refused("1,,2 * * * *", "minute ``");
        check_refused("+5 * * * *", "minute `+5`");
        check_refused("*-5 * * * *", "minute `*-5`");
        check_refused("@reboot", "at every start");
        check_refused("@fortnightly", "not a shorthand");
        check_refused("0 3 * * ٣", "day of week");
    }

    #[test]
    fn skipped_and_repeated_times_fire_once() {
        let vienna = Tz::Europe__Vienna;
        let line = "30 2 * * *";
        // 02:00 to 03:00 is skipped on 2026-03-29, and occurs twice on 2026-10-25.
        check_in(vienna, line, "2026-03-28 12:00", &["2026-03-29 03:00", "2026-03-30 02:30"]);
        check_in(vienna, line, "2026-10-24 12:00", &["2026-10-25 02:30", "2026-10-26 02:30"]);
        let new_york = Tz::America__New_York;
        check_in(new_york, line, "2026-03-07 12:00", &["2026-03-08 03:00", "2026-03-09 02:30"]);
        check_in(
            new_york,
            "30 1 * * *",
            "2026-10-31 12:00",
            &["2026-11-01 01:30", "2026-11-02 01:30"],
        );
        // Half an hour: 02:00 to 02:30 is skipped on 2026-10-04, 01:30 to 02:00 repeated on 2026-04-05.
        let lord_howe = Tz::Australia__Lord_Howe;
        check_in(
            lord_howe,
            "15 2 * * *",
            "2026-10-03 12:00",
            &["2026-10-04 02:30", "2026-10-05 02:15"],
        );
        check_in(
            lord_howe,
            "45 1 * * *",
            "2026-04-04 12:00",
            &["2026-04-05 01:45", "2026-04-06 01:45"],
        );
        // All times in the gap are one firing, together with the one at its end.
        check_in(
            vienna,
            "*/20 2,3 * * *",
            "2026-03-29 01:00",
            &["2026-03-29 03:00", "2026-03-29 03:20", "2026-03-29 03:40", "2026-03-30 02:00"],
        );
        // Samoa had no 2011-12-30 at all.
        check_in(
            Tz::Pacific__Apia,
            line,
            "2011-12-29 12:00",
            &["2011-12-31 00:00", "2011-12-31 02:30", "2012-01-01 02:30"],
        );
    }

    #[test]
    fn the_repeated_hour_does_not_fire_again() {
        let zone = Tz::Europe__Vienna;
        let wall = NaiveDate::from_ymd_opt(2026, 10, 25).unwrap().and_hms_opt(2, 10, 0).unwrap();
        let second = zone.from_local_datetime(&wall).latest().unwrap();
        let next = Schedule::parse("30 2 * * *").unwrap().next_after(second).unwrap();
        assert_eq!(next.to_string(), "2026-10-26 02:30:00 CET");
        let next = Schedule::parse("* * * * *").unwrap().next_after(second).unwrap();
        assert_eq!(next.to_string(), "2026-10-25 03:00:00 CET");
    }

    #[test]
    fn impossible_dates_never_fire() {
        for line in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 */2"] {
            let next = Schedule::parse(line).unwrap().next_after(at(Tz::UTC, "2026-04-01 12:00"));
            assert_eq!(next, None, "{line}");
        }
    }

    /// Checks a daily line for two years in every zone.
    #[track_caller]
    fn check_daily(hour: u32, minute: u32) {
        let schedule = Schedule::parse(&format!("{minute} {hour} * * *")).unwrap();
        let from = NaiveDate::from_ymd_opt(2026, 1, 1).unwrap();
        for zone in TZ_VARIANTS {
            let before = (from - Days::new(1)).and_hms_opt(hour, minute, 0).unwrap();
            let mut now = first_instant(before, zone).unwrap();
            for date in from.iter_days().take(730) {
                now = schedule.next_after(now).unwrap();
                let named = date.and_hms_opt(hour, minute, 0).unwrap();
                let late = now.naive_local() - named;
                // Later only if the clock skipped the time, and by no more than it skipped.
                let skipped = zone.from_local_datetime(&named) == MappedLocalTime::None;
                let most = if skipped { 60 } else { 0 };
                assert!((0..=most).contains(&late.num_minutes()), "{zone}: {now} for {named}");
            }
        }
    }

    #[test]
    fn a_daily_line_fires_once_for_every_date_in_every_zone() {
        check_daily(2, 30);
    }

    #[test]
    fn midnight_fires_once_for_every_date_in_every_zone() {
        check_daily(0, 0); // some zones change their clocks then
    }

    #[test]
    fn late_evening_fires_once_for_every_date_in_every_zone() {
        check_daily(23, 30); // in Nuuk the gap begins at 23:00
    }

    #[test]
    fn prints_the_line_back() {
        assert_eq!(Schedule::parse(" 0  3 * *  MON ").unwrap().to_string(), "0 3 * * MON");
        assert_eq!(Schedule::parse("@daily").unwrap().to_string(), "@daily");
    }
}
