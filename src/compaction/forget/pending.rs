//! What is under way: a note in the private folder, from the wish until all of it is folded again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::targets::ForgetRequest;
use crate::{
    compaction::{CompactionError, Compactor},
    memory::{item::Tier, period::Period},
};

/// What is under way, as the private folder keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForgetProgress {
    /// The wish is to be carried out, and then this is left.
    Remove(Box<ForgetRequest>, RemainingWork),
    /// It was; this is left.
    Refold(RemainingWork),
}

/// What is left to be done after all has gone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemainingWork {
    /// Tier and period.
    pub(super) again: BTreeSet<(String, String)>,
    /// Whether the database is to be written anew.
    pub(super) vacuum: bool,
}

impl Compactor<'_> {
    /// Reads the note; `None` where nothing is under way.
    pub(super) fn forget_progress(&self) -> Result<Option<ForgetProgress>, CompactionError> {
        let path = self.vault.layout().forget_state();
        let Some(text) = self.vault.read_text(&path)? else { return Ok(None) };
        let unreadable = || CompactionError::ForgetUnfinished(format!("`{path}` cannot be read"));
        serde_json::from_str(&text).map(Some).map_err(|_| unreadable())
    }

    /// Returns what an earlier wish left to be done.
    pub(super) fn remaining_work(&self) -> Result<RemainingWork, CompactionError> {
        match self.forget_progress()? {
            Some(ForgetProgress::Refold(left)) => Ok(left),
            _ => Ok(RemainingWork::default()),
        }
    }

    /// Takes note of what is left; with nothing left the note goes.
    pub(super) fn save_remaining_work(&self, left: &RemainingWork) -> Result<(), CompactionError> {
        if *left == RemainingWork::default() {
            return Ok(self.vault.remove_private(&self.vault.layout().forget_state())?);
        }
        self.save_progress(&ForgetProgress::Refold(left.clone()))
    }

    /// Writes the note.
    pub(super) fn save_progress(&self, pending: &ForgetProgress) -> Result<(), CompactionError> {
        let text = serde_json::to_string(pending)
            .map_err(|error| CompactionError::ForgetUnfinished(error.to_string()))?;
        Ok(self.vault.write_private(&self.vault.layout().forget_state(), &text)?)
    }
}

impl RemainingWork {
    /// Returns what is to be made again.
    pub(super) fn periods(&self) -> BTreeSet<(Tier, Period)> {
        let parsed = |(tier, period): &(String, String)| {
            Some((Tier::from_name(tier)?, period.parse().ok()?))
        };
        self.again.iter().filter_map(parsed).collect()
    }
}

/// Returns the names of what is to be made again.
pub(super) fn names_of((tier, period): (Tier, Period)) -> (String, String) {
    (tier.name().to_owned(), period.to_string())
}
