//! Adds our hooks and our MCP server to the settings of an agent's program, and removes them.
//!
//! The settings belong to the user: everything else in them stays, the change is shown first, and the
//! previous file is backed up beside it. Removing the hooks restores that file byte for byte, if nothing else
//! was changed since. Our hooks are recognized by their command, our server by its name and arguments.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{json_edit, run, toml_settings};
use crate::commands::{
    error::{CommandError, CommandResult},
    ui::Ui,
};
use crate::{
    config::environment::Environment,
    recall::history,
    store::fs::vault::settings_files::{remove_settings, write_settings},
};

/// The program whose settings are edited. All read hooks of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentProgram {
    /// Claude Code: `settings.json`, with many other settings; servers in `.claude.json`, which it writes itself.
    ClaudeCode,
    /// Codex: `hooks.json`, with hooks only; servers in `config.toml`.
    Codex,
    /// Gemini CLI: `settings.json`, with many other settings, which may have comments.
    Gemini,
}

impl AgentProgram {
    /// All of them, in the order in which they are shown.
    pub(crate) const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::Gemini];

    /// Returns the name of the agent in our hooks' commands.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }

    pub(crate) fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// Returns the folder of the program's settings, which exists once the program was used.
    pub(crate) fn folder(self, around: &Environment) -> PathBuf {
        match self {
            Self::ClaudeCode => around.claude_folder(),
            Self::Codex => around.codex_folder(),
            Self::Gemini => around.gemini_folder(),
        }
    }

    /// Returns the folder in which the program keeps daily logs of its own, which `init` adopts; `None` for a
    /// program that keeps none.
    pub(crate) fn workspace(self, _around: &Environment) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini => None,
        }
    }

    /// Returns the file with the hooks.
    fn hooks_path(self, around: &Environment) -> PathBuf {
        self.folder(around).join(match self {
            Self::ClaudeCode | Self::Gemini => "settings.json",
            Self::Codex => "hooks.json",
        })
    }

    /// Returns the file with the MCP servers.
    fn servers_path(self, around: &Environment) -> PathBuf {
        match self {
            Self::ClaudeCode => around.claude_state_file(),
            Self::Codex => around.codex_folder().join("config.toml"),
            Self::Gemini => self.hooks_path(around),
        }
    }

    /// Returns the entry of our server in JSON settings.
    fn server(self, program: &str) -> Value {
        let mut server = json!({ "command": program, "args": SERVER_ARGS });
        if self == Self::ClaudeCode {
            server["type"] = json!("stdio");
        }
        server
    }

    /// Returns the events that we handle, and their names in our commands.
    fn events(self) -> &'static [(&'static str, &'static str)] {
        // Gemini CLI asks before each turn whether to compact, and its transcript keeps what it compacts.
        if self == Self::Gemini { &EVENTS[..2] } else { &EVENTS }
    }

    /// Returns the timeout of our hook for an event, in the unit of the program.
    fn timeout(self, event: &str) -> u64 {
        match self {
            Self::Gemini => TIMEOUT_SECONDS * 1_000,
            _ if event == SHORT_EVENT => SHORT_TIMEOUT_SECONDS,
            _ => TIMEOUT_SECONDS,
        }
    }

    /// Returns whether the program accepts the timeout of a hook, which the user may have changed.
    fn accepts_timeout(self, hook: &Value, event: &str) -> bool {
        let timeout = hook.get("timeout").and_then(Value::as_u64);
        self == Self::Gemini
            || event != SHORT_EVENT
            || timeout.is_none_or(|it| it <= SHORT_TIMEOUT_SECONDS)
    }

    fn parse_settings(self, text: &str) -> serde_json::Result<Value> {
        let plain = (self == Self::Gemini).then(|| json_edit::without_comments(text));
        let text = plain.as_deref().unwrap_or(text);
        serde_json::from_str(if text.trim().is_empty() { "{}" } else { text })
    }
}

/// The events of all programs; the last one is not for Gemini CLI.
const EVENTS: [(&str, &str); 3] = [
    ("SessionStart", "session-start"),
    ("SessionEnd", "session-end"),
    ("PreCompact", "pre-compact"),
];

/// Where JSON settings list servers, and the name and arguments of ours. Without a named folder it serves the
/// one around its working folder, as the hooks do.
const SERVERS: &str = "mcpServers";
pub(super) const SERVER: &str = "memoird";
pub(super) const SERVER_ARGS: [&str; 1] = ["mcp"];

/// The timeout of a hook, in seconds, enforced by the agent's program.
const TIMEOUT_SECONDS: u64 = 5;
/// The event whose hooks Codex gives less time, and warns about a longer timeout at each start.
const SHORT_EVENT: &str = "SessionEnd";
const SHORT_TIMEOUT_SECONDS: u64 = 3;

/// Follows the name of the settings in the name of a backup.
const BACKUP_INFIX: &str = ".before-memoird-";

/// What of ours a settings file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SettingsPart {
    Hooks,
    Server,
    Both,
}

/// A change of one settings file.
#[derive(Debug)]
pub(crate) struct HookSettingsChange {
    /// The file.
    pub(crate) path: PathBuf,
    old: Option<String>,
    /// The new text; `None` if the file did not exist before the hooks were added.
    new: Option<String>,
    /// The backup that the new text comes from.
    restored: Option<PathBuf>,
}

/// How the settings of a program are changed.
pub(super) struct SettingsEdit<'a> {
    /// The file.
    pub(super) path: PathBuf,
    /// The name of the program.
    pub(super) program: &'static str,
    /// What is ours in them, for messages.
    pub(super) key: &'static str,
    pub(super) parse: &'a dyn Fn(&str) -> Result<Value, String>,
    /// Adds or removes what is ours; `None` if the settings have an unexpected shape.
    pub(super) merge: &'a dyn Fn(&mut Value) -> Option<()>,
    /// Returns whether a backup has nothing of ours, and otherwise the same settings.
    pub(super) is_before: &'a dyn Fn(Value, &Value) -> bool,
}

impl HookSettingsChange {
    /// Computes the changes of all settings files of a program; empty if nothing is to be changed.
    pub(crate) fn all(
        host: AgentProgram,
        around: &Environment,
        program: &Path,
        takes_out: bool,
    ) -> CommandResult<Vec<Self>> {
        let (hooks, servers) = (host.hooks_path(around), host.servers_path(around));
        let program = program.to_string_lossy();
        let json = |path: &Path, part| Self::of_json(host, path, part, &program, takes_out);
        let changes = if hooks == servers {
            [json(&hooks, SettingsPart::Both)?, None]
        } else if host == AgentProgram::Codex {
            let servers = Self::of_toml(&servers, &program, takes_out)?;
            [json(&hooks, SettingsPart::Hooks)?, servers]
        } else {
            [json(&hooks, SettingsPart::Hooks)?, json(&servers, SettingsPart::Server)?]
        };
        Ok(changes.into_iter().flatten().collect())
    }

    fn of_json(
        host: AgentProgram,
        path: &Path,
        part: SettingsPart,
        program: &str,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let edit = SettingsEdit {
            path: path.to_owned(),
            program: host.display_name(),
            key: if part == SettingsPart::Server { SERVERS } else { "hooks" },
            parse: &|it| host.parse_settings(it).map_err(|e| e.to_string()),
            merge: &|it| merge(it, host, part, program, takes_out),
            is_before: &|backup, settings| is_before(backup, settings, host),
        };
        Self::of(edit, takes_out)
    }

    /// Computes a change of the settings of any program; `None` if nothing is to be changed.
    pub(super) fn of(edit: SettingsEdit<'_>, takes_out: bool) -> CommandResult<Option<Self>> {
        let SettingsEdit { path, program, key, parse, merge, is_before } = edit;
        let old = read_settings(&path)?;
        let text = old.as_deref().unwrap_or_default();
        let mut settings: Value = parse(text).map_err(|e| parse_error(&path, "JSON", &e))?;
        let before = settings.clone();
        merge(&mut settings).ok_or_else(|| {
            let what = format!("`{key}` in `{}` is not what {program} reads", path.display());
            CommandError::config(what)
                .hint("correct it, then do the same again; nothing was changed")
        })?;
        if settings == before {
            return Ok(None);
        }
        let new = json_edit::change(text, &before, &settings).map_err(CommandError::config)?;
        if takes_out {
            let backups = backups_of(&path);
            let is_former = |it: &&(PathBuf, String)| {
                parse(&it.1).is_ok_and(|backup| is_before(backup, &settings))
                    && has_comments_of(&it.1, &new)
            };
            if let Some((backup, text)) = backups.iter().find(is_former) {
                let (new, restored) = (Some(text.clone()), Some(backup.clone()));
                return Ok(Some(Self { path, old, new, restored }));
            }
            if backups.is_empty() && settings == json!({}) {
                return Ok(Some(Self { path, old, new: None, restored: None }));
            }
        }
        Ok(Some(Self { path, old, new: Some(new), restored: None }))
    }

    /// Says what becomes of the file.
    pub(crate) fn describe(&self) -> &'static str {
        match (&self.new, &self.restored) {
            (None, _) => "removed, as before memoird was set up",
            (Some(_), Some(_)) => "restored byte for byte, as before memoird was set up",
            (Some(_), None) => "what is memoird's is taken out, the rest stays",
        }
    }

    fn of_toml(path: &Path, program: &str, takes_out: bool) -> CommandResult<Option<Self>> {
        let path = path.to_owned();
        let old = read_settings(&path)?;
        let text = old.as_deref().unwrap_or_default();
        let new = if takes_out {
            toml_settings::without_server(text)
        } else {
            toml_settings::with_server(text, program)
        };
        let Some(new) = new.map_err(|e| parse_error(&path, "TOML", &e))? else { return Ok(None) };
        if takes_out {
            let program = toml_settings::server_program(text).unwrap_or_default();
            let backups = backups_of(&path);
            let is_former = |it: &&(PathBuf, String)| {
                toml_settings::with_server(&it.1, &program)
                    .is_ok_and(|it| it.as_ref() == old.as_ref())
            };
            if let Some((backup, text)) = backups.iter().find(is_former) {
                let (new, restored) = (Some(text.clone()), Some(backup.clone()));
                return Ok(Some(Self { path, old, new, restored }));
            }
            if backups.is_empty() && new.trim().is_empty() {
                return Ok(Some(Self { path, old, new: None, restored: None }));
            }
        }
        Ok(Some(Self { path, old, new: Some(new), restored: None }))
    }

    pub(crate) fn show_diff(&self, ui: &Ui) {
        let name = self.path.display().to_string();
        ui.diff(
            [&name, &name],
            &history::diff_hunks(
                self.old.as_deref().unwrap_or_default(),
                self.new.as_deref().unwrap_or_default(),
            ),
        );
    }

    /// Writes the change, and returns the path of the backup. There is none if the file is again what it was
    /// before the hooks were added.
    pub(crate) fn write(
        &self,
        now: chrono::DateTime<chrono::Utc>,
    ) -> CommandResult<Option<PathBuf>> {
        let Some(new) = &self.new else {
            remove_settings(&self.path)?;
            return Ok(None);
        };
        if let Some(restored) = &self.restored {
            write_settings(&self.path, new)?;
            remove_settings(restored)?;
            return Ok(None);
        }
        let backup = match &self.old {
            Some(old) => {
                let name = format!(
                    "{}{BACKUP_INFIX}{}",
                    self.path.file_name().unwrap_or_default().to_string_lossy(),
                    now.format("%Y%m%d-%H%M%S")
                );
                let backup = self.path.with_file_name(name);
                write_settings(&backup, old)?;
                Some(backup)
            }
            None => None,
        };
        write_settings(&self.path, new)?;
        Ok(backup)
    }
}

/// Returns the text of a settings file, if there is one.
fn read_settings(path: &Path) -> CommandResult<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let what = format!("cannot read `{}`: {e}", path.display());
            Err(CommandError::config(what))
        }
    }
}

fn parse_error(path: &Path, format: &str, error: &dyn std::fmt::Display) -> CommandError {
    let what = format!("`{}` is no {format}: {error}", path.display());
    CommandError::config(what).hint("correct it, then do the same again; nothing was changed")
}

/// Returns the backups of settings and their texts, the newest first.
fn backups_of(path: &Path) -> Vec<(PathBuf, String)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let start = format!("{name}{BACKUP_INFIX}");
    let entries = path.parent().and_then(|it| fs::read_dir(it).ok()).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|it| it.file_name().to_string_lossy().starts_with(&start))
        .map(|it| it.path())
        .collect();
    paths.sort();
    let texts = paths.into_iter().rev().map(|it| {
        let text = fs::read_to_string(&it);
        text.map(|text| (it, text))
    });
    texts.flatten().collect()
}

/// Returns whether a backup has no hooks of ours, and otherwise the same settings.
fn is_before(backup: Value, settings: &Value, host: AgentProgram) -> bool {
    let groups = backup.get("hooks").and_then(Value::as_object).into_iter().flatten();
    let groups = groups.filter_map(|it| it.1.as_array()).flatten();
    let has_ours = groups.flat_map(|it| our_commands(it, host)).next().is_some();
    let has_ours =
        has_ours || backup.get(SERVERS).and_then(|it| it.get(SERVER)).is_some_and(is_our_server);
    !has_ours && without_empty_hooks(backup) == without_empty_hooks(settings.clone())
}

/// Returns whether two texts of the same settings have the same comments.
fn has_comments_of(text: &str, other: &str) -> bool {
    let is_plain = |it: &str| json_edit::without_comments(it) == it;
    is_plain(text) && is_plain(other) || text.split_whitespace().eq(other.split_whitespace())
}

/// Returns settings without lists that have no hooks or servers, which adding and removing ours may change.
fn without_empty_hooks(mut settings: Value) -> Value {
    if let Some(object) = settings.as_object_mut()
        && let Some(hooks) = object.get_mut("hooks").and_then(Value::as_object_mut)
    {
        hooks.retain(|_, groups| groups.as_array().is_none_or(|it| !it.is_empty()));
        if hooks.is_empty() {
            object.shift_remove("hooks");
        }
    }
    if let Some(object) = settings.as_object_mut()
        && object.get(SERVERS) == Some(&json!({}))
    {
        object.shift_remove(SERVERS);
    }
    settings
}

/// Returns whether the settings have our hook for an event, so that the same hook of a plugin is not needed.
pub(crate) fn is_in_settings(host: AgentProgram, around: &Environment, word: &str) -> bool {
    let text = fs::read_to_string(host.hooks_path(around)).unwrap_or_default();
    let Ok(settings) = host.parse_settings(&text) else { return false };
    let event = host.events().iter().find(|it| it.1 == word).map_or("", |it| it.0);
    let groups = settings.get("hooks").and_then(|it| it.get(event)?.as_array());
    let mut programs = groups.into_iter().flatten().flat_map(|it| our_programs(it, host));
    programs.any(|it| Path::new(it).is_file())
}

/// Adds our hooks and server or removes them; `None` if the settings have an unexpected shape.
fn merge(
    settings: &mut Value,
    host: AgentProgram,
    part: SettingsPart,
    program: &str,
    takes_out: bool,
) -> Option<()> {
    let settings = settings.as_object_mut()?;
    if part != SettingsPart::Server {
        merge_hooks(settings, host, program, takes_out)?;
    }
    if part != SettingsPart::Hooks {
        merge_server(settings, host, program, takes_out)?;
    }
    Some(())
}

/// Adds or removes our MCP server. A server of this name with other arguments is the user's.
fn merge_server(
    settings: &mut Map<String, Value>,
    host: AgentProgram,
    program: &str,
    takes_out: bool,
) -> Option<()> {
    let Some(servers) = settings.get_mut(SERVERS) else {
        if !takes_out {
            settings.insert(SERVERS.to_owned(), json!({ SERVER: host.server(program) }));
        }
        return Some(());
    };
    let servers = servers.as_object_mut()?;
    match servers.get_mut(SERVER) {
        None if takes_out => {}
        None => {
            servers.insert(SERVER.to_owned(), host.server(program));
        }
        Some(server) if !is_our_server(server) => {}
        Some(server) if !takes_out => server["command"] = json!(program),
        Some(_) => {
            servers.shift_remove(SERVER);
            if servers.is_empty() {
                settings.shift_remove(SERVERS);
            }
        }
    }
    Some(())
}

fn is_our_server(server: &Value) -> bool {
    server.get("args") == Some(&json!(SERVER_ARGS))
        && server.get("command").is_some_and(Value::is_string)
}

fn merge_hooks(
    settings: &mut Map<String, Value>,
    host: AgentProgram,
    program: &str,
    takes_out: bool,
) -> Option<()> {
    if takes_out && !settings.contains_key("hooks") {
        return Some(());
    }
    let hooks = settings.entry("hooks").or_insert_with(|| json!({})).as_object_mut()?;
    for &(event, word) in host.events() {
        let command = hook_command(host, program, word);
        let timeout = host.timeout(event);
        let hook = json!({ "type": "command", "command": command, "timeout": timeout });
        let groups = match hooks.get_mut(event) {
            None if takes_out => continue,
            None => hooks.entry(event).or_insert_with(|| json!([])).as_array_mut()?,
            Some(groups) => groups.as_array_mut()?,
        };
        let own_hooks = groups.iter().flat_map(|it| our_hooks(it, host));
        let is_there =
            |it: &Value| command_text(it) == Some(&command) && host.accepts_timeout(it, event);
        if own_hooks.into_iter().any(is_there) && !takes_out {
            continue;
        }
        // A hook that names a former path of the program, or a timeout that is too long, is replaced.
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
            groups.push(json!({ "hooks": [hook] }));
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

/// Returns the hooks of Claude Code in the form of a settings file.
pub(super) fn claude_code_hooks(program: &Path) -> Value {
    let mut hooks = json!({});
    let (host, program) = (AgentProgram::ClaudeCode, program.to_string_lossy());
    let merged = merge(&mut hooks, host, SettingsPart::Hooks, &program, false);
    debug_assert!(merged.is_some(), "an empty object accepts hooks");
    hooks
}

/// Returns our MCP server as Claude Code lists servers.
pub(super) fn claude_code_servers(program: &Path) -> Value {
    json!({ SERVER: AgentProgram::ClaudeCode.server(&program.to_string_lossy()) })
}

fn our_hooks(group: &Value, host: AgentProgram) -> impl Iterator<Item = &Value> {
    let list = group.get("hooks").and_then(Value::as_array).into_iter().flatten();
    list.filter(move |it| is_our_hook(it, host))
}

fn our_commands(group: &Value, host: AgentProgram) -> impl Iterator<Item = &str> {
    our_hooks(group, host).filter_map(command_text)
}

/// Returns the programs that our hooks in a group call.
fn our_programs(group: &Value, host: AgentProgram) -> impl Iterator<Item = &str> {
    our_commands(group, host).filter_map(move |it| hook_program(it, host))
}

fn command_text(hook: &Value) -> Option<&str> {
    hook.as_object().and_then(|it: &Map<String, Value>| it.get("command"))?.as_str()
}

/// Returns whether a hook is ours, wherever the program is installed.
fn is_our_hook(hook: &Value, host: AgentProgram) -> bool {
    command_text(hook).is_some_and(|it| hook_program(it, host).is_some())
}

/// Returns the program that a hook's command calls, if it is memoird, whatever the name of its file. No other
/// program is called with these words.
fn hook_program(command: &str, host: AgentProgram) -> Option<&str> {
    let program = host.events().iter().find_map(|(_, word)| {
        command.strip_suffix(&format!(" {} {} {word}", run::HOOK_COMMAND, host.id()))
    });
    let is_quoted = |it: &str| it.len() > 2 && it.starts_with('\'') && it.ends_with('\'');
    // `echo memoird` is two words.
    let program = program.filter(|it| is_quoted(it) || !it.contains([' ', '\t']));
    program.map(|it| it.trim_matches('\'')).filter(|it| it.contains('/') || *it == "memoird")
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
        for host in [AgentProgram::ClaudeCode, AgentProgram::Codex, AgentProgram::Gemini] {
            check_with(host, settings);
        }
    }

    #[track_caller]
    fn check_with(host: AgentProgram, settings: &Value) {
        let merge = |settings: &mut Value, program: &str, takes_out: bool| {
            merge(settings, host, SettingsPart::Both, program, takes_out)
        };
        let mut changed = settings.clone();
        merge(&mut changed, "/old place/memoird", false).unwrap();
        merge(&mut changed, "/usr/bin/memoird", false).unwrap();
        let once = changed.clone();
        merge(&mut changed, "/usr/bin/memoird", false).unwrap();
        assert_eq!(changed, once);
        merge(&mut changed, "/opt/memory-head", false).unwrap();
        merge(&mut changed, "/usr/bin/memoird", false).unwrap();
        for &(event, word) in host.events() {
            let groups = changed["hooks"][event].as_array().unwrap();
            let own: Vec<&str> = groups.iter().flat_map(|it| our_commands(it, host)).collect();
            assert_eq!(own, [hook_command(host, "/usr/bin/memoird", word)]);
        }
        assert_eq!(changed[SERVERS][SERVER], host.server("/usr/bin/memoird"));
        merge(&mut changed, "/usr/bin/memoird", true).unwrap();
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
    fn other_servers_and_one_that_the_user_entered_stay() {
        let own = json!({"command": "memoird", "args": ["--root", "/m", "mcp"]});
        let settings = json!({"mcpServers": {"other": {"url": "x"}, "memoird": own}});
        let mut changed = settings.clone();
        for takes_out in [false, true] {
            let part = SettingsPart::Both;
            merge(&mut changed, AgentProgram::Gemini, part, "/usr/bin/memoird", takes_out).unwrap();
            assert_eq!(changed[SERVERS], settings[SERVERS]);
        }
        check(&json!({"mcpServers": {"other": {"url": "x"}}}));
        let mut list = json!({"mcpServers": []});
        let part = SettingsPart::Server;
        assert_eq!(merge(&mut list, AgentProgram::ClaudeCode, part, "/m", false), None);
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        for settings in [json!([]), json!({"hooks": []}), json!({"hooks": {"SessionEnd": {}}})] {
            let part = SettingsPart::Hooks;
            assert_eq!(merge(&mut settings.clone(), AgentProgram::Codex, part, "/m", false), None);
        }
    }
}
