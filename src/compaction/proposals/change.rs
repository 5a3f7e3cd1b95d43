//! Changes of files that wait for a person, as they are stored.

use serde::{Deserialize, Serialize};

use super::{memories::ProposedMemory, wisdom};
use crate::{
    memory::{decision::Decisions, wisdom::WisdomFile},
    privacy::PrivacyRules,
    store::db::lineage::review::{NewProposal, Proposal},
};

/// A change of `WISDOM.md` or of a typed memory, stored until a person has reviewed it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum ProposedChange {
    /// A new entry.
    Add {
        title: String,
        text: String,
        category: Option<String>,
        /// Why it is worth keeping.
        reason: String,
    },
    /// An entry that was confirmed or extended.
    Merge {
        id: String,
        /// New title and text, if they change.
        words: Option<(String, String)>,
        reason: String,
    },
    /// An entry without remaining sources.
    Drop { id: String, reason: String },
    /// A change of a typed memory that a person wrote or edited and whose source lines changed.
    Memory {
        /// The proposed memory; `None` if the file would be removed.
        words: Option<ProposedMemory>,
        /// The hash of what the memory said when this was proposed.
        base: String,
        reason: String,
    },
    /// Not a change, but an item that the checks kept out of the file.
    Item {
        text: String,
        /// Why it was kept out.
        reason: String,
        /// Who drafted it.
        engine: String,
        /// Whether a person may accept it.
        passes: bool,
    },
}

impl ProposedChange {
    /// Returns the words by which decisions identify the change: what would be written, not why. A
    /// change that only adds sources is identified by its sources.
    pub(crate) fn decision_key(&self, sources: &str) -> String {
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
    pub(crate) fn to_proposal(
        &self,
        target: &str,
        sources: String,
        decisions: &Decisions,
    ) -> Option<NewProposal> {
        let is_settled = decisions.review_verdict(target, &self.decision_key(&sources)).is_some();
        (!is_settled).then(|| self.to_row(target, sources))
    }

    pub(crate) fn to_row(&self, target: &str, sources: String) -> NewProposal {
        let change = serde_json::json!(self).to_string();
        NewProposal { target: target.to_owned(), change, sources }
    }

    /// Returns whether the change is already in its file, whose text is given.
    pub(crate) fn is_applied(
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
    pub(crate) fn entry_id(&self) -> Option<&str> {
        match self {
            Self::Merge { id, .. } | Self::Drop { id, .. } => Some(id),
            Self::Add { .. } | Self::Memory { .. } | Self::Item { .. } => None,
        }
    }
}
