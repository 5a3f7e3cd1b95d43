//! Asks a model for the statements of a day, for memories about topics, and parses its JSON.

use std::{collections::BTreeSet, fmt::Write as _};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ModelEngine,
    checked::{self, Checked, ReadItems, ReplyItem, ReplyReading},
    json as reply,
    request_data::{self, LineIds},
};
use crate::{
    engine::{EngineError, ExtractInput, Extraction, StatementDraft, UnreadableItem},
    memory::{
        address::{Address, Citation},
        statement::{MemoryStatement, StatementKind},
        typed::{self, TypedMemory},
    },
    model::{Message, ModelRequest, OutputSchema, Stage, prompt::PromptName},
    privacy::SanitizedLog,
    text::words,
};

/// The most statements in a reply; more than that cannot all be worth keeping.
pub(super) const STATEMENTS_MAX: usize = 200;

/// The most existing memories that are listed, newest first: these, and of the others those of which the logs have the
/// name.
const NAMES_MAX: usize = 200;
const NEWEST_NAMES: usize = 20;

/// An existing memory is listed with its statements if the logs name it, or share this many words with it.
const WORDS_SHARED_MIN: usize = 3;

/// The least room for the statements of existing memories, in characters. For longer logs it is this part of their length.
const KNOWN_CHARS_MIN: usize = 2_500;

const KNOWN_PART: usize = 4;

/// The longest topic and statement, in characters.
const TOPIC_CHARS_MAX: usize = 120;
const TEXT_CHARS_MAX: usize = 600;

/// The end of a request.
pub(super) const REMINDER: &str = "Reply with the JSON object only. Each statement cites the lines that say it; what \
    the memories say already is left out.";

/// A statement as the model writes it. Paths are not accepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatement {
    kind: String,
    topic: String,
    text: String,
    citations: String,
    #[serde(default)]
    replaces: Option<String>,
}

/// What the statements of a reply are checked against.
pub(super) struct StatementCheck<'a> {
    pub(super) logs: &'a [SanitizedLog],
    /// The names of other logs that were in the request.
    pub(super) shown: &'a [String],
    pub(super) existing: &'a [TypedMemory],
    /// Returns what is wrong with a statement.
    pub(super) verdict: &'a dyn Fn(&StatementDraft) -> Result<(), String>,
}

/// Existing memories as a request lists them.
pub(super) struct MemoryList {
    pub(super) text: String,
    /// The hash and the lines of each statement in it.
    pub(super) statements: Vec<(String, Option<Citation>)>,
}

impl ReplyItem for StatementDraft {
    fn to_json(&self, ids: &LineIds) -> Value {
        json!({
            "kind": self.kind.name(),
            "topic": self.topic,
            "text": self.text,
            "citations": ids.print(&self.citation),
            "replaces": self.replaces.as_deref().map(|it| ids.print_statement(it)),
        })
    }

    fn citation(&self) -> Option<&Citation> {
        Some(&self.citation)
    }
}

impl ModelEngine {
    pub(super) fn extract_by_model(
        &self,
        input: &ExtractInput<'_>,
    ) -> Result<Extraction, EngineError> {
        let logs = std::slice::from_ref(input.log);
        let blocks = request_data::blocks_of_logs(logs);
        if blocks.is_empty() {
            return Ok(Extraction::default());
        }
        // At most half of the room, so that the log is not split into many parts.
        let room = self.room_chars(&self.extract_request(input, "", "")) / 2;
        let existing = existing_memories(logs, input.existing, room);
        let empty = self.extract_request(input, &existing.text, "");
        let ids = LineIds::of(&blocks).with_statements(existing.statements);
        let check =
            StatementCheck { logs, shown: &[], existing: input.existing, verdict: input.check };
        let reading = ReplyReading {
            blocks: &blocks,
            ids: &ids,
            properties: properties(),
            read: &|text| Ok(check_statements(parse_reply(text, &ids)?, &check)),
            read_item: &|value| {
                let item = checked::read_item(&value, &ids, |it| parse_statement(it, &ids));
                check_statement(item, &check)
            },
        };
        let replies = self.ask_in_parts(&blocks, &empty, |parts, i| {
            let data = request_data::fenced_blocks(&parts[i], &self.nonce);
            self.ask_checked(&self.extract_request(input, &existing.text, &data), &reading)
        })?;
        Ok(into_extraction(replies.into_iter().flatten()))
    }

    /// Returns a request with a list of existing memories.
    fn extract_request(
        &self,
        input: &ExtractInput<'_>,
        existing: &str,
        data: &str,
    ) -> ModelRequest {
        let prompt = self.prompts.get(PromptName::Extract);
        // Memories are derived from logs, so they are untrusted data, too.
        let existing = request_data::fence(existing, &self.nonce);
        let messages = vec![Message::user(format!("{existing}\n\n{data}\n\n{REMINDER}"))];
        let period = input.log.stem().to_string();
        ModelRequest {
            schema: Some(schema()),
            ..self.request(Stage::Extract, period, prompt, prompt.fill(&[]), messages)
        }
    }
}

pub(super) fn into_extraction(
    items: impl IntoIterator<Item = Checked<StatementDraft>>,
) -> Extraction {
    let (statements, unreadable) = checked::split_unreadable(items);
    Extraction { statements, unreadable, ..Extraction::default() }
}

/// Returns the list of existing memories, newest first, in at most `chars_max` characters.
///
/// Memories that share words with the logs are listed with their statements.
pub(super) fn existing_memories(
    logs: &[SanitizedLog],
    memories: &[TypedMemory],
    chars_max: usize,
) -> MemoryList {
    let mut list = String::from("Memories that exist:\n");
    if memories.is_empty() {
        list.push_str("none\n");
    }
    let mut newest: Vec<&TypedMemory> = memories.iter().collect();
    newest.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.file_name.cmp(&b.file_name)));
    newest.truncate(NAMES_MAX);
    let lines = || logs.iter().flat_map(SanitizedLog::lines).filter(|it| it.is_content());
    let log_words: BTreeSet<String> = lines().flat_map(|it| words::long_words(it.text())).collect();
    let log_names: BTreeSet<String> =
        lines().flat_map(|it| words::lowercase_runs(it.text())).collect();
    let shared = |it: &TypedMemory| {
        let words = words::long_words(&format!("{} {} {}", it.name, it.description, it.body));
        let names: BTreeSet<String> = words::lowercase_runs(&it.name).collect();
        let is_named = !names.is_empty() && names.is_subset(&log_names);
        words.intersection(&log_words).count() + if is_named { WORDS_SHARED_MIN } else { 0 }
    };
    let headings: Vec<String> = newest.iter().map(|it| heading_of(it)).collect();
    let chars = |it: &String| it.chars().count();
    let room = chars_max.saturating_sub(chars(&list) + headings.iter().map(chars).sum::<usize>());
    let logged: usize = logs.iter().map(SanitizedLog::chars).sum();
    let mut room = room.min((logged / KNOWN_PART).max(KNOWN_CHARS_MIN));
    let mut likely: Vec<(usize, usize)> =
        newest.iter().enumerate().map(|(i, it)| (shared(it), i)).collect();
    likely.retain(|it| it.0 >= WORDS_SHARED_MIN);
    likely.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let is_known = |(i, it): &(usize, &&TypedMemory)| {
        *i < NEWEST_NAMES
            || words::long_words(&it.name).iter().any(|word| log_words.contains(word))
            || words::lowercase_runs(&it.name).all(|word| log_names.contains(&word))
    };
    let known: BTreeSet<usize> =
        newest.iter().enumerate().filter(is_known).map(|it| it.0).collect();
    let mut listed = vec![String::new(); newest.len()];
    let mut statements = Vec::new();
    for (_, i) in likely {
        let lines = statement_lines(newest[i]);
        if let Some(left) = room.checked_sub(chars(&lines)) {
            (room, listed[i]) = (left, lines);
            statements.extend(statement_keys(newest[i]));
        }
    }
    let mut left = chars_max.saturating_sub(chars(&list));
    let memories = headings.into_iter().zip(listed).enumerate();
    let memories = memories.filter(|(i, (_, lines))| known.contains(i) || !lines.is_empty());
    for memory in memories.map(|(_, (heading, lines))| heading + &lines) {
        let Some(rest) = left.checked_sub(chars(&memory)) else { break };
        left = rest;
        list.push_str(&memory);
    }
    MemoryList { text: list, statements }
}

/// Returns the line of a memory in a request: type, topic, and day of its newest line.
pub(super) fn heading_of(memory: &TypedMemory) -> String {
    let day = memory.updated.map(|it| format!(" | {it}")).unwrap_or_default();
    format!("## {} | {}{day}\n", memory.kind, memory.name)
}

/// Returns the statements of a memory, each with its id, kind and newest day.
fn statement_lines(memory: &TypedMemory) -> String {
    print_statements(&memory.known_statements())
}

/// Returns those statements of a memory that may last for good: no states, places or open items.
pub(super) fn lasting_statement_lines(memory: &TypedMemory) -> String {
    print_statements(&lasting_statements(memory))
}

/// Returns the statements of a memory that do not pass with the day.
pub(super) fn lasting_statements(memory: &TypedMemory) -> Vec<MemoryStatement> {
    let mut statements = memory.known_statements();
    statements.retain(|it| {
        let passes = [StatementKind::State, StatementKind::Environment, StatementKind::Open];
        !passes.contains(&it.kind)
    });
    statements
}

fn print_statements(statements: &[MemoryStatement]) -> String {
    let mut lines = String::new();
    for it in statements {
        let id = request_data::statement_id(&it.item.hash());
        let day = it.item.citation.as_ref().map(|it| format!(" [{}]", it.newest_date()));
        let day = day.unwrap_or_default();
        let _ = writeln!(lines, "{id} {} | {}{day}", it.kind.name(), it.item.text);
    }
    lines
}

/// Returns the hash and the lines of each statement of a memory.
pub(super) fn statement_keys(
    memory: &TypedMemory,
) -> impl Iterator<Item = (String, Option<Citation>)> {
    memory.known_statements().into_iter().map(|it| (it.item.hash(), it.item.citation))
}

/// Checks the statements of a reply.
pub(super) fn check_statements(
    list: ReadItems<StatementDraft>,
    with: &StatementCheck<'_>,
) -> Vec<Checked<StatementDraft>> {
    list.into_iter().map(|it| check_statement(it, with)).collect()
}

/// Checks a statement of a reply.
pub(super) fn check_statement(
    item: Result<StatementDraft, UnreadableItem>,
    with: &StatementCheck<'_>,
) -> Checked<StatementDraft> {
    checked::check_item(item, |draft| {
        check_shown(&draft.citation, with).and_then(|()| (with.verdict)(draft))
    })
}

/// Refuses a citation of lines that were not in the request: it contained the logs and the source lines
/// of existing memories.
fn check_shown(citation: &Citation, with: &StatementCheck<'_>) -> Result<(), String> {
    let is_shown = |at: &Address| {
        with.logs.iter().any(|it| at.stem == *it.stem())
            || with.shown.iter().any(|it| it == at.stem.as_str())
            || with.existing.iter().flat_map(|it| &it.sources).any(|it| it.0 == *at)
    };
    match citation.addresses().find(|it| !is_shown(it)) {
        Some(at) => Err(format!("line {at} was not shown to you")),
        None => Ok(()),
    }
}

/// Returns the schema of a reply, limited to what providers can enforce: all keys are required, and
/// lengths are checked here.
pub(super) fn schema() -> OutputSchema {
    reply::list_schema("statements", &reply::object_schema(&properties()))
}

fn properties() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "kind": { "type": "string", "enum": StatementKind::ALL.map(StatementKind::name) },
        "topic": text,
        "text": text,
        "citations": text,
        "replaces": { "type": ["string", "null"] },
    })
}

/// Parses a reply: `{"statements": […]}` or the bare list.
///
/// The error is worded for the model. An unreadable statement is an error in the list.
pub(super) fn parse_reply(text: &str, ids: &LineIds) -> Result<ReadItems<StatementDraft>, String> {
    let value = reply::find_value(text).ok_or("it contains no JSON")?;
    let list = reply::find_list(value, "statements", STATEMENTS_MAX)?;
    let read = |it: &Value| checked::read_item(it, ids, |it| parse_statement(it, ids));
    Ok(list.iter().map(read).collect())
}

pub(super) fn parse_statement(value: &Value, ids: &LineIds) -> Result<StatementDraft, String> {
    let written = RawStatement::deserialize(value).map_err(|e| e.to_string())?;
    let kinds = StatementKind::ALL;
    let kind = kinds.into_iter().find(|it| it.name() == written.kind);
    let kind = kind.ok_or_else(|| {
        format!("`kind` must be one of {}", kinds.map(StatementKind::name).join(", "))
    })?;
    let line = |text: &str, chars_max: usize, name: &str| {
        let line = typed::one_line(text);
        match line.chars().count() {
            0 => Err(format!("`{name}` is empty")),
            chars if chars > chars_max => Err(format!("`{name}` is over {chars_max} characters")),
            _ => Ok(line),
        }
    };
    let replaces = written.replaces.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let replaces = replaces.map(|it| ids.statement(&it).map_or(it.clone(), str::to_owned));
    Ok(StatementDraft {
        kind,
        topic: line(&written.topic, TOPIC_CHARS_MAX, "topic")?,
        text: line(&written.text, TEXT_CHARS_MAX, "text")?,
        citation: ids.parse(&written.citations)?,
        replaces,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Value {
        json!({
            "kind": "rule", "topic": "Tests", "text": "Run the tests before a push.",
            "citations": "2026-04-02:1,3", "replaces": null,
        })
    }

    #[test]
    fn statements_are_parsed_with_and_without_a_root_object() {
        let whole = json!({ "statements": [fields()] }).to_string();
        for reply in [whole, json!([fields()]).to_string()] {
            let drafts: Vec<_> =
                parse_reply(&reply, &LineIds::default()).unwrap().into_iter().flatten().collect();
            assert_eq!(drafts.len(), 1, "{reply}");
            assert_eq!(drafts[0].kind, StatementKind::Rule);
            assert_eq!(drafts[0].citation.to_string(), "2026-04-02:1,3");
        }
        assert_eq!(parse_reply("[]", &LineIds::default()), Ok(vec![]));
    }

    #[test]
    fn parse_errors_name_the_field() {
        for (key, value, expected) in [
            ("kind", json!("instruction"), "`kind` must be one of"),
            ("citations", json!("line 4"), "there is no line `line`"),
            ("topic", json!("x".repeat(121)), "`topic` is over 120"),
            ("text", json!(" "), "`text` is empty"),
            ("replaces", json!(3), "invalid type"),
            ("path", json!("/etc"), "unknown field `path`"),
        ] {
            let mut statement = fields();
            statement[key] = value;
            let reply = json!({ "statements": [fields(), statement] }).to_string();
            let parsed = parse_reply(&reply, &LineIds::default()).unwrap();
            let Err(part) = &parsed[1] else { panic!("{reply}") };
            assert!(parsed[0].is_ok() && part.reason.contains(expected), "{part:?}");
            assert_eq!(part.text, statement.to_string());
            assert_eq!(part.citation.is_some(), key != "citations");
        }
        assert!(
            parse_reply("I found nothing.", &LineIds::default()).unwrap_err().contains("no JSON")
        );
        assert!(
            parse_reply(r#"{"statement": []}"#, &LineIds::default())
                .unwrap_err()
                .contains("`statements`")
        );
    }
}
