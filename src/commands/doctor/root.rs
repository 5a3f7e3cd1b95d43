//! The checks of one root: configuration, files, database and caches.

use chrono::{DateTime, Duration, Utc};

use super::{DoctorCheck, keys, system};
use crate::{
    commands::ui,
    compaction::{
        self, RootSnapshot,
        forget::pending,
        integrity::{
            check::{self, CheckOutcome, CheckResult},
            damage,
        },
        plan::Selection,
        undo::resume,
    },
    engine::configured,
    memory::{hash::ContentHash, index, typed_schema},
    model::{connect, embedding::EmbeddingInput},
    operations::{
        status::problems::{ignored_key_message, rival_folders_message},
        workspace::{Invocation, MemoryRoot},
    },
    store::{
        db::{lineage::Lineage, search_index::PostingsDb, vectors::VectorDb},
        fs::{layout::Layout, lock::RunLock, vault::crash_cleanup::REPLACED_DIR},
    },
};

/// Runs all checks. A check that fails to run does not stop the others.
pub(super) fn root_checks(root: &MemoryRoot, call: &Invocation) -> Vec<DoctorCheck> {
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
    let (lineage, database) = open_database(layout);
    let is_sound = database.is_ok();
    checks.push(DoctorCheck::new("database", database));
    let database = match &lineage {
        _ if !is_sound => Database::Damaged,
        Some(lineage) => Database::Sound(Some(lineage)),
        None => Database::Sound(None),
    };
    if let Database::Sound(lineage) = database {
        checks.push(DoctorCheck::new("last run", check::commit_marker(layout, lineage)));
    }
    match compaction::read_snapshot(vault, database.lineage()) {
        Ok(view) => checks.extend(file_checks(root, call, &view, database)),
        Err(error) => checks.push(DoctorCheck::new("files", Err(error.into()))),
    }
    if let Database::Sound(lineage) = database {
        checks.push(DoctorCheck::new("unfinished work", check_unfinished_work(root, lineage)));
        if let Some(undo) = resume::unfinished_message(vault, lineage).transpose() {
            let undo = undo.map(CheckOutcome::Warning).map_err(Into::into);
            checks.push(DoctorCheck::new("undo", undo));
        }
    }
    if let Some(damage) = PostingsDb::find_damage(&layout.search_index()) {
        let detail = format!("damaged ({damage}); the next search rebuilds it");
        checks.push(DoctorCheck::new("search index", Ok(CheckOutcome::Warning(detail))));
    }
    if let Some(damage) = VectorDb::find_damage(&layout.vectors()) {
        let detail = format!("damaged ({damage}); the next run recomputes them");
        checks.push(DoctorCheck::new("vectors", Ok(CheckOutcome::Warning(detail))));
    }
    checks.extend(check_replaced_copies(root).map(|it| DoctorCheck::new("kept copies", it)));
    checks
}

/// The database as the checks may use it.
#[derive(Clone, Copy)]
enum Database<'a> {
    /// Readable; `None` if there is none yet.
    Sound(Option<&'a Lineage>),
    Damaged,
}

impl<'a> Database<'a> {
    fn lineage(self) -> Option<&'a Lineage> {
        match self {
            Self::Sound(lineage) => lineage,
            Self::Damaged => None,
        }
    }
}

fn open_database(layout: &Layout) -> (Option<Lineage>, CheckResult) {
    match Lineage::open_existing(&layout.database()) {
        Ok(Some(lineage)) => {
            let counts = check::database(&lineage).and_then(|()| lineage.counts());
            let outcome = counts.map(|it| {
                let version = Lineage::schema_version();
                CheckOutcome::Passed(format!(
                    "{} items of {} logs (schema {version})",
                    it.items, it.logs
                ))
            });
            (Some(lineage), outcome.map_err(Into::into))
        }
        Ok(None) => (None, Ok(CheckOutcome::Passed("none yet".to_owned()))),
        Err(error) => (None, Err(error.into())),
    }
}

fn file_checks(
    root: &MemoryRoot,
    call: &Invocation,
    view: &RootSnapshot,
    database: Database<'_>,
) -> Vec<DoctorCheck> {
    let vault = &root.vault;
    let layout = vault.layout();
    let lineage = database.lineage();
    let documents = check::documents(vault, view);
    let damaged = damage::damaged_files(vault, view, lineage);
    let damaged = damaged.map(|it| check::files(&it)).map_err(Into::into);
    let mut checks = vec![DoctorCheck::new("torn files", damaged)];
    if let Database::Sound(lineage) = database {
        let records = check::compare_records(vault, view, lineage, &documents);
        checks.push(DoctorCheck::new("records", records.map(Into::into).map_err(Into::into)));
        let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts);
        let receipts = receipts.map_err(Into::into);
        let outcome = receipts.and_then(|it| check::receipts(vault, lineage, &it, None));
        checks.push(DoctorCheck::new("receipts", outcome));
    }
    checks.extend([
        DoctorCheck::new("citations", check::citations(vault, &documents)),
        DoctorCheck::new("orphans", Ok(check::orphans(vault, view))),
        DoctorCheck::new("links", Ok(system::check_links(layout, view))),
        DoctorCheck::new("typed memories", Ok(check_typed_memories(view))),
        DoctorCheck::new("MEMORY.md", Ok(check_index(view))),
        DoctorCheck::new("names and encodings", Ok(check_names(view))),
        DoctorCheck::new("decisions", check::decisions(vault, view)),
        DoctorCheck::new("clock", check_clock(root, call.now, view, lineage)),
    ]);
    checks
}

fn check_configuration(root: &MemoryRoot, call: &Invocation) -> CheckOutcome {
    let engine = configured::open_engine(
        &call.config,
        &root.settings,
        &call.environment,
        std::time::Duration::ZERO,
    );
    if let Err(error) = engine {
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
    let ignored: Vec<String> =
        root.settings.ignored_keys.iter().map(|it| ignored_key_message(it)).collect();
    if !ignored.is_empty() {
        return CheckOutcome::Warning(format!("memoird.yaml: {}", ignored.join("\n")));
    }
    if let Some(rivals) = rival_folders_message(call) {
        return CheckOutcome::Warning(rivals);
    }
    CheckOutcome::Passed(match &call.config.file {
        Some(file) => file.display().to_string(),
        None => "no config.yaml; using defaults".to_owned(),
    })
}

fn check_typed_memories(view: &RootSnapshot) -> CheckOutcome {
    let memories = &view.inventory.memories;
    let findings =
        memories.iter().filter_map(|it| Some(typed_schema::validate(it).err()?.to_string()));
    CheckOutcome::from_findings(findings.collect(), || format!("{} can be read", memories.len()))
}

fn check_index(view: &RootSnapshot) -> CheckOutcome {
    let inventory = &view.inventory;
    let present = inventory.index.as_deref();
    if present.is_none() && inventory.memories.is_empty() {
        return CheckOutcome::Passed("not needed yet".to_owned());
    }
    let expected =
        index::render(present, &inventory.memories, &|it| inventory.rules.sanitize_label(it));
    if present.map(ContentHash::of) == Some(ContentHash::of(&expected)) {
        CheckOutcome::Passed("lists all typed memories".to_owned())
    } else {
        CheckOutcome::Failed(vec![
            "out of date with the typed memories; run `memoird compact`".to_owned(),
        ])
    }
}

fn check_names(view: &RootSnapshot) -> CheckOutcome {
    let problems = &view.inventory.problems;
    let findings = problems.iter().map(|it| ui::one_line(&format!("{}: {}", it.path, it.reason)));
    CheckOutcome::from_findings(findings.collect(), || "all files are readable".to_owned())
}

/// Compares the clock with the dates of logs and with the last run.
///
/// Ignores file times: copied files may carry any time.
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
    Ok(CheckOutcome::from_findings(findings, || "no log or run is in the future".to_owned()))
}

/// Looks for what a crash left behind.
fn check_unfinished_work(root: &MemoryRoot, lineage: Option<&Lineage>) -> CheckResult {
    let temporary = root.vault.temp_files()?;
    let runs = lineage.map_or_else(|| Ok(Vec::new()), Lineage::open_runs)?;
    if RunLock::is_held(&root.vault.layout().run_lock())? {
        let run = runs.last().map_or_else(String::new, |(run, _)| format!(" {run}"));
        return Ok(CheckOutcome::Passed(format!("run{run} is in progress")));
    }
    let mut findings = Vec::new();
    if !runs.is_empty() {
        findings.push("a run was interrupted by a crash; `memoird compact` recovers".to_owned());
    }
    let intents = lineage.map_or_else(|| Ok(Vec::new()), Lineage::open_intents)?;
    findings.extend(intents.iter().map(|it| {
        format!("a crash interrupted writing {}; `memoird compact` recovers", it.target)
    }));
    let jobs = lineage.map_or_else(|| Ok(Vec::new()), Lineage::live_jobs)?;
    findings.extend(jobs.iter().map(|it| format!("{} {} did not finish", it.tier, it.period)));
    findings.extend(
        temporary
            .iter()
            .map(|it| format!("{it} is a leftover; the next run that writes removes it")),
    );
    findings.extend(pending::unfinished_message(&root.vault));
    Ok(CheckOutcome::from_findings(findings, || "none".to_owned()))
}

/// Reports copies of temporary files that a crash left. Only a person can decide whether their text
/// is still needed. Returns `None` if there are none.
fn check_replaced_copies(root: &MemoryRoot) -> Option<CheckResult> {
    let count = match root.vault.saved_copies() {
        Ok(copies) if copies.is_empty() => return None,
        Ok(copies) => copies.len(),
        Err(error) => return Some(Err(error.into())),
    };
    let dir = root.vault.layout().private_dir().join(REPLACED_DIR);
    Some(Ok(CheckOutcome::Warning(format!(
        "{count} in `{}`: copies saved after a crash; review them, then delete them",
        dir.display()
    ))))
}
