//! `memoird undo`: files return to their earlier state, undone work is not repeated, and edits stay.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::support::{CommandOutput, Root};

const WEEK: &str = "memory/weekly/2026-W11.md";
const MONTH: &str = "memory/monthly/2026-03.md";
const LOG: &str = "memory/2026-03-11.md";
const DECISIONS: &str = "memory/.decisions.jsonl";

/// The Mondays on which the sample journals are compacted.
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

/// Returns a folder that was compacted on each Monday, and its files before each run.
fn compacted_on_mondays(journal: &str) -> (Root, Vec<Files>) {
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

/// Checks that nothing is due and that `doctor` finds no problem.
#[track_caller]
fn assert_healthy_and_up_to_date(root: &Root) {
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
fn undoing_and_redoing_the_last_run_restores_files_byte_for_byte() {
    for journal in ["mara", "jonas"] {
        let (root, before) = compacted_on_mondays(journal);
        let after = files(&root);
        let report = undo(&root, &[]);
        assert_eq!(report["taken_back"][0]["trigger"], "compact");
        assert_same(&files(&root), &before[5]);
        assert_healthy_and_up_to_date(&root);
        assert_eq!(undo(&root, &[])["taken_back"][0]["trigger"], "undo");
        assert_same(&files(&root), &after);
        assert_healthy_and_up_to_date(&root);
    }
}

#[test]
fn undoing_the_first_run_leaves_nothing_behind() {
    let root = Root::new("mara");
    let before = files(&root);
    root.run(&["compact"]).ok();
    let after = files(&root);
    undo(&root, &[]);
    assert_same(&files(&root), &before);
    assert_healthy_and_up_to_date(&root);
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_healthy_and_up_to_date(&root);
    assert_same(&files(&root), &before);
    // `--force` generates a period again and lifts the suppression.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    let bullets = |text: &str| text.lines().filter(|it| it.starts_with("- ")).count();
    assert_eq!(bullets(&root.read(WEEK)), bullets(&after[WEEK]));
    assert!(root.read(DECISIONS).contains("\"restored\""));
}

#[test]
fn undone_work_is_due_again_when_a_log_changes() {
    let (root, before) = compacted_on_mondays("mara");
    undo(&root, &[]);
    let due = |root: &Root| {
        let plan = root.run(&["compact", "--dry-run", "--json"]).ok().json();
        plan["jobs"].as_array().unwrap().len()
    };
    assert_eq!(due(&root), 0);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert!(!status["undone"].as_array().unwrap().is_empty());
    let april_logs: Vec<String> =
        root.files().into_keys().filter(|it| it.starts_with("memory/2026-04-0")).collect();
    root.append(
        april_logs.last().unwrap(),
        "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n",
    );
    assert!(due(&root) > 0);
    root.run(&["compact"]).ok();
    assert!(files(&root).len() >= before[5].len());
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_run_that_later_runs_depend_on_is_undone_only_with_them() {
    let (root, before) = compacted_on_mondays("mara");
    let refused = root.run(&["undo", "5", "--yes"]);
    assert_eq!(refused.code, 2);
    let later =
        "later runs depend on run 5: run 6 (2026-04-06 09:00, compact): memory/weekly/2026-W12.md";
    assert!(refused.stderr.contains(later), "{refused}");
    assert!(refused.stderr.contains("memoird undo 5 --with-later"), "{refused}");
    let after = files(&root);
    let report = undo(&root, &["5", "--with-later"]);
    let runs_of = report["taken_back"].as_array().unwrap().iter();
    let runs: Vec<i64> = runs_of.map(|it| it["run"].as_i64().unwrap()).collect();
    assert_eq!(runs, [6, 5]);
    assert_same(&files(&root), &before[4]);
    assert_healthy_and_up_to_date(&root);
    // Now an older run can be undone alone, and everything can be restored.
    undo(&root, &["4"]);
    assert_same(&files(&root), &before[3]);
    assert_healthy_and_up_to_date(&root);
    undo(&root, &[]);
    assert_same(&files(&root), &before[4]);
    undo(&root, &["7"]);
    assert_same(&files(&root), &after);
    assert_healthy_and_up_to_date(&root);
    assert_eq!(root.run(&["undo", "7", "--yes"]).code, 2, "run 7 was already undone");
}

#[test]
fn files_changed_by_a_person_since_the_run_are_kept() {
    let (root, before) = compacted_on_mondays("mara");
    let report = root.run(&["undo", "--dry-run", "--json"]).ok().json_as("undo");
    let files_of = outcomes(&report);
    let (week, _) = files_of.iter().find(|it| it.0.contains("/weekly/")).unwrap();
    let (month, _) = files_of.iter().find(|it| it.0.contains("/monthly/")).unwrap();
    let memory = files_of.keys().find(|it| it.contains("memory/project_")).unwrap();
    let edited_text = format!("{}- A line of my own\n", root.read(week));
    root.write(week, &edited_text);
    std::fs::remove_file(root.path(memory)).unwrap();
    let report = undo(&root, &[]);
    assert_eq!(outcomes(&report)[week], "kept");
    assert_eq!(root.read(week), edited_text);
    assert_eq!(files(&root).get(month), before[5].get(month));
    assert_eq!(outcomes(&report)[memory], "kept");
    assert!(!root.files().contains_key(memory));
    // The person's week is a new source of its month, which is generated again.
    root.run(&["compact"]).ok();
    assert!(root.files().contains_key(month));
    assert_eq!(root.read(week), edited_text);
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn undo_stops_at_an_edit_between_two_runs() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let edited_text = format!("{}- A line of my own\n", root.read(WEEK));
    root.write(WEEK, &edited_text);
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    assert!(root.read(WEEK).contains("A line of my own") && root.read(WEEK).contains("Zanzibar"));
    let report = undo(&root, &["1", "--with-later"]);
    assert_eq!(root.read(WEEK), edited_text);
    assert_eq!(outcomes(&report)[WEEK], "restored");
    assert!(!root.files().contains_key(MONTH));
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn citations_in_restored_files_follow_moved_lines() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let first = root.read(WEEK);
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    let shifted_log = "memory/2026-03-12.md";
    root.write(shifted_log, &format!("\n\n{}", root.read(shifted_log)));
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
    assert_healthy_and_up_to_date(&root);
    let refused = root.run(&["undo", &moved, "--yes"]);
    assert_eq!(refused.code, 2, "{refused}");
}

/// Forgetting a line removes the kept versions of its log, and a person's words need not be those of the lines.
#[test]
fn an_item_of_a_person_keeps_its_citation_although_a_line_of_its_log_was_forgotten() {
    let root = Root::small();
    root.append("memory/2026-03-03.md", "- Henk likes the blue cup\n");
    root.run(&["compact"]).ok();
    let week = "memory/weekly/2026-W10.md";
    let text = root.read(week);
    let at = text.lines().position(|it| it.starts_with("- Backfill")).unwrap() + 1;
    root.run(&["correct", &format!("{week}:{at}"), "The copying of old years has started"]).ok();
    let corrected = root.read(week);
    assert!(corrected.contains("has started [2026-03-03:"), "{corrected}");
    root.run(&["forget", "2026-03-03:5", "--yes"]).ok();
    let expected = root.read(week);
    root.write("memory/2026-03-04.md", "- Decided: the disk is cleared, because it is full\n");
    root.run(&["compact"]).ok();
    assert_ne!(root.read(week), expected);
    undo(&root, &[]);
    let said = |text: &str| text.lines().find(|it| it.contains("has started")).map(str::to_owned);
    assert_eq!(said(&root.read(week)), said(&expected));
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn undo_needs_confirmation_and_refuses_unknown_runs() {
    let root = Root::small();
    let refused = |args: &[&str]| -> CommandOutput { root.run(args) };
    insta::assert_snapshot!(refused(&["undo", "--yes"]), @r"
    $ memoird undo --yes
    ! error: no recorded run can be undone
    !   try: memoird history  # lists the runs
    [exit 2]
    ");
    root.run(&["compact"]).ok();
    let before = root.files();
    insta::assert_snapshot!(refused(&["undo"]), @r"
    $ memoird undo
    ! error: undoing run 1 needs confirmation
    !   try: memoird undo 1 --dry-run
    !   try: memoird undo 1 --yes
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
    ! `memoird undo` again redoes it; so does `memoird undo 2` after other runs
    ");
    insta::assert_snapshot!(refused(&["undo", "1", "--yes"]), @r"
    $ memoird undo 1 --yes
    ! error: run 1 was already undone, by run 2
    !   try: memoird undo 2
    [exit 2]
    ");
    insta::assert_snapshot!(refused(&["compact"]), @r"
    $ memoird compact
    ! nothing to do: all closed periods are up to date; weekly 2026-W16 is open until 2026-04-20 02:00 CEST; undone and waiting for changed sources: 2 (see `memoird status`)
    ");
}

#[test]
fn runs_before_a_rebuild_cannot_be_undone() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    root.append(LOG, "\n- Decided: the pumps go to Zanzibar on 2026-05-07.\n");
    root.run(&["compact"]).ok();
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.run(&["rebuild"]).ok();
    assert_eq!(root.run(&["undo", "--yes"]).code, 2, "earlier runs are not recorded any more");
}

/// Interrupts an undo at each step; then a run, or the same command again, completes it.
#[test]
fn undo_interrupted_at_any_step_rolls_back_or_resumes() {
    let (before, steps) = {
        let root = compacted_twice();
        let trace = root.home("trace");
        let mut command = root.command(&["undo", "2", "--yes"]);
        command.env("MEMOIRD_FAIL_TRACE", &trace);
        root.finish(command, &["undo"]).ok();
        (files(&root), std::fs::read_to_string(trace).unwrap().lines().count())
    };
    assert!(steps > 10, "{steps}");
    // Only some steps, to save time; all with `MEMOIRD_TEST_FULL=1`.
    let stride = if std::env::var_os("MEMOIRD_TEST_FULL").is_some() { 1 } else { 7 };
    for step in (1..=steps).step_by(stride) {
        for action in ["kill", "eio"] {
            let root = compacted_twice();
            let after = files(&root);
            let mut command = root.command(&["undo", "2", "--yes"]);
            command.env("MEMOIRD_FAIL", format!("{action}@{step}"));
            let ran = root.finish(command, &["undo"]);
            if step % 2 == 0 {
                root.run(&["compact"]).ok();
                root.run(&["doctor"]).ok();
            }
            let again = root.run(&["undo", "2", "--yes"]);
            let context = format!("{action}@{step}\n{ran}\n{again}");
            if again.code != 0 {
                // The undo was complete, but could not report it.
                assert!(again.stderr.contains("was already undone"), "{context}");
            }
            assert_same(&files(&root), &before);
            assert_healthy_and_up_to_date(&root);
            let number = last_run(&root);
            undo(&root, &[&number]);
            assert_same(&files(&root), &after);
            assert_healthy_and_up_to_date(&root);
        }
    }
}

/// Returns a small folder compacted twice, with a log change in between.
fn compacted_twice() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root.append(
        "memory/2026-03-10.md",
        "- Decided to use SQLite for staging, because one file is easy to back up\n",
    );
    root.run(&["compact"]).ok();
    root
}

/// Returns the undone jobs that `status` lists, as tier and period.
fn undone_jobs(root: &Root) -> Vec<(String, String)> {
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    tiers_and_periods(&status["undone"])
}

fn tiers_and_periods(list: &Value) -> Vec<(String, String)> {
    let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(|it| (text(it, "tier"), text(it, "period"))).collect()
}

#[test]
fn status_lists_each_undone_job_once() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let after = files(&root);
    let report = undo(&root, &[]);
    let mut refused = tiers_and_periods(&report["refused"]);
    let mut undone = undone_jobs(&root);
    refused.sort();
    undone.sort();
    assert_eq!(undone, refused);
    for tier in ["extract", "weekly", "monthly", "wisdom"] {
        assert!(undone.iter().any(|it| it.0 == tier), "{tier}");
    }
    let shown = root.run(&["status", "-v"]).ok().stdout;
    let line = "weekly 2026-W11 with the typed memories of 5 days; \
        `memoird compact --period 2026-W11 --force` runs it again";
    assert!(shown.contains(line), "{shown}");
    assert!(
        shown.contains("`memoird compact wisdom --period 2026-03 --force` runs it again"),
        "{shown}"
    );

    // The commands that it names do lift the suppression.
    root.run(&["compact", "--period", "2026-W11", "--force"]).ok();
    let memory = "memory/user_henk-prefers-dates-report-2026-03.md";
    assert_eq!(root.read(memory), after[memory]);
    let of_week = |(tier, period): &(String, String)| {
        (tier == "weekly" && period == "2026-W11")
            || (tier == "extract" && ("2026-03-09"..="2026-03-15").contains(&&period[..]))
    };
    assert_eq!(undone_jobs(&root).into_iter().filter(of_week).collect::<Vec<_>>(), []);
    root.run(&["compact", "extract", "--period", "2026-W02", "--force"]).ok();
    assert!(files(&root).contains_key("memory/project_sqlite-staging-postgres.md"));
    assert!(undone_jobs(&root).contains(&("weekly".to_owned(), "2026-W02".to_owned())));
}

#[test]
fn an_interrupted_undo_is_reported_and_resumed() {
    let root = compacted_twice();
    let mut command = root.command(&["undo", "1", "--with-later", "--yes"]);
    command.env("MEMOIRD_FAIL", "kill@undo.decided");
    assert_ne!(root.finish(command, &["undo"]).code, 0);
    let message = "undoing run 1 is not finished; `memoird undo` or the next run continues it";
    let status = root.run(&["status"]).ok();
    assert!(status.stdout.contains(message), "{status}");
    let doctor = root.run(&["doctor"]);
    assert!(doctor.stdout.contains(message), "{doctor}");
    let runs_of = |report: &Value| -> Vec<i64> {
        let runs_of = report["taken_back"].as_array().unwrap().iter();
        runs_of.map(|it| it["run"].as_i64().unwrap()).collect()
    };
    assert_eq!(runs_of(&root.run(&["undo", "--dry-run", "--json"]).ok().json_as("undo")), [2, 1]);
    let refused = root.run(&["undo"]);
    assert!(refused.stderr.contains("memoird undo 1 --with-later --yes"), "{refused}");
    assert_eq!(runs_of(&undo(&root, &[])), [2, 1]);
    assert!(!files(&root).contains_key("memory/weekly/2026-W10.md"));
    let output = format!("{}{}", root.run(&["status"]).ok(), root.run(&["doctor"]).ok());
    assert!(!output.contains("not finished"), "{output}");
    assert_healthy_and_up_to_date(&root);
    // After that, `undo` means the last run again.
    undo(&root, &[]);
    assert!(files(&root).contains_key("memory/weekly/2026-W10.md"));
    assert_healthy_and_up_to_date(&root);
}

/// A half-undone folder is not a state to compact from, so the undo is completed first.
#[test]
fn a_run_completes_an_interrupted_undo_before_compacting() {
    let fully_undone = {
        let root = compacted_twice();
        undo(&root, &["1", "--with-later"]);
        files(&root)
    };
    let root = compacted_twice();
    let start = files(&root);
    let mut command = root.command(&["undo", "1", "--with-later", "--yes"]);
    command.env("MEMOIRD_FAIL", "kill@commit.placed#2");
    assert_ne!(root.finish(command, &["undo"]).code, 0);
    let half_undone = files(&root);
    assert!(half_undone != start && half_undone != fully_undone);
    // A line added in between makes jobs due.
    root.append("memory/2026-03-03.md", "- Backfill of 2018 begun, 41 GB\n");
    let ran = root.run(&["compact"]).ok();
    let message = "undoing run 1 was interrupted; run 4 finished it";
    assert!(ran.stderr.contains(message), "{ran}");
    let output = format!("{}{}", root.run(&["status"]).ok(), root.run(&["doctor"]).ok());
    assert!(!output.contains("not finished"), "{output}");
    // The jobs of that line are done, and nothing else comes back.
    let mut found = files(&root);
    assert!(found["memory/weekly/2026-W10.md"].contains("41 GB"), "{ran}");
    assert!(!found.contains_key("memory/weekly/2026-W11.md"), "{ran}");
    assert_healthy_and_up_to_date(&root);
    found.retain(|path, _| fully_undone.contains_key(path) && path != "memory/2026-03-03.md");
    for (path, text) in found {
        assert_eq!(text, fully_undone[&path], "{path}");
    }
    assert_eq!(
        root.run(&["undo", "1", "--with-later", "--yes"]).code,
        2,
        "run 1 was already undone"
    );
}

/// Undoing a repair would restore the damage, and the next repair could not recognize it.
#[test]
fn a_repair_is_not_undone() {
    let damages: [&dyn Fn(&str) -> String; 3] =
        [&|_| String::new(), &|text| text[..text.len() - 30].to_owned(), &|text| {
            format!("{}\0\0\0", &text[..text.len() - 3])
        }];
    for damage in damages {
        for by_doctor in [false, true] {
            let root = compacted_twice();
            let intact = files(&root);
            root.write(WEEK, &damage(&intact[WEEK]));
            if by_doctor {
                root.run(&["doctor", "--repair", "--yes"]);
            } else {
                root.run(&["compact"]).ok();
            }
            assert_same(&files(&root), &intact);
            let repair = last_run(&root);
            let refused = root.run(&["undo", &repair, "--yes"]);
            assert_eq!(refused.code, 2, "{refused}");
            assert!(
                refused.stderr.contains("repaired damaged files")
                    && refused.stderr.contains("quarantine")
            );
            // `undo` means the last compaction, as if there had been no repair.
            let report = undo(&root, &[]);
            assert_eq!(report["taken_back"][0]["run"], 2);
            assert_ne!(root.read(WEEK), intact[WEEK]);
            assert!(root.read(WEEK).ends_with('\n') && !root.read(WEEK).contains('\0'));
            assert_healthy_and_up_to_date(&root);
            undo(&root, &[]);
            assert_same(&files(&root), &intact);
            assert_healthy_and_up_to_date(&root);
        }
    }
}

/// Without a database, a run replaces the remains of a damaged file.
#[test]
fn undo_does_not_restore_a_damaged_file() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    std::fs::remove_dir_all(root.path(".memoird")).unwrap();
    root.write(WEEK, "");
    root.run(&["compact"]).ok();
    undo(&root, &[]);
    assert!(!root.files().contains_key(WEEK));
    assert_healthy_and_up_to_date(&root);
}

#[test]
fn a_run_before_a_forget_names_what_stands_in_its_way() {
    let root = Root::small();
    root.run(&["compact", "-q"]).ok();
    root.run(&["forget", "Backfill of 2019", "--yes"]).ok();
    let refused = root.run(&["undo", "1", "--yes"]);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("run 1 cannot be undone: run 2 after it"), "{refused}");
    let refused = root.run(&["undo", "2", "--yes"]);
    assert!(refused.stderr.contains("run 2 removed what a person wanted forgotten"), "{refused}");
}
