//! `memoird status`: what there is, what is due and why, and who works on it.
//!
//! Reads and never writes: without a database there is none afterwards either.

mod daemon;
mod embeddings;
mod engine;
mod problems;
mod sessions;
mod show;
mod work;

use std::{path::Path, process::ExitCode};

use chrono::{DateTime, Utc};
use serde::Serialize;

use self::{
    daemon::{Daemon, Tick, Watcher},
    embeddings::Embeddings,
    engine::{BudgetStatus, EngineStatus},
    problems::{Logs, Problem},
    sessions::Sessions,
    work::{Due, LastRun, NextDue, Stuck, TierStatus},
};
use super::{
    GlobalArgs,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::{
    compaction::{
        self, PassError, View,
        check::{self, Found},
        missing::{self, Missing},
        plan::{Plan, Selection},
        review,
    },
    config::{self, root::ZoneSource},
    engine::configured,
    privacy::Rules,
    store::lineage::{Lineage, LineageError, jobs::JobRow},
};

/// Show what there is, what is due and why
///
/// Exit code 1 says that something is stuck or failed when it was last tried.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// What is said of one root; a document of `schema/status.schema.json`.
#[derive(Serialize)]
struct Status {
    root: String,
    agent_name: String,
    zone: String,
    /// Who named the zone.
    zone_source: &'static str,
    /// The host that alone writes here, where it is another one.
    writer: Option<String>,
    tiers: Vec<TierStatus>,
    schedule: Vec<Tick>,
    daemon: Daemon,
    watcher: Watcher,
    model: EngineStatus,
    budget: BudgetStatus,
    /// What makes vectors for the search by meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    embeddings: Option<Embeddings>,
    parked: Vec<Stuck>,
    /// Work that was taken back and waits for changed input.
    undone: Vec<Stuck>,
    /// Jobs that are due and did not work when they were last tried.
    failed: Vec<Stuck>,
    quarantined: usize,
    /// How many of the logs stand in the archive.
    archived: usize,
    /// Files of somebody else under names of ours.
    foreign: Vec<Foreign>,
    problems: Vec<Problem>,
    /// What hooks left of sessions, of this folder and of none.
    sessions: Sessions,
    last_run: Option<LastRun>,
    /// The period that is due next by itself, and when.
    next_due: Option<NextDue>,
    /// Why what is due is not done yet.
    not_yet: Option<String>,
}

#[derive(Serialize)]
struct Foreign {
    tier: &'static str,
    period: String,
    path: String,
}

/// What is said of all roots.
#[derive(Serialize)]
struct Roots {
    roots: Vec<OneOf>,
}

/// A root, or why nothing can be said of it.
#[derive(Serialize)]
#[serde(untagged)]
enum OneOf {
    There(Box<Status>),
    Not { root: String, error: String },
}

pub(super) fn run(global: &GlobalArgs, _args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    match call.config.choose(global.root.as_deref(), &call.around) {
        Ok(path) => {
            let status = status(&call, &path)?;
            if ui.is_json() {
                ui.json(&status);
            } else {
                show::show(&status, ui);
            }
            Ok(exit_code(status.is_well()))
        }
        Err(config::Error::WhichRoot { .. }) if !call.config.roots.is_empty() => {
            Ok(all_roots(&call, ui))
        }
        Err(error) => Err(error.into()),
    }
}

fn exit_code(is_well: bool) -> ExitCode {
    if is_well { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() }
}

/// Shows each configured root in a line; one that is missing stops no other.
fn all_roots(call: &Call, ui: &Ui) -> ExitCode {
    let roots: Vec<OneOf> = call
        .config
        .roots
        .iter()
        .map(|known| match status(call, &known.path) {
            Ok(status) => OneOf::There(Box::new(status)),
            Err(error) => {
                OneOf::Not { root: known.path.display().to_string(), error: error.to_string() }
            }
        })
        .collect();
    let is_well = roots.iter().all(|it| matches!(it, OneOf::There(status) if status.is_well()));
    if ui.is_json() {
        ui.json(&Roots { roots });
        return exit_code(is_well);
    }
    let rows: Vec<Vec<String>> = roots
        .iter()
        .map(|it| match it {
            OneOf::There(it) => vec![
                short(&it.root, call),
                it.tiers.iter().find(|it| it.tier == DAILY).map_or(0, |it| it.files).to_string(),
                it.due().count().to_string(),
                (it.parked.len() + it.failed.len()).to_string(),
                it.problems.len().to_string(),
                it.daemon.state().to_owned(),
            ],
            OneOf::Not { root, error } => {
                let unknown = || "-".to_owned();
                let root = short(root, call);
                vec![root, unknown(), unknown(), unknown(), unknown(), error.clone()]
            }
        })
        .collect();
    ui.table(&["memory folder", "logs", "due", "stuck", "problems", "daemon"], &rows);
    ui.note("`memoird --root DIR status` says more about one");
    exit_code(is_well)
}

/// Returns a path with `~` for the person's home.
fn short(path: &str, call: &Call) -> String {
    match Path::new(path).strip_prefix(&call.around.home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.to_owned(),
    }
}

/// Looks at one root, for whoever asks for the document that `--json` prints.
pub(super) fn document(call: &Call, path: &Path) -> Result<serde_json::Value, CommandError> {
    serde_json::to_value(status(call, path)?).map_err(|e| CommandError::new(Kind::Data, e))
}

/// The name of the tier of logs, which nothing makes.
const DAILY: &str = "daily";

/// Looks at one root.
fn status(call: &Call, path: &Path) -> Result<Status, CommandError> {
    let root = call.open(path)?;
    let settings = &root.settings;
    let zone = settings.zone.name.0;
    let now = call.now;
    let mut problems = Vec::new();
    let seen = match look(&root, now) {
        // What the files say can be shown without it.
        Err(PassError::Lineage(
            error @ (LineageError::Damaged { .. } | LineageError::NotOurs { .. }),
        )) => {
            let path = ".memoird/lineage.db".to_owned();
            problems.push(Problem { path, reason: error.to_string() });
            Seen::by(&root, None, now)
        }
        seen => seen,
    };
    let Seen { view, plan, asked, logs, above } = seen?;
    let Asked { failed, undone, undoing, last_run, missing, amiss, waiting } = asked;
    let path = ".memoird/lineage.db";
    if problems.is_empty() {
        problems.extend(amiss.into_iter().map(|reason| Problem { path: path.to_owned(), reason }));
    }
    problems.extend(missing.map(|it| Problem {
        path: settings.memory_dir.display().to_string(),
        reason: format!(
            "{it}; nothing is written until they are back, or until \
             `memoird compact --accept-missing` says that they are gone for good"
        ),
    }));
    let path = root.vault.layout().decisions();
    problems.extend(missing::harmed_decisions(&root.vault)?.map(|why| Problem {
        reason: format!(
            "{}, so nothing is written: `memoird doctor --repair` puts it back as it was after the last \
             run, `memoird compact --accept-missing` takes it as it is",
            why.trim_start_matches(&format!("`{path}` "))
        ),
        path,
    }));
    problems.extend(
        check::forgetting(&root.vault)
            .map(|reason| Problem { path: root.vault.layout().forgetting(), reason }),
    );
    problems.extend(undoing.map(|reason| Problem { path: root.vault.layout().undoing(), reason }));
    let log_chars = logs.chars;
    problems.extend(problems::found_problems(&root, &view, &plan, logs));
    let (daemon, watcher) = daemon::daemon(&root, zone)?;
    let schedule = daemon::schedule(&settings.settings, zone, now);
    let is_due = !plan.jobs.is_empty() || !plan.following.is_empty();
    let not_yet = is_due.then(|| daemon::why_not_yet(&root, &daemon, &schedule));
    let (model, budget) = engine::look(call, &root)?;
    Ok(Status {
        root: settings.path.display().to_string(),
        agent_name: Rules::told(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        zone_source: zone_source(settings.zone.source),
        writer: settings.writer.clone().filter(|it| *it != call.around.host),
        tiers: work::tiers(&view.inventory, &plan, log_chars),
        schedule,
        daemon,
        watcher,
        model,
        budget,
        embeddings: embeddings::look(call, &root)?,
        parked: work::parked(&plan),
        undone,
        failed,
        quarantined: waiting + above,
        archived: view.inventory.archived.len(),
        foreign: plan
            .foreign
            .iter()
            .map(|&(tier, period)| Foreign {
                tier: tier.name(),
                period: period.to_string(),
                path: root.vault.layout().summary(period),
            })
            .collect(),
        problems,
        sessions: Sessions::look(call, &settings.path),
        last_run,
        next_due: work::next_due(&plan, zone),
        not_yet,
    })
}

/// What files and database say together.
struct Seen {
    view: View,
    plan: Plan,
    asked: Asked,
    logs: Logs,
    /// How much of weeks and months waits for `review`.
    above: usize,
}

/// What the database is asked.
struct Asked {
    failed: Vec<Stuck>,
    undone: Vec<Stuck>,
    /// What was begun to be taken back and is not finished.
    undoing: Option<String>,
    last_run: Option<LastRun>,
    missing: Option<Missing>,
    /// What the last receipts say that the files do not.
    amiss: Vec<String>,
    /// How much of logs, and how many changes, wait for `review`.
    waiting: usize,
}

fn look(root: &Root, now: DateTime<Utc>) -> Result<Seen, PassError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    Seen::by(root, lineage.as_ref(), now)
}

impl Seen {
    fn by(root: &Root, lineage: Option<&Lineage>, now: DateTime<Utc>) -> Result<Self, PassError> {
        let settings = &root.settings;
        let (view, receipts) = compaction::peek_with_receipts(&root.vault, lineage)?;
        let selection = Selection::default();
        let plan = compaction::plan_of(
            &view,
            settings,
            &configured::id(&settings.settings),
            &selection,
            now,
        );
        // The files are read beside what the database is asked.
        let (asked, logs, above) = std::thread::scope(|scope| {
            let inventory = &view.inventory;
            let files = scope.spawn(move || {
                let logs = Logs::read(root, inventory);
                (logs, review::held_above(&root.vault, inventory, false).map(|it| it.len()))
            });
            let asked = Self::ask(root, lineage, &receipts, &view, &plan);
            let (logs, above) =
                files.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (asked, logs, above)
        });
        Ok(Self { view, plan, asked: asked?, logs: logs?, above: above? })
    }

    fn ask(
        root: &Root,
        lineage: Option<&Lineage>,
        receipts: &[JobRow],
        view: &View,
        plan: &Plan,
    ) -> Result<Asked, PassError> {
        let settings = &root.settings;
        let failed = work::failed(receipts, plan);
        let undone = work::undone(receipts, view, plan);
        let undoing = check::undoing(&root.vault, lineage)?;
        let last_run = work::last_run(lineage, receipts, settings.zone.name.0)?;
        let missing = lineage.map(|it| missing::look(&root.vault, it)).transpose()?.flatten();
        let inventory = Some(&view.inventory);
        let amiss = [
            check::receipts(&root.vault, lineage, receipts, inventory),
            check::witness(root.vault.layout(), lineage),
        ];
        let amiss = amiss.into_iter().filter_map(|it| match it {
            Ok(Found::Ill(found)) => Some(found),
            _ => None,
        });
        let amiss = amiss.flatten().collect();
        let waiting = lineage.map_or(Ok(0), Lineage::waiting)?;
        Ok(Asked { failed, undone, undoing, last_run, missing, amiss, waiting })
    }
}

impl Status {
    fn is_well(&self) -> bool {
        self.parked.is_empty() && self.failed.is_empty()
    }

    /// Returns all that is due.
    fn due(&self) -> impl Iterator<Item = &Due> {
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
