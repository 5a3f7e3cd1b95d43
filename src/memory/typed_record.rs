//! What memoird records about a typed memory in the hidden file beside it.
//!
//! ```json
//! {
//!   "body": "9c1f2ab04d7e6f58",
//!   "created": "2026-04-01",
//!   "items": [
//!     "a1b2c3d4"
//!   ],
//!   "model": [
//!     "a1b2c3d4"
//!   ],
//!   "sources": [
//!     "2026-04-01:5#3fa9"
//!   ],
//!   "text": "07be3fa9a1b2c3d4",
//!   "updated": "2026-04-02"
//! }
//! ```
//!
//! One key per line, sorted, so that a version control system merges it. A file of an older form has these values in
//! its frontmatter; it is read as it is, and printed in the new form.

use serde::{Deserialize, Serialize};

use super::{address::Address, hash::ContentHash, typed::TypedMemory};

/// The content of the hidden file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct MemoryRecord {
    /// First 16 hex digits of the hash of the visible file.
    body: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// The hash of the description as we wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// The hash of each statement as we wrote it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<String>,
    /// Those of `items` that a model wrote: the engine that needs no model keeps them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    model: Vec<String>,
    sources: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    supersedes: Option<String>,
    /// The hash of the text after the frontmatter as we wrote it.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
}

impl MemoryRecord {
    pub(super) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().filter(|it: &Self| !it.text.is_empty())
    }

    /// Returns what is recorded about a memory of ours with this visible text.
    pub(super) fn of(memory: &TypedMemory, visible: &str) -> Option<Self> {
        Some(Self {
            body: ContentHash::of(visible).hex16(),
            created: memory.created.map(|it| it.to_string()),
            description: memory.recorded_description.clone(),
            items: memory.items.clone(),
            model: memory.by_model.clone(),
            sources: memory.sources.iter().map(|(at, hash)| format!("{at}#{hash}")).collect(),
            supersedes: memory.supersedes.clone(),
            text: memory.recorded_body.clone()?,
            updated: memory.updated.map(|it| it.to_string()),
        })
    }

    /// Fills the recorded values of a memory.
    pub(super) fn fill(self, memory: &mut TypedMemory) {
        memory.created = self.created.and_then(|it| it.parse().ok());
        memory.updated = self.updated.and_then(|it| it.parse().ok());
        memory.sources = self.sources.iter().filter_map(|it| parse_source(it)).collect();
        memory.supersedes = self.supersedes;
        memory.items = self.items;
        memory.by_model = self.model;
        memory.recorded_description = self.description;
        memory.recorded_body = Some(self.text);
    }

    /// Returns the addresses of the sources.
    pub(super) fn addresses(&self) -> Vec<Address> {
        self.sources.iter().filter_map(|it| Some(parse_source(it)?.0)).collect()
    }

    pub(super) fn print(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Parses `2026-04-02:12#3fa9`.
pub(super) fn parse_source(text: &str) -> Option<(Address, String)> {
    let (address, hash) = text.split_once('#')?;
    let is_hex = hash.len() == 4 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hex.then_some((address.parse().ok()?, hash.to_owned()))
}
