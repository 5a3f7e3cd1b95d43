//! Claude Code: hooks and MCP server from its settings, and the same as a plugin.

use serde_json::{Value, json};

use crate::{
    await_records, await_sessions, await_value,
    claude::{Claude, Rule, allow, call, installed_claude, read_home, say},
    root_with_memory,
    support::write_file,
};

/// Settings of a user.
const SETTINGS: &str =
    "{ \"model\": \"opus\",\n    \"permissions\": {\"allow\": [ \"Bash(ls)\" ]} }\n";
const DECISION: &str = "We decided to name files by datum, because Brest has two.";

/// The model searches the memory when asked to, and otherwise decides.
fn rules() -> Vec<Rule> {
    let search = |id: &str, name: &str| vec![call(id, name, &json!({"query": "datum"}))];
    vec![
        ("Thanks", vec![say("You are welcome.")]),
        ("toolu_memory", vec![say("The harbour office names it.")]),
        ("Ask the memory", search("toolu_memory", "mcp__memoird__memory_search")),
        ("Ask the plugin", search("toolu_memory", "mcp__plugin_memoird_memoird__memory_search")),
    ]
}

/// Returns the result of the call of the memory in the last request.
#[track_caller]
fn memory_result(requests: &[String]) -> String {
    let last: Value = serde_json::from_str(requests.last().unwrap()).unwrap();
    let messages = last.as_array().unwrap().iter();
    let blocks = messages.filter_map(|it| it["content"].as_array()).flatten();
    let result = blocks.rev().find(|it| it["tool_use_id"] == "toolu_memory");
    result.unwrap_or_else(|| panic!("{last:#}")).to_string()
}

#[test]
fn a_session_gets_the_context_and_is_recorded_for_the_next_one() {
    let Some(program) = installed_claude() else { return };
    let root = root_with_memory();
    write_file(&root.home(".claude/settings.json"), SETTINGS);
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    let claude = Claude::new(&program, &root, rules(), DECISION);

    // Two turns and a compaction.
    let mut talk = claude.talk(&root.path(""), allow, &[]);
    talk.turn("Import the Brest table");
    let first = &claude.requests()[0];
    assert!(first.contains("<memoird-context>") && first.contains("Brest is late."), "{first}");
    talk.turn("/compact keep the plan");
    // The hook before a compaction records the session while it goes on.
    let record = await_records(&root, 1).remove(0);
    assert!(record.contains("  Import the Brest table\n"), "{record}");
    talk.turn("Thanks, we never push on Fridays");
    let session = talk.end();
    let is_whole = |it: &String| it.contains("  Thanks, we never push on Fridays\n");
    let records = await_value(|| await_records(&root, 1), |it| it.iter().any(is_whole));
    assert!(records.iter().all(|it| it.contains(&session)), "{records:#?}");
    let logs = await_sessions(&root, 2);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    assert!(logs.contains("we never push on Fridays"), "{logs}");
    assert_eq!(logs.matches(DECISION).count(), 1, "{logs}");
    assert!(!logs.contains("Brest is late"), "{logs}");

    // The next session knows the decision, and asks the server for more.
    let requests = claude.prompt("Ask the memory", &["--allowedTools", "mcp__memoird"]);
    assert!(requests[0].contains(DECISION), "{}", requests[0]);
    let result = memory_result(&requests);
    assert!(result.contains("names each datum ZH"), "{result}");
    let logs = await_sessions(&root, 3);
    assert_eq!(logs.matches("names each datum ZH").count(), 1, "no search is logged: {logs}");

    root.run(&["init", "--claude-code", "--uninstall", "--yes"]).ok();
    assert_eq!(read_home(&root, ".claude/settings.json"), SETTINGS);
    // The program itself has written to this file since.
    let state: Value = serde_json::from_str(&read_home(&root, ".claude.json")).unwrap();
    assert_eq!(state.get("mcpServers"), None);
    assert!(state.get("numStartups").or(state.get("userID")).is_some(), "{state}");
    let requests = claude.prompt("Go on", &[]);
    assert!(!requests[0].contains("memoird-context"), "{}", requests[0]);
}

#[test]
fn the_plugin_is_valid_and_does_the_same() {
    let Some(program) = installed_claude() else { return };
    let root = root_with_memory();
    root.run(&["init", ".", "--claude-code", "--plugin", "~/plugin"]).ok();
    let claude = Claude::new(&program, &root, rules(), DECISION);
    let folder = root.home("plugin");
    let folder = folder.to_str().unwrap();
    let run = |args: &[&str]| {
        let output = claude.run(args);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        assert!(output.status.success(), "{args:?}: {text}");
        text
    };
    let report = run(&["plugin", "validate", "--strict", "--profile", "directory", folder]);
    assert!(!report.contains('⚠') && !report.contains("Advice"), "{report}");
    run(&["plugin", "marketplace", "add", folder]);
    run(&["plugin", "install", "memoird@memoird"]);

    let requests = claude.prompt("Import the Brest table", &[]);
    assert_eq!(requests[0].matches("<memoird-context>").count(), 1, "{}", requests[0]);
    let logs = await_sessions(&root, 1);
    assert!(logs.contains("Session in tide: Import the Brest table ["), "{logs}");
    let tools = ["--allowedTools", "mcp__plugin_memoird_memoird"];
    let requests = claude.prompt("Ask the plugin", &tools);
    assert!(requests[0].contains(DECISION), "{}", requests[0]);
    let result = memory_result(&requests);
    assert!(result.contains("names each datum ZH"), "{result}");
    await_sessions(&root, 2);

    // With the settings, too, a session still has one context.
    root.run(&["init", ".", "--claude-code", "--yes"]).ok();
    let requests = claude.prompt("Go on", &[]);
    assert_eq!(requests[0].matches("<memoird-context>").count(), 1, "{}", requests[0]);
    await_sessions(&root, 3);
    root.run(&["init", "--claude-code", "--uninstall", "--yes"]).ok();
    run(&["plugin", "uninstall", "memoird@memoird"]);
    run(&["plugin", "marketplace", "remove", "memoird"]);
    let requests = claude.prompt("Go on", &[]);
    assert!(!requests[0].contains("memoird-context"), "{}", requests[0]);
}
