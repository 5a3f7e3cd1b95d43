//! Does the steps of a plan, and reports for each what was done or why it failed.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use serde::Serialize;

use super::{
    super::{InitArgs, folder, hooks, report::InitReport},
    findings,
    plan::{PlannedFolder, SetupPlan},
};
use crate::{
    commands::{
        GlobalArgs,
        hooks::{
            openclaw::{self, OpenClawRequest},
            programs::{AgentFlags, AgentProgram},
        },
        import,
        service::ManagedService,
        ui::Ui,
    },
    config::settings::EngineKind,
    operations::{
        compact::compact_all,
        error::{CommandError, CommandErrorKind, CommandResult},
        format::counted,
        review::queue::waiting_count,
        workspace::Invocation,
    },
    store::fs::layout::WISDOM_FILE,
};

/// What following a plan did.
#[derive(Debug, Default)]
pub(super) struct SetupResult {
    pub(super) steps: Vec<StepResult>,
    /// What is left for the user to do.
    pub(super) to_do: Vec<String>,
    /// What the folders that were compacted hold now; the one with the most logs first.
    pub(super) folders: Vec<FirstResult>,
}

/// What one step did.
#[derive(Debug, Serialize)]
pub(super) struct StepResult {
    pub(super) step: &'static str,
    /// In sentences.
    pub(super) done: Vec<String>,
    pub(super) failed: Vec<StepFailure>,
}

/// Why a part of a step failed, and the command that does it later.
#[derive(Debug, Serialize)]
pub(super) struct StepFailure {
    pub(super) why: String,
    pub(super) next: String,
}

/// What a folder holds after its first compaction.
#[derive(Debug, Serialize)]
pub(super) struct FirstResult {
    pub(super) root: PathBuf,
    pub(super) logs: usize,
    pub(super) memories: usize,
    pub(super) weeks: usize,
    pub(super) months: usize,
    /// How many quarantined lines and proposed changes wait for a person.
    pub(super) to_review: usize,
    /// The sanitized text of `WISDOM.md`, once it says something.
    pub(super) wisdom: Option<String>,
}

/// Sets up a planned folder; in a dry run, returns what that would find and write.
pub(super) fn set_up_folder(
    call: &Invocation,
    global: &GlobalArgs,
    args: &InitArgs,
    planned: &PlannedFolder,
    ui: &Ui,
) -> CommandResult<InitReport> {
    let path = call.config.resolve_root_path(&planned.path, &call.environment)?;
    let args = InitArgs { project: planned.project.clone(), ..args.clone() };
    folder::set_up(call, global, &args, path, Vec::new(), ui)
}

/// Follows the plan. A failing step does not keep the others from being done.
pub(super) fn apply(global: &GlobalArgs, plan: &SetupPlan, ui: &Ui) -> SetupResult {
    let mut setup = Setup {
        global,
        ui,
        args: InitArgs { yes: true, ..InitArgs::default() },
        result: SetupResult::default(),
        imported_into: BTreeSet::new(),
    };
    if let Some(dir) = &plan.projects_dir {
        let next = format!("memoird init --projects {}", dir.display());
        setup.follow("projects", next, |it| it.set_projects_dir(dir));
    }
    for folder in &plan.folders {
        let next = format!("memoird init {}", folder.path.display());
        setup.follow("folder", next, |it| it.set_up_folder(folder));
    }
    for &agent in &plan.hooks {
        let next = format!("memoird init --{}", agent.id());
        setup.follow("hooks", next, |it| it.add_hooks(agent));
    }
    for &(agent, _) in &plan.imports {
        let next = format!("memoird import {}", agent.id());
        setup.follow("import", next, |it| it.import_sessions(agent));
    }
    if plan.compaction {
        setup.follow("memories", "memoird compact".to_owned(), |it| it.compact_folders(plan));
    }
    if plan.service {
        let next = "memoird service install".to_owned();
        setup.follow("service", next, Setup::install_service);
    }
    setup.result
}

/// A plan that is being followed.
struct Setup<'a> {
    global: &'a GlobalArgs,
    ui: &'a Ui,
    args: InitArgs,
    result: SetupResult,
    /// The memory folders that got sessions.
    imported_into: BTreeSet<PathBuf>,
}

impl Setup<'_> {
    /// Does one step. `next` is the command that does it later.
    fn follow(
        &mut self,
        name: &'static str,
        next: String,
        run: impl FnOnce(&mut Self) -> CommandResult<StepResult>,
    ) {
        let result = run(self).unwrap_or_else(|error| StepResult {
            step: name,
            done: Vec::new(),
            failed: vec![StepFailure { why: with_hints(&error), next }],
        });
        let result = StepResult { step: name, ..result };
        if !self.ui.is_json() {
            result.print(self.ui);
        }
        self.result.steps.push(result);
    }

    fn set_projects_dir(&mut self, dir: &Path) -> CommandResult<StepResult> {
        let call = Invocation::load(self.global)?;
        hooks::set_projects_dir(&call, &self.args, dir)?;
        Ok(StepResult::done(format!(
            "each git repository gets a memory folder in {} when a session in it ends",
            dir.display()
        )))
    }

    fn set_up_folder(&mut self, planned: &PlannedFolder) -> CommandResult<StepResult> {
        let call = Invocation::load(self.global)?;
        let reload = folder::reload_hint(&call, &self.args, &planned.path);
        let report = set_up_folder(&call, self.global, &self.args, planned, self.ui)?;
        self.result.to_do.extend(report.to_do);
        self.result.to_do.extend(reload);
        let root = report.root.display();
        Ok(StepResult::done(if report.wrote.is_empty() {
            format!("{root} is already set up")
        } else {
            format!("{root}: wrote {}", report.wrote.join(", "))
        }))
    }

    fn add_hooks(&mut self, agent: AgentProgram) -> CommandResult<StepResult> {
        let call = Invocation::load(self.global)?;
        if agent == AgentProgram::OpenClaw {
            let workspace = openclaw::workspace(&call.environment)?;
            let root = workspace.canonicalize().unwrap_or(workspace);
            let request =
                OpenClawRequest { root: &root, dry_run: false, yes: true, is_planned: true };
            let outcome = openclaw::install(&call, request, self.ui)?;
            self.result.to_do.extend(outcome.to_do);
            return Ok(StepResult { step: "", done: outcome.done, failed: Vec::new() });
        }
        let agents = AgentFlags(vec![agent]);
        let args = InitArgs { agents, is_planned: true, ..self.args.clone() };
        let outcome = hooks::update(&call, &args, self.ui)?;
        self.result.to_do.extend(outcome.to_do);
        Ok(StepResult { step: "", done: outcome.done, failed: Vec::new() })
    }

    fn import_sessions(&mut self, agent: AgentProgram) -> CommandResult<StepResult> {
        let Some(source) = hooks::session_source(agent) else {
            return Ok(StepResult { step: "", done: Vec::new(), failed: Vec::new() });
        };
        let outcome = import::import_recent(self.global, source, self.ui)?;
        self.imported_into.extend(outcome.roots);
        let sessions = counted(outcome.sessions, "session", "sessions");
        let entries = counted(outcome.entries, "log entry", "log entries");
        let mut result =
            StepResult::done(format!("{}: {sessions}, {entries}", agent.display_name()));
        let next = format!("memoird import {}", agent.id());
        let failed = outcome.failed.into_iter();
        result.failed.extend(failed.map(|why| StepFailure { why, next: next.clone() }));
        Ok(result)
    }

    /// Compacts the folders that got sessions or were never compacted, without a model.
    fn compact_folders(&mut self, plan: &SetupPlan) -> CommandResult<StepResult> {
        let call = Invocation::load(self.global)?;
        let mut paths: Vec<PathBuf> = call.config.roots.iter().map(|it| it.path.clone()).collect();
        // A folder may be missing in a configuration that cannot be edited by program.
        let planned = plan.folders.iter().map(|it| it.path.clone());
        paths.extend(planned.filter(|it| call.config.roots.iter().all(|root| root.path != *it)));
        let imported_into = &self.imported_into;
        paths.retain(|it| imported_into.contains(it) || findings::is_untouched(&call, it));
        let mut result = StepResult { step: "", done: Vec::new(), failed: Vec::new() };
        for path in paths {
            match compact_folder(&call, &path, self.ui) {
                Ok(Some(first)) => {
                    result.done.push(first.describe());
                    self.result.folders.push(first);
                }
                Ok(None) => self.result.to_do.push(format!(
                    "{} uses a model, so it was not compacted; `memoird --root {0} compact --dry-run` \
                     shows the cost",
                    path.display()
                )),
                Err(error) => result.failed.push(StepFailure {
                    why: format!("{}: {}", path.display(), with_hints(&error)),
                    next: format!("memoird --root {} compact", path.display()),
                }),
            }
        }
        self.result.folders.sort_by_key(|it| std::cmp::Reverse(it.logs));
        Ok(result)
    }

    fn install_service(&mut self) -> CommandResult<StepResult> {
        let call = Invocation::load(self.global)?;
        if call.config.roots.is_empty() && call.config.projects_dir(&call.environment).is_none() {
            return Err(CommandError::usage("no memory folder is configured"));
        }
        let report = ManagedService::new(&call, self.global)?.install_and_start()?;
        self.result.to_do.extend(report.to_do);
        let state = if report.started { "it is running" } else { "it was not started" };
        let wrote = report.wrote.join(", ");
        Ok(StepResult::done(if wrote.is_empty() {
            format!("already installed; {state}")
        } else {
            format!("wrote {wrote}; {state}")
        }))
    }
}

impl StepResult {
    fn done(what: String) -> Self {
        Self { step: "", done: vec![what], failed: Vec::new() }
    }

    fn print(&self, ui: &Ui) {
        for line in &self.done {
            ui.note(format_args!("  {:<12}{line}", self.step));
        }
        for failure in &self.failed {
            ui.warn(format!("{}: {}; next: {}", self.step, failure.why, failure.next));
        }
    }
}

impl FirstResult {
    fn describe(&self) -> String {
        let logs = counted(self.logs, "log", "logs");
        let memories = counted(self.memories, "memory", "memories");
        let mut parts = vec![memories];
        if self.weeks > 0 {
            parts.push(counted(self.weeks, "weekly summary", "weekly summaries"));
        }
        if self.months > 0 {
            parts.push(counted(self.months, "monthly summary", "monthly summaries"));
        }
        if self.wisdom.is_some() {
            parts.push(WISDOM_FILE.to_owned());
        }
        let ends = if self.weeks == 0 { "; a week is summarized when it has ended" } else { "" };
        format!("{}: {} from {logs}{ends}", self.root.display(), parts.join(", "))
    }
}

/// Returns an error as one sentence with what its hints add.
fn with_hints(error: &CommandError) -> String {
    match error.hints() {
        [] => error.to_string(),
        hints => format!("{error} ({})", hints.join("; ")),
    }
}

/// Compacts a folder with the engine that costs nothing; `None` if a model is configured for it.
fn compact_folder(call: &Invocation, path: &Path, ui: &Ui) -> CommandResult<Option<FirstResult>> {
    let root = call.open_root(path)?;
    if root.settings.settings.engine != EngineKind::Extractive {
        return Ok(None);
    }
    let outcome = compact_all(call, &root, ui)?;
    if outcome.report.failed > 0 {
        let what = counted(outcome.report.failed, "job failed", "jobs failed");
        return Err(CommandError::new(CommandErrorKind::Job, what));
    }
    let inventory = root.vault.scan(&HashMap::new())?.inventory;
    let wisdom = root.read_sanitized(&root.vault.layout().wisdom())?.map(|it| it.text);
    Ok(Some(FirstResult {
        root: path.to_owned(),
        logs: inventory.logs.len(),
        memories: inventory.memories.len(),
        weeks: inventory.weekly.len(),
        months: inventory.monthly.len(),
        to_review: waiting_count(&root)?,
        wisdom: wisdom.filter(|it| it.contains("\n- ") || it.contains("\n**")),
    }))
}
