//! The name that a file should have whose name begins with a day in another form: `05.11.2026.md`. Pure.

use chrono::NaiveDate;

use crate::memory::address::Stem;

/// Marks between the numbers of a day.
const SEPARATORS: [char; 4] = ['-', '.', '_', ' '];

/// Returns the names of logs that a file name may stand for, most likely first: two if it is open which number is the
/// month. None if the name does not begin with a day.
pub(super) fn proposed_log_names(name: &str) -> Vec<String> {
    let Some(stem) = without_ending(name) else { return Vec::new() };
    let (days, rest) = match compact_day(stem) {
        Some((day, rest)) => (vec![day], rest),
        None => separated_days(stem),
    };
    let topic: Vec<&str> = rest.split(|c: char| !c.is_alphanumeric()).collect();
    let topic = topic.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join("-");
    let dash = if topic.is_empty() { "" } else { "-" };
    let stems = days.iter().map(|it| format!("{it}{dash}{topic}"));
    stems.filter(|it| it.parse::<Stem>().is_ok()).map(|it| format!("{it}.md")).collect()
}

fn without_ending(name: &str) -> Option<&str> {
    let (stem, ending) = name.rsplit_once('.')?;
    ending.eq_ignore_ascii_case("md").then_some(stem)
}

/// Reads `20261105`.
fn compact_day(stem: &str) -> Option<(NaiveDate, &str)> {
    let (digits, rest) = stem.split_at_checked(8)?;
    let is_number = digits.bytes().all(|it| it.is_ascii_digit());
    if !is_number || rest.starts_with(|c: char| c.is_alphanumeric()) {
        return None;
    }
    NaiveDate::parse_from_str(digits, "%Y%m%d").ok().map(|day| (day, rest))
}

/// Reads `2026_11_05`, `2026-11-5`, `05.11.2026` and `11-05-2026`. Before the year the day comes first, unless there is
/// no such month.
fn separated_days(stem: &str) -> (Vec<NaiveDate>, &str) {
    let Some((numbers, rest)) = leading_numbers(stem) else { return (Vec::new(), "") };
    let number = |at: usize| numbers[at].parse::<u32>().ok();
    let year_of = |at: usize| numbers[at].parse::<i32>().ok();
    let widths = numbers.map(str::len);
    let (year, orders) = match widths {
        [4, 1..=2, 1..=2] => (year_of(0), vec![(1, 2)]),
        [1..=2, 1..=2, 4] => (year_of(2), vec![(1, 0), (0, 1)]),
        _ => return (Vec::new(), ""),
    };
    let mut days: Vec<NaiveDate> = orders
        .into_iter()
        .filter_map(|(month, day)| NaiveDate::from_ymd_opt(year?, number(month)?, number(day)?))
        .collect();
    days.dedup();
    (days, rest)
}

/// Returns the three numbers, with the same mark between them, at the beginning of a text, and what follows.
fn leading_numbers(text: &str) -> Option<([&str; 3], &str)> {
    let mark = text.chars().find(|c| !c.is_ascii_digit()).filter(|c| SEPARATORS.contains(c))?;
    let (first, rest) = text.split_once(mark)?;
    let (second, rest) = rest.split_once(mark)?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (third, rest) = rest.split_at(end);
    let is_number = |it: &str| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit());
    let is_day = [first, second, third].into_iter().all(is_number);
    let goes_on = rest.starts_with(|c: char| c.is_alphanumeric());
    (is_day && !goes_on).then_some(([first, second, third], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_a_day_in_another_form_have_a_proposed_one() {
        for (name, expected) in [
            ("05.11.2026.md", &["2026-11-05.md", "2026-05-11.md"][..]),
            ("11-05-2026.md", &["2026-05-11.md", "2026-11-05.md"]),
            ("31.12.2026.md", &["2026-12-31.md"]),
            ("12-31-2026.md", &["2026-12-31.md"]),
            ("5.5.2026.md", &["2026-05-05.md"]),
            ("2026_11_05.md", &["2026-11-05.md"]),
            ("2026.11.5.md", &["2026-11-05.md"]),
            ("20261105.md", &["2026-11-05.md"]),
            ("20261105 Tide talk.md", &["2026-11-05-Tide-talk.md"]),
            ("2026-11-05 call.MD", &["2026-11-05-call.md"]),
            ("2026-02-30.md", &[]),
            ("20261399.md", &[]),
            ("202611051.md", &[]),
            ("1.2.3.md", &[]),
            ("10.0.0.2026 router.md", &[]),
            ("notes.md", &[]),
            ("2026 plans.md", &[]),
            ("05.11.2026.txt", &[]),
            ("05.11-2026.md", &[]),
        ] {
            assert_eq!(proposed_log_names(name), expected, "{name}");
        }
    }
}
