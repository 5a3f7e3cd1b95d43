//! One `memoird run` over many memory folders.

use std::{fmt::Write as _, fs};

use memoird::internals::store::fs::{
    layout::Layout,
    lock::{DaemonLock, RunLock},
};
use rustix::process::Signal;

use super::{
    run::{Daemon, STOP, write},
    support::Root,
};

/// Makes so many folders with a closed week each, and a configuration that names them.
fn roots(root: &Root, count: usize) {
    let mut config = "schedule: {on_change: true}\nroots:\n".to_owned();
    for n in 0..count {
        let line = format!("- Measured {n} ms at gate {n}\n");
        write(&root.home(&format!("r{n:03}/memory/2026-03-10.md")), &line);
        writeln!(config, "  - {{path: ~/r{n:03}, zone: Europe/Berlin}}").unwrap();
    }
    write(&root.home(".config/memoird/config.yaml"), &config);
}

fn week(root: &Root, n: usize) -> std::path::PathBuf {
    root.home(&format!("r{n:03}/memory/weekly/2026-W11.md"))
}

#[test]
fn a_hundred_folders_with_few_open_files_all_have_their_turn() {
    let root = Root::empty("home");
    roots(&root, 100);
    // The soft limit would not do; the hard one does.
    let mut program = std::process::Command::new("/usr/bin/env");
    program.args(["sh", "-c", "ulimit -Sn 64; ulimit -Hn 1024; exec \"$0\" \"$@\""]);
    program.arg(assert_cmd::cargo::cargo_bin!("memoird"));
    let path = std::env::var("PATH").unwrap_or_default();
    // Nobody reads the log before the end, and a pipe takes only so much.
    let variables = [("PATH", path.as_str()), ("MEMOIRD_LOG", "warn")];
    let mut daemon = Daemon::spawn_by(program, &root, super::support::NOW, &variables);
    daemon.await_told("READY=1");
    for n in 0..100 {
        daemon.await_file(&week(&root, n));
    }
    daemon.await_told("STATUS=watching 100 of 100 memory folders");
    let (status, took, log) = daemon.stop(Signal::TERM);
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(took < STOP, "{took:?}");
}

#[test]
fn what_is_wrong_with_one_folder_is_no_other_ones_matter() {
    let root = Root::empty("home");
    roots(&root, 6);
    let layout = |n: usize| Layout::new(root.home(&format!("r{n:03}")), "memory");
    // Another daemon serves the first; its settings are wrong in the second; the third is no folder; a
    // pass of somebody else goes on in the fourth; nothing can be read in the database of the fifth.
    fs::create_dir(layout(0).private_dir()).unwrap();
    let served = DaemonLock::acquire(&layout(0)).unwrap();
    write(&root.home("r001/memoird.yaml"), "grace: soon\n");
    fs::rename(root.home("r002"), root.home("elsewhere")).unwrap();
    write(&root.home("r002"), "no folder\n");
    fs::create_dir(layout(3).private_dir()).unwrap();
    let busy = RunLock::acquire(layout(3).root(), &layout(3).run_lock(), &|| false).unwrap();
    fs::create_dir_all(layout(4).database()).unwrap();
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&week(&root, 5));
    // Each is served when it can be.
    drop(busy);
    daemon.await_file(&week(&root, 3));
    write(&root.home("r001/memoird.yaml"), "");
    daemon.await_file(&week(&root, 1));
    fs::remove_file(root.home("r002")).unwrap();
    fs::rename(root.home("elsewhere"), root.home("r002")).unwrap();
    daemon.await_file(&week(&root, 2));
    drop(served);
    daemon.signal(Signal::HUP);
    daemon.await_file(&week(&root, 0));
    assert!(!week(&root, 4).exists());
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("r004"), "{log}");
}
