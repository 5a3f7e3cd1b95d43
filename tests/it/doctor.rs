//! `memoird doctor`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use crate::support::Root;

fn made() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root
}

fn chmod(path: PathBuf, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn after_a_run_all_is_well() {
    let root = made();
    let json = root.run(&["doctor", "--json"]).ok().json_as("doctor");
    assert_eq!(json["ok"], true);
    insta::with_settings!({filters => vec![
        (r"\d+ MiB free", "[N] MiB free"),
        (r"SQLite( +)\d+\.\d+\.\d+", "SQLite$1[VERSION]"),
    ]}, {
        insta::assert_snapshot!(root.run(&["doctor"]), @r"
        $ memoird doctor
        ok    configuration        no config.yaml; the defaults hold
        ok    root                 ~/small
        ok    memory folder        ~/small/memory
        ok    private files        closed to others
        ok    file system          local
        ok    disk space           [N] MiB free
        ok    SQLite               [VERSION]
        ok    database             schema 2, 6 items, 2 logs
        ok    records              4 files as recorded
        ok    citations            8 cited lines are there
        ok    typed memories       0 are in form
        ok    MEMORY.md            not needed yet
        ok    names and encodings  every file can be read
        ok    decisions            none yet
        ok    clock                no log and no run lies in the future
        ok    unfinished work      none
        ! all is well
        ");
    });
}

#[test]
fn a_new_folder_is_well_and_stays_as_it_is() {
    let root = Root::new("jonas");
    root.run(&["doctor"]).ok();
    assert!(!root.path(".memoird").exists());
}

/// Does something to a folder on which all is well, and checks what `doctor` says then.
#[track_caller]
fn check(harm: impl FnOnce(&Root), name: &str, detail: &str) {
    let root = made();
    harm(&root);
    let files = root.files();
    let ran = root.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let json = ran.json_as("doctor");
    let bad: Vec<_> =
        json["checks"].as_array().unwrap().iter().filter(|it| it["ok"] == false).collect();
    assert_eq!(bad.len(), 1, "{bad:#?}");
    assert_eq!(bad[0]["name"], name);
    let said = bad[0]["detail"].as_str().unwrap();
    assert!(said.contains(detail), "{said}");
    assert_eq!(root.files(), files);
}

#[test]
fn files_that_others_can_read_or_write_are_named() {
    check(|it| chmod(it.path(".memoird"), 0o755), "private files", "chmod 700");
    check(|it| chmod(it.path(".memoird/lineage.db"), 0o644), "private files", "chmod 600");
    check(|it| chmod(it.path(""), 0o777), "root", "chmod o-w");
    check(|it| chmod(it.path("memory"), 0o777), "memory folder", "chmod o-w");
}

#[test]
fn a_database_that_does_not_fit_the_files_is_named() {
    let cut = |it: &Root| {
        let file = fs::OpenOptions::new().write(true).open(it.path(".memoird/lineage.db")).unwrap();
        file.set_len(50_000).unwrap();
    };
    check(cut, "database", "memoird rebuild");
    let gone = |it: &Root| fs::remove_dir_all(it.path(".memoird")).unwrap();
    check(gone, "records", "memoird rebuild");
    let lost = |it: &Root| fs::remove_file(it.path(".memoird/lineage.db")).unwrap();
    let json = {
        let root = made();
        lost(&root);
        root.run(&["doctor", "--json"]).json_as("doctor")
    };
    let check_of = |name: &str| {
        json["checks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert!(check_of("last run")["detail"].as_str().unwrap().contains("commits were lost"));
    let week = |it: &Root| fs::remove_file(it.path("memory/weekly/2026-W10.md")).unwrap();
    check(week, "records", "memory/weekly/2026-W10.md is gone");
}

#[test]
fn files_that_are_not_in_form_are_named() {
    check(|it| it.write("memory/2026-02-30.md", ""), "names and encodings", "no such day");
    check(
        |it| it.write("memory/2026-03-03.md", "# Importer\n"),
        "citations",
        "2026-W10.md:16 cites 2026-03-03:3, but that log ends on line 1",
    );
    let memory = "---\nname: x\ndescription: y\ntype: user\n---\n\nZ.\n";
    check(|it| it.write("memory/user_x.md", memory), "MEMORY.md", "not in step");
    check(|it| it.write("memory/.memoird-tmp-9-9", ""), "unfinished work", ".memoird-tmp-9-9");
}

#[test]
fn what_people_may_do_is_no_illness() {
    let root = made();
    root.append("memory/weekly/2026-W10.md", "- Ask Henk about the export\n");
    fs::remove_file(root.path("memory/2026-03-03.md")).unwrap();
    let json = root.run(&["doctor", "--json"]).ok().json_as("doctor");
    let detail = |name: &str| {
        let checks = json["checks"].as_array().unwrap();
        checks.iter().find(|it| it["name"] == name).unwrap()["detail"].as_str().unwrap().to_owned()
    };
    assert!(detail("records").ends_with("edited since: memory/weekly/2026-W10.md"));
    assert!(detail("citations").ends_with("source gone: 2026-03-03"));
}

#[test]
fn a_configuration_that_does_not_load_is_a_finding() {
    let root = made();
    root.write("memoird.yaml", "zone: Europe/Berlinn\n");
    let ran = root.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let json = ran.json_as("doctor");
    assert_eq!(json["checks"][0]["name"], "configuration");
    assert!(json["checks"][0]["detail"].as_str().unwrap().contains("Europe/Berlin?"));
}
