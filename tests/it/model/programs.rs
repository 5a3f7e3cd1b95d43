//! A program in the place of a server.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Desk, Wire, spending::PART};
use crate::support::server::Server;

/// A reply without a fault.
const GOOD: &str = "### Decisions\n- Moved the importer to SQLite [2026-04-07:3]";

/// A program in the home that stands for a coding agent.
fn program(desk: &mut Desk, script: &str) {
    let path = desk.root.home("agent");
    desk.root.write("../agent", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    desk.set("/model/provider", json!("command"));
    desk.set("/model/command", json!([path]));
}

#[test]
fn a_program_is_asked_as_a_server_is() {
    let good = GOOD;
    for (name, script, code, reason) in [
        ("good", format!("/bin/cat >../prompt; echo '{good}'"), 0, ""),
        ("does not read", format!("echo '{good}'"), 0, ""),
        (
            "fails",
            "/bin/cat >/dev/null; echo 'secret words' >&2; exit 3".to_owned(),
            69,
            "it ended with 3",
        ),
        ("says nothing", "/bin/cat >/dev/null".to_owned(), 1, "the reply is empty"),
        ("hangs", "/bin/sleep 60".to_owned(), 69, "did not answer in time (in total"),
        // What it leaves behind holds its output open, and says no more than it did.
        ("child hangs", format!("/bin/sleep 61 & echo '{good}'"), 0, ""),
        ("child has gone away", format!("/usr/bin/setsid /bin/sleep 3 & echo '{good}'"), 0, ""),
        ("child says the rest", format!("(/bin/sleep 0.2; echo '{good}') & exit 0"), 0, ""),
        ("child hangs, and it failed", "/bin/sleep 61 & exit 4".to_owned(), 69, "it ended with 4"),
        ("closes its output", "exec >&- 2>&-; /bin/sleep 60".to_owned(), 69, "in time"),
        (
            "talks on",
            "while :; do echo 0123456789; done".to_owned(),
            69,
            "larger than 4 MB|in time",
        ),
        ("bytes", "printf '\\377\\376'".to_owned(), 69, "bytes that are not text"),
        ("killed", "kill -9 $$".to_owned(), 69, "it was killed by a signal"),
    ] {
        let mut desk = Desk::new(Wire::Openai, Server::fluent());
        program(&mut desk, &script);
        // Long enough that what ends before it does so for another reason.
        let total = if code == 0 { "40s" } else { "2s" };
        desk.set("/model/timeouts", json!({ "total": total }));
        let begun = Instant::now();
        let compacted = desk.compact();
        assert_eq!(compacted.ran.code, code, "{name} {}", compacted.ran);
        let said = compacted.reason();
        assert!(reason.split('|').any(|it| said.contains(it)), "{name} {}", compacted.ran);
        assert_eq!(desk.week().is_some(), code == 0, "{name}");
        assert!(!compacted.ran.stdout.contains("secret words"));
        assert_eq!(desk.server.count(), 0);
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn what_a_program_leaves_behind_is_ended_with_it() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    let left = desk.root.home("left");
    let script = format!("/bin/sleep 300 & echo $! >{}; echo '{GOOD}'", left.display());
    program(&mut desk, &script);
    assert_eq!(desk.compact().ran.code, 0);
    let left = fs::read_to_string(left).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
    // Nobody may have fetched its end yet.
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn a_program_that_is_not_there_is_told() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    desk.set("/model/provider", json!("command"));
    desk.set("/model/command", json!(["/nonexistent/agent"]));
    let compacted = desk.compact();
    assert_eq!(compacted.ran.code, 69, "{}", compacted.ran);
    assert!(compacted.reason().contains("`agent`: No such file"), "{}", compacted.ran);
}

#[test]
fn a_program_sees_no_key_and_knows_that_it_is_ours() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    let seen = desk.root.home("seen");
    program(&mut desk, &format!("/usr/bin/env >{}; /bin/cat >/dev/null", seen.display()));
    desk.compact();
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("MEMOIRD_NESTED=1") && !seen.contains(PART), "{seen}");
    assert!(!seen.contains("MEMOIRD_API_KEY"), "{seen}");
}

/// A program that is found as `claude`, and prints this. Its arguments and its input are written down.
fn claude(desk: &mut Desk, printed: &str, code: i32) {
    let folder = desk.root.home("bin");
    let (home, heredoc) = (desk.root.home("").display().to_string(), "EOF_PRINTED");
    desk.root.write(
        "../bin/claude",
        &format!(
            "#!/bin/sh\nfor it in \"$@\"; do printf '<%s>\\n' \"$it\"; done >{home}/arguments\n\
             /usr/bin/env >{home}/environment\n/bin/cat >{home}/input\n\
             /bin/cat <<'{heredoc}'\n{printed}\n{heredoc}\nexit {code}\n"
        ),
    );
    let file = folder.join("claude");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    desk.set("/model/provider", json!("claude-cli"));
    desk.set("/model/base_url", Value::Null);
}

/// What the command line prints when it has answered.
fn printed(result: &str) -> Value {
    json!({
        "type": "result", "subtype": "success", "is_error": false, "result": result,
        "stop_reason": "end_turn", "session_id": "s-1", "num_turns": 1, "duration_ms": 900,
        "total_cost_usd": 0.0123,
        "usage": {
            "input_tokens": 1000, "cache_read_input_tokens": 200, "cache_creation_input_tokens": 30,
            "output_tokens": 40,
        },
        "permission_denials": [],
    })
}

/// Does what is due with the command line in the path.
fn with_path(desk: &Desk, args: &[&str]) -> crate::support::Ran {
    let path = format!("{}:/usr/bin:/bin", desk.root.home("bin").display());
    desk.run_with(args, &[("PATH", &path)])
}

#[test]
fn the_claude_command_line_is_asked_in_its_own_form() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    claude(&mut desk, &printed(GOOD).to_string(), 0);
    let ran = with_path(&desk, &["compact", "--json"]).ok();
    assert!(desk.week().unwrap().contains("importer to SQLite"), "{ran}");
    let arguments = fs::read_to_string(desk.root.home("arguments")).unwrap();
    for words in [
        "<-p>\n<--output-format>\n<json>",
        "<--tools>\n<>\n",
        "<--strict-mcp-config>",
        "<--no-session-persistence>",
        "<--max-turns>\n<3>",
        "<--model>\n<scripted-1>",
        "<--system-prompt>\n<",
    ] {
        assert!(arguments.contains(words), "{words}: {arguments}");
    }
    // Logs are no arguments: everybody on the machine sees those.
    let input = fs::read_to_string(desk.root.home("input")).unwrap();
    assert!(input.contains("38 GB of data") && !arguments.contains("38 GB"), "{input}");
    let environment = fs::read_to_string(desk.root.home("environment")).unwrap();
    assert!(environment.contains("MEMOIRD_NESTED=1") && !environment.contains(PART));
    let usage = desk.run(&["usage", "--json"]).ok().json();
    assert_eq!((&usage["calls"], &usage["cost_usd"]), (&json!(1), &json!(0.0123)), "{usage:#}");
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(1230), &json!(40)));
    assert_eq!(
        (&usage["cache_read_tokens"], &usage["cache_write_tokens"]),
        (&json!(200), &json!(30))
    );
}

#[test]
fn a_form_goes_to_the_claude_command_line_and_comes_back_as_such() {
    let mut desk = Desk::new(Wire::Openai, Server::fluent());
    desk.set("/compaction/extract", json!(true));
    let mut answer = printed("Here you are.");
    answer["structured_output"] = json!({ "memories": [super::replies::memory()] });
    claude(&mut desk, &answer.to_string(), 0);
    let ran = with_path(&desk, &["compact", "extract"]).ok();
    assert!(desk.root.files().contains_key(super::replies::MEMORY), "{ran}");
    let arguments = fs::read_to_string(desk.root.home("arguments")).unwrap();
    let schema = arguments.split("<--json-schema>\n<").nth(1).unwrap();
    let schema: Value = serde_json::from_str(schema.split(">\n").next().unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["memories"]));
}

#[test]
fn what_the_claude_command_line_reports_is_told() {
    let with = |key: &str, value: Value| {
        let mut answer = printed("words of a log");
        if value == "max_tokens" {
            answer["usage"]["output_tokens"] = json!(6144);
        }
        answer[key] = value;
        answer.to_string()
    };
    for (printed, code, expected, reason) in [
        // It can call an error a success.
        (with("is_error", json!(true)), 0, 69, "it reports success"),
        (with("subtype", json!("error_max_turns")), 0, 69, "it reports error_max_turns"),
        (with("subtype", json!("error_max_budget_usd")), 0, 69, "it reports error_max_budget_usd"),
        (with("is_error", Value::Null), 0, 69, "it reports success"),
        (with("stop_reason", json!("max_tokens")), 0, 1, "cut off at 6144 tokens"),
        (with("stop_reason", json!("refusal")), 0, 1, "refused to answer"),
        (with("result", Value::Null), 0, 1, "the reply is empty"),
        ("Invalid API key".to_owned(), 0, 69, "text that is not JSON"),
        (String::new(), 0, 69, "text that is not JSON"),
        (with("result", json!("")), 3, 69, "it ended with 3"),
    ] {
        let mut desk = Desk::new(Wire::Openai, Server::fluent());
        claude(&mut desk, &printed, code);
        let ran = with_path(&desk, &["compact", "--json"]);
        assert_eq!(ran.code, expected, "{printed} {ran}");
        let said = ran.json()["jobs"][0]["reason"].as_str().unwrap().to_owned();
        assert!(said.contains(reason), "{printed} {ran}");
        assert!(desk.week().is_none() && !ran.stdout.contains("words of a log"), "{ran}");
    }
}
