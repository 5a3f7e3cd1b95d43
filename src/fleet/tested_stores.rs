//! Which stores in the network passed the races from this machine: the races cost some 240 requests, and a machine may
//! have many memory folders in one bucket.
//!
//! One file per store in the folder of persistent state, named after the bucket and the server that the environment
//! names. A store is tested again after [`VALID_FOR`]. Folders are no stores in the network: two of them may be on
//! different disks, and their races cost nothing.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::storage::StorageScheme;
use crate::memory::hash::ContentHash;

const FOLDER: &str = "memoird/tested-stores";
const VALID_FOR: TimeDelta = TimeDelta::days(30);
/// The variables that name a server begin with one of these, and say what they name.
const PROVIDERS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
const SERVER_WORDS: [&str; 3] = ["ENDPOINT", "REGION", "ACCOUNT_NAME"];

/// Returns whether the store of a bundle passed lately.
pub(super) fn is_tested(state_home: &Path, url: &str, now: DateTime<Utc>) -> bool {
    let Some(file) = file_of(url).map(|it| state_home.join(it)) else { return false };
    let text = fs::read_to_string(file).unwrap_or_default();
    let tested: Option<DateTime<Utc>> = text.trim().parse().ok();
    tested.is_some_and(|it| it <= now && now - it < VALID_FOR)
}

/// Records that the store of a bundle passed. If this fails, the next folder tests it again.
pub(super) fn record(state_home: &Path, url: &str, now: DateTime<Utc>) {
    let Some(file) = file_of(url).map(|it| state_home.join(it)) else { return };
    let written = file.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| {
        // A file that a crash cuts short is no time, and the store is tested again.
        use std::io::Write as _;
        writeln!(fs::File::create(&file)?, "{}", now.to_rfc3339())
    });
    if let Err(error) = written {
        tracing::debug!("{}: {error}", file.display());
    }
}

/// Returns the path of the record, relative to the folder of state; `None` for a folder.
fn file_of(url: &str) -> Option<PathBuf> {
    if StorageScheme::of(url).ok()? == StorageScheme::File {
        return None;
    }
    let is_server = |name: &str| {
        PROVIDERS.iter().any(|it| name.starts_with(it))
            && SERVER_WORDS.iter().any(|it| name.contains(it))
    };
    // No server's name is anything but UTF-8.
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut servers: Vec<(String, String)> = texts.filter(|(name, _)| is_server(name)).collect();
    servers.sort_unstable();
    let (scheme, address) = url.split_once("://")?;
    let bucket = address.split('/').next().unwrap_or_default();
    let store = format!("{scheme}://{bucket} {servers:?}");
    Some(PathBuf::from(FOLDER).join(ContentHash::of(store).hex16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_tested_once_a_month_and_a_folder_always() {
        let dir = tempfile::tempdir().unwrap();
        let now: DateTime<Utc> = "2026-04-13T09:00:00Z".parse().unwrap();
        let (lex, mara) = ("s3://team/acme/lex", "s3://team/acme/mara");
        assert!(!is_tested(dir.path(), lex, now));
        record(dir.path(), lex, now);
        for (url, at, expected) in [
            (lex, now, true),
            (mara, now + TimeDelta::days(29), true),
            (mara, now + TimeDelta::days(31), false),
            (mara, now - TimeDelta::days(1), false),
            ("s3://other/acme/lex", now, false),
            ("gs://team/acme/lex", now, false),
        ] {
            assert_eq!(is_tested(dir.path(), url, at), expected, "{url} {at}");
        }
        record(dir.path(), "file:///srv/lex", now);
        assert!(!is_tested(dir.path(), "file:///srv/lex", now));
    }
}
