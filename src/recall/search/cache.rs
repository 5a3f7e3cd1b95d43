//! What one search found out, for the next one in the same process.
//!
//! Where the files stand, which of them the index has, and what was unpacked of it stay as they are while
//! nothing changes. Each search asks whether that is so: the system, of the files ([`ChangeMonitor`]); the index
//! itself, of who wrote to it meanwhile; and the rules by which it is seen. Between two searches nobody who
//! writes is held up.

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

/// Where what was found out is put, root by root. Who searches takes it away meanwhile; another who comes
/// then finds out for himself.
#[derive(Debug, Default)]
pub struct SearchCache(Mutex<HashMap<PathBuf, CachedRoot>>);

/// What is known of a root.
struct CachedRoot {
    source: SearchSource,
    inventory: Inventory,
    changes: ChangeMonitor,
    /// By which rules it is seen.
    policy_hash: ContentHash,
}

impl std::fmt::Debug for CachedRoot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warm").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl SearchCache {
    /// Looks through all that stands in a root, as [`super::find`] does.
    ///
    /// # Errors
    ///
    /// Like [`super::find`].
    pub fn find(
        &self,
        vault: &Vault,
        query: &Query,
        how: SearchOptions,
        embedder: Option<&dyn EmbeddingModel>,
    ) -> Result<SearchResults, VaultError> {
        let root = vault.layout().root();
        let warm = self.take(root).filter(|it| it.policy_hash == vault.rules().policy_hash());
        let warm =
            warm.and_then(|mut it| (it.changes.is_unchanged() && it.source.resume()).then_some(it));
        let (found, source, inventory, changes) = if let Some(warm) = warm {
            let CachedRoot { source, inventory, changes, .. } = warm;
            let asked = PreparedSearch::new(vault, query, how, embedder);
            (asked.run(&source, &inventory)?, source, inventory, Some(changes))
        } else {
            // Before the look: what comes between the two is looked at once more.
            let changes = ChangeMonitor::watch(vault.layout());
            let left = || SearchSource::open_existing(vault).map(SearchSource::with_line_cache);
            let (found, source, inventory) =
                super::find_speculatively(vault, query, how, embedder, &left)?;
            (found, source.with_line_cache(), inventory, changes)
        };
        if let Some(changes) = changes.filter(|_| source.pause()) {
            let warm =
                CachedRoot { source, inventory, changes, policy_hash: vault.rules().policy_hash() };
            self.put(root.to_owned(), warm);
        }
        Ok(found)
    }

    fn take(&self, root: &Path) -> Option<CachedRoot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(root)
    }

    fn put(&self, root: PathBuf, warm: CachedRoot) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(root, warm);
    }
}
