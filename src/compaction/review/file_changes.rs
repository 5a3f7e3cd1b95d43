//! Proposed changes of files, and the verdicts of people on them.

use chrono::{DateTime, Utc};

use super::ReviewProposal;
use crate::compaction::{
    Compactor,
    context::{REVIEW_TRIGGER, RunContext},
    error::{CompactionError, JobFailure},
    integrity::vanished_files::refuse_if_vanished,
    journal::{
        Journal,
        commit::{FileWrite, RecordedChanges},
        decision_file::DecisionFile,
    },
    memories::index_file::refresh_index,
    prepare::RunPreparation,
    proposals::{change::ProposedChange, items},
};
use crate::{
    memory::decision::{Decision, DecisionKind, Decisions},
    store::{
        db::lineage::{
            LineageError,
            review::{Proposal, ProposalState},
        },
        fs::vault::VaultError,
    },
};

/// The words with which a person replaces a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UserReplacement {
    /// The title, for an entry of `WISDOM.md`.
    pub title: Option<String>,
    pub text: String,
}

/// A file ready to be written, and the changes that it includes.
pub(super) struct PreparedEdit<'a> {
    pub(super) file: FileWrite,
    pub(super) recorded: RecordedChanges,
    pub(super) changes: Vec<&'a (ReviewProposal, Option<UserReplacement>)>,
}

/// A verdict on a proposed change.
#[derive(Clone, Copy)]
pub(in crate::compaction) struct ChangeVerdict<'a> {
    pub(in crate::compaction) row: &'a Proposal,
    pub(in crate::compaction) change: &'a ProposedChange,
    pub(in crate::compaction) decision: DecisionKind,
    /// The new state of the row.
    pub(in crate::compaction) state: ProposalState,
}

impl<'a> ChangeVerdict<'a> {
    fn of(proposed: &'a ReviewProposal, decision: DecisionKind, state: ProposalState) -> Self {
        Self { row: &proposed.row, change: &proposed.change, decision, state }
    }

    /// Returns the decisions to record: on the change, and on the words of an item.
    fn decisions(&self, known: &Decisions, at: DateTime<Utc>) -> Vec<Decision> {
        let Self { row, change, decision: what, .. } = *self;
        let hash = known.line_hash(&change.decision_key(&row.sources));
        let hashes = hash.into_iter().collect();
        let mut made = vec![Decision { at, what, path: row.target.clone(), hashes }];
        made.extend(items::text_decisions(row, change, what, known, at));
        made
    }
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
    Compaction(#[from] CompactionError),
}

impl From<LineageError> for ReviewError {
    fn from(error: LineageError) -> Self {
        Self::Compaction(error.into())
    }
}

impl From<VaultError> for ReviewError {
    fn from(error: VaultError) -> Self {
        Self::Compaction(error.into())
    }
}

impl Compactor<'_> {
    /// Accepts items that a person has read. The next run writes their files again.
    pub(crate) fn accept_items(&mut self, items: &[ReviewProposal]) -> Result<(), CompactionError> {
        self.record_verdicts(items, DecisionKind::Accepted, ProposalState::Accepted)
    }

    /// Makes changes that a person accepted, each as proposed or in their own words. This is a run,
    /// and `undo` undoes it.
    pub(crate) fn accept_changes(
        &mut self,
        changes: &[(ReviewProposal, Option<UserReplacement>)],
    ) -> Result<(), ReviewError> {
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        let view = RunPreparation::new(&mut self.context).reconcile_locked(REVIEW_TRIGGER, now)?;
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
        let run = self.context.ensure_run(&mut run, REVIEW_TRIGGER, now)?;
        let mut written = Ok(());
        for PreparedEdit { file, recorded, changes } in ready {
            written =
                Journal::new(&mut self.context).write_files(Some(run), None, &[file], &recorded);
            if written.is_err() {
                break;
            }
            let verdicts = changes.iter().map(|(proposed, own)| {
                // The person's own words replace it.
                let decision =
                    if own.is_some() { DecisionKind::Refused } else { DecisionKind::Accepted };
                ChangeVerdict::of(proposed, decision, ProposalState::Accepted)
            });
            record_change_decisions(&mut self.context, &verdicts.collect::<Vec<_>>(), now)?;
        }
        if written.is_ok() {
            let view = self.context.take_snapshot(now)?;
            refresh_index(&mut self.context, Some(run), &view)?;
        }
        self.context.end_run(run)?;
        match written {
            Ok(()) => Ok(()),
            Err(JobFailure::Critical(error)) => Err(error.into()),
            Err(error) => Err(ReviewError::File(error.to_string())),
        }
    }

    /// Records that changes are refused.
    pub(crate) fn refuse_changes(
        &mut self,
        changes: &[ReviewProposal],
    ) -> Result<(), CompactionError> {
        self.record_verdicts(changes, DecisionKind::Refused, ProposalState::Refused)
    }

    /// Records verdicts without making changes.
    pub(super) fn record_verdicts(
        &mut self,
        changes: &[ReviewProposal],
        decision: DecisionKind,
        state: ProposalState,
    ) -> Result<(), CompactionError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        refuse_if_vanished(&self.context, false)?;
        Journal::new(&mut self.context).recover(now)?;
        let verdicts = changes.iter().map(|it| ChangeVerdict::of(it, decision, state));
        record_change_decisions(&mut self.context, &verdicts.collect::<Vec<_>>(), now)?;
        self.record_review_run(false, now)
    }

    /// Withdraws verdicts, so that the changes are open again. A change that is in its file is
    /// removed from there by `undo`.
    pub(crate) fn reopen_changes(&mut self, changes: &[ReviewProposal]) -> Result<(), ReviewError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.context.acquire_run_lock(&|| false)?;
        let now = (self.context.clock)();
        refuse_if_vanished(&self.context, false).map_err(ReviewError::Compaction)?;
        Journal::new(&mut self.context).recover(now)?;
        let view = self.context.take_snapshot(now)?;
        for proposed in changes {
            let ReviewProposal { id, row, change, .. } = proposed;
            let text = self.context.vault.read_text(&row.target)?;
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
            .map(|it| ChangeVerdict::of(it, DecisionKind::Restored, ProposalState::Open));
        record_change_decisions(&mut self.context, &verdicts.collect::<Vec<_>>(), now)?;
        Ok(self.record_review_run(true, now)?)
    }
}

/// Records verdicts as decisions, so that they survive the loss of the database.
pub(in crate::compaction) fn record_change_decisions(
    context: &mut RunContext<'_>,
    verdicts: &[ChangeVerdict<'_>],
    now: DateTime<Utc>,
) -> Result<(), CompactionError> {
    if verdicts.is_empty() {
        return Ok(());
    }
    let decisions = DecisionFile::new(context).create_key()?;
    let made: Vec<Decision> =
        verdicts.iter().flat_map(|it| it.decisions(&decisions, now)).collect();
    DecisionFile::new(context).append(&made)?;
    for ChangeVerdict { row, state, .. } in verdicts {
        context.lineage.set_proposal_state(row.id, *state)?;
    }
    Ok(())
}
