//! Sessions of coding agents, summed up by a model.

use std::fmt::Write as _;

use super::{
    super::support::server::{Answer, Asked, Ends, Server},
    Desk, KEY, Wire,
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

/// Replies with so many of the sections.
fn reply(asked: &Asked, count: usize) -> Answer {
    saying(asked, count, "It fills 4711 gaps")
}

/// The same with another second line in each.
fn saying(asked: &Asked, count: usize, second: &str) -> Answer {
    let mut text = String::from("<analysis>\nnotes to be dropped\n</analysis>\n\n<summary>\n");
    for (n, title) in TITLES.iter().take(count).enumerate() {
        let said = "- Never fill gaps with values";
        let at = asked.turns().concat();
        let at = at.split("Never fill gaps with values").next().unwrap_or_default();
        let number = at.rsplit('[').next().and_then(|it| it.split(']').next()).unwrap_or_default();
        writeln!(text, "{}. **{title}:**\n\n\n{said}, part by part [{number}]\n", n + 1).unwrap();
        writeln!(text, "- {second} [{number}]\n").unwrap();
    }
    asked.saying(&format!("{text}</summary>"), Ends::Well)
}

fn compact(desk: &Desk, more: &[&str]) -> super::Ran {
    let path = format!("{}/tests/data/transcripts/claude-code.jsonl", env!("CARGO_MANIFEST_DIR"));
    desk.run(&[&["session", "compact", &path, "--json"], more].concat())
}

#[test]
fn a_model_words_the_sections_and_takes_nothing_away() {
    for wire in Wire::BOTH {
        let desk = Desk::new(wire, Server::answering(|asked| reply(asked, 9)));
        let told = compact(&desk, &["--instructions", "Keep the numbers."]).ok();
        let told = told.json_as("session-compact");
        let summary = told["summary"].as_str().unwrap();
        for title in ["5. Problem Solving", "8. Current Work"] {
            let part = format!("## {title}\n\n- Never fill gaps with values, part by part");
            assert!(summary.contains(&part), "{summary}");
        }
        // What the session does not say is kept out, and told.
        assert!(!summary.contains("4711"), "{summary}");
        let rejected = told["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 8, "{rejected:?}");
        assert!(rejected[0]["reason"].as_str().unwrap().contains("`4711` is in none"));
        // What the user said is the user's, and the list as it stood.
        assert_eq!(summary.matches("part by part").count(), 8);
        assert!(!summary.contains("notes to be dropped"));
        assert!(summary.contains("  Stop here for today, please. Never fill gaps with values."));
        assert!(summary.contains("- [~] Tell the report where gaps are"));
        let record = desk.root.read(told["path"].as_str().unwrap());
        assert!(
            record.contains("engine: \"model/1 scripted-1\"") || record.contains("engine: model/1")
        );
        // Each line leads to the words that it rests on.
        let line = record.lines().find(|it| it.contains("part by part [CMEM-")).unwrap();
        let address = line.rsplit([':', ']']).nth(1).unwrap().split(['-', ',']).next().unwrap();
        let said = record.lines().nth(address.parse::<usize>().unwrap() - 1).unwrap();
        let next = record.lines().nth(address.parse::<usize>().unwrap()).unwrap();
        assert!([said, next].concat().contains("Never fill gaps with values"), "{said}\n{next}");
        let asked = &desk.server.requests()[0];
        assert!(asked.system().ends_with("Call no tools. Answer with text alone."));
        assert!(asked.system().contains("## Additional Instructions\nKeep the numbers."));
        let sent = asked.turns().concat();
        assert!(sent.contains("user: No, not a new list") && sent.contains("failed: Exit code 1"));
        assert!(!sent.contains("decimal comma") && !sent.contains(KEY), "memoird's own words");
        // The same once more is the same record.
        assert_eq!(
            compact(&desk, &["--instructions", "Keep the numbers."]).ok().json()["unchanged"],
            true
        );
        assert!(compact(&desk, &["--no-model"]).ok().stdout.contains("The last call: Bash"));
    }
}

#[test]
fn a_section_that_is_missing_is_asked_for_once() {
    let mut calls = 0;
    let server = Server::answering(move |asked| {
        calls += 1;
        reply(asked, if calls == 1 { 6 } else { 9 })
    });
    let desk = Desk::new(Wire::Anthropic, server);
    let summary = compact(&desk, &[]).ok().json();
    assert!(summary["summary"].as_str().unwrap().contains("part by part"));
    let asked = desk.server.requests();
    assert_eq!(asked.len(), 2);
    assert!(asked[1].turns().concat().contains("\"Pending Tasks\" is missing"));
    // One that never comes: the summary is made without the model, and that is said.
    let desk = Desk::new(Wire::Openai, Server::answering(|asked| reply(asked, 3)));
    let ran = compact(&desk, &[]).ok();
    assert!(ran.stderr.contains("made without the model"), "{ran}");
    assert!(ran.json()["summary"].as_str().unwrap().contains("The last call: Bash"));
    assert_eq!(desk.server.count(), 2);
}

#[test]
fn a_session_that_is_too_long_loses_results_first() {
    let mut desk = Desk::new(Wire::Anthropic, Server::answering(|asked| reply(asked, 9)));
    desk.set("/model/max_output_tokens", 300.into());
    desk.set("/model/context_tokens", 1_900.into());
    compact(&desk, &[]).ok();
    let sent = desk.server.requests()[0].turns().concat();
    assert!(sent.contains("entries are left out for lack of room]"), "{sent}");
    assert!(
        sent.contains("Never fill gaps with values.") && !sent.contains("Found 3 files"),
        "{sent}"
    );
}

#[test]
fn a_server_that_fails_for_sessions_is_left_alone_as_for_all_else() {
    let error = Wire::Anthropic.error("api_error", "no");
    let desk = Desk::new(Wire::Anthropic, Server::answering(move |_| Answer::json(500, &error)));
    for _ in 0..3 {
        let told = compact(&desk, &[]).ok();
        assert!(told.stderr.contains("made without the model"), "{told}");
    }
    // Three tries in all, and no more until it is given another chance.
    assert_eq!(desk.server.count(), 3);
}

#[test]
fn lines_that_may_not_stand_go_back_once() {
    let mut calls = 0;
    let server = Server::answering(move |asked| {
        calls += 1;
        if calls == 1 {
            return reply(asked, 9);
        }
        assert!(asked.turns().concat().contains("It fills 4711 gaps"));
        saying(asked, 9, "Never fill gaps")
    });
    let desk = Desk::new(Wire::Anthropic, server);
    let told = compact(&desk, &[]).ok().json_as("session-compact");
    assert_eq!(told["rejected"].as_array().unwrap().len(), 0, "{told}");
    assert_eq!(desk.server.count(), 2);
    // A second reply that is worse changes nothing.
    let mut calls = 0;
    let server = Server::answering(move |asked| {
        calls += 1;
        reply(asked, if calls == 1 { 9 } else { 2 })
    });
    let desk = Desk::new(Wire::Openai, server);
    let told = compact(&desk, &[]).ok().json();
    assert!(
        told["summary"].as_str().unwrap().contains("Never fill gaps with values, part by part")
    );
    assert_eq!(told["rejected"].as_array().unwrap().len(), 8);
}

#[test]
fn a_recovery_record_has_the_words_of_a_model_and_the_facts_of_the_session() {
    const FIELDS: [&str; 5] = ["Objective", "Decisions", "Known Issues", "Pending", "Notes"];
    let server = Server::answering(|asked| {
        let at = asked.turns().concat();
        let at = at.split("Never fill gaps with values").next().unwrap_or_default();
        let number = at.rsplit('[').next().and_then(|it| it.split(']').next()).unwrap_or_default();
        let mut text = String::from("<summary>\n");
        for title in FIELDS {
            let said = match title {
                "Known Issues" => "(none)".to_owned(),
                "Decisions" => format!("- Never fill gaps with values, at 4711 gates [{number}]"),
                _ => format!("- {title}: never fill gaps with values [{number}]"),
            };
            writeln!(text, "## {title}\n\n{said}\n").unwrap();
        }
        asked.saying(&format!("{text}</summary>"), Ends::Well)
    });
    let desk = Desk::new(Wire::Anthropic, server);
    let program = compact(&desk, &["--style", "recovery", "--dry-run", "--no-model"]).ok().json();
    let told = compact(&desk, &["--style", "recovery", "--force"]).ok().json_as("session-compact");
    let fields = |told: &serde_json::Value| {
        let summary = told["summary"].as_str().unwrap().to_owned();
        let mut fields = std::collections::BTreeMap::new();
        for part in summary.split("\n## ").skip(1) {
            let (name, text) = part.split_once('\n').unwrap();
            fields.insert(name.to_owned(), text.trim().to_owned());
        }
        fields
    };
    let (without, with) = (fields(&program), fields(&told));
    for title in ["Objective", "Pending", "Notes"] {
        assert!(with[title].contains("never fill gaps with values"), "{title}: {}", with[title]);
    }
    // What did not stand the check, or says nothing, is said by program; facts are never a model's.
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
    assert_eq!(told["rejected"].as_array().unwrap().len(), 1);
    assert!(desk.root.read(told["path"].as_str().unwrap()).contains("model/1"));
}
