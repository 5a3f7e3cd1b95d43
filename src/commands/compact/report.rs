//! What `memoird compact` did, for people and as JSON.

use std::{collections::BTreeSet, process::ExitCode};

use serde::Serialize;

use crate::{
    commands::ui::Ui,
    compaction::{
        plan::{CompactionPlan, WaitCause},
        reconcile::line_moves::LINES_MOVED,
        report::{JobReport, RunReport},
    },
    memory::{item::Tier, period::Period},
    operations::{error::CommandErrorKind, format::counted},
    store::fs::inventory::Inventory,
};

/// A period that a person asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestedPeriod {
    pub(super) period: Period,
    pub(super) has_logs: bool,
}

impl RequestedPeriod {
    pub(super) fn new(period: Period, inventory: &Inventory) -> Self {
        Self { period, has_logs: inventory.logs_of(period).next().is_some() }
    }
}

/// What a person asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Requested {
    pub(super) tier: Option<Tier>,
    pub(super) period: Option<RequestedPeriod>,
}

/// What a run did, and what is still due, as JSON.
#[derive(Serialize)]
struct JsonReport<'a> {
    #[serde(flatten)]
    report: &'a RunReport,
    /// What is due in the whole folder now.
    due: Vec<DueJob>,
}

/// A job that is due, in JSON.
#[derive(Serialize)]
pub(super) struct DueJob {
    tier: &'static str,
    period: String,
}

impl DueJob {
    pub(super) fn new((tier, period): (Tier, Period)) -> Self {
        Self { tier: tier.name(), period: period.to_string() }
    }
}

/// Returns what is due, also after other jobs.
pub(super) fn due_jobs(plan: &CompactionPlan) -> impl Iterator<Item = (Tier, Period)> {
    plan.jobs.iter().map(|it| (it.tier, it.period)).chain(plan.due_after.iter().copied())
}

/// Shows what a run did. `plan` is that after it; `all` is that of the whole folder, if the run was of a part.
pub(super) fn show_report(
    report: &RunReport,
    plan: &CompactionPlan,
    all: Option<&CompactionPlan>,
    has_logs: bool,
    requested: Requested,
    ui: &Ui,
) {
    if ui.is_json() {
        let due = due_jobs(all.unwrap_or(plan)).map(DueJob::new).collect();
        ui.json(&JsonReport { report, due });
        return;
    }
    let shown = report
        .jobs
        .iter()
        .filter(|it| ui.is_verbose() || it.tier != "extract" || it.outcome != "unchanged");
    let rows = report_rows(shown);
    if ui.is_quiet() {
        for job in report.jobs.iter().filter(|it| matches!(it.outcome, "failed" | "parked")) {
            ui.warn(format!("{} {} failed: {}", job.tier, job.period, job.reason));
        }
    } else if !rows.is_empty() {
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
            "added late lines to {logs} archived logs, which moved back from the archive"
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
            ui.note(nothing_to_do(plan, has_logs, requested));
        }
        if let Some(line) = all.and_then(others_due) {
            ui.note(line);
        }
        return;
    }
    let quiet =
        report.jobs.iter().filter(|it| it.tier == "extract" && it.outcome == "unchanged").count();
    let days = match quiet {
        0 => String::new(),
        // What they say may be in a memory about a topic, which another job has written.
        days => format!("; {} read for typed memories", counted(days, "day", "days")),
    };
    let files = match written_files(report) {
        files if files == report.written => String::new(),
        files => format!(" ({})", counted(files, "file", "files")),
    };
    let summary = format!(
        "{} written{files}, {} unchanged, {} failed{days}",
        report.written,
        report.unchanged - quiet,
        report.failed
    );
    let amounts = match report.amounts {
        0 => String::new(),
        of => format!("; {} of {of} amounts and dates kept", report.amounts_kept),
    };
    let summary = format!("{summary}{amounts}");
    if report.failed > 0 {
        ui.warn(format!("{summary}; see `memoird status`"));
    } else {
        ui.success(summary);
    }
}

/// Counts the files that a run wrote, each once.
fn written_files(report: &RunReport) -> usize {
    let written = report.jobs.iter().filter(|it| it.outcome == "written");
    let paths = written.flat_map(|it| it.path.iter().chain(&it.paths));
    paths.collect::<BTreeSet<_>>().len()
}

/// Returns the rows of a table of jobs. Jobs of `WISDOM.md`, one for each month and one for its bullets, share a row,
/// because they write one file.
fn report_rows<'a>(jobs: impl Iterator<Item = &'a JobReport>) -> Vec<Vec<String>> {
    let is_done = |it: &JobReport| matches!(it.outcome, "written" | "unchanged");
    let mut rows = Vec::new();
    let mut wisdom: Option<JobReport> = None;
    for job in jobs {
        let is_wisdom = job.tier == Tier::Wisdom.name() && is_done(job);
        match &mut wisdom {
            _ if !is_wisdom => rows.push(report_row(job)),
            None => wisdom = Some(job.clone()),
            Some(whole) => {
                whole.period.clone_from(&job.period);
                if job.outcome == "written" {
                    whole.outcome = job.outcome;
                    whole.path = job.path.clone().or(whole.path.take());
                }
                let paths = job.paths.iter().filter(|it| !whole.paths.contains(it));
                let paths: Vec<String> = paths.cloned().collect();
                whole.paths.extend(paths);
                whole.figures.items += job.figures.items;
                whole.figures.output_chars =
                    whole.figures.output_chars.max(job.figures.output_chars);
                whole.figures.source_chars =
                    whole.figures.source_chars.max(job.figures.source_chars);
            }
        }
    }
    rows.extend(wisdom.as_ref().map(report_row));
    rows
}

fn report_row(job: &JobReport) -> Vec<String> {
    let done = matches!(job.outcome, "written" | "unchanged");
    // Only the addresses in the citations have changed.
    let is_move = done && job.reason == LINES_MOVED;
    let figure = |it: u64| if is_move { "-".to_owned() } else { it.to_string() };
    let files = if job.paths.is_empty() {
        job.path.clone().unwrap_or_default()
    } else {
        job.paths.join(" ")
    };
    vec![
        job.tier.to_owned(),
        job.period.clone(),
        if is_move { "citations moved" } else { job.outcome }.to_owned(),
        figure(job.figures.items.into()),
        figure(job.figures.output_chars),
        figure(job.figures.source_chars),
        match (done, job.reason.split_once("; ")) {
            // Removed files are named only in the reason.
            (true, Some((_, removed))) => format!("{files} ({removed})").trim_start().to_owned(),
            (true, None) => files,
            (false, _) => job.reason.clone(),
        },
    ]
}

/// Returns a sentence that says why there is nothing to do, and what comes next.
pub(super) fn nothing_to_do(plan: &CompactionPlan, has_logs: bool, requested: Requested) -> String {
    let Requested { tier, period: requested } = requested;
    if !has_logs {
        return "nothing to do: there are no logs yet (`memoird log TEXT` writes one)".to_owned();
    }
    if let Some(RequestedPeriod { period, has_logs: false }) = requested {
        return format!("nothing to do: there are no logs of {period}");
    }
    if let Some((tier, period)) = plan.due_after.first() {
        return format!(
            "nothing to do: {tier} {period} waits for its sources (`memoird compact` does all tiers)"
        );
    }
    let stuck = stuck_jobs(plan);
    if stuck > 0 {
        return format!("nothing to do, but {stuck} stuck; see `memoird status`");
    }
    let undone = plan.waiting.iter().filter(|it| it.cause == WaitCause::Undone).count();
    let and_undone = if undone > 0 {
        format!("; undone and waiting for changed sources: {undone} (see `memoird status`)")
    } else {
        String::new()
    };
    let next = plan.waiting.iter().find(|it| it.cause != WaitCause::Undone);
    let what = match requested {
        Some(it) if next.is_none() => format!("nothing to do: {} is up to date", it.period),
        Some(_) => "nothing to do".to_owned(),
        None => match tier {
            Some(tier) => format!("nothing to do: {tier} is up to date"),
            None => "nothing to do: all closed periods are up to date".to_owned(),
        },
    };
    let up_to_date = match next {
        Some(next) => format!("{what}; {} {} is {}", next.tier, next.period, next.cause),
        None => what,
    };
    up_to_date + &and_undone
}

/// Returns a sentence about the jobs that are due although a requested period is not; `None` without any.
pub(super) fn others_due(all: &CompactionPlan) -> Option<String> {
    const NAMED_MAX: usize = 3;
    let names: Vec<String> =
        due_jobs(all).map(|(tier, period)| format!("{tier} {period}")).collect();
    let first = names[..names.len().min(NAMED_MAX)].join(", ");
    let more = match names.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!names.is_empty()).then(|| format!("due: {first}{more}; `memoird compact` runs them"))
}

/// Returns the number of jobs that wait for a person.
fn stuck_jobs(plan: &CompactionPlan) -> usize {
    let is_stuck = |it: &WaitCause| matches!(it, WaitCause::Stuck(_) | WaitCause::Damaged(_));
    plan.waiting.iter().filter(|it| is_stuck(&it.cause)).count()
}

/// Returns 69 if only the model was unavailable or the budget exhausted, and 1 if a job failed otherwise or is
/// stuck.
pub(super) fn exit_code(report: &RunReport, plan: &CompactionPlan) -> ExitCode {
    let waits = report.unanswered > 0 || report.model.is_some() && report.left > 0;
    let failed = report.failed.saturating_sub(report.unanswered);
    match failed + report.held.len() + stuck_jobs(plan) {
        0 if waits => CommandErrorKind::Unavailable.exit_code().into(),
        0 => ExitCode::SUCCESS,
        _ => CommandErrorKind::Job.exit_code().into(),
    }
}
