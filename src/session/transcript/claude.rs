//! Lines of Claude Code.
//!
//! The format is its own and changes without notice. A line has a `type`; those of `user` and
//! `assistant` hold a message of the API, one block of content to a line in newer versions. Lines of
//! helpers (`isSidechain`) are marked as such; what is put into the user's place (`isMeta`,
//! `isCompactSummary`) is not the user's.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, string_field};

/// Kinds that say something of the session to its program, and nothing of what happened.
const STATE_KINDS: [&str; 8] = [
    "file-history-snapshot",
    "mode",
    "permission-mode",
    "ai-title",
    "custom-title",
    "last-prompt",
    "agent-name",
    "pr-link",
];

pub(super) fn read(found: &mut EntryBuilder<'_>, line: &Value) {
    let flag = |key: &str| line.get(key).and_then(Value::as_bool) == Some(true);
    found.is_subagent = flag("isSidechain");
    if !found.is_subagent {
        read_session_state(found, line);
    }
    match string_field(line, "type").unwrap_or_default() {
        "user" if flag("isCompactSummary") => {
            let words = message_text(line);
            found.push(EntryContent::Summary(words));
        }
        "user" => read_user(found, line, flag("isMeta")),
        "assistant" => read_assistant(found, line),
        "system" => read_system(found, line),
        "attachment" => read_attachment(found, line),
        "summary" => {
            let title = string_field(line, "summary").unwrap_or_default();
            found.push(EntryContent::Notice(title.to_owned()));
        }
        // What is put into the queue comes again as a message when the agent takes it.
        "queue-operation" | "progress" => found.push(EntryContent::Other(kind_of(line))),
        kind if STATE_KINDS.contains(&kind) => found.push(EntryContent::Other(kind.to_owned())),
        "" => found.add_unknown("without a type"),
        kind => found.add_unknown(kind),
    }
}

/// Remembers what each line says of the session.
fn read_session_state(found: &mut EntryBuilder<'_>, line: &Value) {
    let mut keep = |key: &str, place: fn(&mut super::Transcript) -> &mut Option<String>| {
        if let Some(value) = string_field(line, key).filter(|it| !it.is_empty()) {
            *place(found.transcript) = Some(value.to_owned());
        }
    };
    keep("cwd", |it| &mut it.cwd);
    keep("gitBranch", |it| &mut it.branch);
    keep("sessionId", |it| &mut it.session);
    if let Some(version) = string_field(line, "version").filter(|it| !it.is_empty()) {
        found.transcript.agent = Some(format!("claude-code {version}"));
    }
}

fn kind_of(line: &Value) -> String {
    let of = |key: &str| string_field(line, key).unwrap_or_default();
    format!("{}:{}", of("type"), of("operation")).trim_end_matches(':').to_owned()
}

fn read_user(found: &mut EntryBuilder<'_>, line: &Value, is_meta: bool) {
    let content = line.get("message").and_then(|it| it.get("content"));
    let say = |found: &mut EntryBuilder<'_>, words: &str| {
        if is_meta {
            found.add_notice(words);
        } else {
            found.add_user_text(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(found, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return found.add_unknown("user without content"),
    };
    let mut words = Vec::new();
    for block in blocks {
        match string_field(block, "type").unwrap_or_default() {
            "tool_result" => {
                let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
                found.add_result(
                    string_field(block, "tool_use_id"),
                    &content_text(block.get("content")),
                    is_error,
                );
            }
            "text" => words.push(string_field(block, "text").unwrap_or_default().to_owned()),
            kind @ ("image" | "document") => words.push(format!("[{kind}]")),
            kind => found.add_unknown(&format!("user block {kind}")),
        }
    }
    if !words.is_empty() {
        say(found, &words.join("\n"));
    }
}

fn read_assistant(found: &mut EntryBuilder<'_>, line: &Value) {
    let message = line.get("message");
    let content = message.and_then(|it| it.get("content"));
    // The program speaks in the agent's place where a request failed.
    let is_synthetic = message.and_then(|it| string_field(it, "model")) == Some("<synthetic>");
    let say = |found: &mut EntryBuilder<'_>, words: &str| {
        if is_synthetic {
            found.push(EntryContent::Notice(words.to_owned()));
        } else {
            found.add_assistant_text(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(found, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return found.add_unknown("assistant without content"),
    };
    for block in blocks {
        match string_field(block, "type").unwrap_or_default() {
            "text" => say(found, string_field(block, "text").unwrap_or_default()),
            "tool_use" | "server_tool_use" => {
                let name = string_field(block, "name").unwrap_or_default();
                found.add_call(
                    string_field(block, "id"),
                    name,
                    block.get("input").unwrap_or(&Value::Null),
                );
            }
            // Thoughts are the agent's own business.
            kind @ ("thinking" | "redacted_thinking") => {
                found.push(EntryContent::Other(kind.to_owned()));
            }
            kind => found.add_unknown(&format!("assistant block {kind}")),
        }
    }
}

fn read_system(found: &mut EntryBuilder<'_>, line: &Value) {
    match string_field(line, "subtype").unwrap_or_default() {
        "compact_boundary" | "microcompact_boundary" => {
            let told = line.get("compactMetadata").or_else(|| line.get("microcompactMetadata"));
            let trigger = told.and_then(|it| string_field(it, "trigger")).map(str::to_owned);
            let tokens = told.and_then(|it| it.get("preTokens")).and_then(Value::as_u64);
            found.push(EntryContent::Boundary { trigger, tokens_before: tokens });
        }
        "" if string_field(line, "content").is_none() => found.add_unknown("system"),
        subtype => {
            let words = string_field(line, "content").unwrap_or(subtype);
            found.add_notice(words);
        }
    }
}

fn read_attachment(found: &mut EntryBuilder<'_>, line: &Value) {
    let Some(attached) = line.get("attachment") else { return found.add_unknown("attachment") };
    match string_field(attached, "type").unwrap_or_default() {
        // What a person typed while the agent was at work.
        "queued_command" if line.get("isMeta").and_then(Value::as_bool) != Some(true) => {
            let prompt = content_text(attached.get("prompt"));
            found.add_user_text(&prompt);
        }
        "hook_additional_context" | "hook_success" => {
            let words = content_text(attached.get("content"));
            found.add_notice(&words);
        }
        kind => {
            let kind = format!("attachment:{}", super::truncate(kind, 60));
            found.push(EntryContent::Other(kind));
        }
    }
}

impl EntryBuilder<'_> {
    /// Keeps what a program said in the place of somebody.
    fn add_notice(&mut self, words: &str) {
        let (words, was_cut) = crate::session::transcript::user_text::strip_injected_output(words);
        if was_cut {
            self.push(EntryContent::Injected);
        }
        if !words.trim().is_empty() {
            self.push(EntryContent::Notice(words.trim().to_owned()));
        }
    }
}

fn message_text(line: &Value) -> String {
    content_text(line.get("message").and_then(|it| it.get("content")))
}

/// Returns the words of a content: a string, a list of strings, or blocks.
pub(super) fn content_text(content: Option<&Value>) -> String {
    match content {
        Some(Value::String(words)) => words.clone(),
        Some(Value::Array(blocks)) => {
            let words: Vec<String> = blocks
                .iter()
                .map(|block| match block {
                    Value::String(words) => words.clone(),
                    block => match (string_field(block, "text"), string_field(block, "type")) {
                        (Some(words), _) => words.to_owned(),
                        (None, Some(kind)) => format!("[{}]", super::truncate(kind, 40)),
                        (None, None) => String::new(),
                    },
                })
                .filter(|it| !it.is_empty())
                .collect();
            words.join("\n")
        }
        Some(Value::Object(_)) => content.map(Value::to_string).unwrap_or_default(),
        _ => String::new(),
    }
}
