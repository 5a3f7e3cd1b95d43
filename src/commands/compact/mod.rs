//! `memoird compact`: does all that is due now.

mod explain;
mod model_preview;

use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

use chrono::NaiveDate;
use serde::Serialize;

use self::model_preview::RunForecast;
use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    run_lock,
    ui::{ProgressDisplay, Ui},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, CompactionError, Compactor, RootSnapshot, RunObserver, RunOutcome, archive,
        integrity::{
            rebuild::{self, CheckDepth, DatabaseRecovery},
            vanished_files,
        },
        plan::{CompactionJob, CompactionPlan, Selection, WaitCause},
        report::{JobReport, RunReport},
        up_to_date,
    },
    config::settings::Keep,
    memory::{item::Tier, period::Period},
    model::{connect, embedding::EmbeddingInput},
    recall::search,
    store::{
        db::{
            lineage::{Lineage, jobs::JobMetrics},
            vectors::VectorDb,
        },
        fs::{inventory::Inventory, vault::Vault},
    },
};

/// Do all that is due now
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags of a command line")]
pub(super) struct CompactArgs {
    /// Only this tier
    #[arg(value_enum)]
    tier: Option<TierArg>,
    /// Only this day, week, or month (2026-04-02, 2026-W14, 2026-04)
    #[arg(long, value_name = "PERIOD")]
    period: Option<Period>,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print what would be asked of the model, and send nothing
    #[arg(long, conflicts_with = "dry_run")]
    show_prompt: bool,
    /// Show how the engine without a model chooses for this week or month: what each sentence is worth,
    /// what came in, and what was left out first; changes nothing
    #[arg(long, value_name = "PERIOD", conflicts_with_all = ["tier", "period", "dry_run", "show_prompt", "force", "redo"])]
    explain: Option<Period>,
    /// Do it though it is not due, is stuck, was taken back, or the file is somebody else's (its words
    /// stay in the history). With a week come the typed memories of its days that were taken back;
    /// `compact extract` does the days alone, and a month and its wisdom are asked for each
    #[arg(long, requires = "period")]
    force: bool,
    /// Make again what another engine made, and read days again that another one read for typed
    /// memories; where that costs calls of a model, it says first what they may cost, and asks
    #[arg(long)]
    redo: bool,
    /// With --redo: do not ask
    #[arg(long, short = 'y', requires = "redo")]
    yes: bool,
    /// Go on though many known files are gone, or one has lost its end: it is so for good
    #[arg(long)]
    accept_missing: bool,
    /// With --redo: only periods that end on this day or later
    #[arg(long, value_name = "DATE", requires = "redo")]
    since: Option<NaiveDate>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum TierArg {
    Extract,
    Weekly,
    Monthly,
    Wisdom,
}

/// What `--dry-run` prints: a report of nothing done yet, so that one schema describes both.
#[derive(Serialize)]
struct DryRunReport {
    dry_run: bool,
    jobs: Vec<PlannedJob>,
    following: Vec<FollowingJob>,
    waiting: Vec<WaitingJobReport>,
    written: usize,
    unchanged: usize,
    failed: usize,
    /// Logs that would move into the archive now: where they would stand.
    archived: Vec<String>,
    /// Why they would not.
    archive_held: Option<String>,
    /// What the jobs would take of a model; missing with the extractive engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    forecast: Option<RunForecast>,
}

#[derive(Serialize)]
struct PlannedJob {
    tier: &'static str,
    period: String,
    outcome: Option<&'static str>,
    path: Option<String>,
    paths: Vec<String>,
    reason: String,
    /// What can be known before.
    #[serde(flatten)]
    figures: JobMetrics,
}

#[derive(Serialize)]
struct FollowingJob {
    tier: &'static str,
    period: String,
}

#[derive(Serialize)]
struct WaitingJobReport {
    tier: &'static str,
    period: String,
    reason: String,
}

pub(super) fn run(
    global: &GlobalArgs,
    args: &CompactArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    let root = call.selected_root(global)?;
    let selection = args.selection();
    if let Some(period) = args.explain {
        return explain::show_explanation(&call, &root, period, ui);
    }
    let engine = root.engine(&call)?;
    let now = call.now;
    if args.show_prompt {
        return model_preview::show_prompts(&call, &root, &selection, ui);
    }
    if args.dry_run {
        return dry_run(&call, &root, args, &selection, engine.id(), ui);
    }
    require_writer(&call, &root)?;
    root.require_memory_folder()?;
    if args.redo && !args.yes && !model_preview::confirm_cost(&call, &root, &selection, ui)? {
        ui.note("nothing was changed");
        return Ok(ExitCode::SUCCESS);
    }
    run_lock::wait_for_run_lock(&root, ui)?;
    // What the daemon handed over may have been answered meanwhile.
    if let Some(batching) = engine.batching()
        && let Err(error) = batching.fetch_batched()
    {
        ui.warn(format!("what was asked in a batch could not be fetched: {error}"));
    }
    if up_to_date::is_full_selection(&selection)
        && let Some(still) =
            up_to_date::check(&root.vault, &root.settings, engine.id(), selection.open_week, now)
    {
        show_report(&RunReport::default(), &still.plan, still.has_logs, None, ui);
        embed_new_lines(&call, &root, None, ui);
        return Ok(ExitCode::SUCCESS);
    }
    let clock = call.clock();
    let mut say = |mended: &DatabaseRecovery| ui.warn(mended.to_string());
    if selection.accept_missing
        && let Some(lineage) = Lineage::open_existing(&root.vault.layout().database())?
    {
        let held = compaction::read_snapshot(&root.vault, Some(&lineage))?.record.damaged;
        for path in held.keys() {
            ui.note(format!("taken as it is: {path}"));
        }
        let harmed = vanished_files::decisions_damage(&root.vault)?;
        if let Some(why) = &harmed {
            ui.note(format!("what was decided is taken as it is: {why}"));
        }
        match vanished_files::find_vanished(&root.vault, &lineage)? {
            Some(missing) => ui.note(format!("taken for gone for good: {missing}")),
            None if !held.is_empty() || harmed.is_some() => {}
            None => ui.note("no files are missing in such a number that it has to be accepted"),
        }
    }
    let passed = rebuild::with_database(
        &root.vault,
        CheckDepth::Quick,
        now,
        &mut say,
        |lineage, mending| {
            let mut compactor = root.compactor(lineage, engine.as_ref(), &clock);
            if let Some(mending) = mending {
                compactor.rebuild_recovered(mending, now)?;
            }
            run_compaction(&mut compactor, "compact", &selection, ui)
        },
    )?;
    let RunOutcome { report, snapshot: view, plan } = passed;
    if report.pruned > 0
        && let Keep::For(span) = root.settings.settings.history.keep
    {
        ui.detail(format!("let go of {} versions older than {span}", report.pruned));
    }
    let inventory = &view.inventory;
    let unknown = args.period.filter(|it| inventory.logs_of(*it).next().is_none());
    show_report(&report, &plan, !inventory.logs.is_empty(), unknown, ui);
    // What cannot be indexed now is indexed, or told of, by the next search.
    drop(search::update_index(&root.vault, inventory));
    embed_new_lines(&call, &root, Some(inventory), ui);
    for held in &report.held {
        ui.warn(format!("{} {}", held.path, held.reason));
    }
    if let Some(why) = &report.model {
        let waits =
            if report.left > 0 || report.unanswered > 0 { "; what is left waits" } else { "" };
        ui.warn(format!("{why}{waits}"));
    }
    Ok(exit_code(&report))
}

/// For so long vectors are made for the search by meaning.
const EMBED_TIME_MAX: Duration = Duration::from_secs(60);

/// Has vectors made of new lines, where a server for that is configured.
fn embed_new_lines(call: &Invocation, root: &MemoryRoot, inventory: Option<&Inventory>, ui: &Ui) {
    let embedder = match connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    ) {
        Ok(Some(embedder)) => embedder,
        Ok(None) => {
            // What nobody searches by is not left lying about.
            VectorDb::remove(&root.vault.layout().vectors());
            return;
        }
        Err(error) => {
            ui.warn(format!("no line can be given a vector: {error}"));
            return;
        }
    };
    let begun = Instant::now();
    let mut goes_on = || begun.elapsed() < EMBED_TIME_MAX;
    match search::embed_lines(&root.vault, inventory, &embedder, &mut goes_on) {
        Ok(learned) => {
            if learned.lines > 0 {
                ui.detail(format!("{} lines can be found by their meaning now", learned.lines));
            }
            if let Some(why) = learned.failed {
                ui.warn(format!("{} logs wait for vectors: {why}", learned.logs_left));
            } else if learned.logs_left > 0 {
                ui.note(format!(
                    "{} logs are without vectors yet; the daemon goes on with them, or the next \
                     `memoird compact`",
                    learned.logs_left
                ));
            }
        }
        Err(error) => ui.warn(format!("no line can be given a vector: {error}")),
    }
}

/// Shows what would be done. It leaves nothing behind: no database is made, and nothing is remembered.
fn dry_run(
    call: &Invocation,
    root: &MemoryRoot,
    args: &CompactArgs,
    selection: &Selection,
    engine: &str,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let now = call.now;
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let plan = compaction::plan_snapshot(
        &view,
        &model_preview::without_quiet_period(root),
        engine,
        selection,
        now,
    );
    if let Some((tier, period)) = plan.without_source {
        return Err(CompactionError::NoSource { tier, period }.into());
    }
    let missing =
        lineage.as_ref().map(|it| vanished_files::find_vanished(&root.vault, it)).transpose()?;
    match missing.flatten() {
        Some(missing) if selection.accept_missing => {
            ui.note(format!("would be taken for gone for good: {missing}"));
        }
        Some(missing) => return Err(CompactionError::FilesVanished(missing).into()),
        None => {}
    }
    let whole = Selection::default();
    let all = compaction::plan_snapshot(
        &view,
        &model_preview::without_quiet_period(root),
        engine,
        &whole,
        now,
    );
    let layout = root.vault.layout();
    let (archived, doubt) = if selection.is_whole() {
        archive::preview_archive(&view, &all, lineage.as_ref(), &root.settings, layout, now)?
    } else {
        Default::default()
    };
    let archived = (archived, doubt.map(|it| it.to_string()));
    let forecast = model_preview::forecast(call, root, &view, &plan)?;
    show_plan(&plan, &view, args.period, &root.vault, archived, forecast, ui)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns 69 where only the model was missing or a cap reached, and 1 where a job failed otherwise.
fn exit_code(report: &RunReport) -> ExitCode {
    let waits = report.unanswered > 0 || report.model.is_some() && report.left > 0;
    match report.failed.saturating_sub(report.unanswered) + report.held.len() {
        0 if waits => CommandErrorKind::Unavailable.exit_code().into(),
        0 => ExitCode::SUCCESS,
        _ => CommandErrorKind::Job.exit_code().into(),
    }
}

impl CompactArgs {
    fn selection(&self) -> Selection {
        let tier = self.tier.map(|it| match it {
            TierArg::Extract => Tier::Extract,
            TierArg::Weekly => Tier::Weekly,
            TierArg::Monthly => Tier::Monthly,
            TierArg::Wisdom => Tier::Wisdom,
        });
        Selection {
            tiers: tier.into_iter().collect(),
            period: self.period,
            force: self.force,
            redo: self.redo.then_some(self.since),
            accept_missing: self.accept_missing,
            ..Selection::default()
        }
    }
}

/// Does what is due, and then what was held up by a log that had been changed moments ago, as after
/// a copy; not for ever, since a log may be written to all day.
pub(super) fn run_compaction(
    compactor: &mut Compactor<'_>,
    trigger: &str,
    selection: &Selection,
    ui: &Ui,
) -> Result<RunOutcome, CompactionError> {
    const ROUNDS_MAX: u32 = 3;
    let quiet = compactor.context.settings.settings.compaction.quiet.as_duration();
    let mut progress = RunProgress { progress: ui.progress(0), done: 0 };
    let mut passed = compactor.compact(trigger, selection, &mut progress)?;
    for _ in 0..ROUNDS_MAX {
        let mut waiting = passed.plan.waiting.iter();
        let Some(written) = waiting.find(|it| matches!(it.cause, WaitCause::BeingWritten(_)))
        else {
            break;
        };
        ui.detail(format!("{}; waiting", written.cause));
        std::thread::sleep(quiet.min(QUIET_WAIT_MAX));
        let RunOutcome { report, snapshot: view, plan } =
            compactor.compact(trigger, selection, &mut progress)?;
        passed.report.merge(report);
        (passed.snapshot, passed.plan) = (view, plan);
    }
    Ok(passed)
}

/// A person waits no longer for one round, whatever `compaction.quiet` says.
const QUIET_WAIT_MAX: std::time::Duration = std::time::Duration::from_secs(5);

/// Refuses to write a root that another host folds.
pub(crate) fn require_writer(call: &Invocation, root: &MemoryRoot) -> Result<(), CommandError> {
    if root.settings.is_writer(&call.environment.host) {
        return Ok(());
    }
    let writer = root.settings.writer.as_deref().unwrap_or_default();
    let what = format!(
        "`{}` is summarised by the host `{writer}`; this one only reads it",
        root.settings.path.display()
    );
    Err(CommandError::new(CommandErrorKind::Busy, what).hint("memoird init --take-over DIR"))
}

/// Shows a pass on a terminal.
struct RunProgress {
    progress: ProgressDisplay,
    done: u64,
}

impl RunObserver for RunProgress {
    fn job_started(&mut self, job: &CompactionJob, left: usize) {
        self.progress.total(self.done + left as u64 + 1);
        self.progress.step(self.done, &format!("{} {}", job.tier, job.period));
        self.done += 1;
    }
}

fn show_plan(
    plan: &CompactionPlan,
    view: &RootSnapshot,
    period: Option<Period>,
    vault: &Vault,
    (archived, archive_held): (Vec<String>, Option<String>),
    forecast: Option<RunForecast>,
    ui: &Ui,
) -> Result<(), CommandError> {
    let mut jobs = Vec::new();
    for job in &plan.jobs {
        jobs.push(PlannedJob::new(job, view, vault)?);
    }
    if ui.is_json() {
        let following = plan
            .due_after
            .iter()
            .map(|(tier, period)| FollowingJob { tier: tier.name(), period: period.to_string() });
        let waiting = plan.waiting.iter().map(|it| WaitingJobReport {
            tier: it.tier.name(),
            period: it.period.to_string(),
            reason: it.cause.to_string(),
        });
        ui.json(&DryRunReport {
            dry_run: true,
            jobs,
            following: following.collect(),
            waiting: waiting.collect(),
            written: 0,
            unchanged: 0,
            failed: 0,
            archived,
            archive_held,
            forecast,
        });
        return Ok(());
    }
    if !archived.is_empty() {
        let logs = archived.len();
        ui.note(format!("would archive {logs} logs into {}/", vault.layout().archive_dir()));
    }
    if let Some(why) = archive_held {
        ui.note(format!("but not now: {why}"));
    }
    if jobs.is_empty() && plan.due_after.is_empty() {
        let unknown = period.filter(|it| view.inventory.logs_of(*it).next().is_none());
        ui.note(nothing_to_do(plan, !view.inventory.logs.is_empty(), unknown));
        return Ok(());
    }
    let mut rows: Vec<Vec<String>> = jobs
        .iter()
        .map(|it| {
            vec![
                it.tier.to_owned(),
                it.period.clone(),
                it.figures.sources.to_string(),
                it.figures.source_chars.to_string(),
                it.reason.clone(),
            ]
        })
        .collect();
    rows.extend(plan.due_after.iter().map(|(tier, period)| {
        vec![
            tier.to_string(),
            period.to_string(),
            "-".to_owned(),
            "-".to_owned(),
            "after the above".to_owned(),
        ]
    }));
    ui.table(&["tier", "period", "sources", "chars", "why"], &rows);
    let costs = match forecast {
        None => "costs nothing (extractive engine)".to_owned(),
        Some(it) => it.describe(plan.due_after.len()),
    };
    ui.note(format!("nothing was changed; {costs}"));
    Ok(())
}

impl PlannedJob {
    fn new(job: &CompactionJob, view: &RootSnapshot, vault: &Vault) -> Result<Self, CommandError> {
        let inventory = &view.inventory;
        let mut source_chars = 0;
        match job.tier {
            Tier::Extract | Tier::Weekly => {
                for (stem, _) in inventory.logs_of(job.period) {
                    source_chars += vault.read_log(stem)?.map_or(0, |it| it.body_chars());
                }
            }
            Tier::Monthly => {
                let weeks = job.period.weeks();
                let weeks = weeks.iter().filter_map(|it| inventory.weekly.get(it));
                source_chars = weeks.map(|it| it.chars).sum();
            }
            Tier::Wisdom => {
                source_chars = inventory.monthly.get(&job.period).map_or(0, |it| it.chars);
            }
        }
        let path = match job.tier {
            Tier::Extract => None,
            Tier::Weekly | Tier::Monthly => Some(vault.layout().summary(job.period)),
            Tier::Wisdom => Some(vault.layout().wisdom()),
        };
        Ok(Self {
            tier: job.tier.name(),
            period: job.period.to_string(),
            outcome: None,
            paths: path.iter().cloned().collect(),
            path,
            reason: job.reason.to_string(),
            figures: JobMetrics {
                sources: u32::try_from(job.inputs.len()).unwrap_or(u32::MAX),
                source_chars: source_chars as u64,
                ..JobMetrics::default()
            },
        })
    }
}

/// Shows what a pass did; `unknown` is a period that was asked for and has no logs.
fn show_report(
    report: &RunReport,
    plan: &CompactionPlan,
    has_logs: bool,
    unknown: Option<Period>,
    ui: &Ui,
) {
    if ui.is_json() {
        ui.json(report);
        return;
    }
    let told = report
        .jobs
        .iter()
        .filter(|it| ui.is_verbose() || it.tier != "extract" || it.outcome != "unchanged");
    let rows: Vec<Vec<String>> = told.map(report_row).collect();
    if !rows.is_empty() {
        ui.table(&["tier", "period", "outcome", "items", "chars", "of", "file or reason"], &rows);
    }
    for it in &report.put_back {
        ui.warn(it);
    }
    for it in &report.finished {
        ui.warn(it);
    }
    if !report.joined.is_empty() {
        let logs = report.joined.len();
        ui.success(format!(
            "lines that came late were added to {logs} archived logs, which are back"
        ));
    }
    if !report.archived.is_empty() {
        ui.success(format!("archived {} logs", report.archived.len()));
    }
    if let Some(why) = &report.archive_held {
        ui.warn(format!("old logs were not archived: {why}"));
    }
    if report.jobs.is_empty() {
        if report.archived.is_empty() && report.joined.is_empty() {
            ui.note(nothing_to_do(plan, has_logs, unknown));
        }
        return;
    }
    let quiet =
        report.jobs.iter().filter(|it| it.tier == "extract" && it.outcome == "unchanged").count();
    let days = if quiet > 0 {
        format!("; {quiet} days without anything to remember")
    } else {
        String::new()
    };
    let summary = format!(
        "{} written, {} unchanged, {} failed{days}",
        report.written,
        report.unchanged - quiet,
        report.failed
    );
    let kept = match report.amounts {
        0 => String::new(),
        of => format!("; {} of {of} amounts and days kept", report.amounts_kept),
    };
    let summary = format!("{summary}{kept}");
    if report.failed > 0 {
        ui.warn(format!("{summary}; `memoird status` says more"));
    } else {
        ui.success(summary);
    }
}

fn report_row(job: &JobReport) -> Vec<String> {
    let done = matches!(job.outcome, "written" | "unchanged");
    let files = if job.paths.is_empty() {
        job.path.clone().unwrap_or_default()
    } else {
        job.paths.join(" ")
    };
    vec![
        job.tier.to_owned(),
        job.period.clone(),
        job.outcome.to_owned(),
        job.figures.items.to_string(),
        job.figures.output_chars.to_string(),
        job.figures.source_chars.to_string(),
        match (done, job.reason.split_once("; ")) {
            // What went is in no list of what was written.
            (true, Some((_, taken))) => format!("{files} ({taken})").trim_start().to_owned(),
            (true, None) => files,
            (false, _) => job.reason.clone(),
        },
    ]
}

/// Says why nothing is done, and what will be next.
fn nothing_to_do(plan: &CompactionPlan, has_logs: bool, unknown: Option<Period>) -> String {
    if !has_logs {
        return "nothing to do: there are no logs yet (`memoird log TEXT` writes one)".to_owned();
    }
    if let Some(period) = unknown {
        return format!("nothing to do: there are no logs of {period}");
    }
    if let Some((tier, period)) = plan.due_after.first() {
        return format!(
            "nothing to do: {tier} {period} waits for what lies beneath it (`memoird compact`)"
        );
    }
    let is_stuck = |it: &WaitCause| matches!(it, WaitCause::Stuck(_) | WaitCause::Damaged(_));
    let stuck = plan.waiting.iter().filter(|it| is_stuck(&it.cause)).count();
    if stuck > 0 {
        return format!("nothing to do, but {stuck} stuck: see `memoird status`");
    }
    let undone = plan.waiting.iter().filter(|it| it.cause == WaitCause::Undone).count();
    let and_undone = if undone > 0 {
        format!("; taken back by undo and waiting for changed input: {undone} (`memoird status`)")
    } else {
        String::new()
    };
    let next = plan.waiting.iter().find(|it| it.cause != WaitCause::Undone);
    let up_to_date = match next {
        Some(next) => format!(
            "nothing to do: all closed periods are up to date; {} {} is {}",
            next.tier, next.period, next.cause
        ),
        None => "nothing to do: all closed periods are up to date".to_owned(),
    };
    up_to_date + &and_undone
}

impl From<CompactionError> for CommandError {
    fn from(error: CompactionError) -> Self {
        match error {
            CompactionError::Vault(error) => error.into(),
            CompactionError::Lineage(error) => error.into(),
            CompactionError::Lock(error) => error.into(),
            CompactionError::NoRandomness(_) | CompactionError::ForgetUnfinished(_) => {
                Self::new(CommandErrorKind::CannotWrite, error)
            }
            CompactionError::FolderMissing { .. } => Self::new(CommandErrorKind::Data, error)
                .hint("mount or move the folder back, then `memoird compact`"),
            CompactionError::FilesVanished(_) => Self::new(CommandErrorKind::Data, error)
                .hint("put them back, then `memoird compact`")
                .hint("are they gone for good? `memoird compact --accept-missing`"),
            CompactionError::Damaged { why, .. } => {
                let hints = why.hints().iter();
                hints
                    .fold(Self::new(CommandErrorKind::Data, error), |error, hint| error.hint(*hint))
            }
            CompactionError::DecisionsUnreadable { .. } => Self::new(CommandErrorKind::Data, error)
                .hint("`memoird doctor --repair` puts it back as it was after the last run")
                .hint("is it gone for good, or meant as it is? `memoird compact --accept-missing`"),
            CompactionError::NoSource { .. } => Self::new(CommandErrorKind::Usage, error)
                .hint("put its logs back first; `memoird status` names those that are gone"),
        }
    }
}
