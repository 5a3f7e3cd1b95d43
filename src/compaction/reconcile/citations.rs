//! Rewrites citations of changed lines in the texts of files. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    line_map::{LineHashes, LineMap},
    source_match::CitedLine,
};
use crate::compaction::{
    context::RunContext,
    error::JobFailure,
    journal::{commit::FileWrite, records},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem, is_removed_line, removed_line_number},
        document::{BulletOwner, Summary, SummaryBlock},
        hash::{self, ContentHash},
        item::Item,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::{WisdomEntry, WisdomEntryMeta, WisdomFile},
    },
    store::{
        db::lineage::{
            Lineage,
            record::{DocumentRecord, LogRecord},
        },
        fs::{inventory::SummaryFile, vault::Vault},
    },
};

/// Where the lines of each changed log or cited summary went.
pub(crate) type LineMaps = BTreeMap<Stem, LineMap>;

/// The bullets whose citations are updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BulletScope {
    All,
    UserOnly,
}

/// Per week, the old and the new hash by which its month knows it.
type WeekHashes = BTreeMap<String, (String, String)>;

/// Rewrites citations in the texts of files; the caller writes them.
pub(super) struct CitationRewriter<'a> {
    vault: &'a Vault,
    lineage: &'a Lineage,
    view: &'a RootSnapshot,
    /// The recorded lines, for which the citations are right.
    known: &'a BTreeMap<Stem, LogRecord>,
    changed: &'a LineMaps,
    pub(super) files: Vec<FileWrite>,
    pub(super) documents: Vec<DocumentRecord>,
}

impl<'a> CitationRewriter<'a> {
    pub(super) fn new(
        context: &'a RunContext<'_>,
        view: &'a RootSnapshot,
        known: &'a BTreeMap<Stem, LogRecord>,
        changed: &'a LineMaps,
    ) -> Self {
        let (vault, lineage) = (context.vault, &*context.lineage);
        Self { vault, lineage, view, known, changed, files: Vec::new(), documents: Vec::new() }
    }

    /// Updates typed memories and wisdom entries, whatever happened to the rest of the log. If a
    /// line of a memory is gone, its hash stays and shows that; in a person's file its number
    /// stays, too, and so do their words.
    pub(super) fn update_memories_and_wisdom(&mut self) -> Result<(), JobFailure> {
        let layout = self.vault.layout();
        for memory in &self.view.inventory.memories {
            let place = |(at, hash): &(Address, String)| {
                let now = |it: &LineMap| match it.new_line(at.line) {
                    None if memory.is_managed() => it.line_or_position(at.line),
                    now => now.unwrap_or(at.line),
                };
                let line = self.changed.get(&at.stem).map_or(at.line, now);
                (Address { stem: at.stem.clone(), line }, hash.clone())
            };
            let sources: Vec<_> = memory.sources.iter().map(place).collect();
            if sources == memory.sources {
                continue;
            }
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            let Some(old) = self.vault.read_text(&path)? else { continue };
            let moved = TypedMemory { sources, ..memory.clone() };
            let text = if memory.is_managed() {
                Some(moved.print())
            } else {
                text_with_sources(&old, &moved)
            };
            let Some(text) = text else { continue };
            self.documents.push(records::of_memory(&path, &moved, &text));
            self.files.push(FileWrite { path, text: Some(text), current: Some(old) });
        }
        if let Some(old) = &self.view.inventory.wisdom {
            let mut file = WisdomFile::parse(old);
            if file.update_all_sources(&|entry, mark| self.moved_sources(entry, mark)) {
                let (path, text) = (layout.wisdom(), file.print());
                self.documents.push(records::of_wisdom(&path, &text));
                self.files.push(FileWrite { path, text: Some(text), current: Some(old.clone()) });
            }
        }
        Ok(())
    }

    /// Returns the present sources of an entry of `WISDOM.md`; `None` if it cites no changed file.
    fn moved_sources(&self, entry: &WisdomEntry, mark: &WisdomEntryMeta) -> Option<Vec<CitedLine>> {
        let concerned = mark.sources.files().any(|(stem, _)| self.changed.contains_key(stem));
        let found = concerned.then(|| remap_wisdom_sources(self.known, self.changed, mark))?;
        if entry.is_managed() {
            return Some(found);
        }
        let hash = |at: &Address| {
            let found = found.iter().find(|it| it.0 == *at).and_then(|it| it.1.clone());
            found.or_else(|| mark.lines.get(at).cloned())
        };
        let now = remap_citation(self.changed, &mark.sources);
        Some(now.addresses().map(|at| (at.clone(), hash(&at))).collect())
    }

    /// Updates weeks whose changed logs all only moved, and the months above them. Any other week
    /// is due and will cite the present lines; of it, and of the month above it, only what a person
    /// wrote is updated here, since the summary job keeps that as it is.
    ///
    /// Returns the weeks that were updated completely.
    pub(super) fn update_summaries(&mut self) -> Result<Vec<Period>, JobFailure> {
        let logs = self.changed.keys().filter(|it| !it.is_summary());
        let weeks: BTreeSet<Period> =
            logs.map(|it| Period::containing(Grain::Week, it.date())).collect();
        let mut parents: BTreeSet<Period> = weeks.iter().filter_map(|it| it.parent()).collect();
        for stem in self.changed.keys().filter(|it| it.is_summary()) {
            let citing = self.lineage.items_citing_range(stem, (1, u32::MAX))?;
            let periods = citing.iter().filter_map(|it| period_of_path(&it.item.path));
            parents.extend(periods.filter(|it| it.grain() == Grain::Month));
        }
        let mut done = Vec::new();
        let mut hashes_of_weeks: BTreeMap<Period, WeekHashes> = BTreeMap::new();
        for week in weeks {
            let Some(file) = self.undamaged(self.view.inventory.weekly.get(&week)) else {
                continue;
            };
            let Some(hash) = self.update_week(week, file)? else { continue };
            done.push(week);
            if let Some(month) = week.parent() {
                let hashes = (file.body_hash.clone(), hash);
                hashes_of_weeks.entry(month).or_default().insert(week.to_string(), hashes);
            }
        }
        for month in parents {
            let Some(file) = self.undamaged(self.view.inventory.monthly.get(&month)) else {
                continue;
            };
            let Some(header) = &file.header else { continue };
            let Some(weeks) = hashes_of_weeks.remove(&month) else {
                self.update_summary(month, file, BulletScope::UserOnly, &BTreeMap::new())?;
                continue;
            };
            // A month that was due before stays due: only matching hashes are replaced.
            let sources: BTreeMap<String, String> = weeks
                .into_iter()
                .filter(|(week, (old, _))| header.sources.get(week) == Some(old))
                .map(|(week, (_, new))| (week, new))
                .collect();
            self.update_summary(month, file, BulletScope::All, &sources)?;
        }
        Ok(done)
    }

    fn undamaged<'f>(&self, file: Option<&'f SummaryFile>) -> Option<&'f SummaryFile> {
        file.filter(|it| !self.view.record.damaged.contains_key(&it.path))
    }

    /// Updates one week; returns the new hash by which its month knows it, or `None` if the week is
    /// due or its file cannot be updated now.
    fn update_week(
        &mut self,
        week: Period,
        file: &SummaryFile,
    ) -> Result<Option<String>, JobFailure> {
        let inventory = &self.view.inventory;
        let of_week: Vec<(&Stem, &LineMap)> = self
            .changed
            .iter()
            .filter(|(stem, _)| !stem.is_summary())
            .filter(|(stem, _)| Period::containing(Grain::Week, stem.date()) == week)
            .collect();
        let sources = file.header.as_ref().map(|it| &it.sources);
        let is_named = |stem: &Stem| {
            let known = self.known.get(stem);
            let hash = known.map(|it| inventory.rules.input_hash(stem, it.hash).hex16());
            sources.and_then(|it| it.get(stem.as_str())) == hash.as_ref()
        };
        if !of_week.iter().all(|(stem, moves)| moves.only_moved() && is_named(stem)) {
            self.update_summary(week, file, BulletScope::UserOnly, &BTreeMap::new())?;
            return Ok(None);
        }
        let sources: BTreeMap<String, String> = of_week
            .iter()
            .map(|(stem, _)| (stem.to_string(), inventory.logs[*stem].input_hash.hex16()))
            .collect();
        let body_hash = self.update_summary(week, file, BulletScope::All, &sources)?;
        Ok(body_hash.map(|it| inventory.rules.summary_input_hash(week, &it)))
    }

    /// Updates the citations of one file and the hashes of its sources; returns the new hash of the
    /// body, or `None` if the file cannot be updated now.
    fn update_summary(
        &mut self,
        period: Period,
        file: &SummaryFile,
        scope: BulletScope,
        sources: &BTreeMap<String, String>,
    ) -> Result<Option<String>, JobFailure> {
        let text = self.vault.read_text(&file.path)?;
        let Some(old) = text.filter(|it| ContentHash::of(it) == file.hash) else { return Ok(None) };
        let Ok(mut summary) = Summary::parse(period, &old) else { return Ok(None) };
        let Some(header) = &mut summary.header else { return Ok(None) };
        for (name, hash) in sources {
            header.sources.insert(name.clone(), hash.clone());
        }
        let user_owned = user_bullets(&summary);
        // The summary job cites the present lines of logs; it may not be due for summaries.
        let changed_summaries: LineMaps = self
            .changed
            .iter()
            .filter(|(stem, _)| stem.is_summary())
            .map(|(stem, moves)| (stem.clone(), moves.clone()))
            .collect();
        for (i, block) in summary.blocks.iter_mut().enumerate() {
            let SummaryBlock::Bullet(item, raw) = block else { continue };
            let is_rewritten = scope == BulletScope::UserOnly && !user_owned.contains(&i);
            let changed = if is_rewritten { &changed_summaries } else { self.changed };
            let Some(citation) = &item.citation else { continue };
            let moved = remap_citation(changed, citation);
            if moved != *citation {
                *raw = replace_citation(raw, &moved);
                *item = Item { text: item.text.clone(), citation: Some(moved) };
            }
        }
        let text = summary.print();
        if text != old {
            self.documents.push(records::of_summary(&file.path, &summary, &text));
            self.files.push(FileWrite {
                path: file.path.clone(),
                text: Some(text),
                current: Some(old),
            });
        }
        Ok(Some(summary.body_hash().hex16()))
    }
}

/// Returns a person's memory with the sources of `moved`; `None` if its sources are spelled in
/// another way than ours, so that it is left alone.
pub(super) fn text_with_sources(old: &str, moved: &TypedMemory) -> Option<String> {
    let text = replace_sources(old, &moved.print());
    let read = TypedMemory::parse(&moved.file_name, &text);
    (read.ok().as_ref() == Some(moved)).then_some(text)
}

/// Returns the week or month of the file at a path.
pub(crate) fn period_of_path(path: &str) -> Option<Period> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns where the lines went between two records.
pub(crate) fn map_lines(old: &LogRecord, new: &LogRecord) -> LineMap {
    let hashes =
        |it: &LogRecord| LineHashes { first: it.first_line, hashes: it.line_hashes.clone() };
    LineMap::between(&hashes(old), &hashes(new))
}

/// Returns the indexes of the bullets that the next summary job may keep as they are: a person's,
/// and ours with text of a person below.
pub(crate) fn user_bullets(summary: &Summary) -> BTreeSet<usize> {
    let mut owners = summary.ownership().owners.into_iter();
    let mut found = BTreeSet::new();
    for (i, block) in summary.blocks.iter().enumerate() {
        let next = summary.blocks.get(i + 1).map(SummaryBlock::raw);
        let has_user_text =
            next.is_some_and(|it| it.starts_with([' ', '\t']) && !it.trim().is_empty());
        if block.item().is_some() && (owners.next() == Some(BulletOwner::User) || has_user_text) {
            found.insert(i);
        }
    }
    found
}

/// Returns the text of a memory with the sources of another text of it; every other byte stays.
pub(crate) fn replace_sources(text: &str, other: &str) -> String {
    let span = |text: &str| {
        let from = text.find("\nsources:")? + 1;
        let rest = text[from..].split_inclusive('\n').skip(1);
        let more = rest.take_while(|it| it.starts_with([' ', '\t', '-']) && !it.starts_with("---"));
        let first = text[from..].find('\n')? + 1;
        Some(from..from + first + more.map(str::len).sum::<usize>())
    };
    match (span(text), span(other)) {
        (Some(old), Some(new)) => {
            let end = if text[old.clone()].ends_with("\r\n") { "\r\n" } else { "\n" };
            let sources = other[new].trim_end();
            [&text[..old.start], sources, end, &text[old.end..]].concat()
        }
        _ => text.to_owned(),
    }
}

pub(crate) fn remap_citation(changed: &LineMaps, citation: &Citation) -> Citation {
    changed.iter().fold(citation.clone(), |citation, (stem, moves)| moves.remap(stem, &citation))
}

/// Returns the present sources of an entry, each with the hash that its line had when it was cited.
pub(crate) fn remap_wisdom_sources(
    known: &BTreeMap<Stem, LogRecord>,
    changed: &LineMaps,
    mark: &WisdomEntryMeta,
) -> Vec<CitedLine> {
    let before = |at: &Address| known.get(&at.stem)?.line_hash(at.line).map(hash::hex4_of);
    let mut sources: BTreeMap<Address, Option<String>> = BTreeMap::new();
    let mut lost = Vec::new();
    for at in mark.sources.addresses() {
        let Some(moves) = changed.get(&at.stem) else {
            let hash = mark.lines.get(&at).cloned();
            sources.insert(at, hash);
            continue;
        };
        let stem = at.stem.clone();
        let hash = mark.lines.get(&at).cloned();
        if stem.is_summary() {
            // The words are searched again when the month is distilled.
            let line = moves.new_line(at.line).unwrap_or_else(|| moves.lost_line(at.line));
            sources.insert(Address { stem, line }, hash);
            continue;
        }
        let hash = hash.or_else(|| before(&at));
        match moves.new_line(at.line) {
            Some(line) => drop(sources.insert(Address { stem, line }, hash)),
            None => lost.push((Address { stem, line: moves.line_or_position(at.line) }, hash)),
        }
    }
    // An address names one line: if another line is cited at the place of a lost one, the lost one
    // gets a number that no line has.
    for (mut at, hash) in lost {
        while sources.contains_key(&at) {
            at.line =
                if is_removed_line(at.line) { at.line + 1 } else { removed_line_number(at.line) };
        }
        sources.insert(at, hash);
    }
    sources.into_iter().collect()
}

/// Replaces the citation at the end of a bullet; its words stay byte for byte.
pub(crate) fn replace_citation(raw: &str, citation: &Citation) -> String {
    let cut = raw.rfind(']').and_then(|close| Some((raw[..close].rfind('[')?, close)));
    match cut {
        Some((open, close)) => format!("{}{citation}{}", &raw[..=open], &raw[close..]),
        None => raw.to_owned(),
    }
}
