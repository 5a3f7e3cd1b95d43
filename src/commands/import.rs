//! `memoird import`: imports sessions and notes of other programs.
//!
//! It never changes the sources, shows first what it would import, and imports nothing twice. Each
//! session goes to the memory folder of its own project and to no other.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use chrono::NaiveDate;
use serde::Serialize;

use super::{
    GlobalArgs,
    error_report::exit_code_if_failed,
    hooks::project_folder,
    import_notes,
    import_sources::{self, ImportSource},
    session::read_transcript,
    ui::Ui,
};
use crate::{
    config::{Config, environment::Environment},
    operations::{
        error::CommandResult,
        format::counted,
        session_records::record_store,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::PrivacyRules,
    session::{
        save::{SaveError, SaveRequest},
        transcript::Transcript,
    },
    store::fs::layout::ROOT_FILE,
};

/// Import earlier sessions of agents, or notes of other programs
#[derive(Debug, clap::Args)]
pub(super) struct ImportArgs {
    /// The program they come from
    #[arg(value_enum, value_name = "FROM")]
    from: ImportSource,
    /// A transcript, or a folder of transcripts or notes [default: the program's own folder]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Import only sessions that changed in the last N days; 0 for all
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// Show what would be imported, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct ImportReport {
    dry_run: bool,
    sessions: Vec<ImportCandidate>,
    /// How many sessions were imported, or would be.
    kept: usize,
    /// How many log entries they add.
    entries: usize,
}

/// A session that may be imported.
#[derive(Serialize)]
struct ImportCandidate {
    transcript: String,
    project: Option<String>,
    ended: Option<String>,
    messages: usize,
    /// The memory folder that it belongs to.
    root: Option<String>,
    state: ImportState,
    /// The days that get an entry.
    days: Vec<NaiveDate>,
    /// The id of its record, once imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The working folder of the session.
    #[serde(skip)]
    folder: Option<PathBuf>,
    #[serde(skip)]
    home: Option<PathBuf>,
    #[serde(skip)]
    file: PathBuf,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum ImportState {
    /// It is imported.
    New,
    /// It is imported, and its project gets a new memory folder.
    First,
    /// The logs already contain it.
    Known,
    /// It belongs to an agent that another session started, whose results are in that session.
    Subagent,
    /// Its project has no memory folder.
    Homeless,
    /// It belongs to another memory folder than the named one.
    Elsewhere,
    /// It cannot be read or saved.
    Failed,
}

impl ImportState {
    fn describe(self, is_done: bool) -> &'static str {
        match self {
            Self::New if is_done => "imported",
            Self::New => "would be imported",
            Self::First => "would be imported into a new memory folder of its project",
            Self::Known => "already imported",
            Self::Subagent => "part of another session",
            Self::Homeless => "its project has no memory folder",
            Self::Elsewhere => "belongs to another memory folder",
            Self::Failed => "failed",
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &ImportArgs, ui: &Ui) -> CommandResult {
    let call = Invocation::load(global)?;
    let of_sessions =
        import_sources::names_openclaw_sessions(&call, global, args.from, args.path.as_deref());
    if let Some(of) = args.from.notes_program().filter(|_| !of_sessions) {
        let root = call.selected_root(global)?;
        root.require_memory_folder()?;
        let path = match &args.path {
            Some(path) => call.environment.absolute(path, &call.environment.cwd),
            None => import_sources::notes_folder(&call, of, root.vault.layout().root())?,
        };
        let request =
            import_notes::NotesImportRequest { of, path, dry_run: args.dry_run, yes: args.yes };
        return import_notes::run(&call, &root, &request, ui);
    }
    let files = args.transcripts(&call)?;
    let mut roots = TargetRoots::new(&call, global)?;
    let mut report = ImportReport::examine(files, &mut roots, ui);
    if report.kept > 0 && !args.dry_run {
        if !args.yes && ui.is_interactive() {
            report.print_table(ui);
        }
        let question = format!("Import {}?", counted(report.kept, "session", "sessions"));
        let agreed = args.yes || ui.confirm(question).unwrap_or(false);
        if agreed {
            report.import(&call, global, roots, ui)?;
        }
    }
    report.count();
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print_table(ui);
        report.print_summary(args, ui);
    }
    let failed = report.sessions.iter().any(|it| it.state == ImportState::Failed);
    Ok(exit_code_if_failed(failed))
}

impl ImportArgs {
    /// Returns the arguments that import a program's sessions of the last 30 days.
    pub(super) fn recent(around: &Environment, from: ImportSource, yes: bool) -> Self {
        Self { from, path: from.sessions_folder(around), days: 30, dry_run: false, yes }
    }

    /// Returns the transcripts to import, oldest first.
    fn transcripts(&self, call: &Invocation) -> CommandResult<Vec<PathBuf>> {
        import_sources::transcripts(call, self.from, self.path.as_deref(), self.days)
    }
}

/// The sessions of a program in the last 30 days, before they are imported.
#[derive(Debug, Default)]
pub(super) struct RecentSessions {
    /// All of them, without those that another session started.
    pub(super) total: usize,
    /// Those that the logs contain already.
    pub(super) imported: usize,
    /// The others.
    pub(super) new: Vec<NewSession>,
}

/// A session that is not imported yet.
#[derive(Debug)]
pub(super) struct NewSession {
    /// Its working folder, if the transcript names one.
    pub(super) folder: Option<PathBuf>,
    /// Where the present configuration puts it.
    pub(super) target: Option<ImportTarget>,
}

/// The memory folder that a session is imported into.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ImportTarget {
    /// The folder of its project below this one, which may have to be created.
    OfProject(PathBuf),
    Folder(PathBuf),
}

/// Reads the sessions of a program in the last 30 days; none if it has no folder of sessions.
pub(super) fn recent_sessions(
    call: &Invocation,
    global: &GlobalArgs,
    from: ImportSource,
    ui: &Ui,
) -> CommandResult<RecentSessions> {
    if !from.sessions_folder(&call.environment).is_some_and(|it| it.exists()) {
        return Ok(RecentSessions::default());
    }
    let files = ImportArgs::recent(&call.environment, from, false).transcripts(call)?;
    let report = ImportReport::examine(files, &mut TargetRoots::new(call, global)?, ui);
    let projects_dir = call.config.projects_dir(&call.environment);
    let mut recent = RecentSessions::default();
    for session in report.sessions {
        match session.state {
            ImportState::New | ImportState::First | ImportState::Homeless => {
                let target = match session.state {
                    ImportState::New => session.home.map(ImportTarget::Folder),
                    ImportState::First => projects_dir.clone().map(ImportTarget::OfProject),
                    _ => None,
                };
                recent.new.push(NewSession { folder: session.folder, target });
            }
            ImportState::Known => recent.imported += 1,
            ImportState::Elsewhere => {}
            ImportState::Subagent | ImportState::Failed => continue,
        }
        recent.total += 1;
    }
    Ok(recent)
}

/// What an import did.
#[derive(Debug, Default)]
pub(super) struct ImportOutcome {
    pub(super) sessions: usize,
    /// How many log entries they added.
    pub(super) entries: usize,
    /// The memory folders that got them.
    pub(super) roots: BTreeSet<PathBuf>,
    /// Why sessions could not be imported, a sentence each.
    pub(super) failed: Vec<String>,
}

/// Imports the sessions of a program in the last 30 days, without a question.
pub(super) fn import_recent(
    global: &GlobalArgs,
    from: ImportSource,
    ui: &Ui,
) -> CommandResult<ImportOutcome> {
    let call = Invocation::load(global)?;
    let files = ImportArgs::recent(&call.environment, from, true).transcripts(&call)?;
    let mut roots = TargetRoots::new(&call, global)?;
    let mut report = ImportReport::examine(files, &mut roots, ui);
    report.import(&call, global, roots, ui)?;
    report.count();
    let failed = report
        .sessions
        .iter()
        .filter_map(|it| Some(format!("{}: {}", it.transcript, it.error.as_deref()?)));
    let imported = report.sessions.iter().filter(|it| it.state == ImportState::New);
    Ok(ImportOutcome {
        roots: imported.filter_map(|it| it.home.clone()).collect(),
        sessions: report.kept,
        entries: report.entries,
        failed: failed.collect(),
    })
}

/// The memory folders that sessions belong to, each opened once.
struct TargetRoots<'a> {
    call: &'a Invocation,
    /// The folder that `--root` names; nothing goes to another one.
    named: Option<PathBuf>,
    /// The folder for sessions without a working folder.
    fallback: Option<PathBuf>,
    open: BTreeMap<PathBuf, MemoryRoot>,
}

impl<'a> TargetRoots<'a> {
    fn new(call: &'a Invocation, global: &GlobalArgs) -> CommandResult<Self> {
        let chosen = call.config.select_root(global.root.as_deref(), &call.environment);
        let (named, fallback) = match &global.root {
            Some(_) => {
                let path = chosen?;
                (Some(path.clone()), Some(path))
            }
            None => (None, chosen.ok()),
        };
        Ok(Self { call, named, fallback, open: BTreeMap::new() })
    }

    /// Returns the memory folder of a session, if there is one.
    fn root_for(&self, transcript: &Transcript) -> Option<PathBuf> {
        match &transcript.cwd {
            Some(cwd) => self.call.config.root_for_folder(Path::new(cwd), &self.call.environment),
            None => self.fallback.clone(),
        }
    }

    /// Returns whether a memory folder can be created for the project of a folder.
    fn can_create_root(&self, folder: &Path) -> bool {
        let Invocation { config, environment: around, .. } = self.call;
        let dir = config.projects_dir(around).filter(|_| self.named.is_none());
        let project = Config::project_of(folder).filter(|it| *it != around.home);
        dir.zip(project).is_some_and(|(dir, project)| !project.starts_with(dir))
    }

    fn open_root(&mut self, path: &Path) -> CommandResult<Option<&MemoryRoot>> {
        if !self.open.contains_key(path) {
            let root = self.call.open_root(path)?;
            // An ordinary folder, neither configured nor set up by `memoird init`.
            if !root.settings.configured && !path.join(ROOT_FILE).is_file() {
                return Ok(None);
            }
            self.open.insert(path.to_owned(), root);
        }
        Ok(self.open.get(path))
    }

    /// Reads a transcript and decides whether to import it.
    fn examine(&mut self, file: PathBuf) -> ImportCandidate {
        let mut session = ImportCandidate {
            transcript: PrivacyRules::mask_message(&file.to_string_lossy()),
            project: None,
            ended: None,
            messages: 0,
            root: None,
            state: ImportState::Failed,
            days: Vec::new(),
            record: None,
            error: None,
            folder: None,
            home: None,
            file,
        };
        if let Err(error) = self.try_examine(&mut session) {
            session.error = Some(error.to_string());
        }
        session
    }

    fn try_examine(&mut self, session: &mut ImportCandidate) -> CommandResult<()> {
        let transcript = read_transcript(&session.file, None)?;
        session.project = transcript.cwd.as_deref().map(PrivacyRules::mask_message);
        session.messages =
            transcript.own_entries().filter(|it| it.content.user_words().is_some()).count();
        if transcript.is_subagent {
            session.state = ImportState::Subagent;
            return Ok(());
        }
        session.folder = transcript.cwd.as_deref().map(PathBuf::from);
        let home = self.root_for(&transcript);
        let is_elsewhere = self.named.is_some() && self.named != home;
        let call = self.call;
        let Some(path) = home else {
            let can_create = session.folder.as_ref().is_some_and(|it| self.can_create_root(it));
            session.state = if can_create { ImportState::First } else { ImportState::Homeless };
            return Ok(());
        };
        session.root = Some(path.display().to_string());
        if is_elsewhere {
            session.state = ImportState::Elsewhere;
            return Ok(());
        }
        let Some(root) = self.open_root(&path)? else {
            (session.root, session.state) = (None, ImportState::Homeless);
            return Ok(());
        };
        let zone = root.settings.zone.name.0;
        session.ended = transcript.time_span().map(|it| it.1.with_timezone(&zone).to_rfc3339());
        let days = record_store(call, root)
            .preview_days(&SaveRequest::for_ended_session(&transcript, None))?;
        session.state = if days.is_empty() { ImportState::Known } else { ImportState::New };
        session.days = days;
        session.home = Some(path);
        Ok(())
    }

    fn import(&mut self, session: &mut ImportCandidate) {
        if let Err(error) = self.try_import(session) {
            session.state = ImportState::Failed;
            session.error = Some(error.to_string());
        }
    }

    fn try_import(&mut self, session: &mut ImportCandidate) -> CommandResult<()> {
        let Some(path) = session.home.clone() else { return Ok(()) };
        let transcript = read_transcript(&session.file, None)?;
        let call = self.call;
        let Some(root) = self.open_root(&path)? else { return Ok(()) };
        let file = session.file.to_string_lossy().into_owned();
        match record_store(call, root)
            .save(&SaveRequest::for_ended_session(&transcript, Some(&file)))
        {
            Ok(saved) => session.record = Some(saved.id),
            // A copy of a session that was already imported.
            Err(SaveError::NothingNew) => {
                session.state = ImportState::Known;
                session.days.clear();
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl ImportReport {
    /// Reads transcripts and decides which to import.
    fn examine(files: Vec<PathBuf>, roots: &mut TargetRoots<'_>, ui: &Ui) -> Self {
        let progress = ui.progress(files.len() as u64);
        let mut report = Self { dry_run: true, ..Self::default() };
        for (done, file) in files.into_iter().enumerate() {
            progress.step(done as u64, "reading sessions");
            report.sessions.push(roots.examine(file));
        }
        report.count();
        report
    }

    /// Counts what was imported, or would be.
    fn count(&mut self) {
        let dry_run = self.dry_run;
        let is_imported = |it: &&ImportCandidate| {
            it.state == ImportState::New || dry_run && it.state == ImportState::First
        };
        self.kept = self.sessions.iter().filter(is_imported).count();
        self.entries = self.sessions.iter().map(|it| it.days.len()).sum();
    }

    /// Imports the new sessions, after it created the missing memory folders of their projects.
    fn import(
        &mut self,
        call: &Invocation,
        global: &GlobalArgs,
        roots: TargetRoots<'_>,
        ui: &Ui,
    ) -> CommandResult<()> {
        self.dry_run = false;
        let firsts = self.sessions.iter().filter(|it| it.state == ImportState::First);
        let folders: Vec<PathBuf> = firsts.filter_map(|it| it.folder.clone()).collect();
        let reloaded;
        let mut roots = roots;
        if !folders.is_empty() {
            // Reload the configuration, which now lists the new folders.
            let failed =
                project_folder::create_project_folders(&call.config, &call.environment, &folders)?;
            for (_, error) in failed {
                ui.warn(error.to_string());
            }
            reloaded = Invocation::load(global)?;
            roots = TargetRoots::new(&reloaded, global)?;
            for it in self.sessions.iter_mut().filter(|it| it.state == ImportState::First) {
                *it = roots.examine(std::mem::take(&mut it.file));
            }
        }
        let new = self.sessions.iter_mut().filter(|it| it.state == ImportState::New);
        let new: Vec<_> = new.collect();
        let progress = ui.progress(new.len() as u64);
        for (done, session) in new.into_iter().enumerate() {
            progress.step(done as u64, "importing sessions");
            roots.import(session);
        }
        Ok(())
    }

    fn print_table(&self, ui: &Ui) {
        let rows: Vec<Vec<String>> = self
            .sessions
            .iter()
            .filter(|it| self.dry_run || !ui.is_quiet() || it.error.is_some())
            .map(|it| {
                let ended = it.ended.as_deref().unwrap_or_default();
                let ended = ended.chars().take(16).collect::<String>().replace('T', " ");
                let project = it.project.as_deref().unwrap_or_default();
                let project = project.rsplit('/').next().unwrap_or_default().to_owned();
                let what = match &it.error {
                    Some(error) => format!("{}: {error}", it.transcript),
                    None => it.state.describe(!self.dry_run).to_owned(),
                };
                vec![ended, project, it.messages.to_string(), it.days.len().to_string(), what]
            })
            .collect();
        if !rows.is_empty() {
            ui.table(&["ended", "project", "messages", "entries", ""], &rows);
        }
    }

    fn print_summary(&self, args: &ImportArgs, ui: &Ui) {
        let sessions = counted(self.kept, "session", "sessions");
        let entries = counted(self.entries, "log entry", "log entries");
        if self.sessions.is_empty() {
            let below = args.path.as_ref().map(|it| format!(" in `{}`", it.display()));
            let found = format!("no sessions of {}{}", args.from.name(), below.unwrap_or_default());
            ui.note(match args.days {
                0 => found,
                days => format!("{found} changed in the last {days} days; --days 0 searches all"),
            });
        } else if self.kept == 0 {
            ui.success("nothing to do: no new sessions");
        } else if self.dry_run {
            ui.note(format!(
                "would import {sessions}, with one record each and {entries}; this takes no model \
                 calls. Nothing was written; add --yes to import"
            ));
        } else {
            ui.success(format!(
                "imported {sessions}, with {entries}; `memoird compact --dry-run` shows what is due \
                 now and what it costs"
            ));
        }
        if self.sessions.iter().any(|it| it.state == ImportState::Homeless) {
            ui.note(
                "to import the sessions of a project, run `memoird init DIR` in it and import again; \
                 `memoird init --projects DIR` gives every project its own folder",
            );
        }
    }
}
