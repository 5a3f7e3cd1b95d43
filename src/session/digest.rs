//! What a session holds, as far as its structure tells: messages, files, commands, failures, the plan.
//!
//! Pure, and without a model: what is said of a session in the end rests on this, whoever words it.
//! Only the session's own agent counts; what its helpers did comes back to it as a result.

use std::collections::HashMap;

use super::transcript::{
    Entry, Transcript, What,
    tool::{Call, Todo, TodoChange, TodoState, ToolKind},
};
use crate::engine::extractive::told::{self, Tells};

/// A sentence that is longer is no statement but a list or a paste.
const SENTENCE_CHARS_MAX: usize = 400;

/// What a session holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Digest<'a> {
    /// What a person wrote, in order: everything, word for word.
    pub messages: Vec<Said<'a>>,
    /// What the agent wrote, in order.
    pub words: Vec<Said<'a>>,
    /// The files that were read or changed, in the order of their first use.
    pub files: Vec<FileUse>,
    /// The commands that were run, in order.
    pub commands: Vec<Ran<'a>>,
    /// The calls that failed, in order, each with what followed.
    pub failures: Vec<Failure<'a>>,
    /// What is to be done, and where that is from.
    pub plan: Option<Plan<'a>>,
    /// What was decided, with its reason where one is given.
    pub decisions: Vec<Statement<'a>>,
    /// What was reached.
    pub outcomes: Vec<Statement<'a>>,
    /// What is open.
    pub open: Vec<Statement<'a>>,
    /// The agent's last call, and whether it failed.
    pub last_call: Option<(At, &'a Call, Option<bool>)>,
}

/// Where something stands: the number of its entry in the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct At(pub usize);

/// Somebody's words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Said<'a> {
    /// Where.
    pub at: At,
    /// The words, whole.
    pub text: &'a str,
}

/// What was done with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileUse {
    /// The file, absolute where the session's folder is known.
    pub path: String,
    /// How often it was read.
    pub reads: usize,
    /// How often it was changed.
    pub changes: usize,
    /// Whether its first use wrote it whole: it is new, or at least nobody looked.
    pub is_written: bool,
    /// The last change, else the last use.
    pub last: At,
}

/// A command that was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran<'a> {
    /// Where.
    pub at: At,
    /// The command.
    pub command: &'a str,
    /// Whether it failed; `None` where no result is there.
    pub failed: Option<bool>,
}

/// A call that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Where the call stands; the result's place where there is no call.
    pub call_at: At,
    /// Where the result stands.
    pub at: At,
    /// The call.
    pub call: Option<&'a Call>,
    /// What it returned.
    pub text: &'a str,
    /// What came next.
    pub followed: Followed<'a>,
}

/// What came after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed<'a> {
    /// The same was done again, and went well.
    Solved {
        /// Where.
        at: At,
        /// The first words of the agent after the failure.
        words: Option<(At, &'a str)>,
    },
    /// A person said something to it.
    Corrected(At, &'a str),
    /// The agent said something.
    Words(At, &'a str),
    /// The agent did something.
    Did(At, &'a Call),
    /// Nothing: the session ended.
    Nothing,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan<'a> {
    /// The to-do list as it stood last.
    Todo {
        /// Where it was changed last.
        at: At,
        /// Its lines.
        list: Vec<Todo>,
    },
    /// A plan that was shown to the person.
    Shown {
        /// Where.
        at: At,
        /// The plan, whole.
        text: &'a str,
    },
}

/// A sentence that tells something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Where.
    pub at: At,
    /// The sentence.
    pub text: &'a str,
    /// Whether a person said it.
    pub is_person: bool,
    /// Whether it says why.
    pub has_reason: bool,
}

/// What is kept while a transcript is read through.
#[derive(Debug, Default)]
struct Lists<'c> {
    cwd: Option<&'c str>,
    /// The number of each file.
    files: HashMap<String, usize>,
    todos: Vec<Todo>,
    todo_at: Option<At>,
}

impl<'a> Digest<'a> {
    /// Reads a transcript through.
    pub fn of(transcript: &'a Transcript) -> Self {
        let mut digest = Self::default();
        let own: Vec<(At, &Entry)> = transcript
            .entries
            .iter()
            .enumerate()
            .filter(|(_, it)| !it.is_side)
            .map(|(at, it)| (At(at), it))
            .collect();
        let results = results(&own);
        let mut lists = Lists { cwd: transcript.cwd.as_deref(), ..Lists::default() };
        for &(at, entry) in &own {
            match &entry.what {
                What::User(text) => {
                    digest.messages.push(Said { at, text });
                    digest.statements(at, text, true);
                }
                What::Assistant(text) => {
                    digest.words.push(Said { at, text });
                    digest.statements(at, text, false);
                }
                What::Call(call) => {
                    let failed = results.get(&call.id[..]).map(|it| it.1);
                    digest.call(at, call, failed, &mut lists);
                }
                _ => {}
            }
        }
        if let Some(at) = lists.todo_at {
            digest.plan = Some(Plan::Todo { at, list: lists.todos });
        }
        digest.failures = failures(&own);
        digest
    }

    fn call(&mut self, at: At, call: &'a Call, failed: Option<bool>, lists: &mut Lists<'_>) {
        self.last_call = Some((at, call, failed));
        if let Some(command) = call.command.as_deref().filter(|_| call.kind == ToolKind::Shell) {
            self.commands.push(Ran { at, command, failed });
        }
        let changes = call.kind.changes_files();
        // A change that was refused changed nothing.
        let counts = !(changes && failed == Some(true));
        if (changes || call.kind == ToolKind::Read) && counts {
            for file in &call.files {
                let path = absolute(file, lists.cwd);
                self.file(at, path, call.kind, lists);
            }
        }
        if let Some(change) = &call.todo {
            change.apply(&mut lists.todos);
            let is_left = !lists.todos.is_empty();
            lists.todo_at = is_left.then_some(at);
        }
        if let Some(text) = call.plan.as_deref().filter(|_| failed != Some(true)) {
            self.plan = Some(Plan::Shown { at, text });
        }
    }

    fn file(&mut self, at: At, path: String, kind: ToolKind, lists: &mut Lists<'_>) {
        let number = *lists.files.entry(path).or_insert_with_key(|path| {
            let (path, is_written) = (path.clone(), kind == ToolKind::Write);
            self.files.push(FileUse { path, reads: 0, changes: 0, is_written, last: at });
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

    fn statements(&mut self, at: At, text: &'a str, is_person: bool) {
        let mut in_code = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
                continue;
            }
            // Quoted and pasted words are somebody else's.
            if in_code || line.starts_with("    ") || line.trim_start().starts_with('>') {
                continue;
            }
            let line = line.trim().trim_start_matches(['-', '*', '•']).trim_start();
            for told in told::told(line) {
                let text = told.text;
                if text.chars().count() > SENTENCE_CHARS_MAX || text.ends_with(':') {
                    continue;
                }
                let has_reason = told.has_reason;
                let statement = Statement { at, text, is_person, has_reason };
                match told.tells {
                    Tells::Decision => self.decisions.push(statement),
                    Tells::Outcome if !is_person => self.outcomes.push(statement),
                    Tells::Open if !is_person => self.open.push(statement),
                    _ => {}
                }
            }
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
    fn apply(&self, list: &mut Vec<Todo>) {
        match self {
            Self::All(new) => list.clone_from(new),
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

impl Plan<'_> {
    /// Returns the plan as it is written down: a line for each of the list, or the text.
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

    /// Returns where it stands.
    pub fn at(&self) -> At {
        match self {
            Self::Todo { at, .. } | Self::Shown { at, .. } => *at,
        }
    }

    /// Returns what is not done yet.
    pub fn pending(&self) -> Vec<&Todo> {
        match self {
            Self::Todo { list, .. } => list
                .iter()
                .filter(|it| matches!(it.state, TodoState::Open | TodoState::Begun))
                .collect(),
            Self::Shown { .. } => Vec::new(),
        }
    }
}

/// Returns a path that begins at the root of its file system, where the folder is known that it is
/// named from. A path of Windows stays as it is.
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

/// Returns the result of each call: where it stands, and whether the call failed.
fn results<'a>(own: &[(At, &'a Entry)]) -> HashMap<&'a str, (At, bool)> {
    let mut results = HashMap::new();
    for &(at, entry) in own {
        if let What::Result(result) = &entry.what {
            results.insert(&result.call[..], (at, result.is_error));
        }
    }
    results
}

fn failures<'a>(own: &[(At, &'a Entry)]) -> Vec<Failure<'a>> {
    let mut calls: HashMap<&str, (At, &Call)> = HashMap::new();
    let mut failures: Vec<(usize, Failure<'a>)> = Vec::new();
    for (index, &(at, entry)) in own.iter().enumerate() {
        match &entry.what {
            What::Call(call) => drop(calls.insert(&call.id, (at, call))),
            What::Result(result) if result.is_error => {
                let call = calls.get(&result.call[..]).copied();
                // What memoird itself returned is no part of the session.
                if call.is_some_and(|(_, it)| it.kind == ToolKind::Memory) {
                    continue;
                }
                let call_at = call.map_or(at, |it| it.0);
                let (call, text) = (call.map(|it| it.1), &result.text[..]);
                let followed = Followed::Nothing;
                failures.push((index, Failure { call_at, at, call, text, followed }));
            }
            _ => {}
        }
    }
    let solved = solutions(own);
    let next = next_said(own);
    for (index, failure) in &mut failures {
        failure.followed = followed(own, *index, failure, &solved, &next);
    }
    failures.into_iter().map(|(_, it)| it).collect()
}

/// What a call does, so that a later one that does the same is found.
fn purpose(call: &Call) -> Option<(ToolKind, &str)> {
    match call.kind {
        ToolKind::Shell => call.command.as_deref().map(|it| (ToolKind::Shell, it)),
        // A file that was refused to be changed may be written instead.
        ToolKind::Edit | ToolKind::Write => Some((ToolKind::Edit, call.files.first()?)),
        ToolKind::Read => Some((ToolKind::Read, call.files.first()?)),
        ToolKind::Web | ToolKind::Search => Some((call.kind, &call.brief)),
        _ => None,
    }
}

type Purpose<'a> = (ToolKind, &'a str);

/// Returns where calls of each purpose went well, ascending.
fn solutions<'a>(own: &[(At, &'a Entry)]) -> HashMap<Purpose<'a>, Vec<At>> {
    let mut calls: HashMap<&str, (At, &Call)> = HashMap::new();
    let mut solved: HashMap<Purpose<'a>, Vec<At>> = HashMap::new();
    for &(at, entry) in own {
        match &entry.what {
            What::Call(call) => drop(calls.insert(&call.id, (at, call))),
            What::Result(result) if !result.is_error => {
                let call = calls.get(&result.call[..]);
                if let Some(purpose) = call.and_then(|it| purpose(it.1)) {
                    solved.entry(purpose).or_default().push(at);
                }
            }
            _ => {}
        }
    }
    solved
}

/// Returns for each entry the next one that says or does something, itself included.
fn next_said(own: &[(At, &Entry)]) -> Vec<Option<usize>> {
    let mut next = vec![None; own.len() + 1];
    for (index, (_, entry)) in own.iter().enumerate().rev() {
        let says = matches!(entry.what, What::User(_) | What::Assistant(_) | What::Call(_));
        next[index] = if says { Some(index) } else { next[index + 1] };
    }
    next
}

fn followed<'a>(
    own: &[(At, &'a Entry)],
    index: usize,
    failure: &Failure<'a>,
    solved: &HashMap<Purpose<'a>, Vec<At>>,
    next: &[Option<usize>],
) -> Followed<'a> {
    let next = next[index + 1].map(|it| own[it]);
    let solved = failure.call.and_then(purpose).and_then(|it| solved.get(&it));
    let solved = solved.and_then(|it| it.get(it.partition_point(|at| *at <= failure.at)));
    if let Some(&at) = solved {
        let words = next.and_then(|(at, entry)| match &entry.what {
            What::Assistant(text) | What::User(text) => Some((at, &text[..])),
            _ => None,
        });
        return Followed::Solved { at, words };
    }
    match next.map(|(at, entry)| (at, &entry.what)) {
        Some((at, What::User(text))) => Followed::Corrected(at, text),
        Some((at, What::Assistant(text))) => Followed::Words(at, text),
        Some((at, What::Call(call))) => Followed::Did(at, call),
        _ => Followed::Nothing,
    }
}
