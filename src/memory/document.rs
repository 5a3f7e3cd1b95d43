//! Weekly and monthly files.
//!
//! A file is read into blocks that print back to the same bytes, so that what a person added or
//! changed is never lost by reading and writing.

use std::collections::BTreeMap;

use super::{
    item::{Item, Section},
    period::Period,
};

/// A weekly or monthly file.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The period that it covers.
    pub period: Period,
    /// What we recorded about it; `None` for a foreign file (no `memoird:` in the frontmatter).
    pub header: Option<SummaryHeader>,
    /// Frontmatter keys that are not ours, in order; kept.
    pub other_keys: serde_yaml::Mapping,
    /// The body, in order.
    pub blocks: Vec<Block>,
}

/// What `memoird:` and its neighbours in the frontmatter say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryHeader {
    /// Paths of the files that it was folded from, relative to the root.
    pub pointers: Vec<String>,
    /// Name and version of the engine.
    pub engine: String,
    /// Per source (a log's stem, a week's name) the first 16 hex digits of its hash.
    pub sources: BTreeMap<String, String>,
    /// The hash of each bullet as we wrote it.
    pub items: Vec<String>,
    /// Logs whose extraction is done (weekly files only), by stem, with nothing said of their text.
    pub extracted: Vec<String>,
    /// Whether the period was still open.
    pub partial: bool,
}

/// A piece of the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A heading that names a section of ours: `### Decisions`.
    Section(Section, String),
    /// A bullet: the item, and its lines as they stand.
    Bullet(Item, String),
    /// Anything else, as it stands.
    Other(String),
}
