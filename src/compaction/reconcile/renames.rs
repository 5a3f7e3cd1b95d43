//! Renamed logs: what was derived from them follows.
//!
//! A missing log and a new one with the same bytes are one log with another name, if nothing was
//! derived from the new one yet; the names and hashes in the weekly files show it, with the
//! database or without. Citations take the new name. If the week or month changes, bullets of ours
//! leave the file, since the job of the new one writes them from the same words; what a person
//! wrote there moves along, and what they deleted or had forgotten stays so.

use super::citations::{text_with_sources, with_set_sources};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};

use super::{
    ReconcileRun,
    citations::{replace_citation, user_bullets},
    line_moves::{CitationUpdate, CitationUpdater},
    stale,
};
use crate::compaction::{
    context::RunContext,
    error::{CompactionError, JobFailure},
    journal::{
        commit::{FileWrite, RecordedChanges},
        decision_file::DecisionFile,
        records,
    },
    plan,
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        decision::{Decision, DecisionKind, Decisions, Verdict},
        document::{Summary, SummaryBlock, SummaryHeader},
        hash::ContentHash,
        item::{Item, SummarySection, Tier},
        period::{Grain, Period},
        wisdom::WisdomFile,
    },
    privacy::{self, PrivacyRules},
    store::{
        db::lineage::{Lineage, LineageError, record::LogRecord},
        fs::{inventory::Inventory, vault::Vault},
    },
};

/// The reason in the receipt of a job that followed a renamed log.
const LOG_RENAMED: &str = "log renamed";

/// Old name to new one.
pub(crate) type LogRenames = BTreeMap<Stem, Stem>;

/// Finds renamed logs. `gone` are the missing ones, each with the first hex digits of its hash;
/// `is_new` says of a log whether nothing was derived from it yet.
fn match_renames(
    gone: &BTreeSet<(Stem, String)>,
    inventory: &Inventory,
    is_new: impl Fn(&Stem) -> bool,
) -> LogRenames {
    let mut new: BTreeMap<String, Vec<&Stem>> = BTreeMap::new();
    for (stem, file) in inventory.logs.iter().rev().filter(|(stem, _)| is_new(stem)) {
        new.entry(file.hash.hex16()).or_default().push(stem);
    }
    let mut renames = LogRenames::new();
    for (stem, hash) in gone {
        if !renames.contains_key(stem)
            && let Some(to) = new.get_mut(hash).and_then(Vec::pop)
        {
            renames.insert(stem.clone(), to.clone());
        }
    }
    renames
}

/// Finds renamed logs, by what the database and the weekly files record.
pub(crate) fn detect_renames(
    vault: &Vault,
    lineage: &Lineage,
    inventory: &Inventory,
) -> Result<LogRenames, LineageError> {
    let layout = vault.layout();
    let logs = lineage.logs()?;
    let mut gone: BTreeSet<(Stem, String)> =
        logs.into_iter().map(|(stem, it)| (stem, it.hash.hex16())).collect();
    let headers = inventory.weekly.values().filter_map(|it| it.header.as_ref());
    let named = headers.flat_map(|it| &it.sources);
    gone.extend(named.filter_map(|(name, hash)| Some((name.parse().ok()?, hash.clone()))));
    let is_taken = |stem: &Stem| {
        let archived = layout.archive_path(stem).is_some_and(|it| vault.exists(&it));
        archived || vault.exists(&layout.source_path(stem))
    };
    gone.retain(|(stem, _)| {
        let is_log = !stem.is_summary() && !stem.is_session();
        is_log && !inventory.logs.contains_key(stem) && !is_taken(stem)
    });
    if gone.is_empty() {
        return Ok(LogRenames::new());
    }
    let extracted = lineage.extracted_logs()?;
    Ok(match_renames(&gone, inventory, |stem| {
        let week = Period::containing(Grain::Week, stem.date());
        let header = inventory.weekly.get(&week).and_then(|it| it.header.as_ref());
        !header.is_some_and(|it| it.sources.contains_key(stem.as_str()))
            && !extracted.contains_key(stem)
    }))
}

/// Returns the period of the size of `like` whose file contains a log.
fn period_holding(stem: &Stem, like: Period) -> Option<Period> {
    let week = Period::containing(Grain::Week, stem.date());
    if like.grain() == Grain::Week { Some(week) } else { week.parent() }
}

fn rename_citation(renames: &LogRenames, citation: &Citation) -> Citation {
    let named = |at: Address| {
        let stem = renames.get(&at.stem).unwrap_or(&at.stem).clone();
        Address { stem, line: at.line }
    };
    let addresses: Vec<Address> = citation.addresses().map(named).collect();
    Citation::from_addresses(&addresses).unwrap_or_else(|| citation.clone())
}

/// Returns the file that a bullet moves to with all its logs; `None` if it stays.
fn destination(renames: &LogRenames, citation: &Citation, from: Period) -> Option<Period> {
    let mut homes = citation.files().map(|(stem, _)| period_holding(renames.get(stem)?, from));
    let first = homes.next()??;
    (first != from && homes.all(|it| it == Some(first))).then_some(first)
}

/// A weekly or monthly file whose sources were renamed.
struct SummaryUpdate {
    path: String,
    summary: Summary,
    old_text: Option<String>,
    gains: bool,
    loses: bool,
}

/// What a person wrote, on its way to another file.
struct MovedBlocks {
    to: Period,
    section: SummarySection,
    blocks: Vec<SummaryBlock>,
}

impl SummaryUpdate {
    /// Returns the text before the changes, in today's form: an older form alone is no reason to write.
    fn text_before(&self) -> Option<String> {
        let read = Summary::parse(self.summary.period, self.old_text.as_deref()?);
        read.ok().map(|it| it.print())
    }

    fn header(&mut self) -> &mut SummaryHeader {
        self.summary.header.get_or_insert_default()
    }

    /// Applies the new names; returns what moves to other files.
    fn apply_renames(
        &mut self,
        renames: &LogRenames,
        taken: &BTreeSet<Period>,
    ) -> Vec<MovedBlocks> {
        let period = self.summary.period;
        let kept = user_bullets(&self.summary);
        let mut moved_blocks: Vec<MovedBlocks> = Vec::new();
        let mut left = Vec::new();
        let mut section = None;
        let mut goes_along = false;
        for (i, mut block) in std::mem::take(&mut self.summary.blocks).into_iter().enumerate() {
            if block.is_heading() {
                section = if let SummaryBlock::Section(it, _) = &block { Some(*it) } else { None };
            }
            let is_indented = block.raw().starts_with([' ', '\t']);
            if let Some(moved) = moved_blocks.last_mut().filter(|_| goes_along && is_indented) {
                moved.blocks.push(block);
                continue;
            }
            goes_along = false;
            let SummaryBlock::Bullet(item, raw) = &mut block else {
                left.push(block);
                continue;
            };
            let Some(cited) = item.citation.clone() else {
                left.push(block);
                continue;
            };
            let hash = item.hash();
            let citation = rename_citation(renames, &cited);
            if citation != cited {
                *raw = replace_citation(raw, &citation);
                *item = Item { text: item.text.clone(), citation: Some(citation) };
            }
            let to = destination(renames, &cited, period).filter(|it| !taken.contains(it));
            match (to, section) {
                (Some(to), Some(section)) if kept.contains(&i) => {
                    moved_blocks.push(MovedBlocks { to, section, blocks: vec![block] });
                    goes_along = true;
                }
                (Some(_), _) if !kept.contains(&i) => {
                    self.loses = true;
                    let items = &mut self.header().items;
                    if let Some(at) = items.iter().position(|it| *it == hash) {
                        // Otherwise it would count as deleted by a person.
                        items.remove(at);
                    }
                }
                _ => left.push(block),
            }
        }
        self.loses |= !moved_blocks.is_empty();
        self.summary.blocks = if self.loses { without_empty_sections(left) } else { left };
        moved_blocks
    }

    /// Adds what a person wrote in another file, at the end of its section.
    fn insert_blocks(&mut self, moved: MovedBlocks) {
        let is_here = |block: &SummaryBlock| self.summary.blocks.iter().any(|it| it == block);
        if moved.blocks.iter().all(is_here) {
            return;
        }
        self.gains = true;
        let blocks = &mut self.summary.blocks;
        let heading = blocks
            .iter()
            .position(|it| matches!(it, SummaryBlock::Section(s, _) if *s == moved.section));
        let at = if let Some(heading) = heading {
            let next = blocks[heading + 1..].iter().position(SummaryBlock::is_heading);
            let end = next.map_or(blocks.len(), |it| heading + 1 + it);
            let blank = |it: &SummaryBlock| it.item().is_none() && it.raw().trim().is_empty();
            let bullets = blocks[heading + 1..end].iter().rposition(|it| !blank(it));
            bullets.map_or(heading + 1, |it| heading + 2 + it)
        } else {
            blocks.push(SummaryBlock::Other("\n".to_owned()));
            let title = format!("### {}\n", moved.section.title());
            blocks.push(SummaryBlock::Section(moved.section, title));
            blocks.len()
        };
        if let Some(before) = at.checked_sub(1).and_then(|it| blocks.get_mut(it))
            && !before.raw().ends_with('\n')
        {
            let (SummaryBlock::Section(_, raw)
            | SummaryBlock::Bullet(_, raw)
            | SummaryBlock::Other(raw)) = before;
            raw.push('\n');
        }
        blocks.splice(at..at, moved.blocks);
    }

    /// Renames the sources, and drops those that moved to another file.
    fn rename_sources(&mut self, renames: &LogRenames, source: &dyn Fn(&Stem) -> String) {
        let period = self.summary.period;
        let header = self.header();
        for (from, to) in renames {
            let (old, stays) = (from.as_str(), period_holding(to, period) == Some(period));
            header.missing_sources.retain(|it| it != old);
            let Some(hash) = header.sources.remove(old) else { continue };
            let path = source(from);
            header.pointers.retain(|it| *it != path);
            if !stays {
                continue;
            }
            header.sources.insert(to.to_string(), hash);
            header.pointers.push(source(to));
            header.pointers.sort();
            let day = to.date().to_string();
            let alone = header
                .sources
                .keys()
                .filter_map(|it| it.parse::<Stem>().ok())
                .all(|it| it == *to || it.date() != to.date());
            if header.extracted.contains(&from.date().to_string())
                && alone
                && !header.extracted.contains(&day)
            {
                header.extracted.push(day);
                header.extracted.sort();
            }
        }
        let days: BTreeSet<String> = header
            .sources
            .keys()
            .filter_map(|it| Some(it.parse::<Stem>().ok()?.date().to_string()))
            .collect();
        header.extracted.retain(|it| days.contains(it));
    }

    /// Returns whether the file is empty and no job will fill it.
    fn is_empty(&self) -> bool {
        let title = Summary::title(self.summary.period);
        let says_nothing = |it: &SummaryBlock| match it {
            SummaryBlock::Section(..) => true,
            SummaryBlock::Bullet(..) => false,
            SummaryBlock::Other(raw) => raw.trim().is_empty() || raw.trim() == title,
        };
        self.loses
            && self.summary.header.as_ref().is_some_and(|it| it.sources.is_empty())
            && self.summary.blocks.iter().all(says_nothing)
    }

    fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.summary.print())
    }
}

fn without_empty_sections(blocks: Vec<SummaryBlock>) -> Vec<SummaryBlock> {
    let mut left: Vec<SummaryBlock> = Vec::new();
    for block in blocks.into_iter().rev() {
        let blank = |it: &&SummaryBlock| it.item().is_none() && it.raw().trim().is_empty();
        let next = left.iter().rev().find(|it| !blank(it));
        let empty =
            matches!(block, SummaryBlock::Section(..)) && next.is_none_or(SummaryBlock::is_heading);
        if empty {
            // The blank line after it is removed, too.
            while left.last().is_some_and(|it| blank(&it)) {
                left.pop();
            }
        } else {
            left.push(block);
        }
    }
    // The file does not end with a blank line either.
    while left.first().is_some_and(|it| it.item().is_none() && it.raw().trim().is_empty()) {
        left.remove(0);
    }
    left.reverse();
    left
}

pub(crate) struct RenameUpdater<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> RenameUpdater<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Updates what was derived from renamed logs; returns whether any file was written.
    pub(crate) fn update_renamed_citations(
        &mut self,
        reconcile_run: &mut ReconcileRun<'_>,
        view: &RootSnapshot,
    ) -> Result<bool, JobFailure> {
        if !view.record.damaged.is_empty() {
            return Ok(false); // The files still show the old names when that is decided.
        }
        let renames = self.active_renames(view)?;
        let Some((_, first)) = renames.first_key_value() else { return Ok(false) };
        let inventory = &view.inventory;
        let decisions = self.read_decisions()?;
        DecisionFile::new(self.context).append(&self.copy_decisions(
            &renames,
            &decisions,
            reconcile_run.now,
        )?)?;
        let mut recorded = RecordedChanges::default();
        let mut files = self.rename_in_summaries(inventory, &renames)?;
        self.rename_in_memories_and_wisdom(inventory, &renames, &mut files)?;
        let layout = self.context.vault.layout().clone();
        for file in &files {
            match &file.text {
                Some(text) => {
                    recorded.documents.extend(records::of_path(&layout, &file.path, text));
                }
                None => recorded.removed.push(file.path.clone()),
            }
        }
        let known = self.context.lineage.log_paths()?;
        let extracted = self.context.lineage.extracted_logs()?;
        for (from, to) in &renames {
            if let Some(path) = known.get(from) {
                recorded.external_changes.push((path.clone(), None));
                recorded.removed.push(path.clone());
            }
            let Some(log) = self.context.vault.read_log(to)? else { continue };
            let rules =
                PrivacyRules::new(Arc::clone(self.context.vault.policy()), &self.read_decisions()?);
            let sanitized = privacy::sanitize(&log, &rules);
            if extracted.get(from) == Some(&rules.input_hash(from, log.hash)) {
                recorded.extracted.push((to.clone(), sanitized.input_hash()));
            }
            recorded.logs.push(LogRecord::of(&sanitized, layout.source_path(to)));
        }
        let names: Vec<String> =
            renames.iter().map(|(from, to)| format!("{from} is now {to}")).collect();
        let update = CitationUpdate {
            what: "renamed",
            reason: format!("{LOG_RENAMED}: {}", names.join(", ")),
            period: Period::containing(Grain::Week, first.date()),
            logs: renames.values().collect(),
            id: ContentHash::of(format!("{renames:?}")),
            files,
            recorded,
        };
        CitationUpdater::new(self.context).record_citation_update(reconcile_run, view, update)
    }

    fn read_decisions(&self) -> Result<Decisions, JobFailure> {
        let text = self.context.vault.read_text(&self.context.vault.layout().decisions())?;
        Ok(text.map(|it| Decisions::parse(&it)).unwrap_or_default())
    }

    fn active_renames(&self, view: &RootSnapshot) -> Result<LogRenames, CompactionError> {
        let inventory = &view.inventory;
        let mut renames = detect_renames(self.context.vault, self.context.lineage, inventory)?;
        // If the job of its new week is refused, its words stay where they are.
        renames.retain(|from, to| {
            let [old, new] = [from, to].map(|it| Period::containing(Grain::Week, it.date()));
            let logs = inventory.logs_of(new);
            let inputs = logs.map(|(stem, it)| (stem.to_string(), it.input_hash.hex16())).collect();
            let summary_job = plan::fingerprint(Tier::Weekly, new, &inputs);
            old == new || !inventory.decisions.is_undone(summary_job)
        });
        Ok(renames)
    }

    /// Copies what people decided about lines under the old name to the new one.
    fn copy_decisions(
        &self,
        renames: &LogRenames,
        decisions: &Decisions,
        now: DateTime<Utc>,
    ) -> Result<Vec<Decision>, JobFailure> {
        let layout = self.context.vault.layout();
        let mut made = Vec::new();
        for (from, to) in renames {
            let Some(log) = self.context.vault.read_log(to)? else { continue };
            let sanitized = privacy::sanitize(
                &log,
                &PrivacyRules::new(Arc::clone(self.context.vault.policy()), decisions),
            );
            let mut decide = |what, path: &str, lines: Vec<&str>| {
                let hashes: BTreeSet<String> =
                    lines.into_iter().flat_map(|it| decisions.line_hashes(it)).collect();
                if !hashes.is_empty() {
                    let hashes = hashes.into_iter().collect();
                    made.push(Decision { at: now, what, path: path.to_owned(), hashes });
                }
            };
            for like in [Grain::Week, Grain::Month].map(|it| Period::containing(it, from.date())) {
                let (Some(old), Some(new)) = (period_holding(from, like), period_holding(to, like))
                else {
                    continue;
                };
                let (old, new) = (layout.summary(old), layout.summary(new));
                let lines = sanitized.lines().iter().map(privacy::SanitizedLine::text);
                let deleted = lines.filter(|it| {
                    old != new
                        && decisions.is_deleted(&old, [*it])
                        && !decisions.is_deleted(&new, [*it])
                });
                decide(DecisionKind::Deleted, &new, deleted.collect());
            }
            let lines = log.lines();
            let forgotten = lines.iter().map(|it| it.1).filter(|it| {
                decisions.is_forgotten(from.as_str(), it)
                    && !decisions.is_forgotten(to.as_str(), it)
            });
            decide(DecisionKind::Forgotten, to.as_str(), forgotten.collect());
            for (verdict, what) in [
                (Verdict::Accepted, DecisionKind::Accepted),
                (Verdict::Refused, DecisionKind::Refused),
            ] {
                let lines = lines.iter().map(|it| it.1);
                let said = lines.filter(|it| {
                    decisions.review_verdict(from.as_str(), it) == Some(verdict)
                        && decisions.review_verdict(to.as_str(), it) != Some(verdict)
                });
                decide(what, to.as_str(), said.collect());
            }
        }
        Ok(made)
    }

    /// Updates weeks and months. Files that gain text are written first, so that a crash leaves it
    /// in both.
    fn rename_in_summaries(
        &self,
        inventory: &Inventory,
        renames: &LogRenames,
    ) -> Result<Vec<FileWrite>, JobFailure> {
        let layout = self.context.vault.layout();
        let summaries = || inventory.weekly.iter().chain(&inventory.monthly);
        let taken: BTreeSet<Period> =
            summaries().filter(|(_, it)| it.header.is_none()).map(|(period, _)| *period).collect();
        let mut pages: BTreeMap<Period, SummaryUpdate> = BTreeMap::new();
        for (period, file) in summaries().filter(|(_, it)| it.header.is_some()) {
            let old_text = self.context.vault.read_text(&file.path)?;
            let Some(Ok(summary)) = old_text.as_deref().map(|it| Summary::parse(*period, it))
            else {
                continue;
            };
            let (gains, loses) = (false, false);
            let path = file.path.clone();
            pages.insert(*period, SummaryUpdate { path, summary, old_text, gains, loses });
        }
        let mut moved_blocks = Vec::new();
        for page in pages.values_mut() {
            moved_blocks.extend(page.apply_renames(renames, &taken));
            page.rename_sources(renames, &|stem| layout.source_path(stem));
        }
        for moved in moved_blocks {
            let page = pages.entry(moved.to).or_insert_with(|| SummaryUpdate {
                path: layout.summary(moved.to),
                // Its job is due when the period has closed.
                summary: Summary::from_draft(
                    moved.to,
                    SummaryHeader {
                        engine: self.context.engine.id().to_owned(),
                        partial: true,
                        ..SummaryHeader::default()
                    },
                    &[],
                ),
                old_text: None,
                gains: true,
                loses: false,
            });
            page.insert_blocks(moved);
        }
        let weeks: Vec<(Period, Option<String>)> = pages
            .iter()
            .filter(|(period, _)| period.grain() == Grain::Week)
            .filter(|(_, page)| !page.gains && (!page.loses || page.is_empty()))
            .map(|(period, page)| {
                let body = page.text().map(|_| page.summary.body_hash().hex16());
                let hash = body.map(|it| inventory.rules.summary_input_hash(*period, &it));
                (*period, hash)
            })
            .collect();
        for (week, now) in weeks {
            let Some(page) = week.parent().and_then(|it| pages.get_mut(&it)) else { continue };
            let before = inventory.weekly.get(&week).map(|it| &it.body_hash);
            let name = week.to_string();
            let header = page.header();
            if header.sources.get(&name) != before {
                continue; // It was due before, and stays so.
            }
            if let Some(hash) = now {
                header.sources.insert(name, hash);
            } else {
                header.sources.remove(&name);
                header.pointers.retain(|it| *it != layout.summary(week));
            }
        }
        let mut changed: Vec<SummaryUpdate> =
            pages.into_values().filter(|it| it.text() != it.text_before()).collect();
        changed.sort_by_key(|it| (!it.gains, it.loses));
        let file =
            |it: SummaryUpdate| FileWrite { text: it.text(), path: it.path, current: it.old_text };
        Ok(changed.into_iter().map(file).collect())
    }

    /// Updates typed memories and wisdom entries.
    fn rename_in_memories_and_wisdom(
        &self,
        inventory: &Inventory,
        renames: &LogRenames,
        files: &mut Vec<FileWrite>,
    ) -> Result<(), JobFailure> {
        let layout = self.context.vault.layout();
        let now_at = |at: &Address| {
            let stem = renames.get(&at.stem).unwrap_or(&at.stem).clone();
            Address { stem, line: at.line }
        };
        for memory in &inventory.memories {
            if !memory.sources.iter().any(|(at, _)| renames.contains_key(&at.stem)) {
                continue;
            }
            let path = layout.typed_memory(&memory.file_name.to_string_lossy());
            let Some(old) = self.context.vault.read_text(&path)? else { continue };
            let sources: Vec<(Address, String)> =
                memory.sources.iter().map(|(at, hash)| (now_at(at), hash.clone())).collect();
            let text = if memory.is_managed() {
                let sources: Vec<_> = sources.into_iter().map(|(at, it)| (at, Some(it))).collect();
                stale::with_sources(memory, &sources).print()
            } else {
                let moved = with_set_sources(memory, sources);
                let Some(text) = text_with_sources(&old, &moved) else { continue };
                text
            };
            files.push(FileWrite { path, text: Some(text), current: Some(old) });
        }
        let Some(old) = &inventory.wisdom else { return Ok(()) };
        let mut file = WisdomFile::parse(old);
        let any = file.update_all_sources(&|_, mark| {
            mark.sources.files().any(|(stem, _)| renames.contains_key(stem)).then(|| {
                let sources = mark.sources.addresses();
                sources.map(|at| (now_at(&at), mark.lines.get(&at).cloned())).collect()
            })
        });
        if any {
            let (path, text) = (layout.wisdom(), Some(file.print()));
            files.push(FileWrite { path, text, current: Some(old.clone()) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renames(pairs: &str) -> LogRenames {
        let pairs = pairs.split_whitespace().map(|it| it.split_once('>').unwrap());
        pairs.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).collect()
    }

    #[test]
    fn a_bullet_moves_only_with_all_its_logs() {
        let renames = renames("2026-03-10>2026-03-17 2026-03-11>2026-03-12");
        let week = "2026-W11".parse().unwrap();
        for (cited, goes) in [
            ("2026-03-10:1", Some("2026-W12")),
            ("2026-03-11:1", None),
            ("2026-03-10:1; 2026-03-11:2", None),
            ("2026-03-10:1; 2026-03-13:2", None),
            ("2026-03-13:2", None),
        ] {
            let found = destination(&renames, &cited.parse().unwrap(), week);
            assert_eq!(found.map(|it| it.to_string()).as_deref(), goes, "{cited}");
        }
        let cited = "2026-03-10:1; 2026-03-13:2".parse().unwrap();
        assert_eq!(rename_citation(&renames, &cited).to_string(), "2026-03-13:2; 2026-03-17:1");
    }

    #[test]
    fn only_sections_without_a_bullet_are_removed() {
        let week = "2026-W11".parse().unwrap();
        let text = "\n# Week 2026-W11\n\n### Decisions\n\n### Context\n- one [2026-03-10:1]\n";
        let blocks = Summary::parse(week, text).unwrap().blocks;
        let left: String = without_empty_sections(blocks).iter().map(SummaryBlock::raw).collect();
        assert_eq!(left, "\n# Week 2026-W11\n\n### Context\n- one [2026-03-10:1]\n");
    }
}
