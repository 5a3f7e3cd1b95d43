//! Changes of `WISDOM.md` that are proposed, and what a person says of them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::Proposed;
use crate::{
    compaction::{
        Compactor, JobError, PassError, View,
        commit::{NewFile, Recorded},
        lasting::Edit,
        records,
    },
    engine::WisdomOp,
    memory::{
        address::Citation,
        decision::{Decision, Decisions, What},
        log::DailyLog,
        period::Period,
        wisdom::{WisdomCaps, WisdomFile},
    },
    privacy,
    store::{
        lineage::{
            LineageError,
            review::{NewProposal, ProposalState},
        },
        vault::VaultError,
    },
};

/// What began the run.
const TRIGGER: &str = "review";

/// A change of `WISDOM.md`, as it is kept until a person has seen it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum Change {
    /// A new entry.
    Add {
        /// Its heading.
        title: String,
        /// What it says.
        text: String,
        /// Under which heading it would stand.
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
    },
    /// An entry that was said again or got richer.
    Merge {
        /// The entry.
        id: String,
        /// Heading and text, where they change.
        words: Option<(String, String)>,
        /// Why.
        reason: String,
    },
    /// An entry that nothing carries any more.
    Drop {
        /// The entry.
        id: String,
        /// Why.
        reason: String,
    },
}

/// Why a change cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// What it rests on is no longer there or says something else.
    #[error(
        "{id} cannot be made: its source lines say it no longer; refuse it, or write the entry yourself"
    )]
    Stale {
        /// The change.
        id: String,
    },
    /// The file cannot be read or was changed meanwhile.
    #[error("{0}")]
    File(String),
    /// What ends any work.
    #[error(transparent)]
    Pass(#[from] PassError),
}

impl From<LineageError> for ReviewError {
    fn from(error: LineageError) -> Self {
        Self::Pass(error.into())
    }
}

impl From<VaultError> for ReviewError {
    fn from(error: VaultError) -> Self {
        Self::Pass(error.into())
    }
}

impl Change {
    /// Returns the words by which decisions know it, as they know a line by its own: what would be
    /// written, not why. What only says an entry again is another change where other lines say it.
    fn key(&self, sources: &str) -> String {
        match self {
            Self::Add { title, text, .. } => format!("add {title}: {text}"),
            Self::Merge { id, words: Some((title, text)), .. } => {
                format!("merge {id} {title}: {text}")
            }
            Self::Merge { id, words: None, .. } => format!("merge {id} {sources}"),
            Self::Drop { id, .. } => format!("drop {id}"),
        }
    }
}

/// Returns what an edit of `WISDOM.md` would have done, as changes to be proposed; without those that
/// a person has decided about before.
pub(in crate::compaction) fn changes_of(
    ops: &[WisdomOp],
    dropped: &[String],
    target: &str,
    decisions: &Decisions,
) -> Vec<NewProposal> {
    let new = |change: &Change, sources: String| {
        let is_settled = decisions.reviewed(target, &change.key(&sources)).is_some();
        (!is_settled).then(|| NewProposal {
            target: target.to_owned(),
            change: serde_json::json!(change).to_string(),
            sources,
        })
    };
    let of_op = |op: &WisdomOp| match op.clone() {
        WisdomOp::Add { title, text, category, reason, citation } => {
            new(&Change::Add { title, text, category, reason }, citation.to_string())
        }
        WisdomOp::Merge { id, words, reason, citation } => {
            new(&Change::Merge { id, words, reason }, citation.to_string())
        }
        WisdomOp::Drop { id, reason } => new(&Change::Drop { id, reason }, String::new()),
    };
    let gone = |id: &String| {
        let reason = "its source changed".to_owned();
        new(&Change::Drop { id: id.clone(), reason }, String::new())
    };
    ops.iter().map(of_op).chain(dropped.iter().map(gone)).flatten().collect()
}

impl Compactor<'_> {
    /// Makes changes of `WISDOM.md` that a person accepted, each as proposed or in their own words.
    /// It is a run, and `undo` takes it back.
    ///
    /// # Errors
    ///
    /// Returns why nothing was changed.
    pub fn accept_changes(
        &mut self,
        changes: &[(Proposed, Option<(String, String)>)],
    ) -> Result<(), ReviewError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        let view = self.notice_alone(TRIGGER, now)?;
        let path = self.vault.layout().wisdom();
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&self.settings.agent_name),
        };
        for (proposed, own_words) in changes {
            self.make_change(&mut file, proposed, own_words.as_ref(), &view)?;
        }
        let months: BTreeSet<Period> = changes.iter().map(|it| it.0.row.period).collect();
        let open = self.lineage.proposals()?;
        let is_made = |id: i64| changes.iter().any(|it| it.0.row.id == id);
        for month in months {
            // The last word on a month says that it is distilled.
            if !open.iter().any(|it| it.period == month && !is_made(it.id)) {
                file.add_distilled(month);
            }
        }
        let text = file.print();
        let recorded =
            Recorded { documents: vec![records::of_wisdom(&path, &text)], ..Recorded::default() };
        let new = NewFile { path: path.clone(), text: Some(text), standing };
        let mut run = None;
        let run = self.run(&mut run, TRIGGER, now)?;
        let written = self.write(Some(run), None, &[new], &recorded);
        if written.is_ok() {
            let settled = changes.iter().map(|(proposed, own_words)| {
                // In its place stand the words of the person.
                let what = if own_words.is_some() { What::Refused } else { What::Accepted };
                (proposed, what, ProposalState::Accepted)
            });
            self.settle_changes(&settled.collect::<Vec<_>>(), now)?;
        }
        self.end_run(run)?;
        match written {
            Ok(()) => Ok(()),
            Err(JobError::Critical(error)) => Err(error.into()),
            Err(error) => Err(ReviewError::File(error.to_string())),
        }
    }

    /// Writes down that changes are not to be made.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn refuse_changes(&mut self, changes: &[Proposed]) -> Result<(), PassError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        let settled = changes.iter().map(|it| (it, What::Refused, ProposalState::Refused));
        self.settle_changes(&settled.collect::<Vec<_>>(), now)
    }

    /// Writes down what was said of changes, so that it holds without the database too.
    fn settle_changes(
        &mut self,
        changes: &[(&Proposed, What, ProposalState)],
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        let decisions = self.new_decisions()?;
        let made: Vec<Decision> = changes
            .iter()
            .map(|(Proposed { row, change, .. }, what, _)| {
                let hashes = decisions.line_hash(&change.key(&row.sources)).into_iter().collect();
                Decision { at: now, what: *what, path: row.target.clone(), hashes }
            })
            .collect();
        self.append_decisions(&made)?;
        for (proposed, _, state) in changes {
            self.lineage.settle_proposal(proposed.row.id, *state)?;
        }
        Ok(())
    }

    fn make_change(
        &self,
        file: &mut WisdomFile,
        proposed: &Proposed,
        own_words: Option<&(String, String)>,
        view: &View,
    ) -> Result<(), ReviewError> {
        let stale = || ReviewError::Stale { id: proposed.id.clone() };
        if let Some((title, text)) = own_words {
            if let Change::Merge { id, .. } | Change::Drop { id, .. } = &proposed.change {
                file.drop_entry(id);
            }
            file.add_own(title, text);
            return Ok(());
        }
        let citation = proposed.row.sources.parse::<Citation>().ok();
        let op = match (proposed.change.clone(), citation) {
            (Change::Drop { id, .. }, _) => {
                return if file.drop_entry(&id) { Ok(()) } else { Err(stale()) };
            }
            (Change::Add { title, text, category, reason }, Some(citation)) => {
                WisdomOp::Add { title, text, category, reason, citation }
            }
            (Change::Merge { id, words, reason }, Some(citation)) => {
                WisdomOp::Merge { id, words, reason, citation }
            }
            (_, None) => return Err(stale()),
        };
        let (WisdomOp::Add { citation, .. } | WisdomOp::Merge { citation, .. }) = &op else {
            return Err(stale());
        };
        let mut logs = Vec::new();
        for (stem, _) in citation.files() {
            let log = if stem.is_summary() {
                let path = self.vault.layout().source(stem);
                let text = self.vault.read_text(&path)?.ok_or_else(stale)?;
                DailyLog::parse(stem.clone(), text.as_bytes()).map_err(|_| stale())?
            } else {
                self.vault.read_log(stem)?.ok_or_else(stale)?
            };
            logs.push(privacy::serve(&log, &view.inventory.rules));
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        let wisdom = &self.settings.settings.wisdom;
        let caps = WisdomCaps { entries: wisdom.max_entries, chars: wisdom.max_chars };
        let edit = Edit {
            late: false,
            logs: &logs,
            memories: &view.inventory.memories,
            is_deleted: &|_| false,
            rules: &view.inventory.rules,
            shaken: &[],
        };
        let done = edit.apply(file, &[op], caps);
        if done.changed == 0 {
            return Err(stale());
        }
        if let Some(date) = done.newest {
            file.set_compacted(date);
        }
        Ok(())
    }
}
