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
    ModelEngine, answered, data,
    extract::{self, Proposed},
    fold, json as reply, unreadable,
};
use crate::{
    engine::{DaysInput, EngineError, Extraction, FoldInput, MemoryDraft, Unread},
    memory::{hash::ContentHash, period::Period},
    model::{CallError, Message, OutputSchema, Request, Stage, failure::Fault, prompt::PromptName},
};

/// The most that the names of existing memories take of a request, in characters.
const KNOWN_CHARS_MAX: usize = 24_000;

/// What the memories of a week take of a reply at the most, in tokens: about eight of them.
const MEMORIES_TOKENS: u32 = 1200;

/// Weeks whose request is not answered yet, so that the week is not asked for alone.
#[derive(Debug, Default)]
pub struct Awaited(Mutex<BTreeSet<Period>>);

/// What one reply says.
struct Both {
    /// The week, as Markdown.
    week: String,
    memories: Vec<Proposed>,
}

/// Gets the reply to a request; `None` where there is none and none is asked for.
type Get<'a> = dyn Fn(&Request) -> Result<Option<String>, EngineError> + 'a;

impl ModelEngine {
    pub(super) fn read_week_by_model(
        &self,
        input: &FoldInput<'_>,
        days: &DaysInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        // Lines that are carried over whole need no model; and with no room for both in a reply each is
        // asked for by itself.
        if input.budget.whole || self.combined_tokens() < 3 * MEMORIES_TOKENS {
            return Ok(None);
        }
        let get = |request: &Request| match self.ask.standing(request, false) {
            Some(reply) => Ok(Some(reply.text)),
            // What does not fit into one request is asked for apart, as it is where it goes in parts.
            None if may_ask && self.fits(request) && !self.ask.is_apart(request) => {
                let asked = self.ask(request);
                if let Err(EngineError::Model(error)) = &asked
                    && may_be_of_its_size(error)
                {
                    self.ask.set_apart(request);
                }
                asked.map(Some)
            }
            None => Ok(None),
        };
        self.awaited.set(input.period, false);
        match self.both(input, days, &get) {
            Ok(both) => Ok(both.map(|it| extract::extraction(it.memories.into_iter()))),
            // What cannot be said at once may be said apart.
            Err(EngineError::Model(error)) if is_of_the_reply(&error) => Ok(None),
            Err(error) => {
                let waits = matches!(error, EngineError::Model(CallError::Batched));
                self.awaited.set(input.period, waits);
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
    pub(super) fn standing_week(
        &self,
        input: &FoldInput<'_>,
    ) -> Result<Option<String>, EngineError> {
        if self.awaited.has(input.period) {
            return Err(EngineError::Model(CallError::Batched));
        }
        let get = |request: &Request| Ok(self.ask.standing(request, true).map(|it| it.text));
        let days = DaysInput { existing: &[], check: &|_| Ok(()) };
        match self.both(input, &days, &get) {
            Ok(both) => Ok(both.map(|it| it.week)),
            Err(EngineError::Model(error)) if is_of_the_reply(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fits(&self, request: &Request) -> bool {
        let empty = Request { messages: Vec::new(), ..request.clone() };
        request.chars() - empty.chars() <= self.room_chars(&empty)
    }

    fn both(
        &self,
        input: &FoldInput<'_>,
        days: &DaysInput<'_>,
        get: &Get<'_>,
    ) -> Result<Option<Both>, EngineError> {
        let blocks = fold::blocks(input);
        if blocks.is_empty() {
            return Ok(None);
        }
        let known = extract::existing(input.logs, days.existing, KNOWN_CHARS_MAX);
        let known = data::fence(&known, &self.nonce);
        let lengths = self.lengths_within(
            (input.budget.target_chars, input.budget.limit_chars),
            self.combined_tokens().saturating_sub(MEMORIES_TOKENS),
        );
        let week = self.message(input.period, &blocks, lengths);
        let name = format!("{lengths:?}\n{}", data::fenced(&blocks, &self.nonce));
        let request = self.combined_request(input.period, name, format!("{known}\n\n{week}"));
        let check =
            extract::Check { logs: input.logs, existing: days.existing, verdict: days.check };
        read_both(request, &data::Names::of(&blocks), &check, get)
    }

    /// `data` is what names the request.
    fn combined_request(&self, period: Period, data: String, message: String) -> Request {
        let [weekly, extract, prompt] =
            [PromptName::Weekly, PromptName::Extract, PromptName::Combined]
                .map(|it| self.prompts.get(it));
        let first = self.week_instructions(period);
        let second = extract.fill(&[]);
        let name = [data, weekly.id(), extract.id(), prompt.id()].join("\n");
        Request {
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

impl Awaited {
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
fn read_both(
    request: Request,
    names: &data::Names<'_>,
    check: &extract::Check<'_>,
    get: &Get<'_>,
) -> Result<Option<Both>, EngineError> {
    let Some(text) = get(&request)? else { return Ok(None) };
    let both = |(week, list)| Both { week, memories: extract::checked(list, names, check) };
    let first = read(&text).map(both);
    let told = match &first {
        Ok(first) => extract::told(&first.memories).map(|it| it + "\nLeave `week` empty."),
        Err(why) => Some(extract::cannot_be_read(why)),
    };
    let Some(told) = told else { return Ok(first.ok()) };
    let mut again = answered(request, &text, told);
    again.name = again.name.map(|it| format!("{it} again"));
    let second = get(&again);
    let Ok(mut first) = first else {
        let Some(second) = second? else { return Ok(None) };
        return read(&second).map(|it| Some(both(it))).map_err(unreadable);
    };
    let is_all_bad = !first.memories.iter().any(|it| it.why().is_none());
    match second {
        Ok(Some(second)) => {
            if let Ok(list) = extract::read(&second) {
                extract::mend(&mut first.memories, extract::checked(list, names, check));
            }
        }
        Err(error) if is_all_bad => return Err(error),
        // The good ones stand for themselves.
        Ok(None) | Err(_) => {}
    }
    Ok(Some(first))
}

/// Returns whether it lies with the request or its reply, so that two smaller ones may do.
fn is_of_the_reply(error: &CallError) -> bool {
    error.fault() == Fault::Work
}

/// Returns whether a server that fails so may do better with less at once. What lies with the request itself
/// was tried often enough, too.
fn may_be_of_its_size(error: &CallError) -> bool {
    let is_gateway = matches!(error, CallError::Unavailable { status: 408 | 502 | 504 | 524, .. });
    is_of_the_reply(error)
        || error.fault() == Fault::Server && (error.may_have_cost() || is_gateway)
}

fn schema() -> OutputSchema {
    let mut schema = OutputSchema { name: "week_and_memories".to_owned(), ..extract::schema() };
    schema.schema["required"] = json!(["week", "memories"]);
    schema.schema["properties"]["week"] = json!({ "type": "string" });
    schema
}

/// Reads a reply: `{"week": "…", "memories": […]}`.
///
/// # Errors
///
/// Returns what is wrong with it, in words that can be said to the model.
fn read(text: &str) -> Result<(String, Vec<Result<MemoryDraft, Unread>>), String> {
    let Some(Value::Object(mut object)) = reply::value(text) else {
        return Err("it holds no JSON object".to_owned());
    };
    let Some(Value::String(week)) = object.remove("week") else {
        return Err("`week` is no string".to_owned());
    };
    if fold::read(&week, fold::sections_of_week()).sections.is_empty() {
        return Err("`week` has no bullet under a heading that was asked for".to_owned());
    }
    let memories = extract::read(&Value::Object(object).to_string())?;
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
            let error = read(&reply.to_string()).err().unwrap();
            assert!(error.contains(expected), "{reply}: {error}");
        }
        let read = read(&json!({ "week": week, "memories": [] }).to_string()).unwrap();
        assert_eq!(read, (week.to_owned(), vec![]));
    }
}
