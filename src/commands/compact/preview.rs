//! `memoird compact --dry-run`: what is due, without changing anything.

use serde::Serialize;

use super::report::{DueJob, Requested, RequestedPeriod, due_jobs, nothing_to_do, others_due};
use crate::{
    commands::ui::Ui,
    compaction::{
        self, CompactionError, RootSnapshot, archive,
        integrity::vanished_files,
        plan::{CompactionJob, CompactionPlan, Selection},
    },
    memory::{item::Tier, period::Period},
    operations::{
        error::CommandResult,
        forecast::{self, RunForecast},
        workspace::{Invocation, MemoryRoot},
    },
    store::{
        db::lineage::{Lineage, jobs::JobMetrics},
        fs::vault::Vault,
    },
};

/// What `--dry-run --json` prints: the same schema as the report of a run.
#[derive(Serialize)]
struct DryRunReport {
    dry_run: bool,
    jobs: Vec<PlannedJob>,
    following: Vec<DueJob>,
    waiting: Vec<WaitingJobReport>,
    /// What is due in the whole folder now.
    due: Vec<DueJob>,
    written: usize,
    unchanged: usize,
    failed: usize,
    /// The new paths of logs that would move into the archive.
    archived: Vec<String>,
    /// Why no log would move.
    archive_held: Option<String>,
    /// Estimated model use of the jobs; missing with the extractive engine.
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
    /// The figures that are known before the run.
    #[serde(flatten)]
    figures: JobMetrics,
}

#[derive(Serialize)]
struct WaitingJobReport {
    tier: &'static str,
    period: String,
    reason: String,
}

/// A plan, and what else the run would do.
struct RunPreview {
    plan: CompactionPlan,
    snapshot: RootSnapshot,
    archived: Vec<String>,
    archive_held: Option<String>,
    forecast: Option<RunForecast>,
    /// The plan of the whole folder.
    all: CompactionPlan,
}

/// Shows what a run would do. Changes nothing, and creates no database.
pub(super) fn dry_run(
    call: &Invocation,
    root: &MemoryRoot,
    selection: &Selection,
    engine: &str,
    ui: &Ui,
) -> CommandResult<()> {
    let now = call.now;
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let plan = compaction::plan_snapshot(
        &view,
        &forecast::without_quiet_period(root),
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
            ui.note(format!("would be accepted as permanently deleted: {missing}"));
        }
        Some(missing) => return Err(CompactionError::FilesVanished(missing).into()),
        None => {}
    }
    let whole = Selection::default();
    let all = compaction::plan_snapshot(
        &view,
        &forecast::without_quiet_period(root),
        engine,
        &whole,
        now,
    );
    let layout = root.vault.layout();
    let (archived, archive_problem) = if selection.is_whole() {
        archive::preview_archive(&view, &all, lineage.as_ref(), &root.settings, layout, now)?
    } else {
        Default::default()
    };
    let archive_held = archive_problem.map(|it| it.to_string());
    let forecast = forecast::forecast(call, root, &view, &plan)?;
    let preview = RunPreview { plan, snapshot: view, archived, archive_held, forecast, all };
    let tier = selection.tiers.first().copied();
    preview.show((tier, selection.period), &root.vault, ui)
}

impl RunPreview {
    /// Shows the plan; tier and period are those that the user asked for.
    fn show(
        self,
        (tier, period): (Option<Tier>, Option<Period>),
        vault: &Vault,
        ui: &Ui,
    ) -> CommandResult<()> {
        let Self { plan, snapshot: view, archived, archive_held, forecast, all } = self;
        let mut jobs = Vec::new();
        for job in &plan.jobs {
            jobs.push(PlannedJob::new(job, &view, vault)?);
        }
        if ui.is_json() {
            let following = plan.due_after.iter().copied().map(DueJob::new);
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
                due: due_jobs(&all).map(DueJob::new).collect(),
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
            ui.note(format!("not archiving now: {why}"));
        }
        if jobs.is_empty() && plan.due_after.is_empty() {
            let asked = period.map(|it| RequestedPeriod::new(it, &view.inventory));
            let requested = Requested { tier, period: asked };
            ui.note(nothing_to_do(&plan, !view.inventory.logs.is_empty(), requested));
            if (period.is_some() || tier.is_some())
                && let Some(line) = others_due(&all)
            {
                ui.note(line);
            }
            return Ok(());
        }
        let mut rows: Vec<Vec<String>> = jobs
            .iter()
            .map(|it| {
                vec![
                    it.tier.to_owned(),
                    it.period.clone(),
                    it.figures.sources.to_string(),
                    // How much of the logs the bullets of WISDOM.md are chosen from is known afterwards.
                    match it.figures.source_chars {
                        0 => "-".to_owned(),
                        chars => chars.to_string(),
                    },
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
}

impl PlannedJob {
    fn new(job: &CompactionJob, view: &RootSnapshot, vault: &Vault) -> CommandResult<Self> {
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
