//! `memoird doctor`.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

use crate::support::Root;

fn compacted() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root
}

fn chmod(path: PathBuf, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn after_a_run_all_checks_pass() {
    let root = compacted();
    let json = root.run(&["doctor", "--json"]).ok().json_as("doctor");
    assert_eq!(json["ok"], true);
    insta::with_settings!({filters => vec![
        (r"\d+(\.\d)? [GM]iB free", "[N] GiB free"),
        (r"SQLite( +)\d+\.\d+\.\d+", "SQLite$1[VERSION]"),
    ]}, {
        insta::assert_snapshot!(root.run(&["doctor"]), @r"
        $ memoird doctor
        ok    configuration        no config.yaml; using defaults
        ok    keys                 none set, none needed
        ok    root                 ~/small
        ok    memory folder        ~/small/memory
        ok    private files        not accessible to others
        ok    file system          local
        ok    disk space           [N] GiB free
        ok    SQLite               [VERSION]
        ok    database             6 items of 2 logs (schema 4)
        ok    last run             run 1, complete
        ok    torn files           none
        ok    records              4 files are as memoird wrote them
        ok    receipts             4 receipts verified
        ok    citations            8 cited lines found in their logs
        ok    orphans              none
        ok    links                none
        ok    typed memories       0 can be read
        ok    MEMORY.md            not needed yet
        ok    names and encodings  all files are readable
        ok    decisions            none yet
        ok    clock                no log or run is in the future
        ok    unfinished work      none
        ! all checks passed
        ");
    });
}

#[test]
fn a_new_folder_passes_and_is_not_changed() {
    let root = Root::new("jonas");
    root.run(&["doctor"]).ok();
    assert!(!root.path(".memoird").exists());
}

/// Damages a healthy folder and checks that `doctor` reports exactly this one problem.
#[track_caller]
fn check(damage: impl FnOnce(&Root), name: &str, detail: &str) {
    let root = compacted();
    damage(&root);
    let files = root.files();
    let ran = root.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let json = ran.json_as("doctor");
    let bad: Vec<_> =
        json["checks"].as_array().unwrap().iter().filter(|it| it["ok"] == false).collect();
    assert_eq!(bad.len(), 1, "{bad:#?}");
    assert_eq!(bad[0]["name"], name);
    let output = bad[0]["detail"].as_str().unwrap();
    assert!(output.contains(detail), "{output}");
    assert_eq!(root.files(), files);
}

#[test]
fn files_that_others_can_read_or_write_are_reported() {
    check(|it| chmod(it.path(".memoird"), 0o755), "private files", "chmod 700");
    check(|it| chmod(it.path(".memoird/lineage.db"), 0o644), "private files", "chmod 600");
    check(|it| chmod(it.path(""), 0o777), "root", "chmod o-w");
    check(|it| chmod(it.path("memory"), 0o777), "memory folder", "chmod o-w");
}

#[test]
fn decisions_that_a_checkout_made_readable_are_made_private_again() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let memory = root.files().into_keys().find(|it| it.starts_with("memory/user_")).unwrap();
    fs::remove_file(root.path(&memory)).unwrap();
    root.run(&["compact"]).ok();
    let path = "memory/.decisions.jsonl";
    chmod(root.path(path), 0o644);
    let doctor = root.run(&["doctor"]).ok();
    assert!(doctor.to_string().contains("the next run makes it private"), "{doctor}");
    root.run(&["compact"]).ok();
    assert_eq!(root.mode(path), 0o600);
}

#[test]
fn a_database_that_does_not_match_the_files_is_reported() {
    let truncate_database = |it: &Root| {
        let file = fs::OpenOptions::new().write(true).open(it.path(".memoird/lineage.db")).unwrap();
        file.set_len(50_000).unwrap();
    };
    check(truncate_database, "database", "memoird rebuild");
    let delete_private_folder = |it: &Root| fs::remove_dir_all(it.path(".memoird")).unwrap();
    check(delete_private_folder, "records", "memoird rebuild");
    let delete_database = |it: &Root| fs::remove_file(it.path(".memoird/lineage.db")).unwrap();
    let json = {
        let root = compacted();
        delete_database(&root);
        root.run(&["doctor", "--json"]).json_as("doctor")
    };
    let check_of = |name: &str| {
        json["checks"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone()
    };
    assert!(check_of("last run")["detail"].as_str().unwrap().contains("commits were lost"));
    let delete_week = |it: &Root| fs::remove_file(it.path("memory/weekly/2026-W10.md")).unwrap();
    check(delete_week, "records", "memory/weekly/2026-W10.md is gone");
}

#[test]
fn invalid_files_are_reported() {
    check(|it| it.write("memory/2026-02-30.md", ""), "names and encodings", "no such day");
    check(
        |it| it.write("memory/2026-03-03.md", "# Importer\n"),
        "citations",
        "2026-W10.md:11 cites 2026-03-03:3, but that log ends on line 1",
    );
    let memory = "---\nname: x\ndescription: y\ntype: user\n---\n\nZ.\n";
    check(|it| it.write("memory/user_x.md", memory), "MEMORY.md", "out of date");
    check(|it| it.write("memory/.memoird-tmp-9-9", ""), "unfinished work", ".memoird-tmp-9-9");
}

#[test]
fn edits_and_deleted_logs_are_not_problems() {
    let root = compacted();
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
fn an_invalid_configuration_is_reported() {
    let root = compacted();
    root.write("memoird.yaml", "zone: Europe/Berlinn\n");
    let ran = root.run(&["doctor", "--json"]);
    assert_eq!(ran.code, 1, "{ran}");
    let json = ran.json_as("doctor");
    assert_eq!(json["checks"][0]["name"], "configuration");
    assert!(json["checks"][0]["detail"].as_str().unwrap().contains("Europe/Berlin?"));
}

const WEEK: &str = "memory/weekly/2026-W10.md";

#[test]
fn repair_restores_a_damaged_file_and_keeps_the_damaged_text() {
    let root = compacted();
    let before = root.read(WEEK);
    root.write(WEEK, &before[..before.len() / 2].replace('\n', "\0"));
    let damaged = root.files();
    let refused = root.run(&["doctor", "--repair"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("--repair --yes"), "{refused}");
    let shown = root.run(&["doctor", "--repair", "--dry-run"]);
    assert!(shown.stderr.contains("contains NUL bytes"), "{shown}");
    assert_eq!(root.files(), damaged);
    let json = root.run(&["doctor", "--repair", "--yes", "--json"]).ok().json_as("doctor");
    assert!(json["repairs"][0].as_str().unwrap().contains(".memoird/quarantine/"));
    assert_eq!(root.read(WEEK), before);
    assert_eq!(
        root.run(&["doctor", "--repair", "--yes", "--json"]).ok().json()["repairs"],
        serde_json::json!([])
    );
}

#[test]
fn repair_removes_no_user_edit() {
    let root = compacted();
    root.write("memory/2026-03-03.md", "# Importer\n");
    let recorded = root.read(WEEK);
    let edits = [recorded.clone(), recorded.replacen("\n- ", "\n- In my own words: ", 1)];
    for text in edits {
        root.write(WEEK, &text);
        let ran = root.run(&["doctor", "--repair", "--yes", "--json"]);
        assert_eq!(ran.json()["repairs"], serde_json::json!([]), "{ran}");
        assert_eq!(root.read(WEEK), text);
    }
    assert!(!root.path(".memoird/quarantine").exists());
}

#[test]
fn repair_notices_deleted_files_before_recording_again() {
    let mut root = Root::new("mara");
    root.run(&["compact"]).ok();
    let files = root.files();
    let memory = files.keys().find(|it| it.contains('_') && !it.contains("/.")).unwrap();
    fs::remove_file(root.path(memory)).unwrap();
    let other = files.keys().filter(|it| it.contains('_') && !it.contains("/.")).nth(1).unwrap();
    // Another file is unchanged, but its record is missing from the database.
    let db = rusqlite::Connection::open(root.path(".memoird/lineage.db")).unwrap();
    let sql = "DELETE FROM document WHERE path = ?1";
    db.pragma_update(None, "foreign_keys", "ON").unwrap();
    assert_eq!(db.execute(sql, [other]).unwrap(), 1);
    drop(db);
    root.set_now("2026-04-13T10:00:00+02:00");
    let ran = root.run(&["doctor", "--repair", "--yes", "--json"]);
    assert!(ran.json()["repairs"].to_string().contains("generated files again"), "{ran}");
    assert!(root.read("memory/.decisions.jsonl").contains("\"what\":\"deleted\""));
    root.run(&["compact"]).ok();
    assert!(!root.path(memory).exists());
}

#[test]
fn a_run_restores_damaged_files_and_records_no_deletion() {
    let root = compacted();
    let before = root.files();
    let week = root.read(WEEK);
    let body = week.find("\n- ").unwrap() + 9;
    for damaged in ["", &week[..40], &week[..body], &week.replace('\n', "\0")] {
        root.write(WEEK, damaged);
        let ran = root.run(&["compact"]).ok();
        assert!(ran.stderr.contains(&format!("{WEEK} was put back")), "{ran}");
        assert_eq!(root.files(), before);
        assert!(!root.path("memory/.decisions.jsonl").exists());
        root.run(&["doctor"]).ok();
    }
}

#[test]
fn doctor_fails_for_unfinished_forgetting_and_missing_files() {
    let root = compacted();
    root.write(".memoird/forgetting.json", r#"{"Remove":[]}"#);
    let unfinished = root.run(&["doctor"]);
    assert_ne!(unfinished.code, 0, "{unfinished}");
    assert!(unfinished.to_string().contains("forgetting is not finished"), "{unfinished}");
    assert!(!unfinished.to_string().contains("unknown files"), "{unfinished}");
    fs::remove_file(root.path(".memoird/forgetting.json")).unwrap();
    for name in ["2026-03-03.md", "2026-03-10.md", "2026-04-13.md"] {
        fs::remove_file(root.path("memory").join(name)).unwrap();
    }
    fs::remove_dir_all(root.path("memory/weekly")).unwrap();
    fs::remove_dir_all(root.path("memory/monthly")).unwrap();
    let missing = root.run(&["doctor"]);
    assert_ne!(missing.code, 0, "{missing}");
    assert!(missing.to_string().contains("known files are gone"), "{missing}");
}

#[test]
fn an_undo_that_cannot_finish_is_reported_and_resumed() {
    let root = compacted();
    let before = root.read(WEEK);
    chmod(root.path("memory/weekly"), 0o500);
    if fs::create_dir(root.path("memory/weekly/probe")).is_ok() {
        // Permissions do not restrict the superuser.
        chmod(root.path("memory/weekly"), 0o700);
        return;
    }
    let ran = root.run(&["undo", "--yes"]);
    chmod(root.path("memory/weekly"), 0o700);
    assert_eq!(ran.code, 73, "{ran}");
    assert!(ran.stderr.contains("only partly undone"), "{ran}");
    assert!(ran.stderr.contains("memoird undo 1"), "{ran}");
    assert_eq!(root.read(WEEK), before);
    root.run(&["undo", "--yes"]).ok();
    assert!(!root.path(WEEK).exists());
}

#[test]
fn an_unreadable_file_is_moved_away_and_regenerated() {
    let root = compacted();
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    let before = root.read(WEEK);
    root.write(WEEK, "");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert!(!root.path(WEEK).exists());
    root.run(&["compact"]).ok();
    assert_eq!(root.read(WEEK), before);
    root.run(&["doctor"]).ok();
}

#[test]
fn repair_fixes_modes_and_removes_temporary_files() {
    let root = compacted();
    chmod(root.path(".memoird"), 0o755);
    chmod(root.path(".memoird/lineage.db"), 0o644);
    root.write("memory/.memoird-tmp-9-9", "half");
    root.run(&["doctor", "--repair", "--yes"]).ok();
    assert_eq!((root.mode(".memoird"), root.mode(".memoird/lineage.db")), (0o700, 0o600));
    assert!(!root.path("memory/.memoird-tmp-9-9").exists());
}

#[test]
fn a_run_repairs_a_damaged_or_missing_database() {
    let root = compacted();
    let files = root.files();
    let path = root.path(".memoird/lineage.db");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(50_000).unwrap();
    let repaired = root.run(&["compact"]).ok();
    assert!(repaired.stderr.contains("the database was damaged"), "{repaired}");
    root.run(&["doctor"]).ok();
    fs::remove_file(&path).unwrap();
    let repaired = root.run(&["compact"]).ok();
    assert!(repaired.stderr.contains("the database was missing"), "{repaired}");
    root.run(&["doctor"]).ok();
    assert_eq!(root.files(), files);
    let entries = fs::read_dir(root.path(".memoird")).unwrap();
    let is_damaged = |it: &fs::DirEntry| it.file_name().to_string_lossy().contains(".damaged-");
    assert!(entries.flatten().any(|it| is_damaged(&it)), "the damaged database is kept");
}

#[test]
fn an_older_copy_of_the_database_records_no_deletion() {
    let mut root = Root::new("mara");
    root.set_now("2026-02-16T09:00:00+01:00");
    root.run(&["compact"]).ok();
    let older = fs::read(root.path(".memoird/lineage.db")).unwrap();
    root.set_now(crate::support::NOW);
    root.run(&["compact"]).ok();
    let files = root.files();
    let mut file = fs::File::create(root.path(".memoird/lineage.db")).unwrap();
    std::io::Write::write_all(&mut file, &older).unwrap();
    drop(file);
    let output = root.run(&["doctor"]);
    assert!(output.stdout.contains("an older copy was put back"), "{output}");
    root.run(&["compact"]).ok();
    assert_eq!(root.files(), files);
    assert!(!root.path("memory/.decisions.jsonl").exists());
}
