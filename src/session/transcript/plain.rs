//! Plain lines: `{"role": …, "content": …}`, as most programs that speak to a model keep them.
//!
//! The content is a string or a list of blocks as either API has them; calls may stand beside it in
//! `tool_calls`, and what a tool returned comes with the role `tool`.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, claude::content_text, string_field};

pub(super) fn read(found: &mut EntryBuilder<'_>, line: &Value) {
    let keep = |key: &str, place: &mut Option<String>| {
        if let Some(value) = string_field(line, key).filter(|it| !it.is_empty()) {
            *place = Some(value.to_owned());
        }
    };
    keep("session_id", &mut found.transcript.session);
    keep("cwd", &mut found.transcript.cwd);
    keep("branch", &mut found.transcript.branch);
    keep("agent", &mut found.transcript.agent);
    let content = line.get("content");
    match string_field(line, "role").unwrap_or_default() {
        "user" | "human" => read_blocks(found, content, &|found, words| found.add_user_text(words)),
        "assistant" | "model" | "ai" => {
            read_blocks(found, content, &|found, words| found.add_assistant_text(words));
            read_calls(found, line);
        }
        "tool" | "function" => {
            let id = string_field(line, "tool_call_id").or_else(|| string_field(line, "call_id"));
            let is_error = line.get("is_error").and_then(Value::as_bool) == Some(true);
            found.add_result(id, &content_text(content), is_error);
        }
        "system" | "developer" => found.push(EntryContent::Notice(content_text(content))),
        "" => found.add_unknown("without a role"),
        role => found.add_unknown(&format!("role {role}")),
    }
}

fn read_blocks(
    found: &mut EntryBuilder<'_>,
    content: Option<&Value>,
    say: &dyn Fn(&mut EntryBuilder<'_>, &str),
) {
    let Some(Value::Array(list)) = content else { return say(found, &content_text(content)) };
    let mut words = Vec::new();
    for block in list {
        match string_field(block, "type").unwrap_or_default() {
            "tool_use" => {
                let name = string_field(block, "name").unwrap_or_default();
                found.add_call(
                    string_field(block, "id"),
                    name,
                    block.get("input").unwrap_or(&Value::Null),
                );
            }
            "tool_result" => {
                let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
                found.add_result(
                    string_field(block, "tool_use_id"),
                    &content_text(block.get("content")),
                    is_error,
                );
            }
            "thinking" | "redacted_thinking" | "reasoning" => {
                found.push(EntryContent::Other("thinking".to_owned()));
            }
            _ => words.push(content_text(Some(&Value::Array(vec![block.clone()])))),
        }
    }
    if !words.is_empty() {
        say(found, &words.join("\n"));
    }
}

fn read_calls(found: &mut EntryBuilder<'_>, line: &Value) {
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
        found.add_call(
            string_field(call, "id"),
            string_field(function, "name").unwrap_or_default(),
            &input,
        );
    }
}
