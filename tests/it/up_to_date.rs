//! A folder without changes is recognized as up to date without a full run, and every change is noticed.

use std::{fs, os::unix::fs::MetadataExt as _};

use crate::support::Root;

const RECORD: &str = ".memoird/standstill";
const WEEK: &str = "memory/weekly/2026-W11.md";
const LOG: &str = "memory/2026-03-11.md";

/// Compacts until the folder is recorded as up to date, which needs the file system's clock to advance.
fn compact_until_up_to_date(root: &Root) {
    const RUNS_MAX: usize = 2_000;
    let is_recorded = (0..RUNS_MAX).any(|_| {
        let is_recorded = root.path(RECORD).exists();
        if !is_recorded {
            root.run(&["compact"]).ok();
        }
        is_recorded
    });
    assert!(is_recorded, "{}", root.run(&["compact", "-v"]));
}

fn inode(root: &Root) -> Option<u64> {
    fs::metadata(root.path(RECORD)).ok().map(|it| it.ino())
}

/// Returns the jobs of a `compact`, each as `tier period`.
fn jobs(root: &Root) -> Vec<String> {
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    let job = |it: &serde_json::Value| {
        [it["tier"].as_str().unwrap(), it["period"].as_str().unwrap()].join(" ")
    };
    report["jobs"].as_array().unwrap().iter().map(job).collect()
}

#[test]
fn an_unchanged_folder_gives_the_same_report_without_a_full_run() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let output = root.run(&["compact"]).ok().stdout;
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    compact_until_up_to_date(&root);
    let record = inode(&root);
    assert_eq!(root.run(&["compact"]).ok().stdout, output);
    assert_eq!(root.run(&["compact", "--json"]).ok().json_as("compact"), report);
    // A full run would have replaced the record.
    assert_eq!(inode(&root), record);
    // A forced period needs a full run.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    assert_ne!(inode(&root), record);
    // `doctor` does not report the record as an unknown file.
    compact_until_up_to_date(&root);
    root.run(&["doctor"]).ok();
}

#[test]
fn every_change_is_noticed() {
    type Change = fn(&mut Root);
    let cases: &[(&str, Change, &[&str])] = &[
        (
            "a late line",
            |root| root.append(LOG, "- Measured 19 ms at the gate\n"),
            &["extract 2026-03-11", "weekly 2026-W11"],
        ),
        (
            "a new log",
            |root| root.write("memory/2026-03-13.md", "- The pump was mended\n"),
            &["extract 2026-03-13", "weekly 2026-W11"],
        ),
        ("a file is gone", |root| fs::remove_file(root.path(WEEK)).unwrap(), &["weekly 2026-W11"]),
        (
            "the database is gone",
            |root| fs::remove_file(root.path(".memoird/lineage.db")).unwrap(),
            &[],
        ),
        ("a period closed", |root| root.set_now("2026-03-31T12:00:00Z"), &["weekly 2026-W12"]),
    ];
    for (name, change, expected) in cases {
        let mut root = Root::small();
        root.set_now("2026-03-19T12:00:00Z");
        root.write(LOG, "- Measured 14 ms at the gate\n");
        root.write("memory/2026-03-18.md", "- Measured 12 ms at the gate\n");
        compact_until_up_to_date(&root);
        let record = inode(&root);
        change(&mut root);
        let done = jobs(&root);
        let missing: Vec<_> =
            expected.iter().filter(|it| !done.iter().any(|job| job == *it)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?} are not in {done:?}");
        assert_ne!(inode(&root), record, "{name}");
    }
}

#[test]
fn a_deleted_bullet_is_noticed() {
    let root = Root::new("mara");
    compact_until_up_to_date(&root);
    let text = root.read(WEEK);
    let bullet = text.lines().find(|it| it.starts_with("- ")).unwrap().to_owned();
    root.write(WEEK, &text.replace(&format!("{bullet}\n"), ""));
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("deleted"));
    compact_until_up_to_date(&root);
    assert!(!root.read(WEEK).contains(&bullet));
}
