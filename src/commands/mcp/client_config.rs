//! The settings with which an agent's program starts the server.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    commands::{GlobalArgs, ui::Ui},
    operations::{
        error::{CommandError, CommandResult},
        format::shell_quoted,
        workspace::Invocation,
    },
};

/// A program that speaks MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum McpClient {
    ClaudeCode,
    ClaudeDesktop,
    Codex,
    Cursor,
    Gemini,
    Openclaw,
    Opencode,
    Vscode,
    Windsurf,
    Zed,
}

impl McpClient {
    /// Returns the settings file, and a command that edits it, if there is one.
    fn config_location(self, line: &str) -> (&'static str, Option<String>) {
        match self {
            Self::ClaudeCode => {
                (".mcp.json in the project", Some(format!("claude mcp add memoird -- {line}")))
            }
            Self::ClaudeDesktop => ("claude_desktop_config.json (Settings, Developer)", None),
            Self::Codex => {
                ("~/.codex/config.toml", Some(format!("codex mcp add memoird -- {line}")))
            }
            Self::Cursor => ("~/.cursor/mcp.json, or .cursor/mcp.json in the project", None),
            Self::Gemini => {
                ("~/.gemini/settings.json", Some(format!("gemini mcp add memoird {line}")))
            }
            Self::Openclaw => ("~/.openclaw/openclaw.json", None),
            Self::Opencode => ("opencode.json in the project", None),
            Self::Vscode => (".vscode/mcp.json in the project", None),
            Self::Windsurf => ("~/.codeium/windsurf/mcp_config.json", None),
            Self::Zed => ("~/.config/zed/settings.json", None),
        }
    }

    fn config_text(self, program: &str, args: &[String]) -> String {
        let plain = || json!({ "command": program, "args": args });
        let typed = || json!({ "type": "stdio", "command": program, "args": args });
        let document: Value = match self {
            Self::Codex => return toml_config(program, args),
            Self::ClaudeCode => json!({ "mcpServers": { "memoird": typed() } }),
            Self::ClaudeDesktop | Self::Cursor | Self::Gemini | Self::Windsurf => {
                json!({ "mcpServers": { "memoird": plain() } })
            }
            Self::Vscode => json!({ "servers": { "memoird": typed() } }),
            Self::Zed => json!({ "context_servers": { "memoird": plain() } }),
            Self::Openclaw => json!({ "mcp": { "servers": { "memoird": plain() } } }),
            Self::Opencode => {
                let line: Vec<&str> =
                    std::iter::once(program).chain(args.iter().map(String::as_str)).collect();
                json!({ "mcp": { "memoird": { "type": "local", "command": line, "enabled": true } } })
            }
        };
        serde_json::to_string_pretty(&document).unwrap_or_default()
    }
}

fn toml_config(program: &str, args: &[String]) -> String {
    // Strings in TOML have the escapes of JSON.
    let quoted = |it: &str| Value::String(it.to_owned()).to_string();
    let args: Vec<String> = args.iter().map(|it| quoted(it)).collect();
    format!("[mcp_servers.memoird]\ncommand = {}\nargs = [{}]", quoted(program), args.join(", "))
}

/// Prints the settings for the selected folder.
pub(super) fn print_config(
    which: McpClient,
    global: &GlobalArgs,
    allow_write: bool,
    ui: &Ui,
) -> CommandResult<()> {
    let (call, root) = Invocation::with_root(global)?;
    root.require_memory_folder()?;
    let program = std::env::current_exe().map_err(CommandError::config)?;
    let args =
        server_arguments(global, root.vault.layout().root(), &call.environment.cwd, allow_write);
    let program = program.to_string_lossy();
    let line = std::iter::once(&*program).chain(args.iter().map(String::as_str)).map(shell_quoted);
    let line = line.collect::<Vec<_>>().join(" ");
    let (file, command) = which.config_location(&line);
    ui.note(format!("add this to {file}:"));
    ui.data(which.config_text(&program, &args));
    if let Some(command) = command {
        ui.note(format!("or run: {command}"));
    }
    Ok(())
}

/// Returns the arguments that start the server on this folder from any working folder.
fn server_arguments(
    global: &GlobalArgs,
    root: &Path,
    cwd: &Path,
    allow_write: bool,
) -> Vec<String> {
    let mut args = vec!["--root".to_owned(), root.to_string_lossy().into_owned()];
    if let Some(file) = &global.config {
        args.extend(["--config".to_owned(), cwd.join(file).to_string_lossy().into_owned()]);
    }
    for set in &global.set {
        args.extend(["--set".to_owned(), set.clone()]);
    }
    args.push("mcp".to_owned());
    if allow_write {
        args.push("--allow-write".to_owned());
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_a_shell_and_for_toml() {
        assert_eq!(shell_quoted("/a/b-c"), "/a/b-c");
        assert_eq!(shell_quoted("it's a b"), r"'it'\''s a b'");
        let text = toml_config("/a \"b\"", &["--root".to_owned(), "c\\d".to_owned()]);
        let expected =
            "[mcp_servers.memoird]\ncommand = \"/a \\\"b\\\"\"\nargs = [\"--root\", \"c\\\\d\"]";
        assert_eq!(text, expected);
    }
}
