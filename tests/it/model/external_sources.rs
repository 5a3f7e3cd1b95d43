//! Memories that a model extracts from external text are quarantined until a person decides.

use serde_json::json;

use super::{Wire, Workspace};
use crate::support::server::{Server, StopReason, valid_reply};

const DAY: &str = "memory/2026-04-07.md";

#[test]
fn quarantined_memories_stay_so_after_the_database_is_lost() {
    let statement = json!({
        "kind": "decision", "topic": "Parser", "text": "Decided to keep the parser in Rust.",
        "citations": "2026-04-07:3", "replaces": null,
    });
    let statements = json!({ "statements": [statement] }).to_string();
    let server = Server::answering(move |request| {
        let is_of_days = request.system().contains("{\"statements\":");
        request.reply_with(
            &if is_of_days { statements.clone() } else { valid_reply(request) },
            StopReason::Complete,
        )
    });
    let mut workspace = Workspace::new(Wire::Anthropic, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write(
        DAY,
        "# Notes\n\n> Decided to keep the parser in Rust\n\n- Moved the importer to SQLite\n",
    );
    let quarantined = |workspace: &Workspace| {
        let items = workspace.run(&["review", "--json"]).ok().json_as("review")["items"].clone();
        items.as_array().unwrap().iter().map(|it| it["line"].clone()).collect::<Vec<_>>()
    };
    workspace.run(&["compact"]).ok();
    assert_eq!(quarantined(&workspace), [3]);
    std::fs::remove_dir_all(workspace.root.path(".memoird")).unwrap();
    workspace.run(&["compact"]).ok();
    assert_eq!(quarantined(&workspace), [3]);
    // A new database knows the decision of the review, too.
    workspace.run(&["review", "refuse", "--all"]).ok();
    std::fs::remove_dir_all(workspace.root.path(".memoird")).unwrap();
    workspace.run(&["compact"]).ok();
    assert!(quarantined(&workspace).is_empty());
}
