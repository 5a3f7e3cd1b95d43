//! A week and the memories of its days in one request.

use serde_json::{Value, json};

use super::{Desk, WEEK, Wire};
use crate::support::server::{Asked, Ends, Server, good};

const LATER: &str = "# Thursday\n\n- Alice prefers short replies in the morning\n\
                     - Decided to keep the archive in Ghent, because the lease runs to 2028\n";

/// A desk with two days in the week; the server says these things to requests for both, in turn.
fn desk(wire: Wire, replies: Vec<(String, Ends)>) -> Desk {
    let mut at = 0;
    let server = Server::answering(move |asked: &Asked| {
        if !asked.is_combined() || replies.is_empty() {
            return asked.saying(&good(asked), Ends::Well);
        }
        let (text, ends) = &replies[at.min(replies.len() - 1)];
        at += 1;
        asked.saying(text, *ends)
    });
    let mut desk = Desk::new(wire, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-04-09.md", LATER);
    desk
}

fn memory(statement: &str, citations: &str) -> Value {
    json!({
        "type": "user", "topic": "reply style", "name": "Alice likes short replies",
        "description": "How long a reply to Alice may be", "statement": statement, "why": null,
        "how_to_apply": null, "citations": citations,
    })
}

const ARCHIVE: &str = "- Decided to keep the archive in Ghent, because the lease runs to 2028";

fn both(memories: &[Value]) -> String {
    let week = format!("### Decisions\n{ARCHIVE} [2026-04-09:4]");
    json!({ "week": week, "memories": memories }).to_string()
}

#[test]
fn one_request_makes_the_week_and_its_days() {
    for wire in Wire::ALL {
        // It stands on both days; the memory is of the last one.
        let said = memory("Alice prefers short replies in the morning.", "2026-04-07:5");
        let desk = desk(wire, vec![(both(&[said]), Ends::Well)]);
        let told = desk.run(&["compact", "--dry-run"]);
        assert!(told.to_string().contains("would take 1 calls"), "{told}");
        let prompt = desk.run(&["compact", "--show-prompt", "--json"]).ok().json();
        desk.run(&["compact"]).ok();
        let requests = desk.server.requests();
        assert_eq!(requests.len(), 1, "{wire:?}");
        assert_eq!(prompt.as_array().unwrap().len(), 1);
        assert_eq!(requests[0].turns()[0], prompt[0]["messages"][0]["text"]);
        assert!(desk.week().unwrap().contains(&format!("{ARCHIVE} [2026-04-09:4]")));
        let files = desk.root.files();
        let memory = &files["memory/user_reply-style.md"];
        assert!(memory.contains("2026-04-09:3#") && !memory.contains("2026-04-07"), "{memory}");
        let trace = desk.run(&["trace", "memory/user_reply-style.md"]).ok();
        assert!(trace.stdout.contains("2026-04-09.md:3"), "{trace}");
        assert!(desk.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
        assert_eq!(desk.server.count(), 1);
        desk.run(&["doctor"]).ok();
    }
}

#[test]
fn what_is_proposed_is_checked_like_any_other() {
    let mut invented = memory("The lease of the archive runs to 2031.", "2026-04-09:4");
    invented["topic"] = json!("lease");
    let said = memory("Alice prefers short replies in the morning.", "2026-04-09:3");
    let desk = desk(Wire::Anthropic, vec![(both(&[invented, said]), Ends::Well)]);
    let report = desk.run(&["compact", "--json"]).ok().json_as("compact");
    let files = desk.root.files();
    let made = files.keys().filter(|it| it.starts_with("memory/user_")).count();
    assert_eq!((made, desk.server.count()), (1, 2), "{report:#}");
    assert!(files["memory/user_reply-style.md"].contains("short replies"));
    let waiting = desk.run(&["review", "--json"]).ok().json_as("review").to_string();
    assert!(waiting.contains("2031"), "{waiting}");
}

#[test]
fn a_reply_that_is_not_both_is_asked_for_once_more_and_then_apart() {
    let apart = [
        (vec![("{\"week\": 3}".to_owned(), Ends::Well)], 2),
        (vec![("no".to_owned(), Ends::Well)], 2),
        (vec![(both(&[]), Ends::AtLimit)], 1),
        (vec![(String::new(), Ends::Well)], 1),
    ];
    for (replies, combined) in apart {
        let desk = desk(Wire::Openai, replies.clone());
        desk.run(&["compact"]).ok();
        let requests = desk.server.requests();
        let asked = requests.iter().filter(|it| it.is_combined()).count();
        // Two days and a week.
        assert_eq!((asked, requests.len() - asked), (combined, 3), "{replies:?}");
        assert!(desk.week().is_some());
        assert!(desk.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
    }
    let mended = vec![("no".to_owned(), Ends::Well), (both(&[]), Ends::Well)];
    let desk = desk(Wire::Openai, mended);
    desk.run(&["compact"]).ok();
    assert_eq!(desk.server.count(), 2);
    assert!(desk.week().unwrap().contains(ARCHIVE));
}

#[test]
fn a_bullet_that_does_not_stand_is_mended_as_that_of_a_week_alone() {
    let week = format!("### Decisions\n{ARCHIVE} [2026-04-09:4]\n- Bob left [2026-04-09:4]");
    let reply = json!({ "week": week, "memories": [] }).to_string();
    let desk = desk(Wire::Anthropic, vec![(reply, Ends::Well)]);
    desk.run(&["compact"]).ok();
    let requests = desk.server.requests();
    assert_eq!(requests.len(), 2);
    let turns = requests[1].turns();
    assert!(turns[1].starts_with("### Decisions") && turns[2].contains("Bob left"), "{turns:?}");
    assert!(!requests[1].is_combined());
    assert!(!desk.week().unwrap().contains("Bob left"));
}

#[test]
fn days_that_were_read_before_are_not_read_again_with_their_week() {
    let desk = desk(Wire::Openai, Vec::new());
    desk.run(&["compact", "extract"]).ok();
    assert_eq!(desk.server.count(), 2);
    desk.run(&["compact"]).ok();
    let requests = desk.server.requests();
    assert!(requests.len() == 3 && !requests.iter().any(Asked::is_combined));
    // The one that changed goes alone, as does the week.
    desk.root.write("memory/2026-04-09.md", &format!("{LATER}- Bob left at noon\n"));
    desk.run(&["compact"]).ok();
    let requests = desk.server.requests();
    assert!(requests.len() == 5 && !requests.iter().any(Asked::is_combined));
}

#[test]
fn a_week_that_is_longer_than_the_window_goes_apart_and_in_parts() {
    let mut desk = desk(Wire::Openai, Vec::new());
    desk.set("/model/context_tokens", json!(16_000));
    desk.set("/model/max_output_tokens", json!(1_000));
    let line = |i| format!("- Entry {i} of the long list says that rack {i} holds {} boxes", i * 3);
    let lines: Vec<String> = (0..1_200).map(line).collect();
    desk.root.write("memory/2026-04-08.md", &lines.join("\n"));
    desk.run(&["compact"]).ok();
    let requests = desk.server.requests();
    assert!(requests.len() > 4 && !requests.iter().any(Asked::is_combined), "{}", requests.len());
    let sent: usize = requests.iter().map(|it| it.lines().len()).sum();
    assert!(sent >= lines.len(), "{sent}");
    assert!(desk.week().is_some());
    assert!(desk.root.files().contains_key(WEEK));
}
