//! Adds our hooks and MCP server to the files of an agent's program, and removes them; or writes them as a plugin.
//! What belongs in which file, [`super::programs`] says.
//!
//! The settings belong to the user: everything else in them stays, the change is shown first, and the
//! previous file is backed up beside it. Removing the hooks restores that file byte for byte, if nothing else
//! was changed since. Our hooks are recognized by their command.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    json_edit::{self, Syntax},
    openclaw,
    programs::{
        AgentProgram, CLAUDE_SERVERS, FileContent, HookShape, PLUGIN_PROGRAM, ProgramFile,
        ServerShape,
    },
    run, toml_settings,
};
use crate::commands::{
    error::{CommandError, CommandResult},
    ui::Ui,
};
use crate::{
    config::environment::Environment,
    recall::history,
    store::fs::vault::settings_files::{remove_settings, write_copy, write_settings},
};

/// The name of our server.
pub(super) const SERVER: &str = "memoird";

/// Follows the name of the settings in the name of a backup.
const BACKUP_INFIX: &str = ".before-memoird-";

/// What we enter in a file of settings.
#[derive(Clone, Copy)]
struct Entries<'a> {
    host: AgentProgram,
    hooks: Option<HookShape>,
    server: Option<ServerShape>,
    /// Our program.
    program: &'a str,
}

/// A change of one file of an agent's program.
#[derive(Debug)]
pub(crate) struct HookSettingsChange {
    /// The file.
    pub(crate) path: PathBuf,
    old: Option<String>,
    /// The new text; `None` if the file did not exist before the hooks were added.
    new: Option<String>,
    /// The backup that the new text comes from.
    restored: Option<PathBuf>,
    /// Whether only memoird writes the file, which needs no backup then.
    is_own_file: bool,
}

/// How a file of settings is changed.
pub(super) struct SettingsEdit<'a> {
    pub(super) path: PathBuf,
    /// The name of the program that reads it.
    pub(super) program: &'static str,
    pub(super) syntax: Syntax,
    /// Adds or removes what is ours; fails with the key of settings that have another shape.
    pub(super) merge: &'a dyn Fn(&mut Value) -> Result<(), &'static str>,
    /// Returns whether a backup has nothing of ours, and otherwise the same settings.
    pub(super) is_before: &'a dyn Fn(Value, &Value) -> bool,
}

impl HookSettingsChange {
    /// Computes the changes of the files of a program; none if nothing is to be changed.
    pub(crate) fn all(
        host: AgentProgram,
        around: &Environment,
        program: &Path,
        takes_out: bool,
    ) -> CommandResult<Vec<Self>> {
        if host == AgentProgram::OpenClaw {
            let workspace = openclaw::workspace(around)?;
            let root = workspace.canonicalize().unwrap_or(workspace);
            let change = openclaw::settings_change(around, program, &root, takes_out)?;
            return Ok(change.into_iter().collect());
        }
        let program = program.to_string_lossy();
        let change = |ProgramFile { path, content }| match content {
            FileContent::Plugin(text) => Self::of_plugin(path, text, &program, takes_out),
            FileContent::Toml => Self::of_toml(&path, &program, takes_out),
            FileContent::Settings { hooks, server, syntax } => {
                let entries = Entries { host, hooks, server, program: &program };
                let edit = SettingsEdit {
                    path,
                    program: host.display_name(),
                    syntax,
                    merge: &|it| entries.merge(it, takes_out),
                    is_before: &|backup, settings| entries.is_before(backup, settings),
                };
                Self::of_settings(edit, takes_out)
            }
        };
        host.files(around).into_iter().filter_map(|it| change(it).transpose()).collect()
    }

    /// Computes the change of a file that is ours as a whole.
    fn of_plugin(
        path: PathBuf,
        text: &str,
        program: &str,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let old = read_file(&path)?;
        if let Some(old) = &old
            && old.lines().next() != text.lines().next()
        {
            if takes_out {
                return Ok(None);
            }
            let what = format!("`{}` was not written by memoird", path.display());
            return Err(CommandError::config(what)
                .hint("move it elsewhere, then do the same again; nothing was changed"));
        }
        let line = format!("const PROGRAM = {}\n", json!(program));
        let new = (!takes_out).then(|| text.replace(PLUGIN_PROGRAM, &line));
        let change = Self { path, old, new, restored: None, is_own_file: true };
        Ok((change.old != change.new).then_some(change))
    }

    /// Computes the change of a file of settings; `None` if nothing is to be changed.
    pub(super) fn of_settings(
        edit: SettingsEdit<'_>,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let SettingsEdit { path, program, syntax, merge, is_before } = edit;
        let old = read_file(&path)?;
        let text = old.as_deref().unwrap_or_default();
        let mut settings =
            json_edit::parse(text, syntax).map_err(|e| parse_error(&path, "JSON", &e))?;
        let before = settings.clone();
        // Empty lists of the user stay.
        if takes_out && is_before(before.clone(), &before) {
            return Ok(None);
        }
        merge(&mut settings).map_err(|key| {
            let what = format!("`{key}` in `{}` is not what {program} reads", path.display());
            CommandError::config(what)
                .hint("correct it, then do the same again; nothing was changed")
        })?;
        if settings == before {
            return Ok(None);
        }
        let new = json_edit::change(text, &before, &settings).map_err(CommandError::config)?;
        let is_former = |backup: &str| {
            json_edit::parse(backup, syntax).is_ok_and(|it| is_before(it, &settings))
                && has_comments_of(backup, &new)
        };
        let is_empty = settings == json!({});
        let (new, restored) = match takes_out.then(|| former(&path, &is_former)) {
            Some(FormerText::Backup(backup, text)) => (Some(text), Some(backup)),
            Some(FormerText::NoBackup) if is_empty => (None, None),
            _ => (Some(new), None),
        };
        Ok(Some(Self { path, old, new, restored, is_own_file: false }))
    }

    fn of_toml(path: &Path, program: &str, takes_out: bool) -> CommandResult<Option<Self>> {
        let old = read_file(path)?;
        let text = old.as_deref().unwrap_or_default();
        let new = if takes_out {
            toml_settings::without_server(text)
        } else {
            toml_settings::with_server(text, program)
        };
        let Some(new) = new.map_err(|e| parse_error(path, "TOML", &e))? else { return Ok(None) };
        let program = toml_settings::server_program(text).unwrap_or_default();
        let is_former = |backup: &str| {
            toml_settings::server_program(backup).is_none()
                && toml_settings::with_server(backup, &program)
                    .is_ok_and(|it| it.as_ref() == old.as_ref())
        };
        let is_empty = new.trim().is_empty();
        let (new, restored) = match takes_out.then(|| former(path, &is_former)) {
            Some(FormerText::Backup(backup, text)) => (Some(text), Some(backup)),
            Some(FormerText::NoBackup) if is_empty => (None, None),
            _ => (Some(new), None),
        };
        Ok(Some(Self { path: path.to_owned(), old, new, restored, is_own_file: false }))
    }

    /// Says what becomes of the file.
    pub(crate) fn describe(&self) -> &'static str {
        match (&self.new, &self.restored) {
            (None, _) if self.is_own_file => "removed",
            (None, _) => "removed, as before memoird was set up",
            (Some(_), Some(_)) => "restored byte for byte, as before memoird was set up",
            (Some(_), None) => "what is memoird's is taken out, the rest stays",
        }
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
        // Other programs write their settings at any time, also while a person thinks about the change.
        if read_file(&self.path)? != self.old {
            let what = format!("`{}` was changed meanwhile", self.path.display());
            return Err(CommandError::config(what).hint("do the same again; nothing was changed"));
        }
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
            Some(old) if !self.is_own_file => {
                let name = format!(
                    "{}{BACKUP_INFIX}{}",
                    self.path.file_name().unwrap_or_default().to_string_lossy(),
                    now.format("%Y%m%d-%H%M%S")
                );
                let backup = self.path.with_file_name(name);
                write_copy(&backup, old, &self.path)?;
                Some(backup)
            }
            _ => None,
        };
        write_settings(&self.path, new)?;
        Ok(backup)
    }
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

/// The text of settings before memoird was set up.
enum FormerText {
    /// The path of the backup, and its text.
    Backup(PathBuf, String),
    /// There are backups, but the settings were changed since.
    Changed,
    NoBackup,
}

/// Finds the newest backup that is the text of settings before memoird was set up.
fn former(path: &Path, is_former: &dyn Fn(&str) -> bool) -> FormerText {
    let backups = backups_of(path);
    if backups.is_empty() {
        return FormerText::NoBackup;
    }
    let found = backups.into_iter().find(|it| is_former(&it.1));
    found.map_or(FormerText::Changed, |(path, text)| FormerText::Backup(path, text))
}

fn parse_error(path: &Path, format: &str, error: &dyn std::fmt::Display) -> CommandError {
    let what = format!("`{}` is no {format}: {error}", path.display());
    CommandError::config(what).hint("correct it, then do the same again; nothing was changed")
}

/// Returns the text of a file; `None` if it does not exist.
fn read_file(path: &Path) -> CommandResult<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let what = format!("cannot read `{}`: {e}", path.display());
            Err(CommandError::config(what))
        }
    }
}

/// Returns whether two texts of the same settings have the same comments.
fn has_comments_of(text: &str, other: &str) -> bool {
    let is_plain = |it: &str| json_edit::without_comments(it) == it;
    // Removing what we added may remove a trailing comma.
    let words = |it: &str| it.replace(',', " ").split_whitespace().map(str::to_owned).collect();
    let words: [Vec<String>; 2] = [text, other].map(words);
    is_plain(text) && is_plain(other) || words[0] == words[1]
}

/// Returns whether the settings have our hook for an event, so that the same hook of a plugin is not needed.
pub(crate) fn is_in_settings(host: AgentProgram, around: &Environment, word: &str) -> bool {
    let event = host.events().iter().find(|it| it.1 == word).map_or("", |it| it.0);
    host.files(around).iter().any(|it| {
        let text = fs::read_to_string(&it.path).unwrap_or_default();
        let Ok(settings) = serde_json::from_str::<Value>(&text) else { return false };
        let groups = settings.get("hooks").and_then(|it| it.get(event)?.as_array());
        let own = groups.into_iter().flatten().flat_map(|it| our_commands(it, host));
        own.filter_map(|it| hook_program(it, host)).any(|it| Path::new(it).is_file())
    })
}

impl Entries<'_> {
    /// Adds our hooks and server or removes them; fails with the key of settings that have another shape.
    fn merge(self, settings: &mut Value, takes_out: bool) -> Result<(), &'static str> {
        let settings = settings.as_object_mut().ok_or("the whole")?;
        if let Some(shape) = self.hooks {
            self.merge_hooks(settings, shape, takes_out).ok_or("hooks")?;
        }
        if let Some(shape) = self.server {
            self.merge_server(settings, shape, takes_out).ok_or(shape.key)?;
        }
        Ok(())
    }

    /// Adds or removes our MCP server. A server of this name with other arguments is the user's.
    fn merge_server(
        self,
        settings: &mut Map<String, Value>,
        shape: ServerShape,
        takes_out: bool,
    ) -> Option<()> {
        let entry = shape.entry(self.program);
        let Some(servers) = settings.get_mut(shape.key) else {
            if !takes_out {
                settings.insert(shape.key.to_owned(), json!({ SERVER: entry }));
            }
            return Some(());
        };
        let servers = servers.as_object_mut()?;
        match servers.get_mut(SERVER) {
            None if takes_out => {}
            None => {
                servers.insert(SERVER.to_owned(), entry);
            }
            Some(server) if !shape.is_ours(server) => {}
            Some(server) if !takes_out => server["command"] = entry["command"].clone(),
            Some(_) => {
                servers.shift_remove(SERVER);
                if servers.is_empty() {
                    settings.shift_remove(shape.key);
                }
            }
        }
        Some(())
    }

    fn merge_hooks(
        self,
        settings: &mut Map<String, Value>,
        shape: HookShape,
        takes_out: bool,
    ) -> Option<()> {
        let host = self.host;
        if takes_out && !settings.contains_key("hooks") {
            return Some(());
        }
        if shape == HookShape::List && !takes_out {
            settings.entry(VERSION_KEY).or_insert_with(|| json!(1));
        }
        let hooks = settings.entry("hooks").or_insert_with(|| json!({})).as_object_mut()?;
        for &(event, word) in host.events() {
            let command = hook_command(host, self.program, word);
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
                if is_our_hook(group, host) {
                    return false;
                }
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
                let timeout = host.timeout(event);
                groups.push(match shape {
                    HookShape::Groups => {
                        let hook =
                            json!({ "type": "command", "command": command, "timeout": timeout });
                        json!({ "hooks": [hook] })
                    }
                    HookShape::List => json!({ "command": command, "timeout": timeout }),
                });
            }
        }
        if takes_out && hooks.is_empty() {
            settings.shift_remove("hooks");
            // A version without hooks says nothing, and we may have entered it.
            if shape == HookShape::List && settings.keys().all(|it| it == VERSION_KEY) {
                settings.clear();
            }
        }
        Some(())
    }

    /// Returns whether the text of a backup has no hooks of ours, and otherwise the same settings.
    fn is_before(self, backup: Value, settings: &Value) -> bool {
        let groups = backup.get("hooks").and_then(Value::as_object).into_iter().flatten();
        let groups = groups.filter_map(|it| it.1.as_array()).flatten();
        let has_hooks = groups.flat_map(|it| our_commands(it, self.host)).next().is_some();
        let has_server = self.server.is_some_and(|shape| {
            let server = backup.get(shape.key).and_then(|it| it.get(SERVER));
            server.is_some_and(|it| shape.is_ours(it))
        });
        !has_hooks
            && !has_server
            && self.without_empty_lists(backup) == self.without_empty_lists(settings.clone())
    }

    /// Returns settings without lists that have no hooks or servers, which adding and removing ours may change.
    fn without_empty_lists(self, mut settings: Value) -> Value {
        let Some(object) = settings.as_object_mut() else { return settings };
        if let Some(hooks) = object.get_mut("hooks").and_then(Value::as_object_mut) {
            hooks.retain(|_, groups| groups.as_array().is_none_or(|it| !it.is_empty()));
        }
        let keys = ["hooks"].into_iter().chain(self.server.map(|it| it.key));
        for key in keys {
            if object.get(key) == Some(&json!({})) {
                object.shift_remove(key);
            }
        }
        if self.hooks == Some(HookShape::List) && object.keys().all(|it| it == VERSION_KEY) {
            object.clear();
        }
        settings
    }
}

/// The version of a file with a list of hooks.
const VERSION_KEY: &str = "version";

fn hook_command(host: AgentProgram, program: &str, word: &str) -> String {
    format!("{} {} {} {word}", shell_quoted(program), run::HOOK_COMMAND, host.id())
}

/// Returns the hooks of Claude Code in the form of a settings file.
pub(super) fn claude_code_hooks(program: &Path) -> Value {
    let program = program.to_string_lossy();
    let (host, shape) = (AgentProgram::ClaudeCode, HookShape::Groups);
    let mut settings = Map::new();
    let merged = Entries { host, hooks: Some(shape), server: None, program: &program }.merge_hooks(
        &mut settings,
        shape,
        false,
    );
    debug_assert!(merged.is_some(), "an empty object accepts hooks");
    Value::Object(settings)
}

/// Returns our MCP server as Claude Code lists servers.
pub(super) fn claude_code_servers(program: &Path) -> Value {
    json!({ SERVER: CLAUDE_SERVERS.entry(&program.to_string_lossy()) })
}

/// Returns our hooks in a group, which may be a hook itself.
fn our_hooks(group: &Value, host: AgentProgram) -> impl Iterator<Item = &Value> {
    let list = group.get("hooks").and_then(Value::as_array).into_iter().flatten();
    list.chain([group]).filter(move |it| is_our_hook(it, host))
}

fn our_commands(group: &Value, host: AgentProgram) -> impl Iterator<Item = &str> {
    our_hooks(group, host).filter_map(command_text)
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

    fn entries<'a>(
        host: AgentProgram,
        file: &FileContent,
        program: &'a str,
    ) -> Option<Entries<'a>> {
        let FileContent::Settings { hooks, server, .. } = *file else { return None };
        Some(Entries { host, hooks, server, program })
    }

    /// Adds and removes what belongs in each file of each program.
    #[track_caller]
    fn check(settings: &Value) {
        for host in AgentProgram::ALL {
            for file in host.files(&Environment::default()) {
                check_file(host, &file.content, settings);
            }
        }
    }

    #[track_caller]
    fn check_file(host: AgentProgram, file: &FileContent, settings: &Value) {
        let Some(own) = entries(host, file, "/usr/bin/memoird") else { return };
        let mut changed = settings.clone();
        let mut add = |program| entries(host, file, program).unwrap().merge(&mut changed, false);
        add("/old place/memoird").unwrap();
        add("/usr/bin/memoird").unwrap();
        let once = changed.clone();
        own.merge(&mut changed, false).unwrap();
        assert_eq!(changed, once);
        let mut add = |program| entries(host, file, program).unwrap().merge(&mut changed, false);
        add("/opt/memory-head").unwrap();
        add("/usr/bin/memoird").unwrap();
        for &(event, word) in host.events().iter().filter(|_| own.hooks.is_some()) {
            let groups = changed["hooks"][event].as_array().unwrap();
            let found: Vec<&str> = groups.iter().flat_map(|it| our_commands(it, host)).collect();
            assert_eq!(found, [hook_command(host, "/usr/bin/memoird", word)]);
        }
        if let Some(shape) = own.server {
            assert_eq!(changed[shape.key][SERVER], shape.entry("/usr/bin/memoird"), "{host:?}");
        }
        own.merge(&mut changed, true).unwrap();
        assert_eq!(changed, *settings, "{host:?}");
    }

    #[test]
    fn hooks_are_added_and_removed_and_the_rest_stays() {
        check(&json!({}));
        check(&json!({"model": "x", "permissions": {"allow": ["Bash(ls)"]}, "version": 1}));
        let theirs = json!({"type": "command", "command": "echo memoird hook claude-code"});
        check(
            &json!({"version": 1, "hooks": {"Stop": [], "SessionEnd": [{"matcher": "clear", "hooks": [theirs]}]}, "z": 1}),
        );
        check(&json!({"version": 1, "hooks": {"sessionStart": [theirs]}}));
        check(&json!({"mcpServers": {"other": {"url": "x"}}, "mcp": {"a": {}}, "version": 1}));
    }

    #[test]
    fn a_server_that_the_user_entered_stays() {
        let own = json!({"command": "memoird", "args": ["--root", "/m", "mcp"]});
        let settings = json!({"mcpServers": {"other": {"url": "x"}, "memoird": own}});
        let file = &AgentProgram::Windsurf.files(&Environment::default())[0];
        let entries = entries(AgentProgram::Windsurf, &file.content, "/usr/bin/memoird").unwrap();
        let mut changed = settings.clone();
        for takes_out in [false, true] {
            entries.merge(&mut changed, takes_out).unwrap();
            assert_eq!(changed, settings);
        }
        assert_eq!(entries.merge(&mut json!({"mcpServers": []}), false), Err("mcpServers"));
    }

    #[test]
    fn settings_of_another_shape_are_left_alone() {
        let file = &AgentProgram::Codex.files(&Environment::default())[0];
        let entries = entries(AgentProgram::Codex, &file.content, "/m").unwrap();
        for settings in [json!([]), json!({"hooks": []}), json!({"hooks": {"SessionEnd": {}}})] {
            assert!(entries.merge(&mut settings.clone(), false).is_err());
        }
    }
}
