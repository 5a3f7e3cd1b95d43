//! The engine that asks a language model.
//!
//! It writes requests and reads replies; what is between is [`crate::model`]. Whatever the model says
//! is a draft like any other: the flow checks it against the lines that it cites, and what does not
//! stand goes back once (`Engine::retry_rejected`).
//!
//! - [`request_data`]: the data of a request, fenced by a marker that no log can know.
//! - [`summary`]: weeks and months, as Markdown.
//! - [`align`]: lines for a bullet that cites none.
//! - [`json`]: a JSON value in a reply that may hold more.
//! - [`memories`]: typed memories, as JSON.
//! - [`week_batch`]: a week and the memories of its days, in one request.
//! - [`session`]: a session of a coding agent, as nine sections.
//! - [`handoff`]: a session handed over, by a model that works with tools.
//! - [`wisdom`]: edits of `WISDOM.md`, as JSON.

pub mod align;
pub mod handoff;
pub mod json;
mod memories;
pub mod request_data;
pub mod session;
pub mod summary;
pub mod week_batch;
mod wisdom;

use chrono::{DateTime, Utc};

use self::request_data::DataBlock;
use super::{
    DistillInput, DraftFault, Engine, EngineDraft, EngineError, ExtractInput, Extraction,
    SummaryInput, WeekExtractInput, WisdomOp, extractive::Extractive,
};
use crate::{
    config::settings::{Compaction, Wisdom},
    model::{
        Batching, CallError, LanguageModel, Message, ModelRequest, Spending, WorkOutcome,
        prompt::Prompts,
    },
};

/// Drafts by asking a model.
pub struct ModelEngine {
    /// The way to it.
    pub ask: Box<dyn LanguageModel>,
    /// The instructions.
    pub prompts: Prompts,
    /// What is named in files: `model/1 claude-haiku-5-5`.
    pub id: String,
    /// How many tokens the model reads and writes in one call.
    pub context_tokens: u32,
    /// How many it may write.
    pub max_output_tokens: u32,
    /// What no log can know, for the markers around data.
    pub nonce: [u8; 32],
    /// How long files may get, for the instructions.
    pub compaction: Compaction,
    /// How `WISDOM.md` is kept, for the instructions.
    pub wisdom: Wisdom,
    /// Weeks that are asked for together with their days, and not answered yet.
    pub pending_weeks: week_batch::PendingWeeks,
}

/// Returns the name of this engine with a model.
pub fn model_engine_id(model: &str) -> String {
    format!("model/1 {model}")
}

/// Returns whether a name is that of this engine, with whatever model.
pub fn is_model_engine_id(id: &str) -> bool {
    id.starts_with("model/")
}

impl Engine for ModelEngine {
    fn id(&self) -> &str {
        &self.id
    }

    fn is_model(&self) -> bool {
        true
    }

    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
        // Lines that are carried over whole need no model.
        if input.budget.verbatim {
            return Extractive.summarize(input);
        }
        self.summarize_by_model(input)
    }

    fn retry_rejected(
        &self,
        input: &SummaryInput<'_>,
        draft: &EngineDraft,
        faults: &[DraftFault],
    ) -> Result<Option<EngineDraft>, EngineError> {
        self.retry_by_model(input, draft, faults)
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        self.extract_by_model(input)
    }

    fn extract_week(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        self.extract_week_by_model(input, days, may_ask)
    }

    fn distill(&self, input: &DistillInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        self.distill_by_model(input)
    }

    fn unavailable_reason(&self, now: DateTime<Utc>) -> Option<CallError> {
        self.ask.unavailable_reason(now)
    }

    fn begin_run(&self, run: i64) {
        self.ask.set_run(run);
    }

    fn take_spent(&self) -> Spending {
        self.ask.take_spending()
    }

    fn end_work(&self, end: WorkOutcome) {
        self.ask.finish_work(end);
    }

    fn on_idle(&self) {
        self.ask.on_idle();
    }

    fn batching(&self) -> Option<&dyn Batching> {
        self.ask.batching()
    }
}

/// How often data is cut into smaller parts because the model cannot take them. Each time they are at
/// most half as long, so a script whose tokens are shorter than we think fits, too.
const CUTS_MAX: usize = 4;

impl ModelEngine {
    /// Returns how many characters of data fit into one request beside the instructions and the reply.
    ///
    /// How many characters a token has was learned from the replies before.
    fn room_chars(&self, request: &ModelRequest) -> usize {
        let said = self.ask.context_tokens().unwrap_or(self.context_tokens);
        let window = said.min(self.context_tokens);
        let tokens = window.saturating_sub(request.max_output_tokens);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "tokens times a few characters"
        )]
        let chars = (f64::from(tokens) * self.ask.chars_per_token()) as usize;
        chars.saturating_sub(request.chars())
    }

    /// Asks about each part of the data, in as many parts as the model can take: `ask` is given all of
    /// them and the number of the one that is its turn. `empty` is a request without data.
    ///
    /// # Errors
    ///
    /// Returns why one of them was not answered.
    fn ask_in_parts<T>(
        &self,
        blocks: &[DataBlock],
        empty: &ModelRequest,
        mut ask: impl FnMut(&[Vec<DataBlock>], usize) -> Result<T, EngineError>,
    ) -> Result<Vec<T>, EngineError> {
        let mut room = self.room_chars(empty);
        let mut cuts = 0;
        loop {
            let parts = request_data::split_into_parts(blocks.to_vec(), room);
            let asked = collect_replies((0..parts.len()).map(|i| ask(&parts, i)));
            let is_too_long = matches!(asked, Err(EngineError::Model(CallError::TooLong { .. })));
            if !is_too_long || cuts == CUTS_MAX {
                return asked;
            }
            let chars = |part: &Vec<DataBlock>| part.iter().map(DataBlock::chars).sum::<usize>();
            let longest = parts.iter().map(chars).max().unwrap_or_default();
            // The server may have said how much it takes.
            room = self.room_chars(empty).min(longest / 2);
            cuts += 1;
        }
    }

    /// Asks for a list as JSON; once more, with what is wrong, where the reply cannot be read.
    fn ask_for_list<T>(
        &self,
        request: ModelRequest,
        read: &dyn Fn(&str) -> Result<Vec<T>, String>,
    ) -> Result<Vec<T>, EngineError> {
        let text = self.ask(&request)?;
        let why = match read(&text) {
            Ok(list) => return Ok(list),
            Err(why) => why,
        };
        let told = format!(
            "That cannot be read: {why}. Reply with the JSON object alone, in the form that was asked \
             for."
        );
        read(&self.ask(&with_follow_up(request, &text, told))?).map_err(unreadable)
    }

    fn ask(&self, request: &ModelRequest) -> Result<String, EngineError> {
        Ok(self.ask.complete(request).map_err(EngineError::Model)?.text)
    }
}

/// Returns all that was asked, or why one is missing. The first that is ends it, but for one that is
/// answered later: then the others can be asked in the meantime.
fn collect_replies<T>(
    asked: impl Iterator<Item = Result<T, EngineError>>,
) -> Result<Vec<T>, EngineError> {
    let (mut all, mut later) = (Vec::new(), None);
    for one in asked {
        match one {
            Ok(one) => all.push(one),
            Err(error @ EngineError::Model(CallError::AwaitingBatch)) => later = Some(error),
            Err(error) => return Err(error),
        }
    }
    later.map_or(Ok(all), Err)
}

/// Appends a reply and what is said to it.
fn with_follow_up(mut request: ModelRequest, reply: &str, then: String) -> ModelRequest {
    request.messages.push(Message::assistant(reply));
    request.messages.push(Message::user(then));
    request
}

/// What a reply is, when it is not what was asked for.
fn unreadable(what: impl Into<String>) -> EngineError {
    EngineError::Model(CallError::InvalidReply(what.into()))
}
