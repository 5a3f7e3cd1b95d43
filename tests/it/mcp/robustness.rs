//! Invalid input and disconnects: the server answers the next request, and stdout contains only
//! protocol messages.

use std::fs;

use serde_json::json;

use super::{Client, compacted_root};

/// Returns the peak memory of a process in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn the_server_answers_after_any_invalid_input() {
    let root = compacted_root();
    let mut client = Client::new(&root, &[]);
    let deep = "[".repeat(200_000);
    let lines: [&[u8]; 16] = [
        b"",
        b"{",
        b"not json at all",
        b"[]",
        b"null",
        b"42",
        b"{\"jsonrpc\":\"2.0\"}",
        b"{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7001,\"method\":7}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7002,\"method\":\"tools/call\",\"params\":[1]}",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":9999,\"result\":{}}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7003,\"method\":\"ping\",\"params\":{\"a\":\"\\ud800\"}}",
        b"\xff\xfe\x00\xf0\x9f",
    ];
    for line in lines.into_iter().chain([deep.as_bytes()]) {
        client.write(line);
        client.write(b"\n");
        let text = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
        let answer = client.request("ping", json!({}));
        assert!(answer["result"].is_object(), "after {text}: {answer}");
    }
    for method in ["tools/unknown", "", "shutdown", "sampling/createMessage"] {
        let answer = client.request(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    let hits = client.call_ok("memory_search", &json!({ "query": "importer" }));
    assert_eq!(hits["hits"][0]["date"], "2026-03-03");
    let (status, rest) = client.close();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
}

/// An oversized line is dropped while it is read.
#[test]
fn an_oversized_line_takes_no_memory() {
    let root = compacted_root();
    let mut client = Client::new(&root, &[]);
    client.call_ok("memory_status", &json!({}));
    let before = peak_kib(client.pid());
    let piece = vec![b'x'; 1 << 20];
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":5000,\"method\":\"ping\",\"params\":{\"a\":\"");
    for _ in 0..128 {
        client.write(&piece);
    }
    client.write(b"\"}}\n");
    client.call_ok("memory_status", &json!({}));
    let grown = peak_kib(client.pid()).saturating_sub(before);
    assert!(grown < 80 * 1024, "a line of 128 MiB took {grown} KiB");
}

#[test]
fn the_server_ends_when_stdin_closes() {
    let root = compacted_root();
    // No input, half a line, and a request without a reader.
    for input in
        [&b""[..], b"{\"jsonrpc\":", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"]
    {
        let mut client = Client::without_handshake(&root, &[]);
        client.write(input);
        let (status, _) = client.close();
        assert!(status.code().is_some(), "{status}");
    }
    let mut client = Client::new(&root, &[]);
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/li");
    let (status, rest) = client.close();
    assert!(status.success() && rest.is_empty(), "{status} {rest:?}");
}

/// A client that closes its reading end wants no answer, even if stdin stays open.
#[test]
fn the_server_ends_when_stdout_closes() {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };
    let root = compacted_root();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
    command.args(["mcp", "--root"]).arg(root.path("")).env_clear().env("HOME", root.home(""));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": super::initialize_params() });
    // The server may end before everything is written.
    drop(writeln!(input, "{initialize}"));
    // It ends by itself: stdin is still open.
    assert!(child.wait().unwrap().success());
    drop(input);
}

/// The only output of a cancelled request may be its answer.
#[test]
fn a_cancelled_request_delays_no_other() {
    let root = compacted_root();
    let mut client = Client::new(&root, &[]);
    let mut cancelled = Vec::new();
    for _ in 0..20 {
        let params = json!({ "name": "memory_search", "arguments": { "query": "importer" } });
        let id = client.send("tools/call", params);
        client.notify("notifications/cancelled", json!({ "requestId": id }));
        cancelled.push(id);
    }
    client.notify("notifications/cancelled", json!({ "requestId": 123_456 }));
    let hits = client.call_ok("memory_search", &json!({ "query": "importer" }));
    assert_eq!(hits["hits"][0]["date"], "2026-03-03");
    let (status, rest) = client.close();
    assert!(status.success());
    for line in rest {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(cancelled.contains(&message["id"].as_u64().unwrap()), "{line}");
    }
}

/// A bad start fails before the server answers anything.
#[test]
fn an_invalid_folder_or_setting_fails_at_start() {
    let root = compacted_root();
    let ran = root.run_with_stdin(&["mcp", "--root", "/nonexistent"], "");
    assert!(ran.code != 0 && ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran}");
    let ran = root.run_with_stdin(&["--set", "mcp.write=perhaps", "mcp"], "");
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran}");
}

/// Errors go to the agent as answers; stdout contains only protocol messages.
#[test]
fn a_folder_that_becomes_invalid_is_reported_to_the_agent() {
    let root = compacted_root();
    let mut client = Client::new(&root, &["-v"]);
    root.write("memoird.yaml", "zone: [\n");
    let message_text = client.call_error("memory_search", &json!({ "query": "importer" }));
    assert!(message_text.contains("memoird.yaml"), "{message_text}");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    client.call_ok("memory_search", &json!({ "query": "importer" }));
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    let message_text = client.call_error("memory_trace", &json!({ "target": "2026-W10:11" }));
    assert!(message_text.contains("nothing is recorded yet"), "{message_text}");
    client.call_ok("memory_search", &json!({ "query": "importer" }));
}
