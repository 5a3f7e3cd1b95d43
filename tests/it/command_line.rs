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
    insta::assert_snapshot!(root.run(&["compact", "--period", "2026-W11"]).ok(), @r"
    $ memoird compact --period 2026-W11
    ! nothing to do: 2026-W11 is up to date
    ! due: extract 2026-03-03, weekly 2026-W10, monthly 2026-03; `memoird compact` runs them
    ");
}

#[test]
fn messages_of_mistakes_are_complete() {
    let root = Root::small();
    root.run(&["compact"]).ok();
    insta::assert_snapshot!(root.run(&["compact", "weekly", "--period", "2026-04"]), @r"
    $ memoird compact weekly --period 2026-04
    ! error: `weekly` is about weeks, and 2026-04 is none
    !   try: memoird compact --period 2026-04
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["search", "tier:foo"]), @r#"
    $ memoird search tier:foo
    ! error: `tier:foo`: there is no tier of this name (daily, session, weekly, monthly, wisdom, memory)
    !   try: memoird search '"tier:foo"'  # to search for it as words
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run(&["search", "backfill", "--since", "soon"]), @r#"
    $ memoird search backfill --since soon
    ! error: invalid value 'soon' for '--since <PERIOD>': `soon` names no days (expected 2026-11-21, 2026-W47, 2026-11, or words like "two weeks ago", yesterday)
    ! 
    ! For more information, try '--help'.
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run(&["show", "WISDOM.md", "--as-of", "soon"]), @r#"
    $ memoird show WISDOM.md --as-of soon
    ! error: `soon` is not a time (expected 2026-04-02, 2026-04-02 14:00, 2026-04-02T14:00:00+02:00, or words like `3 days ago`, `last month`)
    !   try: memoird show WISDOM.md --as-of "1 day ago"
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run(&["undo", "abc"]), @r"
    $ memoird undo abc
    ! error: invalid value 'abc' for '[RUN]': not the number of a run; `memoird history` lists the runs with their numbers
    ! 
    ! For more information, try '--help'.
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["undo", "abc", "--json"]), @r#"
    $ memoird undo abc --json
    ! {"kind":"usage","message":"invalid value 'abc' for '[RUN]': not the number of a run; `memoird history` lists the runs with their numbers","hints":[],"code":2}
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run(&["search", "tier:foo", "--json"]), @r#"
    $ memoird search tier:foo --json
    ! {"kind":"usage","message":"`tier:foo`: there is no tier of this name (daily, session, weekly, monthly, wisdom, memory)","hints":["to search for it as words: memoird search '\"tier:foo\"'"],"code":2}
    [exit 2]
    "#);
    insta::assert_snapshot!(root.run(&["service", "status"]).ok(), @r"
    $ memoird service status
    unit      not installed; `memoird service install` installs it
    service   unknown (systemctl is not installed)
    ");
}

#[test]
fn a_folder_without_logs_is_answered_with_the_first_entry() {
    let root = Root::empty("here");
    root.run(&["init"]).ok();
    insta::assert_snapshot!(root.run(&["show", "WISDOM.md"]), @r"
    $ memoird show WISDOM.md
    ! error: there is no `WISDOM.md` yet: the memory folder has no logs
    !   try: memoird log TEXT  # writes the first entry
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["coverage"]), @r"
    $ memoird coverage
    ! error: there are no summaries yet: the memory folder has no logs
    !   try: memoird log TEXT  # writes the first entry
    [exit 2]
    ");
    insta::assert_snapshot!(root.run(&["show", "week"]), @r"
    $ memoird show week
    ! error: there is no `week`: the memory folder has no logs
    !   try: memoird log TEXT  # writes the first entry
    [exit 2]
    ");
    let next = "\n  try: memoird log TEXT  # writes the first entry\n";
    for args in [
        &["show", "2026-W14"][..],
        &["show", "2026-04-02"],
        &["coverage", "--all"],
        &["coverage", "2026-04"],
        &["trace", "WISDOM.md:3"],
        &["blame", "WISDOM.md"],
        &["diff", "WISDOM.md"],
        &["history", "WISDOM.md"],
        &["correct", "WISDOM.md:3", "x"],
    ] {
        let failed = root.run(args);
        assert!(failed.code == 2 && failed.stderr.ends_with(next), "{failed}");
    }
    // What is proposed leads on.
    root.run(&["log", "TEXT"]).ok();
    root.run_with_digest(&["compact"]).ok();
    root.run(&["show", "WISDOM.md"]).ok();
    root.run(&["coverage"]).ok();
}

#[test]
fn an_ordinary_folder_is_no_memory_folder() {
    let root = Root::empty("here");
    root.write("../plain/notes.txt", "mine");
    insta::assert_snapshot!(root.run(&["--root", "../plain", "status"]), @r"
    $ memoird --root ../plain status
    ! error: `~/plain` is not a memory folder: it has no `memory`
    !   try: memoird init ~/plain  # to make it one
    [exit 2]
    ");
    for args in [
        &["show", "WISDOM.md"][..],
        &["search", "x"],
        &["log", "x"],
        &["coverage"],
        &["memories"],
        &["history"],
        &["review"],
        &["doctor"],
    ] {
        let failed = root.run(&[&["--root", "../plain"], args].concat());
        let expected = "plain` is not a memory folder: it has no `memory`\n";
        assert!(failed.code == 2 && failed.stderr.contains(expected), "{failed}");
    }
    assert_eq!(fs::read_dir(root.home("plain")).unwrap().count(), 1);
    // The folder of the logs, given for the folder around it.
    let other = Root::small();
    other.run(&["compact"]).ok();
    insta::assert_snapshot!(other.run(&["--root", "memory", "status"]), @r"
    $ memoird --root memory status
    ! error: `~/small/memory` is not a memory folder: it has no `memory`
    !   hint: use the outer folder: `--root ~/small`
    [exit 2]
    ");
    let nested = Root::empty("nested");
    nested.write("memoird.yaml", "zone: Europe/Berlin\n");
    nested.write("memory/memory/2026-04-10.md", "- Chose SQLite\n");
    let status = nested.run(&["status"]).ok();
    let expected = "  memory/memory: 1 log that is not read, memory/memory/2026-04-10.md: move it \
                    (`mv memory/memory/*.md memory/`), or set `memory_dir: memory/memory` in memoird.yaml\n";
    assert!(status.stdout.contains(expected), "{status}");
}

#[test]
fn help_groups_the_verbs() {
    let root = Root::empty("nobody");
    let help = root.run(&["-h"]).ok().stdout;
    // A build with a feature has more verbs.
    let of_features = ["  bundle ", "  worker "];
    let is_common = |it: &&str| !of_features.iter().any(|verb| it.starts_with(verb));
    let help: Vec<&str> = help.lines().filter(is_common).collect();
    insta::assert_snapshot!(help.join("\n"), @r"
    Turns an agent's daily logs into long-term memory, every line traced to its source

    Usage: memoird [OPTIONS] [VERB]

    Everyday:
      init         Set up memory for agents or a folder
      log          Append an entry to today's log
      status       Show what is in the folder, what is due, and why
      compact      Run everything that is due now
      search       Find the log lines that answer a question
      trace        Trace a line to the log lines it comes from (alias: why)
      correct      Correct an item and everything derived from it
      review       Accept, refuse, or edit quarantined lines and proposed changes
      undo         Undo a run
      forget       Forget lines of logs: remove everything derived from them

    Inspect:
      open         Show the memory on a local page in the browser
      demo         Show every stage on a sample journal
      context      Print what an agent should read at the start of a session
      memories     List the typed memories, and where each is used
      coverage     List log lines that no summary covers (alias: missed)
      show         Print a file of the memory folder, now or at an earlier time
      history      List the versions of a file, or the runs
      blame        Show when each line of a file was added, by which run and engine
      diff         Show what changed between two versions of a file
      usage        Show tokens and cost of model calls (alias: cost)
      list         List the configured memory folders
      config       Show or edit the configuration
      serve        Serve the local page without opening a browser
      export       Write the local page as files, without forms

    Maintain:
      doctor       Check files, database, and settings
      rebuild      Rebuild the database from the files
      upgrade      Write the generated files of an older version in the present form
      uninstall    Take out what memoird put outside of memory folders
      model test   Test the configured model and estimate its cost

    Plumbing:
      run          Watch memory folders and compact what is due (systemd runs this)
      service      Install, remove, or inspect the systemd user service
      session      Summarize sessions of coding agents and keep records of them
      import       Import earlier sessions of agents, or notes of other programs
      hook         Handle the session events of an agent (its program calls this)
      mcp          Serve the memory folder to an agent over MCP (its program calls this)
      completions  Print a completion script for a shell
      man          Print the manual page, or write one for each command
      version      Print the version

    Global options:
          --root <DIR>       Use this memory folder
          --config <FILE>    Read this configuration file instead of the user's
          --set <KEY=VALUE>  Set a configuration key for this call (compaction.weekly.ratio=0.1)
          --json             Print one JSON document on stdout
      -q, --quiet            Print only errors, warnings, and what was asked for
      -v, --verbose          Print more details
          --color <WHEN>     When to use color [default: auto] [possible values: auto, always, never]
          --no-pager         Print long output at once, not page by page (`MEMOIRD_PAGER`, `PAGER`)
      -h, --help             Print help (see more with '--help')
      -V, --version          Print version

    `memoird VERB --help` describes one verb. Exit codes: 0 done or nothing to do, 1 a job failed or is
    stuck, 2 usage, 65 bad data, 69 model unavailable, 73 cannot write, 75 another process uses the
    folder, 78 bad configuration.
    ");
}

#[test]
fn a_new_origin_of_logs_counts_once_wisdom_is_forced() {
    let root = Root::small();
    root.write("memory/2026-03-20.md", "- [ ] order tulip bulbs at the market hall\n");
    for day in ["2026-03-23", "2026-03-24", "2026-03-25", "2026-03-26"] {
        root.write(&format!("memory/{day}.md"), "- Rained all day, read inside\n");
    }
    fs::remove_file(root.path("memory/2026-04-13.md")).unwrap();
    root.run_with_digest(&["compact"]).ok();
    assert!(!root.read("WISDOM.md").contains("tulip"), "{}", root.read("WISDOM.md"));
    let path = root.path("");
    let config = format!(
        "roots:\n  - path: {}\n    privacy: {{ origin: human }}\n",
        path.to_str().unwrap().trim_end_matches('/')
    );
    root.write("../.config/memoird/config.yaml", &config);
    // A setting makes nothing due by itself.
    let idle = root.run_with_digest(&["compact"]).ok();
    assert!(idle.stderr.starts_with("nothing to do: "), "{idle}");
    root.run_with_digest(&["compact", "wisdom", "--force"]).ok();
    assert!(root.read("WISDOM.md").contains("order tulip bulbs"), "{}", root.read("WISDOM.md"));
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
    let shown = root.run(args).ok();
    insta::assert_snapshot!(shown, @r#"
    $ memoird config show --origin --set compaction.grace=1h
     KEY                           VALUE            ORIGIN
     agent_name                    "small"          default
     zone                          "Europe/Berlin"  ~/small/memoird.yaml
     memory_dir                    "memory"         default
     kind                          "agent"          default
     project                       null             default
     writer                        null             default
     curated                       []               default
     wisdom_block                  null             default
     engine                        "extractive"     default
     model.provider                "openai"         default
     model.name                    "qwen3:8b"       default
     model.base_url                null             default
     model.api_version             null             default
     model.key_file                null             default
     model.command                 null             default
     model.context_tokens          32768            default
     model.max_output_tokens       6144             default
     model.batch                   false            default
     model.fallback                "none"           default
     model.record                  null             default
     model.timeouts.connect        "10s"            default
     model.timeouts.first_byte     "10m"            default
     model.timeouts.idle           "1m"             default
     model.timeouts.total          "10m"            default
     compaction.grace              "1h"             --set
     compaction.quiet              "2s"             default
     compaction.whole_below_chars  2000             default
     compaction.weekly.ratio       0.3              default
     compaction.weekly.max_ratio   0.35             default
     compaction.weekly.max_chars   24000            default
     compaction.monthly.ratio      0.3              default
     compaction.monthly.max_ratio  0.35             default
     compaction.monthly.max_chars  10000            default
     compaction.extract            true             default
     compaction.open_week          "auto"           default
     wisdom.max_entries            12               ~/small/memoird.yaml
     wisdom.max_chars              8000             default
     wisdom.categories             []               default
     wisdom.review                 "auto"           default
     wisdom.digest                 false            environment
     privacy.personal              "flag"           default
     privacy.origin                "agent"          default
     privacy.human_logs            []               default
     privacy.external_logs         []               default
     privacy.external_headings     []               default
     context.budget_tokens         2000             default
     schedule.extract              "30 2 * * *"     default
     schedule.weekly               "0 3 * * *"      default
     schedule.monthly              "15 3 * * *"     default
     schedule.wisdom               "30 3 * * *"     default
     schedule.on_change            "auto"           default
     budget.day.usd                1.0              default
     budget.day.tokens             null             default
     budget.day.calls              200              default
     budget.month.usd              10.0             default
     budget.month.tokens           null             default
     budget.month.calls            null             default
     history.keep                  "forever"        default
     archive_after_days            null             default
     on_problem                    null             default
     metrics_file                  null             default
     projects_dir                  null             default
     search.embeddings             null             default
     mcp.write                     false            default
    "#);
    let shown = shown.stdout;
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
    let version = format!("memoird {}\n", env!("CARGO_PKG_VERSION"));
    for args in [["version"], ["--version"]] {
        let printed = root.run(&args).ok();
        assert_eq!((&printed.stdout, &printed.stderr[..]), (&version, ""));
    }
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
    let week = root.read("memory/weekly/2026-W10.md");
    let paged: Vec<String> = week.lines().map(|it| format!("page:{it}")).collect();
    assert_eq!(long.lines().collect::<Vec<_>>(), paged);
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
