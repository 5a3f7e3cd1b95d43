//! The `memoird` program: parses the command line, runs it, returns the exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    memoird::commands::main()
}
