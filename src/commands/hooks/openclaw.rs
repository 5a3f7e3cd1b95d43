//! `OpenClaw`: our MCP server and plugin in its settings, and the block of `WISDOM.md` in the `MEMORY.md` of its
//! workspace.
//!
//! `OpenClaw` reads no file of ours at session start but that one. The settings are JSON5; comments and everything else
//! in them stay, and so does `MEMORY.md` outside of the block. Each change is shown first. The plugin's files lie in the
//! folder where the program looks for plugins, since its own installer would drop the comments of the settings.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Map, Value, json};

use super::{
    install::{HookSettingsChange, SettingsEdit},
    json_edit::{self, Syntax},
};
use crate::{
    commands::ui::Ui,
    config::{
        edit,
        environment::Environment,
        root::{ROOT_FILE_NAME, RootSettings},
    },
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        workspace::Invocation,
    },
    recall::{
        history,
        wisdom_block::{self, BlockOutcome, FILE_UNITS_MAX, IfAbsent},
    },
    session::transcript_file,
    store::fs::{
        layout::{self, INDEX_FILE, MemoryFileName},
        vault::{
            Vault,
            settings_files::{remove_settings, write_settings},
        },
    },
};

/// The name of our server and of our plugin.
const NAME: &str = "memoird";
/// The last argument of our server.
const SERVER_VERB: &str = "mcp";
/// The files of the plugin.
const PLUGIN_FILES: [(&str, &str); 3] = [
    ("index.js", include_str!("../../../integrations/openclaw/index.js")),
    ("openclaw.plugin.json", include_str!("../../../integrations/openclaw/openclaw.plugin.json")),
    ("package.json", include_str!("../../../integrations/openclaw/package.json")),
];
/// Where the settings say whether the program itself writes what lasts into `MEMORY.md`; it does if they do not.
const DREAMING: [&str; 6] = ["plugins", "entries", "memory-core", "config", "dreaming", "enabled"];

/// What an installed `OpenClaw` has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpenClawData {
    /// The workspace of its main agent, which need not exist.
    pub(crate) workspace: PathBuf,
    /// How many daily logs are in it.
    pub(crate) logs: usize,
    /// How many sessions all agents have in their databases.
    pub(crate) sessions: usize,
}

/// What is to be done, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenClawRequest<'a> {
    /// The workspace, which is the memory folder.
    pub(crate) root: &'a Path,
    pub(crate) dry_run: bool,
    pub(crate) yes: bool,
    /// Whether the user has seen what is changed.
    pub(crate) is_planned: bool,
}

/// What was done, and what is left for the user to do, in sentences.
#[derive(Debug, Default)]
pub(crate) struct OpenClawOutcome {
    pub(crate) done: Vec<String>,
    pub(crate) to_do: Vec<String>,
}

/// Returns what `OpenClaw` has; `None` if it is not installed for this user.
pub(crate) fn detect(around: &Environment) -> Option<OpenClawData> {
    let folder = around.openclaw_folder();
    if !folder.is_dir() && !around.openclaw_settings().is_file() {
        return None;
    }
    let workspace = workspace(around).ok()?;
    let names = |dir: &Path| fs::read_dir(dir).into_iter().flatten().flatten();
    let is_log = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|it| matches!(layout::classify(it), MemoryFileName::Log(_)))
    };
    let logs = names(&workspace.join("memory")).filter(|it| is_log(&it.file_name())).count();
    let databases = names(&folder.join("agents"))
        .map(|it| it.path().join("agent/openclaw-agent.sqlite"))
        .filter(|it| it.is_file());
    let sessions =
        databases.map(|it| transcript_file::sessions_in(&it).map_or(0, |it| it.len())).sum();
    Some(OpenClawData { workspace, logs, sessions })
}

/// Returns the workspace of the main agent: as the settings say, else in the program's folder.
///
/// Returns an error if the settings cannot be read.
pub(crate) fn workspace(around: &Environment) -> CommandResult<PathBuf> {
    let path = around.openclaw_settings();
    let text = fs::read_to_string(&path).unwrap_or_default();
    let settings = json_edit::parse(&text, Syntax::Json5).map_err(|error| {
        CommandError::config(format!("`{}`: {error}", path.display()))
            .hint("name the workspace: memoird init --openclaw WORKSPACE")
    })?;
    let agents = settings.get("agents");
    let entry = |id: &str| agents?.get("entries")?.get(id)?.get("workspace");
    let defaults = || agents?.get("defaults")?.get("workspace");
    let named = entry("main").or_else(defaults).and_then(Value::as_str);
    let named = named.filter(|it| !it.trim().is_empty()).map(Path::new);
    Ok(match named {
        Some(named) => around.absolute(named, &around.home),
        None => around.openclaw_folder().join("workspace"),
    })
}

/// Adds our server and plugin to the settings of `OpenClaw`, and the block to `MEMORY.md`: shows each change first, and
/// asks on a terminal.
pub(crate) fn install(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    ui: &Ui,
) -> CommandResult<OpenClawOutcome> {
    let mut outcome = OpenClawOutcome::default();
    if let Some(OpenClawData { workspace, logs, sessions }) = detect(&call.environment) {
        outcome.done.push(format!(
            "found OpenClaw with {} in its workspace and {}",
            counted(logs, "log", "logs"),
            counted(sessions, "session", "sessions")
        ));
        if workspace.canonicalize().unwrap_or_else(|_| workspace.clone()) != request.root {
            outcome.to_do.push(format!(
                "the settings of OpenClaw name the workspace {}: it reads MEMORY.md there",
                workspace.display()
            ));
        }
    }
    check_plugin_folder(&call.environment)?;
    if change_settings(call, request, false, &mut outcome, ui)? || request.dry_run {
        write_plugin(call, request, &mut outcome)?;
    }
    insert_block(call, request, &mut outcome, ui)?;
    Ok(outcome)
}

/// Removes our server, our plugin, and the block.
pub(crate) fn uninstall(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    ui: &Ui,
) -> CommandResult<OpenClawOutcome> {
    let mut outcome = OpenClawOutcome::default();
    // What fails keeps nothing else from being removed.
    let settings = change_settings(call, request, true, &mut outcome, ui);
    let plugin = match settings {
        Ok(false) if !request.dry_run => Ok(()),
        _ => remove_plugin(call, request, &mut outcome),
    };
    let block = remove_block(call, request, &mut outcome, ui);
    settings.and(plugin).and(block).map(|()| outcome)
}

/// Asks whether a file may be changed; adds to the outcome if it was not.
fn is_agreed(
    request: OpenClawRequest<'_>,
    path: &Path,
    out: &mut OpenClawOutcome,
    ui: &Ui,
) -> bool {
    let path = path.display();
    let agreed = if request.yes || request.dry_run {
        Some(!request.dry_run)
    } else {
        ui.confirm(format!("Change {path}?"))
    };
    if request.dry_run {
        out.done.push(format!("would change {path}"));
    } else if agreed != Some(true) {
        out.done.push(format!("{path} was not changed"));
    }
    if agreed.is_none() {
        out.to_do.push(format!("to change {path}, run the same command with --yes"));
    }
    agreed == Some(true)
}

/// Computes the change of the settings for a memory folder; `None` if nothing is to be changed.
pub(super) fn settings_change(
    around: &Environment,
    program: &Path,
    root: &Path,
    takes_out: bool,
) -> CommandResult<Option<HookSettingsChange>> {
    let (program, root) = (program.to_string_lossy(), root.to_string_lossy());
    let edit = SettingsEdit {
        path: around.openclaw_settings(),
        program: "OpenClaw",
        syntax: Syntax::Json5,
        merge: &|settings| {
            let done = if takes_out { take_out(settings) } else { add(settings, &program, &root) };
            done.ok_or("mcp` or `plugins")
        },
        is_before: &|mut backup, settings| {
            let mut plain = backup.clone();
            let has_ours = take_out(&mut plain).is_none() || plain != backup;
            drop_empty(&mut backup);
            let mut settings = settings.clone();
            drop_empty(&mut settings);
            !has_ours && backup == settings
        },
    };
    HookSettingsChange::of_settings(edit, takes_out)
}

/// Returns the folder of our plugin, if it is there.
pub(crate) fn installed_plugin(around: &Environment) -> Option<PathBuf> {
    let folder = plugin_folder(around);
    let is_folder = folder.symlink_metadata().is_ok_and(|it| it.is_dir());
    let manifest = fs::read_to_string(folder.join(PLUGIN_FILES[1].0)).unwrap_or_default();
    let id = serde_json::from_str::<Value>(&manifest).ok().and_then(|it| it.get("id").cloned());
    (is_folder && id == Some(json!(NAME))).then_some(folder)
}

/// Returns an error if another plugin is where ours belongs.
fn check_plugin_folder(around: &Environment) -> CommandResult<()> {
    let folder = plugin_folder(around);
    if folder.symlink_metadata().is_err() || installed_plugin(around).is_some() {
        return Ok(());
    }
    let what = format!("`{}` has another plugin", folder.display());
    Err(CommandError::usage(what).hint("move it away, then do the same again"))
}

/// Returns whether all is installed for a workspace: settings, plugin, and block.
pub(crate) fn is_installed(call: &Invocation, root: &Path) -> bool {
    let folder = plugin_folder(&call.environment);
    let is_current = |(name, text): &(&str, &str)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|it| it == *text)
    };
    let has_block = || {
        let settings = call.config.open(root, &call.environment);
        settings.is_ok_and(|it| it.wisdom_block.is_some())
    };
    PLUGIN_FILES.iter().all(is_current) && has_block()
}

/// Changes the settings. Returns whether they are as they should be.
fn change_settings(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    takes_out: bool,
    outcome: &mut OpenClawOutcome,
    ui: &Ui,
) -> CommandResult<bool> {
    let program = std::env::current_exe().map_err(|e| {
        CommandError::cannot_write(format!("cannot find the path of this program: {e}"))
    })?;
    let path = call.environment.openclaw_settings();
    let Some(change) = settings_change(&call.environment, &program, request.root, takes_out)?
    else {
        let path = path.display();
        outcome.done.push(if takes_out {
            format!("{path} has no server and no plugin of memoird")
        } else {
            format!("{path} already has the server and the plugin")
        });
        return Ok(true);
    };
    if !ui.is_json() && !request.is_planned {
        change.show_diff(ui);
    }
    if !is_agreed(request, &path, outcome, ui) {
        return Ok(false);
    }
    let backup = change.write(call.now)?;
    let backup = backup.map(|it| format!("; backup: {}", it.display())).unwrap_or_default();
    outcome.done.push(format!("changed {}{backup}", path.display()));
    outcome.to_do.push(
        "restart the Gateway of OpenClaw if it is running: openclaw gateway restart".to_owned(),
    );
    Ok(true)
}

/// Adds our server and plugin; `None` if the settings have an unexpected shape. What the user changed in ours stays.
fn add(settings: &mut Value, program: &str, root: &str) -> Option<()> {
    let server = member(settings, &["mcp", "servers"])?;
    match server.get_mut(NAME) {
        Some(server) if !is_our_server(server) => {}
        Some(server) => {
            server["command"] = json!(program);
            server["args"] = server_args(root);
        }
        None => drop(
            server
                .insert(NAME.to_owned(), json!({ "command": program, "args": server_args(root) })),
        ),
    }
    let plugin = member(settings, &["plugins", "entries"])?;
    match plugin.get_mut(NAME) {
        Some(plugin) => {
            let config = plugin.as_object_mut()?.entry("config").or_insert_with(|| json!({}));
            config.as_object_mut()?.insert("command".to_owned(), json!(program));
        }
        None => drop(plugin.insert(
            NAME.to_owned(),
            json!({
                "enabled": true,
                // Without it, the plugin does not see when a turn ends; the text is read from the database.
                "hooks": { "allowConversationAccess": true },
                "config": { "command": program },
            }),
        )),
    }
    // Where plugins are listed, others do not load.
    if let Some(allowed) =
        settings.get_mut("plugins")?.get_mut("allow").and_then(Value::as_array_mut)
        // An empty list allows all.
        && !allowed.is_empty()
        && !allowed.iter().any(|it| it == NAME)
    {
        allowed.push(json!(NAME));
    }
    Some(())
}

/// Removes our server and plugin; `None` if the settings have an unexpected shape.
fn take_out(settings: &mut Value) -> Option<()> {
    let before = settings.clone();
    let root = settings.as_object_mut()?;
    let section =
        |root: &mut Map<String, Value>, keys: [&str; 2], is_ours: &dyn Fn(&Value) -> bool| {
            let Some(outer) = root.get_mut(keys[0]).and_then(Value::as_object_mut) else { return };
            let Some(inner) = outer.get_mut(keys[1]).and_then(Value::as_object_mut) else { return };
            if inner.get(NAME).is_some_and(is_ours) {
                inner.shift_remove(NAME);
            }
        };
    section(root, ["mcp", "servers"], &is_our_server);
    section(root, ["plugins", "entries"], &|_| true);
    let allowed = root.get_mut("plugins").and_then(|it| it.get_mut("allow")?.as_array_mut());
    if let Some(allowed) = allowed {
        allowed.retain(|it| it != NAME);
    }
    if *settings != before {
        drop_empty(settings);
    }
    Some(())
}

/// Removes sections that have nothing in them.
fn drop_empty(settings: &mut Value) {
    for (outer, inner) in [("mcp", "servers"), ("plugins", "entries")] {
        let Some(root) = settings.as_object_mut() else { return };
        let Some(section) = root.get_mut(outer).and_then(Value::as_object_mut) else { continue };
        if section.get(inner) == Some(&json!({})) {
            section.shift_remove(inner);
        }
        if section.is_empty() {
            root.shift_remove(outer);
        }
    }
}

/// Returns the object at these keys, created if it does not exist; `None` if something else is there.
fn member<'a>(settings: &'a mut Value, keys: &[&str]) -> Option<&'a mut Map<String, Value>> {
    let mut object = settings.as_object_mut()?;
    for key in keys {
        object = object.entry(*key).or_insert_with(|| json!({})).as_object_mut()?;
    }
    Some(object)
}

fn server_args(root: &str) -> Value {
    json!(["--root", root, SERVER_VERB])
}

/// A server of this name with other arguments is the user's.
fn is_our_server(server: &Value) -> bool {
    let args = server.get("args").and_then(Value::as_array).map(Vec::as_slice);
    let Some([flag, _, verb]) = args else { return false };
    flag == "--root" && verb == SERVER_VERB && server.get("command").is_some_and(Value::is_string)
}

pub(crate) fn plugin_folder(around: &Environment) -> PathBuf {
    around.openclaw_folder().join("extensions").join(NAME)
}

fn write_plugin(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    outcome: &mut OpenClawOutcome,
) -> CommandResult<()> {
    let folder = plugin_folder(&call.environment);
    let is_current = |(name, text): &(&str, &str)| {
        fs::read_to_string(folder.join(name)).is_ok_and(|it| it == *text)
    };
    if PLUGIN_FILES.iter().all(is_current) {
        return Ok(());
    }
    if request.dry_run {
        let names = PLUGIN_FILES.map(|it| it.0).join(", ");
        let folder = folder.display();
        outcome
            .done
            .push(format!("would write the plugin {folder} ({names}); it runs in OpenClaw"));
        return Ok(());
    }
    for (name, text) in PLUGIN_FILES {
        write_settings(&folder.join(name), text)?;
    }
    outcome.done.push(format!("wrote the plugin {}", folder.display()));
    Ok(())
}

fn remove_plugin(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    outcome: &mut OpenClawOutcome,
) -> CommandResult<()> {
    let Some(folder) = installed_plugin(&call.environment) else { return Ok(()) };
    if request.dry_run {
        outcome.done.push(format!("would remove the plugin {}", folder.display()));
        return Ok(());
    }
    for (name, _) in PLUGIN_FILES {
        let path = folder.join(name);
        if path.is_file() {
            remove_settings(&path)?;
        }
    }
    // Fails if somebody put something else there.
    drop(fs::remove_dir(&folder));
    outcome.done.push(format!("removed the plugin {}", folder.display()));
    Ok(())
}

/// Returns the settings of the root as they are with the block, and its vault.
fn with_block(call: &Invocation, root: &Path) -> CommandResult<(RootSettings, Vault)> {
    let mut settings = call.config.open(root, &call.environment)?;
    let path = settings.wisdom_block.clone().unwrap_or_else(|| INDEX_FILE.to_owned());
    if !settings.curated.contains(&path) {
        settings.curated.push(path.clone());
    }
    settings.wisdom_block = Some(path);
    let vault = Vault::for_root(&settings)?;
    Ok((settings, vault))
}

fn insert_block(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    outcome: &mut OpenClawOutcome,
    ui: &Ui,
) -> CommandResult<()> {
    // A dry run may come before the folder is set up.
    if !request.root.is_dir() {
        return Ok(());
    }
    let was_set = call.config.open(request.root, &call.environment)?.wisdom_block.is_some();
    let (settings, vault) = with_block(call, request.root)?;
    let Some(path) = settings.wisdom_block.as_deref() else { return Ok(()) };
    let full = vault.layout().full(path);
    if !settings.is_writer(&call.environment.host) {
        outcome
            .to_do
            .push(format!("the block in {path} is written by the host that writes the folder"));
        return Ok(());
    }
    let (current, new) = wisdom_block::preview(&vault)?;
    let is_new = current.as_deref() != Some(&new);
    if is_new {
        let name = full.display().to_string();
        if !ui.is_json() && !request.is_planned {
            ui.diff(
                [&name, &name],
                &history::diff_hunks(current.as_deref().unwrap_or_default(), &new),
            );
        }
        if !is_agreed(request, &full, outcome, ui) {
            return Ok(());
        }
    } else if request.dry_run {
        return Ok(());
    }
    if !was_set {
        set_block(request.root, Some(path))?;
    }
    let written = wisdom_block::write(&vault, IfAbsent::Insert)?;
    let said = match written {
        BlockOutcome::Written | BlockOutcome::Unchanged => {
            format!("{path} holds WISDOM.md in a block, which each run updates")
        }
        BlockOutcome::Shortened => format!(
            "{path} holds as much of WISDOM.md as fits into {FILE_UNITS_MAX} characters, the most that OpenClaw loads"
        ),
        BlockOutcome::Unclear => {
            format!("{path} was not changed: its block is not as memoird left it")
        }
        BlockOutcome::Removed | BlockOutcome::NotWanted => format!("{path} was not changed"),
    };
    outcome.done.push(said);
    if is_new {
        outcome.to_do.extend(dreaming_note(&call.environment, path));
    }
    Ok(())
}

/// Returns what to know of the program's own consolidation, unless it is off.
fn dreaming_note(around: &Environment, path: &str) -> Option<String> {
    let file = around.openclaw_settings();
    let settings = json_edit::parse(&fs::read_to_string(&file).ok()?, Syntax::Json5).ok()?;
    let enabled = DREAMING.iter().try_fold(&settings, |it, key| it.get(key));
    (enabled != Some(&Value::Bool(false))).then(|| {
        format!(
            "OpenClaw's own \"dreaming\" writes what lasts into {path} as well, each night, and drops its oldest \
             entries there above 10,000 characters. Two programs that do the same get in each other's way: to leave it \
             to memoird, set {} to false in {} (in a chat: /dreaming off)",
            DREAMING.join("."),
            file.display()
        )
    })
}

fn remove_block(
    call: &Invocation,
    request: OpenClawRequest<'_>,
    outcome: &mut OpenClawOutcome,
    ui: &Ui,
) -> CommandResult<()> {
    if !request.root.join(ROOT_FILE_NAME).is_file() {
        return Ok(());
    }
    let settings = call.config.open(request.root, &call.environment)?;
    let Some(path) = settings.wisdom_block.clone() else { return Ok(()) };
    if !settings.is_writer(&call.environment.host) {
        outcome
            .to_do
            .push(format!("the block in {path} is taken out by the host that writes the folder"));
        return Ok(());
    }
    let vault = Vault::for_root(&settings)?;
    if !is_agreed(request, &vault.layout().full(&path), outcome, ui) {
        return Ok(());
    }
    let removed = wisdom_block::remove(&vault)?;
    set_block(request.root, None)?;
    match removed {
        BlockOutcome::Removed => outcome.done.push(format!("took the block out of {path}")),
        BlockOutcome::Unclear => outcome.to_do.push(format!(
            "{path} was not changed, because it is unclear where its block ends: take out the lines between \
             the memoird comments by hand"
        )),
        _ => outcome.done.push(format!("{path} had no block")),
    }
    Ok(())
}

/// Names the file with the block in the `memoird.yaml` of a root, or none.
fn set_block(root: &Path, path: Option<&str>) -> CommandResult<()> {
    let file = root.join(ROOT_FILE_NAME);
    let text = fs::read_to_string(&file)
        .map_err(|e| CommandError::data(format!("cannot read `{}`: {e}", file.display())))?;
    let new = edit::set_wisdom_block(&text, &file, path)?;
    Ok(write_settings(&file, &new)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str) {
        let settings = json_edit::parse(text, Syntax::Json5).unwrap();
        let mut changed = settings.clone();
        add(&mut changed, "/old/memoird", "/w").unwrap();
        add(&mut changed, "/usr/bin/memoird", "/w").unwrap();
        let server = json!({"command": "/usr/bin/memoird", "args": ["--root", "/w", "mcp"]});
        assert_eq!(changed["mcp"]["servers"][NAME], server);
        assert_eq!(changed["plugins"]["entries"][NAME]["config"]["command"], "/usr/bin/memoird");
        let with = json_edit::change(text, &settings, &changed).unwrap();
        assert_eq!(json_edit::parse(&with, Syntax::Json5).unwrap(), changed);
        take_out(&mut changed).unwrap();
        assert_eq!(changed, settings);
        let again = json_edit::parse(&with, Syntax::Json5).unwrap();
        assert_eq!(json_edit::change(&with, &again, &changed).unwrap(), text);
    }

    #[test]
    fn settings_are_the_same_after_install_and_uninstall() {
        check("{\n  // mine\n  gateway: { port: 1, },\n}\n");
        check(
            "{ \"mcp\": {\"servers\": {\"other\": {\"url\": \"x\"}}}, \"plugins\": {\"allow\": [\"a\"]} }\n",
        );
    }

    #[test]
    fn a_server_of_the_user_and_other_shapes_stay() {
        let mut settings = json!({"mcp": {"servers": {"memoird": {"url": "x"}}}});
        add(&mut settings, "/m", "/w").unwrap();
        assert_eq!(settings["mcp"]["servers"][NAME], json!({"url": "x"}));
        take_out(&mut settings).unwrap();
        assert_eq!(settings, json!({"mcp": {"servers": {"memoird": {"url": "x"}}}}));
        for mut settings in [json!([]), json!({"mcp": []}), json!({"plugins": {"entries": 1}})] {
            assert_eq!(add(&mut settings, "/m", "/w"), None);
        }
    }
}
