//! Asks a model for edits of `WISDOM.md` from one month, and parses its operations.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ModelEngine, align,
    checked::{self, ReadItems, ReplyItem, ReplyReading},
    json as reply, memories,
    request_data::{self, LineIds},
    summary,
};
use crate::{
    engine::{DistillInput, Distillation, EngineError, UnreadableItem, WisdomOp},
    memory::{
        address::Citation,
        item::Item,
        typed::TypedMemory,
        wisdom::{WisdomEntry, WisdomFile},
    },
    model::{Message, ModelRequest, OutputSchema, Stage, prompt::PromptName},
};

/// The most operations in a reply; a month changes few entries.
const OPERATIONS_MAX: usize = 50;

/// The most characters of the memories in a request, newest first.
const MEMORIES_CHARS_MAX: usize = 24_000;

/// The end of a request.
const REMINDER: &str = "Reply with the JSON object only. An operation is supported by all that it cites, in \
    `citations` or by `from`.";

#[derive(Debug, Deserialize)]
struct RawWisdomOp {
    op: String,
    id: Option<String>,
    title: Option<String>,
    text: Option<String>,
    category: Option<String>,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    from: Vec<String>,
    citations: Option<String>,
}

impl ReplyItem for WisdomOp {
    fn to_json(&self, ids: &LineIds) -> Value {
        let (op, id, words, category, reason) = match self {
            Self::Add { title, text, category, reason, .. } => {
                ("add", None, Some((title, text)), category.as_ref(), reason)
            }
            Self::Merge { id, words, reason, .. } => {
                ("merge", Some(id), words.as_ref().map(|it| (&it.0, &it.1)), None, reason)
            }
            Self::Drop { id, reason } => ("drop", Some(id), None, None, reason),
        };
        // The statements that it is derived from are named by their ids, and the other lines by theirs.
        let cited = self.citation().map(|it| ids.print_apart(it));
        let (citations, from) = cited.unzip();
        json!({
            "op": op,
            "id": id,
            "title": words.map(|it| it.0),
            "text": words.map(|it| it.1),
            "category": category,
            "reason": reason,
            "from": from.unwrap_or_default(),
            "citations": citations.filter(|it| !it.is_empty()),
        })
    }

    fn citation(&self) -> Option<&Citation> {
        match self {
            Self::Add { citation, .. } | Self::Merge { citation, .. } => Some(citation),
            Self::Drop { .. } => None,
        }
    }

    /// A correction does the same to the same entry, and drops nothing.
    fn may_correct(&self, faulty: Option<&Self>) -> bool {
        match (self, faulty) {
            (Self::Add { .. }, Some(Self::Add { .. }))
            | (Self::Add { .. } | Self::Merge { .. }, None) => true,
            (Self::Merge { id, .. }, Some(Self::Merge { id: of, .. })) => id == of,
            _ => false,
        }
    }
}

impl ModelEngine {
    pub(super) fn distill_by_model(
        &self,
        input: &DistillInput<'_>,
    ) -> Result<Distillation, EngineError> {
        let blocks = request_data::blocks_of_bullets(std::iter::once((input.month, input.items)));
        if blocks.is_empty() {
            return Ok(Distillation::default());
        }
        // At most half of the room, so that the month is not split into many parts.
        let room = self.room_chars(&self.wisdom_request(input, "", "")) / 2;
        let (current, statements) = current_wisdom(input, room.min(MEMORIES_CHARS_MAX));
        let empty = self.wisdom_request(input, &current, "");
        let keys = statements.iter().map(|it| (it.hash(), it.citation.clone()));
        let ids = LineIds::of(&blocks).with_statements(keys);
        // A second try shows the statements from which an operation is derived, too.
        let mut shown = blocks.clone();
        shown.push(request_data::block_of_statements(statements));
        let check =
            |op: Result<WisdomOp, UnreadableItem>| checked::check_item(op, |op| (input.check)(op));
        let reading = ReplyReading {
            blocks: &shown,
            ids: &ids,
            properties: properties(),
            read: &|text| Ok(parse_reply(text, input, &ids)?.into_iter().map(check).collect()),
            read_item: &|value| check(read_operation(&value, input, &ids)),
        };
        let parts = self.ask_in_parts(&blocks, &empty, |parts, i| {
            let data = request_data::fenced_blocks(&parts[i], &self.nonce);
            self.ask_checked(&self.wisdom_request(input, &current, &data), &reading)
        })?;
        let (ops, unreadable) = checked::split_unreadable(parts.into_iter().flatten());
        Ok(Distillation { ops, unreadable })
    }

    /// Returns a request with the current entries and memories.
    fn wisdom_request(&self, input: &DistillInput<'_>, current: &str, data: &str) -> ModelRequest {
        let prompt = self.prompts.get(PromptName::Wisdom);
        let current = request_data::fence(current, &self.nonce);
        let categories = if input.categories.is_empty() {
            String::new()
        } else {
            format!("- Categories are these, and no others: {}.", input.categories.join(", "))
        };
        let max_entries = self.wisdom.max_entries.to_string();
        let system = prompt.fill(&[("max_entries", &max_entries), ("categories", &categories)]);
        let month = input.month;
        let messages = vec![Message::user(format!("{current}\n\n{month}\n\n{data}\n\n{REMINDER}"))];
        ModelRequest {
            schema: Some(schema()),
            ..self.request(Stage::Wisdom, input.month.to_string(), prompt, system, messages)
        }
    }
}

/// Returns the entries and at most `room` characters of memories, newest first, with the statements in them.
fn current_wisdom(input: &DistillInput<'_>, mut room: usize) -> (String, Vec<Item>) {
    let mut current = String::from("Entries:\n");
    for entry in input.entries {
        write_entry(&mut current, entry);
    }
    current.push_str("Memories:\n");
    let mut newest: Vec<&TypedMemory> = input.memories.iter().collect();
    newest.sort_by_key(|it| std::cmp::Reverse(it.updated));
    let mut statements = Vec::new();
    for memory in newest {
        let lines = memories::lasting_statement_lines(memory);
        if lines.is_empty() {
            continue;
        }
        let listed = memories::heading_of(memory) + &lines;
        let Some(left) = room.checked_sub(listed.chars().count()) else { break };
        room = left;
        current.push_str(&listed);
        statements.extend(memories::lasting_statements(memory).into_iter().map(|it| it.item));
    }
    (current, statements)
}

fn write_entry(out: &mut String, entry: &WisdomEntry) {
    let text = entry.text.replace('\n', " ");
    let _ = match &entry.meta {
        Some(mark) if entry.is_managed() => writeln!(
            out,
            "id {}, first seen {}, last {}: {}. {text}",
            mark.id, mark.first_seen, mark.last_reinforced, entry.title
        ),
        _ => writeln!(out, "a person's own: {}. {text}", entry.title),
    };
}

fn schema() -> OutputSchema {
    reply::list_schema("operations", &reply::object_schema(&properties()))
}

fn properties() -> Value {
    let text = json!({ "type": "string" });
    let text_or_null = json!({ "type": ["string", "null"] });
    json!({
        "op": { "type": "string", "enum": ["add", "merge", "drop"] },
        "id": text_or_null,
        "title": text_or_null,
        "text": text_or_null,
        "category": text_or_null,
        "reason": text,
        "from": { "type": "array", "items": text },
        "citations": text_or_null,
    })
}

/// Parses a reply. The error is worded for the model. An unreadable operation is an error in the list.
fn parse_reply(
    text: &str,
    input: &DistillInput<'_>,
    ids: &LineIds,
) -> Result<ReadItems<WisdomOp>, String> {
    let Some(value) = reply::find_value(text) else {
        return Ok(operations_from_file(text, input)?.into_iter().map(Ok).collect());
    };
    let list = reply::find_list(value, "operations", OPERATIONS_MAX)?;
    let ops: Vec<_> = list.iter().map(|it| read_operation(it, input, ids)).collect();
    let drops = ops.iter().filter(|it| matches!(it, Ok(WisdomOp::Drop { .. }))).count();
    let managed = input.entries.iter().filter(|it| it.is_managed()).count();
    // A reply that drops most entries has misunderstood the task.
    if drops * 2 > managed.max(2) {
        return Err(format!("it drops {drops} of {managed} entries"));
    }
    Ok(ops)
}

fn read_operation(
    value: &Value,
    input: &DistillInput<'_>,
    ids: &LineIds,
) -> Result<WisdomOp, UnreadableItem> {
    checked::read_item(value, ids, |it| {
        let written = RawWisdomOp::deserialize(it).map_err(|e| e.to_string())?;
        parse_operation(written, input, ids)
    })
}

/// Turns a whole `WISDOM.md`, which small models write instead of JSON, into operations. The reply never
/// replaces the file itself.
fn operations_from_file(text: &str, input: &DistillInput<'_>) -> Result<Vec<WisdomOp>, String> {
    let file = WisdomFile::parse(summary::without_code_fence(text));
    let written: Vec<&WisdomEntry> = file.entries().collect();
    let managed: Vec<&WisdomEntry> = input.entries.iter().filter(|it| it.is_managed()).collect();
    if written.is_empty() {
        return Err("it contains no JSON".to_owned());
    }
    // A truncated or confused reply leaves out most entries.
    let is_present = |entry: &&&WisdomEntry| written.iter().any(|it| has_same_title(it, entry));
    let missing = managed.len() - managed.iter().filter(is_present).count();
    if missing > 0 {
        return Err(format!(
            "it leaves out {missing} of {} entries without a reason; reply with operations",
            managed.len()
        ));
    }
    let blocks = request_data::blocks_of_bullets(std::iter::once((input.month, input.items)));
    let mut ops = Vec::new();
    for entry in written {
        let current = input.entries.iter().find(|it| has_same_title(it, entry));
        if current.is_some_and(|it| it.text.trim() == entry.text.trim() || !it.is_managed()) {
            continue;
        }
        let words = format!("{}. {}", entry.title, entry.text);
        let Some(citation) = align::find_citation(&words, &blocks) else { continue };
        let reason = "written in a whole file".to_owned();
        let (title, text) = (entry.title.clone(), entry.text.trim().to_owned());
        ops.push(match current.and_then(|it| it.id()) {
            Some(id) => {
                let (id, words) = (id.to_owned(), Some((title, text)));
                WisdomOp::Merge { id, words, reason, citation }
            }
            None => {
                WisdomOp::Add { title, text, category: entry.category.clone(), reason, citation }
            }
        });
    }
    Ok(ops)
}

/// Returns whether the titles of two entries are equal except for case and punctuation.
fn has_same_title(a: &WisdomEntry, b: &WisdomEntry) -> bool {
    let bare = |it: &WisdomEntry| {
        it.title
            .chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    bare(a) == bare(b)
}

fn parse_operation(
    written: RawWisdomOp,
    input: &DistillInput<'_>,
    ids: &LineIds,
) -> Result<WisdomOp, String> {
    let RawWisdomOp { op, id, title, text, category, reason, from, citations } = written;
    let some = |it: Option<String>| it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    // The lines that it names, and those of the statements that it names.
    let citation = || -> Result<Citation, String> {
        let mut all = some(citations.clone()).map(|it| ids.parse(&it)).transpose()?;
        for id in &from {
            let lines =
                ids.parse(id).map_err(|_| format!("there is no statement `{}`", truncated(id)))?;
            match &mut all {
                Some(all) => all.merge(&lines),
                None => all = Some(lines),
            }
        }
        all.ok_or_else(|| "`citations` and `from` are empty".to_owned())
    };
    let existing_id = |id: Option<String>| -> Result<String, String> {
        let id = some(id).ok_or("`id` is missing")?;
        let exists = input.entries.iter().any(|it| it.is_managed() && it.id() == Some(&id));
        if exists { Ok(id) } else { Err(format!("there is no entry `{}`", truncated(&id))) }
    };
    let is_known = |it: &String| input.categories.is_empty() || input.categories.contains(it);
    let one_line = |it: String| it.split_whitespace().collect::<Vec<_>>().join(" ");
    match op.as_str() {
        "add" => Ok(WisdomOp::Add {
            title: some(title).map(one_line).ok_or("`title` is missing")?,
            text: some(text).map(one_line).ok_or("`text` is missing")?,
            category: some(category).filter(is_known),
            reason,
            citation: citation()?,
        }),
        "merge" => {
            let id = existing_id(id)?;
            // Without a title of its own a new text keeps that of the entry.
            let old_title = || {
                let entry = input.entries.iter().find(|it| it.id() == Some(&id));
                entry.map(|it| it.title.clone())
            };
            let words = some(title).map(one_line).or_else(old_title).zip(some(text).map(one_line));
            Ok(WisdomOp::Merge { id, words, reason, citation: citation()? })
        }
        "drop" => Ok(WisdomOp::Drop { id: existing_id(id)?, reason }),
        _ => Err("`op` must be one of add, merge, drop".to_owned()),
    }
}

fn truncated(text: &str) -> String {
    text.chars().take(40).collect()
}
