//! Two hosts with one synchronized folder: one of them compacts, the other only reads.

use std::{fs, process::Command};

use rustix::process::Signal;

use super::{
    run::{Daemon, drop_logs, fresh},
    support::{NOW, Root, write_file},
};

/// This host, as `memoird.yaml` names it.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[test]
fn a_host_takes_over_a_folder_by_changing_one_line() {
    let root = Root::small();
    root.append("memoird.yaml", "writer: attic  # the old one\nwisdom: {max_entries: 3}\n");
    let refused = root.run(&["compact"]);
    assert_eq!(refused.code, 75, "{refused}");
    assert!(refused.stderr.contains("memoird init --take-over"), "{refused}");
    let before = root.read("memoird.yaml");
    let dry_run = root.run(&["init", "--take-over", "--dry-run", "--no-config"]).ok();
    assert!(dry_run.to_string().contains("memoird.yaml"), "{dry_run}");
    assert_eq!(root.read("memoird.yaml"), before);
    let taken_over = root.run(&["init", "--take-over", "--no-config"]).ok();
    assert!(taken_over.to_string().contains("the host attic stops"), "{taken_over}");
    let expected = before.replace("attic  # the old one", &format!("\"{}\"", host()));
    assert_eq!(root.read("memoird.yaml"), expected);
    root.run(&["compact"]).ok();
    let again = root.run(&["init", "--take-over", "--no-config", "--json"]).ok().json();
    assert_eq!(again["wrote"], serde_json::json!([]), "{again}");
    // The option also works for a new folder.
    let new = Root::empty("new");
    new.run(&["init", "--take-over", "--no-config"]).ok();
    assert!(new.read("memoird.yaml").contains(&format!("writer: \"{}\"", host())));
}

#[test]
fn a_daemon_releases_a_folder_taken_over_by_another_host_until_it_is_taken_back() {
    let root = fresh("");
    drop_logs(&root, "memory", &["2026-03-1"]);
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    let text = root.read("memoird.yaml");
    // As a sync tool writes it.
    write_file(&root.path("memoird.yaml.tmp"), &format!("{text}writer: attic\n"));
    fs::rename(root.path("memoird.yaml.tmp"), root.path("memoird.yaml")).unwrap();
    daemon.await_notification("STATUS=watching 0 of 1");
    drop_logs(&root, "memory", &["2026-03-2"]);
    daemon.await_pings(30);
    assert!(!root.path("memory/weekly/2026-W13.md").exists());
    root.run(&["init", "--take-over", "--no-config"]).ok();
    daemon.await_file(&root.path("memory/weekly/2026-W13.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("is written by the host `attic`"), "{log}");
}

#[test]
fn status_asks_to_restart_a_daemon_whose_program_was_replaced() {
    let root = Root::small();
    let program = root.home("memoird");
    let built = assert_cmd::cargo::cargo_bin!("memoird");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).unwrap();
    }
    let mut daemon = Daemon::spawn_by(Command::new(&program), &root, NOW, &[]);
    daemon.await_notification("READY=1");
    daemon.await_file(&root.path("WISDOM.md"));
    let restart =
        || root.run(&["status", "--json"]).ok().json_as("status")["daemon"]["restart"].clone();
    assert_eq!(restart(), serde_json::Value::Null);
    // An update replaces the program file.
    let next = root.home("memoird.next");
    write_file(&next, "#!/bin/sh\n");
    fs::rename(next, &program).unwrap();
    assert_eq!(restart(), "its program was replaced since it started");
    let status = root.run(&["status"]).ok().stdout;
    assert!(status.contains("restart it: its program was replaced"), "{status}");
}
