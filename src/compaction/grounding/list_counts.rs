//! Counts the members of lists within a line, of which an item may say how many there are. Pure.

use std::collections::BTreeSet;

/// A longer list is not read to its end.
const LIST_BYTES_MAX: usize = 400;

/// Longer members are clauses, which nobody counts.
const MEMBER_WORDS_MAX: usize = 6;

/// Returns how many members the lists within a line have: `web/admin/api` has three, `Unknown keys: a, b` two.
pub(super) fn of_line(line: &str) -> BTreeSet<usize> {
    let slashed = line.split_whitespace().filter_map(slashed_members);
    let marked = ["•", "·", "、"].into_iter().flat_map(|mark| marked_members(line, mark));
    let named = line.match_indices([':', '：']).filter_map(|(at, mark)| {
        let rest = &line[at + mark.len()..];
        let rest = rest.find(": ").map_or(rest, |end| &rest[..end]);
        let end = (0..=LIST_BYTES_MAX.min(rest.len())).rev().find(|it| rest.is_char_boundary(*it));
        // `10:30` and `https:` open no list; `Gauge: cleaned, painted` is one gauge.
        let opens = mark == "：" || rest.trim_start_matches(['*', '_']).starts_with(' ');
        let label = line[..at].trim_end_matches(['*', '_']);
        let is_plural = label.ends_with('s') || label.ends_with(|c: char| !c.is_ascii());
        // `Added: a, b`, and not `Gauge added: a, b`.
        let label = label.trim_start_matches(|c: char| !c.is_alphanumeric());
        let is_deed = label.ends_with("ed") && label.chars().all(char::is_alphabetic);
        let is_list = opens && (is_plural || is_deed || label.ends_with(" do"));
        is_list.then(|| members_after_colon(&rest[..end.unwrap_or(0)])).flatten()
    });
    slashed.chain(marked).chain(named).collect()
}

/// Returns how many items the lists have that lines are, by the indents of those that are items: all together, those
/// of one level between other lines, and those directly below an item.
pub(super) fn of_items(indents: &[Option<usize>]) -> BTreeSet<usize> {
    let mut counts = BTreeSet::from([indents.iter().flatten().count()]);
    for run in indents.split(Option::is_none) {
        let run: Vec<usize> = run.iter().copied().flatten().collect();
        counts.extend(run.iter().min().map(|top| run.iter().filter(|it| *it == top).count()));
        for (at, parent) in run.iter().enumerate() {
            let below: Vec<usize> =
                run[at + 1..].iter().copied().take_while(|it| it > parent).collect();
            counts.extend(below.first().map(|top| below.iter().filter(|it| *it == top).count()));
        }
    }
    counts
}

/// Returns the number of words that slashes join, which is no path: `web/admin/api`.
fn slashed_members(token: &str) -> Option<usize> {
    const MEMBERS_MIN: usize = 3;
    let token = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '.');
    let parts: Vec<&str> = token.split('/').collect();
    let is_word = |it: &&str| !it.is_empty() && it.chars().all(char::is_alphabetic);
    (parts.len() >= MEMBERS_MIN && parts.iter().all(is_word)).then_some(parts.len())
}

/// Returns the numbers of members between marks, in each part of the line that no other mark ends.
fn marked_members(line: &str, mark: &str) -> Vec<usize> {
    let is_end = |c: char| matches!(c, '，' | '。' | '；' | ';' | ':' | '：');
    let parts = line.split(is_end).filter(|it| it.contains(mark));
    let count = |part: &str| part.split(mark).filter(|it| !it.trim().is_empty()).count();
    parts.map(count).filter(|it| *it > 1).collect()
}

/// Returns the number of members of the list behind a colon: `a, b and c`.
fn members_after_colon(rest: &str) -> Option<usize> {
    let end = rest.find([';', '；', '。', '—', '(', '（']).unwrap_or(rest.len());
    let end = rest[..end].find(". ").unwrap_or(end);
    let list = rest[..end].trim_end_matches('.');
    let list = [", and ", " and ", " und ", " et ", " y ", "，", "和"]
        .iter()
        .fold(list.to_owned(), |list, it| list.replace(it, ", "));
    let members: Vec<&str> = list.split(", ").map(str::trim).collect();
    let is_member = |it: &&str| (1..=MEMBER_WORDS_MAX).contains(&it.split_whitespace().count());
    (members.len() > 1 && members.iter().all(is_member)).then_some(members.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_counted_by_list() {
        for (indents, expected) in [
            (&[None, Some(0), Some(2), Some(2), Some(4), Some(0), Some(2)][..], &[1, 2, 6][..]),
            (&[None, Some(0), Some(0), None, Some(0), Some(0), Some(0)], &[2, 3, 5]),
            (&[None], &[0]),
        ] {
            assert_eq!(of_items(indents).into_iter().collect::<Vec<_>>(), expected, "{indents:?}");
        }
    }

    #[test]
    fn lists_within_a_line_are_counted() {
        for (line, expected) in [
            ("Deployed web/admin/api today", &[3][..]),
            ("see memory/2026/notes.md and UI/UX", &[]),
            ("Boats: • Ada • Bo • Cy", &[3]),
            ("Ada · Bo", &[2]),
            ("支持文字、图片、视频", &[3]),
            ("Unknown keys: `a.b`, `c`", &[2]),
            ("Left to do: paint the hull, oil the winch and fit the new sail. Then rest", &[3]),
            ("At 10:30, and at noon, we met", &[]),
            ("Gauge: cleaned, recalibrated", &[]),
            ("- **Added:** Tide News, Dock Daily, Quay", &[3]),
            ("The gauge failed: cleaned, recalibrated", &[]),
            (
                "Note: the pump that we bought last week in Bonn failed, and so did the other one",
                &[],
            ),
        ] {
            let seen: Vec<usize> = of_line(line).into_iter().collect();
            assert_eq!(seen, expected, "{line}");
        }
    }
}
