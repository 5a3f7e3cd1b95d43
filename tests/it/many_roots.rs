//! One `memoird run` over many memory folders.

use std::{fmt::Write as _, fs};

use memoird::internals::store::fs::{
    layout::Layout,
    lock::{DaemonLock, RunLock},
};
use rustix::process::Signal;

use super::{
    run::{Daemon, STOP},
    support::{Root, write_file},
};

/// Makes this many folders with a closed week each, and a configuration that lists them.
fn make_roots(root: &Root, count: usize) {
    let mut config = "schedule: {on_change: true}\nroots:\n".to_owned();
    for n in 0..count {
        let line = format!("- Measured {n} ms at gate {n}\n");
        write_file(&root.home(&format!("r{n:03}/memory/2026-03-10.md")), &line);
        writeln!(config, "  - {{path: ~/r{n:03}, zone: Europe/Berlin}}").unwrap();
    }
    write_file(&root.home(".config/memoird/config.yaml"), &config);
}

fn week_path(root: &Root, n: usize) -> std::path::PathBuf {
    root.home(&format!("r{n:03}/memory/weekly/2026-W11.md"))
}

#[test]
fn a_hundred_folders_are_compacted_with_few_open_files() {
    let root = Root::empty("home");
    make_roots(&root, 100);
    // The soft limit is too low for 100 folders; the hard one is enough.
    let mut program = std::process::Command::new("/usr/bin/env");
    program.args(["sh", "-c", "ulimit -Sn 64; ulimit -Hn 1024; exec \"$0\" \"$@\""]);
    program.arg(assert_cmd::cargo::cargo_bin!("memoird"));
    let path = std::env::var("PATH").unwrap_or_default();
    // The log is read only at the end, and a pipe holds only a limited amount.
    let variables = [("PATH", path.as_str()), ("MEMOIRD_LOG", "warn")];
    let mut daemon = Daemon::spawn_by(program, &root, super::support::NOW, &variables);
    daemon.await_notification("READY=1");
    for n in 0..100 {
        daemon.await_file(&week_path(&root, n));
    }
    daemon.await_notification("STATUS=watching 100 of 100 memory folders");
    let (status, took, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < STOP, "{took:?}");
}

#[test]
fn a_problem_in_one_folder_does_not_affect_others() {
    let root = Root::empty("home");
    make_roots(&root, 6);
    let layout = |n: usize| Layout::new(root.home(&format!("r{n:03}")), "memory");
    // Another daemon watches the first; the settings of the second are invalid; the third is a file;
    // another process compacts the fourth; the database of the fifth is unreadable.
    fs::create_dir(layout(0).private_dir()).unwrap();
    let other_daemon = DaemonLock::acquire(&layout(0)).unwrap();
    write_file(&root.home("r001/memoird.yaml"), "grace: soon\n");
    fs::rename(root.home("r002"), root.home("elsewhere")).unwrap();
    write_file(&root.home("r002"), "no folder\n");
    fs::create_dir(layout(3).private_dir()).unwrap();
    let other_run = RunLock::acquire(layout(3).root(), &layout(3).run_lock(), &|| false).unwrap();
    fs::create_dir_all(layout(4).database()).unwrap();
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&week_path(&root, 5));
    // Each is compacted once its problem is gone.
    drop(other_run);
    daemon.await_file(&week_path(&root, 3));
    write_file(&root.home("r001/memoird.yaml"), "");
    daemon.await_file(&week_path(&root, 1));
    fs::remove_file(root.home("r002")).unwrap();
    fs::rename(root.home("elsewhere"), root.home("r002")).unwrap();
    daemon.await_file(&week_path(&root, 2));
    drop(other_daemon);
    daemon.signal(Signal::HUP);
    daemon.await_file(&week_path(&root, 0));
    assert!(!week_path(&root, 4).exists());
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("r004"), "{log}");
}
