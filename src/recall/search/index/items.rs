//! The sanitized items of generated files and typed memories.

use chrono::NaiveDate;

use super::indexed_file::IndexedItem;
use crate::{
    memory::{
        address::Citation,
        document::Summary,
        item::Item,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::{WisdomEntry, WisdomFile},
    },
    privacy::{PrivacyRules, quarantine},
    recall::framing::{self, IsAccepted},
};

/// Returns the tier of a weekly or monthly file, as an index.
pub(crate) fn tier_index(period: Period) -> usize {
    if period.grain() == Grain::Month { 3 } else { 2 }
}

/// Returns the items of a weekly or monthly file.
pub(crate) fn of_summary(
    summary: &Summary,
    text: &str,
    rules: &PrivacyRules,
    is_accepted: &IsAccepted<'_>,
) -> Vec<IndexedItem> {
    let period = summary.period.to_string();
    let framed = framing::frame_generated(Some(period), text, rules, is_accepted);
    let shown: Vec<&str> = framed.text.split('\n').collect();
    let is_held = |line: u32| {
        let at = usize::try_from(line).unwrap_or(usize::MAX).saturating_sub(1);
        shown.get(at).is_some_and(|it| it.trim_end() == quarantine::PLACEHOLDER)
    };
    let mut rows = Vec::new();
    for (lines, item, section) in summary.bullets_with_lines() {
        if lines.clone().any(is_held) {
            continue;
        }
        let Item { text, citation } = item;
        rows.push(IndexedItem {
            line: *lines.start(),
            date: citation.as_ref().map_or(summary.period.last(), Citation::newest_date),
            heading: section.map_or("", |it| it.title()).to_owned(),
            text: rules.mask_secrets(text).into_owned(),
            citation: citation.clone(),
        });
    }
    rows
}

/// Returns the entries of `WISDOM.md`.
pub(crate) fn of_wisdom(
    text: &str,
    rules: &PrivacyRules,
    is_accepted: &IsAccepted<'_>,
) -> Vec<IndexedItem> {
    let handed = framing::frame_generated(None, text, rules, is_accepted);
    let file = WisdomFile::parse(text).with_visible_text(&handed.text);
    let entries = file.entries_with_lines().into_iter();
    let is_shown = |it: &(u32, &WisdomEntry)| !it.1.raw.starts_with(quarantine::PLACEHOLDER);
    let rows = entries.filter(is_shown).map(|(line, entry)| {
        let mark = entry.meta.as_ref();
        IndexedItem {
            line,
            date: mark.map_or(NaiveDate::MIN, |it| it.last_reinforced),
            heading: entry.category.clone().unwrap_or_default(),
            text: entry.words(),
            citation: mark.map(|it| it.sources.clone()),
        }
    });
    rows.collect()
}

pub(crate) fn of_memory(
    memory: &TypedMemory,
    rules: &PrivacyRules,
    is_accepted: &IsAccepted<'_>,
) -> IndexedItem {
    let lines = memory.sources.iter().map(|(at, _)| at);
    let body = framing::frame_memory_body(memory, rules, is_accepted);
    let body = body.split_whitespace().collect::<Vec<_>>().join(" ");
    IndexedItem {
        line: 1,
        date: memory.updated.unwrap_or(NaiveDate::MIN),
        heading: framing::sanitize_line(&memory.description, rules),
        text: format!("{}: {body}", framing::sanitize_line(&memory.name, rules)),
        citation: Citation::from_addresses(lines),
    }
}
