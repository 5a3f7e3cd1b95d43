//! The test that a store passes before its first use: concurrent writers of which exactly one may win.
//!
//! A store that says yes to two of them would lose what one of two machines published.

use std::{collections::BTreeSet, thread};

use super::{
    error::BundleError,
    storage::{FetchedObject, ObjectStorage, ObjectVersion, StorageError, StorageErrorKind},
};

/// How many races of each kind there are.
pub(crate) const RACES: usize = 20;
/// How many writers each race has.
const WRITERS: usize = 4;
/// The folder of the objects.
const FOLDER: &str = "races";
/// The objects are a few bytes.
const BYTES_MAX: u64 = 1024;

/// The result of the test.
#[derive(Debug)]
pub(crate) struct PassedRaces {
    /// The version of an object that was created, which shows whether the store keeps former versions.
    pub(crate) version: ObjectVersion,
}

/// Runs all races in the folder `salt`, which no other test uses, and removes their objects.
///
/// Returns [`BundleError::LostRace`] with what went wrong.
pub(crate) fn run_races(
    storage: &dyn ObjectStorage,
    url: &str,
    salt: &str,
) -> Result<PassedRaces, BundleError> {
    let lost = |what: String| BundleError::LostRace { url: url.to_owned(), what };
    let mut keys = BTreeSet::new();
    let result = (|| {
        let mut version = ObjectVersion::default();
        for race in 0..RACES {
            let key = format!("{FOLDER}/{salt}/{race}");
            keys.insert(key.clone());
            let created = race_once("create", &|bytes| storage.create(&key, bytes))?;
            let (won, first) = one_winner(created, "create-if-absent", race).map_err(lost)?;
            let is_right = has_content(storage, &key, &won)?;
            let replaced = race_once("replace", &|bytes| storage.replace(&key, bytes, &first))?;
            let (won, second) = one_winner(replaced, "compare-and-swap", race).map_err(lost)?;
            if !is_right || !has_content(storage, &key, &won)? {
                return Err(lost(format!("race {race}: an object lacks what its writer wrote")));
            }
            match storage.replace(&key, b"late", &first) {
                Err(StorageError { kind: StorageErrorKind::Changed, .. }) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    return Err(lost("it replaces an object whose version has changed".to_owned()));
                }
            }
            version = second;
        }
        Ok(PassedRaces { version })
    })();
    for key in keys {
        // Garbage of a few bytes does no harm.
        drop(storage.remove(&key));
    }
    result
}

/// What each writer wrote, and whether it succeeded.
type RaceResults = Vec<(String, Result<ObjectVersion, StorageError>)>;

fn race_once(
    action: &str,
    write: &(dyn Fn(&[u8]) -> Result<ObjectVersion, StorageError> + Sync),
) -> Result<RaceResults, BundleError> {
    let results: RaceResults = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|number| {
                let text = format!("{action} {number}");
                scope.spawn(move || {
                    let written = write(text.as_bytes());
                    (text, written)
                })
            })
            .collect();
        let failed = |_| {
            let error = StorageError::new(StorageErrorKind::Failed, FOLDER, "a writer stopped");
            (String::new(), Err(error))
        };
        writers.into_iter().map(|it| it.join().unwrap_or_else(failed)).collect()
    });
    let mut kept = Vec::new();
    for (text, written) in results {
        match written {
            Err(error) if error.kind != StorageErrorKind::Changed => return Err(error.into()),
            written => kept.push((text, written)),
        }
    }
    Ok(kept)
}

fn one_winner(
    results: RaceResults,
    what: &str,
    race: usize,
) -> Result<(String, ObjectVersion), String> {
    let mut winners: Vec<_> =
        results.into_iter().filter_map(|(text, it)| Some((text, it.ok()?))).collect();
    match (winners.pop(), winners.len()) {
        (Some(winner), 0) => Ok(winner),
        (_, others) => Err(format!(
            "{what}, race {race}: {} of {WRITERS} writers succeeded, expected one",
            if others == 0 { 0 } else { others + 1 }
        )),
    }
}

fn has_content(
    storage: &dyn ObjectStorage,
    key: &str,
    expected: &str,
) -> Result<bool, StorageError> {
    let found = storage.get(key, None, BYTES_MAX)?;
    Ok(matches!(found, FetchedObject::Found(bytes, _) if bytes == expected.as_bytes()))
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::{
        super::{
            file_storage::FileStorage,
            storage::{ListedObject, OldBytes},
        },
        *,
    };

    /// A store that ignores conditions.
    struct Careless(FileStorage);

    impl ObjectStorage for Careless {
        fn get(
            &self,
            key: &str,
            known: Option<&ObjectVersion>,
            bytes_max: u64,
        ) -> Result<FetchedObject, StorageError> {
            self.0.get(key, known, bytes_max)
        }

        fn create(&self, key: &str, bytes: &[u8]) -> Result<ObjectVersion, StorageError> {
            self.0.create(key, bytes).or_else(|_| Ok(ObjectVersion::default()))
        }

        fn replace(
            &self,
            key: &str,
            bytes: &[u8],
            _expected: &ObjectVersion,
        ) -> Result<ObjectVersion, StorageError> {
            self.0.remove(key)?;
            self.create(key, bytes)
        }

        fn remove(&self, key: &str) -> Result<(), StorageError> {
            self.0.remove(key)
        }

        fn list(&self, prefix: &str) -> Result<Vec<ListedObject>, StorageError> {
            self.0.list(prefix)
        }

        fn modified(&self, key: &str) -> Result<Option<DateTime<Utc>>, StorageError> {
            self.0.modified(key)
        }

        fn keeps_old_bytes(&self, version: &ObjectVersion) -> OldBytes {
            self.0.keeps_old_bytes(version)
        }
    }

    #[test]
    fn a_folder_passes_and_a_store_without_conditions_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("file://{}", dir.path().display());
        let good = FileStorage::open(&url).unwrap();
        run_races(&good, &url, "a").unwrap();
        assert!(good.list(FOLDER).unwrap().is_empty());
        let error = run_races(&Careless(good), &url, "b").unwrap_err();
        assert!(matches!(&error, BundleError::LostRace { .. }), "{error}");
    }
}
