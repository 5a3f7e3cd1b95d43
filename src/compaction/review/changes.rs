//! Changes of files that are proposed, and what a person says of them.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{Proposed, items, memories::MemoryWords, wisdom};
use crate::{
    compaction::{
        Compactor, JobError, PassError,
        commit::{NewFile, Recorded},
        undo::REVIEW,
    },
    memory::{
        decision::{Decision, Decisions, What},
        wisdom::WisdomFile,
    },
    privacy::Rules,
    store::{
        lineage::{
            LineageError,
            review::{NewProposal, Proposal, ProposalState},
        },
        vault::VaultError,
    },
};

/// A change of `WISDOM.md` or of a typed memory, as it is kept until a person has seen it.
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
    /// A typed memory that a person wrote or edited, and whose lines say otherwise now.
    Memory {
        /// What it would say; `None` where the file would go.
        words: Option<MemoryWords>,
        /// The hash of what it said when this was proposed.
        base: String,
        /// Why.
        reason: String,
    },
    /// No change, but an item that the check kept out of the file.
    Item {
        /// What it says.
        text: String,
        /// Why it was kept out.
        reason: String,
        /// Who drafted it.
        engine: String,
        /// Whether a person may let it pass.
        passes: bool,
    },
}

/// What a person says in the place of what is proposed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Own {
    /// The heading, of an entry of `WISDOM.md`.
    pub title: Option<String>,
    /// The words.
    pub text: String,
}

/// A file that is ready to be written, and the changes that it makes.
pub(super) struct Ready<'a> {
    pub(super) file: NewFile,
    pub(super) recorded: Recorded,
    pub(super) changes: Vec<&'a (Proposed, Option<Own>)>,
}

/// Why a change cannot be made, or not be taken back.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// What it rests on is no longer there or says something else.
    #[error(
        "{id} cannot be made: its source lines say it no longer; refuse it, or write the words yourself"
    )]
    Stale {
        /// The change.
        id: String,
    },
    /// The file is not the one that it was proposed for.
    #[error("{id} cannot be made: `{path}` was changed since it was proposed; nothing was done")]
    Changed {
        /// The change.
        id: String,
        /// The file.
        path: String,
    },
    /// It was accepted, and the file says so.
    #[error("{id} was made and stands in `{path}`; take it out of there first")]
    Made {
        /// The change.
        id: String,
        /// The file.
        path: String,
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
    pub(in crate::compaction) fn key(&self, sources: &str) -> String {
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

    /// Returns it as it is proposed; `None` where a person has decided about it before.
    pub(super) fn proposed(
        &self,
        target: &str,
        sources: String,
        decisions: &Decisions,
    ) -> Option<NewProposal> {
        let is_settled = decisions.reviewed(target, &self.key(&sources)).is_some();
        (!is_settled).then(|| self.as_row(target, sources))
    }

    /// Returns the row of it.
    pub(super) fn as_row(&self, target: &str, sources: String) -> NewProposal {
        let change = serde_json::json!(self).to_string();
        NewProposal { target: target.to_owned(), change, sources }
    }

    /// Returns whether what was proposed stands in its file, of this text.
    pub(in crate::compaction) fn stands(
        &self,
        row: &Proposal,
        text: Option<&str>,
        rules: &Rules,
    ) -> bool {
        match (self, text) {
            // It is in the file or not by the next pass, whatever stands there now.
            (Self::Item { .. }, _) => false,
            (Self::Memory { words, .. }, text) => {
                MemoryWords::stand(words.as_ref(), &row.target, text)
            }
            (_, Some(text)) => wisdom::stands(self, &row.sources, &WisdomFile::parse(text), rules),
            (_, None) => false,
        }
    }

    /// Returns the entry of `WISDOM.md` that it changes or drops.
    pub(super) fn entry(&self) -> Option<&str> {
        match self {
            Self::Merge { id, .. } | Self::Drop { id, .. } => Some(id),
            Self::Add { .. } | Self::Memory { .. } | Self::Item { .. } => None,
        }
    }
}

impl Compactor<'_> {
    /// Makes changes that a person accepted, each as proposed or in their own words. It is a run, and
    /// `undo` takes it back.
    ///
    /// # Errors
    ///
    /// Returns why nothing was changed.
    pub fn accept_changes(
        &mut self,
        changes: &[(Proposed, Option<Own>)],
    ) -> Result<(), ReviewError> {
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        let view = self.notice_alone(REVIEW, now)?;
        let (memories, wisdom): (Vec<_>, Vec<_>) =
            changes.iter().partition(|it| matches!(it.0.change, Change::Memory { .. }));
        // All that can fail by what a change says fails before anything is written.
        let mut ready = Vec::new();
        if !wisdom.is_empty() {
            ready.push(self.edit_wisdom(wisdom, &view)?);
        }
        for one in memories {
            if ready.iter().any(|it| it.file.path == one.0.row.target) {
                return Err(ReviewError::Changed {
                    id: one.0.id.clone(),
                    path: one.0.row.target.clone(),
                });
            }
            ready.push(self.edit_memory(one, &view)?);
        }
        let mut run = None;
        let run = self.run(&mut run, REVIEW, now)?;
        let mut written = Ok(());
        for Ready { file, recorded, changes } in ready {
            written = self.write(Some(run), None, &[file], &recorded);
            if written.is_err() {
                break;
            }
            let settled = changes.iter().map(|(proposed, own)| {
                // In its place stand the words of the person.
                let what = if own.is_some() { What::Refused } else { What::Accepted };
                (&proposed.row, &proposed.change, what, ProposalState::Accepted)
            });
            self.settle_changes(&settled.collect::<Vec<_>>(), now)?;
        }
        if written.is_ok() {
            let view = self.look(now)?;
            self.refresh_index(Some(run), &view)?;
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
        self.say_of_all(changes, What::Refused, ProposalState::Refused)
    }

    /// Writes down what was said of changes, and makes none of them.
    pub(super) fn say_of_all(
        &mut self,
        changes: &[Proposed],
        what: What,
        state: ProposalState,
    ) -> Result<(), PassError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false)?;
        self.recover(now)?;
        let settled = changes.iter().map(|it| (&it.row, &it.change, what, state));
        self.settle_changes(&settled.collect::<Vec<_>>(), now)?;
        self.said_in_review(false, now)
    }

    /// Takes back what was said of changes: they wait again. One that was made and stands in its file
    /// is taken out of there by `undo`.
    ///
    /// # Errors
    ///
    /// Returns which change stands in its file, or why nothing could be written.
    pub fn reopen_changes(&mut self, changes: &[Proposed]) -> Result<(), ReviewError> {
        if changes.is_empty() {
            return Ok(());
        }
        let _alone = self.alone(&|| false)?;
        let now = (self.clock)();
        self.refuse_if_missing(false).map_err(ReviewError::Pass)?;
        self.recover(now)?;
        let view = self.look(now)?;
        for proposed in changes {
            let Proposed { id, row, change, .. } = proposed;
            let text = self.vault.read_text(&row.target)?;
            let stands = change.stands(row, text.as_deref(), &view.inventory.rules);
            if row.state == ProposalState::Accepted && stands {
                return Err(ReviewError::Made { id: id.clone(), path: row.target.clone() });
            }
        }
        let settled =
            changes.iter().map(|it| (&it.row, &it.change, What::Restored, ProposalState::Open));
        self.settle_changes(&settled.collect::<Vec<_>>(), now)?;
        Ok(self.said_in_review(true, now)?)
    }

    /// Writes down what was said of changes, so that it holds without the database too.
    pub(in crate::compaction) fn settle_changes(
        &mut self,
        changes: &[(&Proposal, &Change, What, ProposalState)],
        now: DateTime<Utc>,
    ) -> Result<(), PassError> {
        if changes.is_empty() {
            return Ok(());
        }
        let decisions = self.new_decisions()?;
        let made: Vec<Decision> = changes
            .iter()
            .flat_map(|(row, change, what, _)| {
                let hashes = decisions.line_hash(&change.key(&row.sources)).into_iter().collect();
                let made = Decision { at: now, what: *what, path: row.target.clone(), hashes };
                let words = items::decisions_of(row, change, *what, &decisions, now);
                std::iter::once(made).chain(words)
            })
            .collect();
        self.append_decisions(&made)?;
        for (row, _, _, state) in changes {
            self.lineage.settle_proposal(row.id, *state)?;
        }
        Ok(())
    }
}
