//! Many servers stand beside each other, and beside whoever folds.

use std::fs;

use serde_json::{Value, json};

use super::Client;
use crate::{run::Daemon, support::Root};

/// Returns what is found: path and words of each hit.
fn found(client: &mut Client, query: &str) -> Vec<(String, String)> {
    let found = client.good("memory_search", &json!({ "query": query }));
    let word = |it: &Value| it.as_str().unwrap().to_owned();
    let hits = found["hits"].as_array().unwrap().iter();
    hits.map(|it| (word(&it["path"]), word(&it["text"]))).collect()
}

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

#[test]
fn many_servers_stand_beside_one_daemon() {
    const SERVERS: usize = 6;
    let root = Root::new("mara");
    let mut daemon = Daemon::spawn(&root, "2026-04-13T09:00:00+02:00", &[]);
    let mut clients: Vec<Client> = (0..SERVERS).map(|_| Client::new(&root, &[])).collect();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for entry in 0..5 {
                    // A word of its own, so that nothing else is found by it.
                    let word = format!("zebra{number}x{entry}");
                    client.good("memory_log", &json!({ "text": format!("saw {word} today") }));
                    let found = found(client, &word);
                    assert!(found.iter().any(|it| it.1.contains(&word)), "{word}: {found:?}");
                }
            });
        }
    });
    daemon.await_idle();
    for client in &mut clients {
        assert!(!found(client, "zebra0x4").is_empty());
    }
    root.run(&["doctor"]).ok();
}

/// What a search found out holds for the next one only as long as nothing changes.
#[test]
fn what_changes_between_two_searches_is_known_to_the_second() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let mut client = Client::new(&root, &[]);
    let mut is_found = |word: &str| {
        // Twice: once before and once after it is known that nothing changed.
        let first = found(&mut client, word);
        assert_eq!(found(&mut client, word), first);
        first.iter().any(|it| it.1.contains(word))
    };
    assert!(!is_found("xylophone"));
    root.append("memory/2026-04-02.md", "\n- The xylophone arrived from Kyoto\n");
    assert!(is_found("xylophone"));
    root.write("memory/2026-04-03.md", "- The bassoon stays in Lisbon\n");
    assert!(is_found("bassoon") && is_found("xylophone"));
    fs::remove_file(root.path("memory/2026-04-03.md")).unwrap();
    assert!(!is_found("bassoon"));
    let log = root.read("memory/2026-04-02.md").replace("xylophone", "clarinet");
    root.write("memory/2026-04-02.md", &log);
    assert!(!is_found("xylophone") && is_found("clarinet"));
    // By another process, which hides it and makes weeks anew.
    root.run(&["forget", "--yes", "clarinet arrived from Kyoto"]).ok();
    assert!(!is_found("clarinet"));
    fs::create_dir_all(root.path("memory/archive/2026")).unwrap();
    fs::rename(root.path("memory/2026-03-02.md"), root.path("memory/archive/2026/2026-03-02.md"))
        .unwrap();
    let found = found(&mut client, "on:2026-03-02");
    assert!(found.iter().all(|it| it.0.contains("archive/2026/")), "{found:?}");
}
