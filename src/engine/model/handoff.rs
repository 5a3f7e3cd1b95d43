//! Asks a model to hand over a session; it uses tools until it has written its summary.
//!
//! The caller implements the tools. This module implements the loop: the requests, the end, and the
//! limits for a model that never stops. The last summary counts.

use serde_json::json;

use super::{ModelEngine, request_data, session};
use crate::{
    engine::{EngineError, model::session::SessionEntry},
    model::{
        CallError, Message, ModelReply, ModelRequest, Stage, Tool, ToolCall, ToolCallResult,
        prompt::PromptName,
    },
};

/// The headings of a handoff, in their order.
pub const HANDOFF_TITLES: [&str; 5] =
    ["Completed Tasks", "Active Task", "Key Decisions", "User Directives", "Current Work"];

/// The most requests for one handoff.
pub const TURNS_MAX: usize = 16;
/// From this number of remaining turns on, the model is reminded to finish.
const TURNS_LEFT_WARNED: usize = 3;
/// The most tool calls that are executed per turn; the others are refused.
const CALLS_MAX: usize = 16;

const WRITE_SUMMARY: &str = "write_summary";

/// The result of a handoff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffSummary {
    /// The five sections of the last summary.
    pub sections: Vec<String>,
    /// Why the model was stopped, if it did not finish by itself.
    pub stopped: Option<String>,
}

/// Executes a file tool with its name and a path; returns the result for the model, or why it failed.
pub type FileTools<'a> = dyn FnMut(&str, &str) -> Result<String, String> + 'a;

impl ModelEngine {
    /// Returns whether the model can be given tools.
    pub fn takes_tools(&self) -> bool {
        self.client.supports_tools()
    }

    /// Asks the model to hand over a session.
    ///
    /// # Errors
    ///
    /// Returns why there is no summary.
    pub fn handoff(
        &self,
        name: &str,
        entries: &[SessionEntry],
        instructions: Option<&str>,
        file_tools: &mut FileTools<'_>,
    ) -> Result<HandoffSummary, EngineError> {
        let mut request = self.handoff_request(name, instructions);
        // The other half of the room is for files that the model reads.
        let mut room = self.room_chars(&request) / 2;
        let mut summary: Option<Vec<String>> = None;
        let mut reminded = false;
        request.messages = vec![self.first_message(entries, room)];
        for turn in 1..=TURNS_MAX {
            let reply = match self.client.complete(&request) {
                Ok(reply) => reply,
                // On the first turn only the session can be shortened.
                Err(CallError::TooLong { .. }) if turn == 1 && room > 4_000 => {
                    room /= 2;
                    request.messages = vec![self.first_message(entries, room)];
                    continue;
                }
                Err(error) => return end_early(summary, error),
            };
            if reply.calls.is_empty() {
                let found = summary.take().or_else(|| parse_sections(&reply.text).ok());
                if let Some(sections) = found {
                    return Ok(HandoffSummary { sections, stopped: None });
                }
                if std::mem::replace(&mut reminded, true) {
                    break;
                }
                request.messages.push(Message::assistant(reply.text));
                request.messages.push(Message::user(
                    "There is no summary yet: call `write_summary` with all five headings.",
                ));
                continue;
            }
            let answer = self.answer_calls(&reply, &mut summary, file_tools, TURNS_MAX - turn);
            let turn = Message { verbatim: reply.verbatim, ..Message::assistant(reply.text) };
            request.messages.push(turn);
            request.messages.push(answer);
        }
        match summary {
            Some(sections) => {
                let why = format!("stopped after {TURNS_MAX} turns, with its last summary");
                Ok(HandoffSummary { sections, stopped: Some(why) })
            }
            None => Err(super::unreadable(format!("it wrote no summary in {TURNS_MAX} turns"))),
        }
    }

    fn first_message(&self, entries: &[SessionEntry], room_chars: usize) -> Message {
        Message::user(request_data::fence(&session::fit_entries(entries, room_chars), &self.nonce))
    }

    fn handoff_request(&self, name: &str, instructions: Option<&str>) -> ModelRequest {
        let prompt = self.prompts.get(PromptName::Handoff);
        let mut system = prompt.fill(&[]);
        if let Some(instructions) = instructions {
            system.push_str("\n\n## Additional Instructions\n");
            system.push_str(instructions.trim());
        }
        ModelRequest {
            tools: tools(),
            ..self.request(Stage::Session, name.to_owned(), prompt, system, Vec::new())
        }
    }

    /// Executes the tool calls of a reply. Providers refuse the next request unless every call has an
    /// answer.
    fn answer_calls(
        &self,
        reply: &ModelReply,
        summary: &mut Option<Vec<String>>,
        file_tools: &mut FileTools<'_>,
        turns_left: usize,
    ) -> Message {
        let mut results = Vec::new();
        for (n, call) in reply.calls.iter().enumerate() {
            let result = if n >= CALLS_MAX {
                Err(format!("at most {CALLS_MAX} calls are allowed per turn"))
            } else {
                self.run_tool(call, summary, file_tools)
            };
            let is_error = result.is_err();
            let text = result.unwrap_or_else(|why| format!("refused: {why}"));
            results.push(ToolCallResult {
                id: call.id.clone(),
                name: call.name.clone(),
                text,
                is_error,
            });
        }
        let text = match (turns_left, &summary) {
            (0 | TURNS_LEFT_WARNED.., _) | (_, Some(_)) => String::new(),
            (left, None) => format!("{left} turns are left. Call `{WRITE_SUMMARY}` now."),
        };
        Message { results, ..Message::user(text) }
    }

    fn run_tool(
        &self,
        call: &ToolCall,
        summary: &mut Option<Vec<String>>,
        file_tools: &mut FileTools<'_>,
    ) -> Result<String, String> {
        let argument = |name: &str| {
            let given = call.input[name].as_str().map(str::trim).filter(|it| !it.is_empty());
            given.ok_or_else(|| format!("`{name}` is missing: expected {{\"{name}\": \"…\"}}"))
        };
        match &call.name[..] {
            WRITE_SUMMARY => {
                let missing = |it| format!("the heading \"{it}\" is missing; write all five again");
                *summary = Some(parse_sections(argument("text")?).map_err(missing)?);
                Ok("Saved. Another call replaces it.".to_owned())
            }
            "read_file" => {
                let text = file_tools(&call.name, argument("path")?)?;
                Ok(request_data::fence(&text, &self.nonce))
            }
            "mark_read_required" | "add_reference" => file_tools(&call.name, argument("path")?),
            other => Err(format!("there is no tool `{other}`")),
        }
    }
}

/// Ends the loop after a failed request, with the summary written so far if there is one.
fn end_early(
    summary: Option<Vec<String>>,
    error: CallError,
) -> Result<HandoffSummary, EngineError> {
    match summary {
        Some(sections) => {
            let why = format!("stopped with its last summary: {error}");
            Ok(HandoffSummary { sections, stopped: Some(why) })
        }
        None => Err(EngineError::Model(error)),
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, argument: &str, what: &str| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: json!({
            "type": "object",
            "properties": { argument: { "type": "string", "description": what } },
            "required": [argument],
            "additionalProperties": false,
        }),
    };
    let path = "Absolute, or relative to the project's folder.";
    vec![
        tool("read_file", "Shows the current content of a text file of the project.", "path", path),
        tool(
            "mark_read_required",
            "Puts the current content of a file of the project into the handoff. Counts against the budget.",
            "path",
            path,
        ),
        tool("add_reference", "Names a file of the project without its content.", "path", path),
        tool(
            WRITE_SUMMARY,
            "Writes the summary. It may be called again; the last one counts.",
            "text",
            "The summary with its five headings.",
        ),
    ]
}

fn parse_sections(text: &str) -> Result<Vec<String>, &'static str> {
    session::split_at_titles(text, &HANDOFF_TITLES)
}
