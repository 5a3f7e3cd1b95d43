//! Reads the session files of several agents into one form.
//!
//! A transcript is a file of JSON lines that its agent appends to. It may end within a line, and may
//! contain repeated lines (a resumed or forked session copies earlier ones), lines of other versions,
//! and lines of many megabytes. It is read as a stream and never refused because of one line: unknown
//! lines become [`EntryContent::Other`] or are counted in [`TranscriptAnomalies`].
//!
//! - [`line_reader`]: lines of bounded length.
//! - [`claude`], [`codex`], [`copilot`], [`gemini`], [`openclaw`], [`opencode`], [`plain`]: the lines of each format.
//! - [`segments`]: opens the files of one conversation.
//! - [`tool`]: the effect of a tool call: files, command, to-do list.
//! - [`branches`]: what the user discarded by rewinding the conversation.
//! - `forgotten_words`: removes words that the user wants forgotten.
//! - `truncation`: shortens texts.
//! - [`user_text`]: separates the user's own text from text that programs inserted.
//!
//! # Invariants
//!
//! - Entries are in the order of the file. All messages of the user are there, in order and complete;
//!   tool results are cut to [`RESULT_CHARS_MAX`].
//! - Text that memoird itself inserted into a session becomes only [`EntryContent::Injected`].
//! - What the user discarded by rewinding becomes only [`EntryContent::Other`].

mod branches;
pub mod claude;
pub mod codex;
pub mod copilot;
mod forgotten_words;
pub mod gemini;
pub mod line_reader;
pub mod openclaw;
pub mod opencode;
pub mod plain;
pub mod segments;
pub mod tool;
mod truncation;
pub mod user_text;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    io::{self, BufRead},
};

use chrono::{DateTime, Utc};
use serde_json::Value;

pub(crate) use self::truncation::{truncate, truncate_message, truncate_middle};
use self::{
    branches::LineTree,
    line_reader::{BoundedLine, BoundedLines},
    tool::{ToolKind, ToolUse},
};
use crate::{
    memory::{hash::ContentHash, own_words},
    session::cited_summary,
};

/// The longest tool result, in characters. The start and the end are kept, because errors are at the
/// end.
pub const RESULT_CHARS_MAX: usize = 6_000;

/// The tools with which agents ask the user.
const ASKING_TOOLS: [&str; 2] = ["AskUserQuestion", "request_user_input"];

/// How many unread messages of the queue are looked for.
const QUEUED_MAX: usize = 100;

/// The kind of lines that the user discarded.
const DISCARDED: &str = "discarded";

/// How many lines are read to detect the format.
const DETECTION_LINES_MAX: usize = 1_000;

/// The format of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TranscriptFormat {
    /// `~/.claude/projects/*/*.jsonl`.
    ClaudeCode,
    /// `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// `~/.copilot/session-state/*/events.jsonl`.
    Copilot,
    /// `~/.gemini/tmp/*/chats/session-*.jsonl`.
    Gemini,
    /// Sessions in `~/.openclaw/agents/*/agent/openclaw-agent.sqlite`, or `~/.openclaw/agents/*/sessions/*.jsonl`.
    #[value(name = "openclaw")]
    OpenClaw,
    /// `~/.local/share/opencode/opencode.db`, or what `opencode export` writes.
    Opencode,
    /// One `{"role": …, "content": …}` to a line; also `~/.cursor/projects/*/agent-transcripts/*.jsonl`.
    Plain,
}

impl TranscriptFormat {
    /// Returns the name that records and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::OpenClaw => "openclaw",
            Self::Opencode => "opencode",
            Self::Plain => "plain",
        }
    }

    /// Returns the format of a line, if the line alone shows it.
    pub fn detect(line: &Value) -> Option<Self> {
        let has = |key: &str| line.get(key).is_some();
        let kind = line.get("type").and_then(Value::as_str);
        if gemini::is_line(line) {
            return Some(Self::Gemini);
        }
        if openclaw::is_line(line) {
            return Some(Self::OpenClaw);
        }
        if copilot::is_line(line) {
            return Some(Self::Copilot);
        }
        if opencode::is_line(line) {
            return Some(Self::Opencode);
        }
        if has("uuid") || has("sessionId") || has("leafUuid") {
            return kind.map(|_| Self::ClaudeCode);
        }
        if kind == Some("session_meta") || (has("payload") && kind.is_some()) {
            return Some(Self::Codex);
        }
        // A session that was only opened may have nothing but such a line.
        if kind.is_some_and(claude::is_state_kind) {
            return Some(Self::ClaudeCode);
        }
        // The first line of an older rollout has the session's id but no type.
        if has("instructions") && has("id") && has("timestamp") {
            return Some(Self::Codex);
        }
        let is_message =
            line.get("role").is_some_and(Value::is_string) && plain::content(line).is_some();
        (is_message && kind.is_none_or(|it| it == "message")).then_some(Self::Plain)
    }
}

/// A session as recorded in its transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// The format of the file.
    pub format: TranscriptFormat,
    /// The session's id, if the file contains one.
    pub session: Option<String>,
    /// The last folder that the agent worked in.
    pub cwd: Option<String>,
    /// The last branch that it worked on.
    pub branch: Option<String>,
    /// The agent and its version, if the file contains them.
    pub agent: Option<String>,
    /// Whether the whole file belongs to an agent that the agent of another session started.
    pub is_subagent: bool,
    /// The id of the session that it was forked from, if the file names it.
    pub parent: Option<String>,
    /// The entries, in the order of the file.
    pub entries: Vec<TranscriptEntry>,
    /// What could not be read.
    pub anomalies: TranscriptAnomalies,
}

/// One entry. A line may contain several.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptEntry {
    /// The line of the file, from 1.
    pub line: usize,
    /// The id of the line, the same in copies of the transcript.
    pub id: String,
    /// Whether the file names the id. Otherwise it is a hash of the line, which a copy of the session with
    /// another session id does not contain.
    pub has_own_id: bool,
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// Whether it belongs to an agent that the session's agent started.
    pub is_subagent: bool,
    /// Whether it is the user's answer to questions of the agent, each line a question and its answer.
    pub is_answer: bool,
    /// The content.
    pub content: EntryContent,
    /// The own words of a message, if it contains others: quotes, code, struck-out text.
    own_words: Option<Box<str>>,
}

/// The content of an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryContent {
    /// A message of the user, complete and unchanged.
    User(String),
    /// A command of the agent's program that the user typed: `/compact`, `!ls`.
    Command(String),
    /// A message of the agent.
    Assistant(String),
    /// A tool call.
    Call(ToolUse),
    /// The result of a tool call.
    Result(ToolOutput),
    /// A compaction: the agent no longer sees the entries above.
    Boundary {
        /// `manual`, `auto`, or another value in the file.
        trigger: Option<String>,
        /// The size of the context before, in tokens.
        tokens_before: Option<u64>,
    },
    /// A summary by which the agent's program replaced the entries above.
    Summary(String),
    /// Text that a program inserted: a reminder, the output of a hook, a notice.
    Notice(String),
    /// Text that memoird inserted, which contains nothing new.
    Injected,
    /// The name of a kind of line that is not read.
    Other(String),
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// The id of the call.
    pub call: String,
    /// The output, cut to [`RESULT_CHARS_MAX`].
    pub text: String,
    /// The length of the whole output, in bytes.
    pub bytes: usize,
    /// Whether it failed.
    pub is_error: bool,
}

/// What could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptAnomalies {
    /// Whether the last line is incomplete: it is still being written, or its writer was killed.
    pub is_truncated: bool,
    /// Lines that are not JSON.
    pub malformed: usize,
    /// Lines longer than [`line_reader::LINE_BYTES_MAX`].
    pub too_long: usize,
    /// Repeated lines.
    pub duplicates: usize,
    /// The kinds of lines that are not read, and their numbers.
    pub unread: BTreeMap<String, usize>,
}

/// Why a transcript could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The file cannot be read.
    #[error("the transcript cannot be read at line {line}")]
    Io {
        /// The line that was to be read.
        line: usize,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It contains no line.
    #[error("it is empty")]
    Empty,
    /// No line has a known format.
    #[error(
        "it contains no line of a session: neither of Claude Code, Codex, Copilot CLI, Gemini CLI, OpenClaw, \
         or opencode, nor {{\"role\": …, \"content\": …}}"
    )]
    Unknown,
}

/// Reads a transcript to its end. The format is detected if `format` is `None`.
///
/// # Errors
///
/// Returns [`TranscriptError`] if the file cannot be read, or contains no line of a session.
pub fn read(
    input: impl BufRead,
    format: Option<TranscriptFormat>,
) -> Result<Transcript, TranscriptError> {
    let mut lines = BoundedLines::new(input);
    let mut reader = format.map(TranscriptReader::new);
    let mut undecided: Vec<(usize, ContentHash, Value)> = Vec::new();
    let mut anomalies = TranscriptAnomalies::default();
    loop {
        let number = lines.number() + 1;
        let line = lines.next_line();
        let line = line.map_err(|source| TranscriptError::Io { line: number, source })?;
        let (bytes, is_whole) = match line {
            None => break,
            Some(BoundedLine::TooLong) => {
                anomalies.too_long += 1;
                continue;
            }
            Some(BoundedLine::Text { bytes, is_complete: is_whole }) => (bytes, is_whole),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let is_document = reader.is_none() && undecided.is_empty() && bytes.trim_ascii() == b"{";
        let hash = ContentHash::of(bytes);
        let value = if is_document {
            read_document(&mut lines)
                .map_err(|source| TranscriptError::Io { line: number, source })?
        } else {
            serde_json::from_slice::<Value>(bytes).ok()
        };
        let Some(value) = value else {
            if is_whole {
                anomalies.malformed += 1;
            } else {
                anomalies.is_truncated = true;
            }
            continue;
        };
        if let Some(reader) = &mut reader {
            reader.read_line(number, hash, &value);
            continue;
        }
        let found = TranscriptFormat::detect(&value);
        undecided.push((number, hash, value));
        if found.is_none() && undecided.len() < DETECTION_LINES_MAX {
            continue;
        }
        let format = found.ok_or(TranscriptError::Unknown)?;
        let reader = reader.insert(TranscriptReader::new(format));
        for (number, hash, value) in undecided.drain(..) {
            reader.read_line(number, hash, &value);
        }
    }
    let Some(reader) = reader else {
        let is_empty = undecided.is_empty() && anomalies == TranscriptAnomalies::default();
        return Err(if is_empty { TranscriptError::Empty } else { TranscriptError::Unknown });
    };
    let mut transcript = reader.finish();
    transcript.anomalies.is_truncated = anomalies.is_truncated;
    transcript.anomalies.malformed = anomalies.malformed;
    transcript.anomalies.too_long = anomalies.too_long;
    Ok(transcript)
}

/// Reads the rest of a file that is one JSON object in lines, after its first line, as Gemini CLI wrote it
/// at first, and `opencode export` does; `None` if it is none, or longer than a line may be.
fn read_document(lines: &mut BoundedLines<impl BufRead>) -> io::Result<Option<Value>> {
    let mut document = b"{".to_vec();
    while let Some(line) = lines.next_line()? {
        let BoundedLine::Text { bytes, .. } = line else { return Ok(None) };
        if document.len() + bytes.len() > line_reader::LINE_BYTES_MAX {
            return Ok(None);
        }
        document.extend_from_slice(bytes);
    }
    Ok(serde_json::from_slice(&document).ok())
}

/// The state while a transcript is read.
#[derive(Debug)]
struct TranscriptReader {
    transcript: Transcript,
    /// Ids of the lines so far.
    seen: HashSet<String>,
    /// How often each line without an id occurred.
    copies: HashMap<ContentHash, usize>,
    /// Where the entries of a message of Gemini CLI begin, by its id and by its text; and of a call that the user
    /// of Copilot CLI typed.
    positions: HashMap<String, usize>,
    /// The first message that the user of opencode reverted, and the first part of it.
    reverted_from: Option<(String, String)>,
    /// Calls without ids in the file, oldest first.
    unnamed_calls: Vec<String>,
    memory_calls: HashSet<String>,
    tree: LineTree,
    questions: HashMap<String, Vec<(String, String)>>,
    /// Messages that the user queued and the agent did not read yet, with the index of their entries.
    queued: VecDeque<(usize, String)>,
}

/// Collects the entries of one line for the reader of its format.
#[derive(Debug)]
struct EntryBuilder<'a> {
    transcript: &'a mut Transcript,
    positions: &'a mut HashMap<String, usize>,
    reverted_from: &'a mut Option<(String, String)>,
    unnamed_calls: &'a mut Vec<String>,
    memory_calls: &'a mut HashSet<String>,
    /// The ids and texts of the questions that each call asks the user.
    questions: &'a mut HashMap<String, Vec<(String, String)>>,
    queued: &'a mut VecDeque<(usize, String)>,
    line: usize,
    id: String,
    has_own_id: bool,
    at: Option<DateTime<Utc>>,
    is_subagent: bool,
    is_answer: bool,
}

impl TranscriptReader {
    fn new(format: TranscriptFormat) -> Self {
        let transcript = Transcript {
            format,
            session: None,
            cwd: None,
            branch: None,
            agent: None,
            is_subagent: false,
            parent: None,
            entries: Vec::new(),
            anomalies: TranscriptAnomalies::default(),
        };
        let (seen, copies, positions, reverted_from, unnamed_calls) = Default::default();
        let (memory_calls, tree, questions, queued) = Default::default();
        Self {
            transcript,
            seen,
            copies,
            positions,
            reverted_from,
            unnamed_calls,
            memory_calls,
            tree,
            questions,
            queued,
        }
    }

    /// Returns the transcript without what the user discarded, and with what no agent has read yet.
    fn finish(mut self) -> Transcript {
        let discarded = self.tree.discarded_lines();
        let entries = &mut self.transcript.entries;
        for entry in entries.iter_mut().filter(|it| discarded.contains(&it.line)) {
            entry.set_content(EntryContent::Other(DISCARDED.to_owned()));
        }
        for (at, text) in self.queued.into_iter().take(QUEUED_MAX) {
            let is_text = |it: &TranscriptEntry| match &it.content {
                EntryContent::User(own)
                | EntryContent::Command(own)
                | EntryContent::Notice(own) => own.contains(text.trim()),
                _ => false,
            };
            // Only the user's own words, without those that a program inserted.
            if !entries.iter().any(is_text)
                && let [user @ EntryContent::User(_)] = &user_text::split_user_text(&text)[..]
                && let Some(entry) = entries.get_mut(at)
            {
                entry.set_content(user.clone());
            }
        }
        self.transcript
    }

    fn read_line(&mut self, number: usize, hash: ContentHash, value: &Value) {
        let (id_key, parent_key) = match self.transcript.format {
            TranscriptFormat::OpenClaw => ("id", "parentId"),
            _ => ("uuid", "parentUuid"),
        };
        let own_id = string_field(value, id_key).filter(|it| !it.is_empty());
        let id = if let Some(id) = own_id {
            // A fork may give its lines new ids.
            let origin = value.get("forkedFrom");
            if let Some(parent) = origin.and_then(|it| string_field(it, "sessionId")) {
                self.transcript.parent = Some(parent.to_owned());
            }
            let original = origin.and_then(|it| string_field(it, "messageUuid"));
            original.unwrap_or(id).to_owned()
        } else {
            // Numbered by occurrence, so that a copy of the session has the same ids.
            let copy = self.copies.entry(hash).or_default();
            *copy += 1;
            if *copy == 1 { hash.hex16() } else { format!("{}-{copy}", hash.hex16()) }
        };
        if own_id.is_some() && !self.seen.insert(id.clone()) {
            self.transcript.anomalies.duplicates += 1;
            return;
        }
        let at = parse_time(value.get("timestamp"));
        let format = self.transcript.format;
        let first = self.transcript.entries.len();
        let mut found = EntryBuilder {
            transcript: &mut self.transcript,
            positions: &mut self.positions,
            reverted_from: &mut self.reverted_from,
            unnamed_calls: &mut self.unnamed_calls,
            memory_calls: &mut self.memory_calls,
            questions: &mut self.questions,
            queued: &mut self.queued,
            line: number,
            id,
            has_own_id: own_id.is_some(),
            at,
            is_subagent: false,
            is_answer: false,
        };
        match format {
            TranscriptFormat::ClaudeCode => claude::read(&mut found, value),
            TranscriptFormat::Codex => codex::read(&mut found, value),
            TranscriptFormat::Copilot => copilot::read(&mut found, value),
            TranscriptFormat::Gemini => gemini::read(&mut found, value),
            TranscriptFormat::OpenClaw => openclaw::read(&mut found, value),
            TranscriptFormat::Opencode => opencode::read(&mut found, value),
            TranscriptFormat::Plain => plain::read(&mut found, value),
        }
        let is_subagent = found.is_subagent;
        if let Some(id) = own_id.filter(|_| !is_subagent) {
            let is_prompt = |it: &TranscriptEntry| {
                matches!(it.content, EntryContent::User(_) | EntryContent::Command(_))
            };
            let is_prompt = self.transcript.entries[first..].iter().any(is_prompt);
            let kinds = ["user", "assistant", "message"];
            let is_message = string_field(value, "type").is_some_and(|it| kinds.contains(&it));
            let parent = string_field(value, parent_key);
            self.tree.add(number, id, parent, is_prompt, is_message);
        }
    }
}

impl EntryBuilder<'_> {
    fn push(&mut self, content: EntryContent) {
        let Self { line, at, has_own_id, is_answer, .. } = *self;
        let is_subagent = self.is_subagent || self.transcript.is_subagent;
        let id = self.id.clone();
        let mut entry = TranscriptEntry {
            line,
            id,
            has_own_id,
            at,
            is_subagent,
            is_answer,
            content: EntryContent::Injected,
            own_words: None,
        };
        entry.set_content(content);
        self.transcript.entries.push(entry);
    }

    /// Adds a kind of line that is not read.
    fn add_unknown(&mut self, kind: &str) {
        let kind = truncate(kind, 80);
        *self.transcript.anomalies.unread.entry(kind.clone()).or_default() += 1;
        self.push(EntryContent::Other(kind));
    }

    /// Adds the text of a user message.
    fn add_user_text(&mut self, text: &str) {
        for content in user_text::split_user_text(text) {
            self.push(content);
        }
    }

    /// Adds a message of the agent.
    fn add_assistant_text(&mut self, text: &str) {
        let (text, was_cut) = user_text::strip_injected(text);
        if was_cut {
            self.push(EntryContent::Injected);
        }
        let text = own_words::trim_message(&text);
        if !text.is_empty() {
            self.push(EntryContent::Assistant(text.to_owned()));
        }
    }

    /// Adds the user's answers to questions of the agent: each question, its answer, and a note.
    fn add_answers(&mut self, answers: &[(String, String, String)]) {
        let line = |(question, answer, note): &(String, String, String)| {
            let own = |it: &str| own_words::own_words(it).unwrap_or_else(|| it.to_owned());
            let parts = [question, answer, note].map(|it| cited_summary::one_line(&own(it)));
            let parts: Vec<String> = parts.into_iter().filter(|it| !it.is_empty()).collect();
            parts.join(" ")
        };
        let lines: Vec<String> =
            answers.iter().filter(|it| !it.1.trim().is_empty()).map(line).collect();
        if !lines.is_empty() {
            self.is_answer = true;
            self.push(EntryContent::User(lines.join("\n")));
            self.is_answer = false;
        }
    }

    /// Adds a call. A call without an id gets one, which its result will use.
    fn add_call(&mut self, id: Option<&str>, name: &str, input: &Value) {
        let id = id.filter(|it| !it.is_empty()).map_or_else(
            || {
                let id = format!("{}/{}", self.line, self.transcript.entries.len());
                self.unnamed_calls.push(id.clone());
                id
            },
            str::to_owned,
        );
        let call = ToolUse::new(id, name, input);
        if call.kind == ToolKind::Memory {
            self.memory_calls.insert(call.id.clone());
        }
        let questions = input.get("questions").and_then(Value::as_array);
        if let Some(questions) = questions.filter(|_| ASKING_TOOLS.contains(&name)) {
            let field =
                |it: &Value, key: &str| string_field(it, key).unwrap_or_default().to_owned();
            let questions = questions.iter().map(|it| (field(it, "id"), field(it, "question")));
            self.questions.insert(call.id.clone(), questions.collect());
        }
        self.push(EntryContent::Call(call));
    }

    /// Adds a call in the form of a content block.
    fn add_call_block(&mut self, block: &Value) {
        let name = string_field(block, "name").unwrap_or_default();
        self.add_call(string_field(block, "id"), name, block.get("input").unwrap_or(&Value::Null));
    }

    /// Adds a result in the form of a content block.
    fn add_result_block(&mut self, block: &Value) {
        let is_error = block.get("is_error").and_then(Value::as_bool) == Some(true);
        let text = claude::content_text(block.get("content"));
        self.add_result(string_field(block, "tool_use_id"), &text, is_error);
    }

    fn add_result(&mut self, call: Option<&str>, text: &str, is_error: bool) {
        let call = call.filter(|it| !it.is_empty()).map(str::to_owned);
        let next_unnamed =
            |list: &mut Vec<String>| if list.is_empty() { None } else { Some(list.remove(0)) };
        let call = call.or_else(|| next_unnamed(self.unnamed_calls)).unwrap_or_default();
        if self.memory_calls.contains(&call) {
            return self.push(EntryContent::Injected);
        }
        let bytes = text.len();
        let (text, was_cut) = user_text::strip_injected_output(text);
        if was_cut {
            self.push(EntryContent::Injected);
        }
        let text = truncate_middle(text.trim_end(), RESULT_CHARS_MAX);
        self.push(EntryContent::Result(ToolOutput { call, text, bytes, is_error }));
    }
}

impl TranscriptEntry {
    fn set_content(&mut self, content: EntryContent) {
        let text = match &content {
            EntryContent::Assistant(text) => Some(&text[..]),
            content => content.user_words(),
        };
        self.own_words = text.and_then(own_words::own_words).map(String::into_boxed_str);
        self.content = content;
    }

    /// Returns the words of a message that its writer did not quote, show as code, or strike out.
    pub fn own_words(&self) -> Option<&str> {
        let text = match &self.content {
            EntryContent::Assistant(text) => Some(&text[..]),
            content => content.user_words(),
        };
        text.map(|it| self.own_words.as_deref().unwrap_or(it))
    }
}

impl EntryContent {
    /// Returns whether it is a message of the user or the agent.
    pub fn is_message(&self) -> bool {
        matches!(self, Self::Assistant(_)) || self.user_words().is_some()
    }

    /// Returns the user's own words: a message, a command with an argument, or a command for the shell.
    pub fn user_words(&self) -> Option<&str> {
        match self {
            Self::User(text) => Some(text),
            Self::Command(text) => user_text::is_request(text).then_some(text),
            _ => None,
        }
    }
}

impl Transcript {
    /// Returns the entries of the session's own agent.
    pub fn own_entries(&self) -> impl DoubleEndedIterator<Item = &TranscriptEntry> {
        self.entries.iter().filter(|it| !it.is_subagent)
    }

    /// Returns the first and the last time of any entry.
    pub fn time_span(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let first = self.entries.iter().filter_map(|it| it.at).min()?;
        let last = self.entries.iter().filter_map(|it| it.at).max()?;
        Some((first, last))
    }

    /// Returns the id of the last line that copies of the session contain, too.
    pub fn last_line(&self) -> Option<&str> {
        let last = self.entries.iter().rev().find(|it| it.has_own_id);
        last.or(self.entries.last()).map(|it| &it.id[..])
    }

    /// Returns the part after the line with this id; `None` if there is no such line.
    pub fn after_line(&self, id: &str) -> Option<Self> {
        let at = self.entries.iter().rposition(|it| it.id == id)?;
        Some(self.without_first(at + 1))
    }

    /// Returns the transcript without its first `count` entries.
    pub fn without_first(&self, count: usize) -> Self {
        let entries = self.entries.get(count..).unwrap_or_default().to_vec();
        Self { entries, ..self.without_entries() }
    }

    fn without_entries(&self) -> Self {
        Self {
            format: self.format,
            session: self.session.clone(),
            cwd: self.cwd.clone(),
            branch: self.branch.clone(),
            agent: self.agent.clone(),
            is_subagent: self.is_subagent,
            parent: self.parent.clone(),
            entries: Vec::new(),
            anomalies: self.anomalies.clone(),
        }
    }
}

fn parse_time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    let text = value?.as_str()?;
    DateTime::parse_from_rfc3339(text).ok().map(|it| it.with_timezone(&Utc))
}

/// Returns the string under a key.
fn string_field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}
