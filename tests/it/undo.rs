//! Runs taken back: what stands there then, what is not made again, and what a person did stays.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{Ran, Root};

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const LOG: &str = "memory/2026-03-11.md";
const DECISIONS: &str = "memory/.decisions.jsonl";

/// The Mondays on which the samples are folded, from the first week that has closed.
const MONDAYS: [&str; 6] =
    ["2026-02-02", "2026-03-02", "2026-03-09", "2026-03-16", "2026-03-23", "2026-04-06"];

type Files = BTreeMap<String, String>;

/// Returns all files but the record of decisions.
fn files(root: &Root) -> Files {
    let mut files = root.files();
    files.remove(DECISIONS);
    files
}

fn set_day(root: &mut Root, day: &str) {
    root.set_now(&format!("{day}T09:00:00+02:00"));
}

/// A folder that was folded on each Monday, and what stood there before each run.
fn folded(journal: &str) -> (Root, Vec<Files>) {
    let mut root = Root::new(journal);
    let mut before = Vec::new();
    for monday in MONDAYS {
        before.push(files(&root));
        set_day(&mut root, monday);
        root.run(&["compact"]).ok();
    }
    (root, before)
}

fn undo(root: &Root, args: &[&str]) -> Value {
    let args: Vec<&str> =
        ["undo"].iter().chain(args).chain(&["--yes", "--json"]).copied().collect();
    root.run(&args).ok().json_as("undo")
}

#[track_caller]
fn assert_same(found: &Files, expected: &Files) {
    let differ: Vec<&String> = found
        .keys()
        .chain(expected.keys())
        .filter(|it| found.get(*it) != expected.get(*it))
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// Checks that nothing is due and that all is well.
#[track_caller]
fn assert_at_rest(root: &Root) {
    let before = root.files();
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(report["jobs"], serde_json::json!([]));
    assert_same(&root.files(), &before);
    root.run(&["doctor"]).ok();
}

fn outcomes(report: &Value) -> BTreeMap<String, String> {
    let files = report["files"].as_array().unwrap().iter();
    files
        .map(|it| {
            (it["path"].as_str().unwrap().to_owned(), it["outcome"].as_str().unwrap().to_owned())
        })
        .collect()
}

fn last_run(root: &Root) -> String {
    let status = root.run(&["status", "--json"]).json();
    status["last_run"]["run"].to_string()
}

#[test]
fn the_last_run_is_taken_back_and_put_back_byte_for_byte() {
    for journal in ["mara", "jonas"] {
        let (root, before) = folded(journal);
        let after = files(&root);
        let report = undo(&root, &[]);
        assert_eq!(report["taken_back"][0]["trigger"], "compact");
        assert_same(&files(&root), &before[5]);
        assert_at_rest(&root);
        assert_eq!(undo(&root, &[])["taken_back"][0]["trigger"], "undo");
        assert_same(&files(&root), &after);
        assert_at_rest(&root);
    }
}

#[test]
fn the_first_run_of_all_leaves_nothing_behind() {
    let root = Root::new("mara");
    let before = files(&root);
    root.run(&["compact"]).ok();
    let after = files(&root);
    undo(&root, &[]);
    assert_same(&files(&root), &before);
    assert_at_rest(&root);
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_at_rest(&root);
    assert_same(&files(&root), &before);
    // What is asked for by name is made, and its refusal is lifted.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    let bullets = |text: &str| text.lines().filter(|it| it.starts_with("- ")).count();
    assert_eq!(bullets(&root.read(WEEK)), bullets(&after[WEEK]));
    assert!(root.read(DECISIONS).contains("\"restored\""));
}

#[test]
fn what_was_taken_back_is_due_again_when_a_log_changes() {
    let (root, before) = folded("mara");
    undo(&root, &[]);
    let due = |root: &Root| {
        let plan = root.run(&["compact", "--dry-run", "--json"]).ok().json();
        plan["jobs"].as_array().unwrap().len()
    };
    assert_eq!(due(&root), 0);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert!(!status["undone"].as_array().unwrap().is_empty());
    let made: Vec<String> =
        root.files().into_keys().filter(|it| it.starts_with("memory/2026-04-0")).collect();
    root.append(made.last().unwrap(), "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    assert!(due(&root) > 0);
    root.run(&["compact"]).ok();
    assert!(files(&root).len() >= before[5].len());
    assert_at_rest(&root);
}

#[test]
fn a_run_that_others_rest_on_goes_with_them_or_not_at_all() {
    let (root, before) = folded("mara");
    let refused = root.run(&["undo", "5", "--yes"]);
    assert_eq!(refused.code, 2);
    let later =
        "later runs depend on run 5: run 6 (2026-04-06 09:00, compact): memory/weekly/2026-W12.md";
    assert!(refused.stderr.contains(later), "{refused}");
    assert!(refused.stderr.contains("memoird undo 5 --with-later"), "{refused}");
    let after = files(&root);
    let report = undo(&root, &["5", "--with-later"]);
    let taken = report["taken_back"].as_array().unwrap().iter();
    let runs: Vec<i64> = taken.map(|it| it["run"].as_i64().unwrap()).collect();
    assert_eq!(runs, [6, 5]);
    assert_same(&files(&root), &before[4]);
    assert_at_rest(&root);
    // Older ones can go alone now, and all of it can come back.
    undo(&root, &["4"]);
    assert_same(&files(&root), &before[3]);
    assert_at_rest(&root);
    undo(&root, &[]);
    assert_same(&files(&root), &before[4]);
    undo(&root, &["7"]);
    assert_same(&files(&root), &after);
    assert_at_rest(&root);
    assert_eq!(root.run(&["undo", "7", "--yes"]).code, 2, "it is taken back");
}

#[test]
fn what_a_person_changed_since_stays() {
    let (root, before) = folded("mara");
    let report = root.run(&["undo", "--dry-run", "--json"]).ok().json_as("undo");
    let files_of = outcomes(&report);
    let (week, _) = files_of.iter().find(|it| it.0.contains("/weekly/")).unwrap();
    let (month, _) = files_of.iter().find(|it| it.0.contains("/monthly/")).unwrap();
    let memory = files_of.keys().find(|it| it.contains("memory/project_")).unwrap();
    let mine = format!("{}- A line of my own\n", root.read(week));
    root.write(week, &mine);
    std::fs::remove_file(root.path(memory)).unwrap();
    let report = undo(&root, &[]);
    assert_eq!(outcomes(&report)[week], "kept");
    assert_eq!(root.read(week), mine);
    assert_eq!(files(&root).get(month), before[5].get(month));
    assert_eq!(outcomes(&report)[memory], "kept");
    assert!(!root.files().contains_key(memory));
    // The person's week is new to its month, which is made again for that.
    root.run(&["compact"]).ok();
    assert!(root.files().contains_key(month));
    assert_eq!(root.read(week), mine);
    assert_at_rest(&root);
}

#[test]
fn a_persons_change_between_two_runs_is_where_it_stops() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let mine = format!("{}- A line of my own\n", root.read(WEEK));
    root.write(WEEK, &mine);
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).contains("A line of my own") && root.read(WEEK).contains("Zanzibar"));
    let report = undo(&root, &["1", "--with-later"]);
    assert_eq!(root.read(WEEK), mine);
    assert_eq!(outcomes(&report)[WEEK], "restored");
    assert!(!root.files().contains_key(MONTH));
    assert_at_rest(&root);
}

#[test]
fn citations_follow_lines_that_moved_since() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let first = root.read(WEEK);
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    let late = "memory/2026-03-12.md";
    root.write(late, &format!("\n\n{}", root.read(late)));
    root.run(&["compact"]).ok();
    let moved = last_run(&root);
    let report = undo(&root, &["2"]);
    let week = report["files"].as_array().unwrap().iter().find(|it| it["path"] == WEEK).unwrap();
    assert_eq!((&week["outcome"], &week["followed"]), (&"restored".into(), &true.into()));
    let words = |text: &str| -> Vec<String> {
        let bullets = text.lines().filter(|it| it.starts_with("- ") && it.contains(" ["));
        bullets.map(|it| it.rsplit_once(" [").unwrap().0.to_owned()).collect()
    };
    assert_eq!(words(&root.read(WEEK)), words(&first));
    assert_ne!(root.read(WEEK), first);
    let traced = root.run(&["trace", WEEK, "--json"]).ok().json_as("trace");
    assert!(!traced.to_string().contains("\"changed\":true"), "{traced}");
    assert_at_rest(&root);
    let refused = root.run(&["undo", &moved, "--yes"]);
    assert_eq!(refused.code, 2, "{refused}");
}

#[test]
fn nothing_is_taken_back_unasked() {
    let root = Root::small();
    let refused = |args: &[&str]| -> Ran { root.run(args) };
    insta::assert_snapshot!(refused(&["undo", "--yes"]), @r"
    $ memoird undo --yes
    ! error: no recorded run can be undone
    !   hint: `memoird history` lists the runs
    [exit 2]
    ");
    root.run(&["compact"]).ok();
    let before = root.files();
    insta::assert_snapshot!(refused(&["undo"]), @r"
    $ memoird undo
    ! error: undoing run 1 needs confirmation
    !   hint: memoird undo 1 --dry-run
    !   hint: memoird undo 1 --yes
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["undo", "--dry-run"]), @r"
    $ memoird undo --dry-run
     FILE                       OUTCOME
     WISDOM.md                  removed; its text stays in the history
     memory/monthly/2026-03.md  removed; its text stays in the history
     memory/weekly/2026-W10.md  removed; its text stays in the history
     memory/weekly/2026-W11.md  removed; its text stays in the history
    ! not repeated until a source changes: weekly 2026-W10, weekly 2026-W11, monthly 2026-03, wisdom 2026-03, extraction of 2 days
    ! nothing was changed
    ");
    insta::assert_snapshot!(refused(&["undo", "9", "--yes"]), @r"
    $ memoird undo 9 --yes
    ! error: there is no run 9
    !   hint: the last runs that can be undone: 1
    [exit 2]
    ");
    assert_same(&root.files(), &before);
    insta::assert_snapshot!(refused(&["undo", "--yes"]), @r"
    $ memoird undo --yes
     FILE                       OUTCOME
     WISDOM.md                  removed; its text stays in the history
     memory/monthly/2026-03.md  removed; its text stays in the history
     memory/weekly/2026-W10.md  removed; its text stays in the history
     memory/weekly/2026-W11.md  removed; its text stays in the history
    ! not repeated until a source changes: weekly 2026-W10, weekly 2026-W11, monthly 2026-03, wisdom 2026-03, extraction of 2 days
    ! run 2 undid run 1 (2026-04-13 09:00, compact)
    ! `memoird undo 2` reverts this
    ");
    insta::assert_snapshot!(refused(&["undo", "1", "--yes"]), @r"
    $ memoird undo 1 --yes
    ! error: run 1 was already undone, by run 2
    !   hint: memoird undo 2
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["compact"]), @r"
    $ memoird compact
    ! nothing to do: all closed periods are up to date; weekly 2026-W16 is open until 2026-04-20 02:00 CEST; undone and waiting for changed sources: 2 (see `memoird status`)
    ");
}

#[test]
fn what_is_no_longer_kept_is_left_as_it_is() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_eq!(root.run(&["undo", "--yes"]).code, 2, "nothing is known of earlier runs");
}

/// Each step of an undo is cut off in turn; then a fold, and then the same command, put it right.
#[test]
fn a_crash_at_any_step_leaves_all_or_is_taken_up_again() {
    let (before, steps) = {
        let root = made_twice();
        let trace = root.home("trace");
        let mut command = root.command(&["undo", "2", "--yes"]);
        command.env("MEMOIRD_FAIL_TRACE", &trace);
        root.finish(command, &["undo"]).ok();
        (files(&root), std::fs::read_to_string(trace).unwrap().lines().count())
    };
    assert!(steps > 10, "{steps}");
    // Not all, for the sake of time; `MEMOIRD_TEST_FULL=1` takes them all.
    let stride = if std::env::var_os("MEMOIRD_TEST_FULL").is_some() { 1 } else { 7 };
    for step in (1..=steps).step_by(stride) {
        for action in ["kill", "eio"] {
            let root = made_twice();
            let after = files(&root);
            let mut command = root.command(&["undo", "2", "--yes"]);
            command.env("MEMOIRD_FAIL", format!("{action}@{step}"));
            let ran = root.finish(command, &["undo"]);
            if step % 2 == 0 {
                root.run(&["compact"]).ok();
                root.run(&["doctor"]).ok();
            }
            let again = root.run(&["undo", "2", "--yes"]);
            let told = format!("{action}@{step}\n{ran}\n{again}");
            if again.code != 0 {
                // It had been done, and only that could no longer be said.
                assert!(again.stderr.contains("was already undone"), "{told}");
            }
            assert_same(&files(&root), &before);
            assert_at_rest(&root);
            let number = last_run(&root);
            undo(&root, &[&number]);
            assert_same(&files(&root), &after);
            assert_at_rest(&root);
        }
    }
}

/// A small folder that was folded, and again after a log had changed.
fn made_twice() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root.append(
        "memory/2026-03-10.md",
        "- Decided to use SQLite for staging, because one file is easy to back up\n",
    );
    root.run(&["compact"]).ok();
    root
}

/// Returns what `status` says is taken back and waits.
fn waiting(root: &Root) -> Vec<(String, String)> {
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    works(&status["undone"])
}

fn works(list: &Value) -> Vec<(String, String)> {
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(|it| (text(it, "tier"), text(it, "period"))).collect()
}

#[test]
fn status_names_all_that_was_taken_back_once() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let after = files(&root);
    let report = undo(&root, &[]);
    let mut refused = works(&report["refused"]);
    let mut told = waiting(&root);
    refused.sort();
    told.sort();
    assert_eq!(told, refused);
    for tier in ["extract", "weekly", "monthly", "wisdom"] {
        assert!(told.iter().any(|it| it.0 == tier), "{tier}");
    }
    let shown = root.run(&["status", "-v"]).ok().stdout;
    let line = "weekly 2026-W11 with the typed memories of 5 days; \
        `memoird compact --period 2026-W11 --force` runs it again";
    assert!(shown.contains(line), "{shown}");
    assert!(
        shown.contains("`memoird compact wisdom --period 2026-03 --force` runs it again"),
        "{shown}"
    );

    // What it says lifts it does.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    let memory = "memory/user_henk-prefers-dates-report-2026-03.md";
    assert_eq!(files(&root).get(memory), after.get(memory));
    let of_week = |(tier, period): &(String, String)| {
        (tier == "weekly" && period == "2026-W11")
            || (tier == "extract" && ("2026-03-09"..="2026-03-15").contains(&&period[..]))
    };
    assert_eq!(waiting(&root).into_iter().filter(of_week).collect::<Vec<_>>(), []);
    root.run(&["compact", "extract", "--period", "2026-W02", "--force"]).ok();
    assert!(files(&root).contains_key("memory/project_sqlite-staging-postgres.md"));
    assert!(waiting(&root).contains(&("weekly".to_owned(), "2026-W02".to_owned())));
}

#[test]
fn what_was_begun_is_told_and_goes_on() {
    let root = made_twice();
    let mut command = root.command(&["undo", "1", "--with-later", "--yes"]);
    command.env("MEMOIRD_FAIL", "kill@undo.decided");
    assert_ne!(root.finish(command, &["undo"]).code, 0);
    let told = "undoing run 1 is not finished; `memoird undo` or the next run continues it";
    let status = root.run(&["status"]).ok();
    assert!(status.stdout.contains(told), "{status}");
    let doctor = root.run(&["doctor"]);
    assert!(doctor.stdout.contains(told), "{doctor}");
    let taken = |report: &Value| -> Vec<i64> {
        let taken = report["taken_back"].as_array().unwrap().iter();
        taken.map(|it| it["run"].as_i64().unwrap()).collect()
    };
    assert_eq!(taken(&root.run(&["undo", "--dry-run", "--json"]).ok().json_as("undo")), [2, 1]);
    let asked = root.run(&["undo"]);
    assert!(asked.stderr.contains("memoird undo 1 --with-later --yes"), "{asked}");
    assert_eq!(taken(&undo(&root, &[])), [2, 1]);
    assert!(!files(&root).contains_key("memory/weekly/2026-W10.md"));
    let said = format!("{}{}", root.run(&["status"]).ok(), root.run(&["doctor"]).ok());
    assert!(!said.contains("not finished"), "{said}");
    assert_at_rest(&root);
    // After that it is the last run again that is meant.
    undo(&root, &[]);
    assert!(files(&root).contains_key("memory/weekly/2026-W10.md"));
    assert_at_rest(&root);
}

/// What is half taken back is no state that anybody meant, so nothing is folded on it.
#[test]
fn a_pass_finishes_what_was_cut_off_between_two_files_before_it_folds() {
    let ends = {
        let root = made_twice();
        undo(&root, &["1", "--with-later"]);
        files(&root)
    };
    let root = made_twice();
    let start = files(&root);
    let mut command = root.command(&["undo", "1", "--with-later", "--yes"]);
    command.env("MEMOIRD_FAIL", "kill@commit.placed#2");
    assert_ne!(root.finish(command, &["undo"]).code, 0);
    let half = files(&root);
    assert!(half != start && half != ends);
    // A line that came meanwhile makes something due.
    root.append("memory/2026-03-03.md", "- Backfill of 2018 begun, 41 GB\n");
    let passed = root.run(&["compact"]).ok();
    let told = "undoing run 1 was interrupted; run 4 finished it";
    assert!(passed.stderr.contains(told), "{passed}");
    let said = format!("{}{}", root.run(&["status"]).ok(), root.run(&["doctor"]).ok());
    assert!(!said.contains("not finished"), "{said}");
    // What the line makes due is made, and of the rest nothing comes back.
    let mut found = files(&root);
    assert!(found["memory/weekly/2026-W10.md"].contains("41 GB"), "{passed}");
    assert!(!found.contains_key("memory/weekly/2026-W11.md"), "{passed}");
    assert_at_rest(&root);
    found.retain(|path, _| ends.contains_key(path) && path != "memory/2026-03-03.md");
    for (path, text) in found {
        assert_eq!(text, ends[&path], "{path}");
    }
    assert_eq!(root.run(&["undo", "1", "--with-later", "--yes"]).code, 2, "it is done");
}

/// To take back what was put back would do the harm again, and the next repair would have nothing to
/// hold it against.
#[test]
fn what_was_put_back_after_harm_is_not_taken_back() {
    let harmed: [&dyn Fn(&str) -> String; 3] =
        [&|_| String::new(), &|text| text[..text.len() - 30].to_owned(), &|text| {
            format!("{}\0\0\0", &text[..text.len() - 3])
        }];
    for harm in harmed {
        for by_doctor in [false, true] {
            let root = made_twice();
            let sound = files(&root);
            root.write(WEEK, &harm(&sound[WEEK]));
            if by_doctor {
                root.run(&["doctor", "--repair", "--yes"]);
            } else {
                root.run(&["compact"]).ok();
            }
            assert_same(&files(&root), &sound);
            let repair = last_run(&root);
            let refused = root.run(&["undo", &repair, "--yes"]);
            assert_eq!(refused.code, 2, "{refused}");
            assert!(
                refused.stderr.contains("repaired damaged files")
                    && refused.stderr.contains("quarantine")
            );
            // What is meant is the last work, as if nothing had happened in between.
            let report = undo(&root, &[]);
            assert_eq!(report["taken_back"][0]["run"], 2);
            assert_ne!(root.read(WEEK), sound[WEEK]);
            assert!(root.read(WEEK).ends_with('\n') && !root.read(WEEK).contains('\0'));
            assert_at_rest(&root);
            undo(&root, &[]);
            assert_same(&files(&root), &sound);
            assert_at_rest(&root);
        }
    }
}

/// Where a database was lost, a fold is made over what is left of a file.
#[test]
fn nothing_that_is_harmed_is_restored() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.write(WEEK, "");
    root.run(&["compact"]).ok();
    undo(&root, &[]);
    assert!(!root.files().contains_key(WEEK));
    assert_at_rest(&root);
}
