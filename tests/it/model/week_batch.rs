//! A week and the memories of its days in one request.

use serde_json::{Value, json};

use super::{Desk, WEEK, Wire};
use crate::support::server::{Answer, Asked, Ends, Server, good};

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
        assert!(told.to_string().contains("would take 1 call "), "{told}");
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

/// A desk whose server answers requests for both so, and all others well.
fn desk_where(answer: impl Fn(&Asked) -> Answer + Send + 'static) -> Desk {
    let server = Server::answering(move |asked: &Asked| {
        if asked.is_combined() { answer(asked) } else { asked.saying(&good(asked), Ends::Well) }
    });
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-04-09.md", LATER);
    desk
}

#[test]
fn a_server_that_cannot_bear_both_is_asked_apart() {
    let refused = |_: &Asked| {
        let error = Wire::Openai.error("invalid_request_error", "no such thing here");
        Answer::json(400, &error)
    };
    let desk = desk_where(refused);
    desk.run(&["compact"]).ok();
    assert_eq!(desk.server.requests().iter().filter(|it| it.is_combined()).count(), 1);
    assert!(desk.week().is_some());
    // What may be the server's own fault ends the pass, and the next one asks for less at once.
    for broken in [Answer::text(200, "<html>Gateway</html>"), Answer::CutOff(b"{\"id\"".to_vec())] {
        let mut desk = desk_where(move |_| broken.clone());
        let ran = desk.run(&["compact"]);
        assert_eq!(ran.code, 69, "{ran}");
        assert!(desk.server.requests().iter().all(Asked::is_combined), "{ran}");
        let tried = desk.server.count();
        // It is left alone for a while.
        desk.root.set_now("2026-04-13T09:30:00+02:00");
        let ran = desk.run(&["compact"]).ok();
        let apart = desk.server.requests().split_off(tried);
        assert!(apart.len() == 3 && !apart.iter().any(Asked::is_combined), "{ran}");
        assert!(desk.week().is_some(), "{ran}");
        assert!(desk.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
        let left = std::fs::read_dir(desk.root.path(".memoird")).unwrap().flatten();
        assert_eq!(left.filter(|it| it.path().to_string_lossy().contains("reply")).count(), 0);
    }
}

#[test]
fn a_reply_outlives_what_kept_its_work_from_ending() {
    // The first file that is staged is the one of the memory, the second that of the week.
    for step in ["vault.stage.write", "vault.stage.sync", "vault.place.rename"] {
        for nth in 1..=2 {
            let said = memory("Alice prefers short replies in the morning.", "2026-04-09:3");
            let desk = desk(Wire::Anthropic, vec![(both(&[said]), Ends::Well)]);
            let fail = format!("enospc@{step}#{nth}");
            let ran = desk.run_with(&["compact"], &[("MEMOIRD_FAIL", &fail)]);
            assert_ne!(ran.code, 0, "{fail} {ran}");
            let ran = desk.run(&["compact"]).ok();
            assert_eq!(desk.server.count(), 1, "{fail} {ran}");
            assert!(desk.week().unwrap().contains(ARCHIVE), "{fail} {ran}");
            assert!(desk.root.files().contains_key("memory/user_reply-style.md"), "{fail} {ran}");
            desk.run(&["doctor"]).ok();
        }
    }
}

#[test]
fn a_weekly_file_that_cannot_be_read_keeps_no_day_from_being_read() {
    let said = memory("Alice prefers short replies in the morning.", "2026-04-09:3");
    let only = json!({ "memories": [said] }).to_string();
    let server = Server::answering(move |asked: &Asked| {
        let is_day = asked.turns()[0].contains("2026-04-09:3");
        asked.saying(if is_day { &only } else { "{\"memories\": []}" }, Ends::Well)
    });
    let mut desk = Desk::new(Wire::Openai, server);
    desk.set("/compaction/extract", json!(true));
    desk.root.write("memory/2026-04-09.md", LATER);
    desk.root.write(WEEK, "---\nmemoird: [\n---\n\n# 2026-W15\n\n- Mine\n");
    let ran = desk.run(&["compact"]);
    assert!(desk.root.files().contains_key("memory/user_reply-style.md"), "{ran}");
    assert!(desk.week().unwrap().contains("- Mine"), "{ran}");
}

#[test]
fn no_more_is_asked_for_than_a_reply_has_room_for() {
    let mut desk = desk(Wire::Openai, Vec::new());
    desk.set("/model/context_tokens", json!(100_000));
    let line = |i| format!("- Entry {i} of the long list says that rack {i} holds {} boxes", i * 3);
    let lines: Vec<String> = (0..1_200).map(line).collect();
    desk.root.write("memory/2026-04-08.md", &lines.join("\n"));
    // Little room is no room for both.
    desk.set("/model/max_output_tokens", json!(1_200));
    let prompt = desk.run(&["compact", "--show-prompt"]).ok();
    assert!(!prompt.stdout.contains("<SECOND_TASK>"), "{prompt}");
    assert!(!prompt.stdout.contains("Write about 0 characters"), "{prompt}");
    desk.set("/model/max_output_tokens", json!(2_000));
    for args in [&["compact"][..], &["compact", "weekly", "--redo", "--yes"]] {
        desk.run(args).ok();
        let requests = desk.server.requests();
        let asked = requests.iter().rev().find(|it| it.system().contains("one week of")).unwrap();
        let turn = asked.turns()[0].clone();
        let told = turn.split_once("Write about ").unwrap().1;
        let chars: usize = told.split(' ').next().unwrap().parse().unwrap();
        assert!((500..=5_000).contains(&chars), "{args:?} {chars}");
    }
}
