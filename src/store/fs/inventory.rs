//! What a scan found in a root: values only, so that a plan can be made without a disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    memory::{
        address::Stem,
        decision::Decisions,
        document::{self, SummaryError, SummaryHeader},
        frontmatter,
        hash::ContentHash,
        period::Period,
        typed::TypedMemory,
    },
    privacy::PrivacyRules,
};

/// What tells a changed file without reading it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStat {
    /// The inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Time of the last change of the content, nanoseconds since 1970 UTC.
    pub mtime_ns: i64,
}

/// The files of a root, sorted.
#[derive(Clone, Debug, Default)]
pub struct Inventory {
    /// Daily logs that can be read, archived ones too.
    pub logs: BTreeMap<Stem, LogFile>,
    /// Those of them that stand in the archive.
    pub archived: BTreeSet<Stem>,
    /// Files that stand under the name of a log that is archived: what was written to a day after
    /// it had been. The archived one counts until the next pass has joined the two.
    pub late_logs: BTreeMap<Stem, LogFile>,
    /// Weekly files.
    pub weekly: BTreeMap<Period, SummaryFile>,
    /// Monthly files.
    pub monthly: BTreeMap<Period, SummaryFile>,
    /// Typed memories, by file name.
    pub memories: Vec<TypedMemory>,
    /// Text of `MEMORY.md`.
    pub index: Option<String>,
    /// Text of `WISDOM.md`.
    pub wisdom: Option<String>,
    /// What people decided.
    pub decisions: Decisions,
    /// What may be seen of the logs.
    pub rules: PrivacyRules,
    /// Files that a person should look at.
    pub problems: Vec<FileProblem>,
}

/// A daily log that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Where it stands, relative to the root: in the archive if it was moved there.
    pub path: String,
    /// Inode, size, and time.
    pub stamp: FileStat,
    /// Hash of the bytes.
    pub hash: ContentHash,
    /// Hash of the log as an input of what is made of it: see [`Decisions::input_hash`].
    pub input_hash: ContentHash,
}

/// A weekly or monthly file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryFile {
    /// Path relative to the root.
    pub path: String,
    /// Inode, size, and time.
    pub stamp: FileStat,
    /// Hash of the bytes.
    pub hash: ContentHash,
    /// First 16 hex digits of the hash of the body, and of what people accepted of it (see
    /// `PrivacyRules::summary_input_hash`): how a month names a week.
    pub body_hash: String,
    /// Characters of the body, citations not counted.
    pub chars: usize,
    /// What we recorded in it; `None` for a foreign file.
    pub header: Option<SummaryHeader>,
}

impl SummaryFile {
    /// Takes what a plan needs from the text of a weekly or monthly file.
    ///
    /// # Errors
    ///
    /// Returns why it cannot be read.
    pub fn of(
        path: String,
        stamp: FileStat,
        period: Period,
        text: &str,
    ) -> Result<Self, SummaryError> {
        document::check_data_loss(text)?;
        Ok(Self {
            path,
            stamp,
            hash: ContentHash::of(text),
            body_hash: document::body_hash(text).hex16(),
            chars: document::text_chars(frontmatter::split(text).body(text)),
            header: SummaryHeader::read(period, text)?,
        })
    }

    /// Takes what is known of a file without reading it: where it stands, and its bytes.
    pub fn without_content(path: String, stamp: FileStat, hash: ContentHash) -> Self {
        Self { path, stamp, hash, body_hash: String::new(), chars: 0, header: None }
    }
}

/// A file that is left alone, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileProblem {
    /// Path relative to the root.
    pub path: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

impl Inventory {
    /// Returns the logs dated in a period.
    pub fn logs_of(&self, period: Period) -> impl Iterator<Item = (&Stem, &LogFile)> {
        let from = Stem::day(period.first());
        self.logs.range(from..).take_while(move |(stem, _)| stem.date() < period.end())
    }
}
