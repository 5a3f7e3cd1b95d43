//! The session records that lines of logs cite, each read once.

use std::{
    collections::{BTreeSet, HashMap},
    rc::Rc,
};

use super::grounding::session::{RecordLines, misquotes_record};
use crate::{
    memory::address::Stem,
    privacy::{PrivacyRules, SanitizedLine, SanitizedLog},
    store::fs::vault::Vault,
};

/// Compares lines of logs with the records that they cite.
pub(crate) struct CitedRecords<'a> {
    vault: &'a Vault,
    rules: &'a PrivacyRules,
    read: HashMap<Stem, Option<Rc<RecordLines>>>,
}

impl<'a> CitedRecords<'a> {
    pub(crate) fn new(vault: &'a Vault, rules: &'a PrivacyRules) -> Self {
        Self { vault, rules, read: HashMap::new() }
    }

    /// Returns whether a line cites a record that says something else, or that only quotes it. A line whose record
    /// cannot be read is not compared.
    pub(crate) fn are_misquoted_by(&mut self, line: &SanitizedLine) -> bool {
        let Self { vault, rules, read } = self;
        misquotes_record(line, rules, |stem| {
            let path = vault.layout().source_path(stem);
            let text = || vault.read_text(&path).ok().flatten();
            let parse = || RecordLines::parse(stem, &text()?).map(Rc::new);
            read.entry(stem.clone()).or_insert_with(parse).clone()
        })
    }

    /// Returns a log without the lines that misquote their record.
    pub(crate) fn without_misquotes(&mut self, log: SanitizedLog) -> SanitizedLog {
        let lines = log.lines().iter().filter(|it| self.are_misquoted_by(it));
        let misquotes: BTreeSet<u32> = lines.map(SanitizedLine::number).collect();
        if misquotes.is_empty() {
            return log;
        }
        log.without(|it| misquotes.contains(&it.number()))
    }
}
