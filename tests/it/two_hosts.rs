//! Two hosts on one folder that is kept in step: one of them summarises, the other reads.

use std::{fs, process::Command};

use rustix::process::Signal;

use super::{
    run::{Daemon, drop_logs, fresh, write},
    support::{NOW, Root},
};

/// This host, as `memoird.yaml` names it.
fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[test]
fn a_host_takes_a_folder_over_by_one_line() {
    let root = Root::small();
    root.append("memoird.yaml", "writer: attic  # the old one\nwisdom: {max_entries: 3}\n");
    let refused = root.run(&["compact"]);
    assert_eq!(refused.code, 75, "{refused}");
    assert!(refused.stderr.contains("memoird init --take-over"), "{refused}");
    let before = root.read("memoird.yaml");
    let told = root.run(&["init", "--take-over", "--dry-run", "--no-config"]).ok();
    assert!(told.to_string().contains("memoird.yaml"), "{told}");
    assert_eq!(root.read("memoird.yaml"), before);
    let told = root.run(&["init", "--take-over", "--no-config"]).ok();
    assert!(told.to_string().contains("the host attic stops"), "{told}");
    let expected = before.replace("attic  # the old one", &format!("\"{}\"", host()));
    assert_eq!(root.read("memoird.yaml"), expected);
    root.run(&["compact"]).ok();
    let again = root.run(&["init", "--take-over", "--no-config", "--json"]).ok().json();
    assert_eq!(again["wrote"], serde_json::json!([]), "{again}");
    // A new folder may begin with it.
    let new = Root::empty("new");
    new.run(&["init", "--take-over", "--no-config"]).ok();
    assert!(new.read("memoird.yaml").contains(&format!("writer: \"{}\"", host())));
}

#[test]
fn a_daemon_lets_a_folder_go_that_another_host_takes_and_takes_it_back() {
    let root = fresh("");
    drop_logs(&root, "memory", &["2026-03-1"]);
    let mut daemon = Daemon::start(&root);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    let text = root.read("memoird.yaml");
    // As a sync tool brings it.
    write(&root.path("memoird.yaml.tmp"), &format!("{text}writer: attic\n"));
    fs::rename(root.path("memoird.yaml.tmp"), root.path("memoird.yaml")).unwrap();
    daemon.await_told("STATUS=watching 0 of 1");
    drop_logs(&root, "memory", &["2026-03-2"]);
    daemon.await_pings(30);
    assert!(!root.path("memory/weekly/2026-W13.md").exists());
    root.run(&["init", "--take-over", "--no-config"]).ok();
    daemon.await_file(&root.path("memory/weekly/2026-W13.md"));
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("is written by the host `attic`"), "{log}");
}

#[test]
fn a_daemon_whose_program_was_replaced_is_to_be_restarted() {
    let root = Root::small();
    let program = root.home("memoird");
    let built = assert_cmd::cargo::cargo_bin!("memoird");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).unwrap();
    }
    let mut daemon = Daemon::spawn_by(Command::new(&program), &root, NOW, &[]);
    daemon.await_told("READY=1");
    daemon.await_file(&root.path("WISDOM.md"));
    let restart =
        || root.run(&["status", "--json"]).ok().json_as("status")["daemon"]["restart"].clone();
    assert_eq!(restart(), serde_json::Value::Null);
    // An update puts a new file in the place of the old one.
    let next = root.home("memoird.next");
    write(&next, "#!/bin/sh\n");
    fs::rename(next, &program).unwrap();
    assert_eq!(restart(), "its program was replaced since it started");
    let status = root.run(&["status"]).ok().stdout;
    assert!(status.contains("restart it: its program was replaced"), "{status}");
}
