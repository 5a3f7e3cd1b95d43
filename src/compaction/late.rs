//! What rests on lines that were changed: memories and entries of ours that are looked at again.
//!
//! A memory that lost a line is rewritten by what the engine now says of its day; if the engine says
//! nothing of it, it stays where its words still stand in the lines as they are now, and is
//! withdrawn where they do not. An entry of `WISDOM.md` stays where the lines that are left still
//! carry it, is rewritten by what the engine says of its month, or is dropped. Both go to the
//! history, and neither is a person's deletion: what comes back in the log may come back here.
//!
//! A memory that a person wrote or edited is theirs: what would become of it is offered to them
//! ([`Offer`]), and the file stays as it is until they say so.
//!
//! A log that has vanished takes nothing with it.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::{
    Compactor, JobError, ground,
    plan::Job,
    standing::{self, Logs, Source, Standing},
};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        item::Item,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, Rules, ServedLog},
    store::{
        inventory::Inventory,
        lineage::{Lineage, LineageError},
        vault::{Vault, VaultError},
    },
};

/// A memory of which a line was changed, deleted, or moved.
#[derive(Clone, Debug)]
pub(super) struct Doubt {
    /// As it stands in its file.
    pub(super) memory: TypedMemory,
    pub(super) standing: Standing,
    /// The last day of which it lost or moved a line: with it, all that could take its place is
    /// known.
    day: NaiveDate,
}

/// A memory and what takes its place in its file.
#[derive(Clone, Debug)]
pub(super) struct Revised {
    pub(super) before: TypedMemory,
    pub(super) after: TypedMemory,
}

/// What would become of a memory if it were ours.
#[derive(Clone, Debug)]
pub(super) struct Offer {
    /// As it stands in the person's file.
    pub(super) before: TypedMemory,
    /// What would take its place; `None` where no line says it any more.
    pub(super) after: Option<TypedMemory>,
    /// Why, in words for the person.
    pub(super) why: &'static str,
}

/// What becomes of the memories that a day has in doubt.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pub(super) revised: Vec<Revised>,
    pub(super) withdrawn: Vec<TypedMemory>,
    pub(super) offered: Vec<Offer>,
}

impl Settled {
    fn knows(&self, memory: &TypedMemory) -> bool {
        let revised = self.revised.iter().map(|it| &it.before);
        let mut all = revised.chain(self.offered.iter().map(|it| &it.before));
        all.any(|it| it.file_name == memory.file_name)
    }
}

impl Doubt {
    /// Returns whether any line is gone, so that the engine is asked as if the memory were not there.
    pub(super) fn is_lost(&self) -> bool {
        !self.standing.lost.is_empty()
    }

    /// Returns the memory with the lines that are left.
    pub(super) fn readdressed(&self) -> TypedMemory {
        with_sources(&self.memory, &self.standing.left)
    }
}

/// Returns the memories that rest on lines of these days that are no longer where they were.
///
/// Reads only logs that some memory rests on; none, when all days are new.
pub(super) fn doubts(
    vault: &Vault,
    jobs: &[Job],
    memories: &[TypedMemory],
    rules: &Rules,
) -> Vec<Doubt> {
    let days: BTreeSet<NaiveDate> = jobs.iter().map(|it| it.period.first()).collect();
    let concerned: Vec<&TypedMemory> = memories
        .iter()
        .filter(|it| it.sources.iter().any(|(at, _)| is_day_in(&days, &at.stem)))
        .collect();
    let stems: BTreeSet<&Stem> = concerned
        .iter()
        .flat_map(|it| it.sources.iter().map(|(at, _)| &at.stem))
        .filter(|it| is_day_in(&days, it))
        .collect();
    let mut logs = Logs::new();
    for stem in stems {
        // A log that cannot be read fails its own job; one that is gone takes nothing with it.
        if let Ok(Some(log)) = vault.read_log(stem) {
            logs.insert(stem.clone(), Some(privacy::serve(&log, rules)));
        }
    }
    let doubt = |memory: &&TypedMemory| {
        let standing = Standing::find(&sources_of(memory), &logs, &standing::said_by(memory));
        if standing.lost.is_empty() && !standing.moved {
            return None;
        }
        let read = memory.sources.iter().filter(|(at, _)| logs.contains_key(&at.stem));
        let day = read.map(|(at, _)| at.stem.date()).max()?;
        Some(Doubt { memory: (*memory).clone(), standing, day })
    };
    let mut doubts: Vec<Doubt> = concerned.iter().filter_map(doubt).collect();
    follow_to_other_logs(vault, jobs, &mut doubts, rules);
    doubts
}

/// Finds lost lines that went to another log of these days, word for word.
fn follow_to_other_logs(vault: &Vault, jobs: &[Job], doubts: &mut [Doubt], rules: &Rules) {
    if !doubts.iter().any(Doubt::is_lost) {
        return;
    }
    let stems = jobs.iter().flat_map(|it| it.inputs.keys()).filter_map(|it| it.parse().ok());
    for stem in stems {
        let Ok(Some(log)) = vault.read_log(&stem) else { continue };
        let log = privacy::serve(&log, rules);
        for doubt in doubts.iter_mut().filter(|it| it.is_lost()) {
            doubt.standing.find_in(&log, &standing::said_by(&doubt.memory));
        }
    }
}

fn is_day_in(days: &BTreeSet<NaiveDate>, stem: &Stem) -> bool {
    !stem.is_week() && !stem.is_session() && days.contains(&stem.date())
}

/// Gives memories that lost a line to those of the new ones that are about the same, best fit first.
/// What is left in `new` is new.
pub(super) fn take_over(new: &mut Vec<TypedMemory>, doubts: &[Doubt]) -> Settled {
    let mut pairs: Vec<(u8, usize, usize)> = Vec::new();
    for (i, doubt) in doubts.iter().enumerate().filter(|(_, it)| it.is_lost()) {
        for (j, memory) in new.iter().enumerate() {
            let fit = standing::succession(memory, &doubt.memory, &doubt.standing);
            pairs.extend(fit.map(|fit| (fit, i, j)));
        }
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut old_taken, mut new_taken) = (BTreeSet::new(), BTreeSet::new());
    let mut settled = Settled::default();
    for (_, i, j) in pairs {
        if !old_taken.contains(&i) && !new_taken.contains(&j) {
            old_taken.insert(i);
            new_taken.insert(j);
            let before = doubts[i].memory.clone();
            let after = in_place_of(&new[j], &before);
            if before.is_ours() {
                settled.revised.push(Revised { before, after });
            } else {
                let why = "its lines say otherwise now";
                settled.offered.push(Offer { before, after: Some(after), why });
            }
        }
    }
    let mut at = 0;
    new.retain(|_| {
        at += 1;
        !new_taken.contains(&(at - 1))
    });
    settled
}

/// Decides about the memories that this day is the last to be asked about, and that nothing new
/// takes the place of.
pub(super) fn settle(
    vault: &Vault,
    day: NaiveDate,
    doubts: &[Doubt],
    settled: &mut Settled,
    rules: &Rules,
) -> Result<(), VaultError> {
    for doubt in doubts.iter().filter(|it| it.day == day) {
        if settled.knows(&doubt.memory) {
            continue;
        }
        let before = doubt.memory.clone();
        if !before.is_ours() {
            // What a person wrote is not asked about as long as any line of it is left, nor where
            // we never wrote it.
            let was_ours = before.recorded_body.is_some();
            if was_ours
                && doubt.standing.left.is_empty()
                && still_stands(vault, doubt, rules)?.is_none()
            {
                let why = "no line says it any more";
                settled.offered.push(Offer { before, after: None, why });
            }
            continue;
        }
        if !doubt.is_lost() {
            settled.revised.push(Revised { after: doubt.readdressed(), before });
            continue;
        }
        match still_stands(vault, doubt, rules)? {
            Some(after) => settled.revised.push(Revised { before, after }),
            None => settled.withdrawn.push(before),
        }
    }
    Ok(())
}

/// Returns a memory that lost a line, with the lines that say it still.
fn still_stands(
    vault: &Vault,
    doubt: &Doubt,
    rules: &Rules,
) -> Result<Option<TypedMemory>, VaultError> {
    let lines = doubt.standing.lines_now();
    let logs = read(vault, rules, lines.iter().flat_map(|it| it.files().map(|(stem, _)| stem)))?;
    let words = standing::said_by(&doubt.memory);
    if let Some(sources) = lines.and_then(|it| standing::still_said(&words, &it, &logs)) {
        return Ok(Some(with_sources(&doubt.memory, &sources)));
    }
    // What a vanished log said cannot be read again, so it is taken to say it still.
    let gone = logs.values().any(Option::is_none);
    Ok((gone && !doubt.standing.left.is_empty()).then(|| doubt.readdressed()))
}

fn in_place_of(new: &TypedMemory, old: &TypedMemory) -> TypedMemory {
    TypedMemory {
        file_name: old.file_name.clone(),
        supersedes: old.supersedes.clone(),
        other_keys: old.other_keys.clone(),
        ..new.clone()
    }
}

pub(super) fn with_sources(memory: &TypedMemory, sources: &[Source]) -> TypedMemory {
    let sources: Vec<(Address, String)> =
        sources.iter().filter_map(|(at, hash)| Some((at.clone(), hash.clone()?))).collect();
    let days = || sources.iter().map(|(at, _)| at.stem.date());
    TypedMemory {
        created: days().min().or(memory.created),
        updated: days().max().or(memory.updated),
        sources,
        ..memory.clone()
    }
}

fn sources_of(memory: &TypedMemory) -> Vec<Source> {
    memory.sources.iter().map(|(at, hash)| (at.clone(), Some(hash.clone()))).collect()
}

fn read<'a>(
    vault: &Vault,
    rules: &Rules,
    stems: impl Iterator<Item = &'a Stem>,
) -> Result<Logs, VaultError> {
    let mut logs = Logs::new();
    for stem in stems {
        if !logs.contains_key(stem) {
            logs.insert(stem.clone(), vault.read_log(stem)?.map(|it| privacy::serve(&it, rules)));
        }
    }
    Ok(logs)
}

/// An entry of ours that the lines left to it no longer carry.
#[derive(Clone, Debug)]
pub(super) struct Shaken {
    pub(super) id: String,
    words: String,
    standing: Standing,
}

impl Compactor<'_> {
    /// Puts the sources of entries right that rest on a log of this month, and returns those that
    /// the lines left to them no longer carry.
    pub(super) fn shaken(
        &self,
        file: &mut WisdomFile,
        month: &[ServedLog],
        rules: &Rules,
    ) -> Result<Vec<Shaken>, JobError> {
        let is_here = |stem: &Stem| month.iter().any(|it| it.stem() == stem);
        let ours: Vec<_> = file.entries().filter(|it| it.is_ours()).cloned().collect();
        let mut shaken = Vec::new();
        for entry in ours {
            let Some(mark) = &entry.mark else { continue };
            if !mark.sources.files().any(|(stem, _)| is_here(stem)) {
                continue;
            }
            let logs = read(self.vault, rules, mark.sources.files().map(|(stem, _)| stem))?;
            let source = |at: Address| {
                let hash = mark.lines.get(&at).cloned();
                (at, hash)
            };
            let sources: Vec<Source> = mark.sources.addresses().map(source).collect();
            let words = format!("{}. {}", entry.title, entry.text);
            let standing = Standing::find(&sources, &logs, &words);
            // Of a line without a hash it cannot be told whether it is the one that was cited.
            let unsure = sources.iter().any(|(at, hash)| hash.is_none() && is_here(&at.stem));
            let checked = |citation: Citation| {
                let item = Item { text: words.clone(), citation: Some(citation) };
                ground::check(&item, &logs).is_ok()
            };
            let left = standing.lines_left();
            // A line that is gone may be the one that said it: then all the words must still stand.
            let carried = if standing.lost.is_empty() {
                !unsure || standing.gone || left.is_some_and(checked)
            } else {
                left.is_some_and(|it| {
                    standing.gone || standing::still_said(&words, &it, &logs).is_some()
                })
            };
            if carried {
                file.readdress(&mark.id, &standing.left);
            } else {
                shaken.push(Shaken { id: mark.id.clone(), words, standing });
            }
        }
        Ok(shaken)
    }
}

impl Shaken {
    /// Returns how well a new entry takes the place of this one; `None` when it is about something
    /// else.
    pub(super) fn fit(&self, title: &str, text: &str, citation: &Citation) -> Option<u8> {
        let shares = |sources: &[Source]| {
            let cites =
                |at: &Address| citation.lines_of(&at.stem).is_some_and(|it| it.contains(at.line));
            sources.iter().any(|(at, _)| cites(at))
        };
        let alike = standing::alike(&self.words, &format!("{title}. {text}"));
        if alike < standing::ALIKE {
            return None;
        }
        Some(1 + u8::from(shares(&self.standing.lost)) + 2 * u8::from(shares(&self.standing.left)))
    }

    /// Returns the sources of the entry that takes its place: the lines that are left, and its own.
    pub(super) fn sources_with(&self, citation: &Citation) -> Vec<Source> {
        let new =
            citation.addresses().filter(|at| !self.standing.left.iter().any(|it| it.0 == *at));
        self.standing.left.iter().cloned().chain(new.map(|at| (at, None))).collect()
    }
}

/// Returns the months whose entries of ours cite a line that reads otherwise now, with the logs.
///
/// It is told by the hashes in the file and those that the database has of the logs, so nothing is
/// read; a log that was not looked at since it changed says nothing yet.
pub(super) fn unsettled(
    lineage: &Lineage,
    inventory: &Inventory,
    wisdom: &WisdomFile,
) -> Result<Vec<(Period, String)>, LineageError> {
    let mut found = BTreeSet::new();
    let ours = wisdom.entries().filter(|it| it.is_ours()).filter_map(|it| it.mark.as_ref());
    let mut noted: Vec<(&Address, &String)> = ours.flat_map(|it| &it.lines).collect();
    noted.sort();
    for lines in noted.chunk_by(|a, b| a.0.stem == b.0.stem) {
        let Some(stem) = lines.first().map(|it| &it.0.stem) else { continue };
        let Some(file) = inventory.logs.get(stem) else { continue };
        let Some(log) = lineage.log(stem)?.filter(|it| it.hash == file.hash) else { continue };
        let reads = |line: u32| log.line_hash(line).map(crate::memory::hash::hex4_of);
        let month = Period::containing(Grain::Week, stem.date()).parent();
        if let Some(month) = month
            && lines.iter().any(|(at, hash)| reads(at.line).as_ref() != Some(*hash))
        {
            found.insert((month, stem.to_string()));
        }
    }
    Ok(found.into_iter().collect())
}
