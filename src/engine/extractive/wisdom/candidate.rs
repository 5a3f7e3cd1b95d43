//! Candidates for entries, and how they are made from sentences and typed memories.

use std::collections::BTreeSet;

use super::SAME_EXCEPT_VALUES;
use crate::{
    engine::{
        DistillInput, WisdomOp,
        extractive::{
            cue_phrases,
            memories::{
                deadlines::has_date,
                persons::{about_person, is_about_person},
                reasons::split_reason,
                reports::opens_as_report,
                roles::{BlockRole, role_of_label},
            },
            statements::{
                labels::split_label,
                self_contained::{code_share, words_are_self_contained},
                terms::StatementTerms,
                titles::{capitalize_title, title_of},
                word_list::WordList,
            },
        },
    },
    memory::{
        address::{Address, Citation},
        log::TextOrigin,
        typed::{MemoryType, TypedMemory},
        wisdom::{WisdomEntry, WisdomEntryMeta},
    },
    privacy::SanitizedLog,
    text::{calendar, sentences::sentence_ranges},
};

const TITLE_CHARS_MAX: usize = 80;

const SENTENCES_MAX: usize = 3;

const TEXT_CHARS_MAX: usize = 420;

/// A citation contains the oldest lines, for `first seen`, and the newest.
const OLDEST_CITED: usize = 2;

const NEWEST_CITED: usize = 6;

/// The kind of an entry, for its category.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    Person,
    Rule,
    Decision,
    Fact,
}

/// A statement that may become an entry.
#[derive(Clone, Debug)]
pub(super) struct EntryCandidate {
    pub(super) kind: EntryKind,
    pub(super) title: String,
    pub(super) text: String,
    pub(super) terms: StatementTerms,
    pub(super) score: usize,
    pub(super) reason: String,
    /// Ascending.
    pub(super) occurrences: Vec<Occurrence>,
    /// The newest occurrence with this wording.
    pub(super) newest: Occurrence,
}

/// The lines of one occurrence of a sentence; never empty.
pub(super) type Occurrence = Vec<Address>;

impl EntryCandidate {
    pub(super) fn citation(&self) -> Option<Citation> {
        cite_occurrences(&self.occurrences, &self.newest)
    }

    /// Returns the edit of an entry that says the same, or `None` when nothing is new about it.
    pub(super) fn merge_into(
        &self,
        entry: &WisdomEntry,
        meta: &WisdomEntryMeta,
    ) -> Option<WisdomOp> {
        let newer = |it: &&Occurrence| it.iter().all(|it| it.stem.date() > meta.last_reinforced);
        let new: Vec<Occurrence> = self.occurrences.iter().filter(newer).cloned().collect();
        let citation = cite_occurrences(&new, &[])?;
        let current = StatementTerms::of(&entry.text);
        // Logs do not update what a person wrote.
        let changed = !meta.sources.cites_summary()
            && current.similarity(&self.terms) >= SAME_EXCEPT_VALUES
            && !current.values.is_empty()
            && current.values != self.terms.values;
        let day = citation.newest_date();
        let (words, reason, citation) = if changed {
            let words = (self.title.clone(), self.text.clone());
            (Some(words), format!("a newer value on {day}"), cite_occurrences(&new, &self.newest)?)
        } else {
            (None, format!("said again on {day}"), citation)
        };
        Some(WisdomOp::Merge { id: meta.id.clone(), words, reason, citation })
    }
}

/// Returns whether a sentence is lasting guidance.
pub(super) fn is_lasting(text: &str, words: &WordList) -> bool {
    if !(words.has(cue_phrases::RULE)
        || words.has(cue_phrases::LASTING_LIMITS)
        || is_about_person(text, words))
    {
        return false;
    }
    if !words_are_self_contained(text, words)
        || text.chars().count() > TEXT_CHARS_MAX
        || opens_as_report(words)
        || words.opens_with(cue_phrases::TASK_OPENERS)
        || words.opens_with(cue_phrases::NOT_RULES)
        || words.has(cue_phrases::NARRATIVE)
        || (words.has(cue_phrases::ERROR_REPORTS) && !words.has(cue_phrases::RULE))
        || (has_date(words) && !words.has(cue_phrases::DEADLINE) && !words.has(cue_phrases::RULE))
        || code_share(text) > 0.3
        || text.contains("http")
    {
        return false;
    }
    let label = split_label(text);
    !label.is_some_and(|(label, _)| {
        matches!(role_of_label(label), Some(BlockRole::Task | BlockRole::Reason))
            || WordList::of(label).opens_with(cue_phrases::TASK_OPENERS)
    })
}

pub(super) fn candidate_from_text(
    text: &str,
    occurrences: Vec<Occurrence>,
    own: Occurrence,
    days: usize,
) -> EntryCandidate {
    let words = WordList::of(text);
    let rule = words.has(cue_phrases::RULE);
    let person = about_person(text);
    let kind = match (person, rule) {
        (true, _) => EntryKind::Person,
        (_, true) => EntryKind::Rule,
        _ if words.opens_with(cue_phrases::DECIDED) => EntryKind::Decision,
        _ => EntryKind::Fact,
    };
    let score = days
        + 4 * usize::from(rule)
        + 4 * usize::from(person)
        + 3 * usize::from(split_reason(text).is_some());
    EntryCandidate {
        kind,
        title: title_for(text),
        text: text.to_owned(),
        terms: StatementTerms::of(text),
        score,
        reason: format!("said on {days} days"),
        occurrences,
        newest: own,
    }
}

/// Returns a candidate from a typed memory that gives guidance; not from deadlines and single choices.
pub(super) fn candidate_from_memory(
    memory: &TypedMemory,
    logs: &[SanitizedLog],
) -> Option<EntryCandidate> {
    let mut addresses: Occurrence =
        memory.sources.iter().map(|(address, _)| address.clone()).collect();
    let external = addresses.iter().any(|it| {
        let log = logs.iter().find(|log| *log.stem() == it.stem);
        log.and_then(|log| log.line(it.line))
            .is_some_and(|line| line.origin() == TextOrigin::External)
    });
    if addresses.is_empty() || external {
        return None;
    }
    addresses.sort();
    let (statement, why) = split_body(&memory.body);
    let words = WordList::of(&statement);
    let (kind, score) = match memory.kind {
        MemoryType::User => (EntryKind::Person, 14),
        MemoryType::Feedback => (EntryKind::Rule, 16),
        MemoryType::Project => (EntryKind::Decision, 8),
        MemoryType::Reference => return None,
    };
    let guides = words.has(cue_phrases::RULE)
        || words.has(cue_phrases::LASTING_LIMITS)
        || words.has(cue_phrases::INSTEAD);
    let one_off =
        memory.kind == MemoryType::Project && (!guides || why.is_none() || has_date(&words));
    // A favorite becomes wisdom only when it recurs in the logs.
    let taste = memory.kind == MemoryType::User && words.has(cue_phrases::FAVORITE);
    if words.len() < 3 || one_off || taste {
        return None;
    }
    // The speaker is no reason if the statement names them.
    let why = why.filter(|it| WordList::of(it).len() >= 4 && !statement.starts_with(it.as_str()));
    let text = match why {
        Some(why) if WordList::of(&why).opens_with(cue_phrases::SO_THAT) => {
            format!("{} {why}", statement.trim_end_matches('.'))
        }
        Some(why) => format!("{} — {why}", statement.trim_end_matches('.')),
        None => statement.clone(),
    };
    let text = if text.chars().count() <= TEXT_CHARS_MAX { text } else { statement };
    Some(EntryCandidate {
        kind,
        title: title_for(&memory.name),
        terms: StatementTerms::of(&text),
        text: first_sentences(&text),
        score,
        reason: format!("from {}", memory.file_name.display()),
        occurrences: vec![addresses.clone()],
        newest: addresses,
    })
}

/// Splits the body of a typed memory into its statement and its reason.
fn split_body(body: &str) -> (String, Option<String>) {
    let mut statement = Vec::new();
    let mut why = Vec::new();
    let mut in_why = false;
    for line in
        body.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let bare = line.replace("**", "");
        let label = split_label(&bare).map(|(label, rest)| (role_of_label(label), rest));
        match label {
            Some((Some(BlockRole::Reason), rest)) if why.is_empty() && !in_why => {
                in_why = true;
                why.push(bare[rest..].to_owned());
            }
            Some((Some(BlockRole::Reason), _)) => break,
            _ if in_why => why.push(bare),
            _ => statement.push(bare),
        }
    }
    (statement.join(" "), (!why.is_empty()).then(|| why.join(" ")))
}

/// Raises the score of a candidate whose lines the month's file cites, and takes over a value that a
/// person corrected there.
pub(super) fn apply_month_items(candidate: &mut EntryCandidate, input: &DistillInput<'_>) {
    let Some(cited) = Citation::from_addresses(candidate.occurrences.iter().flatten()) else {
        return;
    };
    for (_, item) in input.items {
        if !item.citation.as_ref().is_some_and(|it| it.overlaps(&cited)) {
            continue;
        }
        let terms = StatementTerms::of(&item.text);
        // Engines never change values, so a bullet with other values was edited by a person.
        let corrected = !candidate.terms.values.is_empty()
            && candidate.terms.values.is_disjoint(&terms.values)
            && !terms.values.is_empty()
            && candidate.terms.similarity(&terms) >= SAME_EXCEPT_VALUES;
        if corrected {
            candidate.title = title_for(&item.text);
            candidate.text.clone_from(&item.text);
            candidate.terms = terms;
        }
        candidate.score += 3;
        return;
    }
}

/// Returns a citation of the oldest and the newest occurrences, one a day if there are many, and of `own`.
pub(super) fn cite_occurrences(occurrences: &[Occurrence], own: &[Address]) -> Option<Citation> {
    let mut days = BTreeSet::new();
    let few = occurrences.len() <= OLDEST_CITED + NEWEST_CITED;
    let first_of_day =
        |it: &&Occurrence| few || it.first().is_some_and(|it| days.insert(it.stem.date()));
    let occurrences: Vec<&Occurrence> = occurrences.iter().filter(first_of_day).collect();
    let newest_at = occurrences.len().saturating_sub(NEWEST_CITED);
    let chosen =
        occurrences.iter().enumerate().filter(|&(i, _)| i < OLDEST_CITED || i >= newest_at);
    Citation::from_addresses(chosen.flat_map(|(_, it)| it.iter()).chain(own))
}

/// Returns the title of a statement: its label if that is more than a date, else its lead clause.
pub(super) fn title_for(text: &str) -> String {
    let title = match split_label(text) {
        Some((label, _)) if label.split_whitespace().count() >= 2 && !is_date_label(label) => {
            label.to_owned()
        }
        Some((label, _)) if label.split_whitespace().count() >= 4 => label.to_owned(),
        Some((label, rest)) if is_date_label(label) && WordList::of(&text[rest..]).len() >= 4 => {
            title_of(&text[rest..], TITLE_CHARS_MAX)
        }
        _ => title_of(text, TITLE_CHARS_MAX),
    };
    capitalize_title(&title)
}

fn is_date_label(label: &str) -> bool {
    WordList::of(label).has(cue_phrases::MONTHS)
        || WordList::of(label).iter().any(|w| calendar::weekday_names().contains(&w))
}

pub(super) fn first_sentences(text: &str) -> String {
    let end =
        sentence_ranges(text).into_iter().take(SENTENCES_MAX).next_back().map_or(0, |(_, end)| end);
    text[..end].trim().to_owned()
}
