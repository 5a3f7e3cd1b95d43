//! What a person wants forgotten, and the lines that this is about.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::memory::{
    address::{Address, Citation, Stem},
    hash::ContentHash,
};

/// What a person wants forgotten, and what was found before anything was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForgetRequest {
    /// Lines of logs, without surrounding white space, at any position.
    pub lines: BTreeSet<String>,
    /// Logs to be forgotten as a whole, each with its lines.
    pub logs: BTreeMap<String, BTreeSet<String>>,
    /// Words, [`normalized`]: all lines and items that contain them, as whole words, are removed.
    pub words: BTreeSet<String>,
    /// Bullets and entries by their normalized words, per file.
    pub items: BTreeMap<String, BTreeSet<String>>,
    /// Typed memories, by path.
    pub memories: BTreeSet<String>,
    /// Whether the lines are also removed from the logs.
    pub from_log: bool,
    /// What it was resolved to at the beginning.
    pub found: ResolvedTargets,
}

/// What only the unchanged files reveal; recorded for a second attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ResolvedTargets {
    /// The normalized words of everything derived from the lines.
    pub texts: BTreeSet<String>,
    /// Paths of the typed memories among it; their names are built from the words.
    pub names: BTreeSet<String>,
    /// The addresses of the lines, as generated files cite them now.
    pub now: LinesByStem,
    /// The short hash of each of these lines, by which memories and entries identify it.
    #[serde(default)]
    pub hashes: BTreeMap<String, String>,
    /// Their addresses in any version of their logs.
    pub ever: LinesByStem,
    /// Logs that are removed as a whole: no file names them any more.
    pub logs: BTreeSet<String>,
    /// Logs for which the former addresses are not known in every version.
    pub unknown: BTreeSet<String>,
    /// Lines of session records that repeat the lines, without surrounding white space.
    #[serde(default)]
    pub record_lines: BTreeSet<String>,
}

/// Lines of files, by stem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinesByStem(BTreeMap<String, BTreeSet<u32>>);

impl ResolvedTargets {
    /// Adds a line at its present address.
    pub(super) fn add_line(&mut self, stem: &Stem, line: u32, text: &str) {
        self.now.add(stem.as_str(), line);
        self.hashes.insert(format!("{stem}:{line}"), ContentHash::of(text).hex4());
    }

    /// Returns whether one of the lines was cited at this address, with this hash if recorded.
    pub(super) fn is_cited_line(&self, at: &Address, hash: Option<&String>) -> bool {
        self.now.contains(at)
            && hash.is_none_or(|it| self.hashes.get(&at.to_string()).is_none_or(|line| line == it))
    }
}

impl LinesByStem {
    pub(super) fn contains(&self, at: &Address) -> bool {
        self.0.get(at.stem.as_str()).is_some_and(|it| it.contains(&at.line))
    }

    pub(super) fn add(&mut self, stem: &str, line: u32) {
        self.0.entry(stem.to_owned()).or_default().insert(line);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (stem, lines) in &other.0 {
            self.0.entry(stem.clone()).or_default().extend(lines);
        }
    }

    pub(super) fn stems(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns whether the citation names one of the lines.
    pub(super) fn are_cited_by(&self, citation: &Citation) -> bool {
        citation.files().any(|(stem, lines)| {
            self.0.get(stem.as_str()).is_some_and(|it| it.iter().any(|line| lines.contains(*line)))
        })
    }
}
