//! Many servers at once, beside compaction runs and a daemon.

use std::fs;

use serde_json::{Value, json};

use super::Client;
use crate::{run::Daemon, support::Root};

/// Returns the path and text of each search hit.
fn search_hits(client: &mut Client, query: &str) -> Vec<(String, String)> {
    let answer = client.call_ok("memory_search", &json!({ "query": query }));
    let text = |it: &Value| it.as_str().unwrap().to_owned();
    let hits = answer["hits"].as_array().unwrap().iter();
    hits.map(|it| (text(&it["path"]), text(&it["text"]))).collect()
}

#[test]
fn many_servers_log_and_search_during_a_compaction_run() {
    const SERVERS: usize = 8;
    const ENTRIES: usize = 6;
    let root = Root::new("mara");
    let mut clients: Vec<Client> = (0..SERVERS).map(|_| Client::new(&root, &[])).collect();
    std::thread::scope(|scope| {
        let compaction = scope.spawn(|| root.run(&["compact"]));
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for entry in 0..ENTRIES {
                    let text = format!("agent {number} did task {entry}");
                    client.call_ok("memory_log", &json!({ "text": text }));
                    client.call_ok("memory_search", &json!({ "query": "task" }));
                    client.call_ok("memory_status", &json!({}));
                }
            });
        }
        compaction.join().unwrap().ok();
    });
    let log = root.read("memory/2026-04-13.md");
    for number in 0..SERVERS {
        for entry in 0..ENTRIES {
            let text = format!("agent {number} did task {entry}");
            assert_eq!(log.matches(&text).count(), 1, "{text}\n{log}");
        }
    }
    let found = clients[0].call_ok("memory_search", &json!({ "query": "agent task", "limit": 50 }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 48);
    root.run(&["doctor"]).ok();
}

#[test]
fn many_servers_work_beside_one_daemon() {
    const SERVERS: usize = 6;
    let root = Root::new("mara");
    let mut daemon = Daemon::spawn(&root, "2026-04-13T09:00:00+02:00", &[]);
    let mut clients: Vec<Client> = (0..SERVERS).map(|_| Client::new(&root, &[])).collect();
    std::thread::scope(|scope| {
        for (number, client) in clients.iter_mut().enumerate() {
            scope.spawn(move || {
                for entry in 0..5 {
                    // A unique word, so that nothing else matches.
                    let word = format!("zebra{number}x{entry}");
                    client.call_ok("memory_log", &json!({ "text": format!("saw {word} today") }));
                    let found = search_hits(client, &word);
                    assert!(found.iter().any(|it| it.1.contains(&word)), "{word}: {found:?}");
                }
            });
        }
    });
    daemon.await_idle();
    for client in &mut clients {
        assert!(!search_hits(client, "zebra0x4").is_empty());
    }
    root.run(&["doctor"]).ok();
}

/// A cached search must not outlive a change.
#[test]
fn a_search_sees_changes_made_since_the_last_one() {
    let root = Root::new("mara");
    root.run(&["compact"]).ok();
    let mut client = Client::new(&root, &[]);
    let mut is_found = |word: &str| {
        // Twice: with a cold and with a warm cache.
        let first = search_hits(&mut client, word);
        assert_eq!(search_hits(&mut client, word), first);
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
    // A change by another process, which also rewrites the weeks.
    root.run(&["forget", "--yes", "clarinet arrived from Kyoto"]).ok();
    assert!(!is_found("clarinet"));
    fs::create_dir_all(root.path("memory/archive/2026")).unwrap();
    fs::rename(root.path("memory/2026-03-02.md"), root.path("memory/archive/2026/2026-03-02.md"))
        .unwrap();
    let found = search_hits(&mut client, "on:2026-03-02");
    assert!(found.iter().all(|it| it.0.contains("archive/2026/")), "{found:?}");
}
