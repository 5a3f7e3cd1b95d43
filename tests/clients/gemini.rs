//! Gemini CLI, without a terminal (`--prompt`).

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    DECISION, await_sessions, installed_client, root_with_memory,
    support::{
        Root,
        server::{Answer, ModelRequest, Server},
        write_file,
    },
};

/// The version that was tried.
const VERSION: &str = "0.61.0";
/// Settings of a user: no request leaves this machine.
const SETTINGS: &str = r#"{
  // the one at work
  "security": {"auth": {"selectedType": "gemini-api-key"}},
  "privacy": {"usageStatisticsEnabled": false},
  "general": {"enableAutoUpdate": false} /* by hand */
}
"#;

/// Answers a question about memory with a call of our server, and everything else with a decision.
fn answer(request: &ModelRequest) -> Answer {
    let contents = request.body["contents"].as_array().cloned().unwrap_or_default();
    let last = contents.last().map(Value::to_string).unwrap_or_default();
    let part = if last.contains("Ask the memory") && !last.contains("functionResponse") {
        json!({"functionCall": {"name": "mcp_memoird_memory_search", "args": {"query": "datum"}}})
    } else {
        json!({"text": DECISION})
    };
    let reply = json!({
        "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [part]}}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    });
    if request.path.contains("alt=sse") {
        let body = format!("data: {reply}\r\n\r\n");
        Answer::text(200, &body).with("content-type", "text/event-stream")
    } else {
        Answer::json(200, &reply)
    }
}

/// Runs one session of one prompt, and returns the contents of its requests.
fn run_session(program: &Path, root: &Root, prompt: &str) -> Vec<String> {
    let server = Server::answering(answer);
    let mut command = Command::new("node");
    command.arg(program).args(["--model", "gemini-2.5-pro", "--approval-mode", "yolo"]);
    command.args(["--prompt", prompt]).current_dir(root.path("")).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", root.home(""));
    command.env("GEMINI_API_KEY", "none").env("GOOGLE_GEMINI_BASE_URL", server.url());
    command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(DECISION), "{stderr}");
    server.requests().iter().map(|it| it.body["contents"].to_string()).collect()
}

#[test]
fn a_session_gets_the_context_and_is_recorded_for_the_next_one() {
    let version = std::env::var("MEMOIRD_GEMINI_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let Some(program) = installed_client("@google/gemini-cli", &version, "bundle/gemini.js", &[])
    else {
        return;
    };
    let root = root_with_memory();
    let settings = root.home(".gemini/settings.json");
    write_file(&settings, SETTINGS);
    root.run(&["init", ".", "--gemini", "--yes"]).ok();

    let requests = run_session(&program, &root, "Import the Brest table");
    // The program escapes what a hook answers.
    assert!(requests[0].contains("&lt;memoird-context&gt;"), "{}", requests[0]);
    assert!(requests[0].contains("Brest is late."), "{}", requests[0]);
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    assert!(logs.contains(DECISION) && !logs.contains("Brest is late"), "{logs}");

    let requests = run_session(&program, &root, "Ask the memory");
    assert!(requests[0].contains(DECISION), "{}", requests[0]);
    let found = requests.last().unwrap();
    let response = found.split("functionResponse").nth(1).unwrap_or_else(|| panic!("{found}"));
    assert!(response.contains("names each datum ZH"), "{response}");
    let logs = await_sessions(&root, 2);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");
    assert_eq!(logs.matches(DECISION).count(), 2, "{logs}");

    root.run(&["init", "--gemini", "--uninstall", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);
    let requests = run_session(&program, &root, "Go on");
    assert!(!requests[0].contains("memoird-context"), "{}", requests[0]);
}
