//! Raw replies of a model, stored before they are parsed and until their job is done.
//!
//! Each is a file of the private folder, named by the request. One that could not be used is set aside, for
//! anybody who wants to see why. They quote logs, so `forget` removes all of them.

use super::{Vault, VaultError};
use crate::{
    memory::hash::ContentHash,
    store::fs::layout::{PRIVATE_DIR, REPLY_PREFIX},
};

impl Vault {
    /// Stores the reply to a request, synced to disk.
    pub(crate) fn save_reply(&self, request: ContentHash, text: &str) -> Result<(), VaultError> {
        self.write_private(&reply_path(request), text)
    }

    /// Returns the reply to a request, if one is stored.
    pub(crate) fn saved_reply(&self, request: ContentHash) -> Result<Option<String>, VaultError> {
        self.read_text(&reply_path(request))
    }

    /// Removes the reply to a request.
    pub(crate) fn remove_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        self.remove_private(&reply_path(request))
    }

    /// Sets the reply to a request aside, so that it answers no request any more.
    pub(crate) fn set_aside_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        if let Some(text) = self.saved_reply(request)? {
            self.write_private(&unread_path(&format!("{}.json", request.hex16())), &text)?;
        }
        self.remove_reply(request)
    }

    /// Removes all replies, and returns how many there were.
    pub(crate) fn remove_replies(&self) -> Result<usize, VaultError> {
        self.remove_replies_where(|_| true)
    }

    /// Removes all replies except those that were set aside.
    pub(crate) fn remove_used_replies(&self) -> Result<usize, VaultError> {
        let aside = unread_path("");
        self.remove_replies_where(|path| !path.starts_with(&aside))
    }

    fn remove_replies_where(&self, matches: impl Fn(&str) -> bool) -> Result<usize, VaultError> {
        let (files, _) = self.files_below(PRIVATE_DIR, usize::MAX);
        let mut removed = 0;
        let start = format!("{PRIVATE_DIR}/{REPLY_PREFIX}");
        for path in files.iter().filter(|it| it.starts_with(&start) && matches(it)) {
            self.remove_private(path)?;
            removed += 1;
        }
        Ok(removed)
    }
}

fn unread_path(name: &str) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}unread-{name}")
}

fn reply_path(request: ContentHash) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}{}.json", request.hex16())
}
