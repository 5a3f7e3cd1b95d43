//! Many servers stand beside each other, and beside whoever folds.

use serde_json::json;

use super::Client;
use crate::support::Root;

#[test]
fn many_servers_log_and_search_while_weeks_are_folded() {
    const SERVERS: usize = 8;
    const ENTRIES: usize = 6;
    let root = Root::new("mara");
    let mut clients: Vec<Client> = (0..SERVERS).map(|_| Client::new(&root, &[])).collect();
    std::thread::scope(|scope| {
        let folding = scope.spawn(|| root.run(&["compact"]));
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for entry in 0..ENTRIES {
                    let text = format!("agent {number} did task {entry}");
                    client.good("memory_log", &json!({ "text": text }));
                    client.good("memory_search", &json!({ "query": "task" }));
                    client.good("memory_status", &json!({}));
                }
            });
        }
        folding.join().unwrap().ok();
    });
    let log = root.read("memory/2026-04-13.md");
    for number in 0..SERVERS {
        for entry in 0..ENTRIES {
            let text = format!("agent {number} did task {entry}");
            assert_eq!(log.matches(&text).count(), 1, "{text}\n{log}");
        }
    }
    let found = clients[0].good("memory_search", &json!({ "query": "agent task", "limit": 50 }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 48);
    root.run(&["doctor"]).ok();
}
