//! What a bundle needs of a store: few calls, two of them conditional.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{cloud_storage::CloudStorage, file_storage::FileStorage};

/// An object store, below the address of one bundle. Keys are relative to it.
pub(crate) trait ObjectStorage: Send + Sync {
    /// Reads an object of at most `bytes_max` bytes, unless it still has the version `known`.
    fn get(
        &self,
        key: &str,
        known: Option<&ObjectVersion>,
        bytes_max: u64,
    ) -> Result<FetchedObject, StorageError>;

    /// Creates an object; returns [`StorageErrorKind::Changed`] if it exists.
    fn create(&self, key: &str, bytes: &[u8]) -> Result<ObjectVersion, StorageError>;

    /// Replaces an object; returns [`StorageErrorKind::Changed`] if it has another version than `expected`.
    fn replace(
        &self,
        key: &str,
        bytes: &[u8],
        expected: &ObjectVersion,
    ) -> Result<ObjectVersion, StorageError>;

    /// Removes an object; one that does not exist is no error.
    fn remove(&self, key: &str) -> Result<(), StorageError>;

    /// Lists the objects whose keys begin with the folder `prefix`.
    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StorageError>;

    /// Returns the time of the last change of an object by the clock of the store; `None` if it does not exist.
    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, StorageError>;

    /// Returns whether a store that created an object of this version keeps removed and replaced bytes.
    fn keeps_old_bytes(&self, version: &ObjectVersion) -> OldBytes;
}

/// What happens to bytes that are replaced or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OldBytes {
    /// They are gone.
    Dropped,
    /// The store keeps former versions.
    Kept,
    /// The store does not show it.
    Unknown,
}

/// Identifies the bytes of an object at one time, for conditional calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ObjectVersion {
    /// As the store returned it.
    pub(crate) e_tag: Option<String>,
    /// Of stores that number versions.
    pub(crate) version: Option<String>,
}

/// The result of [`ObjectStorage::get`].
#[derive(Debug)]
pub(crate) enum FetchedObject {
    Missing,
    /// It has the known version.
    Unchanged,
    Found(Vec<u8>, ObjectVersion),
}

/// An object in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ListedObject {
    pub(crate) key: String,
    /// By the clock of the store.
    pub(crate) modified: DateTime<Utc>,
}

/// Why a call failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageErrorKind {
    /// The address is invalid, or of a kind that this build does not know.
    Address,
    /// No answer.
    Unreachable,
    /// The credentials are missing, wrong, or not sufficient.
    Denied,
    /// The condition of a conditional call does not hold.
    Changed,
    /// The object is larger than it may be.
    TooLarge,
    /// Anything else.
    Failed,
}

/// A call of a store that failed.
#[derive(Debug)]
pub(crate) struct StorageError {
    pub(crate) kind: StorageErrorKind,
    /// The address of the object, or of the bundle.
    pub(crate) url: String,
    pub(crate) reason: String,
}

impl StorageError {
    pub(crate) fn new(kind: StorageErrorKind, url: &str, reason: impl fmt::Display) -> Self {
        Self { kind, url: url.to_owned(), reason: reason.to_string() }
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, url, reason } = self;
        match kind {
            StorageErrorKind::Address => write!(f, "`{url}` cannot be used: {reason}"),
            StorageErrorKind::Unreachable => write!(f, "cannot reach `{url}`: {reason}"),
            StorageErrorKind::Denied => write!(f, "`{url}` refuses these credentials: {reason}"),
            StorageErrorKind::Changed => write!(f, "`{url}` was changed meanwhile"),
            StorageErrorKind::TooLarge => write!(f, "`{url}` is too large: {reason}"),
            StorageErrorKind::Failed => write!(f, "`{url}` failed: {reason}"),
        }
    }
}

impl std::error::Error for StorageError {}

/// The kinds of addresses, by their scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StorageScheme {
    /// `file://`: a folder, which may be on a shared disk.
    File,
    /// `s3://`: Amazon S3, and what speaks its protocol.
    S3,
    /// `gs://`: Google Cloud Storage.
    Google,
    /// `az://`: Azure Blob Storage.
    Azure,
}

impl StorageScheme {
    /// Returns the scheme of an address.
    pub(crate) fn of(url: &str) -> Result<Self, StorageError> {
        match url.split_once("://").map(|it| it.0) {
            Some("file") => Ok(Self::File),
            Some("s3") => Ok(Self::S3),
            Some("gs") => Ok(Self::Google),
            Some("az") => Ok(Self::Azure),
            _ => Err(StorageError::new(
                StorageErrorKind::Address,
                url,
                "expected file:///PATH, s3://BUCKET/PATH, gs://BUCKET/PATH, or az://CONTAINER/PATH",
            )),
        }
    }

    /// Returns whether the tests of memoird use a store of this kind.
    pub(crate) fn is_tested(self) -> bool {
        matches!(self, Self::File | Self::S3)
    }
}

/// Returns an address as it is compared and recorded: without a slash at its end.
pub(crate) fn normalized_url(url: &str) -> String {
    let trimmed = url.trim_end_matches('/');
    if trimmed.ends_with(':') { url.to_owned() } else { trimmed.to_owned() }
}

/// Opens the store at `url`. Nothing is sent yet.
pub(crate) fn open(url: &str) -> Result<Box<dyn ObjectStorage>, StorageError> {
    let scheme = StorageScheme::of(url)?;
    if url.contains(['?', '#', '@']) {
        let reason = "it may contain no `?`, `#`, or `@`; credentials come from the environment";
        // The address may hold a password.
        let shown = url.split(['?', '#', '@']).next().unwrap_or_default();
        return Err(StorageError::new(StorageErrorKind::Address, shown, reason));
    }
    Ok(match scheme {
        StorageScheme::File => Box::new(FileStorage::open(url)?),
        StorageScheme::S3 | StorageScheme::Google | StorageScheme::Azure => {
            Box::new(CloudStorage::open(url, scheme)?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_checked_and_compared_without_a_final_slash() {
        for bad in ["/srv/team", "ftp://a/b", "s3:/a", "s3://user:secret@bucket/a"] {
            let error = open(bad).err().unwrap();
            assert_eq!(error.kind, StorageErrorKind::Address, "{bad}");
            assert!(!error.to_string().contains("secret@"), "{error}");
        }
        assert_eq!(normalized_url("s3://team/lex/"), "s3://team/lex");
        assert_eq!(StorageScheme::of("gs://team/lex").unwrap(), StorageScheme::Google);
    }
}
