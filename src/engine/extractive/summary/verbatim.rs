//! Copies sources that are so short that every line becomes an item, except what programs wrote and the
//! small talk of transcripts.

use std::collections::{BTreeSet, HashMap};

use crate::{
    engine::{EngineDraft, SummaryInput, keep_mark::without_keep_mark},
    memory::{
        address::{Address, Citation},
        item::{Item, SummarySection},
        markdown::LineKind,
        period::Grain,
    },
    privacy::SanitizedLine,
};

use super::{conversation::Conversations, month_section, pinned::one_line, section_of_class};
use crate::engine::extractive::{
    annotations,
    candidates::headings,
    parsed_log::{self, ParsedLog, StatementForm},
    sections,
};

/// Copies everything: each line of a week, or each bullet of a month's weeks.
pub(super) fn copy_verbatim(input: &SummaryInput<'_>) -> EngineDraft {
    let mut draft = EngineDraft::default();
    if input.period.grain() == Grain::Month {
        copy_weeks(input, &mut draft.sections);
        draft.sections.sort_by_key(|(section, _)| *section);
        return draft;
    }
    let pages: Vec<ParsedLog> = input.logs.iter().map(parsed_log::parse).collect();
    let templates = headings::template_heads(&pages);
    let conversations = Conversations::of(&pages);
    let ticked = annotations::ticked_tasks(&pages);
    for (p, (page, log)) in pages.iter().zip(input.logs).enumerate() {
        let statement_of = statements_by_line(page);
        let headers: BTreeSet<u32> = page.statements.iter().filter_map(|it| it.header).collect();
        let joined: BTreeSet<u32> = (0..page.heads.len())
            .filter(|&head| headings::is_meaningful(page, head, &templates))
            .map(|head| page.heads[head].line)
            .collect();
        // The first line below headings cites them all and begins with the meaningful ones.
        let mut pending = Item { text: String::new(), citation: None };
        let mut heading = String::new();
        let mut last = SummarySection::Context;
        let mut open = None;
        let is_copied = |line: &SanitizedLine| {
            let statement = || statement_of.get(&line.number());
            line.is_content()
                && !parsed_log::is_machinery(line)
                && (line.session().is_none()
                    || statement().is_some_and(|it| conversations.contains(p, *it)))
        };
        for line in log.lines().iter().filter(|line| is_copied(line)) {
            let words = without_keep_mark(&one_line(line.words()));
            let address = log.address(line);
            if matches!(line.kind(), LineKind::Heading { .. }) {
                if joined.contains(&line.number()) {
                    pending.text.push_str(words.trim_end_matches([':', ' ']));
                    pending.text.push_str(": ");
                }
                add_citation(&mut pending, address);
                heading = words;
                open = None;
                continue;
            }
            let statement = statement_of.get(&line.number()).copied();
            if headers.contains(&line.number()) {
                // The heads of the columns are in the words of the rows.
                add_citation(&mut pending, address);
                continue;
            }
            if statement.is_some()
                && statement == open
                && let Some((_, items)) = draft.sections.iter_mut().find(|(s, _)| *s == last)
                && let Some(item) = items.last_mut()
            {
                // The statement continues in this line.
                item.text.push(' ');
                item.text.push_str(&words);
                add_citation(item, address);
                continue;
            }
            if statement.is_some_and(|s| ticked.contains_key(&(p, s))) {
                // The line that ticks it off cites both.
                continue;
            }
            if let Some(s) = statement.map(|s| &page.statements[s])
                && s.introduces
                && s.is_own_words()
                && matches!(s.form, StatementForm::Item | StatementForm::Paragraph)
            {
                // `Still open:` says only what is below it.
                let is_said = sections::class_of_head(&s.text).is_none();
                pending.text.extend([&words, " "].into_iter().filter(|_| is_said));
                add_citation(&mut pending, address);
                heading = words;
                open = None;
                continue;
            }
            if let Some(s) = statement.map(|s| &page.statements[s]) {
                last = section_of_class(sections::class_of(page, s, &s.text[s.label..]));
            }
            open = statement;
            let mut item =
                std::mem::replace(&mut pending, Item { text: String::new(), citation: None });
            add_words(&mut item, page, statement, &words);
            add_citation(&mut item, address);
            let opened = ticked.iter().filter(|(_, done)| statement == Some(done.1) && done.0 == p);
            for &(page, task) in opened.map(|it| it.0) {
                let lines = pages[page].statements[task].lines.iter();
                lines.for_each(|it| add_citation(&mut item, pages[page].address(it.1)));
            }
            push_item(&mut draft.sections, last, item);
        }
        // Headings without a line below them.
        pending.text.truncate(pending.text.trim_end_matches([':', ' ']).len());
        if pending.text.is_empty() {
            pending.text = heading;
        }
        if pending.citation.is_some() && !pending.text.is_empty() {
            push_item(&mut draft.sections, last, pending);
        }
    }
    draft.sections.sort_by_key(|(section, _)| *section);
    draft
}

/// Copies the bullets of the weeks of a month. What is open in one and done with the same words in a later one is done.
fn copy_weeks(input: &SummaryInput<'_>, sections: &mut Vec<(SummarySection, Vec<Item>)>) {
    let section_of = |it: &Option<SummarySection>| it.unwrap_or(SummarySection::Context);
    let is_done = |at: usize, text: &str| {
        let later = input.weeks[at + 1..].iter().flat_map(|it| &it.items);
        let mut done = later.filter(|it| section_of(&it.0) == SummarySection::KeyOutcomes);
        done.any(|it| it.1.text == text)
    };
    for (at, week) in input.weeks.iter().enumerate() {
        for (section, item) in &week.items {
            let section = section_of(section);
            if section != SummarySection::BlockersAndOpenItems || !is_done(at, &item.text) {
                push_item(sections, month_section(section), item.clone());
            }
        }
    }
}

/// Returns the index of the statement that each line of a page is a part of.
fn statements_by_line(page: &ParsedLog) -> HashMap<u32, usize> {
    let statements = page.statements.iter().enumerate();
    let of_statement = statements.flat_map(|(s, statement)| {
        // A row may have words of one above it, which is another statement.
        let is_row = statement.form == StatementForm::Row;
        let from = if is_row { statement.lines.len().saturating_sub(1) } else { 0 };
        statement.lines[from..].iter().map(move |&(_, line)| (line, s))
    });
    of_statement.collect()
}

/// Adds the words of a line to an item: of a row of a table those with the heads of its columns.
fn add_words(item: &mut Item, page: &ParsedLog, statement: Option<usize>, words: &str) {
    let row = statement.map(|it| &page.statements[it]);
    let Some(row) = row.filter(|it| it.form == StatementForm::Row) else {
        item.text.push_str(words);
        return;
    };
    item.text.push_str(&one_line(&row.text));
    let lines = row.lines.iter().map(|it| &it.1).chain(&row.header);
    lines.for_each(|it| add_citation(item, page.address(*it)));
}

fn add_citation(item: &mut Item, address: Address) {
    let one = Citation::single_line(address.stem, address.line);
    match &mut item.citation {
        Some(citation) => citation.merge(&one),
        None => item.citation = Some(one),
    }
}

fn push_item(sections: &mut Vec<(SummarySection, Vec<Item>)>, section: SummarySection, item: Item) {
    match sections.iter_mut().find(|(s, _)| *s == section) {
        Some((_, items)) => items.push(item),
        None => sections.push((section, vec![item])),
    }
}
