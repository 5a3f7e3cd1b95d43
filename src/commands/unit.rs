//! The systemd user unit: its text for this program, and its start.
//!
//! Called by `init --service`. Where no user manager answers (a container, another init) the unit
//! is written all the same, and a person is told what to type.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::error::CommandError;
use crate::{
    config::{key, surroundings::Surroundings},
    store::vault::settings::write_settings,
};

/// The unit as it is shipped.
const UNIT: &str = include_str!("../../systemd/memoird.service");

/// What is to be done with the unit.
#[derive(Debug)]
pub(super) struct Unit {
    /// Where it belongs.
    pub(super) path: PathBuf,
    text: String,
    /// How it stands to the file that is there.
    pub(super) state: State,
}

/// How a unit stands to the file of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// There is no file.
    New,
    /// The file says the same.
    Same,
    /// The file says something else, so it is somebody's own or an older one.
    Differs,
}

impl Unit {
    /// Prepares the unit for the program at `program`, which reads the configuration `config` when
    /// one was named.
    pub(super) fn new(around: &Surroundings, program: &Path, config: Option<&Path>) -> Self {
        let path = around.config_home.join("systemd/user/memoird.service");
        let text = text(program, config);
        let state = match fs::read_to_string(&path) {
            Ok(there) if there == text => State::Same,
            Err(e) if e.kind() == io::ErrorKind::NotFound => State::New,
            _ => State::Differs,
        };
        Self { path, text, state }
    }

    /// Writes the unit.
    pub(super) fn write(&self) -> Result<(), CommandError> {
        Ok(write_settings(&self.path, &self.text)?)
    }

    /// Has the user manager read the unit and start it; returns why not.
    pub(super) fn start() -> Result<(), String> {
        for words in [&["daemon-reload"][..], &["enable", "--now", "memoird.service"]] {
            let output = key::scrub(&mut Command::new("systemctl"))
                .arg("--user")
                .args(words)
                .stdin(Stdio::null())
                .output()
                .map_err(|e| format!("systemctl: {e}"))?;
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let said = said.lines().next().unwrap_or("it gave no reason").trim().to_owned();
                return Err(format!("systemctl --user {}: {said}", words.join(" ")));
            }
        }
        Ok(())
    }
}

fn text(program: &Path, config: Option<&Path>) -> String {
    let mut start = format!("ExecStart={} run", quoted(program));
    if let Some(config) = config {
        start = format!("{start} --config {}", quoted(config));
    }
    let lines = UNIT.lines().map(|it| if it.starts_with("ExecStart=") { &start } else { it });
    lines.fold(String::new(), |text, line| text + line + "\n")
}

/// Writes a path as one word of a command line of systemd.
fn quoted(path: &Path) -> String {
    let path = path.to_string_lossy();
    let escaped =
        path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_alphanumeric() || "/._-%$+,:@".contains(c);
    if escaped.chars().all(plain) { escaped } else { format!("\"{escaped}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(program: &str, config: Option<&str>, expected: &str) {
        let text = text(Path::new(program), config.map(Path::new));
        let starts: Vec<&str> = text.lines().filter(|it| it.starts_with("ExecStart=")).collect();
        assert_eq!(starts, [expected]);
        assert_eq!(text.lines().count(), UNIT.lines().count());
    }

    #[test]
    fn the_unit_starts_this_program() {
        check("/usr/bin/memoird", None, "ExecStart=/usr/bin/memoird run");
        check(
            "/home/a b/50%/$x/memoird",
            Some("/c d.yaml"),
            "ExecStart=\"/home/a b/50%%/$$x/memoird\" run --config \"/c d.yaml\"",
        );
    }
}
