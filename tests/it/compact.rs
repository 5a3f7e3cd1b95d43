//! `memoird compact`.

use std::fs;

use serde_json::{Value, json};

use crate::support::Root;

/// Returns `tier period outcome` of each job.
#[track_caller]
fn jobs(report: &Value) -> Vec<String> {
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let jobs = report["jobs"].as_array().unwrap().iter();
    jobs.map(|it| [&it["tier"], &it["period"], &it["outcome"]].map(text).join(" ")).collect()
}

#[test]
fn the_first_run_does_everything_and_the_second_nothing() {
    let root = Root::new("mara");
    let logs = root.files();
    let first = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(first["failed"], 0);
    let finished_jobs = jobs(&first);
    let finished_jobs: Vec<&str> =
        finished_jobs.iter().filter(|it| !it.starts_with("extract")).map(|it| &it[..]).collect();
    insta::assert_snapshot!(finished_jobs.join("\n"), @r"
    weekly 2026-W02 written
    weekly 2026-W03 written
    weekly 2026-W04 written
    weekly 2026-W05 written
    weekly 2026-W06 written
    weekly 2026-W07 written
    weekly 2026-W08 written
    weekly 2026-W09 written
    weekly 2026-W10 written
    weekly 2026-W11 written
    weekly 2026-W12 written
    weekly 2026-W13 written
    weekly 2026-W14 written
    monthly 2026-01 written
    monthly 2026-02 written
    monthly 2026-03 written
    wisdom 2026-01 written
    wisdom 2026-02 written
    wisdom 2026-03 written
    ");
    let generated = root.files();
    for (path, text) in &logs {
        assert_eq!(&generated[path], text, "{path}");
    }
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! nothing to do: all closed periods are up to date; monthly 2026-04 is open until 2026-05-04 02:00 CEST
    ");
    let second = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(second["jobs"], json!([]));
    assert_eq!(root.files(), generated);

    // The output does not depend on the database of an earlier run.
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    let again = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(again["written"], 0, "{again:#}");
    assert_eq!(root.files(), generated);
}

#[test]
fn a_dry_run_writes_nothing() {
    let root = Root::new("mara");
    let before = root.files();
    let plan = root.run(&["compact", "--dry-run", "--json"]).ok().json_as("compact");
    assert_eq!(plan["jobs"].as_array().unwrap().len(), 60 + 13);
    assert_eq!(plan["following"].as_array().unwrap().len(), 3 + 3);
    assert_eq!(plan["jobs"][0]["reason"], "new");
    insta::assert_snapshot!(root.run(&["compact", "weekly", "--period", "2026-W14", "--dry-run"]), @r"
    $ memoird compact weekly --period 2026-W14 --dry-run
     TIER    PERIOD    SOURCES  CHARS  WHY
     weekly  2026-W14  4        3326   new
    ! nothing was changed; costs nothing (extractive engine)
    ");
    assert_eq!(root.files(), before);
    assert!(!root.path(".memoird").exists());
}

#[test]
fn a_late_log_makes_only_its_own_periods_due() {
    let root = Root::new("jonas");
    root.run(&["compact"]).ok();
    let before = root.files();
    root.write(
        "memory/2026-01-16-nachtrag.md",
        "# Nachtrag\n\n- Die Buche für den Tisch kostet 1.240 €, Lieferung am 28.01.\n",
    );
    let report = root.run(&["compact", "--json"]).ok().json_as("compact");
    let finished_jobs = jobs(&report);
    assert!(finished_jobs.contains(&"weekly 2026-W03 written".to_owned()), "{finished_jobs:?}");
    assert!(
        finished_jobs.iter().all(|it| [
            "extract 2026-01-16",
            "weekly 2026-W03",
            "monthly 2026-01",
            "wisdom 2026-01"
        ]
        .iter()
        .any(|due| it.starts_with(due))),
        "{finished_jobs:?}"
    );
    for (path, text) in root.files() {
        if path.contains("weekly") && !path.contains("2026-W03") {
            assert_eq!(before[&path], text, "{path}");
        }
    }
    assert!(root.read("memory/weekly/2026-W03.md").contains("1.240 €"));
}

#[test]
fn user_edits_survive() {
    let root = Root::new("jonas");
    root.run(&["compact"]).ok();
    let week = root.read("memory/weekly/2026-W03.md");
    let bullets: Vec<&str> = week.lines().filter(|it| it.starts_with("- ")).collect();
    let (first, last) = (bullets[0], bullets[bullets.len() - 1]);
    let edited =
        week.replace(first, "- By my own hand: 17 Stufen").replace(&format!("{last}\n"), "");
    root.write("memory/weekly/2026-W03.md", &edited);
    root.append("memory/2026-01-16.md", "\n- Rechnung 88 über 310 € bezahlt\n");
    root.run(&["compact"]).ok();
    let after = root.read("memory/weekly/2026-W03.md");
    assert!(after.contains("- By my own hand: 17 Stufen\n"), "{after}");
    assert!(after.contains("310 €"), "{after}");
    assert!(!after.contains(last), "{after}");
}

#[test]
fn a_file_not_written_by_memoird_is_replaced_only_with_force() {
    let root = Root::new("jonas");
    root.write("memory/weekly/2026-W03.md", "# My own week\n");
    root.run(&["compact"]).ok();
    assert_eq!(root.read("memory/weekly/2026-W03.md"), "# My own week\n");
    let forced =
        root.run(&["compact", "--period", "2026-W03", "--force", "--json"]).ok().json_as("compact");
    assert!(jobs(&forced).contains(&"weekly 2026-W03 written".to_owned()), "{forced:#}");
    assert!(root.read("memory/weekly/2026-W03.md").contains("period: 2026-W03"));
}

#[test]
fn invalid_arguments_are_refused() {
    let root = Root::new("jonas");
    let before = root.files();
    insta::assert_snapshot!(root.run(&["compact", "--period", "2026-W54"]), @r"
    $ memoird compact --period 2026-W54
    ! error: invalid value '2026-W54' for '--period <PERIOD>': there is no week 2026-W54: the last one of its year is 2026-W53
    ! 
    ! For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["compact", "--force"]), @r"
    $ memoird compact --force
    ! error: `--force` needs to know which period
    !   try: memoird compact --period 2026-W14 --force
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["compact", "hourly"]), @r"
    $ memoird compact hourly
    ! error: invalid value 'hourly' for '[TIER]'
    !   [possible values: extract, weekly, monthly, wisdom]
    ! 
    ! For more information, try '--help'.
    [exit 2]
    ");
    let anthropic = ["compact", "--set", "engine=model", "--set", "model.provider=anthropic"];
    insta::assert_snapshot!(root.run(&anthropic), @r"
    $ memoird compact --set engine=model --set model.provider=anthropic
    ! error: no key for https://api.anthropic.com: set model.key_file to a file that contains it, or set MEMOIRD_API_KEY
    !   try: memoird doctor
    [exit 78]
    ");
    insta::assert_snapshot!(root.run(&["compact", "--root", "nowhere"]), @r"
    $ memoird compact --root nowhere
    ! error: there is no folder ~/jonas/nowhere
    !   try: memoird init ~/jonas/nowhere  # create it
    [exit 2]
    ");
    assert_eq!(root.files(), before);
    root.append("memoird.yaml", "writer: attic\n");
    insta::assert_snapshot!(root.run(&["compact"]), @r"
    $ memoird compact
    ! error: `~/jonas` is written by the host `attic`; this host only reads it
    !   try: memoird init --take-over DIR
    [exit 75]
    ");
}

#[test]
fn wisdom_is_forced_without_a_period() {
    let root = Root::small();
    root.run_with_digest(&["compact"]).ok();
    let forced = root.run_with_digest(&["compact", "wisdom", "--force", "--json"]).ok();
    assert_eq!(forced.json_as("compact")["jobs"][0]["tier"], "wisdom", "{forced}");
}

#[test]
fn a_period_without_logs_has_nothing_to_do() {
    let root = Root::new("jonas");
    insta::assert_snapshot!(root.run(&["compact", "--period", "2026-W30"]), @r"
    $ memoird compact --period 2026-W30
    ! nothing to do: there are no logs of 2026-W30
    ! due: extract 2026-01-07, extract 2026-01-08, extract 2026-01-09 and 66 more; `memoird compact` runs them
    ");
    let empty = Root::empty("new");
    empty.write("memoird.yaml", "zone: UTC\n");
    insta::assert_snapshot!(empty.run(&["compact"]), @r"
    $ memoird compact
    ! nothing to do: there are no logs yet (`memoird log TEXT` writes one)
    ");
}

#[test]
fn a_failing_file_is_reported_and_stops_no_other() {
    let root = Root::new("jonas");
    fs::create_dir_all(root.path("memory/weekly/2026-W03.md")).unwrap();
    let ran = root.run(&["compact", "--json"]);
    let report = ran.json_as("compact");
    assert_eq!(ran.code, 1, "{ran}");
    assert_eq!(report["failed"], 1, "{ran}");
    assert!(root.path("memory/weekly/2026-W04.md").is_file());
}

#[test]
fn a_killed_run_that_is_still_a_zombie_blocks_nothing() {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    let root = Root::new("jonas");
    let mut killed = std::process::Command::new(assert_cmd::cargo::cargo_bin!("memoird"))
        .arg("compact")
        .env_clear()
        .envs([("HOME", root.home("")), ("TZ", "Europe/Berlin".into())])
        .env("MEMOIRD_NOW", crate::support::NOW)
        .env("MEMOIRD_FAIL", "kill@commit.placed#3")
        .current_dir(root.path(""))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // The process is dead, but its id is still in use.
    let pid = Pid::from_child(&killed);
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    let doctor = root.run(&["doctor"]);
    assert!(doctor.stdout.contains("a run was interrupted by a crash"), "{doctor}");
    root.run(&["compact"]).ok();
    root.run(&["doctor"]).ok();
    let again = root.run(&["compact", "--json"]).ok().json_as("compact");
    assert_eq!(again["jobs"], json!([]));
    killed.wait().unwrap();
}

#[test]
fn a_dry_run_includes_jobs_that_wait_for_a_log_to_be_quiet() {
    let root = Root::empty("fresh");
    root.write("memoird.yaml", "zone: Europe/Berlin\ncompaction: { quiet: 1h }\n");
    root.write("memory/2026-03-10.md", "- Moved the importer to SQLite\n");
    // By the clock of the test the log was written just now.
    let written = std::fs::metadata(root.path("memory/2026-03-10.md")).unwrap().modified().unwrap();
    let now = chrono::DateTime::<chrono::Utc>::from(written).to_rfc3339();
    let args = ["compact", "--dry-run", "--json"];
    let mut command = root.command(&args);
    command.env("MEMOIRD_NOW", &now);
    let plan = root.finish(command, &args).ok().json_as("compact");
    let tiers: Vec<_> = plan["jobs"].as_array().unwrap().iter().map(|it| &it["tier"]).collect();
    assert_eq!(tiers, ["extract", "weekly"], "{plan:#}");
}

#[test]
fn explain_lists_chosen_and_left_out_lines_without_writing() {
    const WEEK: &str = "memory/weekly/2026-W12.md";
    let root = Root::new("mara");
    let before = root.files();
    let explained =
        root.run(&["compact", "--explain", "2026-W12", "--json"]).ok().json_as("compact-explain");
    assert_eq!(root.files(), before, "nothing is written");
    root.run(&["compact"]).ok();
    let week = root.read(WEEK);
    let chosen = explained["chosen"].as_array().unwrap();
    assert!(
        chosen.len() > 3 && explained["units"].as_u64().unwrap() > chosen.len() as u64,
        "{explained}"
    );
    for it in chosen {
        let words = it["text"].as_str().unwrap().rsplit(": ").next().unwrap();
        let words = words.trim_end_matches(['.', ',', ';']);
        assert!(week.contains(words), "{it} is in no bullet of\n{week}");
        assert_eq!(it["why"], "chosen");
        let line = it["address"].as_str().unwrap();
        assert!(line.starts_with("2026-03-1") || line.starts_with("2026-03-2"), "{line}");
        assert!(!it["weighs_most"].as_array().unwrap().is_empty(), "{it}");
    }
    let left_out = explained["left_out"].as_array().unwrap();
    assert!(!left_out.is_empty(), "{explained}");
    assert!(left_out.iter().all(|it| it["why"] != "chosen"));
    assert!(explained["chars"].as_u64() <= explained["target_chars"].as_u64());
    // The month is chosen from the current content of its weeks.
    let month =
        root.run(&["compact", "--explain", "2026-03", "--json"]).ok().json_as("compact-explain");
    assert!(month["chosen"].as_array().unwrap().iter().any(|it| it["section"] == "Themes"));
    let shown = root.run(&["compact", "--explain", "2026-W12"]).ok();
    assert!(shown.stdout.contains("Chosen, best first"), "{shown}");
}

#[test]
fn explain_refuses_periods_without_a_choice() {
    let root = Root::new("mara");
    let day = root.run(&["compact", "--explain", "2026-03-18"]);
    assert_eq!(day.code, 2, "{day}");
    assert!(day.stderr.contains("compact --explain 2026-W12"), "{day}");
    let month = root.run(&["compact", "--explain", "2026-03"]);
    assert_eq!(month.code, 2, "{month}");
    assert!(month.stderr.contains("has no sources to choose from"), "{month}");
    let empty = root.run(&["compact", "--explain", "2019-W03"]);
    assert_eq!(empty.code, 2, "{empty}");
    assert!(empty.stderr.contains("2019-W03"), "{empty}");
}
