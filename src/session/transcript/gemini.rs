//! Lines of Gemini CLI: `~/.gemini/tmp/PROJECT/chats/session-*.jsonl`.
//!
//! The first line has the session's id and no folder. A message has an `id` and a `type`; a line with the id of
//! an earlier one is the same message with more in it, as the tool calls of an answer. `{"$set": …}` changes
//! the session's state. If it has `messages`, they replace all others: at the start, and after a compaction; what
//! the user types is always in a line of its own, as are most messages that the program adds. `{"$rewindTo": ID}`
//! discards a message and all that follow. An older session is one JSON object with the same `messages`.

use serde_json::Value;

use super::{
    DISCARDED, EntryBuilder, EntryContent, claude::content_text, parse_time, string_field,
    user_text,
};

/// The answer that the program gives in place of the agent to the summary of a compaction.
const SUMMARY_REPLY: &str = "Got it. Thanks for the additional context!";
/// What the program says in place of the user when an answer ended early.
const CONTINUE: &str = "Please continue.";
/// Encloses the contents of files that a message names with `@`.
const FILES_START: &str = "--- Content from referenced files ---";
const FILES_END: &str = "--- End of content ---";
/// Begins a message about a command that the user typed for the shell, between fences.
const SHELL_START: &str = "I ran the following shell command:\n```sh\n";
/// Begins other messages that the program adds in the place of the user.
const PROGRAM_STARTS: [&str; 5] = [
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor",
    "User has manually exited Plan Mode. Switching to",
    "Plan approved. Switching to",
    "- **Workspace Directories:**\n",
];
/// Begins the list of folders in the first message, which the program writes.
const FOLDERS_START: &str = "**Workspace Directories:**\n";

/// Returns whether a line alone shows this format.
pub(super) fn is_line(line: &Value) -> bool {
    let has = |key: &str| line.get(key).is_some();
    has("$set")
        || has("$rewindTo")
        || has("sessionId") && has("projectHash")
        || has("id") && string_field(line, "type") == Some("gemini")
}

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    if let Some(changed) = line.get("$set") {
        read_state(entry, changed);
        read_history(entry, changed.get("messages"));
    } else if let Some(id) = string_field(line, "$rewindTo") {
        discard_from(entry, id);
    } else if line.get("sessionId").is_some() {
        read_state(entry, line);
        let messages = line.get("messages").and_then(Value::as_array);
        messages.into_iter().flatten().for_each(|it| read_message(entry, it));
    } else if line.get("id").is_some_and(Value::is_string) {
        read_message(entry, line);
    } else {
        entry.add_unknown(string_field(line, "type").unwrap_or("without a type"));
    }
}

/// Reads the session's id and folder, and whether it belongs to another session.
fn read_state(entry: &mut EntryBuilder<'_>, state: &Value) {
    if let Some(id) = string_field(state, "sessionId").filter(|it| !it.is_empty()) {
        entry.transcript.session = Some(id.to_owned());
    }
    let folders = state.get("directories").and_then(Value::as_array);
    if let Some(folder) = folders.and_then(|it| it.first()?.as_str()) {
        entry.transcript.cwd = Some(folder.to_owned());
    }
    entry.transcript.is_subagent |= string_field(state, "kind") == Some("subagent");
}

/// Reads a message, or what has come to it since an earlier line.
fn read_message(entry: &mut EntryBuilder<'_>, message: &Value) {
    let id = string_field(message, "id").unwrap_or_default();
    entry.at = parse_time(message.get("timestamp"));
    if begin(entry, id.to_owned()) {
        let content = message.get("content");
        let text = content_text(content);
        entry.positions.insert(text_key(&text), entry.transcript.entries.len());
        match string_field(message, "type").unwrap_or_default() {
            "user" => read_user(entry, message.get("displayContent").or(content)),
            "gemini" => entry.add_assistant_text(&text),
            "info" | "warning" | "error" if text.is_empty() => {}
            "info" | "warning" | "error" => entry.push(EntryContent::Notice(text)),
            kind => entry.add_unknown(kind),
        }
    }
    let calls = message.get("toolCalls").and_then(Value::as_array);
    calls.into_iter().flatten().for_each(|it| read_call(entry, id, it));
}

/// Begins the entries with this id; returns whether there are none yet.
fn begin(entry: &mut EntryBuilder<'_>, id: String) -> bool {
    entry.has_own_id = true;
    entry.id.clone_from(&id);
    let is_new = !entry.positions.contains_key(&id);
    let next = entry.transcript.entries.len();
    entry.positions.entry(id).or_insert(next);
    is_new
}

fn read_user(entry: &mut EntryBuilder<'_>, content: Option<&Value>) {
    let is_result = |it: &Value| it.get("functionResponse").is_some();
    if content.and_then(Value::as_array).is_some_and(|it| it.iter().any(is_result)) {
        return entry.push(EntryContent::Other("results".to_owned()));
    }
    let mut text = content_text(content);
    while let Some((before, after)) = text.split_once(FILES_START) {
        let behind = after.split_once(FILES_END).map_or("", |it| it.1);
        text = format!("{}{behind}", before.trim_end());
    }
    if text == CONTINUE || PROGRAM_STARTS.iter().any(|it| text.starts_with(it)) {
        return entry.push(EntryContent::Notice(text));
    }
    if let Some(command) = text.strip_prefix(SHELL_START) {
        let command = command.split("\n```").next().unwrap_or_default();
        return entry.push(EntryContent::Command(format!("!{}", command.trim())));
    }
    entry.add_user_text(&text);
}

/// Reads the messages that replace all others. New ones come from the program.
fn read_history(entry: &mut EntryBuilder<'_>, messages: Option<&Value>) {
    let messages = messages.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    for (n, message) in messages.iter().enumerate() {
        let text = content_text(message.get("content"));
        let id = string_field(message, "id").unwrap_or_default();
        entry.at = parse_time(message.get("timestamp"));
        let key = text_key(&text);
        let known = entry.positions.get(&key).copied();
        let mut is_new = begin(entry, id.to_owned());
        if let Some(position) = known.filter(|_| is_new) {
            // After a compaction the messages that stay have other ids.
            entry.positions.insert(id.to_owned(), position);
            is_new = false;
        }
        entry.positions.entry(key).or_insert(entry.transcript.entries.len());
        let is_summary =
            messages.get(n + 1).is_some_and(|it| content_text(it.get("content")) == SUMMARY_REPLY);
        if !is_new || string_field(message, "type") != Some("user") {
            continue;
        }
        if is_summary {
            entry.push(EntryContent::Boundary { trigger: None, tokens_before: None });
            entry.push(EntryContent::Summary(text));
        } else {
            if let Some((_, folders)) = text.split_once(FOLDERS_START)
                && let Some(folder) =
                    folders.lines().next().and_then(|it| it.trim().strip_prefix("- "))
            {
                entry.transcript.cwd.get_or_insert_with(|| folder.to_owned());
            }
            for part in user_text::split_user_text(&text) {
                entry.push(match part {
                    EntryContent::User(text) => EntryContent::Notice(text),
                    part => part,
                });
            }
        }
    }
}

/// Reads a call with its result, which are recorded together.
fn read_call(entry: &mut EntryBuilder<'_>, message: &str, call: &Value) {
    let id = string_field(call, "id").unwrap_or_default();
    if !begin(entry, format!("{message}/{id}")) {
        return;
    }
    entry.at = parse_time(call.get("timestamp")).or(entry.at);
    let name = string_field(call, "name").unwrap_or_default();
    let input = call.get("args").unwrap_or(&Value::Null);
    entry.add_call(Some(id), name, input);
    begin(entry, format!("{message}/{id}/result"));
    let is_error = string_field(call, "status").is_some_and(|it| it != "success");
    let output = result_text(call);
    entry.add_result(Some(id), &output, is_error);
    let questions = input.get("questions").and_then(Value::as_array);
    if let Some(questions) = questions.filter(|_| name == "ask_user") {
        read_answers(entry, questions, &output);
    }
}

/// Reads the user's answers to `ask_user`: `{"answers": {"0": …}}`, by the number of the question.
fn read_answers(entry: &mut EntryBuilder<'_>, questions: &[Value], output: &str) {
    let Ok(output) = serde_json::from_str::<Value>(output) else { return };
    let answers = questions.iter().enumerate().filter_map(|(n, question)| {
        let answer = output.get("answers")?.get(n.to_string())?;
        let question = string_field(question, "question").unwrap_or_default();
        Some((question.to_owned(), content_text(Some(answer)), String::new()))
    });
    entry.add_answers(&answers.collect::<Vec<_>>());
}

/// Returns the output of a call: text, or parts with a response of the tool.
fn result_text(call: &Value) -> String {
    let Some(parts) = call.get("result").and_then(Value::as_array) else {
        let result = call.get("result").filter(|it| !it.is_null());
        return content_text(result.or(call.get("resultDisplay").filter(|it| it.is_string())));
    };
    let texts = parts.iter().map(|part| {
        let response = part.get("functionResponse").and_then(|it| it.get("response"));
        let output = response.and_then(|it| it.get("output").or_else(|| it.get("error")));
        match output.or(response) {
            Some(output) => content_text(Some(output)),
            None => string_field(part, "text").unwrap_or_default().to_owned(),
        }
    });
    texts.filter(|it| !it.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Discards a message and all that follow; without that message, all.
fn discard_from(entry: &mut EntryBuilder<'_>, id: &str) {
    let first = entry.positions.get(id).copied().unwrap_or(0);
    for old in entry.transcript.entries.iter_mut().skip(first) {
        old.set_content(EntryContent::Other(DISCARDED.to_owned()));
    }
}

/// Returns the key by which a text is known among the ids of messages.
fn text_key(text: &str) -> String {
    format!("text {}", crate::memory::hash::ContentHash::of(text.as_bytes()).hex16())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::transcript::{
        Transcript, TranscriptFormat,
        tool::ToolKind::{Memory, Other, Read, Shell},
    };

    fn read_lines(lines: &[Value]) -> Transcript {
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let transcript = super::super::read(text.as_bytes(), None).unwrap();
        assert_eq!(transcript.format, TranscriptFormat::Gemini);
        assert_eq!(transcript.anomalies.unread.len(), 0, "{:?}", transcript.anomalies);
        transcript
    }

    fn start() -> Value {
        json!({"sessionId": "s", "projectHash": "p", "startTime": "2026-04-09T08:00:00Z",
            "lastUpdated": "2026-04-09T08:00:00Z", "kind": "main"})
    }

    fn message(id: &str, kind: &str, text: &str) -> Value {
        let content = if kind == "user" { json!([{"text": text}]) } else { json!(text) };
        json!({"id": id, "timestamp": "2026-04-09T08:01:00Z", "type": kind, "content": content})
    }

    fn with_calls(mut message: Value, calls: Value) -> Value {
        message["toolCalls"] = calls;
        message
    }

    fn call(id: &str, name: &str, args: &Value, output: &str, status: &str) -> Value {
        let response =
            json!({"functionResponse": {"id": id, "name": name, "response": {"output": output}}});
        json!({"id": id, "name": name, "args": args, "result": [response], "status": status,
            "timestamp": "2026-04-09T08:02:00Z"})
    }

    fn messages(transcript: &Transcript) -> Vec<&str> {
        transcript.own_entries().filter_map(|it| it.content.user_words()).collect()
    }

    #[test]
    fn a_message_that_is_written_again_is_read_once() {
        let list = call("c1", "read_file", &json!({"file_path": "a.rs"}), "fn a() {}", "success");
        let asked = json!({"questions": [{"question": "Which datum?"}, {"question": "Rows?"}]});
        let asked = call("c2", "ask_user", &asked, r#"{"answers": {"0": "ZH"}}"#, "success");
        let own = json!({"query": "datum"});
        let own = call("c3", "mcp_memoird_memory_search", &own, "Brest has two", "success");
        let refused = call("c4", "run_shell_command", &json!({"command": "rm x"}), "", "cancelled");
        let answer = message("g", "gemini", "I look at it.");
        let lines = [
            start(),
            message("u", "user", "Import the Brest table"),
            answer.clone(),
            json!({"$set": {"lastUpdated": "2026-04-09T08:01:00Z"}}),
            with_calls(answer.clone(), json!([list])),
            with_calls(answer.clone(), json!([list, asked, own, refused])),
            message("i", "info", "Switched to another model"),
            message("u2", "user", "Import the Brest table"),
        ];
        let transcript = read_lines(&lines);
        let words = ["Import the Brest table", "Which datum? ZH", "Import the Brest table"];
        assert_eq!(messages(&transcript), words);
        let kinds = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Call(call) => Some(call.kind),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [Read, Other, Memory, Shell]);
        let results = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Result(result) => Some((&result.text[..], result.is_error)),
            _ => None,
        });
        let answers = r#"{"answers": {"0": "ZH"}}"#;
        assert_eq!(
            results.collect::<Vec<_>>(),
            [("fn a() {}", false), (answers, false), ("", true)]
        );
        assert_eq!(transcript.session.as_deref(), Some("s"));
        // A later save continues behind the last entry of an earlier one.
        let earlier = read_lines(&lines[..4]);
        let rest = transcript.after_line(earlier.last_line().unwrap()).unwrap();
        assert_eq!(messages(&rest), &words[1..]);
    }

    #[test]
    fn an_older_session_is_one_object() {
        let mut whole = start();
        whole["messages"] =
            json!([message("u", "user", "Import it"), message("g", "gemini", "Done.")]);
        for text in [format!("{whole:#}\n"), format!("{whole:#}"), whole.to_string()] {
            let transcript = super::super::read(text.as_bytes(), None).unwrap();
            assert_eq!(messages(&transcript), ["Import it"]);
            assert_eq!(transcript.last_line(), Some("g"));
        }
        for text in ["{\n\"sessionId\": 1", "{\n\"sessionId\": 1\n}\n"] {
            assert!(super::super::read(text.as_bytes(), None).is_err());
        }
    }

    #[test]
    fn text_of_the_program_is_not_the_users() {
        let folders = "This is the Gemini CLI.\n- **Workspace Directories:**\n  - /home/nia/tide\n";
        let folders = format!("<session_context>\n{folders}</session_context>");
        let context = "&lt;memoird-context&gt;\n- We use ZH\n&lt;/memoird-context&gt;";
        let files = "Read @a.md\n--- Content from referenced files ---\nWe never use ZH.\n--- End of content ---";
        let shell = "I ran the following shell command:\n```sh\nmake\n```\n\nThis produced the following result:\n```\nWe decided.\n```";
        let first = message("f", "user", &folders);
        let asked = message("u", "user", "Keep the decimal comma");
        let answered = message("g", "gemini", "Kept.");
        let transcript = read_lines(&[
            start(),
            json!({"$set": {"messages": [first], "lastUpdated": "2026-04-09T08:00:00Z"}}),
            message("h", "user", &format!("<hook_context>{context}</hook_context>\n\nStart")),
            asked,
            answered,
            message("r", "user", files),
            message("p", "user", "Please continue."),
            message("s", "user", shell),
            message("e", "user", "Here is the user's editor context as a JSON object: we use ZH."),
            // A compaction, in which one message returns under another id.
            json!({"$set": {"messages": [first, message("n", "user", "<state_snapshot>We use ZH</state_snapshot>"),
                message("a", "gemini", SUMMARY_REPLY), message("u9", "user", "Keep the decimal comma"),
                message("g9", "gemini", "Kept.")]}}),
            message("v", "user", "Go on"),
            message("w", "user", "Go on"),
            json!({"$rewindTo": "w"}),
        ]);
        let words = ["Start", "Keep the decimal comma", "Read @a.md", "!make", "Go on"];
        assert_eq!(messages(&transcript), words);
        assert_eq!(transcript.cwd.as_deref(), Some("/home/nia/tide"));
        let boundaries = transcript
            .entries
            .iter()
            .filter(|it| matches!(it.content, EntryContent::Boundary { .. }));
        assert_eq!(boundaries.count(), 1);
        let agent =
            |it: &&super::super::TranscriptEntry| matches!(it.content, EntryContent::Assistant(_));
        assert_eq!(transcript.entries.iter().filter(agent).count(), 1);
    }

    #[test]
    fn a_message_is_rewound_under_the_id_that_a_compaction_gave_it() {
        let transcript = read_lines(&[
            start(),
            message("u1", "user", "Use XML"),
            message("u2", "user", "Use YAML"),
            json!({"$set": {"messages": [message("n", "user", "<state_snapshot>XML</state_snapshot>"),
                message("a", "gemini", SUMMARY_REPLY), message("u9", "user", "Use YAML")]}}),
            json!({"$rewindTo": "u9"}),
            message("u3", "user", "Use JSON"),
        ]);
        assert_eq!(messages(&transcript), ["Use XML", "Use JSON"]);
    }

    #[test]
    fn what_was_rewound_and_what_a_subagent_did_is_not_the_users() {
        let lines = [
            start(),
            message("a", "user", "Use XML"),
            message("b", "user", "Use YAML"),
            with_calls(message("c", "gemini", ""), json!([])),
            json!({"$rewindTo": "b"}),
            message("d", "user", "Use JSON"),
        ];
        assert_eq!(messages(&read_lines(&lines)), ["Use XML", "Use JSON"]);
        let all =
            [&lines[..], &[json!({"$rewindTo": "gone"}), message("e", "user", "Stop")]].concat();
        assert_eq!(messages(&read_lines(&all)), ["Stop"]);
        let mut side = start();
        side["kind"] = json!("subagent");
        side["directories"] = json!(["/home/nia/tide"]);
        let transcript = read_lines(&[side, message("a", "user", "Review this")]);
        assert!(transcript.is_subagent && messages(&transcript).is_empty());
        assert_eq!(transcript.cwd.as_deref(), Some("/home/nia/tide"));
    }
}
