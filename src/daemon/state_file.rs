//! `.memoird/daemon.json`: the daemon's state, for other processes.
//!
//! `status` reads it while the daemon holds its lock; without the lock it is stale. Nothing depends on
//! it, so it is replaced atomically but not synced to disk.

use std::{
    io::{self, Write as _},
    path::Path,
};

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The file name in the private folder.
const FILE_NAME: &str = "daemon.json";

/// The daemon's state for one root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DaemonState {
    /// The process id.
    pub(super) pid: u32,
    /// When the root was opened.
    pub(super) since: DateTime<Utc>,
    pub(super) version: String,
    /// How changes are detected: reported by the system (`inotify`) or by polling (`poll`).
    pub(super) mode: &'static str,
    pub(super) why: Option<String>,
    /// When the system last reported a change.
    pub(super) last_event: Option<DateTime<Utc>>,
    /// When the whole folder was last scanned.
    pub(super) last_scan: Option<DateTime<Utc>>,
    /// Scans that found an unreported change.
    pub(super) missed: u64,
    /// How often the system reported lost events.
    pub(super) overflows: u64,
    /// Whether a run is active or requested: its files may exist before it has ended.
    pub(super) busy: bool,
    /// Runs that have ended since the root was opened.
    pub(super) passes: u64,
    /// Why nothing is written until a person acts.
    pub(super) paused: Option<String>,
    /// Why due work waits.
    pub(super) waiting: Option<String>,
    pub(super) waiting_until: Option<DateTime<Utc>>,
}

impl DaemonState {
    /// Writes the state, readable only by its owner.
    ///
    /// Returns the system's error; the file is then unchanged.
    pub(super) fn write(&self, private_dir: &Path) -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix("daemon.json-").tempfile_in(private_dir)?;
        serde_json::to_writer(&mut temp, self)?;
        temp.write_all(b"\n")?;
        temp.persist(private_dir.join(FILE_NAME))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    #[test]
    fn the_file_is_private_and_contains_what_status_reads() {
        let dir = tempfile::tempdir().unwrap();
        let mut state = DaemonState {
            pid: 7,
            since: DateTime::UNIX_EPOCH,
            version: "0.1.0".to_owned(),
            mode: "inotify",
            why: None,
            last_event: None,
            last_scan: Some(DateTime::UNIX_EPOCH),
            missed: 3,
            overflows: 1,
            busy: true,
            passes: 2,
            paused: None,
            waiting: None,
            waiting_until: None,
        };
        state.write(dir.path()).unwrap();
        state.mode = "poll";
        state.write(dir.path()).unwrap();
        let file = dir.path().join(FILE_NAME);
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(
            text,
            "{\"pid\":7,\"since\":\"1970-01-01T00:00:00Z\",\"version\":\"0.1.0\",\"mode\":\"poll\",\"why\":null,\
             \"last_event\":null,\"last_scan\":\"1970-01-01T00:00:00Z\",\"missed\":3,\"overflows\":1,\
             \"busy\":true,\"passes\":2,\"paused\":null,\"waiting\":null,\"waiting_until\":null}\n"
        );
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }
}
