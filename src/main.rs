//! The `memoird` program: parses the command line, runs it, returns the exit code.

use std::process::ExitCode;

/// Summaries allocate many short strings on several threads, which this allocator does faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memoird::internals::commands::main(&memoird::internals::web::PROGRAM)
}
