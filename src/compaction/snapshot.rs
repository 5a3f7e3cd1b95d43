//! Reads the files and the record of a root at one moment, for the plan.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::PathBuf,
};

use chrono::{DateTime, Duration, Utc};

use super::{
    error::CompactionError,
    plan::{
        self, CompactionPlan, PlanSettings, RecordedState, Selection,
        damage::{Damage, byte_damage, is_truncated, suspected_damage},
    },
};
use crate::{
    config::{duration::Span, root::RootSettings},
    memory::{
        address::Address,
        frontmatter,
        hash::{self, ContentHash},
        item::Tier,
        joined,
        period::{Grain, Period},
        typed::TypedMemory,
        wisdom::{WisdomFile, is_in_our_form},
    },
    store::{
        db::lineage::{
            Lineage, LineageError,
            jobs::{JobOutcome, JobRow},
            record::ScannedFile,
            review::QuarantineScope,
        },
        fs::{
            inventory::{FileStat, Inventory},
            layout::{FileKind, visible_bytes},
            vault::{Vault, VaultError, scan::KnownFile},
        },
    },
};

/// The files and the record at one moment.
#[derive(Debug)]
pub(crate) struct RootSnapshot {
    pub inventory: Inventory,
    /// What the database records besides them.
    pub record: RecordedState,
}

impl RootSnapshot {
    /// Returns an error if a person must first say whether a `concerned` file is damaged: to go on
    /// would treat its missing items as deleted.
    pub(crate) fn refuse_damaged(
        &self,
        concerned: impl Fn(&str) -> bool,
    ) -> Result<(), CompactionError> {
        match self.record.damaged.iter().find(|(path, _)| concerned(path)) {
            Some((path, why)) => Err(CompactionError::Damaged { path: path.clone(), why: *why }),
            None => Ok(()),
        }
    }
}

/// Reads the files and the record without caching hashes, for commands that only show.
pub(crate) fn read_snapshot(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<RootSnapshot, CompactionError> {
    read_snapshot_with_receipts(vault, lineage).map(|it| it.0)
}

/// Like [`read_snapshot`], with the last receipt of each period and tier.
pub(crate) fn read_snapshot_with_receipts(
    vault: &Vault,
    lineage: Option<&Lineage>,
) -> Result<(RootSnapshot, Vec<JobRow>), CompactionError> {
    let known = lineage.map_or_else(|| Ok(HashMap::new()), known_files)?;
    snapshot_of(vault, lineage, vault.scan(&known)?.inventory)
}

/// Plans what is due for an engine with this id.
pub(crate) fn plan_snapshot(
    view: &RootSnapshot,
    settings: &RootSettings,
    engine: &str,
    selection: &Selection,
    now: DateTime<Utc>,
) -> CompactionPlan {
    let compaction = &settings.settings.compaction;
    let span = |it: Span| Duration::from_std(it.as_duration()).unwrap_or(Duration::MAX);
    let settings = PlanSettings {
        zone: settings.zone.name.0,
        grace: span(compaction.grace),
        quiet: span(compaction.quiet),
        extract: compaction.extract,
        digest: settings.settings.wisdom.has_digest(),
        engine: engine.to_owned(),
    };
    plan::plan(&view.inventory, &view.record, &settings, selection, now)
}

/// Returns the files of the last scan, by path.
pub(crate) fn known_files(lineage: &Lineage) -> Result<HashMap<String, KnownFile>, LineageError> {
    let cached = lineage.scanned_files()?;
    let seen = cached.into_iter().filter_map(|(path, it)| {
        let stamp = FileStat { inode: it.inode, size: it.size, mtime_ns: it.mtime_ns };
        Some((path.to_str()?.to_owned(), KnownFile { stamp, hash: it.hash }))
    });
    Ok(seen.collect())
}

/// Collects what the plan needs from the database, if there is one, and from `WISDOM.md`.
pub(crate) fn recorded_state(
    lineage: Option<&Lineage>,
    receipts: &[JobRow],
    inventory: &Inventory,
) -> Result<RecordedState, LineageError> {
    let extracted = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::extracted_logs)?;
    let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
    let mut distilled: BTreeMap<_, _> =
        wisdom.iter().flat_map(WisdomFile::distilled).map(|&month| (month, None)).collect();
    let stale_wisdom = match (lineage, &wisdom) {
        (Some(lineage), Some(wisdom)) => stale_wisdom_months(lineage, inventory, wisdom)?,
        _ => Vec::new(),
    };
    let mut skipped = BTreeSet::new();
    let mut digested = BTreeSet::new();
    let mut stuck = BTreeMap::new();
    for job in receipts {
        let Some(receipt) = &job.receipt else { continue };
        match receipt.outcome {
            JobOutcome::Stuck => {
                stuck.insert(job.fingerprint, receipt.reason.clone().unwrap_or_default());
            }
            JobOutcome::Skipped => {
                skipped.insert(job.fingerprint);
            }
            // Its earlier text is unknown, so it is unknown whether `WISDOM.md` was made from this
            // one.
            JobOutcome::Written if job.tier == Tier::Monthly => {
                if let Some(slot @ None) = distilled.get_mut(&job.period) {
                    *slot = Some(String::new());
                }
            }
            JobOutcome::Written | JobOutcome::Unchanged
                if job.tier == Tier::Wisdom && job.period.grain() == Grain::Day =>
            {
                digested.insert(job.fingerprint);
            }
            // The fingerprint of a wisdom job shows which text of the month was distilled.
            JobOutcome::Written | JobOutcome::Unchanged if job.tier == Tier::Wisdom => {
                if let (Some(slot), Some(month)) =
                    (distilled.get_mut(&job.period), inventory.monthly.get(&job.period))
                {
                    let inputs = [(job.period.to_string(), month.body_hash.clone())].into();
                    let same =
                        plan::fingerprint(Tier::Wisdom, job.period, &inputs) == job.fingerprint;
                    *slot = Some(if same { month.body_hash.clone() } else { String::new() });
                }
            }
            _ => {}
        }
    }
    let extracted =
        extracted.into_iter().map(|(stem, hash)| (stem.to_string(), hash.hex16())).collect();
    let quarantined_logs = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::quarantined)?;
    let quarantined_logs =
        quarantined_logs.into_iter().filter(|(_, (what, _))| *what == QuarantineScope::Memory);
    let quarantined_logs = quarantined_logs.map(|(at, _)| at.stem.to_string()).collect();
    let extracted_by = lineage.map_or_else(|| Ok(BTreeMap::new()), Lineage::extraction_engines)?;
    let damaged = BTreeMap::new();
    Ok(RecordedState {
        extracted,
        extracted_by,
        quarantined_logs,
        distilled,
        digested,
        stale_wisdom,
        skipped,
        stuck,
        damaged,
    })
}

/// Finds the generated files that may be damaged and about which a person must decide.
fn files_to_confirm(
    vault: &Vault,
    inventory: &Inventory,
    lineage: &Lineage,
) -> Result<BTreeMap<String, Damage>, LineageError> {
    let layout = vault.layout();
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let mut there: BTreeMap<String, ContentHash> =
        summaries.map(|it| (it.path.clone(), it.hash)).collect();
    there.extend(inventory.wisdom.as_ref().map(|it| (layout.wisdom(), ContentHash::of(it))));
    // The next run records what we wrote just before a crash.
    let open = lineage.open_intents()?;
    let is_ours = |path: &str, hash: &ContentHash| {
        open.iter().any(|it| it.target == path && it.new_hash.as_ref() == Some(hash))
    };
    let mut found = BTreeMap::new();
    for (path, (_, recorded_hash)) in lineage.documents()? {
        if there.get(&path).is_none_or(|it| *it == recorded_hash || is_ours(&path, it)) {
            continue;
        }
        let Some(before) = lineage.content(recorded_hash)? else { continue };
        let Ok(Some(now)) = vault.read_text(&path) else { continue };
        let [shown, shown_before] = [now.as_bytes(), &before].map(|it| visible_bytes(&path, it));
        if byte_damage(shown).is_some() || is_truncated(shown, shown_before) {
            continue; // That is put back without a question.
        }
        if let Some(odd) = suspected_damage(layout, &path, &now, &String::from_utf8_lossy(&before))
        {
            found.insert(path, odd);
        }
    }
    Ok(found)
}

/// Returns the months with entries of ours that cite a changed line, with the logs.
///
/// The hashes in the file are compared with those in the database, so no log is read; a log that
/// changed since it was recorded is skipped.
pub(crate) fn stale_wisdom_months(
    lineage: &Lineage,
    inventory: &Inventory,
    wisdom: &WisdomFile,
) -> Result<Vec<(Period, String)>, LineageError> {
    let mut found = BTreeSet::new();
    let ours = wisdom.entries().filter(|it| it.is_managed()).filter_map(|it| it.meta.as_ref());
    let mut noted: Vec<(&Address, &String)> = ours.flat_map(|it| &it.lines).collect();
    noted.sort();
    for lines in noted.chunk_by(|a, b| a.0.stem == b.0.stem) {
        let Some(stem) = lines.first().map(|it| &it.0.stem) else { continue };
        let Some(file) = inventory.logs.get(stem) else { continue };
        let Some(log) = lineage.log(stem)?.filter(|it| it.hash == file.hash) else { continue };
        let reads = |line: u32| log.line_hash(line).map(hash::hex4_of);
        let month = Period::containing(Grain::Week, stem.date()).parent();
        if let Some(month) = month
            && lines.iter().any(|(at, hash)| reads(at.line).as_ref() != Some(*hash))
        {
            found.insert((month, stem.to_string()));
        }
    }
    Ok(found.into_iter().collect())
}

/// Reads the files and the record, and remembers the hashes of the logs that had to be read.
pub(crate) fn take_snapshot(
    vault: &Vault,
    lineage: &mut Lineage,
    now: DateTime<Utc>,
) -> Result<RootSnapshot, CompactionError> {
    let known = known_files(lineage)?;
    let scan = vault.scan(&known)?;
    cache_file_hashes(lineage, &scan.newly_read, &known, &scan.inventory, now)?;
    Ok(snapshot_of(vault, Some(lineage), scan.inventory)?.0)
}

/// Adds what the database records to an inventory.
fn snapshot_of(
    vault: &Vault,
    lineage: Option<&Lineage>,
    inventory: Inventory,
) -> Result<(RootSnapshot, Vec<JobRow>), CompactionError> {
    let receipts = lineage.map_or_else(|| Ok(Vec::new()), Lineage::last_receipts)?;
    let mut record = recorded_state(lineage, &receipts, &inventory)?;
    if let Some(lineage) = lineage {
        record.damaged = files_to_confirm(vault, &inventory, lineage)?;
    }
    let conflicts = inventory.merge_conflicts();
    record.damaged.extend(conflicts.map(|it| (it.path.clone(), Damage::MergeConflict)));
    Ok((RootSnapshot { inventory, record }, receipts))
}

/// Caches the hashes of logs that were read, except of those changed moments ago: a second change
/// within the same clock tick would go unnoticed.
fn cache_file_hashes(
    lineage: &mut Lineage,
    read: &[(String, KnownFile)],
    seen: &HashMap<String, KnownFile>,
    inventory: &Inventory,
    now: DateTime<Utc>,
) -> Result<(), LineageError> {
    let seen_ns = now.timestamp_nanos_opt().unwrap_or(0);
    let settled_ns = seen_ns.saturating_sub(Duration::seconds(2).num_nanoseconds().unwrap_or(0));
    let fresh: Vec<(PathBuf, ScannedFile)> = read
        .iter()
        .filter(|(_, it)| it.stamp.mtime_ns <= settled_ns)
        .map(|(path, KnownFile { stamp, hash })| {
            let FileStat { inode, size, mtime_ns } = *stamp;
            (path.into(), ScannedFile { inode, size, mtime_ns, hash: *hash, seen_ns })
        })
        .collect();
    let logs = inventory.logs.values().chain(inventory.late_logs.values());
    let there: HashSet<&str> = logs.map(|it| &it.path[..]).collect();
    let gone: Vec<PathBuf> =
        seen.keys().filter(|it| !there.contains(&it[..])).map(PathBuf::from).collect();
    if fresh.is_empty() && gone.is_empty() {
        return Ok(());
    }
    lineage.update_scanned_files(&fresh, &gone)
}

/// Returns the files under our names without a record whose record is lost, as the earlier database is, with their
/// text; for a database that is new. That is so if another file has one, or if one is in our form; else all are a
/// person's. So is a week or month without frontmatter.
pub(super) fn lost_files(
    vault: &Vault,
    view: &RootSnapshot,
) -> Result<Vec<(String, String)>, VaultError> {
    let inventory = &view.inventory;
    let mut summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let cites = |it: &TypedMemory| it.statements().iter().any(|it| it.item.citation.is_some());
    let mut is_ours = summaries.any(|it| it.header.is_some())
        || inventory.memories.iter().any(|it| it.recorded_body.is_some() || cites(it))
        || inventory.wisdom.as_ref().is_some_and(|it| has_record(it) || is_in_our_form(it));
    let mut lost = Vec::new();
    for path in paths_without_record(vault, view) {
        let Some(text) = vault.read_text(&path)? else { continue };
        let kind = vault.layout().kind_of(&path);
        if matches!(kind, Some(FileKind::Weekly | FileKind::Monthly)) {
            // A run with `--force` may replace it.
            if frontmatter::split(&text).yaml.is_none() {
                continue;
            }
            is_ours = true;
        }
        lost.push((path, text));
    }
    Ok(if is_ours { lost } else { Vec::new() })
}

fn has_record(wisdom: &str) -> bool {
    joined::split(wisdom).1.is_some()
        || WisdomFile::parse(wisdom).entries().any(|it| it.meta.is_some())
}

/// Returns the files under our names without a record, the weeks before the months that cite them.
pub(super) fn paths_without_record(vault: &Vault, view: &RootSnapshot) -> Vec<String> {
    let layout = vault.layout();
    let inventory = &view.inventory;
    let summaries = inventory.weekly.values().chain(inventory.monthly.values());
    let summaries = summaries.filter(|it| it.header.is_none()).map(|it| it.path.clone());
    let memories = inventory.memories.iter().filter(|it| it.recorded_body.is_none());
    let memories = memories.map(|it| layout.typed_memory(&it.file_name.to_string_lossy()));
    let wisdom = inventory.wisdom.as_ref().filter(|it| !has_record(it)).map(|_| layout.wisdom());
    let paths = summaries.chain(memories).chain(wisdom);
    paths.filter(|it| !view.record.damaged.contains_key(it)).collect()
}
