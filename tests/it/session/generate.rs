//! Generates long, deterministic transcripts of Claude Code.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Returns a transcript of `turns` turns: in each a user message, agent text, a tool call, and its
/// result of some kilobytes; in some also a to-do list, a failure, a subagent, or a compaction
/// boundary.
pub(super) fn session(turns: usize) -> String {
    let mut text = String::new();
    let mut lines = 0_usize;
    for turn in 0..turns {
        let mut line = |kind: &str, side: bool, more: Value| {
            lines += 1;
            let seconds = turn * 30 + lines % 30;
            let (day, hour, minute) =
                (1 + seconds / 86_400, seconds / 3_600 % 24, seconds / 60 % 60);
            let mut value = json!({
                "parentUuid": null, "isSidechain": side, "userType": "external",
                "cwd": "/home/nia/tide", "sessionId": "generated", "version": "2.0.31",
                "gitBranch": "main", "type": kind, "uuid": format!("u-{lines:08}"),
                "timestamp": format!("2026-03-{day:02}T{hour:02}:{minute:02}:{:02}.000Z", seconds % 60),
            });
            let Value::Object(more) = more else { return };
            value.as_object_mut().unwrap().extend(more);
            writeln!(text, "{value}").unwrap();
        };
        let user = |content: Value| json!({"message": {"role": "user", "content": content}});
        let agent = |block: Value| json!({"message": {"role": "assistant", "model": "m", "content": [block]}});
        let id = format!("toolu_{turn}");
        line("user", false, user(json!(format!("Task {turn}: look at station {}", turn % 97))));
        line(
            "assistant",
            false,
            agent(json!({"type": "text", "text": format!("Looking at {turn}.")})),
        );
        let (name, input) = match turn % 4 {
            0 => ("Read", json!({"file_path": format!("/home/nia/tide/src/m{}.py", turn % 50)})),
            1 => ("Bash", json!({"command": format!("tide check {}", turn % 40)})),
            2 => (
                "Edit",
                json!({"file_path": format!("/home/nia/tide/src/m{}.py", turn % 30),
                                 "old_string": "a", "new_string": "b"}),
            ),
            _ => ("Grep", json!({"pattern": format!("station_{turn}")})),
        };
        line(
            "assistant",
            false,
            agent(json!({"type": "tool_use", "id": id, "name": name, "input": input})),
        );
        let failed = turn % 25 == 1;
        let output = if failed {
            format!("Exit code 1\nstation {} has no readings", turn % 97)
        } else {
            format!("line {turn} of the output of a tool, with readings 1.25 and 3.75\n").repeat(60)
        };
        let mut result = user(json!([{"type": "tool_result", "tool_use_id": id, "content": output,
                                      "is_error": failed}]));
        result["toolUseResult"] = json!({"stdout": output, "stderr": "", "interrupted": false});
        line("user", false, result);
        if turn % 50 == 10 {
            line("user", true, user(json!("count the stations")));
            line("assistant", true, agent(json!({"type": "text", "text": "97"})));
        }
        if turn % 100 == 60 {
            let todos = json!([{"content": format!("Stations up to {turn}"), "status": "pending"}]);
            let input = json!({"todos": todos});
            let id = format!("todo_{turn}");
            line(
                "assistant",
                false,
                agent(json!({"type": "tool_use", "id": id, "name": "TodoWrite", "input": input})),
            );
            line(
                "user",
                false,
                user(json!([{"type": "tool_result", "tool_use_id": id, "content": "ok"}])),
            );
        }
        if turn % 1_000 == 999 {
            line(
                "system",
                false,
                json!({"subtype": "compact_boundary",
                "compactMetadata": {"trigger": "auto", "preTokens": 150_000}}),
            );
        }
    }
    text
}
