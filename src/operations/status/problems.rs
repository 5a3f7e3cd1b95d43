//! Problems that the user should look at.

use std::path::Path;

use serde::Serialize;

use super::sessions::SessionQueueStatus;
use crate::{
    compaction::{
        RootSnapshot,
        plan::{CompactionPlan, damage::Damage},
    },
    memory::{
        address::Stem,
        log::{DailyLog, OriginError, may_declare_origin},
    },
    operations::workspace::{Invocation, MemoryRoot},
    parallel,
    store::fs::{
        inventory::{Inventory, LogFile},
        layout::ROOT_FILE,
        vault::{VaultError, read::FolderCache},
    },
};

#[derive(Serialize)]
pub(crate) struct StatusProblem {
    pub(crate) path: String,
    pub(crate) reason: String,
}

pub(crate) fn collect_problems(
    root: &MemoryRoot,
    view: &RootSnapshot,
    plan: &CompactionPlan,
    logs: LogScan,
) -> Vec<StatusProblem> {
    let found = view.inventory.problems.iter().chain(&plan.problems);
    let mut problems: Vec<StatusProblem> = found
        .map(|it| StatusProblem { path: it.path.clone(), reason: it.reason.clone() })
        .collect();
    problems.extend(missing_sources(root, &view.inventory));
    problems.extend(
        root.settings.ignored_keys.iter().map(|key| StatusProblem {
            path: ROOT_FILE.to_owned(),
            reason: ignored_key_message(key),
        }),
    );
    problems.extend(logs.unread_origins);
    // The scan has reported merge conflicts already.
    let damaged = view.record.damaged.iter().filter(|(_, why)| **why != Damage::MergeConflict);
    problems.extend(
        damaged.map(|(path, why)| StatusProblem { path: path.clone(), reason: why.to_string() }),
    );
    let unreadable = view.inventory.decisions.unreadable();
    if !unreadable.is_empty() {
        let lines: Vec<String> = unreadable.iter().map(usize::to_string).collect();
        problems.push(StatusProblem {
            path: root.vault.layout().decisions(),
            reason: format!("cannot read line {}, which is ignored", lines.join(", ")),
        });
    }
    problems
}

/// Says that no folder serves what belongs to no project, because several could; `None` if one does, or if nothing asks
/// for one: neither are there memory folders for projects, nor did a session find no folder.
pub(crate) fn rival_folders_message(call: &Invocation) -> Option<String> {
    let general = call.config.general_roots();
    if general.len() < 2 {
        return None;
    }
    let has_projects = call.config.projects_dir(&call.environment).is_some();
    let is_asked_for = has_projects || SessionQueueStatus::has_homeless(call);
    is_asked_for.then(|| {
        let names: Vec<String> = general.iter().map(|it| it.display().to_string()).collect();
        format!(
            "sessions without a folder of their own are saved in none of {}: only one of them may have no `project`; \
             give each other one its own folder as `project` (`memoird config edit`)",
            names.join(", ")
        )
    })
}

/// Returns this problem, if a folder is one of those that it is about.
pub(crate) fn rival_problem(call: &Invocation, root: &Path) -> Option<StatusProblem> {
    let is_rival = call.config.general_roots().contains(&root);
    let reason = rival_folders_message(call).filter(|_| is_rival)?;
    let file = call.config.file.as_ref().map(|it| it.display().to_string());
    Some(StatusProblem { path: file.unwrap_or_default(), reason })
}

/// Says that a folder's own file cannot loosen what the user's configuration decides.
pub(crate) fn ignored_key_message(key: &str) -> String {
    format!("`{key}` has no effect here: this file travels with the folder; set it in config.yaml")
}

/// What needs the bytes of all logs. Each log is read only once, because this is most of the work.
pub(crate) struct LogScan {
    pub(crate) chars: usize,
    /// Logs whose frontmatter has an invalid origin.
    pub(crate) unread_origins: Vec<StatusProblem>,
}

impl LogScan {
    pub(crate) fn read(root: &MemoryRoot, inventory: &Inventory) -> Result<Self, VaultError> {
        let folders = root.vault.folder_cache();
        let files: Vec<(&Stem, &LogFile)> = inventory.logs.iter().collect();
        let mut logs = Self { chars: 0, unread_origins: Vec::new() };
        for read in parallel::map(&files, |(stem, file)| Self::read_log(&folders, stem, file)) {
            let (chars, unread_origin) = read?;
            logs.chars += chars;
            logs.unread_origins.extend(unread_origin);
        }
        Ok(logs)
    }

    fn read_log(
        folders: &FolderCache<'_>,
        stem: &Stem,
        file: &LogFile,
    ) -> Result<(usize, Option<StatusProblem>), VaultError> {
        // A log that was deleted meanwhile has no characters.
        let Some(found) = folders.read(&file.path)? else { return Ok((0, None)) };
        // The scan reports logs that cannot be parsed.
        let log = DailyLog::parse(stem.clone(), &found.bytes).ok();
        let chars = match &log {
            Some(log) => log.body_chars(),
            None => String::from_utf8_lossy(&found.bytes).chars().count(),
        };
        if !may_declare_origin(&found.bytes) {
            return Ok((chars, None));
        }
        let error = log.and_then(|it| it.origin_error);
        let problem = |error: OriginError| StatusProblem {
            path: file.path.clone(),
            reason: error.to_string(),
        };
        Ok((chars, error.map(problem)))
    }
}

/// Returns the missing logs that weekly summaries cite.
fn missing_sources(root: &MemoryRoot, inventory: &Inventory) -> Vec<StatusProblem> {
    let layout = root.vault.layout();
    let mut problems = Vec::new();
    for file in inventory.weekly.values() {
        let sources = file.header.iter().flat_map(|it| it.sources.keys());
        let stems = sources.filter_map(|it| it.parse::<Stem>().ok());
        for stem in stems.filter(|it| !inventory.logs.contains_key(it)) {
            let path = layout.source_path(&stem);
            if !root.vault.exists(&path) {
                let reason = format!("source gone; {} keeps what it says about it", file.path);
                problems.push(StatusProblem { path, reason });
            }
        }
    }
    problems
}
