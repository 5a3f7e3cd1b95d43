//! `metrics_file`: the metrics that `memoird run` writes for Prometheus.

use std::fs;

use rustix::process::Signal;

use super::{
    run::Daemon,
    support::{Root, write_file},
};

#[test]
fn metrics_are_written_while_the_daemon_runs() {
    let root = Root::small();
    write_file(
        &root.home(".config/memoird/config.yaml"),
        "roots: [{path: ~/small}, {path: ~/gone}]\nmetrics_file: ~/prom/memoird.prom\n",
    );
    let file = root.home("prom/memoird.prom");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    // The folder of the file is missing; once it exists, writing is retried.
    assert!(!file.exists());
    fs::create_dir(root.home("prom")).unwrap();
    daemon.await_file(&file);
    let has_line = |line: &str| {
        let (file, line) = (file.clone(), line.replace("HOME", root.home("").to_str().unwrap()));
        move || fs::read_to_string(&file).is_ok_and(|it| it.lines().any(|it| it == line))
    };
    let in_root = |name: &str, value: &str| format!("memoird_{name}{{root=\"HOMEsmall\"}} {value}");
    for (name, value) in [("served", "1"), ("due_jobs", "0"), ("stuck_jobs", "0"), ("polled", "0")]
    {
        daemon.await_that(name, has_line(&in_root(name, value)));
    }
    let missing_root = root.home("gone");
    daemon.await_that(
        "the missing folder is not served",
        has_line(&format!("memoird_served{{root=\"{}\"}} 0", missing_root.display())),
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("outcome=\"written\"} "), "{text}");
    // A stuck job is counted.
    fs::remove_file(root.path("memory/weekly/2026-W11.md")).unwrap();
    fs::create_dir(root.path("memory/weekly/2026-W11.md")).unwrap();
    for _ in 0..3 {
        root.run(&["compact"]);
    }
    daemon.await_that("the job is counted as stuck", has_line(&in_root("stuck_jobs", "1")));
    assert_eq!(root.mode("../prom/memoird.prom"), 0o644);
    let file_count = fs::read_dir(root.home("prom")).unwrap().count();
    assert_eq!(file_count, 1, "a temporary file is left");
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(!file.exists(), "the file is removed on exit, so that no stale metrics are collected");
    assert!(log.matches("metrics_file:").count() <= 1, "the missing folder is logged once: {log}");
}
