//! Handing a session over: a model that works with tools until it has written its summary.
//!
//! The tools themselves belong to whoever asks; here is the loop: what is sent, when it ends, and what is
//! done with a model that never stops. The last summary counts.

use serde_json::{Value, json};

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

/// So often a model is asked at most for one handoff.
pub const TURNS_MAX: usize = 16;
/// From here on it is told to come to an end.
const TURNS_LEFT_WARNED: usize = 3;
/// So many calls of one turn are done; the others are refused.
const CALLS_MAX: usize = 16;

/// The tool that ends the work.
const WRITE_SUMMARY: &str = "write_summary";

/// What a handoff came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandoffSummary {
    /// The five sections of the last summary.
    pub sections: Vec<String>,
    /// Why the model was stopped, where it did not stop by itself.
    pub stopped: Option<String>,
}

/// What the tools do that look at files: returns what the model is told, or why not.
pub type FileTools<'a> = dyn FnMut(&str, &str) -> Result<String, String> + 'a;

impl ModelEngine {
    /// Returns whether the model can be given tools.
    pub fn takes_tools(&self) -> bool {
        self.ask.supports_tools()
    }

    /// Has the model hand a session over. `look` is called with the name of a tool and a path.
    ///
    /// # Errors
    ///
    /// Returns why there is no summary.
    pub fn handoff(
        &self,
        name: &str,
        entries: &[SessionEntry],
        instructions: Option<&str>,
        look: &mut FileTools<'_>,
    ) -> Result<HandoffSummary, EngineError> {
        let mut request = self.handoff_request(name, instructions);
        // The other half is for what it reads.
        let mut room = self.room_chars(&request) / 2;
        let mut summary: Option<Vec<String>> = None;
        let mut reminded = false;
        request.messages = vec![self.first_message(entries, room)];
        for turn in 1..=TURNS_MAX {
            let reply = match self.ask.complete(&request) {
                Ok(reply) => reply,
                // Nothing was read yet that could be taken back but the session itself.
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
            let answer = self.answer_calls(&reply, &mut summary, look, TURNS_MAX - turn);
            let said = Message { verbatim: reply.verbatim, ..Message::assistant(reply.text) };
            request.messages.push(said);
            request.messages.push(answer);
        }
        match summary {
            Some(sections) => {
                let why =
                    format!("it was stopped after {TURNS_MAX} turns; its last summary stands");
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
            stage: Stage::Session,
            name: None,
            period: name.to_owned(),
            system,
            messages: Vec::new(),
            schema: None,
            tools: tools(),
            max_output_tokens: prompt.max_output_tokens.min(self.max_output_tokens),
            temperature: prompt.temperature,
        }
    }

    /// Does what a reply calls for. Each call gets an answer, or the next request is refused.
    fn answer_calls(
        &self,
        reply: &ModelReply,
        summary: &mut Option<Vec<String>>,
        look: &mut FileTools<'_>,
        turns_left: usize,
    ) -> Message {
        let mut results = Vec::new();
        for (n, call) in reply.calls.iter().enumerate() {
            let done = if n >= CALLS_MAX {
                Err(format!("only {CALLS_MAX} calls are done at once"))
            } else {
                self.run_tool(call, summary, look)
            };
            let is_error = done.is_err();
            let text = done.unwrap_or_else(|why| format!("refused: {why}"));
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
        look: &mut FileTools<'_>,
    ) -> Result<String, String> {
        let argument = |name: &str| {
            let given = call.input[name].as_str().map(str::trim).filter(|it| !it.is_empty());
            given.ok_or_else(|| format!("`{name}` is missing: it takes {{\"{name}\": \"…\"}}"))
        };
        match &call.name[..] {
            WRITE_SUMMARY => {
                let missing = |it| format!("the heading \"{it}\" is missing; write all five again");
                *summary = Some(parse_sections(argument("text")?).map_err(missing)?);
                Ok("It stands. Another call takes its place.".to_owned())
            }
            "read_file" => {
                let text = look(&call.name, argument("path")?)?;
                Ok(request_data::fence(&text, &self.nonce))
            }
            "mark_read_required" | "add_reference" => look(&call.name, argument("path")?),
            other => Err(format!("there is no tool `{other}`")),
        }
    }
}

/// Ends a loop that a call has cut off: what stands already is taken.
fn end_early(
    summary: Option<Vec<String>>,
    error: CallError,
) -> Result<HandoffSummary, EngineError> {
    match summary {
        Some(sections) => {
            let why = format!("it was stopped, and its last summary stands: {error}");
            Ok(HandoffSummary { sections, stopped: Some(why) })
        }
        None => Err(EngineError::Model(error)),
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, description: &str, argument: &str, what: &str| Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: tool_schema(argument, what),
    };
    let path = "Absolute, or relative to the project's folder.";
    vec![
        tool("read_file", "Shows a text file of the project as it stands now.", "path", path),
        tool(
            "mark_read_required",
            "Puts the present content of a file of the project into the handoff. Counts against the budget.",
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

fn tool_schema(argument: &str, what: &str) -> Value {
    json!({
        "type": "object",
        "properties": { argument: { "type": "string", "description": what } },
        "required": [argument],
        "additionalProperties": false,
    })
}

fn parse_sections(text: &str) -> Result<Vec<String>, &'static str> {
    session::split_at_titles(text, &HANDOFF_TITLES)
}
