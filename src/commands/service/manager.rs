//! Calls of `systemctl` and `loginctl`.
//!
//! If no service manager answers (a container, another init), the caller shows the command to type.

use std::{
    collections::BTreeMap,
    io,
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
        .map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => format!("{program} is not installed"),
            _ => format!("{program}: {e}"),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    // Skip messages about steps that succeeded.
    let mut lines = message.lines().filter(|it| !it.starts_with("Created symlink"));
    let reason = lines.next().unwrap_or("no reason given").trim();
    Err(plain_reason(reason)
        .map_or_else(|| format!("{program} {}: {reason}", words.join(" ")), str::to_owned))
}

/// Returns what a message of systemd means for a person, if it is about a missing user manager.
fn plain_reason(message: &str) -> Option<&'static str> {
    let is_about = |words: &str| message.contains(words);
    if is_about("not been booted with systemd") {
        return Some("this system does not run systemd, as in a container");
    }
    let no_bus = is_about("Failed to connect to") && is_about("bus");
    no_bus.then_some("systemd has no session for this user: log in as the user, not by su or sudo")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_user_manager_is_explained() {
        for (message, expected) in [
            ("Failed to connect to bus: No medium found", Some("no session for this user")),
            (
                "Failed to connect to user scope bus via local transport: $DBUS_SESSION_BUS_ADDRESS and \
                 $XDG_RUNTIME_DIR not defined",
                Some("no session for this user"),
            ),
            (
                "System has not been booted with systemd as init system (PID 1). Can't operate.",
                Some("does not run systemd"),
            ),
            ("Unit memoird.service not found.", None),
        ] {
            let seen = plain_reason(message);
            assert_eq!(seen.is_some(), expected.is_some(), "{message}");
            assert!(seen.unwrap_or_default().contains(expected.unwrap_or_default()), "{message}");
        }
    }
}
