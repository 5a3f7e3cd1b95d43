//! Runs the program in a memory folder in a temporary home.
//!
//! The environment is cleared, and the clock is fixed at [`NOW`]: the Monday after both sample
//! journals, so that all their weeks are closed. A [`CommandOutput`] prints as a transcript in which
//! `~` is the temporary home.

pub(crate) mod database;
pub(crate) mod files;
pub(crate) mod fixtures;
mod no_trace;
mod pause;
pub(crate) mod recorded;
pub(crate) mod server;

use std::{
    fmt, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use self::files::{Files, read_all};
pub(crate) use self::{
    no_trace::{assert_absent, assert_in_no_file},
    pause::await_pause,
};

/// Reports that a test, or a part of it, cannot run on this machine, and why.
#[expect(clippy::print_stderr, reason = "the person who runs the tests should know")]
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

/// The time at which tests run unless they set another one.
pub(crate) const NOW: &str = "2026-04-13T09:00:00+02:00";

/// A temporary home with one memory folder.
#[derive(Debug)]
pub(crate) struct Root {
    home: TempDir,
    path: PathBuf,
    now: String,
}

/// The outcome of one run of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandOutput {
    /// The command line.
    pub(crate) line: String,
    /// The exit code; -1 when a signal ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Root {
    /// Creates a home with the sample journal `name` in `~/NAME`, which no configuration lists.
    pub(crate) fn new(name: &str) -> Self {
        let root = Self::empty(name);
        root.write(
            "memoird.yaml",
            &format!("agent_name: {name}\nzone: Europe/Berlin\nmemory_dir: memory\n"),
        );
        let journal = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/data/journal")
            .join(name)
            .join("memory");
        for entry in fs::read_dir(journal).unwrap() {
            let entry = entry.unwrap();
            let text = fs::read_to_string(entry.path()).unwrap();
            root.write(&format!("memory/{}", entry.file_name().to_str().unwrap()), &text);
        }
        root
    }

    /// Creates a home with the empty folder `~/NAME`.
    pub(crate) fn empty(name: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().canonicalize().unwrap().join(name);
        fs::create_dir(&path).unwrap();
        Self { home, path, now: NOW.to_owned() }
    }

    /// Creates a home with `~/small`: one log in each of two weeks of March, short enough that all
    /// their lines are kept, and one log in the open week.
    pub(crate) fn small() -> Self {
        let root = Self::empty("small");
        root.write("memoird.yaml", "zone: Europe/Berlin\n");
        root.write(
            "memory/2026-03-03.md",
            "# Importer\n\n- Importer v2 shipped, 3.2 s per GB\n- Backfill of 2019 begun, 38 GB\n",
        );
        root.write("memory/2026-03-10.md", "- Backfill of 2019 complete, 951 million rows\n");
        root.write("memory/2026-04-13.md", "- Disk at 34%\n");
        root
    }

    /// Sets the clock.
    pub(crate) fn set_now(&mut self, now: &str) {
        now.clone_into(&mut self.now);
    }

    /// Returns the full path of a file of the folder.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.path.join(relative)
    }

    /// Returns the full path of a file of the home.
    pub(crate) fn home(&self, relative: &str) -> PathBuf {
        self.home.path().canonicalize().unwrap().join(relative)
    }

    /// Writes a file of the folder and creates its parent folders.
    pub(crate) fn write(&self, relative: &str, text: &str) {
        write_file(&self.path(relative), text);
    }

    /// Appends text to a file of the folder.
    pub(crate) fn append(&self, relative: &str, text: &str) {
        use std::io::Write as _;
        // In one write, because a daemon may read at the same time.
        let file = fs::File::options().append(true).open(self.path(relative));
        let mut file = file.unwrap_or_else(|e| panic!("{relative}: {e}"));
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Reads a file of the folder.
    pub(crate) fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_else(|e| panic!("{relative}: {e}"))
    }

    /// Returns the path of the hidden file beside a generated file.
    pub(crate) fn record_path(relative: &str) -> String {
        let (dir, name) = relative.rsplit_once('/').map_or(("", relative), |it| it);
        let hidden = format!(".{}.json", name.trim_end_matches(".md"));
        if dir.is_empty() { hidden } else { format!("{dir}/{hidden}") }
    }

    /// Returns the path of the file beside a hidden one; for any other file, its own.
    pub(crate) fn visible_path(relative: &str) -> String {
        let (dir, name) = relative.rsplit_once('/').map_or(("", relative), |it| it);
        let Some(stem) = name.strip_prefix('.').and_then(|it| it.strip_suffix(".json")) else {
            return relative.to_owned();
        };
        if dir.is_empty() { format!("{stem}.md") } else { format!("{dir}/{stem}.md") }
    }

    /// Reads the hidden file beside a generated file.
    pub(crate) fn read_record(&self, relative: &str) -> String {
        self.read(&Self::record_path(relative))
    }

    /// Returns all files in the folder with their text, except those in `.memoird/`.
    pub(crate) fn files(&self) -> Files {
        read_all(&self.path)
    }

    /// Returns the permission bits of a file of the folder.
    pub(crate) fn mode(&self, relative: &str) -> u32 {
        fs::metadata(self.path(relative)).unwrap().permissions().mode() & 0o777
    }

    /// Returns the program as a process of the folder, with all settings as they are by default.
    pub(crate) fn process(&self, args: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("memoird"));
        command
            .args(args)
            .env_clear()
            // Nothing that a test starts may reach services of this machine.
            .env("PATH", "/nonexistent")
            .env("HOME", self.home(""))
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", &self.now)
            .current_dir(&self.path);
        command
    }

    /// Returns the program, ready to run in the folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::from_std(self.process(args));
        // `digest.rs` is about the bullets of `WISDOM.md`; elsewhere they would hide what is tested.
        command.env("MEMOIRD_WISDOM_DIGEST", "false");
        command
    }

    /// Runs the program in the folder.
    pub(crate) fn run(&self, args: &[&str]) -> CommandOutput {
        self.finish(self.command(args), args)
    }

    /// Runs the program as it is by default: with memories by topic, and bullets in `WISDOM.md`.
    pub(crate) fn run_with_digest(&self, args: &[&str]) -> CommandOutput {
        let mut command = self.command(args);
        command.env("MEMOIRD_WISDOM_DIGEST", "true");
        self.finish(command, args)
    }

    /// Runs the program with this text on stdin.
    pub(crate) fn run_with_stdin(&self, args: &[&str], stdin: impl Into<Vec<u8>>) -> CommandOutput {
        let mut command = self.command(args);
        command.write_stdin(stdin);
        self.finish(command, args)
    }

    /// Runs a prepared command.
    pub(crate) fn finish(&self, mut command: Command, args: &[&str]) -> CommandOutput {
        let output = command.output().unwrap();
        let home = self.home("");
        let home = home.to_str().unwrap().trim_end_matches('/');
        let program = assert_cmd::cargo::cargo_bin!("memoird").to_str().unwrap();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(home, "~").replace(program, "memoird")
        };
        CommandOutput {
            line: format!("memoird {}", args.join(" ")).replace(home, "~"),
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// Returns the number of the first line that contains these words, from 1.
#[track_caller]
pub(crate) fn line_of(text: &str, words: &str) -> usize {
    let line = text.lines().position(|it| it.contains(words));
    line.unwrap_or_else(|| panic!("{words} in:\n{text}")) + 1
}

impl CommandOutput {
    /// Checks that the exit code is 0, and returns the output.
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self}");
        self
    }

    /// Reads stdout as one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("{e}\n{self}"))
    }

    /// Reads stdout as one JSON document and validates it by `schema/NAME.schema.json`.
    #[track_caller]
    pub(crate) fn json_as(&self, schema: &str) -> Value {
        let path = format!("{}/schema/{schema}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let value = self.json();
        let errors: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&value)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{}\n{self}", errors.join("\n"));
        value
    }
}

impl fmt::Display for CommandOutput {
    /// Prints a transcript: the command line, stdout, stderr with the prefix `! `, and a nonzero exit
    /// code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "$ {}", self.line)?;
        f.write_str(&self.stdout)?;
        for line in self.stderr.lines() {
            writeln!(f, "! {line}")?;
        }
        if self.code != 0 {
            writeln!(f, "[exit {}]", self.code)?;
        }
        Ok(())
    }
}

/// Adds the files below a folder whose names end with one of these, without the dot.
pub(crate) fn files_below(dir: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, endings, found);
        } else if path.extension().is_some_and(|it| endings.iter().any(|ending| it == *ending)) {
            found.push(path);
        }
    }
}

/// Writes a file and creates its parent folders.
pub(crate) fn write_file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a file of a test")]
    fs::write(path, text).unwrap();
}
