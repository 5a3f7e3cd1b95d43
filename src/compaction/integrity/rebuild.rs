//! Rebuilds the database from the files.
//!
//! The files contain everything but receipts, history, and reasons: generated files are recorded as
//! a run would record them ([`crate::compaction::journal::records`]), and the record of weekly
//! files says which days were extracted. A database that cannot be read is set aside first, never
//! deleted.
//!
//! Called by `rebuild` and `doctor --repair`, by any command that finds the database damaged, and
//! before reconciling with a new database.

use std::{collections::BTreeSet, path::PathBuf};

use chrono::{DateTime, Utc};

use super::check;
use crate::compaction::{
    context::RunContext,
    error::CompactionError,
    journal::records,
    reconcile::{ReconcileRun, Reconciler},
    safety_copies,
    snapshot::{self, RootSnapshot},
};
use crate::{
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
        period::{Grain, Period},
    },
    privacy,
    store::{
        db::lineage::{
            Lineage, LineageError,
            history::{NewVersion, VersionCause},
            jobs::RunId,
            query::LineageCounts,
            record::{Commit, LogRecord},
            salvage::SalvageReport,
        },
        fs::{
            inventory::{Inventory, LogFile},
            lock::{RunLock, WriteLock},
            private_folder,
            vault::Vault,
        },
    },
};

/// The trigger of a run that records the files again.
const REBUILD_TRIGGER: &str = "rebuild";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RebuildResult {
    /// What the database contains now.
    pub counts: LineageCounts,
    /// The number of logs that had been extracted before.
    pub extracted: usize,
}

#[derive(Debug)]
pub(crate) struct OpenedDatabase {
    pub lineage: Lineage,
    /// Whether it has no earlier receipts: it is new or was never used.
    pub is_new: bool,
    /// Set if the database had to be created again. It has no records of the files yet, so
    /// `Compactor::rebuild_recovered` must come first.
    pub pending_rebuild: Option<PendingRebuild>,
}

/// A database that was created again and has no records of the files yet. No run may come first: it
/// would treat every file as new.
#[derive(Debug)]
pub(crate) struct PendingRebuild {
    /// What happened to the former database.
    pub recovery: DatabaseRecovery,
    _run_lock: RunLock,
}

/// Why a database was created again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DatabaseRecovery {
    /// It was missing, though a commit marker shows that there was one.
    Missing,
    /// It was damaged.
    SetAside {
        /// Where the damaged database is now.
        path: PathBuf,
        salvaged: SalvageReport,
        /// What was wrong with it.
        why: String,
    },
}

impl std::fmt::Display for DatabaseRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("the database was missing; it was rebuilt from the files"),
            Self::SetAside { path, salvaged, why } => {
                let SalvageReport { receipts, versions, .. } = salvaged;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                write!(
                    f,
                    "the database was damaged ({why}); it is kept as .memoird/{name} and was rebuilt \
                     from the files, with {receipts} receipts and {versions} versions of the old one"
                )
            }
        }
    }
}

/// How thoroughly a database is checked before use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckDepth {
    /// It can be opened. If damage shows later, the run ends, and the database is opened again with
    /// a full check.
    Quick,
    /// Every row is read.
    Full,
}

/// Opens the database of a root. A damaged one is set aside, and a missing one created; history and
/// receipts are salvaged from the damaged one. One that another program or a newer memoird created
/// is refused.
pub(crate) fn open(
    vault: &Vault,
    depth: CheckDepth,
    now: DateTime<Utc>,
) -> Result<OpenedDatabase, CompactionError> {
    let layout = vault.layout();
    let path = layout.database();
    vault.create_private_dir()?;
    if let DatabaseState::Sound(lineage) = database_state(vault, depth)? {
        return OpenedDatabase::from_lineage(lineage);
    }
    // A run that has it open would continue to write into the renamed file.
    let alone = RunLock::acquire(layout.root(), &layout.run_lock(), &|| false)?;
    let _writer = WriteLock::acquire(layout.root())?;
    // Whoever had the locks before may have repaired it.
    let (lineage, is_new, recovery) = match database_state(vault, CheckDepth::Full)? {
        DatabaseState::Sound(lineage) => return OpenedDatabase::from_lineage(lineage),
        DatabaseState::Missing => (Lineage::open(&path)?, true, DatabaseRecovery::Missing),
        DatabaseState::Damaged(why) => {
            let aside = Lineage::set_aside(&path, now)?;
            let mut lineage = Lineage::open(&path)?;
            let salvaged = lineage.salvage(&aside)?;
            (lineage, salvaged.runs == 0, DatabaseRecovery::SetAside { path: aside, salvaged, why })
        }
    };
    Ok(OpenedDatabase {
        lineage,
        is_new,
        pending_rebuild: Some(PendingRebuild { recovery, _run_lock: alone }),
    })
}

enum DatabaseState {
    /// It is usable; it may have just been created where there never was one.
    Sound(Lineage),
    /// There was one, and now there is none.
    Missing,
    /// It is unusable, for this reason.
    Damaged(String),
}

fn database_state(vault: &Vault, depth: CheckDepth) -> Result<DatabaseState, CompactionError> {
    let layout = vault.layout();
    let path = layout.database();
    // What a crash left of a damaged database may look sound without its write-ahead log.
    if Lineage::is_set_aside_unfinished(&path) {
        return Ok(DatabaseState::Damaged("it was only partly set aside".to_owned()));
    }
    let is_missing = std::fs::metadata(&path).map_or(0, |it| it.len()) == 0;
    if is_missing && private_folder::read_commit_marker(layout).is_some() {
        return Ok(DatabaseState::Missing);
    }
    let opened = Lineage::open(&path).and_then(|lineage| {
        if depth == CheckDepth::Full && !is_missing {
            check::database(&lineage)?;
        }
        Ok(lineage)
    });
    match opened {
        Ok(lineage) => Ok(DatabaseState::Sound(lineage)),
        Err(LineageError::Damaged { detail, .. }) => Ok(DatabaseState::Damaged(detail)),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the database exists and all of it can be read.
pub(crate) fn is_sound(vault: &Vault) -> bool {
    matches!(database_state(vault, CheckDepth::Full), Ok(DatabaseState::Sound(_)))
}

impl OpenedDatabase {
    fn from_lineage(lineage: Lineage) -> Result<Self, CompactionError> {
        let is_new = lineage.last_runs(1)?.is_empty();
        Ok(Self { lineage, is_new, pending_rebuild: None })
    }
}

/// Opens the database for a run, repairs it if necessary, and executes the run. If the run finds
/// the database damaged, it is repaired and the run repeated. `say` receives what was repaired.
pub(crate) fn with_database<T>(
    vault: &Vault,
    mut depth: CheckDepth,
    now: DateTime<Utc>,
    say: &mut dyn FnMut(&DatabaseRecovery),
    mut work: impl FnMut(&mut Lineage, Option<PendingRebuild>) -> Result<T, CompactionError>,
) -> Result<T, CompactionError> {
    let mut is_retry = false;
    loop {
        let OpenedDatabase { mut lineage, pending_rebuild, .. } = open(vault, depth, now)?;
        if let Some(pending) = &pending_rebuild {
            say(&pending.recovery);
        }
        match work(&mut lineage, pending_rebuild) {
            Err(CompactionError::Lineage(LineageError::Damaged { .. })) if !is_retry => {
                depth = CheckDepth::Full;
                is_retry = true;
            }
            done => return done,
        }
    }
}

/// Returns whether a database was never used.
pub(crate) fn has_no_records(lineage: &Lineage) -> Result<bool, LineageError> {
    Ok(lineage.last_runs(1)?.is_empty()
        && lineage.documents()?.is_empty()
        && lineage.log_paths()?.is_empty())
}

/// Records again in the database what the files say.
pub(crate) struct Rebuilder<'c, 'a> {
    context: &'c mut RunContext<'a>,
}

impl<'c, 'a> Rebuilder<'c, 'a> {
    pub(crate) fn new(context: &'c mut RunContext<'a>) -> Self {
        Self { context }
    }

    /// Records the files in a database that was created again. It is a run, so that the history shows
    /// the repair.
    pub(crate) fn rebuild_recovered(
        &mut self,
        _pending: PendingRebuild,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        let mut run = None;
        let begun = self.context.ensure_run(&mut run, REBUILD_TRIGGER, now)?;
        let view = self.context.take_snapshot(now)?;
        self.record_found_files(&view, now)?;
        let rebuilt = self.rebuild_records(run, now);
        self.context.end_run(begun)?;
        rebuilt
    }

    /// Records existing generated files in an unused database: somebody deleted it with its commit
    /// marker, or the folder came from another machine.
    pub(crate) fn record_existing_files(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        if !has_no_records(self.context.lineage)? {
            return Ok(());
        }
        let view = self.context.take_snapshot(now)?;
        self.record_found_files(&view, now)?;
        let inventory = view.inventory;
        let mut summaries = inventory.weekly.values().chain(inventory.monthly.values());
        if summaries.any(|it| it.header.is_some()) {
            self.rebuild_records(None, now)?;
        }
        Ok(())
    }

    /// Records the files whose record is lost, as the earlier database is: only `rebuild --adopt` gives them one.
    fn record_found_files(
        &mut self,
        view: &RootSnapshot,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        let mut found = Vec::new();
        for (path, text) in snapshot::lost_files(self.context.vault, view)? {
            let newest = self.context.lineage.versions_of(&path)?.pop();
            let is_known = newest.is_some_and(|it| {
                let is_same = it.hash == Some(ContentHash::of(&text));
                it.cause == VersionCause::Forgotten
                    || it.cause == VersionCause::ReadByRun && is_same
            });
            found.extend((!is_known).then_some((path, text)));
        }
        if found.is_empty() {
            return Ok(());
        }
        let cause = VersionCause::ReadByRun;
        let versions: Vec<NewVersion<'_>> = found
            .iter()
            .map(|(path, text)| NewVersion { path, cause, bytes: Some(text.as_bytes()) })
            .collect();
        let _lock = self.context.write_lock()?;
        let commit = Commit { versions: &versions, at: now, ..Commit::default() };
        Ok(self.context.lineage.commit(&commit)?)
    }

    /// Replaces all records of files and logs with what the files say now, and updates citations:
    /// nobody knows which versions of the logs they are about. `run` is the run in progress.
    pub(crate) fn rebuild_records(
        &mut self,
        run: Option<RunId>,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        let result = self.replace_records(now)?;
        let view = self.context.take_snapshot(now)?;
        let mut reconcile_run = ReconcileRun { run, ..ReconcileRun::new(REBUILD_TRIGGER, now) };
        Reconciler::new(self.context).check_all_citations(&mut reconcile_run, &view)?;
        if let Some(begun) = reconcile_run.run.filter(|_| run.is_none()) {
            self.context.end_run(begun)?;
        }
        Ok(result)
    }

    fn replace_records(&mut self, now: DateTime<Utc>) -> Result<RebuildResult, CompactionError> {
        // Nobody may write between reading the files and recording them.
        let _lock = self.context.write_lock()?;
        let view = self.context.take_snapshot(now)?;
        let inventory = &view.inventory;
        let layout = self.context.vault.layout();
        let summaries = inventory.weekly.values().chain(inventory.monthly.values());
        let mut paths: Vec<String> = summaries.map(|it| it.path.clone()).collect();
        let memories = inventory.memories.iter().map(|it| it.file_name.to_string_lossy());
        paths.extend(memories.map(|name| layout.typed_memory(&name)));
        paths.extend(inventory.wisdom.is_some().then(|| layout.wisdom()));
        let mut documents = Vec::new();
        for path in paths {
            // The next run notices a file that disappears meanwhile.
            let Some(text) = self.context.vault.read_text(&path)? else { continue };
            documents.extend(records::of_path(layout, &path, &text));
        }
        let rules = inventory.rules.clone();
        let mut logs = Vec::new();
        let mut extracted = Vec::new();
        for (stem, file) in &inventory.logs {
            let Some(log) = self.context.vault.read_log(stem)? else { continue };
            logs.push(LogRecord::of(&privacy::sanitize(&log, &rules), layout.source_path(stem)));
            extracted.extend(recorded_extraction(inventory, stem, file));
        }
        let items = documents.iter().flat_map(|it| &it.items);
        let cited: BTreeSet<Stem> = items
            .flat_map(|it| it.citation.iter().flat_map(Citation::files))
            .map(|it| it.0.clone())
            .filter(Stem::is_summary)
            .collect();
        for stem in cited {
            let path = layout.source_path(&stem);
            let Some(text) = self.context.vault.read_text(&path)? else { continue };
            logs.extend(records::lines_of_summary(&stem, &path, &text));
        }
        self.context.lineage.replace_all(&documents, &logs, &extracted)?;
        safety_copies::update_commit_marker(self.context.vault, self.context.lineage)?;
        Ok(RebuildResult { counts: self.context.lineage.counts()?, extracted: extracted.len() })
    }
}

/// Returns the extraction that the log's weekly file records, if the file was written from this
/// version of the log.
fn recorded_extraction(
    inventory: &Inventory,
    stem: &Stem,
    file: &LogFile,
) -> Option<(Stem, ContentHash)> {
    let week = Period::containing(Grain::Week, stem.date());
    let header = inventory.weekly.get(&week)?.header.as_ref()?;
    let same = header.sources.get(stem.as_str()) == Some(&file.input_hash.hex16());
    let done = same && header.extracted.contains(&stem.date().to_string());
    done.then(|| (stem.clone(), file.input_hash))
}
