//! What drafts a fold: one trait, and the types that every engine returns.
//!
//! An engine sees only served text ([`SanitizedLog`]) and returns words with the addresses of the
//! lines that they rest on. It decides no path, writes no file, and reads no clock; whatever it
//! says is checked by `compaction::ground` before it is written.
//!
//! - [`extractive`]: embedded, deterministic, offline; chooses and joins words of the logs.
//! - [`model`]: asks a language model.
//! - [`configured`]: which of them a root is run with.
//!
//! What an engine knows of the root beyond the period ([`extractive::corpus_stats`]) comes from logs dated up
//! to the period's end, so that a batch, a nightly run, and a repeat give the same file.

pub mod configured;
pub mod extractive;
pub mod model;

use chrono::{DateTime, Utc};

use crate::{
    memory::{
        address::{Address, Citation},
        item::{Item, SummarySection},
        period::Period,
        typed::{MemoryType, TypedMemory},
        wisdom::WisdomEntry,
    },
    model::{CallError, ModelRequest, ScheduledOutcome, Spending, WorkOutcome},
    privacy::SanitizedLog,
};

/// What a weekly or monthly fold is made from.
#[derive(Clone, Copy, Debug)]
pub struct SummaryInput<'a> {
    /// A week or a month.
    pub period: Period,
    /// The logs beneath: of the week, or of all weeks of the month. Sorted by stem.
    pub logs: &'a [SanitizedLog],
    /// For a month, its weekly files, oldest first; empty for a week.
    pub weeks: &'a [WeekSource],
    /// How long the text may get.
    pub budget: LengthBudget,
    /// Word counts of the root's logs dated up to the period's end.
    pub counts: &'a extractive::corpus_stats::CorpusCounts,
}

/// A weekly file as the source of a month.
#[derive(Clone, Debug)]
pub struct WeekSource {
    /// The week.
    pub period: Period,
    /// Its bullets in order, each with the section that it stands in. A bullet of a foreign file
    /// cites its own line in that file (`2026-W14:12`).
    pub items: Vec<(Option<SummarySection>, Item)>,
}

/// How long the text of a fold may get, in characters of the body, citations not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LengthBudget {
    /// What to fill: about 30% of the sources.
    pub target_chars: usize,
    /// Never to be passed, except by lines marked `#keep`.
    pub limit_chars: usize,
    /// Every non-blank source line becomes an item with its citation, whatever the length.
    pub verbatim: bool,
}

/// What an engine proposes for a week or a month.
#[derive(Clone, Debug, Default)]
pub struct EngineDraft {
    /// The sections in the order of the file; empty ones are left out.
    pub sections: Vec<(SummarySection, Vec<Item>)>,
    /// Why lines were passed over, where the engine can say more than that they did not fit.
    pub omitted: Vec<(Address, OmissionReason)>,
    /// What was asked of a model and what it replied, for `Engine::retry_rejected`; empty without one.
    pub replies: Vec<(ModelRequest, String)>,
    /// What a reply holds that was not asked for, in words that can be said to the model.
    pub faults: Vec<String>,
}

/// Something that does not stand the check, as it is said to who drafted it.
#[derive(Clone, Debug)]
pub struct DraftFault {
    /// The item; `None` where it is the draft as a whole.
    pub item: Option<Item>,
    /// What is wrong.
    pub reason: String,
}

/// Why a source line reached no item. What is not told is `OverBudget`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OmissionReason {
    /// It says nothing by itself: a heading, a greeting, a rule, a table's header.
    Structure,
    /// Another line that was kept says the same.
    Repeat,
    /// Others were worth more.
    OverBudget,
    /// The item that rested on it did not stand the check.
    Rejected,
    /// A person deleted the item that rested on it.
    Deleted,
    /// It waits for a person, and no engine has seen it.
    Quarantined,
}

impl OmissionReason {
    /// Returns the words that people, JSON, and the database use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Structure => "structure",
            Self::Repeat => "repeat",
            Self::OverBudget => "over budget",
            Self::Rejected => "rejected",
            Self::Deleted => "deleted",
            Self::Quarantined => "held for review",
        }
    }
}

/// What typed memories are extracted from.
#[derive(Clone, Copy)]
pub struct ExtractInput<'a> {
    /// One day's log.
    pub log: &'a SanitizedLog,
    /// The typed memories that exist, as they may be seen.
    pub existing: &'a [TypedMemory],
    /// Says what is wrong with a proposal, for an engine that can be asked again.
    pub check: &'a dyn Fn(&MemoryDraft) -> Result<(), String>,
}

/// What the typed memories of a week's days are extracted with.
#[derive(Clone, Copy)]
pub struct WeekExtractInput<'a> {
    /// The typed memories that exist, as they may be seen.
    pub existing: &'a [TypedMemory],
    /// Says what is wrong with a proposal.
    pub check: &'a dyn Fn(&MemoryDraft) -> Result<(), String>,
}

impl<'a> ExtractInput<'a> {
    /// Returns what nobody looks at before it is returned.
    pub fn unchecked(log: &'a SanitizedLog, existing: &'a [TypedMemory]) -> Self {
        Self { log, existing, check: &|_| Ok(()) }
    }
}

/// What an engine makes of a day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extraction {
    /// The memories that it proposes.
    pub drafts: Vec<MemoryDraft>,
    /// What it proposes and cannot be read as a memory, also when it was asked for again.
    pub unreadable: Vec<UnreadableMemory>,
}

/// A part of a reply that is no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableMemory {
    /// The part as it came.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
    /// The lines that it cites, where that could be read.
    pub citation: Option<Citation>,
}

/// A typed memory that an engine proposes. Names of files are made by us, not by engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryDraft {
    /// What kind of memory.
    pub kind: MemoryType,
    /// A few words that the file name is made of.
    pub topic: String,
    /// A short title, at most 120 characters.
    pub name: String,
    /// One line for the index, under 120 characters.
    pub description: String,
    /// The statement, one or a few sentences.
    pub statement: String,
    /// Why it is so; must be there for feedback.
    pub why: Option<String>,
    /// When and how to act on it.
    pub how_to_apply: Option<String>,
    /// The lines that all of it rests on.
    pub citation: Citation,
    /// The memory that exists and that this one says anew: the name of its file, without `.md`.
    pub updates: Option<String>,
}

/// What `WISDOM.md` is edited from.
#[derive(Clone, Copy, Debug)]
pub struct DistillInput<'a> {
    /// The month that is distilled.
    pub month: Period,
    /// The bullets of its file, with their sections.
    pub items: &'a [(Option<SummarySection>, Item)],
    /// The logs of the month's weeks, sorted by stem.
    pub logs: &'a [SanitizedLog],
    /// The entries that stand, the person's own too.
    pub entries: &'a [WisdomEntry],
    /// The typed memories created or updated since the last month that was distilled.
    pub memories: &'a [TypedMemory],
    /// Categories to use; empty for the engine's own choice.
    pub categories: &'a [String],
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
        /// The category to stand under.
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
        /// The day lines that it rests on.
        citation: Citation,
    },
    /// An entry that was said again or got richer.
    Merge {
        /// The entry.
        id: String,
        /// New words, or `None` when the old ones stand and the entry is only reinforced.
        words: Option<(String, String)>,
        /// Why.
        reason: String,
        /// The day lines that say it again.
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

/// A draft that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The sources hold nothing that could be said.
    #[error("the sources of {period} hold no text")]
    EmptySources {
        /// The period.
        period: Period,
    },
    /// The model could not be had, or did not give what was asked for.
    #[error(transparent)]
    Model(CallError),
}

/// What drafts folds, typed memories, and wisdom.
pub trait Engine: Send + Sync {
    /// Returns name and version, as frontmatter records it: `extractive/2`.
    fn id(&self) -> &str;

    /// Returns whether a language model is asked, which takes time, and may cost money.
    fn is_model(&self) -> bool {
        false
    }

    /// Drafts a week or a month.
    ///
    /// # Errors
    ///
    /// Returns why there is no draft; never an empty one.
    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError>;

    /// Drafts again what did not stand the check: returns items in the place of those that `faults`
    /// name, or `None` if asking again makes no sense.
    ///
    /// # Errors
    ///
    /// Returns why there is no second draft; the first stands for itself then.
    fn retry_rejected(
        &self,
        _input: &SummaryInput<'_>,
        _draft: &EngineDraft,
        _faults: &[DraftFault],
    ) -> Result<Option<EngineDraft>, EngineError> {
        Ok(None)
    }

    /// Proposes typed memories from one day; none is the usual answer.
    ///
    /// # Errors
    ///
    /// Returns why the day could not be read.
    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError>;

    /// Proposes typed memories from all days of a week that is to be folded after them, for what both
    /// take together: `Engine::summarize` of the same input asks for nothing more then. `None` where it
    /// gains nothing, or, unless it `may_ask`, where that was not done before: each day is to be
    /// extracted alone.
    ///
    /// # Errors
    ///
    /// Returns why the week could not be read.
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
    fn distill(&self, input: &DistillInput<'_>) -> Result<Vec<WisdomOp>, EngineError>;

    /// Returns why what it needs would not be asked now; `None` if it would, or if it needs nothing.
    /// Sends nothing.
    fn unavailable_reason(&self, _now: DateTime<Utc>) -> Option<CallError> {
        None
    }

    /// Says which run asks from now on.
    fn begin_run(&self, _run: i64) {}

    /// Returns what was spent since the last time that this was asked.
    fn take_spent(&self) -> Spending {
        Spending::default()
    }

    /// Says that the work has ended that was drafted last.
    fn end_work(&self, _end: WorkOutcome) {}

    /// Says that nothing is left to be done. What was learned of a model may change what is asked from
    /// now on; before, what is asked again must be what was asked.
    fn on_idle(&self) {}

    /// Begins a scheduled pass, for which drafts may come later at a lower price. Returns whether any
    /// came now.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The pass may go on.
    fn begin_scheduled_run(&self) -> Result<bool, CallError> {
        Ok(false)
    }

    /// Fetches drafts that were asked for by a scheduled pass and have come meanwhile. Returns whether any did.
    ///
    /// # Errors
    ///
    /// Returns why they could not be fetched. The pass may go on.
    fn collect_batch(&self) -> Result<bool, CallError> {
        Ok(false)
    }

    /// Ends a scheduled pass: what can wait is sent.
    ///
    /// # Errors
    ///
    /// Returns why it could not be sent.
    fn end_scheduled_run(&self) -> Result<ScheduledOutcome, CallError> {
        Ok(ScheduledOutcome::default())
    }
}
