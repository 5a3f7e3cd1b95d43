//! Plain lines: `{"role": …, "content": …}`, as many programs that call a model write them.
//!
//! The content is a string or a list of blocks in the form of either API. Calls may be in `tool_calls`,
//! and tool results have the role `tool`. Cursor puts the content into a `message`, and the words of the user between
//! tags, behind what it adds.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, claude::content_text, string_field};

/// Encloses the words of the user in messages of Cursor.
const CURSOR_WORDS: [&str; 2] = ["<user_query>", "</user_query>"];

/// Returns the content of a message.
pub(super) fn content(line: &Value) -> Option<&Value> {
    line.get("content").or_else(|| line.get("message")?.get("content"))
}

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    let set = |key: &str, field: &mut Option<String>| {
        if let Some(value) = string_field(line, key).filter(|it| !it.is_empty()) {
            *field = Some(value.to_owned());
        }
    };
    set("session_id", &mut entry.transcript.session);
    set("cwd", &mut entry.transcript.cwd);
    set("branch", &mut entry.transcript.branch);
    set("agent", &mut entry.transcript.agent);
    let content = content(line);
    match string_field(line, "role").unwrap_or_default() {
        "user" | "human" => read_blocks(entry, content, &|entry, words| {
            let inside = words.split_once(CURSOR_WORDS[0]);
            let inside = inside.and_then(|it| it.1.rsplit_once(CURSOR_WORDS[1]));
            entry.add_user_text(inside.map_or(words, |it| it.0));
        }),
        "assistant" | "model" | "ai" => {
            read_blocks(entry, content, &|entry, words| entry.add_assistant_text(words));
            read_calls(entry, line);
        }
        "tool" | "function" => {
            let id = string_field(line, "tool_call_id").or_else(|| string_field(line, "call_id"));
            let is_error = line.get("is_error").and_then(Value::as_bool) == Some(true);
            entry.add_result(id, &content_text(content), is_error);
        }
        "system" | "developer" => entry.push(EntryContent::Notice(content_text(content))),
        "" => entry.add_unknown("without a role"),
        role => entry.add_unknown(&format!("role {role}")),
    }
}

fn read_blocks(
    entry: &mut EntryBuilder<'_>,
    content: Option<&Value>,
    say: &dyn Fn(&mut EntryBuilder<'_>, &str),
) {
    let Some(Value::Array(list)) = content else { return say(entry, &content_text(content)) };
    let mut words = Vec::new();
    for block in list {
        match string_field(block, "type").unwrap_or_default() {
            "tool_use" => entry.add_call_block(block),
            "tool_result" => entry.add_result_block(block),
            "thinking" | "redacted_thinking" | "reasoning" => {
                entry.push(EntryContent::Other("thinking".to_owned()));
            }
            _ => words.push(content_text(Some(&Value::Array(vec![block.clone()])))),
        }
    }
    if !words.is_empty() {
        say(entry, &words.join("\n"));
    }
}

fn read_calls(entry: &mut EntryBuilder<'_>, line: &Value) {
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
        entry.add_call(
            string_field(call, "id"),
            string_field(function, "name").unwrap_or_default(),
            &input,
        );
    }
}
