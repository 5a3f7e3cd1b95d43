//! The state of a folder in short, for the page.

use std::path::Path;

use chrono::{DateTime, Utc};

use super::{StatusReport, daemon, engine, jobs::StuckJob, root_status};
use crate::operations::{
    error::CommandResult,
    format::counted,
    workspace::{Invocation, MemoryRoot},
};

/// What is due, stuck, or wrong in a folder, from the same report as `memoird status`.
#[derive(Clone, Debug)]
pub(crate) struct FolderHealth {
    /// What is due now or follows from it, in the order of a run.
    pub(crate) due: Vec<JobState>,
    /// Stuck jobs, which wait for a person.
    pub(crate) stuck: Vec<JobState>,
    /// Due jobs that failed when they were last tried.
    pub(crate) failed: Vec<JobState>,
    /// Undone jobs that wait for changed sources.
    pub(crate) undone: Vec<JobState>,
    /// Files that need attention: path, and why.
    pub(crate) problems: Vec<(String, String)>,
    /// How many entries wait for review.
    pub(crate) review: usize,
    /// What becomes due next, and when.
    pub(crate) next_due: Option<String>,
    /// When this may become another although no file changes.
    pub(crate) valid_until: DateTime<Utc>,
}

/// The engine of a folder, and what is left of its budgets.
#[derive(Clone, Debug)]
pub(crate) struct EngineHealth {
    /// The engine, and whether it is ready.
    pub(crate) engine: String,
    /// The use of each budget: its name, and `0.12 of 1.00 USD, 14 of 200 calls`.
    pub(crate) budgets: Vec<(&'static str, String)>,
}

impl EngineHealth {
    /// Reads settings and ledger, as `memoird status` does.
    pub(crate) fn read(call: &Invocation, root: &MemoryRoot) -> CommandResult<Self> {
        let (model, budget) = engine::engine_status(call, root)?;
        let name = model.model.as_deref().unwrap_or(model.engine);
        let budgets = [("today", &budget.day), ("this month", &budget.month)];
        Ok(Self {
            engine: match &model.state {
                Some(state) => format!("{name}: {state}"),
                None => name.to_owned(),
            },
            budgets: budgets
                .into_iter()
                .filter_map(|(name, it)| Some((name, it.as_ref()?.describe())))
                .collect(),
        })
    }
}

/// Returns the state of the folder's daemon in a few words: `running`, `not running`. It changes without any file.
pub(crate) fn daemon_state(root: &MemoryRoot) -> CommandResult<&'static str> {
    let zone = root.settings.zone.name.0;
    Ok(daemon::daemon_status(root, zone)?.0.state())
}

/// A job of one period, and why it is in its state.
#[derive(Clone, Debug)]
pub(crate) struct JobState {
    /// `extract`, `weekly`, `monthly`, or `wisdom`.
    pub(crate) tier: &'static str,
    /// The name of the period.
    pub(crate) period: String,
    pub(crate) reason: String,
}

impl FolderHealth {
    /// Reads the state of the folder at `path`.
    pub(crate) fn read(call: &Invocation, path: &Path) -> CommandResult<Self> {
        Ok(Self::of(&root_status(call, path)?))
    }

    fn of(status: &StatusReport) -> Self {
        let job = |it: &StuckJob| JobState {
            tier: it.tier,
            period: it.period.clone(),
            reason: it.reason.clone(),
        };
        let due = status.tiers.iter().flat_map(|tier| {
            tier.due.iter().map(|it| JobState {
                tier: tier.tier,
                period: it.period.clone(),
                reason: it.reason.clone(),
            })
        });
        Self {
            due: due.collect(),
            stuck: status.blocked.parked.iter().map(job).collect(),
            failed: status.blocked.failed.iter().map(job).collect(),
            undone: status.blocked.undone.iter().map(job).collect(),
            problems: status
                .files
                .problems
                .iter()
                .map(|it| (it.path.clone(), it.reason.clone()))
                .collect(),
            review: status.files.quarantined,
            next_due: status
                .runs
                .next_due
                .as_ref()
                .map(|it| format!("{} {}, {}", it.tier, it.period, it.shown)),
            valid_until: status.runs.plan_valid_until,
        }
    }

    /// Returns the state in one line, with that of the daemon: `nothing due · 2 to review · daemon running`.
    pub(crate) fn line(&self, daemon: &str) -> String {
        let mut parts = Vec::new();
        let blocked = self.stuck.len() + self.failed.len();
        if blocked > 0 {
            parts.push(format!("{} failed or stuck", counted(blocked, "job", "jobs")));
        }
        if !self.problems.is_empty() {
            parts.push(counted(self.problems.len(), "problem", "problems"));
        }
        parts.push(match self.due.len() {
            0 => "nothing due".to_owned(),
            due => format!("{} due", counted(due, "job", "jobs")),
        });
        parts.push(match self.review {
            0 => "nothing to review".to_owned(),
            review => format!("{review} to review"),
        });
        parts.push(format!("daemon {daemon}"));
        parts.join(" · ")
    }

    /// Returns whether nothing needs attention.
    pub(crate) fn is_good(&self) -> bool {
        self.stuck.is_empty() && self.failed.is_empty() && self.problems.is_empty()
    }
}
