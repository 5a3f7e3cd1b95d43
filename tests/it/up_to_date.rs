//! A folder in which nothing has changed is known as such without a pass, and any change is noticed all
//! the same.

use std::{fs, os::unix::fs::MetadataExt as _};

use crate::support::Root;

const NOTE: &str = ".memoird/standstill";
const WEEK: &str = "memory/weekly/2026-W11.md";
const LOG: &str = "memory/2026-03-11.md";

/// Folds until it is noted that there is nothing to do; the file system's clock has to move on for that.
fn still(root: &Root) {
    while !root.path(NOTE).exists() {
        root.run(&["compact"]).ok();
    }
}

fn inode(root: &Root) -> Option<u64> {
    fs::metadata(root.path(NOTE)).ok().map(|it| it.ino())
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
fn nothing_is_opened_where_nothing_changed_and_the_same_is_said() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let said = root.run(&["compact"]).ok().stdout;
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    still(&root);
    let note = inode(&root);
    assert_eq!(root.run(&["compact"]).ok().stdout, said);
    assert_eq!(root.run(&["compact", "--json"]).ok().json_as("compact"), report);
    // A pass makes the note anew.
    assert_eq!(inode(&root), note);
    // What is asked for beyond what is due needs one.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    assert_ne!(inode(&root), note);
    // It is none of the strangers that `doctor` tells of.
    still(&root);
    root.run(&["doctor"]).ok();
}

#[test]
fn every_change_is_noticed() {
    type Change = fn(&mut Root);
    let cases: &[(&str, Change, &[&str])] = &[
        (
            "a line came late",
            |root| root.append(LOG, "- Measured 19 ms at the gate\n"),
            &["extract 2026-03-11", "weekly 2026-W11"],
        ),
        (
            "a log came",
            |root| root.write("memory/2026-03-13.md", "- The pump was mended\n"),
            &["extract 2026-03-13", "weekly 2026-W11"],
        ),
        ("a file is gone", |root| fs::remove_file(root.path(WEEK)).unwrap(), &["weekly 2026-W11"]),
        (
            "it was forgotten",
            |root| fs::remove_file(root.path(".memoird/lineage.db")).unwrap(),
            &[],
        ),
        ("a period has closed", |root| root.set_now("2026-03-31T12:00:00Z"), &["weekly 2026-W12"]),
    ];
    for (name, change, expected) in cases {
        let mut root = Root::small();
        root.set_now("2026-03-19T12:00:00Z");
        root.write(LOG, "- Measured 14 ms at the gate\n");
        root.write("memory/2026-03-18.md", "- Measured 12 ms at the gate\n");
        still(&root);
        let note = inode(&root);
        change(&mut root);
        let done = jobs(&root);
        let missing: Vec<_> =
            expected.iter().filter(|it| !done.iter().any(|job| job == *it)).collect();
        assert!(missing.is_empty(), "{name}: {missing:?} are not in {done:?}");
        assert_ne!(inode(&root), note, "{name}");
    }
}

#[test]
fn what_a_person_takes_out_is_noticed() {
    let root = Root::new("mara");
    still(&root);
    let text = root.read(WEEK);
    let bullet = text.lines().find(|it| it.starts_with("- ")).unwrap().to_owned();
    root.write(WEEK, &text.replace(&format!("{bullet}\n"), ""));
    root.run(&["compact"]).ok();
    assert!(root.read("memory/.decisions.jsonl").contains("deleted"));
    still(&root);
    assert!(!root.read(WEEK).contains(&bullet));
}
