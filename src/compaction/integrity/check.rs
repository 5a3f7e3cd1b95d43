//! The checks of `doctor`: whether files, database, and history agree, and whether everything is as
//! it was written.
//!
//! Checks change nothing; [`super::repair`] acts on what they find.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    error::Error,
};

use super::vanished_files;
use crate::compaction::{
    error::{CompactionError, VanishedFiles},
    journal::records,
    plan::damage::{Damage, byte_damage},
    snapshot::RootSnapshot,
};
use crate::{
    memory::{
        address::{Citation, Stem, is_removed_line, original_line_number},
        decision_merge::has_damaged_line,
        hash::ContentHash,
        period::Period,
    },
    privacy,
    store::{
        db::lineage::{
            Lineage, LineageError,
            history::VersionRow,
            jobs::{JobOutcome, JobRow, RunId},
            record::{DocumentKind, DocumentRecord, LogRecord},
        },
        fs::{
            inventory::Inventory,
            layout::{Layout, visible_bytes},
            private_folder,
            vault::{Vault, VaultError},
        },
    },
};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CheckOutcome {
    /// All is well; what was checked.
    Passed(String),
    /// It works, but people should know.
    Warning(String),
    /// What is wrong, each with a hint.
    Failed(Vec<String>),
}

/// The result of a check, or why it could not be made.
pub(crate) type CheckResult = Result<CheckOutcome, Box<dyn Error + Send + Sync>>;

impl CheckOutcome {
    /// Returns `Passed` if there are no findings.
    pub(crate) fn from_findings(findings: Vec<String>, well: impl FnOnce() -> String) -> Self {
        if findings.is_empty() { Self::Passed(well()) } else { Self::Failed(findings) }
    }
}

/// Reads the generated files as they would be recorded now. Those that cannot be read are reported
/// by [`files`].
pub(crate) fn documents(vault: &Vault, view: &RootSnapshot) -> BTreeMap<String, DocumentRecord> {
    let inventory = &view.inventory;
    let layout = vault.layout();
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let memories =
        inventory.memories.iter().map(|it| layout.typed_memory(&it.file_name.to_string_lossy()));
    let wisdom = inventory.wisdom.is_some().then(|| layout.wisdom());
    summaries
        .map(|it| it.path.clone())
        .chain(memories)
        .chain(wisdom)
        .filter_map(|path| {
            let text = vault.read_text(&path).ok().flatten()?;
            Some((path.clone(), records::of_path(layout, &path, &text)?))
        })
        .collect()
}

/// Reads the whole database: its structure, the checksum of every row, and the history.
/// Returns [`LineageError::Damaged`] with what is wrong.
pub(crate) fn database(lineage: &Lineage) -> Result<(), LineageError> {
    lineage.integrity_check()?;
    let damaged = |detail| LineageError::Damaged { path: lineage.path().to_owned(), detail };
    let broken = lineage.corrupt_rows()?;
    if !broken.is_empty() {
        return Err(damaged(format!("not as it was written: {}", broken.join(", "))));
    }
    for hash in lineage.contents()? {
        lineage.content(hash)?;
    }
    // The queries of everyday use must succeed.
    lineage.last_receipts()?;
    lineage.open_intents()?;
    lineage.versions()?;
    lineage.undone_runs()?;
    lineage.canonical_dump()?;
    lineage.logs()?;
    lineage.extracted_logs()?;
    lineage.scanned_files()?;
    Ok(())
}

/// Checks the commit marker beside the database: whether the database contains all committed runs.
pub(crate) fn commit_marker(layout: &Layout, lineage: Option<&Lineage>) -> CheckResult {
    let Some(marker) = private_folder::read_commit_marker(layout) else {
        return Ok(CheckOutcome::Passed("none yet".to_owned()));
    };
    let checksum = lineage.map(|it| it.run_checksum(RunId(marker.run))).transpose()?.flatten();
    if checksum == Some(marker.checksum) {
        return Ok(CheckOutcome::Passed(format!("run {}, complete", marker.run)));
    }
    let what = match checksum {
        None => "is not in the database",
        Some(_) => "differs from the one in the database",
    };
    Ok(CheckOutcome::Failed(vec![format!(
        "run {} {what}: commits were lost, or an older copy was put back; `memoird doctor --repair`",
        marker.run
    )]))
}

/// Checks the decisions file, which only grows.
pub(crate) fn decisions(vault: &Vault, view: &RootSnapshot) -> CheckResult {
    let layout = vault.layout();
    let path = layout.decisions();
    let copy = private_folder::decisions_copy(layout);
    let Some(found) = vault.read(&path)? else {
        return Ok(match copy {
            Some(_) => CheckOutcome::Failed(vec![format!(
                "{path} is missing, so deleted items may come back; `memoird doctor --repair`"
            )]),
            None => CheckOutcome::Passed("none yet".to_owned()),
        });
    };
    let mut findings = Vec::new();
    if let Some(copy) = copy
        && has_damaged_line(&String::from_utf8_lossy(&found.bytes), &String::from_utf8_lossy(&copy))
    {
        findings.push(format!("{path} has lost lines; `memoird doctor --repair` restores them"));
    }
    let decisions = &view.inventory.decisions;
    if !decisions.has_key() {
        findings.push(format!("{path} has lost its key, so deleted items may come back"));
    }
    let lines: Vec<String> = decisions.unreadable().iter().map(usize::to_string).collect();
    if !lines.is_empty() {
        findings.push(format!("{path}: line {} cannot be read", lines.join(", ")));
    }
    Ok(CheckOutcome::from_findings(findings, || "can be read".to_owned()))
}

pub(crate) fn files(damaged: &BTreeMap<String, Damage>) -> CheckOutcome {
    let findings = damaged.iter().map(|(path, damage)| format!("{path} {damage}"));
    CheckOutcome::from_findings(findings.collect(), || "none".to_owned())
}

/// A way in which the records differ from the files. Printed: what is wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RecordFinding {
    #[error("{0}; nothing is written until they are back, or `memoird compact --accept-missing`")]
    ManyVanished(VanishedFiles),
    /// The items of a file, or the lines of a log, differ from their records, though the file did
    /// not change.
    #[error("{0} is recorded wrongly; `memoird rebuild`")]
    WrongRecord(String),
    #[error("{0} can no longer be read; `memoird status` says why")]
    Unreadable(String),
    #[error("{path} is gone; `memoird compact` {}", match kind {
        DocumentKind::Weekly | DocumentKind::Monthly => "makes it again",
        DocumentKind::Memory | DocumentKind::Wisdom => "records that",
    })]
    Gone { path: String, kind: DocumentKind },
    /// Generated files without a record.
    #[error("{} files are not recorded ({}); `memoird rebuild`", .0.len(), .0[..(.0.len().min(3))].join(", "))]
    Unrecorded(Vec<String>),
    /// A log was changed while it was checked.
    #[error("{0} has other bytes than when it was scanned")]
    ChangedSinceScan(String),
}

impl RecordFinding {
    /// Returns whether recording files and logs again fixes it.
    pub(crate) fn needs_rebuild(&self) -> bool {
        match self {
            Self::WrongRecord(_) | Self::Unrecorded(_) => true,
            Self::ManyVanished(_)
            | Self::Unreadable(_)
            | Self::Gone { .. }
            | Self::ChangedSinceScan(_) => false,
        }
    }
}

/// The records compared with the files.
#[derive(Debug, Default)]
pub(crate) struct RecordComparison {
    pub findings: Vec<RecordFinding>,
    /// How many generated files are recorded.
    recorded: usize,
    /// Those that were edited since.
    edited: Vec<String>,
}

impl From<RecordComparison> for CheckOutcome {
    fn from(compared: RecordComparison) -> Self {
        let RecordComparison { findings, recorded, edited } = compared;
        let findings = findings.iter().map(ToString::to_string).collect();
        Self::from_findings(findings, || match edited.len() {
            0 => format!("{recorded} files are as memoird wrote them"),
            _ => format!("{recorded} files; edited since: {}", edited.join(", ")),
        })
    }
}

/// Compares what is recorded of generated files and logs with the files.
pub(crate) fn compare_records(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
    documents: &BTreeMap<String, DocumentRecord>,
) -> Result<RecordComparison, CompactionError> {
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::documents)?;
    let vanished =
        lineage.map(|it| vanished_files::find_vanished(vault, it)).transpose()?.flatten();
    let mut compared = RecordComparison {
        findings: vanished.map(RecordFinding::ManyVanished).into_iter().collect(),
        recorded: known.len(),
        edited: Vec::new(),
    };
    let findings = &mut compared.findings;
    for (path, (kind, hash)) in &known {
        match documents.get(path) {
            Some(document) if document.hash == *hash => {
                let items = lineage.map(|it| it.items_of(path)).transpose()?;
                if items.is_some_and(|it| it != document.items) {
                    findings.push(RecordFinding::WrongRecord(path.clone()));
                }
            }
            Some(_) => compared.edited.push(path.clone()),
            None if vault.read(path).is_ok_and(|it| it.is_some()) => {
                findings.push(RecordFinding::Unreadable(path.clone()));
            }
            None => findings.push(RecordFinding::Gone { path: path.clone(), kind: *kind }),
        }
    }
    // The next run records a person's own files; without any record, the database is new.
    let is_ours = |it: &DocumentRecord| it.items.iter().any(|it| it.citation.is_some());
    let unrecorded: Vec<String> = documents
        .values()
        .filter(|it| !known.contains_key(&it.path) && is_ours(it))
        .map(|it| it.path.clone())
        .collect();
    if !unrecorded.is_empty() {
        findings.push(RecordFinding::Unrecorded(unrecorded));
    }
    findings.extend(misrecorded_logs(vault, view, lineage)?);
    Ok(compared)
}

/// Compares the lines of logs that did not change with those on record.
fn misrecorded_logs(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> Result<Vec<RecordFinding>, CompactionError> {
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::logs)?;
    let mut findings = Vec::new();
    for (stem, file) in &view.inventory.logs {
        let Some(old) = known.get(stem) else { continue };
        let Some(log) = vault.read_log(stem)? else { continue };
        // Hashes are of the raw lines, whatever the sanitized view shows of them.
        let sanitized = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        let now = LogRecord::of(&sanitized, file.path.clone());
        let same = (now.first_line, &now.line_hashes) == (old.first_line, &old.line_hashes);
        if now.hash == old.hash && !same {
            findings.push(RecordFinding::WrongRecord(file.path.clone()));
        }
        if now.hash != file.hash {
            findings.push(RecordFinding::ChangedSinceScan(file.path.clone()));
        }
    }
    Ok(findings)
}

/// Compares the last receipts, `jobs`, with the files: what was written exists, or the history
/// explains why not. Files that are unchanged in `inventory` are not read again.
pub(crate) fn receipts(
    vault: &Vault,
    lineage: Option<&Lineage>,
    jobs: &[JobRow],
    inventory: Option<&Inventory>,
) -> CheckResult {
    let Some(lineage) = lineage else { return Ok(CheckOutcome::Passed("none yet".to_owned())) };
    // Loaded only if a file differs from what was written.
    let mut latest: Option<HashMap<String, VersionRow>> = None;
    let mut findings = Vec::new();
    let mut written = 0;
    let mut silent = 0;
    let unchanged = inventory.map(summary_hashes).unwrap_or_default();
    for job in jobs {
        let Some(receipt) = &job.receipt else { continue };
        if matches!(receipt.outcome, JobOutcome::Failed | JobOutcome::Stuck | JobOutcome::Skipped)
            && receipt.reason.as_deref().is_none_or(str::is_empty)
        {
            silent += 1;
        }
        if receipt.outcome != JobOutcome::Written {
            continue;
        }
        written += 1;
        for (path, hash) in lineage.generated_by(job.id)? {
            if unchanged.get(&path[..]) == Some(&hash) {
                continue;
            }
            let latest = match &mut latest {
                Some(known) => known,
                none => {
                    let rows = lineage.latest_versions()?.into_iter();
                    none.insert(rows.map(|it| (it.path.clone(), it)).collect())
                }
            };
            // A later run or a reconciled edit replaced it.
            if latest.get(&path).is_some_and(|it| it.hash != Some(hash)) {
                continue;
            }
            match vault.read(&path) {
                Ok(Some(found)) if ContentHash::of(&found.bytes) == hash => {}
                Ok(Some(found)) => {
                    if let Some(damage) = byte_damage(visible_bytes(&path, &found.bytes)) {
                        findings.push(format!(
                            "run {} wrote {path}, which now {}; `memoird doctor --repair`",
                            job.run,
                            damage.description()
                        ));
                    }
                }
                // The comparison of records reports it.
                Ok(None) if lineage.document_hash(&path)?.is_some() => {}
                Ok(None) => findings.push(format!(
                    "run {} wrote {path}, which is gone; `memoird compact`",
                    job.run
                )),
                Err(error) => {
                    findings.push(format!("run {} wrote {path}, but {error}", job.run));
                }
            }
        }
    }
    if silent > 0 {
        findings.push(format!("{silent} receipts lack the reason why nothing was written"));
    }
    Ok(CheckOutcome::from_findings(findings, || format!("{written} receipts verified")))
}

/// Returns the hashes of the generated files that a scan has read.
fn summary_hashes(inventory: &Inventory) -> HashMap<&str, ContentHash> {
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    summaries.map(|it| (&it.path[..], it.hash)).collect()
}

/// Looks up every cited line, except in vanished logs.
pub(crate) fn citations(
    vault: &Vault,
    documents: &BTreeMap<String, DocumentRecord>,
) -> CheckResult {
    let mut findings: Vec<String> =
        dangling_citations(vault, documents)?.into_values().flatten().collect();
    let mut gone = BTreeSet::new();
    let mut lines = 0_usize;
    let mut there: HashMap<Stem, bool> = HashMap::new();
    for item in documents.values().flat_map(|it| &it.items) {
        for (stem, cited) in item.citation.iter().flat_map(Citation::files) {
            lines += cited.iter().count();
            let lost = cited.iter().filter(|it| is_removed_line(*it));
            gone.extend(lost.map(|it| format!("{stem}:{}", original_line_number(it))));
            let is_there = match there.get(stem) {
                Some(known) => *known,
                None => vault.read_log(stem)?.is_some(),
            };
            there.insert(stem.clone(), is_there);
            if !is_there {
                gone.insert(stem.to_string());
            }
        }
    }
    if !findings.is_empty() {
        findings.push("`memoird status` shows what is due for changed logs".to_owned());
    }
    Ok(CheckOutcome::from_findings(findings, || {
        let gone: Vec<String> = gone.into_iter().collect();
        match gone.len() {
            0 => format!("{lines} cited lines found in their logs"),
            _ => format!("{lines} cited lines; source gone: {}", gone.join(", ")),
        }
    }))
}

/// Returns, by file, citations of lines that an existing log never had.
pub(crate) fn dangling_citations(
    vault: &Vault,
    documents: &BTreeMap<String, DocumentRecord>,
) -> Result<BTreeMap<String, Vec<String>>, VaultError> {
    let mut last_lines: HashMap<Stem, Option<u32>> = HashMap::new();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for document in documents.values() {
        for item in &document.items {
            for (stem, cited) in item.citation.iter().flat_map(Citation::files) {
                let last = match last_lines.get(stem) {
                    Some(last) => *last,
                    None => last_line(vault, stem)?,
                };
                last_lines.insert(stem.clone(), last);
                // Vanished logs are reported elsewhere.
                let Some(last) = last else { continue };
                let is_odd = |it: &u32| *it > last && !is_removed_line(*it);
                let Some(line) = cited.iter().find(is_odd) else { continue };
                found.entry(document.path.clone()).or_default().push(format!(
                    "{}:{} cites {stem}:{line}, but that log ends on line {last}",
                    document.path, item.line
                ));
            }
        }
    }
    Ok(found)
}

/// Returns the number of the last non-blank line of a log; `None` if the log is gone.
fn last_line(vault: &Vault, stem: &Stem) -> Result<Option<u32>, VaultError> {
    let log = vault.read_log(stem)?;
    Ok(log.map(|log| {
        let lines = log.lines();
        lines.iter().rfind(|it| !it.1.trim().is_empty()).map_or(0, |it| it.0)
    }))
}

/// Finds orphans: sources that a file names but that do not exist, and unknown files in the private
/// folder.
pub(crate) fn orphans(vault: &Vault, view: &RootSnapshot) -> CheckOutcome {
    let layout = vault.layout();
    let mut notes = Vec::new();
    let inventory = &view.inventory;
    for (period, file) in inventory.monthly.iter().chain(&inventory.weekly) {
        let Some(header) = &file.header else { continue };
        let gone: Vec<&str> = header
            .sources
            .keys()
            .filter(|it| !source_exists(vault, it))
            .map(|it| &it[..])
            .collect();
        if !gone.is_empty() {
            notes.push(format!("{period}: source gone: {}", gone.join(", ")));
        }
    }
    let strange = private_folder::unknown_files(layout);
    if !strange.is_empty() {
        notes.push(format!(".memoird contains unknown files: {}", strange.join(", ")));
    }
    if notes.is_empty() {
        CheckOutcome::Passed("none".to_owned())
    } else {
        CheckOutcome::Warning(notes.join("\n"))
    }
}

/// Returns whether a named source exists, as a log or as a summary.
fn source_exists(vault: &Vault, name: &str) -> bool {
    let layout = vault.layout();
    if let Ok(period) = name.parse::<Period>()
        && vault.exists(&layout.summary(period))
    {
        return true;
    }
    name.parse::<Stem>().is_ok_and(|stem| vault.read_log(&stem).is_ok_and(|it| it.is_some()))
}
