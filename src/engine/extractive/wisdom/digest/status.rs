//! Reports that something fails or is waited for, and the later ones that overtake them.
//!
//! `Notion: 401, the key was revoked` is over when the log says hours later `Notion API works with the new key`. Such a
//! pair shares rare words, of which few statements have one: names, and what the matter is about.
//!
//! A log that reports on jobs by name (`` `nightly-sync`: 4 timeouts ``, next day `` `nightly-sync` ✅ ``) says of each only
//! the last thing.

use std::collections::BTreeMap;

use chrono::Days;

use super::statements::DigestStatement;
use crate::{
    engine::extractive::{
        cue_phrases,
        parsed_log::LogStatement,
        sections::{is_attribute, normalized_label},
        statements::word_list::WordList,
    },
    memory::{atom, atom::AtomKind, statement::StatementKind},
    text::{
        hash::{HashedMap, hash_bytes},
        lexicon::{SECTIONS, WISDOM},
    },
};

/// For as many days a report is overtaken by one that shares words with it: later ones are about something new.
const OVERTAKEN_DAYS: Days = Days::new(21);

/// A word is rare if at most one in as many statements has it, or [`RARE_MIN`].
const RARE_SHARE: usize = 60;

const RARE_MIN: usize = 6;

/// The fewest rare words in both, and the least share of all its words.
const SHARED_RARE_MIN: usize = 2;

const SHARED_MIN: f64 = 0.3;

/// The most words of a job's name.
const NAME_WORDS_MAX: usize = 5;

/// The longest report on a job, in characters: a longer one says more than how it works.
const REPORT_CHARS_MAX: usize = 160;

/// What a statement reports on how something works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StatusReport {
    condition: Condition,
    /// The hash of the job's name with which it begins.
    name: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Condition {
    Fails,
    Works,
    /// It has words of both.
    Mixed,
}

impl StatusReport {
    /// Reads the report of a statement; `None` if it has no word or mark for it.
    pub(super) fn of(statement: &LogStatement, own: &str, words: &WordList) -> Option<Self> {
        let marks = &SECTIONS.state_marks;
        let has = |list: &[&str]| !own.is_ascii() && list.iter().any(|it| own.contains(it));
        let fails = words.has(cue_phrases::FAILS) || has(&marks.open) || has(&marks.caution);
        let works = words.has(cue_phrases::WORKS) || has(&marks.done);
        let condition = match (fails, works) {
            (true, false) => Condition::Fails,
            (false, true) => Condition::Works,
            (true, true) => Condition::Mixed,
            (false, false) => return None,
        };
        Some(Self { condition, name: job_name(statement, own) })
    }
}

/// Returns the hash of the name of a job with which a statement begins: code such as `` `nightly-sync` ``, or a label of
/// several words that are written like a name.
fn job_name(statement: &LogStatement, own: &str) -> Option<u64> {
    let bare = own.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`');
    let code = bare.strip_prefix('`').and_then(|it| it.split_once('`')).map(|it| it.0);
    let code = code.filter(|it| it.contains(['-', '_', '.']) && !it.contains([' ', '/', '=']));
    if let Some(code) = code {
        return Some(hash_bytes(code.to_lowercase().as_bytes()));
    }
    let label = statement.label_text();
    let label = label.find(['(', '（']).map_or(label, |it| &label[..it]);
    let name = normalized_label(label);
    let words = || label.split_whitespace();
    let is_name_word = |it: &str| it.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    let is_identifier = || {
        let found = atom::find_atoms(label);
        words().count() == 1 && found.iter().any(|it| it.kind == AtomKind::Identifier)
    };
    let is_name = is_identifier()
        || (2..=NAME_WORDS_MAX).contains(&words().count()) && words().all(is_name_word);
    let is_generic = is_attribute(&name)
        || WISDOM.generic_titles.contains(&&*name)
        || WISDOM.problem_labels.contains(&&*name)
        || WISDOM.cure_labels.contains(&&*name);
    (is_name && !is_generic).then(|| hash_bytes(name.as_bytes()))
}

/// Returns the statements that a later one overtakes.
pub(super) fn overtaken(statements: &[DigestStatement]) -> Vec<usize> {
    let mut found = overtaken_by_name(statements);
    found.extend(overtaken_by_words(statements));
    found
}

fn may_be_overtaken(statement: &DigestStatement) -> bool {
    matches!(
        statement.kind,
        StatementKind::State | StatementKind::Open | StatementKind::Environment
    ) && !statement.is_pinned()
}

/// Returns the reports on a job of which there is a later one.
fn overtaken_by_name(statements: &[DigestStatement]) -> Vec<usize> {
    let name = |it: &DigestStatement| it.status.and_then(|it| it.name);
    let mut last = BTreeMap::new();
    for (at, statement) in statements.iter().enumerate() {
        last.extend(name(statement).map(|it| (it, at)));
    }
    let is_old = |&(at, it): &(usize, &DigestStatement)| {
        may_be_overtaken(it)
            && it.own_text().chars().count() <= REPORT_CHARS_MAX
            && name(it).and_then(|it| last.get(&it)).is_some_and(|it| *it > at)
    };
    statements.iter().enumerate().filter(is_old).map(|it| it.0).collect()
}

/// Returns the reports of failures that share rare words with a later report that something works.
fn overtaken_by_words(statements: &[DigestStatement]) -> Vec<usize> {
    let mut times = HashedMap::<usize>::default();
    let mut working = HashedMap::<Vec<usize>>::default();
    for (at, statement) in statements.iter().enumerate() {
        let works = statement.status.is_some_and(|it| it.condition == Condition::Works);
        for &stem in statement.terms.stems.hashes() {
            *times.entry(stem).or_default() += 1;
            if works {
                working.entry(stem).or_default().push(at);
            }
        }
    }
    let rare_max = RARE_MIN.max(statements.len() / RARE_SHARE);
    let is_rare = |stem: &&u64| times.get(*stem).is_some_and(|it| *it <= rare_max);
    let is_overtaken = |&(at, it): &(usize, &DigestStatement)| {
        let fails = it.status.is_some_and(|it| it.condition == Condition::Fails);
        if !fails || !may_be_overtaken(it) {
            return false;
        }
        let until = it.day.checked_add_days(OVERTAKEN_DAYS).unwrap_or(it.day);
        let mut shared = BTreeMap::<usize, usize>::new();
        for stem in it.own_terms.stems.hashes().iter().filter(is_rare) {
            let later = working
                .get(stem)
                .map_or(&[][..], |all| &all[all.partition_point(|newer| *newer <= at)..]);
            for newer in later.iter().take_while(|it| statements[**it].day <= until) {
                *shared.entry(*newer).or_default() += 1;
            }
        }
        shared.into_iter().any(|(newer, rare)| {
            rare >= SHARED_RARE_MIN
                && it.own_terms.stem_containment(&statements[newer].terms) >= SHARED_MIN
        })
    };
    statements.iter().enumerate().filter(is_overtaken).map(|it| it.0).collect()
}
