//! opencode, Copilot CLI, Cursor, Windsurf, and Zed: what is entered in their files, and sessions as they keep them.
//!
//! The programs themselves run in `tests/clients`, as far as they can run here.

use std::fs;

use rusqlite::{Connection, params};
use serde_json::{Value, json};

use crate::support::{Root, write_file};

const DECISION: &str = "We decided to name files by datum, because Brest has two.";

/// Returns the memory folder `~/tide`.
fn root() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root
}

/// Writes the database of opencode, with one session and one of a subagent, both of the folder.
fn write_database(root: &Root) {
    let path = root.home(".local/share/opencode/opencode.db");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let db = Connection::open(path).unwrap();
    db.execute_batch(
        "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, version text, revert text,
            time_updated integer);
         CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, data text);
         CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, data text);",
    )
    .unwrap();
    let at = 1_775_970_000_000_i64; // 2026-04-12T07:00:00+02:00
    for (session, parent) in [("ses_1", None), ("ses_2", Some("ses_1"))] {
        db.execute(
            "INSERT INTO session VALUES (?1, ?2, ?3, '1.18.33', NULL, ?4)",
            params![session, parent, root.path("").to_str(), at],
        )
        .unwrap();
        let parts = [
            ("user", json!({"type": "text", "text": "Import the Brest table"})),
            ("assistant", json!({"type": "text", "text": DECISION})),
        ];
        for (n, (role, part)) in parts.iter().enumerate() {
            let message = format!("msg_{session}_{n}");
            let info = json!({"role": role, "time": {"created": at}}).to_string();
            db.execute(
                "INSERT INTO message VALUES (?1, ?2, ?3, ?4)",
                params![message, session, at, info],
            )
            .unwrap();
            db.execute(
                "INSERT INTO part VALUES (?1, ?2, ?3, ?4)",
                params![format!("prt_{session}_{n}"), message, session, part.to_string()],
            )
            .unwrap();
        }
    }
}

/// Calls a hook of an agent and returns what it prints.
fn hook(root: &Root, agent: &str, event: &str, input: &Value) -> String {
    let ran = root.run_with_stdin(&["hook", agent, event], input.to_string()).ok();
    root.run(&["hook", "work"]).ok();
    ran.stdout
}

#[test]
fn a_session_of_opencode_is_recorded_from_its_database_once() {
    let root = root();
    write_database(&root);
    let input = json!({"session_id": "ses_1", "cwd": root.path("")});
    let answer: Value =
        serde_json::from_str(&hook(&root, "opencode", "session-start", &input)).unwrap();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("Brest is late."), "{text}");
    for event in ["pre-compact", "session-end"] {
        assert_eq!(hook(&root, "opencode", event, &input), "");
    }
    let log = root.read("memory/2026-04-12.md");
    assert_eq!(log.matches(DECISION).count(), 1, "{log}");
    // A session that was deleted, and one that is none, leave nothing behind.
    for session in ["ses_3", "../../escape"] {
        hook(
            &root,
            "opencode",
            "session-end",
            &json!({"session_id": session, "cwd": root.path("")}),
        );
    }
    assert_eq!(root.run(&["session", "retry", "--json"]).ok().json()["tried"], 0);
    // The database has nothing that is not recorded.
    let report = root.run(&["import", "opencode", "--yes", "--days", "0", "--json"]).ok().json();
    let states: Vec<&Value> =
        report["sessions"].as_array().unwrap().iter().map(|it| &it["state"]).collect();
    assert_eq!(states, ["known", "subagent"]);
    // Sessions that changed earlier are not looked at.
    let report = root.run(&["import", "opencode", "--days", "1", "--json"]).ok().json();
    assert_eq!(report["sessions"], json!([]));
}

#[test]
fn what_the_user_of_opencode_reverts_leaves_no_second_entry_of_the_rest() {
    let root = root();
    write_database(&root);
    let db = Connection::open(root.home(".local/share/opencode/opencode.db")).unwrap();
    let say = |n: usize, text: &str| {
        let at = 1_775_970_000_000_i64 + i64::try_from(n).unwrap() * 60_000;
        let info = json!({"role": "user", "time": {"created": at}}).to_string();
        let message = format!("msg_ses_1_{n}");
        db.execute("INSERT INTO message VALUES (?1, 'ses_1', ?2, ?3)", params![message, at, info])
            .unwrap();
        let part = json!({"type": "text", "text": text}).to_string();
        let id = format!("prt_ses_1_{n}");
        db.execute("INSERT INTO part VALUES (?1, ?2, 'ses_1', ?3)", params![id, message, part])
            .unwrap();
    };
    let input = json!({"session_id": "ses_1", "cwd": root.path("")});
    say(2, "Plot it with colours");
    hook(&root, "opencode", "pre-compact", &input);
    // The next prompt deletes what was reverted.
    db.execute("DELETE FROM message WHERE id = 'msg_ses_1_2'", []).unwrap();
    say(3, "Round to centimetres");
    hook(&root, "opencode", "session-end", &input);
    let log = root.read("memory/2026-04-12.md");
    for words in ["Import the Brest table", DECISION, "Round to centimetres"] {
        assert_eq!(log.matches(words).count(), 1, "{words}: {log}");
    }
}

#[test]
fn sessions_of_opencode_are_imported_from_the_database_and_from_exports() {
    let root = root();
    write_database(&root);
    let report = root.run(&["import", "opencode", "--yes", "--json"]).ok().json();
    assert_eq!((&report["kept"], &report["entries"]), (&json!(1), &json!(1)));
    assert!(root.read("memory/2026-04-12.md").contains(DECISION));
    let part = json!({"id": "p1", "type": "text", "text": "Name rivers, too"});
    let info = json!({"id": "m1", "role": "user", "time": {"created": 1_775_988_000_000_i64}});
    let session = json!({"id": "ses_9", "directory": root.path(""), "version": "1.18.33"});
    let export = json!({"info": session, "messages": [{"info": info, "parts": [part]}]});
    root.write("exports/a.json", &format!("{export:#}\n"));
    let args = ["import", "opencode", "exports", "--yes", "--days", "0", "--json"];
    assert_eq!(root.run(&args).ok().json()["kept"], 1);
    assert!(root.read("memory/2026-04-12.md").contains("Name rivers, too"));
    let other = root.home("other.db");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE a (b)").unwrap();
    let failed = root.run(&["import", "opencode", other.to_str().unwrap()]);
    assert!(failed.code != 0 && failed.stderr.contains("opencode export"), "{failed}");
}

#[test]
fn sessions_of_copilot_and_cursor_are_found_by_their_hooks() {
    let root = root();
    let copilot = root.home(".copilot/session-state/s-1/events.jsonl");
    let event = |kind: &str, id: &str, data: &Value| {
        let at = "2026-04-12T09:00:00.120Z";
        json!({"type": kind, "id": id, "parentId": null, "timestamp": at, "data": data}).to_string()
    };
    let start =
        json!({"sessionId": "s-1", "copilotVersion": "1.0.102", "context": {"cwd": root.path("")}});
    let lines = [
        event("session.start", "e1", &start),
        event("user.message", "e2", &json!({"content": "Import the Brest table"})),
        event("assistant.message", "e3", &json!({"content": DECISION, "toolRequests": []})),
    ];
    write_file(&copilot, &(lines.join("\n") + "\n"));
    let input = json!({"session_id": "s-1", "cwd": root.path(""), "hook_event_name": "SessionEnd"});
    hook(&root, "copilot", "session-end", &input);
    assert!(root.read("memory/2026-04-12.md").contains(DECISION));
    let report = root.run(&["import", "copilot", "--yes", "--days", "0", "--json"]).ok().json();
    assert_eq!(report["sessions"][0]["state"], "known");
    let answer: Value =
        serde_json::from_str(&hook(&root, "copilot", "session-start", &input)).unwrap();
    assert!(answer["additionalContext"].as_str().unwrap().contains("Brest is late."));

    let project = root.path("").to_string_lossy().trim_matches('/').replace(['/', '.'], "-");
    let cursor = root.home(&format!(".cursor/projects/{project}/agent-transcripts/c-1.jsonl"));
    let line = |role: &str, text: &str| {
        json!({"role": role, "message": {"content": [{"type": "text", "text": text}]}}).to_string()
    };
    let asked = "<timestamp>now</timestamp>\n<user_query>\nCount the gauges\n</user_query>";
    write_file(&cursor, &[line("user", asked), line("assistant", "There are nine.")].join("\n"));
    let input = json!({"session_id": "c-1", "conversation_id": "c-1", "transcript_path": null,
        "workspace_roots": [root.path("")], "hook_event_name": "sessionEnd"});
    hook(&root, "cursor", "session-end", &input);
    let log = root.read("memory/2026-04-13.md");
    assert!(log.contains("Count the gauges") && !log.contains("timestamp"), "{log}");
    let answer: Value =
        serde_json::from_str(&hook(&root, "cursor", "session-start", &input)).unwrap();
    assert!(answer["additional_context"].as_str().unwrap().contains("Brest is late."));
}

#[test]
fn init_enters_each_program_and_uninstall_removes_it_byte_for_byte() {
    let root = root();
    let program = env!("CARGO_BIN_EXE_memoird");
    for (flag, path, theirs, ours) in [
        (
            "--opencode",
            ".config/opencode/opencode.json",
            "{\n  // mine\n  \"model\": \"local/m\",\n}\n",
            json!({"mcp": {"memoird": {"type": "local", "command": [program, "mcp"], "enabled": true}}}),
        ),
        (
            "--copilot",
            ".copilot/mcp-config.json",
            "{\"mcpServers\": {\"tides\": {\"type\": \"http\", \"url\": \"http://127.0.0.1:1\"}}}\n",
            json!({"mcpServers": {"memoird":
                {"type": "local", "command": program, "args": ["mcp"], "tools": ["*"]}}}),
        ),
        (
            "--cursor",
            ".cursor/mcp.json",
            "{\n  \"mcpServers\": {\n    \"tides\": {\"command\": \"tides\"}\n  }\n}\n",
            json!({"mcpServers": {"memoird": {"command": program, "args": ["mcp"]}}}),
        ),
        (
            "--windsurf",
            ".codeium/windsurf/mcp_config.json",
            "{\n  \"mcpServers\": {}\n}\n",
            json!({"mcpServers": {"memoird": {"command": program, "args": ["mcp"]}}}),
        ),
        (
            "--zed",
            ".config/zed/settings.json",
            "// mine\n{\n  \"theme\": \"One Dark\", // the dark one\n  \"lsp\": {},\n}\n",
            json!({"context_servers": {"memoird": {"command": program, "args": ["mcp"]}}}),
        ),
    ] {
        let file = root.home(path);
        let read = || fs::read_to_string(&file).unwrap();
        // Without a file before, with one, and with a user's change after.
        for before in [None, Some(theirs)] {
            if let Some(text) = before {
                write_file(&file, text);
            }
            let shown = root.run(&["init", ".", flag, "--dry-run"]).ok().stdout;
            assert!(shown.contains("memoird"), "{shown}");
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), before, "{flag}");
            let report = root.run(&["init", ".", flag, "--yes", "--json"]).ok().json();
            assert!(report["hooks"].to_string().contains("changed"), "{report}");
            let text = read();
            let plain: String = text.lines().map(|it| it.split(" //").next().unwrap()).collect();
            let plain = plain.replace("// mine", "");
            let plain = plain.split_whitespace().collect::<String>().replace(",}", "}");
            let value: Value =
                serde_json::from_str(&plain).unwrap_or_else(|e| panic!("{flag}: {e}: {text}"));
            let (key, list) = ours.as_object().unwrap().iter().next().unwrap();
            assert_eq!(value[key]["memoird"], list["memoird"], "{flag}");
            root.run(&["init", ".", flag, "--yes"]).ok();
            assert_eq!(read(), text, "{flag}: a second call changes nothing");
            root.run(&["init", flag, "--uninstall", "--yes"]).ok();
            assert_eq!(fs::read_to_string(&file).ok().as_deref(), before, "{flag}");
        }
        let folder = file.parent().unwrap();
        let left: Vec<_> = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()).collect();
        let files = left.iter().filter(|it| it.is_file());
        assert_eq!(files.collect::<Vec<_>>(), [&file], "{flag}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn the_files_of_hooks_have_the_form_of_their_program() {
    let root = root();
    let program = env!("CARGO_BIN_EXE_memoird");
    let read = |path: &str| {
        serde_json::from_str::<Value>(&fs::read_to_string(root.home(path)).unwrap()).unwrap()
    };
    root.run(&["init", ".", "--cursor", "--copilot", "--opencode", "--yes"]).ok();
    let cursor = read(".cursor/hooks.json");
    assert_eq!(cursor["version"], 1);
    let hook = json!({"command": format!("{program} hook cursor session-start"), "timeout": 5});
    assert_eq!(cursor["hooks"]["sessionStart"], json!([hook]));
    let copilot = read(".copilot/hooks/memoird.json");
    let hook = &copilot["hooks"]["PreCompact"][0]["hooks"][0];
    assert_eq!(hook["command"], format!("{program} hook copilot pre-compact"));
    let plugin = root.home(".config/opencode/plugins/memoird.js");
    let text = fs::read_to_string(&plugin).unwrap();
    assert!(text.contains(&format!("\nconst PROGRAM = \"{program}\"\n")), "{text}");
    // A plugin of this name that somebody else wrote stays.
    write_file(&plugin, "export const mine = async () => ({})\n");
    let refused = root.run(&["init", ".", "--opencode", "--yes"]);
    assert!(
        refused.code != 0 && refused.stderr.contains("was not written by memoird"),
        "{refused}"
    );
    root.run(&["init", "--cursor", "--copilot", "--opencode", "--uninstall", "--yes"]).ok();
    assert!(plugin.exists());
    for path in
        [".cursor/hooks.json", ".copilot/hooks/memoird.json", ".config/opencode/opencode.json"]
    {
        assert!(!root.home(path).exists(), "{path}");
    }
}
