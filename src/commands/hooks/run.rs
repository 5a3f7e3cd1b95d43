//! `memoird hook`: what agents' programs call at the turns of a session.
//!
//! A hook must never get in the way of its agent. So it always ends with 0 and prints nothing where it
//! fails; all but the start of a session only leaves a note, and has somebody else do the work. A
//! program that memoird itself started for a model fires hooks that do nothing.

use std::{
    ffi::OsStr,
    io::Read,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::mpsc,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::project_folder;
use crate::commands::{GlobalArgs, context, error::CommandError, ui::Ui};
use crate::{
    clock,
    config::{Config, api_key, environment::Environment},
    model::command::NESTED_VARIABLE,
    session::queue::{self, QueuedSession},
    store::fs::spool::Spool,
};

/// The name of the verb, which must end with 0 even where its arguments cannot be read.
pub(crate) const HOOK_COMMAND: &str = "hook";
/// So long is waited for what the agent's program says. It says it at once, but a busy machine may take
/// its time; only one that says nothing and keeps the pipe open makes a hook wait for so long.
const STDIN_TIMEOUT: Duration = Duration::from_secs(1);
/// It says no more than this.
const INPUT_BYTES_MAX: usize = 1024 * 1024;
/// Does the work that notes ask for; started by the hooks themselves.
const WORKER: &str = "work";

/// Take part in the sessions of an agent (its program calls this)
#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    /// The agent: claude-code, codex, or any other name
    #[arg(value_name = "AGENT")]
    agent: String,
    /// session-start, pre-compact, or session-end
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    /// The transcript, where no JSON on stdin says it
    #[arg(long, value_name = "FILE")]
    transcript: Option<PathBuf>,
    /// The folder of the session, where no JSON on stdin says it
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// What later versions of an agent may add
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(global: &GlobalArgs, args: &HookArgs, ui: &Ui) -> ExitCode {
    if std::env::var_os(NESTED_VARIABLE).is_none_or(|it| it.is_empty()) {
        // Whatever went wrong is told by `memoird status`; the agent goes on.
        match handle_event(global, args, ui) {
            Ok(()) => {}
            Err(error) => tracing::debug!("a hook failed: {error}"),
        }
    }
    ExitCode::SUCCESS
}

fn handle_event(global: &GlobalArgs, args: &HookArgs, ui: &Ui) -> Result<(), CommandError> {
    if args.agent == WORKER {
        return run_worker(global);
    }
    let told = if args.transcript.is_some() { Value::Null } else { read_stdin_json() };
    let event = args.event.as_deref().or_else(|| event_name(&told)).unwrap_or_default();
    let text = |key: &str| told.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
    let around = Environment::read()?;
    let cwd = args.cwd.clone().or_else(|| text("cwd").map(PathBuf::from));
    let cwd = cwd.map_or_else(|| around.cwd.clone(), |it| around.absolute(&it, &around.cwd));
    match event {
        "session-start" => context::answer_hook(global, &around, &cwd, ui),
        "pre-compact" | "session-end" => {
            let transcript =
                args.transcript.clone().or_else(|| text("transcript_path").map(PathBuf::from));
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
        // An event that we do not know is none of ours.
        _ => Ok(()),
    }
}

/// Returns the event as the agent's program names it.
fn event_name(told: &Value) -> Option<&'static str> {
    match told.get("hook_event_name")?.as_str()? {
        "SessionStart" => Some("session-start"),
        "PreCompact" => Some("pre-compact"),
        "SessionEnd" => Some("session-end"),
        _ => None,
    }
}

/// Leaves a note for whoever does the work.
fn queue_job(around: &Environment, job: &QueuedSession) {
    let Ok(text) = serde_json::to_string(job) else { return };
    let at = job.at.format("%Y%m%d%H%M%S%6f").to_string();
    if let Err(error) = Spool::new(&around.state_home).add(&at, &text) {
        tracing::debug!("a hook left no note: {error}");
    }
}

/// Starts a process that does the work and ends. The note stays where it cannot be started: the daemon or
/// the next hook finds it.
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
        tracing::debug!("a hook started nobody: {error}");
    }
}

/// Does what notes ask for, one process at a time.
fn run_worker(global: &GlobalArgs) -> Result<(), CommandError> {
    // A terminal that closes, or an agent that ends its children, does not end this.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!("the worker stays in its session: {error}");
    }
    let around = Environment::read()?;
    let config = Config::load(global.config.as_deref(), &global.set, &around)?;
    let drain = |config: &Config| -> Result<Vec<PathBuf>, CommandError> {
        let done = queue::drain(config, &around, clock::now()?, true).unwrap_or_else(|error| {
            tracing::debug!("notes of hooks cannot be read: {error}");
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
        // Another worker may have made what was missing.
        project_folder::create_project_folders(&config, &around, &homeless)?;
        drain(&Config::load(global.config.as_deref(), &global.set, &around)?)?;
    }
    Ok(())
}

/// Reads what the agent's program says on stdin, as soon as it is whole; nothing where it says nothing,
/// or not in time.
fn read_stdin_json() -> Value {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    // Ends with stdin, or with this process.
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
