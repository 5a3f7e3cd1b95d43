//! `memoird status`: what there is, what is due and why, and who works on it.
//!
//! Reads and never writes: without a database there is none afterwards either.

mod daemon;
mod embeddings;
mod engine;
mod jobs;
mod problems;
mod sessions;
mod text;

use std::{path::Path, process::ExitCode};

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
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    ui::Ui,
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, CompactionError, RootSnapshot,
        integrity::{
            check::{self, CheckOutcome},
            vanished_files,
        },
        plan::{CompactionPlan, Selection},
        review,
        undo::resume,
    },
    config::{self, root::ZoneSource},
    engine::configured,
    privacy::PrivacyRules,
    store::db::lineage::{Lineage, LineageError, jobs::JobRow},
};

/// Show what there is, what is due and why
///
/// Exit code 1 says that something is stuck or failed when it was last tried.
#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {}

/// What is said of one root; a document of `schema/status.schema.json`.
#[derive(Serialize)]
struct StatusReport {
    root: String,
    agent_name: String,
    zone: String,
    /// Who named the zone.
    zone_source: &'static str,
    /// The host that alone writes here, where it is another one.
    writer: Option<String>,
    tiers: Vec<TierReport>,
    schedule: Vec<ScheduleEntry>,
    daemon: DaemonStatus,
    watcher: WatcherStatus,
    model: EngineStatus,
    budget: BudgetStatus,
    /// What makes vectors for the search by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<EmbeddingsStatus>,
    parked: Vec<StuckJob>,
    /// Work that was taken back and waits for changed input.
    undone: Vec<StuckJob>,
    /// Jobs that are due and did not work when they were last tried.
    failed: Vec<StuckJob>,
    quarantined: usize,
    /// How many of the logs stand in the archive.
    archived: usize,
    /// Files of somebody else under names of ours.
    foreign: Vec<ForeignFile>,
    problems: Vec<StatusProblem>,
    /// What hooks left of sessions, of this folder and of none.
    sessions: SessionQueueStatus,
    last_run: Option<LastRunStatus>,
    /// The period that is due next by itself, and when.
    next_due: Option<NextDueJob>,
    /// Why what is due is not done yet.
    not_yet: Option<String>,
}

#[derive(Serialize)]
struct ForeignFile {
    tier: &'static str,
    period: String,
    path: String,
}

/// What is said of all roots.
#[derive(Serialize)]
struct AllRootsReport {
    roots: Vec<RootStatus>,
}

/// A root, or why nothing can be said of it.
#[derive(Serialize)]
#[serde(untagged)]
enum RootStatus {
    There(Box<StatusReport>),
    Not { root: String, error: String },
}

pub(super) fn run(
    global: &GlobalArgs,
    _args: StatusArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    match call.config.select_root(global.root.as_deref(), &call.environment) {
        Ok(path) => {
            let status = root_status(&call, &path)?;
            if ui.is_json() {
                ui.json(&status);
            } else {
                text::print_status(&status, ui);
            }
            Ok(exit_code(status.is_healthy()))
        }
        Err(config::ConfigError::NoRootSelected { .. }) if !call.config.roots.is_empty() => {
            Ok(all_roots(&call, ui))
        }
        Err(error) => Err(error.into()),
    }
}

fn exit_code(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { CommandErrorKind::Job.exit_code().into() }
}

/// Shows each configured root in a line; one that is missing stops no other.
fn all_roots(call: &Invocation, ui: &Ui) -> ExitCode {
    let roots: Vec<RootStatus> = call
        .config
        .roots
        .iter()
        .map(|known| match root_status(call, &known.path) {
            Ok(status) => RootStatus::There(Box::new(status)),
            Err(error) => {
                RootStatus::Not { root: known.path.display().to_string(), error: error.to_string() }
            }
        })
        .collect();
    let is_well =
        roots.iter().all(|it| matches!(it, RootStatus::There(status) if status.is_healthy()));
    if ui.is_json() {
        ui.json(&AllRootsReport { roots });
        return exit_code(is_well);
    }
    let rows: Vec<Vec<String>> = roots
        .iter()
        .map(|it| match it {
            RootStatus::There(it) => vec![
                with_tilde(&it.root, call),
                it.tiers.iter().find(|it| it.tier == DAILY).map_or(0, |it| it.files).to_string(),
                it.due().count().to_string(),
                (it.parked.len() + it.failed.len()).to_string(),
                it.problems.len().to_string(),
                it.daemon.state().to_owned(),
            ],
            RootStatus::Not { root, error } => {
                let unknown = || "-".to_owned();
                let root = with_tilde(root, call);
                vec![root, unknown(), unknown(), unknown(), unknown(), error.clone()]
            }
        })
        .collect();
    ui.table(&["memory folder", "logs", "due", "stuck", "problems", "daemon"], &rows);
    ui.note("`memoird --root DIR status` says more about one");
    exit_code(is_well)
}

/// Returns a path with `~` for the person's home.
fn with_tilde(path: &str, call: &Invocation) -> String {
    match Path::new(path).strip_prefix(&call.environment.home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.to_owned(),
    }
}

/// Looks at one root, for whoever asks for the document that `--json` prints.
pub(super) fn status_json(
    call: &Invocation,
    path: &Path,
) -> Result<serde_json::Value, CommandError> {
    serde_json::to_value(root_status(call, path)?)
        .map_err(|e| CommandError::new(CommandErrorKind::Data, e))
}

/// The name of the tier of logs, which nothing makes.
const DAILY: &str = "daily";

/// Looks at one root.
fn root_status(call: &Invocation, path: &Path) -> Result<StatusReport, CommandError> {
    let root = call.open_root(path)?;
    let settings = &root.settings;
    let zone = settings.zone.name.0;
    let now = call.now;
    let mut problems = Vec::new();
    let seen = match gather(&root, now) {
        // What the files say can be shown without it.
        Err(CompactionError::Lineage(
            error @ (LineageError::Damaged { .. } | LineageError::ForeignDatabase { .. }),
        )) => {
            let path = ".memoird/lineage.db".to_owned();
            problems.push(StatusProblem { path, reason: error.to_string() });
            StatusInputs::read(&root, None, now)
        }
        seen => seen,
    };
    let StatusInputs { view, plan, asked, logs, above } = seen?;
    let DatabaseFindings { failed, undone, undoing, last_run, missing, amiss, waiting } = asked;
    let path = ".memoird/lineage.db";
    if problems.is_empty() {
        problems.extend(
            amiss.into_iter().map(|reason| StatusProblem { path: path.to_owned(), reason }),
        );
    }
    problems.extend(missing.map(|it| StatusProblem {
        path: settings.memory_dir.display().to_string(),
        reason: format!(
            "{it}; nothing is written until they are back, or until \
             `memoird compact --accept-missing` says that they are gone for good"
        ),
    }));
    let path = root.vault.layout().decisions();
    problems.extend(vanished_files::decisions_damage(&root.vault)?.map(|why| StatusProblem {
        reason: format!(
            "{}, so nothing is written: `memoird doctor --repair` puts it back as it was after the last \
             run, `memoird compact --accept-missing` takes it as it is",
            why.trim_start_matches(&format!("`{path}` "))
        ),
        path,
    }));
    problems.extend(
        check::unfinished_forget(&root.vault)
            .map(|reason| StatusProblem { path: root.vault.layout().forget_state(), reason }),
    );
    problems.extend(
        undoing.map(|reason| StatusProblem { path: root.vault.layout().undo_state(), reason }),
    );
    let log_chars = logs.chars;
    problems.extend(problems::collect_problems(&root, &view, &plan, logs));
    let (daemon, watcher) = daemon::daemon_status(&root, zone)?;
    let schedule = daemon::schedule(&settings.settings, zone, now);
    let is_due = !plan.jobs.is_empty() || !plan.due_after.is_empty();
    let not_yet = is_due.then(|| daemon::delay_reason(&root, &daemon, &schedule));
    let (model, budget) = engine::engine_status(call, &root)?;
    Ok(StatusReport {
        root: settings.path.display().to_string(),
        agent_name: PrivacyRules::mask_message(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        zone_source: zone_source(settings.zone.source),
        writer: settings.writer.clone().filter(|it| *it != call.environment.host),
        tiers: jobs::tier_reports(&view.inventory, &plan, log_chars),
        schedule,
        daemon,
        watcher,
        model,
        budget,
        embeddings: embeddings::embeddings_status(call, &root)?,
        parked: jobs::stuck_jobs(&plan),
        undone,
        failed,
        quarantined: waiting + above,
        archived: view.inventory.archived.len(),
        foreign: plan
            .foreign
            .iter()
            .map(|&(tier, period)| ForeignFile {
                tier: tier.name(),
                period: period.to_string(),
                path: root.vault.layout().summary(period),
            })
            .collect(),
        problems,
        sessions: SessionQueueStatus::read(call, &settings.path),
        last_run,
        next_due: jobs::next_due(&plan, zone),
        not_yet,
    })
}

/// What files and database say together.
struct StatusInputs {
    view: RootSnapshot,
    plan: CompactionPlan,
    asked: DatabaseFindings,
    logs: LogScan,
    /// How much of weeks and months waits for `review`.
    above: usize,
}

/// What the database is asked.
struct DatabaseFindings {
    failed: Vec<StuckJob>,
    undone: Vec<StuckJob>,
    /// What was begun to be taken back and is not finished.
    undoing: Option<String>,
    last_run: Option<LastRunStatus>,
    missing: Option<compaction::VanishedFiles>,
    /// What the last receipts say that the files do not.
    amiss: Vec<String>,
    /// How much of logs, and how many changes, wait for `review`.
    waiting: usize,
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
        // The files are read beside what the database is asked.
        let (asked, logs, above) = std::thread::scope(|scope| {
            let inventory = &view.inventory;
            let files = scope.spawn(move || {
                let logs = LogScan::read(root, inventory);
                (
                    logs,
                    review::quarantined_in_summaries(&root.vault, inventory, false)
                        .map(|it| it.len()),
                )
            });
            let asked = Self::query_database(root, lineage, &receipts, &view, &plan);
            let (logs, above) =
                files.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (asked, logs, above)
        });
        Ok(Self { view, plan, asked: asked?, logs: logs?, above: above? })
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
        let undoing = resume::unfinished_message(&root.vault, lineage)?;
        let last_run = jobs::last_run(lineage, receipts, settings.zone.name.0)?;
        let missing =
            lineage.map(|it| vanished_files::find_vanished(&root.vault, it)).transpose()?.flatten();
        let inventory = Some(&view.inventory);
        let amiss = [
            check::receipts(&root.vault, lineage, receipts, inventory),
            check::commit_marker(root.vault.layout(), lineage),
        ];
        let amiss = amiss.into_iter().filter_map(|it| match it {
            Ok(CheckOutcome::Failed(found)) => Some(found),
            _ => None,
        });
        let amiss = amiss.flatten().collect();
        let waiting = lineage.map_or(Ok(0), Lineage::review_queue_len)?;
        Ok(DatabaseFindings { failed, undone, undoing, last_run, missing, amiss, waiting })
    }
}

impl StatusReport {
    fn is_healthy(&self) -> bool {
        self.parked.is_empty() && self.failed.is_empty()
    }

    /// Returns all that is due.
    fn due(&self) -> impl Iterator<Item = &DueJob> {
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
