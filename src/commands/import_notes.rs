//! `memoird import openclaw|recall|teammates|hipocampus|basic-memory|claude-memory`: imports notes of other
//! programs, and never changes them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::{error_report::exit_code_if_failed, import_sources, ui::Ui};
use crate::{
    memory::index,
    operations::{
        error::{CommandError, CommandResult},
        format::counted,
        session_records::record_store,
        workspace::{Invocation, MemoryRoot},
    },
    privacy::PrivacyRules,
    session::{
        imported_notes::{self, ImportedNote, NotesProgram},
        save::{IMPORT_BYTES_MAX, SaveError},
    },
};

/// How deep folders are searched for notes.
const DEPTH_MAX: usize = 8;
/// How many files are read at most.
const FILES_MAX: usize = 20_000;

pub(super) struct NotesImportRequest {
    pub(super) of: NotesProgram,
    pub(super) path: PathBuf,
    pub(super) dry_run: bool,
    pub(super) yes: bool,
}

/// What `--json` prints.
#[derive(Serialize)]
struct NotesImportReport {
    dry_run: bool,
    notes: Vec<NoteCandidate>,
    /// How many lines were added to logs, or would be.
    lines: usize,
}

/// A file that may be imported.
#[derive(Serialize)]
struct NoteCandidate {
    file: String,
    date: Option<NaiveDate>,
    /// How many of its lines are new.
    lines: usize,
    /// The id of its record, once imported.
    #[serde(skip_serializing_if = "Option::is_none")]
    record: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    note: Option<ImportedNote>,
}

pub(super) fn run(
    call: &Invocation,
    root: &MemoryRoot,
    request: &NotesImportRequest,
    ui: &Ui,
) -> CommandResult {
    let program = request.of;
    require_notes_folder(call, root, request)?;
    let store = record_store(call, root);
    let mut notes: Vec<NoteCandidate> = note_files(request)
        .into_iter()
        .map(|(name, path)| read_note(call, root, &name, &path))
        .collect();
    let mut logged = store.logged_notes()?;
    for it in &mut notes {
        it.lines = it.note.as_ref().map_or(0, |it| store.new_lines(program, it, &logged).len());
    }
    let mut report = NotesImportReport { dry_run: true, notes, lines: 0 };
    let new = report.notes.iter().filter(|it| it.lines > 0).count();
    if new > 0 && !request.dry_run {
        if !request.yes && ui.is_interactive() {
            report.print_table(ui);
        }
        let question = format!("Import {}?", counted(new, "file", "files"));
        if request.yes || ui.confirm(question).unwrap_or(false) {
            report.dry_run = false;
            for it in report.notes.iter_mut().filter(|it| it.lines > 0) {
                let Some(note) = &it.note else { continue };
                match store.import_note(program, note, &mut logged) {
                    Ok((id, lines)) => (it.record, it.lines) = (Some(id), lines),
                    Err(SaveError::NothingNew) => it.lines = 0,
                    Err(error) => (it.error, it.lines) = (Some(error.to_string()), 0),
                }
            }
        }
    }
    report.lines = report.notes.iter().map(|it| it.lines).sum();
    if ui.is_json() {
        ui.json(&report);
    } else {
        report.print_table(ui);
        report.print_summary(request, ui);
    }
    let failed = report.notes.iter().any(|it| it.error.is_some());
    Ok(exit_code_if_failed(failed))
}

/// Refuses a path that cannot have notes of another program, and names one that can.
fn require_notes_folder(
    call: &Invocation,
    root: &MemoryRoot,
    NotesImportRequest { of, path, .. }: &NotesImportRequest,
) -> CommandResult<()> {
    let (name, shown) = (of.name(), path.display());
    let with_path = |path: &Path| format!("memoird import {name} {}", path.display());
    if path.is_dir() {
        let layout = root.vault.layout();
        let memory = layout.root().join(layout.memory_dir());
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        let is_own = real == *layout.root() || memory.canonicalize().is_ok_and(|it| it == real);
        if !is_own || path.join(".teammates").is_dir() {
            return Ok(());
        }
        let what = format!("`{shown}` is the memory folder itself, whose logs need no import");
        let hint = format!("name the folder of the other program: {}", with_path("PATH".as_ref()));
        return Err(CommandError::usage(what).hint(hint));
    }
    if path.is_file() {
        let what = format!("`{shown}` is a file, and notes are imported by the folder");
        return Err(CommandError::usage(what).hints_from(path.parent().map(with_path)));
    }
    let error = CommandError::usage(format!("there are no notes of {name}: no folder `{shown}`"));
    let others = match of {
        NotesProgram::ClaudeMemory => import_sources::claude_memory_folders(&call.environment),
        _ => Vec::new(),
    };
    if others.is_empty() {
        return Err(error.hint(format!("name the folder: {}", with_path("PATH".as_ref()))));
    }
    Err(error.hints_from(others.iter().map(|it| with_path(it))))
}

/// Returns the notes below a folder, sorted by name; does not follow links.
fn note_files(request: &NotesImportRequest) -> Vec<(String, PathBuf)> {
    // A team keeps its notes in a folder of its project.
    let inner = request.path.join(".teammates");
    let top = if request.of == NotesProgram::Teammates && inner.is_dir() {
        inner
    } else {
        request.path.clone()
    };
    let mut found = Vec::new();
    let mut folders = vec![(top.clone(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            if kind.is_dir() && !is_hidden && depth < DEPTH_MAX {
                folders.push((path, depth + 1));
                continue;
            }
            let Ok(relative) = path.strip_prefix(&top) else { continue };
            if kind.is_file() && found.len() < FILES_MAX && request.of.is_note(relative) {
                found.push((relative.to_string_lossy().into_owned(), path));
            }
        }
    }
    found.sort();
    found
}

fn read_note(call: &Invocation, root: &MemoryRoot, name: &str, path: &Path) -> NoteCandidate {
    let name = PrivacyRules::mask_message(name);
    let failed = |file: String, error: Option<String>| NoteCandidate {
        file,
        date: None,
        lines: 0,
        record: None,
        error,
        note: None,
    };
    let found = match path.metadata() {
        Ok(found) if found.len() <= IMPORT_BYTES_MAX => found,
        Ok(_) => return failed(name, Some("it is too large".to_owned())),
        Err(error) => return failed(name, Some(error.to_string())),
    };
    let text = match fs::read(path).map(String::from_utf8) {
        // What memoird itself keeps in such a file is no note. The lines keep their numbers.
        Ok(Ok(text)) => index::own_lines(&text),
        Ok(Err(_)) => return failed(name, Some("it is not UTF-8".to_owned())),
        Err(error) => return failed(name, Some(error.to_string())),
    };
    let zone = root.settings.zone.name.0;
    let changed = found.modified().map_or(call.now, DateTime::<Utc>::from);
    let date = imported_notes::note_date(&name, &text)
        .unwrap_or_else(|| changed.with_timezone(&zone).date_naive())
        // A note with a future date goes to today's log.
        .min(call.now.with_timezone(&zone).date_naive());
    let note = ImportedNote { name: name.clone(), text, date };
    NoteCandidate { date: Some(date), note: Some(note), ..failed(name, None) }
}

impl NotesImportReport {
    fn print_table(&self, ui: &Ui) {
        let rows: Vec<Vec<String>> = self
            .notes
            .iter()
            .filter(|it| it.lines > 0 || it.error.is_some())
            .filter(|it| self.dry_run || !ui.is_quiet() || it.error.is_some())
            .map(|it| {
                let date = it.date.map(|it| it.to_string()).unwrap_or_default();
                let what = it.error.clone().unwrap_or_default();
                vec![date, it.lines.to_string(), it.file.clone(), what]
            })
            .collect();
        if !rows.is_empty() {
            ui.table(&["day", "lines", "file", ""], &rows);
        }
    }

    fn print_summary(&self, request: &NotesImportRequest, ui: &Ui) {
        let files = self.notes.iter().filter(|it| it.lines > 0).count();
        let count = counted(files, "file", "files");
        let lines = counted(self.lines, "line", "lines");
        if self.notes.is_empty() {
            let (path, program) = (request.path.display(), request.of.name());
            ui.note(format!("`{path}` has no notes of {program}"));
        } else if files == 0 {
            ui.success("nothing to do: no new lines");
        } else if self.dry_run {
            ui.note(format!(
                "would import {count}, with one record each and {lines} in logs; this takes no model \
                 calls. Nothing was written; add --yes to import"
            ));
        } else {
            ui.success(format!("imported {count}, with {lines} in logs"));
        }
    }
}
