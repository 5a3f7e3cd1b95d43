//! A program that reads the prompt on its standard input and prints the reply.
//!
//! The program starts with a cleared environment, in an empty folder, as the leader of its own
//! process group. The group is killed at the deadline and when the program has ended, because the
//! command line of a coding agent starts children. No child can delay a call, whatever it holds
//! open. `MEMOIRD_NESTED=1` makes our own hooks do nothing if the program triggers them.

use std::{
    ffi::OsStr,
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
    FinishReason, ModelReply, ModelRequest, TokenUsage,
    failure::{CallError, Deadline, ProviderMessage},
};
use crate::config::api_key;

/// Set in the environment of a program that we have started.
pub const NESTED_VARIABLE: &str = "MEMOIRD_NESTED";

/// How many bytes a program may print.
const STDOUT_MAX: usize = 4 * 1024 * 1024;
const STDERR_MAX: usize = 16 * 1024;

/// How long the pipes are read after a program has ended, because a child may still write.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest wait before the state of the program is checked again.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The variables that a program inherits: enough to find itself, its home, its account, and the network.
const ALLOWED_VARIABLES: [&str; 22] = [
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
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
/// The variables that the Claude command line inherits in addition: their names or the starts of them.
const CLAUDE_VARIABLES: [&str; 3] = ["ANTHROPIC_", "CLAUDE_CODE_", "CLAUDE_CONFIG_DIR"];

/// A program and the format of its input and output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelProgram {
    argv: Vec<String>,
    protocol: CommandProtocol,
}

/// What a program reads and prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommandProtocol {
    /// Prompt in, reply out.
    Text,
    /// The format of the Claude command line with `--output-format json`.
    Claude,
}

impl ModelProgram {
    /// Returns the program that the user configured; `None` if `argv` is empty.
    pub fn new(argv: &[String]) -> Option<Self> {
        (!argv.is_empty()).then(|| Self { argv: argv.to_vec(), protocol: CommandProtocol::Text })
    }

    /// Returns the Claude command line, without tools, servers, or a transcript that we would later
    /// import ourselves.
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
        Self { argv: argv.map(ToOwned::to_owned).to_vec(), protocol: CommandProtocol::Claude }
    }

    /// Returns the program's name, without its folder.
    pub fn name(&self) -> &str {
        let program = &self.argv[0];
        Path::new(program).file_name().and_then(|it| it.to_str()).unwrap_or(program)
    }

    /// Runs the program with a request.
    pub(crate) fn complete(
        &self,
        request: &ModelRequest,
        model: &str,
        at_most: Duration,
    ) -> Result<ModelReply, CallError> {
        let dir = tempfile::tempdir().map_err(|e| self.error(&e.to_string(), ""))?;
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]);
        if self.protocol == CommandProtocol::Claude {
            command.args(["--model", model, "--system-prompt", &request.system]);
            if let Some(schema) = &request.schema {
                command.args(["--json-schema", &schema.schema.to_string()]);
            }
        }
        command.env_clear();
        command.envs(std::env::vars_os().filter(|(name, _)| self.inherits(name)));
        api_key::remove_key_variables(&mut command);
        command
            .env(NESTED_VARIABLE, "1")
            .env("MEMOIRD_MODEL", model)
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = command.spawn().map_err(|e| self.error(&e.to_string(), ""))?;
        let ran = run_to_end(child, self.prompt(request).as_bytes(), at_most);
        let CommandOutput { stdout, stderr, code } = match ran {
            Ok(ran) => ran,
            Err(CommandRunError::TimedOut) => {
                let (server, deadline) = (self.name().to_owned(), Deadline::Total);
                return Err(CallError::Timeout { server, deadline, after: at_most });
            }
            Err(CommandRunError::OutputTooLarge) => {
                let (server, bytes_max) = (self.name().to_owned(), STDOUT_MAX);
                return Err(CallError::ResponseTooLarge { server, bytes_max });
            }
            Err(CommandRunError::System(error)) => return Err(self.error(&error.to_string(), "")),
        };
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        let Ok(text) = String::from_utf8(stdout) else {
            return Err(self.error("it printed bytes that are not text", &stderr));
        };
        match (self.protocol, code) {
            (CommandProtocol::Text, Some(0)) => Ok(ModelReply::of_text(&text)),
            (CommandProtocol::Claude, Some(0)) => self.claude_reply(&text),
            (protocol, Some(code)) => {
                // The Claude command line prints its error like a reply.
                let reported = (protocol == CommandProtocol::Claude)
                    .then(|| self.claude_reply(&text).err())
                    .flatten();
                Err(reported
                    .filter(|it| matches!(it, CallError::Program { .. }))
                    .unwrap_or_else(|| self.error(&format!("it ended with {code}"), &stderr)))
            }
            (_, None) => Err(self.error("it was killed by a signal", &stderr)),
        }
    }

    /// Returns whether the program inherits a variable.
    fn inherits(&self, name: &OsStr) -> bool {
        let Some(name) = name.to_str() else { return false };
        ALLOWED_VARIABLES.contains(&name)
            || self.protocol == CommandProtocol::Claude
                && CLAUDE_VARIABLES.iter().any(|it| name.starts_with(it))
    }

    /// Returns the text for its standard input.
    fn prompt(&self, request: &ModelRequest) -> String {
        let mut prompt = String::new();
        if self.protocol == CommandProtocol::Text {
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

    /// Reads the output of the Claude command line. `is_error` can be set together with `success`.
    fn claude_reply(&self, text: &str) -> Result<ModelReply, CallError> {
        let server = self.name().to_owned();
        let Ok(body) = serde_json::from_str::<Value>(text) else {
            return Err(CallError::UnexpectedResponse { server, what: "text that is not JSON" });
        };
        let subtype = body["subtype"].as_str().unwrap_or_default();
        if body["is_error"] != false || subtype != "success" {
            let message = body["result"].as_str().unwrap_or_default();
            let reason = match own_words(&body) {
                Some(words) => format!("it says: {words}"),
                None => format!(
                    "it reports {}",
                    super::failure::error_code(Some(subtype))
                        .unwrap_or_else(|| "an error".to_owned())
                ),
            };
            return Err(self.error(&reason, message));
        }
        let text = match &body["structured_output"] {
            Value::Null => body["result"].as_str().unwrap_or_default().to_owned(),
            value => value.to_string(),
        };
        let usage = &body["usage"];
        let count = |name: &str| usage[name].as_u64().unwrap_or(0);
        let cached = (count("cache_read_input_tokens"), count("cache_creation_input_tokens"));
        Ok(ModelReply {
            text,
            calls: Vec::new(),
            verbatim: None,
            finish_reason: match body["stop_reason"].as_str() {
                Some("max_tokens") => FinishReason::Length,
                Some("refusal") => FinishReason::Refusal,
                _ => FinishReason::Stop,
            },
            usage: usage["input_tokens"].as_u64().map(|input| TokenUsage {
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

    fn error(&self, reason: &str, message: &str) -> CallError {
        CallError::Program {
            program: self.name().to_owned(),
            reason: reason.to_owned(),
            provider_message: ProviderMessage::new(
                Some(message).filter(|it| !it.trim().is_empty()),
            ),
        }
    }
}

/// Returns the words of an error that the Claude command line reports before it calls a model, such as
/// `Not logged in`. The words of a model or of its server may quote a log.
fn own_words(body: &Value) -> Option<&str> {
    const CHARS_MAX: usize = 200;
    let words = body["result"].as_str()?.trim();
    let is_zero = |it: &Value| it.as_f64().is_none_or(|it| it == 0.0);
    let usage = &body["usage"];
    let was_called = ["input_tokens", "output_tokens", "cache_read_input_tokens"]
        .iter()
        .any(|it| !is_zero(&usage[it]));
    let is_own = !was_called
        && is_zero(&body["duration_api_ms"])
        && is_zero(&body["total_cost_usd"])
        && !words.starts_with("API Error");
    let is_line = !words.is_empty() && !words.contains('\n') && words.chars().count() <= CHARS_MAX;
    (is_own && is_line).then_some(words)
}

struct CommandOutput {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    code: Option<i32>,
}

enum CommandRunError {
    TimedOut,
    OutputTooLarge,
    System(io::Error),
}

/// Kills the process group of a program, including its children, when dropped.
struct ProcessGroup(Pid);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

/// Runs a program to its end or to the deadline; then kills its whole group.
///
/// A child may hold the pipes open after the program has ended, even from outside the group. The
/// program's own output is in the pipes by then, so they are read for [`DRAIN_TIMEOUT`] and closed.
fn run_to_end(
    mut child: Child,
    input: &[u8],
    at_most: Duration,
) -> Result<CommandOutput, CommandRunError> {
    let deadline = Instant::now() + at_most;
    let group = ProcessGroup(Pid::from_child(&child));
    let mut pipes =
        CommandPipes::of(&mut child, input).map_err(|e| CommandRunError::System(e.into()))?;
    let mut ended = None;
    let code = loop {
        if ended.is_none() {
            let status = child.try_wait().map_err(CommandRunError::System)?;
            ended = status.map(|it| (it.code(), Instant::now()));
        }
        let now = Instant::now();
        if let Some((code, at)) = ended
            && (pipes.are_drained() || now - at >= DRAIN_TIMEOUT)
        {
            break code;
        }
        if ended.is_none() && now >= deadline {
            drop(group);
            drop(child.wait());
            return Err(CommandRunError::TimedOut);
        }
        pipes.transfer(POLL_INTERVAL.min(deadline.saturating_duration_since(now)))?;
        if pipes.stdout.bytes.len() > STDOUT_MAX {
            drop(group);
            drop(child.wait());
            return Err(CommandRunError::OutputTooLarge);
        }
    };
    Ok(CommandOutput { stdout: pipes.stdout.bytes, stderr: pipes.stderr.bytes, code })
}

/// The three pipes of a program, polled together.
struct CommandPipes<'a> {
    stdin: Option<ChildStdin>,
    /// The input that is not yet written.
    input: &'a [u8],
    stdout: OutputPipe,
    stderr: OutputPipe,
}

/// The output of a program on one pipe.
struct OutputPipe {
    /// `None` at the end of the output.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    /// Output beyond this is read and discarded.
    bytes_max: usize,
}

impl<'a> CommandPipes<'a> {
    fn of(child: &mut Child, input: &'a [u8]) -> Result<Self, Errno> {
        let output =
            |pipe: Option<OwnedFd>, bytes_max| OutputPipe { pipe, bytes: Vec::new(), bytes_max };
        let pipes = Self {
            stdin: child.stdin.take(),
            input,
            // One byte more shows that the limit is exceeded.
            stdout: output(child.stdout.take().map(OwnedFd::from), STDOUT_MAX + 1),
            stderr: output(child.stderr.take().map(OwnedFd::from), STDERR_MAX),
        };
        let outputs = [&pipes.stdout, &pipes.stderr].into_iter().filter_map(|it| it.pipe.as_ref());
        for pipe in pipes.stdin.iter().map(AsFd::as_fd).chain(outputs.map(AsFd::as_fd)) {
            rustix::io::ioctl_fionbio(pipe, true)?;
        }
        Ok(pipes)
    }

    /// Returns whether all output has been read.
    fn are_drained(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    /// Waits until a pipe is ready, at most `at_most`, and writes and reads.
    fn transfer(&mut self, at_most: Duration) -> Result<(), CommandRunError> {
        let mut waited = Vec::new();
        waited.extend(self.stdin.as_ref().map(|it| PollFd::new(it, PollFlags::OUT)));
        for output in [&self.stdout, &self.stderr] {
            waited.extend(output.pipe.as_ref().map(|it| PollFd::new(it, PollFlags::IN)));
        }
        if waited.is_empty() {
            // The program closed its pipes and still runs.
            thread::sleep(at_most);
            return Ok(());
        }
        let at_most = Timespec::try_from(at_most).ok();
        match poll(&mut waited, at_most.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(CommandRunError::System(error.into())),
        }
        self.feed();
        self.stdout.read()?;
        self.stderr.read()
    }

    /// Writes what the program is ready to read. A program may ignore its input.
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

impl OutputPipe {
    fn read(&mut self) -> Result<(), CommandRunError> {
        let mut buffer = [0; 8 * 1024];
        while let Some(pipe) = &self.pipe {
            match rustix::io::read(pipe, &mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    let room = self.bytes_max - self.bytes.len();
                    self.bytes.extend(&buffer[..read.min(room)]);
                    if room == 0 {
                        // It may write faster than we read.
                        return Ok(());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(CommandRunError::System(error.into())),
            }
        }
        Ok(())
    }
}
