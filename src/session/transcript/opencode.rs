//! Messages of opencode, from its database (`store::db::opencode_sessions`) or from `opencode export`.
//!
//! An export is one object with the session's `info` and its `messages`. The database gives the same in lines: the
//! session first, then one message to a line. A message has an `info` with its `role`, and `parts`: text, tool
//! calls with their results, a compaction. What the program adds in the place of the user is `synthetic`.
//!
//! A compaction is a part of an empty user message; the answer to it is the summary. The program hides messages
//! that the user reverts behind the `revert` of the session, and deletes them with the next prompt. The context of
//! our plugin is in no message.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{DISCARDED, EntryBuilder, EntryContent, claude::content_text, string_field};

/// Begins the answer with a command that the user typed for the shell.
const SHELL: &str = "The following tool was executed by the user";
/// The kind of the entry for it.
const SHELL_KIND: &str = "shell";

/// Returns whether a line alone shows this format.
pub(super) fn is_line(line: &Value) -> bool {
    let Some(info) = line.get("info") else { return false };
    is_message(line) || info.get("directory").is_some_and(Value::is_string)
}

/// Returns whether a line is a message; otherwise it is a session, maybe with its messages.
fn is_message(line: &Value) -> bool {
    line.get("info").is_some_and(|it| it.get("role").is_some())
}

pub(super) fn read(entry: &mut EntryBuilder<'_>, line: &Value) {
    let Some(info) = line.get("info") else {
        return entry.add_unknown(string_field(line, "type").unwrap_or("without a type"));
    };
    if is_message(line) {
        return read_message(entry, info, line);
    }
    let text = |key: &str| string_field(info, key).map(str::to_owned);
    entry.transcript.session = text("id");
    entry.transcript.cwd = text("directory");
    entry.transcript.agent = text("version").map(|it| format!("opencode {it}"));
    entry.transcript.is_subagent |= text("parentID").is_some();
    if let Some(revert) = info.get("revert").filter(|it| it.is_object()) {
        let id = |key: &str| string_field(revert, key).unwrap_or_default().to_owned();
        *entry.reverted_from = Some((id("messageID"), id("partID")));
    }
    let messages = line.get("messages").and_then(Value::as_array);
    for message in messages.into_iter().flatten() {
        read_message(entry, message.get("info").unwrap_or(&Value::Null), message);
    }
}

fn read_message(entry: &mut EntryBuilder<'_>, info: &Value, message: &Value) {
    let id = string_field(info, "id").unwrap_or_default();
    let parts = message.get("parts").and_then(Value::as_array);
    let created = time(info, "created");
    entry.has_own_id = true;
    for part in parts.into_iter().flatten() {
        let first = entry.transcript.entries.len();
        let part_id = string_field(part, "id").unwrap_or_default();
        part_id.clone_into(&mut entry.id);
        entry.at = time(part, "start").or(created);
        if string_field(info, "role") == Some("user") {
            read_user_part(entry, part);
        } else {
            read_answer_part(entry, part, info.get("summary") == Some(&Value::Bool(true)));
        }
        // Later ids are greater.
        let is_reverted = entry.reverted_from.as_ref().is_some_and(|(message, part)| {
            id > &message[..] || id == message && part_id >= &part[..]
        });
        if is_reverted {
            for discarded in &mut entry.transcript.entries[first..] {
                discarded.set_content(EntryContent::Other(DISCARDED.to_owned()));
            }
        }
    }
    if let Some(error) = info.get("error").filter(|it| it.is_object()) {
        id.clone_into(&mut entry.id);
        let words = error.get("data").and_then(|it| string_field(it, "message"));
        let words = words.or_else(|| string_field(error, "name")).unwrap_or_default();
        entry.push(EntryContent::Notice(words.to_owned()));
    }
}

fn read_user_part(entry: &mut EntryBuilder<'_>, part: &Value) {
    let text = string_field(part, "text").unwrap_or_default();
    let is_set = |key: &str| part.get(key) == Some(&Value::Bool(true));
    match string_field(part, "type").unwrap_or_default() {
        "text" if text == SHELL => entry.push(EntryContent::Other(SHELL_KIND.to_owned())),
        "text" if is_set("synthetic") || is_set("ignored") => {
            entry.push(EntryContent::Notice(text.to_owned()));
        }
        "text" => entry.add_user_text(text),
        "compaction" => {
            let trigger = if is_set("auto") { "auto" } else { "manual" };
            let trigger = Some(trigger.to_owned());
            entry.push(EntryContent::Boundary { trigger, tokens_before: None });
        }
        // The words of a command that another agent carries out.
        "subtask" => {
            let prompt = string_field(part, "prompt").unwrap_or_default();
            entry.push(EntryContent::Notice(prompt.to_owned()));
        }
        kind @ ("file" | "agent") => entry.push(EntryContent::Other(kind.to_owned())),
        kind => entry.add_unknown(kind),
    }
}

fn read_answer_part(entry: &mut EntryBuilder<'_>, part: &Value, is_summary: bool) {
    let text = string_field(part, "text").unwrap_or_default();
    match string_field(part, "type").unwrap_or_default() {
        "text" if is_summary => entry.push(EntryContent::Summary(text.to_owned())),
        "text" => entry.add_assistant_text(text),
        "tool" => read_call(entry, part),
        kind @ ("reasoning" | "step-start" | "step-finish" | "snapshot" | "patch" | "retry"
        | "file") => {
            entry.push(EntryContent::Other(kind.to_owned()));
        }
        kind => entry.add_unknown(kind),
    }
}

/// Reads a call with its result, if it has one yet.
fn read_call(entry: &mut EntryBuilder<'_>, part: &Value) {
    let state = part.get("state").unwrap_or(&Value::Null);
    let input = state.get("input").unwrap_or(&Value::Null);
    entry.at = time(state, "start").or(entry.at);
    let is_typed = entry
        .transcript
        .entries
        .last()
        .is_some_and(|it| it.content == EntryContent::Other(SHELL_KIND.to_owned()));
    if is_typed {
        let command = string_field(input, "command").unwrap_or_default();
        return entry.push(EntryContent::Command(format!("!{}", command.trim())));
    }
    let id = string_field(part, "callID");
    let name = string_field(part, "tool").unwrap_or_default();
    entry.add_call(id, name, input);
    let is_error = string_field(state, "status") == Some("error");
    let output = state.get(if is_error { "error" } else { "output" });
    if output.is_some() {
        entry.at = time(state, "end").or(entry.at);
        entry.add_result(id, &content_text(output), is_error);
    }
    let questions = input.get("questions").and_then(Value::as_array);
    let answers = state.get("metadata").and_then(|it| it.get("answers")?.as_array());
    if let (Some(questions), Some(answers)) = (questions, answers) {
        let answers = questions.iter().zip(answers).map(|(question, answer)| {
            let question = string_field(question, "question").unwrap_or_default().to_owned();
            (question, content_text(Some(answer)), String::new())
        });
        entry.add_answers(&answers.collect::<Vec<_>>());
    }
}

/// Returns a time of an object, in milliseconds since 1970.
fn time(of: &Value, key: &str) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(of.get("time")?.get(key)?.as_i64()?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::session::transcript::{
        Transcript, TranscriptFormat,
        tool::ToolKind::{self, Edit, Memory, Other, Read, Shell},
    };

    fn session(more: &Value) -> Value {
        let mut info = json!({"id": "ses_1", "slug": "calm-tide", "projectID": "global",
            "directory": "/home/nia/tide", "title": "Tides", "version": "1.18.33",
            "time": {"created": 1_775_890_800_000_i64, "updated": 1_775_890_900_000_i64}});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "info": info })
    }

    fn message(id: &str, role: &str, more: &Value, parts: &[Value]) -> Value {
        let mut info = json!({"id": id, "role": role, "time": {"created": 1_775_890_800_000_i64}});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let with_id = |(n, part): (usize, &Value)| {
            let mut part = part.clone();
            part["id"] = json!(format!("prt_{id}_{n}"));
            part
        };
        json!({"info": info, "parts": parts.iter().enumerate().map(with_id).collect::<Vec<_>>()})
    }

    fn text(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    fn call(tool: &str, input: &Value, output: &str, more: &Value) -> Value {
        let mut state = json!({"status": "completed", "input": input, "output": output, "title": "",
            "metadata": {}, "time": {"start": 1_775_890_801_000_i64, "end": 1_775_890_802_000_i64}});
        state.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"type": "tool", "tool": tool, "callID": format!("call_{tool}"), "state": state})
    }

    /// Reads a session from the lines of the database and from an export, which must give the same.
    #[track_caller]
    fn read_both(lines: &[Value]) -> Transcript {
        let text = lines.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let transcript = super::super::read(text.as_bytes(), None).unwrap();
        assert_eq!(transcript.format, TranscriptFormat::Opencode);
        assert_eq!(transcript.anomalies.unread.len(), 0, "{:?}", transcript.anomalies);
        let export = json!({"info": lines[0]["info"], "messages": lines[1..]});
        let export = super::super::read(format!("{export:#}\n").as_bytes(), None).unwrap();
        let contents = |it: &Transcript| {
            it.entries.iter().map(|it| (it.id.clone(), it.content.clone())).collect::<Vec<_>>()
        };
        assert_eq!(contents(&export), contents(&transcript));
        transcript
    }

    fn words(transcript: &Transcript) -> Vec<&str> {
        transcript.own_entries().filter_map(|it| it.content.user_words()).collect()
    }

    #[test]
    fn messages_calls_and_answers_are_read() {
        let none = json!({});
        let questions = json!({"questions": [{"question": "Which datum?"}, {"question": "Rows?"}]});
        let answers = json!({"metadata": {"answers": [["ZH"], []]}});
        let failed = json!({"status": "error", "error": "no such file", "output": null});
        let lines = [
            session(&none),
            message(
                "m1",
                "user",
                &none,
                &[
                    text("Import the Brest table\n<memoird-context>\nold\n</memoird-context>"),
                    json!({"type": "text", "synthetic": true, "text": "Called the Read tool"}),
                    json!({"type": "file", "mime": "text/plain", "filename": "brest.csv"}),
                ],
            ),
            message(
                "m2",
                "assistant",
                &none,
                &[
                    json!({"type": "step-start"}),
                    json!({"type": "reasoning", "text": "hm"}),
                    text("I look at it."),
                    call("read", &json!({"filePath": "/home/nia/tide/a.rs"}), "fn a() {}", &none),
                    call("edit", &json!({"filePath": "b.rs", "newString": "x"}), "", &failed),
                    call("memoird_memory_search", &json!({"query": "x"}), "Brest has two", &none),
                    call("question", &questions, "User has answered", &answers),
                    json!({"type": "step-finish", "reason": "stop"}),
                ],
            ),
            message(
                "m3",
                "user",
                &none,
                &[json!({"type": "text", "synthetic": true, "text": SHELL})],
            ),
            message(
                "m4",
                "assistant",
                &none,
                &[call("bash", &json!({"command": "make"}), "", &none)],
            ),
            message(
                "m5",
                "assistant",
                &none,
                &[call("bash", &json!({"command": "ls"}), "a", &none)],
            ),
        ];
        let transcript = read_both(&lines);
        assert_eq!(words(&transcript), ["Import the Brest table", "Which datum? ZH", "!make"]);
        let calls = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Call(call) => Some((call.kind, call.files.join(" "))),
            _ => None,
        });
        let of = |kind: ToolKind, files: &str| (kind, files.to_owned());
        assert_eq!(
            calls.collect::<Vec<_>>(),
            [
                of(Read, "/home/nia/tide/a.rs"),
                of(Edit, "b.rs"),
                of(Memory, ""),
                of(Other, ""),
                of(Shell, "")
            ]
        );
        let results = transcript.entries.iter().filter_map(|it| match &it.content {
            EntryContent::Result(result) => Some((&result.text[..], result.is_error)),
            _ => None,
        });
        let expected = [
            ("fn a() {}", false),
            ("no such file", true),
            ("User has answered", false),
            ("a", false),
        ];
        assert_eq!(results.collect::<Vec<_>>(), expected);
        assert_eq!(transcript.session.as_deref(), Some("ses_1"));
        assert_eq!(transcript.cwd.as_deref(), Some("/home/nia/tide"));
        assert_eq!(transcript.agent.as_deref(), Some("opencode 1.18.33"));
        assert_eq!(transcript.time_span().unwrap().0.timestamp(), 1_775_890_800);
        // A later save continues behind the last entry of an earlier one.
        let earlier = read_both(&lines[..2]);
        let rest = transcript.after_line(earlier.last_line().unwrap()).unwrap();
        assert_eq!(words(&rest), ["Which datum? ZH", "!make"]);
    }

    #[test]
    fn reverted_messages_are_discarded() {
        let lines = |revert: Value| {
            [
                session(&json!({ "revert": revert })),
                message("msg_1", "user", &json!({}), &[text("Keep this")]),
                message("msg_2", "assistant", &json!({}), &[text("Kept."), text("Not kept.")]),
                message("msg_3", "user", &json!({}), &[text("Undo this")]),
                message("msg_4", "assistant", &json!({}), &[text("Undone.")]),
            ]
        };
        let said = |transcript: &Transcript| {
            let said = transcript.entries.iter().filter(|it| it.content.is_message());
            said.filter_map(|it| it.own_words().map(str::to_owned)).collect::<Vec<_>>()
        };
        let all = ["Keep this", "Kept.", "Not kept.", "Undo this", "Undone."];
        for (revert, count) in [
            (json!(null), 5),
            (json!({"messageID": "msg_3"}), 3),
            (json!({"messageID": "msg_2", "partID": "prt_msg_2_1"}), 2),
        ] {
            assert_eq!(said(&read_both(&lines(revert))), all[..count]);
        }
    }

    #[test]
    fn a_compaction_bounds_the_session_and_its_summary_is_no_answer() {
        let transcript = read_both(&[
            session(&json!({})),
            message("m1", "user", &json!({}), &[text("Import it")]),
            message("m2", "user", &json!({}), &[json!({"type": "compaction", "auto": true})]),
            message("m3", "assistant", &json!({"summary": true}), &[text("## Goal")]),
            message(
                "m4",
                "user",
                &json!({}),
                &[
                    json!({"type": "text", "synthetic": true, "text": "Continue if you have next steps"}),
                ],
            ),
            message(
                "m5",
                "assistant",
                &json!({"error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}}}),
                &[],
            ),
        ]);
        let contents: Vec<_> = transcript.entries.iter().map(|it| it.content.clone()).collect();
        assert_eq!(
            contents,
            [
                EntryContent::User("Import it".to_owned()),
                EntryContent::Boundary { trigger: Some("auto".to_owned()), tokens_before: None },
                EntryContent::Summary("## Goal".to_owned()),
                EntryContent::Notice("Continue if you have next steps".to_owned()),
                EntryContent::Notice("Aborted".to_owned()),
            ]
        );
    }

    #[test]
    fn the_session_of_a_subagent_is_known_by_its_parent() {
        let parts = [text("Look")];
        let lines =
            [session(&json!({"parentID": "ses_0"})), message("m", "user", &json!({}), &parts)];
        let transcript = read_both(&lines);
        assert!(transcript.is_subagent);
        assert_eq!(transcript.own_entries().count(), 0);
    }
}
