//! The content of a session, from its structure: messages, files, commands, failures, the plan.
//!
//! Pure, and without a model. Every summary is based on it, with or without a model. Only the
//! session's own agent counts; the work of its subagents comes back to it as results.

use std::collections::HashMap;

use super::{
    message_lines::{MessageLine, is_label_end, message_lines},
    sentences::{UserOrder, split_sentences, user_order},
    transcript::{
        EntryContent, Transcript, TranscriptEntry,
        tool::{TodoChange, TodoItem, TodoState, ToolKind, ToolUse},
    },
};
use crate::engine::extractive::sentence_class::{self, ClassifiedSentence, StatementClass};

/// A longer sentence is a list or pasted text, not a statement.
const SENTENCE_CHARS_MAX: usize = 400;

/// The content of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionDigest<'a> {
    /// The messages of the user, in order: all of them, word for word.
    pub messages: Vec<Utterance<'a>>,
    /// The messages of the agent, in order.
    pub replies: Vec<Utterance<'a>>,
    /// The files that were read or changed, in the order of their first use.
    pub files: Vec<FileUse>,
    /// The commands that were run, in order.
    pub commands: Vec<CommandRun<'a>>,
    /// The calls that failed, in order, each with what followed.
    pub failures: Vec<FailedCall<'a>>,
    /// The plan.
    pub plan: Option<SessionPlan<'a>>,
    /// Decisions.
    pub decisions: Vec<SessionStatement<'a>>,
    /// What the user says about how things are.
    pub facts: Vec<SessionStatement<'a>>,
    /// Results of the agent's work.
    pub outcomes: Vec<SessionStatement<'a>>,
    /// Open items.
    pub open: Vec<SessionStatement<'a>>,
    /// The agent's last call, and whether it failed.
    pub last_call: Option<(EntryIndex, &'a ToolUse, Option<bool>)>,
}

/// The index of an entry in the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryIndex(pub usize);

/// A message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Utterance<'a> {
    /// Its entry.
    pub at: EntryIndex,
    /// The whole text.
    pub text: &'a str,
    /// The text without quotes, code, and struck-out text, which may be empty.
    pub own: &'a str,
}

/// The use of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// The path, absolute if the session's folder is known.
    pub path: String,
    /// How often it was read.
    pub reads: usize,
    /// How often it was changed.
    pub changes: usize,
    /// Whether its first use wrote the whole file, so that it is probably new.
    pub is_new: bool,
    /// The entry of the last change, else of the last use.
    pub last: EntryIndex,
}

/// A command that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRun<'a> {
    /// Its entry.
    pub at: EntryIndex,
    /// The command.
    pub command: &'a str,
    /// Whether it failed; `None` without a result.
    pub failed: Option<bool>,
}

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailedCall<'a> {
    /// The entry of the call, or of the result if there is no call.
    pub call_at: EntryIndex,
    /// The entry of the result.
    pub at: EntryIndex,
    /// The call.
    pub call: Option<&'a ToolUse>,
    /// What it returned.
    pub text: &'a str,
    /// What came next.
    pub follow_up: FollowUp<'a>,
}

/// What followed a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowUp<'a> {
    /// The same call succeeded later.
    Resolved {
        /// The entry of the success.
        at: EntryIndex,
        /// The first message after the failure.
        words: Option<(EntryIndex, &'a str)>,
    },
    /// The user wrote a message.
    Corrected(EntryIndex, &'a str),
    /// The agent wrote a message.
    Replied(EntryIndex, &'a str),
    /// The agent made another call.
    Called(EntryIndex, &'a ToolUse),
    /// Nothing: the session ended.
    SessionEnded,
}

/// The plan of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPlan<'a> {
    /// The last state of the to-do list.
    Todo {
        /// The entry of its last change.
        at: EntryIndex,
        /// Its items.
        list: Vec<TodoItem>,
    },
    /// A plan that was shown to the user.
    Shown {
        /// Its entry.
        at: EntryIndex,
        /// The whole plan.
        text: &'a str,
    },
}

/// A sentence with a statement, or an item of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionStatement<'a> {
    /// Its entry.
    pub at: EntryIndex,
    /// The sentence.
    pub text: &'a str,
    /// Whether the user wrote it.
    pub is_person: bool,
    /// Whether it contains a reason.
    pub has_reason: bool,
    /// Its form.
    pub form: SessionStatementForm,
}

/// The form of a statement in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionStatementForm {
    /// A sentence.
    Sentence,
    /// An item of a list, which shows what it is.
    Item,
    /// A request that only gives something a value: `Raise the limit to 90`.
    Setting,
}

/// State while a transcript is read.
#[derive(Debug, Default)]
struct DigestState<'c> {
    cwd: Option<&'c str>,
    /// The index of each file in the digest.
    files: HashMap<String, usize>,
    todos: Vec<TodoItem>,
    todo_at: Option<EntryIndex>,
}

impl<'a> SessionDigest<'a> {
    /// Returns the digest of a transcript.
    pub fn of(transcript: &'a Transcript) -> Self {
        let mut digest = Self::default();
        let own: Vec<(EntryIndex, &TranscriptEntry)> = transcript
            .entries
            .iter()
            .enumerate()
            .filter(|(_, it)| !it.is_subagent)
            .map(|(at, it)| (EntryIndex(at), it))
            .collect();
        let results = call_results(&own);
        let mut state = DigestState { cwd: transcript.cwd.as_deref(), ..DigestState::default() };
        for &(at, entry) in &own {
            let own = entry.own_words().unwrap_or_default();
            match &entry.content {
                EntryContent::User(text) if entry.is_answer => {
                    digest.messages.push(Utterance { at, text, own });
                    digest.add_answers(at, own);
                }
                EntryContent::User(text) => {
                    digest.messages.push(Utterance { at, text, own });
                    digest.add_statements(at, own, true);
                }
                EntryContent::Command(text) if entry.content.user_words().is_some() => {
                    digest.messages.push(Utterance { at, text, own });
                    if !text.starts_with('!') {
                        digest.add_statements(at, own, true);
                    }
                }
                EntryContent::Assistant(text) => {
                    digest.replies.push(Utterance { at, text, own });
                    digest.add_statements(at, own, false);
                }
                EntryContent::Call(call) => {
                    let failed = results.get(&call.id[..]).map(|it| it.1);
                    digest.add_call(at, call, failed, &mut state);
                }
                _ => {}
            }
        }
        if let Some(at) = state.todo_at {
            digest.plan = Some(SessionPlan::Todo { at, list: state.todos });
        }
        digest.failures = failed_calls(&own);
        digest
    }

    fn add_call(
        &mut self,
        at: EntryIndex,
        call: &'a ToolUse,
        failed: Option<bool>,
        state: &mut DigestState<'_>,
    ) {
        self.last_call = Some((at, call, failed));
        if let Some(command) = call.command.as_deref().filter(|_| call.kind == ToolKind::Shell) {
            self.commands.push(CommandRun { at, command, failed });
        }
        let changes = call.kind.changes_files();
        // A failed change changed nothing.
        let counts = !(changes && failed == Some(true));
        if (changes || call.kind == ToolKind::Read) && counts {
            for file in &call.files {
                let path = absolute(file, state.cwd);
                self.add_file_use(at, path, call.kind, state);
            }
        }
        if let Some(change) = &call.todo {
            change.apply(&mut state.todos);
            let is_left = !state.todos.is_empty();
            state.todo_at = is_left.then_some(at);
        }
        if let Some(text) = call.plan.as_deref().filter(|_| failed != Some(true)) {
            self.plan = Some(SessionPlan::Shown { at, text });
        }
    }

    fn add_file_use(
        &mut self,
        at: EntryIndex,
        path: String,
        kind: ToolKind,
        state: &mut DigestState<'_>,
    ) {
        let number = *state.files.entry(path).or_insert_with_key(|path| {
            let (path, is_written) = (path.clone(), kind == ToolKind::Write);
            self.files.push(FileUse { path, reads: 0, changes: 0, is_new: is_written, last: at });
            self.files.len() - 1
        });
        let file = &mut self.files[number];
        let changes = kind.changes_files();
        if changes || file.changes == 0 {
            file.last = at;
        }
        if changes {
            file.changes += 1;
        } else {
            file.reads += 1;
        }
    }

    /// Adds what the user chose.
    fn add_answers(&mut self, at: EntryIndex, text: &'a str) {
        let lines = text.lines().filter(|it| it.chars().count() <= SENTENCE_CHARS_MAX);
        self.decisions.extend(lines.map(|text| SessionStatement {
            at,
            text,
            is_person: true,
            has_reason: false,
            form: SessionStatementForm::Sentence,
        }));
    }

    /// Adds the statements in the own words of a message.
    fn add_statements(&mut self, at: EntryIndex, text: &'a str, is_person: bool) {
        let mut before: Option<SessionStatement<'a>> = None;
        for line in message_lines(text) {
            match line {
                MessageLine::Structure { .. } if !is_person => before = None,
                MessageLine::Item { text, class } if !is_person => {
                    self.add_item(at, text, class, is_person);
                    before = None;
                }
                MessageLine::Item { text, class: class @ StatementClass::Decision } => {
                    self.add_item(at, text, class, is_person);
                    before = self.decisions.last().copied();
                }
                // What a person lists as open is a request, and a heading or a detail of theirs may be an order.
                MessageLine::Item { text, .. }
                | MessageLine::Prose { text }
                | MessageLine::Structure { text } => {
                    for sentence in text.lines().flat_map(|it| split_sentences(it.trim())) {
                        self.add_sentence(at, &sentence, is_person, &mut before);
                    }
                }
            }
        }
    }

    /// Adds an item of a list, whole.
    fn add_item(&mut self, at: EntryIndex, text: &'a str, class: StatementClass, is_person: bool) {
        if text.chars().count() > SENTENCE_CHARS_MAX {
            return;
        }
        let has_reason = text.lines().flat_map(split_sentences).any(|it| it.has_reason);
        let form = SessionStatementForm::Item;
        let statement = SessionStatement { at, text, is_person, has_reason, form };
        match class {
            StatementClass::Decision => self.decisions.push(statement),
            StatementClass::Outcome => self.outcomes.push(statement),
            _ => self.open.push(statement),
        }
    }

    /// Adds a sentence, if it states anything; `before` is the one before it, if that can be remembered.
    fn add_sentence(
        &mut self,
        at: EntryIndex,
        sentence: &ClassifiedSentence<'a>,
        is_person: bool,
        before: &mut Option<SessionStatement<'a>>,
    ) {
        let text = sentence.text;
        if is_person && sentence_class::asks_to_remember(text) {
            let asked = before.take().filter(|it| self.decisions.last() != Some(it));
            self.decisions.extend(asked);
            return;
        }
        if text.chars().count() > SENTENCE_CHARS_MAX || is_label_end(text) {
            *before = None;
            return;
        }
        let order = user_order(sentence).filter(|_| is_person);
        let form = match order {
            Some(UserOrder::Setting) => SessionStatementForm::Setting,
            _ => SessionStatementForm::Sentence,
        };
        let has_reason = sentence.has_reason;
        let statement = SessionStatement { at, text, is_person, has_reason, form };
        *before = Some(statement);
        match sentence.class {
            // What a person orders for good, or as a value, is decided.
            _ if order.is_some() => self.decisions.push(statement),
            StatementClass::Decision => self.decisions.push(statement),
            StatementClass::Outcome if !is_person => self.outcomes.push(statement),
            StatementClass::Open if !is_person => self.open.push(statement),
            _ if is_person && sentence.is_fact => self.facts.push(statement),
            _ => {}
        }
    }

    /// Returns the files that were changed.
    pub fn changed_files(&self) -> impl Iterator<Item = &FileUse> {
        self.files.iter().filter(|it| it.changes > 0)
    }

    /// Returns the files that were only read.
    pub fn read_files(&self) -> impl Iterator<Item = &FileUse> {
        self.files.iter().filter(|it| it.changes == 0)
    }
}

impl TodoChange {
    fn apply(&self, list: &mut Vec<TodoItem>) {
        match self {
            Self::Replaced(new) => list.clone_from(new),
            Self::Added(todo) => list.push(todo.clone()),
            Self::Changed { number, text, state } => {
                let Some(todo) = number.checked_sub(1).and_then(|it| list.get_mut(it)) else {
                    return;
                };
                if let Some(text) = text {
                    todo.text.clone_from(text);
                }
                todo.state = state.unwrap_or(todo.state);
            }
        }
    }
}

impl SessionPlan<'_> {
    /// Returns the plan as text: one line per to-do item, or the plan as it was shown.
    pub fn text(&self) -> String {
        match self {
            Self::Todo { list, .. } => {
                let lines: Vec<String> =
                    list.iter().map(|it| format!("- {} {}", it.state.mark(), it.text)).collect();
                lines.join("\n")
            }
            Self::Shown { text, .. } => (*text).to_owned(),
        }
    }

    /// Returns its entry.
    pub fn at(&self) -> EntryIndex {
        match self {
            Self::Todo { at, .. } | Self::Shown { at, .. } => *at,
        }
    }

    /// Returns the items that are not done.
    pub fn pending(&self) -> Vec<&TodoItem> {
        match self {
            Self::Todo { list, .. } => list
                .iter()
                .filter(|it| matches!(it.state, TodoState::Open | TodoState::InProgress))
                .collect(),
            Self::Shown { .. } => Vec::new(),
        }
    }
}

/// Returns an absolute path, if the session's folder is known. Windows paths are unchanged.
fn absolute(path: &str, cwd: Option<&str>) -> String {
    let drive = path.as_bytes().get(1) == Some(&b':') || path.starts_with("\\\\");
    let path = path.strip_prefix("./").unwrap_or(path);
    match cwd {
        Some(cwd) if !drive && !path.starts_with(['/', '~']) => {
            format!("{}/{path}", cwd.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// Returns the entry of the result of each call, and whether the call failed.
fn call_results<'a>(
    own: &[(EntryIndex, &'a TranscriptEntry)],
) -> HashMap<&'a str, (EntryIndex, bool)> {
    let mut results = HashMap::new();
    for &(at, entry) in own {
        if let EntryContent::Result(result) = &entry.content {
            results.insert(&result.call[..], (at, result.is_error));
        }
    }
    results
}

fn failed_calls<'a>(own: &[(EntryIndex, &'a TranscriptEntry)]) -> Vec<FailedCall<'a>> {
    let mut calls: HashMap<&str, (EntryIndex, &ToolUse)> = HashMap::new();
    let mut failures: Vec<(usize, FailedCall<'a>)> = Vec::new();
    for (index, &(at, entry)) in own.iter().enumerate() {
        match &entry.content {
            EntryContent::Call(call) => drop(calls.insert(&call.id, (at, call))),
            EntryContent::Result(result) if result.is_error => {
                let call = calls.get(&result.call[..]).copied();
                // Results of memoird itself are not part of the session.
                if call.is_some_and(|(_, it)| it.kind == ToolKind::Memory) {
                    continue;
                }
                let call_at = call.map_or(at, |it| it.0);
                let (call, text) = (call.map(|it| it.1), &result.text[..]);
                let follow_up = FollowUp::SessionEnded;
                failures.push((index, FailedCall { call_at, at, call, text, follow_up }));
            }
            _ => {}
        }
    }
    let successes = successful_calls(own);
    let next = next_active(own);
    for (index, failure) in &mut failures {
        failure.follow_up = follow_up(own, *index, failure, &successes, &next);
    }
    failures.into_iter().map(|(_, it)| it).collect()
}

/// Returns the purpose of a call, by which a later call for the same purpose is found.
fn call_purpose(call: &ToolUse) -> Option<(ToolKind, &str)> {
    match call.kind {
        ToolKind::Shell => call.command.as_deref().map(|it| (ToolKind::Shell, it)),
        // After a failed edit, a file may be written instead.
        ToolKind::Edit | ToolKind::Write => Some((ToolKind::Edit, call.files.first()?)),
        ToolKind::Read => Some((ToolKind::Read, call.files.first()?)),
        ToolKind::Web | ToolKind::Search => Some((call.kind, &call.excerpt)),
        _ => None,
    }
}

type CallPurpose<'a> = (ToolKind, &'a str);

/// Returns the results of successful calls of each purpose, ascending.
fn successful_calls<'a>(
    own: &[(EntryIndex, &'a TranscriptEntry)],
) -> HashMap<CallPurpose<'a>, Vec<EntryIndex>> {
    let mut calls: HashMap<&str, (EntryIndex, &ToolUse)> = HashMap::new();
    let mut successes: HashMap<CallPurpose<'a>, Vec<EntryIndex>> = HashMap::new();
    for &(at, entry) in own {
        match &entry.content {
            EntryContent::Call(call) => drop(calls.insert(&call.id, (at, call))),
            EntryContent::Result(result) if !result.is_error => {
                let call = calls.get(&result.call[..]);
                if let Some(purpose) = call.and_then(|it| call_purpose(it.1)) {
                    successes.entry(purpose).or_default().push(at);
                }
            }
            _ => {}
        }
    }
    successes
}

/// Returns for each entry the index of the next message or call, itself included.
fn next_active(own: &[(EntryIndex, &TranscriptEntry)]) -> Vec<Option<usize>> {
    let mut next = vec![None; own.len() + 1];
    for (index, (_, entry)) in own.iter().enumerate().rev() {
        let says = matches!(
            entry.content,
            EntryContent::User(_) | EntryContent::Assistant(_) | EntryContent::Call(_)
        );
        next[index] = if says { Some(index) } else { next[index + 1] };
    }
    next
}

fn follow_up<'a>(
    own: &[(EntryIndex, &'a TranscriptEntry)],
    index: usize,
    failure: &FailedCall<'a>,
    successes: &HashMap<CallPurpose<'a>, Vec<EntryIndex>>,
    next: &[Option<usize>],
) -> FollowUp<'a> {
    let next = next[index + 1].map(|it| own[it]);
    let successes = failure.call.and_then(call_purpose).and_then(|it| successes.get(&it));
    let successes = successes.and_then(|it| it.get(it.partition_point(|at| *at <= failure.at)));
    if let Some(&at) = successes {
        let words = next.and_then(|(at, entry)| match &entry.content {
            EntryContent::Assistant(_) | EntryContent::User(_) => Some((at, entry.own_words()?)),
            _ => None,
        });
        return FollowUp::Resolved { at, words };
    }
    let own = next.and_then(|it| it.1.own_words()).unwrap_or_default();
    match next.map(|(at, entry)| (at, &entry.content)) {
        Some((at, EntryContent::User(_))) => FollowUp::Corrected(at, own),
        Some((at, EntryContent::Assistant(_))) => FollowUp::Replied(at, own),
        Some((at, EntryContent::Call(call))) => FollowUp::Called(at, call),
        _ => FollowUp::SessionEnded,
    }
}
