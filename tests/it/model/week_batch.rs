//! A week and the memories of its days in one request.

use serde_json::{Value, json};

use super::{WEEK, Wire, Workspace, replies::corrections};
use crate::support::server::{Answer, ModelRequest, Server, StopReason, valid_reply};

const LATER: &str = "# Thursday\n\n- Alice prefers short replies in the morning\n\
                     - Decided to keep the archive in Ghent, because the lease runs to 2028\n";

/// Returns a workspace with two days in the week, whose server gives these replies to combined
/// requests in turn.
fn workspace(wire: Wire, replies: Vec<(String, StopReason)>) -> Workspace {
    let mut at = 0;
    let server = Server::answering(move |request: &ModelRequest| {
        if !request.is_combined() || replies.is_empty() {
            return request.reply_with(&valid_reply(request), StopReason::Complete);
        }
        let (text, stop_reason) = &replies[at.min(replies.len() - 1)];
        at += 1;
        request.reply_with(text, *stop_reason)
    });
    let mut workspace = Workspace::new(wire, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("memory/2026-04-09.md", LATER);
    workspace
}

fn statement(text: &str, citations: &str) -> Value {
    json!({
        "kind": "preference", "topic": "Reply style", "text": text, "citations": citations,
        "replaces": null,
    })
}

const ARCHIVE: &str = "- Decided to keep the archive in Ghent, because the lease runs to 2028";

fn combined_reply(statements: &[Value]) -> String {
    let week = format!("### Decisions\n{ARCHIVE} [2026-04-09:4]");
    json!({ "week": week, "statements": statements }).to_string()
}

#[test]
fn one_request_covers_the_week_and_its_days() {
    for wire in Wire::ALL {
        // The statement is in both logs, and the memory cites both.
        let valid = statement("Alice prefers short replies in the morning.", "2026-04-07:5");
        let workspace = workspace(wire, vec![(combined_reply(&[valid]), StopReason::Complete)]);
        let preview = workspace.run(&["compact", "--dry-run"]);
        assert!(preview.to_string().contains("would take 1 call "), "{preview}");
        let prompt = workspace.run(&["compact", "--show-prompt", "--json"]).ok().json();
        workspace.run(&["compact"]).ok();
        let requests = workspace.server.requests();
        assert_eq!(requests.len(), 1, "{wire:?}");
        assert_eq!(prompt.as_array().unwrap().len(), 1);
        assert_eq!(requests[0].turns()[0], prompt[0]["messages"][0]["text"]);
        assert!(workspace.week().unwrap().contains(&format!("{ARCHIVE} [2026-04-09:4]")));
        let files = workspace.root.files();
        let memory = &files["memory/.user_reply-style.json"];
        assert!(memory.contains("2026-04-09:3#") && memory.contains("2026-04-07:5#"), "{memory}");
        let trace = workspace.run(&["trace", "memory/user_reply-style.md"]).ok();
        assert!(trace.stdout.contains("2026-04-09.md:3"), "{trace}");
        assert!(workspace.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
        assert_eq!(workspace.server.count(), 1);
        workspace.run(&["doctor"]).ok();
    }
}

#[test]
fn statements_from_a_combined_reply_are_checked() {
    let mut invented = statement("The lease of the archive runs to 2031.", "2026-04-09:4");
    invented["topic"] = json!("lease");
    let valid = statement("Alice prefers short replies in the morning.", "2026-04-09:3");
    let workspace = workspace(
        Wire::Anthropic,
        vec![(combined_reply(&[invented, valid]), StopReason::Complete)],
    );
    let report = workspace.run(&["compact", "--json"]).ok().json_as("compact");
    let files = workspace.root.files();
    let made = files.keys().filter(|it| it.starts_with("memory/user_")).count();
    assert_eq!((made, workspace.server.count()), (1, 2), "{report:#}");
    assert!(files["memory/user_reply-style.md"].contains("short replies"));
    let quarantined = workspace.run(&["review", "--json"]).ok().json_as("review").to_string();
    assert!(quarantined.contains("2031"), "{quarantined}");
}

#[test]
fn an_unreadable_combined_reply_is_retried_once_and_then_split() {
    let cases = [
        (vec![("{\"week\": 3}".to_owned(), StopReason::Complete)], 2),
        (vec![("no".to_owned(), StopReason::Complete)], 2),
        (vec![(combined_reply(&[]), StopReason::TokenLimit)], 1),
        (vec![(String::new(), StopReason::Complete)], 1),
    ];
    for (replies, combined) in cases {
        let workspace = workspace(Wire::Openai, replies.clone());
        workspace.run(&["compact"]).ok();
        let requests = workspace.server.requests();
        let combined_count = requests.iter().filter(|it| it.is_combined()).count();
        // Plus separate requests for two days and the week.
        assert_eq!((combined_count, requests.len() - combined_count), (combined, 3), "{replies:?}");
        assert!(workspace.week().is_some());
        assert!(workspace.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
    }
    let repaired =
        vec![("no".to_owned(), StopReason::Complete), (combined_reply(&[]), StopReason::Complete)];
    let workspace = workspace(Wire::Openai, repaired);
    workspace.run(&["compact"]).ok();
    assert_eq!(workspace.server.count(), 2);
    assert!(workspace.week().unwrap().contains(ARCHIVE));
}

#[test]
fn a_rejected_bullet_of_a_combined_reply_is_repaired_alone() {
    let week = format!("### Decisions\n{ARCHIVE} [2026-04-09:4]\n- Bob left [2026-04-09:4]");
    let reply = json!({ "week": week, "statements": [] }).to_string();
    let workspace = workspace(Wire::Anthropic, vec![(reply, StopReason::Complete)]);
    workspace.run(&["compact"]).ok();
    let requests = workspace.server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].is_repair() && requests[1].turns()[0].contains("Bob left"));
    assert!(!workspace.week().unwrap().contains("Bob left"));
}

#[test]
fn bullets_and_statements_of_a_week_are_corrected_in_one_request() {
    let week = format!("### Decisions\n{ARCHIVE} [L7]\n### Context\n- Measured 3.4 s per GB [L3]");
    let late = statement("Alice prefers short replies in the evening of day 9.", "L4");
    let mut lease = statement("The lease of the archive runs to 2031.", "L7");
    (lease["kind"], lease["topic"]) = (json!("state"), json!("Archive"));
    let reply = json!({ "week": week, "statements": [late, lease] }).to_string();
    let speed = json!({ "text": "Measured 3.2 s per GB", "citations": "L3", "kind": null });
    let early = statement("Alice prefers short replies in the morning.", "L4");
    let mut longer = lease.clone();
    longer["text"] = json!("The lease of the archive runs to 2032.");
    let second = corrections([(1, speed), (2, early), (3, longer)]);
    // The second time the process ends before the week is written: nothing is asked again.
    for fail in ["", "enospc@vault.place.rename#2"] {
        let (reply, second) = (reply.clone(), second.clone());
        let server = Server::answering(move |request: &ModelRequest| {
            let text = if request.is_repair() { &second } else { &reply };
            request.reply_with(text, StopReason::Complete)
        });
        let mut workspace = Workspace::new(Wire::Anthropic, server);
        workspace.set("/compaction/extract", json!(true));
        workspace.root.write("memory/2026-04-09.md", LATER);
        let ran = workspace.run_with(&["compact"], &[("MEMOIRD_FAIL", fail)]);
        assert_eq!(ran.code == 0, fail.is_empty(), "{ran}");
        workspace.run(&["compact"]).ok();
        let requests = workspace.server.requests();
        let repairs: Vec<String> =
            requests.iter().filter(|it| it.is_repair()).map(|it| it.turns().concat()).collect();
        assert_eq!((requests.len(), repairs.len()), (2, 1), "{fail} {ran}");
        for (n, fault) in [(1, "3.4 s"), (2, "9"), (3, "2031")] {
            let item = repairs[0].split_once(&format!("\n{n}. {{")).unwrap().1;
            let line = item.lines().nth(1).unwrap();
            assert!(line.contains("Fault: ") && line.contains(fault), "{line} {}", repairs[0]);
        }
        let week = workspace.week().unwrap();
        assert!(week.contains("- Measured 3.2 s per GB [2026-04-07:4]"), "{week}");
        assert!(week.contains(ARCHIVE) && !week.contains("3.4 s"), "{week}");
        let memory = workspace.root.read("memory/user_reply-style.md");
        assert!(memory.contains("in the morning") && !memory.contains("evening"), "{memory}");
        // The last version of what did not become better is refused.
        let review = workspace.run(&["review", "--json"]).ok().json_as("review");
        let items = review["items"].as_array().unwrap();
        assert!(items.len() == 1 && items[0].to_string().contains("2032"), "{review:#}");
        let left = std::fs::read_dir(workspace.root.path(".memoird")).unwrap().flatten();
        assert_eq!(left.filter(|it| it.path().to_string_lossy().contains("reply")).count(), 0);
        workspace.run(&["doctor"]).ok();
    }
}

#[test]
fn days_already_extracted_are_not_requested_again() {
    let workspace = workspace(Wire::Openai, Vec::new());
    workspace.run(&["compact", "extract"]).ok();
    assert_eq!(workspace.server.count(), 2);
    workspace.run(&["compact"]).ok();
    let requests = workspace.server.requests();
    assert!(requests.len() == 3 && !requests.iter().any(ModelRequest::is_combined));
    // The changed day and the week get separate requests.
    workspace.root.write("memory/2026-04-09.md", &format!("{LATER}- Bob left at noon\n"));
    workspace.run(&["compact"]).ok();
    let requests = workspace.server.requests();
    assert!(requests.len() == 5 && !requests.iter().any(ModelRequest::is_combined));
}

#[test]
fn a_week_longer_than_the_context_window_is_split() {
    let mut workspace = workspace(Wire::Openai, Vec::new());
    workspace.set("/model/context_tokens", json!(16_000));
    workspace.set("/model/max_output_tokens", json!(1_000));
    let line = |i| format!("- Entry {i} of the long list says that rack {i} holds {} boxes", i * 3);
    let lines: Vec<String> = (0..1_200).map(line).collect();
    workspace.root.write("memory/2026-04-08.md", &lines.join("\n"));
    workspace.run(&["compact"]).ok();
    let requests = workspace.server.requests();
    assert!(
        requests.len() > 4 && !requests.iter().any(ModelRequest::is_combined),
        "{}",
        requests.len()
    );
    let sent: usize = requests.iter().map(|it| it.lines().len()).sum();
    assert!(sent >= lines.len(), "{sent}");
    assert!(workspace.week().is_some());
    assert!(workspace.root.files().contains_key(WEEK));
}

/// Returns a workspace whose server answers combined requests by a function and all others validly.
fn workspace_answering(answer: impl Fn(&ModelRequest) -> Answer + Send + 'static) -> Workspace {
    let server = Server::answering(move |request: &ModelRequest| {
        if request.is_combined() {
            answer(request)
        } else {
            request.reply_with(&valid_reply(request), StopReason::Complete)
        }
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("memory/2026-04-09.md", LATER);
    workspace
}

#[test]
fn a_server_that_rejects_combined_requests_gets_separate_ones() {
    let refused = |_: &ModelRequest| {
        let error = Wire::Openai.error("invalid_request_error", "no such thing here");
        Answer::json(400, &error)
    };
    let workspace = workspace_answering(refused);
    workspace.run(&["compact"]).ok();
    assert_eq!(workspace.server.requests().iter().filter(|it| it.is_combined()).count(), 1);
    assert!(workspace.week().is_some());
    // A failure that may be the server's own ends the run; the next run sends separate requests.
    for broken in [Answer::text(200, "<html>Gateway</html>"), Answer::CutOff(b"{\"id\"".to_vec())] {
        let mut workspace = workspace_answering(move |_| broken.clone());
        let ran = workspace.run(&["compact"]);
        assert_eq!(ran.code, 69, "{ran}");
        assert!(workspace.server.requests().iter().all(ModelRequest::is_combined), "{ran}");
        let tried = workspace.server.count();
        // The provider is paused first.
        workspace.root.set_now("2026-04-13T09:30:00+02:00");
        let ran = workspace.run(&["compact"]).ok();
        let separate = workspace.server.requests().split_off(tried);
        assert!(separate.len() == 3 && !separate.iter().any(ModelRequest::is_combined), "{ran}");
        assert!(workspace.week().is_some(), "{ran}");
        assert!(workspace.run(&["compact"]).ok().stderr.starts_with("nothing to do"));
        let left = std::fs::read_dir(workspace.root.path(".memoird")).unwrap().flatten();
        assert_eq!(left.filter(|it| it.path().to_string_lossy().contains("reply")).count(), 0);
    }
}

#[test]
fn a_reply_survives_a_failed_write() {
    // The memory is staged first, the week second.
    for step in ["vault.stage.write", "vault.stage.sync", "vault.place.rename"] {
        for nth in 1..=2 {
            let valid = statement("Alice prefers short replies in the morning.", "2026-04-09:3");
            let workspace =
                workspace(Wire::Anthropic, vec![(combined_reply(&[valid]), StopReason::Complete)]);
            let fail = format!("enospc@{step}#{nth}");
            let ran = workspace.run_with(&["compact"], &[("MEMOIRD_FAIL", &fail)]);
            assert_ne!(ran.code, 0, "{fail} {ran}");
            let ran = workspace.run(&["compact"]).ok();
            assert_eq!(workspace.server.count(), 1, "{fail} {ran}");
            assert!(workspace.week().unwrap().contains(ARCHIVE), "{fail} {ran}");
            assert!(
                workspace.root.files().contains_key("memory/user_reply-style.md"),
                "{fail} {ran}"
            );
            workspace.run(&["doctor"]).ok();
        }
    }
}

#[test]
fn an_unreadable_weekly_file_does_not_block_extraction() {
    let valid = statement("Alice prefers short replies in the morning.", "2026-04-09:3");
    let only = json!({ "statements": [valid] }).to_string();
    let server = Server::answering(move |request: &ModelRequest| {
        let is_day = request.turns()[0].contains("\n## 2026-04-09\n");
        request
            .reply_with(if is_day { &only } else { "{\"statements\": []}" }, StopReason::Complete)
    });
    let mut workspace = Workspace::new(Wire::Openai, server);
    workspace.set("/compaction/extract", json!(true));
    workspace.root.write("memory/2026-04-09.md", LATER);
    workspace.root.write(WEEK, "---\nmemoird: [\n---\n\n# 2026-W15\n\n- Mine\n");
    let ran = workspace.run(&["compact"]);
    assert!(workspace.root.files().contains_key("memory/user_reply-style.md"), "{ran}");
    assert!(workspace.week().unwrap().contains("- Mine"), "{ran}");
}

#[test]
fn the_requested_length_fits_the_output_limit() {
    let mut workspace = workspace(Wire::Openai, Vec::new());
    workspace.set("/model/context_tokens", json!(100_000));
    let line = |i| format!("- Entry {i} of the long list says that rack {i} holds {} boxes", i * 3);
    let lines: Vec<String> = (0..1_200).map(line).collect();
    workspace.root.write("memory/2026-04-08.md", &lines.join("\n"));
    // With a low output limit the week and its days are not combined.
    workspace.set("/model/max_output_tokens", json!(1_200));
    let prompt = workspace.run(&["compact", "--show-prompt"]).ok();
    assert!(!prompt.stdout.contains("<SECOND_TASK>"), "{prompt}");
    assert!(!prompt.stdout.contains("Write about 0 characters"), "{prompt}");
    workspace.set("/model/max_output_tokens", json!(2_000));
    for args in [&["compact"][..], &["compact", "weekly", "--redo", "--yes"]] {
        workspace.run(args).ok();
        let requests = workspace.server.requests();
        let request = requests.iter().rev().find(|it| it.system().contains("one week of")).unwrap();
        let turn = request.turns()[0].clone();
        let target = turn.split_once("Write about ").unwrap().1;
        let chars: usize = target.split(' ').next().unwrap().parse().unwrap();
        assert!((500..=5_000).contains(&chars), "{args:?} {chars}");
    }
}
