//! What `memoird import` reads: the folders, files and databases of each program.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, TimeDelta, Utc};
use clap::ValueEnum as _;

use super::{GlobalArgs, hooks::openclaw};
use crate::{
    config::{Config, environment::Environment},
    operations::{
        error::{CommandError, CommandResult},
        workspace::Invocation,
    },
    session::{imported_notes::NotesProgram, transcript::segments, transcript_file},
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
    /// Sessions of Copilot CLI
    Copilot,
    /// Sessions of Gemini CLI
    Gemini,
    /// Sessions of opencode: its database, or what `opencode export` writes
    Opencode,
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
    /// What Claude Code remembers of the project: ~/.claude/projects/*/memory
    ClaudeMemory,
}

impl ImportSource {
    /// Returns the folder or the database in which the program keeps its sessions; `None` for one that has no fixed place.
    pub(super) fn sessions_folder(self, around: &Environment) -> Option<PathBuf> {
        match self {
            Self::ClaudeCode => Some(around.claude_folder().join("projects")),
            Self::Codex => Some(around.codex_folder().join("sessions")),
            Self::Copilot => Some(around.copilot_folder().join("session-state")),
            Self::Gemini => Some(around.gemini_folder().join("tmp")),
            Self::Opencode => Some(around.opencode_database()),
            Self::Openclaw => Some(around.openclaw_folder().join("agents")),
            _ => None,
        }
    }

    /// Returns the name on the command line.
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|it| it.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the program whose notes are imported; `None` for sessions.
    pub(super) fn notes_program(self) -> Option<NotesProgram> {
        match self {
            Self::ClaudeCode
            | Self::Codex
            | Self::Copilot
            | Self::Gemini
            | Self::Opencode
            | Self::Jsonl => None,
            Self::Openclaw => Some(NotesProgram::OpenClaw),
            Self::Recall => Some(NotesProgram::Recall),
            Self::Teammates => Some(NotesProgram::Teammates),
            Self::Hipocampus => Some(NotesProgram::Hipocampus),
            Self::BasicMemory => Some(NotesProgram::BasicMemory),
            Self::ClaudeMemory => Some(NotesProgram::ClaudeMemory),
        }
    }
}

/// Returns the folder in which a program keeps its notes.
///
/// Returns an error if its settings cannot be read.
pub(super) fn notes_folder(
    call: &Invocation,
    of: NotesProgram,
    root: &Path,
) -> CommandResult<PathBuf> {
    Ok(match of {
        NotesProgram::OpenClaw => openclaw::workspace(&call.environment)?,
        NotesProgram::BasicMemory => call.environment.home.join("basic-memory"),
        NotesProgram::ClaudeMemory => claude_memory_folder(call, root),
        _ => call.environment.cwd.clone(),
    })
}

/// Returns the folder in which Claude Code keeps its memory of the project at work, or else of the folder `root`.
fn claude_memory_folder(call: &Invocation, root: &Path) -> PathBuf {
    let around = &call.environment;
    let folder = |of: &Path| {
        let path = of.to_string_lossy();
        let name = path.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' });
        around.claude_folder().join("projects").join(name.collect::<String>()).join("memory")
    };
    let cwd = around.cwd.canonicalize().unwrap_or_else(|_| around.cwd.clone());
    let project = Config::project_of(&cwd);
    let folders = [Some(cwd), project].into_iter().flatten().map(|it| folder(&it));
    folders.into_iter().find(|it| it.is_dir()).unwrap_or_else(|| folder(root))
}

/// Returns the first folders in which Claude Code keeps its memory of any project.
pub(super) fn claude_memory_folders(around: &Environment) -> Vec<PathBuf> {
    const SHOWN_MAX: usize = 3;
    let projects = fs::read_dir(around.claude_folder().join("projects")).into_iter().flatten();
    let folders = projects.flatten().map(|it| it.path().join("memory"));
    let mut found: Vec<PathBuf> = folders.filter(|it| it.is_dir()).collect();
    found.sort();
    found.truncate(SHOWN_MAX);
    found
}

/// Returns whether sessions of `OpenClaw` are meant, and not the notes of a workspace. A memory folder that is the
/// workspace has those notes already.
pub(super) fn names_openclaw_sessions(
    call: &Invocation,
    global: &GlobalArgs,
    from: ImportSource,
    path: Option<&Path>,
) -> bool {
    if from != ImportSource::Openclaw {
        return false;
    }
    let around = &call.environment;
    let Some(path) = path else {
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
pub(super) fn transcripts(
    call: &Invocation,
    from: ImportSource,
    path: Option<&Path>,
    days: u32,
) -> CommandResult<Vec<PathBuf>> {
    let named = path.map(|it| call.environment.absolute(it, &call.environment.cwd));
    let Some(path) = named.or_else(|| from.sessions_folder(&call.environment)) else {
        return Err(CommandError::usage("`memoird import jsonl` needs a file or a folder")
            .hint("memoird import jsonl PATH"));
    };
    if !transcript_file::exists(&path) {
        let (name, path) = (from.name(), path.display());
        return Err(CommandError::usage(format!("there are no sessions of {name}: no `{path}`"))
            .hint(format!("name the file or the folder: memoird import {name} PATH")));
    }
    let since = (days > 0).then(|| call.now - TimeDelta::days(i64::from(days)));
    if transcript_file::is_session_in_database(&path) {
        // The user chose it, whenever it changed.
        return Ok(vec![path]);
    }
    if transcript_file::is_database(&path) && !path.is_dir() {
        let unreadable = |error: std::io::Error| {
            let what = format!("cannot read the sessions in `{}`: {error}", path.display());
            CommandError::data(what)
                .hint("after `opencode export SESSION > FILE`: memoird import opencode FILE")
        };
        let sessions = transcript_file::sessions_in(&path).map_err(unreadable)?;
        let recent = sessions.into_iter().filter(|it| since.is_none_or(|at| it.1 >= at));
        return Ok(newest(recent.map(|it| it.0).collect()));
    }
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
        let is_older = from == ImportSource::Gemini
            && has_extension("json")
            && path.file_name().is_some_and(|it| it.to_string_lossy().starts_with("session-"));
        let is_export = from == ImportSource::Opencode && has_extension("json");
        let is_named = depth == 0 || has_extension("jsonl") || is_older || is_export;
        let Ok(changed) = path.metadata().and_then(|it| it.modified()) else { continue };
        let changed = DateTime::<Utc>::from(changed);
        let is_database = match from {
            ImportSource::Openclaw => has_extension("sqlite"),
            ImportSource::Opencode => has_extension("db"),
            _ => false,
        };
        if is_database {
            // A database has many sessions; older ones are files. Other databases lie beside it.
            match transcript_file::sessions_in(&path) {
                Ok(sessions) => {
                    let recent =
                        sessions.into_iter().filter(|it| since.is_none_or(|at| it.1 >= at));
                    found.extend(recent.map(|(path, changed)| (changed, path)));
                }
                // Reading it fails again, so that the report has the reason.
                Err(_) if is_session_database(&path) => found.push((changed, path)),
                Err(_) => {}
            }
            continue;
        }
        if is_named && since.is_none_or(|it| changed >= it) {
            found.push((changed, path));
        }
    }
    found.sort();
    let mut found = found.into_iter().map(|it| it.1).collect();
    segments::retain_last_segments(&mut found);
    Ok(newest(found))
}

/// Returns the last of these transcripts, which begin with the oldest, as many as are read.
fn newest(mut files: Vec<PathBuf>) -> Vec<PathBuf> {
    files.drain(..files.len().saturating_sub(FILES_MAX));
    files
}

/// Returns whether a file has the name of a program's own database of sessions.
fn is_session_database(path: &Path) -> bool {
    path.file_name().is_some_and(|it| it == "openclaw-agent.sqlite" || it == "opencode.db")
}
