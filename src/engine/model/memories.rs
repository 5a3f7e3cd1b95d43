//! Asks a model for the typed memories of a day, and parses its JSON.
//!
//! Proposals that cannot be read or fail the checks are returned to the model once, together, each with
//! its problem. Afterwards the valid ones are used, and the user sees the others unchanged.

use std::{collections::BTreeSet, fmt::Write as _};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ModelEngine, json as reply, request_data, unreadable, unreadable_message, with_follow_up,
};
use crate::{
    engine::{EngineError, ExtractInput, Extraction, MemoryDraft, UnreadableMemory},
    memory::{
        address::{Address, Citation},
        frontmatter,
        typed::{self, MemoryType, TypedMemory},
    },
    model::{Message, ModelRequest, OutputSchema, Stage, prompt::PromptName},
    privacy::SanitizedLog,
    text::words,
};

/// The most memories in a reply; more than that cannot all be worth keeping.
const MEMORIES_MAX: usize = 50;

/// The most existing memories that are listed, newest first.
const NAMES_MAX: usize = 200;

/// The most existing memories that are listed with their text: those that share most words with the day.
const TEXTS_MAX: usize = 8;

/// The fewest shared words for that.
const WORDS_SHARED_MIN: usize = 3;

/// The most characters of such a text.
const TEXT_CHARS_MAX: usize = 400;

/// A memory as the model writes it. Paths are not accepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMemory {
    #[serde(rename = "type")]
    kind: String,
    topic: String,
    name: String,
    description: String,
    statement: String,
    why: Option<String>,
    how_to_apply: Option<String>,
    citations: String,
    #[serde(default)]
    updates: Option<String>,
}

pub(super) struct MemoryCheck<'a> {
    pub(super) logs: &'a [SanitizedLog],
    pub(super) existing: &'a [TypedMemory],
    /// Returns what is wrong with a draft.
    pub(super) verdict: &'a dyn Fn(&MemoryDraft) -> Result<(), String>,
}

/// A memory of a reply after the checks.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CheckedMemory {
    Valid(MemoryDraft),
    /// A readable draft that failed the checks, and why.
    Invalid(MemoryDraft, String),
    Unreadable(UnreadableMemory),
}

impl CheckedMemory {
    pub(super) fn problem(&self) -> Option<&str> {
        match self {
            Self::Valid(_) => None,
            Self::Invalid(_, why) | Self::Unreadable(UnreadableMemory { reason: why, .. }) => {
                Some(why)
            }
        }
    }

    /// Returns whether it has the topic of a valid draft.
    fn has_topic(&self, draft: &MemoryDraft) -> bool {
        match self {
            Self::Valid(it) | Self::Invalid(it, _) => it.topic == draft.topic,
            Self::Unreadable(it) => it.text.contains(&json!(draft.topic).to_string()),
        }
    }

    /// Returns whether it has the topic of a valid draft or shares a source line with it.
    fn concerns(&self, draft: &MemoryDraft) -> bool {
        let citation = match self {
            Self::Valid(it) | Self::Invalid(it, _) => Some(&it.citation),
            Self::Unreadable(it) => it.citation.as_ref(),
        };
        self.has_topic(draft) || citation.is_some_and(|it| it.overlaps(&draft.citation))
    }
}

impl ModelEngine {
    pub(super) fn extract_by_model(
        &self,
        input: &ExtractInput<'_>,
    ) -> Result<Extraction, EngineError> {
        let blocks = request_data::blocks_of_logs(std::slice::from_ref(input.log));
        if blocks.is_empty() {
            return Ok(Extraction::default());
        }
        let empty = self.extract_request(input, "");
        let replies = self.ask_in_parts(&blocks, &empty, |parts, i| {
            let request =
                self.extract_request(input, &request_data::fenced_blocks(&parts[i], &self.nonce));
            self.ask_for_memories(request, &request_data::LineLabels::of(&parts[i]), input)
        })?;
        Ok(into_extraction(replies.into_iter().flatten()))
    }

    /// Asks for memories. If some fail the checks, asks for those once more and names the problems.
    fn ask_for_memories(
        &self,
        request: ModelRequest,
        labels: &request_data::LineLabels<'_>,
        input: &ExtractInput<'_>,
    ) -> Result<Vec<CheckedMemory>, EngineError> {
        let logs = std::slice::from_ref(input.log);
        let check = MemoryCheck { logs, existing: input.existing, verdict: input.check };
        let read = |text: &str| Ok::<_, String>(check_memories(parse_reply(text)?, labels, &check));
        let text = self.ask(&request)?;
        let (mut first, message) = match read(&text) {
            Ok(first) => {
                let message = retry_message(&first);
                (first, message)
            }
            Err(why) => (Vec::new(), Some(unreadable_message(&why))),
        };
        let Some(message) = message else { return Ok(first) };
        let is_all_bad = !first.iter().any(|it| it.problem().is_none());
        let second = match self.ask(&with_follow_up(request, &text, message)) {
            Ok(second) => second,
            // The valid memories of the first reply are enough.
            Err(_) if !is_all_bad => return Ok(first),
            Err(error) => return Err(error),
        };
        let second = match read(&second) {
            Ok(second) => second,
            Err(_) if !first.is_empty() => return Ok(first),
            Err(why) => return Err(unreadable(why)),
        };
        merge_retry(&mut first, second);
        Ok(first)
    }

    fn extract_request(&self, input: &ExtractInput<'_>, data: &str) -> ModelRequest {
        let prompt = self.prompts.get(PromptName::Extract);
        // Memories are derived from logs, so they are untrusted data, too.
        let existing =
            existing_memories(std::slice::from_ref(input.log), input.existing, usize::MAX);
        let existing = request_data::fence(&existing, &self.nonce);
        let messages = vec![Message::user(format!("{existing}\n\n{data}"))];
        let period = input.log.stem().to_string();
        ModelRequest {
            schema: Some(schema()),
            ..self.request(Stage::Extract, period, prompt, prompt.fill(&[]), messages)
        }
    }
}

/// Replaces failed proposals of the first reply by those of the second one.
pub(super) fn merge_retry(first: &mut Vec<CheckedMemory>, second: Vec<CheckedMemory>) {
    for proposed in second {
        let CheckedMemory::Valid(draft) = &proposed else {
            if !first.contains(&proposed) {
                first.push(proposed);
            }
            continue;
        };
        let is_present = |it: &CheckedMemory| matches!(it, CheckedMemory::Valid(it) if it == draft);
        // It replaces one failed proposal only: others that share a line with it are still reported.
        let is_same = |it: &&CheckedMemory| it.has_topic(draft);
        let is_faulty = |it: &&CheckedMemory| it.problem().is_some();
        let topic = first.iter().position(|it| is_faulty(&it) && is_same(&it));
        let at = topic.or_else(|| first.iter().position(|it| is_faulty(&it) && it.concerns(draft)));
        // A repeated valid draft corrects nothing.
        if first.iter().any(is_present) {
            continue;
        }
        if let Some(at) = at {
            first.remove(at);
        }
        first.push(proposed);
    }
}

pub(super) fn into_extraction(proposed: impl Iterator<Item = CheckedMemory>) -> Extraction {
    let mut all = Extraction::default();
    for proposed in proposed {
        match proposed {
            // The run checks drafts itself and reports invalid ones.
            CheckedMemory::Valid(draft) | CheckedMemory::Invalid(draft, _) => {
                all.drafts.push(draft);
            }
            CheckedMemory::Unreadable(part) => all.unreadable.push(part),
        }
    }
    all
}

/// Returns the list of existing memories, newest first, in at most `chars_max` characters.
///
/// Memories that share words with the logs are listed with their text and source lines.
pub(super) fn existing_memories(
    logs: &[SanitizedLog],
    memories: &[TypedMemory],
    chars_max: usize,
) -> String {
    let mut list = String::from("Memories that exist:\n");
    if memories.is_empty() {
        list.push_str("none\n");
    }
    let mut newest: Vec<&TypedMemory> = memories.iter().collect();
    newest.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.file_name.cmp(&b.file_name)));
    newest.truncate(NAMES_MAX);
    let log_words: BTreeSet<String> = logs
        .iter()
        .flat_map(SanitizedLog::lines)
        .filter(|it| it.is_content())
        .flat_map(|it| words::long_words(it.text()))
        .collect();
    let shared = |it: &TypedMemory| {
        let words = words::long_words(&format!("{} {} {}", it.name, it.description, it.body));
        words.intersection(&log_words).count()
    };
    let mut likely: Vec<(usize, usize)> =
        newest.iter().enumerate().map(|(i, it)| (shared(it), i)).collect();
    likely.retain(|it| it.0 >= WORDS_SHARED_MIN);
    likely.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    likely.truncate(TEXTS_MAX);
    let mut room = chars_max.saturating_sub(list.chars().count());
    for (i, memory) in newest.iter().enumerate() {
        let name = memory.file_name.file_stem().unwrap_or_default().to_string_lossy();
        let mut listed = String::new();
        let _ = writeln!(listed, "- {name} | {}: {}", memory.name, memory.description);
        if likely.iter().any(|it| it.1 == i) {
            let text: String = typed::one_line(&memory.body).chars().take(TEXT_CHARS_MAX).collect();
            let lines = Citation::from_addresses(memory.sources.iter().map(|(at, _)| at));
            let lines = lines.map(|it| format!(" [{it}]")).unwrap_or_default();
            let _ = writeln!(listed, "  says: {text}{lines}");
        }
        room = match room.checked_sub(listed.chars().count()) {
            Some(room) => room,
            None => break,
        };
        list.push_str(&listed);
    }
    list
}

/// Expands the citation of each memory of a reply and checks it.
pub(super) fn check_memories(
    list: Vec<Result<MemoryDraft, UnreadableMemory>>,
    labels: &request_data::LineLabels<'_>,
    with: &MemoryCheck<'_>,
) -> Vec<CheckedMemory> {
    let check = |it: Result<MemoryDraft, UnreadableMemory>| {
        let mut draft = match it {
            Ok(draft) => draft,
            Err(part) => return CheckedMemory::Unreadable(part),
        };
        draft.citation = labels.expand(&draft.citation);
        let checked = check_shown(&draft.citation, with).and_then(|()| (with.verdict)(&draft));
        match checked {
            Ok(()) => CheckedMemory::Valid(draft),
            Err(why) => CheckedMemory::Invalid(draft, why),
        }
    };
    list.into_iter().map(check).collect()
}

/// Refuses a citation of lines that were not in the request: it contained the logs and the source lines
/// of existing memories.
fn check_shown(citation: &Citation, with: &MemoryCheck<'_>) -> Result<(), String> {
    let is_shown = |at: &Address| {
        with.logs.iter().any(|it| at.stem == *it.stem())
            || with.existing.iter().flat_map(|it| &it.sources).any(|it| it.0 == *at)
    };
    match citation.addresses().find(|it| !is_shown(it)) {
        Some(at) => Err(format!("line {at} was not shown to you")),
        None => Ok(()),
    }
}

/// Returns the message that asks for corrected memories, or `None` if all are valid.
pub(super) fn retry_message(proposed: &[CheckedMemory]) -> Option<String> {
    let mut message = String::from(
        "Some memories failed the check. Reply with the JSON object again, in the same format, with only \
         these memories, corrected, in its list. Leave out a memory that the lines do not support.\n",
    );
    let faults = proposed.iter().enumerate().filter_map(|(i, it)| Some((i, it.problem()?)));
    let mut any = false;
    for (i, why) in faults {
        any = true;
        let _ = write!(message, "\n- memory {}: {why}", i + 1);
    }
    any.then_some(message)
}

/// Returns the schema of a reply, limited to what providers can enforce: all keys are required, and
/// lengths are checked here.
pub(super) fn schema() -> OutputSchema {
    let text = json!({ "type": "string" });
    let text_or_null = json!({ "type": ["string", "null"] });
    let memory = reply::object_schema(&json!({
        "type": { "type": "string", "enum": ["user", "feedback", "project", "reference"] },
        "topic": text,
        "name": text,
        "description": text,
        "statement": text,
        "why": text_or_null,
        "how_to_apply": text_or_null,
        "citations": text,
        "updates": text_or_null,
    }));
    reply::list_schema("memories", &memory)
}

/// Parses a reply: `{"memories": […]}` or the bare list; each memory as its fields or as a file.
///
/// The error is worded for the model. An unreadable memory is an error in the list.
pub(super) fn parse_reply(
    text: &str,
) -> Result<Vec<Result<MemoryDraft, UnreadableMemory>>, String> {
    let value = reply::find_value(text).ok_or("it contains no JSON")?;
    let list = reply::find_list(value, "memories", MEMORIES_MAX)?;
    let read = |value: Value| {
        parse_memory(&value).map_err(|why| {
            let cited = value["citations"].as_str().and_then(parse_citation);
            UnreadableMemory { text: value.to_string(), reason: why, citation: cited }
        })
    };
    Ok(list.into_iter().map(read).collect())
}

/// Parses a citation with or without brackets.
fn parse_citation(text: &str) -> Option<Citation> {
    text.trim().trim_start_matches('[').trim_end_matches(']').parse().ok()
}

fn parse_memory(value: &Value) -> Result<MemoryDraft, String> {
    let written = match value.get("content").and_then(Value::as_str) {
        Some(content) => parse_memory_file(content, value)?,
        None => RawMemory::deserialize(value).map_err(|e| e.to_string())?,
    };
    let kind = MemoryType::from_name(&written.kind)
        .ok_or("`type` must be one of user, feedback, project, reference")?;
    let citation = parse_citation(&written.citations).ok_or("`citations` names no lines")?;
    let one_line = |text: &str, chars_max: usize, name: &str| {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        match line.chars().count() {
            0 => Err(format!("`{name}` is empty")),
            chars if chars > chars_max => Err(format!("`{name}` is over {chars_max} characters")),
            _ => Ok(line),
        }
    };
    let some = |text: Option<String>| text.filter(|it| !it.trim().is_empty());
    Ok(MemoryDraft {
        kind,
        topic: one_line(&written.topic, 200, "topic")?,
        name: one_line(&written.name, 120, "name")?,
        description: one_line(&written.description, 119, "description")?,
        statement: one_line(&written.statement, 4000, "statement")?,
        why: some(written.why),
        how_to_apply: some(written.how_to_apply),
        citation,
        updates: some(written.updates),
    })
}

/// Parses a memory written as a whole file: frontmatter, then the statement, then `**Why:**` and
/// `**How to apply:**`. Its file name is used only as the topic.
fn parse_memory_file(content: &str, value: &Value) -> Result<RawMemory, String> {
    let split = frontmatter::split(content);
    let yaml = split.yaml.ok_or("`content` has no frontmatter")?;
    let head = frontmatter::parse(yaml, frontmatter::YAML_BYTES_MAX).map_err(|e| e.to_string())?;
    let text = |key: &str| head.get(key).and_then(serde_yaml::Value::as_str).unwrap_or_default();
    let file = value.get("filename").and_then(Value::as_str).unwrap_or_default();
    let stem = file.rsplit(['/', '\\']).next().unwrap_or_default().trim_end_matches(".md");
    let topic = stem.split_once('_').map_or(stem, |(_, topic)| topic);
    let citations = match head.get("sources") {
        Some(serde_yaml::Value::Sequence(list)) => {
            let lines = list.iter().filter_map(serde_yaml::Value::as_str);
            lines.map(|it| it.split('#').next().unwrap_or(it)).collect::<Vec<_>>().join("; ")
        }
        _ => text("citations").to_owned(),
    };
    let body = split.body(content).trim();
    let part = |mark: &str| {
        let after = body.split_once(mark)?.1;
        Some(after.split("\n**").next().unwrap_or(after).trim().to_owned())
    };
    let statement = body.split("\n**Why:**").next().unwrap_or(body);
    let statement = statement.split("\n**How to apply:**").next().unwrap_or(statement);
    Ok(RawMemory {
        kind: text("type").to_owned(),
        topic: if topic.is_empty() { text("name").to_owned() } else { topic.to_owned() },
        name: text("name").to_owned(),
        description: text("description").to_owned(),
        statement: statement.trim().to_owned(),
        why: part("**Why:**"),
        how_to_apply: part("**How to apply:**"),
        citations,
        updates: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Value {
        json!({
            "type": "feedback", "topic": "run tests", "name": "Run the tests", "description": "Before a push",
            "statement": "Run the tests before a push.", "why": "A push broke main", "how_to_apply": null,
            "citations": "2026-04-02:1,3",
        })
    }

    #[test]
    fn memories_are_parsed_from_fields_and_files_with_and_without_a_root_object() {
        let content = "---\nname: Run the tests\ndescription: Before a push\ntype: feedback\n\
            sources: [\"2026-04-02:1#3fa9\", \"2026-04-02:3\"]\n---\nRun the tests before a push.\n\n\
            **Why:** A push broke main\n";
        let file = json!({ "filename": "../feedback_run-tests.md", "content": content });
        let whole = |it: Value| json!({ "memories": [it] }).to_string();
        let drafts = |it: &str| {
            parse_reply(it).unwrap().into_iter().collect::<Result<Vec<MemoryDraft>, _>>().unwrap()
        };
        let expected = drafts(&whole(fields()));
        assert_eq!(expected[0].citation.to_string(), "2026-04-02:1,3");
        assert_eq!(drafts(&json!([fields()]).to_string()), expected);
        let from_file = drafts(&whole(file));
        assert_eq!(from_file[0].topic, "run-tests");
        assert_eq!(from_file[0].statement, expected[0].statement);
        assert_eq!(from_file[0].why, expected[0].why);
        assert_eq!(from_file[0].citation, expected[0].citation);
        assert_eq!(drafts("[]"), []);
    }

    #[test]
    fn parse_errors_name_the_field() {
        for (key, value, expected) in [
            ("type", json!("instruction"), "`type` must be one of"),
            ("citations", json!("line 4"), "`citations` names no lines"),
            ("name", json!("x".repeat(121)), "`name` is over 120"),
            ("statement", json!(" "), "`statement` is empty"),
            ("why", json!(3), "invalid type"),
            ("path", json!("/etc"), "unknown field `path`"),
        ] {
            let mut memory = fields();
            memory[key] = value;
            let reply = json!({ "memories": [fields(), memory] }).to_string();
            let parsed = parse_reply(&reply).unwrap();
            let Err(part) = &parsed[1] else { panic!("{reply}") };
            assert!(parsed[0].is_ok() && part.reason.contains(expected), "{part:?}");
            assert_eq!(part.text, memory.to_string());
            assert_eq!(part.citation.is_some(), key != "citations");
        }
        assert!(parse_reply("I found nothing.").unwrap_err().contains("no JSON"));
        assert!(parse_reply(r#"{"memory": []}"#).unwrap_err().contains("`memories`"));
    }
}
