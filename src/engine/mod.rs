//! Engines draft summaries, memories and wisdom: one trait, and the types that every engine returns.
//!
//! An engine sees only sanitized text ([`SanitizedLog`]) and returns text with the addresses of its
//! source lines. It chooses no path, writes no file, and reads no clock. `compaction::grounding` checks
//! every draft before it is written.
//!
//! - [`extractive`]: embedded, deterministic, offline; selects and joins words of the logs.
//! - [`model`]: asks a language model.
//! - [`configured`]: creates the engine that a root is configured for.
//!
//! What an engine knows about the root beyond the period ([`extractive::corpus_stats`]) comes from logs
//! dated up to the period's end, so that a batch, a nightly run, and a repeated run give the same file.

pub mod configured;
pub mod extractive;
mod keep_mark;
pub mod model;

use chrono::{DateTime, Utc};

use crate::{
    memory::{
        address::{Address, Citation},
        authorship::OriginReason,
        item::{Item, SummarySection},
        period::Period,
        statement::StatementKind,
        typed::{MemoryType, TypedMemory},
        wisdom::WisdomEntry,
    },
    model::{Batching, CallError, Spending, WorkOutcome},
    privacy::{SanitizedLine, SanitizedLog},
};

/// The sources of a weekly or monthly summary.
#[derive(Clone, Copy)]
pub struct SummaryInput<'a> {
    /// A week or a month.
    pub period: Period,
    /// The logs of the week, or of all weeks of the month. Sorted by stem.
    pub logs: &'a [SanitizedLog],
    /// The weekly files of a month, oldest first; empty for a week.
    pub weeks: &'a [WeekSource],
    /// How long the text may be.
    pub budget: LengthBudget,
    /// Word counts of the root's logs dated up to the period's end.
    pub counts: &'a extractive::corpus_stats::CorpusCounts,
    /// Returns what is wrong with a bullet, for an engine that can correct it.
    pub check: &'a BulletCheck<'a>,
}

/// Returns what is wrong with a bullet of a summary.
pub type BulletCheck<'a> = dyn Fn(&Item) -> Option<BulletFault> + 'a;

/// What is wrong with a bullet, worded so that it can be sent to a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulletFault {
    /// The checks refuse it.
    Refused(String),
    /// It may stay, but leaves out what its lines are about.
    Incomplete {
        /// How many amounts and days it leaves out.
        missing: usize,
        /// Which ones.
        reason: String,
    },
}

/// A weekly file as a source of a month.
#[derive(Clone, Debug)]
pub struct WeekSource {
    /// The week.
    pub period: Period,
    /// Its bullets in order, each with its section. A bullet of a file that memoird did not write cites
    /// its own line in that file (`2026-W14:12`).
    pub items: Vec<(Option<SummarySection>, Item)>,
}

/// How long the text of a summary may be, in characters of the body without citations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthBudget {
    /// The length to aim at: about 30% of the sources.
    pub target_chars: usize,
    /// The hard limit; lines marked `#keep` do not count.
    pub limit_chars: usize,
    /// Whether every non-blank source line becomes an item with its citation, whatever the length.
    pub verbatim: bool,
}

/// What an engine proposes for a week or a month.
#[derive(Clone, Debug, Default)]
pub struct EngineDraft {
    /// The sections in the order of the file; empty ones are left out.
    pub sections: Vec<(SummarySection, Vec<Item>)>,
    /// Why lines were left out, where the reason is not [`OmissionReason::OverBudget`].
    pub omitted: Vec<(Address, OmissionReason)>,
    /// Bullets that a model corrected when it was asked again, each as it was before and as it is now.
    pub corrected: Vec<(Item, Item)>,
}

/// Why a source line reached no item. Lines without a recorded reason are `OverBudget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OmissionReason {
    /// It has no content of its own: a heading, a greeting, a horizontal rule, a table's header.
    Structure,
    /// A selected line says the same.
    Repeat,
    /// Other lines ranked higher.
    OverBudget,
    /// The item derived from it failed the checks.
    Rejected,
    /// A person deleted the item derived from it.
    Deleted,
    /// It is quarantined for review, so no engine saw it.
    Quarantined,
    /// A program wrote it, or it was read elsewhere.
    External(OriginReason),
}

impl OmissionReason {
    /// Returns the name used in output, JSON, and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Repeat => "repeat",
            Self::OverBudget => "over budget",
            Self::Rejected => "rejected",
            Self::Deleted => "deleted",
            Self::Quarantined => "held for review",
            Self::External(reason) => reason.name(),
        }
    }

    /// Returns why a line was left out, if the line itself shows it.
    pub fn of_line(line: &SanitizedLine) -> Option<Self> {
        if line.is_quarantined() {
            return Some(Self::Quarantined);
        }
        let reason = line.origin_reason().filter(|it| it.is_of_text())?;
        Some(Self::External(reason))
    }

    /// Returns whether the reason says only that an engine did not select the line.
    pub fn is_unspecific(self) -> bool {
        matches!(self, Self::Structure | Self::OverBudget)
    }
}

/// The sources of the typed memories of one day.
#[derive(Clone, Copy)]
pub struct ExtractInput<'a> {
    /// One day's log.
    pub log: &'a SanitizedLog,
    /// The existing typed memories, sanitized.
    pub existing: &'a [TypedMemory],
    /// Returns what is wrong with a statement, for an engine that can correct it.
    pub check: &'a dyn Fn(&StatementDraft) -> Result<(), String>,
}

/// What an engine needs, besides the logs, to extract the typed memories of a week's days.
#[derive(Clone, Copy)]
pub struct WeekExtractInput<'a> {
    /// The existing typed memories, sanitized.
    pub existing: &'a [TypedMemory],
    /// Returns what is wrong with a statement.
    pub check: &'a dyn Fn(&StatementDraft) -> Result<(), String>,
}

impl<'a> ExtractInput<'a> {
    /// Returns an input whose drafts are not checked by the engine itself.
    pub fn unchecked(log: &'a SanitizedLog, existing: &'a [TypedMemory]) -> Self {
        Self { log, existing, check: &|_| Ok(()) }
    }
}

/// What an engine extracts from a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// The proposed memories of one statement.
    pub drafts: Vec<MemoryDraft>,
    /// The proposed statements for memories about topics.
    pub statements: Vec<StatementDraft>,
    /// Proposals that could not be read, even after a retry.
    pub unreadable: Vec<UnreadableItem>,
}

/// A part of a reply that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableItem {
    /// The unchanged text of the part.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
    /// The lines that it cites, if those could be read.
    pub citation: Option<Citation>,
}

/// A statement that an engine proposes for the memory about its topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementDraft {
    /// What it says, which also decides the type of the memory.
    pub kind: StatementKind,
    /// The name of the topic, at most 120 characters.
    pub topic: String,
    /// One or two sentences; `label: value` if a newer value is to replace it.
    pub text: String,
    /// Its source lines.
    pub citation: Citation,
    /// The existing statement that it replaces: the hash of its words ([`Item::hash`]).
    pub replaces: Option<String>,
}

/// A typed memory of one statement that an engine proposes. Engines do not choose file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDraft {
    /// What kind of memory.
    pub kind: MemoryType,
    /// A few words from which the file name is derived.
    pub topic: String,
    /// A short title, at most 120 characters.
    pub name: String,
    /// One line for the index, under 120 characters.
    pub description: String,
    /// The statement, one or a few sentences.
    pub statement: String,
    /// The reason; required for feedback.
    pub why: Option<String>,
    /// When and how to act on it.
    pub how_to_apply: Option<String>,
    /// The source lines of the whole memory.
    pub citation: Citation,
}

/// The sources of the edits of `WISDOM.md`.
#[derive(Clone, Copy)]
pub struct DistillInput<'a> {
    /// The month that is distilled.
    pub month: Period,
    /// The bullets of the month's file, with their sections.
    pub items: &'a [(Option<SummarySection>, Item)],
    /// The logs of the month's weeks, sorted by stem.
    pub logs: &'a [SanitizedLog],
    /// The current entries, including those that the user wrote.
    pub entries: &'a [WisdomEntry],
    /// The typed memories created or updated since the last distilled month.
    pub memories: &'a [TypedMemory],
    /// The categories to use; if empty, the engine chooses.
    pub categories: &'a [String],
    /// Returns what is wrong with an operation, for an engine that can correct it.
    pub check: &'a dyn Fn(&WisdomOp) -> Result<(), String>,
}

/// What an engine proposes for `WISDOM.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distillation {
    /// The edits.
    pub ops: Vec<WisdomOp>,
    /// Proposals that could not be read, even after a retry.
    pub unreadable: Vec<UnreadableItem>,
}

/// One edit of `WISDOM.md`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WisdomOp {
    /// A new entry.
    Add {
        /// The heading, one line.
        title: String,
        /// One to three sentences.
        text: String,
        /// The category of the entry.
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
        /// The source lines in daily logs.
        citation: Citation,
    },
    /// An entry that newer lines repeat or extend.
    Merge {
        /// The entry.
        id: String,
        /// New title and text, or `None` when the entry is only reinforced.
        words: Option<(String, String)>,
        /// Why.
        reason: String,
        /// The lines of daily logs that repeat it.
        citation: Citation,
    },
    /// An entry that no longer holds.
    Drop {
        /// The entry.
        id: String,
        /// Why.
        reason: String,
    },
}

/// Why an engine made no draft.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The sources contain no text to summarize.
    #[error("the sources of {period} contain no text")]
    EmptySources {
        /// The period.
        period: Period,
    },
    /// The model could not be reached, or its reply could not be used.
    #[error(transparent)]
    Model(CallError),
}

/// Drafts summaries, typed memories, and wisdom.
pub trait Engine: Send + Sync {
    /// Returns the name and version as recorded in frontmatter: `extractive/3`.
    fn id(&self) -> &str;

    /// Returns whether the engine asks a language model, which takes time and may cost money.
    fn is_model(&self) -> bool {
        false
    }

    /// Returns whether its memories come from the statements of the newest logs, filed by topic, so that a day has
    /// none of its own.
    fn files_by_topic(&self) -> bool {
        false
    }

    /// Drafts a week or a month.
    ///
    /// # Errors
    ///
    /// Returns why there is no draft. A draft is never empty.
    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError>;

    /// Proposes typed memories from one day; usually there are none.
    ///
    /// # Errors
    ///
    /// Returns why the day could not be read.
    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError>;

    /// Returns whether `Engine::prefetch_weeks` may save something for a week that is due.
    ///
    /// # Errors
    ///
    /// Returns why there is no reply yet, if it was asked for.
    fn may_prefetch(&self, _week: &SummaryInput<'_>) -> Result<bool, EngineError> {
        Ok(false)
    }

    /// Asks for several weeks at once, where that saves something: a later `Engine::extract_week` of one of them then
    /// finds the reply. `weeks` are in the order in which they are due, newest first; the first ones are asked,
    /// once `Engine::may_prefetch` has said of the first that it may save something.
    ///
    /// # Errors
    ///
    /// Returns why there is no reply.
    fn prefetch_weeks(
        &self,
        _weeks: &[SummaryInput<'_>],
        _existing: &[TypedMemory],
    ) -> Result<(), EngineError> {
        Ok(())
    }

    /// Proposes typed memories from all days of a week whose summary is due afterwards, with one request
    /// for both: a later `Engine::summarize` with the same input sends no further request.
    ///
    /// Returns `None` if the caller should extract each day separately: a combined request saves
    /// nothing, or `may_ask` is false and there is no earlier reply.
    ///
    /// # Errors
    ///
    /// Returns why the week could not be extracted.
    fn extract_week(
        &self,
        _input: &SummaryInput<'_>,
        _days: &WeekExtractInput<'_>,
        _may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        Ok(None)
    }

    /// Proposes edits of `WISDOM.md` from one month.
    ///
    /// # Errors
    ///
    /// Returns why the month could not be distilled.
    fn distill(&self, input: &DistillInput<'_>) -> Result<Distillation, EngineError>;

    /// Returns why the model would not be asked now; `None` if it would, or if there is no model.
    /// Sends nothing.
    fn unavailable_reason(&self, _now: DateTime<Utc>) -> Option<CallError> {
        None
    }

    /// Sets the run to which later requests belong.
    fn begin_run(&self, _run: i64) {}

    /// Returns what was spent since the last call of this function.
    fn take_spent(&self) -> Spending {
        Spending::default()
    }

    /// Reports how the work on the last draft ended.
    fn end_work(&self, _end: WorkOutcome) {}

    /// Reports that no work is left. From now on requests may use what was learned about the model
    /// (characters per token); until then a repeated request must have the same bytes.
    fn on_idle(&self) {}

    /// Returns the batches of the engine's model; `None` if it has none.
    fn batching(&self) -> Option<&dyn Batching> {
        None
    }
}
