//! `memoird init`: makes or adopts a memory folder.
//!
//! It looks first, says what it found, and writes only what is missing: a second call changes
//! nothing. No log, no memory, and no summary is ever touched here.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    error::{CommandError, CommandErrorKind},
    hooks::{
        install::{self, AgentProgram, HookSettingsChange},
        project_folder,
    },
    import,
    service::{
        self, manager,
        unit::{self, SystemdUnit},
    },
    ui::{self, Ui},
    workspace::Invocation,
};
use crate::{
    config::{
        self, edit,
        root::{ROOT_FILE_NAME, RootFile, RootSettings, ZoneSource},
        zone::ZoneName,
    },
    memory::{address::Stem, period::Period, wisdom::WisdomFile},
    privacy::PrivacyRules,
    store::fs::{
        inventory::{Inventory, SummaryFile},
        layout::{self, Layout, MemoryFileName, PRIVATE_DIR},
        vault::{Vault, settings_files::write_settings},
    },
};

/// How many files that are left alone are named one by one.
const PROBLEMS_SHOWN_MAX: usize = 10;

/// Make or adopt a memory folder
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct InitArgs {
    /// The folder; made when it is not there [default: the working folder]
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Name of the agent whose memory it is [default: the folder's name]
    #[arg(long)]
    name: Option<String>,
    /// Time zone whose days the logs are named by [default: the system's]
    #[arg(long)]
    zone: Option<ZoneName>,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Leave the folder out of the user's configuration
    #[arg(long)]
    no_config: bool,
    /// Install and start the daemon as a systemd user service
    #[arg(long)]
    service: bool,
    /// Enter hooks in the settings of Claude Code, so that sessions are kept and memory is read
    #[arg(long)]
    claude_code: bool,
    /// Enter the same hooks in those of Codex
    #[arg(long)]
    codex: bool,
    /// With --claude-code: write the hooks as a plugin into this folder, and leave the settings alone
    #[arg(long, value_name = "DIR", requires = "claude_code", conflicts_with = "uninstall")]
    plugin: Option<PathBuf>,
    /// With --claude-code or --codex: take the hooks out again, and do nothing else
    #[arg(long)]
    uninstall: bool,
    /// Have each project get a memory folder of its own in DIR when a session in it ends and it has none;
    /// without another DIR nothing else is made now
    #[arg(long, value_name = "DIR", conflicts_with = "uninstall")]
    projects: Option<PathBuf>,
    /// Let this host summarise the folder from now on; all others only read it
    #[arg(long)]
    take_over: bool,
    /// Answer yes to what would be asked
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct InitReport {
    root: PathBuf,
    agent_name: String,
    zone: String,
    memory_dir: String,
    dry_run: bool,
    found: FolderContents,
    /// What was written, or in a dry run would be: relative to the root, else absolute.
    wrote: Vec<String>,
    /// What was done to the settings of agents' programs, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    hooks: Vec<String>,
    /// What is left to a person, in words.
    to_do: Vec<String>,
}

/// What came of entering hooks, in words.
#[derive(Default)]
struct HooksOutcome {
    done: Vec<String>,
    /// What is left to a person.
    to_do: Vec<String>,
}

/// What stood in the folder before.
#[derive(Default, Serialize)]
struct FolderContents {
    logs: usize,
    log_bytes: u64,
    first_log: Option<NaiveDate>,
    last_log: Option<NaiveDate>,
    weekly: usize,
    weekly_foreign: usize,
    monthly: usize,
    monthly_foreign: usize,
    memories: usize,
    index: bool,
    wisdom_entries: usize,
    wisdom_entries_own: usize,
    wisdom: bool,
    /// Files that are left alone though their names are nearly ours.
    problems: Vec<SkippedFile>,
}

#[derive(Serialize)]
struct SkippedFile {
    path: String,
    reason: String,
}

/// One thing that is written, and how.
struct InitStep {
    /// How it is named: relative to the root, else absolute.
    name: String,
    what: InitAction,
}

enum InitAction {
    /// A folder.
    Folder(PathBuf),
    /// The private folder of the root.
    Private,
    /// A file.
    Text(PathBuf, String),
    /// The unit for systemd.
    Unit(SystemdUnit),
}

pub(super) fn run(global: &GlobalArgs, args: &InitArgs, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Invocation::load(global)?;
    if args.uninstall {
        if args.agent_programs().is_empty() {
            return Err(CommandError::new(
                CommandErrorKind::Usage,
                "--uninstall takes out the hooks of an agent",
            )
            .hint("memoird init --claude-code --uninstall"));
        }
        let entered = update_hooks(&call, args, ui)?;
        for words in entered.done.iter().chain(&entered.to_do) {
            ui.note(words);
        }
        if ui.is_json() {
            let HooksOutcome { done, to_do } = entered;
            let report =
                serde_json::json!({ "hooks": done, "to_do": to_do, "dry_run": args.dry_run });
            ui.json(&report);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut to_do = Vec::new();
    let projects =
        args.projects.as_deref().map(|it| set_projects_dir(&call, args, it)).transpose()?;
    if let Some(words) = projects {
        if args.dir.is_none() && global.root.is_none() {
            return finish_projects_only(&call, global, args, words, ui);
        }
        to_do.push(words);
    }
    let call = if args.projects.is_some() { Invocation::load(global)? } else { call };
    let path = target_folder(&call, global, args)?;
    let (settings, root_file) = root_settings(&call, args, &path, &mut to_do)?;
    let vault = Vault::new(Layout::new(path.clone(), &settings.memory_dir.to_string_lossy()));
    let inventory = vault.scan(&HashMap::new())?.inventory;

    if !vault.layout().memory_dir().is_empty() && has_log(vault.layout().root()) {
        to_do.push(format!(
            "logs beside {ROOT_FILE_NAME} are not read; move them to {}/",
            vault.layout().memory_dir()
        ));
    }
    let steps = plan_steps(&call, global, args, &vault, root_file, ui, &mut to_do)?;
    let wrote = steps.iter().map(|it| it.name.clone()).collect();
    if !args.dry_run {
        apply_steps(&steps, &vault)?;
        if args.service
            && let Err(why) = manager::start(unit_paths_changed(&steps))
        {
            let by_hand = service::START_COMMAND;
            to_do.push(format!("the service is not started ({why}); type: {by_hand}"));
        }
        if args.service && manager::is_linger_enabled() == Some(false) {
            to_do.push(service::LINGER_HINT.to_owned());
        }
    }
    let entered = update_hooks(&call, args, ui)?;
    to_do.extend(entered.to_do);
    if let Some(pid) = project_folder::daemon_pid(&call.config)
        .filter(|_| !args.service && !args.no_config && !settings.configured)
    {
        to_do.push(format!("a daemon is at work; tell it of the new folder: kill -HUP {pid}"));
    }
    let report = InitReport {
        root: path,
        agent_name: PrivacyRules::mask_message(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        memory_dir: if vault.layout().memory_dir().is_empty() {
            "."
        } else {
            vault.layout().memory_dir()
        }
        .to_owned(),
        dry_run: args.dry_run,
        found: FolderContents::new(&inventory),
        wrote,
        hooks: entered.done,
        to_do,
    };
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print(ui);
        offer_session_import(global, args, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Enters where projects get memory folders of their own; returns what there is to say.
fn set_projects_dir(
    call: &Invocation,
    args: &InitArgs,
    dir: &Path,
) -> Result<String, CommandError> {
    let dir = call.config.resolve_root_path(&dir.join("project"), &call.environment)?;
    let dir = dir.parent().unwrap_or(&dir).to_owned();
    if call.config.projects_dir(&call.environment).as_ref() == Some(&dir) {
        return Ok(format!("projects get their memory folders in {} already", dir.display()));
    }
    let (file, text) = project_folder::config_text(&call.config, &call.environment)?;
    let Some(text) = edit::set_projects_dir(&text, &file, &dir)? else {
        let what = format!("{} cannot be edited by program", file.display());
        return Err(CommandError::new(CommandErrorKind::Config, what)
            .hint(format!("add the line by hand: projects_dir: {}", dir.display())));
    };
    if !args.dry_run {
        fs::create_dir_all(&dir).map_err(|e| {
            CommandError::new(
                CommandErrorKind::CannotWrite,
                format!("cannot make `{}`: {e}", dir.display()),
            )
        })?;
        write_settings(&file, &text)?;
    }
    if args.dry_run {
        return Ok(format!(
            "each project would get a memory folder of its own in {}",
            dir.display()
        ));
    }
    Ok(format!(
        "each project gets a memory folder in {} when a session in it ends; a service that is installed learns \
         of that by `memoird service install`",
        dir.display()
    ))
}

/// Enters hooks where nothing else is asked for, and tells.
fn finish_projects_only(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    words: String,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    let HooksOutcome { done, to_do } = update_hooks(call, args, ui)?;
    if ui.is_json() {
        ui.json(&serde_json::json!({
            "projects": words, "hooks": done, "to_do": to_do, "dry_run": args.dry_run
        }));
    } else {
        [words].iter().chain(&done).chain(&to_do).for_each(|it| ui.note(it));
        offer_session_import(global, args, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows which sessions of the last days there are of the agents whose hooks were entered, and brings them in
/// where a person says so.
fn offer_session_import(global: &GlobalArgs, args: &InitArgs, ui: &Ui) -> Result<(), CommandError> {
    if args.plugin.is_some() || args.dry_run {
        return Ok(());
    }
    // What was entered just now counts.
    let call = Invocation::load(global)?;
    for host in args.agent_programs() {
        let (from, folder) = match host {
            AgentProgram::ClaudeCode => (
                import::ImportSource::ClaudeCode,
                call.environment.claude_folder().join("projects"),
            ),
            AgentProgram::Codex => {
                (import::ImportSource::Codex, call.environment.codex_folder().join("sessions"))
            }
        };
        if folder.is_dir() {
            ui.note("");
            ui.note(format!("Sessions of {} in the last 30 days:", host.display_name()));
            import::run(global, &import::ImportArgs::recent(from, args.yes), ui)?;
        }
    }
    Ok(())
}

impl InitArgs {
    /// Returns the agents' programs that are named.
    fn agent_programs(&self) -> Vec<AgentProgram> {
        let named =
            [(self.claude_code, AgentProgram::ClaudeCode), (self.codex, AgentProgram::Codex)];
        named.into_iter().filter(|it| it.0).map(|it| it.1).collect()
    }
}

/// Enters the hooks in the settings of the agents that are named, or takes them out: shown first, and asked
/// for where a person sits. Returns what there is to say.
fn update_hooks(call: &Invocation, args: &InitArgs, ui: &Ui) -> Result<HooksOutcome, CommandError> {
    let program = std::env::current_exe().map_err(|e| {
        CommandError::new(
            CommandErrorKind::CannotWrite,
            format!("cannot tell where this program is: {e}"),
        )
    })?;
    let mut entered = HooksOutcome::default();
    for host in args.agent_programs() {
        if let (AgentProgram::ClaudeCode, Some(dir)) = (host, &args.plugin) {
            write_plugin(call, args, dir, &program, &mut entered)?;
            continue;
        }
        let name = host.display_name();
        let Some(change) =
            HookSettingsChange::new(host, &call.environment, &program, args.uninstall)?
        else {
            let how = if args.uninstall { "no hook of memoird is" } else { "the hooks are" };
            entered.done.push(format!("{how} in the settings of {name} already"));
            continue;
        };
        let path = change.path.display().to_string();
        if !ui.is_json() {
            change.show_diff(ui);
        }
        let may = args.yes || ui.confirm(format!("Change {path}?")).unwrap_or(true);
        if args.dry_run || !may {
            entered.done.push(format!("{path} is left as it is"));
            continue;
        }
        let kept =
            change.write(call.now)?.map(|it| format!("; what stood there: {}", it.display()));
        entered.done.push(format!("{path} is written{}", kept.unwrap_or_default()));
        if host == AgentProgram::Codex && !args.uninstall {
            entered.to_do.push(CODEX_TRUST_HINT.to_owned());
        }
    }
    Ok(entered)
}

/// What is left to a person who uses Codex.
const CODEX_TRUST_HINT: &str = "Codex runs hooks that you trust: say so under /hooks in it. An older one also \
     wants `codex_hooks = true` under `[features]` in its config.toml; for one that tells no end of a \
     session there is `memoird import codex`";

/// Writes the hooks as a plugin. What stands there and is none of ours stays.
fn write_plugin(
    call: &Invocation,
    args: &InitArgs,
    dir: &Path,
    program: &Path,
    entered: &mut HooksOutcome,
) -> Result<(), CommandError> {
    let dir = call.environment.absolute(dir, &call.environment.cwd);
    for (name, text) in install::plugin_files(program) {
        let path = dir.join(name);
        let standing = fs::read_to_string(&path).ok();
        if standing.as_ref() == Some(&text) {
            continue;
        }
        if standing.is_some_and(|it| !it.contains("memoird")) {
            let what = format!("`{}` is another plugin's", path.display());
            return Err(CommandError::new(CommandErrorKind::Usage, what)
                .hint("name a folder of its own: memoird init --claude-code --plugin DIR"));
        }
        if !args.dry_run {
            write_settings(&path, &text)?;
        }
        entered.done.push(format!(
            "{} {} written",
            path.display(),
            if args.dry_run { "would be" } else { "is" }
        ));
    }
    entered
        .to_do
        .push(format!("Claude Code reads the plugin with: claude --plugin-dir {}", dir.display()));
    Ok(())
}

/// Returns the folder that is meant, as an absolute path without links.
fn target_folder(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
) -> Result<PathBuf, CommandError> {
    let here = &call.environment.cwd;
    let named = args.dir.as_deref().or(global.root.as_deref());
    if named.is_none() && (*here == call.environment.home || here.parent().is_none()) {
        let what = format!("`{}` holds more than one agent's memory", here.display());
        return Err(CommandError::new(CommandErrorKind::Usage, what)
            .hint("name a folder: `memoird init ~/agents/NAME`"));
    }
    let path = call.config.resolve_root_path(named.unwrap_or(here), &call.environment).map_err(
        |error| {
            // The folder that is there stays what it is; the general hint would name the new one too.
            let hint = match &error {
                config::ConfigError::Overlap { outer, inner }
                    if !outer.join(ROOT_FILE_NAME).is_file() =>
                {
                    format!("name another folder; {} stays as it is", inner.display())
                }
                _ => return CommandError::from(error),
            };
            CommandError::new(CommandErrorKind::Config, error).hint(hint)
        },
    )?;
    if path.exists() && !path.is_dir() {
        return Err(CommandError::new(
            CommandErrorKind::Usage,
            format!("`{}` is no folder", path.display()),
        ));
    }
    Ok(path)
}

/// Returns what the root is run with, and its `memoird.yaml` when it has to be written.
fn root_settings(
    call: &Invocation,
    args: &InitArgs,
    path: &Path,
    to_do: &mut Vec<String>,
) -> Result<(RootSettings, Option<RootFile>), CommandError> {
    let file = path.join(ROOT_FILE_NAME);
    if file.symlink_metadata().is_ok() {
        return Ok((call.config.open(path, &call.environment)?, None));
    }
    let bare = call.config.resolve(path.to_owned(), &RootFile::default(), &call.environment)?;
    if args.zone.is_none() && bare.zone.source == ZoneSource::Nobody {
        to_do.push(format!(
            "this system tells no time zone; if UTC is wrong, correct `zone` in {ROOT_FILE_NAME}"
        ));
    }
    let mut root_file = RootFile::default();
    root_file.agent_name = Some(args.name.clone().unwrap_or(bare.agent_name));
    root_file.zone = Some(args.zone.unwrap_or(bare.zone.name));
    root_file.memory_dir = Some(memory_dir(path).to_owned());
    root_file.writer = args.take_over.then(|| call.environment.host.clone());
    // What a folder is called may be nothing that the file can hold.
    let root_file = RootFile::parse(&root_file.print(), &file)?;
    let settings = call.config.resolve(path.to_owned(), &root_file, &call.environment)?;
    Ok((settings, Some(root_file)))
}

/// Returns where the logs are: beside `memoird.yaml` only where they lie there already.
fn memory_dir(root: &Path) -> &'static str {
    if has_log(root) && !has_log(&root.join("memory")) { "." } else { "memory" }
}

/// Tells whether a folder holds logs, or an archive of them.
fn has_log(dir: &Path) -> bool {
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|it| it.file_name().into_string().ok())
    };
    let is_log = |it: String| matches!(layout::classify(&it), MemoryFileName::Log(_));
    let archive = dir.join(layout::ARCHIVE_DIR);
    names(dir).any(is_log)
        || names(&archive)
            .filter(|it| layout::is_year(it))
            .any(|year| names(&archive.join(year)).any(is_log))
}

/// Returns what is missing and has to be written.
fn plan_steps(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    vault: &Vault,
    root_file: Option<RootFile>,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> Result<Vec<InitStep>, CommandError> {
    let layout = vault.layout();
    let root = layout.root();
    let mut steps = Vec::new();
    let memory = layout.full(layout.memory_dir());
    if !memory.is_dir() {
        let name = if layout.memory_dir().is_empty() {
            "./".to_owned()
        } else {
            format!("{}/", layout.memory_dir())
        };
        steps.push(InitStep { name, what: InitAction::Folder(memory) });
    }
    match root_file {
        Some(file) => steps.push(InitStep {
            name: ROOT_FILE_NAME.to_owned(),
            what: InitAction::Text(root.join(ROOT_FILE_NAME), file.print()),
        }),
        None if args.name.is_some() || args.zone.is_some() => {
            to_do.push(format!(
                "{ROOT_FILE_NAME} is kept as it is; to change name or zone, edit it"
            ));
            steps.extend(take_over_step(call, args, root, to_do)?);
        }
        None => steps.extend(take_over_step(call, args, root, to_do)?),
    }
    if !layout.private_dir().is_dir() {
        steps.push(InitStep { name: format!("{PRIVATE_DIR}/"), what: InitAction::Private });
    }
    if !args.no_config && !call.config.roots.iter().any(|it| it.path == root) {
        steps.extend(config_step(call, root, to_do)?);
    }
    steps.extend(gitignore_step(root, args, ui, to_do)?);
    if args.service {
        let unit = service::systemd_unit(call, global, Some(root))?;
        match unit.state {
            unit::UnitState::New | unit::UnitState::OtherPaths => {
                steps.push(InitStep { name: unit.path.display().to_string(), what: InitAction::Unit(unit) });
            }
            unit::UnitState::Same => {}
            unit::UnitState::Differs => to_do.push(format!(
                "{} is kept, though memoird would write it otherwise now; to have it written anew: memoird service install --force",
                unit.path.display()
            )),
        }
    }
    Ok(steps)
}

/// Names this host in `memoird.yaml` as the one that summarises the folder.
fn take_over_step(
    call: &Invocation,
    args: &InitArgs,
    root: &Path,
    to_do: &mut Vec<String>,
) -> Result<Option<InitStep>, CommandError> {
    let settings = call.config.open(root, &call.environment)?;
    let host = &call.environment.host;
    if !args.take_over || settings.writer.as_ref() == Some(host) {
        return Ok(None);
    }
    let file = root.join(ROOT_FILE_NAME);
    let text = fs::read_to_string(&file).map_err(|e| {
        CommandError::new(CommandErrorKind::Data, format!("cannot read `{}`: {e}", file.display()))
    })?;
    if let Some(before) = &settings.writer {
        to_do.push(format!(
            "the host {before} stops when it sees {ROOT_FILE_NAME}: let your sync tool finish before you \
             write on both"
        ));
    }
    let text = edit::set_writer(&text, &file, host)?;
    Ok(Some(InitStep { name: ROOT_FILE_NAME.to_owned(), what: InitAction::Text(file, text) }))
}

/// Enters the root in the user's configuration.
fn config_step(
    call: &Invocation,
    root: &Path,
    to_do: &mut Vec<String>,
) -> Result<Option<InitStep>, CommandError> {
    let (file, text) = project_folder::config_text(&call.config, &call.environment)?;
    if let Some(text) = edit::add_root(&text, &file, root, None)? {
        return Ok(Some(InitStep {
            name: file.display().to_string(),
            what: InitAction::Text(file, text),
        }));
    }
    to_do.push(format!(
        "add the folder to `roots` in {} by hand: - path: {}",
        file.display(),
        root.display()
    ));
    Ok(None)
}

/// Keeps the private folder out of a git repository, if a person wants that.
fn gitignore_step(
    root: &Path,
    args: &InitArgs,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> Result<Option<InitStep>, CommandError> {
    let Some(top) = root.ancestors().find(|it| it.join(".git").exists()) else { return Ok(None) };
    let inner: Vec<&Path> = root.ancestors().take_while(|it| it.starts_with(top)).collect();
    let ignored = |dir: &&Path| {
        let text = fs::read_to_string(dir.join(".gitignore")).unwrap_or_default();
        let own = root.strip_prefix(dir).unwrap_or(root).join(PRIVATE_DIR);
        text.lines()
            .map(|it| it.trim().trim_end_matches('/').trim_start_matches("**/"))
            .any(|it| it == PRIVATE_DIR || Path::new(it.trim_start_matches('/')) == own)
    };
    if inner.iter().any(ignored) {
        return Ok(None);
    }
    let line = format!("{PRIVATE_DIR}/");
    let wanted = args.yes
        || (!args.dry_run
            && ui.confirm(format_args!(
                "add `{line}` to .gitignore? it holds a database that git need not keep"
            )) == Some(true));
    if !wanted {
        to_do.push(format!("this is a git repository: add the line {line} to {}/.gitignore (or run `memoird init --yes`)", root.display()));
        return Ok(None);
    }
    let file = root.join(".gitignore");
    let mut text = match fs::read_to_string(&file) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read.map_err(|e| {
            CommandError::new(
                CommandErrorKind::Data,
                format!("cannot read `{}`: {e}", file.display()),
            )
        })?,
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&line);
    text.push('\n');
    Ok(Some(InitStep { name: ".gitignore".to_owned(), what: InitAction::Text(file, text) }))
}

/// Returns whether a unit that is there already names other paths now.
fn unit_paths_changed(steps: &[InitStep]) -> bool {
    let moved = |it: &InitStep| matches!(&it.what, InitAction::Unit(it) if it.state == unit::UnitState::OtherPaths);
    steps.iter().any(moved)
}

fn apply_steps(steps: &[InitStep], vault: &Vault) -> Result<(), CommandError> {
    for step in steps {
        match &step.what {
            InitAction::Folder(path) => fs::create_dir_all(path).map_err(|e| {
                CommandError::new(
                    CommandErrorKind::CannotWrite,
                    format!("cannot make `{}`: {e}", path.display()),
                )
            })?,
            InitAction::Private => vault.create_private_dir()?,
            InitAction::Text(path, text) => write_settings(path, text)?,
            InitAction::Unit(unit) => unit.write()?,
        }
    }
    Ok(())
}

impl FolderContents {
    fn new(inventory: &Inventory) -> Self {
        let foreign = |files: &BTreeMap<Period, SummaryFile>| {
            files.values().filter(|it| it.header.is_none()).count()
        };
        let wisdom = inventory.wisdom.as_deref().map(WisdomFile::parse);
        let entries = || wisdom.iter().flat_map(WisdomFile::entries);
        Self {
            logs: inventory.logs.len(),
            log_bytes: inventory.logs.values().map(|it| it.stamp.size).sum(),
            first_log: inventory.logs.keys().next().map(Stem::date),
            last_log: inventory.logs.keys().next_back().map(Stem::date),
            weekly: inventory.weekly.len(),
            weekly_foreign: foreign(&inventory.weekly),
            monthly: inventory.monthly.len(),
            monthly_foreign: foreign(&inventory.monthly),
            memories: inventory.memories.len(),
            index: inventory.index.is_some(),
            wisdom_entries: entries().count(),
            wisdom_entries_own: entries().filter(|it| !it.is_managed()).count(),
            wisdom: wisdom.is_some(),
            problems: inventory
                .problems
                .iter()
                .map(|it| SkippedFile { path: it.path.clone(), reason: it.reason.clone() })
                .collect(),
        }
    }

    /// Says in lines what stands there, and what becomes of it.
    fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let (Some(first), Some(last)) = (self.first_log, self.last_log) {
            lines.push(format!(
                "{} from {first} to {last}, {}: never changed, only read",
                counted(self.logs, "log", "logs"),
                human_size(self.log_bytes)
            ));
        }
        for (all, foreign, one, many) in [
            (self.weekly, self.weekly_foreign, "weekly file", "weekly files"),
            (self.monthly, self.monthly_foreign, "monthly file", "monthly files"),
        ] {
            if all > foreign {
                lines.push(format!("{} that memoird made", counted(all - foreign, one, many)));
            }
            if foreign > 0 {
                lines.push(format!(
                    "{} of somebody else: read, never written",
                    counted(foreign, one, many)
                ));
            }
        }
        if self.memories > 0 {
            let all = counted(self.memories, "typed memory", "typed memories");
            lines.push(format!("{all}: people's own are read, never written"));
        }
        if self.index {
            lines.push("MEMORY.md: memoird keeps a block in it, all else stays".to_owned());
        }
        if self.wisdom {
            let own = counted(self.wisdom_entries_own, "entry", "entries");
            lines.push(match self.wisdom_entries - self.wisdom_entries_own {
                0 => format!("WISDOM.md with {own} of people's own: kept as written"),
                ours => {
                    format!("WISDOM.md with {ours} entries of memoird's and {own} of people's own")
                }
            });
        }
        if lines.is_empty() {
            lines.push("nothing yet".to_owned());
        }
        lines
    }
}

impl InitReport {
    fn print(&self, ui: &Ui) {
        ui.note(format_args!("{} ({}, {})", self.root.display(), self.agent_name, self.zone));
        let say = |label: &str, lines: &[String]| {
            for (i, line) in lines.iter().enumerate() {
                ui.note(format_args!("  {:<12}{line}", if i == 0 { label } else { "" }));
            }
        };
        say("found", &self.found.describe());
        let mut left: Vec<String> = self
            .found
            .problems
            .iter()
            .take(PROBLEMS_SHOWN_MAX)
            .map(|it| ui::one_line(&format!("{}: {}", it.path, it.reason)))
            .collect();
        if let Some(more) =
            self.found.problems.len().checked_sub(PROBLEMS_SHOWN_MAX).filter(|it| *it > 0)
        {
            left.push(format!("and {more} more"));
        }
        say("left alone", &left);
        say(if self.dry_run { "would write" } else { "wrote" }, &self.wrote);
        say("hooks", &self.hooks);
        say("to do", &self.to_do);
        if self.wrote.is_empty() {
            ui.success("nothing to do: the folder is set up");
        } else if self.dry_run {
            ui.note("nothing was changed");
        } else if self.found.logs == 0 {
            ui.success("ready; write the first entry: `memoird log TEXT`");
        } else {
            ui.success(
                "ready; `memoird compact --dry-run` shows what is due, `memoird compact` does it",
            );
        }
    }
}

fn counted(n: usize, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

fn human_size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KiB", bytes / 1024),
        _ => format!("{} MiB", bytes / 1_048_576),
    }
}
