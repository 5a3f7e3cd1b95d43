//! What generated files and typed memories say, item by item, as it may be seen.

use chrono::NaiveDate;

use super::ground::ItemRow;
use crate::{
    memory::{
        address::Citation,
        document::Summary,
        item::Item,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, Rules},
    recall::handed,
};

/// Returns the tier of a weekly or monthly file, by its number.
pub(super) fn tier(period: Period) -> usize {
    if period.grain() == Grain::Month { 3 } else { 2 }
}

/// Takes a weekly or monthly file.
pub(super) fn of_summary(summary: &Summary, text: &str, rules: &Rules) -> Vec<ItemRow> {
    let own = privacy::serve_own_lines(summary, text, rules);
    let mut rows = Vec::new();
    for (lines, item, section) in summary.bullets_with_lines() {
        // Words of a person that wait for a person.
        if own.as_ref().is_some_and(|own| own.holds(item)) {
            continue;
        }
        let Item { text, citation } = item;
        rows.push(ItemRow {
            line: *lines.start(),
            date: citation.as_ref().map_or(summary.period.last(), Citation::newest_date),
            head: section.map_or("", |it| it.title()).to_owned(),
            text: rules.shown(text).into_owned(),
            citation: citation.clone(),
        });
    }
    rows
}

/// Takes `WISDOM.md`.
pub(super) fn of_wisdom(text: &str, rules: &Rules) -> Vec<ItemRow> {
    let handed = handed::hand(None, None, text, rules);
    let file = WisdomFile::parse(&handed.text);
    let rows = file.entries_with_lines().into_iter().map(|(line, entry)| {
        let mark = entry.mark.as_ref();
        ItemRow {
            line,
            date: mark.map_or(NaiveDate::MIN, |it| it.last_reinforced),
            head: entry.category.clone().unwrap_or_default(),
            text: format!("{}: {}", entry.title, entry.text),
            citation: mark.map(|it| it.sources.clone()),
        }
    });
    rows.collect()
}

/// Takes a typed memory.
pub(super) fn of_memory(memory: &TypedMemory, rules: &Rules) -> ItemRow {
    let lines = memory.sources.iter().map(|(at, _)| at);
    let body = handed::hand(None, None, &memory.body, rules).text;
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    ItemRow {
        line: 1,
        date: memory.updated.unwrap_or(NaiveDate::MIN),
        head: rules.shown(&memory.description).into_owned(),
        text: format!("{}: {body}", rules.shown(&memory.name)),
        citation: Citation::from_addresses(lines),
    }
}
