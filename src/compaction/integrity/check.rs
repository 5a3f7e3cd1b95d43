//! What `doctor` asks of memory: do files, database, and history say the same, and is all of it as
//! it was written?
//!
//! Each check reads and decides, and changes nothing; [`super::repair`] acts on what they find.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    error::Error,
    fmt,
};

use super::vanished_files;
use crate::compaction::{RootSnapshot, journal::records, undo::resume};
use crate::{
    memory::{
        address::{Citation, Stem, is_removed_line, original_line_number},
        document::Summary,
        hash::ContentHash,
        period::Period,
        wisdom::WisdomFile,
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
            layout::{FileKind, Layout},
            private_folder,
            vault::{Vault, VaultError},
        },
    },
};

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// All is well; what was seen.
    Passed(String),
    /// It works, but somebody should know.
    Warning(String),
    /// Something is not as it should be, each with what to do.
    Failed(Vec<String>),
}

/// What a check says when it cannot even be made.
pub type CheckResult = Result<CheckOutcome, Box<dyn Error + Send + Sync>>;

/// What a file of ours is like, as far as its bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// There is nothing in it.
    Empty,
    /// There are NUL bytes in it: a disk that lost what was written shows such.
    NulBytes,
    /// It is not UTF-8.
    NotUtf8,
    /// It is the beginning of what was recorded, cut in the middle of a line.
    Truncated,
    /// It is what was recorded without its end, cut after a line: by a disk, or by a person.
    Shortened,
    /// The marks are gone that tell what we wrote in it.
    MarksLost,
    /// It cannot be read as what its name says.
    Malformed,
}

impl CheckOutcome {
    /// All is well where nothing was found.
    pub fn from_findings(findings: Vec<String>, well: impl FnOnce() -> String) -> Self {
        if findings.is_empty() { Self::Passed(well()) } else { Self::Failed(findings) }
    }

    /// Returns whether it is not as it should be.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

impl Damage {
    /// Returns what is wrong, as the end of a sentence.
    pub fn description(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::NulBytes => "holds NUL bytes",
            Self::NotUtf8 => "is not UTF-8",
            Self::Truncated => "is cut off in the middle of a line",
            Self::Shortened => "lacks its end, as if it had been cut off after a line",
            Self::MarksLost => "has lost the marks that tell what memoird wrote in it",
            Self::Malformed => "cannot be read as what it is",
        }
    }

    /// Returns whether a person may have meant it, so that one is asked.
    pub fn may_be_intended(self) -> bool {
        matches!(self, Self::Shortened | Self::MarksLost)
    }

    /// Returns what can be done, each with what it does.
    pub fn hints(self) -> &'static [&'static str] {
        match self {
            Self::Shortened => &[
                "`memoird doctor --repair` brings it back",
                "`memoird compact --accept-missing` takes what is missing for deleted",
            ],
            Self::MarksLost => &[
                "`memoird doctor --repair` brings it back and keeps what stands there",
                "`memoird compact --accept-missing` takes it as it is",
            ],
            _ => &["`memoird doctor --repair`"],
        }
    }
}

impl fmt::Display for Damage {
    /// What is wrong and what to do, as the end of a sentence.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.description(), self.hints().join(", "))
    }
}

/// So many items at the end of a file are not taken for deleted before a person has said so.
const LOST_ITEMS_MIN: usize = 3;

/// Compares a generated file with what was recorded of it where both can be read: has it lost so
/// much that no person is likely to have meant it?
fn suspected_damage(layout: &Layout, path: &str, now: &str, before: &str) -> Option<Damage> {
    let rest = before.strip_prefix(now).filter(|it| !it.trim().is_empty());
    let cut = rest.is_some_and(|it| now.ends_with('\n') || it.starts_with(['\n', '\r']));
    if path == layout.wisdom() {
        let [was, is] = [before, now].map(WisdomFile::parse);
        let ours = |it: &WisdomFile| it.entries().filter(|it| it.meta.is_some()).count();
        let closing_gone = !was.distilled().is_empty() && is.distilled().is_empty();
        return match (ours(&was), ours(&is)) {
            // The last line of all is our comment; a person deletes entries.
            (was, is) if cut && closing_gone && is < was => Some(Damage::Shortened),
            (was, 0) if closing_gone && was > 0 => Some(Damage::MarksLost),
            _ => None,
        };
    }
    let name = path.rsplit('/').next()?.strip_suffix(".md")?;
    let period = name.parse::<Period>().ok().filter(|it| layout.summary(*it) == path)?;
    let [was, is] = [before, now].map(|it| Summary::parse(period, it));
    let (was, is) = (was.ok()?, is.ok()?);
    was.header.as_ref()?;
    if is.header.is_none() {
        return Some(Damage::MarksLost);
    }
    let lost = was.bullets().count().saturating_sub(is.bullets().count());
    (cut && lost >= LOST_ITEMS_MIN).then_some(Damage::Shortened)
}

/// Finds the generated files of which a person is to say whether they are damaged, each with what is
/// odd.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn files_to_confirm(
    vault: &Vault,
    inventory: &Inventory,
    lineage: &Lineage,
) -> Result<BTreeMap<String, Damage>, LineageError> {
    let layout = vault.layout();
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let mut there: BTreeMap<String, ContentHash> =
        summaries.map(|it| (it.path.clone(), it.hash)).collect();
    there.extend(inventory.wisdom.as_ref().map(|it| (layout.wisdom(), ContentHash::of(it))));
    // What we wrote when a crash came is recorded by the next pass.
    let open = lineage.open_intents()?;
    let is_ours = |path: &str, hash: &ContentHash| {
        open.iter().any(|it| it.target == path && it.new_hash.as_ref() == Some(hash))
    };
    let mut found = BTreeMap::new();
    for (path, (_, known)) in lineage.documents()? {
        if there.get(&path).is_none_or(|it| *it == known || is_ours(&path, it)) {
            continue;
        }
        let Some(before) = lineage.content(known)? else { continue };
        let Ok(Some(now)) = vault.read_text(&path) else { continue };
        if byte_damage(now.as_bytes()).is_some() || is_truncated(now.as_bytes(), &before) {
            continue; // That is put back without a question.
        }
        if let Some(odd) = suspected_damage(layout, &path, &now, &String::from_utf8_lossy(&before))
        {
            found.insert(path, odd);
        }
    }
    Ok(found)
}

/// Tells bytes that no person writes.
pub fn byte_damage(bytes: &[u8]) -> Option<Damage> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        Some(Damage::Empty)
    } else if bytes.contains(&0) {
        Some(Damage::NulBytes)
    } else if std::str::from_utf8(bytes).is_err() {
        Some(Damage::NotUtf8)
    } else {
        None
    }
}

/// Returns whether `now` is the beginning of `before`, cut in the middle of a line or of its
/// frontmatter. An editor that writes no newline at the end cuts no line.
pub fn is_truncated(now: &[u8], before: &[u8]) -> bool {
    let Some(rest) = before.strip_prefix(now) else { return false };
    let within_line = !now.ends_with(b"\n") && !rest.is_empty() && rest[0] != b'\n';
    let within_head = now.starts_with(b"---\n") && !now[3..].windows(4).any(|it| it == b"\n---");
    !rest.is_empty() && (within_line || within_head)
}

/// Reads the generated files as they would be recorded now. One that cannot be read is told by
/// [`files`].
pub fn documents(vault: &Vault, view: &RootSnapshot) -> BTreeMap<String, DocumentRecord> {
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

/// Reads the whole database: its form, the seal of every row, and the history.
///
/// # Errors
///
/// Returns [`LineageError::Damaged`] with what is wrong.
pub fn database(lineage: &Lineage) -> Result<(), LineageError> {
    lineage.integrity_check()?;
    let damaged = |detail| LineageError::Damaged { path: lineage.path().to_owned(), detail };
    let broken = lineage.corrupt_rows()?;
    if !broken.is_empty() {
        return Err(damaged(format!("not as it was written: {}", broken.join(", "))));
    }
    for hash in lineage.contents()? {
        lineage.content(hash)?;
    }
    // What is asked of it every day can be read.
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

/// Asks the witnesses beside the database whether it knows all that was committed.
///
/// # Errors
///
/// Returns why it could not be told.
pub fn commit_marker(layout: &Layout, lineage: Option<&Lineage>) -> CheckResult {
    let Some(said) = private_folder::read_commit_marker(layout) else {
        return Ok(CheckOutcome::Passed("none yet".to_owned()));
    };
    let seal = lineage.map(|it| it.run_checksum(RunId(said.run))).transpose()?.flatten();
    if seal == Some(said.checksum) {
        return Ok(CheckOutcome::Passed(format!("run {} is known", said.run)));
    }
    let what = match seal {
        None => "is not in the database",
        Some(_) => "is another one in the database",
    };
    Ok(CheckOutcome::Failed(vec![format!(
        "run {} {what}: commits were lost, or an older copy was put back; `memoird doctor --repair`",
        said.run
    )]))
}

/// Looks at the record of decisions: it only grows.
///
/// # Errors
///
/// Returns why it could not be told.
pub fn decisions(vault: &Vault, view: &RootSnapshot) -> CheckResult {
    let layout = vault.layout();
    let path = layout.decisions();
    let copy = private_folder::decisions_copy(layout);
    let Some(found) = vault.read(&path)? else {
        return Ok(match copy {
            Some(_) => CheckOutcome::Failed(vec![format!(
                "{path} is gone, so what was deleted may come back; `memoird doctor --repair`"
            )]),
            None => CheckOutcome::Passed("none yet".to_owned()),
        });
    };
    let mut findings = Vec::new();
    if let Some(copy) = copy
        && !found.bytes.starts_with(&copy)
    {
        findings.push(format!(
            "{path} was changed otherwise than by adding to it; `memoird doctor --repair` puts back what it held"
        ));
    }
    let decisions = &view.inventory.decisions;
    if !decisions.has_key() {
        findings.push(format!("{path} has lost its key, so what was deleted may come back"));
    }
    let lines: Vec<String> = decisions.unreadable().iter().map(usize::to_string).collect();
    if !lines.is_empty() {
        findings.push(format!("{path}: line {} cannot be read", lines.join(", ")));
    }
    Ok(CheckOutcome::from_findings(findings, || "can be read".to_owned()))
}

/// Finds the generated files whose bytes are not what their name says, each with what is wrong.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn damaged_files(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> Result<BTreeMap<String, Damage>, LineageError> {
    let layout = vault.layout();
    let inventory = &view.inventory;
    let recorded = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::documents)?;
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let mut paths: BTreeSet<String> = summaries.map(|it| it.path.clone()).collect();
    paths.extend(recorded.keys().cloned());
    paths.extend([layout.wisdom(), layout.index()]);
    let is_ours = |path: &str| {
        matches!(
            layout.kind_of(path),
            Some(FileKind::Weekly | FileKind::Monthly | FileKind::Wisdom | FileKind::Index)
        )
    };
    paths.extend(inventory.problems.iter().map(|it| it.path.clone()).filter(|it| is_ours(it)));
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let summary_hashes: HashMap<&str, ContentHash> =
        summaries.map(|it| (&it.path[..], it.hash)).collect();
    let mut found = BTreeMap::new();
    for path in paths {
        // Read by the scan a moment ago, so not again.
        let scanned = summary_hashes.get(&path[..]).copied();
        if scanned.is_some() && scanned == recorded.get(&path).map(|(_, hash)| *hash) {
            continue;
        }
        // What is no regular file is told by the check of names.
        let Ok(Some(file)) = vault.read(&path) else { continue };
        let known = recorded.get(&path).map(|(_, hash)| *hash);
        if known == Some(ContentHash::of(&file.bytes)) {
            // What is harmed may have been recorded as it is; what never was otherwise is meant.
            let harmed = byte_damage(&file.bytes);
            let sound = |it| last_undamaged(it, &path).map(|it| it.is_some());
            if harmed.is_some() && lineage.map_or(Ok(false), sound)? {
                found.extend(harmed.map(|it| (path, it)));
            }
            continue;
        }
        let bytes_of = |hash| lineage.and_then(|it| it.content(hash).ok().flatten());
        let is_index = path == layout.index();
        let in_form = || {
            let text = String::from_utf8_lossy(&file.bytes);
            is_index || records::of_path(layout, &path, &text).is_some()
        };
        let wrong = if let Some(torn) = byte_damage(&file.bytes) {
            Some(torn)
        } else if known.and_then(bytes_of).is_some_and(|it| is_truncated(&file.bytes, &it)) {
            Some(Damage::Truncated)
        } else if let Some(odd) = known.and_then(bytes_of).and_then(|before| {
            let [now, before] =
                [&file.bytes, &before].map(|it| String::from_utf8_lossy(it).into_owned());
            suspected_damage(layout, &path, &now, &before)
        }) {
            Some(odd)
        } else if known.is_some() && !in_form()
            || inventory.problems.iter().any(|it| it.path == path)
        {
            Some(Damage::Malformed)
        } else {
            None
        };
        found.extend(wrong.map(|it| (path, it)));
    }
    Ok(found)
}

/// Returns the newest bytes of a file that stand in the history and are not torn.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn last_undamaged(lineage: &Lineage, path: &str) -> Result<Option<ContentHash>, LineageError> {
    // What was recorded last is the newest version that somebody looked at.
    let recorded = lineage.document_hash(path)?;
    let mut hashes: Vec<ContentHash> = recorded.into_iter().collect();
    let versions = lineage.versions_of(path)?;
    hashes.extend(versions.iter().rev().filter_map(|it| it.hash));
    for hash in hashes {
        let Some(bytes) = lineage.content(hash)? else { continue };
        if byte_damage(&bytes).is_none() {
            return Ok(Some(hash));
        }
    }
    Ok(None)
}

/// Says whether something a person wants forgotten still waits to be taken out.
pub fn unfinished_forget(vault: &Vault) -> Option<String> {
    let path = vault.layout().forget_state();
    let text = match vault.read_text(&path) {
        Ok(text) => text?,
        Err(error) => return Some(error.to_string()),
    };
    // The wish itself holds the words, so it is not shown.
    let Ok(pending) = serde_json::from_str::<serde_json::Value>(&text) else {
        return Some(format!("{path} cannot be read; do the same `memoird forget` again"));
    };
    if pending.get("Remove").is_some() {
        return Some("forgetting is not finished; `memoird compact` finishes it".to_owned());
    }
    let is_left = pending["Refold"]["vacuum"] == true;
    is_left.then(|| {
        "the database may still hold what was forgotten; `memoird compact` writes it anew"
            .to_owned()
    })
}

/// Says whether a run is taken back only in part.
///
/// # Errors
///
/// Returns why the database could not be read.
pub fn unfinished_undo(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<Option<String>, LineageError> {
    let begun = lineage.map(|it| resume::unfinished(vault, it)).transpose()?.flatten();
    let run = begun.and_then(|it| it.run);
    Ok(run.map(|it| {
        format!(
            "taking back run {it} was begun and is not finished; `memoird undo` goes on with it, and so does the next run"
        )
    }))
}

/// Says which generated files are torn.
pub fn files(torn: &BTreeMap<String, Damage>) -> CheckOutcome {
    let findings = torn.iter().map(|(path, torn)| format!("{path} {torn}"));
    CheckOutcome::from_findings(findings.collect(), || "none is torn".to_owned())
}

/// Compares what is recorded with what stands there.
///
/// # Errors
///
/// Returns why it could not be told.
pub fn document_records(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
    documents: &BTreeMap<String, DocumentRecord>,
) -> CheckResult {
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::documents)?;
    let missing = lineage.map(|it| vanished_files::find_vanished(vault, it)).transpose()?.flatten();
    let mut findings: Vec<String> = missing
        .iter()
        .map(|it| {
            format!("{it}; nothing is written until they are back, or `memoird compact --accept-missing`")
        })
        .collect();
    let mut edited = Vec::new();
    for (path, (kind, hash)) in &known {
        match documents.get(path) {
            Some(document) if document.hash == *hash => {
                let items = lineage.map(|it| it.items_of(path)).transpose()?;
                if items.is_some_and(|it| it != document.items) {
                    findings.push(format!("{path} is recorded wrongly; `memoird rebuild`"));
                }
            }
            Some(_) => edited.push(path.as_str()),
            None if vault.read(path).is_ok_and(|it| it.is_some()) => {
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
    let ours = |it: &&DocumentRecord| it.items.iter().any(|it| it.citation.is_some());
    let missing: Vec<&str> = documents
        .values()
        .filter(|it| !known.contains_key(&it.path))
        .filter(ours)
        .map(|it| &it.path[..])
        .collect();
    if !missing.is_empty() {
        let few = missing[..missing.len().min(3)].join(", ");
        findings
            .push(format!("{} files are not recorded ({few}); `memoird rebuild`", missing.len()));
    }
    findings.extend(misrecorded_logs(vault, view, lineage)?);
    Ok(CheckOutcome::from_findings(findings, || match edited.len() {
        0 => format!("{} files as recorded", known.len()),
        _ => format!("{} files; edited since: {}", known.len(), edited.join(", ")),
    }))
}

/// Compares the lines of logs that did not change with those on record.
fn misrecorded_logs(
    vault: &Vault,
    view: &RootSnapshot,
    lineage: Option<&Lineage>,
) -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
    let known = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::logs)?;
    let mut findings = Vec::new();
    for (stem, file) in &view.inventory.logs {
        let Some(old) = known.get(stem) else { continue };
        let Some(log) = vault.read_log(stem)? else { continue };
        // Hashes are of the raw lines, whatever may be seen of them.
        let served = privacy::sanitize(&log, &privacy::PrivacyRules::default());
        let now = LogRecord::of(&served, file.path.clone());
        let same = (now.first_line, &now.line_hashes) == (old.first_line, &old.line_hashes);
        if now.hash == old.hash && !same {
            findings.push(format!("{} is recorded wrongly; `memoird rebuild`", file.path));
        }
        if now.hash != file.hash {
            findings.push(format!("{} has other bytes than when it was scanned", file.path));
        }
    }
    Ok(findings)
}

/// Compares the last receipts, which are `told`, with the files: what was written stands there, or the
/// history says what became of it. A file that is as it should be in what was `seen` is not read again.
///
/// # Errors
///
/// Returns why it could not be told.
pub fn receipts(
    vault: &Vault,
    lineage: Option<&Lineage>,
    told: &[JobRow],
    seen: Option<&Inventory>,
) -> CheckResult {
    let Some(lineage) = lineage else { return Ok(CheckOutcome::Passed("none yet".to_owned())) };
    // Asked for only where a file is not as it was made.
    let mut latest: Option<HashMap<String, VersionRow>> = None;
    let mut findings = Vec::new();
    let mut written = 0;
    let mut silent = 0;
    let seen = seen.map(summary_hashes).unwrap_or_default();
    for job in told {
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
            if seen.get(&path[..]) == Some(&hash) {
                continue;
            }
            let latest = match &mut latest {
                Some(known) => known,
                none => {
                    let rows = lineage.latest_versions()?.into_iter();
                    none.insert(rows.map(|it| (it.path.clone(), it)).collect())
                }
            };
            // A later run or an edit that was noticed has replaced it.
            if latest.get(&path).is_some_and(|it| it.hash != Some(hash)) {
                continue;
            }
            match vault.read(&path) {
                Ok(Some(found)) if ContentHash::of(&found.bytes) == hash => {}
                Ok(Some(found)) => {
                    if let Some(torn) = byte_damage(&found.bytes) {
                        findings.push(format!(
                            "run {} wrote {path}, which now {}; `memoird doctor --repair`",
                            job.run,
                            torn.description()
                        ));
                    }
                }
                // The check of records tells it.
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
        findings.push(format!("{silent} receipts do not say why nothing was written"));
    }
    Ok(CheckOutcome::from_findings(findings, || format!("{written} say written, and it is")))
}

/// Returns the hashes of the generated files that a scan has read.
fn summary_hashes(inventory: &Inventory) -> HashMap<&str, ContentHash> {
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    summaries.map(|it| (&it.path[..], it.hash)).collect()
}

/// Looks up every line that an item cites. Of a log that has vanished it can no longer be told.
///
/// # Errors
///
/// Returns why it could not be told.
pub fn citations(vault: &Vault, documents: &BTreeMap<String, DocumentRecord>) -> CheckResult {
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
            0 => format!("{lines} cited lines are there"),
            _ => format!("{lines} cited lines; source gone: {}", gone.join(", ")),
        }
    }))
}

/// Returns, by file, the citations that lead nowhere: the log is there and never had such a line.
///
/// # Errors
///
/// Returns why a log could not be read.
pub fn dangling_citations(
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
                // A log that has vanished is told as such; one that nobody ever saw is not there.
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

/// Returns the number of the last line of a log that says anything; `None` when the log is gone.
fn last_line(vault: &Vault, stem: &Stem) -> Result<Option<u32>, VaultError> {
    let log = vault.read_log(stem)?;
    Ok(log.map(|log| {
        let lines = log.lines();
        lines.iter().rfind(|it| !it.1.trim().is_empty()).map_or(0, |it| it.0)
    }))
}

/// Looks for what belongs to nothing: sources that a file names and nobody has, files in the
/// private folder that are none of ours, and copies that repairs left.
pub fn orphans(vault: &Vault, view: &RootSnapshot) -> CheckOutcome {
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
        notes.push(format!(".memoird holds files of somebody else: {}", strange.join(", ")));
    }
    if notes.is_empty() {
        CheckOutcome::Passed("none".to_owned())
    } else {
        CheckOutcome::Warning(notes.join("\n"))
    }
}

/// Returns whether the source that a head names is there, as a log or as a file below.
fn source_exists(vault: &Vault, name: &str) -> bool {
    let layout = vault.layout();
    if let Ok(period) = name.parse::<crate::memory::period::Period>()
        && vault.exists(&layout.summary(period))
    {
        return true;
    }
    name.parse::<Stem>().is_ok_and(|stem| vault.read_log(&stem).is_ok_and(|it| it.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn torn_bytes_are_told_from_words() {
        assert_eq!(byte_damage(b""), Some(Damage::Empty));
        assert_eq!(byte_damage(b" \n\n"), Some(Damage::Empty));
        assert_eq!(byte_damage(b"# Week\0\0\0"), Some(Damage::NulBytes));
        assert_eq!(byte_damage(b"caf\xe9"), Some(Damage::NotUtf8));
        assert_eq!(byte_damage("# Woche – gut\n".as_bytes()), None);
    }

    #[test]
    fn a_file_that_ends_with_a_line_was_shortened_by_a_person() {
        let before = b"- one [2026-04-02:1]\n- two [2026-04-02:2]\n";
        assert!(is_truncated(b"- one [2026-04-02:1]\n- tw", before));
        assert!(!is_truncated(b"- one [2026-04-02:1]\n", before));
        assert!(!is_truncated(b"- one, in other words", before));
        assert!(!is_truncated(before, before));
        let before = b"---\nperiod: x\nitems: y\n---\n- one\n- two\n";
        assert!(is_truncated(b"---\nperiod: x\n", before));
        assert!(!is_truncated(b"---\nperiod: x\nitems: y\n---\n- one", before));
    }
}
