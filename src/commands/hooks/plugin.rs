//! The files of a Claude Code plugin with our hooks and our MCP server.
//!
//! Its folder is a plugin (`claude --plugin-dir DIR`) and at the same time a marketplace that lists it
//! (`claude plugin marketplace add DIR`). Claude Code asks for an icon and a README of its plugins.

use std::path::Path;

use serde_json::{Value, json};

use super::entries;
use crate::operations::format::shell_quoted;

/// The name of the plugin and of its marketplace.
pub(crate) const PLUGIN: &str = "memoird";

const DESCRIPTION: &str = "Records sessions, and starts each one with what earlier ones decided";
const MANIFEST: &str = ".claude-plugin/plugin.json";
const MARKETPLACE: &str = ".claude-plugin/marketplace.json";
const HOOKS: &str = "hooks/hooks.json";
const README: &str = "README.md";
const ICON: &str = ".claude-plugin/icon.png";
const ICON_BYTES: &[u8] = include_bytes!("plugin_icon.png");

/// Returns the files: their paths in the plugin's folder, and their contents.
pub(crate) fn plugin_files(program: &Path, dir: &Path) -> Vec<(&'static str, Vec<u8>)> {
    let author = json!({ "name": PLUGIN });
    let manifest = json!({
        "name": PLUGIN,
        "version": env!("CARGO_PKG_VERSION"),
        "description": DESCRIPTION,
        "author": author,
        "license": env!("CARGO_PKG_LICENSE"),
        "keywords": ["memory"],
        "mcpServers": entries::claude_code_servers(program),
        // Neither the hooks nor the server reach any host on behalf of Claude Code.
        "network": { "hosts": [] },
    });
    let marketplace = json!({
        "name": PLUGIN,
        "description": DESCRIPTION,
        "owner": author,
        "plugins": [{ "name": PLUGIN, "source": "./", "description": DESCRIPTION }],
    });
    let text = |it: &Value| format!("{it:#}\n").into_bytes();
    vec![
        (MANIFEST, text(&manifest)),
        (MARKETPLACE, text(&marketplace)),
        (HOOKS, text(&entries::claude_code_hooks(program))),
        (README, readme(program, dir).into_bytes()),
        (ICON, ICON_BYTES.to_vec()),
    ]
}

/// Returns whether a file that exists may be replaced: it is one that we wrote.
pub(crate) fn is_own_file(name: &str, content: &[u8]) -> bool {
    name == ICON || String::from_utf8_lossy(content).contains("memoird")
}

fn readme(program: &Path, dir: &Path) -> String {
    let dir = shell_quoted(&dir.to_string_lossy());
    format!(
        "# memoird for Claude Code

{DESCRIPTION}. Its hooks call `{program}` when a session starts, when it ends, and before it is \
         compacted; its MCP server lets Claude search and add to the memory folder of the session. Both work \
         on this machine only, and read and write nothing but the memory folder.

Set up a memory folder first: `memoird init`. Then install the plugin:

```sh
claude plugin marketplace add {dir}
claude plugin install {PLUGIN}@{PLUGIN}
```

In Claude Code the same is `/plugin install {PLUGIN} --marketplace {dir}`. To remove it again, run \
         `claude plugin uninstall {PLUGIN}@{PLUGIN}` and `claude plugin marketplace remove {PLUGIN}`. \
         `memoird init --claude-code --plugin {dir}` writes these files again, for example after the \
         program has moved.
",
        program = program.display(),
    )
}
