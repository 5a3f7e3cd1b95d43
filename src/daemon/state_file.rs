//! `.memoird/daemon.json`: what the daemon says of itself to other processes.
//!
//! `status` reads it while the daemon holds its lock; without the lock it is stale. Losing it loses
//! nothing, so it is replaced whole but not forced to the disk.

use std::{
    io::{self, Write as _},
    path::Path,
};

use chrono::{DateTime, Utc};
use serde::Serialize;

/// The name of the file in the private folder.
const FILE_NAME: &str = "daemon.json";

/// What a daemon says of one root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct DaemonState {
    /// Its process.
    pub(super) pid: u32,
    /// When it began.
    pub(super) since: DateTime<Utc>,
    /// Its version.
    pub(super) version: String,
    /// How it notices changes: the system tells of them (`inotify`), or it looks itself (`poll`).
    pub(super) mode: &'static str,
    /// Why it looks itself.
    pub(super) why: Option<String>,
    /// When the system last told of a change.
    pub(super) last_event: Option<DateTime<Utc>>,
    /// When the whole folder was last looked at.
    pub(super) last_scan: Option<DateTime<Utc>>,
    /// Looks that found a change that nobody had told of.
    pub(super) missed: u64,
    /// How often the system said that it had lost events.
    pub(super) overflows: u64,
    /// Whether a pass is at work or wanted: what a pass makes is there before it has ended.
    pub(super) busy: bool,
    /// How many passes have ended since the root is served.
    pub(super) passes: u64,
    /// Why nothing is written until a person has done something.
    pub(super) paused: Option<String>,
    /// Why work that is due waits.
    pub(super) waiting: Option<String>,
    /// Until when it does.
    pub(super) waiting_until: Option<DateTime<Utc>>,
}

impl DaemonState {
    /// Writes the state, readable by its owner alone.
    ///
    /// # Errors
    ///
    /// Returns what the system says; the file is then as it was.
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
    fn the_file_is_its_owners_and_holds_what_status_reads() {
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
