//! The result of a scan: values only, so that a plan needs no disk.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::{
    memory::{
        address::Stem,
        decision::Decisions,
        document::{self, Summary, SummaryError, SummaryHeader},
        frontmatter,
        hash::ContentHash,
        joined,
        period::Period,
        typed::TypedMemory,
    },
    privacy::PrivacyRules,
};

/// Properties of a file that change when its content does.
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
    /// Those of them that are in the archive.
    pub archived: BTreeSet<Stem>,
    /// Files with the name of an archived log: somebody wrote to that day after it was archived. The
    /// archived one counts until the next run has joined the two.
    pub late_logs: BTreeMap<Stem, LogFile>,
    /// Weekly summaries.
    pub weekly: BTreeMap<Period, SummaryFile>,
    /// Monthly summaries.
    pub monthly: BTreeMap<Period, SummaryFile>,
    /// Typed memories, by file name.
    pub memories: Vec<TypedMemory>,
    /// Text of `MEMORY.md`.
    pub index: Option<String>,
    /// Text of `WISDOM.md`.
    pub wisdom: Option<String>,
    /// Notes that an agent or a person keeps by themselves, by path.
    pub curated: Vec<CuratedFile>,
    /// What people decided.
    pub decisions: Decisions,
    /// Which lines of the logs are visible.
    pub rules: PrivacyRules,
    /// Files that a person should look at.
    pub problems: Vec<FileProblem>,
}

/// A daily log that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// Its path relative to the root, in the archive if it was moved there.
    pub path: String,
    /// Inode, size, and time.
    pub stamp: FileStat,
    /// Hash of the bytes.
    pub hash: ContentHash,
    /// Hash of the log as an input of other files: see [`Decisions::input_hash`].
    pub input_hash: ContentHash,
}

/// Notes that memoird reads and never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CuratedFile {
    /// Path relative to the root.
    pub path: String,
    /// Hash of the text, by which a job names it as an input.
    pub hash: ContentHash,
    /// The text, with blank lines in place of the index of typed memories.
    pub text: String,
}

/// A weekly or monthly summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryFile {
    /// Path relative to the root.
    pub path: String,
    /// Inode, size, and time.
    pub stamp: FileStat,
    /// Hash of the bytes.
    pub hash: ContentHash,
    /// First 16 hex digits of the hash of the body and of what people accepted in it (see
    /// `PrivacyRules::summary_input_hash`): a month names a week by it.
    pub body_hash: String,
    /// Characters of the body, without citations.
    pub chars: usize,
    /// The header that memoird wrote; `None` for a file of somebody else.
    pub header: Option<SummaryHeader>,
    /// Whether its record is about another text (see [`Summary::is_mixed`]).
    pub is_mixed: bool,
}

impl SummaryFile {
    /// Extracts what a plan needs from the text of a weekly or monthly summary.
    ///
    /// Fails if the text lost data or its header cannot be read.
    pub(crate) fn of(
        path: String,
        stamp: FileStat,
        period: Period,
        text: &str,
    ) -> Result<Self, SummaryError> {
        document::check_data_loss(text)?;
        let (visible, record) = joined::split(text);
        let belongs = record.is_none_or(|it| joined::belongs(it, visible.as_bytes()));
        Ok(Self {
            path,
            stamp,
            hash: ContentHash::of(text),
            body_hash: document::body_hash(text).hex16(),
            chars: document::text_chars(frontmatter::split(visible).body(visible)),
            header: SummaryHeader::read(period, text)?,
            is_mixed: !belongs && Summary::parse(period, text)?.is_mixed(),
        })
    }

    /// Describes a file that was not read.
    pub fn without_content(path: String, stamp: FileStat, hash: ContentHash) -> Self {
        Self {
            path,
            stamp,
            hash,
            body_hash: String::new(),
            chars: 0,
            header: None,
            is_mixed: false,
        }
    }
}

/// A file that memoird does not touch, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileProblem {
    /// Path relative to the root.
    pub path: String,
    /// What is wrong, and what to do.
    pub reason: String,
    /// Whether a version control system could not merge it: what was made from it waits.
    pub is_merge_conflict: bool,
}

impl FileProblem {
    pub(crate) fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into(), is_merge_conflict: false }
    }
}

impl Inventory {
    /// Returns the files that a version control system could not merge.
    pub(crate) fn merge_conflicts(&self) -> impl Iterator<Item = &FileProblem> {
        self.problems.iter().filter(|it| it.is_merge_conflict)
    }

    /// Returns the day of the newest log that is not dated after `today`.
    pub fn newest_day(&self, today: NaiveDate) -> Option<NaiveDate> {
        self.logs.keys().map(Stem::date).filter(|it| *it <= today).max()
    }

    /// Returns the logs dated in a period.
    pub fn logs_of(&self, period: Period) -> impl Iterator<Item = (&Stem, &LogFile)> {
        let from = Stem::day(period.first());
        self.logs.range(from..).take_while(move |(stem, _)| stem.date() < period.end())
    }
}
