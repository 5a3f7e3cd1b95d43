//! A temporary copy of the sample journal, for the examples.

use std::{fs, io, path::Path};

use tempfile::TempDir;

/// A time in the week after the journal's last log, so that the results are the same on any day.
pub(crate) const NOW: &str = "2026-04-13T07:00:00Z";

/// Copies the daily logs of the sample journal into a new temporary folder.
pub(crate) fn copy_journal() -> io::Result<TempDir> {
    let logs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/mara/memory");
    let folder = tempfile::tempdir()?;
    let copies = folder.path().join("memory");
    fs::create_dir(&copies)?;
    for log in fs::read_dir(logs)? {
        let log = log?;
        fs::copy(log.path(), copies.join(log.file_name()))?;
    }
    Ok(folder)
}
