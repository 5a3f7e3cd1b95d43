//! The engine that asks a language model.
//!
//! It builds requests and parses replies; [`crate::model`] sends them. A reply is a draft like any
//! other: the compaction run checks it against the cited lines. Items that fail are returned to the model once.
//!
//! - [`request_data`]: the data of a request, between markers that no log author can guess.
//! - [`summary`]: weeks and months, as Markdown.
//! - [`align`]: finds source lines for a bullet without a citation.
//! - [`checked`]: the items of a reply after the checks, with a second try.
//! - [`json`]: finds the JSON value in a reply.
//! - [`memories`]: statements for typed memories, as JSON.
//! - [`prefetch`]: short weeks together, long weeks in parts.
//! - [`week_batch`]: a week and the memories of its days, in one request.
//! - [`session`]: the summary of a coding agent's session, in nine sections.
//! - [`handoff`]: a session handover, written by a model that uses tools.
//! - [`repair`]: one small request for all items of a job that failed the checks.
//! - [`wisdom`]: edits of `WISDOM.md`, as JSON.

pub mod align;
mod checked;
pub mod handoff;
pub mod json;
mod memories;
mod prefetch;
mod repair;
pub mod request_data;
pub mod session;
pub mod summary;
pub mod week_batch;
mod wisdom;

use chrono::{DateTime, Utc};

use self::request_data::DataBlock;
use super::{
    DistillInput, Distillation, Engine, EngineDraft, EngineError, ExtractInput, Extraction,
    SummaryInput, WeekExtractInput, extractive::Extractive,
};
use crate::{
    config::settings::{Compaction, Wisdom},
    memory::typed::TypedMemory,
    model::{
        Batching, CallError, LanguageModel, Message, ModelRequest, Spending, Stage, WorkOutcome,
        prompt::{Prompt, Prompts},
    },
};

/// Drafts by asking a model.
pub struct ModelEngine {
    /// The client that sends requests.
    pub client: Box<dyn LanguageModel>,
    /// The instructions.
    pub prompts: Prompts,
    /// The engine's name as recorded in files: `model/1 claude-haiku-5-5`.
    pub id: String,
    /// The model's context window, in tokens read and written in one call.
    pub context_tokens: u32,
    /// The most tokens that the model may write in one call.
    pub max_output_tokens: u32,
    /// A secret that no log author knows, for the markers around data.
    pub nonce: [u8; 32],
    /// The length settings, for the instructions.
    pub compaction: Compaction,
    /// The wisdom settings, for the instructions.
    pub wisdom: Wisdom,
    /// Weeks whose combined request is not answered yet.
    pub pending_weeks: week_batch::PendingWeeks,
}

/// Returns the name of this engine with a model.
pub fn model_engine_id(model: &str) -> String {
    format!("model/1 {model}")
}

/// Returns whether a name is that of this engine, with any model.
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
        // Copying every line needs no model.
        if input.budget.verbatim {
            return Extractive.summarize(input);
        }
        self.summarize_by_model(input)
    }

    fn extract(&self, input: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        self.extract_by_model(input)
    }

    fn may_prefetch(&self, week: &SummaryInput<'_>) -> Result<bool, EngineError> {
        ModelEngine::may_prefetch(self, week)
    }

    fn prefetch_weeks(
        &self,
        weeks: &[SummaryInput<'_>],
        existing: &[TypedMemory],
    ) -> Result<(), EngineError> {
        self.prefetch_weeks_by_model(weeks, existing)
    }

    fn extract_week(
        &self,
        input: &SummaryInput<'_>,
        days: &WeekExtractInput<'_>,
        may_ask: bool,
    ) -> Result<Option<Extraction>, EngineError> {
        self.extract_week_by_model(input, days, may_ask)
    }

    fn distill(&self, input: &DistillInput<'_>) -> Result<Distillation, EngineError> {
        self.distill_by_model(input)
    }

    fn unavailable_reason(&self, now: DateTime<Utc>) -> Option<CallError> {
        self.client.unavailable_reason(now)
    }

    fn begin_run(&self, run: i64) {
        self.pending_weeks.clear();
        self.client.set_run(run);
    }

    fn take_spent(&self) -> Spending {
        self.client.take_spending()
    }

    fn end_work(&self, end: WorkOutcome) {
        self.client.finish_work(end);
    }

    fn on_idle(&self) {
        self.client.on_idle();
    }

    fn batching(&self) -> Option<&dyn Batching> {
        self.client.batching()
    }
}

/// How often data is split into smaller parts after the model refused them as too long.
///
/// Each split at least halves the parts, so that scripts with fewer characters per token than estimated
/// fit, too.
const CUTS_MAX: usize = 4;

impl ModelEngine {
    /// Returns how many characters of data fit into one request beside the instructions and the reply.
    ///
    /// The characters per token are measured from earlier replies.
    fn room_chars(&self, request: &ModelRequest) -> usize {
        let reported = self.client.context_tokens().unwrap_or(self.context_tokens);
        let window = reported.min(self.context_tokens);
        let tokens = window.saturating_sub(request.max_output_tokens);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "tokens times a few characters"
        )]
        let chars = (f64::from(tokens) * self.client.chars_per_token()) as usize;
        chars.saturating_sub(request.chars())
    }

    /// Splits the data into parts that fit the model and calls `ask` once per part, with all parts and
    /// the index of the current one. `empty` is a request without data.
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
            // The server may have reported its window meanwhile.
            room = self.room_chars(empty).min(longest / 2);
            cuts += 1;
        }
    }

    fn request(
        &self,
        stage: Stage,
        period: String,
        prompt: &Prompt,
        system: String,
        messages: Vec<Message>,
    ) -> ModelRequest {
        ModelRequest {
            stage,
            period,
            name: None,
            system,
            messages,
            schema: None,
            tools: Vec::new(),
            max_output_tokens: self.output_tokens(prompt),
            temperature: prompt.temperature,
        }
    }

    /// Returns how many tokens the reply to a prompt may have.
    fn output_tokens(&self, prompt: &Prompt) -> u32 {
        prompt.max_output_tokens.min(self.max_output_tokens)
    }

    fn ask(&self, request: &ModelRequest) -> Result<String, EngineError> {
        Ok(self.client.complete(request).map_err(EngineError::Model)?.text)
    }
}

/// Collects all replies, or returns the first error.
///
/// A reply that a batch will deliver later is an error only after the loop, so that the other parts are
/// requested in the same batch.
fn collect_replies<T>(
    replies: impl Iterator<Item = Result<T, EngineError>>,
) -> Result<Vec<T>, EngineError> {
    let (mut all, mut awaiting) = (Vec::new(), None);
    for reply in replies {
        match reply {
            Ok(reply) => all.push(reply),
            Err(error @ EngineError::Model(CallError::AwaitingBatch)) => awaiting = Some(error),
            Err(error) => return Err(error),
        }
    }
    awaiting.map_or(Ok(all), Err)
}

/// Appends a reply and our answer to it.
fn with_follow_up(mut request: ModelRequest, reply: &str, answer: String) -> ModelRequest {
    request.messages.push(Message::assistant(reply));
    request.messages.push(Message::user(answer));
    request
}

/// Returns the message to a model whose JSON could not be read.
fn unreadable_message(why: &str) -> String {
    format!(
        "Your reply could not be read: {why}. Reply with the JSON object only, in the requested format."
    )
}

fn unreadable(reason: impl Into<String>) -> EngineError {
    EngineError::Model(CallError::InvalidReply(reason.into()))
}
