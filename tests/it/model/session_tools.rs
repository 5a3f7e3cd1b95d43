//! Handoff of a session by a model that uses tools.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};

use super::{
    super::support::server::{Answer, ModelRequest, Server, StopReason},
    Wire, Workspace,
};

/// An invented token.
const SECRET: &str = "ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5";

/// Returns an answer that calls tools, in the wire format of the request.
fn calling(request: &ModelRequest, calls: &[(&str, Value)]) -> Answer {
    let model = &request.body["model"];
    let turn = request.body["messages"].as_array().unwrap().len();
    let calls = calls.iter().enumerate().map(|(n, it)| (format!("call_{turn}_{n}"), it));
    let body = if request.path == "/v1/messages" {
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

/// Returns the texts of the latest tool results in a request.
fn results(request: &ModelRequest) -> Vec<String> {
    let turns = request.body["messages"].as_array().unwrap();
    if request.path == "/v1/messages" {
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

/// Returns the number of the transcript entry that contains these words.
fn entry_number(request: &ModelRequest, words: &str) -> String {
    let all = request.body["messages"].to_string();
    let before = all.split(words).next().unwrap();
    let number = before.rsplit('[').next().unwrap().split(']').next().unwrap();
    number.to_owned()
}

fn summary(request: &ModelRequest, mark: &str) -> Value {
    let at = entry_number(request, "Never fill gaps with values");
    let mut text = String::new();
    for title in
        ["Completed Tasks", "Active Task", "Key Decisions", "User Directives", "Current Work"]
    {
        text.extend(["## ", title, "\n- Never fill gaps with values, ", mark, " [", &at, "]\n"]);
        text.extend(["- It fills 4711 gaps [", &at, "]\n"]);
    }
    json!({ "text": text })
}

/// A workspace with a project folder that the tools may read.
struct ProjectWorkspace {
    workspace: Workspace,
    folder: PathBuf,
}

impl ProjectWorkspace {
    fn new(wire: Wire, server: Server) -> Self {
        let workspace = Workspace::new(wire, server);
        workspace.root.write("../project/notes.md", "The table has 77 columns.\n");
        workspace.root.write("../project/key.env", &format!("TOKEN={SECRET}\n"));
        workspace.root.write("../project/long.txt", &"some words ".repeat(8_000));
        workspace.root.write("../outside.txt", "nobody's business\n");
        let folder = workspace.root.path("../project").canonicalize().unwrap();
        symlink(folder.join("../outside.txt"), folder.join("leads-out")).unwrap();
        Self { workspace, folder }
    }

    fn hand_over(&self, more: &[&str]) -> super::CommandOutput {
        let path =
            format!("{}/tests/data/transcripts/claude-code.jsonl", env!("CARGO_MANIFEST_DIR"));
        let folder = self.folder.to_str().unwrap();
        let args =
            ["session", "compact", &path, "--style", "handoff", "--project", folder, "--json"];
        self.workspace.run(&[&args, more].concat())
    }
}

#[test]
fn a_handoff_uses_four_tools_limited_to_the_project() {
    for wire in Wire::BOTH {
        let mut turn = 0;
        let server = Server::answering(move |request| {
            turn += 1;
            let path = |it: &str| json!({ "path": it });
            match turn {
                1 => calling(
                    request,
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
                    request,
                    &[
                        ("mark_read_required", path("notes.md")),
                        ("mark_read_required", path("long.txt")),
                        ("add_reference", path("long.txt")),
                        ("write_summary", json!({ "text": "## Completed Tasks\n- x [1]" })),
                    ],
                ),
                3 => calling(request, &[("write_summary", summary(request, "part by part"))]),
                4 => calling(request, &[("write_summary", summary(request, "piece by piece"))]),
                _ => request.reply_with("Done.", StopReason::Complete),
            }
        });
        let project = ProjectWorkspace::new(wire, server);
        let output = project.hand_over(&["--budget", "1000"]).ok().json_as("session-compact");
        let requests = project.workspace.server.requests();
        assert_eq!(requests.len(), 5, "{wire:?}");
        let tools = requests[0].body["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 4);
        // Which files were read, and why the others were not.
        let first = results(&requests[1]);
        assert!(first[0].contains("The table has 77 columns."), "{first:?}");
        for at in [1, 2, 3] {
            assert!(first[at].contains("outside the project"), "{first:?}");
        }
        assert!(first[4].contains("TOKEN=") && !first[4].contains(SECRET), "{first:?}");
        assert!(first[5].contains("no tool `delete_file`"), "{first:?}");
        assert!(first[6].contains("`path` is missing"), "{first:?}");
        let second = results(&requests[2]);
        assert!(second[0].contains("tokens are left"), "{second:?}");
        assert!(second[1].contains("it takes about"), "{second:?}");
        assert!(second[3].contains("\"Active Task\" is missing"), "{second:?}");
        for it in &requests {
            let sent = it.body.to_string();
            assert!(!sent.contains(SECRET) && !sent.contains("nobody's business"));
        }
        // The previous turns of the server are sent back unchanged.
        if wire == Wire::Anthropic {
            assert_eq!(requests[1].body["messages"][1]["content"][0]["signature"], "s");
        } else {
            let calls = &requests[1].body["messages"][2]["tool_calls"];
            assert_eq!(calls[0]["function"]["arguments"], "{\"path\":\"notes.md\"}");
        }
        // The last summary is used, without the lines that the session does not support.
        let summary_text = output["summary"].as_str().unwrap();
        assert!(
            !summary_text.contains("part by part") && !summary_text.contains("4711"),
            "{summary_text}"
        );
        assert_eq!(
            summary_text.matches("Never fill gaps with values, piece by piece").count(),
            5,
            "{summary_text}"
        );
        assert_eq!(output["rejected"].as_array().unwrap().len(), 5);
        assert!(summary_text.contains("## Required Reading\n\n- `notes.md`"), "{summary_text}");
        assert!(summary_text.contains("## References\n\n- `long.txt`"), "{summary_text}");
        let next = output["continuation"].as_str().unwrap();
        assert!(next.contains("The table has 77 columns."), "{next}");
        // Each call is recorded.
        let used = project.workspace.run(&["usage", "--json"]).ok().json();
        assert_eq!(used["calls"], 5, "{used:#}");
        assert_eq!(
            fs::read_to_string(project.folder.join("notes.md")).unwrap(),
            "The table has 77 columns.\n"
        );
    }
}

#[test]
fn an_endless_tool_loop_is_stopped_and_reported() {
    for (wire, writes) in [(Wire::Anthropic, true), (Wire::Openai, false)] {
        let mut turn = 0;
        let server = Server::answering(move |request| {
            turn += 1;
            if writes && turn == 2 {
                return calling(request, &[("write_summary", summary(request, "part by part"))]);
            }
            calling(request, &[("read_file", json!({ "path": "notes.md" }))])
        });
        let project = ProjectWorkspace::new(wire, server);
        let ran = project.hand_over(&[]).ok();
        assert_eq!(project.workspace.server.count(), 16);
        let summary_text = ran.json()["summary"].as_str().unwrap().to_owned();
        if writes {
            assert!(ran.stderr.contains("stopped after 16 turns"), "{ran}");
            assert!(
                summary_text.contains("Never fill gaps with values, part by part"),
                "{summary_text}"
            );
        } else {
            assert!(ran.stderr.contains("made without the model"), "{ran}");
            assert!(ran.stderr.contains("no summary in 16 turns"), "{ran}");
            assert!(summary_text.contains("## Active Task"), "{summary_text}");
        }
    }
}

#[test]
fn an_exhausted_budget_ends_the_loop_and_keeps_the_last_summary() {
    for cap in [1, 3] {
        let mut turn = 0;
        let server = Server::answering(move |request| {
            turn += 1;
            match turn {
                2 => calling(request, &[("write_summary", summary(request, "part by part"))]),
                _ => calling(request, &[("read_file", json!({ "path": "notes.md" }))]),
            }
        });
        let mut project = ProjectWorkspace::new(Wire::Openai, server);
        project.workspace.set("/budget/day/calls", cap.into());
        let ran = project.hand_over(&[]).ok();
        assert_eq!(project.workspace.server.count(), cap);
        assert!(ran.stderr.contains("budget"), "{ran}");
        let summary_text = ran.json()["summary"].as_str().unwrap().to_owned();
        assert_eq!(summary_text.contains("part by part"), cap == 3, "{summary_text}");
        assert!(summary_text.contains("## Current Work"));
    }
}

#[test]
fn a_program_gets_no_tools_and_the_fallback_is_reported() {
    let mut project = ProjectWorkspace::new(Wire::Openai, Server::well_behaved());
    project.workspace.set("/model/provider", json!("command"));
    project.workspace.set("/model/command", json!(["cat"]));
    let ran = project.hand_over(&[]).ok();
    assert!(ran.stderr.contains("cannot use tools"), "{ran}");
    assert!(ran.json()["summary"].as_str().unwrap().contains("## Active Task"));
}
