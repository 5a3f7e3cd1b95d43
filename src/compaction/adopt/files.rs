//! Which items of one file are ours, and the record that says so.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Duration, Utc};
use serde_json::json;

use super::stated::{LineFinder, is_stated};
use crate::compaction::{
    grounding::{self, LineLookup as _},
    reconcile::source_match::LogsByStem,
    snapshot::RootSnapshot,
    wisdom::bullets::RedraftedDigest,
};
use crate::{
    config::root::RootSettings,
    memory::{
        address::{Address, Citation, Stem},
        document::{Summary, SummaryBlock, SummaryHeader},
        frontmatter,
        hash::ContentHash,
        item::{Item, Tier},
        joined,
        log::DailyLog,
        period::{Grain, Period},
        typed::{self, MemoryType, TypedMemory, description_hash},
        wisdom::{WisdomFile, WisdomPart, WisdomSection, is_beginning_of},
    },
    privacy,
    store::fs::vault::Vault,
};

/// The engine of a file whose record does not say which one it was.
const UNKNOWN_ENGINE: &str = "unknown";

/// Decides about one file after the other.
pub(super) struct FileAdopter<'a> {
    pub(super) vault: &'a Vault,
    pub(super) view: &'a RootSnapshot,
    pub(super) settings: &'a RootSettings,
    pub(super) now: DateTime<Utc>,
    /// All logs.
    pub(super) logs: LogsByStem,
    /// The lines of items without citations.
    pub(super) finder: LineFinder,
    /// What is chosen from the newest logs today.
    pub(super) redrafted: RedraftedDigest,
    /// The lines of the memories of one statement that are extracted today, by type and body.
    pub(super) extracted: BTreeMap<(MemoryType, String), Citation>,
}

/// A file with a record.
pub(super) struct FileWithRecord {
    /// Both as one text.
    pub(super) text: String,
    pub(super) ours: usize,
    pub(super) users: usize,
    /// Logs that were extracted when it was written.
    pub(super) extracted: Vec<(Stem, ContentHash)>,
}

/// The file with its record, or why it stays the person's.
type Adoption = Result<FileWithRecord, &'static str>;

impl FileAdopter<'_> {
    pub(super) fn adopt(&self, path: &str, text: &str) -> Adoption {
        let layout = self.vault.layout();
        let name = path.rsplit('/').next().unwrap_or(path);
        if path == layout.wisdom() {
            return self.adopt_wisdom(text);
        }
        match name.strip_suffix(".md").and_then(|it| it.parse::<Period>().ok()) {
            Some(period) => self.adopt_summary(period, text),
            None => self.adopt_memory(name, text),
        }
    }

    fn adopt_summary(&self, period: Period, text: &str) -> Adoption {
        let keys = frontmatter::split(text).yaml.unwrap_or_default();
        let tier = format!("type: {}", Tier::of_period(period));
        let Ok(plain) = Summary::parse(period, text) else {
            return Err("its frontmatter cannot be read");
        };
        let has = |key: &str| keys.lines().any(|it| it.starts_with(key));
        if !has("period:") || !has("pointers:") || !keys.lines().any(|it| it.trim_end() == tier) {
            return Err("it does not have the frontmatter of a weekly or monthly file");
        }
        if !plain.body().lines().any(|it| it.trim_end() == Summary::title(period)) {
            return Err("it does not have the title of a weekly or monthly file");
        }
        let mut ours = Vec::new();
        let mut users = 0;
        for item in plain.blocks.iter().filter_map(SummaryBlock::item) {
            if self.is_cited_and_stated(item) {
                ours.push(item);
            } else {
                users += 1;
            }
        }
        if ours.is_empty() {
            return Err("no bullet is in the words of the log lines that it cites");
        }
        let is_external = |item: &&&Item| {
            let citation = item.citation.as_ref();
            citation.and_then(|it| grounding::is_external(&item.text, it, &self.logs)) == Some(true)
        };
        let external: Vec<String> = ours.iter().filter(is_external).map(|it| it.hash()).collect();
        let items: Vec<String> = ours.iter().map(|it| it.hash()).collect();
        let record = json!({ "body": "", "items": items });
        let with_items = joined::join(text, Some(&record.to_string()));
        let Ok(mut summary) = Summary::parse(period, &with_items) else {
            return Err("its frontmatter cannot be read");
        };
        let mut extracted = Vec::new();
        if let Some(header) = &mut summary.header {
            UNKNOWN_ENGINE.clone_into(&mut header.engine);
            header.external = external;
            header.partial = !self.is_closed(period);
            for pointer in header.pointers.clone() {
                self.add_source(&pointer, header, &mut extracted);
            }
            if period.grain() == Grain::Week {
                let days = extracted.iter().map(|(stem, _)| stem.date().to_string());
                header.extracted = days.collect::<BTreeSet<_>>().into_iter().collect();
            }
        }
        let printed = summary.print();
        // A person may have spelled the frontmatter in another way.
        let text = joined::resealed(joined::join(text, joined::split(&printed).1));
        Ok(FileWithRecord { text, ours: items.len(), users, extracted })
    }

    /// Records a file that a summary names as a source, as it is now.
    fn add_source(
        &self,
        pointer: &str,
        header: &mut SummaryHeader,
        extracted: &mut Vec<(Stem, ContentHash)>,
    ) {
        let inventory = &self.view.inventory;
        let Some(stem) = self.vault.layout().stem_at(pointer) else { return };
        let hash = match stem.summary_period() {
            Some(week) => inventory.weekly.get(&week).map(|it| it.body_hash.clone()),
            None => inventory.logs.get(&stem).map(|it| {
                extracted.push((stem.clone(), it.input_hash));
                it.input_hash.hex16()
            }),
        };
        header.sources.extend(hash.map(|it| (stem.to_string(), it)));
    }

    fn is_closed(&self, period: Period) -> bool {
        let grace = Duration::from_std(self.settings.settings.compaction.grace.as_duration());
        let then = self.now - grace.unwrap_or(Duration::zero());
        period.last_source_day() < then.with_timezone(&self.settings.zone.name.0).date_naive()
    }

    /// Returns whether the lines that an item cites are there and state its words.
    fn is_cited_and_stated(&self, item: &Item) -> bool {
        let Some(citation) = &item.citation else { return false };
        let line = |at: Address| {
            let text = match at.stem.summary_period() {
                Some(period) => self.line_of_summary(period, &at)?,
                None => self.logs.line(&at.stem, at.line)?.text().to_owned(),
            };
            Some((at, text))
        };
        let lines: Option<Vec<(Address, String)>> = citation.addresses().map(line).collect();
        lines.is_some_and(|it| {
            let lines: Vec<_> = it.iter().map(|(at, text)| (at.clone(), &text[..])).collect();
            is_stated(&item.text, &lines)
        })
    }

    fn line_of_summary(&self, period: Period, at: &Address) -> Option<String> {
        let text = self.vault.read_text(&self.vault.layout().summary(period)).ok()??;
        let log = DailyLog::parse(at.stem.clone(), text.as_bytes()).ok()?;
        let log = privacy::sanitize(&log, &self.view.inventory.rules);
        Some(Item::parse(log.line(at.line)?.text()).text)
    }

    fn adopt_memory(&self, name: &str, text: &str) -> Adoption {
        let Ok(mut memory) = TypedMemory::parse(name.as_ref(), text) else {
            return Err("its frontmatter cannot be read");
        };
        let (ours, users) = if memory.is_about_topic() {
            self.adopt_statements(&mut memory)
        } else {
            self.adopt_single_statement(&mut memory)
        };
        if ours == 0 {
            return Err("none of its statements is in the words of log lines");
        }
        memory.created = memory.sources.iter().map(|it| it.0.stem.date()).min();
        memory.updated = memory.sources.iter().map(|it| it.0.stem.date()).max();
        memory.record_body_hash();
        Ok(FileWithRecord { text: memory.with_record(text), ours, users, extracted: Vec::new() })
    }

    fn adopt_statements(&self, memory: &mut TypedMemory) -> (usize, usize) {
        let all = memory.statements();
        let is_ours = |item: &Item| {
            self.redrafted.states(memory.kind, item) || self.is_cited_and_stated(item)
        };
        let ours: Vec<&Item> = all.iter().map(|it| &it.item).filter(|it| is_ours(it)).collect();
        let items: Vec<String> = ours.iter().map(|it| it.hash()).collect();
        let count = items.len();
        let cited: BTreeSet<Address> = all
            .iter()
            .filter_map(|it| it.item.citation.as_ref())
            .flat_map(Citation::addresses)
            .collect();
        let description = description_hash(&memory.description);
        let is_our_description = self.redrafted.describes(memory.kind, &memory.description)
            || ours.iter().any(|it| is_beginning_of(&memory.description, &it.text));
        memory.sources = cited.iter().filter_map(|it| self.hashed(it)).collect();
        memory.recorded_description =
            Some(if is_our_description { description } else { description_hash("") });
        memory.items = items;
        (count, all.len() - count)
    }

    /// A memory in our form has its statement, and perhaps why and how to apply it, and no citation.
    fn adopt_single_statement(&self, memory: &mut TypedMemory) -> (usize, usize) {
        let known = self.extracted.get(&(memory.kind, memory.body.clone())).cloned();
        let Some(citation) = known.or_else(|| self.lines_of_single_statement(memory)) else {
            return (0, 1);
        };
        memory.sources = citation.addresses().filter_map(|it| self.hashed(&it)).collect();
        (1, 0)
    }

    fn lines_of_single_statement(&self, memory: &TypedMemory) -> Option<Citation> {
        let paragraphs: Vec<&str> = memory.body.trim().split("\n\n").map(str::trim).collect();
        let part = |label: &str| {
            paragraphs[1..].iter().copied().find_map(|it| it.strip_prefix(label)).map(str::trim)
        };
        let (why, how) = (part("**Why:**"), part("**How to apply:**"));
        let is_our_form = memory.body == typed::format_body(paragraphs[0], why, how);
        let words: Vec<&str> = [Some(paragraphs[0]), why, how].into_iter().flatten().collect();
        self.finder.find(&words).filter(|_| is_our_form)
    }

    /// Returns a line with the short hash of its words.
    fn hashed(&self, at: &Address) -> Option<(Address, String)> {
        Some((at.clone(), self.logs.line(&at.stem, at.line)?.hash().hex4()))
    }

    fn adopt_wisdom(&self, text: &str) -> Adoption {
        let file = WisdomFile::parse(text);
        let mut ours = WisdomFile::new("");
        let mut users = 0;
        let mut bullets = Vec::new();
        let mut section = None;
        let mut count = 0;
        let has_digest = self.settings.settings.wisdom.has_digest();
        for part in file.parts() {
            match part {
                WisdomPart::Heading(line) => section = line.strip_prefix("## "),
                WisdomPart::Text(text) => {
                    let kind =
                        WisdomSection::ALL.into_iter().find(|it| Some(it.title()) == section);
                    for bullet in text.lines().filter_map(|it| it.strip_prefix("- ")) {
                        let found = kind.and_then(|it| self.redrafted.citation(it, bullet));
                        match (found.or_else(|| self.finder.find(&[bullet])), kind) {
                            (Some(citation), Some(kind)) if has_digest => {
                                bullets.push((kind, bullet.to_owned(), citation));
                            }
                            (Some(citation), _) => {
                                count += 1;
                                ours.add(bullet, bullet, section, citation);
                            }
                            (None, _) => users += 1,
                        }
                    }
                }
                WisdomPart::Entry(entry) => {
                    let Some(citation) = self.finder.find(&[&entry.title, &entry.text]) else {
                        users += 1;
                        continue;
                    };
                    count += 1;
                    ours.add(&entry.title, &entry.text, section, citation);
                }
            }
        }
        count += bullets.len();
        if count == 0 {
            return Err("none of its entries is in the words of log lines");
        }
        ours.replace_bullets(&bullets);
        let ids: Vec<(String, Citation)> = ours
            .entries()
            .filter_map(|it| it.meta.as_ref())
            .map(|it| (it.id.clone(), it.sources.clone()))
            .collect();
        for (id, citation) in ids {
            ours.record_line_hashes(&id, citation.addresses().filter_map(|it| self.hashed(&it)));
        }
        // The months that there are were distilled: that they are again would repeat what the file says.
        self.view.inventory.monthly.keys().for_each(|it| ours.add_distilled(*it));
        let record = ours.print();
        let adopted = WisdomFile::parse(&joined::join(text, joined::split(&record).1));
        let ours = adopted.entries().filter(|it| it.is_managed()).count();
        let users = users + count.saturating_sub(ours);
        Ok(FileWithRecord { text: adopted.print(), ours, users, extracted: Vec::new() })
    }
}
