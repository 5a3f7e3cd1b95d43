//! Updates the citations of an older text to the current positions of their lines.
//!
//! The text cites lines of other files as they were in its time. Relocated lines are followed as a
//! run would have done: from the version of the log in the history to the recorded log.

use std::collections::{BTreeMap, BTreeSet};

use super::preview::UndoPreview;
use crate::compaction::{
    journal::records,
    reconcile::{
        changed_lines::{ChangedFiles, ChangedLines, CitedVersion, PresentLines},
        citations::{
            entry_sources, memory_with_present_sources, period_of_path, replace_citation,
            text_with_sources, update_bullets, user_bullets,
        },
    },
};
use crate::{
    memory::{
        address::{Citation, Stem},
        document::{Summary, SummaryBlock, SummaryHeader},
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy,
    store::{
        db::lineage::{LineageError, history::VersionId, record::LogRecord},
        fs::layout::FileKind,
    },
};

/// The hashes by which a file names its sources: before and now.
pub(super) type SourceHashChanges = BTreeMap<String, (String, String)>;

/// The logs and the cited summaries as they will be.
#[derive(Debug, Default)]
pub(super) struct PresentFiles {
    /// The lines of each.
    pub(super) recorded: BTreeMap<Stem, LogRecord>,
    /// The texts of summaries that are restored.
    pub(super) restored: BTreeMap<Stem, String>,
}

impl UndoPreview<'_> {
    /// Returns the text of a version with updated citations; `None` if none changed. `current` is
    /// the text that it replaces, and `weeks` are the body hashes of weeks that are restored at the
    /// same time and changed the same way.
    pub(super) fn update_citations(
        &self,
        path: &str,
        kind: FileKind,
        [text, current]: [&str; 2],
        version: VersionId,
        present: &PresentFiles,
        weeks: &SourceHashChanges,
    ) -> Result<Option<String>, LineageError> {
        let mut changed = ChangedFiles::new();
        let mut renames = weeks.clone();
        // A version of a log may have been pruned or forgotten.
        let mut unknown = BTreeSet::new();
        for stem in self.source_stems(path, text) {
            let Some(now) = present.recorded.get(&stem) else { continue };
            let then = self.log_as_of(&stem, version)?;
            if then.is_none() {
                unknown.insert(stem.clone());
            }
            let lines = self.present_lines(&stem, &present.restored);
            let lines = ChangedLines::between(then.as_ref().unwrap_or(now), now, lines);
            let then = then.filter(|it| it.hash != now.hash);
            if let Some(then) = then.filter(|_| lines.only_moved() && !stem.is_summary()) {
                renames.insert(stem.to_string(), (then.hash.hex16(), now.hash.hex16()));
            }
            changed.insert(stem, lines);
        }
        if changed.is_empty() && renames.is_empty() {
            return Ok(None);
        }
        let followed = match kind {
            FileKind::Weekly | FileKind::Monthly => period_of_path(path)
                .and_then(|it| update_summary(it, [text, current], &changed, &renames, &unknown)),
            FileKind::Memory => update_memory(path, text, &changed),
            FileKind::Wisdom => update_wisdom(text, &changed),
            _ => None,
        };
        Ok(followed.filter(|it| it != text))
    }

    /// Returns the lines of a log as it is, or of a summary as it will be.
    fn present_lines(&self, stem: &Stem, restored: &BTreeMap<Stem, String>) -> PresentLines {
        if stem.is_summary() {
            let read = || self.vault.read_text(&self.vault.layout().source_path(stem)).ok()?;
            let text = restored.get(stem).cloned().or_else(read).unwrap_or_default();
            return PresentLines::of_summary(stem, &text);
        }
        let log = self.vault.read_log(stem).ok().flatten();
        let log = log.map(|it| privacy::sanitize(&it, &self.view.inventory.rules));
        log.as_ref().map(PresentLines::of_log).unwrap_or_default()
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
    [text, current]: [&str; 2],
    changed: &ChangedFiles,
    renames: &SourceHashChanges,
    unknown: &BTreeSet<Stem>,
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
    // A file that was due when it was written again cites the lines of an earlier time, except where
    // people wrote. Without a model, a bullet has the words of its lines.
    let is_extract = header.engine.starts_with("extractive");
    let theirs = user_bullets(&summary);
    let before = summary.blocks.clone();
    let current = Summary::parse(period, current).ok();
    let kept = take_citations(&mut summary, current.as_ref(), unknown);
    any |= summary.blocks != before;
    let version_of = |i: usize, stem: &Stem| {
        if kept.contains(&i) {
            CitedVersion::Present
        } else if unknown.contains(stem) || (is_extract && !theirs.contains(&i)) {
            CitedVersion::Unknown
        } else {
            // An older copy of the database may have recorded another version.
            CitedVersion::Probable
        }
    };
    any |= update_bullets(&mut summary, changed, &version_of);
    any.then(|| summary.print())
}

/// Gives bullets that cite a log of which no version is kept the citations of the same bullets in the
/// present text: the words of a person need not be those of the lines. Returns their blocks.
fn take_citations(
    summary: &mut Summary,
    current: Option<&Summary>,
    unknown: &BTreeSet<Stem>,
) -> BTreeSet<usize> {
    let present = current.into_iter().flat_map(|it| &it.blocks).filter_map(SummaryBlock::item);
    let mut by_text: BTreeMap<&str, Option<&Citation>> = BTreeMap::new();
    for item in present {
        // Of two bullets with the same words nobody knows which one this was.
        let is_second = by_text.contains_key(item.text.as_str());
        by_text.insert(&item.text, item.citation.as_ref().filter(|_| !is_second));
    }
    let mut taken = BTreeSet::new();
    for (i, block) in summary.blocks.iter_mut().enumerate() {
        let SummaryBlock::Bullet(item, raw) = block else { continue };
        let is_unknown = |it: &Citation| it.files().any(|(stem, _)| unknown.contains(stem));
        if !item.citation.as_ref().is_some_and(is_unknown) {
            continue;
        }
        let Some(Some(citation)) = by_text.get(item.text.as_str()) else { continue };
        *raw = replace_citation(raw, citation);
        item.citation = Some((*citation).clone());
        taken.insert(i);
    }
    taken
}

fn update_memory(path: &str, text: &str, changed: &ChangedFiles) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let memory = TypedMemory::parse(name.as_ref(), text).ok()?;
    let moved = memory_with_present_sources(changed, &memory)?;
    if memory.is_managed() { Some(moved.print()) } else { text_with_sources(text, &moved) }
}

fn update_wisdom(text: &str, changed: &ChangedFiles) -> Option<String> {
    let mut file = WisdomFile::parse(text);
    let any = file.update_all_sources(&|entry, mark| {
        entry_sources(changed, entry, mark, CitedVersion::Recorded)
    });
    any.then(|| file.print())
}
