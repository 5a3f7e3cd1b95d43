//! `memoird run` after suspend, after clock changes, and while a model is unavailable.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::process::Signal;
use serde_json::json;

use super::{
    run::{Daemon, drop_logs, fresh, state},
    support::{
        Root,
        server::{Answer, Server, answer_well},
        write_file,
    },
};

/// Returns the number of recorded runs and of recorded jobs.
fn recorded_counts(root: &Root) -> (i64, i64) {
    let database = rusqlite::Connection::open(root.path(".memoird/lineage.db")).unwrap();
    let count = |sql: &str| database.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
    (count("SELECT count(*) FROM run"), count("SELECT count(*) FROM activity"))
}

#[test]
fn periods_missed_during_suspend_are_compacted_in_one_run() {
    let root = fresh("schedule: {on_change: false}\n");
    drop_logs(&root, "memory", &["2026-0"]);
    let mut daemon = Daemon::start_at(&root, "2026-02-01T12:00:00+01:00");
    daemon.await_idle();
    let before = recorded_counts(&root).0;
    // The laptop is suspended for ten weeks.
    daemon.signal(Signal::STOP);
    daemon.set_clock("2026-04-13T09:00:00+02:00");
    daemon.signal(Signal::CONT);
    daemon.await_file(&root.path("memory/weekly/2026-W14.md"));
    daemon.await_file(&root.path("memory/monthly/2026-03.md"));
    daemon.await_idle();
    daemon.await_pings(30);
    assert_eq!(recorded_counts(&root).0, before + 1, "one run for all missed periods");
    let (_, _, log) = daemon.stop(Signal::TERM);
    assert!(log.contains("the clock jumped by"), "{log}");
    let after = root.run(&["compact"]).ok();
    assert!(after.stderr.starts_with("nothing to do"), "{after}");
}

#[test]
fn setting_the_clock_back_and_forth_repeats_no_work() {
    let root = Root::new("jonas");
    let mut daemon = Daemon::start(&root);
    daemon.await_idle();
    daemon.await_pings(30);
    let (files, recorded) = (root.files(), recorded_counts(&root));
    for now in
        ["2025-12-24T18:00:00+01:00", "2026-04-13T09:00:00+02:00", "2026-04-12T09:00:00+02:00"]
    {
        daemon.await_run_after(|it| it.set_clock(now));
    }
    daemon.await_run_after(|it| it.set_clock(super::support::NOW));
    assert_eq!(root.files(), files);
    assert_eq!(recorded_counts(&root), recorded);
}

#[test]
fn no_run_starts_while_the_model_is_paused() {
    let is_back = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&is_back);
    let server = Server::answering(move |sent| {
        if is_back.load(Ordering::SeqCst) {
            answer_well(sent)
        } else {
            Answer::text(503, "Later, please.")
        }
    });
    let root = Root::empty("desk");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write(
        "memory/2026-04-07.md",
        "- Moved the importer to SQLite, since a crash then loses at most one row\n\
         - Measured 3.2 s per GB on the importer with 38 GB of data\n",
    );
    let config = json!({
        "engine": "model",
        "model": { "provider": "openai", "name": "scripted-1", "base_url": server.url() + "/v1" },
        "compaction": {
            "whole_below_chars": 0,
            "extract": false,
            "weekly": { "ratio": 0.9, "max_ratio": 1.0 },
        },
        "schedule": { "on_change": true },
        "budget": { "day": { "usd": null, "calls": null }, "month": { "usd": null } },
    });
    write_file(&root.home(".config/memoird/config.yaml"), &config.to_string());
    let variables = [("MEMOIRD_API_KEY", "sk-test-7Zq4Wm9xK2vB5nR8tL3p")];
    let mut daemon = Daemon::spawn(&root, "2026-04-13T09:00:00+02:00", &variables);
    let is_waiting = || !state(&root)["waiting_until"].is_null();
    daemon.await_that("the daemon waits for the model", || {
        root.path(".memoird/daemon.json").exists() && is_waiting()
    });
    let status = root.run(&["status", "--json"]).json_as("status");
    let why = status["not_yet"].as_str().unwrap();
    assert!(
        why.contains("is paused until") && why.contains("next try at 2026-04-13T09:05"),
        "{why}"
    );
    let (sent, recorded) = (server.count(), recorded_counts(&root));
    // During the pause no request is sent and no run is recorded, whatever triggers one.
    for minute in 1..5 {
        daemon.set_clock(&format!("2026-04-13T09:0{minute}:30+02:00"));
        daemon.await_pings(4);
    }
    daemon.set_clock("2026-04-13T09:04:40+02:00");
    daemon.await_pings(10);
    assert_eq!((server.count(), recorded_counts(&root)), (sent, recorded));
    // When the pause ends, the daemon sends requests again by itself.
    switch.store(true, Ordering::SeqCst);
    daemon.set_clock("2026-04-13T09:05:01+02:00");
    daemon.await_file(&root.path("memory/weekly/2026-W15.md"));
    daemon.await_that("the daemon no longer waits", || !is_waiting());
    assert!(fs::read_to_string(root.path("memory/weekly/2026-W15.md")).is_ok());
}

#[test]
fn the_on_problem_program_is_called_once_per_problem() {
    let root = fresh("compaction: {extract: false}\n");
    write_file(
        &root.home(".config/memoird/config.yaml"),
        "roots: [{path: ~/mara}]\non_problem: [/bin/sh, -c, 'cat >>\"$0\"', ~/reports]\n"
            .replace("~/reports", root.home("reports").to_str().unwrap())
            .as_str(),
    );
    // A folder in place of the weekly file: the job fails three times and is stuck.
    fs::create_dir_all(root.path("memory/weekly/2026-W11.md")).unwrap();
    drop_logs(&root, "memory", &["2026-03-10"]);
    root.run(&["compact"]);
    root.run(&["compact"]);
    root.run(&["compact"]);
    let mut daemon = Daemon::start(&root);
    let is_called = || fs::read_to_string(root.home("reports")).is_ok_and(|it| it.ends_with('\n'));
    daemon.await_that("the program is called", is_called);
    daemon.await_idle();
    root.append("memoird.yaml", "wisdom: {max_entries: 7}\n");
    daemon.await_pings(30);
    let report = fs::read_to_string(root.home("reports")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).expect("exactly one document");
    assert_eq!(report["kind"], "stuck");
    assert_eq!(report["root"], root.path("").to_str().unwrap().trim_end_matches('/'));
    assert!(report["text"].as_str().unwrap().contains("memoird status"), "{report}");
}

#[test]
fn the_log_can_be_written_as_json() {
    let root = Root::small();
    let mut program = std::process::Command::new("/bin/sh");
    program.args(["-c", "exec \"$0\" \"$@\" --log-format json"]);
    program.arg(assert_cmd::cargo::cargo_bin!("memoird"));
    let mut daemon = Daemon::spawn_by(program, &root, super::support::NOW, &[]);
    daemon.await_file(&root.path("WISDOM.md"));
    daemon.await_idle();
    let (_, _, log) = daemon.stop(Signal::TERM);
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|it| serde_json::from_str(it).unwrap_or_else(|e| panic!("{e}: {it}")))
        .collect();
    let week = lines.iter().find(|it| it["fields"]["period"] == "2026-W11").expect("the week");
    assert_eq!(week["fields"]["job"], "weekly", "{week}");
    assert_eq!(week["span"]["run"], 1, "{week}");
    assert_eq!(
        week["span"]["root"],
        root.path("").to_str().unwrap().trim_end_matches('/'),
        "{week}"
    );
}

#[test]
fn a_clock_that_was_never_set_or_leaps_years_ahead_writes_and_prunes_nothing() {
    let mut root = Root::small();
    root.append("memoird.yaml", "history: {keep: 30d}\n");
    root.set_now("1970-01-01T00:10:00Z");
    let before = root.files();
    let ran = root.run(&["compact"]);
    assert!(ran.code == 65 && ran.stderr.contains("1970-01-01"), "{ran}");
    assert_eq!(root.files(), before);
    root.set_now(crate::support::NOW);
    root.run(&["compact"]).ok();
    root.append("memory/2026-03-03.md", "- Rollback tested\n");
    root.run(&["compact"]).ok();
    root.append("memory/2026-04-13.md", "- Fan replaced\n");
    let (before, versions) = (root.files(), root.run(&["history", "2026-W10"]).ok().stdout);
    root.set_now("2036-04-13T09:00:00Z");
    let ran = root.run(&["compact"]);
    assert!(ran.code == 65 && ran.stderr.contains("2036-04-13"), "{ran}");
    assert_eq!(root.files(), before);
    assert_eq!(root.run(&["history", "2026-W10"]).ok().stdout, versions);
    // Somebody may come back after that long.
    root.run(&["compact", "--accept-missing"]).ok();
    assert_ne!(root.files(), before);
}
