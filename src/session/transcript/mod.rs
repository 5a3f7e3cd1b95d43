//! The files that agents keep of a session, read into one form.
//!
//! A transcript is a file of JSON lines that its agent appends to. It may end in half a line, hold
//! lines twice (a session that is resumed or forked copies what came before), lines of other
//! versions, and lines of many megabytes. Whatever it holds, it is read as a stream and never
//! refused for one line: what is not understood is kept as [`What::Other`] or counted in
//! [`Oddities`].
//!
//! - [`lines`]: lines of bounded length.
//! - [`claude`], [`codex`], [`plain`]: what a line of each format says.
//! - [`tool`]: what a call of a tool does: the files, the command, the list.
//! - [`said`]: what of a text is the person's, and what was put into it on the way.
//!
//! # Invariants
//!
//! - Entries stand in the order of the file. The messages of a person are as many as the file has,
//!   in their order, and whole; outputs of tools are cut to [`RESULT_CHARS_MAX`].
//! - What memoird itself had put into a session is no entry but [`What::Injected`].

pub mod claude;
pub mod codex;
pub mod lines;
pub mod plain;
pub mod said;
pub mod tool;

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    io::{self, BufRead},
};

use chrono::{DateTime, Utc};
use serde_json::Value;

use self::{
    lines::{Line, Lines},
    tool::{Call, ToolKind},
};
use crate::memory::hash::ContentHash;

/// So much is kept of what a tool returned: the beginning and, since errors stand there, the end.
pub const RESULT_CHARS_MAX: usize = 6_000;

/// So many lines are read to find out what wrote the file.
const UNDECIDED_LINES_MAX: usize = 1_000;

/// What wrote a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// `~/.claude/projects/*/*.jsonl`.
    ClaudeCode,
    /// `~/.codex/sessions/**/rollout-*.jsonl`.
    Codex,
    /// One `{"role": …, "content": …}` to a line.
    Plain,
}

impl Format {
    /// Returns the name that records and JSON use.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Plain => "plain",
        }
    }

    /// Tells what wrote a line, if the line alone can tell.
    pub fn of_line(line: &Value) -> Option<Self> {
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
    pub format: Format,
    /// The session's id, where the file says one.
    pub session: Option<String>,
    /// The last folder that the agent worked in.
    pub cwd: Option<String>,
    /// The last branch that it worked on.
    pub branch: Option<String>,
    /// The agent and its version, where the file says so.
    pub agent: Option<String>,
    /// What happened, in the order of the file.
    pub entries: Vec<Entry>,
    /// What was not read as it stands.
    pub oddities: Oddities,
}

/// One thing that happened. A line may hold several.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The line of the file, from 1.
    pub line: usize,
    /// What tells the line from all others, in this transcript and in copies of it.
    pub id: String,
    /// When.
    pub at: Option<DateTime<Utc>>,
    /// Whether it belongs to an agent that the session's agent started.
    pub is_side: bool,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A person wrote it: whole, as it was written.
    User(String),
    /// A command of the agent's program that a person typed: `/compact`, `!ls`.
    Command(String),
    /// The agent wrote it.
    Assistant(String),
    /// The agent called a tool.
    Call(Call),
    /// A tool returned.
    Result(ToolResult),
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
pub struct ToolResult {
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
pub struct Oddities {
    /// Whether the last line is cut off: it is still being written, or never was.
    pub is_torn: bool,
    /// Lines that are no JSON.
    pub broken: usize,
    /// Lines longer than [`lines::LINE_BYTES_MAX`].
    pub too_long: usize,
    /// Lines that stood there before.
    pub doubles: usize,
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
pub fn read(input: impl BufRead, format: Option<Format>) -> Result<Transcript, TranscriptError> {
    let mut lines = Lines::new(input);
    let mut reading = format.map(Reading::new);
    let mut undecided: Vec<(usize, ContentHash, Value)> = Vec::new();
    let mut oddities = Oddities::default();
    loop {
        let number = lines.number() + 1;
        let line = lines.next_line();
        let line = line.map_err(|source| TranscriptError::Io { line: number, source })?;
        let (bytes, is_whole) = match line {
            None => break,
            Some(Line::TooLong) => {
                oddities.too_long += 1;
                continue;
            }
            Some(Line::Text { bytes, is_whole }) => (bytes, is_whole),
        };
        if bytes.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
            if is_whole {
                oddities.broken += 1;
            } else {
                oddities.is_torn = true;
            }
            continue;
        };
        let hash = ContentHash::of(bytes);
        if let Some(reading) = &mut reading {
            reading.line(number, hash, &value);
            continue;
        }
        let found = Format::of_line(&value);
        undecided.push((number, hash, value));
        if found.is_none() && undecided.len() < UNDECIDED_LINES_MAX {
            continue;
        }
        let format = found.ok_or(TranscriptError::Unknown)?;
        let reading = reading.insert(Reading::new(format));
        for (number, hash, value) in undecided.drain(..) {
            reading.line(number, hash, &value);
        }
    }
    let mut transcript = reading.ok_or(TranscriptError::Unknown)?.transcript;
    transcript.oddities.is_torn = oddities.is_torn;
    transcript.oddities.broken = oddities.broken;
    transcript.oddities.too_long = oddities.too_long;
    Ok(transcript)
}

/// A transcript that is being read.
#[derive(Debug)]
struct Reading {
    transcript: Transcript,
    /// Ids of the lines so far.
    seen: HashSet<String>,
    /// How often a line without an id stood there.
    copies: HashMap<ContentHash, usize>,
    /// Calls whose ids the file does not say, oldest first.
    nameless: Vec<String>,
    /// Calls that asked memoird.
    asked_us: HashSet<String>,
}

/// One line as its format's reader sees it, and where it puts what it finds.
#[derive(Debug)]
struct Found<'a> {
    transcript: &'a mut Transcript,
    nameless: &'a mut Vec<String>,
    asked_us: &'a mut HashSet<String>,
    line: usize,
    id: String,
    at: Option<DateTime<Utc>>,
    is_side: bool,
}

impl Reading {
    fn new(format: Format) -> Self {
        let transcript = Transcript {
            format,
            session: None,
            cwd: None,
            branch: None,
            agent: None,
            entries: Vec::new(),
            oddities: Oddities::default(),
        };
        let (seen, copies, nameless, asked_us) = Default::default();
        Self { transcript, seen, copies, nameless, asked_us }
    }

    fn line(&mut self, number: usize, hash: ContentHash, value: &Value) {
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
            self.transcript.oddities.doubles += 1;
            return;
        }
        let at = time(value.get("timestamp"));
        let format = self.transcript.format;
        let mut found = Found {
            transcript: &mut self.transcript,
            nameless: &mut self.nameless,
            asked_us: &mut self.asked_us,
            line: number,
            id,
            at,
            is_side: false,
        };
        match format {
            Format::ClaudeCode => claude::read(&mut found, value),
            Format::Codex => codex::read(&mut found, value),
            Format::Plain => plain::read(&mut found, value),
        }
    }
}

impl Found<'_> {
    fn push(&mut self, what: What) {
        let Self { line, at, is_side, .. } = *self;
        let id = self.id.clone();
        self.transcript.entries.push(Entry { line, id, at, is_side, what });
    }

    /// Keeps a kind of line that is not read.
    fn unread(&mut self, kind: &str) {
        let kind = cut(kind, 80);
        *self.transcript.oddities.unread.entry(kind.clone()).or_default() += 1;
        self.push(What::Other(kind));
    }

    /// Keeps what stands as words of a person.
    fn user(&mut self, text: &str) {
        for what in said::by_user(text) {
            self.push(what);
        }
    }

    /// Keeps words of the agent.
    fn assistant(&mut self, text: &str) {
        let (text, was_cut) = said::without_injected(text);
        if was_cut {
            self.push(What::Injected);
        }
        if !text.trim().is_empty() {
            self.push(What::Assistant(text.trim().to_owned()));
        }
    }

    /// Keeps a call. One without an id gets a name that its result finds.
    fn call(&mut self, id: Option<&str>, name: &str, input: &Value) {
        let id = id.filter(|it| !it.is_empty()).map_or_else(
            || {
                let id = format!("{}/{}", self.line, self.transcript.entries.len());
                self.nameless.push(id.clone());
                id
            },
            str::to_owned,
        );
        let call = Call::new(id, name, input);
        if call.kind == ToolKind::Memory {
            self.asked_us.insert(call.id.clone());
        }
        self.push(What::Call(call));
    }

    fn result(&mut self, call: Option<&str>, text: &str, is_error: bool) {
        let call = call.filter(|it| !it.is_empty()).map(str::to_owned);
        let nameless =
            |list: &mut Vec<String>| if list.is_empty() { None } else { Some(list.remove(0)) };
        let call = call.or_else(|| nameless(self.nameless)).unwrap_or_default();
        if self.asked_us.contains(&call) {
            return self.push(What::Injected);
        }
        let bytes = text.len();
        let (text, was_cut) = said::without_injected_output(text);
        if was_cut {
            self.push(What::Injected);
        }
        let text = cut_middle(text.trim_end(), RESULT_CHARS_MAX);
        self.push(What::Result(ToolResult { call, text, bytes, is_error }));
    }
}

impl Transcript {
    /// Returns the entries of the session's own agent.
    pub fn own(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().filter(|it| !it.is_side)
    }

    /// Returns when the first and the last thing happened that has a time.
    pub fn span(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        let first = self.entries.iter().filter_map(|it| it.at).min()?;
        let last = self.entries.iter().filter_map(|it| it.at).max()?;
        Some((first, last))
    }

    /// Returns what comes after the last entry of the line with that id, if there is one.
    pub fn after(&self, id: &str) -> Option<Self> {
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
            oddities: self.oddities.clone(),
        }
    }
}

/// Reads a time as the formats write it.
fn time(value: Option<&Value>) -> Option<DateTime<Utc>> {
    let text = value?.as_str()?;
    DateTime::parse_from_rfc3339(text).ok().map(|it| it.with_timezone(&Utc))
}

/// Returns the string under a key.
fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key)?.as_str()
}

/// Returns the first characters of a text.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
    }
}

/// Returns the beginning and the end of a text, with a word on what is left out between them.
pub(crate) fn cut_middle(text: &str, chars_max: usize) -> String {
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
