//! `memoird mcp`: what an agent's program sends and what comes back, line by line.

mod concurrency;
mod notifications;
mod robustness;
mod sanitizing;
mod sdk;
mod tools;

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{NOW, Root};

/// No answer takes so long, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// The last version of the protocol that has a handshake, and the first that has none.
const OLD: &str = "2025-11-25";
const NEW: &str = "2026-07-28";

/// A client of one server.
#[derive(Debug)]
pub(super) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last: u64,
    /// Messages that were asked for by nobody.
    told: Vec<Value>,
    is_new: bool,
}

impl Client {
    /// Starts a server in a folder, and shakes hands as older clients do.
    pub(super) fn new(root: &Root, args: &[&str]) -> Self {
        let mut client = Self::bare(root, args);
        let shaken = client.ask("initialize", hello());
        assert_eq!(shaken["result"]["protocolVersion"], OLD, "{shaken}");
        client.say("notifications/initialized", json!({}));
        client
    }

    /// Starts a server, and will ask as newer clients do: with no handshake.
    pub(super) fn stateless(root: &Root, args: &[&str]) -> Self {
        let mut client = Self::bare(root, args);
        client.is_new = true;
        client
    }

    /// Starts a server and says nothing.
    pub(super) fn bare(root: &Root, args: &[&str]) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
        command
            .arg("mcp")
            .args(args)
            .env_clear()
            .env("PATH", "/nonexistent")
            .env("HOME", root.home(""))
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", NOW)
            .current_dir(root.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
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
        Self { child, input, lines, last: 0, told: Vec::new(), is_new: false }
    }

    /// Writes bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    /// Sends a notification.
    pub(super) fn say(&mut self, method: &str, params: Value) {
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
        if self.is_new {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": NEW,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            });
        }
        params
    }

    /// Reads the next message; whatever stands on stdout has to be one.
    #[track_caller]
    pub(super) fn next(&mut self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("the server says nothing more");
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
            self.told.push(message);
        }
    }

    /// Sends a request and waits for its answer.
    #[track_caller]
    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool, and returns its result.
    #[track_caller]
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let answer = self.ask("tools/call", params);
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Calls a tool that does what it is for, and returns what it answers.
    #[track_caller]
    pub(super) fn good(&mut self, tool: &str, arguments: &Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool} {arguments}: {result}");
        result["structuredContent"].clone()
    }

    /// Calls a tool that refuses, and returns what it says.
    #[track_caller]
    pub(super) fn bad(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool} {arguments}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Waits for a notification.
    #[track_caller]
    pub(super) fn notice(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.told.iter().position(|it| it["method"] == method) {
                return self.told.remove(at);
            }
            let message = self.next();
            self.told.push(message);
        }
    }

    /// Closes stdin, and waits until the server has ended and said all.
    pub(super) fn close(&mut self) -> (ExitStatus, Vec<String>) {
        drop(self.input.take());
        let status = self.child.wait().unwrap();
        (status, self.lines.iter().collect())
    }

    pub(super) fn id(&self) -> u32 {
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

fn hello() -> Value {
    json!({
        "protocolVersion": OLD,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    })
}

/// A folder with a few weeks, and what was made of them.
pub(super) fn made() -> Root {
    let root = Root::small();
    root.run(&["compact"]).ok();
    root
}
