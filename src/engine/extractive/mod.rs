//! The extractive engine: deterministic, offline, using only words of the logs.
//!
//! A summary parses its logs into statements ([`parsed_log`], [`table_rows`]), splits them into sentences and clauses
//! ([`pieces`](crate::text::pieces)), weighs what each holds ([`candidates`], [`tokens`], [`corpus_stats`]), chooses what
//! adds most for its length ([`select`]), and joins the chosen words into cited bullets in sections
//! ([`render`], [`sections`]). Words are cut and joined, never changed; additions are in brackets and come
//! from a closed list ([`annotations`]). [`explain`](mod@explain) reports why units were chosen.
//!
//! # Invariants
//!
//! - The same input gives the same draft: no clock, no randomness, no order of a hash map.
//! - The body never exceeds [`LengthBudget::limit_chars`](super::LengthBudget), and exceeds `target_chars`
//!   only if a single statement does; lines marked `#keep` are not counted.
//! - Each item cites each line whose words it uses, including headings.
//! - No step is quadratic in the length of a period.

mod annotations;
mod candidates;
pub mod corpus_stats;
mod cue_phrases;
mod explain;
mod memories;
mod parsed_log;
mod render;
mod routine_reports;
mod sections;
mod select;
pub mod sentence_class;
mod statements;
mod summary;
mod table_rows;
mod tokens;
mod wisdom;
mod worth;

pub use self::statements::finished_tasks::{DatedLine, OpenTask, due_day, finished_tasks};
pub(crate) use self::statements::{replacement, word_list::WordList};
pub use self::wisdom::{
    digest::{
        Digest, DigestBullet, DigestExplanation, DigestInput, DigestOutcome, ExplainedStatement,
        FailedCheck, FiledTopics, HeldBullet, ModelReading, ModelStatement, ReadStatements,
        StatementPlace, TopicMemory,
        contradictions::{IsEndedBy, NoteContradiction},
        labelled_value::{LABEL_VALUES_MAX, LabelledValue},
    },
    similarity::{SeenStatements, says_title, shared_words},
};
pub use explain::{ExplainedUnit, SelectionOutcome, SummaryExplanation};

use super::{
    DistillInput, Distillation, Engine, EngineDraft, EngineError, ExtractInput, Extraction,
    SummaryInput,
};
use crate::{
    memory::item::{Item, SummarySection},
    privacy::SanitizedLog,
};

/// Returns the items that every engine must include, each with its section: bullets that people wrote in
/// the weeks of a month, and lines marked `#keep`, verbatim.
pub fn pinned_items(input: &SummaryInput<'_>) -> Vec<(SummarySection, Item)> {
    summary::pinned_items(input)
}

/// Explains how the engine chooses for a week or a month; writes nothing.
pub fn explain(input: &SummaryInput<'_>) -> SummaryExplanation {
    summary::explain(input)
}

/// Files the statements of the newest logs by topic, and chooses the bullets of `WISDOM.md`.
pub fn digest(input: &DigestInput<'_>) -> Digest {
    wisdom::digest::digest(input)
}

/// Reads the statements of the newest logs, to file them more than once.
pub fn read_statements(input: &DigestInput<'_>) -> ReadStatements {
    wisdom::digest::read_statements(input)
}

/// Files statements by topic.
pub fn file_statements(input: &DigestInput<'_>, read: &ReadStatements) -> FiledTopics {
    wisdom::digest::file_statements(input, read)
}

/// Returns whether a text says that the thing with this name was stopped, perhaps for a while only.
pub fn says_stopped(name: &str, text: &str) -> bool {
    wisdom::digest::stopped::says_stopped(name, text)
}

/// Returns whether a text from a memory about the thing with this name says that it was stopped, and not for a while
/// only.
pub fn says_stopped_for_good(name: &str, text: &str) -> bool {
    wisdom::digest::stopped::says_stopped_for_good(name, text)
}

/// Returns whether a text says that the thing with this name, which was stopped, runs again.
pub fn says_resumed(name: &str, text: &str) -> bool {
    wisdom::digest::stopped::says_resumed(name, text)
}

/// Explains how the bullets of `WISDOM.md` are chosen.
pub fn explain_digest(input: &DigestInput<'_>) -> DigestExplanation {
    wisdom::digest::explain(input)
}

/// Finds the statements of notes that newer logs contradict, at most one for each line.
pub fn find_contradictions(
    notes: &[SanitizedLog],
    logs: &[SanitizedLog],
    is_ended_by: IsEndedBy<'_>,
) -> Vec<NoteContradiction> {
    wisdom::digest::contradictions::find(notes, logs, is_ended_by)
}

/// The engine that needs no model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extractive;

impl Engine for Extractive {
    fn id(&self) -> &'static str {
        "extractive/3"
    }

    fn files_by_topic(&self) -> bool {
        true
    }

    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
        summary::summarize(input)
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        Ok(Extraction { drafts: memories::extract(input), ..Extraction::default() })
    }

    fn distill(&self, input: &DistillInput<'_>) -> Result<Distillation, EngineError> {
        Ok(Distillation { ops: wisdom::distill(input), ..Distillation::default() })
    }
}

fn as_f64(count: usize) -> f64 {
    // Counts of units and words stay far below 2^32; more than that would not fit in memory.
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
