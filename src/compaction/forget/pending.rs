//! The progress of forgetting, recorded in the private folder from the request until all derived
//! files are written again.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Forgetter, request::ForgetRequest};
use crate::compaction::error::CompactionError;
use crate::{
    memory::{item::Tier, period::Period},
    store::fs::vault::Vault,
};

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ForgetProgress {
    /// The request is to be carried out; then this work remains.
    Remove(Box<ForgetRequest>, RemainingWork),
    /// The request was carried out; this work remains.
    #[serde(rename = "Refold")]
    Rebuild(RemainingWork),
}

/// The work that remains after the removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RemainingWork {
    /// Tiers and periods to write again.
    pub(super) again: BTreeSet<(String, String)>,
    /// Whether the database is to be vacuumed.
    pub(super) vacuum: bool,
}

/// Returns a message if forgetting is not finished.
pub(crate) fn unfinished_message(vault: &Vault) -> Option<String> {
    match read_progress(vault) {
        Err(error) => Some(error.to_string()),
        Ok(Some(ForgetProgress::Remove(..))) => {
            Some("forgetting is not finished; `memoird compact` finishes it".to_owned())
        }
        Ok(Some(ForgetProgress::Rebuild(left))) if left.vacuum => Some(
            "the database may still contain forgotten words; `memoird compact` vacuums it"
                .to_owned(),
        ),
        Ok(_) => None,
    }
}

/// Reads the progress; `None` if nothing is in progress. The error does not quote the file, since
/// it contains the words to forget.
fn read_progress(vault: &Vault) -> Result<Option<ForgetProgress>, CompactionError> {
    let path = vault.layout().forget_state();
    let Some(text) = vault.read_text(&path)? else { return Ok(None) };
    let unreadable = || CompactionError::ForgetUnfinished(format!("`{path}` cannot be read"));
    serde_json::from_str(&text).map(Some).map_err(|_| unreadable())
}

impl Forgetter<'_, '_> {
    /// Reads the progress; `None` if nothing is in progress.
    pub(super) fn forget_progress(&self) -> Result<Option<ForgetProgress>, CompactionError> {
        read_progress(self.context.vault)
    }

    /// Returns the work that an earlier request left.
    pub(super) fn remaining_work(&self) -> Result<RemainingWork, CompactionError> {
        match self.forget_progress()? {
            Some(ForgetProgress::Rebuild(left)) => Ok(left),
            _ => Ok(RemainingWork::default()),
        }
    }

    /// Records the remaining work; removes the record if there is none.
    pub(super) fn save_remaining_work(&self, left: &RemainingWork) -> Result<(), CompactionError> {
        if *left == RemainingWork::default() {
            return Ok(self
                .context
                .vault
                .remove_private(&self.context.vault.layout().forget_state())?);
        }
        self.save_progress(&ForgetProgress::Rebuild(left.clone()))
    }

    pub(super) fn save_progress(&self, pending: &ForgetProgress) -> Result<(), CompactionError> {
        let text = serde_json::to_string(pending)
            .map_err(|error| CompactionError::ForgetUnfinished(error.to_string()))?;
        Ok(self.context.vault.write_private(&self.context.vault.layout().forget_state(), &text)?)
    }
}

impl RemainingWork {
    /// Returns the periods to write again.
    pub(super) fn periods(&self) -> BTreeSet<(Tier, Period)> {
        let parsed = |(tier, period): &(String, String)| {
            Some((Tier::from_name(tier)?, period.parse().ok()?))
        };
        self.again.iter().filter_map(parsed).collect()
    }
}

/// Returns the recorded names of a tier and period.
pub(super) fn names_of((tier, period): (Tier, Period)) -> (String, String) {
    (tier.name().to_owned(), period.to_string())
}
