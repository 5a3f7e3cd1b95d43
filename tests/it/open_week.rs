//! The provisional summary of the current week, which `memoird run` maintains.

use std::fs;

use chrono::DateTime;

use super::{
    run::{Daemon, fresh},
    support::Root,
};

const WEEK: &str = "memory/weekly/2026-W16.md";

/// Adds a line to a log and sets its modification time.
fn append(root: &Root, day: &str, line: &str, at: &str) {
    use std::io::Write as _;
    let path = root.path(&format!("memory/{day}.md"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let mut file = fs::File::options().append(true).create(true).open(&path).unwrap();
    writeln!(file, "- {line}").unwrap();
    file.set_modified(DateTime::parse_from_rfc3339(at).unwrap().into()).unwrap();
}

#[test]
fn the_open_week_is_summarized_once_its_logs_are_quiet() {
    let root = fresh("");
    append(&root, "2026-04-13", "Moved the importer to SQLite", "2026-04-13T11:55:00+02:00");
    let mut daemon = Daemon::start_at(&root, "2026-04-13T12:00:00+02:00");
    daemon.await_idle();
    daemon.await_pings(5);
    assert!(!root.path(WEEK).exists(), "the log is still being written");
    // Only the passing of time makes it due.
    daemon.set_clock("2026-04-13T12:05:01+02:00");
    daemon.await_file(&root.path(WEEK));
    let text = root.read(WEEK);
    assert!(
        root.read_record(WEEK).contains("\"partial\": true")
            && text.contains("SQLite [2026-04-13:1]"),
        "{text}"
    );
    // It is written again when more lines were added and the log is quiet again.
    daemon.meanwhile_stopped(|| {
        append(&root, "2026-04-14", "Measured 12 ms at the gate", "2026-04-14T10:00:00+02:00");
        daemon.set_clock("2026-04-14T10:01:00+02:00");
    });
    daemon.await_pings(30);
    assert!(!root.read(WEEK).contains("12 ms"));
    daemon.set_clock("2026-04-14T10:10:01+02:00");
    daemon.await_that("the summary is updated", || root.read(WEEK).contains("12 ms"));
    // It is no source of the month or of wisdom, and `compact` does not touch it.
    daemon.await_idle();
    assert!(!root.path("memory/monthly").join("2026-04.md").exists());
    assert!(!root.path("WISDOM.md").exists());
    let mut root = root;
    root.set_now("2026-04-14T10:10:02+02:00");
    let compacted = root.run(&["compact"]).ok();
    assert!(compacted.stderr.starts_with("nothing to do"), "{compacted}");
    // When the week has closed, the summary is final.
    daemon.set_clock("2026-04-20T02:00:01+02:00");
    daemon.await_that("the summary is final", || !root.read_record(WEEK).contains("partial"));
    assert!(root.read(WEEK).contains("12 ms"));
}

#[test]
fn the_open_week_is_not_summarized_if_disabled() {
    let root = fresh("compaction: {open_week: false}\n");
    append(&root, "2026-04-13", "Moved the importer to SQLite", "2026-04-13T08:00:00+02:00");
    let mut daemon = Daemon::start_at(&root, "2026-04-13T12:00:00+02:00");
    daemon.await_idle();
    daemon.set_clock("2026-04-13T13:00:00+02:00");
    daemon.await_pings(20);
    assert!(!root.path(WEEK).exists());
}
