//! `memoird session list`, `show`, `export`, `import`.

use std::{io::Read as _, path::PathBuf, process::ExitCode};

use serde::Serialize;

use super::open_input;
use crate::{
    commands::{GlobalArgs, ui::Ui},
    memory::address::Stem,
    operations::{
        error::{CommandError, CommandResult},
        session_records::{RecordFilter, record_store, stored_records},
        workspace::{self, Invocation, MemoryRoot},
    },
    recall::{framing::FramedText, search::time::date_words::DateWords},
    session::{record, save::IMPORT_BYTES_MAX},
    store::fs::layout::FileKind,
};

/// List the records of sessions, the newest first
#[derive(Debug, clap::Args)]
pub(super) struct SessionListArgs {
    /// Only those of this project: its folder, or a part of its path
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only those with this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only those that ended on this day or later (2026-04-02, "two weeks ago")
    #[arg(long, value_name = "DATE")]
    since: Option<DateWords>,
    /// Only those that ended on this day or before
    #[arg(long, value_name = "DATE")]
    until: Option<DateWords>,
}

/// Print a sanitized record
#[derive(Debug, clap::Args)]
pub(super) struct SessionShowArgs {
    /// The record: CMEM-20260402-101500
    #[arg(value_name = "ID")]
    id: String,
}

/// Print a record, or an imported file, byte for byte
#[derive(Debug, clap::Args)]
pub(super) struct SessionExportArgs {
    /// The record: CMEM-20260402-101500
    #[arg(long, value_name = "ID")]
    id: String,
}

/// Import a record from a file, byte for byte
#[derive(Debug, clap::Args)]
pub(super) struct SessionImportArgs {
    /// The file; `-` for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Serialize)]
struct RecordReport<'a> {
    path: &'a str,
    kind: &'static str,
    #[serde(flatten)]
    handed: FramedText,
}

#[derive(Serialize)]
struct RecordImportReport {
    id: String,
    path: String,
    unchanged: bool,
}

pub(super) fn list(global: &GlobalArgs, args: &SessionListArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let today = call.now.with_timezone(&root.settings.zone.name.0).date_naive();
    let filter = RecordFilter {
        project: args.project.clone(),
        tag: args.tag.clone(),
        since: args.since.as_ref().map(|it| it.days(today).0),
        until: args.until.as_ref().map(|it| it.days(today).1),
    };
    let records = stored_records(&call, &root, &filter)?;
    if ui.is_json() {
        ui.json(&serde_json::json!({ "records": records }));
    } else if records.is_empty() {
        ui.note("there is no record; `memoird session compact FILE` creates one from a transcript");
    } else {
        let rows: Vec<Vec<String>> = records
            .into_iter()
            .map(|it| {
                let when =
                    it.ended.map(|it| it.chars().take(16).collect::<String>().replace('T', " "));
                let project = it.project.unwrap_or_default();
                let project = project.rsplit('/').next().unwrap_or_default().to_owned();
                vec![
                    it.id,
                    when.unwrap_or_default(),
                    it.style,
                    project,
                    it.description.unwrap_or_default(),
                ]
            })
            .collect();
        ui.table(&["id", "ended", "style", "project", "about"], &rows);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(global: &GlobalArgs, args: &SessionShowArgs, ui: &Ui) -> CommandResult {
    let (_, root) = Invocation::with_root(global)?;
    let (path, bytes) = record_bytes(&root, &args.id)?;
    let handed = root.sanitized_file(&path, &bytes);
    if ui.is_json() {
        ui.json(&RecordReport { path: &path, kind: FileKind::Session.name(), handed });
    } else {
        ui.bytes(handed.text.as_bytes());
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn export(global: &GlobalArgs, args: &SessionExportArgs, ui: &Ui) -> CommandResult {
    let (_, root) = Invocation::with_root(global)?;
    if ui.is_json() {
        let what = "export prints the record itself, byte for byte";
        return Err(
            CommandError::usage(what).hint(format!("memoird session show {} --json", args.id))
        );
    }
    let (_, bytes) = record_bytes(&root, &args.id)?;
    let text = String::from_utf8_lossy(&bytes);
    ui.bytes(record::export_text(&text).as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn record_bytes(root: &MemoryRoot, id: &str) -> CommandResult<(String, Vec<u8>)> {
    let name = id.rsplit('/').next().unwrap_or(id).trim_end_matches(".md");
    let stem = name.parse::<Stem>().ok().filter(Stem::is_session);
    let stem = stem.ok_or_else(|| {
        CommandError::usage(format!("`{id}` is not the name of a record"))
            .hint("`memoird session list` lists them all, with names like CMEM-20260402-101500")
    })?;
    let path = root.vault.layout().source_path(&stem);
    let found = root
        .vault
        .read(&path)?
        .ok_or_else(|| workspace::no_such_file(&path).hint("memoird session list"))?;
    Ok((path, found.bytes))
}

pub(super) fn import(global: &GlobalArgs, args: &SessionImportArgs, ui: &Ui) -> CommandResult {
    let (call, root) = Invocation::with_root(global)?;
    let name = args.file.display();
    let mut bytes = Vec::new();
    open_input(&args.file)?
        .take(IMPORT_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| CommandError::data(format!("cannot read `{name}`: {e}")))?;
    if bytes.len() as u64 > IMPORT_BYTES_MAX {
        let what = format!("`{name}` is larger than {} MiB", IMPORT_BYTES_MAX >> 20);
        return Err(CommandError::data(what)
            .hint("`memoird session compact` creates a record from a transcript"));
    }
    let text = String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        CommandError::data(format!("`{name}` is not UTF-8 at byte {at}"))
    })?;
    if text.trim().is_empty() {
        return Err(CommandError::data(format!("`{name}` is empty")));
    }
    let (id, path, unchanged) = record_store(&call, &root).import(&text)?;
    if ui.is_json() {
        ui.json(&RecordImportReport { id, path, unchanged });
        return Ok(ExitCode::SUCCESS);
    }
    let how = if unchanged { "exists already" } else { "is saved" };
    ui.note(format!("{path} {how}; memoird session show {id}"));
    ui.data(id);
    Ok(ExitCode::SUCCESS)
}
