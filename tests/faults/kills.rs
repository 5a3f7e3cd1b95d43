//! `SIGKILL` at random times, during `compact` on the sample journal and during a daemon run, also
//! while `log` adds entries.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    oracle::{self, Acknowledged},
    root::{Root, finish, kill_after, program},
    scenario::{Stage, long_run},
    trials::{Module, Random, by_form},
};

struct Case {
    number: usize,
    /// The command that is killed.
    verb: &'static str,
    /// The time from the start to the kill.
    after: Duration,
    /// The time to the kill of the restart, if it is killed too.
    restart_after: Option<Duration>,
    /// Whether `log` adds entries at the same time; its last process is killed as well.
    with_log: bool,
}

#[test]
fn a_kill_at_any_time_loses_nothing() {
    let mut module = Module::begin("kills");
    let mut random = Random::seeded(&mut module);
    let stage = long_run().stage();
    let root = stage.start.copy();
    let begun = Instant::now();
    root.run(&["compact"]).ok();
    // Trials run in parallel, so each takes longer than this single run.
    let most = begun.elapsed() * 3 / 2;
    let cases: Vec<_> = (0..by_form(12, 50, 1000))
        .map(|number| Case {
            number,
            verb: if number % 2 == 0 { "compact" } else { "run" },
            after: random.below(most),
            restart_after: random.next().is_multiple_of(2).then(|| random.below(most / 2)),
            with_log: random.next().is_multiple_of(4),
        })
        .collect();
    module.run(&cases, |case| trial(&stage, case));
    module.note(format!("within {} ms each", most.as_millis()));
    module.end();
}

fn trial(stage: &Stage, case: &Case) -> Result<(), String> {
    let root = stage.start.copy();
    let mut acknowledged = Acknowledged { with_log: case.with_log, ..Acknowledged::default() };
    std::thread::scope(|scope| {
        let logging = case.with_log.then(|| scope.spawn(|| log_for(&root, case.after)));
        acknowledged.done =
            kill_after(root.command(&program(), &[case.verb]), case.after).is_done();
        if let Some(logging) = logging {
            acknowledged.entries = logging.join().unwrap();
        }
    });
    if let Some(after) = case.restart_after {
        kill_after(root.command(&program(), &["compact"]), after);
    }
    oracle::check(stage, &root, &acknowledged)
}

/// Logs one entry after another, kills the last `log`, and returns the acknowledged entries.
fn log_for(root: &Root, time: Duration) -> Vec<String> {
    let begun = Instant::now();
    let mut acknowledged = Vec::new();
    for number in 1.. {
        let entry = format!("Entry {number} of a trial");
        let command = root.command(&program(), &["log", &entry]);
        let left = time.saturating_sub(begun.elapsed());
        let ran = if left < Duration::from_millis(50) {
            kill_after(command, left)
        } else {
            finish(command)
        };
        let is_last = left < Duration::from_millis(50);
        if ran.is_done() {
            acknowledged.push(entry);
        } else if !is_last {
            panic!("{ran}");
        }
        if is_last {
            break;
        }
    }
    acknowledged
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, verb, after, restart_after, with_log } = self;
        write!(f, "{number}: {verb} killed after {after:?}")?;
        if let Some(restart_after) = restart_after {
            write!(f, ", the restart after {restart_after:?}")?;
        }
        if *with_log {
            f.write_str(", while entries are logged")?;
        }
        Ok(())
    }
}
