//! Summaries of coding sessions by a model.

use std::fmt::Write as _;

use super::{
    super::support::server::{Answer, ModelRequest, Server, StopReason},
    KEY, Wire, Workspace,
};

const TITLES: [&str; 9] = [
    "Primary Request and Intent",
    "Key Technical Concepts",
    "Files and Code Sections",
    "Errors and Fixes",
    "Problem Solving",
    "All User Messages",
    "Pending Tasks",
    "Current Work",
    "Optional Next Step",
];

/// Replies with the first `count` sections, with an unsupported line in each.
fn reply(request: &ModelRequest, count: usize) -> Answer {
    reply_with_line(request, count, "It fills 4711 gaps")
}

/// Replies with the first `count` sections, with this second line in each.
fn reply_with_line(request: &ModelRequest, count: usize, second: &str) -> Answer {
    let mut text = String::from("<analysis>\nnotes to be dropped\n</analysis>\n\n<summary>\n");
    for (n, title) in TITLES.iter().take(count).enumerate() {
        let line = "- Never fill gaps with values";
        let at = request.turns().concat();
        let at = at.split("Never fill gaps with values").next().unwrap_or_default();
        let number = at.rsplit('[').next().and_then(|it| it.split(']').next()).unwrap_or_default();
        writeln!(text, "{}. **{title}:**\n\n\n{line}, part by part [{number}]\n", n + 1).unwrap();
        writeln!(text, "- {second} [{number}]\n").unwrap();
    }
    request.reply_with(&format!("{text}</summary>"), StopReason::Complete)
}

fn compact(workspace: &Workspace, more: &[&str]) -> super::CommandOutput {
    let path = format!("{}/tests/data/transcripts/claude-code.jsonl", env!("CARGO_MANIFEST_DIR"));
    workspace.run(&[&["session", "compact", &path, "--json"], more].concat())
}

#[test]
fn a_model_writes_the_sections_and_drops_no_facts() {
    for wire in Wire::BOTH {
        let workspace = Workspace::new(wire, Server::answering(|request| reply(request, 9)));
        let output = compact(&workspace, &["--instructions", "Keep the numbers."]).ok();
        let output = output.json_as("session-compact");
        let summary = output["summary"].as_str().unwrap();
        for title in ["5. Problem Solving", "8. Current Work"] {
            let part = format!("## {title}\n\n- Never fill gaps with values, part by part");
            assert!(summary.contains(&part), "{summary}");
        }
        // Lines that the session does not support are rejected and reported.
        assert!(!summary.contains("4711"), "{summary}");
        let rejected = output["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 8, "{rejected:?}");
        assert!(rejected[0]["reason"].as_str().unwrap().contains("`4711` is in none"));
        // What the user said is the user's, and the list as it stood.
        assert_eq!(summary.matches("part by part").count(), 8);
        assert!(!summary.contains("notes to be dropped"));
        assert!(summary.contains("  Stop here for today, please. Never fill gaps with values."));
        assert!(summary.contains("- [~] Tell the report where gaps are"));
        let record = workspace.root.read(output["path"].as_str().unwrap());
        assert!(
            record.contains("engine: \"model/1 scripted-1\"") || record.contains("engine: model/1")
        );
        // Each line cites the message that it is derived from.
        let line = record.lines().find(|it| it.contains("part by part [CMEM-")).unwrap();
        let address = line.rsplit([':', ']']).nth(1).unwrap().split(['-', ',']).next().unwrap();
        let first_cited = record.lines().nth(address.parse::<usize>().unwrap() - 1).unwrap();
        let second_cited = record.lines().nth(address.parse::<usize>().unwrap()).unwrap();
        assert!(
            [first_cited, second_cited].concat().contains("Never fill gaps with values"),
            "{first_cited}\n{second_cited}"
        );
        let request = &workspace.server.requests()[0];
        assert!(request.system().ends_with("Call no tools. Answer with text alone."));
        assert!(request.system().contains("## Additional Instructions\nKeep the numbers."));
        let sent = request.turns().concat();
        assert!(sent.contains("user: No, not a new list") && sent.contains("failed: Exit code 1"));
        assert!(
            !sent.contains("decimal comma") && !sent.contains(KEY),
            "memoird's own output is not sent"
        );
        // The same session again gives the same record.
        assert_eq!(
            compact(&workspace, &["--instructions", "Keep the numbers."]).ok().json()["unchanged"],
            true
        );
        assert!(compact(&workspace, &["--no-model"]).ok().stdout.contains("The last call: Bash"));
    }
}

#[test]
fn a_missing_section_is_requested_once() {
    let mut calls = 0;
    let server = Server::answering(move |request| {
        calls += 1;
        reply(request, if calls == 1 { 6 } else { 9 })
    });
    let workspace = Workspace::new(Wire::Anthropic, server);
    let summary = compact(&workspace, &[]).ok().json();
    assert!(summary["summary"].as_str().unwrap().contains("part by part"));
    let requests = workspace.server.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[1].turns().concat().contains("\"Pending Tasks\" is missing"));
    // If it stays missing, the summary is made without the model, which is reported.
    let workspace = Workspace::new(Wire::Openai, Server::answering(|request| reply(request, 3)));
    let ran = compact(&workspace, &[]).ok();
    assert!(ran.stderr.contains("made without the model"), "{ran}");
    assert!(ran.json()["summary"].as_str().unwrap().contains("The last call: Bash"));
    assert_eq!(workspace.server.count(), 2);
}

#[test]
fn an_overlong_session_loses_tool_results_first() {
    let mut workspace =
        Workspace::new(Wire::Anthropic, Server::answering(|request| reply(request, 9)));
    workspace.set("/model/max_output_tokens", 300.into());
    workspace.set("/model/context_tokens", 1_900.into());
    compact(&workspace, &[]).ok();
    let sent = workspace.server.requests()[0].turns().concat();
    assert!(sent.contains("entries are left out for lack of room]"), "{sent}");
    assert!(
        sent.contains("Never fill gaps with values.") && !sent.contains("Found 3 files"),
        "{sent}"
    );
}

#[test]
fn failures_with_sessions_pause_the_provider() {
    let error = Wire::Anthropic.error("api_error", "no");
    let workspace =
        Workspace::new(Wire::Anthropic, Server::answering(move |_| Answer::json(500, &error)));
    for _ in 0..3 {
        let output = compact(&workspace, &[]).ok();
        assert!(output.stderr.contains("made without the model"), "{output}");
    }
    // Three calls in all, and no more while the provider is paused.
    assert_eq!(workspace.server.count(), 3);
}

#[test]
fn rejected_lines_are_sent_back_once() {
    let mut calls = 0;
    let server = Server::answering(move |request| {
        calls += 1;
        if calls == 1 {
            return reply(request, 9);
        }
        assert!(request.turns().concat().contains("It fills 4711 gaps"));
        reply_with_line(request, 9, "Never fill gaps")
    });
    let workspace = Workspace::new(Wire::Anthropic, server);
    let output = compact(&workspace, &[]).ok().json_as("session-compact");
    assert_eq!(output["rejected"].as_array().unwrap().len(), 0, "{output}");
    assert_eq!(workspace.server.count(), 2);
    // A worse second reply is ignored.
    let mut calls = 0;
    let server = Server::answering(move |request| {
        calls += 1;
        reply(request, if calls == 1 { 9 } else { 2 })
    });
    let workspace = Workspace::new(Wire::Openai, server);
    let output = compact(&workspace, &[]).ok().json();
    assert!(
        output["summary"].as_str().unwrap().contains("Never fill gaps with values, part by part")
    );
    assert_eq!(output["rejected"].as_array().unwrap().len(), 8);
}

#[test]
fn a_recovery_record_combines_model_text_with_session_facts() {
    const FIELDS: [&str; 5] = ["Objective", "Decisions", "Known Issues", "Pending", "Notes"];
    let server = Server::answering(|request| {
        let at = request.turns().concat();
        let at = at.split("Never fill gaps with values").next().unwrap_or_default();
        let number = at.rsplit('[').next().and_then(|it| it.split(']').next()).unwrap_or_default();
        let mut text = String::from("<summary>\n");
        for title in FIELDS {
            let text_of_field = match title {
                "Known Issues" => "(none)".to_owned(),
                "Decisions" => format!("- Never fill gaps with values, at 4711 gates [{number}]"),
                _ => format!("- {title}: never fill gaps with values [{number}]"),
            };
            writeln!(text, "## {title}\n\n{text_of_field}\n").unwrap();
        }
        request.reply_with(&format!("{text}</summary>"), StopReason::Complete)
    });
    let workspace = Workspace::new(Wire::Anthropic, server);
    let without_model =
        compact(&workspace, &["--style", "recovery", "--dry-run", "--no-model"]).ok().json();
    let output =
        compact(&workspace, &["--style", "recovery", "--force"]).ok().json_as("session-compact");
    let fields = |output: &serde_json::Value| {
        let summary = output["summary"].as_str().unwrap().to_owned();
        let mut fields = std::collections::BTreeMap::new();
        for part in summary.split("\n## ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            fields.insert(name.to_owned(), text.trim().to_owned());
        }
        fields
    };
    let (without, with) = (fields(&without_model), fields(&output));
    for title in ["Objective", "Pending", "Notes"] {
        assert!(with[title].contains("never fill gaps with values"), "{title}: {}", with[title]);
    }
    // Rejected and empty fields, and all facts, are written without the model.
    let facts = [
        "Decisions",
        "Known Issues",
        "Execution Plan",
        "Last Action",
        "Constraints",
        "Changes Made",
    ];
    for title in facts {
        assert_eq!(with[title], without[title], "{title}");
    }
    assert_eq!(output["rejected"].as_array().unwrap().len(), 1);
    assert!(workspace.root.read(output["path"].as_str().unwrap()).contains("model/1"));
}
