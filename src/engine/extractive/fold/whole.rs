//! Sources so short that each line of theirs is carried over.

use std::collections::{BTreeSet, HashMap};

use crate::{
    engine::{Draft, FoldInput},
    memory::{
        address::{Address, Citation},
        item::{Item, Section},
        markdown::LineKind,
        period::Grain,
    },
};

use super::{
    super::{
        material,
        page::{self, Page},
    },
    class_of, month_section, section_of_class,
    standing::one_line,
};

/// Carries everything over: each line of a week, or each bullet of a month's weeks.
pub(super) fn whole(input: &FoldInput<'_>) -> Draft {
    let mut draft = Draft::default();
    if input.period.grain() == Grain::Month {
        for (section, item) in input.weeks.iter().flat_map(|week| &week.items) {
            let section = month_section(section.unwrap_or(Section::Context));
            push(&mut draft.sections, section, item.clone());
        }
        draft.sections.sort_by_key(|(section, _)| *section);
        return draft;
    }
    let pages: Vec<Page> = input.logs.iter().map(page::read).collect();
    let templates = material::template_heads(&pages);
    for (page, log) in pages.iter().zip(input.logs) {
        let statement_of: HashMap<u32, usize> = page
            .statements
            .iter()
            .enumerate()
            .flat_map(|(s, statement)| statement.lines.iter().map(move |&(_, line)| (line, s)))
            .collect();
        let joined: BTreeSet<u32> = (0..page.heads.len())
            .filter(|&head| material::is_meaningful(page, head, &templates))
            .map(|head| page.heads[head].line)
            .collect();
        // Headings wait for the first line below them, which cites them, and says those that say
        // something.
        let mut waiting = Item { text: String::new(), citation: None };
        let mut heading = String::new();
        let mut last = Section::Context;
        let mut open = None;
        for line in log.lines().iter().filter(|line| line.is_content()) {
            let words = one_line(line.words());
            let address = log.address(line);
            if matches!(line.kind(), LineKind::Heading { .. }) {
                if joined.contains(&line.number()) {
                    waiting.text.push_str(words.trim_end_matches([':', ' ']));
                    waiting.text.push_str(": ");
                }
                cite(&mut waiting, address);
                heading = words;
                open = None;
                continue;
            }
            let statement = statement_of.get(&line.number()).copied();
            if statement.is_some()
                && statement == open
                && let Some((_, items)) = draft.sections.iter_mut().find(|(s, _)| *s == last)
                && let Some(item) = items.last_mut()
            {
                // A sentence that goes on in the next line.
                item.text.push(' ');
                item.text.push_str(&words);
                cite(item, address);
                continue;
            }
            if let Some(s) = statement.map(|s| &page.statements[s]) {
                last = section_of_class(class_of(page, s, &s.text[s.label..]));
            }
            open = statement;
            let mut item =
                std::mem::replace(&mut waiting, Item { text: String::new(), citation: None });
            item.text.push_str(&words);
            cite(&mut item, address);
            push(&mut draft.sections, last, item);
        }
        // Headings with nothing below them.
        waiting.text.truncate(waiting.text.trim_end_matches([':', ' ']).len());
        if waiting.text.is_empty() {
            waiting.text = heading;
        }
        if waiting.citation.is_some() && !waiting.text.is_empty() {
            push(&mut draft.sections, last, waiting);
        }
    }
    draft.sections.sort_by_key(|(section, _)| *section);
    draft
}

fn cite(item: &mut Item, address: Address) {
    let one = Citation::one(address.stem, address.line);
    match &mut item.citation {
        Some(citation) => citation.merge(&one),
        None => item.citation = Some(one),
    }
}

fn push(sections: &mut Vec<(Section, Vec<Item>)>, section: Section, item: Item) {
    match sections.iter_mut().find(|(s, _)| *s == section) {
        Some((_, items)) => items.push(item),
        None => sections.push((section, vec![item])),
    }
}
