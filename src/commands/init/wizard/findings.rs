//! What the wizard finds: the place where it runs, agent programs with their sessions and hooks, the service.

use std::path::{Path, PathBuf};

use super::super::{
    InitArgs, folder,
    hooks::{self, HookState},
    notes_folder,
};
use crate::{
    commands::{
        GlobalArgs,
        hooks::{programs::AgentProgram, project_folder},
        import::{self, ImportTarget},
        service::{self, ManagedService, unit::UnitState},
        ui::Ui,
    },
    config::{Config, root::ROOT_FILE_NAME, settings::EngineKind},
    operations::{error::CommandResult, workspace::Invocation},
};

/// Everything that the plan depends on.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) home: PathBuf,
    /// The user's configuration, which need not exist.
    pub(super) config_file: PathBuf,
    pub(super) place: Place,
    /// The agent programs that were used here.
    pub(super) agents: Vec<FoundAgent>,
    /// The configured memory folders.
    pub(super) roots: Vec<ConfiguredFolder>,
    /// The one of them that serves what belongs to no project.
    pub(super) general: Option<PathBuf>,
    /// Where projects get memory folders of their own, if that is configured.
    pub(super) projects_dir: Option<PathBuf>,
    pub(super) service: FoundService,
    /// Whether compaction costs nothing.
    pub(super) is_free: bool,
}

/// Where the wizard was called.
#[derive(Debug)]
pub(super) enum Place {
    /// In the home folder or in `/`, neither of which becomes a memory folder.
    Home,
    /// In a folder that is or becomes a memory folder.
    Folder {
        path: PathBuf,
        is_set_up: bool,
        has_logs: bool,
        /// The main folder of the git repository around it.
        repository: Option<PathBuf>,
    },
}

#[derive(Debug)]
pub(super) struct ConfiguredFolder {
    pub(super) path: PathBuf,
    /// Whether it gets the sessions of one project only.
    pub(super) has_project: bool,
    /// Whether it has logs that were never compacted.
    pub(super) is_untouched: bool,
}

#[derive(Debug)]
pub(super) struct FoundAgent {
    pub(super) program: AgentProgram,
    /// The folder in which it keeps logs of its own.
    pub(super) workspace: Option<Workspace>,
    /// Its sessions of the last 30 days.
    pub(super) sessions: usize,
    /// Those that are imported already.
    pub(super) imported: usize,
    /// The others.
    pub(super) new: Vec<FoundSession>,
    pub(super) hooks: HookState,
}

/// A folder in which an agent keeps logs.
#[derive(Debug)]
pub(super) struct Workspace {
    pub(super) path: PathBuf,
    pub(super) logs: usize,
}

/// A session that is not imported yet.
#[derive(Clone, Debug)]
pub(super) struct FoundSession {
    /// Its working folder, if the transcript names one.
    pub(super) folder: Option<PathBuf>,
    /// The git repository that the folder is in.
    pub(super) project: Option<PathBuf>,
    /// Where the present configuration puts it.
    pub(super) target: Option<ImportTarget>,
}

#[derive(Debug)]
pub(super) struct FoundService {
    pub(super) file: PathBuf,
    pub(super) state: UnitState,
    /// Why no service manager answers.
    pub(super) why_no_manager: Option<String>,
}

/// Returns whether the working folder can be no memory folder.
pub(super) fn is_home(call: &Invocation) -> bool {
    let here = &call.environment.cwd;
    *here == call.environment.home || here.parent().is_none()
}

/// Looks around; changes nothing.
pub(super) fn read(call: &Invocation, global: &GlobalArgs, ui: &Ui) -> CommandResult<Findings> {
    let around = &call.environment;
    let place = if is_home(call) {
        Place::Home
    } else {
        let path = folder::target_folder(call, global, &InitArgs::default())?;
        let is_set_up = path.join(ROOT_FILE_NAME).is_file();
        let has_logs = holds_logs(call, &path) || notes_folder::holds_notes(&path);
        Place::Folder { repository: project_of(call, &path), path, is_set_up, has_logs }
    };
    let mut agents = Vec::new();
    for program in AgentProgram::ALL {
        if program.folder(around).is_dir() {
            agents.push(read_agent(call, global, program, ui)?);
        }
    }
    let folder = |it: &crate::config::root_selection::ConfiguredRoot| ConfiguredFolder {
        path: it.path.clone(),
        has_project: it.project.is_some(),
        is_untouched: is_untouched(call, &it.path),
    };
    let service = ManagedService::new(call, global)?;
    Ok(Findings {
        home: around.home.clone(),
        config_file: project_folder::config_text(&call.config, around)?.0,
        place,
        agents,
        roots: call.config.roots.iter().map(folder).collect(),
        general: match call.config.general_roots().as_slice() {
            [only] => Some(only.to_path_buf()),
            _ => None,
        },
        projects_dir: call.config.projects_dir(around),
        service: FoundService {
            file: service.path().to_owned(),
            state: service.state(),
            why_no_manager: service::why_no_manager(),
        },
        is_free: call.config.settings.engine == EngineKind::Extractive,
    })
}

fn read_agent(
    call: &Invocation,
    global: &GlobalArgs,
    program: AgentProgram,
    ui: &Ui,
) -> CommandResult<FoundAgent> {
    let found = match hooks::session_source(program) {
        // Sessions that cannot be read keep nothing else from being set up.
        Some(source) => import::recent_sessions(call, global, source, ui).unwrap_or_else(|error| {
            ui.warn(format!("{}: {error}", program.display_name()));
            import::RecentSessions::default()
        }),
        None => import::RecentSessions::default(),
    };
    let new = found.new.into_iter().map(|it| {
        let project = it.folder.as_deref().and_then(|it| project_of(call, it));
        FoundSession { folder: it.folder, project, target: it.target }
    });
    let logs = |path: &Path| folder::log_count(path) + folder::log_count(&path.join("memory"));
    let workspace = program.workspace(&call.environment).filter(|it| it.is_dir()).map(|it| {
        let path = it.canonicalize().unwrap_or(it);
        Workspace { logs: logs(&path), path }
    });
    Ok(FoundAgent {
        program,
        workspace,
        sessions: found.total,
        imported: found.imported,
        new: new.collect(),
        hooks: hooks::state(call, program)?,
    })
}

/// Returns the project of a folder. The home folder may be a repository of settings, but is no project.
fn project_of(call: &Invocation, folder: &Path) -> Option<PathBuf> {
    Config::project_of(folder).filter(|it| *it != call.environment.home)
}

/// Returns whether a folder has logs, beside `memoird.yaml` or in its folder of logs.
fn holds_logs(call: &Invocation, path: &Path) -> bool {
    let memory = call.config.open(path, &call.environment).map(|it| it.memory_dir);
    folder::has_log(path) || folder::has_log(&path.join(memory.unwrap_or_else(|_| "memory".into())))
}

/// Returns whether a folder has logs that were never compacted, and may be compacted here.
pub(super) fn is_untouched(call: &Invocation, path: &Path) -> bool {
    let Ok(root) = call.open_root(path) else { return false };
    !root.vault.layout().database().exists()
        && holds_logs(call, path)
        && root.settings.is_writer(&call.environment.host)
}
