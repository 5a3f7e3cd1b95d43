//! What a model would be asked, without asking.

use std::collections::BTreeSet;

use super::{
    memories::{day_reader::KnownMemories, memory_match, seen_lines::SeenLines},
    plan::{CompactionJob, CompactionPlan, DueReason},
    snapshot::RootSnapshot,
    summary::{
        draft::{CorpusReader, SummaryDrafter, read_logs},
        week_batch::WeekBatch,
    },
};
use crate::{
    config::root::RootSettings,
    engine::{Engine, ExtractInput},
    memory::{
        item::Tier,
        period::{Grain, Period},
    },
    store::fs::vault::{Vault, VaultError},
};

/// Has `engine` draft each job of a plan whose sources exist, and discards the drafts. An engine
/// whose client only records requests sends nothing.
///
/// Left out are jobs that follow others, and edits of `WISDOM.md`: their sources are not made yet.
pub(crate) fn preview_requests(
    vault: &Vault,
    settings: &RootSettings,
    view: &RootSnapshot,
    plan: &CompactionPlan,
    engine: &dyn Engine,
) -> Result<(), VaultError> {
    let mut corpus = CorpusReader::default();
    let drafter = || SummaryDrafter {
        vault,
        engine,
        settings: &settings.settings.compaction,
        inventory: &view.inventory,
    };
    let rules = &view.inventory.rules;
    let of_tier = |tier| -> Vec<CompactionJob> {
        plan.jobs.iter().filter(|it| it.tier == tier).cloned().collect()
    };
    let (days, weeks) = (of_tier(Tier::Extract), of_tier(Tier::Weekly));
    let memories = &view.inventory.memories;
    let known = KnownMemories::of(vault, &days, memories, rules);
    let existing = memory_match::sanitized_memories(&known.intact(), vault, rules);
    let mut seen_lines = SeenLines::of(vault, &days, view)?;
    let mut batch = WeekBatch::new(drafter(), &weeks, &days);
    let mut asked = BTreeSet::new();
    // In the order of a run: days and weeks, the newest first. There are no drafts, on purpose.
    for job in days.iter().rev() {
        let week = Period::containing(Grain::Week, job.period.first());
        let is_alone = !asked.contains(&week)
            && matches!(batch.extraction_for(job, &existing, &|_, _| Ok(())), Ok(None));
        if !is_alone {
            asked.insert(week);
        }
        let logs = read_logs(vault, job, rules).unwrap_or_default();
        for log in &logs {
            let is_forced = job.reason == DueReason::Forced;
            let news = if is_forced { Some(log.clone()) } else { seen_lines.unseen_lines(log) };
            if let Some(log) = news.as_ref().filter(|_| is_alone) {
                drop(engine.extract(&ExtractInput::unchecked(log, &existing)));
            }
        }
        for log in &logs {
            seen_lines.add(log);
        }
    }
    let summaries = plan.jobs.iter().filter(|it| matches!(it.tier, Tier::Weekly | Tier::Monthly));
    for job in summaries.rev().filter(|it| !asked.contains(&it.period)) {
        corpus.prepare([job.period], vault, &view.inventory)?;
        drop(drafter().draft(job, corpus.counts(job.period)));
    }
    Ok(())
}
