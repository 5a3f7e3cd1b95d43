//! What a person should look at.

use serde::Serialize;

use crate::{
    commands::{context::Root, error::CommandError},
    compaction::{View, plan::Plan},
    memory::{
        address::Stem,
        log::{DailyLog, may_tell_origin},
    },
    store::inventory::Inventory,
};

#[derive(Serialize)]
pub(super) struct Problem {
    pub(super) path: String,
    pub(super) reason: String,
}

pub(super) fn found_problems(root: &Root, view: &View, plan: &Plan, logs: Logs) -> Vec<Problem> {
    let found = view.inventory.problems.iter().chain(&plan.problems);
    let mut problems: Vec<Problem> =
        found.map(|it| Problem { path: it.path.clone(), reason: it.reason.clone() }).collect();
    problems.extend(gone_sources(root, &view.inventory));
    problems.extend(logs.unread_origins);
    let held = view.record.held.iter();
    problems
        .extend(held.map(|(path, why)| Problem { path: path.clone(), reason: why.to_string() }));
    let unreadable = view.inventory.decisions.unreadable();
    if !unreadable.is_empty() {
        let lines: Vec<String> = unreadable.iter().map(usize::to_string).collect();
        problems.push(Problem {
            path: root.vault.layout().decisions(),
            reason: format!("cannot read line {} and passes over it", lines.join(", ")),
        });
    }
    problems
}

/// What only the bytes of the logs say. Each is read once: with many, that is most of the work.
pub(super) struct Logs {
    pub(super) chars: usize,
    /// Those whose frontmatter says of their origin what nobody understands.
    pub(super) unread_origins: Vec<Problem>,
}

impl Logs {
    pub(super) fn read(root: &Root, inventory: &Inventory) -> Result<Self, CommandError> {
        let mut logs = Self { chars: 0, unread_origins: Vec::new() };
        for (stem, file) in &inventory.logs {
            // One that went away meanwhile has no characters.
            let Some(found) = root.vault.read(&file.path)? else { continue };
            logs.chars += String::from_utf8_lossy(&found.bytes).chars().count();
            if !may_tell_origin(&found.bytes) {
                continue;
            }
            // One that cannot be read is told by the scan.
            let log = DailyLog::parse(stem.clone(), &found.bytes).ok();
            if let Some(error) = log.and_then(|it| it.origin_error) {
                let (path, reason) = (file.path.clone(), error.to_string());
                logs.unread_origins.push(Problem { path, reason });
            }
        }
        Ok(logs)
    }
}

/// Names the logs that weekly files rest on and that are no longer there.
fn gone_sources(root: &Root, inventory: &Inventory) -> Vec<Problem> {
    let layout = root.vault.layout();
    let mut problems = Vec::new();
    for file in inventory.weekly.values() {
        let sources = file.header.iter().flat_map(|it| it.sources.keys());
        let stems = sources.filter_map(|it| it.parse::<Stem>().ok());
        for stem in stems.filter(|it| !inventory.logs.contains_key(it)) {
            let path = layout.source(&stem);
            if !root.vault.is_taken(&path) {
                let reason = format!("source gone; what {} says of it stays", file.path);
                problems.push(Problem { path, reason });
            }
        }
    }
    problems
}
