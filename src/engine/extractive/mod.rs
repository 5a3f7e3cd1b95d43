//! The extractive engine: deterministic, offline, made of the words of the logs.
//!
//! A fold reads its logs into statements ([`page`]), cuts them into sentences and clauses
//! ([`sentence`]), weighs what each holds ([`material`], [`words`], [`tokens`], [`counts`]), chooses what
//! adds most for its length ([`select`]), and joins the chosen words into cited bullets in sections
//! ([`render`], [`sections`]). Words are cut and joined, never changed; what is added stands in brackets
//! and comes from a closed list ([`gloss`]). [`explain`](mod@explain) tells why.
//!
//! # Invariants
//!
//! - The same input gives the same draft: no clock, no randomness, no order of a hash map.
//! - The body never passes [`Budget::limit_chars`](super::Budget), and passes `target_chars` only where
//!   a single statement does; lines marked `#keep` are not counted.
//! - Each item cites each line whose words it uses, headings too.
//! - No step is quadratic in the length of a period.

pub mod counts;
// One phrase a line would make pages of what is read as a table.
#[rustfmt::skip]
mod cues;
mod explain;
mod fold;
mod gloss;
mod material;
mod memories;
mod page;
mod render;
mod sections;
mod select;
mod sentence;
mod statements;
mod tokens;
pub mod told;
mod wisdom;
mod words;

pub use explain::{Choice, Explanation, Why};

use super::{
    DistilInput, Draft, Engine, EngineError, ExtractInput, Extraction, FoldInput, WisdomOp,
};
use crate::memory::item::{Item, Section};

/// Returns what stands in a file whoever drafts it: what people wrote in the weeks of a month, and lines
/// marked `#keep`, word for word, each with its section.
pub fn standing(input: &FoldInput<'_>) -> Vec<(Section, Item)> {
    fold::standing(input)
}

/// Tells how the engine chooses for a week or a month; writes nothing.
pub fn explain(input: &FoldInput<'_>) -> Explanation {
    fold::explain(input)
}

/// The engine that needs no model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Engine for Extractive {
    fn id(&self) -> &'static str {
        "extractive/2"
    }

    fn fold(&self, input: &FoldInput<'_>) -> Result<Draft, EngineError> {
        fold::fold(input)
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        Ok(Extraction { drafts: memories::extract(input), unread: Vec::new() })
    }

    fn distil(&self, input: &DistilInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        Ok(wisdom::distil(input))
    }
}
