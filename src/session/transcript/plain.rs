//! Plain lines: `{"role": …, "content": …}`, as most programs that speak to a model keep them.
//!
//! The content is a string or a list of blocks as either API has them; calls may stand beside it in
//! `tool_calls`, and what a tool returned comes with the role `tool`.

use serde_json::Value;

use super::{Found, What, claude::content_text, text};

pub(super) fn read(found: &mut Found<'_>, line: &Value) {
    let keep = |key: &str, place: &mut Option<String>| {
        if let Some(value) = text(line, key).filter(|it| !it.is_empty()) {
            *place = Some(value.to_owned());
        }
    };
    keep("session_id", &mut found.transcript.session);
    keep("cwd", &mut found.transcript.cwd);
    keep("branch", &mut found.transcript.branch);
    keep("agent", &mut found.transcript.agent);
    let content = line.get("content");
    match text(line, "role").unwrap_or_default() {
        "user" | "human" => blocks(found, content, &|found, words| found.user(words)),
        "assistant" | "model" | "ai" => {
            blocks(found, content, &|found, words| found.assistant(words));
            calls(found, line);
        }
        "tool" | "function" => {
            let id = text(line, "tool_call_id").or_else(|| text(line, "call_id"));
            let is_error = line.get("is_error").and_then(Value::as_bool) == Some(true);
            found.result(id, &content_text(content), is_error);
        }
        "system" | "developer" => found.push(What::Notice(content_text(content))),
        "" => found.unread("without a role"),
        role => found.unread(&format!("role {role}")),
    }
}

fn blocks(found: &mut Found<'_>, content: Option<&Value>, say: &dyn Fn(&mut Found<'_>, &str)) {
    let Some(Value::Array(list)) = content else { return say(found, &content_text(content)) };
    let mut words = Vec::new();
    for block in list {
        match text(block, "type").unwrap_or_default() {
            "tool_use" => {
                let name = text(block, "name").unwrap_or_default();
                found.call(text(block, "id"), name, block.get("input").unwrap_or(&Value::Null));
            }
            "tool_result" => {
                let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
                found.result(
                    text(block, "tool_use_id"),
                    &content_text(block.get("content")),
                    is_error,
                );
            }
            "thinking" | "redacted_thinking" | "reasoning" => {
                found.push(What::Other("thinking".to_owned()));
            }
            _ => words.push(content_text(Some(&Value::Array(vec![block.clone()])))),
        }
    }
    if !words.is_empty() {
        say(found, &words.join("\n"));
    }
}

fn calls(found: &mut Found<'_>, line: &Value) {
    let Some(Value::Array(list)) = line.get("tool_calls") else { return };
    for call in list {
        let function = call.get("function").unwrap_or(call);
        let input = match function.get("arguments") {
            Some(Value::String(text)) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
            Some(input) => input.clone(),
            None => Value::Null,
        };
        found.call(text(call, "id"), text(function, "name").unwrap_or_default(), &input);
    }
}
