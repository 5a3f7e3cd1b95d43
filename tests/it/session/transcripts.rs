//! Transcripts of each agent are read into one common form.

use std::{collections::BTreeMap, time::Instant};

use memoird::internals::session::{
    digest::{FollowUp, SessionDigest, SessionPlan},
    transcript::{self, EntryContent, TranscriptError, TranscriptFormat},
};
use proptest::prelude::*;
use serde_json::json;

use super::{generate, messages, read, sample_text};

#[test]
fn claude_code_transcripts_separate_user_messages_from_injected_text() {
    let session = read(&sample_text("claude-code.jsonl"));
    assert_eq!(session.format, TranscriptFormat::ClaudeCode);
    assert_eq!(session.session.as_deref(), Some("5f0c7a52-6f1e-4f0e-9a43-2d7c1b0e8f11"));
    assert_eq!(session.cwd.as_deref(), Some("/home/nia/tide"));
    assert_eq!(session.branch.as_deref(), Some("fix/harbour-import"));
    assert_eq!(session.agent.as_deref(), Some("claude-code 2.0.31"));
    assert_eq!(
        messages(&session),
        [
            "The import of harbour readings drops every row after a gap in the series. Please find \
             out why and fix it.\n\nKeep the public function `read_series` as it is: two other teams \
             call it.",
            "No, not a new list: use the existing `Gap` type from src/gap.py",
            "Good. Here is what the report looks like now:\n[image]",
            "Stop here for today, please. Never fill gaps with values.",
        ]
    );
    let count =
        |is: fn(&EntryContent) -> bool| session.own_entries().filter(|it| is(&it.content)).count();
    // Text of a hook and the result of a search.
    assert_eq!(count(|it| matches!(it, EntryContent::Injected)), 2);
    assert_eq!(count(|it| matches!(it, EntryContent::Summary(_))), 1);
    assert_eq!(count(|it| matches!(it, EntryContent::Command(it) if it == "/model sonnet")), 1);
    let boundary =
        EntryContent::Boundary { trigger: Some("auto".to_owned()), tokens_before: Some(154_120) };
    assert!(session.entries.iter().any(|it| it.content == boundary));
    assert_eq!(session.entries.iter().filter(|it| it.is_subagent).count(), 4);
    assert_eq!((session.anomalies.duplicates, session.anomalies.malformed), (1, 0));
    assert!(session.anomalies.is_truncated);
    assert_eq!(session.anomalies.unread, BTreeMap::from([("hologram".to_owned(), 1)]));
    assert!(
        session.entries.iter().any(|it| it.content == EntryContent::Other("hologram".to_owned()))
    );
    let (first, last) = session.time_span().unwrap();
    assert!(first < last, "{first} {last}");
}

#[test]
fn a_digest_is_derived_from_the_structure_of_the_transcript() {
    let session = read(&sample_text("claude-code.jsonl"));
    let digest = SessionDigest::of(&session);
    let changed: Vec<&str> = digest.changed_files().map(|it| &it.path[..]).collect();
    assert_eq!(
        changed,
        [
            "/home/nia/tide/src/series.py",
            "/home/nia/tide/tests/test_series.py",
            "/home/nia/tide/docs/gaps.md"
        ]
    );
    let only_read: Vec<&str> = digest.read_files().map(|it| &it.path[..]).collect();
    assert_eq!(only_read, ["/home/nia/tide/src/gap.py"]);
    let failures: Vec<_> = digest
        .failures
        .iter()
        .map(|it| {
            let follow_up = match it.follow_up {
                FollowUp::Resolved { .. } => "solved",
                FollowUp::Corrected(..) => "corrected",
                FollowUp::Replied(..) => "words",
                FollowUp::Called(..) => "did",
                FollowUp::SessionEnded => "nothing",
            };
            (it.text.lines().next().unwrap(), follow_up)
        })
        .collect();
    assert_eq!(
        failures,
        [
            ("Exit code 1", "solved"),
            ("String to replace not found in file.", "solved"),
            ("Exit code 2", "words"),
        ]
    );
    let Some(SessionPlan::Todo { .. }) = &digest.plan else { panic!("{:?}", digest.plan) };
    assert_eq!(
        digest.plan.as_ref().unwrap().text(),
        "- [x] Write a test with a gap in the series\n- [x] Go on after a gap instead of stopping\n\
         - [~] Tell the report where gaps are\n- [ ] Ask Priya whether 12 minutes is right for Brest"
    );
    assert_eq!(digest.plan.as_ref().unwrap().pending().len(), 2);
    // Calls of memoird are not commands of the session.
    assert_eq!(digest.commands.len(), 3);
    assert!(
        digest
            .decisions
            .iter()
            .any(|it| it.text.starts_with("I decided to start a new run") && it.has_reason)
    );
}

#[test]
fn codex_transcripts_are_read_without_duplicates() {
    let session = read(&sample_text("codex.jsonl"));
    assert_eq!(session.format, TranscriptFormat::Codex);
    assert_eq!(session.session.as_deref(), Some("019d-7a40-7c11-b2ee"));
    assert_eq!(
        (session.cwd.as_deref(), session.branch.as_deref()),
        (Some("/home/nia/tide"), Some("main"))
    );
    assert_eq!(
        messages(&session),
        [
            "Add a command that lists the stations, sorted by name.",
            "Thanks. Names in lower case, please."
        ]
    );
    let digest = SessionDigest::of(&session);
    let changed: Vec<&str> = digest.changed_files().map(|it| &it.path[..]).collect();
    assert_eq!(changed, ["/home/nia/tide/src/cli.py", "/home/nia/tide/tests/test_cli.py"]);
    assert_eq!(digest.failures.len(), 1);
    assert!(matches!(digest.failures[0].follow_up, FollowUp::Resolved { words: Some(_), .. }));
    assert_eq!(
        digest.plan.unwrap().text(),
        "- [x] Find where stations are kept\n- [x] Add the command"
    );
    assert_eq!(session.anomalies.unread, BTreeMap::new());
}

#[test]
fn gemini_transcripts_are_read_without_the_programs_messages() {
    let session = read(&sample_text("gemini.jsonl"));
    assert_eq!(session.format, TranscriptFormat::Gemini);
    assert_eq!(session.session.as_deref(), Some("7b1d0c52-4a8e-4d57-9f0e-5b2f6f1a9c30"));
    assert_eq!(session.cwd.as_deref(), Some("/home/nia/tide"));
    assert_eq!(
        messages(&session),
        [
            "Write a table of the highest tide of each month. Keep it out of the report.",
            "Which datum? ZH",
            "Good. Round to centimetres, as the harbour office does.",
        ]
    );
    let digest = SessionDigest::of(&session);
    let changed: Vec<&str> = digest.changed_files().map(|it| &it.path[..]).collect();
    assert_eq!(changed, ["/home/nia/tide/src/months.py"]);
    assert_eq!(digest.failures.len(), 1);
    assert!(matches!(digest.failures[0].follow_up, FollowUp::Resolved { .. }));
    assert_eq!(
        digest.plan.unwrap().text(),
        "- [~] Compute the highest tide per month\n- [ ] Write the table"
    );
    assert_eq!(session.anomalies.unread, BTreeMap::new());
}

#[test]
fn plain_transcripts_accept_both_forms_of_tool_calls() {
    let session = read(&sample_text("plain.jsonl"));
    assert_eq!(
        (session.format, session.session.as_deref()),
        (TranscriptFormat::Plain, Some("plain-7"))
    );
    // The same words twice are two messages: lines have no ids of their own.
    assert_eq!(messages(&session), ["Which station has the widest tide?", "thanks", "thanks"]);
    let ids: std::collections::BTreeSet<&str> =
        session.entries.iter().map(|it| &it.id[..]).collect();
    assert_eq!(ids.len(), 9);
    let digest = SessionDigest::of(&session);
    let commands: Vec<_> = digest.commands.iter().map(|it| (it.command, it.failed)).collect();
    assert_eq!(commands, [("tide widest", Some(true)), ("python widest.py", Some(false))]);
}

#[test]
fn text_without_a_session_is_refused_and_bad_lines_are_skipped() {
    for text in ["", "\n\n"] {
        let refused = transcript::read(text.as_bytes(), None);
        assert!(matches!(refused, Err(TranscriptError::Empty)), "{text:?}");
    }
    for text in ["hello\n", "{}\n", "[1,2]\n{\"a\":1}\n", "{\"role\": 3}\n"] {
        let refused = transcript::read(text.as_bytes(), None);
        assert!(matches!(refused, Err(TranscriptError::Unknown)), "{text:?}");
    }
    let text =
        "\u{feff}\u{1}\n{\"broken\n\n{\"role\":\"user\",\"content\":\"a\"}\r\n{\"role\":\"us";
    let session = read(text);
    assert_eq!((messages(&session), session.anomalies.malformed), (vec!["a"], 2));
    assert!(session.anomalies.is_truncated);
    assert_eq!(session.entries[0].line, 4);
    // With an explicit format everything is read in that format.
    let session = transcript::read("{}\n".as_bytes(), Some(TranscriptFormat::Plain)).unwrap();
    assert_eq!(session.anomalies.unread, BTreeMap::from([("without a role".to_owned(), 1)]));
}

#[test]
fn a_part_starts_after_a_line_and_a_copy_has_the_same_ids() {
    let text = generate::session(20);
    let session = read(&text);
    let tenth = session
        .entries
        .iter()
        .filter(|it| matches!(it.content, EntryContent::User(_)))
        .nth(10)
        .unwrap();
    let part = session.after_line(&tenth.id).unwrap();
    assert_eq!(messages(&part), messages(&session)[10 + 1..]);
    assert_eq!(session.after_line("nowhere"), None);
    // A resumed session has a new id and a copy of the lines.
    let copy = read(&text.replace("\"sessionId\":\"generated\"", "\"sessionId\":\"resumed\""));
    assert_eq!(copy.after_line(&tenth.id).unwrap().entries, part.entries);
    let plain = sample_text("plain.jsonl");
    let longer = format!("{plain}{}\n", json!({"role": "user", "content": "more"}));
    let last = read(&plain).entries.last().unwrap().id.clone();
    assert_eq!(messages(&read(&longer).after_line(&last).unwrap()), ["more"]);
}

#[test]
fn five_thousand_turns_are_read_within_a_minute() {
    let text = generate::session(5_000);
    let started = Instant::now();
    let session = read(&text);
    assert_eq!(messages(&session).len(), 5_000);
    let digest = SessionDigest::of(&session);
    assert_eq!(digest.failures.len(), 200);
    assert_eq!(digest.plan.unwrap().text(), "- [ ] Stations up to 4960");
    // No step is quadratic: a debug build on a busy machine takes a few seconds.
    assert!(started.elapsed().as_secs() < 60, "{:?}", started.elapsed());
}

fn line() -> impl Strategy<Value = String> {
    let words = prop_oneof![
        Just("do it".to_owned()),
        Just("<system-reminder>x</system-reminder>".to_owned()),
        Just("<memoird-context>".to_owned()),
        "[ -~é日\u{202e}]{0,30}",
    ];
    let kind = prop_oneof![
        Just("user"),
        Just("assistant"),
        Just("system"),
        Just("attachment"),
        Just("message"),
        Just("response_item"),
        Just("session_meta"),
        Just("tool"),
        Just("odd")
    ];
    let block = prop_oneof![
        words.clone().prop_map(|it| json!({"type": "text", "text": it})),
        words.clone().prop_map(|it| json!({"type": "tool_result", "tool_use_id": it, "content": it})),
        words.clone().prop_map(|it| json!({"type": "tool_use", "id": it, "name": it, "input": {"command": it, "todos": it, "file_path": it}})),
        Just(json!(null)), Just(json!([[]])),
    ];
    let content = prop_oneof![
        words.clone().prop_map(|it| json!(it)),
        prop::collection::vec(block, 0..4).prop_map(|it| json!(it)),
        Just(json!(7)),
        Just(json!(null)),
    ];
    let whole = (kind, content, words, any::<[bool; 6]>()).prop_map(|(kind, content, id, with)| {
        let mut line = json!({});
        let message = json!({"role": kind, "content": content.clone()});
        for (with, key, value) in [
            (with[0], "type", json!(kind)),
            (with[1], "uuid", json!(id)),
            (with[2], "message", message.clone()),
            (with[3], "role", json!(kind)),
            (with[4], "content", content),
            (with[5], "payload", message),
        ] {
            if with {
                line[key] = value;
            }
        }
        line.to_string()
    });
    prop_oneof![8 => whole, 1 => ".{0,40}".prop_map(|it| it.replace('\n', " "))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// No input panics in any format.
    #[test]
    fn no_input_panics(lines in prop::collection::vec(line(), 0..12), at in 0_usize..400) {
        let text = lines.join("\n");
        let formats = [
            TranscriptFormat::ClaudeCode,
            TranscriptFormat::Codex,
            TranscriptFormat::Copilot,
            TranscriptFormat::Gemini,
            TranscriptFormat::Opencode,
            TranscriptFormat::Plain,
        ];
        for format in formats.into_iter().map(Some).chain([None]) {
            if let Ok(session) = transcript::read(text.as_bytes(), format) {
                assert!(SessionDigest::of(&session).changed_files().count() <= session.entries.len());
                let cut = &text.as_bytes()[..at.min(text.len())];
                drop(transcript::read(cut, format));
            }
        }
    }

    /// User messages keep their number, order, and text among other lines.
    #[test]
    fn user_messages_survive_surrounding_noise(
        user_texts in prop::collection::vec("[a-z][a-z <>`#é-]{0,40}[a-z]", 1..8),
        noise in prop::collection::vec(line(), 8),
    ) {
        let mut text = String::new();
        for (at, words) in user_texts.iter().enumerate() {
            let other = &noise[at];
            // Noise of type `user` would itself count as a message.
            if !other.contains("\"user\"") && !other.contains("attachment") {
                text += other;
                text.push('\n');
            }
            let line = json!({"type": "user", "uuid": format!("id-{at}"), "sessionId": "s",
                "message": {"role": "user", "content": words}});
            text.push_str(&line.to_string());
            text.push('\n');
        }
        let session = transcript::read(text.as_bytes(), Some(TranscriptFormat::ClaudeCode)).unwrap();
        prop_assert_eq!(messages(&session), user_texts);
    }
}
