//! The disk is full at the n-th block: a command runs on an in-memory file system with 0, 1, 2, … free
//! blocks of 4 KiB, up to the number that it needs. The file system is then enlarged.

use std::fmt;

use super::{
    disk::{Disk, is_root},
    oracle::{self, Acknowledged},
    root::{finish, program},
    scenario::{SCENARIOS, Stage, long_run},
    trials::{Module, by_form, workers},
};

/// The unit of disk space.
const BLOCK_KIB: u64 = 4;
/// Enough for every command and for the free space that `doctor` requires.
const LARGE_KIB: u64 = 256 * 1024;

struct Case<'a> {
    stage: &'a Stage,
    /// The size of the folder before the command.
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
        return module.skip(format_args!("mounting is not possible here: {why}"));
    }
    let small = ["late line", "log", "first log of a day"];
    let scenarios = SCENARIOS.iter().filter(|it| small.contains(&it.name));
    for scenario in scenarios.chain([&long_run()]) {
        let stage = scenario.stage();
        let (used_kib, needed) = blocks(&stage).unwrap();
        // A few spread over the range, the first and last ones included, where most happens.
        let short: Vec<_> = (0..4).map(|i| needed * i / 4 + 1 - i % 2).collect();
        let blocks = by_form(short[..2].to_vec(), short, (0..=needed).collect());
        let case = |blocks| Case { stage: &stage, used_kib, blocks };
        let cases: Vec<_> = blocks.into_iter().map(case).collect();
        module.run_on(workers(), &cases, |_, case| trial(case));
        module.note(format!("{} needs {needed} blocks", stage.name));
    }
    module.end();
}

/// Returns the size of the folder in KiB and the number of free blocks that the command needs.
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
    oracle::check_failure_reported(&ran)?;
    oracle::check_files_complete(stage, &root)?;
    disk.resize(LARGE_KIB)?;
    oracle::check(stage, &root, &Acknowledged { done: ran.is_done(), ..Acknowledged::default() })
        .map_err(|it| format!("{it}\nafter\n{ran}"))
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} free blocks", self.stage.name, self.blocks)
    }
}
