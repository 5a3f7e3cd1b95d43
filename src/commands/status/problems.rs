//! What a person should look at.

use serde::Serialize;

use crate::{
    commands::context::Root,
    compaction::{View, plan::Plan},
    memory::{
        address::Stem,
        log::{DailyLog, OriginError, may_tell_origin},
    },
    parallel,
    store::{
        inventory::{Inventory, LogFile},
        vault::{VaultError, read::Folders},
    },
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
    pub(super) fn read(root: &Root, inventory: &Inventory) -> Result<Self, VaultError> {
        let folders = root.vault.folders();
        let files: Vec<(&Stem, &LogFile)> = inventory.logs.iter().collect();
        let mut logs = Self { chars: 0, unread_origins: Vec::new() };
        for read in parallel::map(&files, |(stem, file)| Self::of(&folders, stem, file)) {
            let (chars, unread_origin) = read?;
            logs.chars += chars;
            logs.unread_origins.extend(unread_origin);
        }
        Ok(logs)
    }

    fn of(
        folders: &Folders<'_>,
        stem: &Stem,
        file: &LogFile,
    ) -> Result<(usize, Option<Problem>), VaultError> {
        // One that went away meanwhile has no characters.
        let Some(found) = folders.read(&file.path)? else { return Ok((0, None)) };
        let chars = String::from_utf8_lossy(&found.bytes).chars().count();
        if !may_tell_origin(&found.bytes) {
            return Ok((chars, None));
        }
        // One that cannot be read is told by the scan.
        let error = DailyLog::parse(stem.clone(), &found.bytes).ok().and_then(|it| it.origin_error);
        let told =
            |error: OriginError| Problem { path: file.path.clone(), reason: error.to_string() };
        Ok((chars, error.map(told)))
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
