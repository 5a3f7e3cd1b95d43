//! Adds our MCP server to the TOML settings of Codex, and removes it; comments and everything else stay.

use toml_edit::{DocumentMut, Item, Table, TomlError, value};

use super::{entries::SERVER, programs::SERVER_ARGS};

/// The table that lists the servers.
const SERVERS: &str = "mcp_servers";

/// Returns the settings with our server; `None` if they have no such change: our server is there already, or the
/// user entered one of the same name.
///
/// # Errors
///
/// Returns the error of a text that is not TOML.
pub(super) fn with_server(text: &str, program: &str) -> Result<Option<String>, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let mut fresh = Table::new();
    fresh.set_implicit(true);
    let servers = document.entry(SERVERS).or_insert(Item::Table(fresh));
    let Some(servers) = servers.as_table_like_mut() else { return Ok(None) };
    if let Some(server) = servers.get_mut(SERVER) {
        if !is_ours(server) || server.get("command").and_then(Item::as_str) == Some(program) {
            return Ok(None);
        }
        server["command"] = value(program);
    } else {
        let mut server = Table::new();
        server.insert("command", value(program));
        server.insert("args", value(SERVER_ARGS.into_iter().collect::<toml_edit::Array>()));
        servers.insert(SERVER, Item::Table(server));
    }
    Ok(Some(document.to_string()))
}

/// Returns the settings without our server; `None` if they do not have it.
///
/// # Errors
///
/// Returns the error of a text that is not TOML.
pub(super) fn without_server(text: &str) -> Result<Option<String>, TomlError> {
    let mut document: DocumentMut = text.parse()?;
    let Some(servers) = document.get_mut(SERVERS).and_then(Item::as_table_like_mut) else {
        return Ok(None);
    };
    if !servers.get(SERVER).is_some_and(is_ours) {
        return Ok(None);
    }
    servers.remove(SERVER);
    if servers.is_empty() {
        document.remove(SERVERS);
    }
    Ok(Some(document.to_string()))
}

/// Returns the program that our server in the settings starts.
pub(super) fn server_program(text: &str) -> Option<String> {
    let document: DocumentMut = text.parse().ok()?;
    let server = document.get(SERVERS)?.get(SERVER).filter(|it| is_ours(it))?;
    server.get("command")?.as_str().map(str::to_owned)
}

fn is_ours(server: &Item) -> bool {
    let args = server.get("args").and_then(Item::as_array);
    let args = args.map(|it| it.iter().map(|it| it.as_str().unwrap_or_default()));
    args.is_some_and(|it| it.eq(SERVER_ARGS)) && server.get("command").is_some_and(Item::is_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let added = with_server(text, "/usr/bin/memoird").unwrap().unwrap();
        assert_eq!(server_program(&added).as_deref(), Some("/usr/bin/memoird"), "{added}");
        assert!(text.lines().all(|it| added.contains(it.trim_end_matches(" }"))), "{added}");
        assert_eq!(with_server(&added, "/usr/bin/memoird").unwrap(), None);
        let moved = with_server(&added, "/opt/memoird").unwrap().unwrap();
        assert_eq!(moved, added.replace("/usr/bin", "/opt"));
        assert_eq!(without_server(&moved).unwrap().unwrap(), text);
    }

    #[test]
    fn the_server_is_added_and_removed_and_the_rest_stays() {
        check("");
        check("# mine\nmodel = \"x\" # fast\n\n[features] # on\nhooks = true\n# the end\n");
        check("[mcp_servers.tides] # ours\nurl = 'http://127.0.0.1:1'\n\n[tui]\ntheme = \"x\"\n");
        check("mcp_servers = { tides = { url = \"x\" } }\n");
        let theirs =
            "[mcp_servers.memoird]\ncommand = \"memoird\"\nargs = [\"--root\", \"/m\", \"mcp\"]\n";
        assert_eq!(with_server(theirs, "/usr/bin/memoird").unwrap(), None);
        assert_eq!(without_server(theirs).unwrap(), None);
        assert_eq!(with_server("mcp_servers = 1\n", "/m").unwrap(), None);
        assert!(with_server("mcp_servers = \n", "/m").is_err());
    }
}
