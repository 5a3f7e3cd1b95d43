//! Updates the citations of an older text to the current positions of their lines.
//!
//! The text cites lines of other files as they were in its time. Relocated lines are followed as a
//! run would have done: from the version of the log in the history to the recorded log.

use std::collections::{BTreeMap, BTreeSet};

use super::preview::UndoPreview;
use crate::compaction::{
    journal::records,
    reconcile::citations::{
        LineMaps, map_lines, period_of_path, remap_citation, remap_wisdom_sources, replace_citation,
    },
};
use crate::{
    memory::{
        address::{Address, Stem},
        document::{Summary, SummaryBlock, SummaryHeader},
        item::Item,
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::{WisdomEntryMeta, WisdomFile},
    },
    privacy,
    store::{
        db::lineage::{LineageError, history::VersionId, record::LogRecord},
        fs::layout::FileKind,
    },
};

/// The hashes by which a file names its sources: before and now.
pub(super) type SourceHashChanges = BTreeMap<String, (String, String)>;

impl UndoPreview<'_> {
    /// Returns the text of a version with updated citations; `None` if none changed. `weeks` are
    /// the body hashes of weeks that are restored at the same time and changed the same way.
    pub(super) fn update_citations(
        &self,
        path: &str,
        kind: FileKind,
        text: &str,
        version: VersionId,
        recorded_logs: &BTreeMap<Stem, LogRecord>,
        weeks: &SourceHashChanges,
    ) -> Result<Option<String>, LineageError> {
        let mut changed = LineMaps::new();
        let mut older = BTreeMap::new();
        let mut renames = weeks.clone();
        for stem in self.source_stems(path, text) {
            let Some(now) = recorded_logs.get(&stem) else { continue };
            let Some(then) = self.log_as_of(&stem, version)?.filter(|it| it.hash != now.hash)
            else {
                continue;
            };
            let moves = map_lines(&then, now);
            if moves.only_moved() && !stem.is_summary() {
                renames.insert(stem.to_string(), (then.hash.hex16(), now.hash.hex16()));
            }
            changed.insert(stem.clone(), moves);
            older.insert(stem, then);
        }
        if changed.is_empty() && renames.is_empty() {
            return Ok(None);
        }
        let followed = match kind {
            FileKind::Weekly | FileKind::Monthly => period_of_path(path)
                .and_then(|period| update_summary(period, text, &changed, &renames)),
            FileKind::Memory => update_memory(path, text, &changed),
            FileKind::Wisdom => update_wisdom(text, &older, &changed),
            _ => None,
        };
        Ok(followed.filter(|it| it != text))
    }

    /// Returns the files that a text cites or names as its sources.
    fn source_stems(&self, path: &str, text: &str) -> BTreeSet<Stem> {
        let document = records::of_path(self.vault.layout(), path, text);
        let items = document.into_iter().flat_map(|it| it.items);
        let cited = items.filter_map(|it| it.citation);
        let mut stems: BTreeSet<Stem> = cited
            .flat_map(|it| it.files().map(|(stem, _)| stem.clone()).collect::<Vec<_>>())
            .collect();
        let header =
            period_of_path(path).and_then(|it| SummaryHeader::read(it, text).ok().flatten());
        let named = header.into_iter().flat_map(|it| it.sources.into_keys());
        stems.extend(named.filter_map(|it| it.parse::<Stem>().ok()));
        stems
    }

    /// Returns a log, or a summary that is cited itself, as recorded when a version was written.
    fn log_as_of(
        &self,
        stem: &Stem,
        version: VersionId,
    ) -> Result<Option<LogRecord>, LineageError> {
        let path = self.vault.layout().source_path(stem);
        let versions = self.lineage.versions_of(&path)?;
        let then = versions.iter().rev().find(|it| it.id <= version);
        let Some(hash) = then.and_then(|it| it.hash) else { return Ok(None) };
        let Some(bytes) = self.lineage.content(hash)? else { return Ok(None) };
        if stem.is_summary() {
            let text = String::from_utf8(bytes).ok();
            return Ok(text.and_then(|it| records::lines_of_summary(stem, &path, &it)));
        }
        let log = DailyLog::parse(stem.clone(), &bytes).ok();
        // Hashes are of the raw lines, whatever the sanitized view shows of them.
        let rules = privacy::PrivacyRules::default();
        Ok(log.map(|it| LogRecord::of(&privacy::sanitize(&it, &rules), path)))
    }
}

fn update_summary(
    period: Period,
    text: &str,
    changed: &LineMaps,
    renames: &SourceHashChanges,
) -> Option<String> {
    let mut summary = Summary::parse(period, text).ok()?;
    let header = summary.header.as_mut()?;
    let mut any = false;
    for (name, hash) in &mut header.sources {
        if let Some((_, now)) = renames.get(name).filter(|it| it.0 == *hash) {
            hash.clone_from(now);
            any = true;
        }
    }
    for block in &mut summary.blocks {
        let SummaryBlock::Bullet(item, raw) = block else { continue };
        let Some(citation) = &item.citation else { continue };
        let moved = remap_citation(changed, citation);
        if moved != *citation {
            *raw = replace_citation(raw, &moved);
            *item = Item { text: item.text.clone(), citation: Some(moved) };
            any = true;
        }
    }
    any.then(|| summary.print())
}

fn update_memory(path: &str, text: &str, changed: &LineMaps) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let mut memory =
        TypedMemory::parse(name.as_ref(), text).ok().filter(TypedMemory::is_managed)?;
    let before = memory.sources.clone();
    for (Address { stem, line }, _) in &mut memory.sources {
        *line = changed.get(stem).map_or(*line, |it| it.line_or_position(*line));
    }
    (memory.sources != before).then(|| memory.print())
}

fn update_wisdom(
    text: &str,
    older: &BTreeMap<Stem, LogRecord>,
    changed: &LineMaps,
) -> Option<String> {
    let mut file = WisdomFile::parse(text);
    let marks: Vec<WisdomEntryMeta> = file.entries().filter_map(|it| it.meta.clone()).collect();
    let mut any = false;
    for mark in marks {
        if mark.sources.files().any(|(stem, _)| changed.contains_key(stem)) {
            any |= file.set_sources(&mark.id, &remap_wisdom_sources(older, changed, &mark));
        }
    }
    any.then(|| file.print())
}
