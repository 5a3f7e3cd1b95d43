//! How `memoird run` notices changes, whatever causes them.

use std::{fs, io::Write as _, process::Command, time::Instant};

use chrono::DateTime;
use rustix::process::Signal;

use super::{
    run::{Daemon, PATIENCE, drop_logs, fresh, state},
    support::{NOW, Root, skipped, write_file},
};

/// Counts the runs in a log, by trigger.
fn runs_started_by(log: &str, trigger: &str) -> usize {
    log.matches(&format!("run ({trigger})")).count()
}

/// A log of a closed week.
const LOG: &str = "memory/2026-03-10.md";
const WEEK: &str = "memory/weekly/2026-W11.md";

#[test]
fn its_own_writes_do_not_start_a_run() {
    let root = Root::small();
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    // Longer than a burst of events lasts.
    daemon.await_pings(40);
    root.append(LOG, "- Backfill of 2020 begun, 40 GB\n");
    daemon.await_that("the week is summarized again", || root.read(WEEK).contains("40 GB"));
    daemon.await_idle();
    daemon.await_pings(40);
    assert_eq!(state(&root)["missed"], 0);
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert_eq!((runs_started_by(&log, "start"), runs_started_by(&log, "change")), (1, 1), "{log}");
    assert_eq!(log.matches("run (").count(), 2, "{log}");
}

#[test]
fn every_way_of_saving_a_file_is_noticed() {
    let root = Root::small();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let path = root.path(LOG);
    let text = |n: usize| format!("- Saved the {n}. time, {n}00 rows\n");
    let saves: [&dyn Fn(usize); 5] = [
        // In place.
        &|n| write_file(&path, &text(n)),
        // A temporary file is moved over it.
        &|n| {
            write_file(&path.with_extension("md.tmp"), &text(n));
            fs::rename(path.with_extension("md.tmp"), &path).unwrap();
        },
        // The old file becomes a backup, which is deleted once the new one is written.
        &|n| {
            fs::rename(&path, root.path("memory/2026-03-10.md~")).unwrap();
            write_file(&path, &text(n));
            fs::remove_file(root.path("memory/2026-03-10.md~")).unwrap();
        },
        // Deleted and created again.
        &|n| {
            fs::remove_file(&path).unwrap();
            write_file(&path, &text(n));
        },
        // The whole folder is replaced.
        &|n| {
            fs::rename(root.path("memory"), root.path("old")).unwrap();
            assert!(
                Command::new("cp")
                    .arg("-a")
                    .args([root.path("old"), root.path("memory")])
                    .status()
                    .unwrap()
                    .success()
            );
            fs::remove_dir_all(root.path("old")).unwrap();
            write_file(&path, &text(n));
        },
    ];
    for (n, save) in (2..).zip(saves) {
        save(n);
        let words = format!("{n}00 rows");
        daemon.await_that(&words, || {
            fs::read_to_string(root.path(WEEK)).is_ok_and(|it| it.contains(&words))
        });
        // A change during a run may make a job fail; it is retried a minute later.
        daemon.await_idle();
    }
    let state = state(&root);
    assert_eq!((&state["missed"], &state["mode"]), (&0.into(), &"inotify".into()));
}

#[test]
fn a_log_still_written_at_midnight_is_compacted_once_and_completely() {
    let root = fresh("compaction: {grace: 0s, quiet: 10s}\n");
    let path = root.path("memory/2026-04-12.md");
    let append = |line: &str, at: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = fs::File::options().append(true).create(true).open(&path).unwrap();
        writeln!(file, "- {line}").unwrap();
        let at = DateTime::parse_from_rfc3339(at).unwrap();
        file.set_modified(at.into()).unwrap();
    };
    append("Measured 100 ms at the gate", "2026-04-12T23:59:50+02:00");
    let mut daemon = Daemon::start_at(&root, "2026-04-12T23:59:55+02:00");
    daemon.await_idle();
    for second in [1, 8, 15, 22, 29] {
        let now = format!("2026-04-13T00:00:{second:02}+02:00");
        daemon.meanwhile_stopped(|| {
            append(&format!("Measured {second} ms at the gate"), &now);
            daemon.set_clock(&now);
        });
        // Long enough for a burst to end and be examined.
        daemon.await_pings(30);
        assert!(!root.path("memory/weekly").exists(), "compacted at {now}");
    }
    daemon.set_clock("2026-04-13T00:00:40+02:00");
    daemon.await_file(&root.path("memory/weekly/2026-W15.md"));
    daemon.await_idle();
    let week = root.read("memory/weekly/2026-W15.md");
    for ms in [100, 1, 8, 15, 22, 29] {
        assert!(week.contains(&format!("Measured {ms} ms")), "{week}");
    }
    let history = root.run(&["history", "memory/weekly/2026-W15.md", "--json"]).ok().json();
    assert_eq!(history["versions"].as_array().map(Vec::len), Some(1), "{history}");
}

#[test]
fn a_folder_that_appears_is_watched_at_once() {
    let root = Root::empty("other");
    let config = root.home(".config/memoird/config.yaml");
    write_file(&config, "roots: [{path: ~/mara, zone: Europe/Berlin}]\n");
    let mut daemon = Daemon::start(&root);
    daemon.await_notification("STATUS=watching 0 of 1");
    drop_logs(&root, "../mara/memory", &["2026-03-1"]);
    daemon.await_file(&root.home("mara/memory/weekly/2026-W12.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    // The daemon would check for it once a minute anyway.
    assert!(log.contains("mara: the folder or a parent of it changed"), "{log}");
}

#[test]
fn a_replaced_folder_is_watched_again() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "../next/memory", &["2026-03-1"]);
    write_file(&root.home("next/memoird.yaml"), "zone: Europe/Berlin\n");
    fs::rename(root.path(""), root.home("before")).unwrap();
    fs::rename(root.home("next"), root.path("")).unwrap();
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    assert_eq!(state(&root)["pid"], daemon.pid());
    // The folder that was moved away is no longer locked.
    let lock = fs::File::open(root.home("before/.memoird/daemon.lock")).unwrap();
    lock.try_lock().unwrap();
}

#[test]
fn changes_lost_to_a_queue_overflow_are_found_by_a_scan() {
    let root = fresh("");
    root.write("memory/notes", "");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    daemon.signal(Signal::STOP);
    let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    for n in 0..=limit {
        fs::File::create(root.path(&format!("memory/note {n}"))).unwrap();
    }
    // The event queue is full, so this change is not reported.
    drop_logs(&root, "memory", &["2026-03-1"]);
    daemon.signal(Signal::CONT);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    assert_eq!(state(&root)["overflows"], 1);
    let status = root.run(&["status"]).ok().stdout;
    assert!(status.contains("1 event queue overflows"), "{status}");
}

/// Starts a daemon that may not watch any folder; `None` where the system cannot enforce that.
fn start_without_watches(root: &Root) -> Option<Daemon> {
    let limit = "echo 0 >/proc/sys/user/max_inotify_watches";
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command
    };
    if !in_namespace(limit).output().is_ok_and(|it| it.status.success()) {
        skipped("user namespaces are not available");
        return None;
    }
    let program = assert_cmd::cargo::cargo_bin!("memoird");
    let mut command = in_namespace(&format!("{limit}; exec \"$0\" \"$@\""));
    command.arg(program);
    let path = std::env::var("PATH").unwrap_or_default();
    Some(Daemon::spawn_by(command, root, NOW, &[("PATH", &path)]))
}

#[test]
fn without_watches_the_daemon_polls_and_reports_why() {
    let root = Root::small();
    let Some(mut daemon) = start_without_watches(&root) else { return };
    daemon.await_notification("READY=1");
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    let status = root.run(&["status"]).ok().stdout;
    assert!(
        status.contains("by polling every half minute, because no more folders can be watched"),
        "{status}"
    );
    let json = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(json["watcher"]["mode"], "poll");
    root.append(LOG, "- Backfill of 2020 begun, 40 GB\n");
    let is_updated = || root.read(WEEK).contains("40 GB");
    let deadline = Instant::now() + PATIENCE;
    while !is_updated() && Instant::now() < deadline {
        daemon.await_pings(1);
    }
    assert!(is_updated());
    assert_eq!(state(&root)["missed"], 0);
}

/// A tmpfs, unmounted when dropped; only root can mount one.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(path: std::path::PathBuf) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "memoird-test"]).arg(&path);
        if command.output().is_ok_and(|it| it.status.success()) {
            return Some(Self(path));
        }
        skipped("mounting is not permitted");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Its files are still open.
        drop(Command::new("umount").arg("--lazy").arg(&self.0).output());
    }
}

#[test]
fn an_unmounted_disk_is_not_written_to_and_is_watched_again_when_remounted() {
    let root = Root::empty("mara");
    let Some(mount) = Mount::new(root.path("")) else { return };
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    drop_logs(&root, "memory", &["2026-03-1"]);
    let config = root.home(".config/memoird/config.yaml");
    write_file(&config, "roots: [{path: ~/mara}]\n");
    // The daemon's working folder must not be on the unmounted disk.
    let mut program = Command::new("/usr/bin/env");
    program.arg("--chdir").arg(root.home("")).arg(assert_cmd::cargo::cargo_bin!("memoird"));
    let mut daemon = Daemon::spawn_by(program, &root, NOW, &[]);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    daemon.await_idle();
    drop(mount);
    assert!(fs::read_dir(root.path("")).unwrap().next().is_none());
    daemon.signal(Signal::HUP);
    daemon.await_notification("STATUS=watching 0 of 1");
    assert!(
        fs::read_dir(root.path("")).unwrap().next().is_none(),
        "something was written to the mount point"
    );
    let Some(_mount) = Mount::new(root.path("")) else { return };
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    drop_logs(&root, "memory", &["2026-03-2"]);
    daemon.signal(Signal::HUP);
    daemon.await_file(&root.path("memory/weekly/2026-W13.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("is empty now"), "{log}");
}
