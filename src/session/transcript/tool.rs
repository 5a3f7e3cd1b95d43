//! The effect of a tool call: files, command, to-do list.
//!
//! Agents name their tools differently; [`ToolKind`] is the purpose of a tool. Only the parts of the
//! input that are needed later are kept, because a written file may be large.

use serde_json::Value;

use super::{string_field, truncate};

/// How much of the text written into a file is kept, in characters.
const CODE_CHARS_MAX: usize = 1_200;
/// How much of any other input is kept, in characters.
const BRIEF_CHARS_MAX: usize = 300;
/// How much of a command is kept, in characters.
const COMMAND_CHARS_MAX: usize = 2_000;

/// The purpose of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ToolKind {
    /// Reads a file.
    Read,
    /// Changes a file.
    Edit,
    /// Writes a whole file.
    Write,
    /// Runs a command.
    Shell,
    /// Searches in files, or for files.
    Search,
    /// Fetches or searches the web.
    Web,
    /// Changes the to-do list.
    Todo,
    /// Shows a plan to the user.
    Plan,
    /// Starts another agent.
    Agent,
    /// Calls memoird.
    Memory,
    /// Anything else.
    Other,
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// The id, to which its result refers.
    pub id: String,
    /// The agent's name of the tool.
    pub name: String,
    /// The purpose of the tool.
    pub kind: ToolKind,
    /// The paths in its input, unchanged.
    pub files: Vec<String>,
    /// The command that it runs.
    pub command: Option<String>,
    /// The change of the to-do list.
    pub todo: Option<TodoChange>,
    /// The plan that it shows.
    pub plan: Option<String>,
    /// The start of the text that it writes, or of its input.
    pub excerpt: String,
}

/// A change of the to-do list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TodoChange {
    /// The whole list is replaced.
    Replaced(Vec<TodoItem>),
    /// An item is added.
    Added(TodoItem),
    /// An item is changed.
    Changed {
        /// The number of the item, from 1.
        number: usize,
        /// The new text, if it changes.
        text: Option<String>,
        /// The new state, if it changes.
        state: Option<TodoState>,
    },
}

/// An item of a to-do list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TodoItem {
    /// The text, as the agent wrote it.
    pub text: String,
    /// Its state.
    pub state: TodoState,
}

/// The state of a to-do item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TodoState {
    /// Not started.
    Open,
    /// In progress.
    InProgress,
    /// Done.
    Done,
    /// Dropped.
    Dropped,
}

impl TodoState {
    fn from_name(name: &str) -> Self {
        match name {
            "completed" | "done" => Self::Done,
            "in_progress" | "in-progress" => Self::InProgress,
            "cancelled" | "canceled" | "deleted" => Self::Dropped,
            _ => Self::Open,
        }
    }

    /// Returns its checkbox.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Open => "[ ]",
            Self::InProgress => "[~]",
            Self::Done => "[x]",
            Self::Dropped => "[-]",
        }
    }
}

impl ToolKind {
    /// Returns the purpose of a tool by its name.
    pub fn from_name(name: &str) -> Self {
        let lower = name.to_lowercase();
        if ["memoird", "mcp__memoird__", "mcp_memoird_"].iter().any(|it| lower.starts_with(it)) {
            return Self::Memory;
        }
        let plain = lower.rsplit("__").next().unwrap_or(&lower).replace(['_', '-'], "");
        match &plain[..] {
            "read" | "readfile" | "notebookread" | "viewimage" | "cat" | "ls" | "listdir"
            | "listdirectory" | "readmanyfiles" => Self::Read,
            "edit"
            | "multiedit"
            | "notebookedit"
            | "applypatch"
            | "replace"
            | "strreplace"
            | "editfile"
            | "strreplacebasededittool" => Self::Edit,
            "write" | "writefile" | "createfile" => Self::Write,
            "bash" | "bashoutput" | "shell" | "localshell" | "execcommand" | "exec"
            | "runshellcommand" | "writestdin" | "killshell" | "runcommand" | "runterminalcmd"
            | "terminal" => Self::Shell,
            "grep" | "glob" | "search" | "grepfiles" | "grepsearch" | "searchfiles"
            | "searchfilecontent" | "codebasesearch" => Self::Search,
            "webfetch" | "websearch" | "googlewebsearch" | "fetch" | "browse" => Self::Web,
            "todowrite" | "writetodos" | "updateplan" | "taskcreate" | "taskupdate" | "todo" => {
                Self::Todo
            }
            "exitplanmode" => Self::Plan,
            "task" | "agent" | "spawnagent" | "invokeagent" => Self::Agent,
            _ => Self::Other,
        }
    }

    /// Returns whether its results are large and can be obtained again.
    pub fn is_bulky(self) -> bool {
        matches!(
            self,
            Self::Read | Self::Edit | Self::Write | Self::Shell | Self::Search | Self::Web
        )
    }

    /// Returns whether it changes files.
    pub fn changes_files(self) -> bool {
        matches!(self, Self::Edit | Self::Write)
    }
}

impl ToolUse {
    /// Reads the parts of a call's input that are needed later.
    pub fn new(id: impl Into<String>, name: &str, input: &Value) -> Self {
        let mut kind = ToolKind::from_name(name);
        let command = command(input).filter(|_| matches!(kind, ToolKind::Shell | ToolKind::Other));
        if command.is_some() && kind == ToolKind::Other {
            kind = ToolKind::Shell;
        }
        // A patch may be its own tool, or run through a shell.
        let patch = patch(input, command.as_deref());
        let mut files: Vec<String> = patch.map(patched_files).unwrap_or_default();
        if !files.is_empty() {
            kind = ToolKind::Edit;
        }
        if command.as_deref().is_some_and(calls_memoird) {
            kind = ToolKind::Memory;
        }
        let keys: &[&str] = match kind {
            ToolKind::Read | ToolKind::Edit | ToolKind::Write | ToolKind::Other => &[
                "file_path",
                "filePath",
                "absolute_path",
                "notebook_path",
                "path",
                "filename",
                "file",
            ],
            _ => &[],
        };
        let named = keys
            .iter()
            .filter_map(|key| string_field(input, key))
            .filter(|it| !it.trim().is_empty());
        files.extend(named.take(1).map(str::to_owned));
        let todo = (kind == ToolKind::Todo).then(|| todo(name, input)).flatten();
        let plan = (kind == ToolKind::Plan)
            .then(|| string_field(input, "plan"))
            .flatten()
            .map(str::to_owned);
        let brief = match patch {
            Some(patch) if kind == ToolKind::Edit => truncate(patch, CODE_CHARS_MAX),
            _ => input_excerpt(kind, input),
        };
        let command = command.map(|it| truncate(&it, COMMAND_CHARS_MAX));
        Self {
            id: id.into(),
            name: truncate(name, 100),
            kind,
            files,
            command,
            todo,
            plan,
            excerpt: brief,
        }
    }
}

/// Returns the command that a call runs: a string, or a list of words.
fn command(input: &Value) -> Option<String> {
    match ["command", "cmd", "script"].iter().find_map(|key| input.get(key))? {
        Value::String(line) => Some(line.trim().to_owned()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(match &words[..] {
                // The shell's argument is the actual command.
                [shell, "-lc" | "-c", line] if shell.ends_with("sh") => (*line).to_owned(),
                words => words.join(" "),
            })
        }
        _ => None,
    }
}

fn calls_memoird(command: &str) -> bool {
    let program = command.split_whitespace().find(|it| !it.contains('='));
    program.is_some_and(|it| it.rsplit('/').next() == Some("memoird"))
}

fn patch<'a>(input: &'a Value, command: Option<&'a str>) -> Option<&'a str> {
    let candidates = [
        input.as_str(),
        string_field(input, "input"),
        string_field(input, "patch"),
        string_field(input, "patchText"),
        command,
    ];
    candidates.into_iter().flatten().find(|it| it.contains("*** Begin Patch"))
}

fn patched_files(patch: &str) -> Vec<String> {
    const HEADS: [&str; 4] =
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let file = HEADS.iter().find_map(|head| line.strip_prefix(head)).map(str::trim);
        if let Some(file) = file.filter(|it| !it.is_empty() && !files.iter().any(|old| old == it)) {
            files.push(file.to_owned());
        }
    }
    files
}

fn todo(name: &str, input: &Value) -> Option<TodoChange> {
    let state = |it: &Value| string_field(it, "status").map(TodoState::from_name);
    let words = |it: &Value| {
        ["content", "step", "subject", "text", "description"]
            .iter()
            .find_map(|key| string_field(it, key))
            .map(str::to_owned)
    };
    let list = ["todos", "plan", "items"].iter().find_map(|key| input.get(key)?.as_array());
    if let Some(list) = list {
        let one = |it: &Value| {
            Some(TodoItem { text: words(it)?, state: state(it).unwrap_or(TodoState::Open) })
        };
        return Some(TodoChange::Replaced(list.iter().filter_map(one).collect()));
    }
    if name.to_lowercase().ends_with("update") {
        let number = input.get("taskId").or_else(|| input.get("id"))?;
        let number = number.as_u64().or_else(|| number.as_str()?.parse().ok())?;
        let number = usize::try_from(number).ok()?;
        return Some(TodoChange::Changed { number, text: words(input), state: state(input) });
    }
    let text = words(input)?;
    Some(TodoChange::Added(TodoItem { text, state: state(input).unwrap_or(TodoState::Open) }))
}

/// Returns the start of the text that a call writes, or of its query.
fn input_excerpt(kind: ToolKind, input: &Value) -> String {
    match kind {
        ToolKind::Edit | ToolKind::Write => {
            let edits = input.get("edits").and_then(Value::as_array);
            let first = edits.and_then(|it| it.first()).unwrap_or(input);
            let keys = [
                "new_string",
                "newString",
                "new_str",
                "content",
                "contents",
                "file_text",
                "new_source",
            ];
            let written = keys.iter().find_map(|key| string_field(first, key));
            truncate(written.unwrap_or_default(), CODE_CHARS_MAX)
        }
        ToolKind::Search | ToolKind::Web | ToolKind::Agent => {
            let keys = ["pattern", "query", "url", "description", "prompt"];
            let asked = keys.iter().find_map(|key| string_field(input, key));
            truncate(asked.unwrap_or_default(), BRIEF_CHARS_MAX)
        }
        ToolKind::Other => match input {
            Value::Null => String::new(),
            input => truncate(&input.to_string(), BRIEF_CHARS_MAX),
        },
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(name: &str, input: &Value, kind: ToolKind, files: &[&str], command: Option<&str>) {
        let call = ToolUse::new("1", name, input);
        assert_eq!((call.kind, call.command.as_deref()), (kind, command), "{name}");
        assert_eq!(call.files, files, "{name}");
    }

    #[test]
    fn tools_of_all_agents_are_known_by_what_they_are_for() {
        check("Read", &json!({"file_path": "/p/a.rs"}), ToolKind::Read, &["/p/a.rs"], None);
        check("MultiEdit", &json!({"file_path": "a"}), ToolKind::Edit, &["a"], None);
        check("Bash", &json!({"command": " ls -l "}), ToolKind::Shell, &[], Some("ls -l"));
        let words = json!({"command": ["bash", "-lc", "cargo test"]});
        check("shell", &words, ToolKind::Shell, &[], Some("cargo test"));
        let patch = "*** Begin Patch\n*** Update File: a.rs\n+x\n*** Add File: b.rs\n*** End Patch";
        check("apply_patch", &json!(patch), ToolKind::Edit, &["a.rs", "b.rs"], None);
        let run = json!({"command": ["apply_patch", patch]});
        let line = format!("apply_patch {patch}");
        check("shell", &run, ToolKind::Edit, &["a.rs", "b.rs"], Some(&line));
        check(
            "Bash",
            &json!({"command": "A=1 /bin/memoird context"}),
            ToolKind::Memory,
            &[],
            Some("A=1 /bin/memoird context"),
        );
        check("mcp_memoird_memory_search", &json!({"query": "x"}), ToolKind::Memory, &[], None);
        check("replace", &json!({"file_path": "a"}), ToolKind::Edit, &["a"], None);
        check("list_directory", &json!({"path": "a"}), ToolKind::Read, &["a"], None);
        check("mcp__memoird__memory_search", &json!({"query": "x"}), ToolKind::Memory, &[], None);
        check("strange", &json!({"path": "x", "deep": [[]]}), ToolKind::Other, &["x"], None);
        check("Read", &Value::Null, ToolKind::Read, &[], None);
    }

    #[test]
    fn lists_are_kept_word_for_word() {
        let list =
            json!({"todos": [{"content": "a  b", "status": "in_progress"}, {"content": "c"}]});
        let Some(TodoChange::Replaced(list)) = ToolUse::new("1", "TodoWrite", &list).todo else {
            panic!()
        };
        let list: Vec<_> = list.iter().map(|it| (it.state.mark(), &it.text[..])).collect();
        assert_eq!(list, [("[~]", "a  b"), ("[ ]", "c")]);
        let changed =
            ToolUse::new("1", "TaskUpdate", &json!({"taskId": "2", "status": "completed"}));
        let expected = TodoChange::Changed { number: 2, text: None, state: Some(TodoState::Done) };
        assert_eq!(changed.todo, Some(expected));
    }
}
