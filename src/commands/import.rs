//! `memoird import`: brings in what other programs have kept: sessions of agents, daily logs.
//!
//! What is read stays as it is. It is shown first what would come of it; the same thing twice changes
//! nothing. Each session goes to the memory folder of its own project and to no other.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;

use super::{
    GlobalArgs,
    context::{Call, Root},
    error::{CommandError, Kind},
    first_use, import_notes,
    session::{keeper, read_transcript},
    ui::Ui,
};
use crate::{
    config::Config,
    privacy::Rules,
    session::{
        keep::{KeepError, Request},
        notes::Keepers,
        transcript::{Transcript, What},
    },
    store::layout::ROOT_FILE,
};

/// So many folders deep sessions are looked for.
const DEPTH_MAX: usize = 6;
/// So many sessions are looked at.
const FILES_MAX: usize = 20_000;

/// Where something comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum From {
    /// Sessions of Claude Code
    ClaudeCode,
    /// Sessions of Codex
    Codex,
    /// Sessions of other programs: lines of {"role", "content"}
    Jsonl,
    /// Notes of `OpenClaw`: MEMORY.md, USER.md, memory/DATE.md of a workspace
    Openclaw,
    /// Notes of Recall: WISDOM.md, memory/DATE.md, and what lies beside it
    Recall,
    /// Notes of teammates: the same of each in .teammates/
    Teammates,
    /// Notes of Hipocampus: MEMORY.md, USER.md, memory/DATE.md, knowledge/
    Hipocampus,
    /// Notes of Basic Memory: Markdown with frontmatter
    BasicMemory,
}

/// Bring in sessions that were held before memoird was there, or notes of other programs
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where they come from
    #[arg(value_enum, value_name = "FROM")]
    from: From,
    /// A transcript, or a folder of them or of notes [default: where the program keeps them]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// Of sessions only those that were written to in the last N days; 0 for all
    #[arg(long, value_name = "N", default_value_t = 30)]
    days: u32,
    /// Show what would come of it, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do it without asking
    #[arg(short, long)]
    yes: bool,
}

/// What `--json` prints.
#[derive(Default, Serialize)]
struct Report {
    dry_run: bool,
    sessions: Vec<Session>,
    /// How many are kept now, or would be.
    kept: usize,
    /// How many entries in logs that makes.
    entries: usize,
}

/// A session that was found.
#[derive(Serialize)]
struct Session {
    transcript: String,
    project: Option<String>,
    ended: Option<String>,
    messages: usize,
    /// The memory folder that it belongs to.
    root: Option<String>,
    state: State,
    /// The days that get an entry.
    days: Vec<NaiveDate>,
    /// Its record, once it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The folder that it ran in.
    #[serde(skip)]
    folder: Option<PathBuf>,
    #[serde(skip)]
    home: Option<PathBuf>,
    #[serde(skip)]
    file: PathBuf,
}

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It is brought in.
    New,
    /// The same, and its project gets a memory folder for that.
    First,
    /// All that was said in it is in the logs.
    Known,
    /// Its project has no memory folder.
    Homeless,
    /// It is another memory folder's than the one that is named.
    Elsewhere,
    /// It cannot be read or kept.
    Failed,
}

impl From {
    /// Returns whose notes are meant, if notes are.
    fn notes(self) -> Option<Keepers> {
        match self {
            Self::ClaudeCode | Self::Codex | Self::Jsonl => None,
            Self::Openclaw => Some(Keepers::OpenClaw),
            Self::Recall => Some(Keepers::Recall),
            Self::Teammates => Some(Keepers::Teammates),
            Self::Hipocampus => Some(Keepers::Hipocampus),
            Self::BasicMemory => Some(Keepers::BasicMemory),
        }
    }
}

impl State {
    fn words(self, is_done: bool) -> &'static str {
        match self {
            Self::New if is_done => "is brought in",
            Self::New => "would be brought in",
            Self::First => "would be brought in, into a new memory folder of its project",
            Self::Known => "is there already",
            Self::Homeless => "no memory folder for its project",
            Self::Elsewhere => "of another memory folder",
            Self::Failed => "failed",
        }
    }
}

pub(super) fn run(global: &GlobalArgs, args: &Args, ui: &Ui) -> Result<ExitCode, CommandError> {
    let call = Call::read(global)?;
    if let Some(of) = args.from.notes() {
        let root = call.root(global)?;
        root.refuse_stranger()?;
        let home = |folder: &str| call.around.home.join(folder);
        let path = match (&args.path, of) {
            (Some(path), _) => call.around.absolute(path, &call.around.cwd),
            (None, Keepers::OpenClaw) => home(".openclaw/workspace"),
            (None, Keepers::BasicMemory) => home("basic-memory"),
            (None, _) => call.around.cwd.clone(),
        };
        let asked = import_notes::Asked { of, path, dry_run: args.dry_run, yes: args.yes };
        return import_notes::run(&call, &root, &asked, ui);
    }
    let files = args.files(&call)?;
    let mut report = Report { dry_run: true, ..Report::default() };
    let mut roots = Roots::new(&call, global)?;
    for file in files {
        let session = roots.look(file);
        report.entries += session.days.len();
        report.kept += usize::from(matches!(session.state, State::New | State::First));
        report.sessions.push(session);
    }
    if report.kept > 0 && !args.dry_run {
        // Who is asked sees first what it is about.
        if !args.yes && ui.can_ask() {
            report.tell(ui);
        }
        let question = format!("Bring in {} sessions?", report.kept);
        let may = args.yes || ui.ask(question).unwrap_or(false);
        if may {
            report.dry_run = false;
            let firsts = report.sessions.iter().filter(|it| it.state == State::First);
            let folders: Vec<PathBuf> = firsts.filter_map(|it| it.folder.clone()).collect();
            let fresh;
            if !folders.is_empty() {
                // Another process may have made them meanwhile.
                first_use::make(&call.config, &call.around, &folders)?;
                fresh = Call::read(global)?;
                roots = Roots::new(&fresh, global)?;
                for it in report.sessions.iter_mut().filter(|it| it.state == State::First) {
                    *it = roots.look(std::mem::take(&mut it.file));
                }
            }
            for session in report.sessions.iter_mut().filter(|it| it.state == State::New) {
                roots.keep(session);
            }
        }
    }
    let (new, dry_run) = (State::New, report.dry_run);
    let comes = |it: &&Session| it.state == new || dry_run && it.state == State::First;
    report.kept = report.sessions.iter().filter(comes).count();
    report.entries = report.sessions.iter().map(|it| it.days.len()).sum();
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.tell(ui);
        report.conclude(args, ui);
    }
    let is_well = report.sessions.iter().all(|it| it.state != State::Failed);
    Ok(if is_well { ExitCode::SUCCESS } else { Kind::Job.exit_code().into() })
}

impl Args {
    /// Asks for the sessions of a program in the last days, where it keeps them.
    pub(super) fn recent(from: From, yes: bool) -> Self {
        Self { from, path: None, days: 30, dry_run: false, yes }
    }

    /// Returns the transcripts that are meant, the oldest first.
    fn files(&self, call: &Call) -> Result<Vec<PathBuf>, CommandError> {
        let path = match (&self.path, self.from) {
            (Some(path), _) => call.around.absolute(path, &call.around.cwd),
            (None, From::ClaudeCode) => call.around.claude_folder().join("projects"),
            (None, From::Codex) => call.around.codex_folder().join("sessions"),
            (None, _) => {
                return Err(CommandError::new(Kind::Usage, "jsonl needs a file or a folder")
                    .hint("memoird import jsonl PATH"));
            }
        };
        if !path.exists() {
            let what = format!("there is nothing at `{}`", path.display());
            return Err(CommandError::new(Kind::Usage, what)
                .hint("name the file or the folder: memoird import FROM PATH"));
        }
        let since = (self.days > 0).then(|| call.now - TimeDelta::days(i64::from(self.days)));
        let mut found = Vec::new();
        let mut folders = vec![(path, 0)];
        while let Some((path, depth)) = folders.pop() {
            if path.is_dir() {
                // What an agent's helpers said stands in the session of the agent too.
                if depth > DEPTH_MAX || path.file_name().is_some_and(|it| it == "subagents") {
                    continue;
                }
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                folders.extend(entries.map(|it| (it.path(), depth + 1)));
                continue;
            }
            let is_named = depth == 0 || path.extension().is_some_and(|it| it == "jsonl");
            let Ok(changed) = path.metadata().and_then(|it| it.modified()) else { continue };
            let changed = DateTime::<Utc>::from(changed);
            if is_named && found.len() < FILES_MAX && since.is_none_or(|it| changed >= it) {
                found.push((changed, path));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|it| it.1).collect())
    }
}

/// The memory folders that sessions belong to, each opened once.
struct Roots<'a> {
    call: &'a Call,
    /// The one that is named: nothing goes to another.
    named: Option<PathBuf>,
    /// Where a session goes that does not say where it ran.
    fallback: Option<PathBuf>,
    open: BTreeMap<PathBuf, Root>,
}

impl<'a> Roots<'a> {
    fn new(call: &'a Call, global: &GlobalArgs) -> Result<Self, CommandError> {
        let chosen = call.config.choose(global.root.as_deref(), &call.around);
        let (named, fallback) = match &global.root {
            Some(_) => {
                let path = chosen?;
                (Some(path.clone()), Some(path))
            }
            None => (None, chosen.ok()),
        };
        Ok(Self { call, named, fallback, open: BTreeMap::new() })
    }

    /// Returns the folder of a session, if there is one.
    fn home(&self, transcript: &Transcript) -> Option<PathBuf> {
        match &transcript.cwd {
            Some(cwd) => self.call.config.choose_for(Path::new(cwd), &self.call.around),
            None => self.fallback.clone(),
        }
    }

    /// Returns whether the project of a folder gets a memory folder of its own.
    fn may_get_one(&self, folder: &Path) -> bool {
        let Call { config, around, .. } = self.call;
        let dir = config.projects_dir(around).filter(|_| self.named.is_none());
        let project = Config::project_of(folder).filter(|it| *it != around.home);
        dir.zip(project).is_some_and(|(dir, project)| !project.starts_with(dir))
    }

    fn root(&mut self, path: &Path) -> Result<Option<&Root>, CommandError> {
        if !self.open.contains_key(path) {
            let root = self.call.open(path)?;
            // A folder that nobody made a memory folder is none.
            if !root.settings.configured && !path.join(ROOT_FILE).is_file() {
                return Ok(None);
            }
            self.open.insert(path.to_owned(), root);
        }
        Ok(self.open.get(path))
    }

    /// Says of a transcript what would become of it.
    fn look(&mut self, file: PathBuf) -> Session {
        let mut session = Session {
            transcript: Rules::told(&file.to_string_lossy()),
            project: None,
            ended: None,
            messages: 0,
            root: None,
            state: State::Failed,
            days: Vec::new(),
            record: None,
            error: None,
            folder: None,
            home: None,
            file,
        };
        if let Err(error) = self.look_into(&mut session) {
            session.error = Some(error.to_string());
        }
        session
    }

    fn look_into(&mut self, session: &mut Session) -> Result<(), CommandError> {
        let transcript = read_transcript(&session.file, None)?;
        session.project = transcript.cwd.as_deref().map(Rules::told);
        session.messages = transcript.own().filter(|it| matches!(it.what, What::User(_))).count();
        let home = self.home(&transcript);
        let is_elsewhere = self.named.is_some() && self.named != home;
        let call = self.call;
        let Some(path) = home else {
            session.folder = transcript.cwd.as_deref().map(PathBuf::from);
            let may = session.folder.as_ref().is_some_and(|it| self.may_get_one(it));
            session.state = if may { State::First } else { State::Homeless };
            return Ok(());
        };
        session.root = Some(path.display().to_string());
        if is_elsewhere {
            session.state = State::Elsewhere;
            return Ok(());
        }
        let Some(root) = self.root(&path)? else {
            (session.root, session.state) = (None, State::Homeless);
            return Ok(());
        };
        let zone = root.settings.zone.name.0;
        session.ended = transcript.span().map(|it| it.1.with_timezone(&zone).to_rfc3339());
        let days = keeper(call, root).foresee(&Request::of_ended(&transcript, None))?;
        session.state = if days.is_empty() { State::Known } else { State::New };
        session.days = days;
        session.home = Some(path);
        Ok(())
    }

    /// Brings a session in.
    fn keep(&mut self, session: &mut Session) {
        if let Err(error) = self.kept(session) {
            session.state = State::Failed;
            session.error = Some(error.to_string());
        }
    }

    fn kept(&mut self, session: &mut Session) -> Result<(), CommandError> {
        let Some(path) = session.home.clone() else { return Ok(()) };
        let transcript = read_transcript(&session.file, None)?;
        let call = self.call;
        let Some(root) = self.root(&path)? else { return Ok(()) };
        let file = session.file.to_string_lossy().into_owned();
        match keeper(call, root).keep(&Request::of_ended(&transcript, Some(&file))) {
            Ok(kept) => session.record = Some(kept.id),
            // A session that was copied: what it says was brought in with the other one.
            Err(KeepError::Nothing) => {
                session.state = State::Known;
                session.days.clear();
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

impl Report {
    fn tell(&self, ui: &Ui) {
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
                    None => it.state.words(!self.dry_run).to_owned(),
                };
                vec![ended, project, it.messages.to_string(), it.days.len().to_string(), what]
            })
            .collect();
        if !rows.is_empty() {
            ui.table(&["ended", "project", "messages", "entries", ""], &rows);
        }
    }

    fn conclude(&self, args: &Args, ui: &Ui) {
        let Self { kept, entries, .. } = self;
        if self.sessions.is_empty() {
            let days = args.days;
            ui.note(format!("no session of the last {days} days; --days 0 looks at all"));
        } else if *kept == 0 {
            ui.good("nothing to do: no session is new");
        } else if self.dry_run {
            ui.note(format!(
                "{kept} sessions would make as many records and {entries} entries in logs; that asks no \
                 model and costs nothing. Nothing was written: --yes does it"
            ));
        } else {
            ui.good(format!(
                "{kept} sessions are brought in, with {entries} entries in logs; `memoird compact \
                 --dry-run` shows what is made of those, and what that costs"
            ));
        }
        if self.sessions.iter().any(|it| it.state == State::Homeless) {
            ui.note(
                "for the sessions of a project: `memoird init DIR` in it, then the same again; or \
                 `memoird init --projects DIR`, and each gets a folder of its own",
            );
        }
    }
}
