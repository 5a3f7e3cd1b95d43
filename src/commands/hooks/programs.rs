//! The agents' programs that memoird can be entered in: the files that each reads, and what belongs there.
//!
//! This table is the only place that knows a program's files and names; [`super::install`] writes them.

use std::{fs, path::PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command};
use serde_json::{Value, json};

use super::{json_edit::Syntax, openclaw};
use crate::config::environment::Environment;

/// A program of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentProgram {
    ClaudeCode,
    Codex,
    /// Its settings name the memory folder, and [`super::openclaw`] does the rest.
    OpenClaw,
    Gemini,
    Opencode,
    Copilot,
    Cursor,
    Windsurf,
    Zed,
}

/// A file of a program, and what we enter in it.
pub(super) struct ProgramFile {
    pub(super) path: PathBuf,
    pub(super) content: FileContent,
}

pub(super) enum FileContent {
    /// Settings in JSON, which also hold others.
    Settings { hooks: Option<HookShape>, server: Option<ServerShape>, syntax: Syntax },
    /// Settings in TOML, which get our server.
    Toml,
    /// A file of our own, with [`PLUGIN_PROGRAM`] in place of our program.
    Plugin(&'static str),
}

/// How a program lists hooks under `hooks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HookShape {
    /// Each event has groups, each with a list of hooks under `hooks`.
    Groups,
    /// Each event has hooks, and the file has a version.
    List,
}

/// How a program lists MCP servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerShape {
    /// The key of the list.
    pub(super) key: &'static str,
    form: ServerForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerForm {
    /// The program and its arguments.
    Plain,
    /// The same for Claude Code, which writes how the server is reached.
    WithType,
    /// The same for Copilot CLI, which wants to know which tools it may use.
    WithTools,
    /// The program and its arguments in one list.
    OneList,
}

/// The line of [`OPENCODE_PLUGIN`] that names our program.
pub(super) const PLUGIN_PROGRAM: &str = "const PROGRAM = \"memoird\"\n";
/// Our plugin for opencode.
const OPENCODE_PLUGIN: &str = include_str!("../../../integrations/opencode/memoird.js");

/// The arguments of our server. Without a named folder it serves the one around its working folder, as the hooks
/// do.
pub(super) const SERVER_ARGS: [&str; 1] = ["mcp"];
const SERVERS: ServerShape = ServerShape { key: "mcpServers", form: ServerForm::Plain };
pub(super) const CLAUDE_SERVERS: ServerShape =
    ServerShape { form: ServerForm::WithType, ..SERVERS };

/// The events that we handle, and their names in our commands. The last one is not for Gemini CLI.
const EVENTS: [(&str, &str); 3] = [
    ("SessionStart", "session-start"),
    ("SessionEnd", "session-end"),
    ("PreCompact", "pre-compact"),
];
const CURSOR_EVENTS: [(&str, &str); 3] = [
    ("sessionStart", "session-start"),
    ("sessionEnd", "session-end"),
    ("preCompact", "pre-compact"),
];

/// The timeout of a hook, in seconds, enforced by the agent's program.
const TIMEOUT_SECONDS: u64 = 5;
/// The event whose hooks Codex gives less time, and warns about a longer timeout at each start.
const SHORT_EVENT: &str = "SessionEnd";
const SHORT_TIMEOUT_SECONDS: u64 = 3;

/// What Codex users have to do themselves.
const CODEX_TRUST: &str = "Codex only runs hooks that you trust: approve them under /hooks in Codex. Older \
     versions also need `codex_hooks = true` under `[features]` in config.toml; for versions that do \
     not report the end of a session, use `memoird import codex`";
const CURSOR_UNTRIED: &str =
    "hooks and server follow the documents of Cursor; they were not tried with Cursor";
const WINDSURF_RULES: &str = "Windsurf has no hook that adds context: to begin sessions with memory, add to its global rules: \
     At the start of a session, call the tool memory_context. This was not tried with Windsurf";
const ZED_RULES: &str = "Zed has no hooks: to begin sessions with memory, add to AGENTS.md of a project: At the start \
     of a session, call the tool memory_context. This was not tried with Zed";

impl AgentProgram {
    /// All programs, in the order of the help.
    pub(crate) const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::OpenClaw,
        Self::Gemini,
        Self::Opencode,
        Self::Copilot,
        Self::Cursor,
        Self::Windsurf,
        Self::Zed,
    ];

    /// Returns the name of the program in our hooks' commands, and of its flag.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::OpenClaw => "openclaw",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Cursor => "cursor",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
        }
    }

    pub(crate) fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::OpenClaw => "OpenClaw",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
            Self::Cursor => "Cursor",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
        }
    }

    /// Returns what it gets from us, as it calls it.
    pub(crate) fn parts(self) -> &'static str {
        match self {
            Self::OpenClaw | Self::Opencode => "the plugin and the MCP server",
            Self::Windsurf | Self::Zed => "the MCP server",
            _ => "the hooks and the MCP server",
        }
    }

    /// The programs whose flag takes no value.
    fn flagged() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|it| *it != Self::OpenClaw)
    }

    /// Returns the help of its flag.
    fn help(self) -> &'static str {
        match self {
            Self::OpenClaw => "",
            Self::ClaudeCode => {
                "Add hooks, which record sessions and load memory, and the MCP server to the settings of Claude Code"
            }
            Self::Codex => "Add the same to the settings of Codex",
            Self::Gemini => "Add the same to the settings of Gemini CLI",
            Self::Opencode => {
                "Add a plugin that does the same, and the MCP server, to the settings of opencode"
            }
            Self::Copilot => "Add the same hooks, and the MCP server, to Copilot CLI",
            Self::Cursor => {
                "Add the same hooks, and the MCP server, to Cursor (not tried with Cursor)"
            }
            Self::Windsurf => {
                "Add the MCP server to the settings of Windsurf (not tried with Windsurf)"
            }
            Self::Zed => "Add the MCP server to the settings of Zed (not tried with Zed)",
        }
    }

    /// Returns what is left for the user to do once it is installed.
    pub(crate) fn to_do(self) -> Option<&'static str> {
        match self {
            Self::Codex => Some(CODEX_TRUST),
            Self::Cursor => Some(CURSOR_UNTRIED),
            Self::Windsurf => Some(WINDSURF_RULES),
            Self::Zed => Some(ZED_RULES),
            Self::ClaudeCode | Self::OpenClaw | Self::Gemini | Self::Opencode | Self::Copilot => {
                None
            }
        }
    }

    /// Returns the folder of the program's settings, which exists once the program was used.
    pub(crate) fn folder(self, around: &Environment) -> PathBuf {
        match self {
            Self::ClaudeCode => around.claude_folder(),
            Self::Codex => around.codex_folder(),
            Self::OpenClaw => around.openclaw_folder(),
            Self::Gemini => around.gemini_folder(),
            Self::Opencode => around.opencode_folder(),
            Self::Copilot => around.copilot_folder(),
            Self::Cursor => around.home.join(".cursor"),
            Self::Windsurf => around.home.join(".codeium/windsurf"),
            Self::Zed => around.config_home.join("zed"),
        }
    }

    /// Returns the folder in which the program keeps daily logs of its own, which need not exist; `None` for a program
    /// that keeps none, or one whose settings cannot be read.
    pub(crate) fn workspace(self, around: &Environment) -> Option<PathBuf> {
        (self == Self::OpenClaw).then(|| openclaw::workspace(around).ok()).flatten()
    }

    /// Returns the files that we change, without those of `OpenClaw`.
    pub(super) fn files(self, around: &Environment) -> Vec<ProgramFile> {
        let settings = |path: PathBuf, hooks, server, syntax| ProgramFile {
            path,
            content: FileContent::Settings { hooks, server, syntax },
        };
        let folder = self.folder(around);
        let groups = Some(HookShape::Groups);
        match self {
            Self::ClaudeCode => vec![
                settings(folder.join("settings.json"), groups, None, Syntax::Json),
                // The program writes this file itself.
                settings(around.claude_state_file(), None, Some(CLAUDE_SERVERS), Syntax::Json),
            ],
            Self::Codex => vec![
                settings(folder.join("hooks.json"), groups, None, Syntax::Json),
                ProgramFile { path: folder.join("config.toml"), content: FileContent::Toml },
            ],
            Self::OpenClaw => Vec::new(),
            Self::Gemini => {
                let path = folder.join("settings.json");
                vec![settings(path, groups, Some(SERVERS), Syntax::Json5)]
            }
            Self::Opencode => {
                let server = ServerShape { key: "mcp", form: ServerForm::OneList };
                let names = ["opencode.jsonc", "opencode.json"].map(|it| folder.join(it));
                let is_ours = |it: &&PathBuf| {
                    fs::read_to_string(it).is_ok_and(|it| it.contains("\"memoird\""))
                };
                // Of two files, the first of these counts.
                let path = names.iter().find(is_ours).or(names.iter().find(|it| it.is_file()));
                let path = path.unwrap_or(&names[1]);
                vec![
                    ProgramFile {
                        path: folder.join("plugins/memoird.js"),
                        content: FileContent::Plugin(OPENCODE_PLUGIN),
                    },
                    settings(path.clone(), None, Some(server), Syntax::Json5),
                ]
            }
            Self::Copilot => {
                let server = ServerShape { form: ServerForm::WithTools, ..SERVERS };
                vec![
                    settings(folder.join("hooks/memoird.json"), groups, None, Syntax::Json),
                    settings(folder.join("mcp-config.json"), None, Some(server), Syntax::Json),
                ]
            }
            Self::Cursor => vec![
                settings(folder.join("hooks.json"), Some(HookShape::List), None, Syntax::Json),
                settings(folder.join("mcp.json"), None, Some(SERVERS), Syntax::Json),
            ],
            Self::Windsurf => {
                let path = folder.join("mcp_config.json");
                vec![settings(path, None, Some(SERVERS), Syntax::Json)]
            }
            Self::Zed => {
                let server = ServerShape { key: "context_servers", ..SERVERS };
                vec![settings(folder.join("settings.json"), None, Some(server), Syntax::Json5)]
            }
        }
    }

    /// Returns the events that we handle, and their names in our commands.
    pub(super) fn events(self) -> &'static [(&'static str, &'static str)] {
        match self {
            // Gemini CLI asks before each turn whether to compact, and its transcript keeps what it compacts.
            Self::Gemini => &EVENTS[..2],
            Self::Cursor => &CURSOR_EVENTS,
            _ => &EVENTS,
        }
    }

    /// Returns the timeout of our hook for an event, in the unit of the program.
    pub(super) fn timeout(self, event: &str) -> u64 {
        match self {
            Self::Gemini => TIMEOUT_SECONDS * 1_000,
            _ if event == SHORT_EVENT => SHORT_TIMEOUT_SECONDS,
            _ => TIMEOUT_SECONDS,
        }
    }

    /// Returns whether the program accepts the timeout of a hook, which the user may have changed.
    pub(super) fn accepts_timeout(self, hook: &Value, event: &str) -> bool {
        let timeout = hook.get("timeout").and_then(Value::as_u64);
        self == Self::Gemini
            || event != SHORT_EVENT
            || timeout.is_none_or(|it| it <= SHORT_TIMEOUT_SECONDS)
    }
}

impl ServerShape {
    /// Returns our server as an entry of the list.
    pub(super) fn entry(self, program: &str) -> Value {
        match self.form {
            ServerForm::Plain => json!({ "command": program, "args": SERVER_ARGS }),
            ServerForm::WithType => {
                json!({ "type": "stdio", "command": program, "args": SERVER_ARGS })
            }
            ServerForm::WithTools => {
                json!({ "type": "local", "command": program, "args": SERVER_ARGS, "tools": ["*"] })
            }
            ServerForm::OneList => {
                json!({ "type": "local", "command": [program, SERVER_ARGS[0]], "enabled": true })
            }
        }
    }

    /// Returns whether a server is ours, wherever our program is installed. One with other arguments is the user's.
    pub(super) fn is_ours(self, server: &Value) -> bool {
        let Some(command) = server.get("command") else { return false };
        match self.form {
            ServerForm::OneList => {
                command.as_array().is_some_and(|it| it.len() == 2 && it[1] == SERVER_ARGS[0])
            }
            _ => command.is_string() && server.get("args") == Some(&json!(SERVER_ARGS)),
        }
    }
}

/// The programs that the flags of a command name.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentFlags(pub(crate) Vec<AgentProgram>);

impl clap::Args for AgentFlags {
    fn augment_args(command: Command) -> Command {
        AgentProgram::flagged().fold(command, |command, it| {
            let flag = Arg::new(it.id()).long(it.id()).help(it.help());
            command.arg(flag.action(ArgAction::SetTrue))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for AgentFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = AgentProgram::flagged().filter(|it| matches.get_flag(it.id()));
        Ok(Self(named.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
