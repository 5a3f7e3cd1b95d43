//! Prints what the wizard found, its plan, and what it did, for people and as JSON.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{
    super::{
        hooks::HookState,
        report::{InitReport, review_note},
    },
    apply::{FirstResult, SetupResult, StepResult},
    findings::{Findings, Place},
    plan::SetupPlan,
};
use crate::{
    commands::{import::ImportTarget, service::unit::UnitState, ui::Ui},
    operations::format::counted,
    store::fs::layout::INDEX_FILE,
};

/// How many lines of `WISDOM.md` are shown at the end.
const WISDOM_LINES_MAX: usize = 40;

/// What `--json` prints. For a call in a folder, the keys of the report of that folder are beside these.
#[derive(Serialize)]
pub(super) struct WizardReport {
    pub(super) dry_run: bool,
    agents: Vec<AgentReport>,
    plan: PlanReport,
    /// What each step did; empty for a plan that was not followed.
    steps: Vec<StepResult>,
    to_do: Vec<String>,
    /// The folders that were compacted.
    results: Vec<FirstResult>,
    /// What setting up each planned folder finds and writes.
    folders: Vec<InitReport>,
    /// Whether the call is about the folder in which it was made.
    #[serde(skip)]
    is_in_folder: bool,
}

#[derive(Serialize)]
struct AgentReport {
    agent: &'static str,
    /// In the last 30 days.
    sessions: usize,
    imported: usize,
    /// `installed`, `missing`, or `unusable`.
    hooks: &'static str,
    /// Why they cannot be added.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct PlanReport {
    folders: Vec<FolderPlan>,
    projects_dir: Option<PathBuf>,
    hooks: Vec<&'static str>,
    import_sessions: usize,
    imports: Vec<ImportPlan>,
    homeless_sessions: usize,
    service: bool,
    compaction: bool,
    /// Files outside of memory folders that would be changed.
    files: Vec<PathBuf>,
}

#[derive(Serialize)]
struct FolderPlan {
    path: PathBuf,
    /// The project whose sessions it gets.
    project: Option<PathBuf>,
}

/// How many sessions a memory folder gets.
#[derive(Serialize)]
struct ImportPlan {
    sessions: usize,
    /// The memory folder, or the folder in which each project has its own.
    into: PathBuf,
    /// Whether each project has its own in it.
    of_projects: bool,
}

impl ImportPlan {
    fn new((target, &sessions): (&ImportTarget, &usize)) -> Self {
        let (into, of_projects) = match target {
            ImportTarget::OfProject(dir) => (dir.clone(), true),
            ImportTarget::Folder(path) => (path.clone(), false),
        };
        Self { sessions, into, of_projects }
    }
}

impl WizardReport {
    pub(super) fn new(found: &Findings, plan: &SetupPlan, folders: Vec<InitReport>) -> Self {
        let agents = found.agents.iter().map(|it| AgentReport {
            agent: it.program.id(),
            sessions: it.sessions,
            imported: it.imported,
            hooks: match it.hooks {
                HookState::Installed => "installed",
                HookState::Missing(_) => "missing",
                HookState::Unusable(_) => "unusable",
            },
            error: match &it.hooks {
                HookState::Unusable(why) => Some(why.clone()),
                _ => None,
            },
        });
        let mut to_do: Vec<String> = folders.iter().flat_map(|it| it.to_do.clone()).collect();
        if plan.homeless > 0 {
            to_do.push(format!(
                "{} of projects without a memory folder: `memoird init` in a project makes one, \
                 `memoird init --projects DIR` gives one to each",
                counted(plan.homeless, "session", "sessions")
            ));
        }
        Self {
            dry_run: false,
            agents: agents.collect(),
            plan: PlanReport {
                folders: plan
                    .folders
                    .iter()
                    .map(|it| FolderPlan { path: it.path.clone(), project: it.project.clone() })
                    .collect(),
                projects_dir: plan.projects_dir.clone(),
                hooks: plan.hooks.iter().map(|it| it.id()).collect(),
                import_sessions: plan.session_count(),
                imports: plan.targets.iter().map(ImportPlan::new).collect(),
                homeless_sessions: plan.homeless,
                service: plan.service,
                compaction: plan.compaction,
                files: outside_files(found, plan, &folders),
            },
            steps: Vec::new(),
            to_do,
            results: Vec::new(),
            folders,
            is_in_folder: matches!(found.place, Place::Folder { .. }),
        }
    }

    /// Returns whether nothing is left to set up.
    pub(super) fn has_nothing_to_do(&self) -> bool {
        let plan = &self.plan;
        let writes = self.folders.iter().any(|it| !it.wrote.is_empty());
        let changes = plan.projects_dir.is_some() || !plan.hooks.is_empty() || plan.service;
        !writes && !changes && plan.import_sessions == 0 && !plan.compaction
    }

    pub(super) fn has_failed(&self) -> bool {
        self.steps.iter().any(|it| !it.failed.is_empty())
    }

    pub(super) fn print_findings(&self, found: &Findings, ui: &Ui) {
        if found.agents.is_empty() {
            ui.note("found no agent programs");
        } else {
            ui.note("found");
        }
        for agent in &found.agents {
            ui.note(format_args!("  {:<12}{}", agent.program.display_name(), agent.describe()));
        }
        for folder in self.folders.iter().filter(|_| self.is_in_folder) {
            print_rows("this folder", &folder.found.describe(), ui);
            print_rows("skipped", &folder.skipped_files(), ui);
        }
    }

    pub(super) fn print_plan(&self, found: &Findings, plan: &SetupPlan, ui: &Ui) {
        ui.note("plan");
        let folders = plan.folders.iter().zip(&self.folders).map(|(planned, report)| {
            if report.wrote.is_empty() {
                return format!("{} is already set up", report.root.display());
            }
            let has_projects = plan.projects_dir.is_some() || found.projects_dir.is_some();
            let sessions = match (&planned.project, &report.general) {
                (Some(_), Some(general)) => format!(
                    ", for the sessions in it ({} keeps those without a folder of their own)",
                    general.display()
                ),
                (Some(project), None) => format!(", for sessions in {}", project.display()),
                (None, _) if has_projects => ", for what belongs to no git repository".to_owned(),
                (None, _) => String::new(),
            };
            let logs = match report.memory_dir.as_str() {
                "." | "memory" => String::new(),
                dir => format!(", logs in {dir}/"),
            };
            let wrote = report.wrote.join(", ");
            format!("{}{logs}{sessions}; writes {wrote}", report.root.display())
        });
        let mut folders: Vec<String> = folders.collect();
        if let Some(general) = found.general.as_ref().filter(|_| plan.projects_dir.is_some()) {
            folders.push(format!(
                "{} is already set up: agents read it and log to it outside of git repositories; \
                 `project: {0}` in its entry of config.yaml keeps it to itself",
                general.display()
            ));
        }
        print_rows("folder", &folders, ui);
        let projects = plan.projects_dir.as_ref().map(|it| {
            let (dir, config) = (it.display(), found.config_file.display());
            format!("each git repository gets its own memory folder in {dir}; writes {config}")
        });
        print_rows("projects", projects.as_slice(), ui);
        let hooks: Vec<String> = found
            .agents
            .iter()
            .filter(|it| plan.hooks.contains(&it.program))
            .flat_map(|it| {
                let name = it.program.display_name();
                let files = it.hooks.missing().iter();
                files.map(move |it| match it.display() {
                    file if it.ends_with(INDEX_FILE) => {
                        format!("{name}: keeps WISDOM.md in a block of {file}")
                    }
                    file if it.is_file() => format!("{name}: changes {file} and keeps a backup"),
                    file => format!("{name}: writes {file}"),
                })
            })
            .collect();
        print_rows("hooks", &hooks, ui);
        if plan.session_count() > 0 {
            print_rows("import", &describe_imports(plan), ui);
        }
        if plan.compaction {
            let what =
                "summaries, memories and WISDOM.md, by the engine without a model; costs nothing";
            print_rows("memories", &[what.to_owned()], ui);
        }
        let file = found.service.file.display();
        let service = match (&found.service.why_no_manager, found.service.state) {
            _ if plan.service => format!("runs in the background while you are logged in: {file}"),
            (Some(why), _) => format!(
                "not proposed: no service manager answers ({why}); `memoird run` works in the foreground"
            ),
            (None, UnitState::Differs) => format!(
                "{file} was edited and stays; to overwrite it: memoird service install --force"
            ),
            (None, _) => "is already installed".to_owned(),
        };
        print_rows("service", &[service], ui);
    }

    pub(super) fn print_to_do(&self, ui: &Ui) {
        print_rows("to do", &self.to_do, ui);
    }

    /// Finishes a call that changes nothing: all is set up, this is a dry run, or nobody can agree.
    pub(super) fn finish_without_changes(&self, is_dry_run: bool, ui: &Ui) {
        if ui.is_json() {
            ui.json(&self.json());
        } else if self.has_nothing_to_do() {
            ui.success("nothing to do: everything is already set up");
        } else if is_dry_run {
            ui.note("nothing was changed; to do it: memoird init --yes");
        } else {
            ui.note("nothing was changed, because nobody can agree without a terminal");
            ui.note("to do it: memoird init --yes; to see every change: memoird init --dry-run");
        }
    }

    pub(super) fn add_result(&mut self, result: SetupResult) {
        self.steps = result.steps;
        self.results = result.folders;
        for folder in &self.folders {
            // What was left to do in the preview is done now, or its step reports it again.
            self.to_do.retain(|it| !folder.to_do.contains(it));
        }
        self.to_do.extend(result.to_do);
        let of_hooks = self.steps.iter().filter(|it| it.step == "hooks");
        let of_hooks: Vec<String> = of_hooks.flat_map(|it| it.done.clone()).collect();
        for folder in &mut self.folders {
            folder.dry_run = false;
            folder.hooks.clone_from(&of_hooks);
        }
    }

    /// Prints the result, and the first `WISDOM.md`.
    pub(super) fn finish(&self, ui: &Ui) {
        if ui.is_json() {
            ui.json(&self.json());
            return;
        }
        self.print_to_do(ui);
        let shown = self.results.iter().find(|it| it.wisdom.is_some());
        if let Some((folder, wisdom)) = shown.and_then(|it| Some((it, it.wisdom.as_ref()?))) {
            ui.note("");
            ui.note(format_args!("{}/WISDOM.md", folder.root.display()));
            let lines: Vec<&str> = wisdom.trim_end().lines().collect();
            for line in lines.iter().take(WISDOM_LINES_MAX) {
                ui.data(line);
            }
            if let Some(more) = lines.len().checked_sub(WISDOM_LINES_MAX).filter(|it| *it > 0) {
                let root = folder.root.display();
                ui.note(format_args!("{more} more lines: memoird --root {root} show WISDOM.md"));
            }
            ui.note("");
        }
        for folder in self.results.iter().filter(|it| it.to_review > 0) {
            let command = format!("memoird --root {} review", folder.root.display());
            ui.note(review_note(folder.to_review, &command));
        }
        if self.has_failed() {
            ui.warn("not everything was set up; `memoird init` goes on where this call stopped");
        } else if self.results.is_empty() {
            ui.success("ready; write the first entry: `memoird log TEXT`");
        } else {
            ui.success("ready; `memoird status` shows what comes next");
        }
    }

    /// Returns the document that `--json` prints.
    fn json(&self) -> Value {
        let folder = self.folders.first().filter(|_| self.is_in_folder);
        let mut whole = serde_json::to_value(folder).unwrap_or_default();
        let own = serde_json::to_value(self).unwrap_or_default();
        let Value::Object(own) = own else { return own };
        match &mut whole {
            Value::Object(whole) => whole.extend(own),
            other => *other = Value::Object(own),
        }
        whole
    }
}

/// Says how many sessions go where.
fn describe_imports(plan: &SetupPlan) -> Vec<String> {
    let into = |it: &ImportTarget| match it {
        ImportTarget::Folder(path) => format!("into {}", path.display()),
        ImportTarget::OfProject(dir) => {
            format!("into the memory folders of their projects in {}", dir.display())
        }
    };
    let count = counted(plan.session_count(), "session", "sessions");
    let what = format!("{count} of the last 30 days");
    let targets: Vec<_> = plan.targets.iter().collect();
    match targets.as_slice() {
        [(target, _)] => vec![format!("{what} {}; no model is called", into(target))],
        targets => {
            let rows = targets.iter().map(|(target, count)| format!("{count} {}", into(target)));
            std::iter::once(format!("{what}; no model is called")).chain(rows).collect()
        }
    }
}

/// Returns the files outside of memory folders that following the plan changes.
fn outside_files(found: &Findings, plan: &SetupPlan, folders: &[InitReport]) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let written = folders.iter().flat_map(|it| &it.wrote).map(Path::new);
    files.extend(written.filter(|it| it.is_absolute()).map(Path::to_path_buf));
    if plan.projects_dir.is_some() && !files.contains(&found.config_file) {
        files.push(found.config_file.clone());
    }
    for agent in found.agents.iter().filter(|it| plan.hooks.contains(&it.program)) {
        files.extend_from_slice(agent.hooks.missing());
    }
    files.extend(plan.service.then(|| found.service.file.clone()));
    files
}

fn print_rows(label: &str, lines: &[String], ui: &Ui) {
    for (i, line) in lines.iter().enumerate() {
        ui.note(format_args!("  {:<12}{line}", if i == 0 { label } else { "" }));
    }
}
