//! Lines of Codex: `rollout-*.jsonl`.
//!
//! Since late 2025 each line is `{timestamp, type, payload}`: `session_meta` first, `turn_context` with
//! the folder, `response_item` with the messages to and from the model, and `event_msg` with what was
//! displayed, which repeats them and is skipped. Older files contain bare items.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, claude::content_text, string_field, truncate};

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    let payload = line.get("payload");
    match (string_field(line, "type").unwrap_or_default(), payload) {
        ("session_meta", Some(meta)) => read_session_meta(entry, meta),
        ("turn_context", Some(turn)) => {
            set_cwd(entry, turn);
            entry.push(EntryContent::Other("turn_context".to_owned()));
        }
        ("response_item", Some(item)) => self::read_item(entry, item),
        ("compacted", Some(compacted)) => {
            entry.push(EntryContent::Boundary { trigger: None, tokens_before: None });
            if let Some(words) = string_field(compacted, "message").filter(|it| !it.is_empty()) {
                entry.push(EntryContent::Summary(words.to_owned()));
            }
        }
        ("event_msg", Some(event)) => match string_field(event, "type").unwrap_or_default() {
            "thread_rolled_back" => {
                let turns = event.get("num_turns").and_then(Value::as_u64).unwrap_or(0);
                discard_turns(entry, turns);
                entry.push(EntryContent::Other("event_msg:thread_rolled_back".to_owned()));
            }
            "turn_aborted" => entry.push(EntryContent::Notice("the turn was stopped".to_owned())),
            kind @ ("error" | "stream_error") => {
                let words = string_field(event, "message").unwrap_or(kind);
                entry.push(EntryContent::Notice(words.to_owned()));
            }
            kind => {
                let kind = format!("event_msg:{}", truncate(kind, 60));
                entry.push(EntryContent::Other(kind));
            }
        },
        (kind @ ("world_state" | "token_usage_record"), Some(_)) => {
            entry.push(EntryContent::Other(kind.to_owned()));
        }
        (kind, Some(_)) => entry.add_unknown(kind),
        // Older files: the first line, and lines of state.
        ("", None) if line.get("id").is_some() => read_session_meta(entry, line),
        ("", None) if line.get("record_type").is_some() => {
            entry.push(EntryContent::Other("state".to_owned()));
        }
        (_, None) => read_item(entry, line),
    }
}

fn read_session_meta(entry: &mut EntryBuilder<'_>, meta: &Value) {
    let of = |key: &str| string_field(meta, key).filter(|it| !it.is_empty()).map(str::to_owned);
    // A fork repeats the first line of its parent.
    let is_first = entry.transcript.session.is_none();
    entry.transcript.session = entry.transcript.session.take().or_else(|| of("id"));
    let is_subagent = meta.get("source").is_some_and(|it| it.get("subagent").is_some())
        || of("thread_source").as_deref() == Some("subagent");
    entry.transcript.is_subagent |= is_first && is_subagent;
    if is_first {
        entry.transcript.parent = of("forked_from_id");
    }
    entry.at = entry.at.or_else(|| super::parse_time(meta.get("timestamp")));
    if let Some(version) = of("cli_version") {
        entry.transcript.agent = Some(format!("codex {version}"));
    }
    let branch = meta.get("git").and_then(|it| string_field(it, "branch"));
    entry.transcript.branch = branch.map(str::to_owned).or(entry.transcript.branch.take());
    set_cwd(entry, meta);
    entry.push(EntryContent::Other("session_meta".to_owned()));
}

/// Discards the last turns, each of which a message of the user begins.
fn discard_turns(entry: &mut EntryBuilder<'_>, turns: u64) {
    let mut left = turns;
    for old in entry.transcript.entries.iter_mut().rev() {
        if left == 0 {
            break;
        }
        left -= u64::from(matches!(old.content, EntryContent::User(_)) && !old.is_answer);
        old.content = EntryContent::Other(super::DISCARDED.to_owned());
    }
}

fn set_cwd(entry: &mut EntryBuilder<'_>, value: &Value) {
    if let Some(cwd) = string_field(value, "cwd").filter(|it| !it.is_empty()) {
        entry.transcript.cwd = Some(cwd.to_owned());
    }
}

fn read_item(entry: &mut EntryBuilder<'_>, item: &Value) {
    match string_field(item, "type").unwrap_or_default() {
        "message" => read_message(entry, item),
        "function_call" => {
            let arguments = string_field(item, "arguments").unwrap_or_default();
            let input = serde_json::from_str(arguments)
                .unwrap_or_else(|_| Value::String(arguments.to_owned()));
            entry.add_call(
                string_field(item, "call_id"),
                string_field(item, "name").unwrap_or_default(),
                &input,
            );
        }
        "custom_tool_call" => {
            let input = item.get("input").unwrap_or(&Value::Null);
            entry.add_call(
                string_field(item, "call_id"),
                string_field(item, "name").unwrap_or_default(),
                input,
            );
        }
        "local_shell_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            entry.add_call(
                string_field(item, "call_id").or(string_field(item, "id")),
                "local_shell",
                action,
            );
        }
        "web_search_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            entry.push(EntryContent::Call(super::ToolUse::new(
                entry.id.clone(),
                "web_search",
                action,
            )));
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = item.get("output");
            let success = output.and_then(|it| it.get("success")).and_then(Value::as_bool);
            let inner = output.and_then(|it| it.get("content")).or(output);
            let (words, code) = output_text(&content_text(inner));
            let is_error = success == Some(false)
                || code.is_some_and(|it| it != 0)
                || success.is_none()
                    && code.is_none()
                    && NOT_DONE.iter().any(|it| words.starts_with(it));
            let call = string_field(item, "call_id");
            let questions = call.and_then(|it| entry.questions.remove(it));
            entry.add_result(call, &words, is_error);
            if let Some(questions) = questions {
                read_answers(entry, &questions, &words);
            }
        }
        "reasoning" => entry.push(EntryContent::Other("reasoning".to_owned())),
        "" => entry.add_unknown("without a type"),
        kind => entry.add_unknown(kind),
    }
}

/// Starts of outputs of calls that were not carried out.
const NOT_DONE: [&str; 6] = [
    "aborted",
    "apply_patch verification failed",
    "exec command rejected by user",
    "execution error",
    "patch rejected",
    "rejected by user",
];

/// Reads the user's answers to `request_user_input`: `{"answers": {id: {"answers": […]}}}`.
fn read_answers(entry: &mut EntryBuilder<'_>, questions: &[(String, String)], output: &str) {
    let Ok(output) = serde_json::from_str::<Value>(output) else { return };
    let mut answers = Vec::new();
    for (id, question) in questions {
        let given = output.get("answers").and_then(|it| it.get(id)?.get("answers")?.as_array());
        let given = given.into_iter().flatten().filter_map(Value::as_str);
        let given: Vec<&str> =
            given.map(|it| it.strip_prefix("user_note: ").unwrap_or(it)).collect();
        answers.push((question.clone(), given.join(", "), String::new()));
    }
    entry.add_answers(&answers);
}

fn read_message(entry: &mut EntryBuilder<'_>, item: &Value) {
    let words = content_text(item.get("content"));
    match string_field(item, "role").unwrap_or_default() {
        // The program inserts this message; it may also contain text of the user.
        "user" if words.trim_start().starts_with("# AGENTS.md instructions") => {
            entry.push(EntryContent::Notice(words));
        }
        "user" => entry.add_user_text(&words),
        "assistant" => entry.add_assistant_text(&words),
        "system" | "developer" => entry.push(EntryContent::Notice(words)),
        role => entry.add_unknown(&format!("role {role}")),
    }
}

/// Returns the output of a command and its exit code, from JSON, text with a header, or plain text.
fn output_text(output: &str) -> (String, Option<i64>) {
    if let Ok(Value::Object(object)) = serde_json::from_str::<Value>(output) {
        let code =
            object.get("metadata").and_then(|it| it.get("exit_code")).and_then(Value::as_i64);
        if let Some(Value::String(words)) = object.get("output") {
            return (words.clone(), code);
        }
    }
    let mut code = None;
    for line in output.lines().take(8) {
        let exit_code = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "));
        code = code.or_else(|| exit_code?.trim().parse().ok());
        if line.trim_end() == "Output:" && code.is_some() {
            let words = output.split_once("Output:\n").map_or("", |it| it.1);
            return (words.to_owned(), code);
        }
    }
    (output.to_owned(), code)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(output: &str, expected: (&str, Option<i64>)) {
        let (words, code) = output_text(output);
        assert_eq!((&words[..], code), expected);
    }

    #[test]
    fn outputs_of_all_versions_are_read() {
        check(r#"{"output":"no\n","metadata":{"exit_code":2}}"#, ("no\n", Some(2)));
        check("Exit code: 1\nWall time: 0.2 seconds\nOutput:\nno\n", ("no\n", Some(1)));
        check("Chunk ID: 3\nProcess exited with code 0\nOutput:\nyes", ("yes", Some(0)));
        check("plain", ("plain", None));
        check("{\"a\":1}", ("{\"a\":1}", None));
    }

    fn read_lines(lines: &[Value]) -> super::super::Transcript {
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        super::super::read(text.as_bytes(), Some(super::super::TranscriptFormat::Codex)).unwrap()
    }

    fn item(payload: &Value) -> Value {
        json!({"type": "response_item", "payload": payload})
    }

    fn user(text: &str) -> Value {
        let content = json!([{"type": "input_text", "text": text}]);
        item(&json!({"type": "message", "role": "user", "content": content}))
    }

    fn messages(transcript: &super::super::Transcript) -> Vec<&str> {
        transcript.own_entries().filter_map(|it| it.content.user_words()).collect()
    }

    #[test]
    fn words_of_the_user_and_of_programs_are_separated() {
        let questions = json!({"questions": [{"id": "d", "question": "Which datum?"}]});
        let answer = json!({"answers": {"d": {"answers": ["ZH", "user_note: as in Brest"]}}});
        let transcript = read_lines(&[
            json!({"type": "session_meta", "payload": {"id": "a", "source": "cli"}}),
            json!({"type": "session_meta", "payload": {"id": "b", "source": {"subagent": "review"}}}),
            user("Start"),
            user(
                "<subagent_notification>{\"status\": \"We decided to drop it.\"}</subagent_notification>",
            ),
            user(
                "<user_shell_command>\n<command>\nmake\n</command>\n<result>\nok\n</result>\n</user_shell_command>",
            ),
            item(&json!({"type": "function_call", "name": "request_user_input", "call_id": "q",
                "arguments": questions.to_string()})),
            item(
                &json!({"type": "function_call_output", "call_id": "q", "output": answer.to_string()}),
            ),
            json!({"type": "world_state", "payload": {}}),
            json!({"type": "token_usage_record", "payload": {}}),
            user("We decided to use XML"),
            json!({"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}),
        ]);
        assert_eq!(messages(&transcript), ["Start", "!make", "Which datum? ZH, as in Brest"]);
        assert_eq!(transcript.session.as_deref(), Some("a"));
        assert!(transcript.anomalies.unread.is_empty(), "{:?}", transcript.anomalies);
        for source in [json!({"subagent": "review"}), json!({"subagent": {"thread_spawn": {}}})] {
            let meta = json!({"type": "session_meta", "payload": {"id": "a", "source": source}});
            let transcript = read_lines(&[meta, user("Review this")]);
            assert!(transcript.is_subagent && messages(&transcript).is_empty());
        }
    }

    #[test]
    fn a_refused_patch_changes_no_file() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n+x\n*** End Patch";
        for (output, changed) in [
            (json!("patch rejected by user"), 0),
            (json!({"content": "patch rejected by user", "success": false}), 0),
            (json!("apply_patch verification failed: no such line"), 0),
            (json!("aborted by user after 2.1s"), 0),
            (json!("Success. Updated the following files:\nM a.rs"), 1),
        ] {
            let transcript = read_lines(&[
                user("Fix it"),
                item(&json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "p",
                    "input": patch})),
                item(&json!({"type": "custom_tool_call_output", "call_id": "p", "output": output})),
            ]);
            let digest = crate::session::digest::SessionDigest::of(&transcript);
            assert_eq!(digest.changed_files().count(), changed, "{output}");
        }
    }
}
