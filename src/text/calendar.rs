//! Names of months and weekdays, in the languages of `calendar.yaml`, and what day a date without a year is.

use std::{collections::HashMap, sync::LazyLock};

use chrono::{Datelike as _, NaiveDate};

use super::lexicon::{CALENDAR, LexiconWords};

/// A day without a year that is further back is one of the next year.
const PAST_DAYS_MAX: i64 = 180;

/// Names and short forms of the months, in all languages, to their numbers.
static MONTHS: LazyLock<HashMap<&'static [u8], u32>> = LazyLock::new(|| {
    let mut numbers = HashMap::new();
    for months in CALENDAR.months.values() {
        for (names, number) in months.iter().zip(1..) {
            numbers.extend(names.iter().map(|it| (it.as_bytes(), number)));
        }
    }
    numbers
});

/// Returns the day that a date atom in its compared form means in a line of `date`: without a year, `--12-15`, it is
/// the next one, or one of the last months.
pub(crate) fn day_of(norm: &str, date: NaiveDate) -> Option<NaiveDate> {
    let Some(month_day) = norm.strip_prefix("--") else { return norm.parse().ok() };
    let of_year = |year: i32| format!("{year:04}-{month_day}").parse::<NaiveDate>().ok();
    let this = of_year(date.year())?;
    let is_past = (date - this).num_days() > PAST_DAYS_MAX;
    if is_past { of_year(date.year() + 1) } else { Some(this) }
}

/// Returns the number of a month by one of its names or short forms in any language.
pub(crate) fn month_number(word: &str) -> Option<u32> {
    // A month's names are short and begin with one of few letters, which most words do not.
    let first = word.as_bytes().first()?.to_ascii_lowercase();
    if !(3..=12).contains(&word.len()) || !b"jfmasondegl".contains(&first) {
        return None;
    }
    let mut lower = [0; 12];
    if word.is_ascii() {
        let lower = &mut lower[..word.len()];
        lower.copy_from_slice(word.as_bytes());
        lower.make_ascii_lowercase();
        return MONTHS.get(&*lower).copied();
    }
    MONTHS.get(word.to_lowercase().as_bytes()).copied()
}

/// Returns the number of a month by its English name, its first three letters, or `sept`.
///
/// Search reads only these in a question: short forms of other languages are English words (`set`, `out`).
pub(crate) fn english_month_number(word: &str) -> Option<u32> {
    let is_it = |name: &&str| {
        *name == word
            || (word.len() >= 3
                && (name[..3] == *word || (word == "sept" && name.starts_with("sept"))))
    };
    let names = CALENDAR.months.get("en")?.iter().filter_map(|it| it.first());
    names.zip(1..).find(|(name, _)| is_it(name)).map(|it| it.1)
}

/// Returns the names of all months, and of the short forms only those of English, the only ones that are
/// no words of their own in some other language of a log.
pub(crate) fn month_names() -> Vec<&'static str> {
    let mut names: Vec<_> =
        CALENDAR.months.values().flatten().filter_map(|it| it.first()).collect();
    names.extend(CALENDAR.months.get("en").into_iter().flatten().flatten());
    names.sort_unstable();
    names.dedup();
    names.into_iter().copied().collect()
}

/// Returns the English names of the weekdays, from Monday to Sunday.
pub(crate) fn english_weekdays() -> &'static [&'static str] {
    CALENDAR.weekdays.get("en").map_or(&[], |it| &it.names)
}

/// Returns the names of the weekdays and the forms for every such day ("mondays"), in all languages.
pub(crate) fn weekday_names() -> &'static [&'static str] {
    static NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
        let all = CALENDAR.weekdays.values();
        all.flat_map(|it| it.names.iter().chain(&*it.recurring)).copied().collect()
    });
    &NAMES
}

/// Returns each name of a weekday in some languages, with the number of the day from Monday, which is 0.
pub(crate) fn weekdays_of(languages: &[&str]) -> impl Iterator<Item = (&'static str, u32)> {
    languages.iter().filter_map(|it| CALENDAR.weekdays.get(*it)).flat_map(|it| {
        let numbered = |names: &'static LexiconWords| names.iter().copied().zip(0..);
        let regional = it.regional.iter().map(|(name, number)| (*name, number - 1));
        numbered(&it.names).chain(numbered(&it.recurring)).chain(regional)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_filtered_out() {
        for name in CALENDAR.months.values().flatten().flatten() {
            assert!(month_number(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_give_numbers() {
        assert_eq!(month_number("März"), Some(3));
        assert_eq!((month_number("set"), english_month_number("set")), (Some(9), None));
        assert_eq!(
            (english_month_number("sept"), english_month_number("dec")),
            (Some(9), Some(12))
        );
        assert_eq!(english_month_number("de"), None);
        assert!(month_names().contains(&"oktober") && !month_names().contains(&"okt"));
        assert!(weekdays_of(&["de"]).any(|it| it == ("sonnabend", 5)));
        assert!(!weekday_names().contains(&"sonnabend") && weekday_names().contains(&"montags"));
    }
}
