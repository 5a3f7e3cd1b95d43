//! Copilot CLI, without a terminal (`--prompt`), with a model of its user.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    DECISION, agent_messages, await_sessions, chat_answer, installed_client, root_with_memory,
    support::{Root, server::Server, write_file},
};

/// The version that was tried.
const VERSION: &str = "1.0.102";
/// Servers of a user.
const SERVERS: &str = "{\n  \"mcpServers\": {}\n}\n";

/// Runs one session of one prompt, and returns the messages of its requests.
fn run_session(program: &Path, root: &Root, prompt: &str) -> Vec<String> {
    let server = Server::answering(|request| chat_answer(request, "memoird-memory_search"));
    let mut command = Command::new("node");
    command.arg(program).args(["--allow-all-tools", "--disable-builtin-mcps", "--prompt", prompt]);
    command.current_dir(root.path("")).stdin(Stdio::null());
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", root.home(""));
    command.env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", server.url()));
    command.env("COPILOT_PROVIDER_API_KEY", "none").env("COPILOT_MODEL", "gpt-5.4");
    command.env("COPILOT_AUTO_UPDATE", "false");
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert!(String::from_utf8_lossy(&output.stdout).contains(DECISION), "{stderr}");
    agent_messages(&server.requests())
}

#[test]
fn a_session_gets_the_context_and_is_recorded_for_the_next_one() {
    let version = std::env::var("MEMOIRD_COPILOT_VERSION").unwrap_or_else(|_| VERSION.to_owned());
    let Some(program) = installed_client("@github/copilot", &version, "npm-loader.js", &[]) else {
        return;
    };
    let root = root_with_memory();
    let servers = root.home(".copilot/mcp-config.json");
    write_file(&servers, SERVERS);
    root.run(&["init", ".", "--copilot", "--yes"]).ok();

    let messages = run_session(&program, &root, "Import the Brest table");
    assert!(messages[0].contains("<memoird-context>"), "{}", messages[0]);
    assert!(messages[0].contains("Brest is late."), "{}", messages[0]);
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    assert!(logs.contains(DECISION) && !logs.contains("Brest is late"), "{logs}");

    let messages = run_session(&program, &root, "Ask the memory");
    assert!(messages[0].contains(DECISION), "{}", messages[0]);
    let found = messages.last().unwrap();
    assert!(found.contains("names each datum ZH") && found.contains("call_1"), "{found}");
    let logs = await_sessions(&root, 2);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");
    assert_eq!(logs.matches(DECISION).count(), 2, "{logs}");
    let report = root.run(&["import", "copilot", "--yes", "--days", "0", "--json"]).json();
    assert_eq!(
        (report["kept"].as_u64(), report["sessions"].as_array().unwrap().len()),
        (Some(0), 2)
    );

    root.run(&["init", "--copilot", "--uninstall", "--yes"]).ok();
    assert_eq!(fs::read_to_string(&servers).unwrap(), SERVERS);
    assert_eq!(fs::read_dir(root.home(".copilot/hooks")).unwrap().count(), 0);
    let messages = run_session(&program, &root, "Go on");
    assert!(!messages[0].contains("memoird-context"), "{}", messages[0]);
}
