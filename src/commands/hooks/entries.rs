//! What is ours in the JSON settings of an agent's program: hooks, recognized by their command, and an MCP server,
//! recognized by its name and arguments. Pure but for [`is_in_settings`].

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

use super::{
    programs::{AgentProgram, CLAUDE_SERVERS, HookShape, ServerShape},
    run,
};
use crate::{config::environment::Environment, operations::format::shell_quoted};

/// The name of our server.
pub(super) const SERVER: &str = "memoird";

/// What we enter in a file of settings.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    pub(super) host: AgentProgram,
    pub(super) hooks: Option<HookShape>,
    pub(super) server: Option<ServerShape>,
    /// Our program.
    pub(super) program: &'a str,
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
    pub(super) fn merge(self, settings: &mut Value, takes_out: bool) -> Result<(), &'static str> {
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
    pub(super) fn is_before(self, backup: Value, settings: &Value) -> bool {
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

#[cfg(test)]
mod tests {
    use super::{super::programs::FileContent, *};

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
