//! Real agent programs as clients: each runs against a model server on this machine that answers from a script.
//!
//! ```sh
//! MEMOIRD_CLIENTS=1 cargo test --test clients
//! ```
//!
//! The programs come from the npm registry, in the versions named here, into the folder of the build. Without
//! `MEMOIRD_CLIENTS=1`, Node, or the registry, a test is skipped with a message.
//!
//! | variable | effect |
//! |---|---|
//! | `MEMOIRD_CLIENTS=1` | runs the programs |
//! | `MEMOIRD_GEMINI_VERSION=V` | tries another version of Gemini CLI |
//! | `MEMOIRD_OPENCLAW_VERSION=V` | tries another version of `OpenClaw` |

#![cfg(test)]

mod gemini;
mod openclaw;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests of the program use the rest")]
mod support;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use support::{Root, skipped};

/// How long to wait for the worker that a hook started.
const WORKER_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the program of an npm package, installed if necessary; `None`, with a message, if it cannot run here.
fn installed_client(
    package: &str,
    version: &str,
    program: &str,
    options: &[&str],
) -> Option<PathBuf> {
    if std::env::var_os("MEMOIRD_CLIENTS").is_none_or(|it| it != "1") {
        skipped("MEMOIRD_CLIENTS is not 1");
        return None;
    }
    if Command::new("node").arg("--version").output().is_err() {
        skipped("Node was not found");
        return None;
    }
    let name = format!("{}-{version}", package.replace(['@', '/'], "-"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name.trim_start_matches('-'));
    let program = folder.join("node_modules").join(package).join(program);
    if !program.is_file() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--no-save"]).args(options).arg("--prefix");
        let done = npm.arg(&folder).arg(format!("{package}@{version}")).output();
        if !done.is_ok_and(|it| it.status.success()) || !program.is_file() {
            skipped(&format!("npm could not install {package} {version}"));
            return None;
        }
    }
    Some(program)
}

/// Returns a program of Node in this version, from the npm registry; `None`, with a message, if it cannot run here.
fn installed_node(version: &str) -> Option<PathBuf> {
    let os = if cfg!(target_os = "macos") { "darwin" } else { "linux" };
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    installed_client(&format!("node-{os}-{arch}"), version, "bin/node", &[])
}

/// Waits until `count` sessions are in the logs, and returns the logs.
fn await_sessions(root: &Root, count: usize) -> String {
    let until = Instant::now() + WORKER_TIMEOUT;
    loop {
        let files = fs::read_dir(root.path("memory")).unwrap().flatten();
        let logs = files.filter_map(|it| fs::read_to_string(it.path()).ok()).collect::<String>();
        if logs.matches(" Session in ").count() >= count {
            return logs;
        }
        assert!(Instant::now() < until, "{count} sessions: {logs}");
        std::thread::sleep(Duration::from_millis(50));
    }
}
