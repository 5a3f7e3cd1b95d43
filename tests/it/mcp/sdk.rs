//! The official Python client asks for everything, by both protocols. Runs where Python has it.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use serde_json::json;

use super::made;
use crate::support::NOW;

#[expect(clippy::print_stderr, reason = "a person is told what was asked")]
#[test]
fn the_official_client_is_answered_in_all_it_asks() {
    let python = std::env::var("MEMOIRD_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/mcp_check.py");
    let root = made();
    root.write(
        "memory/feedback_tests.md",
        "---\nname: tests\ndescription: Run the small tests first\ntype: feedback\n---\nRun the small tests first.\n",
    );
    let asked = json!({
        "command": assert_cmd::cargo::cargo_bin!("memoird"),
        "args": ["--root", root.path(""), "mcp", "--allow-write"],
        "env": { "HOME": root.home(""), "TZ": "Europe/Berlin", "MEMOIRD_NOW": NOW },
        "cwd": root.path(""),
        "change": root.path("memory/weekly/2026-W11.md"),
    });
    let mut command = Command::new(&python);
    command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        eprintln!("skipped: there is no {python}");
        return;
    };
    // Without the package it ends before it reads.
    drop(child.stdin.take().unwrap().write_all(asked.to_string().as_bytes()));
    let ended = child.wait_with_output().unwrap();
    let (told, wrong) =
        (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    match ended.status.code() {
        Some(77) => eprintln!("{wrong}"),
        code => assert_eq!(code, Some(0), "{told}{wrong}"),
    }
    eprint!("{told}");
}
