//! Old logs move away once all that is made of them stands, and nothing else changes.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    path::Path,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Ran, Root};

const ARCHIVE: &[&str] = &["compact", "--set", "archive_after_days=30"];
const WEEK: &str = "memory/weekly/2026-W03.md";
const LIVE: &str = "memory/2026-01-13.md";
const ARCHIVED: &str = "memory/archive/2026/2026-01-13.md";

/// Makes all files look as if nobody had touched them for days.
fn settle(root: &Root) {
    for (path, _) in root.files() {
        age(&root.path(&path));
    }
}

fn age(path: &Path) {
    // 2026-04-01, before all tests take place.
    let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_775_000_000);
    let times = fs::FileTimes::new().set_modified(then);
    fs::File::open(path).unwrap().set_times(times).unwrap();
}

/// A folder in which all that is due has been done, and nothing is archived.
fn folded(journal: &str) -> Root {
    let root = Root::new(journal);
    settle(&root);
    root.run(&["compact"]).ok();
    root
}

fn archived(journal: &str) -> Root {
    let root = folded(journal);
    root.run(ARCHIVE).ok();
    root
}

/// Returns the logs among `files` by name, each as often as it stands there.
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

/// Returns all files that are no logs.
fn made(files: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_log = |path: &str| path.rsplit('/').next().unwrap().starts_with("20");
    let summary = |path: &str| path.contains("/weekly/") || path.contains("/monthly/");
    let made = files.iter().filter(|(path, _)| summary(path) || !is_log(path));
    made.map(|(path, text)| (path.clone(), text.clone())).collect()
}

/// What can be asked about sources, as it is answered wherever the logs stand.
fn answers(root: &Root) -> Vec<String> {
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
fn assert_sound(root: &Root) {
    root.run(&["doctor"]).ok();
    let before = root.files();
    let again = compact(root);
    let jobs = again["jobs"].as_array().unwrap().len();
    assert_eq!((jobs, paths(&again, "archived").len()), (0, 0), "{again:#}");
    assert_eq!(root.files(), before);
}

#[test]
fn old_logs_move_and_everything_finds_them_there() {
    let root = folded("mara");
    let (before, asked) = (root.files(), answers(&root));
    let foreseen = root.run(&[ARCHIVE, &["--dry-run", "--json"]].concat()).ok();
    let foreseen = paths(&foreseen.json_as("compact"), "archived");
    assert_eq!(root.files(), before);

    let report = compact(&root);
    let after = root.files();
    let moved = paths(&report, "archived");
    assert_eq!((report["jobs"].as_array().unwrap().len(), &moved), (0, &foreseen));
    assert!(moved.contains(&ARCHIVED.to_owned()) && moved.len() > 30, "{moved:?}");
    assert!(moved.iter().all(|it| it.as_str() < "memory/archive/2026/2026-03-14"), "{moved:?}");
    assert!(moved.iter().all(|it| after.contains_key(it)));
    assert!(!after.contains_key(LIVE) && after.contains_key("memory/2026-03-16.md"));
    assert_eq!(logs(&after), logs(&before));
    assert_eq!(made(&after), made(&before));
    assert_eq!(answers(&root), asked);
    assert_eq!(fs::metadata(root.path(ARCHIVED)).unwrap().mtime(), 1_775_000_000);
    assert_sound(&root);

    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["archived"], moved.len());
    assert_eq!(status["tiers"][0]["files"], logs(&before).len());
    let real = root.run(&["trace", WEEK, "--json"]).ok().json();
    assert_eq!(real["sources"][0]["path"], "memory/archive/2026/2026-01-12.md");

    // The files are the truth, wherever they stand.
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_eq!(answers(&root)[..4], asked[..4]);
    assert_sound(&root);
    let found = root.run(&["init", "--no-config", "--json"]).ok().json();
    assert_eq!(found["found"]["logs"], logs(&before).len());
}

#[test]
fn nothing_moves_unless_it_is_asked_for() {
    let root = folded("mara");
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
fn the_flat_folder_has_its_archive_beside_its_logs() {
    let root = Root::empty("flat");
    root.write("memoird.yaml", "zone: Europe/Berlin\nmemory_dir: .\n");
    root.write("2026-01-06.md", "- Importer v2 shipped, 3.2 s per GB\n");
    settle(&root);
    let report = compact(&root);
    assert_eq!(paths(&report, "archived"), ["archive/2026/2026-01-06.md"]);
    assert_sound(&root);
    // A folder whose logs are all archived is told from an empty one.
    fs::remove_file(root.path("memoird.yaml")).unwrap();
    let found = root.run(&["init", "--no-config", "--json"]).ok().json();
    assert_eq!((&found["memory_dir"], &found["found"]["logs"]), (&".".into(), &1.into()));
}

#[test]
fn what_comes_late_is_added_to_the_day() {
    let root = archived("mara");
    let before = root.read(ARCHIVED);
    let late = "- Decided late: the Kelvin probes go to Zanzibar on 2026-05-07, because the Nairobi depot floods.\n";
    root.write(LIVE, late);
    age(&root.path(LIVE));
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["problems"][0]["path"], LIVE, "{status:#}");
    // Until then the archived one counts.
    assert_eq!(root.run(&["show", "2026-01-13"]).ok().stdout, before);

    let report = compact(&root);
    assert_eq!(paths(&report, "joined"), [LIVE]);
    assert_eq!(root.read(LIVE), format!("{before}{late}"));
    assert!(!root.path(ARCHIVED).exists());
    assert!(root.read(WEEK).contains("Zanzibar"));
    let line = before.lines().count() + 1;
    let up = root.run(&["trace", "--up", &format!("2026-01-13:{line}"), "--json"]).ok();
    assert_eq!(up.json()["target"]["text"], late.trim_end());
    age(&root.path(LIVE));
    assert_eq!(paths(&compact(&root), "archived"), [ARCHIVED]);
    assert_eq!(root.read(ARCHIVED), format!("{before}{late}"));
    assert_sound(&root);
}

#[test]
fn a_copy_that_is_put_back_doubles_nothing() {
    let root = archived("mara");
    let before = root.read(ARCHIVED);
    let files = root.files();
    let put = |text: &str| {
        root.write(LIVE, text);
        age(&root.path(LIVE));
        compact(&root)
    };
    // The same, and the beginning of it: all of that stands in the archive.
    assert_eq!(paths(&put(&before), "joined"), [""; 0]);
    assert_eq!(root.files(), files);
    assert_eq!(paths(&put(&before[..100]), "joined"), [""; 0]);
    assert_eq!(root.files(), files);
    // The same and more: that is the log now.
    let more = format!("{before}- One more line about the Zanzibar probes.\n");
    assert_eq!(paths(&put(&more), "joined"), [LIVE]);
    assert_eq!(logs(&root.files()).iter().filter(|it| it.0 == "2026-01-13.md").count(), 1);
    assert_eq!(root.read(ARCHIVED), more);
    assert_sound(&root);
}

#[test]
fn a_day_that_cannot_be_joined_is_told_and_left_alone() {
    let root = archived("mara");
    let files = made(&root.files());
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(root.path(LIVE), b"caf\xe9\n").unwrap();
    root.write("memory/archive/2025/2026-01-14.md", "- In the wrong year.\n");
    root.write("memory/archive/2026-01-14.md", "- In no year.\n");
    compact(&root);
    assert_eq!(made(&root.files()), files);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    let told = status["problems"].as_array().unwrap();
    let told: Vec<&str> = told.iter().map(|it| it["path"].as_str().unwrap()).collect();
    let expected = [LIVE, "memory/archive/2025/2026-01-14.md", "memory/archive/2026-01-14.md"];
    assert_eq!(told, expected);
}

#[test]
fn after_a_gap_the_first_run_only_looks_at_the_clock() {
    let mut root = folded("mara");
    root.set_now("2026-05-01T09:00:00+02:00");
    let held = compact(&root);
    assert_eq!(paths(&held, "archived"), [""; 0]);
    assert!(held["archive_held"].as_str().unwrap().contains("2026-04-13"), "{held:#}");
    assert!(paths(&compact(&root), "archived").len() > 30);
    assert_sound(&root);
}

/// Returns the steps of archiving and joining that a command passes.
fn steps(root: &Root) -> Vec<String> {
    let trace = root.home("trace");
    let mut command = root.command(ARCHIVE);
    command.env("MEMOIRD_FAIL_TRACE", &trace);
    root.finish(command, ARCHIVE).ok();
    let text = fs::read_to_string(trace).unwrap();
    let all: Vec<&str> = text.lines().collect();
    let first = all.iter().position(|it| it.starts_with("archive.")).unwrap();
    // Until here a joined log is written; what follows is made of it by the jobs of any pass.
    let joined = all.iter().position(|it| *it == "archive.leave").unwrap_or(0);
    let mut hits = BTreeMap::<&str, usize>::new();
    let mut named = Vec::new();
    for (at, name) in all.iter().enumerate() {
        let nth = hits.entry(name).or_default();
        *nth += 1;
        let own = name.starts_with("archive.") || name.starts_with("vault.remove.");
        if own || (first..joined).contains(&at) {
            named.push(format!("{name}#{nth}"));
        }
    }
    named
}

fn fail(root: &Root, fault: &str) -> Ran {
    let mut command = root.command(ARCHIVE);
    command.env("MEMOIRD_FAIL", fault);
    root.finish(command, ARCHIVE)
}

/// Stops the archiving of `make` at each of its steps, and makes each of them fail: after one more
/// run everything is as without the accident, and each byte of a log is there once.
#[track_caller]
fn check_each_step(start: &Root, has_disk: bool) {
    let make = || {
        let root = copy(start);
        let disk = has_disk.then(|| other_disk().unwrap());
        if let Some(disk) = &disk {
            symlink(disk.path(), root.path("memory/archive")).unwrap();
        }
        (root, disk)
    };
    let (undisturbed, _disk) = make();
    let steps = steps(&undisturbed);
    settle(&undisturbed);
    undisturbed.run(ARCHIVE).ok();
    let expected = undisturbed.files();
    for step in &steps {
        for action in ["kill", "enospc"] {
            let (root, _disk) = make();
            let ran = fail(&root, &format!("{action}@{step}"));
            let told = ran.code == -1 || ran.to_string().contains("No space left");
            assert!((ran.code == -1) == (action == "kill") && told, "{action}@{step}\n{ran}");
            root.run(ARCHIVE).ok();
            settle(&root);
            root.run(ARCHIVE).ok();
            assert_eq!(logs(&root.files()), logs(&expected), "{action}@{step}");
            assert_eq!(root.files(), expected, "{action}@{step}");
            assert_sound(&root);
        }
    }
}

/// Makes a folder on another file system than that of the temporary homes.
fn other_disk() -> Option<TempDir> {
    let disk = tempfile::tempdir_in("/dev/shm").ok()?;
    let device = |path: &Path| fs::metadata(path).unwrap().dev();
    let home = tempfile::tempdir().unwrap();
    (device(disk.path()) != device(home.path())).then_some(disk)
}

/// Copies a folder with its database into a home of its own.
fn copy(root: &Root) -> Root {
    fn copy_dir(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let (path, name) = entry.map(|it| (it.path(), it.file_name())).unwrap();
            if path.is_dir() {
                copy_dir(&path, &to.join(name));
            } else {
                fs::copy(&path, to.join(name)).unwrap();
            }
        }
    }
    let copied = Root::empty("small");
    copy_dir(&root.path(""), &copied.path(""));
    settle(&copied);
    copied
}

fn small() -> Root {
    let root = Root::small();
    settle(&root);
    root.run(&["compact"]).ok();
    root
}

/// Runs the archiving and does something while it stands at a step.
fn meanwhile(root: &Root, step: &str, act: impl FnOnce()) {
    let go = root.home("go");
    let fault = format!("wait:{}@{step}", go.display());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| fail(root, &fault));
        while !root.home("go.reached").exists() {
            assert!(!run.is_finished(), "{step} is not reached");
            std::thread::yield_now();
        }
        act();
        fs::File::create(go).unwrap();
        run.join().unwrap().ok();
    });
}

#[test]
fn an_append_in_the_moment_of_a_move_is_not_lost() {
    if cfg!(debug_assertions) {
        let root = small();
        meanwhile(&root, "archive.move", || {
            root.append("memory/2026-03-03.md", "- Appended just now\n");
        });
        assert!(root.read("memory/2026-03-03.md").ends_with("- Appended just now\n"));
        assert!(!root.path("memory/archive/2026/2026-03-03.md").exists());
        assert!(root.path("memory/archive/2026/2026-03-10.md").exists());
        root.run(ARCHIVE).ok();
        assert!(root.read("memory/weekly/2026-W10.md").contains("Appended just now"));
        settle(&root);
        root.run(ARCHIVE).ok();
        assert!(root.read("memory/archive/2026/2026-03-03.md").ends_with("- Appended just now\n"));
        assert_sound(&root);
    }
}

#[test]
fn an_append_in_the_moment_of_a_join_is_not_lost() {
    if cfg!(debug_assertions) {
        for step in ["archive.join", "vault.place.rename", "archive.leave"] {
            let root = small();
            root.run(ARCHIVE).ok();
            let (live, before) =
                ("memory/2026-03-03.md", root.read("memory/archive/2026/2026-03-03.md"));
            root.write(live, "- Late\n");
            settle(&root);
            meanwhile(&root, step, || root.append(live, "- Later still\n"));
            root.run(ARCHIVE).ok();
            settle(&root);
            root.run(ARCHIVE).ok();
            let text = root.read("memory/archive/2026/2026-03-03.md");
            assert_eq!(text, format!("{before}- Late\n- Later still\n"), "{step}");
            assert_sound(&root);
        }
    }
}

#[test]
fn every_step_of_a_move_may_be_the_last_one() {
    if cfg!(debug_assertions) {
        check_each_step(&small(), false);
    }
}

#[test]
fn every_step_of_a_copy_to_another_disk_may_be_the_last_one() {
    if cfg!(debug_assertions) {
        if other_disk().is_none() {
            #[expect(clippy::print_stderr, reason = "whoever runs the tests is to know")]
            {
                eprintln!("skipped: there is no second file system to write to");
            }
            return;
        }
        check_each_step(&small(), true);
    }
}

#[test]
fn every_step_of_a_join_may_be_the_last_one() {
    if cfg!(debug_assertions) {
        let root = small();
        root.run(ARCHIVE).ok();
        root.write("memory/2026-03-03.md", "- Late: the backup of 2019 was 38 GB\n");
        check_each_step(&root, false);
    }
}

#[test]
fn an_archive_that_is_gone_is_named_as_such() {
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
