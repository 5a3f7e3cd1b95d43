//! The time of day with which an entry of an activity log begins.

use crate::text::lexicon::CALENDAR;

/// A time of day at the beginning of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpeningTime {
    /// Its bytes, with the mark and the space after it.
    pub(crate) len: usize,
    /// Whether it only says when the entry was written: it is in brackets, or has a day or a time zone, and
    /// a mark separates it from the words.
    pub(crate) is_stamp: bool,
}

/// Returns the time of day that opens a text: `14:05 — `, `[02:45] `, `7:16 AM EST: `, and for a log of `day`
/// `2026-03-04 07:16 Europe/Lisbon: `.
///
/// What follows must be text, so that a bare time is none.
pub(crate) fn opening_time(text: &str, day: &str) -> Option<OpeningTime> {
    let mut rest = text.trim_start_matches(['~', '≈']);
    let dated = rest.strip_prefix(day).filter(|it| !day.is_empty() && it.starts_with([' ', 'T']));
    rest = dated.map_or(rest, |it| &it[1..]);
    let close = match rest.chars().next()? {
        '[' => Some(']'),
        '(' => Some(')'),
        _ => None,
    };
    rest = &rest[close.map_or(0, |_| 1)..];
    rest = after_clock(rest)?;
    if let Some(end) = rest.strip_prefix(['-', '–']).and_then(after_clock) {
        rest = end;
    }
    let (with_zone, zoned) = after_zone(rest);
    rest = with_zone;
    if let Some(close) = close {
        rest = rest.strip_prefix(close)?;
    }
    // `14:05 EST (2026-03-06): …`
    let bare = rest.trim_start();
    if let Some(end) = bare.strip_prefix('(').and_then(|it| it.strip_prefix(day)) {
        rest = end.strip_prefix(')').filter(|_| !day.is_empty()).unwrap_or(rest);
    }
    let is_spaced = rest.starts_with([' ', ':', '：']);
    let tail = rest.trim_start();
    let marked = tail.strip_prefix(['-', '–', '—', ':', '：', '|']);
    let tail = marked.map_or(tail, |it| it.trim_start_matches(['-', '—']).trim_start());
    if !(is_spaced || close.is_some()) || !tail.contains(char::is_alphanumeric) {
        return None;
    }
    let is_stamp = close.is_some() || ((zoned || dated.is_some()) && marked.is_some());
    Some(OpeningTime { len: text.len() - tail.len(), is_stamp })
}

/// Returns what follows a time of day with its seconds and `AM` or `PM`.
fn after_clock(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let two = |at: usize| bytes.get(at..at + 2).is_some_and(|d| d.iter().all(u8::is_ascii_digit));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=2).contains(&digits) || bytes.get(digits) != Some(&b':') || !two(digits + 1) {
        return None;
    }
    let mut end = digits + 3;
    if bytes.get(end) == Some(&b':') && two(end + 1) {
        end += 3;
    }
    if bytes.get(end).is_some_and(u8::is_ascii_digit) {
        return None;
    }
    let rest = &text[end..];
    let half = rest.trim_start().get(..2).unwrap_or_default();
    let is_half = half.eq_ignore_ascii_case("am") || half.eq_ignore_ascii_case("pm");
    let after = &rest[rest.len() - rest.trim_start().len()..];
    let ends = |it: &str| !it.starts_with(char::is_alphanumeric);
    Some(after.get(2..).filter(|it| is_half && ends(it)).unwrap_or(rest))
}

/// Returns what follows a time zone, and whether there is one: ` EST`, ` (KST)`, ` UTC+8`, ` Asia/Seoul`.
fn after_zone(text: &str) -> (&str, bool) {
    let trimmed = text.trim_start();
    let inner = trimmed.strip_prefix('(').unwrap_or(trimmed);
    let end = inner
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '/' | '_' | '+' | '-')))
        .unwrap_or(inner.len());
    let (zone, rest) = inner.split_at(end);
    let name = zone.split(['+', '-']).next().unwrap_or_default();
    let is_region = zone.split_once('/').is_some_and(|(area, city)| {
        area.starts_with(char::is_uppercase) && city.starts_with(char::is_uppercase)
    });
    let is_zone = is_region || CALENDAR.time_zones.contains(&&name.to_lowercase()[..]);
    let is_in_brackets = inner.len() < trimmed.len();
    let rest = if is_in_brackets { rest.strip_prefix(')') } else { Some(rest) };
    // `14:30 ist er da` and `14:30 West wind` name no zone: an abbreviation is in capitals.
    let lower = zone.contains(|c: char| c.is_ascii_lowercase());
    match rest.filter(|_| is_zone && (is_region || name == "Uhr" || !lower)) {
        Some(rest) => (rest, true),
        None => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_activity_lines() {
        #[track_caller]
        fn check(text: &str, words: &str, is_stamp: bool) {
            let found = opening_time(text, "2026-03-04").unwrap_or_else(|| panic!("{text:?}"));
            assert_eq!((&text[found.len..], found.is_stamp), (words, is_stamp), "{text:?}");
        }
        check("[02:45] FILE: wrote it", "FILE: wrote it", true);
        check("[02:45 UTC] Boiler off", "Boiler off", true);
        check("(18:17) Boiler off", "Boiler off", true);
        check("14:05 EST: Boiler off", "Boiler off", true);
        check("7:16 AM EST: Boiler off", "Boiler off", true);
        check("14:05 UTC+8 — Boiler off", "Boiler off", true);
        check("14:05 (Asia/Seoul) - Boiler off", "Boiler off", true);
        check("14:05 EST (2026-03-04): Boiler off", "Boiler off", true);
        check("2026-03-04 14:05 Europe/Lisbon: Boiler off", "Boiler off", true);
        check("~10:05 KST — Boiler off", "Boiler off", true);
        check("03:00–03:30 UTC: Boiler off", "Boiler off", true);
        check("14:30 Uhr: Kessel aus", "Kessel aus", true);
        check("14:05 — Boiler off", "Boiler off", false);
        check("09:00 Ana: off", "Ana: off", false);
        check("14:05 UTC the train leaves", "the train leaves", false);
        for text in ["14:05", "[14:05]", "14:05 EST", "1:2 odds", "24:1995 old", "[link] 14:05", ""]
        {
            assert_eq!(opening_time(text, "2026-03-04"), None, "{text:?}");
        }
        // Another day is not the day of the log.
        assert_eq!(opening_time("2026-03-02 14:05 Europe/Lisbon: off", "2026-03-04"), None);
    }
}
