//! What `memoird init` found and did, for people and as JSON.

use std::{collections::BTreeMap, path::PathBuf};

use chrono::NaiveDate;
use serde::Serialize;

use crate::{
    commands::ui::{self, Ui, human_size},
    memory::{
        address::Stem,
        period::{Grain, Period},
        wisdom::WisdomFile,
    },
    operations::format::counted,
    store::fs::inventory::{Inventory, SummaryFile},
};

/// How many skipped files are listed one by one.
const PROBLEMS_SHOWN_MAX: usize = 10;

/// What `--json` prints.
#[derive(Serialize)]
pub(super) struct InitReport {
    pub(super) root: PathBuf,
    pub(super) agent_name: String,
    pub(super) zone: String,
    pub(super) memory_dir: String,
    pub(super) dry_run: bool,
    /// The day of the call, in the zone of the folder.
    #[serde(skip)]
    pub(super) today: NaiveDate,
    pub(super) found: FolderContents,
    /// What was written, or in a dry run would be: relative to the root, otherwise absolute.
    pub(super) wrote: Vec<String>,
    /// Changes to the settings of agent programs, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) hooks: Vec<String>,
    /// Whether hooks were added.
    #[serde(skip)]
    pub(super) hooks_changed: bool,
    /// What is left for the user to do, in sentences.
    pub(super) to_do: Vec<String>,
    /// The folder that keeps the sessions without a folder of their own, if this one gets only those in it.
    #[serde(skip)]
    pub(super) general: Option<PathBuf>,
}

/// What the folder contained before.
#[derive(Default, Serialize)]
pub(super) struct FolderContents {
    logs: usize,
    log_bytes: u64,
    first_log: Option<NaiveDate>,
    last_log: Option<NaiveDate>,
    weekly: usize,
    weekly_foreign: usize,
    monthly: usize,
    monthly_foreign: usize,
    memories: usize,
    index: bool,
    wisdom_entries: usize,
    wisdom_entries_own: usize,
    wisdom: bool,
    /// How many quarantined lines and proposed changes wait for a person.
    to_review: usize,
    /// Files that are skipped although their names resemble ours.
    problems: Vec<SkippedFile>,
}

#[derive(Serialize)]
struct SkippedFile {
    path: String,
    reason: String,
}

impl FolderContents {
    pub(super) fn new(inventory: &Inventory, to_review: usize) -> Self {
        let foreign = |files: &BTreeMap<Period, SummaryFile>| {
            files.values().filter(|it| it.header.is_none()).count()
        };
        let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
        let entries = || wisdom.iter().flat_map(WisdomFile::entries);
        Self {
            logs: inventory.logs.len(),
            log_bytes: inventory.logs.values().map(|it| it.stamp.size).sum(),
            first_log: inventory.logs.keys().next().map(Stem::date),
            last_log: inventory.logs.keys().next_back().map(Stem::date),
            weekly: inventory.weekly.len(),
            weekly_foreign: foreign(&inventory.weekly),
            monthly: inventory.monthly.len(),
            monthly_foreign: foreign(&inventory.monthly),
            memories: inventory.memories.len(),
            index: inventory.index.is_some(),
            wisdom_entries: entries().count(),
            wisdom_entries_own: entries().filter(|it| !it.is_managed()).count(),
            wisdom: wisdom.is_some(),
            to_review,
            problems: inventory
                .problems
                .iter()
                .map(|it| SkippedFile { path: it.path.clone(), reason: it.reason.clone() })
                .collect(),
        }
    }

    pub(super) fn has_logs(&self) -> bool {
        self.logs > 0
    }

    /// Returns the day after the first week with logs.
    fn first_week_end(&self) -> Option<NaiveDate> {
        Some(Period::containing(Grain::Week, self.first_log?).end())
    }

    /// Returns what memoird may have written, with the command that shows it.
    fn generated(&self) -> Vec<String> {
        let mut there = Vec::new();
        if self.wisdom {
            there.push("WISDOM.md (`memoird show WISDOM.md`)".to_owned());
        }
        if self.memories > 0 {
            let count = counted(self.memories, "typed memory", "typed memories");
            there.push(format!("{count} (`memoird memories`)"));
        }
        if self.weekly > 0 {
            there.push("a provisional week (`memoird status`)".to_owned());
        }
        there
    }

    /// Returns lines that say what was found and how memoird treats it.
    pub(super) fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(first), Some(last)) = (self.first_log, self.last_log) {
            lines.push(format!(
                "{} from {first} to {last}, {}: read, never changed",
                counted(self.logs, "log", "logs"),
                human_size(self.log_bytes)
            ));
        }
        for (all, foreign, one, many) in [
            (self.weekly, self.weekly_foreign, "weekly file", "weekly files"),
            (self.monthly, self.monthly_foreign, "monthly file", "monthly files"),
        ] {
            if all > foreign {
                lines.push(format!("{} written by memoird", counted(all - foreign, one, many)));
            }
            if foreign > 0 {
                lines.push(format!(
                    "{} not written by memoird: read, never changed",
                    counted(foreign, one, many)
                ));
            }
        }
        if self.memories > 0 {
            let all = counted(self.memories, "typed memory", "typed memories");
            lines.push(format!("{all}: those that people wrote are read, never changed"));
        }
        if self.index {
            lines.push("MEMORY.md: memoird updates its own block and keeps the rest".to_owned());
        }
        if self.wisdom {
            let own = counted(self.wisdom_entries_own, "entry", "entries");
            lines.push(match self.wisdom_entries - self.wisdom_entries_own {
                _ if self.wisdom_entries == 0 => {
                    "WISDOM.md: memoird updates its own lines and keeps the rest".to_owned()
                }
                0 => format!("WISDOM.md with {own} that people wrote: kept as written"),
                ours => format!(
                    "WISDOM.md with {} by memoird and {own} that people wrote",
                    counted(ours, "entry", "entries")
                ),
            });
        }
        if self.to_review > 0 {
            lines.push(review_note(self.to_review, "memoird review"));
        }
        if lines.is_empty() {
            let none =
                if self.problems.is_empty() { "nothing yet" } else { "nothing that is read" };
            lines.push(none.to_owned());
        }
        lines
    }
}

/// Says how many entries wait for a person, with the command that lists them.
pub(super) fn review_note(waiting: usize, command: &str) -> String {
    format!("{waiting} waiting for review: `{command}`")
}

impl InitReport {
    /// Returns lines that name the files that are skipped, and why.
    pub(super) fn skipped_files(&self) -> Vec<String> {
        let mut left: Vec<String> = self
            .found
            .problems
            .iter()
            .take(PROBLEMS_SHOWN_MAX)
            .map(|it| ui::one_line(&format!("{}: {}", it.path, it.reason)))
            .collect();
        if let Some(more) =
            self.found.problems.len().checked_sub(PROBLEMS_SHOWN_MAX).filter(|it| *it > 0)
        {
            left.push(format!("and {more} more"));
        }
        left
    }

    pub(super) fn print(&self, ui: &Ui) {
        ui.note(format_args!("{} ({}, {})", self.root.display(), self.agent_name, self.zone));
        let say = |label: &str, lines: &[String]| {
            for (i, line) in lines.iter().enumerate() {
                ui.note(format_args!("  {:<12}{line}", if i == 0 { label } else { "" }));
            }
        };
        say("found", &self.found.describe());
        say("skipped", &self.skipped_files());
        say(if self.dry_run { "would write" } else { "wrote" }, &self.wrote);
        let sessions = self.general.iter().map(|it| {
            let general = it.display();
            format!("those in this folder; {general} keeps those without a folder of their own")
        });
        say("sessions", &sessions.collect::<Vec<_>>());
        say("hooks", &self.hooks);
        say("to do", &self.to_do);
        if self.dry_run && (!self.wrote.is_empty() || self.hooks_changed) {
            ui.note("nothing was changed; to do it, leave out --dry-run");
        } else if self.wrote.is_empty() && self.hooks_changed {
            ui.success("hooks installed; the folder was already set up");
        } else if self.wrote.is_empty() && !self.hooks.is_empty() && !self.to_do.is_empty() {
            ui.note(
                "nothing was changed; the folder was already set up, and `to do` says what is left",
            );
        } else if self.wrote.is_empty() && !self.hooks.is_empty() {
            ui.success("nothing to do: the folder and the hooks are already set up");
        } else if self.wrote.is_empty() {
            ui.success("nothing to do: the folder is already set up");
        } else if self.found.logs == 0 {
            ui.success("ready; write the first entry: `memoird log TEXT`");
        } else if let Some(end) = self.found.first_week_end().filter(|it| *it > self.today) {
            let there = match self.found.generated() {
                there if there.is_empty() => String::new(),
                there => format!("; there already: {}", there.join(", ")),
            };
            ui.success(format!(
                "ready{there}; `memoird compact` writes memories and WISDOM.md of closed days now, and the first \
                 weekly summary after its week has ended, on {end}"
            ));
        } else {
            ui.success(
                "ready; `memoird compact --dry-run` shows what is due, `memoird compact` runs it",
            );
        }
    }
}
