//! The n-th system call of a kind fails or kills the process: `strace -e inject`.

use std::{
    fmt, fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
};

use super::{
    oracle::{self, Acknowledged},
    root::{CommandOutput, finish, program},
    scenario::{SCENARIOS, Stage},
    trials::{Module, by_form},
};

/// System calls that write, rename, remove, or open files.
const CALLS: [&str; 14] = [
    "fsync",
    "fdatasync",
    "write",
    "pwrite64",
    "renameat2",
    "ftruncate",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "fchmod",
    "pread64",
    "openat",
    "openat2",
];
const FAULTS: [&str; 3] = ["error=EIO", "error=ENOSPC", "signal=SIGKILL"];
/// In the short form, one of this many reads fails.
const READS_STRIDE: usize = 4;
/// Scenarios under test.
const TESTED: [&str; 4] = ["compact", "late line", "log", "first log of a day"];

/// A fault at the `when`-th call of a kind.
struct Case<'a> {
    stage: &'a Stage,
    call: &'static str,
    fault: &'static str,
    when: usize,
}

#[test]
fn a_failing_system_call_loses_nothing() {
    let mut module = Module::begin("syscalls");
    let Some(strace) = strace() else {
        return module.skip("strace is not installed or not permitted");
    };
    let names = by_form(&TESTED[..1], &TESTED[..1], &TESTED[..]);
    for name in names {
        let scenario = SCENARIOS.iter().find(|it| it.name == *name).unwrap();
        let stage = scenario.stage();
        let mut cases = Vec::new();
        for call in CALLS {
            let calls = calls(&strace, &stage, call);
            let count = calls.len();
            // A log, a memory, or a summary that cannot be read must not be lost.
            let reads = (1..).zip(&calls).filter(|(_, it)| it.contains(".md\", O_RDONLY"));
            let reads: Vec<usize> = reads.map(|it| it.0).collect();
            for (i, fault) in FAULTS.into_iter().enumerate() {
                let quick = vec![[1, 1 + count / 2][i % 2]];
                let mut short = quick.clone();
                if fault == FAULTS[0] {
                    short.extend(reads.iter().step_by(READS_STRIDE));
                }
                let whens = by_form(quick, short, (1..=count).collect());
                let whens = whens.into_iter().filter(|it| *it <= count);
                cases.extend(whens.map(|when| Case { stage: &stage, call, fault, when }));
            }
        }
        let missed = AtomicUsize::new(0);
        module.run(&cases, |case| trial(&strace, case, &missed));
        let missed = missed.into_inner();
        module.note(format!("{} of `{name}`, {missed} not reached", cases.len()));
        // Runs differ by a call or two. More misses would mean that this test checks nothing.
        assert!(missed * 10 <= cases.len(), "strace did not reach {missed} calls of `{name}`");
    }
    module.end();
}

/// Returns the path of strace if it works.
fn strace() -> Option<PathBuf> {
    let dirs = std::env::var_os("PATH")?;
    let strace =
        std::env::split_paths(&dirs).map(|it| it.join("strace")).find(|it| it.is_file())?;
    let works = Command::new(&strace).args(["-qq", "-o", "/dev/null", "true"]).status();
    works.is_ok_and(|it| it.success()).then_some(strace)
}

/// Returns the calls of a kind on the main thread; injection counts per thread.
fn calls(strace: &PathBuf, stage: &Stage, call: &str) -> Vec<String> {
    let root = stage.start.copy();
    let out = root.home().join("strace");
    let mut command = Command::new(strace);
    command.args(["-f", "--seccomp-bpf", "-qq", "-o"]).arg(&out);
    command.args(["-e", &format!("trace={call}"), "-e", "signal=none"]);
    command.arg(program()).args(stage.command);
    root.set_up(&mut command);
    finish(command).ok();
    let text = fs::read_to_string(out).unwrap();
    let main = text.split_whitespace().next().unwrap_or_default();
    let calls = text.lines().filter(|it| it.starts_with(main) && it.contains(&format!(" {call}(")));
    calls.map(str::to_owned).collect()
}

fn trial(strace: &PathBuf, case: &Case<'_>, missed: &AtomicUsize) -> Result<(), String> {
    let Case { stage, call, fault, when } = case;
    let root = stage.start.copy();
    let out = root.home().join("strace");
    let mut command = Command::new(strace);
    // Not with `--seccomp-bpf`: strace does not deliver the signal then.
    command.args(["-f", "-qq", "-o"]).arg(&out);
    command.args(["-e", &format!("trace={call}"), "-e", "signal=none", "-e"]);
    command.arg(format!("inject={call}:{fault}:when={when}"));
    command.arg(program()).args(stage.command);
    root.set_up(&mut command);
    let ran = finish(command);
    let is_kill = fault.starts_with("signal");
    let trace = fs::read_to_string(out).unwrap();
    let refused = trace.lines().find(|it| it.contains("(INJECTED)"));
    let is_reached = if is_kill { ran.is_killed() } else { refused.is_some() };
    if !is_reached {
        missed.fetch_add(1, Ordering::Relaxed);
    }
    // If printing itself fails, nothing can be reported.
    let is_output_refused =
        refused.is_some_and(|it| it.contains(" write(1,") || it.contains(" write(2,"));
    if is_output_refused {
        let code = ran.status.code();
        if !matches!(code, Some(0 | 73)) {
            return Err(format!("wrong exit code after failed output\n{ran}"));
        }
    } else if !is_kill {
        check_exit(call, &ran)?;
    }
    oracle::check(stage, &root, &Acknowledged { done: ran.is_done(), ..Acknowledged::default() })
}

/// Checks that a refused call ends no process by a signal or a panic, and that a failed write is
/// reported.
fn check_exit(call: &str, ran: &CommandOutput) -> Result<(), String> {
    // These calls also load the program itself and read its configuration.
    let reads = ["openat", "openat2", "pread64"].contains(&call);
    match ran.status.code() {
        Some(2 | 65 | 78 | 127) if reads => Ok(()),
        _ => oracle::check_failure_reported(ran),
    }
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, call, fault, when } = self;
        write!(f, "{}: {call}:{fault}:when={when}", stage.name)
    }
}
