//! `init --openclaw`, the block of `WISDOM.md` in `MEMORY.md`, and sessions of `OpenClaw`. Real runs of that program
//! are in `tests/clients`.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::support::{Root, write_file};

const SETTINGS: &str = "{\n  // mine\n  gateway: { port: 1, }, /* by hand */\n}\n";
const NOTES: &str = "# Memory\n\n- The pier house has two keys\n";
const BEGIN: &str = "<!-- memoird:begin wisdom ";
const END: &str = "<!-- memoird:end -->\n";

const DAY: &str = "# 2026-04-10\n\n\
    - Never push to the mirror without asking Ottilie first\n\
    - Ottilie prefers short reports with the numbers first\n\
    - Chose SQLite for the tide tables, because one file is easier to back up\n";

/// Returns a workspace with a log, and a home with `OpenClaw`.
fn workspace(name: &str) -> Root {
    let root = Root::empty(name);
    root.write("memory/2026-04-10.md", DAY);
    root.write("MEMORY.md", NOTES);
    write_file(&settings(&root), SETTINGS);
    root
}

fn settings(root: &Root) -> PathBuf {
    root.home(".openclaw/openclaw.json")
}

/// Returns the lines between the two comments.
#[track_caller]
fn block(root: &Root) -> String {
    let text = root.read("MEMORY.md");
    let inside = text.split(BEGIN).nth(1).unwrap_or_else(|| panic!("no block: {text}"));
    let inside = inside.split_once('\n').unwrap().1;
    inside.split(END).next().unwrap().to_owned()
}

fn init(root: &Root) {
    root.run(&["init", "--openclaw", ".", "--zone", "Europe/Berlin", "--yes"]).ok();
}

#[test]
fn the_block_follows_wisdom_and_the_notes_stay() {
    let root = workspace("block");
    init(&root);
    assert!(root.read("memoird.yaml").contains("\nwisdom_block: \"MEMORY.md\""));
    assert_eq!(block(&root), "");
    root.run_with_digest(&["compact"]).ok();
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("Never push") && block(&root).contains("Never push"), "{wisdom}");
    assert!(block(&root).contains("## How to work\n"), "{}", block(&root));
    assert!(root.read("MEMORY.md").starts_with(NOTES));
    // Nothing is learned from the block, and nothing is due because of it.
    let files = root.files();
    root.run_with_digest(&["compact"]).ok();
    let due = root.run_with_digest(&["compact", "--dry-run"]).ok();
    assert!(!due.to_string().contains("newer logs or notes"), "{due}");
    assert_eq!(root.files(), files);

    // The agent writes around and inside of it.
    let text = root.read("MEMORY.md").replace(NOTES, &format!("{NOTES}- A third key\n"));
    root.write("MEMORY.md", &(text.replace(END, &format!("- In the block\n{END}")) + "- Below\n"));
    root.append("memory/2026-04-10.md", "- Always count the tide tables twice before a release\n");
    root.run_with_digest(&["compact"]).ok();
    let text = root.read("MEMORY.md");
    assert!(text.starts_with(&format!("{NOTES}- A third key\n")), "{text}");
    assert!(text.ends_with(&format!("{END}- In the block\n- Below\n")), "{text}");
    assert!(block(&root).contains("count the tide tables twice"), "{text}");

    // Undone and forgotten words leave it.
    root.run(&["undo", "--yes"]).ok();
    assert!(!block(&root).contains("count the tide tables twice"), "{}", root.read("MEMORY.md"));
    let seen =
        root.run(&["forget", "--words", "Never push to the mirror", "--dry-run", "--json"]).ok();
    assert_eq!(seen.json()["untouched"], json!([]), "{seen}");
    root.run(&["forget", "--words", "Never push to the mirror", "--from-log", "--yes"]).ok();
    assert!(!root.read("MEMORY.md").contains("Never push"), "{}", root.read("MEMORY.md"));
    assert!(!root.read(".memoird/wisdom-block.md").contains("Never push"));
}

#[test]
fn a_block_that_was_removed_or_broken_stays_so() {
    let root = workspace("removed");
    init(&root);
    root.run_with_digest(&["compact"]).ok();
    let whole = root.read("MEMORY.md");
    for (text, why) in [
        (NOTES.to_owned(), "was removed"),
        (whole.replace(END, ""), "has no end"),
        (format!("{whole}{}", &whole[NOTES.len()..]), "has no end"),
    ] {
        root.write("MEMORY.md", &text);
        root.append("memory/2026-04-10.md", "- Fixed the tide gauge in Brest\n");
        root.run_with_digest(&["compact"]).ok();
        assert_eq!(root.read("MEMORY.md"), text);
        let status = root.run(&["status"]).to_string();
        assert!(status.contains(why), "{why}: {status}");
    }
    root.write("MEMORY.md", NOTES);
    init(&root);
    assert!(block(&root).contains("Never push"));
    // Without a file there is nothing of the agent's to respect.
    fs::remove_file(root.path("MEMORY.md")).unwrap();
    root.run_with_digest(&["compact"]).ok();
    assert!(root.read("MEMORY.md").starts_with(BEGIN));
}

#[test]
fn the_file_stays_below_what_openclaw_loads() {
    let root = workspace("long");
    init(&root);
    root.run_with_digest(&["compact"]).ok();
    let whole = block(&root);
    let units = |text: &str| text.trim_end().encode_utf16().count();
    for (own, is_shortened) in [(19_700, true), (25_000, true), (1_000, false)] {
        let notes = format!("{NOTES}- {}\n", "😀".repeat((own - NOTES.len()) / 2));
        let text = root.read("MEMORY.md");
        root.write("MEMORY.md", &(notes.clone() + &text[text.find(BEGIN).unwrap() - 1..]));
        root.run_with_digest(&["compact"]).ok();
        let text = root.read("MEMORY.md");
        assert!(text.starts_with(&notes));
        assert!(units(&text) <= 20_000.max(own + 200), "{}", units(&text));
        assert_eq!(block(&root) != whole, is_shortened, "{}", block(&root));
        assert!(own > 20_000 || !block(&root).is_empty());
    }
}

#[test]
fn what_init_adds_is_removed_again() {
    let root = workspace("settings");
    let shown = root.run(&["init", "--openclaw", ".", "--dry-run"]).ok().to_string();
    assert!(shown.contains("\"memoird\"") && !shown.contains("dreaming"), "{shown}");
    assert_eq!(fs::read_to_string(settings(&root)).unwrap(), SETTINGS);
    let done = root.run(&["init", "--openclaw", ".", "--yes"]).ok().to_string();
    assert!(
        done.contains("plugins.entries.memory-core.config.dreaming.enabled to false"),
        "{done}"
    );
    let text = fs::read_to_string(settings(&root)).unwrap();
    assert!(text.contains("// mine\n  gateway: { port: 1, }, /* by hand */"), "{text}");
    assert!(text.contains("allowConversationAccess") && text.contains("\"mcp\""), "{text}");
    let plugin = root.home(".openclaw/extensions/memoird");
    assert!(plugin.join("index.js").is_file());
    let again = root.run(&["init", "--openclaw", ".", "--yes"]).ok().to_string();
    assert!(again.contains("already has the server") && !again.contains("dreaming"), "{again}");

    root.run_with_digest(&["compact"]).ok();
    root.run(&["init", "--openclaw", ".", "--uninstall", "--yes"]).ok();
    assert_eq!(fs::read_to_string(settings(&root)).unwrap(), SETTINGS);
    assert_eq!(root.read("MEMORY.md"), NOTES);
    assert!(!plugin.exists() && !root.read("memoird.yaml").contains("wisdom_block"));
    root.append("memory/2026-04-10.md", "- Fixed the tide gauge in Brest\n");
    root.run_with_digest(&["compact"]).ok();
    assert_eq!(root.read("MEMORY.md"), NOTES);
}

#[test]
fn the_workspace_is_the_one_that_the_settings_name() {
    let root = workspace("named");
    let text = format!("{{agents: {{defaults: {{workspace: '{}'}}}}}}", root.path("").display());
    write_file(&settings(&root), &text);
    let mut command = root.command(&["init", "--openclaw", "--yes", "--json"]);
    command.current_dir(root.home(""));
    let report = root.finish(command, &["init"]).ok().json();
    assert_eq!(report["root"], "~/named");
}

#[test]
fn a_link_in_place_of_the_notes_is_not_followed() {
    let root = workspace("link");
    fs::remove_file(root.path("MEMORY.md")).unwrap();
    write_file(&root.home("other.md"), NOTES);
    std::os::unix::fs::symlink(root.home("other.md"), root.path("MEMORY.md")).unwrap();
    assert_ne!(root.run(&["init", "--openclaw", ".", "--yes"]).code, 0);
    root.write("memoird.yaml", "zone: Europe/Berlin\nwisdom_block: MEMORY.md\n");
    root.run_with_digest(&["compact"]).ok();
    assert_eq!(fs::read_to_string(root.home("other.md")).unwrap(), NOTES);
}

#[test]
fn the_index_of_a_flat_folder_gives_way_to_the_block() {
    let root = Root::empty("flat");
    root.write("2026-04-10.md", DAY);
    root.write("memoird.yaml", "zone: Europe/Berlin\nmemory_dir: .\n");
    root.write("MEMORY.md", NOTES);
    write_file(&settings(&root), SETTINGS);
    root.run_with_digest(&["compact"]).ok();
    let index = root.read("MEMORY.md");
    assert!(index.contains("<!-- memoird:begin -->"), "{index}");
    init(&root);
    root.run_with_digest(&["compact"]).ok();
    let text = root.read("MEMORY.md");
    assert!(!text.contains("<!-- memoird:begin -->") && text.starts_with(NOTES), "{text}");
    assert!(block(&root).contains("Never push"), "{text}");
}

#[test]
fn saved_sessions_in_the_logs_are_read_with_their_speakers() {
    let root = workspace("saved");
    root.write(
        "memory/2026-04-11-1830.md",
        "# Session: 2026-04-11 18:30:11 Europe/Berlin\n\n- **Session Key**: agent:main:main\n- **Session ID**: \
         5f1c\n- **Source**: webchat\n\n## Conversation Summary\n\nuser: \"Always use metric units in the tide \
         reports.\\nWe chose \\\"ZH\\\" for Brest.\"\nassistant: \"Understood.\"\n",
    );
    init(&root);
    root.run_with_digest(&["compact"]).ok();
    let wisdom = root.read("WISDOM.md");
    assert!(wisdom.contains("- Always use metric units in the tide reports"), "{wisdom}");
    assert!(!wisdom.contains("\\n") && !wisdom.contains("\"Always"), "{wisdom}");
    assert!(!wisdom.contains("Understood") && !wisdom.contains("webchat"), "{wisdom}");
}

/// Writes a database as `OpenClaw` does, with a session in this folder.
fn write_database(root: &Root, key: &str, id: &str, words: &str) {
    let path = root.home(".openclaw/agents/main/agent/openclaw-agent.sqlite");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let conn = rusqlite::Connection::open(path).unwrap();
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);
         CREATE TABLE IF NOT EXISTS transcript_events (session_id TEXT, seq INTEGER, event_json TEXT,
           created_at INTEGER, event_zstd BLOB, PRIMARY KEY (session_id, seq));",
    )
    .unwrap();
    conn.execute("INSERT INTO session_windows VALUES (?1, ?2)", [id, key]).unwrap();
    let at = "2026-04-10T08:00:00.000Z";
    let ms = 1_775_808_000_000_i64;
    let long = "so that the tables stay sorted ".repeat(60);
    let message = |id: &str, parent: &str, message: serde_json::Value| json!({"type": "message", "id": id, "parentId": parent, "timestamp": at, "message": message});
    let events = [
        json!({"type": "session", "version": 4, "id": id, "timestamp": at, "cwd": root.path("")}),
        message("a", "", json!({"role": "user", "content": words})),
        message(
            "b",
            "a",
            json!({"role": "assistant", "content": [
            {"type": "text", "text": format!("We decided to name files by datum, {long}.")}]}),
        ),
    ];
    for (seq, event) in events.iter().enumerate() {
        let text = event.to_string();
        // Long events are compressed.
        let (plain, packed) = if text.len() > 1024 {
            (None, Some(zstd::bulk::compress(text.as_bytes(), 1).unwrap()))
        } else {
            (Some(text), None)
        };
        let seq = i64::try_from(seq).unwrap();
        conn.execute(
            "INSERT INTO transcript_events VALUES (?1, ?2, ?3, ?4, ?5)",
            rusqlite::params![id, seq, plain, ms, packed],
        )
        .unwrap();
    }
}

#[test]
fn sessions_are_imported_from_the_database_once() {
    let root = workspace("import");
    init(&root);
    write_database(&root, "agent:main:main", "s-1", "Import the Brest table");
    write_database(&root, "agent:main:subagent:2", "s-2", "Review the Brest table");
    let path = root.home(".openclaw/agents");
    let import = ["import", "openclaw", path.to_str().unwrap(), "--yes", "--json"];
    let report = root.run(&import).ok().json();
    assert_eq!(report["kept"], 1, "{report}");
    let states: Vec<_> =
        report["sessions"].as_array().unwrap().iter().map(|it| it["state"].clone()).collect();
    assert_eq!(states, ["new", "subagent"]);
    let log = root.read("memory/2026-04-10.md");
    assert!(log.contains("Session in import: Import the Brest table ["), "{log}");
    assert!(log.contains("We decided to name files by datum"), "{log}");
    assert_eq!(root.run(&import).ok().json()["kept"], 0);

    let database = root.home(".openclaw/agents/main/agent/openclaw-agent.sqlite");
    let session = format!("{}#s-1", database.display());
    let shown = root.run(&["session", "compact", &session, "--dry-run"]).ok().to_string();
    assert!(shown.contains("Brest"), "{shown}");
    let gone = root.run(&["session", "compact", &format!("{session}0")]);
    assert!(gone.code != 0 && gone.stderr.contains("no session `s-10`"), "{gone}");
}
