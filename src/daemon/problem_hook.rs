//! Runs the user's program when a person is needed (`on_problem`).
//!
//! Each problem is reported once, and again only after it was gone. The program gets a JSON document on
//! stdin, `{"root", "kind", "text"}`, and the same in `MEMOIRD_PROBLEM_ROOT`, `_KIND` and `_TEXT`,
//! without text of a log. One program runs at a time, in its own process group, which is killed when it
//! takes too long.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write as _},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::config::api_key;

/// How long the program may take.
const PROGRAM_TIMEOUT: Duration = Duration::from_secs(30);
/// How often the program is polled for its end.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Something that needs a person.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RootProblem {
    /// `stuck`, `model`, `embeddings`, or `paused`.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

/// Reports problems to the user's program.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    /// Per root, the kinds of the problems that were reported.
    notified: BTreeMap<PathBuf, BTreeSet<&'static str>>,
    /// Held while a program runs.
    turn: Arc<Mutex<()>>,
}

impl Notifier {
    /// Compares the current problems of a root with those reported, and reports the new ones.
    pub(super) fn update(
        &mut self,
        command: Option<&[String]>,
        root: &Path,
        now: Vec<RootProblem>,
    ) {
        let kinds: BTreeSet<&'static str> = now.iter().map(|it| it.kind).collect();
        let notified = self.notified.entry(root.to_owned()).or_default();
        let fresh: Vec<RootProblem> =
            now.into_iter().filter(|it| !notified.contains(it.kind)).collect();
        *notified = kinds;
        let Some([program, args @ ..]) = command else { return };
        for problem in fresh {
            let (program, args) = (program.clone(), args.to_vec());
            let (root, turn) = (root.to_owned(), Arc::clone(&self.turn));
            tokio::task::spawn_blocking(move || {
                let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = run_program(&program, &args, &root, &problem) {
                    tracing::warn!("on_problem: `{program}`: {error}");
                }
            });
        }
    }
}

fn run_program(
    program: &str,
    args: &[String],
    root: &Path,
    problem: &RootProblem,
) -> io::Result<()> {
    let RootProblem { kind, text } = problem;
    let mut child = api_key::remove_key_variables(&mut Command::new(program))
        .args(args)
        .env("MEMOIRD_PROBLEM_ROOT", root)
        .env("MEMOIRD_PROBLEM_KIND", kind)
        .env("MEMOIRD_PROBLEM_TEXT", text)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        let document = serde_json::json!({ "root": root, "kind": kind, "text": text });
        // A program that does not read stdin has the same in its environment.
        drop(writeln!(stdin, "{document}"));
    }
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begun.elapsed() >= PROGRAM_TIMEOUT {
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
            child.wait()?;
            return Err(io::Error::other("took too long and was killed"));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("ended with {status}"))) }
}
