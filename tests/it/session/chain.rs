//! From what was said in a session to what the next one begins with, and back down again; and sessions
//! that were held before.

use std::fs;

use serde_json::{Value, json};

use crate::support::Root;

const ASKED: &str = "Import the Brest tide table. Always write the datum into the file name, because \
                     Brest and Saint-Malo use different ones.";

/// Makes a root for sessions in its own folder, and a transcript of one that was held on a day.
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
    let decided = "I decided to name files by datum (brest-ZH.csv), because Brest and Saint-Malo use \
                   different ones.";
    let lines = [
        line(1, "user", json!(ASKED)),
        line(2, "assistant", json!([{"type": "text", "text": decided}])),
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

/// Fires a hook for a session of the root's own folder, and waits until its work is done.
fn hook(root: &Root, verb: &str, name: &str) -> String {
    let told = json!({"session_id": name, "cwd": root.path(""),
        "transcript_path": root.home(&format!(".claude/projects/x/{name}.jsonl"))});
    let ran = root.run_with_stdin(&["hook", "claude-code", verb], told.to_string()).ok();
    root.run(&["hook", "work"]).ok();
    ran.stdout
}

/// Returns all paths that a trace leads to, the deepest ones with their words.
fn leaves(source: &Value, found: &mut Vec<(String, String)>) {
    let below = source["sources"].as_array().cloned().unwrap_or_default();
    if below.is_empty() {
        let text = |key: &str| source[key].as_str().unwrap_or_default().to_owned();
        found.push((text("path"), text("text")));
    }
    for it in &below {
        leaves(it, found);
    }
}

#[test]
fn what_was_said_in_a_session_is_known_in_a_later_one_and_leads_back_to_the_words() {
    let mut root = root_with("s", "2026-03-03");
    root.set_now("2026-03-03T18:00:00+01:00");
    assert_eq!(hook(&root, "session-start", "s"), "", "nothing is known yet");
    for verb in ["pre-compact", "session-end", "session-end"] {
        assert_eq!(hook(&root, verb, "s"), "");
    }
    let log = root.read("memory/2026-03-03.md");
    assert_eq!(log.matches("Session in").count(), 1, "{log}");
    // Days, week and month close.
    root.set_now("2026-04-13T09:00:00+02:00");
    root.run(&["compact"]).ok();
    for file in ["memory/weekly/2026-W10.md", "memory/monthly/2026-03.md", "WISDOM.md"] {
        assert!(root.read(file).contains("Always write the datum into the file name"), "{file}");
    }
    let told = hook(&root, "session-start", "s");
    assert!(
        told.contains("Always write the datum") && told.contains("I decided to name"),
        "{told}"
    );
    // The transcript vanishes; the words stay.
    fs::remove_dir_all(root.home(".claude")).unwrap();
    let trace = root.run(&["trace", "WISDOM.md", "--json"]).ok().json_as("trace");
    let mut found = Vec::new();
    let traces = trace.as_array().cloned().unwrap_or_else(|| vec![trace.clone()]);
    for it in &traces {
        leaves(it, &mut found);
    }
    let said = found.iter().find(|it| it.0.starts_with("memory/sessions/CMEM-20260303-"));
    let said = said.unwrap_or_else(|| panic!("no message: {trace:#}"));
    assert!(said.1.contains(ASKED) && said.1.contains("user 2026-03-03"), "{said:?}");
    assert!(root.read(&said.0).contains(ASKED));
    // Nothing is left to do, and nobody finds anything amiss.
    assert!(root.run(&["compact"]).ok().stderr.contains("nothing"), "all is done");
    root.run(&["doctor"]).ok();
}

#[test]
fn sessions_of_before_are_shown_first_and_brought_in_once() {
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
    // Without a yes nothing is written.
    for args in [&["--dry-run"][..], &["--dry-run", "--yes"], &[]] {
        assert_eq!(states(args), all("new", 1), "{args:?}");
        assert_eq!(root.files(), before);
    }
    let told = root.run(&["import", "claude-code"]).ok();
    assert!(
        told.stderr.contains("would import 2 sessions") && told.stderr.contains("--yes"),
        "{told}"
    );
    assert_eq!(states(&["--yes"]), all("new", 1));
    for day in ["2026-04-08", "2026-04-09"] {
        assert!(root.read(&format!("memory/{day}.md")).contains("Session in"), "{day}");
    }
    let after = root.files();
    assert_eq!(states(&["--yes"]), all("known", 0), "a second time nothing is new");
    assert_eq!(root.files(), after);
    // A hook that fires for one of them finds it kept.
    hook(&root, "session-end", "one");
    assert_eq!(root.files(), after);
    // One that cannot be read stops no other, and is told.
    root.write("bad.jsonl", "no transcript\n");
    let ran = root.run(&["import", "jsonl", "bad.jsonl", "--yes"]);
    assert_eq!(ran.code, 1, "{ran}");
    assert!(ran.stdout.contains("bad.jsonl") && ran.stdout.contains("not a transcript"), "{ran}");
    assert_eq!(root.run(&["import", "codex"]).code, 2, "there are none");
}
