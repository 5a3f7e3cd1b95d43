//! The database anew from the files.
//!
//! The files say everything but receipts, history, and reasons: what stands in a generated file is
//! recorded as a pass would record it ([`super::records`]), and the heads of weekly files say which
//! days were extracted. A database that cannot be read is moved aside first, never deleted.
//! Called by `rebuild`.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::{Compactor, PassError, records};
use crate::{
    memory::{
        address::Stem,
        hash::ContentHash,
        period::{Grain, Period},
    },
    privacy,
    store::{
        inventory::{Inventory, LogFile},
        lineage::{Lineage, LineageError, query::Counts, record::LogRecord},
        lock::{DaemonLock, WriteLock},
        vault::Vault,
    },
};

/// What was recorded anew.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rebuilt {
    /// How much the database holds now.
    pub counts: Counts,
    /// Logs of which typed memories were extracted before.
    pub extracted: usize,
}

/// A database to be filled.
#[derive(Debug)]
pub struct Opened {
    /// It, open.
    pub lineage: Lineage,
    /// Whether it holds no earlier receipts: it is new, or nothing was done with it yet.
    pub is_new: bool,
    /// Where the damaged one is now.
    pub set_aside: Option<PathBuf>,
}

/// Opens the database of a root; one that is damaged is moved aside, and one that is missing made.
///
/// # Errors
///
/// Returns an error when another program or a newer memoird made it, and when it is damaged while a
/// daemon has it open.
pub fn open_or_set_aside(vault: &Vault, now: DateTime<Utc>) -> Result<Opened, PassError> {
    let layout = vault.layout();
    let path = layout.database();
    vault.create_private_dir()?;
    match open_sound(&path) {
        Ok(lineage) => {
            let is_new = lineage.last_runs(1)?.is_empty();
            Ok(Opened { lineage, is_new, set_aside: None })
        }
        Err(LineageError::Damaged { .. }) => {
            // Whoever had it open would go on writing into the file that was moved.
            let _daemon = DaemonLock::acquire(layout.root(), &layout.daemon_lock())?;
            let _writer = WriteLock::acquire(layout.root())?;
            let set_aside = Lineage::set_aside(&path, now)?;
            Ok(Opened { lineage: Lineage::open(&path)?, is_new: true, set_aside: Some(set_aside) })
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens a database and reads all of it that a rebuild keeps.
fn open_sound(path: &std::path::Path) -> Result<Lineage, LineageError> {
    let lineage = Lineage::open(path)?;
    lineage.quick_check()?;
    lineage.last_receipts()?;
    lineage.open_intents()?;
    lineage.canonical_dump()?;
    lineage.logs()?;
    Ok(lineage)
}

impl Compactor<'_> {
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
    pub fn rebuild(&mut self, now: DateTime<Utc>) -> Result<Rebuilt, PassError> {
        self.notice("rebuild", now)?;
        // Nobody writes between reading the files and recording them.
        let _lock = self.write_lock()?;
        let view = self.look(now)?;
        let inventory = &view.inventory;
        let layout = self.vault.layout();
        let summaries = inventory.weekly.values().chain(inventory.monthly.values());
        let mut paths: Vec<String> = summaries.map(|it| it.path.clone()).collect();
        let memories = inventory.memories.iter().map(|it| it.file_name.to_string_lossy());
        paths.extend(memories.map(|name| layout.typed(&name)));
        paths.extend(inventory.wisdom.is_some().then(|| layout.wisdom()));
        let mut documents = Vec::new();
        for path in paths {
            // A file that went away meanwhile is noticed by the next pass.
            let Some(text) = self.vault.read_text(&path)? else { continue };
            documents.extend(records::of_path(layout, &path, &text));
        }
        let rules = privacy::Rules::of(&inventory.decisions);
        let mut logs = Vec::new();
        let mut extracted = Vec::new();
        for (stem, file) in &inventory.logs {
            let Some(log) = self.vault.read_log(stem)? else { continue };
            logs.push(LogRecord::of(&privacy::serve(&log, &rules), layout.source(stem)));
            extracted.extend(extraction(inventory, stem, file));
        }
        self.lineage.replace_all(&documents, &logs, &extracted)?;
        Ok(Rebuilt { counts: self.lineage.counts()?, extracted: extracted.len() })
    }
}

/// Returns what the file of the log's week says of its extraction, if the log is the one that the
/// file was made from.
fn extraction(inventory: &Inventory, stem: &Stem, file: &LogFile) -> Option<(Stem, ContentHash)> {
    let week = Period::containing(Grain::Week, stem.date());
    let header = inventory.weekly.get(&week)?.header.as_ref()?;
    let same = header.sources.get(stem.as_str()) == Some(&file.hash.hex16());
    let done = same && header.extracted.contains(&stem.date().to_string());
    done.then(|| (stem.clone(), file.hash))
}
