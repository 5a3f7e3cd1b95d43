//! `memoird undo`: restores the files that a run wrote.

use std::{collections::BTreeSet, process::ExitCode};

use chrono_tz::Tz;
use serde::Serialize;

use super::{GlobalArgs, ui::Ui};
use crate::{
    compaction::undo::{UndoOutcome, UndoPlan, UndoRequest, refused_jobs::UndoJob},
    memory::item::Tier,
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        undo::{describe_outcome, plan_undo, run_names, undo_runs},
        workspace::{Invocation, require_writer},
    },
    store::db::lineage::jobs::RunId,
};

/// Undo a run
///
/// Restores the files of the run as they were before it; keeps files that somebody changed since. The
/// jobs of the run are not repeated until a source changes. Undoing is a run itself: a second
/// `memoird undo` takes back the first one (a redo), not the run before it. To go further back, name
/// the run; `memoird history` lists them.
#[derive(Debug, clap::Args)]
pub(super) struct UndoArgs {
    /// The number of the run [default: a run that is only partly undone, otherwise the last one that
    /// wrote something]
    #[arg(value_name = "RUN", value_parser = parse_run)]
    run: Option<i64>,
    /// Also undo the later runs that depend on it
    #[arg(long, requires = "run")]
    with_later: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints: `schema/undo.schema.json`.
#[derive(Serialize)]
struct UndoReport<'a> {
    dry_run: bool,
    run: Option<i64>,
    taken_back: Vec<UndoneRun<'a>>,
    files: Vec<UndoFileEntry<'a>>,
    moved: Vec<&'a str>,
    refused: Vec<UndoJobEntry<'a>>,
    lifted: Vec<UndoJobEntry<'a>>,
}

#[derive(Serialize)]
struct UndoneRun<'a> {
    run: i64,
    trigger: &'a str,
    started: String,
}

#[derive(Serialize)]
struct UndoFileEntry<'a> {
    path: &'a str,
    outcome: &'static str,
    version: Option<i64>,
    followed: bool,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct UndoJobEntry<'a> {
    tier: &'static str,
    period: String,
    path: &'a str,
}

fn parse_run(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| {
        "not the number of a run; `memoird history` lists the runs with their numbers".to_owned()
    })
}

pub(super) fn run(global: &GlobalArgs, args: &UndoArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root_to_write(global, ui)?;
    let zone = root.settings.zone.name.0;
    if !args.dry_run {
        require_writer(&call, &root)?;
    }
    let request = UndoRequest { run: args.run.map(RunId), with_dependents: args.with_later };
    let (request, plan) = plan_undo(&call, &root, request)?;
    if args.dry_run {
        show(None, &plan, zone, ui);
        if !ui.is_json() {
            ui.note("nothing was changed");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let runs: Vec<RunId> = plan.runs.iter().map(|it| it.id).collect();
    if !args.yes {
        if ui.is_terminal() && !ui.is_json() {
            show(None, &plan, zone, ui);
        }
        let question = format!("Undo {}?", run_names(&plan.runs, zone));
        if !ui.confirm_or(question, || confirmation_required(&runs, request))? {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let (run, done) = undo_runs(&call, &root, request, &runs)?;
    show(Some(run), &done, zone, ui);
    if !ui.is_json() {
        ui.success(format!("run {run} undid {}", run_names(&done.runs, zone)));
        ui.note(format!(
            "`memoird undo` again redoes it; so does `memoird undo {run}` after other runs"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the error for a call without a terminal and without `--yes`.
fn confirmation_required(runs: &[RunId], request: UndoRequest) -> CommandError {
    let run = runs.last().map(ToString::to_string).unwrap_or_default();
    let later = if request.with_dependents { " --with-later" } else { "" };
    let what = format!("undoing run {run} needs confirmation");
    CommandError::usage(what)
        .hint(format!("memoird undo {run}{later} --dry-run"))
        .hint(format!("memoird undo {run}{later} --yes"))
}

fn show(run: Option<RunId>, plan: &UndoPlan, zone: Tz, ui: &Ui) {
    if ui.is_json() {
        ui.json(&UndoReport::of(run, plan, zone));
        return;
    }
    let rows: Vec<Vec<String>> = plan
        .files
        .iter()
        .filter(|it| it.outcome != UndoOutcome::Unchanged || ui.is_verbose())
        .map(|it| vec![it.path.clone(), describe_outcome(it)])
        .collect();
    if rows.is_empty() {
        ui.note("its files are already restored");
    } else if run.is_none() || !ui.is_quiet() {
        ui.table(&["file", "outcome"], &rows);
    }
    if !plan.relocated.is_empty() {
        ui.note(format!(
            "citations of relocated lines keep their new line numbers ({})",
            counted(plan.relocated.len(), "file", "files")
        ));
    }
    let shown = |list: &[UndoJob]| -> String {
        let list = unique_jobs(list);
        let days = list.iter().filter(|it| it.tier == Tier::Extract).count();
        let mut names: Vec<String> = list
            .iter()
            .filter(|it| it.tier != Tier::Extract)
            .map(|it| format!("{} {}", it.tier, it.period))
            .collect();
        if days > 0 {
            names.push(format!("extraction of {}", counted(days, "day", "days")));
        }
        names.join(", ")
    };
    if !plan.refused.is_empty() {
        ui.note(format!("not repeated until a source changes: {}", shown(&plan.refused)));
    }
    if !plan.lifted.is_empty() {
        ui.note(format!("will be repeated when due: {}", shown(&plan.lifted)));
    }
}

/// Returns each period once: it may have been written twice, from different sources.
fn unique_jobs(list: &[UndoJob]) -> Vec<&UndoJob> {
    let mut seen = BTreeSet::new();
    list.iter().filter(|it| seen.insert((it.tier, it.period))).collect()
}

impl<'a> UndoReport<'a> {
    fn of(run: Option<RunId>, plan: &'a UndoPlan, zone: Tz) -> Self {
        let entries = |list: &'a [UndoJob]| {
            let entry = |it: &'a UndoJob| UndoJobEntry {
                tier: it.tier.name(),
                period: it.period.to_string(),
                path: &it.path,
            };
            unique_jobs(list).into_iter().map(entry).collect()
        };
        Self {
            dry_run: run.is_none(),
            run: run.map(|it| it.0),
            taken_back: plan
                .runs
                .iter()
                .map(|it| UndoneRun {
                    run: it.id.0,
                    trigger: &it.trigger,
                    started: it.started.with_timezone(&zone).to_rfc3339(),
                })
                .collect(),
            files: plan
                .files
                .iter()
                .map(|it| UndoFileEntry {
                    path: &it.path,
                    outcome: it.outcome.name(),
                    version: it.version.map(|it| it.0),
                    followed: it.citations_updated,
                    reason: it.reason.as_deref(),
                })
                .collect(),
            moved: plan.relocated.iter().map(String::as_str).collect(),
            refused: entries(&plan.refused),
            lifted: entries(&plan.lifted),
        }
    }
}
