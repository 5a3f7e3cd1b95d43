//! Why a bundle could not be published, brought, or looked at.

use std::path::PathBuf;

use super::{claims::error::ClaimsError, storage::StorageError};
use crate::{
    compaction::CompactionError,
    store::{
        db::lineage::LineageError,
        fs::{lock::LockError, vault::VaultError},
    },
};

/// Why a bundle could not be published, brought, or looked at.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BundleError {
    /// The store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A file of the root failed.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The database of the root failed.
    #[error(transparent)]
    Lineage(#[from] LineageError),
    /// Another process uses the root.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The records beside the database could not be written.
    #[error(transparent)]
    Compaction(#[from] CompactionError),
    /// The store does not keep the conditions on which publishing depends.
    #[error(
        "`{url}` cannot hold a bundle: it lost a race ({what}), so one machine could overwrite what another published"
    )]
    LostRace {
        /// The address.
        url: String,
        /// What happened.
        what: String,
    },
    /// A file is too large for an object.
    #[error(
        "`{path}` has {size} bytes: a bundle holds files of at most {} bytes",
        super::manifest::RAW_BYTES_MAX
    )]
    TooLarge {
        /// The file, relative to the root.
        path: String,
        /// How many bytes it has.
        size: u64,
    },
    /// The store keeps what is removed.
    #[error("`{url}` keeps former versions of objects, so `forget` could not remove words from it")]
    KeepsVersions {
        /// The address.
        url: String,
    },
    /// The store may keep what is removed.
    #[error(
        "`{url}` does not show whether it keeps former versions of objects, from which `forget` could not remove words"
    )]
    MayKeepVersions {
        /// The address.
        url: String,
    },
    /// There is no manifest.
    #[error("there is no bundle at `{url}`")]
    NoBundle {
        /// The address.
        url: String,
    },
    /// The manifest cannot be used.
    #[error("the manifest of `{url}` cannot be used: {reason}")]
    BadManifest {
        /// The address.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// A newer memoird wrote the manifest or the database.
    #[error(
        "`{url}` was published by memoird {version} with {what} {found}; this memoird knows {known}"
    )]
    Newer {
        /// The address.
        url: String,
        /// Its version.
        version: String,
        /// `bundle format` or `database schema`.
        what: &'static str,
        /// The version found.
        found: u64,
        /// The newest one that is known.
        known: u64,
    },
    /// The store holds another root.
    #[error(
        "`{url}` holds another memory folder (`{agent_name}`, id {found}); this one has the id {own}"
    )]
    OtherRoot {
        /// The address.
        url: String,
        /// The agent's name in the manifest.
        agent_name: String,
        /// The id in the manifest.
        found: String,
        /// The id of this root.
        own: String,
    },
    /// The bundle that this root knows was replaced by a new one.
    #[error(
        "the bundle at `{url}` was created again since this folder last used it (published {}), so what it holds may not \
         continue what this folder has",
        published.format("%Y-%m-%d %H:%M UTC")
    )]
    OtherBundle {
        /// The address.
        url: String,
        /// When its newest generation was published.
        published: chrono::DateTime<chrono::Utc>,
        /// The private file with what this root knows about the bundle.
        state: String,
    },
    /// A root that was never here would be joined with what the store has.
    #[error(
        "`{url}` holds a memory folder already (`{agent_name}`, id {found}), and this one was never published there or \
         brought from there"
    )]
    NotJoined {
        /// The address.
        url: String,
        /// The agent's name in the manifest.
        agent_name: String,
        /// The id in the manifest.
        found: String,
    },
    /// The store holds the root of another tenant.
    #[error(
        "`{url}` is not a root of the tenant `{expected}`: its manifest names {}",
        found.as_ref().map_or_else(|| "no tenant".to_owned(), |it| format!("`{it}`"))
    )]
    OtherTenant {
        /// The address.
        url: String,
        /// The tenant in the manifest.
        found: Option<String>,
        /// The tenant of the address.
        expected: String,
    },
    /// Another worker may have claimed the root.
    #[error("the lease of `{url}` was lost; nothing was published")]
    LeaseLost {
        /// The address.
        url: String,
    },
    /// The claims database did not confirm the lease.
    #[error(transparent)]
    Claims(#[from] ClaimsError),
    /// The manifest is older than one that was seen.
    #[error(
        "`{url}` has generation {found}, and this folder has already seen {known}: an older copy was put in its place"
    )]
    OlderManifest {
        /// The address.
        url: String,
        /// Its generation.
        found: u64,
        /// The newest one seen.
        known: u64,
    },
    /// An object is not what the manifest says.
    #[error("the object {object} of `{url}` is damaged: {reason}; nothing was changed")]
    BadObject {
        /// The address.
        url: String,
        /// The object.
        object: String,
        /// What is wrong.
        reason: String,
    },
    /// A folder of the store is inside of the root, or the root inside of it.
    #[error("`{}` and the memory folder `{}` lie in each other", store.display(), root.display())]
    Overlap {
        /// The folder of the store.
        store: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// More files are gone than somebody is likely to have removed.
    #[error("{gone} of {known} files are gone {where_gone} ({examples}); nothing was changed")]
    MassRemoval {
        /// How many.
        gone: usize,
        /// Of how many.
        known: usize,
        /// `here` or `in the store`.
        where_gone: &'static str,
        /// Some of them.
        examples: String,
    },
    /// A run, an undo, or a forget was interrupted.
    #[error("the memory folder has unfinished work ({what})")]
    Unfinished {
        /// What is unfinished.
        what: &'static str,
    },
    /// Others published again and again in between.
    #[error("`{url}` was changed by others {tries} times in a row; nothing was published")]
    Contended {
        /// The address.
        url: String,
        /// How often.
        tries: usize,
    },
    /// A path that was named to settle a conflict has none.
    #[error("`{path}` is not in conflict")]
    NoConflict {
        /// The path.
        path: String,
    },
    /// One's own version may hold words that were forgotten elsewhere.
    #[error(
        "`{path}` cannot be published over the store's version: words were forgotten there since, and yours may still hold them"
    )]
    ForgottenElsewhere {
        /// The path.
        path: String,
    },
    /// The folder has another memory folder than the bundle.
    #[error("the bundle keeps its logs in `{theirs}`, this folder in `{ours}`")]
    OtherMemoryDir {
        /// In the manifest.
        theirs: String,
        /// Here.
        ours: String,
    },
    /// What this root knows about the store cannot be read.
    #[error("`{path}` cannot be read: {reason}")]
    BadState {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The files on disk could not be compressed, or similar.
    #[error("cannot {action}: {source}")]
    Io {
        /// The operation.
        action: &'static str,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

impl BundleError {
    /// Converts an error of finishing a pull into one that ends a run.
    pub(crate) fn into_run_error(self) -> CompactionError {
        match self {
            Self::Vault(error) => error.into(),
            Self::Lineage(error) => error.into(),
            Self::Lock(error) => error.into(),
            Self::Compaction(error) => error,
            error => {
                let path = super::state::INCOMING.into();
                let source = std::io::Error::other(error);
                VaultError::Io { action: "finish the pull in", path, source }.into()
            }
        }
    }
}
