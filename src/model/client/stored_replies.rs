//! Replies on disk: a crash between a reply and the file made from it does not pay twice.

use super::ModelClient;
use crate::{
    memory::hash::ContentHash,
    model::{CallError, ModelReply, ModelRequest, WorkOutcome},
    store::fs::vault::VaultError,
};

/// Stored instead of a reply if the request was too large and must not be sent again as it is.
const TOO_LARGE_MARKER: &str = "{\"state\":\"apart\"}";

impl ModelClient {
    /// Returns the name under which the reply to a request is stored.
    pub(super) fn reply_key(&self, request: &ModelRequest) -> ContentHash {
        request.key(self.config.endpoint.server(), &self.config.model)
    }

    /// Returns the reply to this very request that an earlier call stored.
    pub(super) fn stored_reply(&self, key: ContentHash) -> Option<ModelReply> {
        let text = self.config.vault.as_ref()?.saved_reply(key).ok().flatten()?;
        serde_json::from_str(&text).ok()
    }

    /// Checks that a reply of the usual length could be stored.
    pub(super) fn probe_storage(&self, key: ContentHash) -> Result<(), CallError> {
        const USUAL_BYTES: usize = 64 * 1024;
        let Some(vault) = &self.config.vault else { return Ok(()) };
        let failed = |e: VaultError| CallError::Ledger(e.to_string());
        vault.save_reply(key, &" ".repeat(USUAL_BYTES)).map_err(failed)?;
        vault.remove_reply(key).map_err(failed)
    }

    /// Stores a reply until the work that needs it has ended.
    pub(super) fn store_reply(
        &self,
        key: ContentHash,
        reply: &ModelReply,
    ) -> Result<(), CallError> {
        let Some(vault) = &self.config.vault else { return Ok(()) };
        let text = serde_json::to_string(reply).map_err(|e| CallError::Ledger(e.to_string()))?;
        vault.save_reply(key, &text).map_err(|e| CallError::Ledger(e.to_string()))?;
        Ok(())
    }

    /// Removes the replies of work that has ended, or sets them aside if they were unusable.
    pub(super) fn release_replies(&self, keys: Vec<ContentHash>, end: WorkOutcome) {
        let Some(vault) = &self.config.vault else { return };
        for key in keys {
            // A reply that cannot be removed answers the same request again, which does no harm.
            drop(match end {
                WorkOutcome::Done => vault.remove_reply(key),
                WorkOutcome::Unusable => vault.set_aside_reply(key),
                WorkOutcome::Deferred => Ok(()),
            });
        }
    }

    /// Notes that a request was too large to be answered well.
    pub(super) fn store_too_large_marker(&self, key: ContentHash) {
        if let Some(vault) = &self.config.vault {
            // The reply is set aside for a person to look at. If the marker cannot be written, the
            // request is sent once more.
            if self.stored_reply(key).is_some() {
                drop(vault.set_aside_reply(key));
            }
            drop(vault.save_reply(key, TOO_LARGE_MARKER));
        }
    }

    /// Returns whether a request is marked as too large.
    pub(super) fn has_too_large_marker(&self, key: ContentHash) -> bool {
        let stored = self.config.vault.as_ref().and_then(|it| it.saved_reply(key).ok().flatten());
        stored.as_deref() == Some(TOO_LARGE_MARKER)
    }
}
