//! An older text of a generated file, with its citations where the lines stand now.
//!
//! The text cites lines of other files as they were when it stood there. What has moved since is followed as
//! a pass would have done: from the log as history kept it to the log as it is recorded.

use std::collections::{BTreeMap, BTreeSet};

use super::foresight::Foresight;
use crate::{
    compaction::{
        observe::{Changed, follow, follow_lines, moves, period_of, recite},
        records,
    },
    memory::{
        address::{Address, Stem},
        document::{Block, Summary, SummaryHeader},
        item::Item,
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::{WisdomFile, WisdomMark},
    },
    privacy,
    store::{
        layout::FileKind,
        lineage::{LineageError, history::VersionId, record::LogRecord},
    },
};

/// Hashes by which a file names its sources, first as they were and then as they are.
pub(super) type Renames = BTreeMap<String, (String, String)>;

impl Foresight<'_> {
    /// Returns the text of a version with its citations where the lines stand now. `weeks` are the
    /// bodies of weeks that are restored too and were changed by the same.
    pub(super) fn follow(
        &self,
        path: &str,
        kind: FileKind,
        text: &str,
        version: VersionId,
        known: &BTreeMap<Stem, LogRecord>,
        weeks: &Renames,
    ) -> Result<Option<String>, LineageError> {
        let mut changed = Changed::new();
        let mut older = BTreeMap::new();
        let mut renames = weeks.clone();
        for stem in self.sources(path, text) {
            let Some(now) = known.get(&stem) else { continue };
            let Some(then) = self.log_at(&stem, version)?.filter(|it| it.hash != now.hash) else {
                continue;
            };
            let moves = moves(&then, now);
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
            FileKind::Weekly | FileKind::Monthly => {
                period_of(path).and_then(|period| summary(period, text, &changed, &renames))
            }
            FileKind::Memory => memory(path, text, &changed),
            FileKind::Wisdom => wisdom(text, &older, &changed),
            _ => None,
        };
        Ok(followed.filter(|it| it != text))
    }

    /// Returns the files that a text cites or names as its sources.
    fn sources(&self, path: &str, text: &str) -> BTreeSet<Stem> {
        let document = records::of_path(self.vault.layout(), path, text);
        let items = document.into_iter().flat_map(|it| it.items);
        let cited = items.filter_map(|it| it.citation);
        let mut stems: BTreeSet<Stem> = cited
            .flat_map(|it| it.files().map(|(stem, _)| stem.clone()).collect::<Vec<_>>())
            .collect();
        let header = period_of(path).and_then(|it| SummaryHeader::read(it, text).ok().flatten());
        let named = header.into_iter().flat_map(|it| it.sources.into_keys());
        stems.extend(named.filter_map(|it| it.parse::<Stem>().ok()));
        stems
    }

    /// Returns a log, or a file that is cited itself, as it was known when a version came about.
    fn log_at(&self, stem: &Stem, version: VersionId) -> Result<Option<LogRecord>, LineageError> {
        let path = self.vault.layout().source(stem);
        let versions = self.lineage.versions_of(&path)?;
        let then = versions.iter().rev().find(|it| it.id <= version);
        let Some(hash) = then.and_then(|it| it.hash) else { return Ok(None) };
        let Some(bytes) = self.lineage.content(hash)? else { return Ok(None) };
        if stem.is_summary() {
            let text = String::from_utf8(bytes).ok();
            return Ok(text.and_then(|it| records::lines_of_summary(stem, &path, &it)));
        }
        let log = DailyLog::parse(stem.clone(), &bytes).ok();
        // Hashes are of the raw lines, whatever may be seen of them.
        let rules = privacy::Rules::default();
        Ok(log.map(|it| LogRecord::of(&privacy::serve(&it, &rules), path)))
    }
}

fn summary(period: Period, text: &str, changed: &Changed, renames: &Renames) -> Option<String> {
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
        let Block::Bullet(item, raw) = block else { continue };
        let Some(citation) = &item.citation else { continue };
        let moved = follow(changed, citation);
        if moved != *citation {
            *raw = recite(raw, &moved);
            *item = Item { text: item.text.clone(), citation: Some(moved) };
            any = true;
        }
    }
    any.then(|| summary.print())
}

fn memory(path: &str, text: &str, changed: &Changed) -> Option<String> {
    let name = path.rsplit('/').next()?;
    let mut memory = TypedMemory::parse(name.as_ref(), text).ok().filter(TypedMemory::is_ours)?;
    let before = memory.sources.clone();
    for (Address { stem, line }, _) in &mut memory.sources {
        *line = changed.get(stem).map_or(*line, |it| it.place(*line));
    }
    (memory.sources != before).then(|| memory.print())
}

fn wisdom(text: &str, older: &BTreeMap<Stem, LogRecord>, changed: &Changed) -> Option<String> {
    let mut file = WisdomFile::parse(text);
    let marks: Vec<WisdomMark> = file.entries().filter_map(|it| it.mark.clone()).collect();
    let mut any = false;
    for mark in marks {
        if mark.sources.files().any(|(stem, _)| changed.contains_key(stem)) {
            any |= file.readdress(&mark.id, &follow_lines(older, changed, &mark));
        }
    }
    any.then(|| file.print())
}
