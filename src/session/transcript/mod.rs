//! Reads the session files of several agents into one form.
//!
//! A transcript is a file of JSON lines that its agent appends to. It may end within a line, and may
//! contain repeated lines (a resumed or forked session copies earlier ones), lines of other versions,
//! and lines of many megabytes. It is read as a stream and never refused because of one line: unknown
//! lines become [`EntryContent::Other`] or are counted in [`TranscriptAnomalies`].
//!
//! - [`line_reader`]: lines of bounded length.
//! - [`claude`], [`codex`], [`plain`]: the lines of each format.
//! - [`tool`]: the effect of a tool call: files, command, to-do list.
//! - [`user_text`]: separates the user's own text from text that programs inserted.
//!
//! # Invariants
//!
//! - Entries are in the order of the file. All messages of the user are there, in order and complete;
//!   tool results are cut to [`RESULT_CHARS_MAX`].
//! - Text that memoird itself inserted into a session becomes only [`EntryContent::Injected`].

pub mod claude;
pub mod codex;
pub mod line_reader;
pub mod plain;
pub mod tool;
pub mod user_text;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::{self, BufRead},
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use self::{
    line_reader::{BoundedLine, BoundedLines},
    tool::{ToolKind, ToolUse},
};
use crate::memory::hash::ContentHash;

/// The longest tool result, in characters. The start and the end are kept, because errors are at the
/// end.
pub const RESULT_CHARS_MAX: usize = 6_000;

/// How many lines are read to detect the format.
const DETECTION_LINES_MAX: usize = 1_000;

/// The format of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum TranscriptFormat {
    /// `~/.claude/projects/*/*.jsonl`.
    ClaudeCode,
    /// `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// One `{"role": …, "content": …}` to a line.
    Plain,
}

impl TranscriptFormat {
    /// Returns the name that records and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Plain => "plain",
        }
    }

    /// Returns the format of a line, if the line alone shows it.
    pub fn detect(line: &Value) -> Option<Self> {
        let has = |key: &str| line.get(key).is_some();
        let kind = line.get("type").and_then(Value::as_str);
        if has("uuid") || has("sessionId") || has("leafUuid") {
            return kind.map(|_| Self::ClaudeCode);
        }
        if kind == Some("session_meta") || (has("payload") && kind.is_some()) {
            return Some(Self::Codex);
        }
        // The first line of an older rollout has the session's id but no type.
        if has("instructions") && has("id") && has("timestamp") {
            return Some(Self::Codex);
        }
        let is_message = line.get("role").is_some_and(Value::is_string) && has("content");
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
    /// The time.
    pub at: Option<DateTime<Utc>>,
    /// Whether it belongs to an agent that the session's agent started.
    pub is_subagent: bool,
    /// The content.
    pub content: EntryContent,
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
    /// No line has a known format.
    #[error(
        "it contains no line of a session: neither of Claude Code or Codex, nor \
         {{\"role\": …, \"content\": …}}"
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
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            if is_whole {
                anomalies.malformed += 1;
            } else {
                anomalies.is_truncated = true;
            }
            continue;
        };
        let hash = ContentHash::of(bytes);
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
    let mut transcript = reader.ok_or(TranscriptError::Unknown)?.transcript;
    transcript.anomalies.is_truncated = anomalies.is_truncated;
    transcript.anomalies.malformed = anomalies.malformed;
    transcript.anomalies.too_long = anomalies.too_long;
    Ok(transcript)
}

/// The state while a transcript is read.
#[derive(Debug)]
struct TranscriptReader {
    transcript: Transcript,
    /// Ids of the lines so far.
    seen: HashSet<String>,
    /// How often each line without an id occurred.
    copies: HashMap<ContentHash, usize>,
    /// Calls without ids in the file, oldest first.
    unnamed_calls: Vec<String>,
    memory_calls: HashSet<String>,
}

/// Collects the entries of one line for the reader of its format.
#[derive(Debug)]
struct EntryBuilder<'a> {
    transcript: &'a mut Transcript,
    unnamed_calls: &'a mut Vec<String>,
    memory_calls: &'a mut HashSet<String>,
    line: usize,
    id: String,
    at: Option<DateTime<Utc>>,
    is_subagent: bool,
}

impl TranscriptReader {
    fn new(format: TranscriptFormat) -> Self {
        let transcript = Transcript {
            format,
            session: None,
            cwd: None,
            branch: None,
            agent: None,
            entries: Vec::new(),
            anomalies: TranscriptAnomalies::default(),
        };
        let (seen, copies, unnamed_calls, memory_calls) = Default::default();
        Self { transcript, seen, copies, unnamed_calls, memory_calls }
    }

    fn read_line(&mut self, number: usize, hash: ContentHash, value: &Value) {
        let own_id = value.get("uuid").and_then(Value::as_str).filter(|it| !it.is_empty());
        let id = if let Some(id) = own_id {
            id.to_owned()
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
        let mut found = EntryBuilder {
            transcript: &mut self.transcript,
            unnamed_calls: &mut self.unnamed_calls,
            memory_calls: &mut self.memory_calls,
            line: number,
            id,
            at,
            is_subagent: false,
        };
        match format {
            TranscriptFormat::ClaudeCode => claude::read(&mut found, value),
            TranscriptFormat::Codex => codex::read(&mut found, value),
            TranscriptFormat::Plain => plain::read(&mut found, value),
        }
    }
}

impl EntryBuilder<'_> {
    fn push(&mut self, content: EntryContent) {
        let Self { line, at, is_subagent, .. } = *self;
        let id = self.id.clone();
        self.transcript.entries.push(TranscriptEntry { line, id, at, is_subagent, content });
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
        if !text.trim().is_empty() {
            self.push(EntryContent::Assistant(text.trim().to_owned()));
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

    /// Returns the part after the line with this id; `None` if there is no such line.
    pub fn after_line(&self, id: &str) -> Option<Self> {
        let at = self.entries.iter().rposition(|it| it.id == id)?;
        let entries = self.entries[at + 1..].to_vec();
        Some(Self { entries, ..self.without_entries() })
    }

    fn without_entries(&self) -> Self {
        Self {
            format: self.format,
            session: self.session.clone(),
            cwd: self.cwd.clone(),
            branch: self.branch.clone(),
            agent: self.agent.clone(),
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

/// Returns the first characters of a text, with `…` if it is longer.
pub(crate) fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Returns the start and the end of a text, with a note on what was left out between them.
pub(crate) fn truncate_middle(text: &str, chars_max: usize) -> String {
    if text.len() <= chars_max {
        return text.to_owned();
    }
    let count = text.chars().count();
    if count <= chars_max {
        return text.to_owned();
    }
    let half = chars_max / 2;
    let at = |nth: usize| text.char_indices().nth(nth).map_or(text.len(), |it| it.0);
    let (head, tail) = (&text[..at(half)], &text[at(count - half)..]);
    let left_out = count - 2 * half;
    format!("{}\n[… {left_out} characters left out …]\n{}", head.trim_end(), tail.trim_start())
}
