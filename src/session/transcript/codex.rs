//! Lines of Codex: `rollout-*.jsonl`.
//!
//! Since late 2025 each line is `{timestamp, type, payload}`: `session_meta` first, `turn_context`
//! with the folder, `response_item` with what went to and came from the model, `event_msg` with what
//! was shown, which says the same once more and is left out. Older files hold the items bare.

use serde_json::Value;

use super::{Found, What, claude::content_text, cut, text};

pub(super) fn read(found: &mut Found<'_>, line: &Value) {
    let payload = line.get("payload");
    match (text(line, "type").unwrap_or_default(), payload) {
        ("session_meta", Some(meta)) => session(found, meta),
        ("turn_context", Some(turn)) => {
            folder(found, turn);
            found.push(What::Other("turn_context".to_owned()));
        }
        ("response_item", Some(item)) => self::item(found, item),
        ("compacted", Some(compacted)) => {
            found.push(What::Boundary { trigger: None, tokens_before: None });
            if let Some(words) = text(compacted, "message").filter(|it| !it.is_empty()) {
                found.push(What::Summary(words.to_owned()));
            }
        }
        ("event_msg", Some(event)) => match text(event, "type").unwrap_or_default() {
            "turn_aborted" => found.push(What::Notice("the turn was stopped".to_owned())),
            kind @ ("error" | "stream_error") => {
                let words = text(event, "message").unwrap_or(kind);
                found.push(What::Notice(words.to_owned()));
            }
            kind => {
                let kind = format!("event_msg:{}", cut(kind, 60));
                found.push(What::Other(kind));
            }
        },
        (kind, Some(_)) => found.unread(kind),
        // The first line of an older file, and its state.
        ("", None) if line.get("id").is_some() => session(found, line),
        ("", None) if line.get("record_type").is_some() => {
            found.push(What::Other("state".to_owned()));
        }
        (_, None) => item(found, line),
    }
}

fn session(found: &mut Found<'_>, meta: &Value) {
    let of = |key: &str| text(meta, key).filter(|it| !it.is_empty()).map(str::to_owned);
    found.transcript.session = of("id").or(found.transcript.session.take());
    found.at = found.at.or_else(|| super::time(meta.get("timestamp")));
    if let Some(version) = of("cli_version") {
        found.transcript.agent = Some(format!("codex {version}"));
    }
    let branch = meta.get("git").and_then(|it| text(it, "branch"));
    found.transcript.branch = branch.map(str::to_owned).or(found.transcript.branch.take());
    folder(found, meta);
    found.push(What::Other("session_meta".to_owned()));
}

fn folder(found: &mut Found<'_>, told: &Value) {
    if let Some(cwd) = text(told, "cwd").filter(|it| !it.is_empty()) {
        found.transcript.cwd = Some(cwd.to_owned());
    }
}

fn item(found: &mut Found<'_>, item: &Value) {
    match text(item, "type").unwrap_or_default() {
        "message" => message(found, item),
        "function_call" => {
            let arguments = text(item, "arguments").unwrap_or_default();
            let input = serde_json::from_str(arguments)
                .unwrap_or_else(|_| Value::String(arguments.to_owned()));
            found.call(text(item, "call_id"), text(item, "name").unwrap_or_default(), &input);
        }
        "custom_tool_call" => {
            let input = item.get("input").unwrap_or(&Value::Null);
            found.call(text(item, "call_id"), text(item, "name").unwrap_or_default(), input);
        }
        "local_shell_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            found.call(text(item, "call_id").or(text(item, "id")), "local_shell", action);
        }
        "web_search_call" => {
            let action = item.get("action").unwrap_or(&Value::Null);
            found.push(What::Call(super::Call::new(found.id.clone(), "web_search", action)));
        }
        "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
            let output = item.get("output");
            let success = output.and_then(|it| it.get("success")).and_then(Value::as_bool);
            let inner = output.and_then(|it| it.get("content")).or(output);
            let (words, code) = output_text(&content_text(inner));
            let is_error = success == Some(false) || code.is_some_and(|it| it != 0);
            found.result(text(item, "call_id"), &words, is_error);
        }
        "reasoning" => found.push(What::Other("reasoning".to_owned())),
        "" => found.unread("without a type"),
        kind => found.unread(kind),
    }
}

fn message(found: &mut Found<'_>, item: &Value) {
    let words = content_text(item.get("content"));
    match text(item, "role").unwrap_or_default() {
        // What the program puts there begins like this; a person's message may stand in it, too.
        "user" if words.trim_start().starts_with("# AGENTS.md instructions") => {
            found.push(What::Notice(words));
        }
        "user" => found.user(&words),
        "assistant" => found.assistant(&words),
        "system" | "developer" => found.push(What::Notice(words)),
        role => found.unread(&format!("role {role}")),
    }
}

/// Returns what a command printed, and its exit code. It comes as JSON, as text with a head, or bare.
fn output_text(output: &str) -> (String, Option<i64>) {
    if let Ok(Value::Object(told)) = serde_json::from_str::<Value>(output) {
        let code = told.get("metadata").and_then(|it| it.get("exit_code")).and_then(Value::as_i64);
        if let Some(Value::String(words)) = told.get("output") {
            return (words.clone(), code);
        }
    }
    let mut code = None;
    for line in output.lines().take(8) {
        let told = line
            .strip_prefix("Exit code: ")
            .or_else(|| line.strip_prefix("Process exited with code "));
        code = code.or_else(|| told?.trim().parse().ok());
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
