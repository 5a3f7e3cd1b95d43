//! Locks: which daemon serves a root, who makes a pass over it, and who writes to it right now.
//!
//! All are `flock` locks, which the kernel frees when their holder ends however it ends; a file
//! that stays behind locks nothing. The daemon's lock is a file in the private folder and holds
//! the name of its process, for messages only. The lock on passes stands beside it. The write lock is on the root folder itself, so
//! that it also holds between processes that see the root under different paths.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, flock};

/// How long a commit waits for another writer.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// How long a pass waits for another one, which may have years of logs to catch up on.
const PASS_WAIT: Duration = Duration::from_secs(30);
/// How often a lock is asked for again: a commit takes milliseconds.
const POLL: Duration = Duration::from_millis(20);

/// How long a refused daemon waits for the name of the one that holds the lock.
const PID_WAIT: Duration = Duration::from_millis(250);

/// A lock that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon serves the root.
    #[error("`{}` is served by another memoird{}", root.display(), pid.map(|it| format!(" (process {it})")).unwrap_or_default())]
    Served {
        /// The root.
        root: PathBuf,
        /// The other daemon's process, when it could be told.
        pid: Option<u32>,
    },
    /// Another process kept the write lock, or made a pass, for 30 seconds.
    #[error("`{}` is being written to by another process", root.display())]
    Busy {
        /// The root.
        root: PathBuf,
    },
    /// The lock cannot be asked for at all.
    #[error("cannot lock `{}`", path.display())]
    Io {
        /// The file or folder to be locked.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Proof that this process is the daemon of a root. Freed on drop.
#[derive(Debug)]
pub struct DaemonLock {
    _file: File,
}

/// Proof that this process alone writes to a root. Freed on drop.
#[derive(Debug)]
pub struct WriteLock {
    _root: File,
}

/// Proof that this process alone makes a pass over a root. Freed on drop.
///
/// Two passes at once would do the same jobs, and each find files that the other one changed.
/// Other writers (an entry in a log) do not need it.
#[derive(Debug)]
pub struct PassLock {
    _file: File,
}

impl DaemonLock {
    /// Takes the daemon's lock of a root.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Served`] at once when another process holds it.
    pub fn acquire(root: &Path, path: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = open_lock_file(path).map_err(io)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(LockError::Served { root: root.to_owned(), pid: await_pid(&mut file) });
            }
            Err(errno) => return Err(io(errno.into())),
        }
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{}", std::process::id())
        };
        write_pid(&mut file).map_err(io)?;
        Ok(Self { _file: file })
    }

    /// Returns the process that holds the daemon's lock, or `None` when nobody does.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Io`] when the lock file is there and cannot be opened.
    pub fn holder(path: &Path) -> Result<Option<u32>, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(io(e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(Some(read_pid(&mut file).unwrap_or(0))),
            Err(errno) => Err(io(errno.into())),
        }
    }
}

fn open_lock_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Reads who holds a lock: it may have been taken this very moment, and its file not yet be filled.
fn await_pid(file: &mut File) -> Option<u32> {
    let started = Instant::now();
    loop {
        if let Some(pid) = file.rewind().ok().and_then(|()| read_pid(file)) {
            return Some(pid);
        }
        if started.elapsed() > PID_WAIT {
            return None;
        }
        std::thread::sleep(POLL / 4);
    }
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

impl PassLock {
    /// Takes the lock on passes, a file in the private folder, waiting at most 30 seconds and not
    /// after `is_stopped` says so.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Busy`] when another pass went on for longer.
    pub fn acquire(
        root: &Path,
        path: &Path,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = open_lock_file(path).map_err(io)?;
        wait_for(&file, root, path, PASS_WAIT, is_stopped)?;
        Ok(Self { _file: file })
    }
}

impl WriteLock {
    /// Takes the write lock of a root, waiting at most 30 seconds.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Busy`] when another process kept it that long.
    pub fn acquire(root: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: root.to_owned(), source };
        let dir = File::open(root).map_err(io)?;
        wait_for(&dir, root, root, WRITE_WAIT, &|| false)?;
        Ok(Self { _root: dir })
    }
}

fn wait_for(
    file: &File,
    root: &Path,
    path: &Path,
    most: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), LockError> {
    let started = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < most && !is_stopped() => {
                std::thread::sleep(POLL);
            }
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(LockError::Busy { root: root.to_owned() });
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                return Err(LockError::Io { path: path.to_owned(), source: errno.into() });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_holds_a_root_and_frees_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.lock");
        assert_eq!(DaemonLock::holder(&path).unwrap(), None);
        let held = DaemonLock::acquire(dir.path(), &path).unwrap();
        let second = DaemonLock::acquire(dir.path(), &path).unwrap_err();
        let own = std::process::id();
        assert!(
            matches!(second, LockError::Served { pid: Some(pid), .. } if pid == own),
            "{second}"
        );
        assert_eq!(DaemonLock::holder(&path).unwrap(), Some(own));
        drop(held);
        assert_eq!(DaemonLock::holder(&path).unwrap(), None);
        drop(DaemonLock::acquire(dir.path(), &path).unwrap());
    }

    #[test]
    fn passes_take_turns_and_stop_waiting_when_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass.lock");
        let first = PassLock::acquire(dir.path(), &path, &|| false).unwrap();
        let stopped = PassLock::acquire(dir.path(), &path, &|| true).unwrap_err();
        assert!(matches!(stopped, LockError::Busy { .. }), "{stopped}");
        let root = dir.path().to_owned();
        let second =
            std::thread::spawn(move || PassLock::acquire(&root, &path, &|| false).map(drop));
        drop(first);
        second.join().unwrap().unwrap();
    }

    #[test]
    fn writers_take_turns() {
        let dir = tempfile::tempdir().unwrap();
        let first = WriteLock::acquire(dir.path()).unwrap();
        let path = dir.path().to_owned();
        let second = std::thread::spawn(move || WriteLock::acquire(&path).map(drop));
        drop(first);
        second.join().unwrap().unwrap();
    }
}
