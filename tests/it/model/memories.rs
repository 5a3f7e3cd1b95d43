//! Typed memories from a model: bad ones beside good ones, and ones that update an older memory.

use serde_json::{Value, json};

use super::{
    Wire, Workspace,
    replies::{MEMORY, extract, memory},
};
use crate::support::{
    CommandOutput,
    server::{ModelRequest, Server, StopReason},
};

/// Returns a reply with these memories.
fn reply(memories: &[Value]) -> String {
    json!({ "memories": memories }).to_string()
}

/// A second memory of the day.
fn importer() -> Value {
    json!({
        "type": "project", "topic": "importer store", "name": "The importer uses SQLite",
        "description": "Where the importer keeps its rows",
        "statement": "Moved the importer to SQLite, since a crash then loses at most one row.",
        "why": null, "how_to_apply": null, "citations": "2026-04-07:3", "updates": null,
    })
}

const IMPORTER: &str = "memory/project_importer-store.md";

/// Returns the memory with another value in one field.
fn with(mut memory: Value, key: &str, value: Value) -> Value {
    memory[key] = value;
    memory
}

/// Returns the items that `review` lists.
fn review_items(workspace: &Workspace) -> Vec<Value> {
    workspace.run(&["review", "--json"]).ok().json_as("review")["items"].as_array().unwrap().clone()
}

#[test]
fn a_bad_memory_does_not_drop_a_good_one() {
    let odd = with(importer(), "type", json!("instruction"));
    let invented = with(importer(), "statement", json!("The importer has 77 tables."));
    let long = with(importer(), "name", json!("n".repeat(121)));
    let more = with(importer(), "trust", json!("human"));
    for wire in Wire::BOTH {
        for (bad, why) in [
            (&odd, "`type` must be one of"),
            (&invented, "`77` is in none of the cited lines"),
            (&long, "`name` is over 120 characters"),
            (&more, "unknown field `trust`"),
        ] {
            let (workspace, ran) = extract(wire, &[reply(&[memory(), bad.clone()])]);
            assert_eq!((ran.code, workspace.server.count()), (0, 2), "{bad} {ran}");
            let turns = workspace.server.requests()[1].turns();
            assert!(turns[2].contains("memory 2: ") && turns[2].contains(why), "{}", turns[2]);
            assert!(!turns[2].contains("memory 1"), "{}", turns[2]);
            let files = workspace.root.files();
            assert!(files.contains_key(MEMORY) && !files.contains_key(IMPORTER), "{ran}");
            let job = &ran.json()["jobs"][0];
            assert_eq!((&job["items"], &job["rejected"]), (&json!(1), &json!(1)), "{ran}");
            let items = review_items(&workspace);
            assert_eq!(items.len(), 1, "{items:?}");
            assert!(items[0]["why"][0].as_str().unwrap().contains(why), "{items:?}");
            assert_eq!(items[0]["source_lines"][0]["address"], "2026-04-07:3");
            // A memory that could not be read is listed as the model wrote it.
            let text = items[0]["text"].as_str().unwrap();
            assert!(
                text.contains(if bad == &invented { "77 tables" } else { "\"topic\"" }),
                "{text}"
            );
            // The day is done: there is no further request, and the item stays listed.
            workspace.run(&["compact", "extract"]).ok();
            assert_eq!((workspace.server.count(), review_items(&workspace).len()), (2, 1));
        }
    }
}

#[test]
fn bad_memories_are_repaired_in_one_request() {
    let odd = with(memory(), "citations", json!("the fifth line"));
    let invented = with(importer(), "statement", json!("The importer has 77 tables."));
    for second in [vec![memory(), importer()], vec![importer(), memory(), importer()]] {
        let replies = [reply(&[odd.clone(), invented.clone()]), reply(&second)];
        let (workspace, ran) = extract(Wire::Anthropic, &replies);
        assert_eq!((ran.code, workspace.server.count()), (0, 2), "{ran}");
        let turns = workspace.server.requests()[1].turns();
        assert!(turns[2].contains("memory 1: ") && turns[2].contains("memory 2: "), "{}", turns[2]);
        let files = workspace.root.files();
        assert!(files.contains_key(MEMORY) && files.contains_key(IMPORTER), "{ran}");
        assert_eq!(files.keys().filter(|it| it.contains("-2.md")).count(), 0, "{ran}");
        assert_eq!(
            (&ran.json()["jobs"][0]["rejected"], review_items(&workspace).len()),
            (&json!(0), 0)
        );
    }
}

#[test]
fn good_memories_are_written_even_if_the_repair_is_empty() {
    let bad = with(importer(), "type", json!(7));
    for second in ["Sorry.", "{}", "", "{\"memories\": []}"] {
        let replies = [reply(&[memory(), bad.clone()]), second.to_owned()];
        let (workspace, ran) = extract(Wire::Openai, &replies);
        assert_eq!((ran.code, workspace.server.count()), (0, 2), "{second} {ran}");
        assert!(workspace.root.files().contains_key(MEMORY), "{second} {ran}");
        assert_eq!(review_items(&workspace).len(), 1, "{second} {ran}");
    }
}

/// The newer day.
const LATER: &str = "memory/2026-04-08.md";

/// A newer statement about replies.
const GERMAN: &str = "- Alice wants her short replies in German from now on\n";

/// The memory that a model extracts from it.
fn german(updates: Value) -> Value {
    let statement = "Alice wants her short replies in German.";
    let german = with(memory(), "statement", json!(statement));
    let german = with(german, "citations", json!("2026-04-07:5; 2026-04-08:1"));
    with(with(german, "topic", json!("language")), "updates", updates)
}

/// Returns a workspace with the memory of one day and, not yet extracted, the log of the next.
fn two_days(second: Vec<Value>) -> Workspace {
    let mut at = 0;
    let server = Server::answering(move |request: &ModelRequest| {
        at += 1;
        let memory =
            if at == 1 { memory() } else { second[(at - 2).min(second.len() - 1)].clone() };
        request.reply_with(&reply(&[memory]), StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.run(&["compact", "extract"]).ok();
    workspace.root.write(LATER, GERMAN);
    workspace
}

fn extract_again(workspace: &Workspace) -> CommandOutput {
    workspace.run(&["compact", "extract", "--json"]).ok()
}

/// Returns the names of the typed memories.
fn memories(workspace: &Workspace) -> Vec<String> {
    workspace.root.typed_memories()
}

#[test]
fn a_memory_named_in_updates_is_rewritten() {
    for name in ["user_reply-style", "Alice likes short replies"] {
        let workspace = two_days(vec![german(json!(name))]);
        let old = workspace.root.read(MEMORY);
        let ran = extract_again(&workspace);
        assert_eq!(workspace.server.count(), 2, "{ran}");
        let prompt = workspace.server.requests()[1].turns()[0].clone();
        for words in [
            "- user_reply-style | Alice likes short replies: How long",
            "  says: Alice prefers short replies in the morning. [2026-04-07:5]",
        ] {
            assert!(prompt.contains(words), "{prompt}");
        }
        assert_eq!(memories(&workspace), [MEMORY], "{ran}");
        let new = workspace.root.read(MEMORY);
        assert!(new.contains("short replies in German.") && !new.contains("morning"), "{new}");
        let record = workspace.root.read_record(MEMORY);
        for value in [
            "\"created\": \"2026-04-07\"",
            "\"updated\": \"2026-04-08\"",
            "2026-04-07:5#",
            "2026-04-08:1#",
        ] {
            assert!(record.contains(value), "{value} {record}");
        }
        let history = workspace.run(&["history", MEMORY, "--json"]).ok().json_as("history");
        let versions = history["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 2, "{history:#}");
        let oldest = versions.iter().filter_map(|it| it["version"].as_i64()).min().unwrap();
        let first = workspace.run(&["show", MEMORY, "--version", &oldest.to_string()]).ok();
        assert!(first.stdout.contains("short replies in the morning"), "{first}");
        workspace.run(&["undo", "--yes"]).ok();
        assert_eq!(workspace.root.read(MEMORY), old);
        workspace.run(&["doctor"]).ok();
    }
}

#[test]
fn a_memory_of_the_same_name_is_reported_and_then_merged() {
    let same = with(german(Value::Null), "topic", json!("reply style"));
    let workspace = two_days(vec![same]);
    let ran = extract_again(&workspace);
    assert_eq!(workspace.server.count(), 3, "{ran}");
    let turns = workspace.server.requests()[2].turns();
    assert!(turns[2].contains("a memory `user_reply-style` exists"), "{}", turns[2]);
    // Even without `updates` there is no second memory of the same name.
    assert_eq!(
        (memories(&workspace), review_items(&workspace).len()),
        (vec![MEMORY.to_owned()], 0),
        "{ran}"
    );
    assert!(workspace.root.read(MEMORY).contains("in German"));
}

#[test]
fn an_older_day_does_not_replace_a_newer_memory() {
    let workspace = two_days(vec![german(json!("user_reply-style"))]);
    extract_again(&workspace);
    let new = workspace.root.read(MEMORY);
    workspace
        .root
        .write("memory/2026-04-06.md", "- Alice wants her short replies in German, on paper\n");
    let ran = workspace.run(&["compact", "extract", "--json"]).ok();
    assert_eq!((workspace.root.read(MEMORY), memories(&workspace).len()), (new, 1), "{ran}");
}

#[test]
fn a_user_edited_memory_changes_only_after_review() {
    let workspace = two_days(vec![german(json!("user_reply-style"))]);
    let own = workspace.root.read(MEMORY).replace("in the morning", "before ten");
    workspace.root.write(MEMORY, &own);
    extract_again(&workspace);
    assert_eq!((workspace.root.read(MEMORY), memories(&workspace).len()), (own, 1));
    let items = review_items(&workspace);
    assert_eq!(items.len(), 1, "{items:?}");
    assert!(items[0]["text"].as_str().unwrap().contains("in German"), "{items:?}");
    assert!(items[0].to_string().contains("a newer line says more about it"), "{items:?}");
    workspace.run(&["review", "accept", items[0]["id"].as_str().unwrap()]).ok();
    assert!(workspace.root.read(MEMORY).contains("in German"));
}

#[test]
fn a_memory_may_not_cite_a_line_that_was_not_shown() {
    let far = with(memory(), "citations", json!("2026-04-07:5; 2026-01-01:1"));
    let (workspace, ran) = extract(Wire::Anthropic, &[reply(&[far]), reply(&[memory()])]);
    assert_eq!((ran.code, workspace.server.count()), (0, 2), "{ran}");
    assert!(workspace.server.requests()[1].turns()[2].contains("2026-01-01:1 was not shown"));
    assert!(workspace.root.files().contains_key(MEMORY));
}

#[test]
fn a_secret_in_a_user_written_memory_is_not_sent() {
    let secret = "AKIAIOSFODNN7EXAMPL2";
    let server = Server::answering(|request| request.reply_with(&reply(&[]), StopReason::Complete));
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write(
        MEMORY,
        &format!(
            "---\nname: Alice prefers short replies\ndescription: The bucket is {secret}\ntype: user\n\
             ---\nIn the morning replies prefers {secret}\n"
        ),
    );
    workspace.run(&["compact", "extract"]).ok();
    let sent = workspace.server.requests()[0].body.to_string();
    assert!(sent.contains("user_reply-style | Alice") && sent.contains("says: "), "{sent}");
    assert!(!sent.contains(secret), "{sent}");
}

#[test]
fn a_memory_name_containing_a_secret_is_not_sent() {
    let server = Server::answering(|request: &ModelRequest| {
        let prompt = request.turns().remove(0);
        let name = prompt.lines().filter_map(|it| it.strip_prefix("- ")?.split_once(" | "));
        let name = name.map(|it| it.0).find(|it| it.starts_with("user_")).unwrap_or_default();
        let door = json!({
            "type": "user", "topic": "lab door", "name": "The lab door",
            "description": "How the door opens",
            "statement": "The lab door opens with a card.", "why": null, "how_to_apply": null,
            "citations": "2026-04-08:1", "updates": name,
        });
        request.reply_with(&reply(&[door]), StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Anthropic, server);
    workspace.set("/compaction/extract", json!(true));
    workspace
        .root
        .write("memory/2026-04-07.md", "- I prefer the code LAB-4711-XYZ for the lab door.\n");
    workspace.run(&["--set", "engine=extractive", "compact"]).ok();
    let files_with_code = |workspace: &Workspace| {
        let names = workspace.root.typed_memories().into_iter();
        names.filter(|it| it.contains("lab-4711")).collect::<Vec<_>>()
    };
    let old = files_with_code(&workspace);
    assert_eq!(old.len(), 1, "{:?}", workspace.root.files().keys());
    // A new rule makes the code a secret: it is masked in the file, but the file name stays.
    workspace.root.write("../.config/memoird/secrets.yaml", DOOR_CODES);
    workspace.root.write("memory/2026-04-08.md", "- The lab door opens with a card now.\n");
    let ran = workspace.run(&["compact", "extract", "--json"]).ok();
    assert!(workspace.server.count() > 0, "{ran}");
    for request in workspace.server.requests() {
        let sent = request.body.to_string().to_lowercase();
        assert!(sent.contains("user_unnamed-") && !sent.contains("4711"), "{sent}");
    }
    // The placeholder name that the model returns is resolved to the file.
    assert_eq!(files_with_code(&workspace), old);
    assert!(workspace.root.read(&old[0]).contains("opens with a card"), "{ran}");
}

#[test]
fn a_user_given_name_matching_a_secret_in_a_log_is_not_sent() {
    let server = Server::answering(|request: &ModelRequest| {
        request.reply_with(&reply(&[]), StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("../.config/memoird/secrets.yaml", DOOR_CODES);
    workspace.root.write(
        "memory/user_lab-4711-xyz.md",
        "---\nname: The lab door\ndescription: How it opens\ntype: user\n---\nWith a code.\n",
    );
    workspace.root.write("memory/2026-04-07.md", "- The lab door opens with LAB-4711-XYZ.\n");
    workspace.run(&["compact", "extract"]).ok();
    let sent = workspace.server.requests()[0].body.to_string().to_lowercase();
    assert!(sent.contains("user_unnamed-") && !sent.contains("4711"), "{sent}");
}

#[test]
fn an_unreadable_log_does_not_block_other_days() {
    let workspace = two_days(vec![german(json!("user_reply-style"))]);
    // The log of the memory now has a second hard link, so it is not read.
    std::fs::hard_link(workspace.root.path("memory/2026-04-07.md"), workspace.root.home("copy"))
        .unwrap();
    let ran = workspace.run(&["compact", "extract", "--json"]);
    assert!(workspace.server.requests()[1].turns()[0].contains("in German from now on"), "{ran}");
    assert_eq!((ran.code, &ran.json()["failed"]), (0, &json!(0)), "{ran}");
}

/// A secret rule that the program does not have.
const DOOR_CODES: &str = "rules:\n  - id: door-code\n    keywords: [lab-]\n    regex: '\\b(LAB-[0-9]{4}-[A-Z]{3})\\b'\n    examples: { secret: ['LAB-1234-ABC'], clean: ['LAB-1'] }\n";
