//! `.memoird/daemon.json`: what the daemon says of itself to other processes.
//!
//! `status` reads it while the daemon holds its lock; without the lock it is stale. Losing it loses
//! nothing, so it is replaced whole but not forced to the disk.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// What a daemon says of one root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaemonState {
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub since: DateTime<Utc>,
    /// Its version.
    pub version: String,
    /// How it notices changes.
    pub mode: Mode,
    /// When the system last told of a change.
    pub last_event: Option<DateTime<Utc>>,
    /// When the whole folder was last looked at.
    pub last_scan: Option<DateTime<Utc>>,
    /// How often changes were found that nobody had told of.
    pub missed: u64,
}

/// How changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The system tells of them.
    Inotify,
    /// The folder is looked at every half minute.
    Poll,
}

impl DaemonState {
    /// Returns where the state of the root with this private folder stands.
    pub fn path(private_dir: &Path) -> PathBuf {
        private_dir.join("daemon.json")
    }

    /// Reads the state that a daemon left in a private folder; `None` when there is none, or it is
    /// from a version that says other things.
    pub fn read(private_dir: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(Self::path(private_dir)).ok()?).ok()
    }

    /// Writes the state, readable by its owner alone.
    ///
    /// # Errors
    ///
    /// Returns what the system says; the file is then as it was.
    pub fn write(&self, private_dir: &Path) -> io::Result<()> {
        let mut temp = tempfile::Builder::new().prefix("daemon.json-").tempfile_in(private_dir)?;
        serde_json::to_writer(&mut temp, self)?;
        temp.write_all(b"\n")?;
        temp.persist(Self::path(private_dir))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_written_is_read_by_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(DaemonState::read(dir.path()), None);
        let state = DaemonState {
            pid: 7,
            since: DateTime::UNIX_EPOCH,
            version: "0.1.0".to_owned(),
            mode: Mode::Poll,
            last_event: None,
            last_scan: Some(DateTime::UNIX_EPOCH),
            missed: 3,
        };
        state.write(dir.path()).unwrap();
        assert_eq!(DaemonState::read(dir.path()), Some(state));
        let mode = fs::metadata(DaemonState::path(dir.path())).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
    }
}
