//! Numbers, amounts, days, and times, by what they say and not by how they are written.
//!
//! `$420M` is `$420 million`, `6:30 AM` is `6:30`, `Apr 2` is `2026-04-02`, "three" is 3, and "tomorrow"
//! is the day after the log's. What can be read in two ways (`1.180`, `02.03.`) has two readings, and one
//! that stands in the lines is enough. A unit counts: 15 s are no 15 ms, and 41% are no 41.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::LazyLock,
};

use chrono::{Datelike as _, NaiveDate};

use crate::{
    memory::atom,
    text::{
        calendar,
        lexicon::{CALENDAR, HEDGING, QUANTITIES},
        words,
    },
};

/// A number, without regard to how it is written: digits, and how many zeros or decimals follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i32,
}

/// What a number is a number of.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MeasureUnit {
    None,
    /// The place of its spellings in [`unit_spellings`].
    Known(usize),
    /// Letters behind the number that are no unit.
    Other(String),
}

/// A day or a month, as far as it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PartialDate {
    year: Option<i32>,
    month: u32,
    day: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum QuantityReading {
    Number(Decimal, Vec<MeasureUnit>),
    /// Minutes of the day, and whether the half of the day is told.
    Time(u32, bool),
    Date(PartialDate),
    /// A day of this month, or of one beside it.
    DayOfMonth(u32),
    /// Days from the log's own.
    DayOffset(i64),
    Weekday(u32),
    Month(u32),
    /// The one before or after: of a week, a month, a year.
    Step(i64, usize),
}

/// Days, to be asked by what is told of one.
#[derive(Default)]
struct DaySet {
    all: BTreeSet<NaiveDate>,
    /// Month and day.
    month_days: HashSet<(u32, u32)>,
    /// Year and month, and months of any year.
    months: HashSet<(Option<i32>, u32)>,
    days_of_month: HashSet<u32>,
    weekdays: HashSet<u32>,
}

impl DaySet {
    fn insert(&mut self, day: NaiveDate) {
        self.all.insert(day);
        self.month_days.insert((day.month(), day.day()));
        self.months.extend([(Some(day.year()), day.month()), (None, day.month())]);
        self.days_of_month.insert(day.day());
        self.weekdays.insert(day.weekday().num_days_from_monday());
    }

    fn extend(&mut self, days: impl IntoIterator<Item = NaiveDate>) {
        for day in days {
            self.insert(day);
        }
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn contains(&self, date: PartialDate) -> bool {
        match (date.year, date.day) {
            (_, None) => self.months.contains(&(date.year, date.month)),
            (None, Some(day)) => self.month_days.contains(&(date.month, day)),
            (Some(year), Some(day)) => NaiveDate::from_ymd_opt(year, date.month, day)
                .is_some_and(|it| self.all.contains(&it)),
        }
    }
}

/// A place in a text that says how many, how much, or when.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    pub(super) start: usize,
    pub(super) end: usize,
    readings: Vec<QuantityReading>,
    /// What it counts: the first letters of the words behind it.
    counted_nouns: Vec<String>,
    /// Whether nothing is asked of it in an item: it may be another word of another language.
    pub(super) is_ambiguous: bool,
}

/// What lines say of numbers and days.
#[derive(Default)]
pub(super) struct SourceQuantities {
    numbers: HashMap<Decimal, Vec<MeasureUnit>>,
    /// What each number counts, place by place, and the numbers of each thing.
    nouns_by_number: HashMap<Decimal, BTreeSet<String>>,
    numbers_by_noun: HashMap<String, HashSet<Decimal>>,
    times: BTreeSet<(u32, bool)>,
    /// Days that are told, relative ones resolved.
    days: DaySet,
    /// Days that a day of the week may mean, and those of a week that is told of.
    approximate_days: DaySet,
    months: BTreeSet<(Option<i32>, u32)>,
    weekdays: BTreeSet<u32>,
    offsets: BTreeSet<i64>,
    steps: BTreeSet<(i64, usize)>,
    /// The days of the logs, and whether a line only speaks of another day.
    log_days: HashMap<NaiveDate, bool>,
    has_one: bool,
    has_none: bool,
}

impl SourceQuantities {
    /// Reads a line of the log of a day.
    pub(super) fn read(&mut self, date: NaiveDate, text: &str) {
        let found = find_quantities(text);
        let mut elsewhere = false;
        let mut here = false;
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
                    }
                    QuantityReading::Time(minutes, half) => {
                        self.times.insert((*minutes, *half));
                    }
                    QuantityReading::Date(told) => self.add_date(date, *told),
                    QuantityReading::DayOfMonth(day) => self.add_day_of_month(date, *day),
                    QuantityReading::DayOffset(offset) => {
                        here |= *offset == 0;
                        elsewhere |= *offset != 0;
                        self.offsets.insert(*offset);
                        self.days.extend(add_days(date, *offset));
                    }
                    QuantityReading::Weekday(weekday) => {
                        self.weekdays.insert(*weekday);
                        // Next Friday may be the one after the first.
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
        *self.log_days.entry(date).or_insert(true) &= elsewhere && !here;
        for word in words::lowercase_runs(text) {
            self.has_one |=
                ["one", "single", "ein", "eine", "einen", "einer", "einmal", "une", "un", "una"]
                    .contains(&&word[..]);
            self.has_none |=
                ["no", "none", "nothing", "zero", "kein", "keine", "nichts", "aucun", "ningún"]
                    .contains(&&word[..]);
        }
    }

    /// Says `in two weeks`, `three days ago`.
    fn add_day_count(
        &mut self,
        date: NaiveDate,
        value: &Decimal,
        units: &[MeasureUnit],
        text: &str,
        quantity: &Quantity,
    ) {
        let Some(count) = value.to_small_integer() else { return };
        let is = |name: &str| units.contains(&unit_of(name));
        let Some(days) = [("day", 1), ("week", 7)].iter().find(|it| is(it.0)).map(|it| it.1) else {
            return;
        };
        let before = text[..quantity.start].trim_end().to_lowercase();
        let after = text[quantity.end..].trim_start().to_lowercase();
        let back = after.starts_with("ago") || before.ends_with("vor") || before.ends_with("for");
        let offset = count * days * if back { -1 } else { 1 };
        self.approximate_days.extend(add_days(date, offset));
    }

    fn add_date(&mut self, log: NaiveDate, told: PartialDate) {
        let Some(day) = told.day else {
            self.months.insert((told.year, told.month));
            return;
        };
        let years = told.year.map_or_else(|| log.year() - 1..=log.year() + 1, |it| it..=it);
        let all = years.filter_map(|it| NaiveDate::from_ymd_opt(it, told.month, day));
        // Without a year, the nearest one is meant.
        self.days.extend(all.min_by_key(|it| (*it - log).num_days().abs()));
    }

    fn add_day_of_month(&mut self, log: NaiveDate, day: u32) {
        for months in -1..=1_i32 {
            let month = i32::try_from(log.month0()).unwrap_or(0) + months;
            let (year, month) = (log.year() + month.div_euclid(12), month.rem_euclid(12));
            let month = u32::try_from(month).unwrap_or(0) + 1;
            self.approximate_days.extend(NaiveDate::from_ymd_opt(year, month, day));
        }
    }

    /// Returns the first place of an item that the lines do not bear out. `is_apart` tells what is no
    /// number of its own, as those in an address are.
    pub(super) fn first_unsupported(
        &self,
        item: &[Quantity],
        is_apart: impl Fn(&Quantity) -> bool,
    ) -> Option<(usize, usize)> {
        let asked = item.iter().filter(|it| !it.is_ambiguous && !is_apart(it));
        // Where the lines speak of another day, the log's own counts beside one that they tell.
        let tells = item.iter().flat_map(|it| &it.readings).any(|it| match it {
            QuantityReading::Date(date) => {
                self.days.contains(*date) || self.approximate_days.contains(*date)
            }
            QuantityReading::DayOffset(offset) => self.offsets.contains(offset),
            QuantityReading::Weekday(weekday) => self.weekdays.contains(weekday),
            _ => false,
        });
        // Beside a day of the week that the item keeps, a date is another day, but for "Friday, 2 May".
        let keeps_day = item
            .iter()
            .flat_map(|it| &it.readings)
            .any(|it| matches!(it, QuantityReading::Weekday(_)));
        let mut before: Option<&Quantity> = None;
        let mut follows = HashSet::new();
        for quantity in item {
            let is_day = |it: &Quantity| matches!(it.readings[..], [QuantityReading::Weekday(_)]);
            if before.is_some_and(|it| is_day(it) && quantity.start.saturating_sub(it.end) <= 5) {
                follows.insert(quantity.start);
            }
            before = Some(quantity);
        }
        let stands = |it: &Quantity| {
            it.readings.iter().any(|reading| match reading {
                QuantityReading::Date(date) if date.day.is_some() => {
                    let near = !keeps_day || follows.contains(&it.start);
                    self.supports(reading, tells) || (near && self.approximate_days.contains(*date))
                }
                reading => self.supports(reading, tells),
            })
        };
        let missing = asked.into_iter().find(|it| !stands(it) || self.counts_something_else(it));
        missing.map(|it| (it.start, it.end))
    }

    /// Whether the number stands in the lines for other things alone, and its own thing with another
    /// number: "three stations" of "two stations in three weeks".
    fn counts_something_else(&self, quantity: &Quantity) -> bool {
        let Some(first) = quantity.counted_nouns.first() else { return false };
        let mut values = quantity.values().peekable();
        if values.peek().is_none() {
            return false;
        }
        values.all(|value| {
            let Some(theirs) = self.nouns_by_number.get(value) else { return false };
            let other = self.numbers_by_noun.get(first).is_some_and(|it| !it.contains(value));
            let same =
                theirs.contains("") || quantity.counted_nouns.iter().any(|it| theirs.contains(it));
            other && !same
        })
    }

    fn supports(&self, reading: &QuantityReading, tells: bool) -> bool {
        let logs = || self.log_days.iter().filter(|it| tells || !*it.1).map(|it| *it.0);
        match reading {
            QuantityReading::Number(value, units) => {
                let theirs = self.numbers.get(value).map_or(&[][..], Vec::as_slice);
                // Told with another unit somewhere, it is not told without one for this.
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
                    || (self.has_one
                        && value.to_small_integer() == Some(1)
                        && *units == [MeasureUnit::None])
                    || (self.has_none && value.digits.is_empty())
            }
            QuantityReading::Time(minutes, told) => self.times.iter().any(|(theirs, half)| {
                minutes == theirs
                    || (!told && *half && *minutes < 720 && minutes % 720 == theirs % 720)
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
                let untold = self.months.is_empty() && self.days.is_empty();
                self.months.iter().any(|it| it.1 == *month)
                    || self.days.months.contains(&(None, *month))
                    || (untold && self.log_days.keys().any(|it| it.month() == *month))
            }
            QuantityReading::Step(step, unit) => {
                self.steps.contains(&(*step, *unit)) || !self.steps.contains(&(-step, *unit))
            }
        }
    }
}

impl Quantity {
    fn values(&self) -> impl Iterator<Item = &Decimal> {
        self.readings.iter().filter_map(|it| match it {
            QuantityReading::Number(value, _) => Some(value),
            _ => None,
        })
    }
}

impl PartialDate {
    fn matches(self, day: NaiveDate) -> bool {
        day.month() == self.month
            && self.day.is_none_or(|it| it == day.day())
            && self.year.is_none_or(|it| it == day.year())
    }
}

impl MeasureUnit {
    /// Whether a number of this unit, in an item, says what one of their unit says in a line.
    fn is_compatible_with(&self, theirs: &Self) -> bool {
        let percent = unit_of("%");
        match (self, theirs) {
            (Self::None, it) => *it != percent,
            (Self::Known(at), Self::None | Self::Other(_)) => *at >= QUANTITIES.units.strict.len(),
            (Self::Other(_), Self::None) => true,
            (a, b) if a == b => true,
            (Self::Known(_), Self::Known(_)) => {
                let (grades, degrees) = (unit_of("°"), [unit_of("°c"), unit_of("°f")]);
                (*self == grades && degrees.contains(theirs))
                    || (*theirs == grades && degrees.contains(self))
            }
            _ => false,
        }
    }
}

impl Decimal {
    /// Reads digits with at most one mark for decimals in them.
    fn of(text: &str, negative: bool) -> Self {
        let (whole, part) = text.split_once(['.', ',']).unwrap_or((text, ""));
        let all = format!("{whole}{part}");
        let digits = all.trim_start_matches('0');
        let short = digits.trim_end_matches('0');
        let zeros = i32::try_from(digits.len() - short.len()).unwrap_or(0);
        let decimals = i32::try_from(part.len()).unwrap_or(0);
        let exponent = if short.is_empty() { 0 } else { zeros - decimals };
        Self { negative: negative && !short.is_empty(), digits: short.to_owned(), exponent }
    }

    fn scale_by_ten(mut self, zeros: i32) -> Self {
        if !self.digits.is_empty() {
            self.exponent += zeros;
        }
        self
    }

    /// Returns it as a small whole number.
    fn to_small_integer(&self) -> Option<i64> {
        if self.negative || !(0..4).contains(&self.exponent) || self.digits.len() > 6 {
            return None;
        }
        let digits: i64 = self.digits.parse().ok()?;
        Some(digits * 10_i64.pow(u32::try_from(self.exponent).ok()?))
    }
}

fn add_days(date: NaiveDate, days: i64) -> Option<NaiveDate> {
    let count = chrono::Days::new(days.unsigned_abs());
    if days < 0 { date.checked_sub_days(count) } else { date.checked_add_days(count) }
}

/// Returns the spellings of each unit: first percent, then money, then all others.
fn unit_spellings() -> impl Iterator<Item = &'static Vec<&'static str>> {
    QUANTITIES.units.strict.iter().chain(&QUANTITIES.units.lenient)
}

/// Returns whether a word is a unit.
pub(super) fn is_unit(word: &str) -> bool {
    UNITS.contains_key(word)
}

/// Units by their spellings.
static UNITS: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let all = unit_spellings().enumerate();
    all.flat_map(|(at, spellings)| spellings.iter().map(move |it| (*it, at))).collect()
});

/// Numbers by their words.
static NUMBERS: LazyLock<HashMap<&'static str, u32>> = LazyLock::new(|| {
    let all = QUANTITIES.numbers.values().flatten();
    all.map(|(word, value)| (*word, *value)).collect()
});

/// Words that name a day, by what they say.
static DAYS: LazyLock<HashMap<&'static str, DayWord>> = LazyLock::new(|| {
    let weekdays = weekdays().map(|(name, day)| (name, DayWord::Weekday(day)));
    let offsets = CALENDAR.relative_days.values().flatten();
    let offsets = offsets.map(|(word, days)| (*word, DayWord::Offset(*days)));
    let steps = CALENDAR.period_steps.values().flatten();
    let steps = steps.map(|(word, step)| (*word, DayWord::Step(*step)));
    weekdays.chain(offsets).chain(steps).collect()
});

/// Returns the names of weekdays in the languages whose relative days are known, too: a weekday of another
/// language is a name like any other.
pub(super) fn weekdays() -> impl Iterator<Item = (&'static str, u32)> {
    calendar::weekdays_of(&["en", "de", "fr", "es", "it"])
}

#[derive(Clone, Copy)]
enum DayWord {
    Weekday(u32),
    Offset(i64),
    Step(i64),
}

fn unit_of(name: &str) -> MeasureUnit {
    UNITS.get(name).map_or(MeasureUnit::None, |it| MeasureUnit::Known(*it))
}

/// Returns the ways in which digits with marks between them can be read.
fn decimal_readings(run: &str, negative: bool) -> Vec<Decimal> {
    let marks: Vec<char> = run.chars().filter(|it| !it.is_ascii_digit()).collect();
    let joined = |mark: char| run.replace(mark, "");
    match marks[..] {
        [] => vec![Decimal::of(run, negative)],
        [mark] => {
            let (whole, part) = run.split_once(mark).unwrap_or((run, ""));
            let groups = part.len() == 3 && whole.len() <= 3 && whole != "0";
            let mut all = vec![Decimal::of(run, negative)];
            if groups {
                all.push(Decimal::of(&joined(mark), negative));
            }
            all
        }
        [first, .., last] if first != last => {
            // `1,200.50` and `1.200,50`
            if marks.iter().filter(|it| **it == last).count() > 1 {
                return Vec::new();
            }
            vec![Decimal::of(&joined(first), negative)]
        }
        [mark, ..] => {
            let mut groups = run.split(mark);
            let head = groups.next().is_some_and(|it| it.len() <= 3);
            if head && groups.all(|it| it.len() == 3) {
                vec![Decimal::of(&joined(mark), negative)]
            } else {
                Vec::new()
            }
        }
    }
}

/// Finds what says how many, how much, or when.
pub(super) fn find_quantities(text: &str) -> Vec<Quantity> {
    let mut scan = QuantityScanner { text, found: Vec::new() };
    let mut at = 0;
    // Dates are found by those who know their many forms.
    let dates = atom::find_atoms(text);
    let mut dates = dates.iter().filter(|it| it.kind == atom::AtomKind::Date).peekable();
    while at < text.len() {
        if let Some(date) = dates.next_if(|it| it.start <= at)
            && date.start == at
        {
            let readings = PartialDate::parse(&date.norm(text))
                .map(QuantityReading::Date)
                .into_iter()
                .collect();
            scan.push(date.start, date.end, readings, false);
            at = date.end;
            continue;
        }
        at = scan.scan_at(at);
    }
    scan.share_units();
    scan.read_counted_nouns();
    scan.found
}

impl PartialDate {
    /// Reads the normal form of an atom.
    fn parse(norm: &str) -> Option<Self> {
        if let Some(rest) = norm.strip_prefix("--") {
            let (month, day) = rest.split_once('-')?;
            return Some(Self { year: None, month: month.parse().ok()?, day: day.parse().ok() });
        }
        let mut parts = norm.split('-');
        let year = parts.next()?.parse().ok();
        let month = parts.next()?.parse().ok()?;
        Some(Self { year, month, day: parts.next().and_then(|it| it.parse().ok()) })
    }
}

struct QuantityScanner<'t> {
    text: &'t str,
    found: Vec<Quantity>,
}

impl QuantityScanner<'_> {
    fn push(&mut self, start: usize, end: usize, readings: Vec<QuantityReading>, is_unsure: bool) {
        if !readings.is_empty() {
            self.found.push(Quantity {
                start,
                end,
                readings,
                counted_nouns: Vec::new(),
                is_ambiguous: is_unsure,
            });
        }
    }

    fn scan_at(&mut self, at: usize) -> usize {
        let Some(c) = self.text[at..].chars().next() else { return self.text.len() };
        if c.is_ascii_digit() {
            return self.read_number(at);
        }
        if c.is_alphabetic() {
            return self.read_word(at);
        }
        at + c.len_utf8()
    }

    fn word_end(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
    }

    /// Reads digits, and what stands around them.
    fn read_number(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut end = at;
        while let Some(byte) = bytes.get(end) {
            let joins = matches!(byte, b'.' | b',' | b':')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            if !byte.is_ascii_digit() && !joins {
                break;
            }
            end += 1;
        }
        let run = &self.text[at..end];
        let mut start = at;
        let mut before = self.text[..at].chars().rev();
        let (last, before_last) = (before.next(), before.next());
        let opens = |it: Option<char>| it.is_none_or(|c| !c.is_alphanumeric() && c != ')');
        let negative = matches!(last, Some('-' | '−')) && opens(before_last);
        let mut readings = Vec::new();
        if run.contains(':') {
            let end = self.read_time(start, end, &mut readings);
            self.push(start, end, readings, false);
            return end;
        }
        if let Some(date) = parse_dotted_date(run, bytes.get(end) == Some(&b'.')) {
            readings.push(QuantityReading::Date(date));
        }
        let (ahead, sign) = self.currency_before(at);
        if sign != MeasureUnit::None {
            start = ahead;
        }
        let (after, zeros, unit) = self.read_unit(end, sign != MeasureUnit::None);
        let unit = if unit == MeasureUnit::None { sign } else { unit };
        let uhr = unit_of("uhr");
        let half =
            unit == MeasureUnit::Other("am".into()) || unit == MeasureUnit::Other("pm".into());
        if half || unit == uhr {
            let hour: u32 = run.parse().unwrap_or(99);
            let is_pm = unit == MeasureUnit::Other("pm".into());
            if let Some(minutes) = minute_of_day(hour, 0, half.then_some(is_pm)) {
                readings.push(QuantityReading::Time(minutes, half));
            }
        }
        if !half {
            if ["st", "nd", "rd", "th"].iter().any(|it| unit == MeasureUnit::Other((*it).into()))
                && let Ok(day) = run.parse()
            {
                readings.push(QuantityReading::DayOfMonth(day));
            }
            let mut all = decimal_readings(run, negative);
            // `14.800k` is no 14,800.
            if zeros == 3 && all.len() > 1 {
                all.remove(0);
            }
            let whole = all.into_iter().map(|it| it.scale_by_ten(zeros));
            readings.extend(whole.map(|it| QuantityReading::Number(it, vec![unit.clone()])));
        }
        // A version, which only stands as it is written.
        if readings.is_empty() {
            let digits = run.to_owned();
            let decimal = Decimal { negative: false, digits, exponent: 0 };
            readings.push(QuantityReading::Number(decimal, vec![unit]));
        }
        self.push(start, after, readings, false);
        after
    }

    /// Reads `6:30`, `14:05 Uhr`, `6:30 PM`.
    fn read_time(&self, at: usize, end: usize, readings: &mut Vec<QuantityReading>) -> usize {
        let run = &self.text[at..end];
        let mut parts = run.split(':');
        let hour = parts.next().and_then(|it| it.parse().ok()).unwrap_or(99);
        let minute = parts.next().and_then(|it| it.parse().ok()).unwrap_or(99);
        let rest = &self.text[end..];
        let word = rest.trim_start_matches([' ', '\u{a0}']);
        let gap = rest.len() - word.len();
        let mut close = end;
        let mut is_pm = None;
        for (name, pm) in [
            ("am", Some(false)),
            ("pm", Some(true)),
            ("a.m", Some(false)),
            ("p.m", Some(true)),
            ("uhr", None),
        ] {
            let starts = word.get(..name.len()).is_some_and(|it| it.eq_ignore_ascii_case(name));
            let ends = || word[name.len()..].chars().next();
            if gap <= 1 && starts && ends().is_none_or(|c| !c.is_alphanumeric()) {
                close = end + gap + name.len();
                is_pm = pm;
            }
        }
        match minute_of_day(hour, minute, is_pm) {
            Some(minutes) if parts.next().is_none() => {
                readings.push(QuantityReading::Time(minutes, is_pm.is_some()));
            }
            // A ratio, or a time with seconds.
            _ => {
                let digits = run.to_owned();
                let decimal = Decimal { negative: false, digits, exponent: 0 };
                readings.push(QuantityReading::Number(decimal, vec![MeasureUnit::None]));
            }
        }
        close
    }

    fn currency_before(&self, at: usize) -> (usize, MeasureUnit) {
        let head = &self.text[..at];
        let head = head.strip_suffix([' ', '\u{a0}']).unwrap_or(head);
        let cut = head
            .rfind(|c: char| !c.is_ascii_alphabetic())
            .map_or(0, |it| it + head[it..].chars().next().map_or(1, char::len_utf8));
        let word = &head[cut..];
        let sign = head.chars().next_back().map(String::from).unwrap_or_default();
        let is_money = |it: &MeasureUnit| matches!(it, MeasureUnit::Known(at) if (1..QUANTITIES.units.strict.len()).contains(at));
        if word.is_empty() {
            let unit = unit_of(&sign);
            if is_money(&unit) {
                return (head.len() - sign.len(), unit);
            }
        } else if word.len() == 3 {
            let unit = unit_of(&word.to_lowercase());
            if is_money(&unit) {
                return (cut, unit);
            }
        }
        (at, MeasureUnit::None)
    }

    /// Reads what a number is of: where that ends, by how many zeros it is larger, and the unit.
    fn read_unit(&self, at: usize, is_money: bool) -> (usize, i32, MeasureUnit) {
        let token = |from: usize| {
            let rest = &self.text[from..];
            let is_part = |c: char| c.is_alphabetic() || "%°µ/²³€$£¥₹₩₽٪％'".contains(c);
            from + rest.find(|c| !is_part(c)).unwrap_or(rest.len())
        };
        let gap = |from: usize| {
            let rest = &self.text[from..];
            let space =
                rest.chars().next().filter(|it| matches!(it, ' ' | '\u{a0}' | '\u{202f}' | '-'));
            from + space.map_or(0, char::len_utf8)
        };
        let (mut end, mut zeros) = (at, 0);
        let mut from = gap(at);
        let mut glued = from == at;
        let word = &self.text[from..token(from)];
        // `9.7K` and `3M`, but `3 m`, and `3B` is three bytes to nobody.
        let letter = ["k", "K", "M", "B"].contains(&word) || (is_money && word == "m");
        if glued && letter {
            zeros = match word {
                "k" | "K" => 3,
                "B" => 9,
                _ => 6,
            };
            end = token(from);
        } else {
            let lower = word.trim_end_matches('.').to_lowercase();
            if let Some(more) = QUANTITIES.magnitudes.get(&lower[..]) {
                zeros = *more;
                end = token(from);
            }
        }
        if zeros > 0 {
            from = gap(end);
            glued = from == end;
        }
        let close = token(from);
        let word = &self.text[from..close];
        if word.is_empty() {
            return (end, zeros, MeasureUnit::None);
        }
        let mut lower = word.to_lowercase();
        if lower == "per" && self.text[close..].starts_with(" cent") {
            return (close + 5, zeros, unit_of("%"));
        }
        // A mark alone, as in `41%/s`.
        let mut unit = unit_of(&lower);
        if unit == MeasureUnit::None
            && let Some((head, _)) = lower.split_once('/')
        {
            let len = head.len();
            unit = unit_of(head);
            lower.truncate(len);
        }
        // `5 s` is a time, `5 S` is not.
        let is_letter = lower.chars().count() == 1 && lower.chars().all(char::is_alphabetic);
        let odd = is_letter && !glued && word.chars().next().is_some_and(char::is_uppercase);
        // `2 g0` is no weight: the letter belongs to a name.
        let odd = odd || (!glued && self.text[close..].starts_with(|c: char| c.is_ascii_digit()));
        match unit {
            MeasureUnit::Known(_) if !odd => (close.min(from + lower.len()), zeros, unit),
            _ if lower == "am" || lower == "pm" => (close, zeros, MeasureUnit::Other(lower)),
            _ if glued && zeros == 0 => (close, zeros, MeasureUnit::Other(lower)),
            _ => (end, zeros, MeasureUnit::None),
        }
    }

    /// Reads a word that may be a number or a day.
    fn read_word(&mut self, at: usize) -> usize {
        let end = self.word_end(at);
        let raw = &self.text[at..end];
        // `v2.1`: the number in it is told by lines, and an item's is an atom of its own.
        if let Some(digits) =
            raw.strip_prefix(['v', 'V']).filter(|it| it.starts_with(|c: char| c.is_ascii_digit()))
        {
            let from = end - digits.len();
            let close = self.read_number(from);
            if let Some(last) = self.found.last_mut() {
                last.is_ambiguous = true;
            }
            return close;
        }
        let word = raw.to_lowercase();
        if let Some(&value) = NUMBERS.get(&word[..]) {
            let mut value = value;
            let mut close = end;
            if value >= 20 && self.text[end..].starts_with('-') {
                let next = self.word_end(end + 1);
                let ones = self.text[end + 1..next].to_lowercase();
                let ones = NUMBERS.get(&ones[..]).copied();
                let ones =
                    ones.or((self.text[end + 1..next].eq_ignore_ascii_case("one")).then_some(1));
                if let Some(ones) = ones.filter(|it| *it < 10) {
                    value += ones;
                    close = next;
                }
            }
            let (after, zeros, unit) = self.read_unit(close, false);
            let decimal = Decimal::of(&value.to_string(), false).scale_by_ten(zeros);
            let mut readings = vec![QuantityReading::Number(decimal, vec![unit.clone()])];
            if unit == unit_of("uhr")
                && let Some(minutes) = minute_of_day(value, 0, None)
            {
                readings.push(QuantityReading::Time(minutes, false));
            }
            let is_unsure =
                QUANTITIES.ambiguous_numbers.contains(&&word[..]) && unit == MeasureUnit::None;
            self.push(at, after, readings, is_unsure);
            return after;
        }
        let told = DAYS.get(&word[..]).copied();
        if let Some(DayWord::Weekday(day)) = told {
            self.push(at, end, vec![QuantityReading::Weekday(day)], false);
            return end;
        }
        let is_noun = raw == "Morgen" || raw == "Gestern";
        if let Some(DayWord::Offset(offset)) = told
            && !is_noun
        {
            let is_unsure = CALENDAR.ambiguous_days.contains(&&word[..]);
            self.push(at, end, vec![QuantityReading::DayOffset(offset)], is_unsure);
            return end;
        }
        if let Some(DayWord::Step(step)) = told
            && self.text[end..].starts_with(' ')
        {
            let close = self.word_end(end + 1);
            let what = unit_of(&self.text[end + 1..close].to_lowercase());
            if let MeasureUnit::Known(unit) = what
                && ["week", "month", "year"].iter().any(|it| what == unit_of(it))
            {
                self.push(at, close, vec![QuantityReading::Step(step, unit)], false);
                return close;
            }
            return end;
        }
        let named =
            raw.starts_with(char::is_uppercase) && (raw.chars().count() > 3 || raw == "May");
        // `May` may open a sentence, and so may `March`.
        let opens = self.text[..at].trim_end().is_empty()
            || self.text[..at].trim_end().ends_with(['.', ':', '!', '?', ';']);
        if named
            && !(opens && ["May", "March"].contains(&raw))
            && let Some(month) = calendar::month_number(&word)
        {
            self.push(at, end, vec![QuantityReading::Month(month)], false);
        }
        end
    }

    /// Reads what numbers count.
    fn read_counted_nouns(&mut self) {
        const WORDS: usize = 3;
        const STEM: usize = 4;
        let stops: Vec<usize> = self.found.iter().skip(1).map(|it| it.start).collect();
        for (at, quantity) in self.found.iter_mut().enumerate() {
            let unit = quantity.readings.iter().find_map(|it| match it {
                QuantityReading::Number(_, units) => Some(units.iter().find_map(|it| match it {
                    MeasureUnit::Known(at) => unit_spellings().nth(*at).map(|it| it[0].to_owned()),
                    _ => None,
                })),
                _ => None,
            });
            let Some(unit) = unit else { continue };
            if let Some(unit) = unit {
                quantity.counted_nouns.push(unit);
                continue;
            }
            let stop = stops.get(at).copied().unwrap_or(self.text.len());
            let rest = &self.text[quantity.end.min(stop)..stop];
            if !rest.starts_with([' ', '\u{a0}']) {
                continue;
            }
            for word in rest.split(' ').skip(1).take(WORDS) {
                let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
                let lower = bare.to_lowercase();
                let counts = lower.chars().count() > 2
                    && lower.chars().all(char::is_alphabetic)
                    && !HEDGING.stop_words.contains(&&lower[..]);
                if !counts || !word.starts_with(char::is_alphanumeric) {
                    break;
                }
                quantity.counted_nouns.push(lower.chars().take(STEM).collect());
                if bare.len() < word.len() {
                    break;
                }
            }
        }
    }

    /// In `3 to 5 GB` both are GB.
    fn share_units(&mut self) {
        const BETWEEN: &[&str] = &[
            "-", "–", "—", " - ", " – ", " to ", " bis ", " and ", " und ", " or ", " oder ", ", ",
            "/", " x ", " à ",
        ];
        for at in (1..self.found.len()).rev() {
            let between =
                &self.text[self.found[at - 1].end.min(self.found[at].start)..self.found[at].start];
            if !BETWEEN.contains(&between) {
                continue;
            }
            let theirs = self.found[at].readings.iter().find_map(|it| match it {
                QuantityReading::Number(_, units) => {
                    units.iter().find(|it| **it != MeasureUnit::None).cloned()
                }
                _ => None,
            });
            let Some(unit) = theirs else { continue };
            for reading in &mut self.found[at - 1].readings {
                if let QuantityReading::Number(_, units) = reading
                    && units == &[MeasureUnit::None]
                {
                    units.push(unit.clone());
                }
            }
        }
    }
}

/// Returns the minute of the day.
fn minute_of_day(hour: u32, minute: u32, is_pm: Option<bool>) -> Option<u32> {
    let hour = match is_pm {
        Some(_) if !(1..=12).contains(&hour) => return None,
        Some(pm) => hour % 12 + if pm { 12 } else { 0 },
        None => hour,
    };
    (hour < 24 && minute < 60).then_some(hour * 60 + minute)
}

/// Reads `02.03.2026`, `2.3.26`, and, before a dot, `02.03`.
fn parse_dotted_date(run: &str, dot: bool) -> Option<PartialDate> {
    let parts: Vec<&str> = run.split('.').collect();
    let (day, month, year) = match parts[..] {
        [day, month] if dot && !run.contains(',') => (day, month, None),
        [day, month, year] if year.len() == 4 => (day, month, year.parse().ok()),
        [day, month, year] if year.len() == 2 => {
            (day, month, year.parse().ok().map(|it: i32| 2000 + it))
        }
        _ => return None,
    };
    let (day, month): (u32, u32) = (day.parse().ok()?, month.parse().ok()?);
    let real = (1..=31).contains(&day) && (1..=12).contains(&month);
    real.then_some(PartialDate { year, month, day: Some(day) })
}
