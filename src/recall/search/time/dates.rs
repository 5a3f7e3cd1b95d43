//! Dates, ranges, and months as people write them in a question: "March 26", "from 2026-03-20 to
//! 2026-03-24", "late April". Pure.

use std::ops::Range;

use chrono::{Datelike as _, NaiveDate, Weekday};

use super::relative::{self, DayRange};
use crate::{
    memory::period::Period,
    text::calendar::{english_month_number, english_weekdays},
};

/// The dates in a question.
#[derive(Default)]
pub(crate) struct DateParser<'w> {
    words: &'w [&'w str],
    today: NaiveDate,
    pub(crate) ranges: Vec<DayRange>,
    /// Days of any year: month and day.
    pub(crate) days: Vec<(u32, u32)>,
    /// Months of any year or of one, and which of their days are meant.
    pub(crate) months: Vec<(Option<i32>, u32, (u32, u32))>,
    pub(crate) weekdays: Vec<Weekday>,
    /// The words that name a day, which are not searched for: a line that cites the day is not of that
    /// day.
    pub(crate) consumed: Vec<Range<usize>>,
}

/// A day or range in a question, and the words that name it.
struct DateMention {
    day: MentionedDays,
    word_range: Range<usize>,
}

#[derive(Clone, Copy)]
enum MentionedDays {
    Range(NaiveDate, NaiveDate),
    /// Days of a month of any year.
    EveryYear(u32, u32, u32),
}

impl MentionedDays {
    /// Returns the days; for days of any year those of the latest one.
    fn latest(self, today: NaiveDate) -> Option<DayRange> {
        match self {
            Self::Range(first, last) => Some((first, last)),
            Self::EveryYear(month, first, last) => {
                let last = latest_occurrence((month, last), today)?;
                Some((last.with_day(first)?, last))
            }
        }
    }
}

impl<'w> DateParser<'w> {
    /// Parses the words of a question, in lower case.
    pub(crate) fn of(words: &'w [&'w str], today: NaiveDate) -> Self {
        let mut reading = Self { words, today, ..Self::default() };
        reading.read();
        reading
    }

    fn read(&mut self) {
        let mut at = 0;
        while let Some(mention) = self.next_mention(&mut at) {
            let begins = mention.word_range.start;
            let stretch = self.range_end(&mention, &mut at);
            let newest = stretch.or_else(|| mention.day.latest(self.today));
            let beside = newest.and_then(|it| relative::adjacent_range(&self.words[..begins], it));
            match (mention.day, stretch, beside) {
                (_, _, Some(days)) | (_, Some(days), None) => self.ranges.push(days),
                (MentionedDays::Range(first, last), ..) => self.ranges.push((first, last)),
                (MentionedDays::EveryYear(month, first, last), ..) => {
                    self.days.extend((first..=last).map(|it| (month, it)));
                }
            }
            self.consumed.push(begins..at);
        }
    }

    /// Returns the range that begins with a day: "from March 26 to April 2".
    fn range_end(&mut self, mention: &DateMention, at: &mut usize) -> Option<DayRange> {
        let is_between = || {
            let before = &self.words[..mention.word_range.start];
            matches!(before.strip_suffix(&["the"]).unwrap_or(before), [.., "between"])
        };
        let is_joined = match *self.words.get(*at)? {
            "to" | "through" | "until" | "till" => true,
            "and" => is_between(),
            _ => false,
        };
        if !is_joined {
            return None;
        }
        let mut to = *at + 1 + usize::from(self.words.get(*at + 1) == Some(&"the"));
        let mut other = Self { words: self.words, today: self.today, ..Self::default() };
        let word = self.words.get(to)?;
        let last = match (mention.day, parse_day(word)) {
            // "between March 20 and 24"
            (MentionedDays::EveryYear(month, ..), Some(day))
                if self.words.get(to + 1).is_none_or(|it| english_month_number(it).is_none()) =>
            {
                to += 1;
                MentionedDays::EveryYear(month, day, day)
            }
            _ => {
                let from = to + usize::from(parse_day(word).is_some());
                to = from;
                other.take_mention(from, &mut to)?.day
            }
        };
        let (_, last) = last.latest(self.today)?;
        let first = match mention.day {
            MentionedDays::Range(first, _) => first,
            MentionedDays::EveryYear(month, first, _) => latest_occurrence((month, first), last)?,
        };
        let is_stretch = first < last;
        if is_stretch {
            *at = to;
        }
        is_stretch.then_some((first, last))
    }

    /// Returns the next mention of days, and records other times before it.
    fn next_mention(&mut self, at: &mut usize) -> Option<DateMention> {
        while *at < self.words.len() {
            let mention = self.take_mention(*at, at);
            if mention.is_some() {
                return mention;
            }
        }
        None
    }

    /// Parses a mention at `from`, and sets `at` to the word after it.
    fn take_mention(&mut self, from: usize, at: &mut usize) -> Option<DateMention> {
        let words = self.words;
        let word = *words.get(from)?;
        *at = from + 1;
        let said = from..*at;
        let two = word.split_at_checked(10).and_then(|(a, b)| Some((a, b.strip_prefix('-')?)));
        let (first, last) = two.unwrap_or((word, word));
        if let Some((first, last)) =
            parse_iso_date(first).zip(parse_iso_date(last)).filter(|it| it.0 <= it.1)
        {
            return Some(DateMention { day: MentionedDays::Range(first, last), word_range: said });
        }
        if let Ok(period) = word.to_uppercase().parse::<Period>() {
            return Some(DateMention {
                day: MentionedDays::Range(period.first(), period.last()),
                word_range: said,
            });
        }
        if let Some(weekday) =
            english_weekdays().iter().position(|it| *it == word || word == format!("{it}s"))
        {
            self.weekdays.extend(Weekday::try_from(u8::try_from(weekday).unwrap_or(0)).ok());
            return None;
        }
        let middle = word.strip_prefix("mid-");
        let month = english_month_number(middle.unwrap_or(word))?;
        let year_of = |at: usize| {
            words.get(at).and_then(|it| it.parse().ok()).filter(|it| (1900..2200).contains(it))
        };
        // "March 26, 2026", "March 26-28", "26 March 2026"
        let after = words.get(from + 1).and_then(|it| parse_day_range(it));
        let before = from.checked_sub(1).and_then(|it| parse_day_range(words[it]));
        if let Some((first, last)) = after.or(before) {
            *at += usize::from(after.is_some());
            let begin = from - usize::from(after.is_none());
            let year = year_of(*at);
            let date = |day| NaiveDate::from_ymd_opt(year?, month, day);
            let day =
                date(first).zip(date(last)).map(|(first, last)| MentionedDays::Range(first, last));
            *at += usize::from(year.is_some());
            let day = day.unwrap_or(MentionedDays::EveryYear(month, first, last));
            return Some(DateMention { day, word_range: begin..*at });
        }
        // `may` alone is a verb more often than a month.
        let is_month = word != "may"
            || from.checked_sub(1).is_some_and(|it| {
                ["in", "of", "last", "this", "early", "late", "mid"].contains(&words[it])
            });
        if is_month {
            let before = if middle.is_some() { &["mid"][..] } else { &words[..from] };
            let (part, count) = part_of_month(before);
            let is_last = words[..from].ends_with(&["last"]);
            if middle.is_none() {
                self.consumed.push(from - count.max(usize::from(is_last))..from);
            }
            let said = is_last.then(|| relative::year_of_month(month, true, self.today));
            self.months.push((year_of(from + 1).or(said), month, part));
        }
        None
    }
}

/// Returns the latest date of a day of any year.
pub(super) fn latest_occurrence((month, day): (u32, u32), today: NaiveDate) -> Option<NaiveDate> {
    /// Leap years are at most this far apart.
    const YEARS_MAX: i32 = 8;
    let years = (0..=YEARS_MAX).map(|it| today.year() - it);
    let mut dates = years.filter_map(|it| NaiveDate::from_ymd_opt(it, month, day));
    dates.find(|it| *it <= today)
}

/// All days of a month.
const WHOLE_MONTH: (u32, u32) = (1, 31);

/// Returns which days of a month the words before its name mean ("early", "late", "the end of"), and
/// how many words that are.
fn part_of_month(before: &[&str]) -> ((u32, u32), usize) {
    let mut last = before.iter().rev().take(2).zip(1..);
    last.find_map(|(word, count)| {
        let part = match *word {
            "early" | "beginning" | "start" => (1, 10),
            "mid" | "middle" => (11, 20),
            "late" | "end" => (21, 31),
            _ => return None,
        };
        Some((part, count))
    })
    .unwrap_or((WHOLE_MONTH, 0))
}

pub(crate) fn parse_iso_date(word: &str) -> Option<NaiveDate> {
    (word.len() == 10).then(|| NaiveDate::parse_from_str(word, "%Y-%m-%d").ok()).flatten()
}

/// Reads a day of a month, or some in a row: `26`, `26-28`.
fn parse_day_range(word: &str) -> Option<(u32, u32)> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let days = parse_day(first).zip(parse_day(last));
    days.filter(|(first, last)| first <= last)
}

/// Reads a day of a month: `26`, `3rd`.
fn parse_day(word: &str) -> Option<u32> {
    let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ending = &word[digits.len()..];
    let fits = ["", "st", "nd", "rd", "th"].contains(&ending) && digits.len() <= 2;
    digits.parse().ok().filter(|it| fits && (1..=31).contains(it))
}
