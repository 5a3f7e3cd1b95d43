//! Drives the server with the official clients: the Python client with both protocols, if it is
//! installed, and the inspector in its command-line form, if `MEMOIRD_INSPECTOR` gives the command to
//! start it (`npx -y @modelcontextprotocol/inspector`).

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use super::compacted_root;
use crate::support::NOW;

#[expect(clippy::print_stderr, reason = "the person should see what was called")]
#[test]
fn the_official_client_succeeds_with_every_call() {
    let python = std::env::var("MEMOIRD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/mcp_check.py");
    let root = compacted_root();
    root.write(
        "memory/feedback_tests.md",
        "---\nname: tests\ndescription: Run the small tests first\ntype: feedback\n---\nRun the small tests first.\n",
    );
    let parameters = json!({
        "command": assert_cmd::cargo::cargo_bin!("memoird"),
        "args": ["--root", root.path(""), "mcp", "--allow-write"],
        "env": { "HOME": root.home(""), "TZ": "Europe/Berlin", "MEMOIRD_NOW": NOW },
        "cwd": root.path(""),
        "change": root.path("memory/weekly/2026-W11.md"),
    });
    let mut command = Command::new(&python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: `{python}` was not found");
        return;
    };
    // Without the package the script ends before it reads stdin.
    drop(child.stdin.take().unwrap().write_all(parameters.to_string().as_bytes()));
    let ended = child.wait_with_output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    match ended.status.code() {
        Some(77) => eprintln!("{stderr}"),
        code => assert_eq!(code, Some(0), "{stdout}{stderr}"),
    }
    eprint!("{stdout}");
}

#[expect(clippy::print_stderr, reason = "the person should see what was called")]
#[test]
fn the_inspector_succeeds_with_every_call() {
    let Ok(inspector) = std::env::var("MEMOIRD_INSPECTOR") else {
        eprintln!("skipped: MEMOIRD_INSPECTOR is not set");
        return;
    };
    let root = compacted_root();
    root.write(
        "memory/feedback_tests.md",
        "---\nname: tests\ndescription: Run the small tests first\ntype: feedback\n---\nRun the small tests first.\n",
    );
    let program = assert_cmd::cargo::cargo_bin!("memoird").display().to_string();
    let folder = root.path("").display().to_string();
    let inspect = |method: &str, more: &[&str]| {
        let mut words = inspector.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        command.args(words).args(["--cli", "-e", &format!("MEMOIRD_NOW={NOW}"), &program]);
        command.args(["--root", &folder, "mcp", "--allow-write", "--method", method]).args(more);
        let ended = command.stdin(Stdio::null()).output().unwrap();
        let stdout = String::from_utf8_lossy(&ended.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{method} {more:?}: {stdout}{wrong}");
        eprintln!("{method} {}: ok, {} bytes", more.join(" "), stdout.len());
        serde_json::from_str::<Value>(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{wrong}"))
    };
    let call = |tool: &str, arguments: &[&str]| {
        let mut more = vec!["--tool-name", tool];
        for argument in arguments {
            more.extend(["--tool-arg", argument]);
        }
        let result = inspect("tools/call", &more);
        assert_eq!(result["isError"], false, "{tool}: {result}");
    };
    assert_eq!(inspect("tools/list", &[])["tools"].as_array().unwrap().len(), 14);
    call("memory_search", &["query=importer"]);
    call("memory_read", &["file=2026-W10"]);
    call("memory_context", &[]);
    call("memory_log", &["text=Asked by the inspector"]);
    call("memory_correct", &["target=2026-W10:11", "text=Importer v2 shipped, 3.1 s per GB"]);
    call("memory_trace", &["target=2026-03-03:4", "up=true"]);
    call("memory_coverage", &["period=2026-W10"]);
    call("memory_list", &[]);
    call("memory_get", &["name=tests"]);
    call("memory_session_import", &["text=# Pump"]);
    call("memory_session_list", &[]);
    let records =
        inspect("tools/call", &["--tool-name", "core_memory", "--tool-arg", "operation=list"]);
    let id = records["structuredContent"]["list"]["records"][0]["id"].as_str().unwrap();
    call("memory_session_export", &[&format!("id={id}")]);
    call("core_memory", &["operation=export", &format!("id={id}")]);
    call("memory_status", &[]);
    for it in inspect("resources/list", &[])["resources"].as_array().unwrap() {
        inspect("resources/read", &["--uri", it["uri"].as_str().unwrap()]);
    }
    inspect("resources/templates/list", &[]);
    for it in inspect("prompts/list", &[])["prompts"].as_array().unwrap() {
        inspect("prompts/get", &["--prompt-name", it["name"].as_str().unwrap()]);
    }
}
