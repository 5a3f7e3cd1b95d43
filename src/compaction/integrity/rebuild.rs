//! The database anew from the files.
//!
//! The files say everything but receipts, history, and reasons: what stands in a generated file is
//! recorded as a pass would record it ([`crate::compaction::journal::records`]), and the heads of weekly files say which
//! days were extracted. A database that cannot be read is moved aside first, never deleted.
//! Called by
//! `rebuild` and `doctor --repair`, by whatever finds the database damaged, and before anything is
//! noticed by who finds it new.

use std::{collections::BTreeSet, path::PathBuf};

use chrono::{DateTime, Utc};

use super::check;
use crate::compaction::{CompactionError, Compactor, journal::records};
use crate::{
    memory::{
        address::{Citation, Stem},
        hash::ContentHash,
        period::{Grain, Period},
    },
    privacy,
    store::{
        db::lineage::{
            Lineage, LineageError, query::LineageCounts, record::LogRecord, salvage::SalvageReport,
        },
        fs::{
            inventory::{Inventory, LogFile},
            lock::{RunLock, WriteLock},
            private_folder,
            vault::Vault,
        },
    },
};

/// What was recorded anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildResult {
    /// How much the database holds now.
    pub counts: LineageCounts,
    /// Logs of which typed memories were extracted before.
    pub extracted: usize,
}

/// A database to work with.
#[derive(Debug)]
pub struct OpenedDatabase {
    /// It, open.
    pub lineage: Lineage,
    /// Whether it holds no earlier receipts: it is new, or nothing was done with it yet.
    pub is_new: bool,
    /// What had to be done before; it knows nothing of the files then, and `Compactor::rebuild_recovered` is to
    /// come before anything else.
    pub pending_rebuild: Option<PendingRebuild>,
}

/// A database that was made anew and knows nothing of the files yet. No pass runs until it does: it
/// would take all that stands there for new.
#[derive(Debug)]
pub struct PendingRebuild {
    /// What had happened to the one before.
    pub recovery: DatabaseRecovery,
    _run_lock: RunLock,
}

/// How a database came to be a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseRecovery {
    /// There was none, and there are witnesses of an earlier one.
    Missing,
    /// It was damaged.
    SetAside {
        /// Where the damaged one is now.
        path: PathBuf,
        /// What could be taken over.
        salvaged: SalvageReport,
        /// What was wrong with it.
        why: String,
    },
}

impl std::fmt::Display for DatabaseRecovery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => f.write_str("the database was gone; it was made anew from the files"),
            Self::SetAside { path, salvaged, why } => {
                let SalvageReport { receipts, versions, .. } = salvaged;
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                write!(
                    f,
                    "the database was damaged ({why}); it is kept as .memoird/{name} and was made anew \
                     from the files, with {receipts} receipts and {versions} versions of the old one"
                )
            }
        }
    }
}

/// How closely a database is looked at before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckDepth {
    /// It can be opened. What is found to be damaged later ends the pass, and it is opened again
    /// with a closer look.
    Quick,
    /// Every row is read.
    Full,
}

/// Opens the database of a root; one that is damaged is moved aside, and one that is missing made.
/// What the damaged one still holds of history and receipts is taken over.
///
/// # Errors
///
/// Returns an error when another program or a newer memoird made it.
pub fn open(
    vault: &Vault,
    look: CheckDepth,
    now: DateTime<Utc>,
) -> Result<OpenedDatabase, CompactionError> {
    let layout = vault.layout();
    let path = layout.database();
    vault.create_private_dir()?;
    if let DatabaseState::Sound(lineage) = database_state(vault, look)? {
        return OpenedDatabase::from_lineage(lineage);
    }
    // A pass that has it open would go on writing into the file that was moved.
    let alone = RunLock::acquire(layout.root(), &layout.run_lock(), &|| false)?;
    let _writer = WriteLock::acquire(layout.root())?;
    // Whoever had the locks before may have put it right.
    let (lineage, is_new, mended) = match database_state(vault, CheckDepth::Full)? {
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
        pending_rebuild: Some(PendingRebuild { recovery: mended, _run_lock: alone }),
    })
}

/// In what state a database is found.
enum DatabaseState {
    /// It can be worked with; it may have been made just now, where there never was one.
    Sound(Lineage),
    /// There was one, and now there is none.
    Missing,
    /// It cannot be worked with, for this reason.
    Damaged(String),
}

fn database_state(vault: &Vault, look: CheckDepth) -> Result<DatabaseState, CompactionError> {
    let layout = vault.layout();
    let path = layout.database();
    // What a crash left of one that was damaged may look sound without its write-ahead log.
    if Lineage::is_set_aside_unfinished(&path) {
        return Ok(DatabaseState::Damaged("it was put aside by half".to_owned()));
    }
    let is_missing = std::fs::metadata(&path).map_or(0, |it| it.len()) == 0;
    if is_missing && private_folder::read_commit_marker(layout).is_some() {
        return Ok(DatabaseState::Missing);
    }
    let opened = Lineage::open(&path).and_then(|lineage| {
        if look == CheckDepth::Full && !is_missing {
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

/// Looks closely at the database, and returns whether it is there and all of it can be read.
pub fn is_sound(vault: &Vault) -> bool {
    matches!(database_state(vault, CheckDepth::Full), Ok(DatabaseState::Sound(_)))
}

impl OpenedDatabase {
    fn from_lineage(lineage: Lineage) -> Result<Self, CompactionError> {
        let is_new = lineage.last_runs(1)?.is_empty();
        Ok(Self { lineage, is_new, pending_rebuild: None })
    }
}

/// Opens the database for a pass, mends it if need be, and makes the pass. A database that is found
/// to be damaged on the way is mended, and the pass made again. `say` is told what was mended.
///
/// # Errors
///
/// Returns what ended the pass; each job that was done is done.
pub fn with_database<T>(
    vault: &Vault,
    mut look: CheckDepth,
    now: DateTime<Utc>,
    say: &mut dyn FnMut(&DatabaseRecovery),
    mut work: impl FnMut(&mut Lineage, Option<PendingRebuild>) -> Result<T, CompactionError>,
) -> Result<T, CompactionError> {
    let mut is_again = false;
    loop {
        let OpenedDatabase { mut lineage, pending_rebuild: mending, .. } = open(vault, look, now)?;
        if let Some(mending) = &mending {
            say(&mending.recovery);
        }
        match work(&mut lineage, mending) {
            Err(CompactionError::Lineage(LineageError::Damaged { .. })) if !is_again => {
                look = CheckDepth::Full;
                is_again = true;
            }
            done => return done,
        }
    }
}

impl Compactor<'_> {
    /// Waits until no other pass is at work, for what needs the root alone.
    ///
    /// # Errors
    ///
    /// Returns an error when it takes too long, or when the database was put aside meanwhile: what
    /// is written into it then is read by nobody.
    pub(crate) fn acquire_run_lock(
        &self,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<RunLock, CompactionError> {
        let layout = self.vault.layout();
        let lock = RunLock::acquire(layout.root(), &layout.run_lock(), is_stopped)?;
        self.refuse_if_replaced()?;
        Ok(lock)
    }

    /// Stops before anything is written into a database that was put aside.
    pub(crate) fn refuse_if_replaced(&self) -> Result<(), LineageError> {
        if self.lineage.is_in_place() {
            return Ok(());
        }
        Err(LineageError::Replaced { path: self.lineage.path().to_owned() })
    }

    /// Forgets what is recorded of files and logs, and records what stands there. Runs and receipts
    /// stay.
    ///
    /// What people did since the last pass is noticed before, while it can still be told from what
    /// was recorded.
    ///
    /// # Errors
    ///
    /// Returns an error when the folder cannot be read or the database cannot be written; then
    /// nothing was replaced.
    pub fn rebuild(&mut self, now: DateTime<Utc>) -> Result<RebuildResult, CompactionError> {
        let _alone = self.acquire_run_lock(&|| false)?;
        self.reconcile_locked("rebuild", now)?;
        self.rebuild_records(now)
    }

    /// Like [`Self::rebuild`], for a database that was made anew and knows nothing: nobody can have
    /// changed anything since. It is a run, so that the record says when it was mended.
    ///
    /// # Errors
    ///
    /// Like [`Self::rebuild`].
    pub fn rebuild_recovered(
        &mut self,
        _mending: PendingRebuild,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        let mut run = None;
        let begun = self.ensure_run(&mut run, "rebuild", now)?;
        let rebuilt = self.rebuild_records(now);
        self.end_run(begun)?;
        rebuilt
    }

    /// Returns whether nothing was ever done with the database.
    pub(crate) fn has_no_records(&self) -> Result<bool, LineageError> {
        Ok(self.lineage.last_runs(1)?.is_empty()
            && self.lineage.documents()?.is_empty()
            && self.lineage.log_paths()?.is_empty())
    }

    /// Records what stands there in a database that knows nothing yet, where files were made before:
    /// somebody deleted it with all that tells of it, or the folder came from another machine.
    pub(crate) fn record_existing_files(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<(), CompactionError> {
        if !self.has_no_records()? {
            return Ok(());
        }
        let inventory = self.take_snapshot(now)?.inventory;
        let mut summaries = inventory.weekly.values().chain(inventory.monthly.values());
        if summaries.any(|it| it.header.is_some()) {
            self.rebuild_records(now)?;
        }
        Ok(())
    }

    /// Records what stands there in the place of all that is recorded of files and logs.
    pub(crate) fn rebuild_records(
        &mut self,
        now: DateTime<Utc>,
    ) -> Result<RebuildResult, CompactionError> {
        // Nobody writes between reading the files and recording them.
        let _lock = self.write_lock()?;
        let view = self.take_snapshot(now)?;
        let inventory = &view.inventory;
        let layout = self.vault.layout();
        let summaries = inventory.weekly.values().chain(inventory.monthly.values());
        let mut paths: Vec<String> = summaries.map(|it| it.path.clone()).collect();
        let memories = inventory.memories.iter().map(|it| it.file_name.to_string_lossy());
        paths.extend(memories.map(|name| layout.typed_memory(&name)));
        paths.extend(inventory.wisdom.is_some().then(|| layout.wisdom()));
        let mut documents = Vec::new();
        for path in paths {
            // A file that went away meanwhile is noticed by the next pass.
            let Some(text) = self.vault.read_text(&path)? else { continue };
            documents.extend(records::of_path(layout, &path, &text));
        }
        let rules = inventory.rules.clone();
        let mut logs = Vec::new();
        let mut extracted = Vec::new();
        for (stem, file) in &inventory.logs {
            let Some(log) = self.vault.read_log(stem)? else { continue };
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
            let Some(text) = self.vault.read_text(&path)? else { continue };
            logs.extend(records::lines_of_summary(&stem, &path, &text));
        }
        self.lineage.replace_all(&documents, &logs, &extracted)?;
        self.update_commit_marker()?;
        Ok(RebuildResult { counts: self.lineage.counts()?, extracted: extracted.len() })
    }
}

/// Returns what the file of the log's week says of its extraction, if the log is the one that the
/// file was made from.
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
