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

#![cfg(test)]

mod gemini;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests of the program use the rest")]
mod support;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use support::skipped;

/// Returns the program of an npm package, installed if necessary; `None`, with a message, if it cannot run here.
fn installed_client(package: &str, version: &str, program: &str) -> Option<PathBuf> {
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
        npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]);
        let done = npm.arg(&folder).arg(format!("{package}@{version}")).output();
        if !done.is_ok_and(|it| it.status.success()) || !program.is_file() {
            skipped(&format!("npm could not install {package} {version}"));
            return None;
        }
    }
    Some(program)
}
