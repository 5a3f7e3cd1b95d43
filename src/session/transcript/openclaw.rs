//! Lines of `OpenClaw`: events of a session, in its database (`store::db::openclaw_sessions`) or, before that, in
//! `~/.openclaw/agents/AGENT/sessions/*.jsonl`.
//!
//! The first event has the session's id and its folder. Later ones have an `id` and a `parentId`, so that they form a
//! tree; what was rewound stays in it. A `message` is of the user, the assistant, or a tool. The events from a
//! database follow the session's key, which says who speaks in it.
//!
//! A session has the words of the user only if it is a conversation with them: not those of jobs, webhooks, and agents
//! that other agents started. In a group, messages of others than the owner are notices.

use chrono::NaiveDate;
use serde_json::Value;

use super::{EntryBuilder, EntryContent, claude::content_text, parse_time, string_field};

/// The kind of the line with the session's key.
pub(in crate::session) const KEY_KIND: &str = "memoird_session_key";

/// Encloses what the program adds to a message.
const INTERNAL_START: &str = "<<<BEGIN_OPENCLAW_INTERNAL_CONTEXT>>>";
const INTERNAL_END: &str = "<<<END_OPENCLAW_INTERNAL_CONTEXT>>>";
/// Begins messages that the program writes in the place of the user.
const PROGRAM_STARTS: [&str; 7] = [
    "A new session was started via /new or /reset",
    "Pre-compaction memory flush",
    "Read HEARTBEAT.md",
    "[OpenClaw heartbeat poll]",
    "[OpenClaw session new]",
    "[OpenClaw session reset]",
    "[User sent media without caption]",
];
/// Begins what the program reports before a message, up to a blank line.
const EVENT_STARTS: [&str; 2] = ["System: ", "System (untrusted): "];
/// Begins the end of a line before the words of others, and before what the program says about a message, such as
/// `Thread starter (untrusted, for context):`.
const UNTRUSTED_HEAD: &str = "(untrusted";
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Parts of the keys of sessions that are no conversation with a person.
const MACHINE_KEYS: [&str; 5] = [":subagent:", ":cron:", ":hook:", ":heartbeat", ":boot:"];

/// Returns whether a line alone shows this format.
pub(super) fn is_line(line: &Value) -> bool {
    let has = |key: &str| line.get(key).is_some();
    match string_field(line, "type") {
        Some(KEY_KIND) => true,
        Some("session") => has("id") && has("version"),
        Some("message") => has("parentId") && line.get("message").is_some_and(Value::is_object),
        _ => false,
    }
}

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    match string_field(line, "type").unwrap_or_default() {
        KEY_KIND => {
            let key = string_field(line, "key").unwrap_or_default();
            let is_machine = |it: &&str| key.contains(*it) || key.starts_with(&it[1..]);
            // A session without a key is not known to be a conversation with a person.
            entry.transcript.is_subagent |= key.is_empty() || MACHINE_KEYS.iter().any(is_machine);
        }
        "session" => read_header(entry, line),
        "message" => read_message(entry, line.get("message").unwrap_or(&Value::Null)),
        "compaction" => {
            let tokens_before = line.get("tokensBefore").and_then(Value::as_u64);
            entry.push(EntryContent::Boundary { trigger: None, tokens_before });
            push_summary(entry, line);
        }
        "branch_summary" => push_summary(entry, line),
        // The history before it is no longer in the context.
        "reset" => {
            let trigger = Some("reset".to_owned());
            entry.push(EntryContent::Boundary { trigger, tokens_before: None });
        }
        "custom_message" => {
            entry.push(EntryContent::Notice(content_text(line.get("content"))));
        }
        kind @ ("custom"
        | "model_change"
        | "thinking_level_change"
        | "session_info"
        | "label"
        | "leaf"
        | "link"
        | "navigation") => entry.push(EntryContent::Other(kind.to_owned())),
        kind => entry.add_unknown(kind),
    }
}

fn push_summary(entry: &mut EntryBuilder<'_>, line: &Value) {
    if let Some(words) = string_field(line, "summary").filter(|it| !it.is_empty()) {
        entry.push(EntryContent::Summary(words.to_owned()));
    }
}

fn read_header(entry: &mut EntryBuilder<'_>, line: &Value) {
    let field = |key| string_field(line, key).filter(|it| !it.is_empty()).map(str::to_owned);
    entry.transcript.session = field("id").or(entry.transcript.session.take());
    entry.transcript.cwd = field("cwd").or(entry.transcript.cwd.take());
    entry.transcript.parent = field("parentSession").or(entry.transcript.parent.take());
    entry.push(EntryContent::Other("session".to_owned()));
}

fn read_message(entry: &mut EntryBuilder<'_>, message: &Value) {
    entry.at = entry.at.or_else(|| parse_time(message.get("timestamp")));
    let content = message.get("content");
    match string_field(message, "role").unwrap_or_default() {
        "user" => read_user(entry, message, &content_text(content)),
        "assistant" => {
            let blocks = content.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            if let Some(text) = content.and_then(Value::as_str) {
                entry.add_assistant_text(text);
            }
            for block in blocks {
                match string_field(block, "type").unwrap_or_default() {
                    "text" => {
                        entry.add_assistant_text(string_field(block, "text").unwrap_or_default());
                    }
                    "toolCall" => read_call(entry, block),
                    kind => entry.push(EntryContent::Other(kind.to_owned())),
                }
            }
            if let Some(error) = string_field(message, "errorMessage") {
                entry.push(EntryContent::Notice(error.to_owned()));
            }
        }
        "toolResult" => {
            let is_error = message.get("isError").and_then(Value::as_bool) == Some(true);
            entry.add_result(string_field(message, "toolCallId"), &content_text(content), is_error);
        }
        role => entry.push(EntryContent::Other(format!("role {role}"))),
    }
}

/// Reads a call. Most tools are called through one that takes the name of another.
fn read_call(entry: &mut EntryBuilder<'_>, block: &Value) {
    let id = string_field(block, "id");
    let name = string_field(block, "name").unwrap_or_default();
    let input = block.get("arguments").unwrap_or(&Value::Null);
    match (name, string_field(input, "id"), input.get("args")) {
        ("tool_call", Some(inner), args) => {
            let plain = inner.rsplit(':').next().unwrap_or(inner);
            entry.add_call(id, plain, args.unwrap_or(&Value::Null));
        }
        _ => entry.add_call(id, name, input),
    }
}

fn read_user(entry: &mut EntryBuilder<'_>, message: &Value, text: &str) {
    let of_program = message.get("__openclaw");
    let is_other =
        of_program.and_then(|it| it.get("senderIsOwner")).and_then(Value::as_bool) == Some(false);
    let origin = message.get("provenance").and_then(|it| string_field(it, "kind"));
    let is_machine = origin.is_some_and(|it| it != "external_user");
    let own = without_internal(text);
    let is_program = PROGRAM_STARTS.iter().any(|it| own.trim_start().starts_with(it));
    if own.trim().is_empty() && !text.trim().is_empty() {
        return entry.push(EntryContent::Notice(text.to_owned()));
    }
    if is_other || is_machine || is_program {
        return entry.push(EntryContent::Notice(own));
    }
    entry.add_user_text(&own);
}

/// Returns a message without what the program added to it.
fn without_internal(text: &str) -> String {
    let mut own = text.to_owned();
    while let Some((before, after)) = own.split_once(INTERNAL_START) {
        let behind = after.split_once(INTERNAL_END).map_or("", |it| it.1);
        own = format!("{}{behind}", before.trim_end());
    }
    let own = without_untrusted(&own);
    without_heads(&own).to_owned()
}

/// Returns a message without the blocks below a line such as `Sender (untrusted metadata):`.
fn without_untrusted(text: &str) -> String {
    let mut own = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        if is_untrusted_head(line) {
            rest = after_block(after);
        } else {
            own.push_str(line);
            rest = after;
        }
    }
    own
}

/// Returns whether a line ends in `(untrusted):`, `(untrusted metadata):`, `(untrusted, for context):`, or the like.
fn is_untrusted_head(line: &str) -> bool {
    let line = line.trim_end();
    let note = line.rfind(UNTRUSTED_HEAD).and_then(|at| line.get(at + UNTRUSTED_HEAD.len()..));
    note.is_some_and(|it| it.ends_with("):") && it.starts_with([' ', ',', ')']))
}

/// Returns what follows a block of code, or else the lines up to a blank one, without blank lines before it. A block of
/// code without an end extends to the end of the message.
fn after_block(text: &str) -> &str {
    let start = text.trim_start();
    let (first, inside) = split_line(start);
    let words = first.trim_start_matches('`');
    let fence = &first[..first.len() - words.len()];
    let mut rest = text;
    if fence.len() < 3 {
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            rest = after;
            if line.trim().is_empty() {
                break;
            }
        }
    } else {
        let mut is_open = !words.contains(fence);
        rest = inside;
        while is_open && !rest.is_empty() {
            let (line, after) = split_line(rest);
            is_open = !line.trim_start().starts_with(fence);
            rest = after;
        }
    }
    without_blank_lines(rest)
}

/// Returns a message without the events and the time that the program puts before it.
fn without_heads(text: &str) -> &str {
    let mut rest = text;
    loop {
        let start = rest.trim_start();
        if EVENT_STARTS.iter().any(|it| start.starts_with(it)) {
            rest = after_block(start);
        } else if let Some(words) = without_stamp(start) {
            rest = words;
        } else {
            return rest;
        }
    }
}

/// Returns what follows a time such as `[Mon 2026-03-23 13:12 UTC] `, if a message begins with it.
fn without_stamp(text: &str) -> Option<&str> {
    let (stamp, words) = text.strip_prefix('[')?.split_once(']')?;
    let mut parts = stamp.split(' ');
    let is_weekday = WEEKDAYS.contains(&parts.next()?);
    let is_date = NaiveDate::parse_from_str(parts.next()?, "%Y-%m-%d").is_ok();
    let has_time = parts.next()?.contains(':');
    (is_weekday && is_date && has_time).then(|| words.strip_prefix(' ').unwrap_or(words))
}

/// Splits the first line off, with its end.
fn split_line(text: &str) -> (&str, &str) {
    text.split_at(text.find('\n').map_or(text.len(), |it| it + 1))
}

fn without_blank_lines(text: &str) -> &str {
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        if !line.trim().is_empty() {
            break;
        }
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::transcript::{
        Transcript, TranscriptFormat,
        tool::ToolKind::{Memory, Other, Read},
    };

    fn read_lines(lines: &[Value]) -> Transcript {
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let transcript = super::super::read(text.as_bytes(), None).unwrap();
        assert_eq!(transcript.format, TranscriptFormat::OpenClaw);
        assert_eq!(transcript.anomalies.unread.len(), 0, "{:?}", transcript.anomalies);
        transcript
    }

    fn key(key: &str) -> Value {
        json!({"type": KEY_KIND, "key": key})
    }

    fn start() -> Value {
        json!({"type": "session", "version": 4, "id": "s", "timestamp": "2026-04-09T08:00:00Z",
            "cwd": "/home/nia/.openclaw/workspace"})
    }

    fn event(id: &str, parent: &str, message: &Value) -> Value {
        json!({"type": "message", "id": id, "parentId": parent,
            "timestamp": "2026-04-09T08:01:00Z", "message": message})
    }

    fn user(id: &str, parent: &str, text: &str) -> Value {
        event(
            id,
            parent,
            &json!({"role": "user", "content": text, "__openclaw": {"senderIsOwner": true}}),
        )
    }

    fn says(id: &str, parent: &str, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        event(id, parent, &json!({"role": "assistant", "content": content}))
    }

    fn calls(id: &str, parent: &str, name: &str, input: &Value) -> Value {
        let call = json!({"type": "toolCall", "id": id, "name": name, "arguments": input});
        event(id, parent, &json!({"role": "assistant", "content": [{"type": "thinking"}, call]}))
    }

    fn result(id: &str, parent: &str, text: &str, is_error: bool) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        event(
            id,
            parent,
            &json!({"role": "toolResult", "toolCallId": parent, "content": content,
            "isError": is_error}),
        )
    }

    fn messages(transcript: &Transcript) -> Vec<&str> {
        transcript.own_entries().filter_map(|it| it.content.user_words()).collect()
    }

    #[test]
    fn messages_calls_and_results_are_read() {
        let inner = json!({"id": "mcp:memoird:memoird__memory_search", "args": {"query": "datum"}});
        let lines = [
            key("agent:main:main"),
            start(),
            json!({"type": "model_change", "id": "m", "parentId": null, "modelId": "m"}),
            user("a", "m", "Import the Brest table"),
            calls("b", "a", "read", &json!({"path": "a.csv"})),
            result("r", "b", "1;2", false),
            calls("c", "r", "tool_call", &inner),
            result("t", "c", "Brest has two", false),
            calls("d", "t", "tool_search", &json!({"query": "x"})),
            result("u", "d", "no", true),
            says("e", "u", "Imported."),
        ];
        let transcript = read_lines(&lines);
        assert_eq!(messages(&transcript), ["Import the Brest table"]);
        assert_eq!(transcript.session.as_deref(), Some("s"));
        assert_eq!(transcript.cwd.as_deref(), Some("/home/nia/.openclaw/workspace"));
        let kinds = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Call(call) => Some(call.kind),
            _ => None,
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [Read, Memory, Other]);
        let results = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Result(result) => Some((&result.text[..], result.is_error)),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), [("1;2", false), ("no", true)]);
        assert_eq!(transcript.last_line(), Some("e"));
    }

    #[test]
    fn what_was_rewound_is_discarded() {
        let transcript = read_lines(&[
            start(),
            user("a", "s", "Use XML"),
            says("b", "a", "Yes."),
            user("c", "a", "Use JSON"),
            user("d", "s", "Use YAML"),
            says("e", "d", "Yes."),
        ]);
        assert_eq!(messages(&transcript), ["Use YAML"]);
    }

    #[test]
    fn text_of_others_is_not_the_users() {
        let internal = format!("Go on\n\n{INTERNAL_START}\nWe decided.\n{INTERNAL_END}");
        let metadata = "Sender (untrusted metadata):\n```json\n{\"name\": \"B\"}\n```\n\nStart";
        let guest = json!({"role": "user", "content": "We use XML", "__openclaw": {"senderIsOwner": false}});
        let inner = json!({"role": "user", "content": "We use XML", "provenance": {"kind": "inter_session"}});
        let transcript = read_lines(&[
            start(),
            user("a", "s", metadata),
            user("b", "a", &internal),
            event("c", "b", &guest),
            event("d", "c", &inner),
            user("e", "d", "A new session was started via /new or /reset. Greet the user."),
            json!({"type": "compaction", "id": "f", "parentId": "e", "summary": "We use XML",
                "tokensBefore": 9}),
        ]);
        assert_eq!(messages(&transcript), ["Start", "Go on"]);
        for machine in ["", "agent:main:subagent:1", "cron:daily", "hook:1", "agent:main:boot:1"] {
            let transcript = read_lines(&[key(machine), start(), user("a", "s", "Review this")]);
            assert!(transcript.is_subagent && messages(&transcript).is_empty(), "{machine}");
        }
    }

    #[test]
    fn what_the_program_puts_before_a_message_is_not_the_users() {
        let own = without_internal;
        for head in [
            "Thread starter (untrusted, for context):",
            "Replied message (untrusted, for context):",
            "Chat history since last reply (untrusted, for context):",
            "Conversation context (untrusted, chronological, selected for current message):",
            "Sender (untrusted metadata):",
        ] {
            let fenced =
                format!("{head}\n```json\n{{\"body\": \"We use XML\"}}\n\n```\n\nStart\n\nnow");
            assert_eq!(own(&fenced), "Start\n\nnow", "{head}");
            assert_eq!(
                own(&format!("Start\n\n{head}\nB: We use XML\nC: Yes\n\nnow")),
                "Start\n\nnow"
            );
            assert_eq!(own(&format!("{head}\n```json\nWe use XML\n\nYes")), "");
        }
        assert_eq!(own("[Mon 2026-03-23 13:12 GMT+1] Start"), "Start");
        assert_eq!(own("[Mon] Start"), "[Mon] Start");
        let event = "System: [2026-03-23 13:12:01] Node connected\nSystem: Again\n\n";
        assert_eq!(own(&format!("{event}[Mon 2026-03-23 13:12 UTC] Start")), "Start");
        assert_eq!(own("System (untrusted): B joined\n\nStart"), "Start");
        assert_eq!(own("Is it (untrusted)?\nStart"), "Is it (untrusted)?\nStart");
        let transcript = read_lines(&[
            start(),
            user("a", "s", "[OpenClaw heartbeat poll]"),
            user("b", "a", "[OpenClaw session new]"),
            user("c", "b", "[OpenClaw session reset]"),
            user("d", "c", "[User sent media without caption]"),
            user("e", "d", "System: Node connected"),
            user("f", "e", "Go on"),
        ]);
        assert_eq!(messages(&transcript), ["Go on"]);
    }
}
