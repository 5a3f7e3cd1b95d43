//! Tools that a model may call, and their form in each wire format. Pure.
//!
//! A model that calls tools answers with [`ToolCall`]s instead of text, or beside it. The results go
//! back in the next turn as [`ToolCallResult`]s. The server's own form of a call is sent back unchanged
//! ([`Message::verbatim`]): thoughts beside a call are signed, and a cache compares arguments by byte.
//!
//! Source: the published types of Anthropic's and `OpenAI`'s clients, and Ollama's client types.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Message, Role};

/// A tool that the model may call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// Its name: letters, digits, and `_`.
    pub name: String,
    /// What it does, and when to call it.
    pub description: String,
    /// The JSON schema of its input, an object.
    pub schema: Value,
}

/// A call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that its result refers to.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The input; a string where the model did not write JSON.
    pub input: Value,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCallResult {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// What it returned, or why it failed.
    pub text: String,
    /// Whether it failed.
    pub is_error: bool,
}

impl Tool {
    /// Returns its length in a request, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.name.len() + self.description.len() + self.schema.to_string().len()
    }
}

/// Returns the tools in the form of the Messages API.
pub(super) fn anthropic_tools(tools: &[Tool]) -> Value {
    let one = |it: &Tool| json!({ "name": it.name, "description": it.description, "input_schema": it.schema });
    tools.iter().map(one).collect()
}

/// Returns a turn in the form of the Messages API.
pub(super) fn anthropic_turn(message: &Message) -> Value {
    let words = || json!([{ "type": "text", "text": message.text }]);
    let content = match &message.verbatim {
        Some(said) if message.role == Role::Assistant => said.clone(),
        _ if message.results.is_empty() => words(),
        _ => {
            let one = |it: &ToolCallResult| {
                json!({
                    "type": "tool_result", "tool_use_id": it.id, "content": it.text,
                    "is_error": it.is_error,
                })
            };
            let mut content: Vec<Value> = message.results.iter().map(one).collect();
            // Results must come first; the API refuses an empty text.
            if !message.text.is_empty() {
                content.push(json!({ "type": "text", "text": message.text }));
            }
            Value::Array(content)
        }
    };
    json!({ "role": message.role.name(), "content": content })
}

/// Reads the tool calls in a reply of the Messages API.
pub(super) fn anthropic_calls(content: &[Value]) -> Vec<ToolCall> {
    let used = content.iter().filter(|it| it["type"] == "tool_use");
    used.filter_map(|it| {
        let text = |name: &str| it[name].as_str().map(ToOwned::to_owned);
        Some(ToolCall { id: text("id")?, name: text("name")?, input: it["input"].clone() })
    })
    .collect()
}

/// Returns the tools in the form of chat completions, which Ollama's own chat shares.
pub(super) fn openai_tools(tools: &[Tool]) -> Value {
    let one = |it: &Tool| {
        json!({
            "type": "function",
            "function": { "name": it.name, "description": it.description, "parameters": it.schema },
        })
    };
    tools.iter().map(one).collect()
}

/// Returns the turns in the form of chat completions: each result is a message of its own.
pub(super) fn openai_turns(message: &Message) -> Vec<Value> {
    let result =
        |it: &ToolCallResult| json!({ "role": "tool", "tool_call_id": it.id, "content": it.text });
    chat_turns(message, result)
}

/// Returns the turns in the form of Ollama's chat: a result refers to the tool by name.
pub(super) fn ollama_turns(message: &Message) -> Vec<Value> {
    let result =
        |it: &ToolCallResult| json!({ "role": "tool", "tool_name": it.name, "content": it.text });
    chat_turns(message, result)
}

fn chat_turns(message: &Message, result: impl Fn(&ToolCallResult) -> Value) -> Vec<Value> {
    let role = message.role.name();
    if let (Some(calls), Role::Assistant) = (&message.verbatim, message.role) {
        return vec![json!({ "role": role, "content": message.text, "tool_calls": calls })];
    }
    let mut turns: Vec<Value> = message.results.iter().map(result).collect();
    if turns.is_empty() || !message.text.is_empty() {
        turns.push(json!({ "role": role, "content": message.text }));
    }
    turns
}

/// Reads the tool calls in a message of chat completions, or of Ollama's chat, which has no ids.
pub(super) fn openai_calls(message: &Value) -> Vec<ToolCall> {
    let calls = message["tool_calls"].as_array().map_or(&[][..], |it| &it[..]);
    let read = |(n, it): (usize, &Value)| {
        let function = &it["function"];
        let id = it["id"].as_str().map_or_else(|| format!("call_{n}"), ToOwned::to_owned);
        let input = match &function["arguments"] {
            // If the model did not write JSON, the tool reports that to it.
            Value::String(text) if text.trim().is_empty() => json!({}),
            Value::String(text) => {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))
            }
            other => other.clone(),
        };
        Some(ToolCall { id, name: function["name"].as_str()?.to_owned(), input })
    };
    calls.iter().enumerate().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(id: &str) -> ToolCallResult {
        let (name, text) = ("read_file".to_owned(), "words".to_owned());
        ToolCallResult { id: id.to_owned(), name, text, is_error: false }
    }

    #[test]
    fn a_servers_own_form_of_a_call_is_sent_back_unchanged() {
        let said = json!([{ "type": "thinking", "thinking": "hm", "signature": "s" },
            { "type": "tool_use", "id": "t1", "name": "read_file", "input": { "path": "a" } }]);
        let calls = anthropic_calls(said.as_array().unwrap());
        assert_eq!((&calls[0].id[..], &calls[0].input["path"]), ("t1", &json!("a")));
        let turn = Message { verbatim: Some(said.clone()), ..Message::assistant("") };
        assert_eq!(anthropic_turn(&turn)["content"], said);
        let answer = Message { results: vec![result("t1")], ..Message::user("more") };
        let sent = anthropic_turn(&answer);
        assert_eq!(sent["content"][0]["tool_use_id"], "t1");
        assert_eq!(sent["content"][1]["text"], "more");
    }

    #[test]
    fn arguments_that_are_not_json_are_kept_unchanged() {
        let said = json!({ "tool_calls": [
            { "id": "c1", "function": { "name": "read_file", "arguments": "{\"path\":\"a\"}" } },
            { "function": { "name": "read_file", "arguments": { "path": "b" } } },
            { "id": "c3", "function": { "name": "read_file", "arguments": "{oops" } },
        ]});
        let calls = openai_calls(&said);
        assert_eq!(calls[0].input["path"], "a");
        assert_eq!((&calls[1].id[..], &calls[1].input["path"]), ("call_1", &json!("b")));
        assert_eq!(calls[2].input, "{oops");
        let message = Message { results: vec![result("c1"), result("c3")], ..Message::user("") };
        let turns = openai_turns(&message);
        assert_eq!((turns.len(), &turns[1]["tool_call_id"]), (2, &json!("c3")));
    }
}
