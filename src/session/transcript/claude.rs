//! Lines of Claude Code.
//!
//! The format is its own and changes without notice. A line has a `type`; those of `user` and
//! `assistant` hold a message of the API, one block of content to a line in newer versions. Lines of
//! helpers (`isSidechain`) are marked as such; what is put into the user's place (`isMeta`,
//! `isCompactSummary`) is not the user's.

use serde_json::Value;

use super::{Found, What, text};

/// Kinds that say something of the session to its program, and nothing of what happened.
const KINDS_OF_STATE: [&str; 8] = [
    "file-history-snapshot",
    "mode",
    "permission-mode",
    "ai-title",
    "custom-title",
    "last-prompt",
    "agent-name",
    "pr-link",
];

pub(super) fn read(found: &mut Found<'_>, line: &Value) {
    let flag = |key: &str| line.get(key).and_then(Value::as_bool) == Some(true);
    found.is_side = flag("isSidechain");
    if !found.is_side {
        state(found, line);
    }
    match text(line, "type").unwrap_or_default() {
        "user" if flag("isCompactSummary") => {
            let words = message_text(line);
            found.push(What::Summary(words));
        }
        "user" => user(found, line, flag("isMeta")),
        "assistant" => assistant(found, line),
        "system" => system(found, line),
        "attachment" => attachment(found, line),
        "summary" => {
            let title = text(line, "summary").unwrap_or_default();
            found.push(What::Notice(title.to_owned()));
        }
        // What is put into the queue comes again as a message when the agent takes it.
        "queue-operation" | "progress" => found.push(What::Other(kind_of(line))),
        kind if KINDS_OF_STATE.contains(&kind) => found.push(What::Other(kind.to_owned())),
        "" => found.unread("without a type"),
        kind => found.unread(kind),
    }
}

/// Remembers what each line says of the session.
fn state(found: &mut Found<'_>, line: &Value) {
    let mut keep = |key: &str, place: fn(&mut super::Transcript) -> &mut Option<String>| {
        if let Some(value) = text(line, key).filter(|it| !it.is_empty()) {
            *place(found.transcript) = Some(value.to_owned());
        }
    };
    keep("cwd", |it| &mut it.cwd);
    keep("gitBranch", |it| &mut it.branch);
    keep("sessionId", |it| &mut it.session);
    if let Some(version) = text(line, "version").filter(|it| !it.is_empty()) {
        found.transcript.agent = Some(format!("claude-code {version}"));
    }
}

fn kind_of(line: &Value) -> String {
    let of = |key: &str| text(line, key).unwrap_or_default();
    format!("{}:{}", of("type"), of("operation")).trim_end_matches(':').to_owned()
}

fn user(found: &mut Found<'_>, line: &Value, is_meta: bool) {
    let content = line.get("message").and_then(|it| it.get("content"));
    let say = |found: &mut Found<'_>, words: &str| {
        if is_meta {
            found.meta(words);
        } else {
            found.user(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(found, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return found.unread("user without content"),
    };
    let mut words = Vec::new();
    for block in blocks {
        match text(block, "type").unwrap_or_default() {
            "tool_result" => {
                let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
                found.result(
                    text(block, "tool_use_id"),
                    &content_text(block.get("content")),
                    is_error,
                );
            }
            "text" => words.push(text(block, "text").unwrap_or_default().to_owned()),
            kind @ ("image" | "document") => words.push(format!("[{kind}]")),
            kind => found.unread(&format!("user block {kind}")),
        }
    }
    if !words.is_empty() {
        say(found, &words.join("\n"));
    }
}

fn assistant(found: &mut Found<'_>, line: &Value) {
    let message = line.get("message");
    let content = message.and_then(|it| it.get("content"));
    // The program speaks in the agent's place where a request failed.
    let is_synthetic = message.and_then(|it| text(it, "model")) == Some("<synthetic>");
    let say = |found: &mut Found<'_>, words: &str| {
        if is_synthetic {
            found.push(What::Notice(words.to_owned()));
        } else {
            found.assistant(words);
        }
    };
    let blocks = match content {
        Some(Value::String(words)) => return say(found, words),
        Some(Value::Array(blocks)) => blocks,
        _ => return found.unread("assistant without content"),
    };
    for block in blocks {
        match text(block, "type").unwrap_or_default() {
            "text" => say(found, text(block, "text").unwrap_or_default()),
            "tool_use" | "server_tool_use" => {
                let name = text(block, "name").unwrap_or_default();
                found.call(text(block, "id"), name, block.get("input").unwrap_or(&Value::Null));
            }
            // Thoughts are the agent's own business.
            kind @ ("thinking" | "redacted_thinking") => found.push(What::Other(kind.to_owned())),
            kind => found.unread(&format!("assistant block {kind}")),
        }
    }
}

fn system(found: &mut Found<'_>, line: &Value) {
    match text(line, "subtype").unwrap_or_default() {
        "compact_boundary" | "microcompact_boundary" => {
            let told = line.get("compactMetadata").or_else(|| line.get("microcompactMetadata"));
            let trigger = told.and_then(|it| text(it, "trigger")).map(str::to_owned);
            let tokens = told.and_then(|it| it.get("preTokens")).and_then(Value::as_u64);
            found.push(What::Boundary { trigger, tokens_before: tokens });
        }
        "" if text(line, "content").is_none() => found.unread("system"),
        subtype => {
            let words = text(line, "content").unwrap_or(subtype);
            found.meta(words);
        }
    }
}

fn attachment(found: &mut Found<'_>, line: &Value) {
    let Some(attached) = line.get("attachment") else { return found.unread("attachment") };
    match text(attached, "type").unwrap_or_default() {
        // What a person typed while the agent was at work.
        "queued_command" if line.get("isMeta").and_then(Value::as_bool) != Some(true) => {
            let prompt = content_text(attached.get("prompt"));
            found.user(&prompt);
        }
        "hook_additional_context" | "hook_success" => {
            let words = content_text(attached.get("content"));
            found.meta(&words);
        }
        kind => {
            let kind = format!("attachment:{}", super::cut(kind, 60));
            found.push(What::Other(kind));
        }
    }
}

impl Found<'_> {
    /// Keeps what a program said in the place of somebody.
    fn meta(&mut self, words: &str) {
        let (words, was_cut) = super::said::without_injected_output(words);
        if was_cut {
            self.push(What::Injected);
        }
        if !words.trim().is_empty() {
            self.push(What::Notice(words.trim().to_owned()));
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
                    block => match (text(block, "text"), text(block, "type")) {
                        (Some(words), _) => words.to_owned(),
                        (None, Some(kind)) => format!("[{}]", super::cut(kind, 40)),
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
