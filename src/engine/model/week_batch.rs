//! A week and the memories of its days in one request, so that its logs are sent once.
//!
//! Two pieces of work share the reply: the days, which are read first, and the week, which is folded
//! after them, in a later process even. The request therefore has a name that rests on the data alone,
//! by which its reply is found again, and kept until the week is done.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    ModelEngine, json as reply,
    memories::{self, CheckedMemory},
    request_data, summary, unreadable, with_follow_up,
};
use crate::{
    engine::{
        EngineError, Extraction, MemoryDraft, SummaryInput, UnreadableMemory, WeekExtractInput,
    },
    memory::{hash::ContentHash, period::Period},
    model::{
        CallError, Message, ModelRequest, OutputSchema, Stage, failure::ErrorClass,
        prompt::PromptName,
    },
};

/// The most that the names of existing memories take of a request, in characters.
const EXISTING_CHARS_MAX: usize = 24_000;

/// What the memories of a week take of a reply at the most, in tokens: about eight of them.
const MEMORIES_TOKENS: u32 = 1200;

/// Weeks whose request is not answered yet, so that the week is not asked for alone.
#[derive(Debug, Default)]
pub struct PendingWeeks(Mutex<BTreeSet<Period>>);

/// What one reply says.
struct WeekReply {
    /// The week, as Markdown.
    week: String,
    memories: Vec<CheckedMemory>,
}

/// Gets the reply to a request; `None` where there is none and none is asked for.
type GetReply<'a> = dyn Fn(&ModelRequest) -> Result<Option<String>, EngineError> + 'a;

impl ModelEngine {
    pub(super) fn extract_week_by_model(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        // Lines that are carried over whole need no model; and with no room for both in a reply each is
        // asked for by itself.
        if input.budget.verbatim || self.combined_tokens() < 3 * MEMORIES_TOKENS {
            return Ok(None);
        }
        let get = |request: &ModelRequest| match self.ask.earlier_reply(request, false) {
            Some(reply) => Ok(Some(reply.text)),
            // What does not fit into one request is asked for apart, as it is where it goes in parts.
            None if may_ask
                && self.fits_one_request(request)
                && !self.ask.is_marked_too_large(request) =>
            {
                let asked = self.ask(request);
                if let Err(EngineError::Model(error)) = &asked
                    && may_be_too_large(error)
                {
                    self.ask.mark_too_large(request);
                }
                asked.map(Some)
            }
            None => Ok(None),
        };
        self.pending_weeks.set(input.period, false);
        match self.week_reply(input, days, &get) {
            Ok(both) => Ok(both.map(|it| memories::into_extraction(it.memories.into_iter()))),
            // What cannot be said at once may be said apart.
            Err(EngineError::Model(error)) if is_reply_fault(&error) => Ok(None),
            Err(error) => {
                let waits = matches!(error, EngineError::Model(CallError::AwaitingBatch));
                self.pending_weeks.set(input.period, waits);
                Err(error)
            }
        }
    }

    /// Returns the week of a standing reply; `None` where there is no such reply, and the week is asked
    /// for alone.
    ///
    /// # Errors
    ///
    /// Returns that it is to come.
    pub(super) fn stored_week(
        &self,
        input: &SummaryInput<'_>,
    ) -> Result<Option<String>, EngineError> {
        if self.pending_weeks.has(input.period) {
            return Err(EngineError::Model(CallError::AwaitingBatch));
        }
        let get =
            |request: &ModelRequest| Ok(self.ask.earlier_reply(request, true).map(|it| it.text));
        let days = WeekExtractInput { existing: &[], check: &|_| Ok(()) };
        match self.week_reply(input, &days, &get) {
            Ok(both) => Ok(both.map(|it| it.week)),
            Err(EngineError::Model(error)) if is_reply_fault(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fits_one_request(&self, request: &ModelRequest) -> bool {
        let empty = ModelRequest { messages: Vec::new(), ..request.clone() };
        request.chars() - empty.chars() <= self.room_chars(&empty)
    }

    fn week_reply(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        get: &GetReply<'_>,
    ) -> Result<Option<WeekReply>, EngineError> {
        let blocks = summary::data_blocks(input);
        if blocks.is_empty() {
            return Ok(None);
        }
        let known = memories::existing_memories(input.logs, days.existing, EXISTING_CHARS_MAX);
        let known = request_data::fence(&known, &self.nonce);
        let lengths = self.lengths_within(
            (input.budget.target_chars, input.budget.limit_chars),
            self.combined_tokens().saturating_sub(MEMORIES_TOKENS),
        );
        let week = self.summary_message(input.period, &blocks, lengths);
        let name = format!("{lengths:?}\n{}", request_data::fenced_blocks(&blocks, &self.nonce));
        let request = self.combined_request(input.period, name, format!("{known}\n\n{week}"));
        let check = memories::MemoryCheck {
            logs: input.logs,
            existing: days.existing,
            verdict: days.check,
        };
        ask_for_week(request, &request_data::LineLabels::of(&blocks), &check, get)
    }

    /// `data` is what names the request.
    fn combined_request(&self, period: Period, data: String, message: String) -> ModelRequest {
        let [weekly, extract, prompt] =
            [PromptName::Weekly, PromptName::Extract, PromptName::Combined]
                .map(|it| self.prompts.get(it));
        let first = self.week_instructions(period);
        let second = extract.fill(&[]);
        let name = [data, weekly.id(), extract.id(), prompt.id()].join("\n");
        ModelRequest {
            stage: Stage::Weekly,
            period: period.to_string(),
            name: Some(format!("{period} {}", ContentHash::of(name).hex16())),
            system: prompt.fill(&[("weekly", &first), ("extract", &second)]),
            messages: vec![Message::user(message)],
            schema: Some(schema()),
            tools: Vec::new(),
            max_output_tokens: self.combined_tokens(),
            temperature: prompt.temperature,
        }
    }

    /// Returns how many tokens a reply may have.
    fn combined_tokens(&self) -> u32 {
        self.prompts.get(PromptName::Combined).max_output_tokens.min(self.max_output_tokens)
    }
}

impl PendingWeeks {
    fn set(&self, week: Period, waits: bool) {
        let mut weeks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waits {
            weeks.insert(week);
        } else {
            weeks.remove(&week);
        }
    }

    fn has(&self, week: Period) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&week)
    }
}

/// Reads a reply; once more, with what is wrong, where it or a memory of it does not stand.
fn ask_for_week(
    request: ModelRequest,
    names: &request_data::LineLabels<'_>,
    check: &memories::MemoryCheck<'_>,
    get: &GetReply<'_>,
) -> Result<Option<WeekReply>, EngineError> {
    let Some(text) = get(&request)? else { return Ok(None) };
    let both =
        |(week, list)| WeekReply { week, memories: memories::check_memories(list, names, check) };
    let first = parse_reply(&text).map(both);
    let told = match &first {
        Ok(first) => {
            memories::retry_message(&first.memories).map(|it| it + "\nLeave `week` empty.")
        }
        Err(why) => Some(memories::unreadable_message(why)),
    };
    let Some(told) = told else { return Ok(first.ok()) };
    let mut again = with_follow_up(request, &text, told);
    again.name = again.name.map(|it| format!("{it} again"));
    let second = get(&again);
    let Ok(mut first) = first else {
        let Some(second) = second? else { return Ok(None) };
        return parse_reply(&second).map(|it| Some(both(it))).map_err(unreadable);
    };
    let is_all_bad = !first.memories.iter().any(|it| it.problem().is_none());
    match second {
        Ok(Some(second)) => {
            if let Ok(list) = memories::parse_reply(&second) {
                memories::merge_retry(
                    &mut first.memories,
                    memories::check_memories(list, names, check),
                );
            }
        }
        Err(error) if is_all_bad => return Err(error),
        // The good ones stand for themselves.
        Ok(None) | Err(_) => {}
    }
    Ok(Some(first))
}

/// Returns whether it lies with the request or its reply, so that two smaller ones may do.
fn is_reply_fault(error: &CallError) -> bool {
    error.class() == ErrorClass::Request
}

/// Returns whether a server that fails so may do better with less at once. What lies with the request itself
/// was tried often enough, too.
fn may_be_too_large(error: &CallError) -> bool {
    let is_gateway = matches!(error, CallError::Unavailable { status: 408 | 502 | 504 | 524, .. });
    is_reply_fault(error)
        || error.class() == ErrorClass::Server && (error.may_have_cost() || is_gateway)
}

fn schema() -> OutputSchema {
    let mut schema = OutputSchema { name: "week_and_memories".to_owned(), ..memories::schema() };
    schema.schema["required"] = json!(["week", "memories"]);
    schema.schema["properties"]["week"] = json!({ "type": "string" });
    schema
}

/// Reads a reply: `{"week": "…", "memories": […]}`.
///
/// # Errors
///
/// Returns what is wrong with it, in words that can be said to the model.
fn parse_reply(text: &str) -> Result<(String, Vec<Result<MemoryDraft, UnreadableMemory>>), String> {
    let Some(Value::Object(mut object)) = reply::find_value(text) else {
        return Err("it holds no JSON object".to_owned());
    };
    let Some(Value::String(week)) = object.remove("week") else {
        return Err("`week` is no string".to_owned());
    };
    if summary::parse_reply(&week, summary::sections_of_week()).sections.is_empty() {
        return Err("`week` has no bullet under a heading that was asked for".to_owned());
    }
    let memories = memories::parse_reply(&Value::Object(object).to_string())?;
    Ok((week, memories))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_said() {
        let week = "### Decisions\n- SQLite, since one file [2026-04-02:4]";
        for (reply, expected) in [
            (json!([week]), "no JSON object"),
            (json!({ "week": 3, "memories": [] }), "`week` is no string"),
            (json!({ "week": "All went well.", "memories": [] }), "no bullet"),
            (json!({ "week": week }), "`memories` is no list"),
        ] {
            let error = parse_reply(&reply.to_string()).err().unwrap();
            assert!(error.contains(expected), "{reply}: {error}");
        }
        let read = parse_reply(&json!({ "week": week, "memories": [] }).to_string()).unwrap();
        assert_eq!(read, (week.to_owned(), vec![]));
    }
}
