//! opencode, without a terminal (`opencode run`).

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use crate::{
    DECISION, agent_messages, await_sessions, chat_answer, installed_client, root_with_memory,
    support::{
        Root,
        server::{ModelRequest, Server},
        write_file,
    },
};

/// The version that was tried.
const VERSION: &str = "1.18.33";
/// Settings of a user: no request leaves this machine. The program itself adds a `$schema` that is missing.
const SETTINGS: &str = r#"{
  "$schema": "https://opencode.ai/config.json",
  // the one at work
  "model": "local/m",
  "small_model": "local/m",
  "autoupdate": false,
  "share": "disabled",
  "provider": {
    "local": {
      "npm": "@ai-sdk/openai-compatible",
      "options": {"baseURL": "{env:MODEL_SERVER}/v1", "apiKey": "none"},
      "models": {"m": {"limit": {"context": 100000, "output": 4000}}}
    }
  } /* by hand */
}
"#;

/// Runs the program once, with a model that answers from the script.
fn run(program: &Path, root: &Root, args: &[&str]) -> (Output, Vec<ModelRequest>) {
    let server = Server::answering(|request| chat_answer(request, "memoird_memory_search"));
    let mut command = Command::new(program);
    command.args(args).current_dir(root.path("")).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", root.home(""));
    command.env("MODEL_SERVER", server.url()).env("OPENCODE_DISABLE_MODELS_FETCH", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (output, server.requests())
}

/// Runs one session of one prompt, and returns its requests.
fn run_session(program: &Path, root: &Root, prompt: &str) -> Vec<ModelRequest> {
    let (output, requests) = run(program, root, &["run", prompt]);
    let answer = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(answer.contains(DECISION), "{answer}");
    requests
}

#[test]
fn a_session_gets_the_context_and_is_recorded_for_the_next_one() {
    let version = std::env::var("MEMOIRD_OPENCODE_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let Some(program) = installed_client("opencode-ai", &version, "bin/opencode.exe", &[]) else {
        return;
    };
    let root = root_with_memory();
    let settings = root.home(".config/opencode/opencode.jsonc");
    write_file(&settings, SETTINGS);
    root.run(&["init", ".", "--opencode", "--yes"]).ok();
    let plugin = root.home(".config/opencode/plugins/memoird.js");
    assert!(fs::read_to_string(&plugin).unwrap().contains(env!("CARGO_BIN_EXE_memoird")));

    let requests = run_session(&program, &root, "Import the Brest table");
    let messages = agent_messages(&requests);
    assert!(messages[0].contains("<memoird-context>"), "{}", messages[0]);
    assert!(messages[0].contains("Brest is late."), "{}", messages[0]);
    let all = requests.iter().filter(|it| it.body.to_string().contains("memoird-context")).count();
    assert_eq!(all, messages.len(), "the title of a session needs no memory");
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: \"Import the Brest table\" ["), "{logs}");
    assert!(logs.contains(DECISION) && !logs.contains("Brest is late"), "{logs}");

    let messages = agent_messages(&run_session(&program, &root, "Ask the memory"));
    assert!(messages[0].contains(DECISION), "{}", messages[0]);
    let found = messages.last().unwrap();
    assert!(found.contains("names each datum ZH") && found.contains("call_1"), "{found}");
    let logs = await_sessions(&root, 2);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");
    assert_eq!(logs.matches(DECISION).count(), 2, "{logs}");

    // Neither the database nor an export has anything new.
    let report = root.run(&["import", "opencode", "--yes", "--days", "0", "--json"]).json();
    assert_eq!(
        (report["kept"].as_u64(), report["sessions"].as_array().unwrap().len()),
        (Some(0), 2)
    );
    let sessions = run(&program, &root, &["session", "list", "--format", "json"]).0.stdout;
    let sessions: serde_json::Value = serde_json::from_slice(&sessions).unwrap();
    let export = run(&program, &root, &["export", sessions[0]["id"].as_str().unwrap()]).0.stdout;
    root.write("export.json", &String::from_utf8(export).unwrap());
    let report = root.run(&["import", "opencode", "export.json", "--yes", "--days", "0", "--json"]);
    assert_eq!(report.json()["sessions"][0]["state"], "known", "{report}");

    root.run(&["init", "--opencode", "--uninstall", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&settings).unwrap(), SETTINGS);
    assert!(!plugin.exists());
    let messages = agent_messages(&run_session(&program, &root, "Go on"));
    assert!(!messages[0].contains("memoird-context"), "{}", messages[0]);
}
