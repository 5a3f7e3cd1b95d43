//! Finds damaged generated files, and the last version of a file that is not damaged.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::compaction::{
    journal::records,
    plan::damage::{Damage, byte_damage, is_truncated, suspected_damage},
    snapshot::RootSnapshot,
};
use crate::{
    memory::hash::ContentHash,
    store::{
        db::lineage::{Lineage, LineageError},
        fs::{
            layout::{FileKind, visible_bytes},
            vault::Vault,
        },
    },
};

/// Finds the damaged generated files.
pub(crate) fn damaged_files(
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
        // The scan has just read it, so it is not read again.
        let scanned = summary_hashes.get(&path[..]).copied();
        if scanned.is_some() && scanned == recorded.get(&path).map(|(_, hash)| *hash) {
            continue;
        }
        if inventory.merge_conflicts().any(|it| it.path == path) {
            found.insert(path, Damage::MergeConflict);
            continue;
        }
        // The check of names reports what is not a regular file.
        let Ok(Some(file)) = vault.read(&path) else { continue };
        let shown = visible_bytes(&path, &file.bytes);
        let recorded_hash = recorded.get(&path).map(|(_, hash)| *hash);
        if recorded_hash == Some(ContentHash::of(&file.bytes)) {
            // Damaged bytes may have been recorded; they are intended only if the file never had
            // others.
            let damage = byte_damage(shown);
            let sound = |it| last_undamaged(it, &path).map(|it| it.is_some());
            if damage.is_some() && lineage.map_or(Ok(false), sound)? {
                found.extend(damage.map(|it| (path, it)));
            }
            continue;
        }
        let bytes_of = |hash| lineage.and_then(|it| it.content(hash).ok().flatten());
        let is_index = path == layout.index();
        let in_form = || {
            let text = String::from_utf8_lossy(&file.bytes);
            is_index || records::of_path(layout, &path, &text).is_some()
        };
        let wrong = if let Some(kind) = byte_damage(shown) {
            Some(kind)
        } else if recorded_hash
            .and_then(bytes_of)
            .is_some_and(|it| is_truncated(shown, visible_bytes(&path, &it)))
        {
            Some(Damage::Truncated)
        } else if let Some(odd) = recorded_hash.and_then(bytes_of).and_then(|before| {
            let [now, before] =
                [&file.bytes, &before].map(|it| String::from_utf8_lossy(it).into_owned());
            suspected_damage(layout, &path, &now, &before)
        }) {
            Some(odd)
        } else if recorded_hash.is_some() && !in_form()
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

/// Returns the newest undamaged content of a file in the history.
pub(crate) fn last_undamaged(
    lineage: &Lineage,
    path: &str,
) -> Result<Option<ContentHash>, LineageError> {
    // The recorded content is the newest that was checked.
    let recorded = lineage.document_hash(path)?;
    let mut hashes: Vec<ContentHash> = recorded.into_iter().collect();
    let versions = lineage.versions_of(path)?;
    hashes.extend(versions.iter().rev().filter_map(|it| it.hash));
    for hash in hashes {
        let Some(bytes) = lineage.content(hash)? else { continue };
        if byte_damage(visible_bytes(path, &bytes)).is_none() {
            return Ok(Some(hash));
        }
    }
    Ok(None)
}
