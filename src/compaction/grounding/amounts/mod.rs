//! Numbers, amounts, days, and times, by what they mean and not by how they are written.
//!
//! `$420M` is `$420 million`, `6:30 AM` is `6:30`, `Apr 2` is `2026-04-02`, "three" is 3, and "tomorrow"
//! is the day after the log's. What can be read in two ways (`1.180`, `02.03.`) has two readings, and one
//! of them in the lines is enough. Units count: 15 s are not 15 ms, and 41% is not 41.
//!
//! `scan` finds the quantities of a text; `SourceQuantities` collects those of lines and checks those of
//! an item against them.

mod dates;
mod decimal;
pub(super) mod scan;
pub(super) mod units;

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::{Datelike as _, NaiveDate};

use self::{
    dates::{DaySet, PartialDate, add_days, slashed_dates},
    decimal::Decimal,
    scan::find_quantities,
    units::MeasureUnit,
};
use crate::text::{lexicon::CLAIMS, words};

/// What a quantity may mean.
#[derive(Clone, Debug, PartialEq, Eq)]
enum QuantityReading {
    /// A number and its possible units.
    Number(Decimal, Vec<MeasureUnit>),
    /// The minute of the day, and whether the text says which half of the day.
    Time(u32, bool),
    Date(PartialDate),
    /// A day of this month, or of the one before or after it.
    DayOfMonth(u32),
    /// Days from the day of the log.
    DayOffset(i64),
    /// Monday is 0.
    Weekday(u32),
    Month(u32),
    /// A number of steps from the current week, month, or year, and which unit that is.
    Step(i64, usize),
}

/// A part of a text that says how many, how much, or when.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    pub(super) start: usize,
    pub(super) end: usize,
    readings: Vec<QuantityReading>,
    /// What it counts: the first letters of the words after it.
    counted_nouns: Vec<String>,
    /// Whether it may be another word of another language, so that an item is not asked for it.
    pub(super) is_ambiguous: bool,
}

/// The quantities of lines.
#[derive(Default)]
pub(super) struct SourceQuantities {
    numbers: HashMap<Decimal, Vec<MeasureUnit>>,
    /// What each number counts. The empty string: nothing that the text names.
    nouns_by_number: HashMap<Decimal, BTreeSet<String>>,
    /// The numbers of each thing.
    numbers_by_noun: HashMap<String, HashSet<Decimal>>,
    times: BTreeSet<(u32, bool)>,
    /// Days that lines name, with relative ones resolved.
    days: DaySet,
    /// Days that a weekday may mean, and those of a week that a line mentions.
    approximate_days: DaySet,
    /// Days of which lines name only the day of the month.
    named_days_of_month: DaySet,
    months: BTreeSet<(Option<i32>, u32)>,
    weekdays: BTreeSet<u32>,
    offsets: BTreeSet<i64>,
    steps: BTreeSet<(i64, usize)>,
    /// The days of the logs, and whether their lines speak only of other days.
    log_days: HashMap<NaiveDate, bool>,
    /// Whether a line says `one`, which is no number word of the lexicon.
    has_one: bool,
    /// Whether a line says `both`, `twice`, or the like.
    has_two: bool,
    /// Whether a line says that there is none.
    has_none: bool,
}

/// Words that say two without being the number.
const TWO: [&str; 11] = [
    "both", "twice", "pair", "double", "x2", "beide", "beiden", "beides", "zweimal", "ambos",
    "ambas",
];

/// Words for periods, with the number and unit that they say.
const PERIODS: [(&[&str], &str, &str); 3] = [
    (&["halbjährlich", "semiannual", "biannual", "biannually", "semestriel"], "6", "months"),
    (&["vierteljährlich", "quarterly", "trimestriel"], "3", "months"),
    (&["fortnight", "fortnightly", "vierzehntägig"], "2", "weeks"),
];

impl SourceQuantities {
    /// Adds a line of the log of a day.
    pub(super) fn add_line(&mut self, date: NaiveDate, text: &str) {
        let found = find_quantities(text);
        let mut names_other_day = false;
        let mut names_own_day = false;
        for quantity in &found {
            for value in quantity.values() {
                let objects = self.nouns_by_number.entry(value.clone()).or_default();
                objects.extend(quantity.counted_nouns.iter().cloned());
                if quantity.counted_nouns.is_empty() {
                    objects.insert(String::new());
                }
                for object in &quantity.counted_nouns {
                    self.numbers_by_noun.entry(object.clone()).or_default().insert(value.clone());
                }
            }
            for reading in &quantity.readings {
                match reading {
                    QuantityReading::Number(value, units) => {
                        let known = self.numbers.entry(value.clone()).or_default();
                        for unit in units {
                            if !known.contains(unit) {
                                known.push(unit.clone());
                            }
                        }
                        self.add_day_count(date, value, units, text, quantity);
                        self.add_with_this_one(value, text, quantity);
                    }
                    QuantityReading::Time(minutes, half) => {
                        self.times.insert((*minutes, *half));
                    }
                    QuantityReading::Date(named) => self.add_date(date, *named),
                    QuantityReading::DayOfMonth(day) => self.add_day_of_month(date, *day),
                    QuantityReading::DayOffset(offset) => {
                        names_own_day |= *offset == 0;
                        // The French word for yesterday is the German one for here.
                        let is_here = || {
                            text[quantity.start..quantity.end].eq_ignore_ascii_case("hier")
                                && words::lowercase_runs(text)
                                    .any(|it| CLAIMS.german_words.contains(&&it[..]))
                        };
                        names_other_day |= *offset != 0 && !is_here();
                        self.offsets.insert(*offset);
                        self.days.extend(add_days(date, *offset));
                    }
                    QuantityReading::Weekday(weekday) => {
                        self.weekdays.insert(*weekday);
                        // "Next Friday" may skip the first one.
                        let all = (-7..=13).filter_map(|it| add_days(date, it));
                        let of = |it: &NaiveDate| it.weekday().num_days_from_monday() == *weekday;
                        self.approximate_days.extend(all.filter(of));
                    }
                    QuantityReading::Month(month) => {
                        self.months.insert((None, *month));
                    }
                    QuantityReading::Step(step, unit) => {
                        self.steps.insert((*step, *unit));
                        let from = i64::from(date.weekday().num_days_from_monday());
                        let week = (0..7).filter_map(|it| add_days(date, step * 7 - from + it));
                        self.approximate_days.extend(week);
                    }
                }
            }
        }
        for named in slashed_dates(text) {
            self.add_date(date, named);
        }
        *self.log_days.entry(date).or_insert(true) &= names_other_day && !names_own_day;
        for word in words::lowercase_runs(text) {
            if let Some((_, count, unit)) = PERIODS.iter().find(|it| it.0.contains(&&word[..])) {
                let (count, unit) = (Decimal::parse(count, false), MeasureUnit::of(unit));
                let nouns = self.nouns_by_number.entry(count.clone()).or_default();
                nouns.extend(unit.name().map(str::to_owned));
                self.numbers.entry(count).or_default().push(unit);
            }
            self.has_two |= TWO.contains(&&word[..]);
            self.has_one |=
                ["one", "single", "ein", "eine", "einen", "einer", "einmal", "une", "un", "una"]
                    .contains(&&word[..]);
            self.has_none |=
                ["no", "none", "nothing", "zero", "kein", "keine", "nichts", "aucun", "ningún"]
                    .contains(&&word[..]);
        }
    }

    /// Adds a line above a cited one: what it says of other days says nothing of the cited line.
    pub(super) fn add_context_line(&mut self, date: NaiveDate, text: &str) {
        let names_only_other_days = self.log_days.get(&date).copied();
        self.add_line(date, text);
        if let Some(was) = names_only_other_days {
            self.log_days.insert(date, was);
        }
    }

    /// Adds the day of `in two weeks` or `three days ago`.
    fn add_day_count(
        &mut self,
        date: NaiveDate,
        value: &Decimal,
        units: &[MeasureUnit],
        text: &str,
        quantity: &Quantity,
    ) {
        let Some(count) = value.to_small_integer() else { return };
        let is = |name: &str| units.contains(&MeasureUnit::of(name));
        let Some(days) = [("day", 1), ("week", 7)].iter().find(|it| is(it.0)).map(|it| it.1) else {
            return;
        };
        let before = text[..quantity.start].trim_end().to_lowercase();
        let after = text[quantity.end..].trim_start().to_lowercase();
        let is_past =
            after.starts_with("ago") || before.ends_with("vor") || before.ends_with("for");
        let offset = count * days * if is_past { -1 } else { 1 };
        self.approximate_days.extend(add_days(date, offset));
    }

    /// Adds the number of all of `this and three other stations`.
    fn add_with_this_one(&mut self, value: &Decimal, text: &str, quantity: &Quantity) {
        let joints = ["this and ", "it and ", "dieser und ", "diese und ", "hier und "];
        let is_joined = joints.iter().any(|it| text[..quantity.start].ends_with(it));
        let others = [" other", " more ", " weitere", " andere"];
        if is_joined
            && others.iter().any(|it| text[quantity.end..].starts_with(it))
            && let Some(count) = value.to_small_integer()
        {
            let all = Decimal::parse(&(count + 1).to_string(), false);
            self.numbers.entry(all).or_default().push(MeasureUnit::None);
        }
    }

    fn add_date(&mut self, log: NaiveDate, date: PartialDate) {
        let Some(day) = date.day else {
            self.months.insert((date.year, date.month));
            return;
        };
        let years = date.year.map_or_else(|| log.year() - 1..=log.year() + 1, |it| it..=it);
        let all = years.filter_map(|it| NaiveDate::from_ymd_opt(it, date.month, day));
        // Without a year, the nearest one is meant.
        self.days.extend(all.min_by_key(|it| (*it - log).num_days().abs()));
    }

    fn add_day_of_month(&mut self, log: NaiveDate, day: u32) {
        for months in -1..=1_i32 {
            let month = i32::try_from(log.month0()).unwrap_or(0) + months;
            let (year, month) = (log.year() + month.div_euclid(12), month.rem_euclid(12));
            let month = u32::try_from(month).unwrap_or(0) + 1;
            let day = NaiveDate::from_ymd_opt(year, month, day);
            self.approximate_days.extend(day);
            self.named_days_of_month.extend(day);
        }
    }

    /// Returns where the first quantity of an item is that the lines do not support. `is_verbatim` says which
    /// are part of something else, such as an address.
    pub(super) fn first_unsupported(
        &self,
        item: &[Quantity],
        is_verbatim: impl Fn(&Quantity) -> bool,
    ) -> Option<(usize, usize)> {
        let mut required = item.iter().filter(|it| !it.is_ambiguous && !is_verbatim(it));
        // Where the lines speak only of another day, the day of the log counts only beside a day that they name.
        let names_their_day = item.iter().flat_map(|it| &it.readings).any(|it| match it {
            QuantityReading::Date(date) => {
                self.days.contains(*date) || self.approximate_days.contains(*date)
            }
            QuantityReading::DayOffset(offset) => self.offsets.contains(offset),
            QuantityReading::Weekday(weekday) => self.weekdays.contains(weekday),
            _ => false,
        });
        // Beside a weekday in the item, a date is another day, unless it follows directly: "Friday, 2 May".
        let has_weekday = item
            .iter()
            .flat_map(|it| &it.readings)
            .any(|it| matches!(it, QuantityReading::Weekday(_)));
        let is_weekday = |it: &Quantity| matches!(it.readings[..], [QuantityReading::Weekday(_)]);
        let after_weekday: HashSet<usize> = item
            .windows(2)
            .filter(|two| is_weekday(&two[0]) && two[1].start.saturating_sub(two[0].end) <= 5)
            .map(|two| two[1].start)
            .collect();
        let weekdays: HashSet<u32> = item
            .iter()
            .flat_map(|it| &it.readings)
            .filter_map(|it| if let QuantityReading::Weekday(day) = it { Some(*day) } else { None })
            .collect();
        // A date may be written for the weekday of the lines, or be the `27th` that is the weekday of the item.
        let stands_for_weekday = |date: PartialDate| {
            let mut days = self.approximate_days.all.iter().filter(|it| date.matches(**it));
            let weekday = |it: &NaiveDate| it.weekday().num_days_from_monday();
            days.any(|it| {
                let day = weekday(it);
                self.weekdays.contains(&day) && !weekdays.contains(&day)
            })
        };
        let is_named_day = |date: PartialDate| {
            let mut days = self.named_days_of_month.all.iter().filter(|it| date.matches(**it));
            days.any(|it| weekdays.contains(&it.weekday().num_days_from_monday()))
        };
        let resolves_weekday = item.iter().flat_map(|it| &it.readings).any(|it| match it {
            QuantityReading::Date(date) => !self.days.contains(*date) && stands_for_weekday(*date),
            _ => false,
        });
        let is_supported = |it: &Quantity| {
            it.readings.iter().any(|reading| match reading {
                QuantityReading::Date(date) if date.day.is_some() => {
                    let may_be_near = !has_weekday
                        || after_weekday.contains(&it.start)
                        || stands_for_weekday(*date)
                        || is_named_day(*date);
                    self.supports(reading, names_their_day)
                        || (may_be_near && self.approximate_days.contains(*date))
                }
                QuantityReading::Weekday(weekday) if resolves_weekday => {
                    let mut logs = self.log_days.keys();
                    logs.any(|it| it.weekday().num_days_from_monday() == *weekday)
                        || self.supports(reading, names_their_day)
                }
                reading => self.supports(reading, names_their_day),
            })
        };
        let missing = required.find(|it| !is_supported(it) || self.counts_something_else(it));
        missing.map(|it| (it.start, it.end))
    }

    /// Returns whether the lines name a day of a month in any form.
    pub(super) fn names_day(&self, month: u32, day: u32) -> bool {
        self.days.all.iter().any(|it| it.month() == month && it.day() == day)
    }

    /// Returns whether the lines support a quantity by itself.
    pub(super) fn supports_one(&self, quantity: &Quantity) -> bool {
        self.first_unsupported(std::slice::from_ref(quantity), |_| false).is_none()
    }

    /// Returns whether the lines count what a quantity counts.
    pub(super) fn counts_noun_of(&self, quantity: &Quantity) -> bool {
        quantity.counted_nouns.iter().any(|it| self.numbers_by_noun.contains_key(it))
    }

    /// Returns whether the lines have the number only for other things, and the thing only with other
    /// numbers: "three stations" of "two stations in three weeks".
    fn counts_something_else(&self, quantity: &Quantity) -> bool {
        let Some(first) = quantity.counted_nouns.first() else { return false };
        let mut values = quantity.values().peekable();
        if values.peek().is_none() {
            return false;
        }
        values.all(|value| {
            let Some(theirs) = self.nouns_by_number.get(value) else { return false };
            let has_other_number =
                self.numbers_by_noun.get(first).is_some_and(|it| !it.contains(value));
            let counts_the_same =
                theirs.contains("") || quantity.counted_nouns.iter().any(|it| theirs.contains(it));
            has_other_number && !counts_the_same
        })
    }

    fn supports(&self, reading: &QuantityReading, names_their_day: bool) -> bool {
        let logs = || self.log_days.iter().filter(|it| names_their_day || !*it.1).map(|it| *it.0);
        match reading {
            QuantityReading::Number(value, units) => {
                let theirs = self.numbers.get(value).map_or(&[][..], Vec::as_slice);
                // A number with a unit in the lines does not support the same number with another unit, even if it is
                // there without a unit, too.
                let mut known =
                    theirs.iter().filter(|it| matches!(it, MeasureUnit::Known(_))).peekable();
                let other = known.peek().is_some();
                let known: Vec<&MeasureUnit> = known.collect();
                let fits = |it: &MeasureUnit| match it {
                    MeasureUnit::Known(_) if other => {
                        known.iter().any(|their| it.is_compatible_with(their))
                    }
                    _ => theirs.iter().any(|their| it.is_compatible_with(their)),
                };
                units.iter().any(fits)
                    || (self.has_two
                        && value.to_small_integer() == Some(2)
                        && *units == [MeasureUnit::None])
                    || (self.has_one
                        && value.to_small_integer() == Some(1)
                        && *units == [MeasureUnit::None])
                    || (self.has_none && value.is_zero())
            }
            QuantityReading::Time(minutes, has_half) => self.times.iter().any(|(theirs, half)| {
                minutes == theirs
                    || (!has_half && *half && *minutes < 720 && minutes % 720 == theirs % 720)
            }),
            QuantityReading::Date(date) => {
                let month = (date.day.is_none()).then_some(date.month);
                logs().any(|it| date.matches(it))
                    || self.days.contains(*date)
                    || month.is_some_and(|it| {
                        self.months.contains(&(None, it)) || self.months.contains(&(date.year, it))
                    })
            }
            QuantityReading::DayOfMonth(day) => {
                self.days.days_of_month.contains(day)
                    || self.approximate_days.days_of_month.contains(day)
                    || logs().any(|it| it.day() == *day)
            }
            QuantityReading::DayOffset(0) => self.offsets.is_empty() || self.offsets.contains(&0),
            QuantityReading::DayOffset(offset) => {
                let mut resolved = self.log_days.keys().filter_map(|it| add_days(*it, *offset));
                self.offsets.contains(offset) || resolved.any(|it| self.days.all.contains(&it))
            }
            QuantityReading::Weekday(weekday) => {
                let of = |it: NaiveDate| it.weekday().num_days_from_monday() == *weekday;
                self.weekdays.contains(weekday)
                    || self.days.weekdays.contains(weekday)
                    || (self.weekdays.is_empty() && logs().any(of))
            }
            QuantityReading::Month(month) => {
                let names_no_month = self.months.is_empty() && self.days.is_empty();
                self.months.iter().any(|it| it.1 == *month)
                    || self.days.months.contains(&(None, *month))
                    || (names_no_month && self.log_days.keys().any(|it| it.month() == *month))
            }
            QuantityReading::Step(step, unit) => {
                self.steps.contains(&(*step, *unit)) || !self.steps.contains(&(-step, *unit))
            }
        }
    }
}

impl Quantity {
    /// Returns whether it is the number of several things, such as the items of a cited list.
    pub(super) fn counts(&self, things: usize) -> bool {
        let is_count = |it: &Decimal| {
            it.to_small_integer().is_some_and(|it| usize::try_from(it) == Ok(things))
        };
        things > 1
            && self.readings.iter().any(|it| match it {
                QuantityReading::Number(value, units) => {
                    !units.iter().any(|it| matches!(it, MeasureUnit::Known(_))) && is_count(value)
                }
                _ => false,
            })
    }

    /// Returns whether it only names a day or a period, as "on Monday" does, which fits any line of that day.
    pub(super) fn is_day_word(&self) -> bool {
        self.readings.iter().all(|it| {
            matches!(
                it,
                QuantityReading::DayOffset(_)
                    | QuantityReading::Weekday(_)
                    | QuantityReading::Month(_)
                    | QuantityReading::Step(..)
            )
        })
    }

    fn values(&self) -> impl Iterator<Item = &Decimal> {
        self.readings.iter().filter_map(|it| match it {
            QuantityReading::Number(value, _) => Some(value),
            _ => None,
        })
    }
}
