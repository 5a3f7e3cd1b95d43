//! Extracts typed memories from one day by cue phrases and structure: high precision, no model.
//!
//! A memory is a statement that is understandable by itself and outlasts its day: a person's preference
//! or role, guidance with its reason, a decision with its reason, a deadline with its date, an external
//! place where something is found. In doubt there is none. The text is that of the log; a label, a
//! speaker, or a reason is separated from the statement but never reworded.
//!
//! - [`extractor`]: reads a block and returns its best memory; [`feedback`] has the rules for guidance.
//! - [`persons`], [`deadlines`], [`references`]: recognize statements of these kinds.
//! - [`reasons`]: separates a statement from its reason.
//! - [`roles`]: what a heading or label says about the blocks below it.
//!
//! # Invariants
//!
//! - Text of external origin is never read (`statements` returns no block for it).
//! - Feedback always has a reason; a project memory has a reason, a rejected alternative, or a date.
//! - The same day and the same existing memories give the same drafts, best first.
//!
//! Called by the extractive engine.

mod candidate;
pub(super) mod deadlines;
mod extractor;
mod feedback;
pub(super) mod keep_mark;
pub(super) mod persons;
pub(super) mod reasons;
mod references;
pub(super) mod reports;
pub(super) mod roles;

use self::{candidate::MemoryCandidate, extractor::MemoryExtractor, roles::BlockRoles};
use super::statements::{blocks, terms::StatementTerms, word_list::WordList};
use crate::{
    engine::{ExtractInput, MemoryDraft},
    memory::{
        address::{Address, Citation},
        typed::{MemoryType, TypedMemory},
    },
};

const DRAFTS_MAX: usize = 5;

/// The longest `name` in frontmatter.
const NAME_CHARS_MAX: usize = 120;

/// Two memories with at least this share of common content words say the same.
const DUPLICATE_OVERLAP: f64 = 0.6;

const DUPLICATE_PREFERENCE_OVERLAP: f64 = 0.4;

/// Rules with more code words than this are about code, which can be read in the code itself.
const CODE_SHARE_MAX: f64 = 0.3;

pub(super) fn extract(input: &ExtractInput<'_>) -> Vec<MemoryDraft> {
    let blocks = blocks::parse_blocks(input.log);
    let day = MemoryExtractor { blocks: &blocks, roles: BlockRoles::of(&blocks) };
    let mut found: Vec<MemoryCandidate> =
        (0..blocks.len()).filter_map(|at| day.read_block(at)).collect();
    // Best first; of equals the last one in the log, since it may correct the others.
    found.sort_by(|a, b| b.score.cmp(&a.score).then(b.first_line().cmp(&a.first_line())));

    if found.is_empty() {
        return Vec::new();
    }
    let mut earlier: Vec<ComparableMemory> =
        input.existing.iter().map(ComparableMemory::of_memory).collect();
    let mut drafts = Vec::new();
    for found in found {
        let memory = ComparableMemory::of_statement(found.kind, &found.statement, &found.statement);
        if earlier.iter().any(|it| memory.is_duplicate_of(it))
            || shares_unchanged_source(&found, input)
        {
            continue;
        }
        let addresses: Vec<Address> = found
            .lines
            .iter()
            .map(|&line| Address { stem: input.log.stem().clone(), line })
            .collect();
        let Some(citation) = Citation::from_addresses(&addresses) else { continue };
        earlier.push(memory);
        drafts.push(found.into_draft(citation));
        if drafts.len() == DRAFTS_MAX {
            break;
        }
    }
    drafts
}

/// The content of a memory, for comparison.
struct ComparableMemory {
    kind: MemoryType,
    /// The first word of the statement; for a person's wish, the name.
    opener: Option<String>,
    terms: StatementTerms,
}

impl ComparableMemory {
    fn of_memory(memory: &TypedMemory) -> Self {
        let all = format!("{} {} {}", memory.name, memory.description, memory.body);
        Self::of_statement(memory.kind, &memory.body, &all)
    }

    fn of_statement(kind: MemoryType, statement: &str, all: &str) -> Self {
        let opener = WordList::of(statement).iter().next().map(str::to_owned);
        Self { kind, opener, terms: StatementTerms::of(all) }
    }

    /// Returns whether both say the same. Two wishes of one person need less in common.
    fn is_duplicate_of(&self, other: &Self) -> bool {
        let one_person =
            self.kind == MemoryType::User && other.kind == self.kind && self.opener == other.opener;
        let overlap = if one_person { DUPLICATE_PREFERENCE_OVERLAP } else { DUPLICATE_OVERLAP };
        self.terms.containment(&other.terms) >= overlap
            || self.terms.similarity(&other.terms) >= overlap
    }
}

/// Returns whether an existing memory cites an unchanged line of this one.
fn shares_unchanged_source(found: &MemoryCandidate, input: &ExtractInput<'_>) -> bool {
    input.existing.iter().flat_map(|memory| &memory.sources).any(|(address, hash)| {
        address.stem == *input.log.stem()
            && found.lines.contains(&address.line)
            && input.log.line(address.line).is_some_and(|line| line.hash().hex4() == *hash)
    })
}

#[cfg(test)]
mod tests;
