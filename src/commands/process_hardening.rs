//! Protects the memory of the process from core dumps and debuggers.
//!
//! The memory contains the text of logs and possibly an API key. Only root can read the memory and
//! environment of a process that is not dumpable. [`super::main`] sets this first; `doctor` reports
//! if it failed.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, dumpable_behavior, getrlimit, set_dumpable_behavior,
    setrlimit,
};

/// Disables core dumps of this process and its children.
///
/// Ignores failures: under the systemd unit the limit cannot be set, but is already 0.
pub(super) fn disable_core_dumps() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Returns whether a crash could write the memory of this process to a disk.
pub(super) fn can_dump_core() -> bool {
    // A limit of 0 prevents core files, but not dumps that the kernel pipes to a program.
    !dumpable_behavior().is_ok_and(|it| it == DumpableBehavior::NotDumpable)
        || getrlimit(Resource::Core).current != Some(0)
}
