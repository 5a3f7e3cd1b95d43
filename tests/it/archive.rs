//! Old logs move to the archive once everything derived from them is written; nothing else changes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{CommandOutput, Root, fixtures::old_time, skipped};

const ARCHIVE: &[&str] = &["compact", "--set", "archive_after_days=30"];
const WEEK: &str = "memory/weekly/2026-W03.md";
const LIVE: &str = "memory/2026-01-13.md";
const ARCHIVED: &str = "memory/archive/2026/2026-01-13.md";

/// Returns a folder that is up to date, with nothing archived.
fn compacted(journal: &str) -> Root {
    let root = Root::new(journal);
    root.age_files();
    root.run(&["compact"]).ok();
    root
}

fn archived(journal: &str) -> Root {
    let root = compacted(journal);
    root.run(ARCHIVE).ok();
    root
}

/// Returns the logs among `files` by file name, duplicates included.
fn logs(files: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let is_log = |path: &str| {
        let within = path.strip_prefix("memory/")?;
        let (dir, name) = within.rsplit_once('/').unwrap_or(("", within));
        (dir.is_empty() || dir.starts_with("archive/")).then(|| name.to_owned())
    };
    let mut logs: Vec<(String, String)> = files
        .iter()
        .filter_map(|(path, text)| Some((is_log(path)?, text.clone())))
        .filter(|(name, _)| name.starts_with("20"))
        .collect();
    logs.sort();
    logs
}

/// Returns all files that are not logs.
fn generated_files(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_log = |path: &str| path.rsplit('/').next().unwrap().starts_with("20");
    let summary = |path: &str| path.contains("/weekly/") || path.contains("/monthly/");
    let generated_files = files.iter().filter(|(path, _)| summary(path) || !is_log(path));
    generated_files.map(|(path, text)| (path.clone(), text.clone())).collect()
}

/// Returns the answers to all queries about sources, with archive paths written as active ones.
fn source_answers(root: &Root) -> Vec<String> {
    let ask = |args: &[&str]| root.run(args).ok().stdout.replace("memory/archive/2026/", "memory/");
    vec![
        ask(&["trace", WEEK, "--json"]),
        ask(&["trace", "2026-02", "--json"]),
        ask(&["trace", "WISDOM.md", "--json"]),
        ask(&["trace", "--up", "2026-01-13:3", "--json"]),
        ask(&["coverage", "2026-W03", "--json"]),
        ask(&["coverage", "2026-01", "--json"]),
        ask(&["coverage", "--all", "--json"]),
        ask(&["show", "2026-01-13", "--json"]),
        ask(&["show", LIVE]),
        ask(&["history", "2026-01-13", "--json"]),
    ]
}

fn paths(report: &Value, key: &str) -> Vec<String> {
    let paths = report[key].as_array().unwrap().iter();
    paths.map(|it| it.as_str().unwrap().to_owned()).collect()
}

fn compact(root: &Root) -> Value {
    root.run(&[ARCHIVE, &["--json"]].concat()).ok().json_as("compact")
}

#[track_caller]
fn assert_healthy_and_up_to_date(root: &Root) {
    root.run(&["doctor"]).ok();
    let before = root.files();
    let again = compact(root);
    let jobs = again["jobs"].as_array().unwrap().len();
    assert_eq!((jobs, paths(&again, "archived").len()), (0, 0), "{again:#}");
    assert_eq!(root.files(), before);
}

#[test]
fn old_logs_are_archived_and_still_found_by_every_query() {
    let root = compacted("mara");
    let (before, answers_before) = (root.files(), source_answers(&root));
    let planned = root.run(&[ARCHIVE, &["--dry-run", "--json"]].concat()).ok();
    let planned = paths(&planned.json_as("compact"), "archived");
    assert_eq!(root.files(), before);

    let report = compact(&root);
    let after = root.files();
    let moved = paths(&report, "archived");
    assert_eq!((report["jobs"].as_array().unwrap().len(), &moved), (0, &planned));
    assert!(moved.contains(&ARCHIVED.to_owned()) && moved.len() > 30, "{moved:?}");
    assert!(moved.iter().all(|it| it.as_str() < "memory/archive/2026/2026-03-14"), "{moved:?}");
    assert!(moved.iter().all(|it| after.contains_key(it)));
    assert!(!after.contains_key(LIVE) && after.contains_key("memory/2026-03-16.md"));
    assert_eq!(logs(&after), logs(&before));
    assert_eq!(generated_files(&after), generated_files(&before));
    assert_eq!(source_answers(&root), answers_before);
    assert_eq!(fs::metadata(root.path(ARCHIVED)).unwrap().modified().unwrap(), old_time());
    assert_healthy_and_up_to_date(&root);

    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["archived"], moved.len());
    assert_eq!(status["tiers"][0]["files"], logs(&before).len());
    let traced = root.run(&["trace", WEEK, "--json"]).ok().json();
    assert_eq!(traced["sources"][0]["path"], "memory/archive/2026/2026-01-12.md");

    // The files are the source of truth, wherever they are.
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_eq!(source_answers(&root)[..4], answers_before[..4]);
    assert_healthy_and_up_to_date(&root);
    let detected = root.run(&["init", "--no-config", "--json"]).ok().json();
    assert_eq!(detected["found"]["logs"], logs(&before).len());
}

#[test]
fn logs_are_archived_only_by_a_full_run_with_the_setting() {
    let root = compacted("mara");
    let before = root.files();
    root.run(&["compact"]).ok();
    root.run(&["compact", "weekly", "--set", "archive_after_days=30"]).ok();
    root.run(&["compact", "--period", "2026-W03", "--set", "archive_after_days=30"]).ok();
    assert_eq!(root.files(), before);
    let zero = root.run(&["compact", "--set", "archive_after_days=0"]);
    assert_eq!(zero.code, 2, "{zero}");
    assert!(zero.stderr.contains("at least 1"), "{zero}");
}

#[test]
fn a_flat_folder_has_its_archive_next_to_its_logs() {
    let root = Root::empty("flat");
    root.write("memoird.yaml", "zone: Europe/Berlin\nmemory_dir: .\n");
    root.write("2026-01-06.md", "- Importer v2 shipped, 3.2 s per GB\n");
    root.age_files();
    let report = compact(&root);
    assert_eq!(paths(&report, "archived"), ["archive/2026/2026-01-06.md"]);
    assert_healthy_and_up_to_date(&root);
    // A folder whose logs are all archived is not mistaken for an empty one.
    fs::remove_file(root.path("memoird.yaml")).unwrap();
    let detected = root.run(&["init", "--no-config", "--json"]).ok().json();
    assert_eq!((&detected["memory_dir"], &detected["found"]["logs"]), (&".".into(), &1.into()));
}

#[test]
fn late_lines_are_joined_with_the_archived_log() {
    let root = archived("mara");
    let before = root.read(ARCHIVED);
    let late_line = "- Decided late: the Kelvin probes go to Zanzibar on 2026-05-07, because the Nairobi depot floods.\n";
    root.write(LIVE, late_line);
    root.age_file(LIVE);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["problems"][0]["path"], LIVE, "{status:#}");
    // Until they are joined, the archived log counts.
    assert_eq!(root.run(&["show", "2026-01-13"]).ok().stdout, before);

    let report = compact(&root);
    assert_eq!(paths(&report, "joined"), [LIVE]);
    assert_eq!(root.read(LIVE), format!("{before}{late_line}"));
    assert!(!root.path(ARCHIVED).exists());
    assert!(root.read(WEEK).contains("Zanzibar"));
    let line = before.lines().count() + 1;
    let up = root.run(&["trace", "--up", &format!("2026-01-13:{line}"), "--json"]).ok();
    assert_eq!(up.json()["target"]["text"], late_line.trim_end());
    root.age_file(LIVE);
    assert_eq!(paths(&compact(&root), "archived"), [ARCHIVED]);
    assert_eq!(root.read(ARCHIVED), format!("{before}{late_line}"));
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_restored_copy_of_an_archived_log_duplicates_nothing() {
    let root = archived("mara");
    let before = root.read(ARCHIVED);
    let files = root.files();
    let put_back = |text: &str| {
        root.write(LIVE, text);
        root.age_file(LIVE);
        compact(&root)
    };
    // An identical copy, or its beginning: the archive already contains all of it.
    assert_eq!(paths(&put_back(&before), "joined"), [""; 0]);
    assert_eq!(root.files(), files);
    assert_eq!(paths(&put_back(&before[..100]), "joined"), [""; 0]);
    assert_eq!(root.files(), files);
    // A copy with more lines replaces the archived log.
    let longer = format!("{before}- One more line about the Zanzibar probes.\n");
    assert_eq!(paths(&put_back(&longer), "joined"), [LIVE]);
    assert_eq!(logs(&root.files()).iter().filter(|it| it.0 == "2026-01-13.md").count(), 1);
    assert_eq!(root.read(ARCHIVED), longer);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_log_that_cannot_be_joined_is_reported_and_left_alone() {
    let root = archived("mara");
    let files = generated_files(&root.files());
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(root.path(LIVE), b"caf\xe9\n").unwrap();
    root.write("memory/archive/2025/2026-01-14.md", "- In the wrong year.\n");
    root.write("memory/archive/2026-01-14.md", "- In no year.\n");
    compact(&root);
    assert_eq!(generated_files(&root.files()), files);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    let problems = status["problems"].as_array().unwrap();
    let problems: Vec<&str> = problems.iter().map(|it| it["path"].as_str().unwrap()).collect();
    let expected = [LIVE, "memory/archive/2025/2026-01-14.md", "memory/archive/2026-01-14.md"];
    assert_eq!(problems, expected);
}

#[test]
fn after_a_clock_jump_the_first_run_archives_nothing() {
    let mut root = compacted("mara");
    root.set_now("2026-05-01T09:00:00+02:00");
    let report = compact(&root);
    assert_eq!(paths(&report, "archived"), [""; 0]);
    assert!(report["archive_held"].as_str().unwrap().contains("2026-04-13"), "{report:#}");
    assert!(paths(&compact(&root), "archived").len() > 30);
    assert_healthy_and_up_to_date(&root);
}

/// Returns the failpoints of archiving and joining that a run passes.
fn steps(root: &Root) -> Vec<String> {
    let trace = root.home("trace");
    let mut command = root.command(ARCHIVE);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    root.finish(command, ARCHIVE).ok();
    let text = fs::read_to_string(trace).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let first = all.iter().position(|it| it.starts_with("archive.")).unwrap();
    // A joined log is written up to here; ordinary jobs do the rest.
    let joined = all.iter().position(|it| *it == "archive.leave").unwrap_or(0);
    let mut hits = BTreeMap::<&str, usize>::new();
    let mut failpoints = Vec::new();
    for (at, name) in all.iter().enumerate() {
        let nth = hits.entry(name).or_default();
        *nth += 1;
        let is_archiving = name.starts_with("archive.") || name.starts_with("vault.remove.");
        if is_archiving || (first..joined).contains(&at) {
            failpoints.push(format!("{name}#{nth}"));
        }
    }
    failpoints
}

fn fail(root: &Root, fault: &str) -> CommandOutput {
    let mut command = root.command(ARCHIVE);
    command.env("MEMOIRD_FAIL", fault);
    root.finish(command, ARCHIVE)
}

/// Kills the archiving of `start` at each of its steps, and makes each step fail: one more run gives
/// the same files as an undisturbed run, and each byte of a log exists once.
#[track_caller]
fn check_each_step(start: &Root, has_disk: bool) {
    let make = || {
        let root = start.copy();
        root.age_files();
        let disk = has_disk.then(|| other_disk().unwrap());
        if let Some(disk) = &disk {
            symlink(disk.path(), root.path("memory/archive")).unwrap();
        }
        (root, disk)
    };
    let (undisturbed, _disk) = make();
    let steps = steps(&undisturbed);
    undisturbed.age_files();
    undisturbed.run(ARCHIVE).ok();
    let expected = undisturbed.files();
    for step in &steps {
        for action in ["kill", "enospc"] {
            let (root, _disk) = make();
            let ran = fail(&root, &format!("{action}@{step}"));
            let failed = ran.code == -1 || ran.to_string().contains("No space left");
            assert!((ran.code == -1) == (action == "kill") && failed, "{action}@{step}\n{ran}");
            root.run(ARCHIVE).ok();
            root.age_files();
            root.run(ARCHIVE).ok();
            assert_eq!(logs(&root.files()), logs(&expected), "{action}@{step}");
            assert_eq!(root.files(), expected, "{action}@{step}");
            assert_healthy_and_up_to_date(&root);
        }
    }
}

/// Makes a folder on a different file system from the temporary homes.
fn other_disk() -> Option<TempDir> {
    let disk = tempfile::tempdir_in("/dev/shm").ok()?;
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let home = tempfile::tempdir().unwrap();
    (device(disk.path()) != device(home.path())).then_some(disk)
}

fn small() -> Root {
    let root = Root::small();
    root.age_files();
    root.run(&["compact"]).ok();
    root
}

#[test]
fn an_append_during_archiving_is_not_lost() {
    if cfg!(debug_assertions) {
        let root = small();
        root.run_paused_at(ARCHIVE, "archive.move", || {
            root.append("memory/2026-03-03.md", "- Appended just now\n");
        })
        .ok();
        assert!(root.read("memory/2026-03-03.md").ends_with("- Appended just now\n"));
        assert!(!root.path("memory/archive/2026/2026-03-03.md").exists());
        assert!(root.path("memory/archive/2026/2026-03-10.md").exists());
        root.run(ARCHIVE).ok();
        assert!(root.read("memory/weekly/2026-W10.md").contains("Appended just now"));
        root.age_files();
        root.run(ARCHIVE).ok();
        assert!(root.read("memory/archive/2026/2026-03-03.md").ends_with("- Appended just now\n"));
        assert_healthy_and_up_to_date(&root);
    }
}

#[test]
fn an_append_during_a_join_is_not_lost() {
    if cfg!(debug_assertions) {
        for step in ["archive.join", "vault.place.rename", "archive.leave"] {
            let root = small();
            root.run(ARCHIVE).ok();
            let (live, before) =
                ("memory/2026-03-03.md", root.read("memory/archive/2026/2026-03-03.md"));
            root.write(live, "- Late\n");
            root.age_files();
            root.run_paused_at(ARCHIVE, step, || root.append(live, "- Later still\n")).ok();
            root.run(ARCHIVE).ok();
            root.age_files();
            root.run(ARCHIVE).ok();
            let text = root.read("memory/archive/2026/2026-03-03.md");
            assert_eq!(text, format!("{before}- Late\n- Later still\n"), "{step}");
            assert_healthy_and_up_to_date(&root);
        }
    }
}

#[test]
fn a_move_interrupted_at_any_step_is_completed() {
    if cfg!(debug_assertions) {
        check_each_step(&small(), false);
    }
}

#[test]
fn a_copy_to_another_disk_interrupted_at_any_step_is_completed() {
    if cfg!(debug_assertions) {
        if other_disk().is_none() {
            skipped("no second file system to write to");
            return;
        }
        check_each_step(&small(), true);
    }
}

#[test]
fn a_join_interrupted_at_any_step_is_completed() {
    if cfg!(debug_assertions) {
        let root = small();
        root.run(ARCHIVE).ok();
        root.write("memory/2026-03-03.md", "- Late: the backup of 2019 was 38 GB\n");
        check_each_step(&root, false);
    }
}

#[test]
fn a_missing_archive_is_reported() {
    let root = archived("mara");
    fs::rename(root.path("memory/archive"), root.home("elsewhere")).unwrap();
    let refused = root.run(&["compact"]);
    assert!(
        refused.stderr.contains("known files are gone (memory/archive/2026/2026-01-"),
        "{refused}"
    );
    let status = root.run(&["status"]);
    assert!(status.stdout.contains("gone (memory/archive/2026/2026-01-"), "{status}");
    fs::rename(root.home("elsewhere"), root.path("memory/archive")).unwrap();
    root.run(&["compact"]).ok();
}
