//! `memoird import`: imports sessions and notes of other programs.
//!
//! It never changes the sources, shows first what it would import, and imports nothing twice. Each
//! session goes to the memory folder of its own project and to no other.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::{
    GlobalArgs,
    error::{CommandError, CommandResult, exit_code_if_failed},
    hooks::{openclaw, project_folder},
    import_notes,
    session::{read_transcript, record_store},
    ui::{Ui, counted},
    workspace::{Invocation, MemoryRoot},
};
use crate::{
    config::Config,
    privacy::PrivacyRules,
    session::{
        imported_notes::NotesProgram,
        save::{SaveError, SaveRequest},
        transcript::Transcript,
        transcript_file,
    },
    store::fs::layout::ROOT_FILE,
};

/// How deep folders are searched for sessions.
const DEPTH_MAX: usize = 6;
/// Folders with sessions of other agents, whose results are in those of their agent: of Claude Code, and of `OpenClaw`.
const OTHER_FOLDERS: [&str; 2] = ["subagents", "codex-home"];
/// How many sessions are read at most.
const FILES_MAX: usize = 20_000;

/// The program that wrote the sessions or notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ImportSource {
    /// Sessions of Claude Code
    ClaudeCode,
    /// Sessions of Codex
    Codex,
    /// Sessions of Gemini CLI
    Gemini,
    /// Sessions of other programs: lines of {"role", "content"}
    Jsonl,
    /// Notes of `OpenClaw`: MEMORY.md, USER.md, memory/DATE.md of a workspace; or its sessions, if PATH names a
    /// database, a transcript, or the folder of the agents, and without PATH in a workspace
    Openclaw,
    /// Notes of Recall: WISDOM.md, memory/DATE.md, and the files next to it
    Recall,
    /// Notes of teammates: the same files of each teammate in .teammates/
    Teammates,
    /// Notes of Hipocampus: MEMORY.md, USER.md, memory/DATE.md, knowledge/
    Hipocampus,
    /// Notes of Basic Memory: Markdown with frontmatter
    BasicMemory,
}

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

impl ImportSource {
    /// Returns the program whose notes are imported; `None` for sessions.
    fn notes_program(self) -> Option<NotesProgram> {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::Jsonl => None,
            Self::Openclaw => Some(NotesProgram::OpenClaw),
            Self::Recall => Some(NotesProgram::Recall),
            Self::Teammates => Some(NotesProgram::Teammates),
            Self::Hipocampus => Some(NotesProgram::Hipocampus),
            Self::BasicMemory => Some(NotesProgram::BasicMemory),
        }
    }
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
    let of_sessions = args.names_openclaw_sessions(&call, global);
    if let Some(of) = args.from.notes_program().filter(|_| !of_sessions) {
        let root = call.selected_root(global)?;
        root.require_memory_folder()?;
        let home = |folder: &str| call.environment.home.join(folder);
        let path = match (&args.path, of) {
            (Some(path), _) => call.environment.absolute(path, &call.environment.cwd),
            (None, NotesProgram::OpenClaw) => openclaw::workspace(&call.environment)?,
            (None, NotesProgram::BasicMemory) => home("basic-memory"),
            (None, _) => call.environment.cwd.clone(),
        };
        let request =
            import_notes::NotesImportRequest { of, path, dry_run: args.dry_run, yes: args.yes };
        return import_notes::run(&call, &root, &request, ui);
    }
    let files = args.transcripts(&call)?;
    let mut report = ImportReport { dry_run: true, ..ImportReport::default() };
    let mut roots = TargetRoots::new(&call, global)?;
    for file in files {
        let session = roots.examine(file);
        report.entries += session.days.len();
        report.kept += usize::from(matches!(session.state, ImportState::New | ImportState::First));
        report.sessions.push(session);
    }
    if report.kept > 0 && !args.dry_run {
        if !args.yes && ui.is_interactive() {
            report.print_table(ui);
        }
        let question = format!("Import {}?", counted(report.kept, "session", "sessions"));
        let agreed = args.yes || ui.confirm(question).unwrap_or(false);
        if agreed {
            report.dry_run = false;
            let firsts = report.sessions.iter().filter(|it| it.state == ImportState::First);
            let folders: Vec<PathBuf> = firsts.filter_map(|it| it.folder.clone()).collect();
            let reloaded;
            if !folders.is_empty() {
                // Reload the configuration, which now lists the new folders.
                let failed = project_folder::create_project_folders(
                    &call.config,
                    &call.environment,
                    &folders,
                )?;
                for (_, error) in failed {
                    ui.warn(error.to_string());
                }
                reloaded = Invocation::load(global)?;
                roots = TargetRoots::new(&reloaded, global)?;
                for it in report.sessions.iter_mut().filter(|it| it.state == ImportState::First) {
                    *it = roots.examine(std::mem::take(&mut it.file));
                }
            }
            for session in report.sessions.iter_mut().filter(|it| it.state == ImportState::New) {
                roots.import(session);
            }
        }
    }
    let dry_run = report.dry_run;
    let is_imported = |it: &&ImportCandidate| {
        it.state == ImportState::New || dry_run && it.state == ImportState::First
    };
    report.kept = report.sessions.iter().filter(is_imported).count();
    report.entries = report.sessions.iter().map(|it| it.days.len()).sum();
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
    pub(super) fn recent(from: ImportSource, yes: bool) -> Self {
        Self { from, path: None, days: 30, dry_run: false, yes }
    }

    /// Like [`Self::recent`], for sessions of `OpenClaw`, whatever the memory folder is.
    pub(super) fn recent_sessions(call: &Invocation, yes: bool) -> Self {
        let path = Some(call.environment.openclaw_folder().join("agents"));
        Self { path, ..Self::recent(ImportSource::Openclaw, yes) }
    }

    /// Returns whether sessions of `OpenClaw` are meant, and not the notes of a workspace. A memory folder that is the
    /// workspace has those notes already.
    fn names_openclaw_sessions(&self, call: &Invocation, global: &GlobalArgs) -> bool {
        if self.from != ImportSource::Openclaw {
            return false;
        }
        let around = &call.environment;
        let Some(path) = &self.path else {
            let root = call.config.select_root(global.root.as_deref(), around).ok();
            let workspace = openclaw::workspace(around).ok().and_then(|it| it.canonicalize().ok());
            return root.is_some() && root == workspace;
        };
        let path = around.absolute(path, &around.cwd);
        if !path.is_dir() {
            return path.extension().is_none_or(|it| it != "md");
        }
        let has = |name: &str| path.join(name).exists();
        !["MEMORY.md", "USER.md", "memory", "AGENTS.md"].iter().any(|it| has(it))
            && (path.starts_with(around.openclaw_folder()) || has("agent") || has("sessions"))
    }

    /// Returns the transcripts to import, oldest first.
    fn transcripts(&self, call: &Invocation) -> CommandResult<Vec<PathBuf>> {
        let path = match (&self.path, self.from) {
            (Some(path), _) => call.environment.absolute(path, &call.environment.cwd),
            (None, ImportSource::ClaudeCode) => call.environment.claude_folder().join("projects"),
            (None, ImportSource::Codex) => call.environment.codex_folder().join("sessions"),
            (None, ImportSource::Gemini) => call.environment.gemini_folder().join("tmp"),
            (None, ImportSource::Openclaw) => call.environment.openclaw_folder().join("agents"),
            (None, _) => {
                return Err(CommandError::usage("`memoird import jsonl` needs a file or a folder")
                    .hint("memoird import jsonl PATH"));
            }
        };
        if !path.exists() {
            let what = format!("`{}` does not exist", path.display());
            return Err(CommandError::usage(what)
                .hint("name the file or the folder: memoird import FROM PATH"));
        }
        let since = (self.days > 0).then(|| call.now - TimeDelta::days(i64::from(self.days)));
        let mut found = Vec::new();
        let mut folders = vec![(path, 0)];
        while let Some((path, depth)) = folders.pop() {
            if path.is_dir() {
                let is_other = |it: &str| OTHER_FOLDERS.contains(&it);
                let name = path.file_name().and_then(|it| it.to_str());
                if depth > DEPTH_MAX || name.is_some_and(is_other) {
                    continue;
                }
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                folders.extend(entries.map(|it| (it.path(), depth + 1)));
                continue;
            }
            let has_extension = |it: &str| path.extension().is_some_and(|own| own == it);
            // Gemini CLI wrote sessions without lines at first, beside other files of JSON.
            let is_older = self.from == ImportSource::Gemini
                && has_extension("json")
                && path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("session-"));
            let is_named = depth == 0 || has_extension("jsonl") || is_older;
            let Ok(changed) = path.metadata().and_then(|it| it.modified()) else { continue };
            let changed = DateTime::<Utc>::from(changed);
            if self.from == ImportSource::Openclaw {
                // A database has many sessions; older ones are files.
                let sessions = transcript_file::sessions_in(&path);
                let recent = sessions.into_iter().filter(|it| since.is_none_or(|at| it.1 >= at));
                found.extend(recent.map(|(path, changed)| (changed, path)));
                if transcript_file::is_database(&path) {
                    continue;
                }
            }
            if is_named && found.len() < FILES_MAX && since.is_none_or(|it| changed >= it) {
                found.push((changed, path));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|it| it.1).collect())
    }
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
        let home = self.root_for(&transcript);
        let is_elsewhere = self.named.is_some() && self.named != home;
        let call = self.call;
        let Some(path) = home else {
            session.folder = transcript.cwd.as_deref().map(PathBuf::from);
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
    fn print_table(&self, ui: &Ui) {
        let rows: Vec<Vec<String>> = self
            .sessions
            .iter()
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
            let days = args.days;
            ui.note(format!("no sessions in the last {days} days; --days 0 searches all"));
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
