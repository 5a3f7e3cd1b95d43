//! Requests short weeks together and long weeks in parts, before the weeks are due one by one.
//!
//! The instructions would be longer than the logs of a short week. A reply about several weeks is split, the replies
//! about the parts of a long week are joined, and the result is stored as the reply to the request for the week, where
//! [`week_batch`](super::week_batch) finds it.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    ModelEngine,
    checked::Checked,
    json as reply, memories,
    request_data::{self, DataBlock, LineIds},
    summary, unreadable,
    week_batch::{
        EXISTING_CHARS_MAX, MEMORIES_TOKENS, WeekReply, ask_for_week, may_be_too_large, parse_part,
    },
};
use crate::{
    engine::{EngineError, SummaryInput},
    memory::{
        address::{Address, Citation},
        item::SummarySection,
        period::Period,
        typed::TypedMemory,
    },
    model::{CallError, Message, ModelRequest, OutputSchema, Stage, prompt::PromptName},
    privacy::SanitizedLog,
};

/// The most tokens that the statements of each week take in a reply about several: about 8 statements.
const GROUPED_MEMORIES_TOKENS: u32 = 640;

/// The part of the room that existing memories may take beside a part of a long week.
const EXISTING_PART: usize = 16;

/// The most characters of logs in a request for several weeks: of more a model overlooks too much.
const GROUP_CHARS_MAX: usize = 30_000;

/// How much citations and headings add to the text of a summary.
const WITH_CITATIONS: f64 = 1.3;

/// A week in a request for several.
struct WeekPart<'a> {
    input: &'a SummaryInput<'a>,
    /// The target and the limit of its summary in characters; zero if it is copied line by line.
    lengths: (usize, usize),
    /// The request for it alone.
    request: ModelRequest,
}

/// A request for several weeks.
struct WeekGroup {
    request: ModelRequest,
    /// What the ids in its reply stand for.
    ids: LineIds,
}

impl ModelEngine {
    /// Returns whether asking for a week together with older ones, or in parts, may save something. In a batch it does
    /// not: the memories that such a request lists may differ until it is answered.
    ///
    /// Fails with [`CallError::AwaitingBatch`] if the week is pending.
    pub(super) fn may_prefetch(&self, input: &SummaryInput<'_>) -> Result<bool, EngineError> {
        if self.pending_weeks.has(input.period) {
            return Err(EngineError::Model(CallError::AwaitingBatch));
        }
        let blocks = summary::data_blocks(input);
        let request = self.week_request(input, &blocks, &[]);
        Ok(!self.pending_weeks.are_asked_alone()
            && !self.client.waits_for_batches()
            && self.combined_tokens() >= 3 * MEMORIES_TOKENS
            && self.client.earlier_reply(&request, false).is_none())
    }

    /// Asks for several weeks at once, the first ones of these that fit into one request, and stores the reply to each.
    /// If only one fits, asks for that in parts if it is too long. The weeks are in the order in which they are due, and
    /// the caller has asked [`Self::may_prefetch`] about the first one.
    pub(super) fn prefetch_weeks_by_model(
        &self,
        weeks: &[SummaryInput<'_>],
        existing: &[TypedMemory],
    ) -> Result<(), EngineError> {
        let Some(first) = weeks.first() else { return Ok(()) };
        let all = self.fitting_weeks(weeks);
        let is_stored = |it: &ModelRequest| self.client.earlier_reply(it, false).is_some();
        // Weeks that are answered are not asked again; after an interruption their group may be stored.
        let open = all.iter().position(|it| is_stored(&it.request)).unwrap_or(all.len());
        let stored = WeekGroup::new(self, &all, existing).filter(|it| is_stored(&it.request));
        let parts = if stored.is_some() { &all[..] } else { &all[..open] };
        let Some(group) = stored.or_else(|| WeekGroup::new(self, parts, existing)) else {
            return self.prefetch_long_week(first, existing);
        };
        if !self.fits_one_request(&group.request) {
            return Ok(());
        }
        let text = match self.ask(&group.request) {
            Ok(text) => text,
            Err(EngineError::Model(error)) if may_be_too_large(&error) => {
                self.pending_weeks.ask_alone();
                return Ok(());
            }
            Err(error) => {
                let is_pending = matches!(error, EngineError::Model(CallError::AwaitingBatch));
                for part in parts {
                    self.pending_weeks.set(part.input.period, is_pending);
                }
                return Err(error);
            }
        };
        self.store_group(&group, parts, &text);
        Ok(())
    }

    /// Stores the reply to each week of a group. A week that the reply lacks is asked for alone.
    fn store_group(&self, group: &WeekGroup, parts: &[WeekPart<'_>], text: &str) {
        let replies = split_reply(text, parts, &group.ids);
        if replies.first().is_none_or(Option::is_none) {
            self.pending_weeks.ask_alone();
        }
        for (part, reply) in parts.iter().zip(replies) {
            if let Some(reply) = reply {
                self.client.keep_reply(&part.request, &reply.to_string());
            }
        }
    }

    /// Asks for a week that is too long for one request part by part, and stores the parts together as the reply to it.
    fn prefetch_long_week(
        &self,
        input: &SummaryInput<'_>,
        existing: &[TypedMemory],
    ) -> Result<(), EngineError> {
        let blocks = summary::data_blocks(input);
        let whole = self.week_request(input, &blocks, existing);
        if blocks.is_empty()
            || self.fits_one_request(&whole)
            || self.client.is_marked_too_large(&whole)
        {
            return Ok(());
        }
        let room = self.room_chars(&ModelRequest { messages: Vec::new(), ..whole.clone() });
        let list = memories::existing_memories(input.logs, existing, room / EXISTING_PART);
        let listed = request_data::fence(&list.text, &self.nonce);
        let of_data = |data: String| {
            let message = format!("{listed}\n\n{data}\n\n{}", memories::REMINDER);
            let request = self.combined_request(input.period, String::new(), message);
            ModelRequest { name: None, ..request }
        };
        let known = existing.iter().flat_map(memories::statement_keys);
        let ids = LineIds::of(&blocks).with_statements(known);
        let ask = |parts: &[Vec<DataBlock>], i: usize| {
            let lengths = self.lengths_within(
                summary::lengths_for_part(input, parts, i),
                self.combined_tokens().saturating_sub(MEMORIES_TOKENS),
            );
            let request = of_data(self.summary_message(input.period, &parts[i], lengths));
            let get = |request: &ModelRequest| self.ask(request).map(Some);
            let reply = ask_for_week(&request, &ids, parse_part, &get)?;
            reply.ok_or_else(|| unreadable("it is empty"))
        };
        let parts = match self.ask_in_parts(&blocks, &of_data(String::new()), ask) {
            Ok(parts) => parts,
            Err(EngineError::Model(error)) if may_be_too_large(&error) => {
                self.client.mark_too_large(&whole);
                return Ok(());
            }
            Err(error) => {
                let is_pending = matches!(error, EngineError::Model(CallError::AwaitingBatch));
                self.pending_weeks.set(input.period, is_pending);
                return Err(error);
            }
        };
        let mut sections = summary::Sections::new();
        let mut statements = Vec::new();
        for part in parts {
            let of_part = summary::parse_cited(&part.week, &SummarySection::WEEKLY, &blocks, &ids);
            summary::merge_sections(&mut sections, of_part);
            statements.extend(part.statements.into_iter().map(|it| match it {
                Ok(it) => Checked::Valid(it),
                Err(it) => Checked::Unreadable(it),
            }));
        }
        let week = summary::print_sections(&sections);
        statements.truncate(memories::STATEMENTS_MAX);
        let shown = Vec::new();
        let reply = WeekReply { week, statements, corrected: None, shown };
        self.client.keep_reply(&whole, &reply.to_json().to_string());
        Ok(())
    }

    /// Returns the first weeks that fit into one request and one reply.
    fn fitting_weeks<'i>(&self, weeks: &'i [SummaryInput<'i>]) -> Vec<WeekPart<'i>> {
        let mut parts = Vec::new();
        let (mut chars, mut tokens) = (0, self.combined_tokens());
        for input in weeks {
            let blocks = summary::data_blocks(input);
            let request = self.week_request(input, &blocks, &[]);
            chars += blocks.iter().map(DataBlock::chars).sum::<usize>();
            let lengths = if input.budget.verbatim { (0, 0) } else { self.week_lengths(input) };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_precision_loss,
                clippy::cast_sign_loss,
                reason = "characters of a short week"
            )]
            let written =
                (lengths.1 as f64 * WITH_CITATIONS / self.client.chars_per_token()) as u32;
            let left = tokens.checked_sub(written.saturating_add(GROUPED_MEMORIES_TOKENS));
            let Some(left) = left.filter(|_| chars <= GROUP_CHARS_MAX) else { break };
            tokens = left;
            if !blocks.is_empty() {
                parts.push(WeekPart { input, lengths, request });
            }
        }
        parts
    }

    /// Returns the request for several weeks.
    fn group_request(
        &self,
        (newest, parts): (Period, &[WeekPart<'_>]),
        logs: &[SanitizedLog],
        blocks: &[DataBlock],
        existing: &[TypedMemory],
    ) -> ModelRequest {
        let list = memories::existing_memories(logs, existing, EXISTING_CHARS_MAX);
        let listed = request_data::fence(&list.text, &self.nonce);
        let data = request_data::fenced_blocks(blocks, &self.nonce);
        let mut message = format!("{listed}\n\n{data}\n\nWeeks:\n");
        for WeekPart { input, lengths: (target, limit), .. } in parts.iter().rev() {
            let period = input.period;
            let week = format!("- {period} ({} to {})", period.first(), period.last());
            let task = if input.budget.verbatim {
                "statements only".to_owned()
            } else {
                format!(
                    "condense it to about {target} characters, never more than {limit}; citations do not count"
                )
            };
            let _ = writeln!(message, "{week}: {task}");
        }
        message.extend(["\n", memories::REMINDER]);
        // Where no week is condensed, the instructions for that would only cost.
        if parts.iter().all(|it| it.input.budget.verbatim) {
            let prompt = self.prompts.get(PromptName::Extract);
            let messages = vec![Message::user(message)];
            return ModelRequest {
                schema: Some(memories::schema()),
                max_output_tokens: self.combined_tokens(),
                ..self.request(
                    Stage::Extract,
                    newest.to_string(),
                    prompt,
                    prompt.fill(&[]),
                    messages,
                )
            };
        }
        let request = self.combined_request(newest, String::new(), message);
        ModelRequest { name: None, schema: Some(group_schema()), ..request }
    }
}

impl WeekGroup {
    /// Returns the request for some weeks; `None` if these are fewer than two.
    fn new(engine: &ModelEngine, parts: &[WeekPart<'_>], existing: &[TypedMemory]) -> Option<Self> {
        let newest = parts.first().filter(|_| parts.len() > 1)?.input.period;
        let oldest_first = || parts.iter().rev().map(|it| it.input.logs);
        let logs: Vec<SanitizedLog> = oldest_first().flatten().cloned().collect();
        // A line that several weeks repeat is in each of them.
        let blocks = request_data::joined(oldest_first().map(request_data::blocks_of_logs));
        let known = existing.iter().flat_map(memories::statement_keys);
        Some(Self {
            request: engine.group_request((newest, parts), &logs, &blocks, existing),
            ids: LineIds::of(&blocks).with_statements(known),
        })
    }
}

/// Returns the schema of a reply about several weeks.
fn group_schema() -> OutputSchema {
    let mut schema = OutputSchema { name: "weeks_and_statements".to_owned(), ..memories::schema() };
    let text = json!({ "type": "string" });
    let week = reply::object_schema(&json!({ "week": text, "summary": text }));
    schema.schema["required"] = json!(["weeks", "statements"]);
    schema.schema["properties"]["weeks"] = json!({ "type": "array", "items": week });
    schema
}

/// Splits a reply about several weeks: returns what would be the reply to the request for each, with addresses in place
/// of ids. `None` for a week that the reply lacks.
fn split_reply(text: &str, parts: &[WeekPart<'_>], ids: &LineIds) -> Vec<Option<Value>> {
    let none = || parts.iter().map(|_| None).collect();
    let value = match reply::find_value(text) {
        Some(Value::Object(value)) => value,
        Some(list @ Value::Array(_)) => {
            serde_json::Map::from_iter([("statements".to_owned(), list)])
        }
        _ => return none(),
    };
    let Some(statements) = value.get("statements").and_then(Value::as_array) else { return none() };
    let shown: Vec<&str> =
        parts.iter().flat_map(|it| it.input.logs).map(|it| it.stem().as_str()).collect();
    let mut of_week: Vec<Vec<Value>> = vec![Vec::new(); parts.len()];
    for statement in statements {
        let cited = statement["citations"].as_str().and_then(|it| ids.parse(it).ok());
        // The newest week that it cites; the weeks are in the order in which they are due, newest first.
        let is_of = |part: &WeekPart<'_>| {
            cited.as_ref().is_some_and(|it| within(it, part.input.logs).is_some())
        };
        let at = parts.iter().position(is_of).unwrap_or(0);
        let mut statement = statement.clone();
        // An id means another line in the request for the week.
        statement["citations"] = cited.map(|it| it.to_string()).unwrap_or_default().into();
        if let Some(hash) = statement["replaces"].as_str().and_then(|it| ids.statement(it)) {
            statement["replaces"] = Value::from(hash);
        }
        of_week[at].push(statement);
    }
    let summaries = value.get("weeks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let summary_of = |part: &WeekPart<'_>| {
        let period = part.input.period.to_string();
        let is_it = |it: &&Value| it["week"].as_str().is_some_and(|it| it.contains(&period));
        let text = summaries.iter().find(is_it)?["summary"].as_str()?;
        let mut sections = summary::parse_reply(text, &SummarySection::WEEKLY, ids);
        for item in sections.iter_mut().flat_map(|it| &mut it.1) {
            let own = |it: Citation| within(&it, part.input.logs).unwrap_or(it);
            item.citation = item.citation.take().map(own);
        }
        (!sections.is_empty()).then(|| summary::print_sections(&sections))
    };
    let replies = parts.iter().zip(of_week).map(|(part, statements)| {
        if part.input.budget.verbatim {
            return Some(json!({ "statements": statements, "shown": shown }));
        }
        let week = summary_of(part)?;
        Some(json!({ "week": week, "statements": statements, "shown": shown }))
    });
    replies.collect()
}

/// Returns the lines of a citation that are in these logs.
fn within(citation: &Citation, logs: &[SanitizedLog]) -> Option<Citation> {
    let is_own = |it: &Address| logs.iter().any(|log| *log.stem() == it.stem);
    let own: Vec<Address> = citation.addresses().filter(is_own).collect();
    Citation::from_addresses(&own)
}
