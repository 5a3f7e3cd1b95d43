//! When the roots of a store are due, without a claims database: one small object per root at `due/TENANT/ROOT`.
//!
//! A push and a worker write it, and one lister reads all of them (`memoird worker --list-due`). It is a hint: a note that is
//! missing or old costs a run that finds nothing to do, or a later one.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    error::BundleError,
    manifest,
    root_name::RootName,
    storage::{self, FetchedObject, StorageError, StorageErrorKind, normalized_url},
};

/// The folder of the notes, below the store.
const FOLDER: &str = "due";
const NOTE_BYTES_MAX: u64 = 4096;
/// How often a note is written again when others write it at the same time.
const TRIES: usize = 5;

/// The note about one root, as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DueNote {
    /// The generation that was published.
    pub(crate) generation: u64,
    /// Identifies the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bundle: Option<String>,
    /// `None`: not before a push.
    pub(crate) due: Option<DateTime<Utc>>,
}

/// What of a bundle was published or found.
#[derive(Clone, Debug)]
pub(crate) struct PublishedBundle {
    pub(crate) generation: u64,
    /// Identifies the bundle, if it has an identity.
    pub(crate) bundle: Option<String>,
}

impl DueNote {
    /// Returns whether this note is about a newer generation of the same bundle.
    fn is_newer(&self, other: &Self) -> bool {
        self.generation > other.generation
            && !manifest::is_other(self.bundle.as_deref(), other.bundle.as_deref())
    }
}

/// A root of a store with its note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DueRoot {
    pub(crate) root: String,
    pub(crate) generation: u64,
    pub(crate) due: Option<DateTime<Utc>>,
}

/// Returns the address of the notes of a tenant.
pub(crate) fn tenant_url(store: &str, tenant: &str) -> String {
    format!("{}/{FOLDER}/{tenant}", normalized_url(store))
}

/// Writes when a root is due, unless the note is about a newer generation.
pub(crate) fn write(
    store: &str,
    root: &RootName,
    published: &PublishedBundle,
    next_due: Option<Duration>,
    now: DateTime<Utc>,
) -> Result<(), BundleError> {
    let due = next_due.and_then(|it| now.checked_add_signed(chrono::TimeDelta::from_std(it).ok()?));
    let PublishedBundle { generation, bundle } = published.clone();
    let note = DueNote { generation, bundle, due };
    let bytes = serde_json::to_vec(&note).expect("numbers and times can always be written");
    // A worker in the sandbox of a tenant may write nowhere else.
    let url = tenant_url(store, root.tenant());
    let storage = storage::open(&url)?;
    let key = root.id();
    for _ in 0..TRIES {
        let written = match storage.get(key, None, NOTE_BYTES_MAX)? {
            FetchedObject::Found(found, version) => {
                // What cannot be read is replaced.
                let known: Option<DueNote> = serde_json::from_slice(&found).ok();
                if known.is_some_and(|it| it == note || it.is_newer(&note)) {
                    return Ok(());
                }
                storage.replace(key, &bytes, &version)
            }
            FetchedObject::Missing | FetchedObject::Unchanged => storage.create(key, &bytes),
        };
        match written {
            Ok(_) => return Ok(()),
            Err(StorageError { kind: StorageErrorKind::Changed, .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(BundleError::Contended { url, tries: TRIES })
}

/// Returns the roots of a store with a note, those that have been due longest first. What is no note of a root is left out.
pub(crate) fn list(store: &str) -> Result<Vec<DueRoot>, BundleError> {
    let storage = storage::open(store)?;
    let mut roots = Vec::new();
    for object in storage.list(FOLDER)? {
        let name = object.key.strip_prefix(FOLDER).and_then(|it| it.strip_prefix('/'));
        let Some(Ok(root)) = name.map(str::parse::<RootName>) else { continue };
        let FetchedObject::Found(bytes, _) = storage.get(&object.key, None, NOTE_BYTES_MAX)? else {
            continue;
        };
        // A note that cannot be read says that somebody should look.
        let note: DueNote = serde_json::from_slice(&bytes).unwrap_or(DueNote {
            generation: 0,
            bundle: None,
            due: Some(object.modified),
        });
        roots.push(DueRoot { root: root.to_string(), generation: note.generation, due: note.due });
    }
    roots.sort_by(|a, b| (a.due.is_none(), a.due, &a.root).cmp(&(b.due.is_none(), b.due, &b.root)));
    Ok(roots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_note_counts_and_those_due_longest_come_first() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            format!("file://{}", dir.path().canonicalize().unwrap().join("store").display());
        let now: DateTime<Utc> = "2026-04-12T12:00:00Z".parse().unwrap();
        let root = |it: &str| it.parse::<RootName>().unwrap();
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(list(&store).unwrap(), []);
        let published = |generation, bundle: &str| PublishedBundle {
            generation,
            bundle: Some(bundle.to_owned()),
        };
        write(&store, &root("acme/late"), &published(3, "a"), None, now).unwrap();
        // One that was created again begins again.
        write(&store, &root("acme/soon"), &published(9, "a"), None, now).unwrap();
        write(&store, &root("acme/soon"), &published(1, "b"), hour, now).unwrap();
        write(&store, &root("beta/now"), &published(7, "a"), Some(Duration::ZERO), now).unwrap();
        // Older than what is there.
        write(&store, &root("beta/now"), &published(6, "a"), None, now).unwrap();
        let found: Vec<_> = list(&store).unwrap().into_iter().map(|it| (it.root, it.due)).collect();
        let soon = now + chrono::TimeDelta::hours(1);
        assert_eq!(
            found,
            [
                ("beta/now".to_owned(), Some(now)),
                ("acme/soon".to_owned(), Some(soon)),
                ("acme/late".to_owned(), None)
            ]
        );
    }
}
