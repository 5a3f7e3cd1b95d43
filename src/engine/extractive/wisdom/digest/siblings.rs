//! Joins the short statements below one title into one.

use chrono::NaiveDate;

use super::{KeptOut, statements::DigestStatement, stopped::StoppedThing};
use crate::{
    engine::extractive::{
        as_f64,
        statements::{terms::TermExtractor, word_list::WordList},
    },
    text::hash::HashedMap,
};

/// The longest bullet of several statements, in characters: a list says little without its end.
const JOINED_CHARS_MAX: usize = 400;

/// Joins the statements of one section below one title, so that the title appears once: an item of a list
/// says little without the others.
pub(super) fn join_siblings(
    found: Vec<DigestStatement>,
    extractor: &mut TermExtractor,
    kept_out: KeptOut<'_>,
) -> Vec<DigestStatement> {
    let mut joined: Vec<DigestStatement> = Vec::with_capacity(found.len());
    let mut open: Vec<Vec<DigestStatement>> = Vec::new();
    let mut last_of_key = HashedMap::<usize>::default();
    for statement in &found {
        last_of_key.extend(statement.keys.iter().map(|it| (*it, statement.order)));
    }
    let changes: Vec<(usize, StoppedThing)> = found
        .iter()
        .flat_map(|it| it.changed.things().map(|thing| (it.order, thing.clone())))
        .collect();
    let newest = found.last().map_or(NaiveDate::MIN, |it| it.day);
    for statement in found {
        let Some(title) = statement.title else {
            joined.push(statement);
            continue;
        };
        let is_same = |it: &[DigestStatement]| it[0].title == Some(title);
        for members in open.extract_if(.., |it| !is_same(it)) {
            joined.extend(join(members, extractor));
        }
        // What must not be written keeps nothing else out.
        if kept_out(&statement.text, &statement.citation, &statement.own_citation).is_some() {
            joined.push(statement);
            continue;
        }
        // A value that changes later is told apart from those that hold.
        let replaced = statement.keys.iter().any(|it| last_of_key.get(it) > Some(&statement.order));
        // What was stopped, and runs again, as well.
        let is_later = |it: &&(usize, StoppedThing)| it.0 > statement.order;
        let mut later = changes.iter().filter(is_later);
        if replaced
            || statement.ended_by.is_some()
            || later.any(|(_, it)| statement.changed.things().any(|own| own == it))
        {
            joined.push(statement);
            continue;
        }
        let sort = |it: &DigestStatement| (it.kind, it.is_done, it.is_over(newest));
        let of_section = open.iter().position(|it| sort(&it[0]) == sort(&statement));
        let Some(at) = of_section else {
            open.push(vec![statement]);
            continue;
        };
        let chars = |it: &DigestStatement| it.own_text().chars().count() + 2;
        let all: usize = open[at].iter().map(chars).sum();
        if title.length + all + chars(&statement) <= JOINED_CHARS_MAX {
            open[at].push(statement);
        } else {
            let members = std::mem::replace(&mut open[at], vec![statement]);
            joined.extend(join(members, extractor));
        }
    }
    for members in open {
        joined.extend(join(members, extractor));
    }
    joined.sort_by_key(|it| it.order);
    for (order, statement) in joined.iter_mut().enumerate() {
        statement.order = order;
    }
    joined
}

/// Returns one statement with the words of all.
fn join(members: Vec<DigestStatement>, extractor: &mut TermExtractor) -> Option<DigestStatement> {
    let mut members = members.into_iter();
    let mut joined = members.next()?;
    let Some(title) = joined.title.filter(|_| members.len() > 0) else { return Some(joined) };
    let count = as_f64(members.len() + 1);
    let mut worth = joined.worth;
    for statement in members {
        let own = statement.own_text().to_owned();
        joined.text.truncate(joined.text.trim_end_matches(['.', ';', ',']).len());
        joined.text.extend(["; ", &own]);
        joined.citation.merge(&statement.citation);
        joined.own_citation.merge(&statement.own_citation);
        joined.names.extend(&statement.names);
        joined.keys.extend(&statement.keys);
        joined.changed.extend(statement.changed);
        joined.plan.made = joined.plan.made.or(statement.plan.made);
        joined.plan.done = joined.plan.done.or(statement.plan.done);
        joined.is_boundary |= statement.is_boundary;
        joined.news_worth = joined.news_worth.max(statement.news_worth);
        joined.due = joined.due.max(statement.due);
        worth += statement.worth;
    }
    joined.value_length = None;
    joined.names.sort_unstable();
    joined.names.dedup();
    joined.worth = worth / count;
    joined.terms = extractor.extract(&WordList::of(&joined.text));
    joined.own_terms = extractor.extract(&WordList::of(&joined.text[title.length..]));
    Some(joined)
}
