//! How `memoird run` notices changes, whatever makes them, and proves it.

use std::{fs, io::Write as _, process::Command, time::Instant};

use chrono::DateTime;
use rustix::process::Signal;

use super::{
    run::{Daemon, PATIENCE, drop_logs, fresh, state, write},
    support::{NOW, Root, skipped},
};

/// Counts the runs in a log, by trigger.
fn passes(log: &str, trigger: &str) -> usize {
    log.matches(&format!("run ({trigger})")).count()
}

/// A log of a week that has closed.
const LOG: &str = "memory/2026-03-10.md";
const WEEK: &str = "memory/weekly/2026-W11.md";

#[test]
fn what_it_writes_itself_does_not_wake_it() {
    let root = Root::small();
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    // Longer than a burst lasts.
    daemon.await_pings(40);
    root.append(LOG, "- Backfill of 2020 begun, 40 GB\n");
    daemon.await_that("the week is made anew", || root.read(WEEK).contains("40 GB"));
    daemon.await_idle();
    daemon.await_pings(40);
    assert_eq!(state(&root)["missed"], 0);
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert_eq!((passes(&log, "start"), passes(&log, "change")), (1, 1), "{log}");
    assert_eq!(log.matches("run (").count(), 2, "{log}");
}

#[test]
fn every_way_in_which_editors_save_is_noticed() {
    let root = Root::small();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let path = root.path(LOG);
    let text = |n: usize| format!("- Saved the {n}. time, {n}00 rows\n");
    let saves: [&dyn Fn(usize); 5] = [
        // In place.
        &|n| write(&path, &text(n)),
        // A temporary file is moved over it.
        &|n| {
            write(&path.with_extension("md.tmp"), &text(n));
            fs::rename(path.with_extension("md.tmp"), &path).unwrap();
        },
        // The old one becomes a backup that is deleted when the new one stands.
        &|n| {
            fs::rename(&path, root.path("memory/2026-03-10.md~")).unwrap();
            write(&path, &text(n));
            fs::remove_file(root.path("memory/2026-03-10.md~")).unwrap();
        },
        // Deleted and made anew.
        &|n| {
            fs::remove_file(&path).unwrap();
            write(&path, &text(n));
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
            write(&path, &text(n));
        },
    ];
    for (n, save) in (2..).zip(saves) {
        save(n);
        let words = format!("{n}00 rows");
        daemon.await_that(&words, || {
            fs::read_to_string(root.path(WEEK)).is_ok_and(|it| it.contains(&words))
        });
        // What changes while a pass is at work may make a job fail, which is tried again a minute later.
        daemon.await_idle();
    }
    let state = state(&root);
    assert_eq!((&state["missed"], &state["mode"]), (&0.into(), &"inotify".into()));
}

#[test]
fn a_log_that_is_still_written_at_midnight_is_folded_once_and_whole() {
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
        // Long enough for a burst to end and be looked into.
        daemon.await_pings(30);
        assert!(!root.path("memory/weekly").exists(), "folded at {now}");
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
fn a_folder_that_appears_is_served_at_once() {
    let root = Root::empty("other");
    let config = root.home(".config/memoird/config.yaml");
    write(&config, "roots: [{path: ~/mara, zone: Europe/Berlin}]\n");
    let mut daemon = Daemon::start(&root);
    daemon.await_told("STATUS=watching 0 of 1");
    drop_logs(&root, "../mara/memory", &["2026-03-1"]);
    daemon.await_file(&root.home("mara/memory/weekly/2026-W12.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    // It would be asked about once a minute anyway.
    assert!(log.contains("mara: the folder or a parent of it changed"), "{log}");
}

#[test]
fn a_folder_that_is_replaced_by_another_is_served_anew() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    drop_logs(&root, "../next/memory", &["2026-03-1"]);
    write(&root.home("next/memoird.yaml"), "zone: Europe/Berlin\n");
    fs::rename(root.path(""), root.home("before")).unwrap();
    fs::rename(root.home("next"), root.path("")).unwrap();
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    assert_eq!(state(&root)["pid"], daemon.pid());
    // Nobody works in the one that was moved away.
    let lock = fs::File::open(root.home("before/.memoird/daemon.lock")).unwrap();
    lock.try_lock().unwrap();
}

#[test]
fn what_is_too_much_to_tell_is_looked_for() {
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
    // Nobody is told of this one any more.
    drop_logs(&root, "memory", &["2026-03-1"]);
    daemon.signal(Signal::CONT);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    assert_eq!(state(&root)["overflows"], 1);
    let status = root.run(&["status"]).ok().stdout;
    assert!(status.contains("1 event queue overflows"), "{status}");
}

/// Starts a daemon for which the system watches no folder, where that can be had.
fn unwatched(root: &Root) -> Option<Daemon> {
    let limit = "echo 0 >/proc/sys/user/max_inotify_watches";
    let in_namespace = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", script]);
        command
    };
    if !in_namespace(limit).output().is_ok_and(|it| it.status.success()) {
        skipped("no user namespace can be made here");
        return None;
    }
    let program = assert_cmd::cargo::cargo_bin!("memoird");
    let mut command = in_namespace(&format!("{limit}; exec \"$0\" \"$@\""));
    command.arg(program);
    let path = std::env::var("PATH").unwrap_or_default();
    Some(Daemon::spawn_by(command, root, NOW, &[("PATH", &path)]))
}

#[test]
fn where_nothing_can_be_watched_it_looks_itself_and_says_why() {
    let root = Root::small();
    let Some(mut daemon) = unwatched(&root) else { return };
    daemon.await_told("READY=1");
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
    let told = || root.read(WEEK).contains("40 GB");
    let deadline = Instant::now() + PATIENCE;
    while !told() && Instant::now() < deadline {
        daemon.await_pings(1);
    }
    assert!(told());
    assert_eq!(state(&root)["missed"], 0);
}

/// A tmpfs, unmounted when dropped; only root may have one.
struct Mount(std::path::PathBuf);

impl Mount {
    fn new(path: std::path::PathBuf) -> Option<Self> {
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "memoird-test"]).arg(&path);
        if command.output().is_ok_and(|it| it.status.success()) {
            return Some(Self(path));
        }
        skipped("nothing can be mounted here");
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Its files are open still.
        drop(Command::new("umount").arg("--lazy").arg(&self.0).output());
    }
}

#[test]
fn a_disk_that_is_unmounted_leaves_nothing_in_its_place_and_is_served_when_it_is_back() {
    let root = Root::empty("mara");
    let Some(mount) = Mount::new(root.path("")) else { return };
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    drop_logs(&root, "memory", &["2026-03-1"]);
    let config = root.home(".config/memoird/config.yaml");
    write(&config, "roots: [{path: ~/mara}]\n");
    // Its own working folder must not go with the disk.
    let mut program = Command::new("/usr/bin/env");
    program.arg("--chdir").arg(root.home("")).arg(assert_cmd::cargo::cargo_bin!("memoird"));
    let mut daemon = Daemon::spawn_by(program, &root, NOW, &[]);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    daemon.await_idle();
    drop(mount);
    assert!(fs::read_dir(root.path("")).unwrap().next().is_none());
    daemon.signal(Signal::HUP);
    daemon.await_told("STATUS=watching 0 of 1");
    assert!(fs::read_dir(root.path("")).unwrap().next().is_none(), "something was put there");
    let Some(_mount) = Mount::new(root.path("")) else { return };
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    drop_logs(&root, "memory", &["2026-03-2"]);
    daemon.signal(Signal::HUP);
    daemon.await_file(&root.path("memory/weekly/2026-W13.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("is empty now"), "{log}");
}
