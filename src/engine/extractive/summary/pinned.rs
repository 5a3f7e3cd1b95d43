//! Items that every engine must include: lines marked `#keep`, and bullets that people wrote.

use crate::{
    engine::{SummaryInput, keep_mark::without_keep_mark},
    memory::{
        address::{Address, Citation},
        item::{Item, SummarySection},
        period::{Grain, Period},
    },
};

use super::{month::sources::user_bullets, month_section, section_of_class};
use crate::engine::extractive::{
    parsed_log::{self, ParsedLog},
    sections,
};

/// Returns the items that every engine must include: bullets that people wrote in the weeks of a month,
/// and lines marked `#keep`.
pub(in super::super) fn pinned_items(input: &SummaryInput<'_>) -> Vec<(SummarySection, Item)> {
    let pages: Vec<ParsedLog> = input.logs.iter().map(parsed_log::parse).collect();
    let is_month = input.period.grain() == Grain::Month;
    let mut all = if is_month { user_bullets(input).items } else { Vec::new() };
    all.extend(keep_items(&pages, input));
    all
}

/// Returns the lines marked `#keep`, in their words without the mark.
///
/// A month includes only those that a weekly bullet cites, so that a line deleted by a person in the week
/// stays deleted.
pub(super) fn keep_items(
    pages: &[ParsedLog],
    input: &SummaryInput<'_>,
) -> Vec<(SummarySection, Item)> {
    let month = input.period.grain() == Grain::Month;
    let in_weeks = |address: &Address| {
        let week = Period::containing(Grain::Week, address.stem.date());
        let Some(source) = input.weeks.iter().find(|w| w.period == week) else { return true };
        let citations = source.items.iter().filter_map(|(_, item)| item.citation.as_ref());
        citations
            .filter_map(|c| c.lines_of(&address.stem))
            .any(|lines| lines.contains(address.line))
    };
    let mut items = Vec::new();
    for (page, log) in pages.iter().zip(input.logs) {
        for statement in page.statements.iter().filter(|s| s.keep) {
            for &(_, number) in &statement.lines {
                let address = page.address(number);
                let Some(line) = log.line(number) else { continue };
                if month && !in_weeks(&address) {
                    continue;
                }
                let class = sections::class_of(page, statement, &statement.text);
                let section = if month {
                    month_section(section_of_class(class))
                } else {
                    section_of_class(class)
                };
                let text = without_keep_mark(&one_line(line.words()));
                let citation = Some(Citation::single_line(address.stem, number));
                items.push((section, Item { text, citation }));
            }
        }
    }
    items
}

/// Returns the words with control characters replaced by spaces.
pub(super) fn one_line(words: &str) -> String {
    words.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
