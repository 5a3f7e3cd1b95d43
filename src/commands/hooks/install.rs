//! Adds our hooks to the settings of an agent's program, and removes them; or writes them as a plugin.
//!
//! The settings belong to the user: everything else in them stays, the change is shown first, and the
//! previous file is backed up beside it. Our hooks are recognized by their command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::run;
use crate::commands::{
    error::{CommandError, CommandResult},
    ui::Ui,
};
use crate::{
    config::environment::Environment, recall::history,
    store::fs::vault::settings_files::write_settings,
};

/// The program whose settings are edited. Both read hooks of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentProgram {
    /// Claude Code: `settings.json`, with many other settings.
    ClaudeCode,
    /// Codex: `hooks.json`, with hooks only.
    Codex,
}

impl AgentProgram {
    /// Returns the name of the agent in our hooks' commands.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    pub(crate) fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
        }
    }

    fn settings_path(self, around: &Environment) -> PathBuf {
        match self {
            Self::ClaudeCode => around.claude_folder().join("settings.json"),
            Self::Codex => around.codex_folder().join("hooks.json"),
        }
    }
}

/// The events that we handle, and their names in our commands.
const EVENTS: [(&str, &str); 3] = [
    ("SessionStart", "session-start"),
    ("PreCompact", "pre-compact"),
    ("SessionEnd", "session-end"),
];

/// The timeout of a hook, in seconds, enforced by the agent's program.
const TIMEOUT_SECONDS: u64 = 5;

#[derive(Debug)]
pub(crate) struct HookSettingsChange {
    /// The file.
    pub(crate) path: PathBuf,
    old: Option<String>,
    new: String,
}

impl HookSettingsChange {
    /// Computes the change; `None` if nothing is to be changed.
    pub(crate) fn new(
        host: AgentProgram,
        around: &Environment,
        program: &Path,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let path = host.settings_path(around);
        let old = match fs::read_to_string(&path) {
            Ok(text) => Some(text),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => {
                let what = format!("cannot read `{}`: {e}", path.display());
                return Err(CommandError::config(what));
            }
        };
        let text = old.as_deref().unwrap_or_default();
        let text = if text.trim().is_empty() { "{}" } else { text };
        let mut settings: Value = serde_json::from_str(text).map_err(|e| {
            let what = format!("`{}` is no JSON: {e}", path.display());
            CommandError::config(what)
                .hint("correct it, then do the same again; nothing was changed")
        })?;
        let before = settings.clone();
        merge_hooks(&mut settings, host, &program.to_string_lossy(), takes_out).ok_or_else(
            || {
                let what = format!(
                    "`hooks` in `{}` is not what {} reads",
                    path.display(),
                    host.display_name()
                );
                CommandError::config(what)
                    .hint("correct it, then do the same again; nothing was changed")
            },
        )?;
        if settings == before {
            return Ok(None);
        }
        let new = serde_json::to_string_pretty(&settings).map_err(CommandError::config)?;
        Ok(Some(Self { path, old, new: new + "\n" }))
    }

    pub(crate) fn show_diff(&self, ui: &Ui) {
        let name = self.path.display().to_string();
        ui.diff(
            [&name, &name],
            &history::diff_hunks(self.old.as_deref().unwrap_or_default(), &self.new),
        );
    }

    /// Writes the change, and returns the path of the backup.
    pub(crate) fn write(
        &self,
        now: chrono::DateTime<chrono::Utc>,
    ) -> CommandResult<Option<PathBuf>> {
        let backup = match &self.old {
            Some(old) => {
                let name = format!(
                    "{}.before-memoird-{}",
                    self.path.file_name().unwrap_or_default().to_string_lossy(),
                    now.format("%Y%m%d-%H%M%S")
                );
                let backup = self.path.with_file_name(name);
                write_settings(&backup, old)?;
                Some(backup)
            }
            None => None,
        };
        write_settings(&self.path, &self.new)?;
        Ok(backup)
    }
}

/// Adds or removes our hooks; `None` if the settings have an unexpected shape.
fn merge_hooks(
    settings: &mut Value,
    host: AgentProgram,
    program: &str,
    takes_out: bool,
) -> Option<()> {
    let settings = settings.as_object_mut()?;
    if takes_out && !settings.contains_key("hooks") {
        return Some(());
    }
    let hooks = settings.entry("hooks").or_insert_with(|| json!({})).as_object_mut()?;
    for (event, word) in EVENTS {
        let command = hook_command(host, program, word);
        let groups = match hooks.get_mut(event) {
            None if takes_out => continue,
            None => hooks.entry(event).or_insert_with(|| json!([])).as_array_mut()?,
            Some(groups) => groups.as_array_mut()?,
        };
        let is_there = groups.iter().flat_map(|it| our_commands(it, host)).any(|it| it == command);
        if is_there && !takes_out {
            continue;
        }
        // A hook that names a former path of the program is replaced.
        let had_own = groups.iter().any(|it| our_commands(it, host).next().is_some());
        groups.retain_mut(|group| {
            let Some(list) = group.get_mut("hooks").and_then(Value::as_array_mut) else {
                return true;
            };
            let before = list.len();
            list.retain(|it| !is_our_hook(it, host));
            list.len() == before || !list.is_empty()
        });
        if takes_out && had_own && groups.is_empty() {
            hooks.shift_remove(event);
        } else if !takes_out {
            groups.push(json!({
                "hooks": [{ "type": "command", "command": command, "timeout": TIMEOUT_SECONDS }]
            }));
        }
    }
    if takes_out && hooks.is_empty() {
        settings.shift_remove("hooks");
    }
    Some(())
}

fn hook_command(host: AgentProgram, program: &str, word: &str) -> String {
    format!("{} {} {} {word}", shell_quoted(program), run::HOOK_COMMAND, host.id())
}

/// Returns the files of a Claude Code plugin with our hooks: their paths in the plugin's folder, and
/// their text.
pub(crate) fn plugin_files(program: &Path) -> Vec<(&'static str, String)> {
    let mut hooks = json!({});
    let program = program.to_string_lossy();
    // An empty object accepts hooks.
    let merged = merge_hooks(&mut hooks, AgentProgram::ClaudeCode, &program, false);
    debug_assert!(merged.is_some(), "an empty object accepts hooks");
    let plugin = json!({
        "name": "memoird",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Keeps what happens in sessions, and begins each with what is known.",
    });
    let text = |it: &Value| format!("{it:#}\n");
    vec![(".claude-plugin/plugin.json", text(&plugin)), ("hooks/hooks.json", text(&hooks))]
}

fn our_commands(group: &Value, host: AgentProgram) -> impl Iterator<Item = &str> {
    let list = group.get("hooks").and_then(Value::as_array).into_iter().flatten();
    list.filter(move |it| is_our_hook(it, host)).filter_map(command_text)
}

fn command_text(hook: &Value) -> Option<&str> {
    hook.as_object().and_then(|it: &Map<String, Value>| it.get("command"))?.as_str()
}

/// Returns whether a hook is ours, wherever the program is installed.
fn is_our_hook(hook: &Value, host: AgentProgram) -> bool {
    let Some(command) = command_text(hook) else { return false };
    EVENTS.iter().any(|(_, word)| {
        let tail = format!(" {} {} {word}", run::HOOK_COMMAND, host.id());
        let program = command.strip_suffix(&tail).map(|it| it.trim_matches('\''));
        program.and_then(|it| it.rsplit('/').next()) == Some("memoird")
    })
}

pub(crate) fn shell_quoted(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:".contains(c);
    if path.chars().all(plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(settings: &Value) {
        for host in [AgentProgram::ClaudeCode, AgentProgram::Codex] {
            check_with(host, settings);
        }
    }

    #[track_caller]
    fn check_with(host: AgentProgram, settings: &Value) {
        let mut changed = settings.clone();
        merge_hooks(&mut changed, host, "/old place/memoird", false).unwrap();
        merge_hooks(&mut changed, host, "/usr/bin/memoird", false).unwrap();
        let once = changed.clone();
        merge_hooks(&mut changed, host, "/usr/bin/memoird", false).unwrap();
        assert_eq!(changed, once);
        for (event, word) in EVENTS {
            let groups = changed["hooks"][event].as_array().unwrap();
            let own: Vec<&str> = groups.iter().flat_map(|it| our_commands(it, host)).collect();
            assert_eq!(own, [hook_command(host, "/usr/bin/memoird", word)]);
        }
        merge_hooks(&mut changed, host, "/usr/bin/memoird", true).unwrap();
        assert_eq!(changed, *settings);
    }

    #[test]
    fn hooks_are_added_and_removed_and_the_rest_stays() {
        check(&json!({}));
        check(&json!({"model": "x", "permissions": {"allow": ["Bash(ls)"]}}));
        let theirs = json!({"type": "command", "command": "echo memoird hook claude-code"});
        check(
            &json!({"hooks": {"Stop": [], "SessionEnd": [{"matcher": "clear", "hooks": [theirs]}]}, "z": 1}),
        );
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        for settings in [json!([]), json!({"hooks": []}), json!({"hooks": {"SessionEnd": {}}})] {
            assert_eq!(merge_hooks(&mut settings.clone(), AgentProgram::Codex, "/m", false), None);
        }
    }
}
