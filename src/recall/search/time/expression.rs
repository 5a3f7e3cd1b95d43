//! The times that a question names. Pure.
//!
//! A day without a year is that day of each year; relative times count from `today`.

use std::ops::Range;

use chrono::{Datelike as _, NaiveDate, Weekday};

use super::{
    dates::{DateParser, parse_iso_date},
    event::EventReference,
    relative::{self, DayRange},
};
use crate::{
    memory::period::Period,
    text::{
        calendar::{english_month_number, english_weekdays},
        lexicon::SEARCH,
        words,
    },
};

/// How far from a named day, in days, a line still gains score.
const GAIN_REACH_DAYS: f64 = 14.0;

/// A shorter range is searched day by day.
const SHORT_RANGE_DAYS_MAX: i64 = 32;

/// The times in a question.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TimeExpression {
    /// Named days and ranges, each from its first to its last day.
    ranges: Vec<DayRange>,
    /// Long ranges, whose days are not searched one by one.
    long_ranges: Vec<DayRange>,
    /// Days of any year: month and day.
    days: Vec<(u32, u32)>,
    /// Months of any year or of one, and which of their days are meant.
    months: Vec<(Option<i32>, u32, (u32, u32))>,
    weekdays: Vec<Weekday>,
    /// The event that dates the question, and its days once they are known.
    pub(crate) event: Option<EventReference>,
    event_days: Option<DayRange>,
    /// Ranges relative to today, with the byte ranges of their words.
    relative_ranges: Vec<(DayRange, Vec<Range<usize>>)>,
    outside_decay: OutsideDecay,
    /// The question without the days that it names.
    pub(crate) remaining_text: String,
    /// Whether it asks for the oldest, or the newest.
    pub(crate) wants_oldest: bool,
    pub(crate) wants_newest: bool,
    /// Whether it asks for a time.
    pub(crate) asks_when: bool,
}

/// How fast the score falls outside a named range. A question means days inside it, but if there are no
/// logs of these, the days beside it are the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum OutsideDecay {
    #[default]
    Slow,
    Fast,
}

impl TimeExpression {
    pub(crate) fn parse(question: &str, today: NaiveDate) -> Self {
        let text = question.to_lowercase().replace('–', "-");
        let words: Vec<&str> = words::runs(&text, "-").collect();
        let mut when = Self {
            asks_when: text.contains("when") || text.contains("what date"),
            ..Self::default()
        };
        let has = |it: &str| words.contains(&it);
        when.wants_oldest =
            ["first", "originally", "initial", "initially", "earliest"].into_iter().any(has);
        when.wants_newest =
            ["latest", "current", "currently", "now", "newest", "recent", "recently", "final"]
                .into_iter()
                .any(has);
        let DateParser { ranges: named, days, months, weekdays, consumed: passed, .. } =
            DateParser::of(&words, today);
        when = Self { days, months, weekdays, ..when };
        for stretch in named {
            when.add_range(stretch);
        }
        let is_date = |it: &str| {
            parse_iso_date(it).is_some()
                || english_month_number(it).is_some()
                || it.to_uppercase().parse::<Period>().is_ok()
        };
        when.event = EventReference::parse(&text, &words, is_date);
        let places = |said: Range<usize>| {
            let place = |it: &str| {
                let at = it.as_ptr() as usize - text.as_ptr() as usize;
                at..at + it.len()
            };
            words[said].iter().map(|it| place(it)).collect::<Vec<_>>()
        };
        for (stretch, said) in relative::relative_ranges(&words, today) {
            when.add_range(stretch);
            when.relative_ranges.push((stretch, places(said)));
        }
        when.remaining_text.clone_from(&text);
        // Words like "the week before" stay: lines of that day say "last week".
        for place in passed.into_iter().flat_map(places) {
            when.blank_out(place);
        }
        when
    }

    fn blank_out(&mut self, place: Range<usize>) {
        self.remaining_text.replace_range(place.clone(), &" ".repeat(place.len()));
    }

    /// Adapts to the days that have logs. If there are none of "last week", its words may be a
    /// quotation, and the days beside it are better than nothing.
    pub(crate) fn apply_log_days(&mut self, has_logs: impl Fn(DayRange) -> bool) {
        if self.ranges.iter().any(|it| has_logs(*it)) {
            self.outside_decay = OutsideDecay::Fast;
        }
        for (stretch, places) in std::mem::take(&mut self.relative_ranges) {
            if has_logs(stretch) {
                for place in places {
                    self.blank_out(place);
                }
            }
        }
    }

    /// Adds a range: a short one is searched by day, a long one only adds to the score.
    fn add_range(&mut self, (first, last): DayRange) {
        if (last - first).num_days() < SHORT_RANGE_DAYS_MAX {
            self.ranges.push((first, last));
        } else {
            self.long_ranges.push((first, last));
        }
    }

    /// Sets the days of the event; its name is then no longer searched for.
    pub(crate) fn set_event_days(&mut self, event: &EventReference, days: DayRange) {
        self.remaining_text = event.remove_from(&self.remaining_text);
        if (days.1 - days.0).num_days() < SHORT_RANGE_DAYS_MAX {
            self.event_days = Some(days);
        } else {
            self.long_ranges.push(days);
        }
    }

    /// Returns whether the question names this day.
    pub(crate) fn includes_day(&self, day: NaiveDate) -> bool {
        let named = self.ranges.iter().chain(&self.event_days);
        named.into_iter().any(|(from, to)| (*from..=*to).contains(&day))
            || self.days.contains(&(day.month(), day.day()))
    }

    /// Returns whether it names any day.
    pub(crate) fn names_days(&self) -> bool {
        !(self.ranges.is_empty() && self.days.is_empty())
    }

    /// Returns what a line of this day gains in score.
    pub(crate) fn score_gain(&self, day: NaiveDate) -> f64 {
        let far = |(from, to): &DayRange| {
            let days = if day < *from { *from - day } else { day - *to }.num_days().max(0);
            match self.outside_decay {
                OutsideDecay::Fast if days > 0 && from < to => 2 * (days + 2),
                _ => days,
            }
        };
        let of_year = |&(month, of): &(u32, u32)| {
            let years = [day.year() - 1, day.year(), day.year() + 1];
            let dates = years.into_iter().filter_map(|it| NaiveDate::from_ymd_opt(it, month, of));
            dates.map(|it| far(&(it, it))).min()
        };
        let nearest = self.ranges.iter().map(far).chain(self.days.iter().filter_map(of_year)).min();
        #[expect(clippy::cast_precision_loss, reason = "days of a few years")]
        let exact = nearest.map_or(0.0, |it| 2.0 * (1.0 - it as f64 / GAIN_REACH_DAYS).max(0.0));
        let of_month = |&(year, month, (from, to)): &(Option<i32>, u32, (u32, u32))| {
            let is_it = day.month() == month && year.is_none_or(|it| it == day.year());
            is_it && (from..=to).contains(&day.day())
        };
        let month = if self.months.iter().any(of_month) { 0.3 } else { 0.0 };
        let is_within = |&(from, to): &DayRange| (from..=to).contains(&day);
        let stretch = if self.long_ranges.iter().any(is_within) { 1.0 } else { 0.0 };
        let weekday = if self.weekdays.contains(&day.weekday()) { 0.3 } else { 0.0 };
        let itself = if self.includes_day(day) { 0.5 } else { 0.0 };
        exact + itself + month + stretch + weekday
    }
}

/// Returns whether a line says when something was.
pub(crate) fn mentions_time(text: &str) -> bool {
    let mut words = words::runs(text, "").filter(|it| it.len() > 2);
    words.any(|it| {
        let word = it.to_ascii_lowercase();
        let word = word.as_str();
        SEARCH.time_words.contains(&word)
            || (english_month_number(word).is_some() && word != "may" && word != "mar")
            || english_weekdays().contains(&word)
            || (it.len() == 4 && it.starts_with("20") && it.bytes().all(|b| b.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_parsed_in_the_forms_that_people_write() {
        let today: NaiveDate = "2026-04-13".parse().unwrap();
        for (question, day, is_named) in [
            ("What happened on 2026-03-26?", "2026-03-26", true),
            ("What happened on March 26?", "2026-03-26", true),
            ("What happened on March 26, 2025?", "2026-03-26", false),
            ("What happened on the 3rd Mar?", "2025-03-03", true),
            ("between 2026-03-20 and 2026-03-24", "2026-03-22", true),
            ("from 2026-03-20 to 2026-03-24", "2026-03-22", true),
            ("the notes of 2026-03-20 and 2026-03-24", "2026-03-22", false),
            ("the notes of 2026-03-20 and 2026-03-24", "2026-03-24", true),
            ("between March 20 and March 24", "2026-03-22", true),
            ("between the 20th March and the 2nd April", "2026-03-31", true),
            ("between March 20 and 24", "2026-03-22", true),
            ("between March 20 and 24", "2025-03-22", false),
            ("between March 20 and 24 people", "2026-03-20", true),
            ("from December 28 to January 3", "2026-01-02", true),
            ("from December 28 to January 3", "2025-12-30", true),
            ("from December 28 to January 3", "2026-12-30", false),
            ("2026-03-20–2026-03-24", "2026-03-22", true),
            ("2026-03-20–2026-03-24", "2026-03-25", false),
            ("March 20-24", "2026-03-22", true),
            ("March 20–24, 2026", "2026-03-22", true),
            ("20-24 March 2026", "2026-03-24", true),
            ("20-24 March 2026", "2026-03-25", false),
            ("in 2026-W13", "2026-03-25", true),
            ("yesterday", "2026-04-12", true),
            ("last week", "2026-04-08", true),
            ("last week", "2026-04-13", false),
            ("last month", "2026-03-31", true),
            ("the week before March 26, 2026", "2026-03-20", true),
            ("the week before March 26, 2026", "2026-03-27", false),
            ("the week before March 26", "2026-03-20", true),
            ("the week before March 26", "2025-03-20", false),
            ("the Sunday before the 26 March 2026", "2026-03-22", true),
            ("two weeks ago", "2026-04-01", true),
            ("last Friday", "2026-04-10", true),
            ("May I ask 26 people?", "2026-05-26", false),
            ("2026-13-45", "2026-04-13", false),
        ] {
            let when = TimeExpression::parse(question, today);
            assert_eq!(when.includes_day(day.parse().unwrap()), is_named, "{question} {when:?}");
        }
        for (question, in_it, out, rest) in [
            ("late March", "2026-03-28", "2026-03-02", "march"),
            ("at the end of March", "2026-03-28", "2026-03-02", "at the march"),
            ("in early March 2026", "2026-03-02", "2025-03-02", "in march 2026"),
            ("mid-March", "2026-03-15", "2026-03-28", "mid-march"),
            ("the plan of last March", "2026-03-15", "2026-05-28", "the plan of march"),
        ] {
            let when = TimeExpression::parse(question, today);
            assert_eq!(when.remaining_text.split_whitespace().collect::<Vec<_>>().join(" "), rest);
            let gain = |day: &str| when.score_gain(day.parse().unwrap());
            assert!(gain(in_it) > 0.2 && gain(out) < 0.2, "{question} {when:?}");
        }
        let year = TimeExpression::parse("what broke last year", today);
        assert!(
            year.score_gain("2025-06-01".parse().unwrap())
                > year.score_gain("2026-01-02".parse().unwrap())
        );
        assert!(!year.names_days());
        let near = TimeExpression::parse("on March 26", today);
        let gain = |day: &str| near.score_gain(day.parse().unwrap());
        assert!(gain("2026-03-26") > gain("2026-03-28") && gain("2026-03-28") > gain("2026-05-01"));
        for (question, rest) in [
            ("the dam two weeks before March 26", "the dam two weeks before"),
            ("at last it works", "at last it works"),
            ("İzmir in late March", "i\u{307}zmir in march"),
        ] {
            let rest_of = TimeExpression::parse(question, today).remaining_text;
            assert_eq!(rest_of.split_whitespace().collect::<Vec<_>>().join(" "), rest);
        }
    }

    #[test]
    fn relative_times_are_searched_as_words_only_without_logs_of_that_time() {
        let today: NaiveDate = "2026-04-13".parse().unwrap();
        for (question, with_logs) in [
            ("what broke a couple of weeks ago", "what broke a"),
            ("the dam last quarter", "the dam"),
            ("who called last Friday or the day before yesterday", "who called or the"),
            ("did it break over the weekend", "did it break over the"),
            ("İzmir in the last three weeks, at last", "i\u{307}zmir in the , at last"),
        ] {
            for (has_logs, rest) in [(true, with_logs), (false, &*question.to_lowercase())] {
                let mut when = TimeExpression::parse(question, today);
                when.apply_log_days(|_| has_logs);
                assert_eq!(
                    when.remaining_text.split_whitespace().collect::<Vec<_>>().join(" "),
                    rest
                );
            }
        }
        let mut when = TimeExpression::parse("last week", today);
        let near = |it: &TimeExpression| it.score_gain("2026-04-04".parse().unwrap());
        let without = near(&when);
        when.apply_log_days(|_| true);
        assert!(near(&when) < without);
    }
}
