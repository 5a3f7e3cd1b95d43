//! `memoird hook`: what agents' programs call at the start and end of a session and before its
//! compaction.
//!
//! A hook must never disturb its agent. It always exits with 0, and prints nothing if it fails. Except
//! at the start of a session it only queues a job for another process. Hooks of an agent's program that
//! memoird itself started for a model do nothing.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{entries, programs::AgentProgram, project_folder};
use crate::{
    clock,
    commands::{
        GlobalArgs,
        context::{self, HookAnswer},
        ui::Ui,
    },
    config::{Config, api_key, environment::Environment},
    model::command::NESTED_VARIABLE,
    operations::error::CommandResult,
    privacy::quarantine,
    session::{
        queue::{self, QueuedSession},
        transcript_file,
    },
    store::fs::spool::Spool,
};

/// The name of the verb, which must exit with 0 even if its arguments are wrong.
pub(crate) const HOOK_COMMAND: &str = "hook";
/// How long to wait for input. It normally comes at once, but a busy machine may take longer; only a
/// program that writes nothing and keeps the pipe open makes a hook wait this long.
const STDIN_TIMEOUT: Duration = Duration::from_secs(1);
const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// How long a starting session waits for the one before it to be saved.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(2);
const QUEUE_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Processes the queue; started by the hooks themselves.
const WORKER: &str = "work";

/// Take part in the sessions of an agent (its program calls this)
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// The agent: claude-code, codex, gemini, opencode, copilot, cursor, or any other name
    #[arg(value_name = "AGENT")]
    agent: String,
    /// session-start, pre-compact, or session-end
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// The transcript, if no JSON on stdin names it
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// The folder of the session, if no JSON on stdin names it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// Arguments that later versions of an agent may add
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(global: &GlobalArgs, args: &HookArgs, ui: &Ui) -> ExitCode {
    if std::env::var_os(NESTED_VARIABLE).is_none_or(|it| it.is_empty()) {
        // `memoird status` reports the error; the agent continues.
        match handle_event(global, args, ui) {
            Ok(()) => {}
            Err(error) => tracing::debug!("a hook failed: {error}"),
        }
    }
    ExitCode::SUCCESS
}

fn handle_event(global: &GlobalArgs, args: &HookArgs, ui: &Ui) -> CommandResult<()> {
    if args.agent == WORKER {
        return run_worker(global);
    }
    let input = if args.transcript.is_some() { Value::Null } else { read_stdin_json() };
    let event = args.event.as_deref().or_else(|| event_name(&input)).unwrap_or_default();
    let text = |key: &str| input.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
    let around = Environment::read()?;
    // Otherwise the session would start with the same context twice.
    if is_from_plugin() && entries::is_in_settings(AgentProgram::ClaudeCode, &around, event) {
        return Ok(());
    }
    let folder = || text("cwd").or_else(|| input.get("workspace_roots")?.get(0)?.as_str());
    let cwd = args.cwd.clone().or_else(|| folder().map(PathBuf::from));
    let cwd = cwd.map_or_else(|| around.cwd.clone(), |it| around.absolute(&it, &around.cwd));
    match event {
        "session-start" => {
            // The agent waits for the answer. Nothing waits for this thread, which ends with the process.
            let beside = std::thread::Builder::new().spawn(quarantine::prepare);
            // Without the thread the rules are built when they are needed.
            drop(beside);
            await_queued_sessions(global, &around, &cwd);
            context::answer_hook(global, &around, &cwd, HookAnswer::of_agent(&args.agent), ui)
        }
        "pre-compact" | "session-end" => {
            let named =
                args.transcript.clone().or_else(|| text("transcript_path").map(PathBuf::from));
            let transcript =
                named.or_else(|| transcript_of(&args.agent, text("session_id")?, &cwd, &around));
            let Some(transcript) = transcript else { return Ok(()) };
            let transcript = around.absolute(&transcript, &around.cwd);
            let at = clock::now()?;
            let job = QueuedSession {
                event: event.to_owned(),
                transcript,
                cwd,
                at,
                tries: 0,
                error: None,
            };
            queue_job(&around, &job);
            start_worker(global);
            Ok(())
        }
        // Unknown events are ignored.
        _ => Ok(()),
    }
}

/// Returns the transcript of a session whose program does not name it.
fn transcript_of(agent: &str, session: &str, cwd: &Path, around: &Environment) -> Option<PathBuf> {
    let is_name = session.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    let is = |it: AgentProgram| is_name && it.id() == agent;
    if is(AgentProgram::Opencode) {
        Some(transcript_file::path_in_database(&around.opencode_database(), session))
    } else if is(AgentProgram::Copilot) {
        let folder = around.copilot_folder().join("session-state");
        Some(folder.join(session).join("events.jsonl"))
    } else if is(AgentProgram::Cursor) {
        // The editor names the transcript; its program for the terminal does not.
        let cwd = cwd.to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let project: String = cwd.trim_matches('/').chars().map(plain).collect();
        let folder = around.home.join(".cursor/projects").join(project).join("agent-transcripts");
        Some(folder.join(format!("{session}.jsonl")))
    } else {
        None
    }
}

/// Returns whether a plugin of Claude Code calls the hook.
fn is_from_plugin() -> bool {
    std::env::var_os("CLAUDE_PLUGIN_ROOT").is_some_and(|it| !it.is_empty())
}

fn event_name(told: &Value) -> Option<&'static str> {
    match told.get("hook_event_name")?.as_str()? {
        "SessionStart" | "sessionStart" => Some("session-start"),
        "PreCompact" | "preCompact" => Some("pre-compact"),
        "SessionEnd" | "sessionEnd" => Some("session-end"),
        _ => None,
    }
}

fn queue_job(around: &Environment, job: &QueuedSession) {
    let Ok(text) = serde_json::to_string(job) else { return };
    let at = job.at.format("%Y%m%d%H%M%S%6f").to_string();
    if let Err(error) = Spool::new(&around.state_home).add(&at, &text) {
        tracing::debug!("a hook could not queue its job: {error}");
    }
}

/// Starts a process that processes the queue. If that fails, the job stays for the daemon or the next
/// hook.
fn start_worker(global: &GlobalArgs) {
    let Ok(program) = std::env::current_exe() else { return };
    let mut command = Command::new(program);
    if let Some(config) = &global.config {
        command.arg("--config").arg(config);
    }
    command.args([OsStr::new(HOOK_COMMAND), OsStr::new(WORKER)]);
    // It outlives the agent, and holds none of its pipes open.
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).current_dir("/");
    if let Err(error) = api_key::remove_key_variables(&mut command).spawn() {
        tracing::debug!("a hook could not start its worker: {error}");
    }
}

/// Waits until the session that ended just before this one is saved, as after `/clear`.
fn await_queued_sessions(global: &GlobalArgs, around: &Environment, cwd: &Path) {
    if Spool::new(&around.state_home).names().is_ok_and(|it| it.is_empty()) {
        return;
    }
    let Ok(config) = Config::load(global.config.as_deref(), &global.set, around) else { return };
    let Some(root) = config.root_for_folder(cwd, around) else { return };
    let is_waiting = || clock::now().is_ok_and(|now| queue::has_fresh(&config, around, &root, now));
    if !is_waiting() {
        return;
    }
    // The worker of the hook that queued it may have been killed.
    start_worker(global);
    let until = Instant::now() + QUEUE_TIMEOUT;
    while is_waiting() && Instant::now() < until {
        std::thread::sleep(QUEUE_POLL_INTERVAL);
    }
}

/// Processes the queue, one process at a time.
fn run_worker(global: &GlobalArgs) -> CommandResult<()> {
    // It must survive a closed terminal, and an agent that ends its children.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!("the worker could not start its own session: {error}");
    }
    let around = Environment::read()?;
    let config = Config::load(global.config.as_deref(), &global.set, &around)?;
    let drain = |config: &Config| -> CommandResult<Vec<PathBuf>> {
        let done = queue::drain(config, &around, clock::now()?, true).unwrap_or_else(|error| {
            tracing::debug!("cannot read the session queue: {error}");
            Vec::new()
        });
        let homeless = done.into_iter().filter_map(|(_, done)| match done {
            queue::QueueOutcome::NoMemoryFolder(cwd) => Some(cwd),
            _ => None,
        });
        Ok(homeless.collect())
    };
    let homeless = drain(&config)?;
    if !homeless.is_empty() && config.projects_dir(&around).is_some() {
        // Another worker may have created the missing folder.
        let failed = project_folder::create_project_folders(&config, &around, &homeless)?;
        for (project, error) in failed {
            tracing::warn!("{} gets no memory folder: {error}", project.display());
        }
        drain(&Config::load(global.config.as_deref(), &global.set, &around)?)?;
    }
    Ok(())
}

/// Reads JSON from stdin, as soon as it is complete; null if there is none in time.
fn read_stdin_json() -> Value {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    // This thread ends with stdin, or with the process.
    std::thread::spawn(move || {
        let mut stdin = std::io::stdin().lock();
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(count) = Read::read(&mut stdin, &mut chunk) {
            if count == 0 || sender.send(chunk[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let until = Instant::now() + STDIN_TIMEOUT;
    let mut bytes = Vec::new();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(chunk) = receiver.recv_timeout(left) else { return Value::Null };
        bytes.extend(chunk);
        if let Ok(told) = serde_json::from_slice(&bytes) {
            return told;
        }
        if bytes.len() > INPUT_BYTES_MAX {
            return Value::Null;
        }
    }
}
