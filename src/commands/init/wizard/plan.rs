//! Decides what the wizard proposes. Pure.
//!
//! # Rules
//!
//! - A folder that the user is in is set up as `memoird init` always did. One in a git repository that holds no logs
//!   gets the sessions of this repository only; any other one gets all that have no folder of their own.
//! - In the home folder each git repository gets its own memory folder below [`PROJECTS_DIR`], and one folder there
//!   takes the rest. Nothing of this is proposed if the user has configured folders already.
//! - Nothing is proposed for a program that is not there, and nothing that is there already.

use std::path::{Path, PathBuf};

use super::{
    super::hooks::HookState,
    findings::{Findings, FoundAgent, HomelessSession, Place},
};
use crate::commands::{hooks::install::AgentProgram, service::unit::UnitState};

/// The folder of memory folders in the home folder.
const PROJECTS_DIR: &str = "memories";
/// The memory folder there for what belongs to no project.
const GENERAL_NAME: &str = "general";

/// What to do, in this order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SetupPlan {
    /// The folder in which projects get memory folders of their own.
    pub(super) projects_dir: Option<PathBuf>,
    /// The memory folder to create or adopt.
    pub(super) folder: Option<PlannedFolder>,
    /// The programs that get hooks.
    pub(super) hooks: Vec<AgentProgram>,
    /// The programs whose sessions are imported, and their number.
    pub(super) imports: Vec<(AgentProgram, usize)>,
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
    /// Whether it has a `memoird.yaml`.
    pub(super) is_set_up: bool,
}

impl SetupPlan {
    pub(super) fn new(found: &Findings) -> Self {
        let mut plan = Self::default();
        match &found.place {
            Place::Folder { path, is_set_up, has_logs, repository } => {
                let is_new = !is_set_up && !has_logs;
                plan.folder = Some(PlannedFolder {
                    path: path.clone(),
                    project: repository.clone().filter(|_| is_new),
                    is_set_up: *is_set_up,
                });
            }
            Place::Home => plan.add_folders_of_home(found),
        }
        for agent in &found.agents {
            if matches!(agent.hooks, HookState::Missing(_)) {
                plan.hooks.push(agent.program);
            }
            let taken = agent.homeless.iter().filter(|it| plan.takes(found, it)).count();
            plan.homeless += agent.homeless.len() - taken;
            if agent.new + taken > 0 {
                plan.imports.push((agent.program, agent.new + taken));
            }
        }
        plan.compaction = found.is_free
            && (!plan.imports.is_empty()
                || found.roots.iter().any(|it| it.is_untouched)
                || plan.adopts_logs(found));
        plan.service = found.service.why_no_manager.is_none()
            && match found.service.state {
                UnitState::New | UnitState::OtherPaths => true,
                UnitState::Same => plan.adds_paths(found),
                UnitState::Differs => false,
            };
        plan
    }

    fn add_folders_of_home(&mut self, found: &Findings) {
        let has_roots = !found.roots.is_empty();
        let dir = found.home.join(PROJECTS_DIR);
        if !has_roots && found.projects_dir.is_none() && !found.agents.is_empty() {
            self.projects_dir = Some(dir.clone());
        }
        let has_projects = self.projects_dir.is_some() || found.projects_dir.is_some();
        let homeless = || found.agents.iter().flat_map(|it| &it.homeless);
        let rest = homeless().filter(|it| it.project.is_none()).count();
        let of_projects = homeless().count() - rest;
        let new: usize = found.agents.iter().map(|it| it.new).sum();
        let is_needed =
            if has_roots { has_projects && rest > 0 } else { rest > 0 || of_projects + new == 0 };
        if is_needed && found.roots.iter().all(|it| it.has_project) {
            let dir = found.projects_dir.clone().unwrap_or(dir);
            let path = dir.join(GENERAL_NAME);
            self.folder = Some(PlannedFolder { path, project: None, is_set_up: false });
        }
    }

    /// Returns whether a session without a memory folder gets one by this plan.
    fn takes(&self, found: &Findings, session: &HomelessSession) -> bool {
        let projects_dir = self.projects_dir.as_ref().or(found.projects_dir.as_ref());
        let is_inside = |dir: &Path| session.folder.as_ref().is_some_and(|it| it.starts_with(dir));
        if self.folder.as_ref().is_some_and(|it| is_inside(&it.path)) {
            return true;
        }
        if let (Some(dir), Some(project)) = (projects_dir, &session.project)
            && !project.starts_with(dir)
        {
            return true;
        }
        match &self.folder {
            None => false,
            Some(PlannedFolder { project: Some(project), .. }) => {
                is_inside(project) || session.project.as_ref() == Some(project)
            }
            Some(PlannedFolder { project: None, .. }) => {
                let is_only = found.roots.is_empty();
                if projects_dir.is_some() { session.project.is_none() } else { is_only }
            }
        }
    }

    /// Returns whether the folder has logs that were not configured before.
    fn adopts_logs(&self, found: &Findings) -> bool {
        let is_known = |path: &PathBuf| found.roots.iter().any(|it| it.path == *path);
        matches!(&found.place, Place::Folder { path, has_logs: true, .. } if !is_known(path))
    }

    /// Returns whether the service has to see folders that it does not see yet.
    fn adds_paths(&self, found: &Findings) -> bool {
        let is_known = |it: &PlannedFolder| found.roots.iter().any(|root| root.path == it.path);
        self.projects_dir.is_some() || self.folder.as_ref().is_some_and(|it| !is_known(it))
    }

    /// Returns how many sessions are imported.
    pub(super) fn session_count(&self) -> usize {
        self.imports.iter().map(|it| it.1).sum()
    }
}

impl FoundAgent {
    /// Describes the program's data.
    pub(super) fn describe(&self) -> String {
        let sessions = match self.sessions {
            0 => "no sessions".to_owned(),
            1 => "1 session".to_owned(),
            many => format!("{many} sessions"),
        };
        let mut text = format!("{sessions} in the last 30 days");
        if self.imported > 0 {
            text += &format!(", {} imported already", self.imported);
        }
        match &self.hooks {
            HookState::Installed => text += "; hooks are installed",
            HookState::Missing(_) => {}
            HookState::Unusable(why) => text += &format!("; no hooks: {why}"),
        }
        text
    }
}
