//! What would be asked of a model, without asking.

use super::{
    View,
    draft::{CorpusReader, Drafter, read_logs},
    nearby::Nearby,
    plan::{Plan, Reason},
};
use crate::{
    config::root::RootSettings,
    engine::{Engine, ExtractInput},
    memory::item::Tier,
    store::vault::{Vault, VaultError},
};

/// Has `engine` draft each job of a plan whose sources stand there, and throws the drafts away. With an
/// engine whose door only takes notes, nothing is sent.
///
/// Jobs that follow others, and edits of `WISDOM.md`, rest on what is not made yet, and are left out.
///
/// # Errors
///
/// Returns why the logs cannot be read.
pub fn draft_all(
    vault: &Vault,
    settings: &RootSettings,
    view: &View,
    plan: &Plan,
    engine: &dyn Engine,
) -> Result<(), VaultError> {
    let mut corpus = CorpusReader::default();
    let drafter = Drafter {
        vault,
        engine,
        settings: &settings.settings.compaction,
        inventory: &view.inventory,
    };
    let rules = &view.inventory.rules;
    let mut nearby = Nearby::of(vault, &plan.jobs, view)?;
    // As a pass asks: days and weeks from the newest on.
    for job in plan.jobs.iter().rev() {
        match job.tier {
            Tier::Weekly | Tier::Monthly => {
                corpus.prepare([job.period], vault, &view.inventory)?;
                // That there is no draft is the point of it.
                drop(drafter.draft(job, corpus.counts(job.period)));
            }
            Tier::Extract => {
                let logs = read_logs(vault, job, rules).unwrap_or_default();
                for log in &logs {
                    let is_forced = job.reason == Reason::Forced;
                    let news = if is_forced { Some(log.clone()) } else { nearby.news(log) };
                    let existing = &view.inventory.memories;
                    if let Some(log) = &news {
                        drop(engine.extract(&ExtractInput { log, existing }));
                    }
                }
                for log in &logs {
                    nearby.add(log);
                }
            }
            Tier::Wisdom => {}
        }
    }
    Ok(())
}
