//! `memoird mcp`: a client sends requests line by line and reads the answers.

mod concurrency;
mod notifications;
mod robustness;
mod sanitizing;
mod sdk;
mod tools;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::Root;

/// The longest wait for an answer, also on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(120);
/// The last version of the protocol with a handshake, and the first without.
const HANDSHAKE_PROTOCOL: &str = "2025-11-25";
const STATELESS_PROTOCOL: &str = "2026-07-28";

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// Messages that were read but not yet returned.
    unread: Vec<Value>,
    is_stateless: bool,
}

impl Client {
    /// Starts a server in a folder and does the handshake of older clients.
    pub(crate) fn new(root: &Root, args: &[&str]) -> Self {
        let mut client = Self::without_handshake(root, args);
        let answer = client.request("initialize", initialize_params());
        assert_eq!(answer["result"]["protocolVersion"], HANDSHAKE_PROTOCOL, "{answer}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    /// Starts a server for requests of newer clients, which have no handshake.
    pub(super) fn stateless(root: &Root, args: &[&str]) -> Self {
        let mut client = Self::without_handshake(root, args);
        client.is_stateless = true;
        client
    }

    /// Starts a server and sends nothing.
    pub(super) fn without_handshake(root: &Root, args: &[&str]) -> Self {
        let mut command = root.process(&[&["mcp"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Self { child, input, lines, last: 0, unread: Vec::new(), is_stateless: false }
    }

    /// Writes bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a notification.
    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let params = self.with_meta(params);
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.write(format!("{line}\n").as_bytes());
    }

    /// Sends a request, and returns its id.
    pub(super) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let params = self.with_meta(params);
        let line = json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params });
        self.write(format!("{line}\n").as_bytes());
        self.last
    }

    fn with_meta(&self, mut params: Value) -> Value {
        if self.is_stateless {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": STATELESS_PROTOCOL,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        params
    }

    /// Reads the next message; every line of stdout must be one.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(TIMEOUT).expect("no further message from the server");
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    /// Waits for the answer to a request.
    #[track_caller]
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next();
            if message["id"] == id {
                return message;
            }
            self.unread.push(message);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool, and returns its result.
    #[track_caller]
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.request("tools/call", params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool, checks that it succeeds, and returns its structured answer.
    #[track_caller]
    pub(super) fn call_ok(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool, checks that it fails, and returns the message.
    #[track_caller]
    pub(super) fn call_error(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a notification.
    #[track_caller]
    pub(super) fn await_notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.unread.iter().position(|it| it["method"] == method) {
                return self.unread.remove(at);
            }
            let message = self.next();
            self.unread.push(message);
        }
    }

    /// Closes stdin, waits for the end of the server, and returns the rest of its output.
    pub(super) fn close(&mut self) -> (ExitStatus, Vec<String>) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        (status, self.lines.iter().collect())
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn initialize_params() -> Value {
    json!({
        "protocolVersion": HANDSHAKE_PROTOCOL,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// Returns a compacted folder with a few weeks.
pub(super) fn compacted_root() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root
}
