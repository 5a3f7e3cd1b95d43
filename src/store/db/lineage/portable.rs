//! The database as it travels: a copy without what is true on one machine only.
//!
//! Stamps of files and numbers of devices differ on every machine, so a copy has none; the next run reads the logs
//! and records them again. Free pages are not copied, so that nothing of what was forgotten is in a copy.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rusqlite::backup::{Backup, StepResult};

use super::{BUSY_TIMEOUT, Lineage, LineageError, create_private_file, schema};
use crate::store::{db::connection, failpoint, fs::up_to_date_note};

const BUSY_RETRY: Duration = Duration::from_millis(10);

/// Writes a copy of the database to `path`, which must not exist, and returns its bytes. Two databases with the
/// same records give the same bytes, but for counters in the header.
///
/// Returns [`LineageError::Busy`] if another process holds the database.
pub(crate) fn write_copy(lineage: &Lineage, path: &Path) -> Result<Vec<u8>, LineageError> {
    let real = create_private_file(path)?;
    let name = real
        .to_str()
        .ok_or_else(|| file_error(path, std::io::ErrorKind::InvalidFilename.into()))?;
    lineage.read(|conn| conn.execute("VACUUM INTO ?1", [name]).map(drop))?;
    let sql = |source| LineageError::from_sql(path, source);
    let conn = connection::open(&real, &connection::CACHE, BUSY_TIMEOUT).map_err(sql)?;
    conn.execute_batch("DELETE FROM file; DELETE FROM folder; VACUUM").map_err(sql)?;
    conn.close().map_err(|(_, source)| sql(source))?;
    std::fs::read(&real).map_err(|source| file_error(path, source))
}

impl Lineage {
    /// Replaces all records by those of the copy at `path`, in one transaction: after a crash the database has the
    /// old or the new ones.
    ///
    /// Returns [`LineageError::Damaged`] or [`LineageError::NewerSchema`] for a copy that cannot be used, and
    /// [`LineageError::Busy`] if another process holds the database.
    pub(crate) fn replace_with_copy(&mut self, path: &Path) -> Result<(), LineageError> {
        let step = |name| failpoint::at(name).map_err(|source| file_error(path, source));
        check_copy(path)?;
        let sql = |source| LineageError::from_sql(path, source);
        let real = path.canonicalize().map_err(|source| file_error(path, source))?;
        let copy = connection::open(&real, &connection::CACHE, BUSY_TIMEOUT).map_err(sql)?;
        if let Some(folder) = self.path.parent() {
            // SQLite calls no hook here.
            up_to_date_note::invalidate(folder)
                .map_err(|source| file_error(&folder.join(up_to_date_note::NOTE), source))?;
        }
        self.conn.flush_prepared_statement_cache();
        step("bundle.database.begin")?;
        let own = self.path.clone();
        let started = Instant::now();
        {
            let backup = Backup::new(&copy, &mut self.conn)
                .map_err(|source| LineageError::from_sql(&own, source))?;
            loop {
                let result =
                    backup.step(-1).map_err(|source| LineageError::from_sql(&own, source))?;
                match result {
                    StepResult::Done => break,
                    _ if started.elapsed() > BUSY_TIMEOUT => {
                        return Err(LineageError::Busy { path: own });
                    }
                    _ => thread::sleep(BUSY_RETRY),
                }
            }
        }
        step("bundle.database.replaced")?;
        schema::migrate(&mut self.conn, &own, schema::MIGRATIONS)?;
        // The old pages must not stay in the write-ahead log. If another process reads, a later run does it.
        self.read(|conn| {
            conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))
        })
        .map(drop)
    }
}

/// Checks that a file is a sound database of ours that this memoird can use.
pub(crate) fn check_copy(path: &Path) -> Result<(), LineageError> {
    match Lineage::open_existing(path)? {
        Some(copy) => copy.integrity_check(),
        None => {
            Err(LineageError::Damaged { path: path.to_owned(), detail: "it is empty".to_owned() })
        }
    }
}

fn file_error(path: &Path, source: std::io::Error) -> LineageError {
    LineageError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::store::db::lineage::jobs::NewRun;

    fn lineage(dir: &Path) -> Lineage {
        Lineage::open(&dir.join(".memoird/lineage.db")).unwrap()
    }

    /// Returns the bytes of a copy without the counters in its header.
    fn copy(lineage: &Lineage, dir: &Path, name: &str) -> Vec<u8> {
        let mut bytes = write_copy(lineage, &dir.join(".memoird").join(name)).unwrap();
        for range in [24..28, 40..44, 92..100] {
            bytes[range].fill(0);
        }
        bytes
    }

    #[test]
    fn a_copy_brings_the_same_records_and_gives_the_same_copy_again() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut source = lineage(here.path());
        let now = DateTime::default();
        let run = NewRun { trigger: "test", version: "0", owner: "me", now };
        let run = source.begin_run(&run).unwrap();
        source.end_run(run, now).unwrap();
        let first = copy(&source, here.path(), "first");
        let mut target = lineage(there.path());
        target.replace_with_copy(&here.path().join(".memoird/first")).unwrap();
        assert!(target.is_in_place());
        target.integrity_check().unwrap();
        assert_eq!(target.last_ended_run().unwrap().map(|it| it.0), Some(run));
        assert!(copy(&target, there.path(), "second") == first);
    }

    #[test]
    fn a_damaged_copy_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let mut target = lineage(dir.path());
        let path = dir.path().join(".memoird/copy");
        write_copy(&target, &path).unwrap();
        let half = std::fs::metadata(&path).unwrap().len() / 2;
        std::fs::File::options().write(true).open(&path).unwrap().set_len(half).unwrap();
        assert!(target.replace_with_copy(&path).is_err());
        target.integrity_check().unwrap();
    }
}
