//! Proposes edits of `WISDOM.md` from one month, without a model.
//!
//! An entry comes from a lasting statement: one that recurs on at least three days, one marked `#keep`,
//! or a typed memory. It must guide what somebody does: a rule, a limit, a habit, a person's wish.
//! Reports, steps, and states are ignored. Each candidate has exactly one outcome: it reinforces an
//! entry, updates one, is added, or is dropped. Entries that were not repeated for three months are
//! proposed for removal, last.
//!
//! - [`sentences`]: all sentences of the month's logs, and the candidates among them.
//! - [`candidate`]: candidates and where they come from.
//! - [`user_statements`]: statements that people wrote into weeks, months and memories.
//! - [`similarity`]: when two statements are about the same.
//! - [`digest`](mod@digest): the bullets beside the entries, chosen from the newest logs.
//!
//! # Invariants
//!
//! - The text is that of the logs. An existing entry is never reworded, except if a newer statement of
//!   the same fact has another number, date, or weekday: then the newer one wins.
//! - Text of external origin supports nothing.
//! - An entry that the user wrote is never changed; it only prevents adding the same again.
//! - What a person wrote into a week, a month, or a typed memory takes precedence over the cited lines:
//!   an entry that repeats those takes the person's words and keeps them.
//! - The same input gives the same edits, best first.
//!
//! Called by the extractive engine.

mod candidate;
pub(super) mod digest;
mod sentences;
pub(super) mod similarity;
mod user_statements;

use std::collections::BTreeMap;

use chrono::Months;

use self::{
    candidate::{EntryKind, apply_month_items, candidate_from_memory},
    sentences::LogSentences,
    similarity::same_topic,
    user_statements::{UserStatement, apply_user_statements, user_statements},
};
use super::statements::{terms::StatementTerms, word_list::WordList};
use crate::{
    engine::{DistillInput, WisdomOp},
    memory::wisdom::{WisdomEntry, WisdomEntryMeta},
};

/// The most new entries per month; more would displace older ones.
const ADDS_MAX: usize = 8;

/// An entry not repeated for this long is proposed for removal.
const UNREINFORCED_AFTER: Months = Months::new(3);

/// Two statements at least this similar differ only in their values.
const SAME_EXCEPT_VALUES: f64 = 0.75;

pub(super) fn distill(input: &DistillInput<'_>) -> Vec<WisdomOp> {
    let sentences = LogSentences::build(input.logs);
    let statements = user_statements(input);
    let mut candidates = sentences.recurring_candidates();
    candidates.extend(sentences.marked_candidates());
    candidates.extend(
        input.memories.iter().filter_map(|memory| candidate_from_memory(memory, input.logs)),
    );
    for candidate in &mut candidates {
        apply_month_items(candidate, input);
        apply_user_statements(candidate, &statements);
    }
    candidates
        .extend(statements.iter().filter(|it| it.is_lasting).map(UserStatement::to_candidate));
    // Best first, then by text, so that the result does not depend on the reading order.
    candidates.sort_by(|a, b| b.score.cmp(&a.score).then_with(|| a.text.cmp(&b.text)));

    let entries: Vec<(StatementTerms, &WisdomEntry)> =
        input.entries.iter().map(|it| (StatementTerms::of(&it.words()), it)).collect();
    let mut merged: BTreeMap<&str, WisdomOp> = BTreeMap::new();
    let mut adds: Vec<WisdomOp> = Vec::new();
    let mut added: Vec<StatementTerms> = Vec::new();
    for (terms, entry) in &entries {
        if let Some(meta) = &entry.meta
            && let Some(statement) = sentences.user_correction(entry, terms, meta, &statements)
        {
            // A candidate that repeats the correction adds nothing.
            added.push(statement.terms.clone());
            merged.insert(&meta.id, statement.correction(meta));
        }
    }
    for candidate in candidates {
        if let Some(entry) = sentences.matching_entry(&candidate, &entries) {
            if let Some(meta) = &entry.meta
                && let Some(op) = candidate.merge_into(entry, meta)
                && !merged.contains_key(meta.id.as_str())
            {
                merged.insert(&meta.id, op);
            }
            continue;
        }
        if adds.len() == ADDS_MAX || added.iter().any(|it| same_topic(it, &candidate.terms)) {
            continue;
        }
        if let Some(citation) = candidate.citation() {
            added.push(candidate.terms);
            adds.push(WisdomOp::Add {
                title: candidate.title,
                text: candidate.text,
                category: category_for(candidate.kind, input.categories),
                reason: candidate.reason,
                citation,
            });
        }
    }
    for (terms, entry) in &entries {
        let Some(meta) = &entry.meta else { continue };
        if !merged.contains_key(meta.id.as_str())
            && let Some(citation) = sentences.new_occurrences(terms, meta)
        {
            let reason = format!("said again on {}", citation.newest_date());
            let op = WisdomOp::Merge { id: meta.id.clone(), words: None, reason, citation };
            merged.insert(&meta.id, op);
        }
    }
    let drops = unreinforced_drops(input, &merged);
    // In the order of the file, not of the ids, which are arbitrary.
    let mut ops: Vec<WisdomOp> = input
        .entries
        .iter()
        .filter_map(|entry| merged.remove(entry.meta.as_ref()?.id.as_str()))
        .collect();
    ops.extend(adds);
    ops.extend(drops);
    ops
}

/// Returns removals of managed entries that were not repeated for long, oldest first.
fn unreinforced_drops(
    input: &DistillInput<'_>,
    merged: &BTreeMap<&str, WisdomOp>,
) -> Vec<WisdomOp> {
    let mut marks: Vec<&WisdomEntryMeta> = input
        .entries
        .iter()
        .filter_map(|entry| entry.meta.as_ref())
        .filter(|meta| !merged.contains_key(meta.id.as_str()))
        .filter(|meta| meta.last_reinforced + UNREINFORCED_AFTER < input.month.last())
        .collect();
    marks.sort_by_key(|meta| (meta.last_reinforced, &meta.id));
    marks
        .into_iter()
        .map(|meta| WisdomOp::Drop {
            id: meta.id.clone(),
            reason: format!("not reinforced since {}", meta.last_reinforced),
        })
        .collect()
}

/// Returns the category: the default one, or of the configured ones the one that shares a word with it.
fn category_for(kind: EntryKind, given: &[String]) -> Option<String> {
    let (own, words): (&str, &[&str]) = match kind {
        EntryKind::Person => {
            ("People", &["people", "person", "preferences", "user", "team", "who"])
        }
        EntryKind::Rule => (
            "How to work",
            &["how", "work", "process", "rules", "practice", "practices", "workflow"],
        ),
        EntryKind::Decision => ("Decisions", &["decisions", "architecture", "design", "choices"]),
        EntryKind::Fact => {
            ("Standing facts", &["facts", "standing", "context", "limits", "constraints", "domain"])
        }
    };
    if given.is_empty() {
        return Some(own.to_owned());
    }
    given.iter().find(|it| WordList::of(it).iter().any(|word| words.contains(&word))).cloned()
}

#[cfg(test)]
mod tests;
