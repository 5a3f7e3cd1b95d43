//! Rewrites citations of changed lines in the texts of files. Nothing is written here.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    changed_lines::{ChangedFiles, CitedVersion, present_citation, present_sources},
    source_match::{CitedLine, memory_text},
};
use crate::compaction::{
    context::RunContext,
    error::JobFailure,
    journal::{commit::FileWrite, records},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        document::{BulletOwner, RecordedAs, Summary, SummaryBlock},
        frontmatter,
        hash::ContentHash,
        item::Item,
        joined,
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

/// Per week, the old and the new hash by which its month knows it.
type WeekHashes = BTreeMap<String, (String, String)>;

/// Rewrites citations in the texts of files; the caller writes them.
pub(super) struct CitationRewriter<'a> {
    vault: &'a Vault,
    lineage: &'a Lineage,
    view: &'a RootSnapshot,
    /// The recorded lines, for which the citations are right.
    known: &'a BTreeMap<Stem, LogRecord>,
    changed: &'a ChangedFiles,
    /// Files that somebody else wrote since the last run.
    external: &'a BTreeSet<String>,
    pub(super) files: Vec<FileWrite>,
    pub(super) documents: Vec<DocumentRecord>,
}

impl<'a> CitationRewriter<'a> {
    pub(super) fn new(
        context: &'a RunContext<'_>,
        view: &'a RootSnapshot,
        known: &'a BTreeMap<Stem, LogRecord>,
        changed: &'a ChangedFiles,
        external: &'a BTreeSet<String>,
    ) -> Self {
        let (vault, lineage) = (context.vault, &*context.lineage);
        let (files, documents) = (Vec::new(), Vec::new());
        Self { vault, lineage, view, known, changed, external, files, documents }
    }

    /// Updates typed memories and wisdom entries, whatever happened to the rest of the log. If a
    /// line of a memory is gone, its hash stays, and so do a person's words.
    pub(super) fn update_memories_and_wisdom(&mut self) -> Result<(), JobFailure> {
        let layout = self.vault.layout();
        for memory in &self.view.inventory.memories {
            let Some(moved) = memory_with_present_sources(self.changed, memory) else { continue };
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            let Some(old) = self.vault.read_text(&path)? else { continue };
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
            let path = layout.wisdom();
            let version = self.other_version(&path);
            let found = |entry: &_, mark: &_| entry_sources(self.changed, entry, mark, version);
            if file.update_all_sources(&found) {
                let text = file.print();
                self.documents.push(records::of_wisdom(&path, &text));
                self.files.push(FileWrite { path, text: Some(text), current: Some(old.clone()) });
            }
        }
        Ok(())
    }

    /// Updates the weeks of changed logs and the months above them, so that all their citations are
    /// about the recorded lines, even if no job writes them again.
    ///
    /// A week whose logs all only moved names their present versions then, and is not due.
    ///
    /// Returns the weeks that were updated.
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
            let weeks = hashes_of_weeks.remove(&month).unwrap_or_default();
            // A month that was due before stays due: only matching hashes are replaced.
            let sources: BTreeMap<String, String> = weeks
                .into_iter()
                .filter(|(week, (old, _))| header.sources.get(week) == Some(old))
                .map(|(week, (_, new))| (week, new))
                .collect();
            self.update_summary(month, file, &sources)?;
        }
        Ok(done)
    }

    fn undamaged<'f>(&self, file: Option<&'f SummaryFile>) -> Option<&'f SummaryFile> {
        file.filter(|it| !self.view.record.damaged.contains_key(&it.path))
    }

    /// Updates one week; returns the new hash by which its month knows it, or `None` if its file
    /// cannot be updated now.
    fn update_week(
        &mut self,
        week: Period,
        file: &SummaryFile,
    ) -> Result<Option<String>, JobFailure> {
        let inventory = &self.view.inventory;
        let of_week: Vec<&Stem> = self
            .changed
            .keys()
            .filter(|it| !it.is_summary())
            .filter(|it| Period::containing(Grain::Week, it.date()) == week)
            .collect();
        let only_moved = |stem: &&Stem| {
            self.changed[*stem].only_moved()
                && self.names(file, stem, self.known.get(*stem).map(|it| it.hash))
        };
        let sources: BTreeMap<String, String> = if of_week.iter().all(only_moved) {
            let hash = |stem: &&Stem| inventory.logs[*stem].input_hash.hex16();
            of_week.iter().map(|it| (it.to_string(), hash(it))).collect()
        } else {
            BTreeMap::new()
        };
        let body_hash = self.update_summary(week, file, &sources)?;
        Ok(body_hash.map(|it| inventory.rules.summary_input_hash(week, &it)))
    }

    /// Returns which version of a log the citations of a week or month are about.
    fn cited_version(&self, file: &SummaryFile, period: Period, stem: &Stem) -> CitedVersion {
        if period.grain() == Grain::Week {
            return self.version_named_by(file, stem);
        }
        let weekly = &self.view.inventory.weekly;
        let week =
            stem.summary_period().unwrap_or_else(|| Period::containing(Grain::Week, stem.date()));
        let named = file.header.as_ref().and_then(|it| it.sources.get(&week.to_string()));
        match weekly.get(&week).filter(|it| !it.is_mixed) {
            Some(below) if named == Some(&self.input_hash_of_week(week, below)) => {
                if stem.is_summary() {
                    CitedVersion::Present
                } else {
                    self.version_named_by(below, stem)
                }
            }
            _ => self.other_version(&file.path),
        }
    }

    /// Returns which version of a log a week is about, by the source that it names.
    fn version_named_by(&self, file: &SummaryFile, stem: &Stem) -> CitedVersion {
        let inventory = &self.view.inventory;
        if self.names(file, stem, inventory.logs.get(stem).map(|it| it.hash)) {
            return CitedVersion::Present;
        }
        let is_recorded = self.names(file, stem, self.known.get(stem).map(|it| it.hash));
        match self.other_version(&file.path) {
            CitedVersion::Unknown if is_recorded => CitedVersion::Probable,
            version => version,
        }
    }

    /// Returns whether a week names a log with this hash as a source.
    fn names(&self, file: &SummaryFile, stem: &Stem, hash: Option<ContentHash>) -> bool {
        let rules = &self.view.inventory.rules;
        let named = file.header.as_ref().and_then(|it| it.sources.get(stem.as_str()));
        named.is_some() && named == hash.map(|it| rules.input_hash(stem, it).hex16()).as_ref()
    }

    /// Returns which version a file is about that names no known one: if nobody else wrote it, its
    /// citations were updated since.
    fn other_version(&self, path: &str) -> CitedVersion {
        if self.external.contains(path) { CitedVersion::Unknown } else { CitedVersion::Recorded }
    }

    fn input_hash_of_week(&self, week: Period, file: &SummaryFile) -> String {
        self.view.inventory.rules.summary_input_hash(week, &file.body_hash)
    }

    /// Updates the citations of one file and the hashes of its sources; returns the new hash of the
    /// body, or `None` if the file cannot be updated now.
    fn update_summary(
        &mut self,
        period: Period,
        file: &SummaryFile,
        sources: &BTreeMap<String, String>,
    ) -> Result<Option<String>, JobFailure> {
        let text = self.vault.read_text(&file.path)?;
        let Some(old) = text.filter(|it| ContentHash::of(it) == file.hash) else { return Ok(None) };
        let Ok(mut summary) = Summary::parse(period, &old) else { return Ok(None) };
        let Some(header) = &mut summary.header else { return Ok(None) };
        // An older form alone is no reason to write.
        let mut any = false;
        for (name, hash) in sources {
            any |= header.sources.insert(name.clone(), hash.clone()).as_ref() != Some(hash);
        }
        let is_mixed = summary.is_mixed();
        let recorded_as = |it: &SummaryBlock| it.item().map(|it| summary.recorded_as(it));
        let recorded: Vec<_> = summary.blocks.iter().map(recorded_as).collect();
        let version_of = |i: usize, stem: &Stem| match recorded[i] {
            Some(RecordedAs::OtherCitation) => CitedVersion::Unknown,
            Some(RecordedAs::OtherWords) if is_mixed => {
                match self.cited_version(file, period, stem) {
                    CitedVersion::Present => CitedVersion::Probable,
                    version => version,
                }
            }
            _ => self.cited_version(file, period, stem),
        };
        any |= update_bullets(&mut summary, self.changed, &version_of);
        if any {
            summary.accept_citations(&|it| it.files().all(|it| self.changed.contains_key(it.0)));
            let text = summary.print();
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

/// Updates the citations of bullets to the present lines of changed files. `version_of` says for
/// the block with an index which version of a file it cites. Returns whether any differs.
pub(crate) fn update_bullets(
    summary: &mut Summary,
    changed: &ChangedFiles,
    version_of: &dyn Fn(usize, &Stem) -> CitedVersion,
) -> bool {
    let mut any = false;
    for (i, block) in summary.blocks.iter_mut().enumerate() {
        let SummaryBlock::Bullet(item, raw) = block else { continue };
        let Some(citation) = &item.citation else { continue };
        let version_of = |stem: &Stem| version_of(i, stem);
        let moved = present_citation(changed, citation, &item.text, &version_of);
        if moved != *citation {
            *raw = replace_citation(raw, &moved);
            *item = Item { text: item.text.clone(), citation: Some(moved) };
            any = true;
        }
    }
    any
}

/// Returns a person's memory with the sources of `moved`; `None` if its sources are spelled in
/// another way than ours, so that it is left alone.
pub(crate) fn text_with_sources(old: &str, moved: &TypedMemory) -> Option<String> {
    if moved.recorded_body.is_some() {
        // The sources are in the record; in the visible text only citations may have moved.
        let (visible, _) = joined::split(old);
        let body_at = frontmatter::split(visible).body_at;
        return Some(moved.with_record(&[&visible[..body_at], &moved.body].concat()));
    }
    let text = replace_sources(old, &moved.print());
    let read = TypedMemory::parse(&moved.file_name, &text);
    (read.ok().as_ref() == Some(moved)).then_some(text)
}

/// Returns the week or month of the file at a path.
pub(crate) fn period_of_path(path: &str) -> Option<Period> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Returns a memory with its present sources; `None` if they are the same.
pub(crate) fn memory_with_present_sources(
    changed: &ChangedFiles,
    memory: &TypedMemory,
) -> Option<TypedMemory> {
    let cited: Vec<CitedLine> =
        memory.sources.iter().map(|(at, hash)| (at.clone(), Some(hash.clone()))).collect();
    if !cited.iter().any(|(at, _)| changed.contains_key(&at.stem)) {
        return None;
    }
    let words = memory_text(memory);
    let found = present_sources(changed, &cited, &words, CitedVersion::Recorded);
    let hashed = |(at, hash): CitedLine| Some((at, hash?));
    let sources: Vec<_> = found.into_iter().filter_map(hashed).collect();
    (sources != memory.sources).then(|| with_set_sources(memory, sources))
}

/// Returns a memory with these sources (see [`TypedMemory::set_sources`]).
pub(crate) fn with_set_sources(
    memory: &TypedMemory,
    sources: Vec<(Address, String)>,
) -> TypedMemory {
    let mut moved = memory.clone();
    moved.set_sources(sources);
    moved
}

/// Returns the present sources of an entry of `WISDOM.md`; `None` if it cites no changed file.
pub(crate) fn entry_sources(
    changed: &ChangedFiles,
    entry: &WisdomEntry,
    mark: &WisdomEntryMeta,
    version: CitedVersion,
) -> Option<Vec<CitedLine>> {
    if !mark.sources.files().any(|(stem, _)| changed.contains_key(stem)) {
        return None;
    }
    let hash = |at: &Address| mark.lines.get(at).cloned();
    let cited: Vec<CitedLine> =
        mark.sources.addresses().map(|at| (at.clone(), hash(&at))).collect();
    Some(present_sources(changed, &cited, &entry.sentences(), version))
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

/// Replaces the citation at the end of a bullet; its words stay byte for byte.
pub(crate) fn replace_citation(raw: &str, citation: &Citation) -> String {
    let cut = raw.rfind(']').and_then(|close| Some((raw[..close].rfind('[')?, close)));
    match cut {
        Some((open, close)) => format!("{}{citation}{}", &raw[..=open], &raw[close..]),
        None => raw.to_owned(),
    }
}
