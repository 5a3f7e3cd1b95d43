//! A program that reads the prompt on its standard input and prints the reply.
//!
//! It is started with a cleared environment, in an empty folder, as the leader of a process group of
//! its own, and the group is killed at the deadline and when the program has ended: a coding agent's
//! command line starts children of its own. None of them can hold a call up, whatever it holds open. `MEMOIRD_NESTED=1` tells our own hooks, should it fire them, to do nothing.

use std::{
    io::{self, Write as _},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::CommandExt as _,
    },
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, Signal, kill_process_group},
};
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

/// How long the pipes of a program that has ended are read: what it left behind may say the rest.
const DRAINED: Duration = Duration::from_secs(1);

/// How long nothing is looked at.
const MOMENT: Duration = Duration::from_millis(20);

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
        let ran = run(child, self.prompt(request).as_bytes(), at_most);
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
            calls: Vec::new(),
            verbatim: None,
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
        calls: Vec::new(),
        verbatim: None,
        finish_reason: FinishReason::Stop,
        usage: None,
        cost_usd: None,
        id: None,
        model: None,
    }
}

/// Ends the group of a program when it is dropped: whatever it left behind goes with it.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Feeds a program and reads what it prints, at most for so long; then its whole group is killed.
///
/// A child of it may hold the pipes open when it has ended, even out of its group. What it printed itself
/// stands in the pipes by then, so that they are read for a moment more and then left.
fn run(mut child: Child, input: &[u8], at_most: Duration) -> Result<Ran, Fate> {
    let deadline = Instant::now() + at_most;
    let group = Group(Pid::from_child(&child));
    let mut pipes = Pipes::of(&mut child, input).map_err(|e| Fate::System(e.into()))?;
    let mut ended = None;
    let code = loop {
        if ended.is_none() {
            let status = child.try_wait().map_err(Fate::System)?;
            ended = status.map(|it| (it.code(), Instant::now()));
        }
        let now = Instant::now();
        if let Some((code, at)) = ended
            && (pipes.are_read() || now - at >= DRAINED)
        {
            break code;
        }
        if ended.is_none() && now >= deadline {
            drop(group);
            drop(child.wait());
            return Err(Fate::Late);
        }
        pipes.pass(MOMENT.min(deadline.saturating_duration_since(now)))?;
        if pipes.stdout.bytes.len() > STDOUT_MAX {
            drop(group);
            drop(child.wait());
            return Err(Fate::TooMuch);
        }
    };
    Ok(Ran { stdout: pipes.stdout.bytes, stderr: pipes.stderr.bytes, code })
}

/// The three pipes of a program. None of them is waited for alone.
struct Pipes<'a> {
    stdin: Option<ChildStdin>,
    /// What is still to be written.
    input: &'a [u8],
    stdout: Output,
    stderr: Output,
}

/// What a program prints on one pipe.
struct Output {
    /// `None` when it has ended.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    /// What is more than this is read and forgotten.
    bytes_max: usize,
}

impl<'a> Pipes<'a> {
    fn of(child: &mut Child, input: &'a [u8]) -> Result<Self, Errno> {
        let output =
            |pipe: Option<OwnedFd>, bytes_max| Output { pipe, bytes: Vec::new(), bytes_max };
        let pipes = Self {
            stdin: child.stdin.take(),
            input,
            // One byte more tells that it is too much.
            stdout: output(child.stdout.take().map(OwnedFd::from), STDOUT_MAX + 1),
            stderr: output(child.stderr.take().map(OwnedFd::from), STDERR_MAX),
        };
        let outputs = [&pipes.stdout, &pipes.stderr].into_iter().filter_map(|it| it.pipe.as_ref());
        for pipe in pipes.stdin.iter().map(AsFd::as_fd).chain(outputs.map(AsFd::as_fd)) {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(pipes)
    }

    /// Returns whether all that was printed has been read.
    fn are_read(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    /// Waits at most so long for something to be written or read, and does it.
    fn pass(&mut self, at_most: Duration) -> Result<(), Fate> {
        let mut waited = Vec::new();
        waited.extend(self.stdin.as_ref().map(|it| PollFd::new(it, PollFlags::OUT)));
        for output in [&self.stdout, &self.stderr] {
            waited.extend(output.pipe.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        }
        if waited.is_empty() {
            // It closed them and works on.
            thread::sleep(at_most);
            return Ok(());
        }
        let at_most = Timespec::try_from(at_most).ok();
        match poll(&mut waited, at_most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Fate::System(error.into())),
        }
        self.feed();
        self.stdout.read()?;
        self.stderr.read()
    }

    /// Writes what the program is ready to read. One that does not read its input has its reasons.
    fn feed(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        while !self.input.is_empty() {
            match stdin.write(self.input) {
                Ok(written) if written > 0 => self.input = &self.input[written..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                _ => break,
            }
        }
        self.stdin = None;
    }
}

impl Output {
    fn read(&mut self) -> Result<(), Fate> {
        let mut buffer = [0; 8 * 1024];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let room = self.bytes_max - self.bytes.len();
                    self.bytes.extend(&buffer[..read.min(room)]);
                    if room == 0 {
                        // It may talk faster than it is read.
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(Fate::System(error.into())),
            }
        }
        Ok(())
    }
}
