//! What a summary may contain of a saved transcript: requests, rules and decisions of the owner, outcomes
//! and open items of the agent.
//!
//! The rest of a conversation (greetings, narration, questions and answers) served the moment. The classes
//! are those that session records use ([`sentence_class`](super::super::sentence_class)).

use std::collections::{HashMap, HashSet};

use super::super::{
    candidates::PiecePosition,
    cue_phrases,
    parsed_log::{LogStatement, ParsedLog},
    sections::{self, StatementClass},
    statements::word_list::WordList,
};
use crate::memory::authorship::Speaker;

/// The maximum number of statements of each kind per transcript.
const REQUESTS_MAX: usize = 2;
const DECISIONS_MAX: usize = 5;
const OUTCOMES_MAX: usize = 6;
const OPEN_MAX: usize = 3;

/// A shorter request names nothing.
const REQUEST_WORDS_MIN: usize = 5;

/// The kinds of statements of a transcript that a summary may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SpokenKind {
    /// The owner asked for it.
    Request,
    /// The owner decided or ordered it, or prefers it.
    Decision,
    Outcome,
    Open,
}

impl SpokenKind {
    pub(super) fn class(self) -> StatementClass {
        match self {
            Self::Request => StatementClass::Context,
            Self::Decision => StatementClass::Decision,
            Self::Outcome => StatementClass::Outcome,
            Self::Open => StatementClass::Open,
        }
    }
}

/// The statements of transcripts in the logs of a period.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    kept: HashMap<(usize, usize), SpokenKind>,
}

impl Conversations {
    pub(super) fn of(pages: &[ParsedLog]) -> Self {
        let mut kept = HashMap::new();
        for (index, page) in pages.iter().enumerate() {
            let mut from = 0;
            while from < page.statements.len() {
                let session = page.statements[from].session;
                let count =
                    page.statements[from..].iter().take_while(|it| it.session == session).count();
                if session.is_some() {
                    add_session(&mut kept, index, page, from..from + count);
                }
                from += count;
            }
        }
        Self { kept }
    }

    /// Returns whether a piece is no part of a transcript, or one that a summary may contain.
    pub(super) fn allows(&self, pages: &[ParsedLog], at: PiecePosition) -> bool {
        let (_, statement) = at.statement_in(pages);
        statement.session.is_none() || self.kind_of(at).is_some()
    }

    /// Returns the kind of a statement of a transcript; `None` if a summary does not contain it.
    pub(super) fn kind_of(&self, at: PiecePosition) -> Option<SpokenKind> {
        self.kept.get(&(at.page, at.statement)).copied()
    }

    /// Returns whether a summary may contain a statement of a transcript.
    pub(super) fn contains(&self, page: usize, statement: usize) -> bool {
        self.kept.contains_key(&(page, statement))
    }
}

/// Adds the statements of one transcript: the first requests, the last of everything else.
fn add_session(
    kept: &mut HashMap<(usize, usize), SpokenKind>,
    index: usize,
    page: &ParsedLog,
    range: std::ops::Range<usize>,
) {
    let mut found: HashMap<SpokenKind, Vec<usize>> = HashMap::new();
    let mut seen = HashSet::new();
    for at in range {
        let statement = &page.statements[at];
        if let Some(kind) = spoken_kind(statement)
            && seen.insert(&statement.text)
        {
            found.entry(kind).or_default().push(at);
        }
    }
    for (kind, statements) in found {
        let (most, is_first) = match kind {
            SpokenKind::Request => (REQUESTS_MAX, true),
            SpokenKind::Decision => (DECISIONS_MAX, false),
            SpokenKind::Outcome => (OUTCOMES_MAX, false),
            SpokenKind::Open => (OPEN_MAX, false),
        };
        let skipped = if is_first { 0 } else { statements.len().saturating_sub(most) };
        let chosen = statements.into_iter().skip(skipped).take(most);
        kept.extend(chosen.map(|at| ((index, at), kind)));
    }
}

fn spoken_kind(statement: &LogStatement) -> Option<SpokenKind> {
    let text = &statement.text[statement.label..];
    let class = if sections::opens_with_decision(text) {
        StatementClass::Decision
    } else {
        sections::class_of_words(text, false)
    };
    match (statement.speaker?, class) {
        (Speaker::Owner, StatementClass::Decision) => Some(SpokenKind::Decision),
        (Speaker::Owner, _) => {
            let words = WordList::of(text);
            let orders = words.has(cue_phrases::RULE)
                || words.has(cue_phrases::FROM_NOW_ON)
                || words.opens_with(cue_phrases::RULE_OPENERS)
                || words.has(cue_phrases::PREFERS);
            if orders {
                Some(SpokenKind::Decision)
            } else {
                (words.len() >= REQUEST_WORDS_MIN).then_some(SpokenKind::Request)
            }
        }
        (Speaker::Assistant, StatementClass::Outcome) => Some(SpokenKind::Outcome),
        (Speaker::Assistant, StatementClass::Open) => Some(SpokenKind::Open),
        (Speaker::Assistant | Speaker::Machine, _) => None,
    }
}
