//! `memoird doctor`: checks files, database, and settings.
//!
//! Reads and never writes. Each check stands alone, so that one that cannot be made hides no other.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::ExitCode,
};

use chrono::Duration;
use serde::Serialize;

use super::{
    GlobalArgs,
    context::{Call, Root},
    error::{CommandError, Kind},
    ui::Ui,
};
use crate::{
    compaction::{self, View, commit::is_alive, plan::Selection, records},
    config::settings::EngineKind,
    engine::{Engine as _, extractive::Extractive},
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
        index, typed_schema,
    },
    store::{
        layout::Layout,
        lineage::{
            Lineage,
            record::{DocumentKind, DocumentRecord},
        },
        vault::{REPLACED_DIR, VaultError},
    },
};

/// Check files, database, and settings
///
/// Changes nothing. Exit code 0 says that all is well, 1 that something is not.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

/// What `--json` prints; a document of `schema/doctor.schema.json`.
#[derive(Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
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

/// What a check found.
enum Found {
    /// All is well; what was seen.
    Well(String),
    /// It works, but somebody should know.
    Warning(String),
    /// Something is not as it should be, each with what to do.
    Ill(Vec<String>),
}

/// What a check says when it cannot even be made.
type Checked = Result<Found, Box<dyn std::error::Error + Send + Sync>>;

/// No list of findings says more than this; the rest is counted.
const FINDINGS_MAX: usize = 20;

/// A pass writes every file twice for a moment, and the database grows with it.
const DISK_FREE_MIN: u64 = 64 * 1024 * 1024;

/// File systems whose locks or shared memory SQLite cannot rely on, by the kernel's numbers.
const DISTANT: [(u32, &str); 9] = [
    (0x6969, "NFS"),
    (0x517B, "SMB"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x6573_5546, "FUSE"),
    (0x0102_1997, "9P"),
    (0x5346_414F, "AFS"),
    (0x00C3_6400, "Ceph"),
    (0x7375_7245, "Coda"),
];

pub(super) fn run(global: &GlobalArgs, _args: Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let opened = Call::read(global).and_then(|call| Ok((call.root(global)?, call)));
    let checks = match opened {
        Ok((root, call)) => check_root(&root, &call),
        // A configuration that does not load is what was asked about; a root that nobody named is not.
        Err(error) if error.kind() == Kind::Config => {
            let mut found = vec![error.to_string()];
            found.extend(error.hints().iter().cloned());
            vec![Check::new("configuration", Ok(Found::Ill(found)))]
        }
        Err(error) => return Err(error),
    };
    let report = Report { ok: checks.iter().all(|it| it.ok), checks };
    show(&report, ui);
    Ok(if report.ok { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() })
}

fn check_root(root: &Root, call: &Call) -> Vec<Check> {
    let layout = root.vault.layout();
    let mut checks = vec![
        Check::new("configuration", Ok(configuration(root, call))),
        Check::new("root", folder(layout.root())),
        Check::new("memory folder", folder(&layout.full(layout.memory_dir()))),
        Check::new("private files", private_files(layout)),
        Check::new("file system", file_system(layout.root())),
        Check::new("disk space", disk_space(layout.root())),
        Check::new("SQLite", Ok(sqlite())),
    ];
    let opened = Lineage::open_existing(&layout.database());
    let (lineage, database) = match opened {
        Ok(Some(lineage)) => {
            let sound = lineage.quick_check();
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
    match compaction::peek(&root.vault, lineage.as_ref()) {
        Ok(view) => {
            let documents = documents(root, &view);
            if is_sound {
                let found = recorded(root, lineage.as_ref(), &documents);
                checks.push(Check::new("records", found));
            }
            checks.push(Check::new("citations", citations(root, &documents)));
            checks.push(Check::new("typed memories", Ok(typed_memories(&view))));
            checks.push(Check::new("MEMORY.md", Ok(index_in_step(&view))));
            checks.push(Check::new("names and encodings", Ok(names(&view))));
            checks.push(Check::new("decisions", Ok(decisions(root, &view))));
            checks.push(Check::new("clock", clock(root, call, &view, lineage.as_ref())));
        }
        Err(error) => checks.push(Check::new("files", Err(error.into()))),
    }
    if is_sound {
        checks.push(Check::new("unfinished work", unfinished(root, lineage.as_ref())));
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

impl Found {
    /// All is well where nothing was found.
    fn unless(findings: Vec<String>, well: impl FnOnce() -> String) -> Self {
        if findings.is_empty() { Self::Well(well()) } else { Self::Ill(findings) }
    }
}

fn configuration(root: &Root, call: &Call) -> Found {
    if root.settings.settings.engine == EngineKind::Model {
        return Found::Ill(vec![
            "`engine: model` is not in this version; set `engine: extractive`".to_owned(),
        ]);
    }
    Found::Well(match &call.config.file {
        Some(file) => file.display().to_string(),
        None => "no config.yaml; the defaults hold".to_owned(),
    })
}

fn folder(path: &Path) -> Checked {
    use rustix::fs::Access;
    let shown = path.display();
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let what = format!("there is no `{shown}`; `memoird log TEXT` makes it");
            return Ok(Found::Ill(vec![what]));
        }
        Err(e) => return Err(format!("cannot look at `{shown}`: {e}").into()),
    };
    let mut findings = Vec::new();
    if !meta.is_dir() {
        findings.push(format!("`{shown}` is no folder"));
    }
    if rustix::fs::access(path, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK).is_err() {
        findings.push(format!("`{shown}` cannot be written by this user"));
    }
    if meta.permissions().mode() & 0o002 != 0 {
        findings.push(format!("anybody may write in `{shown}`; chmod o-w '{shown}'"));
    }
    Ok(Found::unless(findings, || shown.to_string()))
}

fn private_files(layout: &Layout) -> Checked {
    let files = [
        (layout.private_dir(), 0o700),
        (layout.database(), 0o600),
        (layout.full(&layout.decisions()), 0o600),
    ];
    let mut findings = Vec::new();
    for (path, wanted) in files {
        let mode = match fs::symlink_metadata(&path) {
            Ok(meta) => meta.permissions().mode() & 0o777,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(format!("cannot look at `{}`: {e}", path.display()).into()),
        };
        if mode & !wanted != 0 {
            let shown = path.display();
            findings.push(format!(
                "`{shown}` is open to others (mode {mode:o}); chmod {wanted:o} '{shown}'"
            ));
        }
    }
    Ok(Found::unless(findings, || "closed to others".to_owned()))
}

fn file_system(path: &Path) -> Checked {
    let kind = rustix::fs::statfs(path)?.f_type;
    // The kernel's numbers fill 32 bits, whatever the width of the field.
    let kind = u32::try_from(kind & 0xFFFF_FFFF)?;
    Ok(match DISTANT.iter().find(|(number, _)| *number == kind) {
        Some((_, name)) => Found::Warning(format!(
            "{name}: the database needs a local disk, and changes from other hosts are not noticed"
        )),
        None => Found::Well("local".to_owned()),
    })
}

fn disk_space(path: &Path) -> Checked {
    let stat = rustix::fs::statvfs(path)?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let shown = format!("{} MiB free", free / 1024 / 1024);
    Ok(if free < DISK_FREE_MIN {
        Found::Ill(vec![format!("{shown}, at least {} are needed", DISK_FREE_MIN / 1024 / 1024)])
    } else {
        Found::Well(shown)
    })
}

fn sqlite() -> Found {
    match Lineage::sqlite() {
        (version, true) => Found::Well(version.to_owned()),
        (version, false) => Found::Ill(vec![format!("{version} can damage a database; update it")]),
    }
}

/// Reads the generated files as they would be recorded now. One that cannot be read is told by the
/// check of names.
fn documents(root: &Root, view: &View) -> BTreeMap<String, DocumentRecord> {
    let inventory = &view.inventory;
    let layout = root.vault.layout();
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let memories =
        inventory.memories.iter().map(|it| layout.typed(&it.file_name.to_string_lossy()));
    let wisdom = inventory.wisdom.is_some().then(|| layout.wisdom());
    summaries
        .map(|it| it.path.clone())
        .chain(memories)
        .chain(wisdom)
        .filter_map(|path| {
            let text = root.vault.read_text(&path).ok().flatten()?;
            Some((path.clone(), records::of_path(layout, &path, &text)?))
        })
        .collect()
}

/// Compares what is recorded with what stands there.
fn recorded(
    root: &Root,
    lineage: Option<&Lineage>,
    documents: &BTreeMap<String, DocumentRecord>,
) -> Checked {
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::documents)?;
    let mut findings = Vec::new();
    let mut edited = Vec::new();
    for (path, (kind, hash)) in &known {
        match documents.get(path) {
            Some(document) if document.hash == *hash => {}
            Some(_) => edited.push(path.as_str()),
            None if root.vault.read(path).is_ok_and(|it| it.is_some()) => {
                findings.push(format!("{path} can no longer be read; `memoird status` says why"));
            }
            None => {
                let then = match kind {
                    DocumentKind::Weekly | DocumentKind::Monthly => "makes it again",
                    DocumentKind::Memory | DocumentKind::Wisdom => "takes notice",
                };
                findings.push(format!("{path} is gone; `memoird compact` {then}"));
            }
        }
    }
    // A person's own files are recorded by the next pass; without any record, the database is new.
    let missing: Vec<_> = documents.keys().filter(|it| !known.contains_key(*it)).collect();
    let ours = |path: &str| documents[path].items.iter().any(|it| it.citation.is_some());
    let missing: Vec<_> = missing.into_iter().filter(|it| ours(it)).collect();
    if !missing.is_empty() {
        let few: Vec<_> = missing.iter().take(3).map(|it| it.as_str()).collect();
        findings.push(format!(
            "{} files are not recorded ({}); `memoird rebuild`",
            missing.len(),
            few.join(", ")
        ));
    }
    Ok(Found::unless(findings, || match edited.len() {
        0 => format!("{} files as recorded", known.len()),
        _ => format!("{} files; edited since: {}", known.len(), edited.join(", ")),
    }))
}

/// Looks up every line that an item cites.
fn citations(root: &Root, documents: &BTreeMap<String, DocumentRecord>) -> Checked {
    let mut findings = Vec::new();
    let mut gone = BTreeSet::new();
    let mut last_lines: HashMap<Stem, Option<u32>> = HashMap::new();
    let mut lines = 0_usize;
    for document in documents.values() {
        for item in &document.items {
            for (stem, cited) in item.citation.iter().flat_map(Citation::files) {
                let known = last_lines.get(stem).copied();
                let last = if let Some(last) = known { last } else { last_line(root, stem)? };
                last_lines.insert(stem.clone(), last);
                lines += cited.iter().count();
                let Some(last) = last else {
                    gone.insert(stem.clone());
                    continue;
                };
                let beyond: Vec<u32> = cited.iter().filter(|it| *it > last).collect();
                if let Some(line) = beyond.first() {
                    findings.push(format!(
                        "{}:{} cites {stem}:{line}, but that log ends on line {last}",
                        document.path, item.line
                    ));
                }
            }
        }
    }
    if !findings.is_empty() {
        findings.push("`memoird status` shows what is due for changed logs".to_owned());
    }
    Ok(Found::unless(findings, || {
        let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
        match gone.len() {
            0 => format!("{lines} cited lines are there"),
            _ => format!("{lines} cited lines; source gone: {}", gone.join(", ")),
        }
    }))
}

/// Returns the number of the last line of a log that says anything; `None` when the log is gone.
fn last_line(root: &Root, stem: &Stem) -> Result<Option<u32>, VaultError> {
    let log = root.vault.read_log(stem)?;
    Ok(log.map(|log| {
        let lines = log.lines();
        lines.iter().rfind(|it| !it.1.trim().is_empty()).map_or(0, |it| it.0)
    }))
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
    let wanted = index::render(present, &inventory.memories);
    if present.map(ContentHash::of) == Some(ContentHash::of(&wanted)) {
        Found::Well("lists all typed memories".to_owned())
    } else {
        Found::Ill(vec!["not in step with the typed memories; `memoird compact`".to_owned()])
    }
}

fn names(view: &View) -> Found {
    let problems = &view.inventory.problems;
    let findings = problems.iter().map(|it| format!("{}: {}", it.path, it.reason));
    Found::unless(findings.collect(), || "every file can be read".to_owned())
}

fn decisions(root: &Root, view: &View) -> Found {
    let decisions = &view.inventory.decisions;
    let path = root.vault.layout().decisions();
    if !root.vault.layout().full(&path).exists() {
        return Found::Well("none yet".to_owned());
    }
    let mut findings = Vec::new();
    if !decisions.has_key() {
        findings.push(format!("{path} has lost its key, so what was deleted may come back"));
    }
    let lines: Vec<String> = decisions.unreadable().iter().map(usize::to_string).collect();
    if !lines.is_empty() {
        findings.push(format!("{path}: line {} cannot be read", lines.join(", ")));
    }
    Found::unless(findings, || "can be read".to_owned())
}

/// Compares the clock with the dates of logs and with the last run.
///
/// Times of files are no witness: a file that was copied from elsewhere may carry any.
fn clock(root: &Root, call: &Call, view: &View, lineage: Option<&Lineage>) -> Checked {
    let selection = Selection::default();
    let plan = compaction::plan_of(view, &root.settings, Extractive.id(), &selection, call.now);
    let mut findings: Vec<String> =
        plan.problems.iter().map(|it| format!("{}: {}", it.path, it.reason)).collect();
    let runs = lineage.map_or_else(|| Ok(Vec::new()), |it| it.last_runs(1))?;
    for run in runs.iter().filter(|it| it.started > call.now + Duration::days(1)) {
        let zone = root.settings.zone.name.0;
        let (then, now) = (run.started.with_timezone(&zone), call.now.with_timezone(&zone));
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
    if let Some((run, _)) = runs.iter().find(|(_, owner)| is_alive(owner)) {
        return Ok(Found::Well(format!("run {run} is at work")));
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

fn show(report: &Report, ui: &Ui) {
    if ui.is_json() {
        ui.json(report);
        return;
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
