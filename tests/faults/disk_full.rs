//! The disk is full at the n-th block: a file system in memory is made so large that the next 4 KiB
//! fail, then the ones after them, until all find room. It is then made larger.

use std::fmt;

use super::{
    disk::{Disk, is_root},
    oracle::{self, Acked},
    root::{finish, program},
    scenario::{SCENARIOS, Stage, long_fold},
    trials::{Module, by_form, workers},
};

/// What a file grows by.
const BLOCK_KIB: u64 = 4;
/// Enough for all, and more than `doctor` wants free.
const LARGE_KIB: u64 = 256 * 1024;

struct Case<'a> {
    stage: &'a Stage,
    /// What the folder takes before the command.
    used_kib: u64,
    blocks: u64,
}

#[test]
fn a_full_disk_loses_nothing() {
    let mut module = Module::begin("disk full");
    if !is_root() {
        return module.skip("it needs root");
    }
    if let Err(why) = Disk::in_memory(LARGE_KIB) {
        return module.skip(format_args!("nothing can be mounted here: {why}"));
    }
    let small = ["refold", "log", "first log of a day"];
    let scenarios = SCENARIOS.iter().filter(|it| small.contains(&it.name));
    for scenario in scenarios.chain([&long_fold()]) {
        let stage = scenario.stage();
        let (used_kib, needed) = blocks(&stage).unwrap();
        // A few that spread over all, and the first and the last ones, where most happens.
        let short: Vec<_> = (0..4).map(|i| needed * i / 4 + 1 - i % 2).collect();
        let blocks = by_form(short[..2].to_vec(), short, (0..=needed).collect());
        let case = |blocks| Case { stage: &stage, used_kib, blocks };
        let cases: Vec<_> = blocks.into_iter().map(case).collect();
        module.run_on(workers(), &cases, |_, case| trial(case));
        module.note(format!("{} needs {needed} blocks", stage.name));
    }
    module.end();
}

/// Returns what the folder takes, in KiB, and how many blocks the command needs besides.
fn blocks(stage: &Stage) -> Result<(u64, u64), String> {
    let disk = Disk::in_memory(LARGE_KIB)?;
    let root = stage.start.copy_to(disk.path());
    let used_kib = disk.used_kib();
    drop(root);
    let (mut too_few, mut enough) = (0, 1);
    let is_enough = |blocks| -> Result<bool, String> {
        disk.resize(LARGE_KIB)?;
        let root = stage.start.copy_to(disk.path());
        disk.resize(used_kib + blocks * BLOCK_KIB)?;
        Ok(finish(root.command(&program(), stage.command)).is_done())
    };
    while !is_enough(enough)? {
        too_few = enough;
        enough *= 2;
    }
    while too_few + 1 < enough {
        let middle = too_few.midpoint(enough);
        *if is_enough(middle)? { &mut enough } else { &mut too_few } = middle;
    }
    Ok((used_kib, enough))
}

fn trial(case: &Case<'_>) -> Result<(), String> {
    let Case { stage, used_kib, blocks } = case;
    let disk = Disk::in_memory(LARGE_KIB)?;
    let root = stage.start.copy_to(disk.path());
    disk.resize(used_kib + blocks * BLOCK_KIB)?;
    let ran = finish(root.command(&program(), stage.command));
    oracle::told(&ran)?;
    oracle::whole(stage, &root)?;
    disk.resize(LARGE_KIB)?;
    oracle::check(stage, &root, &Acked { done: ran.is_done(), ..Acked::default() })
        .map_err(|it| format!("{it}\nafter\n{ran}"))
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} free blocks", self.stage.name, self.blocks)
    }
}
