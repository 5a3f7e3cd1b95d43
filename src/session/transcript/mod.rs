//! The files that agents keep of a session, read into one form.
//!
//! A transcript is a file of JSON lines that its agent appends to. It may end in half a line, hold
//! lines twice (a session that is resumed or forked copies what came before), lines of other
//! versions, and lines of many megabytes. Whatever it holds, it is read as a stream and never
//! refused for one line: what is not understood is kept as [`EntryContent::Other`] or counted in
//! [`TranscriptAnomalies`].
//!
//! - [`line_reader`]: lines of bounded length.
//! - [`claude`], [`codex`], [`plain`]: what a line of each format says.
//! - [`tool`]: what a call of a tool does: the files, the command, the list.
//! - [`user_text`]: what of a text is the person's, and what was put into it on the way.
//!
//! # Invariants
//!
//! - Entries stand in the order of the file. The messages of a person are as many as the file has,
//!   in their order, and whole; outputs of tools are cut to [`RESULT_CHARS_MAX`].
//! - What memoird itself had put into a session is no entry but [`EntryContent::Injected`].

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

/// So much is kept of what a tool returned: the beginning and, since errors stand there, the end.
pub const RESULT_CHARS_MAX: usize = 6_000;

/// So many lines are read to find out what wrote the file.
const DETECTION_LINES_MAX: usize = 1_000;

/// What wrote a transcript.
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

    /// Tells what wrote a line, if the line alone can tell.
    pub fn detect(line: &Value) -> Option<Self> {
        let has = |key: &str| line.get(key).is_some();
        let kind = line.get("type").and_then(Value::as_str);
        if has("uuid") || has("sessionId") || has("leafUuid") {
            return kind.map(|_| Self::ClaudeCode);
        }
        if kind == Some("session_meta") || (has("payload") && kind.is_some()) {
            return Some(Self::Codex);
        }
        // The first line of an older rollout has the session's id, and no kind.
        if has("instructions") && has("id") && has("timestamp") {
            return Some(Self::Codex);
        }
        let is_message = line.get("role").is_some_and(Value::is_string) && has("content");
        (is_message && kind.is_none_or(|it| it == "message")).then_some(Self::Plain)
    }
}

/// A session as its transcript tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct Transcript {
    /// What wrote it.
    pub format: TranscriptFormat,
    /// The session's id, where the file says one.
    pub session: Option<String>,
    /// The last folder that the agent worked in.
    pub cwd: Option<String>,
    /// The last branch that it worked on.
    pub branch: Option<String>,
    /// The agent and its version, where the file says so.
    pub agent: Option<String>,
    /// What happened, in the order of the file.
    pub entries: Vec<TranscriptEntry>,
    /// What was not read as it stands.
    pub anomalies: TranscriptAnomalies,
}

/// One thing that happened. A line may hold several.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptEntry {
    /// The line of the file, from 1.
    pub line: usize,
    /// What tells the line from all others, in this transcript and in copies of it.
    pub id: String,
    /// When.
    pub at: Option<DateTime<Utc>>,
    /// Whether it belongs to an agent that the session's agent started.
    pub is_subagent: bool,
    /// What.
    pub content: EntryContent,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryContent {
    /// A person wrote it: whole, as it was written.
    User(String),
    /// A command of the agent's program that a person typed: `/compact`, `!ls`.
    Command(String),
    /// The agent wrote it.
    Assistant(String),
    /// The agent called a tool.
    Call(ToolUse),
    /// A tool returned.
    Result(ToolOutput),
    /// What stands above was taken out of the agent's sight; what it was, is said by `trigger`.
    Boundary {
        /// `manual`, `auto`, or what else the file says.
        trigger: Option<String>,
        /// How many tokens it had seen.
        tokens_before: Option<u64>,
    },
    /// A summary that the agent's program put in the place of what stood above.
    Summary(String),
    /// A text that a program put into the session: a reminder, an output of a hook, a notice.
    Notice(String),
    /// What memoird had put into the session. It says nothing new.
    Injected,
    /// A kind of line that is not read, by its name.
    Other(String),
}

/// What a tool returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// The id of the call.
    pub call: String,
    /// What it returned, cut to [`RESULT_CHARS_MAX`].
    pub text: String,
    /// How many bytes it returned.
    pub bytes: usize,
    /// Whether it failed.
    pub is_error: bool,
}

/// What was not read as it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptAnomalies {
    /// Whether the last line is cut off: it is still being written, or never was.
    pub is_truncated: bool,
    /// Lines that are no JSON.
    pub malformed: usize,
    /// Lines longer than [`line_reader::LINE_BYTES_MAX`].
    pub too_long: usize,
    /// Lines that stood there before.
    pub duplicates: usize,
    /// Kinds of lines that are not read, and how many of each.
    pub unread: BTreeMap<String, usize>,
}

/// A file that is no transcript.
#[derive(Debug, thiserror::Error)]
pub enum TranscriptError {
    /// The system refused.
    #[error("the transcript cannot be read at line {line}")]
    Io {
        /// The line that was to be read.
        line: usize,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No line of it is one of a session.
    #[error(
        "it holds no line of a session: neither one of Claude Code or Codex, nor \
         {{\"role\": …, \"content\": …}}"
    )]
    Unknown,
}

/// Reads a transcript to its end. `format` is found out where it is not given.
///
/// # Errors
///
/// Returns [`TranscriptError`] when the file cannot be read, or holds nothing of a session.
pub fn read(
    input: impl BufRead,
    format: Option<TranscriptFormat>,
) -> Result<Transcript, TranscriptError> {
    let mut lines = BoundedLines::new(input);
    let mut reading = format.map(TranscriptReader::new);
    let mut undecided: Vec<(usize, ContentHash, Value)> = Vec::new();
    let mut oddities = TranscriptAnomalies::default();
    loop {
        let number = lines.number() + 1;
        let line = lines.next_line();
        let line = line.map_err(|source| TranscriptError::Io { line: number, source })?;
        let (bytes, is_whole) = match line {
            None => break,
            Some(BoundedLine::TooLong) => {
                oddities.too_long += 1;
                continue;
            }
            Some(BoundedLine::Text { bytes, is_complete: is_whole }) => (bytes, is_whole),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            if is_whole {
                oddities.malformed += 1;
            } else {
                oddities.is_truncated = true;
            }
            continue;
        };
        let hash = ContentHash::of(bytes);
        if let Some(reading) = &mut reading {
            reading.read_line(number, hash, &value);
            continue;
        }
        let found = TranscriptFormat::detect(&value);
        undecided.push((number, hash, value));
        if found.is_none() && undecided.len() < DETECTION_LINES_MAX {
            continue;
        }
        let format = found.ok_or(TranscriptError::Unknown)?;
        let reading = reading.insert(TranscriptReader::new(format));
        for (number, hash, value) in undecided.drain(..) {
            reading.read_line(number, hash, &value);
        }
    }
    let mut transcript = reading.ok_or(TranscriptError::Unknown)?.transcript;
    transcript.anomalies.is_truncated = oddities.is_truncated;
    transcript.anomalies.malformed = oddities.malformed;
    transcript.anomalies.too_long = oddities.too_long;
    Ok(transcript)
}

/// A transcript that is being read.
#[derive(Debug)]
struct TranscriptReader {
    transcript: Transcript,
    /// Ids of the lines so far.
    seen: HashSet<String>,
    /// How often a line without an id stood there.
    copies: HashMap<ContentHash, usize>,
    /// Calls whose ids the file does not say, oldest first.
    unnamed_calls: Vec<String>,
    /// Calls that asked memoird.
    memory_calls: HashSet<String>,
}

/// One line as its format's reader sees it, and where it puts what it finds.
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
        let (seen, copies, nameless, asked_us) = Default::default();
        Self { transcript, seen, copies, unnamed_calls: nameless, memory_calls: asked_us }
    }

    fn read_line(&mut self, number: usize, hash: ContentHash, value: &Value) {
        let own_id = value.get("uuid").and_then(Value::as_str).filter(|it| !it.is_empty());
        let id = if let Some(id) = own_id {
            id.to_owned()
        } else {
            // A copy of the session has the same lines in the same order.
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
    fn push(&mut self, what: EntryContent) {
        let Self { line, at, is_subagent: is_side, .. } = *self;
        let id = self.id.clone();
        self.transcript.entries.push(TranscriptEntry {
            line,
            id,
            at,
            is_subagent: is_side,
            content: what,
        });
    }

    /// Keeps a kind of line that is not read.
    fn add_unknown(&mut self, kind: &str) {
        let kind = truncate(kind, 80);
        *self.transcript.anomalies.unread.entry(kind.clone()).or_default() += 1;
        self.push(EntryContent::Other(kind));
    }

    /// Keeps what stands as words of a person.
    fn add_user_text(&mut self, text: &str) {
        for what in user_text::split_user_text(text) {
            self.push(what);
        }
    }

    /// Keeps words of the agent.
    fn add_assistant_text(&mut self, text: &str) {
        let (text, was_cut) = user_text::strip_injected(text);
        if was_cut {
            self.push(EntryContent::Injected);
        }
        if !text.trim().is_empty() {
            self.push(EntryContent::Assistant(text.trim().to_owned()));
        }
    }

    /// Keeps a call. One without an id gets a name that its result finds.
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

    fn add_result(&mut self, call: Option<&str>, text: &str, is_error: bool) {
        let call = call.filter(|it| !it.is_empty()).map(str::to_owned);
        let nameless =
            |list: &mut Vec<String>| if list.is_empty() { None } else { Some(list.remove(0)) };
        let call = call.or_else(|| nameless(self.unnamed_calls)).unwrap_or_default();
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

    /// Returns when the first and the last thing happened that has a time.
    pub fn time_span(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let first = self.entries.iter().filter_map(|it| it.at).min()?;
        let last = self.entries.iter().filter_map(|it| it.at).max()?;
        Some((first, last))
    }

    /// Returns what comes after the last entry of the line with that id, if there is one.
    pub fn after_line(&self, id: &str) -> Option<Self> {
        let at = self.entries.iter().rposition(|it| it.id == id)?;
        let entries = self.entries[at + 1..].to_vec();
        Some(Self { entries, ..self.without_entries() })
    }

    /// Returns the part that lies between two times; what has no time goes with what is before it.
    pub fn between(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> Self {
        let mut last = self.entries.iter().find_map(|it| it.at);
        let mut entries = Vec::new();
        for entry in &self.entries {
            last = entry.at.or(last);
            if last.is_none_or(|it| from <= it && it < until) {
                entries.push(entry.clone());
            }
        }
        Self { entries, ..self.without_entries() }
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

/// Reads a time as the formats write it.
fn parse_time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    let text = value?.as_str()?;
    DateTime::parse_from_rfc3339(text).ok().map(|it| it.with_timezone(&Utc))
}

/// Returns the string under a key.
fn string_field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Returns the first characters of a text.
pub(crate) fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Returns the beginning and the end of a text, with a word on what is left out between them.
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
