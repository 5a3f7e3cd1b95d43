//! Locks: which process serves a root, compacts it, or writes to it.
//!
//! All are `flock` locks, which the kernel frees when their holder ends, however it ends; a lock file that is
//! left behind locks nothing. They belong to inodes, so they also work between processes that see the root
//! under different paths: through a link, a bind mount, a container.
//!
//! | lock | on | held | asked for |
//! |---|---|---|---|
//! | [`DaemonLock`] | `.memoird/daemon.lock`, and the memory folder | for life | at once, else 75 |
//! | [`RunLock`] | `.memoird/pass.lock` | for a run or a repair | 30 s, else 75 |
//! | [`WriteLock`] | the root folder | for a commit | 30 s, else 75 |
//! | `StoreNotesLock` | `.memoird/stores.lock` | while what is known of a store is saved | 30 s, else 75 |
//!
//! # Order
//!
//! A process that needs several locks takes them in the order of the table, and the database's own lock last.
//! It never waits for an earlier one while holding a later one, so there are no deadlocks.
//!
//! A person may delete `.memoird/` while a daemon runs, and with it the name of its lock. The
//! memory folder is locked too, where it is not the root itself, so that even then no second
//! daemon starts. The file holds process and boot, for messages only.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read as _, Seek as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::layout::Layout;
use crate::config::trusted_file::is_world_writable;

/// How long a commit waits for another writer.
const WRITE_WAIT: Duration = Duration::from_secs(30);
/// How long a run waits for another one, which may have years of logs to process.
const RUN_WAIT: Duration = Duration::from_secs(30);
/// How long a daemon tries: others hold its lock for an instant to test it.
const DAEMON_WAIT: Duration = Duration::from_millis(200);
/// How often a lock is tried again: a commit takes milliseconds.
const POLL: Duration = Duration::from_millis(20);

/// How long a refused daemon waits for the process id of the holder.
const PID_WAIT: Duration = Duration::from_millis(250);

/// A lock that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another daemon serves the root.
    #[error("`{}` is served by another memoird{}", root.display(), pid.map(|it| format!(" (process {it})")).unwrap_or_default())]
    DaemonRunning {
        /// The root.
        root: PathBuf,
        /// The process id of the other daemon, if it is known.
        pid: Option<u32>,
    },
    /// Another process held the write lock or the run lock for 30 seconds.
    #[error("`{}` is being written to by another process", root.display())]
    Busy {
        /// The root.
        root: PathBuf,
    },
    /// Any user may replace any folder of the root.
    #[error("any user may change `{}` (mode {mode:o}), so memoird neither trusts it nor writes there", root.display())]
    WorldWritable {
        /// The root.
        root: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system failed to lock.
    #[error("cannot lock `{}`", path.display())]
    Io {
        /// The file or folder to be locked.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
}

/// Proof that this process is the daemon of a root. Released on drop.
#[derive(Debug)]
pub struct DaemonLock {
    _file: File,
    _memory: Option<File>,
}

/// Proof that only this process writes to a root. Released on drop.
#[derive(Debug)]
pub struct WriteLock {
    _root: File,
}

/// Proof that only this process runs a compaction of a root. Released on drop.
///
/// Two runs at once would do the same jobs, and each would find files that the other one changed. Other
/// writers (an entry in a log) do not need it.
#[derive(Debug)]
pub struct RunLock {
    _file: File,
}

/// Proof that only this process saves what a root knows of its stores. Released on drop.
#[cfg(feature = "fleet")]
#[derive(Debug)]
pub(crate) struct StoreNotesLock {
    _file: File,
}

impl DaemonLock {
    /// Takes the daemon's lock of a root, whose private folder exists.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::DaemonRunning`] within a second if another process holds it.
    pub fn acquire(layout: &Layout) -> Result<Self, LockError> {
        let path = layout.daemon_lock();
        let io = |source| LockError::Io { path: path.clone(), source };
        let mut file = loop {
            let mut file = open_lock_file(&path).map_err(io)?;
            if !try_lock(&file, &path)? {
                let pid = await_pid(&mut file);
                return Err(LockError::DaemonRunning { root: layout.root().to_owned(), pid });
            }
            // If somebody deleted the file between the two steps, the lock protects nothing.
            if is_file_at(&file, &path) {
                break file;
            }
        };
        refuse_open_folder(layout)?;
        let memory = lock_memory(layout)?;
        let write_pid = |file: &mut File| {
            file.set_len(0)?;
            file.rewind()?;
            writeln!(file, "{} {}", std::process::id(), boot_id())
        };
        write_pid(&mut file).map_err(io)?;
        Ok(Self { _file: file, _memory: memory })
    }

    /// Returns the process that holds the daemon's lock, or `None` if it is free.
    ///
    /// Returns [`LockError::Io`] if the lock file exists and cannot be opened.
    pub(crate) fn holder(path: &Path) -> Result<Option<u32>, LockError> {
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

/// Locks the memory folder, unless it is the root itself, which commits lock.
fn lock_memory(layout: &Layout) -> Result<Option<File>, LockError> {
    let path = layout.full(layout.memory_dir());
    let io = |source| LockError::Io { path: path.clone(), source };
    let memory = match File::open(&path) {
        Ok(memory) => memory,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(io(e)),
    };
    let id = |it: &fs::Metadata| (it.dev(), it.ino());
    let root = fs::metadata(layout.root()).map_err(io)?;
    if id(&memory.metadata().map_err(io)?) == id(&root) {
        return Ok(None);
    }
    if try_lock(&memory, &path)? {
        return Ok(Some(memory));
    }
    Err(LockError::DaemonRunning { root: layout.root().to_owned(), pid: None })
}

/// Tries to take a lock; returns whether it was taken.
fn try_lock(file: &File, path: &Path) -> Result<bool, LockError> {
    match lock_within(file, path, path, DAEMON_WAIT, &|| false) {
        Ok(()) => Ok(true),
        Err(LockError::Busy { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns whether the path still names the file.
fn is_file_at(file: &File, path: &Path) -> bool {
    let id = |it: fs::Metadata| (it.dev(), it.ino());
    let open = file.metadata().map(id);
    matches!((open, fs::metadata(path).map(id)), (Ok(open), Ok(named)) if open == named)
}

fn open_lock_file(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)
}

/// Reads the holder of a lock. It may have taken the lock just now and not have written the file yet.
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

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map(|it| it.trim().to_owned()).unwrap_or_default()
}

/// Reads the holder of a lock; `None` if the file is from an earlier boot.
fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(128).read_to_string(&mut text).ok()?;
    let mut words = text.split_whitespace();
    let pid = words.next()?.parse().ok()?;
    words.next().is_none_or(|boot| boot == boot_id()).then_some(pid)
}

impl RunLock {
    /// Takes the run lock, a file in the private folder. Waits at most 30 seconds, and stops when `is_stopped`
    /// returns true.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Busy`] if another run holds it for longer.
    pub fn acquire(
        root: &Path,
        path: &Path,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = open_lock_file(path).map_err(io)?;
        lock_within(&file, root, path, RUN_WAIT, is_stopped)?;
        Ok(Self { _file: file })
    }

    /// Returns whether a run or an undo is in progress. The lock decides, because a process id may be reused
    /// and a killed process may linger.
    ///
    /// Returns [`LockError::Io`] if the lock file exists and cannot be tested.
    pub(crate) fn is_held(path: &Path) -> Result<bool, LockError> {
        let io = |source| LockError::Io { path: path.to_owned(), source };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(io(e)),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(false),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(errno) => Err(io(errno.into())),
        }
    }
}

#[cfg(feature = "fleet")]
impl StoreNotesLock {
    /// Takes the lock of a root, whose private folder exists. Waits at most 30 seconds.
    ///
    /// Returns [`LockError::Busy`] if another process holds it for longer.
    pub(crate) fn acquire(layout: &Layout) -> Result<Self, LockError> {
        let path = layout.private_dir().join("stores.lock");
        let io = |source| LockError::Io { path: path.clone(), source };
        let file = open_lock_file(&path).map_err(io)?;
        lock_within(&file, layout.root(), &path, WRITE_WAIT, &|| false)?;
        Ok(Self { _file: file })
    }
}

impl WriteLock {
    /// Takes the write lock of a root, waiting at most 30 seconds.
    ///
    /// # Errors
    ///
    /// Returns [`LockError::Busy`] if another process holds it for longer, and [`LockError::WorldWritable`]
    /// for a root in which any user may replace any file.
    pub fn acquire(root: &Path) -> Result<Self, LockError> {
        let io = |source| LockError::Io { path: root.to_owned(), source };
        let dir = File::open(root).map_err(io)?;
        let mode = dir.metadata().map_err(io)?.mode() & 0o7777;
        if is_world_writable(mode) {
            return Err(LockError::WorldWritable { root: root.to_owned(), mode });
        }
        lock_within(&dir, root, root, WRITE_WAIT, &|| false)?;
        Ok(Self { _root: dir })
    }
}

/// Refuses a root whose memory folder others may write: what they add there would be read as logs.
///
/// # Errors
///
/// Returns [`LockError::WorldWritable`].
pub fn refuse_open_folder(layout: &Layout) -> Result<(), LockError> {
    let path = layout.full(layout.memory_dir());
    match fs::metadata(&path) {
        Ok(it) if it.mode() & 0o002 != 0 => {
            Err(LockError::WorldWritable { root: path, mode: it.mode() & 0o7777 })
        }
        // Whoever reads or writes there reports what is wrong.
        _ => Ok(()),
    }
}

fn lock_within(
    file: &File,
    root: &Path,
    path: &Path,
    wait_max: Duration,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), LockError> {
    let started = Instant::now();
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK) if started.elapsed() < wait_max && !is_stopped() => {
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

    /// Creates a root with a memory folder and a private one.
    fn root() -> (tempfile::TempDir, Layout) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("memory")).unwrap();
        fs::create_dir(dir.path().join(".memoird")).unwrap();
        let layout = Layout::new(dir.path(), "memory");
        (dir, layout)
    }

    #[track_caller]
    fn check_served(layout: &Layout, pid: Option<u32>) {
        let second = DaemonLock::acquire(layout).unwrap_err();
        assert!(
            matches!(second, LockError::DaemonRunning { pid: found, .. } if found == pid),
            "{second}"
        );
    }

    #[test]
    fn one_daemon_holds_a_root_and_frees_it() {
        let (_dir, layout) = root();
        let path = layout.daemon_lock();
        assert_eq!(DaemonLock::holder(&path).unwrap(), None);
        let held = DaemonLock::acquire(&layout).unwrap();
        let own = std::process::id();
        check_served(&layout, Some(own));
        assert_eq!(DaemonLock::holder(&path).unwrap(), Some(own));
        drop(held);
        assert_eq!(DaemonLock::holder(&path).unwrap(), None);
        drop(DaemonLock::acquire(&layout).unwrap());
    }

    #[test]
    fn a_daemon_is_found_through_a_link_and_without_its_lock_file() {
        let (dir, layout) = root();
        let _held = DaemonLock::acquire(&layout).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        check_served(&Layout::new(&link, "memory"), Some(std::process::id()));
        fs::remove_dir_all(layout.private_dir()).unwrap();
        fs::create_dir(layout.private_dir()).unwrap();
        check_served(&layout, None);
    }

    #[test]
    fn a_flat_root_can_be_written_while_it_is_served() {
        let (dir, _) = root();
        let layout = Layout::new(dir.path(), ".");
        let _held = DaemonLock::acquire(&layout).unwrap();
        drop(WriteLock::acquire(layout.root()).unwrap());
    }

    #[test]
    fn the_holder_of_an_earlier_boot_is_not_reported() {
        let (_dir, layout) = root();
        let held = DaemonLock::acquire(&layout).unwrap();
        let mut file = OpenOptions::new().write(true).open(layout.daemon_lock()).unwrap();
        writeln!(file, "4711 00000000-0000-0000-0000-000000000000").unwrap();
        check_served(&layout, None);
        drop(held);
    }

    #[test]
    fn a_world_writable_root_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let (dir, _) = root();
        for (mode, refused) in [(0o777, true), (0o702, true), (0o1777, false), (0o775, false)] {
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
            let lock = WriteLock::acquire(dir.path());
            assert_eq!(matches!(lock, Err(LockError::WorldWritable { .. })), refused, "{mode:o}");
        }
    }

    #[test]
    fn runs_take_turns_and_stop_waiting_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pass.lock");
        let first = RunLock::acquire(dir.path(), &path, &|| false).unwrap();
        let stopped = RunLock::acquire(dir.path(), &path, &|| true).unwrap_err();
        assert!(matches!(stopped, LockError::Busy { .. }), "{stopped}");
        let root = dir.path().to_owned();
        let second =
            std::thread::spawn(move || RunLock::acquire(&root, &path, &|| false).map(drop));
        assert!(RunLock::is_held(&dir.path().join("pass.lock")).unwrap());
        drop(first);
        second.join().unwrap().unwrap();
        assert!(!RunLock::is_held(&dir.path().join("pass.lock")).unwrap());
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
