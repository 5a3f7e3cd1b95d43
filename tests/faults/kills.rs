//! `SIGKILL` at random times: while `compact` folds the sample journal, while the daemon does, and
//! while entries are logged beside them.

use std::{
    fmt,
    time::{Duration, Instant},
};

use super::{
    oracle::{self, Acked},
    root::{Root, finish, kill_after, program},
    scenario::{Stage, long_fold},
    trials::{Module, Random, by_form},
};

struct Case {
    number: usize,
    /// What is killed.
    verb: &'static str,
    /// After how long.
    after: Duration,
    /// After how long the restart is killed too, if it is.
    again: Option<Duration>,
    /// Whether entries are logged beside it, by processes that are killed as well.
    logs: bool,
}

#[test]
fn a_kill_at_any_time_loses_nothing() {
    let mut module = Module::begin("kills");
    let mut random = Random::seeded(&mut module);
    let stage = long_fold().stage();
    let root = stage.start.copy();
    let begun = Instant::now();
    root.run(&["compact"]).ok();
    // Other trials run beside one, so that it takes longer than it does alone.
    let most = begun.elapsed() * 3 / 2;
    let cases: Vec<_> = (0..by_form(12, 50, 1000))
        .map(|number| Case {
            number,
            verb: if number % 2 == 0 { "compact" } else { "run" },
            after: random.below(most),
            again: random.next().is_multiple_of(2).then(|| random.below(most / 2)),
            logs: random.next().is_multiple_of(4),
        })
        .collect();
    module.run(&cases, |case| trial(&stage, case));
    module.note(format!("within {} ms each", most.as_millis()));
    module.end();
}

fn trial(stage: &Stage, case: &Case) -> Result<(), String> {
    let root = stage.start.copy();
    let mut acked = Acked { logged: case.logs, ..Acked::default() };
    std::thread::scope(|scope| {
        let logging = case.logs.then(|| scope.spawn(|| log_for(&root, case.after)));
        acked.done = kill_after(root.command(&program(), &[case.verb]), case.after).is_done();
        if let Some(logging) = logging {
            acked.entries = logging.join().unwrap();
        }
    });
    if let Some(after) = case.again {
        kill_after(root.command(&program(), &["compact"]), after);
    }
    oracle::check(stage, &root, &acked)
}

/// Logs one entry after the other, kills the last `log`, and returns the entries of those that said
/// that they are done.
fn log_for(root: &Root, time: Duration) -> Vec<String> {
    let begun = Instant::now();
    let mut acked = Vec::new();
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
            acked.push(entry);
        } else if !is_last {
            panic!("{ran}");
        }
        if is_last {
            break;
        }
    }
    acked
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, verb, after, again, logs } = self;
        write!(f, "{number}: {verb} killed after {after:?}")?;
        if let Some(again) = again {
            write!(f, ", the restart after {again:?}")?;
        }
        if *logs {
            f.write_str(", while entries are logged")?;
        }
        Ok(())
    }
}
