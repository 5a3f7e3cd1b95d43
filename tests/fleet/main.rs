//! Portable roots: machines that publish to a store and bring from it, and workers that compact what is there.
//!
//! ```sh
//! cargo test --features fleet --test fleet                     # stores in folders, and a scripted server
//! MEMOIRD_FLEET=1 cargo test --features fleet --test fleet     # also moto (PyPI), as S3, and PostgreSQL (Debian)
//! ```
//!
//! | variable | effect |
//! |---|---|
//! | `MEMOIRD_FLEET=1` | also runs the tests with servers of others |
//! | `MEMOIRD_POSTGRES=FOLDER` | the programs of PostgreSQL, if they are not in /usr/lib/postgresql |
//! | `MEMOIRD_PGBOUNCER=1` | puts PgBouncer (Debian) between workers and PostgreSQL in all tests, in transaction mode |
//! | `MEMOIRD_FLEET_ROOTS=N`, `…_KILLS=N`, `…_PAUSES=N`, `…_PARTITIONS=N` | the size of the test that kills workers |
//! | `MEMOIRD_FLEET_STEP_KILLS=N` | how often the test kills a push or pull at one of its steps |
//! | `MEMOIRD_S3S_FS=PROGRAM` | the `s3s-fs` that must be refused |

#![cfg(test)]

mod conflicts;
mod deploy;
mod dice;
mod fleet_home;
mod forget;
mod identity;
mod kills;
mod manifests;
mod namespaces;
mod postgres;
mod round_trip;
mod s3;
mod servers;
mod spending;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "the tests of the program use the rest")]
mod support;
mod workers;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use support::{CommandOutput, Root, files::Files};
use tempfile::TempDir;

/// A store in a folder, for the machines of a test.
struct Store {
    dir: TempDir,
}

impl Store {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("lex")
    }

    fn url(&self) -> String {
        format!("file://{}", self.path().display())
    }

    fn manifest(&self) -> Value {
        serde_json::from_slice(&fs::read(self.path().join("manifest.json")).unwrap()).unwrap()
    }

    fn write_manifest(&self, manifest: &Value) {
        support::write_file(&self.path().join("manifest.json"), &manifest.to_string());
    }

    /// Returns the names of the objects, sorted.
    fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let Ok(folders) = fs::read_dir(self.path().join("objects")) else { return found };
        for folder in folders {
            let folder = folder.unwrap().path();
            found.extend(fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()));
        }
        found.sort();
        found
    }

    /// Returns everything that the objects hold, unpacked, and the manifest.
    fn contents(&self) -> String {
        let mut text = fs::read_to_string(self.path().join("manifest.json")).unwrap();
        for path in self.objects() {
            let bytes = fs::read(path).unwrap();
            let raw = zstd::stream::decode_all(&bytes[32..]).unwrap();
            text.push_str(&String::from_utf8_lossy(&raw));
        }
        text
    }
}

/// Returns a root with a month of logs, compacted.
fn compacted() -> Root {
    let root = Root::new("mara");
    root.run_with_digest(&["compact"]).ok();
    root
}

/// Returns a root that was brought from a store.
fn pulled(url: &str) -> Root {
    let root = Root::empty("mara");
    root.run(&["bundle", "pull", url, "--root", "."]).ok();
    root
}

/// Returns the files that people see.
fn files(root: &Root) -> Files {
    root.files()
}

#[track_caller]
fn assert_same_files(a: &Root, b: &Root) {
    let (a, b) = (files(a), files(b));
    let names = |it: &Files| it.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&a), names(&b));
    for (path, text) in &a {
        assert!(b.get(path) == Some(text), "{path} differs");
    }
}

/// Checks that a command ends with this exit code, and that its messages contain these words.
#[track_caller]
fn check(output: &CommandOutput, code: i32, words: &[&str]) {
    assert_eq!(output.code, code, "{output}");
    for words in words {
        let is_there = output.stderr.contains(words) || output.stdout.contains(words);
        assert!(is_there, "{words:?} in {output}");
    }
}

fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Returns the size of a test: that of a variable, or the one for every day.
fn size(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

#[expect(clippy::print_stderr, reason = "figures, for the person who asked for the size of a test")]
fn report(figures: &str) {
    eprintln!("{figures}");
}
