//! Session summaries, records, and entries in the daily log.

use std::{collections::BTreeSet, fs};

use memoird::internals::session::{
    digest::SessionDigest,
    offline_summary::{self, SummaryMaterial, SummaryStyle},
    transcript::Transcript,
};
use serde_json::json;

use super::{generate, messages, read, sample_path, sample_text};
use crate::support::Root;

fn root() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root
}

fn write_transcript(root: &Root, text: &str) -> String {
    root.write("session.jsonl", text);
    root.path("session.jsonl").to_str().unwrap().to_owned()
}

fn summary(style: SummaryStyle, transcript: &Transcript) -> String {
    let digest = SessionDigest::of(transcript);
    let material = SummaryMaterial {
        transcript,
        digest: &digest,
        zone: chrono_tz::Europe::Berlin,
        project: Some("/home/nia/tide"),
        workflow: None,
    };
    offline_summary::summarize(style, &material, None).to_text()
}

/// Returns the text under a heading.
fn section<'a>(text: &'a str, head: &str) -> &'a str {
    let (_, rest) =
        text.split_once(&format!("{head}\n")).unwrap_or_else(|| panic!("{head}: {text}"));
    rest.split("\n## ").next().unwrap()
}

#[test]
fn a_full_summary_contains_all_messages_files_errors_and_plans() {
    let sessions =
        ["claude-code.jsonl", "codex.jsonl", "gemini.jsonl", "plain.jsonl"].map(sample_text);
    for text in sessions.into_iter().chain([generate::session(300)]) {
        let session = read(&text);
        let digest = SessionDigest::of(&session);
        let summary = summary(SummaryStyle::Full, &session);
        let quoted = section(&summary, "## 6. All User Messages");
        for message in messages(&session) {
            let lines: Vec<String> =
                message.lines().map(|it| format!("  {it}").trim_end().to_owned()).collect();
            assert!(quoted.contains(&lines.join("\n")), "{message}");
        }
        let files = section(&summary, "## 3. Files and Code Sections");
        for file in digest.changed_files() {
            assert!(files.contains(&format!("`{}` (", file.path)), "{}", file.path);
        }
        let errors = section(&summary, "## 4. Errors and Fixes");
        assert_eq!(errors.matches("\n  - Then").count(), digest.failures.len(), "{errors}");
        for failure in &digest.failures {
            assert!(errors.contains(failure.text.lines().next().unwrap()), "{}", failure.text);
        }
        if let Some(plan) = &digest.plan {
            assert!(section(&summary, "## 7. Pending Tasks").contains(&plan.text()));
            let recovery = self::summary(SummaryStyle::Recovery, &session);
            assert!(section(&recovery, "## Execution Plan").contains(&plan.text()));
        }
        assert_eq!(summary.matches("\n## ").count() + 1, 9);
    }
}

#[test]
fn a_handoff_and_a_recovery_record_have_their_fields() {
    let session = read(&sample_text("claude-code.jsonl"));
    let handoff = summary(SummaryStyle::Handoff, &session);
    for head in
        ["Completed Tasks", "Active Task", "Key Decisions", "User Directives", "Current Work"]
    {
        section(&handoff, &format!("## {head}"));
    }
    assert!(section(&handoff, "## User Directives").contains("Never fill gaps with values."));
    let recovery = summary(SummaryStyle::Recovery, &session);
    let heads: Vec<&str> = recovery.lines().filter_map(|it| it.strip_prefix("## ")).collect();
    assert_eq!(heads, memoird::internals::session::recovery::FIELDS);
    assert!(section(&recovery, "## Execution Plan").contains("### Source: todo\n\n<details>"));
}

#[test]
fn citations_lead_from_the_week_to_the_message_in_the_session_record() {
    let root = root();
    let path = write_transcript(&root, &sample_text("claude-code.jsonl"));
    let ran =
        root.run(&["session", "compact", &path, "--log", "--tags", "import,gaps", "--json"]).ok();
    let answer = ran.json_as("session-compact");
    let id = answer["id"].as_str().unwrap();
    assert_eq!(id, "CMEM-20260409-101740");
    assert_eq!(answer["logged"], json!(["memory/2026-04-09.md"]));
    let log = root.read("memory/2026-04-09.md");
    let count = log.lines().count() - 2;
    assert!((5..=15).contains(&count), "{log}");
    let line = log.lines().position(|it| it.contains("- I decided")).unwrap() + 1;
    // The citation leads to the message in the record.
    let record = root.read(&format!("memory/sessions/{id}.md"));
    let cited =
        log.lines().nth(line - 1).unwrap().rsplit_once(':').unwrap().1.trim_end_matches(']');
    let (first, last) = cited.split_once('-').unwrap();
    let lines: Vec<&str> = record.lines().collect();
    let lines = &lines[first.parse::<usize>().unwrap() - 1..last.parse().unwrap()];
    assert!(lines[0].starts_with("- agent 2026-04-09 10:08, line "), "{lines:?}");
    assert!(lines[1].contains("I decided to start a new run of rows"));
    // Tool output is quoted in the record only.
    assert!(record.contains("  > E       assert 5 == 8") && !log.contains("assert 5 == 8"));
    assert!(
        !record.contains("decimal comma") && !log.contains("decimal comma"),
        "memoird's own output is left out"
    );
    assert!(!record.contains("be cut") && !record.contains("[CMEM-20260409-101740:0"));
    let listed =
        root.run(&["session", "list", "--tag", "gaps", "--json"]).ok().json_as("session-list");
    assert_eq!(listed["records"][0]["id"], id);
    assert_eq!(listed["records"][0]["branch"], "fix/harbour-import");
    for (option, value) in
        [("--tag", "x"), ("--since", "2026-04-10"), ("--until", "2026-04-08"), ("--project", "/x")]
    {
        let ran = root.run(&["session", "list", "--json", option, value]).ok();
        assert_eq!(ran.json()["records"], json!([]), "{option}");
    }
    // From the weekly summary down to the message.
    root.run(&["compact"]).ok();
    let mut root = root;
    root.set_now("2026-04-14T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let week = root.read("memory/weekly/2026-W15.md");
    assert!(!week.contains("CMEM-"), "{week}");
    let at = week.lines().position(|it| it.contains("start a new run of rows")).unwrap() + 1;
    let trace = root.run(&["trace", &format!("2026-W15:{at}"), "--json"]).ok().json();
    let message = &trace["sources"][0]["sources"][0];
    assert_eq!(message["path"], format!("memory/sessions/{id}.md"), "{trace:#}");
    assert!(message["text"].as_str().unwrap().contains("I decided to start a new run"));
    assert_eq!(message["origin"], "agent");
    root.run(&["doctor"]).ok();
}

#[test]
fn no_session_is_logged_twice() {
    let root = root();
    let text = generate::session(30);
    let half: String = text.split_inclusive('\n').take(60).collect();
    let path = write_transcript(&root, &half);
    let log = |path: &str| root.run(&["session", "compact", path, "--log"]).ok();
    log(&path);
    let first = root.files();
    insta::assert_snapshot!(log(&path).stderr, @"nothing to do: the daily log contains the whole session already");
    assert_eq!(root.files(), first);
    // The session goes on, is resumed as a copy, and ends.
    write_transcript(&root, &text);
    log(&path);
    let second = root.files();
    assert_eq!(second.keys().filter(|it| it.contains("CMEM-")).count(), 2);
    root.write(
        "copy.jsonl",
        &text.replace("\"sessionId\":\"generated\"", "\"sessionId\":\"resumed\""),
    );
    log(root.path("copy.jsonl").to_str().unwrap());
    let mut third = root.files();
    third.remove("copy.jsonl");
    assert_eq!(third, second);
    let entries = root.read("memory/2026-03-01.md").matches("\n- ").count();
    assert_eq!(entries, 2);
    // Each message is in one record.
    let records: Vec<&String> =
        second.iter().filter(|it| it.0.contains("CMEM-")).map(|it| it.1).collect();
    for turn in 0..30 {
        let count =
            records.iter().filter(|it| it.contains(&format!("  Task {turn}: look"))).count();
        assert_eq!(count, 1, "{turn}");
    }
}

#[test]
fn a_record_of_a_session_is_updated_instead_of_a_second_one() {
    let root = root();
    let path = write_transcript(&root, &sample_text("claude-code.jsonl"));
    let compact = |more: &[&str]| {
        let args = [&["session", "compact", &path, "--json"], more].concat();
        root.run(&args).ok().json_as("session-compact")
    };
    let records =
        || -> Vec<String> { root.files().into_keys().filter(|it| it.contains("/CMEM-")).collect() };
    let cited_line = || {
        let log = root.read("memory/2026-04-09.md");
        let cited = log.lines().find(|it| it.contains("I decided")).unwrap().rsplit_once(':');
        let first = cited.unwrap().1.split(['-', ']']).next().unwrap().parse::<usize>().unwrap();
        let record = root.read(&records()[0]);
        record.lines().nth(first).unwrap().to_owned()
    };
    // A hook recorded the session; its entry cites lines of the record.
    let logged = compact(&["--log"]);
    let before = root.files();
    assert_eq!(compact(&[])["unchanged"], true);
    assert_eq!(root.files(), before);
    let updated = compact(&["--tags", "gaps", "--description", "Rows after a gap"]);
    assert_eq!((&updated["id"], &updated["unchanged"]), (&logged["id"], &json!(false)));
    assert_eq!(records().len(), 1);
    assert!(cited_line().contains("I decided to start a new run of rows"), "{}", cited_line());
    let listed = root.run(&["session", "list", "--json"]).ok().json_as("session-list");
    assert_eq!(listed["records"][0]["description"], "Rows after a gap");
    assert_eq!(listed["records"][0]["tags"], json!(["gaps"]));
    assert_eq!(listed["records"][0]["logged"], true);
    assert_eq!(compact(&[])["unchanged"], true, "what the user set stays");
    // A record without an entry follows its session, and becomes the one that is logged.
    let text = generate::session(30);
    let half: String = text.split_inclusive('\n').take(60).collect();
    write_transcript(&root, &half);
    let first = compact(&["--tags", "mine"]);
    write_transcript(&root, &text);
    let second = compact(&[]);
    assert_eq!(second["id"], first["id"]);
    assert!(root.read(second["path"].as_str().unwrap()).contains("Task 29: look"));
    let third = compact(&["--log"]);
    assert_eq!((&third["id"], records().len()), (&first["id"], 2));
    let record = root.read(third["path"].as_str().unwrap());
    assert!(record.contains("logged: true") && record.contains("mine"), "{record}");
    assert_eq!(compact(&["--style", "handoff"])["unchanged"], false, "another style");
    root.run(&["doctor"]).ok();
}

#[test]
fn a_logged_record_follows_its_session_and_keeps_its_lines() {
    let root = root();
    let text = generate::session(30);
    let part = |lines: usize| -> String { text.split_inclusive('\n').take(lines).collect() };
    let path = write_transcript(&root, &part(60));
    let compact = |more: &[&str]| {
        let args = [&["session", "compact", &path, "--json"], more].concat();
        root.run(&args).ok().json_as("session-compact")
    };
    let logged = compact(&["--log"]);
    let record = || root.read(logged["path"].as_str().unwrap());
    let before = record();
    for (lines, words) in [(90, "Task 20: look"), (120, "Task 29: look")] {
        write_transcript(&root, &part(lines));
        let grown = compact(&[]);
        assert_eq!((&grown["id"], &grown["unchanged"]), (&logged["id"], &json!(false)));
        let record = record();
        assert!(record.starts_with(&before) && record.contains(words), "{record}");
        assert_eq!(record.matches("# Summary through ").count(), 1);
        assert_eq!(compact(&[])["unchanged"], true);
    }
    // What is new in the session is still logged when it ends.
    let rest = compact(&["--log"]);
    assert!(root.read(rest["path"].as_str().unwrap()).contains("Task 29: look"));
}

#[test]
fn what_the_agent_says_is_in_the_record_and_is_found() {
    let root = root();
    let line = |role: &str, text: &str| json!({"role": role, "content": text}).to_string() + "\n";
    let text = line("user", "Run the tests")
        + &line("assistant", "212 passed, 3 skipped")
        + &line("user", "And the linter?")
        + &line(
            "assistant",
            &format!(
                "{}\n\nFixed: the linter passes.\n\n{}",
                "a ".repeat(5_000),
                "b ".repeat(5_000)
            ),
        )
        + &line("assistant", "<details>\nNo warnings left");
    let path = write_transcript(&root, &text);
    root.run(&["session", "compact", &path, "--log"]).ok();
    let record = root.files().into_iter().find(|it| it.0.contains("/CMEM-")).unwrap();
    for words in
        ["  212 passed, 3 skipped\n", "  No warnings left\n", "  Fixed: the linter passes.\n"]
    {
        assert!(record.1.contains(words), "{words}: {}", record.1);
    }
    let found = root.run(&["search", "212 passed"]).ok().stdout;
    assert!(found.contains("CMEM-") && found.contains("3 skipped"), "{found}");
    // The line of the log is found in the middle of a long message.
    let mut root = root;
    root.set_now("2026-04-24T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let week = root.read("memory/weekly/2026-W16.md");
    assert!(week.contains("the linter passes"), "{week}");
}

#[test]
fn a_session_over_midnight_is_in_both_logs() {
    let root = root();
    // 23:30 UTC is the next day in Berlin; the parts are at 23:50 and 00:10 there.
    let line = |at: &str, role: &str, text: &str| {
        json!({"role": role, "content": text, "timestamp": at}).to_string() + "\n"
    };
    let text = line("2026-04-09T21:50:00Z", "user", "Count the buoys")
        + &line("2026-04-09T21:51:00Z", "assistant", "Fixed: 14 buoys counted.")
        + &line("2026-04-09T22:10:00Z", "user", "And the lights?")
        + &line("2026-04-09T22:11:00Z", "assistant", "Fixed: 9 lights counted.");
    let path = write_transcript(&root, &text);
    let answer = root.run(&["session", "compact", &path, "--log", "--json"]).ok().json();
    assert_eq!(answer["logged"], json!(["memory/2026-04-09.md", "memory/2026-04-10.md"]));
    let (before, after) = (root.read("memory/2026-04-09.md"), root.read("memory/2026-04-10.md"));
    assert!(before.contains("- 23:51 Session: Count the buoys") && before.contains("14 buoys"));
    assert!(after.contains("- 00:11 Session: And the lights?") && after.contains("9 lights"));
    assert!(!before.contains("lights") && !after.contains("buoys"));
}

#[test]
fn secrets_reach_neither_record_nor_log() {
    let root = root();
    let key = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let text = json!({"role": "user", "content": format!("Use the token {key} to push\n\nand then stop")}).to_string()
        + "\n" + &json!({"role": "assistant", "content": format!("Decided to use {key}, because it works.")}).to_string() + "\n";
    let path = write_transcript(&root, &text);
    let ran = root
        .run(&["session", "compact", &path, "--log", "--description", &format!("push with {key}")])
        .ok();
    assert!(!ran.stdout.contains(&key), "{ran}");
    for (name, text) in root.files() {
        assert!(name == "session.jsonl" || !text.contains(&key), "{name}");
    }
}

#[test]
fn a_record_survives_export_and_import_byte_for_byte() {
    let (root, other) = (root(), root());
    root.run(&[
        "session",
        "compact",
        sample_path("claude-code.jsonl").to_str().unwrap(),
        "--style",
        "recovery",
    ])
    .ok();
    let listed = root.run(&["session", "list", "--json"]).ok().json();
    let id = listed["records"][0]["id"].as_str().unwrap();
    let exported = root.run(&["session", "export", "--id", id]).ok().stdout;
    assert_eq!(exported, root.read(&format!("memory/sessions/{id}.md")));
    let imported = other.run_with_stdin(&["session", "import", "-"], exported.clone()).ok();
    assert_eq!(imported.stdout.trim(), id);
    assert_eq!(other.run(&["session", "export", "--id", id]).ok().stdout, exported);
    // A second import does nothing; other text under the same id is refused.
    assert!(
        other
            .run_with_stdin(&["session", "import", "-"], exported.clone())
            .ok()
            .stderr
            .contains("exists already")
    );
    let ran = other.run_with_stdin(&["session", "import", "-"], exported.clone() + "more\n");
    assert_eq!(ran.code, 65, "{ran}");
    // Any other text survives, too, and keeps its id.
    for text in ["# Session\r\n\r\nno end", "---\na: 1\n---\n\nb\n\n", "plain\n"] {
        let id =
            other.run_with_stdin(&["session", "import", "-"], text).ok().stdout.trim().to_owned();
        assert_eq!(other.run(&["session", "export", "--id", &id]).ok().stdout, text);
        let again = other.run_with_stdin(&["session", "import", "-"], text).ok();
        assert_eq!(again.stdout.trim(), id);
    }
    assert_eq!(other.run(&["session", "import", "nowhere.md"]).code, 2);
    assert_eq!(other.run_with_stdin(&["session", "import", "-"], " \n").code, 65);
    assert_eq!(other.run(&["session", "export", "--id", "2026-04-09"]).code, 2);
    assert_eq!(other.run(&["session", "show", "CMEM-20200101-000000"]).code, 2);
}

#[test]
fn concurrent_sessions_get_unique_record_names() {
    let root = root();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let root = &root;
            scope.spawn(move || {
                let text = json!({"role": "user", "content": format!("Job {n}"), "timestamp": "2026-04-09T10:00:00Z"});
                root.run_with_stdin(&["session", "compact", "-", "--log"], format!("{text}\n")).ok();
            });
        }
    });
    let files = root.files();
    let records: BTreeSet<&String> = files.keys().filter(|it| it.contains("CMEM-")).collect();
    assert_eq!(records.len(), 8, "{records:?}");
    let log = root.read("memory/2026-04-09.md");
    for n in 0..8 {
        assert_eq!(log.matches(&format!("Session: Job {n} [")).count(), 1, "{log}");
    }
}

#[test]
fn a_kill_at_any_step_neither_loses_nor_duplicates_a_record() {
    let trace = root();
    let path = write_transcript(&trace, &sample_text("claude-code.jsonl"));
    let args = ["session", "compact", &path, "--log"];
    let steps = trace.home("steps");
    let mut command = trace.command(&args);
    command.env("MEMOIRD_FAIL_TRACE", &steps);
    trace.finish(command, &args).ok();
    let whole = trace.files();
    let count = fs::read_to_string(&steps).unwrap().lines().count();
    assert!(count > 10, "{count}");
    for step in 1..=count {
        let root = root();
        let path = write_transcript(&root, &sample_text("claude-code.jsonl"));
        let args = ["session", "compact", &path, "--log"];
        let mut command = root.command(&args);
        command.env("MEMOIRD_FAIL", format!("kill@{step}"));
        assert_ne!(root.finish(command, &args).code, 0, "step {step}");
        root.run(&args).ok();
        let (mut found, mut whole) = (root.files(), whole.clone());
        // Both name their transcript, whose path differs between the two homes.
        let id = "memory/sessions/CMEM-20260409-101740.md";
        for files in [&mut found, &mut whole] {
            let record = files.get_mut(id).unwrap_or_else(|| panic!("step {step}"));
            *record = record
                .lines()
                .filter(|it| !it.starts_with("transcript: "))
                .collect::<Vec<_>>()
                .join("\n");
        }
        found.retain(|name, _| !name.contains(".memoird-tmp-"));
        assert_eq!(found, whole, "step {step}");
    }
}

#[test]
fn invalid_transcripts_and_options_are_refused() {
    let root = root();
    let ran = root.run(&["session", "compact", "nowhere.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{ran}");
    root.write("notes.md", "# Notes\n");
    assert_eq!(root.run(&["session", "compact", "notes.md"]).code, 65);
    assert_eq!(root.run(&["session", "compact", "memory"]).code, 2);
    let path = write_transcript(&root, &sample_text("plain.jsonl"));
    let ran = root.run(&["session", "compact", &path, "--style", "partial"]);
    assert_eq!(ran.code, 2, "{ran}");
    assert_eq!(
        root.run(&["session", "compact", &path, "--style", "partial", "--after", "x"]).code,
        2
    );
    assert_eq!(root.run(&["session", "compact", &path, "--dry-run"]).ok().code, 0);
    assert!(root.files().keys().all(|it| !it.contains("CMEM-")));
    // Nothing comes after the last line of the transcript.
    let last = read(&sample_text("plain.jsonl")).entries.last().unwrap().id.clone();
    assert_eq!(
        root.run(&["session", "compact", &path, "--style", "partial", "--after", &last]).code,
        65
    );
}

#[test]
fn the_continuation_includes_files_instructions_and_the_transcript_path() {
    let root = root();
    root.write("project/.git/HEAD", "ref: refs/heads/main\n");
    root.write("project/a.md", "alpha\n");
    root.write("outside.md", "not yours\n");
    std::os::unix::fs::symlink(root.path("outside.md"), root.path("project/link.md")).unwrap();
    let project = root.path("project");
    let read = |id: &str, path: &str| {
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read",
            "input": {"file_path": path}}], "cwd": project})
        .to_string()
            + "\n"
            + &json!({"role": "tool", "tool_call_id": id, "content": "…"}).to_string()
            + "\n"
    };
    let text = json!({"role": "user", "content": "Read them"}).to_string()
        + "\n"
        + &read("1", "a.md")
        + &read("2", "link.md")
        + &read("3", "../outside.md");
    let path = write_transcript(&root, &text);
    let output = root
        .run(&[
            "session",
            "compact",
            &path,
            "--reattach",
            "--auto-continue",
            "--instructions",
            "Keep numbers.",
        ])
        .ok()
        .stdout;
    assert!(output.contains("a.md`, as it stands now\n\n```\nalpha\n```"), "{output}");
    assert!(!output.contains("not yours"), "{output}");
    for part in ["## Additional Instructions\n\nKeep numbers.", "session.jsonl", "Ask nothing"] {
        assert!(output.contains(part), "{part}");
    }
    let output =
        root.run(&["session", "compact", &path, "--reattach", "--budget", "0"]).ok().stdout;
    assert!(!output.contains("alpha"), "{output}");
}

#[test]
fn micro_compaction_writes_a_new_file_and_keeps_the_original() {
    let root = root();
    let path = write_transcript(&root, &generate::session(60));
    let before = root.read("session.jsonl");
    let out = root.path("small.jsonl");
    let out = out.to_str().unwrap();
    let output = root.run(&["session", "compact", &path, "--micro", "--out", out, "--json"]).ok();
    let output = output.json_as("session-micro");
    assert!(output["bytes_after"].as_u64().unwrap() * 2 < output["bytes_before"].as_u64().unwrap());
    assert_eq!(output["full"]["from_tokens"], 200_000 - 20_000 - 13_000);
    assert_eq!(output["full"]["due"], false);
    assert_eq!(root.read("session.jsonl"), before);
    assert_eq!(messages(&read(&root.read("small.jsonl"))).len(), 60);
    // In a small context window even the smaller transcript is too long.
    let args = ["session", "compact", &path, "--micro", "--window", "30000", "--reply", "8000"];
    let told = root.run(&args).ok().stderr;
    assert!(told.contains("To summarize the session: memoird session compact"), "{told}");
    let printed = root.run(&["session", "compact", &path, "--micro"]).ok().stdout;
    assert_eq!(printed, root.read("small.jsonl"));
    assert_eq!(root.run(&["session", "compact", &path, "--micro", "--out", out]).code, 2);
    assert_eq!(root.run(&["session", "compact", &path, "--micro", "--out", &path]).code, 2);
    assert_eq!(root.run(&["session", "compact", "-", "--micro"]).code, 2);
    // The plain sample is small and, by the fixed clock, idle for long.
    let plain = sample_path("plain.jsonl");
    let ran =
        root.run(&["session", "compact", plain.to_str().unwrap(), "--micro", "--if-due"]).ok();
    assert!(ran.stdout.is_empty() && ran.stderr.starts_with("nothing to do"), "{ran}");
}
