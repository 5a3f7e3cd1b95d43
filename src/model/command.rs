//! A program that reads the prompt on its standard input and prints the reply.
//!
//! It is started with a cleared environment, in an empty folder, as the leader of a process group of
//! its own, and the group is killed at the deadline: a coding agent's command line starts children
//! of its own. `MEMOIRD_NESTED=1` tells our own hooks, should it fire them, to do nothing.

use std::{
    io::{self, Read, Write as _},
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use super::{
    FinishReason, Reply, Request, Usage,
    failure::{CallError, Deadline, Told},
};
use crate::config::key;

/// The variable that says that we have started the program.
pub const NESTED: &str = "MEMOIRD_NESTED";

/// How much a program may print.
const STDOUT_MAX: usize = 4 * 1024 * 1024;
const STDERR_MAX: usize = 16 * 1024;

/// What of our environment a program gets: enough to find itself, its home, and its account.
const KEPT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "SSL_CERT_FILE",
];

/// A program and how it is spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    argv: Vec<String>,
    speaks: Speech,
}

/// What a program reads and prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speech {
    /// Prompt in, reply out.
    Text,
    /// As the Claude command line does with `--output-format json`.
    Claude,
}

impl Program {
    /// Returns a program of a person's. It must have a name.
    pub fn new(argv: &[String]) -> Option<Self> {
        (!argv.is_empty()).then(|| Self { argv: argv.to_vec(), speaks: Speech::Text })
    }

    /// Returns the Claude command line, without tools, servers, or a transcript that we would read
    /// ourselves later on.
    pub fn claude() -> Self {
        let argv = [
            "claude",
            "-p",
            "--output-format",
            "json",
            "--tools",
            "",
            "--strict-mcp-config",
            "--no-session-persistence",
            "--max-turns",
            "3",
        ];
        Self { argv: argv.map(ToOwned::to_owned).to_vec(), speaks: Speech::Claude }
    }

    /// Returns the program's name, without its folder.
    pub fn name(&self) -> &str {
        let program = &self.argv[0];
        Path::new(program).file_name().and_then(|it| it.to_str()).unwrap_or(program)
    }

    /// Asks it.
    ///
    /// # Errors
    ///
    /// Returns why it gave no reply.
    pub fn ask(
        &self,
        request: &Request,
        model: &str,
        at_most: Duration,
    ) -> Result<Reply, CallError> {
        let dir = tempfile::tempdir().map_err(|e| self.failed(&e.to_string(), ""))?;
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        if self.speaks == Speech::Claude {
            command.args(["--model", model, "--system-prompt", &request.system]);
            if let Some(schema) = &request.schema {
                command.args(["--json-schema", &schema.schema.to_string()]);
            }
        }
        command.env_clear();
        for name in KEPT {
            command.envs(std::env::var_os(name).map(|it| (name, it)));
        }
        key::scrub(&mut command);
        command
            .env(NESTED, "1")
            .env("MEMOIRD_MODEL", model)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = command.spawn().map_err(|e| self.failed(&e.to_string(), ""))?;
        let ran = run(child, self.prompt(request).into_bytes(), at_most);
        let Ran { stdout, stderr, code } = match ran {
            Ok(ran) => ran,
            Err(Fate::Late) => {
                let (server, deadline) = (self.name().to_owned(), Deadline::Total);
                return Err(CallError::Timeout { server, deadline, after: at_most });
            }
            Err(Fate::TooMuch) => {
                let (server, bytes_max) = (self.name().to_owned(), STDOUT_MAX);
                return Err(CallError::Huge { server, bytes_max });
            }
            Err(Fate::System(error)) => return Err(self.failed(&error.to_string(), "")),
        };
        let said = String::from_utf8_lossy(&stderr).into_owned();
        let Ok(text) = String::from_utf8(stdout) else {
            return Err(self.failed("it printed bytes that are no text", &said));
        };
        match (self.speaks, code) {
            (Speech::Text, Some(0)) => Ok(plain(text)),
            (Speech::Claude, Some(0)) => self.claude_reply(&text),
            (_, Some(code)) => Err(self.failed(&format!("it ended with {code}"), &said)),
            (_, None) => Err(self.failed("it was killed by a signal", &said)),
        }
    }

    /// Returns what goes to its standard input.
    fn prompt(&self, request: &Request) -> String {
        let mut prompt = String::new();
        if self.speaks == Speech::Text {
            prompt.push_str(&request.system);
            prompt.push_str("\n\n");
            if let Some(schema) = &request.schema {
                prompt.push_str(
                    "Reply with one JSON value that this JSON Schema accepts, and with nothing else:\n",
                );
                prompt.push_str(&schema.schema.to_string());
                prompt.push_str("\n\n");
            }
        }
        for (i, message) in request.messages.iter().enumerate() {
            if i > 0 {
                prompt.push_str(match message.role {
                    super::Role::Assistant => "\n\nYour reply was:\n\n",
                    super::Role::User => "\n\n",
                });
            }
            prompt.push_str(&message.text);
        }
        prompt
    }

    /// Reads what the Claude command line prints. Its `is_error` can be set beside `success`.
    fn claude_reply(&self, text: &str) -> Result<Reply, CallError> {
        let server = self.name().to_owned();
        let Ok(body) = serde_json::from_str::<Value>(text) else {
            return Err(CallError::Garbage { server, what: "text that is no JSON" });
        };
        let subtype = body["subtype"].as_str().unwrap_or_default();
        if body["is_error"] != false || subtype != "success" {
            let said = body["result"].as_str().unwrap_or_default();
            let reason = format!(
                "it reports {}",
                super::failure::error_code(Some(subtype)).unwrap_or_else(|| "an error".to_owned())
            );
            return Err(self.failed(&reason, said));
        }
        let text = match &body["structured_output"] {
            Value::Null => body["result"].as_str().unwrap_or_default().to_owned(),
            value => value.to_string(),
        };
        let usage = &body["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cached = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        Ok(Reply {
            text,
            finish_reason: match body["stop_reason"].as_str() {
                Some("max_tokens") => FinishReason::Length,
                Some("refusal") => FinishReason::Refusal,
                _ => FinishReason::Stop,
            },
            usage: usage["input_tokens"].as_u64().map(|input| Usage {
                input_tokens: input + cached.0 + cached.1,
                output_tokens: count("output_tokens"),
                cache_read_tokens: cached.0,
                cache_write_tokens: cached.1,
            }),
            cost_usd: body["total_cost_usd"].as_f64(),
            id: None,
            model: None,
        })
    }

    fn failed(&self, reason: &str, said: &str) -> CallError {
        let told = Told::new(Some(said).filter(|it| !it.trim().is_empty()));
        CallError::Program { program: self.name().to_owned(), reason: reason.to_owned(), told }
    }
}

struct Ran {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: Option<i32>,
}

enum Fate {
    Late,
    TooMuch,
    System(io::Error),
}

fn plain(text: String) -> Reply {
    Reply {
        text,
        finish_reason: FinishReason::Stop,
        usage: None,
        cost_usd: None,
        id: None,
        model: None,
    }
}

/// Feeds a program and reads what it prints, at most for so long; then its whole group is killed.
fn run(mut child: Child, input: Vec<u8>, at_most: Duration) -> Result<Ran, Fate> {
    let group = Pid::from_child(&child);
    let end_group = || {
        let _ = kill_process_group(group, Signal::KILL);
    };
    let deadline = Instant::now() + at_most;
    let stdin = child.stdin.take();
    // It may not read its input before it prints; a pipe holds 64 KB.
    thread::spawn(move || stdin.map(|mut it| it.write_all(&input)));
    let (send, done) = mpsc::channel();
    read_apart(child.stdout.take(), STDOUT_MAX, 0, &send);
    read_apart(child.stderr.take(), STDERR_MAX, 1, &send);
    drop(send);
    let mut read: [Option<Vec<u8>>; 2] = [None, None];
    while read.iter().any(Option::is_none) {
        let left = deadline.saturating_duration_since(Instant::now());
        match done.recv_timeout(left) {
            Ok((_, Err(error))) => {
                end_group();
                drop(child.wait());
                return Err(Fate::System(error));
            }
            Ok((0, Ok(bytes))) if bytes.len() > STDOUT_MAX => {
                end_group();
                drop(child.wait());
                return Err(Fate::TooMuch);
            }
            Ok((which, Ok(bytes))) => read[which] = Some(bytes),
            Err(_) => {
                end_group();
                drop(child.wait());
                return Err(Fate::Late);
            }
        }
    }
    // Its pipes are closed: it has ended, or is about to.
    let code = loop {
        match child.try_wait().map_err(Fate::System)? {
            Some(status) => break status.code(),
            None if Instant::now() >= deadline => {
                end_group();
                drop(child.wait());
                return Err(Fate::Late);
            }
            None => thread::sleep(Duration::from_millis(5)),
        }
    };
    // What it left behind in its group goes with it.
    end_group();
    let [stdout, stderr] = read.map(Option::unwrap_or_default);
    Ok(Ran { stdout, stderr, code })
}

/// Reads a pipe on a thread of its own, one byte more than allowed at most; of what is only shown the
/// rest is read and forgotten.
fn read_apart(
    pipe: Option<impl Read + Send + 'static>,
    bytes_max: usize,
    which: usize,
    send: &mpsc::Sender<(usize, io::Result<Vec<u8>>)>,
) {
    let send = send.clone();
    thread::spawn(move || {
        let Some(mut pipe) = pipe else {
            drop(send.send((which, Ok(Vec::new()))));
            return;
        };
        let mut bytes = Vec::new();
        let read = pipe.by_ref().take(bytes_max as u64 + 1).read_to_end(&mut bytes);
        if which == 1 {
            drop(io::copy(&mut pipe, &mut io::sink()));
        }
        drop(send.send((which, read.map(|_| bytes))));
    });
}
