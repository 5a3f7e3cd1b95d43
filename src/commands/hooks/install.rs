//! Changes the files of an agent's program. Which files these are, [`super::programs`] says; what is ours in JSON
//! settings, [`super::entries`]; in those of Codex, [`super::toml_settings`].
//!
//! The settings belong to the user: everything else in them stays, the change is shown first, and the
//! previous file is backed up beside it. Removing the hooks restores that file byte for byte, if nothing else
//! was changed since.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use super::{
    entries::Entries,
    json_edit::{self, Syntax},
    openclaw,
    programs::{AgentProgram, FileContent, PLUGIN_PROGRAM, ProgramFile},
    toml_settings,
};
use crate::{
    commands::ui::Ui,
    config::environment::Environment,
    operations::error::{CommandError, CommandResult},
    recall::history,
    store::fs::vault::settings_files::{remove_settings, write_copy, write_settings},
};

/// Follows the name of the settings in the name of a backup.
const BACKUP_INFIX: &str = ".before-memoird-";

/// A change of one file of an agent's program.
#[derive(Debug)]
pub(crate) struct HookSettingsChange {
    /// The file.
    pub(crate) path: PathBuf,
    old: Option<String>,
    /// The new text; `None` if the file did not exist before the hooks were added.
    new: Option<String>,
    /// The backup that the new text comes from.
    restored: Option<PathBuf>,
    /// Whether only memoird writes the file, which needs no backup then.
    is_own_file: bool,
}

/// How a file of settings is changed.
pub(super) struct SettingsEdit<'a> {
    pub(super) path: PathBuf,
    /// The name of the program that reads it.
    pub(super) program: &'static str,
    pub(super) syntax: Syntax,
    /// Adds or removes what is ours; fails with the key of settings that have another shape.
    pub(super) merge: &'a dyn Fn(&mut Value) -> Result<(), &'static str>,
    /// Returns whether a backup has nothing of ours, and otherwise the same settings.
    pub(super) is_before: &'a dyn Fn(Value, &Value) -> bool,
}

impl HookSettingsChange {
    /// Computes the changes of the files of a program; none if nothing is to be changed.
    pub(crate) fn all(
        host: AgentProgram,
        around: &Environment,
        program: &Path,
        takes_out: bool,
    ) -> CommandResult<Vec<Self>> {
        if host == AgentProgram::OpenClaw {
            let workspace = openclaw::workspace(around)?;
            let root = workspace.canonicalize().unwrap_or(workspace);
            let change = openclaw::settings_change(around, program, &root, takes_out)?;
            return Ok(change.into_iter().collect());
        }
        let program = program.to_string_lossy();
        let change = |ProgramFile { path, content }| match content {
            FileContent::Plugin(text) => Self::of_plugin(path, text, &program, takes_out),
            FileContent::Toml => Self::of_toml(&path, &program, takes_out),
            FileContent::Settings { hooks, server, syntax } => {
                let entries = Entries { host, hooks, server, program: &program };
                let edit = SettingsEdit {
                    path,
                    program: host.display_name(),
                    syntax,
                    merge: &|it| entries.merge(it, takes_out),
                    is_before: &|backup, settings| entries.is_before(backup, settings),
                };
                Self::of_settings(edit, takes_out)
            }
        };
        host.files(around).into_iter().filter_map(|it| change(it).transpose()).collect()
    }

    /// Computes the change of a file that is ours as a whole.
    fn of_plugin(
        path: PathBuf,
        text: &str,
        program: &str,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let old = read_file(&path)?;
        if let Some(old) = &old
            && old.lines().next() != text.lines().next()
        {
            if takes_out {
                return Ok(None);
            }
            let what = format!("`{}` was not written by memoird", path.display());
            return Err(CommandError::config(what)
                .hint("move it elsewhere, then do the same again; nothing was changed"));
        }
        let line = format!("const PROGRAM = {}\n", json!(program));
        let new = (!takes_out).then(|| text.replace(PLUGIN_PROGRAM, &line));
        let change = Self { path, old, new, restored: None, is_own_file: true };
        Ok((change.old != change.new).then_some(change))
    }

    /// Computes the change of a file of settings; `None` if nothing is to be changed.
    pub(super) fn of_settings(
        edit: SettingsEdit<'_>,
        takes_out: bool,
    ) -> CommandResult<Option<Self>> {
        let SettingsEdit { path, program, syntax, merge, is_before } = edit;
        let old = read_file(&path)?;
        let text = old.as_deref().unwrap_or_default();
        let mut settings =
            json_edit::parse(text, syntax).map_err(|e| parse_error(&path, "JSON", &e))?;
        let before = settings.clone();
        // Empty lists of the user stay.
        if takes_out && is_before(before.clone(), &before) {
            return Ok(None);
        }
        merge(&mut settings).map_err(|key| {
            let what = format!("`{key}` in `{}` is not what {program} reads", path.display());
            CommandError::config(what)
                .hint("correct it, then do the same again; nothing was changed")
        })?;
        if settings == before {
            return Ok(None);
        }
        let new = json_edit::change(text, &before, &settings).map_err(CommandError::config)?;
        let is_former = |backup: &str| {
            json_edit::parse(backup, syntax).is_ok_and(|it| is_before(it, &settings))
                && has_comments_of(backup, &new)
        };
        let is_empty = settings == json!({});
        let (new, restored) = match takes_out.then(|| former(&path, &is_former)) {
            Some(FormerText::Backup(backup, text)) => (Some(text), Some(backup)),
            Some(FormerText::NoBackup) if is_empty => (None, None),
            _ => (Some(new), None),
        };
        Ok(Some(Self { path, old, new, restored, is_own_file: false }))
    }

    fn of_toml(path: &Path, program: &str, takes_out: bool) -> CommandResult<Option<Self>> {
        let old = read_file(path)?;
        let text = old.as_deref().unwrap_or_default();
        let new = if takes_out {
            toml_settings::without_server(text)
        } else {
            toml_settings::with_server(text, program)
        };
        let Some(new) = new.map_err(|e| parse_error(path, "TOML", &e))? else { return Ok(None) };
        let program = toml_settings::server_program(text).unwrap_or_default();
        let is_former = |backup: &str| {
            toml_settings::server_program(backup).is_none()
                && toml_settings::with_server(backup, &program)
                    .is_ok_and(|it| it.as_ref() == old.as_ref())
        };
        let is_empty = new.trim().is_empty();
        let (new, restored) = match takes_out.then(|| former(path, &is_former)) {
            Some(FormerText::Backup(backup, text)) => (Some(text), Some(backup)),
            Some(FormerText::NoBackup) if is_empty => (None, None),
            _ => (Some(new), None),
        };
        Ok(Some(Self { path: path.to_owned(), old, new, restored, is_own_file: false }))
    }

    /// Says what becomes of the file.
    pub(crate) fn describe(&self) -> &'static str {
        match (&self.new, &self.restored) {
            (None, _) if self.is_own_file => "removed",
            (None, _) => "removed, as before memoird was set up",
            (Some(_), Some(_)) => "restored byte for byte, as before memoird was set up",
            (Some(_), None) => "what is memoird's is taken out, the rest stays",
        }
    }

    pub(crate) fn show_diff(&self, ui: &Ui) {
        let name = self.path.display().to_string();
        ui.diff(
            [&name, &name],
            &history::diff_hunks(
                self.old.as_deref().unwrap_or_default(),
                self.new.as_deref().unwrap_or_default(),
            ),
        );
    }

    /// Writes the change, and returns the path of the backup. There is none if the file is again what it was
    /// before the hooks were added.
    pub(crate) fn write(
        &self,
        now: chrono::DateTime<chrono::Utc>,
    ) -> CommandResult<Option<PathBuf>> {
        // Other programs write their settings at any time, also while a person thinks about the change.
        if read_file(&self.path)? != self.old {
            let what = format!("`{}` was changed meanwhile", self.path.display());
            return Err(CommandError::config(what).hint("do the same again; nothing was changed"));
        }
        let Some(new) = &self.new else {
            remove_settings(&self.path)?;
            return Ok(None);
        };
        if let Some(restored) = &self.restored {
            write_settings(&self.path, new)?;
            remove_settings(restored)?;
            return Ok(None);
        }
        let backup = match &self.old {
            Some(old) if !self.is_own_file => {
                let name = format!(
                    "{}{BACKUP_INFIX}{}",
                    self.path.file_name().unwrap_or_default().to_string_lossy(),
                    now.format("%Y%m%d-%H%M%S")
                );
                let backup = self.path.with_file_name(name);
                write_copy(&backup, old, &self.path)?;
                Some(backup)
            }
            _ => None,
        };
        write_settings(&self.path, new)?;
        Ok(backup)
    }
}

/// Returns the backups of settings and their texts, the newest first.
fn backups_of(path: &Path) -> Vec<(PathBuf, String)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let start = format!("{name}{BACKUP_INFIX}");
    let entries = path.parent().and_then(|it| fs::read_dir(it).ok()).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .filter(|it| it.file_name().to_string_lossy().starts_with(&start))
        .map(|it| it.path())
        .collect();
    paths.sort();
    let texts = paths.into_iter().rev().map(|it| {
        let text = fs::read_to_string(&it);
        text.map(|text| (it, text))
    });
    texts.flatten().collect()
}

/// The text of settings before memoird was set up.
enum FormerText {
    /// The path of the backup, and its text.
    Backup(PathBuf, String),
    /// There are backups, but the settings were changed since.
    Changed,
    NoBackup,
}

/// Finds the newest backup that is the text of settings before memoird was set up.
fn former(path: &Path, is_former: &dyn Fn(&str) -> bool) -> FormerText {
    let backups = backups_of(path);
    if backups.is_empty() {
        return FormerText::NoBackup;
    }
    let found = backups.into_iter().find(|it| is_former(&it.1));
    found.map_or(FormerText::Changed, |(path, text)| FormerText::Backup(path, text))
}

fn parse_error(path: &Path, format: &str, error: &dyn std::fmt::Display) -> CommandError {
    let what = format!("`{}` is no {format}: {error}", path.display());
    CommandError::config(what).hint("correct it, then do the same again; nothing was changed")
}

/// Returns the text of a file; `None` if it does not exist.
fn read_file(path: &Path) -> CommandResult<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => {
            let what = format!("cannot read `{}`: {e}", path.display());
            Err(CommandError::config(what))
        }
    }
}

/// Returns whether two texts of the same settings have the same comments.
fn has_comments_of(text: &str, other: &str) -> bool {
    let is_plain = |it: &str| json_edit::without_comments(it) == it;
    // Removing what we added may remove a trailing comma.
    let words = |it: &str| it.replace(',', " ").split_whitespace().map(str::to_owned).collect();
    let words: [Vec<String>; 2] = [text, other].map(words);
    is_plain(text) && is_plain(other) || words[0] == words[1]
}
