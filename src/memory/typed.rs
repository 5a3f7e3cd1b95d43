//! Typed memories: one statement in one file, with frontmatter.

use std::{fmt, path::PathBuf};

use chrono::NaiveDate;

use super::address::Address;

/// The closed list of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryType {
    /// A person's role, preferences, expertise, way of working.
    User,
    /// Guidance on how to work, with why.
    Feedback,
    /// Decisions, goals, timelines, context.
    Project,
    /// Where something outside is found.
    Reference,
}

impl MemoryType {
    /// All kinds, in the order of the index.
    pub const ALL: [Self; 4] = [Self::User, Self::Feedback, Self::Project, Self::Reference];

    /// Returns the name that stands in frontmatter and before `_` in the file's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }

    /// Returns the kind with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A typed memory as it stands in its file.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedMemory {
    /// `feedback_testing-approach.md`.
    pub file_name: PathBuf,
    /// The kind.
    pub kind: MemoryType,
    /// The title.
    pub name: String,
    /// The line for the index.
    pub description: String,
    /// Day of the oldest source.
    pub created: Option<NaiveDate>,
    /// Day of the newest source.
    pub updated: Option<NaiveDate>,
    /// The lines that it rests on, each with the first 4 hex digits of the line's hash.
    pub sources: Vec<(Address, String)>,
    /// The file that this one replaces.
    pub supersedes: Option<String>,
    /// The hash of the body as we wrote it; `None` in a person's file.
    pub recorded_body: Option<String>,
    /// Frontmatter keys that are not ours, in order; kept.
    pub other_keys: serde_yaml::Mapping,
    /// All after the frontmatter.
    pub body: String,
}
