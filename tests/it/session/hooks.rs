//! Hooks: calls by an agent, their effect, and their installation.

use std::fs;

use serde_json::{Value, json};

use super::{generate, sample_text};
use crate::{
    run::Daemon,
    support::{CommandOutput, Root},
};

/// Returns the configured memory folder `~/tide`.
fn root() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root
}

/// Calls a hook as Claude Code does.
fn hook(root: &Root, event: &str, more: &Value) -> CommandOutput {
    let mut hook_input = json!({"session_id": "s", "cwd": root.path(""), "hook_event_name": event,
        "later_versions": {"say": ["more"]}});
    hook_input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let verb = match event {
        "SessionStart" => "session-start",
        "PreCompact" => "pre-compact",
        _ => "session-end",
    };
    let ran = root.run_with_stdin(&["hook", "claude-code", verb], hook_input.to_string());
    assert_eq!(ran.code, 0, "{ran}");
    ran
}

/// Processes the queue, or waits until another worker has done so.
fn process_queue(root: &Root) {
    root.run(&["hook", "work"]).ok();
}

/// Queues a job for `s.jsonl` as a hook does, without starting a worker.
fn queue_job(root: &Root) {
    let job = json!({"event": "session-end", "transcript": root.path("s.jsonl"), "cwd": root.path(""),
        "at": "2026-04-13T07:00:00Z"});
    let spool = root.home(".local/state/memoird/spool");
    fs::create_dir_all(&spool).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(spool.join("20260413070000000000-1-0.json"), job.to_string()).unwrap();
}

fn count_records(root: &Root) -> usize {
    root.files().keys().filter(|it| it.contains("/CMEM-")).count()
}

#[test]
fn a_transcript_that_is_written_after_the_hook_is_recorded() {
    let root = root();
    queue_job(&root);
    let mut worker = root.process(&["hook", "work"]).spawn().unwrap();
    let lock = root.home(".local/state/memoird/spool/lock");
    while !lock.exists() && worker.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    root.write("s.jsonl", &sample_text("claude-code.jsonl"));
    assert!(worker.wait().unwrap().success());
    assert_eq!(count_records(&root), 1);
}

#[test]
fn an_ended_session_is_recorded_and_shown_to_the_next_one() {
    let root = root();
    root.write("s.jsonl", &sample_text("claude-code.jsonl"));
    let more = json!({"transcript_path": root.path("s.jsonl"), "reason": "other"});
    for event in ["PreCompact", "SessionEnd", "SessionEnd"] {
        let ran = hook(&root, event, &more);
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), ("", ""));
    }
    process_queue(&root);
    assert_eq!(count_records(&root), 1);
    let log = root.read("memory/2026-04-09.md");
    assert_eq!(log.matches("\n- ").count(), 1, "{log}");
    assert_eq!(
        fs::read_dir(root.home(".local/state/memoird/spool")).unwrap().count(),
        1,
        "only the lock"
    );
    // No weekly summary contains it yet; the next session sees it as a last session.
    let answer = hook(&root, "SessionStart", &json!({"source": "startup"})).json();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("# Last sessions\n- 2026-04-09: "), "{text}");
    assert!(text.contains("(CMEM-20260409-"), "{text}");
    // A week later it is in the summary and in the context of the next session.
    let mut root = root;
    root.set_now("2026-04-14T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let answer = hook(&root, "SessionStart", &json!({"source": "startup"})).json();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert!(text.contains("I decided to start a new run of rows"), "{text}");
    assert!(text.chars().count() <= 9_000);
    // Injected context is not recorded as a user message.
    let transcript = json!({"type": "user", "uuid": "1", "sessionId": "n", "timestamp": "2026-04-14T07:00:00Z",
        "message": {"role": "user", "content": format!("{text}\nGo on")}});
    root.write("n.jsonl", &format!("{transcript}\n"));
    hook(&root, "SessionEnd", &json!({"transcript_path": root.path("n.jsonl")}));
    process_queue(&root);
    let log = root.read("memory/2026-04-14.md");
    assert!(log.contains("Session: Go on [CMEM-") && !log.contains("new run of rows"), "{log}");
}

#[test]
fn a_hook_never_fails_or_prints() {
    let root = root();
    for (args, stdin) in [
        (&["hook", "claude-code", "session-end"][..], ""),
        (&["hook", "claude-code", "session-end"], "{"),
        (&["hook", "claude-code", "session-end"], "{\"transcript_path\": \"/nowhere\"}"),
        (&["hook", "claude-code", "session-end"], "[1]"),
        (&["hook", "claude-code", "pre-compact"], "{\"transcript_path\": 7}"),
        (&["hook", "claude-code", "session-start"], "{\"cwd\": \"/nowhere\"}"),
        (&["hook", "claude-code", "hologram"], "{}"),
        (&["hook", "claude-code"], "{\"hook_event_name\": \"Stop\"}"),
        (&["hook", "claude-code", "session-end", "--later", "x"], "{}"),
        (&["hook"], "{}"),
        (&["hook", "--broken"], "{}"),
        (&["--config", "/nowhere.yaml", "hook", "claude-code", "session-start"], "{}"),
    ] {
        let ran = root.run_with_stdin(args, stdin);
        assert_eq!((ran.code, &ran.stdout[..], &ran.stderr[..]), (0, "", ""), "{args:?}");
    }
    // Hooks do nothing in a program that memoird itself started.
    root.write("s.jsonl", &sample_text("plain.jsonl"));
    let args = ["hook", "other", "session-end", "--transcript", "s.jsonl"];
    let mut command = root.command(&args);
    command.env("MEMOIRD_NESTED", "1");
    root.finish(command, &args).ok();
    process_queue(&root);
    assert_eq!(count_records(&root), 0);
    // Other agents can call the hook like this.
    root.run(&args).ok();
    process_queue(&root);
    assert_eq!(count_records(&root), 1);
}

#[test]
fn a_failing_session_is_tried_three_times_and_then_listed_as_failed() {
    let root = root();
    root.write("nowhere.jsonl", "no transcript\n");
    hook(&root, "SessionEnd", &json!({"transcript_path": root.path("nowhere.jsonl")}));
    for _ in 0..3 {
        process_queue(&root);
    }
    let spool = root.home(".local/state/memoird/spool");
    let failed: Vec<_> = fs::read_dir(spool.join("failed")).unwrap().collect();
    assert_eq!(failed.len(), 1);
    let text = fs::read_to_string(failed[0].as_ref().unwrap().path()).unwrap();
    assert!(text.contains("is not a transcript"), "{text}");
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 2, "the lock and the folder `failed`");
    // `status` reports it, and once the transcript can be read, a retry succeeds.
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    let failure = &status["sessions"]["failed"][0];
    assert_eq!(failure["transcript"], "~/tide/nowhere.jsonl");
    let text = root.run(&["status"]).ok().stdout;
    assert!(text.contains("memoird session retry") && text.contains("nowhere.jsonl"), "{text}");
    assert_eq!(root.run(&["session", "retry"]).code, 1);
    root.write("nowhere.jsonl", &sample_text("plain.jsonl"));
    for _ in 0..2 {
        process_queue(&root);
    }
    root.run(&["session", "retry"]).ok();
    assert_eq!(count_records(&root), 1);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["sessions"]["failed"].as_array().unwrap().len(), 0);
    assert!(root.run(&["session", "retry"]).ok().stderr.contains("nothing to do"));
}

#[test]
fn a_session_without_a_message_is_no_failure_and_failures_are_dismissed() {
    let root = root();
    let state = json!({"type": "file-history-snapshot", "messageId": "m", "snapshot": {}});
    root.write("empty.jsonl", "");
    root.write("opened.jsonl", &format!("{state}\n"));
    for name in ["never-written.jsonl", "empty.jsonl", "opened.jsonl"] {
        hook(&root, "SessionEnd", &json!({"transcript_path": root.path(name)}));
    }
    let failed = || {
        let status = root.run(&["status", "--json"]).ok().json_as("status");
        status["sessions"]["failed"].as_array().unwrap().len()
    };
    // A session that is compacted has messages.
    for name in ["lost.jsonl", "lost-too.jsonl"] {
        hook(&root, "PreCompact", &json!({"transcript_path": root.path(name)}));
    }
    for _ in 0..3 {
        process_queue(&root);
    }
    assert_eq!((count_records(&root), failed()), (0, 2));
    assert_eq!(root.run(&["session", "dismiss", "opened.jsonl"]).code, 2);
    let output = root.run(&["session", "dismiss", "lost.jsonl"]).ok();
    assert!(output.stderr.contains("dismissed 1 session"), "{output}");
    assert_eq!(failed(), 1);
    root.run(&["session", "dismiss"]).ok();
    assert_eq!(failed(), 0);
    assert!(root.run(&["session", "dismiss"]).ok().stderr.contains("nothing to do"));
    let spool = root.home(".local/state/memoird/spool");
    assert_eq!(fs::read_dir(spool.join("failed")).unwrap().count(), 0);
}

#[test]
fn a_session_starts_with_what_the_last_one_decided_and_left_open() {
    let root = root();
    let line = |n: usize, role: &str, text: &str| {
        let message = json!({"role": role, "content": text});
        json!({"type": role, "uuid": format!("u{n}"), "sessionId": "s", "message": message,
            "timestamp": format!("2026-04-13T06:0{n}:00Z"), "cwd": root.path("")})
        .to_string()
    };
    let lines = [
        line(1, "user", "Import the Brest table"),
        line(2, "assistant", "We decided to name files by datum, because Brest has two."),
        line(3, "assistant", "Fixed: 412 rows are imported."),
        line(4, "assistant", "Still open: ask Priya about Saint-Malo."),
    ];
    root.write("s.jsonl", &(lines.join("\n") + "\n"));
    hook(&root, "SessionEnd", &json!({"transcript_path": root.path("s.jsonl"), "reason": "clear"}));
    // The next session starts at once, and waits for the one before.
    let answer = hook(&root, "SessionStart", &json!({"source": "clear"})).json();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    for words in [
        "# Last sessions\n- 2026-04-13: Import the Brest table (CMEM-20260413-",
        "\n  - We decided to name files by datum, because Brest has two.\n",
        "\n  - Fixed: 412 rows are imported.\n",
        "\n  - Still open: ask Priya about Saint-Malo.\n",
        "memoird search WORDS",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let log = root.read("memory/2026-04-13.md");
    for filler in ["Work: ", "none changed", "0 commands"] {
        assert!(!log.contains(filler), "{log}");
    }
    // A falsified line of the log is not shown.
    root.write("memory/2026-04-13.md", &log.replace("412 rows", "417 rows"));
    let text = root.run(&["context"]).ok().stdout;
    assert!(text.contains("name files by datum") && !text.contains("417 rows"), "{text}");
}

#[test]
fn the_daemon_processes_a_queued_session() {
    let root = root();
    root.run(&["init", "."]).ok();
    root.write("s.jsonl", &generate::session(4));
    queue_job(&root);
    let mut daemon = Daemon::start(&root);
    // The entry is written after the record.
    daemon.await_file(&root.path("memory/2026-03-01.md"));
    drop(daemon);
    process_queue(&root);
    assert_eq!(count_records(&root), 1);
}

/// Returns a folder with two repositories, of which `config.yaml` gives `one` the memory folder `vault`.
fn root_of_one_project() -> Root {
    let root = root();
    for name in ["one", "other"] {
        fs::create_dir_all(root.path(name).join(".git")).unwrap();
    }
    let config = format!(
        "roots:\n  - path: {}\n    project: {}\n",
        root.path("vault").display(),
        root.path("one").display()
    );
    root.write("config.yaml", &config);
    root.write("vault/memoird.yaml", "zone: UTC\n");
    fs::remove_file(root.path("memoird.yaml")).unwrap();
    root
}

#[test]
fn a_project_never_gets_the_memory_of_another() {
    let root = root_of_one_project();
    root.write("vault/WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root.write("s.jsonl", &sample_text("plain.jsonl"));
    let config = root.path("config.yaml");
    let config = config.to_str().unwrap();
    let fire = |event: &str, project: &str| {
        let hook_input =
            json!({"cwd": root.path(project), "transcript_path": root.path("s.jsonl")});
        root.run_with_stdin(
            &["--config", config, "hook", "claude-code", event],
            hook_input.to_string(),
        )
        .ok()
    };
    assert_eq!(fire("session-start", "other").stdout, "");
    assert!(fire("session-start", "one").stdout.contains("Brest is late."));
    fire("session-end", "other");
    root.run(&["--config", config, "hook", "work"]).ok();
    assert_eq!(count_records(&root), 0, "not recorded in another project's memory");
    fire("session-end", "one");
    root.run(&["--config", config, "hook", "work"]).ok();
    assert_eq!(count_records(&root), 1);
}

#[test]
fn a_verb_in_another_repository_neither_reads_nor_writes_the_memory_of_a_project() {
    let root = root_of_one_project();
    fs::create_dir(root.path("plain")).unwrap();
    root.write("vault/memory/2026-04-01.md", "- Brest is late by nine minutes\n");
    let config = root.path("config.yaml");
    let run_in = |folder: &str, args: &[&str]| {
        let args = [&["--config", config.to_str().unwrap()], args].concat();
        let mut command = root.command(&args);
        command.current_dir(root.path(folder)).write_stdin("");
        root.finish(command, &args)
    };
    let before = root.files();
    for args in [
        &["log", "A note"][..],
        &["search", "Brest"],
        &["context"],
        &["memories"],
        &["show", "2026-04-01"],
        &["compact"],
        &["mcp"],
    ] {
        let refused = run_in("other", args);
        assert_eq!((refused.code, &refused.stdout[..]), (2, ""), "{refused}");
        assert!(refused.stderr.contains("other has no memory folder"), "{refused}");
        assert!(refused.stderr.contains("try: memoird init"), "{refused}");
    }
    assert_eq!(root.files(), before);
    // The project itself, and what is in no repository.
    for folder in ["one", "plain"] {
        assert!(run_in(folder, &["search", "Brest"]).ok().stdout.contains("nine minutes"));
    }
    let vault = root.path("vault");
    let named = ["--root", vault.to_str().unwrap(), "search", "Brest"];
    assert!(run_in("other", &named).ok().stdout.contains("nine minutes"));
    let listed = run_in("other", &["status"]).ok();
    assert!(listed.stdout.contains("vault") && !listed.stdout.contains("time zone"), "{listed}");
}

#[test]
fn a_session_is_recorded_once_after_a_kill_at_any_step() {
    let trace = root();
    trace.write("s.jsonl", &generate::session(4));
    queue_job(&trace);
    let steps = trace.home("steps");
    let mut command = trace.command(&["hook", "work"]);
    command.env("MEMOIRD_FAIL_TRACE", &steps);
    trace.finish(command, &[]).ok();
    let count = fs::read_to_string(&steps).unwrap().lines().count();
    // Every third step; the test of the record itself covers all steps.
    for step in (1..=count).step_by(3) {
        let root = root();
        root.write("s.jsonl", &generate::session(4));
        queue_job(&root);
        let mut command = root.command(&["hook", "work"]);
        command.env("MEMOIRD_FAIL", format!("kill@{step}"));
        root.finish(command, &[]);
        process_queue(&root);
        assert_eq!(count_records(&root), 1, "step {step}");
        let log = root.read("memory/2026-03-01.md");
        assert_eq!(log.matches("\n- ").count(), 1, "step {step}: {log}");
    }
}

#[test]
fn init_adds_hooks_to_the_settings_and_uninstall_removes_them() {
    let root = root();
    let settings = root.home(".claude/settings.json");
    fs::create_dir_all(root.home(".claude")).unwrap();
    let theirs = "{\n  \"model\": \"opus\",\n  \"hooks\": {\n    \"Stop\": [\n      {\n        \"hooks\": [\n          {\n            \"type\": \"command\",\n            \"command\": \"say done\"\n          }\n        ]\n      }\n    ]\n  }\n}\n";
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(&settings, theirs).unwrap();
    let read = || fs::read_to_string(&settings).unwrap();
    let ran = root.run(&["init", ".", "--claude-code", "--dry-run"]).ok();
    assert!(
        ran.stdout.contains('+') && ran.stdout.contains("hook claude-code session-start"),
        "{ran}"
    );
    assert_eq!(read(), theirs);
    // Nobody can answer, so nothing is changed.
    let ran = root.run(&["init", ".", "--claude-code"]).ok();
    assert!(ran.stderr.contains("--yes"), "{ran}");
    assert_eq!(read(), theirs);
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    let installed: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(installed["model"], "opus");
    for event in ["Stop", "SessionStart", "PreCompact", "SessionEnd"] {
        assert_eq!(installed["hooks"][event].as_array().unwrap().len(), 1, "{event}");
    }
    let backup = root.home(".claude/settings.json.before-memoird-20260413-070000");
    assert_eq!(fs::read_to_string(backup).unwrap(), theirs);
    let before = read();
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    assert_eq!(read(), before);
    root.run(&["init", "--claude-code", "--uninstall"]).ok();
    assert_eq!(read(), before, "nobody can answer");
    root.run(&["init", "--claude-code", "--uninstall", "--yes"]).ok();
    assert_eq!(read(), theirs);
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(&settings, "{ // mine\n}").unwrap();
    let ran = root.run(&["init", ".", "--claude-code", "--yes"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert_eq!(read(), "{ // mine\n}");
}

#[test]
fn init_installs_codex_hooks_and_the_claude_code_plugin() {
    let root = root();
    let hooks = root.home(".codex/hooks.json");
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    let installed: Value = serde_json::from_str(&fs::read_to_string(&hooks).unwrap()).unwrap();
    for event in ["SessionStart", "PreCompact", "SessionEnd"] {
        let command = installed["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.contains(" hook codex "), "{command}");
        // Codex warns about a longer timeout.
        let timeout = &installed["hooks"][event][0]["hooks"][0]["timeout"];
        assert!(event != "SessionEnd" || *timeout == 3, "{timeout}");
    }
    assert!(!root.home(".claude/settings.json").exists());
    // The timeout of an earlier version is corrected.
    let longer = fs::read_to_string(&hooks).unwrap().replace("\"timeout\": 3", "\"timeout\": 5");
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(&hooks, longer).unwrap();
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    let again: Value = serde_json::from_str(&fs::read_to_string(&hooks).unwrap()).unwrap();
    assert_eq!(again, installed);
    for backup in fs::read_dir(root.home(".codex")).unwrap().flatten() {
        if backup.path() != hooks {
            fs::remove_file(backup.path()).unwrap();
        }
    }
    root.run(&["init", "--codex", "--uninstall", "--yes"]).ok();
    assert!(!hooks.exists());
    assert_eq!(root.run(&["init", "--uninstall"]).code, 2);
    let plugin = ["init", ".", "--claude-code", "--plugin", "~/plugin"];
    root.run(&[&plugin[..], &["--dry-run"]].concat()).ok();
    assert!(!root.home("plugin").exists());
    root.run(&plugin).ok();
    let read = |name: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(root.home("plugin").join(name)).unwrap()).unwrap()
    };
    assert_eq!(read(".claude-plugin/plugin.json")["name"], "memoird");
    let hooks = read("hooks/hooks.json");
    assert_eq!(hooks["hooks"].as_object().unwrap().len(), 3);
    let servers = &read(".claude-plugin/plugin.json")["mcpServers"];
    assert_eq!(servers["memoird"]["args"], json!(["mcp"]));
    assert_eq!(read(".claude-plugin/marketplace.json")["plugins"][0]["source"], "./");
    assert!(!root.home(".claude/settings.json").exists(), "the settings do not change");
    // The folder of another plugin is refused.
    root.write("other/.claude-plugin/plugin.json", "{\"name\": \"theirs\"}\n");
    let ran = root.run(&["init", ".", "--claude-code", "--plugin", "other"]);
    assert_eq!(ran.code, 2, "{ran}");
    // A Codex session starts with the context and is recorded when it ends.
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root.write("s.jsonl", &sample_text("codex.jsonl"));
    let fire = |verb: &str, event: &str| {
        let hook_input = json!({"session_id": "s", "cwd": root.path(""), "hook_event_name": event,
            "transcript_path": root.path("s.jsonl"), "model": "m", "permission_mode": "default"});
        root.run_with_stdin(&["hook", "codex", verb], hook_input.to_string()).ok()
    };
    assert!(fire("session-start", "SessionStart").stdout.contains("Brest is late."));
    fire("session-end", "SessionEnd");
    process_queue(&root);
    assert_eq!(count_records(&root), 1);
}

#[test]
fn init_enters_the_server_where_each_program_lists_servers() {
    let program = env!("CARGO_BIN_EXE_memoird");
    let json = "{\"numStartups\": 3, \"mcpServers\": {\"tides\": {\"url\": \"x\"}}}\n";
    let toml = "# mine\nmodel = 'x' # fast\n\n[mcp_servers.tides]\nurl = 'x'\n";
    let server = format!("[mcp_servers.memoird]\ncommand = \"{program}\"\nargs = [\"mcp\"]\n");
    for (agent, file, theirs, ours) in [
        ("--claude-code", "../.claude.json", json, "\"type\": \"stdio\""),
        ("--codex", "../.codex/config.toml", toml, &server[..]),
    ] {
        let root = root();
        root.write(file, theirs);
        root.run(&["init", ".", agent, "--yes"]).ok();
        let installed = root.read(file);
        assert!(installed.contains(ours) && installed.contains("tides"), "{installed}");
        root.run(&["init", ".", agent, "--yes"]).ok();
        assert_eq!(root.read(file), installed, "a second call changes nothing");
        root.run(&["init", agent, "--uninstall", "--yes"]).ok();
        assert_eq!(root.read(file), theirs);
        // What the program has written since stays.
        root.run(&["init", ".", agent, "--yes"]).ok();
        let changed = installed.replace("3,", "4,").replace("fast", "slow");
        root.write(file, &changed);
        root.run(&["init", agent, "--uninstall", "--yes"]).ok();
        assert_eq!(root.read(file), theirs.replace("3,", "4,").replace("fast", "slow"));
        // A file that did not exist is gone again.
        let root = self::root();
        root.run(&["init", ".", agent, "--yes"]).ok();
        root.run(&["init", agent, "--uninstall", "--yes"]).ok();
        assert!(!root.path(file).exists());
        root.write(file, "no = \n{");
        let refused = root.run(&["init", ".", agent, "--yes"]);
        assert_eq!(refused.code, 78, "{refused}");
        assert_eq!(root.read(file), "no = \n{");
    }
}

#[test]
fn init_adds_hooks_and_the_server_to_gemini_cli_and_keeps_comments() {
    let root = root();
    let settings = root.home(".gemini/settings.json");
    fs::create_dir_all(root.home(".gemini")).unwrap();
    let read = || fs::read_to_string(&settings).unwrap();
    let write = |text: &str| {
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(&settings, text).unwrap();
    };
    let theirs = "{\n  // the one at work\n  \"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}},\n  \"hooks\": {\n    \"SessionEnd\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}] /* loud */\n  },\n  \"mcpServers\": {\"tides\": {\"httpUrl\": \"http://127.0.0.1:1/mcp\"}} // ours\n}\n";
    write(theirs);
    let shown = root.run(&["init", ".", "--gemini", "--dry-run"]).ok().stdout;
    assert!(shown.contains("hook gemini session-start") && shown.contains("mcp"), "{shown}");
    assert_eq!(read(), theirs);
    root.run(&["init", ".", "--gemini", "--yes"]).ok();
    let installed = read();
    for line in theirs.lines() {
        let words = line.trim_end_matches(['}', ']', ',']).trim();
        let kept = words.split([']', '}']).all(|it| installed.contains(it.trim()));
        assert!(kept, "{line}: {installed}");
    }
    let program = env!("CARGO_BIN_EXE_memoird");
    for (event, word) in [("SessionStart", "session-start"), ("SessionEnd", "session-end")] {
        let hook = format!("{program} hook gemini ");
        let entered = installed.split(event).nth(1).unwrap();
        assert!(entered.contains(&hook) && entered.contains(word), "{event}: {installed}");
    }
    assert_eq!(installed.matches("\"timeout\": 5000").count(), 2, "{installed}");
    root.run(&["init", ".", "--gemini", "--yes"]).ok();
    assert_eq!(read(), installed, "a second call changes nothing");
    // A comment that came in between stays; nothing else of ours does.
    write(&installed.replace("// ours", "// ours and theirs"));
    root.run(&["init", "--gemini", "--uninstall", "--yes"]).ok();
    assert_eq!(read(), theirs.replace("// ours", "// ours and theirs"));
    // Another folder of the program; a file that did not exist is gone again.
    let run = |args: &[&str]| {
        let mut command = root.command(args);
        command.env("GEMINI_CLI_HOME", root.home("other"));
        root.finish(command, args).ok()
    };
    run(&["init", ".", "--gemini", "--yes"]);
    let other = root.home("other/.gemini/settings.json");
    let installed: Value = serde_json::from_str(&fs::read_to_string(&other).unwrap()).unwrap();
    assert_eq!(installed["mcpServers"]["memoird"], json!({"command": program, "args": ["mcp"]}));
    run(&["init", "--gemini", "--uninstall", "--yes"]);
    assert!(!other.exists());
}

#[test]
fn a_gemini_session_starts_with_the_context_and_is_recorded() {
    let root = root();
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root.write("chat.jsonl", &sample_text("gemini.jsonl"));
    let fire = |verb: &str, event: &str, more: &Value| {
        let mut hook_input = json!({"session_id": "7b1d0c52", "cwd": root.path(""),
            "transcript_path": root.path("chat.jsonl"), "hook_event_name": event,
            "timestamp": "2026-04-11T09:09:00.000Z"});
        hook_input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let args: Vec<&str> =
            ["hook", "gemini"].into_iter().chain((!verb.is_empty()).then_some(verb)).collect();
        root.run_with_stdin(&args, hook_input.to_string()).ok()
    };
    let answer = fire("session-start", "SessionStart", &json!({"source": "startup"})).json();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("Brest is late."), "{text}");
    // Fired before each turn.
    fire("", "PreCompress", &json!({"trigger": "auto"}));
    process_queue(&root);
    assert_eq!(count_records(&root), 0);
    // The event alone also names what to do.
    for verb in ["session-end", ""] {
        fire(verb, "SessionEnd", &json!({"reason": "exit"}));
        process_queue(&root);
    }
    assert_eq!(count_records(&root), 1);
    let log = root.read("memory/2026-04-11.md");
    for words in [
        "highest tide of each month",
        "Which datum? ZH",
        "skip months with fewer than 20 days",
        "ask Priya",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    for words in ["quota", "colours", "decimal comma", "&lt;", "Workspace"] {
        assert!(!log.contains(words), "{words}: {log}");
    }
    // The same file, imported later, has nothing new.
    let report = root.run(&["import", "gemini", "chat.jsonl", "--yes", "--days", "0", "--json"]);
    assert_eq!(report.json()["kept"], 0, "{report}");
}

#[test]
fn uninstall_restores_the_settings_byte_for_byte() {
    let root = root();
    let settings = root.home(".claude/settings.json");
    fs::create_dir_all(root.home(".claude")).unwrap();
    let run = |args: &[&str]| root.run(&[&["init", "--claude-code", "--yes"], args].concat()).ok();
    let write = |text: &str| {
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(&settings, text).unwrap();
    };
    let theirs = r#"{"type": "command", "command": "say done"}"#;
    for text in [
        "{\n    \"model\": \"opus\",\n    \"a\": [1, 2, 1.50]\n}\n".to_owned(),
        "{\n\t\"model\": \"\\u006fpus\"\n}".to_owned(),
        "{\"model\":\"opus\"}".to_owned(),
        "{ \"hooks\": {} }\n".to_owned(),
        format!(
            "{{\"hooks\": {{\"SessionStart\": [], \"SessionEnd\": [{{\"hooks\": [{theirs}]}}]}}}}"
        ),
        "{\r\n  \"model\": \"opus\"\r\n}\r\n".to_owned(),
        String::new(),
    ] {
        write(&text);
        run(&["."]);
        assert_ne!(fs::read_to_string(&settings).unwrap(), text);
        run(&["--uninstall"]);
        assert_eq!(fs::read_to_string(&settings).unwrap(), text);
        assert_eq!(fs::read_dir(root.home(".claude")).unwrap().count(), 1, "no backup is left");
    }
    // What was changed in between stays, with its indentation.
    write("{\n\t\"model\": \"opus\"\n}\n");
    run(&["."]);
    write(&fs::read_to_string(&settings).unwrap().replace("opus", "haiku"));
    run(&["--uninstall"]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{\n\t\"model\": \"haiku\"\n}\n");
    // A file that did not exist is gone again.
    fs::remove_dir_all(root.home(".claude")).unwrap();
    run(&["."]);
    assert!(settings.exists());
    run(&["--uninstall"]);
    assert_eq!(fs::read_dir(root.home(".claude")).unwrap().count(), 0);
}

#[test]
fn the_settings_and_a_plugin_give_the_context_once() {
    let root = root();
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    let start = || {
        let args = ["hook", "claude-code", "session-start", "--cwd", "."];
        let mut command = root.command(&args);
        command.env("CLAUDE_PLUGIN_ROOT", root.home("plugin"));
        command.write_stdin("");
        root.finish(command, &args).ok().stdout
    };
    assert!(start().contains("Brest is late."));
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    assert_eq!(start(), "");
    assert!(hook(&root, "SessionStart", &json!({})).stdout.contains("Brest is late."));
    // Without the program that the settings name, the plugin answers.
    let settings = root.home(".claude/settings.json");
    let text = fs::read_to_string(&settings).unwrap();
    let text = text.replace(env!("CARGO_BIN_EXE_memoird"), "/nowhere/memoird");
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(&settings, text).unwrap();
    assert!(start().contains("Brest is late."));
}
