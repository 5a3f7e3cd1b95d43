//! What a root knows about a store: the last common state, in `.memoird/bundle-HASH.json`, one file per address.
//!
//! It is private and complete or absent after a crash. Without it nothing is lost: a push asks for a pull first, which
//! compares all contents, and what differs is a conflict.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    error::BundleError,
    manifest::{Manifest, parse_hash},
    merge::FileChange,
    storage::ObjectVersion,
};
use crate::{
    memory::hash::ContentHash,
    store::fs::{layout::PRIVATE_DIR, lock::StoreNotesLock, vault::Vault},
};

/// The prefix of all private files of this module.
const PREFIX: &str = "bundle-";
const ENDING: &str = ".json";
/// The pull that is being applied.
pub(super) const INCOMING: &str = ".memoird/bundle-incoming.json";
/// The prefix of objects that were fetched for it.
pub(super) const OBJECT_PREFIX: &str = "bundle-object-";

/// What a root knows about one store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BundleState {
    pub(crate) url: String,
    /// The id of the root; `None` before the first push or pull.
    pub(crate) root: Option<String>,
    /// The id that the first push chose before it published anything: after a lost reply it shows that what is in the
    /// store is from here.
    #[serde(default)]
    pub(crate) reserved_root: Option<String>,
    /// Identifies the bundle; `None` if the store does not show it.
    #[serde(default)]
    pub(crate) bundle: Option<String>,
    /// The newest generation that was published or brought.
    pub(crate) generation: u64,
    /// The count of removals of forgotten words in the newest manifest of which this root has everything.
    pub(crate) forgets: u64,
    /// Whether the store passed the test of conditional writes.
    #[serde(default)]
    pub(crate) passed_races: bool,
    /// Whether the user answers for former versions that the store keeps.
    #[serde(default)]
    pub(crate) accepts_versions: bool,
    /// Whether words were forgotten here that the store may still hold.
    #[serde(default)]
    pub(crate) must_remove: bool,
    /// How often words were forgotten here: a push clears only the mark of a removal that it knew of when it began.
    #[serde(default)]
    pub(crate) forgotten_here: u64,
    /// The manifest whose files are exactly those of `base`.
    #[serde(default)]
    pub(crate) version: Option<ObjectVersion>,
    /// The last common state: the hash of each file by path.
    pub(crate) base: BTreeMap<String, String>,
    /// Conflicts whose other version was saved here.
    #[serde(default)]
    pub(crate) conflicts: BTreeMap<String, SavedConflict>,
}

/// The other version of a file in conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedConflict {
    /// Its hash; `None` if the file was removed from the store.
    pub(crate) theirs: Option<String>,
    /// The path of the copy, relative to the root.
    pub(crate) copy: Option<String>,
}

impl BundleState {
    /// Reads the state of one store; a new one has the root's id if the root is in another store.
    pub(crate) fn load(vault: &Vault, url: &str) -> Result<Self, BundleError> {
        let path = path_of(url);
        if let Some(state) = read(vault, &path)? {
            return Ok(state);
        }
        let root = Self::load_all(vault)?.into_iter().find_map(|it| it.root);
        Ok(Self { url: url.to_owned(), root, ..Self::default() })
    }

    /// Reads the states of all stores that this root was published to or brought from.
    pub(crate) fn load_all(vault: &Vault) -> Result<Vec<Self>, BundleError> {
        let mut states = Vec::new();
        for path in private_files(vault, PREFIX) {
            let is_state = path.strip_suffix(ENDING).is_some() && path != INCOMING;
            states.extend(if is_state { read(vault, &path)? } else { None });
        }
        Ok(states)
    }

    /// Writes the state. What was forgotten since it was read stays marked.
    pub(crate) fn save(&self, vault: &Vault) -> Result<(), BundleError> {
        let _lock = lock(vault)?;
        match read(vault, &self.path())? {
            Some(Self { forgotten_here, .. }) if forgotten_here > self.forgotten_here => {
                Self { must_remove: true, forgotten_here, ..self.clone() }.write(vault)
            }
            _ => self.write(vault),
        }
    }

    /// Marks that words were forgotten here that the store may still hold, and returns the state.
    pub(crate) fn mark_forgotten(vault: &Vault, url: &str) -> Result<Self, BundleError> {
        let _lock = lock(vault)?;
        let mut state = Self::load(vault, url)?;
        state.must_remove = true;
        state.forgotten_here += 1;
        state.write(vault)?;
        Ok(state)
    }

    fn write(&self, vault: &Vault) -> Result<(), BundleError> {
        let text = serde_json::to_string(self).expect("strings and numbers can always be written");
        Ok(vault.write_private(&self.path(), &text)?)
    }

    /// Returns the last common state.
    pub(crate) fn base_hashes(&self) -> BTreeMap<String, ContentHash> {
        let hashes = self.base.iter();
        hashes.filter_map(|(path, it)| Some((path.clone(), parse_hash(it)?))).collect()
    }

    /// Records that a file is the same here and in a manifest.
    pub(super) fn agree(&mut self, path: &str, manifest: &Manifest) {
        self.conflicts.remove(path);
        match manifest.files.get(path) {
            Some(file) => drop(self.base.insert(path.to_owned(), file.hash.clone())),
            None => drop(self.base.remove(path)),
        }
    }

    /// Records a manifest, after the files that agree with it.
    pub(super) fn record(&mut self, manifest: &Manifest, version: ObjectVersion) {
        self.root = Some(manifest.root.clone());
        self.reserved_root = None;
        self.bundle.clone_from(&manifest.bundle);
        self.generation = manifest.generation;
        let is_same = manifest.files.len() == self.base.len()
            && manifest.files.iter().all(|(path, it)| self.base.get(path) == Some(&it.hash));
        self.version = is_same.then_some(version);
        if is_same {
            self.forgets = self.forgets.max(manifest.forgets);
        }
    }

    /// Returns the path of the state, relative to the root.
    pub(super) fn path(&self) -> String {
        path_of(&self.url)
    }
}

fn lock(vault: &Vault) -> Result<StoreNotesLock, BundleError> {
    vault.create_private_dir()?;
    Ok(StoreNotesLock::acquire(vault.layout())?)
}

fn path_of(url: &str) -> String {
    format!("{PRIVATE_DIR}/{PREFIX}{}{ENDING}", ContentHash::of(url).hex16())
}

/// Returns whether a change waits for this root to bring what others published.
pub(crate) fn is_incoming(change: FileChange) -> bool {
    matches!(change, FileChange::WrittenThere | FileChange::RemovedThere)
}

/// Lists the private files whose names begin with `prefix`, relative to the root.
pub(super) fn private_files(vault: &Vault, prefix: &str) -> Vec<String> {
    let names = vault.open_folder("read", PRIVATE_DIR).ok().and_then(|it| it.names().ok());
    let names = names.into_iter().flatten().flatten().filter(|it| it.starts_with(prefix));
    let mut paths: Vec<String> = names.map(|it| format!("{PRIVATE_DIR}/{it}")).collect();
    paths.sort_unstable();
    paths
}

fn read(vault: &Vault, path: &str) -> Result<Option<BundleState>, BundleError> {
    let Some(text) = vault.read_text(path)? else { return Ok(None) };
    let bad = |e: serde_json::Error| BundleError::BadState {
        path: path.to_owned(),
        reason: e.to_string(),
    };
    serde_json::from_str(&text).map(Some).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fs::layout::Layout;

    #[test]
    fn a_push_clears_only_the_removal_that_it_knew_of() {
        let dir = tempfile::tempdir().unwrap();
        let vault = Vault::new(Layout::new(dir.path(), "memory"));
        let url = "file:///srv/lex";
        let load = || BundleState::load(&vault, url).unwrap();
        let before = load();
        before.save(&vault).unwrap();
        BundleState::mark_forgotten(&vault, url).unwrap();
        // A push that began earlier.
        before.save(&vault).unwrap();
        assert!(load().must_remove);
        let mut removed = load();
        removed.must_remove = false;
        BundleState::mark_forgotten(&vault, url).unwrap();
        removed.save(&vault).unwrap();
        assert!(load().must_remove);
        let mut removed = load();
        removed.must_remove = false;
        removed.save(&vault).unwrap();
        assert!(!load().must_remove);
    }
}
