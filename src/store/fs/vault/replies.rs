//! Raw replies of a model, from before they are read until their work is done.
//!
//! One file of the private folder each, named by the request. One that was of no use is set aside, for
//! whoever wants to see why. They quote logs, so `forget` removes all of them.

use super::{Vault, VaultError};
use crate::{
    memory::hash::ContentHash,
    store::fs::layout::{PRIVATE_DIR, REPLY_PREFIX},
};

impl Vault {
    /// Keeps the reply to a request: it is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// Returns why it is not known to be.
    pub fn save_reply(&self, request: ContentHash, text: &str) -> Result<(), VaultError> {
        self.write_private(&reply_path(request), text)
    }

    /// Returns the reply to a request, if one was kept.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    pub fn saved_reply(&self, request: ContentHash) -> Result<Option<String>, VaultError> {
        self.read_text(&reply_path(request))
    }

    /// Removes the reply to a request.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be removed.
    pub fn remove_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        self.remove_private(&reply_path(request))
    }

    /// Sets the reply to a request aside: it answers no request any more.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, written, or removed.
    pub fn set_aside_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        if let Some(text) = self.saved_reply(request)? {
            self.write_private(&unread_path(&format!("{}.json", request.hex16())), &text)?;
        }
        self.remove_reply(request)
    }

    /// Removes all replies, and returns how many there were.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be removed.
    pub fn remove_replies(&self) -> Result<usize, VaultError> {
        self.remove_replies_where(|_| true)
    }

    /// Removes all replies but those that were set aside.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be removed.
    pub fn remove_used_replies(&self) -> Result<usize, VaultError> {
        let aside = unread_path("");
        self.remove_replies_where(|path| !path.starts_with(&aside))
    }

    fn remove_replies_where(&self, goes: impl Fn(&str) -> bool) -> Result<usize, VaultError> {
        let (files, _) = self.files_below(PRIVATE_DIR, usize::MAX);
        let mut dropped = 0;
        let start = format!("{PRIVATE_DIR}/{REPLY_PREFIX}");
        for path in files.iter().filter(|it| it.starts_with(&start) && goes(it)) {
            self.remove_private(path)?;
            dropped += 1;
        }
        Ok(dropped)
    }
}

fn unread_path(name: &str) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}unread-{name}")
}

fn reply_path(request: ContentHash) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}{}.json", request.hex16())
}
