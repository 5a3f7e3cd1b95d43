//! The sandbox of the daemon: what it can no longer do after it has started.

use std::{fs, process::Command};

use rustix::process::Signal;

use super::{
    run::{Daemon, drop_logs, fresh},
    support::{CommandOutput, NOW, Root, skipped, write_file},
};

/// Returns whether the kernel enforces the sandbox; otherwise says that the test is skipped.
fn is_enforced(root: &Root) -> bool {
    let report = doctor(root, &["doctor", "--sandbox", "--json"]).json_as("doctor");
    let first = &report["checks"][0];
    let is_enforced = first["warning"] != true;
    if !is_enforced {
        skipped(&first["detail"].to_string());
    }
    is_enforced
}

/// Starts a sandboxed daemon.
fn start_sandboxed(root: &Root) -> Daemon {
    let mut program = Command::new("/bin/sh");
    program.args(["-c", "exec \"$0\" \"$@\" --sandbox on"]);
    program.arg(assert_cmd::cargo::cargo_bin!("memoird"));
    Daemon::spawn_by(program, root, NOW, &[("TMPDIR", temporary_folder(root).as_str())])
}

/// Returns the folder for temporary files, which stays writable, so test homes must not be in it.
fn temporary_folder(root: &Root) -> String {
    let path = root.home("tmp");
    fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs `doctor --sandbox`.
fn doctor(root: &Root, args: &[&str]) -> CommandOutput {
    let mut command = root.command(args);
    command.env("TMPDIR", temporary_folder(root));
    root.finish(command, args)
}

#[test]
fn forbidden_actions_are_refused() {
    let root = Root::small();
    if !is_enforced(&root) {
        return;
    }
    let report = doctor(&root, &["doctor", "--sandbox", "--json"]).ok().json_as("doctor");
    let detail = |name: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|it| it["name"] == name).unwrap()["detail"].as_str().unwrap().to_owned()
    };
    for name in [
        "write in your home",
        "list your home",
        "write to the system",
        "connect to another port",
        "listen on a port",
    ] {
        assert_eq!(detail(name), "is refused", "{name}");
    }
    assert!(detail("memory folder").ends_with("is writable"), "{report}");
    assert!(detail("process").contains("no new privileges"), "{report}");
    // The probes left no files.
    assert!(
        !fs::read_dir(root.path(""))
            .unwrap()
            .any(|it| { it.unwrap().file_name().to_string_lossy().contains("probe") })
    );
    let config = "on_problem: [/bin/true]\n";
    write_file(&root.home(".config/memoird/config.yaml"), config);
    let with_program = doctor(&root, &["doctor", "--sandbox"]).ok();
    assert!(with_program.stdout.contains("`on_problem` starts your program"), "{with_program}");
}

#[test]
fn a_sandboxed_daemon_works_and_exits_when_it_needs_another_folder() {
    let root = fresh("");
    if !is_enforced(&root) {
        return;
    }
    let config = root.home(".config/memoird/config.yaml");
    write_file(&config, "roots: [{path: ~/mara}]\n");
    let mut daemon = start_sandboxed(&root);
    daemon.await_notification("READY=1");
    drop_logs(&root, "memory", &["2026-03"]);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    write_file(&root.home("other/memory/2026-03-10.md"), "- Measured 12 ms at the gate\n");
    write_file(&config, "roots: [{path: ~/mara}, {path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    let log = daemon.await_end();
    assert!(log.contains("sandboxed to the memory folders"), "{log}");
    assert!(log.contains("does not include this folder; restarting"), "{log}");
    assert!(!log.contains("ERROR"), "{log}");
    // After a restart the folder is watched.
    let mut daemon = start_sandboxed(&root);
    daemon.await_file(&root.home("other/memory/weekly/2026-W11.md"));
    let moved = root.home("moved");
    fs::rename(root.home("other"), &moved).unwrap();
    write_file(&root.home("other/memory/2026-03-17.md"), "- Measured 13 ms at the gate\n");
    daemon.await_end();
    assert!(!root.home("other/memory/weekly").exists());
}

#[test]
fn without_a_service_manager_the_daemon_is_not_sandboxed() {
    let root = fresh("");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(!log.contains("sandboxed to"), "{log}");
}
