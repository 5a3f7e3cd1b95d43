//! Real agent programs as clients: each runs against a model server on this machine that answers from a script.
//!
//! ```sh
//! MEMOIRD_CLIENTS=1 cargo test --test clients
//! ```
//!
//! The programs come from the npm registry, in the versions named here, into the folder of the build. Without
//! `MEMOIRD_CLIENTS=1`, Node, or the registry, a test is skipped with a message.
//!
//! | variable | effect |
//! |---|---|
//! | `MEMOIRD_CLIENTS=1` | runs the programs |
//! | `MEMOIRD_CLAUDE_VERSION=V`, `MEMOIRD_CODEX_VERSION=V`, `MEMOIRD_COPILOT_VERSION=V`, `MEMOIRD_GEMINI_VERSION=V`, `MEMOIRD_OPENCLAW_VERSION=V`, `MEMOIRD_OPENCODE_VERSION=V` | tries another version |

#![cfg(test)]

mod claude;
mod claude_code;
mod codex;
mod copilot;
mod gemini;
mod openclaw;
mod opencode;
mod sessions;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests of the program use the rest")]
mod support;
mod terminal;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use support::{
    Root,
    server::{Answer, ModelRequest},
    skipped,
};

/// How long to wait for the worker that a hook started.
const WORKER_TIMEOUT: Duration = Duration::from_secs(30);

/// What the model says.
const DECISION: &str = "We decided to name files by datum, because Brest has two.";

/// Creates a folder with a log and wisdom.
fn root_with_memory() -> Root {
    let root = Root::empty("tide");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    root.write("memory/2026-04-02.md", "- The harbour office names each datum ZH\n");
    root.write("WISDOM.md", "# A - Wisdom\n\n---\n\n**Tides**\nBrest is late.\n");
    root
}

/// Waits until so many sessions are in the logs, and returns the logs.
#[track_caller]
fn await_sessions(root: &Root, count: usize) -> String {
    let logs = || read_folder(&root.path("memory")).concat();
    await_value(logs, |it| it.matches(" Session in ").count() >= count)
}

/// Waits until there are so many session records, and returns them.
#[track_caller]
fn await_records(root: &Root, count: usize) -> Vec<String> {
    await_value(|| read_folder(&root.path("memory/sessions")), |it| it.len() >= count)
}

#[track_caller]
fn await_value<T: std::fmt::Debug>(read: impl Fn() -> T, is_it: impl Fn(&T) -> bool) -> T {
    let until = Instant::now() + WORKER_TIMEOUT;
    loop {
        let value = read();
        if is_it(&value) {
            return value;
        }
        assert!(Instant::now() < until, "too late: {value:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Returns the texts of the visible files in a folder, by their names.
fn read_folder(folder: &Path) -> Vec<String> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "md"));
    files.sort();
    files.iter().filter_map(|it| fs::read_to_string(it).ok()).collect()
}

/// Answers as a server of chat completions does: a question about memory with a call of `tool`, everything else with a decision.
fn chat_answer(request: &ModelRequest, tool: &str) -> Answer {
    let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let asks = last["role"] == "user" && last["content"].to_string().contains("Ask the memory");
    let (delta, reason) = if asks && request.body["tools"].to_string().contains(tool) {
        let call = json!({"name": tool, "arguments": r#"{"query": "datum"}"#});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": call});
        (json!({"role": "assistant", "tool_calls": [call]}), "tool_calls")
    } else {
        (json!({"role": "assistant", "content": DECISION}), "stop")
    };
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15});
    let chunk = |delta: &Value, reason: Option<&str>| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 1,
            "model": "m", "choices": [choice], "usage": reason.map(|_| &usage)});
        format!("data: {chunk}\n\n")
    };
    let body =
        [chunk(&delta, None), chunk(&json!({}), Some(reason)), "data: [DONE]\n\n".to_owned()];
    Answer::text(200, &body.concat()).with("content-type", "text/event-stream")
}

/// Returns the messages of the requests that offer tools, which are those of the agent.
fn agent_messages(requests: &[ModelRequest]) -> Vec<String> {
    let of_agent = requests.iter().filter(|it| it.body["tools"].as_array().is_some());
    of_agent.map(|it| it.body["messages"].to_string()).collect()
}

/// A program is there before all of its parts are, so that no other test may look meanwhile.
static INSTALLING: Mutex<()> = Mutex::new(());

/// Returns the program of an npm package, installed if necessary; `None`, with a message, if it cannot run here.
fn installed_client(
    package: &str,
    version: &str,
    program: &str,
    options: &[&str],
) -> Option<PathBuf> {
    if std::env::var_os("MEMOIRD_CLIENTS").is_none_or(|it| it != "1") {
        skipped("MEMOIRD_CLIENTS is not 1");
        return None;
    }
    if Command::new("node").arg("--version").output().is_err() {
        skipped("Node was not found");
        return None;
    }
    let name = format!("{}-{version}", package.replace(['@', '/'], "-"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.trim_start_matches('-'));
    let program = folder.join("node_modules").join(package).join(program);
    let _installing = INSTALLING.lock().unwrap_or_else(PoisonError::into_inner);
    if !program.is_file() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save"]).args(options).arg("--prefix");
        let done = npm.arg(&folder).arg(format!("{package}@{version}")).output();
        if !done.is_ok_and(|it| it.status.success()) || !program.is_file() {
            skipped(&format!("npm could not install {package} {version}"));
            return None;
        }
    }
    Some(program)
}

/// Returns a program of Node in this version, from the npm registry; `None`, with a message, if it cannot run here.
fn installed_node(version: &str) -> Option<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    installed_client(&format!("node-{os}-{arch}"), version, "bin/node", &[])
}
