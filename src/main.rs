//! The `memoird` program: parses the command line, runs it, returns the exit code.

use std::process::ExitCode;

/// Folds are made of many short pieces of text, on several threads at once.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    memoird::commands::main()
}
