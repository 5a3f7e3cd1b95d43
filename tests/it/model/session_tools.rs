//! A session handed over by a model that works with tools.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};

use super::{
    super::support::server::{Answer, Asked, Ends, Server},
    Desk, Wire,
};

/// Made up.
const SECRET: &str = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5";

/// Returns an answer that calls tools, in the wire format of the request.
fn calling(asked: &Asked, calls: &[(&str, Value)]) -> Answer {
    let model = &asked.body["model"];
    let turn = asked.body["messages"].as_array().unwrap().len();
    let calls = calls.iter().enumerate().map(|(n, it)| (format!("call_{turn}_{n}"), it));
    let body = if asked.path == "/v1/messages" {
        let mut content = vec![json!({ "type": "thinking", "thinking": "hm", "signature": "s" })];
        content.extend(calls.map(|(id, (name, input))| {
            json!({ "type": "tool_use", "id": id, "name": name, "input": input })
        }));
        json!({
            "id": "msg_01", "type": "message", "role": "assistant", "model": model,
            "content": content, "stop_reason": "tool_use",
            "usage": { "input_tokens": 20_000, "output_tokens": 40 },
        })
    } else {
        let calls: Vec<Value> = calls
            .map(|(id, (name, input))| {
                let arguments = input.to_string();
                json!({
                    "id": id, "type": "function",
                    "function": { "name": name, "arguments": arguments },
                })
            })
            .collect();
        json!({
            "id": "chatcmpl-01", "object": "chat.completion", "model": model,
            "choices": [{
                "index": 0, "finish_reason": "tool_calls",
                "message": { "role": "assistant", "content": null, "tool_calls": calls },
            }],
            "usage": { "prompt_tokens": 20_000, "completion_tokens": 40, "total_tokens": 20_040 },
        })
    };
    Answer::json(200, &body)
}

/// Returns what the last calls came to: text, and whether it is an error where the wire says so.
fn results(asked: &Asked) -> Vec<String> {
    let turns = asked.body["messages"].as_array().unwrap();
    if asked.path == "/v1/messages" {
        let last = turns.last().unwrap()["content"].as_array().unwrap().iter();
        let results = last.filter(|it| it["type"] == "tool_result");
        return results.map(|it| it["content"].as_str().unwrap().to_owned()).collect();
    }
    let tools = turns.iter().rev().take_while(|it| it["role"] != "assistant");
    let mut found: Vec<String> = tools
        .filter(|it| it["role"] == "tool")
        .map(|it| it["content"].as_str().unwrap().to_owned())
        .collect();
    found.reverse();
    found
}

/// Returns the number of the entry with these words.
fn number(asked: &Asked, words: &str) -> String {
    let all = asked.body["messages"].to_string();
    let before = all.split(words).next().unwrap();
    let number = before.rsplit('[').next().unwrap().split(']').next().unwrap();
    number.to_owned()
}

fn summary(asked: &Asked, mark: &str) -> Value {
    let at = number(asked, "Never fill gaps with values");
    let mut text = String::new();
    for title in
        ["Completed Tasks", "Active Task", "Key Decisions", "User Directives", "Current Work"]
    {
        text.extend(["## ", title, "\n- Never fill gaps with values, ", mark, " [", &at, "]\n"]);
        text.extend(["- It fills 4711 gaps [", &at, "]\n"]);
    }
    json!({ "text": text })
}

struct Place {
    desk: Desk,
    project: PathBuf,
}

impl Place {
    fn new(wire: Wire, server: Server) -> Self {
        let desk = Desk::new(wire, server);
        desk.root.write("../project/notes.md", "The table has 77 columns.\n");
        desk.root.write("../project/key.env", &format!("TOKEN={SECRET}\n"));
        desk.root.write("../project/long.txt", &"some words ".repeat(8_000));
        desk.root.write("../outside.txt", "nobody's business\n");
        let project = desk.root.path("../project").canonicalize().unwrap();
        symlink(project.join("../outside.txt"), project.join("leads-out")).unwrap();
        Self { desk, project }
    }

    fn hand_over(&self, more: &[&str]) -> super::Ran {
        let path =
            format!("{}/tests/data/transcripts/claude-code.jsonl", env!("CARGO_MANIFEST_DIR"));
        let project = self.project.to_str().unwrap();
        let args =
            ["session", "compact", &path, "--style", "handoff", "--project", project, "--json"];
        self.desk.run(&[&args, more].concat())
    }
}

#[test]
fn a_model_hands_over_with_four_tools_and_sees_the_project_alone() {
    for wire in Wire::BOTH {
        let mut turn = 0;
        let server = Server::answering(move |asked| {
            turn += 1;
            let path = |it: &str| json!({ "path": it });
            match turn {
                1 => calling(
                    asked,
                    &[
                        ("read_file", path("notes.md")),
                        ("read_file", path("../outside.txt")),
                        ("read_file", path("leads-out")),
                        ("read_file", path("/etc/hosts")),
                        ("read_file", path("key.env")),
                        ("delete_file", path("notes.md")),
                        ("read_file", json!({ "file": "notes.md" })),
                    ],
                ),
                2 => calling(
                    asked,
                    &[
                        ("mark_read_required", path("notes.md")),
                        ("mark_read_required", path("long.txt")),
                        ("add_reference", path("long.txt")),
                        ("write_summary", json!({ "text": "## Completed Tasks\n- x [1]" })),
                    ],
                ),
                3 => calling(asked, &[("write_summary", summary(asked, "part by part"))]),
                4 => calling(asked, &[("write_summary", summary(asked, "piece by piece"))]),
                _ => asked.saying("Done.", Ends::Well),
            }
        });
        let place = Place::new(wire, server);
        let told = place.hand_over(&["--budget", "1000"]).ok().json_as("session-compact");
        let asked = place.desk.server.requests();
        assert_eq!(asked.len(), 5, "{wire:?}");
        let tools = asked[0].body["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 4);
        // What was read, and why the rest was not.
        let first = results(&asked[1]);
        assert!(first[0].contains("The table has 77 columns."), "{first:?}");
        for at in [1, 2, 3] {
            assert!(first[at].contains("outside the project"), "{first:?}");
        }
        assert!(first[4].contains("TOKEN=") && !first[4].contains(SECRET), "{first:?}");
        assert!(first[5].contains("no tool `delete_file`"), "{first:?}");
        assert!(first[6].contains("`path` is missing"), "{first:?}");
        let second = results(&asked[2]);
        assert!(second[0].contains("tokens are left"), "{second:?}");
        assert!(second[1].contains("it takes about"), "{second:?}");
        assert!(second[3].contains("\"Active Task\" is missing"), "{second:?}");
        for it in &asked {
            let sent = it.body.to_string();
            assert!(!sent.contains(SECRET) && !sent.contains("nobody's business"));
        }
        // What the server said goes back as it came.
        if wire == Wire::Anthropic {
            assert_eq!(asked[1].body["messages"][1]["content"][0]["signature"], "s");
        } else {
            let calls = &asked[1].body["messages"][2]["tool_calls"];
            assert_eq!(calls[0]["function"]["arguments"], "{\"path\":\"notes.md\"}");
        }
        // The last summary counts, line by line as the session bears it out.
        let said = told["summary"].as_str().unwrap();
        assert!(!said.contains("part by part") && !said.contains("4711"), "{said}");
        assert_eq!(
            said.matches("Never fill gaps with values, piece by piece").count(),
            5,
            "{said}"
        );
        assert_eq!(told["rejected"].as_array().unwrap().len(), 5);
        assert!(said.contains("## Required Reading\n\n- `notes.md`"), "{said}");
        assert!(said.contains("## References\n\n- `long.txt`"), "{said}");
        let next = told["continuation"].as_str().unwrap();
        assert!(next.contains("The table has 77 columns."), "{next}");
        // Each call is counted.
        let used = place.desk.run(&["usage", "--json"]).ok().json();
        assert_eq!(used["calls"], 5, "{used:#}");
        assert_eq!(
            fs::read_to_string(place.project.join("notes.md")).unwrap(),
            "The table has 77 columns.\n"
        );
    }
}

#[test]
fn a_loop_that_never_ends_is_stopped_and_said() {
    for (wire, writes) in [(Wire::Anthropic, true), (Wire::Openai, false)] {
        let mut turn = 0;
        let server = Server::answering(move |asked| {
            turn += 1;
            if writes && turn == 2 {
                return calling(asked, &[("write_summary", summary(asked, "part by part"))]);
            }
            calling(asked, &[("read_file", json!({ "path": "notes.md" }))])
        });
        let place = Place::new(wire, server);
        let ran = place.hand_over(&[]).ok();
        assert_eq!(place.desk.server.count(), 16);
        let said = ran.json()["summary"].as_str().unwrap().to_owned();
        if writes {
            assert!(ran.stderr.contains("stopped after 16 turns"), "{ran}");
            assert!(said.contains("Never fill gaps with values, part by part"), "{said}");
        } else {
            assert!(ran.stderr.contains("made without the model"), "{ran}");
            assert!(ran.stderr.contains("no summary in 16 turns"), "{ran}");
            assert!(said.contains("## Active Task"), "{said}");
        }
    }
}

#[test]
fn a_budget_ends_the_loop_and_leaves_what_stands() {
    for cap in [1, 3] {
        let mut turn = 0;
        let server = Server::answering(move |asked| {
            turn += 1;
            match turn {
                2 => calling(asked, &[("write_summary", summary(asked, "part by part"))]),
                _ => calling(asked, &[("read_file", json!({ "path": "notes.md" }))]),
            }
        });
        let mut place = Place::new(Wire::Openai, server);
        place.desk.set("/budget/day/calls", cap.into());
        let ran = place.hand_over(&[]).ok();
        assert_eq!(place.desk.server.count(), cap);
        assert!(ran.stderr.contains("budget"), "{ran}");
        let said = ran.json()["summary"].as_str().unwrap().to_owned();
        assert_eq!(said.contains("part by part"), cap == 3, "{said}");
        assert!(said.contains("## Current Work"));
    }
}

#[test]
fn a_program_is_given_no_tools_and_that_is_said() {
    let mut place = Place::new(Wire::Openai, Server::fluent());
    place.desk.set("/model/provider", json!("command"));
    place.desk.set("/model/command", json!(["cat"]));
    let ran = place.hand_over(&[]).ok();
    assert!(ran.stderr.contains("cannot use tools"), "{ran}");
    assert!(ran.json()["summary"].as_str().unwrap().contains("## Active Task"));
}
