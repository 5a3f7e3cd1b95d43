//! Stale memories and entries: their source lines changed, so they are checked again.
//!
//! A memory that lost a line is rewritten from what the engine now drafts for its day. If the
//! engine drafts nothing for it, it stays if the present lines still support its words, and is
//! withdrawn otherwise. An entry of `WISDOM.md` stays if the remaining lines support it, is
//! rewritten from what the engine drafts for its month, or is dropped. Both enter the history, and
//! neither counts as deleted by a person: what comes back in the log may come back here.
//!
//! A memory that a person wrote or edited is theirs: the change is proposed ([`MemoryProposal`]),
//! and the file stays as it is until they accept.
//!
//! A vanished log removes nothing.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::source_match::{self, CitedLine, LogsByStem, SourceMatch};
use crate::compaction::{context::RunContext, error::JobFailure, grounding, plan::CompactionJob};
use crate::{
    memory::{
        address::{Address, Citation, Stem},
        item::Item,
        typed::TypedMemory,
        wisdom::WisdomFile,
    },
    privacy::{self, PrivacyRules, SanitizedLog},
    store::fs::vault::{Vault, VaultError},
};

/// A memory of which a line was changed, deleted, or moved.
#[derive(Clone, Debug)]
pub(crate) struct StaleMemory {
    /// As it is in its file.
    pub(crate) memory: TypedMemory,
    pub(crate) source_match: SourceMatch,
    /// The last day on which it lost or moved a line: after it, every possible replacement is
    /// known.
    day: NaiveDate,
}

/// A memory and its new text.
#[derive(Clone, Debug)]
pub(crate) struct MemoryRevision {
    pub(crate) before: TypedMemory,
    pub(crate) after: TypedMemory,
}

/// A change of a person's memory, to be proposed.
#[derive(Clone, Debug)]
pub(crate) struct MemoryProposal {
    /// As it is in the person's file.
    pub(crate) before: TypedMemory,
    /// The proposed memory; `None` if no line supports it any more.
    pub(crate) after: Option<TypedMemory>,
    /// The reason, for the person.
    pub(crate) why: &'static str,
}

/// What happens to the stale memories of a day.
#[derive(Debug, Default)]
pub(crate) struct StaleOutcome {
    pub(crate) revised: Vec<MemoryRevision>,
    pub(crate) withdrawn: Vec<TypedMemory>,
    pub(crate) proposed: Vec<MemoryProposal>,
}

impl StaleOutcome {
    fn contains(&self, memory: &TypedMemory) -> bool {
        let revised = self.revised.iter().map(|it| &it.before);
        let mut all = revised.chain(self.proposed.iter().map(|it| &it.before));
        all.any(|it| it.file_name == memory.file_name)
    }
}

impl StaleMemory {
    /// Returns whether any line is gone, so that the engine is asked as if the memory did not
    /// exist.
    pub(crate) fn lost_a_line(&self) -> bool {
        !self.source_match.lost.is_empty()
    }

    /// Returns the memory with the lines that were found.
    pub(crate) fn with_present_sources(&self) -> TypedMemory {
        with_sources(&self.memory, &self.source_match.present)
    }
}

/// Finds memories whose lines on these days changed or moved.
///
/// Reads only logs that some memory cites; none if all days are new.
pub(crate) fn find_stale_memories(
    vault: &Vault,
    jobs: &[CompactionJob],
    memories: &[TypedMemory],
    rules: &PrivacyRules,
) -> Vec<StaleMemory> {
    let days: BTreeSet<NaiveDate> = jobs.iter().map(|it| it.period.first()).collect();
    let concerned: Vec<&TypedMemory> = memories
        .iter()
        // A memory about a topic is made again from the logs as they are.
        .filter(|it| !it.is_about_topic())
        .filter(|it| it.sources.iter().any(|(at, _)| is_day_in(&days, &at.stem)))
        .collect();
    let stems: BTreeSet<&Stem> = concerned
        .iter()
        .flat_map(|it| it.sources.iter().map(|(at, _)| &at.stem))
        .filter(|it| is_day_in(&days, it))
        .collect();
    let mut logs = LogsByStem::new();
    for stem in stems {
        // A log that cannot be read fails its own job; a missing one removes nothing.
        if let Ok(Some(log)) = vault.read_log(stem) {
            logs.insert(stem.clone(), Some(privacy::sanitize(&log, rules)));
        }
    }
    let stale = |memory: &&TypedMemory| {
        let matched =
            SourceMatch::find(&cited_lines(memory), &logs, &source_match::memory_text(memory));
        if matched.lost.is_empty() && !matched.moved {
            return None;
        }
        let read = memory.sources.iter().filter(|(at, _)| logs.contains_key(&at.stem));
        let day = read.map(|(at, _)| at.stem.date()).max()?;
        Some(StaleMemory { memory: (*memory).clone(), source_match: matched, day })
    };
    let mut stale_memories: Vec<StaleMemory> = concerned.iter().filter_map(stale).collect();
    find_in_other_logs(vault, jobs, &mut stale_memories, rules);
    stale_memories
}

/// Finds lost lines that moved to another log of these days, word for word.
fn find_in_other_logs(
    vault: &Vault,
    jobs: &[CompactionJob],
    stale_memories: &mut [StaleMemory],
    rules: &PrivacyRules,
) {
    if !stale_memories.iter().any(StaleMemory::lost_a_line) {
        return;
    }
    let stems = jobs.iter().flat_map(|it| it.inputs.keys()).filter_map(|it| it.parse().ok());
    for stem in stems {
        let Ok(Some(log)) = vault.read_log(&stem) else { continue };
        let log = privacy::sanitize(&log, rules);
        for stale in stale_memories.iter_mut().filter(|it| it.lost_a_line()) {
            stale.source_match.find_in_log(&log, &source_match::memory_text(&stale.memory));
        }
    }
}

fn is_day_in(days: &BTreeSet<NaiveDate>, stem: &Stem) -> bool {
    !stem.is_week() && !stem.is_session() && days.contains(&stem.date())
}

/// Replaces memories that lost a line by new ones about the same, best match first. What is left in
/// `new` is new.
pub(crate) fn match_successors(
    new: &mut Vec<TypedMemory>,
    stale_memories: &[StaleMemory],
) -> StaleOutcome {
    let mut pairs: Vec<(u8, usize, usize)> = Vec::new();
    for (i, stale) in stale_memories.iter().enumerate().filter(|(_, it)| it.lost_a_line()) {
        for (j, memory) in new.iter().enumerate() {
            let fit = source_match::successor_rank(memory, &stale.memory, &stale.source_match);
            pairs.extend(fit.map(|fit| (fit, i, j)));
        }
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let (mut old_taken, mut new_taken) = (BTreeSet::new(), BTreeSet::new());
    let mut settled = StaleOutcome::default();
    for (_, i, j) in pairs {
        if !old_taken.contains(&i) && !new_taken.contains(&j) {
            old_taken.insert(i);
            new_taken.insert(j);
            let before = stale_memories[i].memory.clone();
            let after = replacing(&new[j], &before);
            if before.is_managed() {
                settled.revised.push(MemoryRevision { before, after });
            } else {
                let why = "its source lines say something else now";
                settled.proposed.push(MemoryProposal { before, after: Some(after), why });
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

/// Decides about the memories for which this is the last day, and that nothing new replaces.
pub(crate) fn decide_remaining(
    vault: &Vault,
    day: NaiveDate,
    stale_memories: &[StaleMemory],
    settled: &mut StaleOutcome,
    rules: &PrivacyRules,
) -> Result<(), VaultError> {
    for stale in stale_memories.iter().filter(|it| it.day == day) {
        if settled.contains(&stale.memory) {
            continue;
        }
        let before = stale.memory.clone();
        if !before.is_managed() {
            // A person is not asked about a memory of theirs while any line of it is left, or if we
            // never wrote it.
            let was_ours = before.recorded_body.is_some();
            if was_ours
                && stale.source_match.present.is_empty()
                && still_supported(vault, stale, rules)?.is_none()
            {
                let why = "no source line says it any more";
                settled.proposed.push(MemoryProposal { before, after: None, why });
            }
            continue;
        }
        if !stale.lost_a_line() {
            settled.revised.push(MemoryRevision { after: stale.with_present_sources(), before });
            continue;
        }
        match still_supported(vault, stale, rules)? {
            Some(after) => settled.revised.push(MemoryRevision { before, after }),
            None => settled.withdrawn.push(before),
        }
    }
    Ok(())
}

/// Returns a memory that lost a line, with the lines that still support it.
fn still_supported(
    vault: &Vault,
    stale: &StaleMemory,
    rules: &PrivacyRules,
) -> Result<Option<TypedMemory>, VaultError> {
    let lines = stale.source_match.current_lines();
    let logs = read_logs_by_stem(
        vault,
        rules,
        lines.iter().flat_map(|it| it.files().map(|(stem, _)| stem)),
    )?;
    let words = source_match::memory_text(&stale.memory);
    if let Some(sources) = lines.and_then(|it| source_match::lines_stating(&words, &it, &logs)) {
        return Ok(Some(with_sources(&stale.memory, &sources)));
    }
    // The lines of a vanished log cannot be read again, so they count as supporting it.
    let gone = logs.values().any(Option::is_none);
    Ok((gone && !stale.source_match.present.is_empty()).then(|| stale.with_present_sources()))
}

fn replacing(new: &TypedMemory, old: &TypedMemory) -> TypedMemory {
    TypedMemory {
        file_name: old.file_name.clone(),
        supersedes: old.supersedes.clone(),
        other_keys: old.other_keys.clone(),
        ..new.clone()
    }
}

pub(crate) fn with_sources(memory: &TypedMemory, sources: &[CitedLine]) -> TypedMemory {
    let sources: Vec<(Address, String)> =
        sources.iter().filter_map(|(at, hash)| Some((at.clone(), hash.clone()?))).collect();
    let days = || sources.iter().map(|(at, _)| at.stem.date());
    let mut memory = memory.clone();
    memory.created = days().min().or(memory.created);
    memory.updated = days().max().or(memory.updated);
    memory.set_sources(sources);
    memory
}

fn cited_lines(memory: &TypedMemory) -> Vec<CitedLine> {
    memory.sources.iter().map(|(at, hash)| (at.clone(), Some(hash.clone()))).collect()
}

fn read_logs_by_stem<'a>(
    vault: &Vault,
    rules: &PrivacyRules,
    stems: impl Iterator<Item = &'a Stem>,
) -> Result<LogsByStem, VaultError> {
    let mut logs = LogsByStem::new();
    for stem in stems {
        if !logs.contains_key(stem) {
            logs.insert(
                stem.clone(),
                vault.read_log(stem)?.map(|it| privacy::sanitize(&it, rules)),
            );
        }
    }
    Ok(logs)
}

/// An entry of ours that its remaining lines no longer support.
#[derive(Clone, Debug)]
pub(crate) struct StaleEntry {
    pub(crate) id: String,
    words: String,
    source_match: SourceMatch,
}

/// Updates the sources of entries that cite a log of this month, and returns those that the
/// remaining lines no longer support.
pub(crate) fn find_stale_entries(
    context: &RunContext<'_>,
    file: &mut WisdomFile,
    month: &[SanitizedLog],
    rules: &PrivacyRules,
) -> Result<Vec<StaleEntry>, JobFailure> {
    let is_here = |stem: &Stem| month.iter().any(|it| it.stem() == stem);
    let ours: Vec<_> = file.entries().filter(|it| it.is_managed()).cloned().collect();
    let mut stale_entries = Vec::new();
    for entry in ours {
        let Some(mark) = &entry.meta else { continue };
        if !mark.sources.files().any(|(stem, _)| is_here(stem)) {
            continue;
        }
        let logs =
            read_logs_by_stem(context.vault, rules, mark.sources.files().map(|(stem, _)| stem))?;
        let source = |at: Address| {
            let hash = mark.lines.get(&at).cloned();
            (at, hash)
        };
        let sources: Vec<CitedLine> = mark.sources.addresses().map(source).collect();
        let words = entry.sentences();
        let matched = SourceMatch::find(&sources, &logs, &words);
        // Without a hash, a line cannot be compared with the one that was cited.
        let unsure = sources.iter().any(|(at, hash)| hash.is_none() && is_here(&at.stem));
        let checked = |citation: Citation| {
            let item = Item { text: words.clone(), citation: Some(citation) };
            grounding::check(&item, &logs).is_ok()
        };
        let left = matched.present_lines();
        // The lost line may have been the one that supported it: then the others must contain all
        // words.
        let supported = if matched.lost.is_empty() {
            !unsure || matched.log_missing || left.is_some_and(checked)
        } else {
            left.is_some_and(|it| {
                matched.log_missing || source_match::lines_stating(&words, &it, &logs).is_some()
            })
        };
        if supported {
            file.set_sources(&mark.id, &matched.present);
        } else {
            stale_entries.push(StaleEntry { id: mark.id.clone(), words, source_match: matched });
        }
    }
    Ok(stale_entries)
}

impl StaleEntry {
    /// Returns how well a new entry replaces this one; `None` if it is about something else.
    pub(crate) fn successor_rank(
        &self,
        title: &str,
        text: &str,
        citation: &Citation,
    ) -> Option<u8> {
        let shares = |sources: &[CitedLine]| sources.iter().any(|(at, _)| citation.cites(at));
        let overlap = source_match::word_overlap(&self.words, &format!("{title}. {text}"));
        if overlap < source_match::SIMILAR_SHARE {
            return None;
        }
        Some(
            1 + u8::from(shares(&self.source_match.lost))
                + 2 * u8::from(shares(&self.source_match.present)),
        )
    }

    /// Returns the sources of its replacement: the remaining lines, and its own.
    pub(crate) fn merged_sources(&self, citation: &Citation) -> Vec<CitedLine> {
        let new = citation
            .addresses()
            .filter(|at| !self.source_match.present.iter().any(|it| it.0 == *at));
        self.source_match.present.iter().cloned().chain(new.map(|at| (at, None))).collect()
    }
}
