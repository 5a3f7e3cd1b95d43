//! `memoird doctor`: checks files, database, and settings, and repairs what a program can.
//!
//! Without `--repair` it reads and never writes. Each check stands alone, so that one that cannot be
//! made hides no other. What the machine is asked stands in `system` and `keys`, what is asked of memory in
//! [`crate::compaction::check`], and what is done about it in [`crate::compaction::repair`].

mod keys;
mod sandbox;
mod system;

use std::process::ExitCode;

use chrono::{DateTime, Duration, Utc};
use serde::Serialize;

use super::{
    GlobalArgs,
    compact::refuse_reader,
    context::{Call, Root},
    error::{CommandError, Kind},
    secrets,
    ui::{self, Ui},
};
use crate::{
    compaction::{
        self, View,
        check::{self, Checked, Found},
        plan::Selection,
        rebuild::{self, Look, Opened},
        repair,
    },
    engine::configured,
    memory::{hash::ContentHash, index, typed_schema},
    model::{embedding::Side, open},
    store::{
        lineage::{Lineage, LineageError},
        lock::PassLock,
        postings::Postings,
        vault::leftovers::REPLACED_DIR,
        vectors::Vectors,
    },
};

/// Check files, database, and settings
///
/// Without --repair it changes nothing. Exit code 0 says that all is well, 1 that something is not.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct Args {
    /// Put right what can be put right: nothing is deleted, what is replaced is kept in
    /// .memoird/quarantine
    #[arg(long)]
    repair: bool,
    /// Look for secrets instead, in logs, generated files, and the history: kinds and places, never a
    /// value. With --repair they are replaced in generated files
    #[arg(long)]
    secrets: bool,
    /// Shut this process in as the daemon is, try what must not work, and say what holds
    #[arg(long, conflicts_with_all = ["repair", "secrets"])]
    sandbox: bool,
    /// With --repair: show what would be done, and do nothing
    #[arg(long, requires = "repair")]
    dry_run: bool,
    /// With --repair: do not ask
    #[arg(long, short, requires = "repair")]
    yes: bool,
}

/// What `--json` prints; a document of `schema/doctor.schema.json`.
#[derive(Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
    /// What `--repair` did or, with `--dry-run`, would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Check {
    name: &'static str,
    ok: bool,
    detail: String,
    /// Whether it is well now but may not stay so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warning: bool,
}

/// No list of findings says more than this; the rest is counted.
const FINDINGS_MAX: usize = 20;

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    if args.secrets {
        let call = Call::read(global)?;
        let root = call.root(global)?;
        let asked = secrets::Asked {
            deed: if args.repair { secrets::Deed::Redact } else { secrets::Deed::Tell },
            dry_run: args.dry_run,
            yes: args.yes,
            verb: "memoird doctor --secrets --repair",
        };
        return secrets::run(&call, &root, asked, ui);
    }
    if args.sandbox {
        let checks = sandbox::checks(global)?;
        let report = Report { ok: checks.iter().all(|it| it.ok), checks, repairs: None };
        show(&report, false, ui);
        return Ok(if report.ok { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() });
    }
    let opened = Call::read(global).and_then(|call| Ok((call.root(global)?, call)));
    let mut repairs = None;
    let checks = match opened {
        Ok((root, call)) => {
            if args.repair {
                repairs = mend(&root, &call, args, ui)?;
            }
            check_root(&root, &call)
        }
        // A configuration that does not load is what was asked about; a root that nobody named is not.
        Err(error) if error.kind() == Kind::Config => {
            let mut found = vec![error.to_string()];
            found.extend(error.hints().iter().cloned());
            let mut checks = vec![Check::new("configuration", Ok(Found::Ill(found)))];
            let keys = keys::without_root(global.config.as_deref());
            checks.extend(keys.map(|it| Check::new("keys", Ok(it))));
            checks
        }
        Err(error) => return Err(error),
    };
    let report = Report { ok: checks.iter().all(|it| it.ok), checks, repairs };
    show(&report, args.dry_run, ui);
    Ok(if report.ok { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() })
}

/// Repairs what can be repaired, if a person says so; `None` when they do not.
fn mend(
    root: &Root,
    call: &Call,
    args: &Args,
    ui: &Ui,
) -> Result<Option<Vec<String>>, CommandError> {
    refuse_reader(call, root)?;
    let engine = root.engine(call)?;
    root.refuse_stranger()?;
    let now = call.now;
    let database = root.vault.layout().database();
    let damaged = match Lineage::open_existing(&database)
        .and_then(|it| it.as_ref().map_or(Ok(()), check::database))
    {
        Ok(()) => None,
        Err(LineageError::Damaged { detail, .. }) => Some(detail),
        Err(error) => return Err(error.into()),
    };
    let mut plan = Vec::new();
    if let Some(detail) = &damaged {
        plan.push(format!(
            "the database is damaged ({detail}): put it aside, make it anew from the files, and take over what it still holds"
        ));
    }
    {
        let lineage = if damaged.is_none() { Lineage::open_existing(&database)? } else { None };
        let view = compaction::peek(&root.vault, lineage.as_ref())?;
        let steps = repair::steps(&root.vault, &view, lineage.as_ref())?;
        plan.extend(steps.iter().map(ToString::to_string));
    }
    if plan.is_empty() || args.dry_run {
        return Ok(Some(plan));
    }
    if !args.yes {
        for step in &plan {
            ui.note(step);
        }
        match ui.ask("Do this? Nothing is deleted.") {
            Some(true) => {}
            Some(false) => return Ok(None),
            None => {
                return Err(CommandError::new(
                    Kind::Usage,
                    "`--repair` asks, and nobody can answer",
                )
                .hint("memoird doctor --repair --yes")
                .hint("memoird doctor --repair --dry-run"));
            }
        }
    }
    let clock = call.clock();
    let Opened { mut lineage, mending, .. } = rebuild::open(&root.vault, Look::Close, now)?;
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let mut said = Vec::new();
    if let Some(mending) = mending {
        said.push(mending.mended.to_string());
        compactor.mend(mending, now)?;
    }
    // What is left to do is looked at again: with the database much may have been put right.
    let view = compactor.look(now)?;
    let steps = repair::steps(&root.vault, &view, Some(compactor.lineage))?;
    said.extend(compactor.repair(&steps, now)?);
    Ok(Some(said))
}

fn check_root(root: &Root, call: &Call) -> Vec<Check> {
    let vault = &root.vault;
    let layout = vault.layout();
    let is_reader = !root.settings.is_written_by(&call.around.host);
    let mut checks = vec![
        Check::new("configuration", Ok(configuration(root, call))),
        Check::new("keys", Ok(keys::of_root(root, call))),
        Check::new("root", system::folder(layout.root(), is_reader)),
        Check::new("memory folder", system::folder(&layout.full(layout.memory_dir()), is_reader)),
        Check::new("private files", system::private_files(layout)),
        Check::new("file system", system::file_system(layout.root())),
        Check::new("disk space", system::disk_space(layout.root())),
        Check::new("SQLite", Ok(system::sqlite())),
    ];
    let (lineage, database) = match Lineage::open_existing(&layout.database()) {
        Ok(Some(lineage)) => {
            let sound = check::database(&lineage);
            let counts = sound.and_then(|()| lineage.counts()).map(|it| {
                let version = Lineage::schema_version();
                Found::Well(format!("schema {version}, {} items, {} logs", it.items, it.logs))
            });
            (Some(lineage), counts)
        }
        Ok(None) => (None, Ok(Found::Well("none yet".to_owned()))),
        Err(error) => (None, Err(error)),
    };
    let is_sound = database.is_ok();
    checks.push(Check::new("database", database.map_err(Into::into)));
    let lineage = lineage.filter(|_| is_sound);
    let lineage = lineage.as_ref();
    if is_sound {
        checks.push(Check::new("last run", check::witness(layout, lineage)));
    }
    match compaction::peek(vault, lineage) {
        Ok(view) => {
            let documents = check::documents(vault, &view);
            let torn = check::torn_files(vault, &view, lineage);
            checks.push(Check::new(
                "torn files",
                torn.map(|it| check::files(&it)).map_err(Into::into),
            ));
            if is_sound {
                let found = check::recorded(vault, &view, lineage, &documents);
                checks.push(Check::new("records", found));
                let told = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts);
                let found = told.map_err(Into::into);
                let found = found.and_then(|it| check::receipts(vault, lineage, &it, None));
                checks.push(Check::new("receipts", found));
            }
            checks.push(Check::new("citations", check::citations(vault, &documents)));
            checks.push(Check::new("orphans", Ok(check::orphans(vault, &view))));
            checks.push(Check::new("links", Ok(system::links(layout, &view))));
            checks.push(Check::new("typed memories", Ok(typed_memories(&view))));
            checks.push(Check::new("MEMORY.md", Ok(index_in_step(&view))));
            checks.push(Check::new("names and encodings", Ok(names(&view))));
            checks.push(Check::new("decisions", check::decisions(vault, &view)));
            checks.push(Check::new("clock", clock(root, call.now, &view, lineage)));
        }
        Err(error) => checks.push(Check::new("files", Err(error.into()))),
    }
    if is_sound {
        checks.push(Check::new("unfinished work", unfinished(root, lineage)));
        if let Some(begun) = check::undoing(vault, lineage).transpose() {
            checks.push(Check::new("undo", begun.map(Found::Warning).map_err(Into::into)));
        }
    }
    if let Some(said) = Postings::unsound(&layout.search_index()) {
        let said = format!("damaged ({said}); the next search makes it anew");
        checks.push(Check::new("search index", Ok(Found::Warning(said))));
    }
    if let Some(said) = Vectors::unsound(&layout.vectors()) {
        let said = format!("damaged ({said}); the next pass has them made anew");
        checks.push(Check::new("vectors", Ok(Found::Warning(said))));
    }
    checks.extend(kept_copies(root).map(|it| Check::new("kept copies", it)));
    checks
}

impl Check {
    fn new(name: &'static str, checked: Checked) -> Self {
        let (ok, warning, detail) = match checked {
            Ok(Found::Well(detail)) => (true, false, detail),
            Ok(Found::Warning(detail)) => (true, true, detail),
            Ok(Found::Ill(mut findings)) => {
                let more = findings.len().saturating_sub(FINDINGS_MAX);
                findings.truncate(FINDINGS_MAX);
                if more > 0 {
                    findings.push(format!("and {more} more"));
                }
                (false, false, findings.join("\n"))
            }
            Err(error) => {
                let source = error.source().map(ToString::to_string);
                let said = error.to_string();
                let source = source.filter(|it| !said.contains(it.as_str()));
                (false, false, source.map_or(said.clone(), |it| format!("{said}: {it}")))
            }
        };
        Self { name, ok, detail, warning }
    }
}

fn configuration(root: &Root, call: &Call) -> Found {
    let made =
        configured::engine(&call.config, &root.settings, &call.around, std::time::Duration::ZERO);
    if let Err(error) = made {
        return Found::Ill(vec![error.to_string()]);
    }
    if let Err(error) = open::embedder(&call.config, &root.settings, &call.around, Side::Line) {
        return Found::Ill(vec![format!("search.embeddings: {error}")]);
    }
    Found::Well(match &call.config.file {
        Some(file) => file.display().to_string(),
        None => "no config.yaml; the defaults hold".to_owned(),
    })
}

fn typed_memories(view: &View) -> Found {
    let memories = &view.inventory.memories;
    let findings =
        memories.iter().filter_map(|it| Some(typed_schema::check(it).err()?.to_string()));
    Found::unless(findings.collect(), || format!("{} are in form", memories.len()))
}

fn index_in_step(view: &View) -> Found {
    let inventory = &view.inventory;
    let present = inventory.index.as_deref();
    if present.is_none() && inventory.memories.is_empty() {
        return Found::Well("not needed yet".to_owned());
    }
    let wanted = index::render(present, &inventory.memories, &|it| inventory.rules.written(it));
    if present.map(ContentHash::of) == Some(ContentHash::of(&wanted)) {
        Found::Well("lists all typed memories".to_owned())
    } else {
        Found::Ill(vec!["not in step with the typed memories; `memoird compact`".to_owned()])
    }
}

fn names(view: &View) -> Found {
    let problems = &view.inventory.problems;
    let findings = problems.iter().map(|it| ui::one_line(&format!("{}: {}", it.path, it.reason)));
    Found::unless(findings.collect(), || "every file can be read".to_owned())
}

/// Compares the clock with the dates of logs and with the last run.
///
/// Times of files are no witness: a file that was copied from elsewhere may carry any.
fn clock(root: &Root, now: DateTime<Utc>, view: &View, lineage: Option<&Lineage>) -> Checked {
    let selection = Selection::default();
    let plan = compaction::plan_of(
        view,
        &root.settings,
        &configured::id(&root.settings.settings),
        &selection,
        now,
    );
    let mut findings: Vec<String> =
        plan.problems.iter().map(|it| format!("{}: {}", it.path, it.reason)).collect();
    let runs = lineage.map_or_else(|| Ok(Vec::new()), |it| it.last_runs(1))?;
    for run in runs.iter().filter(|it| it.started > now + Duration::days(1)) {
        let zone = root.settings.zone.name.0;
        let (then, now) = (run.started.with_timezone(&zone), now.with_timezone(&zone));
        let date = "%Y-%m-%d %H:%M";
        findings.push(format!(
            "the last run was on {}, but it is {} now; is the clock right?",
            then.format(date),
            now.format(date)
        ));
    }
    Ok(Found::unless(findings, || "no log and no run lies in the future".to_owned()))
}

/// Looks for what a crash left.
fn unfinished(root: &Root, lineage: Option<&Lineage>) -> Checked {
    let temporary = root.vault.temporary()?;
    let runs = lineage.map_or_else(|| Ok(Vec::new()), Lineage::open_runs)?;
    if PassLock::is_held(&root.vault.layout().pass_lock())? {
        let run = runs.last().map_or_else(String::new, |(run, _)| format!(" {run}"));
        return Ok(Found::Well(format!("run{run} is at work")));
    }
    let mut findings = Vec::new();
    if !runs.is_empty() {
        findings.push("a run ended by a crash; `memoird compact` puts it right".to_owned());
    }
    let intents = lineage.map_or_else(|| Ok(Vec::new()), Lineage::open_intents)?;
    findings.extend(intents.iter().map(|it| {
        format!("{} was about to be written; `memoird compact` puts it right", it.target)
    }));
    let jobs = lineage.map_or_else(|| Ok(Vec::new()), Lineage::live_jobs)?;
    findings.extend(jobs.iter().map(|it| format!("{} {} never ended", it.tier, it.period)));
    findings.extend(
        temporary.iter().map(|it| format!("{it} is left; the next run that writes removes it")),
    );
    findings.extend(check::forgetting(&root.vault));
    Ok(Found::unless(findings, || "none".to_owned()))
}

/// Tells of copies of what stood under a temporary name after a crash: somebody's words may be in
/// them, and only a person can tell. Says nothing where there are none.
fn kept_copies(root: &Root) -> Option<Checked> {
    let count = match root.vault.kept_copies() {
        Ok(copies) if copies.is_empty() => return None,
        Ok(copies) => copies.len(),
        Err(error) => return Some(Err(error.into())),
    };
    let dir = root.vault.layout().private_dir().join(REPLACED_DIR);
    Some(Ok(Found::Warning(format!(
        "{count} in `{}`: what a crash left half replaced; look at them, then delete them",
        dir.display()
    ))))
}

fn show(report: &Report, dry_run: bool, ui: &Ui) {
    if ui.is_json() {
        ui.json(report);
        return;
    }
    for step in report.repairs.iter().flatten() {
        ui.note(if dry_run { format!("would be done: {step}") } else { step.clone() });
    }
    if report.repairs.as_ref().is_some_and(Vec::is_empty) {
        ui.note("there is nothing that a program can repair");
    }
    let width = report.checks.iter().map(|it| it.name.chars().count()).max().unwrap_or(0);
    for Check { name, ok, detail, warning } in &report.checks {
        let mark = match (ok, warning) {
            (true, false) => "ok  ",
            (true, true) => "note",
            (false, _) => "bad ",
        };
        let mut lines = detail.lines();
        ui.data(format!("{mark}  {name:width$}  {}", lines.next().unwrap_or_default()));
        for line in lines {
            ui.data(format!("      {:width$}  {line}", ""));
        }
    }
    let ill = report.checks.iter().filter(|it| !it.ok).count();
    if ill > 0 {
        ui.warn(format!("{ill} of {} checks found something", report.checks.len()));
    } else {
        ui.good("all is well");
    }
}
