//! Calls of `systemctl` and `loginctl`.
//!
//! If no service manager answers (a container, another init), the caller shows the command to type.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use crate::config::api_key;

pub(super) const UNIT_NAME: &str = "memoird.service";

/// Makes the user manager load and start the unit, or restart it; returns why it failed.
pub(in crate::commands) fn start(restart: bool) -> Result<(), String> {
    systemctl(&["daemon-reload"])?;
    systemctl(&["enable", "--now", UNIT_NAME])?;
    if restart {
        systemctl(&["restart", UNIT_NAME])?;
    }
    Ok(())
}

/// Returns why no user manager answers, as in a container; `None` if one does.
pub(super) fn why_unavailable() -> Option<String> {
    systemctl(&["show", "--property=Version"]).err()
}

/// Makes the user manager stop and disable the unit; returns why it failed.
pub(super) fn stop() -> Result<(), String> {
    systemctl(&["disable", "--now", UNIT_NAME]).map(drop)
}

/// Makes the user manager reload its unit files.
pub(super) fn reload() -> Result<(), String> {
    systemctl(&["daemon-reload"]).map(drop)
}

/// The properties of the unit, as the manager reports them.
#[derive(Debug, Default)]
pub(super) struct UnitProperties(BTreeMap<String, String>);

impl UnitProperties {
    /// Queries the manager; returns why it failed.
    pub(super) fn query() -> Result<Self, String> {
        let names = "LoadState,UnitFileState,ActiveState,SubState,StatusText,MainPID,NRestarts,Result,MemoryCurrent";
        let output = systemctl(&["show", UNIT_NAME, "--property", names])?;
        let pairs = output.lines().filter_map(|it| it.split_once('='));
        let pairs = pairs.filter(|(_, value)| !value.is_empty() && *value != "[not set]");
        Ok(Self(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()))
    }

    /// Returns the property of this name, if it is set.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Returns whether the user's services run while the user is logged out; `None` if unknown.
pub(in crate::commands) fn is_linger_enabled() -> Option<bool> {
    let user = rustix::process::getuid().as_raw().to_string();
    let output =
        run_program("loginctl", &["show-user", &user, "--property", "Linger", "--value"]).ok()?;
    match output.trim() {
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
    let message = String::from_utf8_lossy(&output.stderr);
    // Skip messages about steps that succeeded.
    let mut lines = message.lines().filter(|it| !it.starts_with("Created symlink"));
    let reason = lines.next().unwrap_or("no reason given").trim();
    Err(format!("{program} {}: {reason}", words.join(" ")))
}
