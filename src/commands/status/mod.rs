//! `memoird status`: what there is, what is due and why, and who works on it.
//!
//! Reads and never writes: without a database there is none afterwards either.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::ExitCode,
};

use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use serde::{Deserialize, Serialize};

mod engine;

use self::engine::{BudgetStatus, EngineStatus};
use super::{
    GlobalArgs,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::{self, Ui},
};
use crate::{
    compaction::{
        self, PassError, View,
        check::{self, Found},
        missing::{self, Missing},
        plan::{Plan, Selection, WaitCause},
        report, review,
    },
    config::{self, root::ZoneSource, schedule::Schedule, settings::Settings},
    engine::configured,
    memory::{
        address::Stem,
        item::Tier,
        log::{DailyLog, may_tell_origin},
        period::Period,
        wisdom::WisdomFile,
    },
    privacy::Rules,
    store::{
        inventory::{Inventory, SummaryFile},
        lineage::{Lineage, LineageError, jobs::Outcome},
        lock::DaemonLock,
    },
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
    last_run: Option<LastRun>,
    /// The period that is due next by itself, and when.
    next_due: Option<NextDue>,
}

#[derive(Serialize)]
struct TierStatus {
    tier: &'static str,
    files: usize,
    chars: usize,
    newest: Option<String>,
    due: Vec<Due>,
    older_engine: usize,
}

#[derive(Serialize)]
struct Due {
    period: String,
    reason: String,
}

#[derive(Serialize)]
struct Tick {
    job: &'static str,
    next: Option<String>,
    #[serde(skip)]
    shown: String,
}

#[derive(Serialize)]
struct Daemon {
    running: bool,
    pid: Option<u32>,
    since: Option<String>,
    /// Why it writes nothing until a person has done something.
    paused: Option<String>,
}

#[derive(Default, Serialize)]
struct Watcher {
    mode: Option<String>,
    last_event: Option<String>,
    last_scan: Option<String>,
    missed: Option<u64>,
}

/// What the daemon writes about itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct DaemonFile {
    pid: Option<u32>,
    since: Option<String>,
    mode: Option<String>,
    last_event: Option<String>,
    last_scan: Option<String>,
    missed: Option<u64>,
    paused: Option<String>,
}

#[derive(Serialize)]
struct Stuck {
    tier: &'static str,
    period: String,
    reason: String,
}

#[derive(Serialize)]
struct Foreign {
    tier: &'static str,
    period: String,
    path: String,
}

#[derive(Serialize)]
struct Problem {
    path: String,
    reason: String,
}

#[derive(Serialize)]
struct LastRun {
    run: i64,
    trigger: String,
    started: String,
    ended: Option<String>,
    /// How many jobs ended in which way.
    outcomes: BTreeMap<&'static str, usize>,
}

#[derive(Serialize)]
struct NextDue {
    tier: &'static str,
    period: String,
    at: String,
    #[serde(skip)]
    shown: String,
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
                show(&status, ui);
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
                if it.daemon.running { "running" } else { "not running" }.to_owned(),
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
    let Seen { view, plan, failed, undone, undoing, last_run, missing, amiss, quarantined } = seen?;
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
    let logs = Logs::read(&root, &view.inventory)?;
    let log_chars = logs.chars;
    problems.extend(found_problems(&root, &view, &plan, logs));
    let (daemon, watcher) = daemon(&root, zone)?;
    let (model, budget) = engine::look(call, &root)?;
    Ok(Status {
        root: settings.path.display().to_string(),
        agent_name: Rules::told(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        zone_source: zone_source(settings.zone.source),
        writer: settings.writer.clone().filter(|it| *it != call.around.host),
        tiers: tiers(&view.inventory, &plan, log_chars),
        schedule: schedule(&settings.settings, zone, now),
        daemon,
        watcher,
        model,
        budget,
        parked: parked(&plan),
        undone,
        failed,
        quarantined,
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
        last_run,
        next_due: next_due(&plan, zone),
    })
}

/// What files and database say together.
struct Seen {
    view: View,
    plan: Plan,
    failed: Vec<Stuck>,
    undone: Vec<Stuck>,
    /// What was begun to be taken back and is not finished.
    undoing: Option<String>,
    last_run: Option<LastRun>,
    missing: Option<Missing>,
    /// What the last receipts say that the files do not.
    amiss: Vec<String>,
    /// How much waits for `review`.
    quarantined: usize,
}

fn look(root: &Root, now: DateTime<Utc>) -> Result<Seen, PassError> {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    Seen::by(root, lineage.as_ref(), now)
}

impl Seen {
    fn by(root: &Root, lineage: Option<&Lineage>, now: DateTime<Utc>) -> Result<Self, PassError> {
        let settings = &root.settings;
        let view = compaction::peek(&root.vault, lineage)?;
        let selection = Selection::default();
        let plan = compaction::plan_of(
            &view,
            settings,
            &configured::id(&settings.settings),
            &selection,
            now,
        );
        let failed = failed(lineage, &plan)?;
        let undone = undone(lineage, &view, &plan)?;
        let undoing = check::undoing(&root.vault, lineage)?;
        let last_run = last_run(lineage, settings.zone.name.0)?;
        let missing = lineage.map(|it| missing::look(&root.vault, it)).transpose()?.flatten();
        let amiss =
            [check::receipts(&root.vault, lineage), check::witness(root.vault.layout(), lineage)];
        let amiss = amiss.into_iter().filter_map(|it| match it {
            Ok(Found::Ill(found)) => Some(found),
            _ => None,
        });
        let amiss = amiss.flatten().collect();
        let above = review::held_above(&root.vault, &view.inventory, false)?.len();
        let quarantined = lineage.map_or(Ok(0), Lineage::waiting)? + above;
        Ok(Self { view, plan, failed, undone, undoing, last_run, missing, amiss, quarantined })
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

fn found_problems(root: &Root, view: &View, plan: &Plan, logs: Logs) -> Vec<Problem> {
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
struct Logs {
    chars: usize,
    /// Those whose frontmatter says of their origin what nobody understands.
    unread_origins: Vec<Problem>,
}

impl Logs {
    fn read(root: &Root, inventory: &Inventory) -> Result<Self, CommandError> {
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

fn zone_source(source: ZoneSource) -> &'static str {
    match source {
        ZoneSource::Call => "this call",
        ZoneSource::Config => "config.yaml",
        ZoneSource::RootFile => "memoird.yaml",
        ZoneSource::System => "the system",
        ZoneSource::Nobody => "nobody",
    }
}

fn tiers(inventory: &Inventory, plan: &Plan, log_chars: usize) -> Vec<TierStatus> {
    let daily = TierStatus {
        tier: DAILY,
        files: inventory.logs.len(),
        chars: log_chars,
        newest: inventory.logs.keys().map(|it| it.date().to_string()).next_back(),
        due: Vec::new(),
        older_engine: 0,
    };
    let mut tiers = vec![daily];
    let summaries = |files: &BTreeMap<_, SummaryFile>| {
        let chars = files.values().map(|it| it.chars).sum();
        (files.len(), chars, files.keys().next_back().map(ToString::to_string))
    };
    for tier in Tier::ALL {
        let (files, chars, newest) = match tier {
            Tier::Extract => {
                let memories = &inventory.memories;
                let chars = memories.iter().map(|it| it.body.chars().count()).sum();
                let newest = memories.iter().filter_map(|it| it.updated.or(it.created)).max();
                (memories.len(), chars, newest.map(|it| it.to_string()))
            }
            Tier::Weekly => summaries(&inventory.weekly),
            Tier::Monthly => summaries(&inventory.monthly),
            Tier::Wisdom => {
                let text = inventory.wisdom.as_deref();
                let newest = text.map(WisdomFile::parse);
                let newest = newest.and_then(|it| it.distilled().last().map(ToString::to_string));
                (usize::from(text.is_some()), text.map_or(0, |it| it.chars().count()), newest)
            }
        };
        let now = plan.jobs.iter().filter(|it| it.tier == tier);
        let now =
            now.map(|it| Due { period: it.period.to_string(), reason: it.reason.to_string() });
        let then = plan.following.iter().filter(|it| it.0 == tier);
        let then = then.map(|(_, period)| Due {
            period: period.to_string(),
            reason: "waits for what lies beneath it".to_owned(),
        });
        tiers.push(TierStatus {
            tier: tier.name(),
            files,
            chars,
            newest,
            due: now.chain(then).collect(),
            older_engine: plan.other_engine.get(&tier).copied().unwrap_or(0),
        });
    }
    tiers
}

fn schedule(settings: &Settings, zone: Tz, now: DateTime<Utc>) -> Vec<Tick> {
    let lines = &settings.schedule;
    let tick = |job, line: &Schedule| {
        let next = line.next_after(now.with_timezone(&zone));
        let shown = next.map_or_else(|| "never".to_owned(), shown);
        Tick { job, next: next.map(|it| it.to_rfc3339()), shown }
    };
    vec![
        tick("extract", &lines.extract),
        tick("weekly", &lines.weekly),
        tick("monthly", &lines.monthly),
        tick("wisdom", &lines.wisdom),
    ]
}

/// Prints a time as people read it.
fn shown(time: DateTime<Tz>) -> String {
    time.format("%a %Y-%m-%d %H:%M").to_string()
}

fn daemon(root: &Root, zone: Tz) -> Result<(Daemon, Watcher), CommandError> {
    let layout = root.vault.layout();
    let lock = layout.daemon_lock();
    let Some(pid) = DaemonLock::holder(&lock)? else {
        return Ok((
            Daemon { running: false, pid: None, since: None, paused: None },
            Watcher::default(),
        ));
    };
    let about = std::fs::read(layout.private_dir().join("daemon.json")).ok();
    let about = about.and_then(|it| serde_json::from_slice::<DaemonFile>(&it).ok());
    // One that another process left says nothing of this one.
    let about = about.filter(|it| it.pid == Some(pid)).unwrap_or_default();
    // The lock file is written when the daemon starts, and never again.
    let locked = std::fs::metadata(&lock).and_then(|it| it.modified()).ok();
    let locked = locked.map(|it| time(DateTime::<Utc>::from(it), zone));
    let DaemonFile { since, mode, last_event, last_scan, missed, paused, .. } = about;
    Ok((
        Daemon {
            running: true,
            pid: Some(pid).filter(|&it| it > 0),
            since: since.or(locked),
            paused,
        },
        Watcher { mode, last_event, last_scan, missed },
    ))
}

fn time(at: DateTime<Utc>, zone: Tz) -> String {
    at.with_timezone(&zone).to_rfc3339_opts(SecondsFormat::Secs, false)
}

fn parked(plan: &Plan) -> Vec<Stuck> {
    let stuck = plan.waiting.iter().filter_map(|it| match &it.cause {
        WaitCause::Parked(reason) | WaitCause::Held(reason) => Some(Stuck {
            tier: it.tier.name(),
            period: it.period.to_string(),
            reason: reason.clone(),
        }),
        _ => None,
    });
    stuck.collect()
}

/// Returns the work that was taken back and waits, each once. What stood beneath it may be gone with
/// it, so that no plan names it: then its last receipt does.
fn undone(lineage: Option<&Lineage>, view: &View, plan: &Plan) -> Result<Vec<Stuck>, LineageError> {
    let decisions = &view.inventory.decisions;
    let waiting = plan.waiting.iter().filter(|it| it.cause == WaitCause::Undone);
    let mut undone: BTreeSet<(Tier, Period)> = waiting.map(|it| (it.tier, it.period)).collect();
    let due: BTreeSet<(Tier, Period)> = plan
        .jobs
        .iter()
        .map(|it| (it.tier, it.period))
        .chain(plan.following.iter().copied())
        .chain(plan.waiting.iter().map(|it| (it.tier, it.period)))
        .collect();
    let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts)?;
    let refused = receipts.into_iter().filter(|job| {
        let is_skipped = job.receipt.as_ref().is_some_and(|it| it.outcome == Outcome::Skipped);
        is_skipped && decisions.is_undone(job.fingerprint)
    });
    undone.extend(refused.map(|it| (it.tier, it.period)).filter(|it| !due.contains(it)));
    let told = undone.into_iter().map(|(tier, period)| Stuck {
        tier: tier.name(),
        period: period.to_string(),
        reason: WaitCause::Undone.to_string(),
    });
    Ok(told.collect())
}

/// Tells of work that was taken back: the days of a week in one line, with the week itself if it is
/// among it, and how each line is lifted.
fn told_undone(undone: &[Stuck]) -> Vec<String> {
    let of_tier = |tier: Tier| undone.iter().filter(move |it| it.tier == tier.name());
    let mut days: BTreeMap<String, usize> = BTreeMap::new();
    for it in of_tier(Tier::Extract) {
        let week = it.period.parse::<Period>().ok().and_then(Period::parent);
        *days.entry(week.map_or_else(|| it.period.clone(), |it| it.to_string())).or_default() += 1;
    }
    let counted = |days: usize| format!("{days} {}", if days == 1 { "day" } else { "days" });
    let mut lines = Vec::new();
    for Stuck { period, .. } in of_tier(Tier::Weekly) {
        let days = days.remove(period);
        let days = days.map(|it| format!(" with the typed memories of {}", counted(it)));
        lines.push((period.clone(), format!("weekly {period}{}", days.unwrap_or_default()), ""));
    }
    for (week, days) in days {
        let line = format!("typed memories of {} in {week}", counted(days));
        lines.push((week, line, " extract"));
    }
    lines.sort();
    for it in of_tier(Tier::Monthly).chain(of_tier(Tier::Wisdom)) {
        lines.push((it.period.clone(), format!("{} {}", it.tier, it.period), of(it.tier)));
    }
    let told = lines.into_iter().map(|(period, line, tier)| {
        format!("{line}; `memoird compact{tier} --period {period} --force` lifts it")
    });
    told.collect()
}

/// Returns the jobs that failed when last tried and are due still.
fn failed(lineage: Option<&Lineage>, plan: &Plan) -> Result<Vec<Stuck>, LineageError> {
    let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts)?;
    let failed = receipts.into_iter().filter_map(|job| {
        let receipt = job.receipt.filter(|it| report::outcome(it) == "failed")?;
        let is_due = plan.jobs.iter().any(|it| it.fingerprint == job.fingerprint);
        is_due.then(|| Stuck {
            tier: job.tier.name(),
            period: job.period.to_string(),
            reason: receipt.reason.unwrap_or_default(),
        })
    });
    Ok(failed.collect())
}

fn last_run(lineage: Option<&Lineage>, zone: Tz) -> Result<Option<LastRun>, LineageError> {
    let Some(lineage) = lineage else { return Ok(None) };
    let Some(run) = lineage.last_runs(1)?.into_iter().next() else { return Ok(None) };
    let mut outcomes = BTreeMap::new();
    for job in lineage.jobs_of_run(run.id)? {
        let outcome = job.receipt.map_or("running", |it| report::outcome(&it));
        *outcomes.entry(outcome).or_default() += 1;
    }
    Ok(Some(LastRun {
        run: run.id.0,
        trigger: run.trigger,
        started: time(run.started, zone),
        ended: run.ended.map(|it| time(it, zone)),
        outcomes,
    }))
}

/// Returns the period that becomes due first of those that only wait for their end.
fn next_due(plan: &Plan, zone: Tz) -> Option<NextDue> {
    let closing = plan.waiting.iter().filter_map(|it| match it.cause {
        WaitCause::Closes(at) => Some((at, it)),
        _ => None,
    });
    let (at, next) = closing.min_by_key(|(at, it)| (*at, it.tier, it.period))?;
    Some(NextDue {
        tier: next.tier.name(),
        period: next.period.to_string(),
        at: time(at.with_timezone(&Utc), zone),
        shown: shown(at.with_timezone(&zone)),
    })
}

/// More than this is said with `--verbose` only.
const SHOWN_MAX: usize = 5;
/// Of what is due, so many of each tier.
const SHOWN_OF_TIER_MAX: usize = 3;

fn show(status: &Status, ui: &Ui) {
    let zone = &status.zone;
    ui.heading(&status.root);
    ui.data(format!("{} · days in {zone}, named by {}", status.agent_name, status.zone_source));
    if let Some(writer) = &status.writer {
        ui.data(format!("summarised by the host {writer}; this one only reads it"));
    }
    ui.data("");
    show_tiers(status, ui);
    if status.archived > 0 {
        ui.data(format!("{} of the logs are archived", status.archived));
    }
    ui.data("");
    show_due(status, ui);
    show_list(ui, "stuck", &status.parked, |it| {
        let Stuck { tier, period, reason } = it;
        format!(
            "{tier} {period}: {reason}; try `memoird compact{} --period {period} --force`",
            of(tier)
        )
    });
    let undone = told_undone(&status.undone);
    show_list(ui, "taken back by undo, waits for changed input", &undone, Clone::clone);
    show_list(ui, "failed, tried again by the next run", &status.failed, |it| {
        format!("{} {}: {}", it.tier, it.period, it.reason)
    });
    show_list(ui, "files of somebody else, read and never written", &status.foreign, |it| {
        format!("{}; `memoird compact --period {} --force` adopts it", it.path, it.period)
    });
    if status.quarantined > 0 {
        ui.data(format!("{} held for review: `memoird review`", status.quarantined));
    }
    show_list(ui, "to look at", &status.problems, |it| format!("{}: {}", it.path, it.reason));
    let older: usize = status.tiers.iter().map(|it| it.older_engine).sum();
    if older > 0 {
        ui.data(format!(
            "{older} files were made by another engine; `memoird compact --redo` makes them again"
        ));
    }
    show_engine(status, ui);
}

/// Returns the argument that names a tier where the period does not.
fn of(tier: &str) -> &'static str {
    if tier == Tier::Wisdom.name() { " wisdom" } else { "" }
}

fn show_tiers(status: &Status, ui: &Ui) {
    let rows: Vec<Vec<String>> = status
        .tiers
        .iter()
        .map(|it| {
            let name = match it.tier {
                DAILY => "logs",
                "extract" => "typed memories",
                "weekly" => "weeks",
                "monthly" => "months",
                other => other,
            };
            let due = match it.due.len() {
                _ if it.tier == DAILY => String::new(),
                0 => "-".to_owned(),
                due => due.to_string(),
            };
            let newest = it.newest.clone().unwrap_or_else(|| "-".to_owned());
            vec![name.to_owned(), it.files.to_string(), it.chars.to_string(), newest, due]
        })
        .collect();
    ui.table(&["", "files", "chars", "newest", "due"], &rows);
}

fn show_due(status: &Status, ui: &Ui) {
    let count = status.due().count();
    if count == 0 {
        let next = status.next_due.as_ref();
        let next = next.map(|it| format!("; {} {} closes {}", it.tier, it.period, it.shown));
        ui.data(format!("nothing is due{}", next.unwrap_or_default()));
        return;
    }
    ui.heading(format!("due ({count})"));
    for tier in &status.tiers {
        show_first(ui, SHOWN_OF_TIER_MAX, &tier.due, |it| {
            format!("{} {}: {}", tier.tier, it.period, it.reason)
        });
    }
    ui.data("`memoird compact` does it now");
}

/// Shows a heading with the first few of a list, or nothing of an empty one.
fn show_list<T>(ui: &Ui, heading: &str, list: &[T], line: impl Fn(&T) -> String) {
    if list.is_empty() {
        return;
    }
    ui.heading(format!("{heading} ({})", list.len()));
    show_first(ui, SHOWN_MAX, list, line);
}

/// Shows the first few of a list, with `--verbose` all.
fn show_first<T>(ui: &Ui, at_most: usize, list: &[T], line: impl Fn(&T) -> String) {
    let shown = if ui.is_verbose() { list.len() } else { at_most };
    for it in list.iter().take(shown) {
        ui.data(format!("  {}", ui::one_line(&line(it))));
    }
    if list.len() > shown {
        ui.data(format!("  and {} more (-v)", list.len() - shown));
    }
}

fn show_engine(status: &Status, ui: &Ui) {
    let Status { daemon, watcher, model, .. } = status;
    ui.data("");
    let engine = match (&model.provider, &model.model) {
        (Some(provider), Some(name)) => format!("model {name} ({provider})"),
        _ => "extractive (offline, free)".to_owned(),
    };
    ui.data(format!("engine    {engine}, {}", model.state.as_deref().unwrap_or("unknown")));
    if let (Some(day), Some(month)) = (&status.budget.day, &status.budget.month) {
        ui.data(format!("budget    today {}; this month {}", day.words(), month.words()));
    }
    let since = daemon.since.as_ref().map(|it| format!(" since {it}")).unwrap_or_default();
    let process = daemon.pid.map(|it| format!(" (process {it})")).unwrap_or_default();
    ui.data(if daemon.running {
        let watch = watcher.mode.as_deref().unwrap_or("unknown");
        let scan = watcher.last_scan.as_ref().map(|it| format!(", last look {it}"));
        let state = if daemon.paused.is_some() { "paused" } else { "running" };
        format!("daemon    {state}{process}{since}\nwatching  {watch}{}", scan.unwrap_or_default())
    } else {
        "daemon    not running; `memoird run` starts it".to_owned()
    });
    if let Some(run) = &status.last_run {
        let outcomes: Vec<String> =
            run.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
        let ended = if run.ended.is_some() { "" } else { ", not ended" };
        let what = if outcomes.is_empty() { "nothing".to_owned() } else { outcomes.join(", ") };
        ui.data(format!("last run  {} by {}: {what}{ended}", run.started, run.trigger));
    }
    let ticks: Vec<String> =
        status.schedule.iter().map(|it| format!("{} {}", it.job, it.shown)).collect();
    ui.data(format!("next      {}", ticks.join(", ")));
}
