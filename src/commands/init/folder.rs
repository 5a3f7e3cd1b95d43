//! Sets up one memory folder: finds what it holds, and writes only what is missing.

use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
};

use super::{
    InitArgs, notes_folder,
    report::{FolderContents, InitReport},
    steps::{self, StepPlanner},
    wizard::plan,
};
use crate::{
    commands::{
        GlobalArgs,
        hooks::{openclaw, project_folder},
        service::{self, manager},
        ui::Ui,
    },
    config::{
        self, edit,
        root::{ROOT_FILE_NAME, RootFile, RootSettings, ZoneSource},
    },
    operations::{
        error::{CommandError, CommandResult},
        review::queue::waiting_count,
        workspace::Invocation,
    },
    privacy::PrivacyRules,
    store::fs::{
        layout::{self, Layout, MemoryFileName},
        vault::Vault,
    },
};

/// What has to become of `memoird.yaml`.
pub(super) enum RootFileText {
    /// There is none yet; this is its text.
    New(String),
    /// It exists; this is its text, which may have been edited.
    Present(String),
}

/// Sets up the folder at `path`, an absolute path without links; in a dry run only says how. Sentences in `to_do`
/// come first among what is left to do.
pub(super) fn set_up(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    path: PathBuf,
    mut to_do: Vec<String>,
    ui: &Ui,
) -> CommandResult<InitReport> {
    let (settings, root_file) = root_settings(call, args, &path, ui, &mut to_do)?;
    let vault = Vault::for_root(&settings)?;
    let inventory = vault.scan(&HashMap::new())?.inventory;
    let layout = vault.layout();
    if !layout.memory_dir().is_empty() && has_log(layout.root()) {
        to_do.push(format!(
            "logs next to {ROOT_FILE_NAME} are not read; move them to {}/",
            layout.memory_dir()
        ));
    }
    if inventory.logs.is_empty() {
        to_do.extend(misnamed_note(layout.root()).map(|(name, proposed)| {
            format!("{name} is not the name of a log: rename it to {proposed}, and others like it")
        }));
    }
    let steps =
        StepPlanner { call, global, args, layout, ui, to_do: &mut to_do }.plan(root_file)?;
    let wrote = steps.iter().map(|it| it.name.clone()).collect();
    if !args.dry_run {
        steps::apply_steps(&steps, &vault)?;
        if args.service
            && let Err(why) = manager::start(steps::unit_paths_changed(&steps))
        {
            let start = service::START_COMMAND;
            to_do.push(format!("the service was not started ({why}); start it with: {start}"));
        }
        if args.service && manager::is_linger_enabled() == Some(false) {
            to_do.push(service::LINGER_HINT.to_owned());
        }
    }
    // Before the first run nothing was read that could wait.
    let has_run = layout.database().exists();
    let waiting = if has_run { waiting_count(&call.open_root(&path)?) } else { Ok(0) };
    // The folder is set up, whatever can be found out about its queue.
    let to_review = waiting.unwrap_or_else(|error| {
        ui.warn(format!("cannot look for what waits for review: {error}"));
        0
    });
    let memory_dir = layout.memory_dir();
    let general = args.project.as_ref().filter(|it| **it == path && !args.no_config);
    Ok(InitReport {
        general: general.and_then(|_| kept_general_root(call, &path)),
        agent_name: PrivacyRules::mask_message(&settings.agent_name),
        zone: settings.zone.name.to_string(),
        memory_dir: if memory_dir.is_empty() { "." } else { memory_dir }.to_owned(),
        root: path,
        dry_run: args.dry_run,
        today: call.now.with_timezone(&settings.zone.name.0).date_naive(),
        found: FolderContents::new(&inventory, to_review),
        wrote,
        hooks: Vec::new(),
        hooks_changed: false,
        to_do,
    })
}

/// Returns whether another folder could serve what belongs to no project. A second one would keep both from it, so a new
/// one gets only the sessions in it.
pub(super) fn has_other_general_root(call: &Invocation, path: &Path) -> bool {
    call.config.general_roots().iter().any(|it| *it != path)
}

/// Returns the folder that goes on serving what belongs to no project after this one is added.
fn kept_general_root(call: &Invocation, path: &Path) -> Option<PathBuf> {
    let is_new = call.config.roots.iter().all(|it| it.path != path);
    match call.config.general_roots().as_slice() {
        [only] if is_new => Some(only.to_path_buf()),
        _ => None,
    }
}

/// Says how a running daemon learns of a folder that was added to the configuration.
pub(super) fn reload_hint(call: &Invocation, args: &InitArgs, path: &Path) -> Option<String> {
    let is_configured = call.config.roots.iter().any(|it| it.path == path);
    let pid = project_folder::daemon_pid(&call.config)
        .filter(|_| !args.service && !args.no_config && !is_configured)?;
    Some(format!("a daemon is running; make it reload its configuration: kill -HUP {pid}"))
}

/// Returns the folder to set up, as an absolute path without links.
pub(super) fn target_folder(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
) -> CommandResult<PathBuf> {
    let here = &call.environment.cwd;
    if let (Some(dir), Some(Some(workspace))) = (&args.dir, &args.openclaw)
        && call.environment.absolute(dir, here) != call.environment.absolute(workspace, here)
    {
        let what = format!("`{}` and `{}` are two folders", dir.display(), workspace.display());
        return Err(CommandError::usage(what).hint("memoird init --openclaw WORKSPACE"));
    }
    let workspace = match &args.openclaw {
        Some(Some(named)) => Some(named.clone()),
        Some(None) if args.dir.is_none() && global.root.is_none() => {
            Some(openclaw::workspace(&call.environment)?)
        }
        _ => None,
    };
    let is_home = *here == call.environment.home || here.parent().is_none();
    // The sessions of a program need a folder.
    let needs_folder = is_home && !args.agents.0.is_empty() && !args.uninstall;
    let general = needs_folder.then(|| general_folder(call)).flatten();
    let named = args.dir.as_deref().or(workspace.as_deref()).or(global.root.as_deref());
    let named = named.or(general.as_deref());
    let absolute = call.environment.absolute(named.unwrap_or(here), here);
    let absolute: PathBuf = absolute.components().collect();
    let is_set_up = absolute.join(ROOT_FILE_NAME).is_file();
    let has_logs = || has_log(&absolute) || has_log(&absolute.join("memory"));
    if (named.is_none() && is_home) || (is_too_wide(&absolute, call) && !is_set_up && !has_logs()) {
        let what = format!("cannot use `{}` as a memory folder", absolute.display());
        let why = "everything below it would belong to the folder";
        return Err(CommandError::usage(format!("{what}: {why}"))
            .hint("name a folder: `memoird init ~/agents/NAME`"));
    }
    if let Some(file) = absolute.ancestors().find(|it| it.exists()).filter(|it| !it.is_dir()) {
        let folder = file.parent().filter(|it| has_log(it) || it.join(ROOT_FILE_NAME).is_file());
        let hint = match folder {
            Some(folder) => format!("memoird init {}", folder.display()),
            None => "name a folder: `memoird init ~/agents/NAME`".to_owned(),
        };
        let what = format!("`{}` is a file, not a folder", file.display());
        return Err(CommandError::usage(what).hint(hint));
    }
    let path = call.config.resolve_root_path(named.unwrap_or(here), &call.environment).map_err(
        |error| {
            // The general hint would suggest removing the existing folder from the configuration.
            let hint = match &error {
                config::ConfigError::Overlap { outer, inner, .. }
                    if !outer.join(ROOT_FILE_NAME).is_file() =>
                {
                    format!("name another folder; {} was not changed", inner.display())
                }
                _ => return CommandError::from(error),
            };
            CommandError::config(error).hint(hint)
        },
    )?;
    Ok(path)
}

/// Returns whether a folder is the home folder or the root of the file system.
fn is_too_wide(path: &Path, call: &Invocation) -> bool {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let home = &call.environment.home;
    path.parent().is_none() || path == home.canonicalize().unwrap_or_else(|_| home.clone())
}

/// Returns the memory folder for what belongs to no project, which need not exist yet; `None` if there are several.
fn general_folder(call: &Invocation) -> Option<PathBuf> {
    let around = &call.environment;
    let mut present = call.config.roots.iter().filter(|it| it.project.is_none());
    match (present.next(), present.next()) {
        (Some(only), None) => Some(only.path.clone()),
        (Some(_), Some(_)) => None,
        (None, _) => Some(plan::general_folder(call.config.projects_dir(around), &around.home)),
    }
}

/// Returns the settings of the root, and the text of its `memoird.yaml`.
fn root_settings(
    call: &Invocation,
    args: &InitArgs,
    path: &Path,
    ui: &Ui,
    to_do: &mut Vec<String>,
) -> CommandResult<(RootSettings, RootFileText)> {
    let file = path.join(ROOT_FILE_NAME);
    if file.symlink_metadata().is_ok() {
        let settings = call.config.open(path, &call.environment)?;
        let mut text = fs::read_to_string(&file).map_err(|e| steps::read_error(&file, &e))?;
        if has_log(&path.join(&settings.memory_dir)) {
            return Ok((settings, RootFileText::Present(text)));
        }
        let Some(folder) = notes_folder::agreed(args, path, ui, to_do) else {
            return Ok((settings, RootFileText::Present(text)));
        };
        text = edit::set_memory_dir(&text, &file, &folder)?;
        let root_file = RootFile::parse(&text, &file)?;
        let settings = call.config.resolve(path.to_owned(), &root_file, &call.environment)?;
        return Ok((settings, RootFileText::Present(text)));
    }
    let bare = call.config.resolve(path.to_owned(), &RootFile::default(), &call.environment)?;
    if args.zone.is_none() && bare.zone.source == ZoneSource::Nobody {
        to_do.push(format!(
            "the system's time zone is unknown, so UTC is used; to change it, edit `zone` in {ROOT_FILE_NAME}"
        ));
    }
    let mut root_file = RootFile::default();
    root_file.agent_name = Some(args.name.clone().unwrap_or(bare.agent_name));
    root_file.zone = Some(args.zone.unwrap_or(bare.zone.name));
    let memory_dir = memory_dir(args, path, ui, to_do);
    root_file.curated =
        steps::agreed_notes(args, &Layout::new(path.to_owned(), &memory_dir), ui, to_do);
    root_file.memory_dir = Some(memory_dir);
    root_file.writer = args.take_over.then(|| call.environment.host.clone());
    // The name of the folder may be invalid as a name of an agent.
    let text = root_file.print();
    let root_file = RootFile::parse(&text, &file)?;
    let settings = call.config.resolve(path.to_owned(), &root_file, &call.environment)?;
    Ok((settings, RootFileText::New(text)))
}

/// Returns the folder of the logs: next to `memoird.yaml` only if logs are there already, and below it if dated
/// notes are there and the user agrees.
fn memory_dir(args: &InitArgs, root: &Path, ui: &Ui, to_do: &mut Vec<String>) -> String {
    if has_log(&root.join("memory")) {
        return "memory".to_owned();
    }
    if has_log(root) {
        return ".".to_owned();
    }
    notes_folder::agreed(args, root, ui, to_do).unwrap_or_else(|| "memory".to_owned())
}

/// Returns whether a folder contains logs or archived logs.
pub(super) fn has_log(dir: &Path) -> bool {
    log_count(dir) > 0
}

/// Returns the first file of a folder that is named after a day, but not as a log is, and the name it should have.
fn misnamed_note(dir: &Path) -> Option<(String, String)> {
    let names = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = names.filter_map(|it| it.file_name().into_string().ok());
    names.filter_map(|it| layout::proposed_log_name(&it).map(|proposed| (it, proposed))).min()
}

/// Counts the logs and archived logs of a folder.
pub(super) fn log_count(dir: &Path) -> usize {
    let names = |dir: &Path| {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.filter_map(|it| it.file_name().into_string().ok())
    };
    let is_log = |it: &String| matches!(layout::classify(it), MemoryFileName::Log(_));
    let archive = dir.join(layout::ARCHIVE_DIR);
    let years = names(&archive).filter(|it| layout::is_year(it));
    let archived: usize = years.map(|it| names(&archive.join(it)).filter(is_log).count()).sum();
    names(dir).filter(is_log).count() + archived
}
