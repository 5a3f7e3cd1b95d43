//! Lines of Claude Code.
//!
//! The format is undocumented and changes without notice. A line has a `type`; `user` and `assistant`
//! lines contain a message of the API, with one block of content per line in newer versions. Lines of
//! subagents have `isSidechain`. `isMeta` and `isCompactSummary` mark user lines that the user did not
//! write.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, string_field};

/// Kinds of lines with state of the program rather than events of the session.
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

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    let flag = |key: &str| line.get(key).and_then(Value::as_bool) == Some(true);
    entry.is_subagent = flag("isSidechain");
    if !entry.is_subagent {
        read_session_state(entry, line);
    }
    match string_field(line, "type").unwrap_or_default() {
        "user" if flag("isCompactSummary") => {
            let words = message_text(line);
            entry.push(EntryContent::Summary(words));
        }
        "user" => read_user(entry, line, flag("isMeta")),
        "assistant" => read_assistant(entry, line),
        "system" => read_system(entry, line),
        "attachment" => read_attachment(entry, line),
        "summary" => {
            let title = string_field(line, "summary").unwrap_or_default();
            entry.push(EntryContent::Notice(title.to_owned()));
        }
        // A queued message appears again as a message when the agent reads it.
        "queue-operation" | "progress" => entry.push(EntryContent::Other(kind_of(line))),
        kind if STATE_KINDS.contains(&kind) => entry.push(EntryContent::Other(kind.to_owned())),
        "" => entry.add_unknown("without a type"),
        kind => entry.add_unknown(kind),
    }
}

/// Reads the folder, branch, id and agent of the session from a line.
fn read_session_state(entry: &mut EntryBuilder<'_>, line: &Value) {
    let mut set = |key: &str, field: fn(&mut super::Transcript) -> &mut Option<String>| {
        if let Some(value) = string_field(line, key).filter(|it| !it.is_empty()) {
            *field(entry.transcript) = Some(value.to_owned());
        }
    };
    set("cwd", |it| &mut it.cwd);
    set("gitBranch", |it| &mut it.branch);
    set("sessionId", |it| &mut it.session);
    if let Some(version) = string_field(line, "version").filter(|it| !it.is_empty()) {
        entry.transcript.agent = Some(format!("claude-code {version}"));
    }
}

fn kind_of(line: &Value) -> String {
    let of = |key: &str| string_field(line, key).unwrap_or_default();
    format!("{}:{}", of("type"), of("operation")).trim_end_matches(':').to_owned()
}

fn read_user(entry: &mut EntryBuilder<'_>, line: &Value, is_meta: bool) {
    let content = line.get("message").and_then(|it| it.get("content"));
    let say = |entry: &mut EntryBuilder<'_>, words: &str| {
        if is_meta {
            entry.add_notice(words);
        } else {
            entry.add_user_text(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(entry, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return entry.add_unknown("user without content"),
    };
    let mut words = Vec::new();
    for block in blocks {
        match string_field(block, "type").unwrap_or_default() {
            "tool_result" => entry.add_result_block(block),
            "text" => words.push(string_field(block, "text").unwrap_or_default().to_owned()),
            kind @ ("image" | "document") => words.push(format!("[{kind}]")),
            kind => entry.add_unknown(&format!("user block {kind}")),
        }
    }
    if !words.is_empty() {
        say(entry, &words.join("\n"));
    }
}

fn read_assistant(entry: &mut EntryBuilder<'_>, line: &Value) {
    let message = line.get("message");
    let content = message.and_then(|it| it.get("content"));
    // The program writes in place of the agent when a request failed.
    let is_synthetic = message.and_then(|it| string_field(it, "model")) == Some("<synthetic>");
    let say = |entry: &mut EntryBuilder<'_>, words: &str| {
        if is_synthetic {
            entry.push(EntryContent::Notice(words.to_owned()));
        } else {
            entry.add_assistant_text(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(entry, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return entry.add_unknown("assistant without content"),
    };
    for block in blocks {
        match string_field(block, "type").unwrap_or_default() {
            "text" => say(entry, string_field(block, "text").unwrap_or_default()),
            "tool_use" | "server_tool_use" => entry.add_call_block(block),
            // The agent's thoughts are not recorded.
            kind @ ("thinking" | "redacted_thinking") => {
                entry.push(EntryContent::Other(kind.to_owned()));
            }
            kind => entry.add_unknown(&format!("assistant block {kind}")),
        }
    }
}

fn read_system(entry: &mut EntryBuilder<'_>, line: &Value) {
    match string_field(line, "subtype").unwrap_or_default() {
        "compact_boundary" | "microcompact_boundary" => {
            let metadata = line.get("compactMetadata").or_else(|| line.get("microcompactMetadata"));
            let trigger = metadata.and_then(|it| string_field(it, "trigger")).map(str::to_owned);
            let tokens_before = metadata.and_then(|it| it.get("preTokens")).and_then(Value::as_u64);
            entry.push(EntryContent::Boundary { trigger, tokens_before });
        }
        "" if string_field(line, "content").is_none() => entry.add_unknown("system"),
        subtype => {
            let words = string_field(line, "content").unwrap_or(subtype);
            entry.add_notice(words);
        }
    }
}

fn read_attachment(entry: &mut EntryBuilder<'_>, line: &Value) {
    let Some(attached) = line.get("attachment") else { return entry.add_unknown("attachment") };
    match string_field(attached, "type").unwrap_or_default() {
        // The user typed this while the agent was working.
        "queued_command" if line.get("isMeta").and_then(Value::as_bool) != Some(true) => {
            let prompt = content_text(attached.get("prompt"));
            entry.add_user_text(&prompt);
        }
        "hook_additional_context" | "hook_success" => {
            let words = content_text(attached.get("content"));
            entry.add_notice(&words);
        }
        kind => {
            let kind = format!("attachment:{}", super::truncate(kind, 60));
            entry.push(EntryContent::Other(kind));
        }
    }
}

impl EntryBuilder<'_> {
    /// Adds text that a program inserted.
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

/// Returns the text of a content: a string, a list of strings, or blocks.
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
