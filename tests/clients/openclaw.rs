//! `OpenClaw`, one turn in a process of its own (`agent --local`).

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    await_sessions, installed_client, installed_node,
    support::{
        Root,
        server::{Answer, ModelRequest, Server},
        write_file,
    },
};

/// The version that was tried, and that of Node which it needs.
const VERSION: &str = "2026.9.6";
const NODE_VERSION: &str = "24.21.0";
const DECISION: &str = "We decided to name files by datum, because Brest has two.";
const NOTES: &str = "# Memory\n\n- The pier house has two keys\n";

/// Returns settings of a user: no request leaves this machine.
fn settings(server: &Server, root: &Root) -> String {
    let (url, workspace) = (server.url(), root.path(""));
    let workspace = workspace.display();
    format!(
        "{{\n  // the one at work\n  models: {{ providers: {{ local: {{\n    baseUrl: \"{url}/v1\", apiKey: 'none', \
         api: \"openai-completions\",\n    models: [{{ id: \"m\", name: \"m\" }}],\n  }} }} }},\n  agents: {{ \
         defaults: {{ model: {{ primary: \"local/m\" }}, skipBootstrap: true, workspace: '{workspace}' }} }}, /* by \
         hand */\n}}\n"
    )
}

/// Answers a question about memory with a call of a tool, and everything else with a decision.
fn answer(request: &ModelRequest) -> Answer {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    // The program adds messages of its own after the user's and after results.
    let asks = |words: &str| {
        let asked = messages.iter().rposition(|it| it.to_string().contains(words));
        asked.is_some_and(|at| messages[at..].iter().all(|it| it["role"] == "user"))
    };
    // Tools of servers and plugins are called through another one.
    let call = |id: &str, args: Value| {
        let arguments = json!({"id": id, "args": args}).to_string();
        json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "tool_call", "arguments": arguments}}]})
    };
    let (delta, reason) = if asks("Ask the server") {
        (call("memoird__memory_search", json!({"query": "datum"})), "tool_calls")
    } else if asks("Ask the memory") {
        (call("memory_search", json!({"query": "datum", "corpus": "all"})), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": DECISION}), "stop")
    };
    let chunk = |delta: &Value, reason: Option<&str>| {
        json!({"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
    };
    let (first, last) = (chunk(&delta, None), chunk(&json!({}), Some(reason)));
    let body = format!("data: {first}\n\ndata: {last}\n\ndata: [DONE]\n\n");
    Answer::text(200, &body).with("content-type", "text/event-stream")
}

struct Client {
    node: PathBuf,
    program: PathBuf,
    server: Server,
}

impl Client {
    /// Runs one turn of a session, and returns the messages of its requests.
    fn run_turn(&self, root: &Root, session: &str, prompt: &str) -> Vec<String> {
        let before = self.server.count();
        let mut command = Command::new(&self.node);
        command.arg(&self.program).args(["agent", "--local", "--agent", "main"]);
        command.args(["--session-key", session, "--message", prompt]).stdin(Stdio::null());
        let path = std::env::var_os("PATH").unwrap();
        let folders = self.node.parent().into_iter().map(Path::to_owned);
        let path = std::env::join_paths(folders.chain(std::env::split_paths(&path))).unwrap();
        command.env_clear().env("PATH", path).env("HOME", root.home("")).env("TZ", "Europe/Berlin");
        let output = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains(DECISION), "{stdout}\n{stderr}");
        let requests = self.server.requests();
        requests[before..].iter().map(|it| it.body["messages"].to_string()).collect()
    }
}

#[test]
fn sessions_get_the_memory_and_are_recorded_for_the_next_ones() {
    let version = std::env::var("MEMOIRD_OPENCLAW_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let Some(node) = installed_node(NODE_VERSION) else { return };
    // Its scripts refuse another Node, and only prepare what this test does not need.
    let options = ["--ignore-scripts"];
    let program = installed_client("openclaw", &version, "openclaw.mjs", &options);
    let Some(program) = program else { return };
    let client = Client { node, program, server: Server::answering(answer) };
    let root = Root::empty("tide");
    root.write("memory/2026-04-02.md", "- The harbour office names each datum ZH\n");
    root.write("MEMORY.md", NOTES);
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    let file = root.home(".openclaw/openclaw.json");
    let before = settings(&client.server, &root);
    write_file(&file, &before);
    root.run(&["init", "--openclaw", "--yes"]).ok();

    let requests = client.run_turn(&root, "agent:main:main", "Import the Brest table");
    let first = &requests[0];
    assert!(first.contains("The pier house has two keys"), "{first}");
    assert_eq!(first.matches("Brest is late.").count(), 1, "in the block alone: {first}");
    assert!(first.contains("<memoird-context>"), "{first}");
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    assert!(logs.contains(DECISION) && !logs.contains("Brest is late"), "{logs}");

    // Another session: the log and the record of the first one reach it, not its transcript.
    let requests = client.run_turn(&root, "agent:main:second", "Ask the server");
    assert!(requests[0].contains(DECISION), "{}", requests[0]);
    let found = requests.last().unwrap();
    assert!(found.contains("names each datum ZH"), "{found}");
    let requests = client.run_turn(&root, "agent:main:third", "Ask the memory");
    let found = requests.last().unwrap();
    assert!(found.contains("names each datum ZH"), "{found}");
    let logs = await_sessions(&root, 3);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");
    let report = root.run(&["import", "openclaw", "--yes", "--json"]).ok().json();
    assert_eq!(report["kept"], 0, "the hooks recorded all: {report}");
    assert_eq!(report["sessions"].as_array().map(Vec::len), Some(3), "{report}");

    root.run(&["init", "--openclaw", "--uninstall", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(root.read("MEMORY.md"), NOTES);
    let requests = client.run_turn(&root, "agent:main:fourth", "Go on");
    assert!(!requests[0].contains("memoird-context"), "{}", requests[0]);
}
