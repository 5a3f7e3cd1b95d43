//! Orphaned items: nothing can derive them again, since their logs are gone, so a new summary keeps
//! them.
//!
//! A month keeps one as long as a week says it: a deletion or change by a person applies here too.
//!
//! Such bullets count towards the maximum length of the file, and the draft gets the remaining
//! room; none is dropped for the length. The file names its missing sources, so that it is made
//! again from them when they return.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::compaction::{grounding::Violation, plan::CompactionJob};
use crate::{
    engine::{LengthBudget, WeekSource},
    memory::{
        address::{Address, Citation, Stem, is_removed_line},
        document::{BulletOwner, Summary, SummaryHeader},
        item::{Item, SummarySection, Tier},
        log::TextOrigin,
        period::{Grain, Period},
    },
    privacy::quarantine,
    store::fs::inventory::Inventory,
};

/// Our bullets whose logs are gone, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct OrphanedItems {
    items: Vec<(SummarySection, Item)>,
}

/// Per weekly file, the lines that our bullets cite there.
pub(crate) type WeekCitations = BTreeMap<Period, HashSet<Address>>;

impl OrphanedItems {
    /// Finds the orphaned items of the present file.
    pub(crate) fn of(
        current: Option<&Summary>,
        inventory: &Inventory,
        said: &WeekCitations,
    ) -> Self {
        let Some(current) = current.filter(|it| it.header.is_some()) else {
            return Self::default();
        };
        let is_said = |stem: &Stem, line| {
            let week = said.get(&Period::containing(Grain::Week, stem.date()));
            week.is_none_or(|it| it.contains(&Address { stem: stem.clone(), line }))
        };
        let rests_on_gone = |citation: &Citation| {
            let mut gone = citation.files().filter(|(stem, _)| is_log_missing(inventory, stem));
            gone.any(|(stem, lines)| lines.iter().any(|line| is_said(stem, line)))
        };
        let owners = current.ownership().owners;
        let ours =
            current.bullets().zip(owners).filter(|(_, owner)| *owner == BulletOwner::Memoird);
        let items = ours
            .filter(|((_, item, _), _)| item.citation.as_ref().is_some_and(rests_on_gone))
            .filter_map(|((_, item, section), _)| Some((section?, item.clone())));
        Self { items: items.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns their length, headings included.
    pub(crate) fn chars(&self) -> usize {
        let bullets: usize =
            self.items.iter().map(|(_, it)| it.text.chars().count() + "- \n".len()).sum();
        let sections: BTreeSet<SummarySection> = self.items.iter().map(|it| it.0).collect();
        let heads = sections.iter().map(|it| it.title().chars().count() + "\n### \n".len());
        bullets + heads.sum::<usize>()
    }

    /// Returns a note if they alone exceed the maximum length.
    pub(crate) fn note(&self, max_chars: usize) -> Option<String> {
        let chars = self.chars();
        (max_chars > 0 && chars > max_chars).then(|| {
            format!("orphaned items have {chars} characters, more than max_chars: {max_chars}")
        })
    }

    /// Returns the budget of a draft that shares the file with them.
    ///
    /// Short sources, which would be copied completely, are copied as far as there is room.
    pub(crate) fn remaining_budget(
        &self,
        budget: LengthBudget,
        chars: usize,
        max_chars: usize,
    ) -> LengthBudget {
        if self.items.is_empty() || max_chars == 0 {
            return budget;
        }
        let room = max_chars.saturating_sub(self.chars());
        if !budget.verbatim {
            let LengthBudget { target_chars, limit_chars, verbatim: whole } = budget;
            return LengthBudget {
                target_chars: target_chars.min(room),
                limit_chars: limit_chars.min(room),
                verbatim: whole,
            };
        }
        if chars <= room {
            return budget;
        }
        LengthBudget { target_chars: room, limit_chars: room, verbatim: false }
    }

    /// Inserts them before the drafted items, section by section. A drafted item is dropped if they
    /// cite all its lines.
    pub(crate) fn merge_into(
        self,
        mut sections: Vec<(SummarySection, Vec<Item>)>,
    ) -> Vec<(SummarySection, Vec<Item>)> {
        let said = |item: &Item| {
            self.items.iter().any(|(_, kept)| kept.text == item.text || is_covered_by(item, kept))
        };
        for (_, items) in &mut sections {
            items.retain(|it| !said(it));
        }
        for (section, item) in self.items.iter().rev() {
            let at = sections.partition_point(|(it, _)| it < section);
            if sections.get(at).is_none_or(|(it, _)| it != section) {
                sections.insert(at, (*section, Vec::new()));
            }
            sections[at].1.insert(0, item.clone());
        }
        sections
    }
}

fn is_log_missing(inventory: &Inventory, stem: &Stem) -> bool {
    !stem.is_summary() && !inventory.logs.contains_key(stem)
}

/// Accepts items that were rejected only because a log or a cited line is gone, if a week says the same:
/// they were checked while it existed. Returns the others.
pub(crate) fn restore_orphaned(
    sections: &mut Vec<(SummarySection, Vec<Item>)>,
    rejected: Vec<(SummarySection, Item, Violation)>,
    weeks: &[WeekSource],
    inventory: &Inventory,
) -> Vec<(SummarySection, Item, Violation)> {
    let rests_on_gone = |it: &Citation| it.files().any(|(stem, _)| is_log_missing(inventory, stem));
    let is_said = |item: &Item| {
        let mut below = weeks.iter().flat_map(|it| &it.items).map(|it| &it.1);
        below.any(|it| it.text == item.text && is_covered_by(item, it))
    };
    let is_of_gone = |item: &Item, why: &Violation| match why {
        Violation::LineMissing { address } if is_removed_line(address.line) => {
            quarantine::concerns(&item.text, TextOrigin::Agent).is_empty()
        }
        _ => item.citation.as_ref().is_some_and(rests_on_gone),
    };
    let (of_gone, others): (Vec<_>, Vec<_>) =
        rejected.into_iter().partition(|(_, it, why)| is_of_gone(it, why) && is_said(it));
    for (section, item, _) in of_gone {
        let at = sections.partition_point(|(it, _)| *it < section);
        if sections.get(at).is_none_or(|(it, _)| *it != section) {
            sections.insert(at, (section, Vec::new()));
        }
        sections[at].1.push(item);
    }
    others
}

fn is_covered_by(item: &Item, kept: &Item) -> bool {
    let (Some(item), Some(kept)) = (&item.citation, &kept.citation) else { return false };
    kept.covers(item)
}

/// Returns the missing sources of a job, by name; for a month also the logs of its weeks.
pub(crate) fn missing_sources(
    job: &CompactionJob,
    inventory: &Inventory,
    old: Option<&SummaryHeader>,
) -> Vec<String> {
    let mut named: BTreeSet<&String> =
        old.iter().flat_map(|it| it.sources.keys().chain(&it.missing_sources)).collect();
    if job.tier == Tier::Monthly {
        let weeks = job.period.weeks();
        let files = weeks.iter().filter_map(|it| inventory.weekly.get(it));
        named.extend(files.filter_map(|it| it.header.as_ref()).flat_map(|it| it.sources.keys()));
    }
    let is_there = |name: &str| {
        job.inputs.contains_key(name)
            || name.parse::<Stem>().is_ok_and(|it| inventory.logs.contains_key(&it))
    };
    named.into_iter().filter(|it| !is_there(it)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(bullets: &[&str]) -> OrphanedItems {
        let item = |it: &&str| (SummarySection::Decisions, Item::parse(it));
        OrphanedItems { items: bullets.iter().map(item).collect() }
    }

    #[test]
    fn the_draft_gets_the_room_that_is_left() {
        let it = kept(&["0123456789 [2026-04-02:1]"]);
        assert_eq!(it.chars(), 13 + "\n### Decisions\n".len());
        let share = LengthBudget { target_chars: 300, limit_chars: 350, verbatim: false };
        let whole =
            LengthBudget { target_chars: usize::MAX, limit_chars: usize::MAX, verbatim: true };
        for (budget, chars, max, expected) in [
            (share, 1000, 0, (300, 350, false)),
            (share, 1000, 10_000, (300, 350, false)),
            (share, 1000, 328, (300, 300, false)),
            (share, 1000, 20, (0, 0, false)),
            (whole, 100, 10_000, (usize::MAX, usize::MAX, true)),
            (whole, 100, 100, (72, 72, false)),
        ] {
            let found = it.remaining_budget(budget, chars, max);
            assert_eq!((found.target_chars, found.limit_chars, found.verbatim), expected, "{max}");
        }
        assert_eq!(OrphanedItems::default().remaining_budget(share, 1000, 20).target_chars, 300);
        assert!(it.note(20).is_some() && it.note(28).is_none() && it.note(0).is_none());
    }

    #[test]
    fn orphaned_items_come_first_and_once() {
        let it = kept(&["one [2026-04-02:1; 2026-04-03:1]", "two [2026-04-02:2]"]);
        let drafted = vec![(
            SummarySection::Decisions,
            vec![Item::parse("one again [2026-04-03:1]"), Item::parse("three [2026-04-03:2]")],
        )];
        let joined = it.merge_into(drafted);
        let texts: Vec<&str> = joined[0].1.iter().map(|it| &it.text[..]).collect();
        assert_eq!((joined.len(), texts), (1, vec!["one", "two", "three"]));
    }
}
