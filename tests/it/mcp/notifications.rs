//! Clients are notified when files change, with both versions of the protocol.

use std::{
    sync::mpsc::{RecvTimeoutError, channel},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Client, compacted_root};

const CHANGED: &str = "notifications/resources/updated";
/// The pause between two changes of a file that is changed until a notification arrives.
const PAUSE: Duration = Duration::from_millis(200);
const LISTED: &str = "notifications/resources/list_changed";

fn uris(answer: &Value) -> Vec<&str> {
    let list = answer["result"]["resources"].as_array().unwrap();
    list.iter().map(|it| it["uri"].as_str().unwrap()).collect()
}

#[test]
fn a_client_with_a_handshake_is_notified_of_changes() {
    let root = compacted_root();
    let mut client = Client::new(&root, &[]);
    let listed = client.request("resources/list", json!({}));
    assert_eq!(
        uris(&listed),
        [
            "memoird://wisdom",
            "memoird://month/2026-03",
            "memoird://week/2026-W11",
            "memoird://week/2026-W10"
        ]
    );
    let week = json!({ "uri": "memoird://week/2026-W10" });
    let done = client.request("resources/subscribe", week.clone());
    assert!(done["result"].is_object(), "{done}");
    // The file watch may start after the answer to the subscription, so the file is changed repeatedly.
    let (stop, stopped) = channel::<()>();
    let path = root.path("memory/weekly/2026-W10.md");
    let text = root.read("memory/weekly/2026-W10.md");
    let writer = std::thread::spawn(move || {
        let mut number = 0;
        // Every write changes the content, so each check sees a change.
        while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            number += 1;
            #[expect(clippy::disallowed_methods, reason = "a file of a test")]
            std::fs::write(&path, format!("{text}- mine {number}\n")).unwrap();
        }
    });
    let notice = client.await_notification(CHANGED);
    assert_eq!(notice["params"]["uri"], "memoird://week/2026-W10");
    drop(stop);
    writer.join().unwrap();
    let done = client.request("resources/unsubscribe", week);
    assert!(done["result"].is_object(), "{done}");
    root.write("memory/weekly/2026-W12.md", "# Mine\n\n- Theirs\n");
    client.await_notification(LISTED);
    let listed = client.request("resources/list", json!({}));
    assert!(uris(&listed).contains(&"memoird://week/2026-W12"));
    let refused =
        client.request("resources/subscribe", json!({ "uri": "memoird://week/2026-W50" }));
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("there are no logs of"),
        "{refused}"
    );
}

#[test]
fn a_stateless_client_gets_the_notifications_it_requested() {
    let root = compacted_root();
    let mut client = Client::stateless(&root, &[]);
    let filter = json!({
        "notifications": { "resourcesListChanged": true, "resourceSubscriptions": ["memoird://wisdom"] },
    });
    let id = client.send("subscriptions/listen", filter);
    let accepted = client.await_notification("notifications/subscriptions/acknowledged");
    assert_eq!(
        accepted["params"]["notifications"]["resourceSubscriptions"],
        json!(["memoird://wisdom"]),
        "{accepted}"
    );
    // Other requests are answered at the same time.
    client.call_ok("memory_status", &json!({}));
    let (stop, stopped) = channel::<()>();
    let (path, text) = (root.path("WISDOM.md"), root.read("WISDOM.md"));
    let writer = std::thread::spawn(move || {
        let mut number = 0;
        while stopped.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            number += 1;
            #[expect(clippy::disallowed_methods, reason = "a file of a test")]
            std::fs::write(&path, format!("{text}\n**Mine {number}**\nSo it is.\n")).unwrap();
        }
    });
    assert_eq!(client.await_notification(CHANGED)["params"]["uri"], "memoird://wisdom");
    drop(stop);
    writer.join().unwrap();
    root.write("memory/monthly/2026-01.md", "# Mine\n\n- Theirs\n");
    client.await_notification(LISTED);
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "enough" }));
    client.call_ok("memory_status", &json!({}));
    let (status, _) = client.close();
    assert!(status.success());
}

#[test]
fn resources_are_listed_in_pages_and_read_by_template() {
    let root = compacted_root();
    for number in 0..130 {
        let (year, week) = (2020 + number / 52, number % 52 + 1);
        root.write(&format!("memory/weekly/{year}-W{week:02}.md"), "# Theirs\n\n- a\n");
    }
    let mut client = Client::new(&root, &[]);
    let mut all = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = client.request("resources/list", json!({ "cursor": cursor }));
        let found: Vec<String> = uris(&page).into_iter().map(str::to_owned).collect();
        assert!(found.len() <= 100);
        all.extend(found);
        cursor = page["result"]["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(all.len(), 134);
    let mut sorted = all[2..].to_vec();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(all[2..], sorted[..], "the newest first");
    let templates = client.request("resources/templates/list", json!({}));
    let templates = templates["result"]["resourceTemplates"].as_array().unwrap().len();
    assert_eq!(templates, 5);
    for (uri, part) in
        [("memoird://day/2026-03-03", "Importer v2"), ("memoird://month/2026-03", "951 million")]
    {
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains(part), "{read}");
    }
    for uri in [
        "memoird://day/..",
        "memoird://week/../../x",
        "file:///etc/passwd",
        "memoird://",
        "memoird://day/%2e%2e",
        "memoird://memory//etc/passwd",
        "memoird://person/wisdom",
    ] {
        let read = client.request("resources/read", json!({ "uri": uri }));
        assert!(
            read["error"]["code"] == -32002 || read["error"]["code"] == -32602,
            "{uri}: {read}"
        );
        assert!(!read.to_string().contains("root:x"), "{read}");
    }
}

#[test]
fn the_prompts_cover_session_start_and_end() {
    let root = compacted_root();
    let mut client = Client::new(&root, &[]);
    let listed = client.request("prompts/list", json!({}));
    let names: Vec<_> = listed["result"]["prompts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["session_start", "session_end"]);
    let text = |client: &mut Client, params: Value| {
        let answer = client.request("prompts/get", params);
        answer["result"]["messages"][0]["content"]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    let start = text(
        &mut client,
        json!({ "name": "session_start", "arguments": { "budget_tokens": "300" } }),
    );
    assert!(
        start.contains("<memoird-context>") && start.contains("Today is 2026-04-13"),
        "{start}"
    );
    assert!(!start.contains("memoird status"), "an agent without a shell: {start}");
    let end =
        text(&mut client, json!({ "name": "session_end", "arguments": { "about": "the pump" } }));
    assert!(end.contains("memory_log") && end.contains("the pump"));
    for params in [
        json!({ "name": "other" }),
        json!({ "name": "session_start", "arguments": { "budget_tokens": "much" } }),
    ] {
        let answer = client.request("prompts/get", params);
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}
