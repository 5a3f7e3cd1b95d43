//! The user's service manager, asked through its own programs.
//!
//! Where none answers (a container, another init) a person is told what to type.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use crate::config::api_key;

/// The name of the unit.
pub(super) const UNIT_NAME: &str = "memoird.service";

/// Has the user manager read the unit and start it, or start it again; returns why not.
pub(in crate::commands) fn start(again: bool) -> Result<(), String> {
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", "--now", UNIT_NAME])?;
    if again {
        systemctl(&["restart", UNIT_NAME])?;
    }
    Ok(())
}

/// Has the user manager stop the unit and forget it; returns why not.
pub(super) fn stop() -> Result<(), String> {
    systemctl(&["disable", "--now", UNIT_NAME]).map(drop)
}

/// Has the user manager notice that files are gone.
pub(super) fn reload() -> Result<(), String> {
    systemctl(&["daemon-reload"]).map(drop)
}

/// What the manager says of the unit.
#[derive(Debug, Default)]
pub(super) struct UnitProperties(BTreeMap<String, String>);

impl UnitProperties {
    /// Asks; returns why there is no answer.
    pub(super) fn query() -> Result<Self, String> {
        let names = "LoadState,UnitFileState,ActiveState,SubState,StatusText,MainPID,NRestarts,Result,MemoryCurrent";
        let said = systemctl(&["show", UNIT_NAME, "--property", names])?;
        let pairs = said.lines().filter_map(|it| it.split_once('='));
        let pairs = pairs.filter(|(_, value)| !value.is_empty() && *value != "[not set]");
        Ok(Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    /// Returns what it says under that name.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Returns whether the user's services run while the user is logged out; `None` when nobody says so.
pub(in crate::commands) fn is_linger_enabled() -> Option<bool> {
    let user = rustix::process::getuid().as_raw().to_string();
    let said =
        run_program("loginctl", &["show-user", &user, "--property", "Linger", "--value"]).ok()?;
    match said.trim() {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

fn systemctl(words: &[&str]) -> Result<String, String> {
    let mut all = vec!["--user"];
    all.extend(words);
    run_program("systemctl", &all)
}

fn run_program(program: &str, words: &[&str]) -> Result<String, String> {
    let output = api_key::remove_key_variables(&mut Command::new(program))
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // What it did before it failed comes first.
    let mut lines = said.lines().filter(|it| !it.starts_with("Created symlink"));
    let said = lines.next().unwrap_or("it gave no reason").trim().to_owned();
    Err(format!("{program} {}: {said}", words.join(" ")))
}
