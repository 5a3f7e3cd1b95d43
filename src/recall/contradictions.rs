//! Statements of an agent's own notes that newer logs contradict, for review.

use super::search;
use crate::{
    compaction::{plan::states_from, review::ReviewContradiction},
    engine::extractive,
    memory::address::Stem,
    parallel,
    privacy::{self, SanitizedLog},
    store::fs::{
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
};

/// Finds what the logs of the newest days contradict in the curated files; with `decided` also what a person refused.
pub(crate) fn find_contradictions(
    vault: &Vault,
    inventory: &Inventory,
    decided: bool,
) -> Result<Vec<ReviewContradiction>, VaultError> {
    let rules = &inventory.rules;
    let (paths, notes): (Vec<&String>, Vec<SanitizedLog>) =
        inventory.curated.iter().filter_map(|it| Some((&it.path, it.sanitized(rules)?))).unzip();
    let newest = inventory.logs.keys().next_back().filter(|_| !notes.is_empty());
    let Some(newest) = newest.map(Stem::date) else { return Ok(Vec::new()) };
    let stems: Vec<&Stem> =
        inventory.logs.keys().filter(|it| it.date() >= states_from(Some(newest))).collect();
    let mut logs = Vec::with_capacity(stems.len());
    for log in parallel::map(&stems, |it| vault.read_log(it)) {
        logs.extend(log?.map(|it| privacy::sanitize(&it, rules)));
    }
    let found = extractive::find_contradictions(&notes, &logs, &search::is_ended_by);
    let found = found.into_iter().map(|it| {
        let path = paths[it.notes].clone();
        ReviewContradiction::new(path, it, &inventory.decisions)
    });
    Ok(found.filter(|it| decided || it.verdict.is_none()).collect())
}
