//! Drives the real Claude Code against a scripted model server.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    installed_client,
    support::{
        Root,
        server::{Answer, ModelRequest, Server},
    },
};

/// The version that was tried.
const VERSION: &str = "2.1.332";
/// How long a session may take before it is killed.
const SESSION_TIMEOUT: Duration = Duration::from_secs(120);

/// What the model says when the last message contains these words: blocks of content.
pub(crate) type Rule = (&'static str, Vec<Value>);

/// Decides on a request for permission: the name of the tool and its input.
pub(crate) type Permission = fn(&str, &Value) -> Value;

/// The program, and the home that it runs in.
pub(crate) struct Claude<'a> {
    program: PathBuf,
    root: &'a Root,
    server: Server,
}

/// A running session of several turns.
pub(crate) struct Talk {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    permission: Permission,
    /// What the program has written, in order.
    pub(crate) output: Vec<Value>,
    /// Dropped when the session is over.
    _watchdog: mpsc::Sender<()>,
}

/// Returns a text of the model.
pub(crate) fn say(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Returns a call of a tool.
pub(crate) fn call(id: &str, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

/// Allows every call.
pub(crate) fn allow(_: &str, input: &Value) -> Value {
    json!({"behavior": "allow", "updatedInput": input})
}

/// Returns the program, or `None`, with a message, if it cannot run here.
pub(crate) fn installed_claude() -> Option<PathBuf> {
    let version = std::env::var("MEMOIRD_CLAUDE_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    installed_client("@anthropic-ai/claude-code", &version, "bin/claude.exe", &[])
}

impl<'a> Claude<'a> {
    /// Starts a server with these rules; a message that fits none is answered with `otherwise`.
    pub(crate) fn new(
        program: &Path,
        root: &'a Root,
        rules: Vec<Rule>,
        otherwise: &'static str,
    ) -> Self {
        let server = Server::answering(move |request| answer(request, &rules, otherwise));
        Self { program: program.to_owned(), root, server }
    }

    /// Returns the program, ready to run in a folder.
    pub(crate) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", self.root.home("")).env("LANG", "C.UTF-8");
        command.env("ANTHROPIC_API_KEY", "none").env("ANTHROPIC_BASE_URL", self.server.url());
        // No request leaves this machine.
        command
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTOUPDATER", "1");
        command.current_dir(folder);
        command
    }

    /// Runs a command of the program that is no session.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(&self.root.path(""));
        command.args(args).stdin(Stdio::null()).output().unwrap()
    }

    /// Runs one session of one prompt, and returns the messages of its requests.
    pub(crate) fn prompt(&self, prompt: &str, args: &[&str]) -> Vec<String> {
        let before = self.server.count();
        let output = self.run(&[&["-p", prompt][..], args].concat());
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}{}", String::from_utf8_lossy(&output.stdout));
        self.requests().split_off(before)
    }

    /// Returns the messages of all requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.server.requests().iter().map(|it| it.body["messages"].to_string()).collect()
    }

    /// Starts a session of several turns.
    pub(crate) fn talk(&self, folder: &Path, permission: Permission, args: &[&str]) -> Talk {
        let mut command = self.command(folder);
        command.args(["-p", "--input-format", "stream-json", "--output-format", "stream-json"]);
        command.args(["--verbose", "--permission-prompt-tool", "stdio"]).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (watchdog, is_over) = mpsc::channel::<()>();
        let pid = child.id().to_string();
        std::thread::spawn(move || {
            if is_over.recv_timeout(SESSION_TIMEOUT) == Err(mpsc::RecvTimeoutError::Timeout) {
                drop(Command::new("kill").args(["-9", &pid]).status());
            }
        });
        let lines = BufReader::new(stdout).lines();
        Talk { child, stdin, lines, permission, output: Vec::new(), _watchdog: watchdog }
    }
}

impl Talk {
    fn send(&mut self, value: &Value) {
        writeln!(self.stdin, "{value}").unwrap();
    }

    /// Sends a message of the user, without waiting for the answer.
    pub(crate) fn say(&mut self, text: &str) {
        let message = json!({"role": "user", "content": text});
        self.send(&json!({"type": "user", "message": message, "parent_tool_use_id": null}));
    }

    /// Sends a message of the user, and waits until the model has answered.
    pub(crate) fn turn(&mut self, text: &str) {
        self.say(text);
        self.await_output("result");
    }

    /// Reads the output up to a line of this type, and answers requests for permission.
    pub(crate) fn await_output(&mut self, kind: &str) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no {kind}: {:#?}", self.output));
            let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let request = &line["request"];
            if request["subtype"] == "can_use_tool" {
                let tool = request["tool_name"].as_str().unwrap();
                let response = (self.permission)(tool, &request["input"]);
                self.send(&json!({"type": "control_response", "response": {"subtype": "success",
                    "request_id": line["request_id"], "response": response}}));
            }
            let is_last = line["type"] == kind;
            self.output.push(line);
            if is_last {
                return;
            }
        }
    }

    /// Returns the id of the session.
    pub(crate) fn session(&self) -> String {
        let id = self.output.iter().find_map(|it| it["session_id"].as_str());
        id.expect("the first line names the session").to_owned()
    }

    /// Returns the id of the first message of the model that contains these words.
    pub(crate) fn message_id(&self, words: &str) -> String {
        let is_it = |it: &&Value| it["type"] == "assistant" && it.to_string().contains(words);
        self.output.iter().find(is_it).unwrap()["uuid"].as_str().unwrap().to_owned()
    }

    /// Ends the session, and returns its id.
    pub(crate) fn end(self) -> String {
        let id = self.session();
        let Self { mut child, stdin, lines, .. } = self;
        drop(stdin);
        lines.for_each(drop);
        child.wait().unwrap();
        id
    }

    /// Ends the session with SIGKILL, and returns its id.
    pub(crate) fn kill(mut self) -> String {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.session()
    }
}

/// Returns the text of a settings file of the user.
pub(crate) fn read_home(root: &Root, name: &str) -> String {
    fs::read_to_string(root.home(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Answers a request of the Messages API.
fn answer(request: &ModelRequest, rules: &[Rule], otherwise: &str) -> Answer {
    if request.path.contains("count_tokens") {
        return Answer::json(200, &json!({"input_tokens": 10}));
    }
    if !request.path.starts_with("/v1/messages") || request.method != "POST" {
        return Answer::text(404, "");
    }
    let last = last_words(&request.body);
    let rule = rules.iter().find(|it| last.contains(it.0));
    let blocks = rule.map_or_else(|| vec![say(otherwise)], |it| it.1.clone());
    Answer::text(200, &stream(&blocks)).with("content-type", "text/event-stream")
}

/// Returns what the last message of the user or a tool says, without what the program adds.
fn last_words(body: &Value) -> String {
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.iter().rev().find(|it| it["role"] == "user");
    let content = last.map(|it| it["content"].clone()).unwrap_or_default();
    let Some(blocks) = content.as_array() else { return content.to_string() };
    let results: Vec<&Value> = blocks.iter().filter(|it| it["type"] == "tool_result").collect();
    if !results.is_empty() {
        return json!(results).to_string();
    }
    let is_own =
        |it: &&Value| it["text"].as_str().is_some_and(|it| !it.starts_with("<system-reminder>"));
    blocks.iter().rev().find(is_own).map(Value::to_string).unwrap_or_default()
}

/// Returns blocks of content as the events of a stream.
fn stream(blocks: &[Value]) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    // The program joins messages of the same id.
    let id = format!("msg_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    let mut events = String::new();
    let mut event = |value: Value| {
        use std::fmt::Write as _;
        let kind = value["type"].as_str().unwrap().to_owned();
        write!(events, "event: {kind}\ndata: {value}\n\n").unwrap();
    };
    event(json!({"type": "message_start", "message": {"id": id, "type": "message",
        "role": "assistant", "model": "claude-opus-5-5", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1}}}));
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = if block["type"] == "text" {
            let delta = json!({"type": "text_delta", "text": block["text"]});
            (json!({"type": "text", "text": ""}), delta)
        } else {
            let input = block["input"].to_string();
            let delta = json!({"type": "input_json_delta", "partial_json": input});
            let mut start = block.clone();
            start["input"] = json!({});
            (start, delta)
        };
        event(json!({"type": "content_block_start", "index": index, "content_block": start}));
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        event(json!({"type": "content_block_stop", "index": index}));
    }
    let calls = blocks.iter().any(|it| it["type"] == "tool_use");
    let reason = if calls { "tool_use" } else { "end_turn" };
    event(json!({"type": "message_delta", "usage": {"output_tokens": 5},
        "delta": {"stop_reason": reason, "stop_sequence": null}}));
    event(json!({"type": "message_stop"}));
    events
}
