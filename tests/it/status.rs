//! `memoird status`.

use std::{collections::BTreeMap, fs};

use memoird::internals::store::fs::{layout::Layout, lock::DaemonLock};

use crate::support::Root;

/// Returns all files of the private folder.
fn private_files(root: &Root) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(root.path(".memoird")).unwrap();
    let entries = entries.map(|it| it.unwrap());
    entries
        .map(|it| (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap()))
        .collect()
}

#[test]
fn status_of_a_new_folder_shows_due_jobs_and_writes_nothing() {
    let root = Root::small();
    let files = root.files();
    insta::assert_snapshot!(root.run(&["status"]), @r"
    $ memoird status
    ~/small
    small · time zone Europe/Berlin, from memoird.yaml

                     FILES  CHARS  NEWEST      DUE
     logs            3      137    2026-04-13
     typed memories  0      0      -           2
     weeks           0      0      -           2
     months          0      0      -           1
     wisdom          0      0      -           1

    due (6)
      extract 2026-03-03: new
      extract 2026-03-10: new
      weekly 2026-W10: new
      weekly 2026-W11: new
      monthly 2026-03: waits for its sources
      wisdom 2026-03: waits for its sources
    run `memoird compact` to do it now

    engine    extractive (offline, free), ready
    daemon    not running; `memoird run` starts it
    next      nothing is scheduled, because no daemon runs; `memoird compact` runs what is due
    ");
    let json = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(
        json["tiers"][2]["due"][0],
        serde_json::json!({"period": "2026-W10", "reason": "new"})
    );
    assert_eq!(root.files(), files);
    assert!(!root.path(".memoird").exists());
}

#[test]
fn after_a_run_nothing_is_due_and_nothing_is_written() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let before = (root.files(), private_files(&root));
    insta::assert_snapshot!(root.run(&["status"]), @r"
    $ memoird status
    ~/small
    small · time zone Europe/Berlin, from memoird.yaml

                     FILES  CHARS  NEWEST      DUE
     logs            3      137    2026-04-13
     typed memories  0      0      -           -
     weeks           2      198    2026-W11    -
     months          1      161    2026-03     -
     wisdom          1      144    2026-03     -

    nothing is due; weekly 2026-W16 closes Mon 2026-04-20 02:00

    engine    extractive (offline, free), ready
    daemon    not running; `memoird run` starts it
    last run  2026-04-13T09:00:00+02:00 by compact: 4 written, 2 days read for typed memories
    next      nothing is scheduled, because no daemon runs; `memoird compact` runs what is due
    ");
    root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!((root.files(), private_files(&root)), before);
}

#[test]
fn logs_in_folders_that_are_not_read_are_named() {
    let root = Root::small();
    root.write("memory/2026/03/2026-03-20.md", "- a\n");
    root.write("memory/2026/03/2026-03-21.md", "- b\n");
    root.write("memory/daily/2026-03-22.md", "- c\n");
    root.write("memory/images/a.md", "no log\n");
    root.write("daily/2026-03-23.md", "- d\n");
    let output = root.run(&["status"]).ok().stdout;
    let line = |words: &str| output.lines().any(|it| it.contains(words));
    assert!(line("mv memory/2026/03/*.md memory/") && line("2 logs"), "{output}");
    assert!(line("mv memory/daily/*.md memory/") && !line("images"), "{output}");
    assert!(line("mv daily/*.md memory/"), "{output}");
    let other = Root::empty("other");
    other.write("daily/2026-03-23.md", "- d\n");
    let output = other.run(&["init", ".", "--dry-run", "--no-config"]).ok();
    let output = output.stdout + &output.stderr;
    assert!(output.contains("mv daily/*.md") && !output.contains("nothing yet"), "{output}");
}

#[test]
fn failed_and_stuck_jobs_set_the_exit_code() {
    let root = Root::new("jonas");
    fs::create_dir_all(root.path("memory/weekly/2026-W14.md")).unwrap();
    assert_eq!(root.run(&["compact", "weekly"]).code, 1);
    let status = root.run(&["status", "--json"]);
    assert_eq!(status.code, 1, "{status}");
    let json = status.json_as("status");
    assert_eq!(
        (&json["failed"][0]["period"], &json["parked"]),
        (&"2026-W14".into(), &serde_json::json!([]))
    );
    root.run(&["compact", "weekly"]);
    root.run(&["compact", "weekly"]);
    let status = root.run(&["status", "--json"]);
    assert_eq!(status.code, 1, "{status}");
    assert_eq!(status.json_as("status")["parked"][0]["period"], "2026-W14");
    let text = root.run(&["status"]).stdout;
    assert!(text.contains("memoird compact --period 2026-W14 --force"), "{text}");
    fs::remove_dir(root.path("memory/weekly/2026-W14.md")).unwrap();
    root.run(&["compact", "--period", "2026-W14", "--force"]).ok();
    root.run(&["status"]).ok();
}

#[test]
fn problem_files_are_listed() {
    let root = Root::empty("r");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("memory/2026-04-02.md", "- shipped the importer\n");
    root.write("memory/2026-02-30.md", "- when?\n");
    root.write("memory/2026-05-30.md", "- not yet\n");
    root.write("memory/weekly/2026-W14.md", "# Mine\n");
    root.write("memory/.decisions.jsonl", "what?\n");
    insta::assert_snapshot!(root.run(&["status"]), @r"
    $ memoird status
    ~/r
    r · time zone Europe/Berlin, from memoird.yaml

                     FILES  CHARS  NEWEST      DUE
     logs            2      31     2026-05-30
     typed memories  0      0      -           1
     weeks           1      6      2026-W14    -
     months          0      0      -           -
     wisdom          0      0      -           -

    due (1)
      extract 2026-04-02: new
    run `memoird compact` to do it now
    not written by memoird, read but never changed (1)
      memory/weekly/2026-W14.md; `memoird compact --period 2026-W14 --force` adopts it
    problems (4)
      memory/.decisions.jsonl: has lost its key, so nothing is written: `memoird doctor --repair` restores it as it was after the last run, `memoird compact --accept-missing` accepts it as it is
      memory/2026-02-30.md: there is no such day
      memory/2026-05-30.md: dated in the future (today is 2026-04-13); it waits for its day
      memory/.decisions.jsonl: cannot read line 1, which is ignored

    engine    extractive (offline, free), ready
    daemon    not running; `memoird run` starts it
    next      nothing is scheduled, because no daemon runs; `memoird compact` runs what is due
    ");
}

#[test]
fn a_damaged_database_hides_no_file() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let path = root.path(".memoird/lineage.db");
    let intact = fs::read(&path).unwrap();
    // Damages everything, then everything but the pages that are read on opening.
    for from in [0, 8_192] {
        let mut bytes = intact.clone();
        bytes[from..].fill(0xA5);
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(&path, bytes).unwrap();
        let json = root.run(&["status", "--json"]).ok().json_as("status");
        assert_eq!(json["problems"][0]["path"], ".memoird/lineage.db");
        assert_eq!(json["tiers"][2]["files"], 2);
    }
}

#[test]
fn several_folders_are_shown_in_one_table() {
    let root = Root::small();
    let config = root.home(".config/memoird/config.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(config, "roots: [{path: ~/small}, {path: ~/nowhere}]\n").unwrap();
    let outside = |args: &[&str]| {
        let mut command = root.command(args);
        command.current_dir(root.home(""));
        root.finish(command, args)
    };
    insta::assert_snapshot!(outside(&["status"]), @r"
    $ memoird status
     MEMORY FOLDER  LOGS  DUE  STUCK  PROBLEMS  DAEMON
     ~/small        3     6    0      0         not running
     ~/nowhere      -     -    -      -         there is no folder ~/nowhere
    ! `memoird --root DIR status` shows one in detail
    [exit 1]
    ");
    let json = outside(&["status", "--json"]).json_as("status");
    assert_eq!(json["roots"].as_array().unwrap().len(), 2);
    assert_eq!(json["roots"][0]["agent_name"], "small");
}

#[test]
fn a_running_daemon_is_shown() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let lock = DaemonLock::acquire(&Layout::new(root.path(""), "memory")).unwrap();
    let pid = std::process::id();
    let daemon = |root: &Root| {
        let json = root.run(&["status", "--json"]).ok().json_as("status");
        (json["daemon"].clone(), json["watcher"].clone())
    };
    let (running, watcher) = daemon(&root);
    assert_eq!((&running["running"], &running["pid"]), (&true.into(), &pid.into()));
    assert!(running["since"].is_string() && watcher["mode"].is_null());
    let state_of = |pid: u32| {
        format!(
            r#"{{"pid":{pid},"since":"2026-04-13T08:00:00+02:00","mode":"inotify","missed":2}}"#
        )
    };
    root.write(".memoird/daemon.json", &state_of(pid));
    let (running, watcher) = daemon(&root);
    assert_eq!(running["since"], "2026-04-13T08:00:00+02:00");
    assert_eq!((&watcher["mode"], &watcher["missed"]), (&"inotify".into(), &2.into()));
    // A state file of an earlier daemon is ignored.
    root.write(".memoird/daemon.json", &state_of(1));
    assert!(daemon(&root).1["mode"].is_null());
    drop(lock);
    assert_eq!(daemon(&root).0["running"], false);
}
