//! A program in place of a model server.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Wire, Workspace, spending::PART};
use crate::support::server::Server;

/// A valid reply.
const GOOD: &str = "### Decisions\n- Moved the importer to SQLite [2026-04-07:3]";

/// Configures a script as the model program.
fn program(workspace: &mut Workspace, script: &str) {
    let path = workspace.root.home("agent");
    workspace.root.write("../agent", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    workspace.set("/model/provider", json!("command"));
    workspace.set("/model/command", json!([path]));
}

#[test]
fn every_way_a_program_may_end_is_handled() {
    let valid_reply = GOOD;
    for (name, script, code, reason) in [
        ("good", format!("/bin/cat >../prompt; echo '{valid_reply}'"), 0, ""),
        ("does not read", format!("echo '{valid_reply}'"), 0, ""),
        (
            "fails",
            "/bin/cat >/dev/null; echo 'secret words' >&2; exit 3".to_owned(),
            69,
            "it ended with 3",
        ),
        ("says nothing", "/bin/cat >/dev/null".to_owned(), 1, "the reply is empty"),
        ("hangs", "/bin/sleep 60".to_owned(), 69, "did not answer in time (in total"),
        // A child process that keeps the output open does not delay or change the reply.
        ("child hangs", format!("/bin/sleep 61 & echo '{valid_reply}'"), 0, ""),
        (
            "child in its own session",
            format!("/usr/bin/setsid /bin/sleep 3 & echo '{valid_reply}'"),
            0,
            "",
        ),
        (
            "child prints the reply",
            format!("(/bin/sleep 0.2; echo '{valid_reply}') & exit 0"),
            0,
            "",
        ),
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
        let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
        program(&mut workspace, &script);
        // Long enough that programs which end earlier do so for another reason.
        let total = if code == 0 { "40s" } else { "2s" };
        workspace.set("/model/timeouts", json!({ "total": total }));
        let begun = Instant::now();
        let compacted = workspace.compact();
        assert_eq!(compacted.ran.code, code, "{name} {}", compacted.ran);
        let actual = compacted.reason();
        assert!(reason.split('|').any(|it| actual.contains(it)), "{name} {}", compacted.ran);
        assert_eq!(workspace.week().is_some(), code == 0, "{name}");
        assert!(!compacted.ran.stdout.contains("secret words"));
        assert_eq!(workspace.server.count(), 0);
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {:?}", begun.elapsed());
    }
}

#[test]
fn child_processes_of_a_program_are_ended() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    let left = workspace.root.home("left");
    let script = format!("/bin/sleep 300 & echo $! >{}; echo '{GOOD}'", left.display());
    program(&mut workspace, &script);
    assert_eq!(workspace.compact().ran.code, 0);
    let left = fs::read_to_string(left).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", left.trim())).unwrap_or_default();
    // It may still be a zombie.
    assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
}

#[test]
fn a_missing_program_is_reported() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    workspace.set("/model/provider", json!("command"));
    workspace.set("/model/command", json!(["/nonexistent/agent"]));
    let compacted = workspace.compact();
    assert_eq!(compacted.ran.code, 69, "{}", compacted.ran);
    assert!(compacted.reason().contains("`agent`: No such file"), "{}", compacted.ran);
}

#[test]
fn a_program_gets_no_key_and_the_nested_marker() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    let seen = workspace.root.home("seen");
    program(&mut workspace, &format!("/usr/bin/env >{}; /bin/cat >/dev/null", seen.display()));
    workspace.compact();
    let seen = fs::read_to_string(seen).unwrap();
    assert!(seen.contains("MEMOIRD_NESTED=1") && !seen.contains(PART), "{seen}");
    assert!(!seen.contains("MEMOIRD_API_KEY"), "{seen}");
}

/// Installs a script named `claude` that prints `printed` and records its arguments and input.
fn install_claude(workspace: &mut Workspace, printed: &str, code: i32) {
    let folder = workspace.root.home("bin");
    let (home, heredoc) = (workspace.root.home("").display().to_string(), "EOF_PRINTED");
    workspace.root.write(
        "../bin/claude",
        &format!(
            "#!/bin/sh\nfor it in \"$@\"; do printf '<%s>\\n' \"$it\"; done >{home}/arguments\n\
             /usr/bin/env >{home}/environment\n/bin/cat >{home}/input\n\
             /bin/cat <<'{heredoc}'\n{printed}\n{heredoc}\nexit {code}\n"
        ),
    );
    let file = folder.join("claude");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o700)).unwrap();
    workspace.set("/model/provider", json!("claude-cli"));
    workspace.set("/model/base_url", Value::Null);
}

/// Returns the output of the Claude CLI for a reply.
fn claude_output(result: &str) -> Value {
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

/// Runs the program with the installed script in the path.
fn run_with_path(workspace: &Workspace, args: &[&str]) -> crate::support::CommandOutput {
    let path = format!("{}:/usr/bin:/bin", workspace.root.home("bin").display());
    workspace.run_with(args, &[("PATH", &path)])
}

#[test]
fn the_claude_cli_gets_its_own_arguments_and_its_usage_is_recorded() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    install_claude(&mut workspace, &claude_output(GOOD).to_string(), 0);
    let ran = run_with_path(&workspace, &["compact", "--json"]).ok();
    assert!(workspace.week().unwrap().contains("importer to SQLite"), "{ran}");
    let arguments = fs::read_to_string(workspace.root.home("arguments")).unwrap();
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
    // Log text is passed on stdin: every user of the machine can see arguments.
    let input = fs::read_to_string(workspace.root.home("input")).unwrap();
    assert!(input.contains("38 GB of data") && !arguments.contains("38 GB"), "{input}");
    let environment = fs::read_to_string(workspace.root.home("environment")).unwrap();
    assert!(environment.contains("MEMOIRD_NESTED=1") && !environment.contains(PART));
    assert!(!environment.contains("ANTHROPIC_"), "{environment}");
    let usage = workspace.run(&["usage", "--json"]).ok().json();
    assert_eq!((&usage["calls"], &usage["cost_usd"]), (&json!(1), &json!(0.0123)), "{usage:#}");
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(1230), &json!(40)));
    assert_eq!(
        (&usage["cache_read_tokens"], &usage["cache_write_tokens"]),
        (&json!(200), &json!(30))
    );
}

#[test]
fn the_claude_cli_gets_the_schema_and_returns_structured_output() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    workspace.set("/compaction/extract", json!(true));
    let mut answer = claude_output("Here you are.");
    answer["structured_output"] = json!({ "statements": [super::replies::statement()] });
    install_claude(&mut workspace, &answer.to_string(), 0);
    let ran = run_with_path(&workspace, &["compact", "extract"]).ok();
    assert!(workspace.root.files().contains_key(super::replies::MEMORY), "{ran}");
    let arguments = fs::read_to_string(workspace.root.home("arguments")).unwrap();
    let schema = arguments.split("<--json-schema>\n<").nth(1).unwrap();
    let schema: Value = serde_json::from_str(schema.split(">\n").next().unwrap()).unwrap();
    assert_eq!(schema["required"], json!(["statements"]));
}

#[test]
fn errors_of_the_claude_cli_are_reported() {
    let with = |key: &str, value: Value| {
        let mut answer = claude_output("words of a log");
        if value == "max_tokens" {
            answer["usage"]["output_tokens"] = json!(6144);
        }
        answer[key] = value;
        answer.to_string()
    };
    let not_logged_in = json!({"type": "result", "subtype": "success", "is_error": true,
        "duration_api_ms": 0, "result": "Not logged in · Please run /login", "total_cost_usd": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0}})
    .to_string();
    for (printed, code, expected, reason) in [
        (not_logged_in.clone(), 1, 69, "it says: Not logged in"),
        (not_logged_in, 0, 69, "it says: Not logged in"),
        (with("is_error", json!(true)), 1, 69, "it reports success"),
        // The CLI may report an error with the subtype `success`.
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
        let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
        install_claude(&mut workspace, &printed, code);
        let ran = run_with_path(&workspace, &["compact", "--json"]);
        assert_eq!(ran.code, expected, "{printed} {ran}");
        let actual = ran.json()["jobs"][0]["reason"].as_str().unwrap().to_owned();
        assert!(actual.contains(reason), "{printed} {ran}");
        assert!(workspace.week().is_none() && !ran.stdout.contains("words of a log"), "{ran}");
    }
}

#[test]
fn the_claude_cli_gets_the_variables_of_its_account_and_the_network() {
    let mut workspace = Workspace::new(Wire::Openai, Server::well_behaved());
    install_claude(&mut workspace, &claude_output("{\"answer\": \"ready\"}").to_string(), 0);
    let path = format!("{}:/usr/bin:/bin", workspace.root.home("bin").display());
    let variables = [
        ("PATH", &path[..]),
        ("ANTHROPIC_BASE_URL", "https://llm.example.org"),
        ("CLAUDE_CODE_OAUTH_TOKEN", "token"),
        ("CLAUDE_CONFIG_DIR", "/somewhere"),
        ("HTTPS_PROXY", "http://proxy.example.org"),
        ("no_proxy", "localhost"),
        ("CLAUDECODE", "1"),
        ("OTHER_SECRET", "other"),
    ];
    let ran = workspace.run_with(&["model", "test", "--json"], &variables).ok();
    let environment = fs::read_to_string(workspace.root.home("environment")).unwrap();
    for (name, value) in &variables[1..6] {
        assert!(environment.contains(&format!("{name}={value}\n")), "{name}: {environment}");
    }
    assert!(!environment.contains("CLAUDECODE") && !environment.contains("OTHER"), "{environment}");
    // `model test` and `usage` name the same cost.
    assert_eq!(ran.json()["cost_usd"], 0.0123);
    assert_ne!(ran.json()["forecast"]["week"]["usd"], 0.0, "{ran}");
    let text = workspace.run_with(&["model", "test"], &variables).ok();
    assert!(text.stderr.contains("this call cost 0.012300 USD"), "{text}");
    assert!(!text.stderr.contains("cost nothing"), "{text}");
    let usage = workspace.run(&["usage", "--json"]).ok().json();
    assert_eq!((&usage["calls"], &usage["cost_usd"]), (&json!(2), &json!(0.0246)), "{usage:#}");
}
