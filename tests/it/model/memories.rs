//! Typed memories of a model: bad ones beside good ones, and such as say an older one anew.

use serde_json::{Value, json};

use super::{
    Desk, Wire,
    replies::{MEMORY, extract, memory},
};
use crate::support::{
    Ran,
    server::{Asked, Ends, Server},
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

/// A memory with one field in other words.
fn with(mut memory: Value, key: &str, value: Value) -> Value {
    memory[key] = value;
    memory
}

/// Returns what `review` lists.
fn listed(desk: &Desk) -> Vec<Value> {
    desk.run(&["review", "--json"]).ok().json_as("review")["items"].as_array().unwrap().clone()
}

#[test]
fn a_bad_memory_takes_no_good_one_with_it() {
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
            let (desk, ran) = extract(wire, &[reply(&[memory(), bad.clone()])]);
            assert_eq!((ran.code, desk.server.count()), (0, 2), "{bad} {ran}");
            let turns = desk.server.requests()[1].turns();
            assert!(turns[2].contains("memory 2: ") && turns[2].contains(why), "{}", turns[2]);
            assert!(!turns[2].contains("memory 1"), "{}", turns[2]);
            let files = desk.root.files();
            assert!(files.contains_key(MEMORY) && !files.contains_key(IMPORTER), "{ran}");
            let job = &ran.json()["jobs"][0];
            assert_eq!((&job["items"], &job["rejected"]), (&json!(1), &json!(1)), "{ran}");
            let items = listed(&desk);
            assert_eq!(items.len(), 1, "{items:?}");
            assert!(items[0]["why"][0].as_str().unwrap().contains(why), "{items:?}");
            assert_eq!(items[0]["source_lines"][0]["address"], "2026-04-07:3");
            // What could not be read is there as it came.
            let said = items[0]["text"].as_str().unwrap();
            assert!(
                said.contains(if bad == &invented { "77 tables" } else { "\"topic\"" }),
                "{said}"
            );
            // The day is done: nobody is asked again, and nothing is lost.
            desk.run(&["compact", "extract"]).ok();
            assert_eq!((desk.server.count(), listed(&desk).len()), (2, 1));
        }
    }
}

#[test]
fn bad_memories_are_mended_all_at_once() {
    let odd = with(memory(), "citations", json!("the fifth line"));
    let invented = with(importer(), "statement", json!("The importer has 77 tables."));
    for second in [vec![memory(), importer()], vec![importer(), memory(), importer()]] {
        let replies = [reply(&[odd.clone(), invented.clone()]), reply(&second)];
        let (desk, ran) = extract(Wire::Anthropic, &replies);
        assert_eq!((ran.code, desk.server.count()), (0, 2), "{ran}");
        let turns = desk.server.requests()[1].turns();
        assert!(turns[2].contains("memory 1: ") && turns[2].contains("memory 2: "), "{}", turns[2]);
        let files = desk.root.files();
        assert!(files.contains_key(MEMORY) && files.contains_key(IMPORTER), "{ran}");
        assert_eq!(files.keys().filter(|it| it.contains("-2.md")).count(), 0, "{ran}");
        assert_eq!((&ran.json()["jobs"][0]["rejected"], listed(&desk).len()), (&json!(0), 0));
    }
}

#[test]
fn good_memories_stand_though_the_repair_says_nothing() {
    let bad = with(importer(), "type", json!(7));
    for second in ["Sorry.", "{}", "", "{\"memories\": []}"] {
        let replies = [reply(&[memory(), bad.clone()]), second.to_owned()];
        let (desk, ran) = extract(Wire::Openai, &replies);
        assert_eq!((ran.code, desk.server.count()), (0, 2), "{second} {ran}");
        assert!(desk.root.files().contains_key(MEMORY), "{second} {ran}");
        assert_eq!(listed(&desk).len(), 1, "{second} {ran}");
    }
}

/// The newer day.
const LATER: &str = "memory/2026-04-08.md";

/// What the newer day says of replies.
const GERMAN: &str = "- Alice wants her short replies in German from now on\n";

/// What a model makes of it.
fn german(updates: Value) -> Value {
    let statement = "Alice wants her short replies in German.";
    let german = with(memory(), "statement", json!(statement));
    let german = with(german, "citations", json!("2026-04-07:5; 2026-04-08:1"));
    with(with(german, "topic", json!("language")), "updates", updates)
}

/// A desk with a memory of one day, and then the log of the next one.
fn two_days(second: Vec<Value>) -> Desk {
    let mut at = 0;
    let server = Server::answering(move |asked: &Asked| {
        at += 1;
        let said = if at == 1 { memory() } else { second[(at - 2).min(second.len() - 1)].clone() };
        asked.saying(&reply(&[said]), Ends::Well)
    });
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.run(&["compact", "extract"]).ok();
    desk.root.write(LATER, GERMAN);
    desk
}

fn extract_again(desk: &Desk) -> Ran {
    desk.run(&["compact", "extract", "--json"]).ok()
}

/// Returns the names of the typed memories.
fn memories(desk: &Desk) -> Vec<String> {
    desk.root.files().into_keys().filter(|it| it.contains("user_")).collect()
}

#[test]
fn a_memory_that_is_named_is_said_anew() {
    for name in ["user_reply-style", "Alice likes short replies"] {
        let desk = two_days(vec![german(json!(name))]);
        let old = desk.root.read(MEMORY);
        let ran = extract_again(&desk);
        assert_eq!(desk.server.count(), 2, "{ran}");
        let asked = desk.server.requests()[1].turns()[0].clone();
        for words in [
            "- user_reply-style | Alice likes short replies: How long",
            "  says: Alice prefers short replies in the morning. [2026-04-07:5]",
        ] {
            assert!(asked.contains(words), "{asked}");
        }
        assert_eq!(memories(&desk), [MEMORY], "{ran}");
        let new = desk.root.read(MEMORY);
        assert!(new.contains("short replies in German.") && !new.contains("morning"), "{new}");
        for line in ["created: 2026-04-07", "updated: 2026-04-08", "2026-04-07:5#", "2026-04-08:1#"]
        {
            assert!(new.contains(line), "{line} {new}");
        }
        let history = desk.run(&["history", MEMORY, "--json"]).ok().json_as("history");
        let versions = history["versions"].as_array().unwrap();
        assert_eq!(versions.len(), 2, "{history:#}");
        let oldest = versions.iter().filter_map(|it| it["version"].as_i64()).min().unwrap();
        let first = desk.run(&["show", MEMORY, "--version", &oldest.to_string()]).ok();
        assert!(first.stdout.contains("short replies in the morning"), "{first}");
        desk.run(&["undo", "--yes"]).ok();
        assert_eq!(desk.root.read(MEMORY), old);
        desk.run(&["doctor"]).ok();
    }
}

#[test]
fn a_memory_of_the_same_name_is_told_of_and_then_merged() {
    let same = with(german(Value::Null), "topic", json!("reply style"));
    let desk = two_days(vec![same]);
    let ran = extract_again(&desk);
    assert_eq!(desk.server.count(), 3, "{ran}");
    let turns = desk.server.requests()[2].turns();
    assert!(turns[2].contains("a memory `user_reply-style` exists"), "{}", turns[2]);
    // Named or not, it is not written beside the other one.
    assert_eq!((memories(&desk), listed(&desk).len()), (vec![MEMORY.to_owned()], 0), "{ran}");
    assert!(desk.root.read(MEMORY).contains("in German"));
}

#[test]
fn an_older_day_does_not_take_a_newer_ones_place() {
    let desk = two_days(vec![german(json!("user_reply-style"))]);
    extract_again(&desk);
    let new = desk.root.read(MEMORY);
    desk.root
        .write("memory/2026-04-06.md", "- Alice wants her short replies in German, on paper\n");
    let ran = desk.run(&["compact", "extract", "--json"]).ok();
    assert_eq!((desk.root.read(MEMORY), memories(&desk).len()), (new, 1), "{ran}");
}

#[test]
fn a_persons_memory_changes_by_their_word_alone() {
    let desk = two_days(vec![german(json!("user_reply-style"))]);
    let own = desk.root.read(MEMORY).replace("in the morning", "before ten");
    desk.root.write(MEMORY, &own);
    extract_again(&desk);
    assert_eq!((desk.root.read(MEMORY), memories(&desk).len()), (own, 1));
    let items = listed(&desk);
    assert_eq!(items.len(), 1, "{items:?}");
    assert!(items[0]["text"].as_str().unwrap().contains("in German"), "{items:?}");
    assert!(items[0].to_string().contains("a newer line says more about it"), "{items:?}");
    desk.run(&["review", "accept", items[0]["id"].as_str().unwrap()]).ok();
    assert!(desk.root.read(MEMORY).contains("in German"));
}

#[test]
fn a_line_that_was_not_shown_carries_no_memory() {
    let far = with(memory(), "citations", json!("2026-04-07:5; 2026-01-01:1"));
    let (desk, ran) = extract(Wire::Anthropic, &[reply(&[far]), reply(&[memory()])]);
    assert_eq!((ran.code, desk.server.count()), (0, 2), "{ran}");
    assert!(desk.server.requests()[1].turns()[2].contains("2026-01-01:1 was not shown"));
    assert!(desk.root.files().contains_key(MEMORY));
}

#[test]
fn a_secret_of_a_persons_memory_is_not_sent() {
    let secret = "AKIAIOSFODNN7EXAMPL2";
    let server = Server::answering(|asked| asked.saying(&reply(&[]), Ends::Well));
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write(
        MEMORY,
        &format!(
            "---\nname: Alice prefers short replies\ndescription: The bucket is {secret}\ntype: user\n\
             ---\nIn the morning replies prefers {secret}\n"
        ),
    );
    desk.run(&["compact", "extract"]).ok();
    let sent = desk.server.requests()[0].body.to_string();
    assert!(sent.contains("user_reply-style | Alice") && sent.contains("says: "), "{sent}");
    assert!(!sent.contains(secret), "{sent}");
}

#[test]
fn a_name_that_spells_a_secret_is_not_sent() {
    let server = Server::answering(|asked: &Asked| {
        let said = asked.turns().remove(0);
        let name = said.lines().filter_map(|it| it.strip_prefix("- ")?.split_once(" | "));
        let name = name.map(|it| it.0).find(|it| it.starts_with("user_")).unwrap_or_default();
        let door = json!({
            "type": "user", "topic": "lab door", "name": "The lab door",
            "description": "How the door opens",
            "statement": "The lab door opens with a card.", "why": null, "how_to_apply": null,
            "citations": "2026-04-08:1", "updates": name,
        });
        asked.saying(&reply(&[door]), Ends::Well)
    });
    let mut desk = Desk::new(Wire::Anthropic, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-04-07.md", "- I prefer the code LAB-4711-XYZ for the lab door.\n");
    desk.run(&["--set", "engine=extractive", "compact"]).ok();
    let named = |desk: &Desk| {
        let names = desk.root.files().into_keys();
        names.filter(|it| it.contains("lab-4711")).collect::<Vec<_>>()
    };
    let old = named(&desk);
    assert_eq!(old.len(), 1, "{:?}", desk.root.files().keys());
    // The kind becomes known, and the words are taken out of the file; its name stands.
    desk.root.write("../.config/memoird/secrets.yaml", DOOR_CODES);
    desk.root.write("memory/2026-04-08.md", "- The lab door opens with a card now.\n");
    let ran = desk.run(&["compact", "extract", "--json"]).ok();
    assert!(desk.server.count() > 0, "{ran}");
    for asked in desk.server.requests() {
        let sent = asked.body.to_string().to_lowercase();
        assert!(sent.contains("user_unnamed-") && !sent.contains("4711"), "{sent}");
    }
    // What the model calls it is understood.
    assert_eq!(named(&desk), old);
    assert!(desk.root.read(&old[0]).contains("opens with a card"), "{ran}");
}

#[test]
fn a_persons_name_that_spells_a_secret_of_a_log_is_not_sent() {
    let server = Server::answering(|asked: &Asked| asked.saying(&reply(&[]), Ends::Well));
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("../.config/memoird/secrets.yaml", DOOR_CODES);
    desk.root.write(
        "memory/user_lab-4711-xyz.md",
        "---\nname: The lab door\ndescription: How it opens\ntype: user\n---\nWith a code.\n",
    );
    desk.root.write("memory/2026-04-07.md", "- The lab door opens with LAB-4711-XYZ.\n");
    desk.run(&["compact", "extract"]).ok();
    let sent = desk.server.requests()[0].body.to_string().to_lowercase();
    assert!(sent.contains("user_unnamed-") && !sent.contains("4711"), "{sent}");
}

#[test]
fn a_log_that_cannot_be_read_keeps_no_other_day_from_its_model() {
    let desk = two_days(vec![german(json!("user_reply-style"))]);
    // The log of the memory is now a file with two names, which nobody reads.
    std::fs::hard_link(desk.root.path("memory/2026-04-07.md"), desk.root.home("copy")).unwrap();
    let ran = desk.run(&["compact", "extract", "--json"]);
    assert!(desk.server.requests()[1].turns()[0].contains("in German from now on"), "{ran}");
    assert_eq!((ran.code, &ran.json()["failed"]), (0, &json!(0)), "{ran}");
}

/// A kind that no rule of the program knows.
const DOOR_CODES: &str = "rules:\n  - id: door-code\n    keywords: [lab-]\n    regex: '\\b(LAB-[0-9]{4}-[A-Z]{3})\\b'\n    examples: { secret: ['LAB-1234-ABC'], clean: ['LAB-1'] }\n";
