//! Logs that stand under another name: what was made of them follows.
//!
//! A log that is gone and one of the same bytes that nothing was made of yet are one log with another
//! name; the names and hashes in the weekly files say so, with the database or without. Citations
//! take the new name. In another week or month, bullets of ours leave the file, since the fold of the
//! new one makes them from the same words; what a person wrote there goes along, and what they
//! deleted or had forgotten stays so.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use chrono::{DateTime, Utc};

use super::{
    Compactor, JobError, PassError, View,
    commit::{NewFile, Recorded},
    late,
    observe::{Followed, Noticing, recite, theirs, with_sources_of},
    plan, records,
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        decision::{Decision, Decisions, Verdict, What},
        document::{Block, Summary, SummaryHeader},
        hash::ContentHash,
        item::{Item, Section, Tier},
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, Rules},
    store::{
        inventory::Inventory,
        lineage::{Lineage, LineageError, record::LogRecord},
        vault::Vault,
    },
};

/// What the receipt of a job says whose work was to follow a log to its new name.
const RENAMED: &str = "log renamed";

/// Old name to new one.
pub(super) type Renames = BTreeMap<Stem, Stem>;

/// Finds the logs that stand under another name. `gone` are those that are not there, each with the
/// first hex digits of its hash; `is_new` tells of a log whether nothing was made of it yet.
fn find(
    gone: &BTreeSet<(Stem, String)>,
    inventory: &Inventory,
    is_new: impl Fn(&Stem) -> bool,
) -> Renames {
    let mut new: BTreeMap<String, Vec<&Stem>> = BTreeMap::new();
    for (stem, file) in inventory.logs.iter().rev().filter(|(stem, _)| is_new(stem)) {
        new.entry(file.hash.hex16()).or_default().push(stem);
    }
    let mut renames = Renames::new();
    for (stem, hash) in gone {
        if !renames.contains_key(stem)
            && let Some(to) = new.get_mut(hash).and_then(Vec::pop)
        {
            renames.insert(stem.clone(), to.clone());
        }
    }
    renames
}

/// Finds the logs that stand under another name, by what the database and the weekly files know.
pub(super) fn renames(
    vault: &Vault,
    lineage: &Lineage,
    inventory: &Inventory,
) -> Result<Renames, LineageError> {
    let layout = vault.layout();
    let logs = lineage.logs()?;
    let mut gone: BTreeSet<(Stem, String)> =
        logs.into_iter().map(|(stem, it)| (stem, it.hash.hex16())).collect();
    let headers = inventory.weekly.values().filter_map(|it| it.header.as_ref());
    let named = headers.flat_map(|it| &it.sources);
    gone.extend(named.filter_map(|(name, hash)| Some((name.parse().ok()?, hash.clone()))));
    let is_taken = |stem: &Stem| {
        let archived = layout.archived(stem).is_some_and(|it| vault.is_taken(&it));
        archived || vault.is_taken(&layout.source(stem))
    };
    gone.retain(|(stem, _)| {
        let is_log = !stem.is_summary() && !stem.is_session();
        is_log && !inventory.logs.contains_key(stem) && !is_taken(stem)
    });
    if gone.is_empty() {
        return Ok(Renames::new());
    }
    let extracted = lineage.extracted()?;
    Ok(find(&gone, inventory, |stem| {
        let week = Period::containing(Grain::Week, stem.date());
        let header = inventory.weekly.get(&week).and_then(|it| it.header.as_ref());
        !header.is_some_and(|it| it.sources.contains_key(stem.as_str()))
            && !extracted.contains_key(stem)
    }))
}

/// Returns the week or month, as `like` is one, whose file tells of a log.
fn home(stem: &Stem, like: Period) -> Option<Period> {
    let week = Period::containing(Grain::Week, stem.date());
    if like.grain() == Grain::Week { Some(week) } else { week.parent() }
}

fn follow(renames: &Renames, citation: &Citation) -> Citation {
    let named = |at: Address| {
        let stem = renames.get(&at.stem).unwrap_or(&at.stem).clone();
        Address { stem, line: at.line }
    };
    let addresses: Vec<Address> = citation.addresses().map(named).collect();
    Citation::from_addresses(&addresses).unwrap_or_else(|| citation.clone())
}

/// Returns the file that a bullet goes to with all the logs that it rests on; `None` where it stays.
fn leaves_for(renames: &Renames, citation: &Citation, from: Period) -> Option<Period> {
    let mut homes = citation.files().map(|(stem, _)| home(renames.get(stem)?, from));
    let first = homes.next()??;
    (first != from && homes.all(|it| it == Some(first))).then_some(first)
}

/// A weekly or monthly file, as it follows.
struct Page {
    path: String,
    summary: Summary,
    standing: Option<String>,
    gains: bool,
    loses: bool,
}

/// What a person wrote, on its way to another file.
struct Parcel {
    to: Period,
    section: Section,
    blocks: Vec<Block>,
}

impl Page {
    fn header(&mut self) -> &mut SummaryHeader {
        self.summary.header.get_or_insert_default()
    }

    /// Takes the new names over; returns what goes to other files.
    fn follow(&mut self, renames: &Renames, taken: &BTreeSet<Period>) -> Vec<Parcel> {
        let period = self.summary.period;
        let kept = theirs(&self.summary);
        let mut parcels: Vec<Parcel> = Vec::new();
        let mut left = Vec::new();
        let mut section = None;
        let mut goes_along = false;
        for (i, mut block) in std::mem::take(&mut self.summary.blocks).into_iter().enumerate() {
            if block.is_heading() {
                section = if let Block::Section(it, _) = &block { Some(*it) } else { None };
            }
            let beneath = block.raw().starts_with([' ', '\t']);
            if let Some(parcel) = parcels.last_mut().filter(|_| goes_along && beneath) {
                parcel.blocks.push(block);
                continue;
            }
            goes_along = false;
            let Block::Bullet(item, raw) = &mut block else {
                left.push(block);
                continue;
            };
            let Some(cited) = item.citation.clone() else {
                left.push(block);
                continue;
            };
            let hash = item.hash();
            let followed = follow(renames, &cited);
            if followed != cited {
                *raw = recite(raw, &followed);
                *item = Item { text: item.text.clone(), citation: Some(followed) };
            }
            let to = leaves_for(renames, &cited, period).filter(|it| !taken.contains(it));
            match (to, section) {
                (Some(to), Some(section)) if kept.contains(&i) => {
                    parcels.push(Parcel { to, section, blocks: vec![block] });
                    goes_along = true;
                }
                (Some(_), _) if !kept.contains(&i) => {
                    self.loses = true;
                    let items = &mut self.header().items;
                    if let Some(at) = items.iter().position(|it| *it == hash) {
                        // Else it would be taken for one that a person deleted.
                        items.remove(at);
                    }
                }
                _ => left.push(block),
            }
        }
        self.loses |= !parcels.is_empty();
        self.summary.blocks = if self.loses { without_empty_sections(left) } else { left };
        parcels
    }

    /// Takes in what a person wrote in another file, at the end of its section.
    fn take_in(&mut self, parcel: Parcel) {
        let is_here = |block: &Block| self.summary.blocks.iter().any(|it| it == block);
        if parcel.blocks.iter().all(is_here) {
            return;
        }
        self.gains = true;
        let blocks = &mut self.summary.blocks;
        let heading =
            blocks.iter().position(|it| matches!(it, Block::Section(s, _) if *s == parcel.section));
        let at = if let Some(heading) = heading {
            let next = blocks[heading + 1..].iter().position(Block::is_heading);
            let end = next.map_or(blocks.len(), |it| heading + 1 + it);
            let blank = |it: &Block| it.item().is_none() && it.raw().trim().is_empty();
            let bullets = blocks[heading + 1..end].iter().rposition(|it| !blank(it));
            bullets.map_or(heading + 1, |it| heading + 2 + it)
        } else {
            blocks.push(Block::Other("\n".to_owned()));
            let title = format!("### {}\n", parcel.section.title());
            blocks.push(Block::Section(parcel.section, title));
            blocks.len()
        };
        if let Some(before) = at.checked_sub(1).and_then(|it| blocks.get_mut(it))
            && !before.raw().ends_with('\n')
        {
            let (Block::Section(_, raw) | Block::Bullet(_, raw) | Block::Other(raw)) = before;
            raw.push('\n');
        }
        blocks.splice(at..at, parcel.blocks);
    }

    /// Names the sources by their new names, and no longer those that went to another file.
    fn rename_sources(&mut self, renames: &Renames, source: &dyn Fn(&Stem) -> String) {
        let period = self.summary.period;
        let header = self.header();
        for (from, to) in renames {
            let (old, stays) = (from.as_str(), home(to, period) == Some(period));
            header.gone.retain(|it| it != old);
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

    /// Returns whether nothing stands in the file any more, and nothing is to be made of it.
    fn is_empty(&self) -> bool {
        let title = Summary::title(self.summary.period);
        let says_nothing = |it: &Block| match it {
            Block::Section(..) => true,
            Block::Bullet(..) => false,
            Block::Other(raw) => raw.trim().is_empty() || raw.trim() == title,
        };
        self.loses
            && self.summary.header.as_ref().is_some_and(|it| it.sources.is_empty())
            && self.summary.blocks.iter().all(says_nothing)
    }

    fn text(&self) -> Option<String> {
        (!self.is_empty()).then(|| self.summary.print())
    }
}

fn without_empty_sections(blocks: Vec<Block>) -> Vec<Block> {
    let mut left: Vec<Block> = Vec::new();
    for block in blocks.into_iter().rev() {
        let blank = |it: &&Block| it.item().is_none() && it.raw().trim().is_empty();
        let next = left.iter().rev().find(|it| !blank(it));
        let empty = matches!(block, Block::Section(..)) && next.is_none_or(Block::is_heading);
        if empty {
            // The blank line that stood after it goes with it.
            while left.last().is_some_and(|it| blank(&it)) {
                left.pop();
            }
        } else {
            left.push(block);
        }
    }
    // Nor does a blank line end the file.
    while left.first().is_some_and(|it| it.item().is_none() && it.raw().trim().is_empty()) {
        left.remove(0);
    }
    left.reverse();
    left
}

impl Compactor<'_> {
    /// Has what was made of logs follow them to their new names; returns whether any file was written.
    pub(super) fn follow_renames(
        &mut self,
        noticing: &mut Noticing<'_>,
        view: &View,
    ) -> Result<bool, JobError> {
        if !view.record.held.is_empty() {
            return Ok(false); // The names in the files still tell when that is settled.
        }
        let renames = self.renames(view)?;
        let Some((_, first)) = renames.first_key_value() else { return Ok(false) };
        let inventory = &view.inventory;
        let decisions = self.decisions_now()?;
        self.append_decisions(&self.decide_again(&renames, &decisions, noticing.now)?)?;
        let mut recorded = Recorded::default();
        let mut files = self.follow_in_summaries(inventory, &renames)?;
        self.follow_in_lasting(inventory, &renames, &mut files)?;
        let layout = self.vault.layout().clone();
        for file in &files {
            match &file.text {
                Some(text) => {
                    recorded.documents.extend(records::of_path(&layout, &file.path, text));
                }
                None => recorded.removed.push(file.path.clone()),
            }
        }
        let known = self.lineage.log_paths()?;
        let extracted = self.lineage.extracted()?;
        for (from, to) in &renames {
            if let Some(path) = known.get(from) {
                recorded.found.push((path.clone(), None));
                recorded.removed.push(path.clone());
            }
            let Some(log) = self.vault.read_log(to)? else { continue };
            let rules = Rules::new(Arc::clone(self.vault.policy()), &self.decisions_now()?);
            let served = privacy::serve(&log, &rules);
            if extracted.get(from) == Some(&rules.input_hash(from, log.hash)) {
                recorded.extracted.push((to.clone(), served.input()));
            }
            recorded.logs.push(LogRecord::of(&served, layout.source(to)));
        }
        let names: Vec<String> =
            renames.iter().map(|(from, to)| format!("{from} is now {to}")).collect();
        let followed = Followed {
            what: "renamed",
            reason: format!("{RENAMED}: {}", names.join(", ")),
            period: Period::containing(Grain::Week, first.date()),
            logs: renames.values().collect(),
            step: ContentHash::of(format!("{renames:?}")),
            files,
            recorded,
        };
        self.record_followed(noticing, view, followed)
    }

    fn decisions_now(&self) -> Result<Decisions, JobError> {
        let text = self.vault.read_text(&self.vault.layout().decisions())?;
        Ok(text.map(|it| Decisions::parse(&it)).unwrap_or_default())
    }

    fn renames(&self, view: &View) -> Result<Renames, PassError> {
        let inventory = &view.inventory;
        let mut renames = renames(self.vault, self.lineage, inventory)?;
        // Where the fold of its new week is refused, its words stay where they are.
        renames.retain(|from, to| {
            let [old, new] = [from, to].map(|it| Period::containing(Grain::Week, it.date()));
            let logs = inventory.logs_of(new);
            let inputs = logs.map(|(stem, it)| (stem.to_string(), it.input.hex16())).collect();
            let fold = plan::fingerprint(Tier::Weekly, new, &inputs);
            old == new || !inventory.decisions.is_undone(fold)
        });
        Ok(renames)
    }

    /// Returns what people decided about the lines under the old name, for the new one.
    fn decide_again(
        &self,
        renames: &Renames,
        decisions: &Decisions,
        now: DateTime<Utc>,
    ) -> Result<Vec<Decision>, JobError> {
        let layout = self.vault.layout();
        let mut made = Vec::new();
        for (from, to) in renames {
            let Some(log) = self.vault.read_log(to)? else { continue };
            let served =
                privacy::serve(&log, &Rules::new(Arc::clone(self.vault.policy()), decisions));
            let mut decide = |what, path: &str, lines: Vec<&str>| {
                let hashes: BTreeSet<String> =
                    lines.into_iter().filter_map(|it| decisions.line_hash(it)).collect();
                if !hashes.is_empty() {
                    let hashes = hashes.into_iter().collect();
                    made.push(Decision { at: now, what, path: path.to_owned(), hashes });
                }
            };
            for like in [Grain::Week, Grain::Month].map(|it| Period::containing(it, from.date())) {
                let (Some(old), Some(new)) = (home(from, like), home(to, like)) else { continue };
                let (old, new) = (layout.summary(old), layout.summary(new));
                let lines = served.lines().iter().map(privacy::ServedLine::text);
                let deleted = lines.filter(|it| {
                    old != new
                        && decisions.is_deleted(&old, [*it])
                        && !decisions.is_deleted(&new, [*it])
                });
                decide(What::Deleted, &new, deleted.collect());
            }
            let lines = log.lines();
            let forgotten = lines.iter().map(|it| it.1).filter(|it| {
                decisions.is_forgotten(from.as_str(), it)
                    && !decisions.is_forgotten(to.as_str(), it)
            });
            decide(What::Forgotten, to.as_str(), forgotten.collect());
            for (verdict, what) in
                [(Verdict::Accepted, What::Accepted), (Verdict::Refused, What::Refused)]
            {
                let lines = lines.iter().map(|it| it.1);
                let said = lines.filter(|it| {
                    decisions.reviewed(from.as_str(), it) == Some(verdict)
                        && decisions.reviewed(to.as_str(), it) != Some(verdict)
                });
                decide(what, to.as_str(), said.collect());
            }
        }
        Ok(made)
    }

    /// Weeks and months; those that take something in come first, so that a crash leaves it in both.
    fn follow_in_summaries(
        &self,
        inventory: &Inventory,
        renames: &Renames,
    ) -> Result<Vec<NewFile>, JobError> {
        let layout = self.vault.layout();
        let summaries = || inventory.weekly.iter().chain(&inventory.monthly);
        let taken: BTreeSet<Period> =
            summaries().filter(|(_, it)| it.header.is_none()).map(|(period, _)| *period).collect();
        let mut pages: BTreeMap<Period, Page> = BTreeMap::new();
        for (period, file) in summaries().filter(|(_, it)| it.header.is_some()) {
            let standing = self.vault.read_text(&file.path)?;
            let Some(Ok(summary)) = standing.as_deref().map(|it| Summary::parse(*period, it))
            else {
                continue;
            };
            let (gains, loses) = (false, false);
            let path = file.path.clone();
            pages.insert(*period, Page { path, summary, standing, gains, loses });
        }
        let mut parcels = Vec::new();
        for page in pages.values_mut() {
            parcels.extend(page.follow(renames, &taken));
            page.rename_sources(renames, &|stem| layout.source(stem));
        }
        for parcel in parcels {
            let page = pages.entry(parcel.to).or_insert_with(|| Page {
                path: layout.summary(parcel.to),
                // Its fold is due when the period has closed.
                summary: Summary::from_draft(
                    parcel.to,
                    SummaryHeader {
                        engine: self.engine.id().to_owned(),
                        partial: true,
                        ..SummaryHeader::default()
                    },
                    &[],
                ),
                standing: None,
                gains: true,
                loses: false,
            });
            page.take_in(parcel);
        }
        let weeks: Vec<(Period, Option<String>)> = pages
            .iter()
            .filter(|(period, _)| period.grain() == Grain::Week)
            .filter(|(_, page)| !page.gains && (!page.loses || page.is_empty()))
            .map(|(period, page)| {
                let body = page.text().map(|_| page.summary.body_hash().hex16());
                let hash = body.map(|it| inventory.rules.input_of_file(*period, &it));
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
        let mut changed: Vec<Page> =
            pages.into_values().filter(|it| it.text() != it.standing).collect();
        changed.sort_by_key(|it| (!it.gains, it.loses));
        let file = |it: Page| NewFile { text: it.text(), path: it.path, standing: it.standing };
        Ok(changed.into_iter().map(file).collect())
    }

    /// Typed memories and entries of wisdom.
    fn follow_in_lasting(
        &self,
        inventory: &Inventory,
        renames: &Renames,
        files: &mut Vec<NewFile>,
    ) -> Result<(), JobError> {
        let layout = self.vault.layout();
        let now_at = |at: &Address| {
            let stem = renames.get(&at.stem).unwrap_or(&at.stem).clone();
            Address { stem, line: at.line }
        };
        for memory in &inventory.memories {
            if !memory.sources.iter().any(|(at, _)| renames.contains_key(&at.stem)) {
                continue;
            }
            let path = layout.typed(&memory.file_name.to_string_lossy());
            let Some(old) = self.vault.read_text(&path)? else { continue };
            let sources: Vec<(Address, String)> =
                memory.sources.iter().map(|(at, hash)| (now_at(at), hash.clone())).collect();
            let text = if memory.is_ours() {
                let sources: Vec<_> = sources.into_iter().map(|(at, it)| (at, Some(it))).collect();
                late::with_sources(memory, &sources).print()
            } else {
                let moved = TypedMemory { sources, ..memory.clone() };
                let text = with_sources_of(&old, &moved.print());
                // One that spells its sources in another way than we do is left alone.
                let read = TypedMemory::parse(&memory.file_name, &text);
                if read.ok().as_ref() != Some(&moved) {
                    continue;
                }
                text
            };
            files.push(NewFile { path, text: Some(text), standing: Some(old) });
        }
        let Some(old) = &inventory.wisdom else { return Ok(()) };
        let mut file = WisdomFile::parse(old);
        let any = file.readdress_all(&|_, mark| {
            mark.sources.files().any(|(stem, _)| renames.contains_key(stem)).then(|| {
                let sources = mark.sources.addresses();
                sources.map(|at| (now_at(&at), mark.lines.get(&at).cloned())).collect()
            })
        });
        if any {
            let (path, text) = (layout.wisdom(), Some(file.print()));
            files.push(NewFile { path, text, standing: Some(old.clone()) });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renames(pairs: &str) -> Renames {
        let pairs = pairs.split_whitespace().map(|it| it.split_once('>').unwrap());
        pairs.map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).collect()
    }

    #[test]
    fn a_bullet_leaves_with_all_its_logs_and_not_before() {
        let renames = renames("2026-03-10>2026-03-17 2026-03-11>2026-03-12");
        let week = "2026-W11".parse().unwrap();
        for (cited, goes) in [
            ("2026-03-10:1", Some("2026-W12")),
            ("2026-03-11:1", None),
            ("2026-03-10:1; 2026-03-11:2", None),
            ("2026-03-10:1; 2026-03-13:2", None),
            ("2026-03-13:2", None),
        ] {
            let found = leaves_for(&renames, &cited.parse().unwrap(), week);
            assert_eq!(found.map(|it| it.to_string()).as_deref(), goes, "{cited}");
        }
        let cited = "2026-03-10:1; 2026-03-13:2".parse().unwrap();
        assert_eq!(follow(&renames, &cited).to_string(), "2026-03-13:2; 2026-03-17:1");
    }

    #[test]
    fn a_section_without_a_bullet_goes_and_no_other_line() {
        let week = "2026-W11".parse().unwrap();
        let text = "\n# Week 2026-W11\n\n### Decisions\n\n### Context\n- one [2026-03-10:1]\n";
        let blocks = Summary::parse(week, text).unwrap().blocks;
        let left: String = without_empty_sections(blocks).iter().map(Block::raw).collect();
        assert_eq!(left, "\n# Week 2026-W11\n\n### Context\n- one [2026-03-10:1]\n");
    }
}
