//! The sanitized text of hits, each file read once.

use std::collections::{BTreeSet, HashMap};

use super::index::{
    indexed_file::{self, IndexedItem, IndexedLine},
    items,
};
use crate::{
    memory::{
        address::Stem, document::Summary, hash::ContentHash, item::Item, log::TextOrigin,
        markdown::LineKind, period::Period,
    },
    privacy::{self, SanitizedLine, SanitizedLog},
    recall::{external::external_bullets, framing},
    store::fs::{
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
    text::words,
};

/// Reads the files of a root.
pub(super) struct SnippetReader<'a> {
    vault: &'a Vault,
    inventory: &'a Inventory,
    logs: HashMap<Stem, Option<SnippetLog>>,
    items: HashMap<String, FileItems>,
}

/// The items of a generated file, and the lines of those that are in the words of external text.
#[derive(Default)]
struct FileItems {
    items: Vec<IndexedItem>,
    external: BTreeSet<u32>,
}

pub(super) struct SnippetLog(SanitizedLog);

/// The text of a hit.
#[derive(Default)]
pub(super) struct Snippet {
    pub(super) text: String,
    pub(super) origin: &'static str,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
    /// The headings above it, in lower case.
    headings: Vec<String>,
}

impl<'a> SnippetReader<'a> {
    pub(super) fn new(vault: &'a Vault, inventory: &'a Inventory) -> Self {
        Self { vault, inventory, logs: HashMap::new(), items: HashMap::new() }
    }

    pub(super) fn log(&mut self, stem: &Stem) -> Result<Option<&SnippetLog>, VaultError> {
        if !self.logs.contains_key(stem) {
            let log = self.vault.read_log(stem)?;
            let text = log.map(|it| SnippetLog(privacy::sanitize(&it, &self.inventory.rules)));
            self.logs.insert(stem.clone(), text);
        }
        Ok(self.logs.get(stem).and_then(Option::as_ref))
    }

    /// Returns a line that the index knows to need no sanitizing, read by its byte range; `None` if the
    /// whole log must be sanitized.
    pub(super) fn verbatim_line(
        &self,
        stem: &Stem,
        hash: ContentHash,
        line: &IndexedLine,
    ) -> Result<Option<Snippet>, VaultError> {
        let Some(origin) = line.verbatim_origin.filter(|_| !self.logs.contains_key(stem)) else {
            return Ok(None);
        };
        let log = self.vault.read_log(stem)?.filter(|it| it.hash == hash);
        let rules = &self.inventory.rules;
        let text = log.and_then(|it| privacy::unchanged_line(&it, line.number, rules));
        Ok(text.map(|text| Snippet { text, origin: origin.name(), ..Snippet::default() }))
    }

    /// Returns the words of the nearest heading above a line of a log, in lower case and without numbers.
    pub(super) fn title(&mut self, stem: &Stem, number: u32) -> Result<Option<String>, VaultError> {
        let Some(SnippetLog(log)) = self.log(stem)? else { return Ok(None) };
        let above = log.lines().iter().rev().skip_while(|it| it.number() >= number);
        let mut headings = above.filter(|it| matches!(it.kind(), LineKind::Heading { .. }));
        let title = headings.next().map(|it| words::lowercase_runs(it.words()));
        Ok(title.map(|it| {
            let words = it.filter(|it| it.contains(char::is_alphabetic));
            words.collect::<Vec<_>>().join(" ")
        }))
    }

    /// Returns whether a log line cites a session record, by an address at its end.
    pub(super) fn line_cites_record(
        &mut self,
        log: &Stem,
        number: u32,
        record: &Stem,
    ) -> Result<bool, VaultError> {
        let line = self.log(log)?.and_then(|it| it.0.line(number));
        let citation = line.and_then(|it| Item::parse(it.text()).citation);
        Ok(citation.is_some_and(|it| it.files().any(|(stem, _)| stem == record)))
    }

    /// Returns the text of the item at a line, and its origin; `None` if there is none any more.
    pub(super) fn item(
        &mut self,
        path: &str,
        tier: &str,
        line: u32,
    ) -> Result<Option<(String, &'static str)>, VaultError> {
        if !self.items.contains_key(path) {
            let rows = self.items_of(path, tier)?;
            self.items.insert(path.to_owned(), rows);
        }
        let Some(FileItems { items, external }) = self.items.get(path) else { return Ok(None) };
        let is_external = external.contains(&line);
        let origin = if is_external { TextOrigin::External.name() } else { "derived" };
        let row = items.iter().find(|it| it.line == line);
        Ok(row.map(|it| (it.text.clone(), origin)))
    }

    fn items_of(&self, path: &str, tier: &str) -> Result<FileItems, VaultError> {
        let rules = &self.inventory.rules;
        let accepted = framing::accepted_in(self.vault, rules);
        if tier == "memory" {
            let is_it = |name: &str| path.rsplit_once('/').map_or(path, |it| it.1) == name;
            let memories = self.inventory.memories.iter();
            let of = memories.filter(|it| is_it(&it.file_name.to_string_lossy()));
            let items = of.map(|it| items::of_memory(it, rules, &accepted)).collect();
            return Ok(FileItems { items, ..FileItems::default() });
        }
        let Some(text) = self.vault.read_text(path)? else { return Ok(FileItems::default()) };
        if tier == "wisdom" {
            let items = items::of_wisdom(&text, rules, &accepted);
            return Ok(FileItems { items, ..FileItems::default() });
        }
        let name = path.rsplit_once('/').map_or(path, |it| it.1).trim_end_matches(".md");
        let summary = name.parse::<Period>().ok().map(|it| Summary::parse(it, &text));
        let Some(Ok(summary)) = summary else { return Ok(FileItems::default()) };
        Ok(FileItems {
            items: items::of_summary(&summary, &text, rules, &accepted),
            external: external_bullets(&summary, self.vault, rules),
        })
    }
}

impl SnippetLog {
    pub(super) fn origin(&self, number: u32) -> Option<&'static str> {
        self.0.line(number).map(|it| it.origin().name())
    }

    /// Returns a line, with up to `context` non-empty lines before and after it; `None` if it is gone.
    pub(super) fn line(&self, number: u32, context: usize) -> Option<Snippet> {
        let is_there = |it: &&SanitizedLine| {
            it.is_content() && !it.is_quarantined() && indexed_file::is_original(&self.0, it)
        };
        let line = self.0.line(number).filter(is_there)?;
        let is_said = |it: &&SanitizedLine| {
            let is_heading = matches!(it.kind(), LineKind::Heading { .. });
            it.is_content() && !it.is_quarantined() && !is_heading
        };
        let texts = |all: Vec<&SanitizedLine>| -> Vec<String> {
            all.into_iter().map(|it| it.words().to_owned()).collect()
        };
        let lines = self.0.lines();
        let at = lines.iter().position(|it| it.number() == number)?;
        let mut before: Vec<_> = lines[..at].iter().rev().filter(is_said).take(context).collect();
        before.reverse();
        let after = lines[at + 1..].iter().filter(is_said).take(context).collect();
        let mut above: Vec<(u8, String)> = Vec::new();
        for line in &lines[..at] {
            if let LineKind::Heading { level, .. } = line.kind() {
                above.retain(|it| it.0 < level);
                above.push((level, line.words().to_lowercase()));
            }
        }
        Some(Snippet {
            text: line.words().to_owned(),
            origin: line.origin().name(),
            before: texts(before),
            after: texts(after),
            headings: above.into_iter().map(|it| it.1).collect(),
        })
    }
}

impl Snippet {
    /// Returns whether a heading above contains this name.
    pub(super) fn is_under_heading(&self, name: &str) -> bool {
        self.headings.iter().any(|it| it.contains(name))
    }
}
