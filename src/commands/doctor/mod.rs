//! `memoird doctor`: checks files, database, and settings, and repairs what a program can.
//!
//! Without `--repair` it reads and never writes. Each check stands alone, so that one that cannot be
//! made hides no other. What the machine is asked stands in `system` and `keys`, what is asked of memory in
//! [`crate::compaction::integrity::check`], and what is done about it in [`crate::compaction::integrity::repair`].

mod keys;
mod sandbox;
mod system;

use std::process::ExitCode;

use chrono::{DateTime, Duration, Utc};
use serde::Serialize;

use super::{
    GlobalArgs,
    compact::require_writer,
    error::{CommandError, CommandErrorKind},
    secrets,
    ui::{self, Ui},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    compaction::{
        self, RootSnapshot,
        integrity::{
            check::{self, CheckOutcome, CheckResult},
            damage,
            rebuild::{self, CheckDepth, OpenedDatabase},
            repair,
        },
        plan::Selection,
        undo::resume,
    },
    engine::configured,
    memory::{hash::ContentHash, index, typed_schema},
    model::{connect, embedding::EmbeddingInput},
    store::{
        db::{
            lineage::{Lineage, LineageError},
            search_index::PostingsDb,
            vectors::VectorDb,
        },
        fs::{lock::RunLock, vault::crash_cleanup::REPLACED_DIR},
    },
};

/// Check files, database, and settings
///
/// Without --repair it changes nothing. Exit code 0 says that all is well, 1 that something is not.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct DoctorArgs {
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
struct DoctorReport {
    ok: bool,
    checks: Vec<DoctorCheck>,
    /// What `--repair` did or, with `--dry-run`, would do.
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<Vec<String>>,
}

#[derive(Serialize)]
struct DoctorCheck {
    name: &'static str,
    ok: bool,
    detail: String,
    /// Whether it is well now but may not stay so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    warning: bool,
}

/// No list of findings says more than this; the rest is counted.
const FINDINGS_MAX: usize = 20;

pub(super) fn run(
    global: &GlobalArgs,
    args: &DoctorArgs,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    if args.secrets {
        let call = Invocation::load(global)?;
        let root = call.selected_root(global)?;
        let asked = secrets::SecretsRequest {
            action: if args.repair {
                secrets::SecretsAction::Redact
            } else {
                secrets::SecretsAction::List
            },
            dry_run: args.dry_run,
            yes: args.yes,
            command: "memoird doctor --secrets --repair",
        };
        return secrets::run(&call, &root, asked, ui);
    }
    if args.sandbox {
        let checks = sandbox::sandbox_checks(global)?;
        let report = DoctorReport { ok: checks.iter().all(|it| it.ok), checks, repairs: None };
        show(&report, false, ui);
        return Ok(if report.ok {
            ExitCode::SUCCESS
        } else {
            CommandErrorKind::Job.exit_code().into()
        });
    }
    let opened = Invocation::load(global).and_then(|call| Ok((call.selected_root(global)?, call)));
    let mut repairs = None;
    let checks = match opened {
        Ok((root, call)) => {
            if args.repair {
                repairs = run_repair(&root, &call, args, ui)?;
            }
            root_checks(&root, &call)
        }
        // A configuration that does not load is what was asked about; a root that nobody named is not.
        Err(error) if error.kind() == CommandErrorKind::Config => {
            let mut found = vec![error.to_string()];
            found.extend(error.hints().iter().cloned());
            let mut checks =
                vec![DoctorCheck::new("configuration", Ok(CheckOutcome::Failed(found)))];
            let keys = keys::check_keys_without_root(global.config.as_deref());
            checks.extend(keys.map(|it| DoctorCheck::new("keys", Ok(it))));
            checks
        }
        Err(error) => return Err(error),
    };
    let report = DoctorReport { ok: checks.iter().all(|it| it.ok), checks, repairs };
    show(&report, args.dry_run, ui);
    Ok(if report.ok { ExitCode::SUCCESS } else { CommandErrorKind::Job.exit_code().into() })
}

/// Repairs what can be repaired, if a person says so; `None` when they do not.
fn run_repair(
    root: &MemoryRoot,
    call: &Invocation,
    args: &DoctorArgs,
    ui: &Ui,
) -> Result<Option<Vec<String>>, CommandError> {
    require_writer(call, root)?;
    let engine = root.engine(call)?;
    root.require_memory_folder()?;
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
        let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
        let steps = repair::plan_repair(&root.vault, &view, lineage.as_ref())?;
        plan.extend(steps.iter().map(ToString::to_string));
    }
    if plan.is_empty() || args.dry_run {
        return Ok(Some(plan));
    }
    if !args.yes {
        for step in &plan {
            ui.note(step);
        }
        match ui.confirm("Do this? Nothing is deleted.") {
            Some(true) => {}
            Some(false) => return Ok(None),
            None => {
                return Err(CommandError::new(
                    CommandErrorKind::Usage,
                    "`--repair` asks, and nobody can answer",
                )
                .hint("memoird doctor --repair --yes")
                .hint("memoird doctor --repair --dry-run"));
            }
        }
    }
    let clock = call.clock();
    let OpenedDatabase { mut lineage, pending_rebuild: mending, .. } =
        rebuild::open(&root.vault, CheckDepth::Full, now)?;
    let mut compactor = root.compactor(&mut lineage, engine.as_ref(), &clock);
    let mut said = Vec::new();
    if let Some(mending) = mending {
        said.push(mending.recovery.to_string());
        compactor.rebuild_recovered(mending, now)?;
    }
    // What is left to do is looked at again: with the database much may have been put right.
    let view = compactor.take_snapshot(now)?;
    let steps = repair::plan_repair(&root.vault, &view, Some(compactor.context.lineage))?;
    said.extend(compactor.repair(&steps, now)?);
    Ok(Some(said))
}

fn root_checks(root: &MemoryRoot, call: &Invocation) -> Vec<DoctorCheck> {
    let vault = &root.vault;
    let layout = vault.layout();
    let is_reader = !root.settings.is_writer(&call.environment.host);
    let mut checks = vec![
        DoctorCheck::new("configuration", Ok(check_configuration(root, call))),
        DoctorCheck::new("keys", Ok(keys::check_keys(root, call))),
        DoctorCheck::new("root", system::check_folder(layout.root(), is_reader)),
        DoctorCheck::new(
            "memory folder",
            system::check_folder(&layout.full(layout.memory_dir()), is_reader),
        ),
        DoctorCheck::new("private files", system::check_private_files(layout)),
        DoctorCheck::new("file system", system::check_file_system(layout.root())),
        DoctorCheck::new("disk space", system::check_disk_space(layout.root())),
        DoctorCheck::new("SQLite", Ok(system::check_sqlite())),
    ];
    let (lineage, database) = match Lineage::open_existing(&layout.database()) {
        Ok(Some(lineage)) => {
            let sound = check::database(&lineage);
            let counts = sound.and_then(|()| lineage.counts()).map(|it| {
                let version = Lineage::schema_version();
                CheckOutcome::Passed(format!(
                    "schema {version}, {} items, {} logs",
                    it.items, it.logs
                ))
            });
            (Some(lineage), counts)
        }
        Ok(None) => (None, Ok(CheckOutcome::Passed("none yet".to_owned()))),
        Err(error) => (None, Err(error)),
    };
    let is_sound = database.is_ok();
    checks.push(DoctorCheck::new("database", database.map_err(Into::into)));
    let lineage = lineage.filter(|_| is_sound);
    let lineage = lineage.as_ref();
    if is_sound {
        checks.push(DoctorCheck::new("last run", check::commit_marker(layout, lineage)));
    }
    match compaction::read_snapshot(vault, lineage) {
        Ok(view) => {
            let documents = check::documents(vault, &view);
            let torn = damage::damaged_files(vault, &view, lineage);
            checks.push(DoctorCheck::new(
                "torn files",
                torn.map(|it| check::files(&it)).map_err(Into::into),
            ));
            if is_sound {
                let compared = check::compare_records(vault, &view, lineage, &documents);
                checks.push(DoctorCheck::new(
                    "records",
                    compared.map(Into::into).map_err(Into::into),
                ));
                let told = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts);
                let found = told.map_err(Into::into);
                let found = found.and_then(|it| check::receipts(vault, lineage, &it, None));
                checks.push(DoctorCheck::new("receipts", found));
            }
            checks.push(DoctorCheck::new("citations", check::citations(vault, &documents)));
            checks.push(DoctorCheck::new("orphans", Ok(check::orphans(vault, &view))));
            checks.push(DoctorCheck::new("links", Ok(system::check_links(layout, &view))));
            checks.push(DoctorCheck::new("typed memories", Ok(check_typed_memories(&view))));
            checks.push(DoctorCheck::new("MEMORY.md", Ok(check_index(&view))));
            checks.push(DoctorCheck::new("names and encodings", Ok(check_names(&view))));
            checks.push(DoctorCheck::new("decisions", check::decisions(vault, &view)));
            checks.push(DoctorCheck::new("clock", check_clock(root, call.now, &view, lineage)));
        }
        Err(error) => checks.push(DoctorCheck::new("files", Err(error.into()))),
    }
    if is_sound {
        checks.push(DoctorCheck::new("unfinished work", check_unfinished_work(root, lineage)));
        if let Some(begun) = resume::unfinished_message(vault, lineage).transpose() {
            checks.push(DoctorCheck::new(
                "undo",
                begun.map(CheckOutcome::Warning).map_err(Into::into),
            ));
        }
    }
    if let Some(said) = PostingsDb::find_damage(&layout.search_index()) {
        let said = format!("damaged ({said}); the next search makes it anew");
        checks.push(DoctorCheck::new("search index", Ok(CheckOutcome::Warning(said))));
    }
    if let Some(said) = VectorDb::find_damage(&layout.vectors()) {
        let said = format!("damaged ({said}); the next pass has them made anew");
        checks.push(DoctorCheck::new("vectors", Ok(CheckOutcome::Warning(said))));
    }
    checks.extend(check_replaced_copies(root).map(|it| DoctorCheck::new("kept copies", it)));
    checks
}

impl DoctorCheck {
    fn new(name: &'static str, checked: CheckResult) -> Self {
        let (ok, warning, detail) = match checked {
            Ok(CheckOutcome::Passed(detail)) => (true, false, detail),
            Ok(CheckOutcome::Warning(detail)) => (true, true, detail),
            Ok(CheckOutcome::Failed(mut findings)) => {
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

fn check_configuration(root: &MemoryRoot, call: &Invocation) -> CheckOutcome {
    let made = configured::open_engine(
        &call.config,
        &root.settings,
        &call.environment,
        std::time::Duration::ZERO,
    );
    if let Err(error) = made {
        return CheckOutcome::Failed(vec![error.to_string()]);
    }
    if let Err(error) = connect::embedding_client(
        &call.config,
        &root.settings,
        &call.environment,
        EmbeddingInput::Line,
    ) {
        return CheckOutcome::Failed(vec![format!("search.embeddings: {error}")]);
    }
    CheckOutcome::Passed(match &call.config.file {
        Some(file) => file.display().to_string(),
        None => "no config.yaml; the defaults hold".to_owned(),
    })
}

fn check_typed_memories(view: &RootSnapshot) -> CheckOutcome {
    let memories = &view.inventory.memories;
    let findings =
        memories.iter().filter_map(|it| Some(typed_schema::validate(it).err()?.to_string()));
    CheckOutcome::from_findings(findings.collect(), || format!("{} are in form", memories.len()))
}

fn check_index(view: &RootSnapshot) -> CheckOutcome {
    let inventory = &view.inventory;
    let present = inventory.index.as_deref();
    if present.is_none() && inventory.memories.is_empty() {
        return CheckOutcome::Passed("not needed yet".to_owned());
    }
    let wanted =
        index::render(present, &inventory.memories, &|it| inventory.rules.sanitize_output(it));
    if present.map(ContentHash::of) == Some(ContentHash::of(&wanted)) {
        CheckOutcome::Passed("lists all typed memories".to_owned())
    } else {
        CheckOutcome::Failed(vec![
            "not in step with the typed memories; `memoird compact`".to_owned(),
        ])
    }
}

fn check_names(view: &RootSnapshot) -> CheckOutcome {
    let problems = &view.inventory.problems;
    let findings = problems.iter().map(|it| ui::one_line(&format!("{}: {}", it.path, it.reason)));
    CheckOutcome::from_findings(findings.collect(), || "every file can be read".to_owned())
}

/// Compares the clock with the dates of logs and with the last run.
///
/// Times of files are no witness: a file that was copied from elsewhere may carry any.
fn check_clock(
    root: &MemoryRoot,
    now: DateTime<Utc>,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> CheckResult {
    let selection = Selection::default();
    let plan = compaction::plan_snapshot(
        view,
        &root.settings,
        &configured::engine_id(&root.settings.settings),
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
    Ok(CheckOutcome::from_findings(findings, || "no log and no run lies in the future".to_owned()))
}

/// Looks for what a crash left.
fn check_unfinished_work(root: &MemoryRoot, lineage: Option<&Lineage>) -> CheckResult {
    let temporary = root.vault.temp_files()?;
    let runs = lineage.map_or_else(|| Ok(Vec::new()), Lineage::open_runs)?;
    if RunLock::is_held(&root.vault.layout().run_lock())? {
        let run = runs.last().map_or_else(String::new, |(run, _)| format!(" {run}"));
        return Ok(CheckOutcome::Passed(format!("run{run} is at work")));
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
    findings.extend(check::unfinished_forget(&root.vault));
    Ok(CheckOutcome::from_findings(findings, || "none".to_owned()))
}

/// Tells of copies of what stood under a temporary name after a crash: somebody's words may be in
/// them, and only a person can tell. Says nothing where there are none.
fn check_replaced_copies(root: &MemoryRoot) -> Option<CheckResult> {
    let count = match root.vault.saved_copies() {
        Ok(copies) if copies.is_empty() => return None,
        Ok(copies) => copies.len(),
        Err(error) => return Some(Err(error.into())),
    };
    let dir = root.vault.layout().private_dir().join(REPLACED_DIR);
    Some(Ok(CheckOutcome::Warning(format!(
        "{count} in `{}`: what a crash left half replaced; look at them, then delete them",
        dir.display()
    ))))
}

fn show(report: &DoctorReport, dry_run: bool, ui: &Ui) {
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
    for DoctorCheck { name, ok, detail, warning } in &report.checks {
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
        ui.success("all is well");
    }
}
