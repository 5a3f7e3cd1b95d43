//! Lines of Claude Code.
//!
//! The format is undocumented and changes without notice. A line has a `type`; `user` and `assistant`
//! lines contain a message of the API, with one block of content per line in newer versions. Lines of
//! subagents have `isSidechain`. `isMeta` and `isCompactSummary` mark user lines that the user did not
//! write; so do `origin.kind` and `turnOrigin`, for reports of background tasks and other agents.
//!
//! The user's words are also in `toolUseResult.answers` (answers to questions), in the result of a refused
//! call, and in `queue-operation` until the agent reads them.

use serde_json::Value;

use super::{EntryBuilder, EntryContent, string_field};

/// Kinds of lines with state of the program rather than events of the session.
const STATE_KINDS: [&str; 20] = [
    "artifact-autoreact-ledger",
    "artifact-comment-monitor",
    "atis-latch",
    "bridge-session",
    "content-replacement",
    "cost-state",
    "file-history-delta",
    "frame-link",
    "relocated",
    "tag",
    "tools-used",
    "worktree-state",
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
        "user" => read_user(entry, line, flag("isMeta") || is_from_program(line)),
        "assistant" => read_assistant(entry, line),
        "system" => read_system(entry, line),
        "attachment" => read_attachment(entry, line),
        "summary" => {
            let title = string_field(line, "summary").unwrap_or_default();
            entry.push(EntryContent::Notice(title.to_owned()));
        }
        "queue-operation" => read_queue_operation(entry, line),
        "progress" => entry.push(EntryContent::Other(kind_of(line))),
        kind if is_state_kind(kind) => {
            entry.push(EntryContent::Other(super::truncate(kind, 60)));
        }
        "" => entry.add_unknown("without a type"),
        kind => entry.add_unknown(kind),
    }
}

/// Returns whether lines of this kind hold state of the program.
pub(super) fn is_state_kind(kind: &str) -> bool {
    STATE_KINDS.contains(&kind) || kind.starts_with("api-request")
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

/// Returns whether a program or another agent wrote a message in the user's place.
fn is_from_program(line: &Value) -> bool {
    let kind = line.get("origin").and_then(|it| string_field(it, "kind"));
    kind.is_some_and(|it| it != "human")
        || string_field(line, "turnOrigin") == Some("task_notification")
        || string_field(line, "commandMode") == Some("task-notification")
}

/// Reads a change of the queue of messages. A queued message appears again as a message when the agent reads
/// it; until then it is only here.
fn read_queue_operation(entry: &mut EntryBuilder<'_>, line: &Value) {
    match string_field(line, "operation").unwrap_or_default() {
        "enqueue" => {
            let text = content_text(line.get("content"));
            if !is_from_program(line) {
                entry.queued.push_back((entry.transcript.entries.len(), text));
            }
        }
        "dequeue" | "remove" => drop(entry.queued.pop_front()),
        "popAll" => entry.queued.clear(),
        _ => {}
    }
    entry.push(EntryContent::Other(kind_of(line)));
}

/// Reads the user's answers to questions of the agent.
fn read_answers(entry: &mut EntryBuilder<'_>, result: Option<&Value>) {
    let Some(result) = result else { return };
    let Some(answers) = result.get("answers").and_then(Value::as_object) else { return };
    let answer = |(question, answer): (&String, &Value)| {
        let note = result.get("annotations").and_then(|it| it.get(question));
        let note = note.and_then(|it| string_field(it, "notes")).unwrap_or_default();
        (question.clone(), content_text(Some(answer)), note.to_owned())
    };
    let answers: Vec<_> = answers.iter().map(answer).collect();
    entry.add_answers(&answers);
}

/// Reads the words with which the user refused a call.
fn read_refusal(entry: &mut EntryBuilder<'_>, line: &Value, block: &Value) {
    const REFUSED: &str = "The user doesn't want to proceed with this tool use.";
    let text = content_text(block.get("content"));
    let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
    let is_denial = string_field(line, "toolDenialKind").is_some();
    if !is_error {
        return;
    }
    // Newer versions name the words, and say whether a text that a host of the program passes on is the user's.
    if is_denial && let Some(words) = string_field(line, "userFeedback") {
        return entry.add_user_text(words);
    }
    if !text.starts_with(REFUSED) {
        let holds_words = line.get("holdsPersonsWords").and_then(Value::as_bool) == Some(true);
        let decision = line.get("permissionDecision").and_then(|it| string_field(it, "source"));
        if is_denial && holds_words && decision == Some("user_reject") {
            entry.add_user_text(&text);
        }
        return;
    }
    // A server of tools may return the same words.
    let is_call = |it: &super::TranscriptEntry| match &it.content {
        EntryContent::Call(call) => Some(&call.id[..]) == string_field(block, "tool_use_id"),
        _ => false,
    };
    let call = entry.transcript.entries.iter().rev().find(|it| is_call(it));
    let is_own_tool = matches!(call.map(|it| &it.content),
        Some(EntryContent::Call(call)) if !call.name.starts_with("mcp__"));
    if !is_own_tool && !is_denial {
        return;
    }
    let Some((_, words)) = text.split_once("the user said:") else { return };
    let words = words.split("\n\nNote: The user's next message").next().unwrap_or_default();
    // Written by the program: the questions so far.
    if !words.trim_start().starts_with("The user wants to clarify these questions.") {
        entry.add_user_text(words);
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
            "tool_result" => {
                entry.add_result_block(block);
                let call = string_field(block, "tool_use_id");
                if call.and_then(|it| entry.questions.remove(it)).is_some() {
                    read_answers(entry, line.get("toolUseResult"));
                }
                read_refusal(entry, line, block);
            }
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
        "queued_command" => {
            let prompt = content_text(attached.get("prompt"));
            let is_meta = line.get("isMeta").and_then(Value::as_bool) == Some(true);
            if is_meta || is_from_program(line) || is_from_program(attached) {
                entry.add_notice(&prompt);
            } else if string_field(attached, "commandMode") == Some("bash") {
                entry.push(EntryContent::Command(format!("!{}", prompt.trim())));
            } else {
                entry.add_user_text(&prompt);
            }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::{
        digest::SessionDigest,
        transcript::{Transcript, TranscriptFormat},
    };

    /// Reads lines of a session, each continuing the one before unless it names its parent.
    fn read_lines(lines: &[Value]) -> Transcript {
        let mut text = Vec::new();
        for (n, line) in lines.iter().enumerate() {
            let mut line = line.clone();
            let object = line.as_object_mut().unwrap();
            object.entry("sessionId").or_insert(json!("s"));
            if matches!(object["type"].as_str(), Some("user" | "assistant" | "attachment")) {
                object.entry("uuid").or_insert(json!(format!("u{n}")));
                let parent = n.checked_sub(1).map(|it| format!("u{it}"));
                object.entry("parentUuid").or_insert(json!(parent));
            }
            text.push(line.to_string());
        }
        super::super::read(text.join("\n").as_bytes(), Some(TranscriptFormat::ClaudeCode)).unwrap()
    }

    fn user(content: impl Into<Value>) -> Value {
        json!({"type": "user", "message": {"role": "user", "content": content.into()}})
    }

    fn agent(content: impl Into<Value>) -> Value {
        json!({"type": "assistant", "message": {"role": "assistant", "content": content.into()}})
    }

    /// Returns the object with further fields.
    fn with(mut object: Value, fields: Value) -> Value {
        let Value::Object(fields) = fields else { panic!() };
        object.as_object_mut().unwrap().extend(fields);
        object
    }

    #[track_caller]
    fn check_messages(lines: &[Value], expected: &[&str]) {
        let transcript = read_lines(lines);
        let digest = SessionDigest::of(&transcript);
        let found: Vec<&str> = digest.messages.iter().map(|it| it.text).collect();
        assert_eq!(found, expected);
        assert_eq!(transcript.anomalies.unread.len(), 0, "{:?}", transcript.anomalies);
    }

    #[test]
    fn reports_of_tasks_and_other_agents_are_not_the_users_words() {
        let report = "We decided to drop the tide table.";
        let tagged = format!("<task-notification><result>{report}</result></task-notification>");
        let queued = |fields: Value| {
            let attached = json!({"type": "queued_command", "prompt": report});
            json!({"type": "attachment", "attachment": with(attached, fields)})
        };
        let lines = [
            user("Start it"),
            with(user(report), json!({"origin": {"kind": "task-notification"}})),
            with(user(report), json!({"origin": {"kind": "peer"}})),
            with(user(report), json!({"turnOrigin": "task_notification"})),
            user(tagged),
            queued(json!({"commandMode": "task-notification"})),
            queued(json!({"origin": {"kind": "task-notification"}})),
            with(user("Go on"), json!({"origin": {"kind": "human"}, "turnOrigin": "human"})),
            with(queued(json!({"commandMode": "prompt", "prompt": "And push"})), json!({})),
            with(user("By a script"), json!({"turnOrigin": "sdk"})),
        ];
        check_messages(&lines, &["Start it", "Go on", "And push", "By a script"]);
        let transcript = read_lines(&lines);
        assert!(SessionDigest::of(&transcript).decisions.is_empty());
    }

    #[test]
    fn answers_and_refusals_are_the_users_words() {
        let call = |id: &str, name: &str| {
            let question = json!({"question": "Which datum?", "header": "Datum"});
            agent(json!([{"type": "tool_use", "id": id, "name": name,
                "input": {"questions": [question]}}]))
        };
        let result = |id: &str, is_error: bool, text: &str| {
            user(json!([{"type": "tool_result", "tool_use_id": id, "is_error": is_error,
                "content": text}]))
        };
        let answers = json!({"toolUseResult": {"answers": {"Which datum?": "ZH"},
            "annotations": {"Which datum?": {"notes": "as in Brest"}}}});
        let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected. \
                       To tell you how to proceed, the user said:\nnever delete dist, it holds the \
                       signed release\n\nNote: The user's next message may contain a correction or \
                       preference.";
        let unclear = refused.replace("never", "The user wants to clarify these questions. never");
        let lines = [
            user("Clean up"),
            call("q", "AskUserQuestion"),
            with(result("q", false, "Your questions have been answered."), answers.clone()),
            call("b", "Bash"),
            result("b", true, refused),
            call("c", "AskUserQuestion"),
            result("c", true, &unclear),
            call("m", "mcp__x__y"),
            with(result("m", true, refused), answers),
            call("n", "Bash"),
            result("n", false, refused),
        ];
        let words = "never delete dist, it holds the signed release";
        check_messages(&lines, &["Clean up", "Which datum? ZH as in Brest", words]);
        let transcript = read_lines(&lines);
        let digest = SessionDigest::of(&transcript);
        let decided = digest.decisions.iter().find(|it| it.text.starts_with("Which")).unwrap();
        assert!(decided.is_person);
        let corrected = |it: &crate::session::digest::FailedCall<'_>| matches!(it.follow_up, crate::session::digest::FollowUp::Corrected(_, text) if text == words);
        assert!(digest.failures.iter().any(corrected), "{:?}", digest.failures);
    }

    #[test]
    fn commands_with_words_and_unread_messages_count() {
        let command = |name: &str, words: &str| {
            user(format!(
                "<command-message>{name}</command-message>\n<command-name>/{name}</command-name>\n\
                 <command-args>{words}</command-args>"
            ))
        };
        let queue = |operation: &str, content: &str| json!({"type": "queue-operation", "operation": operation, "content": content});
        let lines = [
            command("review", "never touch dist"),
            command("model", "opus"),
            user("<bash-input>make dist</bash-input>"),
            queue("enqueue", "read at once"),
            queue("dequeue", ""),
            user("read at once"),
            queue("enqueue", "sign it before you push"),
            queue("enqueue", "<task-notification>done</task-notification>"),
        ];
        let expected =
            ["/review never touch dist", "!make dist", "read at once", "sign it before you push"];
        check_messages(&lines, &expected);
        let lines = [&[user("Look at it")], &lines[..1]].concat();
        let transcript = read_lines(&lines);
        let digest = SessionDigest::of(&transcript);
        let (zone, now) = (chrono_tz::UTC, chrono::DateTime::UNIX_EPOCH);
        let entries = crate::session::log_entry::log_entries(&transcript, &digest, zone, now);
        let corrected = "The user corrected: /review never touch dist";
        assert!(entries[0].lines.iter().any(|it| it.text == corrected), "{entries:?}");
    }

    #[test]
    fn a_rewound_conversation_is_read_along_its_last_branch() {
        let lines = [
            user("Write the importer"),
            agent("Which format?"),
            user("We decided to use XML"),
            agent("Decided to use XML."),
            with(user("We decided to use CSV"), json!({"parentUuid": "u1"})),
            agent("Done."),
            json!({"type": "last-prompt", "lastPrompt": "x", "leafUuid": "u5"}),
        ];
        check_messages(&lines, &["Write the importer", "We decided to use CSV"]);
        let transcript = read_lines(&lines);
        assert_eq!(transcript.last_line(), Some("u5"));
        let rest = transcript.after_line("u3").unwrap();
        assert_eq!(rest.own_entries().filter(|it| it.content.is_message()).count(), 2);
        // A fork with ids of its own has the ids of the lines that it copied.
        let copied = json!({"uuid": "f0", "forkedFrom": {"sessionId": "s", "messageUuid": "u0"}});
        let fork = read_lines(&[with(user("Write the importer"), copied)]);
        assert_eq!(fork.last_line(), Some("u0"));
    }

    #[test]
    fn lines_of_state_are_known() {
        let kinds = ["api-request", "api-request-start", "cost-state", "atis-latch", "tools-used"];
        let lines: Vec<Value> = kinds.iter().map(|it| json!({"type": it})).collect();
        check_messages(&lines, &[]);
    }
}
