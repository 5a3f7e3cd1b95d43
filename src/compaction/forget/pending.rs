//! What is under way: a note in the private folder, from the wish until all of it is folded again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::cut::Wish;
use crate::{
    compaction::{Compactor, PassError},
    memory::{item::Tier, period::Period},
};

/// What is under way, as the private folder keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Pending {
    /// The wish is to be carried out, and then this is left.
    Remove(Box<Wish>, Left),
    /// It was; this is left.
    Refold(Left),
}

/// What is left to be done after all has gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    /// Tier and period.
    pub(super) again: BTreeSet<(String, String)>,
    /// Whether the database is to be written anew.
    pub(super) vacuum: bool,
}

impl Compactor<'_> {
    /// Reads the note; `None` where nothing is under way.
    pub(super) fn pending(&self) -> Result<Option<Pending>, PassError> {
        let path = self.vault.layout().forgetting();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(None) };
        let unreadable = || PassError::Forget(format!("`{path}` cannot be read"));
        serde_json::from_str(&text).map(Some).map_err(|_| unreadable())
    }

    /// Returns what an earlier wish left to be done.
    pub(super) fn left(&self) -> Result<Left, PassError> {
        match self.pending()? {
            Some(Pending::Refold(left)) => Ok(left),
            _ => Ok(Left::default()),
        }
    }

    /// Takes note of what is left; with nothing left the note goes.
    pub(super) fn keep_left(&self, left: &Left) -> Result<(), PassError> {
        if *left == Left::default() {
            return Ok(self.vault.remove_private(&self.vault.layout().forgetting())?);
        }
        self.note(&Pending::Refold(left.clone()))
    }

    /// Writes the note.
    pub(super) fn note(&self, pending: &Pending) -> Result<(), PassError> {
        let text =
            serde_json::to_string(pending).map_err(|error| PassError::Forget(error.to_string()))?;
        Ok(self.vault.write_private(&self.vault.layout().forgetting(), &text)?)
    }
}

impl Left {
    /// Returns what is to be made again.
    pub(super) fn periods(&self) -> BTreeSet<(Tier, Period)> {
        let parsed = |(tier, period): &(String, String)| {
            Some((Tier::from_name(tier)?, period.parse().ok()?))
        };
        self.again.iter().filter_map(parsed).collect()
    }
}

/// Returns the names of what is to be made again.
pub(super) fn named((tier, period): (Tier, Period)) -> (String, String) {
    (tier.name().to_owned(), period.to_string())
}
