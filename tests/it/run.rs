//! `memoird run`: a real process, real signals, a real service manager's socket.
//!
//! Nothing waits for a time to pass: a test awaits a message on the socket or a file, and fails
//! when it has not come by [`PATIENCE`]. A file that a pass writes is there before the pass has ended:
//! what is asserted of the end awaits [`Daemon::await_idle`] too.

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

use super::support::{NOW, Root};

/// How long a test waits before it says that something does not happen. A machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// How long a stop may take: it waits for the job at hand, and for nothing else.
pub(crate) const STOP: Duration = Duration::from_secs(15);

/// A daemon at work; killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    /// What the socket received, read on a thread of its own: nobody waits for a test to read.
    heard: Receiver<String>,
    /// All messages so far.
    told: Vec<String>,
    /// Its log, read on a thread of its own: a pipe that nobody reads would stop it.
    reader: Option<JoinHandle<String>>,
    log: String,
    clock: PathBuf,
    root: PathBuf,
}

impl Daemon {
    /// Starts `memoird run`, and waits until it is ready.
    pub(crate) fn start(root: &Root) -> Self {
        Self::start_at(root, NOW)
    }

    /// Starts `memoird run` with its clock in a file, and waits until it is ready.
    pub(crate) fn start_at(root: &Root, now: &str) -> Self {
        let mut daemon = Self::spawn(root, now, &[]);
        daemon.await_told("READY=1");
        daemon
    }

    /// Starts `memoird run` with its clock in a file and with more in its environment.
    pub(crate) fn spawn(root: &Root, now: &str, variables: &[(&str, &str)]) -> Self {
        let program = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
        Self::spawn_by(program, root, now, variables)
    }

    /// Starts it through another program, whose arguments end with its name.
    pub(crate) fn spawn_by(
        mut program: Command,
        root: &Root,
        now: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let clock = root.home("now");
        write(&clock, now);
        let path = root.home("notify.sock");
        drop(fs::remove_file(&path));
        let socket = UnixDatagram::bind(&path).unwrap();
        let (sender, heard) = channel();
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
            .env("MEMOIRD_LOG", "debug")
            .env("NOTIFY_SOCKET", &path)
            .env("WATCHDOG_USEC", "200000")
            .envs(variables.iter().copied())
            .current_dir(root.path(""))
            .stderr(Stdio::piped());
        let mut child = loop {
            match program.spawn() {
                // Another test starts a process, to which this program is still open for writing.
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
        let (told, log) = (Vec::new(), String::new());
        let root = root.path("");
        Self { child, heard, told, reader: Some(reader), log, clock, root }
    }

    /// Waits for the next message that begins with `start`.
    #[track_caller]
    pub(crate) fn await_told(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let Ok(text) = self.heard.recv_timeout(PATIENCE) else { break };
            self.told.push(text.clone());
            if let Some(found) = text.lines().find(|it| it.starts_with(start)) {
                return found.to_owned();
            }
        }
        let log = self.kill();
        panic!("not told `{start}`, but {:?}\n{log}", self.told);
    }

    /// Waits until `done` holds.
    #[track_caller]
    pub(crate) fn await_that(&mut self, what: &str, done: impl Fn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < deadline, "not so: {what}\n{}", self.kill());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits while the loop turns a number of times, which takes a tenth of a second each.
    #[track_caller]
    pub(crate) fn await_pings(&mut self, pings: usize) {
        // What was told before now says nothing of later.
        self.told.extend(self.heard.try_iter());
        for _ in 0..pings {
            self.await_told("WATCHDOG=1");
        }
    }

    #[track_caller]
    pub(crate) fn await_file(&mut self, path: &Path) {
        self.await_that(&format!("{} is there", path.display()), || path.exists());
    }

    /// Waits until a first pass has ended, and none is at work or wanted. Whoever awaits what a pass makes
    /// and then this sees all that the pass made, since it is said before a pass begins that it does.
    #[track_caller]
    pub(crate) fn await_idle(&mut self) {
        self.await_passes(1);
    }

    /// Does something that must cause a pass, and waits until such a one has ended and all is quiet.
    #[track_caller]
    pub(crate) fn await_pass_after(&mut self, cause: impl FnOnce(&Self)) {
        let before = passes(&self.root, self.pid()).map_or(0, |it| it.0);
        cause(self);
        self.await_passes(before + 1);
    }

    #[track_caller]
    fn await_passes(&mut self, count: u64) {
        let (root, pid) = (self.root.clone(), self.pid());
        self.await_that("it has done what it wants to do", || {
            passes(&root, pid).is_some_and(|(ended, is_busy)| ended >= count && !is_busy)
        });
    }

    /// Does something at which the daemon cannot look before it is whole.
    pub(crate) fn meanwhile_stopped<T>(&self, act: impl FnOnce() -> T) -> T {
        self.signal(Signal::STOP);
        // The signal is on its way to threads that are at work.
        while !is_stopped(self.pid()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let done = act();
        self.signal(Signal::CONT);
        done
    }

    pub(crate) fn set_clock(&self, now: &str) {
        let next = self.clock.with_extension("next");
        write(&next, now);
        fs::rename(next, &self.clock).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Asks it to end, and returns how it ended, after how long, and its log.
    pub(crate) fn stop(mut self, signal: Signal) -> (ExitStatus, Duration, String) {
        let begun = Instant::now();
        self.signal(signal);
        let status = self.child.wait().unwrap();
        let took = begun.elapsed();
        (status, took, self.log())
    }

    /// Waits until it has ended by itself, and returns its log.
    #[track_caller]
    pub(crate) fn await_end(&mut self) -> String {
        let deadline = Instant::now() + PATIENCE;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end\n{}", self.kill());
            std::thread::sleep(Duration::from_millis(20));
        }
        self.log()
    }

    /// Ends it the hard way, and returns its log.
    pub(crate) fn kill(&mut self) -> String {
        drop(self.child.kill());
        drop(self.child.wait());
        self.log()
    }

    /// Reads the log of a process that has ended.
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

/// Returns how many passes over a root have ended, and whether one is at work or wanted; `None` before
/// that process has said so.
fn passes(root: &Path, pid: u32) -> Option<(u64, bool)> {
    let text = fs::read(root.join(".memoird/daemon.json")).ok()?;
    let said: Value = serde_json::from_slice(&text).unwrap();
    (said["pid"] == pid).then(|| (said["passes"].as_u64().unwrap(), said["busy"] != false))
}

/// Returns whether no thread of a process runs.
fn is_stopped(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let state = |task: fs::DirEntry| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        stat.rsplit_once(") ")?.1.chars().next()
    };
    tasks.flatten().filter_map(state).all(|it| it == 'T')
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(path, text).unwrap();
}

/// Copies the sample logs whose names begin with one of `names` into a folder that has none.
pub(crate) fn drop_logs(root: &Root, folder: &str, names: &[&str]) {
    let journal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/mara/memory");
    for entry in fs::read_dir(journal).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if names.iter().any(|it| name.starts_with(it)) {
            write(
                &root.path(&format!("{folder}/{name}")),
                &fs::read_to_string(entry.path()).unwrap(),
            );
        }
    }
}

/// Reads what the daemon says of itself.
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
fn logs_that_are_dropped_in_become_weeks_without_a_restart() {
    // Not even the memory folder is there at first.
    let root = fresh("");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "memory", &["2026-03-1"]);
    daemon.await_file(&root.path("memory/weekly/2026-W11.md"));
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    // Written aside and renamed, as careful programs do.
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
    let (status, took, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < STOP, "{took:?}\n{log}");
    assert!(log.contains("memory/weekly/2026-W13.md"), "{log}");
    let after = root.run(&["compact"]).ok();
    assert!(after.stderr.starts_with("nothing to do"), "{after}");
}

#[test]
fn what_fell_due_while_it_was_off_is_done_at_start() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    daemon.await_file(&root.path("memory/monthly/2026-03.md"));
    let (status, took, log) = daemon.stop(Signal::INT);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < STOP, "{took:?}\n{log}");
    // What is most likely to be read is there first.
    let weeks = log.lines().filter(|it| it.contains("job=\"weekly\""));
    let weeks: Vec<&str> = weeks.filter_map(|it| it.split_once("period=\"")?.1.get(..8)).collect();
    assert!(weeks.len() > 10 && weeks.is_sorted_by(|a, b| a > b), "{weeks:?}");
    // No word of a log stands in ours.
    for text in
        root.files().iter().filter(|(name, _)| name.starts_with("memory/2026")).map(|it| it.1)
    {
        let quoted = text.lines().find(|line| line.len() > 40 && log.contains(*line));
        assert_eq!(quoted, None);
    }
}

#[test]
fn what_a_disk_did_to_the_database_meanwhile_is_mended_at_start() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let files = root.files();
    // A row that reads well, and is not the one that was written.
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
fn a_stop_in_the_middle_leaves_the_rest_to_the_next_start() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    // The newest is made first.
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    let (status, took, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < STOP, "{took:?}\n{log}");
    let whole = Root::new("mara");
    whole.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    assert_eq!(root.files(), whole.files());
}

#[test]
fn after_a_kill_it_starts_at_once() {
    let root = Root::new("jonas");
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    let log = daemon.kill();
    assert!(!log.contains("stopped"), "{log}");
    let whole = Root::new("jonas");
    whole.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    assert_eq!(root.files(), whole.files());
}

#[test]
fn without_on_change_nothing_happens_before_a_tick() {
    let root = fresh("schedule: {on_change: false}\n");
    root.write("memory/README", "");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "memory", &["2026-03-1"]);
    // The end of the burst is noted, and no pass follows.
    let seen = || !state(&root)["last_event"].is_null();
    daemon.await_that("the drop is noticed", seen);
    daemon.await_idle();
    assert!(!root.path("memory/weekly").exists());
    // The line of the days comes before that of the weeks.
    daemon.await_pass_after(|it| it.set_clock("2026-04-14T02:31:00+02:00"));
    assert!(!root.path("memory/weekly").exists());
    daemon.set_clock("2026-04-14T03:00:00+02:00");
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
}

#[test]
fn a_week_that_closes_between_two_ticks_is_made_as_it_closes() {
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
fn a_second_daemon_ends_at_once_and_names_the_first() {
    let root = fresh("");
    let daemon = Daemon::start(&root);
    let begun = Instant::now();
    let ran = root.run(&["run"]);
    assert!(begun.elapsed() < Duration::from_secs(10), "it waits");
    assert_eq!(ran.code, 75, "{ran}");
    let pid = format!("(process {})", daemon.pid());
    assert!(ran.stderr.contains("~/mara") && ran.stderr.contains(&pid), "{ran}");
    assert_eq!(ran.stdout, "");
}

#[test]
fn other_commands_work_beside_it() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    for n in 0..3 {
        root.run(&["log", &format!("Entry {n} written while the daemon is at work.")]).ok();
    }
    // A pass waits for the one of the daemon, for half a minute.
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
fn who_types_compact_meanwhile_is_told_and_waits() {
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
    let (mut said, mut more) = (String::new(), [0; 4096]);
    while !said.contains(words) {
        let length = child.stderr.as_mut().unwrap().read(&mut more).unwrap();
        assert!(length > 0, "{said}");
        said += &String::from_utf8_lossy(&more[..length]);
    }
    // An entry of the log waits for nobody.
    root.run(&["log", "Written while others are at work"]).ok();
    drop(lock);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(root.read("memory/weekly/2026-W11.md").contains("40 GB"));
}

#[test]
fn a_hangup_reads_the_configuration_anew() {
    let root = Root::new("mara");
    let other = root.home("other");
    let config = root.home(".config/memoird/config.yaml");
    write(&config, "roots: [{path: ~/mara}]\n");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    // One that is wrong is refused, and the daemon goes on as before.
    write(&config, "rots: [{path: ~/mara}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_told("RELOADING=1");
    daemon.await_told("READY=1");
    // A folder that is not there yet holds nothing up, and is taken when it is.
    write(&config, "roots: [{path: ~/mara}, {path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_told("STATUS=watching 1 of 2 memory folders");
    drop_logs(&root, "../other/memory", &["2026-03-1"]);
    daemon.signal(Signal::HUP);
    daemon.await_file(&other.join("memory/weekly/2026-W12.md"));
    // What is taken out is free for another daemon.
    write(&config, "roots: [{path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    daemon.await_told("STATUS=watching 1 of 1 memory folders");
    let lock = root.path(".memoird/daemon.lock");
    assert!(fs::File::open(lock).unwrap().try_lock().is_ok());
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("`rots`") || log.contains("rots:"), "{log}");
}

#[test]
fn the_service_manager_is_told() {
    let root = Root::new("mara");
    let mut daemon = Daemon::start(&root);
    // Ready comes before the long pass, which starves no watchdog.
    let looking = daemon.await_told("STATUS=checking");
    assert!(looking.contains("; watching 1 of 1 memory folders; "), "{looking}");
    assert!(!daemon.told.iter().any(|it| it.starts_with("STATUS=watching")), "{:?}", daemon.told);
    daemon.told.clear();
    let idle = daemon.await_told("STATUS=watching");
    assert!(daemon.told.iter().any(|it| it == "WATCHDOG=1"), "{:?}", daemon.told);
    assert_eq!(
        idle,
        "STATUS=watching 1 of 1 memory folders; nothing due; next 2026-04-14 02:00 CEST"
    );
    daemon.await_told("WATCHDOG=1");
    daemon.signal(Signal::TERM);
    daemon.await_told("STOPPING=1");
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_it_cannot_serve_it_refuses_at_start() {
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
fn several_folders_are_served_side_by_side() {
    let root = Root::new("mara");
    let journal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/journal/jonas/memory");
    for entry in fs::read_dir(journal).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        write(
            &root.home(&format!("jonas/memory/{name}")),
            &fs::read_to_string(entry.path()).unwrap(),
        );
    }
    let config = root.home(".config/memoird/config.yaml");
    write(&config, "roots: [{path: ~/gone}, {path: ~/jonas}, {path: ~/mara}]\n");
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
    let about = root.path(".memoird/daemon.json");
    let says = |what: &str| {
        let about = about.clone();
        let what = what.to_owned();
        move || fs::read_to_string(&about).is_ok_and(|it| it.contains(&what))
    };
    daemon.meanwhile_stopped(|| {
        for log in &logs {
            fs::rename(root.path(log), root.home(&log.replace('/', "_"))).unwrap();
        }
    });
    daemon.await_that("it is paused", says("known files are gone"));
    let status = root.run(&["status", "--json"]).json_as("status");
    assert!(status["daemon"]["paused"].as_str().unwrap().starts_with("6 of "), "{status}");
    let before = root.files();
    daemon.meanwhile_stopped(|| {
        for log in &logs {
            fs::rename(root.home(&log.replace('/', "_")), root.path(log)).unwrap();
        }
    });
    daemon.await_that("it goes on", says("\"paused\":null"));
    let mut after = root.files();
    after.retain(|it, _| !logs.contains(it));
    assert_eq!(after, before);
}
