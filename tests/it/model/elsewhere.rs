//! What a model makes of text from elsewhere waits for a person.

use serde_json::json;

use super::{Desk, Wire};
use crate::support::server::{Ends, Server, good};

const DAY: &str = "memory/2026-04-07.md";

#[test]
fn what_waits_does_so_after_the_database_is_lost() {
    let memory = json!({
        "type": "project", "topic": "parser language", "name": "Parser in Rust",
        "description": "What the parser is written in",
        "statement": "Decided to keep the parser in Rust.", "why": null,
        "how_to_apply": null, "citations": "2026-04-07:3",
    });
    let memories = json!({ "memories": [memory] }).to_string();
    let server = Server::answering(move |asked| {
        let is_of_days = asked.system().contains("{\"memories\":");
        asked.saying(&if is_of_days { memories.clone() } else { good(asked) }, Ends::Well)
    });
    let mut desk = Desk::new(Wire::Anthropic, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write(
        DAY,
        "# Notes\n\n> Decided to keep the parser in Rust\n\n- Moved the importer to SQLite\n",
    );
    let waiting = |desk: &Desk| {
        let items = desk.run(&["review", "--json"]).ok().json_as("review")["items"].clone();
        items.as_array().unwrap().iter().map(|it| it["line"].clone()).collect::<Vec<_>>()
    };
    desk.run(&["compact"]).ok();
    assert_eq!(waiting(&desk), [3]);
    std::fs::remove_dir_all(desk.root.path(".memoird")).unwrap();
    desk.run(&["compact"]).ok();
    assert_eq!(waiting(&desk), [3]);
    // What was said of it is known, also to a new database.
    desk.run(&["review", "refuse", "--all"]).ok();
    std::fs::remove_dir_all(desk.root.path(".memoird")).unwrap();
    desk.run(&["compact"]).ok();
    assert!(waiting(&desk).is_empty());
}
