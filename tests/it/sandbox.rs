//! What the daemon can do no longer once it has begun.

use std::{fs, process::Command};

use rustix::process::Signal;

use super::{
    run::{Daemon, drop_logs, fresh, write},
    support::{NOW, Ran, Root, skipped},
};

/// Returns whether the kernel holds the rules; a test is skipped where it does not.
fn holds(root: &Root) -> bool {
    let told = doctor(root, &["doctor", "--sandbox", "--json"]).json_as("doctor");
    let first = &told["checks"][0];
    let holds = first["warning"] != true;
    if !holds {
        skipped(&first["detail"].to_string());
    }
    holds
}

/// Starts a daemon that shuts itself in.
fn shut_in(root: &Root) -> Daemon {
    let mut program = Command::new("/bin/sh");
    program.args(["-c", "exec \"$0\" \"$@\" --sandbox on"]);
    program.arg(assert_cmd::cargo::cargo_bin!("memoird"));
    Daemon::spawn_by(program, root, NOW, &[("TMPDIR", temporary(root).as_str())])
}

/// The folder for temporary files, which may be written; the homes of tests must not lie in it.
fn temporary(root: &Root) -> String {
    let path = root.home("tmp");
    fs::create_dir_all(&path).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Runs `doctor --sandbox`.
fn doctor(root: &Root, args: &[&str]) -> Ran {
    let mut command = root.command(args);
    command.env("TMPDIR", temporary(root));
    root.finish(command, args)
}

#[test]
fn what_must_not_work_does_not() {
    let root = Root::small();
    if !holds(&root) {
        return;
    }
    let told = doctor(&root, &["doctor", "--sandbox", "--json"]).ok().json_as("doctor");
    let detail = |name: &str| {
        let checks = told["checks"].as_array().unwrap();
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
    assert!(detail("memory folder").ends_with("can be written"), "{told}");
    assert!(detail("process").contains("no new privileges"), "{told}");
    // Nothing was left anywhere.
    assert!(
        !fs::read_dir(root.path(""))
            .unwrap()
            .any(|it| { it.unwrap().file_name().to_string_lossy().contains("probe") })
    );
    let config = "on_problem: [/bin/true]\n";
    write(&root.home(".config/memoird/config.yaml"), config);
    let loose = doctor(&root, &["doctor", "--sandbox"]).ok();
    assert!(loose.stdout.contains("`on_problem` starts your program"), "{loose}");
}

#[test]
fn shut_in_it_does_all_its_work_and_ends_for_a_folder_that_it_cannot_serve() {
    let root = fresh("");
    if !holds(&root) {
        return;
    }
    let config = root.home(".config/memoird/config.yaml");
    write(&config, "roots: [{path: ~/mara}]\n");
    let mut daemon = shut_in(&root);
    daemon.await_told("READY=1");
    drop_logs(&root, "memory", &["2026-03"]);
    daemon.await_file(&root.path("memory/weekly/2026-W12.md"));
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    write(&root.home("other/memory/2026-03-10.md"), "- Measured 12 ms at the gate\n");
    write(&config, "roots: [{path: ~/mara}, {path: ~/other, zone: Europe/Berlin}]\n");
    daemon.signal(Signal::HUP);
    let log = daemon.await_end();
    assert!(log.contains("sandboxed to the memory folders"), "{log}");
    assert!(log.contains("does not include this folder; restarting"), "{log}");
    assert!(!log.contains("ERROR"), "{log}");
    // The new start serves it.
    let mut daemon = shut_in(&root);
    daemon.await_file(&root.home("other/memory/weekly/2026-W11.md"));
    let moved = root.home("moved");
    fs::rename(root.home("other"), &moved).unwrap();
    write(&root.home("other/memory/2026-03-17.md"), "- Measured 13 ms at the gate\n");
    daemon.await_end();
    assert!(!root.home("other/memory/weekly").exists());
}

#[test]
fn by_itself_it_is_shut_in_only_where_it_is_started_again() {
    let root = fresh("");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(!log.contains("sandboxed to"), "{log}");
}
