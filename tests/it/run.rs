//! `memoird run`: a real process, real signals, and a real notification socket.
//!
//! No test sleeps for a fixed time: it waits for a notification or a condition, and fails after
//! [`PATIENCE`]. A run writes files before it has ended: assertions about the end of a run need
//! [`Daemon::await_idle`] as well.

use std::{
    fs,
    io::{ErrorKind, Read as _},
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::support::{NOW, Root, write_file};

/// How long a test waits for an event before it fails. A machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// How long a stop may take: it waits only for the current job.
pub(crate) const STOP: Duration = Duration::from_secs(15);

/// A running daemon; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    /// Notifications from the socket, read on their own thread so that the daemon never blocks.
    receiver: Receiver<String>,
    /// All notifications that the test has seen so far.
    notifications: Vec<String>,
    /// Reads the log on its own thread: a full pipe would block the daemon.
    reader: Option<JoinHandle<String>>,
    log: String,
    clock: PathBuf,
    root: PathBuf,
}

impl Daemon {
    /// Starts `memoird run` and waits until it is ready.
    pub(crate) fn start(root: &Root) -> Self {
        Self::start_at(root, NOW)
    }

    /// Starts `memoird run` with its clock in a file and waits until it is ready.
    pub(crate) fn start_at(root: &Root, now: &str) -> Self {
        let mut daemon = Self::spawn(root, now, &[]);
        daemon.await_notification("READY=1");
        daemon
    }

    /// Starts `memoird run` with its clock in a file and additional environment variables.
    pub(crate) fn spawn(root: &Root, now: &str, variables: &[(&str, &str)]) -> Self {
        let program = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
        Self::spawn_by(program, root, now, variables)
    }

    /// Starts `memoird run` through another program, whose last argument is the path of memoird.
    pub(crate) fn spawn_by(
        mut program: Command,
        root: &Root,
        now: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let clock = root.home("now");
        write_file(&clock, now);
        let path = root.home("notify.sock");
        drop(fs::remove_file(&path));
        let socket = UnixDatagram::bind(&path).unwrap();
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(length) = socket.recv(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..length]).trim_end().to_owned();
                if sender.send(text).is_err() {
                    break;
                }
            }
        });
        program
            .arg("run")
            .env_clear()
            .env("HOME", root.home(""))
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", format!("@{}", clock.display()))
            .env("MEMOIRD_WISDOM_DIGEST", "false")
            .env("MEMOIRD_LOG", "debug")
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "200000")
            .envs(variables.iter().copied())
            .current_dir(root.path(""))
            .stderr(Stdio::piped());
        let mut child = loop {
            match program.spawn() {
                // Another test's child process may briefly have this program open for writing.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                child => break child.unwrap(),
            }
        };
        let mut stderr = child.stderr.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut log = Vec::new();
            drop(stderr.read_to_end(&mut log));
            String::from_utf8_lossy(&log).into_owned()
        });
        let (notifications, log) = (Vec::new(), String::new());
        let root = root.path("");
        Self { child, receiver, notifications, reader: Some(reader), log, clock, root }
    }

    /// Waits for the next notification with a line that begins with `start`, and returns the line.
    #[track_caller]
    pub(crate) fn await_notification(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let Ok(text) = self.receiver.recv_timeout(PATIENCE) else { break };
            self.notifications.push(text.clone());
            if let Some(found) = text.lines().find(|it| it.starts_with(start)) {
                return found.to_owned();
            }
        }
        let log = self.kill();
        panic!("no notification `{start}`, but {:?}\n{log}", self.notifications);
    }

    /// Waits until `done` returns true.
    #[track_caller]
    pub(crate) fn await_that(&mut self, what: &str, result: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !result() {
            assert!(Instant::now() < deadline, "timed out: {what}\n{}", self.kill());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for this many turns of the daemon's loop, a tenth of a second each.
    #[track_caller]
    pub(crate) fn await_pings(&mut self, pings: usize) {
        // Earlier pings do not count.
        self.notifications.extend(self.receiver.try_iter());
        for _ in 0..pings {
            self.await_notification("WATCHDOG=1");
        }
    }

    #[track_caller]
    pub(crate) fn await_file(&mut self, path: &Path) {
        self.await_that(&format!("{} exists", path.display()), || path.exists());
    }

    /// Waits until at least one run has ended and none is active or pending. After waiting for a file of a
    /// run, this waits for the end of that run, since the daemon records that it is busy before it starts.
    #[track_caller]
    pub(crate) fn await_idle(&mut self) {
        self.await_runs(1);
    }

    /// Does something that must cause a run, and waits until that run has ended and the daemon is idle.
    #[track_caller]
    pub(crate) fn await_run_after(&mut self, cause: impl FnOnce(&Self)) {
        let before = runs_ended(&self.root, self.pid()).map_or(0, |it| it.0);
        cause(self);
        self.await_runs(before + 1);
    }

    #[track_caller]
    fn await_runs(&mut self, count: u64) {
        let (root, pid) = (self.root.clone(), self.pid());
        self.await_that("the daemon is idle", || {
            runs_ended(&root, pid).is_some_and(|(ended, is_busy)| ended >= count && !is_busy)
        });
    }

    /// Calls `act` while the daemon is stopped, so that it sees only the complete change.
    pub(crate) fn meanwhile_stopped<T>(&self, act: impl FnOnce() -> T) -> T {
        self.signal(Signal::STOP);
        // The signal takes a moment to reach all threads.
        while !is_stopped(self.pid()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let result = act();
        self.signal(Signal::CONT);
        result
    }

    pub(crate) fn set_clock(&self, now: &str) {
        let next = self.clock.with_extension("next");
        write_file(&next, now);
        fs::rename(next, &self.clock).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends the signal and returns the exit status, the time it took, and the log.
    pub(crate) fn stop(mut self, signal: Signal) -> (ExitStatus, Duration, String) {
        let started = Instant::now();
        self.signal(signal);
        let status = self.child.wait().unwrap();
        let duration = started.elapsed();
        (status, duration, self.log())
    }

    /// Waits until the daemon has ended by itself, and returns its log.
    #[track_caller]
    pub(crate) fn await_end(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the daemon does not end\n{}", self.kill());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.log()
    }

    /// Kills the daemon and returns its log.
    pub(crate) fn kill(&mut self) -> String {
        drop(self.child.kill());
        drop(self.child.wait());
        self.log()
    }

    /// Returns the log of a process that has ended.
    pub(crate) fn log(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            self.log = reader.join().unwrap();
        }
        self.log.clone()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns how many runs of a root have ended, and whether one is active or pending; `None` before that
/// process has written its state.
fn runs_ended(root: &Path, pid: u32) -> Option<(u64, bool)> {
    let text = fs::read(root.join(".memoird/daemon.json")).ok()?;
    let output: Value = serde_json::from_slice(&text).unwrap();
    (output["pid"] == pid).then(|| (output["passes"].as_u64().unwrap(), output["busy"] != false))
}

/// Returns whether all threads of a process are stopped.
fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let state = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    tasks.flatten().filter_map(state).all(|it| it == 'T')
}

/// Copies the sample logs whose names begin with one of `names` into a folder.
pub(crate) fn drop_logs(root: &Root, folder: &str, names: &[&str]) {
    let journal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/mara/memory");
    for entry in fs::read_dir(journal).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if names.iter().any(|it| name.starts_with(it)) {
            write_file(
                &root.path(&format!("{folder}/{name}")),
                &fs::read_to_string(entry.path()).unwrap(),
            );
        }
    }
}

/// Reads the state file of the daemon.
pub(crate) fn state(root: &Root) -> Value {
    serde_json::from_str(&root.read(".memoird/daemon.json")).unwrap()
}

/// Makes a configured root without logs.
pub(crate) fn fresh(yaml: &str) -> Root {
    let root = Root::empty("mara");
    root.write("memoird.yaml", &format!("zone: Europe/Berlin\n{yaml}"));
    root
}

#[test]
fn new_logs_are_compacted_without_a_restart() {
    // At first not even the memory folder exists.
    let root = fresh("");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "memory", &["2026-03-1"]);
    daemon.await_file(&root.path("memory/weekly/2026-W11.md"));
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    // Written to another folder and renamed, as careful programs do.
    drop_logs(&root, "aside", &["2026-03-2", "2026-03-3"]);
    for entry in fs::read_dir(root.path("aside")).unwrap() {
        let entry = entry.unwrap();
        fs::rename(entry.path(), root.path("memory").join(entry.file_name())).unwrap();
    }
    daemon.await_file(&root.path("memory/weekly/2026-W13.md"));
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    let state = state(&root);
    assert_eq!(state["pid"], daemon.pid());
    assert_eq!(state["mode"], "inotify");
    assert_eq!(state["missed"], 0);
    assert_eq!(root.mode(".memoird/daemon.json"), 0o600);
    let (status, duration, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(duration < STOP, "{duration:?}\n{log}");
    assert!(log.contains("memory/weekly/2026-W13.md"), "{log}");
    let after = root.run(&["compact"]).ok();
    assert!(after.stderr.starts_with("nothing to do"), "{after}");
}

#[test]
fn periods_due_before_the_start_are_compacted_newest_first() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    daemon.await_file(&root.path("memory/monthly/2026-03.md"));
    let (status, duration, log) = daemon.stop(Signal::INT);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(duration < STOP, "{duration:?}\n{log}");
    // The newest weeks, which are most likely to be read, are written first.
    let weeks = log.lines().filter(|it| it.contains("job=\"weekly\""));
    let weeks: Vec<&str> = weeks.filter_map(|it| it.split_once("period=\"")?.1.get(..8)).collect();
    assert!(weeks.len() > 10 && weeks.is_sorted_by(|a, b| a > b), "{weeks:?}");
    // The daemon's log quotes no line of the daily logs.
    for text in
        root.files().iter().filter(|(name, _)| name.starts_with("memory/2026")).map(|it| it.1)
    {
        let quoted = text.lines().find(|line| line.len() > 40 && log.contains(*line));
        assert_eq!(quoted, None);
    }
}

#[test]
fn a_damaged_database_is_repaired_at_start() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let files = root.files();
    // A valid row that differs from the one that was written.
    let database = rusqlite::Connection::open(root.path(".memoird/lineage.db")).unwrap();
    let changed =
        database.execute("UPDATE run SET started = '2001-01-01T00:00:00Z' WHERE id = 1", []);
    assert_eq!(changed.unwrap(), 1);
    drop(database);
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("the database was damaged"), "{log}");
    root.run(&["doctor"]).ok();
    assert_eq!(root.files(), files);
}

#[test]
fn work_interrupted_by_a_stop_continues_at_the_next_start() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    // The newest week is written first.
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    let (status, duration, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(duration < STOP, "{duration:?}\n{log}");
    let expected = Root::new("mara");
    expected.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    assert_eq!(root.files(), expected.files());
}

#[test]
fn after_a_kill_the_daemon_starts_again_and_completes_the_work() {
    let root = Root::new("jonas");
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    let log = daemon.kill();
    assert!(!log.contains("stopped"), "{log}");
    let expected = Root::new("jonas");
    expected.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    assert_eq!(root.files(), expected.files());
}

#[test]
fn without_on_change_runs_follow_the_schedule() {
    let root = fresh("schedule: {on_change: false}\n");
    root.write("memory/README", "");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "memory", &["2026-03-1"]);
    // The change is recorded, and no run follows.
    let is_noticed = || !state(&root)["last_event"].is_null();
    daemon.await_that("the new logs are noticed", is_noticed);
    daemon.await_idle();
    assert!(!root.path("memory/weekly").exists());
    // The schedule of `extract` comes before that of `weekly`.
    daemon.await_run_after(|it| it.set_clock("2026-04-14T02:31:00+02:00"));
    assert!(!root.path("memory/weekly").exists());
    daemon.set_clock("2026-04-14T03:00:00+02:00");
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
}

#[test]
fn a_week_is_summarized_when_it_closes_regardless_of_the_schedule() {
    let root = fresh(
        "schedule: {on_change: false, weekly: '0 12 * * 3'}\ncompaction: {open_week: false}\n",
    );
    drop_logs(&root, "memory", &["2026-03-1"]);
    let mut daemon = Daemon::start_at(&root, "2026-03-15T20:00:00+01:00");
    daemon.await_idle();
    let closes = root.path("memory/weekly/2026-W11.md");
    assert!(!closes.exists());
    daemon.set_clock("2026-03-16T02:00:01+01:00");
    daemon.await_file(&closes);
}

#[test]
fn a_second_daemon_exits_at_once_and_names_the_first() {
    let root = fresh("");
    let daemon = Daemon::start(&root);
    let started = Instant::now();
    let ran = root.run(&["run"]);
    assert!(started.elapsed() < Duration::from_secs(10), "the second daemon waits");
    assert_eq!(ran.code, 75, "{ran}");
    let pid = format!("(process {})", daemon.pid());
    assert!(ran.stderr.contains("~/mara") && ran.stderr.contains(&pid), "{ran}");
    assert_eq!(ran.stdout, "");
}

#[test]
fn other_commands_work_while_the_daemon_runs() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    for n in 0..3 {
        root.run(&["log", &format!("Entry {n} written while the daemon is at work.")]).ok();
    }
    // `compact` waits up to half a minute for the daemon's run.
    let deadline = Instant::now() + PATIENCE;
    while root.run(&["compact"]).code == 75 && Instant::now() < deadline {}
    root.run(&["compact"]).ok();
    daemon.await_idle();
    let text = root.read("memory/2026-04-13.md");
    assert_eq!(text.matches("written while the daemon is at work").count(), 3, "{text}");
    let status = root.run(&["status", "--json"]).json_as("status");
    assert_eq!(status["daemon"]["pid"], daemon.pid());
    assert_eq!(status["watcher"]["mode"], "inotify");
    let (status, _, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(!log.contains("ERROR"), "{log}");
}

#[test]
fn compact_waits_for_another_run_and_says_so() {
    use memoird::internals::store::fs::{layout::Layout, lock::RunLock};
    let root = Root::small();
    root.run(&["compact"]).ok();
    root.append("memory/2026-03-10.md", "- Backfill of 2020 begun, 40 GB\n");
    let layout = Layout::new(root.path(""), "memory");
    let lock = RunLock::acquire(layout.root(), &layout.run_lock(), &|| false).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("memoird"))
        .arg("compact")
        .env_clear()
        .env("HOME", root.home(""))
        .env("MEMOIRD_NOW", NOW)
        .current_dir(root.path(""))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let words = "another process is compacting this folder; waiting";
    let (mut output, mut buffer) = (String::new(), [0; 4096]);
    while !output.contains(words) {
        let length = child.stderr.as_mut().unwrap().read(&mut buffer).unwrap();
        assert!(length > 0, "{output}");
        output += &String::from_utf8_lossy(&buffer[..length]);
    }
    // `log` does not wait.
    root.run(&["log", "Written while others are at work"]).ok();
    drop(lock);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(root.read("memory/weekly/2026-W11.md").contains("40 GB"));
}

#[test]
fn a_hangup_reloads_the_configuration() {
    let root = Root::new("mara");
    let other = root.home("other");
    let config = root.home(".config/memoird/config.yaml");
    write_file(&config, "roots: [{path: ~/mara}]\n");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    // An invalid configuration is refused, and the daemon continues with the old one.
    write_file(&config, "rots: [{path: ~/mara}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_notification("RELOADING=1");
    daemon.await_notification("READY=1");
    // A missing folder blocks nothing, and is watched once it exists.
    write_file(&config, "roots: [{path: ~/mara}, {path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_notification("STATUS=watching 1 of 2 memory folders");
    drop_logs(&root, "../other/memory", &["2026-03-1"]);
    daemon.signal(Signal::HUP);
    daemon.await_file(&other.join("memory/weekly/2026-W12.md"));
    // A folder removed from the configuration is unlocked for another daemon.
    write_file(&config, "roots: [{path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_notification("STATUS=watching 1 of 1 memory folders");
    let lock = root.path(".memoird/daemon.lock");
    assert!(fs::File::open(lock).unwrap().try_lock().is_ok());
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("`rots`") || log.contains("rots:"), "{log}");
}

#[test]
fn the_service_manager_is_notified() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    // READY comes before the first long run, during which the watchdog is still notified.
    let looking = daemon.await_notification("STATUS=checking");
    assert!(looking.contains("; watching 1 of 1 memory folders; "), "{looking}");
    assert!(
        !daemon.notifications.iter().any(|it| it.starts_with("STATUS=watching")),
        "{:?}",
        daemon.notifications
    );
    daemon.notifications.clear();
    let idle = daemon.await_notification("STATUS=watching");
    assert!(daemon.notifications.iter().any(|it| it == "WATCHDOG=1"), "{:?}", daemon.notifications);
    assert_eq!(
        idle,
        "STATUS=watching 1 of 1 memory folders; nothing due; next 2026-04-14 02:00 CEST"
    );
    daemon.await_notification("WATCHDOG=1");
    daemon.signal(Signal::TERM);
    daemon.await_notification("STOPPING=1");
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn invalid_settings_are_refused_at_start() {
    let check = |yaml: &str, code: i32, words: &str| {
        let ran = fresh(yaml).run(&["run"]);
        assert_eq!(ran.code, code, "{ran}");
        assert!(ran.stderr.contains(words), "{ran}");
    };
    check("grace: soon\n", 78, "memoird.yaml");
    check("writer: another-host\n", 75, "written by the host `another-host`");
    let ran = fresh("").run(&["run", "--set", "engine=model", "--set", "model.provider=anthropic"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert!(ran.stderr.contains("no key"), "{ran}");
    let root = Root::empty("mara");
    let ran = root.run(&["run", "--root", "nowhere"]);
    assert_eq!(ran.code, 2, "{ran}");
}

#[test]
fn several_folders_are_compacted_by_one_daemon() {
    let root = Root::new("mara");
    let journal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/jonas/memory");
    for entry in fs::read_dir(journal).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        write_file(
            &root.home(&format!("jonas/memory/{name}")),
            &fs::read_to_string(entry.path()).unwrap(),
        );
    }
    let config = root.home(".config/memoird/config.yaml");
    write_file(&config, "roots: [{path: ~/gone}, {path: ~/jonas}, {path: ~/mara}]\n");
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_file(&root.home("jonas/WISDOM.md"));
    daemon.await_file(&root.home("jonas/memory/weekly/2026-W14.md"));
    assert!(!root.home("gone").exists());
}

#[test]
fn a_mass_disappearance_pauses_the_daemon_until_the_files_are_back() {
    let root = Root::empty("six");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    let logs: Vec<String> = (2..8).map(|day| format!("memory/2026-03-0{day}.md")).collect();
    for log in &logs {
        root.write(log, "- Measured 12 ms at the new gate\n");
    }
    root.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let state_file = root.path(".memoird/daemon.json");
    let state_contains = |what: &str| {
        let state_file = state_file.clone();
        let what = what.to_owned();
        move || fs::read_to_string(&state_file).is_ok_and(|it| it.contains(&what))
    };
    daemon.meanwhile_stopped(|| {
        for log in &logs {
            fs::rename(root.path(log), root.home(&log.replace('/', "_"))).unwrap();
        }
    });
    daemon.await_that("the daemon is paused", state_contains("known files are gone"));
    let status = root.run(&["status", "--json"]).json_as("status");
    assert!(status["daemon"]["paused"].as_str().unwrap().starts_with("6 of "), "{status}");
    let before = root.files();
    daemon.meanwhile_stopped(|| {
        for log in &logs {
            fs::rename(root.home(&log.replace('/', "_")), root.path(log)).unwrap();
        }
    });
    daemon.await_that("the daemon continues", state_contains("\"paused\":null"));
    let mut after = root.files();
    after.retain(|it, _| !logs.contains(it));
    assert_eq!(after, before);
}
