//! Hooks: what an agent's program calls, what comes of it, and how they are entered.

use std::fs;

use serde_json::{Value, json};

use super::{generate, sample_text};
use crate::{
    run::Daemon,
    support::{Ran, Root},
};

/// Makes a root that is configured, for the project `~/tide`, which the samples ran in elsewhere.
fn root() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root
}

/// Runs a hook as Claude Code does.
fn hook(root: &Root, event: &str, more: &Value) -> Ran {
    let mut told = json!({"session_id": "s", "cwd": root.path(""), "hook_event_name": event,
        "later_versions": {"say": ["more"]}});
    told.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let verb = match event {
        "SessionStart" => "session-start",
        "PreCompact" => "pre-compact",
        _ => "session-end",
    };
    let ran = root.run_with_stdin(&["hook", "claude-code", verb], told.to_string());
    assert_eq!(ran.code, 0, "{ran}");
    ran
}

/// Waits until whoever does the work has done it.
fn work(root: &Root) {
    root.run(&["hook", "work"]).ok();
}

/// Leaves the note of a hook for `s.jsonl`, and starts nobody.
fn leave(root: &Root) {
    let job = json!({"event": "session-end", "transcript": root.path("s.jsonl"), "cwd": root.path(""),
        "at": "2026-04-13T07:00:00Z"});
    let spool = root.home(".local/state/memoird/spool");
    fs::create_dir_all(&spool).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(spool.join("20260413070000000000-1-0.json"), job.to_string()).unwrap();
}

fn records(root: &Root) -> usize {
    root.files().keys().filter(|it| it.contains("/CMEM-")).count()
}

#[test]
fn a_session_that_ends_is_kept_and_the_next_one_knows() {
    let root = root();
    root.write("s.jsonl", &sample_text("claude-code.jsonl"));
    let more = json!({"transcript_path": root.path("s.jsonl"), "reason": "other"});
    for event in ["PreCompact", "SessionEnd", "SessionEnd"] {
        let ran = hook(&root, event, &more);
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), ("", ""));
    }
    work(&root);
    assert_eq!(records(&root), 1);
    let log = root.read("memory/2026-04-09.md");
    assert_eq!(log.matches("\n- ").count(), 1, "{log}");
    assert_eq!(
        fs::read_dir(root.home(".local/state/memoird/spool")).unwrap().count(),
        1,
        "the lock"
    );
    // No week tells of it yet; the next session hears of it all the same.
    let told = hook(&root, "SessionStart", &json!({"source": "startup"})).json();
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("# Last sessions\n- 2026-04-09: "), "{text}");
    assert!(text.contains("(CMEM-20260409-"), "{text}");
    // A week later it is in the summary, and a session begins with it.
    let mut root = root;
    root.set_now("2026-04-14T09:00:00+02:00");
    root.run(&["compact"]).ok();
    let told = hook(&root, "SessionStart", &json!({"source": "startup"})).json();
    let text = told["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert_eq!(told["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert!(text.contains("I decided to start a new run of rows"), "{text}");
    assert!(text.chars().count() <= 9_000);
    // What was injected is not kept as if somebody had said it.
    let transcript = json!({"type": "user", "uuid": "1", "sessionId": "n", "timestamp": "2026-04-14T07:00:00Z",
        "message": {"role": "user", "content": format!("{text}\nGo on")}});
    root.write("n.jsonl", &format!("{transcript}\n"));
    hook(&root, "SessionEnd", &json!({"transcript_path": root.path("n.jsonl")}));
    work(&root);
    let log = root.read("memory/2026-04-14.md");
    assert!(log.contains("Session: Go on [CMEM-") && !log.contains("new run of rows"), "{log}");
}

#[test]
fn a_hook_never_gets_in_the_way() {
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
    // Nothing fires for a program that memoird itself started.
    root.write("s.jsonl", &sample_text("plain.jsonl"));
    let args = ["hook", "other", "session-end", "--transcript", "s.jsonl"];
    let mut command = root.command(&args);
    command.env("MEMOIRD_NESTED", "1");
    root.finish(command, &args).ok();
    work(&root);
    assert_eq!(records(&root), 0);
    // Any other agent's program may call it so.
    root.run(&args).ok();
    work(&root);
    assert_eq!(records(&root), 1);
}

#[test]
fn what_fails_is_tried_three_times_and_put_aside() {
    let root = root();
    hook(&root, "SessionEnd", &json!({"transcript_path": root.path("nowhere.jsonl")}));
    for _ in 0..3 {
        work(&root);
    }
    let spool = root.home(".local/state/memoird/spool");
    let failed: Vec<_> = fs::read_dir(spool.join("failed")).unwrap().collect();
    assert_eq!(failed.len(), 1);
    let text = fs::read_to_string(failed[0].as_ref().unwrap().path()).unwrap();
    assert!(text.contains("cannot read the transcript"), "{text}");
    assert_eq!(fs::read_dir(&spool).unwrap().count(), 2, "the lock and the folder");
    // A person is told, and once the transcript is there again nothing is lost.
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    let told = &status["sessions"]["failed"][0];
    assert_eq!(told["transcript"], "~/tide/nowhere.jsonl");
    let words = root.run(&["status"]).ok().stdout;
    assert!(words.contains("memoird session retry") && words.contains("nowhere.jsonl"), "{words}");
    assert_eq!(root.run(&["session", "retry"]).code, 1);
    root.write("nowhere.jsonl", &sample_text("plain.jsonl"));
    for _ in 0..2 {
        work(&root);
    }
    root.run(&["session", "retry"]).ok();
    assert_eq!(records(&root), 1);
    let status = root.run(&["status", "--json"]).ok().json_as("status");
    assert_eq!(status["sessions"]["failed"].as_array().unwrap().len(), 0);
    assert!(root.run(&["session", "retry"]).ok().stderr.contains("nothing to do"));
}

#[test]
fn the_daemon_does_what_a_worker_left() {
    let root = root();
    root.run(&["init", "."]).ok();
    root.write("s.jsonl", &generate::session(4));
    leave(&root);
    let mut daemon = Daemon::start(&root);
    // The entry is written after the record.
    daemon.await_file(&root.path("memory/2026-03-01.md"));
    drop(daemon);
    work(&root);
    assert_eq!(records(&root), 1);
}

#[test]
fn a_project_never_gets_another_ones_memory() {
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
    root.write("vault/WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    fs::remove_file(root.path("memoird.yaml")).unwrap();
    root.write("s.jsonl", &sample_text("plain.jsonl"));
    let config = root.path("config.yaml");
    let config = config.to_str().unwrap();
    let fire = |event: &str, project: &str| {
        let told = json!({"cwd": root.path(project), "transcript_path": root.path("s.jsonl")});
        root.run_with_stdin(&["--config", config, "hook", "claude-code", event], told.to_string())
            .ok()
    };
    assert_eq!(fire("session-start", "other").stdout, "");
    assert!(fire("session-start", "one").stdout.contains("Brest is late."));
    fire("session-end", "other");
    root.run(&["--config", config, "hook", "work"]).ok();
    assert_eq!(records(&root), 0, "nobody's memory");
    fire("session-end", "one");
    root.run(&["--config", config, "hook", "work"]).ok();
    assert_eq!(records(&root), 1);
}

#[test]
fn killed_at_any_step_the_work_is_done_once() {
    let trace = root();
    trace.write("s.jsonl", &generate::session(4));
    leave(&trace);
    let steps = trace.home("steps");
    let mut command = trace.command(&["hook", "work"]);
    command.env("MEMOIRD_FAIL_TRACE", &steps);
    trace.finish(command, &[]).ok();
    let count = fs::read_to_string(&steps).unwrap().lines().count();
    // Each third step here; each of them is killed in the test of the record itself.
    for step in (1..=count).step_by(3) {
        let root = root();
        root.write("s.jsonl", &generate::session(4));
        leave(&root);
        let mut command = root.command(&["hook", "work"]);
        command.env("MEMOIRD_FAIL", format!("kill@{step}"));
        root.finish(command, &[]);
        work(&root);
        assert_eq!(records(&root), 1, "step {step}");
        let log = root.read("memory/2026-03-01.md");
        assert_eq!(log.matches("\n- ").count(), 1, "step {step}: {log}");
    }
}

#[test]
fn hooks_are_entered_in_the_settings_and_taken_out_again() {
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
    root.run(&["init", ".", "--claude-code"]).ok();
    let entered: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(entered["model"], "opus");
    for event in ["Stop", "SessionStart", "PreCompact", "SessionEnd"] {
        assert_eq!(entered["hooks"][event].as_array().unwrap().len(), 1, "{event}");
    }
    let kept = root.home(".claude/settings.json.before-memoird-20260413-070000");
    assert_eq!(fs::read_to_string(kept).unwrap(), theirs);
    let before = read();
    root.run(&["init", ".", "--claude-code"]).ok();
    assert_eq!(read(), before);
    root.run(&["init", "--claude-code", "--uninstall"]).ok();
    assert_eq!(read(), theirs);
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(&settings, "{ // mine\n}").unwrap();
    let ran = root.run(&["init", ".", "--claude-code"]);
    assert_eq!(ran.code, 78, "{ran}");
    assert_eq!(read(), "{ // mine\n}");
}

#[test]
fn codex_has_hooks_of_its_own_and_claude_code_a_plugin() {
    let root = root();
    let hooks = root.home(".codex/hooks.json");
    root.run(&["init", ".", "--codex"]).ok();
    let entered: Value = serde_json::from_str(&fs::read_to_string(&hooks).unwrap()).unwrap();
    for event in ["SessionStart", "PreCompact", "SessionEnd"] {
        let command = entered["hooks"][event][0]["hooks"][0]["command"].as_str().unwrap();
        assert!(command.contains(" hook codex "), "{command}");
    }
    assert!(!root.home(".claude/settings.json").exists());
    root.run(&["init", "--codex", "--uninstall"]).ok();
    assert_eq!(fs::read_to_string(&hooks).unwrap(), "{}\n");
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
    assert!(!root.home(".claude/settings.json").exists(), "the settings are left alone");
    // The folder of another plugin is none of ours.
    root.write("other/.claude-plugin/plugin.json", "{\"name\": \"theirs\"}\n");
    let ran = root.run(&["init", ".", "--claude-code", "--plugin", "other"]);
    assert_eq!(ran.code, 2, "{ran}");
    // A session of Codex begins with what is known, and is kept when it ends.
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root.write("s.jsonl", &sample_text("codex.jsonl"));
    let fire = |verb: &str, event: &str| {
        let told = json!({"session_id": "s", "cwd": root.path(""), "hook_event_name": event,
            "transcript_path": root.path("s.jsonl"), "model": "m", "permission_mode": "default"});
        root.run_with_stdin(&["hook", "codex", verb], told.to_string()).ok()
    };
    assert!(fire("session-start", "SessionStart").stdout.contains("Brest is late."));
    fire("session-end", "SessionEnd");
    work(&root);
    assert_eq!(records(&root), 1);
}
