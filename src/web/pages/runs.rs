//! Runs: what each wrote, with its receipts and failures; undo, with what it would do shown first.

use maud::{Markup, html};

use super::{or_error, page_of_file, problem};
use crate::{
    compaction::{
        report,
        undo::{UndoPlan, UndoRequest},
    },
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        history::{HistoryReader, RunSummary, recorded_run, recorded_runs},
        status::health::{FolderHealth, JobState, daemon_state},
        undo,
    },
    privacy::PrivacyRules,
    store::db::lineage::jobs::{JobRow, RunId},
    web::{
        address::PageAddress,
        context::{Fields, PageContext},
        layout::{self, PageContent},
        page_compaction::CompactionResult,
        progress,
        state_cache::UndoPreview,
    },
};

/// How many runs are listed.
const RUNS_MAX: usize = 100;
/// How many jobs of a run are listed.
const JOBS_MAX: usize = 400;
/// How many files of a run are named in the list.
const NAMED_MAX: usize = 3;

pub(super) fn render(context: &PageContext, fields: &Fields) -> CommandResult<PageContent> {
    let health = context.health();
    let past = HistoryReader::open(&context.call, &context.root)?;
    let (runs, older) = recorded_runs(&past, RUNS_MAX)?;
    let running = progress::running(context.root.vault.layout(), &context.shared.compaction)?;
    let started = fields.get("started").and_then(|it| it.parse().ok());
    let result = started.and_then(|it| context.shared.compaction.result_of(it));
    let body = html! {
        @if let Some(run) = fields.get("undone").and_then(|it| it.parse::<i64>().ok()) {
            p .done role="status" { "Undone by " (context.link(&PageAddress::Run(run), format!("run {run}"))) "." }
        }
        @if let Some(result) = result { (compaction_result(&result)) }
        p .running data-run=(running.as_deref().unwrap_or_default()) role="status" aria-live="polite" {
            @match &running { Some(what) => (what), None => "Nothing runs now." }
        }
        (or_error(health.and_then(|it| state(context, &it))))
        h2 { "History" }
        @if runs.is_empty() { p { "No run yet." } }
        div .table role="region" aria-label="Runs" tabindex="0" {
            table {
                thead { tr { th scope="col" { "Run" } th scope="col" { "Started" } th scope="col" { "By" } th scope="col" { "Files" } } }
                tbody { @for run in &runs { (row(context, run)) } }
            }
        }
        @if older > 0 { p { "and " (older) " older" } }
    };
    Ok(PageContent::new("Runs", body).changing(running.is_some()))
}

/// Says what became of the compaction that this page started.
fn compaction_result(result: &CompactionResult) -> Markup {
    match result {
        Ok(0) => html! { p .done role="status" { "Done." } },
        Ok(failed) => html! {
            p .problem role="alert" { (counted(*failed, "job", "jobs")) " failed; see below." }
        },
        Err(error) => problem(error),
    }
}

fn state(context: &PageContext, health: &FolderHealth) -> CommandResult<Markup> {
    let daemon = daemon_state(&context.root)?;
    Ok(html! {
        p { (health.line(daemon)) "." @if let Some(next) = &health.next_due { " Next: " (next) "." } }
        (jobs("Stuck: these wait for you", "stuck", &health.stuck))
        (jobs("Failed when last tried", "stuck", &health.failed))
        (jobs("Due", "due", &health.due))
        (jobs("Undone, until a source changes", "due", &health.undone))
        @if !health.problems.is_empty() {
            h2 { "Problems" }
            ul { @for (path, reason) in &health.problems { li { code { (path) } ": " (PrivacyRules::mask_message(reason)) } } }
        }
        @if let Some(token) = layout::form_token(context) {
            form method="post" action=[context.href(&PageAddress::Runs)] {
                (token)
                p .buttons { button name="do" value="compact" { "Run everything that is due" } }
            }
        }
    })
}

fn jobs(title: &str, class: &str, jobs: &[JobState]) -> Markup {
    const DUE_MAX: usize = 30;
    html! {
        @if !jobs.is_empty() {
            h2 { (title) }
            ul {
                @for job in jobs.iter().take(DUE_MAX) {
                    li { span class=(format!("tag {class}")) { (job.tier) " " (job.period) } " " (PrivacyRules::mask_message(&job.reason)) }
                }
            }
            @if jobs.len() > DUE_MAX { p { "and " (jobs.len() - DUE_MAX) " more" } }
        }
    }
}

fn row(context: &PageContext, run: &RunSummary) -> Markup {
    let files: Vec<&String> = run.written.iter().chain(&run.removed).rev().collect();
    html! {
        tr data-row {
            th scope="row" { (context.link(&PageAddress::Run(run.run), run.run)) }
            td { (run.started_local()) }
            td { (run.trigger) }
            td {
                @for path in files.iter().take(NAMED_MAX) { (context.link(&page_of_file(context, path), *path)) " " }
                @if files.len() > NAMED_MAX { "and " (files.len() - NAMED_MAX) " more " }
                @if files.is_empty() { "– " }
                @if let Some(by) = run.taken_back_by { span .tag { "undone by run " (by) } }
                @if run.ended.is_none() { span .tag .due { "not finished" } }
            }
        }
    }
}

/// One run: its jobs with their receipts, its files, and the way to undo it.
pub(super) fn one(context: &PageContext, number: i64) -> CommandResult<PageContent> {
    let past = HistoryReader::open(&context.call, &context.root)?;
    let run = recorded_run(&past, number)?.ok_or_else(|| {
        CommandError::usage(format!("there is no run {number}")).hint("memoird history")
    })?;
    let jobs = past.lineage().map(|it| it.jobs_of_run(RunId(number))).transpose()?;
    let mut jobs = jobs.unwrap_or_default();
    // What failed comes first: a run of years has thousands of jobs.
    jobs.sort_by_key(|it| !has_failed(it));
    let body = html! {
        p { "By " (run.trigger) ", started " (run.started_local()) "." }
        @if let Some(by) = run.taken_back_by { p { "Undone by " (context.link(&PageAddress::Run(by), format!("run {by}"))) "." } }
        @if run.ended.is_none() { p { "It has not finished, or was interrupted." } }
        @if !context.is_export() && run.taken_back_by.is_none() && !(run.written.is_empty() && run.removed.is_empty()) {
            p .actions { (context.link(&PageAddress::Undo(number), "Undo: show what it would do")) }
        }
        @if !jobs.is_empty() {
            h2 { "Jobs" }
            div .table role="region" aria-label="Jobs" tabindex="0" {
                table {
                    thead { tr { @for name in ["Job", "Outcome", "Engine", "Sources", "Items", "Left out", "Rejected", "Cost"] { th scope="col" { (name) } } } }
                    tbody { @for job in jobs.iter().take(JOBS_MAX) { (job_row(context, job)) } }
                }
            }
        }
        @if jobs.len() > JOBS_MAX { p { "and " (jobs.len() - JOBS_MAX) " more jobs" } }
        (files(context, "Written", &run.written))
        (files(context, "Removed", &run.removed))
    };
    Ok(PageContent::new(format!("Run {number}"), body))
}

/// Returns whether a job ended without doing its work.
fn has_failed(job: &JobRow) -> bool {
    job.receipt.as_ref().is_some_and(|it| report::outcome_name(it) == "failed")
}

fn job_row(context: &PageContext, job: &JobRow) -> Markup {
    let metrics = job.receipt.as_ref().map(|it| it.metrics).unwrap_or_default();
    let number = |it: u32| if it > 0 { it.to_string() } else { "–".to_owned() };
    html! {
        tr {
            th scope="row" {
                @let name = format!("{} {}", job.tier, job.period);
                @match job.receipt.as_ref().and_then(|it| it.path.as_deref()) {
                    Some(path) => (context.link(&page_of_file(context, path), name)),
                    None => (name),
                }
            }
            td {
                @match &job.receipt {
                    Some(receipt) => {
                        (receipt.outcome.name())
                        @if let Some(reason) = &receipt.reason { ": " (PrivacyRules::mask_message(reason)) }
                    }
                    None => "running",
                }
                @if job.attempt > 1 { " (attempt " (job.attempt) ")" }
            }
            td { (job.engine) }
            td .number { (number(metrics.sources)) }
            td .number { (number(metrics.items)) }
            td .number { (number(metrics.uncovered)) }
            td .number { (number(metrics.rejected)) }
            td .number { @if metrics.model_calls > 0 { (format!("{:.4} USD", metrics.cost_usd)) } @else { "–" } }
        }
    }
}

fn files(context: &PageContext, title: &str, paths: &[String]) -> Markup {
    const FILES_MAX: usize = 300;
    html! {
        @if !paths.is_empty() {
            h2 { (title) }
            ul {
                @for path in paths.iter().take(FILES_MAX) {
                    li {
                        (context.link(&page_of_file(context, path), path))
                        @if context.root.vault.layout().kind_of(path).is_some() {
                            " " (context.versions_link(path, "versions"))
                        }
                    }
                }
            }
            @if paths.len() > FILES_MAX { p { "and " (paths.len() - FILES_MAX) " more" } }
        }
    }
}

fn preview_of(context: &PageContext, number: i64) -> CommandResult<UndoPreview> {
    let request = UndoRequest { run: Some(RunId(number)), with_dependents: false };
    match undo::plan_undo(&context.call, &context.root, request) {
        Ok((request, plan)) => Ok(UndoPreview { plan, with_later: request.with_dependents }),
        Err(error) => {
            // Later runs depend on it: the form undoes them, too, and names them.
            let all = UndoRequest { with_dependents: true, ..request };
            let (_, plan) =
                undo::plan_undo(&context.call, &context.root, all).map_err(|_| error)?;
            Ok(UndoPreview { plan, with_later: true })
        }
    }
}

/// What undoing a run would do, and the form to do it.
pub(super) fn undo_preview(context: &PageContext, number: i64) -> CommandResult<PageContent> {
    let preview = context.undo_preview(number, || preview_of(context, number))?;
    let UndoPreview { plan, with_later } = &*preview;
    let body = html! {
        p {
            "This would undo "
            @for (i, run) in plan.runs.iter().enumerate() {
                @if i > 0 { ", " }
                (context.link(&PageAddress::Run(run.id.0), format!("run {} ({})", run.id, run.trigger)))
            }
            ". Files that somebody changed since are kept."
        }
        @if plan.runs.len() > 1 { p { "The later runs depend on run " (number) "." } }
        (undo_files(context, plan))
        @match layout::form_token(context) {
            Some(token) => form method="post" action=[context.href(&PageAddress::Undo(number))] {
                (token)
                @for run in &plan.runs { input type="hidden" name="run" value=(run.id); }
                @if *with_later { input type="hidden" name="later" value="1"; }
                p .buttons { button name="do" value="undo" { "Undo" } }
            },
            None => p { "Nothing can be changed here: the page was opened with --read-only." },
        }
    };
    Ok(PageContent::new(format!("Undo run {number}"), body))
}

fn undo_files(context: &PageContext, plan: &UndoPlan) -> Markup {
    html! {
        @if plan.files.is_empty() { p { "Its files are already restored." } }
        ul {
            @for file in &plan.files {
                li { (context.link(&page_of_file(context, &file.path), &file.path)) ": " (undo::describe_outcome(file)) }
            }
        }
    }
}
