//! Whatever comes in on stdin, the next request is answered, and stdout holds nothing but the protocol.

use std::fs;

use serde_json::json;

use super::{Client, made};

/// How much memory a process takes, in KiB, at the most so far.
fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn after_whatever_is_wrong_the_next_request_is_answered() {
    let root = made();
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
        let answer = client.ask("ping", json!({}));
        assert!(answer["result"].is_object(), "after {text}: {answer}");
    }
    for method in ["tools/unknown", "", "shutdown", "sampling/createMessage"] {
        let answer = client.ask(method, json!({}));
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    let hits = client.good("memory_search", &json!({ "query": "importer" }));
    assert_eq!(hits["hits"][0]["date"], "2026-03-03");
    let (status, rest) = client.close();
    assert!(status.success() && rest.is_empty(), "{rest:?}");
}

/// A line that is too long is dropped while it is read.
#[test]
fn a_line_without_end_takes_no_memory() {
    let root = made();
    let mut client = Client::new(&root, &[]);
    client.good("memory_status", &json!({}));
    let before = peak(client.id());
    let piece = vec![b'x'; 1 << 20];
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":5000,\"method\":\"ping\",\"params\":{\"a\":\"");
    for _ in 0..128 {
        client.write(&piece);
    }
    client.write(b"\"}}\n");
    client.good("memory_status", &json!({}));
    let grown = peak(client.id()).saturating_sub(before);
    assert!(grown < 80 * 1024, "a line of 128 MiB took {grown} KiB");
}

#[test]
fn it_ends_when_nobody_is_there() {
    let root = made();
    // Nothing said at all; half a line; a request that nobody waits for.
    for said in
        [&b""[..], b"{\"jsonrpc\":", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n"]
    {
        let mut client = Client::bare(&root, &[]);
        client.write(said);
        let (status, _) = client.close();
        assert!(status.code().is_some(), "{status}");
    }
    let mut client = Client::new(&root, &[]);
    client.write(b"{\"jsonrpc\":\"2.0\",\"id\":77,\"method\":\"tools/li");
    let (status, rest) = client.close();
    assert!(status.success() && rest.is_empty(), "{status} {rest:?}");
}

/// Who has closed the end that is written to wants no answer, though the other end is open.
#[test]
fn it_ends_when_nobody_reads() {
    use std::{
        io::Write as _,
        process::{Command, Stdio},
    };
    let root = made();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
    command.args(["mcp", "--root"]).arg(root.path("")).env_clear().env("HOME", root.home(""));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    let hello =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": super::hello() });
    // It may have ended before all was written.
    drop(writeln!(input, "{hello}"));
    // It ends by itself: `input` is open until then.
    assert!(child.wait().unwrap().success());
    drop(input);
}

/// A request that is cancelled holds up no other, and nothing comes of it but at most its answer.
#[test]
fn a_cancelled_request_holds_up_no_other() {
    let root = made();
    let mut client = Client::new(&root, &[]);
    let mut cancelled = Vec::new();
    for _ in 0..20 {
        let params = json!({ "name": "memory_search", "arguments": { "query": "importer" } });
        let id = client.send("tools/call", params);
        client.say("notifications/cancelled", json!({ "requestId": id }));
        cancelled.push(id);
    }
    client.say("notifications/cancelled", json!({ "requestId": 123_456 }));
    let hits = client.good("memory_search", &json!({ "query": "importer" }));
    assert_eq!(hits["hits"][0]["date"], "2026-03-03");
    let (status, rest) = client.close();
    assert!(status.success());
    for line in rest {
        let message: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(cancelled.contains(&message["id"].as_u64().unwrap()), "{line}");
    }
}

/// Whoever starts it by hand is told what it is for; a folder that is none is told before anything is
/// served.
#[test]
fn what_cannot_be_served_is_told_at_once() {
    let root = made();
    let ran = root.run_with_stdin(&["mcp", "--root", "/nonexistent"], "");
    assert!(ran.code != 0 && ran.stdout.is_empty() && !ran.stderr.is_empty(), "{ran}");
    let ran = root.run_with_stdin(&["--set", "mcp.write=perhaps", "mcp"], "");
    assert!(ran.code == 2 && ran.stdout.is_empty(), "{ran}");
}

/// What goes wrong while it serves goes to the agent, and nothing of ours to stdout.
#[test]
fn a_folder_that_goes_bad_meanwhile_is_told_to_the_agent() {
    let root = made();
    let mut client = Client::new(&root, &["-v"]);
    root.write("memoird.yaml", "zone: [\n");
    let said = client.bad("memory_search", &json!({ "query": "importer" }));
    assert!(said.contains("memoird.yaml"), "{said}");
    root.write("memoird.yaml", "zone: Europe/Berlin\n");
    client.good("memory_search", &json!({ "query": "importer" }));
    fs::remove_dir_all(root.path(".memoird")).unwrap();
    let said = client.bad("memory_trace", &json!({ "target": "2026-W10:16" }));
    assert!(said.contains("nothing is recorded yet"), "{said}");
    client.good("memory_search", &json!({ "query": "importer" }));
}
