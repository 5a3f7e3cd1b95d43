//! Stores in the network, through the crate `object_store`: TLS by rustls and ring, as everywhere in memoird.
//!
//! Credentials and the address of the server come from the variables of each provider (`AWS_ACCESS_KEY_ID`,
//! `AWS_ENDPOINT_URL`, …). A call that gets no answer is tried again for at most [`RETRY_TIMEOUT`].

use std::{sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt as _;
use object_store::{
    BackoffConfig, ClientOptions, Error, GetOptions, ObjectStore, ObjectStoreExt as _, PutMode,
    PutOptions, PutPayload, RetryConfig, UpdateVersion,
    aws::AmazonS3Builder,
    azure::MicrosoftAzureBuilder,
    client::{HttpError, HttpErrorKind},
    gcp::GoogleCloudStorageBuilder,
    path::Path,
};
use tokio::runtime::{Builder, Runtime};

use super::storage::{
    FetchedObject, ListedObject, ObjectStorage, ObjectVersion, OldBytes, StorageError,
    StorageErrorKind, StorageScheme,
};

const RETRIES_MAX: usize = 3;
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A pack of 16 MiB over a slow line.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(300);
/// Calls that race each other run at the same time on these threads.
const THREADS: usize = 2;

/// How the library shows the status of an answer in errors that have no kind of their own.
const STATUS_PREFIX: &str = "Server returned non-2xx status code: ";

/// A store in the network.
pub(super) struct CloudStorage {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    url: String,
    scheme: StorageScheme,
    runtime: Runtime,
}

impl CloudStorage {
    /// Opens the store that `url` names, with the credentials of the environment. Nothing is sent yet.
    pub(super) fn open(url: &str, scheme: StorageScheme) -> Result<Self, StorageError> {
        let bad = |e: &dyn std::fmt::Display| StorageError::new(StorageErrorKind::Address, url, e);
        // Installed once per process; a second call changes nothing.
        drop(rustls::crypto::ring::default_provider().install_default());
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIMEOUT,
        };
        let allows_http =
            |name: &str| std::env::var(name).is_ok_and(|it| it == "true" || it == "1");
        let options = |variable: &str| {
            ClientOptions::new()
                .with_connect_timeout(CONNECT_TIMEOUT)
                .with_timeout(TOTAL_TIMEOUT)
                .with_allow_http(allows_http(variable))
        };
        let (_, address) = url.split_once("://").unwrap_or_default();
        let (bucket, path) = address.split_once('/').unwrap_or((address, ""));
        if bucket.is_empty() {
            return Err(bad(&"it names no bucket"));
        }
        let store: Result<Arc<dyn ObjectStore>, Error> = match scheme {
            StorageScheme::S3 => AmazonS3Builder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_client_options(options("AWS_ALLOW_HTTP"))
                .build()
                .map(|it| Arc::new(it) as _),
            StorageScheme::Google => GoogleCloudStorageBuilder::from_env()
                .with_bucket_name(bucket)
                .with_retry(retry)
                .with_client_options(options("GOOGLE_ALLOW_HTTP"))
                .build()
                .map(|it| Arc::new(it) as _),
            StorageScheme::Azure | StorageScheme::File => MicrosoftAzureBuilder::from_env()
                .with_container_name(bucket)
                .with_retry(retry)
                .with_client_options(options("AZURE_ALLOW_HTTP"))
                .build()
                .map(|it| Arc::new(it) as _),
        };
        let runtime = Builder::new_multi_thread().worker_threads(THREADS).enable_all().build();
        Ok(Self {
            store: store.map_err(|e| bad(&chain(&e)))?,
            prefix: Path::parse(path).map_err(|e| bad(&e))?,
            url: url.to_owned(),
            scheme,
            runtime: runtime.map_err(|e| bad(&e))?,
        })
    }

    fn path(&self, key: &str) -> Path {
        key.split('/').fold(self.prefix.clone(), Path::join)
    }

    fn failed(&self, key: &str, error: &Error) -> StorageError {
        StorageError::new(kind_of(error), &format!("{}/{key}", self.url), chain(error))
    }

    fn put(&self, key: &str, bytes: &[u8], mode: PutMode) -> Result<ObjectVersion, StorageError> {
        let options = PutOptions { mode, ..PutOptions::default() };
        let payload = PutPayload::from(bytes.to_vec());
        let path = self.path(key);
        let put = self.runtime.block_on(self.store.put_opts(&path, payload, options));
        let put = put.map_err(|e| self.failed(key, &e))?;
        Ok(ObjectVersion { e_tag: put.e_tag, version: put.version })
    }
}

fn kind_of(error: &Error) -> StorageErrorKind {
    match error {
        Error::AlreadyExists { .. } | Error::Precondition { .. } => StorageErrorKind::Changed,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => StorageErrorKind::Denied,
        error => kind_of_cause(error),
    }
}

/// Returns the kind of an error by the first of its causes that is an answer of the server, or none.
fn kind_of_cause(error: &(dyn std::error::Error + 'static)) -> StorageErrorKind {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(http) = cause.downcast_ref::<HttpError>() {
            return match http.kind() {
                HttpErrorKind::Connect
                | HttpErrorKind::Request
                | HttpErrorKind::Timeout
                | HttpErrorKind::Interrupted => StorageErrorKind::Unreachable,
                _ => StorageErrorKind::Failed,
            };
        }
        // The type of this cause is private.
        let text = cause.to_string();
        let status = text.strip_prefix(STATUS_PREFIX).and_then(|it| it.get(..3));
        match status {
            Some("401" | "403") => return StorageErrorKind::Denied,
            // Of another process that replaces the object at this moment.
            Some("409" | "412") => return StorageErrorKind::Changed,
            Some(_) => return StorageErrorKind::Failed,
            None => next = cause.source(),
        }
    }
    StorageErrorKind::Failed
}

/// Returns an error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl ObjectStorage for CloudStorage {
    fn get(
        &self,
        key: &str,
        known: Option<&ObjectVersion>,
        bytes_max: u64,
    ) -> Result<FetchedObject, StorageError> {
        let options = GetOptions {
            if_none_match: known.and_then(|it| it.e_tag.clone()),
            ..GetOptions::default()
        };
        let path = self.path(key);
        let fetch = async {
            let found = self.store.get_opts(&path, options).await?;
            let version = ObjectVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            if found.meta.size > bytes_max {
                return Ok(None);
            }
            Ok(Some((found.bytes().await?.to_vec(), version)))
        };
        match self.runtime.block_on(fetch) {
            Err(Error::NotFound { .. }) => Ok(FetchedObject::Missing),
            Err(Error::NotModified { .. }) => Ok(FetchedObject::Unchanged),
            Err(error) => Err(self.failed(key, &error)),
            Ok(Some((bytes, version))) => Ok(FetchedObject::Found(bytes, version)),
            Ok(None) => {
                let reason = format!("more than {bytes_max} bytes");
                let url = format!("{}/{key}", self.url);
                Err(StorageError::new(StorageErrorKind::TooLarge, &url, reason))
            }
        }
    }

    fn create(&self, key: &str, bytes: &[u8]) -> Result<ObjectVersion, StorageError> {
        self.put(key, bytes, PutMode::Create)
    }

    fn replace(
        &self,
        key: &str,
        bytes: &[u8],
        expected: &ObjectVersion,
    ) -> Result<ObjectVersion, StorageError> {
        let ObjectVersion { e_tag, version } = expected.clone();
        self.put(key, bytes, PutMode::Update(UpdateVersion { e_tag, version }))
    }

    fn remove(&self, key: &str) -> Result<(), StorageError> {
        let path = self.path(key);
        match self.runtime.block_on(self.store.delete(&path)) {
            Err(Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(self.failed(key, &error)),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StorageError> {
        let path = self.path(prefix);
        let listed: Result<Vec<_>, Error> =
            self.runtime.block_on(self.store.list(Some(&path)).try_collect());
        let base = self.prefix.to_string();
        let listed = listed.map_err(|e| self.failed(prefix, &e))?.into_iter();
        let relative = |path: &str| {
            path.strip_prefix(&base).unwrap_or(path).trim_start_matches('/').to_owned()
        };
        Ok(listed
            .map(|it| ListedObject {
                key: relative(it.location.as_ref()),
                modified: it.last_modified,
            })
            .collect())
    }

    fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, StorageError> {
        let path = self.path(key);
        match self.runtime.block_on(self.store.head(&path)) {
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(key, &error)),
            Ok(it) => Ok(Some(it.last_modified)),
        }
    }

    fn keeps_old_bytes(&self, version: &ObjectVersion) -> OldBytes {
        match (self.scheme, version.version.as_deref()) {
            (StorageScheme::S3, None | Some("null")) => OldBytes::Dropped,
            (StorageScheme::S3, Some(_)) => OldBytes::Kept,
            _ => OldBytes::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of the library, and what caused it.
    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Cause {
        text: String,
        source: Option<BoxedError>,
    }

    type BoxedError = Box<dyn std::error::Error + Send + Sync>;

    fn cause(text: &str, source: Option<BoxedError>) -> BoxedError {
        Box::new(Cause { text: text.to_owned(), source })
    }

    fn generic(source: BoxedError) -> Error {
        Error::Generic { store: "S3", source }
    }

    #[test]
    fn the_kind_of_an_error_is_that_of_its_cause_whatever_names_and_ports_say() {
        const PUT: &str = "Error performing PUT http://127.0.0.1:40312/team-401/connect in 9ms";
        let answered = |status: &str| {
            let body = "Forbidden, credential timeout 403";
            generic(cause(PUT, Some(cause(&format!("{STATUS_PREFIX}{status} X: {body}"), None))))
        };
        let unanswered = |kind| {
            let io = std::io::Error::other("dns 403");
            generic(cause(PUT, Some(Box::new(HttpError::new(kind, io)))))
        };
        let (path, source) = ("lex".to_owned(), cause("403", None));
        for (error, expected) in [
            (answered("500"), StorageErrorKind::Failed),
            (answered("401"), StorageErrorKind::Denied),
            (answered("403"), StorageErrorKind::Denied),
            (answered("409"), StorageErrorKind::Changed),
            (unanswered(HttpErrorKind::Connect), StorageErrorKind::Unreachable),
            (unanswered(HttpErrorKind::Timeout), StorageErrorKind::Unreachable),
            (unanswered(HttpErrorKind::Decode), StorageErrorKind::Failed),
            (generic(cause(PUT, None)), StorageErrorKind::Failed),
            (Error::Precondition { path, source }, StorageErrorKind::Changed),
        ] {
            assert_eq!(kind_of(&error), expected, "{error}");
        }
    }
}
