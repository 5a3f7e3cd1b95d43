//! `metrics_file`: what `memoird run` leaves for Prometheus.

use std::fs;

use rustix::process::Signal;

use super::{
    run::{Daemon, write},
    support::Root,
};

#[test]
fn counts_are_kept_in_a_file_while_it_runs() {
    let root = Root::small();
    write(
        &root.home(".config/memoird/config.yaml"),
        "roots: [{path: ~/small}, {path: ~/gone}]\nmetrics_file: ~/prom/memoird.prom\n",
    );
    let file = root.home("prom/memoird.prom");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    // Its folder is there only now, and it is tried again.
    assert!(!file.exists());
    fs::create_dir(root.home("prom")).unwrap();
    daemon.await_file(&file);
    let says = |line: &str| {
        let (file, line) = (file.clone(), line.replace("HOME", root.home("").to_str().unwrap()));
        move || fs::read_to_string(&file).is_ok_and(|it| it.lines().any(|it| it == line))
    };
    let in_root = |name: &str, value: &str| format!("memoird_{name}{{root=\"HOMEsmall\"}} {value}");
    for (name, value) in [("served", "1"), ("due_jobs", "0"), ("stuck_jobs", "0"), ("polled", "0")]
    {
        daemon.await_that(name, says(&in_root(name, value)));
    }
    let gone = root.home("gone");
    daemon
        .await_that("the other", says(&format!("memoird_served{{root=\"{}\"}} 0", gone.display())));
    let before = fs::read_to_string(&file).unwrap();
    assert!(before.contains("outcome=\"written\"} "), "{before}");
    // What is stuck is told.
    fs::remove_file(root.path("memory/weekly/2026-W11.md")).unwrap();
    fs::create_dir(root.path("memory/weekly/2026-W11.md")).unwrap();
    for _ in 0..3 {
        root.run(&["compact"]);
    }
    daemon.await_that("it is stuck", says(&in_root("stuck_jobs", "1")));
    assert_eq!(root.mode("../prom/memoird.prom"), 0o644);
    let names = fs::read_dir(root.home("prom")).unwrap().count();
    assert_eq!(names, 1, "a temporary file is left");
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(!file.exists(), "nothing stale is collected");
    assert!(log.matches("metrics_file:").count() <= 1, "said once: {log}");
}
