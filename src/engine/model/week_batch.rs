//! Requests a week's summary and the memories of its days together, so that the logs are sent once.
//!
//! Two jobs share the reply: the days are extracted first, and the week is summarized afterwards, maybe
//! in a later process. The request therefore has a name that depends only on the data. The reply is
//! stored and found under that name until the week is done.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    ModelEngine,
    checked::{self, Checked, ReadItems},
    json as reply, memories, request_data, summary, unreadable, unreadable_message, with_follow_up,
};
use crate::{
    engine::{EngineError, Extraction, StatementDraft, SummaryInput, WeekExtractInput},
    memory::{hash::ContentHash, item::SummarySection, period::Period},
    model::{
        CallError, Message, ModelRequest, OutputSchema, Stage, failure::ErrorClass,
        prompt::PromptName,
    },
};

/// The most characters that existing memories take in a request.
const EXISTING_CHARS_MAX: usize = 24_000;

/// The most tokens that the statements of a week take in a reply: about 20 statements.
const MEMORIES_TOKENS: u32 = 1600;

/// Weeks whose combined request is not answered yet, so that the week is not requested separately.
#[derive(Debug, Default)]
pub struct PendingWeeks(Mutex<BTreeSet<Period>>);

struct WeekReply {
    /// The week's summary, as Markdown.
    week: String,
    statements: Vec<Checked<StatementDraft>>,
}

/// Returns the reply to a request, or `None` if there is none and none is requested.
type GetReply<'a> = dyn Fn(&ModelRequest) -> Result<Option<String>, EngineError> + 'a;

impl ModelEngine {
    pub(super) fn extract_week_by_model(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        // Copying every line needs no model. If a reply has no room for both, each is requested separately.
        if input.budget.verbatim || self.combined_tokens() < 3 * MEMORIES_TOKENS {
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
        match self.week_reply(input, days, &get) {
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
    ) -> Result<Option<String>, EngineError> {
        if self.pending_weeks.has(input.period) {
            return Err(EngineError::Model(CallError::AwaitingBatch));
        }
        let get =
            |request: &ModelRequest| Ok(self.client.earlier_reply(request, true).map(|it| it.text));
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
        let existing = memories::existing_memories(input.logs, days.existing, EXISTING_CHARS_MAX);
        let existing = request_data::fence(&existing, &self.nonce);
        let lengths = self.lengths_within(
            (input.budget.target_chars, input.budget.limit_chars),
            self.combined_tokens().saturating_sub(MEMORIES_TOKENS),
        );
        let week = self.summary_message(input.period, &blocks, lengths);
        let name = format!("{lengths:?}\n{}", request_data::fenced_blocks(&blocks, &self.nonce));
        let request = self.combined_request(
            input.period,
            name,
            format!("{existing}\n\n{week}\n\n{}", memories::REMINDER),
        );
        let check = memories::StatementCheck {
            logs: input.logs,
            existing: days.existing,
            verdict: days.check,
        };
        ask_for_week(request, &request_data::LineLabels::of(&blocks), &check, get)
    }

    /// Returns the combined request, whose name is derived from `data`.
    fn combined_request(&self, period: Period, data: String, message: String) -> ModelRequest {
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

    fn combined_tokens(&self) -> u32 {
        self.output_tokens(self.prompts.get(PromptName::Combined))
    }
}

impl PendingWeeks {
    fn set(&self, week: Period, pending: bool) {
        let mut weeks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pending {
            weeks.insert(week);
        } else {
            weeks.remove(&week);
        }
    }

    fn has(&self, week: Period) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&week)
    }
}

/// Asks for a week and its memories. If the reply or one of its statements fails the checks, asks once
/// more and names the problems.
fn ask_for_week(
    request: ModelRequest,
    labels: &request_data::LineLabels<'_>,
    check: &memories::StatementCheck<'_>,
    get: &GetReply<'_>,
) -> Result<Option<WeekReply>, EngineError> {
    let Some(text) = get(&request)? else { return Ok(None) };
    let both = |(week, list)| WeekReply {
        week,
        statements: memories::check_statements(list, labels, check),
    };
    let first = parse_reply(&text).map(both);
    let message = match &first {
        Ok(first) => {
            checked::retry_message(&first.statements).map(|it| it + "\nLeave `week` empty.")
        }
        Err(why) => Some(unreadable_message(why)),
    };
    let Some(message) = message else { return Ok(first.ok()) };
    let mut retry = with_follow_up(request, &text, message);
    retry.name = retry.name.map(|it| format!("{it} again"));
    let second = get(&retry);
    let Ok(mut first) = first else {
        let Some(second) = second? else { return Ok(None) };
        return parse_reply(&second).map(|it| Some(both(it))).map_err(unreadable);
    };
    let is_all_bad = !first.statements.iter().any(|it| it.problem().is_none());
    match second {
        Ok(Some(second)) => {
            if let Ok(list) = memories::parse_reply(&second) {
                let list = memories::check_statements(list, labels, check);
                checked::merge_retry(&mut first.statements, list);
            }
        }
        Err(error) if is_all_bad => return Err(error),
        // The valid statements of the first reply are enough.
        Ok(None) | Err(_) => {}
    }
    Ok(Some(first))
}

/// Returns whether the request or its reply is at fault, so that two smaller requests may succeed.
fn is_reply_fault(error: &CallError) -> bool {
    error.class() == ErrorClass::Request
}

/// Returns whether a smaller request may succeed after this error. Faults of the request itself count,
/// since it was retried already.
fn may_be_too_large(error: &CallError) -> bool {
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

/// Parses a reply: `{"week": "…", "statements": […]}`. The error is worded for the model.
fn parse_reply(text: &str) -> Result<(String, ReadItems<StatementDraft>), String> {
    let Some(Value::Object(mut object)) = reply::find_value(text) else {
        return Err("it contains no JSON object".to_owned());
    };
    let Some(Value::String(week)) = object.remove("week") else {
        return Err("`week` is not a string".to_owned());
    };
    if summary::parse_reply(&week, &SummarySection::WEEKLY).sections.is_empty() {
        return Err("`week` has no bullet under a requested heading".to_owned());
    }
    let statements = memories::parse_reply(&Value::Object(object).to_string())?;
    Ok((week, statements))
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
            let error = parse_reply(&reply.to_string()).err().unwrap();
            assert!(error.contains(expected), "{reply}: {error}");
        }
        let parsed = parse_reply(&json!({ "week": week, "statements": [] }).to_string()).unwrap();
        assert_eq!(parsed, (week.to_owned(), vec![]));
    }
}
