//! What one search found out, for the next one in the same process.
//!
//! Where the files stand, which of them the index has, and what was unpacked of it stay as they are while
//! nothing changes. Each search asks whether that is so: the system, of the files ([`Changes`]); the index
//! itself, of who wrote to it meanwhile; and the rules by which it is seen. Between two searches nobody who
//! writes is held up.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use super::{Found, How, Query, Searching, source::Source};
use crate::{
    memory::hash::ContentHash,
    model::embedding::Embed,
    store::{
        changes::Changes,
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
};

/// Where what was found out is put, root by root. Who searches takes it away meanwhile; another who comes
/// then finds out for himself.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<HashMap<PathBuf, Warm>>);

/// What is known of a root.
struct Warm {
    source: Source,
    inventory: Inventory,
    changes: Changes,
    /// By which rules it is seen.
    view: ContentHash,
}

impl std::fmt::Debug for Warm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Warm").field("changes", &self.changes).finish_non_exhaustive()
    }
}

impl Shelf {
    /// Looks through all that stands in a root, as [`super::find`] does.
    ///
    /// # Errors
    ///
    /// Like [`super::find`].
    pub fn find(
        &self,
        vault: &Vault,
        query: &Query,
        how: How,
        embedder: Option<&dyn Embed>,
    ) -> Result<Found, VaultError> {
        let root = vault.layout().root();
        let warm = self.take(root).filter(|it| it.view == vault.rules().policy_hash());
        let warm =
            warm.and_then(|mut it| (it.changes.is_still() && it.source.resume()).then_some(it));
        let (found, source, inventory, changes) = if let Some(warm) = warm {
            let Warm { source, inventory, changes, .. } = warm;
            let asked = Searching::new(vault, query, how, embedder);
            (asked.found(&source, &inventory)?, source, inventory, Some(changes))
        } else {
            // Before the look: what comes between the two is looked at once more.
            let changes = Changes::watch(vault.layout());
            let left = || Source::as_left(vault).map(Source::keeping_lines);
            let (found, source, inventory) = super::find_first(vault, query, how, embedder, &left)?;
            (found, source.keeping_lines(), inventory, changes)
        };
        if let Some(changes) = changes.filter(|_| source.pause()) {
            let warm = Warm { source, inventory, changes, view: vault.rules().policy_hash() };
            self.put(root.to_owned(), warm);
        }
        Ok(found)
    }

    fn take(&self, root: &Path) -> Option<Warm> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(root)
    }

    fn put(&self, root: PathBuf, warm: Warm) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(root, warm);
    }
}
