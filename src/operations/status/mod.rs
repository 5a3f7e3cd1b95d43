//! What is in a folder, what is due and why, and whether a daemon runs.
//!
//! Never writes, and does not create a database.

pub(crate) mod daemon;
mod embeddings;
mod engine;
pub(crate) mod health;
pub(crate) mod jobs;
pub(crate) mod problems;
mod sessions;

use std::path::Path;

use chrono::{DateTime, Utc};
use serde::Serialize;

use self::{
    daemon::{DaemonStatus, ScheduleEntry, WatcherStatus},
    embeddings::EmbeddingsStatus,
    engine::{BudgetStatus, EngineStatus},
    jobs::{DueJob, LastRunStatus, NextDueJob, StuckJob, TierReport},
    problems::{LogScan, StatusProblem},
    sessions::SessionQueueStatus,
};
use super::{
    error::CommandResult,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, CompactionError, RootSnapshot,
        forget::pending,
        integrity::{
            check::{self, CheckOutcome},
            vanished_files,
        },
        plan::{CompactionPlan, Selection},
        review,
        undo::resume,
        up_to_date,
    },
    config::root::ZoneSource,
    engine::configured,
    privacy::PrivacyRules,
    recall::contradictions::find_contradictions,
    store::db::lineage::{Lineage, LineageError, jobs::JobRow},
};

/// The status of one root; a document of `schema/status.schema.json`.
#[derive(Serialize)]
pub(crate) struct StatusReport {
    #[serde(flatten)]
    pub(crate) folder: FolderStatus,
    pub(crate) tiers: Vec<TierReport>,
    #[serde(flatten)]
    pub(crate) service: ServiceState,
    #[serde(flatten)]
    pub(crate) engine: EngineUse,
    #[serde(flatten)]
    pub(crate) blocked: BlockedJobs,
    #[serde(flatten)]
    pub(crate) files: FileFindings,
    /// Sessions that hooks queued, of this folder and of projects without one.
    pub(crate) sessions: SessionQueueStatus,
    #[serde(flatten)]
    pub(crate) runs: RunTimes,
}

/// Which folder it is, and whose.
#[derive(Serialize)]
pub(crate) struct FolderStatus {
    pub(crate) root: String,
    pub(crate) agent_name: String,
    pub(crate) zone: String,
    /// Where the time zone is configured.
    pub(crate) zone_source: &'static str,
    /// The host that writes here, if it is another one.
    pub(crate) writer: Option<String>,
}

/// Whether and when a daemon works on the folder.
#[derive(Serialize)]
pub(crate) struct ServiceState {
    pub(crate) schedule: Vec<ScheduleEntry>,
    pub(crate) daemon: DaemonStatus,
    pub(crate) watcher: WatcherStatus,
}

/// What drafts, and what it may spend.
#[derive(Serialize)]
pub(crate) struct EngineUse {
    pub(crate) model: EngineStatus,
    pub(crate) budget: BudgetStatus,
    /// The embedding server for semantic search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) embeddings: Option<EmbeddingsStatus>,
}

/// Jobs that do not simply run when due.
#[derive(Serialize)]
pub(crate) struct BlockedJobs {
    pub(crate) parked: Vec<StuckJob>,
    /// Undone jobs that wait for changed sources.
    pub(crate) undone: Vec<StuckJob>,
    /// Due jobs that failed when last tried.
    pub(crate) failed: Vec<StuckJob>,
}

/// Files that need attention.
#[derive(Serialize)]
pub(crate) struct FileFindings {
    pub(crate) quarantined: usize,
    /// How many logs are in the archive.
    pub(crate) archived: usize,
    /// Files with names of generated files that memoird did not write.
    pub(crate) foreign: Vec<ForeignFile>,
    pub(crate) problems: Vec<StatusProblem>,
}

/// The last run, and when the next one is due.
#[derive(Serialize)]
pub(crate) struct RunTimes {
    pub(crate) last_run: Option<LastRunStatus>,
    /// The period that becomes due next, and when.
    pub(crate) next_due: Option<NextDueJob>,
    /// Why due jobs have not run yet.
    pub(crate) not_yet: Option<String>,
    /// How many jobs wait for logs that changed within `compaction.quiet`.
    pub(crate) settling: usize,
    /// When something may become due although no file changes.
    #[serde(skip)]
    pub(crate) plan_valid_until: DateTime<Utc>,
}

#[derive(Serialize)]
pub(crate) struct ForeignFile {
    pub(crate) tier: &'static str,
    pub(crate) period: String,
    pub(crate) path: String,
}

/// The name of the tier of logs.
pub(crate) const DAILY: &str = "daily";

pub(crate) fn root_status(call: &Invocation, path: &Path) -> CommandResult<StatusReport> {
    let root = call.open_root(path)?;
    let settings = &root.settings;
    let zone = settings.zone.name.0;
    let now = call.now;
    let mut problems = Vec::new();
    let inputs = match gather(&root, now) {
        // The files can be shown without the database.
        Err(CompactionError::Lineage(
            error @ (LineageError::Damaged { .. } | LineageError::ForeignDatabase { .. }),
        )) => {
            let path = DATABASE_PATH.to_owned();
            problems.push(StatusProblem { path, reason: error.to_string() });
            StatusInputs::read(&root, None, now)
        }
        inputs => inputs,
    };
    let StatusInputs { view, plan, findings, logs, contradictions } = inputs?;
    if problems.is_empty() {
        let path = DATABASE_PATH.to_owned();
        problems.extend(
            findings
                .disagreements
                .into_iter()
                .map(|reason| StatusProblem { path: path.clone(), reason }),
        );
    }
    problems.extend(folder_problems(&root, findings.missing, findings.unfinished_undo)?);
    problems.extend(problems::rival_problem(call, &settings.path));
    let log_chars = logs.chars;
    problems.extend(problems::collect_problems(&root, &view, &plan, logs));
    let (daemon, watcher) = daemon::daemon_status(&root, zone)?;
    let schedule = daemon::schedule(&settings.settings, zone, now);
    let is_due = !plan.jobs.is_empty() || !plan.due_after.is_empty();
    let not_yet = is_due.then(|| daemon::delay_reason(&root, &daemon, &schedule));
    let (model, budget) = engine::engine_status(call, &root)?;
    let foreign = plan.foreign.iter().map(|&(tier, period)| ForeignFile {
        tier: tier.name(),
        period: period.to_string(),
        path: root.vault.layout().summary(period),
    });
    Ok(StatusReport {
        folder: FolderStatus {
            root: settings.path.display().to_string(),
            agent_name: PrivacyRules::default().sanitize_agent_name(&settings.agent_name),
            zone: settings.zone.name.to_string(),
            zone_source: zone_source(settings.zone.source),
            writer: settings.writer.clone().filter(|it| *it != call.environment.host),
        },
        tiers: jobs::tier_reports(&view.inventory, &plan, log_chars),
        service: ServiceState { schedule, daemon, watcher },
        engine: EngineUse {
            model,
            budget,
            embeddings: embeddings::embeddings_status(call, &root)?,
        },
        blocked: BlockedJobs {
            parked: jobs::stuck_jobs(&plan),
            undone: findings.undone,
            failed: findings.failed,
        },
        files: FileFindings {
            quarantined: findings.review_queue + contradictions,
            archived: view.inventory.archived.len(),
            foreign: foreign.collect(),
            problems,
        },
        sessions: SessionQueueStatus::read(call, &settings.path),
        runs: RunTimes {
            last_run: findings.last_run,
            next_due: jobs::next_due(&plan, zone),
            not_yet,
            settling: jobs::settling_jobs(&plan),
            plan_valid_until: up_to_date::plan_valid_until(&plan, &view.inventory, settings, now),
        },
    })
}

/// The database, as problems name it.
const DATABASE_PATH: &str = ".memoird/lineage.db";

/// Returns problems that keep the folder from being written, and unfinished work.
fn folder_problems(
    root: &MemoryRoot,
    missing: Option<compaction::VanishedFiles>,
    unfinished_undo: Option<String>,
) -> CommandResult<Vec<StatusProblem>> {
    let layout = root.vault.layout();
    let missing = missing.map(|it| StatusProblem {
        path: root.settings.memory_dir.display().to_string(),
        reason: format!(
            "{it}; nothing is written until they are restored, or until \
             `memoird compact --accept-missing` accepts that they are gone"
        ),
    });
    let path = layout.decisions();
    let decisions = vanished_files::decisions_damage(&root.vault)?.map(|why| StatusProblem {
        reason: format!(
            "{}, so nothing is written: `memoird doctor --repair` restores it as it was after the last \
             run, `memoird compact --accept-missing` accepts it as it is",
            why.trim_start_matches(&format!("`{path}` "))
        ),
        path,
    });
    let forget = pending::unfinished_message(&root.vault)
        .map(|reason| StatusProblem { path: layout.forget_state(), reason });
    let undo = unfinished_undo.map(|reason| StatusProblem { path: layout.undo_state(), reason });
    Ok([missing, decisions, forget, undo].into_iter().flatten().collect())
}

/// What the files and the database contain.
struct StatusInputs {
    view: RootSnapshot,
    plan: CompactionPlan,
    findings: DatabaseFindings,
    logs: LogScan,
    /// How many statements of curated files wait for `review` because newer logs contradict them.
    contradictions: usize,
}

struct DatabaseFindings {
    failed: Vec<StuckJob>,
    undone: Vec<StuckJob>,
    unfinished_undo: Option<String>,
    last_run: Option<LastRunStatus>,
    missing: Option<compaction::VanishedFiles>,
    /// Where the last receipts and the files disagree.
    disagreements: Vec<String>,
    /// How many lines and proposed changes wait for `review`.
    review_queue: usize,
}

fn gather(root: &MemoryRoot, now: DateTime<Utc>) -> Result<StatusInputs, CompactionError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    StatusInputs::read(root, lineage.as_ref(), now)
}

impl StatusInputs {
    fn read(
        root: &MemoryRoot,
        lineage: Option<&Lineage>,
        now: DateTime<Utc>,
    ) -> Result<Self, CompactionError> {
        let settings = &root.settings;
        let (view, receipts) = compaction::read_snapshot_with_receipts(&root.vault, lineage)?;
        let selection = Selection::default();
        let plan = compaction::plan_snapshot(
            &view,
            settings,
            &configured::engine_id(&settings.settings),
            &selection,
            now,
        );
        // Reads the logs while this thread queries the database.
        let (findings, logs, contradictions) = std::thread::scope(|scope| {
            let inventory = &view.inventory;
            let files = scope.spawn(move || {
                let logs = LogScan::read(root, inventory);
                (logs, find_contradictions(&root.vault, inventory, false).map(|it| it.len()))
            });
            let findings = Self::query_database(root, lineage, &receipts, &view, &plan);
            let (logs, contradictions) =
                files.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (findings, logs, contradictions)
        });
        Ok(Self { view, plan, findings: findings?, logs: logs?, contradictions: contradictions? })
    }

    fn query_database(
        root: &MemoryRoot,
        lineage: Option<&Lineage>,
        receipts: &[JobRow],
        view: &RootSnapshot,
        plan: &CompactionPlan,
    ) -> Result<DatabaseFindings, CompactionError> {
        let settings = &root.settings;
        let failed = jobs::failed_jobs(receipts, plan);
        let undone = jobs::undone_jobs(receipts, view, plan);
        let unfinished_undo = resume::unfinished_message(&root.vault, lineage)?;
        let last_run = jobs::last_run(lineage, receipts, settings.zone.name.0)?;
        let missing =
            lineage.map(|it| vanished_files::find_vanished(&root.vault, it)).transpose()?.flatten();
        let inventory = Some(&view.inventory);
        let checks = [
            check::receipts(&root.vault, lineage, receipts, inventory),
            check::commit_marker(root.vault.layout(), lineage),
        ];
        // As `review` reads it: also from logs that no run has read yet.
        let queue = review::review_queue(&root.vault, lineage, &view.inventory, false)?;
        let disagreements = checks.into_iter().filter_map(|it| match it {
            Ok(CheckOutcome::Failed(found)) => Some(found),
            _ => None,
        });
        Ok(DatabaseFindings {
            failed,
            undone,
            unfinished_undo,
            last_run,
            missing,
            disagreements: disagreements.flatten().collect(),
            review_queue: queue.lines.len() + queue.changes.len(),
        })
    }
}

impl StatusReport {
    pub(crate) fn is_healthy(&self) -> bool {
        self.blocked.parked.is_empty() && self.blocked.failed.is_empty()
    }

    pub(crate) fn due(&self) -> impl Iterator<Item = &DueJob> {
        self.tiers.iter().flat_map(|it| &it.due)
    }
}

fn zone_source(source: ZoneSource) -> &'static str {
    match source {
        ZoneSource::Call => "this call",
        ZoneSource::Config => "config.yaml",
        ZoneSource::RootFile => "memoird.yaml",
        ZoneSource::System => "the system",
        ZoneSource::Nobody => "nobody",
    }
}
