//! `memoird undo`: takes back what a run wrote.

use std::{collections::BTreeSet, process::ExitCode};

use chrono_tz::Tz;
use serde::Serialize;

use super::{
    GlobalArgs,
    compact::refuse_reader,
    context::Call,
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::{
    compaction::{
        self, PassError,
        undo::{
            Fate, Request, Undoing, UndoneFile,
            error::{Later, UndoError},
            foresight::Foresight,
            work::Work,
        },
    },
    memory::item::Tier,
    store::{
        lineage::{
            Lineage,
            jobs::{RunId, RunRow},
        },
        vault::VaultError,
    },
};

/// Take back a run
///
/// Its files stand again as they stood before it; what somebody else changed since is left alone.
/// Its work is not done again until an input changes. Taking back is a run itself: `memoird undo`
/// once more puts everything back.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The number of the run; when none is given, one that is taken back only in part, else the last
    /// one that wrote something
    #[arg(value_name = "RUN")]
    run: Option<i64>,
    /// Also the later runs that rest on it
    #[arg(long, requires = "run")]
    with_later: bool,
    /// Show what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints: `schema/undo.schema.json`.
#[derive(Serialize)]
struct Report<'a> {
    dry_run: bool,
    /// The run that took the others back.
    run: Option<i64>,
    taken_back: Vec<Taken<'a>>,
    files: Vec<FileOf<'a>>,
    moved: Vec<&'a str>,
    refused: Vec<WorkOf<'a>>,
    lifted: Vec<WorkOf<'a>>,
}

#[derive(Serialize)]
struct Taken<'a> {
    run: i64,
    trigger: &'a str,
    started: String,
}

#[derive(Serialize)]
struct FileOf<'a> {
    path: &'a str,
    outcome: &'static str,
    version: Option<i64>,
    followed: bool,
    reason: Option<&'a str>,
}

#[derive(Serialize)]
struct WorkOf<'a> {
    tier: &'static str,
    period: String,
    path: &'a str,
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    let root = call.root(global)?;
    let zone = root.settings.zone.name.0;
    let engine = root.engine(&call)?;
    let now = call.now;
    if !args.dry_run {
        refuse_reader(&call, &root)?;
    }
    let mut request = Request { run: args.run.map(RunId), with_later: args.with_later };
    let foreseen = {
        let nothing = || refusal(UndoError::Nothing, zone);
        let lineage = Lineage::open_existing(&root.vault.layout().database())?;
        let lineage = lineage.ok_or_else(nothing)?;
        let view = compaction::peek(&root.vault, Some(&lineage))?;
        view.refuse_held(|_| true)?;
        let foresight = Foresight {
            vault: &root.vault,
            lineage: &lineage,
            view: &view,
            settings: &root.settings,
            engine: engine.id(),
            now,
        };
        // What was begun goes on as it was asked for.
        request = foresight.meant(request)?;
        foresight.undo(request).map_err(|error| refusal(error, zone))?
    };
    if args.dry_run {
        show(None, &foreseen, zone, ui);
        if !ui.is_json() {
            ui.note("nothing was changed");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let runs: Vec<RunId> = foreseen.runs.iter().map(|it| it.id).collect();
    if !args.yes {
        if ui.is_terminal() && !ui.is_json() {
            show(None, &foreseen, zone, ui);
        }
        match ui.ask(format!("take back {}?", named(&foreseen.runs, zone))) {
            Some(true) => {}
            Some(false) => {
                ui.note("nothing was changed");
                return Ok(ExitCode::SUCCESS);
            }
            None => return Err(unasked(&runs, request)),
        }
    }
    // What was shown is what is done, whatever was written meanwhile.
    request.run = runs.last().copied();
    let mut lineage = root.lineage()?;
    let clock = call.clock();
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let (run, done) = compactor.undo(request, &runs).map_err(|error| refusal(error, zone))?;
    show(Some(run), &done, zone, ui);
    if !ui.is_json() {
        ui.good(format!("run {run} took back {}", named(&done.runs, zone)));
        ui.note(format!("`memoird undo {run}` puts it back"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Nobody can be asked, and nobody said yes.
fn unasked(runs: &[RunId], request: Request) -> CommandError {
    let run = runs.last().map(ToString::to_string).unwrap_or_default();
    let later = if request.with_later { " --with-later" } else { "" };
    CommandError::new(Kind::Usage, format!("taking back run {run} needs a yes"))
        .hint(format!("memoird undo {run}{later} --dry-run"))
        .hint(format!("memoird undo {run}{later} --yes"))
}

fn show(run: Option<RunId>, undoing: &Undoing, zone: Tz, ui: &Ui) {
    if ui.is_json() {
        ui.json(&Report::of(run, undoing, zone));
        return;
    }
    let rows: Vec<Vec<String>> = undoing
        .files
        .iter()
        .filter(|it| it.fate != Fate::Already || ui.is_verbose())
        .map(|it| vec![it.path.clone(), what_becomes(it)])
        .collect();
    if rows.is_empty() {
        ui.note("its files stand as they should already");
    } else {
        ui.table(&["file", "what becomes of it"], &rows);
    }
    if !undoing.moved.is_empty() {
        ui.note(format!(
            "citations that followed lines that moved stay where the lines are ({} files)",
            undoing.moved.len()
        ));
    }
    let shown = |list: &[Work]| -> String {
        let list = once(list);
        let days = list.iter().filter(|it| it.tier == Tier::Extract).count();
        let mut names: Vec<String> = list
            .iter()
            .filter(|it| it.tier != Tier::Extract)
            .map(|it| format!("{} {}", it.tier, it.period))
            .collect();
        if days > 0 {
            names.push(format!("extraction of {days} days"));
        }
        names.join(", ")
    };
    if !undoing.refused.is_empty() {
        ui.note(format!("not done again until an input changes: {}", shown(&undoing.refused)));
    }
    if !undoing.lifted.is_empty() {
        ui.note(format!("no longer refused: {}", shown(&undoing.lifted)));
    }
}

/// Names each period once: it may have been made twice, of other inputs.
fn once(list: &[Work]) -> Vec<&Work> {
    let mut seen = BTreeSet::new();
    list.iter().filter(|it| seen.insert((it.tier, it.period))).collect()
}

fn what_becomes(file: &UndoneFile) -> String {
    let reason = file.reason.as_deref().unwrap_or_default();
    match file.fate {
        Fate::Restored | Fate::Already => {
            let mut text = match file.version {
                Some(version) => format!("restored to version {}", version.0),
                None => "removed".to_owned(),
            };
            if file.fate == Fate::Already {
                text = format!("stands as it should ({text})");
            }
            if file.followed {
                text.push_str(", citations where the lines are now");
            }
            if reason.is_empty() { text } else { format!("{text}: {reason}") }
        }
        Fate::Removed => "removed; its text stays in the history".to_owned(),
        Fate::Kept => format!("kept: {reason}"),
        Fate::Lost => reason.to_owned(),
    }
}

/// Names runs with when and what: `run 7 (2026-04-13 09:00, compact)`.
fn named(runs: &[RunRow], zone: Tz) -> String {
    let one = |it: &RunRow| {
        let at = it.started.with_timezone(&zone).format("%Y-%m-%d %H:%M");
        format!("run {} ({at}, {})", it.id, it.trigger)
    };
    runs.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Of the files that tie a run to another, so many are named.
const NAMED_MAX: usize = 2;

fn told(later: &Later, zone: Tz) -> String {
    let named = named(std::slice::from_ref(&later.run), zone);
    let paths: Vec<&str> = later.paths.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = match later.paths.len() - paths.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{named}: {}{more}", paths.join(", "))
}

/// Says what a person can do about it.
fn refusal(error: UndoError, zone: Tz) -> CommandError {
    let usage = |error: UndoError| CommandError::new(Kind::Usage, error);
    match error {
        UndoError::Pass(error) => error.into(),
        UndoError::CutOff { run, with_later, ref source, .. } => {
            let kind = match source.as_ref() {
                UndoError::Pass(PassError::Vault(it)) if it.is_write() => Kind::CannotWrite,
                UndoError::Pass(PassError::Lineage(it)) if it.is_write() => Kind::CannotWrite,
                UndoError::Pass(PassError::Vault(VaultError::Changed { .. })) => Kind::Busy,
                _ => Kind::Data,
            };
            let later = if with_later { " --with-later" } else { "" };
            CommandError::new(kind, error)
                .hint(format!("put that right, then take it up again: memoird undo {run}{later}"))
        }
        UndoError::RestedOn { run, later } => {
            let told: Vec<String> = later.iter().map(|it| told(it, zone)).collect();
            let what = format!("later runs rest on run {run}: {}", told.join("; "));
            CommandError::new(Kind::Usage, what).hint(format!("memoird undo {run} --with-later"))
        }
        UndoError::Unknown { run, known } => {
            let known: Vec<String> = known.iter().rev().take(5).map(ToString::to_string).collect();
            let hint = if known.is_empty() {
                "nothing was written yet".to_owned()
            } else {
                format!("the last ones that can be taken back: {}", known.join(", "))
            };
            usage(UndoError::Unknown { run, known: Vec::new() }).hint(hint)
        }
        UndoError::Said { run, before } => {
            let older = before.map(|it| format!("; what was done before it: memoird undo {it}"));
            let hint = format!(
                "memoird review list --decided, then memoird review reopen ID{}",
                older.unwrap_or_default()
            );
            usage(UndoError::Said { run, before }).hint(hint)
        }
        UndoError::Taken { run, by } => {
            usage(UndoError::Taken { run, by }).hint(format!("memoird undo {by}"))
        }
        error @ UndoError::Overtaken => {
            CommandError::new(Kind::Busy, error).hint("do the same again")
        }
        error @ UndoError::Kept { .. } => CommandError::new(Kind::Data, error),
        error @ (UndoError::Forgot { .. } | UndoError::NothingOf { .. }) => usage(error)
            .hint("`memoird history` lists the runs; `memoird undo RUN` takes another one"),
        error @ UndoError::Repair { .. } => {
            usage(error).hint("what stood there is kept in .memoird/quarantine")
        }
        error => usage(error).hint("`memoird history` lists the runs"),
    }
}

impl<'a> Report<'a> {
    fn of(run: Option<RunId>, undoing: &'a Undoing, zone: Tz) -> Self {
        let works = |list: &'a [Work]| {
            let work = |it: &'a Work| WorkOf {
                tier: it.tier.name(),
                period: it.period.to_string(),
                path: &it.path,
            };
            once(list).into_iter().map(work).collect()
        };
        Self {
            dry_run: run.is_none(),
            run: run.map(|it| it.0),
            taken_back: undoing
                .runs
                .iter()
                .map(|it| Taken {
                    run: it.id.0,
                    trigger: &it.trigger,
                    started: it.started.with_timezone(&zone).to_rfc3339(),
                })
                .collect(),
            files: undoing
                .files
                .iter()
                .map(|it| FileOf {
                    path: &it.path,
                    outcome: it.fate.name(),
                    version: it.version.map(|it| it.0),
                    followed: it.followed,
                    reason: it.reason.as_deref(),
                })
                .collect(),
            moved: undoing.moved.iter().map(String::as_str).collect(),
            refused: works(&undoing.refused),
            lifted: works(&undoing.lifted),
        }
    }
}
