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
    entry.transcript.session = of("id").or(entry.transcript.session.take());
    entry.at = entry.at.or_else(|| super::parse_time(meta.get("timestamp")));
    if let Some(version) = of("cli_version") {
        entry.transcript.agent = Some(format!("codex {version}"));
    }
    let branch = meta.get("git").and_then(|it| string_field(it, "branch"));
    entry.transcript.branch = branch.map(str::to_owned).or(entry.transcript.branch.take());
    set_cwd(entry, meta);
    entry.push(EntryContent::Other("session_meta".to_owned()));
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
            let is_error = success == Some(false) || code.is_some_and(|it| it != 0);
            entry.add_result(string_field(item, "call_id"), &words, is_error);
        }
        "reasoning" => entry.push(EntryContent::Other("reasoning".to_owned())),
        "" => entry.add_unknown("without a type"),
        kind => entry.add_unknown(kind),
    }
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
}
