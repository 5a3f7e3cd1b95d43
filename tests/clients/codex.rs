//! Codex: hooks, MCP server, and conversations of several turns, against a scripted server of the Responses API.
//!
//! `codex exec` runs one turn; its app server, which its editors use, runs several and compacts.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    await_records, await_sessions, await_value,
    claude::{Rule, call, read_home, say},
    installed_client, root_with_memory,
    sessions::{NOTED, Script},
    support::{
        Root,
        server::{Answer, ModelRequest, Server},
        write_file,
    },
};

/// The version that was tried.
const VERSION: &str = "0.171.0";
const DECISION: &str = "We decided to name files by datum, because Brest has two.";

/// The program, and the home that it runs in.
struct Codex<'a> {
    program: PathBuf,
    root: &'a Root,
    server: Server,
}

/// A conversation through the app server.
struct Thread {
    child: Child,
    stdin: ChildStdin,
    lines: std::io::Lines<BufReader<ChildStdout>>,
    requests: u64,
    id: String,
    /// The ids of the turns.
    turns: Vec<String>,
}

impl<'a> Codex<'a> {
    /// Starts a server with these rules, and writes the user's configuration.
    fn new(root: &'a Root, rules: Vec<Rule>, otherwise: &'static str) -> Option<Self> {
        let version = std::env::var("MEMOIRD_CODEX_VERSION").unwrap_or_else(|_| VERSION.to_owned());
        let program = installed_client("@openai/codex", &version, "bin/codex.js", &[])?;
        let server = Server::answering(move |request| answer(request, &rules, otherwise));
        let codex = Self { program, root, server };
        write_file(&root.home(".codex/config.toml"), &codex.config());
        Some(codex)
    }

    /// Returns the configuration of a user: no request leaves this machine.
    fn config(&self) -> String {
        format!(
            "# mine\nmodel = \"gpt-5.5\"\nmodel_provider = \"here\" # no other\n\n[model_providers.here]\n\
             name = \"here\"\nbase_url = \"{}/v1\"\nwire_api = 'responses'\nenv_key = \"HERE_KEY\"\n\n\
             [projects.\"{}\"]\ntrust_level = \"trusted\"\n\n[analytics]\nenabled = false\n",
            self.server.url(),
            self.root.path("").display().to_string().trim_end_matches('/'),
        )
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("node");
        command.arg(&self.program).args(args).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.root.home(""));
        command.env("HERE_KEY", "none").current_dir(self.root.path(""));
        command
    }

    /// Runs one turn, and returns the input of its requests.
    fn exec(&self, args: &[&str], prompt: &str) -> Vec<String> {
        let before = self.server.count();
        let all = [&["exec"], args, &["--skip-git-repo-check", prompt]].concat();
        let output = self.command(&all).stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let requests = self.server.requests().split_off(before);
        let requests = requests.iter().filter(|it| it.path.ends_with("/responses"));
        requests.map(|it| it.body["input"].to_string()).collect()
    }

    /// Starts the app server and a conversation.
    fn thread(&self) -> Thread {
        let mut command = self.command(&["app-server"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (id, turns) = (String::new(), Vec::new());
        let lines = BufReader::new(stdout).lines();
        let mut thread = Thread { child, stdin, lines, requests: 0, id, turns };
        thread.request("initialize", &json!({"clientInfo": {"name": "test", "version": "1"}}));
        thread.send(&json!({"method": "initialized", "params": {}}));
        thread
    }

    /// Trusts the hooks, as the user does under `/hooks`.
    fn trust_hooks(&self) {
        let mut server = self.thread();
        let list = json!({"cwds": [self.root.path("")]});
        let hooks = server.request("hooks/list", &list);
        let mut trusted = json!({});
        for hook in hooks["data"][0]["hooks"].as_array().unwrap() {
            trusted[hook["key"].as_str().unwrap()] = json!({"trusted_hash": hook["currentHash"]});
        }
        assert_eq!(trusted.as_object().unwrap().len(), 3, "{hooks}");
        let edit = json!({"keyPath": "hooks.state", "value": trusted, "mergeStrategy": "upsert"});
        server.request("config/batchWrite", &json!({"edits": [edit]}));
        server.end();
    }
}

impl Thread {
    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").unwrap();
    }

    /// Reads messages up to one that fits.
    fn await_message(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no {what}")).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            assert!(message.get("error").is_none(), "{what}: {message}");
            if is_it(&message) {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"id": id, "method": method, "params": params}));
        let answer = self.await_message(method, |it| it["id"] == id && it.get("result").is_some());
        answer["result"].clone()
    }

    fn start(mut self, root: &Root) -> Self {
        let start = json!({"cwd": root.path(""), "approvalPolicy": "never",
            "sandbox": "danger-full-access"});
        let thread = self.request("thread/start", &start);
        self.id = thread["thread"]["id"].as_str().unwrap().to_owned();
        self
    }

    /// Sends a message of the user, and waits until the model has answered.
    fn turn(&mut self, text: &str) {
        let input = json!([{"type": "text", "text": text}]);
        let turn = self.request("turn/start", &json!({"threadId": self.id, "input": input}));
        self.turns.push(turn["turn"]["id"].as_str().unwrap().to_owned());
        self.await_message("turn/completed", |it| it["method"] == "turn/completed");
    }

    fn compact(&mut self) {
        self.request("thread/compact/start", &json!({"threadId": self.id}));
        self.await_message("turn/completed", |it| it["method"] == "turn/completed");
    }

    /// Discards the last turn.
    fn revert(&mut self) {
        let last = self.turns.pop().unwrap();
        self.request("thread/revert", &json!({"threadId": self.id, "beforeTurnId": last}));
    }

    /// Goes on in a fork.
    fn fork(&mut self) {
        let fork = self.request("thread/fork", &json!({"threadId": self.id}));
        self.id = fork["thread"]["id"].as_str().unwrap().to_owned();
    }

    /// Ends the app server and with it the session.
    fn end(self) {
        let Self { mut child, stdin, lines, .. } = self;
        drop(stdin);
        lines.for_each(drop);
        child.wait().unwrap();
    }
}

/// Answers a request of the Responses API.
fn answer(request: &ModelRequest, rules: &[Rule], otherwise: &str) -> Answer {
    if !request.path.ends_with("/responses") {
        return Answer::text(404, "");
    }
    let input = request.body["input"].as_array().cloned().unwrap_or_default();
    let last = input.last().map(Value::to_string).unwrap_or_default();
    let rule = rules.iter().find(|it| last.contains(it.0));
    let blocks = rule.map_or_else(|| vec![say(otherwise)], |it| it.1.clone());
    let mut events = json!({"type": "response.created", "response": {"id": "resp_1"}}).to_string();
    let mut event = |value: Value| {
        use std::fmt::Write as _;
        write!(events, "\n\ndata: {value}").unwrap();
    };
    for (n, block) in blocks.iter().enumerate() {
        let item = if block["type"] == "text" {
            let content = json!([{"type": "output_text", "text": block["text"]}]);
            json!({"type": "message", "role": "assistant", "id": format!("m{n}"), "content": content})
        } else {
            json!({"type": "function_call", "id": format!("f{n}"), "call_id": block["id"],
                "name": block["name"], "namespace": block["namespace"],
                "arguments": block["input"].to_string()})
        };
        event(json!({"type": "response.output_item.done", "output_index": n, "item": item}));
    }
    event(json!({"type": "response.completed", "response": {"id": "resp_1", "usage":
        {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}}));
    Answer::text(200, &format!("data: {events}\n\n")).with("content-type", "text/event-stream")
}

#[test]
fn a_session_gets_the_context_and_is_recorded_for_the_next_one() {
    let root = root_with_memory();
    let mut search = call("call_memory", "memory_search", &json!({"query": "datum"}));
    search["namespace"] = json!("mcp__memoird");
    let rules = vec![
        ("call_memory", vec![say("The harbour office names it.")]),
        ("Ask the memory", vec![search]),
    ];
    let Some(codex) = Codex::new(&root, rules, DECISION) else { return };
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    root.run(&["init", "--codex", "--uninstall", "--yes"]).ok();
    assert_eq!(read_home(&root, ".codex/config.toml"), codex.config());
    assert!(!root.home(".codex/hooks.json").exists());
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    let requests = codex.exec(&[], "Hello");
    assert!(!requests[0].contains("memoird-context"), "Codex runs no hook that nobody trusts");
    codex.trust_hooks();

    let requests = codex.exec(&[], "Import the Brest table");
    assert!(requests[0].contains("<memoird-context>"), "{}", requests[0]);
    assert!(requests[0].contains("Brest is late."), "{}", requests[0]);
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    assert!(logs.contains(DECISION) && !logs.contains("Brest is late"), "{logs}");

    let requests = codex.exec(&[], "Ask the memory");
    assert!(requests[0].contains(DECISION), "{}", requests[0]);
    let result = requests.last().unwrap();
    assert!(result.contains("names each datum ZH"), "{result}");
    let logs = await_sessions(&root, 2);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");

    // The hook before a compaction records the session while it goes on.
    let mut thread = codex.thread().start(&root);
    thread.turn("We round to centimetres");
    thread.compact();
    await_records(&root, 3);
    thread.turn("Never push on Fridays");
    thread.end();
    let is_whole = |it: &String| it.contains("  Never push on Fridays\n");
    await_value(|| await_records(&root, 3), |it| it.iter().any(is_whole));

    root.run(&["init", "--codex", "--uninstall", "--yes"]).ok();
    assert!(!root.home(".codex/hooks.json").exists());
    // The program has added to the file since.
    let config = read_home(&root, ".codex/config.toml");
    assert!(config.starts_with(codex.config().trim_end()), "{config}");
    assert!(!config.contains("mcp_servers"), "{config}");
    let requests = codex.exec(&[], "Go on");
    assert!(!requests[0].contains("memoird-context"), "{}", requests[0]);
}

#[test]
fn who_said_what_is_in_the_record() {
    let root = root_with_memory();
    let print = "for i in $(seq 3000); do echo \"row $i: we decided to sell the boat\"; done";
    let rules = vec![
        ("call_print", vec![say("Decided to keep the table sorted.")]),
        ("Show the table", vec![call("call_print", "exec_command", &json!({"cmd": print}))]),
    ];
    let Some(codex) = Codex::new(&root, rules, NOTED) else { return };
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    codex.trust_hooks();
    let mut thread = codex.thread().start(&root);
    thread.turn("Show the table");
    thread.turn("We decided to use XML for the export");
    thread.revert();
    thread.turn("We decided to use CSV for the export");
    thread.end();
    Script {
        user: &["Show the table", "We decided to use CSV for the export"],
        agent: &["Decided to keep the table sorted."],
        logged: &["We decided to use CSV for the export", "Decided to keep the table sorted."],
        never: &["sell the boat", "XML"],
    }
    .check(&root);
    // The files of the same conversation, read later, contain nothing new.
    let report = root.run(&["import", "codex", "--days", "0", "--yes", "--json"]);
    assert_eq!(report.json()["kept"], 0, "{report}");
}

#[test]
fn a_fork_and_a_continued_session_are_recorded_once() {
    let root = root_with_memory();
    let Some(codex) = Codex::new(&root, vec![], NOTED) else { return };
    root.run(&["init", ".", "--codex", "--yes"]).ok();
    codex.trust_hooks();
    let user = ["We decided to use ZH for Brest", "We decided to archive in TSV", "In grey"];
    codex.exec(&[], user[0]);
    await_sessions(&root, 1);
    codex.exec(&["resume", "--last"], user[1]);
    await_sessions(&root, 2);
    let mut thread = codex.thread().start(&root);
    thread.turn(user[2]);
    thread.fork();
    thread.turn("We decided to print the fork in colour");
    thread.end();
    let user = [&user[..], &["We decided to print the fork in colour"]].concat();
    let logged = [user[0], user[1], user[3]];
    Script { user: &user, agent: &[], logged: &logged, never: &[] }.check(&root);
}
