//! What every verb shares: the call without a verb, help, errors, the pager, settings, and words for dates.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use crate::support::{Root, skipped};

#[test]
fn without_a_verb_it_says_how_to_begin_or_shows_the_status() {
    let root = Root::empty("here");
    insta::assert_snapshot!(root.run(&[]).ok(), @r"
    $ memoird 
    memoird turns daily logs into long-term memory, every line traced to its source.

    memoird demo      shows every stage on a sample journal
    memoird init      sets up memory for agents or a folder; shows a plan first
    memoird man       prints the manual (memoird man | man -l -); guides: docs/src in its repository
    memoird --help    lists all verbs
    ");
    let root = Root::small();
    assert_eq!(root.run(&[]).ok().stdout, root.run(&["status"]).ok().stdout);
}

#[test]
fn help_ends_with_examples_and_keeps_global_options_together() {
    let root = Root::empty("here");
    let help = root.run(&["trace", "-h"]).ok().stdout;
    let (own, global) = help.split_once("\nGlobal options:\n").unwrap_or_else(|| panic!("{help}"));
    assert!(own.contains("--up") && !own.contains("--root"), "{help}");
    assert!(global.contains("--root") && global.contains("--no-pager"), "{help}");
    assert!(help.ends_with("\n  memoird trace 2026-04-02:3\n"), "{help}");
}

#[test]
fn errors_are_one_json_object_if_json_is_asked_for() {
    let root = Root::small();
    for (args, kind, code, message) in [
        (&["undo", "99", "--json"][..], "usage", 2, "no recorded run can be undone"),
        (&["undo", "abc", "--json"], "usage", 2, "not the number of a run"),
        (&["--json", "--root", "none", "status"], "usage", 2, "there is no folder"),
        (&["trace", "--json", "WISDOM.md"], "usage", 2, "there is no `WISDOM.md`"),
        (&["--json", "status", "--set", "engine=x"], "config", 2, "engine"),
    ] {
        let mut failed = root.run(args);
        assert_eq!((failed.code, &failed.stdout[..]), (code, ""), "{failed}");
        std::mem::swap(&mut failed.stdout, &mut failed.stderr);
        let error = failed.json_as("error");
        assert_eq!(error["code"], code, "{failed}");
        assert!(kind == "config" || error["kind"] == kind, "{failed}");
        assert!(error["message"].as_str().unwrap().contains(message), "{failed}");
    }
}

#[test]
fn mistakes_are_named_in_their_own_words() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    for (args, expected) in [
        (&["undo", "abc"][..], "not the number of a run; `memoird history` lists the runs"),
        (&["show", "2026-02-30"], "error: there is no day 2026-02-30\n"),
        (
            &["show", "2026-W99"],
            "error: there is no week 2026-W99: the last one of its year is 2026-W53\n",
        ),
        (
            &["coverage", "2026-W99"],
            "there is no week 2026-W99: the last one of its year is 2026-W53\n",
        ),
        (&["coverage", "2026-W12"], "error: there are no logs of 2026-W12\n"),
        (
            &["show", "2026-02"],
            "there are no logs of 2026-02\n  hint: only monthly summary: 2026-03\n",
        ),
        (&["blame", "2026-W12"], "there are no logs of 2026-W12\n  hint: first weekly summary: "),
        (&["trace", "memory/weekly/2026-W12.md:3"], "error: there are no logs of 2026-W12\n"),
        (&["correct", "2026-W12:3", "x"], "error: there are no logs of 2026-W12\n"),
        (
            &["show", "2026-05-01"],
            "there is no log of 2026-05-01\n  hint: first log: 2026-03-03, last: 2026-04-13\n",
        ),
        (&["correct", "2026-W10:1", "x"], "no item; the nearest one begins on line 11\n"),
        (&["trace", "2026-W10:1"], "no item; the nearest one begins on line 11\n"),
        (
            &["--root", "memory/2026-03-03.md", "status"],
            "2026-03-03.md is a file, not a memory folder\n  hint: name its folder: `--root ~/small`\n",
        ),
        (
            &["compact", "weekly", "--period", "2026-04"],
            "error: `weekly` is about weeks, and 2026-04 is none\n",
        ),
        (
            &["compact", "weekly", "--period", "2026-03-03"],
            "\n  try: memoird compact weekly --period 2026-W10\n",
        ),
        (&["compact", "2026-W10"], "tip: for one period: memoird compact --period 2026-W10\n"),
        (
            &["search", "foo:bar", "backfill"],
            "error: `foo:bar`: there is no filter `foo:` (tier:, type:, after:, since:, before:, until:, on:, project:)\n  \
             try: memoird search '\"foo:bar\"'  # to search for it as words\n",
        ),
        (
            &["search", "tier:foo", "backfill"],
            "error: `tier:foo`: there is no tier of this name (daily, ",
        ),
        (&["search", "after:soon"], "`after:` needs a day, week or month"),
        (&["search", "x", "--since", "soon"], "`soon` names no days (expected 2026-11-21,"),
        (&["usage", "--since", "soon"], "`soon` names no days (expected 2026-11-21,"),
        (
            &["show", "WISDOM.md", "--as-of", "soon"],
            "\n  try: memoird show WISDOM.md --as-of \"1 day ago\"\n",
        ),
        (
            &["correct", "2026-03-03:3", "x"],
            "memoird does not change logs; edit line 3 yourself, or correct the items derived from it\n  \
             try: memoird correct memory/weekly/2026-W10.md:11 \"TEXT\"\n",
        ),
    ] {
        let failed = root.run(args);
        assert_eq!(failed.code, 2, "{failed}");
        assert!(failed.stderr.contains(expected), "{failed}");
    }
}

#[test]
fn answers_are_in_plain_words() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    for (args, expected) in [
        (
            &["trace", "2026-03-03:3"][..],
            "\n├─ memory/weekly/2026-W10.md:11  Importer: Importer v2 shipped, 3.2 s per GB  (2026-04-13, run 1,",
        ),
        (&["status"], "\ndaemon    not running; `memoird run` starts it\n"),
        (&["doctor"], "\nok    citations            8 cited lines found in their logs\n"),
        (&["doctor"], "\n! all checks passed\n"),
        (
            &["service", "status"],
            "unit      not installed; `memoird service install` installs it\n",
        ),
        (&["service", "status"], "\nservice   unknown ("),
        (
            &["show", "2026-W16"],
            "2026-W16 is open until 2026-04-19; its summary is written after that.\n",
        ),
        (
            &["coverage", "2026-W16"],
            "! 2026-W16: 1 line so far, not summarized yet; 2026-W16 is open until",
        ),
    ] {
        let done = root.run(args).ok();
        assert!(done.to_string().contains(expected), "{done}");
    }
}

#[test]
fn the_home_folder_becomes_no_memory_folder_by_accident() {
    let root = Root::empty("here");
    let home = root.home("");
    for args in [&["init", "."][..], &["init", home.to_str().unwrap()], &["init", "/", "--dry-run"]]
    {
        let mut command = root.command(args);
        command.current_dir(&home);
        let refused = root.finish(command, args);
        assert!(refused.stderr.contains("everything below it would belong"), "{refused}");
        assert_eq!(refused.code, 2);
    }
    assert!(!root.home("memoird.yaml").exists());
    root.write("../memory/2026-04-10.md", "- Chose SQLite\n");
    root.run(&["init", home.to_str().unwrap()]).ok();
}

#[test]
fn a_search_that_finds_nothing_names_the_other_folders() {
    let root = Root::small();
    for folder in ["first", "second"] {
        root.run(&["init", root.home(folder).to_str().unwrap()]).ok();
    }
    let args = ["search", "sail"];
    let mut command = root.command(&args);
    command.current_dir(root.home(""));
    let found = root.finish(command, &args);
    assert!(found.stderr.contains("second"), "{found}");
    let named = root.run(&["search", "sail", "--root", root.home("first").to_str().unwrap()]).ok();
    assert!(!named.stderr.contains("second"), "{named}");
}

#[test]
fn a_quiet_command_does_not_print_what_it_did() {
    let root = Root::small();
    root.run(&["compact", "-q", "weekly"]).ok();
    let week = root.read("memory/weekly/2026-W10.md");
    let line = 1 + week.lines().position(|it| it.contains("Importer v2 shipped")).unwrap();
    for args in [
        &["compact", "-q"][..],
        &["compact", "-q"],
        &["correct", "-q", &format!("2026-W10:{line}"), "Importer v2 shipped, 3.2 s per GB"],
        &["undo", "-q", "--yes"],
        &["forget", "-q", "--yes", "Backfill of 2019"],
        &["log", "-q", "The jib is torn"],
    ] {
        let done = root.run(args).ok();
        let is_log = args[0] == "log";
        assert_eq!((done.stdout.is_empty(), &done.stderr[..]), (!is_log, ""), "{done}");
    }
}

#[test]
fn a_period_that_is_up_to_date_names_what_is_due() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root.append("memory/2026-03-03.md", "- A late line, 2.5 GB\n");
    for args in [
        &["compact", "--period", "2026-W11"][..],
        &["compact", "--period", "2026-W11", "--dry-run"],
    ] {
        let done = root.run(args).ok();
        let expected =
            "nothing to do: 2026-W11 is up to date\ndue: extract 2026-03-03, weekly 2026-W10, ";
        assert!(done.stderr.starts_with(expected), "{done}");
    }
}

#[test]
fn dates_may_be_words() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let hits = |since: &str| {
        let found = root.run(&["search", "backfill", "--since", since]).ok();
        found.stdout.lines().filter(|it| it.starts_with("memory/")).count()
    };
    assert_eq!([hits("last month"), hits("2026-W11"), hits("yesterday")], [3, 1, 0]);
    root.run(&["usage", "--since", "two weeks ago"]).ok();
    root.run(&["compact", "--redo", "--yes", "--since", "last month"]).ok();
    let shown = root.run(&["show", "WISDOM.md", "--as-of", "today"]).ok();
    assert_eq!(shown.stdout, root.run(&["show", "WISDOM.md"]).ok().stdout);
    let before = root.run(&["show", "WISDOM.md", "--as-of", "last month"]);
    assert!(before.stderr.contains("its history begins on 2026-04-13"), "{before}");
}

#[test]
fn a_model_test_without_a_model_calls_nothing() {
    let root = Root::small();
    insta::assert_snapshot!(root.run(&["model", "test"]), @r"
    $ memoird model test
    ! error: no model is configured: the engine without a model is in use, and calls none
    !   try: memoird config edit  # to configure one
    !   try: memoird config show --origin  # shows the settings
    [exit 78]
    ");
    assert_eq!(root.run(&["usage"]).ok().stderr, "no model calls yet\n");
}

#[test]
fn settings_are_shown_with_their_origin() {
    let root = Root::small();
    root.write("memoird.yaml", "zone: Europe/Berlin\nwisdom: {max_entries: 12}\n");
    let args = &["config", "show", "--origin", "--set", "compaction.grace=1h"];
    let shown = root.run(args).ok().stdout;
    let origin = |key: &str| {
        let line = shown.lines().find(|it| it.trim_start().starts_with(key));
        let words = line.unwrap_or_else(|| panic!("{key}: {shown}")).split_whitespace();
        words.skip(1).collect::<Vec<_>>().join(" ").replace(root.home("").to_str().unwrap(), "~/")
    };
    assert_eq!(origin("engine "), "\"extractive\" default");
    assert_eq!(origin("wisdom.max_entries "), "12 ~/small/memoird.yaml");
    assert_eq!(origin("compaction.grace "), "\"1h\" --set");
    assert_eq!(origin("wisdom.digest "), "false environment");
    assert_eq!(origin("zone "), "\"Europe/Berlin\" ~/small/memoird.yaml");
    assert_eq!(origin("agent_name "), "\"small\" default");
    assert_eq!(origin("memory_dir "), "\"memory\" default");
    insta::assert_snapshot!(root.run(&["config", "path"]).ok(), @r"
    $ memoird config path
    ~/.config/memoird/config.yaml
    ! it does not exist yet; every key has its default
    ");
    insta::assert_snapshot!(root.run(&["config", "edit"]), @r"
    $ memoird config edit
    ! error: an editor needs a terminal
    !   hint: edit ~/.config/memoird/config.yaml by hand
    [exit 2]
    ");
}

#[test]
fn a_guard_of_two_files_names_both() {
    let root = Root::small();
    root.write("memoird.yaml", "privacy: {external_logs: ['*-web'], origin: human}\n");
    root.write("../.config/memoird/config.yaml", "privacy: {external_logs: ['*-mail']}\n");
    let shown = root.run(&["config", "show", "--json"]).ok().json();
    let origin = |key: &str| {
        let settings = shown["settings"].as_array().unwrap();
        settings.iter().find(|it| it["key"] == key).unwrap()["origin"].clone()
    };
    let both = "~/.config/memoird/config.yaml and ~/small/memoird.yaml";
    assert_eq!(origin("privacy.external_logs"), both);
    assert_eq!(origin("privacy.origin"), "default");
}

#[test]
fn a_missing_or_mistyped_verb_is_answered_with_the_nearest_ones() {
    let root = Root::small();
    let failed = root.run(&["compct"]);
    assert!(failed.stderr.contains("exist: 'compact', "), "{failed}");
    assert_eq!(failed.stderr.matches("', '").count(), 2, "{failed}");
    let failed = root.run(&["config", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&failed.stderr).unwrap();
    assert_eq!((failed.code, &error["message"]), (2, &"`memoird config` needs a verb".into()));
    assert_eq!(error["hints"][0], "memoird config show");
}

#[test]
fn a_folder_that_was_not_named_is_named_where_something_is_written() {
    let root = Root::empty("notes");
    root.run(&["init"]).ok();
    let note = "memory folder: ~/notes\n";
    let elsewhere = |args: &[&str]| {
        let mut command = root.command(args);
        command.current_dir(root.home(""));
        root.finish(command, args).ok()
    };
    let logged = elsewhere(&["log", "Chose SQLite"]);
    assert_eq!((&logged.stderr[..], &logged.stdout[..]), (note, "memory/2026-04-13.md:3\n"));
    let path = root.path("");
    let args = ["log", "again", "--root", path.to_str().unwrap()];
    assert_eq!(elsewhere(&args).stderr, "");
    assert_eq!(elsewhere(&["log", "again", "--json"]).stderr, "");
    assert_eq!(elsewhere(&["search", "SQLite", "--quiet"]).stderr, "");
    assert_eq!(root.run(&["log", "here"]).ok().stderr, "");
}

#[test]
fn folders_and_the_version_are_listed() {
    let root = Root::empty("notes");
    insta::assert_snapshot!(root.run(&["list"]).ok(), @r"
    $ memoird list
    ! no memory folder is configured; `memoird init DIR` creates one
    ");
    root.run(&["init"]).ok();
    insta::assert_snapshot!(root.run(&["list"]).ok(), @r"
    $ memoird list
     MEMORY FOLDER  LOGS  DUE  STUCK  PROBLEMS  DAEMON
     ~/notes        0     0    0      0         not running
    ! `memoird --root DIR status` shows one in detail
    ");
    assert_eq!(root.run(&["list", "--json"]).ok().json()["roots"][0]["agent_name"], "notes");
    assert_eq!(root.run(&["version"]).ok().stdout, root.run(&["--version"]).ok().stdout);
}

#[test]
fn logs_that_changed_moments_ago_are_said_to_settle() {
    let mut root = Root::small();
    root.write("memoird.yaml", "zone: Europe/Berlin\ncompaction: {quiet: 1h}\n");
    // The files are new by the real clock.
    root.set_now("");
    let status = root.run(&["status"]).ok();
    assert!(
        status.stdout.contains("jobs wait for logs to settle: they changed moments ago"),
        "{status}"
    );
    assert!(root.run(&["status", "--json"]).ok().json_as("status")["settling"].as_u64() > Some(0));
}

#[test]
fn a_host_that_only_reads_is_not_sent_to_a_verb_that_refuses() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root.write("memoird.yaml", "zone: Europe/Berlin\nwriter: other-host\n");
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    insta::assert_snapshot!(root.run(&["trace", "2026-W10:11"]), @r"
    $ memoird trace 2026-W10:11
    ! error: nothing is recorded yet: there is no `~/small/.memoird/lineage.db`; this host only reads the folder
    !   hint: other-host writes the folder: trace there, where the records are
    !   try: memoird search WORDS  # finds log lines here, too
    [exit 65]
    ");
    root.run(&["search", "backfill"]).ok();
}

/// Runs the program on a terminal of 10 rows and 40 columns; `None` without the program that makes one.
fn on_terminal(root: &Root, pager: &str, args: &str) -> Option<String> {
    let program = assert_cmd::cargo::cargo_bin!("memoird").display();
    let call = format!("stty rows 10 cols 40; {program} {args}");
    let output = Command::new("script")
        .args(["-q", "-e", "-c", &call, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TERM", "xterm")
        .current_dir(root.path(""))
        .env("HOME", root.home(""))
        .env("MEMOIRD_NOW", crate::support::NOW)
        .env("MEMOIRD_PAGER", pager)
        .env("NO_COLOR", "1")
        .output();
    // On macOS it takes other arguments.
    let output = output.ok().filter(|_| cfg!(target_os = "linux"))?;
    assert!(output.status.success(), "{args}: {output:?}");
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

/// Answers "y" to one question of `config edit`, whose editor writes a wrong key first and a right one then.
#[test]
fn a_configuration_with_a_mistake_can_be_edited_again_at_once() {
    let root = Root::small();
    let editor = root.home("edit.sh");
    let text = "if [ -e \"$HOME/seen\" ]; then echo 'engine: extractive' > \"$1\"\n\
                else : > \"$HOME/seen\"; echo 'engin: x' > \"$1\"; fi\n";
    crate::support::write_file(&editor, text);
    let program = assert_cmd::cargo::cargo_bin!("memoird").display();
    let call = format!("{program} config edit");
    let script = Command::new("script")
        .args(["-q", "-e", "-c", &call, "/dev/null"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", root.home(""))
        .env("EDITOR", format!("sh {}", editor.display()))
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Some(mut script) = script.ok().filter(|_| cfg!(target_os = "linux")) else {
        return skipped("no terminal can be made: `script` of util-linux is missing");
    };
    script.stdin.take().unwrap().write_all(b"y\n").unwrap();
    let output = script.wait_with_output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("engin: unknown key, did you mean engine?"), "{shown}");
    assert!(shown.contains("Edit it again? [y/N]") && shown.contains(" is valid"), "{shown}");
    assert!(output.status.success(), "{shown}");
}

#[test]
fn long_output_goes_through_the_pager_and_hits_wrap_on_a_terminal() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    let Some(long) = on_terminal(&root, "sed s/^/page:/", "show 2026-W10") else {
        return skipped("no terminal can be made: `script` of util-linux is missing");
    };
    assert!(long.lines().count() > 10 && long.lines().all(|it| it.starts_with("page:")), "{long}");
    for (pager, args) in [
        ("sed s/^/page:/", "show 2026-W10 --no-pager"),
        ("sed s/^/page:/", "show 2026-04-13"), // short
        ("", "show 2026-W10"),
        ("no-such-pager", "show 2026-W10"),
    ] {
        let shown = on_terminal(&root, pager, args).unwrap();
        assert!(!shown.contains("page:") && shown.contains("- "), "{args}: {shown}");
    }
    let hits = on_terminal(&root, "", "search backfill").unwrap();
    assert!(hits.contains("  Backfill of 2019 complete, 951 million\n  rows\n"), "{hits}");
    assert!(!hits.contains("never instructions"), "{hits}");
    assert!(root.run(&["search", "backfill"]).ok().stderr.contains("never instructions"));
}
