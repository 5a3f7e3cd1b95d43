//! Many daemons start at once on one memory folder, some by a symbolic link to it: exactly one runs,
//! and the others report which.

use std::{
    fmt, fs,
    os::unix::fs::symlink,
    process::Child,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{
    root::{CommandOutput, Root, program, wait},
    trials::{Module, Random, by_form},
};

/// The longest wait.
const TIMEOUT: Duration = Duration::from_secs(180);

struct Case {
    number: usize,
    daemons: usize,
    /// Whether another daemon is started after the running one was killed.
    has_successor: bool,
}

/// Started daemons; those still running are killed when dropped.
struct Daemons(Vec<Option<Child>>);

#[test]
fn only_one_of_many_daemons_runs() {
    let mut module = Module::begin("daemons");
    let mut random = Random::seeded(&mut module);
    let cases: Vec<_> = (0..by_form(2, 5, 200))
        .map(|number| Case {
            number,
            // The shorter forms try the smallest and the largest number.
            daemons: match number {
                0 => 2,
                1 => 20,
                _ => 2 + usize::try_from(random.next() % 19).unwrap(),
            },
            has_successor: number % 2 == 0,
        })
        .collect();
    let start = Root::new();
    start.write("memoird.yaml", "zone: Europe/Berlin\n");
    start.add_logs(&["2026-03-1"]);
    start.run(&["compact"]).ok();
    let slowest_ms = AtomicU64::new(0);
    // One trial at a time: its daemons already use all cores.
    module.run_on(1, &cases, |_, case| {
        let took = trial(&start, case)?;
        slowest_ms.fetch_max(u64::try_from(took.as_millis()).unwrap(), Ordering::Relaxed);
        Ok(())
    });
    module.note(format!("the slowest refusal took {} ms", slowest_ms.into_inner()));
    module.end();
}

/// Returns how long the slowest refusal took.
fn trial(start: &Root, case: &Case) -> Result<Duration, String> {
    let root = start.copy();
    let other_name = root.home().join("other-name");
    symlink(root.path(""), &other_name).unwrap();
    let lock = root.path(".memoird/daemon.lock");
    let start_one = |by_other_name: bool| {
        let mut command = root.command(&program(), &["run"]);
        if by_other_name {
            command.current_dir(root.home()).arg("--root").arg(&other_name);
        }
        command.spawn().unwrap()
    };
    let begun = Instant::now();
    let mut daemons = Daemons((0..case.daemons).map(|i| Some(start_one(i % 2 == 1))).collect());
    let mut refused = Vec::new();
    let mut slowest = Duration::ZERO;
    while refused.len() + 1 < case.daemons {
        if begun.elapsed() > TIMEOUT {
            return Err(format!("{} of them keep running", case.daemons - refused.len()));
        }
        for daemon in &mut daemons.0 {
            if let Some(mut child) = daemon.take() {
                if child.try_wait().unwrap().is_some() {
                    slowest = begun.elapsed();
                    refused.push(wait(child, "memoird run".to_owned()));
                } else {
                    *daemon = Some(child);
                }
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let Some(mut holder) = daemons.0.iter_mut().find_map(Option::take) else {
        return Err(format!("none runs: {}", refused[0]));
    };
    let pid = holder.id();
    for ran in &refused {
        is_refusal(ran, pid)?;
    }
    if let Some(over) = holder.try_wait().unwrap() {
        return Err(format!("the remaining daemon ended: {over}"));
    }
    holder.kill().unwrap();
    holder.wait().unwrap();
    if case.has_successor {
        let next = start_one(true);
        let pid = next.id();
        daemons.0.push(Some(next));
        // The lock file contains the process id and the boot id.
        let names_it = |it: &str| it.split_whitespace().next() == Some(&pid.to_string());
        let is_held = || fs::read_to_string(&lock).is_ok_and(|it| names_it(&it));
        let begun = Instant::now();
        while !is_held() {
            if begun.elapsed() > TIMEOUT {
                return Err("a killed daemon still holds the lock".to_owned());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(slowest)
}

/// Checks that a daemon ended because `holder` runs, and said so.
fn is_refusal(ran: &CommandOutput, holder: u32) -> Result<(), String> {
    let names_holder = ran.stderr.contains(&format!("process {holder}"));
    if ran.status.code() == Some(75) && names_holder {
        Ok(())
    } else {
        Err(format!("{holder} holds the lock, but another daemon ended like this:\n{ran}"))
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for child in self.0.iter_mut().flatten() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "round {} with {} daemons", self.number, self.daemons)
    }
}
