//! Events of Copilot CLI: `~/.copilot/session-state/SESSION/events.jsonl`.
//!
//! Each line is an event with a `type`, `data`, an `id`, and the id of the event before. Events of an agent that the
//! session's agent started have an `agentId`. What the user rewinds is removed from the file. The context that a hook
//! adds is in no event.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, parse_time, string_field};

/// Returns whether a line alone shows this format.
pub(super) fn is_line(line: &Value) -> bool {
    string_field(line, "type").is_some_and(|it| it.contains('.'))
        && line.get("data").is_some_and(Value::is_object)
        && line.get("parentId").is_some()
}

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    let kind = string_field(line, "type").unwrap_or_default();
    let Some(data) = line.get("data") else { return entry.add_unknown(kind) };
    string_field(line, "id").unwrap_or_default().clone_into(&mut entry.id);
    entry.has_own_id = true;
    entry.at = parse_time(line.get("timestamp"));
    entry.is_subagent = line.get("agentId").is_some_and(Value::is_string);
    let text = |key: &str| string_field(data, key).unwrap_or_default();
    match kind {
        "session.start" | "session.resume" => read_context(entry, data, data.get("context")),
        "session.context_changed" => read_context(entry, data, Some(data)),
        "session.error" => entry.push(EntryContent::Notice(text("message").to_owned())),
        "session.compaction_complete" if data.get("success") == Some(&Value::Bool(true)) => {
            entry.push(EntryContent::Boundary {
                trigger: string_field(data, "trigger").map(str::to_owned),
                tokens_before: data.get("preCompactionTokens").and_then(Value::as_u64),
            });
            entry.push(EntryContent::Summary(text("summaryContent").to_owned()));
        }
        "user.message" => {
            let is_continuation = data.get("isAutopilotContinuation") == Some(&Value::Bool(true));
            let is_typed = matches!(text("source"), "" | "user") && !is_continuation;
            if is_typed {
                entry.add_user_text(text("content"));
            } else {
                entry.push(EntryContent::Notice(text("content").to_owned()));
            }
        }
        "assistant.message" => entry.add_assistant_text(text("content")),
        "tool.user_requested" => {
            let id = text("toolCallId").to_owned();
            entry.positions.insert(id, entry.transcript.entries.len());
            let command = data.get("arguments").and_then(|it| string_field(it, "command"));
            entry.push(match command {
                Some(command) => EntryContent::Command(format!("!{}", command.trim())),
                None => EntryContent::Other(kind.to_owned()),
            });
        }
        // The call of a command that the user typed.
        "tool.execution_start" | "tool.execution_complete"
            if entry.positions.contains_key(text("toolCallId")) =>
        {
            entry.push(EntryContent::Other(kind.to_owned()));
        }
        "tool.execution_start" => {
            let input = data.get("arguments").unwrap_or(&Value::Null);
            entry.add_call(string_field(data, "toolCallId"), text("toolName"), input);
        }
        "tool.execution_complete" => {
            let is_error = data.get("success") == Some(&Value::Bool(false));
            let (key, words) = if is_error { ("error", "message") } else { ("result", "content") };
            let output = data.get(key).and_then(|it| string_field(it, words));
            entry.add_result(
                string_field(data, "toolCallId"),
                output.unwrap_or_default(),
                is_error,
            );
        }
        // Most events are about the program's own work.
        kind => entry.push(EntryContent::Other(super::truncate(kind, 60))),
    }
}

/// Reads the session's id, folder, branch, and agent.
fn read_context(entry: &mut EntryBuilder<'_>, data: &Value, context: Option<&Value>) {
    if let Some(session) = string_field(data, "sessionId") {
        entry.transcript.session = Some(session.to_owned());
    }
    if let Some(version) = string_field(data, "copilotVersion") {
        entry.transcript.agent = Some(format!("copilot {version}"));
    }
    let text = |key: &str| context.and_then(|it| string_field(it, key)).map(str::to_owned);
    if let Some(cwd) = text("cwd") {
        entry.transcript.cwd = Some(cwd);
        entry.transcript.branch = text("branch");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::transcript::{Transcript, TranscriptFormat, tool::ToolKind};

    fn read_events(events: &[(&str, Value)]) -> Transcript {
        let line = |(n, (kind, data)): (usize, &(&str, Value))| {
            let mut line = json!({"type": kind, "data": data, "id": format!("e{n}"),
                "timestamp": "2026-04-09T08:01:00.120Z", "parentId": null});
            if let Some(agent) = data.get("agent") {
                line["agentId"] = agent.clone();
            }
            line.to_string()
        };
        let text = events.iter().enumerate().map(line).collect::<Vec<_>>().join("\n");
        let transcript = super::super::read(text.as_bytes(), None).unwrap();
        assert_eq!(transcript.format, TranscriptFormat::Copilot);
        assert_eq!(transcript.anomalies.unread.len(), 0, "{:?}", transcript.anomalies);
        transcript
    }

    #[test]
    fn messages_calls_and_a_compaction_are_read() {
        let start = json!({"sessionId": "s", "version": 1, "producer": "copilot-agent",
            "copilotVersion": "1.0.102", "context": {"cwd": "/home/nia/tide", "branch": "main"}});
        let search = json!({"toolCallId": "c1", "toolName": "memoird-memory_search",
            "mcpServerName": "memoird", "arguments": {"query": "datum"}});
        let found =
            json!({"toolCallId": "c1", "success": true, "result": {"content": "Brest has two"}});
        let run = json!({"toolCallId": "c2", "toolName": "bash", "arguments": {"command": "make"}});
        let failed = json!({"toolCallId": "c2", "success": false, "error": {"message": "denied"}});
        let typed =
            json!({"toolCallId": "c3", "toolName": "bash", "arguments": {"command": "ls "}});
        let listed = json!({"toolCallId": "c3", "success": true, "isUserRequested": true, "result": {"content": "a"}});
        let compacted = json!({"success": true, "preCompactionTokens": 9000, "trigger": "manual",
            "summaryContent": "## Goal"});
        let transcript = read_events(&[
            ("session.start", start),
            ("hook.start", json!({"hookType": "sessionStart"})),
            (
                "user.message",
                json!({"content": "Import the Brest table", "transformedContent": "<t>now</t> Import the Brest table"}),
            ),
            ("assistant.message", json!({"content": "I look at it.", "toolRequests": []})),
            ("tool.execution_start", search),
            ("tool.execution_complete", found),
            ("tool.execution_start", run),
            ("tool.execution_complete", failed),
            ("tool.user_requested", typed.clone()),
            ("tool.execution_start", typed),
            ("tool.execution_complete", listed),
            ("user.message", json!({"content": "Use this skill", "source": "skill-pdf"})),
            ("assistant.message", json!({"content": "Found a file.", "agent": "a1"})),
            ("session.compaction_complete", compacted),
        ]);
        let contents: Vec<_> = transcript
            .own_entries()
            .map(|it| &it.content)
            .filter(|it| !matches!(it, EntryContent::Other(_)))
            .collect();
        let [
            EntryContent::User(asked),
            EntryContent::Assistant(_),
            EntryContent::Call(search),
            EntryContent::Injected,
            EntryContent::Call(run),
            EntryContent::Result(result),
            EntryContent::Command(typed),
            EntryContent::Notice(_),
            EntryContent::Boundary { tokens_before: Some(9000), .. },
            EntryContent::Summary(summary),
        ] = &contents[..]
        else {
            panic!("{contents:?}")
        };
        assert_eq!((search.kind, run.kind), (ToolKind::Memory, ToolKind::Shell));
        assert_eq!((&result.text[..], result.is_error), ("denied", true));
        assert_eq!([asked, typed, summary], ["Import the Brest table", "!ls", "## Goal"]);
        assert_eq!(transcript.entries.iter().filter(|it| it.is_subagent).count(), 1);
        assert_eq!(transcript.cwd.as_deref(), Some("/home/nia/tide"));
        assert_eq!(transcript.branch.as_deref(), Some("main"));
        assert_eq!(transcript.session.as_deref(), Some("s"));
        assert_eq!(transcript.agent.as_deref(), Some("copilot 1.0.102"));
    }
}
