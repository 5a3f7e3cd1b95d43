//! Decides what the wizard proposes. Pure.
//!
//! # Rules
//!
//! - A folder that the user is in is set up as `memoird init` always did. One in a git repository that holds no logs
//!   gets the sessions of this repository only; any other one gets all that have no folder of their own, if no folder
//!   does that yet, and otherwise only those in it.
//! - In the home folder the folders in which agents keep logs of their own are adopted, each git repository gets its own memory folder below [`PROJECTS_DIR`], and one folder there
//!   takes the rest. The last two are not proposed if the user has configured folders and works with an agent in them
//!   already; a folder that no agent was set up for, such as a journal, gets no sessions of projects.
//! - Nothing is proposed for a program that is not there, and nothing that is there already.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    super::hooks::HookState,
    findings::{Findings, FoundAgent, FoundSession, Place},
};
use crate::{
    commands::{hooks::programs::AgentProgram, import::ImportTarget, service::unit::UnitState},
    operations::format::counted,
};

/// The folder of memory folders in the home folder.
const PROJECTS_DIR: &str = "memories";
/// The memory folder there for what belongs to no project.
const GENERAL_NAME: &str = "general";

/// Returns where the memory folder for what belongs to no project is created.
pub(in crate::commands::init) fn general_folder(
    projects_dir: Option<PathBuf>,
    home: &Path,
) -> PathBuf {
    projects_dir.unwrap_or_else(|| home.join(PROJECTS_DIR)).join(GENERAL_NAME)
}

/// What to do, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SetupPlan {
    /// The folder in which projects get memory folders of their own.
    pub(super) projects_dir: Option<PathBuf>,
    /// The memory folders to create or adopt.
    pub(super) folders: Vec<PlannedFolder>,
    /// The programs that get hooks.
    pub(super) hooks: Vec<AgentProgram>,
    /// The programs whose sessions are imported, and their number.
    pub(super) imports: Vec<(AgentProgram, usize)>,
    /// How many sessions each memory folder gets.
    pub(super) targets: BTreeMap<ImportTarget, usize>,
    /// Whether the service is installed, or updated for new folders.
    pub(super) service: bool,
    /// Whether memories are made of logs that were never compacted.
    pub(super) compaction: bool,
    /// How many sessions no memory folder takes.
    pub(super) homeless: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFolder {
    pub(super) path: PathBuf,
    /// The project whose sessions it gets; without one it gets those of no other folder.
    pub(super) project: Option<PathBuf>,
}

impl SetupPlan {
    pub(super) fn new(found: &Findings) -> Self {
        let mut plan = Self::default();
        match &found.place {
            Place::Folder { path, is_set_up, has_logs, repository } => {
                let is_new = !is_set_up && !has_logs;
                // A second folder for what belongs to no project would keep both from it.
                let has_general = found.roots.iter().any(|it| !it.has_project && it.path != *path);
                let project = repository.clone().filter(|_| is_new);
                let project = project.or_else(|| has_general.then(|| path.clone()));
                plan.folders.push(PlannedFolder { path: path.clone(), project });
            }
            Place::Home => plan.add_folders_of_home(found),
        }
        for agent in &found.agents {
            if matches!(agent.hooks, HookState::Missing(_)) && plan.can_set_up(found, agent) {
                plan.hooks.push(agent.program);
            }
            let targets: Vec<_> =
                agent.new.iter().filter_map(|it| plan.target(found, it)).collect();
            plan.homeless += agent.new.len() - targets.len();
            if !targets.is_empty() {
                plan.imports.push((agent.program, targets.len()));
            }
            for target in targets {
                *plan.targets.entry(target).or_default() += 1;
            }
        }
        plan.compaction = found.is_free
            && (!plan.imports.is_empty() || found.roots.iter().any(|it| it.is_untouched));
        plan.service = found.service.why_no_manager.is_none()
            && match found.service.state {
                UnitState::New | UnitState::OtherPaths => true,
                UnitState::Same => plan.adds_paths(found),
                UnitState::Differs => false,
            };
        plan
    }

    fn add_folders_of_home(&mut self, found: &Findings) {
        // An agent's own folder gets no sessions of others.
        let own = found.agents.iter().filter_map(|it| Some(&it.workspace.as_ref()?.path));
        let own = own.filter(|path| found.roots.iter().all(|it| it.path != **path));
        self.folders
            .extend(own.map(|it| PlannedFolder { path: it.clone(), project: Some(it.clone()) }));
        let has_roots = !found.roots.is_empty();
        let dir = found.home.join(PROJECTS_DIR);
        let agents = &found.agents;
        let has_worked = |it: &FoundAgent| it.imported > 0 || it.hooks == HookState::Installed;
        let is_new = !has_roots || found.general.is_some() && !agents.iter().any(has_worked);
        if is_new && found.projects_dir.is_none() && !agents.is_empty() {
            self.projects_dir = Some(dir.clone());
        }
        let has_projects = self.projects_dir.is_some() || found.projects_dir.is_some();
        let new = || agents.iter().flat_map(|it| &it.new);
        let is_rest = |it: &&FoundSession| it.target.is_none() && it.project.is_none();
        let rest = new().filter(is_rest).count();
        let is_needed =
            if has_roots { has_projects && rest > 0 } else { rest > 0 || new().next().is_none() };
        if is_needed && found.roots.iter().all(|it| it.has_project) {
            let path = general_folder(found.projects_dir.clone(), &found.home);
            self.folders.push(PlannedFolder { path, project: None });
        }
    }

    /// Returns whether a program can be set up: one that works in a folder of its own needs it to be a memory folder.
    fn can_set_up(&self, found: &Findings, agent: &FoundAgent) -> bool {
        let is_ours = |path: &PathBuf| {
            self.folders.iter().any(|it| it.path == *path)
                || found.roots.iter().any(|it| it.path == *path)
        };
        match &agent.workspace {
            Some(workspace) => is_ours(&workspace.path),
            None => agent.program != AgentProgram::OpenClaw,
        }
    }

    /// Returns the memory folder that gets a session by this plan.
    fn target(&self, found: &Findings, session: &FoundSession) -> Option<ImportTarget> {
        let is_inside = |dir: &Path| session.folder.as_ref().is_some_and(|it| it.starts_with(dir));
        let is_of =
            |project: &PathBuf| is_inside(project) || session.project.as_ref() == Some(project);
        let is_its = |it: &&PlannedFolder| it.project.as_ref().is_some_and(is_of);
        if let Some(own) = self.folders.iter().find(is_its) {
            return Some(ImportTarget::Folder(own.path.clone()));
        }
        // A general folder loses the projects to their own ones.
        let is_general = |it: &&ImportTarget| match it {
            ImportTarget::Folder(path) => found.general.as_ref() == Some(path) && !is_inside(path),
            ImportTarget::OfProject(_) => false,
        };
        if let Some(target) = session.target.as_ref().filter(|it| !is_general(it)) {
            return Some(target.clone());
        }
        let projects_dir = self.projects_dir.as_ref().or(found.projects_dir.as_ref());
        let has_own = |dir: &&PathBuf| {
            session.project.as_ref().is_some_and(|project| !project.starts_with(dir))
        };
        if let Some(dir) = projects_dir.filter(has_own) {
            return Some(ImportTarget::OfProject(dir.clone()));
        }
        let takes_rest = match projects_dir {
            Some(_) => session.project.is_none(),
            None => found.roots.is_empty(),
        };
        let takes =
            |it: &&PlannedFolder| is_inside(&it.path) || (it.project.is_none() && takes_rest);
        session.target.clone().or_else(|| {
            let folder = self.folders.iter().find(takes)?;
            Some(ImportTarget::Folder(folder.path.clone()))
        })
    }

    /// Returns whether the service has to see folders that it does not see yet.
    fn adds_paths(&self, found: &Findings) -> bool {
        let is_known = |it: &PlannedFolder| found.roots.iter().any(|root| root.path == it.path);
        self.projects_dir.is_some() || !self.folders.iter().all(is_known)
    }

    /// Returns how many sessions are imported.
    pub(super) fn session_count(&self) -> usize {
        self.imports.iter().map(|it| it.1).sum()
    }
}

impl FoundAgent {
    /// Describes the program's data.
    pub(super) fn describe(&self) -> String {
        let data = match &self.workspace {
            Some(workspace) => {
                let logs = counted(workspace.logs, "log", "logs");
                format!("{logs} in {}", workspace.path.display())
            }
            None => {
                format!("{} in the last 30 days", counted(self.sessions, "session", "sessions"))
            }
        };
        let imported = match self.imported {
            0 => String::new(),
            imported => format!(", {imported} imported already"),
        };
        let parts = self.program.parts();
        let state = match &self.hooks {
            HookState::Installed => format!("; has {parts}"),
            HookState::Missing(_) => String::new(),
            HookState::Unusable(why) => format!("; cannot get {parts}: {why}"),
        };
        format!("{data}{imported}{state}")
    }
}

#[cfg(test)]
mod tests {
    use super::{super::findings::*, *};

    fn home() -> Findings {
        Findings {
            home: "/home/ada".into(),
            config_file: "/home/ada/.config/memoird/config.yaml".into(),
            place: Place::Home,
            agents: Vec::new(),
            roots: Vec::new(),
            general: None,
            projects_dir: None,
            service: FoundService {
                file: "/home/ada/memoird.service".into(),
                state: UnitState::New,
                why_no_manager: None,
            },
            is_free: true,
        }
    }

    /// Returns an agent with a session in each of these folders; those below `/src` are repositories.
    fn agent(folders: &[&str]) -> FoundAgent {
        let session = |it: &&str| FoundSession {
            folder: Some(it.into()),
            project: it.starts_with("/src").then(|| it.into()),
            target: None,
        };
        FoundAgent {
            program: AgentProgram::Codex,
            workspace: None,
            sessions: folders.len(),
            imported: 0,
            new: folders.iter().map(session).collect(),
            hooks: HookState::Missing(vec!["/home/ada/.codex/hooks.json".into()]),
        }
    }

    fn root(path: &str, has_project: bool) -> ConfiguredFolder {
        ConfiguredFolder { path: path.into(), has_project, is_untouched: false }
    }

    fn folder(path: &str, has_logs: bool, repository: Option<&str>) -> Place {
        let repository = repository.map(Into::into);
        Place::Folder { path: path.into(), is_set_up: false, has_logs, repository }
    }

    /// Checks the folder, its project, the folder of projects, and how many sessions are imported and left.
    #[track_caller]
    fn check(
        found: &Findings,
        (path, project, projects_dir): (Option<&str>, Option<&str>, Option<&str>),
        (imported, homeless): (usize, usize),
    ) {
        let plan = SetupPlan::new(found);
        assert!(plan.folders.len() <= 1, "{plan:?}");
        let planned = plan.folders.first();
        assert_eq!(planned.map(|it| it.path.as_path()), path.map(Path::new));
        let planned_project = planned.and_then(|it| it.project.as_deref());
        assert_eq!(planned_project, project.map(Path::new));
        assert_eq!(plan.projects_dir.as_deref(), projects_dir.map(Path::new));
        assert_eq!((plan.session_count(), plan.homeless), (imported, homeless));
    }

    const GENERAL: Option<&str> = Some("/home/ada/memories/general");
    const PROJECTS: Option<&str> = Some("/home/ada/memories");

    #[test]
    fn in_the_home_folder_projects_get_folders_and_one_takes_the_rest() {
        let mut found = home();
        check(&found, (GENERAL, None, None), (0, 0));
        found.agents = vec![agent(&[])];
        check(&found, (GENERAL, None, PROJECTS), (0, 0));
        found.agents = vec![agent(&["/src/a", "/src/b"])];
        check(&found, (None, None, PROJECTS), (2, 0));
        found.agents = vec![agent(&["/src/a", "/tmp"])];
        check(&found, (GENERAL, None, PROJECTS), (2, 0));
        // An interrupted call is continued.
        found.projects_dir = Some("/m".into());
        found.roots = vec![root("/m/a", true)];
        check(&found, (Some("/m/general"), None, None), (2, 0));
    }

    #[test]
    fn an_agents_own_folder_is_adopted_for_this_agent_only() {
        let mut found = home();
        let path = PathBuf::from("/home/ada/.agent/workspace");
        let workspace = Some(Workspace { path: path.clone(), logs: 38 });
        found.agents = vec![FoundAgent { workspace, ..agent(&["/tmp"]) }];
        let plan = SetupPlan::new(&found);
        let own = PlannedFolder { path: path.clone(), project: Some(path.clone()) };
        let general = PlannedFolder { path: GENERAL.unwrap().into(), project: None };
        assert_eq!(plan.folders, [own, general]);
        assert_eq!(plan.homeless, 0);
        found.roots = vec![root(path.to_str().unwrap(), true), root(GENERAL.unwrap(), false)];
        assert!(SetupPlan::new(&found).folders.is_empty());
    }

    #[test]
    fn folders_that_the_user_configured_are_enough() {
        let mut found = home();
        found.agents = vec![agent(&[])];
        found.roots = vec![root("/lexicon", false)];
        check(&found, (None, None, None), (0, 0));
    }

    #[test]
    fn a_journal_gets_no_sessions_of_projects() {
        let mut found = home();
        let mut agent = agent(&["/src/a", "/tmp", "/journal"]);
        for session in &mut agent.new {
            session.target = Some(ImportTarget::Folder("/journal".into()));
        }
        found.agents = vec![agent];
        found.roots = vec![root("/journal", false)];
        found.general = Some("/journal".into());
        let plan = SetupPlan::new(&found);
        let of_project = ImportTarget::OfProject(PROJECTS.unwrap().into());
        let journal = ImportTarget::Folder("/journal".into());
        assert_eq!(plan.targets, BTreeMap::from([(of_project, 1), (journal.clone(), 2)]));
        check(&found, (None, None, PROJECTS), (3, 0));
        // An agent was set up for it.
        found.agents[0].hooks = HookState::Installed;
        assert_eq!(SetupPlan::new(&found).targets, BTreeMap::from([(journal, 3)]));
        check(&found, (None, None, None), (3, 0));
    }

    #[test]
    fn a_repository_without_logs_gets_its_own_sessions_and_a_folder_with_logs_all() {
        let mut found = home();
        found.agents = vec![agent(&["/src/a", "/src/a/deep", "/src/b", "/tmp"])];
        found.place = folder("/src/a", false, Some("/src/a"));
        check(&found, (Some("/src/a"), Some("/src/a"), None), (2, 2));
        found.place = folder("/src/a", true, Some("/src/a"));
        check(&found, (Some("/src/a"), None, None), (4, 0));
        // The one that is there keeps the rest.
        found.roots = vec![root("/lexicon", false)];
        check(&found, (Some("/src/a"), Some("/src/a"), None), (2, 2));
        found.place = folder("/notes", true, None);
        check(&found, (Some("/notes"), Some("/notes"), None), (0, 4));
        found.roots = vec![root("/m/a", true)];
        check(&found, (Some("/notes"), None, None), (0, 4));
    }

    #[test]
    fn the_service_is_proposed_where_a_manager_answers_and_its_file_was_not_edited() {
        let mut found = home();
        let proposes = |found: &Findings| SetupPlan::new(found).service;
        assert!(proposes(&found));
        found.service.state = UnitState::Differs;
        assert!(!proposes(&found));
        // New folders have to be visible to it.
        found.service.state = UnitState::Same;
        assert!(proposes(&found));
        found.roots = vec![root("/lexicon", false)];
        assert!(!proposes(&found));
        found.service.state = UnitState::New;
        found.service.why_no_manager = Some("systemctl: not found".to_owned());
        assert!(!proposes(&found));
    }
}
