//! What waits for a person's decision: quarantined lines, proposed changes, and contradictions.
//!
//! Quarantined lines are shown here and nowhere else, with secrets masked.

use chrono::NaiveDate;
use serde::Serialize;

use crate::{
    compaction::{
        self,
        proposals::change::ProposedChange,
        review::{self, QuarantinedLine, ReviewContradiction, ReviewProposal, ReviewQueue},
    },
    memory::{address::Address, decision::Verdict},
    operations::{
        error::{CommandError, CommandResult},
        workspace::MemoryRoot,
    },
    recall::contradictions::find_contradictions,
    store::{
        db::lineage::{Lineage, review::QuarantineScope},
        fs::inventory::Inventory,
    },
};

/// One entry of the queue, as `--json` and the page show it.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ReviewEntry {
    pub(crate) id: String,
    /// `line`, `memory`, `wisdom`, `typed`, `item`, `contradiction`, or `conflict`.
    pub(crate) what: &'static str,
    /// Why it waits.
    pub(crate) why: Vec<String>,
    /// The current line with secrets masked; for a change, the new text.
    pub(crate) text: String,
    /// The log, or the file to change.
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<&'static str>,
    /// For a change: the current text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
    /// For a change: the log lines that it cites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<String>,
    /// For a contradiction: the day since which the logs say something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<NaiveDate>,
    /// For a change: the sanitized text of these lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) source_lines: Vec<SourceLine>,
    /// For a change: whether it can no longer be applied.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) stale: bool,
    /// For an item: whether it can be accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) acceptable: Option<bool>,
    /// For an item: the engine that drafted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    /// For a change or an item: the run that proposed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<i64>,
    /// The earlier decision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) verdict: Option<&'static str>,
}

/// A line of a log that an entry is about.
#[derive(Debug, Serialize)]
pub(crate) struct SourceLine {
    pub(crate) address: String,
    pub(crate) text: String,
}

/// Returns the queue of what waits; with `decided` also what was decided before.
pub(crate) fn load_queue(root: &MemoryRoot, decided: bool) -> CommandResult<ReviewQueue> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    queue_of(root, &view.inventory, decided)
}

/// Returns how many entries wait for a decision.
pub(crate) fn waiting_count(root: &MemoryRoot) -> CommandResult<usize> {
    Ok(entries(&load_queue(root, false)?).iter().filter(|it| it.verdict.is_none()).count())
}

/// Returns the queue as [`load_queue`] does, given the files of the root.
pub(crate) fn queue_of(
    root: &MemoryRoot,
    inventory: &Inventory,
    decided: bool,
) -> CommandResult<ReviewQueue> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let queue = review::review_queue(&root.vault, lineage.as_ref(), inventory, decided)?;
    let contradictions = find_contradictions(&root.vault, inventory, decided)?;
    Ok(ReviewQueue { contradictions, ..queue })
}

/// Removes everything from the queue whose id is not listed; fails if the queue has none with a listed id.
pub(crate) fn retain_ids(queue: &mut ReviewQueue, ids: &[String]) -> CommandResult<()> {
    for id in ids {
        if !has_entry(queue, id) {
            return Err(CommandError::usage(format!("the review queue has no `{id}`"))
                .hint("memoird review list"));
        }
    }
    queue.lines.retain(|it| ids.iter().any(|id| line_matches(it, id)));
    queue.changes.retain(|it| ids.contains(&it.id));
    queue.contradictions.retain(|it| ids.contains(&it.id));
    Ok(())
}

/// Returns whether the queue has an entry with an id.
pub(crate) fn has_entry(queue: &ReviewQueue, id: &str) -> bool {
    queue.lines.iter().any(|it| line_matches(it, id))
        || queue.changes.iter().any(|it| it.id == id)
        || queue.contradictions.iter().any(|it| it.id == id)
}

/// Returns why a change cannot be accepted; `None` if it can.
pub(crate) fn refusal(proposed: &ReviewProposal) -> Option<&'static str> {
    match () {
        () if is_unacceptable(&proposed.change) => Some(UNACCEPTABLE),
        () if proposed.is_stale => Some(STALE),
        () => None,
    }
}

/// Returns whether the change is only listed and cannot be accepted.
pub(crate) fn is_unacceptable(change: &ProposedChange) -> bool {
    matches!(change, ProposedChange::Item { passes: false, .. })
}

pub(crate) const UNACCEPTABLE: &str = "unsupported items cannot be accepted; refuse them, or edit them to write them in \
                    your own words";

/// The kind of a contradiction, as JSON and `--why` name it.
pub(crate) const CONTRADICTION: &str = "contradiction";

pub(crate) const NO_CHANGE: &str =
    "memoird never changes curated files; edit the file yourself, or refuse the contradiction";

/// Why a change can no longer be applied.
pub(crate) const STALE: &str = "its file or its source lines changed since it was proposed";

/// Returns the kind of a change, as JSON and `--why` name it.
pub(crate) fn change_kind(change: &ProposedChange) -> &'static str {
    match change {
        ProposedChange::Memory { .. } => "typed",
        ProposedChange::Item { .. } => "item",
        ProposedChange::Add { .. } | ProposedChange::Merge { .. } | ProposedChange::Drop { .. } => {
            "wisdom"
        }
    }
}

fn line_matches(line: &QuarantinedLine, id: &str) -> bool {
    line.id == id || line.address.to_string() == id || line.address.stem.as_str() == id
}

/// Returns the entries of a queue as they are shown.
pub(crate) fn entries(queue: &ReviewQueue) -> Vec<ReviewEntry> {
    queue
        .lines
        .iter()
        .map(ReviewEntry::of_line)
        .chain(queue.changes.iter().map(ReviewEntry::of_change))
        .chain(queue.contradictions.iter().map(ReviewEntry::of_contradiction))
        .collect()
}

impl ReviewEntry {
    /// Returns why the entry cannot be accepted; `None` if it can.
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match self.acceptable {
            Some(false) if self.what == CONTRADICTION => Some(NO_CHANGE),
            Some(false) => Some(UNACCEPTABLE),
            _ => self.stale.then_some(STALE),
        }
    }

    fn of_contradiction(
        ReviewContradiction { id, path, found, verdict }: &ReviewContradiction,
    ) -> Self {
        let log = found.log.to_string();
        Self {
            id: id.clone(),
            what: CONTRADICTION,
            why: vec![CONTRADICTION.to_owned()],
            text: found.text.clone(),
            path: path.clone(),
            line: Some(found.line),
            origin: None,
            before: None,
            sources: Some(log.clone()),
            since: Some(found.since),
            source_lines: vec![SourceLine { address: log, text: found.log_text.clone() }],
            stale: false,
            acceptable: Some(false),
            engine: None,
            run: None,
            verdict: verdict.map(verdict_name),
        }
    }

    fn of_line(line: &QuarantinedLine) -> Self {
        Self {
            id: line.id.clone(),
            what: match line.what {
                QuarantineScope::Line => "line",
                QuarantineScope::Memory => "memory",
            },
            why: line.reasons.clone(),
            text: line.text.clone(),
            path: line.path.clone(),
            line: Some(line.address.line),
            origin: Some(line.origin.name()),
            before: None,
            sources: None,
            since: None,
            source_lines: Vec::new(),
            stale: false,
            acceptable: None,
            engine: None,
            run: None,
            verdict: line.verdict.map(verdict_name),
        }
    }

    fn of_change(proposed: &ReviewProposal) -> Self {
        let (text, reason) = match &proposed.change {
            ProposedChange::Add { title, text, reason, .. } => (format!("{title}: {text}"), reason),
            ProposedChange::Merge { words: Some((title, text)), reason, .. } => {
                (format!("{title}: {text}"), reason)
            }
            ProposedChange::Merge { words: None, reason, .. } => ("said again".to_owned(), reason),
            ProposedChange::Drop { reason, .. } => ("to be dropped".to_owned(), reason),
            ProposedChange::Memory { words: Some(words), reason, .. } => {
                (words.display_text(), reason)
            }
            ProposedChange::Memory { words: None, reason, .. } => {
                ("to be removed".to_owned(), reason)
            }
            ProposedChange::Item { text, reason, .. } => (text.clone(), reason),
        };
        let (acceptable, engine) = match &proposed.change {
            ProposedChange::Item { passes, engine, .. } => (Some(*passes), Some(engine.clone())),
            _ => (None, None),
        };
        let source_line = |(at, text): &(Address, String)| SourceLine {
            address: at.to_string(),
            text: text.clone(),
        };
        let sources = &proposed.row.sources;
        Self {
            id: proposed.id.clone(),
            what: change_kind(&proposed.change),
            why: vec![reason.clone()],
            text,
            path: proposed.row.target.clone(),
            line: None,
            origin: None,
            before: proposed.current.clone(),
            sources: (!sources.is_empty()).then(|| sources.clone()),
            since: None,
            source_lines: proposed.source_lines.iter().map(source_line).collect(),
            stale: proposed.is_stale,
            acceptable,
            engine,
            run: proposed.run.map(|it| it.0),
            verdict: proposed.verdict.map(verdict_name),
        }
    }
}

fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Refused => "refused",
    }
}
