//! From a message in a session to the context of the next session and back by `trace`; and import of
//! earlier sessions.

use std::fs;

use serde_json::{Value, json};

use crate::support::Root;

const MESSAGE: &str = "Import the Brest tide table. Always write the datum into the file name, because \
                     Brest and Saint-Malo use different ones.";

/// Returns a memory folder for sessions in its own folder, and writes the transcript of one.
fn root_with(name: &str, day: &str) -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "agent_name: Tide\nzone: Europe/Berlin\n");
    write_session(&root, name, day, &root.path("").to_string_lossy());
    root
}

fn write_session(root: &Root, name: &str, day: &str, cwd: &str) {
    let line = |n: usize, role: &str, content: Value| {
        json!({"type": role, "uuid": format!("{name}-{n}"), "sessionId": name, "cwd": cwd,
            "timestamp": format!("{day}T08:0{n}:00Z"), "version": "2.0.31", "gitBranch": "main",
            "message": {"role": role, "content": content}})
        .to_string()
    };
    let decision = "I decided to name files by datum (brest-ZH.csv), because Brest and Saint-Malo use \
                   different ones.";
    let lines = [
        line(1, "user", json!(MESSAGE)),
        line(2, "assistant", json!([{"type": "text", "text": decision}])),
        line(
            3,
            "assistant",
            json!([{"type": "tool_use", "id": "t", "name": "Write",
            "input": {"file_path": format!("{cwd}/brest-ZH.csv"), "content": "a,b\n"}}]),
        ),
        line(4, "user", json!([{"type": "tool_result", "tool_use_id": "t", "content": "ok"}])),
        line(5, "assistant", json!([{"type": "text", "text": "The import works: 412 rows."}])),
    ];
    let path = root.home(&format!(".claude/projects/x/{name}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(path, lines.join("\n") + "\n").unwrap();
}

/// Calls a hook for a session in the memory folder, and waits until it is processed.
fn hook(root: &Root, verb: &str, name: &str) -> String {
    let hook_input = json!({"session_id": name, "cwd": root.path(""),
        "transcript_path": root.home(&format!(".claude/projects/x/{name}.jsonl"))});
    let ran = root.run_with_stdin(&["hook", "claude-code", verb], hook_input.to_string()).ok();
    root.run(&["hook", "work"]).ok();
    ran.stdout
}

/// Collects the path and text of the deepest sources of a trace.
fn collect_leaves(source: &Value, found: &mut Vec<(String, String)>) {
    let below = source["sources"].as_array().cloned().unwrap_or_default();
    if below.is_empty() {
        let text = |key: &str| source[key].as_str().unwrap_or_default().to_owned();
        found.push((text("path"), text("text")));
    }
    for it in &below {
        collect_leaves(it, found);
    }
}

#[test]
fn a_session_reaches_wisdom_and_the_next_session_and_traces_back_to_the_message() {
    let mut root = root_with("s", "2026-03-03");
    root.set_now("2026-03-03T18:00:00+01:00");
    assert_eq!(hook(&root, "session-start", "s"), "", "there is no memory yet");
    for verb in ["pre-compact", "session-end", "session-end"] {
        assert_eq!(hook(&root, verb, "s"), "");
    }
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(log.matches("Session in").count(), 1, "{log}");
    // The week and the month close.
    root.set_now("2026-04-13T09:00:00+02:00");
    root.run(&["compact"]).ok();
    for file in ["memory/weekly/2026-W10.md", "memory/monthly/2026-03.md", "WISDOM.md"] {
        assert!(root.read(file).contains("Always write the datum into the file name"), "{file}");
    }
    let context = hook(&root, "session-start", "s");
    assert!(context.contains("Always write the datum"), "{context}");
    // The transcript is deleted; the record keeps the message.
    fs::remove_dir_all(root.home(".claude")).unwrap();
    let trace = root.run(&["trace", "WISDOM.md", "--json"]).ok().json_as("trace");
    let mut found = Vec::new();
    let traces = trace.as_array().cloned().unwrap_or_else(|| vec![trace.clone()]);
    for it in &traces {
        collect_leaves(it, &mut found);
    }
    let message = found.iter().find(|it| it.0.starts_with("memory/sessions/CMEM-20260303-"));
    let message = message.unwrap_or_else(|| panic!("no message: {trace:#}"));
    assert!(message.1.contains(MESSAGE) && message.1.contains("user 2026-03-03"), "{message:?}");
    assert!(root.read(&message.0).contains(MESSAGE));
    // No work is left, and `doctor` finds no problem.
    assert!(root.run(&["compact"]).ok().stderr.contains("nothing"), "no work is left");
    root.run(&["doctor"]).ok();
}

#[test]
fn earlier_sessions_are_previewed_and_imported_once() {
    let root = root_with("one", "2026-04-08");
    write_session(&root, "two", "2026-04-09", &root.path("src").to_string_lossy());
    write_session(&root, "other", "2026-04-09", "/nowhere/else");
    let helper = root.home(".claude/projects/x/one/subagents/agent-1.jsonl");
    fs::create_dir_all(helper.parent().unwrap()).unwrap();
    fs::copy(root.home(".claude/projects/x/one.jsonl"), helper).unwrap();
    let before = root.files();
    let states = |args: &[&str]| -> Vec<(String, u64)> {
        let json = root.run(&[&["import", "claude-code", "--json"], args].concat()).ok().json();
        let sessions = json["sessions"].as_array().unwrap();
        let mut states: Vec<_> = sessions
            .iter()
            .map(|it| {
                let days = it["days"].as_array().unwrap().len() as u64;
                (it["state"].as_str().unwrap().to_owned(), days)
            })
            .collect();
        states.sort();
        states
    };
    let all = |first: &str, days| -> Vec<(String, u64)> {
        let mut all =
            vec![("homeless".to_owned(), 0), (first.to_owned(), days), (first.to_owned(), days)];
        all.sort();
        all
    };
    // Without --yes nothing is written.
    for args in [&["--dry-run"][..], &["--dry-run", "--yes"], &[]] {
        assert_eq!(states(args), all("new", 1), "{args:?}");
        assert_eq!(root.files(), before);
    }
    let output = root.run(&["import", "claude-code"]).ok();
    assert!(
        output.stderr.contains("would import 2 sessions") && output.stderr.contains("--yes"),
        "{output}"
    );
    assert_eq!(states(&["--yes"]), all("new", 1));
    for day in ["2026-04-08", "2026-04-09"] {
        assert!(root.read(&format!("memory/{day}.md")).contains("Session in"), "{day}");
    }
    let after = root.files();
    assert_eq!(states(&["--yes"]), all("known", 0), "a second import finds nothing new");
    assert_eq!(root.files(), after);
    // A hook for an imported session adds nothing.
    hook(&root, "session-end", "one");
    assert_eq!(root.files(), after);
    // A transcript that cannot be read is reported.
    root.write("bad.jsonl", "no transcript\n");
    let ran = root.run(&["import", "jsonl", "bad.jsonl", "--yes"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.contains("bad.jsonl") && ran.stdout.contains("not a transcript"), "{ran}");
    assert_eq!(root.run(&["import", "codex"]).code, 2, "there are none");
}

#[test]
fn a_line_that_misquotes_its_record_is_not_summarized() {
    let mut root = root_with("s", "2026-03-03");
    root.set_now("2026-03-03T18:00:00+01:00");
    hook(&root, "session-end", "s");
    let log = root.read("memory/2026-03-03.md");
    let falsified = log.replace("because Brest and Saint-Malo use", "because Saint-Malo use");
    assert_ne!(falsified, log);
    root.write("memory/2026-03-03.md", &falsified);
    root.set_now("2026-03-13T09:00:00+01:00");
    root.run(&["compact"]).ok();
    let week = root.read("memory/weekly/2026-W10.md");
    assert!(week.contains("The import works: 412 rows"), "{week}");
    assert!(!week.contains("because"), "{week}");
}

#[test]
fn forks_and_sub_agents_log_nothing_twice() {
    let mut root = root_with("s", "2026-03-03");
    root.set_now("2026-03-03T18:00:00+01:00");
    let path = |name: &str| root.home(&format!(".claude/projects/x/{name}.jsonl"));
    let first = fs::read_to_string(path("s")).unwrap();
    let state = |session: &str| {
        json!({"type": "last-prompt", "lastPrompt": "x", "sessionId": session}).to_string() + "\n"
    };
    let write = |name: &str, text: String| {
        #[expect(clippy::disallowed_methods, reason = "a file of a test")]
        fs::write(path(name), text).unwrap();
    };
    write("s", first.clone() + &state("s"));
    hook(&root, "session-end", "s");
    // A fork copies the messages under its own id, and ends with a line of its own.
    let fork = first.replace("\"sessionId\":\"s\"", "\"sessionId\":\"fork\"");
    write("fork", fork.clone() + &state("fork"));
    hook(&root, "session-end", "fork");
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(log.matches("Session in").count(), 1, "{log}");
    let new = json!({"type": "user", "uuid": "fork-6", "parentUuid": "s-5", "sessionId": "fork",
        "timestamp": "2026-03-03T09:00:00Z", "message": {"role": "user", "content": "Ship it"}});
    write("fork", format!("{fork}{new}\n{}", state("fork")));
    hook(&root, "session-end", "fork");
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(log.matches("Always write the datum").count(), 1, "{log}");
    assert_eq!(log.matches("Ship it").count(), 1, "{log}");
    // A fork from an earlier message has none of the last lines, and new ids for the copies.
    let early: String = first.lines().take(4).map(|it| it.to_owned() + "\n").collect();
    let early = early.replace("\"sessionId\":\"s\"", "\"sessionId\":\"early\"");
    let early = early.replace("\"uuid\":\"s-", "\"uuid\":\"e-");
    write("early", early.clone());
    let before = root.files();
    hook(&root, "session-end", "early");
    assert_eq!(root.files(), before);
    let new = new.to_string().replace("Ship it", "Sign it").replace("fork", "early");
    write("early", format!("{early}{new}\n"));
    hook(&root, "session-end", "early");
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(
        (log.matches("Always write the datum").count(), log.matches("Sign it").count()),
        (1, 1),
        "{log}"
    );
    // The rollout of a sub-agent of Codex is part of another session.
    let meta = json!({"type": "session_meta", "payload": {"id": "c", "cwd": root.path(""),
        "source": {"subagent": {"thread_spawn": {"parent_thread_id": "p"}}}}});
    let said = json!({"type": "response_item", "payload": {"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "We decided to drop it."}]}});
    root.write("rollout.jsonl", &format!("{meta}\n{said}\n"));
    let report = root.run(&["import", "codex", "rollout.jsonl", "--yes", "--json"]).ok().json();
    assert_eq!(report["sessions"][0]["state"], "subagent", "{report}");
    assert_eq!(root.read("memory/2026-03-03.md"), log);
}

#[test]
fn a_fork_of_codex_logs_only_what_is_new() {
    let mut root = root_with("s", "2026-03-03");
    root.set_now("2026-03-03T18:00:00+01:00");
    let rollout = |id: &str, parent: Option<&str>, time: &str, said: &[(&str, &str)]| {
        let meta = json!({"timestamp": format!("2026-03-03T{time}:00Z"), "type": "session_meta",
            "payload": {"id": id, "cwd": root.path(""), "source": "cli", "forked_from_id": parent}});
        let item = |(role, text): &(&str, &str)| {
            let kind = if *role == "user" { "input_text" } else { "output_text" };
            json!({"timestamp": format!("2026-03-03T{time}:00Z"), "type": "response_item",
                "payload": {"type": "message", "role": role,
                    "content": [{"type": kind, "text": text}]}})
        };
        let lines = std::iter::once(meta).chain(said.iter().map(item));
        lines.map(|it| it.to_string() + "\n").collect::<String>()
    };
    let said = [("user", "Count the buoys"), ("assistant", "Fixed: 14 buoys."), ("user", "go on")];
    root.write("a.jsonl", &rollout("a", None, "08:00", &said));
    root.run(&["import", "codex", "a.jsonl", "--yes"]).ok();
    // The copies have the time of the fork.
    let fork = [&said[..2], &[("user", "Count the lights")]].concat();
    root.write("b.jsonl", &rollout("b", Some("a"), "09:30", &fork));
    root.run(&["import", "codex", "b.jsonl", "--yes"]).ok();
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(log.matches("Count the buoys").count(), 1, "{log}");
    assert!(log.contains("10:30 Session") && log.contains("Count the lights"), "{log}");
}
