//! Requests a week's summary and the memories of its days together, so that the logs are sent once.
//!
//! Two jobs share the reply: the days are extracted first, and the week is summarized afterwards, maybe
//! in a later process. The request therefore has a name that depends only on the data. The reply is
//! stored and found under that name until the week is done.
//!
//! Short weeks are requested together and long ones in parts ([`prefetch`](super::prefetch)); the reply is then stored
//! under the same name.

use std::{
    collections::BTreeSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Value, json};

use super::{
    ModelEngine,
    checked::{self, Checked, ReadItems, ReplyItem as _},
    json as reply, memories,
    repair::{self, FaultyItem},
    request_data::{self, DataBlock, LineIds},
    summary, unreadable, unreadable_message, with_follow_up,
};
use crate::{
    engine::{
        EngineDraft, EngineError, Extraction, StatementDraft, SummaryInput, WeekExtractInput,
    },
    memory::{
        hash::ContentHash,
        item::{Item, SummarySection},
        period::Period,
        typed::TypedMemory,
    },
    model::{
        CallError, Message, ModelRequest, OutputSchema, Stage, failure::ErrorClass,
        prompt::PromptName,
    },
};

/// The most characters that existing memories take in a request.
pub(super) const EXISTING_CHARS_MAX: usize = 24_000;

/// The most tokens that the statements of a week take in a reply: about 20 statements.
pub(super) const MEMORIES_TOKENS: u32 = 1600;

/// Weeks whose combined request is not answered yet, so that the week is not requested separately.
#[derive(Debug, Default)]
pub struct PendingWeeks(Mutex<BTreeSet<Period>>, AtomicBool);

/// The bullets that were corrected, each as it was before and as it is now; `None` if what failed the checks was not
/// returned to the model yet.
type Corrections = Option<Vec<(Item, Item)>>;

/// A reply about a week and the memories of its days.
pub(super) struct WeekReply {
    /// The week's summary, as Markdown.
    pub(super) week: String,
    pub(super) statements: Vec<Checked<StatementDraft>>,
    pub(super) corrected: Corrections,
    /// The logs of other weeks that were in the request.
    pub(super) shown: Vec<String>,
}

/// The summary of a week in a stored reply.
pub(super) struct StoredWeek {
    /// As Markdown.
    pub(super) week: String,
    pub(super) corrected: Corrections,
}

/// A reply as it was parsed.
#[derive(Debug, PartialEq)]
pub(super) struct ParsedReply {
    pub(super) week: String,
    pub(super) statements: ReadItems<StatementDraft>,
    corrected: Corrections,
    shown: Vec<String>,
}

/// What a reply about a week is read by.
struct WeekReading<'a> {
    input: &'a SummaryInput<'a>,
    blocks: &'a [DataBlock],
    ids: &'a LineIds,
    check: memories::StatementCheck<'a>,
}

/// Returns the reply to a request, or `None` if there is none and none is requested.
pub(super) type GetReply<'a> = dyn Fn(&ModelRequest) -> Result<Option<String>, EngineError> + 'a;

impl ModelEngine {
    pub(super) fn extract_week_by_model(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        // If a reply has no room for both, each is requested separately.
        if self.combined_tokens() < 3 * MEMORIES_TOKENS {
            return Ok(None);
        }
        let get = |request: &ModelRequest| match self.client.earlier_reply(request, false) {
            Some(reply) => Ok(Some(reply.text)),
            None if may_ask
                && self.fits_one_request(request)
                && !self.client.is_marked_too_large(request) =>
            {
                let reply = self.ask(request);
                if let Err(EngineError::Model(error)) = &reply
                    && may_be_too_large(error)
                {
                    self.client.mark_too_large(request);
                }
                reply.map(Some)
            }
            None => Ok(None),
        };
        self.pending_weeks.set(input.period, false);
        match self.week_reply(input, Some(days), &get) {
            Ok(both) => Ok(both.map(|it| memories::into_extraction(it.statements))),
            // Two smaller requests may succeed.
            Err(EngineError::Model(error)) if is_reply_fault(&error) => Ok(None),
            Err(error) => {
                let pending = matches!(error, EngineError::Model(CallError::AwaitingBatch));
                self.pending_weeks.set(input.period, pending);
                Err(error)
            }
        }
    }

    /// Returns the week of a stored combined reply, or `None` if there is none and the week needs its
    /// own request. Fails with [`CallError::AwaitingBatch`] while the combined reply is pending.
    pub(super) fn stored_week(
        &self,
        input: &SummaryInput<'_>,
    ) -> Result<Option<StoredWeek>, EngineError> {
        if self.pending_weeks.has(input.period) {
            return Err(EngineError::Model(CallError::AwaitingBatch));
        }
        let get =
            |request: &ModelRequest| Ok(self.client.earlier_reply(request, true).map(|it| it.text));
        match self.week_reply(input, None, &get) {
            Ok(reply) => Ok(reply.map(|it| StoredWeek { week: it.week, corrected: it.corrected })),
            Err(EngineError::Model(error)) if is_reply_fault(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) fn fits_one_request(&self, request: &ModelRequest) -> bool {
        let empty = ModelRequest { messages: Vec::new(), ..request.clone() };
        request.chars() - empty.chars() <= self.room_chars(&empty)
    }

    /// Returns the reply about a week. Without `days` only its summary counts, and nothing is corrected.
    fn week_reply(
        &self,
        input: &SummaryInput<'_>,
        days: Option<&WeekExtractInput<'_>>,
        get: &GetReply<'_>,
    ) -> Result<Option<WeekReply>, EngineError> {
        let blocks = summary::data_blocks(input);
        if blocks.is_empty() {
            return Ok(None);
        }
        let existing = days.map_or(&[][..], |it| it.existing);
        let request = self.week_request(input, &blocks, existing);
        // The reply may be one to a request that listed other memories.
        let known = existing.iter().flat_map(memories::statement_keys);
        let ids = LineIds::of(&blocks).with_statements(known);
        let parse = if input.budget.verbatim { parse_statements } else { parse_reply };
        let Some(parsed) = ask_for_week(&request, &ids, parse, get)? else { return Ok(None) };
        let verdict = |it: &StatementDraft| days.map_or(Ok(()), |days| (days.check)(it));
        let ParsedReply { week, statements, corrected, shown } = parsed;
        let check = memories::StatementCheck {
            logs: input.logs,
            shown: &shown,
            existing,
            verdict: &verdict,
        };
        let statements = memories::check_statements(statements, &check);
        let reply = WeekReply { week, statements, corrected, shown: shown.clone() };
        if reply.corrected.is_some() || days.is_none() {
            return Ok(Some(reply));
        }
        let reading = WeekReading { input, blocks: &blocks, ids: &ids, check };
        self.correct_week(&request, reply, &reading, get).map(Some)
    }

    /// Asks once for corrections of all bullets and statements of a reply that failed the checks, and stores the
    /// corrected reply in its place.
    fn correct_week(
        &self,
        request: &ModelRequest,
        mut reply: WeekReply,
        reading: &WeekReading<'_>,
        get: &GetReply<'_>,
    ) -> Result<WeekReply, EngineError> {
        let WeekReading { input, blocks, ids, check } = reading;
        let sections = summary::parse_cited(&reply.week, &SummarySection::WEEKLY, blocks, ids);
        let mut draft = EngineDraft { sections, ..EngineDraft::default() };
        let bullets = summary::faulty_bullets(input, &draft.sections);
        let statements = checked::faulty_items(&reply.statements, ids);
        let shown = bullets.iter().map(|it| summary::faulty_item(&draft.sections, it, ids));
        let shown: Vec<FaultyItem> =
            shown.chain(statements.iter().map(|it| it.1.clone())).collect();
        if shown.is_empty() {
            return Ok(reply);
        }
        let again = self.repair_request(request, &shown, blocks, &correction_properties());
        if !self.fits_one_request(&again) {
            return Ok(reply);
        }
        let is_all_bad = !reply.statements.is_empty() && statements.len() == reply.statements.len();
        let text = match get(&again) {
            Ok(Some(text)) => text,
            Err(error) if is_all_bad => return Err(error),
            // What is valid in the first reply is enough.
            Ok(None) | Err(_) => return Ok(reply),
        };
        for (at, mut value) in repair::parse_corrections(&text, shown.len()) {
            let Some(statement) = at.checked_sub(bullets.len()) else {
                summary::correct_bullet(input, &mut draft, &bullets[at], &value, ids);
                continue;
            };
            if let Value::Object(fields) = &mut value {
                fields.retain(|_, it| !it.is_null());
            }
            let item = checked::read_item(&value, ids, |it| memories::parse_statement(it, ids));
            let correction = memories::check_statement(item, check);
            checked::correct(&mut reply.statements[statements[statement].0], correction);
        }
        reply.week = summary::print_sections(&draft.sections);
        reply.corrected = Some(draft.corrected);
        self.client.keep_reply(request, &reply.to_json().to_string());
        Ok(reply)
    }

    /// Returns the request for a week, whose name depends only on its logs. Of a week that is copied line by line only
    /// the statements are asked for.
    pub(super) fn week_request(
        &self,
        input: &SummaryInput<'_>,
        blocks: &[DataBlock],
        existing: &[TypedMemory],
    ) -> ModelRequest {
        let list = memories::existing_memories(input.logs, existing, EXISTING_CHARS_MAX);
        let listed = request_data::fence(&list.text, &self.nonce);
        let data = request_data::fenced_blocks(blocks, &self.nonce);
        if input.budget.verbatim {
            let prompt = self.prompts.get(PromptName::Extract);
            let message = format!("{listed}\n\n{data}\n\n{}", memories::REMINDER);
            let name = ContentHash::of([data, prompt.id()].join("\n")).hex16();
            let period = input.period.to_string();
            return ModelRequest {
                name: Some(format!("{period} {name}")),
                schema: Some(memories::schema()),
                ..self.request(
                    Stage::Extract,
                    period,
                    prompt,
                    prompt.fill(&[]),
                    vec![Message::user(message)],
                )
            };
        }
        let lengths = self.week_lengths(input);
        let week = self.summary_message(input.period, blocks, lengths);
        let message = format!("{listed}\n\n{week}\n\n{}", memories::REMINDER);
        self.combined_request(input.period, format!("{lengths:?}\n{data}"), message)
    }

    /// Returns the target and the limit of a week in characters, so that its statements fit into the reply.
    pub(super) fn week_lengths(&self, input: &SummaryInput<'_>) -> (usize, usize) {
        self.lengths_within(
            (input.budget.target_chars, input.budget.limit_chars),
            self.combined_tokens().saturating_sub(MEMORIES_TOKENS),
        )
    }

    /// Returns the combined request, whose name is derived from `data`.
    pub(super) fn combined_request(
        &self,
        period: Period,
        data: String,
        message: String,
    ) -> ModelRequest {
        let [weekly, extract, prompt] =
            [PromptName::Weekly, PromptName::Extract, PromptName::Combined]
                .map(|it| self.prompts.get(it));
        let first = summary::instructions(weekly, period, &self.compaction.weekly);
        let second = extract.fill(&[]);
        let name = [data, weekly.id(), extract.id(), prompt.id()].join("\n");
        let system = prompt.fill(&[("weekly", &first), ("extract", &second)]);
        let messages = vec![Message::user(message)];
        ModelRequest {
            name: Some(format!("{period} {}", ContentHash::of(name).hex16())),
            schema: Some(schema()),
            ..self.request(Stage::Weekly, period.to_string(), prompt, system, messages)
        }
    }

    pub(super) fn combined_tokens(&self) -> u32 {
        self.output_tokens(self.prompts.get(PromptName::Combined))
    }
}

impl PendingWeeks {
    /// Begins a run: none is pending, and weeks may be asked together.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.1.store(false, Ordering::Relaxed);
    }

    /// Notes that asking for several weeks together did not work; the others of this run are asked alone.
    pub(super) fn ask_alone(&self) {
        self.1.store(true, Ordering::Relaxed);
    }

    pub(super) fn are_asked_alone(&self) -> bool {
        self.1.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, week: Period, pending: bool) {
        let mut weeks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pending {
            weeks.insert(week);
        } else {
            weeks.remove(&week);
        }
    }

    pub(super) fn has(&self, week: Period) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&week)
    }
}

impl WeekReply {
    /// Returns it as a reply, with addresses.
    pub(super) fn to_json(&self) -> Value {
        let ids = LineIds::default();
        let statements = self.statements.iter().map(|it| match it {
            Checked::Valid(it) | Checked::Invalid(it, _) => it.to_json(&ids),
            Checked::Unreadable(it) => {
                serde_json::from_str(&it.text).unwrap_or_else(|_| Value::from(&it.text[..]))
            }
        });
        let statements: Vec<Value> = statements.collect();
        let corrected = self.corrected.as_ref().map(|all| {
            let pair = |(before, now): &(Item, Item)| json!([before.to_string(), now.to_string()]);
            all.iter().map(pair).collect::<Vec<_>>()
        });
        json!({
            "week": self.week,
            "statements": statements,
            "corrected": corrected,
            "shown": self.shown,
        })
    }
}

/// Asks for a week and its memories, and once more if the reply cannot be read.
pub(super) fn ask_for_week(
    request: &ModelRequest,
    ids: &LineIds,
    parse: fn(&str, &LineIds) -> Result<ParsedReply, String>,
    get: &GetReply<'_>,
) -> Result<Option<ParsedReply>, EngineError> {
    let Some(text) = get(request)? else { return Ok(None) };
    let why = match parse(&text, ids) {
        Ok(parsed) => return Ok(Some(parsed)),
        Err(why) => why,
    };
    let mut again = with_follow_up(request.clone(), &text, unreadable_message(&why));
    again.name = again.name.map(|it| format!("{it} again"));
    let Some(second) = get(&again)? else { return Ok(None) };
    let parsed = parse(&second, ids).map_err(unreadable)?;
    // There is no third try.
    Ok(Some(ParsedReply { corrected: Some(Vec::new()), ..parsed }))
}

/// Returns whether the request or its reply is at fault, so that two smaller requests may succeed.
fn is_reply_fault(error: &CallError) -> bool {
    error.class() == ErrorClass::Request
}

/// Returns whether a smaller request may succeed after this error. Faults of the request itself count,
/// since it was retried already.
pub(super) fn may_be_too_large(error: &CallError) -> bool {
    let is_gateway = matches!(error, CallError::Unavailable { status: 408 | 502 | 504 | 524, .. });
    is_reply_fault(error)
        || error.class() == ErrorClass::Server && (error.may_have_cost() || is_gateway)
}

fn schema() -> OutputSchema {
    let mut schema = OutputSchema { name: "week_and_statements".to_owned(), ..memories::schema() };
    schema.schema["required"] = json!(["week", "statements"]);
    schema.schema["properties"]["week"] = json!({ "type": "string" });
    schema
}

fn strings(list: Option<Value>) -> Vec<String> {
    list.and_then(|it| serde_json::from_value(it).ok()).unwrap_or_default()
}

/// Reads what a stored reply says of its corrections.
fn corrections(value: &Value) -> Corrections {
    let item = |it: &Value| Item::parse(it.as_str().unwrap_or_default());
    Some(value.as_array()?.iter().map(|it| (item(&it[0]), item(&it[1]))).collect())
}

/// The properties of a corrected bullet or statement.
fn correction_properties() -> Value {
    let text = json!({ "type": "string" });
    let text_or_null = json!({ "type": ["string", "null"] });
    json!({
        "kind": text_or_null,
        "topic": text_or_null,
        "text": text,
        "citations": text,
        "replaces": text_or_null,
    })
}

/// Parses a reply about a week of which only the statements are asked for. The error is worded for the model.
fn parse_statements(text: &str, ids: &LineIds) -> Result<ParsedReply, String> {
    let statements = memories::parse_reply(text, ids)?;
    let corrected = reply::find_value(text).and_then(|it| corrections(&it["corrected"]));
    let shown =
        strings(reply::find_value(text).and_then(|mut it| it.as_object_mut()?.remove("shown")));
    Ok(ParsedReply { week: String::new(), statements, corrected, shown })
}

/// Parses a reply: `{"week": "…", "statements": […]}`. The error is worded for the model.
pub(super) fn parse_reply(text: &str, ids: &LineIds) -> Result<ParsedReply, String> {
    let reply = parse_part(text, ids)?;
    if summary::parse_reply(&reply.week, &SummarySection::WEEKLY, ids).is_empty() {
        return Err("`week` has no bullet under a requested heading".to_owned());
    }
    Ok(reply)
}

/// The same about a part of a week, of which there may be nothing to say.
pub(super) fn parse_part(text: &str, ids: &LineIds) -> Result<ParsedReply, String> {
    let Some(Value::Object(mut object)) = reply::find_value(text) else {
        return Err("it contains no JSON object".to_owned());
    };
    let Some(Value::String(week)) = object.remove("week") else {
        return Err("`week` is not a string".to_owned());
    };
    let corrected = object.remove("corrected").and_then(|it| corrections(&it));
    let shown = strings(object.remove("shown"));
    let statements = memories::parse_reply(&Value::Object(object).to_string(), ids)?;
    Ok(ParsedReply { week, statements, corrected, shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_errors_name_the_problem() {
        let week = "### Decisions\n- SQLite, since one file [2026-04-02:4]";
        for (reply, expected) in [
            (json!([week]), "no JSON object"),
            (json!({ "week": 3, "statements": [] }), "`week` is not a string"),
            (json!({ "week": "All went well.", "statements": [] }), "no bullet"),
            (json!({ "week": week }), "`statements` is not a list"),
        ] {
            let error = parse_reply(&reply.to_string(), &LineIds::default()).err().unwrap();
            assert!(error.contains(expected), "{reply}: {error}");
        }
        let reply = json!({ "week": week, "statements": [] }).to_string();
        let parsed = parse_reply(&reply, &LineIds::default()).unwrap();
        let week = week.to_owned();
        assert_eq!(
            parsed,
            ParsedReply { week, statements: vec![], corrected: None, shown: vec![] }
        );
    }
}
