//! Keeps the memory of the program from others: no core dump, and no look into it by a debugger.
//!
//! It holds the text of logs and, later on, a key. What the kernel shows of a process that is not
//! dumpable (its memory, its environment) only root may read. [`super::main`] asks for it before
//! anything else; `doctor` tells where that did not work.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit, set_dumpable_behavior,
    setrlimit,
};

/// Forbids core dumps of this process, and of those that it starts.
///
/// A refusal is no reason not to run: under the systemd unit the limit may not be set, but is 0.
pub(super) fn disable_core_dumps() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Returns whether a crash could leave the memory of this process on a disk.
pub(super) fn can_dump_core() -> bool {
    // Either of them is enough for a file, and only the former for a program that takes dumps.
    !dumpable_behavior().is_ok_and(|it| it == DumpableBehavior::NotDumpable)
        || getrlimit(Resource::Core).current != Some(0)
}
