//! Proposed changes of files, and the verdicts of people on them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{ReviewProposal, items, memories::ProposedMemory, wisdom};
use crate::{
    compaction::{
        CompactionError, Compactor, JobFailure,
        journal::commit::{FileWrite, RecordedChanges},
        undo::REVIEW_TRIGGER,
    },
    memory::{
        decision::{Decision, DecisionKind, Decisions},
        wisdom::WisdomFile,
    },
    privacy::PrivacyRules,
    store::{
        db::lineage::{
            LineageError,
            review::{NewProposal, Proposal, ProposalState},
        },
        fs::vault::VaultError,
    },
};

/// A change of `WISDOM.md` or of a typed memory, stored until a person has reviewed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub enum ProposedChange {
    /// A new entry.
    Add {
        /// Its heading.
        title: String,
        /// What it says.
        text: String,
        /// The category of the entry.
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
    },
    /// An entry that was confirmed or extended.
    Merge {
        /// The entry.
        id: String,
        /// New title and text, if they change.
        words: Option<(String, String)>,
        /// Why.
        reason: String,
    },
    /// An entry without remaining sources.
    Drop {
        /// The entry.
        id: String,
        /// Why.
        reason: String,
    },
    /// A change of a typed memory that a person wrote or edited and whose source lines changed.
    Memory {
        /// The proposed memory; `None` if the file would be removed.
        words: Option<ProposedMemory>,
        /// The hash of what the memory said when this was proposed.
        base: String,
        /// Why.
        reason: String,
    },
    /// Not a change, but an item that the checks kept out of the file.
    Item {
        /// What it says.
        text: String,
        /// Why it was kept out.
        reason: String,
        /// Who drafted it.
        engine: String,
        /// Whether a person may accept it.
        passes: bool,
    },
}

/// The words with which a person replaces a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserReplacement {
    /// The title, for an entry of `WISDOM.md`.
    pub title: Option<String>,
    /// The words.
    pub text: String,
}

/// A file ready to be written, and the changes that it includes.
pub(super) struct PreparedEdit<'a> {
    pub(super) file: FileWrite,
    pub(super) recorded: RecordedChanges,
    pub(super) changes: Vec<&'a (ReviewProposal, Option<UserReplacement>)>,
}

/// Why a change cannot be made or reopened.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// Its source lines are gone or say something else.
    #[error(
        "{id} cannot be made: its source lines no longer say it; refuse it, or write the words yourself"
    )]
    Stale {
        /// The change.
        id: String,
    },
    /// The file is not the one for which it was proposed.
    #[error("{id} cannot be made: `{path}` has changed since it was proposed; nothing was done")]
    FileChanged {
        /// The change.
        id: String,
        /// The file.
        path: String,
    },
    /// It was accepted and is in the file.
    #[error("{id} is already in `{path}`; remove it there first")]
    AlreadyApplied {
        /// The change.
        id: String,
        /// The file.
        path: String,
    },
    /// The file cannot be read or was changed meanwhile.
    #[error("{0}")]
    File(String),
    /// An error that ends any work.
    #[error(transparent)]
    Pass(#[from] CompactionError),
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

impl ProposedChange {
    /// Returns the words by which decisions identify the change: what would be written, not why. A
    /// change that only adds sources is identified by its sources.
    pub(in crate::compaction) fn decision_key(&self, sources: &str) -> String {
        match self {
            Self::Add { title, text, .. } => format!("add {title}: {text}"),
            Self::Merge { id, words: Some((title, text)), .. } => {
                format!("merge {id} {title}: {text}")
            }
            Self::Merge { id, words: None, .. } => format!("merge {id} {sources}"),
            Self::Drop { id, .. } => format!("drop {id}"),
            Self::Memory { words: Some(words), .. } => format!("memory {}", words.body.trim()),
            Self::Memory { words: None, .. } => "withdraw".to_owned(),
            Self::Item { text, .. } => format!("item {text}"),
        }
    }

    /// Returns the proposal; `None` if a person has already decided about it.
    pub(super) fn to_proposal(
        &self,
        target: &str,
        sources: String,
        decisions: &Decisions,
    ) -> Option<NewProposal> {
        let is_settled = decisions.review_verdict(target, &self.decision_key(&sources)).is_some();
        (!is_settled).then(|| self.to_row(target, sources))
    }

    /// Returns the row to store.
    pub(super) fn to_row(&self, target: &str, sources: String) -> NewProposal {
        let change = serde_json::json!(self).to_string();
        NewProposal { target: target.to_owned(), change, sources }
    }

    /// Returns whether the change is already in its file, whose text is given.
    pub(in crate::compaction) fn is_applied(
        &self,
        row: &Proposal,
        text: Option<&str>,
        rules: &PrivacyRules,
    ) -> bool {
        match (self, text) {
            // The next run decides, whatever the file contains now.
            (Self::Item { .. }, _) => false,
            (Self::Memory { words, .. }, text) => {
                ProposedMemory::is_applied(words.as_ref(), &row.target, text)
            }
            (_, Some(text)) => {
                wisdom::is_applied(self, &row.sources, &WisdomFile::parse(text), rules)
            }
            (_, None) => false,
        }
    }

    /// Returns the id of the entry of `WISDOM.md` that it changes or drops.
    pub(super) fn entry_id(&self) -> Option<&str> {
        match self {
            Self::Merge { id, .. } | Self::Drop { id, .. } => Some(id),
            Self::Add { .. } | Self::Memory { .. } | Self::Item { .. } => None,
        }
    }
}

impl Compactor<'_> {
    /// Makes changes that a person accepted, each as proposed or in their own words. This is a run,
    /// and `undo` undoes it.
    ///
    /// # Errors
    ///
    /// Returns why nothing was changed.
    pub fn accept_changes(
        &mut self,
        changes: &[(ReviewProposal, Option<UserReplacement>)],
    ) -> Result<(), ReviewError> {
        let _alone = self.acquire_run_lock(&|| false)?;
        let now = (self.clock)();
        let view = self.reconcile_locked(REVIEW_TRIGGER, now)?;
        let (memories, wisdom): (Vec<_>, Vec<_>) =
            changes.iter().partition(|it| matches!(it.0.change, ProposedChange::Memory { .. }));
        // Every failure that depends on the changes happens before anything is written.
        let mut ready = Vec::new();
        if !wisdom.is_empty() {
            ready.push(self.prepare_wisdom_edit(wisdom, &view)?);
        }
        for one in memories {
            if ready.iter().any(|it| it.file.path == one.0.row.target) {
                return Err(ReviewError::FileChanged {
                    id: one.0.id.clone(),
                    path: one.0.row.target.clone(),
                });
            }
            ready.push(self.prepare_memory_edit(one, &view)?);
        }
        let mut run = None;
        let run = self.ensure_run(&mut run, REVIEW_TRIGGER, now)?;
        let mut written = Ok(());
        for PreparedEdit { file, recorded, changes } in ready {
            written = self.write_files(Some(run), None, &[file], &recorded);
            if written.is_err() {
                break;
            }
            let verdicts = changes.iter().map(|(proposed, own)| {
                // The person's own words replace it.
                let what =
                    if own.is_some() { DecisionKind::Refused } else { DecisionKind::Accepted };
                (&proposed.row, &proposed.change, what, ProposalState::Accepted)
            });
            self.record_change_decisions(&verdicts.collect::<Vec<_>>(), now)?;
        }
        if written.is_ok() {
            let view = self.take_snapshot(now)?;
            self.refresh_index(Some(run), &view)?;
        }
        self.end_run(run)?;
        match written {
            Ok(()) => Ok(()),
            Err(JobFailure::Critical(error)) => Err(error.into()),
            Err(error) => Err(ReviewError::File(error.to_string())),
        }
    }

    /// Records that changes are refused.
    ///
    /// # Errors
    ///
    /// Returns why nothing could be written.
    pub fn refuse_changes(&mut self, changes: &[ReviewProposal]) -> Result<(), CompactionError> {
        self.record_verdicts(changes, DecisionKind::Refused, ProposalState::Refused)
    }

    /// Records verdicts without making changes.
    pub(super) fn record_verdicts(
        &mut self,
        changes: &[ReviewProposal],
        what: DecisionKind,
        state: ProposalState,
    ) -> Result<(), CompactionError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.acquire_run_lock(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_vanished(false)?;
        self.recover(now)?;
        let verdicts = changes.iter().map(|it| (&it.row, &it.change, what, state));
        self.record_change_decisions(&verdicts.collect::<Vec<_>>(), now)?;
        self.record_review_run(false, now)
    }

    /// Withdraws verdicts, so that the changes are open again. A change that is in its file is
    /// removed from there by `undo`.
    ///
    /// # Errors
    ///
    /// Returns which change is in its file, or why nothing could be written.
    pub fn reopen_changes(&mut self, changes: &[ReviewProposal]) -> Result<(), ReviewError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.acquire_run_lock(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_vanished(false).map_err(ReviewError::Pass)?;
        self.recover(now)?;
        let view = self.take_snapshot(now)?;
        for proposed in changes {
            let ReviewProposal { id, row, change, .. } = proposed;
            let text = self.vault.read_text(&row.target)?;
            let stands = change.is_applied(row, text.as_deref(), &view.inventory.rules);
            if row.state == ProposalState::Accepted && stands {
                return Err(ReviewError::AlreadyApplied {
                    id: id.clone(),
                    path: row.target.clone(),
                });
            }
        }
        let verdicts = changes
            .iter()
            .map(|it| (&it.row, &it.change, DecisionKind::Restored, ProposalState::Open));
        self.record_change_decisions(&verdicts.collect::<Vec<_>>(), now)?;
        Ok(self.record_review_run(true, now)?)
    }

    /// Records verdicts as decisions, so that they survive the loss of the database.
    pub(in crate::compaction) fn record_change_decisions(
        &mut self,
        changes: &[(&Proposal, &ProposedChange, DecisionKind, ProposalState)],
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        if changes.is_empty() {
            return Ok(());
        }
        let decisions = self.create_decisions_key()?;
        let made: Vec<Decision> = changes
            .iter()
            .flat_map(|(row, change, what, _)| {
                let hashes =
                    decisions.line_hash(&change.decision_key(&row.sources)).into_iter().collect();
                let made = Decision { at: now, what: *what, path: row.target.clone(), hashes };
                let words = items::text_decisions(row, change, *what, &decisions, now);
                std::iter::once(made).chain(words)
            })
            .collect();
        self.append_decisions(&made)?;
        for (row, _, _, state) in changes {
            self.lineage.set_proposal_state(row.id, *state)?;
        }
        Ok(())
    }
}
