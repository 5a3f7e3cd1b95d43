//! The state of a search, for the next one in the same process.
//!
//! File stamps, the index's file list, and unpacked lines stay valid while nothing changes. Each search
//! checks that: by the system's notifications ([`ChangeMonitor`]) for files, by the index's own version
//! for other writers, and by the privacy rules. Between two searches no lock is held.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{PreparedSearch, Query, SearchOptions, SearchResults, index::source::SearchSource};
use crate::{
    memory::hash::ContentHash,
    model::embedding::EmbeddingModel,
    store::fs::{
        change_monitor::ChangeMonitor,
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
};

/// The state of each root. A search takes it out; a concurrent search starts without it.
#[derive(Debug, Default)]
pub struct SearchCache(Mutex<HashMap<PathBuf, CachedRoot>>);

/// The state of one root.
struct CachedRoot {
    source: SearchSource,
    inventory: Inventory,
    changes: ChangeMonitor,
    /// The privacy rules that it was sanitized with.
    policy_hash: ContentHash,
}

impl std::fmt::Debug for CachedRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warm").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl SearchCache {
    /// Searches a root, as [`super::find`] does.
    ///
    /// # Errors
    ///
    /// Like [`super::find`].
    pub fn find(
        &self,
        vault: &Vault,
        query: &Query,
        options: SearchOptions,
        embedder: Option<&dyn EmbeddingModel>,
    ) -> Result<SearchResults, VaultError> {
        let root = vault.layout().root();
        let cached = self.take(root).filter(|it| it.policy_hash == vault.rules().policy_hash());
        let cached = cached
            .and_then(|mut it| (it.changes.is_unchanged() && it.source.resume()).then_some(it));
        let (results, source, inventory, changes) = if let Some(cached) = cached {
            let CachedRoot { source, inventory, changes, .. } = cached;
            let search = PreparedSearch::new(vault, query, options, embedder);
            (search.run(&source, &inventory)?, source, inventory, Some(changes))
        } else {
            // Before the scan: a change between the two causes another scan.
            let changes = ChangeMonitor::watch(vault.layout());
            let previous = || SearchSource::open_existing(vault).map(SearchSource::with_line_cache);
            let (results, source, inventory) =
                super::find_speculatively(vault, query, options, embedder, &previous)?;
            (results, source.with_line_cache(), inventory, changes)
        };
        if let Some(changes) = changes.filter(|_| source.pause()) {
            let cached =
                CachedRoot { source, inventory, changes, policy_hash: vault.rules().policy_hash() };
            self.put(root.to_owned(), cached);
        }
        Ok(results)
    }

    fn take(&self, root: &Path) -> Option<CachedRoot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(root)
    }

    fn put(&self, root: PathBuf, cached: CachedRoot) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(root, cached);
    }
}
