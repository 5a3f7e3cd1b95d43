//! Raw replies of a model, from before they are read until their work is done.
//!
//! One file of the private folder each, named by the request. One that was of no use is set aside, for
//! whoever wants to see why. They quote logs, so `forget` removes all of them.

use super::{Vault, VaultError};
use crate::{
    memory::hash::ContentHash,
    store::layout::{PRIVATE_DIR, REPLY_PREFIX},
};

impl Vault {
    /// Keeps the reply to a request: it is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// Returns why it is not known to be.
    pub fn keep_reply(&self, request: ContentHash, text: &str) -> Result<(), VaultError> {
        self.write_private(&path_of(request), text)
    }

    /// Returns the reply to a request, if one was kept.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    pub fn kept_reply(&self, request: ContentHash) -> Result<Option<String>, VaultError> {
        self.read_text(&path_of(request))
    }

    /// Removes the reply to a request.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be removed.
    pub fn drop_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        self.remove_private(&path_of(request))
    }

    /// Sets the reply to a request aside: it answers no request any more.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read, written, or removed.
    pub fn set_aside_reply(&self, request: ContentHash) -> Result<(), VaultError> {
        if let Some(text) = self.kept_reply(request)? {
            self.write_private(&aside(&format!("{}.json", request.hex16())), &text)?;
        }
        self.drop_reply(request)
    }

    /// Removes all replies, and returns how many there were.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be removed.
    pub fn drop_replies(&self) -> Result<usize, VaultError> {
        self.drop_those(|_| true)
    }

    /// Removes all replies but those that were set aside.
    ///
    /// # Errors
    ///
    /// Returns why one cannot be removed.
    pub fn drop_used_replies(&self) -> Result<usize, VaultError> {
        let aside = aside("");
        self.drop_those(|path| !path.starts_with(&aside))
    }

    fn drop_those(&self, goes: impl Fn(&str) -> bool) -> Result<usize, VaultError> {
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

fn aside(name: &str) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}unread-{name}")
}

fn path_of(request: ContentHash) -> String {
    format!("{PRIVATE_DIR}/{REPLY_PREFIX}{}.json", request.hex16())
}
